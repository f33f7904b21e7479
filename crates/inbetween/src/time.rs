//! Frame rates as ratios, and what a clip does outside its range.
//!
//! 30000/1001 a second is a ratio, not 29.97: frame `i` lies at `i·den/num` seconds, computed
//! with one rounding, so hour-long takes stay on their frames. Times elsewhere are f64 seconds.

use thiserror::Error;

/// How far rounding to 32 bits may move a time, seconds; at least 1e-9.
pub(crate) fn hair(time: f64) -> f64 {
    (time.abs() * 1.2e-7).max(1e-9)
}

/// Frames per second as an exact ratio of two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRate {
    num: u32,
    den: u32,
}

/// Why a frame rate was refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("frame rate {text:?} is not a positive number or ratio; write it like 30, 29.97 or 30000/1001")]
pub struct FrameRateError {
    text: String,
}

impl FrameRate {
    /// `num` frames in `den` seconds, in lowest terms; `None` if either is zero.
    pub const fn new(num: u32, den: u32) -> Option<Self> {
        if num == 0 || den == 0 {
            return None;
        }
        let (mut a, mut b) = (num, den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { num: num / a, den: den / a })
    }

    /// A whole number of frames a second.
    ///
    /// # Panics
    /// If `hz` is zero.
    pub const fn hz(hz: u32) -> Self {
        assert!(hz > 0, "a frame rate is positive");
        Self { num: hz, den: 1 }
    }

    /// The exact rate that `hz`, a rounded number as files give it, stands for.
    ///
    /// Whole numbers and the n·1000/1001 family (23.976, 29.97, 59.94, …) are recognised within
    /// `tolerance` (relative); anything else becomes a ratio over 1 000 000 or less. `None` if
    /// `hz` is not a positive finite number or lies outside what a ratio of u32 holds.
    pub fn from_hz(hz: f64, tolerance: f64) -> Option<Self> {
        if !(hz.is_finite() && hz > 1e-3 && hz < 4e9) {
            return None;
        }
        let near = |a: f64| (a - hz).abs() <= tolerance * hz;
        let whole = hz.round();
        if whole >= 1.0 && near(whole) {
            return Self::new(whole as u32, 1);
        }
        let ntsc = (hz * 1.001).round();
        if (1.0..4e6).contains(&ntsc) && near(ntsc * 1000.0 / 1001.0) {
            return Self::new(ntsc as u32 * 1000, 1001);
        }
        let mut den = 1_000_000u32;
        while hz * f64::from(den) > 4e9 {
            den /= 10;
        }
        Self::new((hz * f64::from(den)).round() as u32, den.max(1))
    }

    /// Reads `30`, `29.97` or `30000/1001`.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn parse(text: &str) -> Result<Self, FrameRateError> {
        let error = || FrameRateError { text: text.to_owned() };
        match text.split_once('/') {
            Some((a, b)) => {
                let a = a.trim().parse().map_err(|_| error())?;
                let b = b.trim().parse().map_err(|_| error())?;
                Self::new(a, b).ok_or_else(error)
            }
            None => {
                let hz = text.trim().parse().map_err(|_| error())?;
                // 29.97 stands for 30000/1001 = 29.97003: 1e-5 apart.
                Self::from_hz(hz, 2e-5).ok_or_else(error)
            }
        }
    }

    /// Numerator: frames in [`den`](Self::den) seconds.
    pub const fn num(self) -> u32 {
        self.num
    }

    /// Denominator, seconds.
    pub const fn den(self) -> u32 {
        self.den
    }

    /// Frames a second as a float.
    pub fn as_f64(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }

    /// Time in seconds of frame `frame`, correctly rounded while `frame·den` is below 2^53.
    pub fn time_of(self, frame: i64) -> f64 {
        (frame as f64 * f64::from(self.den)) / f64::from(self.num)
    }

    /// The frame, as a float, at `time` seconds.
    pub fn frame_at(self, time: f64) -> f64 {
        time * f64::from(self.num) / f64::from(self.den)
    }
}

impl std::fmt::Display for FrameRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.den == 1 { write!(f, "{}", self.num) } else { write!(f, "{}/{}", self.num, self.den) }
    }
}

/// How a clip goes on outside its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// The first pose before the start, the last pose after the end.
    #[default]
    Hold,
    /// From the end straight back to the start.
    Loop,
    /// Forward, then backward, and so on.
    PingPong,
    /// Like `Loop`, but each pass begins where the one before ended (root motion).
    LoopOffset,
}

/// Where in a clip a player's time falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wrapped {
    /// Time inside the clip's range, seconds.
    pub time: f64,
    /// Whole passes before this one; negative before the start. For ping-pong a pass is one way.
    pub pass: i64,
    /// True while ping-pong runs backward.
    pub backward: bool,
}

impl Wrap {
    /// Maps a player's `time` into the range `start`..=`end`, all in seconds.
    ///
    /// A range without length maps everything to `start`. The remainder is exact
    /// (`%` on f64), so a loop that has played for days is where it should be as far as the
    /// given time itself is exact.
    pub fn apply(self, time: f64, start: f64, end: f64) -> Wrapped {
        let length = end - start;
        let still = |time| Wrapped { time, pass: 0, backward: false };
        if length <= 0.0 || length.is_nan() || time.is_nan() {
            return still(start);
        }
        match self {
            Self::Hold => still(time.clamp(start, end)),
            Self::Loop | Self::LoopOffset => {
                let since = time - start;
                let rest = since.rem_euclid(length);
                // rem_euclid may round up to the length itself for a tiny negative time.
                let rest = if rest >= length { 0.0 } else { rest };
                let pass = ((since - rest) / length).round() as i64;
                Wrapped { time: start + rest, pass, backward: false }
            }
            Self::PingPong => {
                let since = time - start;
                let both = since.rem_euclid(2.0 * length);
                let pair = ((since - both) / (2.0 * length)).round() as i64;
                if both <= length {
                    Wrapped { time: start + both, pass: 2 * pair, backward: false }
                } else {
                    Wrapped { time: start + (2.0 * length - both), pass: 2 * pair + 1, backward: true }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_rates_become_the_ratio_they_stand_for() {
        assert_eq!(FrameRate::parse("29.97").unwrap(), FrameRate::new(30000, 1001).unwrap());
        assert_eq!(FrameRate::parse("23.976").unwrap(), FrameRate::new(24000, 1001).unwrap());
        assert_eq!(FrameRate::parse("30000/1001").unwrap(), FrameRate::new(30000, 1001).unwrap());
        assert_eq!(FrameRate::from_hz(1.0 / 0.0083333, 1e-4).unwrap(), FrameRate::hz(120));
        assert_eq!(FrameRate::parse("12.5").unwrap(), FrameRate::new(25, 2).unwrap());
        for bad in ["", "0", "-3", "1/0", "nan", "inf", "a/b"] {
            assert!(FrameRate::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn frame_times_do_not_drift_over_hours() {
        let rate = FrameRate::new(30000, 1001).unwrap();
        assert_eq!(rate.time_of(30000 * 3600), 1001.0 * 3600.0);
    }

    #[test]
    fn loops_and_ping_pong_land_inside_the_range() {
        let w = Wrap::Loop.apply(-0.25, 0.0, 1.0);
        assert_eq!((w.time, w.pass), (0.75, -1));
        let w = Wrap::Loop.apply(2.0, 0.0, 1.0);
        assert_eq!((w.time, w.pass), (0.0, 2));
        let w = Wrap::PingPong.apply(1.25, 0.0, 1.0);
        assert_eq!((w.time, w.pass, w.backward), (0.75, 1, true));
        let w = Wrap::Loop.apply(5.5, 5.0, 7.0);
        assert_eq!((w.time, w.pass), (5.5, 0));
        assert_eq!(Wrap::Loop.apply(3.0, 1.0, 1.0).time, 1.0);
        let tiny = Wrap::Loop.apply(-1e-300, 0.0, 1.0);
        assert!(tiny.time < 1.0);
    }
}
