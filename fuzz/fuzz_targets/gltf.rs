//! Any bytes through the glTF reader, and what it accepts through the writer and back.
//!
//! Nothing may panic or outgrow its memory; what was written must be read again.
#![no_main]

use inbetween_formats::gltf::{Gltf, WriteOptions, write};
use inbetween_formats::{Format, Input, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let options = ReadOptions { max_keys: 1 << 20, ..ReadOptions::default() };
    let Ok(import) = Gltf.read(&Input::alone(data, "fuzz.glb"), &options) else { return };
    for clip in &import.clips {
        for track in &clip.tracks {
            for time in [clip.start(), 0.5 * (clip.start() + clip.end()), clip.end()] {
                assert!(track.value_at(time).iter().all(|v| v.is_finite()));
            }
        }
    }
    let Ok(written) = write(&import, &WriteOptions::default()) else { return };
    let again = Gltf.read(&Input::alone(&written.bytes, "written.glb"), &ReadOptions::default());
    if let Err(error) = again {
        panic!("what was written is refused: {error}");
    }
});
