//! BVH, the text format of captured motion: a skeleton, then a row of numbers for every frame.
//!
//! The format was never written down by a standard body; files in use stretch it. What this
//! reader takes as the rules:
//!
//! - A joint's rotation is the product of its rotation channels **in the order in which they are
//!   listed** (`Zrotation Xrotation Yrotation` is Z·X·Y), any number of them, in degrees.
//! - Position channels, on whatever joint they stand, **replace** `OFFSET`; a component without a
//!   channel keeps it. (Some readers add the two instead.)
//! - Frame k lies at k × `Frame Time`; the clip ends with its last frame. Between frames a
//!   position moves in a straight line and a rotation by slerp, because a frame is a pose.
//! - `End Site`s are points fixed to their joint: [`inbetween::Joint::tips`].
//! - BVH has no unit: a length is taken for a centimetre unless the caller says otherwise.
//!
//! Reading is in `read.rs`, over `hierarchy.rs` and `rows.rs`; [`write()`] in `write.rs`.

mod euler;
mod hierarchy;
mod read;
mod rows;
mod text;
mod write;

pub use write::{WriteOptions, write};

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// Metres in one unit of a BVH file where nobody says otherwise.
pub const DEFAULT_UNIT: f64 = 0.01;

/// The BVH format. See the [module](self).
pub struct Bvh;

impl Format for Bvh {
    fn name(&self) -> &'static str {
        "bvh"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["bvh"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        head.get(..9).is_some_and(|word| word.eq_ignore_ascii_case(b"HIERARCHY"))
    }

    fn read(&self, input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
        read::read(input, options)
    }
}
