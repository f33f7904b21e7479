//! A compressed clip as numbers, between the encoder and the bytes.
//!
//! Both forms of a file, runtime and at rest, hold exactly this; neither can lose anything of it.

/// What a lane's value goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Translation of a node along an axis (0, 1, 2).
    Translation(u32, u8),
    /// Scale of a node along an axis.
    Scale(u32, u8),
    /// A component of a track that moves no node.
    Track(u32, u16),
}

/// One component through time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lane {
    /// The lane's own step is `exp8(step8)`.
    pub step8: i32,
    /// Added to every value.
    pub bias: f32,
    /// Quarter octave chosen in each segment.
    pub quarters: Vec<u8>,
    /// One whole number a stored frame.
    pub numbers: Vec<i32>,
}

/// An animated rotation: the turn away from `middle` as three lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RotationLanes {
    pub node: u32,
    /// Modified Rodrigues parameters of the middle rotation in 1/127.
    pub middle: [i8; 3],
    pub lanes: [Lane; 3],
}

/// A lane that is not part of a rotation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueLane {
    pub target: Target,
    pub lane: Lane,
}

/// Times of frames.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Times {
    /// Frame i at start + i·den/num seconds, but never after `end`.
    Uniform { start: f64, num: u32, den: u32, end: f64 },
    /// Each time as it is.
    Listed(Vec<f64>),
}

/// Lanes that share frames and segments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub times: Times,
    /// Frames played; one more than stored if `closed`.
    pub frames: usize,
    /// True if the last frame played is the first one stored.
    pub closed: bool,
    /// Scale of the steps of each segment, in eighths of an octave.
    pub scales: Vec<i32>,
    pub rotations: Vec<RotationLanes>,
    pub values: Vec<ValueLane>,
}

impl Group {
    pub fn stored(&self) -> usize {
        self.frames - usize::from(self.closed)
    }
}

/// First stored frame of segment `index` of `segments` over `stored` frames.
pub(crate) fn segment_start(index: usize, segments: usize, stored: usize) -> usize {
    (index as u64 * stored as u64 / segments as u64) as usize
}

/// The segment that holds stored frame `frame`.
pub(crate) fn segment_of(frame: usize, segments: usize, stored: usize) -> usize {
    (((frame as u64 + 1) * segments as u64 - 1) / stored as u64) as usize
}

/// A constant rotation, translation or scale of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Constant {
    /// The step is `exp8(step8)`.
    pub step8: i32,
    pub numbers: [i32; 3],
}

/// What stands still on a node. A lane for an axis overrides the constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeConstants {
    /// Modified Rodrigues parameters; `None` for no turn or where the rotation is animated.
    pub rotation: Option<Constant>,
    /// `None` for zero or where all axes are animated.
    pub translation: Option<Constant>,
    /// f32 as they are; `None` for 1 or where all axes are animated.
    pub scale: Option<[f32; 3]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_lies_in_the_segment_that_is_found_for_it() {
        for stored in 1..200usize {
            for segments in 1..=stored.min(20) {
                for f in 0..stored {
                    let s = segment_of(f, segments, stored);
                    assert!(segment_start(s, segments, stored) <= f, "{stored} {segments} {f}");
                    assert!(f < segment_start(s + 1, segments, stored), "{stored} {segments} {f}");
                }
            }
        }
    }
}
