//! `sample`: what the tracks or the nodes of a clip are at given times.

use std::path::PathBuf;

use clap::Args;
use inbetween::pose::decompose;
use inbetween::sample::Frames;
use inbetween::{Clip, FrameRate, LocalPose, ModelPose, Property, Skeleton, Track, TrackMask};
use serde_json::{Value, json};

use crate::input::{ReadArgs, TargetChoice, one_clip, shown_name};
use crate::output::{Failure, Outcome, print, say_notes};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  inbetween sample Fox.glb --clip Survey --at 0,0.5,1 --target b_Head_05
  inbetween sample walk.fbx --fps 30 --csv > walk.csv
  inbetween sample walk.bvh --at 0.25 --world --file-units --json

Without --world: the tracks of the clip, a rotation as quaternion x, y, z, w, lengths in metres.
With --world: translation, rotation and scale in the world of every node. Before the first key
the first value is held, after the last the last.";

/// Print values of tracks or nodes at given times
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Sample {
    /// File to read
    file: PathBuf,
    /// Clip, by name or by number from 0 (needed if there are several)
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Option<String>,
    /// Only this node or target; '#12' is node 12
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    target: Option<String>,
    /// Only this property, such as translation or light.intensity
    #[arg(long, value_name = "NAME")]
    property: Option<String>,
    /// Times in seconds on the clip's own clock, separated by commas
    #[arg(long, value_name = "T,T,...", value_delimiter = ',', value_parser = units::seconds,
        allow_hyphen_values = true, required_unless_present = "fps", conflicts_with = "fps")]
    at: Vec<f64>,
    /// From the clip's start to its end at this rate (30, 29.97, 30000/1001); the end is included
    #[arg(long, value_name = "R", value_parser = rate)]
    fps: Option<FrameRate>,
    /// Every node in the world instead of the tracks
    #[arg(long)]
    world: bool,
    /// Units and axes as the file has them, not metres and +Y up
    #[arg(long)]
    file_units: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a table: a column a number, a row a time
    #[arg(long)]
    csv: bool,
}

/// Reads a frame rate as typed.
///
/// # Errors
/// If it is none.
pub fn rate(text: &str) -> Result<FrameRate, String> {
    FrameRate::parse(text).map_err(|e| e.to_string())
}

/// One column group: a property of a target and its rows.
struct Sampled {
    target: String,
    node: Option<usize>,
    property: String,
    path: Option<String>,
    rows: Vec<Vec<f64>>,
}

impl Sample {
    /// Prints the values.
    pub fn run(self) -> Outcome {
        let import = self.read.read_as(&self.file, self.file_units)?;
        say_notes(&self.file.display().to_string(), &import.notes, false);
        let clip = &import.clips[one_clip(&import.clips, self.clip.as_deref(), &self.file)?];
        let times = match self.fps {
            Some(rate) => Frames::new(rate, clip.start(), clip.end())
                .map_err(|e| Failure::wrong(format!("{}: {e}", self.file.display())))?
                .times(),
            None => self.at.clone(),
        };
        let choice = self
            .target
            .as_deref()
            .map(|t| TargetChoice::find(t, &import.skeleton, &clip.tracks, &self.file))
            .transpose()?;
        let mut sampled = if self.world {
            world(&import.skeleton, clip, &times, choice.as_ref())
        } else {
            tracks(&import.skeleton, clip, &times, choice.as_ref())
        };
        if let Some(property) = &self.property {
            sampled.retain(|s| s.property == *property || s.path.as_deref() == Some(property));
            if sampled.is_empty() {
                return Err(Failure::wrong(format!(
                    "{}: clip {:?} has no {property:?} track there; `inbetween info` lists the tracks",
                    self.file.display(),
                    clip.name
                )));
            }
        }
        if self.csv {
            return print(&table(&times, &sampled));
        }
        let document = document(clip, &times, &sampled);
        if self.json { print(&format!("{document}\n")) } else { print(&listing(clip, &times, &sampled)) }
    }
}

/// True where the node's own transform is not the bare track value, because it has pivots.
fn has_pivot(skeleton: &Skeleton, track: &Track) -> bool {
    let moves =
        matches!(track.binding.property, Property::Translation | Property::Rotation | Property::Scale);
    moves && track.binding.node.is_some_and(|n| skeleton.joints().get(n).is_some_and(|j| j.pivot.is_some()))
}

fn tracks(skeleton: &Skeleton, clip: &Clip, times: &[f64], choice: Option<&TargetChoice>) -> Vec<Sampled> {
    let mut chosen: Vec<&Track> =
        clip.tracks.iter().filter(|t| t.enabled && choice.is_none_or(|c| c.is_track(t))).collect();
    // Nodes in the order of the file, so that two of one name can be told apart by their order.
    chosen.sort_by_key(|t| t.binding.node.unwrap_or(usize::MAX));
    let mut sampled: Vec<Sampled> = chosen
        .iter()
        .map(|t| Sampled {
            target: shown_name(&t.binding.target, t.binding.node),
            node: t.binding.node,
            property: t.binding.property.name().to_owned(),
            path: t.binding.path.clone(),
            rows: times.iter().map(|&time| t.value_at(time)).collect(),
        })
        .collect();
    if chosen.iter().any(|t| has_pivot(skeleton, t)) {
        let mut pose = LocalPose::default();
        for (i, &time) in times.iter().enumerate() {
            pose.sample(clip, skeleton, time, &TrackMask::all());
            for (track, out) in chosen.iter().zip(&mut sampled) {
                if has_pivot(skeleton, track)
                    && track.binding.property == Property::Translation
                    && let Some(n) = track.binding.node
                {
                    out.rows[i] = pose.joints[n].translation.to_array().to_vec();
                }
            }
        }
    }
    sampled
}

fn world(skeleton: &Skeleton, clip: &Clip, times: &[f64], choice: Option<&TargetChoice>) -> Vec<Sampled> {
    let nodes: Vec<usize> = (0..skeleton.len()).filter(|&n| choice.is_none_or(|c| c.is_node(n))).collect();
    let mut sampled: Vec<Sampled> = nodes
        .iter()
        .flat_map(|&n| {
            ["translation", "rotation", "scale"].map(|property| Sampled {
                target: shown_name(&skeleton.joints()[n].name, Some(n)),
                node: Some(n),
                property: property.to_owned(),
                path: None,
                rows: Vec::with_capacity(times.len()),
            })
        })
        .collect();
    let (mut local, mut model) = (LocalPose::default(), ModelPose::default());
    for &time in times {
        local.sample(clip, skeleton, time, &TrackMask::all());
        model.update(skeleton, &local);
        for (out, &n) in sampled.chunks_exact_mut(3).zip(&nodes) {
            let (t, _) = decompose(&model.joints[n]);
            out[0].rows.push(t.translation.to_array().to_vec());
            out[1].rows.push(t.rotation.to_array().to_vec());
            out[2].rows.push(t.scale.to_array().to_vec());
        }
    }
    sampled
}

fn document(clip: &Clip, times: &[f64], sampled: &[Sampled]) -> Value {
    let tracks: Vec<Value> = sampled
        .iter()
        .map(|s| {
            let mut track = json!({"target": s.target, "property": s.property, "values": s.rows});
            if let Some(node) = s.node {
                track["node"] = json!(node);
            }
            if let Some(path) = &s.path {
                track["path"] = json!(path);
            }
            track
        })
        .collect();
    json!({"clip": clip.name, "times": times, "tracks": tracks})
}

/// Names of a value's components, as columns carry them.
fn components(width: usize, property: &str) -> Vec<String> {
    match (width, property) {
        (1, _) => vec![String::new()],
        (2..=4, p) if p != "weights" => {
            ["x", "y", "z", "w"][..width].iter().map(|c| format!(".{c}")).collect()
        }
        _ => (0..width).map(|i| format!(".{i}")).collect(),
    }
}

/// A field of a table as RFC 4180 has it.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn table(times: &[f64], sampled: &[Sampled]) -> String {
    let mut out = String::from("time");
    for s in sampled {
        for c in components(s.rows.first().map_or(1, Vec::len), &s.property) {
            out.push(',');
            out.push_str(&field(&format!("{}.{}{c}", s.target, s.property)));
        }
    }
    out.push_str("\r\n");
    for (i, time) in times.iter().enumerate() {
        out.push_str(&time.to_string());
        for value in sampled.iter().flat_map(|s| &s.rows[i]) {
            out.push(',');
            out.push_str(&value.to_string());
        }
        out.push_str("\r\n");
    }
    out
}

fn listing(clip: &Clip, times: &[f64], sampled: &[Sampled]) -> String {
    let mut out = format!("clip {:?}\n", clip.name);
    for s in sampled {
        out.push_str(&format!("{} . {}\n", s.target, s.property));
        for (time, row) in times.iter().zip(&s.rows) {
            let row: Vec<String> = row.iter().map(|v| format!("{v:.6}")).collect();
            out.push_str(&format!("  {:>10} s  {}\n", units::short(*time), row.join("  ")));
        }
    }
    out
}
