//! The feature rows as the kernels read them: blocks of 16 rows, column by column.
//!
//! A block holds 16 rows; within it the 16 values of one column lie side by side, so a
//! vector instruction works on one column of 16 rows at once and no row's sum depends
//! on the width of the machine. Values are f32, or half floats that are widened when read.
//!
//! Rows here stand in the tree's order and are called *slots*; which pose a slot is, the
//! database knows. The storage starts at a multiple of 64 bytes, so that no load of
//! 16 floats straddles two cache lines (that costs a third of the speed).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use fearless_simd::{Simd, f32x16, prelude::*};

/// Rows in a block.
pub(crate) const LANES: usize = 16;

/// How a database keeps its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowFormat {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats: half the memory; a row is rounded once, when the database is built,
    /// and the search is exact on the rounded rows.
    F16,
}

/// A list of f32 that starts at a multiple of 64 bytes.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    buffer: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(crate) fn zeros(len: usize) -> Self {
        let buffer = vec![0.0f32; len + LANES];
        // `align_offset` may answer "impossible" (usize::MAX); any start is correct.
        let start = buffer.as_ptr().align_offset(64).min(LANES);
        Self { buffer, start, len }
    }

    #[inline(always)]
    pub(crate) fn lanes(&self) -> &[[f32; LANES]] {
        self.buffer[self.start..self.start + self.len].as_chunks::<LANES>().0
    }

    #[inline(always)]
    pub(crate) fn lanes_mut(&mut self) -> &mut [[f32; LANES]] {
        self.buffer[self.start..self.start + self.len].as_chunks_mut::<LANES>().0
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.lanes_mut().copy_from_slice(self.lanes());
        copy
    }
}

/// One column of one block, as 16 floats.
pub(crate) trait Blocks: Copy {
    /// The blocks of `columns` columns each, from block `first` on.
    fn load<S: Simd>(self, simd: S, at: usize) -> f32x16<S>;
    /// Entries, blocks × columns.
    fn entries(self) -> usize;
    /// Entries `from..from + len` alone, so that a kernel's reads need one check.
    fn part(self, from: usize, len: usize) -> Self;
}

/// Blocks of f32.
#[derive(Clone, Copy)]
pub(crate) struct Full<'a>(pub(crate) &'a [[f32; LANES]]);

impl Blocks for Full<'_> {
    #[inline(always)]
    fn load<S: Simd>(self, simd: S, at: usize) -> f32x16<S> {
        f32x16::load_array_ref(simd, &self.0[at])
    }
    #[inline(always)]
    fn entries(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn part(self, from: usize, len: usize) -> Self {
        Self(&self.0[from..from + len])
    }
}

/// Blocks of half floats.
#[derive(Clone, Copy)]
pub(crate) struct Half<'a>(pub(crate) &'a [[u16; LANES]]);

impl Blocks for Half<'_> {
    #[inline(always)]
    fn load<S: Simd>(self, simd: S, at: usize) -> f32x16<S> {
        let bits = &self.0[at];
        let mut wide = [0.0f32; LANES];
        for lane in 0..LANES {
            wide[lane] = widen(bits[lane]);
        }
        f32x16::load_array(simd, wide)
    }
    #[inline(always)]
    fn entries(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn part(self, from: usize, len: usize) -> Self {
        Self(&self.0[from..from + len])
    }
}

/// A finite half float as f32, exactly.
///
/// Moving the bits up by 13 leaves an exponent too small by 112, which one exact
/// multiplication by 2¹¹² mends, for subnormal halves too.
#[inline(always)]
pub(crate) fn widen(half: u16) -> f32 {
    let bits = u32::from(half);
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

/// The half float nearest to a finite f32, ties to even; beyond ±65504 the nearest finite half.
pub(crate) fn narrow(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16 & 0x8000) as u16;
    let magnitude = value.abs().min(65504.0);
    let bits = magnitude.to_bits();
    let half = if magnitude < f32::from_bits((127 - 14) << 23) {
        // Subnormal halves count steps of 2⁻²⁴; adding ½·2²⁴·2⁻²⁴ rounds to even in hardware.
        (magnitude + 0.5).to_bits() - 0.5f32.to_bits()
    } else {
        (bits + 0x0fff + (bits >> 13 & 1) - (112 << 23)) >> 13
    };
    sign | half as u16
}

/// Bytes that belong to somebody else, such as a memory map.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<dyn AsRef<[u8]> + Send + Sync>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shared bytes", (*self.0).as_ref().len())
    }
}

/// The rows of a database.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    F32(Aligned),
    F16(Vec<[u16; LANES]>),
    /// Used where they lie; opened only when the bytes can be read as numbers in place.
    Mapped {
        format: RowFormat,
        bytes: Shared,
        range: Range<usize>,
    },
}

/// The blocks of a database, by how they are kept.
#[derive(Clone, Copy)]
pub(crate) enum AnyBlocks<'a> {
    Full(Full<'a>),
    Half(Half<'a>),
}

impl Rows {
    /// Lays out `slots` rows of `columns` columns; `row(slot)` gives each, normalised.
    ///
    /// The lanes left over in the last block repeat the last row.
    pub(crate) fn new<'r>(
        format: RowFormat,
        slots: usize,
        columns: usize,
        row: impl Fn(usize) -> &'r [f32],
    ) -> Self {
        let blocks = slots.div_ceil(LANES);
        match format {
            RowFormat::F32 => {
                let mut rows = Aligned::zeros(blocks * columns * LANES);
                for (block, out) in rows.lanes_mut().chunks_exact_mut(columns.max(1)).enumerate() {
                    // The 16 rows side by side first, so that each is fetched whole, then a
                    // column at a time.
                    let source: [&[f32]; LANES] =
                        std::array::from_fn(|lane| &row((block * LANES + lane).min(slots - 1))[..columns]);
                    for (at, column) in out.iter_mut().enumerate() {
                        *column = std::array::from_fn(|lane| source[lane][at]);
                    }
                }
                Self::F32(rows)
            }
            RowFormat::F16 => {
                let mut rows = vec![[0u16; LANES]; blocks * columns];
                for (block, out) in rows.chunks_exact_mut(columns.max(1)).enumerate() {
                    for lane in 0..LANES {
                        let values = row((block * LANES + lane).min(slots - 1));
                        for (column, value) in out.iter_mut().zip(values) {
                            column[lane] = narrow(*value);
                        }
                    }
                }
                Self::F16(rows)
            }
        }
    }

    /// Rows as a file holds them; in place where `shared` holds them and the machine reads
    /// them as they are, else copied. Their number fits whole blocks.
    pub(crate) fn open(format: RowFormat, bytes: &[u8], offset: usize, shared: Option<Shared>) -> Self {
        let in_place = cfg!(target_endian = "little")
            && match format {
                RowFormat::F32 => bytemuck::try_cast_slice::<u8, [f32; LANES]>(bytes).is_ok(),
                RowFormat::F16 => bytemuck::try_cast_slice::<u8, [u16; LANES]>(bytes).is_ok(),
            };
        if in_place && let Some(shared) = shared {
            return Self::Mapped { format, bytes: shared, range: offset..offset + bytes.len() };
        }
        match format {
            RowFormat::F32 => {
                let mut rows = Aligned::zeros(bytes.len() / 4);
                let values = bytes.as_chunks::<4>().0;
                for (out, value) in rows.lanes_mut().as_flattened_mut().iter_mut().zip(values) {
                    *out = f32::from_le_bytes(*value);
                }
                Self::F32(rows)
            }
            RowFormat::F16 => {
                let mut rows = vec![[0u16; LANES]; bytes.len() / 2 / LANES];
                for (out, value) in rows.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *out = u16::from_le_bytes(*value);
                }
                Self::F16(rows)
            }
        }
    }

    #[inline(always)]
    pub(crate) fn blocks(&self) -> AnyBlocks<'_> {
        match self {
            Self::F32(rows) => AnyBlocks::Full(Full(rows.lanes())),
            Self::F16(rows) => AnyBlocks::Half(Half(rows)),
            Self::Mapped { format, bytes, range } => {
                let bytes = &(*bytes.0).as_ref()[range.clone()];
                match format {
                    RowFormat::F32 => AnyBlocks::Full(Full(bytemuck::cast_slice(bytes))),
                    RowFormat::F16 => AnyBlocks::Half(Half(bytemuck::cast_slice(bytes))),
                }
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self.blocks() {
            AnyBlocks::Full(rows) => rows.0.len() * LANES * 4,
            AnyBlocks::Half(rows) => rows.0.len() * LANES * 2,
        }
    }

    /// The bytes of a file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self.blocks() {
            AnyBlocks::Full(rows) => rows.0.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect(),
            AnyBlocks::Half(rows) => rows.0.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    pub(crate) fn all_finite(&self) -> bool {
        match self.blocks() {
            AnyBlocks::Full(rows) => rows.0.as_flattened().iter().all(|x| x.is_finite()),
            AnyBlocks::Half(rows) => rows.0.as_flattened().iter().all(|x| x & 0x7c00 != 0x7c00),
        }
    }

    /// The value a search sees.
    #[inline]
    pub(crate) fn value(&self, slot: usize, column: usize, columns: usize) -> f32 {
        let at = slot / LANES * columns + column;
        match self.blocks() {
            AnyBlocks::Full(rows) => rows.0[at][slot % LANES],
            AnyBlocks::Half(rows) => widen(rows.0[at][slot % LANES]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_float_survives_widening_and_narrowing() {
        for half in 0..=u16::MAX {
            if half & 0x7c00 == 0x7c00 {
                continue; // infinities and NaN never enter
            }
            assert_eq!(narrow(widen(half)), half, "{half:#06x} = {}", widen(half));
        }
    }

    #[test]
    fn narrowing_goes_to_the_nearest_half_float_and_ties_to_even() {
        assert_eq!(widen(narrow(1.0 + 1.0 / 2048.0)), 1.0);
        assert_eq!(widen(narrow(1.0 + 3.0 / 2048.0)), 1.0 + 2.0 / 1024.0);
        assert_eq!(widen(narrow(1.0 + 1.1 / 2048.0)), 1.0 + 1.0 / 1024.0);
        assert_eq!(widen(narrow(-1e9)), -65504.0);
        assert_eq!(widen(narrow(3e-8)), f32::from_bits((127 - 24) << 23));
        assert_eq!(widen(narrow(2.9e-8)), 0.0);
    }

    #[test]
    fn storage_starts_on_a_cache_line() {
        let rows = Aligned::zeros(1600);
        assert_eq!(rows.lanes().as_ptr().align_offset(64), 0);
        assert_eq!(rows.clone().lanes().as_ptr().align_offset(64), 0);
    }
}
