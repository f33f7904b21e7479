//! A new document for nodes that came from another format: the tree, a skin of its joints, and
//! cameras and lights as far as they are known.

use std::collections::BTreeMap;

use inbetween::glam::{DAffine3, DQuat, DVec3};
use inbetween::pose::matrix;
use inbetween::{
    Binding, Clip, Curve, CurveParts, Extrapolation, LocalPose, ModelPose, NodeKind, Property, ScaleInherit,
    Skeleton, SpanKind, Spans, Tangents, Track, TrackData, ValueKind,
};
use serde_json::{Map, Value, json};

use super::container::{Buffer, Document};
use super::keys::{Class, Fidelity, Keys, Motion, Shape, class, track_breaks};
use super::rebuild::{set_transform, use_extension};
use crate::{Import, Note, Severity};

/// The document of an import's nodes, in metres and +Y up, without animations.
pub(super) fn document(import: &Import, notes: &mut Vec<Note>) -> Document {
    let skeleton = &import.skeleton;
    let mut json = json!({"asset": {"version": "2.0", "generator": "inbetween"}});
    let rest = LocalPose::rest(skeleton);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); skeleton.len()];
    for (index, joint) in skeleton.joints().iter().enumerate() {
        if let Some(parent) = joint.parent {
            children[parent].push(index);
        }
    }
    let mut nodes: Vec<Value> = Vec::new();
    let (mut cameras, mut lights) = (Vec::new(), Vec::new());
    for (index, joint) in skeleton.joints().iter().enumerate() {
        let mut node = Map::new();
        if !joint.name.is_empty() {
            node.insert("name".to_owned(), joint.name.clone().into());
        }
        if !children[index].is_empty() {
            node.insert("children".to_owned(), children[index].clone().into());
        }
        let mut node = Value::from(node);
        set_transform(&mut node, &rest.joints[index]);
        match joint.kind {
            NodeKind::Camera => {
                node["camera"] = cameras.len().into();
                cameras.push(camera(import, index));
            }
            NodeKind::Light => {
                node["extensions"] = json!({"KHR_lights_punctual": {"light": lights.len()}});
                lights.push(light(import, index));
            }
            _ => {}
        }
        nodes.push(node);
    }
    losses(import, &rest, cameras.len(), lights.len(), notes);
    let roots: Vec<usize> = (0..skeleton.len()).filter(|&i| skeleton.joints()[i].parent.is_none()).collect();
    if !nodes.is_empty() {
        json["scene"] = 0.into();
        json["scenes"] = json!([{"nodes": roots}]);
        json["nodes"] = nodes.into();
    }
    if !cameras.is_empty() {
        json["cameras"] = cameras.into();
    }
    if !lights.is_empty() {
        json["extensions"] = json!({"KHR_lights_punctual": {"lights": lights}});
        use_extension(&mut json, "KHR_lights_punctual");
    }
    let bytes = skins(skeleton, &rest, &roots, &mut json);
    let buffers = if bytes.is_empty() { Vec::new() } else { vec![Buffer::Chunk(bytes)] };
    Document { json, buffers, is_glb: true, chunks: Vec::new() }
}

/// The value of a property of a node where a track tells it, its first number.
fn known(import: &Import, node: usize, property: &str) -> Option<Vec<f64>> {
    let tracks = import.clips.iter().flat_map(|c| &c.tracks);
    let mut of_node = tracks.filter(|t| t.binding.node == Some(node));
    of_node.find(|t| t.binding.property.name() == property).map(|t| t.rest.clone())
}

fn camera(import: &Import, node: usize) -> Value {
    let first = |property: &str| known(import, node, property).and_then(|v| v.first().copied());
    let positive = |v: &f64| *v > 0.0 && v.is_finite();
    // Where nothing is known: what many tools start with, a lens of 50 mm on full frame.
    let yfov = first("camera.yfov").filter(positive).filter(|&v| v < std::f64::consts::PI).unwrap_or(0.4711);
    let znear = first("camera.znear").filter(positive).unwrap_or(0.1);
    let mut perspective = json!({"yfov": yfov, "znear": znear});
    if let Some(zfar) = first("camera.zfar").filter(|&far| far > znear) {
        perspective["zfar"] = zfar.into();
    }
    json!({"type": "perspective", "perspective": perspective})
}

fn light(import: &Import, node: usize) -> Value {
    let mut light = json!({"type": "point"});
    if let Some(color) = known(import, node, "light.color").filter(|c| c.len() >= 3) {
        light["color"] = color[..3].iter().map(|v| v.clamp(0.0, 1.0)).collect::<Vec<_>>().into();
    }
    if let Some(&intensity) = known(import, node, "light.intensity").as_deref().and_then(<[f64]>::first) {
        light["intensity"] = intensity.max(0.0).into();
    }
    light
}

/// Says what the new file does not hold.
fn losses(import: &Import, rest: &LocalPose, cameras: usize, lights: usize, notes: &mut Vec<Note>) {
    let mut note = |severity, text: String| notes.push(Note::new(severity, "", text));
    note(
        Severity::Lost,
        format!(
            "from {} came the {} nodes, the skeleton and the clips; meshes, materials and all else \
             stayed behind",
            import.format,
            import.skeleton.len()
        ),
    );
    if cameras > 0 {
        let text = format!("{cameras} cameras got the field of view their tracks tell, else 27 degrees");
        note(Severity::Info, text);
    }
    if lights > 0 {
        let text = format!("{lights} lights became point lights: their kind is not known");
        note(Severity::Info, text);
    }
    let tips: usize = import.skeleton.joints().iter().map(|j| j.tips.len()).sum();
    if tips > 0 {
        note(Severity::Lost, format!("{tips} end sites stayed behind: glTF has no points without a node"));
    }
    let scaled = |node: usize| {
        let tracks = import.clips.iter().flat_map(|c| &c.tracks);
        let mut tracks = tracks.filter(|t| t.binding.node == Some(node));
        (rest.joints[node].scale - DVec3::ONE).abs().max_element() > 1e-9
            || tracks.any(|t| {
                let moves = |s: DVec3| (s - DVec3::ONE).abs().max_element() > 1e-9;
                let times = t.data.key_times();
                t.binding.property == Property::Scale
                    && times.iter().any(|&time| moves(DVec3::from_slice(&t.value_at(time))))
            })
    };
    let joints = import.skeleton.joints();
    let special = joints.iter().filter(|j| j.inherit != ScaleInherit::Full && j.parent.is_some_and(scaled));
    let special = special.count();
    if special > 0 {
        let text = format!(
            "{special} nodes do not take over their parent's scale, which glTF cannot say; they will"
        );
        note(Severity::Lost, text);
    }
}

/// Adds a skin for the joints below each root; returns the bytes of their inverse bind matrices.
fn skins(skeleton: &Skeleton, rest: &LocalPose, roots: &[usize], json: &mut Value) -> Vec<u8> {
    let world = ModelPose::of(skeleton, rest);
    let mut bytes = Vec::new();
    let (mut skins, mut accessors) = (Vec::new(), Vec::new());
    // The joints below each root, parents first.
    let mut root_of: Vec<usize> = (0..skeleton.len()).collect();
    let mut below: BTreeMap<usize, Vec<usize>> = roots.iter().map(|&r| (r, Vec::new())).collect();
    for &j in skeleton.order() {
        let joint = &skeleton.joints()[j];
        root_of[j] = joint.parent.map_or(j, |p| root_of[p]);
        if joint.kind == NodeKind::Joint {
            below.entry(root_of[j]).or_default().push(j);
        }
    }
    for joints in below.into_values().filter(|j| !j.is_empty()) {
        let start = bytes.len();
        for &joint in &joints {
            let inverse = world.joints[joint].inverse();
            let inverse = if inverse.is_finite() { inverse } else { DAffine3::IDENTITY };
            for column in inverse.matrix3.to_cols_array_2d() {
                bytes.extend(column.iter().flat_map(|&v| (v as f32).to_le_bytes()));
                bytes.extend(0.0f32.to_le_bytes());
            }
            let t = inverse.translation.to_array();
            bytes.extend(t.iter().flat_map(|&v| (v as f32).to_le_bytes()));
            bytes.extend(1.0f32.to_le_bytes());
        }
        let mut accessor =
            json!({"bufferView": 0, "componentType": 5126, "count": joints.len(), "type": "MAT4"});
        if start > 0 {
            accessor["byteOffset"] = start.into();
        }
        skins.push(json!({"joints": joints, "inverseBindMatrices": accessors.len()}));
        accessors.push(accessor);
    }
    if !skins.is_empty() {
        json["skins"] = skins.into();
        json["accessors"] = accessors.into();
        json["bufferViews"] = json!([{"buffer": 0, "byteLength": bytes.len()}]);
        json["buffers"] = json!([{"byteLength": bytes.len()}]);
    }
    bytes
}

/// Takes pivots into the tracks: a node that turns or is scaled about a point other than its
/// origin also moves. Its translation gets a track that says so, as near as `fidelity` says, in metres.
pub(super) fn fold_pivots(import: &mut Import, fidelity: Fidelity) {
    let skeleton = &import.skeleton;
    let pivoted: Vec<usize> = (0..skeleton.len()).filter(|&i| skeleton.joints()[i].pivot.is_some()).collect();
    for clip in &mut import.clips {
        for &node in &pivoted {
            fold_pivot(clip, skeleton, node, fidelity);
        }
    }
    let mut joints = skeleton.joints().to_vec();
    for joint in &mut joints {
        if let Some(pivot) = joint.pivot.take() {
            joint.rest = pivot.fold(joint.rest);
        }
    }
    import.skeleton = Skeleton::new(joints).expect("the tree is unchanged");
}

/// The curve that keys stand for, vectors only.
fn curve_of(keys: &Keys) -> Option<Curve> {
    let n = keys.times.len();
    let row = |part: usize| -> Vec<f64> {
        let width = keys.row();
        (0..n).flat_map(|i| keys.values[i * width + 3 * part..i * width + 3 * part + 3].to_vec()).collect()
    };
    let (span, values, tangents) = match keys.shape {
        Shape::Step => (SpanKind::Step, row(0), None),
        Shape::Linear => (SpanKind::Linear, row(0), None),
        Shape::Cubic => {
            let tangents = Tangents { arrive: row(0), leave: row(2), ..Tangents::default() };
            (SpanKind::Hermite, row(1), Some(Box::new(tangents)))
        }
    };
    Curve::new(CurveParts {
        kind: ValueKind::Vector(3),
        times: keys.times.clone().into(),
        values,
        spans: Spans::Uniform(span),
        tangents,
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    })
    .ok()
}

/// Nodes that do not take over their parent's scale get the scale that undoes it, where it is the
/// same along all axes (along several, a turned child would shear). They then inherit in full.
pub(super) fn fold_scales(import: &mut Import, fidelity: Fidelity) {
    let mut joints = import.skeleton.joints().to_vec();
    let ignoring = (0..joints.len()).filter(|&i| joints[i].inherit == ScaleInherit::Ignore);
    let ignoring: Vec<(usize, usize)> = ignoring.filter_map(|i| Some((i, joints[i].parent?))).collect();
    let even = |s: DVec3| s.max_element() - s.min_element() <= 1e-6 * s.abs().max_element();
    let folded: Vec<(usize, usize)> = ignoring
        .into_iter()
        .filter(|&(_, parent)| {
            let rest = joints[parent].rest.scale;
            let fits = |s: DVec3| even(s) && s.x.abs() > 1e-9;
            fits(rest) && import.clips.iter().all(|c| parent_scales(c, parent).into_iter().all(fits))
        })
        .collect();
    for clip in &mut import.clips {
        let mut changed = Vec::new();
        for &(node, parent) in &folded {
            let of = |node: usize| {
                clip.tracks.iter().find(|t| {
                    t.enabled && t.binding.node == Some(node) && t.binding.property == Property::Scale
                })
            };
            let (own, above) = (of(node), of(parent));
            if own.is_none() && above.is_none() {
                continue;
            }
            let value = |track: Option<&Track>, rest: DVec3, time: f64| {
                track.map_or(rest, |t| DVec3::from_slice(&t.value_at(time)))
            };
            let (rest, rest_above) = (joints[node].rest.scale, joints[parent].rest.scale);
            if above.is_none() && rest_above == DVec3::ONE {
                continue;
            }
            let eval = |time: f64, out: &mut [f64]| {
                let scale = value(own, rest, time) / value(above, rest_above, time);
                out.copy_from_slice(&scale.to_array());
            };
            let range = (clip.start(), clip.end());
            let both = [own, above].into_iter().flatten();
            let mut breaks: Vec<f64> = both.flat_map(|t| track_breaks(&t.data, range).0).collect();
            breaks.sort_by(f64::total_cmp);
            breaks.dedup();
            let class = |track: Option<&Track>, w: &[f64]| {
                track.map_or(Class::Constant, |t| class(&t.data, w[0], w[1]))
            };
            let classes = breaks.windows(2).map(|w| match class(above, w) {
                Class::Constant => class(own, w),
                _ => Class::Smooth,
            });
            let classes = classes.collect();
            let motion = Motion { kind: ValueKind::Vector(3), eval: &eval, breaks, classes, start: range.0 };
            let Some(curve) = curve_of(&motion.keys(fidelity)) else { continue };
            let binding = Binding::node(node, joints[node].name.as_str(), Property::Scale);
            let rest = (rest / rest_above).to_array().to_vec();
            changed.push(Track::new(binding, TrackData::Curve(curve), rest));
        }
        for track in changed {
            let same = |t: &Track| {
                t.enabled && t.binding.node == track.binding.node && t.binding.property == Property::Scale
            };
            match clip.tracks.iter().position(same) {
                Some(i) => clip.tracks[i] = track,
                None => clip.tracks.push(track),
            }
        }
    }
    let scales: Vec<DVec3> = joints.iter().map(|j| j.rest.scale).collect();
    for (node, parent) in folded {
        joints[node].rest.scale = scales[node] / scales[parent];
        joints[node].inherit = ScaleInherit::Full;
    }
    import.skeleton = Skeleton::new(joints).expect("the tree is unchanged");
}

/// Scales a node takes in a clip: at its keys and in the middle between them.
fn parent_scales(clip: &Clip, node: usize) -> Vec<DVec3> {
    let track = clip
        .tracks
        .iter()
        .find(|t| t.enabled && t.binding.node == Some(node) && t.binding.property == Property::Scale);
    let Some(track) = track else { return Vec::new() };
    let mut times = track.data.key_times();
    times.extend(times.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect::<Vec<_>>());
    times.iter().map(|&t| DVec3::from_slice(&track.value_at(t))).collect()
}

fn fold_pivot(clip: &mut Clip, skeleton: &Skeleton, node: usize, fidelity: Fidelity) {
    let joint = &skeleton.joints()[node];
    let Some(pivot) = &joint.pivot else { return };
    let of = |property: Property| {
        clip.tracks
            .iter()
            .position(|t| t.enabled && t.binding.node == Some(node) && t.binding.property == property)
    };
    let [move_, turn, size] = [Property::Translation, Property::Rotation, Property::Scale].map(of);
    let parts: Vec<&Track> = [move_, turn, size].into_iter().flatten().map(|i| &clip.tracks[i]).collect();
    if parts.is_empty() {
        return;
    }
    let value = |track: Option<usize>, time: f64| track.map(|i| clip.tracks[i].value_at(time));
    let eval = |time: f64, out: &mut [f64]| {
        let mut raw = joint.rest;
        if let Some(v) = value(move_, time) {
            raw.translation = DVec3::from_slice(&v);
        }
        if let Some(v) = value(turn, time) {
            raw.rotation = DQuat::from_slice(&v);
        }
        if let Some(v) = value(size, time) {
            raw.scale = DVec3::from_slice(&v);
        }
        out.copy_from_slice(&pivot.fold(raw).translation.to_array());
    };
    let range = (clip.start(), clip.end());
    let mut breaks: Vec<f64> = parts.iter().flat_map(|t| track_breaks(&t.data, range).0).collect();
    breaks.sort_by(f64::total_cmp);
    breaks.dedup();
    let classes = breaks.windows(2).map(|w| {
        let of = |track: Option<usize>| track.map(|i| class(&clip.tracks[i].data, w[0], w[1]));
        let turned = of(turn).max(of(size));
        // A straight move stays one; a turn or a change of size becomes a curve of the pivot.
        match turned {
            None | Some(Class::Constant) => of(move_).unwrap_or(Class::Constant),
            _ => Class::Smooth,
        }
    });
    let classes = classes.collect();
    let motion = Motion { kind: ValueKind::Vector(3), eval: &eval, breaks, classes, start: range.0 };
    let keys = motion.keys(fidelity);
    let Some(curve) = curve_of(&keys) else { return };
    let rest = matrix(&pivot.fold(joint.rest)).translation.to_array().to_vec();
    let folded = Track::new(
        Binding::node(node, joint.name.as_str(), Property::Translation),
        TrackData::Curve(curve),
        rest,
    );
    match move_ {
        Some(i) => clip.tracks[i] = folded,
        None => clip.tracks.push(folded),
    }
}
