//! Keys that change nothing, and steps that were baked away.

use crate::clip::Clip;
use crate::curve::{Curve, SpanKind, Spans};
use crate::track::TrackData;

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
/// - it has at least four keys, a frame apart (the shortest gap; a plateau may also have lost its inner keys),
/// - it stands still everywhere except in single frames: every change happens between two keys one frame
///   apart, and the values before and after are held, bit for bit, for a frame at least,
/// - or, for a flash of a single frame, the value comes back to exactly where it was, and longer plateaus
///   make up most of the curve.
///
/// Returns the indices of the keys that begin a plateau (the first key among them), to be used with stepped
/// interpolation, or `None`. A value that moves even once over two frames is motion, not a step.
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
        // A plateau of one key in the middle; at the ends of the clip nothing says how long it lasted.
        if end - start == 1 && start > 0 && end < n {
            if !same(start - 1, end) {
                return None;
            }
            flashes += 1;
        }
    }
    // A curve that goes to and fro on every other frame is motion. So is one that has no real plateau.
    let plateaus = starts.len() - flashes;
    let held = n - starts.len();
    (flashes < plateaus && held >= starts.len()).then_some(starts)
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
