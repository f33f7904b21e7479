//! Joining two motions at a jump without a pop, with only the new one being played.
//!
//! *Inertialisation*: at the jump, take down how far the shown pose and its velocity are
//! from the new motion, and let that offset die away on a critically damped spring.
//! *Dead blending*: let the old pose coast on with its velocity dying away, and fade from
//! it to the new motion.
//!
//! Sources: David Bollo, *Inertialization*, GDC 2018; Daniel Holden, *Dead Blending*, 2023,
//! <https://theorangeduck.com/page/dead-blending>.

use glam::{DQuat, DVec3};

use crate::math;
use crate::pose::LocalPose;

/// How jumps are smoothed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Blend {
    /// None: the pose pops.
    None,
    /// Offsets that die away with this half-life, in seconds.
    Inertialise {
        /// Seconds; longer is smoother and less like either motion.
        halflife_s: f64,
    },
    /// A fade of this length from the coasting old pose, whose velocity dies away with the
    /// half-life.
    DeadBlend {
        /// Seconds of the fade.
        fade_s: f64,
        /// Half-life of the coasting velocity, in seconds.
        halflife_s: f64,
    },
}

impl Default for Blend {
    fn default() -> Self {
        Self::Inertialise { halflife_s: 0.1 }
    }
}

/// What lies between the motion that plays and the pose that is shown.
#[derive(Debug, Clone, Default)]
pub struct Blender {
    joints: Vec<Offset>,
    since_s: f64,
    active: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Offset {
    place: DVec3,
    place_rate: DVec3,
    /// A rotation vector, applied in the parent's space.
    turn: DVec3,
    turn_rate: DVec3,
    /// Dead blending: the pose that coasts.
    old_place: DVec3,
    old_turn: DQuat,
    old_rate: DVec3,
    old_spin: DVec3,
}

impl Blender {
    /// Takes note of a jump.
    ///
    /// - `shown`, `shown_before`: the pose shown last and the one `dt` seconds before it.
    /// - `next`, `next_after`: the new motion at the moment the last pose was shown, and
    ///   `dt` seconds later, which is when its first pose will be.
    pub fn jump(
        &mut self,
        shown: &LocalPose,
        shown_before: &LocalPose,
        next: &LocalPose,
        next_after: &LocalPose,
        dt: f64,
    ) {
        self.active = true;
        self.since_s = 0.0;
        self.joints.clear();
        for joint in 0..next.joints.len() {
            let (s, p) = (&shown.joints[joint], &shown_before.joints[joint]);
            let (n, m) = (&next.joints[joint], &next_after.joints[joint]);
            let shown_rate = (s.translation - p.translation) / dt;
            let next_rate = (m.translation - n.translation) / dt;
            let shown_spin = rotation_between(p.rotation, s.rotation) / dt;
            let next_spin = rotation_between(n.rotation, m.rotation) / dt;
            self.joints.push(Offset {
                place: s.translation - n.translation,
                place_rate: shown_rate - next_rate,
                turn: rotation_between(n.rotation, s.rotation),
                turn_rate: shown_spin - next_spin,
                old_place: s.translation,
                old_turn: s.rotation,
                old_rate: shown_rate,
                old_spin: shown_spin,
            });
        }
    }

    /// Shows the new motion's pose with what is left of the jump, `dt` seconds on.
    pub fn apply(&mut self, blend: Blend, pose: &mut LocalPose, dt: f64) {
        if !self.active || self.joints.len() != pose.joints.len() {
            return;
        }
        self.since_s += dt;
        match blend {
            Blend::None => self.active = false,
            Blend::Inertialise { halflife_s } => {
                for (offset, joint) in self.joints.iter_mut().zip(&mut pose.joints) {
                    (offset.place, offset.place_rate) =
                        decay(offset.place, offset.place_rate, halflife_s, dt);
                    (offset.turn, offset.turn_rate) = decay(offset.turn, offset.turn_rate, halflife_s, dt);
                    joint.translation += offset.place;
                    joint.rotation = math::from_rotation_vector(offset.turn) * joint.rotation;
                }
                // After twenty half-lives a metre is a micrometre.
                self.active = self.since_s < 20.0 * halflife_s;
            }
            Blend::DeadBlend { fade_s, halflife_s } => {
                let u = (self.since_s / fade_s.max(1e-6)).min(1.0);
                let share = u * u * (3.0 - 2.0 * u);
                // The distance covered while the velocity halves and halves again.
                let rate = std::f64::consts::LN_2 / halflife_s.max(1e-6);
                let coasted = (1.0 - libm::exp(-rate * self.since_s)) / rate;
                for (offset, joint) in self.joints.iter().zip(&mut pose.joints) {
                    let place = offset.old_place + offset.old_rate * coasted;
                    let turn = math::from_rotation_vector(offset.old_spin * coasted) * offset.old_turn;
                    joint.translation = place.lerp(joint.translation, share);
                    joint.rotation = math::slerp(turn, joint.rotation, share);
                }
                self.active = u < 1.0;
            }
        }
    }

    /// The largest offset of a joint's place (m) and turn (rad) at the last jump's moment.
    #[must_use]
    pub fn size(&self) -> (f64, f64) {
        self.size_of(|_| true)
    }

    /// The same over the joints, by number, that `counts`.
    #[must_use]
    pub fn size_of(&self, counts: impl Fn(usize) -> bool) -> (f64, f64) {
        let counted = self.joints.iter().enumerate().filter(|(i, _)| counts(*i));
        counted.fold((0.0f64, 0.0f64), |(place, turn), (_, o)| {
            (place.max(o.place.length()), turn.max(o.turn.length()))
        })
    }
}

/// An offset and its velocity `time` seconds later, drawn to nothing by a critically damped spring:
/// after a half-life roughly half of it is left. Exact for any step of time.
///
/// Source: Daniel Holden, *Spring-It-On: The Game Developer's Spring-Roll-Call*, 2021.
#[must_use]
pub fn decay(offset: DVec3, velocity: DVec3, halflife_s: f64, time: f64) -> (DVec3, DVec3) {
    let y = 2.0 * std::f64::consts::LN_2 / halflife_s.max(1e-6);
    let j1 = velocity + offset * y;
    let e = libm::exp(-y * time);
    ((offset + j1 * time) * e, (velocity - j1 * (y * time)) * e)
}

/// The rotation vector that takes `from` to `to` in the parent's space, the short way.
fn rotation_between(from: DQuat, to: DQuat) -> DVec3 {
    let q = to * from.conjugate();
    math::rotation_vector(if q.w < 0.0 { -q } else { q })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeleton::Transform;

    const DT: f64 = 1.0 / 60.0;

    fn pose(x: f64, angle: f64) -> LocalPose {
        LocalPose {
            joints: vec![Transform {
                translation: DVec3::new(x, 0.0, 0.0),
                rotation: math::axis_angle(DVec3::Y, angle),
                ..Transform::IDENTITY
            }],
        }
    }

    /// Old motion: 1 m/s and 1 rad/s. New motion: starts 0.3 m and 0.5 rad off, at −2 of each.
    fn shown(blend: Blend) -> Vec<(f64, f64)> {
        let old = |k: i32| pose(f64::from(k) * DT, f64::from(k) * DT);
        let new = |k: i32| pose(0.3 - 2.0 * f64::from(k) * DT, 0.5 - 2.0 * f64::from(k) * DT);
        let mut blender = Blender::default();
        let mut list = vec![(-DT, -DT), (0.0, 0.0)];
        blender.jump(&old(0), &old(-1), &new(0), &new(1), DT);
        for k in 1..120 {
            let mut pose = new(k);
            blender.apply(blend, &mut pose, DT);
            let joint = pose.joints[0];
            list.push((joint.translation.x, 2.0 * math::atan2(joint.rotation.y, joint.rotation.w)));
        }
        list
    }

    #[test]
    fn a_jump_shows_neither_in_the_place_nor_in_the_speed() {
        for blend in
            [Blend::Inertialise { halflife_s: 0.1 }, Blend::DeadBlend { fade_s: 0.3, halflife_s: 0.1 }]
        {
            let list = shown(blend);
            for k in 2..list.len() {
                let step = |f: fn(&(f64, f64)) -> f64| (f(&list[k]) - f(&list[k - 1])) / DT;
                let before = |f: fn(&(f64, f64)) -> f64| (f(&list[k - 1]) - f(&list[k - 2])) / DT;
                // 3 m/s are lost over a tenth of a second and more: at most 1.2 m/s a frame,
                // where a pop of the place alone would be 18.
                assert!((step(|p| p.0) - before(|p| p.0)).abs() < 1.2, "{blend:?} frame {k}");
                assert!((step(|p| p.1) - before(|p| p.1)).abs() < 1.2, "{blend:?} frame {k}");
            }
            let (x, angle) = list[list.len() - 1];
            let end = 119.0 * DT;
            assert!((x - (0.3 - 2.0 * end)).abs() < 1e-3, "{blend:?}");
            let turn = std::f64::consts::TAU;
            let off = angle - (0.5 - 2.0 * end);
            assert!((off - turn * (off / turn).round()).abs() < 1e-3, "{blend:?}");
        }
    }
}
