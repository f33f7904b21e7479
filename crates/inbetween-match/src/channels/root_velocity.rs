//! How fast the character moves over the ground, in its own frame.

use crate::channels::{FeatureChannel, Wish};
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct RootVelocity;

pub(super) fn read(_: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(RootVelocity))
}

impl FeatureChannel for RootVelocity {
    fn default_name(&self) -> String {
        "root_velocity".into()
    }
    fn columns(&self) -> Vec<String> {
        ["x", "z"].map(str::to_owned).to_vec()
    }
    fn family(&self) -> Family {
        Family::Path
    }
    fn bake(
        &self,
        motion: &mut Motion,
        _: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        let v = motion.root_velocity(time).as_vec3();
        out.extend([v.x, v.z]);
        Ok(())
    }
    fn fill(&self, wish: &Wish<'_>, out: &mut [f32]) {
        out.copy_from_slice(&[wish.velocity.x as f32, wish.velocity.z as f32]);
    }
}
