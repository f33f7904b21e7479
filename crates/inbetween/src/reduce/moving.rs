//! A node's track while it is being reduced: its samples, which of them are keys now, and the curve through
//! those keys.
//!
//! The keys are a linked list over the samples, so that one can be taken out or put back in constant time. A
//! key's value may be moved away from its sample, and for cubic keys has tangents, so the curve is more than
//! a choice of samples.

use glam::{DQuat, DVec3};

use super::rotation;
use crate::curve::{Curve, CurveError, ValueKind};
use crate::skeleton::Transform;

/// Which part of a node's transform a track drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Translation,
    Rotation,
    Scale,
}

/// A value of any part: a quaternion, or a vector with a zero behind it.
pub type Value = [f64; 4];

/// What is between two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// A straight line, or a slerp the short way.
    Line,
    /// A Hermite segment; a rotation's is normalised.
    Cubic,
}

/// No key: the end of the linked list.
pub const NONE: usize = usize::MAX;

/// One track of one node.
#[derive(Clone)]
pub struct Moving {
    /// Index of the track in its clip.
    pub track: usize,
    /// Index of the node.
    pub node: usize,
    pub part: Part,
    pub between: Between,
    /// Seconds; strictly increasing.
    pub times: Vec<f64>,
    /// What was sampled there. Rotations are unit quaternions, each on the side of the one before.
    pub samples: Vec<Value>,
    /// The values of the keys, by sample.
    pub values: Vec<Value>,
    /// Slopes behind and before the keys, per second, by sample; empty for lines.
    pub leave: Vec<Value>,
    pub arrive: Vec<Value>,
    /// The slope of the samples, for a key that is to be smooth; empty for lines.
    pub smooth: Vec<Value>,
    /// Neighbouring keys, by sample; only those of keys mean anything.
    pub next: Vec<usize>,
    pub previous: Vec<usize>,
    /// By sample, the part of the bound that the trial to take the key out is known to need, as far as the last
    /// one told. Trying it under less would find nothing.
    pub needs: Vec<f64>,
    /// Keys there are.
    pub count: usize,
    /// Index in the grid of all times, by sample.
    pub grid: Vec<usize>,
    /// Largest error the track's own tolerance allows: a length or an angle in radians.
    pub tolerance: f64,
}

impl Moving {
    /// Makes keys of the samples `kept` (the first and the last among them) at the samples' own values.
    pub fn keep(&mut self, kept: &[usize]) {
        let n = self.times.len();
        self.next = vec![NONE; n];
        self.previous = vec![NONE; n];
        self.values.clone_from(&self.samples);
        for pair in kept.windows(2) {
            self.next[pair[0]] = pair[1];
            self.previous[pair[1]] = pair[0];
        }
        self.needs = vec![0.0; n];
        self.count = kept.len();
    }

    /// Gives every key the slopes of the straight spans beside it, so that the cubic is the straight curve.
    pub fn chords(&mut self) {
        let n = self.times.len();
        self.leave = vec![[0.0; 4]; n];
        self.arrive = vec![[0.0; 4]; n];
        let keys = self.keys();
        for pair in keys.windows(2) {
            let (a, c) = (pair[0], pair[1]);
            let h = self.times[c] - self.times[a];
            if self.part == Part::Rotation {
                // d/dt of a·exp(t·w/h) is half of it times w/h.
                let w = rotation::between(self.values[a], self.values[c]).map(|x| x / (2.0 * h));
                // On the side of its own key, which is the side a slerp the short way arrives on.
                self.leave[a] = rotation::mul(self.values[a], [w[0], w[1], w[2], 0.0]);
                self.arrive[c] = rotation::mul(self.values[c], [w[0], w[1], w[2], 0.0]);
            } else {
                let slope = std::array::from_fn(|k| (self.values[c][k] - self.values[a][k]) / h);
                self.leave[a] = slope;
                self.arrive[c] = slope;
            }
        }
    }

    /// The curve through the keys.
    pub fn curve(&self) -> Result<Curve, CurveError> {
        let keys = self.keys();
        let (kind, width) = self.kind();
        let rows =
            |row: &[Value]| -> Vec<f64> { keys.iter().flat_map(|&k| row[k][..width].to_vec()).collect() };
        let times: Vec<f64> = keys.iter().map(|&k| self.times[k]).collect();
        match self.between {
            Between::Line => Curve::linear(kind, times, rows(&self.values)),
            Between::Cubic => {
                Curve::hermite(kind, times, rows(&self.values), rows(&self.leave), rows(&self.arrive))
            }
        }
    }

    /// A curve of the first key alone.
    pub fn first_key(&self) -> Result<Curve, CurveError> {
        let (kind, width) = self.kind();
        Curve::linear(kind, vec![self.times[0]], self.values[0][..width].to_vec())
    }

    fn kind(&self) -> (ValueKind, usize) {
        if self.part == Part::Rotation { (ValueKind::Rotation, 4) } else { (ValueKind::Vector(3), 3) }
    }

    /// The samples that are keys, in order.
    pub fn keys(&self) -> Vec<usize> {
        let mut keys = Vec::with_capacity(self.count);
        let mut at = 0;
        while at != NONE {
            keys.push(at);
            at = self.next[at];
        }
        keys
    }

    /// The curve from key `a` to key `c` at `time`, between them.
    pub fn span(&self, a: usize, c: usize) -> Span {
        Span::new(self, a, c)
    }

    /// The curve at increasing `times` from `from` on; writes one value a time.
    pub fn evaluate(&self, times: &[f64], mut write: impl FnMut(usize, Value)) {
        let last = self.times.len() - 1;
        let mut a = 0;
        let mut span = None;
        for (index, &time) in times.iter().enumerate() {
            if time <= self.times[0] || self.count == 1 {
                write(index, self.values[0]);
                continue;
            }
            if time >= self.times[last] {
                write(index, self.values[last]);
                continue;
            }
            while self.times[self.next[a]] <= time {
                a = self.next[a];
                span = None;
            }
            if self.times[a] == time {
                write(index, self.values[a]);
            } else {
                let span = span.get_or_insert_with(|| self.span(a, self.next[a]));
                write(index, span.at(time));
            }
        }
    }
}

/// One span of a track, ready to be evaluated.
pub struct Span {
    rotation: bool,
    start: f64,
    length: f64,
    a: Value,
    c: Value,
    kind: SpanKind,
}

enum SpanKind {
    Line,
    /// The rotation vector from `a` to `c`.
    Slerp([f64; 3]),
    /// Tangents times the span's length.
    Cubic(Value, Value),
}

impl Span {
    fn new(track: &Moving, a: usize, c: usize) -> Self {
        let length = track.times[c] - track.times[a];
        let (from, to) = (track.values[a], track.values[c]);
        let kind = match (track.between, track.part) {
            (Between::Line, Part::Rotation) => SpanKind::Slerp(rotation::between(from, to)),
            (Between::Line, _) => SpanKind::Line,
            (Between::Cubic, _) => {
                SpanKind::Cubic(track.leave[a].map(|x| x * length), track.arrive[c].map(|x| x * length))
            }
        };
        Self { rotation: track.part == Part::Rotation, start: track.times[a], length, a: from, c: to, kind }
    }

    /// The value at a time in the span.
    #[inline]
    pub fn at(&self, time: f64) -> Value {
        let u = (time - self.start) / self.length;
        let v = 1.0 - u;
        match &self.kind {
            SpanKind::Line => std::array::from_fn(|k| self.a[k] * v + self.c[k] * u),
            SpanKind::Slerp(w) => rotation::mul(self.a, rotation::exp(w.map(|x| x * u))),
            SpanKind::Cubic(m, n) => {
                let (p, q) = (v * v * (1.0 + 2.0 * u), u * u * (3.0 - 2.0 * u));
                let (r, s) = (u * v * v, -u * u * v);
                let y: Value = std::array::from_fn(|k| p * self.a[k] + q * self.c[k] + r * m[k] + s * n[k]);
                if self.rotation { unit(y) } else { y }
            }
        }
    }
}

/// `q` at unit length; the identity where it has none.
pub fn unit(q: Value) -> Value {
    let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 1e-30 { q.map(|x| x / length) } else { [0.0, 0.0, 0.0, 1.0] }
}

/// How far two values of a part lie apart: an angle in radians, or a length.
#[inline]
pub fn apart(part: Part, a: Value, b: Value) -> f64 {
    match part {
        Part::Rotation => rotation::angle(a, b),
        _ => {
            let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
            rotation::dot(d, d).sqrt()
        }
    }
}

/// Puts a value into the part of a transform.
#[inline]
pub fn put(transform: &mut Transform, part: Part, value: Value) {
    match part {
        Part::Translation => transform.translation = DVec3::new(value[0], value[1], value[2]),
        Part::Rotation => transform.rotation = DQuat::from_array(value),
        Part::Scale => transform.scale = DVec3::new(value[0], value[1], value[2]),
    }
}
