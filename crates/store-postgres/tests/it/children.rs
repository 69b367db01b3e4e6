//! Processes of this very test binary: each runs one ignored test on a database, and reports line by
//! line what it did. A line is one write of a few bytes, so a kill cuts none in two.
//!
//! What is not here: what they do, and what is expected of them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

const DATABASE: &str = "CONTEXTURE_TEST_DATABASE";
const TASK: &str = "CONTEXTURE_TEST_TASK";
/// Before each reported line: the test harness writes to the same pipe.
const MARK: &str = "tells> ";

/// The task of this process: a database's address and words. `None`: it is nobody's child.
pub(crate) fn parent_task() -> Option<(String, String)> {
    Some((std::env::var(DATABASE).ok()?, std::env::var(TASK).unwrap()))
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

/// A process that was started and is not awaited yet.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the ignored test of this name.
    fn start(test: &str, address: &str, task: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                test,
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(DATABASE, address)
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

    /// Lets it go on.
    fn release(&mut self) {
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
    address: &str,
    tasks: impl IntoIterator<Item = String>,
) -> Vec<Process> {
    let mut processes: Vec<Process> = tasks
        .into_iter()
        .map(|task| Process::start(test, address, &task))
        .collect();
    for process in &mut processes {
        assert_eq!(process.next_line().as_deref(), Some("ready"));
    }
    processes.iter_mut().for_each(Process::release);
    processes
}
