//! Reads BVH, also as it is found in the wild.
//!
//! The hierarchy is read word by word (`hierarchy.rs`), so line breaks and indentation do not
//! matter. The numbers are read in one pass straight into the arrays of the curves, frame after
//! frame (`rows.rs`), so a long take takes no more memory than its numbers. What the header claims
//! is only believed as far as there are bytes to hold it. Sure repairs become notes; a number that
//! cannot be read is an error.

use std::sync::Arc;

use inbetween::glam::DQuat;
use inbetween::{
    Axis, AxisName, Binding, Clip, Curve, CurveError, EulerBetween, EulerCurve, FrameRate, Property,
    Skeleton, Track, TrackData, Transform, ValueKind,
};

use super::DEFAULT_UNIT;
use super::hierarchy::{Channel, Hierarchy, read_hierarchy};
use super::rows::Rows;
use super::text::{Text, number, plain_text, quote, trim};
use crate::convention::AxisMap;
use crate::{Convention, FormatError, Import, Input, Note, ReadOptions, Severity, Source};

/// Reads a whole file.
pub(super) fn read(input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
    let mut notes = Vec::new();
    let bytes = plain_text(input.bytes, &mut notes);
    let mut text = Text { bytes: &bytes, pos: 0, line: 1, file: input.name };
    let hierarchy = read_hierarchy(&mut text, &mut notes)?;
    let clips = read_motion(&mut text, &hierarchy, options, &mut notes)?;
    let skeleton = Skeleton::new(hierarchy.joints).expect("a parent is read before its children");
    Ok(Import {
        format: "bvh",
        skeleton,
        clips,
        notes,
        convention: Convention { metres_per_unit: DEFAULT_UNIT, axes: AxisMap::SAME },
        in_house_units: false,
        source: Source::None,
        decimals: Some(decimals(&bytes)),
    })
}

/// Digits behind the point that the numbers in the rows have on average, rounded up.
fn decimals(bytes: &[u8]) -> usize {
    let motion = bytes.windows(6).position(|w| w.eq_ignore_ascii_case(b"MOTION")).unwrap_or(bytes.len());
    let lines = bytes[motion..].split(|b| matches!(b, b'\n' | b'\r')).filter(|l| !l.is_empty());
    let numbers = lines.skip(3).flat_map(|l| l.split(u8::is_ascii_whitespace)).filter(|w| !w.is_empty());
    let (mut count, mut digits) = (0usize, 0usize);
    for word in numbers {
        count += 1;
        digits += word.iter().position(|b| *b == b'.').map_or(0, |point| word.len() - point - 1);
    }
    digits.div_ceil(count.max(1))
}

/// The curves of one joint and where each number of a row goes.
pub(super) struct Sink {
    pub(super) joint: usize,
    /// Columns of the row that make one value, by component; or one rotation term.
    pub(super) columns: Vec<usize>,
    pub(super) what: What,
    pub(super) values: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum What {
    /// All three components of a position or scale: one curve of vectors.
    Vector { scale: bool },
    /// One component of a position or scale that has not all three.
    Component { scale: bool, axis: usize },
    /// One turn of a rotation.
    Turn(AxisName),
}

fn make_sinks(h: &Hierarchy) -> Vec<Sink> {
    let mut sinks = Vec::new();
    let mut column = 0;
    while column < h.channels.len() {
        let joint = h.channels[column].0;
        let count = h.channels[column..].iter().take_while(|(j, _)| *j == joint).count();
        let own: Vec<(usize, Channel)> = (column..column + count).map(|c| (c, h.channels[c].1)).collect();
        column += count;
        let mut push =
            |columns: Vec<usize>, what| sinks.push(Sink { joint, columns, what, values: Vec::new() });
        for scale in [false, true] {
            let of_axis = |axis| {
                let wanted = if scale { Channel::Scale(axis) } else { Channel::Position(axis) };
                own.iter().find(|(_, c)| *c == wanted).map(|(c, _)| *c)
            };
            let found: Vec<(usize, usize)> = (0..3).filter_map(|a| Some((a, of_axis(a)?))).collect();
            if found.len() == 3 {
                push(found.iter().map(|f| f.1).collect(), What::Vector { scale });
            } else {
                for (axis, c) in found {
                    push(vec![c], What::Component { scale, axis });
                }
            }
        }
        for (c, channel) in own {
            if let Channel::Rotation(axis) = channel {
                push(vec![c], What::Turn(axis));
            }
        }
    }
    sinks
}

fn read_motion(
    text: &mut Text<'_>,
    h: &Hierarchy,
    options: &ReadOptions,
    notes: &mut Vec<Note>,
) -> Result<Vec<Clip>, FormatError> {
    if text.peek_word().is_empty() && text.pos >= text.bytes.len() {
        notes.push(Note::new(
            Severity::Info,
            "",
            "the file has no motion, only a skeleton; it gives no clip",
        ));
        return Ok(Vec::new());
    }
    let declared = read_frame_count(text)?;
    let (frame_time, frame_time_text, frame_time_line) = read_frame_time(text)?;
    let width = h.channels.len();
    let mut sinks = make_sinks(h);
    let keys = u128::from(declared) * sinks.len() as u128;
    let rest = (text.bytes.len() - text.pos) as u64;
    // A number takes a digit and a blank, so the bytes bound what there can be.
    let room = if width == 0 { 0 } else { (rest / (2 * width as u64) + 1).min(declared) };
    if u128::from(room) * sinks.len() as u128 > u128::from(options.max_keys) {
        return Err(FormatError::Limit {
            file: text.file.to_owned(),
            place: "MOTION".to_owned(),
            what: "keys".to_owned(),
            found: u64::try_from(keys).unwrap_or(u64::MAX),
            limit: options.max_keys,
            advice: "raise the limit, or cut the take into parts".to_owned(),
        });
    }
    if width == 0 {
        let what = "no joint has a channel, so nothing moves";
        notes.push(Note::new(Severity::Info, "HIERARCHY", what));
        let end = declared.saturating_sub(1) as f64 * frame_time;
        return finish_clip(text, h, Vec::new(), 0, end, frame_time, &frame_time_text).map(|c| vec![c]);
    }
    for s in &mut sinks {
        s.values.reserve_exact(room as usize * s.columns.len());
    }
    let frames = Rows::new(text, h, declared, notes).read(&mut sinks)?;
    if frames == 0 {
        notes.push(Note::new(Severity::Info, "MOTION", "the clip is empty: there are no frames"));
    }
    // Shorter than any clock's step is as good as none.
    if frames > 1 && frame_time < 1e-9 {
        let advice = "write the length of a frame in seconds, such as 0.0333333 for 30 a second";
        return Err(text.broken(frame_time_line, "a frame time above zero", frame_time_text, advice));
    }
    let end = frames.saturating_sub(1) as f64 * frame_time;
    Ok(vec![finish_clip(text, h, sinks, frames, end, frame_time, &frame_time_text)?])
}

/// `Frames: n`, also without the colon and in any case.
fn read_frame_count(text: &mut Text<'_>) -> Result<u64, FormatError> {
    text.skip_space();
    let line = text.line;
    let found = text.rest_of_line();
    let wrong = || {
        let advice = "after MOTION come \"Frames:\" with a whole number and \"Frame Time:\" with seconds";
        text.broken(line, "Frames: and how many", quote(found), advice)
    };
    let value = after_keyword(found, &[b"frames"]).ok_or_else(wrong)?;
    let value = std::str::from_utf8(value).map_err(|_| wrong())?;
    // Some write 120.0.
    let whole = value.strip_suffix('.').or_else(|| value.split_once('.').map(|(whole, _)| whole));
    let zeros = value.split_once('.').is_none_or(|(_, z)| z.bytes().all(|b| b == b'0'));
    if !zeros {
        return Err(wrong());
    }
    whole.unwrap_or(value).parse().map_err(|_| wrong())
}

/// `Frame Time: s`; the seconds, as written, and the line.
fn read_frame_time(text: &mut Text<'_>) -> Result<(f64, String, usize), FormatError> {
    text.skip_space();
    let line = text.line;
    let found = text.rest_of_line();
    let advice = "write \"Frame Time:\" and the length of a frame in seconds, such as 0.0333333";
    let wrong = || text.broken(line, "Frame Time: and seconds", quote(found), advice);
    let value = after_keyword(found, &[b"frame", b"time"]).ok_or_else(wrong)?;
    let seconds = number(value).ok_or_else(wrong)?;
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(text.broken(line, "a frame time of zero or more seconds", quote(value), advice));
    }
    Ok((seconds, String::from_utf8_lossy(value).into_owned(), line))
}

/// What follows the words and a colon, if the line begins with them.
fn after_keyword<'a>(line: &'a [u8], words: &[&[u8]]) -> Option<&'a [u8]> {
    let mut rest = line;
    for word in words {
        rest = trim(rest);
        let head = rest.get(..word.len())?;
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = &rest[word.len()..];
    }
    let rest = trim(rest);
    Some(trim(rest.strip_prefix(b":").unwrap_or(rest)))
}

fn finish_clip(
    text: &Text<'_>,
    h: &Hierarchy,
    sinks: Vec<Sink>,
    frames: u64,
    end: f64,
    frame_time: f64,
    frame_time_text: &str,
) -> Result<Clip, FormatError> {
    let out_of_range = |what: String| FormatError::Broken {
        file: text.file.to_owned(),
        place: "MOTION".to_owned(),
        expected: "frame times that are finite and increase".to_owned(),
        found: what,
        advice: "correct Frame Time".to_owned(),
    };
    let mut clip = Clip::new("", 0.0, end).map_err(|e| out_of_range(e.to_string()))?;
    clip.rate = frame_rate(frame_time, frame_time_text);
    if frames == 0 {
        return Ok(clip);
    }
    let times: Arc<[f64]> = (0..frames).map(|k| k as f64 * frame_time).collect();
    let refused = |e: CurveError| out_of_range(e.to_string());
    let mut sinks = sinks.into_iter().peekable();
    while let Some(first) = sinks.next() {
        let joint = first.joint;
        let rest = h.joints[joint].rest;
        let mut group = vec![first];
        let same = |a: What, b: What| match (a, b) {
            (What::Component { scale, .. }, What::Component { scale: other, .. }) => scale == other,
            (What::Turn(_), What::Turn(_)) => true,
            _ => false,
        };
        while let Some(next) = sinks.next_if(|s| s.joint == joint && same(group[0].what, s.what)) {
            group.push(next);
        }
        let scalar = |mut values: Vec<f64>| {
            values.shrink_to_fit();
            Curve::linear(ValueKind::Scalar, times.clone(), values).map(Axis::Curve).map_err(refused)
        };
        let (property, data, rest) = match group[0].what {
            What::Turn(_) => {
                let mut terms = Vec::with_capacity(group.len());
                for s in group {
                    let What::Turn(axis) = s.what else { continue };
                    terms.push((axis, scalar(s.values)?));
                }
                let (pre, post) = (DQuat::IDENTITY, DQuat::IDENTITY);
                let e = EulerCurve { terms, pre, post, between: EulerBetween::Slerp };
                (Property::Rotation, TrackData::Euler(e), rest.rotation.to_array().to_vec())
            }
            What::Vector { scale } => {
                let (property, rest) = vector_property(scale, &rest);
                let mut values = group.swap_remove(0).values;
                values.shrink_to_fit();
                let curve = Curve::linear(ValueKind::Vector(3), times.clone(), values).map_err(refused)?;
                (property, TrackData::Curve(curve), rest.to_vec())
            }
            What::Component { scale, .. } => {
                let (property, rest) = vector_property(scale, &rest);
                let mut axes = rest.map(Axis::Constant).to_vec();
                for s in group {
                    let What::Component { axis, .. } = s.what else { continue };
                    axes[axis] = scalar(s.values)?;
                }
                (property, TrackData::Axes { kind: ValueKind::Vector(3), axes }, rest.to_vec())
            }
        };
        clip.tracks.push(Track::new(
            Binding::node(joint, h.joints[joint].name.clone(), property),
            data,
            rest,
        ));
    }
    Ok(clip)
}

fn vector_property(scale: bool, rest: &Transform) -> (Property, [f64; 3]) {
    if scale {
        (Property::Scale, rest.scale.to_array())
    } else {
        (Property::Translation, rest.translation.to_array())
    }
}

/// The exact rate that a frame time, rounded to the digits it was written with, stands for.
///
/// `.0083333` is 120 a second and `0.0333667` 30000/1001. A time that stands for neither a whole
/// rate nor one of the 1000/1001 family keeps its own ratio.
fn frame_rate(seconds: f64, text: &str) -> Option<FrameRate> {
    if seconds <= 0.0 {
        return None;
    }
    // One unit of the last decimal: files round and cut alike. At least 2e-6, because 23.976 and
    // 29.97 are themselves rounded; never more than 0.2 %, or a rate
    // would no longer fit the frames' own times.
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let decimals = mantissa.split_once('.').map_or(0, |(_, d)| d.len());
    let exponent: i32 = text.split(['e', 'E']).nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    let power = (exponent - i32::try_from(decimals).unwrap_or(i32::MAX / 2)).clamp(-300, 300);
    let unit = format!("1e{power}").parse::<f64>().unwrap_or(0.0);
    let tolerance = (unit / seconds).clamp(2e-6, 2e-3);
    FrameRate::from_hz(1.0 / seconds, tolerance)
}
