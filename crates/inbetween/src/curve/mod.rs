//! A curve: values of one kind at increasing times, and how each span between them is filled.
//!
//! All kinds share one flat layout: a key is a row of `width` f64 numbers, rows lie one after
//! another, times are shared between curves that have the same ones (`Arc`). So a take in which
//! every joint is keyed on every frame holds its times once, and reducers, writers and the codec
//! walk plain slices. A curve that exists is valid: [`Curve::new`] checks, nobody after it does.
//!
//! Natural splines, Catmull–Rom, TCB and the like are not span kinds: they are rules that fill
//! Hermite tangents.

mod cut;

use std::sync::Arc;

use glam::DQuat;
use thiserror::Error;

use crate::math;
use crate::spline::{Cubic, TimeBezier};
pub(crate) use cut::undo;

/// What the numbers of a key mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// On or off, stored as 1 or 0; never anything between, so spans are steps.
    Switch,
    /// One number.
    Scalar,
    /// A vector of 2, 3 or 4 numbers, blended component by component.
    Vector(u8),
    /// A linear colour of 3 (RGB) or 4 (RGBA) numbers.
    Color(u8),
    /// A unit quaternion x, y, z, w; linear spans are slerps the short way.
    Rotation,
    /// Weights of that many morph targets.
    Weights(u32),
}

impl ValueKind {
    /// Numbers per key.
    pub fn width(self) -> usize {
        match self {
            Self::Switch | Self::Scalar => 1,
            Self::Vector(n) | Self::Color(n) => usize::from(n),
            Self::Rotation => 4,
            Self::Weights(n) => n as usize,
        }
    }
}

/// How the span that follows a key is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// The key's value until the next key.
    Step,
    /// The next key's value at once after this key (as FBX's "constant next"); at the key itself
    /// its own.
    StepNext,
    /// A straight line; for rotations a slerp the short way.
    Linear,
    /// A cubic with given slopes at both ends, per second. Rotations are normalised afterwards.
    Hermite,
    /// A cubic with handles that have a length in time too (weighted tangents).
    Bezier,
}

/// The kinds of all spans: one for all, or one a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Spans {
    /// Every span is of this kind.
    Uniform(SpanKind),
    /// One kind a key, for the span that follows it; the last key's is what would follow.
    PerKey(Vec<SpanKind>),
}

impl Spans {
    /// Kind of the span after key `index`.
    pub fn at(&self, index: usize) -> SpanKind {
        match self {
            Self::Uniform(kind) => *kind,
            Self::PerKey(kinds) => kinds[index],
        }
    }

    /// True if the span after some key is of the given kind.
    pub fn any(&self, kind: SpanKind) -> bool {
        match self {
            Self::Uniform(k) => *k == kind,
            Self::PerKey(kinds) => kinds.contains(&kind),
        }
    }
}

/// Tangents of Hermite and Bezier spans: rows like the values, one row a key.
///
/// For a Hermite span `leave` (of its first key) and `arrive` (of its second) are slopes in value
/// per second. For a Bezier span they are the handles' offsets in value from their own key, and
/// `leave_dt`, `arrive_dt` the handles' lengths in seconds (not negative). The two `_dt` rows are
/// empty in a curve without Bezier spans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tangents {
    /// For the span after each key.
    pub leave: Vec<f64>,
    /// For the span before each key.
    pub arrive: Vec<f64>,
    /// Seconds after the key; only with Bezier spans.
    pub leave_dt: Vec<f64>,
    /// Seconds before the key; only with Bezier spans.
    pub arrive_dt: Vec<f64>,
}

/// What a curve does before its first or after its last key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Extrapolation {
    /// The end value.
    #[default]
    Hold,
    /// On along the end's slope. Rotations hold.
    Linear,
    /// The whole curve again, `repeats` times (for ever if `None`), then the end value.
    Cycle {
        /// How often the curve is played again.
        repeats: Option<u32>,
    },
    /// Like `Cycle`, each pass shifted by the difference of the ends. Rotations are not shifted.
    CycleOffset {
        /// How often the curve is played again.
        repeats: Option<u32>,
    },
    /// Like `Cycle`, every other pass backward.
    Mirror {
        /// How often the curve is played again.
        repeats: Option<u32>,
    },
}

/// Everything a curve is made of, unchecked; [`Curve::new`] checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveParts {
    /// What the numbers mean.
    pub kind: ValueKind,
    /// n ≥ 1 finite, strictly increasing times in seconds.
    pub times: Arc<[f64]>,
    /// n rows of the kind's width, finite. Rotations must not be zero; they need not be of unit
    /// length (tangent-based rotations are normalised after evaluation).
    pub values: Vec<f64>,
    /// How each span is filled.
    pub spans: Spans,
    /// Needed if any span is Hermite or Bezier; n rows each.
    pub tangents: Option<Box<Tangents>>,
    /// Before the first key.
    pub before: Extrapolation,
    /// After the last key.
    pub after: Extrapolation,
}

/// Values of one kind at increasing times. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    parts: CurveParts,
}

/// Why a curve was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CurveError {
    /// There must be at least one key.
    #[error("a curve needs at least one key and has none; leave the track out instead")]
    Empty,
    /// Lengths do not fit.
    #[error("{what} has {found} numbers where {keys} keys of {width} need {}", keys * width)]
    Length {
        /// Which array.
        what: &'static str,
        /// Numbers it has.
        found: usize,
        /// Keys of the curve.
        keys: usize,
        /// Numbers a key needs.
        width: usize,
    },
    /// A time is NaN or infinite.
    #[error("the time of key {index} is {time}, not a finite number of seconds")]
    TimeNotFinite {
        /// Key number from 0.
        index: usize,
        /// The time found.
        time: f64,
    },
    /// Times must strictly increase.
    #[error(
        "key {index} is at {time} s but key {} is already at {previous} s; key times must be \
         strictly increasing, so sort the keys and remove one of each duplicate pair",
        index - 1
    )]
    TimesNotIncreasing {
        /// Key number from 0 of the later key.
        index: usize,
        /// Time of the key before.
        previous: f64,
        /// Time found.
        time: f64,
    },
    /// A value or tangent is NaN or infinite.
    #[error("{what} of key {index} (at {time} s) is {value}, not a finite number")]
    NotFinite {
        /// Which array.
        what: &'static str,
        /// Key number from 0.
        index: usize,
        /// Its time.
        time: f64,
        /// The value found.
        value: f64,
    },
    /// A quaternion has no direction.
    #[error("the quaternion of key {index} (at {time} s) is zero and names no rotation")]
    ZeroRotation {
        /// Key number from 0.
        index: usize,
        /// Its time.
        time: f64,
    },
    /// A switch between on and off, or with a span that would blend.
    #[error("the switch of key {index} (at {time} s) is not plainly on (1) or off (0) with a step after it")]
    BadSwitch {
        /// Key number from 0.
        index: usize,
        /// Its time.
        time: f64,
    },
    /// Hermite or Bezier spans without tangents, or a handle that points back in time.
    #[error("the span after key {index} (at {time} s) needs {needs}")]
    Tangent {
        /// Key number from 0.
        index: usize,
        /// Its time.
        time: f64,
        /// What is missing.
        needs: &'static str,
    },
}

impl Curve {
    /// Checks the parts and makes a curve of them.
    ///
    /// # Errors
    /// Names the first key that breaks a rule of [`CurveParts`].
    pub fn new(parts: CurveParts) -> Result<Self, CurveError> {
        let n = parts.times.len();
        let width = parts.kind.width();
        if n == 0 {
            return Err(CurveError::Empty);
        }
        for (index, &time) in parts.times.iter().enumerate() {
            if !time.is_finite() {
                return Err(CurveError::TimeNotFinite { index, time });
            }
            if index > 0 && time <= parts.times[index - 1] {
                return Err(CurveError::TimesNotIncreasing { index, previous: parts.times[index - 1], time });
            }
        }
        let rows = |what: &'static str, row: &[f64], width: usize| {
            if row.len() != n * width {
                return Err(CurveError::Length { what, found: row.len(), keys: n, width });
            }
            match row.iter().position(|v| !v.is_finite()) {
                Some(i) => Err(CurveError::NotFinite {
                    what,
                    index: i / width,
                    time: parts.times[i / width],
                    value: row[i],
                }),
                None => Ok(()),
            }
        };
        rows("the value", &parts.values, width)?;
        if let Spans::PerKey(kinds) = &parts.spans
            && kinds.len() != n
        {
            return Err(CurveError::Length {
                what: "the list of span kinds",
                found: kinds.len(),
                keys: n,
                width: 1,
            });
        }
        if parts.kind == ValueKind::Rotation {
            for (index, q) in parts.values.chunks_exact(4).enumerate() {
                if math::unit(DQuat::from_slice(q)).is_none() {
                    return Err(CurveError::ZeroRotation { index, time: parts.times[index] });
                }
            }
        }
        if parts.kind == ValueKind::Switch {
            for (index, &v) in parts.values.iter().enumerate() {
                let steps = matches!(parts.spans.at(index), SpanKind::Step | SpanKind::StepNext);
                if !steps || (v != 0.0 && v != 1.0) {
                    return Err(CurveError::BadSwitch { index, time: parts.times[index] });
                }
            }
        }
        let cubic = (0..n.saturating_sub(1))
            .find(|&i| matches!(parts.spans.at(i), SpanKind::Hermite | SpanKind::Bezier));
        let bezier = (0..n.saturating_sub(1)).find(|&i| parts.spans.at(i) == SpanKind::Bezier);
        match (&parts.tangents, cubic) {
            (None, Some(index)) => {
                return Err(CurveError::Tangent { index, time: parts.times[index], needs: "tangents" });
            }
            (Some(t), _) => {
                rows("the leaving tangent", &t.leave, width)?;
                rows("the arriving tangent", &t.arrive, width)?;
                if !(t.leave_dt.is_empty() && t.arrive_dt.is_empty()) || bezier.is_some() {
                    for (what, row) in [
                        ("the leaving handle's time", &t.leave_dt),
                        ("the arriving handle's time", &t.arrive_dt),
                    ] {
                        rows(what, row, width)?;
                        if let Some(i) = row.iter().position(|&v| v < 0.0) {
                            let index = i / width;
                            let needs = "handles that do not point back in time";
                            return Err(CurveError::Tangent { index, time: parts.times[index], needs });
                        }
                    }
                }
            }
            (None, None) => {}
        }
        Ok(Self { parts })
    }

    /// A curve of straight spans through `values` (rows of the kind's width) at `times`.
    ///
    /// # Errors
    /// As [`Curve::new`].
    pub fn linear(
        kind: ValueKind,
        times: impl Into<Arc<[f64]>>,
        values: Vec<f64>,
    ) -> Result<Self, CurveError> {
        Self::uniform(kind, times, values, SpanKind::Linear)
    }

    /// A curve of steps.
    ///
    /// # Errors
    /// As [`Curve::new`].
    pub fn step(kind: ValueKind, times: impl Into<Arc<[f64]>>, values: Vec<f64>) -> Result<Self, CurveError> {
        Self::uniform(kind, times, values, SpanKind::Step)
    }

    fn uniform(
        kind: ValueKind,
        times: impl Into<Arc<[f64]>>,
        values: Vec<f64>,
        span: SpanKind,
    ) -> Result<Self, CurveError> {
        Self::new(CurveParts {
            kind,
            times: times.into(),
            values,
            spans: Spans::Uniform(span),
            tangents: None,
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        })
    }

    /// A curve of Hermite spans with slopes `leave` and `arrive` per second, rows like `values`.
    ///
    /// # Errors
    /// As [`Curve::new`].
    pub fn hermite(
        kind: ValueKind,
        times: impl Into<Arc<[f64]>>,
        values: Vec<f64>,
        leave: Vec<f64>,
        arrive: Vec<f64>,
    ) -> Result<Self, CurveError> {
        Self::new(CurveParts {
            kind,
            times: times.into(),
            values,
            spans: Spans::Uniform(SpanKind::Hermite),
            tangents: Some(Box::new(Tangents { leave, arrive, leave_dt: Vec::new(), arrive_dt: Vec::new() })),
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        })
    }

    /// The same curve with other behaviour outside its keys.
    pub fn with_extrapolation(mut self, before: Extrapolation, after: Extrapolation) -> Self {
        self.parts.before = before;
        self.parts.after = after;
        self
    }

    /// What it is made of.
    pub fn parts(&self) -> &CurveParts {
        &self.parts
    }

    /// Takes it apart, to change it and check it again.
    pub fn into_parts(self) -> CurveParts {
        self.parts
    }

    /// What the numbers mean.
    pub fn kind(&self) -> ValueKind {
        self.parts.kind
    }

    /// Numbers per key.
    pub fn width(&self) -> usize {
        self.parts.kind.width()
    }

    /// Number of keys, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a curve is never empty")]
    pub fn len(&self) -> usize {
        self.parts.times.len()
    }

    /// Key times in seconds, strictly increasing.
    pub fn times(&self) -> &Arc<[f64]> {
        &self.parts.times
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.parts.values
    }

    /// The value of key `index`.
    pub fn value(&self, index: usize) -> &[f64] {
        let w = self.width();
        &self.parts.values[index * w..(index + 1) * w]
    }

    /// The key times at which it may jump, a time twice where two steps meet: both ends of every step.
    pub fn jump_times(&self) -> impl Iterator<Item = f64> + '_ {
        let steps = |i: &usize| matches!(self.span(*i), SpanKind::Step | SpanKind::StepNext);
        (0..self.len().saturating_sub(1)).filter(steps).flat_map(|i| [self.times()[i], self.times()[i + 1]])
    }

    /// How the span after key `index` is filled.
    pub fn span(&self, index: usize) -> SpanKind {
        self.parts.spans.at(index)
    }

    /// Time of the first key, seconds.
    pub fn start(&self) -> f64 {
        self.parts.times[0]
    }

    /// Time of the last key, seconds.
    pub fn end(&self) -> f64 {
        self.parts.times[self.len() - 1]
    }

    /// Writes the value at `time` seconds into `out` (the kind's width). No allocation;
    /// a binary search for the span. A rotation comes out of unit length.
    ///
    /// # Panics
    /// If `out` is not as long as a key is wide.
    pub fn eval(&self, time: f64, out: &mut [f64]) {
        let mut hint = 0;
        self.eval_near(time, &mut hint, out);
    }

    /// Like [`eval`](Self::eval), looking first at the span `hint` found last time (playback).
    pub fn eval_near(&self, time: f64, hint: &mut usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.width(), "the output holds one key");
        let (time, passes) = self.fold_time(time);
        let n = self.len();
        if time < self.start() {
            self.end_value(0, time - self.start(), out);
        } else if time >= self.end() {
            self.end_value(n - 1, time - self.end(), out);
        } else {
            self.eval_span(self.find(time, hint), time, out);
        }
        if passes != 0.0 && self.parts.kind != ValueKind::Rotation && self.parts.kind != ValueKind::Switch {
            let (first, last) = (self.value(0), self.value(n - 1));
            for c in 0..out.len() {
                out[c] += passes * (last[c] - first[c]);
            }
        }
    }

    /// Writes the derivative per second at `time` into `out`; at a corner or jump that of the
    /// span that follows. For a rotation it is the rate of the four quaternion components of the
    /// normalised curve.
    ///
    /// # Panics
    /// If `out` is not as long as a key is wide.
    pub fn derivative(&self, time: f64, out: &mut [f64]) {
        assert_eq!(out.len(), self.width(), "the output holds one key");
        let (inside, _) = self.fold_time(time);
        let n = self.len();
        out.fill(0.0);
        if inside < self.start() || inside >= self.end() {
            let before = inside < self.start();
            let rule = if before { self.parts.before } else { self.parts.after };
            if rule == Extrapolation::Linear {
                self.end_slope(if before { 0 } else { n - 1 }, out);
            }
            return;
        }
        let mut hint = 0;
        let i = self.find(inside, &mut hint);
        self.span_slope(i, inside, out);
        let backward = match if time < self.start() { self.parts.before } else { self.parts.after } {
            Extrapolation::Mirror { .. } if time < self.start() || time >= self.end() => {
                let pass = ((time - self.start()) / (self.end() - self.start())).floor();
                pass.rem_euclid(2.0) == 1.0
            }
            _ => false,
        };
        if backward {
            for v in out {
                *v = -*v;
            }
        }
    }

    /// The value at `time` of a curve one number wide.
    pub fn scalar_at(&self, time: f64) -> f64 {
        let mut out = [0.0];
        self.eval(time, &mut out);
        out[0]
    }

    /// The unit quaternion at `time` of a rotation curve.
    pub fn rotation_at(&self, time: f64) -> DQuat {
        let mut out = [0.0; 4];
        self.eval(time, &mut out);
        DQuat::from_array(out)
    }

    /// The span that holds `time`, which lies in `start()..end()`.
    fn find(&self, time: f64, hint: &mut usize) -> usize {
        let times = &self.parts.times;
        let n = times.len();
        for i in [*hint, *hint + 1] {
            if i + 1 < n && times[i] <= time && time < times[i + 1] {
                *hint = i;
                return i;
            }
        }
        *hint = times.partition_point(|&t| t <= time).saturating_sub(1).min(n.saturating_sub(2));
        *hint
    }

    /// Brings a time outside the keys into them where the curve cycles; the second number is by
    /// how many passes the value is to be shifted.
    fn fold_time(&self, time: f64) -> (f64, f64) {
        let (start, end) = (self.start(), self.end());
        let rule = if time < start {
            self.parts.before
        } else if time > end {
            self.parts.after
        } else {
            return (time, 0.0);
        };
        let (repeats, offset, mirror) = match rule {
            Extrapolation::Hold | Extrapolation::Linear => return (time, 0.0),
            Extrapolation::Cycle { repeats } => (repeats, false, false),
            Extrapolation::CycleOffset { repeats } => (repeats, true, false),
            Extrapolation::Mirror { repeats } => (repeats, false, true),
        };
        let length = end - start;
        if length <= 0.0 {
            return (time.clamp(start, end), 0.0);
        }
        let beyond = if time < start { start - time } else { time - end };
        // `pass` counts the repetitions from 1; the last one ends exactly at its far end.
        let mut pass = (beyond / length).floor() + 1.0;
        let mut into = beyond - (pass - 1.0) * length;
        if let Some(most) = repeats
            && pass > f64::from(most)
        {
            pass = f64::from(most);
            into = length;
            if most == 0 {
                return (time.clamp(start, end), 0.0);
            }
        }
        let forward_from_near_end = mirror && pass.rem_euclid(2.0) == 1.0;
        // Counting away from the curve, a plain pass is entered at the far end.
        let at = if (time < start) != forward_from_near_end { end - into } else { start + into };
        let shift = if offset { if time < start { -pass } else { pass } } else { 0.0 };
        (at.clamp(start, end), shift)
    }

    fn end_value(&self, key: usize, beyond: f64, out: &mut [f64]) {
        out.copy_from_slice(self.value(key));
        let rule = if beyond < 0.0 { self.parts.before } else { self.parts.after };
        match self.parts.kind {
            ValueKind::Rotation => normalise(out),
            ValueKind::Switch => {}
            _ if rule == Extrapolation::Linear && beyond != 0.0 => {
                let value = self.value(key);
                self.end_slope(key, out);
                for c in 0..out.len() {
                    out[c] = value[c] + beyond * out[c];
                }
            }
            _ => {}
        }
    }

    /// Slope at the first or last key, from inside; 0 for a single key and for rotations.
    fn end_slope(&self, key: usize, out: &mut [f64]) {
        out.fill(0.0);
        if self.len() < 2 || self.parts.kind == ValueKind::Rotation {
            return;
        }
        let span = if key == 0 { 0 } else { key - 1 };
        self.span_slope(span, self.parts.times[key], out);
    }

    /// Component `c` of the Hermite span after key `i`, as a polynomial in seconds after the key.
    fn cubic(&self, i: usize, c: usize) -> Cubic {
        let w = self.width();
        let t = self.parts.tangents.as_ref().expect("checked in Curve::new");
        let h = self.parts.times[i + 1] - self.parts.times[i];
        let (p0, p1) = (self.parts.values[i * w + c], self.parts.values[(i + 1) * w + c]);
        Cubic::hermite(h, p0, p1, t.leave[i * w + c], t.arrive[(i + 1) * w + c])
    }

    /// Component `c` of the Bezier span after key `i`, in seconds after the key.
    fn bezier(&self, i: usize, c: usize) -> TimeBezier {
        let w = self.width();
        let t = self.parts.tangents.as_ref().expect("checked in Curve::new");
        let h = self.parts.times[i + 1] - self.parts.times[i];
        let (k0, k1) = (i * w + c, (i + 1) * w + c);
        // The model keeps the arriving handle as its offset from the key; the span wants the rise up to it.
        TimeBezier::from_free_lengths(
            (0.0, self.parts.values[k0]),
            (t.leave_dt[k0], t.leave[k0]),
            (t.arrive_dt[k1], -t.arrive[k1]),
            h,
            self.parts.values[k1],
        )
    }

    fn eval_span(&self, i: usize, time: f64, out: &mut [f64]) {
        let w = self.width();
        let (t0, t1) = (self.parts.times[i], self.parts.times[i + 1]);
        let (a, b) = (self.value(i), self.value(i + 1));
        let (h, s) = (t1 - t0, time - t0);
        match self.parts.spans.at(i) {
            SpanKind::Step => out.copy_from_slice(a),
            SpanKind::StepNext => out.copy_from_slice(if s == 0.0 { a } else { b }),
            SpanKind::Linear if self.parts.kind == ValueKind::Rotation => {
                let (qa, qb) = (unit_or_identity(a), unit_or_identity(b));
                math::slerp(qa, qb, s / h).write_to_slice(out);
                return;
            }
            SpanKind::Linear => {
                let u = s / h;
                for c in 0..w {
                    // Exact at both keys and between equal values, which a + u(b − a) is not.
                    out[c] = if a[c] == b[c] { a[c] } else { a[c] * (1.0 - u) + b[c] * u };
                }
            }
            SpanKind::Hermite => {
                for c in 0..w {
                    out[c] = self.cubic(i, c).value(s);
                }
            }
            SpanKind::Bezier => {
                for c in 0..w {
                    out[c] = self.bezier(i, c).value(s);
                }
            }
        }
        if self.parts.kind == ValueKind::Rotation {
            normalise(out);
        }
    }

    fn span_slope(&self, i: usize, time: f64, out: &mut [f64]) {
        let w = self.width();
        let (t0, t1) = (self.parts.times[i], self.parts.times[i + 1]);
        let (a, b) = (self.value(i), self.value(i + 1));
        let (h, s) = (t1 - t0, time - t0);
        match self.parts.spans.at(i) {
            SpanKind::Step | SpanKind::StepNext => out.fill(0.0),
            SpanKind::Linear if self.parts.kind == ValueKind::Rotation => {
                let (qa, qb) = (unit_or_identity(a), unit_or_identity(b));
                (math::slerp_derivative(qa, qb, s / h) / h).write_to_slice(out);
                return;
            }
            SpanKind::Linear => {
                for c in 0..w {
                    out[c] = (b[c] - a[c]) / h;
                }
            }
            SpanKind::Hermite => {
                for c in 0..w {
                    out[c] = self.cubic(i, c).velocity(s);
                }
            }
            SpanKind::Bezier => {
                for c in 0..w {
                    let slope = self.bezier(i, c).velocity(s);
                    // Upright (a handle without time): the chord's slope in place of an infinity.
                    out[c] = if slope.is_finite() { slope } else { (b[c] - a[c]) / h };
                }
            }
        }
        if self.parts.kind == ValueKind::Rotation {
            // d(q/|q|) = (q' − q̂ (q̂·q')) / |q|, with q the raw value of the cubic.
            let mut raw = [0.0; 4];
            for (c, r) in raw.iter_mut().enumerate() {
                *r = match self.parts.spans.at(i) {
                    SpanKind::Hermite => self.cubic(i, c).value(s),
                    SpanKind::Bezier => self.bezier(i, c).value(s),
                    _ => return,
                };
            }
            let q = DQuat::from_array(raw);
            let length = q.length();
            if length < 1e-30 {
                out.fill(0.0);
                return;
            }
            let (q, d) = (q / length, DQuat::from_slice(out));
            ((d - q * q.dot(d)) / length).write_to_slice(out);
        }
    }
}

fn unit_or_identity(q: &[f64]) -> DQuat {
    // Never the identity for a key (checked); a cubic may pass through zero between keys.
    math::unit(DQuat::from_slice(q)).unwrap_or(DQuat::IDENTITY)
}

fn normalise(q: &mut [f64]) {
    unit_or_identity(q).write_to_slice(q);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Curve {
        Curve::linear(ValueKind::Scalar, vec![0.0, 1.0, 3.0], vec![0.0, 2.0, 4.0]).unwrap()
    }

    #[test]
    fn linear_spans_blend_and_ends_hold() {
        let c = ramp();
        for (t, v) in [(-5.0, 0.0), (0.0, 0.0), (0.5, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0), (9.0, 4.0)] {
            assert_eq!(c.scalar_at(t), v, "at {t}");
        }
    }

    #[test]
    fn a_step_shows_only_its_own_values() {
        let c = Curve::step(ValueKind::Scalar, vec![0.0, 1.0], vec![1.0, 0.0]).unwrap();
        assert_eq!(c.scalar_at(0.999_999), 1.0);
        assert_eq!(c.scalar_at(1.0), 0.0);
    }

    #[test]
    fn a_step_to_the_next_value_leaves_a_key_its_own() {
        let parts = Curve::step(ValueKind::Scalar, vec![0.0, 1.0, 2.0], vec![1.0, 5.0, 7.0]).unwrap();
        let parts = CurveParts { spans: Spans::Uniform(SpanKind::StepNext), ..parts.into_parts() };
        let c = Curve::new(parts).unwrap();
        let at = |t| c.scalar_at(t);
        assert_eq!([at(0.0), at(1e-9), at(1.0), at(1.5), at(2.0)], [1.0, 5.0, 5.0, 7.0, 7.0]);
    }

    #[test]
    fn errors_name_the_key() {
        let e = Curve::linear(ValueKind::Scalar, vec![0.0, 2.0, 1.0], vec![0.0; 3]).unwrap_err();
        assert!(e.to_string().contains("key 2") && e.to_string().contains("increasing"), "{e}");
        let e = Curve::linear(ValueKind::Scalar, vec![0.0, f64::NAN], vec![0.0; 2]).unwrap_err();
        assert!(e.to_string().contains("key 1"));
        let e = Curve::linear(ValueKind::Scalar, vec![0.0, 1.0], vec![0.0, f64::INFINITY]).unwrap_err();
        assert!(e.to_string().contains("finite"));
        let e = Curve::linear(ValueKind::Weights(2), vec![0.0, 1.0, 2.0], vec![0.0; 7]).unwrap_err();
        assert!(e.to_string().contains('6') && e.to_string().contains('7'));
        assert_eq!(Curve::linear(ValueKind::Scalar, vec![], vec![]).unwrap_err(), CurveError::Empty);
        assert!(Curve::linear(ValueKind::Rotation, vec![0.0], vec![0.0; 4]).is_err());
        assert!(Curve::linear(ValueKind::Switch, vec![0.0], vec![1.0]).is_err());
        assert!(Curve::step(ValueKind::Switch, vec![0.0], vec![0.5]).is_err());
    }

    #[test]
    fn cycles_repeat_shift_and_mirror() {
        let at = |e: Extrapolation, t: f64| ramp().with_extrapolation(e, e).scalar_at(t);
        let cycle = Extrapolation::Cycle { repeats: None };
        assert_eq!(at(cycle, 3.5), 1.0);
        assert_eq!(at(cycle, -1.0), 3.0);
        let offset = Extrapolation::CycleOffset { repeats: None };
        assert_eq!(at(offset, 3.5), 5.0);
        assert_eq!(at(offset, -1.0), -1.0);
        let mirror = Extrapolation::Mirror { repeats: None };
        assert_eq!(at(mirror, 4.0), 3.0);
        assert_eq!(at(mirror, 6.5), 1.0);
        assert_eq!(at(mirror, -0.5), 1.0);
        let twice = Extrapolation::Cycle { repeats: Some(2) };
        assert_eq!(at(twice, 8.5), 3.5);
        assert_eq!(at(twice, 50.0), 4.0);
        assert_eq!(at(Extrapolation::Linear, 5.0), 6.0);
        assert_eq!(at(Extrapolation::Linear, -1.0), -2.0);
    }

    #[test]
    fn a_hermite_rotation_is_normalised_and_its_rate_is_its_slope() {
        let c = Curve::hermite(
            ValueKind::Rotation,
            vec![0.0, 2.0],
            vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.8, 0.0, 0.6],
            vec![0.3, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0],
            vec![0.0; 8],
        )
        .unwrap();
        let mut rate = [0.0; 4];
        c.derivative(0.7, &mut rate);
        let h = 1e-6;
        let slope = (c.rotation_at(0.7 + h) - c.rotation_at(0.7 - h)) / (2.0 * h);
        assert!((c.rotation_at(0.7).length() - 1.0).abs() < 1e-15);
        assert!((slope - DQuat::from_array(rate)).length() < 1e-8);
    }

    #[test]
    fn a_cursor_sees_what_a_search_sees() {
        let c = ramp();
        let mut hint = 0;
        for i in 0..40 {
            let t = f64::from(i) * 0.1 - 0.5;
            let mut out = [0.0];
            c.eval_near(t, &mut hint, &mut out);
            assert_eq!(out[0], c.scalar_at(t));
        }
    }
}
