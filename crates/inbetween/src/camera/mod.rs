//! Camera paths: keys that a camera flies through without surging.

mod slots;

pub use slots::{SlotTiming, neighbour_slots, play_slots, rewritten_slots};
