//! Where an axis of a joint points in the character's frame: the head's look, the chest's turn.

use crate::channels::FeatureChannel;
use crate::channels::of_joint::OfJoint;
use crate::error::MatchError;
use crate::schema::Fields;

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    let (joint, axis) = (fields.text("joint")?, fields.axis("axis", "+z")?);
    Ok(OfJoint::boxed("joint_facing", joint, move |motion, node, time| motion.direction(node, axis, time)))
}
