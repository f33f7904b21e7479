//! `match`: motion matching, from clips to a database and from a wish to a pose.
//!
//! The subcommands have a file each beside this one; what they share is here: reading a
//! schema, clips and a database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use inbetween::playback::sampler::Sampler;
use inbetween_codec::{CompressedClip, Decoder};
use inbetween_formats::Import;
use inbetween_match::{BakeClip, ClipPoses, MatchError, MotionDatabase, PoseSource, SampledPoses, Schema};
use rayon::prelude::*;

use super::match_bake::{Bake, Info};
use super::match_query::{Explain, Query};
use super::match_run::Run;
use crate::input::{ReadArgs, find_clips, is_ibc, read_library};
use crate::output::{Failure, Outcome, say_notes};
use crate::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  inbetween match bake walk.glb run.glb --schema character.toml -o character.ibm
  inbetween match info character.ibm
  inbetween match query character.ibm --from walk.glb --at 1.5
  inbetween match explain character.ibm --from walk.glb --at 1.5 --why 120 --page why.html
  inbetween match run character.ibm --script path.toml -o run.glb --page run.html";

/// Find the pose of a set of clips that fits what is wanted, and say why
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Match {
    #[command(subcommand)]
    command: MatchCommand,
}

#[derive(Subcommand)]
enum MatchCommand {
    Bake(Bake),
    Info(Info),
    Query(Query),
    Explain(Explain),
    Run(Run),
}

impl Match {
    /// Runs the subcommand.
    pub fn run(self) -> Outcome {
        match self.command {
            MatchCommand::Bake(command) => command.run(),
            MatchCommand::Info(command) => command.run(),
            MatchCommand::Query(command) => command.run(),
            MatchCommand::Explain(command) => command.run(),
            MatchCommand::Run(command) => command.run(),
        }
    }
}

impl From<MatchError> for Failure {
    fn from(error: MatchError) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Reads a schema from a file.
pub fn read_schema(path: &Path) -> Result<Schema, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::wrong(format!("{}: cannot be read: {e}", path.display())))?;
    Schema::read(&text).map_err(|e| Failure::wrong(format!("{}: {e}", path.display())))
}

/// Opens a database.
pub fn open(path: &Path) -> Result<MotionDatabase, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::wrong(format!("{}: cannot be read: {e}", path.display())))?;
    MotionDatabase::from_bytes(&bytes).map_err(|e| Failure::wrong(format!("{}: {e}", path.display())))
}

/// The schema a database was baked by.
pub fn own_schema(database: &MotionDatabase, path: &Path) -> Result<Schema, Failure> {
    Schema::read(database.schema_text()).map_err(|e| Failure::wrong(format!("{}: {e}", path.display())))
}

/// Whether clips were read from a compressed file.
fn compressed(file: &str) -> bool {
    is_ibc(Path::new(file))
}

/// What plays the clips of a database: decoders where all of them are in compressed files, else
/// the clips as read.
pub fn pose_source(database: &MotionDatabase, clips: &[BakeClip]) -> Result<Box<dyn PoseSource>, Failure> {
    let skeleton = clips[0].skeleton.clone();
    if !clips.iter().all(|c| compressed(&c.file)) {
        let clips = clips.iter().map(|c| c.clip.clone()).collect();
        return Ok(Box::new(ClipPoses::new(database, skeleton, clips)?));
    }
    let mut libraries: BTreeMap<&str, Vec<Arc<CompressedClip<'static>>>> = BTreeMap::new();
    let mut players: Vec<Box<dyn Sampler>> = Vec::new();
    for clip in clips {
        if !libraries.contains_key(clip.file.as_str()) {
            let library = read_library(Path::new(&clip.file))?;
            libraries.insert(&clip.file, library.clips.into_iter().map(Arc::new).collect());
        }
        let found = libraries[clip.file.as_str()]
            .iter()
            .find(|c| called(c.name(), Path::new(&clip.file)) == clip.clip.name);
        let found = found.ok_or_else(|| {
            Failure::wrong(format!("{}: clip {:?} was there a moment ago", clip.file, clip.clip.name))
        })?;
        let player = Decoder::new(found.clone(), &clip.skeleton)
            .map_err(|e| Failure::wrong(format!("{}: {e}", clip.file)))?;
        players.push(Box::new(player));
    }
    Ok(Box::new(SampledPoses::new(database, skeleton, players)?))
}

/// What a clip is called: its name, or its file's where it has none, as in BVH.
fn called(name: &str, file: &Path) -> String {
    if !name.is_empty() {
        return name.to_owned();
    }
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Reads the clips of files, in their order: all, or those of these names. The first file's
/// import comes back too, as the character to write.
pub fn read_clips(
    files: &[PathBuf],
    names: &[String],
    read: &ReadArgs,
) -> Result<(Vec<BakeClip>, Import), Failure> {
    let bar = Progress::new(files.len(), "reading");
    let imports: Vec<Result<Import, Failure>> = files
        .par_iter()
        .map(|file| {
            let import = read.read(file);
            bar.step();
            import
        })
        .collect();
    drop(bar);
    let mut clips = Vec::new();
    let mut first = None;
    for (file, import) in files.iter().zip(imports) {
        let import = import?;
        say_notes(&file.display().to_string(), &import.notes, false);
        let skeleton = Arc::new(import.skeleton.clone());
        let chosen = if names.is_empty() || files.len() == 1 {
            find_clips(&import.clips, names, file)?
        } else {
            (0..import.clips.len()).filter(|i| names.contains(&import.clips[*i].name)).collect()
        };
        for index in chosen {
            let mut clip = import.clips[index].clone();
            clip.name = called(&clip.name, file);
            clips.push(BakeClip {
                clip: Arc::new(clip),
                skeleton: skeleton.clone(),
                file: file.display().to_string(),
            });
        }
        first.get_or_insert(import);
    }
    match first {
        Some(import) if !clips.is_empty() => Ok((clips, import)),
        _ => Err(Failure::wrong(
            "none of the files has a clip that was asked for; `inbetween info` lists them",
        )),
    }
}

/// The clips a database was baked from, read from `files`, or from where they were.
pub fn clips_of(
    database: &MotionDatabase,
    files: &[PathBuf],
    read: &ReadArgs,
) -> Result<(Vec<BakeClip>, Import), Failure> {
    let mut own: Vec<PathBuf> = files.to_vec();
    if own.is_empty() {
        for clip in database.clips() {
            let file = PathBuf::from(&clip.file);
            if !clip.file.is_empty() && !own.contains(&file) {
                own.push(file);
            }
        }
    }
    if own.is_empty() {
        return Err(Failure::wrong("the database names no file of its clips; give the files after it"));
    }
    let (all, import) = read_clips(&own, &[], read)?;
    let mut clips = Vec::new();
    for wanted in database.clips() {
        let found = all.iter().find(|c| {
            c.clip.name == wanted.name
                && (inbetween_match::clip_hash(&c.clip, &c.skeleton) == wanted.content
                    // A compressed clip is never the very clip that was baked; its length must do.
                    || (compressed(&c.file) && (c.clip.duration() - wanted.duration_s).abs() < 1e-3))
        });
        let Some(found) = found else {
            return Err(Failure::wrong(format!(
                "clip {:?} of the database is not in {} as it was baked; {}",
                wanted.name,
                if files.is_empty() { &wanted.file } else { "the given files" },
                if files.is_empty() {
                    "the database is stale, so bake it again"
                } else {
                    "give all files of its clips, or bake the database again"
                }
            )));
        };
        clips.push(found.clone());
    }
    Ok((clips, import))
}
