//! Clips into a glTF document: the source's own, of which everything but the animations stays as
//! it was, or a new one of nodes, skeleton, cameras and lights.
//!
//! A track that did not change keeps the arrays it came from, in the form they are stored in.
//! Changed ones are stored as floats, or as the normalised integers the source has for them where
//! these hold their values. Equal arrays are stored once. Arrays that only the old animations used
//! go, so that fewer keys make a smaller file.

use std::collections::{BTreeMap, BTreeSet};

use inbetween::{Clip, Curve, Property, Skeleton, SpanKind, Track, TrackData, ValueKind, Wrap};
use serde_json::{Map, Value, json};

use super::accessor::{Accessors, Component};
use super::container::{Document, encode_data_uri, join_glb};
use super::keys::{Converted, Fidelity, Keys, Shape, keys_of};
use super::read::{self, Identity, ReadClip, identity};
use super::rebuild::{self, Array, Arrays, Ref};
use super::{Place, fresh, pointer};
use crate::convention;
use crate::{FormatError, Import, Note, Severity, Source};

/// Where the buffers of a glTF file go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Container {
    /// One binary file, `.glb`.
    #[default]
    Glb,
    /// One `.gltf` with its data in base64, a third larger.
    Embedded,
    /// A `.gltf` and a file of this name beside it.
    Beside(String),
}

/// How to write glTF.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteOptions {
    /// Where the buffers go. Default: one GLB.
    pub container: Container,
    /// How far a track may be off where glTF cannot hold its curves as they are, in the track's
    /// own unit (metres, radians, weights). Default 1e-5; smaller takes more keys.
    pub tolerance: f64,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { container: Container::Glb, tolerance: 1e-5 }
    }
}

/// A glTF file in memory.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The `.glb` or `.gltf`.
    pub bytes: Vec<u8>,
    /// Files that belong beside it: name and bytes.
    pub side_files: Vec<(String, Vec<u8>)>,
    /// What could not be kept or had to be converted.
    pub notes: Vec<Note>,
}

const FORMAT: &str = "glTF";

/// Writes an import's clips as glTF.
///
/// If the import was read from glTF, the file is that one with its animations replaced by the
/// clips: meshes, materials, skins, unknown extensions and all else stay as they were, in the
/// file's own units. Anything else gives a new file of its nodes, joints (a skin without a mesh),
/// cameras, lights and clips, in metres and +Y up. glTF clips begin at 0 and end with their last
/// key: a later end gets a key there, what lies beyond it is cut off, and a
/// start before 0 moves to 0, with a note.
///
/// # Errors
/// If the import's nodes are not those of its source, a number is too large for f32, or a GLB
/// would pass 4 GiB.
pub fn write(import: &Import, options: &WriteOptions) -> Result<Written, FormatError> {
    let mut notes = Vec::new();
    let mut own_units = Import {
        format: import.format,
        skeleton: import.skeleton.clone(),
        clips: import.clips.clone(),
        notes: Vec::new(),
        convention: import.convention,
        in_house_units: import.in_house_units,
        source: Source::None,
        decimals: None,
    };
    let built;
    let document = match &import.source {
        Source::Gltf(document) => {
            convention::to_file(&mut own_units);
            let nodes = document.list("nodes").len();
            if nodes != own_units.skeleton.len() {
                return Err(FormatError::CannotWrite {
                    format: FORMAT,
                    what: format!("{} nodes in a source of {nodes}", own_units.skeleton.len()),
                    advice: "set the import's source to none, to write a new file".to_owned(),
                });
            }
            document
        }
        _ => {
            convention::to_house(&mut own_units);
            let fidelity = Fidelity::of(&own_units.clips, options.tolerance);
            fresh::fold_pivots(&mut own_units, fidelity);
            fresh::fold_scales(&mut own_units, fidelity);
            built = fresh::document(&own_units, &mut notes);
            &built
        }
    };
    let mut writer = Writer::new(document, &own_units.skeleton, &own_units.clips, options, notes)?;
    for clip in &own_units.clips {
        writer.clip(clip)?;
    }
    writer.finish(options)
}

/// What one animation of the output consists of.
struct Animation {
    json: Map<String, Value>,
    channels: Vec<Planned>,
    /// Channels of the source that are not understood and stay: JSON of channel and sampler.
    verbatim: Vec<(Value, Value)>,
}

struct Planned {
    target: Value,
    input: Ref,
    output: Ref,
    interpolation: Option<&'static str>,
}

struct Writer<'a> {
    document: &'a Document,
    json: Value,
    skeleton: &'a Skeleton,
    fidelity: Fidelity,
    notes: Vec<Note>,
    originals: Vec<ReadClip>,
    /// Tracks of the originals that drive the same thing: clip and track.
    same: BTreeMap<Identity, Vec<(usize, usize)>>,
    /// How many clips of a name were written, of how many, to pair equal names in order.
    named: BTreeMap<String, (usize, usize)>,
    arrays: Arrays,
    animations: Vec<Animation>,
}

impl<'a> Writer<'a> {
    fn new(
        document: &'a Document,
        skeleton: &'a Skeleton,
        clips: &[Clip],
        options: &WriteOptions,
        notes: Vec<Note>,
    ) -> Result<Self, FormatError> {
        let at = Place { file: "the source" };
        let accessors = Accessors::new(document, at);
        let mut unheard = Vec::new();
        let originals = read::clips(document, skeleton, at, &accessors, u64::MAX, &mut unheard)?;
        let mut named: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for clip in clips {
            named.entry(clip.name.clone()).or_default().1 += 1;
        }
        let mut same: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (c, original) in originals.iter().enumerate() {
            for (t, track) in original.clip.tracks.iter().enumerate() {
                same.entry(identity(&track.binding)).or_default().push((c, t));
            }
        }
        Ok(Self {
            document,
            json: document.json.clone(),
            skeleton,
            fidelity: Fidelity::of(clips, options.tolerance),
            notes,
            originals,
            same,
            named,
            arrays: Arrays::default(),
            animations: Vec::new(),
        })
    }

    fn note(&mut self, severity: Severity, place: &str, text: impl Into<String>) {
        self.notes.push(Note::new(severity, place, text));
    }

    fn clip(&mut self, clip: &Clip) -> Result<(), FormatError> {
        let place = format!("clip {:?}", clip.name);
        let source = self.source_of(clip);
        self.clip_notes(clip, &place);

        let first = clip.tracks.iter().flat_map(|t| t.data.curves()).map(Curve::start);
        let shift = first.fold(clip.start(), f64::min).min(0.0);
        if shift < 0.0 {
            let text = format!("it begins at {shift} s; glTF knows no time before 0, so it was moved to 0");
            self.note(Severity::Repaired, &place, text);
        } else if clip.start() > 0.0 {
            let text = format!("it begins at {} s; glTF plays from 0 and holds the first keys", clip.start());
            self.note(Severity::Info, &place, text);
        }

        let mut json = Map::new();
        if !clip.name.is_empty() {
            json.insert("name".to_owned(), clip.name.clone().into());
        }
        let mut verbatim = Vec::new();
        if let Some(source) = source {
            let original = &self.document.list("animations")[source];
            for key in ["extensions", "extras"] {
                if let Some(value) = original.get(key) {
                    json.insert(key.to_owned(), value.clone());
                }
            }
            let read = &self.originals[source];
            if read.clip.start() == clip.start() && (read.clip.end() - clip.end()).abs() < 1e-6 {
                for &c in &read.ignored {
                    let channel = &original["channels"][c];
                    let sampler = channel.get("sampler").and_then(Value::as_u64);
                    let sampler = sampler.and_then(|s| original["samplers"].get(s as usize));
                    if let Some(sampler) = sampler {
                        verbatim.push((channel.clone(), sampler.clone()));
                    }
                }
            }
        }

        let mut plans: Vec<(Value, &Track, Option<Kept>)> = Vec::new();
        for track in &clip.tracks {
            let Some(target) = self.target(track, &place) else { continue };
            let beyond = track.data.curves().iter().any(|c| c.end() > clip.end() + 1e-6);
            let kept = if shift < 0.0 || beyond { None } else { self.unchanged(track, source) };
            plans.push((target, track, kept));
        }
        let range = (clip.start(), clip.end());
        let mut keyed: Vec<Option<Keys>> = plans
            .iter()
            .map(|(_, track, kept)| kept.is_none().then(|| keys_of(track, range, self.fidelity)))
            .collect();
        keyed.iter_mut().flatten().for_each(|keys| keys.end_at(clip.end()));
        self.last_until(clip, &plans, &mut keyed);

        let mut converted: BTreeMap<String, (usize, Converted)> = BTreeMap::new();
        let mut channels = Vec::new();
        for ((target, track, kept), keys) in plans.into_iter().zip(keyed) {
            channels.push(match (keys, kept) {
                (None, Some(kept)) => Planned {
                    target: kept.target,
                    input: self.arrays.keep(self.document, kept.input)?,
                    output: self.arrays.keep(self.document, kept.output)?,
                    interpolation: kept.interpolation,
                },
                (Some(mut keys), _) => {
                    if let Some(c) = keys.converted.take() {
                        let (tracks, sum) = converted.entry(c.why).or_default();
                        *tracks += 1;
                        sum.added += c.added;
                        sum.off = sum.off.max(c.off);
                    }
                    for time in &mut keys.times {
                        *time -= shift;
                    }
                    self.store(target, track, &keys, &place)?
                }
                (None, None) => unreachable!("a track is kept or keyed"),
            });
        }
        for (why, (tracks, sum)) in converted {
            let mut text = format!("{tracks} tracks: {why}");
            if sum.added > 0 {
                text += &format!("; {} keys were added", sum.added);
            }
            if sum.off > 0.0 {
                text += &format!("; at most {:.1e} off", sum.off);
            }
            self.note(Severity::Info, &place, text);
        }
        if channels.is_empty() && verbatim.is_empty() {
            match self.stand_in(clip.end() - shift) {
                Some(planned) => {
                    channels.push(planned);
                    let text = "no tracks are left, where glTF asks for one: a node's rest pose was keyed";
                    self.note(Severity::Info, &place, text);
                }
                None => {
                    let text = "no tracks are left and there is no node to key, so the clip is not written";
                    self.note(Severity::Lost, &place, text);
                    return Ok(());
                }
            }
        }
        self.animations.push(Animation { json, channels, verbatim });
        Ok(())
    }

    /// The source's animation of the same name. Of several the n-th belongs to the n-th clip of
    /// that name, if as many are written; else none does, for want of knowing which.
    fn source_of(&mut self, clip: &Clip) -> Option<usize> {
        let (seen, count) = self.named.get_mut(&clip.name)?;
        let originals = self.originals.iter().enumerate().filter(|(_, o)| o.clip.name == clip.name);
        let originals: Vec<usize> = originals.map(|(i, _)| i).collect();
        let nth = *seen;
        *seen += 1;
        originals.get(nth).copied().filter(|_| originals.len() == *count)
    }

    /// Says what a clip has that glTF does not.
    fn clip_notes(&mut self, clip: &Clip, place: &str) {
        if !clip.markers.is_empty() {
            let text = format!("its {} markers stayed behind: glTF has no events", clip.markers.len());
            self.note(Severity::Lost, place, text);
        }
        if clip.additive {
            let text = "that it is additive stayed behind: glTF has only whole poses";
            self.note(Severity::Lost, place, text);
        }
        if clip.wrap != Wrap::Hold {
            let text = "how it repeats stayed behind: in glTF the player decides";
            self.note(Severity::Lost, place, text);
        }
    }

    /// What a channel's target says for this track; `None`, with a note, if glTF has no place for
    /// it.
    fn target(&mut self, track: &Track, place: &str) -> Option<Value> {
        let binding = &track.binding;
        let name = binding.property.name().to_owned();
        let what = format!("{place} {:?} {name}", binding.target);
        if !track.enabled {
            self.note(Severity::Lost, &what, "a muted track stayed behind: glTF cannot mute");
            return None;
        }
        let by_pointer = |pointer: &str| {
            let pointer = json!({"KHR_animation_pointer": {"pointer": pointer}});
            json!({"path": "pointer", "extensions": pointer})
        };
        if let Some(path) = &binding.path
            && pointer::resolve(self.document, path).is_some()
        {
            rebuild::use_extension(&mut self.json, "KHR_animation_pointer");
            return Some(by_pointer(path));
        }
        let Some(node) = binding.node.filter(|&n| n < self.skeleton.len()) else {
            self.note(Severity::Lost, &what, "the file has nothing of that name to animate");
            return None;
        };
        let json = self.json["nodes"].get_mut(node)?;
        match &binding.property {
            Property::Translation | Property::Rotation | Property::Scale => {
                if json.get("matrix").is_some() {
                    let rest = &self.skeleton.joints()[node].rest;
                    rebuild::set_transform(json, rest);
                    self.note(
                        Severity::Info,
                        &what,
                        "the node's matrix became translation, rotation and scale",
                    );
                }
                Some(json!({"node": node, "path": name}))
            }
            Property::Weights => {
                let mesh = json.get("mesh").and_then(Value::as_u64).unwrap_or(u64::MAX);
                let mesh = self.document.list("meshes").get(mesh as usize);
                let targets = mesh.and_then(|m| m.pointer("/primitives/0/targets")?.as_array());
                if targets.map(Vec::len) == Some(track.data.kind().width()) {
                    return Some(json!({"node": node, "path": "weights"}));
                }
                let text = "the weights stayed behind: the node has no mesh with as many morph targets";
                self.note(Severity::Lost, &what, text);
                None
            }
            Property::Visible => {
                let extensions = json.as_object_mut()?.entry("extensions").or_insert_with(|| json!({}));
                let on = track.rest.first().is_none_or(|&v| v != 0.0);
                let extensions = extensions.as_object_mut()?;
                extensions.entry("KHR_node_visibility").or_insert_with(|| json!({"visible": on}));
                rebuild::use_extension(&mut self.json, "KHR_node_visibility");
                rebuild::use_extension(&mut self.json, "KHR_animation_pointer");
                Some(by_pointer(&format!("/nodes/{node}/extensions/KHR_node_visibility/visible")))
            }
            Property::Other(property) => match pointer::of_carried(&self.json, node, property) {
                Some(pointer) => {
                    rebuild::use_extension(&mut self.json, "KHR_animation_pointer");
                    Some(by_pointer(&pointer))
                }
                None => {
                    self.note(Severity::Lost, &what, "the track stayed behind: glTF has no such property");
                    None
                }
            },
        }
    }

    /// The source's channel that says the same, if there is one; the clip's own comes first.
    fn unchanged(&self, track: &Track, source: Option<usize>) -> Option<Kept> {
        let candidates = self.same.get(&identity(&track.binding))?;
        let own = candidates.iter().filter(|(c, _)| Some(*c) == source);
        let others = candidates.iter().filter(|(c, _)| Some(*c) != source);
        let &(c, t) = own.chain(others).find(|&&(c, t)| {
            let original = &self.originals[c];
            original.exact[t] && same_curve(&original.clip.tracks[t].data, &track.data)
        })?;
        let animation = &self.document.list("animations")[c];
        let channel = &animation["channels"][self.originals[c].channels[t]];
        let sampler = &animation["samplers"][channel["sampler"].as_u64()? as usize];
        Some(Kept {
            target: channel["target"].clone(),
            input: sampler["input"].as_u64()? as usize,
            output: sampler["output"].as_u64()? as usize,
            interpolation: match sampler.get("interpolation").and_then(Value::as_str) {
                Some("STEP") => Some("STEP"),
                Some("CUBICSPLINE") => Some("CUBICSPLINE"),
                Some("LINEAR") => Some("LINEAR"),
                _ => None,
            },
        })
    }

    /// A glTF clip ends with its last key: lets the cheapest track last until the clip's end.
    fn last_until(&self, clip: &Clip, plans: &[(Value, &Track, Option<Kept>)], keyed: &mut [Option<Keys>]) {
        let ends = plans.iter().zip(&*keyed).map(|((_, track, _), keys)| match keys {
            Some(keys) => keys.times[keys.times.len() - 1],
            None => track.data.curves().iter().map(|c| c.end()).fold(f64::NEG_INFINITY, f64::max),
        });
        let last = ends.fold(f64::NEG_INFINITY, f64::max);
        if !last.is_finite() || clip.end() - last <= 1e-6_f64.max(1e-7 * clip.end().abs()) {
            return;
        }
        let cheapest = (0..plans.len()).min_by_key(|&i| {
            let track = plans[i].1;
            (track.data.kind().width() * track.data.key_count(), i)
        });
        if let Some(i) = cheapest {
            let range = (clip.start(), clip.end());
            let mut keys = keyed[i].take().unwrap_or_else(|| keys_of(plans[i].1, range, self.fidelity));
            keys.extend_to(clip.end());
            keyed[i] = Some(keys);
        }
    }

    /// A channel for new keys.
    fn store(
        &mut self,
        target: Value,
        track: &Track,
        keys: &Keys,
        place: &str,
    ) -> Result<Planned, FormatError> {
        let times = keys.stored_times();
        let values: Vec<f32> = keys.values.iter().map(|&v| v as f32).collect();
        if let Some(i) = values.iter().position(|v| !v.is_finite()) {
            return Err(FormatError::CannotWrite {
                format: FORMAT,
                what: format!(
                    "{} in {place}, {:?} {}",
                    keys.values[i],
                    track.binding.target,
                    track.binding.property.name()
                ),
                advice: "its numbers are f32; scale the value down".to_owned(),
            });
        }
        let (kind, count) = match keys.kind {
            ValueKind::Vector(2) => ("VEC2", values.len() / 2),
            ValueKind::Vector(3) | ValueKind::Color(3) => ("VEC3", values.len() / 3),
            ValueKind::Rotation | ValueKind::Vector(4) | ValueKind::Color(4) => ("VEC4", values.len() / 4),
            ValueKind::Vector(9) => ("MAT3", values.len() / 9),
            ValueKind::Vector(16) => ("MAT4", values.len() / 16),
            _ => ("SCALAR", values.len()),
        };
        let input = self.arrays.add(Array {
            component: Component::F32,
            kind: "SCALAR",
            normalized: false,
            count: times.len(),
            bytes: times.iter().flat_map(|t| t.to_le_bytes()).collect(),
        });
        let stored = self.stored_as(track);
        let array = if keys.kind == ValueKind::Switch {
            let bytes = values.iter().map(|&v| u8::from(v != 0.0)).collect();
            Array { component: Component::U8, kind, normalized: false, count, bytes }
        } else if let Some(component) = stored.filter(|_| keys.shape != Shape::Cubic)
            && let Some(bytes) = quantised(&values, component, self.fidelity.tolerance)
        {
            Array { component, kind, normalized: true, count, bytes }
        } else {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            Array { component: Component::F32, kind, normalized: false, count, bytes }
        };
        let output = self.arrays.add(array);
        let interpolation = match keys.shape {
            Shape::Step => Some("STEP"),
            Shape::Linear => None,
            Shape::Cubic => Some("CUBICSPLINE"),
        };
        Ok(Planned { target, input, output, interpolation })
    }

    /// The normalised integers in which the source keeps what this track drives, if it does.
    fn stored_as(&self, track: &Track) -> Option<Component> {
        let &(c, t) = self.same.get(&identity(&track.binding))?.first()?;
        let animation = &self.document.list("animations")[c];
        let channel = &animation["channels"][self.originals[c].channels[t]];
        let sampler = &animation["samplers"][channel["sampler"].as_u64()? as usize];
        let output = self.document.list("accessors").get(sampler["output"].as_u64()? as usize)?;
        let normalized = output.get("normalized")?.as_bool()?;
        let component = Component::from_code(output.get("componentType")?.as_u64()?)?;
        component.scale().filter(|_| normalized).map(|_| component)
    }

    /// A channel that keys a node's rest pose, for a clip without tracks.
    fn stand_in(&mut self, end: f64) -> Option<Planned> {
        let nodes = self.json["nodes"].as_array()?;
        let node = nodes.iter().position(|n| n.get("matrix").is_none())?;
        let rest = self.skeleton.joints()[node].rest.translation.to_array();
        let times: Vec<f32> = if end as f32 > 0.0 { vec![0.0, end as f32] } else { vec![0.0] };
        let array = |kind, numbers: Vec<f32>, count| Array {
            component: Component::F32,
            kind,
            normalized: false,
            count,
            bytes: numbers.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let values: Vec<f32> = times.iter().flat_map(|_| rest.map(|v| v as f32)).collect();
        let n = times.len();
        Some(Planned {
            target: json!({"node": node, "path": "translation"}),
            input: self.arrays.add(array("SCALAR", times, n)),
            output: self.arrays.add(array("VEC3", values, n)),
            interpolation: None,
        })
    }

    fn finish(mut self, options: &WriteOptions) -> Result<Written, FormatError> {
        let mut pinned = BTreeSet::new();
        for animation in &self.animations {
            for (_, sampler) in &animation.verbatim {
                pinned.extend(["input", "output"].iter().filter_map(|k| sampler.get(k)?.as_u64()));
            }
        }
        let pinned = pinned.into_iter().map(|i| i as usize).collect();
        let inputs: BTreeSet<Ref> =
            self.animations.iter().flat_map(|a| a.channels.iter().map(|c| c.input)).collect();
        let (places, data) = rebuild::rebuild(&mut self.json, self.document, &self.arrays, &pinned, &inputs)?;
        let animations: Vec<Value> = std::mem::take(&mut self.animations)
            .into_iter()
            .map(|a| animation_json(a, &|r| places.of(r)))
            .collect();
        let json = self.json.as_object_mut().expect("a document is an object");
        if animations.is_empty() {
            json.remove("animations");
        } else {
            json.insert("animations".to_owned(), animations.into());
        }
        let outside =
            self.document.buffers.iter().filter(|b| matches!(b, super::container::Buffer::Missing(_)));
        if outside.count() > 0 {
            let text = "buffers that were not found when it was read are still named, and still needed";
            self.note(Severity::Info, "buffers", text);
        }
        contain(self.json, data, self.document, options, self.notes)
    }
}

/// A channel of the source that stays.
struct Kept {
    target: Value,
    input: usize,
    output: usize,
    interpolation: Option<&'static str>,
}

fn animation_json(animation: Animation, place_of: &dyn Fn(Ref) -> usize) -> Value {
    let mut json = animation.json;
    let mut samplers: Vec<Value> = Vec::new();
    let mut placed: BTreeMap<(usize, usize, Option<&str>), usize> = BTreeMap::new();
    let mut channels = Vec::new();
    for channel in animation.channels {
        let (input, output) = (place_of(channel.input), place_of(channel.output));
        let sampler = *placed.entry((input, output, channel.interpolation)).or_insert_with(|| {
            let mut sampler = json!({"input": input, "output": output});
            if let Some(interpolation) = channel.interpolation {
                sampler["interpolation"] = interpolation.into();
            }
            samplers.push(sampler);
            samplers.len() - 1
        });
        channels.push(json!({"sampler": sampler, "target": channel.target}));
    }
    for (mut channel, mut sampler) in animation.verbatim {
        for key in ["input", "output"] {
            if let Some(index) = sampler.get(key).and_then(Value::as_u64) {
                sampler[key] = place_of(Ref::Old(index as usize)).into();
            }
        }
        channel["sampler"] = samplers.len().into();
        samplers.push(sampler);
        channels.push(channel);
    }
    json.insert("channels".to_owned(), channels.into());
    json.insert("samplers".to_owned(), samplers.into());
    json.into()
}

/// True if two tracks have the same keys once stored as f32.
fn same_curve(a: &TrackData, b: &TrackData) -> bool {
    let (TrackData::Curve(a), TrackData::Curve(b)) = (a, b) else { return false };
    let (p, q) = (a.parts(), b.parts());
    let same = |x: &[f64], y: &[f64]| {
        x.len() == y.len()
            && x.iter().zip(y).all(|(x, y)| (*x as f32).to_bits() == (*y as f32).to_bits() || x == y)
    };
    let spans = |n: usize| (0..n.max(2) - 1).all(|i| a.span(i.min(n - 1)) == b.span(i.min(n - 1)));
    if p.kind != q.kind || !same(&p.times, &q.times) || !same(&p.values, &q.values) || !spans(a.len()) {
        return false;
    }
    if p.before != q.before || p.after != q.after {
        return false;
    }
    match (&p.tangents, &q.tangents) {
        _ if a.span(0) != SpanKind::Hermite => true,
        (Some(s), Some(t)) => same(&s.leave, &t.leave) && same(&s.arrive, &t.arrive),
        _ => a.len() == 1,
    }
}

/// The values as normalised integers, if each is within `tolerance` of what comes back.
fn quantised(values: &[f32], component: Component, tolerance: f64) -> Option<Vec<u8>> {
    let (divisor, least) = component.scale()?;
    let mut bytes = Vec::with_capacity(values.len() * component.size());
    for &value in values {
        let value = f64::from(value);
        let whole = (value * divisor).round().clamp(least * divisor, divisor);
        if (whole / divisor - value).abs() > tolerance {
            return None;
        }
        bytes.extend_from_slice(&(whole as i32).to_le_bytes()[..component.size()]);
    }
    Some(bytes)
}

fn contain(
    mut json: Value,
    data: Vec<u8>,
    document: &Document,
    options: &WriteOptions,
    notes: Vec<Note>,
) -> Result<Written, FormatError> {
    let mut side_files = Vec::new();
    if !data.is_empty() {
        match &options.container {
            Container::Glb => {}
            Container::Embedded => json["buffers"][0]["uri"] = encode_data_uri(&data).into(),
            Container::Beside(name) => {
                json["buffers"][0]["uri"] = percent_encoded(name).into();
                side_files.push((name.clone(), data.clone()));
            }
        }
    }
    let text = serde_json::to_vec(&json).expect("a JSON value is always text");
    if options.container != Container::Glb {
        return Ok(Written { bytes: text, side_files, notes });
    }
    let chunks = document.chunks.iter().map(|(_, bytes)| bytes.len() + 8).sum::<usize>();
    if text.len() + data.len() + chunks + 64 > u32::MAX as usize {
        return Err(FormatError::CannotWrite {
            format: "GLB",
            what: format!("{} bytes", text.len() + data.len()),
            advice: "its limit is 4 GiB; write .gltf with its data beside it".to_owned(),
        });
    }
    Ok(Written { bytes: join_glb(&text, &data, &document.chunks), side_files, notes })
}

/// A file name as a URI: everything but plain letters, digits and `-._~` as `%` and its number.
fn percent_encoded(name: &str) -> String {
    let mut uri = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    uri
}
