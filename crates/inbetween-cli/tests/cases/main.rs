//! The cases: files people had trouble with, and what must come out.
//!
//! `INBETWEEN_CASES=DIR cargo test --test cases -- --nocapture` runs every folder under `DIR`
//! (default: the project's own `testdata/cases` and `testdata/cases-more`) that holds an `expect.json`, prints a line a
//! check and a sum, and fails if a check does. `testdata/cases/SCHEMA.md` says what the checks
//! mean. What a check does follows from its own text alone: no case is known by its name.
//!
//! An op that no table lists fails, unless it stands in [`NOT_BUILT`]; a check with a field that its
//! op does not read is not built either ([`fields`]), so that nothing passes unasked.
//!
//! To add ops: write a file beside this one with `pub const CHECKS` (an op that looks at a
//! subject) or `pub const MAKERS` (an op that makes a new subject on which the checks in its
//! `then` are run), and name it in [`checks`] or [`makers`].

mod camera;
mod errors;
mod facts;
mod fields;
mod matching;
mod playback;
mod probe;
mod results;
mod subject;
mod values;
mod versions;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use subject::{Case, Subject};

/// Ops that are not built yet. Empty is the aim.
const NOT_BUILT: &[&str] = &[];

/// What became of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not, and why.
    Fail(String),
    /// It needs something that is not built.
    NotBuilt(String),
}

impl Verdict {
    /// `Pass` if `holds`, else the reason.
    pub fn that(holds: bool, why: impl FnOnce() -> String) -> Self {
        if holds { Self::Pass } else { Self::Fail(why()) }
    }
}

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Pass,
            Err(why) => Self::Fail(why),
        }
    }
}

/// An op that looks at a subject.
pub type Check = fn(&Subject, &Value) -> Verdict;

/// An op that makes a new subject; an error becomes the op's own verdict.
pub type Maker = fn(&Subject, &Value) -> Result<Subject, Verdict>;

/// All tables of checks.
fn checks() -> impl Iterator<Item = &'static (&'static str, Check)> {
    [
        camera::CHECKS,
        facts::CHECKS,
        values::CHECKS,
        errors::CHECKS,
        versions::CHECKS,
        results::CHECKS,
        playback::CHECKS,
        matching::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// All tables of makers.
fn makers() -> impl Iterator<Item = &'static (&'static str, Maker)> {
    [results::MAKERS, playback::MAKERS].into_iter().flatten()
}

/// Lines printed and the sum of them.
#[derive(Default)]
struct Sum {
    passed: usize,
    failed: usize,
    not_built: usize,
}

impl Sum {
    fn line(&mut self, id: &str, op: &str, verdict: &Verdict) {
        match verdict {
            Verdict::Pass => {
                self.passed += 1;
                println!("PASS {id} {op}");
            }
            Verdict::Fail(why) => {
                self.failed += 1;
                println!("FAIL {id} {op} …{why}");
            }
            Verdict::NotBuilt(why) => {
                self.not_built += 1;
                println!("NOT BUILT {id} {op} …{why}");
            }
        }
    }
}

/// Runs one check and everything in its `then`: a name and a verdict for each.
fn run(subject: &Subject, check: &Value) -> Vec<(String, Verdict)> {
    if let Some(lists) = check.get("one_of").and_then(Value::as_array) {
        let known = ["one_of", "documented_choice", "never", "why", "note"];
        if let Some(key) = check.as_object().and_then(|m| m.keys().find(|k| !known.contains(&k.as_str()))) {
            let why = format!("one_of does not know the field {key}");
            return vec![("one_of".to_owned(), Verdict::NotBuilt(why))];
        }
        let verdict = match one_of(subject, lists) {
            Verdict::Pass => never(subject, lists, check.get("never")),
            other => other,
        };
        return vec![("one_of".to_owned(), verdict)];
    }
    let Some(op) = check.get("op").and_then(Value::as_str) else {
        return vec![("?".to_owned(), Verdict::Fail(format!("a check without an op: {check}")))];
    };
    if let Some(verdict) = fields::unknown(op, check) {
        return vec![(op.to_owned(), verdict)];
    }
    if let Some((_, f)) = checks().find(|(name, _)| *name == op) {
        return vec![(op.to_owned(), guarded(|| f(subject, check)))];
    }
    if let Some((_, make)) = makers().find(|(name, _)| *name == op) {
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| make(subject, check)));
        let made = made.unwrap_or_else(|p| Err(Verdict::Fail(format!("panicked: {}", panic_text(&*p)))));
        return match made {
            Err(verdict) => vec![(op.to_owned(), verdict)],
            Ok(result) => {
                let then = check.get("then").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                if then.is_empty() {
                    return vec![(op.to_owned(), Verdict::Pass)];
                }
                then.iter()
                    .flat_map(|inner| run(&result, inner))
                    .map(|(name, verdict)| (format!("{op}>{name}"), verdict))
                    .collect()
            }
        };
    }
    let verdict = if NOT_BUILT.contains(&op) {
        Verdict::NotBuilt("is on the list of what is not built".to_owned())
    } else {
        Verdict::Fail("is an op that this adaptor does not know".to_owned())
    };
    vec![(op.to_owned(), verdict)]
}

/// Holds if every check of one of the lists does.
fn one_of(subject: &Subject, lists: &[Value]) -> Verdict {
    let mut reasons = Vec::new();
    let mut missing = None;
    for (i, list) in lists.iter().enumerate() {
        let inner: Vec<(String, Verdict)> = list
            .as_array()
            .map_or(std::slice::from_ref(list), Vec::as_slice)
            .iter()
            .flat_map(|check| run(subject, check))
            .collect();
        if inner.iter().all(|(_, v)| *v == Verdict::Pass) {
            return Verdict::Pass;
        }
        let failed = inner.iter().find(|(_, v)| matches!(v, Verdict::Fail(_)));
        match failed {
            Some((name, Verdict::Fail(why))) => reasons.push(format!("[{i}] {name}: {why}")),
            _ => missing = missing.or(inner.into_iter().find(|(_, v)| matches!(v, Verdict::NotBuilt(_)))),
        }
    }
    match missing {
        Some((name, _)) => Verdict::NotBuilt(format!("one of its lists needs {name}")),
        None => Verdict::Fail(reasons.join("; ")),
    }
}

/// The result that is wrong whichever list holds did not come out. It is stated as values, for the
/// op of the lists.
fn never(subject: &Subject, lists: &[Value], wrong: Option<&Value>) -> Verdict {
    let Some(wrong) = wrong else { return Verdict::Pass };
    let first = lists.first().map(|l| l.get(0).unwrap_or(l));
    match first.filter(|c| c.get("op").and_then(Value::as_str) == Some("eval_layers")) {
        None => Verdict::NotBuilt(format!("never {wrong} of something other than layers")),
        Some(check) => {
            let mut check = check.clone();
            check["values"] = wrong.clone();
            let came = run(subject, &check).iter().all(|(_, v)| *v == Verdict::Pass);
            Verdict::that(!came, || format!("it is what must never come: {wrong}"))
        }
    }
}

fn guarded(f: impl FnOnce() -> Verdict) -> Verdict {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
        .unwrap_or_else(|p| Verdict::Fail(format!("panicked: {}", panic_text(&*p))))
}

/// What a panic said.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "without a word".to_owned())
}

/// Folders under `folder` that hold an `expect.json`, by name.
fn find_cases(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        if folder.join("expect.json").is_file() {
            found.push(folder);
            continue;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(entries.map(|e| e.path()).filter(|p| p.is_dir()));
    }
    found.sort();
    found
}

fn main() -> ExitCode {
    if let Some(code) = probe::run_if_asked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        println!("cases: test");
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-') && *a != "cases").collect();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let folders = std::env::var_os("INBETWEEN_CASES")
        .map_or_else(|| vec![own.join("cases"), own.join("cases-more")], |dir| vec![PathBuf::from(dir)]);
    let mut found = Vec::new();
    for folder in folders {
        let here = find_cases(&folder);
        if here.is_empty() {
            println!("FAIL: no case (a folder with an expect.json) under {}", folder.display());
            return ExitCode::FAILURE;
        }
        found.extend(here);
    }
    let mut sum = Sum::default();
    for path in found {
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !filters.is_empty() && !filters.iter().any(|f| id.contains(f.as_str())) {
            continue;
        }
        let case = match Case::open(&path) {
            Ok(case) => case,
            Err(why) => {
                sum.line(&id, "expect.json", &Verdict::Fail(why));
                continue;
            }
        };
        let subject = Subject::load(case);
        let checks = subject.case.expect.get("checks").and_then(Value::as_array).cloned().unwrap_or_default();
        if checks.is_empty() {
            sum.line(&id, "expect.json", &Verdict::Fail("has no checks".to_owned()));
        }
        for check in &checks {
            for (name, verdict) in run(&subject, check) {
                sum.line(&id, &name, &verdict);
            }
        }
    }
    println!("{} passed, {} failed, {} not built", sum.passed, sum.failed, sum.not_built);
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
