//! A registry on the loopback, as PyPI and npm are asked: `pip install contexture` and `npm install contexture` are tried
//! by their names, before anything is published.
//!
//! Python's web server hands out files, which is all that both protocols need for reading.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::dist::npm::platform_package_name;
use crate::dist::{NPM_NAME, PYPI_NAME, Packages};

/// A running registry with one version of each package; ends when dropped.
#[derive(Debug)]
pub(crate) struct LocalRegistry {
    folder: TempDir,
    server: Child,
    address: String,
}

impl LocalRegistry {
    /// Starts a registry with these packages.
    ///
    /// # Errors
    /// If the web server cannot be started, or a file cannot be written.
    pub(crate) fn start(python: &Path, packages: &Packages, version: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut server = Command::new(python)
            .args([
                "-u",
                "-m",
                "http.server",
                "0",
                "--bind",
                "127.0.0.1",
                "--directory",
            ])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let said = server.stdout.take().context("no output")?;
        // Says its port once it listens.
        BufReader::new(said).read_line(&mut line)?;
        let mut words = line.split_whitespace().skip_while(|word| *word != "port");
        let port = words.nth(1).map(str::to_owned);
        let registry = Self {
            folder,
            server,
            address: format!("http://127.0.0.1:{}", port.unwrap_or_default()),
        };
        registry.add_wheel(&packages.wheel)?;
        registry.add_npm_package(NPM_NAME, version, &packages.npm.main)?;
        let name = platform_package_name(packages.platform);
        registry.add_npm_package(&name, version, &packages.npm.platform)?;
        Ok(registry)
    }

    /// The address for pip's `--index-url`.
    pub(crate) fn python_index(&self) -> String {
        format!("{}/simple/", self.address)
    }

    /// The address for npm's `--registry`.
    pub(crate) fn npm_address(&self) -> String {
        format!("{}/npm/", self.address)
    }

    fn add_wheel(&self, wheel: &Path) -> Result<()> {
        let folder = self.make_folder(&format!("simple/{PYPI_NAME}"))?;
        let name = copy_into(wheel, &folder)?;
        let page = format!("<!DOCTYPE html><a href=\"{name}\">{name}</a>");
        Ok(fs::write(folder.join("index.html"), page)?)
    }

    fn add_npm_package(&self, name: &str, version: &str, package: &Path) -> Result<()> {
        let files = self.make_folder("files")?;
        let file = copy_into(package, &files)?;
        // A registry answers with the manifest of each version and where its archive is.
        let mut manifest = read_manifest(package)?;
        let archive = json!({ "tarball": format!("{}/files/{file}", self.address) });
        manifest.insert("dist".to_owned(), archive);
        let answer = json!({
            "name": name,
            "dist-tags": { "latest": version },
            "versions": { version: manifest },
        });
        let path = self.folder.path().join("npm").join(name);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        Ok(fs::write(path, answer.to_string())?)
    }

    fn make_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

impl Drop for LocalRegistry {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Copies a file into a folder and returns its name.
fn copy_into(file: &Path, folder: &Path) -> Result<String> {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    fs::copy(file, folder.join(&name))?;
    Ok(name)
}

/// The `package.json` in an archive.
fn read_manifest(package: &Path) -> Result<Map<String, Value>> {
    let mut tar = Command::new("tar");
    tar.arg("-xzOf").arg(package).arg("package/package.json");
    let output = tar.output()?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("{}", package.display()))
}
