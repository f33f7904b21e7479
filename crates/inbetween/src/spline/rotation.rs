//! Rotations through keys: slerp, SQUAD, and the curve whose angular velocity and
//! acceleration both carry on.
//!
//! The idea: between two keys a rotation is the first key times the exponential
//! of a rotation vector. Slerp lets that vector grow evenly. [`RotationSpline`]
//! lets it be a cubic of time whose ends are given by the angular velocities at
//! the keys, and finds the velocities with which the angular acceleration carries
//! on too; they solve a block-tridiagonal system that is almost linear, so a few
//! rounds do. Any other angular velocities (a replay camera's, a mix) give a curve
//! of the same kind, as Hermite tangents do for numbers.
//!
//! Quaternions are x, y, z, w; q and −q are the same rotation everywhere here.
//! Angular velocity is in radians per second in the turning body's own axes. For
//! cameras that must stay level use angles instead: a quaternion curve through
//! level keys rolls on its way.

use super::keys::{self, SplineError};

/// Product of two quaternions: `b` first, then `a`.
pub fn quat_multiply(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    let ([ax, ay, az, aw], [bx, by, bz, bw]) = (a, b);
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// The opposite rotation of a unit quaternion.
pub fn quat_conjugate(q: [f64; 4]) -> [f64; 4] {
    [-q[0], -q[1], -q[2], q[3]]
}

/// The vector `v` turned by the unit quaternion `q`.
pub fn quat_rotate(q: [f64; 4], v: [f64; 3]) -> [f64; 3] {
    let axis = [q[0], q[1], q[2]];
    let once = scaled(cross(axis, v), 2.0);
    added(added(v, scaled(once, q[3])), cross(axis, once))
}

/// Half the rotation vector of a unit quaternion, taken as it is (not the short
/// way): the inverse of [`quat_exp`].
pub fn quat_log(q: [f64; 4]) -> [f64; 3] {
    let v = [q[0], q[1], q[2]];
    let sine = norm(v);
    if sine == 0.0 {
        return [0.0; 3];
    }
    scaled(v, libm::atan2(sine, q[3]) / sine)
}

/// The unit quaternion that turns by `2·|half|` about `half`.
pub fn quat_exp(half: [f64; 3]) -> [f64; 4] {
    let angle = norm(half);
    if angle == 0.0 {
        return [0.0, 0.0, 0.0, 1.0];
    }
    let [x, y, z] = scaled(half, libm::sin(angle) / angle);
    [x, y, z, libm::cos(angle)]
}

/// From `a` to `b` with even turning, the short way; `share` is 0 at `a` and 1 at
/// `b`. Both must be unit quaternions; their signs do not matter.
pub fn slerp(a: [f64; 4], b: [f64; 4], share: f64) -> [f64; 4] {
    slerp_as_is(a, aligned(b, a), share)
}

fn slerp_as_is(a: [f64; 4], b: [f64; 4], share: f64) -> [f64; 4] {
    let step = quat_log(quat_multiply(quat_conjugate(a), b));
    quat_multiply(a, quat_exp(scaled(step, share)))
}

/// The inner control rotation of SQUAD at the key `q` between its neighbours, for
/// even gaps. Signs must be aligned from key to key.
///
/// Source: Shoemake, "Quaternion calculus and fast animation", SIGGRAPH course
/// notes 1987.
pub fn squad_inner(before: [f64; 4], q: [f64; 4], after: [f64; 4]) -> [f64; 4] {
    let inverse = quat_conjugate(q);
    let forward = quat_log(quat_multiply(inverse, after));
    let backward = quat_log(quat_multiply(inverse, before));
    quat_multiply(q, quat_exp(scaled(added(forward, backward), -0.25)))
}

/// SQUAD between the keys `q0` and `q1` with their inner control rotations
/// ([`squad_inner`]; the key itself at either end of the path). Angular velocity
/// carries on through the keys where gaps are even, acceleration does not.
pub fn squad(q0: [f64; 4], q1: [f64; 4], inner0: [f64; 4], inner1: [f64; 4], share: f64) -> [f64; 4] {
    let outer = slerp_as_is(q0, q1, share);
    let inner = slerp_as_is(inner0, inner1, share);
    slerp_as_is(outer, inner, 2.0 * share * (1.0 - share))
}

/// A curve through rotation keys with angular velocity and acceleration at any
/// time.
///
/// Between neighbours it goes the short way. Before the first key and after the
/// last it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RotationSpline {
    times: Vec<f64>,
    keys: Vec<[f64; 4]>,
    /// For each span the rotation vector from its first key as a cubic of local
    /// time: its three coefficients above the constant, which is zero.
    spans: Vec<[[f64; 3]; 3]>,
    converged: bool,
}

/// How many rounds [`RotationSpline::smooth_rates`] may take.
const ROUNDS: usize = 40;

impl RotationSpline {
    /// The curve whose angular velocity and acceleration carry on through every
    /// key; at the first and the last key it turns with the velocity of the even
    /// turn to the neighbour. Two keys give slerp, one a constant.
    ///
    /// `times` are seconds and increase; `rotations` are quaternions of any
    /// length but zero, and of any sign.
    ///
    /// # Errors
    /// As [`super::check`]; also [`SplineError::NonFinite`] for a quaternion that is
    /// zero, and [`SplineError::GapTooSmall`].
    pub fn new(times: &[f64], rotations: &[[f64; 4]]) -> Result<Self, SplineError> {
        let (keys, steps) = prepare(times, rotations)?;
        let (rates, converged) = smooth_rates(times, &steps);
        Self::build(times, keys, &steps, &rates, &rates, converged)
    }

    /// The curve with the angular velocities `rates` at the keys (radians per
    /// second in the body's own axes).
    ///
    /// # Errors
    /// As [`RotationSpline::new`], and [`SplineError::Shape`] if there is not one
    /// rate for each key.
    pub fn with_rates(
        times: &[f64],
        rotations: &[[f64; 4]],
        rates: &[[f64; 3]],
    ) -> Result<Self, SplineError> {
        Self::with_rates_before_and_after(times, rotations, rates, rates)
    }

    /// As [`RotationSpline::with_rates`], with a rate before (`arrive`) and one after
    /// (`leave`) each key.
    ///
    /// # Errors
    /// As [`RotationSpline::with_rates`].
    pub fn with_rates_before_and_after(
        times: &[f64],
        rotations: &[[f64; 4]],
        arrive: &[[f64; 3]],
        leave: &[[f64; 3]],
    ) -> Result<Self, SplineError> {
        for rates in [arrive, leave] {
            if rates.len() != times.len() {
                return Err(SplineError::Shape { times: times.len(), width: 3, values: rates.len() * 3 });
            }
        }
        let (keys, steps) = prepare(times, rotations)?;
        Self::build(times, keys, &steps, arrive, leave, true)
    }

    fn build(
        times: &[f64],
        keys: Vec<[f64; 4]>,
        steps: &[[f64; 3]],
        arrive: &[[f64; 3]],
        leave: &[[f64; 3]],
        converged: bool,
    ) -> Result<Self, SplineError> {
        let mut spans = Vec::with_capacity(steps.len());
        for (i, &step) in steps.iter().enumerate() {
            let h = times[i + 1] - times[i];
            let start = leave[i];
            let end = rate_to_vector(step, arrive[i + 1]);
            let mut span = [start, [0.0; 3], [0.0; 3]];
            for k in 0..3 {
                let slope = step[k] / h;
                span[1][k] = (3.0 * slope - 2.0 * start[k] - end[k]) / h;
                span[2][k] = (start[k] + end[k] - 2.0 * slope) / h / h;
            }
            if span.iter().flatten().any(|x| !x.is_finite()) {
                return Err(SplineError::GapTooSmall { index: i + 1, gap: h });
            }
            spans.push(span);
        }
        Ok(Self { times: times.to_vec(), keys, spans, converged })
    }

    /// The angular velocities at the keys that [`RotationSpline::new`] uses, to mix
    /// with others.
    ///
    /// # Errors
    /// As [`RotationSpline::new`].
    pub fn smooth_rates(times: &[f64], rotations: &[[f64; 4]]) -> Result<Vec<[f64; 3]>, SplineError> {
        let (_, steps) = prepare(times, rotations)?;
        Ok(smooth_rates(times, &steps).0)
    }

    /// The angular velocities of the replay curve: the mean of the even turns into
    /// and out of each key, a missing side standing still, times (1 − k) for the
    /// brake k = clamp(1 − out·in / in·in, 0, 1) where `brake` is set.
    ///
    /// # Errors
    /// As [`RotationSpline::new`].
    pub fn replay_rates(
        times: &[f64],
        rotations: &[[f64; 4]],
        brake: bool,
    ) -> Result<Vec<[f64; 3]>, SplineError> {
        let (_, steps) = prepare(times, rotations)?;
        let n = times.len();
        let chord = |i: usize| scaled(steps[i], 1.0 / (times[i + 1] - times[i]));
        Ok((0..n)
            .map(|i| {
                let before = if i > 0 { chord(i - 1) } else { [0.0; 3] };
                let after = if i + 1 < n { chord(i) } else { [0.0; 3] };
                let inner = i > 0 && i + 1 < n;
                let speed = dot(before, before);
                let k = if brake && inner && speed > 0.0 {
                    (1.0 - dot(after, before) / speed).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                scaled(added(before, after), 0.5 * (1.0 - k))
            })
            .collect())
    }

    /// Whether the search for smooth angular velocities came to rest. Keys that turn
    /// by nearly half a turn in opposite directions can keep it from doing so; the
    /// curve then still meets every key with a continuous angular velocity.
    pub fn converged(&self) -> bool {
        self.converged
    }

    /// The keys, normalised, signs aligned from one to the next.
    pub fn keys(&self) -> &[[f64; 4]] {
        &self.keys
    }

    /// Rotation at `time` seconds, a unit quaternion. NaN gives NaN.
    pub fn rotation(&self, time: f64) -> [f64; 4] {
        if time.is_nan() {
            return [f64::NAN; 4];
        }
        let last = self.keys.len() - 1;
        if time <= self.times[0] {
            return self.keys[0];
        }
        if time >= self.times[last] {
            return self.keys[last];
        }
        let i = self.span_at(time);
        let s = time - self.times[i];
        if s == 0.0 {
            return self.keys[i];
        }
        let [vector, _, _] = self.vector(i, s);
        normalised(quat_multiply(self.keys[i], quat_exp(scaled(vector, 0.5))))
    }

    /// Angular velocity at `time`, radians per second in the body's own axes; zero
    /// outside the keys.
    pub fn angular_velocity(&self, time: f64) -> [f64; 3] {
        let Some((i, s)) = self.inside(time) else {
            return [0.0; 3];
        };
        let [vector, first, _] = self.vector(i, s);
        vector_to_rate(vector, first)
    }

    /// Angular acceleration at `time`, radians per second squared in the body's own
    /// axes; zero outside the keys.
    pub fn angular_acceleration(&self, time: f64) -> [f64; 3] {
        let Some((i, s)) = self.inside(time) else {
            return [0.0; 3];
        };
        let [vector, first, second] = self.vector(i, s);
        added(vector_to_rate(vector, second), turning_term(vector, first))
    }

    fn inside(&self, time: f64) -> Option<(usize, f64)> {
        let last = self.keys.len() - 1;
        if last == 0 || !(time >= self.times[0] && time <= self.times[last]) {
            return None;
        }
        let i = self.span_at(time);
        Some((i, time - self.times[i]))
    }

    fn span_at(&self, time: f64) -> usize {
        (self.times.partition_point(|&t| t <= time).max(1) - 1).min(self.spans.len() - 1)
    }

    /// The rotation vector `s` seconds into span `i`, and its two derivatives.
    fn vector(&self, i: usize, s: f64) -> [[f64; 3]; 3] {
        let [b, c, d] = self.spans[i];
        let mut out = [[0.0; 3]; 3];
        for k in 0..3 {
            out[0][k] = s * (b[k] + s * (c[k] + s * d[k]));
            out[1][k] = b[k] + s * (2.0 * c[k] + s * (3.0 * d[k]));
            out[2][k] = 2.0 * c[k] + s * (6.0 * d[k]);
        }
        out
    }
}

/// Unit quaternions of aligned signs, and the rotation vectors between neighbours.
type Prepared = (Vec<[f64; 4]>, Vec<[f64; 3]>);

/// Checks the keys, normalises and aligns them, and takes the rotation vectors
/// between neighbours.
fn prepare(times: &[f64], rotations: &[[f64; 4]]) -> Result<Prepared, SplineError> {
    keys::check(times, rotations.as_flattened(), 4)?;
    let mut aligned_keys: Vec<[f64; 4]> = Vec::with_capacity(rotations.len());
    for (index, &q) in rotations.iter().enumerate() {
        let unit = normalised(q);
        if unit.iter().any(|x| !x.is_finite()) {
            return Err(SplineError::NonFinite { index, what: "a quaternion of length", value: 0.0 });
        }
        let before = aligned_keys.last().copied();
        aligned_keys.push(before.map_or(unit, |b| aligned(unit, b)));
    }
    let steps = aligned_keys
        .windows(2)
        .map(|pair| scaled(quat_log(quat_multiply(quat_conjugate(pair[0]), pair[1])), 2.0))
        .collect();
    Ok((aligned_keys, steps))
}

/// Angular velocities that make the angular acceleration continuous.
///
/// With R the rotation vector over a span of length h and ω the rates at its ends,
/// the acceleration is 6R/h² − 4ω/h − 2Aω₊/h at its start and
/// −6R/h² + 2A⁻¹ω/h + 4ω₊/h + N at its end, where A turns a rate into the change of
/// the rotation vector and N is what a turning axis adds. Setting neighbours equal
/// gives a block-tridiagonal system but for N, which the last round supplies.
fn smooth_rates(times: &[f64], steps: &[[f64; 3]]) -> (Vec<[f64; 3]>, bool) {
    let n = times.len();
    let h = |i: usize| times[i + 1] - times[i];
    if n < 3 {
        let rate = steps.first().map_or([0.0; 3], |&s| scaled(s, 1.0 / h(0)));
        return (vec![rate; n], true);
    }
    let chord = |i: usize| scaled(steps[i], 1.0 / h(i));
    let mut rates: Vec<[f64; 3]> = (0..n).map(|i| chord(i.max(1) - 1)).collect();
    rates[0] = chord(0);
    let inner = n - 2;
    // Factor once: the matrix does not change from round to round.
    let (mut pivots, mut uppers) = (vec![[[0.0; 3]; 3]; inner], vec![[[0.0; 3]; 3]; inner]);
    let lower = |i: usize| times_scalar(matrix_of(|v| vector_to_rate(steps[i - 1], v)), 2.0 / h(i - 1));
    for row in 0..inner {
        let i = row + 1;
        let mut diagonal = times_scalar(IDENTITY, 4.0 * (1.0 / h(i - 1) + 1.0 / h(i)));
        if row > 0 {
            diagonal = matrix_minus(diagonal, product(lower(i), uppers[row - 1]));
        }
        pivots[row] = inverse(diagonal);
        let upper = times_scalar(matrix_of(|v| rate_to_vector(steps[i], v)), 2.0 / h(i));
        uppers[row] = product(pivots[row], upper);
    }
    let mut right = vec![[0.0; 3]; inner];
    let mut converged = false;
    for _ in 0..ROUNDS {
        for row in 0..inner {
            let i = row + 1;
            let arriving = rate_to_vector(steps[i - 1], rates[i]);
            let mut sum = scaled(steps[i - 1], 6.0 / (h(i - 1) * h(i - 1)));
            sum = added(sum, scaled(steps[i], 6.0 / (h(i) * h(i))));
            sum = added(sum, scaled(turning_term(steps[i - 1], arriving), -1.0));
            let before = if row == 0 { rates[0] } else { right[row - 1] };
            sum = added(sum, scaled(apply(lower(i), before), -1.0));
            if row == inner - 1 {
                let onward = scaled(rate_to_vector(steps[i], rates[n - 1]), 2.0 / h(i));
                sum = added(sum, scaled(onward, -1.0));
            }
            right[row] = apply(pivots[row], sum);
        }
        for row in (0..inner - 1).rev() {
            right[row] = added(right[row], scaled(apply(uppers[row], right[row + 1]), -1.0));
        }
        let mut settled = true;
        for row in 0..inner {
            for k in 0..3 {
                settled &= (right[row][k] - rates[row + 1][k]).abs() <= 1e-13 * (1.0 + right[row][k].abs());
            }
            rates[row + 1] = right[row];
        }
        if settled {
            converged = true;
            break;
        }
    }
    if !converged && rates.iter().flatten().any(|x| !x.is_finite() || x.abs() > 1e150) {
        // Ran away: the mean of the even turns on either side is always there.
        for i in 1..n - 1 {
            rates[i] = scaled(added(chord(i - 1), chord(i)), 0.5);
        }
    }
    (rates, converged)
}

/// Change of the rotation vector `v` that the body rate `w` makes:
/// w + v×w/2 + k·v×(v×w), k = (1 − (θ/2)·cot(θ/2))/θ².
fn rate_to_vector(v: [f64; 3], w: [f64; 3]) -> [f64; 3] {
    let angle = norm(v);
    let square = angle * angle;
    let k = if angle < 0.2 {
        1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30_240.0 + square / 1_209_600.0))
    } else {
        let half = 0.5 * angle;
        (1.0 - half * libm::cos(half) / libm::sin(half)) / square
    };
    let once = cross(v, w);
    added(added(w, scaled(once, 0.5)), scaled(cross(v, once), k))
}

/// Body rate of a rotation vector `v` that changes by `dv` a second:
/// dv − k₁·v×dv + k₂·v×(v×dv), k₁ = (1 − cos θ)/θ², k₂ = (θ − sin θ)/θ³.
fn vector_to_rate(v: [f64; 3], dv: [f64; 3]) -> [f64; 3] {
    let angle = norm(v);
    let (k1, k2) = (one_minus_cosine(angle), angle_minus_sine(angle));
    let once = cross(v, dv);
    added(added(dv, scaled(once, -k1)), scaled(cross(v, once), k2))
}

/// What the turning of the axis adds to the angular acceleration: the derivative
/// of [`vector_to_rate`] without the part in the second derivative.
fn turning_term(v: [f64; 3], dv: [f64; 3]) -> [f64; 3] {
    let angle = norm(v);
    let square = angle * angle;
    let (k1, k2) = if angle < 0.2 {
        (
            -1.0 / 12.0 + square * (1.0 / 180.0 + square * (-1.0 / 6720.0 + square / 453_600.0)),
            -1.0 / 60.0 + square * (1.0 / 1260.0 + square * (-1.0 / 60_480.0 + square / 4_989_600.0)),
        )
    } else {
        let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
        (
            (angle * sine - 2.0 * (1.0 - cosine)) / (square * square),
            (3.0 * sine - angle * (2.0 + cosine)) / (square * square * angle),
        )
    };
    let once = cross(v, dv);
    let twice = cross(v, once);
    let along = dot(v, dv);
    let mut out = scaled(cross(dv, once), angle_minus_sine(angle));
    out = added(out, scaled(once, -along * k1));
    added(out, scaled(twice, along * k2))
}

/// (1 − cos θ)/θ².
fn one_minus_cosine(angle: f64) -> f64 {
    if angle < 1e-8 {
        return 0.5;
    }
    let ratio = libm::sin(0.5 * angle) / (0.5 * angle);
    0.5 * ratio * ratio
}

/// (θ − sin θ)/θ³.
fn angle_minus_sine(angle: f64) -> f64 {
    let square = angle * angle;
    if angle < 0.2 {
        1.0 / 6.0 + square * (-1.0 / 120.0 + square * (1.0 / 5040.0 - square / 362_880.0))
    } else {
        (angle - libm::sin(angle)) / (square * angle)
    }
}

fn aligned(q: [f64; 4], to: [f64; 4]) -> [f64; 4] {
    let cosine: f64 = (0..4).map(|k| q[k] * to[k]).sum();
    if cosine < 0.0 { q.map(|x| -x) } else { q }
}

fn normalised(q: [f64; 4]) -> [f64; 4] {
    // Scaled first, so that tiny and huge quaternions keep their direction.
    let largest = q.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let q = q.map(|x| x / largest);
    let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    q.map(|x| x / length)
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

fn scaled(a: [f64; 3], by: f64) -> [f64; 3] {
    a.map(|x| x * by)
}

fn added(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

type Matrix = [[f64; 3]; 3];
const IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// The matrix of a linear map, row by row.
fn matrix_of(map: impl Fn([f64; 3]) -> [f64; 3]) -> Matrix {
    let columns = IDENTITY.map(map);
    let mut rows = IDENTITY;
    for r in 0..3 {
        for c in 0..3 {
            rows[r][c] = columns[c][r];
        }
    }
    rows
}

fn apply(m: Matrix, v: [f64; 3]) -> [f64; 3] {
    m.map(|row| dot(row, v))
}

fn product(a: Matrix, b: Matrix) -> Matrix {
    matrix_of(|v| apply(a, apply(b, v)))
}

fn times_scalar(m: Matrix, by: f64) -> Matrix {
    m.map(|row| scaled(row, by))
}

fn matrix_minus(a: Matrix, b: Matrix) -> Matrix {
    [0, 1, 2].map(|r| added(a[r], scaled(b[r], -1.0)))
}

fn inverse(m: Matrix) -> Matrix {
    let minors = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])];
    let share = 1.0 / dot(m[0], minors[0]);
    matrix_of(|v| {
        let mut out = [0.0; 3];
        for k in 0..3 {
            out = added(out, scaled(minors[k], v[k]));
        }
        scaled(out, share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(axis: [f64; 3], degrees: f64) -> [f64; 4] {
        let length = norm(axis);
        quat_exp(scaled(axis, 0.5 * degrees.to_radians() / length))
    }

    fn tumbling(n: usize) -> (Vec<f64>, Vec<[f64; 4]>) {
        let times = (0..n).map(|i| i as f64 + 0.3 * ((i * i) % 3) as f64 * 0.9).collect();
        let keys = (0..n)
            .map(|i| {
                let i = i as f64;
                quat_multiply(turn([1.0, 0.2, i.sin()], 37.0 * i), turn([0.0, 1.0, 0.5], -23.0 * i))
            })
            .collect();
        (times, keys)
    }

    fn angle_between(a: [f64; 4], b: [f64; 4]) -> f64 {
        2.0 * norm(quat_log(quat_multiply(quat_conjugate(a), aligned(b, a))))
    }

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let m = [[4.0, 1.0, -2.0], [0.5, 3.0, 1.0], [2.0, -1.0, 5.0]];
        let one = product(m, inverse(m));
        for r in 0..3 {
            for c in 0..3 {
                assert!((one[r][c] - IDENTITY[r][c]).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn keys_are_met_and_velocity_and_acceleration_carry_on_through_each() {
        let (times, keys) = tumbling(12);
        let curve = RotationSpline::new(&times, &keys).unwrap();
        assert!(curve.converged());
        for i in 1..11 {
            let t = times[i];
            assert!(angle_between(curve.rotation(t), keys[i]) < 1e-14);
            let e = 1e-7;
            for (before, after, jump) in [
                (curve.angular_velocity(t - e), curve.angular_velocity(t + e), 1e-4),
                (curve.angular_acceleration(t - e), curve.angular_acceleration(t + e), 1e-4),
            ] {
                // Two times 1e-7 s apart: a change of 1e-4 would take 500 rad/s³.
                assert!(norm(added(before, scaled(after, -1.0))) < jump, "key {i}");
            }
        }
    }

    #[test]
    fn rates_are_the_derivative_of_the_rotation() {
        let (times, keys) = tumbling(8);
        let curve = RotationSpline::new(&times, &keys).unwrap();
        for k in 0..70 {
            let t = times[0] + 0.05 + (times[7] - times[0] - 0.1) * f64::from(k) / 70.0;
            let e = 1e-5;
            let step = quat_multiply(quat_conjugate(curve.rotation(t - e)), curve.rotation(t + e));
            let by_difference = scaled(quat_log(aligned(step, [0.0, 0.0, 0.0, 1.0])), 2.0 / (2.0 * e));
            let rate = curve.angular_velocity(t);
            assert!(norm(added(rate, scaled(by_difference, -1.0))) < 1e-6, "at {t}");
        }
    }

    #[test]
    fn two_keys_are_slerp_and_one_is_constant() {
        let (a, b) = (turn([0.0, 1.0, 0.0], 10.0), turn([1.0, 0.0, 0.0], 100.0));
        let curve = RotationSpline::new(&[0.0, 2.0], &[a, b.map(|x| -x)]).unwrap();
        for k in 0..9 {
            let t = f64::from(k) / 4.0;
            assert!(angle_between(curve.rotation(t), slerp(a, b, t / 2.0)) < 1e-14);
        }
        let still = RotationSpline::new(&[5.0], &[a]).unwrap();
        assert!(angle_between(still.rotation(-1.0), a) < 1e-15);
        assert_eq!(still.angular_velocity(5.0), [0.0; 3]);
    }

    #[test]
    fn half_turns_there_and_back_stay_finite() {
        let times: Vec<f64> = (0..9).map(f64::from).collect();
        let keys: Vec<_> =
            (0..9)
                .map(|i| {
                    if i % 2 == 0 {
                        turn([0.0, 1.0, 0.0], 0.0)
                    } else {
                        turn([1.0, f64::from(i), 0.3], 179.9)
                    }
                })
                .collect();
        let curve = RotationSpline::new(&times, &keys).unwrap();
        for k in 0..800 {
            let q = curve.rotation(f64::from(k) / 100.0);
            assert!(q.iter().all(|x| x.is_finite()));
            assert!((q.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_zero_quaternion_is_refused_by_name() {
        let error = RotationSpline::new(&[0.0, 1.0], &[[0.0, 0.0, 0.0, 1.0], [0.0; 4]]).unwrap_err();
        assert!(error.to_string().contains("key 1 has a quaternion of length 0"), "{error}");
    }

    #[test]
    fn the_replay_camera_stops_where_it_turns_back() {
        let y = [0.0, 1.0, 0.0];
        let keys = [turn(y, 0.0), turn(y, 40.0), turn(y, 0.0)];
        let rates = RotationSpline::replay_rates(&[0.0, 1.0, 2.0], &keys, true).unwrap();
        assert!(norm(rates[1]) < 1e-15);
        assert!((rates[0][1] - 0.5 * 40.0_f64.to_radians()).abs() < 1e-14);
    }
}
