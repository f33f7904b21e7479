//! The glTF reader against independent tools, on real files.

mod common;

use inbetween::{Clip, Property};
use inbetween_formats::Import;
use serde_json::Value;

/// The track of a reference's property: by its pointer, or a node's weights.
fn find(_: &Import, clip: &Clip, property: &Value) -> Option<(usize, f64)> {
    let tracks = &clip.tracks;
    let pointer = property["target"].as_str().filter(|t| t.starts_with('/'));
    let node = property["node"].as_u64().map(|n| n as usize);
    let found = tracks.iter().position(|t| match pointer {
        Some(pointer) => t.binding.path.as_deref() == Some(pointer),
        None => t.binding.node == node && t.binding.property == Property::Weights,
    });
    found.map(|track| (track, 1.0))
}

#[test]
fn sampled_poses_and_properties_are_those_of_the_reference() {
    let Some(dir) = common::data_dir() else { return };
    let files = common::with_reference(&dir, &["gltf", "glb"]);
    assert!(files.len() >= 60, "only {} glTF files have a reference", files.len());
    let mut wrong = Vec::new();
    let (mut compared, mut worst) = (0, 0.0f64);
    for file in &files {
        let import = common::import_in_file_units(&dir.join(file));
        let result = common::compare_with_reference(&dir, file, &import, &find);
        compared += result.compared;
        worst = result.worst.values().fold(worst, |w, (d, _)| w.max(*d));
        wrong.extend(result.over(1e-5).into_iter().map(|line| format!("{file}: {line}")));
    }
    println!("{} files, {compared} values compared, largest difference {worst:.2e}", files.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn clips_tracks_durations_and_keys_are_those_other_tools_count() {
    let Some(dir) = common::data_dir() else { return };
    let mut wrong = Vec::new();
    let mut files = 0;
    for (file, facts) in common::facts(&dir) {
        if !(file.ends_with(".gltf") || file.ends_with(".glb")) {
            continue;
        }
        files += 1;
        let import = common::import_in_file_units(&dir.join(&file));
        let mut check = |what: String, expected: f64, found: f64| {
            if (expected - found).abs() > 1e-6 {
                wrong.push(format!("{file}: {what}: expected {expected}, found {found}"));
            }
        };
        check("nodes".into(), facts["nodes"].as_f64().unwrap(), import.skeleton.len() as f64);
        let clips = facts["animations"].as_array().unwrap();
        check("clips".into(), clips.len() as f64, import.clips.len() as f64);
        for (i, (facts, clip)) in clips.iter().zip(&import.clips).enumerate() {
            assert_eq!(facts["name"].as_str().unwrap_or(""), clip.name);
            // The facts count channels; those that drive nothing, or what another one drives, or
            // have no keys, are no tracks, and each is in the notes.
            let place = format!("animation {i} (");
            let dropped =
                import.notes.iter().filter(|n| n.place.starts_with(&place) && n.place.contains("channel"));
            let dropped = dropped.filter(|n| n.severity == inbetween_formats::Severity::Lost).count();
            let tracks = facts["tracks"].as_u64().unwrap() as usize - dropped;
            check(format!("tracks of clip {i}"), tracks as f64, clip.tracks.len() as f64);
            if dropped == 0 {
                check(format!("keys of clip {i}"), facts["keys"].as_f64().unwrap(), clip.key_count() as f64);
            }
            let begin = clip.tracks.iter().flat_map(|t| t.data.curves()).map(|c| c.start()).reduce(f64::min);
            if let (Some(b), Some(e)) = (facts["time_begin"].as_f64(), facts["time_end"].as_f64())
                && let Some(begin) = begin
            {
                check(format!("first key of clip {i}"), b, begin);
                check(format!("end of clip {i}"), e, clip.end());
            }
        }
    }
    assert!(files >= 41, "only {files} glTF files in the facts");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
