//! One door out: an import, its clips perhaps changed, as the bytes of a file.
//!
//! The counterpart of [`crate::import`]. Which writer is used follows from the file name's
//! extension; what a format cannot hold comes back as notes.

use std::path::Path;

use crate::{FormatError, Import, Note, csv, native};

/// File name extensions that can be written, in lower case, without the dot.
pub const WRITTEN: &[&str] = &[
    #[cfg(feature = "gltf")]
    "glb",
    #[cfg(feature = "gltf")]
    "gltf",
    #[cfg(feature = "bvh")]
    "bvh",
    "csv",
    "inb",
];

/// The bytes of a file called `name` that holds `import`, and what was lost or changed in it.
///
/// An import that was read from glTF and is written as glTF keeps everything but its animations
/// as it was. A `.gltf` holds its data in itself.
///
/// # Errors
/// If nothing writes files of that name, or the format cannot hold what it must.
pub fn export(import: &Import, name: &str) -> Result<(Vec<u8>, Vec<Note>), FormatError> {
    export_rounded(import, name, None)
}

/// As [`export`], for motion that was changed within a bound anyway: where numbers are text and every
/// frame is written (BVH), they get `decimals` digits behind the point and no more.
///
/// # Errors
/// As [`export`].
pub fn export_rounded(
    import: &Import,
    name: &str,
    decimals: Option<usize>,
) -> Result<(Vec<u8>, Vec<Note>), FormatError> {
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    match extension.as_str() {
        #[cfg(feature = "gltf")]
        "glb" => gltf_bytes(import, crate::gltf::Container::Glb),
        #[cfg(feature = "gltf")]
        "gltf" => gltf_bytes(import, crate::gltf::Container::Embedded),
        #[cfg(feature = "bvh")]
        "bvh" => bvh_bytes(import, decimals),
        "csv" => Ok((csv::write(import)?.into_bytes(), csv::losses(import))),
        "inb" => Ok((native::write(import)?.into_bytes(), Vec::new())),
        _ => Err(FormatError::Unwritten { file: name.to_owned(), known: WRITTEN.join(", ") }),
    }
}

#[cfg(feature = "gltf")]
fn gltf_bytes(
    import: &Import,
    container: crate::gltf::Container,
) -> Result<(Vec<u8>, Vec<Note>), FormatError> {
    let options = crate::gltf::WriteOptions { container, ..crate::gltf::WriteOptions::default() };
    let written = crate::gltf::write(import, &options)?;
    Ok((written.bytes, written.notes))
}

/// BVH holds one clip; of a file without clips the skeleton is written.
#[cfg(feature = "bvh")]
fn bvh_bytes(import: &Import, decimals: Option<usize>) -> Result<(Vec<u8>, Vec<Note>), FormatError> {
    let clip = match import.clips.len() {
        0 => None,
        1 => Some(0),
        n => {
            return Err(FormatError::CannotWrite {
                format: "bvh",
                what: format!("{n} clips in one file"),
                advice: "choose one clip, or write each to a file of its own".to_owned(),
            });
        }
    };
    let options = crate::bvh::WriteOptions { decimals, ..crate::bvh::WriteOptions::default() };
    crate::bvh::write(import, clip, &options)
}
