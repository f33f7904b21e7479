//! What a reader gives back: nodes, clips, notes, and what a writer needs to keep the rest.

use inbetween::{Clip, Skeleton};

use crate::convention::Convention;
use crate::error::FormatError;

/// A file as it lies in memory, and a way to its side files.
pub struct Input<'a> {
    /// The file's bytes.
    pub bytes: &'a [u8],
    /// Its name, for messages and for the extension.
    pub name: &'a str,
    /// Reads a side file by the name the file gives it.
    pub side_file: &'a dyn Fn(&str) -> Result<Vec<u8>, FormatError>,
}

impl<'a> Input<'a> {
    /// A file that stands alone; side files are refused.
    pub fn alone(bytes: &'a [u8], name: &'a str) -> Self {
        Self {
            bytes,
            name,
            side_file: &|names| {
                Err(FormatError::SideFile { file: "a file in memory".to_owned(), names: names.to_owned() })
            },
        }
    }
}

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Metres in one unit of the file, in place of what the file or its format says.
    pub unit: Option<f64>,
    /// Leave units and axes as the file has them (angles are radians all the same).
    pub file_units: bool,
    /// Most keys a file may hold in all; more is an error. Default 200 million.
    pub max_keys: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { unit: None, file_units: false, max_keys: 200_000_000 }
    }
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing was changed.
    Info,
    /// The file breaks its format; a sure repair was made.
    Repaired,
    /// Something of the file could not be kept.
    Lost,
}

/// Something a user should know about a file that was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// Where: line, clip, node and property.
    pub place: String,
    /// What, in a sentence.
    pub text: String,
}

impl Note {
    /// A note.
    pub fn new(severity: Severity, place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { severity, place: place.into(), text: text.into() }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.text)
        } else {
            write!(f, "{}: {}", self.place, self.text)
        }
    }
}

/// What a writer of the same format needs to keep what is not animation.
#[derive(Clone, Debug, Default)]
pub enum Source {
    /// Nothing kept.
    #[default]
    None,
    /// The glTF document and its buffers.
    #[cfg(feature = "gltf")]
    Gltf(Box<crate::gltf::Document>),
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Import {
    /// Name of the format: `fbx`, `gltf`, `glb`, `bvh`, `inb`.
    pub format: &'static str,
    /// All nodes of the file.
    pub skeleton: Skeleton,
    /// All clips of the file, in its order.
    pub clips: Vec<Clip>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// The file's units and axes.
    pub convention: Convention,
    /// True once [`crate::convention::to_house`] has been applied.
    pub in_house_units: bool,
    /// What a writer needs to keep the rest.
    pub source: Source,
}
