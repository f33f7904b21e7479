//! The rules that pick the velocity at each key.
//!
//! The idea: every rule is a function from keys to one velocity per key and
//! component, in value per second; a cubic Hermite span between neighbours does
//! the rest. All rules run in linear time over flat slices (`width` numbers a
//! key, row after row) and write into the caller's slice; the few that need
//! working memory borrow a [`Scratch`] that is reused from call to call.
//!
//! With keys (t, p): h is the gap to the next key and d = Δp/h the velocity of
//! the straight line across it.
//!
//! | rule | velocity carries on | acceleration carries on | stays between its keys |
//! |---|---|---|---|
//! | [`natural`], [`clamped`], [`second_derivative`], [`not_a_knot`], [`periodic`] | yes | yes | no |
//! | [`finite_difference`], [`mean_velocity`], [`akima`], [`makima`] | yes | no | no |
//! | [`catmull_rom_uniform`] | in direction | no | no |
//! | [`tcb`] | if its continuity is 0 | no | no |
//! | [`replay`] | yes | no | mostly, where it brakes |
//! | [`monotone`], [`limit_overshoot`] | yes | no | yes |
//!
//! It stops at numbers that are sound: times increasing and everything finite,
//! which [`super::check`] sees to. Building a curve is [`super::Spline`].

use super::keys::SplineError;

/// Keys as flat slices: `width` numbers a key, row after row.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Seconds, increasing.
    pub times: &'a [f64],
    /// `times.len() * width` numbers.
    pub values: &'a [f64],
    /// Numbers a key, at least 1.
    pub width: usize,
}

impl<'a> Keys<'a> {
    /// Keys of one number each.
    pub fn scalar(times: &'a [f64], values: &'a [f64]) -> Self {
        Self { times, values, width: 1 }
    }

    /// Keys of `width` numbers each.
    ///
    /// # Panics
    /// If the slices do not fit together: a caller's bug, since
    /// [`super::check`] tells it for data from outside.
    pub fn new(times: &'a [f64], values: &'a [f64], width: usize) -> Self {
        assert!(width > 0 && times.len() * width == values.len(), "a row of {width} numbers a key");
        Self { times, values, width }
    }

    fn len(&self) -> usize {
        self.times.len()
    }

    fn gap(&self, i: usize) -> f64 {
        self.times[i + 1] - self.times[i]
    }

    /// Velocity of the straight line from key `i` to the next, component `k`.
    fn slope(&self, i: usize, k: usize) -> f64 {
        (self.values[(i + 1) * self.width + k] - self.values[i * self.width + k]) / self.gap(i)
    }

    fn assert_fits(&self, out: &[f64]) {
        assert_eq!(self.values.len(), out.len(), "one tangent for each value");
    }
}

/// Working memory for the rules that solve a system, kept by the caller so that
/// nothing is allocated a second time.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    upper: Vec<f64>,
    corner: Vec<f64>,
}

impl Scratch {
    fn upper(&mut self, n: usize) -> &mut [f64] {
        // Grown once and never shrunk: values are overwritten before they are read.
        if self.upper.len() < n {
            self.upper.resize(n, 0.0);
        }
        &mut self.upper[..n]
    }
}

/// What is known at one end of a C2 spline; each slice holds one number for each
/// component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End<'a> {
    /// No acceleration: the curve runs out into a straight line.
    Natural,
    /// This velocity, per second.
    Velocity(&'a [f64]),
    /// This acceleration, per second squared.
    Acceleration(&'a [f64]),
    /// The first two (last two) spans are one cubic.
    NotAKnot,
}

/// Velocities of the natural cubic spline: it meets every key, carries velocity
/// and acceleration through each, and bends least of all curves that do;
/// acceleration is zero at both ends. Two keys give a line, one a constant.
///
/// One tridiagonal solve (Thomas' algorithm), O(n). Rows are divided by the sum
/// of their gaps, which makes them free of units and strictly diagonally
/// dominant, so no pivoting is needed however uneven the gaps are.
///
/// Source: de Boor, *A Practical Guide to Splines*, ch. IV.
///
/// ```
/// use inbetween::spline::{natural, Keys, Scratch};
/// // A ball thrown up and caught: the two halves mirror each other.
/// let mut velocity = [0.0; 3];
/// natural(Keys::scalar(&[0.0, 1.0, 2.0], &[0.0, 1.0, 0.0]), &mut velocity, &mut Scratch::default());
/// assert_eq!(velocity, [1.5, 0.0, -1.5]);
/// ```
pub fn natural(keys: Keys, out: &mut [f64], scratch: &mut Scratch) {
    with_ends(keys, End::Natural, End::Natural, out, scratch);
}

/// As [`natural`], but leaving with the velocity `start` and arriving with `end`,
/// per second, one number for each component.
pub fn clamped(keys: Keys, start: &[f64], end: &[f64], out: &mut [f64], scratch: &mut Scratch) {
    with_ends(keys, End::Velocity(start), End::Velocity(end), out, scratch);
}

/// As [`natural`], but with the acceleration `start` at the first key and `end`
/// at the last, per second squared, one number for each component.
pub fn second_derivative(keys: Keys, start: &[f64], end: &[f64], out: &mut [f64], scratch: &mut Scratch) {
    with_ends(keys, End::Acceleration(start), End::Acceleration(end), out, scratch);
}

/// The C2 spline whose first two spans are one cubic, and its last two: nothing
/// is assumed about the ends. Three keys give the parabola, two a line.
pub fn not_a_knot(keys: Keys, out: &mut [f64], scratch: &mut Scratch) {
    with_ends(keys, End::NotAKnot, End::NotAKnot, out, scratch);
}

/// The C2 spline with a condition of your choice at either end.
pub fn with_ends(keys: Keys, start: End, end: End, out: &mut [f64], scratch: &mut Scratch) {
    keys.assert_fits(out);
    let n = keys.len();
    match n {
        0 => return,
        1 => return out.fill(0.0),
        2 if matches!((start, end), (End::Natural | End::NotAKnot, End::Natural | End::NotAKnot)) => {
            for k in 0..keys.width {
                let slope = keys.slope(0, k);
                (out[k], out[keys.width + k]) = (slope, slope);
            }
            return;
        }
        3 if (start, end) == (End::NotAKnot, End::NotAKnot) => return parabola(keys, out),
        _ => {}
    }
    let upper = scratch.upper(n);
    // The widths that occur most get a loop the compiler can unroll.
    match keys.width {
        1 => solve(keys.times, keys.values, 1, start, end, out, upper),
        3 => solve(keys.times, keys.values, 3, start, end, out, upper),
        w => solve(keys.times, keys.values, w, start, end, out, upper),
    }
}

/// The tridiagonal solve for n ≥ 2. With λ = h/(h' + h) and μ = h'/(h' + h), h' the
/// gap before a key and h the one after it, the inner rows are
/// λ·m₋ + 2m + μ·m₊ = 3(λ·d₋ + μ·d).
#[inline(always)]
fn solve(t: &[f64], p: &[f64], w: usize, start: End, end: End, m: &mut [f64], c: &mut [f64]) {
    let n = t.len();
    let (t, p, m, c) = (&t[..n], &p[..n * w], &mut m[..n * w], &mut c[..n]);
    let mut h0 = t[1] - t[0];
    let mut inverse0 = 1.0 / h0;
    match start {
        End::Natural | End::Acceleration(_) => {
            c[0] = 0.5;
            for k in 0..w {
                let bend = if let End::Acceleration(a) = start { 0.5 * a[k] * h0 } else { 0.0 };
                m[k] = 0.5 * (3.0 * ((p[w + k] - p[k]) * inverse0) - bend);
            }
        }
        End::Velocity(v) => {
            c[0] = 0.0;
            m[..w].copy_from_slice(&v[..w]);
        }
        // Two keys leave nothing to be one cubic with: keep the line's velocity.
        End::NotAKnot if n == 2 => {
            c[0] = 0.0;
            for k in 0..w {
                m[k] = (p[w + k] - p[k]) * inverse0;
            }
        }
        // m₀ is eliminated first (below) since its row is not diagonally dominant.
        End::NotAKnot => c[0] = 0.0,
    }
    let mut lambda_before = 0.0;
    for i in 1..n - 1 {
        let h1 = t[i + 1] - t[i];
        let inverse1 = 1.0 / h1;
        let share = 1.0 / (h0 + h1);
        let (lambda, mu) = (h1 * share, h0 * share);
        let first = i == 1 && start == End::NotAKnot;
        let last = i == n - 2 && end == End::NotAKnot;
        if first || last {
            // Where both ends are one with the same short span (four keys), the pivot
            // 1 − μ₁λ₂ is a difference of near equals; λ₁ + μ₁μ₂ is the same without one.
            let rest = if i == 2 && start == End::NotAKnot { lambda_before } else { 1.0 - c[i - 1] };
            let keys = Keys { times: t, values: p, width: w };
            not_a_knot_row(keys, i, (!first).then_some(rest), m, c);
        } else {
            let pivot = 1.0 / (2.0 - lambda * c[i - 1]);
            c[i] = mu * pivot;
            let (lambda3, mu3) = (3.0 * lambda * inverse0, 3.0 * mu * inverse1);
            for k in 0..w {
                let at = i * w + k;
                let right = lambda3 * (p[at] - p[at - w]) + mu3 * (p[at + w] - p[at]);
                m[at] = (right - lambda * m[at - w]) * pivot;
            }
        }
        (h0, inverse0, lambda_before) = (h1, inverse1, lambda);
    }
    let last = (n - 1) * w;
    match end {
        End::Natural | End::Acceleration(_) => {
            let pivot = 1.0 / (2.0 - c[n - 2]);
            for k in 0..w {
                let bend = if let End::Acceleration(a) = end { 0.5 * a[k] * h0 } else { 0.0 };
                let at = last + k;
                let slope = (p[at] - p[at - w]) * inverse0;
                m[at] = (3.0 * slope + bend - m[at - w]) * pivot;
            }
        }
        End::Velocity(v) => m[last..].copy_from_slice(&v[..w]),
        End::NotAKnot if n == 2 => {
            for k in 0..w {
                m[last + k] = (p[last + k] - p[k]) * inverse0;
            }
        }
        End::NotAKnot => {
            // c[n − 2] is 0 and m[n − 2] solved: the last velocity follows from it.
            let before = t[n - 2] - t[n - 3];
            let share = 1.0 / (before + h0);
            let (lambda, mu) = (h0 * share, before * share);
            for k in 0..w {
                let at = last + k;
                let (d1, d0) = ((p[at] - p[at - w]) * inverse0, (p[at - w] - p[at - 2 * w]) / before);
                m[at] = (2.0 + lambda) * d1 + (lambda * lambda * d0 - m[at - w]) / mu;
            }
        }
    }
    let stop = usize::from(start == End::NotAKnot && n > 2);
    for i in (stop..n - 1).rev() {
        let upper = c[i];
        for k in 0..w {
            m[i * w + k] -= upper * m[(i + 1) * w + k];
        }
    }
    if stop == 1 {
        let (h0, h1) = (t[1] - t[0], t[2] - t[1]);
        let share = 1.0 / (h0 + h1);
        let (lambda, mu) = (h1 * share, h0 * share);
        for k in 0..w {
            let (d0, d1) = ((p[w + k] - p[k]) / h0, (p[2 * w + k] - p[w + k]) / h1);
            m[k] = (2.0 + mu) * d0 + (mu * mu * d1 - m[w + k]) / lambda;
        }
    }
}

/// Row 1 (`rest` none) or n − 2 (`rest` = 1 − c of the row before) after the
/// not-a-knot condition took the end's velocity out of it:
/// m + μ·m₊ = λ²·d₋ + μ(2 + λ)·d, and mirrored at the end.
fn not_a_knot_row(keys: Keys, i: usize, rest: Option<f64>, m: &mut [f64], c: &mut [f64]) {
    let w = keys.width;
    let (h0, h1) = (keys.gap(i - 1), keys.gap(i));
    let share = 1.0 / (h0 + h1);
    let (lambda, mu) = (h1 * share, h0 * share);
    for k in 0..w {
        let at = i * w + k;
        let (d0, d1) = (keys.slope(i - 1, k), keys.slope(i, k));
        m[at] = match rest {
            None => lambda * lambda * d0 + mu * (2.0 + lambda) * d1,
            Some(rest) => {
                let right = mu * mu * d1 + lambda * (2.0 + mu) * d0;
                (right - lambda * m[at - w]) / (rest + c[i - 1] * mu)
            }
        };
    }
    c[i] = if rest.is_none() { mu } else { 0.0 };
}

/// Velocities at three keys of the parabola through them.
fn parabola(keys: Keys, out: &mut [f64]) {
    let w = keys.width;
    let (h0, h1) = (keys.gap(0), keys.gap(1));
    for k in 0..w {
        let (d0, d1) = (keys.slope(0, k), keys.slope(1, k));
        let bend = (d1 - d0) / (h0 + h1);
        out[k] = d0 - bend * h0;
        out[w + k] = d0 + bend * h0;
        out[2 * w + k] = d1 + bend * h1;
    }
}

/// The C2 spline that runs on into itself: the last key is the first again, and
/// velocity and acceleration carry on through it.
///
/// Where the last value is not the first (an angle that has made a turn, a path
/// that repeats further on), velocity and acceleration still carry on, and the
/// offset repeats with each round. A cyclic tridiagonal solve (Sherman–Morrison),
/// O(n).
pub fn periodic(keys: Keys, out: &mut [f64], scratch: &mut Scratch) {
    keys.assert_fits(out);
    let (n, w) = (keys.len(), keys.width);
    match n {
        0 => return,
        1 => return out.fill(0.0),
        2 => {
            for k in 0..w {
                let slope = keys.slope(0, k);
                (out[k], out[w + k]) = (slope, slope);
            }
            return;
        }
        _ => {}
    }
    let rows = n - 1;
    let shares = |i: usize| {
        let (before, after) = (keys.gap(if i == 0 { rows - 1 } else { i - 1 }), keys.gap(i));
        let share = 1.0 / (before + after);
        (after * share, before * share)
    };
    let right = |i: usize, k: usize| {
        let (lambda, mu) = shares(i);
        3.0 * (lambda * keys.slope(if i == 0 { rows - 1 } else { i - 1 }, k) + mu * keys.slope(i, k))
    };
    if rows == 2 {
        // Both neighbours of a row are the other one: 2m₀ + m₁ = r₀, m₀ + 2m₁ = r₁.
        for k in 0..w {
            let (r0, r1) = (right(0, k), right(1, k));
            out[k] = (2.0 * r0 - r1) / 3.0;
            out[w + k] = (2.0 * r1 - r0) / 3.0;
            out[2 * w + k] = out[k];
        }
        return;
    }
    if scratch.corner.len() < rows {
        scratch.corner.resize(rows, 0.0);
    }
    if scratch.upper.len() < rows {
        scratch.upper.resize(rows, 0.0);
    }
    let (c, q) = (&mut scratch.upper[..rows], &mut scratch.corner[..rows]);
    // The corners λ₀ (top right) and μ_last (bottom left) as a rank-one change
    // u·vᵀ with u = (γ, 0 … μ_last), v = (1, 0 … λ₀/γ), γ = −2.
    let gamma = -2.0;
    let (top, bottom) = (shares(0).0, shares(rows - 1).1);
    let mut pivot = 1.0 / (2.0 - gamma);
    c[0] = shares(0).1 * pivot;
    q[0] = gamma * pivot;
    for k in 0..w {
        out[k] = right(0, k) * pivot;
    }
    for i in 1..rows {
        let (lambda, mu) = shares(i);
        let diagonal = if i == rows - 1 { 2.0 - bottom * top / gamma } else { 2.0 };
        pivot = 1.0 / (diagonal - lambda * c[i - 1]);
        c[i] = mu * pivot;
        q[i] = (if i == rows - 1 { bottom } else { 0.0 } - lambda * q[i - 1]) * pivot;
        for k in 0..w {
            out[i * w + k] = (right(i, k) - lambda * out[(i - 1) * w + k]) * pivot;
        }
    }
    for i in (0..rows - 1).rev() {
        q[i] -= c[i] * q[i + 1];
        for k in 0..w {
            out[i * w + k] -= c[i] * out[(i + 1) * w + k];
        }
    }
    let share = 1.0 / (1.0 + q[0] + top / gamma * q[rows - 1]);
    for k in 0..w {
        let factor = (out[k] + top / gamma * out[(rows - 1) * w + k]) * share;
        for i in 0..rows {
            out[i * w + k] -= factor * q[i];
        }
        out[rows * w + k] = out[k];
    }
}

/// Velocity of the parabola through each key and its two neighbours; the chord's
/// at the ends.
///
/// This is the Catmull–Rom spline in true time: for even gaps the classic one,
/// for uneven gaps the one that does not surge.
pub fn finite_difference(keys: Keys, out: &mut [f64]) {
    inner_keys(keys, out, |h0, h1, d0, d1| (h1 * d0 + h0 * d1) / (h0 + h1));
}

/// The mean of the velocities into and out of each key; the chord's at the ends.
pub fn mean_velocity(keys: Keys, out: &mut [f64]) {
    inner_keys(keys, out, |_, _, d0, d1| 0.5 * (d0 + d1));
}

/// Fills inner keys from (gap before, gap after, slope before, slope after) and
/// end keys with the chord's velocity.
fn inner_keys(keys: Keys, out: &mut [f64], inner: impl Fn(f64, f64, f64, f64) -> f64) {
    keys.assert_fits(out);
    let (n, w) = (keys.len(), keys.width);
    if n < 2 {
        return out.fill(0.0);
    }
    for k in 0..w {
        let (mut h0, mut d0) = (keys.gap(0), keys.slope(0, k));
        out[k] = d0;
        for i in 1..n - 1 {
            let (h1, d1) = (keys.gap(i), keys.slope(i, k));
            out[i * w + k] = inner(h0, h1, d0, d1);
            (h0, d0) = (h1, d1);
        }
        out[(n - 1) * w + k] = d0;
    }
}

/// The classic Catmull–Rom spline, which pays no heed to time: in each span the
/// tangent is half the way between the neighbours, per span. With uneven gaps the
/// velocity therefore jumps at a key while its direction carries on.
///
/// `arrive` and `leave` get the velocities before and after each key, per second;
/// at the ends the chord's.
pub fn catmull_rom_uniform(keys: Keys, arrive: &mut [f64], leave: &mut [f64]) {
    keys.assert_fits(arrive);
    keys.assert_fits(leave);
    let (n, w) = (keys.len(), keys.width);
    if n < 2 {
        arrive.fill(0.0);
        return leave.fill(0.0);
    }
    for k in 0..w {
        (arrive[k], leave[k]) = (keys.slope(0, k), keys.slope(0, k));
        for i in 1..n - 1 {
            let per_span = 0.5 * (keys.values[(i + 1) * w + k] - keys.values[(i - 1) * w + k]);
            arrive[i * w + k] = per_span / keys.gap(i - 1);
            leave[i * w + k] = per_span / keys.gap(i);
        }
        let last = (n - 1) * w + k;
        (arrive[last], leave[last]) = (keys.slope(n - 2, k), keys.slope(n - 2, k));
    }
}

/// Tension, continuity and bias of a key, each usually in −1..=1.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Tcb {
    /// 1 stops at the key, −1 doubles the speed through it.
    pub tension: f64,
    /// −1 makes a corner (at 0 tension: straight lines), 0 none.
    pub continuity: f64,
    /// 1 leans on the span before the key, −1 on the one after it.
    pub bias: f64,
}

/// Kochanek–Bartels velocities with the correction for uneven gaps: the classic
/// tangents times 2/(gap before + gap after), so a key keeps its speed however
/// uneven its neighbours are. End keys have the chord's velocity times
/// (1 − tension).
///
/// `parameters` holds one [`Tcb`] for all keys, or one for each key. `arrive` and
/// `leave` get the velocities before and after each key, per second.
///
/// Source: Kochanek and Bartels, "Interpolating splines with local tension,
/// continuity, and bias control", SIGGRAPH 1984.
///
/// # Errors
/// [`SplineError::Parameter`] if `parameters` has another length or a number that
/// is not finite.
pub fn tcb(keys: Keys, parameters: &[Tcb], arrive: &mut [f64], leave: &mut [f64]) -> Result<(), SplineError> {
    keys.assert_fits(arrive);
    keys.assert_fits(leave);
    let (n, w) = (keys.len(), keys.width);
    if parameters.len() != 1 && parameters.len() != n {
        return Err(SplineError::Parameter {
            what: "the number of tension, continuity and bias settings",
            value: parameters.len() as f64,
            expected: "1, or one for each key",
        });
    }
    for p in parameters {
        for (what, value) in [("tension", p.tension), ("continuity", p.continuity), ("bias", p.bias)] {
            if !value.is_finite() {
                return Err(SplineError::Parameter {
                    what,
                    value,
                    expected: "a finite number, usually in -1..=1",
                });
            }
        }
    }
    if n < 2 {
        arrive.fill(0.0);
        leave.fill(0.0);
        return Ok(());
    }
    let of = |i: usize| {
        if parameters.len() == 1 { parameters[0] } else { parameters[i] }
    };
    for k in 0..w {
        let value = |i: usize| keys.values[i * w + k];
        for i in 0..n {
            let at = i * w + k;
            let Tcb { tension, continuity, bias } = of(i);
            if i == 0 || i == n - 1 {
                let end = keys.slope(if i == 0 { 0 } else { n - 2 }, k) * (1.0 - tension);
                (arrive[at], leave[at]) = (end, end);
                continue;
            }
            let (before, after) = (value(i) - value(i - 1), value(i + 1) - value(i));
            let share = 1.0 / (keys.gap(i - 1) + keys.gap(i));
            let (a, b) = ((1.0 - tension) * (1.0 + bias), (1.0 - tension) * (1.0 - bias));
            arrive[at] = (a * (1.0 - continuity) * before + b * (1.0 + continuity) * after) * share;
            leave[at] = (a * (1.0 + continuity) * before + b * (1.0 - continuity) * after) * share;
        }
    }
    Ok(())
}

/// How a replay curve brakes at its keys.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Brake<'a> {
    /// Not at all.
    None,
    /// Where a component slows down or turns back: turning back stops it at the
    /// key, slowing to a fraction r of the speed takes 1 − r off. End keys do not
    /// brake.
    #[default]
    Automatic,
    /// A factor in 0..=1 for each value of each key; 1 stops there.
    Given(&'a [f64]),
}

/// The replay curve of games: the mean of the velocities into and out of each
/// key, times (1 − k) for the brake k. A missing neighbour counts as standing
/// still, so the first key is left and the last one reached at half speed.
pub fn replay(keys: Keys, brake: Brake, out: &mut [f64]) {
    keys.assert_fits(out);
    let (n, w) = (keys.len(), keys.width);
    if n < 2 {
        return out.fill(0.0);
    }
    for k in 0..w {
        let mut before = 0.0;
        for i in 0..n {
            let after = if i + 1 < n { keys.slope(i, k) } else { 0.0 };
            let at = i * w + k;
            let factor = match brake {
                Brake::None => 0.0,
                Brake::Automatic if i == 0 || i == n - 1 => 0.0,
                Brake::Automatic => brake_factor(before, after),
                Brake::Given(factors) => factors[at],
            };
            out[at] = 0.5 * (before + after) * (1.0 - factor);
            before = after;
        }
    }
}

/// The brake of [`Brake::Automatic`] at a key with these velocities into and out
/// of it: clamp(1 − out/in, 0, 1), and 0 where nothing comes in.
pub fn brake_factor(velocity_in: f64, velocity_out: f64) -> f64 {
    if velocity_in == 0.0 {
        return 0.0;
    }
    let factor = 1.0 - velocity_out / velocity_in;
    // Not `clamp`: a quotient of two infinities must not become NaN.
    if factor > 0.0 { factor.min(1.0) } else { 0.0 }
}

/// Velocities that never leave the range of neighbouring keys: a weighted
/// harmonic mean of the slopes, and zero where they turn. Known as PCHIP.
///
/// Source: Fritsch and Butland, "A method for constructing local monotone
/// piecewise cubic interpolants", SIAM J. Sci. Stat. Comput. 5 (1984).
pub fn monotone(keys: Keys, out: &mut [f64]) {
    keys.assert_fits(out);
    let (n, w) = (keys.len(), keys.width);
    inner_keys(keys, out, |h0, h1, d0, d1| {
        if !same_direction(d0, d1) {
            return 0.0;
        }
        let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
        (w0 + w1) / (w0 / d0 + w1 / d1)
    });
    if n < 3 {
        return;
    }
    for k in 0..w {
        out[k] = monotone_end(keys.gap(0), keys.gap(1), keys.slope(0, k), keys.slope(1, k));
        out[(n - 1) * w + k] =
            monotone_end(keys.gap(n - 2), keys.gap(n - 3), keys.slope(n - 2, k), keys.slope(n - 3, k));
    }
}

/// The three-point velocity at an end, held back so that the end span stays
/// monotone.
fn monotone_end(h0: f64, h1: f64, d0: f64, d1: f64) -> f64 {
    let velocity = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
    if !same_direction(velocity, d0) {
        0.0
    } else if !same_direction(d0, d1) && velocity.abs() > 3.0 * d0.abs() {
        3.0 * d0
    } else {
        velocity
    }
}

fn same_direction(a: f64, b: f64) -> bool {
    (a > 0.0 && b > 0.0) || (a < 0.0 && b < 0.0)
}

/// Holds velocities back until no span leaves the range of its two keys, and
/// leaves all others as they are: the limiter for curves that are otherwise as
/// smooth as they can be.
///
/// A velocity against a slope beside it becomes zero (so a held value is held),
/// one more than three times that slope becomes three times.
///
/// Source: the sufficient condition of Fritsch and Carlson, "Monotone piecewise
/// cubic interpolation", SIAM J. Numer. Anal. 17 (1980).
pub fn limit_overshoot(keys: Keys, tangents: &mut [f64]) {
    keys.assert_fits(tangents);
    let (n, w) = (keys.len(), keys.width);
    for k in 0..w {
        for i in 0..n {
            let at = i * w + k;
            if i > 0 {
                tangents[at] = limited(tangents[at], keys.slope(i - 1, k));
            }
            if i + 1 < n {
                tangents[at] = limited(tangents[at], keys.slope(i, k));
            }
        }
    }
}

/// The velocity nearest to `velocity` with which a span of this slope cannot
/// leave the range of its keys at this end.
pub fn limited(velocity: f64, slope: f64) -> f64 {
    if !same_direction(velocity, slope) {
        0.0
    } else if velocity.abs() > 3.0 * slope.abs() {
        3.0 * slope
    } else {
        velocity
    }
}

/// Sets to zero the velocities at both keys of every span whose two values are
/// equal, so that what is held stays held; all else is left as it is.
pub fn flat_hold(keys: Keys, tangents: &mut [f64]) {
    keys.assert_fits(tangents);
    let w = keys.width;
    for at in 0..keys.values.len().saturating_sub(w) {
        if keys.values[at] == keys.values[at + w] {
            (tangents[at], tangents[at + w]) = (0.0, 0.0);
        }
    }
}

/// Akima's velocities: slopes weighted by how much the slopes on the other side
/// change, so a single outlier does not ripple. Needs five keys to differ from a
/// finite difference.
///
/// Source: H. Akima, "A new method of interpolation and smooth curve fitting
/// based on local procedures", J. ACM 17 (1970).
pub fn akima(keys: Keys, out: &mut [f64]) {
    akima_with(keys, out, |after, before| (after - before).abs());
}

/// Akima's velocities with weights that also look at the size of the slopes, so
/// that a flat stretch stays flat.
pub fn makima(keys: Keys, out: &mut [f64]) {
    akima_with(keys, out, |after, before| (after - before).abs() + 0.5 * (after + before).abs());
}

fn akima_with(keys: Keys, out: &mut [f64], weight: impl Fn(f64, f64) -> f64) {
    keys.assert_fits(out);
    let (n, w) = (keys.len(), keys.width);
    if n < 3 {
        return inner_keys(keys, out, |_, _, d0, d1| 0.5 * (d0 + d1));
    }
    for k in 0..w {
        // Slopes, continued by two on either side in a straight line.
        let (first, second) = (keys.slope(0, k), keys.slope(1, k));
        let (last, before_last) = (keys.slope(n - 2, k), keys.slope(n - 3, k));
        let slope = |i: isize| match i {
            -2 => 2.0 * (2.0 * first - second) - first,
            -1 => 2.0 * first - second,
            i if i == n as isize - 1 => 2.0 * last - before_last,
            i if i == n as isize => 2.0 * (2.0 * last - before_last) - last,
            i => keys.slope(i as usize, k),
        };
        let weights = |i: usize| {
            let i = i as isize;
            (weight(slope(i + 1), slope(i)), weight(slope(i - 1), slope(i - 2)))
        };
        // Weights that are rounding errors of the largest would pick a direction
        // out of noise; there the plain mean of the outer slopes stands in.
        let largest = (0..n).fold(0.0_f64, |most, i| most.max(weights(i).0 + weights(i).1));
        for i in 0..n {
            let (before_weight, after_weight) = weights(i);
            let sum = before_weight + after_weight;
            let j = i as isize;
            out[i * w + k] = if sum > 1e-9 * largest {
                (before_weight * slope(j - 1) + after_weight * slope(j)) / sum
            } else {
                0.5 * (slope(j + 1) + slope(j - 2))
            };
        }
    }
}

/// Mixes two sets of velocities: `(1 − amount)·plain + amount·smooth`, which is the
/// same as mixing the two curves. Written into `smooth`; at amount 1 it is left
/// exactly as it is.
pub fn mix(plain: &[f64], smooth: &mut [f64], amount: f64) {
    if amount == 1.0 {
        return;
    }
    for (s, p) in smooth.iter_mut().zip(plain) {
        *s = (1.0 - amount) * p + amount * *s;
    }
}

/// A rule by name, for a whole curve.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum TangentRule {
    /// [`natural`].
    #[default]
    Natural,
    /// [`clamped`]: velocities at the two ends, one for each component.
    Clamped {
        /// Velocity at the first key, per second.
        start: Vec<f64>,
        /// Velocity at the last key, per second.
        end: Vec<f64>,
    },
    /// [`second_derivative`]: accelerations at the two ends.
    SecondDerivative {
        /// Acceleration at the first key, per second squared.
        start: Vec<f64>,
        /// Acceleration at the last key, per second squared.
        end: Vec<f64>,
    },
    /// [`not_a_knot`].
    NotAKnot,
    /// [`periodic`]; the last values must be the first.
    Periodic,
    /// [`finite_difference`], which is Catmull–Rom in true time.
    FiniteDifference,
    /// [`mean_velocity`].
    MeanVelocity,
    /// [`catmull_rom_uniform`].
    CatmullRomUniform,
    /// [`tcb`], with one setting for all keys or one for each.
    Tcb(Vec<Tcb>),
    /// [`replay`] with [`Brake::Automatic`] (true) or [`Brake::None`].
    Replay {
        /// Whether it brakes where a component slows down.
        brake: bool,
    },
    /// The replay curve (automatic brake) and the natural spline mixed.
    Amount(
        /// 0 = replay curve, 1 = natural spline.
        f64,
    ),
    /// [`monotone`].
    Monotone,
    /// [`natural`], then [`limit_overshoot`].
    NaturalLimited,
    /// [`natural`], then [`flat_hold`].
    NaturalFlatHold,
    /// [`akima`].
    Akima,
    /// [`makima`].
    Makima,
    /// Velocity zero at each key.
    Flat,
}

impl TangentRule {
    /// Fills the velocities before (`arrive`) and after (`leave`) each key; both
    /// have one number for each value.
    ///
    /// # Errors
    /// [`SplineError::Parameter`] for a setting outside its range,
    /// [`SplineError::NotClosed`] for a periodic rule on an open curve.
    pub fn fill(
        &self,
        keys: Keys,
        arrive: &mut [f64],
        leave: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<(), SplineError> {
        match self {
            Self::CatmullRomUniform => {
                catmull_rom_uniform(keys, arrive, leave);
                return Ok(());
            }
            Self::Tcb(parameters) => return tcb(keys, parameters, arrive, leave),
            _ => self.fill_smooth(keys, leave, arrive, scratch)?,
        }
        arrive.copy_from_slice(leave);
        Ok(())
    }

    /// Whether velocities before and after a key may differ.
    pub fn has_corners(&self) -> bool {
        matches!(self, Self::CatmullRomUniform | Self::Tcb(_))
    }

    /// The rules with one velocity a key; `spare` is overwritten.
    pub(crate) fn fill_smooth(
        &self,
        keys: Keys,
        out: &mut [f64],
        spare: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<(), SplineError> {
        match self {
            Self::Natural => natural(keys, out, scratch),
            Self::Clamped { start, end } => {
                check_ends("velocities given for an end", start, end, keys.width)?;
                clamped(keys, start, end, out, scratch);
            }
            Self::SecondDerivative { start, end } => {
                check_ends("accelerations given for an end", start, end, keys.width)?;
                second_derivative(keys, start, end, out, scratch);
            }
            Self::NotAKnot => not_a_knot(keys, out, scratch),
            Self::Periodic => {
                let last = keys.values.len() - keys.width;
                for component in 0..keys.width {
                    let (first, last) = (keys.values[component], keys.values[last + component]);
                    if first != last {
                        return Err(SplineError::NotClosed { component, first, last });
                    }
                }
                periodic(keys, out, scratch);
            }
            Self::FiniteDifference => finite_difference(keys, out),
            Self::MeanVelocity => mean_velocity(keys, out),
            Self::Replay { brake } => replay(keys, if *brake { Brake::Automatic } else { Brake::None }, out),
            Self::Amount(amount) => {
                if !(0.0..=1.0).contains(amount) {
                    return Err(SplineError::Parameter {
                        what: "the smoothing amount",
                        value: *amount,
                        expected: "from 0 (replay curve) to 1 (natural spline)",
                    });
                }
                natural(keys, out, scratch);
                replay(keys, Brake::Automatic, spare);
                mix(spare, out, *amount);
            }
            Self::Monotone => monotone(keys, out),
            Self::NaturalLimited => {
                natural(keys, out, scratch);
                limit_overshoot(keys, out);
            }
            Self::NaturalFlatHold => {
                natural(keys, out, scratch);
                flat_hold(keys, out);
            }
            Self::Akima => akima(keys, out),
            Self::Makima => makima(keys, out),
            Self::Flat => out.fill(0.0),
            Self::CatmullRomUniform | Self::Tcb(_) => unreachable!("these rules have corners"),
        }
        Ok(())
    }
}

fn check_ends(what: &'static str, start: &[f64], end: &[f64], width: usize) -> Result<(), SplineError> {
    for side in [start, end] {
        if side.len() != width {
            return Err(SplineError::Parameter {
                what,
                value: side.len() as f64,
                expected: "one number for each component",
            });
        }
        if let Some(&value) = side.iter().find(|v| !v.is_finite()) {
            return Err(SplineError::Parameter { what, value, expected: "finite" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solving_vectors_at_once_is_the_same_as_one_component_after_the_other() {
        let times: Vec<f64> = (0..50).map(|i| f64::from(i) + 0.3 * f64::from(i % 3)).collect();
        let width = 5;
        let values: Vec<f64> = (0..250).map(|i| f64::from((i * 37) % 101)).collect();
        let keys = Keys::new(&times, &values, width);
        let mut scratch = Scratch::default();
        for rule in
            [TangentRule::Natural, TangentRule::NotAKnot, TangentRule::Amount(0.4), TangentRule::Makima]
        {
            let (mut together, mut spare) = (vec![0.0; 250], vec![0.0; 250]);
            rule.fill_smooth(keys, &mut together, &mut spare, &mut scratch).unwrap();
            for k in 0..width {
                let alone: Vec<f64> = (0..50).map(|i| values[i * width + k]).collect();
                let (mut out, mut spare) = (vec![0.0; 50], vec![0.0; 50]);
                rule.fill_smooth(Keys::scalar(&times, &alone), &mut out, &mut spare, &mut scratch).unwrap();
                for i in 0..50 {
                    assert_eq!(out[i].to_bits(), together[i * width + k].to_bits(), "{rule:?} key {i}");
                }
            }
        }
    }

    #[test]
    fn a_limited_curve_never_leaves_its_keys() {
        let (times, values) = ([0.0, 5.0, 5.5, 10.0, 12.0], [0.0, 1.0, 9.0, 9.0, 3.0]);
        let keys = Keys::scalar(&times, &values);
        let mut m = [0.0; 5];
        natural(keys, &mut m, &mut Scratch::default());
        limit_overshoot(keys, &mut m);
        for i in 0..4 {
            let span = super::super::Cubic::hermite(keys.gap(i), values[i], values[i + 1], m[i], m[i + 1]);
            let range = span.extrema(keys.gap(i), values[i + 1]);
            assert!(range.min >= values[i].min(values[i + 1]) - 1e-12, "span {i}");
            assert!(range.max <= values[i].max(values[i + 1]) + 1e-12, "span {i}");
        }
    }

    #[test]
    fn a_periodic_rule_on_an_open_curve_says_where_it_is_open() {
        let keys = Keys::new(&[0.0, 1.0, 2.0], &[0.0, 5.0, 1.0, 6.0, 0.0, 7.0], 2);
        let (mut a, mut b) = ([0.0; 6], [0.0; 6]);
        assert_eq!(
            TangentRule::Periodic.fill(keys, &mut a, &mut b, &mut Scratch::default()),
            Err(SplineError::NotClosed { component: 1, first: 5.0, last: 7.0 })
        );
    }

    #[test]
    fn a_turning_yaw_carries_its_speed_through_the_seam() {
        // A quarter turn each second, four of them: constant velocity all round.
        let keys = Keys::scalar(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0, 90.0, 180.0, 270.0, 360.0]);
        let mut m = [0.0; 5];
        periodic(keys, &mut m, &mut Scratch::default());
        assert!(m.iter().all(|v| (v - 90.0).abs() < 1e-12), "{m:?}");
    }

    #[test]
    fn amounts_outside_their_range_are_refused() {
        let keys = Keys::scalar(&[0.0, 1.0], &[0.0, 1.0]);
        for amount in [-0.1, 1.5, f64::NAN] {
            let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
            let error = TangentRule::Amount(amount).fill(keys, &mut a, &mut b, &mut Scratch::default());
            assert!(matches!(error, Err(SplineError::Parameter { what: "the smoothing amount", .. })));
        }
    }

    #[test]
    fn tension_one_stops_at_every_key() {
        let keys = Keys::scalar(&[0.0, 1.0, 3.0], &[0.0, 1.0, 5.0]);
        let (mut a, mut b) = ([9.0; 3], [9.0; 3]);
        tcb(keys, &[Tcb { tension: 1.0, ..Tcb::default() }], &mut a, &mut b).unwrap();
        assert_eq!((a, b), ([0.0; 3], [0.0; 3]));
    }
}
