//! inbetween-formats
