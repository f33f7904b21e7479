//! A clock over one clip: it advances, wraps, and says which markers it passed.
//!
//! The clock counts passes in a whole number and keeps only the time inside the range as a float,
//! so it is as exact after days as at the start, and a step longer than what is left of a pass
//! carries the rest over.

use crate::clip::Clip;
use crate::time::Wrap;

/// Where a player stands in a clip.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    start: f64,
    end: f64,
    wrap: Wrap,
    /// Seconds since the start of the current pass, 0..length; for ping-pong of the current way.
    into: f64,
    /// Whole passes done; negative when playing backward from the start.
    pass: i64,
}

impl Player {
    /// At the start of `clip`, wrapping as told.
    pub fn new(clip: &Clip, wrap: Wrap) -> Self {
        Self { start: clip.start(), end: clip.end(), wrap, into: 0.0, pass: 0 }
    }

    fn length(&self) -> f64 {
        self.end - self.start
    }

    /// Time on the clip's own clock, inside its range, seconds.
    pub fn time(&self) -> f64 {
        if self.wrap == Wrap::PingPong && self.pass.rem_euclid(2) == 1 {
            return self.end - self.into;
        }
        (self.start + self.into).min(self.end)
    }

    /// Whole passes done.
    pub fn pass(&self) -> i64 {
        self.pass
    }

    /// True if a clip that is played once has come to its end (or, backward, its start).
    pub fn finished(&self) -> bool {
        self.wrap == Wrap::Hold && self.into >= self.length()
    }

    /// Goes on by `dt` seconds (backward if negative).
    pub fn advance(&mut self, dt: f64) {
        let length = self.length();
        let to = self.into + dt;
        if self.wrap == Wrap::Hold || length <= 0.0 {
            self.into = to.clamp(0.0, length.max(0.0));
            return;
        }
        let rest = to.rem_euclid(length);
        let rest = if rest >= length { 0.0 } else { rest };
        self.pass += ((to - rest) / length).round() as i64;
        self.into = rest;
    }

    /// Like [`advance`](Self::advance), calling `fire` with the index of each marker of `clip`
    /// passed on the way, in the order they are passed, once per pass in either direction.
    ///
    /// A step covers the times from where it began (left out) to where it ends (counted), so that
    /// two steps in a row never fire a marker twice; a marker at the very start of the clip fires
    /// when a pass begins, not on the first step from rest.
    pub fn advance_firing(&mut self, clip: &Clip, dt: f64, mut fire: impl FnMut(usize)) {
        let before = self.clone();
        self.advance(dt);
        let length = self.length();
        if length <= 0.0 || dt == 0.0 || clip.markers.is_empty() {
            return;
        }
        let (first, last) = (before.pass.min(self.pass), before.pass.max(self.pass));
        let passes: Vec<i64> =
            if dt > 0.0 { (first..=last).collect() } else { (first..=last).rev().collect() };
        for pass in passes {
            let backward_way = self.wrap == Wrap::PingPong && pass.rem_euclid(2) == 1;
            let at = |i: usize| {
                let t = (clip.markers[i].time - self.start).clamp(0.0, length);
                match self.wrap {
                    Wrap::PingPong if backward_way => length - t,
                    // The end of one pass is the start of the next and fires as that.
                    Wrap::Loop | Wrap::LoopOffset if t >= length => 0.0,
                    _ => t,
                }
            };
            let mut hit: Vec<usize> = (0..clip.markers.len())
                .filter(|&i| {
                    let t = at(i);
                    let after_begin =
                        pass != before.pass || if dt > 0.0 { t > before.into } else { t < before.into };
                    let before_end =
                        pass != self.pass || if dt > 0.0 { t <= self.into } else { t >= self.into };
                    after_begin && before_end
                })
                .collect();
            hit.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
            if dt < 0.0 {
                hit.reverse();
            }
            hit.into_iter().for_each(&mut fire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip::Marker;

    fn clip() -> Clip {
        let mut clip = Clip::new("steps", 2.0, 3.0).unwrap();
        for (time, name) in [(2.25, "left"), (2.75, "right")] {
            clip.markers.push(Marker { time, name: name.into() });
        }
        clip
    }

    fn fired(wrap: Wrap, dt: f64, steps: usize) -> Vec<usize> {
        let clip = clip();
        let mut player = Player::new(&clip, wrap);
        let mut all = Vec::new();
        for _ in 0..steps {
            player.advance_firing(&clip, dt, |m| all.push(m));
        }
        all
    }

    #[test]
    fn markers_fire_once_per_pass_however_long_the_steps() {
        assert_eq!(fired(Wrap::Loop, 0.1, 20), [0, 1, 0, 1]);
        assert_eq!(fired(Wrap::Loop, 2.0, 1), [0, 1, 0, 1]);
        assert_eq!(fired(Wrap::Loop, -0.1, 20), [1, 0, 1, 0]);
        assert_eq!(fired(Wrap::PingPong, 0.5, 4), [0, 1, 1, 0]);
        assert_eq!(fired(Wrap::Hold, 0.3, 10), [0, 1]);
        assert_eq!(fired(Wrap::Hold, -0.3, 10), Vec::<usize>::new());
    }

    #[test]
    fn a_marker_at_the_seam_fires_once_a_pass() {
        for time in [2.0, 3.0] {
            let mut clip = clip();
            clip.markers = vec![Marker { time, name: "seam".into() }];
            let mut player = Player::new(&clip, Wrap::Loop);
            let mut count = 0;
            for _ in 0..35 {
                player.advance_firing(&clip, 0.1, |_| count += 1);
            }
            assert_eq!(count, 3, "marker at {time}");
        }
    }

    #[test]
    fn the_rest_of_a_step_is_carried_over() {
        let clip = clip();
        let mut player = Player::new(&clip, Wrap::Loop);
        for _ in 0..100 {
            player.advance(0.07);
        }
        assert!((player.time() - Wrap::Loop.apply(2.0 + 7.0, 2.0, 3.0).time).abs() < 1e-12);
        assert_eq!(player.pass(), 7);
    }

    #[test]
    fn a_clip_played_once_stays_at_its_last_pose() {
        let clip = clip();
        let mut player = Player::new(&clip, Wrap::Hold);
        for _ in 0..4 {
            player.advance(0.3);
        }
        assert_eq!(player.time(), 3.0);
        assert!(player.finished());
    }
}
