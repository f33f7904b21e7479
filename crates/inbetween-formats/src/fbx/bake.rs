//! Cubic keys fitted to a function of time, where a file's rule cannot be written as its own keys.
//!
//! Between two breaks (the key times of everything that takes part) the function is smooth. Each
//! such interval gets the cubic through four of its values and is halved until the cubic meets
//! the function at three more places within the tolerance. Jumps at breaks are kept as steps a
//! tick wide. What the tolerance asks for may be out of reach (halving ends somewhere): the
//! largest difference seen is given back with the curve.

use inbetween::{Curve, CurveError, CurveParts, Extrapolation, SpanKind, Spans, Tangents, ValueKind};

/// Values of up to four components.
pub(super) type Row = [f64; 4];

/// Most halvings of one interval between two breaks: each makes a cubic's error 16 times smaller.
const DEPTH: u32 = 8;

struct Out {
    kind: ValueKind,
    tolerance: f64,
    worst: f64,
    times: Vec<f64>,
    rows: Vec<Row>,
    kinds: Vec<SpanKind>,
    leave: Vec<Row>,
    arrive: Vec<Row>,
}

impl Out {
    fn push(&mut self, time: f64, row: Row) -> bool {
        if self.times.last().is_some_and(|&t| time <= t) {
            return false;
        }
        self.times.push(time);
        self.rows.push(row);
        self.kinds.push(SpanKind::Step);
        self.leave.push([0.0; 4]);
        self.arrive.push([0.0; 4]);
        true
    }

    /// The row on the hemisphere of the last one, where rows are rotations.
    fn near_last(&self, row: Row) -> Row {
        match self.rows.last() {
            Some(last) if self.kind == ValueKind::Rotation => near(row, last),
            _ => row,
        }
    }
}

fn near(row: Row, other: &Row) -> Row {
    let dot: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
    if dot < 0.0 { row.map(|v| -v) } else { row }
}

/// Largest difference of a component from that of `value`, relative to it where it is above 1.
fn difference(value: &Row, other: &Row) -> f64 {
    value.iter().zip(other).fold(0.0, |m, (x, y)| f64::max(m, (x - y).abs() / x.abs().max(1.0)))
}

/// Fits `f` over `breaks` (increasing, at least one), aiming at `tolerance` in every component,
/// relative to the value where that is above 1. Returns the curve and the largest difference
/// found, measured likewise.
///
/// `kind` has up to four components and is neither a switch nor weights.
///
/// # Errors
/// If `f` gives a value that is not finite.
pub(super) fn fit(
    kind: ValueKind,
    breaks: &[f64],
    tick: f64,
    tolerance: f64,
    f: &mut dyn FnMut(f64) -> Row,
) -> Result<(Curve, f64), CurveError> {
    let width = kind.width();
    let mut out = Out {
        kind,
        tolerance,
        worst: 0.0,
        times: vec![],
        rows: vec![],
        kinds: vec![],
        leave: vec![],
        arrive: vec![],
    };
    // A slope of 10 000 a second moves a value by 2e-7 in a tick; more than this is a jump.
    let jump = 1e-6;
    for (i, &t) in breaks.iter().enumerate() {
        let row = out.near_last(f(t));
        out.push(t, row);
        let Some(&next) = breaks.get(i + 1) else { break };
        if next - t <= 8.0 * tick {
            continue;
        }
        let (mut a, mut b) = (t, next);
        let after = out.near_last(f(t + tick));
        if difference(&after, &row) > jump {
            a = t + tick;
            out.push(a, after);
        }
        let end = f(next);
        let before = f(next - tick);
        let before = if kind == ValueKind::Rotation { near(before, &end) } else { before };
        if difference(&before, &end) > jump {
            b = next - tick;
        }
        cubic(&mut out, f, a, b, 0);
        if b < next {
            let last = out.kinds.len() - 1;
            out.kinds[last] = SpanKind::Step;
        }
    }
    let flat = |rows: &[Row]| rows.iter().flat_map(|r| r[..width].iter().copied()).collect::<Vec<f64>>();
    let curve = Curve::new(CurveParts {
        kind,
        times: out.times.into(),
        values: flat(&out.rows),
        spans: Spans::PerKey(out.kinds),
        tangents: Some(Box::new(Tangents {
            leave: flat(&out.leave),
            arrive: flat(&out.arrive),
            ..Tangents::default()
        })),
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    })?;
    Ok((curve, out.worst))
}

/// Appends spans over `a`..`b`; the key at `a` is there already, the one at `b` is added.
fn cubic(out: &mut Out, f: &mut dyn FnMut(f64) -> Row, a: f64, b: f64, depth: u32) {
    let h = b - a;
    let mut at = |u: f64, last: &Row| {
        let row = f(a + u * h);
        if out.kind == ValueKind::Rotation { near(row, last) } else { row }
    };
    let p0 = out.rows[out.rows.len() - 1];
    let p1 = at(1.0 / 3.0, &p0);
    let p2 = at(2.0 / 3.0, &p1);
    let p3 = at(1.0, &p2);
    // Slopes at both ends of the cubic through the four values.
    let m0: Row =
        std::array::from_fn(|c| (-11.0 * p0[c] + 18.0 * p1[c] - 9.0 * p2[c] + 2.0 * p3[c]) / (2.0 * h));
    let m1: Row =
        std::array::from_fn(|c| (11.0 * p3[c] - 18.0 * p2[c] + 9.0 * p1[c] - 2.0 * p0[c]) / (2.0 * h));
    let fitted = |u: f64| -> Row {
        std::array::from_fn(|c| inbetween::spline::Cubic::hermite(h, p0[c], p3[c], m0[c], m1[c]).value(u * h))
    };
    let mut worst: f64 = 0.0;
    for (u, beside) in [(1.0 / 6.0, &p0), (0.5, &p1), (5.0 / 6.0, &p2)] {
        let (value, mut fit) = (at(u, beside), fitted(u));
        if out.kind == ValueKind::Rotation {
            let length = fit.iter().map(|v| v * v).sum::<f64>().sqrt();
            fit = fit.map(|v| v / length);
        }
        worst = worst.max(difference(&value, &fit));
    }
    let middle = a + 0.5 * h;
    if worst > out.tolerance && depth < DEPTH && a < middle && middle < b {
        cubic(out, f, a, middle, depth + 1);
        cubic(out, f, middle, b, depth + 1);
        return;
    }
    out.worst = out.worst.max(worst);
    let last = out.times.len() - 1;
    if out.push(b, p3) {
        out.kinds[last] = SpanKind::Hermite;
        out.leave[last] = m0;
        out.arrive[last + 1] = m1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_function_with_a_jump_is_met_everywhere() {
        let mut f = |t: f64| -> Row {
            let v = if t < 1.0 { (3.0 * t).sin() } else { 5.0 - t };
            [v, 0.0, 0.0, 0.0]
        };
        let curve = fit(ValueKind::Scalar, &[0.0, 1.0, 2.0], 2e-11, 1e-8, &mut f).unwrap().0;
        for i in 0..=400 {
            let t = f64::from(i) * 0.005;
            assert!((curve.scalar_at(t) - f(t)[0]).abs() < 1e-7, "{t}");
        }
        assert!(curve.len() < 80, "{}", curve.len());
    }

    #[test]
    fn a_cubic_needs_no_more_keys_than_its_ends() {
        let mut f = |t: f64| -> Row { [t * t * t - t, 0.0, 0.0, 0.0] };
        assert_eq!(fit(ValueKind::Scalar, &[0.0, 2.0], 2e-11, 1e-9, &mut f).unwrap().0.len(), 2);
    }
}
