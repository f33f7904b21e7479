//! Layers: clips laid over each other, from bottom to top, into one value for each property.
//!
//! The rules, in full (also in `docs/layers.md`):
//!
//! 1. A property starts at its rest value. Layers are applied in order, bottom first.
//! 2. A layer reaches a property with `layer weight × mask weight of its target`, 0..1. A layer that
//!    is switched off, or reaches a property with 0, leaves it as the layers below have it.
//! 3. In a layer that blends several clips, each clip that has a playing track for the property
//!    speaks with its share. The share of clips that have none, or have it switched off, goes to
//!    what lies below, as does what is missing where the shares add up to less than 1; shares that
//!    add up to more than 1 are scaled to 1. So no value is ever a blend with nothing.
//! 4. An override layer moves the property from what lies below towards its own value by its reach:
//!    linearly, or for rotations along the shortest way at even speed (slerp). Several rotations
//!    blend as their weighted mean on the sphere, in which neither order nor sign matters.
//! 5. An additive layer adds `reach × difference`; a rotation becomes
//!    `below · slerp(identity, difference, reach)` (the difference is applied in the node's own
//!    frame); a scale is multiplied by `1 + reach × (difference − 1)`.
//! 6. Switches are not blended: the topmost layer that reaches them with at least one half decides;
//!    in a blend the clip with the largest share, the first of equals. Additive layers leave them.

use std::collections::HashMap;
use std::sync::Arc;

use glam::DQuat;

use crate::clip::Clip;
use crate::curve::ValueKind;
use crate::math;
use crate::playback::mean::rotation_mean;
use crate::skeleton::Skeleton;
use crate::track::{Binding, Property, TrackMask};

/// One property that can be driven, with the value it has when nothing drives it.
#[derive(Clone, Debug, PartialEq)]
pub struct StageProperty {
    /// Name of the target.
    pub target: String,
    /// The node, if the target is one.
    pub node: Option<usize>,
    /// Which property of it.
    pub property: Property,
    /// What kind of value.
    pub kind: ValueKind,
    /// The value at rest, as wide as the kind.
    pub rest: Vec<f64>,
    offset: usize,
}

/// All properties that a set of clips can drive on one rig, each with a place for its value.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    properties: Vec<StageProperty>,
    by_node: HashMap<(usize, Property), usize>,
    by_name: HashMap<(String, Property), usize>,
    width: usize,
}

impl Stage {
    /// An empty stage.
    pub fn new() -> Self {
        Self::default()
    }

    /// Translation, rotation and scale of every node of a skeleton.
    pub fn of_skeleton(skeleton: &Skeleton) -> Self {
        let mut stage = Self::new();
        for (node, joint) in skeleton.joints().iter().enumerate() {
            let r = joint.rest;
            let mut add = |property, kind, rest: Vec<f64>| {
                stage.add(&Binding::node(node, joint.name.clone(), property), kind, rest);
            };
            add(Property::Translation, ValueKind::Vector(3), r.translation.to_array().to_vec());
            add(Property::Rotation, ValueKind::Rotation, r.rotation.to_array().to_vec());
            add(Property::Scale, ValueKind::Vector(3), r.scale.to_array().to_vec());
        }
        stage
    }

    /// Adds a property if it is not there yet; gives its index. `rest` is as wide as the kind.
    ///
    /// # Panics
    /// If `rest` is not as wide as the kind.
    pub fn add(&mut self, binding: &Binding, kind: ValueKind, rest: Vec<f64>) -> usize {
        assert_eq!(rest.len(), kind.width(), "one rest value");
        if let Some(index) = self.find(binding) {
            return index;
        }
        let index = self.properties.len();
        match binding.node {
            Some(node) => drop(self.by_node.insert((node, binding.property.clone()), index)),
            None => drop(self.by_name.insert((binding.target.clone(), binding.property.clone()), index)),
        }
        let offset = self.width;
        self.width += rest.len();
        self.properties.push(StageProperty {
            target: binding.target.clone(),
            node: binding.node,
            property: binding.property.clone(),
            kind,
            rest,
            offset,
        });
        index
    }

    /// Adds every property a clip drives, at the rest value its tracks carry.
    pub fn add_clip(&mut self, clip: &Clip) {
        for track in &clip.tracks {
            self.add(&track.binding, track.data.kind(), track.rest.clone());
        }
    }

    fn find(&self, binding: &Binding) -> Option<usize> {
        match binding.node {
            Some(node) => self.by_node.get(&(node, binding.property.clone())).copied(),
            None => self.by_name.get(&(binding.target.clone(), binding.property.clone())).copied(),
        }
    }

    /// The properties, by index.
    pub fn properties(&self) -> &[StageProperty] {
        &self.properties
    }

    /// Ties a clip's tracks to the properties of this stage, once, so that playing looks nothing
    /// up. Tracks of another kind than the property are left out.
    pub fn bind(&self, clip: Arc<Clip>) -> BoundClip {
        let mut track_of = vec![u32::MAX; self.properties.len()];
        for (i, track) in clip.tracks.iter().enumerate() {
            if let Some(p) = self.find(&track.binding)
                && self.properties[p].kind == track.data.kind()
            {
                track_of[p] = i as u32;
            }
        }
        BoundClip { clip, track_of }
    }
}

/// A clip whose tracks are tied to a stage.
#[derive(Clone, Debug)]
pub struct BoundClip {
    clip: Arc<Clip>,
    /// For each property of the stage the track that drives it, or `u32::MAX`.
    track_of: Vec<u32>,
}

impl BoundClip {
    /// The clip.
    pub fn clip(&self) -> &Arc<Clip> {
        &self.clip
    }
}

/// A clip playing in a layer.
#[derive(Clone, Debug)]
pub struct Playing {
    /// Which clip.
    pub clip: BoundClip,
    /// Where in it, seconds on the clip's own clock (see [`crate::Wrap::apply`]).
    pub time: f64,
    /// Its share of the layer, not negative.
    pub share: f64,
    /// Which of its tracks play.
    pub mask: TrackMask,
}

impl Playing {
    /// A clip alone in its layer.
    pub fn new(clip: BoundClip, time: f64) -> Self {
        Self { clip, time, share: 1.0, mask: TrackMask::all() }
    }
}

/// How a layer is laid over what lies below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LayerMode {
    /// Its values take the place of those below.
    #[default]
    Override,
    /// Its values are differences, added to those below.
    Additive,
}

/// Clips, a weight, a mask and a mode.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// What plays in it.
    pub playing: Vec<Playing>,
    /// Override or additive.
    pub mode: LayerMode,
    /// 0 = not at all, 1 = fully.
    pub weight: f64,
    /// A weight 0..1 for each property of the stage (feathered); `None` lets it reach all fully.
    pub mask: Option<Vec<f64>>,
    /// False = as if the layer were not there.
    pub enabled: bool,
}

impl Layer {
    /// A layer of one clip at full weight.
    pub fn of(playing: Playing) -> Self {
        Self { playing: vec![playing], mode: LayerMode::Override, weight: 1.0, mask: None, enabled: true }
    }
}

/// Mask weights for a stage: 1 for the properties of `node` and all below it, falling to 0 over
/// `feather` generations above it (0 = a hard edge).
pub fn mask_from_node(stage: &Stage, skeleton: &Skeleton, node: usize, feather: usize) -> Vec<f64> {
    let above: Vec<usize> = skeleton.chain(node);
    let weight_of = |n: usize| {
        let chain = skeleton.chain(n);
        if chain.contains(&node) {
            return 1.0;
        }
        match above.iter().position(|&a| a == n) {
            Some(k) if k <= feather => 1.0 - k as f64 / (feather as f64 + 1.0),
            _ => 0.0,
        }
    };
    stage.properties.iter().map(|p| p.node.map_or(0.0, weight_of)).collect()
}

/// Values of all properties of a stage, and the scratch space to compute them.
#[derive(Clone, Debug, Default)]
pub struct StageValues {
    values: Vec<f64>,
    inputs: Vec<f64>,
    shares: Vec<f64>,
}

impl StageValues {
    /// The value of one property.
    pub fn get(&self, stage: &Stage, property: usize) -> &[f64] {
        let p = &stage.properties[property];
        &self.values[p.offset..p.offset + p.kind.width()]
    }

    /// Evaluates layers, bottom first, by the rules of this module. No allocation once grown.
    pub fn evaluate(&mut self, stage: &Stage, layers: &[Layer]) {
        self.values.clear();
        for p in &stage.properties {
            self.values.extend_from_slice(&p.rest);
        }
        for layer in layers.iter().filter(|l| l.enabled && l.weight > 0.0) {
            for (index, p) in stage.properties.iter().enumerate() {
                let mask = layer.mask.as_ref().map_or(1.0, |m| m.get(index).copied().unwrap_or(0.0));
                let reach = (layer.weight * mask).clamp(0.0, 1.0);
                if reach > 0.0 {
                    self.lay(p, index, layer, reach);
                }
            }
        }
    }

    /// Lays one layer over one property.
    fn lay(&mut self, p: &StageProperty, index: usize, layer: &Layer, reach: f64) {
        let w = p.kind.width();
        self.inputs.clear();
        self.shares.clear();
        let mut total = 0.0;
        for playing in &layer.playing {
            let track = playing.clip.track_of[index];
            let share = playing.share.max(0.0);
            total += share;
            if track == u32::MAX || share == 0.0 || !playing.mask.is_on(track as usize) {
                continue;
            }
            let track = &playing.clip.clip.tracks[track as usize];
            if !track.enabled {
                continue;
            }
            let at = self.inputs.len();
            self.inputs.resize(at + w, 0.0);
            track.data.eval(playing.time, &mut self.inputs[at..]);
            self.shares.push(share);
        }
        if self.shares.is_empty() {
            return;
        }
        if total > 1.0 {
            for s in &mut self.shares {
                *s /= total;
            }
        }
        let below = &mut self.values[p.offset..p.offset + w];
        match (p.kind, layer.mode) {
            (ValueKind::Switch, LayerMode::Additive) => {}
            (ValueKind::Switch, LayerMode::Override) => {
                let heard: f64 = self.shares.iter().sum();
                if heard * reach >= 0.5 {
                    let first_largest = (0..self.shares.len())
                        .reduce(|a, b| if self.shares[b] > self.shares[a] { b } else { a });
                    below[0] = self.inputs[first_largest.unwrap_or(0)];
                }
            }
            (ValueKind::Rotation, mode) => {
                let heard: f64 = self.shares.iter().sum();
                let mean = rotation_mean(&self.inputs, &self.shares);
                let under = DQuat::from_slice(below);
                let q = match mode {
                    LayerMode::Override => math::slerp(under, mean, heard * reach),
                    LayerMode::Additive => under * math::slerp(DQuat::IDENTITY, mean, heard * reach),
                };
                let q = math::unit(q).unwrap_or(under);
                // Reached fully, the value is the clip's own, sign and all.
                q.write_to_slice(below);
            }
            (_, LayerMode::Override) => {
                for c in 0..w {
                    let moved: f64 = self
                        .shares
                        .iter()
                        .enumerate()
                        .map(|(k, s)| s * (self.inputs[k * w + c] - below[c]))
                        .sum();
                    below[c] = if reach == 1.0 && self.shares == [1.0] {
                        self.inputs[c]
                    } else {
                        below[c] + reach * moved
                    };
                }
            }
            (_, LayerMode::Additive) => {
                let scale = p.property == Property::Scale;
                for c in 0..w {
                    for (k, s) in self.shares.iter().enumerate() {
                        let difference = self.inputs[k * w + c];
                        if scale {
                            below[c] *= 1.0 + reach * s * (difference - 1.0);
                        } else {
                            below[c] += reach * s * difference;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::track::{Track, TrackData};

    fn clip(tracks: &[(&str, Property, ValueKind, &[f64])]) -> Arc<Clip> {
        let mut clip = Clip::new("c", 0.0, 0.0).unwrap();
        for (target, property, kind, value) in tracks {
            let binding =
                Binding { target: (*target).into(), node: None, property: property.clone(), path: None };
            let curve = Curve::step(*kind, vec![0.0], value.to_vec()).unwrap();
            clip.tracks.push(Track::new(binding, TrackData::Curve(curve), value.to_vec()));
        }
        Arc::new(clip)
    }

    fn lamp(rest: f64) -> (Stage, Property) {
        let property = Property::Other("intensity".into());
        let mut stage = Stage::new();
        let binding = Binding { target: "lamp".into(), node: None, property: property.clone(), path: None };
        stage.add(&binding, ValueKind::Scalar, vec![rest]);
        (stage, property)
    }

    #[test]
    fn the_share_of_a_clip_without_the_track_goes_to_what_lies_below() {
        let (stage, intensity) = lamp(2.0);
        let has = stage.bind(clip(&[("lamp", intensity, ValueKind::Scalar, &[10.0])]));
        let has_not = stage.bind(clip(&[]));
        let mut layer = Layer::of(Playing::new(has, 0.0));
        layer.playing.push(Playing::new(has_not, 0.0));
        layer.playing[0].share = 0.5;
        layer.playing[1].share = 0.5;
        let mut values = StageValues::default();
        values.evaluate(&stage, &[layer]);
        assert_eq!(values.get(&stage, 0), [6.0]);
    }

    #[test]
    fn a_switch_is_on_or_off_and_never_between() {
        let mut stage = Stage::new();
        let on = clip(&[("lamp", Property::Visible, ValueKind::Switch, &[1.0])]);
        stage.add(&on.tracks[0].binding, ValueKind::Switch, vec![0.0]);
        let mut layer = Layer::of(Playing::new(stage.bind(on), 0.0));
        let mut values = StageValues::default();
        for (weight, expected) in [(0.2, 0.0), (0.49, 0.0), (0.5, 1.0), (1.0, 1.0)] {
            layer.weight = weight;
            values.evaluate(&stage, std::slice::from_ref(&layer));
            assert_eq!(values.get(&stage, 0), [expected]);
        }
    }

    #[test]
    fn players_that_share_a_clip_do_not_change_each_other() {
        let (stage, intensity) = lamp(0.0);
        let shared = stage.bind(clip(&[("lamp", intensity, ValueKind::Scalar, &[10.0])]));
        let (mut a, b) = (Layer::of(Playing::new(shared.clone(), 0.0)), Layer::of(Playing::new(shared, 0.0)));
        a.weight = 0.5;
        a.playing[0].mask.set(0, false);
        let (mut va, mut vb) = (StageValues::default(), StageValues::default());
        va.evaluate(&stage, &[a]);
        vb.evaluate(&stage, &[b]);
        assert_eq!((va.get(&stage, 0)[0], vb.get(&stage, 0)[0]), (0.0, 10.0));
    }

    #[test]
    fn blended_rotations_do_not_depend_on_order_or_sign() {
        let mut stage = Stage::new();
        let q = |v: glam::DVec3, a: f64| math::axis_angle(v, a).to_array();
        let rotations = [q(glam::DVec3::X, 0.7), q(glam::DVec3::Y, -1.1), q(glam::DVec3::Z, 2.0).map(|v| -v)];
        let clips: Vec<_> =
            rotations.iter().map(|r| clip(&[("b", Property::Rotation, ValueKind::Rotation, r)])).collect();
        stage.add(&clips[0].tracks[0].binding, ValueKind::Rotation, vec![0.0, 0.0, 0.0, 1.0]);
        let shares = [0.2, 0.5, 0.3];
        let mut first = None;
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
            let playing = order.iter().map(|&i| {
                let mut p = Playing::new(stage.bind(Arc::clone(&clips[i])), 0.0);
                p.share = shares[i];
                p
            });
            let mut layer = Layer::of(Playing::new(stage.bind(Arc::clone(&clips[0])), 0.0));
            layer.playing = playing.collect();
            let mut values = StageValues::default();
            values.evaluate(&stage, &[layer]);
            let q = DQuat::from_slice(values.get(&stage, 0));
            let expected = *first.get_or_insert(q);
            assert!(math::angle_between(q, expected) < 1e-9);
        }
    }
}
