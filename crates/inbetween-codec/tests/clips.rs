//! Whole clips through the codec: the bound, exactness, loops, every kind of track.

mod figures;

use figures::{Random, dance, limb};
use inbetween::glam::{DQuat, DVec3};
use inbetween::metric::{Shell, check_times, measure};
use inbetween::{
    Axis, Binding, Clip, Curve, LocalPose, Marker, ModelPose, Property, Skeleton, SpanKind, Spans, Track,
    TrackData, TrackMask, ValueKind, Wrap,
};
use inbetween_codec::{CompressError, CompressOptions, JointTransform, Library, NodeMask, compress, unpack};

/// Largest world error of the opened clip against the source, by the model's own poses.
fn world_error(clip: &Clip, skeleton: &Skeleton, library: &Library, shell: f64) -> f64 {
    let mut pose = vec![JointTransform::IDENTITY; skeleton.len()];
    let mut worst = 0.0f64;
    for time in check_times(clip) {
        let local = LocalPose::of_clip(clip, skeleton, time, &TrackMask::all());
        library.clips[0].pose(time, &mut pose);
        let got = LocalPose { joints: pose.iter().map(JointTransform::to_model).collect() };
        let (a, b) = (ModelPose::of(skeleton, &local), ModelPose::of(&library.skeleton, &got));
        for (a, b) in a.joints.iter().zip(&b.joints) {
            for p in [DVec3::ZERO, DVec3::X * shell, DVec3::Y * shell, DVec3::Z * shell] {
                worst = worst.max((a.transform_point3(p) - b.transform_point3(p)).length());
            }
        }
    }
    worst
}

#[test]
fn the_bound_holds_at_every_key_and_midpoint_at_any_size_of_bound() {
    let skeleton = limb(8, 0.3);
    let clip = dance(&skeleton, 90, 30.0, 1);
    let mut before = usize::MAX;
    for bound in [1e-5, 1e-4, 1e-3, 1e-2] {
        let options = CompressOptions { max_error: bound, ..Default::default() };
        let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
        let library = Library::open(&file.bytes).unwrap();
        let error = world_error(&clip, &skeleton, &library, 0.03);
        assert!(error <= bound, "{error} at {bound}");
        assert!(error > 0.2 * bound, "the bound is used: {error} at {bound}");
        assert!((f64::from(library.clips[0].measured_error()) - error).abs() < 1e-9 + 1e-3 * error);
        assert!(file.bytes.len() < before, "a wider bound takes fewer bytes");
        before = file.bytes.len();
    }
}

#[test]
fn a_clip_read_back_is_measured_by_the_same_rule() {
    let skeleton = limb(6, 0.3);
    let (clip, other) = (dance(&skeleton, 60, 30.0, 2), dance(&skeleton, 60, 30.0, 3));
    let options = CompressOptions { max_error: 1e-3, ..Default::default() };
    for at_rest in [false, true] {
        let file = compress(&skeleton, std::slice::from_ref(&clip), &options, at_rest).unwrap();
        let library = Library::load(&file.bytes).unwrap();
        let found = inbetween_codec::measure(&clip, &skeleton, &options, &library.clips[0]);
        assert_eq!(found.worst, file.reports[0].worst);
        assert!(found.share_of_bound <= 1.0);
        let wrong = inbetween_codec::measure(&other, &skeleton, &options, &library.clips[0]);
        assert!(wrong.share_of_bound > 10.0, "another clip is not this one");
    }
}

#[test]
fn the_root_is_the_node_that_travels_unless_one_is_given() {
    let skeleton = limb(3, 0.3);
    let mut clip = Clip::new("walk", 0.0, 1.0).unwrap();
    let path =
        Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(1, "joint 1", Property::Translation),
        TrackData::Curve(path),
        vec![0.0; 3],
    ));
    let root = |clip: &Clip, options: &CompressOptions| {
        let file = compress(&skeleton, std::slice::from_ref(clip), options, true).unwrap();
        Library::load(&file.bytes).unwrap().clips[0].root()
    };
    assert_eq!(root(&clip, &CompressOptions::default()), Some(1));
    assert_eq!(root(&clip, &CompressOptions { root: Some(2), ..Default::default() }), Some(2));
    clip.additive = true;
    assert_eq!(root(&clip, &CompressOptions::default()), None);
}

#[test]
fn some_nodes_may_be_held_to_another_bound() {
    let skeleton = limb(6, 0.3);
    let clip = dance(&skeleton, 60, 30.0, 2);
    let options = CompressOptions { max_error: 5e-3, node_errors: vec![(5, 1e-4)], ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    let found =
        measure(&clip, &library.clips[0].to_clip(&library.skeleton), &skeleton, Shell::default(), false);
    assert!(found.nodes[5] <= 1.05e-4, "{:?}", found.nodes);
    assert!(found.nodes.iter().all(|e| *e <= 5.05e-3));
}

#[test]
fn every_simd_level_and_the_plain_loops_give_the_same_bits() {
    let skeleton = limb(21, 0.1);
    let clip = dance(&skeleton, 130, 60.0, 3);
    let file = compress(&skeleton, std::slice::from_ref(&clip), &CompressOptions::default(), false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    let fallback = library.clips[0].clone().with_level(inbetween_codec::Level::baseline());
    let mut random = Random(4);
    let mut poses = vec![vec![JointTransform::IDENTITY; 21]; 3];
    let prepared: Vec<_> = (0..21).map(|n| library.clips[0].prepare(n)).collect();
    for k in 0..500 {
        let time = if k == 0 { f64::NAN } else { random.next() * 2.3 - 0.05 };
        library.clips[0].pose(time, &mut poses[0]);
        library.clips[0].plain_pose(time, &mut poses[1]);
        fallback.pose(time, &mut poses[2]);
        let bits = |p: &[JointTransform]| -> Vec<u32> {
            p.iter()
                .flat_map(|t| {
                    t.rotation
                        .iter()
                        .chain(&t.translation)
                        .chain(&t.scale)
                        .map(|v| v.to_bits())
                        .collect::<Vec<_>>()
                })
                .collect()
        };
        assert_eq!(bits(&poses[0]), bits(&poses[1]), "at {time}");
        assert_eq!(bits(&poses[0]), bits(&poses[2]), "at {time}");
        for n in 0..21 {
            assert_eq!(library.clips[0].node(time, n), poses[0][n], "node {n} at {time}");
            assert_eq!(prepared[n].at(time), poses[0][n], "prepared node {n} at {time}");
        }
    }
}

#[test]
fn a_cursor_gives_the_same_bits_forward_backward_and_in_jumps() {
    let skeleton = limb(21, 0.1);
    for (clip, closed) in [(dance(&skeleton, 130, 30.0, 3), false), (loop_of(&skeleton), true)] {
        let options = CompressOptions { closed, ..Default::default() };
        let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
        let library = Library::open(&file.bytes).unwrap();
        let packed = &library.clips[0];
        assert_eq!(packed.is_closed(), closed);
        let mut cursor = packed.cursor();
        let mask = NodeMask::new(21, |n| n % 5 == 1);
        let mut random = Random(8);
        let (mut time, mut direction) = (0.0, 1.0);
        let mut poses = vec![vec![JointTransform::IDENTITY; 21]; 2];
        for k in 0..3000 {
            match k % 97 {
                0 => time = random.next() * packed.end(),
                40 => direction = -direction,
                // Exactly on a frame.
                60 => time = f64::from((time * 30.0) as u32) / 30.0,
                _ => time += direction / 60.0,
            }
            if k % 7 == 3 {
                cursor.pose_masked(time, &mask, &mut poses[0]);
                packed.pose_masked(time, &mask, &mut poses[1]);
            } else {
                cursor.pose(time, &mut poses[0]);
                packed.pose(time, &mut poses[1]);
            }
            assert_eq!(poses[0], poses[1], "at {time}, step {k}");
        }
    }
}

/// A dance whose last pose is its first.
fn loop_of(skeleton: &Skeleton) -> Clip {
    let mut clip = dance(skeleton, 61, 30.0, 12);
    for t in &mut clip.tracks {
        if let TrackData::Curve(c) = &t.data {
            let mut rows: Vec<f64> = Vec::new();
            let times = c.times().to_vec();
            let mut v = vec![0.0; c.width()];
            for time in &times {
                // There and back.
                let time = if *time > 1.0 { 2.0 - time } else { *time };
                c.eval(time, &mut v);
                rows.extend(&v);
            }
            t.data = TrackData::Curve(Curve::linear(c.kind(), times, rows).unwrap());
        }
    }
    clip
}

#[test]
fn a_mask_leaves_the_other_nodes_alone() {
    let skeleton = limb(12, 0.1);
    let clip = dance(&skeleton, 40, 30.0, 5);
    let file = compress(&skeleton, std::slice::from_ref(&clip), &CompressOptions::default(), false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    let mut all = vec![JointTransform::IDENTITY; 12];
    library.clips[0].pose(0.7, &mut all);
    let marked = JointTransform { translation: [7.0; 3], ..JointTransform::IDENTITY };
    let mut some = vec![marked; 12];
    library.clips[0].pose_masked(0.7, &NodeMask::new(12, |n| n == 3 || n == 10), &mut some);
    for n in 0..12 {
        assert_eq!(some[n], if n == 3 || n == 10 { all[n] } else { marked });
    }
}

#[test]
fn bytes_are_the_same_every_time() {
    let skeleton = limb(5, 0.2);
    let clip = dance(&skeleton, 50, 30.0, 6);
    for at_rest in [false, true] {
        let make = || {
            compress(&skeleton, std::slice::from_ref(&clip), &CompressOptions::default(), at_rest)
                .unwrap()
                .bytes
        };
        assert_eq!(make(), make());
    }
}

#[test]
fn a_file_at_rest_unpacks_to_the_runtime_file_byte_for_byte() {
    let skeleton = limb(9, 0.2);
    let clips = [dance(&skeleton, 200, 60.0, 7), dance(&skeleton, 33, 30.0, 8)];
    let runtime = compress(&skeleton, &clips, &CompressOptions::default(), false).unwrap().bytes;
    let rest = compress(&skeleton, &clips, &CompressOptions::default(), true).unwrap().bytes;
    assert!(rest.len() < runtime.len(), "{} at rest, {} to play", rest.len(), runtime.len());
    assert_eq!(unpack(&rest).unwrap(), runtime);
    assert_eq!(unpack(&runtime).unwrap(), runtime);
}

#[test]
fn a_loop_that_meets_its_start_meets_it_to_the_bit() {
    let skeleton = limb(2, 0.4);
    let times: Vec<f64> = (0..31).map(|f| f64::from(f) / 30.0).collect();
    let mut random = Random(9);
    let mut values: Vec<f64> = (0..93).map(|_| random.next()).collect();
    let first = values[..3].to_vec();
    values[90..].copy_from_slice(&first);
    let mut clip = Clip::new("loop", 0.0, 1.0).unwrap();
    clip.wrap = Wrap::Loop;
    let curve = Curve::linear(ValueKind::Vector(3), times, values).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, "hip", Property::Translation),
        TrackData::Curve(curve),
        vec![0.0; 3],
    ));
    let options = CompressOptions { max_error: 0.02, closed: true, ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    let c = &library.clips[0];
    assert!(c.is_closed() && c.wrap() == Wrap::Loop);
    assert_eq!(c.node(0.0, 0), c.node(1.0, 0));
    assert!(world_error(&clip, &skeleton, &library, 0.03) <= 0.02);
}

/// A loop of all joints whose root travels along x and z, rises and falls along y, and makes no whole
/// turn: its other tracks end on their first value, and not to the last bit of an f64.
fn walk_of(skeleton: &Skeleton, frames: usize) -> Clip {
    let mut random = Random(frames as u64 + 1);
    let last = frames - 1;
    let times: std::sync::Arc<[f64]> = (0..frames).map(|f| f as f64 / 30.0).collect();
    let mut clip = Clip::new("walk", 0.0, times[last]).unwrap();
    clip.wrap = Wrap::Loop;
    for n in 0..skeleton.len() {
        let (turns, size) = (1.0 + (n % 3) as f64, 0.2 + 0.8 * random.next());
        let phase = |f: usize| std::f64::consts::TAU * f as f64 / last as f64;
        let axis = DVec3::new(random.next(), random.next(), 0.3).normalize();
        let values = (0..frames)
            .flat_map(|f| {
                // Joint 1 goes once all the way round.
                let angle =
                    if n == 1 { phase(f) } else { size * inbetween::math::sin(turns * phase(f) + 1.0) };
                inbetween::math::axis_angle(axis, if n == 0 { 0.3 * f as f64 / last as f64 } else { angle })
                    .to_array()
            })
            .collect();
        clip.tracks.push(Track::new(
            Binding::node(n, format!("joint {n}"), Property::Rotation),
            TrackData::Curve(Curve::linear(ValueKind::Rotation, times.clone(), values).unwrap()),
            vec![0.0, 0.0, 0.0, 1.0],
        ));
        if n == 0 || n == 3 {
            let forward = if n == 0 { 1.4 } else { 0.0 };
            let values = (0..frames)
                .flat_map(|f| {
                    let (s, along) = (inbetween::math::sin(phase(f)), forward * f as f64 / last as f64);
                    [along, 1.0 + 0.04 * s, 0.3 * along + 0.02 * s]
                })
                .collect();
            clip.tracks.push(Track::new(
                Binding::node(n, format!("joint {n}"), Property::Translation),
                TrackData::Curve(Curve::linear(ValueKind::Vector(3), times.clone(), values).unwrap()),
                vec![0.0; 3],
            ));
        }
    }
    let smile: Vec<f64> = (0..frames)
        .map(|f| 0.5 + 0.4 * inbetween::math::sin(std::f64::consts::TAU * f as f64 / last as f64))
        .collect();
    let face =
        Binding { target: "face".into(), node: None, property: Property::from_name("smile"), path: None };
    let smile = Curve::linear(ValueKind::Scalar, times, smile).unwrap();
    clip.tracks.push(Track::new(face, TrackData::Curve(smile), vec![0.0]));
    clip
}

#[test]
fn tracks_that_close_meet_their_start_to_the_bit_where_others_do_not_close() {
    for joints in [4, 21] {
        let skeleton = limb(joints, 0.2);
        for frames in [7, 9, 24, 25, 40, 61, 150] {
            let clip = walk_of(&skeleton, frames);
            for max_error in [1e-4, 1e-3] {
                let options = CompressOptions { max_error, ..Default::default() };
                let file = compress(&skeleton, std::slice::from_ref(&clip), &options, true).unwrap();
                assert_eq!(file.reports[0].notes, Vec::<String>::new());
                let library = Library::load(&file.bytes).unwrap();
                let c = &library.clips[0];
                assert!(!c.is_closed());
                assert!(world_error(&clip, &skeleton, &library, 0.03) <= max_error);
                for n in 0..joints {
                    let prepared = c.prepare(n);
                    for time in check_times(&clip) {
                        assert_eq!(prepared.at(time), c.node(time, n), "node {n} at {time}");
                    }
                    let (first, last) = (c.node(0.0, n), c.node(clip.end(), n));
                    assert_eq!(first.rotation == last.rotation, n > 0, "turn of {n}, {frames} frames");
                    assert_eq!(first.translation[1].to_bits(), last.translation[1].to_bits());
                    let stays = (0..3).all(|a| first.translation[a] == last.translation[a]);
                    assert_eq!(stays, n > 0, "place of {n}, {frames} frames");
                }
                let smile = c.tracks().position(|t| t.binding.target == "face").unwrap();
                let mut ends = [[0.0f32]; 2];
                c.value(smile, 0.0, &mut ends[0]);
                c.value(smile, clip.end(), &mut ends[1]);
                assert_eq!(ends[0][0].to_bits(), ends[1][0].to_bits());
            }
        }
    }
}

#[test]
fn ten_still_minutes_before_a_busy_second_cost_next_to_nothing() {
    let skeleton = limb(1, 0.0);
    let times: Vec<f64> = (0..61).map(|f| 599.0 + f64::from(f) / 60.0).collect();
    let mut random = Random(10);
    let values: Vec<f64> = (0..61).flat_map(|_| [random.next(), 0.0, 0.0]).collect();
    let mut clip = Clip::new("late", 0.0, 600.0).unwrap();
    let curve = Curve::linear(ValueKind::Vector(3), times, values.clone()).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, "late", Property::Translation),
        TrackData::Curve(curve),
        vec![0.0; 3],
    ));
    let options = CompressOptions { max_error: 0.005, ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    assert!(file.bytes.len() < 1200, "{} bytes", file.bytes.len());
    let library = Library::open(&file.bytes).unwrap();
    assert!(world_error(&clip, &skeleton, &library, 0.03) <= 0.005);
    let x = f64::from(library.clips[0].node(599.5, 0).translation[0]);
    assert!((x - values[90]).abs() <= 0.005);
    assert_eq!(library.clips[0].duration(), 600.0);
}

#[test]
fn four_tumbles_keep_their_angle_past_half_turns() {
    let skeleton = limb(1, 0.0);
    let axis = DVec3::new(1.0, 2.0, 3.0).normalize();
    let times: Vec<f64> = (0..145).map(|f| f64::from(f) / 60.0).collect();
    let values = (0..145)
        .flat_map(|f| inbetween::math::axis_angle(axis, f64::from(f) * 10f64.to_radians()).to_array())
        .collect();
    let mut clip = Clip::new("tumble", 0.0, 2.4).unwrap();
    let curve = Curve::linear(ValueKind::Rotation, times, values).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, "tumble", Property::Rotation),
        TrackData::Curve(curve),
        vec![0.0, 0.0, 0.0, 1.0],
    ));
    let options =
        CompressOptions { max_error: 1.0, max_angle: Some(0.1f64.to_radians()), ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    for time in check_times(&clip) {
        let q = library.clips[0].node(time, 0).to_model().rotation;
        let truth = clip.tracks[0].value_at(time);
        let angle = inbetween::math::angle_between(q, DQuat::from_slice(&truth));
        assert!(angle <= 0.1f64.to_radians(), "{} degrees at {time}", angle.to_degrees());
    }
}

#[test]
fn steps_switches_colours_and_weights_come_along() {
    let skeleton = limb(2, 0.4);
    let mut clip = dance(&skeleton, 61, 30.0, 11);
    let end = clip.end();
    let node =
        |p: &str| Binding { target: "face".into(), node: None, property: Property::from_name(p), path: None };
    let visible = Curve::step(ValueKind::Switch, vec![0.0, 0.31, 1.7], vec![1.0, 0.0, 1.0]).unwrap();
    clip.tracks.push(Track::new(node("visible"), TrackData::Curve(visible), vec![1.0]));
    let times: Vec<f64> = (0..61).map(|f| f64::from(f) / 30.0).collect();
    let weights: Vec<f64> =
        times.iter().flat_map(|t| [0.5 + 0.5 * inbetween::math::sin(3.0 * t), t / end, 0.25]).collect();
    let weights = Curve::linear(ValueKind::Weights(3), times, weights).unwrap();
    clip.tracks.push(Track::new(node("weights"), TrackData::Curve(weights.clone()), vec![0.0; 3]));
    let colour =
        Curve::linear(ValueKind::Color(3), vec![0.0, end], vec![1.0, 0.0, 0.0, 0.0, 0.5, 1.0]).unwrap();
    clip.tracks.push(Track::new(node("light.color"), TrackData::Curve(colour.clone()), vec![1.0; 3]));
    let fov = TrackData::Axes {
        kind: ValueKind::Scalar,
        axes: vec![Axis::Curve(
            Curve::hermite(ValueKind::Scalar, vec![0.0, end], vec![0.6, 0.9], vec![0.0, 0.0], vec![0.0, 0.0])
                .unwrap(),
        )],
    };
    clip.tracks.push(Track::new(node("camera.yfov"), fov.clone(), vec![0.6]));
    let mut hop = Curve::step(
        ValueKind::Vector(3),
        vec![0.0, 0.5, 1.0],
        vec![1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.5, 1.0, 1.0],
    )
    .unwrap();
    let mut parts = hop.clone().into_parts();
    parts.spans = Spans::PerKey(vec![SpanKind::Step, SpanKind::Linear, SpanKind::Step]);
    hop = Curve::new(parts).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(1, "joint 1", Property::Scale),
        TrackData::Curve(hop.clone()),
        vec![1.0; 3],
    ));
    clip.markers.push(Marker { time: 0.5, name: "foot down".into() });
    clip.additive = true;

    for at_rest in [false, true] {
        let file =
            compress(&skeleton, std::slice::from_ref(&clip), &CompressOptions::default(), at_rest).unwrap();
        let library = Library::load(&file.bytes).unwrap();
        let c = &library.clips[0];
        assert!(c.is_additive());
        assert_eq!(c.markers(), &clip.markers[..]);
        assert_eq!(c.name(), "dance");
        let index = |p: &str| c.tracks().position(|t| t.binding.property.name() == p).unwrap();
        let value = |p: &str, t: f64, w: usize| {
            let mut out = vec![0.0f32; w];
            c.value(index(p), t, &mut out);
            out
        };
        for (t, on) in [(0.0, 1.0), (0.30999, 1.0), (0.31, 0.0), (1.69, 0.0), (1.7, 1.0)] {
            assert_eq!(value("visible", t, 1), [on], "at {t}");
        }
        for t in [0.0, 0.4, 0.5, 0.99, 1.0, 1.6] {
            let mut truth = [0.0; 3];
            hop.eval(t, &mut truth);
            let s = c.node(t, 1).scale.map(f64::from);
            assert!((0..3).all(|a| (s[a] - truth[a]).abs() < 1e-6), "{s:?} at {t}");
            weights.eval(t, &mut truth);
            let w = value("weights", t, 3);
            assert!((0..3).all(|a| (f64::from(w[a]) - truth[a]).abs() < 2e-4), "{w:?} at {t}");
            colour.eval(t, &mut truth);
            let w = value("light.color", t, 3);
            assert!((0..3).all(|a| (f64::from(w[a]) - truth[a]).abs() < 2e-4));
            let mut one = [0.0];
            fov.eval(t, &mut one);
            assert!((f64::from(value("camera.yfov", t, 1)[0]) - one[0]).abs() < 2e-4);
        }
        let back = c.to_clip(&library.skeleton);
        assert_eq!(back.markers, clip.markers);
        assert_eq!((back.start(), back.end(), back.wrap), (clip.start(), clip.end(), clip.wrap));
        for t in &clip.tracks {
            assert!(inbetween::metric::find(&back, &t.binding).is_some(), "{:?} is lost", t.binding);
        }
    }
}

#[test]
fn scale_of_exactly_zero_keeps_the_turn_under_it() {
    let skeleton = limb(2, 0.5);
    let mut clip = Clip::new("blink", 0.0, 2.0).unwrap();
    for n in 0..2 {
        let curve = Curve::linear(
            ValueKind::Vector(3),
            vec![0.0, 1.0, 2.0],
            vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
        )
        .unwrap();
        clip.tracks.push(Track::new(
            Binding::node(n, "", Property::Scale),
            TrackData::Curve(curve),
            vec![1.0; 3],
        ));
    }
    let turn = |a: f64| inbetween::math::axis_angle(DVec3::Z, a).to_array();
    let curve =
        Curve::linear(ValueKind::Rotation, vec![0.0, 1.0, 2.0], [turn(0.0), turn(0.7), turn(1.4)].concat())
            .unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, "", Property::Rotation),
        TrackData::Curve(curve),
        vec![0.0, 0.0, 0.0, 1.0],
    ));
    let options = CompressOptions { max_error: 1e-3, ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    let c = &library.clips[0];
    let angle =
        inbetween::math::angle_between(c.node(1.0, 0).to_model().rotation, DQuat::from_array(turn(0.7)));
    assert!(angle < 2e-3, "{angle}");
    assert!(world_error(&clip, &skeleton, &library, 0.03) <= 1e-3);
    for k in 0..=40 {
        let t = c.node(f64::from(k) / 20.0, 1);
        assert!(t.rotation.iter().chain(&t.translation).chain(&t.scale).all(|v| v.is_finite()));
    }
}

#[test]
fn curved_spans_between_few_keys_get_the_frames_they_need() {
    let skeleton = limb(3, 0.5);
    let mut clip = Clip::new("arc", 0.25, 3.25).unwrap();
    let curve = Curve::hermite(
        ValueKind::Vector(3),
        vec![0.25, 1.0, 3.25],
        vec![0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0],
        vec![4.0; 9],
        vec![-4.0; 9],
    )
    .unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, "", Property::Translation),
        TrackData::Curve(curve.clone()),
        vec![0.0; 3],
    ));
    let options = CompressOptions { max_error: 1e-3, ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    let library = Library::open(&file.bytes).unwrap();
    assert!(world_error(&clip, &skeleton, &library, 0.03) <= 1e-3);
    // Not only at keys and midpoints: the frames follow the bend.
    for k in 0..=300 {
        let t = 0.25 + f64::from(k) / 100.0;
        let mut truth = [0.0; 3];
        curve.eval(t, &mut truth);
        let got = library.clips[0].node(t, 0).translation.map(f64::from);
        let d = (DVec3::from_array(got) - DVec3::from_array(truth)).length();
        assert!(d <= 1.3e-3, "{d} at {t}");
    }
}

/// A clip of one track on joint 1 of a limb.
fn one_track(property: Property, rest: Vec<f64>, curve: Curve) -> Clip {
    let mut clip = Clip::new("one", curve.start(), curve.end()).unwrap();
    clip.tracks.push(Track::new(Binding::node(1, "joint 1", property), TrackData::Curve(curve), rest));
    clip
}

#[test]
fn a_full_turn_told_by_three_keys_goes_round_and_not_through() {
    let skeleton = limb(3, 0.3);
    // Half a turn from key to key: the way between hangs on the last bit.
    let values = vec![0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -4e-8, 0.0, -9e-8, 0.0, -1.0];
    let curve = Curve::linear(ValueKind::Rotation, vec![0.0, 1.0, 2.0], values).unwrap();
    let clip = one_track(Property::Rotation, vec![0.0, 0.0, 0.0, 1.0], curve);
    for bound in [1e-5, 1e-4, 1e-3, 1e-2] {
        let options = CompressOptions { max_error: bound, ..Default::default() };
        let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
        let library = Library::open(&file.bytes).unwrap();
        // Everywhere, not only where the bound is stated: a frame too few would show between.
        let mut pose = vec![JointTransform::IDENTITY; 3];
        for i in 0..=200 {
            let time = f64::from(i) / 100.0;
            library.clips[0].pose(time, &mut pose);
            let truth = LocalPose::of_clip(&clip, &skeleton, time, &TrackMask::all()).joints[1].rotation;
            let off = 2.0 * truth.dot(pose[1].to_model().rotation).abs().min(1.0).acos();
            assert!(off * 0.3 <= 2.0 * bound, "{off} rad at {time} s, bound {bound}");
        }
    }
}

#[test]
fn what_pops_up_from_nothing_is_seen() {
    let skeleton = limb(3, 0.3);
    let grown = Curve::linear(
        ValueKind::Vector(3),
        vec![0.0, 0.5, 1.0],
        vec![0.0, 0.0, 0.0, 1.2, 1.2, 1.2, 1.0, 1.0, 1.0],
    );
    let gone = Curve::linear(ValueKind::Vector(3), vec![0.0], vec![0.0, 0.0, 0.0]);
    for curve in [grown.unwrap(), gone.unwrap()] {
        let clip = one_track(Property::Scale, vec![1.0; 3], curve);
        let options = CompressOptions { max_error: 1e-4, ..Default::default() };
        let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
        let error = world_error(&clip, &skeleton, &Library::open(&file.bytes).unwrap(), 0.03);
        assert!(error <= 1e-4, "{error}");
    }
}

#[test]
fn tracks_with_times_of_their_own_do_not_give_each_other_frames() {
    // Sixteen joints with gently curved spans, each with six keys at times no other has.
    let skeleton = limb(16, 0.1);
    let mut random = Random(9);
    let mut clip = Clip::new("uneven", 0.0, 2.0).unwrap();
    for joint in 0..16usize {
        let mut times = vec![0.0, 2.0];
        times.extend((0..4).map(|_| 0.1 + 1.8 * random.next()));
        times.sort_by(f64::total_cmp);
        let values: Vec<f64> =
            times.iter().flat_map(|t| [0.3 * (t * 1.5 + joint as f64).sin(), 0.0, 0.0]).collect();
        let flat = vec![0.0; values.len()];
        let curve = Curve::hermite(ValueKind::Vector(3), times, values, flat.clone(), flat).unwrap();
        clip.tracks.push(Track::new(
            Binding::node(joint, format!("joint {joint}"), Property::Translation),
            TrackData::Curve(curve),
            vec![0.0; 3],
        ));
    }
    let keys = check_times(&clip).len();
    let options = CompressOptions { max_error: 1e-2, ..Default::default() };
    let file = compress(&skeleton, std::slice::from_ref(&clip), &options, false).unwrap();
    assert!(file.reports[0].frames * 2 < keys, "{} frames, judged at {keys} times", file.reports[0].frames);
    let error = world_error(&clip, &skeleton, &Library::open(&file.bytes).unwrap(), 0.03);
    assert!(error <= 1e-2, "{error}");
}

#[test]
fn clips_without_keys_nodes_or_length_are_clips_too() {
    let skeleton = limb(2, 0.5);
    let mut one_key = Clip::new("one", 0.0, 0.0).unwrap();
    let curve = Curve::linear(ValueKind::Vector(3), vec![0.0], vec![0.3, 0.0, 0.1]).unwrap();
    one_key.tracks.push(Track::new(
        Binding::node(1, "", Property::Translation),
        TrackData::Curve(curve),
        vec![0.5, 0.0, 0.0],
    ));
    for clip in [Clip::new("empty", 0.0, 2.0).unwrap(), one_key] {
        for at_rest in [false, true] {
            let file = compress(&skeleton, std::slice::from_ref(&clip), &CompressOptions::default(), at_rest)
                .unwrap();
            let library = Library::load(&file.bytes).unwrap();
            assert_eq!(library.clips[0].duration(), clip.duration());
            assert!(world_error(&clip, &skeleton, &library, 0.03) <= 1e-4);
        }
    }
    let nobody = Skeleton::default();
    let file =
        compress(&nobody, &[Clip::new("nothing", 0.0, 1.0).unwrap()], &CompressOptions::default(), false)
            .unwrap();
    assert_eq!(Library::open(&file.bytes).unwrap().clips[0].node_count(), 0);
}

#[test]
fn a_bound_that_f32_cannot_carry_is_an_error_that_names_the_node() {
    let skeleton = limb(1, 0.0);
    let mut clip = Clip::new("far away", 0.0, 1.0).unwrap();
    let values = vec![1.0e7, 0.0, 0.0, 1.0e7 + 0.37, 0.0, 0.0];
    let curve = Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], values).unwrap();
    clip.tracks.push(Track::new(
        Binding::node(0, "", Property::Translation),
        TrackData::Curve(curve),
        vec![0.0; 3],
    ));
    let error = compress(&skeleton, &[clip], &CompressOptions::default(), false).unwrap_err();
    assert!(matches!(error, CompressError::BoundNotMet { .. }), "{error}");
    assert!(error.to_string().contains("joint 0") && error.to_string().contains("far away"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let skeleton = limb(1, 0.0);
    let clip = Clip::new("c", 0.0, 1.0).unwrap();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = CompressOptions { max_error: bad, ..Default::default() };
        assert!(matches!(
            compress(&skeleton, std::slice::from_ref(&clip), &options, false),
            Err(CompressError::Option { .. })
        ));
    }
}

#[test]
fn a_compressed_clip_plays_through_the_same_door_as_a_clip() {
    use inbetween::playback::runtime::RuntimePose;
    use inbetween::playback::sampler::{ClipSampler, Sampler};
    use std::sync::Arc;
    let skeleton = limb(10, 0.2);
    let mut clip = dance(&skeleton, 60, 30.0, 12);
    let on = Curve::step(ValueKind::Switch, vec![0.0, 0.5], vec![0.0, 1.0]).unwrap();
    let lamp = Binding { target: "lamp".into(), node: None, property: Property::Visible, path: None };
    clip.tracks.push(Track::new(lamp, TrackData::Curve(on), vec![1.0]));
    let file = compress(&skeleton, std::slice::from_ref(&clip), &CompressOptions::default(), false).unwrap();
    let library = Library::load(&file.bytes).unwrap();
    let decoder =
        inbetween_codec::Decoder::new(Arc::new(library.clips[0].clone()), &library.skeleton).unwrap();
    let plain = ClipSampler::new(Arc::new(clip), Arc::new(skeleton)).unwrap();
    let mut both: [Box<dyn Sampler>; 2] = [Box::new(decoder), Box::new(plain)];
    assert_eq!(both[0].range(), both[1].range());
    assert_eq!(both[0].track_count(), both[1].track_count());
    let off = (0..both[0].track_count()).find(|&t| both[0].binding(t).node == Some(4)).unwrap();
    let twin = (0..both[1].track_count()).find(|&t| both[1].binding(t).node == Some(4)).unwrap();
    for time in [0.0, 0.31, 1.0, 1.9, 7.0] {
        let mut poses = [RuntimePose::identity(10), RuntimePose::identity(10)];
        for (k, track) in [off, twin].into_iter().enumerate() {
            let mut mask = TrackMask::all();
            mask.set(track, false);
            both[k].sample_pose(time, &mask, &mut poses[k]);
        }
        for j in 0..10 {
            let (a, b) = (poses[0].get(j), poses[1].get(j));
            assert!((a.translation - b.translation).length() < 2e-3, "{j} at {time}");
            assert!(inbetween::math::angle_between(a.rotation, b.rotation) < 3e-3, "{j} at {time}");
        }
        assert_eq!(poses[0].get(4).rotation, DQuat::IDENTITY);
        let mut seen: [Vec<(usize, Vec<f32>)>; 2] = Default::default();
        for k in 0..2 {
            both[k].sample(time, &TrackMask::all(), &mut seen[k]);
        }
        let lamp =
            |k: usize| seen[k].iter().find(|(t, _)| both[k].binding(*t).node.is_none()).unwrap().1.clone();
        assert_eq!(lamp(0), lamp(1));
    }
}

#[test]
fn files_of_every_released_version_stay_readable() {
    // Written by examples/released_files.rs of their releases.
    let skeleton = limb(6, 0.25);
    let clip = dance(&skeleton, 75, 30.0, 2026);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ibc");
    for name in ["v1-runtime.ibc", "v1-at-rest.ibc", "v2-runtime.ibc", "v2-at-rest.ibc"] {
        let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
        let library = Library::load(&bytes).unwrap();
        assert!(world_error(&clip, &skeleton, &library, 0.03) <= 1e-3, "{name}");
        assert_eq!(library.skeleton.find("joint 5"), [5]);
        assert_eq!(library.clips[0].name(), "dance");
    }
}
