//! Chats, piped: what is said, what is answered, what the commands do.

use serde_json::{Value, json};

use crate::command::{Place, Run};

/// Feeds lines to a chat whose script is these answers.
fn chat(place: &Place, answers: &[Value], flags: &str, lines: &[&str]) -> Run {
    let script: Vec<String> = answers.iter().map(|line| format!("{line}\n")).collect();
    place.write("answers.jsonl", script.concat());
    let line = format!("chat -c trip --script answers.jsonl {flags}");
    place.feed(&line, lines.join("\n"))
}

fn noting() -> Value {
    let arguments = json!({"key": "diet", "value": "no peanuts"});
    json!({"calls": [{"name": "create_memory", "arguments": arguments}]})
}

#[test]
fn each_line_is_a_turn_of_one_conversation() {
    let place = Place::new();
    let answers = [json!("Hello."), noting(), json!("Noted.")];
    let run = chat(
        &place,
        &answers,
        "--memory",
        &["Hi", "", "No peanuts", "/memory"],
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out, "Hello.\nNoted.\ndiet  no peanuts  now\n");
    assert_eq!(run.err.matches("run ").count(), 2, "{}", run.err);
    assert!(!run.err.contains('›'), "a prompt for nobody: {}", run.err);
    assert_eq!(place.ok("runs -c trip").lines().count(), 2);

    let again = chat(
        &place,
        &[json!("Yes.")],
        "--json",
        &[
            "Still there?",
            "/checkpoint here",
            "/branch",
            "/quit",
            "never said",
        ],
    );
    assert_eq!(again.code, 0, "{}", again.err);
    let told = again.documents();
    assert_eq!((told.len(), &told[0]["text"]), (3, &json!("Yes.")));
    assert_eq!(
        (&told[1]["name"], &told[2]["branches"][0]["name"]),
        (&json!("here"), &json!("main"))
    );
    let exported = place.ok("export trip --to openai-chat");
    assert!(!exported.contains("never said"), "{exported}");
}

#[test]
fn places_are_kept_and_gone_back_to() {
    let place = Place::new();
    let answers = ["One.", "Two.", "Three.", "Two again."].map(|text| json!(text));
    let lines = [
        "first",
        "/checkpoint early",
        "second",
        "third",
        "/rewind 2",
        "second again",
        "/branch what-if",
        "/branch main",
        "/branch",
        "/rewind 9",
    ];
    let run = chat(&place, &answers, "", &lines);
    // The last command failed.
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(
        run.err.contains("said only 3 things here") && run.err.contains("/rewind 3 begins anew"),
        "{}",
        run.err
    );
    for told in [
        "◆ early · ",
        "now on branch main-v2",
        "now on branch what-if",
        "now on branch main ",
    ] {
        assert!(run.out.contains(told), "{told}: {}", run.out);
    }
    let rewound = place.ok("export trip --branch main-v2 --to openai-chat");
    assert!(
        rewound.contains("first") && rewound.contains("Two again."),
        "{rewound}"
    );
    assert!(!rewound.contains("Three."), "{rewound}");
    let main = place.ok("export trip --branch main --to openai-chat");
    assert!(main.contains("Three.") && !main.contains("again"), "{main}");
}

#[test]
fn before_the_first_thing_said_a_chat_begins_anew() {
    let place = Place::new();
    let answers = ["One.", "Two.", "Anew."].map(|text| json!(text));
    let lines = [
        "/rewind",
        "first",
        "second",
        "/rewind 2",
        "/branch",
        "begin anew",
    ];
    let run = chat(&place, &answers, "", &lines);
    // Only the first command failed, there being nothing to go back to.
    assert_eq!((run.code, run.err.matches("error:").count()), (1, 1));
    assert!(run.err.contains("said nothing here yet"), "{}", run.err);
    for told in ["now on branch main-v2 · 0 messages", "(empty)", "Anew."] {
        assert!(run.out.contains(told), "{told}: {}", run.out);
    }
    let anew = place.ok("export trip --to openai-chat");
    assert!(anew.contains("begin anew") && !anew.contains("first"));
    let main = place.ok("export trip --branch main --to openai-chat");
    assert!(main.contains("second") && !main.contains("anew"), "{main}");
}

#[test]
fn commands_explain_and_compact() {
    let place = Place::new();
    let answers: Vec<Value> = (0..8).map(|_| json!("word ".repeat(400))).collect();
    let mut lines = vec!["say much"; 8];
    lines.extend(["/compact", "/explain"]);
    let run = chat(&place, &answers, "--window 16k", &lines);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.contains("compaction ") && run.out.contains(" stands for "),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("payload") && run.out.contains("read_context"),
        "{}",
        run.out
    );
}

#[test]
fn what_is_no_command_says_what_there_is() {
    let place = Place::new();
    let run = chat(
        &place,
        &[json!("Fine.")],
        "",
        &["/hlep", "/skills", "/memory", "/help", "Hi"],
    );
    assert_eq!(
        (run.code, run.out.lines().last()),
        (1, Some("Fine.")),
        "{}",
        run.err
    );
    for said in [
        "there is no command /hlep",
        "/help lists the commands",
        "without --skills",
        "without --memory",
    ] {
        assert!(run.err.contains(said), "{said}: {}", run.err);
    }
    for command in [
        "branch",
        "rewind",
        "checkpoint",
        "compact",
        "explain",
        "skills",
        "memory",
        "quit",
    ] {
        assert!(
            run.out.contains(&format!("/{command} ")),
            "{command}: {}",
            run.out
        );
    }
}

#[test]
fn a_turn_that_fails_is_told_and_the_chat_goes_on() {
    let place = Place::new();
    let call = json!({"calls": [{"name": "nothing_like_that"}]});
    let run = chat(
        &place,
        &[call, json!("Sorry.")],
        "",
        &["Try", "And now?", "/checkpoint end"],
    );
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.out.starts_with("Sorry.\n◆ end"), "{}", run.out);
    assert!(run.err.contains("the script has 2 answers"), "{}", run.err);
    let none = place.feed("chat --to anthropic", "Hi");
    assert_eq!(none.code, 2, "{}", none.err);
    assert!(none.err.contains("ANTHROPIC_API_KEY"), "{}", none.err);
}

#[test]
fn a_chat_asks_before_a_tool_is_called() {
    for (word, stored) in [("y", true), ("n", false), ("not today", false)] {
        let place = Place::new();
        let answers = [noting(), json!("Done.")];
        let run = chat(
            &place,
            &answers,
            "--memory --ask *",
            &["No peanuts", word, "/memory"],
        );
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.err.contains("? create_memory {"), "{}", run.err);
        assert!(run.out.starts_with("Done.\n"), "{}", run.out);
        assert_eq!(
            run.out.contains("no peanuts"),
            stored,
            "{word}: {}",
            run.out
        );
        let exported = place.ok("export trip --to openai-chat");
        assert_eq!(
            exported.contains("not today"),
            word == "not today",
            "{exported}"
        );
    }
}
