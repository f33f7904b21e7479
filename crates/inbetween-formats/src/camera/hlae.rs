//! HLAE camera paths: `<campath><points><p t x y z fov rx ry rz qw qx qy qz/>`.
//!
//! Axes are Quake's (x forward, y left, z up), angles in degrees with the rotation
//! rx, then ry, then rz; where angles and quaternion are both there the quaternion
//! counts. The field of view is the game's, horizontal at 4:3. Source: the comment
//! the program itself writes into its files, and its `CamPath.cpp`.

use std::fmt::Write as _;

use inbetween::camera::CameraAngles;
use inbetween::spline::nearest_turn;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::text::Place;
use super::{CameraFile, CameraFormat, CameraOptions, Shots, assumed, build, lost, pose_channels, pose_key};
use crate::{FormatError, Note};

/// Metres in a unit unless told otherwise: an inch.
const UNIT: f64 = 0.0254;

pub(super) fn read(text: &str, place: &Place, options: &CameraOptions) -> Result<CameraFile, FormatError> {
    let unit = options.unit.unwrap_or(UNIT);
    let mut notes = Vec::new();
    let mut keys = Vec::new();
    let mut angles = CameraAngles::default();
    let mut offset = 0.0;
    let mut reader = Reader::from_str(text);
    loop {
        let line = |reader: &Reader<&[u8]>| {
            let at = (reader.buffer_position() as usize).min(text.len());
            1 + text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count()
        };
        let event = reader
            .read_event()
            .map_err(|error| place.broken(format!("line {}", line(&reader)), "well-formed XML", error))?;
        match event {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                b"campath" => {
                    for (name, value) in attributes(&tag) {
                        match name.as_str() {
                            "offset" => offset = place.number(&value, "campath offset")?,
                            "positionInterp" | "rotationInterp" | "fovInterp" | "hold" => {
                                notes.push(assumed(
                                    "campath",
                                    format!(
                                        "{name}={value:?} is not kept; how the path is flown is set here"
                                    ),
                                ))
                            }
                            _ => {}
                        }
                    }
                }
                b"p" => {
                    let at = format!("line {}, point {}", line(&reader), keys.len());
                    let given = attributes(&tag);
                    let find = |name: &str| {
                        given
                            .iter()
                            .find(|(n, _)| n == name)
                            .map(|(_, value)| place.number(value, format!("{at}, {name}")))
                            .transpose()
                    };
                    let need = |name: &str| {
                        find(name)?.ok_or_else(|| place.broken(&at, format!("an attribute {name}"), "none"))
                    };
                    let [x, y, z] = [need("x")? * unit, need("y")? * unit, need("z")? * unit];
                    let quaternion = match (find("qw")?, find("qx")?, find("qy")?, find("qz")?) {
                        (Some(w), Some(x), Some(y), Some(z)) => Some([x, y, z, w]),
                        _ => None,
                    };
                    let written = match (find("rx")?, find("ry")?, find("rz")?) {
                        (Some(rx), Some(ry), Some(rz)) => Some(CameraAngles {
                            yaw: rz.to_radians(),
                            pitch: -ry.to_radians(),
                            roll: -rx.to_radians(),
                        }),
                        _ => None,
                    };
                    angles = match (quaternion, written) {
                        (None, None) => {
                            return Err(place.broken(&at, "rx, ry and rz, or qw, qx, qy and qz", "neither"));
                        }
                        (None, Some(written)) => written,
                        (Some(q), written) => {
                            let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
                            if length.is_nan() || length <= 0.0 {
                                return Err(place.broken(&at, "a quaternion that is not zero", "zero"));
                            }
                            let [x, y, z, w] = q.map(|v| v / length);
                            let turned = [-y, z, -x, w];
                            // The written angles say the same and also which way round
                            // they were meant; where they do not, the quaternion counts.
                            match written {
                                Some(written) if same_rotation(written.rotation(), turned) => written,
                                _ => CameraAngles::of(turned),
                            }
                        }
                    };
                    let fov = find("fov")?.map(|fov| vertical(fov.to_radians()));
                    keys.push((need("t")?, [-y, z, -x], angles, fov));
                }
                b"curves" | b"curve" => {
                    return Err(place.broken_with(
                        format!("line {}", line(&reader)),
                        "a path of points",
                        "a path of curves",
                        "save it in the classic form, with points",
                    ));
                }
                _ => {}
            },
            _ => {}
        }
    }
    let _ = angles;
    if keys.is_empty() {
        return Err(place.broken("campath", "at least one point <p …/>", "none"));
    }
    if options.unit.is_none() {
        notes.push(assumed("campath", format!("one unit is taken as an inch ({UNIT} m)")));
    }
    let with_fov = keys.iter().all(|k| k.3.is_some());
    if with_fov {
        notes.push(assumed("campath", "fov is taken as the horizontal one of a 4:3 picture"));
    }
    let keys = keys
        .into_iter()
        .map(|(time, position, angles, fov)| {
            pose_key(time + offset, position, angles, fov.filter(|_| with_fov))
        })
        .collect();
    let path = build(place, pose_channels(with_fov), keys)?;
    Ok(CameraFile { format: CameraFormat::Hlae, path, rate: None, notes })
}

/// The attributes of a tag; one without a value counts as empty. Those that cannot be
/// read are left out and then missed by name.
fn attributes(tag: &BytesStart) -> Vec<(String, String)> {
    tag.html_attributes()
        .flatten()
        .map(|a| {
            let name = String::from_utf8_lossy(a.key.as_ref()).into_owned();
            (name, String::from_utf8_lossy(&a.value).into_owned())
        })
        .collect()
}

fn same_rotation(a: [f64; 4], b: [f64; 4]) -> bool {
    let cosine: f64 = (0..4).map(|k| a[k] * b[k]).sum();
    // Half of 0.1 degrees.
    cosine.abs() > 1.0 - 4e-7
}

/// The vertical field of view of a 4:3 picture with this horizontal one.
fn vertical(horizontal: f64) -> f64 {
    2.0 * (0.75 * (0.5 * horizontal).tan()).atan()
}

fn horizontal(vertical: f64) -> f64 {
    2.0 * ((0.5 * vertical).tan() / 0.75).atan()
}

pub(super) fn write(shots: &Shots, options: &CameraOptions) -> (String, Vec<Note>) {
    let unit = options.unit.unwrap_or(UNIT);
    let mut notes = Vec::new();
    if !shots.extra.is_empty() {
        notes.push(lost("", format!("further channels are not kept: {}", shots.extra.join(", "))));
    }
    if shots.shots.iter().any(|s| s.pose.fov.is_none()) {
        notes.push(assumed("", "shots without a field of view get 90 degrees"));
    }
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<campath>\n\t<points>\n");
    let mut before: Option<CameraAngles> = None;
    for shot in &shots.shots {
        let [x, y, z] = shot.pose.position.map(|v| v / unit);
        let [qx, qy, qz, qw] = shot.pose.rotation;
        let fov = shot.pose.fov.map_or(90.0, |fov| horizontal(fov).to_degrees());
        let a = before.map_or(shot.angles, |b| CameraAngles {
            yaw: nearest_turn(shot.angles.yaw, b.yaw, std::f64::consts::TAU),
            ..shot.angles
        });
        before = Some(a);
        let (rx, ry, rz) = (-a.roll.to_degrees(), -a.pitch.to_degrees(), a.yaw.to_degrees());
        let _ = writeln!(
            out,
            "\t\t<p t=\"{}\" x=\"{}\" y=\"{}\" z=\"{}\" fov=\"{fov}\" rx=\"{}\" ry=\"{}\" rz=\"{}\" \
             qw=\"{qw}\" qx=\"{}\" qy=\"{}\" qz=\"{}\"/>",
            shot.time,
            plus_zero(-z),
            plus_zero(-x),
            y,
            plus_zero(rx),
            plus_zero(ry),
            plus_zero(rz),
            plus_zero(-qz),
            plus_zero(-qx),
            qy,
        );
    }
    out.push_str("\t</points>\n</campath>\n");
    (out, notes)
}

/// −0 as 0.
fn plus_zero(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x }
}
