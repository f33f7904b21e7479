//! inbetween-codec
