//! Where an axis of a joint points in the character's frame: the head's look, the chest's turn.

use inbetween::glam::DVec3;

use crate::channels::FeatureChannel;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct JointFacing {
    joint: String,
    axis: DVec3,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(JointFacing { joint: fields.text("joint")?, axis: fields.axis("axis", "+z")? }))
}

impl FeatureChannel for JointFacing {
    fn default_name(&self) -> String {
        format!("joint_facing {}", self.joint)
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
        out.extend(motion.direction(joints[0], self.axis, time).as_vec3().to_array());
        Ok(())
    }
}
