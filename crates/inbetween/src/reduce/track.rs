//! One track alone: what is to be done with it, and doing it within a tolerance of its own.

use crate::curve::{Curve, CurveError, CurveParts, Extrapolation, SpanKind, Spans, ValueKind};
use crate::metric;
use crate::sample::{has_steps, is_stepped, is_straight, sample_track};
use crate::track::{Axis, EulerBetween, Property, Track, TrackData};

use super::ball::{BallCone, ComponentCone, Rotations, Vectors};
use super::beam::nearly_optimal_scalar;
use super::cubic::{HermiteSpans, Measure, difference_tangents, one_sided};
use super::literal::Literal;
use super::options::{Keys, Options};
use super::report::Fate;
use super::search;
use super::steps;

/// What is to be done with a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// Nothing, for the reason given.
    Fixed(&'static str),
    /// Take out keys that change nothing.
    Keep,
    /// Reduce within a tolerance of its own.
    Own(f64),
    /// Reduce together with the others under the bound in the world.
    World,
    /// The published triplet rule.
    Literal { tolerance: f64, habits: Literal },
}

impl Plan {
    pub fn of(track: &Track, options: &Options) -> Self {
        if !track.enabled {
            return Self::Keep;
        }
        if track.data.key_times().len() < 2 || is_stepped(&track.data) {
            return Self::Keep;
        }
        let curves = track.data.curves();
        if curves
            .iter()
            .any(|c| c.parts().before != Extrapolation::Hold || c.parts().after != Extrapolation::Hold)
            && !matches!(track.data, TrackData::Curve(_))
        {
            return Self::Fixed("its curves go on beyond their keys by a rule");
        }
        match options.keys {
            Keys::Keep => return Self::Keep,
            Keys::Literal { tolerance, habits } => return Self::Literal { tolerance, habits },
            Keys::Linear | Keys::Cubic => {}
        }
        // Straight lines or cubics over a step would smear it.
        if has_steps(&track.data) {
            return Self::Keep;
        }
        if options.max_error.is_some() && metric::moves_node(&track.binding) {
            return Self::World;
        }
        tolerance_of(track, options).map_or(Self::Keep, Self::Own)
    }

    /// What is said of it if nothing else happens.
    pub fn fate(&self) -> Fate {
        match self {
            Self::Fixed(why) => Fate::Kept(why),
            _ => Fate::Reduced,
        }
    }

    /// The tolerance the result is held to, in the track's own unit.
    pub fn tolerance(&self, track: &Track, options: &Options) -> Option<f64> {
        match self {
            Self::Own(tolerance) => Some(*tolerance),
            Self::World => tolerance_of(track, options),
            _ => None,
        }
    }
}

/// The tolerance that the options give a track.
pub fn tolerance_of(track: &Track, options: &Options) -> Option<f64> {
    let special = options.tolerances.iter().rev().find(|t| {
        t.property == track.binding.property
            && t.target.as_ref().is_none_or(|name| *name == track.binding.target)
    });
    if let Some(special) = special {
        return Some(special.tolerance);
    }
    match (&track.binding.property, track.data.kind()) {
        (_, ValueKind::Rotation) => options.angle_tolerance,
        (Property::Translation, _) => options.length_tolerance,
        (Property::Scale, _) => options.scale_tolerance,
        _ => options.value_tolerance,
    }
}

type Built = Result<TrackData, CurveError>;

/// The track without the keys that change nothing.
pub fn keep(data: &TrackData) -> Built {
    Ok(match data {
        TrackData::Curve(curve) => TrackData::Curve(keep_curve(curve)?),
        TrackData::Axes { kind, axes } => {
            let axes = axes.iter().map(keep_axis).collect::<Result<_, _>>()?;
            TrackData::Axes { kind: *kind, axes }
        }
        TrackData::Euler(euler) if euler.between == EulerBetween::Angles => {
            let mut euler = euler.clone();
            for (_, axis) in &mut euler.terms {
                *axis = keep_axis(axis)?;
            }
            TrackData::Euler(euler)
        }
        TrackData::Euler(euler) => {
            // The curves must go on sharing their key times, and between them is a slerp: a key goes only if
            // the rotation there is on the slerp between its neighbours.
            let times = data.key_times();
            if times.len() < 3 {
                return Ok(data.clone());
            }
            let rows = sample_track(data, &times);
            let kept = search::farthest(&mut BallCone::new(&times, Rotations(&rows), EXACT_ANGLE));
            let mut euler = euler.clone();
            for (_, axis) in &mut euler.terms {
                if let Axis::Curve(curve) = axis {
                    *curve = picked(curve, &kept)?;
                }
            }
            TrackData::Euler(euler)
        }
    })
}

/// Angles below this are rounding: quaternions in f64 that went through sines and a product or two.
const EXACT_ANGLE: f64 = 1e-9;

fn keep_axis(axis: &Axis) -> Result<Axis, CurveError> {
    match axis {
        Axis::Constant(value) => Ok(Axis::Constant(*value)),
        Axis::Curve(curve) => Ok(Axis::Curve(keep_curve(curve)?)),
    }
}

fn keep_curve(curve: &Curve) -> Result<Curve, CurveError> {
    let n = curve.len();
    if n < 2 {
        return Ok(curve.clone());
    }
    let width = curve.width();
    let cycles = curve.parts().after != Extrapolation::Hold || curve.parts().before != Extrapolation::Hold;
    let kept = match &curve.parts().spans {
        Spans::Uniform(SpanKind::Step) => {
            let mut kept = steps::changes(curve.values(), width);
            if cycles && kept.last() != Some(&(n - 1)) {
                kept.push(n - 1);
            }
            kept
        }
        Spans::Uniform(SpanKind::Linear) if curve.kind() == ValueKind::Rotation => {
            search::farthest(&mut BallCone::new(curve.times(), Rotations(curve.values()), EXACT_ANGLE))
        }
        Spans::Uniform(SpanKind::Linear) => steps::redundant(curve.times(), curve.values(), width),
        _ => plateau_keys(curve),
    };
    picked(curve, &kept)
}

/// The keys of a curve of any spans but those inside a plateau: between two keys of the same value that the
/// curve does not leave.
fn plateau_keys(curve: &Curve) -> Vec<usize> {
    let n = curve.len();
    let flat = |a: usize, b: usize| {
        if curve.value(a) != curve.value(b) {
            return false;
        }
        match (curve.span(a), &curve.parts().tangents) {
            (SpanKind::Hermite | SpanKind::Bezier, Some(t)) => {
                let w = curve.width();
                t.leave[a * w..(a + 1) * w].iter().chain(&t.arrive[b * w..(b + 1) * w]).all(|&m| m == 0.0)
            }
            _ => true,
        }
    };
    (0..n)
        .filter(|&k| {
            k == 0 || k == n - 1 || !(flat(k - 1, k) && flat(k, k + 1) && curve.span(k - 1) == curve.span(k))
        })
        .collect()
}

/// The curve with only the keys `kept`.
fn picked(curve: &Curve, kept: &[usize]) -> Result<Curve, CurveError> {
    if kept.len() == curve.len() {
        return Ok(curve.clone());
    }
    let width = curve.width();
    let rows = |row: &[f64]| -> Vec<f64> {
        if row.is_empty() {
            Vec::new()
        } else {
            kept.iter().flat_map(|&k| row[k * width..(k + 1) * width].to_vec()).collect()
        }
    };
    let parts = curve.parts();
    Curve::new(CurveParts {
        kind: parts.kind,
        times: kept.iter().map(|&k| parts.times[k]).collect(),
        values: rows(&parts.values),
        spans: match &parts.spans {
            Spans::Uniform(kind) => Spans::Uniform(*kind),
            Spans::PerKey(kinds) => Spans::PerKey(kept.iter().map(|&k| kinds[k]).collect()),
        },
        tangents: parts.tangents.as_ref().map(|t| {
            Box::new(crate::curve::Tangents {
                leave: rows(&t.leave),
                arrive: rows(&t.arrive),
                leave_dt: rows(&t.leave_dt),
                arrive_dt: rows(&t.arrive_dt),
            })
        }),
        before: parts.before,
        after: parts.after,
    })
}

/// The track reduced by the published rule, component by component, a key staying if any component needs it.
pub fn literal(data: &TrackData, times: &[f64], tolerance: f64, habits: Literal) -> (Built, Fate) {
    let kind = data.kind();
    let width = kind.width();
    let rows = sample_track(data, times);
    let mut stays = vec![false; times.len()];
    for component in 0..width {
        let values: Vec<f64> = rows.iter().skip(component).step_by(width).copied().collect();
        for k in super::literal::literal(times, &values, tolerance, habits) {
            stays[k] = true;
        }
    }
    let kept: Vec<usize> = (0..times.len()).filter(|&k| stays[k]).collect();
    (line(data, times, &rows, &kept), Fate::Reduced)
}

/// A straight curve through the samples `kept`, going on beyond them as the track did.
fn line(data: &TrackData, times: &[f64], rows: &[f64], kept: &[usize]) -> Built {
    let width = data.kind().width();
    let curve = Curve::linear(
        data.kind(),
        kept.iter().map(|&k| times[k]).collect::<Vec<_>>(),
        kept.iter().flat_map(|&k| rows[k * width..(k + 1) * width].to_vec()).collect(),
    )?;
    Ok(TrackData::Curve(beyond(curve, data)))
}

/// The curve, going on beyond its keys as the track did.
pub fn beyond(curve: Curve, data: &TrackData) -> Curve {
    match data {
        TrackData::Curve(source) => curve.with_extrapolation(source.parts().before, source.parts().after),
        _ => curve,
    }
}

/// The track reduced within `tolerance` in its own unit: a length, or an angle in radians.
pub fn within(data: &TrackData, times: &[f64], tolerance: f64, options: &Options) -> (Built, Fate) {
    let (keys, keep_components) = (options.keys, options.keep_components);
    let kind = data.kind();
    let width = kind.width();
    let mut rows = sample_track(data, times);
    if kind == ValueKind::Rotation {
        one_sided(&mut rows);
    }
    let n = times.len();
    // One key, if the first value will do for all; not where the curve is repeated beyond its end by a rule.
    let still =
        (0..n).map(|k| off(kind, &rows[..width], &rows[k * width..(k + 1) * width])).fold(0.0, f64::max);
    let held = matches!(data, TrackData::Curve(c) if c.parts().after == Extrapolation::Hold)
        || !matches!(data, TrackData::Curve(_));
    if still <= tolerance && held {
        return (line(data, times, &rows, &[0]), Fate::Flattened { error: still });
    }
    let (built, count) = if keys == Keys::Cubic {
        cubic_within(data, times, &rows, tolerance)
    } else {
        let kept = straight_within(kind, times, &rows, tolerance);
        (line(data, times, &rows, &kept), kept.len())
    };
    // A curve that was drawn with fewer keys stays as it was drawn.
    let stays = keep_components || matches!(data, TrackData::Curve(_));
    if !is_straight(data) && stays && count >= data.key_times().len() {
        return (Ok(data.clone()), Fate::Kept("its own keys are fewer"));
    }
    (built, Fate::Reduced)
}

/// Keys of straight spans within a tolerance.
fn straight_within(kind: ValueKind, times: &[f64], rows: &[f64], tolerance: f64) -> Vec<usize> {
    match (kind, kind.width()) {
        (ValueKind::Rotation, _) => nearly(&mut BallCone::new(times, Rotations(rows), tolerance)),
        (_, 1) => nearly_optimal_scalar(times, rows, tolerance),
        (_, 2) => nearly(&mut BallCone::new(times, Vectors::<2>(rows), tolerance)),
        (_, 3) => nearly(&mut BallCone::new(times, Vectors::<3>(rows), tolerance)),
        (_, 4) => nearly(&mut BallCone::new(times, Vectors::<4>(rows), tolerance)),
        (_, width) => {
            // The length of the error stays within the tolerance if each component stays within its part.
            let each = vec![tolerance / (width as f64).sqrt(); width];
            search::farthest(&mut ComponentCone::new(times, rows, width, &each))
        }
    }
}

fn nearly(spans: &mut impl search::Spans) -> Vec<usize> {
    search::nearly_optimal(spans, search::WORK_PER_SAMPLE)
}

/// A cubic curve within a tolerance, and its number of keys.
fn cubic_within(data: &TrackData, times: &[f64], rows: &[f64], tolerance: f64) -> (Built, usize) {
    let kind = data.kind();
    let width = kind.width();
    let (leave, arrive) = slopes(data, times, rows);
    let measure = if kind == ValueKind::Rotation { Measure::Angle } else { Measure::Length };
    let mut spans = HermiteSpans::new(times, rows, &leave, &arrive, width, measure, tolerance);
    let kept = nearly(&mut spans);
    let pick = |row: &[f64]| -> Vec<f64> {
        kept.iter().flat_map(|&k| row[k * width..(k + 1) * width].to_vec()).collect()
    };
    let (mut leave, mut arrive) = (pick(&leave), pick(&arrive));
    let key_times: Vec<f64> = kept.iter().map(|&k| times[k]).collect();
    let values = pick(rows);
    if is_straight(data) {
        // Between two neighbouring samples the source is straight, and no sample says what a curve does there.
        for k in 0..kept.len() - 1 {
            if kept[k + 1] == kept[k] + 1 {
                let h = key_times[k + 1] - key_times[k];
                for c in 0..width {
                    let slope = (values[(k + 1) * width + c] - values[k * width + c]) / h;
                    leave[k * width + c] = slope;
                    arrive[(k + 1) * width + c] = slope;
                }
            }
        }
    }
    let count = kept.len();
    (Curve::hermite(kind, key_times, values, leave, arrive).map(|c| TrackData::Curve(beyond(c, data))), count)
}

/// The slopes behind and before each sample: those of the source where it is a cubic, which are its authored
/// tangents at its keys; finite differences elsewhere.
pub fn slopes(data: &TrackData, times: &[f64], rows: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let width = data.kind().width();
    let Some(curve) = authored(data) else {
        let tangents = difference_tangents(times, rows, width);
        return (tangents.clone(), tangents);
    };
    let mut leave = vec![0.0; rows.len()];
    for (row, &time) in leave.chunks_exact_mut(width).zip(times) {
        curve.derivative(time, row);
    }
    let mut arrive = leave.clone();
    let tangents = curve.parts().tangents.as_ref();
    for (k, &time) in times.iter().enumerate() {
        let here = k * width..(k + 1) * width;
        if let Ok(key) = curve.times().binary_search_by(|t| t.total_cmp(&time))
            && let Some(tangents) = tangents
        {
            let there = key * width..(key + 1) * width;
            let side = if curve.kind() == ValueKind::Rotation {
                let dot: f64 = curve.value(key).iter().zip(&rows[here.clone()]).map(|(a, b)| a * b).sum();
                if dot < 0.0 { -1.0 } else { 1.0 }
            } else {
                1.0
            };
            for (to, from) in here.clone().zip(there) {
                leave[to] = side * tangents.leave[from];
                arrive[to] = side * tangents.arrive[from];
            }
        }
    }
    (leave, arrive)
}

/// The curve of a track that is cubic throughout, with tangents of its own. The kind of the last key's span says
/// nothing, because nothing is behind it.
pub fn authored(data: &TrackData) -> Option<&Curve> {
    match data {
        TrackData::Curve(curve)
            if curve.parts().tangents.is_some()
                && (0..curve.len().saturating_sub(1)).all(|k| curve.span(k) == SpanKind::Hermite) =>
        {
            Some(curve)
        }
        _ => None,
    }
}

/// How far two values lie apart: an angle or a length.
fn off(kind: ValueKind, a: &[f64], b: &[f64]) -> f64 {
    if kind == ValueKind::Rotation {
        return super::rotation::angle(super::rotation::row(a, 0), super::rotation::row(b, 0));
    }
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

/// The track with one key, if all its keys are equal, to the bit, and it is held beyond them; and how far that
/// is from the source at its keys.
pub fn one_key(data: &TrackData, source: &TrackData) -> Option<(TrackData, f64)> {
    let TrackData::Curve(curve) = data else { return None };
    let parts = curve.parts();
    let held = parts.before == Extrapolation::Hold && parts.after == Extrapolation::Hold;
    if curve.len() < 2 || !held || (1..curve.len()).any(|k| curve.value(k) != curve.value(0)) {
        return None;
    }
    let flat = match &parts.tangents {
        Some(t) => t.leave.iter().chain(&t.arrive).all(|m| *m == 0.0),
        None => true,
    };
    if !flat && parts.spans.any(SpanKind::Hermite) {
        return None;
    }
    let kind = curve.kind();
    let width = kind.width();
    let times = source.key_times();
    let rows = sample_track(source, &times);
    let error = rows.chunks_exact(width.max(1)).map(|row| off(kind, curve.value(0), row)).fold(0.0, f64::max);
    picked(curve, &[0]).ok().map(|one| (TrackData::Curve(one), error))
}
