//! Motion matching over the locomotion clips, from files to a judged run, by the command.
//!
//! The clips are not part of the project. Their folder is `INBETWEEN_DATA`, else `../shared/data`
//! beside the workspace; where it is missing this says so, and fails only under `CI`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const SCHEMA: &str = r#"
interval = "1/30"
root = "Root"
[[tag]]
set = ["do-not-use"]
to_s = "1/60"
[[channel]]
type = "joint_position"
joint = "LeftFoot"
[[channel]]
type = "joint_position"
joint = "RightFoot"
[[channel]]
type = "joint_velocity"
joint = "LeftFoot"
[[channel]]
type = "joint_velocity"
joint = "RightFoot"
[[channel]]
type = "joint_velocity"
joint = "Hips"
[[channel]]
type = "trajectory_position"
offsets_s = [0.33, 0.66, 1.0]
weight = 3
[[channel]]
type = "trajectory_facing"
offsets_s = [0.33, 0.66, 1.0]
weight = 2
"#;

const SCRIPT: &str = r"
duration_s = 24
[[step]]
[[step]]
at_s = 2
speed_m_s = 1.4
[[step]]
at_s = 6
speed_m_s = 1.4
heading_deg = 90
[[step]]
at_s = 10
speed_m_s = 2.5
heading_deg = 90
[[step]]
at_s = 14
speed_m_s = 2.0
heading_deg = -90
[[step]]
at_s = 18
speed_m_s = 1.2
[[step]]
at_s = 22
";

fn clips() -> Option<Vec<PathBuf>> {
    let data = std::env::var_os("INBETWEEN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let folder = data.join("locomotion");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("NOT RUN: the locomotion clips are not in {}", folder.display());
        assert!(std::env::var_os("CI").is_none(), "the data must be there under CI");
        return None;
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "glb")).collect();
    files.sort();
    Some(files)
}

/// Runs the command; its exit code and standard output.
fn inbetween(arguments: &[&str], files: &[PathBuf]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_inbetween"))
        .args(arguments)
        .args(files)
        .output()
        .expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap_or(-1);
    assert!(code <= 1, "{arguments:?}: exit {code}: {error}");
    (code, String::from_utf8(output.stdout).expect("it prints UTF-8"))
}

#[test]
fn the_locomotion_clips_follow_a_scripted_path_without_sliding_more_than_they_do_themselves() {
    let Some(files) = clips() else { return };
    let folder = std::env::temp_dir().join(format!("inbetween-match-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (schema, script, database, glb, page) =
        (path("s.toml"), path("p.toml"), path("d.ibm"), path("run.glb"), path("run.html"));
    std::fs::write(&schema, SCHEMA).unwrap();
    std::fs::write(&script, SCRIPT).unwrap();

    let bake = ["match", "bake", "--schema", &schema, "-o", &database, "--json"];
    let (code, text) = inbetween(&bake, &files);
    let baked: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, baked["columns"].as_u64()), (0, Some(27)));
    assert!(baked["rows"].as_u64().unwrap() > 40_000);
    let check = ["match", "bake", "--schema", &schema, "-o", &database, "--check"];
    assert_eq!(inbetween(&check, &files).0, 0, "just baked");
    std::fs::write(&schema, SCHEMA.replace("weight = 3", "weight = 4")).unwrap();
    assert_eq!(inbetween(&check, &files).0, 1, "the schema has changed");

    let run = ["match", "run", &database, "--script", &script, "-o", &glb, "--page", &page, "--json"];
    let judged: Value = serde_json::from_str(&inbetween(&run, &[]).1).unwrap();
    let number = |key: &str| judged[key].as_f64().unwrap();
    for change in judged["changes"].as_array().unwrap() {
        assert_eq!(change["followed"], true, "{change}");
        assert!(change["reached_90"].as_f64().is_some_and(|s| s < 2.0), "{change}");
        assert!(change["off_by"].as_f64().unwrap() < 3.0, "{change}");
    }
    assert!(number("jumps_per_second") < 3.0, "{}", number("jumps_per_second"));
    assert!(
        number("foot_sliding_m_s") <= number("clip_foot_sliding_m_s") + 0.005,
        "feet slide {} m/s, the clips {}",
        number("foot_sliding_m_s"),
        number("clip_foot_sliding_m_s")
    );

    let info: Value = serde_json::from_str(&inbetween(&["info", &glb, "--json"], &[]).1).unwrap();
    let duration = info["clips"][0]["duration"].as_f64().unwrap();
    assert!((duration - (24.0 - 1.0 / 60.0)).abs() < 1e-3, "{duration}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<svg") && html.contains("Over the ground") && !html.contains("NaN"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn one_captured_clip_of_jumps_follows_turns_of_90_and_180_degrees() {
    let data = std::env::var_os("INBETWEEN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let file = data.join("assimp-bsd/01_01.bvh");
    if !file.is_file() {
        println!("NOT RUN: {} is missing", file.display());
        assert!(std::env::var_os("CI").is_none(), "the data must be there under CI");
        return;
    }
    let folder = std::env::temp_dir().join(format!("inbetween-match-bvh-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (schema, script, database) = (path("s.toml"), path("p.toml"), path("d.ibm"));
    std::fs::write(&schema, SCHEMA.replace("root = \"Root\"", "root = \"Hips\"")).unwrap();
    let steps =
        [(0.0, 0.0, 0), (2.0, 1.4, 0), (8.0, 1.4, 90), (14.0, 1.4, -90), (20.0, 1.4, -180), (26.0, 0.0, 0)];
    let text: String = steps
        .iter()
        .map(|(at, speed, heading)| {
            format!("[[step]]\nat_s = {at:?}\nspeed_m_s = {speed:?}\nheading_deg = {heading}\n")
        })
        .collect();
    std::fs::write(&script, format!("duration_s = 30\n{text}")).unwrap();
    // Captured in units of 5.6444 cm.
    let unit = ["--unit", "5.6444cm"];
    let bake = [&["match", "bake", "--schema", &schema, "-o", &database, "--json"][..], &unit[..]].concat();
    inbetween(&bake, std::slice::from_ref(&file));
    let judged = |more: &[&str]| -> Value {
        let run = [&["match", "run", &database, "--script", &script, "--json"][..], &unit[..], more].concat();
        serde_json::from_str(&inbetween(&run, &[]).1).unwrap()
    };
    let led = judged(&[]);
    for change in led["changes"].as_array().unwrap() {
        assert_eq!(change["followed"], true, "{change}");
        assert!(change["reached_90"].as_f64().is_some_and(|s| s < 3.0), "{change}");
        assert!(change["off_by"].as_f64().unwrap() < 3.0, "{change}");
    }
    let sliding = |judged: &Value| {
        let number = |key: &str| judged[key].as_f64().unwrap();
        (number("foot_sliding_m_s"), number("clip_foot_sliding_m_s"))
    };
    let (shown, own) = sliding(&led);
    assert!(shown <= own + 0.005, "feet slide {shown} m/s, the clip {own}");
    // Left to the clip alone the turns are not followed: the test is of the steering.
    let alone = judged(&["--exact-root"]);
    assert!(alone["changes"].as_array().unwrap().iter().any(|c| c["followed"] == false), "{alone}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_run_that_plays_compressed_clips_is_the_run_of_the_clips_within_their_bound() {
    let Some(files) = clips() else { return };
    let files: Vec<PathBuf> = files
        .into_iter()
        .filter(|f| f.file_name().is_some_and(|n| n == "Walk1.glb" || n == "WalkTurns1.glb"))
        .collect();
    assert_eq!(files.len(), 2);
    let folder = std::env::temp_dir().join(format!("inbetween-match-ibc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (schema, script, database) = (path("s.toml"), path("p.toml"), path("d.ibm"));
    std::fs::write(&schema, SCHEMA).unwrap();
    std::fs::write(&script, "duration_s = 4\n[[step]]\n[[step]]\nat_s = 1\nspeed_m_s = 1.4\n").unwrap();
    inbetween(&["match", "bake", "--schema", &schema, "-o", &database, "--json"], &files);
    let packed: Vec<PathBuf> =
        files.iter().map(|f| folder.join(f.file_name().unwrap()).with_extension("ibc")).collect();
    for (file, out) in files.iter().zip(&packed) {
        let (file, out) = (file.display().to_string(), out.display().to_string());
        inbetween(&["compress", &file, "-o", &out, "--max-error", "0.1mm", "--unit", "1m"], &[]);
    }
    let run = |out: &str, clips: &[PathBuf]| -> Value {
        let mut arguments = vec!["match", "run", &database];
        let clips: Vec<String> = clips.iter().map(|c| c.display().to_string()).collect();
        arguments.extend(clips.iter().map(String::as_str));
        arguments.extend(["--script", &script, "-o", out, "--free-feet", "--blend", "none", "--json"]);
        serde_json::from_str(&inbetween(&arguments, &[]).1).unwrap()
    };
    let (plain, played) = (path("plain.glb"), path("played.glb"));
    let (from_clips, from_packed) = (run(&plain, &[]), run(&played, &packed));
    let route = |judged: &Value| -> Vec<(u64, u64)> {
        let jumps = judged["jumps"].as_array().unwrap();
        jumps.iter().map(|j| (j["from"].as_u64().unwrap(), j["to"].as_u64().unwrap())).collect()
    };
    assert!(!route(&from_clips).is_empty());
    assert_eq!(route(&from_clips), route(&from_packed), "the same jumps");
    // Each pose is off by at most e = 0.1 mm. Where the character stands adds up both ends of every
    // stretch between jumps; its heading too, which a body of a metre holds to e a metre, over at
    // most 4.2 m.
    let (e, stretches) = (0.1, route(&from_clips).len() as f64 + 1.0);
    let bound = format!("{:.4}mm", e * (1.0 + 2.0 * stretches) + 2.0 * e * stretches * 4.2);
    let (code, _) = inbetween(&["diff", &plain, &played, "--max-error", &bound], &[]);
    assert_eq!(code, 0, "farther apart than {bound}");
    std::fs::remove_dir_all(&folder).unwrap();
}
