//! The packages for npm: one with the program for each platform, and the one that people install.
//!
//! The main package has no program, only a launcher. It names those of all platforms as optional dependencies, of which
//! npm installs the one whose `os`, `cpu` and `libc` fit; so nothing is downloaded by an install script.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::dist::archive::{copy_recursively, pack_folder};
use crate::dist::platform::{Platform, RELEASED};
use crate::dist::{DESCRIPTION, KEYWORDS, LICENCES, NPM_NAME, PROGRAM, REPOSITORY, Release};
use crate::shell;

/// Owner of the platforms' packages at npm.
const SCOPE: &str = "@contexture-dev";
/// Where the packages' own texts are.
const SOURCES: &str = "packaging/npm";
/// The oldest Node that the launcher is tested with is newer; this is the oldest whose functions it uses.
const REQUIRED_NODE: &str = ">=18";

/// The packages of one release.
#[derive(Debug)]
pub(crate) struct NpmPackages {
    /// With the program of one platform.
    pub(crate) platform: PathBuf,
    /// With the launcher. The same on every platform.
    pub(crate) main: PathBuf,
}

/// Packs both packages into the release's folder.
///
/// # Errors
/// If a file cannot be read or written, or `tar` is missing.
pub(crate) fn pack_npm(release: &Release, platform: &Platform) -> Result<NpmPackages> {
    Ok(NpmPackages {
        platform: pack_platform_package(release, platform)?,
        main: pack_main_package(release)?,
    })
}

/// Returns the name of a platform's package.
pub(crate) fn platform_package_name(platform: &Platform) -> String {
    format!("{SCOPE}/{}", platform.node_name())
}

fn pack_platform_package(release: &Release, platform: &Platform) -> Result<PathBuf> {
    let name = platform_package_name(platform);
    let description = format!("The program of Contexture for {}", platform.node_name());
    let mut manifest = describe_package(release, &name, &description);
    manifest.insert("os".to_owned(), json!([platform.node_system]));
    manifest.insert("cpu".to_owned(), json!([platform.node_processor]));
    if let Some(libc) = platform.node_libc() {
        manifest.insert("libc".to_owned(), json!([libc]));
    }
    // A program cannot be run from within yarn's archives.
    manifest.insert("preferUnplugged".to_owned(), json!(true));
    let staged = tempfile::tempdir()?;
    let folder = stage_package(staged.path(), manifest, "platform-README.md")?;
    fs::create_dir(folder.join("bin"))?;
    fs::copy(
        &release.program,
        folder.join("bin").join(release.program_name()),
    )?;
    if let Some(bill) = &release.bill {
        fs::copy(bill, folder.join(format!("{PROGRAM}.cdx.json")))?;
    }
    let file = format!(
        "{PROGRAM}-npm-{}-{}.tgz",
        release.version,
        platform.node_name()
    );
    pack_folder(&folder, &release.out.join(file), release.compression)
}

fn pack_main_package(release: &Release) -> Result<PathBuf> {
    let mut manifest = describe_package(release, NPM_NAME, DESCRIPTION);
    manifest.insert("bin".to_owned(), json!({ PROGRAM: "bin/contexture.js" }));
    manifest.insert("engines".to_owned(), json!({ "node": REQUIRED_NODE }));
    manifest.insert("keywords".to_owned(), json!(KEYWORDS));
    let platforms: Map<String, Value> = RELEASED
        .iter()
        .filter_map(|target| Platform::find(target))
        // The very version: launcher and program are one release.
        .map(|platform| (platform_package_name(platform), json!(release.version)))
        .collect();
    manifest.insert("optionalDependencies".to_owned(), platforms.into());
    let staged = tempfile::tempdir()?;
    let folder = stage_package(staged.path(), manifest, "README.md")?;
    fs::create_dir(folder.join("bin"))?;
    let launcher = shell::workspace_root().join(SOURCES).join("launcher.js");
    fs::copy(launcher, folder.join("bin/contexture.js"))?;
    let file = format!("{PROGRAM}-npm-{}.tgz", release.version);
    pack_folder(&folder, &release.out.join(file), release.compression)
}

/// What the manifests of both packages say.
fn describe_package(release: &Release, name: &str, description: &str) -> Map<String, Value> {
    let said = json!({
        "name": name,
        "version": release.version,
        "description": description,
        "license": "MIT OR Apache-2.0",
        "author": "The Contexture developers",
        "homepage": REPOSITORY,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
        "bugs": format!("{REPOSITORY}/issues"),
        // Packages in a scope are private unless they say otherwise.
        "publishConfig": { "access": "public" },
    });
    said.as_object().cloned().unwrap_or_default()
}

/// Makes the folder of a package, which has the name that npm wants in its archives, with manifest, README and licences.
fn stage_package(staged: &Path, manifest: Map<String, Value>, readme: &str) -> Result<PathBuf> {
    let folder = staged.join("package");
    fs::create_dir(&folder)?;
    let manifest = serde_json::to_string_pretty(&manifest)? + "\n";
    fs::write(folder.join("package.json"), manifest)?;
    let root = shell::workspace_root();
    let readme = root.join(SOURCES).join(readme);
    fs::copy(&readme, folder.join("README.md"))
        .with_context(|| format!("reading {}", readme.display()))?;
    for licence in LICENCES {
        copy_recursively(&root.join(licence), &folder.join(licence))?;
    }
    Ok(folder)
}
