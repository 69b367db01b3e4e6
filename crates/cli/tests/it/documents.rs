//! Whole files: render, count, convert, completions, help.

use serde_json::json;

use crate::command::{Place, example};

#[test]
fn render_writes_the_text() {
    let place = Place::new();
    let file = example("support.json");
    let text = place.ok(&format!("render {}", file.display()));
    assert!(
        text.starts_with("<role>You are a careful software engineer.</role>\n<hint>"),
        "{text}"
    );
    assert!(text.ends_with("</guardrail>\n"), "{text}");
    let document = place.json(&format!("render --json {}", file.display()));
    assert_eq!(document["output"].as_str(), Some(text.trim_end()));
}

#[test]
fn top_level_fragments_gather_only_when_asked_to() {
    let place = Place::new();
    let file = place.write(
        "f.json",
        r#"[{"name":"hint","data":"a"},{"name":"hint","data":"b"}]"#,
    );
    let file = file.display();
    assert_eq!(
        place.ok(&format!("render --group {file}")),
        "<hint>a</hint>\n<hint>b</hint>\n"
    );
    let gathered = place.ok(&format!("render --group=everywhere {file}"));
    assert!(gathered.starts_with("<hints>"), "{gathered}");
}

#[test]
fn count_lists_files_and_their_sum() {
    let place = Place::new();
    place.write("a.txt", "Hello, world!");
    place.write("b.txt", "Hello, world!\n".repeat(400));
    let text = place.ok("count a.txt b.txt");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "    4  a.txt");
    assert!(lines[2].ends_with("  total"), "{text}");
    let document = place.json("count --json a.txt b.txt");
    assert_eq!(document["encoding"], "o200k_base");
    assert_eq!(
        document["files"][0],
        json!({"file": "a.txt", "tokens": 4, "exact": true})
    );
    let sum: u64 = document["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(document["tokens"], sum);
    assert_eq!(place.feed("count", "Hello, world!").out, "4\n");
    assert_eq!(
        place.feed("count --model gpt-4", "Hello, world!").out,
        "4\n"
    );
    let estimate = place
        .feed("count --model claude-sonnet-5", "Hello, world!")
        .out;
    assert!(
        estimate.starts_with('~') && estimate.contains('…'),
        "{estimate}"
    );
}

#[test]
fn convert_detects_the_format_and_lists_losses() {
    let place = Place::new();
    place.write(
        "chat.json",
        r#"{"model":"gpt-5","seed":7,"messages":[{"role":"user","content":"hi"}]}"#,
    );
    let run = place.run("convert chat.json --to anthropic --model claude-sonnet-5");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.starts_with(r#"{"model":"claude-sonnet-5","#),
        "{}",
        run.out
    );
    assert!(
        run.err.contains("lost") && run.err.contains("seed"),
        "{}",
        run.err
    );
    assert_eq!(place.run("convert chat.json --to anthropic -q").err, "");
    let document = place.json("convert chat.json --to anthropic --json");
    assert!(
        document["losses"]
            .as_array()
            .unwrap()
            .iter()
            .any(|loss| loss["what"] == "field" || loss["what"] == "option"),
        "{document}"
    );
    let same = place.json("convert chat.json --to openai-chat");
    assert_eq!(
        same,
        json!({"model": "gpt-5", "seed": 7, "messages": [{"role": "user", "content": "hi"}]})
    );
}

#[test]
fn convert_repairs_when_asked_to() {
    let place = Place::new();
    let broken = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c2", "content": "of nobody"},
        {"role": "user", "content": "well?"},
    ]);
    place.write("broken.json", broken.to_string());
    let as_is = place.json("convert broken.json --to openai-chat --quiet");
    assert_eq!(as_is, broken);
    let run = place.run("convert broken.json --to openai-chat --repair");
    let mended: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        mended[2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "[No tool result available]"})
    );
    assert!(!run.out.contains("of nobody"));
    assert!(run.err.contains("repaired"), "{}", run.err);
    let repairs = &place.json("convert broken.json --to openai-chat --repair --json")["repairs"];
    assert_eq!(repairs.as_array().unwrap().len(), 2, "{repairs}");
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = Place::new().ok(&format!("completions {shell}"));
        assert!(script.contains("CONTEXTURE_COMPLETE"), "{shell}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = Place::new();
    let help = place.ok("--help");
    assert!(
        help.contains("Exit codes:") && help.contains("70  a fault"),
        "{help}"
    );
    for command in [
        "import",
        "conversations",
        "log",
        "show",
        "branch",
        "rewind",
        "checkpoint",
        "restore",
        "memory",
        "skills",
        "compile",
        "convert",
        "render",
        "count",
        "export",
        "migrate",
        "doctor",
        "completions",
    ] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command} is not listed"
        );
        let own = place.ok(&format!("{command} --help"));
        assert!(own.contains("Examples:"), "{command}: {own}");
        assert!(
            own.contains(&format!("contexture {command}")),
            "{command}: {own}"
        );
    }
    assert!(place.ok("--version").starts_with("contexture 0."));
}

#[test]
fn colours_only_where_asked_for() {
    let place = Place::new();
    let coloured = |line: &str| place.run(line).err.contains('\u{1b}');
    assert!(!coloured("count nothing.txt"));
    assert!(coloured("count nothing.txt --color always"));
    assert!(!coloured("count nothing.txt --color never"));
    let silenced = place
        .command()
        .env("NO_COLOR", "1")
        .args(["count", "nothing.txt"])
        .output()
        .unwrap();
    assert!(!silenced.stderr.contains(&0x1b));
}
