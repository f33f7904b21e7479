//! How far the character is through a step, as a point on a circle.
//!
//! The phase runs from 0 to 1 between two touch-downs of a joint and is given as its
//! cosine and sine, so that its end meets its beginning. In a loop the touch-downs go
//! round; before the first and after the last one of another clip, and where a joint never
//! touches down, both numbers are 0.

use inbetween::math;

use crate::channels::FeatureChannel;
use crate::channels::contact::standing;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::{Motion, Standing};
use crate::schema::Fields;

#[derive(Debug)]
struct Phase {
    joint: String,
    standing: Standing,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(Phase { joint: fields.text("joint")?, standing: standing(fields)? }))
}

impl FeatureChannel for Phase {
    fn default_name(&self) -> String {
        format!("phase {}", self.joint)
    }
    fn columns(&self) -> Vec<String> {
        ["cos", "sin"].map(str::to_owned).to_vec()
    }
    fn family(&self) -> Family {
        Family::Pose
    }
    fn joints(&self) -> Vec<&str> {
        vec![&self.joint]
    }
    fn bake(
        &self,
        motion: &mut Motion,
        joints: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        let downs = motion.touch_downs(joints[0], self.standing);
        let (start, end) = motion.range();
        let inside = motion.inside(time);
        let next = downs.partition_point(|t| *t <= inside);
        let length = if motion.is_loop() { Some(end - start) } else { None };
        let before = match (next.checked_sub(1), length) {
            (Some(at), _) => Some(downs[at]),
            (None, Some(length)) => downs.last().map(|t| t - length),
            (None, None) => None,
        };
        let after = match (downs.get(next), length) {
            (Some(t), _) => Some(*t),
            (None, Some(length)) => downs.first().map(|t| t + length),
            (None, None) => None,
        };
        out.extend(match (before, after) {
            (Some(a), Some(b)) if b > a => {
                let angle = std::f64::consts::TAU * (inside - a) / (b - a);
                [math::cos(angle) as f32, math::sin(angle) as f32]
            }
            _ => [0.0, 0.0],
        });
        Ok(())
    }
}
