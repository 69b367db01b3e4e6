//! The server as a command: what it refuses, that it serves, how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::command::Place;

fn refused(place: &Place, line: &str, code: i32) -> String {
    let run = place.run(line);
    assert_eq!(run.code, code, "{}", run.err);
    run.err
}

#[test]
fn it_does_not_listen_elsewhere_without_keys() {
    let place = Place::new();
    let refused = refused(&place, "serve --listen 0.0.0.0:0 --db memory:", 5);
    assert!(refused.contains("without keys"), "{refused}");
    assert!(refused.contains("contexture keys new"), "{refused}");
}

#[test]
fn a_configuration_that_is_wrong_is_named() {
    let place = Place::new();
    place.write("c.toml", "[server]\nlisten = \"127.0.0.1:0\"\nprot = 1\n");
    let refused = refused(&place, "serve --config c.toml", 6);
    assert!(
        refused.contains("c.toml:3: server.prot: unknown field"),
        "{refused}"
    );
}

#[test]
fn keys_are_shown_once_and_kept_as_hashes() {
    let place = Place::new();
    let made = place.run("keys new --name laptop --owner acme/ada --scope read");
    let line = made.err.lines().next().unwrap();
    let key = line.trim().rsplit(' ').next().unwrap();
    assert!(made.out.contains("scopes = [\"read\"]"), "{}", made.out);
    assert!(key.starts_with("ctx_"), "{}", made.err);
    assert!(!made.out.contains(key));
    place.write(
        "c.toml",
        format!(
            "[server]\nlisten = \"0.0.0.0:9\"\nlimits.headers = 1\n{}",
            made.out
        ),
    );
    // The keys are read: what is wrong is something else.
    let refused = refused(&place, "serve --config c.toml", 6);
    assert!(refused.contains("server.limits.headers"), "{refused}");
}

#[test]
fn a_new_key_shows_that_there_are_scopes() {
    let place = Place::new();
    let made = place.run("keys new --name laptop");
    let everyday = "scopes = [\"read\", \"write\", \"proxy\"]";
    assert!(made.out.contains(everyday), "{}", made.out);
    assert!(made.err.contains("--scope admin"), "{}", made.err);
    let admin = place.run("keys new --name scraper --scope admin");
    assert!(!admin.err.contains("--scope"), "{}", admin.err);
}

#[test]
fn a_wrong_configuration_is_told_in_its_own_words() {
    let place = Place::new();
    for (text, said, page) in [
        (
            "[policies.p]\nwindow = 5\n",
            "c.toml:2: policies.p.window: invalid type: integer `5`, expected { turns = N } or { tokens = N }, such as window = { turns = 20 }",
            "docs/proxy.md#policies",
        ),
        (
            "[policies.p]\ncompact = \"all\"\n",
            "c.toml:2: policies.p.compact: ",
            "docs/proxy.md#policies",
        ),
        (
            "[policies.p.tools]\ndeny = 1\n",
            "c.toml:2: policies.p.tools.deny: ",
            "docs/proxy.md#policies",
        ),
        (
            "routes = 1\n",
            "c.toml:1: routes: ",
            "docs/proxy.md#policies",
        ),
        (
            "[[routes]]\npolicy = \"x\"\n",
            "c.toml:2: routes[0].policy: ",
            "docs/proxy.md#policies",
        ),
        (
            "[upstreams.a]\nformat = \"opnai\"\n",
            "c.toml:2: upstreams.a.format: ",
            "docs/proxy.md#upstreams",
        ),
        (
            "[upstreams]\na = 1\n",
            "c.toml:2: upstreams.a: ",
            "docs/proxy.md#upstreams",
        ),
        (
            "[[keys]]\nname = 1\n",
            "c.toml:2: keys[0].name: ",
            "docs/http.md#authentication",
        ),
        (
            "[server]\nprot = 1\n",
            "c.toml:2: server.prot: ",
            "docs/http.md#configuration",
        ),
        (
            "[server.limits]\nheaders = \"x\"\n",
            "c.toml:2: server.limits.headers: ",
            "docs/http.md#configuration",
        ),
        (
            "[server]\norigins = [\"*\"]\n",
            "c.toml:2: server.origins: ",
            "docs/http.md#configuration",
        ),
    ] {
        place.write("c.toml", text);
        let found = refused(&place, "serve --config c.toml", 6);
        assert!(found.contains(said), "{text}: {found}");
        assert!(found.contains(page), "{text}: {found}");
        for word in [
            "struct", "enum ", "Config", "usize", "u64", "Option", "BTree",
        ] {
            assert!(!found.contains(word), "{text}: {found}");
        }
    }
    let missing = refused(&place, "serve --config nowhere.toml", 6);
    assert!(
        missing.contains("--config") && !missing.contains("docs/"),
        "{missing}"
    );
}

/// A server that is killed when it is dropped.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Serving {
    /// Serves as the line says, split at blanks, with these variables, and listens on a free port.
    pub(crate) fn start(place: &Place, line: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("contexture"));
        command.current_dir(place.path("")).env_clear();
        command.envs(variables.iter().copied());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(line.split_whitespace());
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let (_, address) = line.trim().rsplit_once("//").expect(&line);
        Self {
            child,
            address: address.to_owned(),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn it_serves_until_it_is_told_to_end() {
    let place = Place::new();
    let mut serving = Serving::start(&place, "--db new.db", &[]);
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    stream
        .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let told = std::process::Command::new("kill")
        .arg(serving.child.id().to_string())
        .status()
        .unwrap();
    assert!(told.success());
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

/// Memory of a process in MB, as the kernel calls it: `VmRSS` now, `VmHWM` at its peak.
#[cfg(target_os = "linux")]
fn megabytes(id: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() / 1_024
}

/// Also where the server has nothing more to do, so that no thread of it asks for memory.
#[cfg(target_os = "linux")]
#[test]
fn memory_goes_back_after_a_peak() {
    let place = Place::new();
    let serving = Serving::start(&place, "--db memory:", &[]);
    let id = serving.child.id();
    let message = r#"{"role":"user","content":"Which seat is free?"}"#;
    let messages = vec![message; 60_000].join(",");
    let body = format!(r#"{{"model":"gpt-5","messages":[{messages}]}}"#);
    let post = || {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        let head = format!(
            "POST /v1/compress HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        // Those that find no memory are refused.
        assert!(answer.starts_with(b"HTTP/1.1 "));
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(post);
        }
    });
    let peak = megabytes(id, "VmHWM");
    assert!(peak > 150, "no peak: {peak} MB");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let now = megabytes(id, "VmRSS");
        // The program's own pages, tens of megabytes without optimisation, stay.
        if now * 4 < peak * 3 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{now} of {peak} MB");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[cfg(unix)]
#[test]
fn a_signal_counts_from_the_moment_it_listens() {
    let place = Place::new();
    for round in 0..20 {
        let mut serving = Serving::start(&place, "--db memory:", &[]);
        let id = serving.child.id().to_string();
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-INT", &id]).status().unwrap().success());
        let status = serving.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "round {round}: {status}");
    }
}
