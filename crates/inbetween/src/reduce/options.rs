//! What to reduce to, and how far off the result may be.

use crate::metric::Shell;
use crate::time::FrameRate;
use crate::track::Property;

use super::literal::Literal;

/// The kind of keys to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Keys {
    /// Straight lines between keys, slerps for rotations.
    #[default]
    Linear,
    /// Cubic keys with tangents, which an artist can go on editing. Authored tangents are the start where the
    /// source has them, finite differences elsewhere.
    Cubic,
    /// Only keys that change nothing go; every curve stays what it is.
    Keep,
    /// The published triplet rule with its one tolerance for everything, for comparison. It has no bound: the
    /// report shows how far off it ends up.
    Literal {
        /// Errors below it are dropped, whatever the unit. The published code has 0.05.
        tolerance: f64,
        /// Which of the published code's habits to follow.
        habits: Literal,
    },
}

/// How a bound in the world is shared out over the tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Together: keys go one by one while the true error in the world allows it.
    #[default]
    Together,
    /// The usual way, for comparison: each track alone, within the bound divided by the number of moving nodes
    /// on the longest chain through its node, as an angle over the longest reach of what hangs on it. Straight
    /// keys only. It keeps two to three times the keys on captured motion.
    ByDepth,
}

/// A tolerance for the tracks of one property, or of one property of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackTolerance {
    /// Name of the target; `None` for every target.
    pub target: Option<String>,
    /// The property.
    pub property: Property,
    /// Largest error in the track's own unit: metres, radians, or whatever the property is in.
    pub tolerance: f64,
}

/// How to reduce a clip. The default drops only what changes nothing.
///
/// Two kinds of bound can be given, alone or together: one in the world, which is shared out over the tracks
/// so that it is met with few keys, and one for each track in its own unit. A track under neither loses only
/// keys that change nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Kind of keys.
    pub keys: Keys,
    /// Largest distance, metres in the world, by which any watched point of any node may be off, at any check
    /// time (see [`crate::metric`]).
    pub max_error: Option<f64>,
    /// Which points of a node are watched.
    pub shell: Shell,
    /// How the bound in the world is shared out.
    pub sharing: Sharing,
    /// Largest length of the error of translations, metres.
    pub length_tolerance: Option<f64>,
    /// Largest angle of the error of rotations, radians.
    pub angle_tolerance: Option<f64>,
    /// Largest length of the error of scales, as a factor.
    pub scale_tolerance: Option<f64>,
    /// Largest length of the error of tracks that move no node (weights, lights, colours …), each in its own
    /// unit.
    pub value_tolerance: Option<f64>,
    /// Tolerances that go before the four above; of several that fit, the last counts.
    pub tolerances: Vec<TrackTolerance>,
    /// Whether the value of a key that stays may be moved, within the bound, where that saves other keys. Only
    /// under [`max_error`](Self::max_error). The first and the last key of a track never move.
    pub refit: bool,
    /// Whether steps that were baked into two keys a frame apart become steps again.
    pub restore_steps: bool,
    /// Whether a track of curved angles or components that would need as many keys as it has key times, or more,
    /// stays as it was drawn. Set it to `false` for a format that has no such tracks (glTF, BVH): there they would
    /// be fitted anew on writing, with more keys.
    pub keep_components: bool,
    /// Drop tracks that stand still at the rest value, if no other clip moves what they drive (see
    /// [`reduce_one_of`](super::reduce_one_of)). Without it every track stays, with one key at least.
    pub drop_at_rest: bool,
    /// Frames at which curved tracks are sampled besides their keys; the clip's own rate if not given, else the
    /// ladder 96, 60, 48, 30, 24.
    pub rate: Option<FrameRate>,
    /// Samples of a track above which the ladder goes down.
    pub sample_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keys: Keys::Linear,
            max_error: None,
            shell: Shell::default(),
            sharing: Sharing::Together,
            length_tolerance: None,
            angle_tolerance: None,
            scale_tolerance: None,
            value_tolerance: None,
            tolerances: Vec::new(),
            refit: true,
            restore_steps: true,
            keep_components: true,
            drop_at_rest: false,
            rate: None,
            sample_limit: crate::sample::DEFAULT_SAMPLE_LIMIT,
        }
    }
}

impl Options {
    /// A bound in the world, in metres, everything else as by default.
    pub fn world(max_error: f64) -> Self {
        Self { max_error: Some(max_error), ..Self::default() }
    }

    /// The same tolerance for every track but rotations, in its own unit, and another in radians for those.
    pub fn per_track(tolerance: Option<f64>, angle: Option<f64>) -> Self {
        Self {
            length_tolerance: tolerance,
            scale_tolerance: tolerance,
            value_tolerance: tolerance,
            angle_tolerance: angle,
            ..Self::default()
        }
    }
}
