//! Camera paths: keys that a camera flies through without surging.
//!
//! - [`CameraPath`]: keys, camera modes, smoothing that can be turned on and off,
//!   edits, closed paths, things followed and looked at.
//! - [`CameraPose`], [`CameraAngles`]: where the camera is and looks.
//! - [`PathStatus`], [`Overshot`]: what can be said before anything is rendered.
//! - [`Retimed`]: the same path at an even speed, eased in and out, and as keys again.
//! - [`rewritten_slots`]: the path for a player that keeps four keys a span.
//!
//! ```
//! use inbetween::camera::{CameraKey, CameraPath, Channel, Smoothing};
//! let channels = ["x", "y", "z", "yaw", "fov"].map(Channel::new).to_vec();
//! let key = |time, x, yaw| CameraKey::new(time, vec![x, 1.7, 0.0, yaw, 1.0]);
//! let mut path = CameraPath::new(channels, vec![key(0.0, 0.0, 0.0), key(1.0, 2.0, 0.4), key(2.0, 0.0, 0.0)])?;
//! path.set_smoothing(Smoothing::amount(1.0))?;
//! assert_eq!(path.pose(0.5).position[0], 1.375);
//! assert_eq!(path.pose(1.0).position[0], 2.0);
//! # Ok::<(), inbetween::camera::CameraError>(())
//! ```

mod channel;
mod path;
mod pose;
mod rekey;
mod report;
mod retime;
mod slots;
mod target;

pub use channel::{CameraAngles, CameraPose, Channel, Role};
pub use path::{CameraError, CameraKey, CameraPath, FREE, Overshoot, PathSpan, Smoothing, Unwrap};
pub use rekey::{KeyBound, Rekeyed};
pub use report::{ModeStatus, Overshot, PathStatus};
pub use retime::{Retime, Retimed};
pub use slots::{SlotTiming, neighbour_slots, play_slots, rewritten_slots};
pub use target::{LookAt, MovingTarget};
