//! Opening a camera path, whatever it is kept in.

use std::path::PathBuf;

use clap::Args;
use inbetween::camera::{CameraPath, Smoothing};
use inbetween_formats::camera::{
    CameraFile, CameraFormat, CameraOptions, cameras_of, path_of_clip, read_camera,
};

use super::settings;
use crate::input::{ReadArgs, TargetChoice, one_clip};
use crate::output::{Failure, say_notes};

/// Where a path comes from.
#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// Camera path, or a file with a camera in a clip
    pub file: PathBuf,
    /// Clip of the file, by name or by number from 0 (needed if there are several)
    #[arg(long, value_name = "NAME|INDEX", allow_hyphen_values = true)]
    clip: Option<String>,
    /// Camera node of the file (needed if there are several)
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    camera: Option<String>,
    /// Seconds in one turn of a cutscene
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1)]
    turn: f64,
    #[command(flatten)]
    read: ReadArgs,
}

/// A path that was opened.
pub struct Opened {
    /// The path, flown as its file says, or not smoothed.
    pub path: CameraPath,
    /// How it is smoothed if the call does not say: as its file says, else as the
    /// user's settings say.
    pub smoothing: Smoothing,
    /// What it was kept in.
    pub format: String,
    /// Frame rate the file states.
    pub rate: Option<f64>,
}

impl SourceArgs {
    /// A file with all else as it is unless told otherwise.
    pub fn of(file: PathBuf, read: ReadArgs) -> Self {
        Self { file, clip: None, camera: None, turn: 0.1, read }
    }

    /// Opens the path and says on standard error what had to be assumed.
    ///
    /// # Errors
    /// As the reader says, or if it is not clear which clip or camera is meant.
    pub fn open(&self) -> Result<Opened, Failure> {
        if !(self.turn.is_finite() && self.turn > 0.0) {
            return Err(Failure::wrong(format!("--turn {}: a turn takes a time above zero", self.turn)));
        }
        let name = self.file.display().to_string();
        let bytes =
            std::fs::read(&self.file).map_err(|e| Failure::wrong(format!("{name}: cannot be read: {e}")))?;
        let options = CameraOptions { unit: self.read.unit, turn_s: self.turn };
        let known = CameraFormat::of(&bytes, &name).is_some();
        let (file, format) = if known || inbetween_formats::format_of(&bytes, &name).is_none() {
            let file = read_camera(&bytes, &name, &options)?;
            let format = file.format.name().to_owned();
            (file, format)
        } else {
            self.in_clip()?
        };
        say_notes(&name, &file.notes, true);
        let own = *file.path.smoothing() != Smoothing::default();
        let smoothing = if own { file.path.smoothing().clone() } else { settings::load()? };
        Ok(Opened { path: file.path, smoothing, format, rate: file.rate })
    }

    fn in_clip(&self) -> Result<(CameraFile, String), Failure> {
        let name = self.file.display().to_string();
        let import = self.read.read(&self.file)?;
        say_notes(&name, &import.notes, false);
        let clip = one_clip(&import.clips, self.clip.as_deref(), &self.file)?;
        let tracks = &import.clips[clip].tracks;
        let nodes = cameras_of(&import);
        let names = || {
            let of = |&i: &usize| crate::input::shown_name(&import.skeleton.joints()[i].name, Some(i));
            nodes.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let node = match (&self.camera, &nodes[..]) {
            (Some(wanted), _) => {
                let choice = TargetChoice::find(wanted, &import.skeleton, tracks, &self.file)?;
                (0..import.skeleton.len())
                    .find(|&i| choice.is_node(i))
                    .ok_or_else(|| Failure::wrong(format!("{name}: {wanted:?} is no node")))?
            }
            (None, [one]) => *one,
            (None, []) => {
                return Err(Failure::wrong(format!(
                    "{name}: has no camera; name the node that stands for one with --camera"
                )));
            }
            (None, _) => {
                // Of several cameras the only one that the clip moves is meant.
                let moved: Vec<usize> = nodes
                    .iter()
                    .copied()
                    .filter(|&i| path_of_clip(&import, clip, i, &name).is_ok())
                    .collect();
                match moved[..] {
                    [one] => one,
                    _ => {
                        return Err(Failure::wrong(format!(
                            "{name}: say which camera with --camera; it has {}",
                            names()
                        )));
                    }
                }
            }
        };
        Ok((path_of_clip(&import, clip, node, &name)?, import.format.to_owned()))
    }
}
