//! SciPy's `CubicSpline` and ours agree on a thousand random sets of keys with four
//! kinds of ends. Its results are in `testdata/scipy_splines.json`, made by the
//! script beside it; the keys are made here in the same way.

use inbetween::spline::{Spline, TangentRule};
use serde_json::Value;

/// Shares from 0 to 1, the same in every language.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2_654_435_761).wrapping_add(12_345))
    }

    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const SAMPLES: usize = 6;

fn keys_of(number: u64) -> (Vec<f64>, Vec<f64>, TangentRule, Vec<f64>) {
    let mut dice = Dice::new(number);
    let n = 2 + (dice.share() * 48.0) as usize;
    let mut time = (dice.share() - 0.5) * 20.0;
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let gap = dice.share();
        time += 0.01 + 3.0 * gap * gap;
        times.push(time);
        values.push((dice.share() - 0.5) * 200.0);
    }
    let rule = match number % 4 {
        0 => TangentRule::Natural,
        1 => TangentRule::Clamped { start: vec![0.0], end: vec![0.0] },
        2 => TangentRule::NotAKnot,
        _ => TangentRule::Periodic,
    };
    if number % 4 == 3 {
        values[n - 1] = values[0];
    }
    let (first, last) = (times[0], times[n - 1]);
    let asked = (0..SAMPLES).map(|i| first + (last - first) * ((i as f64 + 0.37) / SAMPLES as f64)).collect();
    (times, values, rule, asked)
}

#[test]
fn a_thousand_random_sets_agree_with_scipy() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/scipy_splines.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let sets = document["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 1000);
    let mut worst = [0.0_f64; 3];
    for (number, set) in sets.iter().enumerate() {
        let (times, values, rule, asked) = keys_of(number as u64);
        let spline = Spline::new(&times, &values, 1, &rule).unwrap();
        // A spline's size is that of its values and of velocity times gap.
        let mut size = values.iter().fold(0.0_f64, |s, v| s.max(v.abs()));
        for w in times.windows(2) {
            size = size.max(spline.velocity(w[0]).abs() * (w[1] - w[0]));
        }
        // Two f64 solvers, each good to some hundred roundings; the not-a-knot ends
        // also divide by the share a short second span has of the first two.
        let mut allowed = 1e-12;
        if rule == TangentRule::NotAKnot && times.len() > 3 {
            let gap = |i: usize| times[i + 1] - times[i];
            let last = times.len() - 2;
            allowed *= (gap(0) / gap(1)).max(gap(last) / gap(last - 1)).max(1.0);
        }
        for (i, &t) in asked.iter().enumerate() {
            let (start, end) = spline.span_times(spline.span_at(t));
            let h = end - start;
            let found = [spline.value(t), spline.velocity(t) * h, spline.acceleration(t) * h * h];
            for (k, name) in ["value", "velocity", "acceleration"].iter().enumerate() {
                let scipy = set[*name][i].as_f64().unwrap() * [1.0, h, h * h][k];
                let off = (found[k] - scipy).abs() / size;
                worst[k] = worst[k].max(off);
                assert!(off <= allowed, "set {number} ({rule:?}) {name} at {t}: {off:e} of its size");
            }
        }
    }
    println!("largest differences of 1000 sets, by size: {worst:?}");
}
