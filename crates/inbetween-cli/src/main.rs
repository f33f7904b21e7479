//! The command `inbetween`.
fn main() {}
