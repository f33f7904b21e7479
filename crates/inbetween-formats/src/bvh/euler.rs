//! A rotation taken apart into turns about three different axes.
//!
//! For R = Ra(α)·Rb(β)·Rc(γ) with a, b, c three different axes, the entries of R give the angles:
//! R[a][c] = e·sin β, and α, γ by the arc tangents of its neighbours, with e = 1 if a, b, c run
//! round as x, y, z do, else −1. At β = ±90° only α ± γ is fixed; γ is then left as it was.
//! Every rotation has a second set (α + π, π − β, γ + π), and whole turns may be added to each.
//!
//! Source: Shoemake, *Euler Angle Conversion*, Graphics Gems IV.

use std::f64::consts::PI;

use inbetween::AxisName;
use inbetween::glam::{DMat3, DQuat};
use inbetween::math::{atan2, axis_angle};

/// The angles α, β, γ in radians, β within ±90°. `last` is what γ becomes where it is free.
pub(super) fn angles(q: DQuat, order: [AxisName; 3], last: f64) -> [f64; 3] {
    let [a, b, c] = order.map(|axis| axis as usize);
    let e = if (a + 1) % 3 == b { 1.0 } else { -1.0 };
    let entries = |q: DQuat| {
        let m = DMat3::from_quat(q.normalize()).to_cols_array_2d();
        move |row: usize, column: usize| m[column][row]
    };
    let r = entries(q);
    let sin = e * r(a, c);
    let cos = (r(a, a) * r(a, a) + r(a, b) * r(a, b)).sqrt();
    let middle = atan2(sin, cos);
    // Below this the arc tangents see only rounding.
    if cos > 1e-7 {
        return [atan2(-e * r(b, c), r(c, c)), middle, atan2(-e * r(a, b), r(a, a))];
    }
    let rest = entries(q * axis_angle(order[2].vector(), -last));
    [atan2(e * rest(c, b), rest(b, b)), middle, last]
}

/// The angles of `q` nearest to those of the frame before, so that they run on without jumps.
pub(super) fn turn_near(q: DQuat, order: [AxisName; 3], before: [f64; 3]) -> [f64; 3] {
    let one = angles(q, order, before[2]);
    let other = [one[0] + PI, PI - one[1], one[2] + PI];
    let near = |set: [f64; 3]| -> [f64; 3] {
        std::array::from_fn(|i| set[i] - 2.0 * PI * ((set[i] - before[i]) / (2.0 * PI)).round())
    };
    let way = |set: &[f64; 3]| set.iter().zip(before).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let (one, other) = (near(one), near(other));
    if way(&other) < way(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inbetween::math::angle_between;

    fn product(order: [AxisName; 3], angles: [f64; 3]) -> DQuat {
        order.iter().zip(angles).fold(DQuat::IDENTITY, |q, (axis, a)| q * axis_angle(axis.vector(), a))
    }

    fn orders() -> Vec<[AxisName; 3]> {
        use AxisName::{X, Y, Z};
        vec![[X, Y, Z], [X, Z, Y], [Y, X, Z], [Y, Z, X], [Z, X, Y], [Z, Y, X]]
    }

    #[test]
    fn every_order_gives_its_angles_back() {
        for order in orders() {
            let found = angles(product(order, [0.7, -1.1, 2.3]), order, 0.0);
            for (a, b) in found.iter().zip([0.7, -1.1, 2.3]) {
                assert!((a - b).abs() < 1e-14, "{order:?} {found:?}");
            }
        }
    }

    #[test]
    fn at_ninety_degrees_the_rotation_is_met_with_the_last_angle_kept() {
        for order in orders() {
            for middle in [PI / 2.0, -PI / 2.0] {
                let q = product(order, [0.4, middle, 0.9]);
                let found = turn_near(q, order, [0.4, middle, 0.9]);
                assert!(angle_between(product(order, found), q) < 1e-7, "{order:?} {found:?}");
                assert!((found[2] - 0.9).abs() < 1e-12 && (found[0] - 0.4).abs() < 1e-7, "{found:?}");
            }
        }
    }

    #[test]
    fn angles_run_on_over_half_turns_and_through_ninety_degrees() {
        let order = orders()[4];
        let mut before = [0.0; 3];
        for i in 0..400 {
            let s = f64::from(i) * 0.05;
            // Steadily round and round; the middle angle swings past 90°.
            let truth = [s, 2.0 * inbetween::math::sin(0.3 * s), -0.5 * s];
            let q = product(order, truth);
            let found = turn_near(q, order, before);
            assert!(angle_between(product(order, found), q) < 1e-9);
            for (a, b) in found.iter().zip(truth) {
                assert!((a - b).abs() < 1e-6, "{i}: {found:?} for {truth:?}");
            }
            before = found;
        }
    }
}
