//! Making metres, metres a second and bare numbers comparable.
//!
//! Feature columns have different units and spreads, so the database stores
//! (x − offset) ÷ scale and applies the same to every query; nobody else normalises.
//! The default scale is the population standard deviation shared by the columns of a
//! channel (the root of their mean variance), which keeps the proportions within a
//! vector: a foot that moves mostly forward does not get its sideways noise blown up.

use fearless_simd::{Level, Simd, dispatch};
use serde::{Deserialize, Serialize};

/// How columns are shifted and scaled before they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// Mean and standard deviation, one deviation shared by the columns of a channel.
    #[default]
    ChannelDeviation,
    /// Mean and standard deviation of each column on its own.
    ColumnDeviation,
    /// Smallest value to 0, largest to 1, each column on its own.
    MinMax,
    /// No shift, no scale.
    Raw,
    /// Mean and variance of each column: units do not cancel, offered for comparison with
    /// tools that divide by the variance.
    Variance,
}

/// Offset and scale of every column.
///
/// - `values`: rows × `columns` numbers, row after row.
/// - `widths`: columns of each channel, in order; they add up to `columns`.
/// - returns one (offset, scale) a column; the scale is never 0: a column (or channel)
///   that does not vary beyond what an f32 resolves gets 1.
///
/// Sums are taken in f64 in the order of the rows.
pub(crate) fn statistics(
    values: &[f32],
    columns: usize,
    widths: &[usize],
    normalisation: Normalisation,
) -> Vec<(f64, f64)> {
    let rows = values.len() / columns.max(1);
    let count = rows as f64;
    let mut mean = vec![0.0f64; columns];
    let mut low = vec![f64::INFINITY; columns];
    let mut high = vec![f64::NEG_INFINITY; columns];
    // A column is a lane, so the width of the machine changes no sum.
    dispatch!(Level::new(), s => s.vectorize(
        #[inline(always)]
        || {
            for row in values.chunks_exact(columns) {
                for (((value, mean), low), high) in row.iter().zip(&mut mean).zip(&mut low).zip(&mut high) {
                    let value = f64::from(*value);
                    *mean += value;
                    *low = low.min(value);
                    *high = high.max(value);
                }
            }
        }
    ));
    mean.iter_mut().for_each(|m| *m /= count);
    let mut variance = vec![0.0f64; columns];
    dispatch!(Level::new(), s => s.vectorize(
        #[inline(always)]
        || {
            for row in values.chunks_exact(columns) {
                for ((value, mean), variance) in row.iter().zip(&mean).zip(&mut variance) {
                    let d = f64::from(*value) - mean;
                    *variance += d * d;
                }
            }
        }
    ));
    variance.iter_mut().for_each(|v| *v /= count);

    let mut result = Vec::with_capacity(columns);
    let mut first = 0;
    for &width in widths {
        let shared = (variance[first..first + width].iter().sum::<f64>() / width as f64).sqrt();
        for column in first..first + width {
            let magnitude = low[column].abs().max(high[column].abs());
            // A constant column's spread is rounding: an f32 of size m has steps of 1e-7·m.
            let usable = |scale: f64, floor: f64| {
                if scale.is_finite() && scale > floor { scale } else { 1.0 }
            };
            result.push(match normalisation {
                Normalisation::ChannelDeviation => {
                    let largest =
                        (first..first + width).map(|c| low[c].abs().max(high[c].abs())).fold(0.0, f64::max);
                    (mean[column], usable(shared, 1e-7 * largest))
                }
                Normalisation::ColumnDeviation => {
                    (mean[column], usable(variance[column].sqrt(), 1e-7 * magnitude))
                }
                Normalisation::MinMax => (low[column], usable(high[column] - low[column], 1e-7 * magnitude)),
                Normalisation::Raw => (0.0, 1.0),
                Normalisation::Variance => {
                    (mean[column], usable(variance[column], 1e-14 * magnitude * magnitude))
                }
            });
        }
        first += width;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_scaled_by_its_population_deviation() {
        // 1, 2, 3, 4: mean 2.5, population variance 1.25.
        let s = statistics(&[1.0, 2.0, 3.0, 4.0], 1, &[1], Normalisation::ColumnDeviation);
        assert_eq!(s, [(2.5, 1.25f64.sqrt())]);
    }

    #[test]
    fn a_channel_shares_the_root_of_its_mean_variance() {
        let s = statistics(&[0.0, 0.0, 2.0, 4.0], 2, &[2], Normalisation::ChannelDeviation);
        assert_eq!(s, [(1.0, 2.5f64.sqrt()), (2.0, 2.5f64.sqrt())]);
    }

    #[test]
    fn a_constant_column_is_divided_by_one() {
        for choice in [
            Normalisation::ChannelDeviation,
            Normalisation::ColumnDeviation,
            Normalisation::MinMax,
            Normalisation::Variance,
        ] {
            let s = statistics(&[0.1; 7], 1, &[1], choice);
            assert_eq!(s[0].1, 1.0, "{choice:?}");
        }
    }

    #[test]
    fn raw_leaves_the_numbers_alone_and_variance_divides_by_the_variance() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(statistics(&values, 1, &[1], Normalisation::Raw), [(0.0, 1.0)]);
        assert_eq!(statistics(&values, 1, &[1], Normalisation::Variance), [(2.5, 1.25)]);
        assert_eq!(statistics(&values, 1, &[1], Normalisation::MinMax), [(1.0, 3.0)]);
    }
}
