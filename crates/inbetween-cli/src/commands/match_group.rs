//! `match`: motion matching, from clips to a database and from a wish to a pose.
//!
//! The subcommands have a file each beside this one; what they share is here: reading a
//! schema, clips and a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use inbetween_formats::Import;
use inbetween_match::{BakeClip, MatchError, MotionDatabase, Schema};
use rayon::prelude::*;

use super::match_bake::{Bake, Info};
use super::match_query::{Explain, Query};
use super::match_run::Run;
use crate::input::{ReadArgs, find_clips};
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
            clips.push(BakeClip {
                clip: Arc::new(import.clips[index].clone()),
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
            c.clip.name == wanted.name && inbetween_match::clip_hash(&c.clip, &c.skeleton) == wanted.content
        });
        let Some(found) = found else {
            return Err(Failure::wrong(format!(
                "clip {:?} of the database is not in {} as it was baked; the database is stale, so bake it again",
                wanted.name,
                if wanted.file.is_empty() { "the given files" } else { &wanted.file }
            )));
        };
        clips.push(found.clone());
    }
    Ok((clips, import))
}
