//! Allowed straight spans of a scalar curve: the cone of slopes.
//!
//! From a key, each skipped sample lets through the lines that pass within its tolerance, an interval of
//! slopes. Their intersection is kept as two numbers; a span to a sample is allowed if its slope lies inside.
//! Every skipped sample is tested this way, and each step costs one division. It stops where the interval is
//! empty: no line from this key can hold any more.
//!
//! Source of the idea: the cone (fan) methods for polyline simplification, e.g. J. Sklansky and V. Gonzalez,
//! *Fast polygonal approximation of digitized curves*, Pattern Recognition 12 (1980).

use super::search::Spans;

/// How far off each sample may be.
pub trait Tolerance {
    /// The tolerance at sample `index`, ≥ 0.
    fn at(&self, index: usize) -> f64;
}

/// One tolerance for all samples.
impl Tolerance for f64 {
    #[inline(always)]
    fn at(&self, _: usize) -> f64 {
        *self
    }
}

/// A tolerance per sample.
impl Tolerance for [f64] {
    #[inline(always)]
    fn at(&self, index: usize) -> f64 {
        self[index]
    }
}

impl<T: Tolerance + ?Sized> Tolerance for &T {
    #[inline(always)]
    fn at(&self, index: usize) -> f64 {
        (**self).at(index)
    }
}

/// Straight spans of a scalar curve.
pub struct ScalarCone<'a, T> {
    times: &'a [f64],
    values: &'a [f64],
    tolerance: T,
}

impl<'a, T: Tolerance> ScalarCone<'a, T> {
    /// `times`: strictly increasing seconds; `values`: as many, in any unit; `tolerance` in the same unit.
    ///
    /// # Panics
    /// If the two lengths differ.
    pub fn new(times: &'a [f64], values: &'a [f64], tolerance: T) -> Self {
        assert_eq!(times.len(), values.len(), "a value per time");
        Self { times, values, tolerance }
    }
}

impl<T: Tolerance> Spans for ScalarCone<'_, T> {
    fn len(&self) -> usize {
        self.times.len()
    }

    #[inline]
    fn scan(&mut self, from: usize, mut visit: impl FnMut(usize, bool) -> bool) -> usize {
        let (t0, v0) = (self.times[from], self.values[from]);
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let times = &self.times[from + 1..];
        let values = &self.values[from + 1..];
        for (k, (&t, &v)) in times.iter().zip(values).enumerate() {
            let end = from + 1 + k;
            let per_second = 1.0 / (t - t0);
            let slope = (v - v0) * per_second;
            let slack = self.tolerance.at(end) * per_second;
            if !visit(end, low <= slope && slope <= high) {
                return k + 1;
            }
            // Written out, because `f64::max` also sorts out NaN and costs a third more.
            let (below, above) = (slope - slack, slope + slack);
            low = if below > low { below } else { low };
            high = if above < high { above } else { high };
            if low > high {
                return k + 1;
            }
        }
        times.len()
    }
}
