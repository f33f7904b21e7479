//! What the manual shows is read as it stands there.

use inbetween_match::{Ends, Schema, Script};

const MANUAL: &str = include_str!("../../../docs/motion-matching.md");

#[test]
fn the_schema_and_the_script_of_the_manual_are_read() {
    let mut blocks = MANUAL.split("```toml\n").skip(1).map(|b| b.split("```").next().unwrap_or(""));
    let schema = Schema::read(blocks.next().unwrap()).unwrap();
    assert_eq!((schema.root.as_str(), schema.ends), ("Root", Ends::RunOut));
    assert!(schema.is_loop("walk_loop_2") && schema.category_track.is_some());
    let script = Script::read(blocks.next().unwrap(), &schema).unwrap();
    assert_eq!(script.steps.len(), 3);
    assert_eq!(script.steps[2].input.filter.exclude, 2);
}

#[test]
fn the_manual_lists_every_kind_of_channel() {
    for kind in inbetween_match::channels::CHANNELS {
        assert!(MANUAL.contains(&format!("| `{}` |", kind.name)), "{}", kind.name);
    }
}
