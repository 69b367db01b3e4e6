//! `cargo xtask dist`: packs a release of the command for one platform, with its checksum and its bill of materials.
//!
//! The archive contains the program, its licences and documents, and `deploy/`. The bill of materials (SBOM, CycloneDX
//! 1.5 as JSON) lists every crate of the program with its version, licence and checksum. Nothing is uploaded. Not here:
//! versions and tags.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::metadata::Metadata;
use crate::shell;
use crate::tools::CYCLONEDX;

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
    pack_archive(staged.path(), &name, &out)?;
    write_bill(
        &metadata,
        arguments,
        &target,
        &out.join(format!("{name}.cdx.json")),
    )
}

/// Packs the folder of this name into an archive in `out`, beside a file with its checksum.
fn pack_archive(staged: &Path, name: &str, out: &Path) -> Result<()> {
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive);
    tar.arg("-C").arg(staged).arg(name);
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

/// Writes the bill of materials of the command: its crates for this platform and these features.
fn write_bill(metadata: &Metadata, arguments: &Arguments, target: &str, bill: &Path) -> Result<()> {
    // A name that nobody else gives a file: the tool writes one beside every manifest of the workspace.
    let name = format!("contexture-bill-{}", std::process::id());
    let file = format!("{name}.json");
    let mut command = CYCLONEDX.find_or_build(&metadata.target_directory)?;
    command.args(["--format", "json", "--spec-version", "1.5", "--quiet"]);
    command.args(["--target", target, "--override-filename", &name]);
    if let Some(features) = &arguments.features {
        command.args(["--features", features]);
    }
    let manifest = shell::workspace_root().join("crates/cli/Cargo.toml");
    command.arg("--manifest-path").arg(manifest);
    let again = shell::command_line(&command);
    let written = shell::run_step("bill of materials", &again, || shell::run_command(command));
    let mut is_copied = false;
    for package in &metadata.packages {
        let beside = shell::workspace_root()
            .join(package.directory())
            .join(&file);
        if !beside.is_file() {
            continue;
        }
        if package.name == PACKAGE {
            // Where this machine has the crates is nobody's business.
            let root = format!("{}/", shell::workspace_root().display());
            fs::write(bill, fs::read_to_string(&beside)?.replace(&root, ""))?;
            is_copied = true;
        }
        // Those of the other crates say nothing about the command.
        fs::remove_file(&beside)?;
    }
    written?;
    if !is_copied {
        bail!("cargo-cyclonedx wrote no bill for {PACKAGE}");
    }
    println!("{}", bill.display());
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
