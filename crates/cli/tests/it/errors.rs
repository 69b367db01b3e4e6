//! What the user sees when something is wrong: what happened, to what, and what to do.

use serde_json::Value;

use crate::command::{Place, Run, example};
use crate::sample;

fn check(place: &Place, line: &str, code: i32, said: &[&str]) -> Run {
    let run = place.run(line);
    assert_eq!(run.code, code, "{line}: {}{}", run.out, run.err);
    assert_eq!(run.out, "", "{line}: results only on success");
    assert!(run.err.starts_with("error: "), "{line}: {}", run.err);
    for words in said {
        assert!(
            run.err.contains(words),
            "{line}: {words:?} is missing in {}",
            run.err
        );
    }
    run
}

#[test]
fn bad_files() {
    let place = Place::new();
    place.write("truncated.json", r#"{"messages": [{"role": "us"#);
    place.write("binary.json", b"\x7fELF\0\0\0\0\0\xff\xfe");
    place.write("latin1.txt", b"caf\xe9");
    place.write("list.json", r#"{"candidates": []}"#);
    place.write("empty.json", "");
    place.write("nothing.json", r#"{"a": 1}"#);
    std::fs::create_dir(place.path("folder")).unwrap();
    for command in ["convert --to anthropic", "compile --to anthropic", "import"] {
        check(
            &place,
            &format!("{command} truncated.json"),
            6,
            &["truncated.json", "truncated JSON", "line 1", "hint:"],
        );
        check(
            &place,
            &format!("{command} empty.json"),
            6,
            &["empty.json", "it is empty"],
        );
        check(
            &place,
            &format!("{command} binary.json"),
            6,
            &["binary.json", "binary file"],
        );
        check(
            &place,
            &format!("{command} ./missing.json"),
            3,
            &["missing.json", "no such file", "hint:"],
        );
        let said = match command {
            "import" => ["no session in folder/", "hint:"],
            _ => ["folder", "is a directory"],
        };
        check(&place, &format!("{command} folder/"), 6, &said);
        check(
            &place,
            &format!("{command} nothing.json"),
            6,
            &["nothing.json", "format", "hint:"],
        );
    }
    check(
        &place,
        "count latin1.txt",
        6,
        &["latin1.txt", "not UTF-8", "byte 3", "iconv"],
    );
    check(
        &place,
        "render truncated.json",
        6,
        &["truncated.json", "truncated JSON"],
    );
    check(
        &place,
        "convert list.json --from anthropic --to gemini",
        6,
        &["list.json", "anthropic", "expected", "hint:"],
    );
}

#[test]
fn bad_command_lines() {
    let place = Place::new();
    let usage = |line: &str, said: &[&str]| {
        let run = place.run(line);
        assert_eq!(run.code, 2, "{line}: {}", run.err);
        for words in said {
            assert!(
                run.err.contains(words),
                "{line}: {words:?} is missing in {}",
                run.err
            );
        }
    };
    usage(
        "convert x.json --to morse",
        &["morse", "anthropic", "gemini"],
    );
    usage(
        "compile x.json --to gemini --window many",
        &["expected a number of tokens", "16k"],
    );
    usage(
        "compile x.json --to gemini --param temperature",
        &["KEY=JSON"],
    );
    usage(
        "compile x.json --to gemini --param stop=word",
        &["not JSON", "quotes"],
    );
    usage(
        "count --encoding utf8 x.txt",
        &["unknown encoding", "o200k_base"],
    );
    usage("compile x.json --to items", &["items", "anthropic"]);
    usage("frobnicate", &["frobnicate"]);
    usage("compile x.json", &["--to"]);
}

#[test]
fn unknown_model_with_window_is_compiled_with_estimates() {
    let place = Place::new();
    place.write("chat.json", r#"[{"role":"user","content":"hi"}]"#);
    let run =
        place.run("compile chat.json --to openai-chat --model qwen9 --window 32k --report json");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains(r#""model":"qwen9""#), "{}", run.out);
    assert!(
        run.err.contains(r#""qwen9" is not in the catalogue"#),
        "{}",
        run.err
    );
    assert!(run.err.contains(r#""window":32000"#), "{}", run.err);
    place.ok("import chat.json --conversation chat");
    for source in ["chat.json", "chat"] {
        let line =
            format!("explain {source} --to anthropic --model qwen9 --window 32k --items -q --json");
        let explained = place.json(&line);
        assert_eq!(
            explained["report"]["target"]["window"], 32_000,
            "{explained}"
        );
        assert_eq!(explained["report"]["totals"]["exact"], false);
        assert!(explained["items"].is_array(), "{explained}");
    }
}

#[test]
fn models() {
    let place = Place::new();
    let file = place.write("chat.json", r#"[{"role":"user","content":"hi"}]"#);
    let file = file.display();
    let near = [
        "unknown model \"claude-sonet-5\"",
        "did you mean claude-sonnet-5",
    ];
    check(
        &place,
        &format!("compile {file} --to anthropic --model claude-sonet-5"),
        3,
        &near,
    );
    check(&place, "count --model claude-sonet-5", 3, &near);
    check(
        &place,
        &format!("compile {file} --to anthropic --model banana"),
        3,
        &["banana", "doctor --models"],
    );
}

#[test]
fn windows_that_are_too_small() {
    let place = Place::new();
    let file = place.write("chat.json", r#"[{"role":"system","content":"You are terse. Follow the twelve rules of the house, in their order."},{"role":"user","content":"hi"}]"#);
    let file = file.display();
    let run = check(
        &place,
        &format!("compile {file} --to openai-chat --window 30 --reserve 10"),
        5,
        &[
            "does not fit",
            "20 allowed",
            "window 30",
            "reserve 10",
            "instructions",
            "hint:",
            "--window",
        ],
    );
    assert!(run.err.lines().count() >= 4, "{}", run.err);
    check(
        &place,
        &format!("compile {file} --to gemini --window 10 --reserve 10"),
        5,
        &["reserve 10", "hint:"],
    );
    let run = place.run(&format!(
        "compile {file} --to openai-chat --window 30 --reserve 10 --json"
    ));
    let error: Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!(error["error"]["kind"], "does_not_fit");
    assert_eq!(error["error"]["details"]["window"], 30);
}

#[test]
fn databases() {
    let place = Place::new();
    check(&place, "log support-42", 3, &["no database", "import"]);
    check(&place, "conversations --db other.db", 3, &["other.db"]);
    // Nobody listens at port 1.
    let nowhere = "conversations --db postgres://ada:secret@127.0.0.1:1/db";
    check(&place, nowhere, 7, &["127.0.0.1:1", "hint:"]);
    assert!(!place.run(nowhere).err.contains("secret"));
    place.write("text.db", "no database ".repeat(1_000));
    check(
        &place,
        "conversations --db text.db",
        7,
        &["text.db", "hint:"],
    );
    sample::support(&place);
    check(
        &place,
        "log nobody",
        3,
        &["no conversation \"nobody\"", "contexture conversations"],
    );
    check(
        &place,
        "log support-42 --owner acme",
        3,
        &["no conversation"],
    );
    check(
        &place,
        "show support-42 ffffffffff",
        3,
        &["ffffffffff", "contexture log"],
    );
    check(&place, "show support-42 ff", 2, &["too short"]);
    check(
        &place,
        "rewind support-42 not-a-message",
        3,
        &["not-a-message"],
    );
    check(
        &place,
        "branch switch support-42 nowhere",
        3,
        &["no branch \"nowhere\""],
    );
    check(
        &place,
        "compile support-42 --to gemini --branch nowhere",
        3,
        &["no branch \"nowhere\""],
    );
    check(
        &place,
        "compile nobody --to gemini",
        3,
        &["no conversation \"nobody\"", "no file `nobody`"],
    );
}

#[test]
fn a_database_of_a_newer_version() {
    let place = Place::new();
    sample::support(&place);
    let file = place.database();
    // What every version of ours reads first.
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    connection
        .execute_batch("UPDATE format SET min_reader = 99, min_writer = 99")
        .unwrap();
    drop(connection);
    check(
        &place,
        "log support-42",
        7,
        &["newer", "upgrade contexture"],
    );
}

#[cfg(unix)]
#[test]
fn a_directory_one_may_not_write_to() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    let folder = place.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write anywhere: nothing to see then.
    let open = std::fs::write(folder.join("probe"), "").is_ok();
    let file = example("marshmallow-1867.traj");
    if !open {
        let line = format!("import {} --db locked/new.db", file.display());
        check(&place, &line, 7, &["locked/new.db", "hint:", "--db"]);
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    if cfg!(target_os = "linux") {
        // Where nobody may, the superuser included.
        let line = format!("import {} --db /proc/new.db", file.display());
        check(&place, &line, 7, &["/proc/new.db", "hint:", "--db"]);
    }
    check(
        &place,
        &format!("import {} --db nowhere/new.db", file.display()),
        7,
        &["no directory `nowhere`"],
    );
}

#[cfg(unix)]
#[test]
fn whoever_reads_may_stop_reading() {
    let place = Place::new();
    sample::long(&place, "long", 10_000);
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("contexture"))
        .args(["log", "long", "--all"])
        .env("XDG_DATA_HOME", place.path("data"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn errors_as_data() {
    let run = Place::new().run("count --json missing.txt");
    assert_eq!((run.code, run.out.as_str()), (3, ""));
    let error: Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!(error["error"]["kind"], "no_such_file");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("missing.txt")
    );
    assert!(error["error"]["hint"].is_string());
    let run = Place::new().run("convert x.json --to morse --json");
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    let error: Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!(error["error"]["kind"], "usage");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("invalid value 'morse'"),
        "{error}"
    );
}

#[test]
fn nothing_in_a_name_reaches_the_terminal() {
    let run = Place::new()
        .command()
        .args(["log", "a\u{1b}[31mb", "--color", "always"])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&run.stderr).contains("\u{1b}[31mb"));
}
