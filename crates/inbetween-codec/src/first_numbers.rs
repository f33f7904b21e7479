//! Numbers at rest as files of version 1 have them; read, never written.
//!
//! Each lane is predicted by whichever of five predictors erred least lately: differences of order
//! 0 to 3 of its past, and a filter that learns by normalised least mean squares from the lane's
//! last differences and from what the lanes before it missed by in this frame. A miss is coded in a
//! context of how large the last ones were.

use crate::at_rest::NumberCoder;
use crate::content::Group;
use crate::format::lanes;
use crate::quantize::{MAX_NUMBER, QUARTERS};
use crate::range_coder::{Bit, Coder};

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

/// The state of all lanes between two frames.
pub(crate) struct FirstNumbers {
    turning: usize,
    quarters: Vec<[[Bit; 4]; 4]>,
    now: Vec<usize>,
    predictors: Vec<Predictor>,
    contexts: Vec<Contexts>,
    surprises: Vec<f64>,
    frame: usize,
}

impl FirstNumbers {
    /// Before the first frame.
    pub fn new(group: &Group) -> Self {
        let count = lanes(group).len();
        Self {
            turning: group.rotations.len() * 3,
            quarters: vec![Default::default(); 3],
            now: vec![2; count],
            predictors: (0..count).map(|_| Predictor::new()).collect(),
            contexts: vec![Contexts::default(); 24 * 6],
            surprises: vec![0.0; count],
            frame: 0,
        }
    }
}

impl NumberCoder for FirstNumbers {
    fn quarters<C: Coder>(&mut self, c: &mut C, quarters: &mut [u8]) {
        for (l, q) in quarters.iter_mut().enumerate() {
            let axis = if l < self.turning { l % 3 } else { 0 };
            let m = &mut self.quarters[axis][self.now[l]];
            let high = c.bit(&mut m[0], *q & 2 != 0);
            let low = c.bit(&mut m[1 + usize::from(high)], *q & 1 != 0);
            self.now[l] = usize::from(high) << 1 | usize::from(low);
            *q = self.now[l] as u8;
        }
    }

    fn frame<C: Coder>(&mut self, c: &mut C, scale: f64, numbers: &mut [i32]) {
        let f = self.frame;
        for l in 0..numbers.len() {
            // In units of the lane's own step, whatever the segment's.
            let relative = scale * f64::from(QUARTERS[self.now[l]]);
            let mut inputs = [0.0f64; TAPS];
            let p = &mut self.predictors[l];
            for k in 0..OWN {
                inputs[k] = p.past[k] - p.past[k + 1];
            }
            for k in 0..BESIDE.min(l) {
                inputs[OWN + k] = self.surprises[l - 1 - k];
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
            let kind = if l < self.turning { usize::from(f >= 4) } else { 2 + usize::from(f >= 4) };
            let m = &mut self.contexts[kind * 24 + bucket];
            let r = code_remainder(c, m, numbers[l].wrapping_sub(number), bits);
            let n = (number + r).clamp(-MAX_NUMBER, MAX_NUMBER);
            numbers[l] = n;
            let value = f64::from(n) * relative;
            let off = (value - guess).abs();
            p.size += (off - p.size) * 0.15;
            p.slow += (off - p.slow) * 0.02;
            self.surprises[l] = value - guess;
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
        self.frame += 1;
    }
}
