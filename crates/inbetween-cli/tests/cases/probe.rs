//! Time and memory of loading and sampling a file, measured in a process of its own.
//!
//! The test program starts itself with a variable set; that child reads the file, samples every
//! clip, and says how much memory it needed at most. So one file's cost is not blurred by the
//! others'.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Names the file to the child.
const VARIABLE: &str = "INBETWEEN_CASES_PROBE";

/// What loading and sampling took.
pub struct Cost {
    /// Wall clock.
    pub seconds: f64,
    /// Most resident memory, MiB.
    pub rss_mb: f64,
}

/// In the child: does the work and says what it took.
pub fn run_if_asked() -> Option<ExitCode> {
    let path = std::env::var_os(VARIABLE)?;
    if let Ok(file) = crate::subject::load(Path::new(&path)) {
        for clip in 0..file.house.clips.len() {
            let (start, end) = (file.house.clips[clip].start(), file.house.clips[clip].end());
            for i in 0..=10 {
                let pose = file.world(clip, start + (end - start) * f64::from(i) / 10.0, false);
                std::hint::black_box(&pose);
            }
        }
    }
    println!("rss_kb {}", peak_kb().unwrap_or(0));
    Some(ExitCode::SUCCESS)
}

/// Peak resident memory of this process in KiB, where the system tells.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Loads and samples `path` in a child; ends it after ten times `seconds`.
pub fn measure(path: &Path, seconds: f64) -> Result<Cost, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let begin = Instant::now();
    let mut child = Command::new(exe)
        .env(VARIABLE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let patience = Duration::from_secs_f64((10.0 * seconds).clamp(1.0, 600.0));
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if begin.elapsed() > patience => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("was not done after {} s", patience.as_secs_f64()));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        std::io::Read::read_to_string(&mut out, &mut text).map_err(|e| e.to_string())?;
    }
    if !status.success() {
        return Err(format!("the process that loads it ended with {status}"));
    }
    let kb: f64 = text
        .lines()
        .find_map(|l| l.strip_prefix("rss_kb "))
        .and_then(|n| n.trim().parse().ok())
        .ok_or("the process that loads it did not say what it took")?;
    Ok(Cost { seconds, rss_mb: kb / 1024.0 })
}
