//! A light and a camera: tracks that move no joint, and few keys instead of many.

use inbetween::glam::DVec3;
use inbetween::math::{atan2, axis_angle, cos, sin};
use inbetween::{
    Binding, Clip, Curve, Joint, NodeKind, Property, Skeleton, Track, TrackData, Transform, ValueKind,
};

use super::{RATE, frame_times, import};
use crate::Import;

fn other(target: &str, property: &str) -> Binding {
    Binding::node(0, target, Property::Other(property.to_owned()))
}

/// A street lamp that flickers on and warms up in six seconds: node `Lamp` with the switch
/// `visible` (eight keys), and on every frame `light.intensity` in candela and the linear colour
/// `light.color`.
pub fn lamp() -> Import {
    const FRAMES: usize = 360;
    let mut joint = Joint::new("Lamp", None, Transform::IDENTITY);
    joint.kind = NodeKind::Light;
    joint.rest.translation = DVec3::new(0.0, 4.0, 0.0);
    let skeleton = Skeleton::new(vec![joint]).expect("one node");
    let times = frame_times(FRAMES);
    let mut clip = Clip::new("dusk", 0.0, times[FRAMES]).expect("frames increase");
    clip.rate = Some(RATE);

    let flicker: [i64; 8] = [0, 30, 34, 41, 43, 60, 62, 66];
    let on = (0..flicker.len()).map(|i| f64::from(u8::from(i % 2 == 1))).collect();
    let at: Vec<f64> = flicker.iter().map(|&f| RATE.time_of(f)).collect();
    let switch = Curve::step(ValueKind::Switch, at, on).expect("on or off");
    clip.tracks.push(Track::new(
        Binding::node(0, "Lamp", Property::Visible),
        TrackData::Curve(switch),
        vec![0.0],
    ));

    // Warming up: a smooth ramp from one second to four, then steady.
    let warm = |t: f64| {
        let s = ((t - 1.0) / 3.0).clamp(0.0, 1.0);
        s * s * (3.0 - 2.0 * s)
    };
    let intensity = times.iter().map(|&t| 60.0 + 840.0 * warm(t)).collect();
    let intensity = Curve::linear(ValueKind::Scalar, times.clone(), intensity).expect("finite");
    clip.tracks.push(Track::new(other("Lamp", "light.intensity"), TrackData::Curve(intensity), vec![0.0]));
    let (cold, hot) = ([1.0, 0.32, 0.28], [1.0, 0.74, 0.42]);
    let color = times
        .iter()
        .flat_map(|&t| std::array::from_fn::<f64, 3, _>(|c| cold[c] + (hot[c] - cold[c]) * warm(t)))
        .collect();
    let color = Curve::linear(ValueKind::Color(3), times, color).expect("finite");
    clip.tracks.push(Track::new(other("Lamp", "light.color"), TrackData::Curve(color), vec![1.0; 3]));
    import(skeleton, vec![clip])
}

/// A camera that circles half around the origin in eight seconds and closes in: node `Camera`
/// with seven keys at uneven times for place, rotation (looking along its −Z at a point 1 m up)
/// and `camera.yfov` in radians.
pub fn camera() -> Import {
    let mut joint = Joint::new("Camera", None, Transform::IDENTITY);
    joint.kind = NodeKind::Camera;
    joint.rest.translation = DVec3::new(0.0, 1.6, 5.0);
    let rest = joint.rest.translation.to_array().to_vec();
    let skeleton = Skeleton::new(vec![joint]).expect("one node");
    let times = vec![0.0, 1.5, 2.5, 4.0, 5.0, 6.5, 8.0];
    let mut clip = Clip::new("orbit", 0.0, 8.0).expect("increasing");
    clip.rate = Some(RATE);
    let (mut places, mut turns, mut fovs) = (Vec::new(), Vec::new(), Vec::new());
    for (&t, (angle, distance, height, fov)) in times.iter().zip([
        (0.0, 5.0, 1.6, 50.0),
        (0.5, 4.6, 1.9, 50.0),
        (1.0, 4.0, 2.6, 46.0),
        (1.5, 3.6, 2.3, 40.0),
        (2.1, 3.4, 1.7, 34.0),
        (2.6, 2.8, 1.2, 30.0),
        (3.1, 2.4, 1.1, 30.0),
    ]) {
        debug_assert!(t <= 8.0);
        let place = DVec3::new(distance * sin(angle), height, distance * cos(angle));
        let down = atan2(height - 1.0, distance);
        places.extend(place.to_array());
        turns.extend((axis_angle(DVec3::Y, angle) * axis_angle(DVec3::X, -down)).to_array());
        fovs.push(f64::to_radians(fov));
    }
    let places = Curve::linear(ValueKind::Vector(3), times.clone(), places).expect("finite");
    let turns = Curve::linear(ValueKind::Rotation, times.clone(), turns).expect("unit quaternions");
    let fovs = Curve::linear(ValueKind::Scalar, times, fovs).expect("finite");
    let binding = |property| Binding::node(0, "Camera", property);
    clip.tracks.push(Track::new(binding(Property::Translation), TrackData::Curve(places), rest));
    let identity = vec![0.0, 0.0, 0.0, 1.0];
    clip.tracks.push(Track::new(binding(Property::Rotation), TrackData::Curve(turns), identity));
    let fov = f64::to_radians(50.0);
    clip.tracks.push(Track::new(other("Camera", "camera.yfov"), TrackData::Curve(fovs), vec![fov]));
    import(skeleton, vec![clip])
}
