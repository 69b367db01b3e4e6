//! `contexture completions`: what a shell needs to complete the command line.

use clap::Args;
use clap_complete::Shell;

use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::write;

/// Write completions for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture completions bash > ~/.local/share/bash-completion/completions/contexture
  contexture completions zsh > ~/.zfunc/_contexture
  contexture completions fish > ~/.config/fish/completions/contexture.fish")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn run(arguments: &Arguments, mut command: clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "contexture", &mut script);
    write::print_text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
