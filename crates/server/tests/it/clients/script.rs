//! A client's script, and what it says the client saw.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use super::installed::Installed;

/// What a client saw, by scenario.
pub(crate) type Saw = BTreeMap<String, Value>;

/// A script in a folder of its own, beside what it needs.
pub(crate) struct Script<'a> {
    installed: &'a Installed,
    folder: TempDir,
    path: PathBuf,
}

impl<'a> Script<'a> {
    pub(crate) fn new(installed: &'a Installed, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        installed.link(folder.path());
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
        let language = if name.ends_with(".py") {
            "python"
        } else {
            "node"
        };
        // What is said stands above the scripts.
        let scripts = folder.path().join("scripts");
        std::fs::create_dir(&scripts).unwrap();
        std::fs::copy(from.join("said.json"), folder.path().join("said.json")).unwrap();
        for file in std::fs::read_dir(from.join(language)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), scripts.join(file.file_name())).unwrap();
        }
        Self {
            installed,
            path: scripts.join(name),
            folder,
        }
    }

    /// Goes through all scenarios.
    pub(crate) async fn run(&self, base: &str) -> Saw {
        self.run_some(base, &[]).await
    }

    /// The same through those of these names, if there are any.
    pub(crate) async fn run_some(&self, base: &str, names: &[String]) -> Saw {
        let mut command = self.installed.command(&self.path, self.folder.path());
        let command = command.arg(base).args(names).stdin(Stdio::null());
        let output = command.output().await.unwrap();
        let (said, errors) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{said}\n{errors}");
        // Some clients print what they think of an error.
        let told = said.lines().filter_map(|line| line.strip_prefix("saw "));
        let parsed = |told: &str| {
            let (scenario, saw) = told.split_once(' ').unwrap();
            let saw = serde_json::from_str(saw).unwrap_or_else(|error| panic!("{error}: {told}"));
            (scenario.to_owned(), saw)
        };
        told.map(parsed).collect()
    }
}
