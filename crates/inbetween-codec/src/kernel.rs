//! The decoder's inner loops: eight lanes at a time through `fearless_simd`, and a plain twin.
//!
//! Both do the same f32 operations in the same order, + − × ÷ √ alone and none of them fused, so
//! they agree to the bit at every SIMD level. Bits are fetched one lane at a time, two loads a
//! lane (no gathers); everything after that is whole registers.

use std::hint::black_box;

use fearless_simd::{Simd, f32x8, i32x8, prelude::*, u8x16, u32x8};

use crate::quantize::{Form, QUARTERS, base};

/// Eight lanes as the decoder wants them, made once when a clip is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Lanes in use.
    pub used: usize,
    /// Widths of the four coefficients.
    pub bits: [[u32; 8]; 4],
    /// Masks and sign bits of the coefficients.
    mask: [[i32; 8]; 4],
    sign: [[i32; 8]; 4],
    /// Where the third and fourth coefficient begin behind the first.
    after: [[u32; 8]; 2],
    /// Bits of the coefficients up to each degree.
    upto: [[u32; 8]; 4],
    pub step: [f32; 8],
    pub bias: [f32; 8],
}

impl Row {
    /// Finishes a row whose `used`, `bits`, `step` and `bias` are set.
    pub fn prepare(&mut self) {
        for l in 0..8 {
            let mut sum = 0;
            for k in 0..4 {
                let b = self.bits[k][l].min(24);
                self.bits[k][l] = b;
                self.mask[k][l] = ((1u32 << b) - 1) as i32;
                self.sign[k][l] = ((1u32 << b) >> 1) as i32;
                sum += b;
                self.upto[k][l] = sum;
            }
            self.after[0][l] = self.bits[1][l];
            self.after[1][l] = (self.bits[1][l] + self.bits[2][l]).min(31);
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

/// 57 bits from bit `at` on; past the end zeros.
#[inline(always)]
fn load(bytes: &[u8], at: u32) -> u64 {
    let word = bytes.get((at >> 3) as usize..).and_then(|b| b.first_chunk::<8>());
    u64::from_le_bytes(word.copied().unwrap_or_default()) >> (at & 7)
}

/// Like [`load`] for a place already known to lie inside `bytes`, which are eight or more; without
/// a branch.
#[inline(always)]
fn fetch(bytes: &[u8], at: u32) -> u64 {
    let i = ((at >> 3) as usize).min(bytes.len() - 8);
    let word: [u8; 8] = bytes[i..i + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word) >> (at & 7)
}

fn signed(v: u32, bits: u32) -> i32 {
    let (mask, sign) = ((1u32 << bits) - 1, (1u32 << bits) >> 1);
    (((v & mask) ^ sign).wrapping_sub(sign)) as i32
}

/// Bits a lane takes in a segment.
#[inline(always)]
fn lane_bits(row: &Row, l: usize, form: Form, frames: u32) -> u32 {
    row.upto[form.degree()][l] + form.width() * frames
}

/// One lane, plainly. `at` is its first bit.
pub(crate) fn plain_lane(bytes: &[u8], at: u32, row: &Row, l: usize, form: Form, spot: &Spot) -> [f32; 2] {
    let x = load(bytes, at);
    let high = (x >> row.bits[0][l]) as u32;
    let mut c = [0i32; 4];
    c[0] = signed(x as u32, row.bits[0][l]);
    c[1] = signed(high, row.bits[1][l]);
    c[2] = signed(high >> row.after[0][l], row.bits[2][l]);
    c[3] = signed(high >> row.after[1][l], row.bits[3][l]);
    for (k, c) in c.iter_mut().enumerate() {
        if k > form.degree() {
            *c = 0;
        }
    }
    let width = form.width();
    let y = load(bytes, at + row.upto[form.degree()][l] + width * spot.frame);
    let step = row.step[l] * spot.scale * QUARTERS[form.quarter()];
    let value =
        |bits: u32, b: [f32; 3]| (base(c, form.unit(), b) + signed(bits, width) as f32) * step + row.bias[l];
    let first = value(y as u32, spot.basis[0]);
    [first, if spot.pair { value((y >> width) as u32, spot.basis[1]) } else { first }]
}

/// All lanes of a block, plainly. `bytes` begin with the forms.
pub(crate) fn plain_block(bytes: &[u8], rows: &[Row; 3], spot: &Spot) -> Values {
    let mut out = [[[0.0; 8]; 3]; 2];
    let lanes: usize = rows.iter().map(|r| r.used).sum();
    let mut at = lanes as u32 * 8;
    let mut index = 0;
    for (r, row) in rows.iter().enumerate() {
        for l in 0..row.used {
            let form = Form(bytes.get(index).copied().unwrap_or(0));
            let [a, b] = plain_lane(bytes, at, row, l, form, spot);
            (out[0][r][l], out[1][r][l]) = (a, b);
            at += lane_bits(row, l, form, spot.frames);
            index += 1;
        }
    }
    out
}

/// The same lane of all three rows (a rotation), or a lane of one row.
pub(crate) fn some_lanes(
    bytes: &[u8],
    rows: &[Row; 3],
    lane: usize,
    only: Option<usize>,
    spot: &Spot,
) -> [[f32; 2]; 3] {
    let mut out = [[0.0; 2]; 3];
    let lanes: usize = rows.iter().map(|r| r.used).sum();
    let mut at = lanes as u32 * 8;
    let mut index = 0;
    let last = only.unwrap_or(2);
    for (r, row) in rows.iter().enumerate().take(last + 1) {
        let used = row.used.min(8);
        let forms = bytes.get(index..index + used).unwrap_or(&[]);
        for (l, f) in forms.iter().enumerate() {
            let form = Form(*f);
            if l == lane && only.is_none_or(|o| o == r) {
                out[r] = plain_lane(bytes, at, row, l, form, spot);
                if r == last {
                    break;
                }
            }
            at += lane_bits(row, l, form, spot.frames);
        }
        index += used;
    }
    out
}

/// All lanes of a block, eight at a time.
#[inline(always)]
pub(crate) fn block<S: Simd>(simd: S, bytes: &[u8], rows: &[Row; 3], spot: &Spot) -> Values {
    let mut out = [[[0.0; 8]; 3]; 2];
    if bytes.len() < 8 {
        return out;
    }
    let lanes = rows[0].used + rows[1].used + rows[2].used;
    let mut at = lanes as u32 * 8;
    let mut index = 0;
    for r in 0..3 {
        let row = &rows[r];
        if row.used == 0 {
            break;
        }
        let mut word = load(bytes, index as u32 * 8);
        if row.used < 8 {
            word &= (1u64 << (row.used * 8)) - 1;
        }
        index += row.used;
        let mut raw = [0u8; 16];
        raw[..8].copy_from_slice(&word.to_le_bytes());
        let forms = simd.widen_u16x16(simd.combine_u16x8_low(raw)).0;
        let (v0, v1) = row8(simd, bytes, &mut at, row, forms, spot);
        out[0][r] = v0.into();
        out[1][r] = v1.into();
    }
    out
}

/// Widening of eight bytes, whatever the level calls it.
trait Widen<S: Simd> {
    fn combine_u16x8_low(self, raw: [u8; 16]) -> fearless_simd::u16x16<S>;
}

impl<S: Simd> Widen<S> for S {
    #[inline(always)]
    fn combine_u16x8_low(self, raw: [u8; 16]) -> fearless_simd::u16x16<S> {
        let v: u8x16<S> = raw.simd_into(self);
        let (low, high) = self.widen_u8x16(v);
        self.combine_u16x8(low, high)
    }
}

#[inline(always)]
fn uints<S: Simd>(simd: S, v: [u32; 8]) -> u32x8<S> {
    v.simd_into(simd)
}

#[inline(always)]
fn ints<S: Simd>(simd: S, v: [i32; 8]) -> i32x8<S> {
    v.simd_into(simd)
}

#[inline(always)]
fn extend<S: Simd>(simd: S, v: u32x8<S>, row: &Row, k: usize) -> i32x8<S> {
    let v: i32x8<S> = v.bitcast();
    let sign = ints(simd, row.sign[k]);
    ((v & ints(simd, row.mask[k])) ^ sign) - sign
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

#[inline(always)]
fn row8<S: Simd>(
    simd: S,
    bytes: &[u8],
    at: &mut u32,
    row: &Row,
    forms: u32x8<S>,
    spot: &Spot,
) -> (f32x8<S>, f32x8<S>) {
    let zero = u32x8::splat(simd, 0);
    let select = forms & u32x8::splat(simd, 15);
    let width =
        select + simd.select_u32x8(select.simd_eq(u32x8::splat(simd, 15)), u32x8::splat(simd, 9), zero);
    let quarter = (forms >> 4) & u32x8::splat(simd, 3);
    let degree = forms >> 6;
    let one = degree.simd_ge(u32x8::splat(simd, 1));
    let two = degree.simd_ge(u32x8::splat(simd, 2));
    let three = degree.simd_ge(u32x8::splat(simd, 3));
    let coefficients = uints(simd, row.bits[0])
        + simd.select_u32x8(one, uints(simd, row.bits[1]), zero)
        + simd.select_u32x8(two, uints(simd, row.bits[2]), zero)
        + simd.select_u32x8(three, uints(simd, row.bits[3]), zero);
    // Through memory on purpose: taken from registers one by one, and put back so, they would all
    // queue for the one port that moves between lanes (twice the time, measured).
    let total: [u32; 8] = black_box((coefficients + width * u32x8::splat(simd, spot.frames)).into());
    let skip: [u32; 8] = black_box((coefficients + width * u32x8::splat(simd, spot.frame)).into());
    let widths: [u32; 8] = black_box(width.into());
    let (mut low, mut high, mut near, mut far) = ([0u32; 8], [0u32; 8], [0u32; 8], [0u32; 8]);
    let mut p = *at;
    // A count the compiler cannot see keeps the loop rolled: unrolled, it spills every load.
    for l in 0..black_box(8usize) {
        let l = l & 7;
        let x = fetch(bytes, p);
        let y = fetch(bytes, p + skip[l]);
        p += total[l];
        low[l] = x as u32;
        high[l] = x.wrapping_shr(row.bits[0][l]) as u32;
        near[l] = y as u32;
        far[l] = y.wrapping_shr(widths[l]) as u32;
    }
    *at = p;
    let (low, high, near, far) = (black_box(low), black_box(high), black_box(near), black_box(far));
    let izero = i32x8::splat(simd, 0);
    let high = uints(simd, high);
    let c0 = extend(simd, uints(simd, low), row, 0);
    let c1 = simd.select_i32x8(one, extend(simd, high, row, 1), izero);
    let c2 =
        simd.select_i32x8(two, extend(simd, simd.shrv_u32x8(high, uints(simd, row.after[0])), row, 2), izero);
    let c3 = simd.select_i32x8(
        three,
        extend(simd, simd.shrv_u32x8(high, uints(simd, row.after[1])), row, 3),
        izero,
    );
    let unit: i32x8<S> = (simd.max_u32x8(width, u32x8::splat(simd, 3)) - u32x8::splat(simd, 3)).bitcast();
    let f = [
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c0, unit)),
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c1, unit)),
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c2, unit)),
        simd.cvt_f32_i32x8(simd.shlv_i32x8(c3, unit)),
    ];
    let power = simd.shlv_u32x8(u32x8::splat(simd, 1), width);
    let mask = power - u32x8::splat(simd, 1);
    let sign: i32x8<S> = simd.shr_u32x8(power, 1).bitcast();
    let near: i32x8<S> = (uints(simd, near) & mask).bitcast();
    let far: i32x8<S> = (uints(simd, far) & mask).bitcast();
    let near = simd.cvt_f32_i32x8((near ^ sign) - sign);
    let far = simd.cvt_f32_i32x8((far ^ sign) - sign);
    let odd = (quarter & u32x8::splat(simd, 1)).simd_eq(u32x8::splat(simd, 1));
    let upper = quarter.simd_ge(u32x8::splat(simd, 2));
    let quarters = simd.select_f32x8(
        upper,
        simd.select_f32x8(odd, f32x8::splat(simd, QUARTERS[3]), f32x8::splat(simd, QUARTERS[2])),
        simd.select_f32x8(odd, f32x8::splat(simd, QUARTERS[1]), f32x8::splat(simd, QUARTERS[0])),
    );
    let step: f32x8<S> = f32x8::from_slice(simd, &row.step) * f32x8::splat(simd, spot.scale) * quarters;
    let bias = f32x8::from_slice(simd, &row.bias);
    let v0 = value(simd, &f, near, spot.basis[0], step, bias);
    let v1 = if spot.pair { value(simd, &f, far, spot.basis[1], step, bias) } else { v0 };
    (v0, v1)
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

/// Rotations of up to eight joints: parameters at two frames to quaternions between them.
#[inline(always)]
pub(crate) fn turn8<S: Simd>(simd: S, v: &Values, middle: &[[f32; 8]; 4], blend: f32) -> [[f32; 8]; 4] {
    let one = f32x8::splat(simd, 1.0);
    let a = turn_of(simd, &v[0]);
    let q = if blend == 0.0 {
        a
    } else {
        let b = turn_of(simd, &v[1]);
        let dot = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);
        let t = f32x8::splat(simd, blend);
        let s = one - t;
        let t = simd.select_f32x8(dot.simd_lt(f32x8::splat(simd, 0.0)), f32x8::splat(simd, 0.0) - t, t);
        let r = [a[0] * s + b[0] * t, a[1] * s + b[1] * t, a[2] * s + b[2] * t, a[3] * s + b[3] * t];
        let n = (r[0] * r[0] + r[1] * r[1]) + (r[2] * r[2] + r[3] * r[3]);
        let i = one / n.sqrt();
        [r[0] * i, r[1] * i, r[2] * i, r[3] * i]
    };
    let m = [
        f32x8::from_slice(simd, &middle[0]),
        f32x8::from_slice(simd, &middle[1]),
        f32x8::from_slice(simd, &middle[2]),
        f32x8::from_slice(simd, &middle[3]),
    ];
    let x = ((m[3] * q[0] + m[0] * q[3]) + m[1] * q[2]) - m[2] * q[1];
    let y = ((m[3] * q[1] + m[1] * q[3]) + m[2] * q[0]) - m[0] * q[2];
    let z = ((m[3] * q[2] + m[2] * q[3]) + m[0] * q[1]) - m[1] * q[0];
    let w = ((m[3] * q[3] - m[0] * q[0]) - m[1] * q[1]) - m[2] * q[2];
    [x.into(), y.into(), z.into(), w.into()]
}

/// One rotation, plainly; the twin of [`turn8`].
pub(crate) fn plain_turn(v0: [f32; 3], v1: [f32; 3], m: [f32; 4], blend: f32) -> [f32; 4] {
    let quat = |v: [f32; 3]| {
        let n = (v[0] * v[0] + v[1] * v[1]) + v[2] * v[2];
        let i = 1.0 / (1.0 + n);
        let d = i + i;
        [v[0] * d, v[1] * d, v[2] * d, (1.0 - n) * i]
    };
    let a = quat(v0);
    let q = if blend == 0.0 {
        a
    } else {
        let b = quat(v1);
        let dot = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);
        let s = 1.0 - blend;
        let t = if dot < 0.0 { 0.0 - blend } else { blend };
        let r: [f32; 4] = std::array::from_fn(|k| a[k] * s + b[k] * t);
        let n = (r[0] * r[0] + r[1] * r[1]) + (r[2] * r[2] + r[3] * r[3]);
        let i = 1.0 / n.sqrt();
        r.map(|c| c * i)
    };
    [
        ((m[3] * q[0] + m[0] * q[3]) + m[1] * q[2]) - m[2] * q[1],
        ((m[3] * q[1] + m[1] * q[3]) + m[2] * q[0]) - m[0] * q[2],
        ((m[3] * q[2] + m[2] * q[3]) + m[0] * q[1]) - m[1] * q[0],
        ((m[3] * q[3] - m[0] * q[0]) - m[1] * q[1]) - m[2] * q[2],
    ]
}

/// Two values mixed, as for everything that is no rotation.
#[inline(always)]
pub(crate) fn mix(a: f32, b: f32, blend: f32) -> f32 {
    a * (1.0 - blend) + b * blend
}
