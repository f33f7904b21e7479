//! Ops that make something of the file: reduced, compressed, cut, resampled, written and read.
//!
//! Every result is written to a file and read back, and the checks look at what was read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use inbetween::metric::Shell;
use inbetween::reduce::{self, Fate, Options};
use inbetween::{Clip, FrameRate, Property, edit};
use inbetween_codec::{CompressOptions, Library};
use inbetween_formats::{WRITTEN, export};
use serde_json::{Value, json};

use crate::subject::{File, Subject, load};
use crate::values::length_m;
use crate::{Check, Maker, Verdict};

/// The table.
pub const MAKERS: &[(&str, Maker)] = &[
    ("reduce", reduced),
    ("optimize_default", optimize_default),
    ("compress", compressed),
    ("cut", cut),
    ("resample", resample),
    ("rebase_to_zero", rebase_to_zero),
    ("close_loop", close_loop),
    ("round_trip", round_trip),
];

/// Ops about what a result's report says.
pub const CHECKS: &[(&str, Check)] = &[("report_mentions", report_mentions)];

/// A folder of this run's own for what is written.
fn scratch() -> Result<PathBuf, String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cases-{}", std::process::id()));
    let folder = folder.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    Ok(folder)
}

/// The options of an op: in `args`, else beside the op itself.
pub fn option<'a>(check: &'a Value, key: &str) -> Option<&'a Value> {
    check.get("args").and_then(|a| a.get(key)).or_else(|| check.get(key))
}

/// A number among the options of an op.
pub fn option_number(check: &Value, key: &str) -> Option<f64> {
    option(check, key).and_then(Value::as_f64)
}

/// The extension in which a result of this subject is written: the source's own where it can be,
/// else GLB. glTF has no times before 0, so what starts there is kept in the native format.
fn extension(file: &File) -> &'static str {
    let own = file.path.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let own = ["glb", "gltf", "inb"].into_iter().find(|e| *e == own);
    let early = file.house.clips.iter().any(|c| c.start() < 0.0);
    let other = if early { "inb" } else { "glb" };
    [own, Some(other), Some("inb")].into_iter().flatten().find(|e| WRITTEN.contains(e)).unwrap_or("inb")
}

/// The subject with other clips (in the house's units), written as a file and read back.
pub fn reread(subject: &Subject, clips: Vec<Clip>, report: Option<Value>) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    reread_as(subject, clips, report, extension(file))
}

/// As [`reread`], in a format of one's choice.
pub fn reread_as(
    subject: &Subject,
    clips: Vec<Clip>,
    report: Option<Value>,
    extension: &str,
) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let mut import = file.house.clone();
    import.clips = clips;
    let path = scratch().map_err(Verdict::Fail)?.join(format!("out.{extension}"));
    let (bytes, _) =
        export(&import, &path.display().to_string()).map_err(|e| Verdict::Fail(e.to_string()))?;
    std::fs::write(&path, &bytes).map_err(|e| Verdict::Fail(e.to_string()))?;
    let read = load(&path).map_err(|e| Verdict::Fail(format!("what was written does not load: {e}")))?;
    let mut made = File::from_house(read.house, &file.raw, &path, bytes.len() as u64);
    made.house.notes = read.raw.notes;
    Ok(subject.made(made, report))
}

/// The clips of a subject with `change` made to the one the check names, or to all.
fn changed(subject: &Subject, check: &Value, change: impl Fn(&Clip) -> Clip) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let only = match option(check, "clip") {
        Some(wanted) => Some(file.clip_named(wanted).map_err(Verdict::Fail)?),
        None => None,
    };
    let clips = file.house.clips.iter().enumerate();
    let clips = clips.map(|(i, c)| if only.is_none_or(|o| o == i) { change(c) } else { c.clone() });
    reread(subject, clips.collect(), None)
}

fn cut(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let start = option_number(check, "start").unwrap_or(f64::NEG_INFINITY);
    let end = option_number(check, "end").unwrap_or(f64::INFINITY);
    changed(subject, check, |clip| edit::cut(clip, start.max(clip.start()), end.min(clip.end())))
}

/// A rate as a check states it: a number, a text such as 30000/1001, or a ratio.
fn rate(check: &Value) -> Option<FrameRate> {
    let wanted =
        option(check, "rate_hz").or_else(|| option(check, "rate")).or_else(|| option(check, "fps"))?;
    match wanted {
        Value::String(text) => FrameRate::parse(text).ok(),
        Value::Array(pair) => {
            let part = |i: usize| pair.get(i).and_then(Value::as_u64).and_then(|v| u32::try_from(v).ok());
            FrameRate::new(part(0)?, part(1)?)
        }
        other => FrameRate::from_hz(other.as_f64()?, 2e-5),
    }
}

fn resample(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let rate = rate(check).ok_or_else(|| Verdict::Fail("the op states no rate".to_owned()))?;
    changed(subject, check, |clip| inbetween::sample::resample(clip, rate).unwrap_or_else(|_| clip.clone()))
}

fn rebase_to_zero(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    changed(subject, check, edit::rebase_to_zero)
}

fn close_loop(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let stated = option_number(check, "step").or_else(|| option_number(check, "step_s"));
    changed(subject, check, |clip| {
        // Without a step, as long as the clip's own frames are.
        let times = clip.key_times();
        let own = || match clip.rate {
            Some(rate) => rate.time_of(1),
            None => times.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min),
        };
        edit::close_loop(clip, stated.unwrap_or_else(own))
    })
}

/// Writes the file as it is, in its own format or the one the op names, and reads it back.
fn round_trip(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let wanted = ["format", "to", "via"].iter().find_map(|k| option(check, k)).and_then(Value::as_str);
    let own = file.path.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let extension = match wanted {
        Some(name) => name.trim_start_matches('.').to_lowercase(),
        None if WRITTEN.contains(&own.as_str()) => own,
        None => extension(file).to_owned(),
    };
    reread_as(subject, file.house.clips.clone(), None, &extension)
}

/// How large an error an op allows.
struct Allowed {
    /// Metres, if it says.
    length: Option<f64>,
    /// The bare number, for tracks whose unit is no length.
    number: Option<f64>,
    /// Radians, if it says.
    angle: Option<f64>,
    /// True for a bound in the world, false for one a track.
    world: bool,
    /// Metres, if it says.
    shell: Option<f64>,
    looping: bool,
}

/// `0.1deg` as a number of degrees.
fn degrees(text: &str) -> Option<f64> {
    let text = text.trim();
    text.strip_suffix("deg").or_else(|| text.strip_suffix('°'))?.trim().parse().ok()
}

fn allowed(file: &File, check: &Value) -> Result<Allowed, Verdict> {
    let unit = file.metres_per_unit();
    let stated = option(check, "max_error");
    let length = match stated {
        None => None,
        Some(Value::String(word)) if word == "auto" => {
            Some(reduce::auto_error(&file.house.skeleton, &file.house.clips, 0.01))
        }
        // A bound of turns, not of lengths.
        Some(Value::String(word)) if degrees(word).is_some() => None,
        Some(other) => Some(
            length_m(other, unit).ok_or_else(|| Verdict::Fail(format!("{other} is not an error bound")))?,
        ),
    };
    let number = match stated {
        Some(Value::Number(n)) => n.as_f64(),
        Some(_) => length,
        None => None,
    };
    // A bound with a unit is the command's own: a distance in the world. A bare number is a
    // tolerance of each track, unless the op says otherwise.
    let world = match option(check, "metric").and_then(Value::as_str) {
        Some(metric) => metric == "world",
        None => stated.and_then(Value::as_str).is_some_and(|word| degrees(word).is_none()),
    };
    Ok(Allowed {
        length,
        number,
        angle: option_number(check, "max_error_deg")
            .or_else(|| stated.and_then(Value::as_str).and_then(degrees))
            .map(f64::to_radians),
        world,
        shell: option(check, "shell").and_then(|s| length_m(s, unit)),
        looping: option(check, "loop").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// The options of the library for what an op allows.
fn reduce_options(allowed: &Allowed) -> Options {
    let base =
        Options { angle_tolerance: allowed.angle, value_tolerance: allowed.number, ..Options::default() };
    if allowed.world {
        let shell = allowed.shell.map_or(Shell::default(), Shell::Fixed);
        Options { max_error: allowed.length, shell, ..base }
    } else {
        Options { length_tolerance: allowed.length, scale_tolerance: allowed.number, ..base }
    }
}

fn reduced(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let allowed = allowed(file, check)?;
    let mut options = reduce_options(&allowed);
    options.drop_at_rest = option(check, "drop_at_rest").and_then(Value::as_bool).unwrap_or(false);
    options.keys = match option(check, "keys").and_then(Value::as_str) {
        None | Some("linear") => options.keys,
        Some("cubic") => reduce::Keys::Cubic,
        Some("keep") => reduce::Keys::Keep,
        Some(other) => return Err(Verdict::NotBuilt(format!("keys of the kind {other:?}"))),
    };
    let import = &file.house;
    let mut clips = Vec::new();
    let mut text = String::new();
    let mut errors = Vec::new();
    for i in 0..import.clips.len() {
        let reduction = reduce::reduce_one_of(&import.clips, i, &import.skeleton, &options)
            .map_err(|e| Verdict::Fail(e.to_string()))?;
        text.push_str(&format!("{}\n", reduction.report));
        for t in &reduction.report.tracks {
            if let Fate::Flattened { error } = t.fate {
                let length = t.property == "translation";
                let own = if length { error / file.metres_per_unit() } else { error };
                errors.push(json!({"target": t.target, "property": t.property, "error": own}));
            }
        }
        let mut clip = reduction.clip;
        if allowed.looping {
            clip.wrap = inbetween::Wrap::Loop;
        }
        clips.push(clip);
    }
    reread(subject, clips, Some(json!({"text": text, "flattened": errors})))
}

/// The command with nothing but the names of its files.
fn optimize_default(subject: &Subject, _: &Value) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let path = scratch().map_err(Verdict::Fail)?.join(format!("out.{}", extension(file)));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_inbetween"))
        .arg("reduce")
        .arg(&file.path)
        .arg("-o")
        .arg(&path)
        .arg("--json")
        .output()
        .map_err(|e| Verdict::Fail(e.to_string()))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Verdict::Fail(format!("exit {:?}: {why}", output.status.code())));
    }
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| Verdict::Fail(format!("not one JSON document: {e}")))?;
    let read = load(&path).map_err(|e| Verdict::Fail(format!("what was written does not load: {e}")))?;
    let made = File::from_house(read.house, &file.raw, &path, read.size);
    Ok(subject.made(made, Some(report)))
}

/// Compressed, written, read back and played by the decoder.
fn compressed(subject: &Subject, check: &Value) -> Result<Subject, Verdict> {
    let file = subject.file().map_err(Verdict::Fail)?;
    let allowed = allowed(file, check)?;
    let base = CompressOptions::default();
    let shell = match (allowed.world, allowed.shell) {
        (_, Some(shell)) => Shell::Fixed(shell),
        (true, None) => Shell::default(),
        // A tolerance of a scale is one of points 1 m out.
        (false, None) => Shell::Fixed(1.0),
    };
    let options = CompressOptions {
        max_error: allowed.length.unwrap_or(base.max_error),
        max_angle: allowed.angle,
        shell,
        value_error: allowed.number,
        closed: allowed.looping,
        ..base
    };
    let import = &file.house;
    let made = inbetween_codec::compress(&import.skeleton, &import.clips, &options, false)
        .map_err(|e| Verdict::Fail(e.to_string()))?;
    let path = scratch().map_err(Verdict::Fail)?.join("out.ibc");
    std::fs::write(&path, &made.bytes).map_err(|e| Verdict::Fail(e.to_string()))?;
    let bytes = std::fs::read(&path).map_err(|e| Verdict::Fail(e.to_string()))?;
    let library = Library::load(&bytes).map_err(|e| Verdict::Fail(e.to_string()))?;
    let mut house = import.clone();
    house.clips = library.clips.iter().map(|c| c.to_clip(&import.skeleton)).collect();
    let mut result = File::from_house(house, &file.raw, &path, bytes.len() as u64);
    let bindings: Vec<Vec<inbetween::Binding>> =
        result.house.clips.iter().map(|c| c.tracks.iter().map(|t| t.binding.clone()).collect()).collect();
    let clips = library.clips;
    result.player = Some(Box::new(move |clip, track, time| {
        let (decoder, binding) = (&clips[clip], &bindings[clip][track]);
        if let Some(node) = binding.node {
            let pose = |node| decoder.node(time, node).to_model();
            match binding.property {
                Property::Translation => return pose(node).translation.to_array().to_vec(),
                Property::Rotation => return pose(node).rotation.to_array().to_vec(),
                Property::Scale => return pose(node).scale.to_array().to_vec(),
                _ => {}
            }
        }
        let found = decoder.tracks().position(|t| {
            t.binding.node == binding.node
                && t.binding.property == binding.property
                && t.binding.target == binding.target
                && t.binding.path == binding.path
        });
        let Some(index) = found else { return Vec::new() };
        let width = decoder.tracks().nth(index).map_or(0, |t| t.kind.width());
        let mut out = vec![0.0f32; width];
        decoder.value(index, time, &mut out);
        out.into_iter().map(f64::from).collect()
    }));
    Ok(subject.made(result, None))
}

/// Every number in a document.
fn numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(n) => found.extend(n.as_f64()),
        Value::Array(items) => items.iter().for_each(|v| numbers(v, found)),
        Value::Object(map) => map.values().for_each(|v| numbers(v, found)),
        _ => {}
    }
}

fn report_mentions(subject: &Subject, check: &Value) -> Verdict {
    // Of a file that was only loaded, what is said of it are its notes.
    let notes =
        subject.file.as_ref().map(|f| Value::from_iter(f.house.notes.iter().map(ToString::to_string)));
    let report = match (&subject.report, &notes, subject.source.is_none()) {
        (Some(report), ..) => report,
        (None, Ok(notes), true) => notes,
        _ => return Verdict::Fail("there is no report".to_owned()),
    };
    let text = report.to_string().to_lowercase();
    let words: Vec<String> = check
        .get("any")
        .or_else(|| check.get("mentions_any"))
        .and_then(Value::as_array)
        .map(|w| w.iter().filter_map(Value::as_str).map(str::to_lowercase).collect())
        .unwrap_or_default();
    if !words.is_empty() && !words.iter().any(|w| text.contains(w)) {
        return Verdict::Fail(format!("it says none of {words:?}: {report}"));
    }
    let node = check.get("node").and_then(Value::as_str);
    if let Some(node) = node
        && !text.contains(&node.to_lowercase())
    {
        return Verdict::Fail(format!("it does not name {node}: {report}"));
    }
    if let Some(error) = option_number(check, "with_error") {
        let mut found = Vec::new();
        numbers(report, &mut found);
        if !found.iter().any(|v| (v - error).abs() <= 0.01 * error.abs()) {
            return Verdict::Fail(format!("it does not give the error {error}: {report}"));
        }
    }
    Verdict::Pass
}
