//! Smooth curves through keys: rules for velocities, curves to play, rotations.
//!
//! - [`Cubic`], [`TimeBezier`]: one span, its derivatives and exact extrema.
//! - [`natural`], [`monotone`], [`replay`] and the other rules, by name in
//!   [`TangentRule`]: keys in, velocities out.
//! - [`Spline`]: a curve of any number of components, fast at random and in
//!   playback, with what happens outside its keys.
//! - [`RotationSpline`], [`slerp`], [`squad`]: rotations through keys.
//! - [`unwrap_angles`]: angles the short way.
//! - [`ArcLength`]: distance along a path.
//!
//! All but [`smooth_curve`] is pure mathematics on f64 slices and knows no clip and no
//! skeleton.

mod angle;
mod arc;
mod curve;
mod fill;
mod keys;
mod long;
mod rotation;
mod segment;
mod tangents;

pub use angle::{nearest_turn, unwrap_angles, wrap_angle};
pub use arc::ArcLength;
pub use curve::{Cursor, Derivative, Extrapolation, Player, Spline, sample_curves};
pub use fill::{SmoothError, smooth_curve};
pub use keys::{Mended, Repair, SplineError, check, mend};
pub use rotation::{
    RotationSpline, quat_conjugate, quat_exp, quat_log, quat_multiply, quat_rotate, slerp, squad, squad_inner,
};
pub use segment::{Cubic, Extrema, Stationary, TimeBezier};
pub use tangents::{
    Brake, End, Keys, Scratch, TangentRule, Tcb, akima, brake_factor, catmull_rom_uniform, clamped,
    finite_difference, flat_hold, limit_overshoot, limited, makima, mean_velocity, mix, monotone, natural,
    not_a_knot, periodic, replay, second_derivative, tcb, with_ends,
};
