//! `info`: what is in a file, without changing it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::playback::root_motion::guess_root;
use inbetween::seam::{Seam, seam};
use inbetween::{Clip, Skeleton, SpanKind, Track, TrackData, Wrap};
use inbetween_codec::{CompressedClip, Library};
use inbetween_formats::{Import, Severity};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::input::{ReadArgs, import_of, is_ibc, read_library, shown_name};
use crate::output::{Failure, Outcome, print, print_json, say};
use crate::progress::Progress;
use crate::units::{short, show_length};

const EXAMPLES: &str = "\
Examples:
  inbetween info Fox.glb
  inbetween info fox.ibc                  with the bound it was made under and what was measured
  inbetween info walk.fbx run.bvh --json";

/// Show nodes, clips, tracks and keys of files
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Info {
    /// Files to look into
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document (an array of them for several files)
    #[arg(long)]
    json: bool,
}

impl Info {
    /// Prints what each file holds; goes on after a file that fails.
    pub fn run(self) -> Outcome {
        let bar = Progress::new(self.files.len(), "reading");
        let results: Vec<Result<(Value, String), Failure>> = self
            .files
            .par_iter()
            .map(|path| {
                let shown = self.one(path);
                bar.step();
                shown
            })
            .collect();
        drop(bar);
        let mut documents = Vec::new();
        let mut wrong = Vec::new();
        for result in results {
            match result {
                Ok((document, text)) => {
                    if !self.json {
                        print(&text)?;
                    }
                    documents.push(document);
                }
                Err(failure) => wrong.push(failure.to_string()),
            }
        }
        if self.json && self.files.len() > 1 {
            print_json(&Value::Array(documents))?;
        } else if self.json
            && let Some(one) = documents.pop()
        {
            print_json(&one)?;
        }
        match wrong.len() {
            0 => Ok(()),
            1 => Err(Failure::Wrong(wrong.remove(0))),
            n => {
                for line in &wrong {
                    say(&format!("inbetween: {line}"));
                }
                Err(Failure::wrong(format!("{n} of {} files could not be read", self.files.len())))
            }
        }
    }
}

impl Info {
    fn one(&self, path: &Path) -> Result<(Value, String), Failure> {
        if !is_ibc(path) {
            let import = self.read.read(path)?;
            return Ok((document(path, &import), text(path, &import, &[])));
        }
        let library = read_library(path)?;
        let import = import_of(&library);
        let packed: Vec<Packed> = library.clips.iter().map(Packed::of).collect();
        let mut json = document(path, &import);
        for (clip, packed) in json["clips"].as_array_mut().into_iter().flatten().zip(&packed) {
            clip["compressed"] = packed.json(&library);
        }
        Ok((json, text(path, &import, &packed)))
    }
}

/// What a compressed clip says about itself.
struct Packed {
    bound: f64,
    measured: f64,
    shell: f64,
    frames: usize,
    bytes: usize,
    closed: bool,
    root: Option<usize>,
}

impl Packed {
    fn of(clip: &CompressedClip<'_>) -> Self {
        Self {
            bound: f64::from(clip.bound()),
            measured: f64::from(clip.measured_error()),
            shell: f64::from(clip.shell()),
            frames: clip.frames(),
            bytes: clip.payload_bytes(),
            closed: clip.is_closed(),
            root: clip.root(),
        }
    }

    fn json(&self, library: &Library<'_>) -> Value {
        let root = self.root.map(|n| shown_name(&library.skeleton.joints()[n].name, Some(n)));
        json!({"bound": self.bound, "measured_error": self.measured, "shell": self.shell, "frames": self.frames,
               "bytes": self.bytes, "closed": self.closed, "root": root})
    }

    fn text(&self, skeleton: &Skeleton) -> String {
        let mut out = format!(
            "    {} frames in {} bytes, made under {}: off by at most {}, {} off each node",
            self.frames,
            self.bytes,
            show_length(self.bound),
            show_length(self.measured),
            show_length(self.shell)
        );
        if self.closed {
            out.push_str("; its last pose is its first");
        }
        if let Some(n) = self.root {
            let _ = write!(out, "; root motion from {}", shown_name(&skeleton.joints()[n].name, Some(n)));
        }
        out.push('\n');
        out
    }
}

/// The word for how a track's keys are joined: that of all its spans, or `mixed`.
pub fn interpolation(track: &Track) -> &'static str {
    let mut found: Option<&'static str> = None;
    for curve in track.data.curves() {
        // The last key's span is what would follow; with a single key it is all there is.
        for i in 0..curve.len().max(2) - 1 {
            let name = match curve.span(i) {
                SpanKind::Step => "step",
                SpanKind::StepNext => "step-next",
                SpanKind::Linear => "linear",
                SpanKind::Hermite => "cubic",
                SpanKind::Bezier => "bezier",
            };
            match found {
                None => found = Some(name),
                Some(before) if before != name => return "mixed",
                Some(_) => {}
            }
        }
    }
    found.unwrap_or("constant")
}

fn document(path: &Path, import: &Import) -> Value {
    let nodes: Vec<Value> = import
        .skeleton
        .joints()
        .iter()
        .map(|j| json!({"name": j.name, "parent": j.parent, "kind": format!("{:?}", j.kind).to_lowercase()}))
        .collect();
    json!({
        "file": path.display().to_string(),
        "format": import.format,
        "unit_m": import.convention.metres_per_unit,
        "nodes": nodes,
        "clips": import.clips.iter().map(|c| clip_document(c, &import.skeleton)).collect::<Vec<_>>(),
        "notes": import.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn wrap_name(wrap: Wrap) -> &'static str {
    match wrap {
        Wrap::Hold => "hold",
        Wrap::Loop => "loop",
        Wrap::PingPong => "ping-pong",
        Wrap::LoopOffset => "loop-offset",
    }
}

fn clip_document(clip: &Clip, skeleton: &Skeleton) -> Value {
    let tracks: Vec<Value> = clip
        .tracks
        .iter()
        .map(|t| {
            let mut track = json!({
                "target": shown_name(&t.binding.target, t.binding.node),
                "property": t.binding.property.name(),
                "interpolation": interpolation(t),
                "keys": t.data.key_count(),
                "node": t.binding.node,
            });
            if let Some(path) = &t.binding.path {
                track["path"] = json!(path);
            }
            if let TrackData::Euler(e) = &t.data {
                track["euler"] = json!(e.terms.iter().map(|(axis, _)| axis.letter()).collect::<String>());
            }
            if !t.enabled {
                track["enabled"] = json!(false);
            }
            track
        })
        .collect();
    json!({
        "name": clip.name,
        "start": clip.start(),
        "end": clip.end(),
        "duration": clip.duration(),
        "rate": clip.rate.map(inbetween::FrameRate::as_f64),
        "rate_ratio": clip.rate.map(|r| r.to_string()),
        "seam": seam_of(clip, skeleton).name(),
        "keys": clip.key_count(),
        "wrap": wrap_name(clip.wrap),
        "additive": clip.additive,
        "markers": clip.markers.iter().map(|m| json!({"time": m.time, "name": m.name})).collect::<Vec<_>>(),
        "tracks": tracks,
    })
}

/// What lies between the clip's end and its start, the way of its root left out.
fn seam_of(clip: &Clip, skeleton: &Skeleton) -> Seam {
    seam(clip, guess_root(clip, skeleton))
}

fn text(path: &Path, import: &Import, packed: &[Packed]) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {}, {} nodes, {} clips, one unit is {}",
        path.display(),
        import.format,
        import.skeleton.len(),
        import.clips.len(),
        show_length(import.convention.metres_per_unit)
    );
    for (i, clip) in import.clips.iter().enumerate() {
        let rate = clip.rate.map_or_else(String::new, |r| format!(", {r} a second"));
        let _ = writeln!(
            out,
            "  clip {i} {:?}: {} s to {} s{rate}, {} tracks, {} keys",
            clip.name,
            short(clip.start()),
            short(clip.end()),
            clip.tracks.len(),
            clip.key_count()
        );
        match seam_of(clip, &import.skeleton) {
            Seam::Closed => out.push_str("    ends where it begins: a loop\n"),
            Seam::Doubled => {
                out.push_str(
                    "    a loop whose first pose comes twice at its end; cut it by a frame (convert --end)\n",
                );
            }
            Seam::OneFrameShort => {
                out.push_str("    a loop that is a frame short of its start; convert --close-loop adds it\n");
            }
            Seam::Still | Seam::Open => {}
        }
        let mut traits = Vec::new();
        if clip.additive {
            traits.push("additive: laid over another pose".to_owned());
        }
        if clip.wrap != Wrap::Hold {
            traits.push(format!("outside its range: {}", wrap_name(clip.wrap)));
        }
        traits.extend(clip.markers.iter().map(|m| format!("{:?} at {} s", m.name, short(m.time))));
        if !traits.is_empty() {
            let _ = writeln!(out, "    {}", traits.join(", "));
        }
        if let Some(p) = packed.get(i) {
            out.push_str(&p.text(&import.skeleton));
        }
        for t in &clip.tracks {
            let _ = writeln!(
                out,
                "    {} . {}  {} keys, {}",
                shown_name(&t.binding.target, t.binding.node),
                t.binding.property.name(),
                t.data.key_count(),
                interpolation(t)
            );
        }
    }
    for note in &import.notes {
        let kind = match note.severity {
            Severity::Info => "note",
            Severity::Repaired => "repaired",
            Severity::Lost => "not kept",
        };
        let _ = writeln!(out, "  {kind}: {note}");
    }
    out
}
