//! The container's files, checked as text, and what they run, run without a container.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::command::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_file(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn compose() -> Value {
    serde_saphyr::from_str(&read_file("deploy/compose.yaml")).unwrap()
}

/// The instructions of the container file, each on one line.
fn instructions() -> Vec<String> {
    let text = read_file("deploy/Containerfile").replace("\\\n", " ");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// The variables that the image sets.
fn image_variables() -> BTreeMap<String, String> {
    let lines = instructions();
    let words = lines.iter().filter_map(|line| line.strip_prefix("ENV "));
    let pairs = words.flat_map(str::split_whitespace);
    pairs
        .map(|pair| pair.split_once('=').expect(pair))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Makes the first configuration in this place, as the container does, and returns what is said of it.
fn run_first_run(place: &Place) -> String {
    let program = assert_cmd::cargo::cargo_bin!("contexture");
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let output = Command::new("sh")
        .arg(root().join("deploy/first-run.sh"))
        .env_clear()
        .env("PATH", path)
        .env("CONTEXTURE_CONFIG", place.path("contexture.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Sends the request that the first run shows, with this header, and returns the status.
fn make_conversation(address: &str, header: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/v1/conversations HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn the_first_run_leads_to_an_answered_request() {
    let place = Place::new();
    let said = run_first_run(&place);
    let key = said
        .split_whitespace()
        .find(|word| word.starts_with("ctx_"));
    let key = key.unwrap_or_else(|| panic!("no key: {said}"));
    let config = fs::read_to_string(place.path("contexture.toml")).unwrap();
    assert!(!config.contains(key), "the key itself is in the file");
    // A second start changes nothing and shows no key.
    let again = run_first_run(&place);
    assert!(again.contains("stay") && !again.contains("ctx_"), "{again}");
    assert_eq!(
        fs::read_to_string(place.path("contexture.toml")).unwrap(),
        config
    );

    // As the image starts it, with the volume's folder here and a port of the system's choice.
    let program = assert_cmd::cargo::cargo_bin!("contexture");
    let mut command = Command::new(program);
    command
        .arg("serve")
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let volume = place.path("").to_string_lossy().into_owned();
    for (name, value) in image_variables() {
        let value = value.replace("/var/lib/contexture/", &volume);
        command.env(name, value.replace(":8484", ":0"));
    }
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    let mut log = BufReader::new(server.stderr.take().unwrap());
    while !line.contains("\"listening\"") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let event: Value = serde_json::from_str(&line).unwrap();
    let address = event["fields"]["address"]
        .as_str()
        .or(event["address"].as_str());
    let address = address
        .unwrap_or_else(|| panic!("{line}"))
        .replace("0.0.0.0", "127.0.0.1");
    // The request that is shown, word for word.
    let body = said.split('\'').find(|word| word.starts_with('{')).unwrap();
    assert!(said.contains("x-contexture-key: KEY"), "{said}");
    assert_eq!(make_conversation(&address, "", body), "401");
    let header = format!("x-contexture-key: {key}\r\n");
    assert_eq!(make_conversation(&address, &header, body), "201");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(place.path("contexture.db").is_file());
}

#[test]
fn compose_and_container_file_agree() {
    let compose = compose();
    let services = &compose["services"];
    let (first, server) = (&services["first-run"], &services["contexture"]);
    assert_eq!(first["build"], server["build"], "one image");
    assert_eq!(first["volumes"], server["volumes"], "one volume");
    assert!(
        root()
            .join(server["build"]["dockerfile"].as_str().unwrap())
            .is_file()
    );
    let condition = &server["depends_on"]["first-run"]["condition"];
    assert_eq!(condition, "service_completed_successfully");

    let lines = instructions();
    let has = |text: String| {
        assert!(
            lines.iter().any(|line| line.contains(&text)),
            "{text}: {lines:?}"
        )
    };
    let script = first["entrypoint"][0].as_str().unwrap();
    has(format!("deploy/first-run.sh /usr/local/bin/{script}"));
    let mount = server["volumes"][0].as_str().unwrap();
    let volume = mount.split(':').nth(1).unwrap();
    has(format!("VOLUME {volume}"));
    let variables = image_variables();
    for name in ["CONTEXTURE_CONFIG", "CONTEXTURE_DB"] {
        assert!(variables[name].starts_with(&format!("{volume}/")), "{name}");
    }
    let port = variables["CONTEXTURE_LISTEN"]
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    has(format!("EXPOSE {port}"));
    assert_eq!(server["ports"], json!([format!("127.0.0.1:{port}:{port}")]));
}

#[test]
fn the_image_builds_what_is_released() {
    let lines = instructions();
    let build = lines
        .iter()
        .find(|line| line.contains("cargo build"))
        .unwrap();
    assert!(
        build.contains("--profile dist --locked -p contexture-cli"),
        "{build}"
    );
    // What lies in a cache is no part of the image.
    assert!(
        build.contains("type=cache,target=/source/target"),
        "{build}"
    );
    assert!(
        build.contains("cp target/dist/contexture /contexture"),
        "{build}"
    );
    let manifest = read_file("Cargo.toml");
    let oldest = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "));
    let oldest = oldest.unwrap().trim_matches('"');
    assert!(
        lines[0].starts_with(&format!("FROM docker.io/library/rust:{oldest}-")),
        "{}",
        lines[0]
    );
}

/// Whether the build of the image gets this file, by the last rule that is about it.
fn is_sent(rules: &str, path: &str) -> bool {
    let mut sent = true;
    for rule in rules
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (pattern, verdict) = rule
            .strip_prefix('!')
            .map_or((rule, false), |rest| (rest, true));
        let mut steps = path.split('/');
        let is_about = pattern
            .split('/')
            .all(|part| steps.next().is_some_and(|step| part == "*" || part == step));
        if is_about {
            sent = verdict;
        }
    }
    sent
}

#[test]
fn the_image_gets_what_cargo_reads_and_no_more() {
    let rules = read_file(".dockerignore");
    for left_out in [
        "target/debug/contexture",
        ".git/config",
        "docs/cli.md",
        "crates/cli/tests/it/main.rs",
    ] {
        assert!(!is_sent(&rules, left_out), "{left_out}");
    }
    let listed = Command::new("git")
        .arg("ls-files")
        .current_dir(root())
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let place = Place::new();
    let copied: Vec<&str> = listed
        .lines()
        .filter(|path| is_sent(&rules, path) && root().join(path).is_file())
        .collect();
    for path in &copied {
        let to = place.path(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join(path), to).unwrap();
    }
    // The manifests of the whole workspace are read for a build of one package.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--locked",
        "--offline",
        "--no-deps",
        "--format-version",
        "1",
    ]);
    let output = cargo.current_dir(place.path("")).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(copied.contains(&"deploy/first-run.sh"));
}
