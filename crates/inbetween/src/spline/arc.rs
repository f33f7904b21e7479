//! Distance travelled along a path, and the time at which a distance is reached.
//!
//! The idea: the length of a cubic path has no closed form, but it is the integral
//! of the speed, which is smooth except where the path stops. Each span is cut in
//! halves until two Gauss–Legendre sums agree with one, and the cuts are kept as a
//! table; asking for a length or a time costs one look-up and a short sum.
//!
//! It stops at lengths: what to do with them (even speed, easing) is the camera's.

use super::curve::{Derivative, Spline};
use std::ops::Range;

/// Nodes and weights of the eight-point Gauss–Legendre rule on −1..=1 (the positive
/// half).
const NODES: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// How often a span is halved at most: past this a piece is a billionth of it.
const DEPTH: u32 = 30;

/// The length of a path as a function of time.
///
/// ```
/// use inbetween::spline::{ArcLength, Spline, TangentRule};
/// let line = Spline::new(&[0.0, 2.0], &[0.0, 0.0, 3.0, 4.0], 2, &TangentRule::Natural)?;
/// let length = ArcLength::new(&line, 0..2);
/// assert!((length.total() - 5.0).abs() < 1e-14);
/// assert!((length.time_at(2.5) - 1.0).abs() < 1e-14);
/// # Ok::<(), inbetween::spline::SplineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArcLength<'a> {
    path: &'a Spline,
    components: Range<usize>,
    /// Times of the cuts, in order, and the length up to each.
    times: Vec<f64>,
    lengths: Vec<f64>,
}

impl<'a> ArcLength<'a> {
    /// The length of the path that `components` of `path` make (0..3 for a position
    /// in its first three), from its first key to its last, to about 12 digits.
    ///
    /// # Panics
    /// If the path has no such components.
    pub fn new(path: &'a Spline, components: Range<usize>) -> Self {
        assert!(components.end <= path.width(), "the path has {} components", path.width());
        let mut all = Self { path, components, times: vec![path.start()], lengths: vec![0.0] };
        for span in 0..path.spans() {
            let (start, end) = path.span_times(span);
            let whole = all.integral(span, start, end);
            all.cut(span, start, end, whole, DEPTH);
        }
        all
    }

    /// Length of the whole path.
    pub fn total(&self) -> f64 {
        *self.lengths.last().expect("at least the start")
    }

    /// Length from the first key up to `time` seconds; held outside the keys.
    pub fn length_at(&self, time: f64) -> f64 {
        let after = self.times.partition_point(|&t| t <= time);
        if after == 0 {
            return 0.0;
        }
        if after == self.times.len() {
            return self.total();
        }
        self.lengths[after - 1] + self.within(after - 1, time)
    }

    /// The earliest time, in seconds, at which the path is `length` long; held
    /// outside `0..=total`.
    pub fn time_at(&self, length: f64) -> f64 {
        if length.is_nan() || length <= 0.0 {
            return self.times[0];
        }
        let after = self.lengths.partition_point(|&l| l < length);
        if after == self.lengths.len() {
            return self.path.end();
        }
        let piece = after - 1;
        let (mut low, mut high) = (self.times[piece], self.times[after]);
        let rest = length - self.lengths[piece];
        let share = rest / (self.lengths[after] - self.lengths[piece]);
        let mut time = low + (high - low) * share;
        for _ in 0..60 {
            let miss = self.within(piece, time) - rest;
            if miss < 0.0 {
                low = time;
            } else {
                high = time;
            }
            if miss.abs() <= 1e-14 * self.total() {
                break;
            }
            let mut next = time - miss / self.speed(self.path.span_at(time), time);
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            if next == time {
                break;
            }
            time = next;
        }
        time
    }

    /// Speed at `time`: the length of the velocity, per second.
    pub fn speed_at(&self, time: f64) -> f64 {
        self.components
            .clone()
            .map(|k| {
                let v = self.path.derivative(k, time, Derivative::Velocity);
                v * v
            })
            .sum::<f64>()
            .sqrt()
    }

    fn within(&self, piece: usize, time: f64) -> f64 {
        let start = self.times[piece];
        self.integral(self.path.span_at(start), start, time)
    }

    fn speed(&self, span: usize, time: f64) -> f64 {
        let s = time - self.path.span_times(span).0;
        let square = |k: usize| {
            let v = self.path.cubic(span, k).velocity(s);
            v * v
        };
        self.components.clone().map(square).sum::<f64>().sqrt()
    }

    fn integral(&self, span: usize, from: f64, to: f64) -> f64 {
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let mut sum = 0.0;
        for (node, weight) in NODES {
            sum += weight * (self.speed(span, middle - half * node) + self.speed(span, middle + half * node));
        }
        sum * half
    }

    fn cut(&mut self, span: usize, from: f64, to: f64, whole: f64, depth: u32) {
        let middle = 0.5 * (from + to);
        let (left, right) = (self.integral(span, from, middle), self.integral(span, middle, to));
        // Halving a smooth piece gains the eight-point rule 2¹⁶ in accuracy, so where
        // the two agree to 1e-9 their sum is right to about 1e-13.
        let agree = (left + right - whole).abs() <= 1e-11 * (left + right);
        if agree || depth == 0 || middle <= from || middle >= to {
            let before = self.total();
            self.times.push(to);
            self.lengths.push(before + left + right);
            return;
        }
        self.cut(span, from, middle, left, depth - 1);
        self.cut(span, middle, to, right, depth - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spline::TangentRule;

    #[test]
    fn time_and_length_undo_each_other() {
        let times = [0.0, 1.0, 1.5, 4.0];
        let places = [0.0, 0.0, 0.0, 5.0, 1.0, 0.0, 6.0, 4.0, 1.0, 0.0, 9.0, 2.0];
        let path = Spline::new(&times, &places, 3, &TangentRule::Natural).unwrap();
        let arc = ArcLength::new(&path, 0..3);
        for k in 0..=100 {
            let length = arc.total() * f64::from(k) / 100.0;
            assert!((arc.length_at(arc.time_at(length)) - length).abs() < 1e-11 * arc.total());
        }
    }

    #[test]
    fn a_path_that_turns_back_on_itself_has_twice_the_length() {
        // Turns at 1 s, inside the single span: the speed has a corner there.
        let path = Spline::from_tangents(&[0.0, 2.0], &[0.0, 0.0], 1, &[0.0, -1.0], &[1.0, 0.0]).unwrap();
        let arc = ArcLength::new(&path, 0..1);
        // x = s − s²/2 goes up by 0.5 and back.
        assert!((arc.total() - 1.0).abs() < 1e-10, "{}", arc.total());
    }

    #[test]
    fn a_path_that_stands_still_has_no_length() {
        let path = Spline::new(&[0.0, 1.0], &[3.0, 3.0], 1, &TangentRule::Natural).unwrap();
        let arc = ArcLength::new(&path, 0..1);
        assert_eq!(arc.total(), 0.0);
        assert!(arc.time_at(1.0).is_finite());
        let single = Spline::new(&[2.0], &[3.0], 1, &TangentRule::Natural).unwrap();
        assert_eq!(ArcLength::new(&single, 0..1).time_at(5.0), 2.0);
    }
}
