//! Ops that make something of the file: reduced, compressed, cut, resampled, written and read.

use crate::Maker;

/// The table.
pub const MAKERS: &[(&str, Maker)] = &[];
