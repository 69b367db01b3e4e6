//! The two proxies as processes of their own, so that neither shares threads or memory with what measures.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use http_body_util::{BodyExt as _, Full};
use hyper::Request;

use crate::Asker;

/// A proxy that is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// This program once more, as a bare proxy.
    pub(crate) fn bare(upstream: SocketAddr) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(crate::BARE, upstream.to_string());
        Self::start(command)
    }

    /// `contexture serve`, with its database and its log in a directory, and policies of this text.
    pub(crate) fn contexture(upstream: SocketAddr, directory: &Path, policies: &str) -> Self {
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\ndb = \"{}\"\nlimits.concurrent = 4096\n\
             [upstreams.bench]\nformat = \"openai\"\nbase_url = \"http://{upstream}\"\n\
             {policies}",
            directory.join("bench.db").display()
        );
        let file = directory.join("contexture.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_contexture"));
        let log = File::create(directory.join("log")).unwrap();
        command
            .args(["serve", "--json", "--config"])
            .arg(file)
            .stderr(log);
        Self::start(command)
    }

    /// The first line of its standard output says where it listens.
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let is_there = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':');
        let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let address = said["listening"].as_str().unwrap_or(line.trim());
        assert!(address.chars().all(is_there), "{line}");
        let address = address.parse().unwrap();
        Self { child, address }
    }

    /// What it takes of the memory now, and what it took at most, in MB; nothing where the system does not say.
    pub(crate) fn memory(&self) -> Option<(u64, u64)> {
        Some((
            self.status("VmRSS:")? / 1_000,
            self.status("VmHWM:")? / 1_000,
        ))
    }

    /// Its open files and its threads; nothing where the system does not say.
    pub(crate) fn held(&self) -> Option<(usize, u64)> {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
        Some((files.count(), self.status("Threads:")?))
    }

    fn status(&self, name: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// The sum of one of its figures.
    pub(crate) async fn count(&self, asker: &Asker, name: &str) -> u64 {
        let uri = format!("http://{}/metrics", self.address);
        let request = Request::get(uri).body(Full::default()).unwrap();
        let body = asker.request(request).await.unwrap().into_body();
        let body = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body);
        let lines = text.lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
