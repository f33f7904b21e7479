//! What the channels of the path share: a vector over the ground at each of some offsets in time.

use inbetween::glam::DVec3;

use crate::channels::{FeatureChannel, Wish};
use crate::database::Family;
use crate::error::MatchError;
use crate::motion::{Motion, Waypoint};
use crate::schema::Fields;

/// x and z of one part of the path's waypoints.
#[derive(Debug)]
pub(super) struct OverGround {
    name: &'static str,
    offsets: Vec<f64>,
    part: fn(Waypoint) -> DVec3,
}

impl OverGround {
    /// Reads the offsets; `part` is what counts of a waypoint.
    pub(super) fn read(
        fields: &mut Fields<'_>,
        name: &'static str,
        part: fn(Waypoint) -> DVec3,
    ) -> Result<Box<dyn FeatureChannel>, MatchError> {
        let offsets = fields.numbers("offsets_s")?;
        let sound = |o: &f64| *o != 0.0 && o.abs() <= 60.0;
        if offsets.len() > 64 || !offsets.iter().all(sound) {
            return Err(fields.wrong(
                "offsets_s",
                "up to 64 offsets in seconds, none 0 and none beyond a minute; below 0 is the past",
            ));
        }
        Ok(Box::new(Self { name, offsets, part }))
    }
}

impl FeatureChannel for OverGround {
    fn default_name(&self) -> String {
        self.name.into()
    }
    fn columns(&self) -> Vec<String> {
        self.offsets.iter().flat_map(|o| [format!("x {o:+} s"), format!("z {o:+} s")]).collect()
    }
    fn family(&self) -> Family {
        Family::Path
    }
    fn reach_s(&self) -> (f64, f64) {
        self.offsets.iter().fold((0.0, 0.0), |(a, b), o| (f64::min(a, *o), f64::max(b, *o)))
    }
    fn bake(
        &self,
        motion: &mut Motion,
        _: &[usize],
        time: f64,
        out: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        for offset in &self.offsets {
            let at = (self.part)(motion.waypoint(time, *offset));
            out.extend([at.x as f32, at.z as f32]);
        }
        Ok(())
    }
    fn fill(&self, wish: &Wish<'_>, out: &mut [f32]) {
        for (offset, out) in self.offsets.iter().zip(out.chunks_exact_mut(2)) {
            let at = (self.part)((wish.path)(*offset));
            out.copy_from_slice(&[at.x as f32, at.z as f32]);
        }
    }
}
