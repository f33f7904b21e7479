//! A character that goes where it is told by jumping between clips.
//!
//! Each step: the wanted velocity and facing pull springs, whose future is the path asked
//! for; the clip that plays moves the character by its own root motion, exactly; now and
//! then, and when the input changes, a search decides whether to go on or to jump; a jump
//! is smoothed (`blend.rs`), and standing feet may be held (`foot_lock.rs`). What the clips
//! leave of a turn is made up by leading the root a little (`steering.rs`), unless that is off.
//!
//! Poses come from a [`PoseSource`] (`source.rs`): clips, decoders of compressed clips, an engine's own.
//! Nothing here reads a clock or is random: the same inputs give the same frames.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use inbetween::glam::DVec3;
use inbetween::playback::root_motion::{Rigid, RootParts};
use inbetween::pose::decompose;
use inbetween::{LocalPose, ModelPose, Skeleton, Transform, math};

use crate::blend::{Blend, Blender};
use crate::categories::Filter;
use crate::channels::Wish;
use crate::database::{Family, MotionDatabase, Run};
use crate::error::MatchError;
use crate::foot_lock::{FootLock, Leg};
use crate::motion::{HALF_STEP_S, Standing, Waypoint, joint, yaw};
use crate::schema::Schema;
use crate::search::{Continuing, Query, Scratch, Weights};
use crate::source::PoseSource;
use crate::spring::{AngleSpring, VelocitySpring};
use crate::steering::{Ahead, Steered, Steering};

/// What the player wants.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Input {
    /// The velocity over the ground, in the world, m/s.
    pub velocity: DVec3,
    /// Where to face, in the world; `None` faces where it goes.
    pub facing: Option<DVec3>,
    /// Which poses are admitted.
    pub filter: Filter,
}

/// How the character is driven. Times in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Time between searches. Default 0.1.
    pub search_every_s: f64,
    /// A change of the wanted velocity (m/s) that calls for a search at once. Default 0.5.
    pub velocity_change_m_s: f64,
    /// A change of the wanted facing (rad) that calls for a search at once. Default 0.3.
    pub facing_change_rad: f64,
    /// Taken off the cost of the pose that plays. Default 0.2: over an hour's worth of clips it halves
    /// the jumps and delays no turn.
    pub bonus: f32,
    /// No jump closer to the pose that plays than this. Default 0.3.
    pub ignore_s: f64,
    /// No jump sooner after a jump than this. Default 0.15.
    pub minimum_dwell_s: f64,
    /// No jump to a pose with less than this left to play, but in loops. Default 0.3.
    pub ahead_s: f64,
    /// How the root is led after the path; `None` keeps the clips' root motion exact. Default on.
    pub steering: Option<Steering>,
    /// Half-life of the pull towards the wanted velocity. Default 0.12.
    pub velocity_halflife_s: f64,
    /// Half-life of the pull towards the wanted facing. Default 0.12.
    pub facing_halflife_s: f64,
    /// How jumps are smoothed.
    pub blend: Blend,
    /// One weight a channel in place of the schema's, or empty.
    pub weights: Vec<f32>,
    /// Joints to hold while they stand: names of thigh, shin and foot of each leg.
    pub legs: Vec<[String; 3]>,
    /// When a foot counts as standing.
    pub standing: Standing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            search_every_s: 0.1,
            velocity_change_m_s: 0.5,
            facing_change_rad: 0.3,
            bonus: 0.2,
            ignore_s: 0.3,
            minimum_dwell_s: 0.15,
            ahead_s: 0.3,
            steering: Some(Steering::default()),
            velocity_halflife_s: 0.12,
            facing_halflife_s: 0.12,
            blend: Blend::default(),
            weights: Vec::new(),
            legs: Vec::new(),
            standing: Standing { height_m: 0.15, speed_m_s: 0.3 },
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The row nearest to what plays.
    pub row: u32,
    /// The clip of the database that plays.
    pub clip: u32,
    /// Its time, seconds.
    pub time_s: f64,
    /// Whether left and right are exchanged.
    pub mirrored: bool,
    /// Where the character stands and faces.
    pub root: Rigid,
    /// Whether a search was made, and the features it asked for.
    pub asked: Option<Vec<f32>>,
    /// The cost of the row that was found.
    pub cost: f32,
    /// The row that played before, when this step jumped.
    pub jumped_from: Option<u32>,
    /// At a jump: the largest gap of a joint's place (m) and turn (rad) in its parent's space
    /// that is smoothed, over the tree of nodes that the root is in.
    pub gap: (f64, f64),
}

/// A character driven by motion matching.
pub struct Controller<'a> {
    database: Arc<MotionDatabase>,
    schema: &'a Schema,
    source: Box<dyn PoseSource + 'a>,
    settings: Settings,
    scratch: Scratch,
    weights: Vec<f32>,
    root_joint: usize,
    rest: ModelPose,
    other_side: Vec<usize>,
    /// Whether a node hangs on what the root hangs on: cameras and scenery do not.
    body: Vec<bool>,
    run: Run,
    time: f64,
    row: u32,
    root: Rigid,
    velocity: VelocitySpring,
    facing: AngleSpring,
    goal: f64,
    last_input: Option<Input>,
    since_search: f64,
    since_jump: f64,
    now: f64,
    past: VecDeque<(f64, Rigid)>,
    reach_back: f64,
    shown: LocalPose,
    shown_before: LocalPose,
    target: LocalPose,
    blender: Blender,
    locks: Vec<FootLock>,
    steered: Steered,
    /// The last rows of runs, from which little is left to play.
    ends: Vec<Range<u32>>,
    placed: LocalPose,
    model: ModelPose,
}

impl<'a> Controller<'a> {
    /// A character standing at the origin, in the pose that fits standing still best.
    ///
    /// # Errors
    /// When the schema is not the database's own, a joint is missing, or no pose is admitted.
    pub fn new(
        database: Arc<MotionDatabase>,
        schema: &'a Schema,
        source: Box<dyn PoseSource + 'a>,
        settings: Settings,
        start: &Input,
    ) -> Result<Self, MatchError> {
        if schema.channels.iter().map(|c| c.channel.columns().len()).sum::<usize>() != database.columns() {
            return Err(MatchError::Schema(
                "the schema has other columns than the database; use the one it was baked by".into(),
            ));
        }
        let skeleton = source.skeleton().clone();
        let root_joint = joint(&skeleton, &schema.root, "root")?;
        let rest = ModelPose::of(&skeleton, &LocalPose::rest(&skeleton));
        let other_side = skeleton
            .joints()
            .iter()
            .enumerate()
            .map(|(node, j)| match skeleton.find(&schema.mirrored_name(&j.name))[..] {
                [other] => other,
                _ => node,
            })
            .collect();
        let mut tops: Vec<usize> = (0..skeleton.len()).collect();
        for &node in skeleton.order() {
            if let Some(parent) = skeleton.joints()[node].parent {
                tops[node] = tops[parent];
            }
        }
        let body = tops.iter().map(|top| *top == tops[root_joint]).collect();
        let locks = settings
            .legs
            .iter()
            .map(|names| {
                let [thigh, shin, foot] = [0, 1, 2].map(|k| joint(&skeleton, &names[k], "legs"));
                Ok(FootLock::new(Leg { thigh: thigh?, shin: shin?, foot: foot? }))
            })
            .collect::<Result<Vec<_>, MatchError>>()?;
        let given =
            if settings.weights.is_empty() { Weights::Schema } else { Weights::Channels(&settings.weights) };
        let weights = database.column_weights(&given)?;
        let reach_back = schema.channels.iter().map(|c| c.channel.reach_s().0).fold(0.0, f64::min);
        let mut controller = Self {
            run: database.runs()[0].clone(),
            time: database.runs()[0].start_s,
            row: 0,
            root: Rigid::IDENTITY,
            velocity: VelocitySpring { velocity: start.velocity, ..VelocitySpring::default() },
            facing: AngleSpring::default(),
            goal: 0.0,
            last_input: None,
            since_search: 0.0,
            since_jump: f64::INFINITY,
            now: 0.0,
            past: VecDeque::new(),
            reach_back,
            shown: LocalPose::default(),
            shown_before: LocalPose::default(),
            target: LocalPose::default(),
            blender: Blender::default(),
            placed: LocalPose::default(),
            model: ModelPose::default(),
            scratch: Scratch::new(),
            steered: Steered::default(),
            ends: Vec::new(),
            locks,
            database,
            schema,
            source,
            settings,
            weights,
            root_joint,
            rest,
            other_side,
            body,
        };
        controller.past.push_back((0.0, Rigid::IDENTITY));
        controller.ends = controller.last_rows();
        // The body has no pose yet, so only the path decides.
        let mut path_only = controller.weights.clone();
        let mut column = 0;
        for channel in controller.database.channels() {
            for _ in &channel.columns {
                if channel.family == Family::Pose {
                    path_only[column] = 0.0;
                }
                column += 1;
            }
        }
        let features = controller.wish(start, 0);
        let query = Query {
            features: &features,
            weights: Weights::Columns(&path_only),
            filter: start.filter,
            ..Query::default()
        };
        let Some(found) = controller.database.search(&query, &mut controller.scratch)? else {
            return Err(MatchError::NoRows("the filter admits no pose to start in".into()));
        };
        controller.play(found.row);
        let mut pose = LocalPose::default();
        controller.own_pose(&controller.run.clone(), controller.time, &mut pose);
        (controller.shown, controller.shown_before, controller.target) = (pose.clone(), pose.clone(), pose);
        controller.place();
        Ok(controller)
    }

    /// One step of `dt` seconds.
    ///
    /// # Errors
    /// As a search. When no pose is admitted the clip plays on as long as it can, then its
    /// last pose is held.
    pub fn update(&mut self, input: &Input, dt: f64) -> Result<Frame, MatchError> {
        self.now += dt;
        self.since_search += dt;
        self.since_jump += dt;
        // What is wanted.
        self.velocity = self.velocity.after(input.velocity, self.settings.velocity_halflife_s, dt);
        let direction = input.facing.unwrap_or(input.velocity);
        if direction.length() > 0.1 {
            self.goal = self.yaw_of(direction);
        }
        self.facing = self.facing.after(self.goal, self.settings.facing_halflife_s, dt);

        // The clip moves the character.
        let before = self.root;
        let ran_out = !self.advance(dt);
        if let Some(how) = self.settings.steering
            && dt > 0.0
        {
            self.steer(&how, input, before, dt);
        }
        self.past.push_back((self.now, self.root));
        while self.past.len() > 2 && self.past[1].0 < self.now + self.reach_back {
            self.past.pop_front();
        }

        let changed = self.changed(input);
        let due = self.since_search >= self.settings.search_every_s - 1e-9;
        let mut frame = Frame {
            row: self.row,
            clip: self.run.clip,
            time_s: self.time,
            mirrored: self.run.mirrored,
            root: self.root,
            asked: None,
            cost: 0.0,
            jumped_from: None,
            gap: (0.0, 0.0),
        };
        if due || changed || ran_out {
            self.since_search = 0.0;
            if changed || self.last_input.is_none() {
                self.last_input = Some(*input);
            }
            let features = self.wish(input, self.row);
            let here = Continuing {
                row: self.row,
                bonus: self.settings.bonus,
                ignore_rows: (self.settings.ignore_s / self.run.interval_s).ceil() as u32,
                dwelt_s: self.since_jump,
                minimum_dwell_s: if changed { 0.0 } else { self.settings.minimum_dwell_s },
            };
            // At the end of what can be played the present pose is no candidate either.
            let ended = self.row..self.row + 1;
            let mut ignore = std::mem::take(&mut self.ends);
            if ran_out {
                ignore.push(ended);
            }
            let weights = std::mem::take(&mut self.weights);
            let query = Query {
                features: &features,
                weights: Weights::Columns(&weights),
                filter: input.filter,
                continuing: (!ran_out).then_some(here),
                ignore: &ignore,
                ..Query::default()
            };
            let found = self.database.search(&query, &mut self.scratch);
            if ran_out {
                ignore.pop();
            }
            (self.weights, self.ends) = (weights, ignore);
            if let Some(found) = found? {
                frame.cost = found.cost;
                if ran_out || found.row != self.row {
                    frame.jumped_from = Some(self.row);
                    frame.gap = self.jump(found.row, dt);
                }
            }
            frame.asked = Some(features);
        }

        // The pose, with what is left of the last jump.
        let (run, time) = (self.run.clone(), self.time);
        let mut pose = std::mem::take(&mut self.target);
        self.own_pose(&run, time, &mut pose);
        self.target = pose;
        std::mem::swap(&mut self.shown, &mut self.shown_before);
        self.shown.clone_from(&self.target);
        self.blender.apply(self.settings.blend, &mut self.shown, dt);
        self.place();
        self.hold_feet(dt);
        frame.row = self.row;
        frame.clip = self.run.clip;
        frame.time_s = self.time;
        frame.mirrored = self.run.mirrored;
        Ok(frame)
    }

    /// The pose in the world, as local transforms.
    #[must_use]
    pub fn pose(&self) -> &LocalPose {
        &self.placed
    }

    /// The pose in the world, as matrices.
    #[must_use]
    pub fn world(&self) -> &ModelPose {
        &self.model
    }

    /// Where the character stands and faces.
    #[must_use]
    pub fn root(&self) -> Rigid {
        self.root
    }

    /// The database it plays from.
    #[must_use]
    pub fn database(&self) -> &MotionDatabase {
        &self.database
    }

    /// Where it is asked to be `offset` seconds from now, in the world.
    #[must_use]
    pub fn wanted(&self, input: &Input, offset: f64) -> Waypoint {
        let here = self.root;
        let w = self.waypoint(input, offset);
        Waypoint { position: here.translation + here.rotation * w.position, facing: here.rotation * w.facing }
    }

    /// Query features: the body's from a row, the path's from the wish.
    fn wish(&self, input: &Input, row: u32) -> Vec<f32> {
        let mut features: Vec<f32> =
            (0..self.database.columns()).map(|c| self.database.feature(row, c)).collect();
        let back = self.root.rotation.conjugate();
        let wish = Wish {
            path: &|offset| self.waypoint(input, offset),
            velocity: back * self.velocity.velocity,
            turn_rate: self.facing.rate,
        };
        let mut at = 0;
        for channel in &self.schema.channels {
            let width = channel.channel.columns().len();
            channel.channel.fill(&wish, &mut features[at..at + width]);
            at += width;
        }
        features
    }

    /// A moment of the path in the character's frame: behind from memory, ahead by the springs.
    fn waypoint(&self, input: &Input, offset: f64) -> Waypoint {
        let back = self.root.inverse();
        if offset <= 0.0 {
            let then = back.then(self.remembered(self.now + offset));
            return Waypoint { position: then.translation, facing: then.rotation * self.schema.forward };
        }
        let ahead = self.velocity.after(input.velocity, self.settings.velocity_halflife_s, offset);
        let turned = self.facing.after(self.goal, self.settings.facing_halflife_s, offset);
        let facing = math::axis_angle(DVec3::Y, turned.angle) * self.schema.forward;
        Waypoint {
            position: back.rotation * (ahead.position - self.velocity.position),
            facing: back.rotation * facing,
        }
    }

    /// Where the character was; before it began, where it would have come from.
    fn remembered(&self, time: f64) -> Rigid {
        let later = self.past.partition_point(|(t, _)| *t <= time);
        match (later.checked_sub(1).and_then(|i| self.past.get(i)), self.past.get(later)) {
            (Some((t0, a)), Some((t1, b))) => {
                let u = (time - t0) / (t1 - t0);
                Rigid {
                    rotation: math::slerp(a.rotation, b.rotation, u),
                    translation: a.translation.lerp(b.translation, u),
                }
            }
            (Some((_, a)), None) => *a,
            (None, Some((t, first))) => Rigid {
                rotation: first.rotation,
                translation: first.translation + self.velocity.velocity * (time - t),
            },
            (None, None) => Rigid::IDENTITY,
        }
    }

    fn yaw_of(&self, direction: DVec3) -> f64 {
        let forward = self.schema.forward;
        math::atan2(forward.cross(direction).y, forward.dot(direction))
    }

    fn changed(&self, input: &Input) -> bool {
        let Some(last) = self.last_input else { return true };
        let facing = |i: &Input| i.facing.unwrap_or(i.velocity);
        let (a, b) = (facing(&last), facing(input));
        let turned = a.length() > 0.1
            && b.length() > 0.1
            && crate::spring::short_way(self.yaw_of(a) - self.yaw_of(b)).abs()
                > self.settings.facing_change_rad;
        (last.velocity - input.velocity).length() > self.settings.velocity_change_m_s
            || turned
            || last.filter != input.filter
    }

    /// Whether a run is a whole loop, so that its end is its beginning.
    fn goes_round(&self, run: &Run) -> bool {
        let clip = &self.database.clips()[run.clip as usize];
        clip.looped && f64::from(run.rows) * run.interval_s >= clip.duration_s - 1e-6
    }

    /// Plays on by `dt` with the root motion of the clip; false at the end of what can be played.
    fn advance(&mut self, dt: f64) -> bool {
        let run = self.run.clone();
        let last = run.time_s(run.first_row + run.rows - 1);
        let mut next = self.time + dt;
        let mut goes_on = true;
        let from = self.ground(&run, self.time);
        if self.goes_round(&run) {
            let end = run.start_s + self.database.clips()[run.clip as usize].duration_s;
            if next >= end {
                let to_end = from.inverse().then(self.ground(&run, end));
                self.root = self.root.then(to_end);
                next -= end - run.start_s;
                let begin = self.ground(&run, run.start_s);
                self.root = self.root.then(begin.inverse().then(self.ground(&run, next)));
            } else {
                self.root = self.root.then(from.inverse().then(self.ground(&run, next)));
            }
        } else {
            if next > last {
                next = last.max(self.time);
                goes_on = false;
            }
            self.root = self.root.then(from.inverse().then(self.ground(&run, next)));
        }
        self.time = next;
        let rows = ((next - run.start_s) / run.interval_s).round().max(0.0) as u32;
        self.row =
            run.first_row + if self.goes_round(&run) { rows % run.rows } else { rows.min(run.rows - 1) };
        goes_on
    }

    /// The rows of each run from which less than `ahead_s` is left to play: a jump there would
    /// have to be followed by the next at once. A run's first row always stays.
    fn last_rows(&self) -> Vec<Range<u32>> {
        let short = self.database.runs().iter().filter(|run| !self.goes_round(run));
        short
            .filter_map(|run| {
                let last = (self.settings.ahead_s / run.interval_s).ceil().max(0.0) as u32;
                let end = run.first_row + run.rows;
                let first = end.saturating_sub(last).max(run.first_row + 1);
                (first < end).then_some(first..end)
            })
            .collect()
    }

    /// Turns and moves the root towards the path, within what `how` allows.
    fn steer(&mut self, how: &Steering, input: &Input, before: Rigid, dt: f64) {
        let run = self.run.clone();
        let here = self.ground(&run, self.time);
        let clip = here.inverse().then(self.ground_after(&run, self.time + how.look_ahead_s));
        let ahead = Ahead {
            clip,
            wanted: self.waypoint(input, how.look_ahead_s),
            faces: input.facing.is_some(),
            forward: self.schema.forward,
        };
        let turn = self.steered.turn(how, &ahead, dt);
        // About the foot that stands, so that it need not slide.
        let held: Vec<DVec3> = self.locks.iter().filter_map(FootLock::held).collect();
        let pivot = if held.is_empty() {
            self.root.translation
        } else {
            held.iter().sum::<DVec3>() / held.len() as f64
        };
        let pivot = DVec3::new(pivot.x, self.root.translation.y, pivot.z);
        let q = math::axis_angle(DVec3::Y, turn);
        let own = self.root.translation - before.translation;
        self.root.translation = pivot + q * (self.root.translation - pivot);
        self.root.rotation = (q * self.root.rotation).normalize();
        // The path waits for the character at the end of its leash.
        let gap = self.velocity.position - self.root.translation;
        let gap = DVec3::new(gap.x, 0.0, gap.z).clamp_length_max(how.leash_m.max(0.0));
        self.velocity.position = self.root.translation + gap;
        self.root.translation += self.steered.place(how, gap, own, dt);
    }

    /// The ground frame at a time that may lie beyond the end: a loop goes on, others hold.
    fn ground_after(&mut self, run: &Run, time: f64) -> Rigid {
        let last = run.time_s(run.first_row + run.rows - 1);
        if !self.goes_round(run) {
            return self.ground(run, time.min(last.max(self.time)));
        }
        let length = self.database.clips()[run.clip as usize].duration_s;
        let (begin, end) = (self.ground(run, run.start_s), self.ground(run, run.start_s + length));
        let pass = begin.inverse().then(end);
        let (mut passes, mut within) = (Rigid::IDENTITY, time - run.start_s);
        while within >= length && length > 0.0 {
            passes = passes.then(pass);
            within -= length;
        }
        begin.then(passes).then(begin.inverse().then(self.ground(run, run.start_s + within)))
    }

    fn play(&mut self, row: u32) {
        self.run = self.database.run_of(row).clone();
        self.row = row;
        self.time = self.run.time_s(row);
    }

    fn jump(&mut self, row: u32, dt: f64) -> (f64, f64) {
        self.play(row);
        self.since_jump = 0.0;
        let run = self.run.clone();
        let (mut next, mut before) = (LocalPose::default(), LocalPose::default());
        self.own_pose(&run, self.time, &mut next);
        if self.time - dt >= run.start_s - 1e-9 {
            self.own_pose(&run, self.time - dt, &mut before);
        } else {
            // What lies before the run is not to be looked at; its first step, taken back.
            self.own_pose(&run, self.time + dt, &mut before);
            for (b, n) in before.joints.iter_mut().zip(&next.joints) {
                b.translation = 2.0 * n.translation - b.translation;
                b.rotation = (n.rotation * b.rotation.conjugate() * n.rotation).normalize();
            }
        }
        self.blender.jump(&self.shown, &self.shown_before, &before, &next, dt);
        self.blender.size_of(|node| self.body[node])
    }

    /// The ground frame of the root joint at a time of a run's clip.
    fn ground(&mut self, run: &Run, time: f64) -> Rigid {
        let mut pose = LocalPose::default();
        self.source.pose(run.clip, time, &mut pose);
        let at = self.ground_of(&pose);
        if run.mirrored { self.reflect_rigid(at) } else { at }
    }

    fn ground_of(&self, pose: &LocalPose) -> Rigid {
        let skeleton = self.source.skeleton();
        let world = ModelPose::of(skeleton, pose);
        let (at, _) = decompose(&world.joints[self.root_joint]);
        let rest = self.rest.decompose(self.root_joint).0.rotation;
        let motion = Rigid { rotation: at.rotation * rest.conjugate(), translation: at.translation };
        RootParts::default().split(motion).0
    }

    fn across(&self) -> DVec3 {
        DVec3::Y.cross(self.schema.forward)
    }

    fn reflect(&self, v: DVec3) -> DVec3 {
        v - self.across() * (2.0 * v.dot(self.across()))
    }

    fn reflect_rigid(&self, r: Rigid) -> Rigid {
        Rigid { rotation: r.rotation.conjugate(), translation: self.reflect(r.translation) }
    }

    /// The pose of a run at a time as seen from the character: its ground frame taken out.
    fn own_pose(&mut self, run: &Run, time: f64, out: &mut LocalPose) {
        self.source.pose(run.clip, time, out);
        let ground = self.ground_of(out).inverse();
        let skeleton = self.source.skeleton().clone();
        premultiply(&skeleton, ground, out);
        if run.mirrored {
            self.mirror(&skeleton, out);
        }
    }

    /// Exchanges left and right: every joint takes the place of its other side, reflected,
    /// and its turn away from rest, reflected.
    fn mirror(&self, skeleton: &Skeleton, pose: &mut LocalPose) {
        let world = ModelPose::of(skeleton, pose);
        let across = self.across();
        let mut placed: Vec<Transform> = Vec::with_capacity(pose.joints.len());
        for node in 0..pose.joints.len() {
            let other = self.other_side[node];
            let at = world.decompose(other).0;
            let away = at.rotation * self.rest.decompose(other).0.rotation.conjugate();
            // Reflection turns a rotation vector v into −(v reflected).
            let v = math::rotation_vector(if away.w < 0.0 { -away } else { away });
            let v = -(v - across * (2.0 * v.dot(across)));
            placed.push(Transform {
                translation: self.reflect(at.translation),
                rotation: (math::from_rotation_vector(v) * self.rest.decompose(node).0.rotation).normalize(),
                scale: at.scale,
            });
        }
        for node in 0..pose.joints.len() {
            pose.joints[node] = match skeleton.joints()[node].parent {
                None => Transform { scale: pose.joints[node].scale, ..placed[node] },
                Some(parent) => {
                    let p = placed[parent];
                    let back = p.rotation.conjugate();
                    Transform {
                        translation: back * (placed[node].translation - p.translation) / p.scale,
                        rotation: (back * placed[node].rotation).normalize(),
                        scale: pose.joints[node].scale,
                    }
                }
            };
        }
    }

    /// Puts the shown pose where the character stands.
    fn place(&mut self) {
        self.placed.clone_from(&self.shown);
        let skeleton = self.source.skeleton().clone();
        premultiply(&skeleton, self.root, &mut self.placed);
        self.model.update(&skeleton, &self.placed);
    }

    /// Holds feet that stand in the clip where they were put down.
    fn hold_feet(&mut self, dt: f64) {
        if self.locks.is_empty() {
            return;
        }
        let skeleton = self.source.skeleton().clone();
        let run = self.run.clone();
        // How the clip itself moves its feet through the world decides, not the blend.
        // It is asked as the rows were, about the moment, so that both agree on when a foot stands.
        let mut before = LocalPose::default();
        let last = run.time_s(run.first_row + run.rows - 1).max(self.time);
        let earlier = (self.time - HALF_STEP_S).max(run.start_s);
        let later = (self.time + HALF_STEP_S).min(last);
        self.own_pose(&run, earlier, &mut before);
        let mut after = LocalPose::default();
        self.own_pose(&run, later, &mut after);
        let moved = self.ground(&run, earlier).inverse().then(self.ground(&run, later));
        let (before, after) = (ModelPose::of(&skeleton, &before), ModelPose::of(&skeleton, &after));
        let standing = self.settings.standing;
        let mut locks = std::mem::take(&mut self.locks);
        for lock in &mut locks {
            let foot = lock.leg().foot;
            let (a, b) = (before.joints[foot].translation, after.joints[foot].translation);
            let speed = (moved.translation + moved.rotation * b - a).length() / (later - earlier).max(1e-9);
            let stands = b.y <= standing.height_m && speed <= standing.speed_m_s;
            lock.update(&skeleton, &mut self.placed, &self.model, stands, dt);
            self.model.update(&skeleton, &self.placed);
        }
        self.locks = locks;
    }

    /// The heading of the character, rad about +Y from the schema's forward direction.
    #[must_use]
    pub fn heading(&self) -> f64 {
        yaw(self.root.rotation)
    }
}

/// Moves a whole pose: its top nodes are moved, everything hangs on them.
fn premultiply(skeleton: &Skeleton, by: Rigid, pose: &mut LocalPose) {
    for (joint, node) in pose.joints.iter_mut().zip(skeleton.joints()) {
        if node.parent.is_none() {
            joint.translation = by.translation + by.rotation * joint.translation;
            joint.rotation = (by.rotation * joint.rotation).normalize();
        }
    }
}
