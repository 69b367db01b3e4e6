//! `contexture completions`: what a shell needs to complete the command line.

use clap::Args;
use clap_complete::Shell;

use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::write;
use crate::shell_completion;

/// Write completions for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
The shell asks this program what may come next: commands, options, files, and the conversations and
branches of the database. What a shell and the program say to each other may change with a version,
so let the shell read the script anew whenever it starts.

Examples:
  echo 'source <(contexture completions bash)' >> ~/.bashrc
  echo 'source <(contexture completions zsh)' >> ~/.zshrc
  echo 'contexture completions fish | source' > ~/.config/fish/completions/contexture.fish
  echo 'eval (contexture completions elvish | slurp)' >> ~/.config/elvish/rc.elv
  echo 'contexture completions powershell | Out-String | Invoke-Expression' >> $PROFILE")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let script = shell_completion::registration_script(arguments.shell)?;
    write::print_text(&script)?;
    Ok(Exit::Done)
}
