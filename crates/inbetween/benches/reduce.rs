//! Keys a second of the scalar reducer on every kind of curve, beside the greedy search it is measured by.
use inbetween::reduce::{beam::nearly_optimal_scalar, cone::ScalarCone, search};

fn main() {
    divan::main();
}

fn random() -> impl FnMut() -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }
}

fn at_120_hz(n: usize, mut value: impl FnMut(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
    let times: Vec<f64> = (0..n).map(|i| i as f64 / 120.0).collect();
    let values = times.iter().map(|&t| value(t)).collect();
    (times, values)
}

/// A curve like a captured joint angle: a few slow waves and a little noise, in degrees.
fn captured(n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut noise = random();
    at_120_hz(n, |t| 30.0 * (t * 5.1).sin() + 8.0 * (t * 13.7).sin() + 0.3 * noise())
}

/// No two neighbours are alike.
fn noise(n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut noise = random();
    at_120_hz(n, |_| 2.0 * noise())
}

fn walk(n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut noise, mut at) = (random(), 0.0);
    at_120_hz(n, |_| {
        at += 0.2 * noise();
        at
    })
}

fn smooth(n: usize) -> (Vec<f64>, Vec<f64>) {
    at_120_hz(n, |t| (2.6 * t).sin())
}

fn line(n: usize) -> (Vec<f64>, Vec<f64>) {
    ((0..n).map(|i| i as f64 / 24.0).collect(), (0..n).map(|i| i as f64 * 0.5).collect())
}

macro_rules! reducers {
    ($($module:ident: $curve:expr, $n:expr, $tolerance:expr;)*) => {$(
        mod $module {
            use super::*;
            fn run(bencher: divan::Bencher, f: impl Fn(&[f64], &[f64]) -> Vec<usize> + Sync) {
                let (t, v) = $curve($n);
                bencher.counter(divan::counter::ItemsCount::new($n as usize)).bench(|| f(&t, &v));
            }
            #[divan::bench]
            fn greedy(b: divan::Bencher) {
                run(b, |t, v| search::farthest(&mut ScalarCone::new(t, v, $tolerance)));
            }
            #[divan::bench]
            fn nearly_optimal(b: divan::Bencher) {
                run(b, |t, v| nearly_optimal_scalar(t, v, $tolerance));
            }
        }
    )*};
}

reducers! {
    captured_tight: captured, 300_000, 0.2;
    captured_half: captured, 300_000, 0.5;
    captured_loose: captured, 300_000, 2.0;
    captured_short: captured, 1_000, 0.5;
    captured_few_left: captured, 1_000, 5.0;
    noise_nearly_all_stay: noise, 300_000, 0.01;
    noise_half_stay: noise, 300_000, 0.5;
    noise_a_fifth_stays: noise, 300_000, 0.9;
    walk_tight: walk, 300_000, 0.05;
    walk_loose: walk, 300_000, 1.0;
    smooth_tight: smooth, 300_000, 0.000_1;
    smooth_loose: smooth, 300_000, 0.01;
    straight_line_10_million: line, 10_000_000, 0.05;
}
