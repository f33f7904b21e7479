//! What a command gives back: text on standard output, files, and the ways it can fail.
//!
//! A file is written beside its final place and then renamed, so that a stop halfway leaves
//! nothing half-written; an input is never overwritten. A reader that closes the pipe early
//! (`| head`) ends the command quietly.

use std::cell::RefCell;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use inbetween_formats::{FormatError, Import, Note, Severity};

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// A check did not hold.
    Check(String),
    /// The call or an input was wrong.
    Wrong(String),
    /// The bound could not be met.
    Bound(String),
    /// Nobody reads the output any more.
    ClosedPipe,
}

impl Failure {
    /// The exit code it stands for.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Check(_) => 1,
            Self::Wrong(_) => 2,
            Self::Bound(_) => 3,
        }
    }

    /// A wrong call or input, with what to do about it.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self::Wrong(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(text) | Self::Wrong(text) | Self::Bound(text) => f.write_str(text),
            Self::ClosedPipe => f.write_str("the output was closed"),
        }
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

thread_local! {
    /// What [`heard`] has collected so far.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does `work` and also gives back what it wrote to standard output from this thread.
pub fn heard<T>(work: impl FnOnce() -> T) -> (T, String) {
    HEARD.set(Some(String::new()));
    let done = work();
    (done, HEARD.take().unwrap_or_default())
}

/// Writes text to standard output as it is.
///
/// # Errors
/// [`Failure::ClosedPipe`] if nobody reads it.
pub fn print(text: &str) -> Outcome {
    HEARD.with_borrow_mut(|heard| {
        if let Some(heard) = heard {
            heard.push_str(text);
        }
    });
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Failure::ClosedPipe
        } else {
            Failure::Wrong(format!("standard output: {error}"))
        }
    })
}

/// Writes one JSON document to standard output.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_json(document: &serde_json::Value) -> Outcome {
    print(&format!("{document:#}\n"))
}

/// Writes a line to standard error; nobody listening is no failure.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Says the notes of a file on standard error, losses and repairs only unless `all`.
pub fn say_notes(file: &str, notes: &[Note], all: bool) {
    for note in notes.iter().filter(|n| all || n.severity != Severity::Info) {
        let kind = match note.severity {
            Severity::Info => "note",
            Severity::Repaired => "repaired",
            Severity::Lost => "not kept",
        };
        say(&format!("{file}: {kind}: {note}"));
    }
}

/// Writes `bytes` to `path` by way of a file beside it.
///
/// # Errors
/// If `path` is one of `inputs`, or the disk refuses.
pub fn write_file(path: &Path, bytes: &[u8], inputs: &[&Path]) -> Outcome {
    write_beside(path, bytes, inputs, |_| Ok(()))
}

/// Like [`write_file`], but hands what can be read back from the disk to `check` first; the file
/// gets its name only if that is content.
///
/// # Errors
/// As [`write_file`], or what `check` says.
pub fn write_checked<T>(
    path: &Path,
    bytes: &[u8],
    inputs: &[&Path],
    check: impl FnOnce(&[u8]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    write_beside(path, bytes, inputs, |beside| {
        let back = std::fs::read(beside)
            .map_err(|e| Failure::wrong(format!("{}: cannot be read back: {e}", beside.display())))?;
        check(&back)
    })
}

fn write_beside<T>(
    path: &Path,
    bytes: &[u8],
    inputs: &[&Path],
    check: impl FnOnce(&Path) -> Result<T, Failure>,
) -> Result<T, Failure> {
    for input in inputs {
        if same_file(path, input) {
            return Err(Failure::wrong(format!(
                "{} is the file that is read; an input is never overwritten, so give -o another name",
                path.display()
            )));
        }
    }
    let refused =
        |error: std::io::Error| Failure::wrong(format!("{}: cannot be written: {error}", path.display()));
    let mut beside: PathBuf = path.to_owned();
    let name = path
        .file_name()
        .ok_or_else(|| Failure::wrong(format!("{}: is not the name of a file", path.display())))?;
    beside.set_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    let done = std::fs::write(&beside, bytes).map_err(refused).and_then(|()| check(&beside));
    let renamed = done.and_then(|t| std::fs::rename(&beside, path).map_err(refused).map(|()| t));
    if renamed.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    renamed
}

/// Writes an import as the file `path`; its extension says the format. Returns how many bytes it
/// has; what was lost is said on standard error.
///
/// # Errors
/// If the format cannot hold it, or as [`write_file`].
pub fn write_import(path: &Path, import: &Import, inputs: &[&Path]) -> Result<u64, Failure> {
    let name = path.display().to_string();
    refuse_ibc(path)?;
    let (bytes, notes) = inbetween_formats::export(import, &name)?;
    write_file(path, &bytes, inputs)?;
    say_notes(&name, &notes, false);
    Ok(bytes.len() as u64)
}

/// Points to the command that makes compressed clips.
///
/// # Errors
/// If the name is that of one.
pub fn refuse_ibc(path: &Path) -> Result<(), Failure> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("ibc")) {
        return Err(Failure::wrong(format!("{}: `inbetween compress` makes .ibc files", path.display())));
    }
    Ok(())
}

/// True if both names lead to one file.
fn same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::canonicalize(a), std::fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_never_overwritten() {
        let folder = std::env::temp_dir().join(format!("inbetween-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.txt");
        std::fs::write(&file, "source").unwrap();
        let roundabout = folder.join(".").join("a.txt");
        assert!(write_file(&roundabout, b"other", &[&file]).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"source");
        write_file(&folder.join("b.txt"), b"new", &[&file]).unwrap();
        let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing is left beside: {names:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
