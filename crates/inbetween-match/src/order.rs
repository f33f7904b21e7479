//! Which row stands in which slot, and back, in as few bytes as it takes.
//!
//! Slots are the tree's order, rows the order of the clips. Slot to row is asked for when
//! a row wins, row to slot once a query (for the pose that plays now), so neither need be
//! fast and both may be small: as many bits a slot as the largest row takes, and two bytes a
//! row that name a group of slots, in which the row is then looked for.

/// A permutation of 0..n, readable both ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// The rows, `bits` each, lowest bits first; 8 bytes more than they take, so that any of
    /// them can be read as part of a u64.
    rows: Vec<u8>,
    bits: usize,
    groups: Vec<u16>,
    group: usize,
}

impl Order {
    /// `rows[slot]` is the row in that slot.
    pub(crate) fn new(rows: &[u32]) -> Self {
        let bits = (usize::BITS - rows.len().saturating_sub(1).leading_zeros()).max(1) as usize;
        let group = rows.len().div_ceil(1 << 16).next_multiple_of(16).max(16);
        let mut bytes = Vec::with_capacity((rows.len() * bits).div_ceil(8) + 8);
        let mut groups = vec![0u16; rows.len()];
        let (mut open, mut filled) = (0u64, 0);
        for (number, slots) in rows.chunks(group).enumerate() {
            for row in slots {
                open |= u64::from(*row) << filled;
                filled += bits;
                while filled >= 8 {
                    bytes.push(open as u8);
                    open >>= 8;
                    filled -= 8;
                }
                groups[*row as usize] = number as u16;
            }
        }
        bytes.push(open as u8);
        bytes.resize((rows.len() * bits).div_ceil(8) + 8, 0);
        Self { rows: bytes, bits, groups, group }
    }

    #[inline]
    pub(crate) fn row(&self, slot: usize) -> u32 {
        let at = slot * self.bits;
        let mut word = [0u8; 8];
        word.copy_from_slice(&self.rows[at / 8..][..8]);
        (u64::from_le_bytes(word) >> (at % 8)) as u32 & (u32::MAX >> (32 - self.bits))
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
