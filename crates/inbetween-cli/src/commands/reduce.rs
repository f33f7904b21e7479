//! `reduce`: fewer keys under a bound in the world, checked on the file that was written.
//!
//! The result is written beside its place, read back from there, and compared with the source by
//! [`inbetween::compare`], which shares nothing with the reducer. Only if the bound holds does the
//! file get its name; else the command says where it does not, and leaves nothing behind.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use inbetween::compare::{self, Comparison, Measure};
use inbetween::reduce::literal::Literal;
use inbetween::reduce::{self, Fate, Keys, Options, Report, steps};
use inbetween::sample::is_straight;
use inbetween::{Clip, FrameRate, TrackData, Wrap, metric};
use inbetween_formats::{Import, Input, Note, ReadOptions, Severity, export_rounded, import};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::commands::diff::{judge_shell, unit_of};
use crate::input::{ReadArgs, find_clips, output_paths, shown_name};
use crate::output::{
    Failure, Outcome, print, print_json, refuse_ibc, say, say_notes, write_checked, write_file,
};
use crate::progress::Progress;
use crate::report::{self, ClipPage, FilePage};
use crate::units::{self, Bound, Shell, short, show_length};

const EXAMPLES: &str = "\
Examples:
  inbetween reduce Fox.glb -o out.glb --unit 1cm --max-error 1mm --report report.html
  inbetween reduce walk.bvh -o walk.glb --max-error 0.5mm --keys cubic
  inbetween reduce a.glb b.glb -o thin/ --max-error auto
  inbetween reduce prop.glb -o out.glb --metric track --max-error 1mm --max-angle 0.1deg

The bound: no node's origin, nor a point --shell away from it along its axes, is farther off in the
world at any key of the source or midpoint between neighbouring keys. Steps stay exactly as they
are. The result is read back from the written file and checked; exit code 3 if the bound does not
hold, and then nothing is written.";

/// What is tried in turn until the written file holds the bound: a share of it, because storing in 32 bits may
/// push an error that just meets the bound over it.
const SHARES: [f64; 3] = [1.0, 0.98, 0.9];

/// Which keys are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyKind {
    /// Straight lines between keys
    Linear,
    /// Cubic keys with tangents, to go on editing
    Cubic,
    /// Only keys that change nothing go
    Keep,
    /// The triplet rule of the literature, which has no bound, for comparison
    Literal,
}

/// In what a bound is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Metric {
    /// Distances in the world
    World,
    /// Each track alone, in its own unit
    Track,
}

/// Take out keys under a bound that holds, checked on the written file
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Reduce {
    /// Files to read
    #[arg(required = true, value_name = "IN")]
    files: Vec<PathBuf>,
    /// File to write, its extension says the format; a folder (ending in /) for several
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Format of the files in a folder, by extension (default: that of each input, else glb)
    #[arg(long, value_name = "EXT")]
    to: Option<String>,
    /// Only these clips, by name or number; the others stay as they are
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Vec<String>,
    /// Largest error: a length, or auto for a hundredth of the model's size
    #[arg(long, value_name = "LENGTH", default_value = "1mm", value_parser = units::bound)]
    max_error: Bound,
    /// Whether the bound is one in the world or one for each track
    #[arg(long, value_enum, default_value_t = Metric::World)]
    metric: Metric,
    /// Largest error of a rotation track, besides the bound (with --metric track: default 0.05deg)
    #[arg(long, value_name = "ANGLE", value_parser = units::angle)]
    max_angle: Option<f64>,
    /// Largest error of tracks that move no node (weights, light, colour), in their own unit
    #[arg(long, value_name = "NUMBER", default_value_t = 0.001)]
    value_error: f64,
    /// Which keys are kept
    #[arg(long, value_enum, default_value_t = KeyKind::Linear)]
    keys: KeyKind,
    /// Frames at which curves that bend are sampled between their keys; keys: at the clip's own
    /// rate, else the highest of 96, 60, 48, 30 and 24 that --samples allows
    #[arg(long, value_name = "R|keys", default_value = "keys", value_parser = rate_or_keys)]
    fps: SampleRate,
    /// Most samples of a track; above it the rate falls to the next lower one
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// The clips loop: last pose and first stay as they are, and a gap between them is reported
    #[arg(long = "loop")]
    looping: bool,
    /// Distance from each node of the points that are watched too; 0 for origins only, auto for as
    /// far as its skin reaches
    #[arg(long, value_name = "LENGTH", default_value = "3cm", value_parser = units::shell)]
    shell: Shell,
    /// Drop tracks that stand still at rest and that no other clip moves
    #[arg(long)]
    drop_at_rest: bool,
    /// Leave steps that were baked into two keys a frame apart as they are
    #[arg(long)]
    keep_baked_steps: bool,
    /// Do not move the values of keys that stay
    #[arg(long)]
    no_refit: bool,
    /// Write a page that shows what was done
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// A rate, or the library's own choice.
#[derive(Clone, Copy, Debug)]
struct SampleRate(Option<FrameRate>);

fn rate_or_keys(text: &str) -> Result<SampleRate, String> {
    if text == "keys" { Ok(SampleRate(None)) } else { super::sample::rate(text).map(|r| SampleRate(Some(r))) }
}

/// One clip, reduced and checked.
struct Done {
    report: Report,
    /// The source against what was read back.
    found: Comparison,
    source_bytes: u64,
    bytes: u64,
}

/// True if files of that name have curves of single angles and components: the project's own text alone.
fn has_components(name: &str) -> bool {
    name.to_lowercase().ends_with(".inb")
}

/// True if the clip has curved angles or components and a file of that name does not.
fn fitted_on_writing(clip: &Clip, name: &str) -> bool {
    let components = |data: &TrackData| matches!(data, TrackData::Axes { .. } | TrackData::Euler(_));
    !has_components(name) && clip.tracks.iter().any(|t| components(&t.data) && !is_straight(&t.data))
}

/// A file's bytes that hold the bound, not yet on disk.
struct Attempt {
    bytes: Vec<u8>,
    notes: Vec<Note>,
    /// What was read back from the bytes.
    result: Import,
    clips: Vec<(usize, Done)>,
}

impl Attempt {
    /// Keys of the reduced clips as they were read back.
    fn keys(&self) -> usize {
        let tracks = self.clips.iter().flat_map(|(i, _)| &self.result.clips[*i].tracks);
        tracks.map(|t| t.data.key_times().len()).sum()
    }
}

/// One file, reduced, written and read back.
struct FileDone {
    input: PathBuf,
    output: PathBuf,
    bound: f64,
    source: Import,
    result: Import,
    source_size: u64,
    size: u64,
    /// What the writer could not keep as it was.
    notes: Vec<Note>,
    /// For each clip of the file, unless it was not asked for.
    clips: Vec<(usize, Done)>,
}

impl Reduce {
    /// Reduces each file, writes, checks and reports.
    pub fn run(self) -> Outcome {
        if !(self.value_error.is_finite() && self.value_error >= 0.0) {
            return Err(Failure::wrong(format!(
                "--value-error {}: must be a number of 0 or more",
                self.value_error
            )));
        }
        refuse_ibc(&self.output)?;
        let outputs = output_paths(&self.files, &self.output)?;
        let bar = Progress::new(self.files.len(), "reducing");
        let results: Vec<Result<FileDone, Failure>> = self
            .files
            .par_iter()
            .zip(&outputs)
            .map(|(input, output)| {
                let done = self.one(input, output);
                bar.step();
                done
            })
            .collect();
        drop(bar);
        let mut done = Vec::new();
        let mut failed = None;
        for result in results {
            match result {
                Ok(d) => done.push(d),
                // The bound that does not hold counts more than an input that is wrong.
                Err(failure) => match &failed {
                    Some(Failure::Bound(_)) => say(&format!("inbetween: {failure}")),
                    _ => failed = Some(failure),
                },
            }
        }
        if let Some(path) = &self.report
            && !done.is_empty()
        {
            let page = report::reduction(&done.iter().map(|d| self.page(d)).collect::<Vec<_>>());
            let inputs: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
            write_file(path, page.as_bytes(), &inputs)?;
        }
        if self.json {
            let mut documents: Vec<Value> = done.iter().map(|d| self.document(d)).collect();
            if self.files.len() > 1 {
                print_json(&json!({"files": documents}))?;
            } else if let Some(one) = documents.pop() {
                print_json(&one)?;
            }
        } else {
            for d in &done {
                print(&self.text(d))?;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The bound in metres for this file.
    fn bound(&self, source: &Import, input: &Path) -> Result<f64, Failure> {
        match self.max_error {
            Bound::Metres(m) => Ok(m),
            Bound::Auto => {
                let bound = reduce::auto_error(&source.skeleton, &source.clips, AUTO_SHARE);
                if bound > 0.0 {
                    Ok(bound)
                } else {
                    Err(Failure::wrong(format!(
                        "{}: nothing in it has a size, so there is no share of one; give --max-error a length",
                        input.display()
                    )))
                }
            }
        }
    }

    fn options(&self, bound: f64, share: f64) -> Options {
        let shell = judge_shell(self.shell);
        let keys = match self.keys {
            KeyKind::Linear => Keys::Linear,
            KeyKind::Cubic => Keys::Cubic,
            KeyKind::Keep => Keys::Keep,
            KeyKind::Literal => Keys::Literal { tolerance: bound, habits: Literal::default() },
        };
        let base = Options {
            keys,
            shell,
            value_tolerance: Some(self.value_error * share),
            refit: !self.no_refit,
            restore_steps: !self.keep_baked_steps,
            drop_at_rest: self.drop_at_rest,
            rate: self.fps.0,
            ..Options::default()
        };
        let base = Options { sample_limit: self.samples.unwrap_or(base.sample_limit), ..base };
        match self.metric {
            Metric::World => Options {
                max_error: Some(bound * share),
                angle_tolerance: self.max_angle.map(|a| a * share),
                ..base
            },
            Metric::Track => Options {
                length_tolerance: Some(bound * share),
                angle_tolerance: Some(self.max_angle.unwrap_or(0.05f64.to_radians()) * share),
                scale_tolerance: Some(self.value_error * share),
                ..base
            },
        }
    }

    fn one(&self, input: &Path, output: &Path) -> Result<FileDone, Failure> {
        let source = self.read.read(input)?;
        say_notes(&input.display().to_string(), &source.notes, false);
        let chosen = find_clips(&source.clips, &self.clip, input)?;
        let bound = self.bound(&source, input)?;
        let output = self.output_of(&source, output);
        let name = output.display().to_string();
        // Curves that are fitted on writing may need more or fewer keys as they were drawn than as straight ones.
        let ways: &[bool] = if chosen.iter().any(|&i| fitted_on_writing(&source.clips[i], &name)) {
            &[false, true]
        } else if has_components(&name) {
            &[true]
        } else {
            &[false]
        };
        let mut reason = String::new();
        let mut best: Option<Attempt> = None;
        for &keep_components in ways {
            for share in SHARES {
                let options = Options { keep_components, ..self.options(bound, share) };
                match self.attempt(&source, &chosen, &options, input, &name, bound) {
                    Err(Failure::Bound(why)) => reason = why,
                    Err(other) => return Err(other),
                    Ok(attempt) => {
                        if best.as_ref().is_none_or(|best| attempt.keys() < best.keys()) {
                            best = Some(attempt);
                        }
                        break;
                    }
                }
            }
        }
        let Some(Attempt { bytes, notes, result, clips }) = best else {
            return Err(Failure::Bound(format!("{}: {reason}; nothing was written", input.display())));
        };
        write_checked(&output, &bytes, &[input], |written| {
            if written == bytes {
                return Ok(());
            }
            Err(Failure::wrong(format!("{name}: other bytes were read back than had been written")))
        })?;
        say_notes(&name, &notes, false);
        let source_size = size_with_buffers(input);
        let size = bytes.len() as u64;
        let input = input.to_owned();
        Ok(FileDone { input, output, bound, source, result, source_size, size, notes, clips })
    }

    /// Reduces the chosen clips, writes the file to memory, reads it back and checks it.
    fn attempt(
        &self,
        source: &Import,
        chosen: &[usize],
        options: &Options,
        input: &Path,
        name: &str,
        bound: f64,
    ) -> Result<Attempt, Failure> {
        let reduced: Vec<(usize, reduce::Reduction)> = chosen
            .par_iter()
            .map(|&i| {
                reduce::reduce_one_of(&source.clips, i, &source.skeleton, options)
                    .map(|r| {
                        let clip = &source.clips[i];
                        // The model's bytes say nothing about those of curves that are fitted on writing.
                        (i, if fitted_on_writing(clip, name) { r } else { self.no_larger(r, clip) })
                    })
                    .map_err(|e| Failure::wrong(format!("{}: {e}", input.display())))
            })
            .collect::<Result<_, _>>()?;
        let mut changed = source.clone();
        for (i, reduction) in &reduced {
            changed.clips[*i] = reduction.clip.clone();
            if self.looping {
                changed.clips[*i].wrap = Wrap::Loop;
            }
        }
        // Reduced values lie between those of the file, so they need no more digits than it has.
        let decimals = source.decimals.filter(|_| self.keys != KeyKind::Keep).map(|d| d.max(4));
        let (bytes, mut notes) = export_rounded(&changed, name, decimals)?;
        if name.to_lowercase().ends_with(".bvh") {
            let text = "BVH has a value in every frame: the keys that went are filled in between those that stay, so \
                        the file gets hardly smaller; glb and inb keep keys alone";
            notes.push(Note::new(Severity::Info, "", text.to_owned()));
        }
        let result = self.read_back(source, name, &bytes)?;
        let clips = self.check(source, &result, &reduced, bound)?;
        Ok(Attempt { bytes, notes, result, clips })
    }

    /// The reduction, unless its keys take more bytes than those of the clip: tracks that shared
    /// their key times may each need times of their own.
    fn no_larger(&self, reduction: reduce::Reduction, clip: &Clip) -> reduce::Reduction {
        if self.keys == KeyKind::Literal || key_bytes(&reduction.clip) <= key_bytes(clip) {
            return reduction;
        }
        reduction.undone(clip, "fewer keys would have taken more bytes")
    }

    /// Where the result of `source` goes.
    fn output_of(&self, source: &Import, output: &Path) -> PathBuf {
        if output == self.output {
            return output.to_owned();
        }
        match &self.to {
            Some(extension) => output.with_extension(extension.trim_start_matches('.')),
            // A folder of results keeps each format that can be written.
            None if inbetween_formats::WRITTEN.contains(&source.format) && source.format != "bvh" => {
                output.to_owned()
            }
            None => output.with_extension("glb"),
        }
    }

    /// Reads what was written, in the units it was written in.
    fn read_back(&self, source: &Import, name: &str, bytes: &[u8]) -> Result<Import, Failure> {
        // A result in the source's own format is in the source's own units.
        let same = (source.format == "gltf" || source.format == "glb")
            && [".glb", ".gltf"].iter().any(|e| name.to_lowercase().ends_with(e));
        let options = ReadOptions { unit: self.read.unit.filter(|_| same), ..ReadOptions::default() };
        Ok(import(&Input::alone(bytes, name), &options)?)
    }

    /// Compares every clip that was reduced with what was read back.
    fn check(
        &self,
        source: &Import,
        result: &Import,
        reduced: &[(usize, reduce::Reduction)],
        bound: f64,
    ) -> Result<Vec<(usize, Done)>, Failure> {
        if result.clips.len() != source.clips.len() {
            return Err(Failure::Bound(format!(
                "{} clips were read back of {}",
                result.clips.len(),
                source.clips.len()
            )));
        }
        reduced
            .par_iter()
            .map(|(i, reduction)| {
                let (clip, back) = (&source.clips[*i], &result.clips[*i]);
                // A baked step that was found again is judged as the step it is.
                let reference = if self.keep_baked_steps { clip.clone() } else { steps::restore(clip).0 };
                // glTF knows no time before 0: a clip that begins there is moved to begin at 0.
                let moved = clip.start() < 0.0 && back.start() != clip.start();
                let reference = if moved { inbetween::edit::rebase_to_zero(&reference) } else { reference };
                let times = compare::judged_times(&[&reference]);
                let found = compare::compare_at(
                    (&reference, &source.skeleton),
                    (back, &result.skeleton),
                    judge_shell(self.shell),
                    &times,
                );
                if let Some(why) = self.objection(source, clip, &reduction.clip, back, &found, bound) {
                    return Err(Failure::Bound(why));
                }
                Ok((
                    *i,
                    Done {
                        report: reduction.report.clone(),
                        found,
                        source_bytes: key_bytes(clip),
                        bytes: key_bytes(back),
                    },
                ))
            })
            .collect()
    }

    /// Why the result may not stand, if it may not.
    fn objection(
        &self,
        source: &Import,
        clip: &Clip,
        reduced: &Clip,
        back: &Clip,
        found: &Comparison,
        bound: f64,
    ) -> Option<String> {
        let name = &clip.name;
        let slack = 1.0 + 1e-9;
        if !crate::commands::diff::same_length(clip, back) {
            return Some(format!("clip {name:?} lasts {} s and not {} s", back.duration(), clip.duration()));
        }
        if self.keys == KeyKind::Literal {
            return None;
        }
        if self.metric == Metric::World
            && let Some(n) = found.worst_node().filter(|n| n.distance > bound * slack)
        {
            return Some(format!(
                "the bound does not hold: clip {name:?}, {} is {} off at {} s, more than {}",
                shown_name(&source.skeleton.joints()[n.node].name, Some(n.node)),
                show_length(n.distance),
                short(n.time),
                show_length(bound)
            ));
        }
        for t in &found.tracks {
            let moves = t.node.is_some() && matches!(t.property.name(), "translation" | "rotation" | "scale");
            // What the reducer kept and the format cannot hold is a loss the writer has noted, not an
            // error of the reduction. Motion has no such excuse.
            let kept = |r: &Clip| {
                t.first.is_some_and(|i| r.tracks.iter().any(|k| k.binding == clip.tracks[i].binding))
            };
            if !moves && t.second.is_none() && kept(reduced) {
                continue;
            }
            let limit = if t.stepped {
                Some(1e-6)
            } else {
                match (self.metric, t.measure) {
                    (_, Measure::Radians) if self.max_angle.is_some() => self.max_angle,
                    (Metric::Track, Measure::Radians) => Some(0.05f64.to_radians()),
                    (Metric::Track, Measure::Metres) => Some(bound),
                    (Metric::World, _) if moves => None,
                    _ => Some(self.value_error),
                }
            };
            // Values are stored in 32 bits: 1e-7 of a large one is nothing that was taken away.
            if limit.is_some_and(|l| t.size > l * slack + 1e-9) {
                return Some(format!(
                    "the bound does not hold: clip {name:?}, {} . {} is {} {} off at {} s, more than {}",
                    shown_name(&t.target, t.node),
                    t.property.name(),
                    short(t.size),
                    unit_of(t.measure),
                    short(t.time),
                    short(limit.unwrap_or(0.0))
                ));
            }
        }
        None
    }

    fn document(&self, done: &FileDone) -> Value {
        let clips: Vec<Value> = done.clips.iter().map(|(i, d)| self.clip_document(done, *i, d)).collect();
        let sum = |f: fn(&Done) -> usize| done.clips.iter().map(|(_, d)| f(d)).sum::<usize>();
        let (source_keys, keys) = (sum(|d| d.report.source_keys), sum(|d| d.report.keys));
        json!({
            "file": done.input, "output": done.output,
            "clips": clips,
            "source_keys": source_keys, "keys": keys, "percent": percent(keys, source_keys),
            "source_file_bytes": done.source_size, "file_bytes": done.size,
            "bound": done.bound,
            "metric": if self.metric == Metric::World { "world" } else { "track" },
            "holds": self.keys != KeyKind::Literal
                || done.clips.iter().all(|(_, d)| d.found.worst_node().is_none_or(|n| n.distance <= done.bound)),
            "verified": "reread from the written file",
            "notes": done.source.notes.iter().chain(&done.notes).map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    fn clip_document(&self, done: &FileDone, index: usize, d: &Done) -> Value {
        let clip = &done.source.clips[index];
        let worst = d.found.worst_node().map_or(json!(null), |n| {
            json!({
                "value": n.distance, "unit": "m", "time": n.time,
                "target": shown_name(&done.source.skeleton.joints()[n.node].name, Some(n.node)),
            })
        });
        let name = |t: &reduce::TrackReport| format!("{}.{}", t.target, t.property);
        let flattened: Vec<Value> = d
            .report
            .flattened()
            .filter_map(|t| match t.fate {
                Fate::Flattened { error } if error > 0.0 => Some(json!({
                    "target": t.target, "property": t.property, "error": error, "unit": t.unit.symbol(),
                })),
                _ => None,
            })
            .collect();
        let mut out = json!({
            "name": clip.name,
            "source_keys": d.report.source_keys, "keys": d.report.keys, "percent": d.report.percent(),
            "max_error": worst,
            "source_bytes": d.source_bytes, "bytes": d.bytes,
            "dropped_tracks": d.report.dropped().map(name).collect::<Vec<_>>(),
            "flattened": flattened,
            "notes": d.report.notes,
        });
        if self.looping {
            let gaps = inbetween::edit::loop_gaps(&done.result.clips[index]);
            let tracks = &done.result.clips[index].tracks;
            let open: Vec<Value> = gaps
                .iter()
                .filter(|g| g.size > 1e-6)
                .map(|g| {
                    let binding = &tracks[g.track].binding;
                    json!({"target": binding.target, "property": binding.property.name(), "gap": g.size})
                })
                .collect();
            out["loop_gaps"] = Value::Array(open);
        }
        out
    }

    fn text(&self, done: &FileDone) -> String {
        let mut out = String::new();
        for (i, d) in &done.clips {
            let _ = write!(
                out,
                "clip {:?}: {} of {} keys ({} %)",
                done.source.clips[*i].name,
                d.report.keys,
                d.report.source_keys,
                short(d.report.percent())
            );
            if let Some(n) = d.found.worst_node() {
                let name = shown_name(&done.source.skeleton.joints()[n.node].name, Some(n.node));
                let _ =
                    write!(out, ", largest error {} at {name}, {} s", show_length(n.distance), short(n.time));
            }
            out.push('\n');
            for t in d.report.flattened() {
                if let Fate::Flattened { error } = t.fate
                    && error > 0.0
                {
                    let unit = t.unit.symbol();
                    let _ = writeln!(
                        out,
                        "  flattened {} . {} to one key, off by at most {} {unit}",
                        t.target,
                        t.property,
                        short(error)
                    );
                }
            }
            for t in d.report.dropped() {
                let _ =
                    writeln!(out, "  dropped {} . {}: at rest, and no clip moves it", t.target, t.property);
            }
            for note in &d.report.notes {
                let _ = writeln!(out, "  {note}");
            }
            if self.looping {
                for g in inbetween::edit::loop_gaps(&done.result.clips[*i]).iter().filter(|g| g.size > 1e-6) {
                    let binding = &done.result.clips[*i].tracks[g.track].binding;
                    let _ = writeln!(
                        out,
                        "  the loop does not close: {} . {} ends {} from where it began",
                        binding.target,
                        binding.property.name(),
                        short(g.size)
                    );
                }
            }
        }
        let sum = |f: fn(&Done) -> usize| done.clips.iter().map(|(_, d)| f(d)).sum::<usize>();
        let (source_keys, keys) = (sum(|d| d.report.source_keys), sum(|d| d.report.keys));
        let _ = writeln!(
            out,
            "{}: {keys} of {source_keys} keys ({} %), {} bytes of {}; {}",
            done.output.display(),
            short(percent(keys, source_keys)),
            done.size,
            done.source_size,
            if self.keys == KeyKind::Literal {
                "the triplet rule keeps no bound".to_owned()
            } else {
                format!("holds {}, checked on the written file", show_length(done.bound))
            }
        );
        out
    }

    fn page<'a>(&self, done: &'a FileDone) -> FilePage<'a> {
        let clips = done.clips.iter().map(|(i, d)| ClipPage {
            source: &done.source.clips[*i],
            result: &done.result.clips[*i],
            found: &d.found,
            source_keys: d.report.source_keys,
            keys: d.report.keys,
            source_bytes: d.source_bytes,
            bytes: d.bytes,
            remarks: d.report.to_string().lines().skip(1).map(str::to_owned).collect(),
        });
        FilePage {
            input: done.input.display().to_string(),
            output: done.output.display().to_string(),
            bound: done.bound,
            world: self.metric == Metric::World,
            shell: judge_shell(self.shell),
            source_skeleton: &done.source.skeleton,
            result_skeleton: &done.result.skeleton,
            source_size: done.source_size,
            size: done.size,
            clips: clips.collect(),
        }
    }
}

/// Bytes of a file and of the buffers beside it, in which a `.gltf` keeps its keys and meshes.
fn size_with_buffers(input: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let beside = |document: &Value| -> u64 {
        let buffers = document["buffers"].as_array().into_iter().flatten();
        let uris = buffers.filter_map(|b| b["uri"].as_str()).filter(|uri| !uri.starts_with("data:"));
        uris.map(|uri| size(&input.with_file_name(uri))).sum()
    };
    let is_gltf = input.extension().is_some_and(|e| e.eq_ignore_ascii_case("gltf"));
    let document = is_gltf.then(|| std::fs::read(input).ok()).flatten();
    let document = document.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    size(input) + document.as_ref().map_or(0, beside)
}

/// Share of the model's size that `--max-error auto` allows.
const AUTO_SHARE: f64 = 0.01;

/// `part` of `whole` in percent; 100 of nothing.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// What the keys of a clip take as 32-bit floats: each list of times once, a value a key, and two
/// tangents where they are cubic.
pub fn key_bytes(clip: &Clip) -> u64 {
    let mut times = std::collections::BTreeSet::new();
    let mut numbers = 0;
    for curve in clip.tracks.iter().flat_map(|t| t.data.curves()) {
        let bits: Vec<u64> = curve.times().iter().map(|t| t.to_bits()).collect();
        if times.insert(bits) {
            numbers += curve.len();
        }
        let cubic = curve.parts().tangents.is_some();
        numbers += curve.values().len() * if cubic { 3 } else { 1 };
    }
    4 * numbers as u64
}

/// The watched points, for the sentence in a report.
pub fn shell_words(shell: metric::Shell) -> String {
    match shell {
        metric::Shell::Fixed(0.0) => "the origin of every node".to_owned(),
        metric::Shell::Fixed(m) => {
            format!("the origin of every node and the points {} from it along its axes", show_length(m))
        }
        metric::Shell::Reach { .. } => {
            "the origin of every node and points as far from it as its skin reaches".to_owned()
        }
    }
}
