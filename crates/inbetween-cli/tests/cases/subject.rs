//! What checks look at: a case, the file it names, and what an op made of it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use inbetween::glam::{DQuat, DVec3};
use inbetween::{Clip, Curve, LocalPose, ModelPose, Property, Track, TrackData, Transform};
use inbetween_formats::{Import, ReadOptions, convention, import_path};
use serde_json::Value;

/// A folder with an `expect.json` and the input it speaks of.
pub struct Case {
    /// The folder.
    pub dir: PathBuf,
    /// The file to load.
    pub input: PathBuf,
    /// The whole `expect.json`.
    pub expect: Value,
    /// The input as JSON, if it is a neutral description and not a file of a format.
    pub json: Option<Value>,
}

impl Case {
    /// Reads the folder.
    pub fn open(dir: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(dir.join("expect.json")).map_err(|e| e.to_string())?;
        let expect: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let named = expect.get("input").and_then(Value::as_str).map(|name| dir.join(name));
        let input = match named {
            Some(path) => path,
            None => std::fs::read_dir(dir)
                .map_err(|e| e.to_string())?
                .flatten()
                .map(|e| e.path())
                .find(|p| p.file_stem().is_some_and(|s| s == "input"))
                .ok_or("has no input file")?,
        };
        let json = if input.extension().is_some_and(|e| e == "json") {
            let text = std::fs::read_to_string(&input).map_err(|e| e.to_string())?;
            Some(serde_json::from_str(&text).map_err(|e| format!("{}: {e}", input.display()))?)
        } else {
            None
        };
        Ok(Self { dir: dir.to_owned(), input, expect, json })
    }
}

/// Gives the value of a track of a clip at a time in place of the clip itself (a decoder).
pub type Player = Box<dyn Fn(usize, usize, f64) -> Vec<f64>>;

/// A file that was loaded, or written and loaded again.
pub struct File {
    /// In metres and +Y up.
    pub house: Import,
    /// In the units and axes of the case's own file.
    pub raw: Import,
    /// Where the bytes lie.
    pub path: PathBuf,
    /// How many there are.
    pub size: u64,
    /// What plays it, if that is not the clips themselves. Values are as in `house`.
    pub player: Option<Player>,
}

/// What checks look at.
pub struct Subject {
    /// The case.
    pub case: Rc<Case>,
    /// The file, or the error it gave.
    pub file: Result<Rc<File>, String>,
    /// What the file was made from.
    pub source: Option<Rc<File>>,
    /// What the tool said about it.
    pub report: Option<Value>,
}

impl Subject {
    /// Loads the case's input.
    pub fn load(case: Case) -> Self {
        let file = if case.json.is_some() {
            Err("the input is a description, not a file to load".to_owned())
        } else {
            load(&case.input).map(Rc::new)
        };
        Self { case: Rc::new(case), file, source: None, report: None }
    }

    /// A subject made of this one.
    pub fn made(&self, file: File, report: Option<Value>) -> Self {
        // What a result is compared with is what the case came with.
        let source = self.source.clone().or_else(|| self.file.as_ref().ok().cloned());
        Self { case: self.case.clone(), file: Ok(Rc::new(file)), source, report }
    }

    /// The loaded file.
    pub fn file(&self) -> Result<&File, String> {
        self.file.as_ref().map(|f| &**f).map_err(|e| format!("did not load: {e}"))
    }
}

/// Loads a file twice: as it is, and in the house's units. A panic is an error that says so.
pub fn load(path: &Path) -> Result<File, String> {
    let read = |file_units| {
        let options = ReadOptions { file_units, ..ReadOptions::default() };
        std::panic::catch_unwind(|| import_path(path, &options))
            .map_err(|p| format!("PANIC while reading: {}", crate::panic_text(&*p)))?
            // The file's name may hold the very words a message is searched for.
            .map_err(|e| e.to_string().replace(&path.display().to_string(), "FILE"))
    };
    let (raw, house) = (read(true)?, read(false)?);
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    Ok(File { house, raw, path: path.to_owned(), size, player: None })
}

impl File {
    /// A file whose clips were read from bytes in the house's units; `like` says what its own
    /// units are.
    pub fn from_house(house: Import, like: &Import, path: &Path, size: u64) -> Self {
        let mut raw = house.clone();
        raw.convention = like.convention;
        raw.in_house_units = true;
        convention::to_file(&mut raw);
        Self { house, raw, path: path.to_owned(), size, player: None }
    }

    /// Metres in one unit of the file.
    pub fn metres_per_unit(&self) -> f64 {
        self.raw.convention.metres_per_unit
    }

    /// The index of the clip a check means: a number, a name, or the first.
    pub fn clip(&self, check: &Value) -> Result<usize, String> {
        self.clip_named(check.get("clip").unwrap_or(&Value::Null))
    }

    /// The index of the clip that is meant.
    pub fn clip_named(&self, wanted: &Value) -> Result<usize, String> {
        let clips = &self.house.clips;
        let names = || clips.iter().map(|c| format!("{:?}", c.name)).collect::<Vec<_>>().join(", ");
        match wanted {
            Value::String(name) => {
                let mut found = (0..clips.len()).filter(|&i| clips[i].name == *name);
                match (found.next(), found.next()) {
                    (Some(i), None) => Ok(i),
                    (None, _) => Err(format!("no clip is called {name:?}; there are {}", names())),
                    _ => Err(format!("several clips are called {name:?}: ambiguous")),
                }
            }
            Value::Null => {
                if clips.is_empty() {
                    Err("there are no clips".to_owned())
                } else {
                    Ok(0)
                }
            }
            number => match number.as_u64().and_then(|n| usize::try_from(n).ok()) {
                Some(i) if i < clips.len() => Ok(i),
                _ => Err(format!("no clip {number}; there are {}", clips.len())),
            },
        }
    }

    /// The index of the node a check means, by `node_index` or by the name under `key`. Of two
    /// nodes of one name the one that moves is taken.
    pub fn node(&self, check: &Value, key: &str) -> Result<usize, String> {
        let joints = self.house.skeleton.joints();
        let index = check.get("node_index").or_else(|| check.get(key).filter(|v| v.is_u64()));
        if let Some(i) = index.and_then(Value::as_u64) {
            let i = usize::try_from(i).unwrap_or(usize::MAX);
            return if i < joints.len() {
                Ok(i)
            } else {
                Err(format!("no node {i}; there are {}", joints.len()))
            };
        }
        let name =
            check.get(key).and_then(Value::as_str).ok_or_else(|| format!("the check names no {key}"))?;
        let found: Vec<usize> = (0..joints.len()).filter(|&i| joints[i].name == name).collect();
        let moves = |&&i: &&usize| {
            self.house.clips.iter().any(|c| c.tracks.iter().any(|t| t.binding.node == Some(i)))
        };
        found
            .iter()
            .find(moves)
            .or(found.first())
            .copied()
            .ok_or_else(|| format!("no node is called {name:?}"))
    }

    /// Value of a track at a time, in the house's units.
    pub fn value(&self, clip: usize, track: usize, time: f64) -> Vec<f64> {
        match &self.player {
            Some(player) => player(clip, track, time),
            None => self.house.clips[clip].tracks[track].value_at(time),
        }
    }

    /// Value of a track at a time, in the file's own units.
    pub fn raw_value(&self, clip: usize, track: usize, time: f64) -> Vec<f64> {
        let raw = &self.raw.clips[clip].tracks[track];
        if self.player.is_none() {
            return raw.value_at(time);
        }
        let value = self.value(clip, track, time);
        let mut t = Transform::IDENTITY;
        match raw.binding.property {
            Property::Translation if raw.binding.node.is_some() => {
                t.translation = DVec3::from_slice(&value);
                self.transform_in_file(&t).translation.to_array().to_vec()
            }
            Property::Rotation if raw.binding.node.is_some() => {
                t.rotation = DQuat::from_slice(&value);
                self.transform_in_file(&t).rotation.to_array().to_vec()
            }
            Property::Scale if raw.binding.node.is_some() => {
                t.scale = DVec3::from_slice(&value);
                self.transform_in_file(&t).scale.to_array().to_vec()
            }
            _ => value,
        }
    }

    /// A transform of the house in the units and axes of the file.
    fn transform_in_file(&self, t: &Transform) -> Transform {
        let convention = self.raw.convention;
        let back = convention.axes.inverse();
        let scale = t.scale.to_array();
        Transform {
            translation: back.point(t.translation) / convention.metres_per_unit,
            rotation: back.rotation(t.rotation),
            scale: DVec3::from_array(back.from.map(|i| scale[i])),
        }
    }

    /// Every node's transform in its parent, in the house's units or the file's. Built from the
    /// tracks one by one, not by the library's own sampling of poses.
    pub fn local(&self, clip: usize, time: f64, raw: bool) -> LocalPose {
        if raw && self.player.is_some() {
            // What a decoder gives is in the house's units.
            let joints = self.local(clip, time, false).joints;
            return LocalPose { joints: joints.iter().map(|t| self.transform_in_file(t)).collect() };
        }
        let import = if raw { &self.raw } else { &self.house };
        let joints = import.skeleton.joints();
        let mut pose: Vec<Transform> = joints.iter().map(|j| j.rest).collect();
        let decoded = self.player.is_some();
        if decoded {
            // A decoder gives transforms with their pivots folded in.
            pose = LocalPose::rest(&import.skeleton).joints;
        }
        for (i, track) in import.clips[clip].tracks.iter().enumerate() {
            let Some(t) = track.binding.node.filter(|_| track.enabled).and_then(|n| pose.get_mut(n)) else {
                continue;
            };
            let value = || if raw { self.raw_value(clip, i, time) } else { self.value(clip, i, time) };
            match track.binding.property {
                Property::Translation => t.translation = DVec3::from_slice(&value()),
                Property::Scale => t.scale = DVec3::from_slice(&value()),
                Property::Rotation => t.rotation = DQuat::from_slice(&value()),
                _ => {}
            }
        }
        for (t, joint) in pose.iter_mut().zip(joints).filter(|_| !decoded) {
            if let Some(pivot) = &joint.pivot {
                *t = pivot.fold(*t);
            }
        }
        LocalPose { joints: pose }
    }

    /// Every node in the world.
    pub fn world(&self, clip: usize, time: f64, raw: bool) -> ModelPose {
        let import = if raw { &self.raw } else { &self.house };
        ModelPose::of(&import.skeleton, &self.local(clip, time, raw))
    }

    /// Every node in the world when nothing moves it.
    pub fn rest_world(&self, raw: bool) -> ModelPose {
        let import = if raw { &self.raw } else { &self.house };
        ModelPose::of(&import.skeleton, &LocalPose::rest(&import.skeleton))
    }

    /// The track a check means, by `target` (a pointer or a name) or by node and `path`.
    pub fn track(&self, clip: usize, check: &Value) -> Result<Option<usize>, String> {
        let tracks = &self.house.clips[clip].tracks;
        let path = check.get("path").or_else(|| check.get("property")).and_then(Value::as_str);
        if let Some(target) = check.get("target").and_then(Value::as_str) {
            let by_pointer = tracks.iter().position(|t| t.binding.path.as_deref() == Some(target));
            let node_pointer = || {
                let (node, property) = target.strip_prefix("/nodes/")?.split_once('/')?;
                let node: usize = node.parse().ok()?;
                find(tracks, node, property)
            };
            let by_name = || {
                tracks.iter().position(|t| {
                    t.binding.target == target && path.is_none_or(|p| t.binding.property.name() == p)
                })
            };
            return Ok(by_pointer.or_else(node_pointer).or_else(by_name));
        }
        let node = self.node(check, "node")?;
        let path = path.ok_or("the check names no path")?;
        Ok(find(tracks, node, property_of(path).0))
    }
}

/// The track of a property of a node.
pub fn find(tracks: &[Track], node: usize, property: &str) -> Option<usize> {
    tracks.iter().position(|t| t.binding.node == Some(node) && t.binding.property.name() == property)
}

/// `translation.x` as property and component.
pub fn property_of(path: &str) -> (&str, Option<usize>) {
    let component = |c: &str| match c {
        "x" | "r" => Some(0),
        "y" | "g" => Some(1),
        "z" | "b" => Some(2),
        "w" | "a" => Some(3),
        other => other.parse().ok(),
    };
    if let Some((property, tail)) = path.rsplit_once('.')
        && matches!(property, "translation" | "rotation" | "scale" | "weights")
        && let Some(c) = component(tail)
    {
        return (property, Some(c));
    }
    (path, None)
}

/// The curves of a track, or of the one component that has a curve of its own.
pub fn curves_of(track: &Track, component: Option<usize>) -> Vec<&Curve> {
    match (&track.data, component) {
        (TrackData::Axes { axes, .. }, Some(c)) => axes.get(c).and_then(|a| a.curve()).into_iter().collect(),
        (TrackData::Euler(e), Some(c)) => {
            let of_axis = e.terms.iter().filter(|(axis, _)| *axis as usize == c);
            of_axis.filter_map(|(_, a)| a.curve()).collect()
        }
        _ => track.data.curves(),
    }
}

/// How many keys a track, or one component of it, has: its distinct key times.
pub fn key_count(track: &Track, component: Option<usize>) -> usize {
    match (&track.data, component) {
        (TrackData::Axes { .. } | TrackData::Euler(_), Some(_)) => {
            curves_of(track, component).iter().map(|c| c.len()).sum()
        }
        _ => track.data.key_times().len(),
    }
}

/// The times at which clips are compared: every key of any track and every midpoint between
/// neighbours.
pub fn comparison_times(clip: &Clip) -> Vec<f64> {
    let keys = clip.key_times();
    let mut times = Vec::with_capacity(2 * keys.len());
    for (i, &t) in keys.iter().enumerate() {
        if i > 0 {
            times.push(0.5 * (keys[i - 1] + t));
        }
        times.push(t);
    }
    if times.is_empty() {
        times.push(clip.start());
    }
    times
}

/// A number in a check.
pub fn number(check: &Value, key: &str) -> Option<f64> {
    check.get(key).and_then(Value::as_f64)
}

/// A row of numbers in a check; one number is a row of one.
pub fn row(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::Array(items) => items.iter().map(Value::as_f64).collect(),
        Value::Bool(b) => Some(vec![f64::from(u8::from(*b))]),
        other => other.as_f64().map(|v| vec![v]),
    }
}

/// True unless the check asks for metres.
pub fn in_file_units(check: &Value) -> bool {
    check.get("unit").and_then(Value::as_str) != Some("m")
}
