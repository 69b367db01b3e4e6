//! A real browser for the tests of the inspector: Chromium of the system, and what drives it.
//!
//! Playwright and axe are installed from npm into the build directory, in exact versions, with the npm of the test clients. Tests
//! find them in `CONTEXTURE_TEST_BROWSER`, and the browser in `CONTEXTURE_TEST_CHROMIUM`.
//!
//! Not here: what is looked at, in `crates/server/tests/browser`.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell;

/// Where tests look for the packages: a directory with `node_modules` in it, or `skip`.
pub(crate) const VARIABLE: &str = "CONTEXTURE_TEST_BROWSER";
/// Where tests look for the browser: its program.
pub(crate) const CHROMIUM: &str = "CONTEXTURE_TEST_CHROMIUM";

const LISTS: &str = "crates/server/tests/browser";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];
/// Marker file of a complete installation.
const COMPLETE_MARKER: &str = "whole";
/// Names of the browser's program, of several distributions.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The packages and the browser.
pub(crate) struct InstalledBrowser {
    pub(crate) packages: PathBuf,
    pub(crate) chromium: PathBuf,
}

/// Installs both if needed. `clients` is the directory of the test clients, whose npm is used.
///
/// # Errors
/// If a package or the browser cannot be installed.
pub(crate) fn ensure_installed(target: &Path, clients: &Path) -> Result<InstalledBrowser> {
    let chromium = match find_chromium() {
        Some(chromium) => chromium,
        None => install_chromium()?,
    };
    let lists = shell::workspace_root().join(LISTS);
    let mut hasher = DefaultHasher::new();
    for file in FILES {
        let file = lists.join(file);
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        text.hash(&mut hasher);
    }
    let all = target.join("browser");
    let home = all.join(format!("{:016x}", hasher.finish()));
    if !home.join(COMPLETE_MARKER).is_file() {
        println!(
            "   installing what drives the browser into {}",
            home.display()
        );
        // Removes installations of older lists, and incomplete ones.
        if all.is_dir() {
            fs::remove_dir_all(&all)?;
        }
        fs::create_dir_all(&home)?;
        install_packages(&lists, &home, &clients.join("python/bin"))?;
        // Last: an interrupted installation has no marker and is not taken for a complete one.
        fs::write(home.join(COMPLETE_MARKER), "")?;
    }
    Ok(InstalledBrowser {
        packages: home,
        chromium,
    })
}

fn install_packages(lists: &Path, home: &Path, programs: &Path) -> Result<()> {
    for file in FILES {
        fs::copy(lists.join(file), home.join(file))?;
    }
    let mut npm = Command::new(programs.join("npm"));
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--prefix")
        .arg(home);
    // The scripts of npm look for Node on the path.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    npm.env("PATH", std::env::join_paths(paths)?);
    shell::run_command(npm)
}

fn find_chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path)
        .flat_map(|folder| PROGRAMS.map(|program| folder.join(program)));
    places.find(|place| place.is_file())
}

fn install_chromium() -> Result<PathBuf> {
    let by_hand = format!(
        "the tests of the inspector need a browser: install Chromium (Debian: apt-get install chromium), or leave them out \
         with {VARIABLE}=skip"
    );
    shell::apt_install("chromium", &by_hand)?;
    find_chromium().context(by_hand)
}
