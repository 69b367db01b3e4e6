//! Other people's clients of model providers, which the server's tests put in front of its proxy.
//!
//! Exact versions, from PyPI and npm, into the build directory: Node is among the Python packages, so Python is all that
//! must be there. What is installed stays until the lists change. Tests find it in `CONTEXTURE_TEST_CLIENTS`; where that
//! is set already, nothing is installed.
//!
//! Not here: what the clients do, which stands in `crates/server/tests/clients`.

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
/// Written when everything is there.
const COMPLETE_MARKER: &str = "whole";

/// Installs the clients where they are not, and says where they are.
///
/// # Errors
/// When Python is missing, or a package cannot be installed.
pub(crate) fn ensure_installed(target: &Path) -> Result<PathBuf> {
    let lists = shell::workspace_root().join(LISTS);
    let mut hasher = DefaultHasher::new();
    for list in NODE.iter().chain([&PYTHON]) {
        let list = lists.join(list);
        let text = fs::read(&list).with_context(|| format!("reading {}", list.display()))?;
        // The name of the folder is a hash of the lists: a changed list is installed anew. This
        // hasher may differ between versions of Rust; then they are installed once more.
        text.hash(&mut hasher);
    }
    let all = target.join("clients");
    let home = all.join(format!("{:016x}", hasher.finish()));
    if home.join(COMPLETE_MARKER).is_file() {
        return Ok(home);
    }
    println!("   installing clients into {}", home.display());
    // Those of older lists, and what was begun and not finished.
    if all.is_dir() {
        fs::remove_dir_all(&all)?;
    }
    fs::create_dir_all(&home)?;
    install_clients(&lists, &home)?;
    // Last of all: an installation that was cut off has no marker and is not taken for a whole one.
    fs::write(home.join(COMPLETE_MARKER), "")?;
    Ok(home)
}

fn install_clients(lists: &Path, home: &Path) -> Result<()> {
    let environment = home.join("python");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&environment);
    shell::run_command(venv)?;
    let programs = environment.join("bin");
    // The environment's own Python, whose packages go nowhere else. The list names every package,
    // so pip need not look for more.
    let mut pip = Command::new(programs.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "-r"])
        .arg(lists.join(PYTHON));
    shell::run_command(pip)?;
    for list in NODE {
        let name = Path::new(list).file_name().unwrap_or_default();
        fs::copy(lists.join(list), home.join(name))?;
    }
    let mut npm = Command::new(programs.join("npm"));
    // `ci` takes exactly what the lock file says; packages run no scripts of their own while they
    // are installed.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--prefix")
        .arg(home);
    // Its scripts look for Node on the path.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    npm.env("PATH", std::env::join_paths(paths)?);
    shell::run_command(npm)
}
