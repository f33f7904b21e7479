//! Ops about playing: layers, root motion, a player's clock, additive clips.

use std::collections::BTreeMap;
use std::sync::Arc;

use inbetween::edit::{AdditiveReference, make_additive};
use inbetween::playback::layers::{Layer, LayerMode, Playing, Stage, StageValues};
use inbetween::playback::player::Player;
use inbetween::playback::root_motion::{Rigid, RootParts, RootRotation, RootTrack};
use inbetween::{Binding, Clip, Curve, Property, Track, TrackData, ValueKind, Wrap};
use serde_json::{Map, Value};

use crate::fields::only;
use crate::subject::{File, Subject, number, row};
use crate::values::{expect_value, value_at};
use crate::{Check, Maker, Verdict};

/// The table of checks.
pub const CHECKS: &[(&str, Check)] = &[
    ("eval_layers", eval_layers),
    ("eval_layers_same_for_all_orders", eval_layers_same_for_all_orders),
    ("root_motion", root_motion),
    ("root_motion_steps", root_motion_steps),
    ("pose_root", pose_root),
    ("play_then", play_then),
    ("play_steps", play_steps),
];

/// The table of makers.
pub const MAKERS: &[(&str, Maker)] = &[("make_additive", additive)];

/// What a description says about layers, ready to be evaluated.
struct Scene {
    stage: Stage,
    clips: BTreeMap<String, Arc<Clip>>,
    layers: Vec<Value>,
    time: f64,
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, String> {
    value.get(key).and_then(Value::as_object).ok_or_else(|| format!("the description has no object {key:?}"))
}

/// The kind of value a property of that name and width has.
fn kind_of(property: &str, sample: &Value, width: usize) -> ValueKind {
    match property {
        "rotation" => ValueKind::Rotation,
        "weights" => ValueKind::Weights(width as u32),
        "visible" => ValueKind::Switch,
        _ if sample.is_boolean() => ValueKind::Switch,
        "color" | "colour" => ValueKind::Color(width as u8),
        _ if width == 1 => ValueKind::Scalar,
        _ => ValueKind::Vector(width as u8),
    }
}

fn binding(target: &str, property: &str) -> Binding {
    Binding { target: target.to_owned(), node: None, property: Property::from_name(property), path: None }
}

impl Scene {
    fn read(subject: &Subject) -> Result<Self, String> {
        let json = subject.case.json.as_ref().ok_or("the input is not a description of layers")?;
        only("the input", json, &["type", "quaternion_order", "rest", "clips", "layers", "eval_time"])?;
        let mut stage = Stage::new();
        for (target, properties) in object(json, "rest")? {
            for (property, value) in properties.as_object().into_iter().flatten() {
                let rest = row(value).ok_or_else(|| format!("rest of {target}/{property} is no number"))?;
                let kind = kind_of(property, value, rest.len());
                stage.add(&binding(target, property), kind, rest);
            }
        }
        let mut clips = BTreeMap::new();
        for (name, tracks) in object(json, "clips")? {
            let clip = clip_of(name, tracks)?;
            stage.add_clip(&clip);
            clips.insert(name.clone(), Arc::new(clip));
        }
        let layers = json.get("layers").and_then(Value::as_array).cloned().ok_or("there are no layers")?;
        let time = number(json, "eval_time").unwrap_or(0.0);
        Ok(Self { stage, clips, layers, time })
    }

    /// Changes one thing: `"1.weight"` is the weight of layer 1, counted from 0.
    fn set(&mut self, changes: Option<&Value>) -> Result<(), String> {
        for (path, value) in changes.and_then(Value::as_object).into_iter().flatten() {
            let (index, key) = path.split_once('.').ok_or_else(|| format!("set what: {path:?}"))?;
            let layer = index.parse().ok().and_then(|i: usize| self.layers.get_mut(i));
            let layer = layer.ok_or_else(|| format!("there is no layer {index}"))?;
            let mut place = &mut *layer;
            for part in key.split('.') {
                place = match part.parse::<usize>() {
                    Ok(i) => &mut place[i],
                    Err(_) => &mut place[part],
                };
            }
            *place = value.clone();
        }
        Ok(())
    }

    fn playing(&self, described: &Value, layer: &Value) -> Result<Playing, String> {
        let of_clip = ["clip", "time", "track_off"];
        let of_layer =
            ["mode", "weight", "enabled", "mask", "blend", "additive_reference", "reference", "tracks_off"];
        only("a layer", layer, &[&of_clip[..], &of_layer[..]].concat())?;
        if described != layer {
            only("a clip of a blend", described, &[&of_clip[..], &["weight"]].concat())?;
        }
        let name = text(described, "clip").ok_or("a layer names no clip")?;
        let mut clip = self.clips.get(name).cloned().ok_or_else(|| format!("there is no clip {name:?}"))?;
        if text(layer, "mode") == Some("additive") {
            let reference = match layer.get("additive_reference").or_else(|| layer.get("reference")) {
                None => None,
                Some(Value::String(s)) => match s.as_str() {
                    "identity" | "none" => None,
                    "first_key" | "first_frame" | "first" => Some(AdditiveReference::FirstKey),
                    "rest" => Some(AdditiveReference::Rest),
                    other => {
                        let base = self.clips.get(other).ok_or_else(|| format!("reference {other:?}?"))?;
                        Some(AdditiveReference::Clip(Box::new((**base).clone()), base.start()))
                    }
                },
                Some(other) => return Err(format!("an additive reference that is not understood: {other}")),
            };
            if let Some(reference) = reference {
                let mut with_rest = (*clip).clone();
                for track in &mut with_rest.tracks {
                    let known =
                        self.stage.properties().iter().find(|p| {
                            p.target == track.binding.target && p.property == track.binding.property
                        });
                    if let Some(p) = known {
                        track.rest.clone_from(&p.rest);
                    }
                }
                clip = Arc::new(make_additive(&with_rest, &reference));
            }
        }
        let mut playing = Playing::new(self.stage.bind(Arc::clone(&clip)), self.time);
        let time = number(described, "time").or_else(|| number(layer, "time"));
        playing.time = time.unwrap_or(self.time);
        playing.share = 1.0;
        for list in [described.get("track_off"), layer.get("track_off"), layer.get("tracks_off")] {
            let names = match list {
                Some(Value::String(one)) => vec![one.as_str()],
                Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            for name in names {
                let off = |t: &Track| format!("{}/{}", t.binding.target, t.binding.property.name()) == name;
                for (i, _) in clip.tracks.iter().enumerate().filter(|(_, t)| off(t)) {
                    playing.mask.set(i, false);
                }
            }
        }
        Ok(playing)
    }

    fn layers(&self) -> Result<Vec<Layer>, String> {
        let mut out = Vec::new();
        for described in &self.layers {
            let mut layer = match described.get("blend").and_then(Value::as_array) {
                None => Layer::of(self.playing(described, described)?),
                Some(several) => {
                    let mut layer = Layer { weight: 1.0, enabled: true, ..Layer::default() };
                    for one in several {
                        let mut playing = self.playing(one, described)?;
                        playing.share = number(one, "weight").unwrap_or(1.0);
                        layer.playing.push(playing);
                    }
                    layer
                }
            };
            layer.weight = number(described, "weight").unwrap_or(1.0);
            layer.enabled = described.get("enabled").and_then(Value::as_bool).unwrap_or(true);
            layer.mode = match text(described, "mode") {
                None | Some("override") => LayerMode::Override,
                Some("additive") => LayerMode::Additive,
                Some(other) => return Err(format!("a layer of mode {other:?}")),
            };
            layer.mask = match described.get("mask") {
                None | Some(Value::Null) => None,
                Some(mask) => Some(self.mask(mask)?),
            };
            out.push(layer);
        }
        Ok(out)
    }

    /// A list of targets (or `target/property`), or weights by target.
    fn mask(&self, mask: &Value) -> Result<Vec<f64>, String> {
        let weight = |target: &str, property: &str| -> Option<f64> {
            let whole = format!("{target}/{property}");
            match mask {
                Value::Array(names) => {
                    let named = names.iter().filter_map(Value::as_str).any(|n| n == target || n == whole);
                    Some(f64::from(u8::from(named)))
                }
                Value::Object(weights) => {
                    let found = weights.get(&whole).or_else(|| weights.get(target));
                    Some(found.and_then(Value::as_f64).unwrap_or(0.0))
                }
                _ => None,
            }
        };
        let properties = self.stage.properties().iter();
        properties
            .map(|p| weight(&p.target, p.property.name()).ok_or_else(|| format!("mask {mask}?")))
            .collect()
    }

    fn evaluate(&self) -> Result<StageValues, String> {
        let mut values = StageValues::default();
        values.evaluate(&self.stage, &self.layers()?);
        Ok(values)
    }

    /// Holds if every value of the check is met and none that must never come does.
    fn expect(&self, check: &Value) -> Verdict {
        let values = match self.evaluate() {
            Ok(values) => values,
            Err(why) => return Verdict::Fail(why),
        };
        let Some(wanted) = check.get("values").and_then(Value::as_object) else {
            return Verdict::Fail("the check states no values".to_owned());
        };
        for (name, value) in wanted {
            let Some((target, property)) = name.rsplit_once('/') else {
                return Verdict::Fail(format!("no target and property in {name:?}"));
            };
            let found = self
                .stage
                .properties()
                .iter()
                .position(|p| p.target == target && p.property.name() == property);
            let Some(index) = found else {
                return Verdict::Fail(format!("nothing drives {name}"));
            };
            let mut inner = check.clone();
            inner["value"] = value.clone();
            if self.stage.properties()[index].kind == ValueKind::Rotation {
                inner["either_sign"] = Value::Bool(true);
            }
            let verdict = expect_value(values.get(&self.stage, index), &inner, "value");
            if let Verdict::Fail(why) = verdict {
                return Verdict::Fail(format!("{name}: {why}"));
            }
        }
        Verdict::Pass
    }
}

/// A clip from `"target/property": {interp, times, values, in, out}`.
fn clip_of(name: &str, tracks: &Value) -> Result<Clip, String> {
    let mut end = 0.0f64;
    let mut made = Vec::new();
    for (path, track) in tracks.as_object().into_iter().flatten() {
        let (target, property) = path.rsplit_once('/').ok_or_else(|| format!("track {path:?}?"))?;
        only("a track", track, &["interp", "times", "values", "in", "in_tangents", "out", "out_tangents"])?;
        let times = track.get("times").and_then(row).ok_or("a track without times")?;
        let rows = track.get("values").and_then(Value::as_array).ok_or("a track without values")?;
        let first = rows.first().ok_or("a track without keys")?;
        let flat = |key: &str| -> Option<Vec<f64>> {
            let rows = track.get(key)?.as_array()?;
            rows.iter().map(row).collect::<Option<Vec<_>>>().map(|r| r.concat())
        };
        let values = flat("values").ok_or("values that are no numbers")?;
        let kind = kind_of(property, first, values.len() / times.len().max(1));
        end = times.last().copied().unwrap_or(0.0).max(end);
        let curve = match text(track, "interp").unwrap_or("linear") {
            _ if kind == ValueKind::Switch => Curve::step(kind, times, values),
            "step" => Curve::step(kind, times, values),
            "linear" => Curve::linear(kind, times, values),
            "cubic" | "cubicspline" | "hermite" => {
                let tangents = |keys: [&str; 2]| keys.iter().find_map(|k| flat(k));
                let (Some(arrive), Some(leave)) =
                    (tangents(["in", "in_tangents"]), tangents(["out", "out_tangents"]))
                else {
                    return Err("a cubic track without tangents".to_owned());
                };
                Curve::hermite(kind, times, values, leave, arrive)
            }
            other => return Err(format!("interpolation {other:?}?")),
        };
        let curve = curve.map_err(|e| format!("{path}: {e}"))?;
        let rest = curve.value(0).to_vec();
        made.push(Track::new(binding(target, property), TrackData::Curve(curve), rest));
    }
    let mut clip = Clip::new(name, 0.0, end).map_err(|e| e.to_string())?;
    clip.tracks = made;
    Ok(clip)
}

fn prepared(subject: &Subject, check: &Value) -> Result<Scene, String> {
    let mut scene = Scene::read(subject)?;
    scene.set(check.get("set"))?;
    if let Some(t) = number(check, "t").or_else(|| number(check, "eval_time")) {
        scene.time = t;
    }
    Ok(scene)
}

fn eval_layers(subject: &Subject, check: &Value) -> Verdict {
    match prepared(subject, check) {
        Ok(scene) => scene.expect(check),
        Err(why) => Verdict::Fail(why),
    }
}

/// Every order of a list.
fn orders(items: &[Value]) -> Vec<Vec<Value>> {
    if items.len() <= 1 {
        return vec![items.to_vec()];
    }
    (0..items.len())
        .flat_map(|i| {
            let mut rest = items.to_vec();
            let first = rest.remove(i);
            orders(&rest).into_iter().map(move |tail| [vec![first.clone()], tail].concat())
        })
        .collect()
}

/// The clips blended inside each layer may be listed in any order; where no layer blends, the
/// layers themselves.
fn eval_layers_same_for_all_orders(subject: &Subject, check: &Value) -> Verdict {
    let scene = match prepared(subject, check) {
        Ok(scene) => scene,
        Err(why) => return Verdict::Fail(why),
    };
    let mut variants: Vec<Vec<Value>> = Vec::new();
    let blends = |l: &Value| l.get("blend").and_then(Value::as_array).cloned();
    if scene.layers.iter().any(|l| blends(l).is_some()) {
        for (i, layer) in scene.layers.iter().enumerate() {
            for order in blends(layer).map(|b| orders(&b)).unwrap_or_default() {
                let mut layers = scene.layers.clone();
                layers[i]["blend"] = Value::Array(order);
                variants.push(layers);
            }
        }
    } else {
        variants = orders(&scene.layers);
    }
    let tol = number(check, "tol").unwrap_or(1e-6);
    let mut first: Option<Vec<Vec<f64>>> = None;
    let mut scene = scene;
    for layers in variants {
        scene.layers = layers;
        if check.get("values").is_some() {
            let verdict = scene.expect(check);
            if verdict != Verdict::Pass {
                return verdict;
            }
        }
        let values = match scene.evaluate() {
            Ok(values) => values,
            Err(why) => return Verdict::Fail(why),
        };
        let all: Vec<Vec<f64>> =
            (0..scene.stage.properties().len()).map(|i| values.get(&scene.stage, i).to_vec()).collect();
        let first = first.get_or_insert_with(|| all.clone());
        for ((a, b), p) in first.iter().zip(&all).zip(scene.stage.properties()) {
            let off = |s: f64| a.iter().zip(b).map(|(x, y)| (x - s * y).abs()).fold(0.0, f64::max);
            let worst = if p.kind == ValueKind::Rotation { off(1.0).min(off(-1.0)) } else { off(1.0) };
            if worst > tol {
                return Verdict::Fail(format!("{} depends on the order: {a:?} and {b:?}", p.target));
            }
        }
    }
    Verdict::Pass
}

fn wrap_of(check: &Value) -> Result<Wrap, String> {
    match check.get("loop").or_else(|| check.get("wrap")) {
        None | Some(Value::Null | Value::Bool(false)) => Ok(Wrap::Hold),
        Some(Value::Bool(true)) => Ok(Wrap::Loop),
        Some(Value::String(s)) => match s.to_lowercase().replace(['-', '_', ' '], "").as_str() {
            "wrap" | "loop" | "repeat" => Ok(Wrap::Loop),
            "pingpong" | "mirror" => Ok(Wrap::PingPong),
            "none" | "once" | "hold" | "clamp" => Ok(Wrap::Hold),
            other => Err(format!("loop {other:?}?")),
        },
        Some(other) => Err(format!("loop {other}?")),
    }
}

/// `"xz"`, `"xz+yaw"`, `"xyz+rotation"`, `"yaw"`, `"all"`, `"none"`.
fn parts_of(axes: &str) -> Result<RootParts, String> {
    let mut parts = RootParts { path: [false; 3], rotation: RootRotation::Keep };
    for part in axes.split('+').map(str::trim) {
        match part {
            "none" | "" => {}
            "all" => parts = RootParts { path: [true; 3], rotation: RootRotation::Full },
            "yaw" | "heading" => parts.rotation = RootRotation::Yaw,
            "rotation" | "full" => parts.rotation = RootRotation::Full,
            _ if part.chars().all(|c| "xyz".contains(c)) => {
                part.chars().for_each(|c| parts.path[c as usize - 'x' as usize] = true);
            }
            _ => return Err(format!("axes {axes:?} are not understood")),
        }
    }
    Ok(parts)
}

fn root_track(subject: &Subject, check: &Value) -> Result<RootTrack, String> {
    let Some(json) = &subject.case.json else {
        return root_track_of_file(subject.file()?, check);
    };
    let axes = text(check, "axes").or_else(|| text(json, "axes")).unwrap_or("xz+yaw");
    let clip = json.get("clip").ok_or("the description has no clip")?;
    let root = clip.get("root").ok_or("the clip has no root")?;
    only("the input", json, &["type", "clip", "axes"])?;
    only("the clip", clip, &["root", "duration"])?;
    only("the root", root, &["times", "translation", "rotation"])?;
    let times = root.get("times").and_then(row).ok_or("the root has no times")?;
    let rows = |key: &str, rest: &[f64]| -> Result<Vec<f64>, String> {
        match root.get(key).and_then(Value::as_array) {
            None => Ok(rest.repeat(times.len())),
            Some(rows) => rows
                .iter()
                .map(row)
                .collect::<Option<Vec<_>>>()
                .map(|r| r.concat())
                .ok_or_else(|| format!("{key}?")),
        }
    };
    let end = number(clip, "duration").or(times.last().copied()).unwrap_or(0.0);
    let path = Curve::linear(ValueKind::Vector(3), times.clone(), rows("translation", &[0.0; 3])?);
    let turn = Curve::linear(ValueKind::Rotation, times.clone(), rows("rotation", &[0.0, 0.0, 0.0, 1.0])?);
    let (path, turn) = (path.map_err(|e| e.to_string())?, turn.map_err(|e| e.to_string())?);
    Ok(RootTrack::new(path, turn, times[0], end, parts_of(axes)?))
}

fn root_track_of_file(file: &File, check: &Value) -> Result<RootTrack, String> {
    let clip = &file.house.clips[file.clip(check)?];
    let node = match check.get("node") {
        Some(_) => file.node(check, "node")?,
        None => clip.tracks.iter().find_map(|t| t.binding.node).ok_or("no node moves")?,
    };
    let parts = parts_of(text(check, "axes").unwrap_or("xz+yaw"))?;
    RootTrack::of_node(clip, &file.house.skeleton, node, &clip.key_times(), parts).map_err(|e| e.to_string())
}

/// Compares a motion with the check's translation and rotation, whichever it states.
fn expect_motion(motion: Rigid, check: &Value) -> Verdict {
    // A bare value of three numbers is the translation, of four the rotation.
    if let Some(Value::Array(list)) = check.get("value") {
        let mut inner = check.clone();
        let (key, found) = match list.len() {
            3 => ("translation", motion.translation.to_array().to_vec()),
            4 => ("rotation", motion.rotation.to_array().to_vec()),
            n => return Verdict::Fail(format!("a value of {n} numbers is no motion")),
        };
        inner[key] = check["value"].clone();
        inner["either_sign"] = Value::Bool(key == "rotation");
        let verdict = expect_value(&found, &inner, key);
        let more = check.get("translation").is_some() || check.get("rotation").is_some();
        if verdict != Verdict::Pass || !more {
            return verdict;
        }
    }
    if check.get("translation").is_some() {
        let verdict = expect_value(&motion.translation.to_array(), check, "translation");
        if verdict != Verdict::Pass {
            return verdict;
        }
    }
    if check.get("rotation").is_some() {
        let mut inner = check.clone();
        inner["either_sign"] = Value::Bool(true);
        return expect_value(&motion.rotation.to_array(), &inner, "rotation");
    }
    Verdict::that(check.get("translation").is_some(), || "the check states no motion".to_owned())
}

/// The axes in which a check states a motion: those of the clip's start, unless it asks for those
/// the character has at the first time.
fn own_frame(check: &Value) -> bool {
    text(check, "frame").is_some_and(|f| {
        let f = f.to_lowercase();
        f.contains("character") || f.contains("local") || f.contains("from") || f.contains("body")
    })
}

fn root_motion(subject: &Subject, check: &Value) -> Verdict {
    let motion = root_track(subject, check).and_then(|track| {
        let (from, to) = (number(check, "from").unwrap_or(0.0), number(check, "to").ok_or("to when?")?);
        let wrap = wrap_of(check)?;
        Ok(if own_frame(check) { track.delta(from, to, wrap) } else { track.displacement(from, to, wrap) })
    });
    motion.map_or_else(Verdict::Fail, |m| expect_motion(m, check))
}

fn root_motion_steps(subject: &Subject, check: &Value) -> Verdict {
    let motion = root_track(subject, check).and_then(|track| {
        let wrap = wrap_of(check)?;
        let from = number(check, "from").or_else(|| number(check, "start")).unwrap_or(0.0);
        let dt = number(check, "dt").or_else(|| number(check, "step")).ok_or("no dt")?;
        let dt = dt * number(check, "speed").unwrap_or(1.0);
        let steps = match (check.get("steps").and_then(Value::as_u64), number(check, "to")) {
            (Some(n), _) => n,
            (None, Some(to)) => ((to - from) / dt).round() as u64,
            _ => return Err("no number of steps".to_owned()),
        };
        let at = |i: u64| from + i as f64 * dt;
        // What an engine does: each step's delta, in the frame reached so far.
        let mut reached = Rigid::IDENTITY;
        for i in 0..steps {
            reached = reached.then(track.delta(at(i), at(i + 1), wrap));
        }
        let whole = track.delta(from, at(steps), wrap);
        let seam = (reached.translation - whole.translation).length();
        if seam > 1e-6 {
            return Err(format!("the steps add up to {reached:?}, the whole is {whole:?}"));
        }
        if own_frame(check) {
            return Ok(reached);
        }
        // From the frame at the first step back into the axes of the clip's start.
        let facing = track.facing(from, wrap);
        Ok(Rigid {
            rotation: (facing * reached.rotation * facing.conjugate()).normalize(),
            translation: facing * reached.translation,
        })
    });
    motion.map_or_else(Verdict::Fail, |m| expect_motion(m, check))
}

fn pose_root(subject: &Subject, check: &Value) -> Verdict {
    let pose = root_track(subject, check).and_then(|track| {
        let t = number(check, "t").or_else(|| number(check, "time")).ok_or("at what time?")?;
        Ok(track.pose_part(t))
    });
    pose.map_or_else(Verdict::Fail, |m| expect_motion(m, check))
}

/// A rig that keeps what was last written to it, as many players do: only what the second clip
/// drives changes when it is shown.
fn play_then(subject: &Subject, check: &Value) -> Verdict {
    let shown = subject.file().and_then(|file| {
        let node = file.node(check, "node")?;
        let path = text(check, "path").ok_or("which property?")?;
        let mut value = {
            let rest = file.house.skeleton.joints()[node].rest;
            match path {
                "translation" => rest.translation.to_array().to_vec(),
                "rotation" => rest.rotation.to_array().to_vec(),
                "scale" => rest.scale.to_array().to_vec(),
                _ => return Err(format!("{path}?")),
            }
        };
        for key in ["first", "then"] {
            let show = check.get(key).ok_or_else(|| format!("the check has no {key}"))?;
            let clip = file.clip_named(show.get("clip").unwrap_or(&Value::Null))?;
            let t = number(show, "t").unwrap_or(0.0);
            if crate::subject::find(&file.house.clips[clip].tracks, node, path).is_some() {
                value = value_at(file, clip, check, t)?;
            }
        }
        Ok(value)
    });
    shown.map_or_else(Verdict::Fail, |v| expect_value(&v, check, "value"))
}

fn play_steps(subject: &Subject, check: &Value) -> Verdict {
    let shown = subject.file().and_then(|file| {
        let clip = file.clip(check)?;
        let mut player = Player::new(&file.house.clips[clip], wrap_of(check)?);
        let dt = number(check, "dt").ok_or("no dt")? * number(check, "speed").unwrap_or(1.0);
        for _ in 0..check.get("steps").and_then(Value::as_u64).ok_or("how many steps?")? {
            player.advance(dt);
        }
        value_at(file, clip, check, player.time())
    });
    shown.map_or_else(Verdict::Fail, |v| expect_value(&v, check, "value"))
}

fn additive(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let arguments = check.get("args").unwrap_or(&Value::Null);
    let reference = match arguments.get("reference").or_else(|| arguments.get("additive_reference")) {
        None => AdditiveReference::FirstKey,
        Some(Value::String(s)) => match s.as_str() {
            "first_key" | "first_frame" | "first" => AdditiveReference::FirstKey,
            "rest" | "rest_pose" | "bind" => AdditiveReference::Rest,
            name => {
                let clip = file.clip_named(&Value::String(name.to_owned())).map_err(Verdict::Fail)?;
                let clip = file.house.clips[clip].clone();
                let start = clip.start();
                AdditiveReference::Clip(Box::new(clip), start)
            }
        },
        Some(described) => {
            let named = described.get("clip").unwrap_or(described);
            let clip = file.house.clips[file.clip_named(named).map_err(Verdict::Fail)?].clone();
            let time = number(described, "t").unwrap_or(clip.start());
            AdditiveReference::Clip(Box::new(clip), time)
        }
    };
    let mut house = file.house.clone();
    house.clips = house.clips.iter().map(|c| make_additive(c, &reference)).collect();
    let made = File::from_house(house, &file.raw, &file.path, file.size);
    Ok(subject.made(made, None))
}
