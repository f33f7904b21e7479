//! The BVH reader against independent tools, on real captures.

mod common;

use inbetween::FrameRate;

#[test]
fn real_captures_agree_with_the_reference_to_1e_5() {
    let Some(dir) = common::data_dir() else { return };
    let files = common::with_reference(&dir, &["bvh"]);
    assert!(files.len() >= 16, "{files:?}");
    let (mut faults, mut compared) = (Vec::new(), 0);
    for file in &files {
        let import = common::import_in_file_units(&dir.join(file));
        let deviation = common::compare_with_reference(&dir, file, &import, &|_, _, _| None);
        compared += deviation.compared;
        faults.extend(deviation.over(1e-5).into_iter().map(|line| format!("{file}: {line}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared > 1000, "only {compared} numbers were compared");
}

#[test]
fn real_captures_have_the_joints_frames_and_durations_of_their_facts() {
    let Some(dir) = common::data_dir() else { return };
    let mut seen = 0;
    for (file, fact) in common::facts(&dir) {
        if fact["format"] != "bvh" {
            continue;
        }
        seen += 1;
        let import = common::import_in_file_units(&dir.join(&file));
        let joints = import.skeleton.joints();
        assert_eq!(joints.len() as u64, fact["joints"].as_u64().unwrap(), "{file}");
        let tips: usize = joints.iter().map(|j| j.tips.len()).sum();
        assert_eq!(tips as u64, fact["end_sites"].as_u64().unwrap(), "{file}");
        let clip = &import.clips[0];
        let frames = clip.key_times().len();
        assert_eq!(frames as u64, fact["animations"][0]["keys"].as_u64().unwrap(), "{file}");
        let duration = fact["animations"][0]["duration_s"].as_f64().unwrap();
        assert!((clip.duration() - duration).abs() < 1e-6, "{file}: {} for {duration}", clip.duration());
        // Notes say where header and rows disagree, and nowhere else.
        let counts = import.notes.iter().any(|n| n.text.contains("header"));
        assert_eq!(!counts, fact["frame_count_matches"] == true, "{file}: {:?}", import.notes);
        let fps = fact["fps"].as_f64().unwrap();
        let rate = clip.rate.expect("a frame time above zero");
        assert!((rate.as_f64() / fps - 1.0).abs() < 1e-4, "{file}: {rate} for {fps}");
        let common_rates = [24, 25, 30, 60, 100, 120].map(FrameRate::hz);
        let ntsc = FrameRate::new(24000, 1001).unwrap();
        assert!(common_rates.contains(&rate) || rate == ntsc, "{file}: {rate}");
    }
    assert!(seen >= 13);
}
