//! One JSON document a line in, one a line out.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::Place;

fn check(line: &str, input: &str, expected: &[Value], code: i32) {
    let run = Place::new().feed(line, input);
    assert_eq!(run.documents(), expected, "{line}");
    assert_eq!((run.code, run.err.as_str()), (code, ""), "{line}");
}

#[test]
fn render() {
    let input = concat!(
        r#"{"fragments":[{"name":"hint","data":"a < b"}]}"#,
        "\n",
        r#"[{"type":"hint","text":"one"},{"type":"hint","text":"two"}]"#,
        "\n",
        r#"{"fragments":[]}"#,
    );
    let output = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| json!({ "output": text }))
            .collect::<Vec<_>>()
    };
    let xml = output(&[
        "<hint>a &lt; b</hint>",
        "<hint>one</hint>\n<hint>two</hint>",
        "",
    ]);
    check("render --format xml --jsonl", input, &xml, 0);
    check("render --jsonl", input, &xml, 0);
    let nested =
        r#"[{"name":"rules","data":[{"name":"hint","data":"one"},{"name":"hint","data":"two"}]}]"#;
    let grouped =
        "<rules>\n  <hints>\n    <hint>one</hint>\n    <hint>two</hint>\n  </hints>\n</rules>";
    check(
        "render --format xml --group --jsonl",
        nested,
        &output(&[grouped]),
        0,
    );
    for format in ["markdown", "toml", "toon", "yaml", "json"] {
        let run = Place::new().feed(&format!("render --format {format} --group --jsonl"), nested);
        assert_eq!(run.code, 0, "{format}: {}", run.out);
        assert!(
            run.documents()[0]["output"]
                .as_str()
                .unwrap()
                .contains("two"),
            "{format}"
        );
    }
}

#[test]
fn count() {
    let exact = |tokens: u64| json!({ "tokens": tokens, "exact": true });
    let input = "\"Hello, world!\"\n\"\"\n\"<|endoftext|>\"\n\"\\u6f22\\u5b57\"\n";
    let expected = [exact(4), exact(0), exact(7), exact(3)];
    let run = Place::new().feed("count --encoding o200k_base --jsonl", input);
    assert_eq!(run.documents()[..3], expected[..3]);
    let run = Place::new().feed("count --encoding claude-v2 --jsonl", "\"Hello, world!\"");
    let answer = &run.documents()[0];
    assert_eq!(answer["exact"], false);
    assert!(answer["low"].as_u64() <= answer["tokens"].as_u64());
    assert!(answer["tokens"].as_u64() <= answer["high"].as_u64());
}

#[test]
fn convert() {
    let input = r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}"#;
    let output = json!({"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]});
    let same = json!({ "output": output, "losses": [] });
    check(
        "convert --from openai-chat --to openai-chat --jsonl",
        input,
        &[same],
        0,
    );
    let run = Place::new().feed("convert --from openai-chat --to gemini --jsonl", input);
    let answer = &run.documents()[0];
    assert_eq!(answer["output"]["contents"][0]["parts"][0]["text"], "hi");
    assert_eq!(
        answer["output"]["systemInstruction"]["parts"][0]["text"],
        "s"
    );
    assert!(answer["losses"].is_array());
    // Every format to every format, there and back through items.
    for format in [
        "openai-chat",
        "openai-responses",
        "anthropic",
        "gemini",
        "ui",
        "items",
    ] {
        let run = Place::new().feed(
            &format!("convert --from openai-chat --to {format} --jsonl --model gpt-5.4"),
            input,
        );
        assert_eq!(run.code, 0, "{format}: {}", run.out);
        let there = run.documents()[0]["output"].to_string();
        let back = Place::new().feed(
            &format!("convert --from {format} --to openai-chat --jsonl"),
            there,
        );
        assert_eq!(back.code, 0, "{format}: {}", back.out);
        let text = back.out;
        assert!(text.contains("\"hi\""), "{format}: {text}");
    }
}

#[test]
fn converting_an_array_gives_an_array() {
    let input = r#"[{"role":"user","content":"hi"}]"#;
    let run = Place::new().feed("convert --from openai-chat --to anthropic --jsonl", input);
    assert_eq!(run.documents()[0]["output"][0]["role"], "user");
}

#[test]
fn compile() {
    let order = json!({
        "from": "openai-chat",
        "input": {"messages": [{"role": "user", "content": "What is 6 times 7?"}]},
        "to": "anthropic", "model": "claude-sonnet-5", "window": 4000, "reserve": 500,
        "system": [{"name": "hint", "data": "Answer briefly."}],
    });
    let run = Place::new().feed("compile --jsonl", order.to_string());
    let answer = &run.documents()[0];
    assert_eq!(answer["payload"]["model"], "claude-sonnet-5");
    assert_eq!(answer["payload"]["max_tokens"], 500);
    assert_eq!(
        answer["payload"]["system"][0]["text"],
        "<hint>Answer briefly.</hint>"
    );
    assert_eq!(
        answer["payload"]["messages"][0]["content"][0]["text"],
        "What is 6 times 7?"
    );
    assert_eq!(answer["report"]["target"]["limit"], 3500);
    let tokens = |value: &Value| value["tokens"].as_u64().unwrap();
    let segments = answer["report"]["segments"].as_array().unwrap();
    assert_eq!(
        segments.iter().map(tokens).sum::<u64>(),
        tokens(&answer["report"]["totals"])
    );

    // A bare array, options of the command line, another target.
    let order = r#"{"from":"openai-chat","input":[{"role":"user","content":"hi"}],"window":8000}"#;
    let run = Place::new().feed(
        "compile --jsonl --to gemini --param safetySettings=[]",
        order,
    );
    let answer = &run.documents()[0];
    assert_eq!(answer["payload"]["contents"][0]["parts"][0]["text"], "hi");
    assert_eq!(answer["payload"]["safetySettings"], json!([]));
    assert_eq!(answer["report"]["target"]["model"], "gemini-3.5-flash");
}

#[test]
fn a_log_of_lines_is_compiled_from_a_string() {
    let log = contexture_testdata::read_text("claude-code/representative_messages.jsonl");
    let order = json!({ "from": "claude-code", "input": log, "to": "openai-responses" });
    let run = Place::new().feed("compile --jsonl", order.to_string());
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(
        run.documents()[0]["payload"]["input"]
            .as_array()
            .unwrap()
            .len()
            > 5
    );
}

#[test]
fn a_refusal_is_a_line_that_says_why() {
    let order = json!({
        "from": "openai-chat", "input": [{"role": "user", "content": "word ".repeat(2000)}],
        "to": "openai-chat", "model": "gpt-5.4", "window": 1000, "reserve": 500,
    });
    let run = Place::new().feed("compile --jsonl", format!("{order}\n"));
    assert_eq!(run.code, 1);
    let error = &run.documents()[0]["error"];
    assert_eq!(error["kind"], "does_not_fit");
    assert_eq!(error["details"]["allowed"], 500);
    let segments = error["details"]["segments"].as_array().unwrap();
    let sum: u64 = segments
        .iter()
        .map(|segment| segment["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(error["details"]["needed"], sum);
    assert!(sum > 2000, "{error}");
}

#[test]
fn bad_lines_do_not_stop_the_rest() {
    let check = |line: &str, good: &str, bad: &[(&str, &str)]| {
        let mut input = format!("{good}\n");
        for (text, _) in bad {
            input.push_str(&format!("{text}\n{good}\n"));
        }
        let run = Place::new().feed(line, input);
        assert_eq!((run.code, run.err.as_str()), (1, ""), "{line}");
        let answers = run.documents();
        assert_eq!(answers.len(), 2 * bad.len() + 1, "{line}: {}", run.out);
        for ((text, kind), pair) in bad.iter().zip(answers[1..].chunks(2)) {
            assert_eq!(
                pair[0]["error"]["kind"], *kind,
                "{line}: {text}: {}",
                pair[0]
            );
            let message = pair[0]["error"]["message"].as_str().unwrap();
            assert!(
                !message.is_empty() && !message.contains("Error"),
                "{message}"
            );
            assert_eq!(pair[1], answers[0], "{line}: after {text:.80}");
        }
    };
    let deep = "[".repeat(100_000);
    check(
        "count --jsonl",
        "\"a\"",
        &[
            ("", "empty_line"),
            ("5", "not_a_string"),
            ("\"a", "not_json"),
            ("\"\\ud800\"", "not_json"),
        ],
    );
    check(
        "render --jsonl",
        "[]",
        &[
            ("{", "not_json"),
            ("{}", "invalid_fragments"),
            ("[5]", "invalid_fragments"),
            (&deep, "invalid_fragments"),
        ],
    );
    check(
        "convert --from anthropic --to gemini --jsonl",
        r#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#,
        &[
            ("{\"messages\":", "not_json"),
            ("5", "wrong_format"),
            (
                r#"{"messages":[{"role":"king","content":"hi"}]}"#,
                "invalid_document",
            ),
            (&deep, "not_json"),
        ],
    );
    check(
        "compile --to anthropic --jsonl",
        r#"{"from":"openai-chat","input":[{"role":"user","content":"hi"}]}"#,
        &[
            ("5", "bad_line"),
            ("{", "not_json"),
            (r#"{"from":"openai-chat","input":[],"windw":5}"#, "bad_line"),
            (r#"{"from":"morse","input":[]}"#, "unknown_format"),
            (r#"{"from":"openai-chat","input":[],"to":"items"}"#, "usage"),
            (
                r#"{"from":"openai-chat","input":[{"role":"user","content":"hi"}],"to":"morse"}"#,
                "unknown_format",
            ),
            (
                r#"{"from":"openai-chat","input":[{"role":"user","content":"hi"}],"model":"gpt-9"}"#,
                "unknown_model",
            ),
            (
                r#"{"from":"openai-chat","input":[{"role":"user","content":"hi"}],"model":"gpt-5.4"}"#,
                "wrong_provider",
            ),
            (
                r#"{"from":"openai-chat","input":[],"to":"openai-chat"}"#,
                "nothing_to_say",
            ),
            (
                r#"{"from":"openai-chat","input":[{"role":"user","content":"hi"}],"window":10,"reserve":10}"#,
                "window_too_small",
            ),
        ],
    );
}

#[test]
fn bytes_that_are_not_text_are_a_bad_line() {
    let run = Place::new().feed("count --jsonl", b"\"a\xff\"\n\"a\"\n".to_vec());
    assert_eq!(run.code, 1);
    let answers = run.documents();
    assert_eq!(answers[0]["error"]["kind"], "not_text");
    assert_eq!(answers[1]["tokens"], 1);
}

#[test]
fn a_line_of_ten_megabytes() {
    let line = format!("\"{}\"", "word ".repeat(2_000_000));
    let run = Place::new().feed("count --jsonl", line);
    assert_eq!(run.documents()[0]["exact"], true);
}

/// A program that waits for each answer before it asks again gets it.
#[test]
fn talking_line_by_line() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("contexture");
    let mut child = std::process::Command::new(program)
        .args(["render", "--jsonl"])
        .current_dir(place.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for word in ["one", "two", "three"] {
        // The second half of a line may come later.
        write!(input, "[{{\"name\":\"hint\",").unwrap();
        input.flush().unwrap();
        writeln!(input, "\"data\":\"{word}\"}}]").unwrap();
        input.flush().unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["output"], format!("<hint>{word}</hint>"));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// A loop that keeps its history talks to one process: with the plan of the line before, requests only grow at their end.
#[test]
fn a_line_takes_the_plan_of_the_line_before() {
    let program = assert_cmd::cargo::cargo_bin!("contexture");
    let mut running = std::process::Command::new(program)
        .args([
            "compile",
            "--jsonl",
            "--model",
            "gpt-4o",
            "--to",
            "openai-chat",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = running.stdin.take().unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    let tool = json!({"type": "function", "function": {"name": "read_row", "parameters": {"type": "object"}}});
    let mut messages = vec![json!({"role": "user", "content": "Begin."})];
    let (mut plan, mut last, mut epochs) = (Value::Null, Vec::new(), 0);
    for round in 0..40 {
        let mut line = json!({"messages": messages, "window": 3000, "reserve": 500, "tools": [tool],
            "policy": {"compact": "manifest", "preview": 800}});
        if !plan.is_null() {
            line["plan"] = plan;
        }
        writeln!(input, "{line}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            answer["payload"]["tools"][0]["function"]["name"], "read_row",
            "{answer}"
        );
        let now = answer["payload"]["messages"].as_array().unwrap().clone();
        match answer["report"]["epoch"]["opened"] == true {
            true => epochs += 1,
            false => assert!(now.starts_with(&last[..last.len() - 1]), "round {round}"),
        }
        (last, plan) = (now, answer["plan"].clone());
        let text = format!("row {round}: {}", "lorem ipsum dolor ".repeat(20));
        messages.push(json!({"role": "assistant", "content": text}));
        messages.push(json!({"role": "user", "content": "Next."}));
    }
    assert!((2..20).contains(&epochs), "{epochs}");
    drop(input);
    assert!(running.wait().unwrap().success());
    let bad = Place::new().feed(
        "compile --jsonl",
        "{\"messages\": [], \"plam\": 1}\n".to_owned(),
    );
    assert!(bad.out.contains("unknown field `plam`"), "{bad:?}");
}
