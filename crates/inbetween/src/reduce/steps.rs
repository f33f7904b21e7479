//! Keys that change nothing, and steps that were baked away.

use crate::clip::Clip;
use crate::curve::{Curve, SpanKind, Spans, ValueKind};
use crate::metric::moves_node;
use crate::track::TrackData;

use super::rotation;

/// The keys of a stepped curve that change its value: the first, each that differs from the one before, and
/// nothing else. Exact: no tolerance.
///
/// `values`: a row of `width` numbers per key.
pub fn changes(values: &[f64], width: usize) -> Vec<usize> {
    let n = values.len().checked_div(width).unwrap_or(0);
    (0..n).filter(|&k| k == 0 || row(values, width, k) != row(values, width, k - 1)).collect()
}

fn row(values: &[f64], width: usize, index: usize) -> &[f64] {
    &values[index * width..(index + 1) * width]
}

/// Finds a stepped curve that was baked: sampled once a frame and joined by straight lines.
///
/// Baking turns a step into two keys a frame apart, with a ramp between them that never was. The whole curve
/// is taken for a baked step curve only where nothing else explains it:
///
/// - it has at least four keys, and a frame is the shortest gap between two,
/// - it stands still, bit for bit, everywhere except in single frames: every change happens between two keys
///   one frame apart, and the values before and after each have at least two keys,
/// - or, for a flash of a single frame, the value comes back to exactly where it was, and real plateaus
///   outnumber the flashes.
///
/// Returns the indices of the keys that begin a plateau (the first key among them), to be used with stepped
/// interpolation, or `None`. A value that moves even once over two frames is motion, not a step; so is a single
/// odd frame at an end of the curve, which may be a pose to start from.
pub fn baked_steps(times: &[f64], values: &[f64], width: usize) -> Option<Vec<usize>> {
    let n = times.len();
    if width == 0 || n < 4 || values.len() != n * width {
        return None;
    }
    let frame = times.windows(2).map(|t| t[1] - t[0]).fold(f64::INFINITY, f64::min);
    let same = |a: usize, b: usize| row(values, width, a) == row(values, width, b);
    let starts = changes(values, width);
    if starts.len() < 2 {
        return None;
    }
    let mut flashes = 0;
    for (nth, &start) in starts.iter().enumerate() {
        let end = starts.get(nth + 1).copied().unwrap_or(n);
        if start > 0 && times[start] - times[start - 1] > 1.5 * frame {
            return None;
        }
        if end - start == 1 {
            if start == 0 || end == n || !same(start - 1, end) {
                return None;
            }
            flashes += 1;
        }
    }
    (flashes < starts.len() - flashes).then_some(starts)
}

/// The keys of a straight curve without which it is the same curve: those on the line between their
/// neighbours to within rounding, and none else.
///
/// A key goes only if its value differs from the line between the keys that stay by at most `1e-12` times the
/// largest value of the span, which is what rounding leaves of an exact line.
pub fn redundant(times: &[f64], values: &[f64], width: usize) -> Vec<usize> {
    let n = times.len();
    let largest = values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let tolerances = vec![1e-12 * largest; width];
    let mut spans = super::ball::ComponentCone::new(times, &values[..n * width], width, &tolerances);
    super::search::farthest(&mut spans)
}

/// Whether a node's jump from one key's value to another's is more than a still value that was stored twice
/// with different rounding: one part in a hundred of its size, or of a radian.
fn plain(curve: &Curve, a: usize, b: usize) -> bool {
    let (a, b) = (curve.value(a), curve.value(b));
    if curve.kind() == ValueKind::Rotation {
        return rotation::angle(rotation::row(a, 0), rotation::row(b, 0)) > 0.01;
    }
    let largest = a.iter().chain(b).fold(0.0_f64, |m, v| m.max(v.abs()));
    a.iter().zip(b).any(|(x, y)| (x - y).abs() > 0.01 * largest)
}

/// The clip with every baked step turned back into a step, and the indices of the tracks this changed.
///
/// Only tracks of one curve of straight spans are looked at; see [`baked_steps`] for what counts as a step.
pub fn restore(clip: &Clip) -> (Clip, Vec<usize>) {
    let mut clip = clip.clone();
    let mut restored = Vec::new();
    for (index, track) in clip.tracks.iter_mut().enumerate() {
        let TrackData::Curve(curve) = &track.data else { continue };
        if !matches!(curve.parts().spans, Spans::Uniform(SpanKind::Linear)) {
            continue;
        }
        let width = curve.width();
        let Some(kept) = baked_steps(curve.times(), curve.values(), width) else { continue };
        if moves_node(&track.binding) && !kept.windows(2).all(|k| plain(curve, k[0], k[1])) {
            continue;
        }
        let mut parts = curve.parts().clone();
        parts.times = kept.iter().map(|&k| curve.times()[k]).collect();
        parts.values = kept.iter().flat_map(|&k| row(curve.values(), width, k).to_vec()).collect();
        parts.spans = Spans::Uniform(SpanKind::Step);
        if let Ok(stepped) = Curve::new(parts) {
            track.data = TrackData::Curve(stepped);
            restored.push(index);
        }
    }
    (clip, restored)
}
