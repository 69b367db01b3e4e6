//! Models of other addresses: any name is taken, on assumptions that are told; summaries that models write.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::command::Place;
use crate::talking::read_request;

const SUMMARY: &str = "They chose the train to Porto, and the seats by the window.";

/// A server that says this to everybody, and what it was asked.
fn server(text: &str) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let message = json!({"role": "assistant", "content": text});
    let body = json!({"id": "c1", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}});
    let body = body.to_string();
    let (asked, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&stream);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let length = body.len();
            write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
            if asked.send(serde_json::from_str(&request).unwrap()).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

/// A conversation that is worth compacting.
fn long() -> Place {
    let place = Place::new();
    let messages: Vec<Value> = (0..12)
        .map(|at| {
            let role = ["user", "assistant"][at % 2];
            json!({"role": role, "content": "train and window ".repeat(80)})
        })
        .collect();
    place.write("chat.json", json!(messages).to_string());
    place.ok("import chat.json --conversation trip");
    place
}

#[test]
fn a_server_s_own_model_is_asked_by_its_name() {
    let place = Place::new();
    place.write("said.txt", "Hello");
    let refused = place.run("run said.txt --model qwen3-32b");
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(refused.err.contains("--base-url"), "{}", refused.err);

    let (address, requests) = server("Hello.");
    let line = format!("run said.txt -c trip --base-url {address} --model");
    let told = place.run(&format!("{line} qwen3-32b"));
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, "Hello.\n"),
        "{}",
        told.err
    );
    assert_eq!(requests.recv().unwrap()["model"], "qwen3-32b");
    let assumed = "\"qwen3-32b\" is not in the catalogue: asked in openai-chat, a window of 32,000 tokens \
                   (--window says another)";
    assert!(told.err.contains(assumed), "{}", told.err);
    assert!(
        told.err.contains(" · 9 in, 2 out, 1 answer") && !told.err.contains('$'),
        "{}",
        told.err
    );
    let narrow = place.run(&format!("{line} qwen3-32b --window 500"));
    assert_eq!(narrow.code, 5, "{}", narrow.err);
    assert!(
        narrow.err.contains("a window of 500 tokens,"),
        "{}",
        narrow.err
    );

    // One that is known keeps the name the server has for it; one that another provider has is translated there.
    for (options, name) in [
        (
            "anthropic/claude-opus-4.8 --to openai-chat",
            "anthropic/claude-opus-4.8",
        ),
        ("gpt-5.4 --to openai-chat", "gpt-5.4"),
    ] {
        let known = place.run(&format!("{line} {options}"));
        assert_eq!(known.code, 0, "{}", known.err);
        assert!(!known.err.contains("warning"), "{}", known.err);
        assert_eq!(requests.recv().unwrap()["model"], name);
    }
}

#[test]
fn a_model_writes_the_summary_of_a_compaction() {
    let place = long();
    let (address, requests) = server(SUMMARY);
    let line = format!("compact trip --model qwen3-32b --base-url {address} --json");
    let told = place.json(&line);
    assert_eq!(told["summary"][0], SUMMARY, "{told}");
    let asked = requests.recv().unwrap();
    assert_eq!(asked["model"], "qwen3-32b");
    assert!(
        asked["messages"].to_string().contains("train and window"),
        "{asked}"
    );
    assert!(
        place
            .ok("compile trip --to anthropic --report none")
            .contains(SUMMARY)
    );
}

#[test]
fn a_summary_can_be_scripted_and_looked_at_first() {
    let place = long();
    place.write("summary.jsonl", json!(SUMMARY).to_string());
    let dry = place.ok("compact trip --script summary.jsonl --dry-run");
    assert!(dry.contains(SUMMARY), "{dry}");
    let by_rule = place.ok("compact trip --dry-run");
    assert!(!by_rule.contains(SUMMARY), "{by_rule}");
    let model = "compact trip --script summary.jsonl --model gemini-3.5-flash --json";
    assert_eq!(place.json(model)["summary"][0], SUMMARY);
}

#[test]
fn a_model_that_fails_changes_nothing() {
    let place = long();
    let before = place.ok("export trip --to contexture");
    let check = |options: &str, code, said: &str| {
        let run = place.run(&format!("compact trip {options}"));
        assert_eq!(run.code, code, "{options}: {}", run.err);
        assert!(run.err.contains(said), "{options}: {}", run.err);
        assert_eq!(place.ok("export trip --to contexture"), before, "{options}");
    };
    place.write("bad.jsonl", "\"x\"");
    check("--script bad.jsonl", 9, "nothing was changed");
    place.write("calls.jsonl", r#"{"calls": [{"name": "x"}]}"#);
    check("--script calls.jsonl", 9, "error: no summary: ");
    check("--model gpt-5.4", 2, "no key: set OPENAI_API_KEY");
    check("--model gtp-5.4", 3, "unknown model");
    check(
        "--script bad.jsonl --summary bad.jsonl",
        2,
        "cannot be used with",
    );
}
