//! How fast a joint moves through the world, seen from the character's frame.
//!
//! Through the world, not against the body: a planted foot has velocity 0 whatever the
//! character's speed, which is what keeps feet from sliding where clips are joined.

use crate::channels::FeatureChannel;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct JointVelocity {
    joint: String,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(JointVelocity { joint: fields.text("joint")? }))
}

impl FeatureChannel for JointVelocity {
    fn default_name(&self) -> String {
        format!("joint_velocity {}", self.joint)
    }
    fn columns(&self) -> Vec<String> {
        ["x", "y", "z"].map(str::to_owned).to_vec()
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
        out.extend(motion.velocity(joints[0], time).as_vec3().to_array());
        Ok(())
    }
}
