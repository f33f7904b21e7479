//! An adaptive binary range coder and the few ways numbers are written through it.
//!
//! Every yes-or-no decision has a [`Bit`] model that learns how often it is "yes"; a decision
//! costs what it surprises. Carry-less 32-bit arithmetic with byte output as in the LZMA
//! reference description (7-zip SDK, `lzma-specification.txt`), with probabilities of 16 bits
//! that mix a fast and a slow learner. Decoding past the end reads zeros and never fails; what
//! was read is checked by whoever reads it.

/// The learned probability that a bit is zero, as the mean of a quick and a slow average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bit {
    quick: u16,
    slow: u16,
}

impl Default for Bit {
    fn default() -> Self {
        Self { quick: 1 << 15, slow: 1 << 15 }
    }
}

impl Bit {
    fn zero(self) -> u32 {
        // In 1/32768, kept off both ends so that no bit is ever impossible.
        ((u32::from(self.quick) + u32::from(self.slow)) >> 2).clamp(48, 32720)
    }

    fn learn(&mut self, bit: bool) {
        let to = if bit { 0i32 } else { 65535 };
        self.quick = (i32::from(self.quick) + ((to - i32::from(self.quick)) >> 4)) as u16;
        self.slow = (i32::from(self.slow) + ((to - i32::from(self.slow)) >> 7)) as u16;
    }
}

/// Either end of the coder, so that one description of a field serves writing and reading.
pub(crate) trait Coder {
    /// Codes one decision; a writer writes `bit` and returns it, a reader ignores it.
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool;
    /// Codes one decision that is "no" with a chance of `no` in 65536, kept off both ends.
    fn decide(&mut self, no: u32, bit: bool) -> bool;
    /// Codes `count` ≤ 32 bits that nothing is known about, highest first.
    fn flat(&mut self, value: u32, count: u32) -> u32;
}

/// Writes.
#[derive(Debug)]
pub(crate) struct Encoder {
    low: u64,
    range: u32,
    cache: u8,
    pending: u64,
    out: Vec<u8>,
}

impl Encoder {
    pub fn new() -> Self {
        Self { low: 0, range: u32::MAX, cache: 0, pending: 0, out: Vec::new() }
    }

    fn shift(&mut self) {
        if self.low < 0xff00_0000 || self.low > u64::from(u32::MAX) {
            let carry = (self.low >> 32) as u8;
            // The very first byte is always zero; `pending` starts at 0 so it is held in `cache`.
            self.out.push(self.cache.wrapping_add(carry));
            for _ in 0..self.pending {
                self.out.push(0xffu8.wrapping_add(carry));
            }
            self.pending = 0;
            self.cache = (self.low >> 24) as u8;
        } else {
            self.pending += 1;
        }
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// The bytes; trailing zeros are dropped, since the reader supplies them.
    pub fn finish(mut self) -> Vec<u8> {
        // Choose the number inside the last interval with the most zeros at its end.
        let (low, high) = (self.low, self.low + u64::from(self.range) - 1);
        for bits in (0..32).rev() {
            let mask = (1u64 << bits) - 1;
            let candidate = (low + mask) & !mask;
            if candidate <= high {
                self.low = candidate;
                break;
            }
        }
        for _ in 0..5 {
            self.shift();
        }
        self.out.remove(0);
        while self.out.last() == Some(&0) {
            self.out.pop();
        }
        self.out
    }
}

impl Coder for Encoder {
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        let bound = (self.range >> 15) * model.zero();
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.shift();
        }
        bit
    }

    fn decide(&mut self, no: u32, bit: bool) -> bool {
        let bound = (self.range >> 16) * no.clamp(24, 65536 - 24);
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.shift();
        }
        bit
    }

    fn flat(&mut self, value: u32, count: u32) -> u32 {
        for i in (0..count).rev() {
            self.range >>= 1;
            if value >> i & 1 != 0 {
                self.low += u64::from(self.range);
            }
            while self.range < 1 << 24 {
                self.range <<= 8;
                self.shift();
            }
        }
        value
    }
}

/// Reads.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    range: u32,
    code: u32,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut d = Self { range: u32::MAX, code: 0, bytes, at: 0 };
        for _ in 0..4 {
            d.code = d.code << 8 | d.next();
        }
        d
    }

    fn next(&mut self) -> u32 {
        let b = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        u32::from(b)
    }

    /// True once far more was read than is there: the bytes were cut or are not what they claim.
    pub fn overrun(&self) -> bool {
        self.at > self.bytes.len() + 64
    }
}

impl Coder for Decoder<'_> {
    fn bit(&mut self, model: &mut Bit, _: bool) -> bool {
        let bound = (self.range >> 15) * model.zero();
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.code = self.code << 8 | self.next();
        }
        bit
    }

    fn decide(&mut self, no: u32, _: bool) -> bool {
        let bound = (self.range >> 16) * no.clamp(24, 65536 - 24);
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        while self.range < 1 << 24 {
            self.range <<= 8;
            self.code = self.code << 8 | self.next();
        }
        bit
    }

    fn flat(&mut self, _: u32, count: u32) -> u32 {
        let mut value = 0;
        for _ in 0..count {
            self.range >>= 1;
            let bit = self.code >= self.range;
            if bit {
                self.code -= self.range;
            }
            value = value << 1 | u32::from(bit);
            while self.range < 1 << 24 {
                self.range <<= 8;
                self.code = self.code << 8 | self.next();
            }
        }
        value
    }
}

/// Models of an unsigned number of up to 32 bits: its length in bits in unary, then the two bits
/// below the leading one learned, the rest flat.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    length: [Bit; 33],
    top: [[Bit; 4]; 33],
}

impl Default for Number {
    fn default() -> Self {
        Self { length: [Bit::default(); 33], top: [[Bit::default(); 4]; 33] }
    }
}

impl Number {
    pub fn code(&mut self, c: &mut impl Coder, value: u32) -> u32 {
        let wanted = 32 - value.leading_zeros();
        let mut length = 0;
        while length < 32 && c.bit(&mut self.length[length as usize], wanted > length) {
            length += 1;
        }
        if length < 2 {
            return length;
        }
        let mut v = 1u32;
        let mut left = length - 1;
        let mut node = 1usize;
        while left > 0 && node < 4 {
            let b = c.bit(&mut self.top[length as usize][node], value >> (left - 1) & 1 != 0);
            v = v << 1 | u32::from(b);
            node = node << 1 | usize::from(b);
            left -= 1;
        }
        if left > 0 {
            let low = c.flat(value & ((1u32 << left) - 1), left);
            v = v << left | low;
        }
        v
    }
}

/// A whole number with a sign: folded to 0, −1, 1, −2, … and coded as a [`Number`].
pub(crate) fn fold(v: i32) -> u32 {
    ((v << 1) ^ (v >> 31)) as u32
}

/// The inverse of [`fold`].
pub(crate) fn unfold(v: u32) -> i32 {
    (v >> 1) as i32 ^ -((v & 1) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Vec<u32> {
        let mut state = 1u32;
        (0..4000)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if i % 97 == 0 { u32::MAX - (state >> 28) } else { state >> (20 + state % 12) }
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut e = Encoder::new();
        let mut n = Number::default();
        for (i, v) in numbers().into_iter().enumerate() {
            n.code(&mut e, v);
            e.flat(i as u32 & 7, 3);
        }
        let bytes = e.finish();
        let mut d = Decoder::new(&bytes);
        let mut n = Number::default();
        for (i, v) in numbers().into_iter().enumerate() {
            assert_eq!(n.code(&mut d, 0), v);
            assert_eq!(d.flat(0, 3), i as u32 & 7);
        }
        assert!(!d.overrun());
    }

    #[test]
    fn a_thousand_likely_bits_take_few_bytes() {
        let mut e = Encoder::new();
        let mut m = Bit::default();
        for _ in 0..1000 {
            e.bit(&mut m, false);
        }
        assert!(e.finish().len() < 12);
    }

    #[test]
    fn carries_run_through_long_rows_of_ff() {
        // Ones at the far end of the interval push the low end across 0xff bytes.
        for seed in 0..200u32 {
            let mut state = seed;
            let mut bits = Vec::new();
            for _ in 0..300 {
                state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                bits.push(state >> 27 != 0);
            }
            let mut e = Encoder::new();
            let mut m = Bit::default();
            for &b in &bits {
                e.bit(&mut m, b);
            }
            let bytes = e.finish();
            let mut d = Decoder::new(&bytes);
            let mut m = Bit::default();
            for &b in &bits {
                assert_eq!(d.bit(&mut m, false), b);
            }
        }
    }

    #[test]
    fn folding_a_sign_is_undone() {
        for v in [0, 1, -1, 77, -78, i32::MAX, i32::MIN] {
            assert_eq!(unfold(fold(v)), v);
        }
    }
}
