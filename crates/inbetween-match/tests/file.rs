//! The file: read back the same, whole or not at all.

use std::sync::Arc;

use inbetween_match::{
    ChannelColumns, ClipSource, DatabaseOptions, Family, Filter, MatchError, MotionDatabase, Poses, Query,
    RowFormat, Run, Scratch, Verify,
};

fn database(rows: usize, format: RowFormat, tagged: bool) -> MotionDatabase {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    let columns = ["x", "y", "z"].map(str::to_owned).to_vec();
    let channel = |name: &str, family| ChannelColumns {
        name: name.into(),
        columns: columns.clone(),
        weight: 1.5,
        family,
    };
    let values = (0..rows * 6).map(|_| next()).collect();
    let poses = Poses {
        channels: vec![channel("foot", Family::Pose), channel("path", Family::Path)],
        values,
        tags: (0..rows as u32).map(|r| if tagged { r % 5 } else { 0 }).collect(),
        clips: vec![ClipSource {
            name: "größe".into(),
            file: "a/b.glb".into(),
            duration_s: 3.25,
            looped: true,
            content: 77,
        }],
        runs: vec![Run {
            clip: 0,
            mirrored: true,
            first_row: 0,
            rows: rows as u32,
            first_pose: 4,
            start_s: 0.4,
            interval_s: 0.1,
        }],
    };
    MotionDatabase::new(poses, DatabaseOptions { format, ..DatabaseOptions::default() }).unwrap()
}

/// Columns and rows enough for boxes along the columns.
fn wide(format: RowFormat, tagged: bool) -> MotionDatabase {
    let mut state = 5u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    let channel = |name: &str, family| ChannelColumns {
        name: name.into(),
        columns: (0..30).map(|c| c.to_string()).collect(),
        weight: 1.0,
        family,
    };
    let poses = Poses {
        channels: vec![channel("body", Family::Pose), channel("path", Family::Path)],
        values: (0..1100 * 60).map(|_| next()).collect(),
        tags: (0..1100).map(|r| if tagged { r % 5 } else { 0 }).collect(),
        ..Poses::default()
    };
    MotionDatabase::new(poses, DatabaseOptions { format, ..DatabaseOptions::default() }).unwrap()
}

fn answers(database: &MotionDatabase) -> Vec<Result<Option<(u32, u32)>, MatchError>> {
    let mut scratch = Scratch::new();
    (0..50)
        .map(|k| {
            let features: Vec<f32> =
                (0..database.columns()).map(|c| ((k * 7 + c * 3) % 11) as f32 / 10.0).collect();
            let filter = Filter { include: if k % 2 == 0 { 0 } else { 3 }, exclude: 4, ..Filter::default() };
            let query = Query { features: &features, filter, ..Query::default() };
            Ok(database.search(&query, &mut scratch)?.map(|m| (m.row, m.cost.to_bits())))
        })
        .collect()
}

#[test]
fn a_database_read_back_is_the_one_that_was_written() {
    for format in [RowFormat::F32, RowFormat::F16] {
        for rows in [1, 16, 17, 5000] {
            for tagged in [false, true] {
                let made = database(rows, format, tagged);
                let bytes = made.to_bytes();
                assert_eq!(bytes, database(rows, format, tagged).to_bytes());
                let copied = MotionDatabase::from_bytes(&bytes).unwrap();
                let mapped = MotionDatabase::from_shared(Arc::new(bytes.clone()), Verify::Structure).unwrap();
                for read in [&copied, &mapped] {
                    assert_eq!(read.channels(), made.channels());
                    assert_eq!(read.clips(), made.clips());
                    assert_eq!(read.runs(), made.runs());
                    assert_eq!(read.scale(), made.scale());
                    assert_eq!(read.options(), made.options());
                    assert_eq!(answers(read), answers(&made));
                    assert_eq!(read.to_bytes(), bytes);
                }
            }
        }
    }
}

#[test]
fn boxes_along_columns_are_read_back_too() {
    for format in [RowFormat::F32, RowFormat::F16] {
        for tagged in [false, true] {
            let made = wide(format, tagged);
            let bytes = made.to_bytes();
            let read = MotionDatabase::from_bytes(&bytes).unwrap();
            assert_eq!(read.memory(), made.memory());
            assert_eq!(answers(&read), answers(&made));
            assert_eq!(read.to_bytes(), bytes);
        }
    }
}

#[test]
fn files_of_every_version_are_read_and_written_again_as_the_newest() {
    let made = database(300, RowFormat::F32, true);
    for version in 1..=2 {
        let path = format!("{}/../../testdata/ibm/version-{version}.ibm", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[8], version, "{path}");
        let read = MotionDatabase::from_bytes(&bytes).unwrap();
        assert_eq!(answers(&read), answers(&made));
        assert_eq!(read.to_bytes(), made.to_bytes());
    }
}

#[test]
fn a_file_with_any_byte_changed_is_refused() {
    let bytes = database(40, RowFormat::F32, true).to_bytes();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(MotionDatabase::from_bytes(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn a_file_cut_short_anywhere_or_added_to_is_refused() {
    let bytes = database(40, RowFormat::F16, false).to_bytes();
    for length in 0..bytes.len() {
        assert!(MotionDatabase::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(MotionDatabase::from_bytes(&longer).is_err());
}

#[test]
fn without_the_checksum_a_damaged_file_gives_an_error_or_an_answer_but_no_panic() {
    let bytes = database(300, RowFormat::F32, true).to_bytes();
    damage(&bytes, bytes.len(), 3000);
    // The rows come last and are most of it; what is before them decides where a search goes.
    let bytes = wide(RowFormat::F16, true).to_bytes();
    damage(&bytes, bytes.len() - 1100 * 120, 1000);
}

/// Changes some of the first `within` bytes, reads and asks.
fn damage(bytes: &[u8], within: usize, times: usize) {
    let mut state = 9u32;
    for _ in 0..times {
        let mut changed = bytes.to_vec();
        for _ in 0..3 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 4) as usize % within;
            changed[at] = (state >> 20) as u8;
        }
        if let Ok(read) = MotionDatabase::from_shared(Arc::new(changed), Verify::Structure) {
            let _ = answers(&read);
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let bytes = database(40, RowFormat::F32, false).to_bytes();
    let error = |bytes: &[u8]| MotionDatabase::from_bytes(bytes).unwrap_err().to_string();
    assert!(error(b"glTF and so on").contains("no motion database"));
    assert!(error(&bytes[..100]).contains("cut short"));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert!(error(&newer).contains("version 9") && error(&newer).contains("versions 1 to 2"));
    let mut damaged = bytes;
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    assert!(error(&damaged).contains("checksum"));
}
