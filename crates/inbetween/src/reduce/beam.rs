//! Nearly the fewest straight spans of a scalar curve, at the speed of the greedy ones.
//!
//! [`farthest`](super::search::farthest) follows one path. Here a fixed number of paths with the same number of keys are
//! followed side by side: the ends of the last span that lie farthest and some behind them. Their cones of
//! slopes are opened over the samples up to the farthest end and then advanced in lock step, a lane each; two
//! samples share one division. Of the ends that any of them reaches the farthest and some behind it go on.
//!
//! Where spans are so short that setting out from a layer costs more than its samples, all spans are looked at
//! instead, see `window`, until they become longer again.
//!
//! Linear time, and apart from the result a byte a sample and two words for each end that went on.

use fearless_simd::{Level, Simd, dispatch, f64x8, prelude::*};

use super::cone::{ScalarCone, Tolerance};
use super::search::{self, patience};
use super::window::{LANES, Levels, incoming};

/// A curve to be reduced.
pub(super) struct Samples<'a, T> {
    pub times: &'a [f64],
    pub values: &'a [f64],
    pub tolerance: T,
}

/// A tolerance with the rounding of the slopes on top.
struct Rounded<T> {
    tolerance: T,
    rounding: f64,
}

impl<T: Tolerance> Tolerance for Rounded<T> {
    #[inline(always)]
    fn at(&self, index: usize) -> f64 {
        self.tolerance.at(index) + self.rounding
    }
}

/// Registers of paths at first.
const NARROW: usize = 1;

/// Registers of paths where few keys are left.
const WIDE: usize = 8;

/// Where no more keys than this are left, one or two too many are a twentieth, and a wide beam is followed as
/// well.
const FEW: usize = 150;

/// Part of a curve's largest value by which rounding may move a line here: a difference of two values is up to
/// twice as large, and six roundings of half an ulp each lead from it to a slope. Without it, samples that lie
/// exactly on a line or exactly at the tolerance would be kept.
const ROUNDING: f64 = 2.0 * 6.0 * 0.5 * f64::EPSILON;

/// Shortest gap between times, in seconds, and largest value for which this arithmetic has no overflow.
const LEAST_GAP: f64 = 1e-60;
const MOST: f64 = 1e150;

/// So many layers in a row that each advanced by no more than `SHORT` samples lead to the window.
const SHORT_LAYERS: usize = 3;
const SHORT: usize = 3;

/// Ends that are remembered of a layer, at least half as many after it was more.
const REMEMBERED: usize = 1024;

/// Nearly the fewest keys whose straight lines pass every sample within its tolerance.
///
/// - `times`: strictly increasing seconds; `values`: as many, in some unit; `tolerance` in that unit, ≥ 0.
/// - returns the kept indices, increasing, first and last sample among them.
///
/// Every skipped sample is tested; a line may be off by the tolerance and, because slopes are rounded, 3e-15 of
/// the curve's largest value. Linear time whatever the curve; where no more than 150 keys stay, a
/// second, wider search costs about three times as much. The same keys on every machine.
///
/// # Panics
/// If the two lengths differ.
pub fn nearly_optimal_scalar(times: &[f64], values: &[f64], tolerance: impl Tolerance) -> Vec<usize> {
    assert_eq!(times.len(), values.len(), "a value per time");
    at_level(Level::new(), &Samples { times, values, tolerance: &tolerance })
}

fn at_level<T: Tolerance>(level: Level, curve: &Samples<'_, T>) -> Vec<usize> {
    let n = curve.times.len();
    if n <= 2 {
        return (0..n).collect();
    }
    let Some(size) = dispatch!(level, simd => size(simd, curve)) else {
        let mut spans = ScalarCone::new(curve.times, curve.values, &curve.tolerance);
        return search::nearly_optimal(&mut spans, search::WORK_PER_SAMPLE);
    };
    let tolerance = Rounded { tolerance: &curve.tolerance, rounding: size * ROUNDING };
    let curve = &Samples { times: curve.times, values: curve.values, tolerance };
    let kept = dispatch!(level, simd => follow::<_, _, NARROW>(simd, curve));
    // Two spans are taken only if one is not allowed.
    if kept.len() <= 3 || kept.len() > FEW {
        return kept;
    }
    let wide = dispatch!(level, simd => follow::<_, _, WIDE>(simd, curve));
    if wide.len() < kept.len() { wide } else { kept }
}

/// The largest value without its sign, if products of four time differences stay finite and above zero and
/// differences of values finite.
#[inline(always)]
fn size<S: Simd, T>(simd: S, curve: &Samples<'_, T>) -> Option<f64> {
    let (times, values) = (curve.times, curve.values);
    let (least, most) = (f64x8::splat(simd, LEAST_GAP), f64x8::splat(simd, MOST));
    let mut tame = most.simd_gt(least);
    let mut size = f64x8::splat(simd, 0.0);
    let mut k = 0;
    while k + LANES < times.len() {
        let gap = f64x8::from_slice(simd, &times[k + 1..k + 1 + LANES])
            - f64x8::from_slice(simd, &times[k..k + LANES]);
        let value = f64x8::from_slice(simd, &values[k..k + LANES]).abs();
        tame = tame & gap.simd_gt(least) & value.simd_lt(most);
        size = size.max(value);
        k += LANES;
    }
    let gaps = times[k..].windows(2).all(|t| t[1] - t[0] > LEAST_GAP);
    let rest = values[k..].iter().all(|v| v.abs() < MOST);
    let spanned = times[times.len() - 1] - times[0] < 1.0 / LEAST_GAP;
    if !(gaps && rest && spanned && tame.all_true()) {
        return None;
    }
    Some(values[k..].iter().fold(size.reduce_max(), |most, v| most.max(v.abs())))
}

/// The paths found: from each end that went on, the sample it was reached from.
struct Paths {
    /// Of the window: how many samples before; 0 for a sample that is not of the window.
    short: Vec<u8>,
    /// Of the beam: ends, increasing, and where each came from.
    long: Vec<(usize, usize)>,
}

impl Paths {
    /// The keys of the path to `last`.
    fn to(mut self, last: usize) -> Vec<usize> {
        let mut kept = vec![last];
        let mut at = last;
        while at > 0 {
            at = match self.short[at] {
                0 => loop {
                    let (end, from) = self.long.pop().expect("every end has been reached from somewhere");
                    if end == at {
                        break from;
                    }
                },
                back => at - usize::from(back),
            };
            kept.push(at);
        }
        kept.reverse();
        kept
    }
}

#[inline(always)]
fn follow<S: Simd, T: Tolerance, const REGISTERS: usize>(simd: S, curve: &Samples<'_, T>) -> Vec<usize> {
    let last = curve.times.len() - 1;
    let mut paths = Paths { short: vec![0; last + 1 + LANES], long: Vec::new() };
    // The ends of a layer in increasing order; what it reaches, with the lanes it is reached from.
    let mut layer = vec![0];
    let mut reached: Vec<(usize, u64)> = Vec::with_capacity(REMEMBERED);
    let mut short_layers = 0;
    loop {
        let front = layer[layer.len() - 1];
        if front == last {
            return paths.to(last);
        }
        if short_layers == SHORT_LAYERS {
            short_layers = 0;
            pass_window(simd, curve, &mut layer, &mut paths.short);
            continue;
        }
        reached.clear();
        advance::<S, T, REGISTERS>(simd, curve, &layer, &mut reached);
        let ends = paths.long.len();
        spread(&reached, REGISTERS * LANES, |(end, lanes)| {
            paths.long.push((end, layer[lanes.trailing_zeros() as usize]));
        });
        layer.clear();
        layer.extend(paths.long[ends..].iter().map(|&(end, _)| end));
        let short = REGISTERS == NARROW && layer[layer.len() - 1] - front <= SHORT;
        short_layers = if short { short_layers + 1 } else { 0 };
    }
}

/// Goes on through the window until spans longer than its reach turn up, or to the end.
#[inline(always)]
fn pass_window<S: Simd, T: Tolerance>(
    simd: S,
    curve: &Samples<'_, T>,
    layer: &mut Vec<usize>,
    short: &mut [u8],
) {
    let n = curve.times.len();
    let front = layer[layer.len() - 1];
    let mut levels = Levels::of(layer.iter().map(|end| front - end));
    let mut end = front + 1;
    while end < n {
        let spans = incoming(simd, curve, end);
        let count = LANES.min(n - end);
        // All lanes, so that the loop is unrolled; what lies behind the last sample is never looked at.
        let back = &mut short[end..end + LANES];
        for lane in 0..count {
            back[lane] = levels.next(spans.at(lane));
        }
        end += count;
        if spans.open != 0 && end < n {
            layer.clear();
            layer.extend(levels.lowest().map(|back| end - 1 - back));
            layer.drain(..layer.len().saturating_sub(NARROW * LANES));
            return;
        }
    }
    layer.clear();
    layer.push(n - 1);
}

/// Finds the ends beyond the layer's front that can be reached from it, increasing, with the lanes that do.
#[inline(always)]
fn advance<S: Simd, T: Tolerance, const REGISTERS: usize>(
    simd: S,
    curve: &Samples<'_, T>,
    layer: &[usize],
    reached: &mut Vec<(usize, u64)>,
) {
    let last = curve.times.len() - 1;
    let front = layer[layer.len() - 1];
    let registers = layer.len().div_ceil(LANES);
    let (zero, one) = (f64x8::splat(simd, 0.0), f64x8::splat(simd, 1.0));
    let (none, any) = (f64x8::splat(simd, f64::NEG_INFINITY), f64x8::splat(simd, f64::INFINITY));
    let mut time = [zero; REGISTERS];
    let mut value = [zero; REGISTERS];
    // Lanes without an end let nothing through.
    let mut low = [any; REGISTERS];
    let mut high = [none; REGISTERS];
    for r in 0..registers {
        let ends = &layer[LANES * r..layer.len().min(LANES * (r + 1))];
        let mut rows = [
            [curve.times[front]; LANES],
            [curve.values[front]; LANES],
            [f64::INFINITY; LANES],
            [f64::NEG_INFINITY; LANES],
        ];
        for (lane, &end) in ends.iter().enumerate() {
            rows[0][lane] = curve.times[end];
            rows[1][lane] = curve.values[end];
            rows[2][lane] = f64::NEG_INFINITY;
            rows[3][lane] = f64::INFINITY;
        }
        time[r] = f64x8::from_slice(simd, &rows[0]);
        value[r] = f64x8::from_slice(simd, &rows[1]);
        low[r] = f64x8::from_slice(simd, &rows[2]);
        high[r] = f64x8::from_slice(simd, &rows[3]);
        // The samples between the ends bind those before them only.
        let mut k = ends[0] + 1;
        while k <= front {
            let next = (k + 1).min(front);
            let a = f64x8::splat(simd, curve.times[k]) - time[r];
            let b = f64x8::splat(simd, curve.times[next]) - time[r];
            let (binds_a, binds_b) = (a.simd_gt(zero), b.simd_gt(zero));
            let (a, b) = (binds_a.select(a, one), binds_b.select(b, one));
            let both = one / (a * b);
            let (per_a, per_b) = (both * b, both * a);
            let slope_a = (f64x8::splat(simd, curve.values[k]) - value[r]) * per_a;
            let slope_b = (f64x8::splat(simd, curve.values[next]) - value[r]) * per_b;
            let slack_a = f64x8::splat(simd, curve.tolerance.at(k)) * per_a;
            let slack_b = f64x8::splat(simd, curve.tolerance.at(next)) * per_b;
            low[r] = low[r].max(binds_a.select(slope_a - slack_a, none));
            high[r] = high[r].min(binds_a.select(slope_a + slack_a, any));
            low[r] = low[r].max(binds_b.select(slope_b - slack_b, none));
            high[r] = high[r].min(binds_b.select(slope_b + slack_b, any));
            k += 2;
        }
    }
    let mut k = front + 1;
    let mut limit = usize::MAX;
    while k <= last && k < limit {
        let next = (k + 1).min(last);
        let (mut lanes, mut lanes_next, mut open) = (0_u64, 0_u64, 0_u64);
        let (time_a, time_b) = (f64x8::splat(simd, curve.times[k]), f64x8::splat(simd, curve.times[next]));
        let (value_a, value_b) =
            (f64x8::splat(simd, curve.values[k]), f64x8::splat(simd, curve.values[next]));
        let tolerance_a = f64x8::splat(simd, curve.tolerance.at(k));
        let tolerance_b = f64x8::splat(simd, curve.tolerance.at(next));
        for r in 0..REGISTERS {
            if REGISTERS > 1 && r == registers {
                break;
            }
            let (a, b) = (time_a - time[r], time_b - time[r]);
            let both = one / (a * b);
            let (per_a, per_b) = (both * b, both * a);
            let (slope_a, slope_b) = ((value_a - value[r]) * per_a, (value_b - value[r]) * per_b);
            let (slack_a, slack_b) = (tolerance_a * per_a, tolerance_b * per_b);
            lanes |= (low[r].simd_le(slope_a) & slope_a.simd_le(high[r])).to_bitmask() << (LANES * r);
            low[r] = low[r].max(slope_a - slack_a);
            high[r] = high[r].min(slope_a + slack_a);
            lanes_next |= (low[r].simd_le(slope_b) & slope_b.simd_le(high[r])).to_bitmask() << (LANES * r);
            low[r] = low[r].max(slope_b - slack_b);
            high[r] = high[r].min(slope_b + slack_b);
            open |= low[r].simd_le(high[r]).to_bitmask();
        }
        if lanes | lanes_next != 0 {
            // A long straight line must not fill memory with ends, of which only the farthest matter.
            if reached.len() + 2 > REMEMBERED {
                reached.drain(..REMEMBERED / 2);
            }
            if lanes != 0 {
                reached.push((k, lanes));
            }
            if lanes_next != 0 && next > k {
                reached.push((next, lanes_next));
            }
            limit = next + patience(next - front);
        }
        if open == 0 {
            break;
        }
        k += 2;
    }
}

/// Picks the farthest end and others behind it, in increasing order: dense close by, thinner farther back,
/// because neighbouring ends are much alike. `count·¾·(k/width)²` was the best of a dozen spreads tried.
#[inline(always)]
fn spread(reached: &[(usize, u64)], width: usize, mut take: impl FnMut((usize, u64))) {
    let count = reached.len();
    if count <= width {
        reached.iter().for_each(|end| take(*end));
        return;
    }
    for k in (0..width).rev() {
        let back = (k * k * 3 * count / (4 * width * width)).max(k).min(count - 1);
        take(reached[count - 1 - back]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_keeps_the_same_keys() {
        let mut state = 11_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let times: Vec<f64> = (0..5000).map(|i| f64::from(i) / 60.0).collect();
        let mut walk = 0.0;
        let values: Vec<f64> = times
            .iter()
            .map(|t| {
                walk += 0.1 * random();
                walk + (2.0 * t).sin()
            })
            .collect();
        for tolerance in [0.0, 0.01, 0.05, 0.2, 0.5, 2.0, 20.0] {
            let curve = Samples { times: &times, values: &values, tolerance };
            assert_eq!(at_level(Level::new(), &curve), at_level(Level::baseline(), &curve), "{tolerance}");
        }
    }

    #[test]
    fn extreme_times_and_values_are_reduced_the_plain_way() {
        let times: Vec<f64> = (0..400).map(|i| f64::from(i) * 1e-90).collect();
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 50)).collect();
        let kept = nearly_optimal_scalar(&times, &values, 0.25);
        assert_eq!(kept.len(), 16);
        let huge: Vec<f64> = values.iter().map(|v| v * 1e200).collect();
        assert_eq!(nearly_optimal_scalar(&times, &huge, 1e199), kept);
    }
}
