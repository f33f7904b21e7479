//! A compressed clip behind the door through which clips play: [`inbetween::playback::sampler::Sampler`].
//!
//! Tracks are numbered as a player sees them: for each node in turn its driven rotation,
//! translation and scale, then the tracks that move no node. A track switched off is not written
//! and its node stands at rest there; a pose decodes the rest of the clip as fast as ever.

use std::sync::Arc;

use inbetween::playback::runtime::{LANES, RigError, RuntimePose, RuntimeRig};
use inbetween::playback::sampler::{Sampler, TrackSink};
use inbetween::{Binding, Property, Skeleton, TrackMask, ValueKind};

use crate::clip::{CompressedClip, pose_property};
use crate::decode::{JointTransform, PoseOut, Window};

/// What a track is to the clip.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Rotation, translation or scale (0, 1, 2) of a node.
    Node(usize, usize),
    /// A track of [`CompressedClip::tracks`].
    Track(usize, ValueKind),
}

/// A player of a compressed clip. The clip and rig are shared; the rest is scratch space of its
/// own, so that sampling allocates nothing.
#[derive(Clone, Debug)]
pub struct Decoder {
    clip: Arc<CompressedClip<'static>>,
    rig: Arc<RuntimeRig>,
    /// Place of each node in the rig's order.
    place: Arc<[u32]>,
    tracks: Arc<[(Binding, Source)]>,
    windows: Vec<Window>,
    pose: Vec<JointTransform>,
    value: Vec<f32>,
}

impl Decoder {
    /// A player of `clip` on the skeleton it came with.
    ///
    /// # Errors
    /// If the skeleton cannot be played with plain matrices.
    ///
    /// # Panics
    /// If the clip is of another number of nodes than the skeleton.
    pub fn new(clip: Arc<CompressedClip<'static>>, skeleton: &Skeleton) -> Result<Self, RigError> {
        assert_eq!(clip.node_count(), skeleton.len(), "a clip of this skeleton");
        let rig = Arc::new(RuntimeRig::new(skeleton)?);
        let mut place = vec![0u32; skeleton.len()];
        for (i, n) in rig.nodes().iter().enumerate() {
            place[*n] = i as u32;
        }
        let mut tracks = Vec::new();
        for (n, j) in skeleton.joints().iter().enumerate() {
            for (p, property) in
                [Property::Rotation, Property::Translation, Property::Scale].into_iter().enumerate()
            {
                if clip.drives(n, p) {
                    tracks.push((Binding::node(n, j.name.clone(), property), Source::Node(n, p)));
                }
            }
        }
        let mut widest = 4;
        for (i, t) in clip.tracks().enumerate() {
            widest = widest.max(t.kind.width());
            if t.binding.node.is_none() || pose_property(&t.binding.property).is_none() {
                tracks.push((t.binding.clone(), Source::Track(i, t.kind)));
            }
        }
        Ok(Self {
            pose: vec![JointTransform::IDENTITY; skeleton.len()],
            value: vec![0.0; widest],
            windows: clip.windows(),
            clip,
            rig,
            place: place.into(),
            tracks: tracks.into(),
        })
    }

    /// The clip.
    pub fn clip(&self) -> &Arc<CompressedClip<'static>> {
        &self.clip
    }

    /// The rig in whose order poses come.
    pub fn rig(&self) -> &Arc<RuntimeRig> {
        &self.rig
    }
}

impl Sampler for Decoder {
    fn range(&self) -> (f64, f64) {
        (self.clip.start(), self.clip.end())
    }

    fn track_count(&self) -> usize {
        self.tracks.len()
    }

    fn binding(&self, track: usize) -> &Binding {
        &self.tracks[track].0
    }

    fn sample(&mut self, time: f64, mask: &TrackMask, sink: &mut dyn TrackSink) {
        self.pose.copy_from_slice(self.clip.still());
        self.clip.play_pose(time, &mut self.windows, &mut &mut self.pose[..]);
        for (i, (_, source)) in self.tracks.iter().enumerate() {
            if !mask.is_on(i) {
                continue;
            }
            match *source {
                Source::Node(n, 0) => sink.value(i, ValueKind::Rotation, &self.pose[n].rotation),
                Source::Node(n, 1) => sink.value(i, ValueKind::Vector(3), &self.pose[n].translation),
                Source::Node(n, _) => sink.value(i, ValueKind::Vector(3), &self.pose[n].scale),
                Source::Track(t, kind) => {
                    let value = &mut self.value[..kind.width()];
                    self.clip.value(t, time, value);
                    sink.value(i, kind, value);
                }
            }
        }
    }

    fn sample_pose(&mut self, time: f64, mask: &TrackMask, pose: &mut RuntimePose) {
        let mut out = Slots { place: &self.place, pose };
        for (n, t) in self.clip.still().iter().enumerate() {
            out.all(n, t);
        }
        self.clip.play_pose(time, &mut self.windows, &mut out);
        for (i, (_, source)) in self.tracks.iter().enumerate() {
            if let Source::Node(n, p) = *source
                && !mask.is_on(i)
            {
                let rest = self.clip.rest()[n];
                match p {
                    0 => out.rotation(n, rest.rotation),
                    1 => (0..3).for_each(|a| out.translation(n, a, rest.translation[a])),
                    _ => (0..3).for_each(|a| out.scale(n, a, rest.scale[a])),
                }
            }
        }
    }
}

/// A runtime pose as a place to write to.
struct Slots<'p> {
    place: &'p [u32],
    pose: &'p mut RuntimePose,
}

impl Slots<'_> {
    fn all(&mut self, node: usize, t: &JointTransform) {
        self.rotation(node, t.rotation);
        for a in 0..3 {
            self.translation(node, a, t.translation[a]);
            self.scale(node, a, t.scale[a]);
        }
    }
}

impl PoseOut for Slots<'_> {
    #[inline(always)]
    fn rotation(&mut self, node: usize, q: [f32; 4]) {
        let at = self.place[node] as usize;
        if let Some(block) = self.pose.blocks.get_mut(at / LANES) {
            for c in 0..4 {
                block.rotation[c][at % LANES] = q[c];
            }
        }
    }
    #[inline(always)]
    fn translation(&mut self, node: usize, axis: usize, v: f32) {
        let at = self.place[node] as usize;
        if let Some(block) = self.pose.blocks.get_mut(at / LANES) {
            block.translation[axis][at % LANES] = v;
        }
    }
    #[inline(always)]
    fn scale(&mut self, node: usize, axis: usize, v: f32) {
        let at = self.place[node] as usize;
        if let Some(block) = self.pose.blocks.get_mut(at / LANES) {
            block.scale[axis][at % LANES] = v;
        }
    }
    #[inline(always)]
    fn track(&mut self, _: usize, _: usize, _: f32) {}
}
