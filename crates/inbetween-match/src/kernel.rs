//! What a row costs, exactly; and the least any row in a box can cost.
//!
//! **The cost of a row**, all in f32 with nothing fused:
//!
//! ```text
//! term(c) = (d · d) · w[c],   d = q[c] − x[c]
//! s[k]    = the terms of columns c with c mod 4 = k, added in the order of c
//! cost    = (s[0] + s[1]) + (s[2] + s[3])
//! ```
//!
//! Lanes of a vector are different rows, never different columns, so this order holds at
//! every vector width and the same row has the same bits everywhere. [`plain`] says it
//! once more without vectors.
//!
//! Every term is ≥ 0 and rounding keeps order, so a partial sum never exceeds the whole:
//! a block may be left as soon as all its partial sums are above what is already held.

use fearless_simd::{Simd, f32x16, prelude::*};

use crate::rows::{Blocks, LANES};

/// The cost of one row, by the definition above.
///
/// `value(c)` is the row's number in column `c`.
#[must_use]
pub(crate) fn plain(query: &[f32], weights: &[f32], value: impl Fn(usize) -> f32) -> f32 {
    let mut sums = [0.0f32; 4];
    for column in 0..query.len() {
        let d = query[column] - value(column);
        sums[column % 4] += d * d * weights[column];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// The costs of the 16 rows of a block; `None` once none can be within `limit` any more,
/// `floor` (≤ every extra cost) added.
#[inline(always)]
pub(crate) fn row_costs<S: Simd, B: Blocks>(
    simd: S,
    block: B,
    query: &[f32],
    weights: &[f32],
    floor: f32,
    limit: f32,
) -> Option<[f32; LANES]> {
    let columns = query.len();
    let zero = f32x16::splat(simd, 0.0);
    let mut sums = [zero; 4];
    let mut at = 0;
    while at + 4 <= columns {
        for k in 0..4 {
            let d = f32x16::splat(simd, query[at + k]) - block.load(simd, at + k);
            sums[k] += d * d * f32x16::splat(simd, weights[at + k]);
        }
        at += 4;
        if at % 8 == 0 && at < columns {
            let so_far = (sums[0] + sums[1]) + (sums[2] + sums[3]) + f32x16::splat(simd, floor);
            if !so_far.simd_le(f32x16::splat(simd, limit)).any_true() {
                return None;
            }
        }
    }
    for k in 0..columns - at {
        let d = f32x16::splat(simd, query[at + k]) - block.load(simd, at + k);
        sums[k] += d * d * f32x16::splat(simd, weights[at + k]);
    }
    Some(((sums[0] + sums[1]) + (sums[2] + sums[3])).into())
}

/// The least weighted squared distance from a point to each of 16 boxes.
///
/// Boxes are given in steps of each axis (i8); `above` and `below` are the query's place
/// on the axis in the same steps, widened up and down by what rounding may have moved it.
/// `low`, `high`, `above`, `below` and `weights` have one entry an axis, a multiple of 4.
#[inline(always)]
pub(crate) fn box_bounds<S: Simd>(
    simd: S,
    low: &[[i8; LANES]],
    high: &[[i8; LANES]],
    above: &[f32],
    below: &[f32],
    weights: &[f32],
) -> [f32; LANES] {
    let zero = f32x16::splat(simd, 0.0);
    let mut sums = [zero; 4];
    let axes = low.len();
    let (high, above, below, weights) = (&high[..axes], &above[..axes], &below[..axes], &weights[..axes]);
    let mut at = 0;
    while at + 4 <= axes {
        for k in 0..4 {
            let under = floats(simd, &low[at + k]) - f32x16::splat(simd, above[at + k]);
            let over = f32x16::splat(simd, below[at + k]) - floats(simd, &high[at + k]);
            let d = under.max(over).max(zero);
            sums[k] += d * d * f32x16::splat(simd, weights[at + k]);
        }
        at += 4;
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])).into()
}

#[inline(always)]
fn floats<S: Simd>(simd: S, steps: &[i8; LANES]) -> f32x16<S> {
    let mut wide = [0.0f32; LANES];
    for lane in 0..LANES {
        wide[lane] = f32::from(steps[lane]);
    }
    f32x16::load_array(simd, wide)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Full, Half, narrow, widen};
    use fearless_simd::{Level, dispatch};

    #[test]
    fn a_block_costs_bit_for_bit_what_its_rows_cost_one_by_one() {
        for columns in 1..40 {
            let mut state = 7u32 + columns as u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 22) as f32 - 2.0
            };
            let block: Vec<[f32; LANES]> = (0..columns).map(|_| std::array::from_fn(|_| next())).collect();
            let halves: Vec<[u16; LANES]> = block.iter().map(|v| v.map(narrow)).collect();
            let query: Vec<f32> = (0..columns).map(|_| next()).collect();
            let weights: Vec<f32> = (0..columns).map(|_| next().abs()).collect();
            let costs = dispatch!(Level::new(), s => row_costs(s, Full(&block), &query, &weights, 0.0, f32::INFINITY)).unwrap();
            let rounded = dispatch!(Level::new(), s => row_costs(s, Half(&halves), &query, &weights, 0.0, f32::INFINITY)).unwrap();
            for lane in 0..LANES {
                let one = plain(&query, &weights, |c| block[c][lane]);
                assert_eq!(costs[lane].to_bits(), one.to_bits());
                let one = plain(&query, &weights, |c| widen(halves[c][lane]));
                assert_eq!(rounded[lane].to_bits(), one.to_bits());
            }
        }
    }
}
