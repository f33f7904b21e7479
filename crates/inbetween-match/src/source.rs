//! Where the poses that are played come from: clips, anything that can be played, an engine's own.
//!
//! A database holds features, never poses. What shows a pose is a [`PoseSource`]: the clips the
//! database was baked from, or players of them (such as decoders of compressed clips), which may
//! differ from the clips by as much as their compression allows.

use std::sync::Arc;

use inbetween::playback::runtime::{RuntimePose, RuntimeRig};
use inbetween::playback::sampler::Sampler;
use inbetween::{Clip, LocalPose, Skeleton, TrackMask, Transform};

use crate::database::MotionDatabase;
use crate::error::MatchError;

/// Where the poses of a database's clips come from.
pub trait PoseSource {
    /// The skeleton of every pose.
    fn skeleton(&self) -> &Arc<Skeleton>;

    /// Writes the local pose of a clip of the database at a time of that clip, in seconds.
    fn pose(&mut self, clip: u32, time_s: f64, out: &mut LocalPose);
}

/// Poses sampled from clips.
#[derive(Debug, Clone)]
pub struct ClipPoses {
    skeleton: Arc<Skeleton>,
    clips: Vec<Arc<Clip>>,
}

impl ClipPoses {
    /// The clips of a database, in its order.
    ///
    /// # Errors
    /// When their number is not that of the database's clips.
    pub fn new(
        database: &MotionDatabase,
        skeleton: Arc<Skeleton>,
        clips: Vec<Arc<Clip>>,
    ) -> Result<Self, MatchError> {
        same_number("the list of clips", database, clips.len())?;
        Ok(Self { skeleton, clips })
    }
}

impl PoseSource for ClipPoses {
    fn skeleton(&self) -> &Arc<Skeleton> {
        &self.skeleton
    }
    fn pose(&mut self, clip: u32, time_s: f64, out: &mut LocalPose) {
        out.sample(&self.clips[clip as usize], &self.skeleton, time_s, &TrackMask::all());
    }
}

/// Poses from players of the clips, such as decoders of compressed ones.
pub struct SampledPoses<'a> {
    skeleton: Arc<Skeleton>,
    rig: RuntimeRig,
    players: Vec<Box<dyn Sampler + 'a>>,
    pose: RuntimePose,
}

impl<'a> SampledPoses<'a> {
    /// The players of a database's clips, in its order.
    ///
    /// - `skeleton`: the one all players give poses of, in the order of its rig.
    ///
    /// # Errors
    /// When their number is not that of the database's clips, when a player ends before its clip
    /// does in the database (by more than a thousandth of a second), or when the skeleton cannot
    /// be played with plain matrices.
    pub fn new(
        database: &MotionDatabase,
        skeleton: Arc<Skeleton>,
        players: Vec<Box<dyn Sampler + 'a>>,
    ) -> Result<Self, MatchError> {
        same_number("the list of players", database, players.len())?;
        for (clip, player) in database.clips().iter().zip(&players) {
            let (start, end) = player.range();
            if ((end - start) - clip.duration_s).abs() > 1e-3 {
                return Err(MatchError::Bake(format!(
                    "clip {:?} plays for {:.3} s but was baked with {:.3} s; bake the database again",
                    clip.name,
                    end - start,
                    clip.duration_s
                )));
            }
        }
        let rig = RuntimeRig::new(&skeleton).map_err(|e| MatchError::Bake(e.to_string()))?;
        let pose = rig.rest().clone();
        Ok(Self { skeleton, rig, players, pose })
    }
}

impl PoseSource for SampledPoses<'_> {
    fn skeleton(&self) -> &Arc<Skeleton> {
        &self.skeleton
    }
    fn pose(&mut self, clip: u32, time_s: f64, out: &mut LocalPose) {
        self.players[clip as usize].sample_pose(time_s, &TrackMask::all(), &mut self.pose);
        out.joints.resize(self.skeleton.len(), Transform::IDENTITY);
        for (place, node) in self.rig.nodes().iter().enumerate() {
            out.joints[*node] = self.pose.get(place);
        }
    }
}

fn same_number(what: &'static str, database: &MotionDatabase, found: usize) -> Result<(), MatchError> {
    let expected = database.clips().len();
    if found == expected { Ok(()) } else { Err(MatchError::Length { what, expected, found }) }
}
