//! Values to whole numbers and back: the arithmetic that encoder and decoder must share to the bit.
//!
//! A component of a track (a *lane*) is cut into segments of some ten to twenty frames. In a
//! segment its values lie on a lattice: value = step · n, with n whole. The n are stored as a
//! polynomial of degree 0 to 3 through the segment, rounded, plus what is left, in as many bits
//! as that needs:
//!
//! ```text
//! n(i) = (c0 << u) + round((c1·B1(i) + c2·B2(i) + c3·B3(i)) · 2^u) + r(i)
//! B1 = 2x − 1,  B2 = 4x(1 − x),  B3 = 10.392·x(1 − x)(1 − 2x),  x = i / (frames − 1)
//! ```
//!
//! with u = max(0, bits − 3): a coarse remainder needs no fine polynomial. `step` is the lane's own
//! step times that of the segment, times one of four quarter octaves chosen so that the remainder
//! fills its bits. All of it is f32 with + − × alone, in the order written here, so every machine
//! and every SIMD width gets the same bits.
//!
//! A rotation is a lane triple: modified Rodrigues parameters m = v/(1 + w) of the turn away from
//! a fixed middle rotation. Back: q = (2m, 1 − |m|²)/(1 + |m|²). No sines either way.
//! Source of the parameters: Schaub & Junkins, "Stereographic Orientation Parameters" (1996).

/// Bits of a remainder for each of the sixteen widths a segment may choose.
pub(crate) const WIDTHS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 24];

/// Largest magnitude of a lattice number; beyond it f32 would round.
pub(crate) const MAX_NUMBER: i32 = 1 << 22;

/// The four quarter octaves around 1: 2^(−1/2), 2^(−1/4), 1, 2^(1/4).
pub(crate) const QUARTERS: [f32; 4] = [std::f32::consts::FRAC_1_SQRT_2, 0.840_896_4, 1.0, 1.189_207_1];

/// Eighths of an octave, 2^(k/8).
const EIGHTHS: [f32; 8] = [
    1.0,
    1.090_507_7,
    1.189_207_1,
    1.296_839_6,
    std::f32::consts::SQRT_2,
    1.542_210_8,
    1.681_792_8,
    1.834_008_1,
];

/// 2^(e/8), exact to f32 rounding and the same everywhere. `e` within ±960.
pub(crate) fn exp8(e: i32) -> f32 {
    let whole = e.div_euclid(8).clamp(-120, 120);
    EIGHTHS[e.rem_euclid(8) as usize] * f32::from_bits(((127 + whole) as u32) << 23)
}

/// What a segment says about a lane in one byte: remainder width, quarter octave, degree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form(pub u8);

impl Form {
    pub fn new(width: usize, quarter: usize, degree: usize) -> Self {
        debug_assert!(width < 16 && quarter < 4 && degree < 4);
        Self((width | quarter << 4 | degree << 6) as u8)
    }
    pub fn width(self) -> u32 {
        u32::from(WIDTHS[usize::from(self.0 & 15)])
    }
    pub fn quarter(self) -> usize {
        usize::from(self.0 >> 4 & 3)
    }
    pub fn degree(self) -> usize {
        usize::from(self.0 >> 6)
    }
    /// Left shift of the polynomial's coefficients.
    pub fn unit(self) -> u32 {
        self.width().saturating_sub(3)
    }
}

/// B1, B2, B3 at frame `i` of a segment of `frames`.
pub(crate) fn basis(i: usize, frames: usize) -> [f32; 3] {
    let x = if frames > 1 { i as f32 / (frames - 1) as f32 } else { 0.0 };
    let y = 1.0 - x;
    let b1 = x - y;
    let b2 = 4.0 * (x * y);
    [b1, b2, 2.598 * (b2 * (y - x))]
}

/// Rounds to the nearest whole number, halves to even, for magnitudes below 2^22.
#[inline(always)]
pub(crate) fn round(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 · 2^23: adding it leaves no room for a fraction
    (x + MAGIC) - MAGIC
}

/// The polynomial part of n at a frame with basis `b`.
#[inline(always)]
pub(crate) fn base(c: [i32; 4], unit: u32, b: [f32; 3]) -> f32 {
    let f = |k: usize| (c[k] << unit) as f32;
    f(0) + round((f(1) * b[0] + f(2) * b[1]) + f(3) * b[2])
}

/// Bits a signed number needs, 0 for zero.
pub(crate) fn signed_bits(v: i32) -> u32 {
    if v == 0 { 0 } else { 33 - (if v < 0 { !v } else { v }).leading_zeros() }
}

/// A lane in one segment, as it will be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub form: Form,
    pub coefficients: [i32; 4],
}

/// Least-squares fitting of the basis to rows of a fixed length.
#[derive(Debug)]
pub(crate) struct Fitter {
    /// B0..B3 at each frame.
    basis: Vec<[f32; 3]>,
    /// For each degree the rows that give its coefficients from the values.
    solve: [Vec<[f64; 4]>; 4],
}

impl Fitter {
    pub fn new(frames: usize) -> Self {
        let basis: Vec<[f32; 3]> = (0..frames).map(|i| basis(i, frames)).collect();
        let solve = std::array::from_fn(|degree| pseudo_inverse(&basis, degree));
        Self { basis, solve }
    }

    pub fn basis(&self) -> &[[f32; 3]] {
        &self.basis
    }

    /// Highest degree the length allows.
    pub fn max_degree(&self) -> usize {
        (0..4).rev().find(|&d| !self.solve[d].is_empty()).unwrap_or(0)
    }

    /// Real coefficients of the best polynomial of a degree.
    pub fn fit(&self, degree: usize, values: &[f64]) -> [f64; 4] {
        let mut c = [0.0; 4];
        for (row, v) in self.solve[degree].iter().zip(values) {
            for k in 0..=degree {
                c[k] += row[k] * v;
            }
        }
        c
    }

    /// Stores whole numbers with the given degree in the fewest bits, if they fit at all.
    /// `quarter` is passed through.
    pub fn pack(&self, degree: usize, quarter: usize, numbers: &[i32], least: usize) -> Option<Packed> {
        let mut values = [0.0f64; 64];
        let values = &mut values[..numbers.len()];
        for (v, n) in values.iter_mut().zip(numbers) {
            *v = f64::from(*n);
        }
        let fit = self.fit(degree, values);
        // A width far too small for what the fit leaves need not be tried.
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (v, b) in values.iter().zip(&self.basis) {
            let p = fit[1] * f64::from(b[0]) + fit[2] * f64::from(b[1]) + fit[3] * f64::from(b[2]);
            low = low.min(v - p);
            high = high.max(v - p);
        }
        let mut first = least;
        while first < 15 && f64::from(1u32 << WIDTHS[first]) * 1.6 < high - low {
            first += 1;
        }
        for width in first..16 {
            let form = Form::new(width, quarter, degree);
            if let Some(coefficients) = self.place(form, &fit, numbers) {
                return Some(Packed { form, coefficients });
            }
        }
        None
    }

    /// Rounds coefficients to the form's unit and checks that all remainders fit its width.
    fn place(&self, form: Form, fit: &[f64; 4], numbers: &[i32]) -> Option<[i32; 4]> {
        let unit = form.unit();
        let scale = f64::from(1u32 << unit);
        let mut c = [0i32; 4];
        for k in 1..=form.degree() {
            let v = (fit[k] / scale).round();
            if v.abs() * scale > f64::from(MAX_NUMBER) {
                return None;
            }
            c[k] = v as i32;
        }
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        for (b, n) in self.basis.iter().zip(numbers) {
            let r = n - base(c, unit, *b) as i32;
            low = low.min(r);
            high = high.max(r);
        }
        let width = form.width();
        let (least, most) = range(width);
        if i64::from(high) - i64::from(low) > i64::from(most) - i64::from(least) {
            return None;
        }
        // Shift the remainders into their range, as near its middle as the unit allows.
        let middle = (f64::from(low - least) + f64::from(high - most)) / 2.0;
        for c0 in [(middle / scale).round(), (middle / scale).floor(), (middle / scale).ceil(), 0.0] {
            let shift = c0 * scale;
            if f64::from(low) - shift >= f64::from(least)
                && f64::from(high) - shift <= f64::from(most)
                && shift.abs() <= f64::from(MAX_NUMBER)
            {
                c[0] = c0 as i32;
                return Some(c);
            }
        }
        None
    }
}

/// Smallest and largest remainder of a width: two's complement.
pub(crate) fn range(width: u32) -> (i32, i32) {
    if width == 0 { (0, 0) } else { (-(1 << (width - 1)), (1 << (width - 1)) - 1) }
}

fn pseudo_inverse(basis: &[[f32; 3]], degree: usize) -> Vec<[f64; 4]> {
    let n = degree + 1;
    if basis.len() < n {
        return Vec::new();
    }
    let row = |b: &[f32; 3]| [1.0, f64::from(b[0]), f64::from(b[1]), f64::from(b[2])];
    let mut a = [[0.0f64; 8]; 4];
    for b in basis {
        let r = row(b);
        for i in 0..n {
            for j in 0..n {
                a[i][j] += r[i] * r[j];
            }
        }
    }
    for (i, line) in a.iter_mut().enumerate().take(n) {
        line[4 + i] = 1.0;
    }
    for i in 0..n {
        // Symmetric positive definite: no pivoting needed.
        if a[i][i].abs() < 1e-9 {
            return Vec::new();
        }
        let d = 1.0 / a[i][i];
        a[i].iter_mut().for_each(|v| *v *= d);
        for j in 0..n {
            if j != i {
                let f = a[j][i];
                for k in 0..8 {
                    a[j][k] -= f * a[i][k];
                }
            }
        }
    }
    basis
        .iter()
        .map(|b| {
            let r = row(b);
            let mut out = [0.0; 4];
            for (k, o) in out.iter_mut().enumerate().take(n) {
                for j in 0..n {
                    *o += a[k][4 + j] * r[j];
                }
            }
            out
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighths_of_an_octave_double_after_eight() {
        assert_eq!(exp8(0), 1.0);
        assert_eq!(exp8(-16), 0.25);
        for e in -200..200 {
            assert!((f64::from(exp8(e)).log2() - f64::from(e) / 8.0).abs() < 1e-6, "{e}");
            assert_eq!(exp8(e + 8), 2.0 * exp8(e));
        }
    }

    #[test]
    fn a_cubic_needs_almost_no_remainder() {
        let f = Fitter::new(16);
        let n: Vec<i32> = (0..16)
            .map(|i| (f64::from(i) * (f64::from(i) - 9.0) * (f64::from(i) - 14.0)).round() as i32)
            .collect();
        let p = f.pack(3, 2, &n, 0).unwrap();
        assert!(p.form.width() <= 2, "{p:?}");
        assert!(f.pack(0, 2, &n, 0).unwrap().form.width() > 8);
    }

    #[test]
    fn any_numbers_come_back_exactly() {
        let mut state = 7u32;
        for frames in 1..=24usize {
            let f = Fitter::new(frames);
            for spread in [0, 1, 5, 9, 14, 19] {
                let n: Vec<i32> = (0..frames)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 8) as i32 % (1 << spread)
                    })
                    .collect();
                for degree in 0..=f.max_degree() {
                    let p = f.pack(degree, 1, &n, 0).unwrap();
                    let (least, most) = range(p.form.width());
                    for (b, n) in f.basis().iter().zip(&n) {
                        let r = n - base(p.coefficients, p.form.unit(), *b) as i32;
                        assert!(least <= r && r <= most, "{frames} {spread} {p:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn rounding_goes_to_the_even_neighbour() {
        for (x, y) in [(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0), (3.2, 3.0), (-1_000_000.7, -1_000_001.0)] {
            assert_eq!(round(x), y);
        }
    }
}
