//! Nodes, skins and animations of a document, as the model has them.
//!
//! Repairs are made only where they are sure, and each is a note: keys out of order are sorted,
//! two keys at one time become a jump, quaternions off unit length are normalised, a quaternion of
//! zeros takes its neighbour's place. Anything else that breaks the format is an error that names
//! animation, channel and accessor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use inbetween::glam::{DAffine3, DMat4, DQuat, DVec3};
use inbetween::pose::decompose;
use inbetween::{
    Binding, Clip, Curve, CurveParts, Extrapolation, FrameRate, Joint, NodeKind, Property, Skeleton,
    SkeletonError, SpanKind, Spans, Tangents, Track, TrackData, Transform, ValueKind,
};
use serde_json::Value;

use super::accessor::{Accessors, Component};
use super::container::{self, Document};
use super::{Place, pointer};
use crate::convention::Convention;
use crate::{FormatError, Import, Input, Note, ReadOptions, Severity, Source};

/// Reads a whole file.
pub(super) fn read(input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
    let mut notes = Vec::new();
    let document = container::open(input, &mut notes)?;
    let at = Place { file: input.name };
    let accessors = Accessors::new(&document, at);
    let mut joints = nodes(&document, at, &mut notes)?;
    // Meshes draw on a budget of their own: however large, they must not starve the clips.
    reaches(&document, &Accessors::new(&document, at), &mut joints, &mut notes);
    let skeleton = tree(joints, at)?;
    let clips = clips(&document, &skeleton, at, &accessors, options.max_keys, &mut notes)?;
    drop(accessors);
    Ok(Import {
        format: if document.is_glb { "glb" } else { "gltf" },
        skeleton,
        clips: clips.into_iter().map(|c| c.clip).collect(),
        notes,
        convention: Convention::HOUSE,
        in_house_units: false,
        source: Source::Gltf(Box::new(document)),
        decimals: None,
    })
}

fn tree(joints: Vec<Joint>, at: Place<'_>) -> Result<Skeleton, FormatError> {
    Skeleton::new(joints).map_err(|error| {
        let index = match &error {
            SkeletonError::Cycle { index, .. } | SkeletonError::NoSuchParent { index, .. } => *index,
        };
        let advice = "remove the node from its own descendants' children";
        at.broken(format!("node {index}"), "a tree of nodes", error.to_string(), advice)
    })
}

const EDIT: &str = "export the file again or correct its JSON";

/// The numbers of a list of known length, `None` where the key is not there.
fn fixed<const N: usize>(
    json: &Value,
    key: &str,
    place: &str,
    at: Place<'_>,
) -> Result<Option<[f64; N]>, FormatError> {
    let Some(value) = json.get(key) else { return Ok(None) };
    let list = value.as_array().filter(|l| l.len() == N);
    let numbers: Option<Vec<f64>> = list.and_then(|l| l.iter().map(Value::as_f64).collect());
    match numbers {
        Some(numbers) => Ok(Some(std::array::from_fn(|i| numbers[i]))),
        None => {
            let found: String = value.to_string().chars().take(80).collect();
            Err(at.broken(format!("{place} {key}"), format!("{N} numbers"), found, EDIT))
        }
    }
}

fn nodes(document: &Document, at: Place<'_>, notes: &mut Vec<Note>) -> Result<Vec<Joint>, FormatError> {
    let list = document.list("nodes");
    let mut joints = Vec::with_capacity(list.len());
    for (index, json) in list.iter().enumerate() {
        let name = json.get("name").and_then(Value::as_str).unwrap_or("");
        let place = format!("node {index} ({name:?})");
        let rest = node_transform(json, &place, at, notes)?;
        let mut joint = Joint::new(name, None, rest);
        joint.kind = if json.get("camera").is_some() {
            NodeKind::Camera
        } else if pointer::node_light(json).is_some() {
            NodeKind::Light
        } else if json.get("mesh").is_some() {
            NodeKind::Mesh
        } else {
            NodeKind::Node
        };
        joints.push(joint);
    }
    for (index, json) in list.iter().enumerate() {
        for child in json.get("children").and_then(Value::as_array).into_iter().flatten() {
            let place = || format!("node {index} ({:?}) children", joints[index].name);
            let Some(child) = child.as_u64().map(|c| c as usize).filter(|&c| c < list.len()) else {
                let expected = format!("indices below {}, the number of nodes", list.len());
                return Err(at.broken(place(), expected, child.to_string(), EDIT));
            };
            if let Some(other) = joints[child].parent
                && other != index
            {
                let found = format!("node {child} under node {other} and under node {index}");
                let expected = "each node below one parent, not more than one";
                return Err(at.broken(place(), expected, found, "remove it from one of them"));
            }
            joints[child].parent = Some(index);
        }
    }
    for skin in document.list("skins") {
        for joint in skin.get("joints").and_then(Value::as_array).into_iter().flatten() {
            if let Some(joint) = joint.as_u64().and_then(|j| joints.get_mut(j as usize)) {
                joint.kind = NodeKind::Joint;
            }
        }
    }
    Ok(joints)
}

fn node_transform(
    json: &Value,
    place: &str,
    at: Place<'_>,
    notes: &mut Vec<Note>,
) -> Result<Transform, FormatError> {
    let mut note = |severity, text: &str| notes.push(Note::new(severity, place, text));
    if let Some(m) = fixed::<16>(json, "matrix", place, at)? {
        let (transform, whole) = decompose(&DAffine3::from_mat4(DMat4::from_cols_array(&m)));
        if !whole {
            let text = "its matrix is sheared or flat, which translation, rotation and scale do not express";
            note(Severity::Lost, text);
        }
        return Ok(transform);
    }
    let translation = fixed::<3>(json, "translation", place, at)?.unwrap_or([0.0; 3]);
    let scale = fixed::<3>(json, "scale", place, at)?.unwrap_or([1.0; 3]);
    let q = fixed::<4>(json, "rotation", place, at)?.unwrap_or([0.0, 0.0, 0.0, 1.0]);
    let rotation = match inbetween::math::unit(DQuat::from_array(q)) {
        Some(unit) => {
            if (DQuat::from_array(q).length() - 1.0).abs() > 1e-3 {
                note(Severity::Repaired, "its rotation is not of unit length and was normalised");
            }
            unit
        }
        None => {
            note(Severity::Repaired, "its rotation is a zero quaternion; no rotation is taken for it");
            DQuat::IDENTITY
        }
    };
    Ok(Transform { translation: DVec3::from_array(translation), rotation, scale: DVec3::from_array(scale) })
}

/// Sets for each joint how far the skin on it reaches. What cannot be read (Draco meshes, data
/// that is not there) leaves the joint without a reach and is noted once.
fn reaches(document: &Document, accessors: &Accessors<'_>, joints: &mut [Joint], notes: &mut Vec<Note>) {
    let mut unread = None;
    let mut seen = BTreeSet::new();
    for node in document.list("nodes") {
        let index = |key: &str| node.get(key).and_then(Value::as_u64);
        let (Some(mesh), Some(skin_index)) = (index("mesh"), index("skin")) else { continue };
        let (Some(mesh), Some(skin)) =
            (document.list("meshes").get(mesh as usize), document.list("skins").get(skin_index as usize))
        else {
            continue;
        };
        for primitive in mesh.get("primitives").and_then(Value::as_array).into_iter().flatten() {
            // Many nodes may carry one mesh, and many primitives share one set of vertices.
            let of = |name: &str| primitive.get("attributes").and_then(|a| a.get(name)?.as_u64());
            if seen.insert((skin_index, of("POSITION"), of("JOINTS_0"), of("WEIGHTS_0")))
                && let Err(why) = reach_of(primitive, skin, accessors, joints)
            {
                unread.get_or_insert(why);
            }
        }
    }
    if let Some(why) = unread {
        let text = format!("how far the skin reaches is not known for all joints: {why}");
        notes.push(Note::new(Severity::Info, "skins", text));
    }
}

/// Weights below this move a vertex by less than a byte's worth.
const LEAST_WEIGHT: f64 = 1.0 / 255.0;

fn reach_of(
    primitive: &Value,
    skin: &Value,
    accessors: &Accessors<'_>,
    joints: &mut [Joint],
) -> Result<(), String> {
    if primitive.pointer("/extensions/KHR_draco_mesh_compression").is_some() {
        return Err("a mesh is compressed with Draco, which is not opened".to_owned());
    }
    let attribute = |name: &str| {
        let index = primitive.get("attributes")?.get(name)?.as_u64()? as usize;
        Some(accessors.numbers(index).map_err(|e| e.to_string()))
    };
    let Some(positions) = attribute("POSITION").transpose()? else { return Ok(()) };
    let list = skin.get("joints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let inverse_binds = match skin.get("inverseBindMatrices").and_then(Value::as_u64) {
        Some(index) => accessors.numbers(index as usize).map_err(|e| e.to_string())?,
        None => Vec::new(),
    };
    let identity = DMat4::IDENTITY.to_cols_array();
    let into_joint = |j: usize| {
        let m = inverse_binds.get(16 * j..16 * j + 16).unwrap_or(&identity);
        DMat4::from_cols_slice(m)
    };
    let mut reach = vec![0.0f64; list.len()];
    for set in 0.. {
        let (Some(indices), Some(weights)) =
            (attribute(&format!("JOINTS_{set}")), attribute(&format!("WEIGHTS_{set}")))
        else {
            break;
        };
        let (indices, weights) = (indices?, weights?);
        for ((vertex, indices), weights) in
            positions.chunks_exact(3).zip(indices.chunks_exact(4)).zip(weights.chunks_exact(4))
        {
            for (&joint, &weight) in indices.iter().zip(weights) {
                if weight >= LEAST_WEIGHT && (joint as usize) < reach.len() {
                    let joint = joint as usize;
                    let at = into_joint(joint).transform_point3(DVec3::from_slice(vertex));
                    reach[joint] = reach[joint].max(at.length());
                }
            }
        }
    }
    for (joint, &reach) in list.iter().zip(&reach) {
        let joint = joint.as_u64().and_then(|j| joints.get_mut(j as usize));
        if let Some(joint) = joint.filter(|_| reach.is_finite() && reach > 0.0) {
            joint.reach = Some(joint.reach.unwrap_or(0.0).max(reach));
        }
    }
    Ok(())
}

/// A clip and where it came from.
pub(super) struct ReadClip {
    pub(super) clip: Clip,
    /// For each of its tracks the channel it came from.
    pub(super) channels: Vec<usize>,
    /// For each of its tracks, true if it says what the file says, without a repair.
    pub(super) exact: Vec<bool>,
    /// Channels that drive nothing this program knows.
    pub(super) ignored: Vec<usize>,
}

/// What makes two tracks drive the same thing: the node and property, or the pointer.
pub(super) type Identity = (Option<usize>, String);

/// See [`Identity`].
pub(super) fn identity(binding: &Binding) -> Identity {
    let name = match (&binding.path, binding.node) {
        (Some(path), None) => path,
        _ => binding.property.name(),
    };
    (binding.node, name.to_owned())
}

/// The animations of a document.
pub(super) fn clips(
    document: &Document,
    skeleton: &Skeleton,
    at: Place<'_>,
    accessors: &Accessors<'_>,
    max_keys: u64,
    notes: &mut Vec<Note>,
) -> Result<Vec<ReadClip>, FormatError> {
    let mut reader = Channels {
        document,
        skeleton,
        at,
        accessors,
        times: BTreeMap::new(),
        keys_left: max_keys,
        max_keys,
        notes,
    };
    let mut clips = Vec::new();
    for (index, json) in document.list("animations").iter().enumerate() {
        clips.push(reader.clip(index, json)?);
    }
    Ok(clips)
}

struct Channels<'a, 'n> {
    document: &'a Document,
    skeleton: &'a Skeleton,
    at: Place<'a>,
    accessors: &'a Accessors<'a>,
    /// Times of an input accessor, and which keys they are of, if keys were moved.
    times: BTreeMap<usize, Times>,
    keys_left: u64,
    max_keys: u64,
    notes: &'n mut Vec<Note>,
}

/// Key times as the model has them, and the file's keys in their order.
#[derive(Clone)]
struct Times {
    times: Arc<[f64]>,
    /// Which of the file's keys each is; `None` if they are as in the file.
    keys: Option<Arc<[usize]>>,
    /// What was repaired.
    repaired: Option<String>,
}

/// One channel's target and where it is, for messages.
struct Target {
    binding: Binding,
    place: String,
}

impl Channels<'_, '_> {
    fn note(&mut self, severity: Severity, place: &str, text: impl Into<String>) {
        self.notes.push(Note::new(severity, place, text));
    }

    fn clip(&mut self, index: usize, json: &Value) -> Result<ReadClip, FormatError> {
        let name = json.get("name").and_then(Value::as_str).unwrap_or("");
        let clip_place = format!("animation {index} ({name:?})");
        let mut tracks: Vec<Track> = Vec::new();
        let (mut channels, mut exact, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
        let samplers = json.get("samplers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let list = json.get("channels").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut placed: BTreeMap<Identity, usize> = BTreeMap::new();
        for (c, channel) in list.iter().enumerate() {
            let place = format!("{clip_place} channel {c}");
            let Some(target) = self.target(channel, place)? else {
                ignored.push(c);
                continue;
            };
            let sampler = channel.get("sampler").and_then(Value::as_u64);
            let Some(sampler) = sampler.and_then(|s| samplers.get(s as usize)) else {
                let expected = format!("one of the animation's {} samplers", samplers.len());
                let found = channel.get("sampler").map_or("nothing".to_owned(), Value::to_string);
                return Err(self.at.broken(target.place, expected, found, EDIT));
            };
            let repairs = self.notes.len();
            let Some(track) = self.track(sampler, &target)? else { continue };
            let as_written = self.notes.len() == repairs;
            match placed.entry(identity(&track.binding)) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(tracks.len());
                    tracks.push(track);
                    channels.push(c);
                    exact.push(as_written);
                }
                std::collections::btree_map::Entry::Occupied(entry) => {
                    let first = *entry.get();
                    let text = format!(
                        "the same target as channel {} (duplicate); the later one is taken",
                        channels[first]
                    );
                    tracks[first] = track;
                    channels[first] = c;
                    exact[first] = as_written;
                    self.note(Severity::Lost, &target.place, text);
                }
            }
        }
        if tracks.is_empty() {
            let text = if list.is_empty() {
                "the clip is empty: it has no channels"
            } else {
                "the clip is empty: no tracks are left of its channels"
            };
            self.note(Severity::Info, &clip_place, text);
        }
        let ends = tracks.iter().flat_map(|t| t.data.curves());
        let (start, end) = ends.fold((0.0f64, 0.0f64), |(s, e), c| (s.min(c.start()), e.max(c.end())));
        if start < 0.0 {
            let text =
                format!("key times begin at {start} s, where glTF asks for none below 0; they are kept");
            self.note(Severity::Info, &clip_place, text);
        }
        let mut clip = Clip::new(name, start, end).expect("key times are finite");
        clip.tracks = tracks;
        clip.rate = guess_rate(&clip);
        Ok(ReadClip { clip, channels, exact, ignored })
    }

    /// What a channel drives; `None`, with a note, if it is to be passed over.
    fn target(&mut self, channel: &Value, place: String) -> Result<Option<Target>, FormatError> {
        let none = Value::Null;
        let json = channel.get("target").unwrap_or(&none);
        let path = json.get("path").and_then(Value::as_str).unwrap_or("");
        let given = json.pointer("/extensions/KHR_animation_pointer/pointer").and_then(Value::as_str);
        if let Some(given) = given {
            let Some(named) = pointer::resolve(self.document, given) else {
                let text = format!("its pointer {given:?} names nothing in the file; the channel is ignored");
                self.note(Severity::Lost, &place, text);
                return Ok(None);
            };
            let place = format!("{place} ({given})");
            let binding = Binding {
                target: named.target,
                node: named.node,
                property: named.property,
                path: Some(given.to_owned()),
            };
            return Ok(Some(Target { binding, place }));
        }
        let Some(node) = json.get("node") else {
            self.note(Severity::Lost, &place, "it has no target node and is ignored");
            return Ok(None);
        };
        let count = self.skeleton.len();
        let Some(index) = node.as_u64().map(|n| n as usize).filter(|&n| n < count) else {
            let expected = format!("a node below {count}, the number of nodes");
            return Err(self.at.broken(place, expected, node.to_string(), EDIT));
        };
        let name = &self.skeleton.joints()[index].name;
        let place = format!("{place} (node {index} {name:?} {path})");
        let property = match path {
            "translation" => Property::Translation,
            "rotation" => Property::Rotation,
            "scale" => Property::Scale,
            "weights" => Property::Weights,
            _ => {
                let text = format!("its path {path:?} is not known; the channel is ignored");
                self.note(Severity::Lost, &place, text);
                return Ok(None);
            }
        };
        Ok(Some(Target { binding: Binding::node(index, name.as_str(), property), place }))
    }

    /// The track of a channel; `None`, with a note, if it has no keys.
    fn track(&mut self, sampler: &Value, target: &Target) -> Result<Option<Track>, FormatError> {
        let place = &target.place;
        let index = |key: &str| {
            sampler.get(key).and_then(Value::as_u64).map(|i| i as usize).ok_or_else(|| {
                let found = sampler.get(key).map_or("nothing".to_owned(), Value::to_string);
                self.at.broken(place, format!("an accessor as its sampler's {key}"), found, EDIT)
            })
        };
        let (input, output) = (index("input")?, index("output")?);
        let mut span = match sampler.get("interpolation").map(|i| i.as_str().unwrap_or("?")) {
            None | Some("LINEAR") => SpanKind::Linear,
            Some("STEP") => SpanKind::Step,
            Some("CUBICSPLINE") => SpanKind::Hermite,
            Some(other) => {
                let expected = "interpolation LINEAR, STEP or CUBICSPLINE";
                return Err(self.at.broken(place, expected, format!("{other:?}"), EDIT));
            }
        };
        let shape = self.accessors.shape(output)?;
        let input_shape = self.accessors.shape(input)?;
        if input_shape.count == 0 || shape.count == 0 {
            self.note(Severity::Lost, place, "the track is empty: it has no keys");
            return Ok(None);
        }
        let per_key = if span == SpanKind::Hermite { 3 } else { 1 };
        let kind = self.kind(target, output, input_shape.count * per_key)?;
        let expected = (input_shape.count as u64) * (per_key * kind.width()) as u64;
        let found = shape.count as u64 * shape.width as u64;
        if expected != found {
            let name = target.binding.property.name();
            let each = if per_key == 3 { " and its two tangents" } else { "" };
            // In elements of the accessor, as its count is.
            let of_one = kind.width() / shape.width.max(1);
            let elements = expected / shape.width.max(1) as u64;
            let values = if of_one > 1 { format!("{of_one} {name}") } else { format!("one {name}") };
            let text = format!(
                "an output count of {elements}: {} keys (accessor {input}) of {values} a key{each}",
                input_shape.count,
            );
            let found = format!("a count of {} in accessor {output}", shape.count);
            return Err(self.at.broken(place, text, found, EDIT));
        }
        self.count_keys(input_shape.count as u64, place)?;
        let times = self.times(input, target)?;
        if let Some(text) = &times.repaired {
            let text = text.clone();
            self.note(Severity::Repaired, place, text);
        }
        let numbers = self.accessors.numbers(output)?;
        let width = kind.width();
        let row = |key: usize, part: usize| {
            let start = (key * per_key + part) * width;
            &numbers[start..start + width]
        };
        let order = |i: usize| times.keys.as_ref().map_or(i, |k| k[i]);
        let n = times.times.len();
        let rows = |part: usize| -> Vec<f64> { (0..n).flat_map(|i| row(order(i), part)).copied().collect() };
        let mut values = rows(per_key / 2);
        let mut tangents = None;
        if span == SpanKind::Hermite && n == 1 {
            span = SpanKind::Linear;
            let text = "a cubic spline of one key, where glTF asks for two; its value is held";
            self.note(Severity::Repaired, place, text);
        } else if span == SpanKind::Hermite {
            tangents = Some(Box::new(Tangents {
                leave: rows(2),
                arrive: rows(0),
                leave_dt: Vec::new(),
                arrive_dt: Vec::new(),
            }));
        }
        if kind == ValueKind::Rotation {
            self.repair_rotations(target, shape.component, span, &mut values);
        }
        let rest = self.rest(target, kind, &values);
        if kind == ValueKind::Switch {
            span = SpanKind::Step;
        }
        let curve = Curve::new(CurveParts {
            kind,
            times: times.times,
            values,
            spans: Spans::Uniform(span),
            tangents,
            before: Extrapolation::Hold,
            after: Extrapolation::Hold,
        });
        let curve = curve.map_err(|error| {
            let place = format!("{place} (accessors {input} and {output})");
            let expected = "finite key values at finite, increasing times";
            self.at.broken(place, expected, error.to_string(), "export the animation again")
        })?;
        Ok(Some(Track::new(target.binding.clone(), TrackData::Curve(curve), rest)))
    }

    fn count_keys(&mut self, keys: u64, place: &str) -> Result<(), FormatError> {
        match self.keys_left.checked_sub(keys) {
            Some(left) => {
                self.keys_left = left;
                Ok(())
            }
            None => Err(FormatError::Limit {
                file: self.at.file.to_owned(),
                place: place.to_owned(),
                what: "keys".to_owned(),
                found: self.max_keys - self.keys_left + keys,
                limit: self.max_keys,
                advice: "if the count is right, raise the limit on keys".to_owned(),
            }),
        }
    }

    /// What the numbers of a channel mean, checked against its output accessor's type.
    fn kind(&self, target: &Target, output: usize, rows: usize) -> Result<ValueKind, FormatError> {
        let shape = self.accessors.shape(output)?;
        let wanted = |kind: &str| {
            if shape.kind == kind {
                return Ok(());
            }
            let expected = format!("an output accessor of type {kind}");
            let found = format!("accessor {output} of type {}", shape.kind);
            Err(self.at.broken(&target.place, expected, found, EDIT))
        };
        let integer = !matches!(shape.component, Component::F32);
        let plain_integer = integer && !shape.normalized;
        Ok(match &target.binding.property {
            Property::Translation | Property::Scale | Property::Rotation | Property::Weights
                if plain_integer =>
            {
                let found = format!("accessor {output} of plain integers");
                let expected = "floats or normalized integers";
                return Err(self.at.broken(&target.place, expected, found, EDIT));
            }
            Property::Translation | Property::Scale => wanted("VEC3").map(|()| ValueKind::Vector(3))?,
            Property::Rotation => wanted("VEC4").map(|()| ValueKind::Rotation)?,
            Property::Weights => {
                wanted("SCALAR")?;
                ValueKind::Weights(self.weight_count(target, shape.count, rows))
            }
            Property::Visible => wanted("SCALAR").map(|()| ValueKind::Switch)?,
            Property::Other(_) => {
                let path = target.binding.path.as_deref().unwrap_or("");
                let color = pointer::is_color(path);
                match shape.width {
                    1 if pointer::is_switch(path) => ValueKind::Switch,
                    1 if path.ends_with("/weights") => {
                        ValueKind::Weights(self.weight_count(target, shape.count, rows))
                    }
                    1 if shape.count == rows => ValueKind::Scalar,
                    1 => ValueKind::Weights(self.weight_count(target, shape.count, rows)),
                    3 | 4 if color => ValueKind::Color(shape.width as u8),
                    n => ValueKind::Vector(n as u8),
                }
            }
        })
    }

    /// Morph targets of the channel's mesh, else as many as the output's count speaks for.
    fn weight_count(&self, target: &Target, values: usize, rows: usize) -> u32 {
        let node = target.binding.node.map(|n| &self.document.list("nodes")[n]);
        let mesh = match node {
            Some(node) => node.get("mesh").and_then(Value::as_u64),
            None => target
                .binding
                .path
                .as_deref()
                .and_then(|p| p.strip_prefix("/meshes/")?.strip_suffix("/weights")?.parse().ok()),
        };
        let mesh = mesh.and_then(|m| self.document.list("meshes").get(m as usize));
        let targets = mesh.and_then(|m| m.pointer("/primitives/0/targets")).and_then(Value::as_array);
        let listed = [mesh, node].into_iter().flatten().find_map(|v| v.get("weights")?.as_array());
        let known = targets.or(listed).map(Vec::len);
        match known {
            Some(n) if n > 0 => n as u32,
            // An array named by a pointer has the length it has in the document.
            _ => match target.binding.path.as_deref().and_then(|p| self.document.json.pointer(p)) {
                Some(Value::Array(list)) => list.len() as u32,
                _ => values.div_ceil(rows) as u32,
            },
        }
    }

    fn rest(&self, target: &Target, kind: ValueKind, values: &[f64]) -> Vec<f64> {
        let binding = &target.binding;
        let joint = binding.node.map(|n| &self.skeleton.joints()[n].rest);
        match (&binding.property, joint) {
            (Property::Translation, Some(rest)) => rest.translation.to_array().to_vec(),
            (Property::Rotation, Some(rest)) => rest.rotation.to_array().to_vec(),
            (Property::Scale, Some(rest)) => rest.scale.to_array().to_vec(),
            (Property::Visible, _) => vec![1.0],
            (Property::Weights, Some(_)) => {
                let node = &self.document.list("nodes")[binding.node.expect("a node's rest was found")];
                let mesh = node.get("mesh").and_then(Value::as_u64);
                let mesh = mesh.and_then(|m| self.document.list("meshes").get(m as usize));
                let weights = node.get("weights").or_else(|| mesh?.get("weights"));
                let weights = weights.and_then(Value::as_array);
                let weights = weights.and_then(|w| w.iter().map(Value::as_f64).collect::<Option<Vec<_>>>());
                weights.filter(|w| w.len() == kind.width()).unwrap_or_else(|| vec![0.0; kind.width()])
            }
            _ => {
                let path = binding.path.as_deref().unwrap_or("");
                pointer::rest(self.document, path, kind.width())
                    .unwrap_or_else(|| values[..kind.width()].to_vec())
            }
        }
    }

    /// The times of an input accessor, in order.
    fn times(&mut self, input: usize, target: &Target) -> Result<Times, FormatError> {
        if let Some(times) = self.times.get(&input) {
            return Ok(times.clone());
        }
        let place = &target.place;
        let shape = self.accessors.shape(input)?;
        if shape.kind != "SCALAR" || (shape.component != Component::F32 && !shape.normalized) {
            let found = format!("accessor {input} of {} {:?}", shape.kind, shape.component);
            return Err(self.at.broken(place, "key times as SCALAR floats", found, EDIT));
        }
        if shape.count > 2 && !self.accessors.has_data(input) {
            // All zero by the rules, whatever the count: not times. Nothing is allocated for them.
            let found = format!(
                "accessor {input} without any data, so a count of {} keys all at 0 s (duplicate)",
                shape.count
            );
            return Err(self.at.broken(place, "strictly increasing key times", found, EDIT));
        }
        let times = self.accessors.numbers(input)?;
        if let Some(key) = times.iter().position(|t| !t.is_finite()) {
            let found = format!("{} at key {key} of accessor {input}", times[key]);
            return Err(self.at.broken(place, "finite key times", found, "export the animation again"));
        }
        let times = in_order(times);
        self.times.insert(input, times.clone());
        Ok(times)
    }

    /// Gives every key a quaternion of unit length where it is clearly off.
    fn repair_rotations(
        &mut self,
        target: &Target,
        component: Component,
        span: SpanKind,
        values: &mut [f64],
    ) {
        let valid = |q: &[f64]| inbetween::math::unit(DQuat::from_slice(q)).is_some();
        let zero = values.chunks_exact(4).filter(|q| q.iter().all(|v| v.is_finite()) && !valid(q)).count();
        if zero > 0 {
            let rest =
                target.binding.node.map_or(DQuat::IDENTITY, |n| self.skeleton.joints()[n].rest.rotation);
            let first = values
                .chunks_exact(4)
                .find(|q| valid(q))
                .map_or(rest.to_array(), |q| std::array::from_fn(|i| q[i]));
            let mut last = first;
            for q in values.chunks_exact_mut(4) {
                if valid(q) {
                    last = std::array::from_fn(|i| q[i]);
                } else if q.iter().all(|v| v.is_finite()) {
                    q.copy_from_slice(&last);
                }
            }
            let text = format!(
                "{zero} keys are zero quaternions, which name no rotation; each takes the value of the \
                 key before it (else of the key after it, else of the node at rest)"
            );
            self.note(Severity::Repaired, &target.place, text);
        }
        // What rounding to the stored integers explains is not worth a word.
        let slack = match component {
            Component::I8 | Component::U8 => 0.02,
            _ => 2e-3,
        };
        if let Some(length) = off_unit(values, slack) {
            // A spline's keys and tangents belong together; it is normalised as it is evaluated.
            if span != SpanKind::Hermite {
                for q in values.chunks_exact_mut(4) {
                    if let Some(unit) = inbetween::math::unit(DQuat::from_slice(q)) {
                        unit.write_to_slice(q);
                    }
                }
            }
            let text = format!(
                "its quaternions are not of unit length (one is {length:.3} long); they were normalised"
            );
            self.note(Severity::Repaired, &target.place, text);
        }
    }
}

/// The length of the quaternion that is furthest off unit length, if by more than `slack`.
fn off_unit(values: &[f64], slack: f64) -> Option<f64> {
    let lengths = values.chunks_exact(4).map(|q| DQuat::from_slice(q).length());
    let worst = lengths.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()))?;
    ((worst - 1.0).abs() > slack).then_some(worst)
}

/// Key times put in order. Of several keys at one time the first and the last are kept, a hair
/// (one f32) apart, so that the value jumps there: the first one earlier, or, where that would
/// lie before all other keys, the last one later.
fn in_order(times: Vec<f64>) -> Times {
    let count = times.len();
    if times.is_sorted_by(|a, b| a < b) {
        return Times { times: times.into(), keys: None, repaired: None };
    }
    let sorted = times.is_sorted();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
    let (mut kept, mut keys, mut shared) = (Vec::<f64>::new(), Vec::<usize>::new(), false);
    let mut i = 0;
    while i < count {
        let time = times[order[i]];
        let run = order[i..].iter().take_while(|&&k| times[k] == time).count();
        let before = f64::from((time as f32).next_down());
        match kept.last() {
            _ if run == 1 => kept.push(time),
            None => kept.extend([time, f64::from((time as f32).next_up())]),
            Some(&last) if last < before => kept.extend([before, time]),
            Some(_) => kept.push(time),
        }
        if kept.len() > keys.len() + 1 {
            keys.push(order[i]);
        }
        keys.push(order[i + run - 1]);
        shared |= run > 1;
        i += run;
    }
    let mut text = Vec::new();
    if !sorted {
        text.push("its key times are not in increasing order; the keys were sorted");
    }
    if shared {
        text.push(
            "some keys share one time (duplicate), where key times must increase; the value jumps there",
        );
    }
    Times { times: kept.into(), keys: Some(keys.into()), repaired: Some(text.join("; ")) }
}

/// The frame rate on whose grid all keys of a clip lie, if that is beyond doubt.
fn guess_rate(clip: &Clip) -> Option<FrameRate> {
    let times = clip.key_times();
    if times.len() < 3 {
        return None;
    }
    // Exporters that cut a clip between two frames leave its last key off the grid.
    let inside = &times[..times.len() - usize::from(times.len() > 8)];
    let (first, last) = (inside[0], inside[inside.len() - 1]);
    let on_grid = |rate: FrameRate| {
        inside.iter().all(|&t| {
            let frame = rate.frame_at(t);
            // Files give times as f32, some rounded to a few digits before.
            let rounding = f64::from(f32::EPSILON) * t.abs() * rate.as_f64();
            (frame - frame.round()).abs() <= 0.01 + rounding
        })
    };
    // Dense keys: the closest two are one frame apart, and most gaps are as wide.
    let gaps: Vec<f64> = inside.windows(2).map(|w| w[1] - w[0]).collect();
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    let frames: f64 = gaps.iter().map(|g| (g / least).round()).sum();
    let hz = frames / (last - first);
    let precise = (f64::from(f32::EPSILON) * last.abs().max(first.abs()) + 1e-6) / (last - first);
    let known = |rate: &FrameRate| rate.den() == 1 || rate.den() == 1001;
    let dense = gaps.iter().filter(|&&g| g < 1.5 * least).count() * 2 > gaps.len();
    if dense
        && least < 0.13
        && let Some(rate) = FrameRate::from_hz(hz, (4.0 * precise).clamp(2e-5, 4e-4)).filter(known)
        && on_grid(rate)
    {
        return Some(rate);
    }
    // Sparse keys: a usual rate, if the keys lie on its grid and on no other's.
    let usual = [24, 25, 30].map(FrameRate::hz);
    let fits: Vec<FrameRate> = usual.into_iter().filter(|&r| on_grid(r)).collect();
    match fits[..] {
        [rate] if times.len() >= 4 => Some(rate),
        [] => [48, 50, 60].map(FrameRate::hz).into_iter().find(|&r| times.len() >= 6 && on_grid(r)),
        _ => None,
    }
}
