//! Where a joint is in the character's frame.

use crate::channels::FeatureChannel;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct JointPosition {
    joint: String,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(JointPosition { joint: fields.text("joint")? }))
}

impl FeatureChannel for JointPosition {
    fn default_name(&self) -> String {
        format!("joint_position {}", self.joint)
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
        out.extend(motion.position(joints[0], time).as_vec3().to_array());
        Ok(())
    }
}
