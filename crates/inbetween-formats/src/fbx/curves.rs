//! One animation curve of a file as a [`Curve`]: the same keys, spans and ends.
//!
//! FBX keeps a tangent as a handle with a length in time and in value. A handle of the default
//! length, a third of the span, makes the span a plain Hermite cubic and is read as a slope;
//! any other length stays a Bezier handle. Handles may overlap in time, as [`Curve`] allows too.

use std::collections::HashMap;
use std::sync::Arc;

use super::scene::LARGEST;
use inbetween::{Curve, CurveError, CurveParts, Extrapolation, SpanKind, Spans, Tangents, ValueKind};

/// What had to be done to a curve to make its keys valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    /// Keys stood in no order and were sorted.
    pub(super) sorted: bool,
    /// Tangents of sorted cubic keys were set anew.
    pub(super) retangented: bool,
    /// Keys that shared a time with their neighbour and were moved a tick before it.
    pub(super) moved: usize,
    /// Keys that no time can ever show, left out.
    pub(super) hidden: usize,
    /// Tangents that were no numbers, made straight.
    pub(super) straightened: usize,
}

impl Repairs {
    pub(super) fn any(&self) -> bool {
        *self != Self::default()
    }

    /// The repairs in words.
    pub(super) fn describe(&self) -> String {
        let mut parts = Vec::new();
        if self.sorted {
            parts.push("keys stood out of order and were sorted by time".to_owned());
        }
        if self.retangented {
            parts.push("their tangents, made for the wrong neighbours, were set anew".to_owned());
        }
        if self.moved > 0 {
            parts.push(format!(
                "{} key(s) at the time of the next one: kept a tick (22 ps) before it, so the jump stays",
                self.moved
            ));
        }
        if self.hidden > 0 {
            parts.push(format!(
                "{} key(s) between others at the same time show nowhere and were left out",
                self.hidden
            ));
        }
        if self.straightened > 0 {
            parts.push(format!(
                "{} tangent(s) that are no finite numbers were made straight",
                self.straightened
            ));
        }
        parts.join("; ")
    }
}

/// A key as we work on it: handles are offsets from the key, `None` where nothing is known.
#[derive(Clone, Copy, Debug)]
struct Key {
    time: f64,
    value: f64,
    span: ufbx::Interpolation,
    /// Seconds before the key, value below it.
    left: (f64, f64),
    /// Seconds after the key, value above it.
    right: (f64, f64),
}

/// Number of times, and the bits of the first and the last.
type TimeKey = (usize, u64, u64);

/// Shares one array between curves whose keys stand at the same times.
#[derive(Default)]
pub(super) struct TimePool {
    arrays: HashMap<TimeKey, Vec<Arc<[f64]>>>,
}

impl TimePool {
    fn share(&mut self, times: Vec<f64>) -> Arc<[f64]> {
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return times.into() };
        let same = self.arrays.entry((times.len(), first.to_bits(), last.to_bits())).or_default();
        if let Some(array) = same.iter().find(|a| a[..] == times[..]) {
            return array.clone();
        }
        let array: Arc<[f64]> = times.into();
        same.push(array.clone());
        array
    }
}

/// A handle counts as of default length if it is a third of the span within this share of it.
/// `ufbx` rounds a third to 0.333333; the shortest way a file can say otherwise is 0.3333.
const THIRD_TOLERANCE: f64 = 2e-6;

/// Reads a curve that has at least one key.
///
/// # Errors
/// If a value is not finite, or so large that arithmetic on it would not be.
pub(super) fn read(
    source: &ufbx::AnimCurve,
    tick: f64,
    pool: &mut TimePool,
) -> Result<(Curve, Repairs), CurveError> {
    let mut repairs = Repairs::default();
    let mut keys: Vec<Key> = source
        .keyframes
        .iter()
        .map(|k| Key {
            time: k.time,
            value: k.value,
            span: k.interpolation,
            left: (f64::from(k.left.dx), f64::from(k.left.dy)),
            right: (f64::from(k.right.dx), f64::from(k.right.dy)),
        })
        .collect();
    if let Some(index) = keys.iter().position(|k| !k.time.is_finite()) {
        return Err(CurveError::TimeNotFinite { index, time: keys[index].time });
    }
    if let Some(index) = keys.iter().position(|k| k.value.is_nan() || k.value.abs() > LARGEST) {
        let k = keys[index];
        return Err(CurveError::NotFinite { what: "the value", index, time: k.time, value: k.value });
    }
    if keys.windows(2).any(|w| w[1].time < w[0].time) {
        sort(&mut keys, &mut repairs);
    }
    if keys.windows(2).any(|w| w[1].time <= w[0].time) {
        keys = part_equal_times(&keys, tick, &mut repairs);
    }
    straighten(&mut keys, &mut repairs);
    let curve = build(&keys, pool)?;
    if curve.len() == 1 {
        return Ok((curve, repairs));
    }
    let curve = curve.with_extrapolation(
        extrapolation(&source.pre_extrapolation),
        extrapolation(&source.post_extrapolation),
    );
    Ok((curve, repairs))
}

fn extrapolation(e: &ufbx::Extrapolation) -> Extrapolation {
    use ufbx::ExtrapolationMode as M;
    let repeats = u32::try_from(e.repeat_count).ok();
    if repeats == Some(0) && !matches!(e.mode, M::Constant | M::Slope) {
        return Extrapolation::Hold;
    }
    match e.mode {
        M::Constant => Extrapolation::Hold,
        M::Slope => Extrapolation::Linear,
        M::Repeat => Extrapolation::Cycle { repeats },
        M::RepeatRelative => Extrapolation::CycleOffset { repeats },
        M::Mirror => Extrapolation::Mirror { repeats },
    }
}

/// Puts keys in order. `ufbx` worked the tangents out for the neighbours in the file, so those of
/// cubic keys are replaced by the slope between the neighbours in time.
fn sort(keys: &mut [Key], repairs: &mut Repairs) {
    repairs.sorted = true;
    keys.sort_by(|a, b| a.time.total_cmp(&b.time));
    if !keys.iter().any(|k| k.span == ufbx::Interpolation::Cubic) {
        return;
    }
    repairs.retangented = true;
    let n = keys.len();
    for i in 0..n {
        let (a, b) = (i.saturating_sub(1), (i + 1).min(n - 1));
        let gap = keys[b].time - keys[a].time;
        let slope = if gap > 0.0 { (keys[b].value - keys[a].value) / gap } else { 0.0 };
        let (before, after) = (keys[i].time - keys[a].time, keys[b].time - keys[i].time);
        keys[i].left = (before / 3.0, slope * before / 3.0);
        keys[i].right = (after / 3.0, slope * after / 3.0);
    }
}

/// Keys at one time are a jump: the first says what is reached, the last where it goes on.
/// The first is kept a tick before; those between show nowhere.
fn part_equal_times(keys: &[Key], tick: f64, repairs: &mut Repairs) -> Vec<Key> {
    let mut out: Vec<Key> = Vec::with_capacity(keys.len());
    let mut i = 0;
    while i < keys.len() {
        let mut last = i;
        while last + 1 < keys.len() && keys[last + 1].time <= keys[i].time {
            last += 1;
        }
        let (first, mut key) = (keys[i], keys[last]);
        if last > i {
            let before = first.time - tick;
            let room = out.last().is_none_or(|k| k.time < before) && before < key.time;
            if first.value == key.value || !room || out.is_empty() {
                // Nothing jumps, or nothing comes before: one key with both sides' tangents.
                key.left = first.left;
                repairs.hidden += last - i;
            } else {
                out.push(Key { time: before, span: ufbx::Interpolation::ConstantPrev, ..first });
                key.left = (0.0, 0.0);
                repairs.moved += 1;
                repairs.hidden += last - i - 1;
            }
        }
        out.push(key);
        i = last + 1;
    }
    out
}

/// Replaces handles of cubic spans that are not finite by straight ones of default length, and
/// cuts those that reach past the other key.
fn straighten(keys: &mut [Key], repairs: &mut Repairs) {
    for i in 0..keys.len().saturating_sub(1) {
        if keys[i].span != ufbx::Interpolation::Cubic {
            continue;
        }
        let h = keys[i + 1].time - keys[i].time;
        let rise = keys[i + 1].value - keys[i].value;
        let good = |(dx, dy): (f64, f64)| dx.is_finite() && dy.is_finite() && dx >= 0.0;
        if !good(keys[i].right) {
            keys[i].right = (h / 3.0, rise / 3.0);
            repairs.straightened += 1;
        }
        if !good(keys[i + 1].left) {
            keys[i + 1].left = (h / 3.0, rise / 3.0);
            repairs.straightened += 1;
        }
        for handle in [&mut keys[i].right, &mut keys[i + 1].left] {
            if handle.0 > h {
                let k = h / handle.0;
                *handle = (h, handle.1 * k);
            }
        }
    }
}

fn is_third(dx: f64, h: f64) -> bool {
    (dx - h / 3.0).abs() <= THIRD_TOLERANCE * h
}

fn is_hermite(a: &Key, b: &Key) -> bool {
    let h = b.time - a.time;
    is_third(a.right.0, h) && is_third(b.left.0, h)
}

fn build(keys: &[Key], pool: &mut TimePool) -> Result<Curve, CurveError> {
    let n = keys.len();
    let mut kinds = Vec::with_capacity(n);
    for i in 0..n {
        kinds.push(match keys[i].span {
            ufbx::Interpolation::ConstantPrev => SpanKind::Step,
            ufbx::Interpolation::ConstantNext => SpanKind::StepNext,
            ufbx::Interpolation::Linear => SpanKind::Linear,
            ufbx::Interpolation::Cubic if i + 1 == n => SpanKind::Hermite,
            ufbx::Interpolation::Cubic if is_hermite(&keys[i], &keys[i + 1]) => SpanKind::Hermite,
            ufbx::Interpolation::Cubic => SpanKind::Bezier,
        });
    }
    let cubic = kinds[..n - 1].iter().any(|k| matches!(k, SpanKind::Hermite | SpanKind::Bezier));
    let bezier = kinds[..n - 1].contains(&SpanKind::Bezier);
    let tangents = cubic.then(|| {
        let mut t = Tangents { leave: vec![0.0; n], arrive: vec![0.0; n], ..Tangents::default() };
        if bezier {
            t.leave_dt = vec![0.0; n];
            t.arrive_dt = vec![0.0; n];
        }
        for i in 0..n - 1 {
            let (a, b) = (&keys[i], &keys[i + 1]);
            match kinds[i] {
                SpanKind::Hermite => {
                    t.leave[i] = a.right.1 / a.right.0;
                    t.arrive[i + 1] = b.left.1 / b.left.0;
                }
                SpanKind::Bezier => {
                    (t.leave_dt[i], t.leave[i]) = a.right;
                    t.arrive_dt[i + 1] = b.left.0;
                    t.arrive[i + 1] = -b.left.1;
                }
                _ => {}
            }
        }
        Box::new(t)
    });
    let spans = match kinds.first() {
        Some(first) if kinds[..(n - 1).max(1)].iter().all(|k| k == first) => Spans::Uniform(*first),
        _ => Spans::PerKey(kinds),
    };
    Curve::new(CurveParts {
        kind: ValueKind::Scalar,
        times: pool.share(keys.iter().map(|k| k.time).collect()),
        values: keys.iter().map(|k| k.value).collect(),
        spans,
        tangents,
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ufbx::Interpolation as I;

    fn key(time: f64, value: f64, span: I) -> Key {
        Key { time, value, span, left: (0.0, 0.0), right: (0.0, 0.0) }
    }

    #[test]
    fn a_jump_at_one_time_stays_a_jump() {
        let keys = [
            key(0.0, 0.0, I::Linear),
            key(1.0, 2.0, I::Linear),
            key(1.0, 5.0, I::Linear),
            key(2.0, 6.0, I::Linear),
        ];
        let mut repairs = Repairs::default();
        let tick = 1.0 / 46_186_158_000.0;
        let curve = build(&part_equal_times(&keys, tick, &mut repairs), &mut TimePool::default()).unwrap();
        assert_eq!((curve.len(), repairs.moved), (4, 1));
        assert!((curve.scalar_at(0.5) - 1.0).abs() < 1e-9);
        assert!((curve.scalar_at(1.0 - 1e-9) - 2.0).abs() < 1e-8);
        assert_eq!(curve.scalar_at(1.0), 5.0);
    }

    #[test]
    fn sorting_keeps_every_key() {
        let mut keys = vec![key(0.0, 0.0, I::Linear), key(2.0, 20.0, I::Linear), key(1.0, 5.0, I::Linear)];
        let mut repairs = Repairs::default();
        sort(&mut keys, &mut repairs);
        let curve = build(&keys, &mut TimePool::default()).unwrap();
        assert_eq!(curve.values(), [0.0, 5.0, 20.0]);
        assert!(repairs.sorted && !repairs.retangented);
    }
}
