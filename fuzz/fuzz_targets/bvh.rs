//! The BVH reader on any bytes: no panic, no memory beyond what the bytes hold, and what it reads
//! is written and read again without a change.

#![no_main]

use inbetween_formats::bvh::{Bvh, WriteOptions, write};
use inbetween_formats::{Format, Input, ReadOptions, Severity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { max_keys: 1_000_000, ..ReadOptions::default() };
    let Ok(import) = Bvh.read(&Input::alone(bytes, "fuzz.bvh"), &options) else { return };
    for clip in &import.clips {
        let values = clip.tracks.iter().flat_map(|t| t.data.curves()).flat_map(|c| c.values());
        assert!(values.into_iter().all(|v| v.is_finite()));
    }
    let clip = (!import.clips.is_empty()).then_some(0);
    let Ok((written, notes)) = write(&import, clip, &WriteOptions::default()) else { return };
    let again = Bvh.read(&Input::alone(&written, "again.bvh"), &options).expect("what was written reads");
    if notes.iter().all(|n| n.severity < Severity::Lost) {
        assert_eq!(again.skeleton, import.skeleton);
    }
});
