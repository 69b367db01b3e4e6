//! What the agents' logs cost, as the command shows it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command::{Place, example};

/// The example logs, as an argument.
fn logs() -> String {
    let folder = fs::canonicalize(example("agent-logs")).unwrap();
    folder.to_string_lossy().into_owned()
}

fn expected(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/expected")
        .join(name)
}

fn report(place: &Place, columns: &str, line: &str) -> String {
    let mut command = place.command();
    command.env("COLUMNS", columns).arg("report").arg(logs());
    let output = command.args(line.split_whitespace()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_report_keeps_to_the_terminal() {
    let place = Place::new();
    for columns in ["50", "80", "120"] {
        let shown = report(&place, columns, "");
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= columns.parse().ok(), "{shown}");
        let golden = expected(&format!("report-{columns}.txt"));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&golden, &shown).unwrap();
        }
        assert_eq!(shown, fs::read_to_string(golden).unwrap(), "{columns}");
    }
    for columns in (50..=200).step_by(5) {
        let shown = report(&place, &columns.to_string(), "--no-policy");
        assert!(
            shown.lines().all(|line| line.chars().count() <= columns),
            "{columns}: {shown}"
        );
        assert!(!shown.contains("policy"));
    }
}

/// The README shows what the command prints, to the letter.
#[test]
fn the_readme_shows_the_report() {
    let shown = report(&Place::new(), "100", "");
    let (shown, _) = shown.split_once("\nBy model").unwrap();
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    assert!(readme.contains(shown), "{shown}");
}

#[test]
fn the_document_adds_up() {
    let place = Place::new();
    let document = place.json(&format!("report --json {}", logs()));
    let total = &document["total"];
    for groups in ["days", "models", "projects"] {
        for figure in [
            "calls",
            "input_tokens",
            "cache_read_tokens",
            "output_tokens",
        ] {
            let groups = document[groups].as_array().unwrap();
            let sum: u64 = groups
                .iter()
                .map(|group| group[figure].as_u64().unwrap())
                .sum();
            assert_eq!(sum, total[figure].as_u64().unwrap(), "{figure}");
        }
    }
    assert_eq!(document["time_zone"], "UTC");
    assert_eq!(document["files"]["logs"], 3);
    assert_eq!(document["policy"]["policy"], "frugal");
    // Each member is described on the page that explains the report.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.md");
    let page = fs::read_to_string(page).unwrap();
    let named = ["files", "total", "breaks", "policy"].map(|name| &document[name]);
    let rows = ["dearest_sessions"].map(|name| &document[name][0]);
    let rows = rows.into_iter().chain([&document["breaks"]["dearest"][0]]);
    for object in named.into_iter().chain(rows).chain([&document]) {
        for name in object.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
    // The same files, the same report, whichever thread read which.
    assert_eq!(document, place.json(&format!("report --json {}", logs())));
}

#[test]
fn filters_choose_calls() {
    let place = Place::new();
    let calls = |filter: &str| {
        let line = format!("report --json --no-policy {} {filter}", logs());
        place.json(&line)["total"]["calls"].as_u64().unwrap()
    };
    let all = calls("");
    let first = calls("--until 2026-11-19");
    assert_eq!(first + calls("--since 2026-11-20"), all);
    assert!(first > 0 && first < all);
    assert_eq!(calls("--since 2026-11-19 --until 2026-11-19"), first);
    assert_eq!(calls("--project marshmallow"), first);
    assert_eq!(calls("--project nothing-of-the-kind"), 0);
    assert_eq!(calls("--since 2026-11-20T00:00:00Z"), all - first);
    for wrong in [
        "--since yesterday",
        "--time-zone Mars/Olympus",
        "--policy none",
    ] {
        let run = place.run(&format!("report {} {wrong}", logs()));
        assert_eq!(run.code, 2, "{wrong}: {}", run.err);
    }
}

#[test]
fn the_page_is_written() {
    let place = Place::new();
    let run = place.run(&format!("report {} --html page.html", logs()));
    assert_eq!(run.code, 0, "{}", run.err);
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("What a policy would have saved"));
    let nowhere = place.run(&format!("report {} --html no/such/page.html", logs()));
    assert_eq!(nowhere.code, 8, "{}", nowhere.err);
}

fn answer(id: &str) -> Value {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 0, "output_tokens": 5});
    json!({"type": "assistant", "uuid": id, "sessionId": id, "timestamp": "2026-11-20T10:00:00Z", "cwd": "/p",
        "message": {"id": id, "role": "assistant", "model": "claude-sonnet-5", "content": [], "usage": usage}})
}

#[test]
fn damage_is_listed_and_never_fatal() {
    let place = Place::new();
    fs::create_dir_all(place.path("logs/deep/deeper")).unwrap();
    place.write("logs/good.jsonl", format!("{}\n", answer("good")));
    let damaged = format!(
        "{}\n{{\"type\":\"assis\n\u{fffd}\n{}",
        answer("a"),
        answer("b")
    );
    let mut damaged = damaged.into_bytes();
    damaged.extend(b"\n\xff\xfe\n");
    place.write("logs/deep/damaged.jsonl", damaged);
    place.write("logs/deep/deeper/cut.jsonl", "{\"type\":\"user\",\"uu");
    place.write("logs/settings.json", "{\"theme\":\"dark\"}");
    place.write("logs/empty.jsonl", "");
    place.write("logs/notes.txt", "not looked at");
    place.write(
        "logs/chat.json",
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#,
    );
    let document = place.json("report --json logs");
    assert_eq!(document["total"]["calls"], 3);
    assert_eq!(document["estimates"][0]["calls"], 1);
    let files = &document["files"];
    assert_eq!((&files["logs"], &files["others"]), (&3.into(), &2.into()));
    let listed = files["damaged"].as_array().unwrap();
    let listed: Vec<(&str, u64)> = listed
        .iter()
        .map(|one| {
            (
                one["file"].as_str().unwrap(),
                one["lines"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("logs/deep/damaged.jsonl", 3),
            ("logs/deep/deeper/cut.jsonl", 0)
        ]
    );
    let shown = place.ok("report logs");
    assert!(
        shown.contains("damaged: logs/deep/damaged.jsonl: line 2"),
        "{shown}"
    );
}

/// Models that the catalogue does not know have tokens, no cost, and no policy that could be tried on them.
#[test]
fn an_unknown_model_costs_nothing_that_is_known() {
    let place = Place::new();
    let mut unknown = answer("a");
    unknown["message"]["model"] = "house-model".into();
    place.write("a.jsonl", format!("{unknown}\n"));
    let shown = place.ok("report a.jsonl");
    for part in [
        "cost not known",
        "house-model",
        "no price",
        "Not known: no call",
        "1 call of models",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_place_without_logs_is_told() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    fs::create_dir(place.path("cut")).unwrap();
    place.write("cut/a.jsonl", "{\"type\":\"user\",\"uu");
    for (line, word) in [
        ("report empty", "no session log found in `empty`"),
        ("report missing", "no such file"),
        ("report cut", "cut/a.jsonl: not JSON, line 1 column"),
        ("report", "neither ~/.claude nor ~/.codex"),
    ] {
        let run = place.run(line);
        assert_eq!(run.code, 3, "{line}: {}", run.err);
        assert!(run.err.contains(word), "{line}: {}", run.err);
    }
}

#[test]
fn the_agents_own_folders_are_the_default() {
    let place = Place::new();
    fs::create_dir_all(place.path(".claude/projects/p")).unwrap();
    place.write(".claude/projects/p/a.jsonl", answer("a").to_string());
    let mut command = place.command();
    let output = command
        .env("HOME", place.path(""))
        .args(["report", "--json", "--no-policy"]);
    let output = output.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["total"]["calls"], 1);
}

#[cfg(unix)]
#[test]
fn links_lead_to_each_log_once() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    fs::create_dir_all(place.path("logs/inner")).unwrap();
    place.write("logs/inner/a.jsonl", answer("a").to_string());
    symlink("..", place.path("logs/inner/circle")).unwrap();
    symlink("inner", place.path("logs/other")).unwrap();
    symlink("inner/a.jsonl", place.path("logs/link.jsonl")).unwrap();
    symlink("nowhere.jsonl", place.path("logs/dead.jsonl")).unwrap();
    let document = place.json("report --json --no-policy logs logs logs/inner/a.jsonl");
    assert_eq!(document["total"]["calls"], 1);
    assert_eq!(document["files"]["logs"], 1);
    assert_eq!(document["copied_calls"], 0);
}

/// A terminal's control characters, and characters that are wide or turn the text, stay harmless.
#[test]
fn words_of_logs_are_harmless() {
    let place = Place::new();
    let mut wild = answer("a");
    wild["cwd"] = "/p/\u{1b}]0;owned\u{7}\u{202e}漢字".into();
    wild["message"]["model"] = "\u{1b}[31mred".into();
    place.write("a.jsonl", format!("{wild}\n"));
    let mut command = place.command();
    let output = command
        .env("COLUMNS", "50")
        .args(["report", "a.jsonl"])
        .output();
    let shown = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(shown.contains("[31mred"), "{shown}");
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
}

/// A log that never ends, in the midst of which somebody presses Ctrl-C.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_it() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;
    let place = Place::new();
    let pipe = place.path("endless.jsonl");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("contexture"));
    let child = command.arg("report").arg(&pipe).stdout(Stdio::null());
    let child = child.stderr(Stdio::piped()).spawn().unwrap();
    let (sender, written) = channel();
    let writer = std::thread::spawn(move || {
        let mut pipe = fs::File::create(pipe).unwrap();
        let line = format!("{}\n", answer("a"));
        // More than the head of a file and a pipe hold: lines are being read. The reader's end closes it.
        for number in 0.. {
            if pipe.write_all(line.as_bytes()).is_err() {
                break;
            }
            if number == 4_000 {
                sender.send(()).unwrap();
            }
        }
    });
    written.recv().unwrap();
    let pressed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(pressed.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("called off with Ctrl-C"));
}
