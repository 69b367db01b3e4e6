//! A server of a test's own, for what cannot be done to one that others use: its certificate, its
//! files, its end.
//!
//! Its programs are those of the server that `CONTEXTURE_TEST_POSTGRES` names. Where they are not on
//! this machine there is none: that is said, and a soak fails.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use contexture_store::Store;
use contexture_store_postgres::{PostgresStore, migrate};
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::server::{address, connect};

const PASSWORD: &str = "own-server-password";

/// A running server; stopped and removed with it.
pub(crate) struct OwnServer {
    programs: PathBuf,
    settings: Vec<String>,
    port: u16,
    child: Option<Child>,
    directory: TempDir,
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

fn run(command: &mut Command) {
    let output = command.current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

impl OwnServer {
    /// Starts one with the tables, whose passwords do not cross the wire.
    ///
    /// # Errors
    /// Why it cannot be tried here, for the test to say.
    pub(crate) async fn start() -> Result<Self, String> {
        let bindir = "SELECT setting FROM pg_config WHERE name = 'BINDIR'";
        let named = connect(&address()).await;
        let programs: String = named.query_one(bindir, &[]).await.unwrap().get(0);
        let programs = PathBuf::from(programs);
        if !programs.join("initdb").is_file() {
            let why = format!("NOT TESTED: there is no {}/initdb here", programs.display());
            assert!(std::env::var_os("CONTEXTURE_SOAK").is_none(), "{why}");
            return Err(why);
        }
        let directory = tempfile::tempdir().unwrap();
        let mut server = Self {
            programs,
            settings: Vec::new(),
            port: 0,
            child: None,
            directory,
        };
        let file = server.place("password");
        std::fs::write(&file, PASSWORD).unwrap();
        server.give(server.directory.path());
        run(server
            .program("initdb")
            .args(["--username=postgres", "--auth=scram-sha-256", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C"])
            .arg(format!("--pwfile={}", file.display()))
            .arg("--pgdata")
            .arg(server.place("data")));
        server.launch();
        migrate(&server.address()).await.unwrap();
        Ok(server)
    }

    /// A file of it.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Gives a file to whoever the server runs as, and to nobody else.
    pub(crate) fn give(&self, file: &Path) {
        if is_root() {
            run(Command::new("chown").args(["-R", "postgres"]).arg(file));
        }
        run(Command::new("chmod").args(["-R", "go="]).arg(file));
    }

    /// A program of the server's; as root, run as the user `postgres`, because it refuses root.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    }

    /// A setting from the next start on.
    pub(crate) fn set(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
    }

    /// Starts it again, on the same port if that is free.
    pub(crate) fn launch(&mut self) {
        let mut said = String::new();
        // Another program may take the port before the server does.
        for attempt in 0..3 {
            if self.port == 0 || attempt > 0 {
                let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
                self.port = free.local_addr().unwrap().port();
            }
            let mut command = self.program("postgres");
            command.arg("-D").arg(self.place("data"));
            command.args(["-p", &self.port.to_string()]);
            for setting in [
                "listen_addresses=127.0.0.1",
                "unix_socket_directories=",
                "fsync=off",
            ] {
                command.args(["-c", setting]);
            }
            for setting in &self.settings {
                command.args(["-c", setting]);
            }
            let mut child = command
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut log = BufReader::new(child.stderr.take().unwrap());
            said.clear();
            while !said.ends_with("ready to accept connections\n") {
                if log.read_line(&mut said).unwrap() == 0 {
                    break;
                }
            }
            if said.ends_with("ready to accept connections\n") {
                // What it still says is read until it ends, so that it never waits for us.
                std::thread::spawn(move || log.lines().for_each(drop));
                self.child = Some(child);
                return;
            }
            child.wait().unwrap();
        }
        panic!("the server does not start: {said}");
    }

    /// Stops it, and leaves its files.
    pub(crate) fn stop(&mut self) {
        self.end("-INT");
    }

    /// Ends it at once, without writing anything more, and starts it again: it recovers from its log, on the same port.
    pub(crate) fn crash(&mut self) {
        let port = self.port;
        self.end("-QUIT");
        self.launch();
        assert_eq!(self.port, port, "another program took the port");
    }

    fn end(&mut self, signal: &str) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        // To the server itself: `runuser` would keep the signal.
        let state = std::fs::read_to_string(self.place("data/postmaster.pid")).unwrap();
        let server = state.lines().next().unwrap().trim().to_owned();
        run(Command::new("kill").args([signal, &server]));
        child.wait().unwrap();
    }

    /// Overwrites a part of a file of its data.
    pub(crate) fn damage(&self, file: &str, at: u64, bytes: &[u8]) {
        assert!(self.child.is_none(), "it runs");
        let path = self.place("data").join(file);
        let mut file = std::fs::File::options().write(true).open(path).unwrap();
        assert!(file.metadata().unwrap().len() > at + bytes.len() as u64);
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// Its address at this name of this machine, with these options.
    pub(crate) fn address_at(&self, host: &str, options: &str) -> String {
        format!(
            "postgres://postgres:{PASSWORD}@{host}:{}/postgres?{options}",
            self.port
        )
    }

    /// Its address, unencrypted.
    pub(crate) fn address(&self) -> String {
        self.address_at("127.0.0.1", "sslmode=disable")
    }

    /// Its address for another user than the first.
    pub(crate) fn address_of(&self, user: &str, password: &str) -> String {
        let first = format!("postgres:{PASSWORD}@");
        self.address()
            .replacen(&first, &format!("{user}:{password}@"), 1)
    }

    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        Arc::new(PostgresStore::open(&self.address()).await.unwrap())
    }

    /// A connection beside the store's.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.address()).await
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.stop();
    }
}
