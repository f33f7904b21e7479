//! Writes BVH: a skeleton and a row of numbers for every frame.
//!
//! BVH knows joints that are offset, moved and turned, on an even grid of frames; nothing else.
//! Angles that already are turns about axes are written as they are, as far as frames and keys
//! coincide. Any other rotation is taken apart in one order and its angles are unwrapped, so that
//! they run on from frame to frame. Numbers are written in the shortest decimal that reads back as
//! the same bits. Where a node is scaled, pivots or leaves out its parent's scale, the nodes'
//! places in the world are kept and the local ones follow from them.

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Axis, AxisName, Clip, EulerBetween, EulerCurve, FrameRate, LocalPose, ModelPose, Property, ScaleInherit,
    Skeleton, Track, TrackData, TrackMask,
};

use super::DEFAULT_UNIT;
use super::euler::{angles, turn_near};
use crate::convention::{self, AxisMap};
use crate::{FormatError, Import, Note, Severity};

/// Most numbers a file may hold; a clip of days at a high rate would fill any disk.
const MAX_NUMBERS: u64 = 1_000_000_000;

/// Keys further apart than this, in a clip without a rate, are an artist's and not frames.
const SLOWEST_S: f64 = 0.1;

/// How to write BVH.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// Frames a second. Default: the frames on which the clip's keys lie, else its own rate, else
    /// 60 a second.
    pub rate: Option<FrameRate>,
    /// Order of the turns where a rotation has to be taken apart. Default: z, x, y.
    pub order: [AxisName; 3],
    /// Metres in one unit of length of the file. Default: that of the file the clip came from if
    /// it was BVH, else 1 cm.
    pub unit: Option<f64>,
    /// Digits behind the point of the numbers in the rows. Default: as many as tell a number exactly.
    pub decimals: Option<usize>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { rate: None, order: [AxisName::Z, AxisName::X, AxisName::Y], unit: None, decimals: None }
    }
}

/// One clip of an import as BVH, and what could not be kept. Without a clip the file holds the
/// skeleton at rest in one frame.
///
/// # Errors
/// [`FormatError::CannotWrite`] if there is no such clip, no node, or far too many frames.
pub fn write(
    import: &Import,
    clip: Option<usize>,
    options: &WriteOptions,
) -> Result<(Vec<u8>, Vec<Note>), FormatError> {
    let cannot = |what: String, advice: &str| FormatError::CannotWrite {
        format: "bvh",
        what,
        advice: advice.to_owned(),
    };
    if import.skeleton.is_empty() {
        return Err(cannot("a clip without any node".to_owned(), "write it as inb or csv"));
    }
    let own_unit = if import.format == "bvh" { import.convention.metres_per_unit } else { DEFAULT_UNIT };
    let unit = options.unit.unwrap_or(own_unit);
    // Numbers that are still those of a BVH file go out as they came in.
    let untouched = !import.in_house_units
        && import.convention.axes == AxisMap::SAME
        && unit == import.convention.metres_per_unit;
    let mut house;
    let (import, unit) = if import.in_house_units || untouched {
        (import, if untouched { 1.0 } else { unit })
    } else {
        house = import.clone();
        convention::to_house(&mut house);
        (&house, unit)
    };
    let mut notes = Vec::new();
    let still = Clip::new("", 0.0, 0.0).expect("zero is a range");
    let clip = match clip {
        None => &still,
        Some(i) => import.clips.get(i).ok_or_else(|| {
            cannot(format!("clip {i} of {}", import.clips.len()), "clips are counted from 0")
        })?,
    };
    let frames = Frames::of(clip, options.rate, &mut notes);
    let numbers = frames.count.saturating_mul(6 * import.skeleton.len() as u64);
    if numbers > MAX_NUMBERS {
        let what = format!("{} frames of {} nodes", frames.count, import.skeleton.len());
        return Err(cannot(what, "cut the clip or write fewer frames a second"));
    }
    note_losses(&import.skeleton, clip, &mut notes);
    let joints = plan(import, clip, &frames, options);
    let mut out = String::new();
    hierarchy(&mut out, &import.skeleton, &joints, unit, &mut notes);
    out.push_str(&format!("MOTION\nFrames: {}\nFrame Time: {}\n", frames.count, plain(frames.step)));
    motion(&mut out, &import.skeleton, clip, &frames, joints, unit, options.decimals);
    Ok((out.into_bytes(), notes))
}

/// The even grid of a file.
struct Frames {
    start: f64,
    step: f64,
    count: u64,
    /// True if every key of the clip lies on a frame.
    on_keys: bool,
}

impl Frames {
    fn of(clip: &Clip, rate: Option<FrameRate>, notes: &mut Vec<Note>) -> Self {
        let start = clip.start();
        if start != 0.0 {
            let what = format!("the clip begins at {start} s; a BVH file begins at 0");
            notes.push(Note::new(Severity::Lost, "", what));
        }
        let keys = clip.key_times();
        let length = clip.duration();
        let wanted = rate.or(clip.rate).unwrap_or(FrameRate::hz(60));
        if length == 0.0 {
            let step = 1.0 / wanted.as_f64();
            return Self { start, step, count: 1, on_keys: keys.iter().all(|&t| t == start) };
        }
        // Frame times as a file had them, rounded to few decimals, are not multiples of the exact
        // rate; a grid through all keys is better than one beside them.
        if rate.is_none()
            && let Some(grid) = Self::through(&keys, start, length, clip.rate)
        {
            return grid;
        }
        if rate.or(clip.rate).is_none() {
            let what = "the clip has no rate of its own; 60 frames a second were written";
            notes.push(Note::new(Severity::Info, "", what));
        }
        let step = wanted.time_of(1);
        let exact = wanted.frame_at(length);
        let nearest = exact.round();
        let on_frame = (exact - nearest).abs() <= 1e-6 * nearest.max(1.0);
        if !on_frame {
            let what =
                format!("the clip's end at {} s is no frame; the last frame lies after it", clip.end());
            notes.push(Note::new(Severity::Info, "", what));
        }
        let last = if on_frame { nearest } else { exact.ceil() };
        let on_keys = keys.iter().all(|&t| {
            let k = ((t - start) / step).round();
            start + k * step == t
        });
        Self { start, step, count: last as u64 + 1, on_keys }
    }

    /// The grid on which all keys lie, if there is one: k × the time of the first key after the
    /// start, or about the clip's rate with the whole length divided evenly.
    fn through(keys: &[f64], start: f64, length: f64, rate: Option<FrameRate>) -> Option<Self> {
        let fits = |step: f64, slack: f64| {
            let last = (length / step).round();
            let on = |t: f64| {
                let k = ((t - start) / step).round();
                (start + k * step - t).abs() <= slack * step
            };
            let good = (1.0..1e12).contains(&last) && keys.iter().all(|&t| on(t)) && on(start + length);
            good.then_some(last as u64 + 1)
        };
        let grid = |step: f64, count: u64, on_keys| Some(Self { start, step, count, on_keys });
        let first = keys.iter().find(|&&t| t > start).map(|t| t - start)?;
        if let Some(count) = fits(first, 0.0)
            && rate.map_or(first <= SLOWEST_S, |r| (first * r.as_f64() - 1.0).abs() < 0.01)
        {
            return grid(first, count, true);
        }
        let rate = rate?;
        let last = rate.frame_at(length).round();
        let step = length / last;
        if last < 1.0 || (step * rate.as_f64() - 1.0).abs() > 0.01 {
            return None;
        }
        // The number with fewest decimals that puts every key on its frame.
        for digits in 1..17 {
            let rounded: f64 = format!("{step:.digits$e}").parse().ok()?;
            if let Some(count) = fits(rounded, 0.0) {
                return grid(rounded, count, true);
            }
        }
        fits(step, 1e-6).and_then(|count| grid(step, count, false))
    }

    fn time(&self, frame: u64) -> f64 {
        self.start + frame as f64 * self.step
    }
}

/// How a joint's rotation is written.
enum Turns<'a> {
    /// The source's own angles.
    Kept(&'a EulerCurve),
    /// Taken apart in this order.
    Apart([AxisName; 3]),
    None,
}

/// How one joint is written.
struct Plan<'a> {
    /// Its offset, in the import's units.
    offset: DVec3,
    tips: Vec<DVec3>,
    /// Position channels, by axis.
    positions: Vec<usize>,
    turns: Turns<'a>,
    /// Places and rotations of every frame, where they had to be worked out from the world.
    baked: Option<Vec<(DVec3, DQuat)>>,
}

fn plan<'a>(import: &'a Import, clip: &'a Clip, frames: &Frames, options: &WriteOptions) -> Vec<Plan<'a>> {
    let skeleton = &import.skeleton;
    let mut baked = needs_baking(skeleton, clip).then(|| bake(skeleton, clip, frames));
    let own = import.format == "bvh";
    let mut plans = Vec::with_capacity(skeleton.len());
    for (i, joint) in skeleton.joints().iter().enumerate() {
        let playing = |property: &Property| clip.node_track(i, property).filter(|t| t.enabled);
        let place = playing(&Property::Translation);
        let turn = playing(&Property::Rotation);
        let root = joint.parent.is_none();
        if let Some(baked) = &mut baked {
            let (rest, all) = (&baked.rest[i], std::mem::take(&mut baked.frames[i]));
            let size = all.iter().map(|(t, _)| t.abs().max_element()).fold(1e-9, f64::max);
            let still = all.iter().all(|(t, _)| (*t - all[0].0).abs().max_element() <= 1e-9 * size);
            let positions = if root || !still { vec![0, 1, 2] } else { Vec::new() };
            plans.push(Plan {
                offset: if still { all[0].0 } else { rest.0 },
                tips: rest.1.clone(),
                positions,
                turns: Turns::Apart(options.order),
                baked: Some(all),
            });
            continue;
        }
        let positions = match place.map(|t| &t.data) {
            // Components without keys that stay at the offset need no channel.
            Some(TrackData::Axes { axes, .. }) if own && axes.len() == 3 => {
                let offset = joint.rest.translation.to_array();
                (0..3).filter(|&c| !matches!(axes[c], Axis::Constant(v) if v == offset[c])).collect()
            }
            Some(_) => vec![0, 1, 2],
            None if root && !own => vec![0, 1, 2],
            None => Vec::new(),
        };
        let turns = match turn.map(|t| &t.data) {
            Some(TrackData::Euler(e)) => euler_turns(e, frames, options),
            Some(_) => Turns::Apart(options.order),
            None if own && joint.rest.rotation == DQuat::IDENTITY => Turns::None,
            None => Turns::Apart(options.order),
        };
        plans.push(Plan {
            offset: joint.rest.translation,
            tips: joint.tips.clone(),
            positions,
            turns,
            baked: None,
        });
    }
    plans
}

/// Keeps the angles where a frame's angles are the rotation on that frame; else takes the rotation
/// apart, in the curve's own order if it has one.
fn euler_turns<'a>(e: &'a EulerCurve, frames: &Frames, options: &WriteOptions) -> Turns<'a> {
    let plain = e.pre == DQuat::IDENTITY && e.post == DQuat::IDENTITY && !e.terms.is_empty();
    if plain && (e.between == EulerBetween::Angles || frames.on_keys) && keyed_everywhere(e, frames) {
        return Turns::Kept(e);
    }
    let axes: Vec<AxisName> = e.terms.iter().map(|(a, _)| *a).collect();
    match axes[..] {
        [a, b, c] if a != b && b != c && a != c => Turns::Apart([a, b, c]),
        _ => Turns::Apart(options.order),
    }
}

/// True if angles may be read on every frame: slerped ones only where each frame is a key.
fn keyed_everywhere(e: &EulerCurve, frames: &Frames) -> bool {
    e.between == EulerBetween::Angles
        || e.terms.iter().filter_map(|(_, a)| a.curve()).all(|c| c.len() as u64 == frames.count)
}

fn needs_baking(skeleton: &Skeleton, clip: &Clip) -> bool {
    let scaled = |t: &&Track| t.enabled && t.binding.property == Property::Scale;
    let special = |j: &inbetween::Joint| {
        j.pivot.is_some() || j.inherit != ScaleInherit::Full || j.rest.scale != DVec3::ONE
    };
    skeleton.joints().iter().any(special) || clip.tracks.iter().any(|t| scaled(&t) && !all_ones(&t.data))
}

fn all_ones(data: &TrackData) -> bool {
    let constant = match data {
        TrackData::Axes { axes, .. } => axes.iter().all(|a| !matches!(a, Axis::Constant(v) if *v != 1.0)),
        _ => true,
    };
    constant
        && data.curves().iter().all(|c| c.parts().tangents.is_none() && c.values().iter().all(|v| *v == 1.0))
}

/// Local places and rotations without scale that put every node where it is in the world.
struct Baked {
    /// Offset and tips at rest.
    rest: Vec<(DVec3, Vec<DVec3>)>,
    /// By node, then by frame.
    frames: Vec<Vec<(DVec3, DQuat)>>,
}

fn bake(skeleton: &Skeleton, clip: &Clip, frames: &Frames) -> Baked {
    let n = skeleton.len();
    let without_scale = |local: &LocalPose| -> (Vec<(DVec3, DQuat)>, ModelPose) {
        let model = ModelPose::of(skeleton, local);
        let world: Vec<DQuat> = (0..n).map(|i| model.decompose(i).0.rotation).collect();
        let at = |i: usize| model.joints[i].translation;
        let all = skeleton.joints().iter().enumerate().map(|(i, j)| match j.parent {
            Some(p) => (world[p].inverse() * (at(i) - at(p)), world[p].inverse() * world[i]),
            None => (at(i), world[i]),
        });
        (all.collect(), model)
    };
    let (rest_pose, model) = without_scale(&LocalPose::rest(skeleton));
    let rest = (0..n).map(|i| {
        let turn = model.decompose(i).0.rotation.inverse();
        let origin = model.joints[i].translation;
        let tip = |t: &DVec3| turn * (model.joints[i].transform_point3(*t) - origin);
        (rest_pose[i].0, skeleton.joints()[i].tips.iter().map(tip).collect())
    });
    let rest = rest.collect();
    let mut by_node = vec![Vec::with_capacity(frames.count as usize); n];
    let mut local = LocalPose::default();
    for k in 0..frames.count {
        local.sample(clip, skeleton, frames.time(k), &TrackMask::all());
        for (node, value) in by_node.iter_mut().zip(without_scale(&local).0) {
            node.push(value);
        }
    }
    Baked { rest, frames: by_node }
}

fn note_losses(skeleton: &Skeleton, clip: &Clip, notes: &mut Vec<Note>) {
    if needs_baking(skeleton, clip) {
        let what = "scales and pivots were left out; nodes keep their places in the world, \
                    what hangs on them does not keep its size";
        notes.push(Note::new(Severity::Lost, "", what));
    }
    let moves = [Property::Translation, Property::Rotation, Property::Scale];
    let left: Vec<String> = clip
        .tracks
        .iter()
        .filter(|t| t.binding.node.is_none() || !moves.contains(&t.binding.property))
        .map(|t| format!("{} {}", t.binding.target, t.binding.property.name()))
        .collect();
    if !left.is_empty() {
        let more = if left.len() > 8 { format!(" and {} more", left.len() - 8) } else { String::new() };
        let list = left.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
        let what = format!("tracks that move no joint were left out: {list}{more}");
        notes.push(Note::new(Severity::Lost, "", what));
    }
    let muted = clip.tracks.iter().filter(|t| !t.enabled).count();
    if muted > 0 {
        notes.push(Note::new(Severity::Lost, "", format!("muted tracks were left out: {muted}")));
    }
    if !clip.markers.is_empty() {
        let what = format!("marks were left out: {}", clip.markers.len());
        notes.push(Note::new(Severity::Lost, "", what));
    }
}

fn hierarchy(out: &mut String, skeleton: &Skeleton, plans: &[Plan<'_>], unit: f64, notes: &mut Vec<Note>) {
    out.push_str("HIERARCHY\n");
    let mut depth_of = vec![0usize; skeleton.len()];
    let mut open: Vec<usize> = Vec::new();
    let close = |out: &mut String, open: &mut Vec<usize>, to: usize| {
        while open.len() > to {
            open.pop();
            out.push_str(&"\t".repeat(open.len()));
            out.push_str("}\n");
        }
    };
    let mut renamed = Vec::new();
    for &i in skeleton.order() {
        let joint = &skeleton.joints()[i];
        let depth = joint.parent.map_or(0, |p| depth_of[p] + 1);
        depth_of[i] = depth;
        close(out, &mut open, depth);
        let tabs = "\t".repeat(depth);
        let name = safe_name(&joint.name, i);
        if name != joint.name {
            renamed.push(format!("{:?} as {name:?}", joint.name));
        }
        let word = if depth == 0 { "ROOT" } else { "JOINT" };
        out.push_str(&format!("{tabs}{word} {name}\n{tabs}{{\n"));
        let plan = &plans[i];
        out.push_str(&format!("{tabs}\tOFFSET{}\n", lengths(plan.offset, unit)));
        let names = channel_names(plan);
        out.push_str(&format!("{tabs}\tCHANNELS {}", names.len()));
        for name in names {
            out.push(' ');
            out.push_str(&name);
        }
        out.push('\n');
        for tip in &plan.tips {
            let tip = lengths(*tip, unit);
            out.push_str(&format!("{tabs}\tEnd Site\n{tabs}\t{{\n{tabs}\t\tOFFSET{tip}\n{tabs}\t}}\n"));
        }
        open.push(i);
    }
    close(out, &mut open, 0);
    if !renamed.is_empty() {
        let more = renamed.len().saturating_sub(8);
        let list = renamed.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = format!("names that BVH cannot hold were changed: {list}{more}");
        notes.push(Note::new(Severity::Lost, "HIERARCHY", what));
    }
}

/// A name that ends with its line: without braces, line breaks and blanks at its ends.
fn safe_name(name: &str, index: usize) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_control() || matches!(c, '{' | '}') { '_' } else { c }).collect();
    let clean = clean.trim();
    if clean.is_empty() { format!("joint_{index}") } else { clean.to_owned() }
}

fn channel_names(plan: &Plan<'_>) -> Vec<String> {
    let mut names: Vec<String> =
        plan.positions.iter().map(|&c| format!("{}position", ["X", "Y", "Z"][c])).collect();
    let turn = |a: AxisName| format!("{}rotation", a.letter().to_ascii_uppercase());
    match &plan.turns {
        Turns::Kept(e) => names.extend(e.terms.iter().map(|(a, _)| turn(*a))),
        Turns::Apart(order) => names.extend(order.map(turn)),
        Turns::None => {}
    }
    names
}

fn motion(
    out: &mut String,
    skeleton: &Skeleton,
    clip: &Clip,
    frames: &Frames,
    plans: Vec<Plan<'_>>,
    unit: f64,
    decimals: Option<usize>,
) {
    let tracks: Vec<[Option<&Track>; 2]> = (0..skeleton.len())
        .map(|i| {
            [Property::Translation, Property::Rotation].map(|p| clip.node_track(i, &p).filter(|t| t.enabled))
        })
        .collect();
    let mut before = vec![[0.0f64; 3]; skeleton.len()];
    let degrees = |v: f64| decimal(v, v.to_degrees(), f64::to_radians, decimals);
    for k in 0..frames.count {
        let time = frames.time(k);
        let mut first = true;
        let mut put = |text: String| {
            if !first {
                out.push(' ');
            }
            first = false;
            out.push_str(&text);
        };
        // Rows hold the joints in the order of the hierarchy.
        for &i in skeleton.order() {
            let plan = &plans[i];
            let joint = &skeleton.joints()[i];
            if !plan.positions.is_empty() {
                let mut place = joint.rest.translation.to_array();
                match (&plan.baked, tracks[i][0]) {
                    (Some(all), _) => place = all[k as usize].0.to_array(),
                    (None, Some(track)) => track.data.eval(time, &mut place),
                    (None, None) => {}
                }
                for &c in &plan.positions {
                    put(length(place[c], unit, decimals));
                }
            }
            match &plan.turns {
                Turns::None => {}
                Turns::Kept(e) => {
                    for (_, angle) in &e.terms {
                        put(degrees(angle.at(time)));
                    }
                }
                Turns::Apart(order) => {
                    let q = match (&plan.baked, tracks[i][1]) {
                        (Some(all), _) => all[k as usize].1,
                        (None, Some(track)) => {
                            let mut q = [0.0; 4];
                            track.data.eval(time, &mut q);
                            DQuat::from_array(q)
                        }
                        (None, None) => joint.rest.rotation,
                    };
                    let found = if k == 0 { angles(q, *order, 0.0) } else { turn_near(q, *order, before[i]) };
                    before[i] = found;
                    for angle in found {
                        put(degrees(angle));
                    }
                }
            }
        }
        out.push('\n');
    }
}

fn lengths(v: DVec3, unit: f64) -> String {
    v.to_array().map(|x| format!(" {}", length(x, unit, None))).concat()
}

fn length(v: f64, unit: f64, decimals: Option<usize>) -> String {
    decimal(v, v / unit, |d| d * unit, decimals)
}

/// The shortest decimal near `guess` that `back` takes to exactly `value`; `guess` itself if none is found
/// close by. With `decimals` it is rounded to as many digits behind the point instead.
fn decimal(value: f64, guess: f64, back: impl Fn(f64) -> f64, decimals: Option<usize>) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if let Some(decimals) = decimals
        && let Ok(rounded) = format!("{guess:.decimals$}").parse::<f64>()
    {
        return plain(rounded);
    }
    for digits in [6usize, 9, 12, 14, 15, 16] {
        let Ok(rounded) = format!("{guess:.*e}", digits - 1).parse::<f64>() else { break };
        if back(rounded) == value {
            return plain(rounded);
        }
    }
    let (mut up, mut down) = (guess, guess);
    for _ in 0..3 {
        for near in [up, down] {
            if back(near) == value {
                return plain(near);
            }
        }
        (up, down) = (up.next_up(), down.next_down());
    }
    plain(guess)
}

fn plain(v: f64) -> String {
    let size = v.abs();
    if v == 0.0 {
        "0".to_owned()
    } else if (1e-7..1e15).contains(&size) {
        v.to_string()
    } else {
        format!("{v:e}")
    }
}
