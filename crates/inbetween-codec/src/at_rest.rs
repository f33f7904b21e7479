//! The form for storage: the same numbers, each predicted from those before it and coded by how
//! far off the prediction was; [`crate::numbers`] says how.
//!
//! Unpacking gives the runtime bytes that [`crate::compress()`] would have written: packing bits is
//! a function of the numbers. A clip is gone through twice, once for the widths of its coefficients
//! and once to write its segments, so that besides the bytes of both forms no more than a segment
//! stands in memory, however long the take.

use crate::compress::{described, runtime_bytes};
use crate::content::{Group, segment_of, segment_start};
use crate::first_numbers::FirstNumbers;
use crate::format::{
    DecodeError, Ends, Fields, Parts, Payload, PayloadWriter, SegmentNumbers, Widths, invalid, lanes,
    read_file, write_file,
};
use crate::head::{ClipHead, code_clip};
use crate::numbers::Numbers;
use crate::quantize::exp8;
use crate::range_coder::Coder;

/// A clip's chunk at rest: head, numbers of all groups in one stream.
pub(crate) fn write(head: &mut ClipHead, groups: &[Group]) -> Vec<u8> {
    let mut list: Vec<(Group, Vec<Widths>, usize)> =
        groups.iter().map(|g| (described(g), Vec::new(), 0)).collect();
    let mut f = Fields::writer();
    code_clip(&mut f, head, &mut list, false);
    let mut coder = f.into_coder();
    for g in groups {
        write_numbers(&mut coder, g);
    }
    coder.finish()
}

fn write_numbers<C: Coder>(c: &mut C, g: &Group) {
    let (segments, stored) = (g.scales.len(), g.stored());
    let all = lanes(g);
    let mut coder = Numbers::new(g);
    let (mut quarters, mut row) = (vec![0u8; all.len()], vec![0i32; all.len()]);
    let mut segment = usize::MAX;
    for f in 0..stored {
        let s = segment_of(f, segments, stored);
        if s != segment {
            segment = s;
            quarters.iter_mut().zip(&all).for_each(|(q, l)| *q = l.quarters[s]);
            coder.quarters(c, &mut quarters);
        }
        row.iter_mut().zip(&all).for_each(|(n, l)| *n = l.numbers[f]);
        coder.frame(c, f64::from(exp8(g.scales[s])), &mut row);
    }
}

/// Turns a file at rest into its runtime form; a runtime file comes back as it is.
///
/// # Errors
/// If the bytes are not an `.ibc` file; see [`DecodeError`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let Parts { version, at_rest, chunks } = read_file(bytes)?;
    if !at_rest {
        return Ok(bytes.to_vec());
    }
    let mut out = Vec::with_capacity(chunks.len());
    for (tag, body) in chunks {
        out.push((tag, if tag == *b"CLIP" { unpack_clip(body, version)? } else { body.to_vec() }));
    }
    Ok(write_file(false, &out))
}

fn unpack_clip(body: &[u8], version: u8) -> Result<Vec<u8>, DecodeError> {
    let mut writers: Vec<PayloadWriter> = Vec::new();
    for second in [false, true] {
        let mut head = ClipHead::default();
        let mut list: Vec<(Group, Vec<Widths>, usize)> = Vec::new();
        let mut f = Fields::reader(body);
        code_clip(&mut f, &mut head, &mut list, false);
        f.check("clip")?;
        let mut coder = f.into_coder();
        for (k, (g, _, _)) in list.iter().enumerate() {
            if !second {
                writers.push(PayloadWriter::new(g));
            }
            let writer = &mut writers[k];
            let mut each = |s: &SegmentNumbers| if second { writer.write(s) } else { writer.look(s) };
            if version == 1 {
                read_segments(&mut coder, g, &mut FirstNumbers::new(g), &mut each)?;
            } else {
                read_segments(&mut coder, g, &mut Numbers::new(g), &mut each)?;
            }
        }
        if second {
            let payloads: Vec<Payload> = writers.into_iter().map(PayloadWriter::finish).collect();
            return Ok(runtime_bytes(&mut head, list.into_iter().map(|l| l.0).collect(), payloads));
        }
    }
    unreachable!("the second time returns")
}

/// A model of numbers, of either version.
pub(crate) trait NumberCoder {
    /// Codes every lane's quarter octave, at the first frame of a segment.
    fn quarters<C: Coder>(&mut self, c: &mut C, quarters: &mut [u8]);
    /// Codes one number of every lane, at a segment's scale.
    fn frame<C: Coder>(&mut self, c: &mut C, scale: f64, numbers: &mut [i32]);
}

/// Reads a group segment by segment.
fn read_segments<C: Coder + Ends>(
    c: &mut C,
    g: &Group,
    coder: &mut impl NumberCoder,
    each: &mut dyn FnMut(&SegmentNumbers),
) -> Result<(), DecodeError> {
    let (segments, stored) = (g.scales.len(), g.stored());
    let count = lanes(g).len();
    let mut segment = SegmentNumbers { quarters: vec![0; count], numbers: vec![Vec::new(); count] };
    let mut row = vec![0i32; count];
    for s in 0..segments {
        coder.quarters(c, &mut segment.quarters);
        segment.numbers.iter_mut().for_each(Vec::clear);
        for _ in segment_start(s, segments, stored)..segment_start(s + 1, segments, stored) {
            coder.frame(c, f64::from(exp8(g.scales[s])), &mut row);
            row.iter().zip(&mut segment.numbers).for_each(|(n, l)| l.push(*n));
            if c.ended() {
                return Err(invalid("clip, numbers", "the bytes end before the numbers do"));
            }
        }
        each(&segment);
    }
    Ok(())
}
