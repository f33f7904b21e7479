//! From the model to a compressed clip: which times carry frames, which tracks go into lanes and
//! which stay keys, and the loop that measures the finished bytes and tries again until they hold.

use std::sync::Arc;

use inbetween::glam::DVec3;
use inbetween::math::angle_between;
use inbetween::metric::{Shell, check_times, shell_offsets};
use inbetween::playback::root_motion::guess_root;
use inbetween::sample::is_straight;
use inbetween::{
    Clip, Extrapolation, FrameRate, LocalPose, ModelPose, Property, Skeleton, SpanKind, Track, TrackData,
    TrackMask, Transform, ValueKind, math,
};

use crate::clip::{CompressedClip, pose_property};
use crate::content::{Group, Lane, Target, Times, ValueLane, segment_start};
use crate::encode::{self, Effort, Encoded, PoseSource, Tree, World, log8};
use crate::format::{Fields, Payload, VERSIONS, Widths, write_file, write_payload};
use crate::head::{ClipHead, Kept, NodeState, TrackHead, code_clip, write_skeleton};
use crate::quantize::{Fitter, exp8};

/// How to compress.
#[derive(Clone, Debug)]
pub struct CompressOptions {
    /// Largest distance in the world, metres, at every node's origin and shell points, at every
    /// key time and midpoint. Default 0.0001 (0.01 cm). Ten times as much saves a third.
    pub max_error: f64,
    /// Largest turn, radians, on top of that, of every node on its own. Default none.
    pub max_angle: Option<f64>,
    /// Which points of a node count. Default 3 cm along its axes.
    pub shell: Shell,
    /// Other bounds for some nodes (index in the skeleton), metres.
    pub node_errors: Vec<(usize, f64)>,
    /// Largest error of tracks that move no node, in their own unit. Default: a ten-thousandth of
    /// the track's range.
    pub value_error: Option<f64>,
    /// True if the clip loops: its last pose becomes its first one exactly where the two agree
    /// within half the bound. Where they agree within a thousandth of it that happens anyway, also
    /// for single components (a rotation, one axis of a translation) of a pose that does not close.
    pub closed: bool,
    /// Frames a second to store, in place of those the keys suggest.
    pub rate: Option<FrameRate>,
    /// The node from which root motion is to be taken. Default: the highest node that travels
    /// ([`guess_root`]), or none for additive clips.
    pub root: Option<usize>,
    /// Scales tried for each segment at most. Default 6; more is slower and hardly smaller.
    pub trials: usize,
}

impl Default for CompressOptions {
    fn default() -> Self {
        Self {
            max_error: 1e-4,
            max_angle: None,
            shell: Shell::default(),
            node_errors: Vec::new(),
            value_error: None,
            closed: false,
            rate: None,
            root: None,
            trials: 6,
        }
    }
}

/// Why a clip could not be compressed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompressError {
    /// An option cannot be used.
    #[error("{what} is {value}; it must be a finite number above 0")]
    Option {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// f32 cannot carry the bound here.
    #[error(
        "clip {clip:?}: node {node:?} is off by {error:.3e} m at {time} s where {bound:e} m are allowed, however fine the \
         steps; 32 bits do not resolve it at this size or this far from the origin, so allow more, or say the true length of \
         the file's unit if the model is not as large as it reads"
    )]
    BoundNotMet {
        /// Clip.
        clip: String,
        /// Node that is furthest off.
        node: String,
        /// By how much, metres.
        error: f64,
        /// When, seconds.
        time: f64,
        /// What was allowed, metres.
        bound: f64,
    },
    /// More frames than a clip may have.
    #[error("clip {clip:?} would need {frames} frames, more than the {limit} a file may hold; cut it")]
    TooLong {
        /// Clip.
        clip: String,
        /// Frames it would need.
        frames: usize,
        /// Frames allowed.
        limit: usize,
    },
    /// The written bytes could not be read back: a bug here.
    #[error("clip {clip:?}: what was written cannot be read back ({error}); please report this")]
    Unreadable {
        /// Clip.
        clip: String,
        /// What reading said.
        error: String,
    },
}

/// Where the largest error of a clip is.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Metres.
    pub value: f64,
    /// The node, by index in the skeleton.
    pub node: usize,
    /// Its name.
    pub target: String,
    /// Seconds.
    pub time: f64,
}

/// What became of a clip.
#[derive(Clone, Debug, PartialEq)]
pub struct ClipReport {
    /// Its name.
    pub name: String,
    /// Frames stored.
    pub frames: usize,
    /// Bytes of the same poses as plain f32 frames, 40 a node and frame.
    pub raw_bytes: usize,
    /// Bytes of the clip's chunk.
    pub bytes: usize,
    /// Keys of the source.
    pub source_keys: usize,
    /// The largest error in the world, measured with the decoder on the bytes; `None` if nothing
    /// moves.
    pub worst: Option<Worst>,
    /// Largest error over bound among nodes; at most 1.
    pub share_of_bound: f64,
    /// What was not kept as it was.
    pub notes: Vec<String>,
}

/// A compressed clip before it is put into a file.
#[derive(Clone, Debug)]
pub struct ClipChunk {
    pub(crate) head: ClipHead,
    pub(crate) groups: Vec<Group>,
    /// What became of it.
    pub report: ClipReport,
}

const MAX_FRAMES: usize = 1 << 24;

/// Compresses one clip of a skeleton.
///
/// # Errors
/// See [`CompressError`].
pub fn compress_clip(
    clip: &Clip,
    skeleton: &Skeleton,
    options: &CompressOptions,
) -> Result<ClipChunk, CompressError> {
    positive("the largest error", options.max_error)?;
    for (_, e) in &options.node_errors {
        positive("the largest error of a node", *e)?;
    }
    if let Some(a) = options.max_angle {
        positive("the largest angle", a)?;
    }
    if let Some(v) = options.value_error {
        positive("the largest error of a value", v)?;
    }
    let mut notes = Vec::new();
    let plain = plain_skeleton(skeleton);
    let mut tree = judged_tree(clip, skeleton, &plain, options);
    let mut source = ClipSource::new(clip, skeleton, Times::Listed(vec![clip.start()]), 1);
    let checks = judged_times(clip);
    let (times, frames) = choose_times(clip, &tree, &mut source, &checks, options)?;
    source.set_times(times.clone(), frames);
    let closed = frames > 2 && is_closed(clip, &tree, &mut source, options);
    if options.closed && !closed {
        notes.push(
            "the last pose is too far from the first to be made one, so the seam is kept as it is".to_owned(),
        );
    }
    let stored = frames - usize::from(closed);
    let segments = segment_count(stored);
    let mut share = 0.985;
    let mut last = None;
    let mut even = false;
    for attempt in 0..10 {
        let effort = Effort { share, trials: options.trials.max(1), even };
        let encoded = encode::encode(&tree, &mut source, times.clone(), closed, segments, effort);
        let mut notes = notes.clone();
        if !encoded.meets {
            notes.push(
                "tracks that end on their first value could not be made to do so exactly within the bound"
                    .to_owned(),
            );
        }
        let chunk =
            assemble_clip(clip, skeleton, &tree, &times, frames, closed, encoded, options, &mut notes);
        let mut chunk = chunk;
        let bytes = chunk_bytes(&mut chunk, None);
        let opened = CompressedClip::read(&bytes, VERSIONS[0], Some(&plain))
            .map_err(|e| CompressError::Unreadable { clip: clip.name.clone(), error: e.to_string() })?;
        let (worst, ratio) = verify(clip, skeleton, &plain, &tree, &opened, &checks);
        let turned = turned(clip, skeleton, options.max_angle, &opened, &checks);
        let error = worst.as_ref().map_or(0.0, |w| w.value);
        chunk.head.measured = error as f32;
        chunk.report = ClipReport {
            name: clip.name.clone(),
            frames: stored,
            raw_bytes: plain_frames(clip, frames) * skeleton.len() * 40,
            bytes: bytes.len(),
            source_keys: clip.key_count(),
            worst,
            share_of_bound: turned.iter().copied().fold(ratio, f64::max),
            notes: chunk.report.notes.clone(),
        };
        if chunk.report.share_of_bound <= 1.0 {
            return Ok(chunk);
        }
        if ratio > 1.0 {
            share *= (0.97 / ratio).clamp(0.2, 0.97);
        }
        // Finer steps alone will not do.
        if attempt == 4 && ratio > 1.0 {
            (even, share) = (true, 0.985);
        }
        // What is scaled small moves little when it turns: such nodes are held more tightly.
        for (bound, t) in tree.bounds.iter_mut().zip(&turned).filter(|(_, t)| **t > 1.0) {
            *bound *= (0.97 / t).clamp(0.02, 0.97);
        }
        last = Some(chunk);
    }
    let worst = last.and_then(|c| c.report.worst);
    Err(CompressError::BoundNotMet {
        clip: clip.name.clone(),
        node: worst.as_ref().map_or(String::new(), |w| w.target.clone()),
        error: worst.as_ref().map_or(0.0, |w| w.value),
        time: worst.as_ref().map_or(0.0, |w| w.time),
        bound: options.max_error,
    })
}

/// The tree with the bound of every node and the points at which it holds.
fn judged_tree(clip: &Clip, skeleton: &Skeleton, plain: &Skeleton, options: &CompressOptions) -> Tree {
    let shell = shell_offsets(skeleton, options.shell);
    let lengths: Vec<f64> = ModelPose::of(skeleton, &LocalPose::rest(skeleton))
        .joints
        .iter()
        .map(|m| m.matrix3.x_axis.length().max(m.matrix3.y_axis.length()).max(m.matrix3.z_axis.length()))
        .collect();
    let mut bounds = vec![options.max_error; skeleton.len()];
    for &(n, e) in &options.node_errors {
        if let Some(b) = bounds.get_mut(n) {
            *b = e;
        }
    }
    if let Some(angle) = options.max_angle {
        for (n, b) in bounds.iter_mut().enumerate() {
            // A turn moves at least one of three perpendicular points by √(2/3) of its distance.
            *b = b.min(0.8 * angle * shell[n].min_element() * lengths[n].max(1e-9));
        }
    }
    let exact = exact_properties(clip, skeleton);
    Tree {
        parents: skeleton.joints().iter().map(|j| j.parent).collect(),
        order: skeleton.order().to_vec(),
        inherit: skeleton.joints().iter().map(|j| j.inherit).collect(),
        bounds,
        shell,
        exact,
        rest: plain.joints().iter().map(|j| j.rest).collect(),
    }
}

/// Keys and midpoints within the clip's range.
fn judged_times(clip: &Clip) -> Vec<f64> {
    check_times(clip).into_iter().filter(|t| (clip.start()..=clip.end()).contains(t)).collect()
}

/// What an opened clip keeps of the clip it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The largest error in the world; `None` where there are no nodes.
    pub worst: Option<Worst>,
    /// Largest error over its bound among nodes; at most 1 where the bound holds.
    pub share_of_bound: f64,
}

/// Measures a clip read back from a file against its source, under the bound of `options`: at every
/// key and midpoint, at every node's origin and shell points, by the model's own poses.
pub fn measure(
    clip: &Clip,
    skeleton: &Skeleton,
    options: &CompressOptions,
    opened: &CompressedClip<'_>,
) -> Measured {
    let plain = plain_skeleton(skeleton);
    let tree = judged_tree(clip, skeleton, &plain, options);
    let checks = judged_times(clip);
    let (worst, moved) = verify(clip, skeleton, &plain, &tree, opened, &checks);
    let turned = turned(clip, skeleton, options.max_angle, opened, &checks);
    Measured { worst, share_of_bound: turned.into_iter().fold(moved, f64::max) }
}

/// How far each node's own rotation is off at most, over the angle that is allowed; nothing where
/// none is stated. A node that has no size at all at that moment shows no turn.
fn turned(
    clip: &Clip,
    skeleton: &Skeleton,
    max_angle: Option<f64>,
    opened: &CompressedClip<'_>,
    checks: &[f64],
) -> Vec<f64> {
    let Some(most) = max_angle else { return Vec::new() };
    let mut local = LocalPose::default();
    let mut narrow = vec![crate::JointTransform::IDENTITY; skeleton.len()];
    let mut ratios = vec![0.0f64; skeleton.len()];
    for &time in checks {
        local.sample(clip, skeleton, time, &TrackMask::all());
        opened.pose(time, &mut narrow);
        for ((ratio, a), b) in ratios.iter_mut().zip(&local.joints).zip(&narrow) {
            if a.scale.abs().min_element() > 0.0 {
                *ratio = ratio.max(angle_between(a.rotation, b.to_model().rotation) / most);
            }
        }
    }
    ratios
}

/// Frames that plain poses at the clip's own rate would be, if it has one: that is what a player without
/// a codec would keep, not a frame at each place where a curve bends.
fn plain_frames(clip: &Clip, stored: usize) -> usize {
    clip.rate.map_or(stored, |r| ((clip.duration() * r.as_f64()).round() as usize + 1).min(stored))
}

fn positive(what: &'static str, value: f64) -> Result<(), CompressError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(CompressError::Option { what, value }) }
}

/// Segments for that many frames: about sixteen frames each.
fn segment_count(stored: usize) -> usize {
    ((stored + 8) / 16).max(1)
}

/// The skeleton with pivots folded into its rest pose: what a file keeps.
pub(crate) fn plain_skeleton(skeleton: &Skeleton) -> Skeleton {
    let rest = LocalPose::rest(skeleton);
    let joints = skeleton
        .joints()
        .iter()
        .zip(&rest.joints)
        .map(|(j, t)| {
            let mut j = j.clone();
            j.rest = narrow(t);
            j.pivot = None;
            j
        })
        .collect();
    Skeleton::new(joints).expect("the same tree")
}

/// What is left of a transform in f32: files keep no more.
fn narrow(t: &Transform) -> Transform {
    let f = |v: f64| f64::from(v as f32);
    Transform {
        translation: DVec3::from_array(t.translation.to_array().map(f)),
        rotation: glam::DQuat::from_array(t.rotation.to_array().map(f)),
        scale: DVec3::from_array(t.scale.to_array().map(f)),
    }
}

fn property_index(p: &Property) -> Option<usize> {
    match p {
        Property::Rotation => Some(0),
        Property::Translation => Some(1),
        Property::Scale => Some(2),
        _ => None,
    }
}

/// True if some span of the track jumps, or repeating it outside its keys does.
fn has_steps(data: &TrackData) -> bool {
    let rewinds = |rule| matches!(rule, Extrapolation::Cycle { .. });
    data.curves().iter().any(|c| {
        (rewinds(c.parts().before) || rewinds(c.parts().after)) && c.value(0) != c.value(c.len() - 1)
            || c.kind() == ValueKind::Switch
            || (0..c.len().saturating_sub(1))
                .any(|i| matches!(c.span(i), SpanKind::Step | SpanKind::StepNext))
    })
}

/// A node's property that jumps is kept as keys; so is nothing else.
fn exact_properties(clip: &Clip, skeleton: &Skeleton) -> Vec<[bool; 3]> {
    let mut exact = vec![[false; 3]; skeleton.len()];
    for t in clip.tracks.iter().filter(|t| t.enabled) {
        if let (Some(n), Some(p)) = (t.binding.node, property_index(&t.binding.property))
            && let Some(e) = exact.get_mut(n)
            && t.data.key_count() > t.data.curves().len()
            && has_steps(&t.data)
            && !matches!(t.data, TrackData::Euler(_))
            // A pivot mixes rotation into translation: no longer one track's keys.
            && skeleton.joints()[n].pivot.is_none()
        {
            e[p] = true;
        }
    }
    exact
}

/// A clip's poses at frames and midpoints.
struct ClipSource<'a> {
    clip: &'a Clip,
    skeleton: &'a Skeleton,
    times: Times,
    frames: usize,
    pose: LocalPose,
    mask: TrackMask,
    /// The first samples as they were asked for first; at most [`KEPT`] transforms.
    kept: Vec<Transform>,
}

/// Transforms a source keeps, 80 bytes each. The encoder reads every pose twice or more; of takes
/// longer than this the rest is sampled anew each time.
const KEPT: usize = 1 << 19;

impl<'a> ClipSource<'a> {
    fn new(clip: &'a Clip, skeleton: &'a Skeleton, times: Times, frames: usize) -> Self {
        Self {
            clip,
            skeleton,
            times,
            frames,
            pose: LocalPose::default(),
            mask: TrackMask::all(),
            kept: Vec::new(),
        }
    }
    fn set_times(&mut self, times: Times, frames: usize) {
        (self.times, self.frames) = (times, frames);
        self.kept.clear();
    }
    fn at(&mut self, time: f64, out: &mut [Transform]) {
        self.pose.sample(self.clip, self.skeleton, time, &self.mask);
        out.copy_from_slice(&self.pose.joints);
    }
    fn time(&self, index: usize) -> f64 {
        let a = self.times.at(index / 2);
        if index.is_multiple_of(2) { a } else { a + (self.times.at(index / 2 + 1) - a) / 2.0 }
    }
}

impl PoseSource for ClipSource<'_> {
    fn frames(&self) -> usize {
        self.frames
    }
    fn sample(&mut self, index: usize, out: &mut [Transform]) {
        let n = out.len();
        if let Some(kept) = self.kept.get(index * n..(index + 1) * n) {
            out.copy_from_slice(kept);
            return;
        }
        let t = self.time(index);
        self.at(t, out);
        if self.kept.len() == index * n && self.kept.len() + n <= KEPT {
            self.kept.extend_from_slice(out);
        }
    }
}

/// Judges how far poses blended between two frames are from the clip's own.
struct Blend<'a> {
    tree: &'a Tree,
    a: Vec<Transform>,
    b: Vec<Transform>,
    truth: Vec<Transform>,
    worlds: [Vec<World>; 2],
}

impl<'a> Blend<'a> {
    fn new(tree: &'a Tree) -> Self {
        let n = tree.parents.len();
        let t = vec![Transform::IDENTITY; n];
        Self {
            tree,
            a: t.clone(),
            b: t.clone(),
            truth: t,
            worlds: [vec![World::ORIGIN; n], vec![World::ORIGIN; n]],
        }
    }

    /// Largest error over bound of blending frames at `from` and `to` at `time` between them.
    fn ratio(&mut self, source: &mut ClipSource, from: f64, to: f64, time: f64) -> f64 {
        source.at(from, &mut self.a);
        source.at(to, &mut self.b);
        source.at(time, &mut self.truth);
        let u = (time - from) / (to - from);
        let mut worst = 0.0f64;
        for &j in &self.tree.order {
            let (a, b) = (&self.a[j], &self.b[j]);
            let sign = if a.rotation.dot(b.rotation) < 0.0 { -1.0 } else { 1.0 };
            let q = a.rotation * (1.0 - u) + b.rotation * (sign * u);
            let mut t = Transform {
                translation: a.translation.lerp(b.translation, u),
                rotation: if q.length_squared() > 1e-12 { math::normalize(q) } else { a.rotation },
                scale: a.scale.lerp(b.scale, u),
            };
            let (truth, exact) = (&self.truth[j], self.tree.exact[j]);
            if exact[0] {
                t.rotation = truth.rotation;
            }
            if exact[1] {
                t.translation = truth.translation;
            }
            if exact[2] {
                t.scale = truth.scale;
            }
            for (w, t) in self.worlds.iter_mut().zip([&t, truth]) {
                let parent = self.tree.parents[j].map_or(World::ORIGIN, |p| w[p]);
                w[j] = parent.child(t, self.tree.inherit[j]);
            }
            let e = self.worlds[0][j].error(&self.worlds[1][j], self.tree.shell[j]) / self.tree.bounds[j];
            worst = worst.max(e);
        }
        worst
    }
}

impl Blend<'_> {
    /// True if the frames blended last are nearly half a turn apart in a rotation that is not kept as keys.
    fn is_half_turn(&self) -> bool {
        let pairs = self.a.iter().zip(&self.b).zip(&self.tree.exact);
        pairs.into_iter().any(|((a, b), exact)| !exact[0] && a.rotation.dot(b.rotation).abs() < LEAST_DOT)
    }
}

/// Share of the bound that blending between frames may take. Fewer frames save more than the finer
/// steps that are then needed cost: on curved FBX files 0.75 makes half the bytes of 0.2.
const BLEND_SHARE: f64 = 0.75;

/// Frames at which the clip is stored, and their number.
fn choose_times(
    clip: &Clip,
    tree: &Tree,
    source: &mut ClipSource,
    checks: &[f64],
    options: &CompressOptions,
) -> Result<(Times, usize), CompressError> {
    let (start, end) = (clip.start(), clip.end());
    if end <= start || clip.key_count() == 0 {
        return Ok((Times::Listed(vec![start]), 1));
    }
    let mut keys: Vec<f64> = clip.key_times().into_iter().filter(|t| *t > start && *t < end).collect();
    keys.insert(0, start);
    keys.push(end);
    keys.dedup_by(|b, a| *b - *a < 1e-9 * (1.0 + a.abs()));
    if keys.len() > MAX_FRAMES {
        return Err(CompressError::TooLong {
            clip: clip.name.clone(),
            frames: keys.len(),
            limit: MAX_FRAMES,
        });
    }
    let gap = keys.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    // The rate the keys themselves run at, the file's, and its multiples for curved spans.
    let mut rates: Vec<FrameRate> = Vec::new();
    match options.rate {
        Some(r) => rates.push(r),
        None => {
            let own = (keys.len() > 2).then(|| FrameRate::from_hz(1.0 / gap, 2e-3)).flatten();
            for r in own.into_iter().chain(clip.rate) {
                for times in [1, 2, 4] {
                    if let Some(r) = r.num().checked_mul(times).and_then(|n| FrameRate::new(n, r.den())) {
                        rates.push(r);
                    }
                }
            }
            rates.sort_by(|a, b| a.as_f64().total_cmp(&b.as_f64()));
            rates.dedup();
        }
    }
    let mut blend = Blend::new(tree);
    for r in rates {
        let frames = (((end - start) * r.as_f64()) - 1e-4).ceil() as usize + 1;
        let sparse =
            frames > 3 * keys.len() + 64 && options.rate.is_none() && (frames > 4096 || clip.rate.is_none());
        if !(2..=MAX_FRAMES).contains(&frames) || sparse {
            continue;
        }
        let times = Times::Uniform { start, num: r.num(), den: r.den(), end };
        if blends(&times, frames, checks, source, &mut blend) {
            return Ok((times, frames));
        }
    }
    // Otherwise the keys' own times, with more where the spans bend.
    let mut list = keys;
    for _ in 0..12 {
        let mut finer = Vec::with_capacity(list.len() * 2);
        for w in list.windows(2) {
            finer.push(w[0]);
            let at = |u: f64| w[0] + (w[1] - w[0]) * u;
            let bends = w[1] - w[0] > 1e-6
                && [0.5, 0.25, 0.75].iter().any(|&u| {
                    blend.ratio(source, w[0], w[1], at(u)) > BLEND_SHARE * 0.2 || blend.is_half_turn()
                });
            if bends {
                finer.push(at(0.5));
            }
        }
        finer.push(list[list.len() - 1]);
        let done = finer.len() == list.len() || finer.len() > MAX_FRAMES / 2;
        list = finer;
        if done {
            break;
        }
    }
    let list = fewest(&list, checks, source, &mut blend);
    Ok((Times::Listed(list.clone()), list.len()))
}

/// Those of the `list` that are needed: from each time to the farthest at which blending keeps to its
/// share at every time of the list and every check time passed over. Tracks with keys at times of
/// their own, as FBX has them, would otherwise give the whole body a frame at each.
fn fewest(list: &[f64], checks: &[f64], source: &mut ClipSource, blend: &mut Blend) -> Vec<f64> {
    let (first, last) = (list[0], list[list.len() - 1]);
    let mut all: Vec<f64> =
        list.iter().chain(checks).copied().filter(|t| (first..=last).contains(t)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|b, a| *b - *a < 1e-9 * (1.0 + a.abs()));
    let mut kept = vec![0];
    let mut stride = 1;
    while kept[kept.len() - 1] + 1 < all.len() {
        let from = kept[kept.len() - 1];
        let mut spans = |to: usize| {
            // From the middle out, where a chord is farthest off.
            let n = to - from - 1;
            (0..n).all(|k| {
                let offset = if k.is_multiple_of(2) { n / 2 + k / 2 } else { n / 2 - k.div_ceil(2) };
                let ratio = blend.ratio(source, all[from], all[to], all[from + 1 + offset]);
                ratio <= BLEND_SHARE && !blend.is_half_turn()
            })
        };
        // Neighbours blend; the last stride is a good guess.
        let last = all.len() - 1;
        let (mut good, mut bad) = (from + 1, last + 1);
        let mut reach = stride;
        while good < last && bad > last {
            let to = (from + reach).min(last);
            if to <= good || spans(to) {
                good = good.max(to);
            } else {
                bad = to;
            }
            reach *= 2;
        }
        while good + 1 < bad {
            let middle = good + (bad - good) / 2;
            if spans(middle) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        stride = good - from;
        kept.push(good);
    }
    kept.into_iter().map(|i| all[i]).collect()
}

/// True if blending between frames keeps to its share at every check time and between every two frames.
fn blends(times: &Times, frames: usize, checks: &[f64], source: &mut ClipSource, blend: &mut Blend) -> bool {
    if straight_between(source.clip, times, frames) {
        return true;
    }
    for &t in checks {
        let at = times.between(t, frames);
        if at.blend == 0.0 {
            continue;
        }
        let (a, b) = (times.at(at.first), times.at(at.second));
        // A frame within a hair is that frame.
        if t - a < 1e-6 * (b - a) || b - t < 1e-6 * (b - a) {
            continue;
        }
        // Midpoints are judged below, and again by the encoder.
        if (t - (a + (b - a) / 2.0)).abs() <= 1e-4 * (b - a) {
            continue;
        }
        if blend.ratio(source, a, b, t) > BLEND_SHARE {
            return false;
        }
    }
    for f in 0..frames - 1 {
        let (a, b) = (times.at(f), times.at(f + 1));
        let mut far = |blend: &mut Blend, u: f64| blend.ratio(source, a, b, a + (b - a) * u) > BLEND_SHARE;
        if far(blend, 0.5) || blend.is_half_turn() || (b - a > LONG_FRAME && far(blend, 0.25)) {
            return false;
        }
    }
    true
}

/// True if nothing bends between frames: every span is straight and every key at a frame. Captured
/// and baked motion is like that, and then no pose has to be looked at.
fn straight_between(clip: &Clip, times: &Times, frames: usize) -> bool {
    let mut last: Option<*const [f64]> = None;
    clip.tracks.iter().filter(|t| t.enabled).all(|track| {
        if track.binding.node.is_none() || pose_property(&track.binding.property).is_none() {
            return true;
        }
        is_straight(&track.data)
            && (track.data.kind() != ValueKind::Rotation || turns_little(&track.data))
            && track.data.curves().iter().all(|c| {
                // Tracks of captured motion share one array of times.
                let array = Arc::as_ptr(c.times());
                if last.is_some_and(|p| std::ptr::eq(p, array)) {
                    return true;
                }
                last = Some(array);
                c.times().iter().all(|&t| {
                    let at = times.between(t, frames);
                    at.blend < 1e-5 || at.blend > 1.0 - 1e-5
                })
            })
    })
}

/// True if the last pose is to be the first.
/// Rotations nearer to half a turn apart than 10° are not blended: which way they went would hang on a
/// rounding. This is the cosine of half of 170°.
const LEAST_DOT: f64 = 0.087;

/// Frames farther apart than this, seconds, are looked into between their midpoints too: a blend lags
/// behind an even turn, by 0.004 of the cube of its angle at most. Within a shorter frame nobody sees it.
const LONG_FRAME: f64 = 0.05;

/// True if blending from key to key keeps to a rotation's turns: none is nearly half around, and those
/// that take long are of 30° at most.
fn turns_little(data: &TrackData) -> bool {
    let near = |a: &[f64], b: &[f64], gap: f64| {
        let dot = a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>().abs();
        dot >= if gap > LONG_FRAME { 0.966 } else { LEAST_DOT }
    };
    match data {
        TrackData::Curve(c) => {
            (1..c.len()).all(|i| near(c.value(i - 1), c.value(i), c.times()[i] - c.times()[i - 1]))
        }
        TrackData::Euler(_) => {
            let (mut before, mut here) = (vec![0.0; 4], vec![0.0; 4]);
            let times = data.key_times();
            times.iter().enumerate().all(|(i, t)| {
                std::mem::swap(&mut before, &mut here);
                data.eval(*t, &mut here);
                i == 0 || near(&before, &here, t - times[i - 1])
            })
        }
        TrackData::Axes { .. } => true,
    }
}

fn is_closed(clip: &Clip, tree: &Tree, source: &mut ClipSource, options: &CompressOptions) -> bool {
    let n = tree.parents.len();
    let (mut a, mut b) = (vec![Transform::IDENTITY; n], vec![Transform::IDENTITY; n]);
    source.at(clip.start(), &mut a);
    source.at(clip.end(), &mut b);
    let mut worlds = [vec![World::ORIGIN; n], vec![World::ORIGIN; n]];
    let mut worst = 0.0f64;
    for &j in &tree.order {
        for (w, t) in worlds.iter_mut().zip([&a[j], &b[j]]) {
            let parent = tree.parents[j].map_or(World::ORIGIN, |p| w[p]);
            w[j] = parent.child(t, tree.inherit[j]);
        }
        worst = worst.max(worlds[0][j].error(&worlds[1][j], tree.shell[j]) / tree.bounds[j]);
    }
    worst <= if options.closed { 0.5 } else { 1e-3 }
}

/// A track's keys as one of the two shapes a file keeps.
fn keys_of(track: &Track) -> TrackData {
    match &track.data {
        TrackData::Euler(_) => {
            let times = track.data.key_times();
            let times = if times.is_empty() { vec![0.0] } else { times };
            let values = times.iter().flat_map(|t| track.value_at(*t)).collect();
            match inbetween::Curve::linear(ValueKind::Rotation, times, values) {
                Ok(c) => TrackData::Curve(c),
                Err(_) => track.data.clone(),
            }
        }
        other => other.clone(),
    }
}

#[allow(clippy::too_many_arguments)]
fn assemble_clip(
    clip: &Clip,
    skeleton: &Skeleton,
    tree: &Tree,
    times: &Times,
    frames: usize,
    closed: bool,
    encoded: Encoded,
    options: &CompressOptions,
    notes: &mut Vec<String>,
) -> ClipChunk {
    let mut head = ClipHead {
        name: clip.name.clone(),
        start: clip.start(),
        end: clip.end(),
        rate: clip.rate,
        wrap: clip.wrap,
        additive: clip.additive,
        bound: options.max_error as f32,
        shell: tree.shell.first().map_or(0.0, |s| s.x as f32),
        constants: encoded.constants,
        nodes: encoded.kept.iter().map(|k| NodeState { kept: *k, driven: [false; 3] }).collect(),
        markers: clip.markers.clone(),
        root: options
            .root
            .or_else(|| if clip.additive { None } else { guess_root(clip, skeleton) })
            .filter(|n| *n < skeleton.len())
            .map(|n| n as u32),
        ..ClipHead::default()
    };
    let mut values = Group { times: times.clone(), frames, closed, ..Group::default() };
    for track in &clip.tracks {
        if !track.enabled {
            notes.push(format!(
                "track {} of {:?} is switched off and was left out",
                track.binding.property.name(),
                track.binding.target
            ));
            continue;
        }
        let on_node = match (track.binding.node, property_index(&track.binding.property)) {
            (Some(n), Some(p)) if n < skeleton.len() => Some((n, p)),
            _ => None,
        };
        if let Some((n, p)) = on_node {
            head.nodes[n].driven[p] = true;
            // With a pivot the translation follows the rotation.
            if skeleton.joints()[n].pivot.is_some() && p != 1 {
                head.nodes[n].driven[1] = true;
            }
            if head.nodes[n].kept[p] != Kept::Keys {
                continue;
            }
        }
        let mut t = TrackHead {
            binding: track.binding.clone(),
            kind: track.data.kind(),
            rest: if track.rest.len() == track.data.kind().width() {
                track.rest.clone()
            } else {
                track.value_at(clip.start())
            },
            keys: Some(keys_of(track)),
        };
        if on_node.is_none()
            && let Some(lanes) = value_lanes(track, times, frames, closed, head.tracks.len(), options)
        {
            t.keys = None;
            values.values.extend(lanes);
        }
        head.tracks.push(t);
    }
    let mut groups = Vec::new();
    if !encoded.group.rotations.is_empty() || !encoded.group.values.is_empty() {
        groups.push(encoded.group);
    }
    if !values.values.is_empty() {
        values.scales = vec![0; segment_count(values.stored())];
        groups.push(values);
    }
    let report = ClipReport {
        name: clip.name.clone(),
        frames: 0,
        raw_bytes: 0,
        bytes: 0,
        source_keys: 0,
        worst: None,
        share_of_bound: 0.0,
        notes: std::mem::take(notes),
    };
    ClipChunk { head, groups, report }
}

/// A track of values as lanes on the clip's frames, where that is allowed and smaller than its
/// keys.
fn value_lanes(
    track: &Track,
    times: &Times,
    frames: usize,
    closed: bool,
    index: usize,
    options: &CompressOptions,
) -> Option<Vec<ValueLane>> {
    let kind = track.data.kind();
    if has_steps(&track.data) || matches!(kind, ValueKind::Rotation | ValueKind::Switch) || frames < 4 {
        return None;
    }
    let width = kind.width();
    // Keys take about four bytes a number and eight a time.
    let as_keys: usize = track.data.curves().iter().map(|c| c.len() * (c.width() * 4 + 8)).sum();
    let stored = frames - usize::from(closed);
    let rows: Vec<Vec<f64>> = (0..frames).map(|f| track.value_at(times.at(f))).collect();
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for v in rows.iter().flatten() {
        low = low.min(*v);
        high = high.max(*v);
    }
    let bound = options.value_error.unwrap_or(1e-4 * (high - low).max(1e-6));
    if !bound.is_finite() || bound <= 0.0 {
        return None;
    }
    // All components together must stay within the bound, half of it lost between frames.
    let each = bound / (width as f64).sqrt();
    let mut truth = vec![0.0; width];
    let mut marks = track.data.key_times();
    let halves: Vec<f64> = marks.windows(2).map(|w| w[0] + (w[1] - w[0]) / 2.0).collect();
    marks.extend(halves);
    for t in marks {
        let at = times.between(t, frames);
        track.data.eval(t.clamp(times.at(0), times.at(frames - 1)), &mut truth);
        let u = f64::from(at.blend);
        for c in 0..width {
            let v = rows[at.first][c] * (1.0 - u) + rows[at.second][c] * u;
            if (v - truth[c]).abs() > 0.45 * each {
                return None;
            }
        }
    }
    if closed && rows[0].iter().zip(&rows[frames - 1]).any(|(a, b)| (a - b).abs() > 0.25 * each) {
        return None;
    }
    let step8 = log8(each);
    let step = f64::from(exp8(step8) * crate::quantize::QUARTERS[2]);
    let segments = segment_count(stored);
    let mut lanes = Vec::new();
    for c in 0..width {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for r in &rows {
            least = least.min(r[c]);
            most = most.max(r[c]);
        }
        let bias = encode::near_bias((least + most) / 2.0, step8);
        // f32 must resolve the step.
        if (least.abs().max(most.abs())) * 1e-7 > 0.1 * step || (most - least) / step > 1.0e6 {
            return None;
        }
        let mut numbers: Vec<i32> =
            rows[..stored].iter().map(|r| ((r[c] - f64::from(bias)) / step).round() as i32).collect();
        // Steps are the same in all segments, so equal numbers are equal values.
        if !closed && (rows[0][c] - rows[frames - 1][c]).abs() <= 1e-3 * each {
            numbers[frames - 1] = numbers[0];
        }
        lanes.push(ValueLane {
            target: Target::Track(index as u32, c as u16),
            lane: Lane { step8, bias, quarters: vec![2; segments], numbers },
        });
    }
    let bits: usize = lanes.iter().map(|l| estimate(&l.lane, segments, stored)).sum();
    (bits / 8 < as_keys).then_some(lanes)
}

fn estimate(lane: &Lane, segments: usize, stored: usize) -> usize {
    (0..segments)
        .map(|s| {
            let n = &lane.numbers[segment_start(s, segments, stored)..segment_start(s + 1, segments, stored)];
            let f = Fitter::new(n.len());
            (0..=f.max_degree())
                .filter_map(|d| f.pack(d, 2, n, 0).map(|p| p.form.width() as usize * n.len() + 10 * (d + 1)))
                .min()
                .unwrap_or(0)
                + 8
        })
        .sum()
}

/// Compares the opened bytes with the clip, in the world, by [`inbetween::ModelPose`].
fn verify(
    clip: &Clip,
    skeleton: &Skeleton,
    plain: &Skeleton,
    tree: &Tree,
    opened: &CompressedClip<'_>,
    checks: &[f64],
) -> (Option<Worst>, f64) {
    let n = skeleton.len();
    if n == 0 {
        return (None, 0.0);
    }
    let mask = TrackMask::all();
    let mut local = LocalPose::default();
    let mut result = LocalPose { joints: vec![Transform::IDENTITY; n] };
    let (mut a, mut b) = (ModelPose::default(), ModelPose::default());
    let mut narrow = vec![crate::JointTransform::IDENTITY; n];
    let (mut worst, mut ratio): (Option<Worst>, f64) = (None, 0.0);
    for &time in checks {
        local.sample(clip, skeleton, time, &mask);
        opened.pose(time, &mut narrow);
        for (r, t) in result.joints.iter_mut().zip(&narrow) {
            *r = t.to_model();
        }
        a.update(skeleton, &local);
        b.update(plain, &result);
        for j in 0..n {
            let (a, b, s) = (&a.joints[j], &b.joints[j], tree.shell[j]);
            let (o, d) = (a.translation - b.translation, a.matrix3 - b.matrix3);
            let points = [o, o + d.x_axis * s.x, o + d.y_axis * s.y, o + d.z_axis * s.z];
            let mut e = points.iter().fold(0.0f64, |e, p| e.max(p.length_squared())).sqrt();
            if points.iter().any(|p| p.is_nan()) {
                e = f64::INFINITY;
            }
            ratio = ratio.max(e / tree.bounds[j]);
            if worst.as_ref().is_none_or(|w| e > w.value) {
                worst = Some(Worst { value: e, node: j, target: skeleton.joints()[j].name.clone(), time });
            }
        }
    }
    (worst, ratio)
}

/// The chunk of a clip: head length, head, payloads (runtime), or the at-rest form.
pub(crate) fn chunk_bytes(chunk: &mut ClipChunk, at_rest: Option<()>) -> Vec<u8> {
    if at_rest.is_some() {
        return crate::at_rest::write(&mut chunk.head, &chunk.groups);
    }
    runtime_chunk(&mut chunk.head, &chunk.groups)
}

/// A clip's chunk in the runtime form.
pub(crate) fn runtime_chunk(head: &mut ClipHead, list: &[Group]) -> Vec<u8> {
    let payloads = list.iter().map(write_payload).collect();
    runtime_bytes(head, list.iter().map(described).collect(), payloads)
}

/// The same from payloads that are written already.
pub(crate) fn runtime_bytes(head: &mut ClipHead, list: Vec<Group>, payloads: Vec<Payload>) -> Vec<u8> {
    let mut groups: Vec<(Group, Vec<Widths>, usize)> =
        list.into_iter().zip(&payloads).map(|(g, p)| (g, p.widths.clone(), p.bytes.len())).collect();
    let mut f = Fields::writer();
    code_clip(&mut f, head, &mut groups, true);
    let head = f.finish();
    let mut out = Vec::with_capacity(4 + head.len() + payloads.iter().map(|p| p.bytes.len()).sum::<usize>());
    out.extend((head.len() as u32).to_le_bytes());
    out.extend(head);
    payloads.iter().for_each(|p| out.extend(&p.bytes));
    out
}

/// A group without its numbers: what a head describes.
pub(crate) fn described(g: &Group) -> Group {
    let mut d = g.clone();
    for l in crate::format::lanes_mut(&mut d) {
        l.numbers = Vec::new();
        l.quarters = Vec::new();
    }
    d
}

/// A file and what became of each clip.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// The `.ibc` file.
    pub bytes: Vec<u8>,
    /// One a clip.
    pub reports: Vec<ClipReport>,
}

/// Puts compressed clips of one skeleton into a file, in the runtime form or the smaller one for
/// storage.
pub fn assemble(skeleton: &Skeleton, clips: Vec<ClipChunk>, at_rest: bool) -> Compressed {
    let mut chunks = vec![(*b"SKEL", write_skeleton(&plain_skeleton(skeleton)))];
    let mut reports = Vec::new();
    for mut c in clips {
        let bytes = chunk_bytes(&mut c, at_rest.then_some(()));
        c.report.bytes = bytes.len();
        chunks.push((*b"CLIP", bytes));
        reports.push(c.report);
    }
    Compressed { bytes: write_file(at_rest, &chunks), reports }
}

/// Compresses clips of a skeleton into one file.
///
/// Clips are independent: to use several cores, call [`compress_clip`] for each and [`assemble`].
///
/// # Errors
/// The first clip that fails; see [`CompressError`].
pub fn compress(
    skeleton: &Skeleton,
    clips: &[Clip],
    options: &CompressOptions,
    at_rest: bool,
) -> Result<Compressed, CompressError> {
    let chunks = clips.iter().map(|c| compress_clip(c, skeleton, options)).collect::<Result<Vec<_>, _>>()?;
    Ok(assemble(skeleton, chunks, at_rest))
}
