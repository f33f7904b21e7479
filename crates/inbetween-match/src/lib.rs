//! inbetween-match
