//! One door for every kind of clip: a clip of curves and a compressed one are played the same way.
//!
//! A [`Sampler`] gives the values of its tracks at a time, to a sink (so that an engine receives
//! them in its own components) or as a whole pose. A track that a mask switches off is neither
//! evaluated nor written.

use std::sync::Arc;

use crate::clip::Clip;
use crate::curve::ValueKind;
use crate::pose::LocalPose;
use crate::skeleton::Skeleton;
use crate::track::{Binding, TrackMask};

use super::runtime::{RigError, RuntimePose, RuntimeRig};

/// Receives the values of tracks.
pub trait TrackSink {
    /// The value of track `track`, as wide as its kind: 1 or 0 for switches, x, y, z, w for
    /// rotations.
    fn value(&mut self, track: usize, kind: ValueKind, value: &[f32]);
}

/// A sink that keeps every value, for tests and tools.
impl TrackSink for Vec<(usize, Vec<f32>)> {
    fn value(&mut self, track: usize, _kind: ValueKind, value: &[f32]) {
        self.push((track, value.to_vec()));
    }
}

/// Something that can be played: a clip, or a decoder of a compressed one.
pub trait Sampler {
    /// Where it begins and ends, seconds on its own clock.
    fn range(&self) -> (f64, f64);

    /// Number of tracks.
    fn track_count(&self) -> usize;

    /// What a track drives.
    fn binding(&self, track: usize) -> &Binding;

    /// Gives `sink` the values at `time` (held outside the range) of every track that is on.
    fn sample(&mut self, time: f64, mask: &TrackMask, sink: &mut dyn TrackSink);

    /// The local pose at `time`; joints without a playing track stand at rest. Allocates nothing.
    fn sample_pose(&mut self, time: f64, mask: &TrackMask, pose: &mut RuntimePose);
}

/// A clip of curves on its skeleton, as a [`Sampler`].
#[derive(Clone, Debug)]
pub struct ClipSampler {
    clip: Arc<Clip>,
    skeleton: Arc<Skeleton>,
    rig: Arc<RuntimeRig>,
    local: LocalPose,
    values: Vec<f64>,
    narrow: Vec<f32>,
}

impl ClipSampler {
    /// A player of `clip`; the clip, skeleton and rig are shared, the rest is scratch space.
    ///
    /// # Errors
    /// If the skeleton cannot be played with plain matrices.
    pub fn new(clip: Arc<Clip>, skeleton: Arc<Skeleton>) -> Result<Self, RigError> {
        let rig = Arc::new(RuntimeRig::new(&skeleton)?);
        let widest = clip.tracks.iter().map(|t| t.data.kind().width()).max().unwrap_or(0);
        Ok(Self {
            clip,
            rig,
            local: LocalPose::rest(&skeleton),
            skeleton,
            values: vec![0.0; widest],
            narrow: vec![0.0; widest],
        })
    }

    /// The rig in whose order poses come.
    pub fn rig(&self) -> &Arc<RuntimeRig> {
        &self.rig
    }
}

impl Sampler for ClipSampler {
    fn range(&self) -> (f64, f64) {
        (self.clip.start(), self.clip.end())
    }

    fn track_count(&self) -> usize {
        self.clip.tracks.len()
    }

    fn binding(&self, track: usize) -> &Binding {
        &self.clip.tracks[track].binding
    }

    fn sample(&mut self, time: f64, mask: &TrackMask, sink: &mut dyn TrackSink) {
        for (index, track) in self.clip.playing(mask) {
            let kind = track.data.kind();
            let w = kind.width();
            track.data.eval(time, &mut self.values[..w]);
            for (to, from) in self.narrow.iter_mut().zip(&self.values[..w]) {
                *to = *from as f32;
            }
            sink.value(index, kind, &self.narrow[..w]);
        }
    }

    fn sample_pose(&mut self, time: f64, mask: &TrackMask, pose: &mut RuntimePose) {
        self.local.sample(&self.clip, &self.skeleton, time, mask);
        self.rig.gather(&self.local, pose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeleton::{Joint, Transform};
    use crate::{Curve, Property, Track, TrackData};

    #[test]
    fn a_track_switched_off_is_not_written_and_its_joint_rests() {
        let skeleton = Arc::new(Skeleton::new(vec![Joint::new("a", None, Transform::IDENTITY)]).unwrap());
        let mut clip = Clip::new("c", 0.0, 1.0).unwrap();
        let curve =
            Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 2.0, 0.0, 0.0]).unwrap();
        clip.tracks.push(Track::new(
            Binding::node(0, "a", Property::Translation),
            TrackData::Curve(curve),
            vec![0.0; 3],
        ));
        let mut player = ClipSampler::new(Arc::new(clip), skeleton).unwrap();
        let mut pose = RuntimePose::identity(1);
        let mut mask = TrackMask::all();
        player.sample_pose(0.5, &mask, &mut pose);
        assert_eq!(pose.get(0).translation.x, 1.0);
        let mut seen: Vec<(usize, Vec<f32>)> = Vec::new();
        player.sample(0.5, &mask, &mut seen);
        assert_eq!(seen, [(0, vec![1.0, 0.0, 0.0])]);
        mask.set(0, false);
        seen.clear();
        player.sample(0.5, &mask, &mut seen);
        player.sample_pose(0.5, &mask, &mut pose);
        assert!(seen.is_empty());
        assert_eq!(pose.get(0).translation.x, 0.0);
    }
}
