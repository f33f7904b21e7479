//! How well a database follows a scripted path: what a designer would look for by eye.
//!
//! Feet that slide while they stand, against what the clips themselves slide; gaps at
//! jumps; how long a new velocity takes; how often it jumps; which rows are used at all;
//! and which channels decide, with a warning where the pose drowns the path.

use std::fmt::Write as _;
use std::sync::Arc;

use inbetween::glam::DVec3;
use inbetween::{Clip, LocalPose, Skeleton};

use crate::database::{Family, MotionDatabase};
use crate::error::MatchError;
use crate::motion::{Motion, Standing, joint};
use crate::play::{Controller, Frame};
use crate::schema::Schema;
use crate::script::Script;
use crate::search::{Query, Weights};

/// What was shown, step by step.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Seconds from frame to frame.
    pub dt: f64,
    /// The frames.
    pub frames: Vec<Frame>,
    /// The poses, in the world.
    pub poses: Vec<LocalPose>,
    /// Each foot's place in the world, frame by frame.
    pub feet: Vec<Vec<DVec3>>,
}

/// Plays a script and records it.
///
/// - `feet`: the joints to watch.
/// - `hz`: frames a second.
///
/// # Errors
/// As [`Controller::update`].
pub fn record(
    controller: &mut Controller<'_>,
    script: &Script,
    feet: &[usize],
    hz: u32,
) -> Result<Recording, MatchError> {
    let dt = 1.0 / f64::from(hz);
    let steps = (script.duration_s * f64::from(hz)).round() as u32;
    let mut recording = Recording { dt, feet: vec![Vec::new(); feet.len()], ..Recording::default() };
    for step in 0..steps {
        let frame = controller.update(&script.at(f64::from(step) / f64::from(hz)), dt)?;
        recording.frames.push(frame);
        recording.poses.push(controller.pose().clone());
        for (list, foot) in recording.feet.iter_mut().zip(feet) {
            list.push(controller.world().joints[*foot].translation);
        }
    }
    Ok(recording)
}

/// How a new wish was met.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When the wish changed, seconds.
    pub at_s: f64,
    /// Seconds until the velocity (over 0.2 s) had covered 90 % of the change; `None` if it
    /// never did before the next change.
    pub reached_s: Option<f64>,
    /// Whether by the end of the step it moved within 20° of the wanted course (or, where
    /// it should stand, slower than 0.3 m/s).
    pub followed: bool,
    /// The course at the end against the wanted one, degrees; the speed, m/s, where it should stand.
    pub off_by: f64,
}

/// Which channels decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The channel.
    pub channel: String,
    /// Its family.
    pub family: Family,
    /// Its share of the cost of the rows that were found, 0 to 1.
    pub share: f64,
}

/// The judgement over a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judgement {
    /// Length, seconds.
    pub seconds: f64,
    /// Searches made.
    pub searches: usize,
    /// Jumps made.
    pub jumps: usize,
    /// Mean speed over the ground, as shown, of feet that stand in what plays at this frame and the
    /// one before, m/s.
    pub sliding_m_s: f64,
    /// The same in the clips, over the moments that were played.
    pub clip_sliding_m_s: f64,
    /// For how long feet stood, all feet together, seconds.
    pub stood_s: f64,
    /// Mean and largest gap of a joint's place at jumps, metres.
    pub place_gap_m: (f64, f64),
    /// Mean and largest gap of a joint's turn at jumps, radians.
    pub turn_gap_rad: (f64, f64),
    /// Mean and largest change of a foot's or the root's velocity from frame to frame at jumps, m/s.
    pub velocity_gap_m_s: (f64, f64),
    /// How each change of the wish was met.
    pub changes: Vec<Change>,
    /// Share of the rows that were ever played.
    pub coverage: f64,
    /// Share of the rows that were ever jumped to.
    pub entered: f64,
    /// Which channels decide.
    pub shares: Vec<Share>,
    /// What a user should look at.
    pub warnings: Vec<String>,
}

/// Judges a recording.
///
/// - `clips`: the clips of the database, in its order, and their skeleton.
/// - `feet`: the joints that were watched, by name.
///
/// # Errors
/// When a foot is missing, or the recording is of another database.
pub fn judge(
    recording: &Recording,
    database: &MotionDatabase,
    schema: &Schema,
    script: &Script,
    source: (&Arc<Skeleton>, &[Arc<Clip>]),
    feet: &[String],
    standing: Standing,
) -> Result<Judgement, MatchError> {
    let (skeleton, clips) = source;
    let nodes = feet.iter().map(|f| joint(skeleton, f, "feet")).collect::<Result<Vec<_>, _>>()?;
    let sides = feet
        .iter()
        .map(|f| joint(skeleton, &schema.mirrored_name(f), "feet"))
        .collect::<Result<Vec<_>, _>>()?;
    let mut used: Vec<usize> = nodes.iter().chain(&sides).copied().collect();
    used.sort_unstable();
    used.dedup();
    let mut motions: Vec<Option<Motion>> = vec![None; clips.len()];

    let frames = &recording.frames;
    let mut result = Judgement {
        seconds: frames.len() as f64 * recording.dt,
        searches: frames.iter().filter(|f| f.asked.is_some()).count(),
        jumps: frames.iter().filter(|f| f.jumped_from.is_some()).count(),
        ..Judgement::default()
    };

    // Sliding: shown and in the clips, over the same moments.
    // From one frame to the next a foot stands if it does in what plays at both: one that a jump
    // catches in the air only comes to stand.
    let (mut shown, mut own, mut count) = (0.0, 0.0, 0.0f64);
    let mut stood = vec![false; nodes.len()];
    for (k, frame) in frames.iter().enumerate() {
        let slot = &mut motions[frame.clip as usize];
        if slot.is_none() {
            let clip = &clips[frame.clip as usize];
            let range = crate::bake::usable_range(clip, schema);
            *slot = Some(Motion::new(clip, skeleton, schema, &used, range)?);
        }
        let Some(motion) = slot.as_mut() else { continue };
        for foot in 0..nodes.len() {
            let node = if frame.mirrored { sides[foot] } else { nodes[foot] };
            let velocity = motion.velocity(node, frame.time_s);
            let height = motion.position(node, frame.time_s).y;
            let stands = height <= standing.height_m && velocity.length() <= standing.speed_m_s;
            if stands && stood[foot] && k > 0 {
                let moved = recording.feet[foot][k] - recording.feet[foot][k - 1];
                shown += flat(moved).length() / recording.dt;
                own += flat(velocity).length();
                count += 1.0;
            }
            stood[foot] = stands;
        }
    }
    result.sliding_m_s = shown / count.max(1.0);
    result.clip_sliding_m_s = own / count.max(1.0);
    result.stood_s = count * recording.dt;

    // Gaps at jumps.
    let jumps = || frames.iter().filter(|f| f.jumped_from.is_some());
    result.place_gap_m = mean_and_max(jumps().map(|f| f.gap.0));
    result.turn_gap_rad = mean_and_max(jumps().map(|f| f.gap.1));
    let places = |k: usize| recording.feet.iter().map(move |f| f[k]).chain([frames[k].root.translation]);
    result.velocity_gap_m_s =
        mean_and_max((2..frames.len()).filter(|k| frames[*k].jumped_from.is_some()).map(|k| {
            places(k)
                .zip(places(k - 1))
                .zip(places(k - 2))
                .map(|((c, b), a)| (c - b - (b - a)).length() / recording.dt)
                .fold(0.0, f64::max)
        }));

    for (number, step) in script.steps.iter().enumerate() {
        let until = script.steps.get(number + 1).map_or(script.duration_s, |s| s.at_s);
        let before = number.checked_sub(1).map(|n| script.steps[n].input.velocity);
        result.changes.push(change(recording, step.at_s, until, before, step.input.velocity));
    }

    let mut played = vec![false; database.len()];
    let mut entered = vec![false; database.len()];
    for frame in frames {
        played[frame.row as usize] = true;
        if frame.jumped_from.is_some() {
            entered[frame.row as usize] = true;
        }
    }
    let share = |list: &[bool]| list.iter().filter(|x| **x).count() as f64 / list.len() as f64;
    (result.coverage, result.entered) = (share(&played), share(&entered));

    result.shares = shares(frames, database)?;
    warn(&mut result);
    Ok(result)
}

fn flat(v: DVec3) -> DVec3 {
    DVec3::new(v.x, 0.0, v.z)
}

fn mean_and_max(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut sum, mut most, mut count) = (0.0, 0.0f64, 0.0f64);
    for value in values {
        sum += value;
        most = most.max(value);
        count += 1.0;
    }
    (sum / count.max(1.0), most)
}

/// The velocity over 0.2 s before a frame: a step's own sway left out.
fn velocity(recording: &Recording, frame: usize) -> DVec3 {
    let back = ((0.2 / recording.dt).round() as usize).max(1);
    let from = frame.saturating_sub(back);
    if from == frame {
        return DVec3::ZERO;
    }
    let moved = recording.frames[frame].root.translation - recording.frames[from].root.translation;
    flat(moved) / ((frame - from) as f64 * recording.dt)
}

fn change(recording: &Recording, at: f64, until: f64, before: Option<DVec3>, wanted: DVec3) -> Change {
    let first = (at / recording.dt).round() as usize;
    let last = ((until / recording.dt).round() as usize).min(recording.frames.len()).max(first + 1) - 1;
    let last = last.min(recording.frames.len().saturating_sub(1));
    let size = (wanted - before.unwrap_or(DVec3::ZERO)).length();
    // A tenth of the change, but no finer than what a gait sways.
    let near = (0.1 * size).max(0.15);
    let reached = (first..=last).find(|k| (velocity(recording, *k) - wanted).length() <= near);
    // The course over the last second of the step, a whole stride.
    let back = ((1.0 / recording.dt) as usize).min(last.saturating_sub(first)).max(1);
    let from = last.saturating_sub(back);
    let moved = flat(recording.frames[last].root.translation - recording.frames[from].root.translation);
    let course = moved / ((last - from).max(1) as f64 * recording.dt);
    let (followed, off_by) = if wanted.length() < 0.1 {
        (course.length() < 0.3, course.length())
    } else {
        let cos = course.normalize_or_zero().dot(wanted.normalize_or_zero()).clamp(-1.0, 1.0);
        let off = inbetween::math::acos(cos).to_degrees();
        (off <= 20.0 && course.length() > 0.3 * wanted.length(), off)
    };
    Change { at_s: at, reached_s: reached.map(|k| k as f64 * recording.dt - at), followed, off_by }
}

fn shares(frames: &[Frame], database: &MotionDatabase) -> Result<Vec<Share>, MatchError> {
    let mut sums = vec![0.0f64; database.channels().len()];
    for frame in frames {
        let Some(asked) = &frame.asked else { continue };
        let query = Query { features: asked, weights: Weights::Schema, ..Query::default() };
        let cost = database.row_cost(frame.row, &query, None)?;
        let total: f64 = cost.channels.iter().sum();
        if total > 0.0 {
            sums.iter_mut().zip(&cost.channels).for_each(|(sum, c)| *sum += c / total);
        }
    }
    let all: f64 = sums.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    Ok(database
        .channels()
        .iter()
        .zip(sums)
        .map(|(c, sum)| Share { channel: c.name.clone(), family: c.family, share: sum / all })
        .collect())
}

fn warn(result: &mut Judgement) {
    let pose: f64 = result.shares.iter().filter(|s| s.family == Family::Pose).map(|s| s.share).sum();
    let mut say = |text: String| result.warnings.push(text);
    if pose > 0.8 {
        say(format!(
            "the pose drowns the path: {:.0} % of the cost is the body's; lower the weights of its channels or raise those of the path",
            pose * 100.0
        ));
    }
    if pose < 0.05 && !result.shares.is_empty() {
        say(format!(
            "the path drowns the pose: only {:.0} % of the cost is the body's, so jumps will show; raise the weights of its channels",
            pose * 100.0
        ));
    }
    let often = result.jumps as f64 / result.seconds.max(1e-9);
    if often > 5.0 {
        say(format!(
            "{often:.1} jumps a second: raise the bonus of the pose that plays, or the minimum dwell"
        ));
    }
    for change in result.changes.iter().filter(|c| !c.followed) {
        say(format!("the wish at {} s was not followed (off by {:.1})", change.at_s, change.off_by));
    }
    if result.stood_s == 0.0 && result.seconds > 0.0 {
        say("no foot stood in what was played, so sliding says nothing: feet are too high or too fast; look at \
             the unit of the files and the root"
            .to_owned());
    }
    if result.sliding_m_s > result.clip_sliding_m_s + 0.005 {
        say(format!(
            "feet slide {:.1} cm/s while they stand, the clips {:.1} cm/s; hold them by naming the legs, or shorten the blend",
            result.sliding_m_s * 100.0,
            result.clip_sliding_m_s * 100.0
        ));
    }
}

impl Judgement {
    /// The judgement in words.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{:.1} s, {} searches, {} jumps ({:.2} a second)",
            self.seconds,
            self.searches,
            self.jumps,
            self.jumps as f64 / self.seconds.max(1e-9)
        );
        let _ = writeln!(
            out,
            "feet that stand ({:.1} s) slide {:.2} cm/s; in the clips {:.2} cm/s",
            self.stood_s,
            self.sliding_m_s * 100.0,
            self.clip_sliding_m_s * 100.0
        );
        let _ = writeln!(
            out,
            "gaps at jumps, mean and largest: {:.1} and {:.1} cm, {:.1}° and {:.1}°, {:.2} and {:.2} m/s after blending",
            self.place_gap_m.0 * 100.0,
            self.place_gap_m.1 * 100.0,
            self.turn_gap_rad.0.to_degrees(),
            self.turn_gap_rad.1.to_degrees(),
            self.velocity_gap_m_s.0,
            self.velocity_gap_m_s.1
        );
        for change in &self.changes {
            let reached =
                change.reached_s.map_or("not reached to 90 %".to_owned(), |s| format!("90 % after {s:.2} s"));
            let followed = if change.followed { "followed" } else { "NOT followed" };
            let _ = writeln!(
                out,
                "wish at {:.2} s: {reached}, {followed} (off by {:.1})",
                change.at_s, change.off_by
            );
        }
        let _ = writeln!(
            out,
            "{:.1} % of the rows were played, {:.2} % jumped to",
            self.coverage * 100.0,
            self.entered * 100.0
        );
        for share in &self.shares {
            let _ = writeln!(out, "    {:<32} {:>5.1} % of the cost", share.channel, share.share * 100.0);
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        out
    }
}
