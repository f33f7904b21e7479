//! Takes: which curves drive which property, in how many layers, and over what time.
//!
//! An FBX property is driven by a curve node in each layer of the take, and a curve node has a
//! curve or a constant for each component. Layers are combined as FBX says, from the lowest up:
//! additive ones add their weighted value, overriding ones replace or blend. As long as that is a
//! sum of multiples of one curve (or of curves with the same keys), the keys are kept; where it
//! is not (an animated weight, rotations composed as turns, curves with other keys in two
//! layers), the property is fitted against `ufbx`'s evaluation and a note says so.

use std::collections::{BTreeMap, HashMap, HashSet};

use inbetween::glam::DVec3;
use inbetween::{
    Axis, Binding, Clip, Curve, CurveParts, EulerBetween, EulerCurve, Extrapolation, FrameRate, Joint,
    Property, SpanKind, Track, TrackData, ValueKind,
};

use super::bake::{self, Row};
use super::curves::{self, TimePool};
use super::scene::{LARGEST, RotationFrame, index_of, list, product_axes, static_vec3};
use crate::import::{Note, Severity};
use crate::{FormatError, ReadOptions};

/// How far a fitted curve may be from what it stands for, in the property's own unit (for
/// rotations in a component of the quaternion). A hundredth of what sampling is held to.
const FIT_TOLERANCE: f64 = 1e-7;

/// Properties around a node's transform that have no track of their own in our model.
const FRAME_PROPERTIES: [&str; 7] = [
    "PreRotation",
    "PostRotation",
    "RotationOrder",
    "RotationOffset",
    "RotationPivot",
    "ScalingOffset",
    "ScalingPivot",
];

/// A property and the curve nodes that drive it, one a layer.
struct Driven<'a> {
    element: &'a ufbx::Element,
    name: &'a str,
    parts: Vec<(usize, &'a ufbx::AnimProp)>,
}

/// A property's components after its layers have been combined.
enum Combined {
    Keyed(Vec<Axis>),
    Fit(&'static str),
}

struct Reader<'a> {
    scene: &'a ufbx::Scene,
    joints: &'a [Joint],
    file: &'a str,
    options: &'a ReadOptions,
    /// Keys of the file and those fitted so far.
    keys_made: &'a mut u64,
    stack: &'a ufbx::AnimStack,
    tick: f64,
    pool: TimePool,
    notes: Vec<Note>,
    tracks: Vec<Track>,
    taken: HashSet<(Option<usize>, String, Property)>,
}

/// Reads all takes.
pub(super) fn read(
    scene: &ufbx::Scene,
    joints: &[Joint],
    file: &str,
    options: &ReadOptions,
    notes: &mut Vec<Note>,
) -> Result<Vec<Clip>, FormatError> {
    let mut keys: u64 = scene.anim_curves.iter().map(|c| c.keyframes.count as u64).sum();
    check_keys(file, keys, options)?;
    let rate = rate(scene);
    let ticks = scene.metadata.ktime_second;
    let tick = 1.0 / if ticks > 0 { ticks as f64 } else { 46_186_158_000.0 };
    let mut clips = Vec::with_capacity(scene.anim_stacks.count);
    for stack in &scene.anim_stacks {
        let mut reader = Reader {
            scene,
            joints,
            file,
            options,
            keys_made: &mut keys,
            stack,
            tick,
            pool: TimePool::default(),
            notes: Vec::new(),
            tracks: Vec::new(),
            taken: HashSet::new(),
        };
        let driven = reader.driven();
        reader.read_tracks(&driven)?;
        let (start, end) = reader.range(&driven);
        let mut clip = Clip::new(stack.element.name.to_string(), start, end).map_err(|e| {
            super::broken(
                file.to_owned(),
                format!("take {:?}", &*stack.element.name),
                "a span of time",
                &e.to_string(),
                "export the file again",
            )
        })?;
        clip.rate = rate;
        clip.tracks = reader.tracks;
        if clip.tracks.is_empty() && reader.notes.iter().all(|n| n.severity != Severity::Lost) {
            let place = format!("take {:?}", &*stack.element.name);
            reader.notes.push(Note::new(Severity::Info, place, "the take is empty: it has no curves"));
        }
        notes.append(&mut reader.notes);
        clips.push(clip);
    }
    let in_takes: HashSet<u32> =
        scene.anim_stacks.iter().flat_map(|s| s.layers.iter().map(|l| l.element.element_id)).collect();
    let loose: Vec<String> = scene
        .anim_layers
        .iter()
        .filter(|l| l.anim_props.count > 0 && !in_takes.contains(&l.element.element_id))
        .map(|l| l.element.name.to_string())
        .collect();
    if !loose.is_empty() {
        notes.push(Note::new(
            Severity::Lost,
            list(&loose),
            "animation layers that belong to no take were left out",
        ));
    }
    Ok(clips)
}

fn check_keys(file: &str, keys: u64, options: &ReadOptions) -> Result<(), FormatError> {
    if keys <= options.max_keys {
        return Ok(());
    }
    Err(FormatError::Limit {
        file: file.to_owned(),
        place: "all animation curves".to_owned(),
        what: "keys".to_owned(),
        found: keys,
        limit: options.max_keys,
        advice: "raise the limit or split the file".to_owned(),
    })
}

/// The file's frame rate as an exact ratio. The drop modes count frames otherwise but run at the
/// rate of their full mode.
fn rate(scene: &ufbx::Scene) -> Option<FrameRate> {
    use ufbx::TimeMode as M;
    // 119.88 a second, which the parser does not know.
    if ufbx::find_prop(&scene.settings.props, "TimeMode").is_some_and(|p| p.value_int == 18) {
        return FrameRate::new(120_000, 1001);
    }
    match scene.settings.time_mode {
        M::NtscDropFrame | M::NtscFullFrame => FrameRate::new(30000, 1001),
        M::FilmFullFrame => FrameRate::new(24000, 1001),
        M::E5994Fps => FrameRate::new(60000, 1001),
        M::Default | M::E30Fps | M::E30FpsDrop => FrameRate::new(30, 1),
        M::E120Fps => FrameRate::new(120, 1),
        M::E100Fps => FrameRate::new(100, 1),
        M::E60Fps => FrameRate::new(60, 1),
        M::E50Fps => FrameRate::new(50, 1),
        M::E48Fps => FrameRate::new(48, 1),
        M::Pal => FrameRate::new(25, 1),
        M::E24Fps => FrameRate::new(24, 1),
        M::E1000Fps => FrameRate::new(1000, 1),
        M::E96Fps => FrameRate::new(96, 1),
        M::E72Fps => FrameRate::new(72, 1),
        M::Custom => FrameRate::from_hz(scene.settings.frames_per_second, 2e-5),
    }
}

impl<'a> Reader<'a> {
    /// Every driven property: nodes first, in their order, translation, rotation, scale first.
    fn driven(&self) -> Vec<Driven<'a>> {
        let mut map: BTreeMap<(bool, u32, u8, &str), Driven<'a>> = BTreeMap::new();
        for (layer, l) in self.stack.layers.iter().enumerate() {
            let l: &'a ufbx::AnimLayer = &self.scene.anim_layers[l.element.typed_id as usize];
            for prop in l.anim_props.as_ref() {
                let element: &'a ufbx::Element = prop.element.as_ref();
                let name: &'a str = prop.prop_name.as_ref();
                let rank = name_rank(name);
                let not_node = element.type_ != ufbx::ElementType::Node;
                map.entry((not_node, element.element_id, rank, name))
                    .or_insert_with(|| Driven { element, name, parts: Vec::new() })
                    .parts
                    .push((layer, prop));
            }
        }
        // Properties that take their value from another property move when that one does.
        for node in &self.scene.nodes {
            let node: &'a ufbx::Node = &self.scene.nodes[node.element.typed_id as usize];
            for prop in node.element.props.props.as_ref() {
                let name: &'a str = prop.name.as_ref();
                if prop.flags.has_any(ufbx::PropFlags::CONNECTED) && name.starts_with("Lcl ") {
                    let rank = name_rank(name);
                    let element = &node.element;
                    map.entry((false, element.element_id, rank, name)).or_insert_with(|| Driven {
                        element,
                        name,
                        parts: Vec::new(),
                    });
                }
            }
        }
        map.into_values().collect()
    }

    fn place(&self, d: &Driven<'_>) -> String {
        format!("take {:?}, {:?}, {}", &*self.stack.element.name, &*d.element.name, d.name)
    }

    fn note(&mut self, severity: Severity, d: &Driven<'_>, text: impl Into<String>) {
        let note = Note::new(severity, self.place(d), text);
        self.notes.push(note);
    }

    /// First and last key of the take, and whether the file states a span of its own.
    fn range(&mut self, driven: &[Driven<'_>]) -> (f64, f64) {
        let (begin, end) = (self.stack.time_begin, self.stack.time_end);
        if begin.is_finite() && end.is_finite() && begin < end {
            return (begin, end);
        }
        let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
        for d in driven {
            for (_, part) in &d.parts {
                for curve in part.anim_value.curves.iter().flatten() {
                    for key in &curve.keyframes {
                        first = first.min(key.time);
                        last = last.max(key.time);
                    }
                }
            }
        }
        if first > last {
            let at = if begin.is_finite() { begin } else { 0.0 };
            return (at, at);
        }
        if first != begin || last != end {
            self.notes.push(Note::new(
                Severity::Info,
                format!("take {:?}", &*self.stack.element.name),
                format!("the file states no span of time ({begin} s to {end} s); that of the keys is taken, {first} s to {last} s"),
            ));
        }
        (first, last)
    }

    fn read_tracks(&mut self, driven: &[Driven<'a>]) -> Result<(), FormatError> {
        // Nodes whose pivots or pre-rotation move: the whole transform is fitted.
        let mut framed: HashMap<u32, &'static str> = HashMap::new();
        for d in driven {
            if d.element.type_ == ufbx::ElementType::Node {
                if let Some(name) = FRAME_PROPERTIES.iter().find(|n| **n == d.name)
                    && self.moves(d)
                {
                    framed.insert(d.element.element_id, *name);
                }
                if d.name.starts_with("Lcl ") && self.is_connected(d) {
                    framed.entry(d.element.element_id).or_insert("a connected transform property");
                }
            }
        }
        for d in driven {
            match ufbx::as_node(d.element) {
                Some(node) => self.read_node_property(node, d, &framed)?,
                None if d.element.type_ == ufbx::ElementType::BlendChannel => {}
                None => self.read_other(d)?,
            }
        }
        for (&element, &why) in framed.iter().collect::<BTreeMap<_, _>>() {
            if let Some(node) =
                self.scene.elements.as_ref().get(element as usize).and_then(|e| ufbx::as_node(e))
            {
                self.fit_transform(node, driven, why)?;
            }
        }
        self.read_weights(driven)
    }

    /// True if the property has keys that differ from its static value.
    fn moves(&self, d: &Driven<'_>) -> bool {
        let rest = static_vec3(d.element, d.name, DVec3::ZERO);
        d.parts.iter().any(|(_, p)| {
            let v = &p.anim_value;
            let constants = [v.default_value.x, v.default_value.y, v.default_value.z];
            (0..3).any(|c| match &v.curves[c] {
                Some(curve) if curve.keyframes.count > 0 => {
                    curve.keyframes.iter().any(|k| k.value != rest[c])
                }
                _ => constants[c] != rest[c] && c < width_of(d),
            })
        })
    }

    fn is_connected(&self, d: &Driven<'_>) -> bool {
        ufbx::find_prop(&d.element.props, d.name).is_some_and(|p| p.flags.has_any(ufbx::PropFlags::CONNECTED))
    }

    fn read_node_property(
        &mut self,
        node: &'a ufbx::Node,
        d: &Driven<'a>,
        framed: &HashMap<u32, &'static str>,
    ) -> Result<(), FormatError> {
        let Some(index) = index_of(self.scene, node) else {
            self.note(Severity::Lost, d, "the scene's root cannot move; the curves were left out");
            return Ok(());
        };
        let property = match d.name {
            "Lcl Translation" => Property::Translation,
            "Lcl Rotation" => Property::Rotation,
            "Lcl Scaling" => Property::Scale,
            "Visibility" => return self.read_visibility(index, d),
            name => {
                return self.read_general(
                    Some(index),
                    &node.element.name,
                    Property::Other(name.to_owned()),
                    d,
                );
            }
        };
        if framed.contains_key(&d.element.element_id) {
            return Ok(());
        }
        let joint = &self.joints[index];
        let rest = match property {
            Property::Translation => joint.rest.translation.to_array().to_vec(),
            Property::Scale => joint.rest.scale.to_array().to_vec(),
            _ => joint.rest.rotation.to_array().to_vec(),
        };
        let data = match self.combine(d, 3)? {
            Combined::Keyed(axes) => {
                let (axes, enabled) = self.apply_mute(d, axes);
                let data = match property {
                    Property::Rotation => euler(&RotationFrame::of(node), axes),
                    _ => TrackData::Axes { kind: ValueKind::Vector(3), axes },
                };
                self.push(Some(index), &node.element.name, property, data, rest, enabled);
                return Ok(());
            }
            Combined::Fit(why) => {
                let anim = &self.stack.anim;
                let name = d.name;
                let (kind, mut f): (_, Box<dyn FnMut(f64) -> Row>) = match property {
                    Property::Rotation => (
                        ValueKind::Rotation,
                        Box::new(|t| {
                            let q = ufbx::evaluate_transform(anim, node, t).rotation;
                            [q.x, q.y, q.z, q.w]
                        }),
                    ),
                    _ => (ValueKind::Vector(3), Box::new(|t| evaluate(anim, &node.element, name, t))),
                };
                TrackData::Curve(self.fit(d, kind, why, &mut f)?)
            }
        };
        self.push(Some(index), &node.element.name, property, data, rest, true);
        Ok(())
    }

    /// A property as cubic keys fitted to `f`, with a note that says why and how well.
    fn fit(
        &mut self,
        d: &Driven<'_>,
        kind: ValueKind,
        why: &str,
        f: &mut dyn FnMut(f64) -> Row,
    ) -> Result<Curve, FormatError> {
        let breaks = self.breaks(d);
        let (curve, worst) = self.fit_over(d, kind, &breaks, f)?;
        self.note_fit(d, why, curve.len(), worst);
        Ok(curve)
    }

    fn fit_over(
        &mut self,
        d: &Driven<'_>,
        kind: ValueKind,
        breaks: &[f64],
        f: &mut dyn FnMut(f64) -> Row,
    ) -> Result<(Curve, f64), FormatError> {
        let fitted = bake::fit(kind, breaks, self.tick, FIT_TOLERANCE, f);
        let (curve, worst) = fitted.map_err(|e| self.curve_error(d, "", &e))?;
        *self.keys_made += curve.len() as u64;
        check_keys(self.file, *self.keys_made, self.options)?;
        Ok((curve, worst))
    }

    fn note_fit(&mut self, d: &Driven<'_>, why: &str, keys: usize, worst: f64) {
        let text = format!("{why}; the result is kept as {keys} cubic keys, at most {worst:.1e} off");
        self.note(Severity::Info, d, text);
    }

    /// Fits translation, rotation and scale of a node whose pivots or pre-rotation are animated.
    fn fit_transform(
        &mut self,
        node: &'a ufbx::Node,
        driven: &[Driven<'a>],
        why: &'static str,
    ) -> Result<(), FormatError> {
        let Some(index) = index_of(self.scene, node) else { return Ok(()) };
        // `driven` is in order of elements.
        let id = node.element.element_id;
        let nodes = &driven[..driven.partition_point(|d| d.element.type_ == ufbx::ElementType::Node)];
        let first = nodes.partition_point(|d| d.element.element_id < id);
        let own: Vec<&Driven<'a>> = nodes[first..]
            .iter()
            .take_while(|d| d.element.element_id == id)
            .filter(|d| d.name.starts_with("Lcl ") || FRAME_PROPERTIES.contains(&d.name))
            .collect();
        let mut breaks = Vec::new();
        for d in &own {
            breaks.extend(self.breaks(d));
        }
        breaks.sort_unstable_by(f64::total_cmp);
        breaks.dedup();
        let joint = &self.joints[index];
        let pivot = joint.pivot.clone();
        let anim = &self.stack.anim;
        let (mut keys, mut worst) = (0, 0.0f64);
        for property in [Property::Translation, Property::Rotation, Property::Scale] {
            let (kind, rest) = match property {
                Property::Translation => (ValueKind::Vector(3), joint.rest.translation.to_array().to_vec()),
                Property::Scale => (ValueKind::Vector(3), joint.rest.scale.to_array().to_vec()),
                _ => (ValueKind::Rotation, joint.rest.rotation.to_array().to_vec()),
            };
            let mut f = |t: f64| -> Row {
                let e = ufbx::evaluate_transform(anim, node, t);
                match property {
                    Property::Scale => [e.scale.x, e.scale.y, e.scale.z, 0.0],
                    Property::Rotation => [e.rotation.x, e.rotation.y, e.rotation.z, e.rotation.w],
                    _ => {
                        // The pose will add the pivots at rest again.
                        let here = inbetween::Transform {
                            translation: DVec3::ZERO,
                            rotation: inbetween::glam::DQuat::from_xyzw(
                                e.rotation.x,
                                e.rotation.y,
                                e.rotation.z,
                                e.rotation.w,
                            ),
                            scale: super::scene::vec3(e.scale),
                        };
                        let add = pivot.as_ref().map_or(DVec3::ZERO, |p| p.fold(here).translation);
                        let t = super::scene::vec3(e.translation) - add;
                        [t.x, t.y, t.z, 0.0]
                    }
                }
            };
            let (curve, off) = self.fit_over(own[0], kind, &breaks, &mut f)?;
            keys += curve.len();
            worst = worst.max(off);
            self.push(Some(index), &node.element.name, property, TrackData::Curve(curve), rest, true);
        }
        let why = format!("{why} is animated, so the node's whole transform is fitted");
        self.note_fit(own[0], &why, keys, worst);
        Ok(())
    }

    /// `Visibility` as a switch; where it is neither on nor off between its keys, as a number.
    fn read_visibility(&mut self, index: usize, d: &Driven<'a>) -> Result<(), FormatError> {
        let shown = |v: f64| f64::from(u8::from(v.trunc() != 0.0));
        let target = self.joints[index].name.clone();
        if let Combined::Keyed(axes) = self.combine(d, 1)?
            && let (axes, enabled) = self.apply_mute(d, axes)
            && let Some(axis) = as_switch(&axes[0], shown)
        {
            let rest = vec![shown(static_vec3(d.element, d.name, DVec3::ONE).x)];
            let data = match axis {
                Axis::Curve(curve) => TrackData::Curve(curve),
                constant => TrackData::Axes { kind: ValueKind::Switch, axes: vec![constant] },
            };
            self.push(Some(index), &target, Property::Visible, data, rest, enabled);
            return Ok(());
        }
        self.note(
            Severity::Info,
            d,
            "takes values between on and off, so it is kept as a number and not as a switch",
        );
        self.read_general(Some(index), &target, Property::Other(d.name.to_owned()), d)
    }

    /// A property of something that is no node: of what hangs on a node (a light, a camera, a
    /// mesh) it goes to the node, else to the element's own name.
    fn read_other(&mut self, d: &Driven<'a>) -> Result<(), FormatError> {
        let nodes: Vec<(usize, String)> = d
            .element
            .instances
            .iter()
            .filter_map(|n| index_of(self.scene, n).map(|i| (i, n.element.name.to_string())))
            .collect();
        if nodes.is_empty() {
            let name = d.element.name.to_string();
            return self.read_general(None, &name, Property::Other(d.name.to_owned()), d);
        }
        for (index, name) in nodes {
            let plain = Property::Other(d.name.to_owned());
            let property = if self.taken.contains(&(Some(index), String::new(), plain.clone())) {
                Property::Other(format!("{:?}.{}", d.element.type_, d.name))
            } else {
                plain
            };
            self.read_general(Some(index), &name, property, d)?;
        }
        Ok(())
    }

    fn read_general(
        &mut self,
        node: Option<usize>,
        target: &str,
        property: Property,
        d: &Driven<'a>,
    ) -> Result<(), FormatError> {
        let width = width_of(d);
        let prop = ufbx::find_prop(&d.element.props, d.name);
        let kind = match prop.map(|p| p.type_) {
            Some(ufbx::PropType::Color | ufbx::PropType::ColorWithAlpha) if width == 3 => ValueKind::Color(3),
            _ if width == 1 => ValueKind::Scalar,
            _ => ValueKind::Vector(width as u8),
        };
        let boolean = prop.is_some_and(|p| p.type_ == ufbx::PropType::Boolean);
        let rest = static_vec3(d.element, d.name, DVec3::ZERO).to_array()[..width].to_vec();
        let combined = if self.is_connected(d) {
            Combined::Fit("another property is connected to it and drives it")
        } else {
            self.combine(d, width)?
        };
        let (data, rest, enabled) = match combined {
            Combined::Keyed(axes) => {
                let (axes, enabled) = self.apply_mute(d, axes);
                let on = |v: f64| if v == 0.0 || v == 1.0 { v } else { f64::NAN };
                match (boolean && width == 1).then(|| as_switch(&axes[0], on)).flatten() {
                    Some(Axis::Curve(curve)) => {
                        (TrackData::Curve(curve), vec![f64::from(u8::from(rest[0] != 0.0))], enabled)
                    }
                    _ => match <[Axis; 1]>::try_from(axes) {
                        Ok([Axis::Curve(curve)]) => (TrackData::Curve(curve), rest, enabled),
                        Ok(axes) => (TrackData::Axes { kind, axes: axes.to_vec() }, rest, enabled),
                        Err(axes) => (TrackData::Axes { kind, axes }, rest, enabled),
                    },
                }
            }
            Combined::Fit(why) => {
                let anim = &self.stack.anim;
                let mut f = |t: f64| evaluate(anim, d.element, d.name, t);
                let curve = self.fit(d, kind, why, &mut f)?;
                (TrackData::Curve(curve), rest, true)
            }
        };
        self.push(node, target, property, data, rest, enabled);
        Ok(())
    }

    /// Blend shape weights: one track for each node that shows the mesh, a component a channel.
    fn read_weights(&mut self, driven: &[Driven<'a>]) -> Result<(), FormatError> {
        let mut by_channel: HashMap<u32, &Driven<'a>> = HashMap::new();
        for d in driven.iter().filter(|d| d.element.type_ == ufbx::ElementType::BlendChannel) {
            if d.name == "DeformPercent" {
                by_channel.insert(d.element.element_id, d);
            } else {
                let name = d.element.name.to_string();
                self.read_general(None, &name, Property::Other(d.name.to_owned()), d)?;
            }
        }
        let mut used = HashSet::new();
        for mesh in &self.scene.meshes {
            let channels: Vec<&ufbx::BlendChannel> =
                mesh.blend_deformers.iter().flat_map(|b| b.channels.iter().map(|c| c.as_ref())).collect();
            let nodes: Vec<usize> =
                mesh.element.instances.iter().filter_map(|n| index_of(self.scene, n)).collect();
            let animated = channels.iter().any(|c| by_channel.contains_key(&c.element.element_id));
            if !animated || nodes.is_empty() {
                continue;
            }
            let (mut axes, mut rest, mut names) = (Vec::new(), Vec::new(), Vec::new());
            for channel in &channels {
                let still = channel.weight;
                rest.push(if still.is_finite() { still } else { 0.0 });
                names.push(channel.element.name.to_string());
                axes.push(match by_channel.get(&channel.element.element_id) {
                    Some(d) => {
                        used.insert(channel.element.element_id);
                        self.weight_axis(d)?
                    }
                    None => Axis::Constant(rest[rest.len() - 1]),
                });
                if channel.keyframes.count > 1 {
                    let at: Vec<String> =
                        channel.keyframes.iter().map(|k| format!("{}", k.target_weight)).collect();
                    let note = Note::new(
                        Severity::Info,
                        format!("take {:?}, {:?}", &*self.stack.element.name, &*channel.element.name),
                        format!(
                            "goes through {} shapes, at weights {}; the track is the channel's weight",
                            at.len(),
                            at.join(", ")
                        ),
                    );
                    self.notes.push(note);
                }
            }
            let kind = ValueKind::Weights(axes.len() as u32);
            for index in nodes {
                let data = TrackData::Axes { kind, axes: axes.clone() };
                let target = self.joints[index].name.clone();
                let mut binding = Binding::node(index, target.clone(), Property::Weights);
                binding.path = Some(names.join(","));
                self.taken.insert((Some(index), String::new(), Property::Weights));
                self.tracks.push(Track::new(binding, data, rest.clone()));
            }
        }
        for d in driven {
            if by_channel.contains_key(&d.element.element_id)
                && d.name == "DeformPercent"
                && !used.contains(&d.element.element_id)
            {
                let name = d.element.name.to_string();
                self.read_general(None, &name, Property::Other(d.name.to_owned()), d)?;
            }
        }
        Ok(())
    }

    fn weight_axis(&mut self, d: &Driven<'a>) -> Result<Axis, FormatError> {
        match self.combine(d, 1)? {
            Combined::Keyed(axes) => Ok(affine(&axes[0], 0.01, 0.0)),
            Combined::Fit(why) => {
                let anim = &self.stack.anim;
                let mut f = |t: f64| evaluate(anim, d.element, d.name, t).map(|v| v * 0.01);
                Ok(Axis::Curve(self.fit(d, ValueKind::Scalar, why, &mut f)?))
            }
        }
    }

    fn push(
        &mut self,
        node: Option<usize>,
        target: &str,
        property: Property,
        data: TrackData,
        rest: Vec<f64>,
        enabled: bool,
    ) {
        // A node's own name says nothing more; other targets may share theirs.
        let key_name = if node.is_some() { String::new() } else { target.to_owned() };
        let mut path = None;
        if !self.taken.insert((node, key_name.clone(), property.clone())) {
            let mut n = 2;
            while !self.taken.insert((node, format!("{key_name}#{n}"), property.clone())) {
                n += 1;
            }
            path = Some(format!("{target}#{n}.{}", property.name()));
        }
        let binding = Binding { target: target.to_owned(), node, property, path };
        self.tracks.push(Track { binding, data, rest, enabled });
    }

    /// The components of one layer's curve node.
    fn layer_axes(
        &mut self,
        d: &Driven<'a>,
        part: &'a ufbx::AnimProp,
        width: usize,
    ) -> Result<Vec<Axis>, FormatError> {
        let value = &part.anim_value;
        let constants = [value.default_value.x, value.default_value.y, value.default_value.z];
        let transform = d.name.starts_with("Lcl ");
        let still =
            static_vec3(d.element, d.name, if d.name == "Lcl Scaling" { DVec3::ONE } else { DVec3::ZERO });
        let mut axes = Vec::with_capacity(width);
        for c in 0..width {
            let letter = ["X", "Y", "Z"][c];
            let curve = value.curves[c].as_ref().filter(|k| k.keyframes.count > 0);
            let Some(curve) = curve else {
                // A curve node that says nothing of a component leaves it as it stands.
                let said = [format!("d|{letter}"), letter.to_owned()]
                    .iter()
                    .any(|n| ufbx::find_prop(&value.element.props, n).is_some())
                    || value.element.props.props.count == 0 && constants[c] != 0.0;
                let v = if transform && !said { still[c] } else { constants[c] };
                axes.push(Axis::Constant(if v.abs() <= LARGEST { v } else { still[c] }));
                continue;
            };
            let (curve, repairs) = curves::read(curve, self.tick, &mut self.pool)
                .map_err(|e| self.curve_error(d, if width > 1 { letter } else { "" }, &e))?;
            if repairs.any() {
                self.note(Severity::Repaired, d, format!("{letter}: {}", repairs.describe()));
            }
            axes.push(Axis::Curve(curve));
        }
        Ok(axes)
    }

    fn curve_error(&self, d: &Driven<'_>, component: &str, error: &inbetween::CurveError) -> FormatError {
        super::broken(
            self.file.to_owned(),
            format!("{} {component}", self.place(d)).trim_end().to_owned(),
            "finite key times and values of moderate size",
            &error.to_string(),
            "correct the curve in the program that made it and export it again",
        )
    }

    /// Combines the layers of a property, from the lowest up, keeping keys as long as it can.
    fn combine(&mut self, d: &Driven<'a>, width: usize) -> Result<Combined, FormatError> {
        let default = if d.name == "Lcl Scaling" { DVec3::ONE } else { DVec3::ZERO };
        let still = static_vec3(d.element, d.name, default).to_array();
        let mut result: Vec<Axis> = still[..width].iter().map(|v| Axis::Constant(*v)).collect();
        for &(index, part) in &d.parts {
            let layer = &self.stack.layers[index];
            let axes = self.layer_axes(d, part, width)?;
            if index == 0 || !layer.blended {
                result = axes;
                continue;
            }
            let rotation = layer.compose_rotation && d.name == "Lcl Rotation";
            let scale = layer.compose_scale && d.name == "Lcl Scaling";
            let neutral =
                |axes: &[Axis], v: f64| axes.iter().all(|a| matches!(a, Axis::Constant(x) if *x == v));
            if layer.additive && rotation && neutral(&axes, 0.0)
                || layer.additive && scale && neutral(&axes, 1.0)
            {
                continue;
            }
            if layer.weight_is_animated {
                return Ok(Combined::Fit("a layer's weight is animated"));
            }
            let w = layer.weight;
            if w == 0.0 {
                continue;
            }
            if w == 1.0 && !layer.additive {
                result = axes;
                continue;
            }
            if rotation {
                if layer.additive && w == 1.0 && neutral(&result, 0.0) {
                    result = axes;
                    continue;
                }
                return Ok(Combined::Fit("layers compose rotations as turns"));
            }
            if scale {
                if layer.additive && w == 1.0 && neutral(&result, 1.0) {
                    result = axes;
                    continue;
                }
                return Ok(Combined::Fit("layers multiply scales"));
            }
            let (keep, add) = if layer.additive { (1.0, w) } else { (1.0 - w, w) };
            for (r, a) in result.iter_mut().zip(&axes) {
                match sum(&affine(r, keep, 0.0), &affine(a, add, 0.0)) {
                    Some(s) => *r = s,
                    None => {
                        return Ok(Combined::Fit(
                            "two layers have curves that do not add up with their own keys",
                        ));
                    }
                }
            }
        }
        Ok(Combined::Keyed(result))
    }

    /// Key times of everything that takes part in a property, weights of layers included, and the
    /// take's ends where a curve goes on beyond its keys.
    fn breaks(&self, d: &Driven<'_>) -> Vec<f64> {
        let mut times = Vec::new();
        let mut beyond = false;
        let mut add = |curve: &ufbx::AnimCurve| {
            times.extend(curve.keyframes.iter().map(|k| k.time).filter(|t| t.is_finite()));
            let constant = ufbx::ExtrapolationMode::Constant;
            if curve.pre_extrapolation.mode != constant || curve.post_extrapolation.mode != constant {
                beyond = true;
            }
        };
        for (index, part) in &d.parts {
            part.anim_value.curves.iter().flatten().for_each(|c| add(c));
            let layer: &ufbx::AnimLayer = &self.stack.layers[*index];
            if layer.weight_is_animated
                && let Some(weight) = ufbx::find_anim_prop(layer, &layer.element, "Weight")
            {
                weight.anim_value.curves.iter().flatten().for_each(|c| add(c));
            }
        }
        // What drives it from elsewhere: every curve of the take may matter.
        if self.is_connected(d) {
            for value in self.stack.layers.iter().flat_map(|l| l.anim_values.iter()) {
                value.curves.iter().flatten().for_each(|c| add(c));
            }
        }
        let (begin, end) = (self.stack.time_begin, self.stack.time_end);
        if (beyond || times.is_empty()) && begin.is_finite() && end.is_finite() && begin <= end {
            times.push(begin);
            times.push(end);
        }
        if times.is_empty() {
            times.push(0.0);
        }
        times.sort_unstable_by(f64::total_cmp);
        times.dedup();
        times
    }

    /// Muted components stand still. A property all of whose curves are muted keeps them and is
    /// switched off as a whole.
    fn apply_mute(&mut self, d: &Driven<'_>, mut axes: Vec<Axis>) -> (Vec<Axis>, bool) {
        use ufbx::PropFlags as F;
        let Some(prop) = ufbx::find_prop(&d.element.props, d.name) else { return (axes, true) };
        let flags = [F::MUTE_X, F::MUTE_Y, F::MUTE_Z];
        let muted = |c: usize| c < 3 && prop.flags.has_any(flags[c]);
        let driven: Vec<usize> = (0..axes.len()).filter(|&c| axes[c].curve().is_some()).collect();
        if driven.is_empty() || !driven.iter().any(|&c| muted(c)) {
            return (axes, true);
        }
        if driven.iter().all(|&c| muted(c)) {
            self.note(Severity::Info, d, "is muted in the file; the track is kept, switched off");
            return (axes, false);
        }
        let still = static_vec3(d.element, d.name, DVec3::ZERO);
        for c in driven.into_iter().filter(|&c| muted(c)) {
            let same = axes[c].curve().is_some_and(|k| k.values().iter().all(|v| *v == still[c]));
            if !same {
                let keys = axes[c].curve().map_or(0, Curve::len);
                axes[c] = Axis::Constant(still[c]);
                let letter = ["X", "Y", "Z"][c];
                self.note(
                    Severity::Lost,
                    d,
                    format!("{letter} is muted in the file and stands still; its {keys} keys were left out"),
                );
            }
        }
        (axes, true)
    }
}

/// Translation, rotation and scale come first among a node's properties.
fn name_rank(name: &str) -> u8 {
    match name {
        "Lcl Translation" => 0,
        "Lcl Rotation" => 1,
        "Lcl Scaling" => 2,
        _ => 3,
    }
}

/// Numbers in a property: what its value has, or as many as its curve nodes drive.
fn width_of(d: &Driven<'_>) -> usize {
    use ufbx::PropFlags as F;
    let stated = match ufbx::find_prop(&d.element.props, d.name) {
        Some(p) if p.flags.has_any(F::VALUE_VEC3) || p.flags.has_any(F::VALUE_VEC4) => 3,
        Some(p) if p.flags.has_any(F::VALUE_VEC2) => 2,
        _ => 1,
    };
    let driven = d
        .parts
        .iter()
        .map(|(_, p)| (0..3).rev().find(|&c| p.anim_value.curves[c].is_some()).map_or(0, |c| c + 1))
        .max()
        .unwrap_or(0);
    stated.max(driven)
}

fn evaluate(anim: &ufbx::Anim, element: &ufbx::Element, name: &str, time: f64) -> Row {
    let v = ufbx::evaluate_prop(anim, element, name, time).value_vec4;
    [v.x, v.y, v.z, 0.0]
}

/// Three Euler curves in degrees as a rotation.
fn euler(frame: &RotationFrame, axes: Vec<Axis>) -> TrackData {
    let radians: Vec<Axis> = axes.iter().map(|a| affine(a, std::f64::consts::PI / 180.0, 0.0)).collect();
    TrackData::Euler(EulerCurve {
        terms: product_axes(frame.order).map(|name| (name, radians[name as usize].clone())).to_vec(),
        pre: frame.pre,
        post: frame.post,
        between: EulerBetween::Angles,
    })
}

/// `k` times the component, plus `offset`.
fn affine(axis: &Axis, k: f64, offset: f64) -> Axis {
    match axis {
        Axis::Constant(v) => Axis::Constant(v * k + offset),
        axis if k == 1.0 && offset == 0.0 => axis.clone(),
        Axis::Curve(curve) => {
            let mut parts = curve.clone().into_parts();
            for v in &mut parts.values {
                *v = *v * k + offset;
            }
            if let Some(t) = &mut parts.tangents {
                t.leave.iter_mut().chain(&mut t.arrive).for_each(|v| *v *= k);
            }
            Axis::Curve(Curve::new(parts).expect("values of a read curve are far below what overflows"))
        }
    }
}

/// The sum, if it can be written with the keys of the two.
fn sum(a: &Axis, b: &Axis) -> Option<Axis> {
    match (a, b) {
        (Axis::Constant(x), Axis::Constant(y)) => Some(Axis::Constant(x + y)),
        (Axis::Constant(x), c) | (c, Axis::Constant(x)) => Some(affine(c, 1.0, *x)),
        (Axis::Curve(a), Axis::Curve(b)) => sum_curves(a, b).map(Axis::Curve),
    }
}

fn sum_curves(a: &Curve, b: &Curve) -> Option<Curve> {
    let (p, q): (&CurveParts, &CurveParts) = (a.parts(), b.parts());
    let kinds_agree = || (0..a.len().saturating_sub(1)).all(|i| a.span(i) == b.span(i));
    if a.times()[..] != b.times()[..] || !kinds_agree() {
        return sum_smooth(a, b);
    }
    if p.before != q.before || p.after != q.after {
        return None;
    }
    let mut parts = p.clone();
    parts.values.iter_mut().zip(&q.values).for_each(|(x, y)| *x += y);
    match (&mut parts.tangents, &q.tangents) {
        (None, None) => {}
        (Some(t), Some(u)) => {
            if t.leave_dt != u.leave_dt || t.arrive_dt != u.arrive_dt {
                return None;
            }
            t.leave.iter_mut().zip(&u.leave).for_each(|(x, y)| *x += y);
            t.arrive.iter_mut().zip(&u.arrive).for_each(|(x, y)| *x += y);
        }
        _ => return None,
    }
    Curve::new(parts).ok()
}

/// The sum of two curves of straight and Hermite spans, held outside their keys: a piece of a
/// cubic is a cubic, so with the keys of both the sum is exact.
fn sum_smooth(a: &Curve, b: &Curve) -> Option<Curve> {
    let plain = |c: &Curve| {
        let (before, after) = (c.parts().before, c.parts().after);
        before == Extrapolation::Hold
            && after == Extrapolation::Hold
            && (0..c.len() - 1).all(|i| matches!(c.span(i), SpanKind::Linear | SpanKind::Hermite))
    };
    if !plain(a) || !plain(b) {
        return None;
    }
    let mut times: Vec<f64> = a.times().iter().chain(b.times().iter()).copied().collect();
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    let values = times.iter().map(|&t| a.scalar_at(t) + b.scalar_at(t)).collect();
    let leave = times.iter().map(|&t| slope(a, t, true) + slope(b, t, true)).collect();
    let arrive = times.iter().map(|&t| slope(a, t, false) + slope(b, t, false)).collect();
    Curve::hermite(ValueKind::Scalar, times, values, leave, arrive).ok()
}

/// Slope just after (or just before) `time` of a curve of straight and Hermite spans.
fn slope(c: &Curve, time: f64, after: bool) -> f64 {
    let times = c.times();
    let next =
        if after { times.partition_point(|&t| t <= time) } else { times.partition_point(|&t| t < time) };
    if next == 0 || next == times.len() {
        return 0.0;
    }
    let (i, h) = (next - 1, times[next] - times[next - 1]);
    let (v0, v1) = (c.values()[i], c.values()[next]);
    match (&c.parts().tangents, c.span(i)) {
        (Some(t), SpanKind::Hermite) => {
            inbetween::spline::Cubic::hermite(h, v0, v1, t.leave[i], t.arrive[next]).velocity(time - times[i])
        }
        _ => (v1 - v0) / h,
    }
}

/// The component as a switch, if it is plainly on or off at all times; `on` maps a value to 1 or
/// 0, or to NaN where it is neither.
fn as_switch(axis: &Axis, on: impl Fn(f64) -> f64) -> Option<Axis> {
    let curve = match axis {
        Axis::Constant(v) => return on(*v).is_finite().then(|| Axis::Constant(on(*v))),
        Axis::Curve(c) => c,
    };
    let mut parts = curve.clone().into_parts();
    let n = curve.len();
    let constant = curve.values().iter().all(|v| *v == curve.values()[0]);
    let steps = (0..n - 1).all(|i| matches!(curve.span(i), SpanKind::Step | SpanKind::StepNext));
    let flat = constant && (0..n - 1).all(|i| curve.span(i) == SpanKind::Linear || is_flat(curve, i));
    if !(steps || flat) {
        return None;
    }
    parts.kind = ValueKind::Switch;
    parts.spans = if steps && n > 1 {
        let mut kinds: Vec<SpanKind> = (0..n - 1).map(|i| curve.span(i)).collect();
        kinds.push(SpanKind::Step);
        if kinds.iter().all(|k| *k == SpanKind::Step) {
            inbetween::Spans::Uniform(SpanKind::Step)
        } else {
            inbetween::Spans::PerKey(kinds)
        }
    } else {
        inbetween::Spans::Uniform(SpanKind::Step)
    };
    parts.tangents = None;
    for v in &mut parts.values {
        *v = on(*v);
    }
    Curve::new(parts).ok().map(Axis::Curve)
}

/// True if the span is level from end to end.
fn is_flat(curve: &Curve, i: usize) -> bool {
    match (curve.span(i), &curve.parts().tangents) {
        (SpanKind::Step | SpanKind::StepNext | SpanKind::Linear, _) => true,
        (_, Some(t)) => t.leave[i] == 0.0 && t.arrive[i + 1] == 0.0,
        _ => false,
    }
}
