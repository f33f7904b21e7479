//! Curves against their peers: evaluation at random and in playback, batches, and
//! building.
//!
//! Peers: `ndarray-interp` (natural cubic spline), `splines` (Catmull–Rom),
//! `uniform-cubic-splines` (Catmull–Rom on even keys), and a plain natural spline
//! written in the obvious way: binary search, four coefficients a span. Compare
//! minima within one run.

use divan::{Bencher, black_box, counter::ItemsCount};
use inbetween::spline::{Cursor, Derivative, Keys, Scratch, Spline, TangentRule, natural, sample_curves};

fn main() {
    divan::main();
}

const KEYS: usize = 1000;
const ASKED: usize = 10_000;

fn random(n: usize) -> Vec<f64> {
    let mut seed = 1_u64;
    (0..n)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        })
        .collect()
}

/// Keys at uneven times: gaps from 0.02 to 0.06 s.
fn keys(n: usize) -> (Vec<f64>, Vec<f64>) {
    let gaps = random(2 * n);
    let mut time = 0.0;
    let times = (0..n)
        .map(|i| {
            time += 0.02 + 0.04 * gaps[i];
            time
        })
        .collect();
    (times, gaps[n..].to_vec())
}

fn random_times(times: &[f64]) -> Vec<f64> {
    let (start, end) = (times[0], times[times.len() - 1]);
    random(ASKED).into_iter().map(|x| start + (end - start) * 0.999_999 * x).collect()
}

/// Playback in small steps: some ten frames between keys.
fn played_times(times: &[f64]) -> Vec<f64> {
    let (start, end) = (times[0], times[times.len() - 1]);
    (0..ASKED).map(|i| start + (end - start) * i as f64 / ASKED as f64).collect()
}

/// The obvious natural spline: what one would write without measuring.
struct Plain {
    times: Vec<f64>,
    cubics: Vec<[f64; 4]>,
}

impl Plain {
    fn new(times: &[f64], values: &[f64]) -> Self {
        let spline = Spline::new(times, values, 1, &TangentRule::Natural).unwrap();
        let cubic = |i| {
            let c = spline.cubic(i, 0);
            [c.a, c.b, c.c, c.d]
        };
        Self { times: times.to_vec(), cubics: (0..spline.spans()).map(cubic).collect() }
    }

    fn at(&self, span: usize, time: f64) -> f64 {
        let [a, b, c, d] = self.cubics[span];
        let s = time - self.times[span];
        a + s * (b + s * (c + s * d))
    }

    fn value(&self, time: f64) -> f64 {
        let span = (self.times.partition_point(|&t| t <= time).max(1) - 1).min(self.cubics.len() - 1);
        self.at(span, time)
    }

    fn played(&self, span: &mut usize, time: f64) -> f64 {
        while *span + 1 < self.cubics.len() && self.times[*span + 1] <= time {
            *span += 1;
        }
        self.at(*span, time)
    }
}

/// Ten thousand evaluations of a curve through 1 000 uneven keys: `$make` builds it from
/// times and values, `$asked` says when, `$value` evaluates once; `$state` is what one
/// run keeps from evaluation to evaluation.
macro_rules! evaluations {
    ($name:ident, $make:expr, $asked:expr, |$curve:ident, $state:ident, $t:ident| $start:expr => $value:expr) => {
        #[divan::bench]
        fn $name(bencher: Bencher) {
            let (times, values) = keys(KEYS);
            let ($curve, asked) = ($make(&times, &values), $asked(&times));
            bencher.counter(ItemsCount::new(ASKED)).bench(|| {
                #[allow(unused_mut)]
                let mut $state = $start;
                asked
                    .iter()
                    .map(|&time| {
                        let $t = black_box(time);
                        $value
                    })
                    .sum::<f64>()
            });
        }
    };
}

fn ours(times: &[f64], values: &[f64]) -> Spline {
    Spline::new(times, values, 1, &TangentRule::Natural).unwrap()
}

mod random_access {
    use super::*;

    evaluations!(inbetween, ours, random_times, |c, _s, t| () => c.value(t));
    evaluations!(plain, Plain::new, random_times, |c, _s, t| () => c.value(t));
    evaluations!(ndarray_interp, peers::ndarray, random_times, |c, _s, t| () => c.interp_scalar(t).unwrap());
    evaluations!(splines, peers::splines, random_times, |c, _s, t| () => c.sample(t).unwrap_or(0.0));

    /// Even keys, and no time but a share of the whole: less is asked of it.
    #[divan::bench]
    fn uniform_cubic_splines(bencher: Bencher) {
        let (_, p) = keys(KEYS);
        let asked = random(ASKED);
        bencher
            .counter(ItemsCount::new(ASKED))
            .bench(|| asked.iter().map(|&x| peers::uniform(black_box(x), &p)).sum::<f64>());
    }
}

mod playback {
    use super::*;

    evaluations!(inbetween, ours, played_times, |c, s, t| Cursor::default() => c.value_with(&mut s, t));
    evaluations!(inbetween_player, ours, played_times, |c, s, t| c.player(0) => s.value(t));
    evaluations!(plain, Plain::new, played_times, |c, s, t| 0 => c.played(&mut s, t));
    evaluations!(ndarray_interp, peers::ndarray, played_times, |c, _s, t| () => c.interp_scalar(t).unwrap());
    evaluations!(splines, peers::splines, played_times, |c, _s, t| () => c.sample(t).unwrap_or(0.0));

    #[divan::bench]
    fn inbetween_batch(bencher: Bencher) {
        let (t, p) = keys(KEYS);
        let (spline, asked) = (ours(&t, &p), played_times(&t));
        let mut out = vec![0.0; ASKED];
        bencher.counter(ItemsCount::new(ASKED)).bench_local(|| {
            spline.sample_many(black_box(&asked), Derivative::Value, &mut out);
            out[ASKED - 1]
        });
    }
}

/// A thousand curves at one time after the other.
mod thousand_curves {
    use super::*;

    const CURVES: usize = 1000;
    const FRAMES: usize = 200;

    /// Keys shared: one row of coefficients is read for each time, so this runs at
    /// the speed of the cache or memory the rows lie in.
    #[divan::bench(args = [10, 1000])]
    fn shared_keys(bencher: Bencher, n: usize) {
        let (t, _) = keys(n);
        let spline = Spline::new(&t, &random(n * CURVES), CURVES, &TangentRule::Natural).unwrap();
        let asked: Vec<f64> =
            (0..FRAMES).map(|i| t[0] + (t[n - 1] - t[0]) * i as f64 / FRAMES as f64).collect();
        let mut out = vec![0.0; CURVES];
        bencher.counter(ItemsCount::new(FRAMES * CURVES)).bench_local(|| {
            let mut cursor = Cursor::default();
            for &t in &asked {
                spline.sample_with(&mut cursor, black_box(t), Derivative::Value, &mut out);
            }
            out[0]
        });
    }

    /// Copies the same rows: the speed of the cache or memory they lie in.
    #[divan::bench(args = [10, 1000])]
    fn shared_keys_floor_copy(bencher: Bencher, n: usize) {
        let rows = random(n * CURVES * 4);
        let mut out = vec![0.0; CURVES];
        bencher.counter(ItemsCount::new(FRAMES * CURVES)).bench_local(|| {
            for i in 0..FRAMES {
                let row = &black_box(&rows)[(i * n / FRAMES) * 4 * CURVES..][..4 * CURVES];
                for k in 0..CURVES {
                    out[k] = row[k] + row[CURVES + k] + row[2 * CURVES + k] + row[3 * CURVES + k];
                }
            }
            out[0]
        });
    }

    /// Keys of their own: a cursor for each.
    #[divan::bench]
    fn own_keys(bencher: Bencher) {
        let curves: Vec<Spline> = (0..CURVES)
            .map(|i| {
                let (mut t, p) = keys(50);
                t.iter_mut().for_each(|t| *t *= 1.0 + i as f64 * 1e-4);
                Spline::new(&t, &p, 1, &TangentRule::Natural).unwrap()
            })
            .collect();
        let mut cursors = vec![Cursor::default(); CURVES];
        let mut out = vec![0.0; CURVES];
        bencher.counter(ItemsCount::new(FRAMES * CURVES)).bench_local(|| {
            for i in 0..FRAMES {
                sample_curves(
                    &curves,
                    &mut cursors,
                    black_box(0.1 + 1.5 * i as f64 / FRAMES as f64),
                    &mut out,
                );
            }
            out[0]
        });
    }
}

/// A camera path: one edit of many keys, and frames.
mod camera {
    use super::*;
    use inbetween::camera::{CameraKey, CameraPath, Channel, Smoothing};

    fn path(n: usize) -> CameraPath {
        let channels = ["x", "y", "z", "yaw", "pitch", "roll", "fov"].map(Channel::new).to_vec();
        let numbers = random(n * 8);
        let keys = (0..n).map(|i| CameraKey::new(i as f64, numbers[8 * i..8 * i + 7].to_vec())).collect();
        let mut path = CameraPath::new(channels, keys).unwrap();
        path.set_smoothing(Smoothing::amount(0.75)).unwrap();
        path
    }

    /// Changing one key, everything solved anew: linear in the keys.
    #[divan::bench(args = [100, 1000, 10_000], sample_count = 20)]
    fn edit_one_key_of(bencher: Bencher, n: usize) {
        let mut path = path(n);
        let key = path.key(n / 2).unwrap();
        bencher.counter(ItemsCount::new(n)).bench_local(|| path.set_key(n / 2, key.clone()).unwrap());
    }

    #[divan::bench]
    fn frame_of_seven_channels(bencher: Bencher) {
        let path = path(1000);
        let mut out = [0.0; 7];
        bencher.counter(ItemsCount::new(ASKED)).bench_local(|| {
            let mut cursor = Cursor::default();
            for i in 0..ASKED {
                path.values_with(&mut cursor, black_box(i as f64 * 0.0999), &mut out);
            }
            out[0]
        });
    }
}

mod building {
    use super::*;

    /// Velocities only, into the caller's memory.
    #[divan::bench(args = [1000, 100_000, 10_000_000], sample_count = 5)]
    fn natural_tangents(bencher: Bencher, n: usize) {
        let (t, p) = keys(n);
        let (mut out, mut scratch) = (vec![0.0; n], Scratch::default());
        bencher.counter(ItemsCount::new(n)).bench_local(|| {
            natural(Keys::scalar(black_box(&t), &p), &mut out, &mut scratch);
            out[n / 2]
        });
    }

    /// A whole curve: checked, solved, laid out, indexed.
    #[divan::bench(args = [1000, 100_000, 10_000_000], sample_count = 5)]
    fn whole_curve(bencher: Bencher, n: usize) {
        let (t, p) = keys(n);
        let mut scratch = Scratch::default();
        bencher.counter(ItemsCount::new(n)).bench_local(|| {
            Spline::with_scratch(black_box(&t), &p, 1, &TangentRule::Natural, &mut scratch).unwrap()
        });
    }

    /// The same where the times are given away and not copied.
    #[divan::bench(args = [1000, 100_000, 10_000_000], sample_count = 5)]
    fn whole_curve_keeping_times(bencher: Bencher, n: usize) {
        let (t, p) = keys(n);
        bencher
            .counter(ItemsCount::new(n))
            .with_inputs(|| t.clone())
            .bench_local_values(|t| Spline::keeping(black_box(t), &p, 1, &TangentRule::Natural).unwrap());
    }

    /// What fresh memory for the polynomials and times costs, filled with zeros.
    #[divan::bench(args = [10_000_000], sample_count = 5)]
    fn floor_fresh_memory(bencher: Bencher, n: usize) {
        bencher.counter(ItemsCount::new(n)).bench_local(|| {
            let mut rows: Vec<[f64; 5]> = Vec::with_capacity(n);
            rows.resize(n, black_box([1.0; 5]));
            rows
        });
    }

    #[divan::bench(args = [1000, 100_000], sample_count = 5)]
    fn ndarray_interp(bencher: Bencher, n: usize) {
        let (t, p) = keys(n);
        bencher.counter(ItemsCount::new(n)).bench(|| peers::ndarray(black_box(&t), &p));
    }
}

mod peers {
    use ndarray::{Array1, OwnedRepr};
    use ndarray_interp::interp1d::{
        Interp1D,
        cubic_spline::{BoundaryCondition, CubicSpline, CubicSplineStrategy},
    };

    type Natural = Interp1D<
        OwnedRepr<f64>,
        OwnedRepr<f64>,
        ndarray::Ix1,
        CubicSplineStrategy<OwnedRepr<f64>, ndarray::Ix1>,
    >;

    pub fn ndarray(times: &[f64], values: &[f64]) -> Natural {
        Interp1D::builder(Array1::from(values.to_vec()))
            .x(Array1::from(times.to_vec()))
            .strategy(CubicSpline::new().boundary(BoundaryCondition::Natural))
            .build()
            .unwrap()
    }

    pub fn splines(times: &[f64], values: &[f64]) -> splines::Spline<f64, f64> {
        let key = |(&t, &v)| splines::Key::new(t, v, splines::Interpolation::CatmullRom);
        splines::Spline::from_vec(times.iter().zip(values).map(key).collect())
    }

    pub fn uniform(share: f64, values: &[f64]) -> f64 {
        uniform_cubic_splines::prelude::spline::<uniform_cubic_splines::prelude::CatmullRom, _, _>(
            share, values,
        )
        .unwrap_or(0.0)
    }
}
