//! What a pose may be described by: one channel a file, and the list of them.
//!
//! To add one: write `channels/<name>.rs` with a type that implements [`FeatureChannel`]
//! and a `read` function, then its `mod` and one line in [`CHANNELS`]. What several channels
//! share is in `of_joint.rs` and `over_ground.rs`.

mod contact;
mod joint_facing;
mod joint_position;
mod joint_velocity;
mod of_joint;
mod over_ground;
mod phase;
mod root_turn;
mod root_velocity;
mod track;
mod trajectory_facing;
mod trajectory_position;

use std::fmt::Debug;

use inbetween::glam::DVec3;

use crate::database::Family;
use crate::error::MatchError;
use crate::motion::{Motion, Waypoint};
use crate::schema::Fields;

/// What a channel measures, how it is baked from a clip and how it is filled for a query.
pub trait FeatureChannel: Debug + Send + Sync {
    /// The channel's name where the schema gives none.
    fn default_name(&self) -> String;

    /// One name a column; their number is the channel's width.
    fn columns(&self) -> Vec<String>;

    /// Which side of a match it speaks for.
    fn family(&self) -> Family;

    /// The joints it asks for, by name.
    fn joints(&self) -> Vec<&str> {
        Vec::new()
    }

    /// How far before (≤ 0) and after (≥ 0) a pose it looks, in seconds.
    fn reach_s(&self) -> (f64, f64) {
        (0.0, 0.0)
    }

    /// Appends the pose's numbers at `time` of the clip, one a column.
    ///
    /// `joints` are the nodes of [`FeatureChannel::joints`], in their order.
    ///
    /// # Errors
    /// When the clip lacks what the channel measures.
    fn bake(
        &self,
        motion: &mut Motion,
        joints: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError>;

    /// Puts what the player wants into a query.
    ///
    /// `out` has one number a column and holds those of the pose that plays; a channel of
    /// the body leaves them, a channel of the path replaces them.
    fn fill(&self, wish: &Wish<'_>, out: &mut [f32]) {
        let _ = (wish, out);
    }
}

/// What the player wants, in the character's frame now.
pub struct Wish<'a> {
    /// Where to be and face so many seconds from now (from before now, where negative).
    pub path: &'a dyn Fn(f64) -> Waypoint,
    /// The velocity now, m/s.
    pub velocity: DVec3,
    /// The turn rate now, rad/s.
    pub turn_rate: f64,
}

/// A kind of channel, as the schema names it.
#[derive(Debug)]
pub struct ChannelKind {
    /// The `type` in the schema.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub about: &'static str,
    /// Reads the rest of the channel's table.
    pub(crate) read: fn(&mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError>,
}

macro_rules! channels {
    ($($module:ident: $about:literal,)*) => {
        /// Every kind of channel.
        pub const CHANNELS: &[ChannelKind] = &[
            $(ChannelKind { name: stringify!($module), about: $about, read: $module::read },)*
        ];
    };
}

channels! {
    joint_position: "where a joint is, in the character's frame (x, y, z in m)",
    joint_velocity: "how fast a joint moves through the world, in that frame (x, y, z in m/s)",
    joint_facing: "where an axis of a joint points, in that frame (a unit vector)",
    root_velocity: "how fast the character moves over the ground (x, z in m/s)",
    root_turn: "how fast it turns (rad/s, positive to the left)",
    trajectory_position: "where it will be or was, at any offsets (x, z in m each)",
    trajectory_facing: "where it will face or faced, at any offsets (x, z each)",
    contact: "whether a joint stands on the ground (1 or 0)",
    phase: "how far it is through a step, from one touch-down of a joint to the next",
    track: "a number of any track of the clip",
}
