//! Fewer keys under a bound.
pub mod ball;
pub mod beam;
pub mod cone;
pub mod cubic;
pub mod literal;
pub mod rotation;
pub mod search;
pub mod steps;
