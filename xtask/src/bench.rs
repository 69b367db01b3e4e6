//! `cargo xtask bench [crate] [-- filter]`: runs the benchmarks of all crates that have some, as cargo lists them.
//!
//! Not here: what is measured, and which results are acceptable; both are in each crate's `benches/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::metadata::{Metadata, Package};
use crate::peers;
use crate::postgres::{self, DiskSync, PostgresServer};
use crate::shell;

/// `bench`'s options.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this crate (`tokens`, `contexture-tokens`) or only the benchmark of this name
    name: Option<String>,
    /// Fewer samples: seconds instead of minutes, for a first look
    #[arg(long)]
    quick: bool,
    /// Other projects that do the same too; their packages come from npm and PyPI
    #[arg(long)]
    peers: bool,
    /// Data to measure, for a benchmark that takes some (`recall`)
    path: Option<PathBuf>,
    /// Passed on to the benchmarks: a filter
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Runs the benchmarks one crate after the other: in parallel they would disturb each other.
///
/// # Errors
/// If no benchmark has the name, or one fails.
pub(crate) fn run_benchmarks(arguments: &Arguments) -> Result<()> {
    // Cargo lists the benchmarks, so a new one needs no entry here.
    let metadata = Metadata::load()?;
    let packages = metadata.packages;
    // Also checks the name: a misspelt one must not succeed without running anything.
    let commands = bench_commands(&packages, arguments);
    if commands.is_empty() {
        let all: Vec<String> = packages.iter().flat_map(benchmark_names).collect();
        let name = arguments.name.as_deref().unwrap_or("any name");
        bail!("no benchmark for `{name}`; there are: {}", all.join(", "));
    }
    for (package, mut command) in commands {
        let again = shell::command_line(&command);
        // Dropped when its benchmarks are done.
        let server = start_server_if_needed(&package)?;
        if let Some(server) = &server {
            command.env(postgres::VARIABLE, server.address());
        }
        // Ours first, peers directly after, so that both run on the machine in the same state.
        shell::run_step(&package, &again, || shell::run_command(command))?;
        if arguments.peers {
            peers::measure_peers(Path::new(&metadata.target_directory), &package)?;
        }
    }
    Ok(())
}

/// Packages whose benchmarks also measure PostgreSQL.
const WITH_POSTGRES: [&str; 2] = ["contexture", "contexture-store-postgres"];

/// Starts a server for a package that needs one, unless the environment names one.
fn start_server_if_needed(package: &str) -> Result<Option<PostgresServer>> {
    if !WITH_POSTGRES.contains(&package) || std::env::var_os(postgres::VARIABLE).is_some() {
        return Ok(None);
    }
    PostgresServer::start(DiskSync::Synced).map(Some)
}

/// Returns `crate/benchmark` for each benchmark of the package.
fn benchmark_names(package: &Package) -> Vec<String> {
    benchmark_targets(package)
        .map(|bench| format!("{}/{bench}", short_name(package)))
        .collect()
}

fn short_name(package: &Package) -> &str {
    package
        .name
        .strip_prefix("contexture-")
        .unwrap_or(&package.name)
}

fn benchmark_targets(package: &Package) -> impl Iterator<Item = &str> {
    let targets = package.targets.iter();
    targets
        .filter(|target| target.kind.iter().any(|kind| kind == "bench"))
        .map(|target| target.name.as_str())
}

fn bench_commands(packages: &[Package], arguments: &Arguments) -> Vec<(String, Command)> {
    let mut commands = Vec::new();
    for package in packages {
        let is_named = |bench: &str| {
            arguments.name.as_deref().is_none_or(|name| {
                [package.name.as_str(), short_name(package), bench].contains(&name)
                    || name == format!("{}/{bench}", short_name(package))
            })
        };
        let named: Vec<&str> = benchmark_targets(package)
            .filter(|bench| is_named(bench))
            .collect();
        // Without `--bench` cargo would run all benchmarks of the package.
        if named.is_empty() {
            continue;
        }
        let mut command = shell::cargo_command();
        command.args(["bench", "-p", &package.name]);
        // By name: the test harnesses of other targets do not accept the arguments after `--`.
        named.iter().for_each(|bench| {
            command.args(["--bench", bench]);
        });
        let has_more = arguments.quick || arguments.path.is_some() || !arguments.rest.is_empty();
        if has_more {
            command.arg("--");
        }
        // Cargo runs a benchmark in the folder of its crate.
        let path = arguments.path.as_ref();
        command.args(path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())));
        if arguments.quick {
            command.arg("--quick");
        }
        command.args(&arguments.rest);
        commands.push((package.name.clone(), command));
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::CargoTarget;

    fn packages() -> Vec<Package> {
        let package = |name: &str, benches: &[&str]| Package {
            name: name.to_owned(),
            targets: benches
                .iter()
                .map(|bench| CargoTarget {
                    name: (*bench).to_owned(),
                    kind: vec!["bench".to_owned()],
                })
                .collect(),
            ..Package::default()
        };
        vec![
            package("contexture-tokens", &["counting", "loading"]),
            package("contexture-ir", &[]),
            package("contexture-render", &["xml"]),
        ]
    }

    fn typed(name: Option<&str>, quick: bool, rest: &[&str]) -> Vec<String> {
        let rest = rest.iter().map(|word| (*word).to_owned()).collect();
        let arguments = Arguments {
            name: name.map(str::to_owned),
            quick,
            peers: false,
            path: None,
            rest,
        };
        let commands = bench_commands(&packages(), &arguments);
        commands
            .iter()
            .map(|(_, command)| shell::command_line(command))
            .collect()
    }

    #[test]
    fn crates_with_benchmarks_are_found() {
        assert_eq!(
            typed(None, false, &[]),
            [
                "cargo bench -p contexture-tokens --bench counting --bench loading",
                "cargo bench -p contexture-render --bench xml"
            ]
        );
    }

    /// Cargo runs a benchmark in the folder of its crate, where a relative path would name something else.
    #[test]
    fn a_path_is_passed_on_as_absolute() {
        let arguments = Arguments {
            name: Some("loading".to_owned()),
            quick: false,
            peers: false,
            path: Some("data/locomo".into()),
            rest: Vec::new(),
        };
        let commands = bench_commands(&packages(), &arguments);
        let path = std::path::absolute("data/locomo").unwrap();
        let last = commands[0].1.get_args().last().unwrap();
        assert_eq!(Path::new(last), path);
    }

    #[test]
    fn a_name_selects_a_crate_or_a_benchmark() {
        let xml = ["cargo bench -p contexture-render --bench xml -- --quick nested"];
        assert_eq!(typed(Some("render"), true, &["nested"]), xml);
        assert_eq!(typed(Some("contexture-render"), true, &["nested"]), xml);
        assert_eq!(typed(Some("render/xml"), true, &["nested"]), xml);
        assert_eq!(
            typed(Some("loading"), false, &[]),
            ["cargo bench -p contexture-tokens --bench loading"]
        );
        assert_eq!(typed(Some("ir"), false, &[]).len(), 0);
    }
}
