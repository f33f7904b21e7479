//! `match bake` and `match info`: clips into a database, and what is in one.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use inbetween::playback::root_motion::guess_root;
use inbetween::seam::{Seam, seam};
use inbetween_match::{BakeReport, Family, Method, MotionDatabase, bake};
use serde_json::{Value, json};

use super::match_group::{open, read_clips, read_schema};
use crate::input::ReadArgs;
use crate::output::{Failure, Outcome, print, print_json, say, write_file};
use crate::progress::Progress;

/// Bake clips into a database of poses, by a schema
#[derive(Args)]
pub struct Bake {
    /// Files with the clips, all of one character
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The schema: a TOML file that says what a pose is described by
    #[arg(long, value_name = "FILE.toml")]
    schema: PathBuf,
    /// The database to write (or, with --check, to look at)
    #[arg(short, long, value_name = "OUT.ibm")]
    output: PathBuf,
    /// Only these clips, by name (or number, with one file)
    #[arg(long, value_name = "NAME")]
    clip: Vec<String>,
    /// Write nothing; say whether the database is what this bake would give (exit 1 if not)
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl Bake {
    /// Reads, bakes, writes, and reads again what was written.
    pub fn run(self) -> Outcome {
        let schema = read_schema(&self.schema)?;
        let (clips, _) = read_clips(&self.files, &self.clip, &self.read)?;
        if self.check {
            return self.stale(&open(&self.output)?.stale(&clips, &schema));
        }
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let bar = Progress::new(clips.len(), "baking");
        let (database, report) = bake(&clips, &schema, threads, &|| bar.step())?;
        drop(bar);
        let inputs: Vec<&std::path::Path> =
            self.files.iter().map(PathBuf::as_path).chain([self.schema.as_path()]).collect();
        write_file(&self.output, &database.to_bytes(), &inputs)?;
        let read = open(&self.output)?;
        if self.json {
            let mut document = document(&read, &self.output);
            document["baked"] = report_document(&report);
            return print_json(&document);
        }
        for clip in &report.clips {
            let mut note = String::new();
            if clip.looped {
                note.push_str(", a loop");
            }
            if clip.do_not_use > 0 {
                let _ = write!(note, ", {} poses marked \"do not use\"", clip.do_not_use);
            }
            if clip.cut > 0 {
                let _ = write!(note, ", {} poses cut at the ends", clip.cut);
            }
            print(&format!("{}: {} rows{note}\n", clip.name, clip.rows))?;
        }
        let loops: Vec<&str> = clips
            .iter()
            .zip(&report.clips)
            .filter(|(_, r)| !r.looped)
            .filter(|(c, _)| seam(&c.clip, guess_root(&c.clip, &c.skeleton)) == Seam::Closed)
            .map(|(_, r)| r.name.as_str())
            .collect();
        if !loops.is_empty() {
            let shown: Vec<&str> = loops.iter().copied().take(6).collect();
            let more = if loops.len() > shown.len() { ", …" } else { "" };
            say(&format!(
                "{} clips end where they begin but are not taken as loops: {}{more}; name those that go round in \
                 `loops` of the schema",
                loops.len(),
                shown.join(", ")
            ));
        }
        if let Some((row, wins)) = report.unreachable.first() {
            say(&format!(
                "{} rows can never be found, since a lower row has the same features: row {row} is like row {wins}{}",
                report.unreachable.len(),
                if report.unreachable.len() > 1 { ", …" } else { "" }
            ));
        }
        for (number, why) in &report.idle_tags {
            say(&format!("tag {number} of the schema marks nothing: {why}"));
        }
        for (channel, column) in &report.constant {
            say(&format!("column {column} of channel {channel} never varies, so it decides nothing"));
        }
        print(&text(&read, &self.output))
    }

    fn stale(&self, reasons: &[String]) -> Outcome {
        if self.json {
            print_json(&json!({"file": self.output, "stale": !reasons.is_empty(), "reasons": reasons}))?;
        }
        if reasons.is_empty() {
            return if self.json {
                Ok(())
            } else {
                print(&format!("{}: up to date\n", self.output.display()))
            };
        }
        Err(Failure::Check(format!(
            "{}: stale: {}; bake it again",
            self.output.display(),
            reasons.join(", ")
        )))
    }
}

/// Show what is in a database
#[derive(Args)]
pub struct Info {
    /// The database
    #[arg(value_name = "FILE.ibm")]
    file: PathBuf,
    /// Print the schema it was baked by, and nothing else
    #[arg(long)]
    schema: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl Info {
    /// Prints it.
    pub fn run(self) -> Outcome {
        let database = open(&self.file)?;
        if self.schema {
            print(database.schema_text())
        } else if self.json {
            print_json(&document(&database, &self.file))
        } else {
            print(&text(&database, &self.file))
        }
    }
}

/// The word for how rows are gone through.
pub fn method(database: &MotionDatabase) -> &'static str {
    match database.method() {
        Method::Tree => "tree of boxes",
        Method::Scan => "scan",
        Method::Plain => "plain loop",
    }
}

fn rows_of(database: &MotionDatabase, clip: usize) -> u32 {
    database.runs().iter().filter(|r| r.clip as usize == clip).map(|r| r.rows).sum()
}

/// Mean, least and greatest of a column, in the units of the bake.
fn spread(database: &MotionDatabase, column: usize) -> (f64, f64, f64) {
    let (mut sum, mut low, mut high) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
    for row in 0..database.len() as u32 {
        let x = f64::from(database.feature(row, column));
        sum += x;
        low = low.min(x);
        high = high.max(x);
    }
    (sum / database.len() as f64, low, high)
}

fn document(database: &MotionDatabase, file: &std::path::Path) -> Value {
    let (rows, index) = database.memory();
    let channels: Vec<Value> = database
        .channels()
        .iter()
        .enumerate()
        .map(|(number, c)| {
            let columns: Vec<Value> = database
                .columns_of(number)
                .zip(&c.columns)
                .map(|(column, name)| {
                    let (mean, low, high) = spread(database, column);
                    let (offset, scale) = database.scale()[column];
                    json!({"name": name, "mean": mean, "min": low, "max": high, "offset": offset, "scale": scale})
                })
                .collect();
            let family = if c.family == Family::Pose { "pose" } else { "path" };
            json!({"name": c.name, "weight": c.weight, "family": family, "columns": columns})
        })
        .collect();
    let clips: Vec<Value> = database
        .clips()
        .iter()
        .enumerate()
        .map(|(number, c)| {
            json!({
                "name": c.name, "file": c.file, "duration": c.duration_s, "loop": c.looped,
                "rows": rows_of(database, number), "content": format!("{:016x}", c.content),
            })
        })
        .collect();
    let mut categories = serde_json::Map::new();
    for bit in 0..32 {
        let count = (0..database.len() as u32).filter(|r| database.tags_of(*r) >> bit & 1 == 1).count();
        if count > 0 {
            categories.insert(bit.to_string(), json!(count));
        }
    }
    json!({
        "file": file, "rows": database.len(), "columns": database.columns(), "channels": channels,
        "clips": clips, "categories": categories, "search": method(database),
        "normalisation": database.options().normalisation, "balance": database.options().balance,
        "row_bytes": rows, "index_bytes": index, "content": format!("{:016x}", database.content_hash()),
    })
}

fn report_document(report: &BakeReport) -> Value {
    let clips: Vec<Value> = report
        .clips
        .iter()
        .map(|c| json!({"name": c.name, "rows": c.rows, "do_not_use": c.do_not_use, "cut": c.cut, "loop": c.looped}))
        .collect();
    json!({
        "clips": clips,
        "unreachable": report.unreachable.iter().map(|(row, wins)| json!({"row": row, "like": wins})).collect::<Vec<_>>(),
        "idle_tags": report.idle_tags.iter().map(|(n, why)| json!({"tag": n, "why": why})).collect::<Vec<_>>(),
        "constant": report.constant.iter().map(|(c, n)| json!({"channel": c, "column": n})).collect::<Vec<_>>(),
    })
}

fn text(database: &MotionDatabase, file: &std::path::Path) -> String {
    let (rows, index) = database.memory();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {} rows of {} columns from {} clips, searched by a {}; rows {:.1} MB, index {:.1} % over them",
        file.display(),
        database.len(),
        database.columns(),
        database.clips().len(),
        method(database),
        rows as f64 / 1e6,
        100.0 * index as f64 / rows as f64
    );
    for (number, channel) in database.channels().iter().enumerate() {
        let _ =
            writeln!(out, "  {}: weight {}, {} columns", channel.name, channel.weight, channel.columns.len());
        for (column, name) in database.columns_of(number).zip(&channel.columns) {
            let (mean, low, high) = spread(database, column);
            let _ = writeln!(
                out,
                "    {name:<12} {low:>9.3} … {high:>8.3}, mean {mean:>7.3}, scaled by {:.4}",
                database.scale()[column].1
            );
        }
    }
    out
}
