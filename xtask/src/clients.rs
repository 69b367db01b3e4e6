//! Packages of other people that tests need: clients of model providers, which the server's tests run against its proxy, and
//! what the tests of the Python package run under and with.
//!
//! Exact versions from PyPI and npm are installed into the build directory. Node is one of the Python packages, so only
//! Python is required. An installation is reused until its lists change. Tests find them in `CONTEXTURE_TEST_CLIENTS` and
//! `CONTEXTURE_TEST_VENV`; if one is set, nothing is installed for it.
//!
//! Not here: the test programs, in `crates/server/tests/clients` and `bindings/python/tests/python`.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell;

/// Where tests look for the clients: a directory with `python` and `node_modules` in it, or `skip`.
pub(crate) const VARIABLE: &str = "CONTEXTURE_TEST_CLIENTS";

/// Where tests of the Python package look for a virtual environment, or `skip`.
pub(crate) const PYTHON_VARIABLE: &str = "CONTEXTURE_TEST_VENV";

const LISTS: &str = "crates/server/tests/clients";
const PYTHON: &str = "python/requirements.txt";
const NODE: [&str; 2] = ["node/package.json", "node/package-lock.json"];
const PYTHON_LISTS: &str = "bindings/python/tests/python";
const REQUIREMENTS: &str = "requirements.txt";
/// Marker file of a complete installation.
const COMPLETE_MARKER: &str = "whole";

/// Installs the clients if needed, and returns their directory.
///
/// # Errors
/// If Python is missing, or a package cannot be installed.
pub(crate) fn ensure_installed(target: &Path) -> Result<PathBuf> {
    let lists = shell::workspace_root().join(LISTS);
    let names = [NODE[0], NODE[1], PYTHON].map(|list| lists.join(list));
    install_once(&target.join("clients"), &names, |home| {
        install_clients(&lists, home)
    })
}

/// Installs what the tests of the Python package need, if needed, and returns the virtual environment.
///
/// # Errors
/// If Python is missing, or a package cannot be installed.
pub(crate) fn ensure_python_installed(target: &Path) -> Result<PathBuf> {
    let list = shell::workspace_root()
        .join(PYTHON_LISTS)
        .join(REQUIREMENTS);
    let names = [list];
    install_once(&target.join("python"), &names, |home| {
        install_python(&names[0], home)
    })
}

/// Installs into a folder of `all` whose name is a hash of the lists, unless that was done before, and returns it.
pub(crate) fn install_once(
    all: &Path,
    lists: &[PathBuf],
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    for list in lists {
        let text = fs::read(list).with_context(|| format!("reading {}", list.display()))?;
        // A changed list is installed anew. The hasher may differ between versions of Rust, which only causes another
        // installation.
        text.hash(&mut hasher);
    }
    let home = all.join(format!("{:016x}", hasher.finish()));
    if home.join(COMPLETE_MARKER).is_file() {
        return Ok(home);
    }
    println!("   installing packages into {}", home.display());
    // Removes installations of older lists, and incomplete ones.
    if all.is_dir() {
        fs::remove_dir_all(all)?;
    }
    fs::create_dir_all(&home)?;
    install(&home)?;
    // Last: an interrupted installation has no marker and is not taken for a complete one.
    fs::write(home.join(COMPLETE_MARKER), "")?;
    Ok(home)
}

/// Creates a virtual environment, whose packages are installed nowhere else, with the packages of a list.
fn install_python(list: &Path, environment: &Path) -> Result<()> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(environment);
    shell::run_command(venv)?;
    let mut pip = Command::new(environment.join("bin/python"));
    // The list names every package, so pip need not resolve dependencies.
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "-r"])
        .arg(list);
    shell::run_command(pip)
}

fn install_clients(lists: &Path, home: &Path) -> Result<()> {
    let environment = home.join("python");
    install_python(&lists.join(PYTHON), &environment)?;
    install_node(&NODE.map(|list| lists.join(list)), home, home)
}

/// Installs the packages of these lists below `home`, with the npm of the clients.
pub(crate) fn install_node(lists: &[PathBuf], home: &Path, clients: &Path) -> Result<()> {
    for list in lists {
        fs::copy(list, home.join(list.file_name().unwrap_or_default()))?;
    }
    let programs = clients.join("python/bin");
    let mut npm = Command::new(programs.join("npm"));
    // `ci` installs exactly what the lock file says; install scripts of packages are disabled.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--prefix")
        .arg(home);
    // The scripts of npm look for Node on the path.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    npm.env("PATH", std::env::join_paths(paths)?);
    shell::run_command(npm)
}
