//! Clips into poses: one row of features at every interval.
//!
//! Pose k of a clip lies at its start + k intervals: up to and including the end, but not
//! the end of a loop, which is its start again. Around the ends of a clip that is no loop,
//! tags "do not use" that touch an end also end what may be looked at: no velocity and no
//! path reaches into them. Inside a clip they only leave poses out.
//!
//! What a bake leaves out and what a search could never find is in its [`BakeReport`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use inbetween::{Clip, Skeleton, TrackData};

use crate::categories::DO_NOT_USE;
use crate::database::{ChannelColumns, ClipSource, DatabaseOptions, MotionDatabase, Poses, Run};
use crate::error::MatchError;
use crate::motion::{Motion, joint};
use crate::schema::Schema;

/// A clip to be baked.
#[derive(Debug, Clone)]
pub struct BakeClip {
    /// The clip.
    pub clip: Arc<Clip>,
    /// The skeleton it moves; every clip of a bake must have the same.
    pub skeleton: Arc<Skeleton>,
    /// The file it was read from, for messages and the database; may be empty.
    pub file: String,
}

/// What came of one clip.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipReport {
    /// Its name.
    pub name: String,
    /// Rows stored, mirrored ones included.
    pub rows: usize,
    /// Poses left out by bit 31.
    pub do_not_use: usize,
    /// Poses left out because they look beyond an end.
    pub cut: usize,
    /// Whether it was taken as a loop.
    pub looped: bool,
}

/// What a bake did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BakeReport {
    /// Clip by clip, in the order given.
    pub clips: Vec<ClipReport>,
    /// Rows no search can return, each with the lower row that has the same features and
    /// categories and therefore always wins.
    pub unreachable: Vec<(u32, u32)>,
    /// Columns that do not vary, by channel and column name.
    pub constant: Vec<(String, String)>,
    /// Tags of the schema that hold for no moment of any clip, by number from 1, each with why.
    pub idle_tags: Vec<(usize, String)>,
}

/// Bakes clips into a database.
///
/// - `progress` is told each time a clip is done, from several threads.
/// - `threads`: how many clips are baked at a time; the result does not depend on it.
///
/// # Errors
/// Joints that are missing, clips whose skeletons differ, tracks a channel needs and a clip
/// lacks, features that are not finite, no clip, no row.
pub fn bake(
    clips: &[BakeClip],
    schema: &Schema,
    threads: usize,
    progress: &(dyn Fn() + Sync),
) -> Result<(MotionDatabase, BakeReport), MatchError> {
    let idle_tags = idle_tags(clips, schema);
    let (poses, clips) = poses(clips, schema, threads, progress)?;
    let options = DatabaseOptions {
        normalisation: schema.normalisation,
        format: schema.format,
        balance: schema.balance,
    };
    let mut database = MotionDatabase::new(poses, options)?;
    database.schema = schema.text.clone();
    let (unreachable, constant) = (unreachable(&database), constant(&database));
    let report = BakeReport { clips, unreachable, constant, idle_tags };
    Ok((database, report))
}

/// Tags that set nothing anywhere: a misspelt clip, or times at which no such clip plays.
fn idle_tags(clips: &[BakeClip], schema: &Schema) -> Vec<(usize, String)> {
    let mut idle = Vec::new();
    for (number, tag) in schema.tags.iter().enumerate() {
        let mut named = clips.iter().map(|c| &c.clip).filter(|c| tag.named(&c.name)).peekable();
        if named.peek().is_none() {
            let names: Vec<&str> = clips.iter().take(5).map(|c| c.clip.name.as_str()).collect();
            idle.push((
                number + 1,
                format!("no clip is called {:?}; they are {}", tag.clip, names.join(", "))
                    + if clips.len() > 5 { ", …" } else { "" },
            ));
        } else if named.all(|c| tag.from_s > c.end() || tag.to_s <= c.start()) {
            idle.push((
                number + 1,
                format!("no clip it names plays between {} s and {} s", tag.from_s, tag.to_s),
            ));
        }
    }
    idle
}

/// The raw features, categories and runs of clips, before anything is left out for bit 31.
///
/// # Errors
/// As [`bake`].
fn poses(
    clips: &[BakeClip],
    schema: &Schema,
    threads: usize,
    progress: &(dyn Fn() + Sync),
) -> Result<(Poses, Vec<ClipReport>), MatchError> {
    let Some(first) = clips.first() else {
        return Err(MatchError::NoRows("no clip was given".into()));
    };
    for other in clips {
        same_skeleton(first, other)?;
    }
    // Joints are looked up once, so that a missing one is named before any work.
    let mut joints = Vec::new();
    for channel in &schema.channels {
        let mut found = Vec::new();
        for name in channel.channel.joints() {
            found.push(joint(&first.skeleton, name, &format!("channel {:?}", channel.name))?);
        }
        joints.push(found);
    }
    let mut used: Vec<usize> = joints.iter().flatten().copied().collect();
    used.sort_unstable();
    used.dedup();
    let mut all = used.clone();
    if !schema.mirror.is_empty() {
        for node in &used {
            let name = schema.mirrored_name(&first.skeleton.joints()[*node].name);
            all.push(joint(&first.skeleton, &name, "mirror")?);
        }
        all.sort_unstable();
        all.dedup();
    }

    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, Result<Baked, MatchError>)> = std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(clip) = clips.get(at) else { return mine };
                mine.push((at, one_clip(clip, schema, &joints, &all)));
                progress();
            }
        };
        let helpers: Vec<_> = (1..threads.clamp(1, clips.len())).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for helper in helpers {
            done.extend(helper.join().expect("a bake does not panic"));
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);

    let mut poses = Poses {
        channels: schema
            .channels
            .iter()
            .map(|c| ChannelColumns {
                name: c.name.clone(),
                columns: c.channel.columns(),
                weight: c.weight,
                family: c.channel.family(),
            })
            .collect(),
        ..Poses::default()
    };
    let mut reports = Vec::new();
    for (at, baked) in done {
        let baked = baked?;
        let offset = poses.tags.len() as u32;
        poses.values.extend(baked.values);
        poses.tags.extend(baked.tags);
        poses.runs.extend(baked.runs.into_iter().map(|run| Run {
            clip: at as u32,
            first_row: run.first_row + offset,
            ..run
        }));
        poses.clips.push(baked.source);
        reports.push(baked.report);
    }
    Ok((poses, reports))
}

struct Baked {
    values: Vec<f32>,
    tags: Vec<u32>,
    runs: Vec<Run>,
    source: ClipSource,
    report: ClipReport,
}

fn one_clip(
    clip: &BakeClip,
    schema: &Schema,
    joints: &[Vec<usize>],
    used: &[usize],
) -> Result<Baked, MatchError> {
    let name = &clip.clip.name;
    let (start, end) = usable_range(&clip.clip, schema);
    let motion = Motion::new(&clip.clip, &clip.skeleton, schema, used, (start, end))?;
    let looped = motion.is_loop();
    let reach = schema
        .channels
        .iter()
        .map(|c| c.channel.reach_s())
        .fold((0.0f64, 0.0f64), |(a, b), (x, y)| (a.min(x), b.max(y)));
    let mut baked = Baked {
        values: Vec::new(),
        tags: Vec::new(),
        runs: Vec::new(),
        source: ClipSource {
            name: name.clone(),
            file: clip.file.clone(),
            duration_s: clip.clip.duration(),
            looped,
            content: clip_hash(&clip.clip, &clip.skeleton),
        },
        report: ClipReport { name: name.clone(), rows: 0, do_not_use: 0, cut: 0, looped },
    };
    let mut sides = vec![motion];
    if !schema.mirror.is_empty() {
        sides.push(sides[0].mirrored(schema, used)?);
    }
    let interval = schema.interval;
    // A clip of three minutes at 1000 poses a second is a mistake worth stopping at.
    let poses = ((clip.clip.duration() / interval.seconds()) + 1e-6).floor();
    if poses > 20_000_000.0 {
        return Err(MatchError::Bake(format!(
            "clip {name:?} is {} s long, which makes {poses} poses; take a longer interval",
            clip.clip.duration()
        )));
    }
    for motion in &mut sides {
        let mut open: Option<Run> = None;
        for k in 0..=poses as u32 {
            let time = clip.clip.start() + interval.times(k);
            if looped && k > 0 && time > clip.clip.end() - 1e-6 * interval.seconds() {
                break;
            }
            let tags = tags_at(&clip.clip, schema, time)?;
            let in_range = time >= start - 1e-9 && time <= end + 1e-9;
            let used = tags & DO_NOT_USE == 0 && in_range;
            let reached = motion.reaches(time + reach.0) && motion.reaches(time + reach.1);
            if !(used && reached) {
                baked.runs.extend(open.take());
                if !motion.is_mirrored() {
                    baked.report.do_not_use += usize::from(!used);
                    baked.report.cut += usize::from(used);
                }
                continue;
            }
            let from = baked.values.len();
            for (channel, joints) in schema.channels.iter().zip(joints) {
                channel.channel.bake(motion, joints, time, &mut baked.values)?;
            }
            if let Some(at) = baked.values[from..].iter().position(|v| !v.is_finite()) {
                return Err(MatchError::Bake(format!(
                    "clip {name:?} at {time} s: column {at} is {}; the clip holds numbers that are not finite there",
                    baked.values[from + at]
                )));
            }
            let run = open.get_or_insert_with(|| Run {
                clip: 0,
                mirrored: motion.is_mirrored(),
                first_row: baked.tags.len() as u32,
                rows: 0,
                first_pose: k,
                start_s: time,
                interval_s: interval.seconds(),
            });
            run.rows += 1;
            baked.tags.push(tags);
            baked.report.rows += 1;
        }
        baked.runs.extend(open);
    }
    Ok(baked)
}

/// The clip's range without the "do not use" tags of the schema that touch its ends.
pub(crate) fn usable_range(clip: &Clip, schema: &Schema) -> (f64, f64) {
    let (mut start, mut end) = (clip.start(), clip.end());
    if schema.is_loop(&clip.name) {
        return (start, end);
    }
    // Several tags may follow each other; each pass takes one off.
    for _ in 0..=schema.tags.len() {
        for tag in schema.tags.iter().filter(|t| t.bits & DO_NOT_USE != 0) {
            if tag.covers(&clip.name, start) && tag.to_s < end {
                start = start.max(tag.to_s);
            }
            if tag.named(&clip.name) && tag.from_s > start && tag.from_s <= end && tag.to_s >= end - 1e-9 {
                end = end.min(tag.from_s);
            }
        }
    }
    (start, end)
}

/// The category field of a moment: the schema's tags and the clip's own track together.
fn tags_at(clip: &Clip, schema: &Schema, time: f64) -> Result<u32, MatchError> {
    let mut bits =
        schema.tags.iter().filter(|tag| tag.covers(&clip.name, time)).fold(0, |bits, tag| bits | tag.bits);
    if let Some(wanted) = &schema.category_track {
        let track = clip
            .tracks
            .iter()
            .find(|t| t.binding.target == wanted.target && t.binding.property.name() == wanted.property);
        if let Some(track) = track {
            let value = field_at(&track.data, time);
            if !(value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0) {
                return Err(MatchError::Bake(format!(
                    "clip {:?} at {time} s: the category track {} of {:?} is {value}, but a category field is a whole number from 0 to 2³² − 1",
                    clip.name, wanted.property, wanted.target
                )));
            }
            bits |= value as u32;
        }
    }
    Ok(bits)
}

/// A bit field is never interpolated: the value of the key at or before the time counts.
fn field_at(data: &TrackData, time: f64) -> f64 {
    let curves = data.curves();
    let Some(curve) = curves.first() else { return data_value(data, time) };
    let after = curve.times().partition_point(|t| *t <= time + 1e-9);
    curve.value(after.saturating_sub(1))[0]
}

fn data_value(data: &TrackData, time: f64) -> f64 {
    let mut out = vec![0.0; data.kind().width()];
    data.eval(time, &mut out);
    out.first().copied().unwrap_or(0.0)
}

fn same_skeleton(a: &BakeClip, b: &BakeClip) -> Result<(), MatchError> {
    if Arc::ptr_eq(&a.skeleton, &b.skeleton) {
        return Ok(());
    }
    let (x, y) = (a.skeleton.joints(), b.skeleton.joints());
    let place = |c: &BakeClip| {
        if c.file.is_empty() {
            format!("clip {:?}", c.clip.name)
        } else {
            format!("clip {:?} of {}", c.clip.name, c.file)
        }
    };
    let differ = |what: String| {
        Err(MatchError::Bake(format!(
            "{} and {} have different skeletons: {what}; bake clips of one character only, or retarget them first",
            place(a),
            place(b)
        )))
    };
    if x.len() != y.len() {
        return differ(format!("{} nodes against {}", x.len(), y.len()));
    }
    for (node, (p, q)) in x.iter().zip(y).enumerate() {
        if p.name != q.name {
            return differ(format!("node {node} is {:?} in one and {:?} in the other", p.name, q.name));
        }
        if p.parent != q.parent {
            return differ(format!("node {:?} hangs on different parents", p.name));
        }
        // A centimetre: files of one character are often exported apart.
        if (p.rest.translation - q.rest.translation).length() > 0.01 {
            return differ(format!(
                "node {:?} rests {:.3} m apart",
                p.name,
                (p.rest.translation - q.rest.translation).length()
            ));
        }
    }
    Ok(())
}

/// Rows that a lower row with the same features and categories always beats.
fn unreachable(database: &MotionDatabase) -> Vec<(u32, u32)> {
    let columns = database.columns();
    let mut seen: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
    let mut list = Vec::new();
    for row in 0..database.len() as u32 {
        let key: Vec<u32> = (0..columns).map(|c| (database.normalised(row, c) + 0.0).to_bits()).collect();
        match seen.entry((database.tags_of(row), key)) {
            std::collections::hash_map::Entry::Occupied(first) => list.push((row, *first.get())),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(row);
            }
        }
    }
    list
}

fn constant(database: &MotionDatabase) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let mut column = 0;
    for channel in database.channels() {
        for name in &channel.columns {
            let first = database.normalised(0, column);
            if (0..database.len() as u32).all(|row| database.normalised(row, column) == first) {
                list.push((channel.name.clone(), name.clone()));
            }
            column += 1;
        }
    }
    list
}

/// A hash of all a bake reads from a clip: keys, ranges and the skeleton. FNV-1a, 64 bit.
#[must_use]
pub fn clip_hash(clip: &Clip, skeleton: &Skeleton) -> u64 {
    let mut hash = Hash::default();
    hash.text(&clip.name);
    hash.number(clip.start());
    hash.number(clip.end());
    for node in skeleton.joints() {
        hash.text(&node.name);
        hash.word(node.parent.map_or(u64::MAX, |p| p as u64));
        for x in node
            .rest
            .translation
            .to_array()
            .into_iter()
            .chain(node.rest.rotation.to_array())
            .chain(node.rest.scale.to_array())
        {
            hash.number(x);
        }
    }
    for track in &clip.tracks {
        hash.text(&track.binding.target);
        hash.text(track.binding.property.name());
        hash.word(u64::from(track.enabled));
        for curve in track.data.curves() {
            let parts = curve.parts();
            parts.times.iter().chain(&parts.values).for_each(|x| hash.number(*x));
            for key in 0..curve.len() {
                hash.word(curve.span(key) as u64);
            }
            if let Some(t) = &parts.tangents {
                t.leave
                    .iter()
                    .chain(&t.arrive)
                    .chain(&t.leave_dt)
                    .chain(&t.arrive_dt)
                    .for_each(|x| hash.number(*x));
            }
        }
    }
    hash.value
}

/// FNV-1a over 64-bit words: not for secrets, for telling whether a source has changed.
pub(crate) struct Hash {
    pub(crate) value: u64,
}

impl Default for Hash {
    fn default() -> Self {
        Self { value: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Hash {
    pub(crate) fn word(&mut self, word: u64) {
        self.value = (self.value ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        // FNV moves bits up only; without this, high bits of a word would be lost to low ones.
        self.value ^= self.value >> 29;
    }

    fn number(&mut self, number: f64) {
        self.word(number.to_bits());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        text.bytes().for_each(|b| self.word(u64::from(b)));
    }
}

/// The features of a clip at a time, in the units of the bake: a question to a database.
///
/// # Errors
/// As [`bake`].
pub fn features_at(clip: &BakeClip, schema: &Schema, time_s: f64) -> Result<Vec<f32>, MatchError> {
    let mut joints = Vec::new();
    for channel in &schema.channels {
        let find = |name: &&str| joint(&clip.skeleton, name, &format!("channel {:?}", channel.name));
        joints.push(channel.channel.joints().iter().map(find).collect::<Result<Vec<_>, _>>()?);
    }
    let (start, end) = usable_range(&clip.clip, schema);
    if !(clip.clip.start()..=clip.clip.end()).contains(&time_s) {
        return Err(MatchError::Bake(format!(
            "clip {:?} runs from {} s to {} s, so there is no pose at {time_s} s",
            clip.clip.name,
            clip.clip.start(),
            clip.clip.end()
        )));
    }
    let used: Vec<usize> = joints.iter().flatten().copied().collect();
    let mut motion = Motion::new(&clip.clip, &clip.skeleton, schema, &used, (start, end))?;
    let mut features = Vec::new();
    for (channel, joints) in schema.channels.iter().zip(&joints) {
        channel.channel.bake(&mut motion, joints, time_s, &mut features)?;
    }
    Ok(features)
}
