//! Critically damped springs: the shortest way to a goal without overshooting it.
//!
//! Exact for any time step, since the motion is written down and not integrated. A
//! half-life is the time in which half of what is left to go is gone, roughly.
//!
//! Source: Daniel Holden, *Spring-It-On: The Game Developer's Spring-Roll-Call*, 2021,
//! <https://theorangeduck.com/page/spring-roll-call>.

use inbetween::glam::DVec3;
pub use inbetween::playback::transition::decay;

/// The damping (1/s, halved) of a spring with a half-life in seconds.
fn damping(halflife_s: f64) -> f64 {
    2.0 * std::f64::consts::LN_2 / halflife_s.max(1e-6)
}

/// What a velocity does that is drawn to a goal: place, velocity and acceleration.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VelocitySpring {
    /// Metres from where it began.
    pub position: DVec3,
    /// m/s.
    pub velocity: DVec3,
    /// m/s².
    pub acceleration: DVec3,
}

impl VelocitySpring {
    /// `time` seconds later, drawn to a steady `goal` velocity.
    #[must_use]
    pub fn after(self, goal: DVec3, halflife_s: f64, time: f64) -> Self {
        let y = damping(halflife_s);
        let j0 = self.velocity - goal;
        let j1 = self.acceleration + j0 * y;
        let e = libm::exp(-y * time);
        Self {
            position: self.position + goal * time + (j1 / (y * y) + j0 / y)
                - (j1 / (y * y) + (j0 + j1 * time) / y) * e,
            velocity: (j0 + j1 * time) * e + goal,
            acceleration: (self.acceleration - j1 * (y * time)) * e,
        }
    }
}

/// An angle drawn to a goal angle.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AngleSpring {
    /// Radians.
    pub angle: f64,
    /// rad/s.
    pub rate: f64,
}

impl AngleSpring {
    /// `time` seconds later, drawn the short way round to `goal`.
    #[must_use]
    pub fn after(self, goal: f64, halflife_s: f64, time: f64) -> Self {
        let left = short_way(self.angle - goal);
        let (left, rate) =
            decay(DVec3::new(left, 0.0, 0.0), DVec3::new(self.rate, 0.0, 0.0), halflife_s, time);
        Self { angle: goal + left.x, rate: rate.x }
    }
}

/// An angle brought to −π to π.
#[must_use]
pub fn short_way(angle: f64) -> f64 {
    let turn = std::f64::consts::TAU;
    angle - turn * (angle / turn).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_short_steps_are_one_long_step() {
        let start = VelocitySpring { velocity: DVec3::X, acceleration: DVec3::Z, ..Default::default() };
        let goal = DVec3::new(0.0, 0.0, 3.0);
        let once = start.after(goal, 0.2, 0.5);
        let twice = start.after(goal, 0.2, 0.2).after(goal, 0.2, 0.3);
        assert!((once.position - twice.position).length() < 1e-12);
        assert!((once.velocity - twice.velocity).length() < 1e-12);
        assert!((once.acceleration - twice.acceleration).length() < 1e-12);
    }

    #[test]
    fn the_velocity_is_the_rate_of_the_place() {
        let start = VelocitySpring { velocity: DVec3::X, acceleration: DVec3::Z, ..Default::default() };
        let at = |t| start.after(DVec3::Y, 0.15, t);
        let slope = (at(0.3 + 1e-6).position - at(0.3 - 1e-6).position) / 2e-6;
        assert!((slope - at(0.3).velocity).length() < 1e-8);
        let slope = (at(0.3 + 1e-6).velocity - at(0.3 - 1e-6).velocity) / 2e-6;
        assert!((slope - at(0.3).acceleration).length() < 1e-7);
    }

    #[test]
    fn a_spring_reaches_its_goal_without_passing_it() {
        let start = VelocitySpring::default();
        let mut last = 0.0;
        for k in 0..200 {
            let v = start.after(DVec3::X, 0.1, f64::from(k) * 0.01).velocity.x;
            assert!(v >= last && v <= 1.0);
            last = v;
        }
        assert!(last > 0.9999);
    }

    #[test]
    fn an_angle_goes_the_short_way() {
        let spring = AngleSpring { angle: 3.0, rate: 0.0 }.after(-3.0, 0.1, 0.05);
        assert!(short_way(spring.angle - 3.0) > 0.0, "{spring:?}");
    }
}
