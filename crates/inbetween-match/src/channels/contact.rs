//! Whether a joint stands on the ground: low enough and slow enough.

use crate::channels::FeatureChannel;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::{Motion, Standing};
use crate::schema::Fields;

#[derive(Debug)]
struct Contact {
    joint: String,
    standing: Standing,
}

/// Reads when a joint counts as standing.
pub(super) fn standing(fields: &mut Fields<'_>) -> Result<Standing, MatchError> {
    let standing = Standing {
        height_m: fields.number_or("height_m", 0.15)?,
        speed_m_s: fields.number_or("speed_m_s", 0.3)?,
    };
    if standing.speed_m_s <= 0.0 {
        return Err(fields.wrong("speed_m_s", "a speed above 0 in m/s"));
    }
    Ok(standing)
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(Contact { joint: fields.text("joint")?, standing: standing(fields)? }))
}

impl FeatureChannel for Contact {
    fn default_name(&self) -> String {
        format!("contact {}", self.joint)
    }
    fn columns(&self) -> Vec<String> {
        vec!["stands".into()]
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
        out.push(if motion.stands(joints[0], self.standing, time) { 1.0 } else { 0.0 });
        Ok(())
    }
}
