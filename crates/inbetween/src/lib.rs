//! Keyframe animation: typed curves, tracks that drive any property, clips, skeletons and poses.
//!
//! This crate is the model and the pure maths everything else in Inbetween rests on. It does no
//! input or output, starts no threads and reads no clock; the same input gives the same bits on
//! every machine.
//!
//! Inside, times are f64 seconds, lengths metres, angles radians, space is right-handed with +Y
//! up, and quaternions are x, y, z, w.
//!
//! ```
//! use inbetween::{Binding, Clip, Curve, Property, Track, TrackData, ValueKind};
//!
//! // A ball that rises from 0 to 2 m in one second.
//! let height = Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 0.0, 2.0, 0.0])?;
//! let mut clip = Clip::new("rise", 0.0, 1.0)?;
//! clip.tracks.push(Track::new(
//!     Binding::node(0, "ball", Property::Translation),
//!     TrackData::Curve(height),
//!     vec![0.0; 3],
//! ));
//! assert_eq!(clip.tracks[0].value_at(0.25), [0.0, 0.5, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod camera;
pub mod clip;
pub mod compare;
pub mod curve;
pub mod edit;
pub mod math;
pub mod metric;
pub mod playback;
pub mod pose;
pub mod reduce;
pub mod sample;
pub mod seam;
mod shell;
pub mod skeleton;
pub mod spline;
pub mod time;
pub mod track;

pub use clip::{Clip, Marker, RangeError};
pub use curve::{Curve, CurveError, CurveParts, Extrapolation, SpanKind, Spans, Tangents, ValueKind};
pub use glam;
pub use pose::{LocalPose, ModelPose};
pub use skeleton::{Joint, NodeKind, Pivot, ScaleInherit, Skeleton, SkeletonError, Transform};
pub use time::{FrameRate, FrameRateError, Wrap, Wrapped};
pub use track::{Axis, AxisName, Binding, EulerBetween, EulerCurve, Property, Track, TrackData, TrackMask};
