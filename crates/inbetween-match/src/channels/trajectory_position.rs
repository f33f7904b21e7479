//! Where the character will be (and was) on the ground, in its frame now.

use crate::channels::FeatureChannel;
use crate::channels::over_ground::OverGround;
use crate::error::MatchError;
use crate::schema::Fields;

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    OverGround::read(fields, "trajectory_position", |waypoint| waypoint.position)
}
