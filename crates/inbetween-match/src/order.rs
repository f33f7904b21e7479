//! Which row stands in which slot, and back, in as few bytes as it takes.
//!
//! Slots are the tree's order, rows the order of the clips. Slot to row is asked for when
//! a row wins, row to slot once a query (for the pose that plays now), so neither need be
//! fast and both may be small: three bytes a slot while that reaches, and two bytes a row
//! that name a group of slots, in which the row is then looked for.

/// A permutation of 0..n, readable both ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    rows: Vec<u8>,
    width: usize,
    groups: Vec<u16>,
    group: usize,
}

impl Order {
    /// `rows[slot]` is the row in that slot.
    pub(crate) fn new(rows: &[u32]) -> Self {
        let width = if rows.len() <= 1 << 16 {
            2
        } else if rows.len() <= 1 << 24 {
            3
        } else {
            4
        };
        let group = rows.len().div_ceil(1 << 16).next_multiple_of(16).max(16);
        let mut bytes = Vec::with_capacity(rows.len() * width);
        let mut groups = vec![0u16; rows.len()];
        for (number, slots) in rows.chunks(group).enumerate() {
            for row in slots {
                let [a, b, c, d] = row.to_le_bytes();
                match width {
                    2 => bytes.extend_from_slice(&[a, b]),
                    3 => bytes.extend_from_slice(&[a, b, c]),
                    _ => bytes.extend_from_slice(&[a, b, c, d]),
                }
                groups[*row as usize] = number as u16;
            }
        }
        Self { rows: bytes, width, groups, group }
    }

    #[inline]
    pub(crate) fn row(&self, slot: usize) -> u32 {
        let bytes = &self.rows[slot * self.width..][..self.width];
        bytes.iter().rev().fold(0, |row, byte| row << 8 | u32::from(*byte))
    }

    #[inline]
    pub(crate) fn slot(&self, row: u32) -> usize {
        let first = usize::from(self.groups[row as usize]) * self.group;
        let last = (first + self.group).min(self.groups.len());
        (first..last).find(|slot| self.row(*slot) == row).expect("a permutation holds every row")
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.len() + self.groups.len() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_in_its_slot_and_back() {
        for n in [1u32, 15, 16, 17, 1000, 70_001] {
            // 7919 is a prime that divides none of these, so this is a permutation.
            let rows: Vec<u32> = (0..n).map(|i| (u64::from(i) * 7919 % u64::from(n)) as u32).collect();
            let order = Order::new(&rows);
            assert_eq!(order.len(), n as usize);
            for (slot, row) in rows.iter().enumerate() {
                assert_eq!(order.row(slot), *row);
                assert_eq!(order.slot(*row), slot);
            }
        }
    }
}
