//! A thrown ball: a parabola, four bounces, a roll and rest.

use inbetween::glam::DVec3;
use inbetween::math::axis_angle;
use inbetween::{
    Binding, Clip, Curve, Joint, Marker, NodeKind, Property, Skeleton, Track, TrackData, Transform, ValueKind,
};

use super::{RATE, frame_times, import};
use crate::Import;

const RADIUS_M: f64 = 0.11;
const GRAVITY: f64 = 9.81;

/// Frames of each flight: from the hand to the ground, then from bounce to bounce. Whole frames,
/// so that each bounce is a key.
const FLIGHTS: [usize; 5] = [54, 40, 30, 22, 14];
const ROLL: usize = 80;

/// A ball of 11 cm thrown from 1.6 m: node `Ball` with a key for place and spin on every frame,
/// and a mark at every bounce.
pub fn ball() -> Import {
    let mut joint = Joint::new("Ball", None, Transform::IDENTITY);
    joint.kind = NodeKind::Mesh;
    joint.rest.translation = DVec3::new(0.0, 1.6, 0.0);
    joint.reach = Some(RADIUS_M);
    let rest = joint.rest.translation.to_array().to_vec();
    let skeleton = Skeleton::new(vec![joint]).expect("one node");

    let (mut places, mut spins) = (vec![[0.0, 1.6, 0.0]], vec![0.0]);
    let mut markers = Vec::new();
    let mut frame = 0usize;
    let (mut from, mut z, mut angle) = (1.6, 0.0, 0.0);
    let mut speed = 2.6;
    let mut spin = 9.0;
    for flight in FLIGHTS {
        let length = RATE.time_of(flight as i64);
        // Upward speed at which the ground is met after exactly that long.
        let up = (RADIUS_M - from) / length + 0.5 * GRAVITY * length;
        for i in 1..=flight {
            let t = RATE.time_of(i as i64);
            let y = if i == flight { RADIUS_M } else { from + up * t - 0.5 * GRAVITY * t * t };
            places.push([0.0, y, z + speed * t]);
            spins.push(angle + spin * t);
        }
        z += speed * length;
        angle += spin * length;
        frame += flight;
        from = RADIUS_M;
        markers.push(Marker { time: RATE.time_of(frame as i64), name: "bounce".to_owned() });
        // The ground takes a part of the speed and brings spin and speed together.
        speed *= 0.82;
        spin = 0.5 * (spin + speed / RADIUS_M);
    }
    let length = RATE.time_of(ROLL as i64);
    for i in 1..=ROLL {
        // Friction slows it evenly to rest.
        let t = RATE.time_of(i as i64);
        let way = speed * t * (1.0 - 0.5 * t / length);
        places.push([0.0, RADIUS_M, z + way]);
        spins.push(angle + way / RADIUS_M);
    }
    frame += ROLL;

    // It lies still for a while, as takes do.
    for _ in 0..30 {
        places.push(places[frame]);
        spins.push(spins[frame]);
    }
    frame += 30;

    let times = frame_times(frame);
    let mut clip = Clip::new("throw", 0.0, times[frame]).expect("frames increase");
    clip.rate = Some(RATE);
    clip.markers = markers;
    let place = places.concat();
    let place = Curve::linear(ValueKind::Vector(3), times.clone(), place).expect("finite");
    let turns: Vec<f64> = spins.iter().flat_map(|&a| axis_angle(DVec3::X, a).to_array()).collect();
    let turns = Curve::linear(ValueKind::Rotation, times, turns).expect("unit quaternions");
    let binding = |property| Binding::node(0, "Ball", property);
    clip.tracks.push(Track::new(binding(Property::Translation), TrackData::Curve(place), rest));
    let turns = Track::new(binding(Property::Rotation), TrackData::Curve(turns), vec![0.0, 0.0, 0.0, 1.0]);
    clip.tracks.push(turns);
    import(skeleton, vec![clip])
}
