//! Ops about what is said of files that break their format, and about what they may cost.

use serde_json::Value;

use crate::probe;
use crate::subject::{Subject, number};
use crate::{Check, Verdict};

/// The table.
pub const CHECKS: &[(&str, Check)] = &[
    ("load_error", load_error),
    ("load_error_or_skip_track", load_error_or_skip_track),
    ("diagnostic", diagnostic),
    ("limits", limits),
    ("clip_lookup_ambiguous", clip_lookup_ambiguous),
];

/// True if `text` has one of `mentions_any` and all of `mentions_all`, ignoring case.
pub fn mentions(text: &str, check: &Value) -> bool {
    let text = text.to_lowercase();
    let words = |key: &str| -> Vec<String> {
        let list = check.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|w| w.as_str().map_or_else(|| w.to_string(), str::to_owned).to_lowercase()).collect()
    };
    let any = words("mentions_any");
    (any.is_empty() || any.iter().any(|w| text.contains(w)))
        && words("mentions_all").iter().all(|w| text.contains(w))
}

fn load_error(subject: &Subject, check: &Value) -> Verdict {
    match &subject.file {
        Ok(_) => Verdict::Fail("it loads".to_owned()),
        Err(text) if text.starts_with("PANIC") => Verdict::Fail(text.clone()),
        Err(text) => Verdict::that(mentions(text, check), || format!("the error does not say why: {text}")),
    }
}

fn notes(subject: &Subject) -> String {
    subject
        .file
        .as_ref()
        .map_or_else(|_| String::new(), |f| f.house.notes.iter().map(|n| format!("{n}\n")).collect())
}

fn load_error_or_skip_track(subject: &Subject, check: &Value) -> Verdict {
    match &subject.file {
        Err(_) => load_error(subject, check),
        Ok(file) => {
            let text = notes(subject);
            if !mentions(&text, check) {
                return Verdict::Fail(format!("it loads and no note says why a track is left out: {text:?}"));
            }
            crate::values::all_values_finite(file, None)
        }
    }
}

fn diagnostic(subject: &Subject, check: &Value) -> Verdict {
    match subject.file() {
        Err(why) => Verdict::Fail(why),
        Ok(_) => {
            let text = notes(subject);
            let said = !text.is_empty() && mentions(&text, check);
            Verdict::that(said, || format!("no note says so; the notes are {text:?}"))
        }
    }
}

/// Loads and samples the file in a process of its own and looks at what that took.
fn limits(subject: &Subject, check: &Value) -> Verdict {
    let path = subject.file.as_ref().map_or(&subject.case.input, |f| &f.path);
    match probe::measure(path, number(check, "seconds").unwrap_or(60.0)) {
        Err(why) => Verdict::Fail(why),
        Ok(cost) => {
            let slow = number(check, "seconds").is_some_and(|most| cost.seconds > most);
            let large = number(check, "rss_mb").is_some_and(|most| cost.rss_mb > most);
            Verdict::that(!slow && !large, || {
                format!("took {:.2} s and {:.0} MiB", cost.seconds, cost.rss_mb)
            })
        }
    }
}

/// Asks the command for the clip by the name that two of them have.
fn clip_lookup_ambiguous(subject: &Subject, check: &Value) -> Verdict {
    let name = ["name", "clip", "value"].iter().find_map(|k| check.get(*k).and_then(Value::as_str));
    let Some(name) = name else { return Verdict::Fail("the check names no clip".to_owned()) };
    if let Some(count) = number(check, "count") {
        let found =
            subject.file().map_or(0, |f| f.house.clips.iter().filter(|c| c.name == name).count()) as f64;
        if found != count {
            return Verdict::Fail(format!("{found} clips are called {name:?}, not {count}"));
        }
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_inbetween"))
        .args(["sample", "--at", "0", "--clip", name, "--json"])
        .arg(&subject.case.input)
        .output();
    match output {
        Err(e) => Verdict::Fail(e.to_string()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let refused =
                output.status.code() == Some(2) && text.contains("ambiguous") && mentions(&text, check);
            Verdict::that(refused, || format!("exit {:?}: {text}", output.status.code()))
        }
    }
}
