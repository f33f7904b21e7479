//! A limb that dances: the clip of the codec's tests and of the files kept from each version.

use inbetween::glam::DVec3;
use inbetween::{
    Binding, Clip, Curve, FrameRate, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind,
};

/// A small generator, so that failures repeat.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub fn limb(joints: usize, bone: f64) -> Skeleton {
    let list = (0..joints)
        .map(|j| {
            let t = Transform {
                translation: if j == 0 { DVec3::ZERO } else { DVec3::new(bone, 0.02 * j as f64, 0.0) },
                ..Transform::IDENTITY
            };
            Joint::new(format!("joint {j}"), j.checked_sub(1), t)
        })
        .collect();
    Skeleton::new(list).unwrap()
}

/// Every joint swings at its own pace with a little noise; the root wanders.
pub fn dance(skeleton: &Skeleton, frames: usize, hz: f64, seed: u64) -> Clip {
    let mut random = Random(seed);
    let times: Vec<f64> = (0..frames).map(|f| f as f64 / hz).collect();
    let end = times[frames - 1];
    let mut clip = Clip::new("dance", 0.0, end).unwrap();
    clip.rate = FrameRate::from_hz(hz, 1e-6);
    for (n, j) in skeleton.joints().iter().enumerate() {
        let (speed, size) = (1.0 + 4.0 * random.next(), 0.2 + random.next());
        let axis = DVec3::new(random.next() - 0.5, random.next() - 0.5, random.next() + 0.1).normalize();
        let values = times
            .iter()
            .flat_map(|t| {
                let angle = size * inbetween::math::sin(speed * t) + 0.002 * random.next();
                inbetween::math::axis_angle(axis, angle).to_array()
            })
            .collect();
        let curve = Curve::linear(ValueKind::Rotation, times.clone(), values).unwrap();
        clip.tracks.push(Track::new(
            Binding::node(n, j.name.clone(), Property::Rotation),
            TrackData::Curve(curve),
            vec![0.0, 0.0, 0.0, 1.0],
        ));
    }
    let values = times
        .iter()
        .flat_map(|t| [1.4 * t, 0.9 + 0.03 * inbetween::math::sin(9.0 * t), 0.2 * t * t])
        .collect();
    let curve = Curve::linear(ValueKind::Vector(3), times, values).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, skeleton.joints()[0].name.clone(), Property::Translation),
        TrackData::Curve(curve),
        vec![0.0; 3],
    ));
    clip
}
