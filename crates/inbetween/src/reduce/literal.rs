//! The triplet rule as it was published, for comparison. **It has no bound**; use the other reducers.
//!
//! From a key, the next sample is dropped if the line from the key to the sample behind it passes within the
//! tolerance of the sample *next to the key*; then the following sample is tried against the same neighbour
//! of the key, whatever has been dropped before. So only one sample of a span is ever compared, and a slow
//! curve drifts away: at tolerance 0.05 on t²/2 over ten seconds the result is 0.73, 2.9 and 11.5 off at 24,
//! 48 and 96 samples a second.
//!
//! The other traps of the published code are kept as well: times are rounded down to milliseconds, the
//! comparison is strict (a tolerance of 0 drops nothing), the tolerance is the same for every unit, and two
//! samples in one millisecond divide zero by zero (the comparison with NaN then keeps the key). Its integer
//! absolute value, which takes every error below 1 for 0, can be switched on.
//!
//! Source: the code printed in L. Spiro, *Animation tracks*, with its reading of an FBX curve left out.

/// Which of the published code's habits to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Literal {
    /// Round times down to whole milliseconds, as `GetMilliSeconds` does.
    pub milliseconds: bool,
    /// Take the absolute value as an integer, as C's `abs` does: each error is cut to its whole part.
    pub integer_absolute: bool,
}

/// The indices the triplet rule keeps. See the module for why not to use them.
///
/// - `times`: increasing seconds; `values`: as many, in any unit; `tolerance`: errors below it are dropped.
///
/// O(n · longest span); the published code's O(n²) removals are not imitated.
///
/// # Panics
/// If the two lengths differ.
pub fn literal(times: &[f64], values: &[f64], tolerance: f64, habits: Literal) -> Vec<usize> {
    assert_eq!(times.len(), values.len(), "a value per time");
    let n = times.len();
    if n < 3 {
        return (0..n).collect();
    }
    let time = |index: usize| {
        if habits.milliseconds { (times[index] * 1000.0).floor() } else { times[index] }
    };
    let mut kept = vec![0];
    let mut start = 0;
    let mut next = 1;
    // `start` is the key, `next` the neighbour it has by now, and the sample behind that is the end tried.
    while next + 1 < n {
        let end = next + 1;
        let fraction = (time(next) - time(start)) / (time(end) - time(start));
        let line = (values[end] - values[start]) * fraction + values[start];
        let off = line - values[next];
        let off = if habits.integer_absolute { off.trunc().abs() } else { off.abs() };
        if off < tolerance {
            next = end;
        } else {
            kept.push(next);
            start = next;
            next = end;
        }
    }
    kept.push(n - 1);
    kept
}
