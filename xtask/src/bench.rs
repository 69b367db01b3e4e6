//! `cargo xtask bench [crate] [-- filter]`: the benchmarks of every crate that has some, found by asking cargo.
//!
//! Not here: what is measured, nor what is fast enough; that stands in each crate's `benches/`.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::metadata::{Metadata, Package, Reach};
use crate::peers;
use crate::postgres::{self, Files, Server};
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
    /// Passed on to the benchmarks: a filter
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Runs them one crate after the other, never two at once: they would disturb each other.
///
/// # Errors
/// When no benchmark has the name, or one fails.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let metadata = Metadata::load(Reach::Workspace)?;
    let packages = metadata.packages;
    let commands = commands(&packages, arguments);
    if commands.is_empty() {
        let all: Vec<String> = packages.iter().flat_map(names).collect();
        let name = arguments.name.as_deref().unwrap_or("any name");
        bail!("no benchmark for `{name}`; there are: {}", all.join(", "));
    }
    for (package, mut command) in commands {
        let again = shell::typed(&command);
        // Dropped when its benchmarks are done.
        let server = server(&package)?;
        if let Some(server) = &server {
            command.env(postgres::VARIABLE, server.address());
        }
        shell::step(&package, &again, || shell::run(command))?;
        if arguments.peers {
            peers::run(Path::new(&metadata.target_directory), &package)?;
        }
    }
    Ok(())
}

/// The packages whose benchmarks measure PostgreSQL too.
const WITH_POSTGRES: [&str; 1] = ["contexture"];

/// A server for a package that needs one, unless the environment names one.
fn server(package: &str) -> Result<Option<Server>> {
    if !WITH_POSTGRES.contains(&package) || std::env::var_os(postgres::VARIABLE).is_some() {
        return Ok(None);
    }
    Server::start(Files::Synced).map(Some)
}

/// `crate/benchmark` for each benchmark of the package.
fn names(package: &Package) -> Vec<String> {
    benches(package)
        .map(|bench| format!("{}/{bench}", short(package)))
        .collect()
}

fn short(package: &Package) -> &str {
    package
        .name
        .strip_prefix("contexture-")
        .unwrap_or(&package.name)
}

fn benches(package: &Package) -> impl Iterator<Item = &str> {
    let targets = package.targets.iter();
    targets
        .filter(|target| target.kind.iter().any(|kind| kind == "bench"))
        .map(|target| target.name.as_str())
}

fn commands(packages: &[Package], arguments: &Arguments) -> Vec<(String, Command)> {
    let mut commands = Vec::new();
    for package in packages {
        let is_named = |bench: &str| {
            arguments.name.as_deref().is_none_or(|name| {
                [package.name.as_str(), short(package), bench].contains(&name)
                    || name == format!("{}/{bench}", short(package))
            })
        };
        let named: Vec<&str> = benches(package).filter(|bench| is_named(bench)).collect();
        if named.is_empty() {
            continue;
        }
        let mut command = shell::cargo();
        command.args(["bench", "-p", &package.name]);
        // By name: the test harnesses of other targets do not understand what follows `--`.
        named.iter().for_each(|bench| {
            command.args(["--bench", bench]);
        });
        if arguments.quick || !arguments.rest.is_empty() {
            command.arg("--");
        }
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
    use crate::metadata::Target;

    fn packages() -> Vec<Package> {
        let package = |name: &str, benches: &[&str]| Package {
            name: name.to_owned(),
            targets: benches
                .iter()
                .map(|bench| Target {
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
            rest,
        };
        let commands = commands(&packages(), &arguments);
        commands
            .iter()
            .map(|(_, command)| shell::typed(command))
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
