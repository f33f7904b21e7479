//! glTF 2.0, as `.gltf` with its buffers and as `.glb`, read and written.
//!
//! Own code over the raw JSON: what this file does not know stays in the document, and a writer
//! puts it back as it was. Read are nodes, skins, animations of every kind (also those of any
//! property, by `KHR_animation_pointer`), and of meshes only how far the skin of each joint
//! reaches. Buffers may be compressed by `EXT_meshopt_compression` or `KHR_meshopt_compression`;
//! textures and Draco meshes are never opened.
//!
//! | file | holds |
//! |---|---|
//! | `container` | GLB chunks, data URIs, side files: from bytes to a [`Document`] and back |
//! | `accessor` | typed arrays out of buffers |
//! | `meshopt` | the compressed buffer views |
//! | `pointer` | which property a JSON pointer names |
//! | `read` | nodes, skins and animations as the model has them |
//! | `keys` | a track as the keys of one glTF sampler |
//! | `write` | which channel says what a track says |
//! | `rebuild` | the source's arrays with those of animations exchanged |
//! | `fresh` | a new document for nodes of another format |
//!
//! Source: the glTF 2.0 specification, <https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html>.

mod accessor;
mod container;
mod fresh;
mod keys;
mod meshopt;
mod pointer;
mod read;
mod rebuild;
mod write;

pub use container::Document;
pub use write::{Container, WriteOptions, Written, write};

use crate::{Format, FormatError, Import, Input, ReadOptions};

/// The glTF format.
pub struct Gltf;

impl Format for Gltf {
    fn name(&self) -> &'static str {
        "gltf"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["gltf", "glb"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        if head.starts_with(b"glTF") {
            return true;
        }
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        text.starts_with(b"{") && head.windows(7).any(|w| w == b"\"asset\"")
    }

    fn read(&self, input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
        read::read(input, options)
    }
}

/// What a message needs to say where it is.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
}

impl Place<'_> {
    fn broken(
        &self,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> FormatError {
        FormatError::Broken {
            file: self.file.to_owned(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
            advice: advice.into(),
        }
    }
}
