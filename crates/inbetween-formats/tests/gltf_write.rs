//! The glTF writer: what goes through it comes back, and what is not animation stays.

mod common;

use inbetween::{Clip, TrackData};
use inbetween_formats::gltf::{Container, WriteOptions, write};
use inbetween_formats::{Import, Input, ReadOptions, import};

fn reread(bytes: &[u8]) -> Import {
    let options = ReadOptions { file_units: true, ..ReadOptions::default() };
    import(&Input::alone(bytes, "written.glb"), &options).unwrap_or_else(|e| panic!("{e}"))
}

/// Differences between two lists of clips whose numbers passed through f32.
fn differences(a: &[Clip], b: &[Clip]) -> Vec<String> {
    let mut found = Vec::new();
    if a.len() != b.len() {
        found.push(format!("{} clips became {}", a.len(), b.len()));
    }
    for (a, b) in a.iter().zip(b) {
        let place = &a.name;
        if a.name != b.name || a.tracks.len() != b.tracks.len() {
            found.push(format!("{place}: {} tracks became {}", a.tracks.len(), b.tracks.len()));
            continue;
        }
        if (a.start(), a.end()) != (b.start(), b.end()) || a.rate != b.rate {
            found.push(format!("{place}: {}..{} became {}..{}", a.start(), a.end(), b.start(), b.end()));
        }
        for (a, b) in a.tracks.iter().zip(&b.tracks) {
            let (TrackData::Curve(p), TrackData::Curve(q)) = (&a.data, &b.data) else {
                found.push(format!("{place}: not a plain curve"));
                continue;
            };
            if a.binding != b.binding || a.rest != b.rest {
                found.push(format!("{place}: {:?} became {:?}", a.binding, b.binding));
            }
            if p != q {
                found.push(format!("{place}: keys of {:?} changed", a.binding));
            }
        }
    }
    found
}

fn gltf_files(dir: &std::path::Path) -> Vec<String> {
    common::with_reference(dir, &["gltf", "glb"])
}

#[test]
fn what_did_not_change_comes_back_bit_for_bit_and_is_not_larger() {
    let Some(dir) = common::data_dir() else { return };
    let mut wrong = Vec::new();
    let (mut before, mut after) = (0, 0);
    for file in gltf_files(&dir) {
        let path = dir.join(&file);
        let source = common::import_in_file_units(&path);
        let written = write(&source, &WriteOptions::default()).unwrap();
        let back = reread(&written.bytes);
        // Clips without tracks get a key, and repaired ones are not the file's own any more.
        let repaired = file.contains("gltf-validator") || file.contains("magnum-plugins");
        if !repaired {
            wrong.extend(differences(&source.clips, &back.clips).iter().map(|d| format!("{file}: {d}")));
        }
        if source.skeleton != back.skeleton {
            wrong.push(format!("{file}: the nodes changed"));
        }
        let size = std::fs::metadata(&path).unwrap().len();
        let beside: u64 = buffers_beside(&path);
        if written.bytes.len() as u64 > size + beside && !repaired {
            wrong.push(format!("{file}: {size} + {beside} bytes became {}", written.bytes.len()));
        }
        before += size + beside;
        after += written.bytes.len() as u64;
    }
    println!("{before} bytes became {after}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn buffers_beside(path: &std::path::Path) -> u64 {
    if path.extension().is_some_and(|e| e == "glb") {
        return 0;
    }
    let json = common::json(path);
    let uris = json["buffers"].as_array().into_iter().flatten().filter_map(|b| b["uri"].as_str());
    uris.filter_map(|u| std::fs::metadata(path.with_file_name(u)).ok()).map(|m| m.len()).sum()
}

#[test]
fn a_new_file_without_the_source_holds_the_same_motion() {
    let Some(dir) = common::data_dir() else { return };
    let mut wrong = Vec::new();
    for file in ["khronos-sample-assets/Fox.glb", "khronos-sample-assets/InterpolationTest.glb"] {
        let mut source = common::import_in_file_units(&dir.join(file));
        source.source = inbetween_formats::Source::None;
        let written = write(&source, &WriteOptions::default()).unwrap();
        let back = reread(&written.bytes);
        wrong.extend(differences(&source.clips, &back.clips).iter().map(|d| format!("{file}: {d}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn json_with_data_inside_or_beside_says_the_same_as_a_glb() {
    let Some(dir) = common::data_dir() else { return };
    let source = common::import_in_file_units(&dir.join("khronos-sample-assets/Fox.glb"));
    for container in [Container::Embedded, Container::Beside("a b.bin".to_owned())] {
        let written = write(&source, &WriteOptions { container, ..WriteOptions::default() }).unwrap();
        let side = |name: &str| {
            let found = written.side_files.iter().find(|(n, _)| n == name);
            Ok(found.unwrap_or_else(|| panic!("{name} is not beside it")).1.clone())
        };
        let input = Input { bytes: &written.bytes, name: "written.gltf", side_file: &side };
        let back = import(&input, &ReadOptions { file_units: true, ..ReadOptions::default() }).unwrap();
        assert_eq!(differences(&source.clips, &back.clips), Vec::<String>::new());
    }
}
