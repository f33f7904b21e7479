//! Curves as a table of numbers.
