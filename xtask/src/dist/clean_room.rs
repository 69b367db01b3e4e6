//! A place like a user's machine without developer tools, in which what was packed is installed and run.
//!
//! Programs see an empty home and a path with Node, npm and a shell on it, no compiler. No variable of this machine's
//! environment gets in, nor a configuration of pip or npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::clients;

/// Where Node and npm are on this machine.
#[derive(Debug)]
pub(crate) struct NodePrograms {
    node: PathBuf,
    /// `npm-cli.js` and `npx-cli.js` are in it.
    npm: PathBuf,
}

/// A clean place; removed when dropped.
#[derive(Debug)]
pub(crate) struct CleanRoom {
    folder: TempDir,
}

impl CleanRoom {
    /// Makes a place, with Node in it.
    ///
    /// # Errors
    /// If files or links cannot be made.
    pub(crate) fn create(node: &NodePrograms) -> Result<Self> {
        let room = Self {
            folder: tempfile::tempdir()?,
        };
        fs::create_dir(room.home())?;
        fs::create_dir(room.programs())?;
        // npm runs commands with a shell, and launchers are found by `env`.
        for name in ["sh", "env"] {
            link_program(&find_on_path(name)?, &room.programs().join(name))?;
        }
        link_program(&node.node, &room.programs().join("node"))?;
        for name in ["npm", "npx"] {
            let script = node.npm.join(format!("{name}-cli.js"));
            link_program(&script, &room.programs().join(name))?;
        }
        Ok(room)
    }

    /// The folder of all that is installed and run.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The only folder on the path.
    pub(crate) fn programs(&self) -> PathBuf {
        self.folder.path().join("programs")
    }

    /// Returns a command that sees nothing but this place, and starts in its home.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", self.programs())
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            // pip and npm would read the machine's files for their registries.
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("npm_config_globalconfig", "/dev/null")
            .current_dir(self.home());
        command
    }
}

impl NodePrograms {
    /// Finds Node: on the path, or among the clients that `cargo xtask test` installs.
    ///
    /// # Errors
    /// If there is none, or it has no npm.
    pub(crate) fn find() -> Result<Self> {
        let installed = std::env::var_os(clients::VARIABLE).map(PathBuf::from);
        let installed = installed.map(|home| home.join("python/bin/node"));
        let node = find_on_path("node")
            .ok()
            .or_else(|| installed.filter(|node| node.is_file()));
        let node = node.with_context(|| {
            format!(
                "Node is neither on the path nor in the folder that {} names",
                clients::VARIABLE
            )
        })?;
        // What is called `node` may be a script around it.
        let real = ask_program(Command::new(&node).args(["-p", "process.execPath"]))?;
        let node = PathBuf::from(real);
        let beside = node
            .parent()
            .map(|bin| bin.join("../lib/node_modules/npm/bin"));
        let linked = find_on_path("npm")
            .ok()
            .and_then(|npm| Some(npm.parent()?.to_owned()));
        let mut folders = [beside, linked].into_iter().flatten();
        let npm = folders.find(|folder| folder.join("npm-cli.js").is_file());
        Ok(Self {
            npm: npm.with_context(|| format!("{} has no npm", node.display()))?,
            node,
        })
    }
}

/// Returns the interpreter behind `python3`, which may be a script that chooses one.
///
/// # Errors
/// If there is none.
pub(crate) fn find_python() -> Result<PathBuf> {
    let asked =
        ask_program(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    Ok(PathBuf::from(asked))
}

/// Returns the file behind a program on the path, with links followed.
fn find_on_path(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        let program = folder.join(name);
        if program.is_file() {
            return Ok(fs::canonicalize(program)?);
        }
    }
    bail!("`{name}` is not on the path")
}

/// Makes a program appear in another folder.
#[cfg(unix)]
fn link_program(program: &Path, link: &Path) -> Result<()> {
    Ok(std::os::unix::fs::symlink(program, link)?)
}

/// Makes a program appear in another folder.
#[cfg(not(unix))]
fn link_program(program: &Path, link: &Path) -> Result<()> {
    bail!(
        "packages are checked on Unix only: {} cannot be linked to {}",
        program.display(),
        link.display()
    )
}

fn ask_program(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
