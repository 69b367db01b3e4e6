//! Where the clients are.

use std::path::{Path, PathBuf};

use tokio::process::Command;

const VARIABLE: &str = "CONTEXTURE_TEST_CLIENTS";

/// The folder that `cargo xtask test` installs clients into.
pub(crate) struct Installed(PathBuf);

impl Installed {
    /// The folder; nothing if these tests are to be left out.
    ///
    /// # Panics
    /// When it is not said which of the two.
    pub(crate) fn find() -> Option<Self> {
        let Some(folder) = std::env::var_os(VARIABLE) else {
            panic!(
                "clients are not installed: run `cargo xtask test -p contexture-server`, which does that, \
                 or set {VARIABLE}=skip to leave out what they show"
            )
        };
        (folder != "skip").then(|| Self(folder.into()))
    }

    /// Makes what is installed visible in a folder, beside scripts that use it.
    pub(crate) fn link(&self, folder: &Path) {
        let modules = "node_modules";
        std::os::unix::fs::symlink(self.0.join(modules), folder.join(modules)).unwrap();
    }

    /// Runs a script with what its name says, in a folder, with nothing of this process's environment but the path.
    pub(crate) fn command(&self, script: &Path, folder: &Path) -> Command {
        let programs = self.0.join("python/bin");
        let is_python = script
            .extension()
            .is_some_and(|extension| extension == "py");
        let program = programs.join(if is_python { "python" } else { "node" });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command
            .arg(script)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("HOME", folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .kill_on_drop(true);
        command
    }
}
