//! `cargo xtask test` and `cargo xtask soak`: the tests, and the tests at full dose.
//!
//! Tests run under cargo-nextest, which is installed into the build directory where it is missing; where it cannot be
//! installed, `cargo test` runs them instead. Documentation examples always run under `cargo test --doc`.
//!
//! Where the PostgreSQL backend is tested, a server is started first and stopped at the end; where the proxy is tested,
//! clients of others are installed first.
//!
//! A soak sets `CONTEXTURE_SOAK=1` and `PROPTEST_CASES`: tests that can go on for long read the first, proptest the
//! second. Only test code reads them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::metadata::{Metadata, Package, Reach};
use crate::{clients, postgres, shell};

const NEXTEST: &str = "0.9.143";
/// Building nextest may take this long before plain `cargo test` is the faster road.
const PATIENCE: Duration = Duration::from_secs(8 * 60);
const SOAK_CASES: &str = "20000";

/// Options of `test` and `soak`: all are passed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on: `-p crate`, a filter, options of cargo-nextest
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<String>,
}

/// How the tests are run.
enum Runner {
    /// `cargo nextest`, from the path.
    Installed,
    /// The program at this path.
    At(PathBuf),
    /// `cargo test`.
    Plain,
}

/// Runs tests and documentation examples.
///
/// # Errors
/// When one fails, or cargo cannot be run.
pub(crate) fn run(rest: &[String]) -> Result<()> {
    let metadata = Metadata::load(Reach::Workspace)?;
    let runner = find_runner(&metadata.target_directory);
    let server = server(rest)?;
    let mut command = tests(&runner, rest);
    offer(&mut command, server.as_ref());
    offer_clients(&mut command, rest, &metadata.target_directory);
    shell::run(command)?;
    match examples(&metadata.packages, rest) {
        Some(examples) => shell::run(examples),
        None => {
            println!("   documentation examples: none in this selection");
            Ok(())
        }
    }
}

/// Runs all tests, those ignored for their length included, at full dose.
///
/// # Errors
/// As `run`.
pub(crate) fn soak(rest: &[String]) -> Result<()> {
    let metadata = Metadata::load(Reach::Workspace)?;
    let runner = find_runner(&metadata.target_directory);
    let mut command = tests(&runner, rest);
    match runner {
        Runner::Installed | Runner::At(_) => {
            command.args(["--run-ignored", "all", "--profile", "soak"]);
        }
        Runner::Plain => {
            command.args(["--", "--include-ignored"]);
        }
    }
    command
        .env("CONTEXTURE_SOAK", "1")
        .env("PROPTEST_CASES", SOAK_CASES);
    let server = server(rest)?;
    offer(&mut command, server.as_ref());
    offer_clients(&mut command, rest, &metadata.target_directory);
    shell::run(command)
}

/// The crates whose tests ask for a PostgreSQL server.
const WITH_POSTGRES: [&str; 2] = ["store-postgres", "cli"];

/// A PostgreSQL server, where the selection needs one and none is named.
fn server(rest: &[String]) -> Result<Option<postgres::Server>> {
    if !selects(rest, &WITH_POSTGRES) || std::env::var_os(postgres::VARIABLE).is_some() {
        return Ok(None);
    }
    postgres::Server::start(postgres::Files::Unsynced).map(Some)
}

fn offer(command: &mut Command, server: Option<&postgres::Server>) {
    if let Some(server) = server {
        command.env(postgres::VARIABLE, server.address());
    }
}

/// The crates whose tests ask for clients of others.
const WITH_CLIENTS: [&str; 1] = ["server"];

/// The clients, where the selection needs them. Where they cannot be installed, other tests run all the same, and
/// theirs say what is missing.
fn offer_clients(command: &mut Command, rest: &[String], target_directory: &str) {
    if !selects(rest, &WITH_CLIENTS) || std::env::var_os(clients::VARIABLE).is_some() {
        return;
    }
    match clients::prepare(Path::new(target_directory)) {
        Ok(home) => {
            command.env(clients::VARIABLE, home);
        }
        Err(error) => println!("   the clients could not be installed: {error:#}"),
    }
}

fn find_runner(target_directory: &str) -> Runner {
    let mut installed = shell::cargo();
    installed.args(["nextest", "--version"]);
    if shell::succeeds(installed) {
        return Runner::Installed;
    }
    let tools = Path::new(target_directory).join("tools");
    let program = tools
        .join("bin")
        .join(format!("cargo-nextest{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Runner::At(program);
    }
    println!(
        "   cargo-nextest is not installed; building it into {}",
        tools.display()
    );
    match install(&tools) {
        Ok(()) => Runner::At(program),
        Err(error) => {
            println!("   {error:#}; going on with `cargo test`");
            Runner::Plain
        }
    }
}

/// Builds nextest without optimisation, which takes a third of the time: it spends its own waiting for tests.
fn install(tools: &Path) -> Result<()> {
    let mut command = shell::cargo();
    command.args([
        "install",
        "cargo-nextest",
        "--version",
        NEXTEST,
        "--locked",
        "--debug",
        "--quiet",
    ]);
    command.arg("--root").arg(tools);
    let start = Instant::now();
    let mut child = command
        .spawn()
        .context("`cargo install` could not be started")?;
    loop {
        if let Some(status) = child.try_wait()? {
            anyhow::ensure!(
                status.success(),
                "cargo-nextest could not be built ({status})"
            );
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            // Gone already is as good as killed.
            let _ = child.kill();
            child.wait()?;
            anyhow::bail!(
                "cargo-nextest took more than {} s to build",
                PATIENCE.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn tests(runner: &Runner, rest: &[String]) -> Command {
    let mut command = match runner {
        Runner::At(program) => Command::new(program),
        Runner::Installed | Runner::Plain => shell::cargo(),
    };
    match runner {
        Runner::Installed | Runner::At(_) => command.args(["nextest", "run", "--no-fail-fast"]),
        // What nextest runs by default; examples in the documentation follow in their own step.
        Runner::Plain => command.args(["test", "--no-fail-fast", "--tests"]),
    };
    if selection(rest).is_empty() {
        command.arg("--workspace");
    }
    command.args(rest);
    command
}

/// The documentation examples of the selected libraries; none when the tests were filtered or no library is selected.
fn examples(packages: &[Package], rest: &[String]) -> Option<Command> {
    let selection = selection(rest);
    let is_filtered = selection.len() < rest.len();
    let is_selected = |package: &Package| {
        selection.is_empty() || selection.iter().any(|word| word.ends_with(&package.name))
    };
    let libraries: Vec<&str> = packages
        .iter()
        .filter(|package| package.has("lib") && is_selected(package))
        .map(|package| package.name.as_str())
        .collect();
    if is_filtered || libraries.is_empty() {
        return None;
    }
    let mut command = shell::cargo();
    command.args(["test", "--doc", "--no-fail-fast"]);
    for library in libraries {
        command.args([OsString::from("-p"), OsString::from(library)]);
    }
    Some(command)
}

/// Whether one of these crates is selected; their names are given without what all have in common.
fn selects(rest: &[String], names: &[&str]) -> bool {
    let selection = selection(rest);
    let is_named = |word: &&str| names.iter().any(|name| word.ends_with(name));
    selection.is_empty() || selection.iter().any(is_named)
}

/// The words that select packages: `-p name`, `-pname`, `--package name`, `--package=name`.
fn selection(rest: &[String]) -> Vec<&str> {
    let mut selected = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if word == "-p" || word == "--package" {
            selected.push(word.as_str());
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
    use crate::metadata::Target;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn packages() -> Vec<Package> {
        let package = |name: &str, kind: &str| Package {
            name: name.to_owned(),
            targets: vec![Target {
                kind: vec![kind.to_owned()],
                ..Target::default()
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
        let typed = |rest: &str| shell::typed(&tests(&Runner::Installed, &words(rest)));
        assert!(typed("").ends_with("nextest run --no-fail-fast --workspace"));
        assert!(typed("some_test").ends_with("--workspace some_test"));
        assert!(typed("-p contexture-ir").ends_with("--no-fail-fast -p contexture-ir"));
    }

    #[test]
    fn documentation_examples_follow_the_selection() {
        let typed = |rest: &str| {
            examples(&packages(), &words(rest))
                .as_ref()
                .map(shell::typed)
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
            selection(&words("-p a -pb --package c --package=d e --profile f")).len(),
            6
        );
    }
}
