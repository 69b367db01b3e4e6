//! `contexture diff`: two requests and the cache between them.

use serde_json::{Value, json};

use crate::command::Place;

fn request(system: &str, messages: &[&str]) -> Value {
    let messages: Vec<Value> = messages
        .iter()
        .map(|text| json!({"role": "user", "content": text}))
        .collect();
    json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "system": system, "messages": messages})
}

fn place() -> Place {
    let place = Place::new();
    let words = "Be careful. ".repeat(800);
    for (name, system, messages) in [
        ("last.json", "today 2026-11-19", &["a", "b"][..]),
        ("next.json", "today 2026-11-19", &["a", "b", "c"]),
        ("broken.json", "today 2026-11-20", &["a", "b", "c"]),
    ] {
        place.write(
            name,
            request(&format!("{words}{system}"), messages).to_string(),
        );
    }
    place
}

#[test]
fn an_extension_is_fine() {
    let place = place();
    let run = place.run("diff last.json next.json --to anthropic");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("prefix     holds"), "{}", run.out);
    assert!(!run.out.contains("re-billed"), "{}", run.out);
}

#[test]
fn a_break_is_a_finding() {
    let place = place();
    let run = place.run("diff last.json broken.json");
    assert_eq!(run.code, 1, "{}", run.err);
    for said in [
        "prefix     breaks at byte 9,6",
        "where      system\n",
        "reason     system_changed\n",
        "-          … careful. today 2026-11-19\"\n",
        "+          … careful. today 2026-11-20\"\n",
        "tokens, $0.010 instead of $0.000",
        "hint       ",
    ] {
        assert!(run.out.contains(said), "{said}: {}", run.out);
    }
    let lenient = place.run("diff last.json broken.json --tolerate 10k");
    assert_eq!(lenient.code, 0);
}

#[test]
fn as_data_and_from_standard_input() {
    let place = place();
    let broken = std::fs::read_to_string(place.path("broken.json")).unwrap();
    let run = place.feed("diff last.json - --json --from anthropic", broken);
    assert_eq!(run.code, 1, "{}", run.err);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["holds"], false);
    assert_eq!(found["difference"]["reason"], "system_changed");
    let rebilled = found["rebilled"].as_u64().unwrap();
    assert!(rebilled > 1_024, "{rebilled}");
    assert_eq!(found["money"]["cached"], rebilled * 300_000);
}

#[test]
fn what_cannot_be_compared() {
    let place = place();
    let check = |line: &str, code: i32, said: &str| {
        let run = place.run(line);
        assert_eq!(run.code, code, "{line}: {}", run.err);
        assert!(run.err.contains(said), "{line}: {}", run.err);
    };
    check("diff - -", 2, "only one of the two");
    check("diff last.json nowhere.json", 3, "no such file");
    check(
        "diff last.json next.json --from gemini",
        6,
        "the first request cannot be read",
    );
    check("diff last.json next.json --model gtp-5", 3, "unknown model");
    place.write(
        "nameless.json",
        r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}]}"#,
    );
    check(
        "diff nameless.json nameless.json",
        0,
        "the request names no model",
    );
}
