//! Reading files, and picking clips and targets from them by name or number.
//!
//! A name that fits several things is reported, never guessed at; every message says what there
//! is to choose from.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::{Clip, Skeleton, Track};
use inbetween_codec::Library;
use inbetween_formats::convention::Convention;
use inbetween_formats::{Import, ReadOptions, Source, import_path};

use crate::output::Failure;
use crate::units;

/// How a file is read; every command that reads one takes these.
#[derive(Args, Clone, Debug, Default)]
pub struct ReadArgs {
    /// Length of one unit of the file, such as 1cm (default: what an FBX says, 1 m for glTF,
    /// 1 cm for BVH)
    #[arg(long, value_name = "LENGTH", value_parser = units::length)]
    pub unit: Option<f64>,
}

impl ReadArgs {
    /// Reads a file, into metres and +Y up.
    ///
    /// # Errors
    /// As the reader says.
    pub fn read(&self, path: &Path) -> Result<Import, Failure> {
        self.read_as(path, false)
    }

    /// Reads a file; with `file_units`, units and axes stay as the file has them.
    ///
    /// # Errors
    /// As the reader says.
    pub fn read_as(&self, path: &Path, file_units: bool) -> Result<Import, Failure> {
        if is_ibc(path) {
            return Ok(import_of(&read_library(path)?));
        }
        let options = ReadOptions { unit: self.unit, file_units, ..ReadOptions::default() };
        Ok(import_path(path, &options)?)
    }
}

/// True if the file begins like a compressed one.
pub fn is_ibc(path: &Path) -> bool {
    let mut head = [0u8; 4];
    std::fs::File::open(path).is_ok_and(|mut f| f.read_exact(&mut head).is_ok()) && head == *b"IBC1"
}

/// A compressed file as it is, ready to be played.
///
/// # Errors
/// If it cannot be read or is damaged.
pub fn read_library(path: &Path) -> Result<Library<'static>, Failure> {
    let wrong = |e: &dyn std::fmt::Display| Failure::wrong(format!("{}: {e}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| wrong(&e))?;
    Library::load(&bytes).map_err(|e| wrong(&e))
}

/// A compressed file as if it were any other: keys at its stored frames. It is in metres and +Y up
/// already.
pub fn import_of(library: &Library<'_>) -> Import {
    Import {
        format: "ibc",
        clips: library.clips.iter().map(|c| c.to_clip(&library.skeleton)).collect(),
        skeleton: library.skeleton.clone(),
        notes: Vec::new(),
        convention: Convention::HOUSE,
        in_house_units: true,
        source: Source::None,
        decimals: None,
    }
}

/// The index of the clip that `wanted` means: its name, or its number from 0.
///
/// A number that is in range is an index, even if a clip has that name.
///
/// # Errors
/// If no clip or several fit; the message lists what there is.
pub fn find_clip(clips: &[Clip], wanted: &str, file: &Path) -> Result<usize, Failure> {
    if let Ok(index) = wanted.parse::<usize>()
        && index < clips.len()
    {
        return Ok(index);
    }
    let fitting: Vec<usize> = (0..clips.len()).filter(|&i| clips[i].name == wanted).collect();
    match fitting[..] {
        [one] => Ok(one),
        [] => Err(Failure::wrong(format!(
            "{}: no clip is called {wanted:?}; it has {}",
            file.display(),
            list_clips(clips)
        ))),
        _ => Err(Failure::wrong(format!(
            "{}: {} clips are called {wanted:?}, so the name is ambiguous; give the number instead: {}",
            file.display(),
            fitting.len(),
            fitting.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ")
        ))),
    }
}

/// The clips that are meant, in the order asked for; all of them if none is named.
///
/// # Errors
/// As [`find_clip`].
pub fn find_clips(clips: &[Clip], wanted: &[String], file: &Path) -> Result<Vec<usize>, Failure> {
    if wanted.is_empty() {
        return Ok((0..clips.len()).collect());
    }
    wanted.iter().map(|w| find_clip(clips, w, file)).collect()
}

/// The one clip that is meant: the named one, else the only one.
///
/// # Errors
/// As [`find_clip`], or if none is named and there is not exactly one.
pub fn one_clip(clips: &[Clip], wanted: Option<&str>, file: &Path) -> Result<usize, Failure> {
    match (wanted, clips.len()) {
        (Some(w), _) => find_clip(clips, w, file),
        (None, 1) => Ok(0),
        (None, 0) => Err(Failure::wrong(format!("{}: has no clips", file.display()))),
        (None, _) => Err(Failure::wrong(format!(
            "{}: say which clip with --clip; it has {}",
            file.display(),
            list_clips(clips)
        ))),
    }
}

fn list_clips(clips: &[Clip]) -> String {
    if clips.is_empty() {
        return "no clips".to_owned();
    }
    let mut names: Vec<String> =
        clips.iter().enumerate().take(20).map(|(i, c)| format!("{i} {:?}", c.name)).collect();
    if clips.len() > 20 {
        names.push(format!("and {} more", clips.len() - 20));
    }
    names.join(", ")
}

/// What a node is called in tables and documents: its name, or `#12` for node 12 without one.
pub fn shown_name(name: &str, node: Option<usize>) -> String {
    match node {
        Some(index) if name.is_empty() => format!("#{index}"),
        _ => name.to_owned(),
    }
}

/// A target as asked for: every node of a name, or `#12` for node 12.
#[derive(Clone, Debug)]
pub struct TargetChoice {
    wanted: String,
    node: Option<usize>,
}

impl TargetChoice {
    /// Finds what `wanted` means among the nodes and the tracks' targets.
    ///
    /// # Errors
    /// If nothing is called so, or two nodes are.
    pub fn find(wanted: &str, skeleton: &Skeleton, tracks: &[Track], file: &Path) -> Result<Self, Failure> {
        let nodes: Vec<usize> =
            (0..skeleton.len()).filter(|&i| skeleton.joints()[i].name == wanted).collect();
        let by_number = wanted.strip_prefix('#').and_then(|n| n.parse().ok()).filter(|&n| n < skeleton.len());
        match (&nodes[..], by_number) {
            ([one], _) => Ok(Self { wanted: wanted.to_owned(), node: Some(*one) }),
            ([], Some(n)) => Ok(Self { wanted: wanted.to_owned(), node: Some(n) }),
            ([], None) => {
                let fits =
                    |t: &&Track| t.binding.target == wanted || t.binding.path.as_deref() == Some(wanted);
                if tracks.iter().any(|t| fits(&t)) {
                    return Ok(Self { wanted: wanted.to_owned(), node: None });
                }
                Err(Failure::wrong(format!(
                    "{}: nothing is called {wanted:?}; `inbetween info` lists the nodes and tracks",
                    file.display()
                )))
            }
            _ => Err(Failure::wrong(format!(
                "{}: {} nodes are called {wanted:?}, so the name is ambiguous; give the node's number instead: {}",
                file.display(),
                nodes.len(),
                nodes.iter().map(|n| format!("'#{n}'")).collect::<Vec<_>>().join(" or ")
            ))),
        }
    }

    /// True if the node is meant.
    pub fn is_node(&self, index: usize) -> bool {
        self.node == Some(index)
    }

    /// True if the track drives what is meant.
    pub fn is_track(&self, track: &Track) -> bool {
        match self.node {
            Some(n) => {
                track.binding.node == Some(n)
                    || (track.binding.node.is_none() && track.binding.target == self.wanted)
            }
            None => {
                track.binding.target == self.wanted || track.binding.path.as_deref() == Some(&self.wanted)
            }
        }
    }
}

/// Where the output for `input` goes: `output` itself for one input, a file of the same name in
/// the folder `output` for several (or where it is a folder).
///
/// # Errors
/// If several inputs should go to one file, or two of them to one name.
pub fn output_paths(inputs: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = output.is_dir() || output.as_os_str().to_string_lossy().ends_with(['/', '\\']);
    if inputs.len() == 1 && !folder {
        return Ok(vec![output.to_owned()]);
    }
    if !folder {
        return Err(Failure::wrong(format!(
            "{} inputs need a folder for their outputs; {} is none, so end it with / or create it",
            inputs.len(),
            output.display()
        )));
    }
    std::fs::create_dir_all(output)
        .map_err(|e| Failure::wrong(format!("{}: cannot be made: {e}", output.display())))?;
    let mut seen = std::collections::BTreeSet::new();
    inputs
        .iter()
        .map(|input| {
            let name = input
                .file_name()
                .ok_or_else(|| Failure::wrong(format!("{}: is not the name of a file", input.display())))?;
            if !seen.insert(name.to_owned()) {
                return Err(Failure::wrong(format!(
                    "two inputs are called {}; write them to different folders",
                    name.to_string_lossy()
                )));
            }
            Ok(output.join(name))
        })
        .collect()
}
