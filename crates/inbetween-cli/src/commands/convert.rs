//! `convert`: a file into another format, or a piece of it: one clip, a range, another rate.

use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::edit::AdditiveReference;
use inbetween::playback::root_motion::{self, RootDestination, RootParts, RootRotation};
use inbetween::{Clip, FrameRate, Skeleton, edit};
use inbetween_formats::{Import, Source};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::commands::sample::rate;
use crate::input::{ReadArgs, find_clip, find_clips, output_paths};
use crate::output::{Failure, Outcome, print, print_json, say_notes, write_import};
use crate::progress::Progress;
use crate::units;

const EXAMPLES: &str = "\
Examples:
  inbetween convert walk.bvh -o walk.glb
  inbetween convert take.fbx -o cut.glb --clip Walk --start 2.25 --end 4
  inbetween convert Fox.glb -o clips/ --split
  inbetween convert a.bvh b.bvh -o out/ --to glb
  inbetween convert walk.glb -o spot.glb --root-motion in-place
  inbetween convert walk.glb -o driven.glb --root-motion extract --root Hips
  inbetween convert moves.glb -o lean.inb --clip Lean --additive Idle@0

A cut has the exact pose at both ends, even where no track has a key there, and begins at 0 s.
With --fps everything that blends gets a key a frame; steps stay steps at their own times.
--root-motion takes the ground path and the heading out of the pose of a root (the hips, as a rule):
`extract` puts them onto its parent, `in-place` leaves them out, so that the figure walks on the spot.
--additive needs a format that can say so: inb, from which compress makes an .ibc.";

/// What becomes of root motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RootMotion {
    /// Onto the root's parent
    Extract,
    /// Left out: the figure moves on the spot
    InPlace,
}

/// Write a file in another format, or cut, split and resample its clips
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Convert {
    /// Files to read
    #[arg(required = true, value_name = "IN")]
    files: Vec<PathBuf>,
    /// File to write, its extension says the format; a folder (ending in /) for several
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Format of the files in a folder, by extension (default: that of each input)
    #[arg(long, value_name = "EXT")]
    to: Option<String>,
    /// Only these clips, by name or number
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Vec<String>,
    /// Cut from here, seconds on the clip's own clock
    #[arg(long, value_name = "T", value_parser = units::seconds, allow_hyphen_values = true)]
    start: Option<f64>,
    /// Cut to here, seconds on the clip's own clock
    #[arg(long, value_name = "T", value_parser = units::seconds, allow_hyphen_values = true)]
    end: Option<f64>,
    /// Sample at this rate (30, 29.97, 30000/1001)
    #[arg(long, value_name = "R", value_parser = rate)]
    fps: Option<FrameRate>,
    /// Take root motion out of the pose: onto the root's parent, or away
    #[arg(long, value_enum, value_name = "HOW")]
    root_motion: Option<RootMotion>,
    /// The node whose motion that is (default: the highest that travels)
    #[arg(long, value_name = "NODE", requires = "root_motion")]
    root: Option<String>,
    /// With --root-motion: leave the heading in the pose, take only the path
    #[arg(long, requires = "root_motion")]
    keep_heading: bool,
    /// Add one frame back to the first pose at the end, for loops that are a frame short
    #[arg(long)]
    close_loop: bool,
    /// Make each clip a difference to a pose, to be laid over others: its own first (start), the rest pose
    /// (rest), or that of a clip of the file at a time (NAME or NAME@SECONDS)
    #[arg(long, value_name = "FROM", conflicts_with = "root_motion")]
    additive: Option<String>,
    /// Write end sites (BVH) as nodes of their own, called after their joint: Head_end
    #[arg(long)]
    end_nodes: bool,
    /// A file for each clip, called after it
    #[arg(long)]
    split: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document that lists what was written
    #[arg(long)]
    json: bool,
}

/// A file that was written.
struct Written {
    path: PathBuf,
    bytes: u64,
    clips: Vec<String>,
    keys: usize,
}

impl Convert {
    /// Reads, changes and writes each file.
    pub fn run(self) -> Outcome {
        let outputs = if self.split {
            let folder =
                PathBuf::from(format!("{}/", self.output.display().to_string().trim_end_matches('/')));
            output_paths(&self.files, &folder)?
        } else {
            output_paths(&self.files, &self.output)?
        };
        let bar = Progress::new(self.files.len(), "converting");
        let results: Vec<Result<Vec<Written>, Failure>> = self
            .files
            .par_iter()
            .zip(&outputs)
            .map(|(input, output)| {
                let written = self.one(input, output);
                bar.step();
                written
            })
            .collect();
        drop(bar);
        let mut written = Vec::new();
        for result in results {
            written.extend(result?);
        }
        if self.json {
            let list: Vec<Value> = written
                .iter()
                .map(|w| json!({"file": w.path, "bytes": w.bytes, "clips": w.clips, "keys": w.keys}))
                .collect();
            return print_json(&json!({"written": list}));
        }
        for w in &written {
            let clips = w.clips.len();
            print(&format!("{}: {clips} clips, {} keys, {} bytes\n", w.path.display(), w.keys, w.bytes))?;
        }
        Ok(())
    }

    fn one(&self, input: &Path, output: &Path) -> Result<Vec<Written>, Failure> {
        let mut import = self.read.read(input)?;
        say_notes(&input.display().to_string(), &import.notes, false);
        let chosen = find_clips(&import.clips, &self.clip, input)?;
        if self.end_nodes && matches!(import.source, Source::None) {
            import.skeleton = import.skeleton.with_end_nodes();
        }
        if self.root_motion == Some(RootMotion::Extract) {
            for &i in &chosen {
                self.give_parent(&mut import, i, input)?;
            }
        }
        let clips: Vec<Clip> = chosen
            .iter()
            .map(|&i| self.changed(&import.clips[i], &import.skeleton, input))
            .collect::<Result<_, _>>()?;
        let folder = output != self.output;
        let clips = match &self.additive {
            None => clips,
            Some(from) => {
                let reference = reference(from, &import.clips, input)?;
                clips.iter().map(|c| edit::make_additive(c, &reference)).collect()
            }
        };
        let output = match (&self.to, folder) {
            (Some(extension), true) => output.with_extension(extension.trim_start_matches('.')),
            _ => output.to_owned(),
        };
        if !self.split {
            import.clips = clips;
            return Ok(vec![write(&import, &output, input)?]);
        }
        let names = file_names(&clips);
        let extension = output.extension().unwrap_or_default().to_string_lossy().into_owned();
        let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let all: Vec<Clip> = clips;
        all.iter()
            .zip(names)
            .map(|(clip, name)| {
                import.clips = vec![clip.clone()];
                let name = if self.files.len() > 1 { format!("{stem}-{name}") } else { name };
                write(&import, &output.with_file_name(format!("{name}.{extension}")), input)
            })
            .collect()
    }

    /// The clip, cut and resampled as asked.
    fn changed(&self, clip: &Clip, skeleton: &Skeleton, file: &Path) -> Result<Clip, Failure> {
        let mut clip = clip.clone();
        if self.start.is_some() || self.end.is_some() {
            let (start, end) = (self.start.unwrap_or(clip.start()), self.end.unwrap_or(clip.end()));
            // Times typed with a few digits may miss the clip's own end by less than that.
            let slack = 1e-4;
            if start > end || start < clip.start() - slack || end > clip.end() + slack {
                return Err(Failure::wrong(format!(
                    "{}: clip {:?} runs from {} s to {} s, so it cannot be cut from {start} s to {end} s",
                    file.display(),
                    clip.name,
                    clip.start(),
                    clip.end()
                )));
            }
            clip = edit::cut(&clip, start, end);
        }
        if let Some(rate) = self.fps {
            // What the frames would need is known before they are made.
            clip = inbetween::sample::resample(&clip, rate)
                .map_err(|e| Failure::wrong(format!("{}: {e}", file.display())))?;
        }
        if self.close_loop {
            let rate = clip.rate.unwrap_or(FrameRate::hz(30));
            clip = edit::close_loop(&clip, rate.time_of(1));
        }
        match self.root_motion {
            Some(how) => self.without_root_motion(&clip, skeleton, how, file),
            None => Ok(clip),
        }
    }

    /// The node whose motion is taken out of a clip.
    fn root_node(&self, clip: &Clip, skeleton: &Skeleton, file: &Path) -> Result<usize, Failure> {
        let wrong = |text: String| Failure::wrong(format!("{}: {text}", file.display()));
        match &self.root {
            Some(name) => match skeleton.find(name)[..] {
                [node] => Ok(node),
                [] => Err(wrong(format!("there is no node called {name:?}; `info` lists them"))),
                _ => Err(wrong(format!("several nodes are called {name:?}: ambiguous"))),
            },
            None => root_motion::guess_root(clip, skeleton).ok_or_else(|| {
                wrong(format!("clip {:?} moves no node, so it has no root motion", clip.name))
            }),
        }
    }

    /// Puts a node above the root of a clip, if there is none, to carry the extracted motion. The
    /// nodes of a glTF file are kept as they are, so there the lack of one is an error later on.
    fn give_parent(&self, import: &mut Import, clip: usize, file: &Path) -> Result<(), Failure> {
        let node = self.root_node(&import.clips[clip], &import.skeleton, file)?;
        if import.skeleton.joints()[node].parent.is_none()
            && matches!(import.source, Source::None | Source::Lenses(_))
        {
            import.skeleton = import.skeleton.with_parent(node, "root");
        }
        Ok(())
    }

    /// The clip with the motion of its root taken out.
    fn without_root_motion(
        &self,
        clip: &Clip,
        skeleton: &Skeleton,
        how: RootMotion,
        file: &Path,
    ) -> Result<Clip, Failure> {
        let wrong = |text: String| Failure::wrong(format!("{}: {text}", file.display()));
        let node = self.root_node(clip, skeleton, file)?;
        let rotation = if self.keep_heading { RootRotation::Keep } else { RootRotation::Yaw };
        let parts = RootParts { rotation, ..RootParts::default() };
        let to = match how {
            RootMotion::Extract => RootDestination::Parent,
            RootMotion::InPlace => RootDestination::Discard,
        };
        let times = root_motion::sampling_times(clip, clip.rate.unwrap_or(FrameRate::hz(60)));
        root_motion::take_out(clip, skeleton, node, parts, to, &times).map_err(|e| wrong(e.to_string()))
    }
}

/// The pose that differences are taken to, as `--additive` says it.
fn reference(from: &str, clips: &[Clip], file: &Path) -> Result<AdditiveReference, Failure> {
    match from {
        "start" => Ok(AdditiveReference::FirstKey),
        "rest" => Ok(AdditiveReference::Rest),
        _ => {
            let timed = from.rsplit_once('@').and_then(|(name, t)| Some((name, units::seconds(t).ok()?)));
            let (name, time) = timed.map_or((from, None), |(name, t)| (name, Some(t)));
            let clip = clips[find_clip(clips, name, file)?].clone();
            let time = time.unwrap_or(clip.start());
            Ok(AdditiveReference::Clip(Box::new(clip), time))
        }
    }
}

fn write(import: &Import, output: &Path, input: &Path) -> Result<Written, Failure> {
    let bytes = write_import(output, import, &[input])?;
    Ok(Written {
        path: output.to_owned(),
        bytes,
        clips: import.clips.iter().map(|c| c.name.clone()).collect(),
        keys: import.clips.iter().map(Clip::key_count).sum(),
    })
}

/// Names for files of clips: the clip's own where a file may be called so, made distinct.
fn file_names(clips: &[Clip]) -> Vec<String> {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    clips
        .iter()
        .enumerate()
        .map(|(i, clip)| {
            let plain: String = clip
                .name
                .chars()
                .map(|c| if c.is_alphanumeric() || "-_. ".contains(c) { c } else { '_' })
                .take(80)
                .collect();
            let plain = plain.trim_matches(['.', ' ']).to_owned();
            let base = if plain.is_empty() { format!("clip-{i}") } else { plain };
            // Case does not tell files apart everywhere.
            let times = seen.entry(base.to_lowercase()).or_default();
            *times += 1;
            if *times == 1 { base } else { format!("{base}-{i}") }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_of_one_name_get_files_of_their_own() {
        let clip = |name: &str| Clip::new(name, 0.0, 1.0).unwrap();
        let names = file_names(&[clip("walk"), clip("Walk"), clip("a/b|c"), clip(".."), clip("歩く")]);
        assert_eq!(names, ["walk", "Walk-1", "a_b_c", "clip-3", "歩く"]);
    }
}
