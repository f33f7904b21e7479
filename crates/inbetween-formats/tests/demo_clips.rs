//! What the demo clips promise: feet that stay put, loops that close, a ball under gravity.

use inbetween::glam::{DAffine3, DQuat, DVec3};
use inbetween::math::angle_between;
use inbetween::{Clip, LocalPose, ModelPose, Property, Skeleton, SpanKind, TrackMask, ValueKind, Wrap};
use inbetween_formats::{Input, ReadOptions, demo, import, native};

/// From the ankle to the ground below the heel and below the ball of the foot, foot flat.
const HEEL: DVec3 = DVec3::new(0.0, -0.08, -0.05);
const BALL: DVec3 = DVec3::new(0.0, -0.08, 0.13);

fn world(skeleton: &Skeleton, clip: &Clip, time: f64) -> Vec<DAffine3> {
    let local = LocalPose::of_clip(clip, skeleton, time, &TrackMask::all());
    ModelPose::of(skeleton, &local).joints
}

fn joint(skeleton: &Skeleton, name: &str) -> usize {
    skeleton.find(name)[0]
}

fn key_times(clip: &Clip) -> Vec<f64> {
    clip.key_times()
}

#[test]
fn the_set_holds_standing_walking_running_and_turning_on_one_figure() {
    let set = demo::locomotion();
    let names: Vec<&str> = set.clips.iter().map(|c| c.name.as_str()).collect();
    let expected =
        ["idle", "walk", "run", "walk turn left", "walk turn right", "run turn left", "run turn right"];
    assert_eq!(names, expected);
    assert_eq!(set.skeleton.len(), 23);
    for clip in &set.clips {
        assert_eq!(clip.tracks.len(), 25, "{}", clip.name);
        let frames = (clip.duration() * 60.0).round() as usize + 1;
        assert!(clip.tracks.iter().all(|t| t.data.key_count() == frames), "{}", clip.name);
    }
}

#[test]
fn a_foot_on_the_ground_does_not_slide() {
    let set = demo::locomotion();
    for clip in set.clips.iter().filter(|c| c.name != "idle") {
        for (side, word) in [("Left", "left"), ("Right", "right")] {
            let foot = joint(&set.skeleton, &format!("{side}Foot"));
            let mark = |what: &str| {
                let name = format!("{word} foot {what}");
                clip.markers.iter().filter(move |m| m.name == name).map(|m| m.time).collect::<Vec<_>>()
            };
            let (downs, ups) = (mark("down"), mark("up"));
            let mut checked = 0;
            for down in downs {
                // A contact that goes on over the loop's seam ends in the next pass.
                let up = ups.iter().copied().find(|&up| up > down).unwrap_or(ups[0] + clip.duration());
                // First the heel, then, once the foot is flat, the ball stays where it is.
                let part = |u: f64| down + u * (up - down);
                for (point, from, to) in [(HEEL, part(0.0), part(0.1)), (BALL, part(0.25), up)] {
                    let at = |t: f64| world(&set.skeleton, clip, t)[foot].transform_point3(point);
                    let times: Vec<f64> =
                        key_times(clip).into_iter().filter(|t| (from..to).contains(t)).collect();
                    for pair in times.windows(2) {
                        let moved = (at(pair[1]) - at(pair[0])).length();
                        assert!(moved < 1e-9, "{} {side} foot moved {moved} m at {} s", clip.name, pair[0]);
                        checked += 1;
                    }
                }
            }
            assert!(checked > 5, "{} {side}", clip.name);
        }
    }
    let idle = &set.clips[0];
    for side in ["LeftFoot", "RightFoot"] {
        let foot = joint(&set.skeleton, side);
        let first = world(&set.skeleton, idle, 0.0)[foot];
        for t in key_times(idle) {
            assert!(world(&set.skeleton, idle, t)[foot].abs_diff_eq(first, 1e-9), "{side} at {t} s");
        }
    }
}

#[test]
fn no_foot_goes_through_the_ground() {
    let set = demo::locomotion();
    for clip in &set.clips {
        for t in key_times(clip) {
            let pose = world(&set.skeleton, clip, t);
            for side in ["Left", "Right"] {
                let foot = pose[joint(&set.skeleton, &format!("{side}Foot"))];
                let toes = joint(&set.skeleton, &format!("{side}Toes"));
                let tip = pose[toes].transform_point3(set.skeleton.joints()[toes].tips[0]);
                for point in [foot.transform_point3(HEEL), foot.transform_point3(BALL), tip] {
                    assert!(point.y > -1e-9, "{} {side} foot at {} m, {t} s", clip.name, point.y);
                }
            }
        }
    }
}

#[test]
fn every_joint_but_the_root_ends_exactly_where_it_began() {
    let set = demo::locomotion();
    for clip in &set.clips {
        for track in &clip.tracks {
            let curve = track.data.curves()[0];
            let (first, last) = (curve.value(0), curve.value(curve.len() - 1));
            let same = first == last || first.iter().zip(last).all(|(a, b)| *a == -*b);
            let moves = clip.name != "idle";
            let turns = clip.name.contains("turn");
            let root = track.binding.target == "Root"
                && ((moves && track.binding.property == Property::Translation)
                    || (turns && track.binding.property == Property::Rotation));
            assert_eq!(same, !root, "{} {} {:?}", clip.name, track.binding.target, track.binding.property);
        }
        let expected = if clip.name == "idle" { Wrap::Loop } else { Wrap::LoopOffset };
        assert_eq!(clip.wrap, expected);
    }
}

#[test]
fn the_root_travels_forward_at_an_even_speed_and_turns_where_the_name_says() {
    let set = demo::locomotion();
    for (name, speed, turn) in [
        ("walk", 1.25, 0.0),
        ("run", 2.9, 0.0),
        ("walk turn left", 1.1, 42.0),
        ("run turn right", 2.8, -60.0),
    ] {
        let clip = set.clips.iter().find(|c| c.name == name).unwrap();
        let root = |t: f64| world(&set.skeleton, clip, t)[0];
        for pair in key_times(clip).windows(2) {
            let (a, b) = (root(pair[0]), root(pair[1]));
            let way = (b.translation - a.translation).length() / (pair[1] - pair[0]);
            assert!((way - speed).abs() < 2e-3 * speed, "{name}: {way} m/s");
            // A chord points half way between the headings at its ends.
            let forward = ((a.matrix3 + b.matrix3) * DVec3::Z).normalize();
            assert!(forward.dot((b.translation - a.translation).normalize()) > 1.0 - 1e-9);
        }
        let q = DQuat::from_mat3(&root(clip.end()).matrix3);
        let turned = 2.0 * f64::atan2(q.y, q.w).to_degrees();
        assert!((turned - turn * clip.duration()).abs() < 1e-6, "{name} turned {turned} degrees");
    }
}

#[test]
fn a_walk_looks_like_one_in_its_numbers() {
    let set = demo::walk();
    let (skeleton, clip) = (&set.skeleton, &set.clips[0]);
    let poses: Vec<_> = key_times(clip).iter().map(|&t| world(skeleton, clip, t)).collect();
    let track = |name: &str, axis: usize| -> Vec<f64> {
        let j = joint(skeleton, name);
        poses.iter().map(|p| (p[j].translation - p[0].translation)[axis]).collect()
    };
    let range = |v: &[f64]| {
        let high = v.iter().copied().fold(f64::MIN, f64::max);
        high - v.iter().copied().fold(f64::MAX, f64::min)
    };
    // Two bobs of some centimetres and one sway a stride.
    let hips = track("Hips", 1);
    let peaks = (1..hips.len() - 1).filter(|&i| hips[i] > hips[i - 1] && hips[i] >= hips[i + 1]).count();
    assert_eq!(peaks, 2);
    assert!((0.02..0.06).contains(&range(&hips)), "bob {}", range(&hips));
    assert!((0.02..0.08).contains(&range(&track("Hips", 0))));
    // The head moves no more than the hips, and hardly turns.
    let head = joint(skeleton, "Head");
    let turn = |p: &Vec<DAffine3>| DQuat::from_mat3(&p[head].matrix3);
    let most = poses.iter().map(|p| angle_between(turn(p), turn(&poses[0]))).fold(0.0, f64::max);
    assert!(most < 4f64.to_radians(), "the head turns {} degrees", most.to_degrees());
    assert!(
        range(&track("Head", 0)) < 1.2 * range(&track("Hips", 0)),
        "{} {}",
        range(&track("Head", 0)),
        range(&track("Hips", 0))
    );
    // Each arm goes with the leg of the other side.
    let (arm, leg) = (track("LeftHand", 2), track("RightFoot", 2));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, ml) = (mean(&arm), mean(&leg));
    let product: f64 = arm.iter().zip(&leg).map(|(a, l)| (a - ma) * (l - ml)).sum();
    let size = |v: &[f64], m: f64| v.iter().map(|x| (x - m) * (x - m)).sum::<f64>().sqrt();
    let correlation = product / (size(&arm, ma) * size(&leg, ml));
    assert!(correlation > 0.9, "arm and other leg correlate by {correlation}");
    assert!(range(&arm) > 0.3 && range(&leg) > 0.5);
}

#[test]
fn nothing_jumps_from_one_frame_to_the_next() {
    let set = demo::locomotion();
    for clip in &set.clips {
        for track in clip.tracks.iter().filter(|t| t.binding.property == Property::Rotation) {
            let curve = track.data.curves()[0];
            for i in 1..curve.len() {
                let (a, b) = (DQuat::from_slice(curve.value(i - 1)), DQuat::from_slice(curve.value(i)));
                assert!(a.dot(b) > 0.0, "{} {}: a sign flips", clip.name, track.binding.target);
                let degrees = angle_between(a, b).to_degrees();
                let fast = if clip.name.starts_with("run") { 24.0 } else { 12.0 };
                assert!(
                    degrees < fast,
                    "{} {} turns {degrees} degrees in a frame",
                    clip.name,
                    track.binding.target
                );
            }
        }
    }
}

#[test]
fn the_ball_falls_as_gravity_has_it_and_rests_on_the_ground() {
    let ball = demo::ball();
    let clip = &ball.clips[0];
    let place = clip.tracks[0].data.curves()[0];
    let y = |i: usize| place.value(i)[1];
    let bounces: Vec<usize> = clip.markers.iter().map(|m| (m.time * 60.0).round() as usize).collect();
    assert_eq!(bounces.len(), 5);
    for i in 1..bounces[4] {
        if !bounces.contains(&i) {
            let fall = y(i + 1) - 2.0 * y(i) + y(i - 1);
            assert!((fall + 9.81 / 3600.0).abs() < 1e-12, "frame {i}: {fall}");
        }
    }
    assert!((0..place.len()).all(|i| y(i) >= 0.11 - 1e-12));
    assert!(bounces.iter().all(|&i| y(i) == 0.11));
    // It rolls without sliding, then lies still.
    let spin = clip.tracks[1].data.curves()[0];
    for i in bounces[4] + 1..place.len() - 1 {
        let way = place.value(i + 1)[2] - place.value(i)[2];
        let turn = angle_between(DQuat::from_slice(spin.value(i)), DQuat::from_slice(spin.value(i + 1)));
        assert!((way - 0.11 * turn).abs() < 1e-9);
    }
    assert_eq!(place.value(place.len() - 1), place.value(place.len() - 30));
}

#[test]
fn lamp_and_camera_have_the_tracks_they_promise() {
    let lamp = demo::lamp();
    let tracks = &lamp.clips[0].tracks;
    assert_eq!(tracks[0].data.kind(), ValueKind::Switch);
    assert_eq!((tracks[0].data.key_count(), tracks[0].data.curves()[0].span(0)), (8, SpanKind::Step));
    assert_eq!((tracks[0].value_at(0.4), tracks[0].value_at(5.0)), (vec![0.0], vec![1.0]));
    assert_eq!(tracks[1].value_at(6.0), [900.0]);
    assert_eq!(tracks[2].data.kind(), ValueKind::Color(3));
    let camera = demo::camera();
    assert!(camera.clips[0].tracks.iter().all(|t| t.data.key_count() == 7));
    // It looks at a point one metre above the origin all the way.
    for &t in camera.clips[0].tracks[0].data.curves()[0].times().iter() {
        let eye = world(&camera.skeleton, &camera.clips[0], t)[0];
        let toward = (DVec3::Y - eye.translation).normalize();
        assert!((eye.transform_vector3(DVec3::NEG_Z) - toward).length() < 1e-9);
    }
}

#[test]
fn every_demo_survives_as_text() {
    for (name, demo) in demo::all() {
        let text = native::write(&demo).unwrap();
        let again = import(&Input::alone(text.as_bytes(), "demo.inb"), &ReadOptions::default()).unwrap();
        assert!(again.skeleton == demo.skeleton && again.clips == demo.clips, "{name}");
    }
}

#[test]
fn the_demos_are_the_same_bits_on_every_machine() {
    // FNV-1a over all numbers; changes only where a demo is changed on purpose.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (_, demo) in demo::all() {
        for curve in demo.clips.iter().flat_map(|c| &c.tracks).flat_map(|t| t.data.curves()) {
            for byte in curve.times().iter().chain(curve.values()).flat_map(|v| v.to_bits().to_le_bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    assert_eq!(format!("{hash:016x}"), "989b29eb0edcec91");
}
