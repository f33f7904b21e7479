//! Leading the animated character after the path that was asked for.
//!
//! Clips seldom hold the very turn or speed that is wanted: the best of them leaves the character a
//! few degrees off, and without help that stays. So the root is turned and moved a little beside
//! the clip's own motion. The correction is critically damped, and bounded by what the clip itself
//! does: where the character stands still it gets nothing, so feet need not slide for it. A turn is
//! made about the foot that is held on the ground, where one is.
//!
//! What is corrected is what will be: the clip's own motion over a short look ahead against the
//! path asked for over the same time. A clip that turns by itself is left to do so.
//!
//! Source of the idea (adjusting the animation towards a simulated object, by a share of its own
//! velocity): Daniel Holden, *Code vs Data Driven Displacement*, 2021,
//! <https://theorangeduck.com/page/code-vs-data-driven-displacement>.

use inbetween::glam::DVec3;
use inbetween::math;
use inbetween::playback::root_motion::Rigid;

use crate::motion::{Waypoint, yaw};
use crate::spring::{decay, short_way};

/// How far the root may be led away from the clip's own motion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steering {
    /// Half-life of the correction, seconds. Default 0.2.
    pub halflife_s: f64,
    /// The stretch of the clip and of the path that are compared, seconds. Default 0.3.
    pub look_ahead_s: f64,
    /// Most turning that is added, rad/s, while the clip walks or turns; less as it slows down.
    /// Default 1.5 (86°/s).
    pub turn_rad_s: f64,
    /// Most moving that is added, as a share of the clip's own speed. Default 0.15.
    pub place_share: f64,
    /// How far the path may run ahead of the character, metres; beyond that it waits. Default 0.3.
    pub leash_m: f64,
}

impl Default for Steering {
    fn default() -> Self {
        Self { halflife_s: 0.2, look_ahead_s: 0.3, turn_rad_s: 1.5, place_share: 0.15, leash_m: 0.3 }
    }
}

/// The speed at which a clip counts as walking, m/s, and as turning, rad/s.
const WALKING: (f64, f64) = (0.5, 1.0);

/// Slower than this a direction means nothing, m/s.
const CREEPING: f64 = 0.15;

/// What a correction needs to remember.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Steered {
    turn_rate: f64,
    place_rate: DVec3,
}

/// What the clip will do and what is wanted, both as seen from the character.
pub(crate) struct Ahead {
    /// The clip's own motion over the look ahead.
    pub clip: Rigid,
    /// The path over the look ahead.
    pub wanted: Waypoint,
    /// Whether where it faces is wanted for its own sake, not because it goes there.
    pub faces: bool,
    /// The schema's forward direction.
    pub forward: DVec3,
}

impl Steered {
    /// The turn about +Y to add in this step, radians.
    pub fn turn(&mut self, how: &Steering, ahead: &Ahead, dt: f64) -> f64 {
        let time = how.look_ahead_s.max(1e-3);
        let (own, wanted) = (flat(ahead.clip.translation) / time, flat(ahead.wanted.position) / time);
        let turned = yaw(ahead.clip.rotation);
        let moves = own.length() > CREEPING && wanted.length() > CREEPING;
        let error = if moves && !ahead.faces {
            angle(own, wanted)
        } else {
            short_way(angle(ahead.forward, ahead.wanted.facing) - turned)
        };
        // Right behind, either way round is as far: go on as it began.
        let behind = error.abs() > 2.8 && self.turn_rate != 0.0 && (error > 0.0) != (self.turn_rate > 0.0);
        let error = if behind { error - std::f64::consts::TAU.copysign(error) } else { error };
        let most = how.turn_rad_s.max(0.0)
            * (own.length() / WALKING.0).max(turned.abs() / time / WALKING.1).min(1.0)
            * dt;
        let (left, rate) = decay(DVec3::X * error, DVec3::X * -self.turn_rate, how.halflife_s, dt);
        let whole = error - left.x;
        let turn = whole.clamp(-most, most);
        self.turn_rate = if turn == whole { -rate.x } else { turn / dt };
        turn
    }

    /// The way over the ground to add in this step: `gap` leads from the character to where the
    /// path has come, `own` is what the clip moved in this step, both in the world.
    pub fn place(&mut self, how: &Steering, gap: DVec3, own: DVec3, dt: f64) -> DVec3 {
        let (left, rate) = decay(flat(gap), -self.place_rate, how.halflife_s, dt);
        let most = how.place_share.max(0.0) * flat(own).length();
        let whole = flat(gap) - left;
        let moved = whole.clamp_length_max(most);
        self.place_rate = if moved == whole { -rate } else { moved / dt };
        moved
    }
}

fn flat(v: DVec3) -> DVec3 {
    DVec3::new(v.x, 0.0, v.z)
}

/// The turn about +Y from one direction over the ground to another.
fn angle(from: DVec3, to: DVec3) -> f64 {
    math::atan2(from.cross(to).y, flat(from).dot(flat(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(own: DVec3, wanted: DVec3) -> Ahead {
        Ahead {
            clip: Rigid { translation: own * 0.3, ..Rigid::IDENTITY },
            wanted: Waypoint { position: wanted * 0.3, facing: wanted.normalize_or(DVec3::Z) },
            faces: false,
            forward: DVec3::Z,
        }
    }

    #[test]
    fn a_walk_that_is_off_is_turned_to_the_wanted_course_without_passing_it() {
        let (how, dt) = (Steering::default(), 1.0 / 60.0);
        for start in [0.1f64, 0.5, -1.5, 3.0] {
            let (mut steered, mut off) = (Steered::default(), start);
            for _ in 0..300 {
                let wanted = math::axis_angle(DVec3::Y, off) * DVec3::Z;
                let turn = steered.turn(&how, &ahead(DVec3::Z, wanted), dt);
                assert!(turn.abs() <= how.turn_rad_s * dt + 1e-12);
                off -= turn;
                assert!(off * start.signum() > -1e-6, "{off} after {start}");
            }
            assert!(off.abs() < 1e-3, "{off} is left of {start}");
        }
    }

    #[test]
    fn what_stands_still_is_neither_turned_nor_moved() {
        let (how, mut steered) = (Steering::default(), Steered::default());
        assert_eq!(steered.turn(&how, &ahead(DVec3::ZERO, DVec3::X), 0.02), 0.0);
        assert_eq!(steered.place(&how, DVec3::X, DVec3::ZERO, 0.02), DVec3::ZERO);
    }

    #[test]
    fn the_way_added_is_no_more_than_its_share_of_the_clips_own() {
        let (how, mut steered) = (Steering::default(), Steered::default());
        for _ in 0..50 {
            let moved = steered.place(&how, DVec3::X * 5.0, DVec3::Z * 0.02, 1.0 / 60.0);
            assert!(moved.length() <= how.place_share * 0.02 + 1e-12);
        }
    }
}
