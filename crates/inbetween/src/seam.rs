//! Whether a clip is a loop, told from its poses: what lies between its end and its start.
//!
//! glTF, BVH and many FBX files do not say how a clip repeats. Its own poses do: where the last is
//! the first again, it closes; where the first comes twice, the loop stutters for a frame; where one
//! more step as long as its neighbours would reach the first, it is a frame short. The way over
//! the ground is left out, since a walk that travels is a loop all the same.

use crate::math;
use crate::{Clip, Property, Track, ValueKind};

/// What lies between the end of a clip and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seam {
    /// Nothing moves, so that any repetition looks the same.
    Still,
    /// The last pose is the first one: a loop.
    Closed,
    /// The first pose comes twice at the end: a loop that stands still for a frame. Cut it by one.
    Doubled,
    /// One more frame leads back to the first pose: a loop without its last frame.
    /// [`close_loop`](crate::edit::close_loop) adds it.
    OneFrameShort,
    /// None of these.
    Open,
}

impl Seam {
    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Still => "still",
            Self::Closed => "closed",
            Self::Doubled => "doubled",
            Self::OneFrameShort => "one-frame-short",
            Self::Open => "open",
        }
    }
}

/// Share of a track's range that counts as no gap.
const SAME: f64 = 2e-3;

/// Looks at the seam of a clip.
///
/// `root` is the node whose translation may travel, if one does
/// ([`guess_root`](crate::playback::root_motion::guess_root)). A frame is one of the clip's rate, or the shortest
/// time between two keys where it has none. Gaps are measured against each track's own range, 0.2 %
/// of which count as none.
///
/// ```
/// use inbetween::seam::{Seam, seam};
/// # use inbetween::Clip;
/// let clip = Clip::new("pose", 0.0, 1.0).unwrap();
/// assert_eq!(seam(&clip, None), Seam::Still);
/// ```
pub fn seam(clip: &Clip, root: Option<usize>) -> Seam {
    match of(clip, root) {
        // Where nothing else moves, the way is what repeats.
        Seam::Still if root.is_some() => of(clip, None),
        found => found,
    }
}

fn of(clip: &Clip, root: Option<usize>) -> Seam {
    let times = clip.key_times();
    let shortest = times.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let frame = clip.rate.map_or(shortest, |r| r.time_of(1));
    if !(frame.is_finite() && frame > 0.0) {
        return Seam::Still;
    }
    let (start, end) = (clip.start(), clip.end());
    let (mut any, mut closed, mut doubled, mut short) = (false, true, true, true);
    for track in clip.tracks.iter().filter(|t| t.enabled) {
        let travels =
            track.binding.property == Property::Translation && root.is_some() && track.binding.node == root;
        let first = track.value_at(start);
        let own = track.data.key_times();
        let range = own.iter().map(|t| apart(track, &first, &track.value_at(*t))).fold(0.0, f64::max);
        if travels || range <= noise(track, &first) {
            continue;
        }
        any = true;
        let same = SAME * range;
        let last = track.value_at(end);
        let gap = apart(track, &first, &last);
        closed &= gap <= same;
        doubled &= gap <= same && apart(track, &first, &track.value_at(end - frame)) <= same;
        // One step back to the start, about as long as the steps beside it and the same way.
        let (before, after) = (track.value_at(end - frame), track.value_at(start + frame));
        let steps = apart(track, &before, &last).max(apart(track, &first, &after));
        let around = apart(track, &before, &first);
        short &= gap <= same || (gap <= 1.5 * steps && around > gap - same);
    }
    match (any, closed, doubled, short) {
        (false, ..) => Seam::Still,
        // What has no more than a few frames stands at its start anyhow.
        (_, true, true, _) if end - start > 4.0 * frame => Seam::Doubled,
        (_, true, ..) => Seam::Closed,
        (_, _, _, true) if end - start > 4.0 * frame => Seam::OneFrameShort,
        _ => Seam::Open,
    }
}

/// What numbers of 32 bits leave uncertain: less is no motion.
fn noise(track: &Track, value: &[f64]) -> f64 {
    if track.data.kind() == ValueKind::Rotation {
        return 1e-5;
    }
    5e-7 * value.iter().fold(1e-3, |most: f64, v| most.max(v.abs()))
}

/// How far two values of a track are apart, rotations by their angle.
fn apart(track: &Track, a: &[f64], b: &[f64]) -> f64 {
    if track.data.kind() == ValueKind::Rotation {
        return math::angle_between(glam::DQuat::from_slice(a), glam::DQuat::from_slice(b));
    }
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binding, Curve, FrameRate, TrackData};

    fn clip(frames: usize, value: impl Fn(f64) -> f64) -> Clip {
        let times: Vec<f64> = (0..frames).map(|i| i as f64 / 30.0).collect();
        let mut clip = Clip::new("c", 0.0, times[frames - 1]).unwrap();
        clip.rate = Some(FrameRate::hz(30));
        let values = times.iter().flat_map(|t| [value(*t), 0.0, 0.0]).collect();
        let curve = Curve::linear(ValueKind::Vector(3), times, values).unwrap();
        let binding = Binding::node(0, "n", Property::Translation);
        clip.tracks.push(Track::new(binding, TrackData::Curve(curve), vec![0.0; 3]));
        clip
    }

    fn found(clip: &Clip) -> Seam {
        seam(clip, None)
    }

    #[test]
    fn a_loop_that_closes_one_that_stutters_and_one_that_is_a_frame_short_are_told_apart() {
        let wave = |t: f64| math::sin(std::f64::consts::TAU * t.min(1.0));
        assert_eq!(found(&clip(31, wave)), Seam::Closed);
        assert_eq!(found(&clip(32, wave)), Seam::Doubled);
        assert_eq!(found(&clip(30, wave)), Seam::OneFrameShort);
        assert_eq!(found(&clip(20, wave)), Seam::Open);
        assert_eq!(found(&clip(28, wave)), Seam::Open);
        assert_eq!(found(&clip(31, |t| t)), Seam::Open);
        assert_eq!(found(&clip(31, |_| 1.0)), Seam::Still);
        assert_eq!(
            crate::edit::close_loop(&clip(30, wave), 1.0 / 30.0).duration(),
            clip(31, wave).duration()
        );
    }

    #[test]
    fn the_way_of_the_root_is_left_out() {
        let mut walk = clip(31, |t| t);
        assert_eq!(seam(&walk, Some(0)), Seam::Open, "nothing else moves");
        let mut swing = clip(31, |t| math::sin(std::f64::consts::TAU * t)).tracks.remove(0);
        swing.binding = Binding::node(1, "arm", Property::Translation);
        walk.tracks.push(swing);
        assert_eq!(seam(&walk, Some(0)), Seam::Closed);
        assert_eq!(seam(&walk, None), Seam::Open);
    }
}
