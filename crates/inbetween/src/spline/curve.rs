//! A curve ready to be played: value, velocity and acceleration at any time.
//!
//! The idea: the polynomial of every span is worked out once, so evaluating is a
//! look-up and three multiply-adds for each component. The look-up goes through a
//! table of equal time slots that says which span each slot begins in; with keys
//! even or mildly uneven that is one comparison, and with very uneven ones a
//! bisection of the few spans inside the slot. Playback keeps a [`Cursor`] and
//! does not look up at all.
//!
//! Times are taken relative to the span's own first key, so nothing is lost ten
//! hours in. Spans may break at a jump, which is right-continuous. It stops at
//! plain numbers: rotations are [`super::RotationSpline`].

use super::keys::{self, Mended, SplineError};
use super::long;
use super::segment::{Cubic, Extrema};
use super::tangents::{Keys, Scratch, TangentRule};

/// What a curve does before its first and after its last key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Extrapolation {
    /// Stays at the end's value.
    #[default]
    Hold,
    /// Runs on straight with the end's velocity. A natural spline keeps its
    /// acceleration continuous even there.
    Linear,
    /// Plays again from the other end.
    Cycle,
    /// Plays again, moved by the difference of the last and the first value each
    /// time, so that a walk goes on walking.
    CycleOffset,
    /// Plays to and fro.
    Mirror,
}

/// A piecewise cubic curve of one or more components, solved and indexed.
///
/// ```
/// use inbetween::spline::{Spline, TangentRule};
/// let ball = Spline::new(&[0.0, 1.0, 2.0], &[0.0, 2.0, 0.0], 1, &TangentRule::Natural)?;
/// assert_eq!(ball.value(0.5), 1.375);
/// assert_eq!(ball.velocity(1.0), 0.0);
/// assert_eq!(ball.acceleration(1.0), -6.0);
/// # Ok::<(), inbetween::spline::SplineError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spline {
    width: usize,
    /// First time of each span; at least one span, which for a single key is
    /// constant and has no length.
    starts: Vec<f64>,
    end: f64,
    /// For each span the `a` of all components, then `b`, `c`, `d`.
    coefficients: Vec<f64>,
    /// Values at the last key, met exactly.
    last: Vec<f64>,
    slots: Slots,
    before: Extrapolation,
    after: Extrapolation,
}

/// Equal slots of time and the span each begins in.
#[derive(Clone, Debug, PartialEq, Default)]
struct Slots {
    origin: f64,
    /// Slots a second.
    scale: f64,
    /// The span that holds the beginning of slot i; one more than there are slots.
    first: Vec<u32>,
}

/// Remembers the span of the last time asked, so that playback need not search.
///
/// A cursor belongs to one [`Spline`]; with another it still gives right answers
/// but has to search once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    span: usize,
}

/// Plays one component of a curve: keeps the span it is in at hand, so that a frame
/// costs two comparisons and three multiply-adds. Made by [`Spline::player`].
#[derive(Clone, Debug)]
pub struct Player<'a> {
    curve: &'a Spline,
    component: usize,
    start: f64,
    /// Where the span ends; before its start while there is none.
    end: f64,
    cubic: Cubic,
    cursor: Cursor,
}

impl Player<'_> {
    /// The value at `time`, seconds. Any time may be asked; those that come in order
    /// or nearly so are fast.
    #[inline(always)]
    pub fn value(&mut self, time: f64) -> f64 {
        if time >= self.start && time < self.end {
            return self.cubic.value(time - self.start);
        }
        self.moved(time)
    }

    fn moved(&mut self, time: f64) -> f64 {
        let curve = self.curve;
        if !(time >= curve.starts[0] && time < curve.end) {
            return curve.outside(self.component, time, Derivative::Value);
        }
        let span = curve.advance(&mut self.cursor, time);
        (self.start, self.end) = curve.span_times(span);
        self.cubic = curve.cubic(span, self.component);
        self.cubic.value(time - self.start)
    }
}

/// What [`Spline::sample`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivative {
    /// The value.
    Value,
    /// Its change per second.
    Velocity,
    /// The change of that, per second squared.
    Acceleration,
}

impl Spline {
    /// A curve through `values` (`width` numbers a key, row after row) at `times`
    /// (seconds, increasing; gaps may be uneven), with velocities by `rule`.
    ///
    /// # Errors
    /// What [`super::check`] finds wrong with the keys, what the rule finds wrong
    /// with its settings, and [`SplineError::GapTooSmall`] where two keys are so
    /// near that no finite polynomial joins them.
    pub fn new(times: &[f64], values: &[f64], width: usize, rule: &TangentRule) -> Result<Self, SplineError> {
        Self::with_scratch(times, values, width, rule, &mut Scratch::default())
    }

    /// As [`Spline::new`], but keeps the times it is given instead of copying them: of
    /// millions of keys that is a fifth of the memory that has to be fetched.
    ///
    /// # Errors
    /// As [`Spline::new`].
    pub fn keeping(
        mut times: Vec<f64>,
        values: &[f64],
        width: usize,
        rule: &TangentRule,
    ) -> Result<Self, SplineError> {
        let scratch = &mut Scratch::default();
        match long_rows(&times, values, width, rule, scratch) {
            Some(rows) => {
                let end = times.pop().expect("a long curve has keys");
                Ok(Self::assembled(times, end, rows, values))
            }
            None => Self::with_scratch(&times, values, width, rule, scratch),
        }
    }

    /// A curve of one component from its finished polynomials.
    fn assembled(starts: Vec<f64>, end: f64, coefficients: Vec<f64>, values: &[f64]) -> Self {
        Self {
            width: 1,
            slots: Slots::over(&starts, end),
            starts,
            end,
            coefficients,
            last: values[values.len() - 1..].to_vec(),
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        }
    }

    /// As [`Spline::new`], with working memory that is kept for the next call.
    ///
    /// # Errors
    /// As [`Spline::new`].
    pub fn with_scratch(
        times: &[f64],
        values: &[f64],
        width: usize,
        rule: &TangentRule,
        scratch: &mut Scratch,
    ) -> Result<Self, SplineError> {
        if let Some(rows) = long_rows(times, values, width, rule, scratch) {
            return Ok(Self::assembled(
                times[..times.len() - 1].to_vec(),
                times[times.len() - 1],
                rows,
                values,
            ));
        }
        keys::check(times, values, width)?;
        let keys = Keys { times, values, width };
        let mut leave = vec![0.0; values.len()];
        if rule.has_corners() {
            let mut arrive = vec![0.0; values.len()];
            rule.fill(keys, &mut arrive, &mut leave, scratch)?;
            return Self::build(keys, &arrive, &leave, &[]);
        }
        let mut spare =
            if matches!(rule, TangentRule::Amount(_)) { vec![0.0; values.len()] } else { Vec::new() };
        rule.fill_smooth(keys, &mut leave, &mut spare, scratch)?;
        Self::build(keys, &leave, &leave, &[])
    }

    /// As [`Spline::new`] for keys that may be out of order, repeated, or stand two
    /// at a time: see [`super::mend`]. At a jump the curve falls into pieces, each
    /// solved on its own. The second result says what was mended.
    ///
    /// # Errors
    /// As [`Spline::new`], without what mending takes care of.
    pub fn lenient(
        times: &[f64],
        values: &[f64],
        width: usize,
        rule: &TangentRule,
    ) -> Result<(Self, Vec<keys::Repair>), SplineError> {
        let Mended { times, values, jumps, repairs } = keys::mend(times, values, width)?;
        let (mut arrive, mut leave) = (vec![0.0; values.len()], vec![0.0; values.len()]);
        let mut scratch = Scratch::default();
        let mut from = 0;
        for to in jumps.iter().copied().chain([times.len()]) {
            let rows = from * width..to * width;
            let piece = Keys { times: &times[from..to], values: &values[rows.clone()], width };
            rule.fill(piece, &mut arrive[rows.clone()], &mut leave[rows], &mut scratch)?;
            from = to;
        }
        let keys = Keys { times: &times, values: &values, width };
        Ok((Self::build(keys, &arrive, &leave, &jumps)?, repairs))
    }

    /// A curve from velocities that are already known: `arrive` before each key and
    /// `leave` after it, per second, one for each value.
    ///
    /// # Errors
    /// As [`Spline::new`]; [`SplineError::NonFinite`] also for a tangent.
    pub fn from_tangents(
        times: &[f64],
        values: &[f64],
        width: usize,
        arrive: &[f64],
        leave: &[f64],
    ) -> Result<Self, SplineError> {
        keys::check(times, values, width)?;
        for side in [arrive, leave] {
            if side.len() != values.len() {
                return Err(SplineError::Shape { times: times.len(), width, values: side.len() });
            }
            if let Some(at) = side.iter().position(|v| !v.is_finite()) {
                return Err(SplineError::NonFinite { index: at / width, what: "tangent", value: side[at] });
            }
        }
        Self::build(Keys { times, values, width }, arrive, leave, &[])
    }

    /// Works out the polynomials. `jumps` are the second keys of pairs at one time.
    pub(crate) fn build(
        keys: Keys,
        arrive: &[f64],
        leave: &[f64],
        jumps: &[usize],
    ) -> Result<Self, SplineError> {
        let Keys { times, values, width: w } = keys;
        let n = times.len();
        let (starts, coefficients);
        if n - jumps.len() == 1 {
            // One time: a constant, that of the last key.
            starts = vec![times[n - 1]];
            let mut row = values[(n - 1) * w..].to_vec();
            row.resize(4 * w, 0.0);
            coefficients = row;
        } else if w == 1 && jumps.is_empty() {
            // The common case in one pass that the compiler can lay out well: x·0 is 0
            // for finite numbers and NaN otherwise, so one sum tells of them all.
            let mut sum = 0.0;
            let span = |i: usize| {
                let h = times[i + 1] - times[i];
                let Cubic { a, b, c, d } =
                    Cubic::hermite(h, values[i], values[i + 1], leave[i], arrive[i + 1]);
                sum += (a * 0.0 + b * 0.0) + (c * 0.0 + d * 0.0);
                [a, b, c, d]
            };
            let rows: Vec<[f64; 4]> = (0..n - 1).map(span).collect();
            if sum != 0.0 {
                let unsound = rows.iter().position(|row| !row.iter().all(|x| x.is_finite()));
                let index = unsound.unwrap_or(0) + 1;
                return Err(SplineError::GapTooSmall { index, gap: times[index] - times[index - 1] });
            }
            starts = times[..n - 1].to_vec();
            coefficients = rows.into_flattened();
        } else {
            (starts, coefficients) = Self::rows(keys, arrive, leave, jumps)?;
        }
        let end = times[n - 1];
        Ok(Self {
            width: w,
            slots: Slots::over(&starts, end),
            starts,
            end,
            coefficients,
            last: values[(n - 1) * w..].to_vec(),
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        })
    }

    /// Start and coefficients of each span, for any width and with jumps.
    fn rows(
        Keys { times, values, width: w }: Keys,
        arrive: &[f64],
        leave: &[f64],
        jumps: &[usize],
    ) -> Result<(Vec<f64>, Vec<f64>), SplineError> {
        let spans = times.len() - 1 - jumps.len();
        let mut starts = Vec::with_capacity(spans);
        let mut coefficients = vec![0.0; spans * 4 * w];
        let mut jump = jumps.iter().copied().peekable();
        let mut rows = coefficients.chunks_exact_mut(4 * w);
        for i in 0..times.len() - 1 {
            if jump.next_if_eq(&(i + 1)).is_some() {
                continue;
            }
            let h = times[i + 1] - times[i];
            let row = rows.next().expect("a row for each span");
            let mut sound = true;
            for k in 0..w {
                let (from, to) = (i * w + k, (i + 1) * w + k);
                let span = Cubic::hermite(h, values[from], values[to], leave[from], arrive[to]);
                sound &= span.is_finite();
                (row[k], row[w + k], row[2 * w + k], row[3 * w + k]) = (span.a, span.b, span.c, span.d);
            }
            if !sound {
                return Err(SplineError::GapTooSmall { index: i + 1, gap: h });
            }
            starts.push(times[i]);
        }
        Ok((starts, coefficients))
    }

    /// The same curve with another behaviour outside its keys.
    #[must_use]
    pub fn extrapolated(mut self, before: Extrapolation, after: Extrapolation) -> Self {
        (self.before, self.after) = (before, after);
        self
    }

    /// Numbers a key.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of spans, at least 1.
    pub fn spans(&self) -> usize {
        self.starts.len()
    }

    /// Time of the first key, seconds.
    pub fn start(&self) -> f64 {
        self.starts[0]
    }

    /// Time of the last key, seconds.
    pub fn end(&self) -> f64 {
        self.end
    }

    /// Time span `i` covers, seconds; it holds its beginning and not its end.
    pub fn span_times(&self, i: usize) -> (f64, f64) {
        (self.starts[i], self.starts.get(i + 1).copied().unwrap_or(self.end))
    }

    /// The polynomial of component `k` in span `i`.
    #[inline]
    pub fn cubic(&self, i: usize, k: usize) -> Cubic {
        let w = self.width;
        if w == 1 {
            let row = &self.coefficients[4 * i..4 * i + 4];
            return Cubic { a: row[0], b: row[1], c: row[2], d: row[3] };
        }
        let row = &self.coefficients[i * 4 * w..(i + 1) * 4 * w];
        Cubic { a: row[k], b: row[w + k], c: row[2 * w + k], d: row[3 * w + k] }
    }

    /// The span that holds `time`; the first or last one for times outside.
    #[inline]
    pub fn span_at(&self, time: f64) -> usize {
        self.slots.find(&self.starts, time)
    }

    /// Component 0 at `time`, seconds. NaN gives NaN.
    #[inline]
    pub fn value(&self, time: f64) -> f64 {
        self.component(0, time)
    }

    /// Component `k` at `time`, seconds. NaN gives NaN.
    ///
    /// # Panics
    /// If there is no such component.
    #[inline]
    pub fn component(&self, k: usize, time: f64) -> f64 {
        if time >= self.starts[0] && time < self.end {
            let i = self.slots.find(&self.starts, time);
            return self.cubic(i, k).value(time - self.starts[i]);
        }
        self.outside(k, time, Derivative::Value)
    }

    /// Plays component `k`.
    ///
    /// # Panics
    /// If there is no such component.
    pub fn player(&self, k: usize) -> Player<'_> {
        assert!(k < self.width, "component {k} of {}", self.width);
        Player {
            curve: self,
            component: k,
            start: 0.0,
            end: f64::NEG_INFINITY,
            cubic: Cubic::default(),
            cursor: Cursor::default(),
        }
    }

    /// Component 0 at `time` in playback: as [`Spline::value`], faster where times
    /// come in order or nearly so.
    #[inline]
    pub fn value_with(&self, cursor: &mut Cursor, time: f64) -> f64 {
        // Still in the span of the last time: nothing else needs to be looked at.
        let i = cursor.span;
        if self.width == 1
            && let Some(&[start, next]) = self.starts.get(i..).and_then(<[f64]>::first_chunk)
            && time >= start
            && time < next
        {
            return self.cubic(i, 0).value(time - start);
        }
        if time >= self.starts[0] && time < self.end {
            let i = self.advance(cursor, time);
            return self.cubic(i, 0).value(time - self.starts[i]);
        }
        self.outside(0, time, Derivative::Value)
    }

    /// Velocity of component 0 at `time`, per second. At a key with a corner, that
    /// of the span which begins there; outside the keys, that of the extrapolation.
    pub fn velocity(&self, time: f64) -> f64 {
        self.derivative(0, time, Derivative::Velocity)
    }

    /// Acceleration of component 0 at `time`, per second squared; see
    /// [`Spline::velocity`] for keys and ends.
    pub fn acceleration(&self, time: f64) -> f64 {
        self.derivative(0, time, Derivative::Acceleration)
    }

    /// Component `k` at `time`, or its velocity or acceleration.
    ///
    /// # Panics
    /// If there is no such component.
    pub fn derivative(&self, k: usize, time: f64, what: Derivative) -> f64 {
        if time >= self.starts[0] && time < self.end {
            let i = self.slots.find(&self.starts, time);
            return read(&self.cubic(i, k), time - self.starts[i], what);
        }
        self.outside(k, time, what)
    }

    /// All components at `time`, written into `out`.
    ///
    /// # Panics
    /// If `out` is not [`Spline::width`] long.
    pub fn sample(&self, time: f64, what: Derivative, out: &mut [f64]) {
        self.sample_with(&mut Cursor { span: self.span_at(time) }, time, what, out);
    }

    /// As [`Spline::sample`], in playback.
    ///
    /// # Panics
    /// If `out` is not [`Spline::width`] long.
    pub fn sample_with(&self, cursor: &mut Cursor, time: f64, what: Derivative, out: &mut [f64]) {
        let w = self.width;
        assert_eq!(out.len(), w, "one number for each component");
        if !(time >= self.starts[0] && time < self.end) {
            for (k, out) in out.iter_mut().enumerate() {
                *out = self.outside(k, time, what);
            }
            return;
        }
        let i = self.advance(cursor, time);
        let s = time - self.starts[i];
        let row = &self.coefficients[i * 4 * w..(i + 1) * 4 * w];
        let (a, row) = row.split_at(w);
        let (b, row) = row.split_at(w);
        let (c, d) = row.split_at(w);
        // Plain loops over equal slices: the compiler makes vectors of them.
        match what {
            Derivative::Value => {
                for k in 0..w {
                    out[k] = a[k] + s * (b[k] + s * (c[k] + s * d[k]));
                }
            }
            Derivative::Velocity => {
                for k in 0..w {
                    out[k] = b[k] + s * (2.0 * c[k] + s * (3.0 * d[k]));
                }
            }
            Derivative::Acceleration => {
                for k in 0..w {
                    out[k] = 2.0 * c[k] + s * (6.0 * d[k]);
                }
            }
        }
    }

    /// All components at each of `times`, written row after row into `out`; times
    /// in order run at playback speed, others at that of random access.
    ///
    /// # Panics
    /// If `out` does not hold one row for each time.
    pub fn sample_many(&self, times: &[f64], what: Derivative, out: &mut [f64]) {
        assert_eq!(out.len(), times.len() * self.width, "one row for each time");
        if self.width == 1 && what == Derivative::Value {
            let mut player = self.player(0);
            for (out, &time) in out.iter_mut().zip(times) {
                *out = player.value(time);
            }
            return;
        }
        let mut cursor = Cursor::default();
        for (out, &time) in out.chunks_exact_mut(self.width).zip(times) {
            self.sample_with(&mut cursor, time, what, out);
        }
    }

    /// The smallest and largest value of component `k` over all keys and all that
    /// lies between them, exact, with the times (seconds) they are first reached.
    pub fn extrema(&self, k: usize) -> Extrema {
        let mut all: Option<Extrema> = None;
        for i in 0..self.spans() {
            let (start, end) = self.span_times(i);
            let cubic = self.cubic(i, k);
            // A span's own end, not the next key's value, which may be past a jump.
            let end_value = if i + 1 == self.spans() {
                self.last[k]
            } else {
                let next = self.cubic(i + 1, k).a;
                let here = cubic.value(end - start);
                if (here - next).abs() <= 1e-9 * (here.abs() + next.abs()) { next } else { here }
            };
            let mut found = cubic.extrema(end - start, end_value);
            (found.min_at, found.max_at) = (found.min_at + start, found.max_at + start);
            all = Some(match all {
                None => found,
                Some(mut all) => {
                    if found.min < all.min {
                        (all.min, all.min_at) = (found.min, found.min_at);
                    }
                    if found.max > all.max {
                        (all.max, all.max_at) = (found.max, found.max_at);
                    }
                    all
                }
            });
        }
        all.expect("a curve has a span")
    }

    /// Bending energy of component `k`: the integral of its squared acceleration
    /// from the first key to the last.
    pub fn bending_energy(&self, k: usize) -> f64 {
        (0..self.spans())
            .map(|i| {
                let (start, end) = self.span_times(i);
                self.cubic(i, k).bending_energy(end - start)
            })
            .sum()
    }

    /// The span of `time`, which lies inside the keys, found from the one before.
    #[inline]
    fn advance(&self, cursor: &mut Cursor, time: f64) -> usize {
        let i = cursor.span;
        if let Some(&start) = self.starts.get(i)
            && start <= time
        {
            match self.starts.get(i + 1) {
                Some(&next) if time >= next => {
                    // The next span is the likely one.
                    if self.starts.get(i + 2).is_none_or(|&after| time < after) {
                        cursor.span = i + 1;
                        return i + 1;
                    }
                }
                _ => return i,
            }
        }
        cursor.span = self.slots.find(&self.starts, time);
        cursor.span
    }

    /// Component `k` at the last key, before the first or after it.
    #[cold]
    fn outside(&self, k: usize, time: f64, what: Derivative) -> f64 {
        if time.is_nan() {
            return f64::NAN;
        }
        let (start, end) = (self.starts[0], self.end);
        let length = end - start;
        if time == end {
            return match what {
                Derivative::Value => self.last[k],
                _ => read(&self.cubic(self.spans() - 1, k), end - self.starts[self.spans() - 1], what),
            };
        }
        let first_value = self.cubic(0, k).a;
        let rule = if time < start { self.before } else { self.after };
        let repeats = !matches!(rule, Extrapolation::Hold | Extrapolation::Linear);
        if rule == Extrapolation::Hold || (repeats && (length <= 0.0 || !time.is_finite())) {
            return match what {
                Derivative::Value if time < start => first_value,
                Derivative::Value => self.last[k],
                _ => 0.0,
            };
        }
        if rule == Extrapolation::Linear {
            let (value, edge) = if time < start { (first_value, start) } else { (self.last[k], end) };
            let velocity = self.derivative(k, edge, Derivative::Velocity);
            return match what {
                // At an infinite time a level end must not become 0·∞.
                Derivative::Value if velocity == 0.0 => value,
                Derivative::Value => value + velocity * (time - edge),
                Derivative::Velocity => velocity,
                Derivative::Acceleration => 0.0,
            };
        }
        let rounds = ((time - start) / length).floor();
        let mut folded = (time - start) - rounds * length + start;
        // Rounding may land on the end, which belongs to the next round.
        folded = folded.clamp(start, end);
        let backwards = rule == Extrapolation::Mirror && rounds.rem_euclid(2.0) == 1.0;
        if backwards {
            folded = end - (folded - start);
        }
        let inside = self.derivative(k, folded, what);
        match (rule, what) {
            (Extrapolation::CycleOffset, Derivative::Value) => inside + rounds * (self.last[k] - first_value),
            (Extrapolation::Mirror, Derivative::Velocity) if backwards => -inside,
            _ => inside,
        }
    }
}

/// The polynomials of a long natural spline; none where the plain way is to be taken.
fn long_rows(
    times: &[f64],
    values: &[f64],
    width: usize,
    rule: &TangentRule,
    scratch: &mut Scratch,
) -> Option<Vec<f64>> {
    let long = times.len() >= long::LONG && width == 1 && values.len() == times.len();
    if long && *rule == TangentRule::Natural { long::natural_rows(times, values, scratch) } else { None }
}

#[inline(always)]
fn read(cubic: &Cubic, s: f64, what: Derivative) -> f64 {
    match what {
        Derivative::Value => cubic.value(s),
        Derivative::Velocity => cubic.velocity(s),
        Derivative::Acceleration => cubic.acceleration(s),
    }
}

/// Samples many curves, each with keys of its own, at one time: curve i into
/// `out[i]`, its cursor in `cursors[i]`. Component 0 of each.
///
/// Curves that share their keys are better kept as one [`Spline`] of that width,
/// whose look-up is done once and whose arithmetic runs over whole vectors.
///
/// # Panics
/// If the three slices differ in length.
pub fn sample_curves(curves: &[Spline], cursors: &mut [Cursor], time: f64, out: &mut [f64]) {
    assert!(
        curves.len() == cursors.len() && curves.len() == out.len(),
        "one cursor and one result for each curve"
    );
    for ((curve, cursor), out) in curves.iter().zip(cursors).zip(out) {
        *out = curve.value_with(cursor, time);
    }
}

impl Slots {
    /// Slots for spans that begin at `starts` and end at `end`: two for each span,
    /// so that most slots hold one beginning at most.
    fn over(starts: &[f64], end: f64) -> Self {
        // Large tables do with one for four spans, whose times share a cache line: a
        // larger one would not stay in the cache, and has to be fetched to be built.
        let count = if starts.len() < 1 << 16 { 2 * starts.len() } else { starts.len() / 4 };
        let count = count.min(u32::MAX as usize - 1).max(1);
        let scale = count as f64 / (end - starts[0]);
        let mut slots = Self {
            origin: starts[0],
            scale: if scale.is_finite() { scale } else { 0.0 },
            first: vec![0; count + 1],
        };
        // The last span that begins in an earlier slot. The slot of a time never
        // falls as the time grows, whatever the rounding, so this span begins at
        // or before every time of the slot.
        let mut slot = 0;
        for (span, &start) in starts.iter().enumerate() {
            let of_start = slots.slot(start);
            while slot < of_start {
                slot += 1;
                slots.first[slot] = (span - 1) as u32;
            }
        }
        let last = (starts.len() - 1) as u32;
        for first in &mut slots.first[slot + 1..] {
            *first = last;
        }
        slots
    }

    #[inline(always)]
    fn slot(&self, time: f64) -> usize {
        // A negative or NaN product becomes 0, a huge one the last slot.
        (((time - self.origin) * self.scale) as usize).min(self.first.len() - 2)
    }

    /// The last span that begins at or before `time`; 0 if there is none.
    #[inline(always)]
    fn find(&self, starts: &[f64], time: f64) -> usize {
        let slot = self.slot(time);
        let mut low = self.first[slot] as usize;
        let mut high = self.first[slot + 1] as usize;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if starts[middle] <= time {
                low = middle;
            } else {
                high = middle;
            }
        }
        // Without a branch: where random times fall either side of the key, a
        // guess would be wrong half of the time.
        low + (usize::from(high != low) & usize::from(starts[high] <= time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wavy(n: usize, gap: impl Fn(usize) -> f64) -> Spline {
        let mut times = vec![0.0];
        for i in 1..n {
            times.push(times[i - 1] + gap(i));
        }
        let values: Vec<f64> = (0..n).map(|i| f64::from((i as u32 * 7919) % 23)).collect();
        Spline::new(&times, &values, 1, &TangentRule::Natural).unwrap()
    }

    /// The plain twin of the look-up.
    fn span_by_scan(curve: &Spline, time: f64) -> usize {
        curve.starts.iter().rposition(|&s| s <= time).unwrap_or(0)
    }

    #[test]
    fn the_slot_table_finds_the_span_a_scan_finds() {
        for curve in [
            wavy(2, |_| 1.0),
            wavy(100, |_| 0.04),
            wavy(100, |i| if i % 10 == 0 { 1000.0 } else { 1e-3 }),
            wavy(300, |i| 1.05_f64.powi(i as i32)),
            wavy(50, |i| 10.0_f64.powi(-(i as i32) / 5)),
        ] {
            let (start, end) = (curve.start(), curve.end());
            for k in -5..2000 {
                let time = start + (end - start) * f64::from(k) / 1990.0;
                assert_eq!(curve.span_at(time), span_by_scan(&curve, time), "at {time}");
            }
            for i in 0..curve.spans() {
                for time in [curve.starts[i], curve.starts[i].next_down(), curve.starts[i].next_up()] {
                    assert_eq!(curve.span_at(time), span_by_scan(&curve, time), "at {time}");
                }
            }
        }
    }

    #[test]
    fn a_cursor_gives_what_a_search_gives_in_any_order() {
        let curve = wavy(60, |i| 0.1 + f64::from((i % 5) as u32));
        let (mut cursor, mut player) = (Cursor { span: 900 }, curve.player(0));
        let mut time = curve.start() - 3.0;
        for k in 0..4000 {
            time += match k % 97 {
                96 => -40.0,
                k if k % 5 == 0 => 3.3,
                _ => 0.07,
            };
            assert_eq!(curve.value_with(&mut cursor, time).to_bits(), curve.value(time).to_bits());
            assert_eq!(player.value(time).to_bits(), curve.value(time).to_bits());
        }
    }

    #[test]
    fn every_key_is_met_exactly_and_so_is_the_last() {
        let times = [0.1, 0.35, 0.4, 7.0, 7.3];
        let values = [0.3, 1e9, -2.0, 0.1, 5.5];
        let curve = Spline::new(&times, &values, 1, &TangentRule::Natural).unwrap();
        for (t, v) in times.iter().zip(values) {
            assert_eq!(curve.value(*t), v);
        }
    }

    #[test]
    fn outside_its_keys_a_curve_does_as_told() {
        let make = |rule| {
            Spline::new(&[1.0, 2.0, 4.0], &[0.0, 2.0, 3.0], 1, &TangentRule::FiniteDifference)
                .unwrap()
                .extrapolated(rule, rule)
        };
        let inside = make(Extrapolation::Hold);
        assert_eq!((inside.value(-9.0), inside.value(99.0)), (0.0, 3.0));
        assert_eq!(inside.velocity(99.0), 0.0);
        let linear = make(Extrapolation::Linear);
        assert!((linear.value(6.0) - 4.0).abs() < 1e-12);
        assert!((linear.value(0.0) + 2.0).abs() < 1e-12);
        let cycle = make(Extrapolation::Cycle);
        assert!((cycle.value(5.5) - inside.value(2.5)).abs() < 1e-12);
        assert!((cycle.value(0.5) - inside.value(3.5)).abs() < 1e-12);
        let offset = make(Extrapolation::CycleOffset);
        assert!((offset.value(5.5) - inside.value(2.5) - 3.0).abs() < 1e-12);
        assert!((offset.value(0.5) - inside.value(3.5) + 3.0).abs() < 1e-12);
        let mirror = make(Extrapolation::Mirror);
        assert!((mirror.value(5.5) - inside.value(2.5)).abs() < 1e-12);
        assert!((mirror.velocity(5.5) + inside.velocity(2.5)).abs() < 1e-12);
        assert!((mirror.value(0.5) - inside.value(1.5)).abs() < 1e-12);
    }

    #[test]
    fn no_time_makes_a_curve_panic_or_a_sound_time_give_nan() {
        for rule in [
            Extrapolation::Hold,
            Extrapolation::Linear,
            Extrapolation::Cycle,
            Extrapolation::CycleOffset,
            Extrapolation::Mirror,
        ] {
            for curve in [wavy(9, |_| 0.5), wavy(1, |_| 1.0)] {
                let curve = curve.extrapolated(rule, rule);
                for time in [
                    f64::MIN,
                    -1e300,
                    -0.0,
                    f64::MIN_POSITIVE,
                    1e300,
                    f64::MAX,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                ] {
                    assert!(!curve.value(time).is_nan(), "{rule:?} at {time}");
                    assert!(!curve.velocity(time).is_nan(), "{rule:?} at {time}");
                }
                assert!(curve.value(f64::NAN).is_nan());
                assert!(curve.acceleration(f64::NAN).is_nan());
            }
        }
    }

    #[test]
    fn ten_hours_in_nothing_is_lost_but_the_rounding_of_the_times() {
        let near: Vec<f64> = (0..500).map(|i| f64::from(i) / 64.0).collect();
        let far: Vec<f64> = near.iter().map(|t| t + 36_000.0).collect();
        let values: Vec<f64> = (0..500).map(|i| f64::from((i * 7919) % 101)).collect();
        let near = Spline::new(&near, &values, 1, &TangentRule::Natural).unwrap();
        let far = Spline::new(&far, &values, 1, &TangentRule::Natural).unwrap();
        for k in 0..5000 {
            // 1/1024 s steps are exact in both places: the results must be equal.
            let t = f64::from(k) / 1024.0;
            assert_eq!(near.value(t).to_bits(), far.value(t + 36_000.0).to_bits());
        }
    }

    #[test]
    fn batches_agree_with_single_samples() {
        let times: Vec<f64> = (0..40).map(f64::from).collect();
        let values: Vec<f64> = (0..280).map(|i| f64::from((i * 31) % 17)).collect();
        let curve = Spline::new(&times, &values, 7, &TangentRule::Natural).unwrap();
        let asked: Vec<f64> = (0..300).map(|i| f64::from((i * 53) % 300) * 0.15 - 2.0).collect();
        for what in [Derivative::Value, Derivative::Velocity, Derivative::Acceleration] {
            let mut out = vec![0.0; 300 * 7];
            curve.sample_many(&asked, what, &mut out);
            for (i, &t) in asked.iter().enumerate() {
                for k in 0..7 {
                    assert_eq!(out[i * 7 + k].to_bits(), curve.derivative(k, t, what).to_bits());
                }
            }
        }
        let curves = vec![wavy(20, |_| 0.3), wavy(33, |i| 0.1 * i as f64)];
        let mut cursors = [Cursor::default(); 2];
        let mut out = [0.0; 2];
        for k in 0..100 {
            let t = f64::from(k) * 0.11;
            sample_curves(&curves, &mut cursors, t, &mut out);
            assert_eq!(out, [curves[0].value(t), curves[1].value(t)]);
        }
    }

    #[test]
    fn gaps_no_polynomial_can_cross_are_named() {
        let error = Spline::new(&[0.0, 5e-324, 1.0], &[0.0, 1.0, 0.0], 1, &TangentRule::Natural);
        assert!(matches!(error, Err(SplineError::GapTooSmall { index: 1, .. })), "{error:?}");
        let error = Spline::new(&[0.0, 1.0, 2.0], &[0.0, f64::MAX, -f64::MAX], 1, &TangentRule::Natural);
        assert!(error.is_err());
    }
}
