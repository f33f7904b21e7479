//! Joining two motions at a jump: the transitions of [`inbetween::playback::transition`].

pub use inbetween::playback::transition::{Blend, Blender};
