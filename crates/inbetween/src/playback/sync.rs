//! Loops that play in step: a walk and a run share one phase, so that feet meet while they blend.

/// A loop in a group: its range, its share of the blend, and where its steps fall.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncedLoop {
    /// Start of the loop, seconds.
    pub start: f64,
    /// End of the loop, seconds, after the start.
    pub end: f64,
    /// Its share of the blend, not negative.
    pub share: f64,
    /// Times, increasing, of the events that all loops of the group have in the same order (left
    /// foot down, right foot down, …). Empty: only starts are in step.
    pub events: Vec<f64>,
}

/// A phase shared by several loops.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SyncGroup {
    /// 0..1 through the loop.
    pub phase: f64,
    /// Whole passes done; negative backward.
    pub pass: i64,
}

impl SyncGroup {
    /// Goes on by `dt` seconds. The group runs at the blended length: a pass takes the mean of the
    /// loops' lengths, weighted by their shares.
    pub fn advance(&mut self, loops: &[SyncedLoop], dt: f64) {
        let total: f64 = loops.iter().map(|l| l.share.max(0.0)).sum();
        let length: f64 = loops.iter().map(|l| l.share.max(0.0) * (l.end - l.start)).sum();
        if !(total > 0.0 && length > 0.0) {
            return;
        }
        let to = self.phase + dt * total / length;
        let whole = to.floor();
        self.phase = to - whole;
        // to − ⌊to⌋ rounds to 1 for a tiny negative number.
        if self.phase >= 1.0 {
            self.phase = 0.0;
        }
        self.pass += whole as i64;
    }

    /// The time, on its own clock, at which a loop stands at this phase: with events, the phase
    /// runs evenly from one to the next, so that event k is at phase k/n in every loop.
    pub fn time_in(&self, synced: &SyncedLoop) -> f64 {
        let length = synced.end - synced.start;
        let n = synced.events.len();
        if n == 0 || length <= 0.0 {
            return synced.start + self.phase * length.max(0.0);
        }
        let place = self.phase * n as f64;
        let k = (place.floor() as usize).min(n - 1);
        let from = synced.events[k];
        let to = if k + 1 < n { synced.events[k + 1] } else { synced.events[0] + length };
        let t = from + (place - k as f64) * (to - from);
        if t >= synced.end { t - length } else { t }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_loops_fall_together() {
        let walk = SyncedLoop { start: 0.0, end: 1.2, share: 0.5, events: vec![0.1, 0.7] };
        let run = SyncedLoop { start: 5.0, end: 5.8, share: 0.5, events: vec![5.3, 5.65] };
        let mut group = SyncGroup { phase: 0.5, pass: 0 };
        assert!((group.time_in(&walk) - 0.7).abs() < 1e-12);
        assert!((group.time_in(&run) - 5.65).abs() < 1e-12);
        // Half and half of 1.2 s and 0.8 s is a pass of 1 s.
        group.advance(&[walk, run], 2.25);
        assert!((group.phase - 0.75).abs() < 1e-12);
        assert_eq!(group.pass, 2);
    }
}
