//! How far a clip is from the one it was made of: in the world for what moves nodes, in its own unit for
//! everything else, and exactly for steps.
//!
//! The world error is the largest distance, over all nodes and all check times, between where a point is under
//! the source and where it is under the result. The points of a node are its origin and one along each of its
//! three axes, a [shell](Shell) away. The check times are every key time of any source
//! track and every midpoint between neighbours, both within a track and among all.
//!
//! This is a judge and shares nothing with the reducer but the model: it samples both clips at each time, poses
//! the skeleton twice and compares. It stops at those times; between them it says nothing. For straight curves
//! whose keys are at key times of the source the largest difference of a single track is at one of them.

use crate::clip::Clip;
use crate::curve::{Curve, ValueKind};
use crate::pose::{LocalPose, ModelPose};
use crate::reduce::steps;
use crate::sample::only_steps;
use crate::shell::{difference, farthest_point};
use crate::skeleton::Skeleton;
use crate::time::hair;
use crate::track::{Binding, Property, Track, TrackData, TrackMask};

pub use crate::shell::{Point, SHELL_M, Shell, shell_offsets};

/// The worst place in the world.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldError {
    /// Metres.
    pub value: f64,
    /// The node.
    pub node: usize,
    /// Its name.
    pub target: String,
    /// Seconds on the clip's own clock.
    pub time: f64,
    /// Which of its points.
    pub point: Point,
}

/// The unit an error of a track is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Metres, for translations.
    Metre,
    /// Radians, for rotations.
    Radian,
    /// The track's own.
    Own,
}

impl Unit {
    /// `m`, `rad` or nothing.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Metre => "m",
            Self::Radian => "rad",
            Self::Own => "",
        }
    }
}

/// The largest error of one track in its own unit: the length of a difference, or an angle.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackError {
    /// Index of the track in the source.
    pub track: usize,
    /// What it drives.
    pub target: String,
    /// Which property.
    pub property: String,
    /// How far off, in `unit`.
    pub value: f64,
    /// The unit.
    pub unit: Unit,
    /// Seconds.
    pub time: f64,
    /// True if it moves a node, so that the world error covers it.
    pub moves_node: bool,
    /// True if the source is stepped; then any error is one too many.
    pub stepped: bool,
    /// True if the result has no such track and the source's rest value was taken instead.
    pub missing: bool,
}

/// What [`measure`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The worst place in the world; `None` if there are no nodes or no times.
    pub world: Option<WorldError>,
    /// The largest error of each node, metres, by node.
    pub nodes: Vec<f64>,
    /// The largest error of each source track, by track.
    pub tracks: Vec<TrackError>,
    /// Number of times that were looked at.
    pub times: usize,
}

impl Measured {
    /// The largest world error in metres, 0 where there is none.
    pub fn world_error(&self) -> f64 {
        self.world.as_ref().map_or(0.0, |w| w.value)
    }

    /// Stepped tracks whose values differ by more than storing them in 32 bits explains.
    pub fn broken_steps(&self) -> impl Iterator<Item = &TrackError> {
        self.tracks.iter().filter(|t| t.stepped && t.value > 1e-6)
    }
}

/// The times at which a result is compared with `source`: every key time of any track, the midpoints between
/// neighbours of all of them, and those between neighbours of each track. Increasing, each once; the clip's
/// start where it has no keys.
pub fn check_times(source: &Clip) -> Vec<f64> {
    let keys = source.key_times();
    let mut times = keys.clone();
    let middle = |t: &[f64]| t[0] + (t[1] - t[0]) / 2.0;
    times.extend(keys.windows(2).map(middle));
    for track in &source.tracks {
        times.extend(track.data.key_times().windows(2).map(middle));
    }
    if times.is_empty() {
        times.push(source.start());
    }
    times.sort_unstable_by(f64::total_cmp);
    // A midpoint that rounds to within a nanosecond of a key adds nothing; the key must stay.
    let mut kept: Vec<f64> = Vec::with_capacity(times.len());
    let is_key = |t: f64| keys.binary_search_by(|k| k.total_cmp(&t)).is_ok();
    for t in times {
        match kept.last().copied() {
            Some(last) if t - last < 1e-9 => {
                if is_key(t) && !is_key(last) {
                    kept.pop();
                    kept.push(t);
                } else if is_key(t) && t > last {
                    kept.push(t);
                }
            }
            _ => kept.push(t),
        }
    }
    kept
}

/// The times just before and just behind the jumps of tracks that move nodes, where a result is judged as well:
/// other tracks do not jump, so they are seen there under two poses. Twice as far off as rounding to 32 bits
/// may move a time; never before a curve's first key. In no order.
pub(crate) fn beside_jumps(clip: &Clip) -> Vec<f64> {
    let moving = clip.tracks.iter().filter(|t| moves_node(&t.binding));
    let jumps = moving.flat_map(|t| t.data.curves()).flat_map(Curve::jump_times);
    let mut times: Vec<f64> = jumps.flat_map(|t| [t - 2.0 * hair(t), t + 2.0 * hair(t)]).collect();
    let start = clip.key_times().first().copied().unwrap_or(clip.start());
    times.retain(|t| *t >= start);
    times
}

/// Compares `result` with `source` on the same skeleton at every check time of the source.
///
/// Steps that were baked into `source` are taken for the steps they were (see
/// [`baked_steps`](steps::baked_steps)) where `restore_steps` is set, as the reducer does.
///
/// Tracks are matched by node and property, or by target, property and path. Cost: two poses of the skeleton
/// and one value of each track per time.
///
/// ```
/// use inbetween::metric::{Shell, measure};
/// use inbetween::{Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind};
///
/// let skeleton = Skeleton::new(vec![Joint::new("ball", None, Transform::IDENTITY)])?;
/// let moved = |height: f64| -> Result<Clip, Box<dyn std::error::Error>> {
///     let curve = Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 0.0, height, 0.0])?;
///     let mut clip = Clip::new("rise", 0.0, 1.0)?;
///     let binding = Binding::node(0, "ball", Property::Translation);
///     clip.tracks.push(Track::new(binding, TrackData::Curve(curve), vec![0.0; 3]));
///     Ok(clip)
/// };
/// let found = measure(&moved(2.0)?, &moved(2.5)?, &skeleton, Shell::default(), true);
/// assert_eq!(found.world_error(), 0.5);
/// assert_eq!(found.world.unwrap().time, 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn measure(
    source: &Clip,
    result: &Clip,
    skeleton: &Skeleton,
    shell: Shell,
    restore_steps: bool,
) -> Measured {
    let mut times = check_times(source);
    times.extend(if restore_steps { beside_jumps(&steps::restore(source).0) } else { beside_jumps(source) });
    times.sort_unstable_by(f64::total_cmp);
    times.dedup();
    measure_at(source, result, skeleton, shell, restore_steps, &times)
}

/// As [`measure`], at the given times.
pub fn measure_at(
    source: &Clip,
    result: &Clip,
    skeleton: &Skeleton,
    shell: Shell,
    restore_steps: bool,
    times: &[f64],
) -> Measured {
    let restored;
    let source = if restore_steps {
        restored = steps::restore(source).0;
        &restored
    } else {
        source
    };
    let offsets = shell_offsets(skeleton, shell);
    let mask = TrackMask::all();
    let mut nodes = vec![0.0; skeleton.len()];
    let mut world: Option<WorldError> = None;
    let (mut local_a, mut local_b) = (LocalPose::default(), LocalPose::default());
    let (mut model_a, mut model_b) = (ModelPose::default(), ModelPose::default());
    for &time in times {
        if skeleton.is_empty() {
            break;
        }
        local_a.sample(source, skeleton, time, &mask);
        local_b.sample(result, skeleton, time, &mask);
        model_a.update(skeleton, &local_a);
        model_b.update(skeleton, &local_b);
        for node in 0..skeleton.len() {
            let (a, b) = (&model_a.joints[node], &model_b.joints[node]);
            let (value, point) = farthest_point(a, b, offsets[node]);
            nodes[node] = value.max(nodes[node]);
            if world.as_ref().is_none_or(|w| value > w.value) {
                let target = skeleton.joints()[node].name.clone();
                world = Some(WorldError { value, node, target, time, point });
            }
        }
    }
    let tracks = source
        .tracks
        .iter()
        .enumerate()
        .map(|(index, track)| track_error(index, track, find(result, &track.binding), times))
        .collect();
    Measured { world, nodes, tracks, times: times.len() }
}

/// The track of `clip` that drives what `binding` names.
pub fn find<'a>(clip: &'a Clip, binding: &Binding) -> Option<&'a Track> {
    clip.tracks.iter().find(|track| {
        let other = &track.binding;
        other.property == binding.property
            && match (other.node, binding.node) {
                (Some(a), Some(b)) => a == b,
                (None, None) => other.target == binding.target && other.path == binding.path,
                _ => false,
            }
    })
}

/// True for the properties that the world error covers.
pub fn moves_node(binding: &Binding) -> bool {
    binding.node.is_some()
        && matches!(binding.property, Property::Translation | Property::Rotation | Property::Scale)
}

fn track_error(index: usize, source: &Track, result: Option<&Track>, times: &[f64]) -> TrackError {
    let kind = source.data.kind();
    let (mut worst, mut at) = (0.0, times.first().copied().unwrap_or(0.0));
    let mut a = vec![0.0; kind.width()];
    let mut b = vec![0.0; kind.width()];
    for &time in times {
        source.data.eval(time, &mut a);
        match result {
            Some(track) if track.data.kind().width() == b.len() => track.data.eval(time, &mut b),
            _ if source.rest.len() == b.len() => b.copy_from_slice(&source.rest),
            _ => b.fill(f64::NAN),
        }
        let value = difference(kind == ValueKind::Rotation, &a, &b);
        if value > worst {
            (worst, at) = (value, time);
        }
    }
    TrackError {
        track: index,
        target: source.binding.target.clone(),
        property: source.binding.property.name().to_owned(),
        value: worst,
        unit: unit_of(&source.binding, &source.data),
        time: at,
        moves_node: moves_node(&source.binding),
        stepped: only_steps(&source.data),
        missing: result.is_none(),
    }
}

/// The unit of a track's errors.
pub fn unit_of(binding: &Binding, data: &TrackData) -> Unit {
    match (data.kind(), &binding.property) {
        (ValueKind::Rotation, _) => Unit::Radian,
        (_, Property::Translation) => Unit::Metre,
        _ => Unit::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::skeleton::{Joint, Pivot, Transform};
    use glam::{DQuat, DVec3};

    fn clip(tracks: Vec<(usize, Property, Curve)>) -> Clip {
        let mut clip = Clip::new("clip", 0.0, 1.0).unwrap();
        for (node, property, curve) in tracks {
            let rest = match property {
                Property::Rotation => vec![0.0, 0.0, 0.0, 1.0],
                Property::Scale => vec![1.0; 3],
                _ => vec![0.0; 3],
            };
            clip.tracks.push(Track::new(Binding::node(node, "", property), TrackData::Curve(curve), rest));
        }
        clip
    }

    fn turn(degrees: f64) -> Curve {
        let q = DQuat::from_rotation_y(degrees.to_radians());
        Curve::linear(ValueKind::Rotation, vec![0.0, 1.0], [[0.0, 0.0, 0.0, 1.0], q.to_array()].concat())
            .unwrap()
    }

    fn arm() -> Skeleton {
        let up = Transform { translation: DVec3::new(1.0, 0.0, 0.0), ..Transform::IDENTITY };
        Skeleton::new(vec![
            Joint::new("shoulder", None, Transform::IDENTITY),
            Joint::new("elbow", Some(0), up),
            Joint::new("hand", Some(1), up),
        ])
        .unwrap()
    }

    #[test]
    fn an_angle_is_felt_at_the_end_of_the_limb() {
        let found = measure(
            &clip(vec![(0, Property::Rotation, turn(10.0))]),
            &clip(vec![(0, Property::Rotation, turn(11.0))]),
            &arm(),
            Shell::Fixed(0.0),
            true,
        );
        let world = found.world.unwrap();
        assert_eq!((world.target.as_str(), world.time), ("hand", 1.0));
        // A chord of one degree at two metres.
        assert!((world.value - 4.0 * (0.5_f64.to_radians()).sin()).abs() < 1e-12);
        assert!((found.tracks[0].value - 1.0_f64.to_radians()).abs() < 1e-12);
    }

    #[test]
    fn the_shell_sees_a_twist_that_moves_no_origin_and_is_measured_in_the_world() {
        let big = Transform { scale: DVec3::splat(100.0), ..Transform::IDENTITY };
        let skeleton = Skeleton::new(vec![
            Joint::new("big", None, big),
            Joint::new("leaf", Some(0), Transform::IDENTITY),
        ])
        .unwrap();
        let (a, b) = (
            clip(vec![(1, Property::Rotation, turn(10.0))]),
            clip(vec![(1, Property::Rotation, turn(11.0))]),
        );
        assert_eq!(measure(&a, &b, &skeleton, Shell::Fixed(0.0), true).world_error(), 0.0);
        let seen = measure(&a, &b, &skeleton, Shell::Fixed(0.03), true).world_error();
        assert!((seen - 0.06 * 0.5_f64.to_radians().sin()).abs() < 1e-12, "{seen}");
    }

    #[test]
    fn a_midpoint_shows_what_the_keys_hide() {
        let line = |times: Vec<f64>, x: Vec<f64>| {
            let rows = x.iter().flat_map(|x| [*x, 0.0, 0.0]).collect();
            clip(vec![(0, Property::Translation, Curve::linear(ValueKind::Vector(3), times, rows).unwrap())])
        };
        let source = line(vec![0.0, 1.0], vec![0.0, 1.0]);
        let bent = line(vec![0.0, 0.5, 1.0], vec![0.0, 0.7, 1.0]);
        let world = measure(&source, &bent, &arm(), Shell::default(), true).world.unwrap();
        assert_eq!(world.time, 0.5);
        assert!((world.value - 0.2).abs() < 1e-12);
    }

    #[test]
    fn zero_scale_mirrors_and_pivots_are_compared_like_anything_else() {
        let mut joint =
            Joint::new("a", None, Transform { scale: DVec3::new(0.0, -1.0, 1.0), ..Transform::IDENTITY });
        joint.pivot = Some(Box::new(Pivot {
            rotation_offset: DVec3::ZERO,
            rotation_pivot: DVec3::new(2.0, 0.0, 0.0),
            scaling_offset: DVec3::ZERO,
            scaling_pivot: DVec3::ZERO,
        }));
        let skeleton = Skeleton::new(vec![joint]).unwrap();
        let (a, b) =
            (clip(vec![(0, Property::Rotation, turn(0.0))]), clip(vec![(0, Property::Rotation, turn(90.0))]));
        let found = measure(&a, &b, &skeleton, Shell::Fixed(0.0), true);
        // The origin goes round the pivot two metres away.
        assert!((found.world_error() - 8.0_f64.sqrt()).abs() < 1e-12, "{}", found.world_error());
        assert!(measure(&a, &b, &skeleton, Shell::Fixed(0.1), true).world_error().is_finite());
    }

    #[test]
    fn a_missing_track_counts_as_rest() {
        let source = clip(vec![(0, Property::Rotation, turn(90.0))]);
        let found = measure(&source, &clip(vec![]), &arm(), Shell::default(), true);
        assert!(found.tracks[0].missing);
        assert!((found.tracks[0].value - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert!(found.world_error() > 2.0);
    }

    #[test]
    fn check_times_hold_every_key_and_every_midpoint() {
        let a = Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0; 6]).unwrap();
        let b = Curve::linear(ValueKind::Vector(3), vec![0.0, 0.25], vec![0.0; 6]).unwrap();
        let times = check_times(&clip(vec![(0, Property::Translation, a), (1, Property::Translation, b)]));
        assert_eq!(times, [0.0, 0.125, 0.25, 0.5, 0.625, 1.0]);
        assert_eq!(check_times(&clip(vec![])), [0.0]);
    }
}
