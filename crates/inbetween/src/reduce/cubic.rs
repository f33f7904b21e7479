//! Allowed cubic spans: keys with tangents, an artist's kind of curve.
//!
//! A span is one Hermite segment through the samples at its two keys, with the tangents those samples have:
//! given ones (authored), or finite differences of the samples. A tangent belongs to its key and not to the
//! span, so whatever keys are kept, the curve runs smoothly through them. Every skipped sample is tested;
//! there is no cone for cubics, so a scan tests each end by walking its span, first at the sample that refused
//! the end before.
//!
//! Rotations are four components each, made one-sided (neighbouring quaternions never on opposite sides) and
//! normalised after interpolation, as glTF's CUBICSPLINE plays them; their error is an angle.

use super::cone::Tolerance;
use super::search::Spans;

/// How the difference between a curve and a sample is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Length of the difference.
    Length,
    /// Angle in radians between two quaternions; the width must be 4.
    Angle,
}

/// Tangents by finite differences: at each sample the slope of the parabola through it and its neighbours,
/// at the ends the slope there of the parabola through the nearest three.
///
/// `values`: a row of `width` numbers per time. Returns as many numbers, in units per second; zeros for a
/// single sample.
///
/// # Panics
/// If the lengths do not fit each other.
pub fn difference_tangents(times: &[f64], values: &[f64], width: usize) -> Vec<f64> {
    let n = times.len();
    assert_eq!(values.len(), n * width, "a row per time");
    let mut tangents = vec![0.0; values.len()];
    if n < 2 {
        return tangents;
    }
    let slope = |i: usize, k: usize| {
        (values[(i + 1) * width + k] - values[i * width + k]) / (times[i + 1] - times[i])
    };
    for k in 0..width {
        if n == 2 {
            tangents[k] = slope(0, k);
            tangents[width + k] = slope(0, k);
            continue;
        }
        for i in 1..n - 1 {
            let (before, after) = (times[i] - times[i - 1], times[i + 1] - times[i]);
            tangents[i * width + k] = (slope(i - 1, k) * after + slope(i, k) * before) / (before + after);
        }
        tangents[k] = 2.0 * slope(0, k) - tangents[width + k];
        tangents[(n - 1) * width + k] = 2.0 * slope(n - 2, k) - tangents[(n - 2) * width + k];
    }
    tangents
}

/// Turns quaternions to the side of their predecessor, so that their components run smoothly.
pub fn one_sided(rotations: &mut [f64]) {
    for i in 1..rotations.len() / 4 {
        let (before, after) = rotations.split_at_mut(4 * i);
        let before = &before[4 * i - 4..];
        let q = &mut after[..4];
        if before.iter().zip(q.iter()).map(|(a, b)| a * b).sum::<f64>() < 0.0 {
            q.iter_mut().for_each(|x| *x = -*x);
        }
    }
}

/// Hermite spans through samples with a tangent each.
pub struct HermiteSpans<'a, T> {
    times: &'a [f64],
    values: &'a [f64],
    leave: &'a [f64],
    arrive: &'a [f64],
    width: usize,
    measure: Measure,
    tolerance: T,
    stride: usize,
}

/// Tests made in a scan per sample of its span; ends still in doubt behind that are refused.
const DOUBTS_PER_SAMPLE: usize = 64;

impl<'a, T: Tolerance> HermiteSpans<'a, T> {
    /// - `times`: strictly increasing seconds; `values`: a row of `width` numbers per time.
    /// - `leave`, `arrive`: the tangents behind and before each sample, units per second, as long as `values`;
    ///   the same slice twice for a curve that is smooth everywhere.
    /// - `measure`, `tolerance`: how far each skipped sample may be off. For [`Measure::Angle`] the width is 4
    ///   and neighbouring quaternions are on one side, see [`one_sided`].
    ///
    /// # Panics
    /// If the lengths do not fit each other.
    pub fn new(
        times: &'a [f64],
        values: &'a [f64],
        leave: &'a [f64],
        arrive: &'a [f64],
        width: usize,
        measure: Measure,
        tolerance: T,
    ) -> Self {
        assert_eq!(values.len(), times.len() * width, "a row per time");
        assert_eq!(leave.len(), values.len(), "a tangent per value");
        assert_eq!(arrive.len(), values.len(), "a tangent per value");
        assert!(measure == Measure::Length || width == 4, "an angle is between quaternions");
        Self { times, values, leave, arrive, width, measure, tolerance, stride: 1 }
    }

    /// Lets only every `stride`-th sample be a key; those between are tested all the same.
    ///
    /// # Panics
    /// If the last sample is not one of them.
    pub fn keys_every(mut self, stride: usize) -> Self {
        assert!(stride > 0 && self.times.len() % stride == 1 % stride, "the last sample must be a key");
        self.stride = stride;
        self
    }

    /// The squared error of the span `from → end` at `index`, in the measure that [`Self::limit2`] uses.
    #[inline]
    fn error2(&self, from: usize, end: usize, index: usize) -> f64 {
        let w = self.width;
        let h = self.times[end] - self.times[from];
        let u = (self.times[index] - self.times[from]) / h;
        let (u2, v) = (u * u, 1.0 - u);
        let v2 = v * v;
        let (p, q) = (v2 * (1.0 + 2.0 * u), u2 * (3.0 - 2.0 * u));
        let (a, b) = (h * u * v2, -h * u2 * v);
        let at = |k: usize| {
            p * self.values[from * w + k]
                + q * self.values[end * w + k]
                + a * self.leave[from * w + k]
                + b * self.arrive[end * w + k]
        };
        match self.measure {
            Measure::Length => (0..w)
                .map(|k| {
                    let d = at(k) - self.values[index * w + k];
                    d * d
                })
                .sum(),
            Measure::Angle => {
                let y: [f64; 4] = std::array::from_fn(at);
                let length = y.iter().map(|x| x * x).sum::<f64>().sqrt();
                (0..4)
                    .map(|k| {
                        let d = y[k] / length - self.values[index * w + k];
                        d * d
                    })
                    .sum()
            }
        }
    }

    /// The squared tolerance in the measure of [`Self::error2`]: for angles the chord between the two
    /// quaternions, 2·sin(angle/4).
    #[inline]
    fn limit2(&self, index: usize) -> f64 {
        let tolerance = self.tolerance.at(index);
        let limit = match self.measure {
            Measure::Length => tolerance,
            Measure::Angle => 2.0 * libm::sin(tolerance.min(std::f64::consts::PI) / 4.0),
        };
        limit * limit
    }
}

impl<T: Tolerance> Spans for HermiteSpans<'_, T> {
    fn len(&self) -> usize {
        self.times.len()
    }

    fn scan(&mut self, from: usize, mut visit: impl FnMut(usize, bool) -> bool) -> usize {
        let n = self.times.len();
        let mut refused_last = None;
        let mut tested = 0;
        let mut good = from + self.stride;
        for end in (from + 1..n).filter(|end| (end - from).is_multiple_of(self.stride)) {
            let holds = |index: usize| self.error2(from, end, index) <= self.limit2(index);
            let in_doubt = tested <= DOUBTS_PER_SAMPLE * (64 + end - from);
            let mut allowed = in_doubt && refused_last.is_none_or(holds);
            if end == from + self.stride {
                allowed = true;
            } else if allowed {
                match (from + 1..end).find(|&index| !holds(index)) {
                    Some(index) => {
                        tested += index - from;
                        refused_last = Some(index);
                        allowed = false;
                    }
                    None => tested += end - from,
                }
            }
            if allowed {
                good = end;
            }
            // A cubic that has failed for as long as it held will hardly come back.
            if !visit(end, allowed) || end - good > 8 * self.stride + (good - from) {
                return end - from + tested / 8;
            }
        }
        n - 1 - from + tested / 8
    }
}
