//! Motion matching without an engine: features baked from clips, exact search, and an
//! answer to "why this pose".
//!
//! A *pose* is a moment of a clip; its *features* are the numbers that matter for what
//! may follow: where the feet are and go, where the root goes. Baking turns clips into
//! rows of features, a [`MotionDatabase`] holds them ready for search, and a query for
//! what the player wants finds the row that fits best.
//!
//! ```
//! use inbetween_match::{ChannelColumns, DatabaseOptions, Family, Filter, MotionDatabase, Poses, Query, Scratch};
//!
//! // Four poses with one feature, a speed in m/s; the last is a strafe (bit 2).
//! let poses = Poses {
//!     channels: vec![ChannelColumns {
//!         name: "speed".into(),
//!         columns: vec!["speed".into()],
//!         weight: 1.0,
//!         family: Family::Path,
//!     }],
//!     values: vec![0.0, 1.5, 4.0, 1.9],
//!     tags: vec![0, 0, 0, 0b100],
//!     ..Poses::default()
//! };
//! let database = MotionDatabase::new(poses, DatabaseOptions::default())?;
//! let query = Query {
//!     features: &[2.0],
//!     filter: Filter { exclude: 0b100, ..Filter::default() },
//!     ..Query::default()
//! };
//! let best = database.search(&query, &mut Scratch::new())?.expect("a pose that is no strafe");
//! assert_eq!(best.row, 1);
//! # Ok::<(), inbetween_match::MatchError>(())
//! ```

mod axes;
mod bake;
mod blend;
mod categories;
pub mod channels;
mod columns;
mod database;
mod error;
mod explain;
mod file;
mod foot_lock;
mod judge;
mod kernel;
mod motion;
mod normalise;
mod order;
mod play;
mod rows;
mod schema;
mod script;
mod search;
mod source;
mod spring;
mod steering;
mod tree;
mod wide;

pub use bake::{BakeClip, BakeReport, ClipReport, bake, clip_hash, features_at};
pub use blend::{Blend, Blender};
pub use categories::{DO_NOT_USE, Filter, Include};
pub use database::{ChannelColumns, ClipSource, DatabaseOptions, Family, MotionDatabase, Poses, Run};
pub use error::MatchError;
pub use explain::{Explanation, RowCost, Verdict};
pub use file::{MAGIC, VERSION, Verify};
pub use judge::{Change, Judgement, Recording, Share, judge, record};
pub use motion::{Motion, Standing, Waypoint};
pub use normalise::Normalisation;
pub use play::{Controller, Frame, Input, Settings};
pub use rows::RowFormat;
pub use schema::{CategoryTrack, Ends, Interval, Schema, SchemaChannel, Tag};
pub use script::{Script, Step};
pub use search::{Continuing, Extra, Match, Method, Query, Scratch, Weights};
pub use source::{ClipPoses, PoseSource, SampledPoses};
pub use spring::{AngleSpring, VelocitySpring};
pub use steering::Steering;
