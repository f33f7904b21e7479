//! The search of a database of many columns: a large box, the boxes of blocks, a few columns,
//! all columns.
//!
//! At a million rows of 60 columns more than half of a search is waiting for memory: some
//! hundred blocks of rows, each in a page of its own. So boxes over 256 rows are taken as they
//! come off the stack, nearest first, and put by until there are 16 of them (fewer at first,
//! while there is nothing yet to hold them against); then each step below is done for all of them
//! before the next, without a branch that waits for what is fetched, so that many fetches are
//! under way at once:
//!
//! 1. The boxes of their blocks, 16 at a time along the first principal axes; those within the
//!    limit once more along the columns. Where the weights are uneven (`Place::even`), boxes of four
//!    blocks and then of blocks, along the columns only.
//! 2. Sixteen columns of each block that is left, *rest* (what its box says of the others) added.
//! 3. The other columns, sixteen by sixteen, with ever less rest.
//! 4. The totals by `kernel.rs`, for the few blocks that are left.
//!
//! The sixteen columns to begin with are those that are likely to say most: where blocks are wide
//! and the first row found is far.

use fearless_simd::{Simd, f32x16, prelude::*};

use crate::axes::Place;
use crate::columns::{Columns, Point, cost_in};
use crate::database::MotionDatabase;
use crate::kernel;
use crate::rows::{Blocks, LANES};
use crate::search::Candidates;

/// Most boxes of 256 rows that are gone through together.
const TOGETHER: usize = 16;

/// Fewer than this together, and blocks are taken one by one, nearest first.
const ONE_BY_ONE: usize = 8;

/// What a wide search works in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    pub(crate) point: Point,
    stack: Vec<Entry>,
    together: Vec<Entry>,
    blocks: Vec<u32>,
    left: Vec<Left>,
    begun: Vec<[f32; LANES]>,
    sixteens: Vec<(f32, usize)>,
}

/// A box on the stack.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// What it is ordered by, and the least any row in it can cost.
    key: f32,
    bound: f32,
    /// How many levels of boxes lie between it and the boxes of 256 rows, and its number there.
    height: u32,
    item: u32,
}

/// A block that may hold a row within the limit.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    block: u32,
    bound: f32,
    /// The part of the bound that comes from the columns not read in the first place.
    rest: f32,
}

/// Goes through the boxes of a tree that has boxes along its columns.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the whole state of one descent")]
pub(crate) fn descend<S: Simd, B: Blocks>(
    simd: S,
    blocks: B,
    database: &MotionDatabase,
    boxes: &Columns,
    query: &[f32],
    weights: &[f32],
    place: &Place,
    room: &mut Room,
    candidates: &mut Candidates<'_>,
) {
    let levels = &database.tree.levels;
    let Room { point, stack, together, blocks: some, left, begun, sixteens } = room;
    let filter = candidates.query.filter;
    let filtered = !filter.admits_all();
    let floor = candidates.floor;
    sixteens.clear();
    sixteens.extend((0..point.sixteens()).map(|sixteen| (0.0, sixteen)));
    let mut ordered = false;
    let mut most = 1;
    together.clear();
    stack.clear();
    stack.push(Entry {
        key: f32::NEG_INFINITY,
        bound: f32::NEG_INFINITY,
        height: levels.len() as u32 - 1,
        item: 0,
    });
    loop {
        if let Some(entry) = stack.pop() {
            if entry.bound > candidates.limit {
                continue;
            }
            if entry.height > 0 {
                open(simd, database, boxes, place, point, entry, stack, candidates);
                continue;
            }
            together.push(entry);
            if together.len() < most {
                continue;
            }
        }
        if together.is_empty() {
            return;
        }
        // The blocks of the boxes put by that may hold something.
        let limit = candidates.limit;
        let bottom = &levels[0];
        let first = sixteens[0].1;
        some.clear();
        if place.even {
            let axes = bottom.axes;
            for entry in &*together {
                let (low, high) = bottom.group(entry.item as usize);
                let (above, below) = (&place.above[..axes], &place.below[..axes]);
                let bounds = kernel::box_bounds(simd, low, high, above, below, &place.weights[..axes]);
                let block = entry.item as usize * LANES;
                for lane in 0..LANES.min(bottom.items - block) {
                    keep_unless(some, (block + lane) as u32, bounds[lane] + floor > limit);
                }
            }
        } else {
            let per = LANES / 4;
            for entry in &*together {
                let four = entry.item as usize * per;
                for four in four..(four + per).min(bottom.items.div_ceil(4)) {
                    if !boxes.fours.is_empty() && point.bound(simd, boxes.four(four)) + floor > limit {
                        continue;
                    }
                    some.extend((four * 4..(four * 4 + 4).min(bottom.items)).map(|block| block as u32));
                }
            }
        }
        together.clear();
        left.clear();
        for block in &*some {
            if filtered && !bottom.may_admit(&filter, *block as usize) {
                continue;
            }
            let ends = boxes.block(*block as usize);
            let bound = point.bound(simd, ends);
            let rest = bound - point.bound_in(simd, ends, first);
            keep_unless(left, Left { block: *block, bound, rest }, bound + floor > limit);
        }
        if most < ONE_BY_ONE {
            left.sort_unstable_by(|a, b| a.bound.total_cmp(&b.bound).then(a.block.cmp(&b.block)));
            for k in 0..left.len() {
                visit(
                    simd,
                    blocks,
                    boxes,
                    query,
                    weights,
                    point,
                    sixteens,
                    &mut left[k..=k],
                    begun,
                    candidates,
                );
            }
        } else {
            visit(simd, blocks, boxes, query, weights, point, sixteens, left, begun, candidates);
        }
        if !ordered && let Some(found) = candidates.best.first() {
            ordered = true;
            let slot = database.order.slot(found.row);
            for (score, sixteen) in sixteens.iter_mut() {
                let from = *sixteen * LANES;
                for c in from..(from + LANES).min(query.len()) {
                    let step = boxes.step[c] as f32;
                    let far = (query[c] - database.rows.value(slot, c, query.len())).abs() / step;
                    *score += point.weights[c] * boxes.extent[c] * (far + 0.25 * boxes.extent[c]);
                }
            }
            sixteens.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        most = (most * 2).min(TOGETHER);
    }
}

/// Appends, or does not, without a branch to be guessed.
#[inline(always)]
fn keep_unless<T: Copy>(list: &mut Vec<T>, item: T, goes: bool) {
    list.push(item);
    list.truncate(list.len() - usize::from(goes));
}

/// Puts the boxes below one on the stack, nearest on top.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the whole state of one descent")]
fn open<S: Simd>(
    simd: S,
    database: &MotionDatabase,
    boxes: &Columns,
    place: &Place,
    point: &Point,
    entry: Entry,
    stack: &mut Vec<Entry>,
    candidates: &Candidates<'_>,
) {
    let item = entry.item as usize;
    let filter = candidates.query.filter;
    let filtered = !filter.admits_all();
    let level = &database.tree.levels[entry.height as usize];
    let (low, high) = level.group(item);
    let (keys, bounds) = if place.even {
        let bounds = kernel::box_bounds(simd, low, high, &place.above, &place.below, &place.weights);
        (bounds, bounds)
    } else {
        // What bounds well orders badly: the first to be looked at should be those that are near
        // along the principal axes.
        let keys = kernel::box_bounds(simd, low, high, &place.above, &place.below, &place.usual);
        let (low, high) = boxes.levels[entry.height as usize - 1].group(item);
        (keys, kernel::box_bounds(simd, low, high, &point.at, &point.at, &point.weights))
    };
    let base = stack.len();
    let first = item * LANES;
    for lane in 0..LANES.min(level.items - first) {
        let bound = bounds[lane] + candidates.floor;
        if bound > candidates.limit || (filtered && !level.may_admit(&filter, first + lane)) {
            continue;
        }
        let entry = Entry { key: keys[lane], bound, height: entry.height - 1, item: (first + lane) as u32 };
        let mut at = stack.len();
        stack.push(entry);
        while at > base && stack[at - 1].key < entry.key {
            stack[at] = stack[at - 1];
            at -= 1;
        }
        stack[at] = entry;
    }
}

/// Reads blocks of rows as far as needed and offers those that may hold something.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the whole state of one descent")]
fn visit<S: Simd, B: Blocks>(
    simd: S,
    blocks: B,
    boxes: &Columns,
    query: &[f32],
    weights: &[f32],
    point: &Point,
    sixteens: &[(f32, usize)],
    left: &mut [Left],
    begun: &mut Vec<[f32; LANES]>,
    candidates: &mut Candidates<'_>,
) {
    let columns = query.len();
    // A sum of n terms, in whatever order, is off by less than n · 2⁻²⁴ of itself; here are
    // three of them (the box, the row so far, and the total they are held against), and more room.
    let shrink = 1.0 - (columns as f32 + 16.0) / (1u32 << 21) as f32;
    begun.clear();
    let mut stay = 0;
    for at in 0..left.len() {
        let one = left[at];
        let block = blocks.part(one.block as usize * columns, columns);
        let sum = cost_in(simd, block, query, weights, sixteens[0].1, f32x16::splat(simd, 0.0));
        left[stay] = one;
        let stays = may_hold(simd, sum, one.rest, shrink, candidates);
        keep_unless(begun, sum.into(), !stays);
        stay += usize::from(stays);
    }
    'blocks: for (one, begun) in left[..stay].iter().zip(&*begun) {
        if one.bound + candidates.floor > candidates.limit {
            continue;
        }
        let ends = boxes.block(one.block as usize);
        let block = blocks.part(one.block as usize * columns, columns);
        let mut sum = f32x16::load_array_ref(simd, begun);
        let mut rest = one.rest;
        for (_, sixteen) in &sixteens[1..] {
            rest -= point.bound_in(simd, ends, *sixteen);
            sum = cost_in(simd, block, query, weights, *sixteen, sum);
            if !may_hold(simd, sum, rest, shrink, candidates) {
                continue 'blocks;
            }
        }
        if let Some(costs) =
            kernel::row_costs(simd, block, query, weights, candidates.floor, candidates.limit)
        {
            candidates.offer_block(one.block as usize, &costs);
        }
    }
}

/// Whether one of the rows that cost `sum` so far, and at least `rest` more, may be within the
/// limit.
#[inline(always)]
fn may_hold<S: Simd>(simd: S, sum: f32x16<S>, rest: f32, shrink: f32, candidates: &Candidates<'_>) -> bool {
    let rest = f32x16::splat(simd, rest.max(0.0));
    let least = (sum + rest) * f32x16::splat(simd, shrink) + f32x16::splat(simd, candidates.floor);
    !least.simd_gt(f32x16::splat(simd, candidates.limit)).all_true()
}
