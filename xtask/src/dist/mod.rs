//! `cargo xtask dist`: packs a release of the command for one platform, in the forms that people install.
//!
//! From one program come an archive (with its licences and documents, and `deploy/`), a wheel for Python, which has the engine as
//! a module too, and packages for npm, each beside its SHA-256, and bills of materials (SBOM, CycloneDX 1.5 as JSON) with the
//! version, licence and checksum of every crate of the program and of the module. With `--check` all of them are installed and run where there is no compiler.
//! Nothing is uploaded: docs/releasing.md. Not here: versions and tags.

mod answers;
mod archive;
mod bill;
mod clean_room;
mod install;
mod npm;
mod platform;
mod registry;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::dist::npm::NpmPackages;
use crate::dist::platform::Platform;
use crate::metadata::Metadata;
use crate::shell;

/// The package of the command.
const PACKAGE: &str = "contexture-cli";
/// The package of the module for Python.
const NATIVE_PACKAGE: &str = "contexture-python";
/// Name of its library.
const NATIVE_LIBRARY: &str = "contexture_native";
/// Name of the command.
const PROGRAM: &str = "contexture";
/// Name of its package at PyPI. Whoever publishes must own it: docs/releasing.md.
const PYPI_NAME: &str = "contexture";
/// Name of its package at npm; the same holds.
const NPM_NAME: &str = "contexture";
/// What the registries say of it.
const DESCRIPTION: &str =
    "A context engine for LLM agents: keeps what happened, compiles what the model sees";
const KEYWORDS: [&str; 6] = [
    "llm",
    "agent",
    "context",
    "prompt-caching",
    "proxy",
    "openai",
];
const REPOSITORY: &str = "https://github.com/contexture-dev/contexture";
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// `dist`'s options.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The platform, as rustc names it; its toolchain must be installed. Default: this machine's
    #[arg(long)]
    target: Option<String>,
    /// Features of the command: `otlp`
    #[arg(long)]
    features: Option<String>,
    /// Packs this program, which was built before, instead of building one; the module for Python lies beside it
    #[arg(long)]
    program: Option<PathBuf>,
    /// Then installs and runs what was packed, where there is no compiler; needs Python and Node
    #[arg(long)]
    check: bool,
}

/// How hard archives are compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compression {
    /// As small as can be: for everyone who downloads it.
    Best,
    /// Quickly: for a test, whose program is large.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests are in a hurry"))]
    Fast,
}

/// A program to be packed, and what is said of it.
#[derive(Debug)]
pub(crate) struct Release {
    /// As cargo writes it.
    version: String,
    /// The platform, as rustc names it.
    target: String,
    program: PathBuf,
    /// The program's bill of materials, and the module's; none in tests.
    bill: Option<PathBuf>,
    native_bill: Option<PathBuf>,
    /// Folder of what is packed.
    out: PathBuf,
    compression: Compression,
}

/// What was packed.
#[derive(Debug)]
pub(crate) struct Artefacts {
    archive: PathBuf,
    /// None for platforms that the registries' packages are not made for.
    packages: Option<Packages>,
}

/// The packages of one platform.
#[derive(Debug)]
pub(crate) struct Packages {
    platform: &'static Platform,
    wheel: PathBuf,
    npm: NpmPackages,
}

impl Release {
    /// Returns the name that the archive and the bill begin with.
    fn stem(&self) -> String {
        format!("{PROGRAM}-{}-{}", self.version, self.target)
    }

    /// Returns the program's file name: on the target, which may be another platform than this machine.
    fn program_name(&self) -> String {
        let suffix = if self.target.contains("windows") {
            ".exe"
        } else {
            ""
        };
        format!("{PROGRAM}{suffix}")
    }

    /// Returns the module for Python, which lies beside the program.
    fn native(&self) -> PathBuf {
        self.program.with_file_name(self.native_name())
    }

    /// Returns the file name that cargo gives the module for Python on the target.
    fn native_name(&self) -> String {
        if self.target.contains("windows") {
            format!("{NATIVE_LIBRARY}.dll")
        } else if self.target.contains("apple") {
            format!("lib{NATIVE_LIBRARY}.dylib")
        } else {
            format!("lib{NATIVE_LIBRARY}.so")
        }
    }

    /// Packs every form of the release, with checksums.
    fn pack_all(&self) -> Result<Artefacts> {
        let archive = archive::pack_archive(self)?;
        archive::write_checksum(&archive)?;
        let Some(platform) = Platform::find(&self.target) else {
            println!("   no packages for {}, only the archive", self.target);
            return Ok(Artefacts {
                archive,
                packages: None,
            });
        };
        let wheel = wheel::pack_wheel(self, platform)?;
        let npm = npm::pack_npm(self, platform)?;
        for file in [&wheel, &npm.platform, &npm.main] {
            archive::write_checksum(file)?;
        }
        let packages = Some(Packages {
            platform,
            wheel,
            npm,
        });
        Ok(Artefacts { archive, packages })
    }
}

/// Builds with the versions of `Cargo.lock`, packs into `dist/` of the build directory, and checks it if asked to.
///
/// # Errors
/// If the build fails, a tool is missing, or what was packed cannot be installed or does not run.
pub(crate) fn build_release(arguments: &Arguments) -> Result<()> {
    let metadata = Metadata::load()?;
    let directory = PathBuf::from(&metadata.target_directory);
    let target = arguments
        .target
        .clone()
        .map_or_else(query_host_target, Ok)?;
    let out = directory.join("dist");
    fs::create_dir_all(&out)?;
    let mut release = Release {
        version: find_version(&metadata)?,
        target,
        program: PathBuf::new(),
        bill: None,
        native_bill: None,
        out,
        compression: Compression::Best,
    };
    release.program = match &arguments.program {
        Some(program) => {
            fs::canonicalize(program).with_context(|| format!("{}", program.display()))?
        }
        None => build_program(arguments, &directory)?.join(release.program_name()),
    };
    let bill = release.out.join(format!("{}.cdx.json", release.stem()));
    let native_bill = format!(
        "{NATIVE_PACKAGE}-{}-{}.cdx.json",
        release.version, release.target
    );
    let native_bill = release.out.join(native_bill);
    let bills = [(PACKAGE, &*bill), (NATIVE_PACKAGE, &*native_bill)];
    bill::write_bills(&metadata, arguments, &release.target, bills)?;
    archive::write_checksum(&bill)?;
    release.bill = Some(bill);
    release.native_bill = Some(native_bill);
    let artefacts = release.pack_all()?;
    if arguments.check {
        let again = "cargo xtask dist --check --program PROGRAM";
        shell::run_step("check", again, || {
            install::check_artefacts(&release, &artefacts)
        })?;
    }
    Ok(())
}

/// Builds the command and the module for Python, and returns the folder they are in.
fn build_program(arguments: &Arguments, directory: &Path) -> Result<PathBuf> {
    let mut build = shell::cargo_command();
    // A release uses the versions that were tested, so the lock file must not change here.
    build.args(["build", "--profile", "dist", "--locked"]);
    build.args(["-p", PACKAGE, "-p", NATIVE_PACKAGE]);
    let mut built = directory.to_owned();
    if let Some(target) = &arguments.target {
        build.args(["--target", target]);
        // With `--target` cargo puts the output one folder deeper.
        built.push(target);
    }
    if let Some(features) = &arguments.features {
        // Of the command: with two packages, cargo wants to know whose they are.
        let features: Vec<String> = features
            .split(',')
            .map(|name| format!("{PACKAGE}/{name}"))
            .collect();
        build.args(["--features", &features.join(",")]);
    }
    let again = shell::command_line(&build);
    shell::run_step("build", &again, || shell::run_command(build))?;
    Ok(built.join("dist"))
}

fn find_version(metadata: &Metadata) -> Result<String> {
    let mut packages = metadata.packages.iter();
    let package = packages.find(|package| package.name == PACKAGE);
    let package = package.with_context(|| format!("no package {PACKAGE}"))?;
    Ok(package.version.clone())
}

/// Returns this machine's platform.
fn query_host_target() -> Result<String> {
    let said = Command::new("rustc").arg("-vV").output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say its host")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients;

    /// The command that was built with these tests; of the profile that they were built with.
    fn find_test_program() -> Option<PathBuf> {
        let tests = std::env::current_exe().ok()?;
        let program = tests.parent()?.parent()?.join(PROGRAM);
        program.is_file().then_some(program)
    }

    /// The module that was built for the tests of its package.
    fn find_test_module(release: &Release) -> Option<PathBuf> {
        let tests = std::env::current_exe().ok()?;
        let module = tests.parent()?.join(release.native_name());
        module.is_file().then_some(module)
    }

    /// A copy without symbols, a fifth of the size: packing it should not be what takes the time.
    fn strip_program(program: &Path, folder: &Path) -> PathBuf {
        let stripped = folder.join(program.file_name().unwrap());
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&stripped).arg(program);
        shell::run_command(strip).unwrap();
        stripped
    }

    #[cfg(unix)]
    #[test]
    fn packages_install_and_run_without_a_compiler() {
        let Some(program) = find_test_program() else {
            // Tests of the whole workspace build it; tests of this package alone do not.
            println!("NOT TESTED: there is no program; `cargo build -p {PACKAGE}` makes it");
            return;
        };
        if std::env::var_os(clients::VARIABLE).is_some_and(|clients| clients == "skip") {
            println!("NOT TESTED: {} says so", clients::VARIABLE);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let release = Release {
            version: find_version(&Metadata::load().unwrap()).unwrap(),
            target: query_host_target().unwrap(),
            program: strip_program(&program, folder.path()),
            bill: None,
            native_bill: None,
            out: folder.path().to_owned(),
            compression: Compression::Fast,
        };
        let Some(module) = find_test_module(&release) else {
            println!(
                "NOT TESTED: there is no module; tests of the package {NATIVE_PACKAGE} make it"
            );
            return;
        };
        strip_program(&module, folder.path());
        let artefacts = release.pack_all().unwrap();
        install::check_artefacts(&release, &artefacts).unwrap();
    }
}
