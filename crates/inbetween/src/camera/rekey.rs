//! A retimed path as keys: a plain path on the new clock that plays the same within a
//! bound.
//!
//! The idea: keys at the old keys' new times, then one more in the middle of every
//! segment on which the natural spline through them is too far off, until none is. A
//! cut stays a cut. What is followed, looked at or levelled is worked into the keys, so
//! that any reader of keys can play them.
//!
//! It stops at measuring: how far off the result is, is told, looked at in more places
//! than it was made by.

use std::sync::Arc;

use super::channel::{CameraPose, Channel, Role};
use super::path::{CameraError, CameraKey, CameraPath, PathSpan, Smoothing, Unwrap};
use super::retime::Retimed;
use crate::spline::{quat_conjugate, quat_multiply};

/// How far keys may be off the retimed path between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyBound {
    /// The camera's place, metres; 1 mm by default. Half of it takes about 1.2 times the keys.
    pub place_m: f64,
    /// Its rotation and field of view, radians; 1 mrad (0.06 degrees) by default.
    pub turn_rad: f64,
}

impl Default for KeyBound {
    fn default() -> Self {
        Self { place_m: 1e-3, turn_rad: 1e-3 }
    }
}

/// A retimed path as keys.
#[derive(Clone, Debug)]
pub struct Rekeyed {
    /// The path; smoothed in full in all of its modes, time 0 is where the clock starts.
    pub path: CameraPath,
    /// How far off its place is at most, metres.
    pub place_m: f64,
    /// How far off its rotation or field of view is at most, radians.
    pub turn_rad: f64,
}

/// Rounds of adding keys: each halves the segments that are off.
const ROUNDS: usize = 18;
/// Places of a segment that are looked at when keys are added, and when all is done.
const PLACES: usize = 7;
const FINAL_PLACES: usize = 24;

/// A key to be: times on both clocks, and what the path has there.
#[derive(Clone)]
struct Point {
    time: f64,
    path_time: f64,
    mode: Arc<str>,
    hold: bool,
}

impl Retimed<'_> {
    /// The retimed path as keys that play as it does within `bound`.
    ///
    /// # Errors
    /// [`CameraError::Setting`] for a bound that is not positive and finite;
    /// [`CameraError::Keys`] where the new clock brings two keys to one time.
    pub fn keys(&self, bound: &KeyBound) -> Result<Rekeyed, CameraError> {
        for (what, value) in
            [("the bound on places", bound.place_m), ("the bound on turning", bound.turn_rad)]
        {
            if !(value.is_finite() && value > 0.0) {
                let expected = "a positive number";
                return Err(CameraError::Setting { what: what.to_owned(), value, expected });
            }
        }
        let mut points = self.old_keys();
        let mut path = self.through(&points)?;
        for _ in 0..ROUNDS {
            let mut next = Vec::with_capacity(points.len());
            for (i, point) in points.iter().enumerate() {
                next.push(point.clone());
                let Some(after) = points.get(i + 1) else { continue };
                let middle = 0.5 * (point.time + after.time);
                let splits = middle > point.time && middle < after.time && !point.hold;
                if splits && !self.within(&path, (point.time, after.time), PLACES, bound) {
                    let path_time = self.path_time(middle);
                    next.push(Point { time: middle, path_time, ..point.clone() });
                }
            }
            if next.len() == points.len() {
                break;
            }
            points = next;
            path = self.through(&points)?;
        }
        let (mut place_m, mut turn_rad) = (0.0_f64, 0.0_f64);
        for pair in points.windows(2).filter(|pair| !pair[0].hold) {
            for time in between((pair[0].time, pair[1].time), FINAL_PLACES) {
                let (place, turn) = apart(&self.pose(time), &path.pose(time));
                (place_m, turn_rad) = (place_m.max(place), turn_rad.max(turn));
            }
        }
        Ok(Rekeyed { path, place_m, turn_rad })
    }

    /// The path's own keys on the new clock, and the end of a closed path.
    fn old_keys(&self) -> Vec<Point> {
        let path = self.path();
        let key = |(i, time): (usize, f64)| {
            let mode = path.modes[i].clone();
            let hold = i < path.spans() && path.span_kind(i) == PathSpan::Cut;
            Point { time, path_time: path.times()[i], mode, hold }
        };
        let mut points: Vec<Point> = self.key_times().into_iter().enumerate().map(key).collect();
        if path.closing_gap().is_some()
            && let Some(last) = points.last().cloned()
        {
            points.push(Point { time: self.duration(), path_time: path.end(), hold: false, ..last });
        }
        // Both ends to the bit; the search that undoes the easing stops just before them.
        if let [first, .., last] = points.as_mut_slice() {
            (first.time, last.time) = (0.0, self.duration());
        }
        points
    }

    fn within(&self, path: &CameraPath, span: (f64, f64), places: usize, bound: &KeyBound) -> bool {
        between(span, places).all(|time| {
            let (place, turn) = apart(&self.pose(time), &path.pose(time));
            place <= bound.place_m && turn <= bound.turn_rad
        })
    }

    /// The natural spline through what the path has at these points.
    fn through(&self, points: &[Point]) -> Result<CameraPath, CameraError> {
        let path = self.path();
        // Angles run on by themselves where the keys' own are flown.
        let plain = path.look_at().is_none() && path.subject().is_none() && !path.has_rotations();
        let with_fov = path.role(Role::Fov).is_some();
        let further: Vec<usize> =
            (0..path.channels().len()).filter(|&k| path.channels()[k].role == Role::Other).collect();
        let mut names = vec!["x", "y", "z"];
        names.extend_from_slice(if plain { &["yaw", "pitch", "roll"] } else { &[] });
        names.extend_from_slice(if with_fov { &["fov"] } else { &[] });
        let mut channels: Vec<Channel> = names.into_iter().map(Channel::new).collect();
        channels.extend(further.iter().map(|&k| path.channels()[k].clone()));
        let keys = points.iter().map(|point| {
            let pose = path.pose(point.path_time);
            let mut values = pose.position.to_vec();
            if plain {
                let angles = path.angles(point.path_time);
                values.extend([angles.yaw, angles.pitch, angles.roll]);
            }
            values.extend(pose.fov);
            values.extend(further.iter().map(|&k| path.curve().component(k, point.path_time)));
            CameraKey {
                mode: point.mode.clone(),
                rotation: (!plain).then_some(pose.rotation),
                hold: point.hold,
                ..CameraKey::new(point.time, values)
            }
        });
        let mut found = CameraPath::new(channels, keys.collect())?;
        let mut modes: Vec<String> = Vec::new();
        for point in points {
            if !modes.iter().any(|m| **m == *point.mode) {
                modes.push(point.mode.to_string());
            }
        }
        found.set_smoothing(Smoothing { modes, unwrap: Unwrap::AsAuthored, ..Smoothing::amount(1.0) })?;
        Ok(found)
    }
}

/// Times between two, at equal distances.
fn between((from, to): (f64, f64), places: usize) -> impl Iterator<Item = f64> {
    (1..=places).map(move |k| from + (to - from) * k as f64 / (places + 1) as f64)
}

/// How far apart two poses are: metres, and the larger of turning and field of view in radians.
fn apart(a: &CameraPose, b: &CameraPose) -> (f64, f64) {
    let place = (0..3).map(|k| (a.position[k] - b.position[k]).powi(2)).sum::<f64>().sqrt();
    let [x, y, z, w] = quat_multiply(quat_conjugate(a.rotation), b.rotation);
    let turn = 2.0 * libm::atan2((x * x + y * y + z * z).sqrt(), w.abs());
    let fov = a.fov.zip(b.fov).map_or(0.0, |(a, b)| (a - b).abs());
    (place, turn.max(fov))
}
