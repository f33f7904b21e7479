//! What keys must be before a curve goes through them, and how keys that are
//! not can be mended.
//!
//! The idea: everything behind this door may rely on at least one key, finite
//! numbers and times that increase. [`check`] is the strict door: it names the
//! first key that breaks a rule. [`mend`] is the lenient one: it sorts, drops
//! keys repeated exactly and turns two values at one time into a jump, and says
//! each thing it did. Neither guesses about numbers that are not numbers.

use thiserror::Error;

/// Why keys cannot become a curve.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SplineError {
    /// No keys at all.
    #[error("a curve needs at least one key and got none (empty); leave the curve out or give it one key")]
    Empty,
    /// The numbers do not divide into rows of the width.
    #[error("{times} key times at {width} numbers a key need {} numbers, but there are {values}; give each key all of its components", times * width)]
    Shape {
        /// Number of key times.
        times: usize,
        /// Numbers a key.
        width: usize,
        /// Numbers found.
        values: usize,
    },
    /// A key time or a value is NaN or infinite.
    #[error(
        "key {index} has {what} {value}, which is not a finite number; remove the key or repair its number"
    )]
    NonFinite {
        /// Which key, from 0.
        index: usize,
        /// Which of its numbers: "time", "value", "tangent"…
        what: &'static str,
        /// What was found.
        value: f64,
    },
    /// Two keys in a row have the same time.
    #[error("keys {} and {index} are both at {time} s, the same time; key times must be increasing, so remove the duplicate or move one of the two", index - 1)]
    DuplicateTime {
        /// The second of the two keys, from 0.
        index: usize,
        /// Their time in seconds.
        time: f64,
    },
    /// A key is earlier than the one before it.
    #[error("key {index} is at {time} s but key {} is already at {previous} s; key times must be increasing and these are out of order, so sort the keys", index - 1)]
    NotSorted {
        /// The later key of the pair, from 0.
        index: usize,
        /// Time of the key before it, seconds.
        previous: f64,
        /// Its own time, seconds.
        time: f64,
    },
    /// Two keys are so near each other that a velocity between them cannot be
    /// written as a number.
    #[error("keys {} and {index} are only {gap} s apart, too near for the change between them to have a finite velocity and acceleration; merge the two or move them apart", index - 1)]
    GapTooSmall {
        /// The second of the two keys, from 0.
        index: usize,
        /// Seconds between them.
        gap: f64,
    },
    /// A periodic curve whose last value is not its first.
    #[error(
        "component {component} starts at {first} and ends at {last}; a periodic curve must end where it starts, so repeat the first key's value at the last"
    )]
    NotClosed {
        /// Which component, from 0.
        component: usize,
        /// Value at the first key.
        first: f64,
        /// Value at the last key.
        last: f64,
    },
    /// A parameter of a rule is outside what the rule takes.
    #[error("{what} is {value}; it must be {expected}")]
    Parameter {
        /// Which parameter.
        what: &'static str,
        /// What was found.
        value: f64,
        /// What is allowed.
        expected: &'static str,
    },
}

/// Checks that `times` (seconds) and `values` (row after row of `width` numbers)
/// can carry a curve, and names the first key that cannot.
///
/// # Errors
/// [`SplineError::Empty`], [`SplineError::Shape`], [`SplineError::NonFinite`],
/// [`SplineError::DuplicateTime`], [`SplineError::NotSorted`].
pub fn check(times: &[f64], values: &[f64], width: usize) -> Result<(), SplineError> {
    check_shape(times, values, width)?;
    // Times that increase from a finite one to a finite one are all finite.
    let increasing = times.windows(2).fold(true, |so_far, pair| so_far & (pair[0] < pair[1]));
    if increasing && times[0].is_finite() && times[times.len() - 1].is_finite() && all_finite(values) {
        return Ok(());
    }
    check_finite(times, values, width)?;
    for (index, pair) in times.windows(2).enumerate() {
        let (previous, time, index) = (pair[0], pair[1], index + 1);
        if time == previous {
            return Err(SplineError::DuplicateTime { index, time });
        }
        if time < previous {
            return Err(SplineError::NotSorted { index, previous, time });
        }
    }
    Ok(())
}

fn check_shape(times: &[f64], values: &[f64], width: usize) -> Result<(), SplineError> {
    if times.is_empty() {
        return Err(SplineError::Empty);
    }
    if width == 0 || times.len().checked_mul(width) != Some(values.len()) {
        return Err(SplineError::Shape { times: times.len(), width, values: values.len() });
    }
    Ok(())
}

fn check_finite(times: &[f64], values: &[f64], width: usize) -> Result<(), SplineError> {
    if let Some(index) = times.iter().position(|t| !t.is_finite()) {
        return Err(SplineError::NonFinite { index, what: "time", value: times[index] });
    }
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        return Err(SplineError::NonFinite { index: at / width, what: "value", value: values[at] });
    }
    Ok(())
}

/// Whether all numbers are finite: x·0 is 0 for those and NaN for others, so a few
/// sums tell without a branch.
fn all_finite(numbers: &[f64]) -> bool {
    let mut sums = [0.0; 8];
    let chunks = numbers.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|x| x * 0.0).sum();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += x * 0.0;
        }
    }
    sums.iter().sum::<f64>() + rest == 0.0
}

/// Keys made fit for a curve by [`mend`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mended {
    /// Key times; a time may stand twice in a row, which is a jump.
    pub times: Vec<f64>,
    /// Values, row after row.
    pub values: Vec<f64>,
    /// Keys at which a new piece begins: the second key of each jump.
    pub jumps: Vec<usize>,
    /// What was done, in order.
    pub repairs: Vec<Repair>,
}

/// One thing [`mend`] did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repair {
    /// The keys were sorted by time; this key was the first out of order.
    Sorted {
        /// Its index as given, from 0.
        index: usize,
    },
    /// A key that repeated another's time and value was dropped.
    Dropped {
        /// Its index as given, from 0.
        index: usize,
        /// Its time, seconds.
        time: f64,
    },
    /// Two values at one time became a jump; the later one holds from there on.
    Jump {
        /// Index as given of the key that the jump goes to, from 0.
        index: usize,
        /// Its time, seconds.
        time: f64,
    },
    /// A key between the first and the last value of a jump was dropped, since
    /// no time shows it.
    Hidden {
        /// Its index as given, from 0.
        index: usize,
        /// Its time, seconds.
        time: f64,
    },
}

/// Makes keys fit for a curve: sorts them by time (equal times keep their order),
/// drops keys that repeat the one before, and turns two values at one time into
/// a jump, which is right-continuous.
///
/// # Errors
/// [`SplineError::Empty`], [`SplineError::Shape`], [`SplineError::NonFinite`]:
/// these are never guessed at.
pub fn mend(times: &[f64], values: &[f64], width: usize) -> Result<Mended, SplineError> {
    check_shape(times, values, width)?;
    check_finite(times, values, width)?;
    let mut order: Vec<usize> = (0..times.len()).collect();
    let mut mended = Mended::default();
    if let Some(index) = (1..times.len()).find(|&i| times[i] < times[i - 1]) {
        order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
        mended.repairs.push(Repair::Sorted { index });
    }
    let row = |i: usize| &values[i * width..(i + 1) * width];
    let mut at = 0;
    while at < order.len() {
        let time = times[order[at]];
        let group = order[at..].iter().take_while(|&&i| times[i] == time).count();
        let first = order[at];
        mended.times.push(time);
        mended.values.extend_from_slice(row(first));
        // Of all keys at one time only the first is seen from the left and the
        // last from the right.
        let last = order[at + group - 1];
        for &index in &order[at + 1..at + group] {
            if row(index) == row(first) && row(index) == row(last) {
                mended.repairs.push(Repair::Dropped { index, time });
            } else if index != last {
                mended.repairs.push(Repair::Hidden { index, time });
            }
        }
        if row(last) != row(first) {
            mended.jumps.push(mended.times.len());
            mended.times.push(time);
            mended.values.extend_from_slice(row(last));
            mended.repairs.push(Repair::Jump { index: last, time });
        }
        at += group;
    }
    Ok(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_key_and_what_to_do() {
        let same = check(&[0.0, 1.0, 1.0], &[0.0; 3], 1).unwrap_err().to_string();
        assert!(
            same.contains("keys 1 and 2") && same.contains("same time") && same.contains("remove"),
            "{same}"
        );
        let back = check(&[0.0, 2.0, 1.0], &[0.0; 3], 1).unwrap_err().to_string();
        assert!(back.contains("key 2") && back.contains("increasing") && back.contains("sort"), "{back}");
    }

    #[test]
    fn a_row_cut_short_is_a_shape_error() {
        assert_eq!(
            check(&[0.0, 1.0], &[0.0; 5], 3),
            Err(SplineError::Shape { times: 2, width: 3, values: 5 })
        );
        assert!(matches!(check(&[0.0], &[], 0), Err(SplineError::Shape { .. })));
    }

    #[test]
    fn three_values_at_one_time_keep_the_first_and_the_last() {
        let mended = mend(&[0.0, 1.0, 1.0, 1.0, 2.0], &[0.0, 1.0, 9.0, 5.0, 6.0], 1).unwrap();
        assert_eq!(mended.times, [0.0, 1.0, 1.0, 2.0]);
        assert_eq!(mended.values, [0.0, 1.0, 5.0, 6.0]);
        assert_eq!(mended.jumps, [2]);
        assert_eq!(
            mended.repairs,
            [Repair::Hidden { index: 2, time: 1.0 }, Repair::Jump { index: 3, time: 1.0 }]
        );
    }

    #[test]
    fn sound_keys_are_left_as_they_are() {
        let mended = mend(&[0.0, 1.0], &[3.0, 4.0], 1).unwrap();
        assert!(mended.repairs.is_empty() && mended.jumps.is_empty());
    }
}
