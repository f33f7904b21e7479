//! Any bytes through the FBX reader: an error or a file whose every value is finite.
#![no_main]

use inbetween::{LocalPose, ModelPose, TrackMask};
use inbetween_formats::fbx::Fbx;
use inbetween_formats::{Format, Input, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let options = ReadOptions { max_keys: 1 << 20, ..ReadOptions::default() };
    let Ok(import) = Fbx.read(&Input::alone(data, "fuzz.fbx"), &options) else { return };
    for clip in &import.clips {
        for time in [clip.start(), 0.5 * (clip.start() + clip.end()), clip.end()] {
            for track in &clip.tracks {
                assert!(track.value_at(time).iter().all(|v| v.is_finite()));
            }
            let local = LocalPose::of_clip(clip, &import.skeleton, time, &TrackMask::all());
            let _ = ModelPose::of(&import.skeleton, &local);
        }
    }
});
