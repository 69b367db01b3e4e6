//! The main job: a real session becomes a payload that the provider accepts, within the window.

use contexture_testdata::{request_validator, swe_agent};
use serde_json::{Value, json};

use crate::command::{Place, example};

const TARGETS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

/// The README's first command prints what the README shows, to the letter.
#[test]
fn the_readme_shows_the_first_report() {
    let file = example("marshmallow-1867.traj");
    let run = Place::new().run(&format!(
        "compile {} --to anthropic --window 8700 --preview 2000 --compact",
        file.display()
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    assert!(readme.contains(&run.err), "{}", run.err);
}

#[test]
fn a_real_session_fits_every_target() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    for target in TARGETS {
        let run = place.run(&format!(
            "compile {} --to {target} --window 16000 --report json",
            file.display()
        ));
        assert_eq!(run.code, 0, "{target}: {}", run.err);
        let payload: Value = serde_json::from_str(&run.out).unwrap();
        let findings = request_validator(target).validation_errors(&payload);
        assert!(findings.is_empty(), "{target}: {findings:?}");
        let report: Value = serde_json::from_str(&run.err).unwrap();
        let tokens = report["totals"]["tokens"].as_u64().unwrap();
        let limit = report["target"]["limit"].as_u64().unwrap();
        assert!(
            tokens <= limit && limit < 16_000,
            "{target}: {tokens} of {limit}"
        );
        let sum: u64 = report["segments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["tokens"].as_u64().unwrap())
            .sum();
        assert_eq!(sum, tokens, "{target}");
        assert!(
            tokens > limit / 2,
            "{target}: the window is used: {tokens} of {limit}"
        );
    }
}

#[test]
fn the_messages_that_fit_as_ui_messages() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    let messages = |window: &str| {
        let run = place.run(&format!(
            "compile {} --to ui --window {window} -q",
            file.display()
        ));
        assert_eq!(run.code, 0, "{}", run.err);
        let payload: Value = serde_json::from_str(&run.out).unwrap();
        assert!(payload["system"].as_str().unwrap().len() > 100);
        place.write("ui.json", payload["messages"].to_string());
        // What the AI SDK's validation would refuse, converting refuses.
        place.ok("convert ui.json --from ui --to items -q");
        payload["messages"].to_string().len()
    };
    assert!(messages("8k") < messages("64k"));
}

#[test]
fn the_report_is_a_table() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    let run = place.run(&format!(
        "compile {} --to anthropic --window 16k",
        file.display()
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    for words in [
        "marshmallow-1867",
        "band",
        "history",
        "total",
        "claude-sonnet-5",
        "window 16,000",
    ] {
        assert!(run.err.contains(words), "{words}: {}", run.err);
    }
    assert!(
        run.err.lines().all(|line| line.chars().count() <= 120),
        "{}",
        run.err
    );
    let quiet = place.run(&format!(
        "compile {} --to anthropic --window 16k --report none",
        file.display()
    ));
    assert_eq!((quiet.err.as_str(), quiet.out), ("", run.out));
}

#[test]
fn a_prompt_parameters_and_a_file() {
    let place = Place::new();
    let line = format!(
        "compile {} --to openai-chat --model gpt-4o --window 16k --reserve 1k --system {} --param temperature=0 -o payload.json -q",
        example("marshmallow-1867.traj").display(),
        example("support.json").display(),
    );
    assert_eq!(place.ok(&line), "");
    let payload: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("payload.json")).unwrap())
            .unwrap();
    assert_eq!(payload["model"], "gpt-4o");
    assert_eq!(payload["temperature"], 0);
    assert!(
        payload["messages"]
            .to_string()
            .contains("You are a careful software engineer.")
    );
    let markdown = place.ok(&line.replace("-o payload.json", "--renderer markdown"));
    assert!(
        markdown.contains("## Role") || markdown.contains("- **role**"),
        "{markdown:.600}"
    );
    assert_eq!(
        place
            .run(&line.replace("payload.json", "nowhere/payload.json"))
            .code,
        8
    );
}

#[test]
fn every_window_gives_a_sound_payload_or_a_refusal() {
    let place = Place::new();
    let sessions = swe_agent();
    for (name, text) in sessions.iter().take(2) {
        let file = place.write(name, text);
        for window in ["2k", "4k", "128k"] {
            for target in TARGETS {
                let run = place.run(&format!(
                    "compile {} --to {target} --window {window} --json",
                    file.display()
                ));
                let report: Value = serde_json::from_str(&run.err).unwrap();
                match run.code {
                    0 => {
                        let payload: Value = serde_json::from_str(&run.out).unwrap();
                        let findings = request_validator(target).validation_errors(&payload);
                        assert!(
                            findings.is_empty(),
                            "{name} {target} {window}: {findings:?}"
                        );
                        assert!(
                            report["totals"]["tokens"].as_u64()
                                <= report["target"]["limit"].as_u64()
                        );
                    }
                    5 => {
                        let details = &report["error"]["details"];
                        assert_eq!(report["error"]["kind"], "does_not_fit");
                        assert!(
                            details["needed"].as_u64() > details["allowed"].as_u64(),
                            "{name}: {details}"
                        );
                    }
                    other => panic!("{name} {target} {window}: {other}: {}", run.err),
                }
            }
        }
    }
}

#[test]
fn a_file_of_several_sessions_needs_a_choice() {
    let place = Place::new();
    let run = |traj: &str| {
        format!(r#"{{"task_id":1,"reward":1.0,"info":{{}},"traj":[{traj}],"trial":0}}"#)
    };
    let one = run(r#"{"role":"user","content":"first"}"#);
    let two = run(r#"{"role":"user","content":"second"}"#);
    place.write("runs.json", format!("[{one},{two}]"));
    let refused = place.run("compile runs.json --to gemini");
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(
        refused.err.contains("2 sessions") && refused.err.contains("--session"),
        "{}",
        refused.err
    );
    assert!(
        place
            .ok("compile runs.json --to gemini --session 2 -q")
            .contains("second")
    );
    assert_eq!(
        place.run("compile runs.json --to gemini --session 3").code,
        2
    );
}

#[test]
fn explaining_shows_the_report_and_no_request() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    let line = format!(
        "explain {} --to anthropic --window 16k --preview",
        file.display()
    );
    let compiled = place.run(&line.replace("explain", "compile"));
    let table = place.run(&line);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    assert_eq!(table.out, compiled.err);

    let report: Value = serde_json::from_str(&place.ok(&format!("{line} --json"))).unwrap();
    let same = place.run(&format!("{} --json", line.replace("explain", "compile")));
    assert_eq!(report, serde_json::from_str::<Value>(&same.err).unwrap());

    let both: Value = serde_json::from_str(&place.ok(&format!("{line} --items --json"))).unwrap();
    assert_eq!(both["report"], report);
    let count = |list: &Value| -> u64 {
        let list = list.as_array().unwrap();
        list.iter()
            .map(|one| one["items"].as_u64().unwrap_or(1))
            .sum()
    };
    let items = both["items"].as_array().unwrap();
    assert!(!items.is_empty());
    assert_eq!(
        items.len() as u64,
        count(&report["omitted"]) + count(&report["rewritten"])
    );
    let listed = place.ok(&format!("{line} --items"));
    for item in items {
        let link = item["link"].as_str().unwrap();
        assert!(listed.contains(link), "{link}: {listed}");
    }
}

#[test]
fn the_picture_is_one_page() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    let line = format!("explain {} --to gemini --window 16k", file.display());
    assert_eq!(place.ok(&format!("{line} --html window.html")), "");
    let page = std::fs::read_to_string(place.path("window.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("<title>marshmallow-1867</title>"));
    assert_eq!(place.ok(&format!("{line} --html -")), page);
    assert_eq!(place.run(&format!("{line} --html no/where.html")).code, 8);
}

#[test]
fn a_kept_conversation_is_explained_item_by_item() {
    let place = Place::new();
    let file = example("marshmallow-1867.traj");
    place.ok(&format!("import {} --conversation bell", file.display()));
    let line = "explain bell --to openai-chat --window 9k --items --json";
    let both: Value = serde_json::from_str(&place.ok(line)).unwrap();
    let items = both["items"].as_array().unwrap();
    assert!(!items.is_empty());
    // What it says can be read by a link can be.
    let link = items[0]["link"].as_str().unwrap();
    assert_ne!(place.ok(&format!("read bell {link}")), "");
}

#[test]
fn a_policy_from_a_file_holds_and_options_go_before_it() {
    let place = Place::new();
    let said = |n: usize| json!({"role": if n.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("said {n}")});
    let messages: Vec<Value> = (0..9).map(said).collect();
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let chat = json!({"model": "gpt-4o", "messages": messages, "tools": [tool("shell_run"), tool("read")],
        "tool_choice": {"type": "function", "function": {"name": "shell_run"}}});
    place.write("chat.json", chat.to_string());
    let policy =
        "window = { turns = 1 }\nstate = { door = \"open\" }\n[tools]\ndeny = [\"shell*\"]\n";
    place.write("policy.toml", policy);
    let whole = place.json("compile chat.json --to openai-chat");
    assert_eq!(whole["messages"].as_array().unwrap().len(), 9, "{whole}");
    assert_eq!(whole["tools"].as_array().unwrap().len(), 2);
    let held = place.json("compile chat.json --to openai-chat --policy policy.toml");
    let text = held.to_string();
    assert!(text.contains("door") && !text.contains("said 3"), "{text}");
    assert!(!text.contains("shell_run"), "{text}");
    assert_eq!(held["tools"][0]["function"]["name"], "read");
    place.write("select.toml", "[tools]\nselect = 1\n");
    let chosen = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "read it"}],
        "tools": [tool("shell_run"), tool("read")]});
    place.write("chosen.json", chosen.to_string());
    let chosen = place.json("compile chosen.json --to openai-chat --policy select.toml");
    assert_eq!(chosen["tools"].as_array().unwrap().len(), 1, "{chosen}");
    assert_eq!(chosen["tools"][0]["function"]["name"], "read");
    let three = place.json("compile chat.json --to openai-chat --policy policy.toml --turns 3");
    let text = three.to_string();
    assert!(
        text.contains("said 5") && !text.contains("said 3"),
        "{text}"
    );
    for (text, words) in [
        ("windo = 3", "unknown field `windo`"),
        ("memory = true", "`memory` is for a server's policies"),
        ("window = { turns = 0 }", "window"),
    ] {
        place.write("policy.toml", text);
        let refused = place.run("compile chat.json --to openai-chat --policy policy.toml");
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains(words), "{text}: {}", refused.err);
    }
    let missing = place.run("compile chat.json --to openai-chat --policy nowhere.toml");
    assert_eq!(missing.code, 3, "{}", missing.err);
}
