//! What the channels of a joint share: one vector of it, in the character's frame.

use std::fmt;

use inbetween::glam::DVec3;

use crate::channels::FeatureChannel;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;

/// The vector of a joint's node at a time.
type Measure = Box<dyn Fn(&mut Motion, usize, f64) -> DVec3 + Send + Sync>;

/// x, y and z of what is measured of a joint.
pub(super) struct OfJoint {
    kind: &'static str,
    joint: String,
    measure: Measure,
}

impl OfJoint {
    /// - `kind`: the channel's type, part of its name.
    pub(super) fn boxed(
        kind: &'static str,
        joint: String,
        measure: impl Fn(&mut Motion, usize, f64) -> DVec3 + Send + Sync + 'static,
    ) -> Box<dyn FeatureChannel> {
        Box::new(Self { kind, joint, measure: Box::new(measure) })
    }
}

impl fmt::Debug for OfJoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.joint)
    }
}

impl FeatureChannel for OfJoint {
    fn default_name(&self) -> String {
        format!("{} {}", self.kind, self.joint)
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
        out.extend((self.measure)(motion, joints[0], time).as_vec3().to_array());
        Ok(())
    }
}
