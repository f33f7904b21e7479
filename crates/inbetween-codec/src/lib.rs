//! Compressed animation clips under a bound that holds: the `.ibc` format.
//!
//! [`compress`] turns clips into a file whose poses stay within a given distance of the source, in
//! the world, at every key and midpoint; it measures that on the finished bytes. [`Library::open`]
//! reads such a file where it lies; [`CompressedClip::pose`] gives the pose at any time without
//! allocating. Tracks that move no node (colours, weights, switches, cameras) come along, steps
//! exactly.
//!
//! ```
//! use inbetween::{Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind};
//! use inbetween_codec::{CompressOptions, JointTransform, Library, compress};
//!
//! let skeleton = Skeleton::new(vec![Joint::new("ball", None, Transform::IDENTITY)])?;
//! let mut clip = Clip::new("rise", 0.0, 1.0)?;
//! let height = Curve::linear(ValueKind::Vector(3), vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 0.0, 2.0, 0.0])?;
//! clip.tracks.push(Track::new(Binding::node(0, "ball", Property::Translation), TrackData::Curve(height), vec![0.0; 3]));
//!
//! let file = compress(&skeleton, &[clip], &CompressOptions::default(), false)?;
//! let library = Library::open(&file.bytes)?;
//! let mut pose = [JointTransform::IDENTITY; 1];
//! library.clips[0].pose(0.25, &mut pose);
//! assert!((pose[0].translation[1] - 0.5).abs() <= 1e-4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod at_rest;
mod clip;
mod compress;
mod content;
mod decode;
mod encode;
mod first_numbers;
mod first_version;
mod format;
mod head;
mod kernel;
mod numbers;
mod player;
mod prepared;
mod quantize;
mod range_coder;

pub use at_rest::unpack;
pub use clip::{CompressedClip, Cursor, Library, TrackInfo};
pub use compress::{
    ClipChunk, ClipReport, CompressError, CompressOptions, Compressed, Measured, Worst, assemble, compress,
    compress_clip, measure,
};
pub use decode::{JointTransform, NodeMask};
pub use fearless_simd::Level;
pub use format::DecodeError;
pub use player::Decoder;
pub use prepared::PreparedNode;
