//! The text format: what is written reads back equal, what is wrong is named with its place.

mod common;

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Axis, AxisName, Binding, Clip, Curve, CurveParts, EulerBetween, EulerCurve, Extrapolation, FrameRate,
    Joint, Marker, NodeKind, Pivot, Property, ScaleInherit, Skeleton, SpanKind, Spans, Tangents, Track,
    TrackData, Transform, ValueKind, Wrap,
};
use inbetween_formats::convention::AxisMap;
use inbetween_formats::{Convention, Import, Input, ReadOptions, Severity, Source, import, native};
use proptest::prelude::*;

fn read(text: &str) -> Result<Import, inbetween_formats::FormatError> {
    import(&Input::alone(text.as_bytes(), "clip.inb"), &ReadOptions::default())
}

fn read_raw(text: &str) -> Import {
    let options = ReadOptions { file_units: true, ..ReadOptions::default() };
    import(&Input::alone(text.as_bytes(), "clip.inb"), &options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The bits of everything in an import, so that −0 and 0 differ.
fn bits(import: &Import) -> String {
    // f64's Debug is the shortest decimal that reads back as the same bits, sign of zero included.
    // Where the file's units are the house's there is nothing to convert, done or not.
    let house = import.in_house_units || import.convention == Convention::HOUSE;
    format!("{:?}{:?}{:?}{house}", import.skeleton, import.clips, import.convention)
}

#[test]
fn every_example_of_the_description_reads_and_survives_writing() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clip-text-format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = text.split("```inb\n").skip(1).map(|b| b.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 6);
    for block in blocks {
        let once = read_raw(block);
        assert!(once.notes.is_empty(), "{:?}", once.notes);
        let written = native::write(&once).unwrap();
        let twice = read_raw(&written);
        assert_eq!(bits(&once), bits(&twice), "{written}");
        assert_eq!(native::write(&twice).unwrap(), written);
    }
}

#[test]
fn the_first_example_means_what_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clip-text-format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let import = read(text.split("```inb\n").nth(1).unwrap().split("```").next().unwrap()).unwrap();
    let clip = &import.clips[0];
    let value = |i: usize, t| clip.tracks[i].value_at(t);
    assert_eq!((clip.start(), clip.end(), clip.rate), (0.0, 4.0, Some(FrameRate::hz(24))));
    assert_eq!((value(0, 0.49), value(0, 0.5)), (vec![0.0], vec![1.0]));
    assert_eq!(clip.tracks[0].data.kind(), ValueKind::Switch);
    assert_eq!(clip.tracks[0].rest, [1.0]);
    assert_eq!(value(1, 1.25), [400.0]);
    assert_eq!(clip.tracks[2].data.kind(), ValueKind::Color(3));
    assert_eq!(clip.tracks[3].binding.node, Some(1));
    let TrackData::Euler(e) = &clip.tracks[4].data else { panic!("a rotation by angles") };
    assert_eq!(e.terms.iter().map(|t| t.0.letter()).collect::<String>(), "yxz");
    assert_eq!(e.terms[0].1.at(4.0), 20f64.to_radians());
    assert_eq!(value(5, 0.0), [50f64.to_radians()]);
}

#[test]
fn a_stage_written_by_hand_plays_as_it_reads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/clips/stage.inb");
    let import = read(&std::fs::read_to_string(path).unwrap()).unwrap();
    let clip = &import.clips[0];
    let find = |target: &str, property: &str| {
        let fits = |t: &&Track| t.binding.target == target && t.binding.property.name() == property;
        clip.tracks.iter().find(fits).unwrap()
    };
    assert_eq!(clip.markers[0], Marker { time: 0.5, name: "lamp on".to_owned() });
    assert_eq!(find("Lamp", "visible").value_at(0.49), [0.0]);
    assert_eq!(find("Lamp", "light.intensity").value_at(9.0), [800.0]);
    let door = find("Door", "rotation");
    let degrees = |t: f64| {
        let q = door.value_at(t);
        2.0 * f64::atan2(q[1], q[3]).to_degrees()
    };
    assert!((degrees(3.0) - 80.0).abs() < 1e-12 && degrees(0.0).abs() < 1e-12);
    // It swings back once, mirrored in time.
    assert!((degrees(3.3) - degrees(2.7)).abs() < 1e-9 && degrees(9.0).abs() < 1e-9);
    assert!(import.skeleton.joints()[2].pivot.is_some());
}

#[test]
fn units_and_axes_of_a_file_by_hand_become_the_house_s() {
    let text = "inbetween-clips 1\nunit 0.01\naxes x z -y\nnode a\ntranslation 120 60 75\n";
    let import = read(text).unwrap();
    let t = import.skeleton.joints()[0].rest.translation;
    assert!((t - DVec3::new(1.2, 0.75, -0.6)).length() < 1e-15, "{t}");
    let import = read(&text.replace("unit", "source-unit").replace("axes", "source-axes")).unwrap();
    assert_eq!(import.skeleton.joints()[0].rest.translation, DVec3::new(120.0, 60.0, 75.0));
    assert_eq!(import.convention.axes, AxisMap::Z_UP);
}

#[test]
fn numbers_alone_on_a_line_read_as_they_do_beside_other_words() {
    // A comment sends the line down the careful road.
    let plain = "inbetween-clips 1\nnode a\nclip c\ntrack a translation\n0 1 2 3\n1e-3 -4.5e-7 .5 7.\n\
                 track b k as vector4\n+1 1 2 3 4\ntrack a rotation as euler xz\n0 1 2\n1 2 3\n";
    let careful: String = plain.lines().map(|l| format!("{l} # as said\n")).collect();
    assert_eq!(bits(&read_raw(plain)), bits(&read_raw(&careful)));
}

#[test]
fn names_of_every_sort_survive() {
    let names = [
        "",
        "in",
        "none",
        "@3",
        "#x",
        "a b",
        "\"q\"",
        "back\\slash",
        "line\nbreak",
        "tab\t",
        "é 漢字 \u{a0}",
        "nul\0",
        "\u{202e}x",
        "deg",
        "12f",
        "-1",
        "tip",
        "\u{feff}",
    ];
    let mut joints = vec![Joint::new("root", None, Transform::IDENTITY)];
    let mut clip = Clip::new("c", 0.0, 1.0).unwrap();
    for (i, name) in names.iter().enumerate() {
        joints.push(Joint::new(*name, Some(i), Transform::IDENTITY));
        let curve = Curve::linear(ValueKind::Scalar, vec![0.0], vec![1.0]).unwrap();
        let binding = Binding {
            path: Some((*name).to_owned()),
            ..Binding::node(i + 1, *name, Property::Other((*name).to_owned()))
        };
        clip.tracks.push(Track::new(binding, TrackData::Curve(curve), vec![0.0]));
        clip.markers.push(Marker { time: 0.0, name: (*name).to_owned() });
    }
    let mut clips = vec![clip];
    clips.extend(names.iter().map(|n| Clip::new(*n, 0.0, 0.0).unwrap()));
    let import = Import { skeleton: Skeleton::new(joints).unwrap(), clips, ..empty() };
    let text = native::write(&import).unwrap();
    assert_eq!(bits(&read_raw(&text)), bits(&import), "{text}");
}

#[test]
fn shared_names_are_told_apart_by_index() {
    let text = "inbetween-clips 1\njoint a\njoint a in @0\njoint b in @1\nclip c\ntrack a visible\ndrives @1\n0 on\n";
    let import = read(text).unwrap();
    assert_eq!(import.skeleton.joints()[2].parent, Some(1));
    assert_eq!(import.clips[0].tracks[0].binding.node, Some(1));
    check_error(
        "inbetween-clips 1\njoint a\njoint a\njoint b in a\n",
        &["line 4, column 12", "2 nodes share", "@"],
    );
    check_error(&text.replace("drives @1\n", ""), &["line 6", "2 nodes share", "drives @3"]);
    check_error(&text.replace("drives @1", "drives @7"), &["@7", "below @3"]);
    check_error(&text.replace("drives @1", "drives z"), &["\"z\"", "name of a node"]);
}

#[test]
fn equal_times_are_shared_in_memory() {
    let text = "inbetween-clips 1\nclip c\ntrack a k\n0 1\n1 2\ntrack b k\n0 5\n1 6\n";
    let import = read(text).unwrap();
    let times = |i: usize| import.clips[0].tracks[i].data.curves()[0].times().clone();
    assert!(std::sync::Arc::ptr_eq(&times(0), &times(1)));
}

#[track_caller]
fn check_error(text: &str, mentions: &[&str]) {
    let message = read(text).expect_err("an error").to_string();
    for m in mentions {
        assert!(message.contains(m), "{message:?} does not mention {m:?}");
    }
}

#[test]
fn errors_name_line_column_what_was_expected_and_what_was_found() {
    let track = |body: &str| format!("inbetween-clips 1\nnode a\nclip c\ntrack a translation\n{body}");
    for (text, mentions) in [
        (String::new(), vec!["line 1", "inbetween-clips 1"]),
        ("node a\n".to_owned(), vec!["line 1, column 1", "inbetween-clips 1", "\"node\""]),
        ("inbetween-clips 9\n".to_owned(), vec!["version 9", "newer"]),
        ("inbetween-clips 1\nfoo\n".to_owned(), vec!["line 2, column 1", "foo", "clip"]),
        ("inbetween-clips 1\nunit 0\n".to_owned(), vec!["line 2", "above zero"]),
        ("inbetween-clips 1\nunit 1\nunit 1\n".to_owned(), vec!["line 3", "second"]),
        ("inbetween-clips 1\nunit 1\nsource-axes x y z\n".to_owned(), vec!["line 3", "one of the two"]),
        ("inbetween-clips 1\naxes x x z\n".to_owned(), vec!["line 2, column 8", "each of x, y and z once"]),
        ("inbetween-clips 1\nnode a in b\n".to_owned(), vec!["line 2, column 11", "\"b\""]),
        ("inbetween-clips 1\nnode a in b\nnode b in a\n".to_owned(), vec!["cycle"]),
        ("inbetween-clips 1\nnode a in\n".to_owned(), vec!["line 2, column 10", "parent"]),
        ("inbetween-clips 1\nnode a b\n".to_owned(), vec!["line 2, column 8", "end of the line"]),
        ("inbetween-clips 1\nnode a\n  translation 1 2\n".to_owned(), vec!["line 3, column 18", "3 of 3"]),
        ("inbetween-clips 1\nnode a\n  rotation 0 0 0 0\n".to_owned(), vec!["line 3", "zero"]),
        ("inbetween-clips 1\nnode \"a\n".to_owned(), vec!["line 2", "closing quote"]),
        ("inbetween-clips 1\nnode \"a\\q\"\n".to_owned(), vec!["line 2", "backslash"]),
        ("inbetween-clips 1\nnode \"\\u{d800}\"\n".to_owned(), vec!["line 2", "\\u{hex}"]),
        ("inbetween-clips 1\nclip c\nrange 2 1\n".to_owned(), vec!["line 3", "2", "1"]),
        ("inbetween-clips 1\nclip c\nrate 0\n".to_owned(), vec!["line 3, column 6", "30000/1001"]),
        ("inbetween-clips 1\nclip c\nwrap around\n".to_owned(), vec!["line 3, column 6", "ping-pong"]),
        ("inbetween-clips 1\nclip c\ntrack a weights\n0 1\n".to_owned(), vec!["line 3", "as weightsN"]),
        ("inbetween-clips 1\nclip c\n0 1\n".to_owned(), vec!["line 3", "track"]),
        (track(""), vec!["line 4", "at least one key"]),
        (track("0 1 2\n"), vec!["line 5, column 6", "3 of 3", "end of the line"]),
        (track("0 1 2 3 4\n"), vec!["line 5, column 9", "\"4\""]),
        (track("0 1 nan 3\n"), vec!["line 5, column 5", "finite", "nan"]),
        (track("0 1 2 1e999\n"), vec!["line 5, column 7", "finite"]),
        (track("0 1 2 3\n0 1 2 3\n"), vec!["line 6, column 1", "increasing", "0 s after 0 s"]),
        (track("12f 1 2 3\n"), vec!["line 5", "rate"]),
        (track("hermite\n0 1 2 3\n1 1 2 3\n"), vec!["line 4", "tangents"]),
        (track("0 1 2 3 in 1 2\n"), vec!["line 5", "tangent"]),
        (track("0 1 2 3 bezier out 1 1 1 over -1 0 0\n"), vec!["line 5, column 31", "zero or more"]),
        (track("0 1 2 3\nlinear\n"), vec!["line 6", "before the keys"]),
        (track("rest 1 2\n0 1 2 3\n"), vec!["3 rest values", "2"]),
        (track("before never\n0 1 2 3\n"), vec!["line 5, column 8", "cycle-offset"]),
        (track("before cycle -1\n0 1 2 3\n"), vec!["line 5, column 14", "whole number"]),
        (track("axis x\n0 1\n"), vec!["line 5, column 1", "axis"]),
        ("inbetween-clips 1\nclip c\ntrack a visible\n0 0.5\n".to_owned(), vec!["line 4, column 3", "on or off"]),
        ("inbetween-clips 1\nclip c\ntrack a visible\nlinear\n0 on\n1 off\n".to_owned(), vec!["line 3", "switch"]),
        ("inbetween-clips 1\nclip c\ntrack a rotation\n0 0 0 0 0\n".to_owned(), vec!["line 4", "zero"]),
        ("inbetween-clips 1\nclip c\ntrack a k as axes vector2\naxis x\n0 1\n".to_owned(), vec!["axis y"]),
        ("inbetween-clips 1\nclip c\ntrack a k as axes vector2\naxis z constant 1\n".to_owned(), vec!["2 components"]),
        ("inbetween-clips 1\nclip c\ntrack a k as axes vector2\naxis x constant 1\naxis x constant 1\n".to_owned(), vec!["line 5", "once"]),
        ("inbetween-clips 1\nclip c\ntrack a k as axes vector2\n0 1 1\naxis x constant 1\naxis y constant 2\n".to_owned(), vec!["both"]),
        ("inbetween-clips 1\nclip c\ntrack a k as axes vector2\naxis x constant 1\n0 5\n".to_owned(), vec!["line 5", "keyword"]),
        ("inbetween-clips 1\nclip c\ntrack a rotation as euler xq\n".to_owned(), vec!["line 3", "xyz or zxy"]),
        ("inbetween-clips 1\nclip c\ntrack a rotation as euler\nbetween slerp\nturn x\n0 1\nturn y\n1 1\n".to_owned(), vec!["same key times"]),
        ("inbetween-clips 1\nclip c\ntrack a k as weights4000000000\n0 1\n".to_owned(), vec!["line 4", "2 of 4000000000"]),
        ("inbetween-clips 1\nclip c\ntrack a k as vector300\n0 1\n".to_owned(), vec!["line 3, column 14", "vectorN"]),
    ] {
        check_error(&text, &mentions);
    }
    let e =
        import(&Input::alone(b"inbetween-clips 1\nnode \xff", "x.inb"), &ReadOptions::default()).unwrap_err();
    assert!(e.to_string().contains("byte 23"), "{e}");
}

#[test]
fn real_captures_written_as_text_read_back_equal() {
    let Some(dir) = common::data_dir() else { return };
    for file in ["bvh/pybvh/cmu_12_01_walk.bvh", "bvh/bvh-toolbox/walk01.bvh", "bvh/pybvh/bvh_test1.bvh"] {
        let import = common::import_in_file_units(&dir.join(file));
        let again = read_raw(&native::write(&import).unwrap());
        assert!(again.skeleton == import.skeleton && again.clips == import.clips, "{file}");
    }
}

#[test]
fn more_keys_than_the_limit_are_refused() {
    let options = ReadOptions { max_keys: 2, ..ReadOptions::default() };
    let text = "inbetween-clips 1\nclip c\ntrack a k\n0 1\n1 2\n2 3\n";
    let e = import(&Input::alone(text.as_bytes(), "x.inb"), &options).unwrap_err();
    assert!(e.to_string().contains("line 6") && e.to_string().contains("limit"), "{e}");
}

#[test]
fn a_rotation_that_is_not_of_unit_length_is_scaled_and_said() {
    let import = read("inbetween-clips 1\nnode a\nrotation 0 0.7 0 0.7\n").unwrap();
    assert!((import.skeleton.joints()[0].rest.rotation.length() - 1.0).abs() < 1e-15);
    assert_eq!(import.notes[0].severity, Severity::Repaired);
}

#[test]
fn an_import_that_is_not_valid_cannot_be_written() {
    let curve = || TrackData::Curve(Curve::linear(ValueKind::Scalar, vec![0.0], vec![1.0]).unwrap());
    let with = |binding: Binding, rest: Vec<f64>| {
        let mut clip = Clip::new("c", 0.0, 1.0).unwrap();
        clip.tracks.push(Track::new(binding, curve(), rest));
        native::write(&Import { clips: vec![clip], ..empty() }).unwrap_err().to_string()
    };
    let other =
        |name: &str| Binding { node: None, ..Binding::node(0, "a", Property::Other(name.to_owned())) };
    assert!(with(other("rotation"), vec![0.0]).contains("built-in"));
    assert!(with(other("k"), vec![0.0, 1.0]).contains("2 rest values"));
    assert!(with(other("k"), vec![f64::NAN]).contains("NaN"));
}

fn empty() -> Import {
    Import {
        format: "inb",
        skeleton: Skeleton::default(),
        clips: Vec::new(),
        notes: Vec::new(),
        convention: Convention::HOUSE,
        in_house_units: true,
        source: Source::None,
        decimals: None,
    }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..10.0f64,
        1 => Just(0.0),
        1 => Just(-0.0),
        1 => prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::NEGATIVE | prop::num::f64::POSITIVE,
    ]
    .prop_filter("finite", |v: &f64| v.is_finite())
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-c]", 2 => "[A-Za-z_.:|-]{1,8}", 1 => ".{0,6}", 1 => Just("\n\"#\\".to_owned())]
}

fn vec3() -> impl Strategy<Value = DVec3> {
    (number(), number(), number()).prop_map(|(x, y, z)| DVec3::new(x, y, z))
}

fn unit_quaternion() -> impl Strategy<Value = DQuat> {
    prop_oneof![
        Just(DQuat::IDENTITY),
        prop::array::uniform4(-1.0..1.0f64)
            .prop_map(|q| inbetween::math::unit(DQuat::from_array(q)).unwrap_or(DQuat::IDENTITY))
    ]
}

fn span() -> impl Strategy<Value = SpanKind> {
    prop::sample::select(vec![
        SpanKind::Step,
        SpanKind::StepNext,
        SpanKind::Linear,
        SpanKind::Hermite,
        SpanKind::Bezier,
    ])
}

fn outside() -> impl Strategy<Value = Extrapolation> {
    (0..5u8, prop::option::of(0..4u32)).prop_map(|(k, repeats)| match k {
        0 => Extrapolation::Hold,
        1 => Extrapolation::Linear,
        2 => Extrapolation::Cycle { repeats },
        3 => Extrapolation::CycleOffset { repeats },
        _ => Extrapolation::Mirror { repeats },
    })
}

/// Any curve of a kind; `times` are shared where given.
fn curve(kind: ValueKind, times: Option<Vec<f64>>) -> BoxedStrategy<Curve> {
    let times = match times {
        Some(times) => Just(times).boxed(),
        None => prop::collection::btree_set(-1000..1000i32, 1..6)
            .prop_map(|set| set.into_iter().map(|t| f64::from(t) / 7.0).collect::<Vec<f64>>())
            .boxed(),
    };
    let switch = kind == ValueKind::Switch;
    let span_kinds = move |n: usize| {
        let one = if switch {
            prop::sample::select(vec![SpanKind::Step, SpanKind::StepNext]).boxed()
        } else {
            span().boxed()
        };
        prop_oneof![
            one.clone().prop_map(Spans::Uniform),
            prop::collection::vec(one, n).prop_map(Spans::PerKey)
        ]
    };
    times
        .prop_flat_map(move |times| {
            let (n, w) = (times.len(), kind.width());
            let value = if switch { (0..2u8).prop_map(f64::from).boxed() } else { number().boxed() };
            let rows = move || prop::collection::vec(prop_oneof![Just(0.0), number()], n * w);
            let lengths = move || prop::collection::vec(prop_oneof![Just(0.0), 0.0..2.0f64], n * w);
            (
                Just(times),
                prop::collection::vec(value, n * w),
                span_kinds(n),
                (rows(), rows(), lengths(), lengths()),
                (0..3u8, outside(), outside()),
            )
        })
        .prop_filter_map(
            "a curve that can be",
            move |(times, mut values, spans, t, (with, before, after))| {
                if kind == ValueKind::Rotation {
                    for q in values.chunks_exact_mut(4) {
                        if inbetween::math::unit(DQuat::from_slice(q)).is_none() {
                            q.copy_from_slice(&[0.0, 0.0, 0.0, 1.0]);
                        }
                    }
                }
                let with = if spans.any(SpanKind::Bezier) {
                    2
                } else if spans.any(SpanKind::Hermite) {
                    with.max(1)
                } else {
                    with
                };
                let tangents = (with > 0).then(|| {
                    let (leave_dt, arrive_dt) = if with == 2 { (t.2, t.3) } else { (Vec::new(), Vec::new()) };
                    Box::new(Tangents { leave: t.0, arrive: t.1, leave_dt, arrive_dt })
                });
                let parts = CurveParts { kind, times: times.into(), values, spans, tangents, before, after };
                Curve::new(parts).ok()
            },
        )
        .boxed()
}

fn axis() -> impl Strategy<Value = Axis> {
    prop_oneof![number().prop_map(Axis::Constant), curve(ValueKind::Scalar, None).prop_map(Axis::Curve)]
}

fn kind() -> impl Strategy<Value = ValueKind> {
    prop_oneof![
        Just(ValueKind::Switch),
        Just(ValueKind::Scalar),
        (1..6u8).prop_map(ValueKind::Vector),
        (3..5u8).prop_map(ValueKind::Color),
        Just(ValueKind::Rotation),
        (1..8u32).prop_map(ValueKind::Weights),
    ]
}

/// Components side by side with the same times, as captured motion has them.
fn alike(n: usize) -> impl Strategy<Value = Vec<Axis>> {
    (prop::collection::btree_set(0..50i32, 1..5), span()).prop_flat_map(move |(times, kind)| {
        let times: Vec<f64> = times.into_iter().map(|t| f64::from(t) / 30.0).collect();
        prop::collection::vec(curve(ValueKind::Scalar, Some(times)), n).prop_map(move |curves| {
            curves
                .into_iter()
                .map(|c| {
                    let mut parts = c.into_parts();
                    let n = parts.times.len();
                    parts.spans = Spans::Uniform(kind);
                    parts.before = Extrapolation::Hold;
                    parts.after = Extrapolation::Hold;
                    let mut t = parts.tangents.take().unwrap_or_default();
                    t.leave.resize(n, 1.0);
                    t.arrive.resize(n, 0.0);
                    t.leave_dt.resize(n, 0.5);
                    t.arrive_dt.resize(n, 0.0);
                    parts.tangents = Some(t);
                    Axis::Curve(Curve::new(parts).unwrap())
                })
                .collect()
        })
    })
}

fn data() -> impl Strategy<Value = TrackData> {
    let axes = kind().prop_flat_map(|kind| {
        let n = kind.width();
        prop_oneof![prop::collection::vec(axis(), n).boxed(), alike(n).boxed()]
            .prop_map(move |axes| TrackData::Axes { kind, axes })
    });
    let letter = prop::sample::select(vec![AxisName::X, AxisName::Y, AxisName::Z]);
    let turns = (0..5usize)
        .prop_flat_map(|n| prop_oneof![prop::collection::vec(axis(), n).boxed(), alike(n).boxed()]);
    let euler =
        (turns, prop::collection::vec(letter, 5), unit_quaternion(), unit_quaternion(), any::<bool>())
            .prop_map(|(turns, letters, pre, post, slerp)| {
                let mut times = turns.iter().filter_map(Axis::curve).map(Curve::times);
                let first = times.next();
                let same = times.all(|t| Some(t) == first);
                let between = if slerp && same { EulerBetween::Slerp } else { EulerBetween::Angles };
                TrackData::Euler(EulerCurve {
                    terms: letters.into_iter().zip(turns).collect(),
                    pre,
                    post,
                    between,
                })
            });
    prop_oneof![kind().prop_flat_map(|k| curve(k, None)).prop_map(TrackData::Curve), axes, euler]
}

fn track(nodes: usize) -> impl Strategy<Value = Track> {
    let property = prop_oneof![
        prop::sample::select(vec!["translation", "rotation", "scale", "weights", "visible"])
            .prop_map(str::to_owned),
        name()
    ];
    (name(), prop::option::of(0..nodes.max(1)), property, prop::option::of(name()), data(), any::<bool>())
        .prop_flat_map(move |(target, node, property, path, data, enabled)| {
            let width = data.kind().width();
            let rest = prop_oneof![
                Just(vec![0.0; width]),
                Just(vec![1.0; width]),
                prop::collection::vec(number(), width)
            ];
            let node = node.filter(|_| nodes > 0);
            let binding = Binding { target, node, property: Property::from_name(&property), path };
            rest.prop_map(move |rest| Track { binding: binding.clone(), data: data.clone(), rest, enabled })
        })
}

fn joint(index: usize) -> impl Strategy<Value = Joint> {
    let pivot = prop::option::of((vec3(), vec3(), vec3(), vec3(), any::<bool>()));
    let parent = if index == 0 { Just(None).boxed() } else { prop::option::of(0..index).boxed() };
    (
        name(),
        parent,
        (vec3(), unit_quaternion(), vec3()),
        pivot,
        (0..3u8, 0..5u8),
        prop::collection::vec(vec3(), 0..3),
        prop::option::of(0.0..10.0f64),
    )
        .prop_map(
            |(name, parent, (translation, rotation, scale), pivot, (inherit, kind), tips, reach)| {
                let mut joint = Joint::new(name, parent, Transform { translation, rotation, scale });
                joint.pivot = pivot.map(|(a, b, c, d, zero)| {
                    let k = if zero { 0.0 } else { 1.0 };
                    Box::new(Pivot {
                        rotation_offset: a * k,
                        rotation_pivot: b * k,
                        scaling_offset: c * k,
                        scaling_pivot: d * k,
                    })
                });
                joint.inherit = [ScaleInherit::Full, ScaleInherit::Ignore, ScaleInherit::Componentwise]
                    [usize::from(inherit)];
                joint.kind =
                    [NodeKind::Node, NodeKind::Joint, NodeKind::Mesh, NodeKind::Camera, NodeKind::Light]
                        [usize::from(kind)];
                joint.tips = tips;
                joint.reach = reach;
                joint
            },
        )
}

fn clip(nodes: usize) -> impl Strategy<Value = Clip> {
    (
        name(),
        (-100.0..100.0f64, 0.0..100.0f64),
        prop::option::of((1..100_000u32, 1..2000u32)),
        (0..4u8, any::<bool>()),
        prop::collection::vec((number(), name()), 0..3),
        prop::collection::vec(track(nodes), 0..4),
    )
        .prop_map(|(name, (start, length), rate, (wrap, additive), markers, tracks)| {
            let mut clip = Clip::new(name, start, start + length).unwrap();
            clip.rate = rate.and_then(|(n, d)| FrameRate::new(n, d));
            clip.wrap = [Wrap::Hold, Wrap::Loop, Wrap::PingPong, Wrap::LoopOffset][usize::from(wrap)];
            clip.additive = additive;
            clip.markers = markers.into_iter().map(|(time, name)| Marker { time, name }).collect();
            clip.tracks = tracks;
            clip
        })
}

fn any_import() -> impl Strategy<Value = Import> {
    let convention = (0.001..10.0f64, 0..3u8, any::<bool>());
    (0..5usize, convention)
        .prop_flat_map(|(n, convention)| {
            let joints: Vec<_> = (0..n).map(joint).collect();
            (joints, prop::collection::vec(clip(n), 0..3), Just(convention))
        })
        .prop_map(|(joints, clips, (unit, axes, house))| {
            let left = AxisMap { from: [2, 0, 1], sign: [-1.0, 1.0, -1.0] };
            let axes = [AxisMap::SAME, AxisMap::Z_UP, left][usize::from(axes)];
            let convention = Convention { metres_per_unit: if unit < 1.0 { 1.0 } else { unit }, axes };
            Import {
                skeleton: Skeleton::new(joints).unwrap(),
                clips,
                convention,
                in_house_units: house,
                ..empty()
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_valid_import_reads_back_equal_to_the_last_bit(import in any_import()) {
        let text = native::write(&import).unwrap();
        let again = read_raw(&text);
        prop_assert_eq!(bits(&again), bits(&import), "{}", text);
        prop_assert_eq!(native::write(&again).unwrap(), text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(mut text in "inbetween-clips 1\n(.{0,20}\n|node a( in .)?\n|clip c\n|track a (translation|visible|rotation as euler|k as axes vector2)\n|axis [xy]( constant 1)?\n|turn [xyz]\n|[0-9]f?( [0-9.e-]{1,4}){0,4}( (in|out) [0-9]( over [0-9])?)?\n){0,12}") {
        let _ = read(&text);
        text.insert(0, '\u{feff}');
        let _ = read(&text);
    }
}
