//! nerfstudio camera paths: key frames as matrices, and the frames baked from them.
//!
//! World axes have z up, cameras look along −z. Key frames of the older viewer hold
//! their matrix column by column in a string and their time as a share of the whole
//! in `properties`; those of the newer one hold it row by row in a list and the
//! seconds to the next key. On a cyclic path of n keys the last key is at (n − 1)/n of
//! the duration, as the baked frames show.

use inbetween::camera::CameraAngles;
use serde_json::{Value, json};

use super::text::{Place, described};
use super::{
    CameraFile, CameraFormat, CameraOptions, Shots, Z_UP, assumed, build, from_z_up, lost, pose_channels,
    pose_key, to_z_up,
};
use crate::{FormatError, Note};
use inbetween::spline::{nearest_turn, quat_conjugate, quat_multiply, quat_rotate};

pub(super) fn read(text: &str, place: &Place, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let document = place.json(text)?;
    let unit = options.unit.unwrap_or(1.0);
    let mut notes = Vec::new();
    let optional =
        |key: &str| document.get(key).filter(|v| !v.is_null()).map(|v| place.json_number(v, key)).transpose();
    let rate = optional("fps")?;
    if rate.is_some_and(|r| r <= 0.0) {
        return Err(place.broken("fps", "a rate above zero", rate.unwrap_or(0.0)));
    }
    let cyclic = document.get("is_cycle").and_then(Value::as_bool).unwrap_or(false);
    let empty = Vec::new();
    let frames = document.get("keyframes").and_then(Value::as_array).unwrap_or(&empty);
    let baked = document.get("camera_path").and_then(Value::as_array).unwrap_or(&empty);
    let from_keys = !frames.is_empty();
    let list = if from_keys { frames } else { baked };
    if list.is_empty() {
        return Err(place.broken("keyframes", "at least one key frame", "none"));
    }
    let n = list.len();
    let seconds = optional("seconds")?.unwrap_or((n - 1) as f64);
    let span = if cyclic && from_keys { seconds * (n - 1) as f64 / n as f64 } else { seconds };
    let mut keys = Vec::with_capacity(n);
    let mut clock = 0.0;
    let mut before = CameraAngles::default();
    for (i, frame) in list.iter().enumerate() {
        let at = if from_keys { format!("keyframes[{i}]") } else { format!("camera_path[{i}]") };
        let name = if from_keys { "matrix" } else { "camera_to_world" };
        let matrix = matrix_of(frame.get(name).unwrap_or(&Value::Null), place, &format!("{at}.{name}"))?;
        let position = from_z_up([matrix[3], matrix[7], matrix[11]].map(|v| v * unit));
        let rotation = rotation_of(&matrix).ok_or_else(|| {
            place.broken(format!("{at}.{name}"), "a rotation, perhaps scaled", "a matrix without one")
        })?;
        let mut angles = CameraAngles::of(quat_multiply(Z_UP, rotation));
        if i > 0 {
            angles.yaw = nearest_turn(angles.yaw, before.yaw, std::f64::consts::TAU);
        }
        before = angles;
        let properties = match frame.get("properties").and_then(Value::as_str) {
            Some(text) => place.json(text)?,
            None => Value::Null,
        };
        let share = properties
            .as_array()
            .and_then(|list| list.iter().find(|p| p.get(0).and_then(Value::as_str) == Some("TIME")))
            .and_then(|p| p.get(1));
        let time = match share {
            _ if !from_keys => i as f64 / rate.unwrap_or(24.0),
            Some(share) => place.json_number(share, format!("{at}.properties TIME"))? * span,
            None => {
                let here = clock;
                let own = frame.get("override_transition_enabled").and_then(Value::as_bool).unwrap_or(false);
                let wait = if own { frame.get("override_transition_sec") } else { None };
                clock += match wait.or_else(|| document.get("default_transition_sec")) {
                    Some(seconds) => place.json_number(seconds, format!("{at}, seconds to the next key"))?,
                    None if n > 1 => span / (n - 1) as f64,
                    None => 0.0,
                };
                here
            }
        };
        let fov = frame.get("fov").or_else(|| document.get("default_fov"));
        let fov =
            fov.filter(|v| !v.is_null()).map(|v| place.json_number(v, format!("{at}.fov"))).transpose()?;
        keys.push((time, position, angles, fov.map(f64::to_radians)));
    }
    let with_fov = keys.iter().all(|k| k.3.is_some());
    if !with_fov {
        notes.push(lost("keyframes", "not every key has a field of view, so none is kept"));
    }
    if options.unit.is_none() {
        notes.push(assumed("", "one unit is taken as a metre"));
    }
    if !from_keys {
        notes.push(assumed("camera_path", "there are no key frames, so the baked frames are the keys"));
    }
    let mut path = build(
        place,
        pose_channels(with_fov),
        keys.into_iter().map(|(t, p, a, fov)| pose_key(t, p, a, fov.filter(|_| with_fov))).collect(),
    )?;
    if cyclic && from_keys && n > 1 {
        let gap = (seconds / n as f64).max(seconds - path.end());
        path.close(Some(gap)).map_err(|error| place.broken("seconds", "a duration above zero", error))?;
    }
    Ok(CameraFile { format: CameraFormat::Nerfstudio, path, rate, notes })
}

/// A camera-to-world matrix, row by row.
fn matrix_of(value: &Value, place: &Place, at: &str) -> Result<[f64; 16], FormatError> {
    let (value, by_column) = match value {
        Value::String(text) => (place.json(text)?, true),
        other => (other.clone(), false),
    };
    let matrix = match value.as_array().map(Vec::len) {
        Some(16) => place.json_numbers::<16>(&value, at)?,
        Some(4) => {
            let mut matrix = [0.0; 16];
            for r in 0..4 {
                matrix[4 * r..4 * r + 4]
                    .copy_from_slice(&place.json_numbers::<4>(&value[r], format!("{at}[{r}]"))?);
            }
            matrix
        }
        _ => return Err(place.broken(at, "a matrix of 16 numbers", described(&value))),
    };
    let bottom_by_row = [12, 13, 14].map(|i| matrix[i]) == [0.0; 3];
    let bottom_by_column = [3, 7, 11].map(|i| matrix[i]) == [0.0; 3];
    match (bottom_by_row, bottom_by_column) {
        // Both: a camera at the origin, where only custom tells.
        (true, true) if by_column => Ok(transposed(&matrix)),
        (true, _) => Ok(matrix),
        (false, true) => Ok(transposed(&matrix)),
        (false, false) => {
            Err(place.broken(at, "a matrix whose last row is 0 0 0 1", "one with perspective in it"))
        }
    }
}

fn transposed(m: &[f64; 16]) -> [f64; 16] {
    std::array::from_fn(|i| m[4 * (i % 4) + i / 4])
}

/// The quaternion of the matrix' rotation, its columns brought to length 1.
fn rotation_of(m: &[f64; 16]) -> Option<[f64; 4]> {
    let mut r = [[0.0; 3]; 3];
    for c in 0..3 {
        let column = [m[c], m[4 + c], m[8 + c]];
        let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
        if !(length.is_finite() && length > 1e-12) {
            return None;
        }
        for row in 0..3 {
            r[row][c] = column[row] / length;
        }
    }
    // The largest of the four components first, so none is divided by little.
    let trace = r[0][0] + r[1][1] + r[2][2];
    let q = if trace > 0.0 {
        [r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1], 1.0 + trace]
    } else if r[0][0] >= r[1][1] && r[0][0] >= r[2][2] {
        [1.0 + r[0][0] - r[1][1] - r[2][2], r[0][1] + r[1][0], r[0][2] + r[2][0], r[2][1] - r[1][2]]
    } else if r[1][1] >= r[2][2] {
        [r[0][1] + r[1][0], 1.0 + r[1][1] - r[0][0] - r[2][2], r[1][2] + r[2][1], r[0][2] - r[2][0]]
    } else {
        [r[0][2] + r[2][0], r[1][2] + r[2][1], 1.0 + r[2][2] - r[0][0] - r[1][1], r[1][0] - r[0][1]]
    };
    let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    (length > 1e-6).then(|| q.map(|x| x / length))
}

pub(super) fn write(shots: &Shots, options: &CameraOptions) -> (String, Vec<Note>) {
    let unit = options.unit.unwrap_or(1.0);
    let mut notes = Vec::new();
    if !shots.extra.is_empty() {
        notes.push(lost("", format!("further channels are not kept: {}", shots.extra.join(", "))));
    }
    let (first, last) = (shots.shots[0].time, shots.shots[shots.shots.len() - 1].time);
    let (span, cyclic) = (last - first, shots.closing_gap.is_some());
    let seconds = if cyclic {
        span * shots.shots.len() as f64 / (shots.shots.len() as f64 - 1.0).max(1.0)
    } else {
        span
    };
    if cyclic && shots.closing_gap.is_some_and(|gap| (span + gap - seconds).abs() > 1e-9 * seconds) {
        notes.push(lost("", "a cyclic path's way back takes one key's share of its duration in this format"));
    }
    let matrix = |shot: &super::Shot| -> [f64; 16] {
        let rotation = quat_multiply(quat_conjugate(Z_UP), shot.pose.rotation);
        let place = to_z_up(shot.pose.position.map(|v| v / unit));
        let axes =
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|axis| quat_rotate(rotation, axis));
        std::array::from_fn(|i| match (i / 4, i % 4) {
            (3, column) => f64::from(u8::from(column == 3)),
            (row, 3) => place[row],
            (row, column) => axes[column][row],
        })
    };
    let fov = |shot: &super::Shot| shot.pose.fov.map_or(50.0, f64::to_degrees);
    if shots.shots.iter().any(|s| s.pose.fov.is_none()) {
        notes.push(assumed("", "shots without a field of view get 50 degrees"));
    }
    let keyframes: Vec<Value> = shots
        .shots
        .iter()
        .enumerate()
        .map(|(i, shot)| {
            let share = if span > 0.0 { (shot.time - first) / span } else { 0.0 };
            let properties = json!([["FOV", fov(shot)], ["NAME", format!("Camera {i}")], ["TIME", share]]);
            json!({
                "matrix": json!(transposed(&matrix(shot))).to_string(),
                "fov": fov(shot),
                "aspect": 16.0 / 9.0,
                "properties": properties.to_string(),
            })
        })
        .collect();
    let baked: Vec<Value> = shots
        .shots
        .iter()
        .map(|shot| json!({"camera_to_world": matrix(shot), "fov": fov(shot), "aspect": 16.0 / 9.0}))
        .collect();
    let mut document = json!({
        "camera_type": "perspective",
        "render_height": 1080,
        "render_width": 1920,
        "fps": shots.rate.unwrap_or(24.0),
        "seconds": seconds,
        "smoothness_value": 0.5,
        "is_cycle": cyclic,
        "crop": null,
    });
    // Frames that were sampled are for rendering; keys are for the viewer.
    let name = if shots.rate.is_some() { "camera_path" } else { "keyframes" };
    document["keyframes"] = json!([]);
    document["camera_path"] = json!([]);
    document[name] = Value::Array(if shots.rate.is_some() { baked } else { keyframes });
    if first != 0.0 {
        notes.push(assumed("", format!("times in this format begin at 0; {first} s was taken off")));
    }
    (format!("{document:#}\n"), notes)
}
