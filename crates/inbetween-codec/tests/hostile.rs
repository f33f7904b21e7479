//! Bytes that are not what they claim: an error each time, no panic, no runaway memory.

#[allow(dead_code)]
mod figures;

use inbetween::glam::DVec3;
use inbetween::{Binding, Clip, Curve, Joint, Property, Skeleton, Track, TrackData, Transform, ValueKind};
use inbetween_codec::{CompressOptions, DecodeError, JointTransform, Library, compress, unpack};

fn file(at_rest: bool) -> Vec<u8> {
    let joints =
        (0..9usize).map(|j| Joint::new(format!("j{j}"), j.checked_sub(1), Transform::IDENTITY)).collect();
    let skeleton = Skeleton::new(joints).unwrap();
    let times: Vec<f64> = (0..70).map(|f| f64::from(f) / 30.0).collect();
    let mut clip = Clip::new("wave", 0.0, 69.0 / 30.0).unwrap();
    for n in 0..9 {
        let values = times
            .iter()
            .flat_map(|t| {
                inbetween::math::axis_angle(
                    DVec3::Z,
                    0.4 * inbetween::math::sin(t * (2.0 + f64::from(n as u8))),
                )
                .to_array()
            })
            .collect();
        let curve = Curve::linear(ValueKind::Rotation, times.clone(), values).unwrap();
        clip.tracks.push(Track::new(
            Binding::node(n, "", Property::Rotation),
            TrackData::Curve(curve),
            vec![0.0, 0.0, 0.0, 1.0],
        ));
    }
    let on = Curve::step(ValueKind::Switch, vec![0.0, 1.0], vec![0.0, 1.0]).unwrap();
    let lamp = Binding { target: "lamp".into(), node: None, property: Property::Visible, path: None };
    clip.tracks.push(Track::new(lamp, TrackData::Curve(on), vec![1.0]));
    compress(&skeleton, &[clip], &CompressOptions::default(), at_rest).unwrap().bytes
}

/// The checksum made right again, so that what lies behind it is reached.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 16 {
        let length = bytes.len() as u32;
        bytes[8..12].copy_from_slice(&length.to_le_bytes());
        let crc = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

/// Opens and, if that goes well, samples everything; values must be finite.
fn try_all(bytes: &[u8]) {
    let Ok(runtime) = unpack(bytes) else { return };
    let Ok(library) = Library::open(&runtime) else { return };
    for clip in &library.clips {
        let mut pose = vec![JointTransform::IDENTITY; clip.node_count()];
        for time in
            [clip.start(), (clip.start() + clip.end()) / 2.0, clip.end(), f64::NAN, f64::INFINITY, -1e300]
        {
            clip.pose(time, &mut pose);
            let mut again = pose.clone();
            clip.cursor().pose(time, &mut again);
            for t in pose.iter().chain(&again) {
                assert!(
                    t.rotation.iter().chain(&t.translation).chain(&t.scale).all(|v| !v.is_nan()),
                    "{t:?} at {time}"
                );
            }
            for (n, of_pose) in pose.iter().enumerate() {
                assert_eq!(bits(&clip.node(time, n)), bits(of_pose), "node {n} at {time}");
            }
            for (i, t) in clip.tracks().enumerate() {
                clip.value(i, time, &mut vec![0.0; t.kind.width()]);
            }
        }
        // A prepared node finds its fields by other sums: it must read what the pose reads, damaged or not.
        for n in 0..clip.node_count() {
            let prepared = clip.prepare(n);
            let (start, length) = (clip.start(), clip.end() - clip.start());
            let within = (0..=23).map(|k| start + length * (f64::from(k) / 23.0));
            for time in within.chain([f64::NAN, f64::INFINITY, -1e300]) {
                assert_eq!(
                    bits(&prepared.at(time)),
                    bits(&clip.node(time, n)),
                    "prepared node {n} at {time}"
                );
            }
        }
    }
}

fn bits(t: &JointTransform) -> Vec<u32> {
    t.rotation.iter().chain(&t.translation).chain(&t.scale).map(|v| v.to_bits()).collect()
}

#[test]
fn every_cut_is_an_error() {
    for at_rest in [false, true] {
        let whole = file(at_rest);
        for n in 0..whole.len() {
            assert!(unpack(&whole[..n]).is_err(), "{n} of {} bytes", whole.len());
            try_all(&sealed(whole[..n].to_vec()));
        }
    }
}

#[test]
fn every_flipped_bit_is_caught_by_the_checksum() {
    let whole = file(false);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(Library::open(&bytes).is_err(), "byte {at}");
    }
}

#[test]
fn damage_behind_a_right_checksum_neither_panics_nor_gives_nan() {
    for at_rest in [false, true] {
        let whole = file(at_rest);
        let mut state = 0x1234_5678_9abc_def0u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..4000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next() % 4 {
                let at = 16 + next() % (bytes.len() - 16);
                bytes[at] = next() as u8;
            }
            try_all(&sealed(bytes));
        }
    }
}

#[test]
fn a_damaged_file_of_the_first_version_is_no_worse() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ibc/v1-runtime.ibc");
    let whole = std::fs::read(path).unwrap();
    for n in 16..whole.len() {
        try_all(&sealed(whole[..n].to_vec()));
    }
    let mut random = figures::Random(5);
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + (random.next() * 4.0) as usize {
            let at = 16 + (random.next() * (bytes.len() - 16) as f64) as usize;
            bytes[at] = (random.next() * 256.0) as u8;
        }
        try_all(&sealed(bytes));
    }
}

#[test]
fn messages_say_what_to_do() {
    assert_eq!(Library::open(b"glTF....").unwrap_err(), DecodeError::NotIbc);
    let mut newer = file(false);
    newer[4] = 9;
    let text = Library::open(&newer).unwrap_err().to_string();
    assert!(text.contains("version 9") && text.contains("newer"), "{text}");
    assert_eq!(Library::open(&file(true)).unwrap_err(), DecodeError::AtRest);
    assert!(DecodeError::AtRest.to_string().contains("unpack"));
}
