//! `info`: what is in a file, without changing it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::playback::root_motion::guess_root;
use inbetween::seam::{Seam, seam};
use inbetween::{Clip, Skeleton, SpanKind, Track, TrackData};
use inbetween_formats::{Import, Severity};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::input::{ReadArgs, shown_name};
use crate::output::{Failure, Outcome, print, print_json, say};
use crate::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  inbetween info Fox.glb
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
                let import = self.read.read(path);
                bar.step();
                let import = import?;
                Ok((document(path, &import), text(path, &import)))
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
        "tracks": tracks,
    })
}

/// What lies between the clip's end and its start, the way of its root left out.
fn seam_of(clip: &Clip, skeleton: &Skeleton) -> Seam {
    seam(clip, guess_root(clip, skeleton))
}

fn text(path: &Path, import: &Import) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {}, {} nodes, {} clips, one unit is {}",
        path.display(),
        import.format,
        import.skeleton.len(),
        import.clips.len(),
        crate::units::show_length(import.convention.metres_per_unit)
    );
    for (i, clip) in import.clips.iter().enumerate() {
        let rate = clip.rate.map_or_else(String::new, |r| format!(", {r} a second"));
        let _ = writeln!(
            out,
            "  clip {i} {:?}: {} s to {} s{rate}, {} tracks, {} keys",
            clip.name,
            crate::units::short(clip.start()),
            crate::units::short(clip.end()),
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
