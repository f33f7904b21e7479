//! The world over a stretch of time: where every node should be, where it is with the keys there are now, and
//! where it would be if one track changed.
//!
//! All nodes stand in one row in the skeleton's depth-first order, so everything that hangs on a node is one
//! run behind it. If one node's own transform changes, its matrix W becomes W′ and all of the run is moved by
//! the one matrix N = W′·W⁻¹, whatever lies between; a trial costs a matrix product per node and time and no
//! walk down the tree. Where W is singular (zero scale), the walk is made instead.

use std::ops::Range;

use glam::{DAffine3, DMat3, DVec3};

use super::moving::{Moving, Part, Value, put};
use crate::pose::matrix;
use crate::sample::sample_track;
use crate::skeleton::{ScaleInherit, Skeleton, Transform};
use crate::track::TrackData;

/// The skeleton in depth-first order, with what a stage needs to know of it.
pub struct Rig<'a> {
    pub skeleton: &'a Skeleton,
    /// Place in the row, by node.
    pub place: Vec<usize>,
    /// Node, by place.
    pub node: Vec<usize>,
    /// Parent's place, by place.
    pub parent: Vec<Option<usize>>,
    /// End of the run of what hangs on the node, by place.
    pub end: Vec<usize>,
    /// Distance in the node's own axes of the three shell points, by place.
    pub shell: Vec<DVec3>,
    /// False for places whose nodes nothing moves.
    pub watched: Vec<bool>,
    /// True if some node does not inherit its parent's scale in full.
    pub special: bool,
}

impl<'a> Rig<'a> {
    /// `shell`: by node, the offsets of the shell points along the node's own axes.
    pub fn new(skeleton: &'a Skeleton, shell: &[DVec3], moving: &[Moving]) -> Self {
        let n = skeleton.len();
        let node = skeleton.order().to_vec();
        let mut place = vec![0; n];
        for (p, &i) in node.iter().enumerate() {
            place[i] = p;
        }
        let parent: Vec<Option<usize>> =
            node.iter().map(|&i| skeleton.joints()[i].parent.map(|q| place[q])).collect();
        let mut end: Vec<usize> = (1..=n).collect();
        for p in (0..n).rev() {
            if let Some(q) = parent[p] {
                end[q] = end[q].max(end[p]);
            }
        }
        let mut watched = vec![false; n];
        for track in moving {
            watched[place[track.node]] = true;
        }
        for p in 0..n {
            watched[p] |= parent[p].is_some_and(|q| watched[q]);
        }
        let shell = node.iter().map(|&i| shell[i]).collect();
        let special = skeleton.joints().iter().any(|j| j.inherit != ScaleInherit::Full);
        Self { skeleton, place, node, parent, end, shell, watched, special }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.node.len()
    }

    /// The local matrix of the node at a place.
    #[inline]
    pub fn local(&self, place: usize, raw: &Transform) -> DAffine3 {
        match &self.skeleton.joints()[self.node[place]].pivot {
            Some(pivot) => matrix(&pivot.fold(*raw)),
            None => matrix(raw),
        }
    }

    /// How the node at a place takes over scale.
    fn inherit(&self, place: usize) -> ScaleInherit {
        self.skeleton.joints()[self.node[place]].inherit
    }

    /// Walks down the tree: world matrices of one time from raw transforms. `unscaled` takes the axes of each
    /// node without its own scale, and is empty where no node needs them.
    fn forward(&self, raw: &[Transform], world: &mut [DAffine3], unscaled: &mut [DMat3]) {
        let mut scales = if self.special { vec![DVec3::ONE; self.len()] } else { Vec::new() };
        for p in 0..self.len() {
            let local = self.local(p, &raw[p]);
            if !self.special {
                world[p] = match self.parent[p] {
                    Some(q) => world[q] * local,
                    None => local,
                };
                continue;
            }
            let turn = DMat3::from_quat(raw[p].rotation);
            let inherit = self.inherit(p);
            scales[p] = raw[p].scale;
            match self.parent[p] {
                None => {
                    world[p] = local;
                    unscaled[p] = turn;
                }
                Some(q) if inherit == ScaleInherit::Full => {
                    world[p] = world[q] * local;
                    unscaled[p] = world[q].matrix3 * turn;
                }
                Some(q) => {
                    if inherit == ScaleInherit::Componentwise {
                        scales[p] = scales[q] * raw[p].scale;
                    }
                    unscaled[p] = unscaled[q] * turn;
                    world[p] = DAffine3 {
                        matrix3: unscaled[p] * DMat3::from_diagonal(scales[p]),
                        translation: world[q].transform_point3(local.translation),
                    };
                }
            }
        }
    }
}

/// What a track that moves a node should be.
pub struct Truth<'a> {
    pub node: usize,
    pub part: Part,
    pub data: &'a TrackData,
}

/// A stretch of the grid of times with its worlds.
pub struct Stage<'a> {
    pub rig: &'a Rig<'a>,
    /// The grid indices it covers.
    pub range: Range<usize>,
    /// Where the nodes should be: `[time][place]`.
    reference: Vec<DAffine3>,
    /// Where they are.
    world: Vec<DAffine3>,
    /// Their axes without their own scale, where some node needs them.
    unscaled: Vec<DMat3>,
    /// Their transforms before pivots.
    raw: Vec<Transform>,
    /// Distance from the origin of each node to the farthest point that hangs on it, where it should be.
    pub reach: Vec<f32>,
}

/// The error of one node: the largest squared distance of its origin and its shell points.
#[inline]
fn node_error2(reference: &DAffine3, world: &DAffine3, shell: DVec3) -> f64 {
    let d = world.translation - reference.translation;
    let x = d + (world.matrix3.x_axis - reference.matrix3.x_axis) * shell.x;
    let y = d + (world.matrix3.y_axis - reference.matrix3.y_axis) * shell.y;
    let z = d + (world.matrix3.z_axis - reference.matrix3.z_axis) * shell.z;
    d.length_squared().max(x.length_squared()).max(y.length_squared().max(z.length_squared()))
}

impl<'a> Stage<'a> {
    /// The stage of the grid times in `range`. `truth` holds what every track that moves a node should be,
    /// `moving` those of them that are being reduced; the others play as they are.
    pub fn new(
        rig: &'a Rig<'a>,
        truth: &[Truth],
        moving: &[Moving],
        times: &[f64],
        range: Range<usize>,
    ) -> Self {
        let n = rig.len();
        let length = range.len();
        let rest: Vec<Transform> = rig.node.iter().map(|&i| rig.skeleton.joints()[i].rest).collect();
        let mut raw: Vec<Transform> = Vec::with_capacity(n * length);
        for _ in 0..length {
            raw.extend_from_slice(&rest);
        }
        let mut reference = vec![DAffine3::IDENTITY; n * length];
        let mut world = reference.clone();
        let mut unscaled = if rig.special { vec![DMat3::IDENTITY; n * length] } else { Vec::new() };
        let row = |g: usize| if rig.special { g * n..(g + 1) * n } else { 0..0 };
        let times = &times[range.clone()];
        for track in truth {
            let place = rig.place[track.node];
            let values = sample_track(track.data, times);
            let width = if track.part == Part::Rotation { 4 } else { 3 };
            for (g, row) in values.chunks_exact(width).enumerate() {
                let value = [row[0], row[1], row[2], row.get(3).copied().unwrap_or(0.0)];
                put(&mut raw[g * n + place], track.part, value);
            }
        }
        for g in 0..length {
            rig.forward(&raw[g * n..(g + 1) * n], &mut reference[g * n..(g + 1) * n], &mut unscaled[row(g)]);
        }
        for track in moving {
            let place = rig.place[track.node];
            track.evaluate(times, |g, value| put(&mut raw[g * n + place], track.part, value));
        }
        for g in 0..length {
            rig.forward(&raw[g * n..(g + 1) * n], &mut world[g * n..(g + 1) * n], &mut unscaled[row(g)]);
        }
        let mut reach = vec![0.0_f32; n * length];
        for g in 0..length {
            let row = &reference[g * n..(g + 1) * n];
            for p in (0..n).filter(|&p| rig.watched[p]) {
                let origin = row[p].translation;
                let mut farthest = 0.0_f64;
                for q in p..rig.end[p] {
                    let shell = rig.shell[q];
                    let axes = row[q].matrix3;
                    let own = (axes.x_axis.length() * shell.x)
                        .max(axes.y_axis.length() * shell.y)
                        .max(axes.z_axis.length() * shell.z);
                    farthest = farthest.max((row[q].translation - origin).length() + own);
                }
                reach[g * n + p] = farthest as f32;
            }
        }
        Self { rig, range, reference, world, unscaled, raw, reach }
    }

    /// How far from the world's origin any watched node should get, its reach included.
    pub fn extent(&self) -> f64 {
        let n = self.rig.len();
        let far = |k: usize| self.reference[k].translation.length() + f64::from(self.reach[k]);
        (0..self.reference.len()).filter(|k| self.rig.watched[k % n]).map(far).fold(0.0, f64::max)
    }

    /// Index of a grid time and place.
    #[inline]
    pub fn at(&self, grid: usize, place: usize) -> usize {
        (grid - self.range.start) * self.rig.len() + place
    }

    /// The value a track has now at a grid time.
    #[inline]
    pub fn current(&self, grid: usize, place: usize, part: Part) -> Value {
        let raw = &self.raw[self.at(grid, place)];
        match part {
            Part::Translation => raw.translation.extend(0.0).to_array(),
            Part::Rotation => raw.rotation.to_array(),
            Part::Scale => raw.scale.extend(0.0).to_array(),
        }
    }

    /// The matrix of the parent now, or the identity.
    #[inline]
    pub fn parent(&self, grid: usize, place: usize) -> DAffine3 {
        match self.rig.parent[place] {
            Some(q) => self.world[self.at(grid, q)],
            None => DAffine3::IDENTITY,
        }
    }

    /// The matrix by which everything from `place` on is moved if its `part` becomes `value`; `None` if the
    /// node is flat now, so that there is none.
    #[inline]
    pub fn mover(&self, grid: usize, place: usize, part: Part, value: Value) -> Option<DAffine3> {
        let index = self.at(grid, place);
        let mut raw = self.raw[index];
        let now = self.world[index];
        let determinant = now.matrix3.determinant();
        let size = now.matrix3.x_axis.length() * now.matrix3.y_axis.length() * now.matrix3.z_axis.length();
        if determinant.abs() <= 1e-9 * size || size < 1e-30 {
            return None;
        }
        if self.rig.special && part == Part::Scale {
            return None;
        }
        put(&mut raw, part, value);
        let local = self.rig.local(place, &raw);
        let parent = self.parent(grid, place);
        if self.rig.special && self.rig.inherit(place) != ScaleInherit::Full {
            // World axes U·R·D, with the parent's unscaled axes U and scales D that stay as they are.
            let axes = match self.rig.parent[place] {
                Some(q) => self.unscaled[self.at(grid, q)],
                None => DMat3::IDENTITY,
            };
            let before = DMat3::from_quat(self.raw[index].rotation);
            let turn = axes * DMat3::from_quat(raw.rotation) * before.transpose() * axes.inverse();
            let origin = parent.transform_point3(local.translation);
            return Some(DAffine3 { matrix3: turn, translation: origin - turn * now.translation });
        }
        Some(parent * local * now.inverse())
    }

    /// The largest squared error at a grid time of what hangs on `place`, moved by `mover`; stops above `limit2`.
    #[inline]
    pub fn error2_moved(&self, grid: usize, place: usize, mover: &DAffine3, limit2: f64) -> f64 {
        let first = self.at(grid, place);
        let last = self.at(grid, self.rig.end[place]);
        let mut worst = 0.0_f64;
        for ((reference, world), shell) in
            self.reference[first..last].iter().zip(&self.world[first..last]).zip(&self.rig.shell[place..])
        {
            let error2 = node_error2(reference, &(*mover * *world), *shell);
            worst = worst.max(error2);
            if worst > limit2 {
                return worst;
            }
        }
        worst
    }

    /// The same by walking down the tree, for a node that is flat now.
    pub fn error2_walked(&self, grid: usize, place: usize, part: Part, value: Value) -> f64 {
        if self.rig.special {
            // What a flat node does to nodes that take over no scale is not followed: the trial is refused.
            return f64::INFINITY;
        }
        let mut worst = 0.0_f64;
        self.walk(grid, place, part, value, |p, world| {
            let error2 = node_error2(&self.reference[self.at(grid, p)], &world, self.rig.shell[p]);
            worst = worst.max(error2);
        });
        worst
    }

    /// Visits the run of `place` with its matrices if its `part` becomes `value`.
    fn walk(
        &self,
        grid: usize,
        place: usize,
        part: Part,
        value: Value,
        mut visit: impl FnMut(usize, DAffine3),
    ) {
        let end = self.rig.end[place];
        let mut run: Vec<DAffine3> = Vec::with_capacity(end - place);
        for p in place..end {
            let mut raw = self.raw[self.at(grid, p)];
            if p == place {
                put(&mut raw, part, value);
            }
            let local = self.rig.local(p, &raw);
            let world = match self.rig.parent[p] {
                Some(q) if q >= place => run[q - place] * local,
                Some(q) => self.world[self.at(grid, q)] * local,
                None => local,
            };
            run.push(world);
            visit(p, world);
        }
    }

    /// Makes a value of a track the present one; `mover` is what [`Self::mover`] gave for it.
    pub fn apply(&mut self, grid: usize, place: usize, part: Part, value: Value, mover: Option<&DAffine3>) {
        let index = self.at(grid, place);
        let run = self.rig.end[place] - place;
        if let Some(mover) = mover {
            for world in &mut self.world[index..index + run] {
                *world = *mover * *world;
            }
            if self.rig.special {
                for axes in &mut self.unscaled[index..index + run] {
                    *axes = mover.matrix3 * *axes;
                }
            }
        } else {
            let mut matrices = Vec::with_capacity(run);
            self.walk(grid, place, part, value, |_, world| matrices.push(world));
            self.world[index..index + run].copy_from_slice(&matrices);
        }
        put(&mut self.raw[index], part, value);
    }

    /// The largest squared error at a grid time over the run of `place` as it is now, and where.
    pub fn error2_now(&self, grid: usize, place: usize) -> (f64, usize) {
        let mut worst = (0.0, place);
        for p in place..self.rig.end[place] {
            let index = self.at(grid, p);
            let error2 = node_error2(&self.reference[index], &self.world[index], self.rig.shell[p]);
            if error2 > worst.0 {
                worst = (error2, p);
            }
        }
        worst
    }

    /// Adds to the normal equations of a correction of a rotation or translation at one grid time: `a` and `b`
    /// such that the correction δ (in the node's own axes, radians, or in the parent's, metres) that makes
    /// Σ w|r + J δ|² least solves a·δ = −b. `mover` as in [`Self::error2_moved`]. Points that are far off
    /// weigh more, so that the largest error comes down rather than the mean.
    pub fn normal(
        &self,
        grid: usize,
        place: usize,
        part: Part,
        mover: &DAffine3,
        bound2: f64,
    ) -> (DMat3, DVec3) {
        let first = self.at(grid, place);
        let last = self.at(grid, self.rig.end[place]);
        let own = *mover * self.world[first];
        let origin = own.translation;
        let mut a = DMat3::ZERO;
        let mut b = DVec3::ZERO;
        let mut weight = 0.0;
        let mut pull = DVec3::ZERO;
        for ((reference, world), shell) in
            self.reference[first..last].iter().zip(&self.world[first..last]).zip(&self.rig.shell[place..])
        {
            let world = *mover * *world;
            let off = world.translation - reference.translation;
            let arm = world.translation - origin;
            let axes = [
                (world.matrix3.x_axis, reference.matrix3.x_axis, shell.x),
                (world.matrix3.y_axis, reference.matrix3.y_axis, shell.y),
                (world.matrix3.z_axis, reference.matrix3.z_axis, shell.z),
            ];
            let points = [
                (off, arm),
                (off + (axes[0].0 - axes[0].1) * shell.x, arm + axes[0].0 * axes[0].2),
                (off + (axes[1].0 - axes[1].1) * shell.y, arm + axes[1].0 * axes[1].2),
                (off + (axes[2].0 - axes[2].1) * shell.z, arm + axes[2].0 * axes[2].2),
            ];
            for (off, arm) in points {
                // Half plain least squares, half its fourth power. Weighing the far points more still brings
                // down the largest error of a trial and yet keeps more keys in the end: it spends the room
                // that the next trials need.
                let w = 1.0 + off.length_squared() / bound2;
                match part {
                    Part::Rotation => {
                        let arm2 = arm.length_squared();
                        a.x_axis += w * (DVec3::new(arm2, 0.0, 0.0) - arm * arm.x);
                        a.y_axis += w * (DVec3::new(0.0, arm2, 0.0) - arm * arm.y);
                        a.z_axis += w * (DVec3::new(0.0, 0.0, arm2) - arm * arm.z);
                        b += w * arm.cross(off);
                    }
                    _ => {
                        weight += w;
                        pull += w * off;
                    }
                }
            }
        }
        match part {
            Part::Rotation => {
                let axes = own.matrix3;
                let mut r = DMat3::from_cols(
                    axes.x_axis.normalize_or_zero(),
                    axes.y_axis.normalize_or_zero(),
                    axes.z_axis.normalize_or_zero(),
                );
                if axes.determinant() < 0.0 {
                    r *= -1.0;
                }
                let t = r.transpose();
                (t * a * r, t * b)
            }
            _ => {
                let p = self.parent(grid, place).matrix3;
                let t = p.transpose();
                (t * p * weight, t * pull)
            }
        }
    }
}
