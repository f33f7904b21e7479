//! Opened files and clips: what they hold, and every way to ask for it.

use std::borrow::Cow;
use std::sync::Arc;

use fearless_simd::{Level, dispatch};
use inbetween::glam::{DQuat, DVec3};
use inbetween::{
    Binding, Clip, Curve, FrameRate, Marker, Property, Skeleton, Track, TrackData, Transform, ValueKind,
    Wrap, math,
};

use crate::content::{Group, Target};
use crate::decode::{
    self, Gives, JointTransform, NodeMask, Place, PoseOut, Table, Wanted, Window, play_group, sample_group,
    still_pose,
};
use crate::first_version;
use crate::format::{DecodeError, Fields, PADDING, Parts, Widths, invalid, read_file};
use crate::head::{ClipHead, Kept, code_clip, read_skeleton};
use crate::kernel;
use crate::prepared::PreparedNode;

impl JointTransform {
    /// The same in the f64 types of the model.
    pub fn to_model(&self) -> Transform {
        Transform {
            translation: DVec3::from_array(self.translation.map(f64::from)),
            rotation: math::normalize(DQuat::from_array(self.rotation.map(f64::from))),
            scale: DVec3::from_array(self.scale.map(f64::from)),
        }
    }

    fn of_model(t: &Transform) -> Self {
        Self {
            rotation: t.rotation.to_array().map(|v| v as f32),
            translation: t.translation.to_array().map(|v| v as f32),
            scale: t.scale.to_array().map(|v| v as f32),
        }
    }
}

/// An opened `.ibc` file in its runtime form.
#[derive(Clone, Debug)]
pub struct Library<'a> {
    /// The nodes all clips move; pivots are folded into the rest pose.
    pub skeleton: Skeleton,
    /// The clips, in the order of the file.
    pub clips: Vec<CompressedClip<'a>>,
}

impl<'a> Library<'a> {
    /// Opens a file where it lies, checking all of it.
    ///
    /// # Errors
    /// If the bytes are not an `.ibc` file in runtime form; see [`DecodeError`]. Any bytes may be
    /// given; memory use stays within a small multiple of their number.
    pub fn open(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Parts { version, at_rest, chunks } = read_file(bytes)?;
        if at_rest {
            return Err(DecodeError::AtRest);
        }
        let mut skeleton = None;
        let mut clips = Vec::new();
        for (tag, body) in chunks {
            match &tag {
                b"SKEL" if skeleton.is_none() && clips.is_empty() => skeleton = Some(read_skeleton(body)?),
                b"CLIP" => clips.push(CompressedClip::read(body, version, skeleton.as_ref())?),
                // Chunks of later releases that may be passed over begin with a small letter.
                [a, ..] if a.is_ascii_lowercase() => {}
                other => {
                    let name = String::from_utf8_lossy(other).into_owned();
                    return Err(invalid(
                        "chunks",
                        format!("a chunk {name:?} where SKEL or CLIP was expected"),
                    ));
                }
            }
        }
        Ok(Self { skeleton: skeleton.unwrap_or_default(), clips })
    }

    /// Opens a file in either form; one at rest is unpacked first.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn load(bytes: &[u8]) -> Result<Library<'static>, DecodeError> {
        let runtime = crate::at_rest::unpack(bytes)?;
        Ok(Library::open(&runtime)?.into_owned())
    }

    /// The same, owning its bytes.
    pub fn into_owned(self) -> Library<'static> {
        Library {
            skeleton: self.skeleton,
            clips: self.clips.into_iter().map(CompressedClip::into_owned).collect(),
        }
    }
}

/// A track of a clip that is not a node's rotation, translation or scale, or one of those kept as
/// exact keys.
#[derive(Clone, Debug)]
pub struct TrackInfo<'c> {
    /// What it drives.
    pub binding: &'c Binding,
    /// What its values are.
    pub kind: ValueKind,
    /// The value where nothing drives it.
    pub rest: &'c [f64],
    /// True if it is kept as keys, exactly.
    pub exact: bool,
}

/// A compressed clip, ready to sample at any time without allocating.
#[derive(Clone, Debug)]
pub struct CompressedClip<'a> {
    head: ClipHead,
    tables: Vec<Table>,
    /// Payloads of all groups.
    payload: Cow<'a, [u8]>,
    /// What stands still, and rest values under everything else.
    still: Vec<JointTransform>,
    rest: Vec<JointTransform>,
    level: Level,
    /// For each node where its lanes are.
    finder: Vec<Found>,
}

/// Where the lanes of a node are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// For each group that has some: its rotation (block, lane), and single values.
    pub groups: Vec<FoundIn>,
    /// Tracks of exact keys.
    keys: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct FoundIn {
    pub table: u32,
    pub rotation: Option<(u32, u32)>,
    pub values: Vec<(u32, u32)>,
}

impl Found {
    fn group(&mut self, table: usize) -> &mut FoundIn {
        let table = table as u32;
        // Groups come in order, so it is the last one or new.
        if self.groups.last().is_none_or(|g| g.table != table) {
            self.groups.push(FoundIn { table, rotation: None, values: Vec::new() });
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }
}

impl<'a> CompressedClip<'a> {
    /// Reads a `CLIP` chunk.
    pub(crate) fn read(
        chunk: &'a [u8],
        version: u8,
        skeleton: Option<&Skeleton>,
    ) -> Result<Self, DecodeError> {
        let short = || invalid("clip", format!("{} bytes are too few", chunk.len()));
        let length = chunk.first_chunk::<4>().map(|b| u32::from_le_bytes(*b) as usize).ok_or_else(short)?;
        let head_bytes = chunk.get(4..).and_then(|b| b.get(..length)).ok_or_else(short)?;
        let payload = &chunk[4 + length..];
        let mut head = ClipHead::default();
        let mut groups: Vec<(Group, Vec<Widths>, usize)> = Vec::new();
        let mut f = Fields::reader(head_bytes);
        code_clip(&mut f, &mut head, &mut groups, true);
        f.check("clip")?;
        if version == 1 {
            let payload = first_version::reordered(&mut groups, payload)?;
            return Self::build(head, groups, Cow::Owned(payload), skeleton);
        }
        Self::build(head, groups, Cow::Borrowed(payload), skeleton)
    }

    fn build(
        head: ClipHead,
        groups: Vec<(Group, Vec<Widths>, usize)>,
        payload: Cow<'a, [u8]>,
        skeleton: Option<&Skeleton>,
    ) -> Result<Self, DecodeError> {
        let nodes = head.nodes.len();
        if let Some(s) = skeleton
            && s.len() != nodes
        {
            return Err(invalid("clip, nodes", format!("{nodes} nodes for a skeleton of {}", s.len())));
        }
        let mut tables = Vec::new();
        let mut at = 0usize;
        for (g, widths, length) in &groups {
            let range = at..at.saturating_add(*length);
            let bytes = payload.get(range.clone()).ok_or_else(|| {
                invalid("clip, segments", format!("{length} bytes from {at} on, of {}", payload.len()))
            })?;
            if *length < PADDING {
                return Err(invalid("clip, segments", format!("{length} bytes are too few")));
            }
            tables.push(Table::new(g, widths, bytes, range.clone())?);
            at = range.end;
        }
        if at != payload.len() {
            return Err(invalid(
                "clip, segments",
                format!("{} bytes where {at} were described", payload.len()),
            ));
        }
        let rest: Vec<JointTransform> = (0..nodes)
            .map(|n| {
                skeleton.map_or(JointTransform::IDENTITY, |s| JointTransform::of_model(&s.joints()[n].rest))
            })
            .collect();
        let stands: Vec<[bool; 3]> =
            head.nodes.iter().map(|n| n.kept.map(|k| matches!(k, Kept::Rest | Kept::Keys))).collect();
        let still = still_pose(&head.constants, |n| rest[n], &stands);
        if still
            .iter()
            .any(|t| t.rotation.iter().chain(&t.translation).chain(&t.scale).any(|v| !v.is_finite()))
        {
            return Err(invalid("clip, constants", "a constant that is no finite number"));
        }
        let mut finder = vec![Found::default(); nodes];
        for (t, table) in tables.iter().enumerate() {
            for (b, block) in table.blocks.iter().enumerate() {
                match &block.gives {
                    Gives::Rotations { nodes, .. } => {
                        for (l, n) in nodes.iter().enumerate() {
                            finder[*n as usize].group(t).rotation = Some((b as u32, l as u32));
                        }
                    }
                    Gives::Values(targets) => {
                        for (l, target) in targets.iter().enumerate() {
                            if let Target::Translation(n, _) | Target::Scale(n, _) = target {
                                finder[*n as usize].group(t).values.push((b as u32, l as u32));
                            }
                        }
                    }
                }
            }
        }
        for (i, t) in head.tracks.iter().enumerate() {
            if let (Some(n), true, Some(_)) =
                (t.binding.node, t.keys.is_some(), pose_property(&t.binding.property))
            {
                finder[n].keys.push(i as u32);
            }
        }
        Ok(Self { head, tables, payload, still, rest, level: Level::new(), finder })
    }

    /// The same, owning its bytes.
    pub fn into_owned(self) -> CompressedClip<'static> {
        CompressedClip {
            head: self.head,
            tables: self.tables,
            payload: Cow::Owned(self.payload.into_owned()),
            still: self.still,
            rest: self.rest,
            level: self.level,
            finder: self.finder,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.head.name
    }
    /// Where it begins, seconds on its own clock.
    pub fn start(&self) -> f64 {
        self.head.start
    }
    /// Where it ends, seconds.
    pub fn end(&self) -> f64 {
        self.head.end
    }
    /// Its length, seconds.
    pub fn duration(&self) -> f64 {
        self.head.end - self.head.start
    }
    /// The rate its file had.
    pub fn rate(&self) -> Option<FrameRate> {
        self.head.rate
    }
    /// What it is meant to do outside its range.
    pub fn wrap(&self) -> Wrap {
        self.head.wrap
    }
    /// True if its values are differences to be laid over another pose.
    pub fn is_additive(&self) -> bool {
        self.head.additive
    }
    /// Events in time.
    pub fn markers(&self) -> &[Marker] {
        &self.head.markers
    }
    /// The node root motion is to be taken from, if the clip says.
    pub fn root(&self) -> Option<usize> {
        self.head.root.map(|n| n as usize)
    }
    /// The bound in the world it was made under, metres.
    pub fn bound(&self) -> f32 {
        self.head.bound
    }
    /// The largest error in the world, measured when it was made, metres.
    pub fn measured_error(&self) -> f32 {
        self.head.measured
    }
    /// Distance of the shell points of the bound, metres.
    pub fn shell(&self) -> f32 {
        self.head.shell
    }
    /// Number of nodes a pose has.
    pub fn node_count(&self) -> usize {
        self.head.nodes.len()
    }
    /// Frames stored, in the group that has most.
    pub fn frames(&self) -> usize {
        self.tables.iter().map(Table::stored).max().unwrap_or(0)
    }
    /// True if the last pose is the first one, to the bit.
    pub fn is_closed(&self) -> bool {
        self.tables.first().is_some_and(|t| t.closed)
    }
    /// Bytes the segments take.
    pub fn payload_bytes(&self) -> usize {
        self.payload.len()
    }
    /// Lanes: components that move.
    pub fn lane_count(&self) -> usize {
        self.tables.iter().flat_map(|t| &t.blocks).flat_map(|b| &b.rows).map(|r| r.used).sum()
    }
    /// True if the clip drives the node's property (rotation 0, translation 1, scale 2).
    pub fn drives(&self, node: usize, property: usize) -> bool {
        self.head.nodes.get(node).is_some_and(|n| n.driven.get(property).copied().unwrap_or(false))
    }
    /// The tracks besides those of poses (and the exact ones among those).
    pub fn tracks(&self) -> impl Iterator<Item = TrackInfo<'_>> {
        self.head.tracks.iter().map(|t| TrackInfo {
            binding: &t.binding,
            kind: t.kind,
            rest: &t.rest,
            exact: t.keys.is_some(),
        })
    }

    /// Uses one SIMD level instead of the best the machine has; for tests and comparisons. All
    /// give the same bits.
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Writes the pose at `time` seconds into `out`, one transform a node. Held outside the range;
    /// nodes nothing drives stand at rest. `out` may be shorter than the skeleton: nodes past its
    /// end are left out.
    pub fn pose(&self, time: f64, out: &mut [JointTransform]) {
        self.fill(time, None, out);
    }

    /// Like [`pose`](Self::pose), for the nodes of a mask alone; the others are left as they are.
    pub fn pose_masked(&self, time: f64, mask: &NodeMask, out: &mut [JointTransform]) {
        self.fill(time, Some(mask), out);
    }

    fn fill(&self, time: f64, mask: Option<&NodeMask>, mut out: &mut [JointTransform]) {
        self.stand(mask, out);
        self.write(time, mask, false, &mut out);
    }

    /// What stands still.
    fn stand(&self, mask: Option<&NodeMask>, out: &mut [JointTransform]) {
        let n = out.len().min(self.still.len());
        match mask {
            None => out[..n].copy_from_slice(&self.still[..n]),
            Some(m) => {
                for (i, (o, s)) in out.iter_mut().zip(&self.still).enumerate() {
                    if m.contains(i) {
                        *o = *s;
                    }
                }
            }
        }
    }

    /// A player's own memory of what it decoded last: steps forward or back are then cheap. Poses
    /// are those of [`pose`](Self::pose) to the bit.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { windows: self.windows(), clip: self }
    }

    pub(crate) fn windows(&self) -> Vec<Window> {
        self.tables.iter().map(Window::new).collect()
    }

    /// Lanes and exact keys of nodes, and of tracks if asked, into any sink.
    fn write<O: PoseOut>(&self, time: f64, mask: Option<&NodeMask>, tracks: bool, out: &mut O) {
        let time = self.held(time);
        let wanted = Wanted { mask, nodes: true, tracks };
        dispatch!(self.level, simd => {
            for t in &self.tables {
                sample_group(simd, t, &self.payload[t.payload.clone()], time, wanted, out);
            }
        });
        self.write_exact(time, mask, out);
    }

    /// Like `write`, keeping what is decoded in the windows for the next time.
    fn play<O: PoseOut>(&self, time: f64, mask: Option<&NodeMask>, windows: &mut [Window], out: &mut O) {
        let time = self.held(time);
        let wanted = Wanted { mask, nodes: true, tracks: false };
        dispatch!(self.level, simd => {
            for (t, w) in self.tables.iter().zip(windows) {
                play_group(simd, t, &self.payload[t.payload.clone()], time, wanted, w, out);
            }
        });
        self.write_exact(time, mask, out);
    }

    /// Nodes that are kept as exact keys.
    fn write_exact<O: PoseOut>(&self, time: f64, mask: Option<&NodeMask>, out: &mut O) {
        for t in &self.head.tracks {
            if let (Some(n), Some(keys)) = (t.binding.node, &t.keys)
                && mask.is_none_or(|m| m.contains(n))
            {
                write_keys(n, &t.binding.property, keys, time, out);
            }
        }
    }

    pub(crate) fn held(&self, time: f64) -> f64 {
        // NaN falls to the start.
        if time >= self.head.start { time.min(self.head.end) } else { self.head.start }
    }

    /// The pose by the plain loops, for tests: the same bits.
    pub fn plain_pose(&self, time: f64, mut out: &mut [JointTransform]) {
        let time = self.held(time);
        let n = out.len().min(self.still.len());
        out[..n].copy_from_slice(&self.still[..n]);
        for t in &self.tables {
            decode::plain_group(t, &self.payload[t.payload.clone()], time, &mut out);
        }
        for t in &self.head.tracks {
            if let (Some(n), Some(keys)) = (t.binding.node, &t.keys) {
                write_keys(n, &t.binding.property, keys, time, &mut out);
            }
        }
    }

    /// One node at `time`, at a small part of the cost of a pose.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, time: f64, node: usize) -> JointTransform {
        let time = self.held(time);
        let mut one = [self.still[node]];
        let found = &self.finder[node];
        for group in &found.groups {
            let table = &self.tables[group.table as usize];
            let at = table.between(time);
            let (first, second) = table.places(&self.payload[table.payload.clone()], at);
            if let Some((b, lane)) = group.rotation {
                let block = &table.blocks[b as usize];
                let bytes = table.block_bytes(first.bytes, b as usize);
                let mut v = [[0.0; 3]; 2];
                kernel::three_lanes(bytes, &block.rows, lane as usize, &first.spot, &mut v);
                if let Some(p) = &second {
                    let bytes = table.block_bytes(p.bytes, b as usize);
                    let mut w = [[0.0; 3]; 2];
                    kernel::three_lanes(bytes, &block.rows, lane as usize, &p.spot, &mut w);
                    v[1] = w[0];
                }
                if let Gives::Rotations { middle, .. } = &block.gives {
                    let l = lane as usize;
                    let m = [middle[0][l], middle[1][l], middle[2][l], middle[3][l]];
                    one[0].rotation = kernel::plain_turn(v[0], v[1], m, at.blend);
                }
            }
            for &(b, l) in &group.values {
                let block = &table.blocks[b as usize];
                let (row, lane) = (l as usize / 8, l as usize % 8);
                let lane_at = |p: &Place<'_>| {
                    let bytes = table.block_bytes(p.bytes, b as usize);
                    kernel::single_lane(bytes, &block.rows, row, lane, &p.spot)
                };
                let mut r = lane_at(&first);
                if let Some(p) = &second {
                    r[1] = lane_at(p)[0];
                }
                let value = if at.blend == 0.0 { r[0] } else { kernel::mix(r[0], r[1], at.blend) };
                if let Gives::Values(targets) = &block.gives {
                    match targets[l as usize] {
                        Target::Translation(_, a) => one[0].translation[usize::from(a)] = value,
                        Target::Scale(_, a) => one[0].scale[usize::from(a)] = value,
                        Target::Track(..) => {}
                    }
                }
            }
        }
        for (property, keys) in self.exact_keys(node) {
            write_keys(0, property, keys, time, &mut &mut one[..]);
        }
        one[0]
    }

    /// A node made ready to be asked for often, at a fraction of the cost of [`node`](Self::node).
    ///
    /// # Panics
    /// If there is no such node.
    pub fn prepare(&self, node: usize) -> PreparedNode<'_> {
        PreparedNode::new(self, node)
    }

    /// A group and its bytes.
    pub(crate) fn group(&self, table: usize) -> (&Table, &[u8]) {
        let table = &self.tables[table];
        (table, &self.payload[table.payload.clone()])
    }

    pub(crate) fn found(&self, node: usize) -> &Found {
        &self.finder[node]
    }

    pub(crate) fn still_of(&self, node: usize) -> JointTransform {
        self.still[node]
    }

    /// The exact keys of a node's properties.
    pub(crate) fn exact_keys(&self, node: usize) -> impl Iterator<Item = (&Property, &TrackData)> {
        let tracks = self.finder[node].keys.iter().map(|&k| &self.head.tracks[k as usize]);
        tracks.filter_map(|t| Some((&t.binding.property, t.keys.as_ref()?)))
    }

    /// Writes the value at `time` of a track of [`tracks`](Self::tracks) into `out`, as wide as
    /// its kind. Allocates nothing.
    ///
    /// # Panics
    /// If there is no such track or `out` has another length.
    pub fn value(&self, track: usize, time: f64, out: &mut [f32]) {
        let t = &self.head.tracks[track];
        assert_eq!(out.len(), t.kind.width(), "the output holds one value");
        let time = self.held(time);
        match &t.keys {
            Some(TrackData::Axes { axes, .. }) => {
                for (o, a) in out.iter_mut().zip(axes) {
                    *o = a.at(time) as f32;
                }
            }
            Some(data) => {
                let mut wide = [0.0f64; 16];
                if out.len() <= 16 {
                    let w = &mut wide[..out.len()];
                    data.eval(time, w);
                    for (o, v) in out.iter_mut().zip(w) {
                        *o = *v as f32;
                    }
                } else {
                    let mut w = vec![0.0; out.len()];
                    data.eval(time, &mut w);
                    for (o, v) in out.iter_mut().zip(w) {
                        *o = v as f32;
                    }
                }
            }
            None => {
                out.fill(0.0);
                let mut sink = OneTrack { track, out };
                dispatch!(self.level, simd => {
                    for t in &self.tables {
                        sample_group(simd, t, &self.payload[t.payload.clone()], time, Wanted { mask: None, nodes: false, tracks: true }, &mut sink);
                    }
                });
            }
        }
    }

    /// The clip in the model's terms, for inspection and other formats: every driven property with
    /// a linear key at each stored frame (one key where it stands still), tracks of exact keys as
    /// they were.
    pub fn to_clip(&self, skeleton: &Skeleton) -> Clip {
        let h = &self.head;
        let mut clip = Clip::new(h.name.clone(), h.start, h.end)
            .unwrap_or_else(|_| Clip::new(h.name.clone(), 0.0, 0.0).expect("a range of nothing is a range"));
        clip.rate = h.rate;
        clip.wrap = h.wrap;
        clip.additive = h.additive;
        clip.markers = h.markers.clone();
        let frames: usize = self.tables.first().map_or(1, |t| t.frames);
        let mut poses = vec![self.still.clone(); frames];
        let times: Arc<[f64]> = match self.tables.first() {
            Some(t) => (0..frames).map(|f| t.times.at(f)).collect(),
            None => [h.start].into(),
        };
        for (f, p) in poses.iter_mut().enumerate() {
            self.pose(times[f], p);
        }
        let first: Arc<[f64]> = [h.start].into();
        for (n, state) in h.nodes.iter().enumerate() {
            let name = skeleton.joints().get(n).map_or(String::new(), |j| j.name.clone());
            let rest = self.rest[n];
            for (p, property) in
                [Property::Rotation, Property::Translation, Property::Scale].into_iter().enumerate()
            {
                if !state.driven[p] && state.kept[p] != Kept::Lanes || state.kept[p] == Kept::Keys {
                    continue;
                }
                let moving = state.kept[p] == Kept::Lanes;
                let row = |t: &JointTransform| -> Vec<f64> {
                    match p {
                        0 => t.rotation.iter().map(|v| f64::from(*v)).collect(),
                        1 => t.translation.iter().map(|v| f64::from(*v)).collect(),
                        _ => t.scale.iter().map(|v| f64::from(*v)).collect(),
                    }
                };
                let values = if moving {
                    poses.iter().flat_map(|pose| row(&pose[n])).collect()
                } else {
                    row(&self.still[n])
                };
                let kind = if p == 0 { ValueKind::Rotation } else { ValueKind::Vector(3) };
                let at = if moving { times.clone() } else { first.clone() };
                if let Ok(curve) = Curve::linear(kind, at, values) {
                    clip.tracks.push(Track::new(
                        Binding::node(n, name.clone(), property),
                        TrackData::Curve(curve),
                        row(&rest),
                    ));
                }
            }
        }
        for (i, t) in h.tracks.iter().enumerate() {
            let data = t.keys.clone().or_else(|| {
                let table = self.tables.iter().find(|g| {
                    g.blocks.iter().any(|b| match &b.gives {
                        Gives::Values(v) => {
                            v.iter().any(|t| matches!(t, Target::Track(k, _) if *k as usize == i))
                        }
                        Gives::Rotations { .. } => false,
                    })
                })?;
                let at: Vec<f64> = (0..table.frames).map(|f| table.times.at(f)).collect();
                let mut row = vec![0.0f32; t.kind.width()];
                let mut values = Vec::with_capacity(at.len() * row.len());
                for time in &at {
                    self.value(i, *time, &mut row);
                    values.extend(row.iter().map(|v| f64::from(*v)));
                }
                Curve::linear(t.kind, at, values).ok().map(TrackData::Curve)
            });
            if let Some(data) = data {
                clip.tracks.push(Track::new(t.binding.clone(), data, t.rest.clone()));
            }
        }
        clip
    }
}

/// Plays a clip step by step: keeps the two frames around the last time decoded, about 80 bytes a
/// moving node. Between the same two frames nothing is decoded again, from one frame to the next
/// only the new one; a jump costs what [`CompressedClip::pose`] does.
#[derive(Clone, Debug)]
pub struct Cursor<'c> {
    clip: &'c CompressedClip<'c>,
    windows: Vec<Window>,
}

impl Cursor<'_> {
    /// The pose at `time`, as [`CompressedClip::pose`] gives it.
    pub fn pose(&mut self, time: f64, mut out: &mut [JointTransform]) {
        self.clip.stand(None, out);
        self.clip.play(time, None, &mut self.windows, &mut out);
    }

    /// The nodes of a mask, as [`CompressedClip::pose_masked`] gives them.
    pub fn pose_masked(&mut self, time: f64, mask: &NodeMask, mut out: &mut [JointTransform]) {
        self.clip.stand(Some(mask), out);
        self.clip.play(time, Some(mask), &mut self.windows, &mut out);
    }
}

impl CompressedClip<'_> {
    /// What stands still, with rest values under everything else.
    pub(crate) fn still(&self) -> &[JointTransform] {
        &self.still
    }

    /// The pose where nothing drives a node.
    pub(crate) fn rest(&self) -> &[JointTransform] {
        &self.rest
    }

    /// What moves, into any sink, with a player's own windows.
    pub(crate) fn play_pose<O: PoseOut>(&self, time: f64, windows: &mut [Window], out: &mut O) {
        self.play(time, None, windows, out);
    }
}

/// 0, 1, 2 for rotation, translation, scale.
pub(crate) fn pose_property(p: &Property) -> Option<usize> {
    match p {
        Property::Rotation => Some(0),
        Property::Translation => Some(1),
        Property::Scale => Some(2),
        _ => None,
    }
}

pub(crate) fn write_keys<O: PoseOut>(
    node: usize,
    property: &Property,
    keys: &TrackData,
    time: f64,
    out: &mut O,
) {
    let Some(p) = pose_property(property) else { return };
    let mut v = [0.0f64; 4];
    let width = keys.kind().width();
    if width != if p == 0 { 4 } else { 3 } {
        return;
    }
    keys.eval(time, &mut v[..width]);
    match p {
        0 => out.rotation(node, v.map(|c| c as f32)),
        1 => (0..3).for_each(|a| out.translation(node, a, v[a] as f32)),
        _ => (0..3).for_each(|a| out.scale(node, a, v[a] as f32)),
    }
}

struct OneTrack<'o> {
    track: usize,
    out: &'o mut [f32],
}

impl PoseOut for OneTrack<'_> {
    fn rotation(&mut self, _: usize, _: [f32; 4]) {}
    fn translation(&mut self, _: usize, _: usize, _: f32) {}
    fn scale(&mut self, _: usize, _: usize, _: f32) {}
    fn track(&mut self, track: usize, component: usize, v: f32) {
        if track == self.track
            && let Some(o) = self.out.get_mut(component)
        {
            *o = v;
        }
    }
}
