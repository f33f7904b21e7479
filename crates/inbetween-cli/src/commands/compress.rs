//! `compress`: clips into an `.ibc` file a game can play, within a bound that was measured on the
//! written bytes.

use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::metric::{SHELL_M, Shell};
use inbetween::sample::resample;
use inbetween::{Clip, FrameRate, Skeleton};
use inbetween_codec::{
    ClipChunk, CompressError, CompressOptions, Compressed, Library, Measured, assemble, compress_clip,
    measure,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::commands::sample::rate;
use crate::input::{ReadArgs, find_clips, output_paths, shown_name};
use crate::output::{Failure, Outcome, print, print_json, say, say_notes, write_checked};
use crate::progress::Progress;
use crate::units::{self, show_length};

const EXAMPLES: &str = "\
Examples:
  inbetween compress walk.bvh -o walk.ibc
  inbetween compress Fox.glb -o fox.ibc --max-error 1mm --unit 1cm
  inbetween compress run.fbx -o run.ibc --fps 30
  inbetween compress a.fbx b.glb -o out/ --at-rest

The largest error holds in the world, at every node's origin and at points 3 cm along its axes
(--shell), at every key and midway between keys; it is measured on the file that was written.";

/// Compress clips for a game to play, under a bound in the world
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Compress {
    /// Files to read
    #[arg(required = true, value_name = "IN")]
    files: Vec<PathBuf>,
    /// File to write; a folder (ending in /) for several
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Only these clips, by name or number
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Vec<String>,
    /// Largest error in the world (default: 0.1mm, more where the figure is so large or so far away that 32 bits
    /// cannot hold that, which is said)
    #[arg(long, value_name = "LENGTH", value_parser = units::length)]
    max_error: Option<f64>,
    /// Largest turn of any node on its own, such as 0.1deg
    #[arg(long, value_name = "ANGLE", value_parser = units::angle)]
    max_angle: Option<f64>,
    /// Distance of the points along each node's axes at which the error counts
    #[arg(long, value_name = "LENGTH", default_value = "3cm", value_parser = units::shell)]
    shell: units::Shell,
    /// Another largest error for a node, by name; may be given several times
    #[arg(long, value_name = "NODE=LENGTH")]
    node_error: Vec<String>,
    /// Largest error of tracks that move no node, in their own unit (default: a ten-thousandth of
    /// the track's range)
    #[arg(long, value_name = "NUMBER")]
    value_error: Option<f64>,
    /// The node from which a player takes root motion (default: the highest one that travels)
    #[arg(long, value_name = "NODE")]
    root: Option<String>,
    /// The clips loop: make the last pose the first one
    #[arg(long = "loop")]
    closed: bool,
    /// Write the form for storage: smallest, unpacked when loaded
    #[arg(long)]
    at_rest: bool,
    /// Sample the clips at this rate first (30, 29.97, 30000/1001); the bound is then against
    /// those frames, with straight lines between them
    #[arg(long, value_name = "R", value_parser = rate)]
    fps: Option<FrameRate>,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// The bound where none is asked for, metres.
const DEFAULT_ERROR_M: f64 = 1e-4;

/// An error so many times the usual bound has other reasons than the size of the figure.
const FAR_OFF: f64 = 1000.0;

/// A file that was written: what is said of its clips.
struct Written {
    json: Vec<Value>,
    text: String,
    /// Metres.
    bound: f64,
}

impl Compress {
    /// Compresses every file and says what became of each clip.
    pub fn run(self) -> Outcome {
        let outputs: Vec<PathBuf> = output_paths(&self.files, &self.output)?
            .into_iter()
            .map(|p| if p == self.output { p } else { p.with_extension("ibc") })
            .collect();
        let bar = Progress::new(self.files.len(), "compressing");
        let done: Vec<Result<Written, Failure>> = self
            .files
            .par_iter()
            .zip(&outputs)
            .map(|(input, output)| {
                let one = self.one(input, output);
                bar.step();
                one
            })
            .collect();
        drop(bar);
        let mut clips = Vec::new();
        let mut lines = String::new();
        let mut bound = self.max_error.unwrap_or(DEFAULT_ERROR_M);
        for d in done {
            let Written { json, text, bound: held } = d?;
            bound = bound.max(held);
            clips.extend(json);
            lines.push_str(&text);
        }
        if self.json {
            return print_json(&json!({
                "clips": clips, "bound": bound, "holds": true,
                "verified": "decoded from the written bytes"
            }));
        }
        print(&lines)
    }

    /// The clips compressed; where no bound was asked for and 32 bits cannot hold the usual one, under the next that
    /// they hold, which is said.
    fn compressed(
        &self,
        clips: &[Clip],
        skeleton: &Skeleton,
        options: &mut CompressOptions,
        file: &Path,
    ) -> Result<Vec<ClipChunk>, Failure> {
        loop {
            let done: Vec<Result<ClipChunk, CompressError>> =
                clips.par_iter().map(|clip| compress_clip(clip, skeleton, options)).collect();
            let missed = done.iter().filter_map(|d| match d {
                Err(CompressError::BoundNotMet { error, .. }) => Some(*error),
                _ => None,
            });
            let error = missed.fold(0.0, f64::max);
            // Where a node's own bound is missed, or none, another one for all changes nothing.
            let another = error > options.max_error && error <= FAR_OFF * DEFAULT_ERROR_M;
            if self.max_error.is_some() || !another {
                return done.into_iter().collect::<Result<_, _>>().map_err(|e| {
                    let text = format!("{}: {e}", file.display());
                    match e {
                        CompressError::BoundNotMet { .. } => Failure::Bound(text),
                        _ => Failure::wrong(text),
                    }
                });
            }
            // One digit more than what was reached: the bound is there to be read.
            let digit = 10f64.powf(error.log10().floor());
            options.max_error = ((error / digit).floor() + 1.0) * digit;
            say(&format!(
                "{}: note: at the size it reads, or this far from the origin, 32 bits do not hold 0.1 mm, so it is held \
                 to {}; --unit says the true length of its unit, --max-error another bound",
                file.display(),
                show_length(options.max_error)
            ));
        }
    }

    fn one(&self, input: &Path, output: &Path) -> Result<Written, Failure> {
        let source_bytes = std::fs::metadata(input).map_or(0, |m| m.len());
        let import = self.read.read(input)?;
        say_notes(&input.display().to_string(), &import.notes, false);
        let chosen = find_clips(&import.clips, &self.clip, input)?;
        let clips: Vec<Clip> = chosen
            .iter()
            .map(|&i| match self.fps {
                None => Ok(import.clips[i].clone()),
                Some(rate) => resample(&import.clips[i], rate)
                    .map_err(|e| Failure::wrong(format!("{}: {e}", input.display()))),
            })
            .collect::<Result<_, _>>()?;
        let max_error = self.max_error.unwrap_or(DEFAULT_ERROR_M);
        let mut options = CompressOptions { max_error, ..self.options(&import.skeleton, input)? };
        let chunks = self.compressed(&clips, &import.skeleton, &mut options, input)?;
        let Compressed { bytes, reports } = assemble(&import.skeleton, chunks, self.at_rest);
        // Judged by what is on the disk, not by what was meant to be there, before it gets its name.
        let judged = write_checked(output, &bytes, &[input], |written| {
            let library = Library::load(written)
                .map_err(|e| Failure::wrong(format!("{}: cannot be read back: {e}", output.display())))?;
            let mut judged = Vec::new();
            for (clip, opened) in clips.iter().zip(&library.clips) {
                let found = measure(clip, &import.skeleton, &options, opened);
                if found.share_of_bound > 1.0 {
                    return Err(Failure::Bound(format!(
                        "{}: clip {:?}, read back, is off by {} where {} are allowed; nothing was written; please \
                         report this",
                        output.display(),
                        clip.name,
                        show_length(found.worst.map_or(0.0, |w| w.value)),
                        show_length(options.max_error)
                    )));
                }
                judged.push(found);
            }
            Ok(judged)
        })?;
        let mut json = Vec::new();
        let mut text = String::new();
        for ((r, clip), Measured { worst, share_of_bound }) in reports.iter().zip(&clips).zip(judged) {
            for note in &r.notes {
                say(&format!("{}: clip {:?}: {note}", input.display(), r.name));
            }
            let shown = worst.as_ref().map(|w| {
                json!({"value": w.value, "unit": "m", "target": shown_name(&w.target, Some(w.node)), "time": w.time})
            });
            json.push(json!({
                "name": r.name, "file": output, "source_keys": clip.key_count(), "frames": r.frames,
                "max_error": shown, "source_bytes": source_bytes, "raw_bytes": r.raw_bytes, "bytes": r.bytes,
                "share_of_bound": share_of_bound, "notes": r.notes,
            }));
            let ratio = r.raw_bytes as f64 / r.bytes.max(1) as f64;
            text.push_str(&format!(
                "{}: clip {:?}: {} frames, {} bytes, 1/{ratio:.1} of plain frames",
                output.display(),
                r.name,
                r.frames,
                r.bytes
            ));
            if let Some(w) = &worst {
                let target = shown_name(&w.target, Some(w.node));
                text.push_str(&format!(
                    ", off by at most {} ({target} at {} s)",
                    show_length(w.value),
                    units::short(w.time)
                ));
            }
            text.push('\n');
        }
        text.push_str(&format!("{}: {} bytes in all\n", output.display(), bytes.len()));
        Ok(Written { json, text, bound: options.max_error })
    }

    fn options(&self, skeleton: &Skeleton, file: &Path) -> Result<CompressOptions, Failure> {
        let mut node_errors = Vec::new();
        for pair in &self.node_error {
            let (name, length) = pair.rsplit_once('=').ok_or_else(|| {
                Failure::wrong(format!("--node-error {pair:?}: write it like Hand_L=0.05mm"))
            })?;
            let error = units::length(length).map_err(Failure::wrong)?;
            let nodes = skeleton.find(name);
            if nodes.is_empty() {
                return Err(Failure::wrong(format!(
                    "{}: no node is called {name:?}; `inbetween info` lists them",
                    file.display()
                )));
            }
            node_errors.extend(nodes.into_iter().map(|n| (n, error)));
        }
        let root = match &self.root {
            None => None,
            Some(name) => Some(*skeleton.find(name).first().ok_or_else(|| {
                Failure::wrong(format!(
                    "{}: no node is called {name:?}; `inbetween info` lists them",
                    file.display()
                ))
            })?),
        };
        Ok(CompressOptions {
            max_angle: self.max_angle,
            shell: match self.shell {
                units::Shell::Metres(length) => Shell::Fixed(length),
                units::Shell::Skin => Shell::Reach { otherwise: SHELL_M },
            },
            node_errors,
            value_error: self.value_error,
            closed: self.closed,
            root,
            ..CompressOptions::default()
        })
    }
}
