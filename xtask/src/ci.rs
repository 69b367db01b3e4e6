//! `cargo xtask ci`: the steps a change must pass, cheapest first, the same here and on a build machine.

use std::process::Command;

use anyhow::Result;

use crate::dependencies::{check_advisories, check_licences, check_rust_versions};
use crate::{shell, testing, tidy};

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
pub(crate) fn run_all_steps(arguments: &Arguments) -> Result<()> {
    // Fast checks first, so that a simple mistake fails within seconds.
    run_command_step("fmt", cargo_with_args(&["fmt", "--all", "--check"]))?;
    shell::run_step("tidy", "cargo xtask tidy", tidy::run_checks)?;
    shell::run_step("licences", "cargo xtask licences", check_licences)?;
    shell::run_step(
        "rust versions",
        "cargo xtask ci --no-test",
        check_rust_versions,
    )?;
    shell::run_step("advisories", "cargo xtask advisories", check_advisories)?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    run_command_step("clippy", cargo_with_args(&clippy))?;
    if !arguments.no_test {
        shell::run_step("test", "cargo xtask test", || testing::run_tests(&[]))?;
    }
    // All of the workspace is checked with all features; here the façade without them. Clippy, not check: it finds what
    // the step before has built.
    let features = [
        "clippy",
        "-p",
        "contexture",
        "--no-default-features",
        "--lib",
    ];
    run_command_step("features", cargo_with_args(&features))?;
    // And the compiler by itself, without the features that its users need not compile.
    let alone = ["clippy", "-p", "contexture-compile"];
    run_command_step("compile alone", cargo_with_args(&alone))?;
    run_command_step("doc", doc_command())?;
    println!("── everything holds");
    Ok(())
}

/// Returns the command that builds the documentation of the libraries; a broken link is an error.
fn doc_command() -> Command {
    let mut docs = cargo_with_args(&["doc", "--workspace", "--no-deps", "--lib"]);
    // `cargo doc` has no option for this, and a broken link is only a warning by default.
    docs.env("RUSTDOCFLAGS", "-D warnings");
    docs
}

fn cargo_with_args(arguments: &[&str]) -> Command {
    let mut command = shell::cargo_command();
    command.args(arguments);
    command
}

fn run_command_step(name: &str, command: Command) -> Result<()> {
    // Formatted first, because running the command consumes it.
    let again = shell::command_line(&command);
    shell::run_step(name, &again, || shell::run_command(command))
}
