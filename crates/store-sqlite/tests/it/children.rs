//! Processes of this very test binary: each runs one ignored test on a database, and reports line by
//! line what it did. A line is one write of a few bytes, so a kill cuts none in two.
//!
//! What is not here: what they do, and what is expected of them.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;

const DATABASE: &str = "CONTEXTURE_TEST_DATABASE";
const TASK: &str = "CONTEXTURE_TEST_TASK";
/// Before each reported line: the test harness writes to the same pipe.
const MARK: &str = "tells> ";

/// The task of this process: a database and words. `None`: it is nobody's child.
pub(crate) fn parent_task() -> Option<(PathBuf, String)> {
    let database = std::env::var_os(DATABASE)?;
    Some((database.into(), std::env::var(TASK).unwrap()))
}

/// Reports a line to the parent.
pub(crate) fn report_line(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{line}").unwrap();
    out.flush().unwrap();
}

/// Reports that this process is ready, and waits until it may go on.
pub(crate) fn wait() {
    report_line("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

/// The conversation that the tests write, as a process of its own sees it.
pub(crate) fn chat(path: &Path) -> Chat {
    Chat {
        store: Arc::new(SqliteStore::open(path).unwrap()),
        owner: "ada".parse().unwrap(),
        id: "chat".parse().unwrap(),
    }
}

/// A process that was started and is not awaited yet.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the ignored test of this name.
    pub(crate) fn start(test: &str, database: &Path, task: &str) -> Self {
        Self::start_under(&[], test, database, task)
    }

    /// Starts it under another program, which gets the test's own command line after its arguments.
    pub(crate) fn start_under(
        wrapper: &[OsString],
        test: &str,
        database: &Path,
        task: &str,
    ) -> Self {
        let mut command_line = wrapper.to_vec();
        command_line.push(std::env::current_exe().unwrap().into());
        let options = ["--exact", test, "--ignored", "--nocapture"];
        command_line.extend(options.map(OsString::from));
        let (program, arguments) = command_line.split_first().unwrap();
        let mut child = Command::new(program)
            .args(arguments)
            .arg("--test-threads=1")
            .env(DATABASE, database)
            .env(TASK, task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The next line that it reports; `None`: it has ended.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, line)) = line.trim_end().split_once(MARK) {
                return Some(line.to_owned());
            }
        }
    }

    /// Waits until it is ready.
    pub(crate) fn await_ready(&mut self) {
        assert_eq!(self.next_line().as_deref(), Some("ready"));
    }

    /// Lets it go on.
    pub(crate) fn release(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"g").unwrap();
    }

    /// Kills it as `kill -9` does; what it had reported before can still be read.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// All lines that it still reports, until it ends.
    pub(crate) fn remaining_lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_line()).collect()
    }

    /// All lines that it still reports; it must succeed.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let lines = self.remaining_lines();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}, after {lines:?}");
        lines
    }
}

/// Several processes that begin at the same time.
pub(crate) fn start_together(
    test: &str,
    database: &Path,
    tasks: impl IntoIterator<Item = String>,
) -> Vec<Process> {
    let mut processes: Vec<Process> = tasks
        .into_iter()
        .map(|task| Process::start(test, database, &task))
        .collect();
    processes.iter_mut().for_each(Process::await_ready);
    processes.iter_mut().for_each(Process::release);
    processes
}
