//! Processes of this very test binary: each runs one ignored test on a database, and tells line by
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
/// Before everything that is told: the test harness writes to the same place.
const MARK: &str = "tells> ";

/// What the parent told: a database and a task. `None`: there is no parent.
pub(crate) fn told() -> Option<(PathBuf, String)> {
    let database = std::env::var_os(DATABASE)?;
    Some((database.into(), std::env::var(TASK).unwrap()))
}

/// Tells the parent.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{line}").unwrap();
    out.flush().unwrap();
}

/// Tells the parent that this process is ready, and waits until it may go on.
pub(crate) fn wait() {
    tell("ready");
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
        let mut words = wrapper.to_vec();
        words.push(std::env::current_exe().unwrap().into());
        let options = ["--exact", test, "--ignored", "--nocapture"];
        words.extend(options.map(OsString::from));
        let (program, arguments) = words.split_first().unwrap();
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

    /// The next that it tells; `None`: it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, told)) = line.trim_end().split_once(MARK) {
                return Some(told.to_owned());
            }
        }
    }

    /// Waits until it is ready.
    pub(crate) fn await_ready(&mut self) {
        assert_eq!(self.hear().as_deref(), Some("ready"));
    }

    /// Lets it go on.
    pub(crate) fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"g").unwrap();
    }

    /// Kills it as `kill -9` does; what it had told before can still be heard.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// All that it still tells, until it ends.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.hear()).collect()
    }

    /// All that it still tells; it must end well.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let rest = self.rest();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}, after {rest:?}");
        rest
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
    processes.iter_mut().for_each(Process::go);
    processes
}
