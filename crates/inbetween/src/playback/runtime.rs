//! Poses as a game plays them: f32, eight joints side by side, blended and taken into the world
//! by SIMD.
//!
//! A [`RuntimePose`] is a row of blocks; a block holds each component of eight joints next to each
//! other, so a kernel loads, blends and stores whole registers, and a block (320 bytes) is read
//! once. The rules are those of [`super::layers`], in f32: rotations move along the shortest way
//! at even speed, by a formula that needs only + − × ÷ √ and nothing fused, so every SIMD level, and
//! the plain twin in this file, give the same bits.
//!
//! A slerp is (a + b) + g·(b − a) brought to unit length, with g = tan(v·φ)/tan φ, φ half the angle
//! between a and b and v = 2t − 1. With X = tan²φ = (1 − cos 2φ)/(1 + cos 2φ), which is between 0 and 1
//! the short way, and Gauss' continued fraction of tan(v·arctan x):
//!
//! ```text
//! g = v·N/(N + (1 − v²)·X·R),   N = 1 + n₁X + n₂X²,   R = r₀ + r₁X
//! weight of a ∝ (1 − t)·(N + 2t·X·R),   weight of b ∝ t·(N + 2(1 − t)·X·R)
//! ```
//!
//! n₁, n₂ and r₁ are polynomials in v². Their coefficients are fitted for the least largest error on
//! 0 ≤ X ≤ 1, 0 ≤ v ≤ 1, which is 1.8e-7 radians of rotation: two last bits of an f32.

use fearless_simd::{Level, Simd, dispatch, f32x4, f32x8, prelude::*};
use glam::{DQuat, DVec3};
use thiserror::Error;

use crate::pose::LocalPose;
use crate::skeleton::{ScaleInherit, Skeleton, Transform};

/// Joints in a block.
pub const LANES: usize = 8;

/// n₁ by powers of v², n₂, r₀ and r₁; see the top of the file.
const N1: [f32; 2] = [0.665_273_3, -0.105_027_154];
const N2: [f32; 3] = [0.042_150_125, -0.013_537_93, 0.000_751_709_2];
const R0: f32 = 0.333_302_44;
const R1: [f32; 2] = [0.133_232_36, -0.012_862_985];

/// The components of eight joints, each next to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(32))]
pub struct JointBlock {
    /// x, y, z, w of the unit quaternions.
    pub rotation: [[f32; LANES]; 4],
    /// x, y, z, metres.
    pub translation: [[f32; LANES]; 3],
    /// x, y, z.
    pub scale: [[f32; LANES]; 3],
}

impl JointBlock {
    /// Eight joints at the identity.
    pub const IDENTITY: Self = Self {
        rotation: [[0.0; LANES], [0.0; LANES], [0.0; LANES], [1.0; LANES]],
        translation: [[0.0; LANES]; 3],
        scale: [[1.0; LANES]; 3],
    };
}

/// Local transforms of all joints of a rig, in the rig's order (parents first).
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimePose {
    joints: usize,
    /// The blocks; lanes past the last joint hold the identity.
    pub blocks: Vec<JointBlock>,
}

impl RuntimePose {
    /// `joints` joints at the identity.
    pub fn identity(joints: usize) -> Self {
        Self { joints, blocks: vec![JointBlock::IDENTITY; joints.div_ceil(LANES)] }
    }

    /// Number of joints.
    pub fn len(&self) -> usize {
        self.joints
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.joints == 0
    }

    /// Sets one joint.
    ///
    /// # Panics
    /// If there is no such joint.
    pub fn set(&mut self, joint: usize, t: &Transform) {
        assert!(joint < self.joints, "joint {joint} of {}", self.joints);
        let (block, lane) = (&mut self.blocks[joint / LANES], joint % LANES);
        let q = t.rotation.to_array();
        let (p, s) = (t.translation.to_array(), t.scale.to_array());
        for c in 0..4 {
            block.rotation[c][lane] = q[c] as f32;
        }
        for c in 0..3 {
            block.translation[c][lane] = p[c] as f32;
            block.scale[c][lane] = s[c] as f32;
        }
    }

    /// One joint.
    ///
    /// # Panics
    /// If there is no such joint.
    pub fn get(&self, joint: usize) -> Transform {
        assert!(joint < self.joints, "joint {joint} of {}", self.joints);
        let (block, lane) = (&self.blocks[joint / LANES], joint % LANES);
        let at = |rows: &[[f32; LANES]], c: usize| f64::from(rows[c][lane]);
        Transform {
            rotation: DQuat::from_xyzw(
                at(&block.rotation, 0),
                at(&block.rotation, 1),
                at(&block.rotation, 2),
                at(&block.rotation, 3),
            ),
            translation: DVec3::new(
                at(&block.translation, 0),
                at(&block.translation, 1),
                at(&block.translation, 2),
            ),
            scale: DVec3::new(at(&block.scale, 0), at(&block.scale, 1), at(&block.scale, 2)),
        }
    }
}

/// A weight 0..1 for each joint of a rig, in blocks like a pose.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeMask {
    blocks: Vec<[f32; LANES]>,
}

impl RuntimeMask {
    /// One weight a joint, in the rig's order; clamped to 0..1.
    pub fn new(weights: &[f32]) -> Self {
        let mut blocks = vec![[0.0; LANES]; weights.len().div_ceil(LANES)];
        for (i, w) in weights.iter().enumerate() {
            blocks[i / LANES][i % LANES] = w.clamp(0.0, 1.0);
        }
        Self { blocks }
    }
}

/// A skeleton as poses are taken into the world: joints parents first, each with its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeRig {
    /// For each joint its parent in this order, or `u32::MAX`.
    parents: Vec<u32>,
    nodes: Vec<usize>,
    rest: RuntimePose,
}

/// A skeleton that plain matrices cannot play.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "node {node} ({name:?}) does not inherit its parent's scale the plain way; bake the clip to plain \
     transforms first (convert to glTF does)"
)]
pub struct RigError {
    node: usize,
    name: String,
}

impl RuntimeRig {
    /// All nodes of a skeleton, parents first.
    ///
    /// # Errors
    /// If a node has another scale inheritance than the plain product.
    pub fn new(skeleton: &Skeleton) -> Result<Self, RigError> {
        let nodes = skeleton.order().to_vec();
        let mut place = vec![u32::MAX; skeleton.len()];
        let mut parents = Vec::with_capacity(nodes.len());
        for (i, &node) in nodes.iter().enumerate() {
            let joint = &skeleton.joints()[node];
            if joint.inherit != ScaleInherit::Full {
                return Err(RigError { node, name: joint.name.clone() });
            }
            place[node] = i as u32;
            parents.push(joint.parent.map_or(u32::MAX, |p| place[p]));
        }
        let local = LocalPose::rest(skeleton);
        let mut rest = RuntimePose::identity(nodes.len());
        for (i, &node) in nodes.iter().enumerate() {
            rest.set(i, &local.joints[node]);
        }
        Ok(Self { parents, nodes, rest })
    }

    /// The skeleton's node of each joint, parents first.
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// Parent of each joint in the rig's order; `u32::MAX` for roots.
    pub fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// The rest pose.
    pub fn rest(&self) -> &RuntimePose {
        &self.rest
    }

    /// A local pose of the skeleton in the rig's order.
    ///
    /// # Panics
    /// If the pose is of another skeleton.
    pub fn gather(&self, local: &LocalPose, out: &mut RuntimePose) {
        assert_eq!(local.joints.len(), self.nodes.len(), "one transform a node");
        for (i, &node) in self.nodes.iter().enumerate() {
            out.set(i, &local.joints[node]);
        }
    }
}

/// How fast paths are chosen: the best the machine has, or a given level (for tests).
pub fn best_level() -> Level {
    Level::new()
}

/// Lays `layer` over `below` in place: each joint moves towards the layer's by
/// `weight × mask`, 0..1; translation and scale linearly, rotation along the shortest way at even
/// speed.
///
/// # Panics
/// If the poses (or the mask) are not of one rig.
pub fn blend_override(
    level: Level,
    below: &mut RuntimePose,
    layer: &RuntimePose,
    weight: f32,
    mask: Option<&RuntimeMask>,
) {
    blend::<false>(level, below, layer, weight, mask);
}

/// Lays the differences in `layer` over `below` in place, by the additive rule of
/// [`super::layers`].
///
/// # Panics
/// If the poses (or the mask) are not of one rig.
pub fn blend_additive(
    level: Level,
    below: &mut RuntimePose,
    layer: &RuntimePose,
    weight: f32,
    mask: Option<&RuntimeMask>,
) {
    blend::<true>(level, below, layer, weight, mask);
}

fn blend<const ADDITIVE: bool>(
    level: Level,
    below: &mut RuntimePose,
    layer: &RuntimePose,
    weight: f32,
    mask: Option<&RuntimeMask>,
) {
    assert_eq!(below.joints, layer.joints, "poses of one rig");
    if let Some(mask) = mask {
        assert_eq!(mask.blocks.len(), below.blocks.len(), "a mask of the same rig");
    }
    let weight = weight.clamp(0.0, 1.0);
    let mask = mask.map(|m| &m.blocks[..]);
    let (below, layer) = (&mut below.blocks[..], &layer.blocks[..]);
    // Chosen outside the dispatch, so that each is compiled whole for the level.
    if ADDITIVE {
        dispatch!(level, simd => additive_all(simd, below, layer, weight, mask));
    } else {
        dispatch!(level, simd => override_all(simd, below, layer, weight, mask));
    }
}

type Quat8<S> = [f32x8<S>; 4];

/// `[f(0), f(1), …]` written out. `array::map` is a call of its own, outside the function that
/// was compiled for the machine's SIMD level: six times slower here.
macro_rules! each {
    ($c:ident of 4 => $e:expr) => {
        [each!(@ $c, 0, $e), each!(@ $c, 1, $e), each!(@ $c, 2, $e), each!(@ $c, 3, $e)]
    };
    ($c:ident of 3 => $e:expr) => {
        [each!(@ $c, 0, $e), each!(@ $c, 1, $e), each!(@ $c, 2, $e)]
    };
    (@ $c:ident, $n:literal, $e:expr) => {{
        const $c: usize = $n;
        $e
    }};
}

#[inline(always)]
fn load4<S: Simd>(simd: S, rows: &[[f32; LANES]; 4]) -> Quat8<S> {
    each!(C of 4 => f32x8::from_slice(simd, &rows[C]))
}

#[inline(always)]
fn dot<S: Simd>(a: &Quat8<S>, b: &Quat8<S>) -> f32x8<S> {
    (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3])
}

/// How far eight results lie along their arcs, and all that follows from that alone.
#[derive(Clone, Copy)]
struct Along<S: Simd> {
    /// 1 − t and t.
    place: [f32x8<S>; 2],
    /// Twice those.
    twice: [f32x8<S>; 2],
    n1: f32x8<S>,
    n2: f32x8<S>,
    r1: f32x8<S>,
}

impl<S: Simd> Along<S> {
    #[inline(always)]
    fn new(simd: S, t: f32x8<S>) -> Self {
        let one = f32x8::splat(simd, 1.0);
        let rest = one - t;
        let v = (t + t) - one;
        let vv = v * v;
        Self {
            place: [rest, t],
            twice: [rest + rest, t + t],
            n1: f32x8::splat(simd, N1[0]) + f32x8::splat(simd, N1[1]) * vv,
            n2: f32x8::splat(simd, N2[0]) + (f32x8::splat(simd, N2[1]) + f32x8::splat(simd, N2[2]) * vv) * vv,
            r1: f32x8::splat(simd, R1[0]) + f32x8::splat(simd, R1[1]) * vv,
        }
    }
}

/// Weights of two unit quaternions with this product for a slerp the short way, up to a factor.
#[inline(always)]
fn weights<S: Simd>(simd: S, dot: f32x8<S>, along: &Along<S>) -> [f32x8<S>; 2] {
    let (zero, one) = (f32x8::splat(simd, 0.0), f32x8::splat(simd, 1.0));
    let flip = dot.simd_lt(zero);
    let cos = flip.select(zero - dot, dot);
    // X = p/m; all is multiplied by m², so that nothing is divided.
    let (p, m) = (one - cos, one + cos);
    let n = (m + along.n1 * p) * m + along.n2 * (p * p);
    let r = (f32x8::splat(simd, R0) * m + along.r1 * p) * p;
    let a = along.place[0] * (n + along.twice[1] * r);
    let b = along.place[1] * (n + along.twice[0] * r);
    [a, flip.select(zero - b, b)]
}

/// Slerp from `a` to `b` (unit, any sign), the short way, eight at a time.
#[inline(always)]
fn slerp8<S: Simd>(simd: S, a: &Quat8<S>, b: &Quat8<S>, along: &Along<S>) -> Quat8<S> {
    let [wa, wb] = weights(simd, dot(a, b), along);
    unit(simd, each!(C of 4 => a[C] * wa + b[C] * wb))
}

/// The same from no turn at all.
#[inline(always)]
fn part8<S: Simd>(simd: S, b: &Quat8<S>, along: &Along<S>) -> Quat8<S> {
    let [wa, wb] = weights(simd, b[3], along);
    unit(simd, [b[0] * wb, b[1] * wb, b[2] * wb, wa + b[3] * wb])
}

#[inline(always)]
fn unit<S: Simd>(simd: S, q: Quat8<S>) -> Quat8<S> {
    let scale = f32x8::splat(simd, 1.0) / dot(&q, &q).sqrt();
    each!(C of 4 => q[C] * scale)
}

/// Brings a quaternion whose length is within a few thousandths of 1 to unit length: one Newton
/// step of 1/√ from 1. A product of unit quaternions is within a millionth.
#[inline(always)]
fn near_unit<S: Simd>(simd: S, q: &Quat8<S>) -> Quat8<S> {
    let scale = f32x8::splat(simd, 1.5) - f32x8::splat(simd, 0.5) * dot(q, q);
    each!(C of 4 => q[C] * scale)
}

#[inline(always)]
fn reach8<S: Simd>(simd: S, weight: f32, mask: Option<&[[f32; LANES]]>, block: usize) -> f32x8<S> {
    let weight = f32x8::splat(simd, weight);
    match mask {
        Some(m) => weight * f32x8::from_slice(simd, &m[block]),
        None => weight,
    }
}

/// The reach of a layer without a mask, the same for all joints, and what follows from it.
#[inline(always)]
fn everywhere<S: Simd>(simd: S, weight: f32) -> (f32x8<S>, Along<S>) {
    let t = f32x8::splat(simd, weight);
    (t, Along::new(simd, t))
}

#[inline(always)]
fn override_all<S: Simd>(
    simd: S,
    below: &mut [JointBlock],
    layer: &[JointBlock],
    weight: f32,
    mask: Option<&[[f32; LANES]]>,
) {
    let (mut t, mut along) = everywhere(simd, weight);
    for i in 0..below.len() {
        if mask.is_some() {
            t = reach8(simd, weight, mask, i);
            along = Along::new(simd, t);
        }
        let (lower, upper) = (&mut below[i], &layer[i]);
        for c in 0..3 {
            for (into, from) in
                [(&mut lower.translation[c], &upper.translation[c]), (&mut lower.scale[c], &upper.scale[c])]
            {
                let a = f32x8::from_slice(simd, &into[..]);
                let b = f32x8::from_slice(simd, from);
                (a + t * (b - a)).store_slice(into);
            }
        }
        let q = slerp8(simd, &load4(simd, &lower.rotation), &load4(simd, &upper.rotation), &along);
        for c in 0..4 {
            q[c].store_slice(&mut lower.rotation[c]);
        }
    }
}

#[inline(always)]
fn additive_all<S: Simd>(
    simd: S,
    below: &mut [JointBlock],
    layer: &[JointBlock],
    weight: f32,
    mask: Option<&[[f32; LANES]]>,
) {
    let one = f32x8::splat(simd, 1.0);
    let (mut t, mut along) = everywhere(simd, weight);
    for i in 0..below.len() {
        if mask.is_some() {
            t = reach8(simd, weight, mask, i);
            along = Along::new(simd, t);
        }
        let (lower, upper) = (&mut below[i], &layer[i]);
        for c in 0..3 {
            let a = f32x8::from_slice(simd, &lower.translation[c]);
            let d = f32x8::from_slice(simd, &upper.translation[c]);
            (a + t * d).store_slice(&mut lower.translation[c]);
            let a = f32x8::from_slice(simd, &lower.scale[c]);
            let d = f32x8::from_slice(simd, &upper.scale[c]);
            (a * (one + t * (d - one))).store_slice(&mut lower.scale[c]);
        }
        let d = part8(simd, &load4(simd, &upper.rotation), &along);
        let q = multiply8(&load4(simd, &lower.rotation), &d);
        let q = near_unit(simd, &q);
        for c in 0..4 {
            q[c].store_slice(&mut lower.rotation[c]);
        }
    }
}

#[inline(always)]
fn multiply8<S: Simd>(a: &Quat8<S>, b: &Quat8<S>) -> Quat8<S> {
    [
        (a[3] * b[0] + a[0] * b[3]) + (a[1] * b[2] - a[2] * b[1]),
        (a[3] * b[1] + a[1] * b[3]) + (a[2] * b[0] - a[0] * b[2]),
        (a[3] * b[2] + a[2] * b[3]) + (a[0] * b[1] - a[1] * b[0]),
        (a[3] * b[3] - a[0] * b[0]) - (a[1] * b[1] + a[2] * b[2]),
    ]
}

/// A joint's matrix into the world: three rows of four, the last column the origin, metres.
pub type WorldMatrix = [[f32; 4]; 3];

/// Takes a local pose into the world: one matrix a joint, in the rig's order. `out` grows to the
/// rig's size once and is not allocated again.
///
/// # Panics
/// If the pose is of another rig.
pub fn local_to_world(level: Level, rig: &RuntimeRig, pose: &RuntimePose, out: &mut Vec<WorldMatrix>) {
    assert_eq!(rig.parents.len(), pose.joints, "a pose of this rig");
    out.resize(pose.joints, [[0.0; 4]; 3]);
    dispatch!(level, simd => world_all(simd, &rig.parents, &pose.blocks, out));
}

/// Rows of the local matrices of eight joints: row i of joint `lane` at `4 · lane`.
#[inline(always)]
fn local_rows<S: Simd>(simd: S, block: &JointBlock) -> [[f32; 4 * LANES]; 3] {
    let (one, two) = (f32x8::splat(simd, 1.0), f32x8::splat(simd, 2.0));
    let [x, y, z, w] = load4(simd, &block.rotation);
    let scale = each!(C of 3 => f32x8::from_slice(simd, &block.scale[C]));
    let (xx, yy, zz) = (x * x, y * y, z * z);
    let (xy, xz, yz) = (x * y, x * z, y * z);
    let (wx, wy, wz) = (w * x, w * y, w * z);
    let r = [
        [one - two * (yy + zz), two * (xy - wz), two * (xz + wy)],
        [two * (xy + wz), one - two * (xx + zz), two * (yz - wx)],
        [two * (xz - wy), two * (yz + wx), one - two * (xx + yy)],
    ];
    let mut rows = [[0.0; 4 * LANES]; 3];
    for i in 0..3 {
        let origin = f32x8::from_slice(simd, &block.translation[i]);
        let (x0, x1) = (r[i][0] * scale[0]).split();
        let (y0, y1) = (r[i][1] * scale[1]).split();
        let (z0, z1) = (r[i][2] * scale[2]).split();
        let (w0, w1) = origin.split();
        let (near, far) = rows[i].split_at_mut(2 * LANES);
        f32x4::store_four_interleaved([x0, y0, z0, w0], near);
        f32x4::store_four_interleaved([x1, y1, z1, w1], far);
    }
    rows
}

/// Keeps the last column of a row.
const ORIGIN: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

/// One row of parent · local: the parent's row times the three local rows, its origin added.
#[inline(always)]
fn world_row<S: Simd>(simd: S, parent: &[f32; 4], local: &[f32x4<S>; 3]) -> f32x4<S> {
    // The origin alone, by a product: building the vector from its parts stalls on the stack.
    let origin = f32x4::from_slice(simd, parent) * f32x4::from_slice(simd, &ORIGIN);
    let a = f32x4::splat(simd, parent[0]) * local[0];
    let b = f32x4::splat(simd, parent[1]) * local[1];
    let c = f32x4::splat(simd, parent[2]) * local[2];
    (a + b) + (c + origin)
}

#[inline(always)]
fn world_all<S: Simd>(simd: S, parents: &[u32], blocks: &[JointBlock], out: &mut [WorldMatrix]) {
    for (b, block) in blocks.iter().enumerate() {
        let rows = local_rows(simd, block);
        let first = b * LANES;
        for lane in 0..LANES.min(out.len() - first) {
            let local = each!(I of 3 => f32x4::from_slice(simd, &rows[I][4 * lane..4 * lane + 4]));
            let parent = parents[first + lane];
            let world = if parent == u32::MAX {
                local
            } else {
                let p = &out[parent as usize];
                each!(I of 3 => world_row(simd, &p[I], &local))
            };
            for i in 0..3 {
                world[i].store_slice(&mut out[first + lane][i]);
            }
        }
    }
}

/// The same arithmetic without vectors: what every level is held against, bit for bit.
pub mod plain {
    use super::{JointBlock, LANES, N1, N2, R0, R1, RuntimeMask, RuntimePose, RuntimeRig, WorldMatrix};

    fn dot(a: &[f32; 4], b: &[f32; 4]) -> f32 {
        (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3])
    }

    fn weights(dot: f32, t: f32) -> [f32; 2] {
        let rest = 1.0 - t;
        let v = (t + t) - 1.0;
        let vv = v * v;
        let n1 = N1[0] + N1[1] * vv;
        let n2 = N2[0] + (N2[1] + N2[2] * vv) * vv;
        let r1 = R1[0] + R1[1] * vv;
        let cos = if dot < 0.0 { 0.0 - dot } else { dot };
        let (p, m) = (1.0 - cos, 1.0 + cos);
        let n = (m + n1 * p) * m + n2 * (p * p);
        let r = (R0 * m + r1 * p) * p;
        let a = rest * (n + (t + t) * r);
        let b = t * (n + (rest + rest) * r);
        [a, if dot < 0.0 { 0.0 - b } else { b }]
    }

    fn unit(q: [f32; 4]) -> [f32; 4] {
        let scale = 1.0 / dot(&q, &q).sqrt();
        q.map(|v| v * scale)
    }

    /// Slerp of two unit quaternions by `t`, 0..1, the short way.
    pub fn slerp(a: [f32; 4], b: [f32; 4], t: f32) -> [f32; 4] {
        let [wa, wb] = weights(dot(&a, &b), t);
        unit(std::array::from_fn(|c| a[c] * wa + b[c] * wb))
    }

    /// The same from no turn at all.
    fn part(b: [f32; 4], t: f32) -> [f32; 4] {
        let [wa, wb] = weights(b[3], t);
        unit([b[0] * wb, b[1] * wb, b[2] * wb, wa + b[3] * wb])
    }

    fn near_unit(q: [f32; 4]) -> [f32; 4] {
        let scale = 1.5 - 0.5 * dot(&q, &q);
        q.map(|v| v * scale)
    }

    fn rotation(block: &JointBlock, lane: usize) -> [f32; 4] {
        std::array::from_fn(|c| block.rotation[c][lane])
    }

    fn lanes(
        below: &mut RuntimePose,
        layer: &RuntimePose,
        weight: f32,
        mask: Option<&RuntimeMask>,
        lay: impl Fn(&mut JointBlock, &JointBlock, usize, f32),
    ) {
        let weight = weight.clamp(0.0, 1.0);
        for (i, (lower, upper)) in below.blocks.iter_mut().zip(&layer.blocks).enumerate() {
            for lane in 0..LANES {
                let t = mask.map_or(weight, |m| weight * m.blocks[i][lane]);
                lay(lower, upper, lane, t);
            }
        }
    }

    /// Twin of [`super::blend_override`].
    pub fn blend_override(
        below: &mut RuntimePose,
        layer: &RuntimePose,
        weight: f32,
        mask: Option<&RuntimeMask>,
    ) {
        lanes(below, layer, weight, mask, |lower, upper, lane, t| {
            for c in 0..3 {
                let a = lower.translation[c][lane];
                lower.translation[c][lane] = a + t * (upper.translation[c][lane] - a);
                let a = lower.scale[c][lane];
                lower.scale[c][lane] = a + t * (upper.scale[c][lane] - a);
            }
            let q = slerp(rotation(lower, lane), rotation(upper, lane), t);
            for c in 0..4 {
                lower.rotation[c][lane] = q[c];
            }
        });
    }

    /// Twin of [`super::blend_additive`].
    pub fn blend_additive(
        below: &mut RuntimePose,
        layer: &RuntimePose,
        weight: f32,
        mask: Option<&RuntimeMask>,
    ) {
        lanes(below, layer, weight, mask, |lower, upper, lane, t| {
            for c in 0..3 {
                lower.translation[c][lane] += t * upper.translation[c][lane];
                lower.scale[c][lane] *= 1.0 + t * (upper.scale[c][lane] - 1.0);
            }
            let d = part(rotation(upper, lane), t);
            let a = rotation(lower, lane);
            let q = [
                (a[3] * d[0] + a[0] * d[3]) + (a[1] * d[2] - a[2] * d[1]),
                (a[3] * d[1] + a[1] * d[3]) + (a[2] * d[0] - a[0] * d[2]),
                (a[3] * d[2] + a[2] * d[3]) + (a[0] * d[1] - a[1] * d[0]),
                (a[3] * d[3] - a[0] * d[0]) - (a[1] * d[1] + a[2] * d[2]),
            ];
            let q = near_unit(q);
            for c in 0..4 {
                lower.rotation[c][lane] = q[c];
            }
        });
    }

    /// Twin of [`super::local_to_world`].
    pub fn local_to_world(rig: &RuntimeRig, pose: &RuntimePose, out: &mut Vec<WorldMatrix>) {
        out.clear();
        for joint in 0..pose.len() {
            let (block, lane) = (&pose.blocks[joint / LANES], joint % LANES);
            let [x, y, z, w] = rotation(block, lane);
            let s: [f32; 3] = std::array::from_fn(|c| block.scale[c][lane]);
            let (xx, yy, zz) = (x * x, y * y, z * z);
            let (xy, xz, yz) = (x * y, x * z, y * z);
            let (wx, wy, wz) = (w * x, w * y, w * z);
            let r = [
                [1.0 - 2.0 * (yy + zz), 2.0 * (xy - wz), 2.0 * (xz + wy)],
                [2.0 * (xy + wz), 1.0 - 2.0 * (xx + zz), 2.0 * (yz - wx)],
                [2.0 * (xz - wy), 2.0 * (yz + wx), 1.0 - 2.0 * (xx + yy)],
            ];
            let local: WorldMatrix = std::array::from_fn(|i| {
                [r[i][0] * s[0], r[i][1] * s[1], r[i][2] * s[2], block.translation[i][lane]]
            });
            let parent = rig.parents[joint];
            out.push(if parent == u32::MAX {
                local
            } else {
                let p = out[parent as usize];
                std::array::from_fn(|i| {
                    std::array::from_fn(|k| {
                        let origin = p[i][k] * super::ORIGIN[k];
                        (p[i][0] * local[0][k] + p[i][1] * local[1][k]) + (p[i][2] * local[2][k] + origin)
                    })
                })
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math;
    use crate::pose::ModelPose;
    use crate::skeleton::Joint;

    /// A repeatable stream of numbers in −1..1.
    struct Stream(u64);

    impl Stream {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }

        fn transform(&mut self) -> Transform {
            let mut v = || DVec3::new(self.next(), self.next(), self.next());
            let (axis, t, s) = (v(), v(), v());
            Transform {
                rotation: math::from_rotation_vector(axis * 3.0),
                translation: t * 2.0,
                scale: DVec3::ONE + s * 0.5,
            }
        }

        fn pose(&mut self, joints: usize) -> RuntimePose {
            let mut pose = RuntimePose::identity(joints);
            for j in 0..joints {
                pose.set(j, &self.transform());
            }
            pose
        }
    }

    fn bits(pose: &RuntimePose) -> Vec<u32> {
        let rows =
            |b: &JointBlock| b.rotation.into_iter().chain(b.translation).chain(b.scale).collect::<Vec<_>>();
        pose.blocks.iter().flat_map(rows).flatten().map(f32::to_bits).collect()
    }

    fn levels() -> Vec<Level> {
        vec![Level::new(), Level::baseline()]
    }

    #[test]
    fn every_level_blends_like_the_plain_twin_to_the_bit() {
        let mut s = Stream(1);
        for joints in [1, 7, 8, 50] {
            for weight in [0.0, 0.1, 0.5, 0.77, 1.0] {
                let (a, b) = (s.pose(joints), s.pose(joints));
                let weights: Vec<f32> = (0..joints).map(|_| s.next().abs() as f32).collect();
                for mask in [None, Some(RuntimeMask::new(&weights))] {
                    let (mut o, mut d) = (a.clone(), a.clone());
                    plain::blend_override(&mut o, &b, weight, mask.as_ref());
                    plain::blend_additive(&mut d, &b, weight, mask.as_ref());
                    for level in levels() {
                        let (mut fo, mut fd) = (a.clone(), a.clone());
                        blend_override(level, &mut fo, &b, weight, mask.as_ref());
                        blend_additive(level, &mut fd, &b, weight, mask.as_ref());
                        assert_eq!(bits(&fo), bits(&o));
                        assert_eq!(bits(&fd), bits(&d));
                    }
                }
            }
        }
    }

    /// Largest angle between the formula and an f64 slerp, over arcs and places that `arc` gives.
    fn worst_slerp(count: usize, mut arc: impl FnMut(&mut Stream) -> (DQuat, DQuat, f64)) -> f64 {
        let mut s = Stream(2);
        let mut worst = 0.0f64;
        for _ in 0..count {
            let (a, b, t) = arc(&mut s);
            // What f32 leaves of the two is what is blended.
            let f = |q: DQuat| q.to_array().map(|v| v as f32);
            let unit = |q: [f32; 4]| math::normalize(DQuat::from_array(q.map(f64::from)));
            let q = plain::slerp(f(a), f(b), t as f32);
            let truth = math::slerp(unit(f(a)), unit(f(b)), f64::from(t as f32));
            worst = worst.max(math::angle_between(unit(q), truth));
        }
        worst
    }

    #[test]
    fn the_formula_is_a_slerp_to_the_last_bits_of_f32() {
        // 1.8e-7 of the formula and as much of four roundings of 6e-8 in cosine and weights, doubled by
        // the step from quaternions to turns.
        let limit = 1.0e-6;
        let anywhere = |s: &mut Stream| (s.transform().rotation, s.transform().rotation);
        let whole = worst_slerp(20_000, |s| {
            let (a, b) = anywhere(s);
            (a, b, 0.5 * (s.next() + 1.0))
        });
        assert!(whole < limit, "{whole}");
        // Arcs of every size, down to none, and of half a turn, where both ways are as short.
        for size in [0.0, 1e-6, 1e-3, 0.1, 1.0, 2.0, 3.0, 3.1] {
            let some = worst_slerp(2_000, |s| {
                let axis = DVec3::new(s.next(), s.next(), s.next()).normalize();
                let a = s.transform().rotation;
                (a, math::axis_angle(axis, size) * a, 0.5 * (s.next() + 1.0))
            });
            assert!(some < limit, "{some} over {size}");
        }
        for t in [0.0, 1e-6, 0.25, 0.5, 1.0 - 1e-6, 1.0] {
            let ends = worst_slerp(2_000, |s| {
                let (a, b) = anywhere(s);
                (a, b, t)
            });
            assert!(ends < limit, "{ends} at {t}");
        }
    }

    #[test]
    fn a_thousand_layers_keep_rotations_at_unit_length() {
        let mut s = Stream(5);
        let (mut below, layers) = (s.pose(8), [s.pose(8), s.pose(8), s.pose(8)]);
        for k in 0..1000 {
            blend_override(best_level(), &mut below, &layers[k % 3], 0.3, None);
            blend_additive(best_level(), &mut below, &layers[(k + 1) % 3], 0.01, None);
        }
        for j in 0..8 {
            assert!((below.get(j).rotation.length() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_world_is_that_of_the_model_and_the_same_at_every_level() {
        let mut s = Stream(3);
        let joints = (0..30)
            .map(|i| Joint::new(format!("j{i}"), if i == 0 { None } else { Some(i * 7 % i) }, s.transform()))
            .collect();
        let skeleton = Skeleton::new(joints).unwrap();
        let rig = RuntimeRig::new(&skeleton).unwrap();
        let model = ModelPose::of(&skeleton, &LocalPose::rest(&skeleton));
        let mut plain_world = Vec::new();
        plain::local_to_world(&rig, rig.rest(), &mut plain_world);
        for level in levels() {
            let mut world = Vec::new();
            local_to_world(level, &rig, rig.rest(), &mut world);
            assert_eq!(world, plain_world);
        }
        for (i, &node) in rig.nodes().iter().enumerate() {
            let m = model.joints[node];
            for (r, row) in plain_world[i].iter().enumerate() {
                let expected = [m.x_axis[r], m.y_axis[r], m.z_axis[r], m.translation[r]];
                for k in 0..4 {
                    assert!((f64::from(row[k]) - expected[k]).abs() < 1e-4 * (1.0 + expected[k].abs()));
                }
            }
        }
    }
}
