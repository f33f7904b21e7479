//! The house's floors: a crate rests on those below it only, and rooms on one floor do not open
//! into each other.

use std::process::Command;

use serde_json::Value;

/// The floor of each crate of the project; the commands and everything else that uses the
/// libraries is on the top one.
fn floor(name: &str) -> Option<u8> {
    match name {
        "inbetween" => Some(0),
        "inbetween-formats" | "inbetween-codec" | "inbetween-match" => Some(1),
        other if other.starts_with("inbetween-") => Some(2),
        _ => None,
    }
}

#[test]
fn no_crate_depends_upward_or_sideways() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let mut seen = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let Some(own) = floor(name) else { continue };
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // What tests alone use does not ship.
            if dependency["kind"] == "dev" || dependency["path"].is_null() {
                continue;
            }
            let below = dependency["name"].as_str().expect("a name");
            if let Some(floor) = floor(below) {
                assert!(floor < own, "{name} (floor {own}) may not depend on {below} (floor {floor})");
            }
        }
    }
    assert!(seen >= 5, "only {seen} crates of the project were looked at");
}
