//! The command as a shell sees it: documents, exit codes, files, and what it says to bad input.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of the test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("command-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file of the project's own cases.
fn case(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases").join(path).display().to_string()
}

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_inbetween")).args(words).output().unwrap()
}

#[track_caller]
fn document(words: &[&str]) -> Value {
    let output = run(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

/// Runs words that must fail with `code`; returns what standard error says.
#[track_caller]
fn refused(code: i32, words: &[&str]) -> String {
    let output = run(words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into()).collect();
    names.sort();
    names
}

#[test]
fn info_says_whether_a_clip_ends_where_it_begins() {
    let seam = |name: &str| document(&["info", &case(name), "--json"])["clips"][0]["seam"].clone();
    assert_eq!(seam("L05-reduce-keeps-seam/input.gltf"), "closed");
    assert_eq!(seam("L03-hold-last-frame/input.gltf"), "open");
    assert_eq!(seam("K04-single-key-clip/input.gltf"), "still");
}

#[test]
fn info_lists_nodes_clips_and_tracks() {
    let found = document(&["info", &case("E02-diff-two-clips/input.gltf"), "--json"]);
    assert_eq!(found["format"], "gltf");
    assert_eq!(found["clips"][0]["name"], "walk");
    assert_eq!(found["clips"][0]["tracks"][0]["target"], "hip");
    assert!(found["nodes"].as_array().unwrap().iter().any(|n| n["name"] == "foot"));
}

#[test]
fn sample_gives_the_values_of_tracks_and_of_nodes_in_the_world() {
    let file = case("X02-mirrored-node/input.gltf");
    let found = document(&["sample", &file, "--at", "0,1", "--json"]);
    assert_eq!(found["times"], serde_json::json!([0.0, 1.0]));
    let found = document(&["sample", &file, "--at=1", "--world", "--target", "knob", "--json"]);
    let place = &found["tracks"][0]["values"][0];
    assert!((place[0].as_f64().unwrap() + 1.0).abs() < 1e-5, "{place}");
}

#[test]
fn a_bare_number_is_refused_with_a_word_on_units() {
    let out = folder("bare");
    let text = refused(
        2,
        &[
            "reduce",
            &case("E02-diff-two-clips/input.gltf"),
            "-o",
            &out.join("o.gltf").display().to_string(),
            "--max-error",
            "0.001",
        ],
    );
    assert!(text.contains("no unit"), "{text}");
    assert!(names(&out).is_empty());
}

#[test]
fn what_is_not_there_is_named() {
    assert!(refused(2, &["info", "no-such-file.glb"]).contains("no-such-file.glb"));
    let file = case("E02-diff-two-clips/input.gltf");
    assert!(refused(2, &["sample", &file, "--at", "0", "--clip", "run"]).contains("\"walk\""));
    assert!(refused(2, &["sample", &file, "--at", "0", "--target", "nose"]).contains("nose"));
}

#[test]
fn a_broken_file_leaves_nothing_half_written() {
    let out = folder("broken");
    let target = out.join("o.glb").display().to_string();
    for words in [["reduce", "-o"], ["convert", "-o"]] {
        refused(2, &[words[0], &case("Z04-glb-cut/input.glb"), words[1], &target]);
    }
    assert!(names(&out).is_empty(), "{:?}", names(&out));
}

#[test]
fn an_input_is_never_overwritten() {
    let out = folder("overwrite");
    let file = out.join("a.gltf");
    std::fs::copy(case("E02-diff-two-clips/input.gltf"), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    let name = file.display().to_string();
    for command in ["reduce", "convert"] {
        assert!(refused(2, &[command, &name, "-o", &name]).contains("never overwritten"));
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn reduce_reports_what_holds_on_the_written_file() {
    let out = folder("reduce");
    let (target, page) = (out.join("o.glb").display().to_string(), out.join("r.html").display().to_string());
    let source = case("R03-chain-of-eight/input.glb");
    let found =
        document(&["reduce", &source, "-o", &target, "--max-error", "2mm", "--report", &page, "--json"]);
    assert_eq!(found["holds"], true);
    assert_eq!(found["verified"], "reread from the written file");
    let clip = &found["clips"][0];
    assert!(clip["keys"].as_u64() < clip["source_keys"].as_u64());
    assert!(clip["max_error"]["value"].as_f64().unwrap() <= 0.002);
    document(&["diff", &source, &target, "--max-error", "2mm", "--json"]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg") && !html.contains("http://") && !html.contains("https://"));
    assert_eq!(names(&out), ["o.glb", "r.html"]);
}

#[test]
fn a_reduction_is_never_larger_than_its_source() {
    let folder = folder("larger");
    // A camera of seven keys, whose tracks share their key times.
    run(&["demo", "--out", folder.to_str().unwrap()]);
    let camera = folder.join("camera.glb").display().to_string();
    let out = folder.join("thin.glb").display().to_string();
    let found = document(&["reduce", &camera, "-o", &out, "--max-error", "1mm", "--json"]);
    let number = |key: &str| found[key].as_u64().unwrap();
    assert!(number("file_bytes") <= number("source_file_bytes"), "{found}");
    assert!(number("keys") <= number("source_keys"), "{found}");
}

/// The folder of real files, or `None` (said on standard error) where there is none; under `CI` that fails.
fn data_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("INBETWEEN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    if dir.join("facts.json").is_file() {
        return Some(dir);
    }
    assert!(std::env::var_os("CI").is_none(), "real files not found at {}", dir.display());
    eprintln!("real files not found at {}; the test on them DID NOT RUN", dir.display());
    None
}

#[test]
fn curves_that_are_fitted_on_writing_get_no_more_keys_than_they_were_drawn_with() {
    let Some(data) = data_dir() else { return };
    let source = data.join("assimp-bsd/huesitos.fbx").display().to_string();
    let out = folder("fitted").join("thin.glb").display().to_string();
    run(&["reduce", &source, "-o", &out, "--max-error", "1mm"]);
    let drawn = document(&["info", &source, "--json"])["clips"][0]["keys"].as_u64().unwrap();
    let written = document(&["info", &out, "--json"])["clips"][0]["keys"].as_u64().unwrap();
    assert!(written < drawn, "{written} of {drawn}");
    assert!(run(&["diff", &source, &out, "--max-error", "1mm"]).status.success());
}

#[test]
fn diff_ends_with_one_only_beyond_the_limit_and_names_the_place() {
    let (a, b) = (case("E02-diff-two-clips/input.gltf"), case("E02-diff-two-clips/input_b.gltf"));
    let text = refused(1, &["diff", &a, &b, "--max-error", "20mm"]);
    assert!(text.contains("foot") && text.contains("0.7 s"), "{text}");
    assert!(run(&["diff", &a, &b, "--max-error", "50mm"]).status.success());
    assert!(run(&["diff", &a, &b]).status.success());
}

#[test]
fn plots_are_pictures() {
    let out = folder("plot");
    let source = case("R03-chain-of-eight/input.glb");
    for (name, head) in [("p.svg", &b"<svg"[..]), ("p.png", &b"\x89PNG"[..])] {
        let target = out.join(name).display().to_string();
        assert!(run(&["plot", &source, "-o", &target]).status.success());
        assert!(std::fs::read(target).unwrap().starts_with(head));
    }
}

#[test]
fn a_cut_begins_at_zero_and_has_its_length() {
    let target = folder("cut").join("cut.glb").display().to_string();
    let source = case("E01-cut-out-a-range/input.gltf");
    assert!(run(&["convert", &source, "-o", &target, "--start", "2.25", "--end", "4"]).status.success());
    let found = document(&["info", &target, "--json"]);
    assert!((found["clips"][0]["duration"].as_f64().unwrap() - 1.75).abs() < 1e-6);
    let text = refused(2, &["convert", &source, "-o", &target, "--start", "9", "--end", "10"]);
    assert!(text.contains("runs from"), "{text}");
}

#[test]
fn a_compressed_clip_reads_like_any_other() {
    let target = folder("ibc").join("chain.ibc").display().to_string();
    let source = case("R03-chain-of-eight/input.glb");
    assert!(run(&["compress", &source, "-o", &target, "--max-error", "1mm"]).status.success());
    assert_eq!(document(&["info", &target, "--json"])["format"], "ibc");
    document(&["diff", &source, &target, "--max-error", "1.5mm", "--json"]);
}

#[test]
fn a_figure_too_large_for_the_usual_bound_gets_the_next_one_unless_asked_otherwise() {
    let target = folder("large").join("chain.ibc").display().to_string();
    let source = case("R03-chain-of-eight/input.glb");
    let large = ["compress", &source, "-o", &target, "--unit", "1000m", "--json"];
    let made = run(&large);
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && said.contains("--unit"), "{said}");
    let document: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (bound, off) = (document["bound"].as_f64(), document["clips"][0]["max_error"]["value"].as_f64());
    assert!(bound.unwrap() > 1e-4 && off <= bound, "{document}");
    std::fs::remove_file(&target).unwrap();
    refused(3, &[&large[..], &["--max-error", "0.1mm"]].concat());
    // A node's own bound is never given up.
    let own = ["compress", &source, "-o", &target, "--node-error", "j7=0.000000001mm"];
    assert!(refused(3, &own).contains("j7"));
    assert!(!Path::new(&target).exists());
}

#[test]
fn a_property_that_is_not_there_is_refused() {
    let source = case("R03-chain-of-eight/input.glb");
    for world in [&["--world"][..], &[]] {
        let call = ["sample", &source, "--clip", "0", "--at", "0", "--property", "weights"];
        let text = refused(2, &[&call[..], world].concat());
        assert!(text.contains("weights"), "{text}");
    }
}

#[test]
fn a_rate_with_zeros_too_many_is_refused() {
    let target = folder("rate").join("out.glb").display().to_string();
    let source = case("R03-chain-of-eight/input.glb");
    for command in [["convert", "-o", &target], ["sample", "--clip", "0"]] {
        let text = refused(2, &[command[0], &source, command[1], command[2], "--fps", "1e9"]);
        assert!(text.contains("lower rate"), "{text}");
    }
}

#[test]
fn every_command_shows_examples() {
    for command in
        ["info", "sample", "convert", "reduce", "compress", "diff", "check", "plot", "demo", "completions"]
    {
        let output = run(&[command, "--help"]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("Examples:"), "{command}");
    }
}

#[test]
fn shells_can_complete_the_words() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(String::from_utf8_lossy(&run(&["completions", shell]).stdout).contains("reduce"));
    }
}

#[test]
fn an_additive_clip_is_made_compressed_and_said_to_be_one() {
    let folder = folder("additive");
    let source = folder.join("moves.inb");
    let text = "inbetween-clips 1\n\nnode hips\n\nclip Idle\n  mark 0.5 \"breath\"\n  track hips translation\n    0 0 1 0\n    \
                1 0 1.5 0\n\nclip Lean\n  track hips translation\n    0 0 1 0.25\n    1 0 2 0.5\n";
    std::fs::write(&source, text).unwrap();
    let [source, lean, packed] =
        [source, folder.join("lean.inb"), folder.join("lean.ibc")].map(|p| p.display().to_string());
    let made = run(&["convert", &source, "-o", &lean, "--clip", "Lean", "--additive", "Idle@1"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let values = document(&["sample", &lean, "--at", "0,1", "--json"]);
    assert_eq!(values["tracks"][0]["values"], serde_json::json!([[0.0, -0.5, 0.25], [0.0, 0.5, 0.5]]));
    document(&["compress", &lean, "-o", &packed, "--json"]);
    let info = document(&["info", &packed, "--json"]);
    assert_eq!(info["clips"][0]["additive"], true);
    let packed_bound = info["clips"][0]["compressed"]["bound"].as_f64().unwrap();
    assert!((packed_bound - 1e-4).abs() < 1e-9, "{packed_bound}");
    let nowhere = refused(2, &["convert", &source, "-o", &lean, "--additive", "Run"]);
    assert!(nowhere.contains("Run") && nowhere.contains("Idle"), "{nowhere}");
    let wrong_door = refused(2, &["reduce", &source, "-o", &packed]);
    assert!(wrong_door.contains("inbetween compress"), "{wrong_door}");
    let whole = document(&["info", &source, "--json"]);
    assert_eq!(whole["clips"][0]["markers"][0]["name"], "breath");
}
