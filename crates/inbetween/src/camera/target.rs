//! Things that move and that a camera follows or looks at.
//!
//! The idea: a path whose keys are places relative to a subject is solved in the
//! subject's own frame, where a follow shot is nearly still, and carried along by
//! the subject's motion only when a pose is asked for. So smoothing never makes
//! the subject drift in the frame.

use crate::spline::{Derivative, RotationSpline, Spline, SplineError, TangentRule, quat_rotate};

/// A place, and if wanted a rotation, as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub struct MovingTarget {
    times: Vec<f64>,
    places: Vec<[f64; 3]>,
    smooth: bool,
    turns: Option<(Vec<f64>, Vec<[f64; 4]>)>,
    place: Spline,
    rotation: Option<RotationSpline>,
}

impl MovingTarget {
    /// A target at `places` (metres) at `times` (seconds), moved between them along
    /// the natural spline (`smooth`) or in straight lines.
    ///
    /// # Errors
    /// What is wrong with the keys; see [`Spline::new`].
    pub fn new(times: &[f64], places: &[[f64; 3]], smooth: bool) -> Result<Self, SplineError> {
        let flat = places.as_flattened();
        let place =
            if smooth { Spline::new(times, flat, 3, &TangentRule::Natural)? } else { straight(times, flat)? };
        Ok(Self {
            times: times.to_vec(),
            places: places.to_vec(),
            smooth,
            turns: None,
            place,
            rotation: None,
        })
    }

    /// The same target with a rotation, so that keys relative to it turn with it.
    ///
    /// # Errors
    /// What is wrong with the keys; see [`RotationSpline::new`].
    pub fn turning(mut self, times: &[f64], rotations: &[[f64; 4]]) -> Result<Self, SplineError> {
        self.rotation = Some(RotationSpline::new(times, rotations)?);
        self.turns = Some((times.to_vec(), rotations.to_vec()));
        Ok(self)
    }

    /// The keys of its place: times in seconds, places in metres.
    pub fn place_keys(&self) -> (&[f64], &[[f64; 3]]) {
        (&self.times, &self.places)
    }

    /// The keys of its rotation, if it has one.
    pub fn rotation_keys(&self) -> Option<(&[f64], &[[f64; 4]])> {
        self.turns.as_ref().map(|(times, turns)| (times.as_slice(), turns.as_slice()))
    }

    /// Whether it moves along the natural spline and not in straight lines.
    pub fn is_smooth(&self) -> bool {
        self.smooth
    }

    /// Its place at `time`, metres.
    pub fn place(&self, time: f64) -> [f64; 3] {
        self.sample(time, Derivative::Value)
    }

    /// Its velocity at `time`, metres per second.
    pub fn velocity(&self, time: f64) -> [f64; 3] {
        self.sample(time, Derivative::Velocity)
    }

    /// Its rotation at `time`; no rotation if it has none.
    pub fn rotation(&self, time: f64) -> [f64; 4] {
        self.rotation.as_ref().map_or([0.0, 0.0, 0.0, 1.0], |r| r.rotation(time))
    }

    /// Where a place in the target's frame is in the world.
    pub fn carried(&self, time: f64, offset: [f64; 3]) -> [f64; 3] {
        let (place, turned) = (self.place(time), quat_rotate(self.rotation(time), offset));
        [place[0] + turned[0], place[1] + turned[1], place[2] + turned[2]]
    }

    fn sample(&self, time: f64, what: Derivative) -> [f64; 3] {
        let mut out = [0.0; 3];
        self.place.sample(time, what, &mut out);
        out
    }
}

fn straight(times: &[f64], places: &[f64]) -> Result<Spline, SplineError> {
    let (mut arrive, mut leave) = (vec![0.0; places.len()], vec![0.0; places.len()]);
    for i in 1..times.len().min(places.len() / 3) {
        for k in 0..3 {
            let slope = (places[i * 3 + k] - places[i * 3 - 3 + k]) / (times[i] - times[i - 1]);
            (leave[i * 3 - 3 + k], arrive[i * 3 + k]) = (slope, slope);
        }
    }
    // Whatever is wrong with the keys themselves is told first and by its own name.
    crate::spline::check(times, places, 3)?;
    Spline::from_tangents(times, places, 3, &arrive, &leave)
}

/// What a camera looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum LookAt {
    /// A fixed place, metres.
    Place([f64; 3]),
    /// Something that moves.
    Moving(Box<MovingTarget>),
    /// The path's own channels `target.x`, `target.y` and `target.z`.
    Channels,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_target_moves_in_straight_lines() {
        let target =
            MovingTarget::new(&[0.0, 1.0, 3.0], &[[0.0; 3], [1.0, 0.0, 0.0], [1.0, 4.0, 0.0]], false)
                .unwrap();
        assert_eq!(target.place(0.5), [0.5, 0.0, 0.0]);
        assert_eq!(target.place(2.0), [1.0, 2.0, 0.0]);
        assert_eq!(target.velocity(2.0), [0.0, 2.0, 0.0]);
    }

    #[test]
    fn an_offset_turns_with_a_turning_target() {
        let quarter = crate::spline::quat_exp([0.0, std::f64::consts::FRAC_PI_4, 0.0]);
        let target =
            MovingTarget::new(&[0.0], &[[5.0, 0.0, 0.0]], true).unwrap().turning(&[0.0], &[quarter]).unwrap();
        let found = target.carried(0.0, [0.0, 0.0, 1.0]);
        assert!((found[0] - 6.0).abs() < 1e-15 && found[2].abs() < 1e-15, "{found:?}");
    }

    #[test]
    fn equal_times_are_named_and_not_divided_by() {
        let error = MovingTarget::new(&[0.0, 1.0, 1.0], &[[0.0; 3]; 3], false).unwrap_err();
        assert_eq!(error, SplineError::DuplicateTime { index: 2, time: 1.0 });
    }
}
