//! What can go wrong with a file, by what the user can do about it.

use thiserror::Error;

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum FormatError {
    /// No reader knows the format.
    #[error("{file}: not a format this program reads; it reads {known}")]
    Unknown {
        /// The file.
        file: String,
        /// Extensions it reads.
        known: String,
    },
    /// No writer knows the format.
    #[error("{file}: not a format this program writes; end the name with one of {known}")]
    Unwritten {
        /// The file.
        file: String,
        /// Extensions it writes.
        known: String,
    },
    /// The operating system said no.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// What it said.
        error: std::io::Error,
    },
    /// A side file outside the file's own folder.
    #[error(
        "{file} names a side file {names:?} outside its own folder, which is not followed; \
         put it beside the file and name it without a path"
    )]
    SideFile {
        /// The file.
        file: String,
        /// What it names.
        names: String,
    },
    /// The file breaks its format.
    #[error("{file}: {place}: expected {expected}, found {found}; {advice}")]
    Broken {
        /// The file.
        file: String,
        /// Line, accessor, node, clip and channel, byte offset: where.
        place: String,
        /// What the format asks for.
        expected: String,
        /// What is there.
        found: String,
        /// What to do.
        advice: String,
    },
    /// The file asks for more than a limit allows.
    #[error("{file}: {place}: {found} {what} are too many (the limit is {limit}); {advice}")]
    Limit {
        /// The file.
        file: String,
        /// Where.
        place: String,
        /// Of what.
        what: String,
        /// How many it asks for.
        found: u64,
        /// How many are allowed.
        limit: u64,
        /// What to do.
        advice: String,
    },
    /// The format cannot hold what should be written.
    #[error("{format} cannot hold {what}; {advice}")]
    CannotWrite {
        /// The format.
        format: &'static str,
        /// What.
        what: String,
        /// What to do.
        advice: String,
    },
}
