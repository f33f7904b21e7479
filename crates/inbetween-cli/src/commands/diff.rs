//! `diff` and `check`: how far apart two files' motions are, and whether that is too far.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::compare::{self, Comparison, Measure, TrackDifference};
use inbetween::{Clip, Skeleton, edit, metric};
use inbetween_formats::Import;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::curves;
use crate::input::{ReadArgs, find_clip, shown_name};
use crate::output::{Failure, Outcome, print, print_json, say_notes, write_file};
use crate::picture::panel::{Panel, stack};
use crate::picture::svg::Svg;
use crate::progress::Progress;
use crate::units::{self, Shell, short, show_length};

const EXAMPLES: &str = "\
Examples:
  inbetween diff before.glb after.glb
  inbetween diff before.fbx after.glb --max-error 2mm --json

Distances are those of every node's origin, and of points --shell away from it along its axes, in
the world, at every key of either file and every midpoint between neighbouring keys. Clips that
begin at different times are laid start on start. With --max-error the command ends with exit code 1 if a distance is larger.";

const CHECK_EXAMPLES: &str = "\
Examples:
  inbetween check golden/walk.glb build/walk.glb --max-error 2mm
  inbetween check a.glb b.glb --max-error 1mm --picture worst.svg

For a build: a line if all is well, else the clip, node, time and distance, and exit code 1.";

/// Show how far apart the motions of two files are
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    #[command(flatten)]
    files: Files,
    /// The largest distance that is allowed; exit code 1 beyond it
    #[arg(long, value_name = "LENGTH", value_parser = units::length)]
    max_error: Option<f64>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// Check that two files' motions are the same within a length, for builds
#[derive(Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    #[command(flatten)]
    files: Files,
    /// The largest distance that is allowed
    #[arg(long, value_name = "LENGTH", value_parser = units::length)]
    max_error: f64,
    /// Where it fails, draw the worst tracks into this SVG
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// What is compared, and how.
#[derive(Args)]
struct Files {
    /// The file as it was
    a: PathBuf,
    /// The file as it is
    b: PathBuf,
    /// Only this clip, by name or number in the first file
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Option<String>,
    /// Distance from each node of the points that are compared too; 0 for origins only, auto for
    /// as far as its skin reaches
    #[arg(long, value_name = "LENGTH", default_value = "3cm", value_parser = units::shell)]
    shell: Shell,
    #[command(flatten)]
    read: ReadArgs,
}

/// A clip of both files.
struct Pair {
    first: usize,
    second: usize,
    found: Comparison,
}

/// Two files, compared.
struct Compared {
    a: Import,
    b: Import,
    pairs: Vec<Pair>,
    /// Clips that only one file has.
    only_a: Vec<usize>,
    only_b: Vec<usize>,
}

/// How the library takes a shell as typed.
pub fn judge_shell(shell: Shell) -> metric::Shell {
    match shell {
        Shell::Metres(m) => metric::Shell::Fixed(m),
        Shell::Skin => metric::Shell::Reach { otherwise: metric::SHELL_M },
    }
}

impl Files {
    fn compare(&self) -> Result<Compared, Failure> {
        let (a, b) = (self.read.read(&self.a)?, self.read.read(&self.b)?);
        for (file, import) in [(&self.a, &a), (&self.b, &b)] {
            say_notes(&file.display().to_string(), &import.notes, false);
        }
        let (pairs, mut only_a, only_b) = pair_clips(&a.clips, &b.clips);
        let mut chosen = pairs;
        if let Some(wanted) = &self.clip {
            let index = find_clip(&a.clips, wanted, &self.a)?;
            chosen.retain(|p| p.0 == index);
            only_a.retain(|i| *i == index);
        }
        let bar = Progress::new(chosen.len(), "comparing");
        let shell = judge_shell(self.shell);
        let pairs = chosen
            .par_iter()
            .map(|&(first, second)| {
                let (mut x, mut y) = (Cow::Borrowed(&a.clips[first]), Cow::Borrowed(&b.clips[second]));
                // glTF knows no time before 0: a clip that began there was moved to begin at 0.
                if x.start() < 0.0 && y.start() == 0.0 {
                    x = Cow::Owned(edit::rebase_to_zero(&x));
                } else if y.start() < 0.0 && x.start() == 0.0 {
                    y = Cow::Owned(edit::rebase_to_zero(&y));
                }
                let found = compare::compare((&x, &a.skeleton), (&y, &b.skeleton), shell);
                bar.step();
                Pair { first, second, found }
            })
            .collect();
        Ok(Compared { a, b, pairs, only_a, only_b: if self.clip.is_some() { Vec::new() } else { only_b } })
    }
}

/// True if two clips last as long, or end together where one begins at 0 only because its format
/// (glTF) knows no later beginning and holds the first pose until then.
pub fn same_length(a: &Clip, b: &Clip) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-4;
    let held = |from: &Clip, to: &Clip| from.start() == 0.0 && to.start() > 0.0 && near(from.end(), to.end());
    near(a.duration(), b.duration()) || held(a, b) || held(b, a)
}

/// Clips that belong together: those of one name if each file has one of it, else in order.
fn pair_clips(a: &[Clip], b: &[Clip]) -> (Vec<(usize, usize)>, Vec<usize>, Vec<usize>) {
    let single = |clips: &[Clip], name: &str| clips.iter().filter(|c| c.name == name).count() == 1;
    let mut free_b = vec![true; b.len()];
    let mut pairs = Vec::new();
    let mut left = Vec::new();
    for (i, clip) in a.iter().enumerate() {
        let found = (0..b.len()).find(|&k| b[k].name == clip.name);
        match found {
            Some(k) if single(a, &clip.name) && single(b, &clip.name) => {
                free_b[k] = false;
                pairs.push((i, k));
            }
            _ => left.push(i),
        }
    }
    // What is left goes together in order where the name is the same, or where only names differ.
    let mut only_a = Vec::new();
    let renamed = left.len() == free_b.iter().filter(|f| **f).count();
    for i in left {
        let next = (0..b.len()).find(|&k| free_b[k] && (renamed || b[k].name == a[i].name));
        match next {
            Some(k) => {
                free_b[k] = false;
                pairs.push((i, k));
            }
            None => only_a.push(i),
        }
    }
    pairs.sort_unstable();
    (pairs, only_a, (0..b.len()).filter(|&k| free_b[k]).collect())
}

/// The unit a track's difference is in.
pub fn unit_of(measure: Measure) -> &'static str {
    match measure {
        Measure::Metres => "m",
        Measure::Radians => "rad",
        Measure::Own => "",
    }
}

/// A track's difference in words, such as `2 deg`.
fn show_size(track: &TrackDifference) -> String {
    match track.measure {
        Measure::Metres => show_length(track.size),
        Measure::Radians => format!("{} deg", short(track.size.to_degrees())),
        Measure::Own => short(track.size),
    }
}

impl Compared {
    /// The node that is farthest off, of all clips.
    fn worst(&self) -> Option<(&Pair, &compare::NodeDifference)> {
        self.pairs.iter().filter_map(|p| p.found.worst_node().map(|n| (p, n))).fold(
            None,
            |worst: Option<(&Pair, &compare::NodeDifference)>, w| match worst {
                Some(x) if w.1.distance <= x.1.distance => Some(x),
                _ => Some(w),
            },
        )
    }

    /// What does not hold under `bound`, in words.
    fn objections(&self, bound: f64) -> Vec<String> {
        let mut out = Vec::new();
        for (clips, only, which) in
            [(&self.a.clips, &self.only_a, "first"), (&self.b.clips, &self.only_b, "second")]
        {
            for &i in only {
                out.push(format!("clip {:?} is only in the {which} file", clips[i].name));
            }
        }
        for pair in &self.pairs {
            let (a, b) = (&self.a.clips[pair.first], &self.b.clips[pair.second]);
            if let Some(n) = pair.found.worst_node()
                && n.distance > bound
            {
                out.push(format!(
                    "clip {:?}: {} is {} off at {} s, more than {}",
                    a.name,
                    node_name(&self.a.skeleton, n.node),
                    show_length(n.distance),
                    short(n.time),
                    show_length(bound)
                ));
            }
            for &node in &pair.found.missing_nodes {
                let name = node_name(&self.a.skeleton, node);
                out.push(format!("clip {:?}: node {name} is gone", a.name));
            }
            if !same_length(a, b) {
                out.push(format!(
                    "clip {:?} lasts {} s in the first file and {} s in the second",
                    a.name,
                    short(a.duration()),
                    short(b.duration())
                ));
            }
            // What moves no node has no length; a step that differs is a difference of any size.
            for t in pair.found.tracks.iter().filter(|t| t.stepped && t.size > 1e-6) {
                out.push(format!(
                    "clip {:?}: the steps of {} . {} differ at {} s",
                    a.name,
                    shown_name(&t.target, t.node),
                    t.property.name(),
                    short(t.time)
                ));
            }
        }
        out
    }

    fn document(&self, files: &Files, bound: Option<f64>) -> Value {
        let clips: Vec<Value> = self.pairs.iter().map(|p| self.pair_document(p)).collect();
        let names =
            |clips: &[Clip], only: &[usize]| only.iter().map(|&i| clips[i].name.clone()).collect::<Vec<_>>();
        let mut document = json!({
            "a": files.a, "b": files.b, "clips": clips,
            "only_in_a": names(&self.a.clips, &self.only_a),
            "only_in_b": names(&self.b.clips, &self.only_b),
        });
        if let Some((pair, n)) = self.worst() {
            document["worst"] = json!({
                "clip": self.a.clips[pair.first].name, "target": node_name(&self.a.skeleton, n.node),
                "time": n.time, "value": n.distance, "unit": "m",
            });
        }
        if let Some(bound) = bound {
            let objections = self.objections(bound);
            document["bound"] = json!(bound);
            document["holds"] = json!(objections.is_empty());
            document["objections"] = json!(objections);
        }
        document
    }

    fn pair_document(&self, pair: &Pair) -> Value {
        let (a, b) = (&self.a.clips[pair.first], &self.b.clips[pair.second]);
        let track = |t: &TrackDifference| {
            let mut out = json!({
                "target": shown_name(&t.target, t.node), "property": t.property.name(),
                "value": t.size, "unit": unit_of(t.measure), "time": t.time,
            });
            if t.measure == Measure::Radians {
                out["deg"] = json!(t.size.to_degrees());
            }
            if t.first.is_none() || t.second.is_none() {
                out["only_in"] = json!(if t.first.is_some() { "a" } else { "b" });
            }
            out
        };
        let mut out = json!({
            "name": a.name, "times": pair.found.times,
            "duration_a": a.duration(), "duration_b": b.duration(),
            "keys_a": a.key_count(), "keys_b": b.key_count(),
        });
        if b.name != a.name {
            out["name_b"] = json!(b.name);
        }
        if let Some(n) = pair.found.worst_node() {
            let name = node_name(&self.a.skeleton, n.node);
            out["worst"] = json!({"target": name, "time": n.time, "value": n.distance, "unit": "m"});
        }
        let worst = worst_tracks(&pair.found);
        out["worst_track"] = worst.first().map_or(Value::Null, |t| track(t));
        out["tracks"] = Value::Array(pair.found.tracks.iter().map(track).collect());
        if !pair.found.missing_nodes.is_empty() {
            let names = pair.found.missing_nodes.iter().map(|&n| node_name(&self.a.skeleton, n));
            out["missing_nodes"] = json!(names.collect::<Vec<_>>());
        }
        out
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for pair in &self.pairs {
            let clip = &self.a.clips[pair.first];
            let _ = write!(out, "clip {:?}: ", clip.name);
            match pair.found.worst_node() {
                Some(n) if n.distance > 0.0 => {
                    let name = node_name(&self.a.skeleton, n.node);
                    let _ = writeln!(out, "{name} is {} off at {} s", show_length(n.distance), short(n.time));
                }
                _ => out.push_str("every node is in the same place\n"),
            }
            let worst = worst_tracks(&pair.found);
            for t in worst.iter().filter(|t| t.size > 0.0).take(10) {
                let name = shown_name(&t.target, t.node);
                let only = match (t.first, t.second) {
                    (None, _) => ", only in the second file",
                    (_, None) => ", only in the first file",
                    _ => "",
                };
                let _ = writeln!(
                    out,
                    "  {name} . {}: {} at {} s{only}",
                    t.property.name(),
                    show_size(t),
                    short(t.time)
                );
            }
            let same = pair.found.tracks.iter().filter(|t| t.size == 0.0).count();
            let _ = writeln!(out, "  {same} of {} tracks are the same", pair.found.tracks.len());
        }
        for (clips, only, which) in
            [(&self.a.clips, &self.only_a, "first"), (&self.b.clips, &self.only_b, "second")]
        {
            for &i in only {
                let _ = writeln!(out, "clip {:?} is only in the {which} file", clips[i].name);
            }
        }
        out
    }

    /// Panels of the tracks that differ most in the clip that is farthest off.
    fn panels(&self) -> Vec<Panel> {
        let Some((pair, _)) = self.worst() else { return Vec::new() };
        let (a, b) = (&self.a.clips[pair.first], &self.b.clips[pair.second]);
        worst_tracks(&pair.found)
            .iter()
            .filter(|t| t.size > 0.0)
            .filter_map(|t| Some((t.first?, t.second?)))
            .take(6)
            .map(|(i, k)| curves::panel(b, &b.tracks[k], Some(&a.tracks[i])))
            .collect()
    }
}

/// Name of a node as shown.
fn node_name(skeleton: &Skeleton, node: usize) -> String {
    shown_name(&skeleton.joints()[node].name, Some(node))
}

/// Tracks by how far off they are: a radian weighs like a metre, as at the end of a limb.
fn worst_tracks(found: &Comparison) -> Vec<&TrackDifference> {
    let mut tracks: Vec<&TrackDifference> = found.tracks.iter().collect();
    tracks.sort_by(|x, y| y.size.total_cmp(&x.size));
    tracks
}

impl Diff {
    /// Prints the differences; fails if one is too large.
    pub fn run(self) -> Outcome {
        let compared = self.files.compare()?;
        if self.json {
            print_json(&compared.document(&self.files, self.max_error))?;
        } else {
            print(&compared.text())?;
        }
        match self.max_error.map(|bound| compared.objections(bound)) {
            Some(objections) if !objections.is_empty() => Err(Failure::Check(objections.join("\n"))),
            _ => Ok(()),
        }
    }
}

impl Check {
    /// Says whether the motions are the same; draws where they are not.
    pub fn run(self) -> Outcome {
        let compared = self.files.compare()?;
        let objections = compared.objections(self.max_error);
        if self.json {
            print_json(&compared.document(&self.files, Some(self.max_error)))?;
        }
        if objections.is_empty() {
            if !self.json {
                let largest = compared.worst().map_or(0.0, |w| w.1.distance);
                print(&format!(
                    "the same within {}: largest distance {} in {} clips\n",
                    show_length(self.max_error),
                    show_length(largest),
                    compared.pairs.len()
                ))?;
            }
            return Ok(());
        }
        if let Some(path) = &self.picture {
            let panels = compared.panels();
            let heading = format!("{} and {}", self.files.a.display(), self.files.b.display());
            let mut svg = Svg::new(900.0, stack(&panels, &heading, 900.0, None));
            stack(&panels, &heading, 900.0, Some(&mut svg));
            let inputs: [&Path; 2] = [&self.files.a, &self.files.b];
            write_file(path, svg.document(&heading).as_bytes(), &inputs)?;
        }
        Err(Failure::Check(objections.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_are_paired_by_name_and_renamed_ones_in_order() {
        let clips =
            |names: &[&str]| names.iter().map(|n| Clip::new(*n, 0.0, 1.0).unwrap()).collect::<Vec<_>>();
        let (pairs, only_a, only_b) = pair_clips(&clips(&["walk", "run"]), &clips(&["run", "walk", "jump"]));
        assert_eq!((pairs, only_a, only_b), (vec![(0, 1), (1, 0)], vec![], vec![2]));
        let (pairs, only_a, only_b) = pair_clips(&clips(&["", ""]), &clips(&["", ""]));
        assert_eq!((pairs, only_a, only_b), (vec![(0, 0), (1, 1)], vec![], vec![]));
        let (pairs, ..) = pair_clips(&clips(&["Take 001"]), &clips(&["take"]));
        assert_eq!(pairs, vec![(0, 0)]);
    }
}
