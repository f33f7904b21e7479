//! Lattice numbers at rest: each predicted from those before it, and what it misses by coded under
//! a mixture of models.
//!
//! Frame by frame, and in a frame lane by lane, as values in the lane's own step.
//!
//! *Prediction.* Differences of order 0 to 3 of the lane's past and two filters that learn as they
//! go, a normalised least-mean-squares one and a recursive least-squares one. Both work on the
//! lane's last differences and on what the lanes just before it missed by in this very frame: the
//! encoder lets a child take back its parent's rounding, and here that is got back. The guess is
//! the mean of all six, each weighted by the fourth power of how well it did lately.
//!
//! *Coding.* A miss is cut into yes-or-no decisions: its size in unary from the whole number next
//! to the guess (in units of a power of two where misses are large), bits below that, its sign. For
//! each decision several models say how likely "yes" is: a logistic curve about the guess, as wide
//! as the last misses were, which needs nothing to be learned, and counts kept in several contexts.
//! They are mixed in the logistic domain by weights that learn too, as in the PAQ compressors
//! (Mahoney, *Adaptive Weighing of Context Models for Lossless Data Compression*, 2005).
//!
//! All in f64 with + − × ÷ and `libm`'s exponential: the same on every machine.

use crate::at_rest::NumberCoder;
use crate::content::Group;
use crate::format::lanes;
use crate::quantize::{MAX_NUMBER, QUARTERS};
use crate::range_coder::{Bit, Coder};

/// Last differences of its own a lane is predicted from, and misses of lanes before it.
const OWN: usize = 8;
const BESIDE: usize = 12;
const TAPS: usize = OWN + BESIDE;
/// The same for the least-squares filter.
const NEAR: usize = 4;
const SQUARE: usize = NEAR + 12;
/// Predictors.
const GUESSES: usize = 6;
/// Models of a decision.
const MODELS: usize = 6;
/// Decisions in unary that have contexts of their own.
const UNARY: usize = 20;
/// Buckets of the expected size of a miss.
const BUCKETS: usize = 24;

/// How often a decision was "yes": an average over all of them at first, then over the last ones.
#[derive(Clone, Copy)]
struct Count {
    yes: f32,
    seen: f32,
}

impl Default for Count {
    fn default() -> Self {
        Self { yes: 0.5, seen: 0.0 }
    }
}

impl Count {
    fn learn(&mut self, bit: bool, limit: f32) {
        let to = if bit { 1.0 } else { 0.0 };
        self.yes += (to - self.yes) / (self.seen + 1.6);
        if self.seen < limit {
            self.seen += 1.0;
        }
    }
}

/// The logistic curve.
fn squash(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// Its inverse, within ±9.
fn stretch(p: f64) -> f64 {
    let p = p.clamp(1.2e-4, 1.0 - 1.2e-4);
    libm::log(p / (1.0 - p))
}

/// Weights of the models for one kind of decision.
#[derive(Clone, Copy)]
struct Mixer {
    weights: [f64; MODELS],
    rate: f64,
}

impl Default for Mixer {
    fn default() -> Self {
        let mut weights = [0.2; MODELS];
        weights[0] = 0.35;
        Self { weights, rate: 0.035 }
    }
}

/// Recursive least squares with forgetting.
#[derive(Clone)]
struct Squares {
    weights: [f64; SQUARE],
    inverse: [[f64; SQUARE]; SQUARE],
}

impl Squares {
    fn new() -> Self {
        let mut s = Self { weights: [0.0; SQUARE], inverse: [[0.0; SQUARE]; SQUARE] };
        s.reset();
        s
    }

    fn reset(&mut self) {
        self.inverse = [[0.0; SQUARE]; SQUARE];
        for k in 0..SQUARE {
            self.inverse[k][k] = 0.2;
        }
    }

    fn guess(&self, x: &[f64; SQUARE]) -> f64 {
        let mut sum = 0.0;
        for k in 0..SQUARE {
            sum += self.weights[k] * x[k];
        }
        sum
    }

    fn learn(&mut self, x: &[f64; SQUARE], error: f64) {
        const FORGET: f64 = 0.996;
        let mut px = [0.0; SQUARE];
        let mut power = FORGET;
        for i in 0..SQUARE {
            let mut sum = 0.0;
            for j in 0..SQUARE {
                sum += self.inverse[i][j] * x[j];
            }
            px[i] = sum;
            power += sum * x[i];
        }
        if !(power.is_finite() && power >= FORGET) {
            self.weights = [0.0; SQUARE];
            self.reset();
            return;
        }
        let (gain, keep) = (1.0 / power, 1.0 / FORGET);
        let mut most = 0.0f64;
        for i in 0..SQUARE {
            self.weights[i] = (self.weights[i] + px[i] * gain * error).clamp(-8.0, 8.0);
            for j in 0..=i {
                let v = (self.inverse[i][j] - px[i] * gain * px[j]) * keep;
                self.inverse[i][j] = v;
                self.inverse[j][i] = v;
            }
            most = most.max(self.inverse[i][i]);
        }
        // What is never excited would grow without end.
        if most > 1e3 {
            self.reset();
        }
    }
}

/// What is known of a lane.
#[derive(Clone)]
struct Track {
    weights: [f64; TAPS],
    squares: Squares,
    past: [f64; OWN + 1],
    /// Mean size of the last misses, quickly and slowly.
    quick: f64,
    slow: f64,
    errors: [f64; GUESSES],
    /// Counts of the lane's own.
    own: [Count; 10],
    sign: Count,
    quarter: usize,
}

/// Counts in a context: decisions in unary, the top bit below, signs.
type Unary = [Count; UNARY];

/// Codes the numbers of a group, frame after frame.
pub(crate) struct Numbers {
    tracks: Vec<Track>,
    /// Lanes of rotations; values follow.
    turning: usize,
    surprises: Vec<f64>,
    quarters: [[[Bit; 4]; 4]; 3],
    by_size: Vec<Unary>,
    by_kind: Vec<Unary>,
    by_neighbours: Vec<Unary>,
    by_place: Vec<Unary>,
    top: [[Bit; 8]; 16],
    escape: [Bit; 32],
    signs: Vec<Count>,
    mixers: Vec<Mixer>,
    frame: usize,
}

impl NumberCoder for Numbers {
    fn quarters<C: Coder>(&mut self, c: &mut C, quarters: &mut [u8]) {
        for (l, (track, q)) in self.tracks.iter_mut().zip(quarters).enumerate() {
            let axis = if l < self.turning { l % 3 } else { 0 };
            let m = &mut self.quarters[axis][track.quarter];
            let high = c.bit(&mut m[0], *q & 2 != 0);
            let low = c.bit(&mut m[1 + usize::from(high)], *q & 1 != 0);
            track.quarter = usize::from(high) << 1 | usize::from(low);
            *q = track.quarter as u8;
        }
    }

    fn frame<C: Coder>(&mut self, c: &mut C, scale: f64, numbers: &mut [i32]) {
        // Mean miss of the lanes before in this frame, for lanes that have no past of their own.
        let mut around = 48.0f64;
        for l in 0..numbers.len() {
            let track = &self.tracks[l];
            let relative = scale * f64::from(QUARTERS[track.quarter]);
            let past = track.past;
            let mut inputs = [0.0f64; TAPS];
            for k in 0..OWN {
                inputs[k] = past[k] - past[k + 1];
            }
            for k in 0..BESIDE.min(l) {
                inputs[OWN + k] = self.surprises[l - 1 - k];
            }
            let mut near = [0.0f64; SQUARE];
            near[..NEAR].copy_from_slice(&inputs[..NEAR]);
            near[NEAR..].copy_from_slice(&inputs[OWN..]);
            let mut filtered = past[0];
            for k in 0..TAPS {
                filtered += track.weights[k] * inputs[k];
            }
            let squared = past[0] + track.squares.guess(&near);
            let d = [inputs[0], inputs[1], inputs[2]];
            let guesses = [
                past[0],
                past[0] + d[0],
                past[0] + 2.0 * d[0] - d[1],
                past[0] + 3.0 * d[0] - 3.0 * d[1] + d[2],
                filtered,
                squared,
            ];
            let (mut sum, mut weight) = (0.0, 0.0);
            // Of the second frame on nothing but the last value is known, then differences too.
            let known = match self.frame {
                0 | 1 => 1,
                2 => 2,
                _ => GUESSES,
            };
            for k in 0..known {
                let e = track.errors[k] + 0.02 * relative;
                let w = 1.0 / ((e * e) * (e * e) * (e * e));
                sum += w * guesses[k];
                weight += w;
            }
            let guess = if weight > 0.0 && (sum / weight).is_finite() { sum / weight } else { past[0] };
            let most = f64::from(MAX_NUMBER);
            let exact = (guess / relative).clamp(-most, most);
            let own = 0.65 * track.quick + 0.35 * track.slow;
            let trust = match self.frame {
                0 => 0.0,
                1 => 0.3,
                2 => 0.6,
                3 => 0.8,
                _ => 1.0,
            };
            let expected = (own * trust + around * (1.0 - trust)) / relative + 0.02;
            let number = self.number(c, l, exact, expected, numbers[l]);
            numbers[l] = number;
            let value = f64::from(number) * relative;
            let off = (value - guess).abs();
            around += (off - around) * 0.12;
            let track = &mut self.tracks[l];
            let rate = if self.frame < 7 { 1.0 / (self.frame as f64 + 1.0) } else { 0.0 };
            if self.frame == 1 {
                (track.quick, track.slow) = (off, off);
            } else {
                track.quick += (off - track.quick) * rate.max(0.14);
                track.slow += (off - track.slow) * rate.max(0.02);
            }
            self.surprises[l] = value - guess;
            let mut power = 0.0;
            for v in inputs {
                power += v * v;
            }
            let step = 0.006 * (value - filtered) / (1.0 + power / TAPS as f64);
            for k in 0..TAPS {
                track.weights[k] = (track.weights[k] + step * inputs[k]).clamp(-8.0, 8.0);
            }
            if self.frame > 1 {
                track.squares.learn(&near, value - squared);
            }
            for k in 0..GUESSES {
                track.errors[k] = track.errors[k] * 0.93 + (value - guesses[k]).abs() * 0.07;
            }
            for k in (1..=OWN).rev() {
                track.past[k] = track.past[k - 1];
            }
            track.past[0] = value;
        }
        self.frame += 1;
    }
}

impl Numbers {
    /// Before the first frame.
    pub fn new(group: &Group) -> Self {
        let count = lanes(group).len();
        let track = Track {
            weights: [0.0; TAPS],
            squares: Squares::new(),
            past: [0.0; OWN + 1],
            quick: 0.0,
            slow: 0.0,
            errors: [0.0; GUESSES],
            own: [Count::default(); 10],
            sign: Count::default(),
            quarter: 2,
        };
        let table = |n: usize| vec![[Count::default(); UNARY]; n];
        Self {
            tracks: vec![track; count],
            turning: group.rotations.len() * 3,
            surprises: vec![0.0; count],
            quarters: Default::default(),
            by_size: table(BUCKETS),
            by_kind: table(BUCKETS * 4),
            by_neighbours: table(BUCKETS * 6),
            by_place: table(BUCKETS * 6),
            top: Default::default(),
            escape: [Bit::default(); 32],
            signs: vec![Count::default(); 64],
            mixers: vec![Mixer::default(); (UNARY + 2) * 2],
            frame: 0,
        }
    }

    /// Codes one number of lane `l`, guessed at `exact` and likely off by `expected`.
    fn number<C: Coder>(&mut self, c: &mut C, l: usize, exact: f64, expected: f64, number: i32) -> i32 {
        let base = exact.round();
        let part = exact - base;
        let toward = if part < 0.0 { -1i32 } else { 1 };
        let mut bucket = 0usize;
        let mut edge = 0.12;
        while bucket < BUCKETS - 1 && expected > edge {
            edge *= 1.4;
            bucket += 1;
        }
        let mut shift = 0u32;
        let mut e = expected;
        while e >= 4.0 && shift < 20 {
            e *= 0.5;
            shift += 1;
        }
        let kind = if l < self.turning { l % 3 } else { 3 };
        // How lively the lanes before it were in this frame, next to what was expected of them.
        let mut lively = 0.0;
        for k in 1..=3.min(l) {
            let t = &self.tracks[l - k];
            lively += self.surprises[l - k].abs() / (0.5 * (t.quick + t.slow) + 0.05);
        }
        let mut level = 0usize;
        for edge in [0.8, 1.6, 2.6, 3.8, 5.5] {
            level += usize::from(lively > edge);
        }
        let place = if shift > 0 { 0 } else { 1 + ((part.abs() * 9.99) as usize).min(4) };
        let rows = [bucket, bucket * 4 + kind, bucket * 6 + level, bucket * 6 + place];
        let width = expected / 1.386; // the mean size of a logistic variable of width 1
        let unit = f64::from(1u32 << shift);
        // Chance that a miss is at least `x` units, to either side.
        let beyond = |x: f64| {
            let x = x * unit - 0.5;
            squash(-(x + part.abs()) / width) + squash(-(x - part.abs()) / width)
        };
        let miss = (number - base as i32).saturating_mul(toward);
        let magnitude = miss.unsigned_abs();
        let high = magnitude >> shift;
        let mut n = 0u32;
        let mut least = if shift > 0 { 1.0 } else { beyond(0.0).min(1.0) };
        let mixers = usize::from(l >= self.turning) * (UNARY + 2);
        while (n as usize) < UNARY - 1 {
            let more = beyond(f64::from(n) + 1.0);
            // At zero the two tails meet and make one.
            let chance = if n == 0 { more } else { more / least.max(1e-12) };
            least = more;
            let k = n as usize;
            let track = &self.tracks[l];
            let p = [
                chance,
                f64::from(self.by_size[rows[0]][k].yes),
                f64::from(self.by_kind[rows[1]][k].yes),
                f64::from(self.by_neighbours[rows[2]][k].yes),
                f64::from(self.by_place[rows[3]][k].yes),
                f64::from(track.own[k.min(7)].yes),
            ];
            let yes = mixed(c, &mut self.mixers[mixers + k], &p, high > n);
            self.by_size[rows[0]][k].learn(yes, 250.0);
            self.by_kind[rows[1]][k].learn(yes, 250.0);
            self.by_neighbours[rows[2]][k].learn(yes, 250.0);
            self.by_place[rows[3]][k].learn(yes, 250.0);
            self.tracks[l].own[k.min(7)].learn(yes, 60.0);
            if !yes {
                break;
            }
            n += 1;
        }
        let mut above = n;
        if n as usize == UNARY - 1 {
            let rest = high.wrapping_sub(n).wrapping_add(1);
            let bits = 32 - rest.leading_zeros();
            let mut k = 0u32;
            while k < 26 && c.bit(&mut self.escape[k as usize], bits > k + 1) {
                k += 1;
            }
            let low = c.flat(rest & ((1u32 << k) - 1), k);
            above = n + ((1u32 << k) | low) - 1;
        }
        let mut below = 0;
        if shift > 0 {
            let low = magnitude & ((1 << shift) - 1);
            let top = c.bit(&mut self.top[(above as usize).min(15)][0], low >> (shift - 1) & 1 != 0);
            below = u32::from(top) << (shift - 1);
            if shift > 1 {
                below |= c.flat(low & ((1 << (shift - 1)) - 1), shift - 1);
            }
        }
        let magnitude = above.checked_shl(shift).unwrap_or(0).wrapping_add(below).min(2 * MAX_NUMBER as u32);
        if magnitude == 0 {
            return base as i32;
        }
        // Toward the guess's own side a miss is likelier.
        let m = f64::from(magnitude);
        let mass = |x: f64| squash((x + 0.5) / width) - squash((x - 0.5) / width);
        let (same, other) = (mass(m - part.abs()), mass(m + part.abs()));
        let away = other / (same + other).max(1e-300);
        let context = (place * 4 + (magnitude as usize).min(4) - 1).min(31);
        let trend = usize::from(self.surprises[l] < 0.0) ^ usize::from(toward < 0);
        let beside =
            if l == 0 { 0 } else { usize::from(self.surprises[l - 1] < 0.0) ^ usize::from(toward < 0) };
        let p = [
            away,
            f64::from(self.signs[context].yes),
            f64::from(self.signs[32 + trend * 2 + beside].yes),
            0.5,
            0.5,
            f64::from(self.tracks[l].sign.yes),
        ];
        let negative = mixed(c, &mut self.mixers[mixers + UNARY], &p, miss < 0);
        self.signs[context].learn(negative, 250.0);
        self.signs[32 + trend * 2 + beside].learn(negative, 250.0);
        self.tracks[l].sign.learn(negative, 60.0);
        let miss = if negative { -(magnitude as i32) } else { magnitude as i32 };
        (base as i32 + miss * toward).clamp(-MAX_NUMBER, MAX_NUMBER)
    }
}

/// Codes a decision for which the models give these chances of "yes".
fn mixed<C: Coder>(c: &mut C, mixer: &mut Mixer, chances: &[f64; MODELS], bit: bool) -> bool {
    let mut x = [0.0; MODELS];
    let mut sum = 0.0;
    for k in 0..MODELS {
        x[k] = stretch(chances[k]);
        sum += mixer.weights[k] * x[k];
    }
    let yes = squash(sum);
    let bit = c.decide(((1.0 - yes) * 65536.0) as u32, bit);
    let step = mixer.rate * (if bit { 1.0 } else { 0.0 } - yes);
    for k in 0..MODELS {
        mixer.weights[k] = (mixer.weights[k] + step * x[k]).clamp(-4.0, 4.0);
    }
    mixer.rate = (mixer.rate * 0.9995).max(0.002);
    bit
}
