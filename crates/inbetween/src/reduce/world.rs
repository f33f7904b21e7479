//! Sharing out a bound in the world over the tracks of a clip.
//!
//! The start is careful: each track gets the bound divided by the number of moving nodes on the longest chain
//! through its node, as an angle over the reach of what hangs on it at each time, or as a length under its
//! parents' scale. Were errors always to add up, this would just meet the bound; they never all do, so it
//! leaves much of it unused, and `decimate` spends that.
//!
//! Long clips are worked through in stages of some thousand times that overlap, so memory and the working set
//! stay small whatever the length.

use std::ops::Range;

use glam::DVec3;

use super::ball::{BallCone, Rotations, Vectors};
use super::cubic::{HermiteSpans, Measure, one_sided};
use super::decimate::{Rules, Search};
use super::moving::{Between, Moving, Part, Value, apart};
use super::options::{Keys, Options, Sharing};
use super::report::Fate;
use super::search;
use super::stage::{Rig, Stage, Truth};
use super::track::{Plan, authored, beyond, slopes, tolerance_of};
use super::{FrameTimes, rotation};
use crate::clip::Clip;
use crate::curve::{Curve, CurveError};
use crate::metric;
use crate::sample::{is_straight, sample_track};
use crate::skeleton::Skeleton;
use crate::track::{Property, TrackData};

/// Grid times of one stage, and how many of them the next one repeats.
const STAGE: usize = 2048;
const OVERLAP: usize = 512;

/// Everything the reduction of the tracks that move nodes works on.
pub(crate) struct Motion<'a> {
    pub rig: Rig<'a>,
    pub truth: Vec<Truth<'a>>,
    pub moving: Vec<Moving>,
    /// Whether the source of each moving track is cubic, with tangents of its own.
    pub authored: Vec<bool>,
    /// Every key time and every midpoint.
    pub times: Vec<f64>,
}

/// A track that moves a node, with the times at which it is sampled.
pub(crate) struct Source<'a> {
    pub track: usize,
    pub node: usize,
    pub part: Part,
    pub data: &'a TrackData,
    /// Increasing; `None` for a track that plays as it is.
    pub times: Option<Vec<f64>>,
    pub tolerance: f64,
}

impl<'a> Motion<'a> {
    pub fn new(
        skeleton: &'a Skeleton,
        shell: &[DVec3],
        sources: &[Source<'a>],
        grid: Vec<f64>,
        between: Between,
    ) -> Self {
        let mut moving = Vec::new();
        let mut authored_tracks = Vec::new();
        for source in sources {
            let Some(times) = &source.times else { continue };
            let mut flat = sample_track(source.data, times);
            let authored = authored(source.data).is_some();
            let width = if source.part == Part::Rotation { 4 } else { 3 };
            if source.part == Part::Rotation {
                one_sided(&mut flat);
            }
            let samples: Vec<Value> = flat
                .chunks_exact(width)
                .map(|row| [row[0], row[1], row[2], row.get(3).copied().unwrap_or(0.0)])
                .collect();
            let mut at = 0;
            let grid_of = times
                .iter()
                .map(|&t| {
                    at += grid[at..].partition_point(|&g| g < t);
                    at
                })
                .collect();
            let n = times.len();
            let mut track = Moving {
                track: source.track,
                node: source.node,
                part: source.part,
                between,
                times: times.clone(),
                values: samples.clone(),
                samples,
                leave: Vec::new(),
                arrive: Vec::new(),
                smooth: Vec::new(),
                next: Vec::new(),
                previous: Vec::new(),
                needs: Vec::new(),
                count: 0,
                grid: grid_of,
                tolerance: source.tolerance,
            };
            track.keep(&(0..n).collect::<Vec<_>>());
            if between == Between::Cubic {
                let (leave, arrive) = slopes(source.data, times, &flat);
                let rows = |flat: &[f64]| -> Vec<Value> {
                    flat.chunks_exact(width)
                        .map(|row| [row[0], row[1], row[2], row.get(3).copied().unwrap_or(0.0)])
                        .collect()
                };
                track.smooth = rows(&leave);
                if authored {
                    track.leave = rows(&leave);
                    track.arrive = rows(&arrive);
                } else {
                    track.chords();
                }
            }
            moving.push(track);
            authored_tracks.push(authored);
        }
        let rig = Rig::new(skeleton, shell, &moving);
        let truth = sources.iter().map(|s| Truth { node: s.node, part: s.part, data: s.data }).collect();
        Self { rig, truth, moving, authored: authored_tracks, times: grid }
    }

    fn stages(&self) -> Vec<Range<usize>> {
        let n = self.times.len();
        let mut ranges = Vec::new();
        let mut start = 0;
        loop {
            let end = (start + STAGE).min(n);
            ranges.push(start..end);
            if end == n {
                return ranges;
            }
            start = end - OVERLAP;
        }
    }

    /// How far the world moves at most per unit of error of each track, by sample: metres per radian, metre,
    /// or unit of scale.
    ///
    /// And how far out any node gets, metres.
    pub fn levers(&self) -> (Vec<Vec<f64>>, f64) {
        let mut extent = 0.0_f64;
        let mut levers: Vec<Vec<f64>> = self.moving.iter().map(|m| vec![0.0; m.times.len()]).collect();
        for range in self.stages() {
            let stage = Stage::new(&self.rig, &self.truth, &self.moving, &self.times, range.clone());
            extent = extent.max(stage.extent());
            for (track, levers) in self.moving.iter().zip(&mut levers) {
                let place = self.rig.place[track.node];
                for (s, &g) in track.grid.iter().enumerate() {
                    if range.contains(&g) {
                        levers[s] = match track.part {
                            Part::Translation => {
                                let m = stage.parent(g, place).matrix3;
                                m.x_axis.length().max(m.y_axis.length()).max(m.z_axis.length())
                            }
                            Part::Rotation => f64::from(stage.reach[stage.at(g, place)]),
                            // What hangs on the node reaches as far as its scale lets it.
                            Part::Scale => {
                                let scale = track.samples[s].iter().fold(0.0_f64, |m, x| m.max(x.abs()));
                                if scale > 1e-3 {
                                    f64::from(stage.reach[stage.at(g, place)]) / scale
                                } else {
                                    0.0
                                }
                            }
                        };
                    }
                }
            }
        }
        for (track, levers) in self.moving.iter().zip(&mut levers) {
            if track.part == Part::Scale {
                // A scale may be zero, where nothing reaches anywhere but any error would show.
                let most = levers.iter().copied().fold(0.0, f64::max);
                let most = if most > 0.0 { most } else { 1.0 };
                levers.fill(most);
            }
        }
        (levers, extent)
    }

    /// Every sample a key again, with the source's own slopes.
    fn keep_all(&mut self, index: usize, sources: &[Source<'a>]) {
        let track = &mut self.moving[index];
        let n = track.times.len();
        let data = sources.iter().find(|s| s.track == track.track).map(|s| s.data);
        // An authored cubic needs no more keys than it has.
        let authored = data.and_then(authored);
        let kept: Vec<usize> = match authored {
            Some(curve) if track.between == Between::Cubic => (0..n)
                .filter(|&s| curve.times().binary_search_by(|t| t.total_cmp(&track.times[s])).is_ok())
                .collect(),
            _ => (0..n).collect(),
        };
        track.keep(&kept);
        if track.between == Between::Cubic && !self.authored[index] {
            track.chords();
        }
    }

    /// Number of moving nodes on the longest chain through each moving track's node.
    pub fn depths(&self) -> Vec<f64> {
        let n = self.rig.len();
        let mut own = vec![0_usize; n];
        for track in &self.moving {
            own[self.rig.place[track.node]] = 1;
        }
        let mut above = vec![0; n];
        let mut below = vec![0; n];
        for p in 0..n {
            above[p] = own[p] + self.rig.parent[p].map_or(0, |q| above[q]);
        }
        for p in (0..n).rev() {
            below[p] += own[p];
            if let Some(q) = self.rig.parent[p] {
                below[q] = below[q].max(below[p]);
            }
        }
        self.moving
            .iter()
            .map(|t| {
                let p = self.rig.place[t.node];
                (above[p] + below[p] - own[p]) as f64
            })
            .collect()
    }

    /// Keeps few keys under a tolerance per sample.
    pub fn keep_within(&mut self, index: usize, tolerances: &[f64]) {
        if self.moving[index].between == Between::Cubic {
            self.keep_within_cubic(index, tolerances);
            return;
        }
        let track = &mut self.moving[index];
        let width = if track.part == Part::Rotation { 4 } else { 3 };
        let flat: Vec<f64> = track.samples.iter().flat_map(|v| v[..width].to_vec()).collect();
        let kept = if width == 4 {
            search::nearly_optimal(&mut BallCone::new(&track.times, Rotations(&flat), tolerances), 6)
        } else {
            search::nearly_optimal(&mut BallCone::new(&track.times, Vectors::<3>(&flat), tolerances), 6)
        };
        track.keep(&kept);
    }

    /// The same with cubic keys. The source is straight between its samples, and a cubic may swing out there, so
    /// the points halfway are tested as well.
    fn keep_within_cubic(&mut self, index: usize, tolerances: &[f64]) {
        let track = &mut self.moving[index];
        let n = track.times.len();
        let width = if track.part == Part::Rotation { 4 } else { 3 };
        let (mut times, mut flat, mut slopes, mut limits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        track.keep(&(0..n).collect::<Vec<_>>());
        track.between = Between::Line;
        for s in 0..n {
            times.push(track.times[s]);
            flat.extend_from_slice(&track.samples[s][..width]);
            slopes.extend_from_slice(&track.smooth[s][..width]);
            limits.push(tolerances[s]);
            if s + 1 < n {
                let middle = track.times[s] + (track.times[s + 1] - track.times[s]) / 2.0;
                times.push(middle);
                flat.extend_from_slice(&track.span(s, s + 1).at(middle)[..width]);
                slopes.extend(std::iter::repeat_n(0.0, width));
                limits.push(tolerances[s].min(tolerances[s + 1]));
            }
        }
        track.between = Between::Cubic;
        let measure = if width == 4 { Measure::Angle } else { Measure::Length };
        let spans = HermiteSpans::new(&times, &flat, &slopes, &slopes, width, measure, limits.as_slice());
        let kept: Vec<usize> =
            search::nearly_optimal(&mut spans.keys_every(2), 4).into_iter().map(|s| s / 2).collect();
        track.keep(&kept);
        track.chords();
        for pair in kept.windows(2) {
            // Neighbouring samples are joined by the straight line they were joined by.
            if pair[1] > pair[0] + 1 {
                track.leave[pair[0]] = track.smooth[pair[0]];
                track.arrive[pair[1]] = track.smooth[pair[1]];
            }
        }
    }

    /// The largest error now, metres.
    fn worst(&self) -> f64 {
        let mut worst = 0.0_f64;
        for range in self.stages() {
            let stage = Stage::new(&self.rig, &self.truth, &self.moving, &self.times, range.clone());
            for g in range {
                for p in 0..self.rig.len() {
                    if self.rig.parent[p].is_none() {
                        worst = worst.max(stage.error2_now(g, p).0);
                    }
                }
            }
        }
        worst.sqrt()
    }

    /// Takes out keys, stage by stage.
    fn decimate(&mut self, rules: Rules) {
        for range in self.stages() {
            let mut stage = Stage::new(&self.rig, &self.truth, &self.moving, &self.times, range);
            let mut search = Search::new(&mut stage, &self.times, rules);
            for share in SHARES {
                search.round(&mut self.moving, share);
            }
        }
    }
}

/// The part of the bound that each round may use up.
const SHARES: [f64; 6] = [0.4, 0.6, 0.8, 0.9, 1.0, 1.0];

/// A track whose farthest sample from the first moves nothing by more than this part of the bound keeps one key.
const STILL: f64 = 0.02;

/// Reduces the tracks planned for [`Plan::World`] and puts them into `result`.
///
/// A cubic track that would need as many straight keys as it has of its own, or more, plays on as it was drawn,
/// and so does one of curved angles or components (see [`Options::keep_components`]).
/// That is decided by trying: the others are then reduced once more with it in place.
pub(super) fn reduce(
    clip: &Clip,
    skeleton: &Skeleton,
    options: &Options,
    plans: &[Plan],
    frames: &FrameTimes,
    result: &mut Clip,
    fates: &mut [Fate],
) -> Result<(), (usize, CurveError)> {
    let mut as_drawn = vec![false; clip.tracks.len()];
    loop {
        let moving = attempt(clip, skeleton, options, plans, frames, &as_drawn)?;
        let mut again = false;
        for (track, curve, flat) in &moving {
            let data = &clip.tracks[*track].data;
            let drawn = match data {
                TrackData::Curve(_) => options.keys == Keys::Linear && authored(data).is_some(),
                TrackData::Axes { .. } | TrackData::Euler(_) => options.keep_components && !is_straight(data),
            };
            if flat.is_none() && drawn && curve.len() >= data.key_times().len() {
                as_drawn[*track] = true;
                again = true;
            }
        }
        if again {
            continue;
        }
        for (track, curve, flat) in moving {
            if let Some(error) = flat {
                fates[track] = Fate::Flattened { error };
            }
            result.tracks[track].data = TrackData::Curve(beyond(curve, &clip.tracks[track].data));
        }
        for (fate, as_drawn) in fates.iter_mut().zip(as_drawn) {
            if as_drawn {
                *fate = Fate::Kept("its own keys are fewer");
            }
        }
        return Ok(());
    }
}

/// A track's index, its curve, and how far off it is where it was flattened to one key.
type Reduced = (usize, Curve, Option<f64>);

/// The reduced curves of the tracks planned for the world, but for those that play on `as_drawn`.
fn attempt(
    clip: &Clip,
    skeleton: &Skeleton,
    options: &Options,
    plans: &[Plan],
    frames: &FrameTimes,
    as_drawn: &[bool],
) -> Result<Vec<Reduced>, (usize, CurveError)> {
    let bound = options.max_error.expect("planned under a bound in the world");
    let between = if options.keys == Keys::Cubic { Between::Cubic } else { Between::Line };
    let checked = metric::check_times(clip);
    let mut sources = Vec::new();
    for (k, track) in clip.tracks.iter().enumerate() {
        let (Some(node), true) = (track.binding.node, track.enabled) else { continue };
        let part = match track.binding.property {
            Property::Translation => Part::Translation,
            Property::Rotation => Part::Rotation,
            Property::Scale => Part::Scale,
            _ => continue,
        };
        let reduced = plans[k] == Plan::World && !as_drawn[k];
        sources.push(Source {
            track: k,
            node,
            part,
            data: &track.data,
            times: reduced.then(|| sample_times(frames, &track.data, &checked)),
            tolerance: tolerance_of(track, options).unwrap_or(f64::INFINITY),
        });
    }
    let shell = metric::shell_offsets(skeleton, options.shell);
    let mut motion = Motion::new(skeleton, &shell, &sources, grid(clip, &sources), between);
    let (mut levers, mut extent) = motion.levers();
    // Frames may be too far apart for a curved track: what is lost between them would be lost for good.
    let curved = |source: &Source<'_>| {
        source.times.is_some()
            && !is_straight(source.data)
            && !(between == Between::Cubic && authored(source.data).is_some())
    };
    if sources.iter().any(curved) {
        let depths = motion.depths();
        for (k, track) in motion.moving.iter().enumerate() {
            let longest = levers[k].iter().copied().fold(0.0, f64::max);
            let tolerance = 0.25 * bound / depths[k] / longest.max(1e-12);
            if let Some(source) = sources.iter_mut().find(|s| s.track == track.track && curved(s)) {
                source.times = Some(refine(source.data, source.part, &track.times, tolerance));
            }
        }
        motion = Motion::new(skeleton, &shell, &sources, grid(clip, &sources), between);
        (levers, extent) = motion.levers();
    }
    // What rounding to 32 bits on the way into a file may add: half a unit in the last place of a coordinate
    // that far out, on each of a few links, and a little for angles.
    let limit = (bound * (1.0 - 1e-4) - 4.0 * extent * f64::from(f32::EPSILON) / 2.0).max(bound / 2.0);
    let depths = motion.depths();
    let mut flat = vec![None; motion.moving.len()];
    for (k, track) in motion.moving.iter_mut().enumerate() {
        let first = track.samples[0];
        let still = track.samples.iter().map(|s| apart(track.part, *s, first)).fold(0.0, f64::max);
        let moved = (0..track.times.len()).map(|s| apart(track.part, track.samples[s], first) * levers[k][s]);
        let same = track.samples.iter().all(|s| *s == first);
        if same || (moved.fold(0.0, f64::max) <= STILL * limit && still <= track.tolerance) {
            track.keep(&[0]);
            flat[k] = Some(still);
        }
    }
    // The careful start, more careful still if it must be; at the last every sample stays.
    let mut share = 1.0;
    loop {
        for k in 0..motion.moving.len() {
            if flat[k] == Some(0.0) || (flat[k].is_some() && share >= 0.05) {
                continue;
            }
            flat[k] = None;
            if share < 0.05 || (between == Between::Cubic && motion.authored[k]) {
                motion.keep_all(k, &sources);
                continue;
            }
            let own = motion.moving[k].tolerance;
            let longest = levers[k].iter().copied().fold(0.0, f64::max);
            let tolerances: Vec<f64> = levers[k]
                .iter()
                .map(|lever| if options.sharing == Sharing::ByDepth { longest } else { *lever })
                .map(|lever| (share * limit / depths[k] / lever.max(1e-12)).min(own))
                .collect();
            motion.keep_within(k, &tolerances);
        }
        if share < 0.05 || options.sharing == Sharing::ByDepth || motion.worst() <= limit {
            break;
        }
        share /= 2.0;
    }
    if options.sharing == Sharing::Together {
        // Of a cubic a trial has twice the unknowns.
        let points = if between == Between::Cubic { 20 } else { 12 };
        motion.decimate(Rules { bound: limit, refit: options.refit, steps: 3, hopeless: 6.0, points });
    }

    motion
        .moving
        .iter()
        .zip(flat)
        .map(|(track, flat)| {
            let curve = if flat.is_some() { track.first_key() } else { track.curve() };
            Ok((track.track, curve.map_err(|error| (track.track, error))?, flat))
        })
        .collect()
}

/// The times at which a track is sampled. A curved one is sampled at every time the result will be judged at as
/// well, so that with all samples kept it is off nowhere.
fn sample_times(frames: &FrameTimes, data: &TrackData, checked: &[f64]) -> Vec<f64> {
    let times = frames.times(data);
    if is_straight(data) || times.len() < 2 {
        return times;
    }
    let (first, last) = (times[0], times[times.len() - 1]);
    let inside = checked.iter().copied().filter(|t| *t > first && *t < last);
    let mut all: Vec<f64> = times.iter().copied().chain(inside).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.dedup();
    all
}

/// Samples a curved track more densely where straight lines between its samples are further off than
/// `tolerance`, by halving spans up to six times.
fn refine(data: &TrackData, part: Part, times: &[f64], tolerance: f64) -> Vec<f64> {
    let value = |time: f64| -> Value {
        let mut row = [0.0; 4];
        data.eval(time, if part == Part::Rotation { &mut row } else { &mut row[..3] });
        row
    };
    let between = |a: Value, b: Value, u: f64| match part {
        Part::Rotation => rotation::slerp(a, b, u),
        _ => std::array::from_fn(|k| a[k] + (b[k] - a[k]) * u),
    };
    let mut out = times[..1].to_vec();
    for pair in times.windows(2) {
        let mut ends = vec![(pair[1], 0)];
        while let Some(&(end, halved)) = ends.last() {
            let start = out[out.len() - 1];
            let (a, b) = (value(start), value(end));
            let near = [0.25, 0.5, 0.75]
                .iter()
                .all(|&u| apart(part, between(a, b, u), value(start + (end - start) * u)) <= tolerance);
            let middle = start + (end - start) / 2.0;
            if near || halved == 6 || middle <= start || middle >= end {
                out.push(end);
                ends.pop();
            } else {
                ends.push((middle, halved + 1));
            }
        }
    }
    out
}

/// All times that matter: the check times of the clip, both sides of every jump, and the samples of curved tracks with the midpoints
/// between them.
fn grid(clip: &Clip, sources: &[Source<'_>]) -> Vec<f64> {
    let mut times = metric::check_times(clip);
    times.extend(metric::beside_jumps(clip));
    for source in sources {
        if let Some(own) = &source.times
            && !is_straight(source.data)
        {
            times.extend_from_slice(own);
            times.extend(own.windows(2).map(|t| t[0] + (t[1] - t[0]) / 2.0));
        }
    }
    // Every sample must be found again in the grid, to the bit.
    times.extend(sources.iter().filter_map(|s| s.times.as_ref()).flatten());
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    times
}
