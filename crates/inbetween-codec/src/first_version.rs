//! Runtime clips of version 1, brought into the order of version 2 when they are opened.
//!
//! Both hold the same bits. In version 1 a block's stream goes lane by lane: a lane's coefficients,
//! then what is left of it at each frame. Version 2 goes field by field across a row (see
//! [`crate::format`]), which is what makes eight lanes quick to read together. Every block keeps its
//! size and place, so reordering takes one copy of the payload and 8 more zeros behind it.

use crate::content::{Group, segment_start};
use crate::format::{
    BitWriter, DecodeError, PADDING, Widths, blocks, form, invalid, rows, segment_ranges, wide_blocks,
};

/// Zero bytes at the end of a payload of version 1.
const OLD_PADDING: usize = 8;

/// The payloads of all groups in the new order; their lengths in `groups` grow with them.
pub(crate) fn reordered(
    groups: &mut [(Group, Vec<Widths>, usize)],
    payload: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::with_capacity(payload.len() + groups.len() * PADDING);
    let mut at = 0usize;
    for (group, widths, length) in groups {
        let old = payload.get(at..at.saturating_add(*length)).filter(|p| p.len() >= OLD_PADDING).ok_or_else(
            || invalid("clip, segments", format!("{length} bytes from {at} on, of {}", payload.len())),
        )?;
        at += *length;
        let first = out.len();
        out.extend(old);
        reorder(group, widths, old, &mut out[first..])?;
        out.extend([0; PADDING - OLD_PADDING]);
        *length += PADDING - OLD_PADDING;
    }
    // Bytes that no group describes are for the reader of version 2 to refuse.
    out.extend(&payload[at..]);
    Ok(out)
}

fn reorder(group: &Group, widths: &[Widths], old: &[u8], new: &mut [u8]) -> Result<(), DecodeError> {
    let (segments, stored) = (group.scales.len(), group.stored());
    let blocks = blocks(group.rotations.len(), group.values.len());
    let wide = wide_blocks(blocks.len());
    let turning = group.rotations.len().div_ceil(8);
    for (s, (start, end)) in segment_ranges(old, segments, OLD_PADDING)?.into_iter().enumerate() {
        let body = &old[start..end];
        let frames = segment_start(s + 1, segments, stored) - segment_start(s, segments, stored);
        for (b, block) in blocks.iter().enumerate() {
            let short = || invalid("clip, blocks", format!("block {b} of segment {s} runs past its segment"));
            let at = if b == 0 {
                (blocks.len() - 1) * wide
            } else {
                let mut word = [0u8; 4];
                word[..wide].copy_from_slice(body.get((b - 1) * wide..b * wide).ok_or_else(short)?);
                u32::from_le_bytes(word) as usize
            };
            let forms = body.get(at..).and_then(|f| f.get(..block.len())).ok_or_else(short)?;
            // Where each lane begins, in bits.
            let mut lanes = Vec::with_capacity(block.len());
            let mut bit = (at + block.len()) * 8;
            for (k, &l) in block.iter().enumerate() {
                lanes.push((bit, l, form(forms[k])));
                let own: usize = (0..=form(forms[k]).degree()).map(|c| usize::from(widths[l][c])).sum();
                bit += own + form(forms[k]).width() as usize * frames;
            }
            if bit.div_ceil(8) > body.len() {
                return Err(short());
            }
            let mut bits = BitWriter::default();
            for row in rows(&lanes, b < turning) {
                for c in 0..4 {
                    for &(from, l, form) in row.iter().filter(|lane| c <= lane.2.degree()) {
                        let before: usize = widths[l][..c].iter().map(|w| usize::from(*w)).sum();
                        let width = u32::from(widths[l][c]);
                        debug_assert!(form.degree() >= c);
                        bits.write(read(body, from + before, width), width);
                    }
                }
                for f in 0..frames {
                    for &(from, l, form) in row {
                        let before: usize = widths[l][..=form.degree()].iter().map(|w| usize::from(*w)).sum();
                        let from = from + before + form.width() as usize * f;
                        bits.write(read(body, from, form.width()), form.width());
                    }
                }
            }
            let bytes = bits.finish();
            let first = start + at + block.len();
            new[first..first + bytes.len()].copy_from_slice(&bytes);
        }
    }
    Ok(())
}

/// `width` ≤ 24 bits from bit `at` on.
fn read(bytes: &[u8], at: usize, width: u32) -> i32 {
    let mut word = [0u8; 4];
    let left = &bytes[(at / 8).min(bytes.len())..];
    let n = left.len().min(4);
    word[..n].copy_from_slice(&left[..n]);
    ((u32::from_le_bytes(word) >> (at % 8)) & ((1u32 << width) - 1)) as i32
}
