//! Opened clips and their sampling: any time, either direction, any part, in constant time.
//!
//! Opening reads the head into small tables and checks everything once; sampling then cannot
//! fail, allocates nothing and reads the segments where they lie. A time falls between two frames;
//! both are decoded and blended, rotations by the normalised mean the short way.

use fearless_simd::Simd;

use crate::content::{Group, NodeConstants, Target, Times, segment_of, segment_start};
use crate::encode::{constant_rotation, constant_translation, middle_quat};
use crate::format::{
    DecodeError, PADDING, Widths, blocks, invalid, offset_size, segment_ranges, wide_blocks,
};
use crate::kernel::{self, Row, Spot, Values};
use crate::quantize::{basis, exp8};

/// Local transform of a node as a game wants it: 40 bytes, metres, a unit quaternion x, y, z, w.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct JointTransform {
    /// Unit quaternion x, y, z, w.
    pub rotation: [f32; 4],
    /// Metres.
    pub translation: [f32; 3],
    /// 1 = unchanged.
    pub scale: [f32; 3],
}

impl JointTransform {
    /// No turn, no move, scale one.
    pub const IDENTITY: Self =
        Self { rotation: [0.0, 0.0, 0.0, 1.0], translation: [0.0; 3], scale: [1.0; 3] };
}

impl Default for JointTransform {
    fn default() -> Self {
        Self::IDENTITY
    }
}

/// Which nodes are wanted. Blocks without a wanted node are not decoded at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMask {
    words: Vec<u64>,
}

impl NodeMask {
    /// The nodes for which `wanted` is true, of `count`.
    pub fn new(count: usize, wanted: impl Fn(usize) -> bool) -> Self {
        let mut words = vec![0u64; count.div_ceil(64)];
        for n in (0..count).filter(|&n| wanted(n)) {
            words[n / 64] |= 1 << (n % 64);
        }
        Self { words }
    }

    /// True if the node is wanted.
    pub fn contains(&self, node: usize) -> bool {
        self.words.get(node / 64).is_some_and(|w| w >> (node % 64) & 1 != 0)
    }
}

/// What the lanes of a block give.
#[derive(Clone, Debug)]
pub(crate) enum Gives {
    /// Rotations of these nodes, away from these middles.
    Rotations { nodes: Vec<u32>, middle: [[f32; 8]; 4] },
    /// Single values.
    Values(Vec<Target>),
}

/// A block of lanes, ready to decode.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub rows: [Row; 3],
    pub gives: Gives,
    /// True if some lane moves a node; if some lane belongs to a track that moves none.
    nodes: bool,
    tracks: bool,
}

/// A group, ready to decode.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub times: Times,
    pub frames: usize,
    pub closed: bool,
    pub scales: Vec<i16>,
    pub blocks: Vec<Block>,
    /// Where the group's payload lies among the clip's bytes.
    pub payload: std::ops::Range<usize>,
    offset: usize,
    wide: usize,
    /// First stored frame of each segment, and the end.
    starts: Vec<u32>,
    /// The basis of the shorter segments, then of those one frame longer.
    bases: Vec<[f32; 3]>,
    /// Times of the first and last frame.
    ends: [f64; 2],
}

/// What all frames of a segment have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSpot {
    /// Its first stored frame, and how many it has.
    pub start: u32,
    pub frames: u32,
    /// Its scale of all steps.
    pub scale: f32,
    /// Where the basis of its first frame is.
    pub first: u32,
}

/// Two frames and how far between them a time lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Between {
    pub first: usize,
    pub second: usize,
    pub blend: f32,
}

impl Times {
    /// Time of a frame, seconds.
    pub(crate) fn at(&self, frame: usize) -> f64 {
        match self {
            Times::Uniform { start, num, den, end } => {
                (start + frame as f64 * f64::from(*den) / f64::from(*num)).min(*end)
            }
            Times::Listed(t) => t[frame],
        }
    }

    /// The frames around `time`, held at both ends.
    pub(crate) fn between(&self, time: f64, frames: usize) -> Between {
        self.between_ends(time, frames, [self.at(0), self.at(frames - 1)])
    }

    /// The same where the times of the first and last frame are known.
    #[inline(always)]
    fn between_ends(&self, time: f64, frames: usize, ends: [f64; 2]) -> Between {
        let last = frames - 1;
        let still = |f| Between { first: f, second: f, blend: 0.0 };
        if time <= ends[0] || time.is_nan() {
            return still(0);
        }
        if time >= ends[1] {
            return still(last);
        }
        let (first, a, b) = match self {
            Times::Uniform { start, num, den, .. } => {
                let guess = ((time - start) * f64::from(*num) / f64::from(*den)) as usize;
                let f = guess.min(last - 1);
                let (a, b) = (self.at(f), self.at(f + 1));
                // The division may land a frame off where the time is a frame's own.
                if a > time && f > 0 {
                    (f - 1, self.at(f - 1), a)
                } else if f + 1 < last && b <= time {
                    (f + 1, b, self.at(f + 2))
                } else {
                    (f, a, b)
                }
            }
            Times::Listed(t) => {
                let f = t.partition_point(|&k| k <= time) - 1;
                (f, t[f], t[f + 1])
            }
        };
        let blend = ((time - a) / (b - a)) as f32;
        if blend >= 1.0 {
            still(first + 1)
        } else if blend > 0.0 {
            Between { first, second: first + 1, blend }
        } else {
            // Also where two frames have one time, far from 0.
            still(first)
        }
    }
}

impl Table {
    /// Prepares a group whose payload is `payload`, checking every segment and block.
    pub fn new(
        group: &Group,
        widths: &[Widths],
        payload: &[u8],
        range: std::ops::Range<usize>,
    ) -> Result<Self, DecodeError> {
        let segments = group.scales.len();
        let ranges = segment_ranges(payload, segments, PADDING)?;
        let stored = group.stored();
        let mut out = Vec::new();
        let list = crate::format::lanes(group);
        for (i, lanes) in blocks(group.rotations.len(), group.values.len()).iter().enumerate() {
            let rotation = i < group.rotations.len().div_ceil(8);
            let per_row = if rotation { lanes.len() / 3 } else { 8 };
            let mut rows: [Row; 3] = Default::default();
            for (k, &l) in lanes.iter().enumerate() {
                let (r, c) = (k / per_row, k % per_row);
                rows[r].used = c + 1;
                for b in 0..4 {
                    rows[r].bits[b][c] = widths[l][b];
                }
                rows[r].step[c] = exp8(list[l].step8);
                rows[r].bias[c] = list[l].bias;
            }
            rows.iter_mut().for_each(Row::prepare);
            let gives = if rotation {
                let members = &group.rotations[i * 8..(i * 8 + per_row)];
                let mut middle = [[0.0; 8]; 4];
                middle[3] = [1.0; 8];
                for (c, r) in members.iter().enumerate() {
                    let q = middle_quat(r.middle);
                    for k in 0..4 {
                        middle[k][c] = q[k];
                    }
                }
                Gives::Rotations { nodes: members.iter().map(|r| r.node).collect(), middle }
            } else {
                let first = lanes[0] - group.rotations.len() * 3;
                Gives::Values(group.values[first..first + lanes.len()].iter().map(|v| v.target).collect())
            };
            let tracks = match &gives {
                Gives::Rotations { .. } => 0,
                Gives::Values(t) => t.iter().filter(|t| matches!(t, Target::Track(..))).count(),
            };
            out.push(Block { rows, gives, nodes: tracks < lanes.len(), tracks: tracks > 0 });
        }
        let wide = wide_blocks(out.len());
        // Every block must lie inside its segment, with all the bits its forms ask for.
        for (s, &(start, end)) in ranges.iter().enumerate() {
            let body = &payload[start..end];
            let frames = segment_start(s + 1, segments, stored) - segment_start(s, segments, stored);
            for (b, block) in out.iter().enumerate() {
                let at = block_start(body, b, out.len(), wide);
                let lanes: usize = block.rows.iter().map(|r| r.used).sum();
                let Some(forms) = body.get(at..at + lanes) else {
                    return Err(invalid(
                        "clip, blocks",
                        format!("block {b} of segment {s} begins at byte {at} of {}", body.len()),
                    ));
                };
                let mut bits = 0u64;
                let mut k = 0;
                for row in &block.rows {
                    for l in 0..row.used {
                        bits += row.lane_bits(l, forms[k], frames as u32);
                        k += 1;
                    }
                }
                let need = at as u64 + lanes as u64 + bits.div_ceil(8);
                if need > body.len() as u64 {
                    return Err(invalid(
                        "clip, blocks",
                        format!("block {b} of segment {s} needs {need} bytes of {}", body.len()),
                    ));
                }
            }
        }
        let total = payload.len() - PADDING;
        let offset = [2, 3, 4]
            .into_iter()
            .find(|s| total >= segments * s && offset_size(total - segments * s) == *s)
            .unwrap_or(4);
        let short = stored / segments;
        Ok(Self {
            starts: (0..=segments).map(|s| segment_start(s, segments, stored) as u32).collect(),
            bases: [short, short + 1].into_iter().flat_map(|n| (0..n).map(move |i| basis(i, n))).collect(),
            ends: [group.times.at(0), group.times.at(group.frames - 1)],
            times: group.times.clone(),
            frames: group.frames,
            closed: group.closed,
            scales: group.scales.iter().map(|s| *s as i16).collect(),
            blocks: out,
            payload: range,
            offset,
            wide,
        })
    }

    pub fn stored(&self) -> usize {
        self.frames - usize::from(self.closed)
    }

    /// The stored frame that is played as `frame`.
    #[inline(always)]
    pub fn stored_frame(&self, frame: usize) -> usize {
        if self.closed && frame + 1 == self.frames { 0 } else { frame }
    }

    /// The bytes of a segment (and all that follows it).
    #[inline(always)]
    fn segment<'a>(&self, payload: &'a [u8], s: usize) -> &'a [u8] {
        let segments = self.scales.len();
        let end_of = |s: usize| {
            let at = s * self.offset;
            // The padding lets four bytes be read; those past a short offset are cut off.
            let word = u32::from_le_bytes([payload[at], payload[at + 1], payload[at + 2], payload[at + 3]]);
            (word & (u32::MAX >> (32 - 8 * self.offset as u32))) as usize
        };
        let start = if s == 0 { 0 } else { end_of(s - 1) };
        &payload[segments * self.offset + start..]
    }

    /// The frames around `time`.
    #[inline(always)]
    pub fn between(&self, time: f64) -> Between {
        self.times.between_ends(time, self.frames, self.ends)
    }

    #[inline(always)]
    fn spot(&self, s: usize, frame: usize, pair: bool) -> Spot {
        let SegmentSpot { start, frames, scale, first } = self.segment_spot(s);
        let i = frame as u32 - start;
        let basis = [self.basis(first + i), self.basis(first + i + u32::from(pair))];
        Spot { frames, frame: i, basis, pair, scale }
    }

    /// Where to look for one stored frame.
    #[inline(always)]
    pub fn place<'a>(&self, payload: &'a [u8], frame: usize) -> Place<'a> {
        let s = segment_of(frame, self.scales.len(), self.stored());
        Place { bytes: self.segment(payload, s), spot: self.spot(s, frame, false) }
    }

    /// Where to look for two frames: one place, or two if they lie in different segments.
    #[inline(always)]
    pub fn places<'a>(&self, payload: &'a [u8], at: Between) -> (Place<'a>, Option<Place<'a>>) {
        let (segments, stored) = (self.scales.len(), self.stored());
        let (f, g) = (self.stored_frame(at.first), self.stored_frame(at.second));
        let s = segment_of(f, segments, stored);
        if at.blend == 0.0 {
            return (Place { bytes: self.segment(payload, s), spot: self.spot(s, f, false) }, None);
        }
        if g == f + 1 && g < self.starts[s + 1] as usize {
            return (Place { bytes: self.segment(payload, s), spot: self.spot(s, f, true) }, None);
        }
        (
            Place { bytes: self.segment(payload, s), spot: self.spot(s, f, false) },
            Some(self.place(payload, g)),
        )
    }

    /// Where a block begins in the group's payload, in segment `segment`.
    pub fn block_at(&self, payload: &[u8], segment: usize, block: usize) -> usize {
        let bytes = self.segment(payload, segment);
        (payload.len() - bytes.len()).saturating_add(block_start(bytes, block, self.blocks.len(), self.wide))
    }

    #[inline(always)]
    pub fn segment_spot(&self, s: usize) -> SegmentSpot {
        let (start, end) = (self.starts[s], self.starts[s + 1]);
        // The shorter ones' basis comes first.
        let short = (self.stored() / self.scales.len()) as u32;
        let first = if end - start == short { 0 } else { short };
        SegmentSpot { start, frames: end - start, scale: exp8(i32::from(self.scales[s])), first }
    }

    #[inline(always)]
    pub fn basis(&self, index: u32) -> [f32; 3] {
        self.bases[index as usize]
    }

    #[inline(always)]
    pub fn block_bytes<'a>(&self, segment: &'a [u8], block: usize) -> &'a [u8] {
        let at = block_start(segment, block, self.blocks.len(), self.wide);
        segment.get(at..).unwrap_or(&[])
    }
}

impl Row {
    fn lane_bits(&self, l: usize, form: u8, frames: u32) -> u64 {
        let form = crate::format::form(form);
        let c: u32 = (0..=form.degree()).map(|k| u32::from(self.bits[k][l])).sum();
        u64::from(c) + u64::from(form.width() * frames)
    }
}

/// A segment and a frame in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub bytes: &'a [u8],
    pub spot: Spot,
}

#[inline(always)]
fn block_start(segment: &[u8], block: usize, blocks: usize, wide: usize) -> usize {
    if block == 0 {
        return (blocks - 1) * wide;
    }
    let at = (block - 1) * wide;
    match segment.get(at..at + 4) {
        // The bytes after a short offset are not its own.
        Some(&[a, b, c, d]) => {
            u32::from_le_bytes(if wide == 2 { [a, b, 0, 0] } else { [a, b, c, d] }) as usize
        }
        _ => usize::MAX / 2,
    }
}

/// The pose of what stands still.
pub(crate) fn still_pose(
    constants: &[NodeConstants],
    rest: impl Fn(usize) -> JointTransform,
    stands: &[[bool; 3]],
) -> Vec<JointTransform> {
    constants
        .iter()
        .enumerate()
        .map(|(n, c)| {
            let rest = rest(n);
            let s = stands.get(n).copied().unwrap_or_default();
            JointTransform {
                rotation: if s[0] { rest.rotation } else { constant_rotation(&c.rotation) },
                translation: if s[1] { rest.translation } else { constant_translation(&c.translation) },
                scale: if s[2] { rest.scale } else { c.scale.unwrap_or([1.0; 3]) },
            }
        })
        .collect()
}

/// What sampling writes into.
pub(crate) trait PoseOut {
    fn rotation(&mut self, node: usize, q: [f32; 4]);
    fn translation(&mut self, node: usize, axis: usize, v: f32);
    fn scale(&mut self, node: usize, axis: usize, v: f32);
    fn track(&mut self, track: usize, component: usize, v: f32);
}

/// Which lanes are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'m> {
    /// These nodes alone.
    pub mask: Option<&'m NodeMask>,
    pub nodes: bool,
    pub tracks: bool,
}

impl Wanted<'_> {
    #[inline(always)]
    fn node(&self, node: u32) -> bool {
        self.mask.is_none_or(|m| m.contains(node as usize))
    }

    /// True if some lane of the block is asked for.
    #[inline(always)]
    fn block(&self, block: &Block) -> bool {
        if self.tracks && block.tracks {
            return true;
        }
        if !(self.nodes && block.nodes) || self.mask.is_none() {
            return self.nodes && block.nodes;
        }
        match &block.gives {
            Gives::Rotations { nodes, .. } => nodes.iter().any(|&n| self.node(n)),
            Gives::Values(targets) => targets.iter().any(|t| match t {
                Target::Translation(n, _) | Target::Scale(n, _) => self.node(*n),
                Target::Track(..) => false,
            }),
        }
    }
}

/// Decodes blocks of a group at `time` into `out`: all, or those that are `wanted`.
#[inline(always)]
pub(crate) fn sample_group<S: Simd, O: PoseOut>(
    simd: S,
    table: &Table,
    payload: &[u8],
    time: f64,
    wanted: Wanted<'_>,
    out: &mut O,
) {
    let at = table.between(time);
    let (one, two) = table.places(payload, at);
    for (b, block) in table.blocks.iter().enumerate() {
        if !wanted.block(block) {
            continue;
        }
        let v = both(simd, table, b, &one, two.as_ref());
        match &block.gives {
            Gives::Rotations { nodes, middle } => {
                give_rotations(nodes, &kernel::turn8(simd, &v, middle, at.blend), wanted, out);
            }
            Gives::Values(targets) => give_values(targets, &v, at.blend, wanted, out),
        }
    }
}

/// A block at two frames.
#[inline(always)]
fn both<S: Simd>(simd: S, table: &Table, b: usize, one: &Place<'_>, two: Option<&Place<'_>>) -> Values {
    let rows = &table.blocks[b].rows;
    let mut v = kernel::block(simd, table.block_bytes(one.bytes, b), rows, &one.spot);
    if let Some(two) = two {
        v[1] = kernel::block(simd, table.block_bytes(two.bytes, b), rows, &two.spot)[0];
    }
    v
}

/// What a player keeps of a group between two samples: each block at the two frames it was last
/// asked for, rotations as quaternions. While time stays between the same frames nothing is
/// decoded; when it moves on by a frame, one.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    blocks: Vec<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    frames: [u32; 2],
    values: [[[f32; 8]; 4]; 2],
}

impl Window {
    pub fn new(table: &Table) -> Self {
        let none = Held { frames: [u32::MAX; 2], values: [[[0.0; 8]; 4]; 2] };
        Self { blocks: vec![none; table.blocks.len()] }
    }
}

/// The same as [`sample_group`], to the bit, with what was decoded before in `window`.
#[inline(always)]
pub(crate) fn play_group<S: Simd, O: PoseOut>(
    simd: S,
    table: &Table,
    payload: &[u8],
    time: f64,
    wanted: Wanted<'_>,
    window: &mut Window,
    out: &mut O,
) {
    let at = table.between(time);
    let frames = [table.stored_frame(at.first) as u32, table.stored_frame(at.second) as u32];
    let needs_second = at.blend != 0.0;
    // Found when first needed: between two frames nothing is.
    let (mut pair, mut single) = (None, [None; 2]);
    for (b, (block, held)) in table.blocks.iter().zip(&mut window.blocks).enumerate() {
        if !wanted.block(block) {
            continue;
        }
        if held.frames != frames {
            // A step forward makes the second frame the first one; a step back, the other way.
            if held.frames[1] == frames[0] || held.frames[0] == frames[1] {
                held.frames.swap(0, 1);
                held.values.swap(0, 1);
            }
            let missing = [held.frames[0] != frames[0], needs_second && held.frames[1] != frames[1]];
            if missing == [true, true] {
                let (one, two) = *pair.get_or_insert_with(|| table.places(payload, at));
                let v = both(simd, table, b, &one, two.as_ref());
                held.values = [keep(simd, block, &v[0]), keep(simd, block, &v[1])];
                held.frames = frames;
            } else {
                for k in 0..2 {
                    if missing[k] {
                        let place =
                            *single[k].get_or_insert_with(|| table.place(payload, frames[k] as usize));
                        let v = both(simd, table, b, &place, None);
                        held.values[k] = keep(simd, block, &v[0]);
                        held.frames[k] = frames[k];
                    }
                }
            }
        }
        match &block.gives {
            Gives::Rotations { nodes, middle } => {
                give_rotations(nodes, &kernel::kept8(simd, &held.values, middle, at.blend), wanted, out);
            }
            Gives::Values(targets) => {
                let [[a0, a1, a2, _], [b0, b1, b2, _]] = held.values;
                give_values(targets, &[[a0, a1, a2], [b0, b1, b2]], at.blend, wanted, out);
            }
        }
    }
}

#[inline(always)]
fn keep<S: Simd>(simd: S, block: &Block, v: &[[f32; 8]; 3]) -> [[f32; 8]; 4] {
    match block.gives {
        Gives::Rotations { .. } => kernel::quaternions8(simd, v),
        Gives::Values(_) => [v[0], v[1], v[2], [0.0; 8]],
    }
}

#[inline(always)]
fn give_rotations<O: PoseOut>(nodes: &[u32], q: &[[f32; 4]; 8], wanted: Wanted<'_>, out: &mut O) {
    for (&n, q) in nodes.iter().zip(q) {
        if wanted.node(n) {
            out.rotation(n as usize, *q);
        }
    }
}

#[inline(always)]
fn give_values<O: PoseOut>(targets: &[Target], v: &Values, blend: f32, wanted: Wanted<'_>, out: &mut O) {
    let (a, b) = (v[0].as_flattened(), v[1].as_flattened());
    for (l, t) in targets.iter().enumerate() {
        let value = if blend == 0.0 { a[l] } else { kernel::mix(a[l], b[l], blend) };
        match *t {
            Target::Translation(n, a) if wanted.nodes && wanted.node(n) => {
                out.translation(n as usize, usize::from(a), value);
            }
            Target::Scale(n, a) if wanted.nodes && wanted.node(n) => {
                out.scale(n as usize, usize::from(a), value);
            }
            Target::Track(t, c) if wanted.tracks => out.track(t as usize, usize::from(c), value),
            _ => {}
        }
    }
}

/// The plain twin of [`sample_group`] without a mask.
pub(crate) fn plain_group<O: PoseOut>(table: &Table, payload: &[u8], time: f64, out: &mut O) {
    let at = table.times.between(time, table.frames);
    let (one, two) = table.places(payload, at);
    for (b, block) in table.blocks.iter().enumerate() {
        let mut v = kernel::plain_block(table.block_bytes(one.bytes, b), &block.rows, &one.spot);
        if let Some(two) = &two {
            v[1] = kernel::plain_block(table.block_bytes(two.bytes, b), &block.rows, &two.spot)[0];
        }
        match &block.gives {
            Gives::Rotations { nodes, middle } => {
                for (l, &n) in nodes.iter().enumerate() {
                    let row = |f: usize| std::array::from_fn(|r| v[f][r][l]);
                    let m = std::array::from_fn(|k| middle[k][l]);
                    out.rotation(n as usize, kernel::plain_turn(row(0), row(1), m, at.blend));
                }
            }
            Gives::Values(targets) => {
                give_values(targets, &v, at.blend, Wanted { mask: None, nodes: true, tracks: true }, out);
            }
        }
    }
}

impl PoseOut for &mut [JointTransform] {
    #[inline(always)]
    fn rotation(&mut self, node: usize, q: [f32; 4]) {
        if let Some(t) = self.get_mut(node) {
            t.rotation = q;
        }
    }
    #[inline(always)]
    fn translation(&mut self, node: usize, axis: usize, v: f32) {
        if let Some(t) = self.get_mut(node) {
            t.translation[axis] = v;
        }
    }
    #[inline(always)]
    fn scale(&mut self, node: usize, axis: usize, v: f32) {
        if let Some(t) = self.get_mut(node) {
            t.scale[axis] = v;
        }
    }
    #[inline(always)]
    fn track(&mut self, _: usize, _: usize, _: f32) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_time_far_from_zero_give_a_blend_that_is_a_number() {
        let times = Times::Uniform { start: 1e15, num: 30, den: 1, end: 1e15 + 4.0 };
        let mut alike = 0;
        for k in 0..=32 {
            let at = times.between(1e15 + f64::from(k) * 0.125, 121);
            assert!((0.0..1.0).contains(&at.blend), "{at:?} at {k}");
            alike += usize::from(times.at(at.first) == times.at(at.first + usize::from(at.first < 120)));
        }
        assert!(alike > 1, "some frames have one time");
    }
}
