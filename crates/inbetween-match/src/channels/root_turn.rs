//! How fast the character turns.

use crate::channels::{FeatureChannel, Wish};
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::Motion;
use crate::schema::Fields;

#[derive(Debug)]
struct RootTurn;

pub(super) fn read(_: &mut Fields<'_>) -> Result<Box<dyn FeatureChannel>, MatchError> {
    Ok(Box::new(RootTurn))
}

impl FeatureChannel for RootTurn {
    fn default_name(&self) -> String {
        "root_turn".into()
    }
    fn columns(&self) -> Vec<String> {
        vec!["rad/s".into()]
    }
    fn family(&self) -> Family {
        Family::Path
    }
    fn bake(
        &self,
        motion: &mut Motion,
        _: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        out.push(motion.turn_rate(time) as f32);
        Ok(())
    }
    fn fill(&self, wish: &Wish<'_>, out: &mut [f32]) {
        out[0] = wish.turn_rate as f32;
    }
}
