//! `sample`: what the tracks or the nodes of a clip are at given times.

use std::path::PathBuf;

use clap::Args;
use inbetween::pose::decompose;
use inbetween::sample::{Frames, sample_track};
use inbetween::{Clip, FrameRate, LocalPose, ModelPose, Property, Skeleton, Track, TrackMask};
use serde::{Serialize, Serializer};

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

/// One column group: a property of a target and its values, `width` numbers a time.
#[derive(Serialize)]
struct Sampled {
    target: String,
    property: String,
    #[serde(serialize_with = "rows")]
    values: (usize, Vec<f64>),
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

impl Sampled {
    /// The numbers at the time of this number.
    fn row(&self, i: usize) -> &[f64] {
        let (width, values) = &self.values;
        &values[i * width..(i + 1) * width]
    }
}

/// A list for each time.
fn rows<S: Serializer>((width, values): &(usize, Vec<f64>), to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.chunks_exact((*width).max(1)))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    clip: &'a str,
    times: &'a [f64],
    tracks: &'a [Sampled],
}

impl Sample {
    /// Prints the values.
    pub fn run(self) -> Outcome {
        let import = self.read.read_as(&self.file, self.file_units)?;
        say_notes(&self.file.display().to_string(), &import.notes, false);
        let clip = &import.clips[one_clip(&import.clips, self.clip.as_deref(), &self.file)?];
        let choice = self
            .target
            .as_deref()
            .map(|t| TargetChoice::find(t, &import.skeleton, &clip.tracks, &self.file))
            .transpose()?;
        let wanted = |property: &str, path: Option<&str>| {
            self.property.as_deref().is_none_or(|p| p == property || path == Some(p))
        };
        let mut chosen: Vec<&Track> = clip
            .tracks
            .iter()
            .filter(|t| t.enabled && choice.as_ref().is_none_or(|c| c.is_track(t)))
            .filter(|t| wanted(t.binding.property.name(), t.binding.path.as_deref()))
            .collect();
        // Nodes in the order of the file, so that two of one name can be told apart by their order.
        chosen.sort_by_key(|t| t.binding.node.unwrap_or(usize::MAX));
        let nodes: Vec<usize> =
            (0..import.skeleton.len()).filter(|&n| choice.as_ref().is_none_or(|c| c.is_node(n))).collect();
        let parts: Vec<usize> = (0..3).filter(|&k| wanted(PLACE[k].0, None)).collect();
        if let Some(property) = &self.property
            && (if self.world { nodes.is_empty() || parts.is_empty() } else { chosen.is_empty() })
        {
            return Err(Failure::wrong(format!(
                "{}: clip {:?} has no {property:?} track there; `inbetween info` lists the tracks",
                self.file.display(),
                clip.name
            )));
        }
        let numbers = if self.world {
            nodes.len() * parts.iter().map(|&k| PLACE[k].1).sum::<usize>()
        } else {
            chosen.iter().map(|t| t.data.kind().width()).sum()
        };
        let times = match self.fps {
            Some(rate) => Frames::new(rate, clip.start(), clip.end())
                .and_then(|frames| frames.times_for(numbers))
                .map_err(|e| Failure::wrong(format!("{}: {e}", self.file.display())))?,
            None => self.at.clone(),
        };
        let sampled = if self.world {
            world(&import.skeleton, clip, &times, (&nodes, &parts))
        } else {
            tracks(&import.skeleton, clip, &times, &chosen)
        };
        if self.csv {
            return print(&table(&times, &sampled));
        }
        if self.json {
            let document = Document { clip: &clip.name, times: &times, tracks: &sampled };
            return print(&format!("{}\n", json(&document)?));
        }
        print(&listing(clip, &times, &sampled))
    }
}

/// The document on one line.
fn json(document: &Document<'_>) -> Result<String, Failure> {
    serde_json::to_string(document).map_err(|e| Failure::wrong(format!("the values cannot be printed: {e}")))
}

/// What places a node in the world, and its numbers.
const PLACE: [(&str, usize); 3] = [("translation", 3), ("rotation", 4), ("scale", 3)];

/// True where the node's own transform is not the bare track value, because it has pivots.
fn has_pivot(skeleton: &Skeleton, track: &Track) -> bool {
    let moves =
        matches!(track.binding.property, Property::Translation | Property::Rotation | Property::Scale);
    moves && track.binding.node.is_some_and(|n| skeleton.joints().get(n).is_some_and(|j| j.pivot.is_some()))
}

fn tracks(skeleton: &Skeleton, clip: &Clip, times: &[f64], chosen: &[&Track]) -> Vec<Sampled> {
    let mut sampled: Vec<Sampled> = chosen
        .iter()
        .map(|t| Sampled {
            target: shown_name(&t.binding.target, t.binding.node),
            property: t.binding.property.name().to_owned(),
            values: (t.data.kind().width(), sample_track(&t.data, times)),
            node: t.binding.node,
            path: t.binding.path.clone(),
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
                    out.values.1[3 * i..3 * i + 3].copy_from_slice(&pose.joints[n].translation.to_array());
                }
            }
        }
    }
    sampled
}

/// Where the nodes are in the world, these parts of [`PLACE`].
fn world(
    skeleton: &Skeleton,
    clip: &Clip,
    times: &[f64],
    (nodes, parts): (&[usize], &[usize]),
) -> Vec<Sampled> {
    let mut sampled: Vec<Sampled> = nodes
        .iter()
        .flat_map(|&n| parts.iter().map(move |&part| (n, PLACE[part])))
        .map(|(n, (property, width))| Sampled {
            target: shown_name(&skeleton.joints()[n].name, Some(n)),
            property: property.to_owned(),
            values: (width, Vec::with_capacity(times.len() * width)),
            node: Some(n),
            path: None,
        })
        .collect();
    let (mut local, mut model) = (LocalPose::default(), ModelPose::default());
    for &time in times {
        local.sample(clip, skeleton, time, &TrackMask::all());
        model.update(skeleton, &local);
        for (out, &n) in sampled.chunks_exact_mut(parts.len()).zip(nodes) {
            let (t, _) = decompose(&model.joints[n]);
            for (out, &part) in out.iter_mut().zip(parts) {
                match part {
                    0 => out.values.1.extend(t.translation.to_array()),
                    1 => out.values.1.extend(t.rotation.to_array()),
                    _ => out.values.1.extend(t.scale.to_array()),
                }
            }
        }
    }
    sampled
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
        for c in components(s.values.0, &s.property) {
            out.push(',');
            out.push_str(&field(&format!("{}.{}{c}", s.target, s.property)));
        }
    }
    out.push_str("\r\n");
    for (i, time) in times.iter().enumerate() {
        out.push_str(&time.to_string());
        for value in sampled.iter().flat_map(|s| s.row(i)) {
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
        for (i, time) in times.iter().enumerate() {
            let row: Vec<String> = s.row(i).iter().map(|v| format!("{v:.6}")).collect();
            out.push_str(&format!("  {:>10} s  {}\n", units::short(*time), row.join("  ")));
        }
    }
    out
}
