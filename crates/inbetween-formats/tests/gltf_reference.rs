//! The glTF reader against independent tools, on real files.

mod common;

#[test]
fn the_folder_of_real_files_lists_gltf_references_or_says_that_it_is_absent() {
    let Some(dir) = common::data_dir() else { return };
    assert!(common::with_reference(&dir, &["gltf", "glb"]).len() >= 60);
    assert!(common::facts(&dir).len() >= 90);
}
