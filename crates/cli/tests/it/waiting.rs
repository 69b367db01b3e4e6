//! Runs that wait for a person's word: what they say waits, and that the commands they name work.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::{Place, Run};

/// A run that waits before a note is made.
fn waits(arguments: &Value, options: &str) -> (Place, Run) {
    let place = Place::new();
    place.write("said.txt", "What shall I pack?");
    let call = json!({"calls": [{"name": "create_memory", "arguments": arguments}]});
    place.write("answers.jsonl", format!("{call}\n"));
    place.write("REST", "\"Done.\"\n");
    let line = format!("run said.txt -c trip --memory --ask * --script answers.jsonl {options}");
    let run = place.run(&line);
    assert_eq!(run.code, 1, "{}", run.err);
    (place, run)
}

fn note() -> Value {
    json!({"key": "diet", "value": "no peanuts"})
}

/// The words behind this in what was said, without the quotes of a shell.
fn command(said: &str, intro: &str) -> Vec<String> {
    let line = said.lines().find_map(|line| line.strip_prefix(intro));
    let line = line.unwrap_or_else(|| panic!("no {intro:?}: {said}"));
    let words = line.trim().strip_prefix("contexture ").unwrap();
    let quoted = words.split('\'').enumerate();
    let words = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn what_waits_is_named_and_the_commands_told_do_it() {
    for (intro, stored) in [("to allow", true), ("to deny", false)] {
        let (place, run) = waits(&note(), "--window 50k");
        let said = r#" create_memory {"key":"diet","value":"no peanuts"}"#;
        assert!(run.err.contains(said), "{}", run.err);
        let words = command(&run.err, intro);
        for option in ["--memory", "--ask", "*", "--window", "50000", "--script"] {
            assert!(words.iter().any(|word| word == option), "{words:?}");
        }
        let mut resume = place.command();
        let output = resume.args(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(output.stdout, b"Done.\n");
        let exported = place.ok("export trip --to openai-chat");
        assert_eq!(exported.contains("why not"), !stored, "{exported}");
        let notes = place.ok("memory list -c trip");
        assert_eq!(notes.contains("no peanuts"), stored, "{notes}");
    }
}

#[test]
fn long_arguments_are_cut_and_programs_get_them_whole() {
    let long = json!({"key": "diet", "value": "peanuts ".repeat(100)});
    let (place, run) = waits(&long, "--json");
    let told: Value = serde_json::from_str(&run.out).unwrap();
    let waiting = &told["waiting"][0];
    let tool = (&waiting["tool"], &waiting["arguments"]);
    assert_eq!(tool, (&json!("create_memory"), &long));

    let listed = place.run("runs");
    let line = listed.out.trim_end();
    assert!(line.starts_with("waiting "), "{line}");
    let call = waiting["call"].as_str().unwrap();
    let told = format!("  for {} create_memory {{\"key\":\"diet\"", &call[..12]);
    assert!(line.contains(&told) && line.ends_with('…'), "{line}");
    assert!(line.chars().count() < 200, "{line}");
    assert!(
        listed.err.contains("--deny CALL --reason TEXT"),
        "{}",
        listed.err
    );
    let json = place.json("runs --json");
    assert_eq!(&json["runs"][0]["waiting"][0], waiting);
    // Taken up without a word, it waits on and says so.
    let id = json["runs"][0]["run"].as_str().unwrap();
    let resumed = place.run(&format!("resume {id} --memory --ask * --script REST"));
    assert_eq!(resumed.code, 1, "{}", resumed.err);
    assert!(
        resumed.err.starts_with("waits for your word:\n"),
        "{}",
        resumed.err
    );
}

#[test]
fn a_chat_that_nobody_answers_leaves_the_call_to_be_decided() {
    let place = Place::new();
    let call = json!({"calls": [{"name": "create_memory", "arguments": note()}]});
    place.write("answers.jsonl", format!("{call}\n"));
    let line = "chat -c trip --memory --ask * --script answers.jsonl";
    let left = place.feed(line, "No peanuts");
    assert_eq!(left.code, 1, "{}", left.err);
    let allow = command(&left.err, "to allow");
    let again = place.run(line);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.starts_with("run "), "{}", again.err);
    assert_eq!(command(&again.err, "to allow"), allow, "{}", again.err);
}

#[cfg(unix)]
#[test]
fn ctrl_c_at_approval_prompt_aborts_run_and_chat_continues() {
    let place = Place::new();
    let call = json!({"calls": [{"name": "create_memory", "arguments": note()}]});
    place.write("answers.jsonl", format!("{call}\n\"Still here.\"\n"));
    let line = "chat -c trip --memory --ask * --script answers.jsonl";
    let mut chat = std::process::Command::new(assert_cmd::cargo::cargo_bin!("contexture"))
        .current_dir(place.path("."))
        .env_clear()
        .env("XDG_DATA_HOME", place.path("data"))
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = chat.stdin.take().unwrap();
    writeln!(said, "No peanuts").unwrap();
    let mut told = BufReader::new(chat.stderr.take().unwrap());
    let mut question = Vec::new();
    told.read_until(b'?', &mut question).unwrap();
    let mut rest = [0; 8];
    told.read_exact(&mut rest).unwrap();
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &chat.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    let mut cut = String::new();
    while !cut.contains("cut off") {
        assert!(told.read_line(&mut cut).unwrap() > 0, "{cut}");
    }
    writeln!(said, "Are you there?").unwrap();
    drop(said);
    let mut out = String::new();
    chat.stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    told.read_to_string(&mut cut).unwrap();
    assert_eq!(out, "Still here.\n", "{cut}");
    chat.wait().unwrap();
    let runs = place.json("runs --json");
    assert_eq!(runs["runs"][1]["status"], "aborted", "{runs}");
    assert_eq!(place.ok("memory list -c trip"), "");
}

#[test]
fn what_waits_is_cancelled_by_the_beginning_of_its_id() {
    let (place, run) = waits(&note(), "--json");
    let told: Value = serde_json::from_str(&run.out).unwrap();
    let id = &told["run"].as_str().unwrap()[..12];
    let cancelled = place.run(&format!("cancel {id} --reason withdrawn"));
    assert_eq!(
        (cancelled.code, cancelled.out.as_str()),
        (0, ""),
        "{}",
        cancelled.err
    );
    assert_eq!(cancelled.err, format!("{id} is aborted\n"));
    let listed = place.ok("runs");
    assert!(listed.starts_with("aborted "), "{listed}");
    assert!(listed.contains("withdrawn"), "{listed}");
    // Once more changes nothing; the document is that of `runs`.
    let again = place.ok(&format!("cancel {id} --json"));
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(
        (&again["status"], &again["why"]),
        (&json!("aborted"), &json!("withdrawn"))
    );
    assert_eq!(place.run("cancel ffffffff").code, 3);
}
