//! A number of any track of the clip: a morph weight, a stamina, an artist's own mark.

use crate::channels::FeatureChannel;
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct TrackNumber {
    target: String,
    property: String,
    component: usize,
    missing: Option<f64>,
}

pub(super) fn read(fields: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    let target = fields.text("target")?;
    let property = fields.text("property")?;
    let component = fields.number_or("component", 0.0)?;
    if component < 0.0 || component.fract() != 0.0 || component > 4096.0 {
        return Err(fields.wrong("component", "a whole number, counted from 0"));
    }
    let missing = fields.number_or("missing", f64::MAX)?;
    let missing = (missing != f64::MAX).then_some(missing);
    Ok(Box::new(TrackNumber { target, property, component: component as usize, missing }))
}

impl FeatureChannel for TrackNumber {
    fn default_name(&self) -> String {
        format!("track {} {} {}", self.target, self.property, self.component)
    }
    fn columns(&self) -> Vec<String> {
        vec!["value".into()]
    }
    fn family(&self) -> Family {
        Family::Pose
    }
    fn bake(
        &self,
        motion: &mut Motion,
        _: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        let value = motion.track(&self.target, &self.property, self.component, time).or(self.missing);
        let Some(value) = value else {
            return Err(MatchError::Bake(format!(
                "clip {:?} has no track {} of {:?} with a component {}; give the number to use instead with missing = …",
                motion.clip().name,
                self.property,
                self.target,
                self.component
            )));
        };
        out.push(value as f32);
        Ok(())
    }
}
