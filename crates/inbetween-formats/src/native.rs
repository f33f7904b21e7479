//! The inb format.

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// The inb format.
pub struct Native;

impl Format for Native {
    fn name(&self) -> &'static str {
        "inb"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["inb"]
    }

    fn recognises(&self, _head: &[u8]) -> bool {
        false
    }

    fn read(&self, input: &Input<'_>, _options: &ReadOptions) -> Result<Import, FormatError> {
        Err(FormatError::Unknown { file: input.name.to_owned(), known: String::new() })
    }
}
