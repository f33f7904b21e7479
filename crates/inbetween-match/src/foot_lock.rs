//! Holding a foot where it was put down while the clip says it stands.
//!
//! Smoothing a jump moves everything a little, feet that stand included. A standing foot is
//! therefore drawn back to the place where it touched down by bending hip and knee; when
//! it leaves the ground, or the place lies too far away, what is left dies away on a spring.

use inbetween::glam::{DQuat, DVec3};
use inbetween::{LocalPose, ModelPose, Skeleton, math};

use crate::spring::decay;

/// The nodes of a leg: each hangs on the one before, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Turns at the hip.
    pub thigh: usize,
    /// Turns at the knee.
    pub shin: usize,
    /// Is held.
    pub foot: usize,
}

/// How far a foot may be from where it is held before it is let go, as a share of the leg's length.
/// After a jump a standing foot may be a step away from where the new clip has it; let go too soon
/// it would slide there.
const LET_GO: f64 = 0.4;

/// Half-life of what is left after letting go, in seconds.
const RELEASE_S: f64 = 0.06;

/// A foot that may be held.
#[derive(Debug, Clone)]
pub(crate) struct FootLock {
    leg: Leg,
    held: Option<DVec3>,
    /// From where the foot would be to where it is shown.
    offset: DVec3,
    rate: DVec3,
}

impl FootLock {
    pub(crate) fn new(leg: Leg) -> Self {
        Self { leg, held: None, offset: DVec3::ZERO, rate: DVec3::ZERO }
    }

    /// Where the foot is held, if it is.
    pub(crate) fn held(&self) -> Option<DVec3> {
        self.held
    }

    pub(crate) fn leg(&self) -> Leg {
        self.leg
    }

    /// Corrects a placed pose whose matrices are `world`.
    pub(crate) fn update(
        &mut self,
        skeleton: &Skeleton,
        pose: &mut LocalPose,
        world: &ModelPose,
        stands: bool,
        dt: f64,
    ) {
        let at = |node: usize| world.joints[node].translation;
        let foot = at(self.leg.foot);
        let length = (at(self.leg.shin) - at(self.leg.thigh)).length() + (foot - at(self.leg.shin)).length();
        let let_go = LET_GO * length;
        (self.offset, self.rate) = decay(self.offset, self.rate, RELEASE_S, dt);
        let free = foot + self.offset;
        self.held = match self.held {
            Some(place) if stands && (place - foot).length() < let_go => Some(place),
            Some(_) => None,
            None if stands && (free - foot).length() < 0.5 * let_go => Some(free),
            None => None,
        };
        let target = match self.held {
            // Held on the ground plane; the clip's own height keeps heel and toe rolling.
            Some(place) => {
                let target = DVec3::new(place.x, foot.y + self.offset.y, place.z);
                self.offset = target - foot;
                self.rate = DVec3::ZERO;
                target
            }
            None => free,
        };
        if (target - foot).length() > 1e-6 {
            reach(skeleton, pose, world, self.leg, target);
        }
    }
}

/// Bends a leg so that its foot is at `target`, keeping the foot's own direction.
///
/// Beyond its length the leg points at the target. Source: Daniel Holden, *Simple Two
/// Joint IK*, 2017, <https://theorangeduck.com/page/simple-two-joint>.
fn reach(skeleton: &Skeleton, pose: &mut LocalPose, world: &ModelPose, leg: Leg, target: DVec3) {
    let at = |node: usize| world.joints[node].translation;
    let turn = |node: usize| world.decompose(node).0.rotation;
    let (a, b, c) = (at(leg.thigh), at(leg.shin), at(leg.foot));
    let (upper, lower) = ((b - a).length(), (c - b).length());
    let straight = (upper + lower) * 0.9999;
    let length = (target - a).length().clamp((upper - lower).abs() + 1e-6, straight);
    if upper < 1e-6 || lower < 1e-6 {
        return;
    }
    let angle =
        |x: DVec3, y: DVec3| math::acos(x.normalize_or_zero().dot(y.normalize_or_zero()).clamp(-1.0, 1.0));
    let corner =
        |x: f64, y: f64, z: f64| math::acos(((x * x + y * y - z * z) / (2.0 * x * y)).clamp(-1.0, 1.0));
    let hip = corner(upper, length, lower) - angle(c - a, b - a);
    let knee = corner(upper, lower, length) - angle(a - b, c - b);
    // A leg stretched out straight bends about the shin's own side axis.
    let mut axis = (c - a).cross(b - a);
    if axis.length() < 1e-6 * upper * lower {
        axis = turn(leg.shin) * DVec3::X;
    }
    let axis = axis.normalize_or_zero();
    let swing = shortest(c - a, target - a);
    let first = swing * math::axis_angle(axis, hip);
    let second = first * math::axis_angle(axis, knee);
    let above = skeleton.joints()[leg.thigh].parent.map_or(DQuat::IDENTITY, turn);
    let thigh = first * turn(leg.thigh);
    let shin = second * turn(leg.shin);
    pose.joints[leg.thigh].rotation = (above.conjugate() * thigh).normalize();
    pose.joints[leg.shin].rotation = (thigh.conjugate() * shin).normalize();
    pose.joints[leg.foot].rotation = (shin.conjugate() * turn(leg.foot)).normalize();
}

/// The smallest rotation that points `from` along `to`.
fn shortest(from: DVec3, to: DVec3) -> DQuat {
    let (from, to) = (from.normalize_or_zero(), to.normalize_or_zero());
    let cross = from.cross(to);
    let q = DQuat::from_xyzw(cross.x, cross.y, cross.z, 1.0 + from.dot(to));
    math::unit(q).unwrap_or(DQuat::IDENTITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inbetween::{Joint, Transform};

    fn leg() -> (Skeleton, LocalPose) {
        let at =
            |x: f64, y: f64, z: f64| Transform { translation: DVec3::new(x, y, z), ..Transform::IDENTITY };
        let skeleton = Skeleton::new(vec![
            Joint::new("hips", None, at(0.0, 1.0, 0.0)),
            Joint::new("thigh", Some(0), at(0.1, 0.0, 0.0)),
            Joint::new("shin", Some(1), at(0.0, -0.48, 0.03)),
            Joint::new("foot", Some(2), at(0.0, -0.45, -0.03)),
        ])
        .unwrap();
        let pose = LocalPose::rest(&skeleton);
        (skeleton, pose)
    }

    #[test]
    fn a_leg_reaches_any_place_within_its_length_and_keeps_the_foot_level() {
        let (skeleton, rest) = leg();
        let world = ModelPose::of(&skeleton, &rest);
        for target in [DVec3::new(0.15, 0.2, 0.2), DVec3::new(0.0, 0.15, -0.3), DVec3::new(0.1, 0.5, 0.0)] {
            let mut pose = rest.clone();
            reach(&skeleton, &mut pose, &world, Leg { thigh: 1, shin: 2, foot: 3 }, target);
            let bent = ModelPose::of(&skeleton, &pose);
            assert!((bent.joints[3].translation - target).length() < 1e-9, "{target}");
            let level = bent.decompose(3).0.rotation;
            assert!(math::angle_between(level, DQuat::IDENTITY) < 1e-9);
        }
    }

    #[test]
    fn beyond_its_length_the_leg_points_at_the_place() {
        let (skeleton, mut pose) = leg();
        let world = ModelPose::of(&skeleton, &pose);
        let target = DVec3::new(2.0, 1.0, 0.0);
        reach(&skeleton, &mut pose, &world, Leg { thigh: 1, shin: 2, foot: 3 }, target);
        let bent = ModelPose::of(&skeleton, &pose);
        let foot = bent.joints[3].translation;
        assert!((foot - DVec3::new(0.1, 1.0, 0.0)).normalize().dot(DVec3::X) > 0.999_999);
    }

    #[test]
    fn a_standing_foot_stays_where_it_was_put_down_while_the_body_moves_on() {
        let (skeleton, rest) = leg();
        let mut lock = FootLock::new(Leg { thigh: 1, shin: 2, foot: 3 });
        let mut first = None;
        for step in 0..6 {
            let mut pose = rest.clone();
            pose.joints[0].translation.z += f64::from(step) * 0.01;
            pose.joints[0].translation.y -= 0.05;
            let world = ModelPose::of(&skeleton, &pose);
            lock.update(&skeleton, &mut pose, &world, true, 1.0 / 60.0);
            let foot = ModelPose::of(&skeleton, &pose).joints[3].translation;
            let first = *first.get_or_insert(foot);
            assert!((foot - first).length() < 1e-9);
        }
    }
}
