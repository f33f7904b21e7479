//! Ops about camera paths: values, smoothness, speeds, overshoot and errors.
//!
//! The input is a neutral description (`camera_path`, or `camera_paths` with several):
//! key times, channels by name, which of them are angles and in what unit, whether
//! turns are kept, and perhaps rotations as quaternions. Values are compared in the
//! description's own units. Amount 1 is the natural spline, 0 the replay curve.

#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a value that is not a number must fail its check")]

use inbetween::camera::{
    CameraError, CameraKey, CameraPath, Channel, Overshoot, Retime, Retimed, Smoothing, Unwrap,
};
use inbetween::spline::Derivative;
use serde_json::Value;

use crate::errors::mentions;
use crate::fields::only;
use crate::subject::{Subject, number};
use crate::{Check, Verdict};

/// The table.
pub const CHECKS: &[(&str, Check)] = &[
    ("camera", |s, c| values(s, c).into()),
    ("camera_mode", |s, c| values(s, c).into()),
    ("camera_mode_range", |s, c| range(s, c).into()),
    ("camera_continuity", |s, c| continuity(s, c).into()),
    ("camera_end_curvature", |s, c| end_curvature(s, c).into()),
    ("camera_speed_below", |s, c| speed_below(s, c).into()),
    ("camera_rotation", |s, c| rotation(s, c).into()),
    ("camera_angular_speed_below", |s, c| angular_speed_below(s, c).into()),
    ("overshoot_report", |s, c| overshoot(s, c).into()),
    ("path_error", path_error),
];

/// The path a check speaks of, as described.
fn described<'a>(subject: &'a Subject, check: &Value) -> Result<&'a Value, String> {
    let input = subject.case.json.as_ref().ok_or("the input is no description of a camera path")?;
    match input.get("paths").and_then(Value::as_array) {
        None => Ok(input),
        Some(paths) => {
            let index = check.get("path").and_then(Value::as_u64).unwrap_or(0) as usize;
            paths.get(index).ok_or_else(|| format!("the input has no path {index}"))
        }
    }
}

/// A setting: the check's own, else the path's.
fn setting<'a>(path: &'a Value, check: &'a Value, key: &str) -> Option<&'a Value> {
    check.get(key).or_else(|| check.get("args").and_then(|a| a.get(key))).or_else(|| path.get(key))
}

/// A number that JSON may have had to write as a word.
fn loose_number(value: &Value) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64().or_else(|| value.is_null().then_some(f64::NAN)),
        Some(word) => match word.to_lowercase().trim_start_matches('+') {
            "nan" => Some(f64::NAN),
            "inf" | "infinity" => Some(f64::INFINITY),
            "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
            other => other.parse().ok(),
        },
    }
}

fn list(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(loose_number).collect()
}

fn rows<const N: usize>(value: &Value) -> Option<Vec<[f64; N]>> {
    value.as_array()?.iter().map(|row| list(row)?.try_into().ok()).collect()
}

/// Why a path could not be made: by the library, or because the description is not
/// understood here.
enum NoPath {
    Refused(CameraError),
    Unclear(String),
}

impl From<CameraError> for NoPath {
    fn from(error: CameraError) -> Self {
        Self::Refused(error)
    }
}

/// Builds the path with the settings of the check. `as_angles`: yaw, pitch and roll
/// are angles whether the description says so or not.
fn build(path: &Value, check: &Value, as_angles: bool) -> Result<CameraPath, NoPath> {
    let unclear = |text: &str| NoPath::Unclear(text.to_owned());
    let settings = [
        "type",
        "times",
        "channels",
        "angles_in",
        "angle_channels",
        "amount",
        "amounts",
        "unwrap",
        "key_modes",
        "modes",
        "brake",
        "closed",
        "loop",
        "periodic",
        "closing_gap",
    ];
    let rows_beside = |v: &Value| v.as_array().and_then(|a| a.first()).is_some_and(Value::is_array);
    let known: Vec<&str> = path
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| rows_beside(v))
        .map(|(k, _)| k.as_str())
        .chain(settings)
        .collect();
    only("the path", path, &known).map_err(NoPath::Unclear)?;
    let times = path.get("times").and_then(list).ok_or_else(|| unclear("the path has no times"))?;
    let full_turn = match path.get("angles_in").and_then(Value::as_str) {
        Some("radians" | "rad") => std::f64::consts::TAU,
        _ => 360.0,
    };
    let angles: Vec<&str> = path
        .get("angle_channels")
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
    let mut channels: Vec<Channel> = Vec::new();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut rotations = None;
    let mut place = |names: [&str; 3], rows: Vec<[f64; 3]>, channels: &mut Vec<Channel>| {
        for (k, name) in names.iter().enumerate() {
            channels.push(Channel::new(*name));
            columns.push(rows.iter().map(|row| row[k]).collect());
        }
    };
    let empty = serde_json::Map::new();
    let named = path.get("channels").and_then(Value::as_object).unwrap_or(&empty);
    let beside = path.as_object().unwrap_or(&empty);
    let mut plain: Vec<(&str, Vec<f64>)> = Vec::new();
    for (name, value) in named.iter().chain(beside) {
        let lower = name.to_lowercase();
        if let Some(found) = rows::<4>(value).filter(|r| !r.is_empty()) {
            // Four numbers a key are a quaternion, whatever they are called.
            rotations = Some(found);
        } else if let Some(found) = rows::<3>(value).filter(|r| !r.is_empty()) {
            let target = lower.contains("target") || lower.contains("look");
            let names = if target { ["target.x", "target.y", "target.z"] } else { ["x", "y", "z"] };
            place(names, found, &mut channels);
        } else if named.contains_key(name) {
            let column =
                list(value).ok_or_else(|| unclear(&format!("channel {name} is no list of numbers")))?;
            plain.push((name, column));
        }
    }
    for (name, column) in plain {
        let channel = Channel::new(name);
        let turns = angles.contains(&name) || (as_angles && channel.role.turns());
        channels.push(if turns { channel.turning(full_turn) } else { channel.plain() });
        columns.push(column);
    }
    let modes: Option<Vec<&str>> = setting(path, check, "key_modes")
        .or_else(|| setting(path, check, "modes"))
        .and_then(Value::as_array)
        .map(|modes| modes.iter().filter_map(Value::as_str).collect());
    let mut keys = Vec::new();
    for (i, &time) in times.iter().enumerate() {
        // A channel that is too short leaves its key without a value, which the path
        // refuses.
        let mut key = CameraKey::new(time, columns.iter().filter_map(|c| c.get(i).copied()).collect());
        key.rotation = rotations.as_ref().and_then(|r| r.get(i).copied());
        if let Some(mode) = modes.as_ref().and_then(|m| m.get(i)) {
            key.mode = (*mode).into();
        }
        keys.push(key);
    }
    if let Some(long) = columns.iter().position(|c| c.len() != times.len()) {
        let (found, keys) = (columns[long].len(), times.len());
        if found > keys {
            return Err(CameraError::Count { what: "values", found, keys }.into());
        }
    }
    let mut gap = setting(path, check, "closing_gap").and_then(Value::as_f64);
    let closed = ["closed", "loop", "periodic"].iter().find_map(|k| setting(path, check, k)?.as_bool());
    if closed == Some(true) && gap.is_none() {
        // The last key is the first again: the way back ends there.
        let same = |a: &CameraKey, b: &CameraKey| a.values == b.values && a.rotation == b.rotation;
        match keys.split_last() {
            Some((last, rest)) if rest.len() > 1 && same(&rest[0], last) => {
                gap = Some(last.time - rest[rest.len() - 1].time);
                keys.pop();
            }
            _ => return Err(unclear("the path is closed, but its last key is not its first")),
        }
    }
    let mut made = CameraPath::new(channels, keys)?;
    if let Some(gap) = gap {
        made.close(Some(gap))?;
    }
    let amount = setting(path, check, "amount").and_then(Value::as_f64);
    let mut smoothing = Smoothing::amount(amount.unwrap_or(1.0));
    if let Some(modes) = &modes {
        smoothing.modes.extend(modes.iter().map(|m| (*m).to_owned()));
    }
    if let Some(amounts) = setting(path, check, "amounts").and_then(Value::as_object) {
        smoothing.amounts.extend(amounts.iter().filter_map(|(n, a)| Some((n.clone(), a.as_f64()?))));
    }
    if let Some(brake) = setting(path, check, "brake").and_then(Value::as_bool) {
        smoothing.brake = brake;
    }
    smoothing.unwrap = match setting(path, check, "unwrap").and_then(Value::as_str) {
        Some("keep_turns" | "as_authored" | "none") => Unwrap::AsAuthored,
        _ => Unwrap::Shortest,
    };
    match check.get("mode").and_then(Value::as_str) {
        None | Some("natural" | "smooth" | "spline") => {}
        Some("no_overshoot" | "monotone") => smoothing.overshoot = Overshoot::Prevent,
        Some("game" | "replay" | "off") => smoothing.on = false,
        Some("even_speed") => {}
        Some(other) => return Err(NoPath::Unclear(format!("mode {other} is not known"))),
    }
    made.set_smoothing(smoothing)?;
    Ok(made)
}

fn open(subject: &Subject, check: &Value, as_angles: bool) -> Result<CameraPath, String> {
    build(described(subject, check)?, check, as_angles).map_err(|e| match e {
        NoPath::Refused(error) => format!("the path is refused: {error}"),
        NoPath::Unclear(text) => text,
    })
}

/// The path at an even speed, where the check asks for that.
fn retimed<'a>(path: &'a CameraPath, check: &Value) -> Result<Option<Retimed<'a>>, String> {
    if check.get("mode").and_then(Value::as_str) != Some("even_speed") {
        return Ok(None);
    }
    let how = Retime { max_turning: None, ..Retime::default() };
    path.retime(&how).map(Some).map_err(|e| e.to_string())
}

/// The time of the path's own clock that a check's `t` means.
fn clock(path: &CameraPath, check: &Value, t: f64) -> Result<f64, String> {
    Ok(retimed(path, check)?.map_or(t, |clock| clock.path_time(t - path.start())))
}

fn tolerance(check: &Value) -> f64 {
    number(check, "tol").unwrap_or(1e-9)
}

fn values(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, false)?;
    let t = clock(&path, check, number(check, "t").ok_or("the check has no t")?)?;
    let wanted = check.get("values").and_then(Value::as_object).ok_or("the check has no values")?;
    let (tol, modulo) = (tolerance(check), number(check, "modulo"));
    for (name, value) in wanted {
        let names: Vec<&str> =
            if value.is_array() && name.starts_with("pos") { vec!["x", "y", "z"] } else { vec![name] };
        let values = list(value).or_else(|| value.as_f64().map(|v| vec![v])).ok_or("a value is no number")?;
        if values.len() != names.len() {
            return Err(format!("{name} has {} numbers", values.len()));
        }
        for (name, wanted) in names.iter().zip(values) {
            let k = path.channel(name).map_err(|e| e.to_string())?;
            let found = path.curve().component(k, t);
            let apart = found - wanted;
            let apart = modulo.map_or(apart, |m| apart - (apart / m).round() * m);
            // Written so that NaN fails.
            if !(apart.abs() <= tol) {
                return Err(format!("{name} at {t} s is {found}, not {wanted} within {tol}"));
            }
        }
    }
    Ok(())
}

fn range(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, false)?;
    let name = check.get("channel").and_then(Value::as_str).ok_or("the check names no channel")?;
    let k = path.channel(name).map_err(|e| e.to_string())?;
    let (t0, t1) = (number(check, "t0").unwrap_or(path.start()), number(check, "t1").unwrap_or(path.end()));
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for i in 0..=4000 {
        let value = path.curve().component(k, t0 + (t1 - t0) * f64::from(i) / 4000.0);
        if value.is_nan() {
            return Err(format!("{name} is not a number"));
        }
        (low, high) = (low.min(value), high.max(value));
    }
    let tol = tolerance(check);
    let holds = number(check, "min").is_none_or(|min| low >= min - tol)
        && number(check, "max").is_none_or(|max| high <= max + tol);
    if holds { Ok(()) } else { Err(format!("{name} goes from {low} to {high}")) }
}

/// The channels a check names; all of them if none.
fn channels(path: &CameraPath, check: &Value) -> Result<Vec<usize>, String> {
    let named: Vec<&str> = match (check.get("channel"), check.get("channels").and_then(Value::as_array)) {
        (Some(one), _) => one.as_str().into_iter().collect(),
        (None, Some(list)) => list.iter().filter_map(Value::as_str).collect(),
        (None, None) => return Ok((0..path.channels().len()).collect()),
    };
    named.iter().map(|name| path.channel(name).map_err(|e| e.to_string())).collect()
}

/// The times a check names under one of `keys`.
fn times(check: &Value, keys: &[&str]) -> Option<Vec<f64>> {
    keys.iter().find_map(|key| {
        let value = check.get(*key)?;
        list(value).or_else(|| value.as_f64().map(|t| vec![t]))
    })
}

/// Velocity and acceleration are the same on both sides of every key.
fn continuity(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, false)?;
    let n = path.len();
    let inner = path.times()[1.min(n - 1)..(n - 1).max(1)].to_vec();
    // Keys by their number, else by their time, else all that have two sides.
    let by_number = times(check, &["key", "keys", "at_key"])
        .map(|list| list.iter().filter_map(|&i| path.times().get(i as usize).copied()).collect());
    let at: Vec<f64> = by_number.or_else(|| times(check, &["t", "times", "at"])).unwrap_or(inner);
    let amount = setting(described(subject, check)?, check, "amount").and_then(Value::as_f64).unwrap_or(1.0);
    let asked =
        ["order", "derivative", "orders", "derivatives", "of", "what"].iter().find_map(|k| check.get(*k));
    let mut orders = Vec::new();
    for value in asked.map_or_else(Vec::new, |v| v.as_array().cloned().unwrap_or_else(|| vec![v.clone()])) {
        match (value.as_u64(), value.as_str()) {
            (Some(0), _) | (_, Some("position" | "value" | "C0")) => orders.push(Derivative::Value),
            (Some(1), _) | (_, Some("velocity" | "speed" | "C1")) => orders.push(Derivative::Velocity),
            (Some(2), _) | (_, Some("acceleration" | "curvature" | "C2")) => {
                orders.push(Derivative::Acceleration)
            }
            _ => return Err(format!("the check asks for {value}, which is not known")),
        }
    }
    if orders.is_empty() {
        orders = vec![Derivative::Value, Derivative::Velocity];
        if amount == 1.0 {
            orders.push(Derivative::Acceleration);
        }
    }
    let allowed = ["tol", "max_jump", "value"].iter().find_map(|k| number(check, k));
    for k in channels(&path, check)? {
        for &t in &at {
            for &what in &orders {
                let (before, after) =
                    (path.curve().derivative(k, t.next_down(), what), path.curve().derivative(k, t, what));
                let allowed =
                    allowed.unwrap_or(1e-6) * if check.get("relative").is_some() { after.abs() } else { 1.0 };
                if !((after - before).abs() <= allowed.max(1e-9 * after.abs())) {
                    let name = &path.channels()[k].name;
                    return Err(format!("{what:?} of {name} jumps from {before} to {after} at {t} s"));
                }
            }
        }
    }
    Ok(())
}

/// Acceleration at the ends: zero, for a natural spline.
fn end_curvature(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, false)?;
    let wanted = number(check, "value").unwrap_or(0.0);
    let both = vec![path.start(), path.end()];
    let at = match check.get("at").or_else(|| check.get("end")).and_then(Value::as_str) {
        Some("start" | "first") => vec![path.start()],
        Some("end" | "last") => vec![path.end()],
        _ => times(check, &["t", "times", "at"]).unwrap_or(both),
    };
    let tol = number(check, "tol").unwrap_or(1e-6);
    for k in channels(&path, check)? {
        for &t in &at {
            let found = path.curve().derivative(k, t, Derivative::Acceleration);
            if !((found - wanted).abs() <= tol) {
                return Err(format!("the acceleration of {} at {t} s is {found}", path.channels()[k].name));
            }
        }
    }
    Ok(())
}

/// The number under the first of `keys`.
fn limit(check: &Value, keys: &[&str]) -> Result<f64, String> {
    keys.iter()
        .find_map(|k| number(check, k))
        .ok_or_else(|| format!("the check has none of {}", keys.join(", ")))
}

/// Times all over the path, and close to either side of each key.
fn everywhere(path: &CameraPath, check: &Value) -> Vec<f64> {
    let (start, end) =
        (number(check, "t0").unwrap_or(path.start()), number(check, "t1").unwrap_or(path.end()));
    let even = (0..=5000).map(|i| start + (end - start) * f64::from(i) / 5000.0);
    let keys = path.times().iter().flat_map(|&t| [t, t.next_down(), t.next_up()]);
    even.chain(keys).filter(|t| (start..=end).contains(t)).collect()
}

fn speed_below(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, false)?;
    let most = limit(
        check,
        &["deg_per_s", "rad_per_s", "m_per_s", "units_per_s", "per_s", "speed", "max", "value"],
    )?;
    let named = check.get("channel").is_some();
    let parts = channels(&path, check)?;
    let even = retimed(&path, check)?;
    for t in everywhere(&path, check) {
        let speed = if let Some(even) = &even {
            even.speed(t - path.start())
        } else if named || check.get("channels").is_some() {
            let square = |&k: &usize| path.curve().derivative(k, t, Derivative::Velocity).powi(2);
            parts.iter().map(square).sum::<f64>().sqrt()
        } else {
            path.speed(t)
        };
        if !(speed <= most) {
            return Err(format!("at {t} s the speed is {speed}"));
        }
    }
    Ok(())
}

fn rotation(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, true)?;
    let t = clock(&path, check, number(check, "t").ok_or("the check has no t")?)?;
    let wanted =
        ["value", "rotation", "quaternion", "quat", "values"].iter().find_map(|k| list(check.get(*k)?));
    let wanted: [f64; 4] = wanted.and_then(|w| w.try_into().ok()).ok_or("the check has no quaternion")?;
    let found = path.pose(t).rotation;
    let cosine: f64 = (0..4).map(|k| found[k] * wanted[k]).sum();
    // A rotation is the same with either sign, whether the check says so or not.
    let sign = if cosine < 0.0 { -1.0 } else { 1.0 };
    let off = (0..4).map(|k| (sign * found[k] - wanted[k]).abs()).fold(0.0, f64::max);
    let angle = 2.0 * cosine.abs().min(1.0).acos().to_degrees();
    let holds = match ["tol_deg", "deg"].iter().find_map(|k| number(check, k)) {
        Some(degrees) => angle <= degrees,
        None => off <= tolerance(check),
    };
    if holds { Ok(()) } else { Err(format!("the rotation at {t} s is {found:?}, {angle} degrees off")) }
}

fn angular_speed_below(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, true)?;
    let most = match number(check, "rad_per_s") {
        Some(radians) => radians,
        None => limit(check, &["deg_per_s", "max", "value"])?.to_radians(),
    };
    let even = retimed(&path, check)?;
    for t in everywhere(&path, check) {
        let rate = even.as_ref().map_or_else(|| path.turning_rate(t), |e| e.turning_rate(t - path.start()));
        if !(rate <= most) {
            return Err(format!("at {t} s it turns at {} degrees per second", rate.to_degrees()));
        }
    }
    Ok(())
}

fn overshoot(subject: &Subject, check: &Value) -> Result<(), String> {
    let path = open(subject, check, false)?;
    let name = check.get("channel").and_then(Value::as_str).ok_or("the check names no channel")?;
    path.channel(name).map_err(|e| e.to_string())?;
    let segment = check.get("segment").and_then(list);
    let report = path.overshoot();
    let mut fitting: Vec<_> = report
        .iter()
        .filter(|o| o.channel == name)
        .filter(|o| segment.as_ref().is_none_or(|s| s.len() == 2 && (o.times.0, o.times.1) == (s[0], s[1])))
        .collect();
    fitting.sort_by(|a, b| b.past.total_cmp(&a.past));
    let wanted = number(check, "value");
    let tol = number(check, "tol").unwrap_or(1e-6);
    match (fitting.first(), wanted) {
        (None, Some(value)) if value.abs() <= tol => Ok(()),
        (None, None) if check.get("none").and_then(Value::as_bool) == Some(true) => Ok(()),
        (None, _) => Err(format!("no overshoot of {name} is reported; all there is: {report:?}")),
        (Some(found), wanted) => {
            let right = wanted.is_none_or(|value| (found.past - value).abs() <= tol);
            let at_tol = number(check, "at_tol").unwrap_or(tol);
            let there = number(check, "at").is_none_or(|at| (found.at - at).abs() <= at_tol);
            if right && there { Ok(()) } else { Err(format!("what is reported is {found:?}")) }
        }
    }
}

fn path_error(subject: &Subject, check: &Value) -> Verdict {
    let path = match described(subject, check) {
        Ok(path) => path,
        Err(why) => return Verdict::Fail(why),
    };
    match build(path, check, false) {
        Ok(_) => Verdict::Fail("the path is accepted".to_owned()),
        Err(NoPath::Unclear(why)) => Verdict::Fail(why),
        Err(NoPath::Refused(error)) => {
            let text = error.to_string();
            Verdict::that(mentions(&text, check), || format!("the error does not say why: {text}"))
        }
    }
}
