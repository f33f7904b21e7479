//! The 32-bit category field of a pose, and which poses a query admits.
//!
//! The rule, in one sentence: a pose passes when it has every, or any, asked-for bit (as
//! the query chooses) and none of the excluded ones; nothing asked for means all poses.
//!
//! The same rule is applied to whole blocks of rows through the union and the
//! intersection of their bits: a block is skipped only when no row in it can pass.

/// Bit 31: a pose that carries it is never stored in a database.
pub const DO_NOT_USE: u32 = 1 << 31;

/// How the bits of [`Filter::include`] are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Include {
    /// One of the bits is enough.
    #[default]
    Any,
    /// Every bit must be there.
    All,
}

/// Which poses a query admits, by their category bits.
///
/// The default admits every pose.
///
/// ```
/// use inbetween_match::Filter;
/// let walking_not_strafing = Filter { include: 0b010, exclude: 0b100, ..Filter::default() };
/// assert!(walking_not_strafing.admits(0b010));
/// assert!(!walking_not_strafing.admits(0b110)); // excluded
/// assert!(!walking_not_strafing.admits(0b001)); // not asked for
/// assert!(Filter { exclude: 0b100, ..Filter::default() }.admits(0)); // no include: all
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Bits asked for; 0 asks for nothing and admits every pose not excluded.
    pub include: u32,
    /// Whether one of those bits is enough or all are needed.
    pub mode: Include,
    /// Bits that must not be there.
    pub exclude: u32,
}

impl Filter {
    /// Whether a pose with these category bits passes.
    #[inline(always)]
    #[must_use]
    pub fn admits(&self, tags: u32) -> bool {
        self.may_admit(tags, tags)
    }

    /// Whether among poses whose bits have this union and this intersection one may pass.
    ///
    /// False is certain, true is not.
    #[inline(always)]
    #[must_use]
    pub fn may_admit(&self, union: u32, intersection: u32) -> bool {
        let asked = union & self.include;
        let included = match self.mode {
            Include::Any => self.include == 0 || asked != 0,
            Include::All => asked == self.include,
        };
        included && intersection & self.exclude == 0
    }

    /// Whether every pose passes, so that nothing need be looked up.
    #[inline(always)]
    #[must_use]
    pub fn admits_all(&self) -> bool {
        self.include == 0 && self.exclude == 0
    }

    /// Why a pose with these bits does not pass; `None` when it does.
    #[must_use]
    pub fn refusal(&self, tags: u32) -> Option<String> {
        let excluded = tags & self.exclude;
        if excluded != 0 {
            return Some(format!("carries excluded {}", bits(excluded)));
        }
        if self.admits(tags) {
            return None;
        }
        Some(match self.mode {
            Include::Any => format!("carries none of the asked-for {}", bits(self.include)),
            Include::All => format!("lacks asked-for {}", bits(self.include & !tags)),
        })
    }
}

/// The set bits by number, as in `bits 1, 4`.
fn bits(mask: u32) -> String {
    let list: Vec<String> = (0..32).filter(|b| mask >> b & 1 == 1).map(|b| b.to_string()).collect();
    format!("bit{} {}", if list.len() == 1 { "" } else { "s" }, list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_for_admits_every_pose_but_the_excluded() {
        let filter = Filter { exclude: 4, ..Filter::default() };
        assert!(filter.admits(0));
        assert!(filter.admits(3));
        assert!(!filter.admits(4));
    }

    #[test]
    fn any_needs_one_bit_and_all_needs_every_bit() {
        let any = Filter { include: 6, ..Filter::default() };
        let all = Filter { mode: Include::All, ..any };
        assert!(any.admits(2) && !all.admits(2));
        assert!(any.admits(7) && all.admits(7));
        assert!(!any.admits(1) && !all.admits(1));
    }

    #[test]
    fn a_block_is_refused_only_when_no_row_in_it_passes() {
        for include in 0..8u32 {
            for exclude in 0..8u32 {
                for mode in [Include::Any, Include::All] {
                    let filter = Filter { include, mode, exclude };
                    for a in 0..8u32 {
                        for b in 0..8u32 {
                            if filter.admits(a) || filter.admits(b) {
                                assert!(filter.may_admit(a | b, a & b));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_refusal_names_the_bits() {
        let filter = Filter { include: 2, exclude: 4, ..Filter::default() };
        assert_eq!(filter.refusal(6).unwrap(), "carries excluded bit 2");
        assert_eq!(filter.refusal(1).unwrap(), "carries none of the asked-for bit 1");
        assert_eq!(filter.refusal(2), None);
    }
}
