//! The nearest admitted row, exactly, by a box tree, a vector scan or a plain loop.
//!
//! All three give the same rows with the same costs, bit for bit: the k admitted rows
//! with the least total, and among equal totals the lowest rows. A row's total is
//!
//! ```text
//! total = cost + extra        cost: kernel.rs; extra: the caller's, added in a fixed order
//! total = (cost + extra) − bonus   for the row that plays now
//! ```
//!
//! The tree and the scan share the kernel that costs 16 rows; the plain loop shares
//! nothing with them but the definition, and is what tests judge them by.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use fearless_simd::{Level as Simd_, Simd, dispatch};

use crate::axes::Place;
use crate::categories::Filter;
use crate::database::MotionDatabase;
use crate::error::MatchError;
use crate::kernel;
use crate::rows::{AnyBlocks, Blocks, LANES};
use crate::wide::{self, Room};

/// How much each column counts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Weights<'a> {
    /// As the schema says.
    #[default]
    Schema,
    /// One factor a channel, in the order of the schema, in place of the schema's own;
    /// divided over the channel's columns where the schema balances.
    Channels(&'a [f32]),
    /// One weight a column, taken as they are.
    Columns(&'a [f32]),
}

/// The pose that plays now, and what speaks for staying with it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Continuing {
    /// The row that plays now.
    pub row: u32,
    /// Taken off this row's total (≥ 0; 0 favours nothing). In units of cost.
    pub bonus: f32,
    /// Rows before and after it, in its own run of poses, that are no candidates: a jump
    /// to a neighbour shows nothing new. The row itself stays a candidate.
    pub ignore_rows: u32,
    /// Seconds since the last jump.
    pub dwelt_s: f64,
    /// Seconds to stay after a jump: before they are over the answer is this row, as long
    /// as the filter admits it. 0 means never to wait.
    pub minimum_dwell_s: f64,
}

/// Costs the caller adds to rows, in units of cost; negative ones favour a row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Extra<'a> {
    /// One number a row, or empty for none.
    pub rows: &'a [f32],
    /// (bits, cost): added to rows that carry any of the bits.
    pub tags: &'a [(u32, f32)],
}

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Query<'a> {
    /// One number a column, in the units of the bake; never normalised by the caller.
    pub features: &'a [f32],
    /// How much each counts.
    pub weights: Weights<'a>,
    /// Which poses are admitted.
    pub filter: Filter,
    /// The pose that plays now, if one does.
    pub continuing: Option<Continuing>,
    /// Rows that are no candidates.
    pub ignore: &'a [Range<u32>],
    /// Costs added by the caller.
    pub extra: Extra<'a>,
}

/// A row and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// The row of the database.
    pub row: u32,
    /// Its total: weighted squared distance plus extra costs, less the bonus of the
    /// continuing row.
    pub cost: f32,
}

/// How rows are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One row after another, without vectors or bounds: the judge.
    Plain,
    /// All blocks of 16 rows, in order.
    Scan,
    /// The box tree.
    Tree,
}

/// Buffers a search works in; one a thread, made once.
///
/// After the first search with a database (and k), no search allocates.
#[derive(Debug, Clone)]
pub struct Scratch {
    level: Simd_,
    query: Vec<f32>,
    weights: Vec<f32>,
    place: Place,
    stack: Vec<(f32, u32, u32)>,
    room: Room,
    best: Vec<Match>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Buffers for the widest vectors this machine has.
    #[must_use]
    pub fn new() -> Self {
        Self::with_level(Simd_::new())
    }

    /// Buffers for the vectors every machine of this kind has: slower, the same answers.
    #[must_use]
    pub fn baseline() -> Self {
        Self::with_level(Simd_::baseline())
    }

    pub(crate) fn with_level(level: Simd_) -> Self {
        Self {
            level,
            query: Vec::new(),
            weights: Vec::new(),
            place: Place::default(),
            stack: Vec::new(),
            room: Room::default(),
            best: Vec::new(),
        }
    }
}

impl MotionDatabase {
    /// The best row, or `None` when no row is admitted.
    ///
    /// Exact: no row that passes the filter has a lower total, and none with an equal
    /// total has a lower number. About 5–50 µs at 50 000 to a million rows.
    ///
    /// # Errors
    /// When the query does not fit the database: its length, numbers that are not finite,
    /// weights that cannot be used, rows that do not exist.
    pub fn search(&self, query: &Query<'_>, scratch: &mut Scratch) -> Result<Option<Match>, MatchError> {
        Ok(self.search_k(query, 1, scratch)?.first().copied())
    }

    /// The `k` best rows, best first; fewer when fewer are admitted.
    ///
    /// # Errors
    /// As [`MotionDatabase::search`].
    pub fn search_k<'s>(
        &self,
        query: &Query<'_>,
        k: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [Match], MatchError> {
        self.search_by(self.method(), query, k, scratch)
    }

    /// As [`MotionDatabase::search_k`], by a method of the caller's choice.
    ///
    /// # Errors
    /// As [`MotionDatabase::search`].
    pub fn search_by<'s>(
        &self,
        method: Method,
        query: &Query<'_>,
        k: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [Match], MatchError> {
        let Scratch { level, query: features, weights, place, stack, room, best } = scratch;
        self.normalise_query(query, features, weights)?;
        self.check(query)?;
        best.clear();
        // Without any category in the database a filter admits all rows or none.
        if k == 0 || (self.tags.is_empty() && !query.filter.admits(0)) {
            return Ok(best);
        }
        if let Some(c) = &query.continuing
            && c.dwelt_s < c.minimum_dwell_s
            && query.filter.admits(self.tags_of(c.row))
        {
            let cost = self.total(c.row, features, weights, query);
            best.push(Match { row: c.row, cost });
            return Ok(best);
        }
        if method == Method::Plain {
            self.plain(query, features, weights, k, best);
            return Ok(best);
        }
        let mut candidates = Candidates::new(self, query, k, best);
        if let Some(c) = &query.continuing
            && query.filter.admits(self.tags_of(c.row))
        {
            let cost = self.total(c.row, features, weights, query);
            candidates.offer(Match { row: c.row, cost });
        }
        match method {
            Method::Plain | Method::Scan => match self.rows.blocks() {
                AnyBlocks::Full(blocks) => {
                    dispatch!(*level, s => scan(s, blocks, self, features, weights, &mut candidates));
                }
                AnyBlocks::Half(blocks) => {
                    dispatch!(*level, s => scan(s, blocks, self, features, weights, &mut candidates));
                }
            },
            Method::Tree => {
                self.tree.axes.place(features, weights, place);
                if let Some(boxes) = &self.tree.columns {
                    boxes.place(features, weights, &mut room.point);
                    match self.rows.blocks() {
                        AnyBlocks::Full(blocks) => {
                            dispatch!(*level, s => wide::descend(s, blocks, self, boxes, features, weights, place, room, &mut candidates));
                        }
                        AnyBlocks::Half(blocks) => {
                            dispatch!(*level, s => wide::descend(s, blocks, self, boxes, features, weights, place, room, &mut candidates));
                        }
                    }
                    return Ok(best);
                }
                match self.rows.blocks() {
                    AnyBlocks::Full(blocks) => {
                        dispatch!(*level, s => descend(s, blocks, self, features, weights, place, stack, &mut candidates));
                    }
                    AnyBlocks::Half(blocks) => {
                        dispatch!(*level, s => descend(s, blocks, self, features, weights, place, stack, &mut candidates));
                    }
                }
            }
        }
        Ok(best)
    }

    /// Answers to many queries, in their order, over `threads` threads.
    ///
    /// The answers are those of [`MotionDatabase::search`] one by one, whatever the number
    /// of threads. Queries that lead to the same part of the database are answered one after
    /// another, so that rows fetched from memory for one serve the next: with many queries on
    /// many rows that is several times faster than one by one.
    ///
    /// # Errors
    /// The first query's error, in their order.
    pub fn search_batch(
        &self,
        queries: &[Query<'_>],
        threads: usize,
    ) -> Result<Vec<Option<Match>>, MatchError> {
        let mut order: Vec<(u32, u32)> = (0..queries.len() as u32).map(|q| (0, q)).collect();
        if self.method() == Method::Tree {
            over_threads(&mut order, threads, |scratch, (block, query)| {
                // A query that is in error stays at 0; the search itself reports it.
                *block = self.nearest_block(&queries[*query as usize], scratch).unwrap_or(0);
            });
            order.sort_unstable();
        }
        let mut found: Vec<(u32, Result<Option<Match>, MatchError>)> =
            order.into_iter().map(|(_, query)| (query, Ok(None))).collect();
        over_threads(&mut found, threads, |scratch, (query, answer)| {
            *answer = self.search(&queries[*query as usize], scratch);
        });
        found.sort_unstable_by_key(|(query, _)| *query);
        found.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The block that is reached by the nearest box on every level: near the answer, seldom it.
    fn nearest_block(&self, query: &Query<'_>, scratch: &mut Scratch) -> Result<u32, MatchError> {
        let Scratch { level, query: features, weights, place, .. } = scratch;
        self.normalise_query(query, features, weights)?;
        self.tree.axes.place(features, weights, place);
        let mut item = 0;
        for level_of_boxes in self.tree.levels.iter().rev() {
            let (low, high) = level_of_boxes.group(item);
            let bounds = dispatch!(*level, s => kernel::box_bounds(s, low, high, &place.above, &place.below, &place.usual));
            let first = item * LANES;
            let nearest =
                (0..LANES.min(level_of_boxes.items - first)).min_by(|a, b| bounds[*a].total_cmp(&bounds[*b]));
            item = first + nearest.unwrap_or(0);
        }
        Ok(item as u32)
    }

    /// The judge: every row on its own, then sorted.
    fn plain(&self, query: &Query<'_>, features: &[f32], weights: &[f32], k: usize, best: &mut Vec<Match>) {
        for row in 0..self.len() as u32 {
            if self.is_candidate(row, query) {
                best.push(Match { row, cost: self.total(row, features, weights, query) });
            }
        }
        best.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.row.cmp(&b.row)));
        best.truncate(k);
    }

    /// Whether a row passes the filter, the ignored ranges and the window.
    pub(crate) fn is_candidate(&self, row: u32, query: &Query<'_>) -> bool {
        query.filter.admits(self.tags_of(row))
            && (query.continuing.is_some_and(|c| c.row == row)
                || !(query.ignore.iter().any(|r| r.contains(&row)) || self.window(query).contains(&row)))
    }

    /// The rows around the one that plays that are no candidates, within its own run.
    pub(crate) fn window(&self, query: &Query<'_>) -> Range<u32> {
        let Some(c) = query.continuing.filter(|c| c.ignore_rows > 0) else {
            return 0..0;
        };
        let run = self.run_of(c.row);
        let first = run.first_row.max(c.row.saturating_sub(c.ignore_rows));
        let last = (run.first_row + run.rows).min(c.row.saturating_add(c.ignore_rows).saturating_add(1));
        first..last
    }

    /// A row's total, from the definition.
    pub(crate) fn total(&self, row: u32, features: &[f32], weights: &[f32], query: &Query<'_>) -> f32 {
        let slot = self.order.slot(row);
        let columns = self.columns();
        let cost = kernel::plain(features, weights, |c| self.rows.value(slot, c, columns));
        let total = cost + self.extra(row, query);
        match query.continuing {
            Some(c) if c.row == row => total - c.bonus,
            _ => total,
        }
    }

    /// What the caller adds to a row.
    pub(crate) fn extra(&self, row: u32, query: &Query<'_>) -> f32 {
        let mut extra = query.extra.rows.get(row as usize).copied().unwrap_or(0.0);
        for (bits, cost) in query.extra.tags {
            if self.tags_of(row) & bits != 0 {
                extra += cost;
            }
        }
        extra
    }

    fn check(&self, query: &Query<'_>) -> Result<(), MatchError> {
        if let Some(c) = &query.continuing {
            if c.row as usize >= self.len() {
                return Err(MatchError::NoSuchRow { row: c.row, rows: self.len() });
            }
            if !(c.bonus >= 0.0 && c.bonus.is_finite()) {
                return Err(MatchError::BadExtra {
                    place: format!("the continuing row {} (its bonus)", c.row),
                    value: c.bonus,
                });
            }
        }
        if !query.extra.rows.is_empty() && query.extra.rows.len() != self.len() {
            return Err(MatchError::Length {
                what: "the list of extra costs",
                expected: self.len(),
                found: query.extra.rows.len(),
            });
        }
        for (row, value) in query.extra.rows.iter().enumerate() {
            if !value.is_finite() {
                return Err(MatchError::BadExtra { place: format!("row {row}"), value: *value });
            }
        }
        for (bits, value) in query.extra.tags {
            if !value.is_finite() {
                return Err(MatchError::BadExtra { place: format!("tag bits {bits:#x}"), value: *value });
            }
        }
        Ok(())
    }
}

/// Neighbouring items a thread takes at a time: enough that they share what they fetch, few
/// enough that no thread is left with the last long share.
const SHARE: usize = 64;

/// Does a piece of work for each item, over several threads.
fn over_threads<T: Send>(items: &mut [T], threads: usize, work: impl Fn(&mut Scratch, &mut T) + Sync) {
    if threads <= 1 || items.len() <= 1 {
        let mut scratch = Scratch::new();
        return items.iter_mut().for_each(|item| work(&mut scratch, item));
    }
    let helpers = threads.min(items.len().div_ceil(SHARE));
    let shares = Mutex::new(items.chunks_mut(SHARE));
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|| {
                let mut scratch = Scratch::new();
                loop {
                    // The lock is let go before the work; a thread that panicked ends the scope.
                    let share = shares.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(share) = share else { return };
                    share.iter_mut().for_each(|item| work(&mut scratch, item));
                }
            });
        }
    });
}

/// The best rows so far and what decides over the next.
pub(crate) struct Candidates<'a> {
    database: &'a MotionDatabase,
    pub(crate) query: &'a Query<'a>,
    window: Range<u32>,
    /// No row's extra cost is below this.
    pub(crate) floor: f32,
    simple: bool,
    k: usize,
    pub(crate) best: &'a mut Vec<Match>,
    pub(crate) limit: f32,
}

impl<'a> Candidates<'a> {
    fn new(database: &'a MotionDatabase, query: &'a Query<'a>, k: usize, best: &'a mut Vec<Match>) -> Self {
        // Added in the order in which a row's extras are added, so that rounding, which
        // keeps order, keeps this below every row's extra.
        let least = query.extra.rows.iter().copied().fold(f32::INFINITY, f32::min);
        let mut floor = if query.extra.rows.is_empty() { 0.0 } else { least };
        for (_, cost) in query.extra.tags {
            floor += cost.min(0.0);
        }
        best.reserve(k.min(database.len()) + 1);
        Self {
            database,
            query,
            window: database.window(query),
            floor,
            simple: query.extra.rows.is_empty() && query.extra.tags.is_empty(),
            k,
            best,
            limit: f32::INFINITY,
        }
    }

    #[inline(always)]
    fn offer(&mut self, candidate: Match) {
        let before = |m: &Match| (m.cost, m.row) < (candidate.cost, candidate.row);
        let at = self.best.partition_point(before);
        if at < self.k {
            self.best.truncate(self.k - 1);
            self.best.insert(at, candidate);
            if self.best.len() == self.k {
                self.limit = self.best[self.k - 1].cost;
            }
        }
    }

    /// Offers the rows of a block whose costs are given.
    #[inline(always)]
    pub(crate) fn offer_block(&mut self, block: usize, costs: &[f32; LANES]) {
        let first = block * LANES;
        let rows = LANES.min(self.database.len() - first);
        for lane in 0..rows {
            if costs[lane] + self.floor <= self.limit {
                self.consider(first + lane, costs[lane]);
            }
        }
    }

    fn consider(&mut self, slot: usize, cost: f32) {
        let row = self.database.order.row(slot);
        let query = self.query;
        if query.continuing.is_some_and(|c| c.row == row)
            || self.window.contains(&row)
            || query.ignore.iter().any(|r| r.contains(&row))
            || !(query.filter.admits_all() || query.filter.admits(self.database.tags_of(row)))
        {
            return;
        }
        let extra = if self.simple { 0.0 } else { self.database.extra(row, query) };
        self.offer(Match { row, cost: cost + extra });
    }
}

#[inline(always)]
fn scan<S: Simd, B: Blocks>(
    simd: S,
    blocks: B,
    database: &MotionDatabase,
    query: &[f32],
    weights: &[f32],
    candidates: &mut Candidates<'_>,
) {
    let columns = query.len();
    let bottom = &database.tree.levels[0];
    let filter = candidates.query.filter;
    for block in 0..blocks.entries() / columns {
        if !bottom.may_admit(&filter, block) {
            continue;
        }
        let rows = blocks.part(block * columns, columns);
        if let Some(costs) = kernel::row_costs(simd, rows, query, weights, candidates.floor, candidates.limit)
        {
            candidates.offer_block(block, &costs);
        }
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the whole state of one descent, kept in registers")]
fn descend<S: Simd, B: Blocks>(
    simd: S,
    blocks: B,
    database: &MotionDatabase,
    query: &[f32],
    weights: &[f32],
    place: &Place,
    stack: &mut Vec<(f32, u32, u32)>,
    candidates: &mut Candidates<'_>,
) {
    let columns = query.len();
    let levels = &database.tree.levels;
    let filter = candidates.query.filter;
    let filtered = !filter.admits_all();
    stack.clear();
    // An entry: a bound, how many levels of boxes lie under it, and its number there.
    stack.push((f32::NEG_INFINITY, levels.len() as u32, 0));
    while let Some((bound, height, item)) = stack.pop() {
        // Equal is not enough to leave: the row may have a lower number.
        if bound > candidates.limit {
            continue;
        }
        let item = item as usize;
        if height == 0 {
            let rows = blocks.part(item * columns, columns);
            if let Some(costs) =
                kernel::row_costs(simd, rows, query, weights, candidates.floor, candidates.limit)
            {
                candidates.offer_block(item, &costs);
            }
            continue;
        }
        let level = &levels[height as usize - 1];
        let (low, high) = level.group(item);
        let bounds = kernel::box_bounds(simd, low, high, &place.above, &place.below, &place.weights);
        let base = stack.len();
        let first = item * LANES;
        for lane in 0..LANES.min(level.items - first) {
            let bound = bounds[lane] + candidates.floor;
            if bound > candidates.limit || (filtered && !level.may_admit(&filter, first + lane)) {
                continue;
            }
            // Nearest on top: insert so that bounds fall towards the end of the stack.
            let entry = (bound, height - 1, (first + lane) as u32);
            let mut at = stack.len();
            stack.push(entry);
            while at > base && stack[at - 1].0 < bound {
                stack[at] = stack[at - 1];
                at -= 1;
            }
            stack[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{ChannelColumns, DatabaseOptions, Family, Poses};

    #[test]
    fn every_vector_width_gives_the_same_bits() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let columns = 11;
        let poses = Poses {
            channels: vec![ChannelColumns {
                name: "x".into(),
                columns: (0..columns).map(|c| c.to_string()).collect(),
                weight: 1.0,
                family: Family::Pose,
            }],
            values: (0..columns * 2000).map(|_| next()).collect(),
            ..Poses::default()
        };
        let database = MotionDatabase::new(poses, DatabaseOptions::default()).unwrap();
        #[allow(unused_mut, reason = "other machines have other levels")]
        let mut levels = vec![Simd_::baseline(), Simd_::new()];
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            levels.extend(Simd_::new().as_sse4_2().map(Simd_::Sse4_2));
            levels.extend(Simd_::new().as_avx2().map(Simd_::Avx2));
        }
        for _ in 0..100 {
            let features: Vec<f32> = (0..columns).map(|_| next() * 1.5).collect();
            let query = Query { features: &features, ..Query::default() };
            let mut answers = levels.iter().flat_map(|level| {
                [Method::Tree, Method::Scan].map(|method| {
                    let mut scratch = Scratch::with_level(*level);
                    let found = database.search_by(method, &query, 5, &mut scratch).unwrap();
                    found.iter().map(|m| (m.row, m.cost.to_bits())).collect::<Vec<_>>()
                })
            });
            let first = answers.next().unwrap();
            assert!(answers.all(|other| other == first));
        }
    }
}
