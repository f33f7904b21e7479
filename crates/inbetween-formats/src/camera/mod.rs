//! Camera paths in files: the project's own JSON, HLAE camera paths, nerfstudio, TUM
//! trajectories, CSV, Settlers cutscenes, and cameras of clips.
//!
//! The idea: every reader gives a [`CameraPath`] in the house's units and axes
//! (metres, radians, +Y up, the camera looking along −z) with notes about what it
//! had to assume; every writer takes a list of [`Shot`]s, which are the path at its
//! keys, at a frame rate, or on another clock, so that what is exported is what is
//! played. Only our own JSON also keeps what a path is made of: modes, smoothing,
//! what it follows and looks at.

mod clip;
mod cutscene;
mod hlae;
mod json;
mod nerfstudio;
mod table;
mod text;
mod tum;

pub use clip::{cameras_of, path_of_clip, to_import};

use inbetween::camera::{CameraAngles, CameraError, CameraKey, CameraPath, CameraPose, Channel, Retimed};
use inbetween::spline::nearest_turn;

use crate::{FormatError, Note, Severity};
use text::Place;

/// A kind of file that holds a camera path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CameraFormat {
    /// The project's own JSON.
    Json,
    /// HLAE `campath` XML (Source and GoldSrc games).
    Hlae,
    /// nerfstudio `camera_path.json`.
    Nerfstudio,
    /// TUM trajectory text: time, place, quaternion.
    Tum,
    /// Comma-separated values with a header.
    Csv,
    /// Settlers cutscene XML; read only.
    Cutscene,
}

impl CameraFormat {
    /// All of them, with the name each goes by.
    pub const ALL: [(CameraFormat, &'static str); 6] = [
        (Self::Json, "json"),
        (Self::Hlae, "hlae"),
        (Self::Nerfstudio, "nerfstudio"),
        (Self::Tum, "tum"),
        (Self::Csv, "csv"),
        (Self::Cutscene, "cutscene"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(format, _)| *format == self).map_or("", |(_, name)| name)
    }

    /// The format of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(format, _)| *format)
    }

    /// The format of a file, by what is in it and, where that does not tell, by its
    /// name.
    pub fn of(bytes: &[u8], name: &str) -> Option<Self> {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(65_536)]);
        let start = head.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with('<') {
            return if head.contains("<campath") {
                Some(Self::Hlae)
            } else if head.contains("CCutsceneEventCamera") {
                Some(Self::Cutscene)
            } else {
                None
            };
        }
        if start.starts_with('{') {
            return if head.contains(json::MAGIC) {
                Some(Self::Json)
            } else if head.contains("\"keyframes\"") || head.contains("\"camera_path\"") {
                Some(Self::Nerfstudio)
            } else {
                None
            };
        }
        let first = start.lines().find(|l| !l.starts_with('#') && !l.trim().is_empty()).unwrap_or("");
        if first.split(',').any(|column| column.trim().eq_ignore_ascii_case("time")) {
            return Some(Self::Csv);
        }
        let numbers: Vec<&str> = first.split_whitespace().collect();
        if numbers.len() == 8 && numbers.iter().all(|n| n.parse::<f64>().is_ok()) {
            return Some(Self::Tum);
        }
        let extension = name.rsplit('.').next().unwrap_or("").to_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "tum" => Some(Self::Tum),
            _ => None,
        }
    }
}

/// What a reader cannot find in the file and a writer must be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CameraOptions {
    /// Metres in one unit of the file; by default 0.0254 (an inch) for HLAE, 0.01 for
    /// cutscenes and 1 for all others.
    pub unit: Option<f64>,
    /// Seconds in one turn of a cutscene; 0.1 by default.
    pub turn_s: f64,
}

impl Default for CameraOptions {
    fn default() -> Self {
        Self { unit: None, turn_s: 0.1 }
    }
}

/// A camera path that was read.
#[derive(Clone, Debug)]
pub struct CameraFile {
    /// What it was read from.
    pub format: CameraFormat,
    /// The path, in metres and radians, +Y up.
    pub path: CameraPath,
    /// Frame rate the file states, if any.
    pub rate: Option<f64>,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// Reads a camera path. `name` is used for messages, and for the format where the
/// bytes do not tell.
///
/// # Errors
/// [`FormatError`], naming the line or key, what was expected and what was found.
pub fn read_camera(bytes: &[u8], name: &str, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let format = CameraFormat::of(bytes, name).ok_or_else(|| FormatError::Unknown {
        file: name.to_owned(),
        known: format!(
            "camera paths in its own JSON (with {}), HLAE campath XML, nerfstudio JSON, Settlers cutscene XML, TUM \
             text and CSV with a column \"time\"",
            json::MAGIC
        ),
    })?;
    let text = std::str::from_utf8(bytes).map_err(|error| FormatError::Broken {
        file: name.to_owned(),
        place: format!("byte {}", error.valid_up_to()),
        expected: "text in UTF-8".to_owned(),
        found: "bytes that are none".to_owned(),
        advice: "save the file as UTF-8".to_owned(),
    })?;
    let text = text.trim_start_matches('\u{feff}');
    let place = Place::new(name);
    match format {
        CameraFormat::Json => json::read(text, &place, options),
        CameraFormat::Hlae => hlae::read(text, &place, options),
        CameraFormat::Nerfstudio => nerfstudio::read(text, &place, options),
        CameraFormat::Tum => tum::read(text, &place, options),
        CameraFormat::Csv => table::read(text, &place, options),
        CameraFormat::Cutscene => cutscene::read(text, &place, options),
    }
}

/// Writes shots as a file. Notes say what the format could not keep.
///
/// # Errors
/// [`FormatError::CannotWrite`] where the format cannot hold them at all.
pub fn write_shots(
    format: CameraFormat,
    shots: &Shots,
    options: &CameraOptions,
) -> Result<(String, Vec<Note>), FormatError> {
    if shots.shots.is_empty() {
        return Err(FormatError::CannotWrite {
            format: format.name(),
            what: "a path without shots".to_owned(),
            advice: "give it at least one key or frame".to_owned(),
        });
    }
    Ok(match format {
        CameraFormat::Json => json::write_shots(shots),
        CameraFormat::Hlae => hlae::write(shots, options),
        CameraFormat::Nerfstudio => nerfstudio::write(shots, options),
        CameraFormat::Tum => tum::write(shots, options),
        CameraFormat::Csv => table::write(shots, options),
        CameraFormat::Cutscene => {
            return Err(FormatError::CannotWrite {
                format: "cutscene",
                what: "a path written by another program".to_owned(),
                advice: "write json, hlae, nerfstudio, tum or csv instead".to_owned(),
            });
        }
    })
}

/// Writes a path in the project's own JSON with all it is made of; reading it gives
/// the same path, bit for bit.
pub fn write_json(path: &CameraPath) -> String {
    json::write(path)
}

/// The camera at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Shot {
    /// Seconds.
    pub time: f64,
    /// Where it is and looks, in the world.
    pub pose: CameraPose,
    /// Its angles, running on from shot to shot.
    pub angles: CameraAngles,
    /// Camera mode.
    pub mode: String,
    /// The path's further channels, in the order of [`Shots::extra`].
    pub extra: Vec<f64>,
}

/// A path as a list of shots.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Shots {
    /// In order of time.
    pub shots: Vec<Shot>,
    /// Names of the further channels.
    pub extra: Vec<String>,
    /// Frames per second where they are evenly spaced.
    pub rate: Option<f64>,
    /// Seconds from the last shot back to the first, for closed paths.
    pub closing_gap: Option<f64>,
}

impl Shots {
    /// The path at its keys.
    pub fn at_keys(path: &CameraPath) -> Self {
        let mut shots = Self::at(path, path.times().iter().map(|&t| (t, t)));
        shots.closing_gap = path.closing_gap();
        shots
    }

    /// The path at an even rate, frames per second, from its start to its end, which
    /// is included.
    ///
    /// # Errors
    /// If the rate is no positive number or makes more than four million frames.
    pub fn sampled(path: &CameraPath, rate: f64) -> Result<Self, CameraError> {
        let (start, end) = (path.start(), path.end());
        let times = frame_times(end - start, rate)?;
        let shots = Self::at(path, times.map(|t| (start + t, start + t)));
        Ok(Self { rate: Some(rate), ..shots })
    }

    /// The path on another clock at an even rate.
    ///
    /// # Errors
    /// As [`sampled`](Self::sampled).
    pub fn retimed(path: &CameraPath, clock: &Retimed<'_>, rate: f64) -> Result<Self, CameraError> {
        let shots = Self::at(path, frame_times(clock.duration(), rate)?.map(|t| (t, clock.path_time(t))));
        Ok(Self { rate: Some(rate), ..shots })
    }

    /// Shots at (time of the shot, time of the path).
    fn at(path: &CameraPath, times: impl Iterator<Item = (f64, f64)>) -> Self {
        let further: Vec<usize> = (0..path.channels().len())
            .filter(|&k| path.channels()[k].role == inbetween::camera::Role::Other)
            .collect();
        let mut shots: Vec<Shot> = Vec::new();
        for (time, at) in times {
            let pose = path.pose(at);
            let mut angles = path.angles(at);
            if let Some(before) = shots.last() {
                let near = |angle, before| nearest_turn(angle, before, std::f64::consts::TAU);
                // The path's own angles run on by themselves, turns and all.
                if path.has_rotations() || path.look_at().is_some() || path.subject().is_some() {
                    angles.yaw = near(angles.yaw, before.angles.yaw);
                    angles.roll = near(angles.roll, before.angles.roll);
                }
            }
            let span = path.times().partition_point(|&t| t <= at).saturating_sub(1);
            let mode = path.key(span).map_or_else(|_| String::new(), |key| key.mode.to_string());
            let extra = further.iter().map(|&k| path.curve().component(k, at)).collect();
            shots.push(Shot { time, pose, angles, mode, extra });
        }
        let extra = further.iter().map(|&k| path.channels()[k].name.clone()).collect();
        Self { shots, extra, rate: None, closing_gap: None }
    }
}

/// Frames that a path is written as at most: 19 hours at 60 a second.
const MOST_SHOTS: f64 = (1 << 22) as f64;

/// Frame times from 0 to `duration`, which is included even if it is on no frame.
fn frame_times(duration: f64, rate: f64) -> Result<impl Iterator<Item = f64>, CameraError> {
    if !(rate > 0.0 && duration * rate < MOST_SHOTS) {
        return Err(CameraError::Setting {
            what: format!("the frame rate of a path of {duration} s"),
            value: rate,
            expected: "a positive number of frames a second that makes fewer than 4194304 frames",
        });
    }
    // A duration within a millionth of a frame of one is on it.
    let whole = (duration * rate + 1e-6).floor().max(0.0);
    let rest = (duration * rate - whole > 1e-6).then_some(duration);
    Ok((0..=whole as u64).map(move |i| (i as f64 / rate).min(duration)).chain(rest))
}

/// The channels of a path read from a file of poses.
fn pose_channels(with_fov: bool) -> Vec<Channel> {
    let names: &[&str] = if with_fov {
        &["x", "y", "z", "yaw", "pitch", "roll", "fov"]
    } else {
        &["x", "y", "z", "yaw", "pitch", "roll"]
    };
    names.iter().map(|n| Channel::new(*n)).collect()
}

/// A key of [`pose_channels`].
fn pose_key(time: f64, position: [f64; 3], angles: CameraAngles, fov: Option<f64>) -> CameraKey {
    let mut values = position.to_vec();
    values.extend([angles.yaw, angles.pitch, angles.roll]);
    values.extend(fov);
    CameraKey::new(time, values)
}

/// Makes a path of keys that were read; a key the path refuses is an error of the
/// file.
fn build(place: &Place, channels: Vec<Channel>, keys: Vec<CameraKey>) -> Result<CameraPath, FormatError> {
    CameraPath::new(channels, keys).map_err(|error| place.broken("the keys", "keys a camera can fly", error))
}

/// A note about something assumed.
fn assumed(place: &str, text: impl Into<String>) -> Note {
    Note::new(Severity::Info, place, text)
}

/// A note about something a format cannot hold.
fn lost(place: &str, text: impl Into<String>) -> Note {
    Note::new(Severity::Lost, place, text)
}

/// World axes with z up, to ours.
fn from_z_up([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x, z, -y]
}

fn to_z_up([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x, -z, y]
}

/// The rotation that takes world axes with z up to ours, as a quaternion.
const Z_UP: [f64; 4] = [-std::f64::consts::FRAC_1_SQRT_2, 0.0, 0.0, std::f64::consts::FRAC_1_SQRT_2];
