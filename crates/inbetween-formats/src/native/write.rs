//! Writes an import as text. Every thing has one form, so equal imports give equal files.

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Axis, Clip, Curve, EulerBetween, EulerCurve, Extrapolation, Joint, Property, Skeleton, SpanKind, Spans,
    Tangents, Track, TrackData, ValueKind,
};

use super::words::{write_name, write_number};
use super::{
    INHERIT, MAGIC, NODE_KINDS, Names, PIVOTS, SPANS, VERSION, WRAPS, component_name, default_kind,
    default_rest, default_span, kind_name, name_of,
};
use crate::convention::AxisMap;
use crate::{Convention, FormatError, Import};

/// The import as text: nodes, then clips. Notes and what only the source format knows stay out.
///
/// Numbers keep the units they have in `import`; the file says which they are.
///
/// # Errors
/// [`FormatError::CannotWrite`] if the import is not valid: a number that is not finite, a value
/// whose width is not that of its kind, a component that is no scalar curve, a built-in property's
/// name given as another property.
pub fn write(import: &Import) -> Result<String, FormatError> {
    let mut w = Writer { names: Names::of(import.skeleton.joints()), out: String::new(), fault: None };
    w.line(0, |o| o.push_str(&format!("{MAGIC} {VERSION}")));
    w.convention(&import.convention, import.in_house_units);
    for joint in import.skeleton.joints() {
        w.joint(joint, &import.skeleton);
    }
    for clip in &import.clips {
        w.clip(clip, &import.skeleton);
    }
    match w.fault {
        None => Ok(w.out),
        Some(what) => Err(FormatError::CannotWrite {
            format: "inb",
            what,
            advice: "this is no valid import; correct what made it".to_owned(),
        }),
    }
}

struct Writer<'a> {
    names: Names<'a>,
    out: String,
    /// The first thing that cannot be written.
    fault: Option<String>,
}

impl Writer<'_> {
    fn fault(&mut self, what: impl FnOnce() -> String) {
        self.fault.get_or_insert_with(what);
    }

    fn line(&mut self, depth: usize, body: impl FnOnce(&mut String)) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
        body(&mut self.out);
        self.out.push('\n');
    }

    /// A keyword and numbers.
    fn numbers(&mut self, depth: usize, keyword: &str, values: &[f64]) {
        self.check(keyword, values);
        self.line(depth, |o| {
            o.push_str(keyword);
            push_numbers(o, values);
        });
    }

    fn check(&mut self, what: &str, values: &[f64]) {
        if let Some(v) = values.iter().find(|v| !v.is_finite()) {
            self.fault(|| format!("{what} {v}"));
        }
    }

    fn convention(&mut self, c: &Convention, house: bool) {
        let prefix = if house { "source-" } else { "" };
        if c.metres_per_unit.to_bits() != 1.0f64.to_bits() {
            self.numbers(0, &format!("{prefix}unit"), &[c.metres_per_unit]);
        }
        if c.axes != AxisMap::SAME {
            let axis = |i: usize| {
                format!(" {}{}", if c.axes.sign[i] < 0.0 { "-" } else { "" }, ["x", "y", "z"][c.axes.from[i]])
            };
            self.line(0, |o| o.push_str(&format!("{prefix}axes{}{}{}", axis(0), axis(1), axis(2))));
        }
    }

    fn joint(&mut self, joint: &Joint, skeleton: &Skeleton) {
        self.out.push('\n');
        let parent = joint.parent.map(|p| (p, skeleton.joints()[p].name.as_str()));
        let by_name = parent.is_some_and(|(p, name)| self.names.unique(name) == Some(p));
        self.line(0, |o| {
            o.push_str(name_of(&NODE_KINDS, joint.kind));
            o.push(' ');
            write_name(o, &joint.name);
            if let Some((parent, name)) = parent {
                o.push_str(" in ");
                if by_name { write_name(o, name) } else { o.push_str(&format!("@{parent}")) }
            }
        });
        let rest = &joint.rest;
        self.unless(DVec3::ZERO.to_array(), rest.translation.to_array(), 1, "translation");
        self.unless(DQuat::IDENTITY.to_array(), rest.rotation.to_array(), 1, "rotation");
        self.unless(DVec3::ONE.to_array(), rest.scale.to_array(), 1, "scale");
        if let Some(p) = &joint.pivot {
            let values = [p.rotation_offset, p.rotation_pivot, p.scaling_offset, p.scaling_pivot];
            let none = values.iter().all(|v| same(&v.to_array(), &[0.0; 3]));
            for (i, (name, v)) in PIVOTS.iter().zip(values).enumerate() {
                if !same(&v.to_array(), &[0.0; 3]) || (none && i == 0) {
                    self.numbers(1, &format!("pivot {name}"), &v.to_array());
                }
            }
        }
        if joint.inherit != inbetween::ScaleInherit::Full {
            self.line(1, |o| o.push_str(&format!("inherit {}", name_of(&INHERIT, joint.inherit))));
        }
        for tip in &joint.tips {
            self.numbers(1, "tip", &tip.to_array());
        }
        if let Some(reach) = joint.reach {
            self.numbers(1, "reach", &[reach]);
        }
    }

    fn unless<const N: usize>(&mut self, default: [f64; N], value: [f64; N], depth: usize, keyword: &str) {
        if !same(&default, &value) {
            self.numbers(depth, keyword, &value);
        }
    }

    fn clip(&mut self, clip: &Clip, skeleton: &Skeleton) {
        self.out.push('\n');
        self.line(0, |o| {
            o.push_str("clip ");
            write_name(o, &clip.name);
        });
        self.numbers(1, "range", &[clip.start(), clip.end()]);
        if let Some(rate) = clip.rate {
            self.line(1, |o| o.push_str(&format!("rate {rate}")));
        }
        if clip.wrap != inbetween::Wrap::Hold {
            self.line(1, |o| o.push_str(&format!("wrap {}", name_of(&WRAPS, clip.wrap))));
        }
        if clip.additive {
            self.line(1, |o| o.push_str("additive"));
        }
        for marker in &clip.markers {
            self.check("the time of a marker", &[marker.time]);
            self.line(1, |o| {
                o.push_str("mark");
                push_numbers(o, &[marker.time]);
                o.push(' ');
                write_name(o, &marker.name);
            });
        }
        for track in &clip.tracks {
            self.track(track, skeleton);
        }
    }

    fn track(&mut self, track: &Track, skeleton: &Skeleton) {
        let binding = &track.binding;
        let kind = track.data.kind();
        let place = || format!("track {:?} {:?}", binding.target, binding.property.name());
        if let Property::Other(name) = &binding.property
            && Property::from_name(name) != binding.property
        {
            self.fault(|| format!("{}: a built-in property's name as another property", place()));
        }
        if track.rest.len() != kind.width() {
            self.fault(|| format!("{}: {} rest values for {}", place(), track.rest.len(), kind_name(kind)));
        }
        self.out.push('\n');
        let table = columns(&track.data);
        self.line(1, |o| {
            o.push_str("track ");
            write_name(o, &binding.target);
            o.push(' ');
            write_name(o, binding.property.name());
            match &track.data {
                TrackData::Curve(_) if default_kind(&binding.property) == Some(kind) => {}
                TrackData::Curve(_) => o.push_str(&format!(" as {}", kind_name(kind))),
                TrackData::Axes { .. } if default_kind(&binding.property) == Some(kind) => {
                    o.push_str(" as axes")
                }
                TrackData::Axes { .. } => o.push_str(&format!(" as axes {}", kind_name(kind))),
                TrackData::Euler(e) => {
                    o.push_str(" as euler");
                    if table.is_some() {
                        o.push(' ');
                        o.extend(e.terms.iter().map(|(axis, _)| axis.letter()));
                    }
                }
            }
        });
        if binding.node != self.names.unique(&binding.target) || self.names.count(&binding.target) > 1 {
            let node = binding.node.map_or_else(|| "none".to_owned(), |n| format!("@{n}"));
            self.line(2, |o| o.push_str(&format!("drives {node}")));
        }
        if let Some(path) = &binding.path {
            self.line(2, |o| {
                o.push_str("path ");
                write_name(o, path);
            });
        }
        if !track.enabled {
            self.line(2, |o| o.push_str("muted"));
        }
        if !same(&track.rest, &default_rest(&binding.property, kind, binding.node, skeleton)) {
            self.numbers(2, "rest", &track.rest);
        }
        match &track.data {
            TrackData::Curve(c) => self.curves(&[c], 2),
            TrackData::Axes { kind, axes } => {
                if axes.len() != kind.width() {
                    self.fault(|| format!("{}: {} components for {}", place(), axes.len(), kind_name(*kind)));
                }
                match table {
                    Some(columns) => self.curves(&columns, 2),
                    None => {
                        for (i, axis) in axes.iter().enumerate() {
                            self.axis(&format!("axis {}", component_name(*kind, i)), axis, &place);
                        }
                    }
                }
            }
            TrackData::Euler(e) => self.euler(e, table, &place),
        }
    }

    fn euler(&mut self, e: &EulerCurve, table: Option<Vec<&Curve>>, place: &dyn Fn() -> String) {
        if e.between == EulerBetween::Slerp {
            self.line(2, |o| o.push_str("between slerp"));
        }
        self.unless(DQuat::IDENTITY.to_array(), e.pre.to_array(), 2, "pre");
        self.unless(DQuat::IDENTITY.to_array(), e.post.to_array(), 2, "post");
        match table {
            Some(columns) => self.curves(&columns, 2),
            None => {
                for (axis, angle) in &e.terms {
                    self.axis(&format!("turn {}", axis.letter()), angle, place);
                }
            }
        }
    }

    fn axis(&mut self, head: &str, axis: &Axis, place: &dyn Fn() -> String) {
        match axis {
            Axis::Constant(v) => self.numbers(2, &format!("{head} constant"), &[*v]),
            Axis::Curve(c) => {
                if c.kind() != ValueKind::Scalar {
                    self.fault(|| format!("{}: a component that is no scalar curve", place()));
                }
                self.line(2, |o| o.push_str(head));
                self.curves(&[c], 3);
            }
        }
    }

    /// One curve, or several scalar ones side by side that agree in everything but their values.
    fn curves(&mut self, columns: &[&Curve], depth: usize) {
        let first = columns[0].parts();
        let usual = usual_span(&first.spans, columns[0].len());
        if usual != default_span(first.kind) {
            self.line(depth, |o| o.push_str(name_of(&SPANS, usual)));
        }
        for (word, rule) in [("before", first.before), ("after", first.after)] {
            if rule != Extrapolation::Hold {
                self.line(depth, |o| {
                    o.push_str(word);
                    o.push_str(&extrapolation(rule));
                });
            }
        }
        let own = match &first.spans {
            Spans::Uniform(_) => Vec::new(),
            Spans::PerKey(kinds) => kinds.clone(),
        };
        let all_usual = own.iter().all(|k| *k == usual);
        for key in 0..columns[0].len() {
            self.line(depth, |o| {
                write_number(o, first.times[key]);
                for c in columns {
                    if first.kind == ValueKind::Switch {
                        o.push_str(if c.value(key)[0] == 0.0 { " off" } else { " on" });
                    } else {
                        push_numbers(o, c.value(key));
                    }
                }
                if let Some(&kind) = own.get(key)
                    && (kind != usual || (all_usual && key == 0))
                {
                    o.push(' ');
                    o.push_str(name_of(&SPANS, kind));
                }
                side(o, columns, key, "in", |t| (&t.arrive, &t.arrive_dt));
                side(o, columns, key, "out", |t| (&t.leave, &t.leave_dt));
            });
        }
    }
}

fn push_numbers(out: &mut String, values: &[f64]) {
    for v in values {
        out.push(' ');
        write_number(out, *v);
    }
}

/// The tangents on one side of a key; left out where they are zero, except that the first key
/// shows that there are any.
fn side<'a>(
    out: &mut String,
    columns: &[&'a Curve],
    key: usize,
    word: &str,
    rows: impl Fn(&'a Tangents) -> (&'a Vec<f64>, &'a Vec<f64>),
) {
    let row = |c: &'a Curve, values: &'a [f64]| {
        let w = c.width();
        values.get(key * w..(key + 1) * w).unwrap_or(&[])
    };
    let (mut slopes, mut lengths) = (Vec::new(), Vec::new());
    for &c in columns {
        let Some(t) = &c.parts().tangents else { return };
        let (value, dt) = rows(t);
        slopes.extend_from_slice(row(c, value));
        lengths.extend_from_slice(row(c, dt));
    }
    let zero = |row: &[f64]| row.iter().all(|v| v.to_bits() == 0);
    let show = key == 0 && word == "out";
    if show || !zero(&slopes) || !zero(&lengths) {
        out.push(' ');
        out.push_str(word);
        push_numbers(out, &slopes);
    }
    if !lengths.is_empty() && (show || !zero(&lengths)) {
        out.push_str(" over");
        push_numbers(out, &lengths);
    }
}

/// The scalar curves of a track whose components all have keys at the same times with the same
/// spans, so that a table of them is the whole truth.
fn columns(data: &TrackData) -> Option<Vec<&Curve>> {
    let axes: Vec<&Axis> = match data {
        TrackData::Curve(_) => return None,
        TrackData::Axes { axes, .. } => axes.iter().collect(),
        TrackData::Euler(e) => e.terms.iter().map(|(_, a)| a).collect(),
    };
    let curves: Vec<&Curve> = axes.iter().map(|a| a.curve()).collect::<Option<_>>()?;
    let first = curves.first()?.parts();
    let has = |t: &Option<Box<Tangents>>| t.as_ref().map(|t| t.leave_dt.is_empty());
    let alike = curves.iter().map(|c| c.parts()).all(|p| {
        p.kind == ValueKind::Scalar
            && (std::sync::Arc::ptr_eq(&p.times, &first.times) || same(&p.times, &first.times))
            && p.spans == first.spans
            && (p.before, p.after) == (first.before, first.after)
            && has(&p.tangents) == has(&first.tangents)
    });
    alike.then_some(curves)
}

/// The kind most spans have; of two the one that comes first in [`SPANS`].
fn usual_span(spans: &Spans, keys: usize) -> SpanKind {
    match spans {
        Spans::Uniform(kind) => *kind,
        Spans::PerKey(kinds) => {
            let count = |kind: SpanKind| (0..keys).filter(|&i| kinds[i] == kind).count();
            let most = SPANS.iter().map(|(_, k)| count(*k)).max().unwrap_or(0);
            SPANS.iter().map(|(_, k)| *k).find(|&k| count(k) == most).unwrap_or(SpanKind::Linear)
        }
    }
}

fn extrapolation(rule: Extrapolation) -> String {
    let times = |word: &str, repeats: Option<u32>| match repeats {
        Some(n) => format!(" {word} {n}"),
        None => format!(" {word}"),
    };
    match rule {
        Extrapolation::Hold => " hold".to_owned(),
        Extrapolation::Linear => " linear".to_owned(),
        Extrapolation::Cycle { repeats } => times("cycle", repeats),
        Extrapolation::CycleOffset { repeats } => times("cycle-offset", repeats),
        Extrapolation::Mirror { repeats } => times("mirror", repeats),
    }
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
