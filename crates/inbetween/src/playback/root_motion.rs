//! Root motion: the part of a clip that moves the character through the world, taken out of the
//! pose and handed over as deltas that stay exact over loops.
//!
//! The motion of a root node is split as `M(t) = R(t) · P(t)`: `R` is what the world gets (chosen
//! axes of the path, and the heading or the whole turn), `P` is what stays in the pose. Over loops
//! travel and turn are composed, never summed apart: after `n` passes the character stands at
//! `Lⁿ · rel(t)`, with `L` the motion of one pass and `rel` the motion since the clip's start. The
//! power is by repeated squaring, so a loop played for days is as exact as one pass.

use glam::{DQuat, DVec3};

use crate::math;
use crate::pose::{LocalPose, ModelPose, decompose};
use crate::skeleton::{Skeleton, Transform};
use crate::time::Wrap;
use crate::track::TrackMask;
use crate::{Clip, Curve, CurveError, ValueKind};

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
}
