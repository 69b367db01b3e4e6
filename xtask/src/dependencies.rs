//! `cargo xtask licences` and `cargo xtask advisories`: what the lock file names, checked by cargo-deny against
//! `deny.toml`; and what `cargo xtask ci` knows of the packages beyond that: the Rust they need, and how many a program takes.
//!
//! Advisories change independently of this repository, so they need a copy of the database: nothing is downloaded.
//! Without one the check says so and succeeds, and everything else is still checked.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::metadata::Metadata;
use crate::shell;
use crate::tools::DENY;

/// Names a clone of the advisory database.
const DATABASE_VARIABLE: &str = "CONTEXTURE_ADVISORY_DB";
/// Name of a clone below the folder of databases: cargo-deny derives it from the address it is cloned from.
const CLONE_NAME: &str = "advisory-db-3157b0e258782691";
/// Folder of databases in cargo's home, where cargo-deny puts what it fetches.
const DEFAULT_FOLDER: &str = "advisory-dbs";
/// A database that is older says nothing about today: an ISO 8601 duration.
const OLDEST_DATABASE: &str = "P90D";

/// Checks licences, banned crates and sources of every package of the lock file, those for other platforms included,
/// against `deny.toml`.
///
/// # Errors
/// If cargo-deny finds something, in its own words, or cannot be built.
pub(crate) fn check_licences() -> Result<()> {
    let mut command = deny_command()?;
    command.args(["check", "--hide-inclusion-graph"]);
    command.args(["licenses", "bans", "sources"]);
    shell::run_command(command)
}

/// Checks the lock file against the advisory database that `CONTEXTURE_ADVISORY_DB` names, or that cargo-deny has in
/// cargo's home; says so if there is none.
///
/// # Errors
/// If an advisory is about a locked version, the named database is not there or too old, or cargo-deny cannot be built.
pub(crate) fn check_advisories() -> Result<()> {
    let Some(database) = find_database()? else {
        println!(
            "   NOT CHECKED: no advisory database; clone https://github.com/RustSec/advisory-db and name the clone in \
             {DATABASE_VARIABLE}"
        );
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let config = write_config(&directory, &database)?;
    let mut command = deny_command()?;
    // Options of the command come before `check`.
    command.args(["--offline", "--config"]).arg(&config);
    command.args(["check", "--hide-inclusion-graph", "advisories"]);
    shell::run_command(command)
}

/// Checks that no locked dependency needs a newer Rust than the workspace promises. Clippy checks our own code.
///
/// # Errors
/// Each package that does, with the version it needs.
pub(crate) fn check_rust_versions() -> Result<()> {
    let mut command = shell::cargo_command();
    command.args(["metadata", "--format-version", "1", "--locked"]);
    let metadata = Metadata::from_command(command.current_dir(shell::workspace_root()))?;
    let mut packages = metadata.packages.iter();
    let ours = packages.find(|package| package.name == "contexture");
    let promised = ours.and_then(|package| package.rust_version.as_deref());
    let promised = promised.context("the package `contexture` has no `rust-version`")?;
    let newer: Vec<String> = metadata
        .packages
        .iter()
        .filter_map(|package| Some((package, package.rust_version.as_deref()?)))
        .filter(|(_, needed)| version_numbers(needed) > version_numbers(promised))
        .map(|(package, needed)| format!("{} {} needs {needed}", package.name, package.version))
        .collect();
    if !newer.is_empty() {
        bail!("Rust {promised} is promised, but {}", newer.join(", "));
    }
    println!(
        "   none of {} packages needs more than Rust {promised}",
        metadata.packages.len()
    );
    Ok(())
}

/// `1.92` and `1.92.0` are the same version.
fn version_numbers(version: &str) -> [u32; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

fn deny_command() -> Result<Command> {
    DENY.find_or_build(&Metadata::load()?.target_directory)
}

/// Returns the clone to use; `None` if none is named and there is none in cargo's home.
fn find_database() -> Result<Option<PathBuf>> {
    if let Some(named) = env::var_os(DATABASE_VARIABLE) {
        let named = PathBuf::from(named);
        if !named.join("crates").is_dir() {
            // Whoever names one wants it checked.
            bail!(
                "{DATABASE_VARIABLE}: {} is no clone of the advisory database: it has no folder `crates`",
                named.display()
            );
        }
        return Ok(Some(fs::canonicalize(named)?));
    }
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let clone = home.map(|home| home.join(DEFAULT_FOLDER).join(CLONE_NAME));
    Ok(clone.filter(|clone| clone.is_dir()))
}

/// Writes `deny.toml` with the place of the database, and returns the path of what is written.
fn write_config(directory: &TempDir, database: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(shell::workspace_root().join("deny.toml"))?;
    let mut config: toml::Table = toml::from_str(&text).context("deny.toml")?;
    let folder = directory.path().join("databases");
    fs::create_dir(&folder)?;
    link_folder(database, &folder.join(CLONE_NAME))?;
    let advisories = config
        .entry("advisories")
        .or_insert_with(|| toml::Table::new().into());
    if let Some(table) = advisories.as_table_mut() {
        let folder = folder.to_string_lossy().into_owned();
        table.insert("db-path".to_owned(), folder.into());
        table.insert("maximum-db-staleness".to_owned(), OLDEST_DATABASE.into());
    }
    let path = directory.path().join("deny.toml");
    fs::write(&path, toml::to_string(&config)?)?;
    Ok(path)
}

/// Makes the clone appear under the name that cargo-deny looks for.
#[cfg(unix)]
fn link_folder(from: &Path, to: &Path) -> Result<()> {
    Ok(std::os::unix::fs::symlink(from, to)?)
}

/// Makes the clone appear under the name that cargo-deny looks for.
#[cfg(not(unix))]
fn link_folder(from: &Path, to: &Path) -> Result<()> {
    bail!(
        "advisories are checked on Unix only: {} cannot be linked to {}",
        from.display(),
        to.display()
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The most packages that a program may take for compiling alone, ours included.
    const COMPILE_PACKAGES: usize = 40;

    #[test]
    fn compiling_alone_takes_few_packages() {
        let mut command = shell::cargo_command();
        command.args(["tree", "-p", "contexture-compile", "-e", "normal"]);
        command.args([
            "--prefix",
            "none",
            "--locked",
            "--no-dedupe",
            "--format",
            "{p}",
        ]);
        let output = command
            .current_dir(shell::workspace_root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let listed = String::from_utf8(output.stdout).unwrap();
        let packages: BTreeSet<&str> = listed.lines().filter(|line| !line.is_empty()).collect();
        let count = packages.len();
        assert!(
            (10..=COMPILE_PACKAGES).contains(&count),
            "{count}: {packages:#?}"
        );
    }

    #[test]
    fn versions_of_rust_are_compared_as_numbers() {
        assert!(version_numbers("1.100") > version_numbers("1.92"));
        assert_eq!(version_numbers("1.92"), version_numbers("1.92.0"));
        assert!(version_numbers("1.92.1") > version_numbers("1.92"));
    }
}
