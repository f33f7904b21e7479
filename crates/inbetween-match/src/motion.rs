//! A clip seen as the motion of a character: where it is, where it faces, what joints do
//! in its own frame; also beyond the clip's ends, and with left and right exchanged.
//!
//! The character's frame stands on the ground under the root joint and is turned by the
//! root's heading. Beyond the ends a loop goes on with its next pass, each pass beginning
//! where the one before ended; any other clip follows the schema's rule ([`Ends`]).
//!
//! Velocities are central differences over ±1/120 s (one-sided at the ends of clips that
//! are no loops), so that they do not depend on how dense the poses are.

use std::sync::Arc;

use inbetween::glam::{DQuat, DVec3};
use inbetween::playback::root_motion::{Rigid, RootParts, RootTrack};
use inbetween::{Clip, LocalPose, ModelPose, Skeleton, TrackMask, Wrap, math};

use crate::error::MatchError;
use crate::schema::{Ends, Schema};

/// Half the time over which velocities are measured, in seconds.
pub(crate) const HALF_STEP_S: f64 = 1.0 / 120.0;

/// A clip as the motion of a character.
///
/// Asking costs a pose of the joints in use, remembered for the last few times asked.
#[derive(Debug, Clone)]
pub struct Motion {
    clip: Arc<Clip>,
    skeleton: Arc<Skeleton>,
    root: RootTrack,
    start: f64,
    end: f64,
    looped: bool,
    ends: Ends,
    forward: DVec3,
    /// For each joint its other side; none when the motion is not mirrored.
    other_side: Option<Vec<usize>>,
    local: LocalPose,
    poses: Vec<(f64, ModelPose)>,
    oldest: usize,
    touched: Vec<(usize, Standing, Arc<[f64]>)>,
}

/// When a joint counts as standing on the ground.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// At most so high above the ground (y = 0), metres.
    pub height_m: f64,
    /// At most so fast through the world, m/s.
    pub speed_m_s: f64,
}

/// A place on the ground and a direction, both in the character's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waypoint {
    /// Metres; y is 0.
    pub position: DVec3,
    /// A unit vector on the ground.
    pub facing: DVec3,
}

impl Motion {
    /// The motion of a clip by the rules of a schema.
    ///
    /// - `joints`: the joints that will be asked for (by node); only they are evaluated.
    /// - `range`: the part of the clip that may be looked at, in seconds.
    ///
    /// # Errors
    /// When the root joint is missing or named twice.
    pub fn new(
        clip: &Clip,
        skeleton: &Arc<Skeleton>,
        schema: &Schema,
        joints: &[usize],
        range: (f64, f64),
    ) -> Result<Self, MatchError> {
        let root_joint = joint(skeleton, &schema.root, "root")?;
        let (start, end) = range;
        // Only what moves the joints in use: fingers cost as much as legs.
        let mut used = vec![false; skeleton.len()];
        for node in joints.iter().chain([&root_joint]) {
            for above in skeleton.chain(*node) {
                used[above] = true;
            }
        }
        let mut clip = clip.clone();
        clip.tracks.retain(|t| t.binding.node.is_none_or(|n| used.get(n).copied().unwrap_or(false)));

        // The path is followed between keys too, for curves that are not straight.
        let mut times: Vec<f64> = clip.key_times().into_iter().filter(|t| *t > start && *t < end).collect();
        let steps = ((end - start) * 60.0).ceil().max(1.0) as usize;
        times.extend((0..=steps).map(|k| start + (end - start) * k as f64 / steps as f64));
        times.sort_unstable_by(f64::total_cmp);
        times.dedup_by(|later, earlier| *later - *earlier < 1e-7);
        let mut ranged = clip.clone();
        ranged.set_range(start, end).map_err(|e| MatchError::Bake(e.to_string()))?;
        let root = RootTrack::of_node(&ranged, skeleton, root_joint, &times, RootParts::default())
            .map_err(|e| MatchError::Bake(format!("clip {:?}: {e}", clip.name)))?;
        let looped = schema.is_loop(&clip.name) || matches!(clip.wrap, Wrap::Loop | Wrap::LoopOffset);
        Ok(Self {
            clip: Arc::new(clip),
            skeleton: skeleton.clone(),
            root,
            start,
            end,
            looped: looped && end > start,
            ends: schema.ends,
            forward: schema.forward,
            other_side: None,
            local: LocalPose::default(),
            poses: Vec::new(),
            oldest: 0,
            touched: Vec::new(),
        })
    }

    /// The same motion with left and right exchanged: joints swap by name, and space is
    /// reflected across the plane through the character that holds its forward direction.
    ///
    /// # Errors
    /// When a joint's other side is missing from the skeleton.
    pub fn mirrored(&self, schema: &Schema, joints: &[usize]) -> Result<Self, MatchError> {
        let names = self.skeleton.joints();
        let mut other: Vec<usize> = (0..names.len()).collect();
        for node in joints {
            let name = schema.mirrored_name(&names[*node].name);
            other[*node] = joint(&self.skeleton, &name, "mirror")?;
        }
        let mut mirrored = self.clone();
        mirrored.other_side = Some(other);
        mirrored.touched.clear();
        Ok(mirrored)
    }

    /// Whether left and right are exchanged.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        self.other_side.is_some()
    }

    /// Whether the clip is a loop.
    #[must_use]
    pub fn is_loop(&self) -> bool {
        self.looped
    }

    /// The first and last moment that may be looked at, in seconds.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        (self.start, self.end)
    }

    /// The clip.
    #[must_use]
    pub fn clip(&self) -> &Clip {
        &self.clip
    }

    /// Where the character stands and faces at a time, from where it stood at the start:
    /// the heading turns about +Y. Times beyond the ends follow the rule of the schema.
    #[must_use]
    pub fn frame(&self, time: f64) -> Rigid {
        self.reflect_rigid(self.unmirrored_frame(time))
    }

    fn unmirrored_frame(&self, time: f64) -> Rigid {
        if self.looped {
            return self.root.travelled(time, Wrap::Loop);
        }
        let inside = self.root.travelled(time.clamp(self.start, self.end), Wrap::Hold);
        let beyond = if time > self.end { time - self.end } else { (time - self.start).min(0.0) };
        if beyond == 0.0 || self.ends != Ends::RunOut || self.end <= self.start {
            return inside;
        }
        // The speed over the last moment inside, kept up along an arc.
        let over = (self.end - self.start).min(0.1);
        let (from, to) =
            if beyond > 0.0 { (self.end - over, self.end) } else { (self.start, self.start + over) };
        let step = self.root.delta(from, to, Wrap::Hold);
        let turn = yaw(step.rotation) / over;
        let velocity = steady_velocity(step.translation, turn, over);
        inside.then(arc(velocity, turn, beyond))
    }

    /// A joint's place in the character's frame at a time, metres.
    pub fn position(&mut self, joint: usize, time: f64) -> DVec3 {
        let joint = self.side(joint);
        let at = self.unmirrored_position(joint, time);
        self.reflect(at)
    }

    /// A joint's velocity through the world, seen from the character's frame, m/s.
    pub fn velocity(&mut self, joint: usize, time: f64) -> DVec3 {
        let joint = self.side(joint);
        let (a, b) = self.around(time);
        if b <= a {
            return DVec3::ZERO;
        }
        let frame = self.unmirrored_frame(time).inverse();
        let mut at = |t: f64| {
            let local = self.unmirrored_position(joint, t);
            let moved = frame.then(self.unmirrored_frame(t));
            moved.translation + moved.rotation * local
        };
        let velocity = (at(b) - at(a)) / (b - a);
        self.reflect(velocity)
    }

    /// Where an axis of a joint points in the character's frame: a unit vector.
    pub fn direction(&mut self, joint: usize, axis: DVec3, time: f64) -> DVec3 {
        let joint = self.side(joint);
        let inside = self.inside(time);
        let world = self.root_at(inside);
        let pose = self.pose(inside);
        let direction = (pose.joints[joint].matrix3 * axis).normalize_or_zero();
        let direction = world.rotation.conjugate() * direction;
        self.reflect(direction)
    }

    /// The character's velocity over the ground, seen from its own frame, m/s.
    pub fn root_velocity(&mut self, time: f64) -> DVec3 {
        let (a, b) = self.around(time);
        if b <= a {
            return DVec3::ZERO;
        }
        let frame = self.frame(time).inverse();
        (frame.then(self.frame(b)).translation - frame.then(self.frame(a)).translation) / (b - a)
    }

    /// How fast the character turns about +Y, rad/s; positive to its left.
    pub fn turn_rate(&mut self, time: f64) -> f64 {
        let (a, b) = self.around(time);
        if b <= a {
            return 0.0;
        }
        yaw(self.frame(a).inverse().then(self.frame(b)).rotation) / (b - a)
    }

    /// Where the character is and faces `offset` seconds later (earlier when negative), in
    /// its frame at `time`.
    #[must_use]
    pub fn waypoint(&self, time: f64, offset: f64) -> Waypoint {
        let moved = self.frame(time).inverse().then(self.frame(time + offset));
        Waypoint { position: moved.translation, facing: moved.rotation * self.forward }
    }

    /// The number a track has at a time; `None` when the clip has no such track.
    #[must_use]
    pub fn track(&self, target: &str, property: &str, component: usize, time: f64) -> Option<f64> {
        let track = self
            .clip
            .tracks
            .iter()
            .find(|t| t.binding.target == target && t.binding.property.name() == property)?;
        track.value_at(self.inside(time)).get(component).copied()
    }

    /// Whether poses may look this far: always, unless ends are cut.
    #[must_use]
    pub fn reaches(&self, time: f64) -> bool {
        self.looped || self.ends != Ends::Cut || (self.start - 1e-9..=self.end + 1e-9).contains(&time)
    }

    /// Whether a joint stands on the ground at a time.
    pub fn stands(&mut self, joint: usize, standing: Standing, time: f64) -> bool {
        self.position(joint, time).y <= standing.height_m
            && self.velocity(joint, time).length() <= standing.speed_m_s
    }

    /// The times within the clip at which a joint begins to stand, increasing; looked for
    /// at 60 Hz once and remembered.
    pub fn touch_downs(&mut self, joint: usize, standing: Standing) -> Arc<[f64]> {
        if let Some((.., found)) = self.touched.iter().find(|(j, s, _)| *j == joint && *s == standing) {
            return found.clone();
        }
        let (start, end) = self.range();
        let steps = ((end - start) * 60.0).floor() as usize;
        let at = |k: usize| start + k as f64 / 60.0;
        let mut stood = if self.looped {
            self.stands(joint, standing, start - 1.0 / 60.0)
        } else {
            self.stands(joint, standing, start)
        };
        let mut found = Vec::new();
        for k in 0..=steps {
            let stands = self.stands(joint, standing, at(k));
            if stands && !stood {
                found.push(at(k));
            }
            stood = stands;
        }
        let found: Arc<[f64]> = found.into();
        self.touched.push((joint, standing, found.clone()));
        found
    }

    /// A time folded (loop) or held (otherwise) into the clip.
    #[must_use]
    pub fn inside(&self, time: f64) -> f64 {
        let wrap = if self.looped { Wrap::Loop } else { Wrap::Hold };
        wrap.apply(time, self.start, self.end).time
    }

    fn around(&self, time: f64) -> (f64, f64) {
        let (a, b) = (time - HALF_STEP_S, time + HALF_STEP_S);
        if self.looped { (a, b) } else { (a.max(self.start), b.min(self.end)) }
    }

    fn side(&self, joint: usize) -> usize {
        self.other_side.as_ref().map_or(joint, |other| other[joint])
    }

    /// Reflected across the plane of +Y and forward when mirrored.
    fn reflect(&self, v: DVec3) -> DVec3 {
        if self.other_side.is_none() {
            return v;
        }
        let across = DVec3::Y.cross(self.forward);
        v - across * (2.0 * v.dot(across))
    }

    fn reflect_rigid(&self, motion: Rigid) -> Rigid {
        if self.other_side.is_none() {
            return motion;
        }
        Rigid { rotation: motion.rotation.conjugate(), translation: self.reflect(motion.translation) }
    }

    /// The root's own ground frame at a time inside the clip.
    fn root_at(&self, inside: f64) -> Rigid {
        self.root.world_part(inside)
    }

    fn unmirrored_position(&mut self, joint: usize, time: f64) -> DVec3 {
        let inside = self.inside(time);
        let world = self.root_at(inside).inverse();
        let at = self.pose(inside).joints[joint].translation;
        world.translation + world.rotation * at
    }

    fn pose(&mut self, time: f64) -> &ModelPose {
        if let Some(at) = self.poses.iter().position(|(t, _)| t.to_bits() == time.to_bits()) {
            return &self.poses[at].1;
        }
        // Three times a pose are asked for again and again: now, before and after.
        if self.poses.len() < 4 {
            self.poses.push((f64::NAN, ModelPose::default()));
        }
        self.oldest = (self.oldest + 1) % self.poses.len();
        self.local.sample(&self.clip, &self.skeleton, time, &TrackMask::all());
        let (at, pose) = &mut self.poses[self.oldest];
        *at = time;
        pose.update(&self.skeleton, &self.local);
        pose
    }
}

/// The angle of a turn about +Y, −π to π.
#[must_use]
pub(crate) fn yaw(rotation: DQuat) -> f64 {
    let (y, w) = if rotation.w < 0.0 { (-rotation.y, -rotation.w) } else { (rotation.y, rotation.w) };
    2.0 * math::atan2(y, w)
}

/// The motion over `time` seconds at a steady velocity in a frame that turns steadily.
#[must_use]
pub(crate) fn arc(velocity: DVec3, turn: f64, time: f64) -> Rigid {
    let (along, across) = arc_integrals(turn, time);
    // A turn by a about +Y takes x to x·cos a + z·sin a and z to z·cos a − x·sin a.
    let translation = DVec3::new(
        velocity.x * along + velocity.z * across,
        velocity.y * time,
        velocity.z * along - velocity.x * across,
    );
    Rigid { rotation: math::axis_angle(DVec3::Y, turn * time), translation }
}

/// The steady velocity in the turning frame that covers `translation` in `time` seconds.
fn steady_velocity(translation: DVec3, turn: f64, time: f64) -> DVec3 {
    let (along, across) = arc_integrals(turn, time);
    let square = along * along + across * across;
    if square == 0.0 {
        return DVec3::ZERO;
    }
    DVec3::new(
        (translation.x * along - translation.z * across) / square,
        translation.y / time,
        (translation.z * along + translation.x * across) / square,
    )
}

/// ∫ cos and ∫ sin of a steadily turning heading from 0 to `time`.
fn arc_integrals(turn: f64, time: f64) -> (f64, f64) {
    let angle = turn * time;
    // By series where the angle is small: the next terms are below 1e-16.
    if angle.abs() < 1e-4 {
        (time * (1.0 - angle * angle / 6.0), time * (angle / 2.0))
    } else {
        (math::sin(angle) / turn, (1.0 - math::cos(angle)) / turn)
    }
}

/// The one node of a name.
pub(crate) fn joint(skeleton: &Skeleton, name: &str, wanted_by: &str) -> Result<usize, MatchError> {
    match skeleton.find(name)[..] {
        [one] => Ok(one),
        [] => {
            let near = closest(skeleton, name);
            Err(MatchError::Bake(format!("{wanted_by}: the skeleton has no joint {name:?}; {near}")))
        }
        ref many => Err(MatchError::Bake(format!(
            "{wanted_by}: {} joints are called {name:?}; rename them so that one is meant",
            many.len()
        ))),
    }
}

/// The joints whose names are most alike, as a hint.
fn closest(skeleton: &Skeleton, name: &str) -> String {
    let lower = name.to_lowercase();
    let mut names: Vec<(usize, &str)> = skeleton
        .joints()
        .iter()
        .map(|j| {
            let other = j.name.to_lowercase();
            let shared = lower.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
            let within = usize::from(other.contains(&lower) || lower.contains(&other)) * 100;
            (shared + within, j.name.as_str())
        })
        .collect();
    names.sort_by_key(|(alike, _)| std::cmp::Reverse(*alike));
    let list: Vec<&str> = names.iter().take(5).map(|(_, n)| *n).collect();
    if list.is_empty() {
        "it has none at all".to_owned()
    } else {
        format!("it has {} joints, among them {}", skeleton.len(), list.join(", "))
    }
}
