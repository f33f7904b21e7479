//! The text format's reader on any text: no panic, and what it reads is written and read again to
//! the same text.

#![no_main]

use inbetween_formats::native::{Native, write};
use inbetween_formats::{Format, Input, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { max_keys: 1_000_000, ..ReadOptions::default() };
    let Ok(import) = Native.read(&Input::alone(bytes, "fuzz.inb"), &options) else { return };
    let text = write(&import).expect("what was read is valid");
    let again = Native.read(&Input::alone(text.as_bytes(), "again.inb"), &options).expect("what was written reads");
    assert_eq!(write(&again).expect("valid"), text);
});
