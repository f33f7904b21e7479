//! Poses as rows of features, normalised and ordered for search.
//!
//! A [`MotionDatabase`] takes raw features (in the units of the bake), drops the poses
//! marked "do not use", normalises, orders the rows and boxes them. It is immutable and
//! shared; what a search needs besides is the caller's [`Scratch`](crate::Scratch).
//!
//! Rows are numbered in the order they were given, without the dropped ones; the *runs*
//! say which pose of which clip a row is.

use fearless_simd::{Level, Simd, dispatch};

use crate::categories::DO_NOT_USE;
use crate::error::MatchError;
use crate::normalise::{Normalisation, statistics};
use crate::order::Order;
use crate::rows::{RowFormat, Rows, narrow, widen};
use crate::search::{Method, Query, Weights};
use crate::tree::Tree;

/// Which side of a match a channel speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// What the body does now.
    Pose,
    /// Where it came from and goes.
    Path,
}

/// A channel as the database keeps it: neighbouring columns with one name and one weight.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelColumns {
    /// Its name, as in the schema.
    pub name: String,
    /// One name a column, such as `x`.
    pub columns: Vec<String>,
    /// Its weight.
    pub weight: f32,
    /// Which side of a match it speaks for.
    pub family: Family,
}

/// Rows that follow each other in time in one clip.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Index into [`Poses::clips`].
    pub clip: u32,
    /// Whether left and right are exchanged.
    pub mirrored: bool,
    /// The first row.
    pub first_row: u32,
    /// How many rows.
    pub rows: u32,
    /// Which pose of the clip the first row is, counted from 0 as given.
    pub first_pose: u32,
    /// The clip's time at the first row, in seconds.
    pub start_s: f64,
    /// Seconds from row to row.
    pub interval_s: f64,
}

impl Run {
    /// The clip's time at a row of this run, in seconds.
    #[must_use]
    pub fn time_s(&self, row: u32) -> f64 {
        self.start_s + f64::from(row - self.first_row) * self.interval_s
    }
}

/// A clip that rows were taken from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClipSource {
    /// The clip's name.
    pub name: String,
    /// The file it was read from, as given; empty when it came from no file.
    pub file: String,
    /// Its length in seconds.
    pub duration_s: f64,
    /// Whether it is a loop.
    pub looped: bool,
    /// A hash of what was baked, to tell whether the clip has changed since.
    pub content: u64,
}

/// Raw poses to make a database of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Poses {
    /// The channels, in column order.
    pub channels: Vec<ChannelColumns>,
    /// Rows × columns numbers, row after row, in the units of the bake.
    pub values: Vec<f32>,
    /// One category field a row, or empty for none.
    pub tags: Vec<u32>,
    /// The clips.
    pub clips: Vec<ClipSource>,
    /// Where the rows come from; they cover all rows in order. Empty: one run without a
    /// clip, one second a row.
    pub runs: Vec<Run>,
}

/// How to make a database of poses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatabaseOptions {
    /// How columns are made comparable.
    pub normalisation: Normalisation,
    /// How rows are kept.
    pub format: RowFormat,
    /// Whether a channel's weight is divided over its columns, so that many columns do
    /// not drown few. On by default.
    pub balance: bool,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { normalisation: Normalisation::default(), format: RowFormat::default(), balance: true }
    }
}

/// Feature rows of many poses, ready to be searched.
#[derive(Debug, Clone)]
pub struct MotionDatabase {
    pub(crate) channels: Vec<ChannelColumns>,
    pub(crate) options: DatabaseOptions,
    /// Offset and scale of each column.
    pub(crate) scale: Vec<(f64, f64)>,
    pub(crate) clips: Vec<ClipSource>,
    pub(crate) runs: Vec<Run>,
    /// By row; empty when no row has a category.
    pub(crate) tags: Vec<u32>,
    pub(crate) rows: Rows,
    pub(crate) order: Order,
    pub(crate) tree: Tree,
    /// The schema it was baked by; empty when it was made of bare numbers.
    pub(crate) schema: String,
}

/// Fewest rows for which the tree is used; below, going through all blocks is as fast.
const TREE_FROM: usize = 1024;

impl MotionDatabase {
    /// Normalises, orders and boxes the poses that are not marked "do not use".
    ///
    /// # Errors
    /// No channel or column, lists of the wrong length, numbers that are not finite,
    /// weights that cannot be used, or no row left.
    pub fn new(mut poses: Poses, options: DatabaseOptions) -> Result<Self, MatchError> {
        let columns: usize = poses.channels.iter().map(|c| c.columns.len()).sum();
        if columns == 0 {
            return Err(MatchError::Schema(
                "there is no feature: name at least one channel, such as root_velocity".into(),
            ));
        }
        if let Some(empty) = poses.channels.iter().find(|c| c.columns.is_empty()) {
            return Err(MatchError::Schema(format!("channel {} has no column", empty.name)));
        }
        if !poses.values.len().is_multiple_of(columns) {
            return Err(MatchError::Length {
                what: "the list of features",
                expected: poses.values.len().next_multiple_of(columns),
                found: poses.values.len(),
            });
        }
        let given = poses.values.len() / columns;
        if u32::try_from(given).is_err() {
            return Err(MatchError::Bake(format!("{given} rows are more than 2³² − 1")));
        }
        if !poses.tags.is_empty() && poses.tags.len() != given {
            return Err(MatchError::Length {
                what: "the list of category fields",
                expected: given,
                found: poses.tags.len(),
            });
        }
        let bad = |value: &f32| value.is_nan() || value.abs() > 1e18;
        for (first, some) in poses.values.chunks(4096).enumerate() {
            // Without a way out of the loop, it runs over many numbers at once.
            if some.iter().fold(false, |any, value| any | bad(value))
                && let Some(at) = some.iter().position(bad)
            {
                let at = first * 4096 + at;
                let value = poses.values[at];
                return Err(MatchError::BadFeature { row: at / columns, column: at % columns, value });
            }
        }
        if poses.runs.is_empty() {
            poses.runs.push(Run {
                clip: 0,
                mirrored: false,
                first_row: 0,
                rows: given as u32,
                first_pose: 0,
                start_s: 0.0,
                interval_s: 1.0,
            });
        }
        if poses.clips.is_empty() {
            poses.clips.push(ClipSource::default());
        }
        check_runs(&poses, given)?;
        drop_unusable(&mut poses, columns);
        let Poses { channels, mut values, mut tags, clips, runs } = poses;
        let count = values.len() / columns;
        if count == 0 {
            return Err(MatchError::NoRows(format!("{given} poses were given, all dropped")));
        }
        if tags.iter().all(|t| *t == 0) {
            tags.clear();
        }

        let widths: Vec<usize> = channels.iter().map(|c| c.columns.len()).collect();
        let scale = statistics(&values, columns, &widths, options.normalisation);
        // A product where a quotient would do: a division a number is half the time of a build.
        let inverse: Vec<(f64, f64)> = scale.iter().map(|(o, s)| (*o, 1.0 / s)).collect();
        dispatch!(Level::new(), s => s.vectorize(
            #[inline(always)]
            || {
                for row in values.chunks_exact_mut(columns) {
                    for (value, (offset, inverse)) in row.iter_mut().zip(&inverse) {
                        *value = ((f64::from(*value) - offset) * inverse) as f32;
                    }
                }
            }
        ));
        if options.format == RowFormat::F16 {
            values.iter_mut().for_each(|v| *v = widen(narrow(*v)));
        }
        let given: Vec<f32> = channels.iter().map(|c| c.weight).collect();
        let mut weights = Vec::new();
        spread(&channels, &given, options.balance, &mut weights);
        check_weights(&weights)?;
        // Boxes are aligned with the weights as baked; where all are 0, any will do.
        if weights.iter().all(|w| *w == 0.0) {
            weights.fill(1.0);
        }
        let groups = axis_groups(&channels);
        let (tree, order) = Tree::new(&values, columns, &groups, &weights, &tags);
        let rows = Rows::new(options.format, count, columns, |slot| {
            &values[order[slot] as usize * columns..][..columns]
        });
        Ok(Self {
            channels,
            options,
            scale,
            clips,
            runs,
            tags,
            rows,
            order: Order::new(&order),
            tree,
            schema: String::new(),
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Never true: a database holds at least one row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.scale.len()
    }

    /// The channels, in column order.
    #[must_use]
    pub fn channels(&self) -> &[ChannelColumns] {
        &self.channels
    }

    /// The columns of a channel.
    #[must_use]
    pub fn columns_of(&self, channel: usize) -> std::ops::Range<usize> {
        let first = self.channels[..channel].iter().map(|c| c.columns.len()).sum();
        first..first + self.channels[channel].columns.len()
    }

    /// How the database was made.
    #[must_use]
    pub fn options(&self) -> DatabaseOptions {
        self.options
    }

    /// Offset and scale of each column: a normalised feature is (x − offset) ÷ scale.
    #[must_use]
    pub fn scale(&self) -> &[(f64, f64)] {
        &self.scale
    }

    /// The clips rows were taken from.
    #[must_use]
    pub fn clips(&self) -> &[ClipSource] {
        &self.clips
    }

    /// Which rows are which poses.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The run a row belongs to.
    ///
    /// # Panics
    /// When the row does not exist.
    #[must_use]
    pub fn run_of(&self, row: u32) -> &Run {
        assert!((row as usize) < self.len(), "row {row} of {}", self.len());
        &self.runs[self.runs.partition_point(|r| r.first_row + r.rows <= row)]
    }

    /// The category bits of a row.
    #[inline(always)]
    #[must_use]
    pub fn tags_of(&self, row: u32) -> u32 {
        if self.tags.is_empty() { 0 } else { self.tags[row as usize] }
    }

    /// A row's feature in the units of the bake (rounded as the rows are kept).
    #[must_use]
    pub fn feature(&self, row: u32, column: usize) -> f32 {
        let (offset, scale) = self.scale[column];
        (f64::from(self.normalised(row, column)) * scale + offset) as f32
    }

    /// A row's feature as the search compares it.
    #[must_use]
    pub fn normalised(&self, row: u32, column: usize) -> f32 {
        self.rows.value(self.order.slot(row), column, self.columns())
    }

    /// The text of the schema it was baked by; empty when it was made of bare numbers.
    #[must_use]
    pub fn schema_text(&self) -> &str {
        &self.schema
    }

    /// The structure searches use: chosen by the number of rows.
    #[must_use]
    pub fn method(&self) -> Method {
        if self.len() >= TREE_FROM { Method::Tree } else { Method::Scan }
    }

    /// Bytes of the rows themselves, and of everything a search reads besides: order,
    /// boxes, unions of categories.
    #[must_use]
    pub fn memory(&self) -> (usize, usize) {
        (self.rows.bytes(), self.tree.bytes() + self.order.bytes())
    }

    /// One weight a column for these weights.
    ///
    /// # Errors
    /// A list of the wrong length, or weights that cannot be used.
    pub fn column_weights(&self, weights: &Weights<'_>) -> Result<Vec<f32>, MatchError> {
        let mut out = Vec::new();
        self.fill_weights(weights, &mut out)?;
        Ok(out)
    }

    fn fill_weights(&self, weights: &Weights<'_>, out: &mut Vec<f32>) -> Result<(), MatchError> {
        out.clear();
        match weights {
            Weights::Schema => {
                for channel in &self.channels {
                    let share = if self.options.balance { channel.columns.len() as f32 } else { 1.0 };
                    out.extend(std::iter::repeat_n(channel.weight / share, channel.columns.len()));
                }
            }
            Weights::Channels(given) => {
                if given.len() != self.channels.len() {
                    return Err(MatchError::Length {
                        what: "the list of channel weights",
                        expected: self.channels.len(),
                        found: given.len(),
                    });
                }
                spread(&self.channels, given, self.options.balance, out);
            }
            Weights::Columns(given) => {
                if given.len() != self.columns() {
                    return Err(MatchError::Length {
                        what: "the list of column weights",
                        expected: self.columns(),
                        found: given.len(),
                    });
                }
                out.extend_from_slice(given);
            }
        }
        check_weights(out)
    }

    /// A query's features as the search compares them, and its column weights.
    pub(crate) fn normalise_query(
        &self,
        query: &Query<'_>,
        features: &mut Vec<f32>,
        weights: &mut Vec<f32>,
    ) -> Result<(), MatchError> {
        if query.features.len() != self.columns() {
            return Err(MatchError::QueryLength { expected: self.columns(), found: query.features.len() });
        }
        self.fill_weights(&query.weights, weights)?;
        features.clear();
        for (column, (value, (offset, scale))) in query.features.iter().zip(&self.scale).enumerate() {
            let normalised = ((f64::from(*value) - offset) * (1.0 / scale)) as f32;
            // Beyond this a square times a weight could leave f32.
            if normalised.is_nan() || normalised.abs() > 1e9 {
                return Err(MatchError::BadQuery { column, value: *value });
            }
            features.push(normalised);
        }
        Ok(())
    }
}

/// Most columns whose axes are found channel by channel.
const NARROW: usize = 32;

/// The group of each column for the axes of the boxes: they mix columns within a group.
///
/// Where there are few columns a group is a channel, so that any weights of channels keep the
/// boxes tight, at a tenth of the speed. Of many columns that would take too many axes (three
/// times as long at a million rows of 60 columns), so there a group is all of the pose or all of the
/// path: these two may be weighted against each other freely. For other weights there are boxes
/// along the columns (`columns.rs`), or, where these find no room, the search takes longer.
fn axis_groups(channels: &[ChannelColumns]) -> Vec<u8> {
    let narrow = channels.iter().map(|c| c.columns.len()).sum::<usize>() <= NARROW;
    let group =
        |number: usize, channel: &ChannelColumns| if narrow { number as u8 } else { channel.family as u8 };
    channels.iter().enumerate().flat_map(|(k, c)| std::iter::repeat_n(group(k, c), c.columns.len())).collect()
}

/// One weight a column from one a channel.
fn spread(channels: &[ChannelColumns], weights: &[f32], balance: bool, out: &mut Vec<f32>) {
    for (channel, weight) in channels.iter().zip(weights) {
        let share = if balance { channel.columns.len() as f32 } else { 1.0 };
        out.extend(std::iter::repeat_n(weight / share, channel.columns.len()));
    }
}

fn check_weights(weights: &[f32]) -> Result<(), MatchError> {
    for (column, weight) in weights.iter().enumerate() {
        if !(*weight == 0.0 || (1e-9..=1e9).contains(weight)) {
            return Err(MatchError::BadWeight { column, value: *weight });
        }
    }
    Ok(())
}

fn check_runs(poses: &Poses, rows: usize) -> Result<(), MatchError> {
    let mut next = 0usize;
    for run in &poses.runs {
        if run.first_row as usize != next {
            return Err(MatchError::Bake(format!(
                "a run starts at row {} where row {next} comes next; runs cover the rows in order",
                run.first_row
            )));
        }
        if run.clip as usize >= poses.clips.len() {
            return Err(MatchError::Bake(format!(
                "a run names clip {} but there are {}",
                run.clip,
                poses.clips.len()
            )));
        }
        if !(run.interval_s > 0.0 && run.interval_s.is_finite() && run.start_s.is_finite()) {
            return Err(MatchError::Bake(format!(
                "the run at row {} starts at {} s with {} s from row to row; both must be finite and the step above 0",
                run.first_row, run.start_s, run.interval_s
            )));
        }
        next += run.rows as usize;
    }
    if next != rows {
        return Err(MatchError::Length {
            what: "the list of runs (rows in all)",
            expected: rows,
            found: next,
        });
    }
    Ok(())
}

/// Takes out the rows marked "do not use" and cuts the runs around them.
fn drop_unusable(poses: &mut Poses, columns: usize) {
    let keep = |tags: &[u32], row: usize| tags.get(row).is_none_or(|t| t & DO_NOT_USE == 0);
    let mut runs = Vec::with_capacity(poses.runs.len());
    let mut kept = 0u32;
    for run in &poses.runs {
        let mut open: Option<Run> = None;
        for k in 0..run.rows {
            if keep(&poses.tags, (run.first_row + k) as usize) {
                let piece = open.get_or_insert_with(|| Run {
                    first_row: kept,
                    rows: 0,
                    first_pose: run.first_pose + k,
                    start_s: run.start_s + f64::from(k) * run.interval_s,
                    ..run.clone()
                });
                piece.rows += 1;
                kept += 1;
            } else {
                runs.extend(open.take());
            }
        }
        runs.extend(open);
    }
    let tags = std::mem::take(&mut poses.tags);
    if tags.iter().any(|t| t & DO_NOT_USE != 0) {
        let mut row = 0;
        let mut at = 0;
        poses.values.retain(|_| {
            let stays = keep(&tags, row);
            at += 1;
            if at == columns {
                at = 0;
                row += 1;
            }
            stays
        });
    }
    poses.tags = tags.into_iter().filter(|t| t & DO_NOT_USE == 0).collect();
    poses.runs = runs;
}
