//! Any bytes as an `.ibc` file: unpacked, opened, sampled. The checksum is made right first, so that
//! what lies behind it is reached.

#![no_main]

use inbetween_codec::{JointTransform, Library, unpack};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if bytes.len() >= 16 {
        let length = bytes.len() as u32;
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        let crc = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(runtime) = unpack(&bytes) else { return };
    let Ok(library) = Library::open(&runtime) else { return };
    for clip in &library.clips {
        let mut pose = vec![JointTransform::IDENTITY; clip.node_count()];
        for time in [clip.start(), (clip.start() + clip.end()) / 2.0, clip.end(), f64::NAN] {
            clip.pose(time, &mut pose);
            assert!(pose.iter().all(|t| t.rotation.iter().all(|v| !v.is_nan())));
            for n in (0..pose.len()).take(4) {
                let bits = |t: JointTransform| t.rotation.map(f32::to_bits);
                assert_eq!(bits(clip.prepare(n).at(time)), bits(pose[n]));
            }
        }
        for (i, t) in clip.tracks().enumerate() {
            clip.value(i, clip.start(), &mut vec![0.0; t.kind.width()]);
        }
    }
});
