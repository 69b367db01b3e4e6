//! A real browser for the tests of the inspector: Chromium of the system, and what drives it.
//!
//! Playwright and axe are installed from npm into the build directory, in exact versions, with the npm of the test clients. Tests
//! find them in `CONTEXTURE_TEST_BROWSER`, and the browser in `CONTEXTURE_TEST_CHROMIUM`.
//!
//! Not here: what is looked at, in `crates/server/tests/browser`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::{clients, shell};

/// Where tests look for the packages: a directory with `node_modules` in it, or `skip`.
pub(crate) const VARIABLE: &str = "CONTEXTURE_TEST_BROWSER";
/// Where tests look for the browser: its program.
pub(crate) const CHROMIUM: &str = "CONTEXTURE_TEST_CHROMIUM";

const LISTS: &str = "crates/server/tests/browser";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];
/// Names of the browser's program, of several distributions.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The packages and the browser.
pub(crate) struct InstalledBrowser {
    pub(crate) packages: PathBuf,
    pub(crate) chromium: PathBuf,
}

/// Installs both if needed. `npm_home` is the directory of the test clients, whose npm is used.
///
/// # Errors
/// If a package or the browser cannot be installed.
pub(crate) fn ensure_installed(target: &Path, npm_home: &Path) -> Result<InstalledBrowser> {
    let chromium = match find_chromium() {
        Some(chromium) => chromium,
        None => install_chromium()?,
    };
    let lists = shell::workspace_root().join(LISTS);
    let lists = FILES.map(|file| lists.join(file));
    let packages = clients::install_once(&target.join("browser"), &lists, |home| {
        clients::install_node(&lists, home, npm_home)
    })?;
    Ok(InstalledBrowser { packages, chromium })
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
