//! Poses out of a path: where the camera is at a time, how fast it goes and turns.
//!
//! The idea: channels that make up a pose are found by their roles; a subject
//! carries the place (and turns it), a target overrides where the camera looks, and
//! levelling comes last. What a path does not have is left at its default: the
//! origin, looking along −z.

use super::channel::{CameraAngles, CameraPose, Role};
use super::path::CameraPath;
use super::target::LookAt;
use crate::spline::{Cursor, Derivative, quat_conjugate, quat_log, quat_multiply, quat_rotate};

/// Half the time over which turning is measured where it has no formula, seconds.
const TURN_STEP: f64 = 1e-5;

impl CameraPath {
    /// All channels at `time`, in their order, written into `out`; angles run on and
    /// are not wrapped. Held outside the keys, repeated on closed paths.
    ///
    /// # Panics
    /// If `out` does not have one number for each channel.
    pub fn values_at(&self, time: f64, what: Derivative, out: &mut [f64]) {
        assert_eq!(out.len(), self.channels.len(), "one number for each channel");
        for (k, out) in out.iter_mut().enumerate() {
            *out = self.solved.curve.derivative(k, time, what);
        }
    }

    /// As [`CameraPath::values_at`], in playback.
    ///
    /// # Panics
    /// If `out` does not have one number for each channel.
    pub fn values_with(&self, cursor: &mut Cursor, time: f64, out: &mut [f64]) {
        assert_eq!(out.len(), self.channels.len(), "one number for each channel");
        if !out.is_empty() {
            self.solved.curve.sample_with(cursor, time, Derivative::Value, out);
        }
    }

    /// The camera at `time`, in the world.
    pub fn pose(&self, time: f64) -> CameraPose {
        let own = self.place(time, Derivative::Value);
        let position = self.subject.as_ref().map_or(own, |s| s.carried(time, own));
        let rotation = self.world_rotation(time, position);
        CameraPose {
            position,
            rotation,
            fov: self.role(Role::Fov).map(|k| self.solved.curve.component(k, time)),
        }
    }

    /// Velocity of the camera at `time` in the world, metres per second.
    pub fn velocity(&self, time: f64) -> [f64; 3] {
        let own = self.place(time, Derivative::Velocity);
        let Some(subject) = &self.subject else { return own };
        let offset = self.place(time, Derivative::Value);
        let (carried, turned) = (subject.velocity(time), quat_rotate(subject.rotation(time), own));
        // The offset also goes round with a turning subject.
        let (before, after) = (subject.rotation(time - TURN_STEP), subject.rotation(time + TURN_STEP));
        let (a, b) = (quat_rotate(before, offset), quat_rotate(after, offset));
        [0, 1, 2].map(|k| carried[k] + turned[k] + (b[k] - a[k]) / (2.0 * TURN_STEP))
    }

    /// Speed of the camera at `time`, metres per second.
    pub fn speed(&self, time: f64) -> f64 {
        self.velocity(time).iter().map(|v| v * v).sum::<f64>().sqrt()
    }

    /// Acceleration of the camera's place at `time` among its keys' axes, metres per
    /// second squared.
    pub fn acceleration(&self, time: f64) -> [f64; 3] {
        self.place(time, Derivative::Acceleration)
    }

    /// How fast the camera turns at `time`, radians per second, about whatever axis.
    pub fn turning_rate(&self, time: f64) -> f64 {
        // A difference across a key would miss a corner or a cut: stay inside the
        // span that holds the time.
        let mut span = self.times.partition_point(|&t| t <= time);
        if span == self.times.len() && span > 1 && time == self.times[span - 1] && self.closing_gap.is_none()
        {
            // At the end the camera still turns as it arrives.
            span -= 1;
        }
        let low = if span > 0 { self.times[span - 1] } else { f64::NEG_INFINITY };
        let high = self.times.get(span).copied().unwrap_or(f64::INFINITY);
        let (a, b) = ((time - TURN_STEP).max(low), (time + TURN_STEP).min(high.next_down().max(time)));
        if b <= a || time.is_nan() {
            return 0.0;
        }
        let step = quat_multiply(quat_conjugate(self.pose(a).rotation), self.pose(b).rotation);
        let half = quat_log(if step[3] < 0.0 { step.map(|x| -x) } else { step });
        2.0 * half.iter().map(|x| x * x).sum::<f64>().sqrt() / (b - a)
    }

    /// Yaw, pitch and roll of the camera at `time`, radians: the keys' own where
    /// they say so, unwrapped, else read from the rotation.
    pub fn angles(&self, time: f64) -> CameraAngles {
        let plain = self.look_at.is_none() && self.subject.is_none() && !self.has_rotations();
        if plain {
            let mut angles = self.own_angles(time);
            if self.level {
                angles.roll = 0.0;
            }
            return angles;
        }
        CameraAngles::of(self.pose(time).rotation)
    }

    fn world_rotation(&self, time: f64, position: [f64; 3]) -> [f64; 4] {
        let target = match &self.look_at {
            None => {
                let own = self.own_rotation(time);
                let turned = self.subject.as_ref().map_or(own, |s| quat_multiply(s.rotation(time), own));
                if !self.level {
                    return turned;
                }
                return CameraAngles { roll: 0.0, ..CameraAngles::of(turned) }.rotation();
            }
            Some(LookAt::Place(place)) => *place,
            Some(LookAt::Moving(target)) => target.place(time),
            Some(LookAt::Channels) => {
                let own = self.three([Role::TargetX, Role::TargetY, Role::TargetZ], time, Derivative::Value);
                self.subject.as_ref().map_or(own, |s| s.carried(time, own))
            }
        };
        let own = if self.has_rotations() {
            CameraAngles::of(self.own_rotation(time))
        } else {
            self.own_angles(time)
        };
        let roll = if self.level { 0.0 } else { own.roll };
        CameraAngles { roll, ..CameraAngles::looking(position, target, own) }.rotation()
    }

    /// The rotation the keys give, before anything is followed or looked at.
    pub(super) fn own_rotation(&self, time: f64) -> [f64; 4] {
        if self.solved.rotations.is_empty() {
            return self.own_angles(time).rotation();
        }
        let (start, end) = (self.start(), self.end());
        let mut folded = time;
        if self.closing_gap.is_some() && !(start..end).contains(&time) && time.is_finite() {
            let period = end - start;
            folded = (start + (time - start).rem_euclid(period)).min(end);
        }
        let runs = &self.solved.rotations;
        match runs.partition_point(|(begin, _)| *begin <= folded) {
            // Before the first run of a closed path the one over the seam still plays.
            0 if self.closing_gap.is_some() => runs[runs.len() - 1].1.rotation(folded + (end - start)),
            0 => runs[0].1.rotation(folded),
            after => runs[after - 1].1.rotation(folded),
        }
    }

    fn own_angles(&self, time: f64) -> CameraAngles {
        let angle = |role| {
            self.role(role)
                .map_or(0.0, |k| self.solved.curve.component(k, time) * self.channels[k].radians_per_unit())
        };
        CameraAngles { yaw: angle(Role::Yaw), pitch: angle(Role::Pitch), roll: angle(Role::Roll) }
    }

    fn place(&self, time: f64, what: Derivative) -> [f64; 3] {
        self.three([Role::X, Role::Y, Role::Z], time, what)
    }

    fn three(&self, roles: [Role; 3], time: f64, what: Derivative) -> [f64; 3] {
        roles.map(|role| self.role(role).map_or(0.0, |k| self.solved.curve.derivative(k, time, what)))
    }
}
