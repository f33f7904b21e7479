//! Rotation curves against numbers worked out elsewhere: the C2 rotation spline,
//! slerp, SQUAD, and the roll that slerp gives to level cameras.

mod common;

use common::{cases, name, number, numbers, vectors};
use inbetween::spline::*;

/// Angle between two rotations, radians.
fn apart(a: [f64; 4], b: [f64; 4]) -> f64 {
    let [x, y, z, w] = quat_multiply(quat_conjugate(a), b);
    2.0 * (x * x + y * y + z * z).sqrt().atan2(w.abs())
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|k| (a[k] - b[k]).abs()).fold(0.0, f64::max)
}

#[test]
fn the_rotation_spline_meets_the_reference() {
    for case in cases("rotation_spline.json") {
        let t = numbers(&case["t"]);
        let expected = vectors::<4>(&case["c2_spline_quat_canonical"]);
        let (rates, turns) = (vectors::<3>(&case["angular_rate_rad"]), vectors::<3>(&case["angular_acc"]));
        let even = vectors::<4>(&case["slerp_quat_canonical"]);
        for keys in ["quat_xyzw", "quat_xyzw_sign_flipped"] {
            let q = vectors::<4>(&case[keys]);
            let curve = RotationSpline::new(&t, &q).unwrap();
            assert!(curve.converged());
            for (i, &x) in numbers(&case["x"]).iter().enumerate() {
                let place = format!("{} {keys} at {x}", name(&case));
                assert!(apart(curve.rotation(x), expected[i]) < 1e-8, "{place}");
                assert!(distance(curve.angular_velocity(x), rates[i]) < 1e-7, "{place}");
                // The reference stops iterating at 1e-9 in the rates; over a gap of
                // 0.2 s that is some 1e-7 in the acceleration.
                let off = distance(curve.angular_acceleration(x), turns[i]);
                assert!(off < 1e-6, "{place}: {off:e}");
                let span = (t.partition_point(|&k| k <= x).max(1) - 1).min(t.len() - 2);
                let share = (x - t[span]) / (t[span + 1] - t[span]);
                assert!(apart(slerp(q[span], q[span + 1], share), even[i]) < 1e-8, "{place}, slerp");
            }
        }
    }
}

#[test]
fn squad_meets_the_reference() {
    for case in cases("squad.json") {
        let q = vectors::<4>(&case["quat_xyzw"]);
        let expected = vectors::<4>(&case["inner"]);
        let last = q.len() - 1;
        let inner: Vec<[f64; 4]> = (0..=last)
            .map(|i| if i == 0 || i == last { q[i] } else { squad_inner(q[i - 1], q[i], q[i + 1]) })
            .collect();
        for (a, b) in inner.iter().zip(&expected) {
            assert!(apart(*a, *b) < 1e-12, "{}", name(&case));
        }
        for sample in case["samples"].as_array().unwrap() {
            let i = sample["seg"].as_u64().unwrap() as usize;
            let found = squad(q[i], q[i + 1], inner[i], inner[i + 1], number(sample, "u"));
            let wanted: [f64; 4] = numbers(&sample["q"]).try_into().unwrap();
            assert!(apart(found, wanted) < 1e-12, "{} {sample}", name(&case));
        }
    }
}

#[test]
fn slerp_rolls_a_level_camera_and_angles_do_not() {
    for case in cases("slerp_horizon_roll.json") {
        let (yaw, pitch) = (numbers(&case["yaw"]), numbers(&case["pitch"]));
        // Yaw about Z, then pitch about the turned Y: the axes of the reference.
        let key = |i: usize| {
            let half = |degrees: f64| degrees.to_radians() / 2.0;
            quat_multiply(quat_exp([0.0, 0.0, half(yaw[i])]), quat_exp([0.0, half(pitch[i]), 0.0]))
        };
        let mut worst = 0.0_f64;
        for (u, row) in numbers(&case["u"]).iter().zip(&vectors::<3>(&case["slerp_yaw_pitch_roll_deg"])) {
            let [x, y, z, w] = slerp(key(0), key(1), *u);
            let roll = (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y)).to_degrees();
            assert!((roll - row[2]).abs() < 1e-9, "{} at {u}: {roll} instead of {}", name(&case), row[2]);
            worst = worst.max(roll.abs());
        }
        assert!((worst - number(&case, "max_abs_roll_deg")).abs() < 1e-9);
        let level = Spline::new(&[0.0, 1.0], &[0.0, 0.0], 1, &TangentRule::Natural).unwrap().extrema(0);
        assert_eq!((level.min, level.max), (0.0, number(&case, "per_channel_euler_roll")));
    }
}
