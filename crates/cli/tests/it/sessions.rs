//! Session files in and out.

use contexture_testdata::{read_text, swe_agent, tau_bench};
use serde_json::Value;

use crate::command::{Place, example};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_session_goes_in_and_comes_out() {
    let place = Place::new();
    for (name, text) in swe_agent() {
        let file = place.write(&name, &text);
        let id = imported(&place, &format!("import {}", file.display()));
        let again = place.ok(&format!("export {id} --to swe-agent"));
        assert!(parsed(&again) == parsed(&text), "{name} differs");
        assert!(
            parsed(&place.ok(&format!("export {id}"))) == parsed(&text),
            "{name}: its own format is the default"
        );
    }
}

/// The id of the one conversation that was imported.
fn imported(place: &Place, line: &str) -> String {
    let report = place.json(&format!("{line} --json"));
    let list = report["imported"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{report}");
    list[0]["conversation"].as_str().unwrap().to_owned()
}

#[test]
fn importing_again_changes_nothing() {
    let place = Place::new();
    let line = format!(
        "import {} --json",
        example("marshmallow-1867.traj").display()
    );
    let (first, second) = (place.json(&line), place.json(&line));
    let items = first["imported"][0]["items"].as_u64().unwrap();
    assert!(items > 20);
    assert_eq!(first["imported"][0]["new"], items);
    assert_eq!(second["imported"][0]["new"], 0);
    assert_eq!(
        place.json("conversations --json")["conversations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let text = place.ok(line.trim_end_matches(" --json"));
    assert!(text.contains("nothing new"), "{text}");
}

#[test]
fn a_name_of_its_own() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    place.ok(&format!(
        "import {} --conversation fix-1867",
        file.display()
    ));
    assert!(place.ok("log fix-1867").contains("user"));
    place.write(
        "other.json",
        r#"[{"role":"user","content":"something else"}]"#,
    );
    let taken = place.run("import other.json --conversation fix-1867");
    assert_eq!(taken.code, 4, "{}", taken.err);
    assert!(
        taken.err.contains("fix-1867") && taken.err.contains("hint:"),
        "{}",
        taken.err
    );
    let two = place.run(&format!(
        "import other.json {} --conversation x",
        file.display()
    ));
    assert_eq!(two.code, 2, "{}", two.err);
}

#[test]
fn a_file_that_grew_or_went_another_way() {
    let place = Place::new();
    let message = |role: &str, text: &str| serde_json::json!({"role": role, "content": text});
    let mut messages = vec![message("user", "a"), message("assistant", "b")];
    let import = |messages: &[Value]| {
        place.write("chat.json", Value::from(messages).to_string());
        place.run("import chat.json --conversation chat")
    };
    assert!(import(&messages).out.contains("2 items"));
    messages.extend(["c", "d", "e"].map(|text| message("user", text)));
    let grown = import(&messages);
    assert!(grown.out.contains("added 3, known 2"), "{}", grown.out);
    assert_eq!((grown.code, grown.err.as_str()), (0, ""));
    messages.truncate(2);
    messages.push(message("user", "other"));
    let parted = import(&messages);
    assert_eq!(parted.code, 0, "{}", parted.err);
    for words in ["after 2 items", "`import-2`", "contexture log chat"] {
        assert!(parted.err.contains(words), "{words}: {}", parted.err);
    }
    let report = place.json("import chat.json --conversation chat --json");
    assert_eq!(report["imported"][0]["parted"], Value::Null);
    messages.truncate(1);
    messages.push(message("assistant", "x"));
    place.write("chat.json", Value::from(messages.as_slice()).to_string());
    let report = place.json("import chat.json --conversation chat --json");
    assert_eq!(
        report["imported"][0]["parted"],
        serde_json::json!({"branch": "import-3", "after": 1})
    );
    let log = place.ok("log chat");
    assert!(
        log.contains("main") && log.contains("import-2") && log.starts_with("@      import-3"),
        "{log}"
    );
}

#[test]
fn instructions_alone_are_kept() {
    let place = Place::new();
    let text = r#"[{"role":"system","content":"Be brief."}]"#;
    place.write("system.json", text);
    let line = "import system.json --conversation s";
    assert!(place.ok(line).contains("instructions only"));
    assert_eq!(parsed(&place.ok("export s")), parsed(text));
    assert!(place.ok("log s").contains("(state changed)"));
    let refused = place.run("compile s --to anthropic");
    assert_eq!(refused.code, 5, "{}", refused.err);
}

#[test]
fn a_rollout_is_drawn_with_its_reasoning() {
    let place = Place::new();
    let line = |kind: &str, payload: Value| {
        serde_json::json!({"type": kind, "payload": payload}).to_string()
    };
    let said = |text: &str| serde_json::json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let lines = [
        line("session_meta", serde_json::json!({"id": "x"})),
        line("response_item", said("<environment>")),
        line("response_item", said("What do they say?")),
        line(
            "event_msg",
            serde_json::json!({"type": "user_message", "message": "What do they say?"}),
        ),
        line(
            "response_item",
            serde_json::json!({
            "type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Looking"}]}),
        ),
        line(
            "response_item",
            serde_json::json!({
            "type": "reasoning", "id": "s", "summary": [], "encrypted_content": "x"}),
        ),
    ];
    place.write("rollout-x.jsonl", lines.join("\n"));
    let out = place.ok("import rollout-x.jsonl");
    assert!(out.contains("4 items  What do they say?"), "{out}");
    let log = place.ok("log codex:x");
    assert!(
        log.contains("(reasoning) Looking") && log.contains("  (reasoning)  "),
        "{log}"
    );
}

#[test]
fn bad_runs_of_a_file_are_listed() {
    let place = Place::new();
    place.write(
        "tau.json",
        r#"[{"task_id":1},{"task_id":2,"traj":[{"role":"user","content":"a"}]}]"#,
    );
    let run = place.run("import tau.json --keep-going --json");
    assert_eq!(run.code, 1, "{}", run.err);
    let report = parsed(&run.out);
    assert_eq!(report["imported"].as_array().unwrap().len(), 1);
    let skipped = report["skipped"][0].as_str().unwrap();
    assert!(
        skipped.contains("record 1") && skipped.contains("no `traj`"),
        "{skipped}"
    );
    place.write("none.json", r#"[{"traj":7}]"#);
    let run = place.run("import none.json --keep-going");
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("session 1"), "{}", run.err);
}

#[test]
fn many_sessions_of_one_file() {
    let place = Place::new();
    place.write("tau.json", tau_bench());
    let report = place.json("import tau.json --json");
    assert_eq!(report["imported"].as_array().unwrap().len(), 200);
    assert_eq!(
        place.json("conversations --json -n 1000")["conversations"]
            .as_array()
            .unwrap()
            .len(),
        200
    );
}

#[test]
fn a_log_whose_records_form_a_tree() {
    let place = Place::new();
    let text = read_text("claude-code/representative_messages.jsonl");
    let file = place.write("session.jsonl", &text);
    let id = imported(&place, &format!("import {}", file.display()));
    let lines = |text: &str| -> Vec<Value> { text.lines().map(parsed).collect() };
    assert_eq!(
        lines(&place.ok(&format!("export {id} --to claude-code"))),
        lines(&text)
    );
    // As another agent's log it cannot be written, as messages it can.
    let refused = place.run(&format!("export {id} --to codex"));
    assert_eq!(refused.code, 5, "{}", refused.err);
    assert!(
        place
            .json(&format!("export {id} --to anthropic"))
            .is_array()
    );
    let file = place.path("out.json");
    assert_eq!(
        place.ok(&format!("export {id} --to ui -o {}", file.display())),
        ""
    );
    assert!(parsed(&std::fs::read_to_string(file).unwrap())[0]["parts"].is_array());
}

#[test]
fn a_log_of_many_trees_and_bad_records() {
    let place = Place::new();
    let file = place.write("edge.jsonl", read_text("claude-code/edge_cases.jsonl"));
    let run = place.run(&format!("import {} --keep-going", file.display()));
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.out.contains("11 branches"), "{}", run.out);
    assert_eq!(run.err.matches("left out").count(), 7, "{}", run.err);
    let id = run.out.split_whitespace().next().unwrap();
    // Trees that share nothing are drawn apart.
    let drawn = place.ok(&format!("log {id} --all"));
    assert_eq!(drawn.split("\n\n").count(), 11, "{drawn}");
}

#[test]
fn going_on_after_bad_records() {
    let place = Place::new();
    let good = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","message":{"role":"user","content":"hi"}}"#;
    place.write(
        "bad.jsonl",
        format!("{good}\n{{\"type\": \"us\n{good}\n").replacen("u1", "u0", 1),
    );
    let stopped = place.run("import bad.jsonl");
    assert_eq!(stopped.code, 6, "{}", stopped.err);
    for words in [
        "bad.jsonl",
        "line 2",
        "1 record was read",
        "nothing was stored",
        "--keep-going",
    ] {
        assert!(stopped.err.contains(words), "{words}: {}", stopped.err);
    }
    assert!(!place.database().exists(), "a wrong file makes no database");
    let going = place.run("import bad.jsonl missing.jsonl --keep-going");
    assert_eq!(going.code, 1, "{}", going.err);
    assert!(going.out.contains("2 items"), "{}", going.out);
    assert!(
        going.err.contains("left out") && going.err.contains("missing.jsonl"),
        "{}",
        going.err
    );
    let report = parsed(&place.run("import bad.jsonl --keep-going --json").out);
    assert_eq!(
        (
            report["skipped"].as_array().unwrap().len(),
            report["imported"][0]["new"].as_u64()
        ),
        (1, Some(0))
    );
}

#[test]
fn standard_input_and_a_named_format() {
    let place = Place::new();
    let chat = r#"[{"role":"user","content":"hi"}]"#;
    let run = place.feed("import - --format openai-chat --conversation hello", chat);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(
        parsed(&place.ok("export hello --to openai-chat")),
        parsed(chat)
    );
    let wrong = place.feed("import - --format tau-bench", chat);
    assert_eq!(wrong.code, 6, "{}", wrong.err);
    assert!(
        wrong.err.contains("tau-bench") && wrong.err.contains("expected"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_folder_is_imported_by_what_its_files_hold() {
    let place = Place::new();
    let session = std::fs::read(example("marshmallow-1867.traj")).unwrap();
    // Named it may be hidden; what is hidden inside is left out.
    for folder in [".agent/b", ".agent/.git", "empty"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    place.write(".agent/b/session", &session);
    place.write(".agent/.git/session", &session);
    place.write(".agent/a.json", r#"[{"role":"user","content":"Hello"}]"#);
    place.write(".agent/settings.json", r#"{"theme":"dark"}"#);
    place.write(".agent/cut.json", r#"{"messages": [{"role": "us"#);
    place.write(".agent/notes.md", "# Notes");
    place.write(".agent/tool.bin", b"\x7fELF\0\0");
    rusqlite::Connection::open(place.path(".agent/other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE t (a)")
        .unwrap();
    let report = place.json("import .agent --json");
    let formats: Vec<&str> = report["imported"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["format"].as_str().unwrap())
        .collect();
    assert_eq!(formats, ["openai-chat", "swe-agent"], "{report}");
    let passed: Vec<&str> = report["passed_over"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["file"].as_str().unwrap().trim_matches('`'))
        .collect();
    let expected = [
        "cut.json",
        "notes.md",
        "other.db",
        "settings.json",
        "tool.bin",
    ];
    assert_eq!(passed, expected.map(|name| format!(".agent/{name}")));
    let run = place.run("import .agent");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.contains("5 files held no session; --verbose"),
        "{}",
        run.err
    );
    let run = place.run("import .agent --verbose");
    assert_eq!(run.err.lines().count(), 6, "{}", run.err);
    let nothing = place.run("import empty");
    assert_eq!(nothing.code, 6, "{}", nothing.err);
    assert!(
        nothing.err.contains("no session in empty"),
        "{}",
        nothing.err
    );
    // A file that is named is not passed over.
    assert_eq!(place.run("import .agent/settings.json").code, 6);
}

#[test]
fn counting_a_session_says_what_is_counted() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    let run = place.run(&format!("count {}", file.display()));
    assert!(
        run.err.contains("is swe-agent: this counts its text"),
        "{}",
        run.err
    );
    assert!(run.err.contains("contexture explain"), "{}", run.err);
    place.write("a.txt", "[1] is no session");
    assert_eq!(place.run("count a.txt").err, "");
}
