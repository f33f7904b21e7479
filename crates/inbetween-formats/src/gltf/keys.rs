//! A track of the model as the keys of one glTF sampler: one interpolation for all spans, values
//! held outside the keys, rotations as quaternions.
//!
//! What glTF says in the same words is taken over key by key. Everything else (curves for single
//! axes, Euler angles, weighted tangents, mixed spans, repetition outside the keys) is looked at
//! as a function of time: kept exactly where its pieces are constant or straight, else fitted with
//! straight or cubic spans, whichever take fewer bytes, halved until they stay within a tolerance
//! at seven places inside each. A jump becomes two keys a hair (one f32) apart.

use inbetween::glam::DQuat;
use inbetween::math;
use inbetween::spline::Cubic;
use inbetween::{Axis, Clip, Curve, EulerBetween, Extrapolation, SpanKind, Track, TrackData, ValueKind};

/// A sampler's interpolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    Step,
    Linear,
    Cubic,
}

/// The keys of a sampler.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) shape: Shape,
    pub(super) kind: ValueKind,
    /// Seconds; become f32 in [`Keys::stored_times`].
    pub(super) times: Vec<f64>,
    /// A row a key; for cubic spans arriving tangent, value, leaving tangent of each key.
    pub(super) values: Vec<f64>,
    /// What had to be changed, if anything.
    pub(super) converted: Option<Converted>,
}

/// How keys differ from the track they stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Converted {
    /// In words.
    pub(super) why: String,
    /// Keys there were not before.
    pub(super) added: usize,
    /// The largest error that was measured, in the track's unit; 0 where none is possible.
    pub(super) off: f64,
}

impl Keys {
    /// Numbers a key.
    pub(super) fn row(&self) -> usize {
        self.kind.width() * if self.shape == Shape::Cubic { 3 } else { 1 }
    }

    /// Times as f32, strictly increasing: one that rounding brings onto the key before it moves
    /// up by the least there is.
    pub(super) fn stored_times(&self) -> Vec<f32> {
        let mut stored: Vec<f32> = Vec::with_capacity(self.times.len());
        for &time in &self.times {
            let time = time as f32;
            stored.push(match stored.last() {
                Some(&last) if time <= last => last.next_up(),
                _ => time,
            });
        }
        stored
    }

    /// Drops what lies beyond `end`, putting a key there if a span leads past it; exact for every
    /// shape. A curve that begins beyond it keeps its first key.
    pub(super) fn end_at(&mut self, end: f64) {
        // A key that rounding put behind the end is the end's.
        let slack = 1e-6_f64.max(1e-7 * end.abs());
        let keep = self.times.partition_point(|&t| t <= end + slack).max(1);
        if keep == self.times.len() {
            return;
        }
        let (w, row) = (self.kind.width(), self.row());
        let (t0, t1) = (self.times[keep - 1], self.times[keep]);
        let (a, b) = (&self.values[(keep - 1) * row..keep * row], &self.values[keep * row..(keep + 1) * row]);
        let (h, s) = (t1 - t0, end - t0);
        let mut last = Vec::new();
        if s > slack {
            match self.shape {
                Shape::Step => {}
                Shape::Linear if self.kind == ValueKind::Rotation => {
                    let q = math::slerp(DQuat::from_slice(a), DQuat::from_slice(b), s / h);
                    last.extend(q.to_array());
                }
                Shape::Linear => last.extend(a.iter().zip(b).map(|(a, b)| a + (b - a) * (s / h))),
                Shape::Cubic => {
                    // The slope at the cut is the arriving tangent; nothing leaves.
                    let span = |c: usize| Cubic::hermite(h, a[w + c], b[w + c], a[2 * w + c], b[c]);
                    last.extend((0..w).map(|c| span(c).velocity(s)));
                    last.extend((0..w).map(|c| span(c).value(s)));
                    last.extend(std::iter::repeat_n(0.0, w));
                }
            }
        }
        self.times.truncate(keep);
        self.values.truncate(keep * row);
        if !last.is_empty() {
            self.times.push(end);
            self.values.extend(last);
        }
        if self.shape == Shape::Cubic && self.times.len() == 1 {
            self.values = self.values[w..2 * w].to_vec();
            self.shape = Shape::Linear;
        }
    }

    /// Makes the last value last until `end`.
    pub(super) fn extend_to(&mut self, end: f64) {
        let width = self.kind.width();
        let row = self.row();
        let mut last = self.values[self.values.len() - row..].to_vec();
        if self.shape == Shape::Cubic {
            let start = self.values.len() - width;
            self.values[start..].fill(0.0);
            last[..width].fill(0.0);
            last[2 * width..].fill(0.0);
        }
        self.times.push(end);
        self.values.extend(last);
    }
}

/// The keys of a track whose clip covers `range`, as near as `fidelity` says where they have to be
/// converted.
pub(super) fn keys_of(track: &Track, range: (f64, f64), fidelity: Fidelity) -> Keys {
    if let TrackData::Curve(curve) = &track.data
        && let Some(keys) = same_words(curve, range)
    {
        return keys;
    }
    let kind = track.data.kind();
    let eval = |time: f64, out: &mut [f64]| track.data.eval(time, out);
    let (breaks, why) = track_breaks(&track.data, range);
    let classes = breaks.windows(2).map(|w| class(&track.data, w[0], w[1])).collect();
    let motion = Motion { kind, eval: &eval, breaks, classes, start: range.0 };
    let mut keys = motion.keys(fidelity);
    keys.converted = Some(Converted { why, ..keys.converted.unwrap_or_default() });
    keys
}

/// The keys as they are, if one glTF sampler says the same.
fn same_words(curve: &Curve, range: (f64, f64)) -> Option<Keys> {
    let parts = curve.parts();
    let n = curve.len();
    let held = |e: Extrapolation| e == Extrapolation::Hold;
    if !(held(parts.before) || range.0 >= curve.start()) || !(held(parts.after) || range.1 <= curve.end()) {
        return None;
    }
    let spans = n.saturating_sub(1);
    let first = curve.span(0);
    if (0..spans).any(|i| curve.span(i) != first) {
        return None;
    }
    let w = curve.width();
    let (shape, tangents) = match (first, &parts.tangents) {
        (SpanKind::Step, _) => (Shape::Step, None),
        (SpanKind::Linear, _) => (Shape::Linear, None),
        _ if n == 1 => (Shape::Linear, None),
        (SpanKind::Hermite, Some(t)) => (Shape::Cubic, Some((t.leave.clone(), t.arrive.clone()))),
        (SpanKind::Bezier, Some(t)) => {
            // Handles a third of the gap long are tangents in other words.
            let third = |i: usize| (curve.times()[i + 1] - curve.times()[i]) / 3.0;
            let near = |dt: f64, third: f64| (dt - third).abs() <= 1e-6 * third;
            let (mut leave, mut arrive) = (vec![0.0; n * w], vec![0.0; n * w]);
            for i in 0..spans {
                for c in 0..w {
                    let (a, b) = (i * w + c, (i + 1) * w + c);
                    if !near(t.leave_dt[a], third(i)) || !near(t.arrive_dt[b], third(i)) {
                        return None;
                    }
                    leave[a] = t.leave[a] / t.leave_dt[a];
                    // The arriving handle lies before its key: its offset in value is against time.
                    arrive[b] = -t.arrive[b] / t.arrive_dt[b];
                }
            }
            (Shape::Cubic, Some((leave, arrive)))
        }
        _ => return None,
    };
    let mut values = curve.values().to_vec();
    let mut times = curve.times().to_vec();
    let mut converted = None;
    if parts.kind == ValueKind::Rotation {
        let length = |q: &[f64]| DQuat::from_slice(q).length();
        match shape {
            // The specification asks for unit keys; a spline's belong to their tangents.
            Shape::Cubic if values.chunks_exact(4).any(|q| (length(q) - 1.0).abs() > 1e-4) => return None,
            Shape::Cubic => {}
            _ => {
                // Off by no more than f32 rounding: the file's own numbers stay.
                for q in values.chunks_exact_mut(4).filter(|q| (length(q) - 1.0).abs() > 1e-6) {
                    math::unit(DQuat::from_slice(q)).expect("checked by Curve").write_to_slice(q);
                }
            }
        }
        if shape == Shape::Linear {
            converted = split_half_turns(curve, &mut times, &mut values);
        }
    }
    if let Some((leave, arrive)) = tangents {
        let all = (0..n).flat_map(|i| {
            let row = |v: &[f64]| v[i * w..(i + 1) * w].to_vec();
            [row(&arrive), row(&values), row(&leave)].concat()
        });
        values = all.collect();
    }
    Some(Keys { shape, kind: parts.kind, times, values, converted })
}

/// Puts a key into every gap that is so near to half a turn that rounding to f32 could turn it the
/// other way.
fn split_half_turns(curve: &Curve, times: &mut Vec<f64>, values: &mut Vec<f64>) -> Option<Converted> {
    let q = |i: usize| DQuat::from_slice(&values[4 * i..4 * i + 4]);
    let wide: Vec<usize> = (1..times.len()).filter(|&i| q(i - 1).dot(q(i)).abs() < 1e-4).collect();
    for &i in wide.iter().rev() {
        let middle = 0.5 * (times[i - 1] + times[i]);
        times.insert(i, middle);
        values.splice(4 * i..4 * i, curve.rotation_at(middle).to_array());
    }
    let why = "half turns got a key in their middle, to keep their direction".to_owned();
    (!wide.is_empty()).then_some(Converted { why, added: wide.len(), off: 0.0 })
}

/// Most keys that repetition outside a curve may unfold to.
const MOST_REPEATED: usize = 1 << 20;

/// The times at which a track may change its ways, and why it is not written as it is.
pub(super) fn track_breaks(data: &TrackData, range: (f64, f64)) -> (Vec<f64>, String) {
    let curves = data.curves();
    let mut times = data.key_times();
    let mut why = match data {
        TrackData::Euler(_) => "Euler angles became quaternions".to_owned(),
        TrackData::Axes { .. } => "curves of single axes became one curve".to_owned(),
        TrackData::Curve(_) => "its spans became spans of one kind".to_owned(),
    };
    let (first, last) = (times.first().copied(), times.last().copied());
    let mut repeated = false;
    for curve in &curves {
        for (rule, before) in [(curve.parts().before, true), (curve.parts().after, false)] {
            let needed = if before { range.0 < curve.start() } else { range.1 > curve.end() };
            if rule != Extrapolation::Hold && needed {
                repeated = true;
                times.push(if before { range.0 } else { range.1 });
                unfold(curve, rule, before, range, &mut times);
            }
        }
    }
    if repeated {
        why += ", what lies outside its keys became keys";
    }
    if times.is_empty() {
        times.push(range.0);
    }
    times.sort_by(f64::total_cmp);
    // Where one pass ends and the next begins are one time, computed with different roundings.
    times.dedup_by(|b, a| *b - *a <= 2.0 * nudge(*a));
    let (low, high) = (first.unwrap_or(range.0).min(range.0), last.unwrap_or(range.1).max(range.1));
    times.retain(|&t| t >= low && t <= high);
    (times, why)
}

fn unfold(curve: &Curve, rule: Extrapolation, before: bool, range: (f64, f64), times: &mut Vec<f64>) {
    let (repeats, mirror) = match rule {
        Extrapolation::Hold | Extrapolation::Linear => return,
        Extrapolation::Cycle { repeats } | Extrapolation::CycleOffset { repeats } => (repeats, false),
        Extrapolation::Mirror { repeats } => (repeats, true),
    };
    let (start, end) = (curve.start(), curve.end());
    let length = end - start;
    if length <= 0.0 {
        return;
    }
    let passes = if before { (start - range.0) / length } else { (range.1 - end) / length };
    let passes = passes.ceil().min(repeats.map_or(f64::INFINITY, f64::from));
    let passes = passes.min((MOST_REPEATED / curve.len()) as f64) as u64;
    for pass in 1..=passes {
        let shift = pass as f64 * length;
        let backward = mirror && pass % 2 == 1;
        for &t in curve.times().iter() {
            let t = if backward { start + (end - t) } else { t };
            times.push(if before { t - shift } else { t + shift });
        }
    }
}

/// How a track runs between two neighbouring breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Constant,
    /// A straight line; for rotations a slerp.
    Straight,
    Smooth,
}

pub(super) fn class(data: &TrackData, a: f64, b: f64) -> Class {
    let middle = 0.5 * (a + b);
    match data {
        TrackData::Curve(curve) => curve_class(curve, middle),
        TrackData::Axes { axes, .. } => axes_class(axes.iter(), middle),
        TrackData::Euler(euler) => {
            let class = axes_class(euler.terms.iter().map(|(_, axis)| axis), middle);
            match (class, euler.between) {
                (Class::Constant, _) => Class::Constant,
                (_, EulerBetween::Slerp) => Class::Straight,
                (_, EulerBetween::Angles) => Class::Smooth,
            }
        }
    }
}

fn axes_class<'a>(axes: impl Iterator<Item = &'a Axis>, middle: f64) -> Class {
    axes.filter_map(Axis::curve).map(|c| curve_class(c, middle)).max().unwrap_or(Class::Constant)
}

fn curve_class(curve: &Curve, time: f64) -> Class {
    let of_span = |i: usize| match curve.span(i) {
        SpanKind::Step | SpanKind::StepNext => Class::Constant,
        SpanKind::Linear if curve.value(i) == curve.value(i + 1) => Class::Constant,
        SpanKind::Linear => Class::Straight,
        SpanKind::Hermite | SpanKind::Bezier => Class::Smooth,
    };
    let rule = if time < curve.start() {
        curve.parts().before
    } else if time > curve.end() {
        curve.parts().after
    } else if curve.len() == 1 {
        return Class::Constant;
    } else {
        let i = curve.times().partition_point(|&t| t <= time) - 1;
        return of_span(i.min(curve.len() - 2));
    };
    match rule {
        Extrapolation::Hold => Class::Constant,
        Extrapolation::Linear => Class::Straight,
        _ => (0..curve.len().saturating_sub(1)).map(of_span).max().unwrap_or(Class::Constant),
    }
}

/// A value through time that is to be keyed.
pub(super) struct Motion<'a> {
    pub(super) kind: ValueKind,
    /// Writes the value at a time; continuous from the right.
    pub(super) eval: &'a dyn Fn(f64, &mut [f64]),
    /// Increasing, at least one.
    pub(super) breaks: Vec<f64>,
    /// One fewer than the breaks.
    pub(super) classes: Vec<Class>,
    /// From when on the value matters, seconds.
    pub(super) start: f64,
}

/// Spans shorter than this are not halved again, seconds.
const SHORTEST: f64 = 1e-4;

/// Keys that fitting may add over a whole file, whatever its curves do.
const MOST_FITTED: usize = 1 << 20;

/// How near fitted keys come to a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fidelity {
    /// In the track's own unit, radians for rotations.
    pub(super) tolerance: f64,
    /// Keys that may be added to a track; beyond it the track is left as near as it came.
    room: usize,
}

impl Fidelity {
    /// `tolerance` for all tracks of a file, which share the room there is.
    pub(super) fn of(clips: &[Clip], tolerance: f64) -> Self {
        let tracks: usize = clips.iter().map(|c| c.tracks.len()).sum();
        Self { tolerance, room: (MOST_FITTED / tracks.max(1)).clamp(256, 1 << 14) }
    }
}

/// How far beside a time to look for what a curve runs towards there. Repetition computes where a
/// pass begins with a few roundings, so the next f64 may still lie in the pass before.
fn nudge(time: f64) -> f64 {
    1e-12 * time.abs().max(1.0)
}

/// Keys under construction.
struct Fit<'a> {
    motion: &'a Motion<'a>,
    cubic: bool,
    tolerance: f64,
    /// Keys at which fitting stops.
    most: usize,
    times: Vec<f64>,
    values: Vec<f64>,
    arrive: Vec<f64>,
    leave: Vec<f64>,
    /// The largest error that was let stand.
    worst: f64,
}

impl Motion<'_> {
    /// The keys, with steps or straight spans where these say it exactly.
    pub(super) fn keys(&self, fidelity: Fidelity) -> Keys {
        let most = self.classes.iter().copied().max().unwrap_or(Class::Constant);
        if most == Class::Constant && self.breaks.len() > 1 || self.kind == ValueKind::Switch {
            return self.steps();
        }
        let straight = self.fit(false, fidelity);
        let smooth = (most == Class::Smooth && self.breaks.len() > 1).then(|| self.fit(true, fidelity));
        let w = self.kind.width();
        let bytes = |f: &Fit<'_>| f.times.len() * (1 + w * if f.cubic { 3 } else { 1 });
        let fit = match smooth {
            Some(smooth) if bytes(&smooth) < bytes(&straight) => smooth,
            _ => straight,
        };
        let added = fit.times.len().saturating_sub(self.breaks.len());
        let converted = Some(Converted { why: String::new(), added, off: fit.worst });
        let n = fit.times.len();
        let values = if fit.cubic {
            let row = |v: &[f64], i: usize| v[i * w..(i + 1) * w].to_vec();
            let all = |i| [row(&fit.arrive, i), row(&fit.values, i), row(&fit.leave, i)].concat();
            (0..n).flat_map(all).collect()
        } else {
            fit.values
        };
        let shape = if fit.cubic { Shape::Cubic } else { Shape::Linear };
        Keys { shape, kind: self.kind, times: fit.times, values, converted }
    }

    fn at(&self, time: f64) -> Vec<f64> {
        let mut out = vec![0.0; self.kind.width()];
        (self.eval)(time, &mut out);
        out
    }

    fn steps(&self) -> Keys {
        let mut times: Vec<f64> = Vec::new();
        let mut values: Vec<f64> = Vec::new();
        let w = self.kind.width();
        // What is shown before the first key may not be what is shown at it.
        let first = self.breaks[0];
        if first > self.start && self.at(first - nudge(first)) != self.at(first + nudge(first)) {
            times.push(self.start.min(f64::from((first as f32).next_down())));
            values.extend(self.at(first - nudge(first)));
        }
        let last = self.breaks.len() - 1;
        for (i, &time) in self.breaks.iter().enumerate() {
            let at = self.at(time);
            // A key that changes nothing is left out, but not the first and the last.
            if i == last || values.len() < w || values[values.len() - w..] != at[..] {
                times.push(time);
                values.extend_from_slice(&at);
            }
            // Where the value changes just after the key ("constant next"), so does this.
            let after = self.at(time + nudge(time));
            if i < last && after != at {
                times.push(f64::from((time as f32).next_up()));
                values.extend(after);
            }
        }
        Keys { shape: Shape::Step, kind: self.kind, times, values, converted: None }
    }

    fn fit(&self, cubic: bool, fidelity: Fidelity) -> Fit<'_> {
        let mut fit = Fit {
            motion: self,
            cubic,
            tolerance: fidelity.tolerance,
            most: self.breaks.len() + fidelity.room,
            times: Vec::new(),
            values: Vec::new(),
            arrive: Vec::new(),
            leave: Vec::new(),
            worst: 0.0,
        };
        let w = self.kind.width();
        fit.push(self.breaks[0], &self.at(self.breaks[0]), &vec![0.0; w]);
        for (i, pair) in self.breaks.windows(2).enumerate() {
            let (a, b) = (pair[0], pair[1]);
            fit.jump_to(a, true);
            let va = fit.last_value().to_vec();
            let vb = fit.end_of(b, &va);
            fit.span(self.classes[i], a, &va, b, &vb);
        }
        fit.jump_to(self.breaks[self.breaks.len() - 1], false);
        fit
    }
}

impl Fit<'_> {
    fn push(&mut self, time: f64, value: &[f64], arrive: &[f64]) {
        self.times.push(time);
        self.values.extend_from_slice(value);
        self.arrive.extend_from_slice(arrive);
        self.leave.extend(std::iter::repeat_n(0.0, value.len()));
    }

    fn last_value(&self) -> &[f64] {
        &self.values[self.values.len() - self.motion.kind.width()..]
    }

    /// The value at `time`, a quaternion with the sign that is nearer to `like`.
    fn aligned(&self, time: f64, like: &[f64]) -> Vec<f64> {
        let mut value = self.motion.at(time);
        if self.motion.kind == ValueKind::Rotation
            && value.iter().zip(like).map(|(a, b)| a * b).sum::<f64>() < 0.0
        {
            for v in &mut value {
                *v = -*v;
            }
        }
        value
    }

    fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        if self.motion.kind == ValueKind::Rotation {
            return math::angle_between(DQuat::from_slice(a), DQuat::from_slice(b));
        }
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    /// The value towards which a span that ends at `time` runs, which may not be the value there.
    fn end_of(&self, time: f64, like: &[f64]) -> Vec<f64> {
        let (at, before) = (self.aligned(time, like), self.aligned(time - nudge(time), like));
        if self.jumps(&before, &at) { before } else { at }
    }

    /// True if two values a nudge apart are not one and the same.
    fn jumps(&self, a: &[f64], b: &[f64]) -> bool {
        let size = a.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        self.distance(a, b) > 1e-8 * size
    }

    /// At a break, where the last key holds what led up to it: more keys if the value jumps there,
    /// and if it jumps again just after.
    fn jump_to(&mut self, time: f64, more_follows: bool) {
        let before = self.last_value().to_vec();
        let at = self.aligned(time, &before);
        let zero = vec![0.0; at.len()];
        if self.jumps(&before, &at) {
            let hair = f64::from((time as f32).next_down());
            let n = self.times.len();
            if n >= 2 && self.times[n - 2] >= hair {
                // No room: the key before lies that close already.
                let start = self.values.len() - at.len();
                self.values[start..].copy_from_slice(&at);
            } else {
                self.times[n - 1] = hair;
                self.push(time, &at, &zero);
            }
        }
        if more_follows {
            let after = self.aligned(time + nudge(time), &at);
            if self.jumps(&at, &after) {
                self.push(f64::from((time as f32).next_up()), &after, &zero);
            }
        }
    }

    /// Adds the key at `b` and those in between; the key at `a` is the last one there is.
    fn span(&mut self, class: Class, a: f64, va: &[f64], b: f64, vb: &[f64]) {
        let w = va.len();
        let rotation = self.motion.kind == ValueKind::Rotation;
        let (mut leave, mut arrive) = (vec![0.0; w], vec![0.0; w]);
        let exact = match class {
            Class::Constant => true,
            Class::Straight if !self.cubic => true,
            Class::Straight if !rotation => {
                for c in 0..w {
                    leave[c] = (vb[c] - va[c]) / (b - a);
                }
                arrive.clone_from(&leave);
                true
            }
            _ => false,
        };
        if !exact {
            if self.cubic {
                leave = self.slope(a, va, b - a);
                arrive = self.slope(b, vb, a - b);
            }
            let off = self.error(a, va, &leave, b, vb, &arrive);
            let size = va.iter().chain(vb).fold(0.0f64, |m, v| m.max(v.abs()));
            // f32 holds values no closer than this.
            let allowed = self.tolerance.max(size * f64::from(f32::EPSILON));
            // f32 cannot tell times apart that are closer than its spacing there.
            let shortest = SHORTEST.max(4.0 * f64::from(f32::EPSILON) * a.abs().max(b.abs()));
            if off > allowed && b - a > shortest && self.times.len() < self.most {
                let middle = 0.5 * (a + b);
                let vm = self.aligned(middle, va);
                self.span(class, a, va, middle, &vm);
                let vb = self.end_of(b, &vm);
                self.span(class, middle, &vm, b, &vb);
                return;
            }
            self.worst = self.worst.max(off);
        }
        let start = self.leave.len() - w;
        self.leave[start..].copy_from_slice(&leave);
        self.push(b, vb, &arrive);
    }

    /// The slope at `time` from inside a span of length `into` (its sign says which way it lies).
    fn slope(&self, time: f64, value: &[f64], into: f64) -> Vec<f64> {
        let h = into * 1e-3;
        // Five points on one side, fourth order: (−25 f0 + 48 f1 − 36 f2 + 16 f3 − 3 f4) / 12h.
        let mut slope: Vec<f64> = value.iter().map(|v| -25.0 * v).collect();
        for (i, k) in [48.0, -36.0, 16.0, -3.0].into_iter().enumerate() {
            let at = self.aligned(time + (i + 1) as f64 * h, value);
            for (s, v) in slope.iter_mut().zip(&at) {
                *s += k * v;
            }
        }
        slope.iter().map(|s| s / (12.0 * h)).collect()
    }

    /// The largest distance between the motion and the span at seven places inside it.
    fn error(&self, a: f64, va: &[f64], leave: &[f64], b: f64, vb: &[f64], arrive: &[f64]) -> f64 {
        let h = b - a;
        let rotation = self.motion.kind == ValueKind::Rotation;
        [0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9].into_iter().fold(0.0f64, |worst, u| {
            let time = a + u * h;
            let spanned: Vec<f64> = if self.cubic {
                let value = |c: usize| Cubic::hermite(h, va[c], vb[c], leave[c], arrive[c]).value(u * h);
                let raw: Vec<f64> = (0..va.len()).map(value).collect();
                match rotation.then(|| math::unit(DQuat::from_slice(&raw))) {
                    Some(Some(q)) => q.to_array().to_vec(),
                    Some(None) => return f64::INFINITY,
                    None => raw,
                }
            } else if rotation {
                math::slerp(DQuat::from_slice(va), DQuat::from_slice(vb), u).to_array().to_vec()
            } else {
                va.iter().zip(vb).map(|(a, b)| a + u * (b - a)).collect()
            };
            worst.max(self.distance(&spanned, &self.motion.at(time)))
        })
    }
}
