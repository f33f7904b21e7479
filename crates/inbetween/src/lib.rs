//! inbetween
