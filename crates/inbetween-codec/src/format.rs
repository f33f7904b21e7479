//! The bytes of an `.ibc` file: the only place that knows an offset. `docs/ibc-format.md` says the
//! same in words.
//!
//! ```text
//! 0   4  "IBC1"
//! 4   1  version of the form: runtime 2, at rest 2
//! 5   1  form: 0 runtime, 1 at rest
//! 6   2  zero
//! 8   4  length of the file
//! 12  4  CRC-32 (IEEE) of everything from byte 16 on
//! 16     chunks: 4 letters, u32 length, bytes
//! ```
//!
//! Chunks are `SKEL` (at most one, before any clip) and `CLIP`. Both begin with a *head*: fields
//! in a fixed order through the adaptive coder of [`crate::range_coder`], read once when the file
//! is opened. A runtime clip's segments follow its head as plain bits and are used where they lie.

use crate::content::{Constant, Group, Lane, RotationLanes, Target, Times, ValueLane, segment_start};
use crate::quantize::{Fitter, Form, Packed, base, signed_bits};
use crate::range_coder::{Bit, Coder, Decoder, Encoder, Number, fold, unfold};

pub(crate) const MAGIC: [u8; 4] = *b"IBC1";
/// Highest version of the runtime form and of the form at rest; each counts for itself.
pub(crate) const VERSIONS: [u8; 2] = [2, 2];
const HEADER: usize = 16;
/// Zero bytes after the segments, so that sixteen bytes can be read from any bit.
pub(crate) const PADDING: usize = 16;
/// Lanes of a block.
pub(crate) const BLOCK: usize = 24;
/// Frames a segment may have at most.
pub(crate) const MAX_SEGMENT: usize = 48;

/// Why bytes are not a clip.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// Not this format.
    #[error("the file does not begin with the letters IBC1, so it is no .ibc file")]
    NotIbc,
    /// From a later release.
    #[error(
        "the file is of version {found}, but this release reads up to {known}; use a newer one, or compress the clip again"
    )]
    Version {
        /// Version in the file.
        found: u8,
        /// Highest version known here.
        known: u8,
    },
    /// Cut short or grown.
    #[error(
        "the file says it is {expected} bytes long, but there are {found}; it was cut or something was added, so copy it again"
    )]
    Length {
        /// What the header says.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// Damaged.
    #[error(
        "the checksum is {found:08x} where {expected:08x} was written; the bytes were damaged, so copy the file again"
    )]
    Checksum {
        /// Stored in the header.
        expected: u32,
        /// Computed from the bytes.
        found: u32,
    },
    /// A field has a value it cannot have.
    #[error("{place}: {what}; the file is damaged or was not written by an encoder of this format")]
    Invalid {
        /// Where: chunk and field.
        place: &'static str,
        /// What was found and what was expected.
        what: String,
    },
    /// An at-rest file was opened for playing.
    #[error("the file is in its at-rest form, which cannot be sampled in place; unpack it first")]
    AtRest,
    /// No such clip.
    #[error("there is no clip {wanted} in the file, which has {count}")]
    NoClip {
        /// What was asked for.
        wanted: usize,
        /// How many there are.
        count: usize,
    },
}

pub(crate) fn invalid(place: &'static str, what: impl Into<String>) -> DecodeError {
    DecodeError::Invalid { place, what: what.into() }
}

/// A chunk's letters and bytes.
pub(crate) type Chunk<'a> = ([u8; 4], &'a [u8]);

/// Puts chunks into a file.
pub(crate) fn write_file(at_rest: bool, chunks: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let length = HEADER + chunks.iter().map(|c| 8 + c.1.len()).sum::<usize>();
    let mut out = Vec::with_capacity(length);
    out.extend(MAGIC);
    out.extend([VERSIONS[usize::from(at_rest)], u8::from(at_rest), 0, 0]);
    out.extend((length as u32).to_le_bytes());
    out.extend([0; 4]);
    for (tag, bytes) in chunks {
        out.extend(tag);
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
    }
    let crc = crc32fast::hash(&out[HEADER..]);
    out[12..16].copy_from_slice(&crc.to_le_bytes());
    out
}

/// A file taken apart.
pub(crate) struct Parts<'a> {
    /// The version of its form.
    pub version: u8,
    pub at_rest: bool,
    pub chunks: Vec<Chunk<'a>>,
}

/// Checks the header and finds the chunks.
pub(crate) fn read_file(bytes: &[u8]) -> Result<Parts<'_>, DecodeError> {
    if bytes.len() < 4 || bytes[..4] != MAGIC {
        return Err(DecodeError::NotIbc);
    }
    if bytes.len() < HEADER {
        return Err(DecodeError::Length { expected: HEADER as u64, found: bytes.len() as u64 });
    }
    let (version, form) = (bytes[4], bytes[5]);
    let known = VERSIONS.get(usize::from(form)).copied().unwrap_or(VERSIONS[0]);
    if version == 0 || version > known {
        return Err(DecodeError::Version { found: version, known });
    }
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if u64::from(word(8)) != bytes.len() as u64 {
        return Err(DecodeError::Length { expected: u64::from(word(8)), found: bytes.len() as u64 });
    }
    let found = crc32fast::hash(&bytes[HEADER..]);
    if found != word(12) {
        return Err(DecodeError::Checksum { expected: word(12), found });
    }
    let at_rest = match form {
        0 => false,
        1 => true,
        other => return Err(invalid("header, form", format!("{other} where 0 or 1 was expected"))),
    };
    if bytes[6..8] != [0, 0] {
        return Err(invalid("header", "bytes 6 and 7 are not zero"));
    }
    let mut chunks = Vec::new();
    let mut at = HEADER;
    while at < bytes.len() {
        if bytes.len() - at < 8 {
            return Err(invalid("chunks", "less than a chunk's eight bytes are left"));
        }
        let length = word(at + 4) as usize;
        let Some(body) = bytes.get(at + 8..).and_then(|b| b.get(..length)) else {
            return Err(invalid("chunks", format!("a chunk of {length} bytes runs past the end")));
        };
        chunks.push(([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]], body));
        at += 8 + length;
    }
    Ok(Parts { version, at_rest, chunks })
}

// ---- heads: one description for both directions ----

/// A head being written or read.
pub(crate) struct Fields<C> {
    coder: C,
    small: Number,
    letters: Box<[Bit; 256]>,
    reading: bool,
    failed: Option<DecodeError>,
}

impl Fields<Encoder> {
    pub fn writer() -> Self {
        Self::with(Encoder::new(), false)
    }
    pub fn finish(self) -> Vec<u8> {
        self.coder.finish()
    }
}

impl<'a> Fields<Decoder<'a>> {
    pub fn reader(bytes: &'a [u8]) -> Self {
        Self::with(Decoder::new(bytes), true)
    }
    pub fn check(&mut self, place: &'static str) -> Result<(), DecodeError> {
        if self.coder.overrun() && self.failed.is_none() {
            self.failed = Some(invalid(place, "the head ends before its fields do"));
        }
        self.failed.clone().map_or(Ok(()), Err)
    }
}

/// Lets a coder say that it ran out of bytes; writers never do.
pub(crate) trait Ends {
    fn ended(&self) -> bool {
        false
    }
}
impl Ends for Encoder {}
impl Ends for Decoder<'_> {
    fn ended(&self) -> bool {
        self.overrun()
    }
}

impl<C: Coder + Ends> Fields<C> {
    fn with(coder: C, reading: bool) -> Self {
        Self {
            coder,
            small: Number::default(),
            letters: Box::new([Bit::default(); 256]),
            reading,
            failed: None,
        }
    }
    /// The coder itself, for what follows the head.
    pub fn into_coder(self) -> C {
        self.coder
    }
    pub fn reading(&self) -> bool {
        self.reading
    }
    fn fail(&mut self, place: &'static str, what: String) {
        if self.failed.is_none() {
            self.failed = Some(invalid(place, what));
        }
    }
    /// False once reading makes no sense any more; loops over counts from the file stop on it.
    pub fn fine(&self) -> bool {
        self.failed.is_none() && !self.coder.ended()
    }
    pub fn number(&mut self, v: &mut u32) {
        *v = self.small.code(&mut self.coder, *v);
    }
    pub fn with_model(&mut self, model: &mut Number, v: &mut u32) {
        *v = model.code(&mut self.coder, *v);
    }
    pub fn signed(&mut self, model: &mut Number, v: &mut i32) {
        *v = unfold(model.code(&mut self.coder, fold(*v)));
    }
    pub fn size(&mut self, v: &mut usize) {
        let mut n = *v as u32;
        self.number(&mut n);
        *v = n as usize;
    }
    pub fn flag(&mut self, v: &mut bool) {
        *v = self.coder.flat(u32::from(*v), 1) != 0;
    }
    pub fn learned(&mut self, model: &mut Bit, v: &mut bool) {
        *v = self.coder.bit(model, *v);
    }
    pub fn f32(&mut self, v: &mut f32) {
        *v = f32::from_bits(self.coder.flat(v.to_bits(), 32));
        if self.reading && !v.is_finite() {
            self.fail("a number", "NaN or infinity where a finite number was expected".into());
            *v = 0.0;
        }
    }
    /// In four bytes if it is exact in them, else in eight.
    pub fn f64(&mut self, v: &mut f64) {
        let mut short = *v == f64::from(*v as f32) && v.is_sign_negative() == (*v as f32).is_sign_negative();
        self.flag(&mut short);
        if short {
            let mut s = *v as f32;
            self.f32(&mut s);
            *v = f64::from(s);
            return;
        }
        let bits = v.to_bits();
        let high = self.coder.flat((bits >> 32) as u32, 32);
        let low = self.coder.flat(bits as u32, 32);
        *v = f64::from_bits(u64::from(high) << 32 | u64::from(low));
        if self.reading && !v.is_finite() {
            self.fail("a number", "NaN or infinity where a finite number was expected".into());
            *v = 0.0;
        }
    }
    pub fn text(&mut self, v: &mut String) {
        let mut length = v.len();
        self.size(&mut length);
        let mut bytes = if self.reading { Vec::new() } else { std::mem::take(v).into_bytes() };
        for i in 0..length {
            if !self.fine() {
                break;
            }
            let b = if self.reading { 0 } else { bytes[i] };
            let mut node = 1usize;
            for k in (0..8).rev() {
                let bit = self.coder.bit(&mut self.letters[node], b >> k & 1 != 0);
                node = node << 1 | usize::from(bit);
            }
            if self.reading {
                bytes.push(node as u8);
            }
        }
        match String::from_utf8(bytes) {
            Ok(s) => *v = s,
            Err(_) => self.fail("a name", "bytes that are no UTF-8".into()),
        }
    }
    /// Codes the length of a list and each element; reading stops at the first nonsense, so a
    /// lying length costs no memory.
    pub fn list<T: Default>(&mut self, v: &mut Vec<T>, mut each: impl FnMut(&mut Self, &mut T)) {
        let mut length = v.len();
        self.size(&mut length);
        if self.reading {
            v.clear();
            for _ in 0..length {
                if !self.fine() {
                    return;
                }
                let mut item = T::default();
                each(self, &mut item);
                v.push(item);
            }
        } else {
            v.iter_mut().for_each(|item| each(self, item));
        }
    }
    /// Refuses a value when reading.
    pub fn require(&mut self, holds: bool, place: &'static str, what: impl FnOnce() -> String) {
        if self.reading && !holds {
            self.fail(place, what());
        }
    }
}

/// Models for the fields of lanes.
#[derive(Default)]
struct LaneModels {
    step: Number,
    middle: Number,
    gap: Number,
    scale: Number,
    kind: Number,
}

/// Widths of a lane's four coefficients, in a runtime clip.
pub(crate) type Widths = [u8; 4];

/// Codes constants: a step and three numbers.
pub(crate) struct ConstantModels {
    step: Number,
    number: Number,
    last: i32,
}

impl Default for ConstantModels {
    fn default() -> Self {
        Self { step: Number::default(), number: Number::default(), last: -80 }
    }
}

impl ConstantModels {
    pub fn code<C: Coder + Ends>(&mut self, f: &mut Fields<C>, c: &mut Constant) {
        let mut d = c.step8 - self.last;
        f.signed(&mut self.step, &mut d);
        c.step8 = self.last.wrapping_add(d).clamp(-400, 320);
        self.last = c.step8;
        for n in &mut c.numbers {
            f.signed(&mut self.number, n);
            *n = (*n).clamp(-(1 << 24), 1 << 24);
        }
    }
}

/// Codes the description of a group: times, segments, lanes. With `widths`, those too, in the
/// order of the lanes.
pub(crate) fn code_group<C: Coder + Ends>(
    f: &mut Fields<C>,
    g: &mut Group,
    widths: Option<&mut Vec<Widths>>,
    nodes: usize,
    tracks: &[usize],
) {
    let mut m = LaneModels::default();
    f.size(&mut g.frames);
    f.flag(&mut g.closed);
    let mut listed = matches!(g.times, Times::Listed(_));
    f.flag(&mut listed);
    if listed {
        let mut times = match &mut g.times {
            Times::Listed(t) => std::mem::take(t),
            Times::Uniform { .. } => Vec::new(),
        };
        f.list(&mut times, |f, t| f.f64(t));
        let ordered = times.windows(2).all(|w| w[0] < w[1]) && times.len() == g.frames;
        f.require(ordered, "clip, times", || {
            "frame times that do not increase, or of another number than frames".into()
        });
        g.times = Times::Listed(times);
    } else {
        let (mut start, mut num, mut den, mut end) = match g.times {
            Times::Uniform { start, num, den, end } => (start, num, den, end),
            Times::Listed(_) => (0.0, 1, 1, 0.0),
        };
        f.f64(&mut start);
        f.number(&mut num);
        f.number(&mut den);
        f.f64(&mut end);
        f.require(num > 0 && den > 0, "clip, rate", || format!("{num}/{den} frames a second"));
        f.require(start <= end, "clip, times", || format!("a range from {start} to {end} s"));
        g.times = Times::Uniform { start, num: num.max(1), den: den.max(1), end };
    }
    f.require(g.frames > usize::from(g.closed), "clip, frames", || format!("{} frames", g.frames));
    f.require(g.frames < 1 << 30, "clip, frames", || format!("{} frames", g.frames));
    let frames = g.frames;
    if f.reading() && !f.fine() {
        return;
    }
    let stored = frames - usize::from(g.closed);
    let mut last = 0i32;
    f.list(&mut g.scales, |f, s| {
        let mut d = *s - last;
        f.signed(&mut m.scale, &mut d);
        *s = last.wrapping_add(d).clamp(-400, 400);
        last = *s;
    });
    let segments = g.scales.len();
    let longest = if segments == 0 { usize::MAX } else { stored.div_ceil(segments) };
    f.require(segments >= 1 && segments <= stored && longest <= MAX_SEGMENT, "clip, segments", || {
        format!("{segments} segments for {stored} frames")
    });
    if f.reading() && !f.fine() {
        return;
    }
    let mut node = 0u32;
    let mut step = [-100i32; 3];
    f.list(&mut g.rotations, |f, r| {
        let mut gap = r.node.wrapping_sub(node);
        f.with_model(&mut m.gap, &mut gap);
        r.node = node.saturating_add(gap);
        f.require((r.node as usize) < nodes, "clip, rotations", || format!("node {} of {nodes}", r.node));
        node = r.node.wrapping_add(1);
        for c in &mut r.middle {
            let mut v = i32::from(*c);
            f.signed(&mut m.middle, &mut v);
            *c = v.clamp(-127, 127) as i8;
        }
        for a in 0..3 {
            let near = if a == 0 { step[0] } else { r.lanes[a - 1].step8 };
            let mut d = r.lanes[a].step8 - near;
            f.signed(&mut m.step, &mut d);
            r.lanes[a].step8 = near.wrapping_add(d).clamp(-400, 0);
        }
        step[0] = r.lanes[0].step8;
    });
    let mut step = -90i32;
    let mut bias = Number::default();
    f.list(&mut g.values, |f, v| {
        let (mut kind, mut a, mut b) = match v.target {
            Target::Translation(n, axis) => (0, n, u32::from(axis)),
            Target::Scale(n, axis) => (1, n, u32::from(axis)),
            Target::Track(n, c) => (2, n, u32::from(c)),
        };
        f.with_model(&mut m.kind, &mut kind);
        f.with_model(&mut m.gap, &mut a);
        f.with_model(&mut m.kind, &mut b);
        v.target = match kind {
            0 | 1 => {
                f.require((a as usize) < nodes && b < 3, "clip, values", || {
                    format!("axis {b} of node {a} of {nodes}")
                });
                if kind == 0 {
                    Target::Translation(a, b.min(2) as u8)
                } else {
                    Target::Scale(a, b.min(2) as u8)
                }
            }
            _ => {
                let wide = tracks.get(a as usize).copied().unwrap_or(0);
                f.require((b as usize) < wide, "clip, values", || {
                    format!("component {b} of track {a}, which has {wide}")
                });
                Target::Track(a, b.min(65535) as u16)
            }
        };
        let mut d = v.lane.step8 - step;
        f.signed(&mut m.step, &mut d);
        v.lane.step8 = step.wrapping_add(d).clamp(-400, 320);
        step = v.lane.step8;
        // The bias only has to be near: in steps of 256 of the lane's own.
        let unit = bias_unit(v.lane.step8);
        let mut n = (v.lane.bias / unit).round() as i32;
        f.signed(&mut bias, &mut n);
        v.lane.bias = n.clamp(-(1 << 24), 1 << 24) as f32 * unit;
    });
    if let Some(widths) = widths {
        let lanes = g.rotations.len() * 3 + g.values.len();
        let mut models: [[Number; 4]; 3] = Default::default();
        let mut before = [[0u8; 4]; 3];
        if f.reading() {
            widths.clear();
        }
        for l in 0..lanes {
            if f.reading() {
                if !f.fine() {
                    return;
                }
                widths.push([0; 4]);
            }
            let w = &mut widths[l];
            let axis = if l < g.rotations.len() * 3 { l % 3 } else { 0 };
            for k in 0..4 {
                let near = if k == 0 { i32::from(before[axis][0]) } else { i32::from(w[k - 1]) };
                let mut d = i32::from(w[k]) - near;
                f.signed(&mut models[axis][k], &mut d);
                w[k] = near.wrapping_add(d).clamp(0, 24) as u8;
            }
            before[axis] = *w;
            let w = *w;
            f.require(fits(w), "clip, widths", || format!("coefficients of {w:?} bits"));
        }
    }
}

/// Grid of the biases of value lanes.
pub(crate) fn bias_unit(step8: i32) -> f32 {
    crate::quantize::exp8((step8 + 64).clamp(-960, 600))
}

/// Coefficients are read with one load, all but the first within 32 bits.
pub(crate) fn fits(w: Widths) -> bool {
    w[0] <= 24 && u32::from(w[1]) + u32::from(w[2]) + u32::from(w[3]) <= 32
}

// ---- segments of the runtime form ----

/// A runtime group's segments: offsets, then segments, then padding.
pub(crate) struct Payload {
    pub bytes: Vec<u8>,
    pub widths: Vec<Widths>,
}

/// Lanes of a group in the order of their blocks: the row of x of up to eight rotations, then y,
/// then z; after the rotations the values, 24 a block. Each block is a list of lane numbers.
pub(crate) fn blocks(rotations: usize, values: usize) -> Vec<Vec<usize>> {
    let mut out = Vec::new();
    for first in (0..rotations).step_by(8) {
        let count = (rotations - first).min(8);
        out.push((0..3).flat_map(|a| (0..count).map(move |j| (first + j) * 3 + a)).collect());
    }
    for first in (0..values).step_by(BLOCK) {
        out.push((first..(first + BLOCK).min(values)).map(|v| rotations * 3 + v).collect());
    }
    out
}

/// The rows of a block: a third of it each where it holds rotations, else up to eight lanes.
pub(crate) fn rows<T>(block: &[T], rotations: bool) -> std::slice::Chunks<'_, T> {
    block.chunks(if rotations { block.len() / 3 } else { 8 })
}

pub(crate) fn lanes(g: &Group) -> Vec<&Lane> {
    g.rotations.iter().flat_map(|r| r.lanes.iter()).chain(g.values.iter().map(|v| &v.lane)).collect()
}

pub(crate) fn lanes_mut(g: &mut Group) -> Vec<&mut Lane> {
    g.rotations
        .iter_mut()
        .flat_map(|r| r.lanes.iter_mut())
        .chain(g.values.iter_mut().map(|v| &mut v.lane))
        .collect()
}

/// What the coefficients of a lane need over all segments looked at.
#[derive(Clone, Copy, Default)]
struct Needs {
    widths: Widths,
    /// For a constant in every segment.
    plain: u8,
}

impl Needs {
    fn look(&mut self, fitter: &Fitter, quarter: usize, numbers: &[i32]) {
        // As if widths were free.
        let mut best: Option<(usize, Packed)> = None;
        for degree in 0..=fitter.max_degree() {
            let Some(p) = fitter.pack(degree, quarter, numbers, 0) else { continue };
            if degree == 0 {
                self.plain = self.plain.max(signed_bits(p.coefficients[0]) as u8);
            }
            let own: u32 = (0..=degree).map(|k| signed_bits(p.coefficients[k])).sum();
            let bits = p.form.width() as usize * numbers.len() + own as usize;
            if best.is_none_or(|b| bits < b.0) && fits(p.coefficients.map(|c| signed_bits(c) as u8)) {
                best = Some((bits, p));
            }
        }
        if let Some((_, p)) = best {
            for k in 0..=p.form.degree() {
                self.widths[k] = self.widths[k].max(signed_bits(p.coefficients[k]) as u8);
            }
        }
    }

    /// Widths that every segment can be written with.
    fn widths(&self) -> Widths {
        let w = [self.widths[0].max(self.plain), self.widths[1], self.widths[2], self.widths[3]];
        // Where the longest coefficients do not fit together constants do.
        if fits(w) { w } else { [self.plain, 0, 0, 0] }
    }
}

/// The cheapest polynomial of a lane in a segment, in coefficients of these widths.
fn pack(fitter: &Fitter, quarter: usize, numbers: &[i32], widths: Widths) -> Packed {
    let fitting =
        |p: &Packed| (0..=p.form.degree()).all(|k| signed_bits(p.coefficients[k]) <= u32::from(widths[k]));
    let bits = |p: &Packed| {
        let own: usize = widths[..=p.form.degree()].iter().map(|w| usize::from(*w)).sum();
        p.form.width() as usize * numbers.len() + own
    };
    (0..=fitter.max_degree())
        .filter_map(|d| fitter.pack(d, quarter, numbers, 0))
        .filter(fitting)
        .min_by_key(bits)
        .expect("a constant fits the widths it was counted in")
}

/// Bits into bytes, lowest first.
#[derive(Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl BitWriter {
    /// The lowest `bits` ≤ 32 of `value`.
    pub fn write(&mut self, value: i32, bits: u32) {
        self.held |= (u64::from(value as u32) & ((1u64 << bits) - 1)) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// The bytes, the last one filled up with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.held as u8);
        }
        self.bytes
    }
}

/// A segment's numbers: what it says of each lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentNumbers {
    pub quarters: Vec<u8>,
    /// By lane, then by frame.
    pub numbers: Vec<Vec<i32>>,
}

/// Writes the segments of a group, which are shown to it twice in their order: once to find the
/// widths of all coefficients, once to be written. So no more than one stands in memory at a time.
pub(crate) struct PayloadWriter {
    blocks: Vec<Vec<usize>>,
    turning: usize,
    fitters: Vec<Option<Fitter>>,
    needs: Vec<Needs>,
    widths: Vec<Widths>,
    ends: Vec<u32>,
    bodies: Vec<u8>,
}

impl PayloadWriter {
    pub fn new(g: &Group) -> Self {
        let lanes = g.rotations.len() * 3 + g.values.len();
        Self {
            blocks: blocks(g.rotations.len(), g.values.len()),
            turning: g.rotations.len().div_ceil(8),
            fitters: (0..=MAX_SEGMENT).map(|_| None).collect(),
            needs: vec![Needs::default(); lanes],
            widths: Vec::new(),
            ends: Vec::new(),
            bodies: Vec::new(),
        }
    }

    fn fitter(fitters: &mut [Option<Fitter>], frames: usize) -> &Fitter {
        fitters[frames].get_or_insert_with(|| Fitter::new(frames))
    }

    /// The first time.
    pub fn look(&mut self, segment: &SegmentNumbers) {
        for ((needs, n), q) in self.needs.iter_mut().zip(&segment.numbers).zip(&segment.quarters) {
            needs.look(Self::fitter(&mut self.fitters, n.len()), usize::from(*q), n);
        }
    }

    /// The second time.
    pub fn write(&mut self, segment: &SegmentNumbers) {
        if self.widths.is_empty() {
            self.widths = self.needs.iter().map(Needs::widths).collect();
        }
        let frames = segment.numbers.first().map_or(0, Vec::len);
        let fitter = Self::fitter(&mut self.fitters, frames);
        let packed: Vec<Packed> = segment
            .numbers
            .iter()
            .zip(&segment.quarters)
            .zip(&self.widths)
            .map(|((n, q), w)| pack(fitter, usize::from(*q), n, *w))
            .collect();
        let wide = wide_blocks(self.blocks.len());
        let mut body = vec![0u8; self.blocks.len().saturating_sub(1) * wide];
        for (i, block) in self.blocks.iter().enumerate() {
            if i > 0 {
                let at = (body.len() as u32).to_le_bytes();
                body[(i - 1) * wide..i * wide].copy_from_slice(&at[..wide]);
            }
            body.extend(block.iter().map(|&l| packed[l].form.0));
            let mut bits = BitWriter::default();
            for row in rows(block, i < self.turning) {
                for k in 0..4 {
                    for &l in row.iter().filter(|&&l| k <= packed[l].form.degree()) {
                        bits.write(packed[l].coefficients[k], u32::from(self.widths[l][k]));
                    }
                }
                for (f, basis) in fitter.basis().iter().enumerate() {
                    for &l in row {
                        let p = &packed[l];
                        let left = segment.numbers[l][f] - base(p.coefficients, p.form.unit(), *basis) as i32;
                        bits.write(left, p.form.width());
                    }
                }
            }
            body.extend(bits.finish());
        }
        self.bodies.extend(body);
        self.ends.push(self.bodies.len() as u32);
    }

    pub fn finish(self) -> Payload {
        let offset = offset_size(self.bodies.len());
        let mut bytes = Vec::with_capacity(self.bodies.len() + self.ends.len() * offset + PADDING);
        for end in &self.ends {
            bytes.extend(&end.to_le_bytes()[..offset]);
        }
        bytes.extend(self.bodies);
        bytes.extend([0; PADDING]);
        Payload { bytes, widths: self.widths }
    }
}

/// Writes the segments of a group that stands in memory.
pub(crate) fn write_payload(g: &Group) -> Payload {
    let (segments, stored) = (g.scales.len(), g.stored());
    let all = lanes(g);
    let mut writer = PayloadWriter::new(g);
    let mut segment = SegmentNumbers { quarters: vec![0; all.len()], numbers: vec![Vec::new(); all.len()] };
    for second in [false, true] {
        for s in 0..segments {
            let (a, b) = (segment_start(s, segments, stored), segment_start(s + 1, segments, stored));
            for (k, lane) in all.iter().enumerate() {
                segment.quarters[k] = lane.quarters[s];
                segment.numbers[k].clear();
                segment.numbers[k].extend(&lane.numbers[a..b]);
            }
            if second { writer.write(&segment) } else { writer.look(&segment) }
        }
    }
    writer.finish()
}

/// Bytes of an offset of a block within its segment.
pub(crate) fn wide_blocks(blocks: usize) -> usize {
    if blocks <= 32 { 2 } else { 4 }
}

/// Bytes of the end offset of a segment, where all segments take `total`.
pub(crate) fn offset_size(total: usize) -> usize {
    if total < 1 << 16 {
        2
    } else if total < 1 << 24 {
        3
    } else {
        4
    }
}

/// Finds the segments in a group's payload: start and end of each. The payload must end with
/// `padding` bytes.
pub(crate) fn segment_ranges(
    payload: &[u8],
    segments: usize,
    padding: usize,
) -> Result<Vec<(usize, usize)>, DecodeError> {
    let bad = |what: String| invalid("clip, segments", what);
    // The size of the offsets follows from the size of what they point into.
    let size = [2usize, 3, 4]
        .into_iter()
        .find(|&s| {
            segments
                .checked_mul(s)
                .and_then(|t| payload.len().checked_sub(t + padding))
                .is_some_and(|t| offset_size(t) == s)
        })
        .ok_or_else(|| bad(format!("{} bytes hold no {segments} segments", payload.len())))?;
    let first = segments * size;
    let mut start = first;
    let mut out = Vec::with_capacity(segments);
    for s in 0..segments {
        let mut word = [0u8; 4];
        word[..size].copy_from_slice(&payload[s * size..(s + 1) * size]);
        let end = first + u32::from_le_bytes(word) as usize;
        if end < start || end > payload.len() - padding {
            return Err(bad(format!("segment {s} ends at byte {end} of {}", payload.len())));
        }
        out.push((start, end));
        start = end;
    }
    Ok(out)
}

/// Default lanes for reading.
impl Default for ValueLane {
    fn default() -> Self {
        Self { target: Target::Track(0, 0), lane: Lane::default() }
    }
}

impl Default for Group {
    fn default() -> Self {
        Self {
            times: Times::Uniform { start: 0.0, num: 1, den: 1, end: 0.0 },
            frames: 1,
            closed: false,
            scales: Vec::new(),
            rotations: Vec::<RotationLanes>::new(),
            values: Vec::new(),
        }
    }
}

/// A form byte as read.
pub(crate) fn form(byte: u8) -> Form {
    Form(byte)
}
