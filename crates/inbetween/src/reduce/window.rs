//! Every straight span of at most sixteen samples, and the fewest of them that lead to each sample.
//!
//! Where spans are short, following them from key to key costs more than looking at all there are. For eight
//! samples at a time the cone of slopes is opened *backwards* over the sixteen before them, all eight cones in
//! one register ([`incoming`]); four differences of time share one division. That gives for each sample a word
//! whose bit `d − 1` says whether a span may come from `d` samples before.
//!
//! [`Levels`] turns those words into the fewest keys: it knows for each of the last sixteen samples how many
//! spans lead there, as four cumulative sets of sixteen bits in one word. One `and` with the incoming spans and
//! one count of trailing zeros find the lowest level that reaches a sample and its nearest member, without a
//! branch. Only the four highest levels are told apart.
//!
//! It ends where spans are longer: [`Incoming::open`] tells for how many samples the cone still let lines
//! through behind the sixteenth.

use fearless_simd::{Simd, f64x8, prelude::*};

use super::beam::Samples;
use super::cone::Tolerance;

/// Samples that are looked at together.
pub const LANES: usize = 8;

/// Longest span, in samples.
pub const REACH: usize = 16;

/// The spans that end at eight neighbouring samples.
pub struct Incoming {
    /// Bit `8·lane + d − 1`: a span from `d` samples before, d from 1 to 8.
    near: u64,
    /// The same for d from 9 to 16.
    far: u64,
    /// Lanes whose cone is open beyond the sixteenth sample, as bits.
    pub open: u64,
}

impl Incoming {
    /// The spans that end at sample `lane`: bit `d − 1` for one from `d` samples before.
    #[inline(always)]
    pub fn at(&self, lane: usize) -> u64 {
        ((self.near >> (8 * lane)) & 0xff) | (((self.far >> (8 * lane)) & 0xff) << 8)
    }
}

/// The spans that end at samples `end..end + 8`; those that would start before the first sample or end behind
/// the last are of no meaning.
#[inline(always)]
pub fn incoming<S: Simd, T: Tolerance>(simd: S, curve: &Samples<'_, T>, end: usize) -> Incoming {
    if end >= REACH && end + LANES <= curve.times.len() {
        return cones(simd, curve, end);
    }
    // At the ends of the curve: a copy that goes on beyond them.
    let mut times = [0.0; REACH + LANES];
    let mut values = [0.0; REACH + LANES];
    let mut tolerances = [0.0; REACH + LANES];
    let n = curve.times.len();
    for k in 0..REACH + LANES {
        let at = (end + k).saturating_sub(REACH).min(n - 1);
        let beyond = (end + k) as f64 - (at + REACH) as f64;
        times[k] = curve.times[at] + beyond;
        values[k] = curve.values[at];
        tolerances[k] = curve.tolerance.at(at);
    }
    let copy = Samples { times: &times, values: &values, tolerance: &tolerances[..] };
    cones(simd, &copy, REACH)
}

#[inline(always)]
fn cones<S: Simd, T: Tolerance>(simd: S, curve: &Samples<'_, T>, end: usize) -> Incoming {
    let one = f64x8::splat(simd, 1.0);
    let time = f64x8::from_slice(simd, &curve.times[end..end + LANES]);
    let value = f64x8::from_slice(simd, &curve.values[end..end + LANES]);
    let mut low = f64x8::splat(simd, f64::NEG_INFINITY);
    let mut high = f64x8::splat(simd, f64::INFINITY);
    // Macros and not closures, which would be compiled outside the machine's SIMD level.
    macro_rules! four {
        ($nearest:literal) => {{
            let first = end - $nearest - 3;
            let times = &curve.times[first..first + 3 + LANES];
            let values = &curve.values[first..first + 3 + LANES];
            macro_rules! since {
                ($k:literal) => {
                    time - f64x8::from_slice(simd, &times[3 - $k..3 - $k + LANES])
                };
            }
            let (a, b, c, d) = (since!(0), since!(1), since!(2), since!(3));
            let (ab, cd) = (a * b, c * d);
            let all = one / (ab * cd);
            let (per_ab, per_cd) = (all * cd, all * ab);
            let mut rows = 0_u64;
            macro_rules! sample {
                ($k:literal, $per_second:expr) => {{
                    let per_second = $per_second;
                    let slope =
                        (value - f64x8::from_slice(simd, &values[3 - $k..3 - $k + LANES])) * per_second;
                    let mut tolerance = [0.0; LANES];
                    for lane in 0..LANES {
                        tolerance[lane] = curve.tolerance.at(first + 3 - $k + lane);
                    }
                    let slack = f64x8::from_slice(simd, &tolerance) * per_second;
                    rows |= (low.simd_le(slope) & slope.simd_le(high)).to_bitmask() << (8 * $k);
                    low = low.max(slope - slack);
                    high = high.min(slope + slack);
                }};
            }
            sample!(0, per_ab * b);
            sample!(1, per_ab * a);
            sample!(2, per_cd * d);
            sample!(3, per_cd * c);
            rows
        }};
    }
    let near = transposed(four!(1) | four!(5) << 32);
    let mut open = low.simd_le(high).to_bitmask();
    let mut far = 0;
    if open != 0 {
        far = transposed(four!(9) | four!(13) << 32);
        open = low.simd_le(high).to_bitmask();
    }
    Incoming { near, far, open }
}

/// Bit `8·i + k` goes to `8·k + i`. Source: H. S. Warren, *Hacker's Delight*, 7–3.
#[inline(always)]
fn transposed(x: u64) -> u64 {
    let swap = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ swap ^ (swap << 7);
    let swap = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    let x = x ^ swap ^ (swap << 14);
    let swap = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ swap ^ (swap << 28)
}

/// How many spans lead to each of the last sixteen samples.
///
/// Four sets of sixteen bits, the lowest level first, each within the next; bit k stands for the sample k
/// before the last. The lowest also holds all below it.
pub struct Levels(u64);

/// A bit in each of the four sets.
const EACH: u64 = 0x0001_0001_0001_0001;

/// The highest set.
const TOP: u64 = 0xffff << 48;

impl Levels {
    /// Of samples of one level, which lie `back` before the last.
    pub fn of(back: impl Iterator<Item = usize>) -> Self {
        Self(back.filter(|&k| k < REACH).fold(0, |sets, k| sets | EACH << k))
    }

    /// Goes on by one sample, to which `incoming` spans lead. Returns how many samples before it lies the one
    /// it is reached from with the fewest.
    #[inline(always)]
    pub fn next(&mut self, incoming: u64) -> u8 {
        let found = (self.0 & incoming.wrapping_mul(EACH)).trailing_zeros();
        let same = (self.0 << 1) & !EACH;
        // One level above the highest: the lowest two become one.
        let raised = same >> 16 | (same & TOP);
        let sets = if found >= 48 { raised } else { same };
        self.0 = sets | ((EACH << 16) << (found & 48)) | 1 << 48;
        (found & 15) as u8 + 1
    }

    /// The samples of the lowest level there is, as how far they lie before the last; the farthest first.
    pub fn lowest(&self) -> impl Iterator<Item = usize> + use<> {
        let mut sets = self.0;
        while sets & 0xffff == 0 {
            sets >>= 16;
        }
        (0..REACH).rev().filter(move |k| sets >> k & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::cone::ScalarCone;
    use crate::reduce::search::Spans;
    use fearless_simd::{Level, dispatch};

    #[test]
    fn the_spans_that_come_in_are_those_that_go_out() {
        let mut state = 7_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for n in [3, 9, 25, 100] {
            let mut time = 0.0;
            let times: Vec<f64> = (0..n)
                .map(|_| {
                    time += 0.01 + 0.03 * random();
                    time
                })
                .collect();
            let values: Vec<f64> = (0..n).map(|_| random()).collect();
            let tolerances: Vec<f64> = (0..n).map(|_| 0.2 + 0.3 * random()).collect();
            let curve = Samples { times: &times, values: &values, tolerance: &tolerances[..] };
            let mut plain = vec![0_u64; n];
            let mut spans = ScalarCone::new(&times, &values, &tolerances[..]);
            for from in 0..n - 1 {
                spans.scan(from, |end, allowed| {
                    if allowed {
                        plain[end] |= 1 << (end - from - 1);
                    }
                    end - from < REACH
                });
            }
            for level in [Level::new(), Level::baseline()] {
                for end in (1..n).step_by(LANES) {
                    let found = dispatch!(level, simd => incoming(simd, &curve, end));
                    for lane in 0..LANES.min(n - end) {
                        let starts = (1 << (end + lane).min(REACH)) - 1;
                        assert_eq!(found.at(lane) & starts, plain[end + lane], "{n}: {end} + {lane}");
                    }
                }
            }
        }
    }
}
