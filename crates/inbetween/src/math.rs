//! The few pieces of arithmetic everything else shares, the same to the bit on every machine.
//!
//! Sine and its kin come from `libm` because the platform's own differ in their last bits.
//! Vectors and quaternions are glam's f64 types; this file only adds what glam lacks. Square roots
//! are the processor's own: IEEE 754 leaves them no choice, and those of `libm`, which glam is built
//! with, cost a switch of modes in programs built for AVX.

use glam::{DQuat, DVec3};

/// Sine of `x` radians.
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// Cosine of `x` radians.
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Arc cosine in radians of `x`, which is clamped to −1..1.
pub fn acos(x: f64) -> f64 {
    libm::acos(x.clamp(-1.0, 1.0))
}

/// Angle in radians of the point (`x`, `y`), −π..π.
pub fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

/// Length of a quaternion as a four-vector; the bits of glam's.
#[inline]
pub fn length(q: DQuat) -> f64 {
    q.length_squared().sqrt()
}

/// `q` scaled to unit length; the bits of glam's. Nonsense if it is too short or not finite.
#[inline]
pub fn normalize(q: DQuat) -> DQuat {
    q * (1.0 / length(q))
}

/// Angle in radians, 0..π, of the rotation that leads from `a` to `b` the short way.
///
/// Both are taken to be of unit length; the sign of either does not matter. Exact near 0 and
/// near π, where the arc cosine of the dot product loses half its digits.
pub fn angle_between(a: DQuat, b: DQuat) -> f64 {
    let (minus, plus) = (length(a - b), length(a + b));
    4.0 * atan2(minus.min(plus), minus.max(plus))
}

/// Spherical interpolation from `a` (at `u` = 0) to `b` (at 1), the short way, at even speed.
///
/// `a` and `b` are unit quaternions, either sign. For two exactly opposite quaternions
/// (a half turn each way) the way of `b` as it is given is taken.
pub fn slerp(a: DQuat, b: DQuat, u: f64) -> DQuat {
    let b = if a.dot(b) < 0.0 { -b } else { b };
    let half = slerp_half_angle(a, b);
    let s = sin(half);
    if s < 1e-9 {
        return normalize(a * (1.0 - u) + b * u);
    }
    let (wa, wb) = (sin((1.0 - u) * half) / s, sin(u * half) / s);
    normalize(a * wa + b * wb)
}

/// Angle between two unit quaternions as four-vectors, 0..π.
fn slerp_half_angle(a: DQuat, b: DQuat) -> f64 {
    2.0 * atan2(length(a - b), length(a + b))
}

/// Derivative by `u` of [`slerp`], as a four-vector.
pub fn slerp_derivative(a: DQuat, b: DQuat, u: f64) -> DQuat {
    let b = if a.dot(b) < 0.0 { -b } else { b };
    let half = slerp_half_angle(a, b);
    let s = sin(half);
    if s < 1e-9 {
        return b - a;
    }
    a * (-half * cos((1.0 - u) * half) / s) + b * (half * cos(u * half) / s)
}

/// The rotation by `angle` radians about the unit vector `axis`.
pub fn axis_angle(axis: DVec3, angle: f64) -> DQuat {
    let (s, c) = (sin(0.5 * angle), cos(0.5 * angle));
    DQuat::from_xyzw(axis.x * s, axis.y * s, axis.z * s, c)
}

/// The rotation vector (axis times angle, radians) of a unit quaternion, the short way.
pub fn rotation_vector(q: DQuat) -> DVec3 {
    let q = if q.w < 0.0 { -q } else { q };
    let v = DVec3::new(q.x, q.y, q.z);
    let n = v.length();
    if n < 1e-12 {
        return v * 2.0;
    }
    v * (2.0 * atan2(n, q.w) / n)
}

/// The unit quaternion of a rotation vector (axis times angle, radians).
pub fn from_rotation_vector(v: DVec3) -> DQuat {
    let angle = v.length();
    if angle < 1e-12 {
        return DQuat::from_xyzw(0.5 * v.x, 0.5 * v.y, 0.5 * v.z, 1.0).normalize();
    }
    axis_angle(v / angle, angle)
}

/// `q` scaled to unit length, or `None` if it is too short or not finite.
pub fn unit(q: DQuat) -> Option<DQuat> {
    // Scale first: squaring a component below 1e-154 would underflow.
    let m = q.x.abs().max(q.y.abs()).max(q.z.abs()).max(q.w.abs());
    if !m.is_finite() || m < 1e-30 {
        return None;
    }
    Some(normalize(q / m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_bits_of_glam() {
        for k in 0..1000 {
            let x = f64::from(k) * 0.37;
            let q = DQuat::from_xyzw(sin(x), cos(1.7 * x), 0.3 * x, sin(x * x));
            assert_eq!(length(q).to_bits(), q.length().to_bits());
            assert_eq!(normalize(q).to_array().map(f64::to_bits), q.normalize().to_array().map(f64::to_bits));
        }
    }

    #[test]
    fn angle_between_is_exact_near_zero_and_blind_to_sign() {
        let a = axis_angle(DVec3::X, 0.3);
        let b = axis_angle(DVec3::X, 0.3 + 1e-9);
        assert!((angle_between(a, b) - 1e-9).abs() < 1e-15);
        assert!((angle_between(a, -b) - 1e-9).abs() < 1e-15);
    }

    #[test]
    fn slerp_takes_the_short_way_at_even_speed() {
        let a = axis_angle(DVec3::Z, 0.2);
        let b = -axis_angle(DVec3::Z, 1.0);
        let q = slerp(a, b, 0.25);
        assert!(angle_between(q, axis_angle(DVec3::Z, 0.4)) < 1e-14);
    }

    #[test]
    fn slerp_derivative_is_the_slope_of_slerp() {
        let a = axis_angle(DVec3::new(0.6, 0.8, 0.0), 0.2);
        let b = axis_angle(DVec3::Z, 2.0);
        let h = 1e-6;
        let slope = (slerp(a, b, 0.4 + h) - slerp(a, b, 0.4 - h)) / (2.0 * h);
        assert!((slope - slerp_derivative(a, b, 0.4)).length() < 1e-8);
    }

    #[test]
    fn rotation_vector_round_trips() {
        for v in [DVec3::ZERO, DVec3::new(1e-14, 0.0, 0.0), DVec3::new(0.1, -2.0, 1.5)] {
            assert!((rotation_vector(from_rotation_vector(v)) - v).length() < 1e-14);
        }
    }
}
