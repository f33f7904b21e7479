//! A clip: tracks over a range of time, with the marks and the rate its file gave it.

use thiserror::Error;

use crate::time::{FrameRate, Wrap};
use crate::track::{Property, Track, TrackMask};

/// A named event in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// When, seconds, on the clip's own clock.
    pub time: f64,
    /// What.
    pub name: String,
}

/// Tracks over a range of time. Times are the file's own: the start may be negative or late.
#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    /// Name as in the file, byte for byte; may be empty.
    pub name: String,
    start: f64,
    end: f64,
    /// The file's own frame rate, where it has one.
    pub rate: Option<FrameRate>,
    /// What the clip is meant to do outside its range.
    pub wrap: Wrap,
    /// True if the values are differences to be laid over another pose.
    pub additive: bool,
    /// At most one track for one property of one target (importers see to it).
    pub tracks: Vec<Track>,
    /// Events, by increasing time.
    pub markers: Vec<Marker>,
}

/// A clip's range was refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("clip {name:?} runs from {start} s to {end} s; both must be finite and the end not before the start")]
pub struct RangeError {
    name: String,
    start: f64,
    end: f64,
}

impl Clip {
    /// A clip without tracks from `start` to `end` seconds.
    ///
    /// # Errors
    /// If either is not finite or the end lies before the start.
    pub fn new(name: impl Into<String>, start: f64, end: f64) -> Result<Self, RangeError> {
        let mut clip = Self {
            name: name.into(),
            start: 0.0,
            end: 0.0,
            rate: None,
            wrap: Wrap::Hold,
            additive: false,
            tracks: Vec::new(),
            markers: Vec::new(),
        };
        clip.set_range(start, end)?;
        Ok(clip)
    }

    /// Changes the range; keys outside it stay.
    ///
    /// # Errors
    /// As [`Clip::new`].
    pub fn set_range(&mut self, start: f64, end: f64) -> Result<(), RangeError> {
        if !(start.is_finite() && end.is_finite() && start <= end) {
            return Err(RangeError { name: self.name.clone(), start, end });
        }
        (self.start, self.end) = (start, end);
        Ok(())
    }

    /// Where it begins, seconds.
    pub fn start(&self) -> f64 {
        self.start
    }

    /// Where it ends, seconds.
    pub fn end(&self) -> f64 {
        self.end
    }

    /// Its length, seconds.
    pub fn duration(&self) -> f64 {
        self.end - self.start
    }

    /// Keys of all curves together.
    pub fn key_count(&self) -> usize {
        self.tracks.iter().map(|t| t.data.key_count()).sum()
    }

    /// The times at which any track has a key, increasing, each once.
    pub fn key_times(&self) -> Vec<f64> {
        let mut times: Vec<f64> = Vec::new();
        let mut last: Option<*const [f64]> = None;
        for track in &self.tracks {
            for curve in track.data.curves() {
                // Tracks of captured motion share one array of times; take it once.
                let array = std::sync::Arc::as_ptr(curve.times());
                if last.is_some_and(|p| std::ptr::eq(p, array)) {
                    continue;
                }
                last = Some(array);
                times.extend_from_slice(curve.times());
            }
        }
        times.sort_unstable_by(f64::total_cmp);
        times.dedup();
        times
    }

    /// The track that drives `property` of the node with this index.
    pub fn node_track(&self, node: usize, property: &Property) -> Option<&Track> {
        self.tracks.iter().find(|t| t.binding.node == Some(node) && t.binding.property == *property)
    }

    /// Every track that plays under `mask`, with its index.
    pub fn playing<'a>(&'a self, mask: &'a TrackMask) -> impl Iterator<Item = (usize, &'a Track)> {
        self.tracks.iter().enumerate().filter(|(i, t)| t.enabled && mask.is_on(*i))
    }
}
