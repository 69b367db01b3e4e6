//! Output of `cargo metadata`: the packages, their targets and their dependencies.
//!
//! Only the fields that some task reads are parsed. Not here: rules about them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::shell;

/// The answer of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: String,
}

/// A package of this workspace.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// The oldest Rust that it says it needs.
    #[serde(default)]
    pub(crate) rust_version: Option<String>,
    #[serde(default)]
    pub(crate) manifest_path: String,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) targets: Vec<CargoTarget>,
}

/// A line under `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    #[serde(default)]
    pub(crate) kind: Option<String>,
}

/// A library, binary, test or benchmark.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CargoTarget {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: Vec<String>,
}

impl Metadata {
    /// Runs `cargo metadata` for the packages of this workspace.
    ///
    /// # Errors
    /// If cargo cannot be run, fails (with its own message), or prints output that cannot be parsed.
    pub(crate) fn load() -> Result<Self> {
        let mut command = shell::cargo_command();
        command.args(["metadata", "--format-version", "1"]);
        // The workspace's own manifests need no network and no version resolution.
        command.args(["--no-deps", "--offline"]);
        Self::from_command(command.current_dir(shell::workspace_root()))
    }

    /// Runs this form of `cargo metadata`.
    ///
    /// # Errors
    /// As [`Metadata::load`].
    pub(crate) fn from_command(command: &mut Command) -> Result<Self> {
        let output = command
            .output()
            .context("`cargo metadata` could not be started")?;
        if !output.status.success() {
            bail!(
                "`cargo metadata` failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        // Fields that are not listed here are ignored, so cargo may add some.
        serde_json::from_slice(&output.stdout)
            .context("`cargo metadata` answered in an unknown form")
    }
}

impl Package {
    /// Its directory relative to the workspace root, `crates/ir` say.
    pub(crate) fn directory(&self) -> String {
        let manifest = Path::new(&self.manifest_path);
        let directory = manifest.parent().unwrap_or(manifest);
        let relative = directory
            .strip_prefix(shell::workspace_root())
            .unwrap_or(directory);
        // Findings and tables write paths the same way on every platform.
        relative.to_string_lossy().replace('\\', "/")
    }

    /// Whether the package has a target of this kind (`lib`, `bin`, `bench`, …).
    pub(crate) fn has_target_kind(&self, kind: &str) -> bool {
        self.targets
            .iter()
            .any(|target| target.kind.iter().any(|k| k == kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_lists_this_package() {
        let metadata = Metadata::load().unwrap();
        let xtask = metadata
            .packages
            .iter()
            .find(|package| package.name == "xtask")
            .unwrap();
        assert_eq!(xtask.directory(), "xtask");
        assert!(xtask.has_target_kind("bin") && !xtask.has_target_kind("lib"));
    }
}
