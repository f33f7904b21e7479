//! One span between two keys: the cubic every smooth rule ends in, and the
//! Bezier span whose time is itself a cubic.
//!
//! The idea: natural splines, replay curves, Catmull–Rom, TCB and the cubic of
//! glTF differ only in the rule that picks the velocity at each key. Once the
//! velocities are there, each span is the same polynomial in the time since its
//! first key, and value, velocity, acceleration, extrema and bending energy are
//! all read from its four coefficients. Time is always local to the span, so a
//! clip that starts ten hours in loses nothing.
//!
//! It stops at one component of one span: choosing velocities is
//! [`super::tangents`], finding the span of a time is [`super::Spline`].

/// The polynomial `a + b·s + c·s² + d·s³` of one span, with `s` the seconds since
/// its first key.
///
/// `a` is the value and `b` the velocity at the first key; `2c` is the
/// acceleration there and `6d` its constant rate of change.
///
/// ```
/// use inbetween::spline::Cubic;
/// // Up 1 m in 1 s, leaving at 1.5 m/s, arriving at rest: half of a ball's throw.
/// let rise = Cubic::hermite(1.0, 0.0, 1.0, 1.5, 0.0);
/// assert_eq!((rise.a, rise.b, rise.c, rise.d), (0.0, 1.5, 0.0, -0.5));
/// assert_eq!(rise.value(0.5), 0.6875);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Cubic {
    /// Value at the first key.
    pub a: f64,
    /// Velocity at the first key, per second.
    pub b: f64,
    /// Half the acceleration at the first key, per second squared.
    pub c: f64,
    /// A sixth of the change of acceleration, per second cubed.
    pub d: f64,
}

impl Cubic {
    /// The span of length `h` seconds from `p0` to `p1` that leaves with velocity
    /// `m0` and arrives with `m1`, both per second.
    ///
    /// `h` must be positive; a gap too small for the values gives coefficients
    /// that are not finite, which [`Cubic::is_finite`] tells.
    #[inline]
    pub fn hermite(h: f64, p0: f64, p1: f64, m0: f64, m1: f64) -> Self {
        let inverse = 1.0 / h;
        let slope = (p1 - p0) * inverse;
        Self {
            a: p0,
            b: m0,
            c: (3.0 * slope - 2.0 * m0 - m1) * inverse,
            d: (m0 + m1 - 2.0 * slope) * inverse * inverse,
        }
    }

    /// The straight span of length `h` from `p0` to `p1`.
    #[inline]
    pub fn line(h: f64, p0: f64, p1: f64) -> Self {
        Self { a: p0, b: (p1 - p0) / h, c: 0.0, d: 0.0 }
    }

    /// The span that stays at `value`.
    #[inline]
    pub fn constant(value: f64) -> Self {
        Self { a: value, b: 0.0, c: 0.0, d: 0.0 }
    }

    /// Value `s` seconds after the first key.
    #[inline(always)]
    pub fn value(&self, s: f64) -> f64 {
        self.a + s * (self.b + s * (self.c + s * self.d))
    }

    /// Velocity `s` seconds after the first key, per second.
    #[inline(always)]
    pub fn velocity(&self, s: f64) -> f64 {
        self.b + s * (2.0 * self.c + s * (3.0 * self.d))
    }

    /// Acceleration `s` seconds after the first key, per second squared.
    #[inline(always)]
    pub fn acceleration(&self, s: f64) -> f64 {
        2.0 * self.c + s * (6.0 * self.d)
    }

    /// Whether all four coefficients are finite.
    #[inline]
    pub fn is_finite(&self) -> bool {
        // One test for four: an infinity or NaN survives the sum of x·0.
        (self.a * 0.0 + self.b * 0.0 + self.c * 0.0 + self.d * 0.0) == 0.0
    }

    /// The local times strictly inside `(0, h)` where the velocity is zero, in
    /// order; at most two.
    pub fn stationary(&self, h: f64) -> Stationary {
        quadratic_roots_inside(3.0 * self.d, 2.0 * self.c, self.b, h)
    }

    /// The smallest and largest value over `0..=h`, exact: the ends and the roots
    /// of the velocity are all there is to look at.
    pub fn extrema(&self, h: f64, end_value: f64) -> Extrema {
        let mut found = Extrema::of_ends(h, self.a, end_value);
        for s in self.stationary(h) {
            found.include(s, self.value(s));
        }
        found
    }

    /// Bending energy, the integral of the squared acceleration over `0..=h`.
    pub fn bending_energy(&self, h: f64) -> f64 {
        let start = 2.0 * self.c;
        let rate = 6.0 * self.d;
        h * (start * start + h * (start * rate + h * (rate * rate / 3.0)))
    }
}

/// The smallest and largest value of a span, with the local times they are at.
///
/// Where a value is reached more than once the earliest time is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extrema {
    /// Smallest value.
    pub min: f64,
    /// Seconds since the first key where it is reached.
    pub min_at: f64,
    /// Largest value.
    pub max: f64,
    /// Seconds since the first key where it is reached.
    pub max_at: f64,
}

impl Extrema {
    fn of_ends(h: f64, start: f64, end: f64) -> Self {
        let mut all = Self { min: start, min_at: 0.0, max: start, max_at: 0.0 };
        all.include(h, end);
        all
    }

    fn include(&mut self, at: f64, value: f64) {
        if value < self.min {
            (self.min, self.min_at) = (value, at);
        }
        if value > self.max {
            (self.max, self.max_at) = (value, at);
        }
    }
}

/// Up to two times, in order: what [`Cubic::stationary`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Stationary {
    at: [f64; 2],
    len: u8,
    next: u8,
}

impl Stationary {
    fn push(&mut self, root: f64, h: f64) {
        // A comparison that NaN fails, so a degenerate polynomial adds nothing.
        if root > 0.0 && root < h {
            self.at[usize::from(self.len)] = root;
            self.len += 1;
        }
    }

    /// The times as a slice.
    pub fn as_slice(&self) -> &[f64] {
        &self.at[..usize::from(self.len)]
    }
}

impl Iterator for Stationary {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let root = self.as_slice().get(usize::from(self.next)).copied();
        self.next += u8::from(root.is_some());
        root
    }
}

/// Roots of `qa·s² + qb·s + qc` strictly inside `(0, h)`, in order.
///
/// The larger root is formed without subtracting like numbers and the smaller
/// from the product of the two, so neither loses digits when `qa` is tiny.
fn quadratic_roots_inside(qa: f64, qb: f64, qc: f64, h: f64) -> Stationary {
    let mut roots = Stationary::default();
    if qa == 0.0 {
        roots.push(-qc / qb, h);
        return roots;
    }
    let discriminant = qb * qb - 4.0 * qa * qc;
    if discriminant < 0.0 {
        return roots;
    }
    let q = -0.5 * (qb + discriminant.sqrt().copysign(qb));
    let (mut first, mut second) = (q / qa, if q == 0.0 { 0.0 } else { qc / q });
    if first > second {
        std::mem::swap(&mut first, &mut second);
    }
    roots.push(first, h);
    if second != first {
        roots.push(second, h);
    }
    roots
}

/// A span of an animation curve as DCC programs store it: a cubic Bezier in the
/// plane of time and value, whose handles have a length in time.
///
/// Handles whose time lengths sum to more than the span would make the curve
/// turn back in time; both are shortened, time and value alike, by
/// `span / sum`, and a handle that points backwards in time keeps its rise but no
/// length in time.
/// So each time has exactly one value.
///
/// ```
/// use inbetween::spline::TimeBezier;
/// // Handles at thirds of the span are the Hermite span.
/// let span = TimeBezier::new((0.0, 0.0), (1.0 / 3.0, 0.5), (2.0 / 3.0, 1.5), (1.0, 1.0));
/// assert!((span.value(0.25) - 0.4375).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeBezier {
    start: f64,
    length: f64,
    end_value: f64,
    /// Share of the span's time passed, as a polynomial in u.
    x: Cubic,
    /// Value, as a polynomial in u.
    y: Cubic,
}

impl TimeBezier {
    /// The span from `key0` to `key1` with the handle that leaves `key0` and the
    /// one that arrives at `key1`, each (seconds, value), in absolute terms.
    /// `key1` must be later than `key0`.
    pub fn new(key0: (f64, f64), leave: (f64, f64), arrive: (f64, f64), key1: (f64, f64)) -> Self {
        let length = key1.0 - key0.0;
        Self::from_lengths(
            (key0.0, key0.1),
            (leave.0 - key0.0, leave.1 - key0.1),
            (key1.0 - arrive.0, key1.1 - arrive.1),
            length,
            key1.1,
        )
    }

    /// The same from handles given relative to their keys: `leave` is (seconds
    /// after the first key, rise from it), `arrive` is (seconds before the last
    /// key, rise up to it).
    pub fn from_lengths(
        key0: (f64, f64),
        leave: (f64, f64),
        arrive: (f64, f64),
        length: f64,
        end_value: f64,
    ) -> Self {
        let sum = leave.0.max(0.0) + arrive.0.max(0.0);
        let shrink = if sum > length { length / sum } else { 1.0 };
        let shorter = |h: (f64, f64)| (shrink * h.0, shrink * h.1);
        Self::from_free_lengths(key0, shorter(leave), shorter(arrive), length, end_value)
    }

    /// Like [`from_lengths`](Self::from_lengths) by the rule of FBX: the two handles may
    /// together pass the span, only each of them alone may not (one that does is
    /// shortened to it, time and value alike). Time still never runs backward, since both
    /// inner points lie within the span.
    pub fn from_free_lengths(
        key0: (f64, f64),
        leave: (f64, f64),
        arrive: (f64, f64),
        length: f64,
        end_value: f64,
    ) -> Self {
        // A handle pointing backwards keeps its rise but no time.
        let fitted = |(time, rise): (f64, f64)| {
            if time > length { (length, rise * (length / time)) } else { (time.max(0.0), rise) }
        };
        let ((leave_time, leave_rise), (arrive_time, arrive_rise)) = (fitted(leave), fitted(arrive));
        let x1 = leave_time / length;
        let x2 = 1.0 - arrive_time / length;
        let (y0, y3) = (key0.1, end_value);
        let y1 = y0 + leave_rise;
        let y2 = y3 - arrive_rise;
        Self {
            start: key0.0,
            length,
            end_value,
            x: Cubic { a: 0.0, b: 3.0 * x1, c: 3.0 * (x2 - 2.0 * x1), d: 1.0 + 3.0 * (x1 - x2) },
            y: Cubic {
                a: y0,
                b: 3.0 * (y1 - y0),
                c: 3.0 * (y2 - 2.0 * y1 + y0),
                d: (y3 - y0) + 3.0 * (y1 - y2),
            },
        }
    }

    /// The Bezier parameter (0 at the first key, 1 at the last) at `time`
    /// seconds; times outside the span give 0 or 1.
    ///
    /// Newton's method kept inside a bracket that halves where Newton would leave
    /// it: only + − × ÷, so every machine gets the same bits.
    pub fn parameter(&self, time: f64) -> f64 {
        let share = (time - self.start) / self.length;
        if share.is_nan() {
            return f64::NAN;
        }
        if share <= 0.0 {
            return 0.0;
        }
        if share >= 1.0 {
            return 1.0;
        }
        if self.x.c == 0.0 && self.x.d == 0.0 {
            return share / self.x.b;
        }
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        let mut u = share;
        for _ in 0..96 {
            let miss = self.x.value(u) - share;
            if miss == 0.0 {
                return u;
            }
            if miss < 0.0 {
                low = u;
            } else {
                high = u;
            }
            let slope = self.x.velocity(u);
            let mut next = u - miss / slope;
            // Written so that a NaN or infinite step also takes the middle.
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            if next == u || next == low || next == high {
                return next;
            }
            u = next;
        }
        u
    }

    /// Value at `time` seconds; the key's own value at and outside the ends.
    pub fn value(&self, time: f64) -> f64 {
        let u = self.parameter(time);
        if u == 1.0 { self.end_value } else { self.y.value(u) }
    }

    /// Velocity at `time`, per second. Infinite where the curve stands upright.
    pub fn velocity(&self, time: f64) -> f64 {
        let u = self.parameter(time);
        let (dx, dy) = (self.x.velocity(u), self.y.velocity(u));
        if dx != 0.0 {
            return dy / (dx * self.length);
        }
        if dy != 0.0 {
            return f64::INFINITY.copysign(dy);
        }
        // A handle of no length: the direction comes from the next derivative
        // that is not zero (l'Hôpital).
        let (ddx, ddy) = (self.x.acceleration(u), self.y.acceleration(u));
        if ddx != 0.0 {
            ddy / (ddx * self.length)
        } else if ddy != 0.0 {
            f64::INFINITY.copysign(ddy)
        } else {
            self.y.d / (self.x.d * self.length)
        }
    }

    /// Acceleration at `time`, per second squared. Infinite, never NaN, where
    /// the curve stands upright.
    pub fn acceleration(&self, time: f64) -> f64 {
        let u = self.parameter(time);
        let (dx, dy) = (self.x.velocity(u), self.y.velocity(u));
        let (ddx, ddy) = (self.x.acceleration(u), self.y.acceleration(u));
        let turn = ddy * dx - dy * ddx;
        if turn == 0.0 {
            return 0.0;
        }
        let found = turn / (dx * dx * dx) / (self.length * self.length);
        if found.is_nan() { 0.0 } else { found }
    }

    /// The handles of the piece between two times (seconds, increasing, inside the
    /// span), so that the piece alone is the same curve: the one that leaves its
    /// first end as (seconds after it, rise from it), and the one that arrives at
    /// its last as (seconds before it, rise up to it).
    pub fn piece(&self, from: f64, to: f64) -> ((f64, f64), (f64, f64)) {
        let (u0, u1) = (self.parameter(from), self.parameter(to));
        let third = (u1 - u0) / 3.0;
        let handle =
            |u: f64| ((self.x.velocity(u) * self.length * third).max(0.0), self.y.velocity(u) * third);
        (handle(u0), handle(u1))
    }

    /// The smallest and largest value over the span, exact; the times are seconds
    /// since the first key.
    pub fn extrema(&self) -> Extrema {
        let mut found = Extrema::of_ends(self.length, self.y.a, self.end_value);
        for u in self.y.stationary(1.0) {
            found.include(self.x.value(u) * self.length, self.y.value(u));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_meets_both_keys_with_both_velocities() {
        let span = Cubic::hermite(0.25, 3.0, -1.0, 8.0, 2.0);
        assert_eq!(span.value(0.0), 3.0);
        assert!((span.value(0.25) - -1.0).abs() < 1e-14);
        assert_eq!(span.velocity(0.0), 8.0);
        assert!((span.velocity(0.25) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn extrema_are_found_where_the_velocity_is_zero() {
        // s³ − s on 0..2: lowest at 1/√3.
        let span = Cubic { a: 0.0, b: -1.0, c: 0.0, d: 1.0 };
        let found = span.extrema(2.0, 6.0);
        assert!((found.min_at - 1.0 / 3.0_f64.sqrt()).abs() < 1e-15);
        assert!((found.min + 2.0 / (3.0 * 3.0_f64.sqrt())).abs() < 1e-15);
        assert_eq!((found.max, found.max_at), (6.0, 2.0));
    }

    #[test]
    fn an_almost_straight_span_keeps_its_turning_point() {
        // The cubic term is 1e-18 of the rest: the plain formula would lose the root.
        let span = Cubic { a: 0.0, b: 1.0, c: -1.0, d: 1e-18 };
        assert_eq!(span.stationary(1.0).as_slice(), [0.5]);
    }

    #[test]
    fn a_constant_span_has_no_turning_point_and_no_energy() {
        let span = Cubic::constant(4.0);
        assert!(span.stationary(1.0).as_slice().is_empty());
        assert_eq!(span.bending_energy(1.0), 0.0);
    }

    #[test]
    fn bezier_velocity_agrees_with_small_differences() {
        let span = TimeBezier::new((1.0, 0.0), (1.9, 3.0), (1.95, 1.0), (2.0, 1.0));
        for k in 1..20 {
            let t = 1.0 + f64::from(k) / 20.0;
            let e = 1e-6;
            let by_difference = (span.value(t + e) - span.value(t - e)) / (2.0 * e);
            // Central differences: e² times the third derivative, plus rounding / e.
            let scale = 1.0 + span.velocity(t).abs();
            assert!((span.velocity(t) - by_difference).abs() < 1e-4 * scale, "at {t}");
            let second = (span.velocity(t + e) - span.velocity(t - e)) / (2.0 * e);
            assert!((span.acceleration(t) - second).abs() < 1e-3 * (1.0 + second.abs()), "at {t}");
        }
    }

    #[test]
    fn handles_of_no_length_leave_no_nan() {
        let span = TimeBezier::new((0.0, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0));
        for t in [0.0, 0.25, 0.5, 1.0] {
            assert!((span.value(t) - t).abs() < 1e-15);
            assert!((span.velocity(t) - 1.0).abs() < 1e-12, "{}", span.velocity(t));
            assert!(!span.acceleration(t).is_nan());
        }
    }

    #[test]
    fn an_upright_tangent_is_infinite_and_not_nan() {
        // The handle rises without taking time.
        let span = TimeBezier::new((0.0, 0.0), (0.0, 1.0), (0.5, 1.0), (1.0, 1.0));
        assert_eq!(span.velocity(0.0), f64::INFINITY);
        assert!(!span.acceleration(0.0).is_nan());
        assert_eq!(span.value(0.0), 0.0);
    }

    #[test]
    fn a_time_that_is_not_a_number_gives_not_a_number() {
        let span = TimeBezier::new((0.0, 0.0), (0.3, 0.0), (0.6, 1.0), (1.0, 1.0));
        assert!(span.value(f64::NAN).is_nan());
    }
}
