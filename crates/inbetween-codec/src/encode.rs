//! Spends bits on a pose in motion until the bound in the world holds, and no more.
//!
//! Joints are encoded from the root outward. Before a joint is quantised, the rotation it *should*
//! have is worked out anew from the places its ancestors were decoded to, so that a child takes
//! back what went wrong above it: orientation errors do not add up along the limb, and a bone is
//! turned a little so that its far end lands where it belongs. What a joint's error costs is then
//! only its own bones' length and the shell, not the reach of the whole limb.
//!
//! Of the lattice points around that rotation the one with the smallest error at the points the
//! joint carries is taken. Each segment has a scale over all steps; it is made as coarse as the
//! bound allows at every frame and every midpoint of the segment.
//!
//! A component whose last value is its first one ends on the first one's bits, also where others of
//! the clip do not close: its last number is the first one, and the scale of the last segment that
//! of the first, or finer by whole octaves.
//!
//! The result is measured again, on the finished bytes, by [`crate::verify`].

use glam::{DAffine3, DMat3, DQuat, DVec3};
use inbetween::{ScaleInherit, Transform, math};

use crate::content::{
    Constant, Group, Lane, NodeConstants, RotationLanes, Target, Times, ValueLane, segment_start,
};
use crate::format::{MAX_SEGMENT, lanes_mut};
use crate::head::Kept;
use crate::quantize::{Fitter, Form, MAX_NUMBER, QUARTERS, base, exp8, range};

/// Poses to encode, asked for in order. Samples alternate: frame 0, the midpoint after it, frame
/// 1, …: 2·frames − 1 in all.
pub(crate) trait PoseSource {
    /// Number of frames, at least 1.
    fn frames(&self) -> usize;
    /// Writes every node's local transform at a sample.
    fn sample(&mut self, index: usize, out: &mut [Transform]);
}

/// The tree as the encoder needs it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub parents: Vec<Option<usize>>,
    /// Parents before children.
    pub order: Vec<usize>,
    pub inherit: Vec<ScaleInherit>,
    /// Bound on the world error at each node, metres.
    pub bounds: Vec<f64>,
    /// How far along each node's axes its shell points are, in its own units.
    pub shell: Vec<DVec3>,
    /// Properties (rotation, translation, scale) the decoder gets exactly from elsewhere.
    pub exact: Vec<[bool; 3]>,
    /// Properties that stand at the rest pose, to the bit, in the decoder.
    pub rest: Vec<Transform>,
}

/// Where a node stands in the world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub matrix: DAffine3,
    turn: DQuat,
    unscaled: DMat3,
    inherited: DVec3,
}

impl World {
    pub const ORIGIN: Self = Self {
        matrix: DAffine3::IDENTITY,
        turn: DQuat::IDENTITY,
        unscaled: DMat3::IDENTITY,
        inherited: DVec3::ONE,
    };

    /// A child with local transform `t`; the rules of [`inbetween::ModelPose`].
    pub fn child(&self, t: &Transform, inherit: ScaleInherit) -> Self {
        let turn = self.turn * t.rotation;
        let rotation = DMat3::from_quat(t.rotation);
        let translation = self.matrix.matrix3 * t.translation + self.matrix.translation;
        let (unscaled, scale) = match inherit {
            ScaleInherit::Full => (self.matrix.matrix3 * rotation, t.scale),
            ScaleInherit::Ignore => (self.unscaled * rotation, t.scale),
            ScaleInherit::Componentwise => (self.unscaled * rotation, self.inherited * t.scale),
        };
        let m =
            DMat3::from_cols(unscaled.x_axis * scale.x, unscaled.y_axis * scale.y, unscaled.z_axis * scale.z);
        Self { matrix: DAffine3 { matrix3: m, translation }, turn, unscaled, inherited: scale }
    }

    /// Largest distance of origin and shell points from those of another placement.
    #[inline]
    pub fn error(&self, other: &Self, shell: DVec3) -> f64 {
        let o = self.matrix.translation - other.matrix.translation;
        let d = self.matrix.matrix3 - other.matrix.matrix3;
        let mut worst = o.length_squared();
        for axis in [d.x_axis * shell.x, d.y_axis * shell.y, d.z_axis * shell.z] {
            worst = worst.max((o + axis).length_squared());
        }
        worst.sqrt()
    }
}

/// How hard to try, and how much of the bound to use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Share of the bound the encoder allows itself; the rest is for f32 in the decoder.
    pub share: f64,
    /// Scales tried for each segment at most.
    pub trials: usize,
    /// Keep the steps of a rotation's axes near each other. It costs bytes, and is for clips that hold
    /// their bound at frames but not midway.
    pub even: bool,
}

/// The result: constants and one group of lanes.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub constants: Vec<NodeConstants>,
    pub kept: Vec<[Kept; 3]>,
    pub group: Group,
    /// True unless components that close could not be made to meet within the bound.
    pub meets: bool,
}

pub(crate) fn mrp_to_quat(m: DVec3) -> DQuat {
    let n = m.length_squared();
    let i = 1.0 / (1.0 + n);
    DQuat::from_xyzw(2.0 * m.x * i, 2.0 * m.y * i, 2.0 * m.z * i, (1.0 - n) * i)
}

pub(crate) fn quat_to_mrp(q: DQuat) -> DVec3 {
    let q = if q.w < 0.0 { -q } else { q };
    DVec3::new(q.x, q.y, q.z) / (1.0 + q.w)
}

/// Modified Rodrigues parameters on the branch nearer to `near`.
fn mrp_near(q: DQuat, near: DVec3) -> DVec3 {
    let a = quat_to_mrp(q);
    let n = a.length_squared();
    if n < 1e-4 {
        return a;
    }
    let b = a * (-1.0 / n); // the same rotation, the other way round
    if (b - near).length_squared() < (a - near).length_squared() && b.length_squared() < 9.0 { b } else { a }
}

/// Middle rotation in 1/127, and the quaternion it stands for, as the decoder has it.
pub(crate) fn middle_quat(m: [i8; 3]) -> [f32; 4] {
    let v = m.map(|c| f32::from(c) / 127.0);
    let n = (v[0] * v[0] + v[1] * v[1]) + v[2] * v[2];
    let i = 1.0 / (1.0 + n);
    [2.0 * v[0] * i, 2.0 * v[1] * i, 2.0 * v[2] * i, (1.0 - n) * i]
}

fn quat64(q: [f32; 4]) -> DQuat {
    DQuat::from_array(q.map(f64::from))
}

/// What each node does over the whole clip and how finely it must be told.
struct Plan {
    rotation: Vec<bool>,
    translation: Vec<[bool; 3]>,
    scale: Vec<[bool; 3]>,
    middle: Vec<[i8; 3]>,
    /// Middle of the range of translation and scale.
    place: Vec<DVec3>,
    size: Vec<DVec3>,
    /// Rotation, translation, scale whose last value is the first one.
    closes: Vec<Closes>,
    /// Points that a turn of the node moves, in metres as seen in its own axes.
    points: Vec<Vec<DVec3>>,
    /// Gives the best correcting turn from the error of the origin.
    aim: Vec<DMat3>,
    /// What a turn costs: δᵀ·M·δ is the sum of the squares of the points' moves.
    cost: Vec<DMat3>,
    /// Steps in eighths of an octave: rotation axes, translation, scale.
    turn8: Vec<[i32; 3]>,
    place8: Vec<i32>,
    size8: Vec<i32>,
    constants: Vec<NodeConstants>,
    kept: Vec<[Kept; 3]>,
    fixed: Vec<Transform>,
}

/// Which components of a node end where they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Closes {
    rotation: bool,
    translation: [bool; 3],
    scale: [bool; 3],
}

/// Share of the bound by which a component's last value may miss its first one and still count as
/// the same: what f32 and a file's decimals leave of equal values.
const SAME: f64 = 1e-3;

pub(crate) fn log8(step: f64) -> i32 {
    // Floor of 8·log2, from the exponent and a short search: no libm in the way.
    let mut e = (i64::from(((step.to_bits() >> 52) & 0x7ff) as u16) - 1023) as i32 * 8;
    while f64::from(exp8(e + 1)) <= step && e < 900 {
        e += 1;
    }
    e.clamp(-400, 400)
}

#[derive(Clone, Copy)]
struct Extent {
    low: DVec3,
    high: DVec3,
}

impl Extent {
    const EMPTY: Self = Self { low: DVec3::INFINITY, high: DVec3::NEG_INFINITY };
    fn add(&mut self, v: DVec3) {
        self.low = self.low.min(v);
        self.high = self.high.max(v);
    }
}

fn plan(tree: &Tree, source: &mut dyn PoseSource, even: bool) -> Plan {
    let n = tree.parents.len();
    let frames = source.frames();
    let mut pose = vec![Transform::IDENTITY; n];
    let mut first = pose.clone();
    source.sample(0, &mut first);
    let mut sums = vec![[0.0f64; 4]; n];
    let mut turned = vec![0.0f64; n];
    let mut swing = vec![0.0f64; n];
    let mut previous: Vec<DQuat> = first.iter().map(|t| t.rotation).collect();
    let mut places = vec![Extent::EMPTY; n];
    let mut sizes = vec![Extent::EMPTY; n];
    // Every sample, so that a swing between two equal frames is seen. Frames alone carry lanes.
    for s in 0..2 * frames - 1 {
        source.sample(s, &mut pose);
        for j in 0..n {
            let q = pose[j].rotation;
            let d = q.dot(first[j].rotation);
            let sign = if d < 0.0 { -1.0 } else { 1.0 };
            // |q − q0| is half the angle for small angles; no acos, and no cancellation.
            turned[j] = turned[j].max((q * sign - first[j].rotation).length_squared());
            let d = if q.dot(previous[j]) < 0.0 { q + previous[j] } else { q - previous[j] };
            swing[j] = swing[j].max(d.length_squared());
            previous[j] = q;
            for (s, c) in sums[j].iter_mut().zip(q.to_array()) {
                *s += sign * c;
            }
            places[j].add(pose[j].translation);
            sizes[j].add(pose[j].scale);
        }
    }
    turned.iter_mut().for_each(|t| *t = t.sqrt());
    // The last sample is the last frame.
    let last = pose;
    // World scale of each node where it is largest: lengths below it count that much. What is nothing at
    // the first frame, as things are that pop up, may be of any size later.
    let mut largest = first.clone();
    for (t, size) in largest.iter_mut().zip(&sizes) {
        t.scale = size.low.abs().max(size.high.abs()).max(DVec3::splat(1e-6));
    }
    let mut worlds = vec![World::ORIGIN; n];
    let mut lengths = vec![1.0f64; n];
    for &j in &tree.order {
        let parent = tree.parents[j].map_or(World::ORIGIN, |p| worlds[p]);
        worlds[j] = parent.child(&largest[j], tree.inherit[j]);
        let m = worlds[j].matrix.matrix3;
        lengths[j] = m.x_axis.length().max(m.y_axis.length()).max(m.z_axis.length()).max(1e-6);
    }
    let parent_length = |j: usize| tree.parents[j].map_or(1.0, |p| lengths[p]);
    // The strictest bound among a node and what hangs on it.
    let mut strict = tree.bounds.clone();
    for &j in tree.order.iter().rev() {
        if let Some(p) = tree.parents[j] {
            strict[p] = strict[p].min(strict[j]);
        }
    }

    let mut out = Plan {
        rotation: vec![false; n],
        translation: vec![[false; 3]; n],
        scale: vec![[false; 3]; n],
        middle: vec![[0; 3]; n],
        place: vec![DVec3::ZERO; n],
        size: vec![DVec3::ONE; n],
        closes: vec![Closes::default(); n],
        points: vec![Vec::new(); n],
        aim: vec![DMat3::ZERO; n],
        cost: vec![DMat3::ZERO; n],
        turn8: vec![[0; 3]; n],
        place8: vec![0; n],
        size8: vec![0; n],
        constants: vec![NodeConstants::default(); n],
        kept: vec![[Kept::Rest; 3]; n],
        fixed: first.clone(),
    };
    // Reach of each node over everything below it, for deciding what stands still.
    let mut reach: Vec<f64> = (0..n).map(|j| tree.shell[j].max_element() * lengths[j]).collect();
    for &j in tree.order.iter().rev() {
        if let Some(p) = tree.parents[j] {
            let offset = places[j].low.abs().max(places[j].high.abs());
            let far = (offset * largest[p].scale).length() * parent_length(p);
            reach[p] = reach[p].max(far + reach[j]);
        }
    }
    for j in 0..n {
        let tiny = 0.04 * strict[j];
        out.rotation[j] = 2.0 * turned[j] * reach[j] > tiny && !tree.exact[j][0];
        let span = places[j].high - places[j].low;
        let grow = sizes[j].high - sizes[j].low;
        for a in 0..3 {
            out.translation[j][a] = span[a] * parent_length(j) > tiny && !tree.exact[j][1];
            out.scale[j][a] =
                grow[a] * (reach[j] / largest[j].scale.max_element()) > tiny && !tree.exact[j][2];
        }
        let same = SAME * strict[j];
        let (a, b) = (&first[j], &last[j]);
        let b_turn = if a.rotation.dot(b.rotation) < 0.0 { -b.rotation } else { b.rotation };
        out.closes[j] = Closes {
            rotation: out.rotation[j] && 2.0 * (a.rotation - b_turn).length() * reach[j] <= same,
            translation: std::array::from_fn(|k| {
                out.translation[j][k]
                    && (a.translation[k] - b.translation[k]).abs() * parent_length(j) <= same
            }),
            scale: std::array::from_fn(|k| {
                out.scale[j][k] && (a.scale[k] - b.scale[k]).abs() * reach[j] <= same
            }),
        };
        out.place[j] = (places[j].high + places[j].low) * 0.5;
        out.size[j] = (sizes[j].high + sizes[j].low) * 0.5;
        let mean = DQuat::from_array(sums[j]);
        let mean = if mean.length() > 1e-3 { mean.normalize() } else { first[j].rotation };
        out.middle[j] = quat_to_mrp(mean).to_array().map(|c| (c * 127.0).round() as i8);
    }
    // What a turn of a node moves: its shell, the origins of its children and, through children
    // that stand still, what those carry.
    for &j in tree.order.iter().rev() {
        let shell = tree.shell[j] * lengths[j];
        let mut points = vec![DVec3::X * shell.x, DVec3::Y * shell.y, DVec3::Z * shell.z];
        for c in (0..n).filter(|&c| tree.parents[c] == Some(j)) {
            let t = first[c].translation * largest[j].scale * parent_length(j);
            // An origin that moves along all axes is put right by its own lanes; what turns about
            // it is not.
            let origin = if out.translation[c] == [true; 3] { DVec3::ZERO } else { t };
            if origin != DVec3::ZERO {
                points.push(t);
            }
            if !out.rotation[c] {
                points.extend(out.points[c].iter().map(|p| origin + first[c].rotation * *p));
            }
        }
        // A handful of the farthest decides.
        points[3..].sort_by(|a, b| b.length_squared().total_cmp(&a.length_squared()));
        points.truncate(9);
        let mut m = DMat3::ZERO;
        let mut sum = DVec3::ZERO;
        for p in &points {
            let outer = DMat3::from_cols(*p * p.x, *p * p.y, *p * p.z);
            m += DMat3::from_diagonal(DVec3::splat(p.length_squared())) - outer;
            sum += *p;
        }
        // Σ|e + δ×p|² is least at δ = −M⁻¹ (Σp) × e.
        let cross = DMat3::from_cols(
            DVec3::new(0.0, sum.z, -sum.y),
            DVec3::new(-sum.z, 0.0, sum.x),
            DVec3::new(sum.y, -sum.x, 0.0),
        );
        out.cost[j] = m;
        out.aim[j] = if m.determinant().abs() > 1e-30 { m.inverse() * cross * -1.0 } else { DMat3::ZERO };
        for a in 0..3 {
            let axis = DVec3::AXES[a];
            let lever = points.iter().map(|p| axis.cross(*p).length()).fold(1e-6, f64::max);
            out.turn8[j][a] = log8(0.7 * strict[j] / (4.0 * lever));
        }
        // A long bone's twist may be told coarsely: in each frame the other axes make up for it. Midway to
        // the next, what they make up and what is needed differ by the coarse step times the parameters'
        // change between frames (about what |q − q'| is over half of one), which must not pass two fine steps.
        let finest = out.turn8[j].into_iter().min().unwrap_or(0);
        let ratio = 2.0 / swing[j].sqrt().clamp(1e-9, 1.0);
        for step8 in out.turn8[j].iter_mut().filter(|_| even) {
            *step8 = (*step8).min(finest + log8(ratio));
        }
        out.points[j] = points;
        out.place8[j] = log8(0.45 * strict[j] / parent_length(j));
        // What one more in scale moves.
        let growth = (reach[j] / largest[j].scale.max_element()).max(1e-6);
        out.size8[j] = log8(0.7 * strict[j] / growth);
        constants(j, &mut out, tree, strict[j], [reach[j], growth], parent_length(j));
    }
    out
}

/// Rounds what stands still on a node to a fine lattice.
fn constants(j: usize, plan: &mut Plan, tree: &Tree, bound: f64, [reach, growth]: [f64; 2], length: f64) {
    let mut c = NodeConstants::default();
    let first = plan.fixed[j];
    let (rest, near) = (tree.rest[j], 0.02 * bound);
    let turn =
        first.rotation * if first.rotation.dot(rest.rotation) < 0.0 { -1.0 } else { 1.0 } - rest.rotation;
    let same = [
        2.0 * turn.length() * reach <= near,
        (plan.place[j] - rest.translation).length() * length <= near,
        (plan.size[j] - rest.scale).length() * growth <= near * 0.05,
    ];
    let moves = [plan.rotation[j], plan.translation[j] != [false; 3], plan.scale[j] != [false; 3]];
    for p in 0..3 {
        plan.kept[j][p] = match (moves[p], tree.exact[j][p], same[p]) {
            (_, true, _) => Kept::Keys,
            (true, ..) => Kept::Lanes,
            (false, false, true) => Kept::Rest,
            (false, false, false) => Kept::Constant,
        };
    }
    let kept = plan.kept[j];
    if kept[0] == Kept::Rest {
        plan.fixed[j].rotation = rest.rotation;
    }
    if kept[1] == Kept::Rest {
        plan.fixed[j].translation = rest.translation;
    }
    if kept[2] == Kept::Rest {
        plan.fixed[j].scale = rest.scale;
    }
    if kept[0] == Kept::Constant {
        let m = quat_to_mrp(first.rotation);
        if m.length_squared() > 1e-24 {
            let step8 = log8(0.125 * bound / (4.0 * reach)).max(log8(6e-8));
            let numbers = (m / f64::from(exp8(step8))).to_array().map(|v| v.round() as i32);
            c.rotation = Some(Constant { step8, numbers });
            plan.fixed[j].rotation = quat64(constant_rotation(&c.rotation));
        } else {
            plan.fixed[j].rotation = DQuat::IDENTITY;
        }
    }
    if plan.translation[j] != [true; 3] && matches!(kept[1], Kept::Constant | Kept::Lanes) {
        let place = plan.place[j];
        let most = place.abs().max_element();
        if most > 1e-12 {
            // As fine as the bound asks, but no finer than f32 can add.
            let step8 = log8(0.125 * bound / length).max(log8(most * 1e-7));
            let step = f64::from(exp8(step8));
            let numbers = std::array::from_fn(|a| {
                if plan.translation[j][a] { 0 } else { (place[a] / step).round() as i32 }
            });
            if numbers != [0; 3] {
                c.translation = Some(Constant { step8, numbers });
            }
        }
        let fixed = constant_translation(&c.translation).map(f64::from);
        for a in 0..3 {
            if !plan.translation[j][a] {
                plan.fixed[j].translation[a] = fixed[a];
            }
        }
    }
    if plan.scale[j] != [true; 3] && matches!(kept[2], Kept::Constant | Kept::Lanes) {
        let s: [f32; 3] =
            std::array::from_fn(|a| if plan.scale[j][a] { 1.0 } else { plan.size[j][a] as f32 });
        // Scale an exporter left a rounding error away from 1 is 1.
        let s = s.map(|v| if (v - 1.0).abs() < 1e-6 { 1.0 } else { v });
        if s != [1.0; 3] {
            c.scale = Some(s);
        }
        for a in 0..3 {
            if !plan.scale[j][a] {
                plan.fixed[j].scale[a] = f64::from(s[a]);
            }
        }
    }
    plan.constants[j] = c;
}

/// The unit quaternion of a constant rotation, as the decoder has it.
pub(crate) fn constant_rotation(c: &Option<Constant>) -> [f32; 4] {
    let Some(c) = c else { return [0.0, 0.0, 0.0, 1.0] };
    let step = exp8(c.step8);
    let v = c.numbers.map(|n| n as f32 * step);
    let n = (v[0] * v[0] + v[1] * v[1]) + v[2] * v[2];
    let i = 1.0 / (1.0 + n);
    [2.0 * v[0] * i, 2.0 * v[1] * i, 2.0 * v[2] * i, (1.0 - n) * i]
}

/// A constant translation, as the decoder has it.
pub(crate) fn constant_translation(c: &Option<Constant>) -> [f32; 3] {
    let Some(c) = c else { return [0.0; 3] };
    let step = exp8(c.step8);
    c.numbers.map(|n| n as f32 * step)
}

/// Allowed numbers of a lane in a segment, around a polynomial.
struct Corridor {
    step: f64,
    quarter: u8,
    low: [i32; MAX_SEGMENT],
    high: [i32; MAX_SEGMENT],
}

/// The quarter octave of all steps. Finer ones that fill a remainder's bits would save the runtime
/// form 0.4 % and cost the form at rest 4 %, which has to be told of them.
const QUARTER: usize = 2;

/// Chooses degree and width for `values` (in the lane's unit, bias taken off).
/// `step` is the lane's step times the segment's scale: what the error should stay near.
fn corridor(fitter: &Fitter, values: &[f64], step: f64) -> Corridor {
    let frames = values.len();
    let mut best = (f64::INFINITY, 0usize, [0.0f64; 4], 0.0f64);
    for degree in 0..=fitter.max_degree() {
        let c = fitter.fit(degree, values);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (v, b) in values.iter().zip(fitter.basis()) {
            let p = c[1] * f64::from(b[0]) + c[2] * f64::from(b[1]) + c[3] * f64::from(b[2]);
            low = low.min(v - p);
            high = high.max(v - p);
        }
        let spread = (high - low) / step;
        let bits = |x: f64| f64::from(log8(x.max(1.0))) / 8.0;
        let width = bits(spread + 1.0);
        let unit = (width - 3.0).max(0.0);
        let mut cost = width * frames as f64;
        for k in 1..=degree {
            cost += (bits(c[k].abs() / step + 1.0) + 1.5 - unit).max(1.0);
        }
        if cost < best.0 {
            best = (cost, degree, c, high - low);
        }
    }
    let (_, degree, fit, spread) = best;
    let first_width = (0..16)
        .find(|&w| spread / (1.26 * step) < f64::from((1u32 << Form::new(w, 0, 0).width()) as f32) - 0.3);
    for width in first_width.unwrap_or(15)..16 {
        let quarter = QUARTER;
        let real = step * f64::from(QUARTERS[quarter]);
        let form = Form::new(width, quarter, degree);
        let unit = form.unit();
        let scale = f64::from(1u32 << unit);
        let most_number = f64::from(MAX_NUMBER);
        let mut c = [0i32; 4];
        for k in 1..=degree {
            c[k] = (fit[k] / (real * scale)).round().clamp(-most_number / scale, most_number / scale) as i32;
        }
        let mut rough = [0.0f64; 64];
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (i, (v, b)) in values.iter().zip(fitter.basis()).enumerate() {
            let r = v / real - f64::from(base(c, unit, *b));
            rough[i] = r;
            low = low.min(r);
            high = high.max(r);
        }
        let (least, most) = range(form.width());
        // Without a remainder the polynomial must run within the step.
        let slack = if width == 0 { 0.35 } else { 0.0 };
        if high - low > f64::from(most - least) + slack && width < 15 {
            continue;
        }
        let middle = (low - f64::from(least) + high - f64::from(most)) / 2.0;
        let c0 = (middle / scale).round().clamp(-most_number / scale, most_number / scale).trunc();
        let shift = c0 * scale;
        if (low - shift < f64::from(least) - 0.6 || high - shift > f64::from(most) + 0.6) && width < 15 {
            continue;
        }
        c[0] = c0 as i32;
        let mut out =
            Corridor { step: real, quarter: quarter as u8, low: [0; MAX_SEGMENT], high: [0; MAX_SEGMENT] };
        for (i, b) in fitter.basis().iter().enumerate() {
            let n = base(c, unit, *b) as i32;
            out.low[i] = (n + least).clamp(-MAX_NUMBER, MAX_NUMBER);
            out.high[i] = (n + most).clamp(-MAX_NUMBER, MAX_NUMBER);
        }
        return out;
    }
    unreachable!("the widest form takes any values")
}

/// Scratch of one segment: a row for each node, a column for each frame.
struct Bench {
    /// True placements: frames and, between them, midpoints (and the one before the segment).
    truth: Vec<World>,
    truth_locals: Vec<Transform>,
    decoded: Vec<World>,
    locals: Vec<Transform>,
    middles: Vec<World>,
    numbers: Vec<Vec<i32>>,
    quarters: Vec<u8>,
    tilts: Vec<Tilt>,
}

/// The bias of a lane near `value`, on the grid a file keeps.
pub(crate) fn near_bias(value: f64, step8: i32) -> f32 {
    let unit = crate::format::bias_unit(step8);
    (value / f64::from(unit)).round().clamp(-16_000_000.0, 16_000_000.0) as f32 * unit
}

/// Encodes every node that moves.
///
/// `segments` is how many the frames are cut into; `closed` says that the last frame is to be the
/// first one again.
pub(crate) fn encode(
    tree: &Tree,
    source: &mut dyn PoseSource,
    times: Times,
    closed: bool,
    segments: usize,
    effort: Effort,
) -> Encoded {
    let mut plan = plan(tree, source, effort.even);
    if closed || source.frames() < 3 {
        // The whole last frame is the first one, or there is no way back.
        plan.closes.fill(Closes::default());
    }
    // A last frame that ends on the numbers of the first has the first one's errors and a little
    // more, so those must leave room.
    for weight in [1.4, 2.5, 5.0] {
        if let Some(encoded) = run(tree, &plan, source, &times, closed, segments, effort, weight) {
            return encoded;
        }
    }
    plan.closes.fill(Closes::default());
    let open = run(tree, &plan, source, &times, closed, segments, effort, 1.0);
    Encoded { meets: false, ..open.expect("without a seam every run ends") }
}

/// The lanes of a plan, still without numbers, and where those of each node are.
struct Lanes {
    group: Group,
    /// For each node whether something under it closes.
    above: Vec<bool>,
    /// Nodes above such a one, closing or below it that do not end in the world as they began.
    strained: Vec<bool>,
    /// For each lane, in the order of the file, whether it ends on its first value.
    closes: Vec<bool>,
    rotation_of: Vec<usize>,
    place_of: Vec<[usize; 3]>,
    size_of: Vec<[usize; 3]>,
}

impl Lanes {
    fn new(tree: &Tree, plan: &Plan, frames: usize, times: Times, closed: bool) -> Self {
        let n = plan.rotation.len();
        let mut rotations = Vec::new();
        let mut values = Vec::new();
        let mut closes = Vec::new();
        let mut rotation_of = vec![usize::MAX; n];
        for j in 0..n {
            if plan.rotation[j] {
                rotation_of[j] = rotations.len();
                closes.extend([plan.closes[j].rotation; 3]);
                rotations.push(RotationLanes {
                    node: j as u32,
                    middle: plan.middle[j],
                    lanes: plan.turn8[j].map(|step8| Lane { step8, ..Lane::default() }),
                });
            }
        }
        let lane_at = |step8, value| Lane { step8, bias: near_bias(value, step8), ..Lane::default() };
        let mut place_of = vec![[usize::MAX; 3]; n];
        let mut size_of = vec![[usize::MAX; 3]; n];
        for j in 0..n {
            for a in 0..3 {
                if plan.translation[j][a] {
                    place_of[j][a] = values.len();
                    closes.push(plan.closes[j].translation[a]);
                    let lane = lane_at(plan.place8[j], plan.place[j][a]);
                    values.push(ValueLane { target: Target::Translation(j as u32, a as u8), lane });
                }
            }
        }
        for j in 0..n {
            for a in 0..3 {
                if plan.scale[j][a] {
                    size_of[j][a] = values.len();
                    closes.push(plan.closes[j].scale[a]);
                    let lane = lane_at(plan.size8[j], plan.size[j][a]);
                    values.push(ValueLane { target: Target::Scale(j as u32, a as u8), lane });
                }
            }
        }
        let group = Group { times, frames, closed, scales: Vec::new(), rotations, values };
        let mut above = vec![false; n];
        for &j in tree.order.iter().rev() {
            if let Some(p) = tree.parents[j] {
                above[p] |= above[j] || plan.closes[j] != Closes::default();
            }
        }
        let (mut firm, mut under) = (vec![false; n], vec![false; n]);
        for &j in &tree.order {
            under[j] = plan.closes[j] != Closes::default() || tree.parents[j].is_some_and(|p| under[p]);
            let c = &plan.closes[j];
            firm[j] = tree.parents[j].is_none_or(|p| firm[p])
                && tree.exact[j] == [false; 3]
                && c.rotation == plan.rotation[j]
                && c.translation == plan.translation[j]
                && c.scale == plan.scale[j];
        }
        let strained = (0..n).map(|j| !firm[j] && (above[j] || under[j])).collect();
        Self { group, above, strained, closes, rotation_of, place_of, size_of }
    }

    fn count(&self) -> usize {
        self.group.rotations.len() * 3 + self.group.values.len()
    }
}

/// The poses of a segment of `count` frames at these samples, as the encoder works on them.
fn load(
    tree: &Tree,
    source: &mut dyn PoseSource,
    samples: impl ExactSizeIterator<Item = usize>,
    count: usize,
    lanes: usize,
) -> Bench {
    let n = tree.parents.len();
    let mut bench = Bench {
        truth: vec![World::ORIGIN; samples.len() * n],
        truth_locals: vec![Transform::IDENTITY; samples.len() * n],
        decoded: vec![World::ORIGIN; count * n],
        locals: vec![Transform::IDENTITY; count * n],
        middles: vec![World::ORIGIN; n],
        numbers: vec![Vec::new(); lanes],
        quarters: vec![0; lanes],
        tilts: Vec::new(),
    };
    for (i, sample) in samples.enumerate() {
        let pose = &mut bench.truth_locals[i * n..(i + 1) * n];
        source.sample(sample, pose);
        for &j in &tree.order {
            let parent = tree.parents[j].map_or(World::ORIGIN, |p| bench.truth[i * n + p]);
            bench.truth[i * n + j] = parent.child(&pose[j], tree.inherit[j]);
        }
    }
    bench
}

/// By how much a node is to be off at the last frame, in its own axes: as at the first frame where
/// one under it closes. That one has taken it back and will do so again.
#[derive(Clone, Copy)]
struct Carried {
    place: DVec3,
    turn: DQuat,
}

impl Carried {
    const NONE: Self = Self { place: DVec3::ZERO, turn: DQuat::IDENTITY };

    /// From where a node was decoded to at the first frame.
    fn new(truth: &World, place: DVec3, turn: DQuat) -> Self {
        let back = truth.turn.conjugate();
        Self { place: back * (place - truth.matrix.translation), turn: back * turn }
    }

    /// Where a node is to be, and its turn, if it is to be off in the same way.
    fn onto(&self, truth: &World) -> (DVec3, DQuat) {
        (truth.matrix.translation + truth.turn * self.place, truth.turn * self.turn)
    }
}

/// What lanes that close end on: the numbers of the first frame.
struct Seam {
    /// Scale of the first segment.
    scale8: i32,
    numbers: Vec<i32>,
    /// Of each node at the first frame.
    carried: Vec<Carried>,
    /// Octaves by which the last segment's scale may be finer, so that no number grows too large.
    finer: i32,
}

impl Seam {
    fn new(scale8: i32, first: &[Vec<i32>], carried: Vec<Carried>, closes: &[bool]) -> Self {
        let numbers: Vec<i32> = first.iter().map(|n| n[0]).collect();
        let most = numbers.iter().zip(closes).filter(|c| *c.1).map(|c| c.0.unsigned_abs()).max();
        let bits = 32 - most.unwrap_or(0).leading_zeros();
        Self { scale8, numbers, carried, finer: 22i32.saturating_sub_unsigned(bits) }
    }

    /// The nearest scale not above `scale8` at which the first values are on the lattice.
    fn snap(&self, scale8: i32) -> i32 {
        let octaves = ((self.scale8 - scale8).max(0) + 7) / 8;
        self.scale8 - 8 * octaves.min(self.finer)
    }

    /// A lane's first value as a number at a scale that [`snap`](Self::snap) gave.
    fn number(&self, slot: usize, scale8: i32) -> i32 {
        self.numbers[slot] << ((self.scale8 - scale8) / 8)
    }
}

/// Errors at the first frame count `weight` times where lanes close. `None` where those cannot meet
/// their first value within the bound.
#[allow(clippy::too_many_arguments)]
fn run(
    tree: &Tree,
    plan: &Plan,
    source: &mut dyn PoseSource,
    times: &Times,
    closed: bool,
    segments: usize,
    effort: Effort,
    weight: f64,
) -> Option<Encoded> {
    let n = tree.parents.len();
    let frames = source.frames();
    let stored = frames - usize::from(closed);
    let mut lanes = Lanes::new(tree, plan, frames, times.clone(), closed);
    let any_closes = lanes.closes.contains(&true);
    let mut seam: Option<Seam> = None;
    let mut fitters: Vec<Option<Fitter>> = Vec::new();
    // Steps as planned use about two thirds of the bound.
    let mut scale8 = 3i32;
    // The last frame of the segment before, and the first of all for the way back.
    let mut before: Option<Vec<Transform>> = None;
    let mut opening: Option<Vec<Transform>> = None;
    for s in 0..segments {
        let (start, end) = (segment_start(s, segments, stored), segment_start(s + 1, segments, stored));
        let count = end - start;
        if fitters.len() <= count {
            fitters.resize_with(count + 1, || None);
        }
        let fitter = fitters[count].get_or_insert_with(|| Fitter::new(count));
        let last = s + 1 == segments;
        // Samples: the midpoint before the segment, then frame, midpoint, … frame; and, if the
        // clip is closed, the midpoint of the way back to the first frame.
        let mut samples: Vec<usize> = Vec::new();
        if s > 0 {
            samples.push(2 * start - 1);
        }
        samples.extend(2 * start..2 * end - 1);
        let returns = closed && last;
        if returns {
            samples.push(2 * stored - 1);
        }
        let mut bench = load(tree, source, samples.into_iter(), count, lanes.count());
        let lead = usize::from(s > 0);
        let mut kept = Attempt::new(&bench);
        let weight = if s == 0 && any_closes { weight } else { 1.0 };
        let ties = seam.as_ref().filter(|_| last);
        let snap = |scale8: i32| ties.map_or(scale8, |t| t.snap(scale8));
        // `fine` is where numbers no longer fit, so that errors grow again.
        let (mut fine, mut good, mut bad) = (i32::MIN, i32::MIN, i32::MAX);
        let mut trial = snap(scale8);
        let mut tries = 0;
        let mut least = f64::INFINITY;
        loop {
            let errors = try_scale(
                tree,
                plan,
                &lanes,
                fitter,
                trial,
                lead,
                count,
                returns,
                weight,
                if last && any_closes { Some(ties) } else { None },
                before.as_ref(),
                opening.as_ref(),
                &mut bench,
            );
            let ratio = (errors.iter().fold(0.0f64, |a, b| a.max(*b)) / effort.share).min(1e30);
            tries += 1;
            if ratio <= 1.0 {
                if trial > good {
                    good = trial;
                    kept.take(trial, &mut bench);
                }
            } else {
                if bench.numbers.iter().flatten().any(|n| n.abs() > MAX_NUMBER / 16 * 15) {
                    fine = fine.max(trial);
                } else {
                    bad = bad.min(trial);
                }
                if good == i32::MIN && ratio < least {
                    kept.take(trial, &mut bench);
                }
            }
            least = least.min(ratio);
            let near = (FULL..=1.0).contains(&ratio);
            if good != i32::MIN && (tries >= effort.trials || good + 1 >= bad || near) {
                break;
            }
            // Where no step is fine enough (f32 or a degenerate scale is in the way) the best is
            // taken as it is; the check on the bytes will say so.
            if good == i32::MIN
                && (!(-240..=240).contains(&trial)
                    || ratio > 4.0 * least && fine == i32::MIN
                    || fine.saturating_add(1) >= bad)
            {
                break;
            }
            // Errors go roughly with the step: aim a little below where that says.
            let guess = trial + (f64::from(log8((1.0 / ratio.max(1e-3)).min(8.0)))) as i32;
            trial = if good == i32::MIN && fine != i32::MIN {
                if bad == i32::MAX { fine + 16 } else { fine + (bad - fine) / 2 }
            } else if good == i32::MIN {
                guess.min(trial - 1).max(trial - 24)
            } else if bad == i32::MAX {
                guess.max(trial + 1).min(trial + 8)
            } else {
                guess.clamp(good + 1, bad - 1)
            };
            trial = snap(trial);
            if trial <= good.max(fine) || trial >= bad {
                break;
            }
        }
        if good == i32::MIN && last && any_closes {
            return None;
        }
        let chosen = kept;
        scale8 = chosen.scale8;
        if s == 0 && any_closes && !last {
            let mut worlds = vec![World::ORIGIN; n];
            for &j in &tree.order {
                let parent = tree.parents[j].map_or(World::ORIGIN, |p| worlds[p]);
                worlds[j] = parent.child(&chosen.locals[j], tree.inherit[j]);
            }
            let carried = (0..n).map(|j| match lanes.above[j] {
                true => Carried::new(&bench.truth[j], worlds[j].matrix.translation, worlds[j].turn),
                false => Carried::NONE,
            });
            let carried = carried.collect();
            seam = Some(Seam::new(scale8, &chosen.numbers, carried, &lanes.closes));
        }
        lanes.group.scales.push(scale8);
        for (lane, (numbers, quarter)) in
            lanes_mut(&mut lanes.group).into_iter().zip(chosen.numbers.into_iter().zip(chosen.quarters))
        {
            lane.numbers.extend(numbers);
            lane.quarters.push(quarter);
        }
        if opening.is_none() {
            opening = Some(chosen.locals[..n].to_vec());
        }
        before = Some(chosen.locals[(count - 1) * n..].to_vec());
    }
    Some(Encoded {
        constants: plan.constants.clone(),
        kept: plan.kept.clone(),
        group: lanes.group,
        meets: true,
    })
}

/// A scale whose errors come this near to the bound is not tried to be made coarser: the next step
/// in scale is a twelfth larger.
const FULL: f64 = 0.95;

/// A segment as one scale made it.
struct Attempt {
    scale8: i32,
    numbers: Vec<Vec<i32>>,
    quarters: Vec<u8>,
    locals: Vec<Transform>,
}

impl Attempt {
    /// Room for what the bench holds.
    fn new(bench: &Bench) -> Self {
        Self {
            scale8: 0,
            numbers: bench.numbers.clone(),
            quarters: bench.quarters.clone(),
            locals: bench.locals.clone(),
        }
    }

    /// Takes what the bench has made and leaves it this one's room for the next.
    fn take(&mut self, scale8: i32, bench: &mut Bench) {
        self.scale8 = scale8;
        std::mem::swap(&mut self.numbers, &mut bench.numbers);
        std::mem::swap(&mut self.quarters, &mut bench.quarters);
        std::mem::swap(&mut self.locals, &mut bench.locals);
    }
}

fn with_exact(mut t: Transform, truth: &Transform, exact: [bool; 3]) -> Transform {
    if exact[0] {
        t.rotation = truth.rotation;
    }
    if exact[1] {
        t.translation = truth.translation;
    }
    if exact[2] {
        t.scale = truth.scale;
    }
    t
}

fn halfway(a: &Transform, b: &Transform) -> Transform {
    let q = if a.rotation.dot(b.rotation) < 0.0 { a.rotation - b.rotation } else { a.rotation + b.rotation };
    Transform {
        translation: (a.translation + b.translation) * 0.5,
        rotation: if q.length_squared() > 1e-12 { math::normalize(q) } else { a.rotation },
        scale: (a.scale + b.scale) * 0.5,
    }
}

/// Quantises a segment at one scale; gives every node's largest error over its bound. Of the last
/// segment `ends` says what lanes that close end on; `Some(None)` where it is also the first. Errors
/// at the first frame count `weight` times.
#[allow(clippy::too_many_arguments)]
fn try_scale(
    tree: &Tree,
    plan: &Plan,
    lanes: &Lanes,
    fitter: &Fitter,
    scale8: i32,
    lead: usize,
    count: usize,
    returns: bool,
    weight: f64,
    ends: Option<Option<&Seam>>,
    before: Option<&Vec<Transform>>,
    opening: Option<&Vec<Transform>>,
    bench: &mut Bench,
) -> Vec<f64> {
    let n = tree.parents.len();
    let Lanes { group, above, strained, closes, rotation_of, place_of, size_of } = lanes;
    let scale = f64::from(exp8(scale8));
    let row = |frame: usize| (lead + 2 * frame) * n;
    let mut errors = vec![0.0f64; n];
    let mut values = [0.0f64; MAX_SEGMENT];
    let values = &mut values[..count];
    let mut wanted = [[DVec3::ZERO; 3]; MAX_SEGMENT];
    let mut offs = [[0.0f64; 3]; MAX_SEGMENT];
    let mut forms = std::mem::take(&mut bench.tilts);
    for &j in &tree.order {
        let parent_of = |decoded: &[World], frame: usize| {
            tree.parents[j].map_or(World::ORIGIN, |p| decoded[frame * n + p])
        };
        for f in 0..count {
            bench.locals[f * n + j] =
                with_exact(plan.fixed[j], &bench.truth_locals[row(f) + j], tree.exact[j]);
        }
        // Translation: to where the joint should be, seen from where its parent was decoded.
        if place_of[j] != [usize::MAX; 3] {
            for f in 0..count {
                let parent = parent_of(&bench.decoded, f);
                let truth = &bench.truth[row(f) + j];
                let place = match ends {
                    Some(Some(seam)) if f + 1 == count => seam.carried[j].onto(truth).0,
                    _ => truth.matrix.translation,
                };
                let m = parent.matrix.matrix3;
                let want = if m.determinant().abs() > 1e-9 {
                    m.inverse() * (place - parent.matrix.translation)
                } else {
                    bench.truth_locals[row(f) + j].translation
                };
                wanted[f][0] = want;
            }
            for a in 0..3 {
                let lane = place_of[j][a];
                if lane == usize::MAX {
                    continue;
                }
                let l = &group.values[lane].lane;
                let bias = f64::from(l.bias);
                for f in 0..count {
                    values[f] = wanted[f][0][a] - bias;
                }
                let slot = group.rotations.len() * 3 + lane;
                let step = f64::from(exp8(l.step8)) * scale;
                let end = ends.filter(|_| closes[slot]).map(|e| e.map(|s| s.number(slot, scale8)));
                if let Some(end) = end {
                    values[count - 1] = end.map_or(values[0], |n| f64::from(n) * step);
                }
                let c = corridor(fitter, values, step);
                bench.quarters[slot] = c.quarter;
                let numbers = &mut bench.numbers[slot];
                numbers.clear();
                for f in 0..count {
                    let v = match (end, ends) {
                        (Some(e), _) if f + 1 == count => e.unwrap_or(numbers[0]),
                        // Off by as much as at the first frame.
                        (_, Some(None)) if f + 1 == count => {
                            let off = f64::from(numbers[0]) - values[0] / c.step;
                            let off = if above[j] { off } else { 0.0 };
                            whole(values[f] / c.step + off)
                        }
                        _ => c.nearest(values[f] / c.step, f),
                    };
                    numbers.push(v);
                    bench.locals[f * n + j].translation[a] = f64::from(v) * c.step + bias;
                }
            }
        }
        for a in 0..3 {
            let lane = size_of[j][a];
            if lane == usize::MAX {
                continue;
            }
            let l = &group.values[lane].lane;
            let bias = f64::from(l.bias);
            for f in 0..count {
                values[f] = bench.truth_locals[row(f) + j].scale[a] - bias;
            }
            let slot = group.rotations.len() * 3 + lane;
            let step = f64::from(exp8(l.step8)) * scale;
            let end = ends.filter(|_| closes[slot]).map(|e| e.map(|s| s.number(slot, scale8)));
            if let Some(end) = end {
                values[count - 1] = end.map_or(values[0], |n| f64::from(n) * step);
            }
            let c = corridor(fitter, values, step);
            bench.quarters[slot] = c.quarter;
            let numbers = &mut bench.numbers[slot];
            numbers.clear();
            for f in 0..count {
                let v = match end {
                    Some(e) if f + 1 == count => e.unwrap_or(numbers[0]),
                    _ => c.nearest(values[f] / c.step, f),
                };
                numbers.push(v);
                bench.locals[f * n + j].scale[a] = f64::from(v) * c.step + bias;
            }
        }
        let lane = rotation_of[j];
        if lane != usize::MAX {
            let middle = quat64(middle_quat(plan.middle[j]));
            let back = middle.conjugate();
            let mut near = DVec3::ZERO;
            for f in 0..count {
                let parent = parent_of(&bench.decoded, f);
                let truth = &bench.truth[row(f) + j];
                let place =
                    parent.matrix.matrix3 * bench.locals[f * n + j].translation + parent.matrix.translation;
                let (goal, turn) = match ends {
                    Some(Some(seam)) if f + 1 == count => seam.carried[j].onto(truth),
                    _ => (truth.matrix.translation, truth.turn),
                };
                wanted[f] = aimed(plan, j, back, parent, place, goal, turn, near);
                near = wanted[f][0];
            }
            let lanes = &group.rotations[lane].lanes;
            let end = ends.filter(|_| closes[lane * 3]);
            if let Some(seam) = end {
                wanted[count - 1][0] = seam.map_or(wanted[0][0], |s| {
                    DVec3::from_array(std::array::from_fn(|a| {
                        f64::from(s.number(lane * 3 + a, scale8)) * f64::from(exp8(lanes[a].step8)) * scale
                    }))
                });
            }
            // The coarsest axis first; what its rounding does to the others is put right in what
            // they aim at, so that axes that tilt into each other cost nothing.
            let mut order = [0usize, 1, 2];
            order.sort_by_key(|&a| (-lanes[a].step8, a));
            forms.clear();
            forms.extend(wanted[..count].iter().map(|w| Tilt::new(w[0], plan.cost[j], order)));
            offs.fill([0.0; 3]);
            let mut c = [const { None }; 3];
            for (k, &a) in order.iter().enumerate() {
                for f in 0..count {
                    values[f] = wanted[f][0][a] + forms[f].shift(k, &offs[f]);
                }
                let made = corridor(fitter, values, f64::from(exp8(lanes[a].step8)) * scale);
                for f in 0..count {
                    let n = made.nearest(values[f] / made.step, f);
                    offs[f][k] = f64::from(n) * made.step - wanted[f][0][a];
                }
                bench.quarters[lane * 3 + a] = made.quarter;
                bench.numbers[lane * 3 + a].clear();
                c[a] = Some(made);
            }
            let mut c = c.map(|c| c.expect("one for each axis"));
            if let (Some(None), None) = (ends, end) {
                c.iter_mut().for_each(|c| c.widen(count - 1));
            }
            for f in 0..count {
                if let (Some(None), None, true) = (ends, end, f + 1 == count && above[j]) {
                    // Off in the same way as at the first frame.
                    let first = parent_of(&bench.decoded, 0);
                    let local = &bench.locals[j];
                    let place = first.matrix.matrix3 * local.translation + first.matrix.translation;
                    let carried = Carried::new(&bench.truth[row(0) + j], place, first.turn * local.rotation);
                    let (goal, turn) = carried.onto(&bench.truth[row(f) + j]);
                    let parent = parent_of(&bench.decoded, f);
                    let place = parent.matrix.matrix3 * bench.locals[f * n + j].translation
                        + parent.matrix.translation;
                    wanted[f] = aimed(plan, j, back, parent, place, goal, turn, wanted[f][0]);
                    forms[f] = Tilt::new(wanted[f][0], plan.cost[j], order);
                }
                let [m, error, aim] = wanted[f];
                let numbers = match end {
                    Some(e) if f + 1 == count => std::array::from_fn(|a| {
                        let slot = lane * 3 + a;
                        e.map_or_else(|| bench.numbers[slot][0], |s| s.number(slot, scale8))
                    }),
                    _ => nearest(&plan.points[j], m, error, aim, &c, f, &forms[f]),
                };
                for a in 0..3 {
                    bench.numbers[lane * 3 + a].push(numbers[a]);
                }
                let v = DVec3::from_array(std::array::from_fn(|a| f64::from(numbers[a]) * c[a].step));
                bench.locals[f * n + j].rotation = middle * mrp_to_quat(v);
            }
        }
        for f in 0..count {
            let parent = parent_of(&bench.decoded, f);
            let here = parent.child(&bench.locals[f * n + j], tree.inherit[j]);
            bench.decoded[f * n + j] = here;
            let error = here.error(&bench.truth[row(f) + j], tree.shell[j]) / tree.bounds[j];
            errors[j] = errors[j].max(if f == 0 && strained[j] { error * weight } else { error });
        }
    }
    bench.tilts = forms;
    // Between the frames, as the decoder blends them.
    let (truth, truth_locals) = (&bench.truth, &bench.truth_locals);
    let mut between =
        |a: &dyn Fn(usize) -> Transform, b: &dyn Fn(usize) -> Transform, at: usize, middles: &mut [World]| {
            for &j in &tree.order {
                let parent = tree.parents[j].map_or(World::ORIGIN, |p| middles[p]);
                let t = with_exact(halfway(&a(j), &b(j)), &truth_locals[at * n + j], tree.exact[j]);
                middles[j] = parent.child(&t, tree.inherit[j]);
                errors[j] =
                    errors[j].max(middles[j].error(&truth[at * n + j], tree.shell[j]) / tree.bounds[j]);
            }
        };
    let locals = &bench.locals;
    if let (Some(before), 1) = (before, lead) {
        between(&|j| before[j], &|j| locals[j], 0, &mut bench.middles);
    }
    for f in 0..count - 1 {
        between(&|j| locals[f * n + j], &|j| locals[(f + 1) * n + j], lead + 2 * f + 1, &mut bench.middles);
    }
    if returns {
        let at = lead + 2 * (count - 1) + 1;
        match opening {
            Some(o) => between(&|j| locals[(count - 1) * n + j], &|j| o[j], at, &mut bench.middles),
            None => between(&|j| locals[(count - 1) * n + j], &|j| locals[j], at, &mut bench.middles),
        }
    }
    errors
}

/// How the parameters of a rotation pull at each other in one frame.
struct Tilt {
    order: [usize; 3],
    /// Turn of the body for a change of each parameter.
    turn: [DVec3; 3],
    /// Shift of the second axis' best value for an offset of the first.
    second: f64,
    /// Shift of the third's for offsets of the first and second.
    third: [f64; 2],
}

impl Tilt {
    fn new(m: DVec3, cost: DMat3, order: [usize; 3]) -> Self {
        let n = m.length_squared();
        let k = 4.0 / ((1.0 + n) * (1.0 + n));
        let turn = DVec3::AXES.map(|v| ((1.0 - n) * v - 2.0 * m.cross(v) + 2.0 * m.dot(v) * m) * k);
        let g = |a: usize, b: usize| turn[order[a]].dot(cost * turn[order[b]]);
        let (g01, g02, g11, g12, g22) = (g(0, 1), g(0, 2), g(1, 1), g(1, 2), g(2, 2));
        let det = g11 * g22 - g12 * g12;
        let second = if det > 1e-12 * g11 * g22 { -(g22 * g01 - g12 * g02) / det } else { 0.0 };
        let third = if g22 > 0.0 { [-g02 / g22, -g12 / g22] } else { [0.0; 2] };
        Self { order, turn, second, third }
    }

    /// Shift of what the `k`-th axis aims at, given how far off those before it are.
    fn shift(&self, k: usize, off: &[f64; 3]) -> f64 {
        match k {
            0 => 0.0,
            1 => self.second * off[0],
            _ => self.third[0] * off[0] + self.third[1] * off[1],
        }
    }
}

/// The turn that brings a node nearest to its goal, with its origin at `place`: parameters near
/// `near`, how far the origin is off and what that adds to the turn, both in the node's own axes.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
fn aimed(
    plan: &Plan,
    j: usize,
    back: DQuat,
    parent: World,
    place: DVec3,
    goal: DVec3,
    turn: DQuat,
    near: DVec3,
) -> [DVec3; 3] {
    let error = turn.conjugate() * (place - goal);
    let aim = plan.aim[j] * error;
    let want = parent.turn.conjugate()
        * turn
        * math::normalize(DQuat::from_xyzw(aim.x * 0.5, aim.y * 0.5, aim.z * 0.5, 1.0));
    [mrp_near(back * want, near), error, aim]
}

/// The nearest whole number a lane may have.
fn whole(exact: f64) -> i32 {
    let most = f64::from(MAX_NUMBER);
    exact.round().clamp(-most, most) as i32
}

impl Corridor {
    /// Lets the numbers of a frame lie a little outside.
    fn widen(&mut self, f: usize) {
        self.low[f] = (self.low[f] - 2).max(-MAX_NUMBER);
        self.high[f] = (self.high[f] + 2).min(MAX_NUMBER);
    }

    fn nearest(&self, exact: f64, f: usize) -> i32 {
        (exact.round().clamp(-8.0e6, 8.0e6) as i32).clamp(self.low[f], self.high[f])
    }

    /// The whole numbers on both sides, the nearer one first, as far as the corridor lets.
    fn both(&self, exact: f64, f: usize) -> [i32; 2] {
        // Cast and compared, not floored: a call where SSE4.1 cannot be taken for granted.
        let exact = exact.clamp(-8.0e6, 8.0e6);
        let cut = exact as i32;
        let low = cut - i32::from(f64::from(cut) > exact);
        let near = i32::from(exact - f64::from(low) > 0.5);
        [(low + near).clamp(self.low[f], self.high[f]), (low + 1 - near).clamp(self.low[f], self.high[f])]
    }
}

/// The lattice point, of eight around `m`, whose error at the points is least.
fn nearest(
    points: &[DVec3],
    m: DVec3,
    error: DVec3,
    aim: DVec3,
    c: &[Corridor; 3],
    f: usize,
    tilt: &Tilt,
) -> [i32; 3] {
    let [a0, a1, a2] = tilt.order;
    let share = 0.3 / points.len() as f64;
    let mut best = (f64::INFINITY, [0; 3]);
    let mut off = [0.0; 3];
    let last = |pair: [i32; 2]| if pair[0] == pair[1] { 1 } else { 2 };
    let first = c[a0].both(m[a0] / c[a0].step, f);
    for &n0 in &first[..last(first)] {
        off[0] = f64::from(n0) * c[a0].step - m[a0];
        let second = c[a1].both((m[a1] + tilt.shift(1, &off)) / c[a1].step, f);
        for &n1 in &second[..last(second)] {
            off[1] = f64::from(n1) * c[a1].step - m[a1];
            let third = c[a2].both((m[a2] + tilt.shift(2, &off)) / c[a2].step, f);
            for &n2 in &third[..last(third)] {
                off[2] = f64::from(n2) * c[a2].step - m[a2];
                let d = aim + tilt.turn[a0] * off[0] + tilt.turn[a1] * off[1] + tilt.turn[a2] * off[2];
                let (mut most, mut sum) = (0.0f64, 0.0);
                let mut cost = 0.0;
                for p in points {
                    let e = (error + d.cross(*p)).length_squared();
                    most = most.max(e);
                    sum += e;
                    cost = most + share * sum;
                    // It only grows.
                    if cost >= best.0 {
                        break;
                    }
                }
                if cost < best.0 {
                    let mut pick = [0; 3];
                    (pick[a0], pick[a1], pick[a2]) = (n0, n1, n2);
                    best = (cost, pick);
                }
            }
        }
    }
    best.1
}
