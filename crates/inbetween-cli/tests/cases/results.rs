//! Ops that make something of the file: reduced, compressed, cut, resampled, written and read.
//!
//! Every result is written to a file and read back, and the checks look at what was read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use inbetween::{Clip, FrameRate, edit};
use inbetween_formats::{WRITTEN, export};
use serde_json::Value;

use crate::subject::{File, Subject, load};
use crate::{Maker, Verdict};

/// The table.
pub const MAKERS: &[(&str, Maker)] = &[
    ("cut", cut),
    ("resample", resample),
    ("rebase_to_zero", rebase_to_zero),
    ("close_loop", close_loop),
    ("round_trip", round_trip),
];

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
/// else GLB.
fn extension(file: &File) -> &'static str {
    let own = file.path.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let own = ["glb", "gltf", "inb"].into_iter().find(|e| *e == own);
    [own, Some("glb"), Some("inb")].into_iter().flatten().find(|e| WRITTEN.contains(e)).unwrap_or("inb")
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
    let wanted = option(check, "format").or_else(|| option(check, "to")).and_then(Value::as_str);
    let own = file.path.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let extension = match wanted {
        Some(name) => name.trim_start_matches('.').to_lowercase(),
        None if WRITTEN.contains(&own.as_str()) => own,
        None => extension(file).to_owned(),
    };
    reread_as(subject, file.house.clips.clone(), None, &extension)
}
