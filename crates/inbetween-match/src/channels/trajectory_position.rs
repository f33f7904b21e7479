//! Where the character will be (and was) on the ground, in its frame now.

use crate::channels::{FeatureChannel, Wish, ground_columns, offsets, reach};
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct TrajectoryPosition {
    offsets: Vec<f64>,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(TrajectoryPosition { offsets: offsets(fields)? }))
}

impl FeatureChannel for TrajectoryPosition {
    fn default_name(&self) -> String {
        "trajectory_position".into()
    }
    fn columns(&self) -> Vec<String> {
        ground_columns(&self.offsets)
    }
    fn family(&self) -> Family {
        Family::Path
    }
    fn reach_s(&self) -> (f64, f64) {
        reach(&self.offsets)
    }
    fn bake(
        &self,
        motion: &mut Motion,
        _: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        for offset in &self.offsets {
            let at = motion.waypoint(time, *offset).position;
            out.extend([at.x as f32, at.z as f32]);
        }
        Ok(())
    }
    fn fill(&self, wish: &Wish<'_>, out: &mut [f32]) {
        for (offset, out) in self.offsets.iter().zip(out.chunks_exact_mut(2)) {
            let at = (wish.path)(*offset).position;
            out.copy_from_slice(&[at.x as f32, at.z as f32]);
        }
    }
}
