//! The FBX reader on small files made here, each for one behaviour; where FBX's rule is at stake,
//! `ufbx`'s own evaluation is the judge.
#![cfg(feature = "fbx")]

use std::fmt::Write as _;

use inbetween::glam::{DAffine3, DQuat, DVec3};
use inbetween::{
    Clip, FrameRate, LocalPose, ModelPose, Property, ScaleInherit, SpanKind, Track, TrackData, TrackMask,
    ValueKind,
};
use inbetween_formats::{FormatError, Import, Input, ReadOptions, Severity, import};

const SECOND: i64 = 46_186_158_000;

/// Attribute flags of a key.
const STEP: i32 = 2;
const STEP_NEXT: i32 = 2 | 0x100;
const LINEAR: i32 = 4;
const CUBIC_AUTO: i32 = 8 | 0x100;
const CUBIC_USER: i32 = 8 | 0x400;

/// Seconds, value, flags, and the slopes after this key and before the next.
type Key = (f64, f64, i32, [f64; 2]);

/// An ASCII FBX 7.4 file in the making.
struct Fbx {
    settings: String,
    objects: String,
    connections: String,
    next: i64,
    stack: i64,
    layer: i64,
}

impl Fbx {
    /// A file with one take of one layer, 0 s to 2 s.
    fn new() -> Self {
        let mut f = Self::bare();
        f.stack = f.take("Take 001", Some((0.0, 2.0)));
        f.layer = f.add_layer(f.stack, "BaseLayer", "");
        f
    }

    fn bare() -> Self {
        Self {
            settings: String::new(),
            objects: String::new(),
            connections: String::new(),
            next: 100,
            stack: 0,
            layer: 0,
        }
    }

    fn id(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn object(&mut self, class: &str, name: &str, sub: &str, body: &str) -> i64 {
        let id = self.id();
        let prefix = match class {
            "AnimationStack" => "AnimStack",
            "AnimationLayer" => "AnimLayer",
            "AnimationCurveNode" => "AnimCurveNode",
            "AnimationCurve" => "AnimCurve",
            other => other,
        };
        writeln!(self.objects, "\t{class}: {id}, \"{prefix}::{name}\", \"{sub}\" {{\n{body}\n\t}}").unwrap();
        id
    }

    fn with_properties(&mut self, class: &str, name: &str, sub: &str, properties: &str) -> i64 {
        self.object(class, name, sub, &format!("\t\tProperties70: {{\n{properties}\n\t\t}}"))
    }

    fn connect(&mut self, from: i64, to: i64) {
        writeln!(self.connections, "\tC: \"OO\",{from},{to}").unwrap();
    }

    fn connect_property(&mut self, from: i64, to: i64, property: &str) {
        writeln!(self.connections, "\tC: \"OP\",{from},{to}, \"{property}\"").unwrap();
    }

    fn take(&mut self, name: &str, span: Option<(f64, f64)>) -> i64 {
        let ticks = |t: f64| (t * SECOND as f64).round() as i64;
        let span = span.map_or(String::new(), |(a, b)| {
            format!(
                "P: \"LocalStart\", \"KTime\", \"Time\", \"\",{}\nP: \"LocalStop\", \"KTime\", \"Time\", \"\",{}",
                ticks(a),
                ticks(b)
            )
        });
        self.with_properties("AnimationStack", name, "", &span)
    }

    fn add_layer(&mut self, stack: i64, name: &str, properties: &str) -> i64 {
        let id = self.with_properties("AnimationLayer", name, "", properties);
        self.connect(id, stack);
        id
    }

    fn model(&mut self, name: &str, parent: i64, properties: &str) -> i64 {
        let id = self.with_properties("Model", name, "Null", properties);
        self.connect(id, parent);
        id
    }

    /// A curve node in `layer` for a property, with a default a component (`None` says nothing).
    fn drive(&mut self, layer: i64, target: i64, property: &str, defaults: [Option<f64>; 3]) -> i64 {
        let mut body = String::new();
        for (letter, v) in ["X", "Y", "Z"].iter().zip(defaults) {
            if let Some(v) = v {
                writeln!(body, "P: \"d|{letter}\", \"Number\", \"\", \"A\",{v}").unwrap();
            }
        }
        let id = self.with_properties("AnimationCurveNode", "N", "", &body);
        self.connect(id, layer);
        self.connect_property(id, target, property);
        id
    }

    /// A curve of keys (seconds, value) that all have the same flags and data.
    fn curve(&mut self, node: i64, component: &str, keys: &[(f64, f64)], flags: i32) {
        let each: Vec<Key> = keys.iter().map(|k| (k.0, k.1, flags, [0.0; 2])).collect();
        self.curve_of(node, component, &each, "");
    }

    /// A curve of keys (seconds, value, flags, slopes after this key and before the next).
    fn curve_of(&mut self, node: i64, component: &str, keys: &[Key], more: &str) {
        let row = |f: &dyn Fn(&Key) -> String| keys.iter().map(f).collect::<Vec<_>>().join(",");
        let n = keys.len();
        let body = format!(
            "Default: 0\nKeyVer: 4008\nKeyTime: *{n} {{\na: {}\n}}\nKeyValueFloat: *{n} {{\na: {}\n}}\n\
             KeyAttrFlags: *{n} {{\na: {}\n}}\nKeyAttrDataFloat: *{} {{\na: {}\n}}\nKeyAttrRefCount: *{n} {{\na: {}\n}}\n{more}",
            row(&|k| ((k.0 * SECOND as f64).round() as i64).to_string()),
            row(&|k| k.1.to_string()),
            row(&|k| k.2.to_string()),
            4 * n,
            row(&|k| format!("{},{},218434821,0", k.3[0], k.3[1])),
            row(&|_| "1".to_owned()),
        );
        let id = self.object("AnimationCurve", "", "", &body);
        self.connect_property(id, node, component);
    }

    fn text(&self) -> String {
        let time_mode =
            if self.settings.contains("TimeMode") { "" } else { "P: \"TimeMode\", \"enum\", \"\", \"\",11" };
        format!(
            "; FBX 7.4.0 project file\nFBXHeaderExtension: {{\nFBXHeaderVersion: 1003\nFBXVersion: 7400\nCreator: \"test\"\n}}\n\
             GlobalSettings: {{\nVersion: 1000\nProperties70: {{\n{}\n{time_mode}\n}}\n}}\nDefinitions: {{\nVersion: 100\n}}\n\
             Objects: {{\n{}}}\nConnections: {{\n{}}}\n",
            self.settings, self.objects, self.connections
        )
    }

    fn read(&self) -> Import {
        read(self.text().as_bytes()).unwrap_or_else(|e| panic!("{e}"))
    }
}

fn read(bytes: &[u8]) -> Result<Import, FormatError> {
    let options = ReadOptions { file_units: true, ..ReadOptions::default() };
    import(&Input::alone(bytes, "test.fbx"), &options)
}

fn track<'a>(clip: &'a Clip, target: &str, property: &Property) -> &'a Track {
    clip.tracks
        .iter()
        .find(|t| t.binding.target == target && t.binding.property == *property)
        .unwrap_or_else(|| panic!("no {} of {target}", property.name()))
}

fn other(name: &str) -> Property {
    Property::Other(name.to_owned())
}

fn notes(import: &Import) -> String {
    import.notes.iter().map(|n| format!("{:?} {n}\n", n.severity)).collect()
}

/// Local and world transforms of all takes against `ufbx`, inside the take and on both sides.
fn agrees_with_ufbx(fbx: &Fbx, tolerance: f64) -> Import {
    let text = fbx.text();
    let import = fbx.read();
    let scene = ufbx::load_memory(text.as_bytes(), ufbx::LoadOpts::default()).unwrap();
    for (clip, stack) in import.clips.iter().zip(&scene.anim_stacks) {
        for k in -8..=56 {
            let time = clip.start() + clip.duration().max(1.0) * f64::from(k) / 48.0;
            let local = LocalPose::of_clip(clip, &import.skeleton, time, &TrackMask::all());
            let world = ModelPose::of(&import.skeleton, &local);
            let theirs =
                ufbx::evaluate_scene(&scene, &stack.anim, time, ufbx::EvaluateOpts::default()).unwrap();
            for (i, node) in theirs.nodes.iter().skip(1).enumerate() {
                let t = &node.local_transform;
                let q = DQuat::from_xyzw(t.rotation.x, t.rotation.y, t.rotation.z, t.rotation.w);
                let v = DVec3::new(t.translation.x, t.translation.y, t.translation.z);
                let s = DVec3::new(t.scale.x, t.scale.y, t.scale.z);
                let ours = &local.joints[i];
                let d = (ours.translation - v)
                    .length()
                    .max((ours.scale - s).length())
                    .max(inbetween::math::angle_between(ours.rotation, q));
                assert!(
                    d <= tolerance,
                    "{:?} at {time}: {d:e}\n{ours:?}\n{v} {q} {s}\n{}",
                    &*node.element.name,
                    notes(&import)
                );
                let m = &node.node_to_world;
                let matrix = DAffine3::from_cols(
                    DVec3::new(m.m00, m.m10, m.m20),
                    DVec3::new(m.m01, m.m11, m.m21),
                    DVec3::new(m.m02, m.m12, m.m22),
                    DVec3::new(m.m03, m.m13, m.m23),
                );
                let d = matrix
                    .to_cols_array()
                    .iter()
                    .zip(world.joints[i].to_cols_array())
                    .fold(0.0f64, |w, (a, b)| w.max((a - b).abs()));
                assert!(d <= tolerance * 50.0, "{:?} in the world at {time}: {d:e}", &*node.element.name);
            }
        }
    }
    import
}

const ALL: [Option<f64>; 3] = [Some(0.0), Some(0.0), Some(0.0)];

fn vector(name: &str, v: [f64; 3]) -> String {
    format!("P: \"{name}\", \"Vector3D\", \"Vector\", \"\",{},{},{}\n", v[0], v[1], v[2])
}

#[test]
fn a_component_without_a_curve_has_its_curve_nodes_value_or_else_stands_still() {
    let mut f = Fbx::new();
    let node = f.model("n", 0, "P: \"Lcl Translation\", \"Lcl Translation\", \"\", \"A\",1,2,3");
    let drive = f.drive(f.layer, node, "Lcl Translation", [Some(9.0), None, Some(0.0)]);
    f.curve(drive, "d|Z", &[(0.0, 0.0), (1.0, 8.0)], LINEAR);
    let import = f.read();
    assert_eq!(track(&import.clips[0], "n", &Property::Translation).value_at(0.5), [9.0, 2.0, 4.0]);
    assert_eq!(import.clips[0].key_count(), 2);
}

#[test]
fn every_rotation_order_with_pre_and_post_rotation_stays_euler_curves() {
    for order in 0..6 {
        let mut f = Fbx::new();
        let properties = format!(
            "P: \"RotationActive\", \"bool\", \"\", \"\",1\nP: \"RotationOrder\", \"enum\", \"\", \"\",{order}\n{}{}",
            vector("PreRotation", [10.0, -20.0, 30.0]),
            vector("PostRotation", [-40.0, 5.0, 60.0])
        );
        let node = f.model("n", 0, &properties);
        let drive = f.drive(f.layer, node, "Lcl Rotation", ALL);
        f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 100.0)], LINEAR);
        f.curve(drive, "d|Y", &[(0.0, 30.0), (1.0, -50.0)], CUBIC_AUTO);
        f.curve(drive, "d|Z", &[(0.5, 200.0), (1.5, -270.0)], LINEAR);
        let import = agrees_with_ufbx(&f, 2e-6);
        assert!(matches!(track(&import.clips[0], "n", &Property::Rotation).data, TrackData::Euler(_)));
        assert_eq!(import.clips[0].key_count(), 6);
    }
}

#[test]
fn order_and_pre_rotation_count_only_where_rotation_is_active() {
    let mut f = Fbx::new();
    let properties = format!(
        "P: \"RotationActive\", \"bool\", \"\", \"\",0\nP: \"RotationOrder\", \"enum\", \"\", \"\",4\n{}",
        vector("PreRotation", [10.0, -20.0, 30.0])
    );
    let node = f.model("n", 0, &properties);
    let drive = f.drive(f.layer, node, "Lcl Rotation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 100.0)], LINEAR);
    f.curve(drive, "d|Y", &[(0.0, 0.0), (2.0, 100.0)], LINEAR);
    agrees_with_ufbx(&f, 1e-9);
}

#[test]
fn pivots_and_offsets_turn_and_scale_about_themselves() {
    let mut f = Fbx::new();
    let properties = ["RotationOffset", "RotationPivot", "ScalingOffset", "ScalingPivot"]
        .iter()
        .enumerate()
        .map(|(i, n)| vector(n, [1.0 + i as f64, -2.0, 0.5 * i as f64]))
        .collect::<String>();
    let node = f.model("n", 0, &properties);
    f.model("child", node, &vector("Lcl Translation", [1.0, 2.0, 3.0]));
    let drive = f.drive(f.layer, node, "Lcl Rotation", ALL);
    f.curve(drive, "d|Y", &[(0.0, 0.0), (2.0, 170.0)], LINEAR);
    let drive = f.drive(f.layer, node, "Lcl Scaling", [Some(1.0), Some(1.0), Some(1.0)]);
    f.curve(drive, "d|X", &[(0.0, 1.0), (2.0, -3.0)], LINEAR);
    let import = agrees_with_ufbx(&f, 1e-9);
    assert!(import.skeleton.joints()[0].pivot.is_some());
    assert_eq!(import.clips[0].key_count(), 4);
}

#[test]
fn animated_pre_rotation_and_pivots_are_fitted_and_said() {
    let mut f = Fbx::new();
    let properties = format!(
        "P: \"RotationActive\", \"bool\", \"\", \"\",1\n{}{}",
        vector("PreRotation", [0.0, 0.0, 30.0]),
        vector("RotationPivot", [1.0, 0.0, 0.0])
    );
    let node = f.model("n", 0, &properties);
    let drive = f.drive(f.layer, node, "PreRotation", [Some(0.0), Some(0.0), Some(30.0)]);
    f.curve(drive, "d|Z", &[(0.0, 30.0), (1.0, 90.0)], LINEAR);
    let drive = f.drive(f.layer, node, "RotationPivot", [Some(1.0), Some(0.0), Some(0.0)]);
    f.curve(drive, "d|X", &[(0.0, 1.0), (0.5, 4.0)], STEP);
    let drive = f.drive(f.layer, node, "Lcl Rotation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 120.0)], LINEAR);
    let import = agrees_with_ufbx(&f, 2e-6);
    assert!(notes(&import).contains("whole transform is fitted"), "{}", notes(&import));
}

#[test]
fn chains_of_all_three_inherit_types_stand_where_ufbx_puts_them() {
    // Every chain of four of the three types, with uneven scales and turns.
    for case in 0..81 {
        let mut f = Fbx::new();
        let mut parent = 0;
        let mut types = Vec::new();
        for (depth, power) in [1, 3, 9, 27].into_iter().enumerate() {
            let kind = case / power % 3;
            types.push(kind);
            let properties = format!(
                "P: \"InheritType\", \"enum\", \"\", \"\",{kind}\n{}{}{}",
                vector("Lcl Translation", [1.0, 0.5 * depth as f64, -0.25]),
                vector("Lcl Rotation", [20.0, -35.0 * depth as f64, 50.0]),
                vector("Lcl Scaling", [1.5, 0.5, 2.0 + depth as f64])
            );
            parent = f.model(&format!("n{depth}"), parent, &properties);
        }
        let drive = f.drive(f.layer, 101 + 2, "Lcl Scaling", [Some(1.0), Some(1.0), Some(1.0)]);
        f.curve(drive, "d|Y", &[(0.0, 1.0), (2.0, 3.0)], LINEAR);
        let import = agrees_with_ufbx(&f, 1e-9);
        // The top node has no parent to inherit from; FBX's 0 is RrSs, 1 RSrs, 2 Rrs.
        for (joint, kind) in import.skeleton.joints().iter().zip(&types).skip(1) {
            let expected =
                [ScaleInherit::Componentwise, ScaleInherit::Full, ScaleInherit::Ignore][*kind as usize];
            assert_eq!(joint.inherit, expected);
        }
    }
}

#[test]
fn additive_layers_with_a_fixed_weight_add_up_exactly_on_the_keys_of_both() {
    let mut f = Fbx::new();
    let node = f.model("n", 0, &vector("Lcl Translation", [5.0, 0.0, 0.0]));
    let add = f.add_layer(
        f.stack,
        "Add",
        "P: \"Weight\", \"Number\", \"\", \"A\",50\nP: \"BlendMode\", \"enum\", \"\", \"\",0",
    );
    let base = f.drive(f.layer, node, "Lcl Translation", ALL);
    f.curve(base, "d|X", &[(0.0, 0.0), (0.7, 3.0), (2.0, 10.0)], CUBIC_AUTO);
    f.curve(base, "d|Y", &[(0.0, 1.0), (2.0, 4.0)], LINEAR);
    let top = f.drive(add, node, "Lcl Translation", ALL);
    f.curve(top, "d|X", &[(0.5, 2.0), (1.0, -2.0)], LINEAR);
    f.curve(top, "d|Y", &[(0.0, 1.0), (2.0, 4.0)], LINEAR);
    let import = agrees_with_ufbx(&f, 5e-6);
    let x = track(&import.clips[0], "n", &Property::Translation);
    let TrackData::Axes { axes, .. } = &x.data else { panic!("{x:?}") };
    assert_eq!(axes[0].curve().unwrap().times()[..], [0.0, 0.5, 0.7, 1.0, 2.0]);
    assert_eq!(axes[1].curve().unwrap().len(), 2);
}

#[test]
fn a_layer_alone_on_a_property_keeps_its_keys_whatever_its_mode() {
    for mode in 0..3 {
        for weight in [100, 25] {
            let mut f = Fbx::new();
            let node = f.model("n", 0, &vector("Lcl Translation", [5.0, 0.0, 0.0]));
            let properties = format!(
                "P: \"Weight\", \"Number\", \"\", \"A\",{weight}\nP: \"BlendMode\", \"enum\", \"\", \"\",{mode}"
            );
            let layer = f.add_layer(f.stack, "L", &properties);
            let drive = f.drive(layer, node, "Lcl Translation", ALL);
            f.curve(drive, "d|X", &[(0.0, 1.0), (2.0, 4.0)], CUBIC_AUTO);
            let import = agrees_with_ufbx(&f, 5e-6);
            assert_eq!(import.clips[0].key_count(), 2, "mode {mode} weight {weight}");
        }
    }
}

#[test]
fn layers_that_cannot_be_written_as_keys_are_fitted_and_said() {
    for (mode, property, v) in [
        (0, "Lcl Rotation", 0.0),
        (2, "Lcl Rotation", 0.0),
        (0, "Lcl Scaling", 1.0),
        (2, "Lcl Scaling", 1.0),
        (2, "Lcl Translation", 0.0),
    ] {
        let mut f = Fbx::new();
        let node = f.model("n", 0, "");
        let properties = format!(
            "P: \"Weight\", \"Number\", \"\", \"A\",40\nP: \"BlendMode\", \"enum\", \"\", \"\",{mode}"
        );
        let layer = f.add_layer(f.stack, "L", &properties);
        let weight = f.drive(layer, layer, "Weight", [Some(40.0), None, None]);
        f.curve(weight, "d|X", &[(0.0, 0.0), (2.0, 100.0)], LINEAR);
        let base = f.drive(f.layer, node, property, [Some(v); 3]);
        f.curve(base, "d|X", &[(0.0, 1.0), (2.0, 40.0)], LINEAR);
        f.curve(base, "d|Y", &[(0.0, 1.0), (1.0, 20.0)], CUBIC_AUTO);
        let top = f.drive(layer, node, property, [Some(v); 3]);
        f.curve(top, "d|Y", &[(0.3, 1.0), (1.5, 70.0)], LINEAR);
        let import = agrees_with_ufbx(&f, 1e-5);
        assert!(notes(&import).contains("cubic keys"), "{}", notes(&import));
        track(&import.clips[0], "L", &other("Weight"));
    }
}

#[test]
fn all_kinds_of_spans_and_ends_play_as_ufbx_plays_them() {
    for (pre, post, repeats) in
        [('C', 'K', -1), ('R', 'R', -1), ('A', 'A', 2), ('M', 'M', 3), ('K', 'M', 0), ('R', 'A', 1)]
    {
        let mut f = Fbx::new();
        let node = f.model("n", 0, "");
        let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
        let ends =
            |name: &str, c: char| format!("{name}: {{\nType: {}\nRepetition: {repeats}\n}}\n", c as u32);
        let more = ends("Pre-Extrapolation", pre) + &ends("Post-Extrapolation", post);
        let keys = [
            (0.5, 0.0, CUBIC_USER, [4.0, -2.0]),
            (0.75, 2.0, STEP, [0.0, 0.0]),
            (1.0, 5.0, STEP_NEXT, [0.0, 0.0]),
            (1.125, -1.0, LINEAR, [0.0, 0.0]),
            (1.25, 3.0, CUBIC_USER, [1.0, 6.0]),
            (1.5, 4.0, CUBIC_USER, [1.0, 0.0]),
        ];
        f.curve_of(drive, "d|X", &keys, &more);
        let import = agrees_with_ufbx(&f, 2e-5);
        let curve = import.clips[0].tracks[0].data.curves()[0].clone();
        let spans: Vec<SpanKind> = (0..5).map(|i| curve.span(i)).collect();
        use SpanKind::{Hermite, Linear, Step, StepNext};
        assert_eq!(spans, [Hermite, Step, StepNext, Linear, Hermite]);
    }
}

#[test]
fn keys_out_of_order_are_sorted_and_said() {
    let mut f = Fbx::new();
    let node = f.model("n", 0, "");
    let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 20.0), (1.0, 5.0), (3.0, 30.0)], LINEAR);
    f.curve(drive, "d|Y", &[(2.0, 4.0), (1.0, 2.0), (0.0, 0.0)], CUBIC_AUTO);
    let import = f.read();
    let t = track(&import.clips[0], "n", &Property::Translation);
    assert_eq!(t.data.key_count(), 7);
    for (time, x) in [(0.5, 2.5), (1.0, 5.0), (1.5, 12.5), (2.5, 25.0)] {
        let v = t.value_at(time);
        assert!((v[0] - x).abs() < 1e-12 && v[1] >= 0.0 && v[1] <= 4.0, "{time}: {v:?}");
    }
    assert!((t.value_at(0.5)[1] - 1.0).abs() < 1e-9);
    assert!(
        import.notes.iter().any(|n| n.severity == Severity::Repaired && n.text.contains("sorted")),
        "{}",
        notes(&import)
    );
}

#[test]
fn two_keys_at_one_time_are_a_jump() {
    let mut f = Fbx::new();
    let node = f.model("n", 0, "");
    let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (1.0, 10.0), (1.0, -4.0), (2.0, -4.0)], LINEAR);
    let import = agrees_with_ufbx(&f, 1e-6);
    let t = track(&import.clips[0], "n", &Property::Translation);
    assert_eq!((t.value_at(1.0)[0], t.data.key_count()), (-4.0, 4));
    assert!((t.value_at(0.999_999)[0] - 9.999_99).abs() < 1e-9);
}

#[test]
fn visibility_is_a_switch_unless_it_fades() {
    let mut f = Fbx::new();
    let shown = "P: \"Visibility\", \"Visibility\", \"\", \"A\",1";
    let (blink, fade) = (f.model("blink", 0, shown), f.model("fade", 0, shown));
    let drive = f.drive(f.layer, blink, "Visibility", [Some(1.0), None, None]);
    f.curve(drive, "d|Visibility", &[(0.0, 1.0), (1.0, 0.0)], STEP);
    let drive = f.drive(f.layer, fade, "Visibility", [Some(1.0), None, None]);
    f.curve(drive, "d|Visibility", &[(0.0, 1.0), (1.0, 0.0)], LINEAR);
    let import = f.read();
    let t = track(&import.clips[0], "blink", &Property::Visible);
    assert_eq!((t.data.kind(), t.value_at(0.99), t.value_at(1.0)), (ValueKind::Switch, vec![1.0], vec![0.0]));
    let t = track(&import.clips[0], "fade", &other("Visibility"));
    assert_eq!(t.value_at(0.25), [0.75]);
    assert!(notes(&import).contains("between on and off"));
}

#[test]
fn lights_cameras_and_materials_are_tracks_of_their_own() {
    let mut f = Fbx::new();
    let lamp = f.model("lamp", 0, "");
    let light = f.with_properties(
        "NodeAttribute",
        "lampShape",
        "Light",
        "P: \"Intensity\", \"Number\", \"\", \"A\",100\nP: \"Color\", \"Color\", \"\", \"A\",1,1,1",
    );
    f.connect(light, lamp);
    let eye = f.model("eye", 0, "");
    let camera = f.with_properties(
        "NodeAttribute",
        "eyeShape",
        "Camera",
        "P: \"FocalLength\", \"Number\", \"\", \"A\",35",
    );
    f.connect(camera, eye);
    let paint =
        f.with_properties("Material", "paint", "", "P: \"DiffuseColor\", \"Color\", \"\", \"A\",0.8,0.8,0.8");
    let drive = f.drive(f.layer, light, "Intensity", [Some(100.0), None, None]);
    f.curve(drive, "d|Intensity", &[(0.0, 100.0), (1.0, 300.0)], LINEAR);
    let drive = f.drive(f.layer, light, "Color", [Some(1.0); 3]);
    f.curve(drive, "d|Y", &[(0.0, 1.0), (1.0, 0.0)], LINEAR);
    let drive = f.drive(f.layer, camera, "FocalLength", [Some(35.0), None, None]);
    f.curve(drive, "d|FocalLength", &[(0.0, 35.0), (2.0, 85.0)], CUBIC_AUTO);
    let drive = f.drive(f.layer, paint, "DiffuseColor", [Some(0.8); 3]);
    f.curve(drive, "d|X", &[(0.0, 0.8), (1.0, 0.2)], LINEAR);
    let import = f.read();
    let clip = &import.clips[0];
    assert_eq!(track(clip, "lamp", &other("Intensity")).value_at(0.5), [200.0]);
    let color = track(clip, "lamp", &other("Color"));
    assert_eq!((color.data.kind(), color.value_at(0.5)), (ValueKind::Color(3), vec![1.0, 0.5, 1.0]));
    let zoom = track(clip, "eye", &other("FocalLength"));
    assert_eq!((zoom.value_at(2.0), zoom.binding.node), (vec![85.0], Some(1)));
    let paint = track(clip, "paint", &other("DiffuseColor"));
    assert_eq!((paint.binding.node, paint.value_at(1.0)), (None, vec![0.2, 0.8, 0.8]));
}

#[test]
fn muted_channels_stand_still_and_wholly_muted_tracks_are_switched_off() {
    let mut f = Fbx::new();
    let off = f.model("off", 0, "P: \"Lcl Translation\", \"Lcl Translation\", \"\", \"A+M7\",1,2,3");
    let half = f.model("half", 0, "P: \"Lcl Translation\", \"Lcl Translation\", \"\", \"A+M1\",1,2,3");
    for node in [off, half] {
        let drive = f.drive(f.layer, node, "Lcl Translation", [Some(1.0), Some(2.0), Some(3.0)]);
        f.curve(drive, "d|X", &[(0.0, 10.0), (1.0, 20.0)], LINEAR);
        f.curve(drive, "d|Y", &[(0.0, 10.0), (1.0, 20.0)], LINEAR);
        f.curve(drive, "d|Z", &[(0.0, 10.0), (1.0, 20.0)], LINEAR);
    }
    let import = f.read();
    let t = track(&import.clips[0], "off", &Property::Translation);
    assert!(!t.enabled && t.data.key_count() == 6);
    let t = track(&import.clips[0], "half", &Property::Translation);
    assert_eq!((t.enabled, t.value_at(0.5)), (true, vec![1.0, 15.0, 15.0]));
    assert!(notes(&import).contains("muted"));
}

#[test]
fn every_time_mode_is_an_exact_rate() {
    let ratio = |n, d| FrameRate::new(n, d).unwrap();
    let rates = [
        (0, ratio(30, 1)),
        (1, ratio(120, 1)),
        (2, ratio(100, 1)),
        (3, ratio(60, 1)),
        (4, ratio(50, 1)),
        (5, ratio(48, 1)),
        (6, ratio(30, 1)),
        (7, ratio(30, 1)),
        (8, ratio(30000, 1001)),
        (9, ratio(30000, 1001)),
        (10, ratio(25, 1)),
        (11, ratio(24, 1)),
        (12, ratio(1000, 1)),
        (13, ratio(24000, 1001)),
        (14, ratio(25, 2)),
        (15, ratio(96, 1)),
        (16, ratio(72, 1)),
        (17, ratio(60000, 1001)),
    ];
    for (mode, rate) in rates {
        let mut f = Fbx::new();
        f.settings = format!(
            "P: \"TimeMode\", \"enum\", \"\", \"\",{mode}\nP: \"CustomFrameRate\", \"double\", \"Number\", \"\",12.5"
        );
        assert_eq!(f.read().clips[0].rate, Some(rate), "mode {mode}");
    }
}

#[test]
fn a_take_without_a_span_has_that_of_its_keys() {
    for span in [None, Some((0.0, 0.0)), Some((3.0, 1.0))] {
        let mut f = Fbx::bare();
        f.stack = f.take("t", span);
        f.layer = f.add_layer(f.stack, "l", "");
        let node = f.model("n", 0, "");
        let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
        f.curve(drive, "d|X", &[(-0.5, 0.0), (1.25, 1.0)], LINEAR);
        let import = f.read();
        assert_eq!((import.clips[0].start(), import.clips[0].end()), (-0.5, 1.25), "{span:?}");
    }
}

#[test]
fn units_and_axes_come_from_the_file() {
    let mut f = Fbx::new();
    f.settings =
        "P: \"UpAxis\", \"int\", \"Integer\", \"\",2\nP: \"UpAxisSign\", \"int\", \"Integer\", \"\",1\n\
        P: \"FrontAxis\", \"int\", \"Integer\", \"\",1\nP: \"FrontAxisSign\", \"int\", \"Integer\", \"\",-1\n\
        P: \"CoordAxis\", \"int\", \"Integer\", \"\",0\nP: \"CoordAxisSign\", \"int\", \"Integer\", \"\",1\n\
        P: \"UnitScaleFactor\", \"double\", \"Number\", \"\",2.54"
            .to_owned();
    f.model("n", 0, &vector("Lcl Translation", [1.0, 2.0, 3.0]));
    let bytes = f.text();
    let house = import(&Input::alone(bytes.as_bytes(), "z.fbx"), &ReadOptions::default()).unwrap();
    let t = house.skeleton.joints()[0].rest.translation;
    assert!((t - DVec3::new(1.0, 3.0, -2.0) * 0.0254).length() < 1e-12, "{t}");
}

#[test]
fn a_property_connected_to_an_animated_one_moves_with_it() {
    let mut f = Fbx::new();
    let leader = f.model("leader", 0, "");
    let follower = f.model("follower", 0, &vector("Lcl Translation", [0.0, 0.0, 0.0]));
    writeln!(f.connections, "\tC: \"PP\",{leader},\"Lcl Translation\",{follower},\"Lcl Translation\"")
        .unwrap();
    let drive = f.drive(f.layer, leader, "Lcl Translation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 8.0)], CUBIC_AUTO);
    agrees_with_ufbx(&f, 1e-5);
}

#[test]
fn broken_files_are_errors_that_say_where() {
    let mut f = Fbx::new();
    let node = f.model("n", 0, "");
    let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 8.0)], CUBIC_AUTO);
    let text = f.text();
    for cut in (10..text.len()).step_by(37) {
        // A cut file may still be whole up to there; it must not panic nor give anything unsound.
        match read(&text.as_bytes()[..cut]) {
            Ok(import) => assert!(
                import
                    .clips
                    .iter()
                    .all(|c| c.tracks.iter().all(|t| t.value_at(0.5).iter().all(|v| v.is_finite())))
            ),
            Err(e) => {
                let e = e.to_string();
                assert!(e.starts_with("test.fbx: ") && e.len() > 40, "{e}");
            }
        }
    }
    let bad = text.replace("a: 0,8\n", "a: 0,nan\n");
    assert_ne!(bad, text);
    if let Err(e) = read(bad.as_bytes()) {
        assert!(e.to_string().contains("test.fbx"), "{e}");
    }
    let e = read(b"").unwrap_err().to_string();
    assert!(e.contains("test.fbx"), "{e}");
    let e = read(b"Kaydara FBX Binary  \0\x1a\0\xe8\x1c\0\0garbage").unwrap_err().to_string();
    assert!(e.contains("byte") && e.contains("export it again"), "{e}");
}

#[test]
fn too_many_keys_are_refused_by_number() {
    let mut f = Fbx::new();
    let node = f.model("n", 0, "");
    let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (1.0, 8.0), (2.0, 8.0)], LINEAR);
    let options = ReadOptions { max_keys: 2, ..ReadOptions::default() };
    let e = import(&Input::alone(f.text().as_bytes(), "k.fbx"), &options).unwrap_err().to_string();
    assert!(e.contains("3 keys") && e.contains("limit is 2"), "{e}");
}

#[test]
fn a_joint_knows_how_far_its_skin_reaches() {
    let mut f = Fbx::new();
    let body = f.with_properties("Model", "body", "Mesh", "");
    f.connect(body, 0);
    let bone = f.model("bone", 0, &vector("Lcl Translation", [0.0, 1.0, 0.0]));
    let shape = f.object(
        "Geometry",
        "shape",
        "Mesh",
        "Vertices: *9 {\na: 0,1,0,0,4,4,9,9,9\n}\nPolygonVertexIndex: *3 {\na: 0,1,-3\n}",
    );
    f.connect(shape, body);
    let skin = f.object("Deformer", "skin", "Skin", "Version: 101");
    f.connect(skin, shape);
    // The bone stands 1 up, so into its space the mesh moves 1 down. The third vertex has no weight.
    let cluster = f.object(
        "Deformer",
        "cluster",
        "Cluster",
        "Version: 100\nIndexes: *3 {\na: 0,1,2\n}\nWeights: *3 {\na: 1,0.5,0\n}\n\
         Transform: *16 {\na: 1,0,0,0,0,1,0,0,0,0,1,0,0,-1,0,1\n}\n\
         TransformLink: *16 {\na: 1,0,0,0,0,1,0,0,0,0,1,0,0,1,0,1\n}",
    );
    f.connect(cluster, skin);
    f.connect(bone, cluster);
    let import = f.read();
    let joint = &import.skeleton.joints()[import.skeleton.find("bone")[0]];
    assert_eq!((joint.kind, joint.reach), (inbetween::NodeKind::Joint, Some(5.0)));
}

/// A binary node record: name, properties as they lie in the file, children.
fn record(
    at: usize,
    name: &str,
    count: u32,
    properties: &[u8],
    children: &dyn Fn(usize) -> Vec<u8>,
) -> Vec<u8> {
    let head = 13 + name.len() + properties.len();
    let inside = children(at + head);
    let end = at + head + inside.len() + if inside.is_empty() { 0 } else { 13 };
    let mut out = Vec::new();
    out.extend((end as u32).to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((properties.len() as u32).to_le_bytes());
    out.push(name.len() as u8);
    out.extend(name.as_bytes());
    out.extend(properties);
    if !inside.is_empty() {
        out.extend(inside);
        out.extend([0; 13]);
    }
    out
}

#[test]
fn sizes_the_file_cannot_hold_are_errors_and_ask_for_no_memory() {
    for (length, encoding, stored) in
        [(0x7fff_ffffu32, 0u32, 16u32), (0x4000_0000, 1, 16), (0xffff_ffff, 0, 0xffff_fff8)]
    {
        let mut array = vec![b'l'];
        for n in [length, encoding, stored] {
            array.extend(n.to_le_bytes());
        }
        array.extend([0x78, 0x9c, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut name = vec![b'L'];
        name.extend(7i64.to_le_bytes());
        for text in ["AnimCurve::", ""] {
            name.push(b'S');
            name.extend((text.len() as u32).to_le_bytes());
            name.extend(text.as_bytes());
        }
        let mut file = b"Kaydara FBX Binary  \0\x1a\0".to_vec();
        file.extend(7400u32.to_le_bytes());
        let start = file.len();
        file.extend(record(start, "Objects", 0, &[], &|at| {
            record(at, "AnimationCurve", 3, &name, &|at| record(at, "KeyTime", 1, &array, &|_| Vec::new()))
        }));
        file.extend([0; 13]);
        let e = read(&file).unwrap_err().to_string();
        assert!(e.contains("byte") && e.contains("export it again"), "{e}");
    }
    let mut f = Fbx::new();
    let node = f.model("n", 0, "");
    let drive = f.drive(f.layer, node, "Lcl Translation", ALL);
    f.curve(drive, "d|X", &[(0.0, 0.0), (2.0, 8.0)], LINEAR);
    // The count in an ASCII file is a hint: what stands there counts.
    let text = f.text().replace("KeyTime: *2", "KeyTime: *2000000000");
    if let Ok(import) = read(text.as_bytes()) {
        assert_eq!(import.clips[0].key_count(), 2);
    }
}
