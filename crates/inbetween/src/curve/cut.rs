//! Cutting a curve at two times, exactly: the piece has a key at each cut and is, between
//! them, the very same curve.
//!
//! A cut through a span splits it: a line stays a line, a Hermite span takes value and slope of
//! the cut, a Bezier span is halved by de Casteljau. Rotations on cubic spans are split before
//! they are normalised, so the value of such a new key may be off unit length.

use glam::DQuat;

use super::{Curve, CurveParts, Extrapolation, SpanKind, Spans, Tangents, ValueKind};
use crate::math;

/// One key with all that belongs to it, while a curve is taken apart.
#[derive(Clone, Debug)]
struct Key {
    time: f64,
    value: Vec<f64>,
    span: SpanKind,
    leave: Vec<f64>,
    arrive: Vec<f64>,
    leave_dt: Vec<f64>,
    arrive_dt: Vec<f64>,
}

impl Curve {
    /// The piece from `start` to `end` seconds with its first time moved to `start − shift`.
    ///
    /// Where the curve holds an end value outside its keys, the piece does too, without a key it
    /// does not need. A curve that goes on by another rule (cycles, slopes) outside its keys and
    /// is cut there keeps all its keys, so that the rule still has what it repeats.
    ///
    /// # Panics
    /// If `start` > `end` or either is not finite.
    pub fn cut(&self, start: f64, end: f64, shift: f64) -> Self {
        assert!(start <= end && start.is_finite() && end.is_finite(), "a range to cut out");
        let plain = |rule, outside: bool| rule == Extrapolation::Hold || !outside;
        if !plain(self.parts.before, start < self.start()) || !plain(self.parts.after, end > self.end()) {
            return self.shifted(-shift);
        }
        let (first, last) = (self.start(), self.end());
        let mut keys: Vec<Key> = Vec::new();
        if end <= first || start >= last || start == end {
            let mut value = vec![0.0; self.width()];
            self.eval(start.clamp(first, last), &mut value);
            let mut key = self.key(0);
            key.time = start;
            key.value = value;
            keys.push(key);
        } else {
            let (from, to) = (start.max(first), end.min(last));
            let inside = (0..self.len()).filter(|&i| self.parts.times[i] > from && self.parts.times[i] < to);
            keys.push(self.key_at(from));
            keys.extend(inside.map(|i| self.key(i)));
            keys.push(self.key_at(to));
            self.shorten_handles(&mut keys);
        }
        let curve = self.rebuilt(keys, Extrapolation::Hold, Extrapolation::Hold);
        curve.shifted(-shift)
    }

    /// The same curve `by` seconds later.
    pub fn shifted(&self, by: f64) -> Self {
        if by == 0.0 {
            return self.clone();
        }
        let mut parts = self.parts.clone();
        let times: Vec<f64> = parts.times.iter().map(|t| t + by).collect();
        // Two keys may fall together only when they were within rounding of each other.
        if times.windows(2).all(|w| w[0] < w[1]) {
            parts.times = times.into();
            return Self { parts };
        }
        let mut keys: Vec<Key> = (0..self.len()).map(|i| self.key(i)).collect();
        for key in &mut keys {
            key.time += by;
        }
        keys.dedup_by(|b, a| b.time <= a.time);
        self.rebuilt(keys, self.parts.before, self.parts.after)
    }

    fn key(&self, i: usize) -> Key {
        let w = self.width();
        let row =
            |rows: &[f64]| if rows.is_empty() { vec![0.0; w] } else { rows[i * w..(i + 1) * w].to_vec() };
        let none = Tangents::default();
        let t = self.parts.tangents.as_deref().unwrap_or(&none);
        Key {
            time: self.parts.times[i],
            value: self.value(i).to_vec(),
            span: self.span(i),
            leave: row(&t.leave),
            arrive: row(&t.arrive),
            leave_dt: row(&t.leave_dt),
            arrive_dt: row(&t.arrive_dt),
        }
    }

    /// The key at `time`, made if there is none; Bezier handles come in `shorten_handles`.
    fn key_at(&self, time: f64) -> Key {
        if let Ok(i) = self.parts.times.binary_search_by(|t| t.total_cmp(&time)) {
            return self.key(i);
        }
        let mut hint = 0;
        let i = self.find(time, &mut hint);
        let mut key = self.key(i);
        key.time = time;
        let s = time - self.parts.times[i];
        let (a, b) = (self.value(i), self.value(i + 1));
        match key.span {
            SpanKind::Step => {}
            SpanKind::StepNext => key.value = b.to_vec(),
            SpanKind::Linear if self.parts.kind == ValueKind::Rotation => {
                let mut q = [0.0; 4];
                self.eval(time, &mut q);
                // On the side of the key before, so that the sign does not flip on the way.
                if DQuat::from_array(q).dot(DQuat::from_slice(a)) < 0.0 {
                    q = q.map(|v| -v);
                }
                key.value = q.to_vec();
            }
            SpanKind::Linear => self.eval(time, &mut key.value),
            SpanKind::Hermite => {
                for c in 0..self.width() {
                    let cubic = self.cubic(i, c);
                    (key.value[c], key.leave[c]) = (cubic.value(s), cubic.velocity(s));
                }
                key.arrive.clone_from(&key.leave);
            }
            SpanKind::Bezier => {
                for c in 0..self.width() {
                    key.value[c] = self.bezier(i, c).value(s);
                }
            }
        }
        key
    }

    /// The handles of every Bezier span that was cut, at both its ends.
    fn shorten_handles(&self, keys: &mut [Key]) {
        let n = keys.len();
        for pair in 0..n - 1 {
            if keys[pair].span != SpanKind::Bezier {
                continue;
            }
            let (from, to) = (keys[pair].time, keys[pair + 1].time);
            let mut hint = 0;
            let i = self.find(from, &mut hint);
            let (t0, t1) = (self.parts.times[i], self.parts.times[i + 1]);
            if from == t0 && to == t1 {
                continue;
            }
            for c in 0..self.width() {
                let (leave, arrive) = self.bezier(i, c).piece(from - t0, to - t0);
                (keys[pair].leave_dt[c], keys[pair].leave[c]) = leave;
                (keys[pair + 1].arrive_dt[c], keys[pair + 1].arrive[c]) = (arrive.0, -arrive.1);
            }
        }
    }

    fn rebuilt(&self, keys: Vec<Key>, before: Extrapolation, after: Extrapolation) -> Self {
        let spans = match &self.parts.spans {
            Spans::Uniform(kind) => Spans::Uniform(*kind),
            Spans::PerKey(_) => Spans::PerKey(keys.iter().map(|k| k.span).collect()),
        };
        let tangents = self.parts.tangents.as_ref().map(|old| {
            let join = |f: fn(&Key) -> &Vec<f64>, used: bool| -> Vec<f64> {
                if used { keys.iter().flat_map(f).copied().collect() } else { Vec::new() }
            };
            let timed = !old.leave_dt.is_empty();
            Box::new(Tangents {
                leave: join(|k| &k.leave, true),
                arrive: join(|k| &k.arrive, true),
                leave_dt: join(|k| &k.leave_dt, timed),
                arrive_dt: join(|k| &k.arrive_dt, timed),
            })
        });
        Self::new(CurveParts {
            kind: self.parts.kind,
            times: keys.iter().map(|k| k.time).collect::<Vec<_>>().into(),
            values: keys.iter().flat_map(|k| k.value.iter().copied()).collect(),
            spans,
            tangents,
            before,
            after,
        })
        .expect("a piece of a curve is a curve")
    }

    /// The same curve with every value, and every tangent with it, multiplied from the left by
    /// the unit quaternion `q`; only for rotations. Exact, because the product is linear.
    pub(crate) fn turned(&self, q: DQuat) -> Self {
        let mut parts = self.parts.clone();
        let turn = |rows: &mut Vec<f64>| {
            for row in rows.chunks_exact_mut(4) {
                (q * DQuat::from_slice(row)).write_to_slice(row);
            }
        };
        turn(&mut parts.values);
        if let Some(t) = &mut parts.tangents {
            turn(&mut t.leave);
            turn(&mut t.arrive);
        }
        Self { parts }
    }

    /// The same curve with `add` added to every value, each component multiplied by `times`
    /// first (tangents too). Not for rotations.
    pub(crate) fn affine(&self, times: &[f64], add: &[f64]) -> Self {
        let w = self.width();
        let mut parts = self.parts.clone();
        for row in parts.values.chunks_exact_mut(w) {
            for c in 0..w {
                row[c] = row[c] * times[c] + add[c];
            }
        }
        if let Some(t) = &mut parts.tangents {
            for row in t.leave.chunks_exact_mut(w).chain(t.arrive.chunks_exact_mut(w)) {
                for c in 0..w {
                    row[c] *= times[c];
                }
            }
        }
        Self { parts }
    }
}

/// The quaternion that takes `reference` to the identity.
pub(crate) fn undo(reference: &[f64]) -> DQuat {
    math::unit(DQuat::from_slice(reference)).unwrap_or(DQuat::IDENTITY).conjugate()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(curve: &Curve) {
        for (start, end) in
            [(0.3, 2.1), (-1.0, 0.5), (0.9, 1.1), (1.0, 2.0), (2.5, 9.0), (1.2, 1.2), (5.0, 6.0)]
        {
            let piece = curve.cut(start, end, start);
            let w = curve.width();
            let (mut a, mut b) = (vec![0.0; w], vec![0.0; w]);
            for k in 0..=40 {
                let t = (end - start) * f64::from(k) / 40.0;
                // Beside a jump the two clocks' rounding would decide.
                if curve.times().iter().any(|key| *key != start && (start + t - key).abs() < 1e-9) {
                    continue;
                }
                curve.eval(start + t, &mut a);
                piece.eval(t, &mut b);
                for c in 0..w {
                    assert!((a[c] - b[c]).abs() < 1e-12, "{start}..{end} at {t}: {a:?} {b:?}");
                }
            }
            assert!(piece.len() <= curve.len() + 2);
        }
    }

    #[test]
    fn a_piece_of_any_curve_is_that_curve() {
        let times = vec![0.0, 1.0, 2.0, 3.0];
        let values = vec![0.0, 2.0, -1.0, 4.0];
        check(&Curve::linear(ValueKind::Scalar, times.clone(), values.clone()).unwrap());
        check(&Curve::step(ValueKind::Scalar, times.clone(), values.clone()).unwrap());
        let tangents = vec![1.0, -3.0, 0.5, 2.0];
        check(
            &Curve::hermite(
                ValueKind::Scalar,
                times.clone(),
                values.clone(),
                tangents.clone(),
                tangents.clone(),
            )
            .unwrap(),
        );
        let bezier = CurveParts {
            kind: ValueKind::Scalar,
            times: times.into(),
            values,
            spans: Spans::PerKey(vec![
                SpanKind::Bezier,
                SpanKind::StepNext,
                SpanKind::Bezier,
                SpanKind::Linear,
            ]),
            tangents: Some(Box::new(Tangents {
                leave: tangents.clone(),
                arrive: tangents,
                leave_dt: vec![0.9, 0.1, 0.6, 0.3],
                arrive_dt: vec![0.3, 0.7, 0.3, 0.1],
            })),
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        };
        check(&Curve::new(bezier).unwrap());
        let turns = vec![0.0, 0.0, 0.0, 1.0, 0.6, 0.0, 0.0, -0.8, 0.0, 0.8, 0.0, 0.6, 0.0, 0.0, 1.0, 0.0];
        check(&Curve::linear(ValueKind::Rotation, vec![0.0, 1.0, 2.0, 3.0], turns).unwrap());
    }

    #[test]
    fn a_curve_that_cycles_keeps_what_it_repeats() {
        let cycle = Extrapolation::Cycle { repeats: None };
        let curve = Curve::linear(ValueKind::Scalar, vec![0.0, 1.0], vec![0.0, 3.0])
            .unwrap()
            .with_extrapolation(cycle, cycle);
        let piece = curve.cut(4.25, 5.25, 4.25);
        assert!((piece.scalar_at(0.25) - curve.scalar_at(4.5)).abs() < 1e-12);
    }
}
