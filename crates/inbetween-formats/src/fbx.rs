//! The fbx format.

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// The fbx format.
pub struct Fbx;

impl Format for Fbx {
    fn name(&self) -> &'static str {
        "fbx"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["fbx"]
    }

    fn recognises(&self, _head: &[u8]) -> bool {
        false
    }

    fn read(&self, input: &Input<'_>, _options: &ReadOptions) -> Result<Import, FormatError> {
        Err(FormatError::Unknown { file: input.name.to_owned(), known: String::new() })
    }
}
