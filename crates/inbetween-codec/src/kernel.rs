//! The decoder's inner loops: eight lanes at a time through `fearless_simd`, and a plain twin.
//!
//! Both do the same f32 operations in the same order, + − × ÷ √ alone and none of them fused, so
//! they agree to the bit at every SIMD level.
//!
//! A row is up to eight lanes. All first coefficients of a row lie side by side in the file, then
//! all second ones, and so on, then frame by frame what is left of each lane. Eight such fields are
//! 24 bytes at most, so two loads of sixteen bytes, one shuffle and one shift bring all eight of
//! them into a register. Where each field begins is a running sum of eight widths below 256: one
//! multiplication of a u64 whose bytes are the widths.

use fearless_simd::{Simd, f32x4, f32x8, i32x8, prelude::*, u8x16, u8x32, u32x8, u64x4};

use crate::decode::SegmentSpot;
use crate::quantize::{Form, QUARTERS, base, round};

/// A byte of 1 in every lane's place.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight lanes as the decoder wants them, made once when a clip is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Lanes in use.
    pub used: usize,
    /// Widths of the four coefficients.
    pub bits: [[u8; 8]; 4],
    /// The same, a byte a lane.
    packed: [u64; 4],
    /// Masks and sign bits of the coefficients.
    mask: [[i32; 8]; 4],
    sign: [[i32; 8]; 4],
    pub step: [f32; 8],
    pub bias: [f32; 8],
}

impl Row {
    /// Finishes a row whose `used`, `bits`, `step` and `bias` are set.
    pub fn prepare(&mut self) {
        for k in 0..4 {
            for l in 0..8 {
                let b = self.bits[k][l].min(24);
                self.bits[k][l] = b;
                self.mask[k][l] = ((1u32 << b) - 1) as i32;
                self.sign[k][l] = ((1u32 << b) >> 1) as i32;
            }
            self.packed[k] = u64::from_le_bytes(self.bits[k]);
        }
    }
}

/// Where in a segment to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// Frames of the segment.
    pub frames: u32,
    /// The frame wanted, within the segment.
    pub frame: u32,
    /// B1..B3 there and at the frame after it (or there again).
    pub basis: [[f32; 3]; 2],
    /// True if the frame after it is wanted too.
    pub pair: bool,
    /// The segment's scale of all steps.
    pub scale: f32,
}

/// Values of up to 24 lanes at the two frames.
pub(crate) type Values = [[[f32; 8]; 3]; 2];

/// Where the fields of a row begin.
#[derive(Clone, Copy, Debug)]
struct Laid {
    /// First bit of the coefficients c0..c3 of all lanes, and of what is left at the first frame.
    at: [u32; 5],
    /// A byte a lane: bits of its neighbours before it in each.
    before: [u64; 5],
    /// A byte a lane: its own bits in each, none for coefficients past its degree.
    widths: [u64; 5],
    /// Bits a frame takes.
    frame: u32,
    /// First bit after the row.
    end: u32,
}

impl Laid {
    /// The row with these `forms` (a byte a lane, zero where there is none) that begins at bit `at`.
    #[inline(always)]
    fn new(row: &Row, forms: u64, at: u32, frames: u32) -> Self {
        let select = forms & (15 * ONES);
        let all = select & (select >> 1);
        let widest = (all & (all >> 2)) & ONES;
        let (high, low) = ((forms >> 7) & ONES, (forms >> 6) & ONES);
        let widths = [
            row.packed[0],
            row.packed[1] & ((high | low) * 255),
            row.packed[2] & (high * 255),
            row.packed[3] & ((high & low) * 255),
            select + widest * 9,
        ];
        let mut out = Self { at: [at; 5], before: [0; 5], widths, frame: 0, end: 0 };
        let mut next = at;
        for k in 0..5 {
            // No sum exceeds 8 · 24, so no byte runs over into the next.
            let sums = widths[k].wrapping_mul(ONES);
            out.at[k] = next;
            out.before[k] = sums << 8;
            let total = (sums >> 56) as u32;
            if k < 4 {
                next += total;
            } else {
                out.frame = total;
            }
        }
        out.end = next + out.frame * frames;
        out
    }

    /// First bit of a field of a lane.
    #[inline(always)]
    fn bit(&self, field: usize, lane: usize) -> u64 {
        u64::from(self.at[field]) + (self.before[field] >> (8 * lane) & 255)
    }
}

/// Forms of a row that begin at byte `index`, zero for lanes it has not.
#[inline(always)]
fn forms_of(bytes: &[u8], index: usize, used: usize) -> u64 {
    let word = load(bytes, index as u64 * 8);
    if used < 8 { word & ((1u64 << (used * 8)) - 1) } else { word }
}

/// 57 bits from bit `at` on; past the end zeros.
#[inline(always)]
fn load(bytes: &[u8], at: u64) -> u64 {
    let word = bytes.get((at >> 3) as usize..).and_then(|b| b.first_chunk::<8>());
    u64::from_le_bytes(word.copied().unwrap_or_default()) >> (at & 7)
}

#[inline(always)]
fn signed(v: u32, bits: u32) -> i32 {
    let (mask, sign) = ((1u32 << bits) - 1, (1u32 << bits) >> 1);
    (((v & mask) ^ sign).wrapping_sub(sign)) as i32
}

/// One lane of a row, plainly.
#[inline(always)]
fn plain_lane(bytes: &[u8], laid: &Laid, row: &Row, l: usize, form: Form, spot: &Spot) -> [f32; 2] {
    let mut c = [0i32; 4];
    for k in 0..=form.degree() {
        c[k] = signed(load(bytes, laid.bit(k, l)) as u32, u32::from(row.bits[k][l]));
    }
    let width = form.width();
    let near = laid.bit(4, l) + u64::from(laid.frame * spot.frame);
    let step = row.step[l] * spot.scale * QUARTERS[form.quarter()];
    let value =
        |bits: u32, b: [f32; 3]| (base(c, form.unit(), b) + signed(bits, width) as f32) * step + row.bias[l];
    let first = value(load(bytes, near) as u32, spot.basis[0]);
    [
        first,
        if spot.pair {
            value(load(bytes, near + u64::from(laid.frame)) as u32, spot.basis[1])
        } else {
            first
        },
    ]
}

/// One lane of a row without a branch: fields that are not there are no bits wide.
#[inline(always)]
fn one_lane(bytes: &[u8], laid: &Laid, row: &Row, l: usize, forms: u64, spot: &Spot) -> [f32; 2] {
    let form = Form((forms >> (8 * l)) as u8);
    let width = |k: usize| (laid.widths[k] >> (8 * l)) as u32 & 31;
    let near = laid.bit(4, l) + u64::from(laid.frame * spot.frame);
    // The second frame where there is one; where there is none, the first again.
    let far = near + if spot.pair { u64::from(laid.frame) } else { 0 };
    let field = |k: usize, at: u64| signed(load(bytes, at) as u32, width(k));
    // Written out: `map` would be a call.
    let c = [
        field(0, laid.bit(0, l)),
        field(1, laid.bit(1, l)),
        field(2, laid.bit(2, l)),
        field(3, laid.bit(3, l)),
    ];
    let step = row.step[l] * spot.scale * QUARTERS[form.quarter()];
    let (unit, bias) = (form.unit(), row.bias[l]);
    [
        (base(c, unit, spot.basis[0]) + field(4, near) as f32) * step + bias,
        (base(c, unit, spot.basis[1]) + field(4, far) as f32) * step + bias,
    ]
}

/// All lanes of a block, plainly: the sums of widths added up one by one. `bytes` begin with the
/// forms.
pub(crate) fn plain_block(bytes: &[u8], rows: &[Row; 3], spot: &Spot) -> Values {
    let mut out = [[[0.0; 8]; 3]; 2];
    let lanes: usize = rows.iter().map(|r| r.used).sum();
    let mut at = lanes as u32 * 8;
    let mut index = 0;
    for (r, row) in rows.iter().enumerate() {
        let form = |l: usize| Form(bytes.get(index + l).copied().unwrap_or(0));
        let mut laid = Laid { at: [0; 5], before: [0; 5], widths: [0; 5], frame: 0, end: 0 };
        for k in 0..5 {
            laid.at[k] = at;
            let mut before = [0u8; 8];
            let mut sum = 0u32;
            for l in 0..row.used {
                before[l] = sum as u8;
                sum += match k {
                    4 => form(l).width(),
                    k if k <= form(l).degree() => u32::from(row.bits[k][l]),
                    _ => 0,
                };
            }
            laid.before[k] = u64::from_le_bytes(before);
            if k < 4 {
                at += sum;
            } else {
                laid.frame = sum;
                at += sum * spot.frames;
            }
        }
        for l in 0..row.used {
            let [a, b] = plain_lane(bytes, &laid, row, l, form(l), spot);
            (out[0][r][l], out[1][r][l]) = (a, b);
        }
        index += row.used;
    }
    out
}

/// A lane of all three rows (a rotation) at the two frames; into `out` by row.
#[inline(always)]
pub(crate) fn three_lanes(bytes: &[u8], rows: &[Row; 3], lane: usize, spot: &Spot, out: &mut [[f32; 3]; 2]) {
    let mut at = (rows[0].used + rows[1].used + rows[2].used) as u32 * 8;
    let mut index = 0;
    for r in 0..3 {
        let row = &rows[r];
        let forms = forms_of(bytes, index, row.used);
        let laid = Laid::new(row, forms, at, spot.frames);
        let [near, far] = one_lane(bytes, &laid, row, lane, forms, spot);
        (out[0][r], out[1][r]) = (near, far);
        at = laid.end;
        index += row.used;
    }
}

/// A lane of one row at the two frames.
pub(crate) fn single_lane(bytes: &[u8], rows: &[Row; 3], r: usize, lane: usize, spot: &Spot) -> [f32; 2] {
    let (forms, laid) = row_of(bytes, rows, r, spot.frames);
    one_lane(bytes, &laid, &rows[r], lane, forms, spot)
}

/// Forms and places of row `r` of a block, behind those before it.
fn row_of(bytes: &[u8], rows: &[Row; 3], r: usize, frames: u32) -> (u64, Laid) {
    let mut at = (rows[0].used + rows[1].used + rows[2].used) as u32 * 8;
    let mut index = 0;
    for row in &rows[..r] {
        at = Laid::new(row, forms_of(bytes, index, row.used), at, frames).end;
        index += row.used;
    }
    let forms = forms_of(bytes, index, rows[r].used);
    (forms, Laid::new(&rows[r], forms, at, frames))
}

/// A lane in one segment with all that no frame changes worked out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundLane {
    /// The polynomial's coefficients.
    f: [f32; 4],
    step: f32,
    /// Bits from one frame's remainder to the next one's, and bits of a remainder.
    stride: u16,
    width: u16,
    /// First bit of the remainder, in the group's payload, that frame 0 of the clip would have.
    origin: i64,
}

impl FoundLane {
    /// Lane `lane` of row `r` in the block whose bytes begin at byte `block` of `payload`.
    pub(crate) fn new(
        (payload, block): (&[u8], usize),
        rows: &[Row; 3],
        (r, lane): (usize, usize),
        spot: &SegmentSpot,
    ) -> Self {
        let bytes = payload.get(block..).unwrap_or(&[]);
        let (forms, laid) = row_of(bytes, rows, r, spot.frames);
        let form = Form((forms >> (8 * lane)) as u8);
        let width = |k: usize| (laid.widths[k] >> (8 * lane)) as u32 & 31;
        let coefficient = |k: usize| signed(load(bytes, laid.bit(k, lane)) as u32, width(k));
        Self {
            f: std::array::from_fn(|k| (coefficient(k) << form.unit()) as f32),
            step: rows[r].step[lane] * spot.scale * QUARTERS[form.quarter()],
            stride: laid.frame as u16,
            width: width(4) as u16,
            origin: (8 * block as u64 + laid.bit(4, lane)) as i64
                - i64::from(laid.frame) * i64::from(spot.start),
        }
    }

    /// Its value at frame `frame` of the clip, whose basis is `b`.
    #[inline(always)]
    pub(crate) fn at(&self, payload: &[u8], frame: u32, b: [f32; 3], bias: f32) -> f32 {
        let at = (self.origin + i64::from(self.stride) * i64::from(frame)) as u64;
        let rest = signed(load(payload, at) as u32, u32::from(self.width)) as f32;
        let base = self.f[0] + round((self.f[1] * b[0] + self.f[2] * b[1]) + self.f[3] * b[2]);
        (base + rest) * self.step + bias
    }
}

/// All lanes of a block, eight at a time.
#[inline(always)]
pub(crate) fn block<S: Simd>(simd: S, bytes: &[u8], rows: &[Row; 3], spot: &Spot) -> Values {
    let mut out = [[[0.0; 8]; 3]; 2];
    if bytes.len() < 16 {
        return out;
    }
    let mut at = (rows[0].used + rows[1].used + rows[2].used) as u32 * 8;
    let mut index = 0;
    for r in 0..3 {
        let row = &rows[r];
        if row.used == 0 {
            break;
        }
        let forms = forms_of(bytes, index, row.used);
        index += row.used;
        let laid = Laid::new(row, forms, at, spot.frames);
        at = laid.end;
        let (v0, v1) = row8(simd, bytes, &laid, row, forms, spot);
        out[0][r] = v0.into();
        out[1][r] = v1.into();
    }
    out
}

#[inline(always)]
fn ints<S: Simd>(simd: S, v: [i32; 8]) -> i32x8<S> {
    v.simd_into(simd)
}

#[inline(always)]
fn number<S: Simd>(simd: S, v: u32) -> u32x8<S> {
    u32x8::splat(simd, v)
}

/// A byte a lane as four equal bytes in each lane of a register.
#[inline(always)]
fn spread<S: Simd>(simd: S, bytes: u64) -> u8x32<S> {
    const LANES: [u8; 32] = {
        let mut out = [0u8; 32];
        let mut i = 0;
        while i < 32 {
            out[i] = (i / 4) as u8;
            i += 1;
        }
        out
    };
    let all: u8x32<S> = u64x4::splat(simd, bytes).bitcast();
    let order: u8x32<S> = LANES.simd_into(simd);
    simd.swizzle_dyn_within_blocks_u8x32(all, order)
}

#[inline(always)]
fn sixteen<S: Simd>(simd: S, bytes: &[u8], at: u32) -> u8x16<S> {
    // Opening made sure that all fields lie inside and sixteen bytes follow them.
    let i = ((at >> 3) as usize).min(bytes.len() - 16);
    u8x16::from_slice(simd, &bytes[i..i + 16])
}

/// The fields of eight lanes of which the first begins at bit `at`, each with what follows it above.
#[inline(always)]
fn fields<S: Simd>(simd: S, bytes: &[u8], at: u32, before: u64) -> u32x8<S> {
    const NEXT: [u8; 32] = {
        let mut out = [0u8; 32];
        let mut i = 0;
        while i < 32 {
            out[i] = (i % 4) as u8;
            i += 1;
        }
        out
    };
    // Lanes 0–3 from one load, 4–7 from another: each half within sixteen bytes.
    let half = (before >> 32 & 255) as u32;
    let window: u8x32<S> = simd.combine_u8x16(sixteen(simd, bytes, at), sixteen(simd, bytes, at + half));
    let starts = (0x0101_0101 * u64::from(at & 7)) | ((0x0101_0101 * u64::from((at + half) & 7)) << 32);
    let within = before.wrapping_sub((0x0101_0101 * u64::from(half)) << 32) + starts;
    let within: u32x8<S> = spread(simd, within).bitcast();
    let first: u8x32<S> = ((within >> 3) & number(simd, 0x1f1f_1f1f)).bitcast();
    let next: u8x32<S> = NEXT.simd_into(simd);
    let raw: u32x8<S> = simd.swizzle_dyn_within_blocks_u8x32(window, first + next).bitcast();
    simd.shrv_u32x8(raw, within & number(simd, 7))
}

#[inline(always)]
fn extend<S: Simd>(v: u32x8<S>, mask: i32x8<S>, sign: i32x8<S>) -> i32x8<S> {
    let v: i32x8<S> = v.bitcast();
    ((v & mask) ^ sign) - sign
}

/// The value at a frame with basis `b`, from the polynomial's coefficients and the remainder.
#[inline(always)]
fn value<S: Simd>(
    simd: S,
    f: &[f32x8<S>; 4],
    r: f32x8<S>,
    b: [f32; 3],
    step: f32x8<S>,
    bias: f32x8<S>,
) -> f32x8<S> {
    let magic = f32x8::splat(simd, 12_582_912.0);
    let poly =
        (f[1] * f32x8::splat(simd, b[0]) + f[2] * f32x8::splat(simd, b[1])) + f[3] * f32x8::splat(simd, b[2]);
    ((f[0] + ((poly + magic) - magic)) + r) * step + bias
}

/// Coefficient `k` of eight lanes.
#[inline(always)]
fn coefficient<S: Simd>(simd: S, bytes: &[u8], laid: &Laid, row: &Row, k: usize) -> i32x8<S> {
    // Closures would be calls of their own, outside what was compiled for the SIMD level.
    extend(fields(simd, bytes, laid.at[k], laid.before[k]), ints(simd, row.mask[k]), ints(simd, row.sign[k]))
}

#[inline(always)]
fn row8<S: Simd>(
    simd: S,
    bytes: &[u8],
    laid: &Laid,
    row: &Row,
    forms: u64,
    spot: &Spot,
) -> (f32x8<S>, f32x8<S>) {
    let zero = number(simd, 0);
    let forms: u32x8<S> = spread(simd, forms).bitcast();
    let forms = forms & number(simd, 255);
    let select = forms & number(simd, 15);
    let width = select + simd.select_u32x8(select.simd_eq(number(simd, 15)), number(simd, 9), zero);
    let quarter = (forms >> 4) & number(simd, 3);
    let degree = forms >> 6;
    let izero = i32x8::splat(simd, 0);
    let c0 = coefficient(simd, bytes, laid, row, 0);
    let c1 = coefficient(simd, bytes, laid, row, 1);
    let c2 = coefficient(simd, bytes, laid, row, 2);
    let c3 = coefficient(simd, bytes, laid, row, 3);
    let c1 = simd.select_i32x8(degree.simd_ge(number(simd, 1)), c1, izero);
    let c2 = simd.select_i32x8(degree.simd_ge(number(simd, 2)), c2, izero);
    let c3 = simd.select_i32x8(degree.simd_ge(number(simd, 3)), c3, izero);
    let unit: i32x8<S> = (simd.max_u32x8(width, number(simd, 3)) - number(simd, 3)).bitcast();
    let f = [
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c0, unit)),
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c1, unit)),
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c2, unit)),
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c3, unit)),
    ];
    let power = simd.shlv_u32x8(number(simd, 1), width);
    let mask: i32x8<S> = (power - number(simd, 1)).bitcast();
    let sign: i32x8<S> = (power >> 1).bitcast();
    let at = laid.at[4] + laid.frame * spot.frame;
    let odd = (quarter & number(simd, 1)).simd_eq(number(simd, 1));
    let upper = quarter.simd_ge(number(simd, 2));
    let quarters = simd.select_f32x8(
        upper,
        simd.select_f32x8(odd, f32x8::splat(simd, QUARTERS[3]), f32x8::splat(simd, QUARTERS[2])),
        simd.select_f32x8(odd, f32x8::splat(simd, QUARTERS[1]), f32x8::splat(simd, QUARTERS[0])),
    );
    let step: f32x8<S> = f32x8::from_slice(simd, &row.step) * f32x8::splat(simd, spot.scale) * quarters;
    let bias = f32x8::from_slice(simd, &row.bias);
    let near = simd.cvt_f32_i32x8(extend(fields(simd, bytes, at, laid.before[4]), mask, sign));
    let v0 = value(simd, &f, near, spot.basis[0], step, bias);
    if !spot.pair {
        return (v0, v0);
    }
    let far = fields(simd, bytes, at + laid.frame, laid.before[4]);
    let far = simd.cvt_f32_i32x8(extend(far, mask, sign));
    (v0, value(simd, &f, far, spot.basis[1], step, bias))
}

/// Eight quaternions from three rows of parameters.
#[inline(always)]
pub(crate) fn quaternions8<S: Simd>(simd: S, v: &[[f32; 8]; 3]) -> [[f32; 8]; 4] {
    let q = turn_of(simd, v);
    [q[0].into(), q[1].into(), q[2].into(), q[3].into()]
}

#[inline(always)]
fn turn_of<S: Simd>(simd: S, v: &[[f32; 8]; 3]) -> [f32x8<S>; 4] {
    let one = f32x8::splat(simd, 1.0);
    let (x, y, z) =
        (f32x8::from_slice(simd, &v[0]), f32x8::from_slice(simd, &v[1]), f32x8::from_slice(simd, &v[2]));
    let n = (x * x + y * y) + z * z;
    let i = one / (one + n);
    let d = i + i;
    [x * d, y * d, z * d, (one - n) * i]
}

/// Rotations of up to eight joints: parameters at two frames to quaternions between them, x, y, z,
/// w of each joint in turn.
#[inline(always)]
pub(crate) fn turn8<S: Simd>(simd: S, v: &Values, middle: &[[f32; 8]; 4], blend: f32) -> [[f32; 4]; 8] {
    let a = turn_of(simd, &v[0]);
    if blend == 0.0 {
        return onto(simd, middle, &a);
    }
    let b = turn_of(simd, &v[1]);
    onto(simd, middle, &between(simd, &a, &b, blend))
}

/// The same from quaternions that were kept.
#[inline(always)]
pub(crate) fn kept8<S: Simd>(
    simd: S,
    kept: &[[[f32; 8]; 4]; 2],
    middle: &[[f32; 8]; 4],
    blend: f32,
) -> [[f32; 4]; 8] {
    let a = four(simd, &kept[0]);
    if blend == 0.0 {
        return onto(simd, middle, &a);
    }
    let b = four(simd, &kept[1]);
    onto(simd, middle, &between(simd, &a, &b, blend))
}

#[inline(always)]
fn four<S: Simd>(simd: S, rows: &[[f32; 8]; 4]) -> [f32x8<S>; 4] {
    [
        f32x8::from_slice(simd, &rows[0]),
        f32x8::from_slice(simd, &rows[1]),
        f32x8::from_slice(simd, &rows[2]),
        f32x8::from_slice(simd, &rows[3]),
    ]
}

/// The normalised mean of two rotations, the short way.
#[inline(always)]
fn between<S: Simd>(simd: S, a: &[f32x8<S>; 4], b: &[f32x8<S>; 4], blend: f32) -> [f32x8<S>; 4] {
    let one = f32x8::splat(simd, 1.0);
    let dot = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);
    let t = f32x8::splat(simd, blend);
    let s = one - t;
    let t = simd.select_f32x8(dot.simd_lt(f32x8::splat(simd, 0.0)), f32x8::splat(simd, 0.0) - t, t);
    let r = [a[0] * s + b[0] * t, a[1] * s + b[1] * t, a[2] * s + b[2] * t, a[3] * s + b[3] * t];
    let n = (r[0] * r[0] + r[1] * r[1]) + (r[2] * r[2] + r[3] * r[3]);
    let i = one / n.sqrt();
    [r[0] * i, r[1] * i, r[2] * i, r[3] * i]
}

/// The middle rotations turned by `q`.
#[inline(always)]
fn onto<S: Simd>(simd: S, middle: &[[f32; 8]; 4], q: &[f32x8<S>; 4]) -> [[f32; 4]; 8] {
    let m = four(simd, middle);
    let x = ((m[3] * q[0] + m[0] * q[3]) + m[1] * q[2]) - m[2] * q[1];
    let y = ((m[3] * q[1] + m[1] * q[3]) + m[2] * q[0]) - m[0] * q[2];
    let z = ((m[3] * q[2] + m[2] * q[3]) + m[0] * q[1]) - m[1] * q[0];
    let w = ((m[3] * q[3] - m[0] * q[0]) - m[1] * q[1]) - m[2] * q[2];
    let ((x0, x1), (y0, y1), (z0, z1), (w0, w1)) = (x.split(), y.split(), z.split(), w.split());
    let mut out = [[0.0f32; 4]; 8];
    let (near, far) = out.as_flattened_mut().split_at_mut(16);
    f32x4::store_four_interleaved([x0, y0, z0, w0], near);
    f32x4::store_four_interleaved([x1, y1, z1, w1], far);
    out
}

/// One rotation, plainly; the twin of [`turn8`].
#[inline(always)]
pub(crate) fn plain_turn(v0: [f32; 3], v1: [f32; 3], m: [f32; 4], blend: f32) -> [f32; 4] {
    let a = plain_quaternion(v0);
    let q = if blend == 0.0 {
        a
    } else {
        let b = plain_quaternion(v1);
        let dot = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);
        let s = 1.0 - blend;
        let t = if dot < 0.0 { 0.0 - blend } else { blend };
        let r = [a[0] * s + b[0] * t, a[1] * s + b[1] * t, a[2] * s + b[2] * t, a[3] * s + b[3] * t];
        let n = (r[0] * r[0] + r[1] * r[1]) + (r[2] * r[2] + r[3] * r[3]);
        let i = 1.0 / n.sqrt();
        [r[0] * i, r[1] * i, r[2] * i, r[3] * i]
    };
    [
        ((m[3] * q[0] + m[0] * q[3]) + m[1] * q[2]) - m[2] * q[1],
        ((m[3] * q[1] + m[1] * q[3]) + m[2] * q[0]) - m[0] * q[2],
        ((m[3] * q[2] + m[2] * q[3]) + m[0] * q[1]) - m[1] * q[0],
        ((m[3] * q[3] - m[0] * q[0]) - m[1] * q[1]) - m[2] * q[2],
    ]
}

#[inline(always)]
fn plain_quaternion(v: [f32; 3]) -> [f32; 4] {
    let n = (v[0] * v[0] + v[1] * v[1]) + v[2] * v[2];
    let i = 1.0 / (1.0 + n);
    let d = i + i;
    [v[0] * d, v[1] * d, v[2] * d, (1.0 - n) * i]
}

/// Two values mixed, as for everything that is no rotation.
#[inline(always)]
pub(crate) fn mix(a: f32, b: f32, blend: f32) -> f32 {
    a * (1.0 - blend) + b * blend
}
