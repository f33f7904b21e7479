//! What the glTF reader makes of each thing a file may say, and of files that break the rules.

use inbetween::{Property, SpanKind, TrackData, ValueKind};
use inbetween_formats::{FormatError, Import, Input, ReadOptions, Severity, import};
use serde_json::{Value, json};

/// Reads a document whose one buffer is beside it.
fn read(document: &Value, data: &[u8]) -> Result<Import, FormatError> {
    let text = document.to_string();
    let side = |_: &str| Ok(data.to_vec());
    import(&Input { bytes: text.as_bytes(), name: "test.gltf", side_file: &side }, &ReadOptions::default())
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A document with one node, one channel and two float accessors over one buffer.
fn one_channel(path: &str, kind: &str, times: &[f32], values: &[f32]) -> (Value, Vec<u8>) {
    let width = match kind {
        "SCALAR" => 1,
        "VEC3" => 3,
        _ => 4,
    };
    let data = [floats(times), floats(values)].concat();
    let document = json!({
        "asset": {"version": "2.0"},
        "nodes": [{"name": "n", "rotation": [0.0, 0.6, 0.0, 0.8]}],
        "buffers": [{"uri": "data.bin", "byteLength": data.len()}],
        "bufferViews": [
            {"buffer": 0, "byteLength": times.len() * 4},
            {"buffer": 0, "byteOffset": times.len() * 4, "byteLength": values.len() * 4},
        ],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": times.len(), "type": "SCALAR"},
            {"bufferView": 1, "componentType": 5126, "count": values.len() / width, "type": kind},
        ],
        "animations": [{
            "name": "clip",
            "samplers": [{"input": 0, "output": 1}],
            "channels": [{"sampler": 0, "target": {"node": 0, "path": path}}],
        }],
    });
    (document, data)
}

fn curve(import: &Import) -> &inbetween::Curve {
    match &import.clips[0].tracks[0].data {
        TrackData::Curve(curve) => curve,
        other => panic!("not a curve: {other:?}"),
    }
}

/// The error's text, which must hold every one of the words.
fn refused(result: Result<Import, FormatError>, words: &[&str]) {
    let text = match result {
        Ok(_) => panic!("it was read, but should be refused for {words:?}"),
        Err(error) => error.to_string(),
    };
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

fn repaired(import: &Import, words: &str) {
    let said = import.notes.iter().any(|n| n.severity == Severity::Repaired && n.text.contains(words));
    assert!(said, "no repair speaks of {words:?}: {:?}", import.notes);
}

#[test]
fn each_interpolation_becomes_its_kind_of_span() {
    for (name, kind) in [("LINEAR", SpanKind::Linear), ("STEP", SpanKind::Step)] {
        let (mut d, data) = one_channel("translation", "VEC3", &[0.0, 1.0], &[0.0, 0.0, 0.0, 2.0, 4.0, 6.0]);
        d["animations"][0]["samplers"][0]["interpolation"] = name.into();
        assert_eq!(curve(&read(&d, &data).unwrap()).span(0), kind);
    }
    let rows: [f32; 18] = [
        0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 3.0, 0.0, 0.0, // arriving, value, leaving of the first key
        5.0, 0.0, 0.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0,
    ];
    let (mut d, data) = one_channel("scale", "VEC3", &[0.0, 2.0], &rows);
    d["animations"][0]["samplers"][0]["interpolation"] = "CUBICSPLINE".into();
    let import = read(&d, &data).unwrap();
    // The specification's formula at t = 0.5, gap 2: p0 (2t³−3t²+1) + 2 m0 (t³−2t²+t) + …
    let expected = 1.0 * 0.5 + 2.0 * 3.0 * 0.125 + 2.0 * 0.5 + 2.0 * 5.0 * -0.125;
    let mut out = [0.0; 3];
    curve(&import).eval(1.0, &mut out);
    assert!((out[0] - expected).abs() < 1e-12, "{} is not {expected}", out[0]);
}

#[test]
fn an_interpolation_nobody_knows_is_refused_not_guessed() {
    let (mut d, data) = one_channel("translation", "VEC3", &[0.0], &[0.0; 3]);
    d["animations"][0]["samplers"][0]["interpolation"] = "CATMULLROMSPLINE".into();
    refused(read(&d, &data), &["animation 0", "channel 0", "CATMULLROMSPLINE", "LINEAR"]);
}

#[test]
fn normalised_integers_of_every_kind_stand_for_their_fractions() {
    // The four kinds with the largest, the smallest and a middle value.
    let cases: [(u64, Vec<u8>, [f64; 3]); 4] = [
        (5120, vec![127, 0x80, 64], [1.0, -1.0, 64.0 / 127.0]),
        (5121, vec![255, 0, 51], [1.0, 0.0, 0.2]),
        (
            5122,
            [32767i16, -32768, 16384].iter().flat_map(|v| v.to_le_bytes()).collect(),
            [1.0, -1.0, 16384.0 / 32767.0],
        ),
        (5123, [65535u16, 0, 13107].iter().flat_map(|v| v.to_le_bytes()).collect(), [1.0, 0.0, 0.2]),
    ];
    for (code, bytes, expected) in cases {
        let (mut d, _) = one_channel("translation", "VEC3", &[0.0], &[0.0; 3]);
        d["accessors"][1]["componentType"] = code.into();
        d["accessors"][1]["normalized"] = true.into();
        d["bufferViews"][1]["byteLength"] = bytes.len().into();
        let import = read(&d, &[floats(&[0.0]), bytes].concat()).unwrap();
        assert_eq!(curve(&import).values(), expected, "component type {code}");
    }
}

#[test]
fn a_stride_skips_what_lies_between_elements() {
    let (mut d, _) = one_channel("translation", "VEC3", &[0.0, 1.0], &[0.0; 6]);
    d["bufferViews"][1]["byteStride"] = 16.into();
    d["bufferViews"][1]["byteLength"] = 28.into();
    let data = floats(&[0.0, 1.0, 1.0, 2.0, 3.0, 99.0, 4.0, 5.0, 6.0]);
    let import = read(&d, &data).unwrap();
    assert_eq!(curve(&import).values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    d["bufferViews"][1]["byteStride"] = 8.into();
    refused(read(&d, &data), &["buffer view 1", "byteStride", "12", "8"]);
}

#[test]
fn sparse_values_lie_over_a_view_or_over_zeros() {
    let data = [floats(&[0.0, 1.0, 2.0]), vec![1, 0, 2, 0], floats(&[7.0, 8.0, 9.0, 4.0, 5.0, 6.0])].concat();
    let (mut d, _) = one_channel("translation", "VEC3", &[0.0; 3], &[0.0; 9]);
    d["buffers"][0]["byteLength"] = data.len().into();
    d["bufferViews"] = json!([
        {"buffer": 0, "byteLength": 12},
        {"buffer": 0, "byteOffset": 12, "byteLength": 4},
        {"buffer": 0, "byteOffset": 16, "byteLength": 24}]);
    d["accessors"][1] = json!({"componentType": 5126, "count": 3, "type": "VEC3", "sparse": {"count": 2,
        "indices": {"bufferView": 1, "componentType": 5123}, "values": {"bufferView": 2}}});
    let import = read(&d, &data).unwrap();
    assert_eq!(curve(&import).values(), [0.0, 0.0, 0.0, 7.0, 8.0, 9.0, 4.0, 5.0, 6.0]);
    let wrong = [&data[..12], &[2, 0, 1, 0], &data[16..]].concat();
    refused(read(&d, &wrong), &["accessor 1 sparse", "increasing indices"]);
}

#[test]
fn weights_are_as_wide_as_the_mesh_has_targets() {
    let (mut d, data) = one_channel("weights", "SCALAR", &[0.0, 1.0], &[0.0, 1.0, 0.5, 0.25, 1.0, 0.0]);
    d["nodes"][0]["mesh"] = 0.into();
    d["meshes"] = json!([{"weights": [0.1, 0.2, 0.3],
        "primitives": [{"attributes": {}, "targets": [{}, {}, {}]}]}]);
    let import = read(&d, &data).unwrap();
    assert_eq!(curve(&import).kind(), ValueKind::Weights(3));
    assert_eq!(import.clips[0].tracks[0].rest, [0.1, 0.2, 0.3]);
    d["meshes"][0]["primitives"][0]["targets"] = json!([{}, {}]);
    refused(read(&d, &data), &["weights", "4", "6", "accessor 1"]);
}

fn pointed(pointer: &str, kind: &str, times: &[f32], values: &[f32]) -> (Value, Vec<u8>) {
    let (mut d, data) = one_channel("pointer", kind, times, values);
    d["nodes"] = json!([{"name": "eye", "camera": 0},
        {"name": "lamp", "extensions": {"KHR_lights_punctual": {"light": 0}}}]);
    d["cameras"] = json!([{"type": "perspective", "perspective": {"yfov": 0.7, "znear": 0.1}}]);
    d["extensions"] =
        json!({"KHR_lights_punctual": {"lights": [{"type": "point", "color": [1.0, 0.5, 0.0]}]}});
    d["materials"] = json!([{"name": "skin"}]);
    d["animations"][0]["channels"][0]["target"] =
        json!({"path": "pointer", "extensions": {"KHR_animation_pointer": {"pointer": pointer}}});
    (d, data)
}

#[test]
fn a_pointer_names_the_property_and_the_node_that_carries_it() {
    let yfov = "/cameras/0/perspective/yfov";
    let (d, data) = pointed(yfov, "SCALAR", &[0.0, 1.0], &[0.7, 0.4]);
    let import = read(&d, &data).unwrap();
    let track = &import.clips[0].tracks[0];
    assert_eq!(track.binding.property, Property::Other("camera.yfov".to_owned()));
    assert_eq!((track.binding.target.as_str(), track.binding.node), ("eye", Some(0)));
    assert_eq!(track.binding.path.as_deref(), Some(yfov));
    assert_eq!(track.rest, [0.7]);

    let color = "/extensions/KHR_lights_punctual/lights/0/color";
    let (d, data) = pointed(color, "VEC3", &[0.0], &[1.0, 0.0, 0.0]);
    let import = read(&d, &data).unwrap();
    let track = &import.clips[0].tracks[0];
    assert_eq!(track.binding.property.name(), "light.color");
    assert_eq!(track.data.kind(), ValueKind::Color(3));
    assert_eq!(track.rest, [1.0, 0.5, 0.0]);

    let base = "/materials/0/pbrMetallicRoughness/baseColorFactor";
    let (d, data) = pointed(base, "VEC4", &[0.0], &[1.0; 4]);
    let import = read(&d, &data).unwrap();
    let track = &import.clips[0].tracks[0];
    assert_eq!(track.binding.property.name(), base);
    assert_eq!((track.binding.target.as_str(), track.data.kind()), ("skin", ValueKind::Color(4)));

    let (d, data) = pointed("/nodes/1/translation", "VEC3", &[0.0], &[1.0; 3]);
    let import = read(&d, &data).unwrap();
    assert_eq!(import.clips[0].tracks[0].binding.property, Property::Translation);
    assert_eq!(import.clips[0].tracks[0].binding.node, Some(1));
}

#[test]
fn a_pointer_to_nothing_is_passed_over_with_a_note() {
    let (d, data) = pointed("/cameras/7/perspective/yfov", "SCALAR", &[0.0], &[0.7]);
    let import = read(&d, &data).unwrap();
    assert!(import.clips[0].tracks.is_empty());
    assert!(import.notes.iter().any(|n| n.severity == Severity::Lost && n.text.contains("/cameras/7")));
}

#[test]
fn visibility_is_a_switch() {
    let pointer = "/nodes/1/extensions/KHR_node_visibility/visible";
    let (mut d, _) = pointed(pointer, "SCALAR", &[0.0, 1.0], &[0.0; 2]);
    d["accessors"][1]["componentType"] = 5121.into();
    d["bufferViews"][1]["byteLength"] = 2.into();
    d["animations"][0]["samplers"][0]["interpolation"] = "STEP".into();
    let import = read(&d, &[floats(&[0.0, 1.0]), vec![1, 0]].concat()).unwrap();
    let track = &import.clips[0].tracks[0];
    assert_eq!((&track.binding.property, track.data.kind()), (&Property::Visible, ValueKind::Switch));
    assert_eq!((track.value_at(0.5), track.value_at(1.5)), (vec![1.0], vec![0.0]));
}

#[test]
fn keys_out_of_order_are_sorted_and_the_note_says_so() {
    let (d, data) =
        one_channel("translation", "VEC3", &[0.0, 2.0, 1.0], &[0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 5.0, 0.0, 0.0]);
    let import = read(&d, &data).unwrap();
    assert_eq!(curve(&import).times()[..], [0.0, 1.0, 2.0]);
    assert_eq!(curve(&import).value(1), [5.0, 0.0, 0.0]);
    repaired(&import, "increasing");
}

#[test]
fn two_keys_at_one_time_are_a_jump() {
    let (d, data) = one_channel(
        "translation",
        "VEC3",
        &[0.0, 1.0, 1.0, 2.0],
        &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 9.0, 0.0, 0.0, 9.0, 0.0, 0.0],
    );
    let import = read(&d, &data).unwrap();
    let mut out = [0.0; 3];
    curve(&import).eval(0.999, &mut out);
    assert!((out[0] - 0.999).abs() < 1e-6, "{out:?}");
    curve(&import).eval(1.0, &mut out);
    assert_eq!(out[0], 9.0);
    repaired(&import, "duplicate");
}

#[test]
fn quaternions_off_unit_length_are_normalised_and_zeros_take_their_neighbours() {
    let (d, data) = one_channel(
        "rotation",
        "VEC4",
        &[0.0, 1.0, 2.0],
        &[0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0],
    );
    let import = read(&d, &data).unwrap();
    assert_eq!(curve(&import).values(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    repaired(&import, "unit length");
    repaired(&import, "zero quaternions");
    // Where there is no neighbour the node's own rotation stands.
    let (d, data) = one_channel("rotation", "VEC4", &[0.0], &[0.0; 4]);
    assert_eq!(curve(&read(&d, &data).unwrap()).values(), [0.0, 0.6, 0.0, 0.8]);
}

#[test]
fn numbers_that_are_none_are_refused_by_key() {
    let (d, data) = one_channel("translation", "VEC3", &[0.0, 1.0], &[0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0]);
    refused(read(&d, &data), &["node 0 \"n\" translation", "key 1", "NaN", "finite"]);
    let (d, data) = one_channel("rotation", "VEC4", &[0.0], &[f32::INFINITY, 0.0, 0.0, 0.0]);
    refused(read(&d, &data), &["key 0", "finite"]);
    let (d, data) = one_channel("translation", "VEC3", &[0.0, f32::NAN], &[0.0; 6]);
    refused(read(&d, &data), &["accessor 0", "key 1", "finite key times"]);
}

#[test]
fn counts_the_bytes_do_not_bear_out_are_refused_at_once() {
    let (mut d, data) = one_channel("translation", "VEC3", &[0.0, 1.0], &[0.0; 6]);
    d["accessors"][0]["count"] = 100_000_000u64.into();
    d["accessors"][1]["count"] = 100_000_000u64.into();
    refused(read(&d, &data), &["accessor 0", "400000000 bytes", "8 bytes"]);
    let (mut d, data) = one_channel("translation", "VEC3", &[0.0, 1.0], &[0.0; 6]);
    d["accessors"][0] = json!({"componentType": 5126, "count": 100_000_000u64, "type": "SCALAR"});
    d["accessors"][1]["count"] = 100_000_000u64.into();
    refused(read(&d, &data), &["accessor 0", "without any data", "count"]);
    d["accessors"][0]["count"] = 4_000_000_000u64.into();
    d["accessors"][1]["count"] = 4_000_000_000u64.into();
    refused(read(&d, &data), &["4000000000 keys", "too many", "limit"]);
}

#[test]
fn types_that_do_not_fit_and_missing_parts_are_named() {
    let (d, data) = one_channel("translation", "SCALAR", &[0.0], &[0.0; 3]);
    refused(read(&d, &data), &["VEC3", "SCALAR", "accessor 1"]);
    let (mut d, data) = one_channel("translation", "VEC3", &[0.0], &[0.0; 3]);
    d["animations"][0]["samplers"][0]["output"] = 9.into();
    refused(read(&d, &data), &["accessor 9", "2 accessors"]);
    let (mut d, data) = one_channel("translation", "VEC3", &[0.0], &[0.0; 3]);
    d["animations"][0]["channels"][0]["target"]["node"] = 5.into();
    refused(read(&d, &data), &["channel 0", "node below 1", "5"]);
    let (d, data) = one_channel("translation", "VEC3", &[0.0], &[0.0; 3]);
    refused(read(&d, &data[..8]), &["buffer", "truncated"]);
    refused(read(&json!({"asset": {"version": "1.0"}}), &[]), &["glTF 2.0", "1.0"]);
    refused(read(&json!({"scenes": [], "asset": 5}), &[]), &["asset"]);
}

#[test]
fn a_missing_side_file_matters_only_to_what_lies_in_it() {
    let (mut d, _) = one_channel("translation", "VEC3", &[0.0], &[0.0; 3]);
    let gone =
        |name: &str| Err(FormatError::SideFile { file: "test.gltf".to_owned(), names: name.to_owned() });
    let try_read = |d: &Value| {
        let text = d.to_string();
        import(
            &Input { bytes: text.as_bytes(), name: "test.gltf", side_file: &gone },
            &ReadOptions::default(),
        )
    };
    refused(try_read(&d), &["buffer 0", "data.bin"]);
    d["animations"] = json!([]);
    assert_eq!(try_read(&d).unwrap().skeleton.len(), 1);
}

#[test]
fn nodes_in_a_circle_or_below_two_parents_are_refused() {
    let nodes = |n: Value| json!({"asset": {"version": "2.0"}, "nodes": n});
    let circle = nodes(json!([{"name": "a", "children": [1]}, {"name": "b", "children": [0]}]));
    refused(read(&circle, &[]), &["cycle", "\"a\""]);
    refused(read(&nodes(json!([{"name": "self", "children": [0]}])), &[]), &["cycle", "self"]);
    let shared = nodes(json!([{"children": [2]}, {"children": [2]}, {}]));
    refused(read(&shared, &[]), &["node 2", "more than one"]);
    refused(read(&nodes(json!([{"children": [7]}])), &[]), &["node 0", "7"]);
}

#[test]
fn a_matrix_comes_apart_into_translation_rotation_and_scale() {
    // A quarter turn about Z, scale 2, moved by (1, 2, 3); column by column.
    let m = [0.0, 2.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 1.0, 2.0, 3.0, 1.0];
    let import = read(&json!({"asset": {"version": "2.0"}, "nodes": [{"matrix": m}]}), &[]).unwrap();
    let rest = import.skeleton.joints()[0].rest;
    let half = std::f64::consts::FRAC_1_SQRT_2;
    assert_eq!(rest.translation.to_array(), [1.0, 2.0, 3.0]);
    assert!((rest.scale - 2.0).abs().max_element() < 1e-12);
    assert!((rest.rotation.z - half).abs() < 1e-12 && (rest.rotation.w - half).abs() < 1e-12);
}

#[test]
fn names_stay_as_they_are_also_where_they_repeat_or_are_missing() {
    let nodes = json!([{"name": "a/b"}, {"name": "a/b"}, {}, {"name": " é\u{301}🦴"}]);
    let import = read(&json!({"asset": {"version": "2.0"}, "nodes": nodes}), &[]).unwrap();
    let names: Vec<&str> = import.skeleton.joints().iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["a/b", "a/b", "", " é\u{301}🦴"]);
}

#[test]
fn the_skin_tells_how_far_it_reaches_from_each_joint() {
    let positions = floats(&[0.0, 0.0, 0.0, 3.0, 4.0, 0.0]);
    let joints = [0u8, 1, 0, 0, 1, 0, 0, 0];
    let weights = floats(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    let identity = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0f32];
    let mut moved = identity;
    moved[12] = -3.0;
    let data = [positions, joints.to_vec(), weights, floats(&identity), floats(&moved)].concat();
    let document = json!({
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0, "skin": 0}, {"name": "still"}, {"name": "elbow"}],
        "skins": [{"joints": [1, 2], "inverseBindMatrices": 3}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "JOINTS_0": 1, "WEIGHTS_0": 2}}]}],
        "buffers": [{"uri": "data.bin", "byteLength": data.len()}],
        "bufferViews": [{"buffer": 0, "byteLength": 24}, {"buffer": 0, "byteOffset": 24, "byteLength": 8},
            {"buffer": 0, "byteOffset": 32, "byteLength": 32}, {"buffer": 0, "byteOffset": 64, "byteLength": 128}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 2, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5121, "count": 2, "type": "VEC4"},
            {"bufferView": 2, "componentType": 5126, "count": 2, "type": "VEC4"},
            {"bufferView": 3, "componentType": 5126, "count": 2, "type": "MAT4"}],
    });
    let import = read(&document, &data).unwrap();
    // The far vertex is at (3, 4, 0), the joint that holds it at (3, 0, 0).
    assert_eq!(import.skeleton.joints()[2].reach, Some(4.0));
    assert_eq!(import.skeleton.joints()[1].reach, None);
}

#[test]
fn rates_are_guessed_only_where_the_keys_leave_no_doubt() {
    let rate = |times: &[f32]| {
        let (d, data) = one_channel("translation", "VEC3", times, &vec![0.0; 3 * times.len()]);
        read(&d, &data).unwrap().clips[0].rate.map(|r| r.to_string())
    };
    let grid = |n: i32, hz: f64| (0..n).map(|i| (f64::from(i) / hz) as f32).collect::<Vec<_>>();
    assert_eq!(rate(&grid(40, 30.0)).as_deref(), Some("30"));
    assert_eq!(rate(&grid(400, 30000.0 / 1001.0)).as_deref(), Some("30000/1001"));
    assert_eq!(rate(&grid(400, 120.0)).as_deref(), Some("120"));
    assert_eq!(rate(&[0.0, 1.0, 2.0, 3.0]), None);
    assert_eq!(rate(&[0.0, 0.37, 0.9123, 1.0]), None);
    assert_eq!(rate(&[0.0]), None);
}
