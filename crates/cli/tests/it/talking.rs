//! Talking to a model: turns from scripts and recordings, what they leave, going on with one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::command::Place;

/// A place with something to say in `said.txt`, and a script.
fn place(script: &[Value]) -> Place {
    let place = Place::new();
    place.write("said.txt", "What shall I pack?\n");
    write(&place, "answers.jsonl", script);
    place
}

fn write(place: &Place, name: &str, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write(name, lines.concat());
}

/// An answer that makes a note.
fn noting() -> Value {
    let arguments = json!({"key": "diet", "value": "no peanuts"});
    json!({"text": "First a note.", "calls": [{"name": "create_memory", "arguments": arguments}]})
}

#[test]
fn a_turn_streams_its_text_and_tells_the_rest_beside() {
    let place = place(&[noting(), json!("Rice crackers.\nAn apple.")]);
    let run = place.run("run said.txt --script answers.jsonl --memory -c trip");
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out, "First a note.\nRice crackers.\nAn apple.\n");
    let told: Vec<&str> = run.err.lines().collect();
    assert!(told[0].starts_with("→ create_memory {\"key\""), "{told:?}");
    assert!(told[1].starts_with("← "), "{told:?}");
    assert!(
        told[2].starts_with("run ") && told[2].contains("2 answers, 3 steps"),
        "{told:?}"
    );
    assert_eq!(place.ok("memory get diet -c trip"), "no peanuts\n");

    let quiet = place.run("run said.txt --script answers.jsonl --memory -c other -q");
    assert_eq!((quiet.out.lines().count(), quiet.err.as_str()), (3, ""));
}

#[test]
fn every_provider_s_answers_can_be_scripted() {
    for format in ["anthropic", "openai-chat", "openai-responses", "gemini"] {
        let place = place(&[noting(), json!("Done.")]);
        let line =
            format!("run said.txt --script answers.jsonl --memory -c trip --to {format} --json");
        let told = place.json(&line);
        assert_eq!(told["end"], "completed", "{format}: {told}");
        assert_eq!(told["text"], "Done.", "{format}");
        assert_eq!(told["spent"]["responses"], 2, "{format}");
        assert_eq!(
            place.ok("memory get diet -c trip"),
            "no peanuts\n",
            "{format}"
        );
    }
}

#[test]
fn a_conversation_goes_on_and_a_new_one_is_named() {
    let place = place(&[json!("Crackers.")]);
    for _ in 0..2 {
        place.ok("run said.txt --script answers.jsonl -c trip");
    }
    let exported = place.ok("export trip --to openai-chat");
    let items = place.json("export trip");
    assert_eq!(items["items"].as_array().unwrap().len(), 4, "{items}");
    assert_eq!(
        exported.matches("What shall I pack?").count(),
        2,
        "{exported}"
    );
    assert_eq!(exported.matches("Crackers.").count(), 2, "{exported}");

    let new = place.feed("run - --script answers.jsonl", "Hello");
    assert!(new.err.starts_with("conversation chat-"), "{}", new.err);
    assert_eq!(place.ok("conversations").lines().count(), 2);
}

#[test]
fn runs_are_listed_with_how_they_ended() {
    let place = place(&[noting()]);
    let failed = place.run("run said.txt --script answers.jsonl --memory -c trip");
    assert_eq!(failed.code, 9, "{}", failed.err);
    assert!(
        failed.err.contains("the script has 1 answer"),
        "{}",
        failed.err
    );
    assert_eq!(failed.out, "First a note.\n");
    write(&place, "answers.jsonl", &[json!("Done.")]);
    place.ok("run said.txt --script answers.jsonl -c trip");
    place.ok("run said.txt --script answers.jsonl -c other");

    let table = place.ok("runs");
    let status = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    let all: Vec<String> = table.lines().map(status).collect();
    assert_eq!(all, ["completed", "completed", "failed"], "{table}");
    let listed = place.json("runs -c trip --json");
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(
        (&runs[0]["result"], &runs[0]["branch"]),
        (&json!("Done."), &json!("main"))
    );
    assert_eq!(runs[0]["spent"]["responses"], 1);
    assert!(
        runs[1]["why"].as_str().unwrap().contains("no answer"),
        "{listed}"
    );
}

#[test]
fn budgets_end_a_run_and_keep_what_was_finished() {
    let place = place(&[noting(), json!("Done.")]);
    let run = place.run("run said.txt --script answers.jsonl --memory -c trip --max-steps 2");
    assert_eq!(run.code, 5, "{}", run.err);
    assert!(
        run.err.contains("the budget of steps is used up: 2 of 2"),
        "{}",
        run.err
    );
    assert!(run.err.contains("--max-steps"), "{}", run.err);
    assert_eq!(place.ok("memory get diet -c trip"), "no peanuts\n");
    let none = place.run("run said.txt --script answers.jsonl --budget-tokens 0");
    assert_eq!((none.code, none.out.as_str()), (5, ""));
}

#[test]
fn without_a_key_the_variable_is_named() {
    let place = place(&[]);
    for (to, variable) in [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai-responses", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ] {
        let run = place.run(&format!("run said.txt --to {to}"));
        assert_eq!(run.code, 2, "{}", run.err);
        let expected = format!("error: {to}: no key: set {variable}");
        assert!(run.err.starts_with(&expected), "{}", run.err);
        assert!(run.err.contains("--script"), "{}", run.err);
    }
    let model = place.run("run said.txt --model gpt-5.4");
    assert!(model.err.contains("OPENAI_API_KEY"), "{}", model.err);
    let json = place.run("run said.txt --json");
    assert!(json.err.contains(r#""kind":"no_model""#), "{}", json.err);
    // Nothing was said, so nothing is kept.
    assert_eq!(place.ok("conversations"), "");
}

#[test]
fn what_is_no_script_is_refused_with_its_line() {
    let place = place(&[json!("Fine."), json!(7)]);
    let bad = |said: &str| {
        let run = place.run("run said.txt --script answers.jsonl");
        assert_eq!(run.code, 6, "{}", run.err);
        assert!(run.err.contains(said), "{}", run.err);
    };
    bad("`answers.jsonl` line 2: expected a text in quotes or an object");
    write(&place, "answers.jsonl", &[json!({"calls": [{"nam": "x"}]})]);
    bad("`answers.jsonl` line 1: unknown field `nam`");
    place.write("answers.jsonl", "\n{\"calls\": [\n");
    bad("line 2: truncated JSON");
    place.write("answers.jsonl", "\n");
    bad("`answers.jsonl` is empty");
    let none = place.run("run said.txt --script nowhere.jsonl");
    assert_eq!(none.code, 3, "{}", none.err);
    place.write("said.txt", " \n");
    write(&place, "answers.jsonl", &[json!("Fine.")]);
    bad("nothing is said");
}

#[test]
fn a_recording_answers_the_requests_it_knows() {
    let place = place(&[json!("Crackers.")]);
    place.ok("run said.txt --script answers.jsonl -c first");
    let request: Value = place.json("replay first last");
    let response = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "As recorded."}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let exchange = json!({"request": request, "response": response});
    write(&place, "recorded.jsonl", &[exchange]);
    assert_eq!(
        place.ok("run said.txt --replay recorded.jsonl -c second"),
        "As recorded.\n"
    );
    let other = place.feed("run - --replay recorded.jsonl -c third", "Something else");
    assert_eq!(other.code, 9, "{}", other.err);
    assert!(
        other.err.contains("no recorded request is"),
        "{}",
        other.err
    );
}

/// A provider on this machine that gives one answer, and never the second.
fn hangs_at_the_second(answer: &Value) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let body = answer.to_string();
    let (asked, second) = channel();
    std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        read_request(&first);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        write!(
            first,
            "{head}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        drop(first);
        let held = listener.accept().unwrap();
        asked.send(()).unwrap();
        std::thread::park();
        drop(held);
    });
    (address, second)
}

/// Reads a request to its end, and gives its body.
pub(crate) fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn a_run_that_was_killed_between_two_steps_goes_on() {
    let place = place(&[json!("Rice crackers.")]);
    let call = json!({"type": "tool_use", "id": "call_1", "name": "create_memory",
        "input": {"key": "diet", "value": "no peanuts"}});
    let answer = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "First a note."}, call], "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let (address, second) = hangs_at_the_second(&answer);
    let line = format!("run said.txt -c trip --memory --base-url {address}");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("contexture"))
        .current_dir(place.path("."))
        .env_clear()
        .env("XDG_DATA_HOME", place.path("data"))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    second.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let listed = place.json("runs --json");
    assert_eq!(listed["runs"][0]["status"], "running", "{listed}");
    let id = listed["runs"][0]["run"].as_str().unwrap();
    let resumed = place.run(&format!("resume {id} --memory --script answers.jsonl"));
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(resumed.out, "Rice crackers.\n");
    assert!(
        resumed.err.contains("2 answers, 3 steps"),
        "{}",
        resumed.err
    );
    assert_eq!(place.ok("memory get diet -c trip"), "no peanuts\n");
    let exported = place.ok("export trip --to anthropic");
    for once in [
        "What shall I pack?",
        "First a note.",
        "create_memory",
        "Rice crackers.",
    ] {
        assert_eq!(exported.matches(once).count(), 1, "{once}: {exported}");
    }
    assert_eq!(place.json("runs --json")["runs"][0]["status"], "completed");
}

#[test]
fn only_an_open_run_is_resumed() {
    let place = place(&[json!("Crackers.")]);
    let told = place.json("run said.txt --script answers.jsonl -c trip --json");
    let run = told["run"].as_str().unwrap();
    let ended = place.run(&format!("resume {run} --script answers.jsonl"));
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(
        ended.err.contains("found a run that has ended"),
        "{}",
        ended.err
    );
    let none = place.run("resume ffffffff --script answers.jsonl");
    assert!(none.err.contains("no run \"ffffffff\""), "{}", none.err);
    assert_eq!(place.run("resume f --script answers.jsonl").code, 2);
}

#[test]
fn calls_wait_for_a_word_and_what_is_denied_never_runs() {
    for (word, stored) in [("--allow", true), ("--deny", false)] {
        let place = place(&[noting()]);
        let line = "run said.txt --memory --script answers.jsonl -c trip";
        let waiting = place.run(&format!("{line} --ask create_memory --json"));
        assert_eq!(waiting.code, 1, "{}", waiting.err);
        let told: Value = serde_json::from_str(&waiting.out).unwrap();
        assert_eq!(told["end"], "waiting");
        let (run, call) = (
            told["run"].as_str().unwrap(),
            told["waiting"][0]["call"].as_str().unwrap(),
        );
        assert!(place.ok("runs").starts_with("waiting"), "{told}");
        assert_eq!(place.ok("memory list -c trip"), "");

        write(&place, "answers.jsonl", &[json!("Done.")]);
        // Without --ask: a word once given counts all the same.
        let line = format!("resume {run} {word} {call} --memory --script answers.jsonl");
        let resumed = place.run(&line);
        assert_eq!(
            (resumed.code, resumed.out.as_str()),
            (0, "Done.\n"),
            "{}",
            resumed.err
        );
        let notes = place.ok("memory list -c trip");
        assert_eq!(notes.contains("no peanuts"), stored, "{word}: {notes}");
        let exported = place.ok("export trip --to openai-chat");
        assert_eq!(exported.contains("the user said no"), !stored, "{exported}");
    }
}
