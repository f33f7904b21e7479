//! Two versions of a clip side by side: where in the world they lie farthest apart, and which
//! track is the cause.
//!
//! This is the judge, not a reducer's own measure: it evaluates both clips from their curves at
//! every key time of either and every midpoint between neighbouring ones, takes both poses into
//! the world, and compares node by node. At the time of a step it looks a hair before and a hair
//! after, because files round times to 32 bits and exactly at a jump either side is right.

use glam::DVec3;

use crate::clip::Clip;
use crate::curve::Curve;
use crate::math;
use crate::pose::{LocalPose, ModelPose};
use crate::sample::only_steps;
use crate::shell::{Shell, difference, far, farthest_point, shell_offsets};
use crate::skeleton::{Skeleton, Transform};
use crate::time::hair;
use crate::track::{Property, Track, TrackMask};

/// The farthest apart a node's points are.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDifference {
    /// Index of the node in the first skeleton.
    pub node: usize,
    /// Metres in the world.
    pub distance: f64,
    /// When, seconds.
    pub time: f64,
}

/// In what a track's difference is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Metres, of a translation.
    Metres,
    /// Radians between two rotations.
    Radians,
    /// The property's own unit: length of the difference of the rows.
    Own,
}

/// The farthest apart a property is in the two clips.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackDifference {
    /// Name of the target.
    pub target: String,
    /// Index of the node in the first skeleton, if it is one.
    pub node: Option<usize>,
    /// Which property.
    pub property: Property,
    /// Index of the track in the first clip; `None` if it is only in the second.
    pub first: Option<usize>,
    /// Index of the track in the second clip; `None` if it is only in the first.
    pub second: Option<usize>,
    /// Size of the largest difference.
    pub size: f64,
    /// In what.
    pub measure: Measure,
    /// When, seconds.
    pub time: f64,
    /// True if the track only steps, so that any difference at all counts.
    pub stepped: bool,
}

/// What [`compare`] found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// For each node of the first skeleton that the second has too, its largest distance.
    pub nodes: Vec<NodeDifference>,
    /// For each property that either clip drives, its largest difference.
    pub tracks: Vec<TrackDifference>,
    /// Nodes of the first skeleton that the second does not have.
    pub missing_nodes: Vec<usize>,
    /// How many times were looked at.
    pub times: usize,
}

impl Comparison {
    /// The node that is farthest off, if there are nodes.
    pub fn worst_node(&self) -> Option<&NodeDifference> {
        // The first of equals: deeper nodes often share their parent's error.
        self.nodes.iter().fold(None, |worst, n| match worst {
            Some(w) if n.distance <= w.distance => Some(w),
            _ => Some(n),
        })
    }

    /// The largest difference of a property, in the given measure.
    pub fn worst_track(&self, measure: Measure) -> Option<&TrackDifference> {
        self.tracks.iter().filter(|t| t.measure == measure).fold(None, |worst, t| match worst {
            Some(w) if t.size <= w.size => Some(w),
            _ => Some(t),
        })
    }
}

/// The times at which clips are judged: their ends, the key times between and the midpoints between
/// neighbours; for a step, a hair before and after in place of the time itself. Keys outside a
/// clip's range never play and are left out.
pub fn judged_times(clips: &[&Clip]) -> Vec<f64> {
    let inside = |c: &Clip| {
        let (start, end) = (c.start(), c.end());
        let mut keys = c.key_times();
        keys.retain(|t| (start..=end).contains(t));
        keys.extend([start, end]);
        keys
    };
    let mut keys: Vec<f64> = clips.iter().flat_map(|c| inside(c)).collect();
    keys.sort_unstable_by(f64::total_cmp);
    keys.dedup();
    // Key times that differ only by having been rounded to 32 bits are one.
    keys.dedup_by(|b, a| *b - *a <= hair(*a));
    let mut jumps: Vec<f64> = clips
        .iter()
        .flat_map(|c| c.tracks.iter().flat_map(|t| t.data.curves()))
        .flat_map(Curve::jump_times)
        .collect();
    jumps.sort_unstable_by(f64::total_cmp);
    let is_jump = |t: f64| {
        let i = jumps.partition_point(|&j| j < t - hair(t));
        jumps.get(i).is_some_and(|&j| (j - t).abs() <= hair(t))
    };
    let mut times = Vec::with_capacity(2 * keys.len() + 1);
    for (i, &t) in keys.iter().enumerate() {
        if i > 0 {
            times.push(0.5 * (keys[i - 1] + t));
        }
        if is_jump(t) {
            // Nothing plays before the first key.
            times.push(if i > 0 { t - 2.0 * hair(t) } else { t });
            times.push(t + 2.0 * hair(t));
        } else {
            times.push(t);
        }
    }
    times
}

/// For each node of `a` the node of `b` that it is: of the same number if all names agree, else the
/// same occurrence of its name.
pub fn match_nodes(a: &Skeleton, b: &Skeleton) -> Vec<Option<usize>> {
    let (ja, jb) = (a.joints(), b.joints());
    if ja.len() <= jb.len() && ja.iter().zip(jb).all(|(x, y)| x.name == y.name) {
        return (0..ja.len()).map(Some).collect();
    }
    let mut by_name = std::collections::BTreeMap::<&str, Vec<usize>>::new();
    for (i, joint) in b.joints().iter().enumerate() {
        by_name.entry(&joint.name).or_default().push(i);
    }
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    a.joints()
        .iter()
        .map(|joint| {
            let nth = seen.entry(&joint.name).or_default();
            *nth += 1;
            by_name.get(joint.name.as_str()).and_then(|found| found.get(*nth - 1)).copied()
        })
        .collect()
}

/// A property of both clips that is followed through time.
struct Followed {
    found: TrackDifference,
    /// Index of the node in the second skeleton.
    other_node: Option<usize>,
    rest: Vec<f64>,
}

/// Where node `node` of the first skeleton is in the world in both versions of a clip, and how far
/// apart its points are: (first, second, distance in metres) at each of `times`.
///
/// `None` if the second skeleton does not have the node.
pub fn follow_node(
    (a, skeleton_a): (&Clip, &Skeleton),
    (b, skeleton_b): (&Clip, &Skeleton),
    shell: Shell,
    node: usize,
    times: &[f64],
) -> Option<Vec<(DVec3, DVec3, f64)>> {
    let other = *match_nodes(skeleton_a, skeleton_b).get(node)?;
    let other = other?;
    let reach = shell_offsets(skeleton_a, shell)[node];
    let at = |time: f64| {
        let mask = TrackMask::all();
        let pose = |clip, skeleton| ModelPose::of(skeleton, &LocalPose::of_clip(clip, skeleton, time, &mask));
        let (ma, mb) = (pose(a, skeleton_a).joints[node], pose(b, skeleton_b).joints[other]);
        (ma.translation, mb.translation, farthest_point(&ma, &mb, reach).0)
    };
    Some(times.iter().map(|&t| at(t)).collect())
}

/// Compares two versions of a clip on their skeletons, each on its own clock.
///
/// Looks at every key time of either clip and every midpoint (see the [module](self)); a property
/// that one clip does not drive stands at rest there.
pub fn compare(
    (a, skeleton_a): (&Clip, &Skeleton),
    (b, skeleton_b): (&Clip, &Skeleton),
    shell: Shell,
) -> Comparison {
    compare_at((a, skeleton_a), (b, skeleton_b), shell, &judged_times(&[a, b]))
}

/// Like [`compare`], at the given times.
pub fn compare_at(
    (a, skeleton_a): (&Clip, &Skeleton),
    (b, skeleton_b): (&Clip, &Skeleton),
    shell: Shell,
    times: &[f64],
) -> Comparison {
    let matched = match_nodes(skeleton_a, skeleton_b);
    let mut followed = follow(a, b, skeleton_a, &matched);
    let mut nodes: Vec<NodeDifference> = (0..skeleton_a.len())
        .filter(|&n| matched[n].is_some())
        .map(|node| NodeDifference { node, distance: 0.0, time: times.first().copied().unwrap_or(0.0) })
        .collect();
    let offsets = shell_offsets(skeleton_a, shell);
    let mask = TrackMask::all();
    let (mut local_a, mut local_b) = (LocalPose::default(), LocalPose::default());
    let (mut world_a, mut world_b) = (ModelPose::default(), ModelPose::default());
    for &time in times {
        local_a.sample(a, skeleton_a, time, &mask);
        local_b.sample(b, skeleton_b, time, &mask);
        world_a.update(skeleton_a, &local_a);
        world_b.update(skeleton_b, &local_b);
        for n in &mut nodes {
            let (ma, mb) = (&world_a.joints[n.node], &world_b.joints[matched[n.node].expect("matched")]);
            let (distance, _) = farthest_point(ma, mb, offsets[n.node]);
            if distance > n.distance {
                (n.distance, n.time) = (distance, time);
            }
        }
        for f in &mut followed {
            let size = f.difference(a, b, &local_a, &local_b, time);
            if size > f.found.size {
                (f.found.size, f.found.time) = (size, time);
            }
        }
    }
    Comparison {
        nodes,
        tracks: followed.into_iter().map(|f| f.found).collect(),
        missing_nodes: (0..skeleton_a.len()).filter(|&n| matched[n].is_none()).collect(),
        times: times.len(),
    }
}

/// The properties either clip drives, matched.
fn follow(a: &Clip, b: &Clip, skeleton_a: &Skeleton, matched: &[Option<usize>]) -> Vec<Followed> {
    let back = |node_b: usize| matched.iter().position(|m| *m == Some(node_b));
    let same = |ta: &Track, tb: &Track| {
        ta.binding.property == tb.binding.property
            && match (ta.binding.node, tb.binding.node) {
                (Some(na), Some(nb)) => matched.get(na).copied().flatten() == Some(nb),
                (None, None) => {
                    (ta.binding.path.is_some() && ta.binding.path == tb.binding.path)
                        || (ta.binding.target == tb.binding.target
                            && (ta.binding.path.is_none() || tb.binding.path.is_none()))
                }
                _ => false,
            }
    };
    let mut taken = vec![false; b.tracks.len()];
    let mut followed = Vec::new();
    for (i, track) in a.tracks.iter().enumerate().filter(|(_, t)| t.enabled) {
        let second =
            (0..b.tracks.len()).find(|&k| !taken[k] && b.tracks[k].enabled && same(track, &b.tracks[k]));
        if let Some(k) = second {
            taken[k] = true;
        }
        let node = track.binding.node;
        let stepped = only_steps(&track.data) && second.is_none_or(|k| only_steps(&b.tracks[k].data));
        followed.push(Followed {
            found: difference_of(track, node, Some(i), second, stepped),
            other_node: node.and_then(|n| matched.get(n).copied().flatten()),
            rest: track.rest.clone(),
        });
    }
    for (k, track) in b.tracks.iter().enumerate().filter(|(k, t)| t.enabled && !taken[*k]) {
        let node = track.binding.node.and_then(back).filter(|&n| n < skeleton_a.len());
        followed.push(Followed {
            found: difference_of(track, node, None, Some(k), only_steps(&track.data)),
            other_node: track.binding.node,
            rest: track.rest.clone(),
        });
    }
    followed
}

fn difference_of(
    track: &Track,
    node: Option<usize>,
    first: Option<usize>,
    second: Option<usize>,
    stepped: bool,
) -> TrackDifference {
    let measure = match track.binding.property {
        Property::Translation if track.binding.node.is_some() => Measure::Metres,
        Property::Rotation => Measure::Radians,
        _ => Measure::Own,
    };
    TrackDifference {
        target: track.binding.target.clone(),
        node,
        property: track.binding.property.clone(),
        first,
        second,
        size: 0.0,
        measure,
        time: 0.0,
        stepped,
    }
}

impl Followed {
    fn difference(&self, a: &Clip, b: &Clip, local_a: &LocalPose, local_b: &LocalPose, time: f64) -> f64 {
        let trs = matches!(self.found.property, Property::Translation | Property::Rotation | Property::Scale);
        if let (true, Some(na), Some(nb)) = (trs, self.found.node, self.other_node) {
            // From the poses, in which pivots are folded the same way in both.
            return transform_difference(&self.found.property, &local_a.joints[na], &local_b.joints[nb]);
        }
        let value = |clip: &Clip, track: Option<usize>| match track {
            Some(i) => clip.tracks[i].value_at(time),
            None => self.rest.clone(),
        };
        let (va, vb) = (value(a, self.found.first), value(b, self.found.second));
        difference(self.found.property == Property::Rotation && va.len() == 4, &va, &vb)
    }
}

fn transform_difference(property: &Property, a: &Transform, b: &Transform) -> f64 {
    far(match property {
        Property::Translation => (a.translation - b.translation).length(),
        Property::Scale => (a.scale - b.scale).length(),
        _ => math::angle_between(a.rotation.normalize(), b.rotation.normalize()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{Curve, ValueKind};
    use crate::math::axis_angle;
    use crate::skeleton::Joint;
    use crate::track::Binding;
    use crate::track::TrackData;

    /// A hip with a foot 1 m below it that turns to `angles` radians about x at 0, 1 and 2 s.
    fn leg(angles: [f64; 3]) -> (Clip, Skeleton) {
        let foot = Transform { translation: DVec3::NEG_Y, ..Transform::IDENTITY };
        let joints = vec![Joint::new("hip", None, Transform::IDENTITY), Joint::new("foot", Some(0), foot)];
        let values = angles.iter().flat_map(|a| axis_angle(DVec3::X, *a).to_array()).collect();
        let curve = Curve::linear(ValueKind::Rotation, vec![0.0, 1.0, 2.0], values).unwrap();
        let mut clip = Clip::new("kick", 0.0, 2.0).unwrap();
        let rest = vec![0.0, 0.0, 0.0, 1.0];
        clip.tracks.push(Track::new(
            Binding::node(0, "hip", Property::Rotation),
            TrackData::Curve(curve),
            rest,
        ));
        (clip, Skeleton::new(joints).unwrap())
    }

    #[test]
    fn a_turned_hip_shows_as_a_distance_at_the_foot() {
        let ((a, sa), (b, sb)) = (leg([0.0, 0.5, 0.0]), leg([0.0, 0.6, 0.0]));
        let found = compare((&a, &sa), (&b, &sb), Shell::Fixed(0.0));
        let worst = found.worst_node().unwrap();
        assert_eq!((worst.node, worst.time), (1, 1.0));
        assert!((worst.distance - 2.0 * (0.05f64).sin()).abs() < 1e-12);
        let track = found.worst_track(Measure::Radians).unwrap();
        assert!((track.size - 0.1).abs() < 1e-12 && track.time == 1.0);
        // Points 3 cm below the origin of the foot's parent space reach farther than the foot.
        let shelled = compare((&a, &sa), (&b, &sb), Shell::Fixed(0.03));
        assert!(shelled.worst_node().unwrap().distance > worst.distance);
    }

    #[test]
    fn a_track_that_one_clip_lacks_stands_at_rest_there() {
        let ((a, sa), (mut b, sb)) = (leg([0.0, 0.5, 0.0]), leg([0.0, 0.5, 0.0]));
        assert_eq!(compare((&a, &sa), (&b, &sb), Shell::Fixed(0.03)).worst_node().unwrap().distance, 0.0);
        b.tracks.clear();
        let found = compare((&a, &sa), (&b, &sb), Shell::Fixed(0.0));
        assert!((found.tracks[0].size - 0.5).abs() < 1e-12 && found.tracks[0].second.is_none());
        let other_way = compare((&b, &sb), (&a, &sa), Shell::Fixed(0.0));
        assert!((other_way.tracks[0].size - 0.5).abs() < 1e-12 && other_way.tracks[0].first.is_none());
    }

    #[test]
    fn a_step_whose_time_was_rounded_is_the_same_step() {
        let switch = |t: f64| {
            let curve = Curve::step(ValueKind::Switch, vec![0.0, t], vec![0.0, 1.0]).unwrap();
            let mut clip = Clip::new("blink", 0.0, 3.0).unwrap();
            let binding =
                Binding { target: "lamp".into(), node: None, property: Property::Visible, path: None };
            clip.tracks.push(Track::new(binding, TrackData::Curve(curve), vec![0.0]));
            clip
        };
        let none = Skeleton::default();
        let (a, rounded, late) = (switch(7.0 / 3.0), switch(f64::from(7.0f32 / 3.0)), switch(2.4));
        let size = |b: &Clip| compare((&a, &none), (b, &none), Shell::Fixed(0.0)).tracks[0].size;
        assert_eq!(size(&rounded), 0.0);
        assert_eq!(size(&late), 1.0);
    }

    #[test]
    fn nodes_are_found_again_by_name_where_numbers_differ() {
        let skeleton = |names: &[&str]| {
            Skeleton::new(names.iter().map(|n| Joint::new(*n, None, Transform::IDENTITY)).collect()).unwrap()
        };
        let (a, b) = (skeleton(&["x", "x", "y"]), skeleton(&["root", "x", "y", "x"]));
        assert_eq!(match_nodes(&a, &b), [Some(1), Some(3), Some(2)]);
    }
}
