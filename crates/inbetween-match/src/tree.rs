//! The box tree: rows ordered so that near rows share a block, and boxes over the blocks.
//!
//! Rows are split in two again and again along the axis on which they differ most, at a
//! whole number of blocks, until a block of 16 is left. Over the blocks lie boxes, over
//! every 16 boxes a larger one, and so on up to one group of at most 16. A search opens
//! the nearest box first and leaves what is farther than what it holds; the 16 boxes of a
//! group are measured at once (`kernel.rs`), in the directions of `axes.rs`.
//!
//! Within a few groups of 16 blocks, rows with different category bits are parted before anything
//! else, so a filter that admits few poses skips blocks by the union and intersection of their
//! bits. Parted any earlier, every query without a filter would have to look into the branches
//! of all categories; parted never, a filter would have to open nearly every block.
//!
//! With 20 to 60 columns no tree of points prunes well; boxes at the leaves, 16 rows at a
//! time, do. The tree knows neither the query's weights nor its filter when it is built.

use fearless_simd::{Level as Simd_, Simd, dispatch};

use crate::axes::Axes;
use crate::categories::Filter;
use crate::columns::Columns;
use crate::rows::LANES;

/// The boxes over one level's items, 16 to a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// Items that have a box here: blocks of rows at the bottom, groups of boxes above.
    pub(crate) items: usize,
    /// How many axes the boxes are measured along: the first ones, a multiple of 4.
    pub(crate) axes: usize,
    /// `groups × axes` entries, each the 16 items' ends on one axis.
    pub(crate) low: Vec<[i8; LANES]>,
    pub(crate) high: Vec<[i8; LANES]>,
    pub(crate) bits: Bits,
}

/// The union and the intersection of the category bits under each item, in two bytes: few pairs
/// differ. Empty without categories.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bits {
    kinds: Vec<(u32, u32)>,
    of: Vec<u16>,
}

impl Bits {
    /// From a pair an item.
    pub(crate) fn new(pairs: &[(u32, u32)]) -> Self {
        let mut kinds = pairs.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        // What cannot be numbered may hold anything.
        kinds.truncate(usize::from(u16::MAX));
        let last = kinds.len() as u16;
        let of = pairs.iter().map(|pair| kinds.binary_search(pair).map_or(last, |at| at as u16)).collect();
        if !kinds.is_empty() {
            kinds.push((u32::MAX, 0));
        }
        Self { kinds, of }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.of.iter().map(|kind| self.kinds[usize::from(*kind)])
    }

    fn above(&self) -> Self {
        let pairs: Vec<(u32, u32)> = self.pairs().collect();
        Self::new(&pairs.chunks(LANES).map(|some| joined(some.iter().copied())).collect::<Vec<_>>())
    }
}

/// The union and the intersection of unions and intersections.
fn joined(pairs: impl Iterator<Item = (u32, u32)>) -> (u32, u32) {
    pairs.fold((0, !0), |all, pair| (all.0 | pair.0, all.1 & pair.1))
}

/// Boxes over ordered rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    pub(crate) axes: Axes,
    /// From the blocks of rows up.
    pub(crate) levels: Vec<Level>,
    /// Boxes along the columns, where there are enough columns and rows. The tree then has at
    /// least two levels.
    pub(crate) columns: Option<Columns>,
}

/// What a tree keeps for each row and box; chosen so that it stays under 7 % of rows of f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// Axes of the boxes, and how many of them the boxes over blocks use.
    axes: usize,
    leaf: usize,
    /// Boxes along the columns, and also for every four blocks.
    columns: bool,
    fours: bool,
}

/// Fewest rows that get boxes along columns: enough for a tree of two levels, and for a search by
/// tree to be worth it.
const COLUMNS_FROM: usize = 1024;

/// Axes of the boxes above the blocks, where blocks have boxes along the columns too.
const UPPER: usize = 24;

impl Shape {
    fn new(rows: usize, columns: usize) -> Self {
        let axes = (columns * 5 / 9).max(8).next_multiple_of(4).min(columns.next_multiple_of(4));
        let plain = Self { axes, leaf: axes, columns: false, fours: false };
        if rows < COLUMNS_FROM || columns < UPPER {
            return plain;
        }
        // Bytes a row: the order, categories, and boxes of two bytes an axis.
        let order = f64::from(rows.ilog2() + 1) / 8.0 + 2.0 + 0.15;
        let upper = 2.0 * (UPPER + columns) as f64 / 240.0;
        [(16, true), (12, true), (16, false), (8, false)]
            .map(|(leaf, fours)| Self { axes: UPPER, leaf, columns: true, fours })
            .into_iter()
            .find(|s| {
                let whole = if s.fours { 1.25 } else { 1.0 };
                let blocks = 2.0 * (s.leaf as f64 + columns as f64 * whole) / 16.0;
                order + upper + blocks < 0.07 * 4.0 * columns as f64
            })
            .unwrap_or(plain)
    }
}

impl Tree {
    /// Orders rows and boxes them.
    ///
    /// - `rows`: row after row, as the search will see them.
    /// - `tags`: one category field a row, or nothing where there are none.
    /// - returns the tree and, for every slot, its row.
    pub(crate) fn new(
        rows: &[f32],
        columns: usize,
        groups: &[u8],
        reference: &[f32],
        tags: &[u32],
    ) -> (Self, Vec<u32>) {
        let count = rows.len() / columns;
        let shape = Shape::new(count, columns);
        let (axes, coordinates) = Axes::new(rows, columns, groups, reference, shape.axes);
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut split = Split {
            axes: &axes,
            width: axes.count,
            coordinates: &coordinates,
            tags,
            simd: Simd_::new(),
            level: Level::empty(count.div_ceil(LANES), axes.count),
            keys: Vec::with_capacity(count),
            near: Vec::new(),
            near_tags: Vec::new(),
            near_order: Vec::new(),
            sums: vec![0.0; axes.count * 2],
            ends: (vec![0.0; axes.count], vec![0.0; axes.count]),
            corners: (vec![0; axes.count], vec![0; axes.count]),
        };
        split.far(&mut order, 0);

        let mut levels = Vec::new();
        let mut level = split.level;
        drop(coordinates);
        if !tags.is_empty() {
            let pair = |row: &u32| (tags[*row as usize], tags[*row as usize]);
            let pairs: Vec<_> = order.chunks(LANES).map(|slots| joined(slots.iter().map(pair))).collect();
            level.bits = Bits::new(&pairs);
        }
        while level.items > LANES {
            let above = level.above();
            levels.push(level);
            level = above;
        }
        levels.push(level);
        levels[0].keep_axes(shape.leaf);
        let columns = shape.columns.then(|| Columns::new(rows, columns, &order, shape.fours));
        (Self { axes, levels, columns }, order)
    }

    pub(crate) fn bytes(&self) -> usize {
        let axes = &self.axes;
        let levels: usize = self.levels.iter().map(Level::bytes).sum();
        let columns = self.columns.as_ref().map_or(0, Columns::bytes);
        levels + columns + axes.matrix.len() * 8 + axes.count * 24 + axes.columns * 5
    }
}

impl Level {
    pub(crate) fn empty(items: usize, axes: usize) -> Self {
        let groups = items.div_ceil(LANES);
        // Lanes without an item hold an inverted box; they are never looked at.
        Self {
            items,
            axes,
            low: vec![[i8::MAX; LANES]; groups * axes],
            high: vec![[i8::MIN; LANES]; groups * axes],
            bits: Bits::default(),
        }
    }

    /// The level of boxes around these.
    pub(crate) fn above(&self) -> Self {
        let axes = self.axes;
        let mut level = Self::empty(self.items.div_ceil(LANES), axes);
        for item in 0..level.items {
            for k in 0..axes {
                // The lanes left over are inverted, so they change neither end.
                let least = self.low[item * axes + k].iter().min().copied().unwrap_or(i8::MAX);
                let most = self.high[item * axes + k].iter().max().copied().unwrap_or(i8::MIN);
                level.low[item / LANES * axes + k][item % LANES] = least;
                level.high[item / LANES * axes + k][item % LANES] = most;
            }
        }
        level.bits = self.bits.above();
        level
    }

    /// Drops all but the first axes.
    fn keep_axes(&mut self, axes: usize) {
        if axes >= self.axes {
            return;
        }
        for ends in [&mut self.low, &mut self.high] {
            *ends = ends.chunks_exact(self.axes).flat_map(|group| &group[..axes]).copied().collect();
        }
        self.axes = axes;
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.low.len() + self.high.len()) * LANES + self.bits.of.len() * 2 + self.bits.kinds.len() * 8
    }

    /// The low and the high ends of a group of 16 boxes.
    #[inline(always)]
    pub(crate) fn group(&self, group: usize) -> (&[[i8; LANES]], &[[i8; LANES]]) {
        let at = group * self.axes;
        (&self.low[at..at + self.axes], &self.high[at..at + self.axes])
    }

    /// Whether a row under this item may pass the filter.
    #[inline(always)]
    pub(crate) fn may_admit(&self, filter: &Filter, item: usize) -> bool {
        self.bits.is_empty() || {
            let (union, intersection) = self.bits.kinds[usize::from(self.bits.of[item])];
            filter.may_admit(union, intersection)
        }
    }
}

/// Rows looked at to choose an axis; more changes nothing but the time it takes.
const SAMPLE: usize = 96;

/// Rows whose coordinates are copied side by side before they are split on: as many as a near
/// cache holds, so that only the coarse splits wait for memory.
const NEAR: usize = LANES * LANES * LANES;

/// Rows among which categories part before anything else. Fewer, and a filter opens groups for
/// a row or two of theirs; more, and queries without a filter pay (with 18 categories on 187 000
/// rows: 1.2 times as long as without any at 256, 1.4 at 1024, 1.5 at 4096).
const PARTED: usize = 4 * LANES * LANES;

struct Split<'a> {
    axes: &'a Axes,
    width: usize,
    coordinates: &'a [f32],
    tags: &'a [u32],
    simd: Simd_,
    /// The boxes over the blocks, filled as blocks come about.
    level: Level,
    keys: Vec<u64>,
    /// The coordinates, categories and order of the rows that are near.
    near: Vec<f32>,
    near_tags: Vec<u32>,
    near_order: Vec<u16>,
    sums: Vec<f32>,
    ends: (Vec<f32>, Vec<f32>),
    corners: (Vec<i8>, Vec<i8>),
}

/// How many of `count` items go left: whole units, so that 16 blocks always share a group.
fn left_of(count: usize) -> usize {
    let mut unit = LANES;
    while unit * LANES < count {
        unit *= LANES;
    }
    count.div_ceil(unit) / 2 * unit
}

impl Split<'_> {
    /// Splits rows until they are few enough to be copied; `slot` is where the first will stand.
    fn far(&mut self, order: &mut [u32], slot: usize) {
        let count = order.len();
        if count <= NEAR {
            return self.bring_near(order, slot);
        }
        let left = left_of(count);
        let at = |k: usize| &self.coordinates[order[k] as usize * self.width..][..self.width];
        let axis = widest(self.simd, count, self.width, &mut self.sums, at);
        self.keys.clear();
        self.keys.extend(order.iter().map(|row| {
            let y = self.coordinates[*row as usize * self.width + axis];
            u64::from(sortable(y)) << 32 | u64::from(*row)
        }));
        self.keys.select_nth_unstable(left);
        for (row, key) in order.iter_mut().zip(&self.keys) {
            *row = *key as u32;
        }
        let (a, b) = order.split_at_mut(left);
        self.far(a, slot);
        self.far(b, slot + left);
    }

    /// Copies the coordinates of rows side by side, splits them to the end and boxes them.
    fn bring_near(&mut self, order: &mut [u32], slot: usize) {
        // What an unstable selection leaves in which order is its own affair; boxes and answers
        // do not depend on it, but the bytes of a file do.
        order.sort_unstable();
        self.near.clear();
        for row in order.iter() {
            self.near.extend_from_slice(&self.coordinates[*row as usize * self.width..][..self.width]);
        }
        self.near_tags.clear();
        if !self.tags.is_empty() {
            self.near_tags.extend(order.iter().map(|row| self.tags[*row as usize]));
        }
        self.near_order.clear();
        self.near_order.extend(0..order.len() as u16);
        let mut near_order = std::mem::take(&mut self.near_order);
        self.close(&mut near_order, slot);
        let rows = order.to_vec();
        for (row, near) in order.iter_mut().zip(&near_order) {
            *row = rows[usize::from(*near)];
        }
        self.near_order = near_order;
    }

    fn close(&mut self, order: &mut [u16], slot: usize) {
        let count = order.len();
        if count <= LANES {
            order.sort_unstable();
            let (block, width) = (slot / LANES, self.width);
            let (low, high) = &mut self.corners;
            self.axes.enclose(
                order.iter().map(|at| &self.near[usize::from(*at) * width..][..width]),
                &mut self.ends,
                low,
                high,
            );
            for k in 0..width {
                self.level.low[block / LANES * width + k][block % LANES] = low[k];
                self.level.high[block / LANES * width + k][block % LANES] = high[k];
            }
            return;
        }
        let left = left_of(count);
        let at = |k: usize| &self.near[usize::from(order[k]) * self.width..][..self.width];
        let axis = widest(self.simd, count, self.width, &mut self.sums, at);
        let parted = count <= PARTED;
        let tag =
            |at: u16| if parted { self.near_tags.get(usize::from(at)).copied().unwrap_or(0) } else { 0 };
        let first = tag(order[0]);
        if order.iter().all(|at| tag(*at) == first) {
            self.keys.clear();
            self.keys.extend(order.iter().map(|at| {
                let y = self.near[usize::from(*at) * self.width + axis];
                u64::from(sortable(y)) << 32 | u64::from(*at)
            }));
            self.keys.select_nth_unstable(left);
            for (at, key) in order.iter_mut().zip(&self.keys) {
                *at = *key as u16;
            }
        } else {
            let mut tagged: Vec<(u32, u32, u16)> = order
                .iter()
                .map(|at| {
                    let y = self.near[usize::from(*at) * self.width + axis];
                    (tag(*at), sortable(y), *at)
                })
                .collect();
            tagged.select_nth_unstable(left);
            for (at, key) in order.iter_mut().zip(&tagged) {
                *at = key.2;
            }
        }
        let (a, b) = order.split_at_mut(left);
        self.close(a, slot);
        self.close(b, slot + left);
    }
}

/// The axis with the largest variance among a sample of `count` rows.
fn widest<'r>(
    simd: Simd_,
    count: usize,
    width: usize,
    sums: &mut [f32],
    at: impl Fn(usize) -> &'r [f32],
) -> usize {
    sums.fill(0.0);
    let (sum, square) = sums.split_at_mut(width);
    let stride = (count / SAMPLE).max(1);
    let origin = at(0);
    dispatch!(simd, s => s.vectorize(
        #[inline(always)]
        || {
            for k in (0..count).step_by(stride) {
                for (((y, o), sum), square) in at(k).iter().zip(origin).zip(&mut *sum).zip(&mut *square) {
                    let d = y - o;
                    *sum += d;
                    *square += d * d;
                }
            }
        }
    ));
    let seen = count.div_ceil(stride) as f32;
    let mut best = (0, f32::NEG_INFINITY);
    for k in 0..width {
        let variance = square[k] - sum[k] * sum[k] / seen;
        if variance > best.1 {
            best = (k, variance);
        }
    }
    best.0
}

/// Bits that sort as unsigned numbers the way the floats sort.
fn sortable(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}
