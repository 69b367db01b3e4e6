//! Processes of this very test binary: each runs one ignored test on a database, and tells line by
//! line what it did. A line is one write of a few bytes, so a kill cuts none in two.
//!
//! What is not here: what they do, and what is expected of them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

const DATABASE: &str = "CONTEXTURE_TEST_DATABASE";
const TASK: &str = "CONTEXTURE_TEST_TASK";
/// Before everything that is told: the test harness writes to the same place.
const MARK: &str = "tells> ";

/// What the parent told: a database's address and a task. `None`: there is no parent.
pub(crate) fn told() -> Option<(String, String)> {
    Some((std::env::var(DATABASE).ok()?, std::env::var(TASK).unwrap()))
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

    /// Lets it go on.
    fn go(&mut self) {
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
    address: &str,
    tasks: impl IntoIterator<Item = String>,
) -> Vec<Process> {
    let mut processes: Vec<Process> = tasks
        .into_iter()
        .map(|task| Process::start(test, address, &task))
        .collect();
    for process in &mut processes {
        assert_eq!(process.hear().as_deref(), Some("ready"));
    }
    processes.iter_mut().for_each(Process::go);
    processes
}
