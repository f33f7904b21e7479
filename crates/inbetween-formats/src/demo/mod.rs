//! Clips made by this project, from formulas alone: to try every command without a file at hand,
//! and for tests that need motion with a known truth.
//!
//! - [`locomotion`]: a figure of 23 joints that stands, walks, runs and turns. Feet are planted
//!   where they touch the ground and legs follow by two-bone inverse kinematics, so a foot slides
//!   only if a reduction makes it slide.
//! - [`ball`]: a thrown ball that bounces, rolls and stops.
//! - [`lamp`]: a light that flickers on and warms up (a switch, a colour, an intensity).
//! - [`camera`]: a camera with a handful of keys, for smooth paths.
//!
//! Moving clips have a key on every frame at 60 a second, as exporters write them.
//!
//! ```
//! let walk = inbetween_formats::demo::walk();
//! assert_eq!(walk.skeleton.len(), 23);
//! assert_eq!(walk.clips[0].rate, inbetween::FrameRate::new(60, 1));
//! ```

mod ball;
mod figure;
mod gait;
mod stage;

pub use ball::ball;
pub use figure::figure;
pub use gait::{locomotion, run, walk};
pub use stage::{camera, lamp};

use inbetween::{Clip, FrameRate, Skeleton};

use crate::{Convention, Import, Source};

/// Frames a second of the dense clips.
pub const RATE: FrameRate = FrameRate::hz(60);

/// Every demo: a short name, fit for a file, and its import.
pub fn all() -> Vec<(&'static str, Import)> {
    vec![("figure", locomotion()), ("ball", ball()), ("lamp", lamp()), ("camera", camera())]
}

/// An import in the house's units.
fn import(skeleton: Skeleton, clips: Vec<Clip>) -> Import {
    Import {
        format: "demo",
        skeleton,
        clips,
        notes: Vec::new(),
        convention: Convention::HOUSE,
        in_house_units: true,
        source: Source::None,
        decimals: None,
    }
}

/// Times of `frames` + 1 frames from zero.
fn frame_times(frames: usize) -> std::sync::Arc<[f64]> {
    (0..=frames).map(|i| RATE.time_of(i as i64)).collect()
}
