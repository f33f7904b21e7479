//! The box tree: rows ordered so that near rows share a block, and boxes over the blocks.
//!
//! Rows are split in two again and again along the axis on which they differ most, at a
//! whole number of blocks, until a block of 16 is left. Over the blocks lie boxes, over
//! every 16 boxes a larger one, and so on up to one group of at most 16. A search opens
//! the nearest box first and leaves what is farther than what it holds; the 16 boxes of a
//! group are measured at once (`kernel.rs`), in the directions of `axes.rs`.
//!
//! Rows with different category bits are parted before anything else, so a filter that
//! admits few poses skips whole branches by the union and intersection of their bits.
//!
//! With 20 to 60 columns no tree of points prunes well; boxes at the leaves, 16 rows at a
//! time, do. The tree knows neither the query's weights nor its filter when it is built.

use crate::axes::Axes;
use crate::categories::Filter;
use crate::rows::LANES;

/// The boxes over one level's items, 16 to a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// Items that have a box here: blocks of rows at the bottom, groups of boxes above.
    pub(crate) items: usize,
    /// `groups × axes` entries, each the 16 items' ends on one axis.
    pub(crate) low: Vec<[i8; LANES]>,
    pub(crate) high: Vec<[i8; LANES]>,
    /// Union and intersection of the category bits of each item; empty without categories.
    pub(crate) union: Vec<u32>,
    pub(crate) intersection: Vec<u32>,
}

/// Boxes over ordered rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    pub(crate) axes: Axes,
    /// From the blocks of rows up.
    pub(crate) levels: Vec<Level>,
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
        let (axes, coordinates) = Axes::new(rows, columns, groups, reference);
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut split = Split {
            coordinates: &coordinates,
            axes: axes.count,
            tags,
            keys: Vec::with_capacity(count),
            tagged: Vec::new(),
            sums: vec![0.0; axes.count * 2],
        };
        split.split(&mut order);

        let mut levels = Vec::new();
        let mut level = Level::of_blocks(&axes, &coordinates, &order, tags);
        while level.items > LANES {
            let above = level.above(axes.count);
            levels.push(level);
            level = above;
        }
        levels.push(level);
        (Self { axes, levels }, order)
    }

    pub(crate) fn bytes(&self) -> usize {
        let axes = &self.axes;
        let levels: usize = self
            .levels
            .iter()
            .map(|l| (l.low.len() + l.high.len()) * LANES + (l.union.len() + l.intersection.len()) * 4)
            .sum();
        levels + axes.matrix.len() * 8 + axes.count * 24 + axes.columns * 5
    }
}

impl Level {
    fn empty(items: usize, axes: usize) -> Self {
        let groups = items.div_ceil(LANES);
        // Lanes without an item hold an inverted box; they are never looked at.
        Self {
            items,
            low: vec![[i8::MAX; LANES]; groups * axes],
            high: vec![[i8::MIN; LANES]; groups * axes],
            union: Vec::new(),
            intersection: Vec::new(),
        }
    }

    fn of_blocks(axes: &Axes, coordinates: &[f32], order: &[u32], tags: &[u32]) -> Self {
        let mut level = Self::empty(order.len().div_ceil(LANES), axes.count);
        let (mut low, mut high) = (vec![0i8; axes.count], vec![0i8; axes.count]);
        for (item, slots) in order.chunks(LANES).enumerate() {
            axes.enclose(coordinates, slots, &mut low, &mut high);
            for k in 0..axes.count {
                level.low[item / LANES * axes.count + k][item % LANES] = low[k];
                level.high[item / LANES * axes.count + k][item % LANES] = high[k];
            }
            if !tags.is_empty() {
                level.union.push(slots.iter().fold(0, |all, row| all | tags[*row as usize]));
                level.intersection.push(slots.iter().fold(!0, |all, row| all & tags[*row as usize]));
            }
        }
        level
    }

    fn above(&self, axes: usize) -> Self {
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
        level.union = self.union.chunks(LANES).map(|c| c.iter().fold(0, |all, t| all | t)).collect();
        level.intersection =
            self.intersection.chunks(LANES).map(|c| c.iter().fold(!0, |all, t| all & t)).collect();
        level
    }

    /// Whether a row under this item may pass the filter.
    #[inline(always)]
    pub(crate) fn may_admit(&self, filter: &Filter, item: usize) -> bool {
        self.union.is_empty() || filter.may_admit(self.union[item], self.intersection[item])
    }
}

/// Rows looked at to choose an axis; more changes nothing but the time it takes.
const SAMPLE: usize = 96;

struct Split<'a> {
    coordinates: &'a [f32],
    axes: usize,
    tags: &'a [u32],
    keys: Vec<u64>,
    tagged: Vec<(u32, u64)>,
    sums: Vec<f32>,
}

impl Split<'_> {
    fn split(&mut self, order: &mut [u32]) {
        let count = order.len();
        if count <= LANES {
            return;
        }
        // The left side is filled with whole units, so that 16 blocks always share a group.
        let mut unit = LANES;
        while unit * LANES < count {
            unit *= LANES;
        }
        let left = count.div_ceil(unit) / 2 * unit;
        let axis = self.widest(order);

        let mixed = !self.tags.is_empty() && {
            let first = self.tags[order[0] as usize];
            order.iter().any(|row| self.tags[*row as usize] != first)
        };
        let key = |row: u32| {
            let y = self.coordinates[row as usize * self.axes + axis];
            u64::from(sortable(y)) << 32 | u64::from(row)
        };
        if mixed {
            self.tagged.clear();
            self.tagged.extend(order.iter().map(|row| (self.tags[*row as usize], key(*row))));
            self.tagged.select_nth_unstable(left);
            for (row, (_, key)) in order.iter_mut().zip(&self.tagged) {
                *row = *key as u32;
            }
        } else {
            self.keys.clear();
            self.keys.extend(order.iter().map(|row| key(*row)));
            self.keys.select_nth_unstable(left);
            for (row, key) in order.iter_mut().zip(&self.keys) {
                *row = *key as u32;
            }
        }
        let (a, b) = order.split_at_mut(left);
        // What an unstable selection leaves in which order is its own affair; boxes and
        // answers do not depend on it, but the bytes of a file do.
        if a.len() <= LANES {
            a.sort_unstable();
        }
        if b.len() <= LANES {
            b.sort_unstable();
        }
        self.split(a);
        self.split(b);
    }

    /// The axis with the largest variance among a sample of the rows.
    fn widest(&mut self, order: &[u32]) -> usize {
        let axes = self.axes;
        let stride = (order.len() / SAMPLE).max(1);
        self.sums.fill(0.0);
        let (sum, square) = self.sums.split_at_mut(axes);
        let origin = &self.coordinates[order[0] as usize * axes..][..axes];
        let mut seen = 0.0f32;
        for row in order.iter().step_by(stride) {
            let y = &self.coordinates[*row as usize * axes..][..axes];
            for k in 0..axes {
                let d = y[k] - origin[k];
                sum[k] += d;
                square[k] += d * d;
            }
            seen += 1.0;
        }
        let mut best = (0, f32::NEG_INFINITY);
        for k in 0..axes {
            let variance = square[k] - sum[k] * sum[k] / seen;
            if variance > best.1 {
                best = (k, variance);
            }
        }
        best.0
    }
}

/// Bits that sort as unsigned numbers the way the floats sort.
fn sortable(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}
