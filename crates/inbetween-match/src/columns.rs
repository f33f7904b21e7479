//! Boxes along the columns themselves, for databases of many columns.
//!
//! Principal axes say most about rows in few numbers, but only for weights like those they were
//! found with. A box along a column is exact for any weight of it, 0 included, and with all of 40
//! or more columns boxes of 16 rows say no less than principal axes do (a million rows of 60
//! columns: 386 blocks within the best cost on average, against 379 for 60 principal axes and 419
//! for 36). So the blocks of a wide database have boxes along every column: they take a second
//! look at what a few principal axes let through, they alone judge where weights are uneven, and
//! what they say of the columns not yet read ends the reading of a block early.
//!
//! A block's box is kept in one piece (all low ends, then all high ends), because it is asked
//! for alone; its columns are measured 16 at a time. Larger boxes lie 16 side by side like those
//! of the tree.

use fearless_simd::{Simd, f32x16, prelude::*};

use crate::axes::FAR;
use crate::rows::{Blocks, LANES};
use crate::tree::Level;

/// Lowers every bound below what f32 rounding in a row's cost can take away.
const CAUTION: f64 = 1.0 - 1e-4;

/// Boxes are this part of a step wider than the rows, for the rounding of a query's place.
const MARGIN: f64 = 1e-3;

/// Boxes along columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns {
    /// Number of columns, at least 16.
    pub(crate) count: usize,
    /// Where each column has its i8 zero, and how long an i8 step is.
    pub(crate) middle: Vec<f64>,
    pub(crate) step: Vec<f64>,
    /// For each block: its low ends, then its high ends.
    pub(crate) blocks: Vec<i8>,
    /// The same for every 4 blocks; may be empty.
    pub(crate) fours: Vec<i8>,
    /// For every 16 blocks, and so on up, like the tree's levels from its second on. Its axes
    /// are the columns, filled up to a multiple of 4 with some that are 0 everywhere.
    pub(crate) levels: Vec<Level>,
    /// A block's usual extent in each column, in steps.
    pub(crate) extent: Vec<f32>,
}

/// A query's place along the columns, in steps, and the columns' weights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Point {
    /// By column, filled up to a multiple of 4.
    pub(crate) at: Vec<f32>,
    pub(crate) weights: Vec<f32>,
    /// Sixteen columns at a time; the last sixteen begin earlier where columns are no multiple
    /// of 16, and the columns met again weigh nothing there.
    vectors: Vec<([f32; LANES], [f32; LANES])>,
}

impl Columns {
    /// Boxes for rows in the order of their slots.
    pub(crate) fn new(rows: &[f32], columns: usize, order: &[u32], fours: bool) -> Self {
        let (mut low, mut high) = (vec![f32::INFINITY; columns], vec![f32::NEG_INFINITY; columns]);
        for row in rows.chunks_exact(columns) {
            for ((x, low), high) in row.iter().zip(&mut low).zip(&mut high) {
                *low = low.min(*x);
                *high = high.max(*x);
            }
        }
        let middle: Vec<f64> =
            low.iter().zip(&high).map(|(l, h)| 0.5 * (f64::from(*l) + f64::from(*h))).collect();
        let step: Vec<f64> = low
            .iter()
            .zip(&high)
            .map(|(l, h)| 0.5 * (f64::from(*h) - f64::from(*l)) / 126.0)
            .map(|step| if step > 0.0 { step } else { 1.0 })
            .collect();
        let mut blocks = Vec::with_capacity(order.len().div_ceil(LANES) * 2 * columns);
        for slots in order.chunks(LANES) {
            low.fill(f32::INFINITY);
            high.fill(f32::NEG_INFINITY);
            for row in slots {
                let row = &rows[*row as usize * columns..][..columns];
                for ((x, low), high) in row.iter().zip(&mut low).zip(&mut high) {
                    *low = if *x < *low { *x } else { *low };
                    *high = if *x > *high { *x } else { *high };
                }
            }
            let place = |x: f32, c: usize| (f64::from(x) - middle[c]) / step[c];
            blocks.extend((0..columns).map(|c| (place(low[c], c) - MARGIN).floor() as i8));
            blocks.extend((0..columns).map(|c| (place(high[c], c) + MARGIN).ceil() as i8));
        }
        Self::over(middle, step, blocks, fours)
    }

    /// The larger boxes over those of the blocks.
    ///
    pub(crate) fn over(middle: Vec<f64>, step: Vec<f64>, blocks: Vec<i8>, fours: bool) -> Self {
        let columns = middle.len();
        let joined = join(&blocks, columns);
        let sixteens = join(&joined, columns);
        let axes = columns.next_multiple_of(4);
        let mut level = Level::empty(sixteens.len() / (2 * columns), axes);
        for item in 0..level.items {
            for c in 0..axes {
                let of = |end: usize| if c < columns { sixteens[(2 * item + end) * columns + c] } else { 0 };
                level.low[item / LANES * axes + c][item % LANES] = of(0);
                level.high[item / LANES * axes + c][item % LANES] = of(1);
            }
        }
        let mut levels = Vec::new();
        while level.items > LANES {
            let above = level.above();
            levels.push(level);
            level = above;
        }
        levels.push(level);
        let fours = if fours { joined } else { Vec::new() };
        let extent = extent(&blocks, columns);
        Self { count: columns, middle, step, blocks, fours, levels, extent }
    }

    pub(crate) fn bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(Level::bytes).sum();
        levels + self.blocks.len() + self.fours.len() + self.count * 20
    }

    /// Where a query lies and what each column weighs for it.
    pub(crate) fn place(&self, query: &[f32], weights: &[f32], point: &mut Point) {
        point.at.clear();
        point.weights.clear();
        for c in 0..self.count {
            let at = (f64::from(query[c]) - self.middle[c]) / self.step[c];
            point.at.push(at.clamp(-FAR, FAR) as f32);
            point.weights.push((f64::from(weights[c]) * self.step[c] * self.step[c] * CAUTION) as f32);
        }
        point.vectors.clear();
        for first in (0..self.count).step_by(LANES) {
            let from = first.min(self.count - LANES);
            let at = std::array::from_fn(|k| point.at[from + k]);
            let weights =
                std::array::from_fn(|k| if from + k < first { 0.0 } else { point.weights[from + k] });
            point.vectors.push((at, weights));
        }
        let filled = self.count.next_multiple_of(4);
        point.at.resize(filled, 0.0);
        point.weights.resize(filled, 0.0);
    }

    /// The box of a block.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> &[i8] {
        &self.blocks[block * 2 * self.count..][..2 * self.count]
    }

    /// The box of four blocks.
    #[inline(always)]
    pub(crate) fn four(&self, four: usize) -> &[i8] {
        &self.fours[four * 2 * self.count..][..2 * self.count]
    }
}

/// The usual extent of a block's box in each column, in steps.
fn extent(blocks: &[i8], columns: usize) -> Vec<f32> {
    let mut sums = vec![0i64; columns];
    for ends in blocks.chunks_exact(2 * columns) {
        for c in 0..columns {
            sums[c] += i64::from(ends[columns + c]) - i64::from(ends[c]);
        }
    }
    let count = (blocks.len() / (2 * columns)).max(1) as f64;
    sums.iter().map(|sum| (*sum as f64 / count) as f32).collect()
}

/// The boxes around every 4 boxes.
fn join(boxes: &[i8], columns: usize) -> Vec<i8> {
    let mut out = Vec::with_capacity(boxes.len().div_ceil(4) + 2 * columns);
    for some in boxes.chunks(4 * 2 * columns) {
        let ends = |at: usize| some.iter().skip(at).step_by(2 * columns).copied();
        out.extend((0..columns).map(|c| ends(c).min().unwrap_or(0)));
        out.extend((0..columns).map(|c| ends(columns + c).max().unwrap_or(0)));
    }
    out
}

impl Point {
    /// How many sixteens the columns make.
    #[inline(always)]
    pub(crate) fn sixteens(&self) -> usize {
        self.vectors.len()
    }

    /// The squared distances to a box in the columns of one sixteen, weighted.
    #[inline(always)]
    fn terms<S: Simd>(&self, simd: S, ends: &[i8], sixteen: usize) -> f32x16<S> {
        let columns = ends.len() / 2;
        let (at, weights) = &self.vectors[sixteen];
        let from = (sixteen * LANES).min(columns - LANES);
        let at = f32x16::load_array_ref(simd, at);
        let under = floats(simd, &ends[from..from + LANES]) - at;
        let over = at - floats(simd, &ends[columns + from..columns + from + LANES]);
        let d = under.max(over).max(f32x16::splat(simd, 0.0));
        d * d * f32x16::load_array_ref(simd, weights)
    }

    /// The least weighted squared distance to a box.
    #[inline(always)]
    pub(crate) fn bound<S: Simd>(&self, simd: S, ends: &[i8]) -> f32 {
        let mut sum = f32x16::splat(simd, 0.0);
        for sixteen in 0..self.vectors.len() {
            sum += self.terms(simd, ends, sixteen);
        }
        sum.reduce_sum()
    }

    /// The same in the columns of one sixteen only.
    #[inline(always)]
    pub(crate) fn bound_in<S: Simd>(&self, simd: S, ends: &[i8], sixteen: usize) -> f32 {
        self.terms(simd, ends, sixteen).reduce_sum()
    }
}

/// Adds what the columns of one sixteen cost the 16 rows of a block; for leaving rows out, not
/// for their totals, which are added in another order.
#[inline(always)]
pub(crate) fn cost_in<S: Simd, B: Blocks>(
    simd: S,
    block: B,
    query: &[f32],
    weights: &[f32],
    sixteen: usize,
    so_far: f32x16<S>,
) -> f32x16<S> {
    let from = sixteen * LANES;
    let to = (from + LANES).min(query.len());
    let (query, weights) = (&query[from..to], &weights[from..to]);
    let block = block.part(from, to - from);
    let mut sums = [so_far, f32x16::splat(simd, 0.0)];
    for (k, (q, w)) in query.iter().zip(weights).enumerate() {
        let d = f32x16::splat(simd, *q) - block.load(simd, k);
        sums[k % 2] += d * d * f32x16::splat(simd, *w);
    }
    sums[0] + sums[1]
}

#[inline(always)]
fn floats<S: Simd>(simd: S, steps: &[i8]) -> f32x16<S> {
    let mut wide = [0.0f32; LANES];
    for (wide, step) in wide.iter_mut().zip(steps) {
        *wide = f32::from(*step);
    }
    f32x16::load_array(simd, wide)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fearless_simd::{Level as Vectors, dispatch};

    #[test]
    fn a_box_is_never_farther_than_its_nearest_row_whatever_the_weights() {
        for columns in [16, 17, 31, 60] {
            let mut state = columns as u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            let rows: Vec<f32> = (0..columns * 1000).map(|_| next() * 3.0).collect();
            let order: Vec<u32> = (0..1000).collect();
            let boxes = Columns::new(&rows, columns, &order, true);
            let mut point = Point::default();
            for far in [1.0, 4.0, 1e6] {
                let query: Vec<f32> = (0..columns).map(|_| next() * far).collect();
                let weights: Vec<f32> = (0..columns).map(|_| next().max(0.0)).collect();
                boxes.place(&query, &weights, &mut point);
                for (block, slots) in order.chunks(LANES).enumerate() {
                    let cost = |row: &u32| -> f64 {
                        (0..columns)
                            .map(|c| {
                                let d = f64::from(query[c]) - f64::from(rows[*row as usize * columns + c]);
                                d * d * f64::from(weights[c])
                            })
                            .sum()
                    };
                    let nearest = slots.iter().map(cost).fold(f64::INFINITY, f64::min);
                    let (one, four, parts) = dispatch!(Vectors::new(), s => {
                        let ends = boxes.block(block);
                        let parts: f32 = (0..point.sixteens()).map(|k| point.bound_in(s, ends, k)).sum();
                        (point.bound(s, ends), point.bound(s, boxes.four(block / 4)), parts)
                    });
                    assert!(f64::from(one) <= nearest, "{one} > {nearest}");
                    assert!(four <= one * 1.000_001);
                    assert!((parts - one).abs() <= 1e-5 * one);
                }
            }
        }
    }
}
