//! `match query` and `match explain`: the pose that fits, and why.
//!
//! The question is a row of numbers, a moment of a clip in any file that is read, or a
//! row of the database itself.

use std::path::PathBuf;

use clap::Args;
use inbetween_match::{
    Continuing, Explanation, Filter, Include, MotionDatabase, RowCost, Schema, Scratch, Weights, features_at,
};
use serde_json::{Value, json};

use super::match_group::{open, own_schema, read_clips};
use super::match_page;
use crate::input::ReadArgs;
use crate::output::{Failure, Outcome, print, print_json, write_file};
use crate::units;

/// What both commands ask.
#[derive(Args)]
struct Question {
    /// The database
    #[arg(value_name = "FILE.ibm")]
    database: PathBuf,
    /// The features, one number a column, separated by commas
    #[arg(long, value_name = "X,X,...", allow_hyphen_values = true, group = "question")]
    features: Option<String>,
    /// Ask with a moment of a clip of this file
    #[arg(long, value_name = "FILE", group = "question", requires = "at")]
    from: Option<PathBuf>,
    /// Ask with this row of the database
    #[arg(long, value_name = "ROW", group = "question")]
    like: Option<u32>,
    /// The clip of --from, by name or number
    #[arg(long, value_name = "NAME|INDEX")]
    clip: Option<String>,
    /// The moment of --from, in seconds
    #[arg(long, value_name = "T", value_parser = units::seconds, allow_hyphen_values = true)]
    at: Option<f64>,
    /// Weights of channels in place of the schema's, as NAME=W
    #[arg(long, value_name = "NAME=W")]
    weight: Vec<String>,
    /// Only poses with one of these categories (names of the schema, or bit numbers)
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',')]
    include: Vec<String>,
    /// Poses must have every category of --include
    #[arg(long)]
    all: bool,
    /// No poses with one of these categories
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',')]
    exclude: Vec<String>,
    /// The row that plays now
    #[arg(long, value_name = "ROW")]
    playing: Option<u32>,
    /// What is taken off the cost of the row that plays
    #[arg(long, value_name = "COST", default_value_t = 0.0)]
    bonus: f32,
    /// Seconds around the row that plays that are not looked at
    #[arg(long, value_name = "T", value_parser = units::seconds, default_value = "0")]
    ignore: f64,
    /// How many rows to find
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    k: usize,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// A question, ready to be asked.
struct Ready {
    database: MotionDatabase,
    features: Vec<f32>,
    weights: Vec<f32>,
    filter: Filter,
    continuing: Option<Continuing>,
}

impl Ready {
    fn query(&self) -> inbetween_match::Query<'_> {
        inbetween_match::Query {
            features: &self.features,
            weights: if self.weights.is_empty() { Weights::Schema } else { Weights::Channels(&self.weights) },
            filter: self.filter,
            continuing: self.continuing,
            ..inbetween_match::Query::default()
        }
    }
}

impl Question {
    fn ready(&self) -> Result<Ready, Failure> {
        let database = open(&self.database)?;
        let schema = || own_schema(&database, &self.database);
        let features = self.features(&database, &schema)?;
        let mut weights = Vec::new();
        if !self.weight.is_empty() {
            weights = database.channels().iter().map(|c| c.weight).collect();
            for given in &self.weight {
                let wrong = || {
                    let names: Vec<&str> = database.channels().iter().map(|c| c.name.as_str()).collect();
                    Failure::wrong(format!(
                        "--weight {given:?} is not NAME=W with the name of a channel; they are {}",
                        names.join(", ")
                    ))
                };
                let (name, weight) = given.rsplit_once('=').ok_or_else(wrong)?;
                let at = database.channels().iter().position(|c| c.name == name).ok_or_else(wrong)?;
                weights[at] = weight.parse().map_err(|_| wrong())?;
                if !(weights[at] == 0.0 || (1e-6..=1e6).contains(&weights[at])) {
                    return Err(Failure::wrong(format!(
                        "--weight {given:?}: a weight is 0, or a number between 1e-6 and 1e6"
                    )));
                }
            }
        }
        let bits = |names: &[String]| -> Result<u32, Failure> {
            let mut bits = 0;
            for name in names {
                let bit = match name.parse::<u32>() {
                    Ok(bit) if bit < 32 => Some(1 << bit),
                    _ => schema()?.category(name),
                };
                bits |= bit.ok_or_else(|| {
                    Failure::wrong(format!(
                        "{name:?} is no category of the schema and no bit number, 0 to 31"
                    ))
                })?;
            }
            Ok(bits)
        };
        let filter = Filter {
            include: bits(&self.include)?,
            mode: if self.all { Include::All } else { Include::Any },
            exclude: bits(&self.exclude)?,
        };
        let continuing = match self.playing {
            None => None,
            Some(row) if (row as usize) < database.len() => {
                let interval = database.run_of(row).interval_s;
                let ignore_rows = (self.ignore / interval).ceil().clamp(0.0, 1e9) as u32;
                Some(Continuing { row, bonus: self.bonus, ignore_rows, ..Continuing::default() })
            }
            Some(row) => {
                return Err(Failure::wrong(format!(
                    "row {row} plays now, but the database has {} rows",
                    database.len()
                )));
            }
        };
        Ok(Ready { features, weights, filter, continuing, database })
    }

    fn features(
        &self,
        database: &MotionDatabase,
        schema: &dyn Fn() -> Result<Schema, Failure>,
    ) -> Result<Vec<f32>, Failure> {
        if let Some(text) = &self.features {
            return text
                .split(',')
                .map(|x| {
                    x.trim().parse().map_err(|_| Failure::wrong(format!("--features: {x:?} is no number")))
                })
                .collect();
        }
        if let Some(row) = self.like {
            if row as usize >= database.len() {
                return Err(Failure::wrong(format!(
                    "--like {row}: the database has {} rows",
                    database.len()
                )));
            }
            return Ok((0..database.columns()).map(|c| database.feature(row, c)).collect());
        }
        let (Some(file), Some(at)) = (&self.from, self.at) else {
            return Err(Failure::wrong(
                "say what is asked for: --features, --from FILE --at T, or --like ROW",
            ));
        };
        let names: Vec<String> = self.clip.iter().cloned().collect();
        let (clips, _) = read_clips(std::slice::from_ref(file), &names, &self.read)?;
        let [clip] = &clips[..] else {
            let list: Vec<String> = clips.iter().map(|c| format!("{:?}", c.clip.name)).collect();
            return Err(Failure::wrong(format!(
                "{}: say which clip with --clip; it has {}",
                file.display(),
                list.join(", ")
            )));
        };
        Ok(features_at(clip, &schema()?, at)?)
    }
}

/// Find the pose that fits
#[derive(Args)]
pub struct Query {
    #[command(flatten)]
    question: Question,
}

impl Query {
    /// Prints the rows found, best first.
    pub fn run(self) -> Outcome {
        let ready = self.question.ready()?;
        let mut scratch = Scratch::new();
        let found = ready.database.search_k(&ready.query(), self.question.k, &mut scratch)?.to_vec();
        let winner = found.first().map(|m| m.row);
        let rows: Vec<RowCost> = found
            .iter()
            .map(|m| ready.database.row_cost(m.row, &ready.query(), winner))
            .collect::<Result<_, _>>()?;
        if self.question.json {
            return print_json(
                &json!({"matches": rows.iter().map(|r| row_document(r, &ready.database)).collect::<Vec<_>>()}),
            );
        }
        if rows.is_empty() {
            return print("no pose matches: the categories asked for and excluded admit none\n");
        }
        for row in &rows {
            let side = if row.mirrored { ", mirrored" } else { "" };
            print(&format!(
                "row {}: {} at {:.4} s{side}, cost {:.6}\n",
                row.row, row.clip, row.time_s, row.total
            ))?;
        }
        Ok(())
    }
}

/// Say why a pose fits best, and why others lost
#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    question: Question,
    /// Say why these rows lost
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    why: Vec<u32>,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
}

impl Explain {
    /// Prints the explanation and writes the page.
    pub fn run(self) -> Outcome {
        let ready = self.question.ready()?;
        let query = ready.query();
        let explanation = ready.database.explain(&query, self.question.k.max(3))?;
        let winner = explanation.winner.as_ref().map(|w| w.row);
        let why: Vec<RowCost> = self
            .why
            .iter()
            .map(|row| ready.database.row_cost(*row, &query, winner))
            .collect::<Result<_, _>>()?;
        if let Some(page) = &self.page {
            let schema = own_schema(&ready.database, &self.question.database)?;
            let text = match_page::explanation(&ready.database, &schema, &ready.features, &explanation, &why);
            write_file(page, text.as_bytes(), &[&self.question.database])?;
        }
        if self.question.json {
            return print_json(&document(&explanation, &why, &ready.database));
        }
        print(&explanation.text())?;
        for row in &why {
            print(&format!(
                "row {} ({} at {:.4} s), total {:.6}: {}\n",
                row.row, row.clip, row.time_s, row.total, row.verdict
            ))?;
            for (name, cost) in explanation.channels.iter().zip(&row.channels) {
                print(&format!("    {name:<32} {cost:>12.6}\n"))?;
            }
        }
        Ok(())
    }
}

fn row_document(row: &RowCost, database: &MotionDatabase) -> Value {
    let channels: serde_json::Map<String, Value> = database
        .channels()
        .iter()
        .zip(&row.channels)
        .map(|(channel, cost)| (channel.name.clone(), json!(cost)))
        .collect();
    json!({
        "row": row.row, "clip": row.clip, "time": row.time_s, "mirrored": row.mirrored, "tags": row.tags,
        "cost": row.total, "channels": channels, "extra": row.extra, "bonus": row.bonus,
        "verdict": row.verdict.to_string(),
    })
}

fn document(explanation: &Explanation, why: &[RowCost], database: &MotionDatabase) -> Value {
    let one = |row: &RowCost| row_document(row, database);
    json!({
        "winner": explanation.winner.as_ref().map(one),
        "playing": explanation.continuing.as_ref().map(one),
        "next": explanation.next.iter().map(one).collect::<Vec<_>>(),
        "why": why.iter().map(one).collect::<Vec<_>>(),
        "candidates": explanation.candidates,
        "weights": explanation.channels.iter().cloned().zip(explanation.weights.iter().map(|w| json!(w))).collect::<serde_json::Map<_, _>>(),
    })
}
