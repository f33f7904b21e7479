//! The command `inbetween`: the libraries, from a shell.
//!
//! One file a command under [`commands`]; what they share lies beside it: units with their
//! names ([`units`]), reading and picking clips ([`input`]), writing ([`output`]), the bar
//! ([`progress`]). No algorithm lives here.
//!
//! Exit codes: 0 done, 1 a check did not hold, 2 the call or an input was wrong, 3 the bound
//! could not be met. Results go to standard output, everything else to standard error.

mod commands;
mod curves;
mod input;
mod output;
mod picture;
mod progress;
mod report;
mod units;

use std::process::ExitCode;

use clap::Parser;

use output::Failure;

const AFTER_HELP: &str = "\
Lengths take a unit (1mm, 0.5cm, 0.01m, 2in), angles too (0.1deg, 2mrad); times are seconds.
Exit codes: 0 done, 1 a check did not hold, 2 the call or an input was wrong, 3 the bound could
not be met.

Examples:
  inbetween demo                                     the whole way on embedded clips
  inbetween info Fox.glb                             what is in a file
  inbetween reduce Fox.glb -o out.glb --max-error 1mm --report report.html
  inbetween diff before.glb after.glb --max-error 2mm";

/// Keyframe animation: look into it, thin it out under a bound that holds, compare, draw, match.
#[derive(Parser)]
#[command(name = "inbetween", version, after_help = AFTER_HELP, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

impl Cli {
    /// Does what was typed.
    ///
    /// # Errors
    /// As the command says.
    pub fn run(self) -> output::Outcome {
        self.command.run()
    }
}

fn main() -> ExitCode {
    let result = Cli::parse().run();
    match result {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(&format!("inbetween: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}
