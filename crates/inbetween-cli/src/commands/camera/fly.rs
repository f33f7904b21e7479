//! How a path is to be flown, as said on the command line.

use std::path::PathBuf;

use clap::Args;
use inbetween::camera::{CameraPath, LookAt, MovingTarget, Overshoot, Retime, Retimed, Smoothing, Unwrap};
use inbetween_formats::camera::{CameraOptions, read_camera};

use crate::output::Failure;
use crate::units;

/// Options that change how a path is flown.
#[derive(Args, Clone, Debug, Default)]
pub struct FlyArgs {
    /// From 0 (the replay curve) to 1 (the smoothest curve through the keys)
    #[arg(long, value_name = "A")]
    amount: Option<f64>,
    /// An amount for one channel, such as fov=0.5; 'rotation' for quaternions
    #[arg(long, value_name = "NAME=A", value_parser = named_amount)]
    channel: Vec<(String, f64)>,
    /// Camera modes that are smoothed (free unless told otherwise)
    #[arg(long, value_name = "NAME")]
    mode: Vec<String>,
    /// Leave smoothing off
    #[arg(long, conflicts_with = "on")]
    off: bool,
    /// Turn smoothing on
    #[arg(long)]
    on: bool,
    /// Whether angles go the short way round or keep the turns they are written with
    #[arg(long, value_name = "shortest|as-authored", value_parser = ["shortest", "as-authored"])]
    unwrap: Option<String>,
    /// Keep every channel within the range of its two keys
    #[arg(long)]
    no_overshoot: bool,
    /// The replay curve does not brake at keys where a channel slows down or turns back
    #[arg(long)]
    no_brake: bool,
    /// Fly straight from this key (numbered from 0) to the next
    #[arg(long, value_name = "KEY")]
    straight: Vec<usize>,
    /// Close the path: seconds from the last key back to the first
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds)]
    close: Option<f64>,
    /// Add a key at this time without a jump
    #[arg(long, value_name = "T", value_parser = units::seconds, allow_hyphen_values = true)]
    insert: Vec<f64>,
    /// Look at this place, metres
    #[arg(long, value_name = "X,Y,Z", value_parser = place, allow_hyphen_values = true, conflicts_with = "look_at_path")]
    look_at: Option<[f64; 3]>,
    /// Look at something that moves: its path, in any format a camera path is read from
    #[arg(long, value_name = "FILE")]
    look_at_path: Option<PathBuf>,
    /// Keys are relative to something that moves: its path, in any format a camera path is read from
    #[arg(long, value_name = "FILE")]
    follow: Option<PathBuf>,
    /// Keep the horizon level
    #[arg(long)]
    level: bool,
}

/// Another clock for the whole path.
#[derive(Args, Clone, Debug, Default)]
pub struct RetimeArgs {
    /// Fly at an even speed
    #[arg(long)]
    even_speed: bool,
    /// Seconds the whole takes
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds)]
    duration: Option<f64>,
    /// Fastest turning a second, such as 90deg (120deg with --even-speed)
    #[arg(long, value_name = "ANGLE", value_parser = units::angle)]
    max_turning: Option<f64>,
    /// Seconds to start from rest
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds)]
    ease_in: Option<f64>,
    /// Seconds to come to rest
    #[arg(long, value_name = "SECONDS", value_parser = units::seconds)]
    ease_out: Option<f64>,
}

/// `fov=0.5` as a channel and an amount.
pub(super) fn named_amount(text: &str) -> Result<(String, f64), String> {
    let (name, amount) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?}: write a channel and an amount, like fov=0.5"))?;
    let amount = amount.parse().map_err(|_| format!("{amount:?} is not an amount from 0 to 1"))?;
    Ok((name.to_owned(), amount))
}

fn place(text: &str) -> Result<[f64; 3], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    let numbers = numbers.filter(|n| n.iter().all(|x| f64::is_finite(*x)));
    numbers
        .and_then(|n| n.try_into().ok())
        .ok_or_else(|| format!("{text:?} is not a place; write X,Y,Z in metres"))
}

impl FlyArgs {
    /// Flies the path as said; `smoothing` is what holds where nothing is said.
    ///
    /// # Errors
    /// If a setting does not fit the path.
    pub fn apply(&self, path: &mut CameraPath, mut smoothing: Smoothing) -> Result<(), Failure> {
        let wrong = |error: inbetween::camera::CameraError| Failure::wrong(error.to_string());
        if self.on || self.off {
            smoothing.on = self.on;
        }
        if let Some(amount) = self.amount {
            smoothing.amount = amount;
        }
        for (name, amount) in &self.channel {
            if name != "rotation" {
                path.channel(name).map_err(wrong)?;
            }
            smoothing.amounts.retain(|(n, _)| n != name);
            smoothing.amounts.push((name.clone(), *amount));
        }
        if !self.mode.is_empty() {
            let known = modes(path);
            if let Some(unknown) = self.mode.iter().find(|m| !known.contains(m)) {
                return Err(Failure::wrong(format!(
                    "--mode {unknown}: no key of the path has this camera mode; it has {}",
                    known.join(", ")
                )));
            }
            smoothing.modes.clone_from(&self.mode);
        }
        match self.unwrap.as_deref() {
            Some("as-authored") => smoothing.unwrap = Unwrap::AsAuthored,
            Some(_) => smoothing.unwrap = Unwrap::Shortest,
            None => {}
        }
        if self.no_overshoot {
            smoothing.overshoot = Overshoot::Prevent;
        }
        if self.no_brake {
            smoothing.brake = false;
        }
        path.set_smoothing(smoothing).map_err(wrong)?;
        for &index in &self.straight {
            let mut key = path.key(index).map_err(wrong)?;
            key.straight = true;
            path.set_key(index, key).map_err(wrong)?;
        }
        if self.close.is_some() {
            path.close(self.close).map_err(wrong)?;
        }
        for &time in &self.insert {
            path.insert_at(time).map_err(wrong)?;
        }
        if let Some(file) = &self.follow {
            path.follow(Some(moving(file)?));
        }
        if let Some(place) = self.look_at {
            path.set_look_at(Some(LookAt::Place(place))).map_err(wrong)?;
        }
        if let Some(file) = &self.look_at_path {
            path.set_look_at(Some(LookAt::Moving(Box::new(moving(file)?)))).map_err(wrong)?;
        }
        if self.level {
            path.set_level(true);
        }
        Ok(())
    }
}

/// The camera modes of a path, in the order they first occur.
fn modes(path: &CameraPath) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in path.keys() {
        if !found.iter().any(|m| **m == *key.mode) {
            found.push(key.mode.to_string());
        }
    }
    found
}

/// Something that moves along the keys of a path in a file, turning with it.
fn moving(file: &PathBuf) -> Result<MovingTarget, Failure> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|e| Failure::wrong(format!("{name}: cannot be read: {e}")))?;
    let path = read_camera(&bytes, &name, &CameraOptions::default())?.path;
    let poses: Vec<_> = path.times().iter().map(|&t| path.pose(t)).collect();
    let places: Vec<[f64; 3]> = poses.iter().map(|p| p.position).collect();
    let turns: Vec<[f64; 4]> = poses.iter().map(|p| p.rotation).collect();
    MovingTarget::new(path.times(), &places, true)
        .and_then(|target| target.turning(path.times(), &turns))
        .map_err(|error| Failure::wrong(format!("{name}: {error}")))
}

impl RetimeArgs {
    /// The clock, if one is asked for.
    ///
    /// # Errors
    /// If a time does not fit.
    pub fn clock<'a>(&self, path: &'a CameraPath) -> Result<Option<Retimed<'a>>, Failure> {
        let asked = self.even_speed
            || self.duration.is_some()
            || self.max_turning.is_some()
            || self.ease_in.is_some()
            || self.ease_out.is_some();
        if !asked {
            return Ok(None);
        }
        let usual = if self.even_speed { Retime::default().max_turning } else { None };
        let how = Retime {
            even_speed: self.even_speed,
            duration: self.duration,
            max_turning: self.max_turning.or(usual),
            ease_in_s: self.ease_in.unwrap_or(0.0),
            ease_out_s: self.ease_out.unwrap_or(0.0),
        };
        path.retime(&how).map(Some).map_err(|error| Failure::wrong(error.to_string()))
    }
}
