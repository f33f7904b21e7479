//! How fast a joint moves through the world, seen from the character's frame.
//!
//! Through the world, not against the body: a planted foot has velocity 0 whatever the
//! character's speed, which is what keeps feet from sliding where clips are joined.

use crate::channels::FeatureChannel;
use crate::channels::of_joint::OfJoint;
use crate::error::MatchError;
use crate::schema::Fields;

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    let joint = fields.text("joint")?;
    Ok(OfJoint::boxed("joint_velocity", joint, |motion, node, time| motion.velocity(node, time)))
}
