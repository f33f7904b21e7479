//! Clips as a table of keys, for spreadsheets and scripts (RFC 4180).
//!
//! One row for every key of every component of every track:
//!
//! | column | holds |
//! |---|---|
//! | `clip` | the clip's name |
//! | `target` | what the track drives, by name |
//! | `node` | index of the node from 0; empty if it is none |
//! | `property` | `translation`, `rotation`, …, or the path of any other property |
//! | `kind` | `switch`, `scalar`, `vector3`, `color3`, `rotation`, `weights4`, `euler zxy` |
//! | `component` | x y z w, r g b a, or its number from 0; of `euler` the number of the turn |
//! | `time` | seconds; empty for a component without keys |
//! | `value` | metres, radians, or the property's own unit |
//! | `span` | the span that follows: `step`, `step-next`, `linear`, `hermite`, `bezier` |
//! | `in`, `out` | tangents: slopes a second (Hermite), or offsets in value (Bezier) |
//! | `in_s`, `out_s` | lengths of Bezier handles in seconds |
//!
//! Numbers are the shortest that read back as the same bits. Lines end in CR LF; fields with
//! commas, quotes or line breaks stand in quotes. Values on even frames instead of keys are what
//! [`write_frames`] gives. CSV is written, not read: the text format of [`crate::native`] is the
//! one to edit by hand.

use std::fmt::Write;

use inbetween::{Axis, Clip, Curve, EulerBetween, Extrapolation, TrackData, Wrap};

use crate::native::{SPANS, component_name, kind_name, name_of, write_number};
use crate::{FormatError, Import, Note, Severity};

const HEAD: &str = "clip,target,node,property,kind,component,time,value,span,in,out,in_s,out_s\r\n";

/// Every key of every clip as a row; see the [module](self).
///
/// # Errors
/// None so far; a table holds any valid clip's keys.
pub fn write(import: &Import) -> Result<String, FormatError> {
    let mut out = HEAD.to_owned();
    for clip in &import.clips {
        for track in &clip.tracks {
            let binding = &track.binding;
            let node = binding.node.map_or_else(String::new, |n| n.to_string());
            let kind = match &track.data {
                TrackData::Euler(e) => {
                    let letters: String = e.terms.iter().map(|(axis, _)| axis.letter()).collect();
                    format!("euler {letters}")
                }
                data => kind_name(data.kind()),
            };
            let head =
                [&clip.name, &binding.target, &node, binding.property.name(), &kind].map(field).join(",");
            let name = |i: usize| component_name(track.data.kind(), i);
            match &track.data {
                TrackData::Curve(c) => {
                    for component in 0..c.width() {
                        rows(&mut out, &head, &name(component), c, component);
                    }
                }
                TrackData::Axes { axes, .. } => {
                    for (i, axis) in axes.iter().enumerate() {
                        axis_rows(&mut out, &head, &name(i), axis);
                    }
                }
                TrackData::Euler(e) => {
                    for (i, (_, axis)) in e.terms.iter().enumerate() {
                        axis_rows(&mut out, &head, &i.to_string(), axis);
                    }
                }
            }
        }
    }
    Ok(out)
}

/// The values of a clip's playing tracks at the given times, a row a time: `time`, then for each
/// component of each track a column `target.property.component`.
pub fn write_frames(clip: &Clip, times: &[f64]) -> String {
    let tracks: Vec<_> = clip.tracks.iter().filter(|t| t.enabled).collect();
    let mut out = String::from("time");
    for track in &tracks {
        let kind = track.data.kind();
        for i in 0..kind.width() {
            let dot = if kind.width() == 1 { String::new() } else { format!(".{}", component_name(kind, i)) };
            out.push(',');
            out.push_str(&field(&format!("{}.{}{dot}", track.binding.target, track.binding.property.name())));
        }
    }
    out.push_str("\r\n");
    let mut value = Vec::new();
    for &time in times {
        write_number(&mut out, time);
        for track in &tracks {
            value.clear();
            value.resize(track.data.kind().width(), 0.0);
            track.data.eval(time, &mut value);
            for v in &value {
                out.push(',');
                write_number(&mut out, *v);
            }
        }
        out.push_str("\r\n");
    }
    out
}

/// What a table of keys leaves out of an import.
pub fn losses(import: &Import) -> Vec<Note> {
    let mut notes = vec![Note::new(
        Severity::Lost,
        "",
        "a table holds keys alone: the tree of nodes with its rest pose, ranges and rates of clips stayed behind",
    )];
    for clip in &import.clips {
        let mut left = Vec::new();
        if !clip.markers.is_empty() {
            left.push("marks");
        }
        if clip.wrap != Wrap::Hold || clip.additive {
            left.push("how it loops or is laid over others");
        }
        let curves = || clip.tracks.iter().flat_map(|t| t.data.curves());
        let plain =
            |c: &Curve| (c.parts().before, c.parts().after) == (Extrapolation::Hold, Extrapolation::Hold);
        if !curves().all(plain) {
            left.push("what curves do outside their keys");
        }
        let fixed = |data: &TrackData| match data {
            TrackData::Euler(e) => {
                e.pre != inbetween::glam::DQuat::IDENTITY
                    || e.post != inbetween::glam::DQuat::IDENTITY
                    || e.between == EulerBetween::Slerp
            }
            _ => false,
        };
        if clip.tracks.iter().any(|t| fixed(&t.data)) {
            left.push("fixed rotations around angles and whether frames are slerped");
        }
        if clip.tracks.iter().any(|t| !t.enabled) {
            left.push("which tracks are muted");
        }
        if !left.is_empty() {
            let what = format!("left out: {}", left.join("; "));
            notes.push(Note::new(Severity::Lost, format!("clip {:?}", clip.name), what));
        }
    }
    notes
}

fn axis_rows(out: &mut String, head: &str, component: &str, axis: &Axis) {
    match axis {
        Axis::Curve(c) => rows(out, head, component, c, 0),
        Axis::Constant(v) => {
            let _ = write!(out, "{head},{component},,");
            write_number(out, *v);
            out.push_str(",,,,,\r\n");
        }
    }
}

/// The keys of one component of a curve.
fn rows(out: &mut String, head: &str, component: &str, curve: &Curve, c: usize) {
    let w = curve.width();
    let parts = curve.parts();
    for key in 0..curve.len() {
        let _ = write!(out, "{head},{component},");
        write_number(out, parts.times[key]);
        out.push(',');
        write_number(out, curve.value(key)[c]);
        out.push(',');
        out.push_str(name_of(&SPANS, curve.span(key)));
        let empty = Vec::new();
        let t = parts.tangents.as_ref();
        for list in [
            t.map_or(&empty, |t| &t.arrive),
            t.map_or(&empty, |t| &t.leave),
            t.map_or(&empty, |t| &t.arrive_dt),
            t.map_or(&empty, |t| &t.leave_dt),
        ] {
            out.push(',');
            if let Some(v) = list.get(key * w + c) {
                write_number(out, *v);
            }
        }
        out.push_str("\r\n");
    }
}

/// A field, in quotes where it must be.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) || text != text.trim() {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
