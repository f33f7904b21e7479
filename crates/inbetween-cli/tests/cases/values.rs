//! Ops about values: tracks, places in the world, loops, and the error against the source.

use inbetween::glam::{DQuat, DVec3};
use inbetween::math::angle_between;
use inbetween::{Property, SpanKind, TrackData};
use serde_json::Value;

use crate::facts::expect_number;
use crate::subject::{File, Subject, comparison_times, find, in_file_units, number, property_of, row};
use crate::{Check, Verdict};

/// The table.
pub const CHECKS: &[(&str, Check)] = &[
    ("sample", sample),
    ("sample_looped", sample_looped),
    ("world_position", world_position),
    ("end_site_position", end_site_position),
    ("world_range", world_range),
    ("loop_gap", loop_gap),
    ("loop_gap_report", loop_gap_report),
    ("values_only_from", values_only_from),
    ("all_finite", all_finite),
    ("max_error_vs_source", max_error_vs_source),
];

/// The time a check speaks of, seconds.
fn time(check: &Value) -> Result<f64, String> {
    // A `time` that is a word says which clock `t` is of; only the file's own is known.
    if let Some(word) = check.get("time").and_then(Value::as_str).filter(|w| *w != "source") {
        return Err(format!("time {word:?} is not known; it may be \"source\""));
    }
    number(check, "t").or_else(|| number(check, "time")).ok_or_else(|| "the check states no t".to_owned())
}

/// What the check asks for at `time`: a property of a node or the value of a track.
pub fn value_at(file: &File, clip: usize, check: &Value, time: f64) -> Result<Vec<f64>, String> {
    let raw = in_file_units(check);
    let path = check.get("path").or_else(|| check.get("property")).and_then(Value::as_str).unwrap_or("");
    let (property, component) = property_of(path);
    let moves = matches!(property, "translation" | "rotation" | "scale");
    let value = if moves && check.get("target").is_none() {
        let node = file.node(check, "node")?;
        let t = file.local(clip, time, raw).joints[node];
        match property {
            "translation" => t.translation.to_array().to_vec(),
            "rotation" => t.rotation.to_array().to_vec(),
            _ => t.scale.to_array().to_vec(),
        }
    } else {
        let track = file.track(clip, check)?.ok_or_else(|| format!("there is no such track: {check}"))?;
        if raw { file.raw_value(clip, track, time) } else { file.value(clip, track, time) }
    };
    match component {
        None => Ok(value),
        Some(c) => value.get(c).map(|v| vec![*v]).ok_or_else(|| format!("the value has no component {c}")),
    }
}

/// Compares a value with the check's `value` (or that under `key`) within its `tol`.
pub fn expect_value(found: &[f64], check: &Value, key: &str) -> Verdict {
    let Some(wanted) = check.get(key).and_then(row) else {
        return Verdict::Fail(format!("the check states no {key}"));
    };
    let tol = number(check, "tol").unwrap_or(1e-6);
    if wanted.len() != found.len() {
        return Verdict::Fail(format!("found {found:?}, expected {wanted:?}"));
    }
    let off = |sign: f64| found.iter().zip(&wanted).map(|(f, w)| (sign * f - w).abs()).fold(0.0, nan_max);
    let either = check.get("either_sign").and_then(Value::as_bool).unwrap_or(false);
    let worst = if either { off(1.0).min(off(-1.0)) } else { off(1.0) };
    Verdict::that(worst <= tol, || {
        format!("found {found:?}, expected {wanted:?} within {tol}, off by {worst}")
    })
}

/// The larger number, where NaN is the largest of all.
fn nan_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}

fn sample(subject: &Subject, check: &Value) -> Verdict {
    let found = subject.file().and_then(|file| value_at(file, file.clip(check)?, check, time(check)?));
    found.map_or_else(Verdict::Fail, |v| expect_value(&v, check, "value"))
}

fn sample_looped(subject: &Subject, check: &Value) -> Verdict {
    let found = subject.file().and_then(|file| {
        let clip = file.clip(check)?;
        let c = &file.house.clips[clip];
        let wrapped = inbetween::Wrap::Loop.apply(time(check)?, c.start(), c.end());
        value_at(file, clip, check, wrapped.time)
    });
    found.map_or_else(Verdict::Fail, |v| expect_value(&v, check, "value"))
}

fn world_position(subject: &Subject, check: &Value) -> Verdict {
    let found = subject.file().and_then(|file| {
        let (node, raw) = (file.node(check, "node")?, in_file_units(check));
        let pose = match check.get("t") {
            Some(_) => file.world(file.clip(check)?, time(check)?, raw),
            None => file.rest_world(raw),
        };
        Ok(pose.joints[node].translation.to_array().to_vec())
    });
    found.map_or_else(Verdict::Fail, |v| expect_value(&v, check, "value"))
}

fn end_site_position(subject: &Subject, check: &Value) -> Verdict {
    let found = subject.file().and_then(|file| {
        let key = if check.get("parent").is_some() { "parent" } else { "node" };
        let (node, raw) = (file.node(check, key)?, in_file_units(check));
        let import = if raw { &file.raw } else { &file.house };
        let nth = check.get("index").and_then(Value::as_u64).unwrap_or(0) as usize;
        let tip = import.skeleton.joints()[node].tips.get(nth).ok_or("the node has no end site")?;
        let pose = file.world(file.clip(check)?, time(check)?, raw);
        Ok(pose.joints[node].transform_point3(*tip).to_array().to_vec())
    });
    found.map_or_else(Verdict::Fail, |v| expect_value(&v, check, "value"))
}

/// The coordinate a check names: `x`, `y`, `z` or 0, 1, 2.
fn coordinate(check: &Value) -> Option<usize> {
    let wanted = ["axis", "coordinate", "component", "coord"].iter().find_map(|k| check.get(*k))?;
    match wanted {
        Value::String(s) => "xyz".find(s.trim_start_matches(['+', '-']).to_lowercase().as_str()),
        other => other.as_u64().map(|v| v as usize).filter(|v| *v < 3),
    }
}

fn world_range(subject: &Subject, check: &Value) -> Verdict {
    let found = subject.file().and_then(|file| {
        let (clip, node, raw) = (file.clip(check)?, file.node(check, "node")?, in_file_units(check));
        let axis = coordinate(check).ok_or("the check names no axis")?;
        let c = &file.house.clips[clip];
        let (t0, t1) = (number(check, "t0").unwrap_or(c.start()), number(check, "t1").unwrap_or(c.end()));
        let mut times = vec![t0, t1];
        times.extend(comparison_times(c).into_iter().filter(|t| (t0..=t1).contains(t)));
        times.extend((0..=1000).map(|i| t0 + (t1 - t0) * f64::from(i) / 1000.0));
        let places: Vec<f64> =
            times.iter().map(|&t| file.world(clip, t, raw).joints[node].translation[axis]).collect();
        let low = places.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(places.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low)
    });
    match found {
        Err(why) => Verdict::Fail(why),
        // A spread that is stated without a tolerance is the most that is allowed.
        Ok(spread) => match (number(check, "max").or_else(|| number(check, "at_most")), number(check, "tol"))
        {
            (None, None) => {
                let most = number(check, "value");
                Verdict::that(most.is_some_and(|m| spread <= m), || {
                    format!("spread {spread}, allowed {most:?}")
                })
            }
            (Some(most), _) => Verdict::that(spread <= most, || format!("spread {spread}, allowed {most}")),
            _ => expect_number(spread, check),
        },
    }
}

/// Last value minus first of the track a check means.
fn gap(subject: &Subject, check: &Value) -> Result<Vec<f64>, String> {
    let file = subject.file()?;
    let clip = file.clip(check)?;
    let c = &file.house.clips[clip];
    let (first, last) = (value_at(file, clip, check, c.start())?, value_at(file, clip, check, c.end())?);
    let sign = if check.get("path").and_then(Value::as_str) == Some("rotation")
        && first.iter().zip(&last).map(|(a, b)| a * b).sum::<f64>() < 0.0
    {
        -1.0
    } else {
        1.0
    };
    Ok(last.iter().zip(&first).map(|(l, f)| sign * l - f).collect())
}

fn loop_gap(subject: &Subject, check: &Value) -> Verdict {
    let gap = match gap(subject, check) {
        Ok(gap) => gap,
        Err(why) => return Verdict::Fail(why),
    };
    let size = gap.iter().map(|v| v * v).sum::<f64>().sqrt();
    if let Some(most) = number(check, "deg") {
        // Of two unit quaternions that far apart.
        let angle = (4.0 * (0.5 * size).min(1.0).asin()).to_degrees();
        let tol = number(check, "tol").unwrap_or(0.0);
        return Verdict::that(angle <= most + tol, || {
            format!("the gap is {angle} degrees, more than {most}")
        });
    }
    if let Some(most) = number(check, "max") {
        return Verdict::that(size <= most, || format!("the gap is {gap:?}, {size} long, more than {most}"));
    }
    match check.get("value") {
        Some(Value::Array(_)) => expect_value(&gap, check, "value"),
        _ => expect_number(size, check),
    }
}

/// The library's own finding about the loop names the track and the size of its gap.
fn loop_gap_report(subject: &Subject, check: &Value) -> Verdict {
    let result = subject.file().and_then(|file| {
        let clip = file.clip(check)?;
        let gaps = inbetween::edit::loop_gaps(&file.raw.clips[clip]);
        let track = match (check.get("node"), check.get("path").or_else(|| check.get("target"))) {
            (None, None) => {
                let worst = gaps.iter().max_by(|a, b| a.size.total_cmp(&b.size));
                worst.map(|g| g.track).ok_or("the clip has no tracks")?
            }
            _ => file.track(clip, check)?.ok_or("there is no such track")?,
        };
        let found = gaps.iter().find(|g| g.track == track).ok_or("the report says nothing of the track")?;
        Ok((found.difference.clone(), found.size))
    });
    if ["mentions", "mentions_any", "mentions_all"].iter().any(|k| check.get(*k).is_some()) {
        let verdict = loop_gap_words(subject, check);
        let more = ["value", "gap", "min"].iter().any(|k| check.get(*k).is_some());
        if verdict != Verdict::Pass || !more {
            return verdict;
        }
    }
    match result {
        Err(why) => Verdict::Fail(why),
        Ok((difference, size)) => match check.get("value").or_else(|| check.get("gap")) {
            Some(Value::Array(_)) => {
                expect_value(&difference, check, if check.get("value").is_some() { "value" } else { "gap" })
            }
            Some(wanted) => {
                let (wanted, tol) =
                    (wanted.as_f64().unwrap_or(f64::NAN), number(check, "tol").unwrap_or(1e-5));
                Verdict::that((size - wanted).abs() <= tol, || format!("the gap is {size}, not {wanted}"))
            }
            None => match number(check, "min") {
                Some(min) => Verdict::that(size >= min, || format!("the gap is {size}, below {min}")),
                None => Verdict::that(size > 0.0, || "no gap was found".to_owned()),
            },
        },
    }
}

/// What the command says of the gap when it is told that the clips loop.
fn loop_gap_words(subject: &Subject, check: &Value) -> Verdict {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_inbetween"))
        .args(["reduce", "--loop", "--max-error", "auto", "-o"])
        .arg(
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gap-{}.glb", std::process::id())),
        )
        .arg(&subject.case.input)
        .output();
    match output {
        Err(e) => Verdict::Fail(e.to_string()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let mut wanted = check.clone();
            if let Some(all) = check.get("mentions") {
                wanted["mentions_all"] = all.clone();
            }
            let said = text.contains("does not close") && crate::errors::mentions(&text, &wanted);
            Verdict::that(said, || format!("the command says: {text}"))
        }
    }
}

fn values_only_from(subject: &Subject, check: &Value) -> Verdict {
    let result = subject.file().and_then(|file| {
        let clip = file.clip(check)?;
        let allowed: Vec<Vec<f64>> = check
            .get("values")
            .and_then(Value::as_array)
            .map(|v| v.iter().filter_map(row).collect())
            .ok_or("the check states no values")?;
        let tol = number(check, "tol").unwrap_or(0.0);
        let c = &file.house.clips[clip];
        let mut times = comparison_times(c);
        times.extend((0..=2000).map(|i| c.start() + c.duration() * f64::from(i) / 2000.0));
        for t in times {
            let found = value_at(file, clip, check, t)?;
            let near = |a: &Vec<f64>| {
                a.len() == found.len() && a.iter().zip(&found).all(|(x, y)| (x - y).abs() <= tol)
            };
            if !allowed.iter().any(near) {
                return Err(format!("at {t} s it is {found:?}"));
            }
        }
        Ok(())
    });
    Verdict::from(result)
}

/// Every track of every clip (or of one) is finite at its keys and between them.
pub fn all_values_finite(file: &File, only: Option<usize>) -> Verdict {
    for (i, clip) in file.house.clips.iter().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i)) {
        let times = comparison_times(clip);
        for (k, track) in clip.tracks.iter().enumerate() {
            for &t in &times {
                let value = file.value(i, k, t);
                if value.iter().any(|v| !v.is_finite()) {
                    let name = &track.binding.target;
                    return Verdict::Fail(format!(
                        "clip {i} {name} {} is {value:?} at {t} s",
                        track.binding.property.name()
                    ));
                }
            }
        }
    }
    Verdict::Pass
}

fn all_finite(subject: &Subject, check: &Value) -> Verdict {
    let file = match subject.file() {
        Ok(file) => file,
        Err(why) => return Verdict::Fail(why),
    };
    let only = match check.get("clip").map(|_| file.clip(check)) {
        Some(Err(why)) => return Verdict::Fail(why),
        Some(Ok(clip)) => Some(clip),
        None => None,
    };
    let verdict = all_values_finite(file, only);
    if verdict != Verdict::Pass {
        return verdict;
    }
    for (i, clip) in file.house.clips.iter().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i)) {
        for t in comparison_times(clip) {
            let pose = file.world(i, t, false);
            if let Some(node) = pose.joints.iter().position(|m| !m.is_finite()) {
                return Verdict::Fail(format!(
                    "clip {i}: node {node} is {:?} in the world at {t} s",
                    pose.joints[node]
                ));
            }
            for node in 0..pose.joints.len() {
                let (trs, _) = pose.decompose(node);
                if !(trs.translation.is_finite() && trs.rotation.is_finite() && trs.scale.is_finite()) {
                    return Verdict::Fail(format!("clip {i}: node {node} is {trs:?} in the world at {t} s"));
                }
            }
        }
    }
    Verdict::Pass
}

/// A length as a check states it, in metres: a number in the file's units, or a text with a unit.
pub fn length_m(value: &Value, metres_per_unit: f64) -> Option<f64> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            // The `e` of 1e-3 is no unit.
            let unit = match unit.strip_prefix(['e', 'E']) {
                Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)) => {
                    rest.trim_start_matches(|c: char| c.is_ascii_digit() || "+-".contains(c))
                }
                _ => unit,
            };
            let split = text.len() - unit.len();
            let factor = match unit.trim() {
                "" => metres_per_unit,
                "um" | "µm" => 1e-6,
                "mm" => 1e-3,
                "cm" => 1e-2,
                "dm" => 1e-1,
                "m" => 1.0,
                "km" => 1e3,
                "in" => 0.0254,
                "ft" => 0.3048,
                "yd" => 0.9144,
                _ => return None,
            };
            text[..split].trim().parse::<f64>().ok().map(|v| v * factor)
        }
        other => other.as_f64().map(|v| v * metres_per_unit),
    }
}

/// Index in `file` of the node or track target that node `node` of `source` is.
fn same_node(source: &File, file: &File, node: usize) -> Option<usize> {
    let (s, f) = (source.house.skeleton.joints(), file.house.skeleton.joints());
    if f.get(node).is_some_and(|j| j.name == s[node].name) {
        return Some(node);
    }
    // Written by another format the numbers may differ; take the same occurrence of the name.
    let nth = (0..node).filter(|&i| s[i].name == s[node].name).count();
    (0..f.len()).filter(|&i| f[i].name == s[node].name).nth(nth)
}

fn max_error_vs_source(subject: &Subject, check: &Value) -> Verdict {
    let (file, source) = match (subject.file(), &subject.source) {
        (Ok(file), Some(source)) => (file, &**source),
        (Err(why), _) => return Verdict::Fail(why),
        _ => return Verdict::Fail("there is no source to compare with".to_owned()),
    };
    if file.house.clips.len() != source.house.clips.len() {
        return Verdict::Fail(format!("{} clips of {}", file.house.clips.len(), source.house.clips.len()));
    }
    let clips = match check.get("clip").map(|_| source.clip(check)) {
        Some(Err(why)) => return Verdict::Fail(why),
        Some(Ok(clip)) => vec![clip],
        None => (0..source.house.clips.len()).collect(),
    };
    for clip in clips {
        let verdict = if check.get("metric").and_then(Value::as_str) == Some("world") {
            world_error(source, file, clip, check)
        } else {
            track_error(source, file, clip, check)
        };
        if verdict != Verdict::Pass {
            return verdict;
        }
    }
    Verdict::Pass
}

/// Times at which a clip of two files is compared: the source's, and those of the result too.
fn both_times(source: &File, file: &File, clip: usize) -> Vec<f64> {
    let _ = file;
    comparison_times(&source.house.clips[clip])
}

fn world_error(source: &File, file: &File, clip: usize, check: &Value) -> Verdict {
    let unit = if in_file_units(check) { source.metres_per_unit() } else { 1.0 };
    let Some(bound) = check.get("value").and_then(|v| length_m(v, unit)) else {
        return Verdict::Fail("the check states no value".to_owned());
    };
    let shell = check.get("shell").and_then(|v| length_m(v, unit)).unwrap_or(0.0);
    let only = match check.get("node").or_else(|| check.get("node_index")).map(|_| source.node(check, "node"))
    {
        Some(Err(why)) => return Verdict::Fail(why),
        Some(Ok(node)) => Some(node),
        None => None,
    };
    // Points that far away in the world at rest, along the node's own axes.
    let rest = source.rest_world(false);
    let points: Vec<Vec<DVec3>> = rest
        .joints
        .iter()
        .map(|m| {
            let mut points = vec![DVec3::ZERO];
            if shell > 0.0 {
                let axes = [
                    (DVec3::X, m.matrix3.x_axis),
                    (DVec3::Y, m.matrix3.y_axis),
                    (DVec3::Z, m.matrix3.z_axis),
                ];
                points.extend(axes.map(|(own, world)| {
                    if world.length() > 1e-9 { own * (shell / world.length()) } else { own * shell }
                }));
            }
            points
        })
        .collect();
    let mut worst = (0.0, String::new());
    for t in both_times(source, file, clip) {
        let (a, b) = (source.world(clip, t, false), file.world(clip, t, false));
        for node in (0..a.joints.len()).filter(|n| only.is_none_or(|o| o == *n)) {
            let name = &source.house.skeleton.joints()[node].name;
            let Some(other) = same_node(source, file, node) else {
                return Verdict::Fail(format!("node {name:?} is gone"));
            };
            for p in &points[node] {
                let d = (a.joints[node].transform_point3(*p) - b.joints[other].transform_point3(*p)).length();
                if nan_max(d, worst.0) > worst.0 {
                    worst = (nan_max(d, 0.0), format!("{name} at {t} s"));
                }
            }
        }
    }
    let stepped = steps_exact(source, file, clip);
    if stepped != Verdict::Pass {
        return stepped;
    }
    // The files hold f32 numbers; a bound that is met to the last bit may lose that bit.
    Verdict::that(worst.0 <= bound * (1.0 + 1e-6), || {
        format!("{} m at {}, more than {bound} m", worst.0, worst.1)
    })
}

/// The track of the result that drives what a track of the source does.
fn same_track(source: &File, file: &File, clip: usize, track: usize) -> Option<usize> {
    let binding = &source.house.clips[clip].tracks[track].binding;
    let tracks = &file.house.clips[clip].tracks;
    match binding.node {
        Some(node) => find(tracks, same_node(source, file, node)?, binding.property.name()),
        None => tracks.iter().position(|t| {
            (t.binding.path.is_some() && t.binding.path == binding.path)
                || (t.binding.target == binding.target && t.binding.property == binding.property)
        }),
    }
}

/// Value of the result where the source has a track: the track's, or what stands there without it.
fn result_value(source: &File, file: &File, clip: usize, track: usize, time: f64) -> Vec<f64> {
    match same_track(source, file, clip, track) {
        Some(other) => file.value(clip, other, time),
        None => source.house.clips[clip].tracks[track].rest.clone(),
    }
}

fn is_stepped(data: &TrackData) -> bool {
    let steps = |c: &inbetween::Curve| {
        c.len() > 1 && (0..c.len() - 1).all(|i| matches!(c.span(i), SpanKind::Step | SpanKind::StepNext))
    };
    let curves = data.curves();
    !curves.is_empty() && curves.iter().all(|c| steps(c))
}

/// Stepped tracks are the same to the last bit an f32 holds.
fn steps_exact(source: &File, file: &File, clip: usize) -> Verdict {
    let times = both_times(source, file, clip);
    for (k, track) in source.house.clips[clip].tracks.iter().enumerate().filter(|(_, t)| is_stepped(&t.data))
    {
        for &t in &times {
            let a = track.value_at(t);
            // A key time that was rounded to f32 may fall a hair after the time asked for.
            let hair = (t.abs() * 1.2e-7).max(1e-9);
            let same = [t, t + hair].iter().any(|&t| {
                let b = result_value(source, file, clip, k, t);
                let sign = if track.binding.property == Property::Rotation
                    && a.iter().zip(&b).map(|(x, y)| x * y).sum::<f64>() < 0.0
                {
                    -1.0
                } else {
                    1.0
                };
                a.iter().zip(&b).all(|(x, y)| (x - sign * y).abs() <= 1.2e-7 * x.abs().max(1e-30))
            });
            if !same {
                let name = &track.binding.target;
                return Verdict::Fail(format!(
                    "step {name} {} differs at {t} s",
                    track.binding.property.name()
                ));
            }
        }
    }
    Verdict::Pass
}

fn track_error(source: &File, file: &File, clip: usize, check: &Value) -> Verdict {
    let own = if in_file_units(check) { source.metres_per_unit() } else { 1.0 };
    let (value, deg) = (check.get("value"), number(check, "deg"));
    if value.is_none() && deg.is_none() {
        return Verdict::Fail("the check states neither value nor deg".to_owned());
    }
    let node = match check.get("node").or_else(|| check.get("node_index")).map(|_| source.node(check, "node"))
    {
        Some(Err(why)) => return Verdict::Fail(why),
        Some(Ok(node)) => Some(node),
        None => None,
    };
    let target = match check.get("target").map(|_| source.track(clip, check)) {
        Some(Err(why)) => return Verdict::Fail(why),
        Some(Ok(None)) => return Verdict::Fail(format!("there is no such track: {check}")),
        Some(Ok(found)) => found,
        None => None,
    };
    let path = check.get("path").or_else(|| check.get("property")).and_then(Value::as_str);
    let mut compared = false;
    for (k, track) in source.house.clips[clip].tracks.iter().enumerate() {
        let meant = node.is_none_or(|n| track.binding.node == Some(n))
            && target.is_none_or(|t| t == k)
            && path.is_none_or(|p| track.binding.property.name() == p);
        if !meant {
            continue;
        }
        compared = true;
        if is_stepped(&track.data) {
            continue;
        }
        let rotation = track.binding.property == Property::Rotation;
        let bound = match (rotation, deg, value) {
            (true, Some(deg), _) => deg,
            (false, _, Some(v)) => {
                let unit = if track.binding.property == Property::Translation { own } else { 1.0 };
                match length_m(v, unit) {
                    Some(bound) => bound,
                    None => return Verdict::Fail(format!("{v} is not a value")),
                }
            }
            _ => continue,
        };
        for t in both_times(source, file, clip) {
            let (a, b) = (track.value_at(t), result_value(source, file, clip, k, t));
            let d = if a.len() != b.len() {
                f64::INFINITY
            } else if rotation {
                angle_between(DQuat::from_slice(&a), DQuat::from_slice(&b).normalize()).to_degrees()
            } else {
                a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
            };
            // As above: the files hold f32 numbers.
            let slack = 1e-6 * bound + 1.2e-7 * a.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            if nan_max(d, 0.0) > bound + slack {
                let name = &track.binding.target;
                return Verdict::Fail(format!(
                    "{name} {} is off by {d} at {t} s, more than {bound}",
                    track.binding.property.name()
                ));
            }
        }
    }
    if !compared && (node.is_some() || path.is_some()) {
        return Verdict::Fail(format!("there is no such track: {check}"));
    }
    steps_exact(source, file, clip)
}
