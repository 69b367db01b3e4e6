//! What an installed command must do: answer, end with the right codes, serve a request, and stop when told to.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::dist::PROGRAM;
use crate::dist::clean_room::CleanRoom;

/// A command that was installed, and how.
#[derive(Debug)]
pub(crate) struct Installed {
    /// What it came from, for people.
    pub(crate) from: String,
    /// The program and its first arguments.
    pub(crate) words: Vec<OsString>,
    /// Size of all that is downloaded for it.
    pub(crate) bytes: u64,
    pub(crate) install: Duration,
}

/// How quickly a command answered.
#[derive(Debug)]
pub(crate) struct Answered {
    /// From its start to the end of `--version`.
    version: Duration,
    /// From the start of `serve` to the answer to the first request.
    request: Duration,
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [version, request] = [self.version, self.request].map(|time| time.as_millis());
        write!(
            f,
            "--version {version} ms, first request served {request} ms"
        )
    }
}

impl Installed {
    /// Returns the command in a clean place, without arguments.
    pub(crate) fn command(&self, room: &CleanRoom) -> Command {
        let mut words = self.words.iter();
        let mut command = room.command(PathBuf::from(words.next().cloned().unwrap_or_default()));
        command.args(words);
        command
    }
}

/// Checks everything that holds for the command wherever it was installed from.
///
/// # Errors
/// What it did, and what it should have done.
pub(crate) fn check_command(
    installed: &Installed,
    room: &CleanRoom,
    version: &str,
) -> Result<Answered> {
    let started = Instant::now();
    let said = installed.command(room).arg("--version").output()?;
    let answered = started.elapsed();
    expect_output(&said, 0, &format!("{PROGRAM} {version}\n"))?;
    // Input goes through, and output comes back.
    let counted = feed_input(
        installed
            .command(room)
            .args(["count", "--encoding", "o200k_base", "--jsonl"]),
        "\"hi\"\n",
    )?;
    expect_output(&counted, 0, "{\"tokens\":1,\"exact\":true}\n")?;
    let unknown = installed.command(room).arg("no-such-command").output()?;
    expect_output(&unknown, 2, "")?;
    let missing = installed
        .command(room)
        .args(["log", "nothing", "--db", "nowhere.db"])
        .output()?;
    expect_output(&missing, 3, "")?;
    let request = check_server(installed, room).context("serve")?;
    Ok(Answered {
        version: answered,
        request,
    })
}

fn expect_output(output: &Output, code: i32, text: &str) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(code) && said == text,
        "{} with {said:?} instead of {code} with {text:?}: {complaint}",
        output.status
    );
    Ok(())
}

fn feed_input(command: &mut Command, text: &str) -> Result<Output> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Dropped at once, which ends the input.
    child
        .stdin
        .take()
        .context("no input")?
        .write_all(text.as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// Serves one request and is interrupted; returns how long the answer took from the start.
fn check_server(installed: &Installed, room: &CleanRoom) -> Result<Duration> {
    let started = Instant::now();
    let mut command = installed.command(room);
    command.args(["serve", "--listen", "127.0.0.1:0", "--db", "memory:"]);
    // No terminal anywhere: then a launcher passes the signal on.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut server = command.spawn()?;
    let answer = ask_server(&mut server);
    let elapsed = started.elapsed();
    // As a service manager or a script does, to this process only.
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", server.id())])
        .status()?;
    ensure!(sent.success(), "it had ended before it was interrupted");
    let status = server.wait()?;
    let answer = answer?;
    ensure!(answer.starts_with("HTTP/1.1 201 "), "answered {answer:?}");
    ensure!(
        status.code() == Some(0),
        "after SIGINT: {status} instead of 0"
    );
    Ok(elapsed)
}

/// Waits until it listens, makes a conversation and returns the answer.
fn ask_server(server: &mut Child) -> Result<String> {
    let said = server.stderr.take().context("no standard error")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://");
    let address = address.with_context(|| format!("said {line:?}"))?;
    let mut stream = TcpStream::connect(address)?;
    let body = "{\"id\":\"first\"}";
    write!(
        stream,
        "POST /api/v1/conversations HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
