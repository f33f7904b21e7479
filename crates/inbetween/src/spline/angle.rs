//! Angles that run on instead of jumping at half a turn.
//!
//! The idea: an angle is only known up to whole turns, so before a curve goes
//! through angle keys each is moved by whole turns to within half a turn of the
//! one before. The result is wrapped again only where someone wants to read it.
//! An author who means two turns keeps them by not calling this.

/// Moves each angle by whole turns of `period` so that it is at most half a turn
/// from the one before. An exact half turn goes the positive way. The first angle
/// stays as it is, and doing it twice changes nothing.
///
/// ```
/// let mut yaw = [1.0, -303.0, 20.0];
/// inbetween::spline::unwrap_angles(&mut yaw, 360.0);
/// assert_eq!(yaw, [1.0, 57.0, 20.0]);
/// ```
pub fn unwrap_angles(angles: &mut [f64], period: f64) {
    for i in 1..angles.len() {
        angles[i] = nearest_turn(angles[i], angles[i - 1], period);
    }
}

/// `angle` moved by whole turns of `period` to within half a turn of `reference`;
/// an exact half turn goes the positive way. Numbers that are not finite come
/// back as they are.
pub fn nearest_turn(angle: f64, reference: f64, period: f64) -> f64 {
    let half = 0.5 * period;
    let step = angle - reference;
    if step > -half && step <= half {
        return angle;
    }
    let turns = (step / period + 0.5).floor();
    let mut near = angle - turns * period;
    // The rounding of the quotient can miss by one turn, and floor sends an exact
    // half turn the negative way.
    if near - reference <= -half {
        near = angle - (turns - 1.0) * period;
    } else if near - reference > half {
        near = angle - (turns + 1.0) * period;
    }
    if near.is_finite() { near } else { angle }
}

/// `angle` moved by whole turns into `-period/2 < angle <= period/2`.
pub fn wrap_angle(angle: f64, period: f64) -> f64 {
    nearest_turn(angle, 0.0, period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_half_turn_goes_the_positive_way_in_both_directions() {
        let mut yaw = [0.0, 180.0, 0.0, 180.0];
        unwrap_angles(&mut yaw, 360.0);
        assert_eq!(yaw, [0.0, 180.0, 360.0, 540.0]);
        let mut yaw = [0.0, -180.0];
        unwrap_angles(&mut yaw, 360.0);
        assert_eq!(yaw, [0.0, 180.0]);
    }

    #[test]
    fn unwrapping_twice_changes_nothing() {
        let mut seed = 7_u64;
        for _ in 0..2000 {
            let mut angles: Vec<f64> = (0..40)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ((seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5) * 4000.0
                })
                .collect();
            unwrap_angles(&mut angles, 360.0);
            let once = angles.clone();
            unwrap_angles(&mut angles, 360.0);
            assert_eq!(once, angles);
            assert!(once.windows(2).all(|w| (w[1] - w[0]).abs() <= 180.0));
        }
    }

    #[test]
    fn numbers_that_are_not_finite_do_not_spread() {
        let mut angles = [0.0, f64::INFINITY, 10.0];
        unwrap_angles(&mut angles, 360.0);
        assert_eq!(angles[2], 10.0);
        assert!(nearest_turn(f64::NAN, 0.0, 360.0).is_nan());
    }

    #[test]
    fn wrapping_keeps_minus_half_out_and_half_in() {
        assert_eq!(wrap_angle(-180.0, 360.0), 180.0);
        assert_eq!(wrap_angle(180.0, 360.0), 180.0);
        assert_eq!(wrap_angle(725.0, 360.0), 5.0);
    }
}
