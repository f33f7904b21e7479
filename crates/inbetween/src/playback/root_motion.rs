//! Root motion: the part of a clip that moves the character through the world, taken out of the
//! pose and handed over as deltas that stay exact over loops.
//!
//! The motion of a root node is split as `M(t) = R(t) · P(t)`: `R` is what the world gets (chosen
//! axes of the path, and the heading or the whole turn), `P` is what stays in the pose. Over loops
//! travel and turn are composed, never summed apart: after `n` passes the character stands at
//! `Lⁿ · rel(t)`, with `L` the motion of one pass and `rel` the motion since the clip's start. The
//! power is by repeated squaring, so a loop played for days is as exact as one pass.

use glam::{DAffine3, DQuat, DVec3};
use thiserror::Error;

use crate::math;
use crate::pose::{LocalPose, ModelPose, decompose};
use crate::skeleton::{Joint, Skeleton, Transform};
use crate::time::Wrap;
use crate::track::{Binding, Property, Track, TrackData, TrackMask};
use crate::{Clip, Curve, CurveError, SpanKind, ValueKind};

/// A turn and a move, without scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rigid {
    /// Unit quaternion.
    pub rotation: DQuat,
    /// Metres.
    pub translation: DVec3,
}

impl Rigid {
    /// No motion.
    pub const IDENTITY: Self = Self { rotation: DQuat::IDENTITY, translation: DVec3::ZERO };

    /// First `next`, seen in this frame: the matrix product `self · next`.
    pub fn then(self, next: Self) -> Self {
        Self {
            rotation: (self.rotation * next.rotation).normalize(),
            translation: self.translation + self.rotation * next.translation,
        }
    }

    /// The way back.
    pub fn inverse(self) -> Self {
        let rotation = self.rotation.conjugate();
        Self { rotation, translation: -(rotation * self.translation) }
    }

    /// This motion `n` times in a row; backward for negative `n`. By repeated squaring.
    pub fn power(self, n: i64) -> Self {
        let mut base = if n < 0 { self.inverse() } else { self };
        let mut left = n.unsigned_abs();
        let mut result = Self::IDENTITY;
        while left > 0 {
            if left & 1 == 1 {
                result = result.then(base);
            }
            base = base.then(base);
            left >>= 1;
        }
        result
    }
}

/// How much of the turn goes to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootRotation {
    /// None: it stays in the pose.
    Keep,
    /// The heading: the turn about +Y.
    #[default]
    Yaw,
    /// All of it.
    Full,
}

/// Which part of the root's motion is taken out of the pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootParts {
    /// Which components of the path, x, y, z.
    pub path: [bool; 3],
    /// How much of the turn.
    pub rotation: RootRotation,
}

impl Default for RootParts {
    /// The ground path (x and z) and the heading.
    fn default() -> Self {
        Self { path: [true, false, true], rotation: RootRotation::Yaw }
    }
}

impl RootParts {
    /// Splits a root's motion into what the world gets and what stays in the pose.
    pub fn split(&self, motion: Rigid) -> (Rigid, Rigid) {
        let rotation = match self.rotation {
            RootRotation::Keep => DQuat::IDENTITY,
            RootRotation::Yaw => heading(motion.rotation),
            RootRotation::Full => motion.rotation,
        };
        let t = motion.translation.to_array();
        let pick = |i: usize| if self.path[i] { t[i] } else { 0.0 };
        let world = Rigid { rotation, translation: DVec3::new(pick(0), pick(1), pick(2)) };
        (world, world.inverse().then(motion))
    }
}

/// The turn about +Y in a rotation (the twist of its swing–twist decomposition).
///
/// A rotation that tips over by exactly a half turn has no heading; the identity is given.
pub fn heading(q: DQuat) -> DQuat {
    math::unit(DQuat::from_xyzw(0.0, q.y, 0.0, q.w)).unwrap_or(DQuat::IDENTITY)
}

/// The motion of a root node over a clip.
#[derive(Clone, Debug, PartialEq)]
pub struct RootTrack {
    /// Path, metres.
    translation: Curve,
    /// Turn.
    rotation: Curve,
    start: f64,
    end: f64,
    parts: RootParts,
}

impl RootTrack {
    /// A root whose motion is given by curves of kind [`ValueKind::Vector`] (3) and
    /// [`ValueKind::Rotation`] over `start..=end` seconds.
    pub fn new(translation: Curve, rotation: Curve, start: f64, end: f64, parts: RootParts) -> Self {
        Self { translation, rotation, start, end, parts }
    }

    /// The motion of `node` in the world over `clip`, relative to how it stands at rest where the
    /// heading is concerned (so that a hip bone with tilted axes still has one). Sampled at
    /// `times`, which should hold the clip's key times; needs at least one.
    ///
    /// # Errors
    /// If `times` are not increasing.
    pub fn of_node(
        clip: &Clip,
        skeleton: &Skeleton,
        node: usize,
        times: &[f64],
        parts: RootParts,
    ) -> Result<Self, CurveError> {
        let rest = ModelPose::of(skeleton, &LocalPose::rest(skeleton));
        let rest_rotation = rest.decompose(node).0.rotation;
        let (mut local, mut model) = (LocalPose::default(), ModelPose::default());
        let (mut path, mut turn) = (Vec::with_capacity(times.len() * 3), Vec::with_capacity(times.len() * 4));
        for &t in times {
            local.sample(clip, skeleton, t, &TrackMask::all());
            model.update(skeleton, &local);
            let (at, _): (Transform, bool) = decompose(&model.joints[node]);
            path.extend(at.translation.to_array());
            turn.extend((at.rotation * rest_rotation.conjugate()).to_array());
        }
        crate::edit::align_signs(&mut turn);
        Ok(Self {
            translation: Curve::linear(ValueKind::Vector(3), times.to_vec(), path)?,
            rotation: Curve::linear(ValueKind::Rotation, times.to_vec(), turn)?,
            start: clip.start(),
            end: clip.end(),
            parts,
        })
    }

    /// The whole motion of the node at a time of the clip, unsplit.
    fn motion(&self, time: f64) -> Rigid {
        let mut t = [0.0; 3];
        self.translation.eval(time, &mut t);
        Rigid { rotation: self.rotation.rotation_at(time), translation: DVec3::from_array(t) }
    }

    /// What the world gets at a time of the clip, from the origin.
    pub fn world_part(&self, time: f64) -> Rigid {
        self.parts.split(self.motion(time)).0
    }

    /// What stays in the pose at a time of the clip.
    pub fn pose_part(&self, time: f64) -> Rigid {
        self.parts.split(self.motion(time)).1
    }

    /// Where the character has got to at a player's time, from where it stood at the clip's
    /// start, with the axes it had there.
    pub fn travelled(&self, player_time: f64, wrap: Wrap) -> Rigid {
        let from = self.world_part(self.start).inverse();
        let at = wrap.apply(player_time, self.start, self.end);
        let here = from.then(self.world_part(at.time));
        match wrap {
            Wrap::Hold | Wrap::PingPong => here,
            Wrap::Loop | Wrap::LoopOffset => {
                let pass = from.then(self.world_part(self.end));
                pass.power(at.pass).then(here)
            }
        }
    }

    /// The motion between two player times, seen in the frame the character has at the first:
    /// what an engine applies to it.
    pub fn delta(&self, from: f64, to: f64, wrap: Wrap) -> Rigid {
        self.travelled(from, wrap).inverse().then(self.travelled(to, wrap))
    }

    /// The displacement and turn between two player times in the axes of the clip's start.
    pub fn displacement(&self, from: f64, to: f64, wrap: Wrap) -> Rigid {
        let (facing, delta) = (self.facing(from, wrap), self.delta(from, to, wrap));
        Rigid {
            rotation: (facing * delta.rotation * facing.conjugate()).normalize(),
            translation: facing * delta.translation,
        }
    }

    /// How the character faces at a player's time, in the axes of the clip itself.
    pub fn facing(&self, time: f64, wrap: Wrap) -> DQuat {
        (self.world_part(self.start).rotation * self.travelled(time, wrap).rotation).normalize()
    }
}

/// Where the motion taken out of a node's pose goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RootDestination {
    /// Nowhere: the character walks on the spot.
    Discard,
    /// Onto the node's parent, which then carries the path and heading.
    Parent,
}

/// Why root motion could not be taken out of a clip.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RootMotionError {
    /// There is no such node.
    #[error("there is no node {node}; the skeleton has {count}")]
    NoNode {
        /// The node asked for.
        node: usize,
        /// Nodes there are.
        count: usize,
    },
    /// Nothing above the node could carry the motion.
    #[error(
        "{name:?} has no node above it that could carry the motion; take the motion out in place, \
         or name a node further down (such as the hips)"
    )]
    NoParent {
        /// The node's name.
        name: String,
    },
    /// The clip gave a curve that cannot be.
    #[error(transparent)]
    Curve(#[from] CurveError),
}

/// The clip with the root motion of `node` taken out of its pose and, if asked, put onto its
/// parent. In the world the node then moves as before (on the parent), or on the spot.
///
/// `times` are where the result has keys: the clip's key times, or frames where curves are not
/// straight. The parts are split as [`RootParts::split`] does, against the node's rest heading.
///
/// # Errors
/// If there is no such node, or no parent to carry the motion.
pub fn take_out(
    clip: &Clip,
    skeleton: &Skeleton,
    node: usize,
    parts: RootParts,
    destination: RootDestination,
    times: &[f64],
) -> Result<Clip, RootMotionError> {
    let joints = skeleton.joints();
    let joint = joints.get(node).ok_or(RootMotionError::NoNode { node, count: joints.len() })?;
    let parent = joint.parent;
    if destination == RootDestination::Parent && parent.is_none() {
        return Err(RootMotionError::NoParent { name: joint.name.clone() });
    }
    let root = RootTrack::of_node(clip, skeleton, node, times, parts)?;
    let mut node_rows = (Vec::with_capacity(3 * times.len()), Vec::with_capacity(4 * times.len()));
    let mut parent_rows = (Vec::with_capacity(3 * times.len()), Vec::with_capacity(4 * times.len()));
    let (mut local, mut model) = (LocalPose::default(), ModelPose::default());
    for &t in times {
        local.sample(clip, skeleton, t, &TrackMask::all());
        model.update(skeleton, &local);
        let world = root.world_part(t);
        let moved = DAffine3::from_rotation_translation(world.rotation, world.translation);
        let above = parent.map_or(DAffine3::IDENTITY, |p| model.joints[p]);
        let keeps = destination == RootDestination::Discard;
        // Where the node stands once the motion is gone, and the frame it is then given in.
        let at = if keeps { moved.inverse() * model.joints[node] } else { model.joints[node] };
        let frame = if keeps { above } else { moved * above };
        push(&mut node_rows, local_in(&frame, &at), local.joints[node].scale, joint);
        if let (RootDestination::Parent, Some(p)) = (destination, parent) {
            let grand = joints[p].parent.map_or(DAffine3::IDENTITY, |g| model.joints[g]);
            push(&mut parent_rows, local_in(&grand, &frame), local.joints[p].scale, &joints[p]);
        }
    }
    let mut out = clip.clone();
    put(&mut out, node, joint, times, node_rows)?;
    if let (RootDestination::Parent, Some(p)) = (destination, parent) {
        put(&mut out, p, &joints[p], times, parent_rows)?;
    }
    Ok(out)
}

/// Translation and rotation that place `world` in `frame`.
fn local_in(frame: &DAffine3, world: &DAffine3) -> Transform {
    decompose(&(frame.inverse() * *world)).0
}

/// Adds a key, taking back what the joint's pivot will add.
fn push(rows: &mut (Vec<f64>, Vec<f64>), folded: Transform, scale: DVec3, joint: &Joint) {
    let bare = Transform { translation: DVec3::ZERO, rotation: folded.rotation, scale };
    let offset = joint.pivot.as_ref().map_or(DVec3::ZERO, |p| p.fold(bare).translation);
    rows.0.extend((folded.translation - offset).to_array());
    rows.1.extend(folded.rotation.to_array());
}

/// Puts new translation and rotation tracks in the place of a node's old ones.
fn put(
    clip: &mut Clip,
    node: usize,
    joint: &Joint,
    times: &[f64],
    (path, mut turn): (Vec<f64>, Vec<f64>),
) -> Result<(), CurveError> {
    crate::edit::align_signs(&mut turn);
    let rest = joint.rest;
    for (property, kind, rows, rest) in [
        (Property::Translation, ValueKind::Vector(3), path, rest.translation.to_array().to_vec()),
        (Property::Rotation, ValueKind::Rotation, turn, rest.rotation.to_array().to_vec()),
    ] {
        let still = rows.chunks_exact(kind.width()).all(|row| row == &rest[..]);
        let data = TrackData::Curve(Curve::linear(kind, times.to_vec(), rows)?);
        let old =
            clip.tracks.iter_mut().find(|t| t.binding.node == Some(node) && t.binding.property == property);
        match old {
            Some(track) => track.data = data,
            None if still => {}
            None => {
                let binding = Binding::node(node, joint.name.clone(), property);
                clip.tracks.push(Track::new(binding, data, rest));
            }
        }
    }
    Ok(())
}

/// The node whose motion moves the whole character: the highest node with a travelling
/// translation track that has animated nodes below it, or the highest animated node.
pub fn guess_root(clip: &Clip, skeleton: &Skeleton) -> Option<usize> {
    let animated = |n: usize| clip.tracks.iter().any(|t| t.binding.node == Some(n));
    let travels = |n: usize| {
        clip.node_track(n, &Property::Translation).is_some_and(|t| {
            let keys = t.data.key_times();
            let first = keys.first().map(|&k| t.value_at(k));
            keys.iter().any(|&k| Some(t.value_at(k)) != first)
        })
    };
    let order = skeleton.order();
    order
        .iter()
        .copied()
        .find(|&n| animated(n) && travels(n))
        .or_else(|| order.iter().copied().find(|&n| animated(n)))
}

/// Times at which root motion is to be sampled: the clip's key times, and frames at `rate`
/// between them where a curve is not a straight line.
pub fn sampling_times(clip: &Clip, rate: crate::FrameRate) -> Vec<f64> {
    let mut times = clip.key_times();
    let bent = |c: &Curve| {
        (0..c.len().saturating_sub(1)).any(|i| matches!(c.span(i), SpanKind::Hermite | SpanKind::Bezier))
    };
    let angles =
        |t: &Track| matches!(&t.data, TrackData::Euler(e) if e.between == crate::EulerBetween::Angles);
    if clip.tracks.iter().any(|t| angles(t) || t.data.curves().iter().any(|c| bent(c))) {
        let mut frame = 0;
        while clip.start() + rate.time_of(frame) < clip.end() {
            times.push(clip.start() + rate.time_of(frame));
            frame += 1;
        }
    }
    times.extend([clip.start(), clip.end()]);
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turning_walk() -> RootTrack {
        let h = std::f64::consts::FRAC_1_SQRT_2;
        let path = Curve::linear(
            ValueKind::Vector(3),
            vec![0.0, 0.5, 1.0],
            vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        );
        let turn = Curve::linear(
            ValueKind::Rotation,
            vec![0.0, 0.5, 1.0],
            vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, h, 0.0, h],
        );
        RootTrack::new(path.unwrap(), turn.unwrap(), 0.0, 1.0, RootParts::default())
    }

    #[test]
    fn four_passes_of_a_quarter_turn_draw_a_square() {
        let root = turning_walk();
        let two = root.displacement(0.0, 2.0, Wrap::Loop);
        assert!((two.translation - DVec3::new(1.0, 0.0, 1.0)).length() < 1e-12);
        let four = root.displacement(0.0, 4.0, Wrap::Loop);
        assert!(four.translation.length() < 1e-12);
        assert!(math::angle_between(four.rotation, DQuat::IDENTITY) < 1e-12);
    }

    #[test]
    fn a_million_turning_passes_are_as_exact_as_four() {
        let root = turning_walk();
        let far = root.displacement(0.0, 4.0e6, Wrap::Loop);
        assert!(far.translation.length() < 1e-6, "{far:?}");
    }

    #[test]
    fn steps_add_up_to_the_whole_over_loops_in_either_direction() {
        let root = turning_walk();
        for dt in [0.17, -0.13] {
            let mut composed = Rigid::IDENTITY;
            for i in 0..40 {
                composed = composed.then(root.delta(f64::from(i) * dt, f64::from(i + 1) * dt, Wrap::Loop));
            }
            let whole = root.delta(0.0, 40.0 * dt, Wrap::Loop);
            assert!((composed.translation - whole.translation).length() < 1e-9);
        }
    }

    #[test]
    fn ping_pong_comes_back() {
        let root = turning_walk();
        assert!(root.displacement(0.0, 2.0, Wrap::PingPong).translation.length() < 1e-12);
        let back = root.displacement(1.0, 2.0, Wrap::PingPong);
        assert!((back.translation + DVec3::Z).length() < 1e-12);
    }

    #[test]
    fn world_part_and_pose_part_make_the_motion_again() {
        let motion = Rigid {
            rotation: math::axis_angle(DVec3::new(0.36, 0.48, 0.8), 1.2),
            translation: DVec3::new(1.0, 0.9, -2.0),
        };
        for rotation in [RootRotation::Keep, RootRotation::Yaw, RootRotation::Full] {
            let parts = RootParts { path: [true, false, true], rotation };
            let (world, pose) = parts.split(motion);
            let again = world.then(pose);
            assert!((again.translation - motion.translation).length() < 1e-12);
            assert!(math::angle_between(again.rotation, motion.rotation) < 1e-12);
        }
    }

    /// A root with hips below it that walk a curve while they bob and lean.
    fn walk() -> (Skeleton, Clip) {
        let up = Transform { translation: DVec3::new(0.0, 1.0, 0.0), ..Transform::IDENTITY };
        let mut tilted = up;
        tilted.rotation = math::axis_angle(DVec3::X, -1.2);
        let skeleton = Skeleton::new(vec![
            Joint::new("world", None, Transform::IDENTITY),
            Joint::new("hips", Some(0), tilted),
            Joint::new("chest", Some(1), up),
        ])
        .unwrap();
        let mut clip = Clip::new("walk", 0.0, 2.0).unwrap();
        let times: Vec<f64> = (0..=20).map(|i| f64::from(i) * 0.1).collect();
        let (mut path, mut turn) = (Vec::new(), Vec::new());
        for &t in &times {
            let yaw = math::axis_angle(DVec3::Y, 0.8 * t);
            path.extend([
                1.5 * math::sin(0.8 * t),
                1.0 + 0.03 * math::cos(9.0 * t),
                1.5 * math::cos(0.8 * t),
            ]);
            turn.extend(
                (yaw * math::axis_angle(DVec3::X, 0.1 * math::sin(5.0 * t)) * tilted.rotation).to_array(),
            );
        }
        for (property, kind, rows) in [
            (Property::Translation, ValueKind::Vector(3), path),
            (Property::Rotation, ValueKind::Rotation, turn),
        ] {
            let rest = rows[..kind.width()].to_vec();
            let curve = Curve::linear(kind, times.clone(), rows).unwrap();
            clip.tracks.push(Track::new(Binding::node(1, "hips", property), TrackData::Curve(curve), rest));
        }
        (skeleton, clip)
    }

    #[test]
    fn extracted_onto_the_parent_the_world_is_as_it_was() {
        let (skeleton, clip) = walk();
        let node = guess_root(&clip, &skeleton).unwrap();
        assert_eq!(node, 1);
        let times = sampling_times(&clip, crate::FrameRate::hz(60));
        let out =
            take_out(&clip, &skeleton, node, RootParts::default(), RootDestination::Parent, &times).unwrap();
        for &t in &times {
            let world =
                |c: &Clip| ModelPose::of(&skeleton, &LocalPose::of_clip(c, &skeleton, t, &TrackMask::all()));
            let (a, b) = (world(&clip), world(&out));
            assert!((a.joints[2].translation - b.joints[2].translation).length() < 1e-12);
            // The parent stands on the ground and keeps upright.
            assert!(b.joints[0].translation.y.abs() < 1e-12);
            assert!((b.joints[0].matrix3.y_axis - DVec3::Y).length() < 1e-12);
            // The hips stay above it.
            let local = LocalPose::of_clip(&out, &skeleton, t, &TrackMask::all()).joints[1];
            assert!(local.translation.x.abs() < 1e-9 && local.translation.z.abs() < 1e-9);
        }
    }

    #[test]
    fn in_place_the_hips_stay_over_the_origin_and_keep_their_bob() {
        let (skeleton, clip) = walk();
        let times = clip.key_times();
        let out =
            take_out(&clip, &skeleton, 1, RootParts::default(), RootDestination::Discard, &times).unwrap();
        let mut heights = Vec::new();
        for &t in &times {
            let at = LocalPose::of_clip(&out, &skeleton, t, &TrackMask::all()).joints[1];
            assert!(at.translation.x.abs() < 1e-12 && at.translation.z.abs() < 1e-12);
            heights.push(at.translation.y);
        }
        assert!(heights.iter().any(|h| *h > 1.02) && heights.iter().any(|h| *h < 0.98));
        let lone = Skeleton::new(vec![Joint::new("hips", None, Transform::IDENTITY)]).unwrap();
        let e = take_out(&clip, &lone, 0, RootParts::default(), RootDestination::Parent, &times).unwrap_err();
        assert!(e.to_string().contains("hips"));
    }
}
