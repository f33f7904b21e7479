//! Changing whole clips: cutting, moving to zero, closing loops, making differences.
//!
//! Every edit gives a new clip; the one it was made from stays as it is.

use crate::clip::Clip;
use crate::curve::{Curve, SpanKind, Spans, ValueKind, undo};
use crate::math;
use crate::track::{Axis, EulerBetween, Property, Track, TrackData};
use glam::DQuat;

/// The piece of `clip` from `start` to `end` seconds, moved to begin at zero, with the exact pose
/// at both cuts even where no track has a key.
///
/// `start` and `end` are brought inside the clip's range. Markers outside the piece are left out.
pub fn cut(clip: &Clip, start: f64, end: f64) -> Clip {
    let start = start.clamp(clip.start(), clip.end());
    let end = end.clamp(start, clip.end());
    let mut piece = Clip::new(clip.name.clone(), 0.0, end - start).expect("finite");
    (piece.rate, piece.wrap, piece.additive) = (clip.rate, clip.wrap, clip.additive);
    piece.tracks = clip.tracks.iter().map(|t| map_curves(t, |c| c.cut(start, end, start))).collect();
    piece.markers = clip.markers.iter().filter(|m| m.time >= start && m.time <= end).cloned().collect();
    for marker in &mut piece.markers {
        marker.time -= start;
    }
    piece
}

/// The same clip moved so that it begins at zero.
pub fn rebase_to_zero(clip: &Clip) -> Clip {
    let by = -clip.start();
    let mut moved = clip.clone();
    moved.set_range(0.0, clip.duration()).expect("finite");
    moved.tracks = clip.tracks.iter().map(|t| map_curves(t, |c| c.shifted(by))).collect();
    for marker in &mut moved.markers {
        marker.time += by;
    }
    moved
}

fn map_curves(track: &Track, f: impl Fn(&Curve) -> Curve) -> Track {
    let mut track = track.clone();
    match &mut track.data {
        TrackData::Curve(c) => *c = f(c),
        TrackData::Axes { axes, .. } => {
            for axis in axes {
                if let Axis::Curve(c) = axis {
                    *c = f(c);
                }
            }
        }
        TrackData::Euler(e) => {
            // One cut of curves that share their times gives curves that share theirs, but
            // between the frames of a slerp the angles are not on a line: make them a rotation.
            if e.between == EulerBetween::Slerp {
                let curve = euler_as_rotation(&TrackData::Euler(e.clone()));
                track.data = TrackData::Curve(f(&curve));
            } else {
                for (_, axis) in &mut e.terms {
                    if let Axis::Curve(c) = axis {
                        *c = f(c);
                    }
                }
            }
        }
    }
    track
}

/// The rotation curve through the keys of an Euler track read by slerp.
fn euler_as_rotation(data: &TrackData) -> Curve {
    let mut times = data.key_times();
    if times.is_empty() {
        times.push(0.0);
    }
    let mut values = Vec::with_capacity(times.len() * 4);
    let mut last = DQuat::IDENTITY;
    for &t in &times {
        let mut q = [0.0; 4];
        data.eval(t, &mut q);
        let mut q = DQuat::from_array(q);
        if q.dot(last) < 0.0 {
            q = -q;
        }
        last = q;
        values.extend(q.to_array());
    }
    Curve::linear(ValueKind::Rotation, times, values).expect("unit quaternions at increasing times")
}

/// Gives each quaternion the sign nearest to the one before, in place.
pub fn align_signs(rows: &mut [f64]) {
    for i in 4..rows.len() {
        if i % 4 != 0 {
            continue;
        }
        let dot: f64 = (0..4).map(|c| rows[i + c] * rows[i - 4 + c]).sum();
        if dot < 0.0 {
            for v in &mut rows[i..i + 4] {
                *v = -*v;
            }
        }
    }
}

/// How far a track's last value lies from its first.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopGap {
    /// Index of the track.
    pub track: usize,
    /// Last value minus first, component by component (for rotations the quaternion taking first
    /// to last).
    pub difference: Vec<f64>,
    /// Its size: length of the difference, or the angle in radians.
    pub size: f64,
}

/// The gap of each track between the clip's end and its start.
pub fn loop_gaps(clip: &Clip) -> Vec<LoopGap> {
    let gap = |(track, t): (usize, &Track)| {
        let (first, last) = (t.value_at(clip.start()), t.value_at(clip.end()));
        if t.data.kind() == ValueKind::Rotation {
            let (a, b) = (DQuat::from_slice(&first), DQuat::from_slice(&last));
            let size = math::angle_between(a, b);
            let d = a.conjugate() * b;
            return LoopGap { track, difference: d.to_array().to_vec(), size };
        }
        let difference: Vec<f64> = last.iter().zip(&first).map(|(l, f)| l - f).collect();
        let size = difference.iter().map(|d| d * d).sum::<f64>().sqrt();
        LoopGap { track, difference, size }
    };
    clip.tracks.iter().enumerate().map(gap).collect()
}

/// The clip made `step` seconds longer, with the first pose again at its end, so that it loops
/// without a jump (for clips whose last frame is one short of the first).
///
/// Tracks that already end where they began are held to the new end.
pub fn close_loop(clip: &Clip, step: f64) -> Clip {
    let end = clip.end() + step.max(0.0);
    let mut out = clip.clone();
    out.set_range(clip.start(), end).expect("finite");
    for track in &mut out.tracks {
        let moves = track.data.key_count() > track.data.curves().len();
        if !moves {
            continue;
        }
        let first = track.value_at(clip.start());
        if track.value_at(clip.end()) == first {
            continue;
        }
        if let TrackData::Euler(e) = &track.data
            && e.between == EulerBetween::Slerp
        {
            track.data = TrackData::Curve(euler_as_rotation(&track.data));
        }
        match &mut track.data {
            TrackData::Curve(c) => *c = closed(c, clip.end(), end),
            TrackData::Axes { axes, .. } => {
                for axis in axes {
                    if let Axis::Curve(c) = axis {
                        *c = closed(c, clip.end(), end);
                    }
                }
            }
            TrackData::Euler(e) => {
                for (_, axis) in &mut e.terms {
                    if let Axis::Curve(c) = axis {
                        *c = closed(c, clip.end(), end);
                    }
                }
            }
        }
    }
    out
}

/// The curve with its first value appended at `end`; the span that leads there is linear where
/// the curve blends, a step where it steps.
fn closed(curve: &Curve, old_end: f64, end: f64) -> Curve {
    if curve.len() < 2 || end <= curve.end() {
        return curve.clone();
    }
    let mut parts = curve.clone().into_parts();
    let w = parts.kind.width();
    let n = parts.times.len();
    let last_span = match parts.spans.at(n - 2) {
        s @ (SpanKind::Step | SpanKind::StepNext) => s,
        _ => SpanKind::Linear,
    };
    let mut kinds: Vec<SpanKind> = (0..n).map(|i| parts.spans.at(i)).collect();
    let mut times = parts.times.to_vec();
    let mut append = |time: f64, value: Vec<f64>, span: SpanKind| {
        times.push(time);
        parts.values.extend(value);
        let last = kinds.len() - 1;
        kinds[last] = span;
        kinds.push(span);
        if let Some(t) = &mut parts.tangents {
            for row in [&mut t.leave, &mut t.arrive] {
                row.extend(std::iter::repeat_n(0.0, w));
            }
            if !t.leave_dt.is_empty() {
                for row in [&mut t.leave_dt, &mut t.arrive_dt] {
                    row.extend(std::iter::repeat_n(0.0, w));
                }
            }
        }
    };
    // A track that ends before the clip does is held until the clip's old end first.
    if curve.end() < old_end {
        append(old_end, curve.value(n - 1).to_vec(), SpanKind::Step);
    }
    append(end, curve.value(0).to_vec(), last_span);
    parts.times = times.into();
    parts.spans =
        if kinds.iter().all(|k| *k == kinds[0]) { Spans::Uniform(kinds[0]) } else { Spans::PerKey(kinds) };
    Curve::new(parts).expect("keys appended in order")
}

/// What an additive clip is the difference to.
#[derive(Clone, Debug, PartialEq)]
pub enum AdditiveReference {
    /// The clip's own pose at its start.
    FirstKey,
    /// Each track's rest value.
    Rest,
    /// Another clip's pose at a time in seconds; tracks it does not have use their rest value.
    Clip(Box<Clip>, f64),
}

/// The clip as differences to a reference, to be laid over any pose.
///
/// Laid at full weight over the reference it gives the clip back. Translations, weights, colours
/// and numbers become differences; rotations `reference⁻¹ · q`, applied on the right of the pose
/// below; scales the ratio. Tangents are carried along exactly. Switches stay as they are. A scale
/// reference of zero in some axis leaves that axis at 1.
pub fn make_additive(clip: &Clip, reference: &AdditiveReference) -> Clip {
    let mut out = clip.clone();
    out.additive = true;
    for track in &mut out.tracks {
        let zero = match reference {
            AdditiveReference::FirstKey => track.value_at(clip.start()),
            AdditiveReference::Rest => track.rest.clone(),
            AdditiveReference::Clip(other, time) => other
                .tracks
                .iter()
                .find(|t| t.binding == track.binding && t.data.kind() == track.data.kind())
                .map_or_else(|| track.rest.clone(), |t| t.value_at(*time)),
        };
        make_track_additive(track, &zero);
    }
    out
}

fn make_track_additive(track: &mut Track, zero: &[f64]) {
    let kind = track.data.kind();
    let scale = track.binding.property == Property::Scale;
    match kind {
        ValueKind::Switch => return,
        ValueKind::Rotation => {
            let turn = undo(zero);
            if let TrackData::Euler(e) = &mut track.data {
                e.pre = turn * e.pre;
            } else if let TrackData::Curve(c) = &mut track.data {
                *c = c.turned(turn);
            }
            track.rest = vec![0.0, 0.0, 0.0, 1.0];
            return;
        }
        _ => {}
    }
    let w = kind.width();
    let mut times = vec![1.0; w];
    let mut add: Vec<f64> = zero.iter().map(|z| -z).collect();
    if scale {
        for c in 0..w {
            (times[c], add[c]) = if zero[c] == 0.0 { (0.0, 1.0) } else { (1.0 / zero[c], 0.0) };
        }
    }
    match &mut track.data {
        TrackData::Curve(c) => *c = c.affine(&times, &add),
        TrackData::Axes { axes, .. } => {
            for (c, axis) in axes.iter_mut().enumerate() {
                match axis {
                    Axis::Constant(v) => *v = *v * times[c] + add[c],
                    Axis::Curve(curve) => *curve = curve.affine(&times[c..=c], &add[c..=c]),
                }
            }
        }
        TrackData::Euler(_) => {}
    }
    track.rest = vec![if scale { 1.0 } else { 0.0 }; w];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track::Binding;

    fn clip_of(curve: Curve, property: Property) -> Clip {
        let mut clip = Clip::new("c", 0.0, curve.end()).unwrap();
        let rest = vec![0.0; curve.width()];
        clip.tracks.push(Track::new(Binding::node(0, "n", property), TrackData::Curve(curve), rest));
        clip
    }

    #[test]
    fn an_additive_cubic_subtracts_the_value_and_keeps_the_tangents() {
        let nine = vec![9.0; 6];
        let curve = Curve::hermite(
            ValueKind::Vector(3),
            vec![0.0, 1.0],
            vec![5.0, 1.0, 1.0, 8.0, 1.0, 1.0],
            nine.clone(),
            nine,
        )
        .unwrap();
        let clip =
            make_additive(&clip_of(curve.clone(), Property::Translation), &AdditiveReference::FirstKey);
        assert_eq!(clip.tracks[0].value_at(0.0), [0.0; 3]);
        assert_eq!(clip.tracks[0].value_at(1.0), [3.0, 0.0, 0.0]);
        let mut v = [0.0; 3];
        curve.eval(0.3, &mut v);
        assert!((clip.tracks[0].value_at(0.3)[0] - (v[0] - 5.0)).abs() < 1e-14);
    }

    #[test]
    fn closing_a_loop_adds_one_step_back_to_the_first_pose() {
        let curve = Curve::linear(ValueKind::Scalar, vec![0.0, 0.5, 1.0], vec![0.0, 4.0, 2.0]).unwrap();
        let clip = clip_of(curve, Property::Other("x".into()));
        assert_eq!(loop_gaps(&clip)[0].size, 2.0);
        let closed = close_loop(&clip, 0.5);
        assert_eq!(closed.duration(), 1.5);
        assert_eq!(loop_gaps(&closed)[0].size, 0.0);
        assert_eq!(closed.tracks[0].value_at(1.25), [1.0]);
    }
}
