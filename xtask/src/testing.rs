//! `cargo xtask test` and `cargo xtask soak`: the tests, and the tests at full size.
//!
//! Tests run under cargo-nextest, which is built into the build directory if it is not installed; if that fails, `cargo
//! test` runs them instead. Without a filter, `test` also runs the documentation examples, under `cargo test --doc`.
//!
//! If the PostgreSQL backend is tested, a server is started first and stopped at the end; if the proxy is tested,
//! third-party clients are installed first. After a soak without a selection the fuzz targets are run.
//!
//! A soak sets `CONTEXTURE_SOAK=1`, which long-running tests read. Both set `PROPTEST_CASES`, which proptest reads: a soak to
//! 20,000, `test` to 100 unless it is set. No other code reads them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::metadata::{Metadata, Package};
use crate::tools::NEXTEST;
use crate::{browser, clients, fuzzing, postgres, shell};

/// Random cases of a property in a soak.
const SOAK_CASES: &str = "20000";
/// The same in a run of the tests, each of which takes other cases; proptest's own default is 256.
const CASES: &str = "100";
/// Where proptest reads it.
const CASES_VARIABLE: &str = "PROPTEST_CASES";

/// Options of `test` and `soak`: all are passed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on: `-p crate`, a filter, options of cargo-nextest
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<String>,
}

/// Runs tests and documentation examples.
///
/// # Errors
/// If a test fails, or cargo cannot be run.
pub(crate) fn run_tests(rest: &[String]) -> Result<()> {
    let metadata = Metadata::load()?;
    // Before the server starts: building the runner can take minutes, during which the server would be idle.
    let runner = find_runner(&metadata.target_directory);
    let packages = install_while_building(rest, &metadata.target_directory)?;
    let server = start_server_if_needed(rest)?;
    let mut command = test_command(runner, rest);
    set_server_address(&mut command, server.as_ref());
    command.envs(packages);
    if std::env::var_os(THREADS_VARIABLE).is_none() {
        command.env(THREADS_VARIABLE, test_threads().to_string());
    }
    if std::env::var_os(CASES_VARIABLE).is_none() {
        command.env(CASES_VARIABLE, CASES);
    }
    // Tests first: if one fails, the documentation examples are not run.
    shell::run_command(command)?;
    match doc_test_command(&metadata.packages, rest) {
        Some(examples) => shell::run_command(examples),
        None => {
            println!("   documentation examples: none in this selection");
            Ok(())
        }
    }
}

/// Runs all tests at full size, including those that are ignored for their duration, and then the fuzz targets.
///
/// # Errors
/// As [`run_tests`].
pub(crate) fn run_soak_tests(rest: &[String]) -> Result<()> {
    let metadata = Metadata::load()?;
    let runner = find_runner(&metadata.target_directory);
    let full_size = match &runner {
        // Two profiles of this name: nextest's has longer time limits, cargo's is optimised.
        Some(_) => "--run-ignored all --profile soak --cargo-profile soak",
        // What follows `--` is for the test programs. A user's own words stand before it.
        None => "--profile soak -- --include-ignored",
    };
    let mut command = test_command(runner, rest);
    command.args(full_size.split(' '));
    command
        .env("CONTEXTURE_SOAK", "1")
        .env(CASES_VARIABLE, SOAK_CASES);
    let server = start_server_if_needed(rest)?;
    set_server_address(&mut command, server.as_ref());
    command.envs(install_packages(
        rest,
        Path::new(&metadata.target_directory),
    ));
    shell::run_command(command)?;
    // A selection is of tests, which fuzzing is not.
    if rest.is_empty() {
        fuzzing::fuzz_all_targets()?;
    }
    Ok(())
}

/// How many tests run side by side, as nextest reads it.
const THREADS_VARIABLE: &str = "NEXTEST_TEST_THREADS";

/// Returns how many tests run side by side: half as many again as there are processors, because many wait for a disk, a server
/// or another program.
fn test_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors + processors.div_ceil(2)
}

/// Crates whose tests need a PostgreSQL server.
const WITH_POSTGRES: [&str; 5] = ["store-postgres", "contexture", "cli", "server", PYTHON];

/// Starts a PostgreSQL server, if the selection needs one and none is named.
fn start_server_if_needed(rest: &[String]) -> Result<Option<postgres::PostgresServer>> {
    if !is_any_selected(rest, &WITH_POSTGRES) || std::env::var_os(postgres::VARIABLE).is_some() {
        return Ok(None);
    }
    postgres::PostgresServer::start(postgres::DiskSync::Unsynced).map(Some)
}

fn set_server_address(command: &mut Command, server: Option<&postgres::PostgresServer>) {
    if let Some(server) = server {
        command.env(postgres::VARIABLE, server.address());
    }
}

/// The crate whose tests need packages for Python of their own.
const PYTHON: &str = "contexture-python";

/// Crates whose tests need third-party clients, or the Node that comes with them.
const WITH_CLIENTS: [&str; 2] = ["server", "xtask"];

/// Installs packages for the tests while these are built: one waits for the network, the other for the processor. Returns the
/// variables that tell the tests where the packages are.
fn install_while_building(
    rest: &[String],
    target_directory: &str,
) -> Result<Vec<(&'static str, PathBuf)>> {
    let needed = [&WITH_CLIENTS[..], &[PYTHON]].concat();
    if !is_any_selected(rest, &needed) {
        return Ok(Vec::new());
    }
    let selection = package_selection(rest).into_iter().map(str::to_owned);
    let selection: Vec<String> = selection.collect();
    let build = runner_command(find_runner(target_directory), "--no-run", &selection);
    std::thread::scope(|scope| {
        let installing = scope.spawn(|| install_packages(rest, Path::new(target_directory)));
        shell::run_command(build)?;
        Ok(installing.join().unwrap_or_default())
    })
}

/// Installs the packages that the selection needs. If they cannot be installed, the other tests still run, and theirs
/// report what is missing.
fn install_packages(rest: &[String], target: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut installed = Vec::new();
    let is_needed = |crates: &[&str], variable| {
        is_any_selected(rest, crates) && std::env::var_os(variable).is_none()
    };
    // Not an error: without network most tests can still run.
    let report = |error: anyhow::Error| println!("   packages could not be installed: {error:#}");
    if is_needed(&[PYTHON], clients::PYTHON_VARIABLE) {
        match clients::ensure_python_installed(target) {
            Ok(home) => installed.push((clients::PYTHON_VARIABLE, home)),
            Err(error) => report(error),
        }
    }
    if is_needed(&WITH_CLIENTS, clients::VARIABLE) {
        match clients::ensure_installed(target) {
            Ok(home) => {
                if is_needed(&WITH_BROWSER, browser::VARIABLE) {
                    match browser::ensure_installed(target, &home) {
                        Ok(both) => installed.extend([
                            (browser::VARIABLE, both.packages),
                            (browser::CHROMIUM, both.chromium),
                        ]),
                        Err(error) => report(error),
                    }
                }
                installed.push((clients::VARIABLE, home));
            }
            Err(error) => report(error),
        }
    }
    installed
}

/// Crates whose tests look at pages with a browser.
const WITH_BROWSER: [&str; 1] = ["server"];

/// Returns nextest's command; `None` if it cannot be built, so that `cargo test` has to run the tests.
fn find_runner(target_directory: &str) -> Option<Command> {
    NEXTEST
        .find_or_build(target_directory)
        .inspect_err(|error| println!("   {error:#}; going on with `cargo test`"))
        .ok()
}

fn test_command(nextest: Option<Command>, rest: &[String]) -> Command {
    runner_command(nextest, "--no-fail-fast", rest)
}

/// Returns the command that builds the tests and does with them what `option` says.
fn runner_command(nextest: Option<Command>, option: &str, rest: &[String]) -> Command {
    let words: &[&str] = match &nextest {
        Some(_) => &["run", option],
        // What nextest runs by default; documentation examples are a step of their own.
        None => &["test", option, "--tests"],
    };
    let mut command = nextest.unwrap_or_else(shell::cargo_command);
    command.args(words);
    // `--workspace` would override a selection.
    if package_selection(rest).is_empty() {
        command.arg("--workspace");
    }
    command.args(rest);
    command
}

/// Returns the command for the documentation examples of the selected libraries; `None` if the tests were filtered or
/// no library is selected.
fn doc_test_command(packages: &[Package], rest: &[String]) -> Option<Command> {
    let selection = package_selection(rest);
    let is_filtered = selection.len() < rest.len();
    let is_selected = |package: &Package| {
        // `ends_with`, because the name may follow the option in the same word: `-pname`, `--package=name`.
        selection.is_empty() || selection.iter().any(|word| word.ends_with(&package.name))
    };
    let libraries: Vec<&str> = packages
        .iter()
        .filter(|package| package.has_target_kind("lib") && is_selected(package))
        .map(|package| package.name.as_str())
        .collect();
    if is_filtered || libraries.is_empty() {
        return None;
    }
    let mut command = shell::cargo_command();
    command.args(["test", "--doc", "--no-fail-fast"]);
    for library in libraries {
        command.args([OsString::from("-p"), OsString::from(library)]);
    }
    Some(command)
}

/// Whether one of these crates is selected; their names are given without the common prefix.
fn is_any_selected(rest: &[String], names: &[&str]) -> bool {
    let selection = package_selection(rest);
    let is_named = |word: &&str| names.iter().any(|name| word.ends_with(name));
    selection.is_empty() || selection.iter().any(is_named)
}

/// Returns the words that select packages: `-p name`, `-pname`, `--package name`, `--package=name`.
fn package_selection(rest: &[String]) -> Vec<&str> {
    let mut selected = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if word == "-p" || word == "--package" {
            selected.push(word.as_str());
            // Both words count: if there are more words than these, the tests are filtered.
            selected.extend(words.next().map(String::as_str));
        } else if word.starts_with("--package=")
            || (word.starts_with("-p") && !word.starts_with("--"))
        {
            selected.push(word);
        }
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::CargoTarget;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn packages() -> Vec<Package> {
        let package = |name: &str, kind: &str| Package {
            name: name.to_owned(),
            targets: vec![CargoTarget {
                kind: vec![kind.to_owned()],
                ..CargoTarget::default()
            }],
            ..Package::default()
        };
        vec![
            package("contexture-ir", "lib"),
            package("contexture-cli", "bin"),
        ]
    }

    #[test]
    fn without_a_selection_the_whole_workspace_is_tested() {
        let typed = |rest: &str| {
            let mut nextest = shell::cargo_command();
            nextest.arg("nextest");
            shell::command_line(&test_command(Some(nextest), &words(rest)))
        };
        assert!(typed("").ends_with("nextest run --no-fail-fast --workspace"));
        assert!(typed("some_test").ends_with("--workspace some_test"));
        assert!(typed("-p contexture-ir").ends_with("--no-fail-fast -p contexture-ir"));
    }

    #[test]
    fn documentation_examples_follow_the_selection() {
        let typed = |rest: &str| {
            doc_test_command(&packages(), &words(rest))
                .as_ref()
                .map(shell::command_line)
        };
        assert!(
            typed("")
                .unwrap()
                .ends_with("test --doc --no-fail-fast -p contexture-ir")
        );
        assert!(typed("--package=contexture-ir").is_some());
        assert_eq!(typed("-p contexture-cli"), None);
        assert_eq!(typed("some_test"), None);
    }

    #[test]
    fn words_that_select_packages_are_recognised() {
        assert_eq!(
            package_selection(&words("-p a -pb --package c --package=d e --profile f")).len(),
            6
        );
    }
}
