//! The weighted mean of rotations on the sphere.

use glam::{DQuat, DVec3};

use crate::math;

/// The rotation that least-squares fits `rows` (unit quaternions, any sign, four numbers each)
/// with `weights`: the intrinsic (Karcher) mean, found by averaging rotation vectors about the
/// estimate until it stands still. Of two rotations it is their slerp; order and signs of the
/// inputs do not matter.
///
/// Rotations spread over more than a half turn have no single mean; the result is then the one
/// nearest to the heaviest input.
pub fn rotation_mean(rows: &[f64], weights: &[f64]) -> DQuat {
    let total: f64 = weights.iter().sum();
    let at = |k: usize| DQuat::from_slice(&rows[4 * k..4 * k + 4]);
    if weights.len() == 1 {
        return at(0);
    }
    let heaviest = (0..weights.len()).reduce(|a, b| if weights[b] > weights[a] { b } else { a }).unwrap_or(0);
    let mut mean = math::unit(at(heaviest)).unwrap_or(DQuat::IDENTITY);
    if total <= 0.0 {
        return mean;
    }
    for _ in 0..50 {
        let mut step = DVec3::ZERO;
        for (k, w) in weights.iter().enumerate() {
            step += math::rotation_vector(mean.conjugate() * at(k)) * (w / total);
        }
        mean = (mean * math::from_rotation_vector(step)).normalize();
        if step.length() < 1e-14 {
            break;
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_two_is_their_slerp() {
        let a = math::axis_angle(DVec3::X, 0.4);
        let b = math::axis_angle(DVec3::new(0.0, 0.6, 0.8), 1.9);
        let rows: Vec<f64> = a.to_array().into_iter().chain((-b).to_array()).collect();
        let mean = rotation_mean(&rows, &[0.75, 0.25]);
        assert!(math::angle_between(mean, math::slerp(a, b, 0.25)) < 1e-12);
    }
}
