//! Where a joint is in the character's frame.

use crate::channels::FeatureChannel;
use crate::channels::of_joint::OfJoint;
use crate::error::MatchError;
use crate::schema::Fields;

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    let joint = fields.text("joint")?;
    Ok(OfJoint::boxed("joint_position", joint, |motion, node, time| motion.position(node, time)))
}
