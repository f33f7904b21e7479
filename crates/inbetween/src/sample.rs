//! Sampling: the times at which a clip is looked at, and its values there.
//!
//! Frame times come from the exact ratio of a rate, never by adding up a rounded step, and the end of a clip
//! that should lie on a frame counts as one although its seconds are rounded. The key times of the source are
//! sampled as well, so that no key an artist set falls between two frames.
//!
//! Where no rate is asked for and the file has none, the ladder 96, 60, 48, 30, 24 a second is tried from the
//! top: the first rate whose samples stay within a limit is taken, and the [`Rung`] says what was passed over.

use std::sync::Arc;

use thiserror::Error;

use crate::clip::Clip;
use crate::curve::{Curve, CurveError, SpanKind, ValueKind};
use crate::time::FrameRate;
use crate::track::{EulerBetween, Track, TrackData};

/// Frames of a rate in a range of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frames {
    start: f64,
    end: f64,
    rate: FrameRate,
    whole: usize,
    end_on_frame: bool,
}

impl Frames {
    /// The frames of `rate` from `start` to `end` seconds, the first of them at `start`.
    ///
    /// The end counts as a frame if it is one to within the rounding of a time stored in 32 bits.
    ///
    /// # Errors
    /// If the range is not finite or runs backward, or has more frames than can be counted.
    pub fn new(rate: FrameRate, start: f64, end: f64) -> Result<Self, SampleError> {
        let span = end - start;
        if !span.is_finite() || span < 0.0 {
            return Err(SampleError::Range { start, end });
        }
        let frames = rate.frame_at(span);
        if frames > 1e15 {
            return Err(SampleError::TooMany { rate, seconds: span, limit: usize::MAX });
        }
        // A 32-bit float is good to 6e-8 of its size, so an end at t s may be off by that, in frames.
        let rounding = 1e-9 + rate.frame_at(start.abs().max(end.abs())) * 1.2e-7;
        let nearest = frames.round();
        let end_on_frame = (frames - nearest).abs() <= rounding.min(0.01);
        let whole = if end_on_frame { nearest } else { frames.floor() };
        Ok(Self { start, end, rate, whole: whole as usize, end_on_frame })
    }

    /// Whole frames between the first sample and the last one on a frame.
    pub fn whole(&self) -> usize {
        self.whole
    }

    /// Number of samples: every frame and the end of the range.
    pub fn samples(&self) -> usize {
        self.whole + if self.end_on_frame { 1 } else { 2 }
    }

    /// The time of each sample in seconds, the last exactly the end of the range, where `numbers` are wanted at
    /// each.
    ///
    /// # Errors
    /// If that makes more than [`MOST_NUMBERS`] numbers in all, so that a rate typed with a zero too many is an
    /// error before it takes memory.
    pub fn times_for(&self, numbers: usize) -> Result<Vec<f64>, SampleError> {
        let limit = MOST_NUMBERS / numbers.max(1);
        if self.samples() > limit {
            return Err(SampleError::TooMany { rate: self.rate, seconds: self.end - self.start, limit });
        }
        Ok(self.times())
    }

    /// The time of each sample in seconds; the last is exactly the end of the range.
    pub fn times(&self) -> Vec<f64> {
        let frames = self.whole + usize::from(!self.end_on_frame);
        let mut times: Vec<f64> = (0..frames).map(|i| self.start + self.rate.time_of(i as i64)).collect();
        times.push(self.end);
        times
    }
}

/// Why a clip could not be sampled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SampleError {
    /// A range that is none.
    #[error(
        "the range to sample runs from {start} s to {end} s; both must be finite and the end not before the start"
    )]
    Range {
        /// Seconds.
        start: f64,
        /// Seconds.
        end: f64,
    },
    /// Too long for the limit even at the lowest rate.
    #[error(
        "{seconds} s at {rate} frames a second are more than {limit} samples; \
         ask for a lower rate, sample a part of the clip, or raise the limit where it can be set"
    )]
    TooMany {
        /// The lowest rate tried.
        rate: FrameRate,
        /// Length of the range.
        seconds: f64,
        /// Samples allowed.
        limit: usize,
    },
    /// Sampling gave values no curve may hold.
    #[error("track {target}.{property} cannot be sampled: {error}")]
    Curve {
        /// Target of the track.
        target: String,
        /// Property of the track.
        property: String,
        /// What was wrong.
        error: CurveError,
    },
}

/// The rates that are tried where nothing asks for one, from the finest.
pub const LADDER_HZ: [u32; 5] = [96, 60, 48, 30, 24];

/// Samples of a track, keys and frames together, above which the ladder goes down a step, unless set otherwise.
pub const DEFAULT_SAMPLE_LIMIT: usize = 1 << 20;

/// Numbers that one call samples at most: an hour of 150 rotations at 60 frames a second fits, and 1.1 GB hold
/// them.
pub const MOST_NUMBERS: usize = 1 << 27;

/// The rate that the ladder gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The rate taken.
    pub rate: FrameRate,
    /// Samples it makes, keys included (a key on a frame counted twice).
    pub samples: usize,
    /// The rates passed over because they would make more samples than the limit.
    pub passed_over: Vec<FrameRate>,
}

/// The finest rate of the ladder 96, 60, 48, 30, 24 with at most `limit` samples, `keys` key times included,
/// from `start` to `end` seconds.
///
/// # Errors
/// If even the lowest rate makes more, or the range is none.
pub fn ladder(start: f64, end: f64, keys: usize, limit: usize) -> Result<Rung, SampleError> {
    let mut passed_over = Vec::new();
    for hz in LADDER_HZ {
        let rate = FrameRate::hz(hz);
        let samples = Frames::new(rate, start, end)?.samples().saturating_add(keys);
        if samples <= limit {
            return Ok(Rung { rate, samples, passed_over });
        }
        passed_over.push(rate);
    }
    let rate = passed_over[passed_over.len() - 1];
    Err(SampleError::TooMany { rate, seconds: end - start, limit })
}

/// Two increasing lists of times in one, without times closer to each other than `gap` seconds; of two such
/// the one of `first` stays.
pub fn merge_times(first: &[f64], second: &[f64], gap: f64) -> Vec<f64> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let mut seconds = second.iter().copied().peekable();
    for &time in first {
        while let Some(other) = seconds.next_if(|&s| s < time + gap) {
            let after_last = merged.last().is_none_or(|&m| other - m > gap);
            if after_last && time - other > gap {
                merged.push(other);
            }
        }
        merged.push(time);
    }
    for other in seconds {
        if merged.last().is_none_or(|&m| other - m > gap) {
            merged.push(other);
        }
    }
    merged
}

/// The values of a track at the given times, one row after the other.
pub fn sample_track(track: &TrackData, times: &[f64]) -> Vec<f64> {
    let width = track.kind().width();
    let mut values = vec![0.0; times.len() * width];
    if let TrackData::Curve(curve) = track {
        let mut hint = 0;
        for (row, &time) in values.chunks_exact_mut(width.max(1)).zip(times) {
            curve.eval_near(time, &mut hint, row);
        }
    } else {
        for (row, &time) in values.chunks_exact_mut(width.max(1)).zip(times) {
            track.eval(time, row);
        }
    }
    values
}

/// True if every span of the track is a step, so that nothing lies between its keys.
pub fn is_stepped(track: &TrackData) -> bool {
    track.curves().iter().all(|curve| {
        let kinds = (0..curve.len().saturating_sub(1)).map(|i| curve.span(i));
        curve.kind() == ValueKind::Switch
            || kinds.into_iter().all(|kind| matches!(kind, SpanKind::Step | SpanKind::StepNext))
    })
}

/// True if the track has several keys and nothing but steps between them, so that any difference is one too many.
pub(crate) fn only_steps(track: &TrackData) -> bool {
    is_stepped(track) && track.key_times().len() > 1
}

/// True if some span of the track is a step.
pub fn has_steps(track: &TrackData) -> bool {
    track.curves().iter().any(|curve| {
        let mut kinds = (0..curve.len().saturating_sub(1)).map(|i| curve.span(i));
        curve.kind() == ValueKind::Switch || kinds.any(|k| matches!(k, SpanKind::Step | SpanKind::StepNext))
    })
}

/// True if every span of the track is straight (or a slerp) or a step, so that its keys say everything.
pub fn is_straight(track: &TrackData) -> bool {
    let straight = |curve: &&Curve| {
        (0..curve.len().saturating_sub(1))
            .all(|i| matches!(curve.span(i), SpanKind::Linear | SpanKind::Step | SpanKind::StepNext))
    };
    match track {
        TrackData::Euler(euler) => euler.between == EulerBetween::Slerp,
        _ => track.curves().iter().all(straight),
    }
}

/// The clip keyed at every frame of `rate` and at its end, with straight spans; tracks with steps and tracks
/// with a single key stay as they are, because sampling a step would move it.
///
/// # Errors
/// If the clip's range is none, or the samples were more than [`MOST_NUMBERS`] numbers.
pub fn resample(clip: &Clip, rate: FrameRate) -> Result<Clip, SampleError> {
    let blends = |t: &Track| !has_steps(&t.data) && t.data.curves().iter().any(|c| c.len() > 1);
    let numbers = clip.tracks.iter().filter(|t| blends(t)).map(|t| t.data.kind().width()).sum();
    let times: Arc<[f64]> = Frames::new(rate, clip.start(), clip.end())?.times_for(numbers)?.into();
    let mut out = clip.clone();
    out.rate = Some(rate);
    for track in out.tracks.iter_mut().filter(|t| blends(t)) {
        track.data = TrackData::Curve(sampled_curve(track, &times)?);
    }
    Ok(out)
}

/// The track's values at `times` joined by straight lines.
fn sampled_curve(track: &Track, times: &Arc<[f64]>) -> Result<Curve, SampleError> {
    // A range without length has one frame, its start and end.
    let times: Arc<[f64]> =
        if times.len() == 2 && times[0] == times[1] { [times[0]].into() } else { times.clone() };
    let values = sample_track(&track.data, &times);
    Curve::linear(track.data.kind(), times, values).map_err(|error| SampleError::Curve {
        target: track.binding.target.clone(),
        property: track.binding.property.name().to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_times_agree_with_exact_ratios() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/frame_sampling.json");
        let text = std::fs::read_to_string(path).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        for case in document["cases"].as_array().unwrap() {
            let int = |key: &str| case[key].as_u64().unwrap();
            let rate = FrameRate::new(int("fps_num") as u32, int("fps_den") as u32).unwrap();
            let end = int("duration_num") as f64 / int("duration_den") as f64;
            let frames = Frames::new(rate, 0.0, end).unwrap();
            let name = &case["name"];
            assert_eq!(frames.whole(), int("whole_frame_intervals") as usize, "{name}");
            assert_eq!(frames.samples(), int("samples_incl_both_ends") as usize, "{name}");
            let times = frames.times();
            assert_eq!(times.len(), frames.samples(), "{name}");
            assert_eq!(times[times.len() - 1], end, "{name}");
            let last = &case["frame_time_of_last_full"];
            let last = last[0].as_f64().unwrap() / last[1].as_f64().unwrap();
            assert!((times[frames.whole()] - last).abs() <= 1e-15 * last.max(1.0), "{name}");
            assert!(times.windows(2).all(|t| t[0] < t[1]), "{name}");
        }
    }

    #[test]
    fn a_range_without_length_has_one_sample() {
        let frames = Frames::new(FrameRate::hz(30), 2.0, 2.0).unwrap();
        assert_eq!(frames.times(), [2.0]);
        assert!(Frames::new(FrameRate::hz(30), 2.0, 1.0).is_err());
        assert!(Frames::new(FrameRate::hz(30), 0.0, f64::NAN).is_err());
    }

    #[test]
    fn a_rate_with_zeros_too_many_is_refused_before_it_takes_memory() {
        let frames = Frames::new(FrameRate::hz(4_000_000_000), 0.0, 10.0).unwrap();
        let error = frames.times_for(3).unwrap_err().to_string();
        assert!(error.contains("4000000000") && error.contains("lower rate"), "{error}");
        assert_eq!(
            Frames::new(FrameRate::hz(60), 0.0, 3600.0).unwrap().times_for(600).unwrap().len(),
            216_001
        );
    }

    #[test]
    fn the_ladder_goes_down_until_the_samples_fit_and_says_so() {
        assert_eq!(ladder(0.0, 10.0, 100, 2_000).unwrap().rate, FrameRate::hz(96));
        let rung = ladder(0.0, 10.0, 100, 600).unwrap();
        assert_eq!((rung.rate, rung.samples), (FrameRate::hz(48), 581));
        assert_eq!(rung.passed_over, [FrameRate::hz(96), FrameRate::hz(60)]);
        let error = ladder(0.0, 3600.0, 100, 600).unwrap_err();
        assert!(error.to_string().contains("600 samples") && error.to_string().contains("limit"), "{error}");
    }

    #[test]
    fn merging_keeps_every_key_and_no_frame_that_doubles_one() {
        assert_eq!(
            merge_times(&[0.0, 1.0, 2.5], &[0.0, 0.5, 1.0 + 1e-9, 2.0, 3.0], 1e-6),
            [0.0, 0.5, 1.0, 2.0, 2.5, 3.0]
        );
        assert_eq!(merge_times(&[], &[1.0, 2.0], 1e-6), [1.0, 2.0]);
        assert_eq!(merge_times(&[1.0], &[], 1e-6), [1.0]);
    }
}
