//! What the BVH writer keeps, and what it says about the rest.

mod common;

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::{angle_between, axis_angle};
use inbetween::{
    Binding, Clip, Curve, FrameRate, Joint, LocalPose, ModelPose, Pivot, Property, ScaleInherit, Skeleton,
    Track, TrackData, TrackMask, Transform, ValueKind,
};
use inbetween_formats::bvh::{WriteOptions, write};
use inbetween_formats::{Convention, Import, Input, Note, ReadOptions, Source, demo, export, import};

fn read(bytes: &[u8]) -> Import {
    let options = ReadOptions { file_units: true, ..ReadOptions::default() };
    import(&Input::alone(bytes, "out.bvh"), &options).unwrap_or_else(|e| panic!("{e}"))
}

fn read_house(bytes: &[u8]) -> Import {
    import(&Input::alone(bytes, "out.bvh"), &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn said(notes: &[Note]) -> String {
    notes.iter().map(|n| format!("{n}\n")).collect()
}

/// Largest distance in the world of every node and tip, between two imports with the same nodes.
fn world_distance(a: (&Skeleton, &Clip, f64), b: (&Skeleton, &Clip, f64)) -> f64 {
    let places = |(skeleton, clip, time): (&Skeleton, &Clip, f64)| -> Vec<DVec3> {
        let local = LocalPose::of_clip(clip, skeleton, time, &TrackMask::all());
        let world = ModelPose::of(skeleton, &local);
        let tips = skeleton.joints().iter().enumerate();
        let tips = tips.flat_map(|(i, j)| j.tips.iter().map(move |t| (i, *t)));
        let tips = tips.map(|(i, t)| world.joints[i].transform_point3(t)).collect::<Vec<_>>();
        skeleton.joints().iter().enumerate().map(|(i, _)| world.joints[i].translation).chain(tips).collect()
    };
    let (a, b) = (places(a), places(b));
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).map(|(a, b)| (*a - *b).length()).fold(0.0, f64::max)
}

#[test]
fn real_captures_go_through_the_house_and_back_bit_for_bit() {
    let Some(dir) = common::data_dir() else { return };
    for file in common::with_reference(&dir, &["bvh"]) {
        let bytes = std::fs::read(dir.join(&file)).unwrap();
        let (source, house) = (read(&bytes), read_house(&bytes));
        for (name, from) in [("as read", &source), ("in metres", &house)] {
            let (written, notes) = write(from, Some(0), &WriteOptions::default()).unwrap();
            assert!(notes.is_empty(), "{file}: {}", said(&notes));
            let again = read(&written);
            assert!(again.skeleton == source.skeleton, "{file} {name}: the skeleton changed");
            assert!(again.clips == source.clips, "{file} {name}: the clip changed");
        }
    }
}

#[test]
fn odd_channels_come_back_as_they_were() {
    let text = "HIERARCHY\nROOT a\n{\nOFFSET 1 2 3\nCHANNELS 2 Zposition Yrotation\nJOINT b\n{\nOFFSET 0 1 0\nCHANNELS 4 \
                Xrotation Zrotation Xrotation Yrotation\n}\nJOINT c\n{\nOFFSET 0 0 1\nCHANNELS 0\nEnd Site\n{\nOFFSET \
                0.1 0.2 0.3\n}\n}\n}\nROOT d\n{\nOFFSET 0 0 0\nCHANNELS 3 Xposition Yposition Zposition\n}\nMOTION\n\
                Frames: 3\nFrame Time: 0.0083333\n0.1 10 1.1 2.2 3.3 4.4 0.7 8 9\n0.2 20.7 1 2 3 4 7 8.13 9\n0.3 -3e-5 \
                1 2 3 4 7 8 9\n";
    let source = read(text.as_bytes());
    let (written, notes) = write(&source, Some(0), &WriteOptions::default()).unwrap();
    let again = read(&written);
    assert_eq!(again.skeleton, source.skeleton);
    assert_eq!(again.clips, source.clips, "{}", String::from_utf8_lossy(&written));
    assert!(notes.is_empty());
    let text = String::from_utf8(written).unwrap();
    assert!(text.contains("Frame Time: 0.0083333\n") && text.contains("0.1 10 1.1 2.2"), "{text}");
}

#[test]
fn the_figure_walks_on_in_bvh_to_a_hundredth_of_a_millimetre() {
    let set = demo::locomotion();
    for (i, clip) in set.clips.iter().enumerate() {
        let (written, notes) = write(&set, Some(i), &WriteOptions::default()).unwrap();
        assert_eq!(notes.iter().any(|n| n.text.contains("marks")), !clip.markers.is_empty());
        let again = read_house(&written);
        assert_eq!(again.clips[0].rate, Some(FrameRate::hz(60)));
        let frames = clip.key_times();
        assert_eq!(again.clips[0].key_times().len(), frames.len());
        for &t in &frames {
            let d = world_distance((&set.skeleton, clip, t), (&again.skeleton, &again.clips[0], t));
            assert!(d < 1e-5, "{}: {d} m at {t} s", clip.name);
        }
        // Unwrapped angles make no jump.
        for track in &again.clips[0].tracks {
            let TrackData::Euler(e) = &track.data else { continue };
            for curve in e.terms.iter().filter_map(|(_, a)| a.curve()) {
                assert!(curve.values().windows(2).all(|w| (w[1] - w[0]).abs() < 1.0));
            }
        }
    }
}

#[test]
fn another_rate_or_order_may_be_asked_for() {
    use inbetween::AxisName::{X, Y, Z};
    let walk = demo::walk();
    let clip = &walk.clips[0];
    let options = WriteOptions {
        rate: Some(FrameRate::hz(30)),
        order: [Y, X, Z],
        unit: Some(1.0),
        ..WriteOptions::default()
    };
    let (written, _) = write(&walk, Some(0), &options).unwrap();
    let text = String::from_utf8(written).unwrap();
    assert!(text.contains("Yrotation Xrotation Zrotation") && text.contains("Frames: 33\n"), "{text}");
    let metres = ReadOptions { unit: Some(1.0), ..ReadOptions::default() };
    let again = import(&Input::alone(text.as_bytes(), "x.bvh"), &metres).unwrap();
    for t in again.clips[0].key_times() {
        let d = world_distance((&walk.skeleton, clip, t), (&again.skeleton, &again.clips[0], t));
        assert!(d < 1e-5, "{d} m at {t} s");
    }
}

fn two_nodes(edit: impl Fn(&mut Vec<Joint>)) -> Skeleton {
    let mut joints = vec![
        Joint::new("root", None, Transform { translation: DVec3::Y, ..Transform::IDENTITY }),
        Joint::new(
            "arm",
            Some(0),
            Transform { translation: DVec3::new(0.0, 2.0, 0.5), ..Transform::IDENTITY },
        ),
        Joint::new(
            "hand",
            Some(1),
            Transform { translation: DVec3::new(0.3, 1.0, 0.0), ..Transform::IDENTITY },
        ),
    ];
    joints[2].tips.push(DVec3::new(0.1, 0.2, 0.3));
    edit(&mut joints);
    Skeleton::new(joints).unwrap()
}

fn turning(skeleton: Skeleton) -> Import {
    let mut clip = Clip::new("turn", 0.0, 1.0).unwrap();
    clip.rate = Some(FrameRate::hz(10));
    for node in [0, 1] {
        let values = [0.0, 2.5].map(|a| axis_angle(DVec3::new(0.6, 0.0, 0.8), a).to_array()).concat();
        let curve = Curve::linear(ValueKind::Rotation, vec![0.0, 1.0], values).unwrap();
        let binding = Binding::node(node, "", Property::Rotation);
        clip.tracks.push(Track::new(binding, TrackData::Curve(curve), vec![0.0, 0.0, 0.0, 1.0]));
    }
    Import {
        format: "inb",
        skeleton,
        clips: vec![clip],
        notes: Vec::new(),
        convention: Convention::HOUSE,
        in_house_units: true,
        source: Source::None,
        decimals: None,
    }
}

#[test]
fn sparse_keys_are_sampled_on_the_clip_s_own_frames() {
    let source = turning(two_nodes(|_| {}));
    let (written, notes) = write(&source, Some(0), &WriteOptions::default()).unwrap();
    assert!(notes.is_empty(), "{}", said(&notes));
    let again = read_house(&written);
    assert_eq!(again.clips[0].key_times().len(), 11);
    for i in 0..=20 {
        let t = f64::from(i) * 0.05;
        let d =
            world_distance((&source.skeleton, &source.clips[0], t), (&again.skeleton, &again.clips[0], t));
        assert!(d < 1e-9, "{d} m at {t} s");
    }
}

#[test]
fn scales_pivots_and_rest_rotations_keep_every_node_s_place_in_the_world() {
    type Edit = fn(&mut Vec<Joint>);
    let edits: [(&str, Edit); 4] = [
        ("rest rotation", |j| j[1].rest.rotation = axis_angle(DVec3::X, 0.8)),
        ("scale", |j| j[0].rest.scale = DVec3::splat(2.5)),
        ("scale that is not taken over", |j| {
            j[0].rest.scale = DVec3::new(1.0, 2.0, 1.0);
            j[1].inherit = ScaleInherit::Ignore;
        }),
        ("pivot", |j| {
            j[1].pivot = Some(Box::new(Pivot {
                rotation_offset: DVec3::X,
                rotation_pivot: DVec3::new(0.0, 0.5, 0.2),
                scaling_offset: DVec3::ZERO,
                scaling_pivot: DVec3::ZERO,
            }));
        }),
    ];
    for (what, edit) in edits {
        let source = turning(two_nodes(edit));
        let (written, notes) = write(&source, Some(0), &WriteOptions::default()).unwrap();
        assert_eq!(notes.is_empty(), what == "rest rotation", "{what}: {}", said(&notes));
        let again = read_house(&written);
        for i in 0..=10 {
            let t = f64::from(i) * 0.1;
            let d = world_distance(
                (&source.skeleton, &source.clips[0], t),
                (&again.skeleton, &again.clips[0], t),
            );
            assert!(d < 1e-9, "{what}: {d} m at {t} s");
        }
    }
}

#[test]
fn what_bvh_cannot_hold_is_said() {
    let lamp = demo::lamp();
    let (_, notes) = write(&lamp, Some(0), &WriteOptions::default()).unwrap();
    assert!(said(&notes).contains("Lamp light.intensity") && said(&notes).contains("Lamp visible"));
    let mut late = turning(two_nodes(|j| j[1].name = "a {b}\nc ".to_owned()));
    late.clips[0].set_range(0.5, 1.0).unwrap();
    late.clips[0].rate = None;
    late.clips[0].tracks[1].enabled = false;
    let (written, notes) = write(&late, Some(0), &WriteOptions::default()).unwrap();
    for word in ["0.5 s", "60 frames", "muted", "a _b__c"] {
        assert!(said(&notes).contains(word), "{word}: {}", said(&notes));
    }
    assert_eq!(read(&written).skeleton.joints()[1].name, "a _b__c");
}

#[test]
fn a_skeleton_without_clips_and_a_choice_of_clips_go_through_the_one_door_out() {
    let mut set = demo::locomotion();
    let e = export(&set, "x.bvh").unwrap_err().to_string();
    assert!(e.contains("7 clips"), "{e}");
    set.clips.clear();
    let (bytes, _) = export(&set, "x.bvh").unwrap();
    let again = read_house(&bytes);
    assert_eq!(again.skeleton.len(), 23);
    let still = LocalPose::of_clip(&again.clips[0], &again.skeleton, 0.0, &TrackMask::all());
    for (a, b) in still.joints.iter().zip(&LocalPose::rest(&set.skeleton).joints) {
        assert!(
            (a.translation - b.translation).length() < 1e-15 && angle_between(a.rotation, b.rotation) < 1e-15
        );
    }
    let nothing = Import { skeleton: Skeleton::default(), ..set };
    assert!(export(&nothing, "x.bvh").unwrap_err().to_string().contains("without any node"));
}

#[test]
fn days_at_a_high_rate_are_refused_before_anything_is_written() {
    let mut source = turning(two_nodes(|_| {}));
    source.clips[0].set_range(0.0, 1e9).unwrap();
    let e = write(&source, Some(0), &WriteOptions::default()).unwrap_err().to_string();
    assert!(e.contains("frames") && e.contains("cut"), "{e}");
}

#[test]
fn a_reduced_capture_goes_back_onto_the_frames_it_came_from() {
    // Keys at frames 0, 3 and 9 of a file whose frame time is a rounded 1/120 s.
    let step = 0.0083333;
    let mut source = turning(two_nodes(|_| {}));
    let times: Vec<f64> = [0.0, 3.0, 9.0].map(|k| k * step).to_vec();
    let values = [0.0, 0.2, 0.9].map(|a| axis_angle(DVec3::Z, a).to_array()).concat();
    let curve = Curve::linear(ValueKind::Rotation, times, values).unwrap();
    source.clips[0].tracks.truncate(1);
    source.clips[0].tracks[0].data = TrackData::Curve(curve);
    source.clips[0].set_range(0.0, 9.0 * step).unwrap();
    source.clips[0].rate = Some(FrameRate::hz(120));
    let (written, notes) = write(&source, Some(0), &WriteOptions::default()).unwrap();
    let text = String::from_utf8(written).unwrap();
    assert!(text.contains("Frames: 10\nFrame Time: 0.0083333\n"), "{text}");
    assert!(notes.is_empty(), "{}", said(&notes));
    let again = read_house(text.as_bytes());
    let q =
        DQuat::from_slice(&again.clips[0].node_track(0, &Property::Rotation).unwrap().value_at(3.0 * step));
    assert!(angle_between(q, axis_angle(DVec3::Z, 0.2)) < 1e-12);
}

#[test]
fn rounded_numbers_have_the_digits_asked_for_and_stay_near() {
    let walk = demo::walk();
    let options = WriteOptions { decimals: Some(4), ..WriteOptions::default() };
    let (written, _) = write(&walk, Some(0), &options).unwrap();
    let text = String::from_utf8(written).unwrap();
    let rows = text.lines().skip_while(|l| !l.starts_with("Frame Time")).skip(1);
    for word in rows.flat_map(str::split_whitespace) {
        assert!(word.split_once('.').is_none_or(|(_, digits)| digits.len() <= 4), "{word}");
    }
    let again = read_house(text.as_bytes());
    assert!(matches!(again.decimals, Some(3 | 4)), "zeros have none: {:?}", again.decimals);
    for t in again.clips[0].key_times() {
        let d = world_distance((&walk.skeleton, &walk.clips[0], t), (&again.skeleton, &again.clips[0], t));
        assert!(d < 2e-5, "{d} m at {t} s");
    }
}
