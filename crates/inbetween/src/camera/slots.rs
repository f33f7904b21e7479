//! The four-key form of a replay player, and how to make it play any velocities.
//!
//! The idea: some players keep, for each span, four values (the key before, the
//! two keys of the span, the key after) and a brake for each channel, and work the
//! tangents out themselves: half the way between the neighbours, *per span*, not
//! per second. A player that cannot be changed still plays any velocity when its
//! two outer slots are moved, since they are used for nothing else.
//!
//! Outer slots can be timed in two ways. With uneven gaps, slots that are the
//! neighbouring values as they are ([`SlotTiming::Raw`]) give the classic
//! Catmull–Rom curve, which surges; slots moved along the straight line to where
//! the neighbour would be one span's length away ([`SlotTiming::TrueTime`]) give
//! the mean of the true velocities.

/// How the outer slots of a span stand for its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SlotTiming {
    /// Moved to one span's length away, so that velocities are true.
    #[default]
    TrueTime,
    /// The neighbour's value as it is, whatever its distance in time.
    Raw,
}

/// The four slots of the span from `key` to `next`, each (seconds, value), as a
/// player's own builder makes them; a missing neighbour repeats the key beside it.
pub fn neighbour_slots(
    before: Option<(f64, f64)>,
    key: (f64, f64),
    next: (f64, f64),
    after: Option<(f64, f64)>,
    timing: SlotTiming,
) -> [f64; 4] {
    let h = next.0 - key.0;
    let outer = |near: (f64, f64), far: Option<(f64, f64)>| match (far, timing) {
        (None, _) => near.1,
        (Some(far), SlotTiming::Raw) => far.1,
        (Some(far), SlotTiming::TrueTime) => near.1 + (far.1 - near.1) * (h / (far.0 - near.0).abs()),
    };
    [outer(key, before), key.1, next.1, outer(next, after)]
}

/// Four slots with which the player plays the span from `p1` to `p2` with the
/// tangents `t1` and `t2` (brake 0).
///
/// The tangents are per *span*: velocity per second times the span's length.
/// Forgetting that is the classic error.
pub fn rewritten_slots(p1: f64, p2: f64, t1: f64, t2: f64) -> [f64; 4] {
    [p2 - 2.0 * t1, p1, p2, p1 + 2.0 * t2]
}

/// What the player shows at the share `u` (0 to 1) of a span with these slots and
/// this brake at both keys.
pub fn play_slots(slots: [f64; 4], brake: f64, u: f64) -> f64 {
    let [p0, p1, p2, p3] = slots;
    let t1 = 0.5 * (p2 - p0) * (1.0 - brake);
    let t2 = 0.5 * (p3 - p1) * (1.0 - brake);
    crate::spline::Cubic::hermite(1.0, p1, p2, t1, t2).value(u)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_for_seconds_are_the_classic_error() {
        // 4 m in 2 s at an even 2 m/s: a tangent of 4 a span.
        let right = rewritten_slots(1.0, 5.0, 2.0 * 2.0, 2.0 * 2.0);
        assert_eq!(right, [-3.0, 1.0, 5.0, 9.0]);
        assert_eq!(play_slots(right, 0.0, 0.25), 2.0);
        assert_ne!(play_slots(rewritten_slots(1.0, 5.0, 2.0, 2.0), 0.0, 0.25), 2.0);
    }

    #[test]
    fn the_two_timings_agree_where_gaps_are_even() {
        let slots =
            |timing| neighbour_slots(Some((0.0, 3.0)), (1.0, 4.0), (2.0, 6.0), Some((3.0, 1.0)), timing);
        assert_eq!(slots(SlotTiming::Raw), slots(SlotTiming::TrueTime));
        assert_eq!(slots(SlotTiming::Raw), [3.0, 4.0, 6.0, 1.0]);
    }

    #[test]
    fn uneven_gaps_move_true_time_slots() {
        let slots = |timing| neighbour_slots(Some((0.0, 0.0)), (4.0, 8.0), (5.0, 9.0), None, timing);
        assert_eq!(slots(SlotTiming::Raw), [0.0, 8.0, 9.0, 9.0]);
        assert_eq!(slots(SlotTiming::TrueTime), [6.0, 8.0, 9.0, 9.0]);
    }
}
