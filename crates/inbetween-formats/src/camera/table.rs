//! Camera paths as CSV: a header, then a key a line.
//!
//! Columns by name, in any order: `time` (seconds); `x`, `y`, `z` (the file's unit);
//! `yaw`, `pitch`, `roll`, `fov` in degrees, or with `_rad` behind in radians;
//! `qx`, `qy`, `qz`, `qw`; `target.x`, `target.y`, `target.z`; `mode`; and any further
//! column as a channel of that name. Axes are the house's.

use std::fmt::Write as _;

use inbetween::camera::{CameraKey, Channel, LookAt, Role};

use super::text::Place;
use super::{CameraFile, CameraFormat, CameraOptions, Shots, build};
use crate::{FormatError, Note};

pub(super) fn read(text: &str, place: &Place, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let unit = options.unit.unwrap_or(1.0);
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (_, header) =
        lines.next().ok_or_else(|| place.broken("line 1", "a header with a column time", "nothing"))?;
    let columns: Vec<String> = header.split(',').map(|c| c.trim().trim_matches('"').to_owned()).collect();
    let find = |name: &str| columns.iter().position(|c| c.eq_ignore_ascii_case(name));
    let time =
        find("time").ok_or_else(|| place.broken("line 1", "a column time", format!("columns {header}")))?;
    let mode = find("mode");
    let quaternion = [find("qx"), find("qy"), find("qz"), find("qw")];
    let some = quaternion.iter().flatten().count();
    if some != 0 && some != 4 {
        return Err(place.broken("line 1", "qx, qy, qz and qw together", format!("{some} of the four")));
    }
    // The channels: all columns without a part of their own.
    let mut channels: Vec<(usize, Channel, f64)> = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        if i == time || Some(i) == mode || quaternion.contains(&Some(i)) {
            continue;
        }
        let lower = column.to_lowercase();
        let (name, radians) = lower.strip_suffix("_rad").map_or((lower.as_str(), false), |name| (name, true));
        let role = Role::of(name);
        let (name, factor) = match role {
            Role::Other => (column.as_str(), 1.0),
            Role::Yaw | Role::Pitch | Role::Roll | Role::Fov if radians => (name, 1.0),
            Role::Yaw | Role::Pitch | Role::Roll | Role::Fov => (name, 1_f64.to_radians()),
            _ => (name, unit),
        };
        channels.push((i, Channel::new(name), factor));
    }
    let mut keys = Vec::new();
    for (line, row) in lines {
        let cells: Vec<&str> = row.split(',').map(|c| c.trim().trim_matches('"')).collect();
        if cells.len() != columns.len() {
            let found = format!("{} cells", cells.len());
            return Err(place.broken(format!("line {line}"), format!("{} cells", columns.len()), found));
        }
        let number = |i: usize| place.number(cells[i], format!("line {line}, column {}", columns[i]));
        let values = channels
            .iter()
            .map(|(i, _, factor)| Ok(number(*i)? * factor))
            .collect::<Result<Vec<f64>, FormatError>>()?;
        let mut key = CameraKey::new(number(time)?, values);
        if let [Some(x), Some(y), Some(z), Some(w)] = quaternion {
            key.rotation = Some([number(x)?, number(y)?, number(z)?, number(w)?]);
        }
        if let Some(mode) = mode
            && !cells[mode].is_empty()
        {
            key.mode = cells[mode].into();
        }
        keys.push(key);
    }
    let channels: Vec<Channel> = channels.into_iter().map(|(_, channel, _)| channel).collect();
    let targets = [Role::TargetX, Role::TargetY, Role::TargetZ];
    let looks = targets.iter().all(|role| channels.iter().any(|c| c.role == *role));
    let mut path = build(place, channels, keys)?;
    if looks {
        path.set_look_at(Some(LookAt::Channels))
            .map_err(|e| place.broken("line 1", "columns of a target", e))?;
    }
    Ok(CameraFile { format: CameraFormat::Csv, path, rate: None, notes: Vec::new() })
}

pub(super) fn write(shots: &Shots, options: &CameraOptions) -> (String, Vec<Note>) {
    let unit = options.unit.unwrap_or(1.0);
    let with_fov = shots.shots.iter().all(|s| s.pose.fov.is_some());
    let mut out = String::from("time,x,y,z,yaw,pitch,roll");
    if with_fov {
        out.push_str(",fov");
    }
    out.push_str(",mode");
    for name in &shots.extra {
        let _ = write!(out, ",{}", name.replace([',', '\n', '"'], "_"));
    }
    out.push('\n');
    for shot in &shots.shots {
        let [x, y, z] = shot.pose.position.map(|v| v / unit);
        let a = shot.angles;
        let degrees = [a.yaw, a.pitch, a.roll].map(f64::to_degrees);
        let _ = write!(out, "{},{x},{y},{z},{},{},{}", shot.time, degrees[0], degrees[1], degrees[2]);
        if with_fov {
            let _ = write!(out, ",{}", shot.pose.fov.unwrap_or(0.0).to_degrees());
        }
        let _ = write!(out, ",{}", shot.mode.replace([',', '\n', '"'], "_"));
        for value in &shot.extra {
            let _ = write!(out, ",{value}");
        }
        out.push('\n');
    }
    (out, Vec::new())
}
