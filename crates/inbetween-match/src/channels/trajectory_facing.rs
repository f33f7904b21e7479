//! Where the character will face (and faced), in its frame now.

use crate::channels::{FeatureChannel, Wish, ground_columns, offsets, reach};
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct TrajectoryFacing {
    offsets: Vec<f64>,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(TrajectoryFacing { offsets: offsets(fields)? }))
}

impl FeatureChannel for TrajectoryFacing {
    fn default_name(&self) -> String {
        "trajectory_facing".into()
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
            let facing = motion.waypoint(time, *offset).facing;
            out.extend([facing.x as f32, facing.z as f32]);
        }
        Ok(())
    }
    fn fill(&self, wish: &Wish<'_>, out: &mut [f32]) {
        for (offset, out) in self.offsets.iter().zip(out.chunks_exact_mut(2)) {
            let facing = (wish.path)(*offset).facing;
            out.copy_from_slice(&[facing.x as f32, facing.z as f32]);
        }
    }
}
