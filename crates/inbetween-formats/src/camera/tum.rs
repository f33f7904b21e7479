//! TUM trajectories: lines of `time x y z qx qy qz qw`, `#` for comments.
//!
//! The world has z up; the quaternion turns the camera's optical axes (x right, y
//! down, z forward) into the world. Times are often seconds since 1970 and are kept.

use std::fmt::Write as _;

use inbetween::camera::{CameraKey, Channel};
use inbetween::spline::{quat_conjugate, quat_multiply};

use super::text::Place;
use super::{CameraFile, CameraFormat, CameraOptions, Shots, Z_UP, assumed, build, from_z_up, lost, to_z_up};
use crate::{FormatError, Note};

/// From our camera axes (y up, looking along −z) to optical ones: half a turn about x.
const OPTICAL: [f64; 4] = [1.0, 0.0, 0.0, 0.0];

pub(super) fn read(text: &str, place: &Place, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let unit = options.unit.unwrap_or(1.0);
    let mut keys = Vec::new();
    for (line, row) in text.lines().enumerate() {
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let at = format!("line {}", line + 1);
        let words: Vec<&str> = row.split_whitespace().collect();
        if words.len() != 8 {
            let found = format!("{} numbers", words.len());
            return Err(place.broken(&at, "8 numbers: time x y z qx qy qz qw", found));
        }
        let mut numbers = [0.0; 8];
        for (number, word) in numbers.iter_mut().zip(&words) {
            *number = place.number(word, &at)?;
        }
        let [time, x, y, z, qx, qy, qz, qw] = numbers;
        if [qx, qy, qz, qw] == [0.0; 4] {
            return Err(place.broken(&at, "a quaternion that is not zero", "0 0 0 0"));
        }
        let position = from_z_up([x, y, z].map(|v| v * unit));
        let rotation = quat_multiply(quat_multiply(Z_UP, [qx, qy, qz, qw]), OPTICAL);
        keys.push(CameraKey { rotation: Some(rotation), ..CameraKey::new(time, position.to_vec()) });
    }
    if keys.is_empty() {
        return Err(place.broken("the file", "at least one line of 8 numbers", "none"));
    }
    let notes = vec![assumed(
        "",
        "the world is taken to have z up and the camera to look along its +z (optical axes)",
    )];
    let path = build(place, ["x", "y", "z"].map(Channel::new).to_vec(), keys)?;
    Ok(CameraFile { format: CameraFormat::Tum, path, rate: None, notes })
}

pub(super) fn write(shots: &Shots, options: &CameraOptions) -> (String, Vec<Note>) {
    let unit = options.unit.unwrap_or(1.0);
    let mut notes = Vec::new();
    if shots.shots.iter().any(|s| s.pose.fov.is_some()) {
        notes.push(lost("", "the field of view is not kept"));
    }
    if !shots.extra.is_empty() {
        notes.push(lost("", format!("further channels are not kept: {}", shots.extra.join(", "))));
    }
    let mut out = String::from("# timestamp tx ty tz qx qy qz qw\n");
    for shot in &shots.shots {
        let [x, y, z] = to_z_up(shot.pose.position.map(|v| v / unit));
        let [qx, qy, qz, qw] =
            quat_multiply(quat_multiply(quat_conjugate(Z_UP), shot.pose.rotation), quat_conjugate(OPTICAL));
        let _ = writeln!(out, "{} {x} {y} {z} {qx} {qy} {qz} {qw}", shot.time);
    }
    (out, notes)
}
