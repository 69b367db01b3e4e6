//! `cargo xtask dist`: packs a release of the command for one platform, with its checksum.
//!
//! The archive contains the program, its licences and documents, and `deploy/`. Nothing is uploaded. Not here: versions
//! and tags.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::metadata::Metadata;
use crate::shell;

/// The package of the command.
const PACKAGE: &str = "contexture-cli";
const PROGRAM: &str = "contexture";

/// Files and folders that are packed with the program.
const PACKED_FILES: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "deploy",
];

/// `dist`'s options.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The platform, as rustc names it; its toolchain must be installed. Default: this machine's
    #[arg(long)]
    target: Option<String>,
    /// Features of the command: `otlp`
    #[arg(long)]
    features: Option<String>,
}

/// Builds with the versions of `Cargo.lock` and packs into `dist/` of the build directory.
///
/// # Errors
/// If the build fails, or `tar` is missing.
pub(crate) fn build_release(arguments: &Arguments) -> Result<()> {
    let metadata = Metadata::load()?;
    let directory = PathBuf::from(&metadata.target_directory);
    let mut build = shell::cargo_command();
    // A release uses the versions that were tested, so the lock file must not change here.
    build.args(["build", "--profile", "dist", "--locked", "-p", PACKAGE]);
    let mut built = directory.clone();
    if let Some(target) = &arguments.target {
        build.args(["--target", target]);
        // With `--target` cargo puts the output one folder deeper.
        built.push(target);
    }
    if let Some(features) = &arguments.features {
        build.args(["--features", features]);
    }
    let again = shell::command_line(&build);
    shell::run_step("build", &again, || shell::run_command(build))?;
    let target = arguments
        .target
        .clone()
        .map_or_else(query_host_target, Ok)?;
    // Of the target and not of this machine, which may be another platform.
    let windows = target.contains("windows");
    let program = if windows {
        format!("{PROGRAM}.exe")
    } else {
        PROGRAM.to_owned()
    };
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == PACKAGE);
    let version = package.map(|package| package.version.as_str());
    let version = version.with_context(|| format!("no package {PACKAGE}"))?;
    let name = format!("{PROGRAM}-{version}-{target}");
    // Packed from a folder with the archive's name, so that unpacking creates one folder and nothing else.
    let staged = tempfile::tempdir()?;
    let folder = staged.path().join(&name);
    fs::create_dir(&folder)?;
    fs::copy(built.join("dist").join(&program), folder.join(&program))?;
    for paper in PACKED_FILES {
        copy_recursively(&shell::workspace_root().join(paper), &folder.join(paper))?;
    }
    let out = directory.join("dist");
    fs::create_dir_all(&out)?;
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(staged.path())
        .arg(&name);
    shell::run_command(tar)?;
    let bytes = fs::read(&archive)?;
    let sum: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // The format of `sha256sum --check`: two spaces between hash and name.
    let line = format!("{sum}  {name}.tar.gz\n");
    fs::write(out.join(format!("{name}.tar.gz.sha256")), &line)?;
    println!("{}, {} bytes\n{line}", archive.display(), bytes.len());
    Ok(())
}

/// Returns this machine's platform.
fn query_host_target() -> Result<String> {
    let said = Command::new("rustc").arg("-vV").output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say its host")
}

/// Copies a file, or a folder with its content.
fn copy_recursively(from: &Path, to: &Path) -> Result<()> {
    if from.is_file() {
        fs::copy(from, to)?;
        return Ok(());
    }
    if !from.is_dir() {
        // A release without its licence must not be built.
        bail!("{} is not there", from.display());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_recursively(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
