//! The controller, on walks made up here: what it promises whatever the clips are.

use std::sync::Arc;

use inbetween::glam::{DQuat, DVec3};
use inbetween::playback::sampler::{ClipSampler, Sampler};
use inbetween::{
    Binding, Clip, Curve, Joint, LocalPose, Property, Skeleton, Track, TrackData, TrackMask, Transform,
    ValueKind, Wrap, math,
};
use inbetween_match::{
    BakeClip, ClipPoses, Controller, Frame, Input, MotionDatabase, SampledPoses, Schema, Script, Settings,
    Steering, bake, judge, record,
};

const DT: f64 = 1.0 / 60.0;

fn skeleton() -> Arc<Skeleton> {
    let at = |x, y, z| Transform { translation: DVec3::new(x, y, z), ..Transform::IDENTITY };
    Arc::new(
        Skeleton::new(vec![
            Joint::new("Root", None, Transform::IDENTITY),
            Joint::new("Hips", Some(0), at(0.0, 1.0, 0.0)),
            Joint::new("LeftFoot", Some(1), at(0.1, -0.9, 0.0)),
            Joint::new("RightFoot", Some(1), at(-0.1, -0.9, 0.0)),
        ])
        .unwrap(),
    )
}

/// A loop of one second that moves at `speed` and turns by `turn` radians.
fn gait(name: &str, speed: f64, turn: f64) -> Arc<Clip> {
    let times: Vec<f64> = (0..=60).map(|k| f64::from(k) / 60.0).collect();
    let mut clip = Clip::new(name, 0.0, 1.0).unwrap();
    clip.wrap = Wrap::Loop;
    let mut place = DVec3::ZERO;
    let mut places = Vec::new();
    let mut turns = Vec::new();
    for t in &times {
        places.extend(place.to_array());
        turns.extend(math::axis_angle(DVec3::Y, turn * t).to_array());
        place += math::axis_angle(DVec3::Y, turn * (t + DT / 2.0)) * DVec3::Z * speed * DT;
    }
    let track = |node: usize, property, kind, rows: Vec<f64>, rest: Vec<f64>| {
        let curve = Curve::linear(kind, times.clone(), rows).unwrap();
        Track::new(Binding::node(node, "", property), TrackData::Curve(curve), rest)
    };
    clip.tracks.push(track(0, Property::Translation, ValueKind::Vector(3), places, vec![0.0; 3]));
    clip.tracks.push(track(0, Property::Rotation, ValueKind::Rotation, turns, vec![0.0, 0.0, 0.0, 1.0]));
    for (node, phase) in [(2, 0.0), (3, 0.5)] {
        let side = if node == 2 { 0.1 } else { -0.1 };
        let rows = times
            .iter()
            .flat_map(|t| {
                let a = std::f64::consts::TAU * (t + phase);
                [side, -0.9 + 0.1 * speed * math::sin(a).max(0.0), 0.25 * speed * math::cos(a)]
            })
            .collect();
        clip.tracks.push(track(node, Property::Translation, ValueKind::Vector(3), rows, vec![0.0; 3]));
    }
    Arc::new(clip)
}

fn clips() -> Vec<Arc<Clip>> {
    vec![
        gait("stand", 0.0, 0.0),
        gait("walk", 1.0, 0.0),
        gait("left", 1.0, 1.5),
        gait("right", 1.0, -1.5),
        gait("run", 3.0, 0.0),
    ]
}

const SCHEMA: &str = "
    interval = \"1/30\"
    root = \"Root\"
    [[channel]]
    type = \"joint_position\"
    joint = \"LeftFoot\"
    [[channel]]
    type = \"joint_position\"
    joint = \"RightFoot\"
    [[channel]]
    type = \"trajectory_position\"
    offsets_s = [-0.2, 0.3, 0.6]
    weight = 2
    [[channel]]
    type = \"trajectory_facing\"
    offsets_s = [0.3, 0.6]
    weight = 2
";

fn database(schema: &Schema) -> Arc<MotionDatabase> {
    let given: Vec<BakeClip> = clips()
        .into_iter()
        .map(|clip| BakeClip { clip, skeleton: skeleton(), file: String::new() })
        .collect();
    Arc::new(bake(&given, schema, 1, &|| {}).unwrap().0)
}

fn controller<'a>(schema: &'a Schema, database: &Arc<MotionDatabase>) -> Controller<'a> {
    controlled(schema, database, Settings::default())
}

fn controlled<'a>(schema: &'a Schema, database: &Arc<MotionDatabase>, settings: Settings) -> Controller<'a> {
    let source = ClipPoses::new(database, skeleton(), clips()).unwrap();
    Controller::new(database.clone(), schema, Box::new(source), settings, &Input::default()).unwrap()
}

fn exact() -> Settings {
    Settings { steering: None, ..Settings::default() }
}

fn play(controller: &mut Controller<'_>, velocity: DVec3, seconds: f64) -> Vec<Frame> {
    let input = Input { velocity, ..Input::default() };
    (0..(seconds * 60.0) as usize).map(|_| controller.update(&input, DT).unwrap()).collect()
}

fn clip_of(database: &MotionDatabase, frame: &Frame) -> String {
    database.clips()[frame.clip as usize].name.clone()
}

#[test]
fn standing_still_is_the_answer_to_wanting_nothing() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let mut controller = controller(&schema, &database);
    let frames = play(&mut controller, DVec3::ZERO, 3.0);
    assert!(frames.iter().all(|f| clip_of(&database, f) == "stand"));
    assert!(frames.iter().all(|f| f.jumped_from.is_none()), "a loop of one pose needs no jump");
    assert!(controller.root().translation.length() < 1e-9);
}

#[test]
fn wanting_to_walk_walks_and_goes_round_the_loop_without_jumping() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let mut controller = controlled(&schema, &database, exact());
    play(&mut controller, DVec3::Z, 2.0);
    let before = controller.root().translation.z;
    let frames = play(&mut controller, DVec3::Z, 4.0);
    assert!(frames.iter().all(|f| clip_of(&database, f) == "walk"));
    assert_eq!(frames.iter().filter(|f| f.jumped_from.is_some()).count(), 0);
    // Root motion is the clip's own, over four loops: 1 m/s to the last digits.
    assert!((controller.root().translation.z - before - 4.0).abs() < 1e-9);
    assert!(controller.root().translation.x.abs() < 1e-9);
}

#[test]
fn a_turn_to_either_side_is_followed() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    for side in [1.0, -1.0] {
        let mut controller = controller(&schema, &database);
        play(&mut controller, DVec3::Z, 1.0);
        let frames = play(&mut controller, DVec3::X * side, 4.0);
        let used: Vec<String> = frames.iter().map(|f| clip_of(&database, f)).collect();
        let name = if side > 0.0 { "left" } else { "right" };
        assert!(used.iter().any(|c| c == name), "{name}");
        let off = (controller.heading() - side * std::f64::consts::FRAC_PI_2).abs();
        assert!(off < 0.3, "{name}: heading {}", controller.heading());
    }
}

/// Where the clips put the root at a time: the model's own sampling.
fn root_of(clip: &Clip, time: f64) -> (DVec3, DQuat) {
    let mut pose = LocalPose::default();
    pose.sample(clip, &skeleton(), time, &TrackMask::all());
    (pose.joints[0].translation, pose.joints[0].rotation)
}

#[test]
fn without_steering_each_step_of_the_root_is_the_clips_own() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let mut controller = controlled(&schema, &database, exact());
    let mut frames = play(&mut controller, DVec3::Z, 2.0);
    frames.extend(play(&mut controller, DVec3::X, 3.0));
    let clips = clips();
    let mut compared = 0;
    for pair in frames.windows(2).filter(|w| w[0].clip == w[1].clip && w[1].jumped_from.is_none()) {
        if pair[1].time_s <= pair[0].time_s {
            continue;
        }
        let clip = &clips[pair[0].clip as usize];
        let ((a, qa), (b, qb)) = (root_of(clip, pair[0].time_s), root_of(clip, pair[1].time_s));
        let (here, there) = (pair[0].root, pair[1].root);
        let own = qa.conjugate() * (b - a);
        let shown = here.rotation.conjugate() * (there.translation - here.translation);
        assert!((own - shown).length() < 1e-9, "{own} and {shown}");
        let turn = math::angle_between(qa.conjugate() * qb, here.rotation.conjugate() * there.rotation);
        assert!(turn < 1e-7, "{turn}");
        compared += 1;
    }
    assert!(compared > 200);
}

#[test]
fn steering_takes_away_what_the_clips_leave_of_a_turn() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    for degrees in [90.0f64, -90.0, 180.0, 33.0] {
        let mut controller = controller(&schema, &database);
        play(&mut controller, DVec3::Z, 2.0);
        let wanted = math::axis_angle(DVec3::Y, degrees.to_radians()) * DVec3::Z;
        play(&mut controller, wanted, 5.0);
        let before = controller.root().translation;
        play(&mut controller, wanted, 1.0);
        let course = (controller.root().translation - before).normalize();
        let off = math::acos(course.dot(wanted).clamp(-1.0, 1.0)).to_degrees();
        assert!(off < 0.5, "after {degrees} degrees the course is off by {off}");
    }
}

#[test]
fn steering_stays_within_its_limits() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let how = Steering { turn_rad_s: 0.4, place_share: 0.1, ..Steering::default() };
    let settings = Settings { steering: Some(how), ..Settings::default() };
    let mut controller = controlled(&schema, &database, settings);
    let mut frames = play(&mut controller, DVec3::Z, 2.0);
    frames.extend(play(&mut controller, DVec3::X, 3.0));
    let clips = clips();
    for pair in frames.windows(2).filter(|w| w[0].clip == w[1].clip && w[1].jumped_from.is_none()) {
        if pair[1].time_s <= pair[0].time_s {
            continue;
        }
        let clip = &clips[pair[0].clip as usize];
        let ((a, qa), (b, qb)) = (root_of(clip, pair[0].time_s), root_of(clip, pair[1].time_s));
        let (here, there) = (pair[0].root, pair[1].root);
        let turn = math::angle_between(qa.conjugate() * qb, here.rotation.conjugate() * there.rotation);
        assert!(turn <= how.turn_rad_s * DT + 1e-7, "{turn}");
        let own = qa.conjugate() * (b - a);
        let shown = here.rotation.conjugate() * (there.translation - here.translation);
        // What is moved, and what turning about the root bends the way by.
        let most = how.place_share * own.length() + own.length() * turn + 1e-9;
        assert!((own - shown).length() <= most, "{own} and {shown}");
    }
}

#[test]
fn no_jump_leads_to_where_a_clip_is_about_to_end() {
    let schema = Schema::read(SCHEMA).unwrap();
    let once = |clip: Arc<Clip>| {
        let mut clip = (*clip).clone();
        clip.wrap = Wrap::Hold;
        Arc::new(clip)
    };
    let clips: Vec<Arc<Clip>> = clips().into_iter().map(once).collect();
    let given: Vec<BakeClip> = clips
        .iter()
        .map(|clip| BakeClip { clip: clip.clone(), skeleton: skeleton(), file: String::new() })
        .collect();
    let database = Arc::new(bake(&given, &schema, 1, &|| {}).unwrap().0);
    let source = ClipPoses::new(&database, skeleton(), clips.clone()).unwrap();
    let mut controller =
        Controller::new(database.clone(), &schema, Box::new(source), Settings::default(), &Input::default())
            .unwrap();
    let mut frames = play(&mut controller, DVec3::ZERO, 3.0);
    frames.extend(play(&mut controller, DVec3::Z, 5.0));
    let jumps: Vec<&Frame> = frames.iter().filter(|f| f.jumped_from.is_some()).collect();
    assert!(!jumps.is_empty());
    for f in &jumps {
        assert!(clips[f.clip as usize].end() - f.time_s >= 0.3 - 1e-6, "{} s of {}", f.time_s, f.clip);
    }
    assert!(jumps.len() < 8 * 4, "{} jumps in 8 s", jumps.len());
}

#[test]
fn the_same_inputs_give_the_same_frames() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let run = || {
        let mut c = controller(&schema, &database);
        let mut frames = play(&mut c, DVec3::Z * 3.0, 1.0);
        frames.extend(play(&mut c, DVec3::X, 1.0));
        (frames, c.pose().clone())
    };
    assert_eq!(run(), run());
}

fn players(clips: &[Arc<Clip>]) -> Vec<Box<dyn Sampler>> {
    let sampler = |clip: &Arc<Clip>| ClipSampler::new(clip.clone(), skeleton()).unwrap();
    clips.iter().map(|clip| Box::new(sampler(clip)) as Box<dyn Sampler>).collect()
}

#[test]
fn players_of_the_clips_show_what_the_clips_show() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let mut from_clips = controller(&schema, &database);
    let source = SampledPoses::new(&database, skeleton(), players(&clips())).unwrap();
    let settings = Settings::default();
    let mut from_players =
        Controller::new(database.clone(), &schema, Box::new(source), settings, &Input::default()).unwrap();
    for wish in [DVec3::Z * 1.5, DVec3::X] {
        let frames = play(&mut from_clips, wish, 1.0);
        let others = play(&mut from_players, wish, 1.0);
        for (a, b) in frames.iter().zip(&others) {
            assert_eq!((a.row, a.jumped_from), (b.row, b.jumped_from));
            assert!((a.root.translation - b.root.translation).length() < 1e-4);
        }
        for (a, b) in from_clips.pose().joints.iter().zip(&from_players.pose().joints) {
            assert!((a.translation - b.translation).length() < 1e-4, "{a:?} {b:?}");
        }
    }
}

#[test]
fn players_that_are_not_the_databases_are_refused() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let few = SampledPoses::new(&database, skeleton(), Vec::new());
    assert!(few.err().unwrap().to_string().contains("the list of players"));
    let mut clips = clips();
    let longer = gait("longer", 1.0, 0.0);
    clips[0] = Arc::new(Clip::new("longer", 0.0, longer.duration() + 9.0).unwrap());
    let other = SampledPoses::new(&database, skeleton(), players(&clips));
    assert!(other.err().unwrap().to_string().contains("was baked with"));
}

#[test]
fn where_no_pose_is_admitted_the_clip_plays_on() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let mut controller = controller(&schema, &database);
    play(&mut controller, DVec3::Z, 1.0);
    let mut nothing = Input { velocity: DVec3::X, ..Input::default() };
    nothing.filter.include = 1 << 5;
    for _ in 0..120 {
        let frame = controller.update(&nothing, DT).unwrap();
        assert!(frame.jumped_from.is_none());
    }
}

#[test]
fn a_scripted_run_is_judged_by_what_was_shown() {
    let schema = Schema::read(SCHEMA).unwrap();
    let database = database(&schema);
    let mut controller = controller(&schema, &database);
    let text =
        "duration_s = 9\n[[step]]\n[[step]]\nat_s = 2\nspeed_m_s = 1\n[[step]]\nat_s = 5\nspeed_m_s = 3";
    let script = Script::read(text, &schema).unwrap();
    let feet = ["LeftFoot".to_owned(), "RightFoot".to_owned()];
    let recording = record(&mut controller, &script, &[2, 3], 60).unwrap();
    assert_eq!(recording.frames.len(), 540);
    let source = (&skeleton(), &clips()[..]);
    let standing = Settings::default().standing;
    let found = judge(&recording, &database, &schema, &script, source, &feet, standing).unwrap();
    assert!(found.changes.iter().all(|c| c.followed), "{:?}", found.changes);
    assert!(found.changes.iter().all(|c| c.reached_s.is_some_and(|s| s < 1.5)), "{:?}", found.changes);
    assert!(found.jumps >= 2 && found.jumps < 30, "{}", found.jumps);
    let shares: f64 = found.shares.iter().map(|s| s.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert!(found.coverage > 0.1 && found.coverage < 1.0);
}
