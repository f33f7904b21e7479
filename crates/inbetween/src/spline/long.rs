//! Natural splines through very many keys, in one pass over memory.
//!
//! The idea: for millions of keys the solve waits on memory and on its own chain of
//! divisions, not on arithmetic. A key's influence on the velocities of others falls
//! to a half or less with each key between (in the elimination to two thirds), so
//! the keys can be cut into four lanes that are eliminated side by side, each begun
//! [`WARM`] keys early, and velocities can be taken back [`AHEAD`] keys behind the
//! elimination, while all they need is still in the cache. Each polynomial is then
//! written once, where it stays. What is left out is below 1e-38 of the curve's largest
//! velocity, far less than the rounding of the plain solve, to which
//! [`super::natural`] and the test below hold it.
//!
//! It stops at one component and natural ends, and says nothing of what is wrong
//! with keys: the plain way, which is taken where a number is not sound, does.

use super::segment::Cubic;
use super::tangents::{Keys, Scratch, natural};

/// Keys from which on this way is taken.
pub(super) const LONG: usize = 1 << 15;

const LANES: usize = 4;
/// Rows written between two rounds of taking velocities back.
const BLOCK: usize = 512;
/// Keys the elimination is ahead of the last velocity written: 2^−128.
const AHEAD: usize = 128;
/// Keys a lane is begun early: (2/3)^−256 is below 1e−44.
const WARM: usize = 256;

/// One number for each lane; loops over it become vectors.
type Four = [f64; LANES];

/// The keys just eliminated, lane by lane.
#[derive(Clone, Copy)]
struct Front {
    /// Gap and slope of the span that ends at the next key.
    gap: Four,
    slope: Four,
    /// Upper diagonal and right side of the row before.
    upper: Four,
    right: Four,
}

/// What a key leaves for the way back.
#[derive(Clone, Copy, Default)]
struct Eliminated {
    upper: Four,
    right: Four,
    /// Of the span that begins here.
    inverse: Four,
    slope: Four,
}

/// The polynomials of all spans, `a`, `b`, `c`, `d` in turn; `None` where times do not
/// increase or a coefficient is not finite.
///
/// `times` and `values` are of one length, at least [`LONG`].
pub(super) fn natural_rows(times: &[f64], values: &[f64], scratch: &mut Scratch) -> Option<Vec<f64>> {
    let n = times.len();
    debug_assert!(n >= LONG && values.len() == n);
    // The lanes stop short of the end, which is solved plainly.
    let lane = (n - 1 - 2 * AHEAD) / (LANES * BLOCK) * BLOCK;
    let tail = LANES * lane;
    let starts: [usize; LANES] = std::array::from_fn(|l| l * lane);

    let mut front = Front { gap: [0.0; 4], slope: [0.0; 4], upper: [0.0; 4], right: [0.0; 4] };
    for l in 0..LANES {
        let mut single = begun(times, values, starts[l].saturating_sub(WARM));
        for key in starts[l].saturating_sub(WARM) + 1..=starts[l] {
            single = step(single, &[key; LANES], times, values).0;
        }
        (front.gap[l], front.slope[l]) = (single.gap[0], single.slope[0]);
        (front.upper[l], front.right[l]) = (single.upper[0], single.right[0]);
    }
    // The front always stands on the last key eliminated, the first of a block's lanes.
    let mut done = Vec::with_capacity(BLOCK + AHEAD + 1);
    done.push(eliminated(&front, &starts, times));

    let mut rows = vec![0.0; 4 * (n - 1)];
    let (lanes, end) = rows.split_at_mut(4 * tail);
    let (first, rest) = lanes.split_at_mut(4 * lane);
    let (second, rest) = rest.split_at_mut(4 * lane);
    let (third, fourth) = rest.split_at_mut(4 * lane);
    let mut outs: [&mut [f64]; LANES] = [first, second, third, fourth];

    let mut unsound: Four = [0.0; LANES];
    let mut shortest: Four = [f64::INFINITY; LANES];
    for block in (0..lane).step_by(BLOCK) {
        while done.len() < BLOCK + AHEAD {
            let at = block + done.len();
            let keys: [usize; LANES] = std::array::from_fn(|l| starts[l] + at);
            let (next, left) = step(front, &keys, times, values);
            for l in 0..LANES {
                shortest[l] = shortest[l].min(next.gap[l]);
            }
            front = next;
            done.push(left);
        }
        let mut after = done[BLOCK + AHEAD - 1].right;
        for key in done[BLOCK..BLOCK + AHEAD - 1].iter().rev() {
            for l in 0..LANES {
                after[l] = key.right[l] - key.upper[l] * after[l];
            }
        }
        let written: [_; LANES] = outs.each_mut().map(|out| {
            let (head, tail) = std::mem::take(out).split_at_mut(4 * BLOCK);
            *out = tail;
            head
        });
        for (j, key) in done[..BLOCK].iter().enumerate().rev() {
            let (mut here, mut c, mut d) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for l in 0..LANES {
                here[l] = key.right[l] - key.upper[l] * after[l];
                c[l] = (3.0 * key.slope[l] - 2.0 * here[l] - after[l]) * key.inverse[l];
                d[l] = (here[l] + after[l] - 2.0 * key.slope[l]) * key.inverse[l] * key.inverse[l];
                unsound[l] += c[l] * 0.0 + d[l] * 0.0;
            }
            for l in 0..LANES {
                let row = &mut written[l][4 * j..4 * j + 4];
                row.copy_from_slice(&[values[starts[l] + block + j], here[l], c[l], d[l]]);
            }
            after = here;
        }
        done.copy_within(BLOCK.., 0);
        done.truncate(AHEAD);
    }

    let from = tail - WARM;
    let (near_times, near_values) = (&times[from..], &values[from..]);
    let mut velocities = vec![0.0; n - from];
    natural(Keys::scalar(near_times, near_values), &mut velocities, scratch);
    let (mut unsound, mut shortest) =
        (unsound.iter().sum::<f64>(), shortest.iter().fold(f64::INFINITY, |m, x| m.min(*x)));
    for (j, row) in (WARM..).zip(end.chunks_exact_mut(4)) {
        let gap = near_times[j + 1] - near_times[j];
        let Cubic { a, b, c, d } =
            Cubic::hermite(gap, near_values[j], near_values[j + 1], velocities[j], velocities[j + 1]);
        row.copy_from_slice(&[a, b, c, d]);
        shortest = shortest.min(gap);
        unsound += c * 0.0 + d * 0.0;
    }
    let begins = starts.iter().all(|&s| times[s + 1] > times[s]) && values[n - 1].is_finite();
    (unsound == 0.0 && shortest > 0.0 && begins).then_some(rows)
}

/// All lanes as if the curve began at `key`: no acceleration there.
fn begun(times: &[f64], values: &[f64], key: usize) -> Front {
    let gap = times[key + 1] - times[key];
    let slope = (values[key + 1] - values[key]) * (1.0 / gap);
    Front { gap: [gap; LANES], slope: [slope; LANES], upper: [0.5; LANES], right: [1.5 * slope; LANES] }
}

fn eliminated(front: &Front, keys: &[usize; LANES], times: &[f64]) -> Eliminated {
    let inverse = keys.map(|key| 1.0 / (times[key + 1] - times[key]));
    Eliminated { upper: front.upper, right: front.right, inverse, slope: front.slope }
}

/// Eliminates one key in each lane: λ·m₋ + 2m + μ·m₊ = 3(λ·d₋ + μ·d), as the plain solve
/// does.
#[inline(always)]
fn step(front: Front, keys: &[usize; LANES], times: &[f64], values: &[f64]) -> (Front, Eliminated) {
    let mut next = front;
    let mut left = Eliminated::default();
    let (mut here, mut after) = ([0.0; LANES], [0.0; LANES]);
    for l in 0..LANES {
        let pair = &times[keys[l]..keys[l] + 2];
        next.gap[l] = pair[1] - pair[0];
        let pair = &values[keys[l]..keys[l] + 2];
        (here[l], after[l]) = (pair[0], pair[1]);
    }
    for l in 0..LANES {
        let inverse = 1.0 / next.gap[l];
        let slope = (after[l] - here[l]) * inverse;
        let share = 1.0 / (front.gap[l] + next.gap[l]);
        let (lambda, mu) = (next.gap[l] * share, front.gap[l] * share);
        let pivot = 1.0 / (2.0 - lambda * front.upper[l]);
        next.upper[l] = mu * pivot;
        next.right[l] = (3.0 * (lambda * front.slope[l] + mu * slope) - lambda * front.right[l]) * pivot;
        next.slope[l] = slope;
        left.inverse[l] = inverse;
    }
    (left.upper, left.right, left.slope) = (next.upper, next.right, next.slope);
    (next, left)
}

#[cfg(test)]
mod tests {
    use super::super::{Spline, TangentRule};
    use super::*;

    /// The plain twin: velocities by the plain solve, then the polynomials.
    fn plain(times: &[f64], values: &[f64]) -> Vec<f64> {
        let mut velocities = vec![0.0; times.len()];
        natural(Keys::scalar(times, values), &mut velocities, &mut Scratch::default());
        (0..times.len() - 1)
            .flat_map(|i| {
                let h = times[i + 1] - times[i];
                let Cubic { a, b, c, d } =
                    Cubic::hermite(h, values[i], values[i + 1], velocities[i], velocities[i + 1]);
                [a, b, c, d]
            })
            .collect()
    }

    fn keys(n: usize, gap: impl Fn(usize, f64) -> f64) -> (Vec<f64>, Vec<f64>) {
        let mut seed = 7_u64;
        let mut share = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut time = -3.0;
        let times = (0..n)
            .map(|i| {
                time += gap(i, share());
                time
            })
            .collect();
        (times, (0..n).map(|_| share() * 4.0 - 2.0).collect())
    }

    #[test]
    fn the_long_way_gives_what_the_plain_way_gives() {
        for (n, name) in [(LONG, "even"), (LONG + 1, "uneven"), (LONG + 2047, "wild"), (70_001, "grouped")] {
            let (times, values) = keys(n, |i, share| match name {
                "even" => 0.25,
                "uneven" => 0.02 + share,
                "wild" => 10.0_f64.powf(6.0 * share - 5.0),
                _ => {
                    if i % 50 == 0 {
                        100.0
                    } else {
                        1e-3
                    }
                }
            });
            let long = natural_rows(&times, &values, &mut Scratch::default()).unwrap();
            let plain = plain(&times, &values);
            for (i, (a, b)) in long.chunks_exact(4).zip(plain.chunks_exact(4)).enumerate() {
                let h = times[i + 1] - times[i];
                // Both ways round some ten times a key: compare what each term adds to
                // the value at the span's end with the size of those terms.
                let size = 1.0 + (b[1] * h).abs() + (b[2] * h * h).abs() + (b[3] * h * h * h).abs();
                let powers = [1.0, h, h * h, h * h * h];
                for k in 0..4 {
                    let off = ((a[k] - b[k]) * powers[k]).abs();
                    assert!(off <= 1e-13 * size, "{name}, span {i}, coefficient {k}: {off:e} of {size:e}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_not_sound_are_named_by_their_key_however_long_the_curve_is() {
        let (times, values) = keys(LONG + 5, |_, share| 0.1 + share);
        for index in [0, 1, 300, LONG / 4, LONG / 4 + 1, LONG / 2 + 17, LONG - 30, LONG + 4] {
            let text = |times: &[f64], values: &[f64]| {
                Spline::new(times, values, 1, &TangentRule::Natural).unwrap_err().to_string()
            };
            for bad in [f64::NAN, f64::INFINITY] {
                let mut broken = values.clone();
                broken[index] = bad;
                let said = text(&times, &broken);
                assert!(said.contains(&format!("key {index} has value")), "{said}");
                let mut broken = times.clone();
                broken[index] = bad;
                let said = text(&broken, &values);
                assert!(said.contains(&format!("key {index} has time")), "{said}");
            }
            if index > 0 {
                let mut broken = times.clone();
                broken[index] = broken[index - 1];
                let said = text(&broken, &values);
                assert!(said.contains(&format!("keys {} and {index} are both", index - 1)), "{said}");
                broken[index] = broken[index - 1] - 0.01;
                assert!(text(&broken, &values).contains(&format!("key {index} is at")));
            }
        }
    }

    #[test]
    fn a_long_curve_meets_every_key_and_finds_every_span() {
        let (times, values) =
            keys(140_000, |i, share| if i % 1000 < 500 { 1e-3 * (1.0 + share) } else { 1.0 });
        let curve = Spline::keeping(times.clone(), &values, 1, &TangentRule::Natural).unwrap();
        assert_eq!(curve, Spline::new(&times, &values, 1, &TangentRule::Natural).unwrap());
        for (i, (&t, &v)) in times.iter().zip(&values).enumerate() {
            assert_eq!(curve.value(t), v, "key {i}");
            assert_eq!(curve.span_at(t.next_down()), i.saturating_sub(1));
        }
    }
}
