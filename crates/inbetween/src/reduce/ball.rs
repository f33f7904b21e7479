//! Allowed straight spans of vectors and rotations, under a bound on the length of the error.
//!
//! In one dimension the lines that pass every skipped sample are an interval of slopes. In several, each sample
//! lets through a ball of slopes, and the intersection of many balls has no short description. So it is kept
//! twice, roughly: as a box around it (a slope outside is refused at once) and as a ball within it (a slope
//! inside is accepted at once). Only a slope between the two is tested against the samples one by one, first
//! against the one that refused last.
//!
//! A rotation is treated in the same way from each key: a slerp from key a to key e is exp(f·w) with
//! w = log(a⁻¹e), a straight line of rotation vectors, so relative to the key the samples are rotation vectors
//! wᵢ and the span is a line through the origin. The angle between exp(x) and exp(y) is never more than
//! |x − y| (the rotations are a space of positive curvature), so the bound holds for the true angle.

use super::cone::Tolerance;
use super::rotation;
use super::search::Spans;

/// The samples as seen from one of them.
pub trait Seen<const D: usize> {
    /// Number of samples.
    fn len(&self) -> usize;
    /// Sample `index` relative to sample `from`, or `None` if no span may reach as far as this.
    fn delta(&self, from: usize, index: usize) -> Option<[f64; D]>;
    /// True if there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Plain vectors of `D` numbers, one after the other in a flat slice.
pub struct Vectors<'a, const D: usize>(pub &'a [f64]);

impl<const D: usize> Seen<D> for Vectors<'_, D> {
    fn len(&self) -> usize {
        self.0.len() / D
    }
    #[inline]
    fn delta(&self, from: usize, index: usize) -> Option<[f64; D]> {
        let (a, b) = (&self.0[from * D..], &self.0[index * D..]);
        Some(std::array::from_fn(|k| b[k] - a[k]))
    }
}

/// Unit quaternions x, y, z, w, one after the other in a flat slice; either sign of each.
pub struct Rotations<'a>(pub &'a [f64]);

/// Largest angle a span of a rotation may cover: below the half turn where the short way is not defined.
pub const LARGEST_GAP_RAD: f64 = 179.0 / 180.0 * std::f64::consts::PI - 1e-4;

impl Seen<3> for Rotations<'_> {
    fn len(&self) -> usize {
        self.0.len() / 4
    }
    #[inline]
    fn delta(&self, from: usize, index: usize) -> Option<[f64; 3]> {
        let w = rotation::between(rotation::row(self.0, from), rotation::row(self.0, index));
        (rotation::dot(w, w) <= LARGEST_GAP_RAD * LARGEST_GAP_RAD).then_some(w)
    }
}

/// Straight spans of vectors or rotations, whose error is a length or an angle in radians.
pub struct BallCone<'a, const D: usize, S, T> {
    times: &'a [f64],
    samples: S,
    tolerance: T,
    /// Slope and slack of each sample behind the key the scan stands at.
    balls: Vec<([f64; D], f64)>,
}

impl<'a, const D: usize, S: Seen<D>, T: Tolerance> BallCone<'a, D, S, T> {
    /// `times`: strictly increasing seconds, as many as there are samples; `tolerance`: the largest error of
    /// each sample, a length in the samples' unit or an angle in radians.
    ///
    /// # Panics
    /// If the numbers of times and samples differ.
    pub fn new(times: &'a [f64], samples: S, tolerance: T) -> Self {
        assert_eq!(times.len(), samples.len(), "a sample per time");
        Self { times, samples, tolerance, balls: Vec::new() }
    }
}

fn distance2<const D: usize>(a: &[f64; D], b: &[f64; D]) -> f64 {
    let mut sum = 0.0;
    for k in 0..D {
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    }
    sum
}

/// Tests made one by one in a scan, per sample of its span; a slope still in doubt behind that is refused,
/// so that a scan stays linear in its length.
const DOUBTS_PER_SAMPLE: usize = 64;

impl<const D: usize, S: Seen<D>, T: Tolerance> Spans for BallCone<'_, D, S, T> {
    fn len(&self) -> usize {
        self.times.len()
    }

    fn scan(&mut self, from: usize, mut visit: impl FnMut(usize, bool) -> bool) -> usize {
        let n = self.times.len();
        let t0 = self.times[from];
        self.balls.clear();
        let (mut low, mut high) = ([f64::NEG_INFINITY; D], [f64::INFINITY; D]);
        // The ball known to lie within the intersection; a negative radius where none is known.
        let (mut centre, mut radius) = ([0.0; D], f64::INFINITY);
        let mut refused_last = 0;
        let mut tested = 0;
        for end in from + 1..n {
            let Some(delta) = self.samples.delta(from, end) else {
                // Too far to span, unless it is the next sample, which nothing can split.
                if end == from + 1 {
                    visit(end, true);
                }
                return end - from;
            };
            let per_second = 1.0 / (self.times[end] - t0);
            let slope: [f64; D] = std::array::from_fn(|k| delta[k] * per_second);
            let slack = self.tolerance.at(end) * per_second;
            let passes = |ball: &([f64; D], f64)| distance2(&slope, &ball.0) <= ball.1 * ball.1;
            let allowed = if (0..D).any(|k| slope[k] < low[k] || slope[k] > high[k]) {
                false
            } else if radius == f64::INFINITY
                || (radius >= 0.0 && distance2(&slope, &centre) <= radius * radius)
            {
                true
            } else if !passes(&self.balls[refused_last]) || tested > DOUBTS_PER_SAMPLE * (64 + end - from) {
                false
            } else {
                match self.balls.iter().position(|ball| !passes(ball)) {
                    Some(ball) => {
                        tested += ball;
                        refused_last = ball;
                        false
                    }
                    None => {
                        tested += self.balls.len();
                        true
                    }
                }
            };
            if !visit(end, allowed) {
                return end - from;
            }
            let mut open = true;
            for k in 0..D {
                low[k] = low[k].max(slope[k] - slack);
                high[k] = high[k].min(slope[k] + slack);
                open &= low[k] <= high[k];
            }
            if !open {
                return end - from;
            }
            (centre, radius) = within_both(centre, radius, slope, slack);
            self.balls.push((slope, slack));
        }
        n - 1 - from
    }
}

/// The largest ball within two balls, as centre and radius; a negative radius where they do not meet.
fn within_both<const D: usize>(a: [f64; D], ra: f64, b: [f64; D], rb: f64) -> ([f64; D], f64) {
    let d = distance2(&a, &b).sqrt();
    if ra == f64::INFINITY || d + rb <= ra {
        return (b, rb);
    }
    if d + ra <= rb || ra < 0.0 {
        return (a, ra);
    }
    let radius = (ra + rb - d) / 2.0;
    // Its centre lies on the line between the centres, `radius` inside the far side of each.
    let along = (ra - radius) / d;
    (std::array::from_fn(|k| a[k] + (b[k] - a[k]) * along), radius)
}

/// Straight spans of vectors of any width, whose every component keeps its own tolerance.
pub struct ComponentCone<'a> {
    times: &'a [f64],
    values: &'a [f64],
    width: usize,
    tolerances: &'a [f64],
    low: Vec<f64>,
    high: Vec<f64>,
}

impl<'a> ComponentCone<'a> {
    /// `values`: a row of `width` numbers per time; `tolerances`: one per component.
    ///
    /// # Panics
    /// If the lengths do not fit each other.
    pub fn new(times: &'a [f64], values: &'a [f64], width: usize, tolerances: &'a [f64]) -> Self {
        assert_eq!(times.len() * width, values.len(), "a row per time");
        assert_eq!(tolerances.len(), width, "a tolerance per component");
        Self { times, values, width, tolerances, low: vec![0.0; width], high: vec![0.0; width] }
    }
}

impl Spans for ComponentCone<'_> {
    fn len(&self) -> usize {
        self.times.len()
    }

    fn scan(&mut self, from: usize, mut visit: impl FnMut(usize, bool) -> bool) -> usize {
        let (n, width) = (self.times.len(), self.width);
        self.low.fill(f64::NEG_INFINITY);
        self.high.fill(f64::INFINITY);
        for end in from + 1..n {
            let per_second = 1.0 / (self.times[end] - self.times[from]);
            let (a, b) = (&self.values[from * width..], &self.values[end * width..]);
            let mut allowed = true;
            let mut open = true;
            for k in 0..width {
                let slope = (b[k] - a[k]) * per_second;
                let slack = self.tolerances[k] * per_second;
                allowed &= self.low[k] <= slope && slope <= self.high[k];
                self.low[k] = self.low[k].max(slope - slack);
                self.high[k] = self.high[k].min(slope + slack);
                open &= self.low[k] <= self.high[k];
            }
            if !visit(end, allowed) || !open {
                return end - from;
            }
        }
        n - 1 - from
    }
}
