//! The points at which an error in the world is seen, and how far apart two versions of a value are: what every
//! judge of this crate means by a distance.
//!
//! The points of a node are its origin and one along each of its three axes, a *shell* away. The shell is measured
//! in the world with the skeleton at rest, so that a node under a scale of 100 has its points 3 cm and not 3 m off.

use glam::{DAffine3, DQuat, DVec3};

use crate::math;
use crate::pose::{LocalPose, ModelPose};
use crate::skeleton::Skeleton;

/// Distance of the shell points unless set otherwise, metres.
pub const SHELL_M: f64 = 0.03;

/// How far from a node's origin its three shell points are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shell {
    /// The same for all nodes, metres in the world at rest. 0 leaves the origins alone.
    Fixed(f64),
    /// As far as the skin on each node reaches ([`Joint::reach`](crate::Joint::reach)), where that is known and
    /// more than nothing; else the given length.
    Reach {
        /// Metres, for nodes without a skin.
        otherwise: f64,
    },
}

impl Default for Shell {
    fn default() -> Self {
        Self::Fixed(SHELL_M)
    }
}

/// By node, the offsets of its shell points along its own three axes, in its own units.
///
/// An axis whose scale at rest is zero cannot be measured in the world and takes the length as it is.
pub fn shell_offsets(skeleton: &Skeleton, shell: Shell) -> Vec<DVec3> {
    let rest = ModelPose::of(skeleton, &LocalPose::rest(skeleton));
    let joints = skeleton.joints().iter().zip(&rest.joints);
    joints
        .map(|(joint, world)| {
            let length = match shell {
                Shell::Fixed(length) => length,
                Shell::Reach { otherwise } => match joint.reach {
                    Some(reach) if reach > 0.0 => return DVec3::splat(reach),
                    _ => otherwise,
                },
            };
            let along = |axis: DVec3| if axis.length() > 1e-9 { length / axis.length() } else { length };
            DVec3::new(along(world.matrix3.x_axis), along(world.matrix3.y_axis), along(world.matrix3.z_axis))
        })
        .collect()
}

/// Which point of a node is furthest off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Its origin.
    Origin,
    /// The shell point along its x axis.
    X,
    /// Along its y axis.
    Y,
    /// Along its z axis.
    Z,
}

/// How far apart the points of a node are under two world matrices, metres, and which of them is farthest; the first
/// of equals. `reach` has the offsets of its shell points, see [`shell_offsets`].
pub(crate) fn farthest_point(a: &DAffine3, b: &DAffine3, reach: DVec3) -> (f64, Point) {
    let shell =
        [(Point::X, DVec3::X * reach.x), (Point::Y, DVec3::Y * reach.y), (Point::Z, DVec3::Z * reach.z)];
    let mut worst = (far((a.translation - b.translation).length()), Point::Origin);
    for (point, at) in shell {
        let distance = far((a.transform_point3(at) - b.transform_point3(at)).length());
        if distance > worst.0 {
            worst = (distance, point);
        }
    }
    worst
}

/// The difference of two values of a track: radians where they are `rotations`, else the length of the difference.
/// Values of different widths are infinitely far apart.
pub(crate) fn difference(rotations: bool, a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    far(if rotations {
        math::angle_between(DQuat::from_slice(a), DQuat::from_slice(b))
    } else {
        a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
    })
}

/// What is not a number counts as far off, never as near.
pub(crate) fn far(distance: f64) -> f64 {
    if distance.is_nan() { f64::INFINITY } else { distance }
}
