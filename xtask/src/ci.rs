//! `cargo xtask ci`: the steps a change must pass, cheapest first, the same here and on a build machine.

use std::process::Command;

use anyhow::Result;

use crate::{licences, shell, testing, tidy};

/// `ci`'s options.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Leave out tests and documentation examples, for who runs `cargo xtask test` beside it
    #[arg(long)]
    no_test: bool,
}

/// Runs every step; stops at the first that fails.
///
/// # Errors
/// The failing step, why it failed, and the command that repeats only that step.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    command_step("fmt", cargo(&["fmt", "--all", "--check"]))?;
    shell::step("tidy", "cargo xtask tidy", tidy::run)?;
    shell::step("licences", "cargo xtask licences", licences::run)?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    command_step("clippy", cargo(&clippy))?;
    if !arguments.no_test {
        shell::step("test", "cargo xtask test", || testing::run(&[]))?;
    }
    command_step("doc", docs())?;
    println!("── everything holds");
    Ok(())
}

/// The documentation of the libraries; a broken link is an error.
fn docs() -> Command {
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--lib"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    docs
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = shell::cargo();
    command.args(arguments);
    command
}

fn command_step(name: &str, command: Command) -> Result<()> {
    let again = shell::typed(&command);
    shell::step(name, &again, || shell::run(command))
}
