//! The directions boxes are measured along.
//!
//! Feature columns are correlated: the point half a second ahead lies between the present
//! and the point a second ahead. Boxes along the columns of such data are mostly empty,
//! so they say little about how near a row in them can be. Boxes along the principal axes
//! say twice as much with half the numbers.
//!
//! Turning the axes must not spoil weights given at the query. Columns are therefore
//! turned only within a *group* (the database chooses them), where the reference weights are
//! w₀. For query weights w and the group's smallest ratio m = min w[c]/w₀[c],
//!
//! ```text
//! Σ w[c]·d[c]²  ≥  m · Σ w₀[c]·d[c]²  =  m · Σ y[k]²
//! ```
//!
//! with y the group's principal coordinates of √w₀·d; leaving axes away keeps the "≥".
//! When a whole group is made heavier or lighter this is an equality; when its columns
//! change against each other the bound is merely weaker, and the search slower, never wrong.
//! Larger groups say more with as many axes, but one column switched off then takes the
//! bounds of its whole group away.
//!
//! Rounding is paid for openly: places on an axis are widened by more than any
//! rounding error of their computation, and bounds are lowered by one part in ten thousand.

use fearless_simd::{Level, Simd, dispatch};

use crate::rows::LANES;

/// Lowers every bound below what f32 rounding in a row's cost can take away.
const CAUTION: f64 = 1.0 - 1e-4;

/// Places farther than this many steps are taken as this far, so that squares stay in f32; bounds
/// only fall by it.
pub(crate) const FAR: f64 = 1e15;

/// How much of the weights bounds must count for them to be used where there are others.
const EVEN: f64 = 0.8;

/// The axes of a database's boxes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axes {
    pub(crate) columns: usize,
    /// Number of axes, a multiple of 4.
    pub(crate) count: usize,
    /// `matrix[c · count + k]`: the share of column c in axis k, √w₀ included.
    pub(crate) matrix: Vec<f64>,
    /// Group of each axis and of each column.
    pub(crate) axis_group: Vec<u8>,
    pub(crate) column_group: Vec<u8>,
    /// The reference weights w₀.
    pub(crate) reference: Vec<f32>,
    /// Where each axis has its i8 zero, and how long an i8 step is.
    pub(crate) middle: Vec<f64>,
    pub(crate) step: Vec<f64>,
    /// What rounding may have moved a row's coordinate by, in steps; needed while building.
    pub(crate) margin: Vec<f64>,
}

/// A query's place on the axes, in i8 steps: its upper and lower end, and the axes' weights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) above: Vec<f32>,
    pub(crate) below: Vec<f32>,
    pub(crate) weights: Vec<f32>,
    /// Weights for the order of visits only: what the group weighs on the whole. No bound.
    pub(crate) usual: Vec<f32>,
    /// Whether the bounds count nearly all of the weights; where not, columns are weighted too
    /// differently from the reference for these axes to say much.
    pub(crate) even: bool,
    ratio: Vec<f64>,
    /// By group: the query's and the reference weights added up.
    sums: Vec<(f64, f64)>,
    at: Vec<f64>,
}

impl Axes {
    /// Principal axes of the rows, group by group, and each row's coordinates.
    ///
    /// - `rows`: row after row, `columns` numbers each, as the search will see them.
    /// - `groups`: the group of each column.
    /// - `reference`: w₀ of each column.
    /// - `most`: how many axes to keep at most, a multiple of 4; those that vary most are kept.
    /// - returns the axes and rows × `count` coordinates.
    pub(crate) fn new(
        rows: &[f32],
        columns: usize,
        groups: &[u8],
        reference: &[f32],
        most: usize,
    ) -> (Self, Vec<f32>) {
        let count = rows.len() / columns;
        let root: Vec<f64> = reference.iter().map(|w| f64::from(*w).sqrt()).collect();
        // Directions need no more than a sample; boxes are measured on all rows.
        let stride = count.div_ceil(8192).max(1);
        let sample: Vec<&[f32]> = rows.chunks_exact(columns).step_by(stride).collect();

        let mut found: Vec<Found> = Vec::new();
        let mut names: Vec<u8> = groups.to_vec();
        names.sort_unstable();
        names.dedup();
        for group in names {
            let members: Vec<usize> =
                (0..columns).filter(|c| groups[*c] == group && reference[*c] > 0.0).collect();
            let (values, vectors) = eigen(&covariance(&sample, &members, &root), members.len());
            for (k, value) in values.iter().enumerate() {
                let axis = members
                    .iter()
                    .enumerate()
                    .map(|(i, c)| (*c, vectors[i * members.len() + k] * root[*c]))
                    .collect();
                found.push(Found { variance: *value, group, shares: axis });
            }
        }
        found.sort_by(|a, b| b.variance.total_cmp(&a.variance));
        let largest = found.first().map_or(0.0, |a| a.variance);
        let keep = found.iter().take_while(|a| a.variance > 1e-6 * largest).count().min(most);
        found.truncate(keep);

        let axes = keep.next_multiple_of(4).max(4);
        let mut matrix = vec![0.0f64; columns * axes];
        let mut axis_group = vec![0u8; axes];
        for (k, axis) in found.iter().enumerate() {
            axis_group[k] = axis.group;
            for (column, share) in &axis.shares {
                matrix[column * axes + k] = *share;
            }
        }

        let coordinates = project(rows, columns, &matrix, axes);
        let mut column_reach = vec![0.0f32; columns];
        dispatch!(Level::new(), s => s.vectorize(
            #[inline(always)]
            || {
                for row in rows.chunks_exact(columns) {
                    for (reach, value) in column_reach.iter_mut().zip(row) {
                        *reach = reach.max(value.abs());
                    }
                }
            }
        ));
        let mut middle = vec![0.0f64; axes];
        let mut step = vec![1.0f64; axes];
        let mut margin = vec![0.0f64; axes];
        let (mut low, mut high) = (vec![f32::INFINITY; axes], vec![f32::NEG_INFINITY; axes]);
        dispatch!(Level::new(), s => s.vectorize(
            #[inline(always)]
            || {
                for row in coordinates.chunks_exact(axes) {
                    for ((y, low), high) in row.iter().zip(&mut low).zip(&mut high) {
                        *low = low.min(*y);
                        *high = high.max(*y);
                    }
                }
            }
        ));
        for k in 0..axes {
            // A dot product of n terms in f32 errs by less than n·2⁻²⁴ of the sum of the
            // terms' sizes; half as much again for the rounded matrix, then doubled.
            let sizes: f64 =
                (0..columns).map(|c| matrix[c * axes + k].abs() * f64::from(column_reach[c])).sum();
            let error = 4.0 * (columns as f64 + 4.0) * sizes / (1u64 << 24) as f64;
            middle[k] = 0.5 * (f64::from(low[k]) + f64::from(high[k]));
            let half = 0.5 * (f64::from(high[k]) - f64::from(low[k])) + error;
            if half > 0.0 {
                // 120 of 127 steps: the rest is room for the margin, at most one step.
                step[k] = (half / 120.0).max(error);
                margin[k] = error / step[k];
            }
        }
        let made = Self {
            columns,
            count: axes,
            matrix,
            axis_group,
            column_group: groups.to_vec(),
            reference: reference.to_vec(),
            middle,
            step,
            margin,
        };
        (made, coordinates)
    }

    /// The i8 box around some rows, each given by its coordinates: per axis low and high.
    ///
    /// Both ends are moved out by the coordinates' own error, then to a whole step. `ends` is
    /// room to work in, one entry an axis each.
    pub(crate) fn enclose<'r>(
        &self,
        rows: impl Iterator<Item = &'r [f32]>,
        ends: &mut (Vec<f32>, Vec<f32>),
        low: &mut [i8],
        high: &mut [i8],
    ) {
        let (least, most) = ends;
        least.fill(f32::INFINITY);
        most.fill(f32::NEG_INFINITY);
        for row in rows {
            for ((y, least), most) in row.iter().zip(&mut *least).zip(&mut *most) {
                *least = if *y < *least { *y } else { *least };
                *most = if *y > *most { *y } else { *most };
            }
        }
        for k in 0..self.count {
            let place = |y: f32| (f64::from(y) - self.middle[k]) / self.step[k];
            // `as` saturates; the margins above keep both ends inside anyway.
            let (l, h) = (place(least[k]) - self.margin[k], place(most[k]) + self.margin[k]);
            // `as` cuts towards 0: one less or more where it went the wrong way.
            let (l, h) = ((l as i32, l), (h as i32, h));
            low[k] = (l.0 - i32::from(f64::from(l.0) > l.1)).clamp(-128, 127) as i8;
            high[k] = (h.0 + i32::from(f64::from(h.0) < h.1)).clamp(-128, 127) as i8;
        }
    }

    /// Where a query lies on the axes and what each axis weighs for it.
    ///
    /// - `query`, `weights`: one number a column, normalised.
    pub(crate) fn place(&self, query: &[f32], weights: &[f32], place: &mut Place) {
        place.ratio.clear();
        place.ratio.resize(256, f64::INFINITY);
        place.sums.clear();
        place.sums.resize(256, (0.0, 0.0));
        let mut whole = 0.0;
        for c in 0..self.columns {
            whole += f64::from(weights[c]);
            if self.reference[c] > 0.0 {
                let group = usize::from(self.column_group[c]);
                let ratio = f64::from(weights[c]) / f64::from(self.reference[c]);
                place.ratio[group] = place.ratio[group].min(ratio);
                let sums = &mut place.sums[group];
                *sums = (sums.0 + f64::from(weights[c]), sums.1 + f64::from(self.reference[c]));
            }
        }
        let counted = place.ratio.iter().zip(&place.sums).filter(|(_, sums)| sums.1 > 0.0);
        place.even = counted.map(|(ratio, sums)| ratio * sums.1).sum::<f64>() > EVEN * whole;
        place.above.clear();
        place.below.clear();
        place.weights.clear();
        place.usual.clear();
        place.at.clear();
        place.at.resize(self.count, 0.0);
        for (value, shares) in query.iter().zip(self.matrix.chunks_exact(self.count)) {
            for (y, share) in place.at.iter_mut().zip(shares) {
                *y += f64::from(*value) * share;
            }
        }
        for k in 0..self.count {
            let at = ((place.at[k] - self.middle[k]) / self.step[k]).clamp(-FAR, FAR);
            let room = 1e-6 * (1.0 + at.abs());
            place.above.push((at + room) as f32);
            place.below.push((at - room) as f32);
            let ratio = place.ratio[usize::from(self.axis_group[k])];
            let weight = if ratio.is_finite() { ratio * self.step[k] * self.step[k] * CAUTION } else { 0.0 };
            place.weights.push(weight as f32);
            let sums = place.sums[usize::from(self.axis_group[k])];
            let usual = if sums.1 > 0.0 { sums.0 / sums.1 * self.step[k] * self.step[k] } else { 0.0 };
            place.usual.push(usual as f32);
        }
    }
}

/// A principal axis of a group: its variance and each column's share.
struct Found {
    variance: f64,
    group: u8,
    shares: Vec<(usize, f64)>,
}

/// Rows × axes coordinates, in f32; lanes are axes, so the width of the machine changes
/// nothing.
fn project(rows: &[f32], columns: usize, matrix: &[f64], axes: usize) -> Vec<f32> {
    let matrix: Vec<f32> = matrix.iter().map(|m| *m as f32).collect();
    let count = rows.len() / columns;
    let mut out = vec![0.0f32; count * axes];
    // Four axes at a time, or sixteen, whose sums stay in registers.
    let mut first = 0;
    while first < axes {
        let wide = axes - first >= LANES;
        dispatch!(Level::new(), s => s.vectorize(
            #[inline(always)]
            || {
                if wide {
                    project_some::<LANES>(rows, columns, &matrix, axes, first, &mut out);
                } else {
                    project_some::<4>(rows, columns, &matrix, axes, first, &mut out);
                }
            }
        ));
        first += if wide { LANES } else { 4 };
    }
    out
}

/// The coordinates on axes `first..first + N`.
#[inline(always)]
fn project_some<const N: usize>(
    rows: &[f32],
    columns: usize,
    matrix: &[f32],
    axes: usize,
    first: usize,
    out: &mut [f32],
) {
    let mut shares = vec![[0.0f32; N]; columns];
    for (share, all) in shares.iter_mut().zip(matrix.chunks_exact(axes)) {
        share.copy_from_slice(&all[first..first + N]);
    }
    for (row, out) in rows.chunks_exact(columns).zip(out.chunks_exact_mut(axes)) {
        let mut sums = [0.0f32; N];
        for (value, share) in row.iter().zip(&shares) {
            for k in 0..N {
                sums[k] += value * share[k];
            }
        }
        out[first..first + N].copy_from_slice(&sums);
    }
}

/// The covariance of some columns of some rows, each column times its root weight.
fn covariance(sample: &[&[f32]], members: &[usize], root: &[f64]) -> Vec<f64> {
    let n = members.len();
    let count = sample.len().max(1) as f64;
    let mean: Vec<f64> =
        members.iter().map(|c| sample.iter().map(|row| f64::from(row[*c])).sum::<f64>() / count).collect();
    let mut matrix = vec![0.0f64; n * n];
    let mut d = vec![0.0f64; n];
    for row in sample {
        for (i, c) in members.iter().enumerate() {
            d[i] = (f64::from(row[*c]) - mean[i]) * root[*c];
        }
        for i in 0..n {
            for j in 0..=i {
                matrix[i * n + j] += d[i] * d[j];
            }
        }
    }
    for i in 0..n {
        for j in 0..=i {
            matrix[i * n + j] /= count;
            matrix[j * n + i] = matrix[i * n + j];
        }
    }
    matrix
}

/// Eigenvalues and eigenvectors (as columns) of a symmetric n × n matrix.
///
/// Cyclic Jacobi rotations: slow for large n, but accurate to the last digits and made of
/// + − × ÷ √ alone, so the same on every machine.
///
/// Source: Golub & Van Loan, *Matrix Computations*, §8.5.
fn eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut v = vec![0.0f64; n * n];
    for i in 0..n {
        v[i * n + i] = 1.0;
    }
    let total: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..40 {
        let off: f64 =
            (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * n + j] * a[i * n + j]).sum();
        if off <= 1e-24 * total {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                }
                for k in 0..n {
                    let (x, y) = (v[k * n + p], v[k * n + q]);
                    v[k * n + p] = c * x - s * y;
                    v[k * n + q] = s * x + c * y;
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_are_orthonormal_and_carry_the_matrix() {
        let m = [4.0, 1.0, 0.5, 1.0, 3.0, -0.25, 0.5, -0.25, 2.0];
        let (values, v) = eigen(&m, 3);
        for i in 0..3 {
            for j in 0..3 {
                let dot: f64 = (0..3).map(|k| v[k * 3 + i] * v[k * 3 + j]).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-14);
                let back: f64 = (0..3).map(|k| v[i * 3 + k] * values[k] * v[j * 3 + k]).sum();
                assert!((back - m[i * 3 + j]).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn a_group_made_heavier_as_a_whole_keeps_its_bound_tight() {
        // Two columns on one line: a single axis holds everything.
        let rows: Vec<f32> = (0..100).flat_map(|i| [i as f32 * 0.1, i as f32 * 0.2]).collect();
        let (axes, y) = Axes::new(&rows, 2, &[0, 0], &[1.0, 1.0], 4);
        let mut place = Place::default();
        axes.place(&[0.0, 0.0], &[3.0, 3.0], &mut place);
        let (mut low, mut high) = (vec![0i8; axes.count], vec![0i8; axes.count]);
        let mut ends = (vec![0.0; axes.count], vec![0.0; axes.count]);
        let row = &y[50 * axes.count..][..axes.count];
        axes.enclose([row].into_iter(), &mut ends, &mut low, &mut high);
        let bound: f64 = (0..axes.count)
            .map(|k| {
                let d = (f64::from(low[k]) - f64::from(place.above[k]))
                    .max(f64::from(place.below[k]) - f64::from(high[k]))
                    .max(0.0);
                d * d * f64::from(place.weights[k])
            })
            .sum();
        let cost = 3.0 * (25.0 + 100.0);
        assert!(bound <= cost && bound > 0.93 * cost, "{bound} against {cost}");
    }
}
