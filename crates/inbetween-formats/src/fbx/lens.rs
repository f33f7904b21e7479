//! What an FBX says of its cameras beside their motion: how wide they see, and which
//! property drives that.

use super::scene::index_of;
use crate::import::{Lens, LensDriver};

/// The lenses of all camera nodes that see in perspective.
pub(super) fn read(scene: &ufbx::Scene) -> Vec<Lens> {
    let mut found = Vec::new();
    for node in &scene.nodes {
        let (Some(camera), Some(index)) = (&node.camera, index_of(scene, node)) else { continue };
        let (x, y) = (camera.field_of_view_tan.x, camera.field_of_view_tan.y);
        let sound = |v: f64| v.is_finite() && v > 0.0;
        if camera.projection_mode != ufbx::ProjectionMode::Perspective || !sound(x) || !sound(y) {
            continue;
        }
        let driver = match camera.aperture_mode {
            ufbx::ApertureMode::Vertical => LensDriver::Vertical("FieldOfView"),
            ufbx::ApertureMode::HorizontalAndVertical => LensDriver::Vertical("FieldOfViewY"),
            ufbx::ApertureMode::Horizontal => LensDriver::Horizontal("FieldOfView", y / x),
            ufbx::ApertureMode::FocalLength => {
                LensDriver::FocalLength("FocalLength", y * camera.focal_length_mm)
            }
        };
        found.push(Lens { node: index, fov: 2.0 * inbetween::math::atan2(y, 1.0), driver });
    }
    found
}
