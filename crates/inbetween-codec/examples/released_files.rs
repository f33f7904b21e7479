//! Writes the files that the tests keep from a released version of the format:
//! `cargo run -p inbetween-codec --example released_files -- FOLDER`.

#[allow(dead_code)]
#[path = "../tests/figures/mod.rs"]
mod figures;

use inbetween_codec::{CompressOptions, compress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("say the folder to write to")?;
    let skeleton = figures::limb(6, 0.25);
    let clip = figures::dance(&skeleton, 75, 30.0, 2026);
    let options = CompressOptions { max_error: 1e-3, ..CompressOptions::default() };
    for (name, at_rest) in [("v2-runtime.ibc", false), ("v2-at-rest.ibc", true)] {
        let file = compress(&skeleton, std::slice::from_ref(&clip), &options, at_rest)?;
        std::fs::write(std::path::Path::new(&folder).join(name), file.bytes)?;
    }
    Ok(())
}
