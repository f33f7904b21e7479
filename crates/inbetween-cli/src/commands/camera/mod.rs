//! `camera`: paths smoothed, looked into, turned into slots, and moved between formats.
//!
//! Each subcommand opens a path ([`source`]), flies it as asked ([`fly`]), and gives
//! text, JSON, a file or a report with pictures ([`report`]). Whether smoothing is on
//! when nothing is said is kept in the user's configuration folder ([`settings`]); a
//! file of our own that says how it is flown has the first word.

mod fly;
mod report;
mod settings;
mod source;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use inbetween::camera::{CameraPath, KeyBound, PathStatus, Retimed, Smoothing};
use inbetween_formats::camera::{CameraFormat, CameraOptions, Shots, to_import, write_json, write_shots};
use serde_json::{Value, json};

use crate::output::{Failure, Outcome, print, print_json, say, say_notes, write_file};
use crate::units::{short, show_length};
use fly::{FlyArgs, RetimeArgs};
use settings::SettingsArgs;
pub use source::SourceArgs;

const EXAMPLES: &str = "\
Examples:
  inbetween camera smooth path.xml -o smooth.xml --report path.html
  inbetween camera smooth take.json -o even.glb --even-speed --ease-in 1 --ease-out 1 --fps 60
  inbetween camera status path.xml
  inbetween camera slots path.xml --json
  inbetween camera import camera_path.json -o path.json
  inbetween camera export path.json -o path.csv --fps 30
  inbetween camera settings --on --amount 0.75

Paths are read from this program's own JSON, HLAE campath XML, nerfstudio JSON, TUM text, CSV,
Settlers cutscenes, and from cameras in glTF and FBX; written to all of these but FBX and cutscenes.";

/// Fly camera paths without surges: smooth, report, export
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Camera {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Smooth a path, report what changes, write it
    Smooth(Smooth),
    /// Say how a path is flown: settings, and counts of its segments by camera mode
    Status(Status),
    /// The four-key slots of every segment, for players that keep four keys
    Slots(Slots),
    /// Read a path from any format into this program's own JSON
    Import(ImportPath),
    /// Write a path as it is flown into another format, as keys or as frames
    Export(Export),
    /// Show or change what is kept between calls: whether smoothing is on, and how much
    Settings(SettingsArgs),
}

#[derive(Args)]
struct Smooth {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    fly: FlyArgs,
    #[command(flatten)]
    retime: RetimeArgs,
    #[command(flatten)]
    target: OptionalTarget,
    /// Write a page (.html) or one picture (.svg, .png): the path, speeds and accelerations before and
    /// after, overshoot
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Status {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    fly: FlyArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Slots {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    fly: FlyArgs,
    /// How the player's own builder times its outer slots, shown beside the rewritten ones
    #[arg(long, value_name = "true-time|raw", default_value = "true-time", value_parser = ["true-time", "raw"])]
    timing: String,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ImportPath {
    #[command(flatten)]
    source: SourceArgs,
    /// File to write
    #[arg(short, long, value_name = "OUT.json")]
    output: PathBuf,
}

#[derive(Args)]
struct Export {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    fly: FlyArgs,
    #[command(flatten)]
    retime: RetimeArgs,
    /// File to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct OptionalTarget {
    /// File to write
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct Form {
    /// Format of the output, if its name does not say: json, hlae, nerfstudio, tum, csv, glb, gltf
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Write frames at this rate instead of keys
    #[arg(long, value_name = "R", value_parser = rate)]
    fps: Option<f64>,
    /// How far a retimed path written as keys may be off between them (json, glb, gltf; other formats get
    /// frames)
    #[arg(long, value_name = "LENGTH", value_parser = crate::units::length, default_value = "1mm")]
    key_error: f64,
    /// The same for its rotation and field of view
    #[arg(long, value_name = "ANGLE", value_parser = crate::units::angle, default_value = "0.05deg")]
    key_turn_error: f64,
    /// Length of one unit of the output, such as 1in
    #[arg(long, value_name = "LENGTH", value_parser = crate::units::length)]
    output_unit: Option<f64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = inbetween::FrameRate::parse(text).map_err(|e| e.to_string())?.as_f64();
    if rate > 0.0 { Ok(rate) } else { Err(format!("{text:?} is not a rate above zero")) }
}

impl Camera {
    /// Does what the subcommand says.
    pub fn run(self) -> Outcome {
        match self.what {
            What::Smooth(command) => command.run(),
            What::Status(command) => command.run(),
            What::Slots(command) => command.run(),
            What::Import(command) => command.run(),
            What::Export(command) => command.run(),
            What::Settings(command) => command.run(),
        }
    }
}

impl Smooth {
    fn run(self) -> Outcome {
        let mut source = self.source.open()?;
        // Asking to smooth is turning it on, unless --off says otherwise.
        let mut smoothing = source.smoothing.clone();
        smoothing.on = true;
        self.fly.apply(&mut source.path, smoothing)?;
        let path = &source.path;
        let clock = self.retime.clock(path)?;
        let mut before = path.clone();
        let replay = Smoothing { on: false, ..path.smoothing().clone() };
        before.set_smoothing(replay).map_err(|e| Failure::wrong(e.to_string()))?;
        let facts = report::Facts::of(&before, path, clock.as_ref());
        if let Some(output) = &self.target.output {
            write_path(path, clock.as_ref(), output, &self.target.form, source.rate, &self.source.file)?;
        }
        if let Some(file) = &self.report {
            let heading = self.source.file.display().to_string();
            let drawing = report::Drawing::of(heading, [&before, path], clock.as_ref(), &facts);
            write_file(file, &report_bytes(file, &drawing)?, &[&self.source.file])?;
        }
        let mut document = facts.document(path);
        document["file"] = json!(self.source.file.display().to_string());
        document["format"] = json!(source.format);
        document["output"] = json!(self.target.output.as_ref().map(|o| o.display().to_string()));
        if self.json { print_json(&document) } else { print(&facts.text(path)) }
    }
}

/// The report as a page or as a picture, by the file's name.
fn report_bytes(file: &Path, drawing: &report::Drawing<'_>) -> Result<Vec<u8>, Failure> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    if matches!(extension.as_str(), "html" | "htm") {
        return Ok(drawing.page().into_bytes());
    }
    drawing.file(&extension)?.ok_or_else(|| {
        Failure::wrong(format!(
            "{}: a report is a page (.html) or a picture (.svg, .png); end its name so",
            file.display()
        ))
    })
}

/// The pictures of a camera path as it is flown, .svg or .png: over its replay curve, or over the
/// path in the file `against`.
///
/// # Errors
/// If a file cannot be read as a path, or the extension is another.
pub fn plot(source: SourceArgs, against: Option<SourceArgs>, extension: &str) -> Result<Vec<u8>, Failure> {
    let open = |source: &SourceArgs| -> Result<CameraPath, Failure> {
        let mut opened = source.open()?;
        FlyArgs::default().apply(&mut opened.path, opened.smoothing)?;
        Ok(opened.path)
    };
    let own = open(&source)?;
    let mut heading = source.file.display().to_string();
    let drawn = match &against {
        None => {
            let mut before = own.clone();
            let replay = Smoothing { on: false, ..own.smoothing().clone() };
            before.set_smoothing(replay).map_err(|e| Failure::wrong(e.to_string()))?;
            let facts = report::Facts::of(&before, &own, None);
            report::Drawing::of(heading, [&before, &own], None, &facts).file(extension)?
        }
        Some(other) => {
            let after = open(other)?;
            let facts = report::Facts::of(&own, &after, None);
            heading = format!("{heading} and {}", other.file.display());
            let name = |file: &Path| file.file_name().map_or_else(String::new, |n| n.display().to_string());
            let (mut first, mut second) = (name(&source.file), name(&other.file));
            if first == second {
                (first, second) = (format!("{first}, the first"), format!("{second}, the other"));
            }
            let drawing = report::Drawing {
                heading,
                before: Some((&own, first)),
                after: &after,
                after_name: second,
                clock: None,
                facts: &facts,
            };
            drawing.file(extension)?
        }
    };
    drawn.ok_or_else(|| Failure::wrong(format!("a picture is an .svg or a .png, not .{extension}")))
}

impl Status {
    fn run(self) -> Outcome {
        let mut source = self.source.open()?;
        self.fly.apply(&mut source.path, source.smoothing.clone())?;
        let status = source.path.status();
        if self.json {
            let mut document = status_document(&status, source.path.smoothing());
            document["file"] = json!(self.source.file.display().to_string());
            document["format"] = json!(source.format);
            document["start"] = json!(source.path.start());
            document["end"] = json!(source.path.end());
            return print_json(&document);
        }
        print(&status_text(&status, &source.path))
    }
}

/// Settings and counts as a document.
fn status_document(status: &PathStatus, smoothing: &Smoothing) -> Value {
    let modes: Vec<Value> = status
        .modes
        .iter()
        .map(|m| {
            json!({"mode": m.mode, "built": m.built, "smoothed": m.smoothed, "left": m.left,
                   "straight": m.straight, "cuts": m.cuts})
        })
        .collect();
    json!({
        "settings": settings::document(smoothing),
        "keys": status.keys,
        "modes": modes,
        "not_matching": status.not_matching,
    })
}

/// Settings in words.
fn settings_text(smoothing: &Smoothing) -> String {
    let mut out = format!(
        "smoothing {}, amount {}, modes {}; angles {}; overshoot {}{}\n",
        if smoothing.on { "on" } else { "off" },
        short(smoothing.amount),
        smoothing.modes.join(", "),
        if smoothing.unwrap == inbetween::camera::Unwrap::Shortest { "the short way" } else { "as authored" },
        if smoothing.overshoot == inbetween::camera::Overshoot::Allow { "allowed" } else { "prevented" },
        if smoothing.brake { "" } else { "; no brake" },
    );
    for (channel, amount) in &smoothing.amounts {
        out.push_str(&format!("  {channel}: amount {}\n", short(*amount)));
    }
    out
}

fn status_text(status: &PathStatus, path: &CameraPath) -> String {
    let mut out = settings_text(path.smoothing());
    out.push_str(&format!(
        "{} keys from {} s to {} s{}\n",
        status.keys,
        report::moment(path.start()),
        report::moment(path.end()),
        if path.closing_gap().is_some() { ", closed" } else { "" },
    ));
    for m in &status.modes {
        out.push_str(&format!(
            "mode {}: {} segments built, {} smoothed, {} left alone, {} straight, {} cuts\n",
            m.mode, m.built, m.smoothed, m.left, m.straight, m.cuts
        ));
    }
    out.push_str(&format!("not matching their keys: {}\n", status.not_matching));
    out
}

impl Slots {
    fn run(self) -> Outcome {
        let mut source = self.source.open()?;
        self.fly.apply(&mut source.path, source.smoothing.clone())?;
        let path = &source.path;
        let timing = if self.timing == "raw" {
            inbetween::camera::SlotTiming::Raw
        } else {
            inbetween::camera::SlotTiming::TrueTime
        };
        let mut segments = Vec::new();
        let mut text = String::from("segment\tchannel\tp0\tp1\tp2\tp3\n");
        for i in 0..path.spans() {
            let (start, end) = path.curve().span_times(i);
            let mut slots = serde_json::Map::new();
            for (k, channel) in path.channels().iter().enumerate() {
                let rewritten = path.slots(i, k);
                slots.insert(
                    channel.name.clone(),
                    json!({"slots": rewritten, "k": 0, "own_slots": path.own_slots(i, k, timing)}),
                );
                let [p0, p1, p2, p3] = rewritten;
                text.push_str(&format!("{i}\t{}\t{p0}\t{p1}\t{p2}\t{p3}\n", channel.name));
            }
            segments.push(json!({"index": i, "start": start, "end": end, "channels": slots}));
        }
        if path.has_rotations() {
            say("rotations kept as quaternions have no slots; give the path angles instead");
        }
        if self.json {
            print_json(&json!({"timing": self.timing, "segments": segments}))
        } else {
            print(&text)
        }
    }
}

impl ImportPath {
    fn run(self) -> Outcome {
        let source = self.source.open()?;
        write_file(&self.output, write_json(&source.path).as_bytes(), &[&self.source.file])?;
        print(&format!("{}: {} keys written\n", self.output.display(), source.path.len()))
    }
}

impl Export {
    fn run(self) -> Outcome {
        let mut source = self.source.open()?;
        self.fly.apply(&mut source.path, source.smoothing.clone())?;
        let clock = self.retime.clock(&source.path)?;
        write_path(&source.path, clock.as_ref(), &self.output, &self.form, source.rate, &self.source.file)
    }
}

/// Writes a path to a file: with all it is made of, as shots, or as a clip.
fn write_path(
    path: &CameraPath,
    clock: Option<&Retimed<'_>>,
    output: &Path,
    form: &Form,
    rate: Option<f64>,
    input: &Path,
) -> Outcome {
    let extension = output.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
    let name = form.format.as_deref().unwrap_or(match extension.as_str() {
        "xml" => "hlae",
        "txt" => "tum",
        other => other,
    });
    let file = output.display().to_string();
    let clip = matches!(name, "glb" | "gltf" | "inb");
    // These hold what happens between keys; others leave that to whoever plays them.
    let keyed = clip || CameraFormat::of_name(name) == Some(CameraFormat::Json);
    let rekeyed = match clock {
        Some(clock) if keyed && form.fps.is_none() => Some(keys_of(clock, form, &file)?),
        _ => None,
    };
    let (path, clock) = if let Some(path) = &rekeyed { (path, None) } else { (path, clock) };
    let fps = form.fps.or_else(|| {
        let usual = rate.unwrap_or(60.0);
        clock.map(|_| {
            say(&format!(
                "{file}: a path on another clock is written to this format as {} frames a second",
                short(usual)
            ));
            usual
        })
    });
    if !keyed && fps.is_none() && path.len() > 2 {
        say(&format!(
            "{file}: keys alone; how they are flown, held or straight segments among it, is up to the program that \
             plays them, and --fps writes frames that play as here"
        ));
    }
    let shots = || {
        match (clock, fps) {
            (Some(clock), Some(fps)) => Shots::retimed(path, clock, fps),
            (None, Some(fps)) => Shots::sampled(path, fps),
            (_, None) => Ok(Shots::at_keys(path)),
        }
        .map_err(|e| Failure::wrong(format!("{file}: {e}")))
    };
    if clip {
        let import = match fps {
            None => to_import(path, "camera"),
            Some(_) => to_import(&through(&shots()?)?, "camera"),
        };
        // The writer goes by the extension; --format counts for more.
        let (bytes, notes) = inbetween_formats::export(&import?, &format!("camera.{name}"))?;
        say_notes(&file, &notes, false);
        return write_file(output, &bytes, &[input]);
    }
    let format = CameraFormat::of_name(name).ok_or_else(|| {
        let known: Vec<&str> =
            CameraFormat::ALL.iter().map(|(_, n)| *n).filter(|n| *n != "cutscene").collect();
        Failure::wrong(format!(
            "{file}: its name does not say a format that is written; choose one with --format: {}, glb, gltf",
            known.join(", ")
        ))
    })?;
    if format == CameraFormat::Json && fps.is_none() {
        return write_file(output, write_json(path).as_bytes(), &[input]);
    }
    let options = CameraOptions { unit: form.output_unit, ..CameraOptions::default() };
    let (text, notes) = write_shots(format, &shots()?, &options)?;
    say_notes(&file, &notes, true);
    write_file(output, text.as_bytes(), &[input])
}

/// A path on another clock as keys within the bound, which is told.
fn keys_of(clock: &Retimed<'_>, form: &Form, file: &str) -> Result<CameraPath, Failure> {
    let bound = KeyBound { place_m: form.key_error, turn_rad: form.key_turn_error };
    let found = clock.keys(&bound).map_err(|e| Failure::wrong(e.to_string()))?;
    let off = format!(
        "{file}: {} keys on the new clock, up to {} and {} deg off between them",
        found.path.len(),
        show_length(found.place_m),
        short(found.turn_rad.to_degrees())
    );
    if found.place_m > bound.place_m || found.turn_rad > bound.turn_rad {
        return Err(Failure::Bound(format!(
            "{off}; ask for less with --key-error and --key-turn-error, or write frames with --fps"
        )));
    }
    say(&off);
    Ok(found.path)
}

/// A path through shots, for writers of clips.
fn through(shots: &Shots) -> Result<CameraPath, Failure> {
    let options = CameraOptions::default();
    let (text, _) = write_shots(CameraFormat::Json, shots, &options)?;
    let mut path = inbetween_formats::camera::read_camera(text.as_bytes(), "frames", &options)?.path;
    let smoothing = Smoothing { unwrap: inbetween::camera::Unwrap::AsAuthored, ..Smoothing::amount(1.0) };
    path.set_smoothing(smoothing).map_err(|e| Failure::wrong(e.to_string()))?;
    Ok(path)
}
