//! Files that fuzzing found, each once a crash: they are read or refused, written or refused.

use inbetween_formats::gltf::{WriteOptions, write};
use inbetween_formats::{Input, ReadOptions, import};

fn survives(bytes: &[u8]) {
    let Ok(read) = import(&Input::alone(bytes, "found.glb"), &ReadOptions::default()) else { return };
    let Ok(written) = write(&read, &WriteOptions::default()) else { return };
    import(&Input::alone(&written.bytes, "written.glb"), &ReadOptions::default())
        .unwrap_or_else(|e| panic!("what was written is refused: {e}"));
}

#[test]
fn a_span_between_times_too_large_to_halve_is_fitted_as_it_is() {
    survives(include_bytes!("../../../testdata/fuzz/gltf/span-wider-than-f64-can-halve.glb"));
}

#[test]
fn curves_over_times_without_end_add_no_more_keys_than_a_file_may() {
    let bytes = include_bytes!("../../../testdata/fuzz/gltf/keys-without-end.glb");
    survives(bytes);
    let read = import(&Input::alone(bytes, "found.glb"), &ReadOptions::default()).unwrap();
    let written = write(&read, &WriteOptions::default()).unwrap();
    assert!(written.bytes.len() < 6 << 20, "{} bytes from {}", written.bytes.len(), bytes.len());
}
