//! Camera paths in and out of files: what is read is where the file says, what is
//! written plays as the path does, and what is wrong is named.

mod common;

use inbetween::camera::*;
use inbetween::spline::quat_rotate;
use inbetween_formats::camera::*;
use inbetween_formats::{Input, ReadOptions, Severity, import_path};

fn read(text: &str) -> CameraFile {
    read_camera(text.as_bytes(), "path", &CameraOptions::default()).unwrap()
}

fn error(text: &str, mentions: &[&str]) {
    let error = read_camera(text.as_bytes(), "path.json", &CameraOptions::default()).expect_err("an error");
    let text = error.to_string();
    for m in mentions {
        assert!(text.contains(m), "{text:?} does not mention {m:?}");
    }
}

fn sight(pose: &CameraPose) -> [f64; 3] {
    quat_rotate(pose.rotation, [0.0, 0.0, -1.0])
}

fn near(a: [f64; 3], b: [f64; 3], tolerance: f64) -> bool {
    (0..3).all(|k| (a[k] - b[k]).abs() <= tolerance)
}

/// Largest distance (metres) and angle (radians) between two paths.
fn apart(a: &CameraPath, b: &CameraPath, times: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut worst = (0.0_f64, 0.0_f64);
    for t in times {
        let (p, q) = (a.pose(t), b.pose(t));
        for k in 0..3 {
            worst.0 = worst.0.max((p.position[k] - q.position[k]).abs());
        }
        for axis in [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]] {
            let (u, v) = (quat_rotate(p.rotation, axis), quat_rotate(q.rotation, axis));
            worst.1 = worst.1.max((0..3).map(|k| (u[k] - v[k]).abs()).fold(0.0, f64::max));
        }
    }
    worst
}

fn steps(path: &CameraPath, n: u32) -> impl Iterator<Item = f64> {
    let (start, end) = (path.start(), path.end());
    (0..=n).map(move |k| start + (end - start) * f64::from(k) / f64::from(n))
}

/// A path with everything a pose has.
fn sample_path() -> CameraPath {
    let names = ["x", "y", "z", "yaw", "pitch", "roll", "fov"].map(Channel::new);
    let keys = [
        (0.0, [0.0, 1.7, 0.0, 0.1, -0.2, 0.0, 1.0]),
        (1.25, [3.0, 2.0, -1.0, 2.9, 0.3, 0.05, 0.7]),
        (2.0, [4.0, 1.0, -6.0, -2.8, 0.1, -0.1, 0.9]),
        (4.5, [-1.0, 1.5, -8.0, -1.0, 0.0, 0.0, 1.1]),
    ];
    let keys = keys.into_iter().map(|(t, v)| CameraKey::new(t, v.to_vec())).collect();
    let mut path = CameraPath::new(names.to_vec(), keys).unwrap();
    path.set_smoothing(Smoothing::amount(1.0)).unwrap();
    path
}

#[test]
fn our_own_json_gives_the_same_path_back_bit_for_bit() {
    let mut path = sample_path();
    path.set_smoothing(Smoothing {
        amounts: vec![("fov".into(), 0.5)],
        unwrap: Unwrap::AsAuthored,
        overshoot: Overshoot::Prevent,
        ..Smoothing::amount(0.75)
    })
    .unwrap();
    path.close(Some(1.5)).unwrap();
    let target = MovingTarget::new(&[0.0, 1.0], &[[0.0; 3], [1.0, 2.0, 3.0]], false).unwrap();
    path.follow(Some(
        target.clone().turning(&[0.0, 1.0], &[[0.0, 0.0, 0.0, 1.0], [0.0, 0.6, 0.0, 0.8]]).unwrap(),
    ));
    path.set_look_at(Some(LookAt::Moving(Box::new(target)))).unwrap();
    path.set_level(true);
    let again = read(&write_json(&path)).path;
    assert_eq!(again.keys(), path.keys());
    assert_eq!((again.smoothing(), again.closing_gap()), (path.smoothing(), path.closing_gap()));
    for t in steps(&path, 40) {
        assert_eq!(again.pose(t), path.pose(t));
    }
}

#[test]
fn a_path_written_by_hand_is_read_in_degrees() {
    let file = read(
        r#"{"format": "inbetween-camera", "version": 1, "smoothing": {"amount": 1}, "keys": [
            {"time": 0, "position": [0, 2, 0], "yaw": 90, "fov": 60, "channels": {"focus": 3}},
            {"time": 1, "position": [1, 2, 0], "yaw": 90, "fov": 30, "channels": {"focus": 5}, "straight": true},
            {"time": 2, "position": [4, 2, 0], "yaw": 90, "fov": 60, "channels": {"focus": 4}, "mode": "board"}]}"#,
    );
    let pose = file.path.pose(0.0);
    assert!(near(sight(&pose), [-1.0, 0.0, 0.0], 1e-15));
    assert!((pose.fov.unwrap() - 60_f64.to_radians()).abs() < 1e-15);
    assert!(file.path.smoothing().on);
    assert_eq!(file.path.channel("focus").unwrap(), 5);
    assert_eq!(&*file.path.key(2).unwrap().mode, "board");
}

#[test]
fn mistakes_in_our_own_json_are_named_with_their_place() {
    let with = |keys: &str| format!(r#"{{"format": "inbetween-camera", "version": 1, "keys": [{keys}]}}"#);
    error(&with(""), &["at least one key"]);
    error(&with(r#"{"time": 0, "fov": 1}, {"time": 1}"#), &["keys[1]", "fov as in the first key"]);
    error(&with(r#"{"time": 0, "fov": 1}, {"time": 1, "fov": 1, "yaw": 3}"#), &["keys[1]", "also yaw"]);
    error(&with(r#"{"time": "soon", "fov": 1}"#), &["keys[0].time", "a finite number", "soon"]);
    error(&with(r#"{"time": 0, "position": [1, 2]}"#), &["keys[0].position", "a list of 3 numbers"]);
    error(&with(r#"{"time": 0, "fvo": 1}"#), &["keys[0]", "fvo"]);
    error(&with(r#"{"time": 0, "fov": 1}, {"time": 0, "fov": 2}"#), &["same time"]);
    error(&with(r#"{"time": 0, "rotation": [0, 0, 0, 0]}"#), &["keys[0].rotation", "not zero"]);
    error(r#"{"format": "inbetween-camera", "version": 9, "keys": []}"#, &["version", "9"]);
    error(r#"{"format": "inbetween-camera", "version": 1, "keys": [1e999]}"#, &["line 1"]);
    error(r#"{"format": "inbetween-camera", "version": 1"#, &["line 1", "JSON"]);
    error("no camera at all", &["camera paths in its own JSON"]);
    assert!(read_camera(b"{\"format\": \"inbetween-camera\" \xff", "x", &CameraOptions::default()).is_err());
}

#[test]
fn an_hlae_path_is_turned_from_quake_axes() {
    // Facing +y (left of +x) and 30 degrees down, at (64, 128, 32) inches.
    let file = read(
        r#"<?xml version="1.0" encoding="utf-8"?><campath positionInterp="linear" hold><points><!--a comment-->
        <p t="1.5" x="64" y="128" z="32" fov="90" rx="0" ry="30" rz="90"/>
        <p t="2.5" x="64" y="128" z="64" fov="90" qw="0.7071067811865476" qx="0" qy="0" qz="0.7071067811865476" selected="1"/>
        </points></campath>"#,
    );
    let path = &file.path;
    assert_eq!(path.times(), [1.5, 2.5]);
    let pose = path.pose(1.5);
    assert!(near(pose.position, [-128.0 * 0.0254, 32.0 * 0.0254, -64.0 * 0.0254], 1e-12));
    // Quake's +y is our −x.
    assert!(near(sight(&pose), [-(3_f64.sqrt() / 2.0), -0.5, 0.0], 1e-12), "{:?}", sight(&pose));
    assert!(near(sight(&path.pose(2.5)), [-1.0, 0.0, 0.0], 1e-12));
    // 90 degrees across at 4:3 are 73.74 upright.
    assert!((pose.fov.unwrap().to_degrees() - 73.739_795_291_688).abs() < 1e-9);
    assert!(file.notes.iter().any(|n| n.text.contains("positionInterp")));
    error("<campath><points><p t='1' x='1' y='2'/></points></campath>", &["point 0", "attribute z"]);
    error(
        "<campath><points><p t='1' x='1' y='2' z='nan' rx='0' ry='0' rz='0'/></points></campath>",
        &["point 0, z"],
    );
    error("<campath><points><p t='1' x='1' y='2' z='3'/></points></campath>", &["rx, ry and rz, or"]);
    error("<campath><points></points></campath>", &["at least one point"]);
    error("<campath><points><p t='1'", &["XML"]);
}

#[test]
fn a_tum_line_is_a_camera_with_optical_axes_in_a_world_with_z_up() {
    // Looking along the world's +x: optical z forward = world x, optical y down = world −z.
    // Columns of the rotation: right = −y, down = −z, forward = x.
    let file = read("# comment\n1.5 1 2 3 -0.5 0.5 -0.5 0.5\n");
    let pose = file.path.pose(1.5);
    assert!(near(pose.position, [1.0, 3.0, -2.0], 1e-15));
    assert!(near(sight(&pose), [1.0, 0.0, 0.0], 1e-15), "{:?}", sight(&pose));
    assert!(near(quat_rotate(pose.rotation, [0.0, 1.0, 0.0]), [0.0, 1.0, 0.0], 1e-15));
    error("1 2 3 4 0 0 0 1\n1 2 3 4 0 0 0\n", &["line 2", "8 numbers", "7"]);
    error("1 2 3 4 0 0 0 0\n", &["line 1", "not zero"]);
    error("1 2 3 4 0 0 0 1\n0.5 2 3 4 0 0 0 1\n", &["out of order"]);
}

#[test]
fn a_csv_table_is_read_by_its_header() {
    let file =
        read("mode,time,x,z,y,yaw,pitch_rad,exposure\nfree,0,1,3,2,90,0.5,7\nboard,1,1,3,2,90,0.5,8\n");
    let path = &file.path;
    assert!(near(path.pose(0.0).position, [1.0, 2.0, 3.0], 0.0));
    let angles = path.angles(0.0);
    assert!((angles.yaw - 90_f64.to_radians()).abs() < 1e-15 && (angles.pitch - 0.5).abs() < 1e-15);
    assert_eq!(&*path.key(1).unwrap().mode, "board");
    assert!(path.channel("exposure").is_ok());
    error("time,x\n0,1\n1,soon\n", &["line 3, column x", "soon"]);
    error("time,x\n0\n", &["line 2", "2 cells", "1 cells"]);
    error("time,qx,qy\n0,1,2\n", &["qx, qy, qz and qw together"]);
}

#[test]
fn what_is_written_and_read_again_is_the_same_camera() {
    let path = sample_path();
    for (format, metres, radians) in [
        (CameraFormat::Json, 0.0, 1e-15),
        (CameraFormat::Csv, 1e-15, 1e-14),
        (CameraFormat::Hlae, 1e-14, 1e-14),
        (CameraFormat::Tum, 1e-14, 1e-14),
        (CameraFormat::Nerfstudio, 1e-14, 1e-13),
    ] {
        let (text, _) = write_shots(format, &Shots::at_keys(&path), &CameraOptions::default()).unwrap();
        assert_eq!(CameraFormat::of(text.as_bytes(), "x"), Some(format));
        let file = read(&text);
        let (place, turn) = apart(&path, &file.path, path.times().iter().copied());
        assert!(place <= metres && turn <= radians, "{format:?}: {place:e} m, {turn:e} rad");
        if let (Some(a), Some(b)) = (path.pose(1.25).fov, file.path.pose(1.25).fov) {
            assert!((a - b).abs() < 1e-12, "{format:?}: {a} {b}");
        }
        // Sampled, it plays as the path does: what is off lies between the frames.
        let (text, _) =
            write_shots(format, &Shots::sampled(&path, 50.0).unwrap(), &CameraOptions::default()).unwrap();
        let mut file = read(&text);
        file.path.set_smoothing(Smoothing::amount(1.0)).unwrap();
        let (place, turn) = apart(&path, &file.path, steps(&path, 997));
        assert!(place < 2e-3 && turn < 2e-3, "{format:?} sampled: {place:e} m, {turn:e} rad");
    }
    let refused = write_shots(CameraFormat::Cutscene, &Shots::at_keys(&path), &CameraOptions::default());
    assert!(refused.unwrap_err().to_string().contains("cannot hold"));
    assert!(write_shots(CameraFormat::Csv, &Shots::default(), &CameraOptions::default()).is_err());
}

#[test]
fn frames_include_the_end_even_where_it_is_on_no_frame() {
    let path = sample_path();
    let times =
        |rate: f64| Shots::sampled(&path, rate).unwrap().shots.iter().map(|s| s.time).collect::<Vec<_>>();
    assert_eq!(times(2.0).len(), 10);
    let odd = times(0.7);
    assert_eq!((odd.len(), odd[odd.len() - 1]), (5, 4.5));
    assert_eq!(times(10.0)[45], 4.5);
    for rate in [1e12, f64::NAN, 0.0, f64::INFINITY] {
        let refused = Shots::sampled(&path, rate).unwrap_err().to_string();
        assert!(refused.contains("frame rate"), "{refused}");
    }
}

#[test]
fn a_path_as_a_clip_plays_as_the_path_does() {
    for closed in [None, Some(1.3)] {
        let mut path = sample_path();
        path.close(closed).unwrap();
        let import = to_import(&path, "shot").unwrap();
        assert_eq!(cameras_of(&import), [0]);
        let clip = &import.clips[0];
        let track = |name| clip.tracks.iter().find(|t| t.binding.property.name() == name).unwrap();
        for t in steps(&path, 777) {
            let pose = path.pose(t);
            let place = track("translation").value_at(t);
            assert!((0..3).all(|k| (place[k] - pose.position[k]).abs() < 1e-12), "at {t}");
            let q = track("rotation").value_at(t);
            let cosine: f64 = (0..4).map(|k| q[k] * pose.rotation[k]).sum();
            // 1e-5 rad between the sampled rotations: 1 − cos(angle/2).
            assert!(1.0 - cosine.abs() < 1e-10, "at {t}: {:e}", 1.0 - cosine.abs());
            assert!((track("camera.yfov").value_at(t)[0] - pose.fov.unwrap()).abs() < 1e-12);
        }
        // And back: a path through the clip's keys.
        let back = path_of_clip(&import, 0, 0, "shot.inb").unwrap();
        let (place, turn) = apart(&path, &back.path, path.times().iter().copied());
        assert!(place < 1e-12 && turn < 1e-12);
    }
}

#[test]
fn a_camera_through_a_gltf_file_comes_back() {
    let path = sample_path();
    let import = to_import(&path, "shot").unwrap();
    let options = inbetween_formats::gltf::WriteOptions::default();
    let bytes = inbetween_formats::gltf::write(&import, &options).unwrap().bytes;
    let folder = std::env::temp_dir().join(format!("inbetween-camera-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("shot.glb");
    std::fs::write(&file, bytes).unwrap();
    let again = import_path(&file, &ReadOptions::default()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let node = cameras_of(&again)[0];
    let back = path_of_clip(&again, 0, node, "shot.glb").unwrap();
    let (place, turn) = apart(&path, &back.path, path.times().iter().copied());
    // glTF keeps f32.
    assert!(place < 2e-6 && turn < 2e-6, "{place:e} {turn:e}");
    assert!((back.path.pose(1.25).fov.unwrap() - 0.7).abs() < 1e-6);
}

#[test]
fn the_four_real_files_are_read_where_they_say() {
    let Some(data) = common::data_dir() else { return };
    let open = |name: &str| {
        let bytes = std::fs::read(data.join("camera").join(name)).unwrap();
        (read_camera(&bytes, name, &CameraOptions::default()).unwrap(), bytes)
    };
    let (truth, bytes) = open("evo/freiburg1_xyz-groundtruth.txt");
    assert_eq!((truth.format, truth.path.len()), (CameraFormat::Tum, 3000));
    // Written again it has the same numbers.
    let (text, _) =
        write_shots(CameraFormat::Tum, &Shots::at_keys(&truth.path), &CameraOptions::default()).unwrap();
    let rows = |text: &str| -> Vec<Vec<f64>> {
        let rows = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
        rows.map(|l| l.split_whitespace().map(|w| w.parse().unwrap()).collect()).collect()
    };
    for (a, b) in rows(&text).iter().zip(rows(std::str::from_utf8(&bytes).unwrap())) {
        assert_eq!(a[0], b[0]);
        let length = b[4..].iter().map(|x| x * x).sum::<f64>().sqrt();
        let sign = (4..8).map(|k| a[k] * b[k]).sum::<f64>().signum();
        for k in 1..8 {
            let (found, wanted) = if k < 4 { (a[k], b[k]) } else { (sign * a[k], b[k] / length) };
            assert!((found - wanted).abs() < 1e-12);
        }
    }
    let (slam, _) = open("evo/freiburg1_xyz-rgbdslam.txt");
    assert_eq!(slam.path.len(), 788);
    let (nerf, bytes) = open("nerfstudio_translucent/camera_path.json");
    assert_eq!((nerf.format, nerf.path.len(), nerf.rate), (CameraFormat::Nerfstudio, 7, Some(24.0)));
    assert_eq!(nerf.path.end(), 4.0);
    // The frames the viewer baked pass through the keys at the keys' times.
    let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    for (i, &t) in nerf.path.times().iter().enumerate().take(6) {
        let frame = &document["camera_path"][(t * 24.0).round() as usize]["camera_to_world"];
        let of = |k: usize| frame[k].as_f64().unwrap();
        let pose = nerf.path.pose(t);
        assert!(near(pose.position, [of(3), of(11), -of(7)], 1e-9), "key {i}");
        let back = quat_rotate(pose.rotation, [0.0, 0.0, 1.0]);
        assert!(near(back, [of(2), of(10), -of(6)], 1e-6), "key {i}: {back:?}");
    }
    let (scene, _) = open("settlers6-qsb/c01.cs");
    assert_eq!((scene.format, scene.path.len()), (CameraFormat::Cutscene, 4));
    assert_eq!(scene.path.times(), [0.0, 5.0, 10.0, 15.0]);
    assert!(scene.notes.iter().any(|n| n.severity == Severity::Lost && n.text.contains("2 events")));
    let pose = scene.path.pose(0.0);
    assert!(near(pose.position, [2.554967956542969, 47.4281884765625, -86.01501953125], 1e-9));
    let to = [
        3.396143798828125 - 2.554967956542969,
        46.930673828125 - 47.4281884765625,
        -85.803125 + 86.01501953125,
    ];
    let length = to.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(near(sight(&pose), to.map(|x| x / length), 1e-12));
}

#[test]
fn files_cut_short_or_spoilt_are_errors_or_paths_and_never_a_panic() {
    let path = sample_path();
    let mut texts: Vec<String> = [
        CameraFormat::Json,
        CameraFormat::Csv,
        CameraFormat::Hlae,
        CameraFormat::Tum,
        CameraFormat::Nerfstudio,
    ]
    .iter()
    .map(|f| write_shots(*f, &Shots::at_keys(&path), &CameraOptions::default()).unwrap().0)
    .collect();
    texts.push(write_json(&path));
    texts.push(
        "<root><event classname=\"ECam::CCutsceneEventCamera\"><Turn>0</Turn><PositionX>1</PositionX>\
         <PositionY>2</PositionY><PositionZ>3</PositionZ><LookAtX>1</LookAtX><LookAtY>2</LookAtY>\
         <LookAtZ>4</LookAtZ><FOV>40</FOV></event></root>"
            .to_owned(),
    );
    let mut seed = 99_u64;
    let mut dice = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut read_whole = 0;
    for text in &texts {
        let mut tried: Vec<Vec<u8>> =
            (0..60).map(|i| text.as_bytes()[..text.len() * i / 60].to_vec()).collect();
        for _ in 0..400 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..1 + dice(4) {
                let at = dice(bytes.len());
                bytes[at] = b"0123456789eE+-.,\"[]{}<>/ naNif\0\xff"[dice(32)];
            }
            tried.push(bytes);
        }
        tried.push(text.as_bytes().to_vec());
        for bytes in tried {
            if let Ok(file) = read_camera(&bytes, "x", &CameraOptions::default()) {
                read_whole += 1;
                for t in steps(&file.path, 5) {
                    let pose = file.path.pose(t);
                    assert!(pose.position.iter().chain(&pose.rotation).all(|x| !x.is_nan()));
                }
                let _ = file.path.status();
                let _ = file.path.overshoot();
            }
        }
    }
    assert!(read_whole >= texts.len(), "the files themselves are sound");
}

/// An FBX with a camera that goes 10 m along x while it turns a quarter to the left, and whose
/// `property` goes through `lens`; `mode` is its aperture mode.
fn fbx_camera(mode: u32, property: &str, lens: [f64; 3]) -> String {
    let curve = |id: u32, values: [f64; 3]| {
        format!(
            "AnimationCurve: {id}, \"AnimCurve::\", \"\" {{\nDefault: 0\nKeyVer: 4008\nKeyTime: *3 {{\na: \
             0,46186158000,92372316000\n}}\nKeyValueFloat: *3 {{\na: {},{},{}\n}}\nKeyAttrFlags: *1 {{\na: 4\n}}\n\
             KeyAttrDataFloat: *4 {{\na: 0,0,0,0\n}}\nKeyAttrRefCount: *1 {{\na: 3\n}}\n}}\n",
            values[0], values[1], values[2]
        )
    };
    let node = |id: u32, name: &str, properties: &str| {
        format!(
            "AnimationCurveNode: {id}, \"AnimCurveNode::{name}\", \"\" {{\nProperties70:  {{\n{properties}}}\n}}\n"
        )
    };
    let number = |name: &str, value: f64| format!("P: \"{name}\", \"Number\", \"\", \"A\",{value}\n");
    let three = |y: f64| [number("d|X", 0.0), number("d|Y", y), number("d|Z", 0.0)].concat();
    [
        "; FBX 7.4.0 project file\nFBXHeaderExtension:  {\nFBXHeaderVersion: 1003\nFBXVersion: 7400\n}\n\
         GlobalSettings:  {\nVersion: 1000\nProperties70:  {\nP: \"UpAxis\", \"int\", \"Integer\", \"\",1\n\
         P: \"UpAxisSign\", \"int\", \"Integer\", \"\",1\nP: \"FrontAxis\", \"int\", \"Integer\", \"\",2\n\
         P: \"FrontAxisSign\", \"int\", \"Integer\", \"\",1\nP: \"CoordAxis\", \"int\", \"Integer\", \"\",0\n\
         P: \"CoordAxisSign\", \"int\", \"Integer\", \"\",1\nP: \"UnitScaleFactor\", \"double\", \"Number\", \"\",1.0\n}\n}\n\
         Objects:  {\nNodeAttribute: 600, \"NodeAttribute::Shot\", \"Camera\" {\nProperties70:  {\n\
         P: \"FilmWidth\", \"double\", \"Number\", \"\",1.417\nP: \"FilmHeight\", \"double\", \"Number\", \"\",0.945\n"
            .to_owned(),
        format!("P: \"ApertureMode\", \"enum\", \"\", \"\",{mode}\n"),
        ["FieldOfView", "FieldOfViewX", "FieldOfViewY"].map(|name| number(name, 40.0)).concat(),
        number("FocalLength", 35.0),
        "}\nTypeFlags: \"Camera\"\n}\nModel: 100, \"Model::Shot\", \"Camera\" {\nVersion: 232\n}\n\
         AnimationStack: 2000, \"AnimStack::Take 001\", \"\" {\nProperties70:  {\n\
         P: \"LocalStop\", \"KTime\", \"Time\", \"\",92372316000\n}\n}\nAnimationLayer: 2001, \"AnimLayer::Base\", \"\" {\n}\n"
            .to_owned(),
        node(3000, "T", &three(170.0)),
        node(3001, "R", &three(0.0)),
        node(3002, property, &number(&format!("d|{property}"), 35.0)),
        curve(4000, [0.0, 400.0, 1000.0]),
        curve(4001, [0.0, 30.0, 90.0]),
        curve(4002, lens),
        "}\nConnections:  {\nC: \"OO\",100,0\nC: \"OO\",600,100\nC: \"OO\",2001,2000\nC: \"OO\",3000,2001\nC: \"OO\",3001,2001\n\
         C: \"OO\",3002,2001\nC: \"OP\",3000,100, \"Lcl Translation\"\nC: \"OP\",3001,100, \"Lcl Rotation\"\n\
         C: \"OP\",4000,3000, \"d|X\"\nC: \"OP\",4001,3001, \"d|Y\"\n"
            .to_owned(),
        format!("C: \"OP\",3002,600, \"{property}\"\nC: \"OP\",4002,3002, \"d|{property}\"\n}}\n"),
    ]
    .concat()
}

#[test]
fn an_fbx_camera_looks_along_its_x_and_sees_as_wide_as_its_lens_says() {
    let wide = |half_over_distance: f64| 2.0 * half_over_distance.atan();
    // Half of 0.945 in, against the focal length; by the picture's shape from the horizontal angle.
    let of_focal = |mm: f64| wide(0.5 * 0.945 * 25.4 / mm);
    let of_width = |deg: f64| wide((0.5 * deg.to_radians()).tan() * 0.945 / 1.417);
    let turned = |deg: f64| deg.to_radians();
    let files = [
        (3, "FocalLength", [35.0, 50.0, 70.0], [35.0, 50.0, 70.0].map(of_focal)),
        (2, "FieldOfView", [40.0, 30.0, 20.0], [40.0, 30.0, 20.0].map(turned)),
        (1, "FieldOfView", [40.0, 30.0, 20.0], [40.0, 30.0, 20.0].map(of_width)),
        (0, "FieldOfViewY", [40.0, 30.0, 20.0], [40.0, 30.0, 20.0].map(turned)),
        // A property that says nothing of the field of view in this mode leaves it still.
        (2, "FocalLength", [35.0, 50.0, 70.0], [40.0; 3].map(turned)),
    ];
    for (mode, property, lens, expected) in files {
        let text = fbx_camera(mode, property, lens);
        let input = Input::alone(text.as_bytes(), "shot.fbx");
        let import = inbetween_formats::import(&input, &ReadOptions::default()).unwrap();
        let file = path_of_clip(&import, 0, cameras_of(&import)[0], "shot.fbx").unwrap();
        assert!(file.notes.iter().any(|n| n.text.contains("its own +x")));
        let places = [([0.0, 1.7, 0.0], -90.0), ([4.0, 1.7, 0.0], -60.0), ([10.0, 1.7, 0.0], 0.0)];
        for (i, ((place, yaw), fov)) in places.into_iter().zip(expected).enumerate() {
            let pose = file.path.pose(i as f64);
            assert!((0..3).all(|k| (pose.position[k] - place[k]).abs() < 1e-6), "{:?}", pose.position);
            let sight = quat_rotate(pose.rotation, [0.0, 0.0, -1.0]);
            let yaw: f64 = f64::to_radians(yaw);
            assert!((sight[0] + yaw.sin()).abs() < 1e-6 && (sight[2] + yaw.cos()).abs() < 1e-6, "{sight:?}");
            // ufbx takes an inch as 1/0.0393701 mm.
            assert!((pose.fov.unwrap() - fov).abs() < 1e-8, "{property} in mode {mode}, key {i}");
        }
    }
}

#[test]
fn a_gltf_camera_whose_field_of_view_stands_still_keeps_it() {
    let gltf = r#"{"asset": {"version": "2.0"}, "cameras": [{"type": "perspective", "perspective": {"yfov": 0.6, "znear": 0.1}}],
        "nodes": [{"name": "eye", "camera": 0}], "scenes": [{"nodes": [0]}], "scene": 0,
        "buffers": [{"byteLength": 32, "uri": "data:application/octet-stream;base64,AAAAAAAAgD8AAAAAAAAAAAAAAAAAAIA/AAAAQAAAQEA="}],
        "bufferViews": [{"buffer": 0, "byteLength": 32}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 2, "type": "SCALAR", "min": [0], "max": [1]},
                      {"bufferView": 0, "byteOffset": 8, "componentType": 5126, "count": 2, "type": "VEC3"}],
        "animations": [{"name": "fly", "samplers": [{"input": 0, "output": 1}],
                        "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}]}]}"#;
    let input = Input::alone(gltf.as_bytes(), "eye.gltf");
    let import = inbetween_formats::import(&input, &ReadOptions::default()).unwrap();
    let path = path_of_clip(&import, 0, 0, "eye.gltf").unwrap().path;
    assert_eq!((path.pose(0.0).fov, path.pose(1.0).fov), (Some(0.6), Some(0.6)));
    assert_eq!(path.pose(1.0).position, [1.0, 2.0, 3.0]);
}

#[test]
fn keys_added_at_the_playhead_and_held_ones_come_back_from_our_json_and_play_the_same() {
    let turn = |i: u32| {
        let half = 0.7 * f64::from(i);
        Some([0.6 * half.sin(), 0.8 * half.sin(), 0.0, half.cos()])
    };
    let keys = (0..6).map(|i| CameraKey {
        rotation: turn(i),
        mode: if i < 4 { "free" } else { "board" }.into(),
        ..CameraKey::new(f64::from(i) * 0.8, vec![f64::from(i * i), 1.0, -f64::from(i)])
    });
    let channels = ["x", "y", "z"].map(Channel::new).to_vec();
    let mut path = CameraPath::new(channels, keys.collect()).unwrap();
    path.set_smoothing(Smoothing::amount(1.0)).unwrap();
    let before = path.clone();
    // In the middle of a segment, and where the picture holds before the board camera.
    path.insert_at(1.1).unwrap();
    path.insert_at(2.9).unwrap();
    let text = write_json(&path);
    assert!(text.contains("\"on_curve\":true") && text.contains("\"hold\":true"), "{text}");
    let back = read(&text).path;
    assert_eq!(back.keys(), path.keys());
    for t in steps(&path, 400) {
        assert_eq!(back.pose(t), path.pose(t));
        let (place, turn) = apart(&before, &back, std::iter::once(t));
        assert!(place < 1e-12 && turn < 1e-12, "at {t}");
    }
    // As a clip, a held key holds too.
    let clip = to_import(&path, "shot").unwrap().clips.remove(0);
    for t in steps(&path, 400) {
        let place = clip.tracks[0].value_at(t);
        assert!((0..3).all(|k| (place[k] - path.pose(t).position[k]).abs() < 1e-12), "at {t}");
    }
}
