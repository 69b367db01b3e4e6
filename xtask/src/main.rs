//! `cargo xtask …`: everything a developer or a build machine does to this workspace.
//!
//! `cargo xtask ci` is the same in both places. Not here: anything a user of Contexture runs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to its terminal"
)]

mod bench;
mod browser;
mod catalogue;
mod ci;
mod clients;
mod dependencies;
mod dist;
mod evaluation;
mod fuzzing;
mod metadata;
mod peers;
mod postgres;
mod shell;
mod testing;
mod tidy;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Development tasks of the Contexture workspace"
)]
struct Arguments {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Everything that must hold before a change goes in
    Ci(ci::Arguments),
    /// All tests and documentation examples; installs what they need
    Test(testing::Arguments),
    /// The house rules: layers, purity, sizes, module docs, modules, names, comments, fixtures, documents
    Tidy,
    /// The public items of each library, as docs/api/<crate>.txt
    Api,
    /// Benchmarks of every crate that has some
    Bench(bench::Arguments),
    /// Tasks for an agent, played with and without a policy, with your own key; --help shows the options
    #[command(disable_help_flag = true)]
    Eval(evaluation::Arguments),
    /// Tests at their full doses: properties with many cases, tests ignored for their length, fuzzing
    Soak(testing::Arguments),
    /// libFuzzer on the parsers of strangers' bytes
    Fuzz(fuzzing::Arguments),
    /// The licence of every dependency against deny.toml
    Licences,
    /// Known vulnerabilities of dependencies, if there is a copy of the advisory database
    Advisories,
    /// A release of the command for one platform, packed, with its checksum
    Dist(dist::Arguments),
    /// Makes the catalogue of models anew from public data
    Catalogue {
        /// LiteLLM's table of models, or the Python package with it; fetched with pip where not given
        source: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run_task(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The alternate form prints the whole chain of causes on one line.
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_task(task: XtaskCommand) -> Result<()> {
    match task {
        XtaskCommand::Ci(arguments) => ci::run_all_steps(&arguments),
        XtaskCommand::Test(arguments) => testing::run_tests(&arguments.rest),
        XtaskCommand::Tidy => tidy::run_checks(),
        XtaskCommand::Api => tidy::write_api_files(),
        XtaskCommand::Bench(arguments) => bench::run_benchmarks(&arguments),
        XtaskCommand::Eval(arguments) => evaluation::run_evaluation(&arguments),
        XtaskCommand::Soak(arguments) => testing::run_soak_tests(&arguments.rest),
        XtaskCommand::Fuzz(arguments) => fuzzing::fuzz_targets(&arguments),
        XtaskCommand::Licences => dependencies::check_licences(),
        XtaskCommand::Advisories => dependencies::check_advisories(),
        XtaskCommand::Dist(arguments) => dist::build_release(&arguments),
        XtaskCommand::Catalogue {
            source: Some(source),
        } => catalogue::update_catalogue(&source),
        XtaskCommand::Catalogue { source: None } => {
            // Kept until the table is read, because dropping it removes the wheel.
            let directory = tempfile::tempdir()?;
            catalogue::update_catalogue(&catalogue::download_wheel(directory.path())?)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_follows_test_is_passed_on() {
        let words = [
            "xtask",
            "test",
            "-p",
            "contexture-ir",
            "--no-capture",
            "name",
        ];
        let XtaskCommand::Test(arguments) = Arguments::parse_from(words).task else {
            panic!("not a test")
        };
        assert_eq!(
            arguments.rest,
            ["-p", "contexture-ir", "--no-capture", "name"]
        );
    }
}
