//! What the reducers on plain slices promise, against golden numbers and against brute force.

use inbetween::reduce::ball::{BallCone, ComponentCone, Rotations, Vectors};
use inbetween::reduce::beam::nearly_optimal_scalar;
use inbetween::reduce::cone::ScalarCone;
use inbetween::reduce::cubic::{HermiteSpans, Measure, difference_tangents, one_sided};
use inbetween::reduce::literal::{Literal, literal};
use inbetween::reduce::rotation;
use inbetween::reduce::search::{Spans, farthest, nearly_optimal, optimal};
use inbetween::reduce::steps::{baked_steps, changes, redundant};

struct Golden {
    name: String,
    times: Vec<f64>,
    values: Vec<f64>,
    tolerance: f64,
    literal: Vec<usize>,
    farthest: Vec<usize>,
    optimal: usize,
}

fn golden() -> Vec<Golden> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/key_reduction.json");
    let text = std::fs::read_to_string(path).expect("the golden file is part of the repository");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let list = |v: &serde_json::Value| v.as_array().expect("a list").clone();
    let cases = list(&document["cases"]);
    cases
        .iter()
        .map(|case| {
            let numbers =
                |key: &str| list(&case[key]).iter().map(|x| x.as_f64().expect("a number")).collect();
            let indices = |key: &str| {
                list(&case[key]).iter().map(|x| x.as_u64().expect("an index") as usize).collect::<Vec<_>>()
            };
            Golden {
                name: format!("{} at {}", case["name"], case["tolerance"]),
                times: numbers("t"),
                values: numbers("v"),
                tolerance: case["tolerance"].as_f64().expect("a number"),
                literal: indices("seed_literal_kept"),
                farthest: indices("bounded_farthest_kept"),
                optimal: case["optimal_kept_count"].as_u64().expect("a count") as usize,
            }
        })
        .collect()
}

/// The largest error of straight lines between the kept samples, at every sample.
fn line_error(times: &[f64], values: &[f64], kept: &[usize]) -> f64 {
    let mut worst = 0.0_f64;
    for span in kept.windows(2) {
        let (a, b) = (span[0], span[1]);
        for i in a..=b {
            let f = (times[i] - times[a]) / (times[b] - times[a]);
            worst = worst.max((values[a] + (values[b] - values[a]) * f - values[i]).abs());
        }
    }
    worst
}

fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    }
}

fn wandering(seed: u64, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut random = noise(seed);
    let mut time = 0.0;
    let mut value = 0.0;
    (0..n)
        .map(|_| {
            time += 0.02 + 0.015 * random();
            value += 0.1 * random();
            (time, value + 0.02 * random())
        })
        .unzip()
}

#[test]
fn every_linear_reducer_keeps_the_keys_that_exact_arithmetic_keeps() {
    for case in golden() {
        let mut spans = ScalarCone::new(&case.times, &case.values, case.tolerance);
        assert_eq!(farthest(&mut spans), case.farthest, "farthest, {}", case.name);
        assert_eq!(optimal(&mut spans).len(), case.optimal, "optimal, {}", case.name);
    }
}

#[test]
fn the_literal_rule_keeps_what_the_published_code_keeps() {
    for case in golden() {
        let kept = literal(&case.times, &case.values, case.tolerance, Literal::default());
        assert_eq!(kept, case.literal, "{}", case.name);
    }
}

#[test]
fn the_literal_rule_drifts_further_the_finer_the_sampling() {
    // t²/2 over ten seconds at tolerance 0.05.
    for (rate, expected) in [(24.0, 0.73), (48.0, 2.9), (96.0, 11.5)] {
        let times: Vec<f64> = (0..=(10.0 * rate) as usize).map(|i| i as f64 / rate).collect();
        let values: Vec<f64> = times.iter().map(|t| 0.5 * t * t).collect();
        let kept = literal(&times, &values, 0.05, Literal::default());
        let error = line_error(&times, &values, &kept);
        assert!((error - expected).abs() < 0.02 * expected, "{rate}: {error}");
        let kept = nearly_optimal_scalar(&times, &values, 0.05);
        assert!(line_error(&times, &values, &kept) <= 0.05 + 1e-12);
        assert_eq!(kept.len(), 17);
    }
}

#[test]
fn the_literal_rule_with_an_integer_absolute_takes_errors_below_one_for_none() {
    let times = [0.0, 1.0, 2.0, 3.0];
    let values = [0.0, 0.9, 0.0, 0.0];
    let habits = Literal { integer_absolute: true, ..Literal::default() };
    assert_eq!(literal(&times, &values, 0.05, habits), [0, 3]);
    assert_eq!(literal(&times, &values, 0.05, Literal::default()), [0, 1, 2, 3]);
}

#[test]
fn the_literal_rule_in_milliseconds_divides_by_zero_and_keeps_the_key() {
    let times = [0.0, 0.0002, 0.0004, 1.0];
    let habits = Literal { milliseconds: true, ..Literal::default() };
    assert_eq!(literal(&times, &[0.0; 4], 0.05, habits), [0, 1, 3]);
    assert_eq!(literal(&times, &[0.0; 4], 0.05, Literal::default()), [0, 3]);
}

#[test]
fn nearly_optimal_keeps_at_most_a_twentieth_more_than_the_fewest() {
    for case in golden() {
        let kept = nearly_optimal_scalar(&case.times, &case.values, case.tolerance);
        assert!(kept.len() as f64 <= 1.05 * case.optimal as f64, "{}: {}", case.name, kept.len());
    }
    // Random walks, of which the greedy reach makes a fifth too many: all together, because on a curve of
    // 18 keys a single one is more than a twentieth.
    for tolerance in [0.01, 0.05, 0.2] {
        let (mut kept, mut fewest) = (0, 0);
        for seed in 1..40 {
            let (times, values) = wandering(seed, 600);
            fewest += optimal(&mut ScalarCone::new(&times, &values, tolerance)).len();
            kept += nearly_optimal_scalar(&times, &values, tolerance).len();
        }
        assert!(kept as f64 <= 1.05 * fewest as f64, "{tolerance}: {kept} of {fewest}");
    }
}

#[test]
fn every_skipped_sample_is_within_the_tolerance() {
    for seed in 1..60 {
        let (times, values) = wandering(seed, 300);
        for tolerance in [0.0, 0.003, 0.03, 0.3] {
            let mut spans = ScalarCone::new(&times, &values, tolerance);
            let results = [
                farthest(&mut spans),
                nearly_optimal(&mut spans, 6),
                optimal(&mut spans),
                nearly_optimal_scalar(&times, &values, tolerance),
            ];
            for kept in results {
                assert_eq!((kept[0], kept[kept.len() - 1]), (0, 299));
                assert!(kept.windows(2).all(|k| k[0] < k[1]));
                // Rounding of slopes over a span of some seconds.
                assert!(line_error(&times, &values, &kept) <= tolerance + 1e-13, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_tolerance_may_differ_from_sample_to_sample() {
    let times: Vec<f64> = (0..200).map(|i| i as f64 / 30.0).collect();
    let values: Vec<f64> = times.iter().map(|t| (3.0 * t).sin()).collect();
    let tolerances: Vec<f64> = times.iter().map(|t| if *t < 3.0 { 0.1 } else { 0.001 }).collect();
    let kept = nearly_optimal_scalar(&times, &values, tolerances.as_slice());
    let loose = kept.iter().filter(|&&i| times[i] < 3.0).count();
    assert!(loose < kept.len() / 4, "{loose} of {}", kept.len());
    for span in kept.windows(2) {
        for i in span[0]..=span[1] {
            let f = (times[i] - times[span[0]]) / (times[span[1]] - times[span[0]]);
            let off = values[span[0]] + (values[span[1]] - values[span[0]]) * f - values[i];
            assert!(off.abs() <= tolerances[i] + 1e-13);
        }
    }
}

#[test]
fn ten_million_keys_on_a_straight_line_leave_two() {
    let n = 10_000_000;
    let times: Vec<f64> = (0..n).map(|i| i as f64 / 24.0).collect();
    let values: Vec<f64> = times.iter().map(|t| 0.5 * t).collect();
    assert_eq!(nearly_optimal_scalar(&times, &values, 0.001), [0, n - 1]);
    let mut spans = ScalarCone::new(&times, &values, 0.001);
    assert_eq!(farthest(&mut spans), [0, n - 1]);
}

#[test]
fn a_sliver_of_a_cone_is_not_carried_along_for_ever() {
    // From the first key only the slope 0 passes exactly; nothing behind it ever has it. Without a limit each
    // key would look at all the samples behind it.
    let n = 200_000;
    let times: Vec<f64> = (0..n).map(f64::from).collect();
    let values: Vec<f64> = (0..n)
        .map(|i| {
            if i % 7 == 0 {
                1.0
            } else if i % 7 == 3 {
                -1.0
            } else {
                0.1 * f64::from(i % 5)
            }
        })
        .collect();
    struct Counted<'a>(ScalarCone<'a, f64>, usize);
    impl Spans for Counted<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn scan(&mut self, from: usize, visit: impl FnMut(usize, bool) -> bool) -> usize {
            let work = self.0.scan(from, visit);
            self.1 += work;
            work
        }
    }
    for tolerance in [0.999, 1.0, 1.001] {
        let mut spans = Counted(ScalarCone::new(&times, &values, tolerance), 0);
        farthest(&mut spans);
        assert!(spans.1 < 100 * values.len(), "{} at {tolerance}", spans.1);
    }
}

#[test]
fn vectors_keep_the_length_of_their_error() {
    for seed in 1..30 {
        let mut random = noise(seed);
        let times: Vec<f64> = (0..250).map(|i| i as f64 / 60.0).collect();
        let mut values = Vec::new();
        for t in &times {
            values.extend([
                (2.0 * t).sin() + 0.01 * random(),
                (3.0 * t).cos(),
                t * t * 0.1 + 0.01 * random(),
            ]);
        }
        for tolerance in [0.004, 0.02, 0.1] {
            let mut spans = BallCone::new(&times, Vectors::<3>(&values), tolerance);
            for kept in [farthest(&mut spans), nearly_optimal(&mut spans, 6), optimal(&mut spans)] {
                for span in kept.windows(2) {
                    let (a, b) = (span[0], span[1]);
                    for i in a..=b {
                        let f = (times[i] - times[a]) / (times[b] - times[a]);
                        let off: f64 = (0..3)
                            .map(|k| {
                                values[3 * a + k] * (1.0 - f) + values[3 * b + k] * f - values[3 * i + k]
                            })
                            .map(|d| d * d)
                            .sum();
                        assert!(off.sqrt() <= tolerance + 1e-12, "seed {seed}: {} > {tolerance}", off.sqrt());
                    }
                }
            }
        }
    }
}

#[test]
fn the_short_cuts_for_balls_agree_with_testing_every_sample() {
    for seed in 1..20 {
        let mut random = noise(seed);
        let times: Vec<f64> = (0..120).map(|i| i as f64 / 60.0).collect();
        let values: Vec<f64> = (0..360).map(|_| 0.05 * random()).collect();
        let mut spans = BallCone::new(&times, Vectors::<3>(&values), 0.06);
        for from in 0..119 {
            let mut seen = Vec::new();
            spans.scan(from, |end, allowed| {
                seen.push((end, allowed));
                true
            });
            for (end, allowed) in seen {
                let plain = (from + 1..end).all(|i| {
                    let f = (times[i] - times[from]) / (times[end] - times[from]);
                    let off: f64 = (0..3)
                        .map(|k| {
                            values[3 * from + k] * (1.0 - f) + values[3 * end + k] * f - values[3 * i + k]
                        })
                        .map(|d| d * d)
                        .sum();
                    off.sqrt() <= 0.06
                });
                assert_eq!(allowed, plain, "seed {seed}, {from} to {end}");
            }
        }
    }
}

#[test]
fn rotations_keep_the_angle_of_their_error_and_the_short_way() {
    for seed in 1..20 {
        let mut random = noise(seed);
        let times: Vec<f64> = (0..250).map(|i| i as f64 / 60.0).collect();
        let mut values = Vec::new();
        for t in &times {
            let turn = rotation::exp([0.0, 2.0 * t, 0.0]);
            let nod = rotation::exp([0.5 * (4.0 * t).sin(), 0.002 * random(), 0.002 * random()]);
            let sign = if random() < 0.0 { -1.0 } else { 1.0 };
            values.extend(rotation::mul(turn, nod).map(|x| sign * x));
        }
        for tolerance in [0.003, 0.02, 0.2] {
            let mut spans = BallCone::new(&times, Rotations(&values), tolerance);
            for kept in [farthest(&mut spans), nearly_optimal(&mut spans, 6)] {
                for span in kept.windows(2) {
                    let (a, b) = (rotation::row(&values, span[0]), rotation::row(&values, span[1]));
                    assert!(rotation::angle(a, b).to_degrees() < 179.0);
                    for i in span[0]..=span[1] {
                        let f = (times[i] - times[span[0]]) / (times[span[1]] - times[span[0]]);
                        let off = rotation::angle(rotation::slerp(a, b, f), rotation::row(&values, i));
                        assert!(off <= tolerance + 1e-9, "seed {seed}: {off} > {tolerance}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_full_turn_keeps_keys_less_than_half_a_turn_apart() {
    let times: Vec<f64> = (0..=36).map(|i| i as f64 / 36.0).collect();
    let values: Vec<f64> =
        (0..=36).flat_map(|i| rotation::exp([(f64::from(i) * 10.0_f64).to_radians(), 0.0, 0.0])).collect();
    let kept = nearly_optimal(&mut BallCone::new(&times, Rotations(&values), 0.001), 6);
    assert_eq!(kept.len(), 4, "{kept:?}");
}

#[test]
fn components_keep_a_tolerance_each() {
    let times: Vec<f64> = (0..100).map(|i| i as f64 / 30.0).collect();
    let values: Vec<f64> = times.iter().flat_map(|t| [(3.0 * t).sin(), 100.0 * (3.0 * t).sin()]).collect();
    let loose = farthest(&mut ComponentCone::new(&times, &values, 2, &[0.01, 10.0]));
    let tight = farthest(&mut ComponentCone::new(&times, &values, 2, &[0.01, 0.1]));
    let scalar: Vec<f64> = values.iter().step_by(2).copied().collect();
    assert_eq!(loose, farthest(&mut ScalarCone::new(&times, &scalar, 0.01)));
    assert!(tight.len() > 2 * loose.len());
}

#[test]
fn cubic_spans_hold_at_every_sample_and_need_fewer_keys_than_lines() {
    let times: Vec<f64> = (0..600).map(|i| i as f64 / 120.0).collect();
    let values: Vec<f64> = times.iter().flat_map(|t| [(2.0 * t).sin(), (5.0 * t).cos() * 0.3]).collect();
    let tangents = difference_tangents(&times, &values, 2);
    let mut spans = HermiteSpans::new(&times, &values, &tangents, &tangents, 2, Measure::Length, 0.002);
    let kept = nearly_optimal(&mut spans, 8);
    for span in kept.windows(2) {
        let (a, b) = (span[0], span[1]);
        let h = times[b] - times[a];
        for i in a..=b {
            let s = times[i] - times[a];
            let off: f64 = (0..2)
                .map(|k| {
                    let (p, q) = (values[2 * a + k], values[2 * b + k]);
                    let (m, n) = (tangents[2 * a + k], tangents[2 * b + k]);
                    let d = (q - p) / h;
                    let (c2, c3) = ((3.0 * d - 2.0 * m - n) / h, (m + n - 2.0 * d) / (h * h));
                    p + s * (m + s * (c2 + s * c3)) - values[2 * i + k]
                })
                .map(|d| d * d)
                .sum();
            assert!(off.sqrt() <= 0.002 + 1e-12);
        }
    }
    let lines = optimal(&mut BallCone::new(&times, Vectors::<2>(&values), 0.002));
    assert!((kept.len() as f64) < 0.4 * lines.len() as f64, "{} and {}", kept.len(), lines.len());
}

#[test]
fn cubic_rotations_keep_their_angle_when_played_normalised() {
    let times: Vec<f64> = (0..300).map(|i| i as f64 / 60.0).collect();
    let mut values: Vec<f64> = times
        .iter()
        .flat_map(|t| {
            rotation::mul(
                rotation::exp([0.0, 1.5 * t, 0.0]),
                rotation::exp([0.4 * (3.0 * t).sin(), 0.0, 0.0]),
            )
        })
        .collect();
    one_sided(&mut values);
    let tangents = difference_tangents(&times, &values, 4);
    let mut spans = HermiteSpans::new(&times, &values, &tangents, &tangents, 4, Measure::Angle, 0.002);
    let kept = farthest(&mut spans);
    for span in kept.windows(2) {
        let (a, b) = (span[0], span[1]);
        let h = times[b] - times[a];
        for i in a..=b {
            let u = (times[i] - times[a]) / h;
            let y: [f64; 4] = std::array::from_fn(|k| {
                let (p, q) = (values[4 * a + k], values[4 * b + k]);
                let (m, n) = (h * tangents[4 * a + k], h * tangents[4 * b + k]);
                p * (1.0 - 3.0 * u * u + 2.0 * u * u * u)
                    + q * (3.0 * u * u - 2.0 * u * u * u)
                    + m * u * (1.0 - u) * (1.0 - u)
                    - n * u * u * (1.0 - u)
            });
            let length = y.iter().map(|x| x * x).sum::<f64>().sqrt();
            let off = rotation::angle(y.map(|x| x / length), rotation::row(&values, i));
            assert!(off <= 0.002 + 1e-9, "{off}");
        }
    }
    let lines = farthest(&mut BallCone::new(&times, Rotations(&values), 0.002));
    assert!(2 * kept.len() < lines.len(), "{} and {}", kept.len(), lines.len());
}

#[test]
fn only_keys_that_change_a_step_stay() {
    assert_eq!(changes(&[1.0, 1.0, 0.0, 0.0, 1.0], 1), [0, 2, 4]);
    assert_eq!(changes(&[1.0, 2.0, 1.0, 2.0, 1.0, 3.0], 2), [0, 2]);
    assert_eq!(changes(&[], 3), Vec::<usize>::new());
}

#[test]
fn a_step_baked_into_two_keys_a_frame_apart_is_found_again() {
    let times: Vec<f64> = (0..12).map(|i| i as f64 / 24.0).collect();
    let step = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(baked_steps(&times, &step, 1), Some(vec![0, 4, 7]));
    let flash = [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(baked_steps(&times, &flash, 1), Some(vec![0, 4, 5]));
    // Inner keys of the plateaus already gone.
    assert_eq!(baked_steps(&[0.0, 1.0, 1.0 + 1.0 / 24.0, 3.0], &[0.0, 0.0, 1.0, 1.0], 1), Some(vec![0, 2]));
}

#[test]
fn motion_is_not_taken_for_a_baked_step() {
    let times: Vec<f64> = (0..12).map(|i| i as f64 / 24.0).collect();
    let ramp: Vec<f64> = times.clone();
    assert_eq!(baked_steps(&times, &ramp, 1), None);
    let constant = [2.0; 12];
    assert_eq!(baked_steps(&times, &constant, 1), None);
    let over_two_frames = [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(baked_steps(&times, &over_two_frames, 1), None);
    let shaking = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    assert_eq!(baked_steps(&times, &shaking, 1), None);
    assert_eq!(baked_steps(&[0.0, 1.0], &[0.0, 1.0], 1), None);
    // A slow change between two holds: two keys, but a second apart.
    assert_eq!(baked_steps(&[0.0, 0.1, 1.1, 1.2], &[0.0, 0.0, 1.0, 1.0], 1), None);
}

#[test]
fn keep_drops_only_keys_on_the_line() {
    let times = [0.0, 1.0, 2.0, 3.0, 4.0];
    assert_eq!(redundant(&times, &[0.0, 1.0, 2.0, 2.0, 2.0], 1), [0, 2, 4]);
    assert_eq!(redundant(&times, &[0.0, 1.0 + 1e-9, 2.0, 2.0, 2.0], 1), [0, 1, 2, 4]);
}

#[test]
fn curves_of_no_one_and_two_keys_come_through() {
    for n in 0..3 {
        let times: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let all: Vec<usize> = (0..n).collect();
        let mut spans = ScalarCone::new(&times, &times, 1.0);
        assert_eq!(farthest(&mut spans), all);
        assert_eq!(nearly_optimal(&mut spans, 4), all);
        assert_eq!(optimal(&mut spans), all);
        assert_eq!(nearly_optimal_scalar(&times, &times, 1.0), all);
        assert_eq!(literal(&times, &times, 1.0, Literal::default()), all);
    }
}
