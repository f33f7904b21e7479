//! Units and axes: the one place where a file's become the house's and back.
//!
//! The house is in metres, right-handed, +Y up. A file's axes differ from that by a signed
//! permutation (Z up, left-handed, …), so a conversion renames and negates components: no curve
//! is resampled and going back gives the same numbers.

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Axis, AxisName, Clip, Curve, EulerCurve, Joint, Property, Skeleton, Track, TrackData, Transform,
    ValueKind,
};

use crate::import::Import;

/// A signed permutation of the axes: component `i` of a house vector is `sign[i]` times component
/// `from[i]` of the file's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisMap {
    /// Which file component each house component takes.
    pub from: [usize; 3],
    /// With which sign, 1 or −1.
    pub sign: [f64; 3],
}

impl AxisMap {
    /// Axes as in the house.
    pub const SAME: Self = Self { from: [0, 1, 2], sign: [1.0, 1.0, 1.0] };
    /// +Z up, right-handed, as many tools and games have it: (x, y, z) becomes (x, z, −y).
    pub const Z_UP: Self = Self { from: [0, 2, 1], sign: [1.0, 1.0, -1.0] };

    /// 1 for a turn of the axes, −1 where left-handed becomes right-handed.
    pub fn handedness(&self) -> f64 {
        let even = matches!(self.from, [0, 1, 2] | [1, 2, 0] | [2, 0, 1]);
        self.sign[0] * self.sign[1] * self.sign[2] * if even { 1.0 } else { -1.0 }
    }

    /// The way back.
    pub fn inverse(&self) -> Self {
        let mut inverse = *self;
        for i in 0..3 {
            inverse.from[self.from[i]] = i;
            inverse.sign[self.from[i]] = self.sign[i];
        }
        inverse
    }

    fn vector(&self, v: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| self.sign[i] * v[self.from[i]])
    }

    /// Maps a point or direction.
    pub fn point(&self, v: DVec3) -> DVec3 {
        DVec3::from_array(self.vector(v.to_array()))
    }

    /// Maps a rotation: its axis is a pseudovector.
    pub fn rotation(&self, q: DQuat) -> DQuat {
        let v = self.vector([q.x, q.y, q.z]);
        let h = self.handedness();
        DQuat::from_xyzw(h * v[0], h * v[1], h * v[2], q.w)
    }

    fn scale(&self, s: DVec3) -> DVec3 {
        let s = s.to_array();
        DVec3::from_array(std::array::from_fn(|i| s[self.from[i]]))
    }
}

/// Units and axes of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convention {
    /// Metres in one unit of length.
    pub metres_per_unit: f64,
    /// How its axes become the house's.
    pub axes: AxisMap,
}

impl Convention {
    /// Metres, +Y up.
    pub const HOUSE: Self = Self { metres_per_unit: 1.0, axes: AxisMap::SAME };

    fn is_house(&self) -> bool {
        *self == Self::HOUSE
    }
}

/// Takes a whole import from its file's units and axes into the house's.
pub fn to_house(import: &mut Import) {
    if import.in_house_units {
        return;
    }
    import.in_house_units = true;
    let c = import.convention;
    convert(import, c.metres_per_unit, &c.axes, c.is_house());
}

/// Takes a whole import from the house's units and axes into those of its file.
pub fn to_file(import: &mut Import) {
    if !import.in_house_units {
        return;
    }
    import.in_house_units = false;
    let c = import.convention;
    convert(import, 1.0 / c.metres_per_unit, &c.axes.inverse(), c.is_house());
}

fn convert(import: &mut Import, k: f64, map: &AxisMap, nothing_to_do: bool) {
    if nothing_to_do {
        return;
    }
    let joints = import.skeleton.joints().iter().map(|j| convert_joint(j, k, map)).collect();
    import.skeleton = Skeleton::new(joints).expect("the tree is unchanged");
    for clip in &mut import.clips {
        convert_clip(clip, k, map);
    }
}

fn convert_transform(t: &Transform, k: f64, map: &AxisMap) -> Transform {
    Transform {
        translation: map.point(t.translation) * k,
        rotation: map.rotation(t.rotation),
        scale: map.scale(t.scale),
    }
}

fn convert_joint(joint: &Joint, k: f64, map: &AxisMap) -> Joint {
    let mut joint = joint.clone();
    joint.rest = convert_transform(&joint.rest, k, map);
    if let Some(p) = &mut joint.pivot {
        for v in [&mut p.rotation_offset, &mut p.rotation_pivot, &mut p.scaling_offset, &mut p.scaling_pivot]
        {
            *v = map.point(*v) * k;
        }
    }
    for tip in &mut joint.tips {
        *tip = map.point(*tip) * k;
    }
    joint.reach = joint.reach.map(|r| r * k);
    joint
}

/// Converts the tracks that move nodes in space; other properties have no axes and keep the
/// file's units (a light's range, a focal length).
fn convert_clip(clip: &mut Clip, k: f64, map: &AxisMap) {
    for track in &mut clip.tracks {
        if track.binding.node.is_some() {
            convert_track(track, k, map);
        }
    }
}

fn convert_track(track: &mut Track, k: f64, map: &AxisMap) {
    match track.binding.property {
        Property::Translation => {
            let sign = map.sign.map(|s| s * k);
            permute(&mut track.data, &map.from, &sign);
            permute_rows(&mut track.rest, 3, &map.from, &sign);
        }
        Property::Scale => {
            permute(&mut track.data, &map.from, &[1.0; 3]);
            permute_rows(&mut track.rest, 3, &map.from, &[1.0; 3]);
        }
        Property::Rotation => {
            let h = map.handedness();
            let from = [map.from[0], map.from[1], map.from[2], 3];
            let sign = [h * map.sign[0], h * map.sign[1], h * map.sign[2], 1.0];
            if let TrackData::Euler(e) = &mut track.data {
                convert_euler(e, map);
            } else {
                permute(&mut track.data, &from, &sign);
            }
            permute_rows(&mut track.rest, 4, &from, &sign);
        }
        _ => {}
    }
}

fn convert_euler(e: &mut EulerCurve, map: &AxisMap) {
    e.pre = map.rotation(e.pre);
    e.post = map.rotation(e.post);
    let names = [AxisName::X, AxisName::Y, AxisName::Z];
    for (axis, angle) in &mut e.terms {
        let file = *axis as usize;
        let house = map.from.iter().position(|&f| f == file).expect("a permutation");
        *axis = names[house];
        let sign = map.handedness() * map.sign[house];
        if sign != 1.0 {
            scale_axis(angle, sign);
        }
    }
}

fn scale_axis(axis: &mut Axis, k: f64) {
    match axis {
        Axis::Constant(v) => *v *= k,
        Axis::Curve(c) => *c = map_curve(c, &[0], &[k]),
    }
}

fn permute(data: &mut TrackData, from: &[usize], sign: &[f64]) {
    match data {
        TrackData::Curve(c) if c.kind() == ValueKind::Vector(3) || c.kind() == ValueKind::Rotation => {
            *c = map_curve(c, from, sign);
        }
        TrackData::Axes { axes, .. } if axes.len() == from.len() => {
            let old = axes.clone();
            for (i, axis) in axes.iter_mut().enumerate() {
                *axis = old[from[i]].clone();
                scale_axis(axis, sign[i]);
            }
        }
        _ => {}
    }
}

fn permute_rows(rows: &mut [f64], width: usize, from: &[usize], sign: &[f64]) {
    for row in rows.chunks_exact_mut(width) {
        let old: [f64; 4] = std::array::from_fn(|i| row.get(i).copied().unwrap_or(0.0));
        for i in 0..width {
            row[i] = if sign[i] == 1.0 { old[from[i]] } else { sign[i] * old[from[i]] };
        }
    }
}

/// The curve with components renamed and multiplied; times and spans stay.
fn map_curve(curve: &Curve, from: &[usize], sign: &[f64]) -> Curve {
    let width = from.len();
    let mut parts = curve.clone().into_parts();
    permute_rows(&mut parts.values, width, from, sign);
    if let Some(t) = &mut parts.tangents {
        permute_rows(&mut t.leave, width, from, sign);
        permute_rows(&mut t.arrive, width, from, sign);
        let one = [1.0; 4];
        permute_rows(&mut t.leave_dt, width, from, &one[..width]);
        permute_rows(&mut t.arrive_dt, width, from, &one[..width]);
    }
    Curve::new(parts).expect("a finite curve stays one when its components change places")
}

#[cfg(test)]
mod tests {
    use super::*;
    use inbetween::math::{angle_between, axis_angle};

    #[test]
    fn rotations_and_points_agree_under_every_map() {
        let left = AxisMap { from: [2, 1, 0], sign: [1.0, 1.0, 1.0] };
        for map in [AxisMap::SAME, AxisMap::Z_UP, left] {
            let q = axis_angle(DVec3::new(0.48, 0.6, 0.64), 1.1);
            let p = DVec3::new(1.0, -2.0, 3.0);
            let turned_then_mapped = map.point(q * p);
            let mapped_then_turned = map.rotation(q) * map.point(p);
            assert!((turned_then_mapped - mapped_then_turned).length() < 1e-14);
            assert!((map.inverse().point(map.point(p)) - p).length() < 1e-15);
        }
    }

    #[test]
    fn euler_curves_keep_their_keys_and_turn_the_same_way() {
        let map = AxisMap::Z_UP;
        let mut e = EulerCurve {
            terms: vec![(AxisName::Z, Axis::Constant(0.4)), (AxisName::Y, Axis::Constant(1.3))],
            pre: axis_angle(DVec3::X, 0.2),
            post: DQuat::IDENTITY,
            between: inbetween::EulerBetween::Angles,
        };
        let before = map.rotation(e.at(0.0));
        convert_euler(&mut e, &map);
        assert!(angle_between(e.at(0.0), before) < 1e-14);
    }
}
