//! The glTF writer: what goes through it comes back, and what is not animation stays.

mod common;

use inbetween::math::angle_between;
use inbetween::{Clip, LocalPose, ModelPose, ScaleInherit, TrackData, TrackMask, Transform};
use inbetween_formats::gltf::{Container, WriteOptions, write};
use inbetween_formats::{Import, Input, ReadOptions, import, import_path};

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

/// How far apart two local poses are at one node: metres relative to max(1, size), radians,
/// relative scale, whichever is largest.
fn distance(x: &Transform, y: &Transform) -> f64 {
    let size = x.translation.abs().max_element().max(1.0);
    let moved = (x.translation - y.translation).length() / size;
    let turned = angle_between(x.rotation, y.rotation);
    let scaled = (x.scale - y.scale).abs().max_element() / x.scale.abs().max_element().max(1.0);
    moved.max(turned).max(scaled)
}

/// By how much two clips' local poses differ inside every gap between keys, beyond what the
/// rounding of key times to f32 explains, and where it is most.
fn pose_distance(a: &Import, b: &Import, clip: usize, shift: f64) -> (f64, String) {
    let (p, q) = (&a.clips[clip], &b.clips[clip]);
    let mut times = p.key_times();
    times.extend([p.start(), p.end()]);
    times.retain(|&t| t >= p.start() && t <= p.end());
    times.sort_by(f64::total_cmp);
    let mut worst = (0.0, String::new());
    for pair in times.windows(2).filter(|w| w[1] - w[0] > 1e-4) {
        let time = 0.3 * pair[0] + 0.7 * pair[1];
        let rounding = f64::from(((time - shift) as f32).next_up()) - f64::from((time - shift) as f32);
        let one = LocalPose::of_clip(p, &a.skeleton, time, &TrackMask::all());
        let late = LocalPose::of_clip(p, &a.skeleton, time + rounding, &TrackMask::all());
        let two = LocalPose::of_clip(q, &b.skeleton, time - shift, &TrackMask::all());
        for i in 0..one.joints.len() {
            // Local scales differ on purpose where a node does not take over its parent's.
            if a.skeleton.joints()[i].inherit != ScaleInherit::Full {
                continue;
            }
            let d = distance(&one.joints[i], &two.joints[i]) - distance(&one.joints[i], &late.joints[i]);
            if d > worst.0 {
                worst = (d, format!("{} at {time} s, clip {:?}", a.skeleton.joints()[i].name, p.name));
            }
        }
    }
    worst
}

#[test]
fn nodes_that_ignore_their_parents_scale_stand_where_they_stood() {
    let Some(dir) = common::data_dir() else { return };
    let mut tested = 0;
    for file in common::with_reference(&dir, &["fbx"]) {
        let Ok(source) = import_path(&dir.join(&file), &ReadOptions::default()) else { continue };
        let special = source.skeleton.joints().iter().any(|j| j.inherit != ScaleInherit::Full);
        let written = write(&source, &WriteOptions::default()).unwrap();
        if !special || written.notes.iter().any(|n| n.text.contains("parent's scale")) {
            continue;
        }
        tested += 1;
        let back = reread(&written.bytes);
        for (p, q) in source.clips.iter().zip(&back.clips) {
            for i in 0..=40 {
                let time = p.start() + p.duration() * (0.011 + 0.97 * f64::from(i) / 40.0);
                let world = |import: &Import, clip: &Clip| {
                    let pose = LocalPose::of_clip(clip, &import.skeleton, time, &TrackMask::all());
                    ModelPose::of(&import.skeleton, &pose)
                };
                let (one, two) = (world(&source, p), world(&back, q));
                for (a, b) in one.joints.iter().zip(&two.joints) {
                    let size = a.translation.length().max(1.0);
                    assert!((a.translation - b.translation).length() < 2e-4 * size, "{file} at {time}");
                    let columns = (a.matrix3 - b.matrix3).to_cols_array();
                    assert!(columns.iter().all(|c| c.abs() < 2e-4), "{file} at {time}: {columns:?}");
                }
            }
        }
    }
    assert!(tested > 0, "no file has such nodes");
}

#[test]
fn fbx_and_bvh_play_the_same_from_a_glb() {
    let Some(dir) = common::data_dir() else { return };
    let (mut wrong, mut files, mut worst) = (Vec::new(), 0, 0.0f64);
    for file in common::with_reference(&dir, &["fbx", "bvh"]) {
        let Ok(source) = import_path(&dir.join(&file), &ReadOptions::default()) else { continue };
        let written = write(&source, &WriteOptions::default()).unwrap();
        let back = reread(&written.bytes);
        files += 1;
        if source.skeleton.len() != back.skeleton.len() || source.clips.len() != back.clips.len() {
            wrong.push(format!("{file}: nodes or clips are missing"));
            continue;
        }
        for (i, clip) in source.clips.iter().enumerate() {
            let first = clip.key_times().first().copied().unwrap_or(0.0);
            let shift = first.min(clip.start()).min(0.0);
            if (back.clips[i].end() - (clip.end() - shift)).abs() > 2e-6 * clip.end().abs().max(1.0) {
                let ends = (clip.end() - shift, back.clips[i].end());
                wrong.push(format!(
                    "{file}: clip {:?} should end at {} and ends at {}",
                    clip.name, ends.0, ends.1
                ));
            }
            let (d, place) = pose_distance(&source, &back, i, shift);
            worst = worst.max(d);
            // 1e-5 is the tolerance of the fit at seven places of a span, measured here at others.
            if d > 2e-5 {
                wrong.push(format!("{file}: {d:.2e} off: {place}"));
            }
        }
    }
    println!("{files} files, at most {worst:.2e} off");
    assert!(files >= 40, "only {files} files were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
