//! What the BVH reader makes of files, tidy and loose.

use inbetween::glam::DVec3;
use inbetween::math::{angle_between, axis_angle};
use inbetween::{FrameRate, LocalPose, ModelPose, Property, TrackMask};
use inbetween_formats::{FormatError, Import, Input, ReadOptions, Severity, import};

fn read(bytes: &[u8]) -> Result<Import, FormatError> {
    let options = ReadOptions { file_units: true, ..ReadOptions::default() };
    import(&Input::alone(bytes, "take.bvh"), &options)
}

/// Two joints, nine channels, then whatever motion is given.
fn two_joints(motion: &str) -> String {
    format!(
        "HIERARCHY\nROOT Hips\n{{\n  OFFSET 0 0 0\n  CHANNELS 6 Xposition Yposition Zposition Zrotation \
         Xrotation Yrotation\n  JOINT Spine\n  {{\n    OFFSET 0 10 0\n    CHANNELS 3 Zrotation Xrotation \
         Yrotation\n    End Site\n    {{\n      OFFSET 0 5 0\n    }}\n  }}\n}}\nMOTION\n{motion}"
    )
}

fn value(import: &Import, node: usize, property: Property, time: f64) -> Vec<f64> {
    import.clips[0].node_track(node, &property).expect("a track").value_at(time)
}

/// Every message of a file that should load.
fn notes(import: &Import) -> String {
    import.notes.iter().map(|n| format!("{n}\n")).collect()
}

fn error(bytes: &[u8], mentions: &[&str]) {
    let text = read(bytes).expect_err("an error").to_string();
    for m in mentions {
        assert!(text.contains(m), "{text:?} does not mention {m:?}");
    }
}

const PLAIN: &str = "Frames: 2\nFrame Time: 0.5\n1 2 3 10 20 30 40 50 60\n4 5 6 0 0 0 0 0 0\n";

#[test]
fn positions_and_rotations_of_a_plain_file_are_where_it_says() {
    let import = read(two_joints(PLAIN).as_bytes()).unwrap();
    assert!(import.notes.is_empty(), "{}", notes(&import));
    assert_eq!(value(&import, 0, Property::Translation, 0.0), [1.0, 2.0, 3.0]);
    assert_eq!(value(&import, 0, Property::Translation, 0.25), [2.5, 3.5, 4.5]);
    let deg = f64::to_radians;
    let q =
        axis_angle(DVec3::Z, deg(40.0)) * axis_angle(DVec3::X, deg(50.0)) * axis_angle(DVec3::Y, deg(60.0));
    let found = value(&import, 1, Property::Rotation, 0.0);
    assert!(angle_between(inbetween::glam::DQuat::from_slice(&found), q) < 1e-15);
    let clip = &import.clips[0];
    assert_eq!((clip.start(), clip.end(), clip.rate), (0.0, 0.5, Some(FrameRate::hz(2))));
    assert_eq!(import.skeleton.joints()[1].tips, [DVec3::new(0.0, 5.0, 0.0)]);
    assert_eq!(import.skeleton.joints()[1].parent, Some(0));
}

#[test]
fn lengths_are_centimetres_unless_the_caller_says_otherwise() {
    let bytes = two_joints(PLAIN);
    let house = import(&Input::alone(bytes.as_bytes(), "x"), &ReadOptions::default()).unwrap();
    assert_eq!(value(&house, 0, Property::Translation, 0.0), [0.01, 0.02, 0.03]);
    assert_eq!(house.skeleton.joints()[1].rest.translation, DVec3::new(0.0, 0.1, 0.0));
    let inch = ReadOptions { unit: Some(0.0254), ..ReadOptions::default() };
    let house = import(&Input::alone(bytes.as_bytes(), "x"), &inch).unwrap();
    assert_eq!(value(&house, 0, Property::Translation, 0.0)[0], 0.0254);
}

#[test]
fn all_tracks_share_one_array_of_times_and_frames_lie_at_multiples_of_the_frame_time() {
    let rows = "0 0 0 0 0 0 0 0 0\n".repeat(1000);
    let import = read(two_joints(&format!("Frames: 1000\nFrame Time: .0083333\n{rows}")).as_bytes()).unwrap();
    let clip = &import.clips[0];
    let first = clip.tracks[0].data.curves()[0].times();
    assert_eq!(first[999], 999.0 * 0.0083333);
    assert_eq!(clip.end(), first[999]);
    for track in &clip.tracks {
        assert!(track.data.curves().iter().all(|c| std::sync::Arc::ptr_eq(c.times(), first)));
    }
}

#[test]
fn a_frame_time_stands_for_the_exact_rate_it_was_rounded_from() {
    for (text, num, den) in [
        (".0083333", 120, 1),
        ("0.008333", 120, 1),
        ("0.033333", 30, 1),
        ("0.0333", 30, 1),
        ("0.0333667", 30000, 1001),
        ("0.0333666666666667", 30000, 1001),
        ("0.016683", 60000, 1001),
        ("0.0417083750417", 24000, 1001),
        ("4.16667e-2", 24, 1),
        ("0.04", 25, 1),
        ("0.005", 200, 1),
        ("2.5", 2, 5),
        ("0.07", 14285714, 1000000),
    ] {
        let bytes = two_joints(&PLAIN.replace("0.5", text));
        let rate = read(bytes.as_bytes()).unwrap().clips[0].rate;
        assert_eq!(rate, FrameRate::new(num, den), "{text}");
    }
}

#[test]
fn line_ends_byte_order_marks_tabs_and_case_do_not_matter() {
    let plain = two_joints(PLAIN);
    let expected = read(plain.as_bytes()).unwrap();
    let mut utf16 = vec![0xff, 0xfe];
    utf16.extend(plain.encode_utf16().flat_map(u16::to_le_bytes));
    let variants: Vec<Vec<u8>> = vec![
        plain.replace('\n', "\r\n").into(),
        plain.replace('\n', "\r").into(),
        plain.replace('\n', "\r\r\n").into(),
        format!("\u{feff}{plain}").into(),
        plain.replace(' ', "\t").replace("End\tSite", "End Site").replace("Frame\tTime", "Frame Time").into(),
        plain.to_lowercase().replace("hips", "Hips").replace("spine", "Spine").into(),
        plain.to_uppercase().replace("HIPS", "Hips").replace("SPINE", "Spine").into(),
        plain.replace('\n', "\n\n  \n").into(),
        plain.replace("\n{", " {").replace("\n  {", "{").into(),
        plain.replace("Frames:", "Frames").replace("Frame Time:", "Frame  Time :").into(),
        plain.replace("Frames: 2", "Frames:\t2.0").into(),
        plain.trim_end().into(),
        format!("{plain}\0\0\n\n").into(),
        utf16,
    ];
    for (i, bytes) in variants.iter().enumerate() {
        let found = read(bytes).unwrap_or_else(|e| panic!("variant {i}: {e}"));
        assert_eq!(found.skeleton, expected.skeleton, "variant {i}");
        assert_eq!(found.clips, expected.clips, "variant {i}");
    }
}

#[test]
fn rows_may_be_wrapped_over_lines_or_share_one() {
    let expected = read(two_joints(PLAIN).as_bytes()).unwrap();
    for rows in [
        "1 2 3\n10 20 30\n40 50 60\n4 5 6 0\n0 0 0 0 0\n",
        "1 2 3 10 20 30 40 50 60 4 5 6 0 0 0 0 0 0",
        "1\n2\n3\n10\n20\n30\n40\n50\n60\n4\n5\n6\n0\n0\n0\n0\n0\n0\n",
    ] {
        let found = read(two_joints(&format!("Frames: 2\nFrame Time: 0.5\n{rows}")).as_bytes()).unwrap();
        assert_eq!(found.clips, expected.clips);
        assert!(found.notes.is_empty(), "{}", notes(&found));
    }
    // Lines of ten numbers whatever the frame: the header's count proves the order.
    let rows = "1 2 3 10 20 30 40 50 60 4\n5 6 0 0 0 0 0 0\n";
    let found = read(two_joints(&format!("Frames: 2\nFrame Time: 0.5\n{rows}")).as_bytes()).unwrap();
    assert_eq!(found.clips, expected.clips);
    assert!(notes(&found).contains("line 19"), "{}", notes(&found));
}

#[test]
fn scientific_notation_and_odd_spellings_of_numbers_are_read() {
    let rows = "1e0 +2 3. 1.0E+01 20 .3e2 40 5e+1 6000e-2\n4 5 6 -0 0 0 0 0 0\n";
    let found = read(two_joints(&format!("Frames: 2\nFrame Time: 5E-1\n{rows}")).as_bytes()).unwrap();
    assert_eq!(found.clips, read(two_joints(PLAIN).as_bytes()).unwrap().clips);
}

#[test]
fn a_lost_space_before_a_minus_is_put_back_and_said() {
    let rows = "1 2 3 0 0 0 0 0 0\n0.0 0.0 0.0-7.5 -5.25e-1-10.5 0 0 0\n";
    let import = read(two_joints(&format!("Frames: 2\nFrame Time: 0.01\n{rows}")).as_bytes()).unwrap();
    let said = notes(&import);
    assert!(said.contains("0.0-7.5") && said.contains("missing space") && said.contains("line 20"), "{said}");
    assert_eq!(value(&import, 0, Property::Translation, 0.01), [0.0, 0.0, 0.0]);
    let deg = f64::to_radians;
    let q = axis_angle(DVec3::Z, deg(-7.5))
        * axis_angle(DVec3::X, deg(-0.525))
        * axis_angle(DVec3::Y, deg(-10.5));
    let found = value(&import, 0, Property::Rotation, 0.01);
    assert!(angle_between(inbetween::glam::DQuat::from_slice(&found), q) < 1e-15);
    assert!(import.notes.iter().all(|n| n.severity == Severity::Repaired));
}

#[test]
fn many_repairs_are_counted_instead_of_listed() {
    let rows = "0 0 0-1 0 0 0 0 0\n".repeat(5000);
    let import = read(two_joints(&format!("Frames: 5000\nFrame Time: 0.01\n{rows}")).as_bytes()).unwrap();
    assert!(import.notes.len() < 20);
    assert!(notes(&import).contains("4992 more"), "{}", notes(&import));
}

#[test]
fn a_wrong_frame_count_is_said_with_both_numbers() {
    let row = "0 0 0 0 0 0 0 0 0\n";
    let frames = |declared: &str, rows: usize| {
        let text = format!("Frames: {declared}\nFrame Time: 0.1\n{}", row.repeat(rows));
        read(two_joints(&text).as_bytes()).unwrap()
    };
    let more = frames("3", 4);
    assert_eq!(more.clips[0].key_times().len(), 3);
    assert!(notes(&more).contains("3 frames") && notes(&more).contains("4 rows"), "{}", notes(&more));
    let fewer = frames("10", 7);
    assert_eq!(fewer.clips[0].key_times().len(), 7);
    assert!((fewer.clips[0].end() - 0.6).abs() < 1e-15);
    assert!(notes(&fewer).contains("10") && notes(&fewer).contains('7'));
    // A recorder that never closed its file leaves 0.
    let zero = frames("0", 5);
    assert_eq!(zero.clips[0].key_times().len(), 5);
    assert!(notes(&zero).contains('0') && notes(&zero).contains('5'));
    // A lying header takes no memory.
    let huge = frames("18446744073709551615", 2);
    assert_eq!(huge.clips[0].key_times().len(), 2);
    let none = frames("0", 0);
    assert!(none.clips[0].tracks.is_empty());
}

#[test]
fn a_number_too_few_or_too_many_is_an_error_that_names_the_line() {
    let good = "0 0 0 0 0 0 0 0 0\n";
    let motion = |rows: &str| two_joints(&format!("Frames: 3\nFrame Time: 0.1\n{rows}"));
    for (rows, line, count) in [
        (format!("{good}0 0 0 0 0 0 0 0\n{good}"), "line 20", "8"),
        (format!("{good}0 0 0 0 0 0 0 0 0 0\n{good}"), "line 20", "10"),
        (format!("0 0 0 0 0 0 0 0\n{good}{good}"), "line 19", "8"),
        (format!("{good}{good}0 0 0 0 0 0 0 0"), "line 21", "8"),
        (format!("{good}{good}0 0 0 0 0 0 0 0 0 0"), "line 21", "10"),
    ] {
        error(motion(&rows).as_bytes(), &[line, "9 numbers", count]);
    }
}

#[test]
fn a_file_that_breaks_off_gives_its_whole_frames_and_says_so() {
    let good = "1 0 0 0 0 0 0 0 0\n";
    let text = two_joints(&format!("Frames: 100\nFrame Time: 0.1\n{good}{good}0 0 0"));
    let import = read(text.as_bytes()).unwrap();
    assert_eq!(import.clips[0].key_times().len(), 2);
    assert!(notes(&import).contains("truncated") && notes(&import).contains("100"), "{}", notes(&import));
    assert!(import.notes.iter().any(|n| n.severity == Severity::Lost));
}

#[test]
fn what_is_not_a_number_is_an_error_that_names_line_frame_joint_and_channel() {
    let motion = |rows: &str| two_joints(&format!("Frames: 2\nFrame Time: 0.1\n{rows}"));
    let good = "0 0 0 0 0 0 0 0 0\n";
    let place = ["line 20", "number 7", "frame 2", "Spine", "Zrotation"];
    for bad in ["nan", "inf", "-1.#IND", "1,5", "1.2.3", "x", "1e999", "-", "--5", "0.5-nan"] {
        error(motion(&format!("{good}0 0 0 0 0 0 {bad} 0 0\n")).as_bytes(), &place);
        error(motion(&format!("{good}0 0 0 0 0 0 {bad} 0 0\n")).as_bytes(), &[bad, "finite"]);
    }
    error(motion(&format!("{good}0 0 0 0 0 0 1,5 0 0\n")).as_bytes(), &["decimal point"]);
}

#[test]
fn junk_after_the_last_frame_is_ignored_and_said() {
    let import = read(two_joints(&format!("{PLAIN}END OF TAKE\nfoo 1 2\n")).as_bytes()).unwrap();
    assert_eq!(import.clips, read(two_joints(PLAIN).as_bytes()).unwrap().clips);
    assert!(notes(&import).contains("line 21"), "{}", notes(&import));
}

#[test]
fn position_channels_replace_the_offset_and_missing_ones_keep_it() {
    let text =
        "HIERARCHY ROOT a { OFFSET 1 2 3 CHANNELS 2 Zposition Xposition JOINT b { OFFSET 10 20 30 CHANNELS \
                4 Yrotation Zposition Yposition Xposition } JOINT c { OFFSET 7 8 9 CHANNELS 0 } }
MOTION\nFrames: 2\nFrame Time: 1\n5 6 90 11 12 13\n5 8 90 11 12 15\n";
    let import = read(text.as_bytes()).unwrap();
    assert_eq!(value(&import, 0, Property::Translation, 0.0), [6.0, 2.0, 5.0]);
    assert_eq!(value(&import, 0, Property::Translation, 0.5), [7.0, 2.0, 5.0]);
    assert_eq!(value(&import, 1, Property::Translation, 0.0), [13.0, 12.0, 11.0]);
    assert_eq!(import.skeleton.joints()[1].rest.translation, DVec3::new(10.0, 20.0, 30.0));
    assert!(import.clips[0].tracks.iter().all(|t| t.binding.node != Some(2)));
    assert_eq!(import.clips[0].tracks[0].rest, [1.0, 2.0, 3.0]);
}

#[test]
fn any_number_of_rotation_channels_in_any_order_makes_their_product() {
    for channels in ["X", "ZX", "XZX", "YXZ", "ZXYZ"] {
        let names: Vec<String> = channels.chars().map(|c| format!("{c}rotation")).collect();
        let angles: Vec<f64> = (0..channels.len()).map(|i| 20.0 + 15.0 * i as f64).collect();
        let row: Vec<String> = angles.iter().map(f64::to_string).collect();
        let text = format!(
            "HIERARCHY\nROOT a\n{{ OFFSET 0 0 0\nCHANNELS {} {} }}\nMOTION\nFrames: 1\nFrame Time: 0\n{}",
            names.len(),
            names.join(" "),
            row.join(" ")
        );
        let import = read(text.as_bytes()).unwrap();
        let axis = |c| [DVec3::X, DVec3::Y, DVec3::Z]["XYZ".find(c).unwrap()];
        let expected = channels
            .chars()
            .zip(&angles)
            .fold(inbetween::glam::DQuat::IDENTITY, |q, (c, a)| q * axis_angle(axis(c), a.to_radians()));
        let found = value(&import, 0, Property::Rotation, 0.0);
        assert!(angle_between(inbetween::glam::DQuat::from_slice(&found), expected) < 1e-15, "{channels}");
        assert_eq!(import.clips[0].rate, None);
    }
}

#[test]
fn scale_channels_scale_the_joint() {
    let text = "HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 3 Xscale Yscale Zscale\n}\nMOTION\nFrames: 1\n\
                Frame Time: 0.1\n1 2 3\n";
    assert_eq!(value(&read(text.as_bytes()).unwrap(), 0, Property::Scale, 0.0), [1.0, 2.0, 3.0]);
}

#[test]
fn several_roots_names_with_spaces_shared_names_and_joints_without_end_site_are_kept() {
    let text = "HIERARCHY\nROOT Left Arm  \n{\nOFFSET 0 0 0\nCHANNELS 0\n JOINT hand\n {\n OFFSET 1 0 0\n CHANNELS 0\n \
                End Site A name\n {\n OFFSET 0 1 0\n }\n end site\n {\n OFFSET 0 2 0\n }\n }\n}\nROOT hand\n{\n\
                OFFSET 5 0 0\nCHANNELS 1 Xrotation\n}\nMOTION\nFrames: 1\nFrame Time: 0.1\n90\n";
    let import = read(text.as_bytes()).unwrap();
    let joints = import.skeleton.joints();
    assert_eq!(joints.iter().map(|j| j.name.as_str()).collect::<Vec<_>>(), ["Left Arm", "hand", "hand"]);
    assert_eq!(joints[2].parent, None);
    assert_eq!(joints[1].tips.len(), 2);
    assert_eq!(import.clips[0].tracks[0].binding.node, Some(2));
    assert!(notes(&import).contains("share a name"));
}

#[test]
fn end_sites_move_with_their_joint() {
    let motion = "Frames: 1\nFrame Time: 1\n1 2 3 90 0 0 0 0 0\n";
    let import = read(two_joints(motion).as_bytes()).unwrap();
    let local = LocalPose::of_clip(&import.clips[0], &import.skeleton, 0.0, &TrackMask::all());
    let world = ModelPose::of(&import.skeleton, &local);
    let tip = world.joints[1].transform_point3(import.skeleton.joints()[1].tips[0]);
    assert!((tip - DVec3::new(1.0 - 15.0, 2.0, 3.0)).length() < 1e-12, "{tip}");
}

#[test]
fn names_that_are_not_utf_8_are_read_as_latin_1_and_said() {
    let mut bytes = b"HIERARCHY\nROOT H\xfcfte\n{\nOFFSET 0 0 0\nCHANNELS 0\n}\n".to_vec();
    bytes.extend(b"MOTION\nFrames: 0\nFrame Time: 0.1\n");
    let import = read(&bytes).unwrap();
    assert_eq!(import.skeleton.joints()[0].name, "Hüfte");
    assert!(notes(&import).contains("Latin-1"));
}

#[test]
fn a_hierarchy_alone_gives_a_skeleton_without_clips() {
    let text = two_joints("");
    let import = read(text.strip_suffix("MOTION\n").unwrap().as_bytes()).unwrap();
    assert_eq!((import.skeleton.len(), import.clips.len()), (2, 0));
    assert!(notes(&import).contains("no motion"));
}

#[test]
fn a_hierarchy_that_breaks_its_form_is_an_error_that_names_the_line() {
    error(b"", &["HIERARCHY", "end of the file"]);
    error(b"HIERARCHY\nMOTION\n", &["ROOT", "line 2"]);
    error(b"HIERARCHY\nROOT a\nOFFSET 0 0 0\n", &["line 3", "opening {", "OFFSET"]);
    error(b"HIERARCHY\nROOT a\n{\nOFFSET 0 0\nCHANNELS 0\n}\n", &["line 5", "z of OFFSET", "CHANNELS"]);
    error(b"HIERARCHY\nROOT a\n{\nOFFSET 0 0 nan\n}\n", &["line 4", "finite", "nan"]);
    error(
        b"HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 2 Xrotation\n}\n",
        &["line 6", "2 channels", "after 1"],
    );
    error(
        b"HIERARCHY\nROOT a\n{\nCHANNELS 1 Xrotation Yrotation\n}\n",
        &["line 4", "1 channels", "Yrotation"],
    );
    error(b"HIERARCHY\nROOT a\n{\nCHANNELS 1 Wrotation\n}\n", &["line 4", "Wrotation"]);
    error(b"HIERARCHY\nROOT a\n{\nCHANNELS 4000000000 Xrotation\n}\n", &["4000000000"]);
    error(b"HIERARCHY\nROOT a\n{\nCHANNELS 2 Xposition Xposition\n}\n", &["line 4", "once"]);
    error(b"HIERARCHY\nROOT a\n{\nJOINT b\n{\n}\nMOTION\n", &["line 7", "MOTION", "line 2", "missing }"]);
    error(b"HIERARCHY\nROOT a\n{\n}\n}\nMOTION\n", &["line 5", "too many"]);
    error(b"HIERARCHY\nROOT a\n{\nEnd Site\n{\nJOINT b {}\n}\n}\n", &["line 6", "End Site opened on line 4"]);
    error(two_joints("Frame Time: 0.1\n").as_bytes(), &["line 17", "Frames:"]);
    error(two_joints("Frames: many\nFrame Time: 0.1\n").as_bytes(), &["line 17", "many"]);
    error(two_joints("Frames: -2\nFrame Time: 0.1\n").as_bytes(), &["line 17", "-2"]);
    error(two_joints("Frames: 2.5\nFrame Time: 0.1\n").as_bytes(), &["line 17", "2.5"]);
    error(two_joints("Frames: 2\n0 0 0\n").as_bytes(), &["line 18", "Frame Time"]);
    error(two_joints("Frames: 2\nFrame Time: nan\n").as_bytes(), &["line 18", "nan"]);
    error(two_joints("Frames: 2\nFrame Time: -1\n").as_bytes(), &["line 18", "-1"]);
    error(two_joints(&PLAIN.replace("0.5", "0")).as_bytes(), &["line 18", "above zero"]);
}

#[test]
fn joints_may_nest_thousands_deep() {
    let deep = 20_000;
    let mut text = "HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\nCHANNELS 0\n".to_owned();
    text.push_str(&"JOINT j {\nOFFSET 0 1 0\nCHANNELS 0\n".repeat(deep));
    text.push_str(&"}\n".repeat(deep + 1));
    text.push_str("MOTION\nFrames: 1\nFrame Time: 1\n");
    assert_eq!(read(text.as_bytes()).unwrap().skeleton.len(), deep + 1);
}

#[test]
fn a_file_with_every_looseness_at_once_is_read_and_its_repairs_are_said() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/clips/loose.bvh");
    let import = read(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(import.skeleton.joints()[0].name, "Left Hip");
    assert_eq!(import.skeleton.joints()[1].tips, [DVec3::new(0.0, -0.42, 0.0)]);
    assert_eq!(import.clips[0].rate, FrameRate::new(30000, 1001));
    assert_eq!(value(&import, 0, Property::Translation, 1.0), [1.0, 2.0, 3.0]);
    assert_eq!(value(&import, 1, Property::Rotation, 0.0), value(&import, 1, Property::Rotation, 1.0));
    let said = notes(&import);
    assert!(said.contains("10.5-3.25") && said.contains("line 19") && import.notes.len() == 2, "{said}");
}

#[test]
fn more_keys_than_the_limit_are_refused() {
    let options = ReadOptions { max_keys: 3, ..ReadOptions::default() };
    let text = two_joints(PLAIN);
    let e = import(&Input::alone(text.as_bytes(), "take.bvh"), &options).unwrap_err();
    assert!(matches!(e, FormatError::Limit { .. }), "{e}");
}
