//! The server as those who run it see it: its log, and what `doctor` says of its configuration.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

use crate::command::Place;

/// A server whose log is read line by line.
fn logging(place: &Place, levels: &str) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("contexture"));
    command.current_dir(place.path("")).env_clear();
    command.args(["serve", "--listen", "127.0.0.1:0", "--db", "new.db"]);
    command.args(["--log-format", "json", "--log", levels]);
    let mut child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    (child, said)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn its_log_is_an_object_a_line() {
    let place = Place::new();
    let levels = "info,contexture_server=debug";
    let (mut serving, said) = logging(&place, levels);
    let mut said = said.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let listening = said.next().unwrap();
    assert_eq!(listening["message"], "listening");
    assert_eq!(listening["level"], "INFO");
    let address = listening["address"].as_str().unwrap().to_owned();
    get(&address, "/api/v1/conversations/secret-name");
    let answered = said.find(|event| event["message"] == "answered").unwrap();
    assert_eq!(answered["status"], 404);
    assert_eq!(answered["route"], "/api/v1/conversations/{conversation}");
    assert!(!answered.to_string().contains("secret-name"), "{answered}");
    // Nobody reads the log any more: it serves on.
    drop(said);
    for _ in 0..2 {
        let answer = get(&address, "/health");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    serving.kill().unwrap();
    serving.wait().unwrap();
}

#[test]
fn a_level_that_is_none_is_refused() {
    let place = Place::new();
    let run = place.run("serve --db memory: --log loud=1=2");
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("--log"), "{}", run.err);
}

/// One check of `doctor`, with its state and what it says.
pub(crate) fn checked<'a>(report: &'a Value, name: &str) -> (&'a str, &'a str) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("{name}: {report}"));
    (
        check["state"].as_str().unwrap(),
        check["found"].as_str().unwrap(),
    )
}

#[test]
fn doctor_says_whether_the_server_would_start() {
    let place = Place::new();
    let examine = |text: &str| -> (i32, Value) {
        place.write("c.toml", text);
        let run = place.run("doctor --json --config c.toml");
        (run.code, serde_json::from_str(&run.out).unwrap())
    };
    let (code, report) = examine("[server]\nlisten = \"127.0.0.1:0\"\ndb = \"here.db\"\n");
    assert_eq!(code, 0, "{report}");
    assert!(checked(&report, "database").1.contains("here.db"));
    assert_eq!(checked(&report, "address").0, "ok");
    assert_eq!(checked(&report, "clock").0, "ok");

    let (code, report) = examine("[server]\nprot = 1\n");
    assert_eq!(code, 1);
    let (state, found) = checked(&report, "configuration");
    assert_eq!(state, "fail");
    assert!(found.contains("c.toml:2: server.prot"), "{found}");

    let (code, report) = examine("[server]\nlisten = \"0.0.0.0:0\"\n");
    assert_eq!(code, 1);
    let (state, found) = checked(&report, "address");
    assert_eq!(state, "fail");
    assert!(found.contains("without keys"), "{found}");

    let upstream = "[upstreams.a]\nformat = \"openai\"\nbase_url = \"https://a.example\"\nkey_env = \"A_KEY\"\n";
    let (code, report) = examine(upstream);
    assert_eq!(code, 1);
    let (state, found) = checked(&report, "upstreams");
    assert_eq!(state, "fail");
    assert!(found.contains("A_KEY"), "{found}");

    std::fs::create_dir_all(place.path("skills/forms")).unwrap();
    let skill = "---\nname: forms\ndescription: Fills in forms.\n---\nStep by step.\n";
    place.write("skills/forms/SKILL.md", skill);
    let (code, report) = examine("[server]\nlisten = \"127.0.0.1:0\"\nskills = [\"skills\"]\n");
    assert_eq!((code, checked(&report, "skills")), (0, ("ok", "1 skill")));
    let (code, report) =
        examine("[server]\nlisten = \"127.0.0.1:0\"\nskills = [\"skills\", \"none\"]\n");
    let (state, found) = checked(&report, "skills");
    assert_eq!((code, state), (0, "warn"));
    assert!(found.contains("1 skill; `none` is none: "), "{found}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (code, report) = examine(&format!("[server]\nlisten = \"{address}\"\n"));
    assert_eq!(code, 0, "{report}");
    let (state, found) = checked(&report, "address");
    assert_eq!(state, "warn");
    assert!(found.contains("is taken"), "{found}");
}

#[cfg(unix)]
#[test]
fn doctor_looks_at_what_lies_around_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let examine = || -> Value {
        let run = place.run("doctor --json --db here.db");
        serde_json::from_str(&run.out).unwrap()
    };
    let missing = examine();
    let text = missing.to_string();
    assert!(
        text.contains("`contexture serve` and `contexture import FILE` make it"),
        "{text}"
    );
    place.write("chat.json", r#"[{"role":"user","content":"hi"}]"#);
    place.ok("--db here.db import chat.json --conversation chat");
    let modes = |file, folder| {
        for end in ["", "-wal", "-shm", "-turn", "-processes"] {
            let path = place.path(&format!("here.db{end}"));
            if path.exists() {
                let mode = if path.is_dir() { folder } else { file };
                std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            }
        }
    };
    // A server makes it.
    std::fs::create_dir_all(place.path("here.db-processes")).unwrap();
    modes(0o600, 0o700);
    let report = examine();
    for name in ["file modes", "disk", "clock and database"] {
        assert_eq!(checked(&report, name).0, "ok", "{name}: {report}");
    }
    assert!(!report.to_string().contains("unfinished"), "{report}");
    modes(0o644, 0o755);
    place.write("backup.db.part", "");
    let report = examine();
    assert_eq!(checked(&report, "file modes").0, "warn");
    // A folder needs its x, or no lock in it can be taken.
    let checks = report["checks"].as_array().unwrap();
    let modes = checks.iter().find(|check| check["name"] == "file modes");
    let hint = modes.unwrap()["hint"].as_str().unwrap();
    let (files, folders) = hint.split_once(" && chmod 700 ").unwrap();
    assert!(files.starts_with("chmod 600 here.db "), "{hint}");
    assert!(!files.contains("-processes"), "{hint}");
    assert!(folders.ends_with("here.db-processes"), "{hint}");
    let (state, found) = checked(&report, "backups");
    assert_eq!(state, "warn");
    assert!(found.contains("backup.db.part"), "{found}");
}

#[test]
fn doctor_notes_both_forms_of_base_url() {
    let place = Place::new();
    let examine = |base: &str| -> String {
        let lines = format!("[upstreams.groq]\nformat = \"openai\"\nbase_url = \"{base}\"\n");
        place.write(
            "c.toml",
            format!("[server]\nlisten = \"127.0.0.1:0\"\n{lines}"),
        );
        let run = place.run("doctor --json --config c.toml");
        assert_eq!(run.code, 0, "{}", run.out);
        run.out
    };
    assert!(examine("https://api.groq.com/openai/v1").contains("the version is sent once"));
    assert!(!examine("https://api.groq.com/openai").contains("the version is sent once"));
}
