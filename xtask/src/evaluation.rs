//! `cargo xtask eval`: builds the evaluation and passes everything on to it.
//!
//! A program of its own, so that the other tasks need not build a server first. Not here: what is evaluated (`crates/eval`).

use std::process::Command;

use anyhow::{Result, bail};

use crate::shell;

/// `eval`'s options: all are passed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on: `--model`, `--policy`, `--tasks` and others
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs the evaluation in the folder in which it was asked for, because its arguments may name files.
///
/// # Errors
/// It cannot be built, or compared nothing.
pub(crate) fn run_evaluation(arguments: &Arguments) -> Result<()> {
    let mut command = evaluation_command(&arguments.rest);
    let status = command.status()?;
    if !status.success() {
        bail!("the evaluation did not succeed ({status})");
    }
    Ok(())
}

fn evaluation_command(rest: &[String]) -> Command {
    let mut command = shell::cargo_command();
    command.args(["run", "--quiet", "-p", "contexture-eval", "--"]);
    command.args(rest);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_evaluation_are_passed_on() {
        let rest = ["--model".to_owned(), "gpt-5-mini".to_owned()];
        assert_eq!(
            shell::command_line(&evaluation_command(&rest)),
            "cargo run --quiet -p contexture-eval -- --model gpt-5-mini"
        );
    }
}
