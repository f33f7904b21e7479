//! The same path on another clock: even speed, a cap on turning, ease in and out.
//!
//! The idea: where the camera goes and when are two things. A new clock runs along
//! the path at a rate of its choice: slowly where much road lies in a second of the
//! old clock (even speed), and slower still where the camera would turn faster than
//! it may. The rate is integrated in pieces small enough to be cubics, and the
//! pieces are inverted when a pose is asked for. Easing is one more clock in front.
//! The road itself, and every key on it, stay exactly where they are.
//!
//! It stops at the clock: a retimed path is sampled, or made keys again by [`super::rekey`].

use super::channel::CameraPose;
use super::path::{CameraError, CameraPath, PathSpan};
use crate::spline::Cubic;

/// How a path is retimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Retime {
    /// Whether the camera's speed is even (the default) or its own.
    pub even_speed: bool,
    /// How long the whole takes, seconds; as long as the path by default. Longer
    /// where the cap on turning makes it so.
    pub duration: Option<f64>,
    /// The fastest the camera may turn, radians per second; no cap with `None`. 120
    /// degrees per second by default.
    pub max_turning: Option<f64>,
    /// Seconds over which it starts from rest.
    pub ease_in_s: f64,
    /// Seconds over which it comes to rest.
    pub ease_out_s: f64,
}

impl Default for Retime {
    fn default() -> Self {
        Self { even_speed: true, duration: None, max_turning: Some(2.0944), ease_in_s: 0.0, ease_out_s: 0.0 }
    }
}

/// A path on another clock, which starts at 0.
#[derive(Clone, Debug)]
pub struct Retimed<'a> {
    path: &'a CameraPath,
    /// Pieces in order: path time, new time, and new seconds per old at the start.
    knots: Vec<Knot>,
    ease: Ease,
    duration: f64,
    turning_held_back: bool,
}

#[derive(Clone, Copy, Debug)]
struct Knot {
    path: f64,
    clock: f64,
    /// New seconds per old second just after and just before.
    rate_after: f64,
    rate_before: f64,
}

/// Four-point Gauss–Legendre nodes and weights on −1..=1 (the positive half).
const NODES: [(f64, f64); 2] =
    [(0.339_981_043_584_856_3, 0.652_145_154_862_546_1), (0.861_136_311_594_052_6, 0.347_854_845_137_453_9)];

/// Pieces each span is cut into at first, and how often a piece may be halved.
const PIECES: usize = 16;
const DEPTH: u32 = 8;

impl CameraPath {
    /// Puts the path on another clock.
    ///
    /// # Errors
    /// [`CameraError::Setting`] for times that are negative or not finite, and for
    /// easing that takes longer than the whole.
    pub fn retime(&self, how: &Retime) -> Result<Retimed<'_>, CameraError> {
        let own = self.end() - self.start();
        let wanted = how.duration.unwrap_or(own);
        for (what, value, positive) in [
            ("the duration", wanted, own > 0.0),
            ("the fastest turning", how.max_turning.unwrap_or(1.0), true),
            ("the time to ease in", how.ease_in_s, false),
            ("the time to ease out", how.ease_out_s, false),
        ] {
            if !(value.is_finite() && (value > 0.0 || (!positive && value == 0.0))) {
                let expected =
                    if positive { "a positive number" } else { "zero or a positive number of seconds" };
                return Err(CameraError::Setting { what: what.to_owned(), value, expected });
            }
        }
        if how.ease_in_s + how.ease_out_s > wanted {
            return Err(CameraError::Setting {
                what: "the time to ease in and out together".to_owned(),
                value: how.ease_in_s + how.ease_out_s,
                expected: "no longer than the whole path",
            });
        }
        Ok(Clockwork::new(self, how.clone(), wanted).wind())
    }
}

impl Retimed<'_> {
    /// The path that is retimed.
    pub fn path(&self) -> &CameraPath {
        self.path
    }

    /// How long the whole takes, seconds.
    pub fn duration(&self) -> f64 {
        self.duration
    }

    /// Whether the cap on turning slowed the camera anywhere.
    pub fn turning_held_back(&self) -> bool {
        self.turning_held_back
    }

    /// The time of the path's own clock at `time` seconds of the new one; held outside
    /// 0..=duration.
    pub fn path_time(&self, time: f64) -> f64 {
        let time = self.ease.at(time, self.duration);
        let last = self.knots.len() - 1;
        if time.is_nan() {
            return time;
        }
        if time <= 0.0 {
            return self.knots[0].path;
        }
        if time >= self.knots[last].clock {
            return self.knots[last].path;
        }
        let i = self.knots.partition_point(|k| k.clock <= time) - 1;
        let (a, b) = (self.knots[i], self.knots[i + 1]);
        let piece = piece_between(a, b);
        let h = b.path - a.path;
        let rest = time - a.clock;
        let (mut low, mut high) = (0.0, h);
        let mut s = h * rest / (b.clock - a.clock);
        for _ in 0..60 {
            let miss = piece.value(s) - rest;
            if miss < 0.0 {
                low = s;
            } else {
                high = s;
            }
            let mut next = s - miss / piece.velocity(s);
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            if (next - s).abs() <= 1e-15 * h {
                return a.path + next;
            }
            s = next;
        }
        a.path + s
    }

    /// The new clock's time when the path's own clock shows `path_time`.
    pub fn time_of(&self, path_time: f64) -> f64 {
        let last = self.knots.len() - 1;
        let clock = if path_time.is_nan() || path_time <= self.knots[0].path {
            0.0
        } else if path_time >= self.knots[last].path {
            return self.duration;
        } else {
            let i = self.knots.partition_point(|k| k.path <= path_time) - 1;
            let (a, b) = (self.knots[i], self.knots[i + 1]);
            a.clock + piece_between(a, b).value(path_time - a.path)
        };
        self.ease.undo(clock, self.duration)
    }

    /// When the camera passes each key, seconds of the new clock.
    pub fn key_times(&self) -> Vec<f64> {
        self.path.times().iter().map(|&t| self.time_of(t)).collect()
    }

    /// The camera at `time` seconds of the new clock.
    pub fn pose(&self, time: f64) -> CameraPose {
        self.path.pose(self.path_time(time))
    }

    /// Velocity at `time` in the world, metres per second of the new clock.
    pub fn velocity(&self, time: f64) -> [f64; 3] {
        let rate = self.rate_at(time);
        self.path.velocity(self.path_time(time)).map(|v| v * rate)
    }

    /// Speed at `time`, metres per second of the new clock.
    pub fn speed(&self, time: f64) -> f64 {
        self.rate_at(time) * self.path.speed(self.path_time(time))
    }

    /// Turning at `time`, radians per second of the new clock.
    pub fn turning_rate(&self, time: f64) -> f64 {
        self.rate_at(time) * self.path.turning_rate(self.path_time(time))
    }

    /// Old seconds per new second.
    fn rate_at(&self, time: f64) -> f64 {
        if !(0.0..=self.duration).contains(&time) || self.knots.len() < 2 {
            return 0.0;
        }
        let at = self.path_time(time);
        let i = (self.knots.partition_point(|k| k.path <= at).max(1) - 1).min(self.knots.len() - 2);
        let (a, b) = (self.knots[i], self.knots[i + 1]);
        self.ease.rate(time, self.duration) / piece_between(a, b).velocity(at - a.path)
    }
}

/// The new clock over a piece, from 0 at its start.
fn piece_between(a: Knot, b: Knot) -> Cubic {
    let h = b.path - a.path;
    let slope = (b.clock - a.clock) / h;
    // Rates are positive; held to three times the slope the piece never turns back.
    let hold = |rate: f64| rate.min(3.0 * slope);
    Cubic::hermite(h, 0.0, b.clock - a.clock, hold(a.rate_after), hold(b.rate_before))
}

/// Works a retimed path out.
struct Clockwork<'a> {
    path: &'a CameraPath,
    how: Retime,
    wanted: f64,
    ease: Ease,
    /// What one second of the path counts for where it is not even.
    mean: f64,
    /// Metres (or old seconds) per new second, before the cap.
    pace: f64,
    cap: Option<f64>,
}

impl<'a> Clockwork<'a> {
    fn new(path: &'a CameraPath, how: Retime, wanted: f64) -> Self {
        let ease = Ease { rise: how.ease_in_s, fall: how.ease_out_s };
        let cap = how.max_turning.map(|cap| cap / ease.peak(wanted));
        Self { path, how, wanted, ease, mean: 1.0, pace: 1.0, cap }
    }

    fn wind(mut self) -> Retimed<'a> {
        let (path, even) = (self.path, self.how.even_speed);
        let own = path.end() - path.start();
        if own <= 0.0 {
            let knot = Knot { path: path.start(), clock: 0.0, rate_after: 1.0, rate_before: 1.0 };
            return Retimed {
                path,
                knots: vec![knot],
                ease: self.ease,
                duration: 0.0,
                turning_held_back: false,
            };
        }
        // Road and turning at points close enough to weigh one against the other.
        let mut points = Vec::new();
        for i in 0..path.spans() {
            let (start, end) = path.curve().span_times(i);
            let h = (end - start) / (2 * PIECES) as f64;
            for piece in 0..2 * PIECES {
                let middle = start + h * (piece as f64 + 0.5);
                for (node, weight) in NODES {
                    for at in [middle - 0.5 * h * node, middle + 0.5 * h * node] {
                        points.push((self.road(i, at), self.turning(at), 0.5 * h * weight));
                    }
                }
            }
        }
        let length: f64 = points.iter().filter(|p| !p.0.is_nan()).map(|p| p.0 * p.2).sum();
        self.mean = if even && length > 0.0 { length / own } else { 1.0 };
        let weigh =
            |road: f64| if road.is_nan() || length <= 0.0 { self.mean } else { road.max(1e-6 * self.mean) };
        let total = |pace: f64| -> f64 {
            points
                .iter()
                .map(|&(road, turning, weight)| {
                    weight * self.cap.map_or(0.0, |cap| turning / cap).max(weigh(road) / pace)
                })
                .sum()
        };
        let plain: f64 = points.iter().map(|p| weigh(p.0) * p.2).sum();
        self.pace = plain / self.wanted;
        let held_back = total(self.pace) > self.wanted * (1.0 + 1e-9);
        if held_back {
            // Faster elsewhere makes up for it, as far as that goes.
            let (mut slow, mut fast) = (self.pace, self.pace * 1e6);
            for _ in 0..80 {
                let middle = (slow * fast).sqrt();
                if total(middle) > self.wanted { slow = middle } else { fast = middle }
            }
            self.pace = fast;
            self.wanted = self.wanted.max(total(fast));
        }
        let mut knots = Vec::with_capacity(path.spans() * PIECES + 1);
        for i in 0..path.spans() {
            let (start, end) = path.curve().span_times(i);
            for piece in 0..PIECES {
                let share = |p: usize| start + (end - start) * (p as f64 / PIECES as f64);
                self.cut(
                    i,
                    share(piece),
                    if piece + 1 == PIECES { end } else { share(piece + 1) },
                    DEPTH,
                    &mut knots,
                );
            }
        }
        // The pieces' sum differs from the estimate by its rounding.
        let sum = knots.last().map_or(0.0, |k| k.clock);
        let stretch = self.wanted / sum;
        for knot in &mut knots {
            knot.clock *= stretch;
            knot.rate_after *= stretch;
            knot.rate_before *= stretch;
        }
        Retimed { path, knots, ease: self.ease, duration: self.wanted, turning_held_back: held_back }
    }

    /// Road covered per second of the path; NaN where the path's own pace stays.
    fn road(&self, span: usize, time: f64) -> f64 {
        if !self.how.even_speed || self.path.span_kind(span) == PathSpan::Cut {
            return f64::NAN;
        }
        self.path.speed(time)
    }

    fn turning(&self, time: f64) -> f64 {
        if self.cap.is_some() { self.path.turning_rate(time) } else { 0.0 }
    }

    /// New seconds per old second.
    fn rate(&self, span: usize, time: f64) -> f64 {
        let road = self.road(span, time);
        let road = if road.is_nan() { self.mean } else { road.max(1e-6 * self.mean) };
        (road / self.pace).max(self.cap.map_or(0.0, |cap| self.turning(time) / cap))
    }

    fn integral(&self, span: usize, from: f64, to: f64) -> f64 {
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let at = |offset: f64| self.rate(span, middle + half * offset);
        half * NODES.iter().map(|&(node, weight)| weight * (at(-node) + at(node))).sum::<f64>()
    }

    /// Adds the pieces from `from` to `to`, halved until a cubic fits each.
    fn cut(&self, span: usize, from: f64, to: f64, depth: u32, knots: &mut Vec<Knot>) {
        let middle = 0.5 * (from + to);
        let (left, right) = (self.integral(span, from, middle), self.integral(span, middle, to));
        // One-sided rates: a key may have a corner.
        let inside = 1e-9 * (to - from);
        let (first, last) = (self.rate(span, from + inside), self.rate(span, to - inside));
        let start = knots.last().map_or(0.0, |k| k.clock);
        let a = Knot { path: from, clock: start, rate_after: first, rate_before: first };
        let b = Knot { path: to, clock: start + left + right, rate_after: last, rate_before: last };
        let fits = (piece_between(a, b).value(middle - from) - left).abs() <= 1e-7 * (left + right);
        if !fits && depth > 0 && middle > from && middle < to {
            self.cut(span, from, middle, depth - 1, knots);
            self.cut(span, middle, to, depth - 1, knots);
            return;
        }
        match knots.last_mut() {
            Some(knot) => knot.rate_after = first,
            None => knots.push(a),
        }
        knots.push(b);
    }
}

/// Starting from rest and coming to rest, with a speed that itself starts and ends
/// its change gently.
#[derive(Clone, Copy, Debug)]
struct Ease {
    rise: f64,
    fall: f64,
}

impl Ease {
    /// The fastest it runs, as a multiple of the even clock.
    fn peak(self, duration: f64) -> f64 {
        duration / (duration - 0.5 * (self.rise + self.fall))
    }

    fn at(self, time: f64, duration: f64) -> f64 {
        if time.is_nan() || (self.rise == 0.0 && self.fall == 0.0) {
            return time;
        }
        let time = time.clamp(0.0, duration);
        // The integral of 3x² − 2x³ is x³ − x⁴/2, half of the way in the whole.
        let ramp = |x: f64| x * x * x - 0.5 * x * x * x * x;
        let peak = self.peak(duration);
        if time < self.rise {
            peak * self.rise * ramp(time / self.rise)
        } else if time > duration - self.fall {
            duration - peak * self.fall * ramp((duration - time) / self.fall)
        } else {
            peak * (time - 0.5 * self.rise)
        }
    }

    fn rate(self, time: f64, duration: f64) -> f64 {
        let smooth = |x: f64| x * x * (3.0 - 2.0 * x);
        let peak = self.peak(duration);
        if time < self.rise {
            peak * smooth(time / self.rise)
        } else if time > duration - self.fall {
            peak * smooth((duration - time) / self.fall)
        } else {
            peak
        }
    }

    fn undo(self, clock: f64, duration: f64) -> f64 {
        if self.rise == 0.0 && self.fall == 0.0 {
            return clock;
        }
        let (mut low, mut high) = (0.0, duration);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if self.at(middle, duration) < clock { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}
