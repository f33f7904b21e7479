//! What can be said about a path before anything is rendered: how its spans were
//! built, whether they meet their keys, and where curves run past them.

use super::path::{CameraPath, PathSpan};
use super::slots::{SlotTiming, neighbour_slots, rewritten_slots};

/// What became of a path's spans.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PathStatus {
    /// Whether smoothing is on.
    pub on: bool,
    /// The amount for channels without one of their own.
    pub amount: f64,
    /// One row for each camera mode, in the order they first occur.
    pub modes: Vec<ModeStatus>,
    /// Spans whose curves miss one of their keys, found by evaluating them; 0.
    pub not_matching: usize,
    /// Keys of the path.
    pub keys: usize,
}

/// Counts of the spans that begin in one camera mode.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ModeStatus {
    /// The mode.
    pub mode: String,
    /// Spans built.
    pub built: usize,
    /// Of these, spans that are smoothed.
    pub smoothed: usize,
    /// Of these, spans left on the replay curve.
    pub left: usize,
    /// Of these, spans on which the camera's place goes straight.
    pub straight: usize,
    /// Of these, spans that hold until the picture cuts over.
    pub cuts: usize,
}

/// A span on which a channel runs past the range of its two keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Overshot {
    /// The channel's name.
    pub channel: String,
    /// The span: its first key.
    pub span: usize,
    /// Times of its keys, seconds.
    pub times: (f64, f64),
    /// How far past the nearer key, in the channel's unit.
    pub past: f64,
    /// The value reached.
    pub value: f64,
    /// When, seconds.
    pub at: f64,
}

impl CameraPath {
    /// How the spans were built.
    pub fn status(&self) -> PathStatus {
        let mut status = PathStatus {
            on: self.smoothing.on,
            amount: self.smoothing.amount,
            not_matching: self.not_matching(),
            keys: self.len(),
            modes: Vec::new(),
        };
        for i in 0..self.spans() {
            let mode = &self.modes[i];
            let at = status.modes.iter().position(|m| m.mode == **mode).unwrap_or_else(|| {
                status.modes.push(ModeStatus { mode: mode.to_string(), ..ModeStatus::default() });
                status.modes.len() - 1
            });
            let row = &mut status.modes[at];
            row.built += 1;
            match self.span_kind(i) {
                PathSpan::Cut => row.cuts += 1,
                PathSpan::Straight => row.straight += 1,
                PathSpan::Smoothed => row.smoothed += 1,
                PathSpan::Replay => row.left += 1,
            }
        }
        status
    }

    /// Spans whose finished polynomials do not meet their keys to nine digits.
    fn not_matching(&self) -> usize {
        let curve = &self.solved.curve;
        (0..self.spans())
            .filter(|&i| {
                let (start, end) = curve.span_times(i);
                (0..self.channels.len()).any(|k| {
                    let cubic = curve.cubic(i, k);
                    let (from, to) = (self.flown_value(i, k), self.flown_value((i + 1) % self.len(), k));
                    let (leave, arrive) = self.span_velocities(i, k);
                    let size = (leave.abs() + arrive.abs()) * (end - start) + from.abs() + to.abs();
                    let mut miss = cubic.value(end - start) - to;
                    if self.span_kind(i) == PathSpan::Cut {
                        miss = cubic.value(end - start) - from;
                    } else if let Some(turn) = self.channels[k].turn {
                        // A closed path may be back a whole turn further on.
                        miss -= (miss / turn + 0.5).floor() * turn;
                    }
                    (cubic.value(0.0) - from).abs() > 1e-9 * size || miss.abs() > 1e-9 * size
                })
            })
            .count()
    }

    /// Every span and channel that runs past the range of its two keys, by exact
    /// extrema, in order of time.
    pub fn overshoot(&self) -> Vec<Overshot> {
        let curve = &self.solved.curve;
        let mut found = Vec::new();
        for i in 0..self.spans() {
            if self.span_kind(i) == PathSpan::Cut {
                continue;
            }
            let (start, end) = curve.span_times(i);
            for (k, channel) in self.channels.iter().enumerate() {
                let cubic = curve.cubic(i, k);
                let (from, to) = (cubic.a, cubic.value(end - start));
                let (low, high) = (from.min(to), from.max(to));
                let range = cubic.extrema(end - start, to);
                // Rounding of the polynomial itself is not overshoot.
                let noise = 1e-12 * (low.abs() + high.abs() + range.max - range.min).max(1.0);
                for (past, value, at) in
                    [(low - range.min, range.min, range.min_at), (range.max - high, range.max, range.max_at)]
                {
                    if past > noise {
                        let channel = channel.name.clone();
                        found.push(Overshot {
                            channel,
                            span: i,
                            times: (start, end),
                            past,
                            value,
                            at: start + at,
                        });
                    }
                }
            }
        }
        found
    }

    /// The four slots of channel `k` on span `i` with which a four-key player plays
    /// this path (brake 0).
    pub fn slots(&self, i: usize, k: usize) -> [f64; 4] {
        let (start, end) = self.solved.curve.span_times(i);
        let (cubic, h) = (self.solved.curve.cubic(i, k), end - start);
        let (leave, arrive) =
            if self.span_kind(i) == PathSpan::Cut { (0.0, 0.0) } else { self.span_velocities(i, k) };
        rewritten_slots(cubic.a, cubic.value(h), leave * h, arrive * h)
    }

    /// The four slots the player's own builder makes of channel `k` on span `i`: key
    /// and neighbours, as far as they are of the same run.
    pub fn own_slots(&self, i: usize, k: usize, timing: SlotTiming) -> [f64; 4] {
        let key = |i: usize| (self.times[i], self.flown_value(i, k));
        let joined = |i: usize| self.span_kind(i) != PathSpan::Cut;
        let next = |i: usize| {
            if i < self.len() {
                key(i)
            } else {
                let (_, end) = self.solved.curve.span_times(self.spans() - 1);
                let (start, _) = self.solved.curve.span_times(self.spans() - 1);
                (end, self.solved.curve.cubic(self.spans() - 1, k).value(end - start))
            }
        };
        let before = (i > 0 && joined(i - 1)).then(|| key(i - 1));
        let after = (i + 2 < self.len() && joined(i + 1)).then(|| key(i + 2));
        neighbour_slots(before, key(i), next(i + 1), after, timing)
    }
}
