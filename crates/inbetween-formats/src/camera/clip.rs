//! Cameras in clips: a path out of a node's tracks, and a path as a clip.
//!
//! The idea: any reader that gives a clip gives its cameras too. The path's keys are
//! the times at which anything that moves the camera has a key; what the camera does
//! there is taken in the world. The other way round a path becomes a clip whose cubic
//! spans are the path's own, exactly, for its place and field of view; its rotation is
//! sampled as densely as a bound on the angle asks for.

use std::collections::BTreeSet;

use inbetween::camera::{CameraAngles, CameraKey, CameraPath, Channel, PathSpan, Role};
use inbetween::glam::{DQuat, DVec3};
use inbetween::spline::{nearest_turn, quat_conjugate, quat_multiply, slerp};
use inbetween::{
    Binding, Clip, Curve, CurveError, CurveParts, Extrapolation, Joint, LocalPose, ModelPose, NodeKind,
    Property, Skeleton, SpanKind, Spans, Tangents, Track, TrackData, TrackMask, Transform, ValueKind,
};

use super::text::Place;
use super::{CameraFile, CameraFormat, assumed, build, lost, pose_channels, pose_key};
use crate::{Convention, FormatError, Import, LensDriver, Note, Source};

/// The field of view among the properties of a camera node, radians.
const FOV: &str = "camera.yfov";

/// The angle, in radians, by which a sampled rotation may be off between its keys.
const ROTATION_BOUND: f64 = 1e-5;

/// The nodes of an import that carry a camera.
pub fn cameras_of(import: &Import) -> Vec<usize> {
    let joints = import.skeleton.joints();
    let by_kind = (0..joints.len()).filter(|&i| joints[i].kind == NodeKind::Camera);
    by_kind.collect()
}

/// The path of node `node` in clip `clip` of an import (in the house's units), in the
/// world. `format` of the result is that of our own JSON, in which it can be kept.
///
/// # Errors
/// [`FormatError::Broken`] where nothing moves the node.
pub fn path_of_clip(
    import: &Import,
    clip: usize,
    node: usize,
    file: &str,
) -> Result<CameraFile, FormatError> {
    let place = Place::new(file);
    let (motion, skeleton) = (&import.clips[clip], &import.skeleton);
    let name = &skeleton.joints()[node].name;
    let mut notes = Vec::new();
    let moves: BTreeSet<usize> = skeleton.chain(node).into_iter().chain([node]).collect();
    let mut times: Vec<f64> = Vec::new();
    let lens = CameraLens::of(import, node);
    let mut fov_track = None;
    for track in motion.tracks.iter().filter(|t| t.enabled) {
        let is_fov = track.binding.node == Some(node)
            && lens.driver(&track.binding.property).is_some()
            && track.data.kind() == ValueKind::Scalar;
        if is_fov && fov_track.is_none() {
            fov_track = Some(track);
        }
        let places =
            matches!(track.binding.property, Property::Translation | Property::Rotation | Property::Scale);
        if (places && track.binding.node.is_some_and(|n| moves.contains(&n))) || is_fov {
            times.extend(track.data.key_times());
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    if times.is_empty() {
        let found = format!("no track that moves it in clip {:?}", motion.name);
        let advice = "choose another node or clip; `inbetween info` lists them";
        return Err(place.broken_with(format!("node {name:?}"), "a moving camera", found, advice));
    }
    let fbx = import.format == "fbx" && skeleton.joints()[node].kind == NodeKind::Camera;
    if fbx {
        notes.push(assumed(name, "an FBX camera looks along its own +x"));
    }
    let (mut local, mut world, mask) = (LocalPose::default(), ModelPose::default(), TrackMask::all());
    let mut found: Vec<([f64; 3], [f64; 4], Option<f64>)> = Vec::new();
    let mut sheared = false;
    for &time in &times {
        local.sample(motion, skeleton, time, &mask);
        world.update(skeleton, &local);
        let (t, whole) = world.decompose(node);
        sheared |= !whole;
        let mut rotation = t.rotation.to_array();
        if fbx {
            rotation = quat_multiply(
                rotation,
                CameraAngles { yaw: -std::f64::consts::FRAC_PI_2, ..CameraAngles::default() }.rotation(),
            );
        }
        let driven = fov_track.and_then(|track| {
            lens.driver(&track.binding.property).map(|driver| match driver {
                None => track.value_at(time)[0],
                Some(driver) => driver.fov(track.value_at(time)[0]),
            })
        });
        let fov = driven.or(lens.fov);
        found.push((t.translation.to_array(), rotation, fov));
    }
    if sheared {
        notes.push(lost(name, "its parents shear it; only its place and rotation are kept"));
    }
    let with_fov = fov_track.is_some() || lens.fov.is_some();
    if fov_track.is_some_and(|t| t.binding.property.name() != FOV) && lens.fov.is_none() {
        notes.push(assumed(name, "its field of view is taken as the vertical one, in degrees"));
    }
    // Level cameras are kept as angles, so that they stay level between their keys.
    let angles: Vec<CameraAngles> = found.iter().map(|f| CameraAngles::of(f.1)).collect();
    let level = angles.iter().all(|a| a.roll.abs() < 2e-3 && a.pitch.abs() < 1.5);
    let path = if level {
        let mut yaw = angles[0].yaw;
        let keys = times.iter().zip(found).zip(angles).map(|((&time, (position, _, fov)), mut a)| {
            a.yaw = nearest_turn(a.yaw, yaw, std::f64::consts::TAU);
            yaw = a.yaw;
            pose_key(time, position, a, fov)
        });
        build(&place, pose_channels(with_fov), keys.collect())?
    } else {
        let names: &[&str] = if with_fov { &["x", "y", "z", "fov"] } else { &["x", "y", "z"] };
        let keys = times.iter().zip(found).map(|(&time, (position, rotation, fov))| {
            let values = position.into_iter().chain(fov).collect();
            CameraKey { rotation: Some(rotation), ..CameraKey::new(time, values) }
        });
        build(&place, names.iter().map(|n| Channel::new(*n)).collect(), keys.collect())?
    };
    let rate = motion.rate.map(inbetween::FrameRate::as_f64);
    Ok(CameraFile { format: CameraFormat::Json, path, rate, notes })
}

/// What a file says of a camera beside its motion.
struct CameraLens {
    /// Vertical field of view while nothing drives it, radians.
    fov: Option<f64>,
    driver: Option<LensDriver>,
}

impl CameraLens {
    fn of(import: &Import, node: usize) -> Self {
        match &import.source {
            #[cfg(feature = "gltf")]
            Source::Gltf(document) => Self { fov: document.fov(node), driver: None },
            Source::Lenses(lenses) => {
                let lens = lenses.iter().find(|l| l.node == node);
                Self { fov: lens.map(|l| l.fov), driver: lens.map(|l| l.driver) }
            }
            Source::None => Self { fov: None, driver: None },
        }
    }

    /// How a property drives the field of view, if it does; `Some(None)` for one that is the field
    /// of view itself, in radians.
    fn driver(&self, property: &Property) -> Option<Option<LensDriver>> {
        match (property.name(), self.driver) {
            (FOV, _) => Some(None),
            (name, Some(driver)) => (name == driver.property()).then_some(Some(driver)),
            ("FieldOfView", None) => Some(Some(LensDriver::Vertical("FieldOfView"))),
            ("FieldOfViewY", None) => Some(Some(LensDriver::Vertical("FieldOfViewY"))),
            _ => None,
        }
    }
}

/// A path as a clip of one camera node called `name`, in an import that the writers of
/// clips take. Between sampled rotations a slerp is at most 1e-5 rad off.
///
/// # Errors
/// [`FormatError::CannotWrite`] where the path's numbers do not fit a clip.
pub fn to_import(path: &CameraPath, name: &str) -> Result<Import, FormatError> {
    let refused = |what: String| FormatError::CannotWrite {
        format: "a clip",
        what,
        advice: "check the path with `inbetween camera status`".to_owned(),
    };
    let first = path.pose(path.start());
    let rest = Transform {
        translation: DVec3::from_array(first.position),
        rotation: DQuat::from_array(first.rotation),
        scale: DVec3::ONE,
    };
    let mut joint = Joint::new(name, None, rest);
    joint.kind = NodeKind::Camera;
    let mut clip = Clip::new(name, path.start(), path.end()).map_err(|e| refused(e.to_string()))?;
    let bad = |e: CurveError| refused(e.to_string());
    let times = rotation_times(path);
    let place = if path.subject().is_some() {
        let values = times.iter().flat_map(|&t| path.pose(t).position).collect();
        Curve::linear(ValueKind::Vector(3), times.clone(), values).map_err(bad)?
    } else {
        let channels = [Role::X, Role::Y, Role::Z].map(|role| path.role(role));
        exact(path, ValueKind::Vector(3), &channels).map_err(bad)?
    };
    let mut turned: Vec<f64> = times.iter().flat_map(|&t| path.pose(t).rotation).collect();
    inbetween::edit::align_signs(&mut turned);
    let rotation = Curve::linear(ValueKind::Rotation, times, turned).map_err(bad)?;
    let node = |property| Binding::node(0, name, property);
    clip.tracks.push(Track::new(
        node(Property::Translation),
        TrackData::Curve(place),
        first.position.to_vec(),
    ));
    clip.tracks.push(Track::new(
        node(Property::Rotation),
        TrackData::Curve(rotation),
        first.rotation.to_vec(),
    ));
    for (k, channel) in path.channels().iter().enumerate() {
        let property = match channel.role {
            Role::Fov => FOV.to_owned(),
            Role::Other => channel.name.clone(),
            _ => continue,
        };
        let curve = exact(path, ValueKind::Scalar, &[Some(k)]).map_err(bad)?;
        let rest = vec![path.flown_value(0, k)];
        clip.tracks.push(Track::new(node(Property::Other(property)), TrackData::Curve(curve), rest));
    }
    let skeleton = Skeleton::new(vec![joint]).map_err(|e| refused(e.to_string()))?;
    Ok(Import {
        format: "inb",
        skeleton,
        clips: vec![clip],
        notes: Vec::<Note>::new(),
        convention: Convention::HOUSE,
        in_house_units: true,
        source: Source::None,
        decimals: None,
    })
}

/// The path's own spans of these channels (0 where there is none), as a curve.
fn exact(path: &CameraPath, kind: ValueKind, channels: &[Option<usize>]) -> Result<Curve, CurveError> {
    let (n, spans) = (path.len(), path.spans());
    let mut times = path.times().to_vec();
    let mut values = Vec::new();
    let mut tangents = Tangents::default();
    let mut kinds = Vec::new();
    for i in 0..n {
        for k in channels {
            values.push(k.map_or(0.0, |k| path.flown_value(i, k)));
            let before = i.checked_sub(1).filter(|&b| path.span_kind(b) != PathSpan::Cut);
            tangents.arrive.push(k.zip(before).map_or(0.0, |(k, b)| path.span_velocities(b, k).1));
            tangents.leave.push(k.filter(|_| i < spans).map_or(0.0, |k| path.span_velocities(i, k).0));
        }
        let cut = i < spans && path.span_kind(i) == PathSpan::Cut;
        kinds.push(if cut { SpanKind::Step } else { SpanKind::Hermite });
    }
    if path.closing_gap().is_some() {
        // The way back to the first key.
        times.push(path.end());
        let cubic = |k| path.curve().cubic(spans - 1, k);
        let h = path.end() - times[n - 1];
        for k in channels {
            values.push(k.map_or(0.0, |k| cubic(k).value(h)));
            tangents.arrive.push(k.map_or(0.0, |k| path.span_velocities(spans - 1, k).1));
            tangents.leave.push(0.0);
        }
        kinds.push(SpanKind::Hermite);
    }
    Curve::new(CurveParts {
        kind,
        times: times.into(),
        values,
        spans: Spans::PerKey(kinds),
        tangents: Some(Box::new(tangents)),
        before: Extrapolation::Hold,
        after: Extrapolation::Hold,
    })
}

/// Times at which the rotation is kept: the keys', and between them as many as keep a
/// slerp within the bound, looked at in three places of each piece.
fn rotation_times(path: &CameraPath) -> Vec<f64> {
    let mut edges = path.times().to_vec();
    if path.closing_gap().is_some() {
        edges.push(path.end());
    }
    let mut times = vec![edges[0]];
    for (i, pair) in edges.windows(2).enumerate() {
        if path.span_kind(i) == PathSpan::Cut {
            // Held until just before the cut: the nearest time there is.
            times.push(pair[1].next_down().max(pair[0].next_up()));
            if times[times.len() - 1] < pair[1] {
                times.push(pair[1]);
            }
            continue;
        }
        refine(path, pair[0], pair[1], 12, &mut times);
    }
    times.dedup();
    times
}

fn refine(path: &CameraPath, from: f64, to: f64, depth: u32, times: &mut Vec<f64>) {
    let end = if to < path.end() { to.next_down() } else { to };
    let (a, b) = (path.pose(from).rotation, path.pose(end).rotation);
    let off = |share: f64| {
        let [x, y, z, w] =
            quat_multiply(quat_conjugate(slerp(a, b, share)), path.pose(from + share * (to - from)).rotation);
        2.0 * (x * x + y * y + z * z).sqrt().atan2(w.abs())
    };
    let middle = from + 0.5 * (to - from);
    let fits = [0.25, 0.5, 0.75].into_iter().all(|share| off(share) <= ROTATION_BOUND);
    if fits || depth == 0 || middle <= from || middle >= to {
        times.push(to);
        return;
    }
    refine(path, from, middle, depth - 1, times);
    refine(path, middle, to, depth - 1, times);
}
