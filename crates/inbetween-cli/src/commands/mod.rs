//! The commands, one file each, and the list of them.
//!
//! To add one: write `commands/<name>.rs` with a `#[derive(clap::Args)] pub struct <Name>` and
//! `impl <Name> { pub fn run(self) -> Outcome }`, then its `mod` and one line in the list below.
//! The first paragraph of the struct's documentation is what `--help` says.

mod camera;
mod completions;
mod compress;
mod convert;
mod demo;
mod diff;
mod info;
mod match_bake;
mod match_group;
mod match_page;
mod match_query;
mod match_run;
mod plot;
mod reduce;
mod sample;

pub use reduce::shell_words;

use crate::output::Outcome;

/// Declares the subcommands and how each is run, from one list.
macro_rules! commands {
    ($($(#[$attribute:meta])* $module:ident: $name:ident,)*) => {
        /// What to do.
        #[derive(clap::Subcommand)]
        #[allow(clippy::large_enum_variant, reason = "one is made a run")]
        pub enum Command {
            $($(#[$attribute])* $name($module::$name),)*
        }

        impl Command {
            /// Does it.
            ///
            /// # Errors
            /// As the command says.
            pub fn run(self) -> Outcome {
                match self {
                    $(Self::$name(command) => command.run(),)*
                }
            }
        }
    };
}

commands! {
    demo: Demo,
    info: Info,
    sample: Sample,
    convert: Convert,
    compress: Compress,
    #[command(alias = "shrink")]
    reduce: Reduce,
    diff: Diff,
    diff: Check,
    plot: Plot,
    camera: Camera,
    match_group: Match,
    completions: Completions,
}
