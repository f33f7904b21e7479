//! The bvh format.

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// The bvh format.
pub struct Bvh;

impl Format for Bvh {
    fn name(&self) -> &'static str {
        "bvh"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["bvh"]
    }

    fn recognises(&self, _head: &[u8]) -> bool {
        false
    }

    fn read(&self, input: &Input<'_>, _options: &ReadOptions) -> Result<Import, FormatError> {
        Err(FormatError::Unknown { file: input.name.to_owned(), known: String::new() })
    }
}
