//! The form for storage: the same numbers, each predicted from those before it and coded by how
//! far off the prediction was.
//!
//! Frame by frame, and in a frame node by node, each lane is predicted by a small linear filter
//! that learns as it goes (normalised least mean squares): from the lane's own last values and from
//! how far off the predictions were, in this very frame, of the lanes coded just before it. The
//! encoder of the runtime form makes a child take back its parent's rounding, so the parent's
//! surprise tells something about the child's; here that is got back. What is left is coded by the
//! adaptive binary coder, in contexts of how large the last ones were.
//!
//! All of it is f64 with + − × ÷ alone, the same on every machine. Unpacking gives the runtime
//! bytes that [`crate::compress`] would have written: packing bits is a function of the numbers.

use crate::compress::runtime_chunk;
use crate::content::{Group, Lane, segment_of};
use crate::format::{
    DecodeError, Ends, Fields, Parts, Widths, invalid, lanes, lanes_mut, read_file, write_file,
};
use crate::head::{ClipHead, code_clip};
use crate::quantize::{MAX_NUMBER, QUARTERS, exp8};
use crate::range_coder::{Bit, Coder};

/// A clip's chunk at rest: head length, head, numbers of all groups in one stream.
pub(crate) fn write(head: &mut ClipHead, groups: &[Group]) -> Vec<u8> {
    let mut described: Vec<(Group, Vec<Widths>, usize)> =
        groups.iter().map(|g| (crate::compress::described(g), Vec::new(), 0)).collect();
    let mut f = Fields::writer();
    code_clip(&mut f, head, &mut described, false);
    let mut coder = f.into_coder();
    for g in groups {
        let mut g = g.clone();
        code_numbers(&mut coder, &mut g);
    }
    coder.finish()
}

/// Turns a file at rest into its runtime form; a runtime file comes back as it is.
///
/// # Errors
/// If the bytes are not an `.ibc` file; see [`DecodeError`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let Parts { at_rest, chunks, .. } = read_file(bytes)?;
    if !at_rest {
        return Ok(bytes.to_vec());
    }
    let mut out = Vec::with_capacity(chunks.len());
    for (tag, body) in chunks {
        out.push((tag, if tag == *b"CLIP" { unpack_clip(body)? } else { body.to_vec() }));
    }
    Ok(write_file(false, &out))
}

fn unpack_clip(body: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut head = ClipHead::default();
    let mut described: Vec<(Group, Vec<Widths>, usize)> = Vec::new();
    let mut f = Fields::reader(body);
    code_clip(&mut f, &mut head, &mut described, false);
    f.check("clip")?;
    let mut coder = f.into_coder();
    let mut groups = Vec::new();
    for (mut g, _, _) in described {
        code_numbers(&mut coder, &mut g);
        if coder.ended() {
            return Err(invalid("clip, numbers", "the bytes end before the numbers do"));
        }
        groups.push(g);
    }
    Ok(runtime_chunk(&mut head, &groups))
}

/// Last values of its own a lane is predicted from.
const OWN: usize = 8;
/// Surprises of this frame it is predicted from: the lanes before it in its joint and those of
/// the joint coded before that moved most alike (here: the nearest lanes before it).
const BESIDE: usize = 6;
const TAPS: usize = OWN + BESIDE;

struct Predictor {
    /// Steady guess: weights on first differences of the lane's past.
    weights: [f64; TAPS],
    /// Recent size of what the weights work on.
    power: f64,
    past: [f64; OWN + 1],
    /// Mean size of the last remainders, for the context.
    size: f64,
    slow: f64,
    /// Errors of fixed predictors of order 0..3 and of the filter, decaying.
    errors: [f64; 5],
}

impl Predictor {
    fn new() -> Self {
        Self {
            weights: [0.0; TAPS],
            power: 1.0,
            past: [0.0; OWN + 1],
            size: 4.0,
            slow: 4.0,
            errors: [0.0; 5],
        }
    }
}

/// Models of a remainder: zero or not, its size in unary up to a point, then the rest; its sign.
#[derive(Default, Clone)]
struct Contexts {
    sign: Bit,
    length: [[Bit; 20]; 1],
    mantissa: [[Bit; 8]; 16],
}

fn code_remainder<C: Coder>(c: &mut C, m: &mut Contexts, v: i32, expected: u32) -> i32 {
    // Elias-gamma-like around the expected size: bucket = how many times the magnitude exceeds
    // the expectation, learned; within a bucket the upper bits learned, the lower flat.
    let magnitude = v.unsigned_abs();
    let shift = expected.saturating_sub(2).min(20);
    let high = magnitude >> shift;
    // Unary with learned bits to 18, then gamma.
    let mut n = 0u32;
    let row = &mut m.length[0];
    while n < 18 {
        let more = c.bit(&mut row[n as usize], high > n);
        if !more {
            break;
        }
        n += 1;
    }
    let mut high_out = n;
    if n == 18 {
        let rest = high.wrapping_sub(18);
        let bits = 32 - (rest.wrapping_add(1)).leading_zeros();
        let mut k = 0u32;
        while k < 26 && c.bit(&mut row[18], bits > k + 1) {
            k += 1;
        }
        let low = c.flat(rest.wrapping_add(1) & ((1u32 << k) - 1), k);
        high_out = 18 + ((1u32 << k) | low) - 1;
    }
    let low = if shift > 0 {
        let low = magnitude & ((1 << shift) - 1);
        // The top bit of the rest is learned, the others are as good as flat.
        let top = c.bit(&mut m.mantissa[(high_out as usize).min(15)][0], low >> (shift - 1) & 1 != 0);
        let under = if shift > 1 { c.flat(low & ((1 << (shift - 1)) - 1), shift - 1) } else { 0 };
        (u32::from(top) << (shift - 1)) | under
    } else {
        0
    };
    let magnitude = high_out.checked_shl(shift).unwrap_or(0).wrapping_add(low).min(1 << 24);
    if magnitude == 0 {
        return 0;
    }
    if c.bit(&mut m.sign, v < 0) { -(magnitude as i32) } else { magnitude as i32 }
}

/// Codes quarters and numbers of a group; when reading, fills them.
fn code_numbers<C: Coder + Ends>(c: &mut C, g: &mut Group) {
    let (segments, stored) = (g.scales.len(), g.stored());
    let count = lanes(g).len();
    let scales: Vec<f64> = g.scales.iter().map(|s| f64::from(exp8(*s))).collect();
    let rotations = g.rotations.len() * 3;
    let mut quarters: Vec<[[Bit; 4]; 4]> = vec![Default::default(); 3];
    let mut last = vec![2usize; count];
    let mut now: Vec<usize> = vec![2; count];
    let mut predictors: Vec<Predictor> = (0..count).map(|_| Predictor::new()).collect();
    let mut contexts: Vec<Contexts> = vec![Contexts::default(); 24 * 6];
    let mut surprises = vec![0.0f64; count];
    let reading = lanes(g).iter().all(|l| l.numbers.is_empty()) && stored > 0;
    let mut out: Vec<(Vec<u8>, Vec<i32>)> = vec![(Vec::new(), Vec::new()); count];
    let source: Vec<Lane> = lanes(g).into_iter().cloned().collect();
    let mut segment = usize::MAX;
    for f in 0..stored {
        if reading && c.ended() {
            return;
        }
        let s = segment_of(f, segments, stored);
        if s != segment {
            segment = s;
            for l in 0..count {
                let axis = if l < rotations { l % 3 } else { 0 };
                let m = &mut quarters[axis][last[l]];
                let q = source[l].quarters.get(s).copied().unwrap_or(0);
                let high = c.bit(&mut m[0], q & 2 != 0);
                let low = c.bit(&mut m[1 + usize::from(high)], q & 1 != 0);
                now[l] = usize::from(high) << 1 | usize::from(low);
                last[l] = now[l];
                out[l].0.push(now[l] as u8);
            }
        }
        for l in 0..count {
            // In units of the lane's own step, whatever the segment's.
            let relative = scales[s] * f64::from(QUARTERS[now[l]]);
            let mut inputs = [0.0f64; TAPS];
            let p = &mut predictors[l];
            for k in 0..OWN {
                inputs[k] = p.past[k] - p.past[k + 1];
            }
            for k in 0..BESIDE.min(l) {
                inputs[OWN + k] = surprises[l - 1 - k];
            }
            let mut filtered = p.past[0];
            for k in 0..TAPS {
                filtered += p.weights[k] * inputs[k];
            }
            let d = [p.past[0] - p.past[1], p.past[1] - p.past[2], p.past[2] - p.past[3]];
            let guesses = [
                p.past[0],
                p.past[0] + d[0],
                p.past[0] + 2.0 * d[0] - d[1],
                p.past[0] + 3.0 * d[0] - 3.0 * d[1] + d[2],
                filtered,
            ];
            let mut best = 0;
            for k in 1..5 {
                if p.errors[k] < p.errors[best] {
                    best = k;
                }
            }
            let guess = guesses[best];
            let number =
                (guess / relative).round().clamp(-f64::from(MAX_NUMBER), f64::from(MAX_NUMBER)) as i32;
            let expected = (0.6 * p.size + 0.4 * p.slow) / relative;
            let mut bucket = 0usize;
            let mut edge = 0.12;
            while bucket < 23 && expected > edge {
                edge *= 1.5;
                bucket += 1;
            }
            let mut bits = 0u32;
            let mut e = expected;
            while e >= 1.0 && bits < 22 {
                e *= 0.5;
                bits += 1;
            }
            let kind = if l < rotations { usize::from(f >= 4) } else { 2 + usize::from(f >= 4) };
            let m = &mut contexts[kind * 24 + bucket];
            let true_number = source[l].numbers.get(f).copied().unwrap_or(0);
            let r = code_remainder(c, m, true_number - number, bits);
            let n = (number + r).clamp(-MAX_NUMBER, MAX_NUMBER);
            out[l].1.push(n);
            let value = f64::from(n) * relative;
            let off = (value - guess).abs();
            p.size += (off - p.size) * 0.15;
            p.slow += (off - p.slow) * 0.02;
            surprises[l] = value - guess;
            let error = value - filtered;
            p.power = 0.0;
            for v in inputs {
                p.power += v * v;
            }
            let rate = 0.006 * error / (1.0 + p.power / TAPS as f64);
            for k in 0..TAPS {
                p.weights[k] = (p.weights[k] + rate * inputs[k]).clamp(-8.0, 8.0);
            }
            for k in 0..5 {
                p.errors[k] = p.errors[k] * 0.94 + (value - guesses[k]).abs();
            }
            for k in (1..=OWN).rev() {
                p.past[k] = p.past[k - 1];
            }
            p.past[0] = value;
        }
    }
    if reading {
        for (lane, (quarters, numbers)) in lanes_mut(g).into_iter().zip(out) {
            lane.quarters = quarters;
            lane.numbers = numbers;
        }
    }
}
