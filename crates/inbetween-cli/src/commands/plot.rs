//! `plot`: curves with their keys, as SVG or PNG; two versions over each other, the error beneath.

use std::path::{Path, PathBuf};

use clap::Args;
use inbetween::compare;
use inbetween::metric::Shell;
use inbetween::{Clip, Track};
use inbetween_formats::camera::CameraFormat;

use super::camera::{self, SourceArgs};
use crate::curves;
use crate::input::{ReadArgs, TargetChoice, find_clip, one_clip};
use crate::output::{Failure, Outcome, print, say, say_notes, write_file};
use crate::picture::panel::{Panel, stack};
use crate::picture::png::Png;
use crate::picture::svg::Svg;

const EXAMPLES: &str = "\
Examples:
  inbetween plot path.json -o path.svg
  inbetween plot Fox.glb --clip Survey --target b_Head_05 -o head.svg
  inbetween plot Fox.glb --clip Survey --against reduced.glb -o worst.png

A dot is a key. With --against FILE: the first file's curve in grey, the other's over it in colour
with its keys, the difference beneath; the tracks that differ most come first. A camera path is drawn
from above and from the side, then its speed, acceleration, turning, field of view, roll and every
other channel over time: as it is flown, over its replay curve in grey.";

/// Width of a picture, pixels.
const WIDTH: f64 = 900.0;

/// Draw curves with their keys
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Plot {
    /// File to read
    file: PathBuf,
    /// Clip, by name or by number from 0 (needed if there are several)
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Option<String>,
    /// Only these nodes or targets; '#12' is node 12
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    target: Vec<String>,
    /// Only this property, such as rotation
    #[arg(long, value_name = "NAME")]
    property: Option<String>,
    /// Another version of the file to draw over the first
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Most tracks to draw
    #[arg(long, value_name = "N", default_value_t = 24)]
    most: usize,
    /// Picture to write: .svg or .png
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
}

/// Whether a file holds a camera path and nothing else; one that cannot be read is told of by the
/// reader.
fn is_camera_path(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|bytes| CameraFormat::of(&bytes, &file.display().to_string()).is_some())
}

impl Plot {
    /// Draws the tracks and writes the picture.
    pub fn run(self) -> Outcome {
        let extension = self.output.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
        if !matches!(extension.as_str(), "svg" | "png") {
            return Err(Failure::wrong(format!(
                "{}: a picture is an .svg or a .png; end the name of -o so",
                self.output.display()
            )));
        }
        if is_camera_path(&self.file) {
            return self.camera(&extension);
        }
        let import = self.read.read(&self.file)?;
        say_notes(&self.file.display().to_string(), &import.notes, false);
        let clip = &import.clips[one_clip(&import.clips, self.clip.as_deref(), &self.file)?];
        let choices: Vec<TargetChoice> = self
            .target
            .iter()
            .map(|t| TargetChoice::find(t, &import.skeleton, &clip.tracks, &self.file))
            .collect::<Result<_, _>>()?;
        let wanted = |t: &Track| {
            (choices.is_empty() || choices.iter().any(|c| c.is_track(t)))
                && self.property.as_deref().is_none_or(|p| t.binding.property.name() == p)
        };
        let (panels, left_out) = match &self.against {
            None => self.alone(clip, &wanted),
            Some(path) => {
                let other = self.read.read(path)?;
                say_notes(&path.display().to_string(), &other.notes, false);
                let named = other.clips.iter().filter(|c| c.name == clip.name).count() == 1;
                let index = match (named, other.clips.len()) {
                    (true, _) => find_clip(&other.clips, &clip.name, path)?,
                    (false, 1) => 0,
                    _ => one_clip(&other.clips, self.clip.as_deref(), path)?,
                };
                let theirs = &other.clips[index];
                let found =
                    compare::compare((clip, &import.skeleton), (theirs, &other.skeleton), Shell::Fixed(0.0));
                let mut pairs: Vec<(f64, usize, usize)> = found
                    .tracks
                    .iter()
                    .filter_map(|t| Some((t.size, t.first?, t.second?)))
                    .filter(|p| wanted(&clip.tracks[p.1]))
                    .collect();
                pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
                let left_out = pairs.len().saturating_sub(self.most);
                let panels = pairs.iter().take(self.most);
                let panels =
                    panels.map(|&(_, i, k)| curves::panel(theirs, &theirs.tracks[k], Some(&clip.tracks[i])));
                (panels.collect(), left_out)
            }
        };
        if panels.is_empty() {
            return Err(Failure::wrong(format!(
                "{}: clip {:?} has no track to draw there; `inbetween info` lists the tracks",
                self.file.display(),
                clip.name
            )));
        }
        let heading = match &self.against {
            None => format!("{} — {}", self.file.display(), clip.name),
            Some(path) => format!("{} and {} — {}", self.file.display(), path.display(), clip.name),
        };
        let height = stack(&panels, &heading, WIDTH, None);
        let bytes = if extension == "svg" {
            let mut svg = Svg::new(WIDTH, height);
            stack(&panels, &heading, WIDTH, Some(&mut svg));
            svg.document(&heading).into_bytes()
        } else {
            let mut png = Png::new(WIDTH, height).map_err(Failure::Wrong)?;
            stack(&panels, &heading, WIDTH, Some(&mut png));
            png.bytes().map_err(Failure::Wrong)?
        };
        let inputs: Vec<&Path> =
            [Some(self.file.as_path()), self.against.as_deref()].into_iter().flatten().collect();
        write_file(&self.output, &bytes, &inputs)?;
        if left_out > 0 {
            say(&format!(
                "{left_out} more tracks are not drawn; --most {} draws them all",
                panels.len() + left_out
            ));
        }
        print(&format!("{}: {} tracks of clip {:?}\n", self.output.display(), panels.len(), clip.name))
    }

    /// The pictures of a camera path.
    fn camera(self, extension: &str) -> Outcome {
        if self.clip.is_some() || !self.target.is_empty() || self.property.is_some() {
            return Err(Failure::wrong(format!(
                "{}: a camera path is drawn whole; leave out --clip, --target and --property",
                self.file.display()
            )));
        }
        let source = |file: &Path| SourceArgs::of(file.to_path_buf(), self.read.clone());
        let bytes = camera::plot(source(&self.file), self.against.as_deref().map(source), extension)?;
        let inputs: Vec<&Path> =
            [Some(self.file.as_path()), self.against.as_deref()].into_iter().flatten().collect();
        write_file(&self.output, &bytes, &inputs)?;
        print(&format!(
            "{}: the camera path from above, from the side and over time\n",
            self.output.display()
        ))
    }

    /// Panels of the tracks that are asked for, those that move first if there are too many.
    fn alone(&self, clip: &Clip, wanted: &dyn Fn(&Track) -> bool) -> (Vec<Panel>, usize) {
        let mut tracks: Vec<&Track> = clip.tracks.iter().filter(|t| wanted(t)).collect();
        if tracks.len() > self.most {
            tracks.sort_by_key(|t| !curves::moves(t, clip));
        }
        let left_out = tracks.len().saturating_sub(self.most);
        (tracks.iter().take(self.most).map(|t| curves::panel(clip, t, None)).collect(), left_out)
    }
}
