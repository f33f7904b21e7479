//! Fewer keys under a bound.
//!
//! [`reduce`] is the one door: a clip and its skeleton in, a clip with fewer keys and a [`Report`] out. Under a
//! bound in the world ([`Options::max_error`]) the tracks that move nodes are reduced together: first each
//! within its share of the bound, by depth and lever arm, then key by key against the true error, see
//! `decimate`. Under tolerances of their own, tracks are reduced one by one with the searches below, which
//! also work on plain slices for anyone who has no clip.
//!
//! Whatever is asked for: a step stays a step and loses only keys that change nothing; the first and the last
//! key of a track stay what they were, bit for bit, so a loop's seam stays closed; the clip keeps its length,
//! in its keys too; a rotation goes the short way and never leaves half a turn between two keys; a track that
//! stands still keeps one key.
//!
//! ```
//! use inbetween::reduce::{Options, reduce};
//! use inbetween::{Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind};
//!
//! // A ball that falls for two seconds, keyed 60 times a second.
//! let times: Vec<f64> = (0..=120).map(|i| f64::from(i) / 60.0).collect();
//! let fall = times.iter().flat_map(|t| [0.0, -4.905 * t * t, 0.0]).collect();
//! let mut clip = Clip::new("fall", 0.0, 2.0)?;
//! clip.tracks.push(Track::new(
//!     Binding::node(0, "ball", Property::Translation),
//!     TrackData::Curve(Curve::linear(ValueKind::Vector(3), times, fall)?),
//!     vec![0.0; 3],
//! ));
//! let skeleton = Skeleton::new(vec![Joint::new("ball", None, Transform::IDENTITY)])?;
//!
//! let result = reduce(&clip, &skeleton, &Options::world(0.01))?;
//! assert!(result.report.keys <= 25 && result.report.holds());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod ball;
pub mod beam;
pub mod cone;
pub mod cubic;
mod decimate;
pub mod literal;
mod moving;
mod options;
mod report;
pub mod rotation;
pub mod search;
mod stage;
pub mod steps;
mod track;
mod window;
mod world;

pub use options::{Keys, Options, Sharing, TrackTolerance};
pub use report::{Fate, Report, TrackReport};

use std::sync::Arc;

use thiserror::Error;

use crate::clip::Clip;
use crate::curve::{Curve, CurveError, CurveParts};
use crate::metric;
use crate::pose::LocalPose;
use crate::sample::{Frames, SampleError, ladder, merge_times};
use crate::skeleton::Skeleton;
use crate::track::{Property, Track, TrackData};
use track::Plan;

/// A clip with fewer keys, and what was done.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// The result: the source's name, range, marks and tracks, each with its own fewer keys.
    pub clip: Clip,
    /// What was done.
    pub report: Report,
}

impl Reduction {
    /// Nothing reduced after all: the clip is `source` as it was, every track kept for the reason
    /// `why`, and no error anywhere.
    pub fn undone(mut self, source: &Clip, why: &'static str) -> Self {
        self.clip = source.clone();
        let report = &mut self.report;
        report.keys = report.source_keys;
        for track in &mut report.tracks {
            track.keys = track.source_keys;
            track.fate = Fate::Kept(why);
        }
        report.measured.nodes.fill(0.0);
        if let Some(world) = &mut report.measured.world {
            world.value = 0.0;
        }
        for track in &mut report.measured.tracks {
            track.value = 0.0;
        }
        self
    }
}

/// Why a clip could not be reduced.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReduceError {
    /// A bound that is none.
    #[error("{what} is {value}; it must be a finite number of 0 or more")]
    BadBound {
        /// Which of the options.
        what: &'static str,
        /// The value found.
        value: f64,
    },
    /// A track for a node that is not there.
    #[error(
        "track {track} ({target}.{property}) drives node {node}, but the skeleton has only {nodes} nodes; give the skeleton the clip came with"
    )]
    NoSuchNode {
        /// Index of the track.
        track: usize,
        /// Its target.
        target: String,
        /// Its property.
        property: String,
        /// The node it names.
        node: usize,
        /// Nodes there are.
        nodes: usize,
    },
    /// A curved track could not be sampled.
    #[error("clip {clip:?} cannot be sampled: {error}")]
    Sample {
        /// The clip.
        clip: String,
        /// Why.
        error: SampleError,
    },
    /// A value that no curve may hold came out.
    #[error("track {track} ({target}.{property}) reduces to a curve that is none: {error}")]
    Curve {
        /// Index of the track.
        track: usize,
        /// Its target.
        target: String,
        /// Its property.
        property: String,
        /// What is wrong with it.
        error: CurveError,
    },
}

/// Reduces a clip. See the [module](self) for what is kept whatever the options say.
///
/// Deterministic: the same clip and options give the same bits on every machine. Cost: without a bound in the
/// world, linear in the keys; with it, some tens of microseconds a source key, which is seconds for a minute of
/// captured motion.
///
/// # Errors
/// [`ReduceError`], for options or clips that make no sense.
pub fn reduce(clip: &Clip, skeleton: &Skeleton, options: &Options) -> Result<Reduction, ReduceError> {
    let options = Options { drop_at_rest: false, ..options.clone() };
    reduce_one_of(std::slice::from_ref(clip), 0, skeleton, &options)
}

/// Reduces clip `index` of `clips`, all of which play on the skeleton: with [`Options::drop_at_rest`], a track
/// is dropped only if no other of them drives the same property to anything but its rest value.
///
/// # Errors
/// As [`reduce`].
///
/// # Panics
/// If there is no clip of that index.
pub fn reduce_one_of(
    clips: &[Clip],
    index: usize,
    skeleton: &Skeleton,
    options: &Options,
) -> Result<Reduction, ReduceError> {
    let source = &clips[index];
    check(source, skeleton, options)?;
    let restore = options.restore_steps && matches!(options.keys, Keys::Linear | Keys::Cubic);
    let (reference, restored) = if restore { steps::restore(source) } else { (source.clone(), Vec::new()) };
    let mut notes = Vec::new();
    let frames = FrameTimes::new(&reference, options, &mut notes)?;
    let plans: Vec<Plan> = reference.tracks.iter().map(|track| Plan::of(track, options)).collect();

    let mut result = reference.clone();
    let mut fates: Vec<Fate> = plans.iter().map(|plan| plan.fate()).collect();
    for (k, track) in reference.tracks.iter().enumerate() {
        let (data, fate) = match plans[k] {
            Plan::World => continue,
            Plan::Fixed(_) => continue,
            Plan::Keep => (track::keep(&track.data), Fate::Reduced),
            Plan::Literal { tolerance, habits } => {
                track::literal(&track.data, &frames.times(&track.data), tolerance, habits)
            }
            Plan::Own(tolerance) => {
                track::within(&track.data, &frames.times(&track.data), tolerance, options)
            }
        };
        result.tracks[k].data = data.map_err(|error| curve_error(k, track, error))?;
        fates[k] = fate;
    }
    if plans.contains(&Plan::World) {
        world::reduce(&reference, skeleton, options, &plans, &frames, &mut result, &mut fates)
            .map_err(|(k, error)| curve_error(k, &reference.tracks[k], error))?;
    }
    for &k in &restored {
        fates[k] = Fate::StepRestored;
    }
    for (k, track) in result.tracks.iter_mut().enumerate() {
        if let Some((data, error)) = track::one_key(&track.data, &reference.tracks[k].data) {
            track.data = data;
            if !matches!(fates[k], Fate::Flattened { .. }) {
                fates[k] = Fate::Flattened { error };
            }
        }
    }
    hold_length(&reference, &mut result);
    let keys: Vec<usize> = result.tracks.iter().map(|t| t.data.key_times().len()).collect();
    let mut dropped = vec![false; result.tracks.len()];
    if options.drop_at_rest {
        for k in 0..result.tracks.len() {
            dropped[k] =
                at_rest(&reference.tracks[k]) && !moved_elsewhere(clips, index, &reference.tracks[k]);
        }
        // The length of the clip must not hang on a track that goes.
        let end = last_key(&result);
        let left = (0..keys.len()).filter(|&k| !dropped[k]).map(|k| last_key_of(&result.tracks[k]));
        if left.fold(f64::NEG_INFINITY, f64::max) != end
            && let Some(k) =
                (0..keys.len()).rev().find(|&k| dropped[k] && last_key_of(&result.tracks[k]) == end)
        {
            dropped[k] = false;
        }
    }
    let tracks = (0..keys.len())
        .map(|k| {
            let (before, binding) = (&source.tracks[k], &source.tracks[k].binding);
            TrackReport {
                track: k,
                target: binding.target.clone(),
                property: binding.property.name().to_owned(),
                source_keys: before.data.key_times().len(),
                keys: if dropped[k] { 0 } else { keys[k] },
                fate: if dropped[k] { Fate::Dropped } else { fates[k].clone() },
                unit: metric::unit_of(binding, &before.data),
                tolerance: plans[k].tolerance(&reference.tracks[k], options),
            }
        })
        .collect::<Vec<_>>();
    let mut kept = dropped.iter();
    result.tracks.retain(|_| !kept.next().copied().unwrap_or(false));
    let measured = metric::measure(source, &result, skeleton, options.shell, restore);
    let report = Report {
        clip: source.name.clone(),
        source_keys: tracks.iter().map(|t| t.source_keys).sum(),
        keys: tracks.iter().map(|t| t.keys).sum(),
        bound: options.max_error.filter(|_| matches!(options.keys, Keys::Linear | Keys::Cubic)),
        tracks,
        measured,
        notes,
    };
    Ok(Reduction { clip: result, report })
}

/// A bound that suits the size of what moves: `share` (0.01 is one percent) of the larger of the skeleton's
/// extent at rest, its skins' reach included, and, for a skeleton without extent, the way its nodes travel in
/// `clips`. Metres; 0 if nothing has any size.
pub fn auto_error(skeleton: &Skeleton, clips: &[Clip], share: f64) -> f64 {
    let pose = crate::pose::ModelPose::of(skeleton, &LocalPose::rest(skeleton));
    let (mut low, mut high) = (glam::DVec3::INFINITY, glam::DVec3::NEG_INFINITY);
    for (joint, world) in skeleton.joints().iter().zip(&pose.joints) {
        let axes = world.matrix3;
        let scale = axes.x_axis.length().max(axes.y_axis.length()).max(axes.z_axis.length());
        let reach = glam::DVec3::splat(joint.reach.unwrap_or(0.0) * scale);
        low = low.min(world.translation - reach);
        high = high.max(world.translation + reach);
    }
    let size = if skeleton.is_empty() { 0.0 } else { (high - low).max_element() };
    if size > 0.0 {
        return share * size;
    }
    let mut travel = 0.0_f64;
    for clip in clips {
        for track in clip.tracks.iter().filter(|t| t.binding.property == Property::Translation) {
            let values = crate::sample::sample_track(&track.data, &track.data.key_times());
            for k in 0..3 {
                let axis = || values.iter().skip(k).step_by(3).copied();
                let range = axis().fold(f64::NEG_INFINITY, f64::max) - axis().fold(f64::INFINITY, f64::min);
                travel = travel.max(range);
            }
        }
    }
    share * travel
}

fn check(clip: &Clip, skeleton: &Skeleton, options: &Options) -> Result<(), ReduceError> {
    let shell = match options.shell {
        metric::Shell::Fixed(length) | metric::Shell::Reach { otherwise: length } => length,
    };
    let literal = match options.keys {
        Keys::Literal { tolerance, .. } => Some(tolerance),
        _ => None,
    };
    let bounds = [
        ("the largest error in the world", options.max_error),
        ("the shell", Some(shell)),
        ("the tolerance of translations", options.length_tolerance),
        ("the tolerance of rotations", options.angle_tolerance),
        ("the tolerance of scales", options.scale_tolerance),
        ("the tolerance of values", options.value_tolerance),
        ("the tolerance of the triplet rule", literal),
    ];
    let each = options.tolerances.iter().map(|t| ("a track's tolerance", Some(t.tolerance)));
    for (what, value) in bounds.into_iter().chain(each) {
        if let Some(value) = value
            && !(value.is_finite() && value >= 0.0)
        {
            return Err(ReduceError::BadBound { what, value });
        }
    }
    for (index, track) in clip.tracks.iter().enumerate() {
        if let Some(node) = track.binding.node
            && node >= skeleton.len()
            && metric::moves_node(&track.binding)
        {
            return Err(ReduceError::NoSuchNode {
                track: index,
                target: track.binding.target.clone(),
                property: track.binding.property.name().to_owned(),
                node,
                nodes: skeleton.len(),
            });
        }
    }
    Ok(())
}

fn curve_error(index: usize, track: &Track, error: CurveError) -> ReduceError {
    ReduceError::Curve {
        track: index,
        target: track.binding.target.clone(),
        property: track.binding.property.name().to_owned(),
        error,
    }
}

/// The times at which curved tracks are sampled besides their keys.
struct FrameTimes {
    frames: Vec<f64>,
    gap: f64,
}

impl FrameTimes {
    fn new(clip: &Clip, options: &Options, notes: &mut Vec<String>) -> Result<Self, ReduceError> {
        let curved = |t: &&Track| !crate::sample::is_straight(&t.data);
        let Some(keys) = clip.tracks.iter().filter(curved).map(|t| t.data.key_times().len()).max() else {
            return Ok(Self { frames: Vec::new(), gap: 0.0 });
        };
        let sample_error = |error| ReduceError::Sample { clip: clip.name.clone(), error };
        let times = clip.key_times();
        let start = times.first().copied().unwrap_or(clip.start()).max(clip.start());
        let end = times.last().copied().unwrap_or(clip.end()).min(clip.end()).max(start);
        let rate = match options.rate.or(clip.rate) {
            Some(rate) => {
                let samples = Frames::new(rate, start, end).map_err(sample_error)?.samples();
                if samples.saturating_add(keys) > options.sample_limit {
                    let limit = options.sample_limit;
                    return Err(sample_error(SampleError::TooMany { rate, seconds: end - start, limit }));
                }
                rate
            }
            None => {
                let rung = ladder(start, end, keys, options.sample_limit).map_err(sample_error)?;
                if !rung.passed_over.is_empty() {
                    notes.push(format!(
                        "curved tracks are sampled at {} Hz, because a higher rate of the ladder makes more than {} samples",
                        rung.rate, options.sample_limit
                    ));
                }
                rung.rate
            }
        };
        let frames = Frames::new(rate, start, end).map_err(sample_error)?.times();
        Ok(Self { frames, gap: 1e-3 / rate.as_f64() })
    }

    /// The times at which a track is sampled: its keys where they say everything, else the frames between its
    /// first and last key as well.
    fn times(&self, data: &TrackData) -> Vec<f64> {
        let keys = data.key_times();
        if crate::sample::is_straight(data) || keys.len() < 2 {
            return keys;
        }
        let inside: Vec<f64> =
            self.frames.iter().copied().filter(|t| *t > keys[0] && *t < keys[keys.len() - 1]).collect();
        merge_times(&keys, &inside, self.gap)
    }
}

/// Time of a track's last key.
fn last_key_of(track: &Track) -> f64 {
    track.data.curves().iter().map(|c| c.end()).fold(f64::NEG_INFINITY, f64::max)
}

/// Time of a clip's last key.
fn last_key(clip: &Clip) -> f64 {
    clip.tracks.iter().map(last_key_of).fold(f64::NEG_INFINITY, f64::max)
}

/// Gives the clip back a key at its last key time, if all that had one there have lost it: files know a clip's
/// length only from its keys.
fn hold_length(source: &Clip, result: &mut Clip) {
    let end = last_key(source);
    if end <= last_key(result) || end == f64::NEG_INFINITY {
        return;
    }
    let candidates = (0..source.tracks.len()).filter(|&k| last_key_of(&source.tracks[k]) == end);
    let Some(k) = candidates.min_by_key(|&k| result.tracks[k].data.kind().width()) else { return };
    let data = match &result.tracks[k].data {
        TrackData::Curve(curve) => with_key_at(curve, end).map(TrackData::Curve),
        // Components keep the key on the one that had it.
        TrackData::Axes { .. } | TrackData::Euler(_) => Some(source.tracks[k].data.clone()),
    };
    if let Some(data) = data {
        result.tracks[k].data = data;
    }
}

/// The curve with its last value once more, at `time` behind its last key.
fn with_key_at(curve: &Curve, time: f64) -> Option<Curve> {
    let width = curve.width();
    let CurveParts { kind, times, mut values, mut spans, mut tangents, before, after } =
        curve.parts().clone();
    let times: Arc<[f64]> = times.iter().copied().chain([time]).collect();
    values.extend_from_within(values.len() - width..);
    if let crate::curve::Spans::PerKey(kinds) = &mut spans {
        kinds.push(kinds.last().copied().unwrap_or(crate::curve::SpanKind::Linear));
    }
    if let Some(t) = &mut tangents {
        for row in [&mut t.leave, &mut t.arrive] {
            // Flat, so that the value is held.
            let n = row.len();
            row[n - width..].fill(0.0);
            row.extend(std::iter::repeat_n(0.0, width));
        }
        for row in [&mut t.leave_dt, &mut t.arrive_dt] {
            if !row.is_empty() {
                row.extend(std::iter::repeat_n(0.0, width));
            }
        }
    }
    Curve::new(CurveParts { kind, times, values, spans, tangents, before, after }).ok()
}

/// True if the track's value never differs from its rest value.
fn at_rest(track: &Track) -> bool {
    let width = track.data.kind().width();
    let times = metric_times(&track.data);
    let values = crate::sample::sample_track(&track.data, &times);
    track.rest.len() == width
        && values.chunks_exact(width.max(1)).all(|row| {
            let near = |sign: f64| row.iter().zip(&track.rest).all(|(a, b)| (a - sign * b).abs() <= 1e-6);
            near(1.0) || (track.data.kind() == crate::curve::ValueKind::Rotation && near(-1.0))
        })
}

/// A track's key times and the midpoints between them.
fn metric_times(data: &TrackData) -> Vec<f64> {
    let keys = data.key_times();
    let mut times: Vec<f64> = keys.windows(2).flat_map(|t| [t[0], t[0] + (t[1] - t[0]) / 2.0]).collect();
    times.extend(keys.last());
    times
}

/// True if another clip drives the same property to something else than its rest value.
fn moved_elsewhere(clips: &[Clip], index: usize, track: &Track) -> bool {
    clips
        .iter()
        .enumerate()
        .filter(|(k, _)| *k != index)
        .any(|(_, clip)| metric::find(clip, &track.binding).is_some_and(|other| !at_rest(other)))
}
