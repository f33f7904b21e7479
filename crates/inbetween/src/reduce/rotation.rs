//! The little of quaternion arithmetic the reducers need, on plain arrays x, y, z, w in f64.
//!
//! Sine and its kin come from `libm`, so that a reduction keeps the same keys on every machine.

/// Quaternion `index` of a flat slice.
#[inline]
pub fn row(values: &[f64], index: usize) -> [f64; 4] {
    let q = &values[4 * index..4 * index + 4];
    [q[0], q[1], q[2], q[3]]
}

/// Product of two vectors.
#[inline]
pub fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// a · b: b first, then a.
#[inline]
pub fn mul(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    [
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    ]
}

/// The inverse of a unit quaternion.
#[inline]
pub fn conjugate(q: [f64; 4]) -> [f64; 4] {
    [-q[0], -q[1], -q[2], q[3]]
}

/// The rotation vector (axis times angle in radians, at most π long) that turns `a` into `b` in `a`'s own
/// axes: `b = a · exp(w)`, the short way.
#[inline]
pub fn between(a: [f64; 4], b: [f64; 4]) -> [f64; 3] {
    log(mul(conjugate(a), b))
}

/// The rotation vector of a unit quaternion, the short way.
#[inline]
pub fn log(q: [f64; 4]) -> [f64; 3] {
    let v = [q[0], q[1], q[2]];
    let sine2 = dot(v, v);
    let sign = if q[3] < 0.0 { -1.0 } else { 1.0 };
    let cosine = q[3].abs();
    // 2·atan(s/c)/s. Below a hundredth the series is exact to the last bit or two, and most neighbouring
    // samples are that close.
    let scale = if sine2 < 1e-4 * cosine * cosine {
        let x2 = sine2 / (cosine * cosine);
        2.0 / cosine * (1.0 - x2 * (1.0 / 3.0 - x2 * (1.0 / 5.0 - x2 * (1.0 / 7.0 - x2 / 9.0))))
    } else {
        let sine = sine2.sqrt();
        2.0 * libm::atan2(sine, cosine) / sine
    };
    v.map(|x| sign * scale * x)
}

/// The unit quaternion of a rotation vector.
#[inline]
pub fn exp(w: [f64; 3]) -> [f64; 4] {
    let angle2 = dot(w, w);
    let (scale, cosine) = if angle2 < 1e-4 {
        // sin(a/2)/a and cos(a/2); the next terms are below 1e-18.
        let h2 = angle2 / 4.0;
        (
            0.5 * (1.0 - h2 / 6.0 * (1.0 - h2 / 20.0 * (1.0 - h2 / 42.0))),
            1.0 - h2 / 2.0 * (1.0 - h2 / 12.0 * (1.0 - h2 / 30.0 * (1.0 - h2 / 56.0))),
        )
    } else {
        let angle = angle2.sqrt();
        (libm::sin(angle / 2.0) / angle, libm::cos(angle / 2.0))
    };
    [w[0] * scale, w[1] * scale, w[2] * scale, cosine]
}

/// Spherical interpolation the short way at fraction `f`.
#[inline]
pub fn slerp(a: [f64; 4], b: [f64; 4], f: f64) -> [f64; 4] {
    mul(a, exp(between(a, b).map(|x| x * f)))
}

/// The angle between two rotations in radians, 0 to π.
#[inline]
pub fn angle(a: [f64; 4], b: [f64; 4]) -> f64 {
    let w = between(a, b);
    dot(w, w).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64], tolerance: f64) {
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).abs() <= tolerance, "{a:?} {b:?}");
        }
    }

    #[test]
    fn log_and_exp_undo_each_other_for_every_size_of_angle() {
        for angle in [0.0, 1e-12, 1e-5, 0.0099, 0.0101, 0.02, 0.5, 3.0, 3.13] {
            let w = [0.6 * angle, -0.48 * angle, 0.64 * angle];
            let q = exp(w);
            assert!((q.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-15, "{angle}");
            // An angle near π loses digits in the small cosine: 1e-16 over cos(1.57) is 1e-13.
            close(&log(q), &w, 1e-12);
            close(&log(q.map(|x| -x)), &w, 1e-12);
        }
    }

    #[test]
    fn slerp_halves_the_angle_between_its_ends() {
        let a = exp([0.3, 0.1, -0.2]);
        let b = mul(a, exp([0.0, 1.0, 0.0]));
        close(&slerp(a, b, 0.5), &mul(a, exp([0.0, 0.5, 0.0])), 1e-15);
        close(&slerp(a, b.map(|x| -x), 0.5), &mul(a, exp([0.0, 0.5, 0.0])), 1e-15);
    }
}
