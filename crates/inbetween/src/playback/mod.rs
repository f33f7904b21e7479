//! Playing clips: layers and masks, transitions, root motion, and a clock that fires markers.
//!
//! Everything here is plain f64 over the authoring model and is what faster paths are held
//! against. Nothing is shared between players: clips are immutable, state belongs to the caller.

pub mod layers;
pub mod mean;
pub mod player;
pub mod root_motion;
pub mod runtime;
pub mod sampler;
pub mod sync;
pub mod transition;
