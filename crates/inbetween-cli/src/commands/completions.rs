//! `completions`: what a shell needs to complete the command's words.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::output::{Outcome, print};

const EXAMPLES: &str = "\
Examples:
  inbetween completions bash > ~/.local/share/bash-completion/completions/inbetween
  inbetween completions zsh > ~/.zfunc/_inbetween
  inbetween completions fish > ~/.config/fish/completions/inbetween.fish";

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "inbetween", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
