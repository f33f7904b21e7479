//! Files into clips and clips into files: FBX, glTF, BVH, CSV and the project's own text.
//!
//! A reader turns bytes into an [`Import`] in the file's own units and axes; [`convention`] takes
//! the whole import into the house's (metres, +Y up, radians), and is the only place that does.
//! What a reader cannot keep becomes a [`Note`]; what breaks the format beyond a sure repair is
//! an error that names the place. Sizes that a file states are checked against the bytes that are
//! there before anything is allocated.

pub mod camera;
pub mod convention;
mod error;
mod export;
mod import;

#[cfg(feature = "bvh")]
pub mod bvh;
pub mod csv;
pub mod demo;
#[cfg(feature = "fbx")]
pub mod fbx;
#[cfg(feature = "gltf")]
pub mod gltf;
pub mod native;

pub use convention::Convention;
pub use error::FormatError;
pub use export::{WRITTEN, export, export_rounded};
pub use import::{Import, Input, Lens, LensDriver, Note, ReadOptions, Severity, Source};

use std::path::Path;

/// A file format that can be read.
pub trait Format: Sync {
    /// Short name, as in reports: `fbx`, `gltf`, `glb`, `bvh`, …
    fn name(&self) -> &'static str;

    /// File name extensions in lower case, without the dot.
    fn extensions(&self) -> &'static [&'static str];

    /// True if the first bytes say that this is the format, whatever the name says.
    fn recognises(&self, head: &[u8]) -> bool;

    /// Reads a whole file, in the file's own units and axes.
    ///
    /// # Errors
    /// [`FormatError`], naming the place, what was expected and what was found.
    fn read(&self, input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError>;
}

/// Every format that can be read, in the order in which they are tried.
pub const FORMATS: &[&dyn Format] = &[
    #[cfg(feature = "gltf")]
    &gltf::Gltf,
    #[cfg(feature = "fbx")]
    &fbx::Fbx,
    #[cfg(feature = "bvh")]
    &bvh::Bvh,
    &native::Native,
];

/// The format of a file, by its first bytes, else by its name's extension.
pub fn format_of(bytes: &[u8], name: &str) -> Option<&'static dyn Format> {
    let head = &bytes[..bytes.len().min(4096)];
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let by_name = || FORMATS.iter().find(|f| f.extensions().contains(&extension.as_str()));
    FORMATS.iter().find(|f| f.recognises(head)).or_else(by_name).copied()
}

/// Reads bytes that are already in memory, side files by `input.side_file`, and takes the result
/// into the house's units and axes unless [`ReadOptions::file_units`] is set.
///
/// # Errors
/// If no format fits, or as the format's reader says.
pub fn import(input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
    let format = format_of(input.bytes, input.name).ok_or_else(|| FormatError::Unknown {
        file: input.name.to_owned(),
        known: FORMATS.iter().flat_map(|f| f.extensions()).copied().collect::<Vec<_>>().join(", "),
    })?;
    let mut import = format.read(input, options)?;
    if let Some(unit) = options.unit {
        import.convention.metres_per_unit = unit;
    }
    if !options.file_units {
        convention::to_house(&mut import);
    }
    Ok(import)
}

/// Reads a file and those beside it that it names.
///
/// # Errors
/// If the file cannot be read, or as [`import`].
pub fn import_path(path: &Path, options: &ReadOptions) -> Result<Import, FormatError> {
    let io = |path: &Path, error: std::io::Error| FormatError::Io { file: path.display().to_string(), error };
    let bytes = std::fs::read(path).map_err(|e| io(path, e))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let side_file = |name: &str| {
        // A file may name its neighbours, not the rest of the disk.
        let relative = Path::new(name);
        let inside = relative
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir));
        if !inside {
            return Err(FormatError::SideFile { file: path.display().to_string(), names: name.to_owned() });
        }
        let beside = folder.join(relative);
        std::fs::read(&beside).map_err(|e| io(&beside, e))
    };
    import(&Input { bytes: &bytes, name: &path.display().to_string(), side_file: &side_file }, options)
}
