//! Reads the text format, line by line. An error names the line and the column.

use std::sync::Arc;

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::unit;
use inbetween::{
    Axis, AxisName, Binding, Clip, Curve, CurveParts, EulerBetween, EulerCurve, Extrapolation, FrameRate,
    Joint, Marker, Pivot, Property, Skeleton, SpanKind, Spans, Tangents, Track, TrackData, Transform,
    ValueKind, Wrap,
};

use super::words::{Line, Word, split_line};
use super::{
    INHERIT, MAGIC, NODE_KINDS, Names, PIVOTS, SPANS, VERSION, WRAPS, by_name, component_index,
    component_name, default_kind, default_rest, default_span, kind_from_name,
};
use crate::convention::AxisMap;
use crate::{Convention, FormatError, Import, Input, Note, ReadOptions, Severity, Source};

/// Reads a whole file.
pub(super) fn read(input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
    let text = std::str::from_utf8(input.bytes).map_err(|e| FormatError::Broken {
        file: input.name.to_owned(),
        place: format!("byte {}", e.valid_up_to()),
        expected: "UTF-8 text".to_owned(),
        found: "bytes that are none".to_owned(),
        advice: "save the file as UTF-8".to_owned(),
    })?;
    let mut reader = Reader {
        file: input.name,
        max_keys: options.max_keys,
        keys: 0,
        seen_header: false,
        seen: Vec::new(),
        house: false,
        convention: Convention::HOUSE,
        joints: Vec::new(),
        clips: Vec::new(),
        clip: None,
        track: None,
        last_times: None,
        notes: Vec::new(),
    };
    for (i, text) in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').enumerate() {
        reader.line(i + 1, text)?;
    }
    reader.finish()
}

/// Which node a line means: by name, by `@index`, or none.
#[derive(Clone, Debug)]
enum NodeRef {
    Name(String),
    Index(usize),
    None,
}

impl NodeRef {
    fn of(word: Word) -> Self {
        let index = word.text.strip_prefix('@').filter(|_| !word.quoted).and_then(|n| n.parse().ok());
        index.map_or(Self::Name(word.text), Self::Index)
    }
}

struct PendingJoint {
    joint: Joint,
    parent: Option<(NodeRef, Place)>,
}

/// A line and column kept for an error that only shows at the end.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: usize,
    column: usize,
}

struct PendingClip {
    clip: Clip,
    has_range: bool,
    tracks: Vec<PendingTrack>,
}

/// A track whose node is looked up once all nodes are known.
struct PendingTrack {
    track: Track,
    node: NodeRef,
    /// True if a line says which node, which then must be there.
    explicit: bool,
    /// True if a line says what the rest value is.
    has_rest: bool,
    place: Place,
}

/// How the values of a track are laid out.
enum Shape {
    Curve(ValueKind),
    Axes(ValueKind),
    Euler,
}

struct OpenTrack {
    place: Place,
    target: String,
    property: Property,
    shape: Shape,
    node: Option<NodeRef>,
    path: Option<String>,
    muted: bool,
    rest: Option<Vec<f64>>,
    /// Keys of the whole value, or of a table of components.
    keys: Keys,
    /// Axes of the turns of an Euler table.
    columns: Vec<AxisName>,
    /// Components with keys of their own: which, and the constant or keys.
    parts: Vec<(Component, Part)>,
    between: EulerBetween,
    pre: DQuat,
    post: DQuat,
}

#[derive(Clone, Copy, PartialEq)]
enum Component {
    Axis(usize),
    Turn(AxisName),
}

enum Part {
    Constant(f64),
    Keys(Box<Keys>),
}

/// The keys of one curve, or of several side by side.
struct Keys {
    place: Place,
    width: usize,
    kind: ValueKind,
    times: Vec<f64>,
    values: Vec<f64>,
    /// Kinds named on key lines, one a key once the first has been named.
    kinds: Vec<Option<SpanKind>>,
    usual: Option<SpanKind>,
    tangents: Option<Tangents>,
    before: Extrapolation,
    after: Extrapolation,
}

impl Keys {
    fn new(kind: ValueKind, width: usize, place: Place) -> Self {
        Self {
            place,
            width,
            kind,
            times: Vec::new(),
            values: Vec::new(),
            kinds: Vec::new(),
            usual: None,
            tangents: None,
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        }
    }

    fn untouched(&self) -> bool {
        self.times.is_empty()
            && self.usual.is_none()
            && (self.before, self.after) == (Extrapolation::Hold, Extrapolation::Hold)
    }
}

struct Reader<'a> {
    file: &'a str,
    max_keys: u64,
    keys: u64,
    seen_header: bool,
    /// Keywords already given in the section that is open.
    seen: Vec<String>,
    house: bool,
    convention: Convention,
    joints: Vec<PendingJoint>,
    clips: Vec<PendingClip>,
    clip: Option<PendingClip>,
    track: Option<OpenTrack>,
    /// Times of the curve before, to share where the next has the same.
    last_times: Option<Arc<[f64]>>,
    notes: Vec<Note>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, text: &str) -> Result<(), FormatError> {
        if self.plain_key(text) {
            return self.count_key(number);
        }
        let mut line = split_line(self.file, number, text)?;
        let Some(first) = line.peek().cloned() else { return Ok(()) };
        if !self.seen_header {
            return self.header(&mut line);
        }
        let place = Place { line: number, column: first.column };
        if first.quoted {
            return Err(line.broken("a keyword or the time of a key", "names come after a keyword"));
        }
        if first.text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            self.key(&mut line)?;
            line.done()?;
            return self.count_key(number);
        }
        line.skip();
        let keyword = first.text.as_str();
        if let Some(kind) = by_name(&NODE_KINDS, keyword) {
            self.close_clip()?;
            self.seen.clear();
            let mut joint = Joint::new(line.word("the name of the node")?.text, None, Transform::IDENTITY);
            joint.kind = kind;
            let mut parent = None;
            if line.take("in") {
                let column = line.peek().map_or(1, |w| w.column);
                let word = line.word("the parent's name or @index")?;
                parent = Some((NodeRef::of(word), Place { line: number, column }));
            }
            self.joints.push(PendingJoint { joint, parent });
        } else if keyword == "clip" {
            self.close_clip()?;
            self.seen.clear();
            let name = line.word("the name of the clip, in quotes if it is empty")?.text;
            let clip = Clip::new(name, 0.0, 0.0).expect("zero is a range");
            self.clip = Some(PendingClip { clip, has_range: false, tracks: Vec::new() });
        } else if keyword == "track" && self.clip.is_some() {
            self.close_track()?;
            self.seen.clear();
            self.open_track(&mut line, place)?;
        } else if self.track.is_some() {
            self.track_line(keyword, &mut line, place)?;
        } else if self.clip.is_some() {
            self.clip_line(keyword, &mut line, place)?;
        } else if !self.joints.is_empty() {
            self.joint_line(keyword, &mut line, place)?;
        } else {
            self.file_line(keyword, &mut line, place)?;
        }
        line.done()
    }

    /// Reads a line that is nothing but numbers, as most lines of a long file are, without taking
    /// it apart into words first. False where the careful way is needed.
    fn plain_key(&mut self, text: &str) -> bool {
        let Some(keys) = self.track.as_mut().and_then(OpenTrack::open_keys) else { return false };
        if keys.kind == ValueKind::Switch || keys.kind == ValueKind::Rotation || keys.width == 0 {
            return false;
        }
        let mut words = text.split_ascii_whitespace();
        let mut number = || words.next()?.parse::<f64>().ok().filter(|v| v.is_finite());
        let Some(time) = number() else { return false };
        if keys.times.last().is_some_and(|&last| time <= last) {
            return false;
        }
        let before = keys.values.len();
        for _ in 0..keys.width {
            let Some(v) = number() else {
                keys.values.truncate(before);
                return false;
            };
            keys.values.push(v);
        }
        if words.next().is_some() {
            keys.values.truncate(before);
            return false;
        }
        keys.times.push(time);
        keys.fill_rows();
        true
    }

    fn count_key(&mut self, line: usize) -> Result<(), FormatError> {
        self.keys += 1;
        if self.keys > self.max_keys {
            return Err(FormatError::Limit {
                file: self.file.to_owned(),
                place: format!("line {line}"),
                what: "keys".to_owned(),
                found: self.keys,
                limit: self.max_keys,
                advice: "raise the limit, or cut the clips into parts".to_owned(),
            });
        }
        Ok(())
    }

    fn header(&mut self, line: &mut Line<'_>) -> Result<(), FormatError> {
        if !line.take(MAGIC) {
            let advice = "the first line of a clip text says what it is";
            return Err(line.broken(&format!("{MAGIC} {VERSION}"), advice));
        }
        let version = line.number("the version of the format")?;
        if version != f64::from(VERSION) {
            let advice = "read it with the program that wrote it, or a newer one";
            let found = format!("version {version}");
            return Err(line.broken_at(MAGIC.len() + 2, &format!("version {VERSION}"), &found, advice));
        }
        self.seen_header = true;
        line.done()
    }

    /// Refuses a keyword that its section may hold only once.
    fn once(&mut self, keyword: &str, line: &Line<'_>, place: Place) -> Result<(), FormatError> {
        if self.seen.iter().any(|k| k == keyword) {
            let found = format!("a second {keyword:?}");
            return Err(line.broken_at(place.column, "each setting once", &found, "remove one of the two"));
        }
        self.seen.push(keyword.to_owned());
        Ok(())
    }

    fn unknown(&self, line: &Line<'_>, place: Place, keyword: &str, known: &str) -> FormatError {
        line.broken_at(place.column, known, &format!("{keyword:?}"), "see the description of the text format")
    }

    fn file_line(&mut self, keyword: &str, line: &mut Line<'_>, place: Place) -> Result<(), FormatError> {
        self.once(keyword, line, place)?;
        let source = keyword.starts_with("source-");
        let other = |k: &String| k.starts_with("source-") != source;
        if self.seen.iter().any(other) {
            let advice = "unit and axes say in what the numbers here are; with source- before them, that they \
                          are in metres and +Y up and what the file they came from had; use one of the two";
            return Err(line.broken_at(place.column, "one sort of unit and axes", keyword, advice));
        }
        match keyword {
            "unit" | "source-unit" => {
                let unit = line.number("metres in one unit")?;
                if unit <= 0.0 {
                    let advice = "write the metres in one unit, 0.01 for centimetres";
                    let found = unit.to_string();
                    return Err(line.broken_at(place.column, "a unit above zero", &found, advice));
                }
                self.convention.metres_per_unit = unit;
            }
            "axes" | "source-axes" => self.convention.axes = axes(line)?,
            _ => {
                let known = "unit, axes, source-unit, source-axes, a node or a clip";
                return Err(self.unknown(line, place, keyword, known));
            }
        }
        self.house = source;
        Ok(())
    }

    fn joint_line(&mut self, keyword: &str, line: &mut Line<'_>, place: Place) -> Result<(), FormatError> {
        if !matches!(keyword, "tip" | "pivot") {
            self.once(keyword, line, place)?;
        }
        let joint = &mut self.joints.last_mut().expect("a node is open").joint;
        match keyword {
            "translation" => joint.rest.translation = vector(line, keyword)?,
            "scale" => joint.rest.scale = vector(line, keyword)?,
            "rotation" => joint.rest.rotation = rotation(line, place, &mut self.notes)?,
            "tip" => joint.tips.push(vector(line, keyword)?),
            "reach" => {
                let reach = line.number("metres")?;
                if reach < 0.0 {
                    let found = reach.to_string();
                    return Err(line.broken_at(
                        place.column,
                        "a reach of zero or more",
                        &found,
                        "correct it",
                    ));
                }
                joint.reach = Some(reach);
            }
            "inherit" => {
                let word = line.peek_keyword().and_then(|w| by_name(&INHERIT, w));
                joint.inherit =
                    word.ok_or_else(|| line.broken("full, ignore or componentwise", "name one of them"))?;
                line.skip();
            }
            "pivot" => {
                let found = line.peek_keyword().and_then(|w| PIVOTS.iter().position(|p| *p == w));
                let which = found.ok_or_else(|| line.broken(&PIVOTS.join(", "), "name one of them"))?;
                line.skip();
                let v = vector(line, PIVOTS[which])?;
                let zero = DVec3::ZERO;
                let pivot = joint.pivot.get_or_insert(Box::new(Pivot {
                    rotation_offset: zero,
                    rotation_pivot: zero,
                    scaling_offset: zero,
                    scaling_pivot: zero,
                }));
                *[
                    &mut pivot.rotation_offset,
                    &mut pivot.rotation_pivot,
                    &mut pivot.scaling_offset,
                    &mut pivot.scaling_pivot,
                ][which] = v;
            }
            _ => {
                let known =
                    "translation, rotation, scale, pivot, inherit, tip, reach, another node or a clip";
                return Err(self.unknown(line, place, keyword, known));
            }
        }
        Ok(())
    }

    fn clip_line(&mut self, keyword: &str, line: &mut Line<'_>, place: Place) -> Result<(), FormatError> {
        if keyword != "mark" {
            self.once(keyword, line, place)?;
        }
        let open = self.clip.as_mut().expect("a clip is open");
        let clip = &mut open.clip;
        match keyword {
            "range" => {
                let (start, end) = (time(line, clip.rate, "the start")?, time(line, clip.rate, "the end")?);
                open.has_range = true;
                clip.set_range(start, end).map_err(|e| {
                    line.broken_at(
                        place.column,
                        "a start and an end not before it",
                        &e.to_string(),
                        "correct them",
                    )
                })?;
            }
            "rate" => {
                let word = line.word("frames a second, such as 24 or 30000/1001")?;
                let rate = FrameRate::parse(&word.text);
                clip.rate = Some(rate.map_err(|e| {
                    let expected = "frames a second, such as 24 or 30000/1001";
                    line.broken_at(word.column, expected, &format!("{:?}", word.text), &e.to_string())
                })?);
            }
            "wrap" => {
                let word = line.peek_keyword().and_then(|w| by_name(&WRAPS, w));
                let wrap: Option<Wrap> = word;
                clip.wrap = wrap
                    .ok_or_else(|| line.broken("hold, loop, ping-pong or loop-offset", "name one of them"))?;
                line.skip();
            }
            "additive" => clip.additive = true,
            "mark" => {
                let time = time(line, clip.rate, "the time of the mark")?;
                let name = line.word("the name of the mark")?.text;
                clip.markers.push(Marker { time, name });
            }
            _ => {
                let known = "range, rate, wrap, additive, mark, track, another clip or a node";
                return Err(self.unknown(line, place, keyword, known));
            }
        }
        Ok(())
    }

    fn open_track(&mut self, line: &mut Line<'_>, place: Place) -> Result<(), FormatError> {
        let target = line.word("what the track drives: a node or another target")?.text;
        let property = Property::from_name(&line.word("the property it drives")?.text);
        let mut columns = Vec::new();
        let mut kind = default_kind(&property);
        let mut shape: fn(ValueKind) -> Shape = Shape::Curve;
        let mut euler = false;
        if line.take("as") {
            euler = line.take("euler");
            if euler {
                if let Some(word) = line.peek_keyword() {
                    let letters: Option<Vec<AxisName>> = word.chars().map(axis_letter).collect();
                    let expected = "the axes of the turns in the order of their product, such as xyz or zxy";
                    columns = letters.ok_or_else(|| line.broken(expected, "use the letters x, y and z"))?;
                    line.skip();
                }
            } else {
                if line.take("axes") {
                    shape = Shape::Axes;
                }
                if line.peek().is_some() {
                    let found = line.peek_keyword().and_then(kind_from_name);
                    let expected = "switch, scalar, rotation, vectorN, colorN, weightsN, axes or euler";
                    kind = Some(found.ok_or_else(|| line.broken(expected, "name the kind of value"))?);
                    line.skip();
                }
            }
        }
        let (shape, key_kind, width) = if euler {
            (Shape::Euler, ValueKind::Scalar, columns.len())
        } else {
            let kind = kind.ok_or_else(|| {
                line.broken("as weightsN, with the number of morph targets", "for example: as weights2")
            })?;
            match shape(kind) {
                Shape::Curve(kind) => (Shape::Curve(kind), kind, kind.width()),
                other => (other, ValueKind::Scalar, kind.width()),
            }
        };
        self.track = Some(OpenTrack {
            place,
            target,
            property,
            shape,
            node: None,
            path: None,
            muted: false,
            rest: None,
            keys: Keys::new(key_kind, width, place),
            columns,
            parts: Vec::new(),
            between: EulerBetween::Angles,
            pre: DQuat::IDENTITY,
            post: DQuat::IDENTITY,
        });
        Ok(())
    }

    fn track_line(&mut self, keyword: &str, line: &mut Line<'_>, place: Place) -> Result<(), FormatError> {
        if keyword == "axis" || keyword == "turn" {
            // A component's own settings may repeat the words of the one before.
            self.seen.clear();
        } else {
            let what = if by_name(&SPANS, keyword).is_some() { "a kind of span" } else { keyword };
            self.once(what, line, place)?;
        }
        let track = self.track.as_mut().expect("a track is open");
        match keyword {
            "drives" => {
                let word = line.word("@index of the node, its name, or none")?;
                track.node =
                    Some(if word.text == "none" && !word.quoted { NodeRef::None } else { NodeRef::of(word) });
            }
            "path" => track.path = Some(line.word("the address in the file it came from")?.text),
            "muted" => track.muted = true,
            "rest" => {
                let mut rest = Vec::new();
                while line.peek().is_some() {
                    rest.push(line.switch_or_number("a rest value")?);
                }
                track.rest = Some(rest);
            }
            "between" if matches!(track.shape, Shape::Euler) => {
                track.between = if line.take("slerp") {
                    EulerBetween::Slerp
                } else if line.take("angles") {
                    EulerBetween::Angles
                } else {
                    return Err(line.broken("slerp or angles", "say how the rotation is read between keys"));
                };
            }
            "pre" if matches!(track.shape, Shape::Euler) => {
                track.pre = rotation(line, place, &mut self.notes)?
            }
            "post" if matches!(track.shape, Shape::Euler) => {
                track.post = rotation(line, place, &mut self.notes)?;
            }
            "axis" if matches!(track.shape, Shape::Axes(_)) => {
                let found = line.peek_keyword().and_then(component_index);
                let width = track.keys.width;
                let expected =
                    format!("one of the track's {width} components: x y z w, r g b a or its number");
                let axis = found.filter(|i| *i < width).ok_or_else(|| line.broken(&expected, "name one"))?;
                if track.parts.iter().any(|(c, _)| *c == Component::Axis(axis)) {
                    return Err(line.broken("each component once", "remove one of the two"));
                }
                line.skip();
                track.open_part(Component::Axis(axis), line, place)?;
            }
            "turn" if matches!(track.shape, Shape::Euler) => {
                let mut letters = line.peek_keyword().unwrap_or("").chars();
                let found = letters.next().and_then(axis_letter).filter(|_| letters.next().is_none());
                let axis = found.ok_or_else(|| line.broken("x, y or z", "name the axis of the turn"))?;
                line.skip();
                track.open_part(Component::Turn(axis), line, place)?;
            }
            "before" | "after" => {
                let rule = extrapolation(line)?;
                let keys = track.open_keys().ok_or_else(|| constant_has_no_keys(line, place))?;
                *(if keyword == "before" { &mut keys.before } else { &mut keys.after }) = rule;
            }
            _ => {
                let Some(span) = by_name(&SPANS, keyword) else {
                    let known = "a key that begins with its time, a kind of span (step, step-next, linear, \
                                 hermite, bezier), before, after, rest, drives, path, muted, axis, turn, pre, post, \
                                 between, another track, a clip or a node";
                    return Err(self.unknown(line, place, keyword, known));
                };
                let keys = track.open_keys().ok_or_else(|| constant_has_no_keys(line, place))?;
                if !keys.times.is_empty() {
                    let advice = "move it above the first key";
                    return Err(line.broken_at(
                        place.column,
                        "the kind of span before the keys",
                        keyword,
                        advice,
                    ));
                }
                keys.usual = Some(span);
            }
        }
        Ok(())
    }

    /// One key: its time, its values, then its own kind of span and tangents if it has any.
    fn key(&mut self, line: &mut Line<'_>) -> Result<(), FormatError> {
        let rate = self.clip.as_ref().and_then(|c| c.clip.rate);
        let column = line.peek().map_or(1, |w| w.column);
        let Some(keys) = self.track.as_mut().and_then(OpenTrack::open_keys) else {
            return Err(line.broken("a keyword", "keys stand in a track, below its settings"));
        };
        let time = time(line, rate, "the time of the key")?;
        if let Some(&last) = keys.times.last()
            && time <= last
        {
            let found = format!("{time} s after {last} s");
            let advice = "sort the keys by time and remove one of each equal pair";
            return Err(line.broken_at(column, "strictly increasing times", &found, advice));
        }
        let first = keys.values.len();
        for i in 0..keys.width {
            let value = if keys.kind == ValueKind::Switch {
                line.switch("on or off")?
            } else {
                line.number(&format!("the value of the key ({} of {})", i + 1, keys.width))?
            };
            keys.values.push(value);
        }
        if keys.kind == ValueKind::Rotation && unit(DQuat::from_slice(&keys.values[first..])).is_none() {
            let advice = "write x y z w, which is 0 0 0 1 for no turn";
            return Err(line.broken_at(column, "a quaternion", "one that is zero", advice));
        }
        keys.times.push(time);
        if let Some(span) = line.peek_keyword().and_then(|w| by_name(&SPANS, w)) {
            line.skip();
            keys.kinds.resize(keys.times.len() - 1, None);
            keys.kinds.push(Some(span));
        }
        keys.fill_rows();
        for side in ["in", "out"] {
            if line.take(side) {
                keys.tangent(line, side)?;
            }
        }
        Ok(())
    }

    fn close_track(&mut self) -> Result<(), FormatError> {
        let Some(mut track) = self.track.take() else { return Ok(()) };
        let data = self.track_data(&mut track)?;
        let width = data.kind().width();
        if let Some(rest) = &track.rest
            && rest.len() != width
        {
            let found = format!("{}", rest.len());
            return Err(self.broken(
                track.place,
                &format!("{width} rest values"),
                &found,
                "correct the rest line",
            ));
        }
        let explicit = track.node.is_some();
        let node = track.node.unwrap_or_else(|| NodeRef::Name(track.target.clone()));
        let binding =
            Binding { target: track.target, node: None, property: track.property, path: track.path };
        let has_rest = track.rest.is_some();
        let mut finished = Track::new(binding, data, track.rest.unwrap_or_default());
        finished.enabled = !track.muted;
        let clip = self.clip.as_mut().expect("a track stands in a clip");
        clip.tracks.push(PendingTrack { track: finished, node, explicit, has_rest, place: track.place });
        Ok(())
    }

    fn track_data(&mut self, track: &mut OpenTrack) -> Result<TrackData, FormatError> {
        let place = track.place;
        let table = track.parts.is_empty();
        if !table && !track.keys.untouched() {
            let expected = "either a table of keys or components with keys of their own";
            return Err(self.broken(place, expected, "both", "write the table as axis or turn blocks"));
        }
        let width = track.keys.width;
        let kind = track.keys.kind;
        let mut whole = std::mem::replace(&mut track.keys, Keys::new(kind, width, place));
        match track.shape {
            Shape::Curve(_) => {
                let mut curves = self.curves(&mut whole, 1)?;
                Ok(TrackData::Curve(curves.swap_remove(0)))
            }
            Shape::Axes(kind) => {
                let axes = if table {
                    self.curves(&mut whole, width)?.into_iter().map(Axis::Curve).collect()
                } else {
                    let mut parts = self.parts(track)?;
                    let which = |c: &Component| if let Component::Axis(i) = c { *i } else { 0 };
                    parts.sort_by_key(|(c, _)| which(c));
                    if parts.len() != width {
                        let missing = (0..width).find(|i| parts.get(*i).is_none_or(|(c, _)| which(c) != *i));
                        let name = component_name(kind, missing.unwrap_or(0));
                        let advice = "give every component keys or a constant";
                        return Err(self.broken(place, &format!("axis {name}"), "none", advice));
                    }
                    parts.into_iter().map(|(_, axis)| axis).collect()
                };
                Ok(TrackData::Axes { kind, axes })
            }
            Shape::Euler => {
                let terms: Vec<(AxisName, Axis)> = if !track.columns.is_empty() {
                    if !table {
                        let advice = "leave the letters after euler out where turns have keys of their own";
                        return Err(self.broken(place, "a table of keys", "turns", advice));
                    }
                    let curves = self.curves(&mut whole, width)?;
                    track.columns.iter().copied().zip(curves.into_iter().map(Axis::Curve)).collect()
                } else {
                    let turn = |c: Component| if let Component::Turn(a) = c { a } else { AxisName::X };
                    self.parts(track)?.into_iter().map(|(c, axis)| (turn(c), axis)).collect()
                };
                if track.between == EulerBetween::Slerp {
                    let mut times = terms.iter().filter_map(|(_, a)| a.curve()).map(Curve::times);
                    if let Some(first) = times.next()
                        && times.any(|t| t != first)
                    {
                        let expected = "the same key times for all turns, since slerp goes from pose to pose";
                        return Err(self.broken(
                            place,
                            expected,
                            "different ones",
                            "or write: between angles",
                        ));
                    }
                }
                Ok(TrackData::Euler(EulerCurve {
                    terms,
                    pre: track.pre,
                    post: track.post,
                    between: track.between,
                }))
            }
        }
    }

    fn parts(&mut self, track: &mut OpenTrack) -> Result<Vec<(Component, Axis)>, FormatError> {
        let mut out = Vec::new();
        for (component, part) in std::mem::take(&mut track.parts) {
            out.push((
                component,
                match part {
                    Part::Constant(v) => Axis::Constant(v),
                    Part::Keys(mut keys) => Axis::Curve(self.curves(&mut keys, 1)?.swap_remove(0)),
                },
            ));
        }
        Ok(out)
    }

    /// The curve, or the `columns` curves of a table one number wide each.
    fn curves(&mut self, keys: &mut Keys, columns: usize) -> Result<Vec<Curve>, FormatError> {
        let place = keys.place;
        if keys.times.is_empty() {
            let advice = "add a line with a time and a value, or remove the track";
            return Err(self.broken(place, "at least one key", "none", advice));
        }
        let times = std::mem::take(&mut keys.times);
        let times = match &self.last_times {
            Some(last) if same_bits(last, &times) => last.clone(),
            _ => Arc::from(times),
        };
        self.last_times = Some(times.clone());
        let usual = keys.usual.unwrap_or(default_span(keys.kind));
        let spans = if keys.kinds.is_empty() {
            Spans::Uniform(usual)
        } else {
            keys.kinds.resize(times.len(), None);
            Spans::PerKey(keys.kinds.iter().map(|k| k.unwrap_or(usual)).collect())
        };
        let split = |rows: &[f64], c: usize| -> Vec<f64> {
            if columns <= 1 { rows.to_vec() } else { rows.iter().skip(c).step_by(columns).copied().collect() }
        };
        let mut out = Vec::with_capacity(columns);
        for c in 0..columns {
            let tangents = keys.tangents.as_ref().map(|t| {
                Box::new(Tangents {
                    leave: split(&t.leave, c),
                    arrive: split(&t.arrive, c),
                    leave_dt: split(&t.leave_dt, c),
                    arrive_dt: split(&t.arrive_dt, c),
                })
            });
            let values = if columns <= 1 { std::mem::take(&mut keys.values) } else { split(&keys.values, c) };
            let curve = Curve::new(CurveParts {
                kind: keys.kind,
                times: times.clone(),
                values,
                spans: spans.clone(),
                tangents,
                before: keys.before,
                after: keys.after,
            });
            out.push(curve.map_err(|e| {
                self.broken(
                    place,
                    "a curve that can be read",
                    &e.to_string(),
                    "correct the keys below this line",
                )
            })?);
        }
        Ok(out)
    }

    fn broken(&self, place: Place, expected: &str, found: &str, advice: &str) -> FormatError {
        FormatError::Broken {
            file: self.file.to_owned(),
            place: format!("line {}, column {}", place.line, place.column),
            expected: expected.to_owned(),
            found: found.to_owned(),
            advice: advice.to_owned(),
        }
    }

    fn close_clip(&mut self) -> Result<(), FormatError> {
        self.close_track()?;
        self.clips.extend(self.clip.take());
        Ok(())
    }

    fn finish(mut self) -> Result<Import, FormatError> {
        self.close_clip()?;
        if !self.seen_header {
            let found = "the end of the file";
            let advice = "the first line of a clip text says what it is";
            let place = Place { line: 1, column: 1 };
            return Err(self.broken(place, &format!("{MAGIC} {VERSION}"), found, advice));
        }
        let pending = std::mem::take(&mut self.joints);
        let (mut joints, parents): (Vec<Joint>, Vec<_>) =
            pending.into_iter().map(|p| (p.joint, p.parent)).unzip();
        let resolved: Result<Vec<Option<usize>>, FormatError> = {
            let names = Names::of(&joints);
            let one = |p: &Option<(NodeRef, Place)>| match p {
                Some((node, place)) => self.resolve(node, true, *place, &names, joints.len()),
                None => Ok(None),
            };
            parents.iter().map(one).collect()
        };
        for (joint, parent) in joints.iter_mut().zip(resolved?) {
            joint.parent = parent;
        }
        let skeleton = Skeleton::new(joints).map_err(|e| FormatError::Broken {
            file: self.file.to_owned(),
            place: "the nodes".to_owned(),
            expected: "a tree".to_owned(),
            found: e.to_string(),
            advice: "correct the parents after the word in".to_owned(),
        })?;
        let mut clips = Vec::new();
        for pending in std::mem::take(&mut self.clips) {
            clips.push(self.finish_clip(pending, &skeleton)?);
        }
        Ok(Import {
            format: "inb",
            skeleton,
            clips,
            notes: self.notes,
            convention: self.convention,
            in_house_units: self.house,
            source: Source::None,
            decimals: None,
        })
    }

    fn finish_clip(&mut self, pending: PendingClip, skeleton: &Skeleton) -> Result<Clip, FormatError> {
        let names = Names::of(skeleton.joints());
        let mut clip = pending.clip;
        for pending in pending.tracks {
            let mut track = pending.track;
            let node =
                self.resolve(&pending.node, pending.explicit, pending.place, &names, skeleton.len())?;
            track.binding.node = node;
            if !pending.has_rest {
                track.rest = default_rest(&track.binding.property, track.data.kind(), node, skeleton);
            }
            clip.tracks.push(track);
        }
        if !pending.has_range {
            let times = || clip.tracks.iter().flat_map(|t| t.data.curves());
            let start = times().map(Curve::start).reduce(f64::min).unwrap_or(0.0);
            let end = times().map(Curve::end).reduce(f64::max).unwrap_or(0.0);
            clip.set_range(start, end).expect("key times are finite");
        }
        Ok(clip)
    }

    /// The node that is meant. A target that names no node is something else, unless it was to be
    /// one (`must`).
    fn resolve(
        &self,
        node: &NodeRef,
        must: bool,
        place: Place,
        names: &Names<'_>,
        count: usize,
    ) -> Result<Option<usize>, FormatError> {
        match node {
            NodeRef::None => Ok(None),
            NodeRef::Index(i) if *i < count => Ok(Some(*i)),
            NodeRef::Index(i) => {
                let advice = "nodes are counted from @0 in the order of this file";
                Err(self.broken(place, &format!("a node below @{count}"), &format!("@{i}"), advice))
            }
            NodeRef::Name(name) => match (names.unique(name), names.count(name)) {
                (Some(i), _) => Ok(Some(i)),
                (None, 0) if !must => Ok(None),
                (None, 0) => Err(self.broken(
                    place,
                    "the name of a node of this file",
                    &format!("{name:?}"),
                    "correct it",
                )),
                (None, n) => Err(self.broken(
                    place,
                    "a name that one node has",
                    &format!("{name:?}, which {n} nodes share"),
                    "say which with @ and its index from 0 (for a track, on a line: drives @3)",
                )),
            },
        }
    }
}

impl OpenTrack {
    /// The keys that a key line goes to; none below a constant.
    fn open_keys(&mut self) -> Option<&mut Keys> {
        match self.parts.last_mut() {
            Some((_, Part::Keys(keys))) => Some(keys),
            Some((_, Part::Constant(_))) => None,
            None => Some(&mut self.keys),
        }
    }

    fn open_part(&mut self, which: Component, line: &mut Line<'_>, place: Place) -> Result<(), FormatError> {
        let part = if line.take("constant") {
            Part::Constant(line.number("the constant")?)
        } else {
            Part::Keys(Box::new(Keys::new(ValueKind::Scalar, 1, place)))
        };
        self.parts.push((which, part));
        Ok(())
    }
}

impl Keys {
    /// Gives a new key zero tangents and no kind of its own, where keys before it have any.
    fn fill_rows(&mut self) {
        let n = self.times.len();
        if !self.kinds.is_empty() {
            self.kinds.resize(n, None);
        }
        if let Some(t) = &mut self.tangents {
            t.leave.resize(n * self.width, 0.0);
            t.arrive.resize(n * self.width, 0.0);
            if !t.leave_dt.is_empty() {
                t.leave_dt.resize(n * self.width, 0.0);
                t.arrive_dt.resize(n * self.width, 0.0);
            }
        }
    }

    /// `in` or `out`, values, and for weighted tangents `over` and seconds.
    fn tangent(&mut self, line: &mut Line<'_>, side: &str) -> Result<(), FormatError> {
        let width = self.width;
        let values = line.numbers(width, "a tangent")?;
        let lengths = if line.take("over") {
            let column = line.peek().map_or(1, |w| w.column);
            let lengths = line.numbers(width, "the seconds of a handle")?;
            if let Some(bad) = lengths.iter().find(|v| **v < 0.0) {
                let advice = "a handle of an in tangent is counted backward, so it is positive too";
                return Err(line.broken_at(column, "seconds of zero or more", &bad.to_string(), advice));
            }
            lengths
        } else {
            Vec::new()
        };
        self.tangents.get_or_insert_default();
        self.fill_rows();
        let n = self.times.len();
        let t = self.tangents.as_mut().expect("just made");
        if !lengths.is_empty() {
            t.leave_dt.resize(n * width, 0.0);
            t.arrive_dt.resize(n * width, 0.0);
        }
        let (value, dt) =
            if side == "in" { (&mut t.arrive, &mut t.arrive_dt) } else { (&mut t.leave, &mut t.leave_dt) };
        value[(n - 1) * width..].copy_from_slice(&values);
        if !lengths.is_empty() {
            dt[(n - 1) * width..].copy_from_slice(&lengths);
        }
        Ok(())
    }
}

impl Line<'_> {
    /// `on` or `off`, or 1 or 0.
    fn switch(&mut self, expected: &str) -> Result<f64, FormatError> {
        let value = match self.peek_keyword() {
            Some("on" | "1") => 1.0,
            Some("off" | "0") => 0.0,
            _ => return Err(self.broken(expected, "a switch is on or off and nothing between")),
        };
        self.skip();
        Ok(value)
    }

    fn switch_or_number(&mut self, expected: &str) -> Result<f64, FormatError> {
        match self.peek_keyword() {
            Some("on" | "off") => self.switch(expected),
            _ => self.number(expected),
        }
    }
}

fn constant_has_no_keys(line: &Line<'_>, place: Place) -> FormatError {
    line.broken_at(place.column, "another axis or turn", "a setting of keys", "a constant has no keys")
}

/// Seconds, or frames of the clip's rate with an `f` after them.
fn time(line: &mut Line<'_>, rate: Option<FrameRate>, what: &str) -> Result<f64, FormatError> {
    if let Some(frames) = line.peek_keyword().and_then(|w| w.strip_suffix('f'))
        && let Ok(frame) = frames.parse::<i64>()
    {
        let Some(rate) = rate else {
            return Err(
                line.broken(&format!("{what} in seconds"), "give the clip a rate line above to count frames")
            );
        };
        line.skip();
        return Ok(rate.time_of(frame));
    }
    line.number(&format!("{what} in seconds"))
}

fn vector(line: &mut Line<'_>, what: &str) -> Result<DVec3, FormatError> {
    Ok(DVec3::from_slice(&line.numbers(3, what)?))
}

/// A quaternion x y z w. One that is clearly not of unit length is scaled to it, with a note.
fn rotation(line: &mut Line<'_>, place: Place, notes: &mut Vec<Note>) -> Result<DQuat, FormatError> {
    let q = DQuat::from_slice(&line.numbers(4, "a quaternion x y z w")?);
    let Some(scaled) = unit(q) else {
        let advice = "write x y z w, which is 0 0 0 1 for no turn";
        return Err(line.broken_at(place.column, "a quaternion", "one that is zero", advice));
    };
    if (q.length() - 1.0).abs() <= 1e-6 {
        return Ok(q);
    }
    let what = format!("a quaternion of length {} was scaled to length 1", q.length());
    notes.push(Note::new(Severity::Repaired, format!("line {}", place.line), what));
    Ok(scaled)
}

fn axis_letter(c: char) -> Option<AxisName> {
    match c {
        'x' => Some(AxisName::X),
        'y' => Some(AxisName::Y),
        'z' => Some(AxisName::Z),
        _ => None,
    }
}

/// Three signed axes: which of the file's each of the house's x, y, z takes.
fn axes(line: &mut Line<'_>) -> Result<AxisMap, FormatError> {
    let mut map = AxisMap::SAME;
    for i in 0..3 {
        let expected = "a signed axis such as x or -z, each of x, y and z once";
        let word = line.peek_keyword().unwrap_or("");
        let (sign, letter) = word.strip_prefix('-').map_or((1.0, word), |rest| (-1.0, rest));
        let letter = letter.strip_prefix('+').unwrap_or(letter);
        let from = ["x", "y", "z"].iter().position(|a| *a == letter);
        let from = from.filter(|f| !map.from[..i].contains(f));
        let Some(from) = from else { return Err(line.broken(expected, "z-up files have: axes x z -y")) };
        (map.from[i], map.sign[i]) = (from, sign);
        line.skip();
    }
    Ok(map)
}

fn extrapolation(line: &mut Line<'_>) -> Result<Extrapolation, FormatError> {
    let rule: fn(Option<u32>) -> Extrapolation = match line.peek_keyword() {
        Some("hold") => |_| Extrapolation::Hold,
        Some("linear") => |_| Extrapolation::Linear,
        Some("cycle") => |repeats| Extrapolation::Cycle { repeats },
        Some("cycle-offset") => |repeats| Extrapolation::CycleOffset { repeats },
        Some("mirror") => |repeats| Extrapolation::Mirror { repeats },
        _ => return Err(line.broken("hold, linear, cycle, cycle-offset or mirror", "name one of them")),
    };
    line.skip();
    let plain = matches!(rule(None), Extrapolation::Hold | Extrapolation::Linear);
    if plain || line.peek().is_none() {
        return Ok(rule(None));
    }
    let repeats = line.peek_keyword().and_then(|w| w.parse().ok());
    let repeats = repeats
        .ok_or_else(|| line.broken("how often it repeats, a whole number", "leave it out for ever"))?;
    line.skip();
    Ok(rule(Some(repeats)))
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
