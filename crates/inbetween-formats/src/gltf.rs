//! The gltf format.

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// The gltf format.
pub struct Gltf;

impl Format for Gltf {
    fn name(&self) -> &'static str {
        "gltf"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["gltf", "glb"]
    }

    fn recognises(&self, _head: &[u8]) -> bool {
        false
    }

    fn read(&self, input: &Input<'_>, _options: &ReadOptions) -> Result<Import, FormatError> {
        Err(FormatError::Unknown { file: input.name.to_owned(), known: String::new() })
    }
}

/// The glTF document and its buffers, kept so that a writer changes nothing but animations.
#[derive(Clone, Debug, Default)]
pub struct Document {}
