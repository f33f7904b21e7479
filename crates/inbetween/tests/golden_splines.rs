//! Numbers worked out to 60 digits elsewhere, met to the tolerance their files
//! state: splines with every kind of end, the other tangent rules, the replay
//! curve and its mixes, overshoot, Bezier time, and what happens to bad keys.

mod common;

use common::{assert_close, cases, name, number, numbers, rows};
use inbetween::camera::{SlotTiming, neighbour_slots, play_slots, rewritten_slots};
use inbetween::spline::*;
use serde_json::Value;

/// The shortest gap beside or around a time.
fn gap_at(times: &[f64], x: f64) -> f64 {
    times.windows(2).filter(|w| w[0] <= x && x <= w[1]).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |s, x| s.max(x.abs()))
}

/// A C2 file: value, velocity and acceleration at each time, and the energy.
fn check_c2(file: &str, rule: impl Fn(&Value) -> TangentRule) {
    for case in cases(file) {
        let (t, p) = (numbers(&case["t"]), numbers(&case["p"]));
        let spline = Spline::new(&t, &p, 1, &rule(&case)).unwrap_or_else(|e| panic!("{}: {e}", name(&case)));
        let scale = number(&case, "value_scale");
        let scipy = case["scipy_max_rel_diff"].as_f64().unwrap_or(0.0);
        let relative = if scipy > 1e-13 { 10.0 * scipy } else { 1e-12 };
        let tolerance = relative * scale;
        let (y, dy, ddy) = (numbers(&case["y"]), numbers(&case["dy"]), numbers(&case["ddy"]));
        for (i, &x) in numbers(&case["x"]).iter().enumerate() {
            let span = (t.partition_point(|&k| k <= x).max(1) - 1).min(t.len().max(2) - 2);
            let h = if t.len() > 1 { t[span + 1] - t[span] } else { 1.0 };
            let place = format!("{file} {} at {x}", name(&case));
            assert_close(spline.value(x), y[i], tolerance, &place);
            assert_close(spline.velocity(x), dy[i], tolerance / h, &format!("{place}, velocity"));
            assert_close(
                spline.acceleration(x),
                ddy[i],
                tolerance / h / h,
                &format!("{place}, acceleration"),
            );
        }
        for (k, &m) in numbers(&case["m"]).iter().enumerate() {
            let allowed = if t.len() > 1 { tolerance / gap_at(&t, t[k]) } else { 0.0 };
            assert_close(spline.velocity(t[k]), m, allowed, &format!("{file} {} key {k}", name(&case)));
        }
        // The energy is the integral of a², so an acceleration off by e puts it off
        // by at most 2·√(energy·Σe²h) + Σe²h.
        let off: f64 = t
            .windows(2)
            .map(|w| w[1] - w[0])
            .map(|h| 2.0 * tolerance / h / h)
            .zip(t.windows(2))
            .map(|(e, w)| e * e * (w[1] - w[0]))
            .sum();
        let energy = number(&case, "bending_energy");
        let allowed = 2.0 * (energy * off).sqrt() + off + 1e-14 * energy;
        assert_close(spline.bending_energy(0), energy, allowed, &format!("{file} {} energy", name(&case)));
    }
}

#[test]
fn natural_splines_meet_the_reference() {
    check_c2("spline_natural.json", |_| TangentRule::Natural);
}

#[test]
fn clamped_splines_meet_the_reference() {
    check_c2("spline_clamped.json", |c| TangentRule::Clamped {
        start: vec![number(c, "v0")],
        end: vec![number(c, "v1")],
    });
}

#[test]
fn splines_with_given_end_accelerations_meet_the_reference() {
    check_c2("spline_second_derivative_ends.json", |c| TangentRule::SecondDerivative {
        start: vec![number(c, "a0")],
        end: vec![number(c, "a1")],
    });
}

#[test]
fn not_a_knot_splines_meet_the_reference() {
    check_c2("spline_not_a_knot.json", |_| TangentRule::NotAKnot);
}

#[test]
fn periodic_splines_meet_the_reference() {
    check_c2("spline_periodic.json", |_| TangentRule::Periodic);
}

#[test]
fn vectors_are_solved_together_and_meet_the_reference() {
    for case in cases("spline_natural_vector.json") {
        let (t, p, m, y) = (numbers(&case["t"]), rows(&case["p"]), rows(&case["m"]), rows(&case["y"]));
        let width = p.len() / t.len();
        let spline = Spline::new(&t, &p, width, &TangentRule::Natural).unwrap();
        let longest = t.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
        let scale = largest(&p).max(largest(&m) * longest);
        for (i, &x) in numbers(&case["x"]).iter().enumerate() {
            for k in 0..width {
                assert_close(spline.component(k, x), y[i * width + k], 1e-12 * scale, name(&case));
            }
        }
        let mut tangents = vec![0.0; p.len()];
        natural(Keys::new(&t, &p, width), &mut tangents, &mut Scratch::default());
        for (i, (found, expected)) in tangents.iter().zip(&m).enumerate() {
            let h = gap_at(&t, t[i / width]);
            assert_close(*found, *expected, 1e-12 * scale / h, name(&case));
        }
    }
}

/// Velocities at the keys against `m` and values against `y`, at a tolerance
/// relative to the size of what is in the case.
fn check_tangents(case: &Value, expected: &Value, place: &str, relative: f64, rule: &TangentRule) {
    let (t, p) = (numbers(&case["t"]), numbers(&case["p"]));
    let spline = Spline::new(&t, &p, 1, rule).unwrap();
    let m = numbers(&expected["m"]);
    let mut scale = largest(&p);
    for (i, w) in t.windows(2).enumerate() {
        scale = scale.max(m[i].abs().max(m[i + 1].abs()) * (w[1] - w[0]));
    }
    for (k, &m) in m.iter().enumerate() {
        let allowed = relative * scale / gap_at(&t, t[k]);
        assert_close(spline.velocity(t[k]), m, allowed, &format!("{place}, velocity of key {k}"));
    }
    for (&x, &y) in numbers(&case["x"]).iter().zip(&numbers(&expected["y"])) {
        assert_close(spline.value(x), y, relative * scale, &format!("{place} at {x}"));
    }
}

#[test]
fn the_other_rules_meet_the_reference() {
    for case in cases("tangent_rules.json") {
        for (kind, expected) in case["kinds"].as_object().unwrap() {
            let (rule, relative) = match kind.as_str() {
                "catmull_rom_nonuniform_3pt" => (TangentRule::FiniteDifference, 1e-12),
                "mean_of_velocities" => (TangentRule::MeanVelocity, 1e-12),
                "pchip_scipy" => (TangentRule::Monotone, 1e-11),
                "akima_scipy" => (TangentRule::Akima, 1e-11),
                "makima_scipy" => (TangentRule::Makima, 1e-11),
                other => panic!("no rule for {other}"),
            };
            check_tangents(&case, expected, &format!("{} {kind}", name(&case)), relative, &rule);
        }
    }
}

#[test]
fn tension_continuity_and_bias_meet_the_reference() {
    for case in cases("tcb.json") {
        let (t, p) = (numbers(&case["t"]), numbers(&case["p"]));
        let setting = Tcb {
            tension: number(&case, "tension"),
            continuity: number(&case, "continuity"),
            bias: number(&case, "bias"),
        };
        let (mut arrive, mut leave) = (vec![0.0; t.len()], vec![0.0; t.len()]);
        tcb(Keys::scalar(&t, &p), &[setting], &mut arrive, &mut leave).unwrap();
        for (found, expected) in [(&arrive, numbers(&case["m_in"])), (&leave, numbers(&case["m_out"]))] {
            for (f, e) in found.iter().zip(&expected) {
                assert_close(*f, *e, 1e-12 * (1.0 + e.abs()), name(&case));
            }
        }
    }
}

/// Values, velocities, jumps of the acceleration at inner keys, and the energy.
fn check_replay(file: &str, rule: impl Fn(&Value) -> TangentRule) {
    for case in cases(file) {
        let (t, p) = (numbers(&case["t"]), numbers(&case["p"]));
        let spline = Spline::new(&t, &p, 1, &rule(&case)).unwrap();
        if t.len() < 2 {
            assert_eq!((spline.value(t[0]), spline.velocity(t[0])), (p[0], 0.0));
            continue;
        }
        check_tangents(&case, &case, name(&case), 1e-12, &rule(&case));
        let speed = largest(&numbers(&case["m"]));
        let mut off = 0.0;
        for (i, expected) in numbers(&case["acc_jump_at_inner_keys"]).iter().enumerate() {
            let (start, end) = spline.span_times(i);
            let found =
                spline.cubic(i + 1, 0).acceleration(0.0) - spline.cubic(i, 0).acceleration(end - start);
            let h = gap_at(&t, t[i + 1]);
            let tolerance = 1e-12 * (largest(&p) / h / h + speed / h);
            assert_close(found, *expected, tolerance, &format!("{} jump at key {}", name(&case), i + 1));
        }
        for w in t.windows(2) {
            let h = w[1] - w[0];
            let e = 1e-12 * (largest(&p) / h / h + speed / h);
            off += e * e * h;
        }
        let energy = number(&case, "bending_energy");
        let allowed = 2.0 * (energy * off).sqrt() + off + 1e-14 * energy;
        assert_close(spline.bending_energy(0), energy, allowed, &format!("{} energy", name(&case)));
    }
}

#[test]
fn the_replay_curve_meets_the_reference() {
    check_replay("replay_game_curve.json", |case| TangentRule::Replay {
        brake: name(case).ends_with("/brake"),
    });
    for case in cases("replay_game_curve.json") {
        // The same with its brake factors given by hand.
        let (t, p, k) = (numbers(&case["t"]), numbers(&case["p"]), numbers(&case["k"]));
        let mut given = vec![0.0; t.len()];
        replay(Keys::scalar(&t, &p), Brake::Given(&k), &mut given);
        for (i, (found, expected)) in given.iter().zip(&numbers(&case["m"])).enumerate() {
            // Two velocities may all but cancel: the tolerance is that of either.
            let allowed = if t.len() > 1 { 1e-12 * largest(&p) / gap_at(&t, t[i]) } else { 0.0 };
            assert_close(*found, *expected, allowed, name(&case));
        }
    }
}

#[test]
fn mixes_of_replay_curve_and_natural_spline_meet_the_reference() {
    check_replay("replay_amount_blend.json", |case| TangentRule::Amount(number(case, "amount")));
}

#[test]
fn overshoot_is_exact() {
    for case in cases("overshoot.json") {
        let (t, p) = (numbers(&case["t"]), numbers(&case["p"]));
        let (low, high) =
            p.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
        for row in case["by_amount"].as_array().unwrap() {
            let amount = number(row, "amount");
            let found = Spline::new(&t, &p, 1, &TangentRule::Amount(amount)).unwrap().extrema(0);
            let place = format!("{} at amount {amount}", name(&case));
            let scale = largest(&p).max(high - low);
            assert_close(found.min, number(row, "min"), 1e-12 * scale, &place);
            assert_close(found.max, number(row, "max"), 1e-12 * scale, &place);
            let ratio = (low - found.min).max(found.max - high).max(0.0) / (high - low);
            assert_close(ratio, number(row, "overshoot_ratio"), 1e-12, &place);
            // A curve is flat at its extreme, so its time is good to half the digits;
            // of two equal extremes either may win by a rounding.
            let spline = Spline::new(&t, &p, 1, &TangentRule::Amount(amount)).unwrap();
            for (at, value) in [(number(row, "t_min"), found.min), (number(row, "t_max"), found.max)] {
                assert_close(spline.value(at), value, 1e-12 * scale, &place);
            }
        }
        let held = Spline::new(&t, &p, 1, &TangentRule::NaturalLimited).unwrap().extrema(0);
        assert!(held.min >= low - 1e-12 && held.max <= high + 1e-12, "{} limited", name(&case));
    }
}

#[test]
fn the_ball_throw_has_the_polynomials_of_the_book() {
    for case in cases("ball_three_keys.json") {
        let (t, p) = (numbers(&case["t"]), numbers(&case["p"]));
        let spline = Spline::new(&t, &p, 1, &TangentRule::Natural).unwrap();
        for (i, key) in ["S0", "S1"].iter().enumerate() {
            let (found, expected) = (spline.cubic(i, 0), &case[*key]);
            for (f, letter) in [(found.a, "a"), (found.b, "b"), (found.c, "c"), (found.d, "d")] {
                let e = number(expected, letter);
                assert_close(f, e, 1e-12 * (1.0 + e.abs()), &format!("{} {key}.{letter}", name(&case)));
            }
        }
        // Against the true parabola, and the same for straight lines.
        let (apex, reach) = (p[1], t[1]);
        let parabola = |x: f64| apex * (2.0 * x / reach - (x / reach) * (x / reach));
        let (expected, by_lines) =
            (number(&case, "max_dev_from_parabola"), number(&case, "linear_max_dev_from_parabola"));
        for x in numbers(&case["at_x"]) {
            assert_close((spline.value(x) - parabola(x)).abs(), expected, 1e-12, name(&case));
        }
        let (mut worst, mut worst_line) = (0.0_f64, 0.0_f64);
        for k in 0..=3000 {
            let x = 2.0 * reach * f64::from(k) / 3000.0;
            worst = worst.max((spline.value(x) - parabola(x)).abs());
            let line = apex * (1.0 - (x / reach - 1.0).abs());
            worst_line = worst_line.max((line - parabola(x)).abs());
        }
        assert_close(worst, expected, 1e-6 * apex, name(&case));
        assert_close(worst_line, by_lines, 1e-6 * apex, name(&case));
    }
}

#[test]
fn slots_rewritten_for_a_four_key_player_meet_the_reference() {
    for case in cases("replay_slot_rewrite.json") {
        let (t, p, m) = (numbers(&case["t"]), numbers(&case["p"]), numbers(&case["natural_m"]));
        for segment in case["segments"].as_array().unwrap() {
            let i = segment["i"].as_u64().unwrap() as usize;
            let place = format!("{} segment {i}", name(&case));
            let h = number(segment, "h");
            let scale = largest(&p).max((m[i].abs() + m[i + 1].abs()) * h);
            let slots = rewritten_slots(p[i], p[i + 1], m[i] * h, m[i + 1] * h);
            for (f, e) in slots.iter().zip(numbers(&segment["rewritten_slots"])) {
                assert_close(*f, e, 1e-12 * scale, &place);
            }
            let key = |j: usize| (j < p.len()).then(|| (t[j], p[j]));
            let before = i.checked_sub(1).and_then(key);
            let built =
                neighbour_slots(before, (t[i], p[i]), (t[i + 1], p[i + 1]), key(i + 2), SlotTiming::TrueTime);
            let builder = numbers(&segment["builder_slots"]);
            for (f, e) in built.iter().zip(&builder) {
                assert_close(*f, *e, 1e-12 * scale.max(largest(&builder)), &place);
            }
            for (u, e) in numbers(&segment["y_at_u"]["u"]).iter().zip(numbers(&segment["y_at_u"]["y"])) {
                assert_close(play_slots(slots, 0.0, *u), e, 1e-12 * scale, &place);
            }
        }
    }
}

#[test]
fn bezier_spans_meet_the_reference() {
    for case in cases("bezier_fcurve.json") {
        let pair = |key: &str| (numbers(&case[key])[0], numbers(&case[key])[1]);
        let (key0, key1) = (pair("key0"), pair("key1"));
        let span = TimeBezier::new(key0, pair("out_handle"), pair("in_handle"), key1);
        let (u, y) = (numbers(&case["u"]), numbers(&case["y"]));
        for (i, &x) in numbers(&case["x"]).iter().enumerate() {
            let place = format!("{} at {x}", name(&case));
            // A time rounded at 1e-16 moves u by that over dx/du; where the curve is
            // nearly upright (dx/du some 0.02 beside the middle of "vertical") that
            // is a hundredfold. Values are a few units over one unit of u.
            assert_close(span.parameter(x), u[i], 1e-13, &place);
            assert_close(span.value(x), y[i], 1e-12 * largest(&y), &place);
        }
    }
}

#[test]
fn gltf_cubic_spans_meet_the_reference() {
    for case in cases("gltf_cubicspline.json") {
        let of = |key: &str| number(&case, key);
        let span =
            Cubic::hermite(of("t1") - of("t0"), of("v0"), of("v1"), of("out_tangent0"), of("in_tangent1"));
        for (x, y) in numbers(&case["x"]).iter().zip(numbers(&case["y"])) {
            assert_close(span.value(x - of("t0")), y, 1e-13 * 8.0, name(&case));
        }
    }
}

#[test]
fn angles_unwrap_as_in_the_reference() {
    for case in cases("angle_unwrap.json") {
        let period = number(&case, "period");
        let mut angles = numbers(&case["in"]);
        unwrap_angles(&mut angles, period);
        for (found, expected) in angles.iter().zip(numbers(&case["out"])) {
            assert_close(*found, expected, 1e-13 * period * 4.0, name(&case));
        }
        let once = angles.clone();
        unwrap_angles(&mut angles, period);
        assert_eq!(once, angles, "{} twice", name(&case));
    }
}

#[test]
fn lengths_of_paths_meet_the_reference() {
    for case in cases("arc_length.json") {
        let (t, p) = (numbers(&case["t"]), rows(&case["p"]));
        let path = Spline::new(&t, &p, 3, &TangentRule::Natural).unwrap();
        let arc = ArcLength::new(&path, 0..3);
        for (x, length) in t.iter().zip(numbers(&case["length_at_key"])) {
            assert_close(arc.length_at(*x), length, number(&case, "tolerance_rel") * length, name(&case));
        }
    }
}

#[test]
fn bad_keys_are_refused_or_mended_as_promised() {
    let natural = |t: &[f64], p: &[f64]| Spline::new(t, p, 1, &TangentRule::Natural);
    let lenient = |t: &[f64], p: &[f64]| Spline::lenient(t, p, 1, &TangentRule::Natural);
    let mut seen = 0;
    for case in cases("degenerate.json") {
        let given = |key: &str| case.get(key).map(numbers).unwrap_or_default();
        let (t, p) = (given("t"), given("p"));
        seen += 1;
        match name(&case) {
            "empty" => {
                assert_eq!(natural(&t, &p).unwrap_err(), SplineError::Empty);
                assert_eq!(lenient(&t, &p).unwrap_err(), SplineError::Empty);
            }
            "one" => {
                let spline = natural(&t, &p).unwrap();
                for x in [-1e9, 0.0, 1.0, 1e9] {
                    assert_eq!((spline.value(x), spline.velocity(x)), (3.0, 0.0));
                }
            }
            "duplicate_time_same_value" => {
                assert_eq!(natural(&t, &p).unwrap_err(), SplineError::DuplicateTime { index: 2, time: 1.0 });
                assert_same_as(&case, &lenient(&t, &p).unwrap().0);
            }
            "duplicate_time_jump" => {
                assert!(matches!(natural(&t, &p), Err(SplineError::DuplicateTime { index: 2, .. })));
                let (spline, repairs) = lenient(&t, &p).unwrap();
                assert_eq!(repairs, [Repair::Jump { index: 2, time: 1.0 }]);
                for pair in case["value_at"].as_array().unwrap() {
                    let pair = numbers(pair);
                    assert_eq!(spline.value(pair[0]), pair[1]);
                }
            }
            "unsorted" => {
                let error = natural(&t, &p).unwrap_err();
                assert_eq!(error, SplineError::NotSorted { index: 2, previous: 2.0, time: 1.0 });
                assert_same_as(&case, &lenient(&t, &p).unwrap().0);
            }
            "nan_time" => {
                let (t, p) = ([0.0, f64::NAN, 2.0], [0.0; 3]);
                for result in [natural(&t, &p), lenient(&t, &p).map(|r| r.0)] {
                    assert!(matches!(result, Err(SplineError::NonFinite { index: 1, what: "time", .. })));
                }
            }
            "inf_value" => {
                let error = natural(&[0.0, 1.0, 2.0], &[0.0, f64::INFINITY, 0.0]).unwrap_err();
                assert_eq!(error, SplineError::NonFinite { index: 1, what: "value", value: f64::INFINITY });
            }
            "subnormal_gap" => {
                for rule in
                    [TangentRule::Natural, TangentRule::NotAKnot, TangentRule::Monotone, TangentRule::Makima]
                {
                    match Spline::new(&t, &p, 1, &rule) {
                        Err(error) => {
                            assert!(matches!(error, SplineError::GapTooSmall { index: 1, .. }), "{error}")
                        }
                        Ok(spline) => {
                            assert!([0.0, 5e-324, 0.5, 1.0].iter().all(|&x| spline.value(x).is_finite()))
                        }
                    }
                }
            }
            "query_nan" => assert!(natural(&[0.0, 1.0], &[0.0, 1.0]).unwrap().value(f64::NAN).is_nan()),
            other => panic!("no check for {other}"),
        }
    }
    assert_eq!(seen, 9);
}

fn assert_same_as(case: &Value, spline: &Spline) {
    let same = &case["lenient_equals"];
    let expected = Spline::new(&numbers(&same["t"]), &numbers(&same["p"]), 1, &TangentRule::Natural).unwrap();
    assert_eq!(*spline, expected, "{}", name(case));
}
