//! Third-party clients of model providers, which the server's tests run against its proxy.
//!
//! Exact versions from PyPI and npm are installed into the build directory. Node is one of the Python packages, so only
//! Python is required. An installation is reused until the lists change. Tests find it in `CONTEXTURE_TEST_CLIENTS`; if
//! that is set, nothing is installed.
//!
//! Not here: the clients' test programs, in `crates/server/tests/clients`.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell;

/// Where tests look for the clients: a directory with `python` and `node_modules` in it, or `skip`.
pub(crate) const VARIABLE: &str = "CONTEXTURE_TEST_CLIENTS";

const LISTS: &str = "crates/server/tests/clients";
const PYTHON: &str = "python/requirements.txt";
const NODE: [&str; 2] = ["node/package.json", "node/package-lock.json"];
/// Folder of installations in the build directory.
const FOLDER: &str = "clients";
/// Marker file of a complete installation.
const COMPLETE_MARKER: &str = "whole";

/// Installs the clients if needed, and returns their directory.
///
/// # Errors
/// If Python is missing, or a package cannot be installed.
pub(crate) fn ensure_installed(target: &Path) -> Result<PathBuf> {
    let home = home_of_lists(target)?;
    if is_complete(&home) {
        return Ok(home);
    }
    println!("   installing clients into {}", home.display());
    // Removes installations of older lists, and incomplete ones.
    let all = target.join(FOLDER);
    if all.is_dir() {
        fs::remove_dir_all(&all)?;
    }
    fs::create_dir_all(&home)?;
    install_clients(&shell::workspace_root().join(LISTS), &home)?;
    // Last: an interrupted installation has no marker and is not taken for a complete one.
    fs::write(home.join(COMPLETE_MARKER), "")?;
    Ok(home)
}

/// Whether [`ensure_installed`] has nothing to do.
pub(crate) fn are_installed(target: &Path) -> bool {
    home_of_lists(target).is_ok_and(|home| is_complete(&home))
}

fn is_complete(home: &Path) -> bool {
    home.join(COMPLETE_MARKER).is_file()
}

/// Returns the directory of the clients that the lists name.
fn home_of_lists(target: &Path) -> Result<PathBuf> {
    let lists = shell::workspace_root().join(LISTS);
    let mut hasher = DefaultHasher::new();
    for list in NODE.iter().chain([&PYTHON]) {
        let list = lists.join(list);
        let text = fs::read(&list).with_context(|| format!("reading {}", list.display()))?;
        // The folder's name is a hash of the lists, so that a changed list is installed anew. The hasher may differ
        // between versions of Rust, which only causes another installation.
        text.hash(&mut hasher);
    }
    let name = format!("{:016x}", hasher.finish());
    Ok(target.join(FOLDER).join(name))
}

fn install_clients(lists: &Path, home: &Path) -> Result<()> {
    let environment = home.join("python");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&environment);
    shell::run_command(venv)?;
    let programs = environment.join("bin");
    // A virtual environment, whose packages are installed nowhere else. The list names every package, so pip need not
    // resolve dependencies.
    let mut pip = Command::new(programs.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "-r"])
        .arg(lists.join(PYTHON));
    shell::run_command(pip)?;
    for list in NODE {
        let name = Path::new(list).file_name().unwrap_or_default();
        fs::copy(lists.join(list), home.join(name))?;
    }
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
