//! Why a pose won, and why any other did not.
//!
//! Costs are taken apart by channel from the same normalised numbers the search compares,
//! added in f64; with extra costs and bonus they add up to the search's own total, up to
//! the rounding of its f32 sums (a few parts in ten million).

use std::fmt::Write as _;

use crate::database::{Family, MotionDatabase};
use crate::error::MatchError;
use crate::search::{Query, Scratch};

/// A row's cost, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct RowCost {
    /// The row.
    pub row: u32,
    /// The clip it is from, its time there in seconds, and whether left and right are exchanged.
    pub clip: String,
    /// The clip's time, in seconds.
    pub time_s: f64,
    /// Whether left and right are exchanged.
    pub mirrored: bool,
    /// Its category bits.
    pub tags: u32,
    /// What the search compares.
    pub total: f32,
    /// The part of each channel, in the order of the schema.
    pub channels: Vec<f64>,
    /// What the caller added.
    pub extra: f64,
    /// What was taken off because it plays now.
    pub bonus: f64,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is the answer.
    Won,
    /// It was kept because the minimum dwell is not over.
    Held,
    /// The filter does not admit it, and why.
    Filtered(String),
    /// It lies in the window around the row that plays.
    Window,
    /// It lies in a range the caller ignores.
    Ignored,
    /// The row that plays had to be kept.
    NotYet,
    /// It costs as much as the winner, which has a lower number.
    Tied,
    /// It costs more than the winner, by so much.
    Dearer(f64),
}

/// The answer to "why this pose".
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Names of the channels.
    pub channels: Vec<String>,
    /// The family of each channel.
    pub families: Vec<Family>,
    /// The weight of each channel's columns together, as the query has them.
    pub weights: Vec<f64>,
    /// The row that was found.
    pub winner: Option<RowCost>,
    /// The row that plays now.
    pub continuing: Option<RowCost>,
    /// The rows after the winner, best first.
    pub next: Vec<RowCost>,
    /// Rows the filter, the window and the ignored ranges leave.
    pub candidates: usize,
}

impl MotionDatabase {
    /// The winner, the continuing pose and the next `k` rows, each with its cost by channel.
    ///
    /// # Errors
    /// As [`MotionDatabase::search`].
    pub fn explain(&self, query: &Query<'_>, k: usize) -> Result<Explanation, MatchError> {
        let mut scratch = Scratch::new();
        let found = self.search_k(query, k + 1, &mut scratch)?.to_vec();
        let winner = found.first().map(|m| m.row);
        let cost = |row: u32| self.row_cost(row, query, winner);
        let weights = self.column_weights(&query.weights)?;
        Ok(Explanation {
            channels: self.channels().iter().map(|c| c.name.clone()).collect(),
            families: self.channels().iter().map(|c| c.family).collect(),
            weights: (0..self.channels().len())
                .map(|c| self.columns_of(c).map(|column| f64::from(weights[column])).sum())
                .collect(),
            winner: winner.map(cost).transpose()?,
            continuing: query.continuing.map(|c| cost(c.row)).transpose()?,
            next: found.iter().skip(1).map(|m| cost(m.row)).collect::<Result<_, _>>()?,
            candidates: (0..self.len() as u32).filter(|row| self.is_candidate(*row, query)).count(),
        })
    }

    /// What a row costs by channel and why it is not the answer.
    ///
    /// - `winner`: the row that is.
    ///
    /// # Errors
    /// As [`MotionDatabase::search`], and for a row that does not exist.
    pub fn row_cost(&self, row: u32, query: &Query<'_>, winner: Option<u32>) -> Result<RowCost, MatchError> {
        for asked in std::iter::once(row).chain(winner) {
            if asked as usize >= self.len() {
                return Err(MatchError::NoSuchRow { row: asked, rows: self.len() });
            }
        }
        let (mut features, mut weights) = (Vec::new(), Vec::new());
        self.normalise_query(query, &mut features, &mut weights)?;
        let channels = (0..self.channels().len())
            .map(|channel| {
                self.columns_of(channel)
                    .map(|c| {
                        let d = f64::from(features[c] - self.normalised(row, c));
                        d * d * f64::from(weights[c])
                    })
                    .sum()
            })
            .collect();
        let total = self.total(row, &features, &weights, query);
        let playing = query.continuing.filter(|c| c.row == row);
        let run = self.run_of(row);
        Ok(RowCost {
            row,
            clip: self.clips()[run.clip as usize].name.clone(),
            time_s: run.time_s(row),
            mirrored: run.mirrored,
            tags: self.tags_of(row),
            total,
            channels,
            extra: f64::from(self.extra(row, query)),
            bonus: playing.map_or(0.0, |c| f64::from(c.bonus)),
            verdict: self.verdict(row, total, query, winner, &features, &weights),
        })
    }

    fn verdict(
        &self,
        row: u32,
        total: f32,
        query: &Query<'_>,
        winner: Option<u32>,
        features: &[f32],
        weights: &[f32],
    ) -> Verdict {
        let held = query
            .continuing
            .is_some_and(|c| c.dwelt_s < c.minimum_dwell_s && query.filter.admits(self.tags_of(c.row)));
        if winner == Some(row) {
            return if held { Verdict::Held } else { Verdict::Won };
        }
        if let Some(reason) = query.filter.refusal(self.tags_of(row)) {
            return Verdict::Filtered(reason);
        }
        let plays = query.continuing.is_some_and(|c| c.row == row);
        if !plays && self.window(query).contains(&row) {
            return Verdict::Window;
        }
        if !plays && query.ignore.iter().any(|r| r.contains(&row)) {
            return Verdict::Ignored;
        }
        if held {
            return Verdict::NotYet;
        }
        let least = winner.map_or(f32::INFINITY, |w| self.total(w, features, weights, query));
        if total == least { Verdict::Tied } else { Verdict::Dearer(f64::from(total) - f64::from(least)) }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Won => f.write_str("won"),
            Self::Held => f.write_str("kept: the minimum dwell is not over"),
            Self::Filtered(reason) => write!(f, "not admitted: {reason}"),
            Self::Window => f.write_str("not looked at: in the window around the row that plays"),
            Self::Ignored => f.write_str("not looked at: in an ignored range"),
            Self::NotYet => f.write_str("not looked at: the minimum dwell is not over"),
            Self::Tied => f.write_str("lost the tie: costs the same, but has a higher number"),
            Self::Dearer(by) => write!(f, "lost by {by:.6}"),
        }
    }
}

impl Explanation {
    /// The explanation as a table in text: a line a row, a column a channel.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let rows = self.winner.iter().chain(&self.continuing).chain(&self.next);
        let rows: Vec<(&str, &RowCost)> = rows
            .enumerate()
            .map(|(i, row)| {
                let first = self.winner.is_some() && i == 0;
                let second = self.continuing.is_some() && i == usize::from(self.winner.is_some());
                (
                    if first {
                        "winner"
                    } else if second {
                        "playing"
                    } else {
                        "next"
                    },
                    row,
                )
            })
            .collect();
        if self.winner.is_none() {
            out.push_str("no pose is admitted\n");
        }
        let _ = writeln!(out, "{} candidates", self.candidates);
        for (what, row) in &rows {
            let side = if row.mirrored { ", mirrored" } else { "" };
            let _ = writeln!(
                out,
                "{what}: row {} ({} at {:.4} s{side}), total {:.6}: {}",
                row.row, row.clip, row.time_s, row.total, row.verdict
            );
            let sum: f64 = row.channels.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            for (name, cost) in self.channels.iter().zip(&row.channels) {
                let share = cost / sum;
                let bar = "#".repeat((share * 30.0).round() as usize);
                let _ = writeln!(out, "    {name:<32} {cost:>12.6} {:>5.1} % {bar}", share * 100.0);
            }
            if row.extra != 0.0 {
                let _ = writeln!(out, "    {:<32} {:>12.6}", "extra costs", row.extra);
            }
            if row.bonus != 0.0 {
                let _ = writeln!(out, "    {:<32} {:>12.6}", "bonus for playing", -row.bonus);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::categories::Filter;
    use crate::database::{ChannelColumns, DatabaseOptions, Poses};
    use crate::normalise::Normalisation;
    use crate::search::{Continuing, Extra};

    fn database() -> MotionDatabase {
        let channel = |name: &str| ChannelColumns {
            name: name.into(),
            columns: vec!["x".into(), "z".into()],
            weight: 2.0,
            family: Family::Pose,
        };
        let poses = Poses {
            channels: vec![channel("foot"), channel("path")],
            values: vec![
                0.0, 0.0, 0.0, 0.0, //
                1.0, 0.0, 0.0, 2.0, //
                0.0, 0.0, 0.0, 0.0, //
                3.0, 0.0, 0.0, 0.0, //
                0.5, 0.0, 0.0, 0.0,
            ],
            tags: vec![1, 1, 1, 2, 1],
            ..Poses::default()
        };
        let options = DatabaseOptions { normalisation: Normalisation::Raw, ..DatabaseOptions::default() };
        MotionDatabase::new(poses, options).unwrap()
    }

    #[test]
    fn parts_add_up_to_the_total_with_extras_and_bonus() {
        let db = database();
        let query = Query {
            features: &[0.25, 0.5, 0.125, 1.0],
            continuing: Some(Continuing { row: 1, bonus: 0.25, ..Continuing::default() }),
            extra: Extra { rows: &[0.0, 1.0, 2.0, 3.0, 4.0], tags: &[(1, 0.5)] },
            ..Query::default()
        };
        for row in 0..5 {
            let cost = db.row_cost(row, &query, None).unwrap();
            let sum = cost.channels.iter().sum::<f64>() + cost.extra - cost.bonus;
            assert!((sum - f64::from(cost.total)).abs() < 1e-6, "{cost:?}");
        }
        // Row 1: 0.75² + 0.5² + 0.125² + 1² at a weight of 1 a column.
        let cost = db.row_cost(1, &query, None).unwrap();
        assert_eq!(cost.channels, [0.8125, 1.015_625]);
        assert_eq!((cost.extra, cost.bonus), (1.5, 0.25));
    }

    #[test]
    fn every_row_is_told_why_it_lost() {
        let db = database();
        let last = 4..5;
        let query = Query {
            features: &[0.0, 0.0, 0.0, 0.0],
            filter: Filter { include: 1, ..Filter::default() },
            ignore: std::slice::from_ref(&last),
            ..Query::default()
        };
        let verdict = |row| db.row_cost(row, &query, Some(0)).unwrap().verdict;
        assert_eq!(verdict(0), Verdict::Won);
        assert_eq!(verdict(1), Verdict::Dearer(5.0));
        assert_eq!(verdict(2), Verdict::Tied);
        assert_eq!(verdict(3), Verdict::Filtered("carries none of the asked-for bit 0".into()));
        assert_eq!(verdict(4), Verdict::Ignored);
        let near = Query {
            continuing: Some(Continuing { row: 1, ignore_rows: 1, ..Continuing::default() }),
            ..query
        };
        assert_eq!(db.row_cost(2, &near, Some(1)).unwrap().verdict, Verdict::Window);
    }

    #[test]
    fn an_explanation_names_winner_playing_and_next() {
        let db = database();
        let query = Query {
            features: &[0.9, 0.0, 0.0, 2.0],
            continuing: Some(Continuing { row: 3, ..Continuing::default() }),
            ..Query::default()
        };
        let why = db.explain(&query, 2).unwrap();
        assert_eq!(why.winner.as_ref().unwrap().row, 1);
        assert_eq!(why.continuing.as_ref().unwrap().row, 3);
        assert_eq!(why.next.iter().map(|r| r.row).collect::<Vec<_>>(), [4, 0]);
        assert_eq!(why.weights, [2.0, 2.0]);
        let text = why.text();
        assert!(text.contains("winner: row 1") && text.contains("playing: row 3"), "{text}");
    }
}
