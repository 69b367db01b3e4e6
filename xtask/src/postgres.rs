//! A PostgreSQL server for tests and benchmarks, created in a temporary directory and removed afterwards.
//!
//! It listens on a free port of the loopback address and has a random password. Its data need not survive a crash, so
//! files are synced only if the cost of that is to be measured. Tests find it in `CONTEXTURE_TEST_POSTGRES`; if that is
//! set, no server is started.
//!
//! Not here: databases and tables, which each test creates for itself.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use crate::shell;

/// Variable with the address of the server: `postgres://user:password@host:port/database`.
pub(crate) const VARIABLE: &str = "CONTEXTURE_TEST_POSTGRES";

/// Attempts to start: another program may take the port between its selection and the server's bind.
const ATTEMPTS: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether a server syncs its files to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskSync {
    /// As in production.
    Synced,
    /// Without syncing, which is faster.
    Unsynced,
}

/// A running server; stopped and removed when dropped.
pub(crate) struct PostgresServer {
    child: Child,
    address: String,
    // Removed after the server has stopped.
    directory: TempDir,
}

impl PostgresServer {
    /// Creates and starts a server, after installing PostgreSQL if that is possible.
    ///
    /// # Errors
    /// If PostgreSQL is missing and cannot be installed, or does not start.
    pub(crate) fn start(files: DiskSync) -> Result<Self> {
        let programs = match find_programs() {
            Some(programs) => programs,
            None => install_postgres()?,
        };
        let directory = tempfile::Builder::new()
            .prefix("contexture-postgres-")
            .tempdir()?;
        // Randomness of the seed of `RandomState`: enough to keep others on this machine from using the server by
        // accident.
        let password = format!("{:016x}", RandomState::new().hash_one("password"));
        let data = directory.path().join("data");
        init_database(&programs, directory.path(), &data, &password)?;
        let mut failure = anyhow::anyhow!("not tried");
        for _ in 0..ATTEMPTS {
            // The listener is closed at once, so that the server can use its port.
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            match launch_server(&programs, &data, port, files) {
                Ok(child) => {
                    return Ok(Self {
                        child,
                        address: format!(
                            "postgres://postgres:{password}@127.0.0.1:{port}/postgres"
                        ),
                        directory,
                    });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Returns the value for [`VARIABLE`].
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // SIGINT is a fast shutdown that disconnects clients. It goes to the server itself, whose process id is the
        // first line of `postmaster.pid`, because `runuser` would not forward it.
        let state = std::fs::read_to_string(self.directory.path().join("data/postmaster.pid"));
        let server = state
            .ok()
            .and_then(|lines| lines.lines().next().map(str::to_owned));
        let server = server.unwrap_or_else(|| self.child.id().to_string());
        let _ = Command::new("kill").args(["-INT", server.trim()]).status();
        // The directory is removed after this, so the server must have exited.
        let _ = self.child.wait();
    }
}

/// Finds the directory of `initdb` and `postgres`: on the path, otherwise the newest one of Debian's packages.
fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut installed: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let version = entry.file_name().to_string_lossy().parse().unwrap_or(0);
            (version, entry.path().join("bin"))
        })
        .collect();
    // Sorted by number: as text, 9 would come after 10.
    installed.sort();
    directories.extend(installed.into_iter().rev().map(|(_, path)| path));
    directories.into_iter().find(|directory| {
        ["initdb", "postgres"]
            .iter()
            .all(|name| directory.join(name).is_file())
    })
}

fn install_postgres() -> Result<PathBuf> {
    let by_hand = format!(
        "the tests of the PostgreSQL backend need a server: install PostgreSQL (Debian: apt-get install postgresql), or \
         name a server in {VARIABLE}=postgres://user:password@host:port/database"
    );
    shell::apt_install("postgresql", &by_hand)?;
    find_programs().context(by_hand)
}

/// Returns the command for a server program; as root it runs as the user `postgres`, because PostgreSQL refuses root.
fn server_program(programs: &Path, name: &str) -> Command {
    let program = programs.join(name);
    if !shell::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn init_database(programs: &Path, directory: &Path, data: &Path, password: &str) -> Result<()> {
    let password_file = directory.join("password");
    writeln!(std::fs::File::create(&password_file)?, "{password}")?;
    // The server runs as another user, who must own its files.
    if shell::is_root() {
        let mut chown = Command::new("chown");
        chown.args(["-R", "postgres"]).arg(directory);
        ensure!(
            chown.status()?.success(),
            "{} cannot be given to postgres",
            directory.display()
        );
    }
    let mut initdb = server_program(programs, "initdb");
    initdb
        .args([
            "--username=postgres",
            "--auth=password",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ])
        .arg(format!("--pwfile={}", password_file.display()))
        .arg("--pgdata")
        .arg(data);
    let output = initdb
        .current_dir("/")
        .output()
        .context("initdb could not be started")?;
    ensure!(
        output.status.success(),
        "initdb failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Starts the server and waits until it accepts connections.
fn launch_server(programs: &Path, data: &Path, port: u16, files: DiskSync) -> Result<Child> {
    let mut command = server_program(programs, "postgres");
    command.arg("-D").arg(data).args(["-p", &port.to_string()]);
    let settings = [
        "listen_addresses=127.0.0.1",
        // No socket: its default folder may belong to another server.
        "unix_socket_directories=",
        // Tests run in parallel, each with its own connections.
        "max_connections=400",
        "synchronous_commit=on",
        "log_min_messages=panic",
    ];
    let unsynced: &[&str] = match files {
        DiskSync::Synced => &[],
        DiskSync::Unsynced => &["fsync=off", "full_page_writes=off"],
    };
    for setting in settings.iter().chain(unsynced) {
        command.args(["-c", setting]);
    }
    let mut child = command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("the PostgreSQL server could not be started")?;
    let start = Instant::now();
    // The server writes `ready` to the last line of this file when it accepts connections.
    let state = data.join("postmaster.pid");
    loop {
        // Most likely the port was taken; the caller tries another one.
        if let Some(status) = child.try_wait()? {
            bail!("the PostgreSQL server ended at once ({status})");
        }
        let ready = std::fs::read_to_string(&state);
        if ready.is_ok_and(|lines| lines.lines().any(|line| line.trim() == "ready")) {
            return Ok(child);
        }
        if start.elapsed() > START_TIMEOUT {
            child.kill()?;
            child.wait()?;
            bail!(
                "the PostgreSQL server was not ready after {} s",
                START_TIMEOUT.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
