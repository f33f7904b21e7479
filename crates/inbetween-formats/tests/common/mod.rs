//! What the tests of all readers share: where the real files lie, and the comparison of what a
//! reader gives with the reference values that independent tools computed for those files.
//!
//! The files are not part of the project. They are looked for in the folder that the environment
//! variable `INBETWEEN_DATA` names, else in `../shared/data` beside the workspace. Where there is
//! none a test says so and ends; under `CI` it fails.
#![allow(dead_code, reason = "every test binary uses a part of this")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use inbetween::glam::{DMat3, DQuat, DVec3};
use inbetween::math::angle_between;
use inbetween::{Clip, LocalPose, ModelPose, TrackMask, Transform};
use inbetween_formats::{Import, ReadOptions, import_path};
use serde_json::Value;

/// The folder of real files, or `None` (said on standard error) where there is none.
///
/// # Panics
/// If there is none and `CI` is set.
pub fn data_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("INBETWEEN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    if dir.join("facts.json").is_file() {
        return Some(dir);
    }
    let message = format!(
        "real files not found at {}; the tests on them DID NOT RUN (set INBETWEEN_DATA to their folder)",
        dir.display()
    );
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("{message}");
    None
}

/// `facts.json`: what independent tools say about each file, by its path in the folder.
pub fn facts(dir: &Path) -> serde_json::Map<String, Value> {
    let all = json(&dir.join("facts.json"));
    all["files"].as_object().expect("facts.json lists files").clone()
}

/// Paths, below the folder, of every file with a reference and one of the extensions.
pub fn with_reference(dir: &Path, extensions: &[&str]) -> Vec<String> {
    let root = dir.join("reference");
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                let file = path.with_extension("");
                let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
                if extensions.contains(&extension.as_str()) {
                    let below = file.strip_prefix(&root).expect("found below it");
                    found.push(below.to_str().expect("a plain name").replace('\\', "/"));
                }
            }
        }
    }
    found.sort();
    found
}

/// A JSON file.
pub fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a file of the folder in its own units and axes.
pub fn import_in_file_units(path: &Path) -> Import {
    let options = ReadOptions { file_units: true, ..ReadOptions::default() };
    import_path(path, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// The largest differences from the reference, and where they are.
#[derive(Debug, Default)]
pub struct Deviation {
    /// By what was compared: `local translation`, `world rotation`, `property`, …; the difference
    /// (relative for lengths, radians for rotations) and its place.
    pub worst: BTreeMap<&'static str, (f64, String)>,
    /// The same for values the reference itself calls contested; these count nowhere.
    pub contested: BTreeMap<&'static str, (f64, String)>,
    /// Numbers compared, contested ones left out.
    pub compared: usize,
    /// What could not be compared: clips, nodes and properties that are missing.
    pub missing: Vec<String>,
}

impl Deviation {
    fn put(&mut self, contested: bool, what: &'static str, difference: f64, place: impl Fn() -> String) {
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        self.compared += usize::from(!contested);
        let list = if contested { &mut self.contested } else { &mut self.worst };
        if list.get(what).is_none_or(|(d, _)| difference > *d) {
            list.insert(what, (difference, place()));
        }
    }

    /// Everything above `tolerance` and everything missing, a line each; empty if all is well.
    pub fn over(&self, tolerance: f64) -> Vec<String> {
        let over = self.worst.iter().filter(|(_, (d, _))| *d > tolerance);
        let mut lines: Vec<String> = over.map(|(what, (d, at))| format!("{what} {d:.3e} at {at}")).collect();
        lines.extend(self.missing.iter().map(|m| format!("missing: {m}")));
        lines
    }
}

/// Which of the reference's properties a track is; given the reference's entry (`target`,
/// `property`, `node`, `mesh_node`, `kind`), returns the track's index and, where the reference
/// counts in another unit (per cent, degrees), what its values are to be multiplied by.
pub type FindProperty<'a> = &'a dyn Fn(&Import, &Clip, &Value) -> Option<(usize, f64)>;

/// Compares an import, in its file's own units and axes, with the reference of `relative`.
///
/// Lengths are relative to max(1, largest coordinate of the node in the clip; in the world of it
/// and its parents), scales to max(1, largest scale), rotations are angles in radians with either
/// sign of the quaternion. Mirrored nodes, whose sign may be shared out differently between
/// rotation and scale, are compared as matrices.
pub fn compare_with_reference(dir: &Path, relative: &str, import: &Import, find: FindProperty) -> Deviation {
    let reference = json(&dir.join("reference").join(format!("{relative}.json")));
    let mut result = Deviation::default();
    for clip in reference["clips"].as_array().expect("a list of clips") {
        let index = clip["index"].as_u64().expect("an index") as usize;
        match import.clips.get(index) {
            Some(ours) => compare_clip(import, ours, clip, find, &mut result),
            None => result.missing.push(format!("clip {index}")),
        }
    }
    result
}

fn compare_clip(import: &Import, ours: &Clip, clip: &Value, find: FindProperty, result: &mut Deviation) {
    let times: Vec<f64> = numbers(&clip["times"]);
    let nodes = clip["nodes"].as_array().expect("a list of nodes");
    let own: Vec<Marks> = nodes.iter().map(Marks::of).collect();
    let parent = |i: usize| usize::try_from(nodes[i]["parent"].as_i64().unwrap_or(-1)).ok();
    let chain = |i: usize| std::iter::successors(Some(i), |&j| parent(j)).take(2000);
    let reach = |i: usize, key: &str| {
        rows(&nodes[i][key]).iter().flatten().flatten().fold(1.0f64, |m, v| m.max(v.abs()))
    };
    let joints = match_nodes(import, nodes);
    for (i, joint) in joints.iter().enumerate() {
        if joint.is_none() {
            result.missing.push(format!("node {i} ({}) of clip {}", nodes[i]["name"], clip["index"]));
        }
    }
    for (k, &time) in times.iter().enumerate() {
        let local = LocalPose::of_clip(ours, &import.skeleton, time, &TrackMask::all());
        let world = ModelPose::of(&import.skeleton, &local);
        for (i, node) in nodes.iter().enumerate() {
            let Some(joint) = joints[i] else { continue };
            let place = || format!("clip {} node {i} ({}) t={time}", clip["index"], node["name"]);
            let contested = own[i].has(k);
            let expected = Expected::of(node, ["t", "r", "s"], k);
            compare_pose(contested, LOCAL, &local.joints[joint], &expected, reach(i, "t"), &place, result);
            let contested = chain(i).any(|j| own[j].has(k));
            let expected = Expected::of(node, ["wt", "wr", "ws"], k);
            let extent = chain(i).map(|j| reach(j, "wt")).fold(1.0, f64::max);
            let (at, _) = world.decompose(joint);
            compare_pose(contested, WORLD, &at, &expected, extent, &place, result);
        }
        for property in clip["properties"].as_array().into_iter().flatten() {
            let place = || format!("clip {} {} t={time}", clip["index"], property["property"]);
            let Some((track, factor)) = find(import, ours, property) else {
                result.missing.push(place());
                continue;
            };
            let (Some(Some(expected)), marks) = (row(&property["value"], k), Marks::of(property)) else {
                continue;
            };
            let found = ours.tracks[track].value_at(time);
            if found.len() != expected.len() {
                result.missing.push(format!("{}: {} numbers for {}", place(), found.len(), expected.len()));
            }
            for (a, b) in expected.iter().zip(&found) {
                let difference = (a - b * factor).abs() / a.abs().max(1.0);
                result.put(marks.has(k), "property", difference, place);
            }
        }
    }
}

const LOCAL: [&str; 3] = ["local translation", "local rotation", "local scale"];
const WORLD: [&str; 3] = ["world translation", "world rotation", "world scale"];

/// What the reference says of a node at one time; `None` where it says nothing (a singular or
/// sheared matrix).
struct Expected {
    translation: Option<Vec<f64>>,
    rotation: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
}

impl Expected {
    fn of(node: &Value, keys: [&str; 3], time: usize) -> Self {
        let at = |key: &str| row(&node[key], time).flatten();
        Self { translation: at(keys[0]), rotation: at(keys[1]), scale: at(keys[2]) }
    }
}

fn compare_pose(
    contested: bool,
    names: [&'static str; 3],
    ours: &Transform,
    expected: &Expected,
    extent: f64,
    place: &dyn Fn() -> String,
    result: &mut Deviation,
) {
    if let Some(t) = &expected.translation {
        let d = (ours.translation - DVec3::from_slice(t)).abs().max_element() / extent;
        result.put(contested, names[0], d, place);
    }
    let rotation = expected.rotation.as_ref().and_then(|r| inbetween::math::unit(DQuat::from_slice(r)));
    let scale = expected.scale.as_ref().map(|s| DVec3::from_slice(s));
    let matrix = match (rotation, scale) {
        (Some(r), Some(s)) if s.min_element() < 0.0 || ours.scale.min_element() < 0.0 => {
            let theirs = DMat3::from_quat(r) * DMat3::from_diagonal(s);
            let mine = DMat3::from_quat(ours.rotation) * DMat3::from_diagonal(ours.scale);
            let difference = (theirs - mine).to_cols_array().iter().fold(0.0f64, |m, v| m.max(v.abs()));
            Some(difference / s.abs().max_element().max(1.0))
        }
        _ => None,
    };
    if let Some(r) = rotation {
        let d = angle_between(ours.rotation, r);
        result.put(contested, names[1], matrix.map_or(d, |m| m.min(d)), place);
    }
    if let Some(s) = scale {
        let d = (ours.scale - s).abs().max_element() / s.abs().max_element().max(1.0);
        result.put(contested, names[2], matrix.map_or(d, |m| m.min(d)), place);
    }
}

/// The skeleton's node for each of the reference's: by its index where the names agree, else by
/// name (the n-th of that name for the n-th), else by place.
fn match_nodes(import: &Import, nodes: &[Value]) -> Vec<Option<usize>> {
    let joints = import.skeleton.joints();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    let name = |n: &'_ Value| n["name"].as_str().unwrap_or("").to_owned();
    let mut result = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let key = node["name"].as_str().unwrap_or("");
        let nth = *count.entry(key).and_modify(|c| *c += 1).or_insert(0);
        let by_index = node["index"].as_u64().map(|x| x as usize);
        let same = |x: &usize| joints.get(*x).is_some_and(|j| j.name == name(node));
        let by_name = || import.skeleton.find(key).get(nth).copied();
        result.push(by_index.filter(same).or_else(by_name).or_else(|| Some(i).filter(|&i| i < joints.len())));
    }
    result
}

/// Which of an entry's values are contested.
struct Marks {
    all: bool,
    times: Vec<usize>,
}

impl Marks {
    fn of(entry: &Value) -> Self {
        let listed = entry.get("contested_times");
        let times = listed.map_or(Vec::new(), |l| numbers(l).iter().map(|&t| t as usize).collect());
        Self { all: entry["contested"] == true && listed.is_none(), times }
    }

    fn has(&self, time: usize) -> bool {
        self.all || self.times.contains(&time)
    }
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().map(|v| v.as_f64().expect("a number")).collect()
}

/// Rows of numbers; a row with a null in it is `None`.
fn rows(list: &Value) -> Vec<Option<Vec<f64>>> {
    let row = |r: &Value| r.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
    list.as_array().into_iter().flatten().map(row).collect()
}

/// The row of one time; a single row stands for all times. `None` where there is no list.
fn row(list: &Value, time: usize) -> Option<Option<Vec<f64>>> {
    let all = list.as_array()?;
    let index = if all.len() > 1 { time } else { 0 };
    rows(list).get(index).cloned()
}
