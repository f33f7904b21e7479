//! Keys a second of the reducers, on curves whose answer is short, long and in between.
use inbetween::reduce::{cone::ScalarCone, search};

fn main() {
    divan::main();
}

/// A curve like a captured joint angle: a few slow waves and a little noise, at 120 Hz.
fn captured(n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let times: Vec<f64> = (0..n).map(|i| i as f64 / 120.0).collect();
    let values =
        times.iter().map(|t| 30.0 * (t * 5.1).sin() + 8.0 * (t * 13.7).sin() + 0.3 * noise()).collect();
    (times, values)
}

fn line(n: usize) -> (Vec<f64>, Vec<f64>) {
    ((0..n).map(|i| i as f64 / 24.0).collect(), (0..n).map(|i| i as f64 * 0.5).collect())
}

macro_rules! reducers {
    ($module:ident, $curve:expr, $n:expr, $tolerance:expr) => {
        mod $module {
            use super::*;
            fn run(bencher: divan::Bencher, f: impl Fn(&mut ScalarCone<'_, f64>) -> Vec<usize> + Sync) {
                let (t, v) = $curve($n);
                bencher
                    .counter(divan::counter::ItemsCount::new($n as usize))
                    .bench(|| f(&mut ScalarCone::new(&t, &v, $tolerance)));
            }
            #[divan::bench]
            fn first_fail(b: divan::Bencher) {
                run(b, |s| search::first_fail(s));
            }
            #[divan::bench]
            fn farthest(b: divan::Bencher) {
                run(b, |s| search::farthest(s));
            }
            #[divan::bench]
            fn nearly_optimal(b: divan::Bencher) {
                run(b, |s| search::nearly_optimal(s, search::WORK_PER_SAMPLE));
            }
            #[divan::bench]
            fn beam(b: divan::Bencher) {
                let (t, v) = $curve($n);
                b.counter(divan::counter::ItemsCount::new($n as usize))
                    .bench(|| inbetween::reduce::beam::nearly_optimal_scalar(&t, &v, $tolerance));
            }
        }
    };
}

reducers!(captured_tight, captured, 300_000, 0.2);
reducers!(captured_half, captured, 300_000, 0.5);
reducers!(captured_loose, captured, 300_000, 2.0);
reducers!(captured_short, captured, 1_000, 0.5);
reducers!(straight_line_10_million, line, 10_000_000, 0.05);
