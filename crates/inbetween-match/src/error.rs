//! What can go wrong while baking, reading or asking, each with its place and its remedy.
//!
//! One enum for the crate. Variants are cut by what the reader of the message can do:
//! correct a schema, correct a clip, bake again, or correct the call.

use thiserror::Error;

/// Why a schema, a bake, a database file or a query was refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MatchError {
    /// The schema text cannot be read or says something that does not hold together.
    #[error("schema: {0}")]
    Schema(String),

    /// The schema and the clips do not fit each other.
    #[error("bake: {0}")]
    Bake(String),

    /// There is no row to search.
    #[error(
        "the database holds no row: {0}; widen the clips or their ranges, or remove tags that set bit 31 (\"do not use\")"
    )]
    NoRows(String),

    /// A number among the features of a row is not finite.
    #[error(
        "row {row}, column {column} is {value}: features must be finite numbers, so look at the clip at that pose"
    )]
    BadFeature {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// What stands there.
        value: f32,
    },

    /// A query holds the wrong number of features.
    #[error(
        "the query holds {found} numbers but the database has {expected} columns; give one number a column"
    )]
    QueryLength {
        /// Columns of the database.
        expected: usize,
        /// Numbers found.
        found: usize,
    },

    /// A number of the query cannot be compared with anything.
    #[error("query column {column} is {value}: give a finite number within a billion deviations of the mean")]
    BadQuery {
        /// The column, counted from 0.
        column: usize,
        /// What stands there.
        value: f32,
    },

    /// A weight is negative, not finite, or too large or small to compute with.
    #[error("the weight of column {column} is {value}: weights are 0 or lie between 1e-9 and 1e9")]
    BadWeight {
        /// The column, counted from 0.
        column: usize,
        /// What stands there.
        value: f32,
    },

    /// A row number lies outside the database.
    #[error("row {row} was asked for but the database has {rows} rows, 0 to {}", rows - 1)]
    NoSuchRow {
        /// The row asked for.
        row: u32,
        /// Rows of the database.
        rows: usize,
    },

    /// A list that must have one entry a row (or column) has another length.
    #[error("{what} holds {found} entries but {expected} are needed")]
    Length {
        /// What was given.
        what: &'static str,
        /// Entries needed.
        expected: usize,
        /// Entries found.
        found: usize,
    },

    /// An extra cost is not a finite number.
    #[error("the extra cost of {place} is {value}; give a finite number")]
    BadExtra {
        /// The row or tag.
        place: String,
        /// What stands there.
        value: f32,
    },

    /// Bytes that are no database, or a damaged one.
    #[error("motion database: {0}")]
    File(String),
}
