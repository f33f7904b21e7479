//! Poses: where every node of a skeleton stands, locally and in the world, in f64.
//!
//! The two are different types, so that neither is taken for the other. [`LocalPose`] comes from
//! a clip at a time; [`ModelPose`] from a local pose by one forward pass, as affine matrices,
//! because scale under rotation may shear.

use glam::{DAffine3, DMat3, DQuat, DVec3};

use crate::clip::Clip;
use crate::skeleton::{ScaleInherit, Skeleton, Transform};
use crate::track::{Property, Track, TrackMask};

/// A transform in its parent's space for every node, pivots folded in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalPose {
    /// One a node, in the skeleton's order of nodes.
    pub joints: Vec<Transform>,
}

impl LocalPose {
    /// Where the nodes stand when nothing moves them.
    pub fn rest(skeleton: &Skeleton) -> Self {
        let mut pose = Self { joints: skeleton.joints().iter().map(|j| j.rest).collect() };
        pose.fold_pivots(skeleton);
        pose
    }

    /// The pose of `clip` at `time` seconds of the clip's own clock, held outside its keys.
    ///
    /// Nodes without a track, and those whose track `mask` switches off, stand at rest.
    pub fn of_clip(clip: &Clip, skeleton: &Skeleton, time: f64, mask: &TrackMask) -> Self {
        let mut pose = Self::default();
        pose.sample(clip, skeleton, time, mask);
        pose
    }

    /// Like [`of_clip`](Self::of_clip), into this pose, without allocating once it has grown.
    pub fn sample(&mut self, clip: &Clip, skeleton: &Skeleton, time: f64, mask: &TrackMask) {
        self.joints.clear();
        self.joints.extend(skeleton.joints().iter().map(|j| j.rest));
        for (_, track) in clip.playing(mask) {
            self.apply(track, time);
        }
        self.fold_pivots(skeleton);
    }

    fn apply(&mut self, track: &Track, time: f64) {
        let Some(joint) = track.binding.node.and_then(|n| self.joints.get_mut(n)) else {
            return;
        };
        match track.binding.property {
            Property::Translation => {
                let mut v = [0.0; 3];
                track.data.eval(time, &mut v);
                joint.translation = DVec3::from_array(v);
            }
            Property::Scale => {
                let mut v = [0.0; 3];
                track.data.eval(time, &mut v);
                joint.scale = DVec3::from_array(v);
            }
            Property::Rotation => {
                let mut v = [0.0; 4];
                track.data.eval(time, &mut v);
                joint.rotation = DQuat::from_array(v);
            }
            _ => {}
        }
    }

    fn fold_pivots(&mut self, skeleton: &Skeleton) {
        for (t, j) in self.joints.iter_mut().zip(skeleton.joints()) {
            if let Some(pivot) = &j.pivot {
                *t = pivot.fold(*t);
            }
        }
    }
}

/// No node.
const NONE: usize = usize::MAX;

/// A matrix into the world for every node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPose {
    /// One a node, in the skeleton's order of nodes.
    pub joints: Vec<DAffine3>,
    /// The same without each node's own scale, for children that do not inherit it.
    unscaled: Vec<DAffine3>,
    /// The scale each node passes on to children that take it over axis by axis.
    inherited: Vec<DVec3>,
    /// The node whose scale each node takes over axis by axis, or `NONE`.
    scale_source: Vec<usize>,
}

impl ModelPose {
    /// The world matrices of `local`.
    ///
    /// # Panics
    /// If the pose has not one transform for each node.
    pub fn of(skeleton: &Skeleton, local: &LocalPose) -> Self {
        let mut pose = Self::default();
        pose.update(skeleton, local);
        pose
    }

    /// Like [`of`](Self::of), into this pose, without allocating once it has grown.
    ///
    /// # Panics
    /// If the pose has not one transform for each node.
    pub fn update(&mut self, skeleton: &Skeleton, local: &LocalPose) {
        let n = skeleton.len();
        assert_eq!(local.joints.len(), n, "one transform a node");
        let special = skeleton.joints().iter().any(|j| j.inherit != ScaleInherit::Full);
        self.joints.resize(n, DAffine3::IDENTITY);
        if !special {
            for &i in skeleton.order() {
                let m = matrix(&local.joints[i]);
                self.joints[i] = match skeleton.joints()[i].parent {
                    Some(p) => self.joints[p] * m,
                    None => m,
                };
            }
            return;
        }
        self.unscaled.resize(n, DAffine3::IDENTITY);
        self.inherited.resize(n, DVec3::ONE);
        self.scale_source.resize(n, NONE);
        for &i in skeleton.order() {
            let (t, joint) = (&local.joints[i], &skeleton.joints()[i]);
            let bare = Transform { scale: DVec3::ONE, ..*t };
            self.scale_source[i] = NONE;
            let Some(p) = joint.parent else {
                self.joints[i] = matrix(t);
                self.unscaled[i] = matrix(&bare);
                self.inherited[i] = t.scale;
                continue;
            };
            if joint.inherit == ScaleInherit::Full {
                self.joints[i] = self.joints[p] * matrix(t);
                self.unscaled[i] = self.joints[p] * matrix(&bare);
                self.inherited[i] = t.scale;
                continue;
            }
            // A node that ignores its parent's scale still takes over what its parent took over
            // from further up: only the parent's own scale is left out.
            let source = if joint.inherit == ScaleInherit::Componentwise { p } else { self.scale_source[p] };
            self.scale_source[i] = source;
            let scale = if source == NONE { t.scale } else { self.inherited[source] * t.scale };
            // The place comes from the scaled parent, the axes from the unscaled one.
            let origin = self.joints[p].transform_point3(t.translation);
            let turned = self.unscaled[p].matrix3 * DMat3::from_quat(t.rotation);
            self.unscaled[i] = DAffine3 { matrix3: turned, translation: origin };
            self.joints[i] = DAffine3 { matrix3: turned * DMat3::from_diagonal(scale), translation: origin };
            self.inherited[i] = scale;
        }
    }

    /// Translation, rotation and scale of a node in the world, and whether they say all: a
    /// sheared matrix is not the product of the three, and a singular one has no rotation (the
    /// identity is given). A mirrored one gets a negative x scale.
    pub fn decompose(&self, joint: usize) -> (Transform, bool) {
        decompose(&self.joints[joint])
    }
}

/// The matrix of a transform.
pub fn matrix(t: &Transform) -> DAffine3 {
    DAffine3::from_scale_rotation_translation(t.scale, t.rotation, t.translation)
}

/// Takes a matrix apart; see [`ModelPose::decompose`].
pub fn decompose(m: &DAffine3) -> (Transform, bool) {
    let mut c = [m.matrix3.x_axis, m.matrix3.y_axis, m.matrix3.z_axis];
    let mut scale = DVec3::new(c[0].length(), c[1].length(), c[2].length());
    let largest = scale.max_element();
    let translation = m.translation;
    if scale.min_element() <= 1e-12 * largest || largest == 0.0 {
        return (Transform { translation, rotation: DQuat::IDENTITY, scale }, false);
    }
    if m.matrix3.determinant() < 0.0 {
        scale.x = -scale.x;
    }
    for i in 0..3 {
        c[i] /= scale[i];
    }
    let skew = c[0].dot(c[1]).abs().max(c[1].dot(c[2]).abs()).max(c[2].dot(c[0]).abs());
    (Transform { translation, rotation: rotation_of(c), scale }, skew < 1e-6)
}

/// The rotation with these unit vectors as its axes. Where they are not quite at right angles the
/// answer depends on which entries are read; wherever it can this one reads the antisymmetric
/// part, as importers and three.js do.
fn rotation_of(c: [DVec3; 3]) -> DQuat {
    let [x, y, z] = c;
    let trace = x.x + y.y + z.z;
    let q = if trace > 0.0 {
        DQuat::from_xyzw(y.z - z.y, z.x - x.z, x.y - y.x, 1.0 + trace)
    } else if x.x > y.y && x.x > z.z {
        DQuat::from_xyzw(1.0 + x.x - y.y - z.z, y.x + x.y, z.x + x.z, y.z - z.y)
    } else if y.y > z.z {
        DQuat::from_xyzw(y.x + x.y, 1.0 - x.x + y.y - z.z, z.y + y.z, z.x - x.z)
    } else {
        DQuat::from_xyzw(z.x + x.z, z.y + y.z, 1.0 - x.x - y.y + z.z, x.y - y.x)
    };
    q.normalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{Curve, ValueKind};
    use crate::math;
    use crate::skeleton::{Joint, Pivot};
    use crate::track::{Binding, TrackData};

    fn arm() -> Skeleton {
        let at = |x| Transform { translation: DVec3::new(x, 0.0, 0.0), ..Transform::IDENTITY };
        Skeleton::new(vec![Joint::new("upper", None, at(0.0)), Joint::new("lower", Some(0), at(1.0))])
            .unwrap()
    }

    #[test]
    fn a_track_turned_off_falls_back_to_rest() {
        let skeleton = arm();
        let mut clip = Clip::new("bend", 0.0, 1.0).unwrap();
        let curve = Curve::linear(ValueKind::Vector(3), vec![0.0], vec![5.0, 0.0, 0.0]).unwrap();
        clip.tracks.push(Track::new(
            Binding::node(1, "lower", Property::Translation),
            TrackData::Curve(curve),
            vec![1.0, 0.0, 0.0],
        ));
        let mut mask = TrackMask::all();
        let x = |mask: &TrackMask| LocalPose::of_clip(&clip, &skeleton, 0.0, mask).joints[1].translation.x;
        assert_eq!(x(&mask), 5.0);
        mask.set(0, false);
        assert_eq!(x(&mask), 1.0);
    }

    #[test]
    fn children_turn_about_their_parents() {
        let skeleton = arm();
        let mut local = LocalPose::rest(&skeleton);
        local.joints[0].rotation = math::axis_angle(DVec3::Z, std::f64::consts::FRAC_PI_2);
        let world = ModelPose::of(&skeleton, &local);
        assert!((world.joints[1].translation - DVec3::Y).length() < 1e-15);
    }

    #[test]
    fn a_pivot_is_where_the_node_turns() {
        let pivot = Pivot {
            rotation_offset: DVec3::ZERO,
            rotation_pivot: DVec3::X,
            scaling_offset: DVec3::ZERO,
            scaling_pivot: DVec3::ZERO,
        };
        let raw = Transform { rotation: math::axis_angle(DVec3::Z, 1.0), ..Transform::IDENTITY };
        let m = matrix(&pivot.fold(raw));
        assert!((m.transform_point3(DVec3::X) - DVec3::X).length() < 1e-15);
    }

    #[test]
    fn every_rotation_comes_back_from_its_matrix() {
        for axis in [DVec3::X, DVec3::Y, DVec3::Z, DVec3::new(0.48, -0.6, 0.64)] {
            for degrees in [0, 1, 60, 119, 121, 179, 180, 250] {
                let rotation = math::axis_angle(axis, f64::from(degrees).to_radians());
                let t = Transform { rotation, scale: DVec3::new(2.0, 0.5, 3.0), ..Transform::IDENTITY };
                let (back, whole) = decompose(&matrix(&t));
                assert!(whole && math::angle_between(back.rotation, rotation) < 1e-14);
            }
        }
    }

    #[test]
    fn ignoring_a_parents_scale_keeps_what_the_parent_took_over() {
        let at = |scale: f64| Transform {
            translation: DVec3::X,
            rotation: DQuat::IDENTITY,
            scale: DVec3::splat(scale),
        };
        let mut joints = vec![
            Joint::new("root", None, at(2.0)),
            Joint::new("componentwise", Some(0), at(3.0)),
            Joint::new("ignores", Some(1), at(5.0)),
            Joint::new("full", Some(2), at(7.0)),
        ];
        joints[1].inherit = ScaleInherit::Componentwise;
        joints[2].inherit = ScaleInherit::Ignore;
        let skeleton = Skeleton::new(joints).unwrap();
        let world = ModelPose::of(&skeleton, &LocalPose::rest(&skeleton));
        let scale = |i: usize| world.joints[i].matrix3.x_axis.x;
        assert_eq!([scale(0), scale(1), scale(2), scale(3)], [2.0, 6.0, 10.0, 70.0]);
        let x = |i: usize| world.joints[i].translation.x;
        assert_eq!([x(0), x(1), x(2), x(3)], [1.0, 3.0, 9.0, 19.0]);
    }

    #[test]
    fn a_mirrored_and_a_flattened_matrix_come_apart_without_nan() {
        let t = Transform {
            scale: DVec3::new(1.0, 1.0, -2.0),
            rotation: math::axis_angle(DVec3::Y, 0.4),
            ..Transform::IDENTITY
        };
        let (back, whole) = decompose(&matrix(&t));
        assert!(whole);
        assert!((matrix(&back).matrix3 - matrix(&t).matrix3).x_axis.length() < 1e-14);
        let (flat, whole) = decompose(&matrix(&Transform { scale: DVec3::ZERO, ..t }));
        assert!(!whole && flat.rotation.is_finite());
    }
}
