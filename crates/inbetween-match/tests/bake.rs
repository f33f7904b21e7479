//! Baking, on a character of four joints whose numbers can be checked by hand.

use std::sync::Arc;

use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind, Wrap, math,
};
use inbetween_match::{
    BakeClip, BakeReport, DO_NOT_USE, MatchError, MotionDatabase, Query, Schema, Scratch, bake,
};

fn at(x: f64, y: f64, z: f64) -> Transform {
    Transform { translation: DVec3::new(x, y, z), ..Transform::IDENTITY }
}

/// A root on the ground, hips a metre above, and two feet.
fn skeleton() -> Arc<Skeleton> {
    Arc::new(
        Skeleton::new(vec![
            Joint::new("Root", None, Transform::IDENTITY),
            Joint::new("Hips", Some(0), at(0.0, 1.0, 0.0)),
            Joint::new("LeftFoot", Some(1), at(0.1, -0.9, 0.2)),
            Joint::new("RightFoot", Some(1), at(-0.1, -0.9, -0.3)),
        ])
        .unwrap(),
    )
}

fn vector(node: usize, times: &[f64], values: &[[f64; 3]]) -> Track {
    let curve = Curve::linear(ValueKind::Vector(3), times.to_vec(), values.concat()).unwrap();
    Track::new(
        Binding::node(node, ["Root", "Hips", "LeftFoot", "RightFoot"][node], Property::Translation),
        TrackData::Curve(curve),
        vec![0.0; 3],
    )
}

fn turn(times: &[f64], yaws: &[f64]) -> Track {
    let rows = yaws.iter().flat_map(|a| math::axis_angle(DVec3::Y, *a).to_array()).collect();
    let curve = Curve::linear(ValueKind::Rotation, times.to_vec(), rows).unwrap();
    Track::new(
        Binding::node(0, "Root", Property::Rotation),
        TrackData::Curve(curve),
        DQuat::IDENTITY.to_array().to_vec(),
    )
}

/// Two seconds at 1 m/s along +z.
fn walk() -> Clip {
    let mut clip = Clip::new("walk", 0.0, 2.0).unwrap();
    clip.tracks.push(vector(0, &[0.0, 2.0], &[[0.0; 3], [0.0, 0.0, 2.0]]));
    clip
}

fn given(clip: Clip) -> BakeClip {
    BakeClip { clip: Arc::new(clip), skeleton: skeleton(), file: String::new() }
}

fn schema(head: &str, channels: &[&str]) -> Schema {
    let mut text = format!("interval = 0.1\nroot = \"Root\"\n{head}\n");
    for channel in channels {
        text += &format!("[[channel]]\n{channel}\n");
    }
    Schema::read(&text).unwrap()
}

const AHEAD: &str = "type = \"trajectory_position\"\noffsets_s = [-0.2, 0.2, 0.4, 0.6]";
const FOOT: &str = "type = \"joint_position\"\njoint = \"LeftFoot\"";

fn baked(clip: Clip, schema: &Schema) -> (MotionDatabase, BakeReport) {
    bake(&[given(clip)], schema, 1, &|| {}).unwrap()
}

fn refused(clips: &[BakeClip], schema: &Schema) -> String {
    bake(clips, schema, 1, &|| {}).unwrap_err().to_string()
}

fn row(database: &MotionDatabase, row: u32) -> Vec<f64> {
    (0..database.columns()).map(|c| f64::from(database.feature(row, c))).collect()
}

#[track_caller]
fn near(found: &[f64], expected: &[f64]) {
    let close = found.len() == expected.len()
        // Features pass through normalised f32: seven digits of numbers around 1.
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-6);
    assert!(close, "{found:?} instead of {expected:?}");
}

#[test]
fn a_loops_path_goes_on_with_its_next_pass() {
    let (database, report) = baked(walk(), &schema("loops = [\"walk\"]", &[AHEAD]));
    assert!(report.clips[0].looped);
    assert_eq!(database.len(), 20, "the end of a loop is its start and no pose of its own");
    for pose in [0, 19] {
        near(&row(&database, pose), &[0.0, -0.2, 0.0, 0.2, 0.0, 0.4, 0.0, 0.6]);
    }
}

#[test]
fn a_turning_loop_goes_on_round_the_corner() {
    let mut clip = walk();
    clip.wrap = Wrap::Loop;
    clip.tracks.push(turn(&[0.0, 1.9, 2.0], &[0.0, 0.0, std::f64::consts::FRAC_PI_2]));
    let (database, _) = baked(clip, &schema("", &[AHEAD]));
    // At 1.9 s: 0.1 m more along z, the quarter turn to the left, then along x.
    near(&row(&database, 19), &[0.0, -0.2, 0.1, 0.1, 0.3, 0.1, 0.5, 0.1]);
}

#[test]
fn beyond_the_ends_the_path_runs_out_holds_or_is_cut_as_the_schema_says() {
    let (out, _) = baked(walk(), &schema("", &[AHEAD]));
    assert_eq!(out.len(), 21);
    near(&row(&out, 20), &[0.0, -0.2, 0.0, 0.2, 0.0, 0.4, 0.0, 0.6]);
    near(&row(&out, 0), &[0.0, -0.2, 0.0, 0.2, 0.0, 0.4, 0.0, 0.6]);
    let (hold, _) = baked(walk(), &schema("ends = \"hold\"", &[AHEAD]));
    near(&row(&hold, 17), &[0.0, -0.2, 0.0, 0.2, 0.0, 0.3, 0.0, 0.3]);
    near(&row(&hold, 0), &[0.0, 0.0, 0.0, 0.2, 0.0, 0.4, 0.0, 0.6]);
    let (cut, report) = baked(walk(), &schema("ends = \"cut\"", &[AHEAD]));
    assert_eq!((cut.len(), report.clips[0].cut), (13, 8));
    assert_eq!(cut.runs()[0].first_pose, 2);
    assert!((cut.runs()[0].time_s(12) - 1.4).abs() < 1e-12);
}

#[test]
fn a_turning_path_runs_out_along_its_arc() {
    // A circle of 1 m radius, 1 rad/s to the left, in ten straight pieces a second.
    let times: Vec<f64> = (0..=200).map(|k| f64::from(k) / 100.0).collect();
    let places: Vec<[f64; 3]> = times.iter().map(|t| [1.0 - t.cos(), 0.0, t.sin()]).collect();
    let mut clip = Clip::new("circle", 0.0, 2.0).unwrap();
    clip.tracks.push(vector(0, &times, &places));
    clip.tracks.push(turn(&times, &times));
    let (database, _) = baked(clip, &schema("", &[AHEAD]));
    let circle = |t: f64| [1.0 - t.cos(), t.sin()];
    let expected = [circle(-0.2), circle(0.2), circle(0.4), circle(0.6)].concat();
    // Chords of a hundredth of a radian lie at most 1.3e-5 m inside the circle.
    for pose in [0, 10, 20] {
        for (a, b) in row(&database, pose).iter().zip(&expected) {
            assert!((a - b).abs() < 3e-5, "pose {pose}: {a} {b}");
        }
    }
}

#[test]
fn joints_are_seen_from_the_characters_frame_wherever_it_stands_and_faces() {
    let mut clip = Clip::new("stand", 0.0, 0.5).unwrap();
    clip.tracks.push(vector(0, &[0.0], &[[5.0, 0.0, -7.0]]));
    clip.tracks.push(turn(&[0.0], &[2.0]));
    let facing = "type = \"joint_facing\"\njoint = \"Hips\"\naxis = \"+x\"";
    let (database, _) = baked(clip, &schema("normalisation = \"raw\"", &[FOOT, facing]));
    near(&row(&database, 0), &[0.1, 0.1, 0.2, 1.0, 0.0, 0.0]);
}

#[test]
fn a_planted_foot_has_no_velocity_though_the_body_moves_on() {
    let mut clip = walk();
    // The left foot stays where it is in the world.
    clip.tracks.push(vector(2, &[0.0, 2.0], &[[0.1, -0.9, 0.2], [0.1, -0.9, -1.8]]));
    let channels = [
        "type = \"joint_velocity\"\njoint = \"LeftFoot\"",
        "type = \"joint_velocity\"\njoint = \"RightFoot\"",
        "type = \"root_velocity\"",
        "type = \"contact\"\njoint = \"LeftFoot\"",
        "type = \"contact\"\njoint = \"RightFoot\"",
        "type = \"root_turn\"",
    ];
    let (database, _) = baked(clip, &schema("normalisation = \"raw\"", &channels));
    for pose in [0, 9, 20] {
        near(&row(&database, pose), &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }
}

#[test]
fn mirrored_rows_exchange_the_sides_and_reflect_the_path() {
    let mut clip = walk();
    clip.tracks.push(turn(&[0.0, 2.0], &[0.0, 1.0]));
    let head = "normalisation = \"raw\"\nmirror = [[\"Left\", \"Right\"]]";
    let (database, _) = baked(clip, &schema(head, &[FOOT, AHEAD, "type = \"root_turn\""]));
    assert_eq!(database.len(), 42);
    assert!(!database.runs()[0].mirrored && database.runs()[1].mirrored);
    let (plain, mirrored) = (row(&database, 10), row(&database, 31));
    // The right foot stands at (−0.1, 0.1, −0.3); reflected across x it is the left one.
    near(&mirrored[..3], &[0.1, 0.1, -0.3]);
    for k in 0..4 {
        near(&mirrored[3 + 2 * k..5 + 2 * k], &[-plain[3 + 2 * k], plain[4 + 2 * k]]);
    }
    near(&mirrored[11..], &[-plain[11]]);
}

#[test]
fn poses_tagged_do_not_use_at_an_end_are_left_out_of_velocities_and_paths_too() {
    // A T-pose stands far away for one frame before the walk begins.
    let mut clip = Clip::new("walk", 0.0, 2.0).unwrap();
    clip.tracks.push(vector(
        0,
        &[0.0, 0.099, 0.1, 2.0],
        &[[9.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 0.1], [0.0, 0.0, 2.0]],
    ));
    let head = "normalisation = \"raw\"";
    let tag = "type = \"root_velocity\"\n[[tag]]\nset = [\"do-not-use\"]\nto_s = 0.1";
    let (database, report) = baked(clip, &schema(head, &[AHEAD, tag]));
    assert_eq!(report.clips[0].do_not_use, 1);
    assert_eq!(database.runs()[0].first_pose, 1);
    near(&row(&database, 0), &[0.0, -0.2, 0.0, 0.2, 0.0, 0.4, 0.0, 0.6, 0.0, 1.0]);
}

#[test]
fn categories_come_from_tags_over_time_and_from_a_track_of_the_clip() {
    let mut clip = walk();
    let field =
        Curve::linear(ValueKind::Scalar, vec![0.0, 1.0, 1.5], vec![0.0, 4.0, f64::from(DO_NOT_USE)]).unwrap();
    clip.tracks.push(Track::new(
        Binding {
            target: "Root".into(),
            node: None,
            property: Property::Other("category".into()),
            path: None,
        },
        TrackData::Curve(field),
        vec![0.0],
    ));
    let head = "category_track = { target = \"Root\", property = \"category\" }\n[categories]\nstart = 0\n[[tag]]\nset = [\"start\"]\nto_s = 0.5";
    let (database, report) = baked(clip, &schema(head, &[AHEAD]));
    let tags: Vec<u32> = (0..database.len() as u32).map(|r| database.tags_of(r)).collect();
    assert_eq!(tags[..5], [1; 5]);
    assert_eq!(tags[5..10], [0; 5], "a field is not interpolated");
    assert_eq!(tags[10..], [4; 5]);
    assert_eq!(report.clips[0].do_not_use, 6);
}

#[test]
fn tags_that_mark_nothing_are_reported() {
    let head = "[[tag]]\nset = [\"3\"]\nclip = \"wlak\"\n[[tag]]\nset = [\"3\"]\nfrom_s = 100\nto_s = 101\n\
                [[tag]]\nset = [\"3\"]\nto_s = 0.1\n";
    let (_, report) = baked(walk(), &schema(head, &["type = \"root_velocity\""]));
    let numbers: Vec<usize> = report.idle_tags.iter().map(|t| t.0).collect();
    assert_eq!(numbers, [1, 2]);
    assert!(report.idle_tags[0].1.contains("wlak") && report.idle_tags[1].1.contains("100 s"));
}

#[test]
fn the_phase_goes_round_between_touch_downs() {
    let mut clip = Clip::new("march", 0.0, 1.0).unwrap();
    clip.wrap = Wrap::Loop;
    // The foot is up from 0.5 s to 0.9 s.
    clip.tracks.push(vector(
        2,
        &[0.0, 0.5, 0.6, 0.8, 0.9, 1.0],
        &[
            [0.1, -0.9, 0.0],
            [0.1, -0.9, 0.0],
            [0.1, -0.5, 0.0],
            [0.1, -0.5, 0.0],
            [0.1, -0.9, 0.0],
            [0.1, -0.9, 0.0],
        ],
    ));
    let phase = "type = \"phase\"\njoint = \"LeftFoot\"\nheight_m = 0.12";
    let (database, _) = baked(clip, &schema("normalisation = \"raw\"", &[phase]));
    let angles: Vec<f64> = (0..10).map(|r| row(&database, r)).map(|v| v[1].atan2(v[0])).collect();
    for (a, b) in angles.iter().zip(&angles[1..]) {
        let step = (b - a).rem_euclid(std::f64::consts::TAU);
        assert!((step - std::f64::consts::TAU / 10.0).abs() < 1e-5, "{angles:?}");
    }
}

#[test]
fn rows_that_no_search_can_return_are_reported() {
    let (_, report) = baked(walk(), &schema("loops = [\"walk\"]", &["type = \"root_velocity\""]));
    // Every pose of a steady walk has the same velocity up to rounding in its last bit;
    // the first of each kind wins.
    assert!(report.unreachable.iter().all(|(row, wins)| wins < row));
    let mut still = Clip::new("still", 0.0, 1.0).unwrap();
    still.tracks.push(vector(0, &[0.0], &[[0.0; 3]]));
    let (database, report) = baked(still, &schema("", &[FOOT]));
    assert_eq!(report.unreachable.len(), database.len() - 1);
    assert_eq!(report.constant.len(), 3);
}

#[test]
fn a_baked_pose_is_found_again_by_its_own_features() {
    let mut clip = walk();
    clip.tracks.push(turn(&[0.0, 0.7, 2.0], &[0.0, 1.0, -1.0]));
    let (database, _) = baked(clip, &schema("", &[FOOT, AHEAD, "type = \"root_turn\""]));
    let mut scratch = Scratch::new();
    for pose in 0..database.len() as u32 {
        let features: Vec<f32> = (0..database.columns()).map(|c| database.feature(pose, c)).collect();
        let query = Query { features: &features, ..Query::default() };
        let found = database.search(&query, &mut scratch).unwrap().unwrap();
        assert!(found.cost < 1e-10, "{found:?}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let text = refused(&[given(walk())], &schema("", &["type = \"joint_position\"\njoint = \"LeftFot\""]));
    assert!(text.contains("LeftFot") && text.contains("LeftFoot") && text.contains("channel"), "{text}");
    let other = Schema::read("interval = 0.1\nroot = \"Rot\"\n[[channel]]\ntype = \"root_turn\"").unwrap();
    let text = refused(&[given(walk())], &other);
    assert!(text.contains("root") && text.contains("\"Rot\""), "{text}");
    let text = refused(&[], &schema("", &[FOOT]));
    assert!(text.contains("no clip"), "{text}");

    let mut joints = skeleton().joints().to_vec();
    joints[2].name = "LFoot".into();
    let renamed = BakeClip { skeleton: Arc::new(Skeleton::new(joints).unwrap()), ..given(walk()) };
    let text = refused(&[given(walk()), renamed], &schema("", &[FOOT]));
    assert!(text.contains("different skeletons") && text.contains("LFoot"), "{text}");

    let text = refused(&[given(walk())], &schema("mirror = [[\"Left\", \"Rihgt\"]]", &[FOOT]));
    assert!(text.contains("RihgtFoot"), "{text}");
    let track = "type = \"track\"\ntarget = \"Root\"\nproperty = \"stamina\"";
    let text = refused(&[given(walk())], &schema("", &[track]));
    assert!(text.contains("stamina") && text.contains("missing ="), "{text}");
    let (database, _) = baked(walk(), &schema("", &[&format!("{track}\nmissing = 3"), AHEAD]));
    assert_eq!(database.feature(0, 0), 3.0);

    let all = schema("", &[&format!("{AHEAD}\n[[tag]]\nset = [\"do-not-use\"]")]);
    let error = bake(&[given(walk())], &all, 1, &|| {}).unwrap_err();
    assert!(matches!(error, MatchError::NoRows(_)), "{error}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let clips: Vec<BakeClip> = (0..7)
        .map(|k| {
            let mut clip = walk();
            clip.name = format!("walk {k}");
            clip.tracks.push(turn(&[0.0, 2.0], &[0.0, f64::from(k) * 0.3]));
            given(clip)
        })
        .collect();
    let schema = schema("", &[FOOT, AHEAD]);
    let (one, _) = bake(&clips, &schema, 1, &|| {}).unwrap();
    let (many, _) = bake(&clips, &schema, 5, &|| {}).unwrap();
    for r in 0..one.len() as u32 {
        assert_eq!(row(&one, r), row(&many, r));
    }
    assert_eq!(one.runs(), many.runs());
}
