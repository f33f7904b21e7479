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
    /// The lenses of an FBX's cameras, which no track holds.
    Lenses(Vec<Lens>),
}

/// How wide a camera of a file sees while nothing drives it, and what does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lens {
    /// The node that carries the camera.
    pub node: usize,
    /// Vertical field of view, radians.
    pub fov: f64,
    /// The property that drives it.
    pub driver: LensDriver,
}

/// The property that drives a camera's field of view, by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LensDriver {
    /// The vertical angle, degrees.
    Vertical(&'static str),
    /// The horizontal angle, degrees, with the height of the picture over its width.
    Horizontal(&'static str, f64),
    /// The focal length, with half the film's height, both in millimetres.
    FocalLength(&'static str, f64),
}

impl LensDriver {
    /// Its name.
    pub fn property(self) -> &'static str {
        match self {
            Self::Vertical(name) | Self::Horizontal(name, _) | Self::FocalLength(name, _) => name,
        }
    }

    /// The vertical field of view, radians, at a value of the property.
    pub fn fov(self, value: f64) -> f64 {
        let half = |angle: f64| inbetween::math::sin(angle) / inbetween::math::cos(angle);
        match self {
            Self::Vertical(_) => value.to_radians(),
            Self::Horizontal(_, ratio) => {
                2.0 * inbetween::math::atan2(half(0.5 * value.to_radians()) * ratio, 1.0)
            }
            Self::FocalLength(_, half_height) => 2.0 * inbetween::math::atan2(half_height, value),
        }
    }
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
    /// Digits behind the point of the numbers in the frames of a text (BVH), on average.
    pub decimals: Option<usize>,
}
