//! The glTF writer on small documents: what stays, what goes, and how the model's curves that
//! glTF has no words for are said in its words.

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::{angle_between, axis_angle};
use inbetween::{
    Binding, Clip, Curve, CurveParts, Extrapolation, Joint, Pivot, Property, Skeleton, SpanKind, Spans,
    Tangents, Track, TrackData, Transform, ValueKind, Wrap,
};
use inbetween_formats::gltf::{WriteOptions, Written, write};
use inbetween_formats::{Convention, Import, Input, ReadOptions, Severity, Source, import};
use serde_json::{Value, json};

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn read(document: &Value, data: &[u8]) -> Import {
    let text = document.to_string();
    let side = |_: &str| Ok(data.to_vec());
    let input = Input { bytes: text.as_bytes(), name: "test.gltf", side_file: &side };
    import(&input, &ReadOptions::default()).unwrap()
}

fn reread(written: &Written) -> Import {
    import(&Input::alone(&written.bytes, "written.glb"), &ReadOptions::default()).unwrap()
}

/// JSON and binary chunk of a GLB.
fn chunks(written: &Written) -> (Value, Vec<u8>) {
    let b = &written.bytes;
    let word = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(word(8), b.len());
    let json = serde_json::from_slice(&b[20..20 + word(12)]).unwrap();
    let at = 20 + word(12);
    let bin = if at < b.len() { b[at + 8..at + 8 + word(at)].to_vec() } else { Vec::new() };
    (json, bin)
}

fn written(import: &Import) -> Written {
    write(import, &WriteOptions::default()).unwrap()
}

/// An import of three nodes without a source, with one clip of these tracks.
fn fresh(start: f64, end: f64, tracks: Vec<Track>) -> Import {
    let mut clip = Clip::new("clip", start, end).unwrap();
    clip.tracks = tracks;
    let at = |x: f64| Transform { translation: DVec3::new(x, 0.0, 0.0), ..Transform::IDENTITY };
    let joints = vec![
        Joint::new("a", None, at(0.0)),
        Joint::new("b", Some(0), at(1.0)),
        Joint::new("c", Some(1), at(1.0)),
    ];
    Import {
        format: "fbx",
        skeleton: Skeleton::new(joints).unwrap(),
        clips: vec![clip],
        notes: Vec::new(),
        convention: Convention::HOUSE,
        in_house_units: true,
        source: Source::None,
        decimals: None,
    }
}

fn track(property: Property, curve: Curve) -> Track {
    let rest = match property {
        Property::Rotation => vec![0.0, 0.0, 0.0, 1.0],
        _ => vec![0.0; curve.width()],
    };
    Track::new(Binding::node(1, "b", property), TrackData::Curve(curve), rest)
}

fn only_curve(import: &Import) -> &Curve {
    match &import.clips[0].tracks[0].data {
        TrackData::Curve(curve) => curve,
        other => panic!("not a curve: {other:?}"),
    }
}

fn said(written: &Written, severity: Severity, words: &str) {
    let found = written.notes.iter().any(|n| n.severity == severity && n.text.contains(words));
    assert!(found, "no note speaks of {words:?}: {:?}", written.notes);
}

/// Two channels over one interleaved and one plain view, a mesh, an image and an extension.
fn document(extension: &str) -> (Value, Vec<u8>) {
    let times: Vec<f32> = (0..64).map(|i| i as f32 / 30.0).collect();
    let values: Vec<f32> = (0..64 * 3).map(|i| (i * i % 97) as f32).collect();
    let mesh = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let image = b"not really a picture".to_vec();
    let data = [floats(&times), mesh, floats(&values), image].concat();
    let mut at = 0;
    let mut view = |length: usize| {
        at += length;
        json!({"buffer": 0, "byteOffset": at - length, "byteLength": length})
    };
    let document = json!({
        "asset": {"version": "2.0", "generator": "a test", "extras": {"kept": [1, null, "x"]}},
        "extensionsUsed": [extension],
        "extensions": {extension: {"anything": {"goes": 1.5}}},
        "nodes": [{"name": "n", "mesh": 0, "extras": {"kept": true}}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 1}, "material": 0}]}],
        "materials": [{"name": "m", "extras": 5}],
        "images": [{"bufferView": 3, "mimeType": "image/png"}],
        "buffers": [{"uri": "data.bin", "byteLength": data.len()}],
        "bufferViews": [view(256), view(36), view(768), view(20)],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 64, "type": "SCALAR", "min": [0.0], "max": [2.1]},
            {"bufferView": 1, "componentType": 5126, "count": 3, "type": "VEC3", "min": [1.0, 2.0, 3.0], "max": [7.0, 8.0, 9.0]},
            {"bufferView": 2, "componentType": 5126, "count": 64, "type": "VEC3"},
        ],
        "animations": [{
            "name": "clip", "extras": {"kept": 1},
            "samplers": [{"input": 0, "output": 2}],
            "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}, "extras": 1},
                {"sampler": 0, "target": {"node": 0, "path": "something_new"}}],
        }],
    });
    (document, data)
}

/// Keeps every eighth key of the first track.
fn thin_out(import: &mut Import) {
    let curve = only_curve(import).clone();
    let kept: Vec<usize> = (0..curve.len()).step_by(8).collect();
    let times: Vec<f64> = kept.iter().map(|&i| curve.times()[i]).collect();
    let values = kept.iter().flat_map(|&i| curve.value(i).to_vec()).collect();
    let thinned = Curve::linear(curve.kind(), times, values).unwrap();
    import.clips[0].tracks[0].data = TrackData::Curve(thinned);
}

#[test]
fn only_the_animations_change_and_the_file_shrinks_with_its_keys() {
    let (d, data) = document("KHR_materials_unlit");
    let mut source = read(&d, &data);
    let whole = written(&source).bytes.len();
    thin_out(&mut source);
    // The clip still ends where it ended, so one key is added there.
    let result = written(&source);
    assert!(whole - result.bytes.len() > 56 * 16 - 32 - 100, "{whole} became {}", result.bytes.len());
    let (json, bin) = chunks(&result);
    for key in ["asset", "extensions", "materials", "nodes"] {
        assert_eq!(json[key], d[key], "{key}");
    }
    assert_eq!(json["animations"][0]["extras"], d["animations"][0]["extras"]);
    let bytes = |view: &Value| {
        let view = &json["bufferViews"][view.as_u64().unwrap() as usize];
        let start = view["byteOffset"].as_u64().unwrap_or(0) as usize;
        bin[start..start + view["byteLength"].as_u64().unwrap() as usize].to_vec()
    };
    assert_eq!(bytes(&json["images"][0]["bufferView"]), data[256 + 36 + 768..]);
    let position = json["meshes"][0]["primitives"][0]["attributes"]["POSITION"].as_u64().unwrap() as usize;
    assert_eq!(json["accessors"][position]["max"], d["accessors"][1]["max"]);
    assert_eq!(bytes(&json["accessors"][position]["bufferView"]), data[256..256 + 36]);
    let back = reread(&result);
    assert_eq!(back.clips[0].end(), source.clips[0].end());
    assert_eq!(only_curve(&back).len(), 9);
}

#[test]
fn with_an_extension_nobody_knows_every_number_it_might_name_stays() {
    let (d, data) = document("EXAMPLE_points_at_buffer_views");
    let mut source = read(&d, &data);
    thin_out(&mut source);
    let (json, bin) = chunks(&written(&source));
    assert_eq!(json["images"], d["images"]);
    assert_eq!(json["meshes"], d["meshes"]);
    let image = &json["bufferViews"][3];
    let start = image["byteOffset"].as_u64().unwrap() as usize;
    assert_eq!(&bin[start..start + 20], b"not really a picture");
}

#[test]
fn a_channel_this_program_does_not_understand_stays() {
    let (d, data) = document("KHR_materials_unlit");
    let source = read(&d, &data);
    let (json, _) = chunks(&written(&source));
    let channels = json["animations"][0]["channels"].as_array().unwrap();
    assert!(channels.iter().any(|c| c["target"]["path"] == "something_new"), "{channels:?}");
}

#[test]
fn normalised_integers_stay_integers_where_they_hold_the_values() {
    let half = |v: f64| (v * 32767.0).round() as i16;
    let q = |angle: f64| axis_angle(DVec3::Y, angle).to_array().map(half);
    let shorts: Vec<u8> = (0..4).flat_map(|i| q(0.4 * f64::from(i))).flat_map(i16::to_le_bytes).collect();
    let data = [floats(&[0.0, 1.0, 2.0, 3.0]), shorts].concat();
    let d = json!({
        "asset": {"version": "2.0"}, "nodes": [{}],
        "buffers": [{"uri": "data.bin", "byteLength": 48}],
        "bufferViews": [{"buffer": 0, "byteLength": 16}, {"buffer": 0, "byteOffset": 16, "byteLength": 32}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "SCALAR"},
            {"bufferView": 1, "componentType": 5122, "normalized": true, "count": 4, "type": "VEC4"}],
        "animations": [{"samplers": [{"input": 0, "output": 1}],
            "channels": [{"sampler": 0, "target": {"node": 0, "path": "rotation"}}]}],
    });
    let mut source = read(&d, &data);
    let component = |source: &Import| {
        let (json, _) = chunks(&written(source));
        let output = json["animations"][0]["samplers"][0]["output"].as_u64().unwrap() as usize;
        json["accessors"][output]["componentType"].as_u64().unwrap()
    };
    let curve = only_curve(&source).clone();
    let set = |source: &mut Import, values: Vec<f64>| {
        let times: Vec<f64> = (0..values.len() / 4).map(|i| i as f64).collect();
        let curve = Curve::linear(ValueKind::Rotation, times, values).unwrap();
        source.clips[0].tracks[0].data = TrackData::Curve(curve);
    };
    set(&mut source, [curve.value(0), curve.value(3)].concat());
    assert_eq!(component(&source), 5122);
    // Between the integers' own values some lie further from them than the tolerance.
    let between = (0..40).flat_map(|i| axis_angle(DVec3::Y, 0.0317 * f64::from(i)).to_array()).collect();
    set(&mut source, between);
    assert_eq!(component(&source), 5126);
}

#[test]
fn equal_arrays_are_stored_once() {
    let times: Vec<f64> = (0..100).map(f64::from).collect();
    let values: Vec<f64> = (0..300).map(f64::from).collect();
    let curve = Curve::linear(ValueKind::Vector(3), times, values).unwrap();
    let on = |node: usize| {
        Track::new(
            Binding::node(node, "", Property::Translation),
            TrackData::Curve(curve.clone()),
            vec![0.0; 3],
        )
    };
    let (json, bin) = chunks(&written(&fresh(0.0, 99.0, vec![on(0), on(1), on(2)])));
    assert_eq!(json["accessors"].as_array().unwrap().len(), 2);
    assert_eq!(bin.len(), 400 + 1200);
    assert_eq!(json["animations"][0]["samplers"].as_array().unwrap().len(), 1);
}

#[test]
fn steps_among_straight_spans_jump_within_a_hair() {
    let parts = CurveParts {
        kind: ValueKind::Vector(3),
        times: vec![0.0, 1.0, 2.0, 3.0].into(),
        values: vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 5.0, 0.0, 0.0, 6.0, 0.0, 0.0],
        spans: Spans::PerKey(vec![SpanKind::Linear, SpanKind::Step, SpanKind::Linear, SpanKind::Linear]),
        tangents: None,
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    };
    let curve = Curve::new(parts).unwrap();
    let result = written(&fresh(0.0, 3.0, vec![track(Property::Translation, curve.clone())]));
    let back = reread(&result);
    assert_eq!(only_curve(&back).len(), 5);
    for time in [0.0, 0.5, 1.0, 1.5, 1.999_999, 2.0, 2.5, 3.0] {
        let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
        curve.eval(time, &mut a);
        only_curve(&back).eval(time, &mut b);
        assert!((a[0] - b[0]).abs() < 1e-6, "{a:?} became {b:?} at {time}");
    }
    said(&result, Severity::Info, "spans of one kind");
}

#[test]
fn constant_next_becomes_steps_of_the_next_values() {
    let parts = CurveParts {
        kind: ValueKind::Vector(3),
        times: vec![0.0, 1.0, 2.0].into(),
        values: vec![1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0],
        spans: Spans::Uniform(SpanKind::StepNext),
        tangents: None,
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    };
    let curve = Curve::new(parts).unwrap();
    let back = reread(&written(&fresh(0.0, 2.0, vec![track(Property::Translation, curve.clone())])));
    assert_eq!(only_curve(&back).span(0), SpanKind::Step);
    for time in [0.001, 0.5, 1.0, 1.5, 2.0] {
        let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
        curve.eval(time, &mut a);
        only_curve(&back).eval(time, &mut b);
        assert_eq!(a, b, "at {time}");
    }
}

#[test]
fn handles_of_a_third_are_tangents_and_others_are_fitted() {
    let bezier = |dt: f64| {
        let tangents = Tangents {
            leave: vec![0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
            arrive: vec![0.0, 0.0, 0.0, -0.25, 0.0, 0.0],
            leave_dt: vec![dt; 6],
            arrive_dt: vec![dt; 6],
        };
        Curve::new(CurveParts {
            kind: ValueKind::Vector(3),
            times: vec![0.0, 1.5].into(),
            values: vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            spans: Spans::Uniform(SpanKind::Bezier),
            tangents: Some(Box::new(tangents)),
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        })
        .unwrap()
    };
    for (dt, keys) in [(0.5, 2..=2), (0.1, 3..=40)] {
        let curve = bezier(dt);
        let back = reread(&written(&fresh(0.0, 1.5, vec![track(Property::Translation, curve.clone())])));
        assert!(
            keys.contains(&only_curve(&back).len()),
            "{} keys for handles of {dt}",
            only_curve(&back).len()
        );
        for i in 0..=100 {
            let time = 0.015 * f64::from(i);
            let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
            curve.eval(time, &mut a);
            only_curve(&back).eval(time, &mut b);
            assert!((a[0] - b[0]).abs() < 1.5e-5, "{a:?} became {b:?} at {time}");
        }
    }
}

#[test]
fn half_a_turn_keeps_its_way_round() {
    let ends = [DQuat::IDENTITY, axis_angle(DVec3::X, std::f64::consts::PI)];
    let values = ends.iter().flat_map(|q| q.to_array()).collect();
    let curve = Curve::linear(ValueKind::Rotation, vec![0.0, 1.0], values).unwrap();
    let back = reread(&written(&fresh(0.0, 1.0, vec![track(Property::Rotation, curve.clone())])));
    for time in [0.25, 0.5, 0.75] {
        assert!(angle_between(only_curve(&back).rotation_at(time), curve.rotation_at(time)) < 1e-6);
    }
    assert_eq!(only_curve(&back).len(), 3);
}

#[test]
fn a_clip_keeps_its_length_when_its_keys_end_before_or_after_it() {
    let still = Curve::linear(ValueKind::Vector(3), vec![0.0], vec![1.0, 2.0, 3.0]).unwrap();
    let back = reread(&written(&fresh(0.0, 2.0, vec![track(Property::Translation, still)])));
    assert_eq!((back.clips[0].end(), only_curve(&back).len()), (2.0, 2));

    let values = vec![0.0, 0.0, 0.0, 4.0, 0.0, 0.0];
    let long =
        Curve::hermite(ValueKind::Vector(3), vec![0.0, 4.0], values, vec![1.5; 6], vec![-0.5; 6]).unwrap();
    let back = reread(&written(&fresh(0.0, 1.0, vec![track(Property::Translation, long.clone())])));
    assert_eq!(back.clips[0].end(), 1.0);
    for time in [0.0, 0.3, 0.7, 1.0] {
        let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
        long.eval(time, &mut a);
        only_curve(&back).eval(time, &mut b);
        assert!((a[0] - b[0]).abs() < 1e-6, "{a:?} became {b:?} at {time}");
    }
}

#[test]
fn times_before_zero_move_to_zero_and_late_starts_are_said() {
    let curve = Curve::linear(ValueKind::Vector(3), vec![-0.5, 1.0], vec![0.0; 6]).unwrap();
    let result = written(&fresh(-0.5, 1.0, vec![track(Property::Translation, curve)]));
    assert_eq!(only_curve(&reread(&result)).times()[..], [0.0, 1.5]);
    said(&result, Severity::Repaired, "-0.5 s");
    let curve = Curve::linear(ValueKind::Vector(3), vec![5.0, 6.0], vec![0.0; 6]).unwrap();
    let result = written(&fresh(5.0, 6.0, vec![track(Property::Translation, curve)]));
    said(&result, Severity::Info, "begins at 5 s");
}

#[test]
fn what_gltf_has_no_place_for_is_said() {
    let switch = Curve::step(ValueKind::Scalar, vec![0.0], vec![1.0]).unwrap();
    let mut import = fresh(0.0, 0.0, vec![track(Property::Other("wind.strength".to_owned()), switch)]);
    let clip = &mut import.clips[0];
    clip.markers.push(inbetween::Marker { time: 0.0, name: "step".to_owned() });
    clip.additive = true;
    clip.wrap = Wrap::Loop;
    let mut muted = clip.tracks[0].clone();
    (muted.binding.property, muted.enabled) = (Property::Scale, false);
    clip.tracks.push(muted);
    let result = written(&import);
    for words in ["markers", "additive", "repeats", "no such property", "muted"] {
        said(&result, Severity::Lost, words);
    }
    // A clip needs a channel; the nodes at rest give one.
    said(&result, Severity::Info, "rest pose was keyed");
    assert_eq!(reread(&result).clips.len(), 1);
}

#[test]
fn visibility_goes_through_its_extension_and_back() {
    let switch = Curve::step(ValueKind::Switch, vec![0.0, 0.5], vec![1.0, 0.0]).unwrap();
    let mut shown = track(Property::Visible, switch);
    shown.rest = vec![1.0];
    let result = written(&fresh(0.0, 0.5, vec![shown.clone()]));
    let back = reread(&result);
    let track = &back.clips[0].tracks[0];
    assert_eq!((&track.binding.property, &track.data), (&Property::Visible, &shown.data));
    let (json, _) = chunks(&result);
    for name in ["KHR_node_visibility", "KHR_animation_pointer"] {
        assert!(json["extensionsUsed"].as_array().unwrap().iter().any(|u| u == name));
    }
}

#[test]
fn a_pivot_becomes_a_move_and_a_turn() {
    let q: Vec<f64> = [0.0, 1.0].iter().flat_map(|&a| axis_angle(DVec3::Z, a).to_array()).collect();
    let curve = Curve::linear(ValueKind::Rotation, vec![0.0, 1.0], q).unwrap();
    let mut import = fresh(0.0, 1.0, vec![track(Property::Rotation, curve)]);
    let mut joints = import.skeleton.joints().to_vec();
    joints[1].pivot = Some(Box::new(Pivot {
        rotation_offset: DVec3::ZERO,
        rotation_pivot: DVec3::new(0.0, 2.0, 0.0),
        scaling_offset: DVec3::ZERO,
        scaling_pivot: DVec3::ZERO,
    }));
    import.skeleton = Skeleton::new(joints).unwrap();
    let back = reread(&written(&import));
    let all = inbetween::TrackMask::all();
    for i in 0..=20 {
        let time = 0.05 * f64::from(i);
        let pose = |import: &Import| {
            inbetween::LocalPose::of_clip(&import.clips[0], &import.skeleton, time, &all).joints[1]
        };
        let (a, b) = (pose(&import), pose(&back));
        assert!((a.translation - b.translation).length() < 1.5e-5, "{a:?} became {b:?} at {time}");
        assert!(angle_between(a.rotation, b.rotation) < 1.5e-5);
    }
}

#[test]
fn times_that_f32_cannot_tell_apart_still_increase() {
    let times: Vec<f64> = (0..4).map(|i| 1000.0 + 1e-6 * f64::from(i)).collect();
    let curve = Curve::linear(ValueKind::Vector(3), times, vec![0.0; 12]).unwrap();
    let back = reread(&written(&fresh(0.0, 1000.1, vec![track(Property::Translation, curve)])));
    assert!(only_curve(&back).times().is_sorted_by(|a, b| a < b));
    assert!(back.notes.is_empty(), "{:?}", back.notes);
}

#[test]
fn a_number_beyond_f32_is_refused_not_written_as_infinity() {
    let curve = Curve::linear(ValueKind::Vector(3), vec![0.0], vec![1e60, 0.0, 0.0]).unwrap();
    let result = write(&fresh(0.0, 0.0, vec![track(Property::Translation, curve)]), &WriteOptions::default());
    let text = result.unwrap_err().to_string();
    assert!(text.contains("\"b\" translation") && text.contains("f32"), "{text}");
}

#[test]
fn a_file_read_in_another_unit_is_written_in_its_own() {
    let (d, data) = document("KHR_materials_unlit");
    let text = d.to_string();
    let side = |_: &str| Ok(data.clone());
    let input = Input { bytes: text.as_bytes(), name: "test.gltf", side_file: &side };
    let centimetres = import(&input, &ReadOptions { unit: Some(0.01), ..ReadOptions::default() }).unwrap();
    let metres = read(&d, &data);
    assert!((only_curve(&centimetres).value(1)[0] - 0.01 * only_curve(&metres).value(1)[0]).abs() < 1e-12);
    assert_eq!(written(&centimetres).bytes, written(&metres).bytes);
}
