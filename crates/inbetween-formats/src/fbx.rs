//! FBX, every version and both encodings, by way of the `ufbx` crate.
//!
//! `ufbx` parses and links the file; this reader turns what it finds into nodes and clips. Curves
//! stay the keys an artist set, with their tangents: nothing is resampled as long as the file's
//! own rule for combining curves (one layer, or layers that only add up) can be written as keys.
//! Where it cannot, the property is fitted by cubic keys against `ufbx`'s own evaluation and a
//! note says so. What is read how is told in `docs/fbx.md`.
//!
//! - `scene`: nodes, pivots, scale inheritance, skins, units and axes;
//! - `clips`: which curves drive which property in which take, and layers;
//! - `curves`: one animation curve's keys;
//! - `bake`: cubic keys fitted to a function of time.

mod bake;
mod clips;
mod curves;
mod lens;
mod scene;

use inbetween::Skeleton;

use crate::import::{Note, Severity};
use crate::{Format, FormatError, Import, Input, ReadOptions, Source};

/// FBX (Autodesk), ASCII and binary.
pub struct Fbx;

/// How every binary FBX file of version 5 or later begins.
const BINARY_MAGIC: &[u8] = b"Kaydara FBX Binary";

impl Format for Fbx {
    fn name(&self) -> &'static str {
        "fbx"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["fbx"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        if head.starts_with(BINARY_MAGIC) {
            return true;
        }
        // ASCII files open with a comment that names the format, or with the header section.
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let comment = text.starts_with(b";")
            && text.split(|&b| b == b'\n').next().is_some_and(|l| l.windows(3).any(|w| w == b"FBX"));
        comment || text.starts_with(b"FBXHeaderExtension")
    }

    fn read(&self, input: &Input<'_>, options: &ReadOptions) -> Result<Import, FormatError> {
        let scene = load(input)?;
        let mut notes = Vec::new();
        for w in &scene.metadata.warnings {
            let count = if w.count > 1 { format!(" ({} times)", w.count) } else { String::new() };
            let element = scene.elements.iter().find(|e| e.element_id == w.element_id);
            let place = match element.map(|e| &*e.name) {
                Some(name) if !name.is_empty() => format!("element {name:?}"),
                Some(_) => format!("element {}", w.element_id),
                None => "file".to_owned(),
            };
            notes.push(Note::new(Severity::Info, place, format!("{}{count}", &*w.description)));
        }
        let nodes = scene::read(&scene, &mut notes);
        let convention = scene::convention(&scene, &mut notes);
        let clips = clips::read(&scene, &nodes, input.name, options, &mut notes)?;
        let skeleton = Skeleton::new(nodes).map_err(|e| FormatError::Broken {
            file: input.name.to_owned(),
            place: "the tree of models".to_owned(),
            expected: "every model under one parent, without a circle".to_owned(),
            found: e.to_string(),
            advice: "export the file again".to_owned(),
        })?;
        Ok(Import {
            format: "fbx",
            skeleton,
            clips,
            notes,
            convention,
            in_house_units: false,
            source: Source::Lenses(lens::read(&scene)),
            decimals: None,
        })
    }
}

/// Parses the file with bounded memory.
fn load(input: &Input<'_>) -> Result<ufbx::SceneRoot, FormatError> {
    // Deflate, which FBX arrays may use, gains a factor of 1032 at most, and every number becomes
    // at most a key of 40 bytes or a vertex; a file that asks for more than this is lying about
    // its sizes. The fixed part leaves room for what ufbx needs for any file.
    let limit = (128usize << 20).saturating_add(input.bytes.len().saturating_mul(1100)).min(16 << 30);
    let mut read = 0u64;
    let mut progress = |p: &ufbx::Progress| {
        read = read.max(p.bytes_read);
        ufbx::ProgressResult::Continue
    };
    let result = ufbx::load_memory(
        input.bytes,
        ufbx::LoadOpts {
            temp_allocator: ufbx::AllocatorOpts { memory_limit: limit, ..Default::default() },
            result_allocator: ufbx::AllocatorOpts { memory_limit: limit, ..Default::default() },
            ignore_embedded: true,
            skip_mesh_parts: true,
            skip_skin_vertices: true,
            file_format: ufbx::FileFormat::Fbx,
            progress_cb: ufbx::ProgressCb::Mut(&mut progress),
            progress_interval_hint: 1024,
            ..Default::default()
        },
    );
    result.map_err(|e| load_error(input, &e, read))
}

/// Says in our words what `ufbx` refused, and about where.
fn load_error(input: &Input<'_>, error: &ufbx::Error, read: u64) -> FormatError {
    use ufbx::ErrorType as E;
    let file = input.name.to_owned();
    let size = input.bytes.len() as u64;
    let info = error.info();
    let said = if info.is_empty() {
        error.description.to_string()
    } else {
        format!("{} ({info})", &*error.description)
    };
    let place = place_of(input.bytes, read.min(size));
    match error.type_ {
        E::MemoryLimit | E::AllocationLimit | E::OutOfMemory => broken(
            file,
            place,
            &format!("sizes that {size} bytes can hold"),
            &format!("sizes that ask for more memory than any such file needs: {said}"),
            "the sizes in the file are damaged or false; export it again",
        ),
        E::EmptyFile => broken(file, "the start", "an FBX file", "no bytes at all", "export it again"),
        E::TruncatedFile => broken(
            file,
            place,
            "the rest of the file",
            &format!("the end after {size} bytes: {said}"),
            "the file was cut short; copy or export it again",
        ),
        E::UnsupportedVersion => broken(
            file,
            "the header",
            "FBX version 3000 to 8000",
            &said,
            "save it as FBX 7.4 (2014) or later, for example with the FBX Converter",
        ),
        E::UnrecognizedFileFormat => {
            broken(file, "the start", "an FBX file", &said, "check that the file is FBX and whole")
        }
        E::NodeDepthLimit => {
            broken(file, place, "sections nested a few deep", &said, "the file is damaged; export it again")
        }
        // The one fault of a tree that stops the parser.
        _ if said.contains("Cyclic node hierarchy") => broken(
            file,
            "the tree of models",
            "every model under one parent, without a circle",
            "a cycle: a model is among its own descendants",
            "remove the connection that closes the loop, or export the file again",
        ),
        _ => broken(
            file,
            place,
            "well-formed FBX",
            &format!("something that cannot be read: {said}"),
            "the file is damaged or cut short; export it again",
        ),
    }
}

fn broken(
    file: String,
    place: impl Into<String>,
    expected: &str,
    found: &str,
    advice: impl Into<String>,
) -> FormatError {
    FormatError::Broken {
        file,
        place: place.into(),
        expected: expected.to_owned(),
        found: found.to_owned(),
        advice: advice.into(),
    }
}

/// `ufbx` reports how far it has read, a little ahead of the fault: a line for ASCII files.
fn place_of(bytes: &[u8], read: u64) -> String {
    if bytes.starts_with(BINARY_MAGIC) {
        format!("at or before byte {read} of {}", bytes.len())
    } else {
        let line = bytes[..read as usize].iter().filter(|&&b| b == b'\n').count() + 1;
        format!("at or before line {line} (byte {read} of {})", bytes.len())
    }
}
