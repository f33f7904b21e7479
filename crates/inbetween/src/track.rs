//! A track: one property of one target and the curve or curves that drive it.
//!
//! A property may be driven by one curve, by a curve for each of its components (each with keys
//! of its own), or, for a rotation, by Euler angles that stay the curves an artist drew until
//! something asks for a quaternion.

use glam::{DQuat, DVec3};

use crate::curve::{Curve, ValueKind};
use crate::math;

/// Which property of its target a track drives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// Local translation, metres.
    Translation,
    /// Local rotation.
    Rotation,
    /// Local scale.
    Scale,
    /// Morph target weights, 1 = the whole shape.
    Weights,
    /// Shown or hidden.
    Visible,
    /// Anything else, by the path the file gives: `camera.yfov`, `light.intensity`, …
    Other(String),
}

impl Property {
    /// The name by which commands and files know the property.
    pub fn name(&self) -> &str {
        match self {
            Self::Translation => "translation",
            Self::Rotation => "rotation",
            Self::Scale => "scale",
            Self::Weights => "weights",
            Self::Visible => "visible",
            Self::Other(path) => path,
        }
    }

    /// The property of that name; anything unknown is [`Property::Other`].
    pub fn from_name(name: &str) -> Self {
        match name {
            "translation" => Self::Translation,
            "rotation" => Self::Rotation,
            "scale" => Self::Scale,
            "weights" => Self::Weights,
            "visible" => Self::Visible,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// What a track drives.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Name of the target as in the file, byte for byte; may be empty or shared by several.
    pub target: String,
    /// The node's index in the skeleton the clip came with, if the target is a node.
    pub node: Option<usize>,
    /// Which property.
    pub property: Property,
    /// The address the file itself uses, where it has one (a glTF JSON pointer).
    pub path: Option<String>,
}

impl Binding {
    /// A property of node `node`, called `target`.
    pub fn node(node: usize, target: impl Into<String>, property: Property) -> Self {
        Self { target: target.into(), node: Some(node), property, path: None }
    }
}

/// One component of a property: a constant, or a scalar curve with keys of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// No keys: the property's static value.
    Constant(f64),
    /// A curve of kind [`ValueKind::Scalar`].
    Curve(Curve),
}

impl Axis {
    /// The value at `time` seconds.
    pub fn at(&self, time: f64) -> f64 {
        match self {
            Self::Constant(v) => *v,
            Self::Curve(c) => c.scalar_at(time),
        }
    }

    /// The curve, if there is one.
    pub fn curve(&self) -> Option<&Curve> {
        match self {
            Self::Constant(_) => None,
            Self::Curve(c) => Some(c),
        }
    }
}

/// One of the three coordinate axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisName {
    /// The first.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

impl AxisName {
    /// Unit vector along the axis.
    pub fn vector(self) -> DVec3 {
        match self {
            Self::X => DVec3::X,
            Self::Y => DVec3::Y,
            Self::Z => DVec3::Z,
        }
    }

    /// `x`, `y` or `z`.
    pub fn letter(self) -> char {
        match self {
            Self::X => 'x',
            Self::Y => 'y',
            Self::Z => 'z',
        }
    }
}

/// How Euler curves are read between their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EulerBetween {
    /// Each angle on its own curve, then the rotation (FBX).
    Angles,
    /// The rotation at the keys, a slerp between them (captured motion, where a frame is a pose).
    /// The curves of all terms must share their key times.
    Slerp,
}

/// A rotation as turns about axes, each with a curve of its own.
///
/// The rotation is `pre · R(term 0) · R(term 1) · … · post`, a product of matrices from left to
/// right (so the last term is applied to a vector first).
#[derive(Clone, Debug, PartialEq)]
pub struct EulerCurve {
    /// Axis and angle in radians, in the order of the product.
    pub terms: Vec<(AxisName, Axis)>,
    /// Fixed rotation on the left (FBX pre-rotation).
    pub pre: DQuat,
    /// Fixed rotation on the right (the inverse of FBX's post-rotation).
    pub post: DQuat,
    /// How it is read between keys.
    pub between: EulerBetween,
}

impl EulerCurve {
    /// The unit quaternion at `time` seconds.
    pub fn at(&self, time: f64) -> DQuat {
        if self.between == EulerBetween::Slerp
            && let Some(curve) = self.terms.iter().find_map(|(_, a)| a.curve())
        {
            let times = curve.times();
            if time > times[0] && time < times[times.len() - 1] {
                let i = times.partition_point(|&t| t <= time) - 1;
                let u = (time - times[i]) / (times[i + 1] - times[i]);
                return if u == 0.0 {
                    self.product(|a| key_or_constant(a, i))
                } else {
                    let (a, b) = (
                        self.product(|a| key_or_constant(a, i)),
                        self.product(|a| key_or_constant(a, i + 1)),
                    );
                    math::slerp(a, b, u)
                };
            }
        }
        self.product(|a| a.at(time))
    }

    /// The product with each term's angle as `angle` gives it.
    fn product(&self, angle: impl Fn(&Axis) -> f64) -> DQuat {
        let mut q = self.pre;
        for (axis, curve) in &self.terms {
            q *= math::axis_angle(axis.vector(), angle(curve));
        }
        (q * self.post).normalize()
    }
}

fn key_or_constant(axis: &Axis, key: usize) -> f64 {
    match axis {
        Axis::Constant(v) => *v,
        Axis::Curve(c) => c.values()[key],
    }
}

/// The curve or curves of a track.
#[derive(Clone, Debug, PartialEq)]
pub enum TrackData {
    /// One curve for the whole value.
    Curve(Curve),
    /// A curve or constant for each component of a vector, colour or set of weights.
    Axes {
        /// What the components make together; its width is their number.
        kind: ValueKind,
        /// One a component.
        axes: Vec<Axis>,
    },
    /// A rotation by Euler angles.
    Euler(EulerCurve),
}

impl TrackData {
    /// What the value is.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Curve(c) => c.kind(),
            Self::Axes { kind, .. } => *kind,
            Self::Euler(_) => ValueKind::Rotation,
        }
    }

    /// Writes the value at `time` seconds into `out`, as wide as the kind.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn eval(&self, time: f64, out: &mut [f64]) {
        match self {
            Self::Curve(c) => c.eval(time, out),
            Self::Axes { axes, .. } => {
                assert_eq!(out.len(), axes.len(), "the output holds one value");
                for (o, a) in out.iter_mut().zip(axes) {
                    *o = a.at(time);
                }
            }
            Self::Euler(e) => e.at(time).write_to_slice(out),
        }
    }

    /// Every curve in it.
    pub fn curves(&self) -> Vec<&Curve> {
        match self {
            Self::Curve(c) => vec![c],
            Self::Axes { axes, .. } => axes.iter().filter_map(Axis::curve).collect(),
            Self::Euler(e) => e.terms.iter().filter_map(|(_, a)| a.curve()).collect(),
        }
    }

    /// Keys, summed over its curves (as FBX counts them).
    pub fn key_count(&self) -> usize {
        self.curves().iter().map(|c| c.len()).sum()
    }

    /// The times at which any of its curves has a key, increasing, each once.
    pub fn key_times(&self) -> Vec<f64> {
        let mut times: Vec<f64> = Vec::new();
        for c in self.curves() {
            if times.is_empty() {
                times.extend_from_slice(c.times());
            } else if times[..] != c.times()[..] {
                times.extend_from_slice(c.times());
                times.sort_unstable_by(f64::total_cmp);
                times.dedup();
            }
        }
        times
    }
}

/// A property of a target through time.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// What it drives.
    pub binding: Binding,
    /// Its curves.
    pub data: TrackData,
    /// The property's value where nothing drives it, as wide as the kind.
    pub rest: Vec<f64>,
    /// False if the file says the track is muted; it then plays as if it were not there.
    pub enabled: bool,
}

impl Track {
    /// A track that is switched on.
    pub fn new(binding: Binding, data: TrackData, rest: Vec<f64>) -> Self {
        Self { binding, data, rest, enabled: true }
    }

    /// The value at `time` seconds, whatever [`enabled`](Self::enabled) says.
    pub fn value_at(&self, time: f64) -> Vec<f64> {
        let mut out = vec![0.0; self.data.kind().width()];
        self.data.eval(time, &mut out);
        out
    }
}

/// Which tracks of a clip play: a switch for each, changed at any time at no cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackMask {
    off: Vec<u64>,
}

impl TrackMask {
    /// Every track on.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only the tracks `solo` names, of the `count` a clip has: all others are off.
    ///
    /// ```
    /// # use inbetween::TrackMask;
    /// let mask = TrackMask::only([2], 4);
    /// assert_eq!([0, 1, 2, 3].map(|t| mask.is_on(t)), [false, false, true, false]);
    /// ```
    pub fn only(solo: impl IntoIterator<Item = usize>, count: usize) -> Self {
        let mut mask = Self::all();
        (0..count).for_each(|track| mask.set(track, false));
        solo.into_iter().for_each(|track| mask.set(track, true));
        mask
    }

    /// Switches one track on or off.
    pub fn set(&mut self, track: usize, on: bool) {
        let (word, bit) = (track / 64, 1u64 << (track % 64));
        if on {
            if let Some(w) = self.off.get_mut(word) {
                *w &= !bit;
            }
        } else {
            if word >= self.off.len() {
                self.off.resize(word + 1, 0);
            }
            self.off[word] |= bit;
        }
    }

    /// True if the track plays.
    pub fn is_on(&self, track: usize) -> bool {
        self.off.get(track / 64).is_none_or(|w| w & (1 << (track % 64)) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn euler_terms_multiply_from_left_to_right() {
        let e = EulerCurve {
            terms: vec![(AxisName::Z, Axis::Constant(0.3)), (AxisName::X, Axis::Constant(-0.5))],
            pre: DQuat::IDENTITY,
            post: DQuat::IDENTITY,
            between: EulerBetween::Angles,
        };
        let expected = math::axis_angle(DVec3::Z, 0.3) * math::axis_angle(DVec3::X, -0.5);
        assert!(math::angle_between(e.at(0.0), expected) < 1e-15);
    }

    #[test]
    fn slerp_between_frames_differs_from_blended_angles_but_meets_the_frames() {
        let curve =
            |v: [f64; 2]| Axis::Curve(Curve::linear(ValueKind::Scalar, vec![0.0, 1.0], v.to_vec()).unwrap());
        let mut e = EulerCurve {
            terms: vec![(AxisName::X, curve([0.0, 1.0])), (AxisName::Y, curve([0.0, 1.2]))],
            pre: DQuat::IDENTITY,
            post: DQuat::IDENTITY,
            between: EulerBetween::Slerp,
        };
        let slerped = e.at(0.5);
        let (start, end) = (e.at(0.0), e.at(1.0));
        assert!(math::angle_between(slerped, math::slerp(start, end, 0.5)) < 1e-14);
        e.between = EulerBetween::Angles;
        assert!(math::angle_between(e.at(0.5), slerped) > 1e-3);
        assert!(math::angle_between(e.at(1.0), end) < 1e-15);
    }

    #[test]
    fn a_mask_switches_single_tracks() {
        let mut mask = TrackMask::all();
        mask.set(130, false);
        assert!(mask.is_on(129) && !mask.is_on(130) && mask.is_on(100_000));
        mask.set(130, true);
        assert!(mask.is_on(130));
    }
}
