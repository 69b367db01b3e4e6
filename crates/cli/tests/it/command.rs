//! Running the command in a place of its own.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A directory in which the command runs, with a database of its own.
pub(crate) struct Place {
    directory: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The database the command uses here.
    pub(crate) fn database(&self) -> PathBuf {
        self.path("data").join("contexture").join("contexture.db")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("contexture"));
        command
            .current_dir(self.directory.path())
            .env_clear()
            .env("XDG_DATA_HOME", self.path("data"))
            .env("TZ", "UTC");
        command
    }

    /// Runs with arguments as in a shell, split at blanks, and this on standard input.
    pub(crate) fn feed(&self, line: &str, input: impl Into<Vec<u8>>) -> Run {
        let output = self
            .command()
            .args(line.split_whitespace())
            .write_stdin(input)
            .output()
            .unwrap();
        let run = Run {
            code: output.status.code().expect("not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        };
        for bad in ["panicked", "RUST_BACKTRACE", "Error {", "Some(\""] {
            assert!(!run.err.contains(bad), "{line}: {}", run.err);
        }
        run
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        self.feed(line, "")
    }

    /// Runs, expects success, and gives standard output.
    pub(crate) fn ok(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}: {}", run.err);
        run.out
    }

    /// Runs, expects success, and gives standard output as JSON.
    pub(crate) fn json(&self, line: &str) -> Value {
        let out = self.ok(line);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }
}

impl Run {
    /// Standard output, a JSON document a line.
    pub(crate) fn documents(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A file of the examples at the root of the repository.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}
