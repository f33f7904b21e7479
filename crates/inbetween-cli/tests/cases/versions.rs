//! Ops that compare the case's file with another version of it, through the command itself.

use std::process::{Command, Output};

use serde_json::Value;

use crate::subject::{Subject, number};
use crate::values::length_m;
use crate::{Check, Verdict};

/// The table.
pub const CHECKS: &[(&str, Check)] = &[("diff", diff), ("ci_check", ci_check)];

/// Runs `inbetween COMMAND input other …`.
fn run(command: &str, subject: &Subject, check: &Value, more: &[String]) -> Result<Output, String> {
    let other = check.get("other").and_then(Value::as_str).ok_or("the check names no other file")?;
    let unit = subject.file.as_ref().map_or(1.0, |f| f.metres_per_unit());
    // Without a word of a shell, a world error is that of the nodes' origins.
    let shell = check.get("shell").and_then(|s| length_m(s, unit)).unwrap_or(0.0);
    let shell = if shell > 0.0 { format!("{shell}m") } else { "0".to_owned() };
    Command::new(env!("CARGO_BIN_EXE_inbetween"))
        .arg(command)
        .arg(&subject.case.input)
        .arg(subject.case.dir.join(other))
        .args(["--shell", &shell])
        .args(more)
        .output()
        .map_err(|e| e.to_string())
}

fn diff(subject: &Subject, check: &Value) -> Verdict {
    let result = run("diff", subject, check, &["--json".to_owned()]).and_then(|output| {
        if output.status.code() != Some(0) {
            return Err(format!(
                "exit {:?}: {}",
                output.status.code(),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        serde_json::from_slice::<Value>(&output.stdout).map_err(|e| format!("not one JSON document: {e}"))
    });
    let found = match result {
        Ok(found) => found,
        Err(why) => return Verdict::Fail(why),
    };
    let clips = found["clips"].as_array().cloned().unwrap_or_default();
    let clip = match check.get("clip") {
        Some(Value::String(name)) => clips.iter().find(|c| c["name"] == **name),
        Some(Value::Number(n)) => n.as_u64().and_then(|i| clips.get(i as usize)),
        _ => clips.iter().max_by(|a, b| {
            let size = |c: &Value| c["worst"]["value"].as_f64().unwrap_or(0.0);
            size(a).total_cmp(&size(b))
        }),
    };
    let Some(clip) = clip else { return Verdict::Fail("the clip was not compared".to_owned()) };
    if let Some(wanted) = check.get("worst") {
        let verdict = same_place(&clip["worst"], wanted, "value", "value");
        if verdict != Verdict::Pass {
            return verdict;
        }
    }
    if let Some(wanted) = check.get("worst_track") {
        // The largest among the tracks of the kind asked for: a metre is no more than a degree.
        let path = wanted.get("path").and_then(Value::as_str);
        let tracks = clip["tracks"].as_array().cloned().unwrap_or_default();
        let of_kind = tracks.iter().filter(|t| path.is_none_or(|p| t["property"] == *p));
        let size = |t: &&Value| t["value"].as_f64().unwrap_or(0.0);
        let Some(worst) = of_kind.max_by(|a, b| size(a).total_cmp(&size(b))) else {
            return Verdict::Fail("no such track was compared".to_owned());
        };
        let verdict = if wanted.get("value_deg").is_some() {
            same_place(worst, wanted, "deg", "value_deg")
        } else {
            same_place(worst, wanted, "value", "value")
        };
        if verdict != Verdict::Pass {
            return verdict;
        }
    }
    for name in
        check.get("same_tracks").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        let same = clip["tracks"].as_array().into_iter().flatten().any(|t| {
            let full =
                format!("{}/{}", t["target"].as_str().unwrap_or(""), t["property"].as_str().unwrap_or(""));
            full == name && t["value"].as_f64() == Some(0.0)
        });
        if !same {
            return Verdict::Fail(format!("{name} is not reported as the same: {}", clip["tracks"]));
        }
    }
    Verdict::Pass
}

/// Compares the target, time and size that were found with those that are wanted.
fn same_place(found: &Value, wanted: &Value, found_key: &str, wanted_key: &str) -> Verdict {
    let name = wanted.get("node").or_else(|| wanted.get("target")).and_then(Value::as_str);
    if let Some(name) = name
        && found["target"] != *name
    {
        return Verdict::Fail(format!("the worst is {found}, not at {name}"));
    }
    let tol = number(wanted, "tol").unwrap_or(1e-6);
    let near = |a: Option<f64>, b: Option<f64>, tol: f64| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= tol,
        (_, None) => true,
        _ => false,
    };
    let t_tol = number(wanted, "t_tol").unwrap_or(1e-5);
    let fits = near(number(found, "time"), number(wanted, "t"), t_tol)
        && near(number(found, found_key), number(wanted, wanted_key), tol);
    Verdict::that(fits, || format!("found {found}, expected {wanted}"))
}

fn ci_check(subject: &Subject, check: &Value) -> Verdict {
    let unit = subject.file.as_ref().map_or(1.0, |f| f.metres_per_unit());
    let limit = check.get("limit").or_else(|| check.get("max_error")).and_then(|v| length_m(v, unit));
    let Some(limit) = limit else { return Verdict::Fail("the check states no limit".to_owned()) };
    let output = match run("check", subject, check, &["--max-error".to_owned(), format!("{limit}m")]) {
        Ok(output) => output,
        Err(why) => return Verdict::Fail(why),
    };
    let code = output.status.code();
    let fits = match check.get("exit_code") {
        Some(Value::String(s)) if s == "zero" => code == Some(0),
        Some(Value::String(s)) if s == "non-zero" => code == Some(1),
        Some(other) => code.map(i64::from) == other.as_i64(),
        None => true,
    };
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let words = check.get("message_mentions").and_then(Value::as_array);
    let missing = words.into_iter().flatten().filter_map(Value::as_str).find(|w| !text.contains(w));
    Verdict::that(fits && missing.is_none(), || format!("exit {code:?}, it says: {text}"))
}
