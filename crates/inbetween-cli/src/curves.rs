//! Tracks as panels: what to draw of a track, in which unit, and the difference of two versions.
//!
//! A rotation is drawn as three angles in degrees: the Euler angles themselves where the track
//! has them and stands alone, else the rotation vector from the first pose on, unwound so that it
//! does not jump at half turns.

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::{angle_between, rotation_vector};
use inbetween::{Clip, Property, Track, TrackData, ValueKind};

use crate::input::shown_name;
use crate::picture::panel::{Line, Panel, Strip};

/// Times between the keys at which a curve is drawn.
const SAMPLES: usize = 600;

/// Keys of a track above which the curve is drawn from its samples alone.
const MANY: usize = 4000;

/// Times at which to draw `tracks` from `start` to `end`: evenly, at keys, and just before keys.
fn drawn_times(start: f64, end: f64, tracks: &[&Track]) -> Vec<f64> {
    let length = end - start;
    let mut times: Vec<f64> = (0..=SAMPLES).map(|i| start + length * i as f64 / SAMPLES as f64).collect();
    for track in tracks {
        let keys = track.data.key_times();
        if keys.len() <= MANY {
            times.extend(keys.iter().filter(|t| (start..=end).contains(*t)).flat_map(|&t| [t - 1e-9, t]));
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    times.retain(|t| (start..=end).contains(t));
    times
}

/// How a value of a track becomes numbers on an axis.
struct Scale {
    unit: &'static str,
    factor: f64,
    names: Vec<String>,
    /// For rotations: the pose angles are counted from.
    from: Option<DQuat>,
}

impl Scale {
    fn of(track: &Track, start: f64, largest: f64) -> Self {
        let letters = |n: usize, l: &[&str]| l.iter().take(n).map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let kind = track.data.kind();
        match (&track.binding.property, kind) {
            (_, ValueKind::Rotation) => Self {
                unit: "deg",
                factor: 1.0f64.to_degrees(),
                names: letters(3, &["x", "y", "z"]),
                from: Some(DQuat::from_slice(&track.value_at(start))),
            },
            (Property::Translation, _) => {
                let (unit, factor) = if largest < 0.05 { ("mm", 1e3) } else { ("m", 1.0) };
                Self { unit, factor, names: letters(3, &["x", "y", "z"]), from: None }
            }
            (_, ValueKind::Color(n)) => Self {
                unit: "",
                factor: 1.0,
                names: letters(usize::from(n), &["r", "g", "b", "a"]),
                from: None,
            },
            (_, ValueKind::Vector(n)) => Self {
                unit: "",
                factor: 1.0,
                names: letters(usize::from(n), &["x", "y", "z", "w"]),
                from: None,
            },
            (_, ValueKind::Weights(n)) => {
                Self { unit: "", factor: 1.0, names: (0..n).map(|i| i.to_string()).collect(), from: None }
            }
            _ => Self { unit: "", factor: 1.0, names: vec![String::new()], from: None },
        }
    }

    /// Rows of numbers for the values of `track` at `times`.
    fn rows(&self, track: &Track, times: &[f64]) -> Vec<Vec<f64>> {
        let Some(from) = self.from else {
            return times
                .iter()
                .map(|&t| track.value_at(t).iter().map(|v| v * self.factor).collect())
                .collect();
        };
        let mut before = DVec3::ZERO;
        times
            .iter()
            .map(|&t| {
                let q = from.conjugate() * DQuat::from_slice(&track.value_at(t)).normalize();
                before = unwound(rotation_vector(q), before);
                (before * self.factor).to_array().to_vec()
            })
            .collect()
    }
}

/// The rotation vector of the same rotation as `v` that lies nearest to `near`.
fn unwound(v: DVec3, near: DVec3) -> DVec3 {
    let angle = v.length();
    // About no axis in particular: a whole number of turns about that of `near`.
    let axis = if angle > 1e-9 {
        v / angle
    } else if near.length() > 1e-9 {
        near.normalize()
    } else {
        return v;
    };
    let turns = ((near.dot(axis) - angle) / std::f64::consts::TAU).round();
    axis * (angle + turns * std::f64::consts::TAU)
}

/// Lines of a track: one a component, keys marked.
fn lines(track: &Track, scale: &Scale, times: &[f64]) -> Vec<Line> {
    let rows = scale.rows(track, times);
    let keys: Vec<f64> = track.data.key_times();
    let on_key = |t: f64| keys.binary_search_by(|k| k.total_cmp(&t)).is_ok();
    scale
        .names
        .iter()
        .enumerate()
        .map(|(c, name)| {
            let points: Vec<(f64, f64)> =
                times.iter().zip(&rows).filter_map(|(&t, r)| Some((t, *r.get(c)?))).collect();
            let keys = points.iter().copied().filter(|p| on_key(p.0)).collect();
            Line { name: name.clone(), points, keys }
        })
        .collect()
}

/// Euler angles as they were authored, each with its own keys.
fn euler_lines(track: &Track, times: &[f64]) -> Option<Vec<Line>> {
    let TrackData::Euler(euler) = &track.data else { return None };
    let degrees = 1.0f64.to_degrees();
    let line = |(axis, angle): &(inbetween::AxisName, inbetween::Axis)| Line {
        name: axis.letter().to_string(),
        points: times.iter().map(|&t| (t, angle.at(t) * degrees)).collect(),
        keys: angle.curve().map_or_else(Vec::new, |c| {
            c.times().iter().zip(c.values()).map(|(t, v)| (*t, v * degrees)).collect()
        }),
    };
    Some(euler.terms.iter().map(line).collect())
}

/// How far apart two versions of a track are at `times`, and in which unit.
fn difference(a: &Track, b: &Track, times: &[f64]) -> Strip {
    let rotation = a.data.kind() == ValueKind::Rotation && b.data.kind() == ValueKind::Rotation;
    let length = a.binding.property == Property::Translation;
    let points: Vec<(f64, f64)> = times
        .iter()
        .map(|&t| {
            let (x, y) = (a.value_at(t), b.value_at(t));
            let size = if rotation {
                angle_between(DQuat::from_slice(&x).normalize(), DQuat::from_slice(&y).normalize())
                    .to_degrees()
            } else {
                let size = x.iter().zip(&y).map(|(p, q)| (p - q) * (p - q)).sum::<f64>().sqrt();
                if length { size * 1e3 } else { size }
            };
            (t, size)
        })
        .collect();
    let unit = if rotation {
        "deg"
    } else if length {
        "mm"
    } else {
        ""
    };
    Strip { points, unit: unit.to_owned(), bound: None }
}

/// `Hips . rotation`.
pub fn title(track: &Track) -> String {
    format!("{} . {}", shown_name(&track.binding.target, track.binding.node), track.binding.property.name())
}

/// A panel of one track of `clip`; over it, in grey behind, `before` if there is one, with the
/// difference of the two beneath.
pub fn panel(clip: &Clip, track: &Track, before: Option<&Track>) -> Panel {
    let (start, end) = (clip.start(), clip.end());
    let tracks: Vec<&Track> = before.into_iter().chain([track]).collect();
    let times = drawn_times(start, end, &tracks);
    let reference = before.unwrap_or(track);
    let largest = times.iter().flat_map(|&t| reference.value_at(t)).fold(0.0f64, |m, v| m.max(v.abs()));
    let scale = Scale::of(reference, start, largest);
    let keys = track.data.key_times().len();
    match before {
        None => Panel {
            title: title(track),
            note: format!("{keys} keys"),
            unit: scale.unit.to_owned(),
            lines: euler_lines(track, &times).unwrap_or_else(|| lines(track, &scale, &times)),
            ..Panel::default()
        },
        Some(before) => {
            let strip = difference(before, track, &times);
            let worst = strip.points.iter().fold((0.0, 0.0), |w, p| if p.1 > w.1 { *p } else { w });
            Panel {
                title: title(track),
                note: format!("{} keys before, {keys} after", before.data.key_times().len()),
                unit: scale.unit.to_owned(),
                before: lines(before, &scale, &times),
                lines: lines(track, &scale, &times),
                mark: (worst.1 > 0.0).then_some(worst.0),
                strip: Some(strip),
                ..Panel::default()
            }
        }
    }
}

/// True if the track's value changes at all from `start` to `end`.
pub fn moves(track: &Track, clip: &Clip) -> bool {
    let keys = track.data.key_times();
    let first = track.value_at(clip.start());
    let step = (keys.len() / 500).max(1);
    let between = keys.windows(2).map(|w| 0.5 * (w[0] + w[1]));
    keys.iter()
        .copied()
        .chain(between)
        .step_by(step)
        .chain([clip.end()])
        .any(|t| track.value_at(t).iter().zip(&first).any(|(a, b)| (a - b).abs() > 1e-9 * b.abs().max(1e-3)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use inbetween::math::axis_angle;
    use inbetween::{Binding, Curve};

    #[test]
    fn many_turns_are_drawn_as_one_rising_line() {
        let times: Vec<f64> = (0..=12).map(f64::from).collect();
        let values = times.iter().flat_map(|t| axis_angle(DVec3::Y, t * 1.5).to_array()).collect();
        let curve = Curve::linear(ValueKind::Rotation, times.clone(), values).unwrap();
        let binding = Binding::node(0, "wheel", Property::Rotation);
        let track = Track::new(binding, TrackData::Curve(curve), vec![0.0, 0.0, 0.0, 1.0]);
        let clip = Clip::new("spin", 0.0, 12.0).unwrap();
        let drawn = panel(&clip, &track, None);
        let last = drawn.lines[1].points.last().unwrap().1;
        assert!((last - 18f64.to_degrees()).abs() < 1e-6, "{last}");
        assert_eq!(drawn.lines[1].keys.len(), 13);
    }
}
