//! Two requests compared as a provider's cache compares them.

use contexture_catalogue::Catalogue;
use contexture_compile::{CacheDiff, DiffError, DiffTarget, cache_diff};
use contexture_tokens::counter_for;
use contexture_wire::Format;
use serde_json::{Value, json};

fn diff(format: Format, model: &str, first: &Value, second: &Value) -> CacheDiff {
    let spec = Catalogue::builtin().resolve(model).unwrap();
    let target = DiffTarget {
        format,
        model: Some(spec),
        counter: counter_for(spec.encoding),
    };
    cache_diff(&first.to_string(), &second.to_string(), &target).unwrap()
}

fn claude(first: &Value, second: &Value) -> CacheDiff {
    diff(Format::Anthropic, "claude-sonnet-4-5", first, second)
}

fn long(word: &str) -> String {
    format!("{word} ").repeat(1_500)
}

/// A request to Anthropic with two tools, a system prompt and some messages.
fn request(messages: &[&str]) -> Value {
    let messages: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": [{"type": "text", "text": text}]})
        })
        .collect();
    json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "tools": [
            {"name": "first", "description": "One.", "input_schema": {"type": "object"}},
            {"name": "search", "description": "Search the catalogue, updated 2026-11-19", "input_schema": {"type": "object"}},
        ],
        "system": long("Careful."),
        "messages": messages,
    })
}

fn with(mut request: Value, pointer: &str, value: Value) -> Value {
    *request.pointer_mut(pointer).unwrap() = value;
    request
}

#[test]
fn an_extension_holds() {
    let first = request(&["a", "b", "c"]);
    let second = request(&["a", "b", "c", "d", "e"]);
    let found = claude(&first, &second);
    assert!(found.holds);
    assert_eq!((&found.difference, found.rebilled), (&None, 0));
    assert!(found.read > 1_500 && found.read < found.tokens, "{found:?}");
    // The other way round nothing is lost either.
    assert!(claude(&second, &first).holds);
    assert!(claude(&first, &first).holds);
}

#[test]
fn a_tools_description_breaks_everything() {
    let first = request(&["a", "b", "c"]);
    let said = "Search the catalogue, updated 2026-11-20";
    let second = with(
        request(&["a", "b", "c", "d", "e"]),
        "/tools/1/description",
        said.into(),
    );
    let found = claude(&first, &second);
    assert!(!found.holds);
    let difference = found.difference.unwrap();
    assert_eq!(difference.path, "tools[1].description");
    assert_eq!(difference.tool.as_deref(), Some("search"));
    assert_eq!(difference.reason, "tools_changed");
    assert!(
        difference.before.ends_with("2026-11-19\""),
        "{}",
        difference.before
    );
    assert!(
        difference.after.ends_with("2026-11-20\""),
        "{}",
        difference.after
    );
    let text = second.to_string();
    let at = difference.text_byte.unwrap();
    assert_eq!(&text[at..at + 2], "20", "{}", &text[at - 20..at + 2]);
    assert_eq!(&text[at - 8..at], "2026-11-");
    assert_eq!(found.read, 0);
    assert!(found.rebilled > 1_500);
    // Sonnet 4.5: written for 3.75 dollars a million, read for 0.30.
    let money = found.money.unwrap();
    assert_eq!(money.now, u128::from(found.rebilled) * 3_750_000);
    assert_eq!(money.cached, u128::from(found.rebilled) * 300_000);
}

#[test]
fn reasons_are_the_providers_words() {
    let first = request(&["a", "b", "c"]);
    let check = |second: Value, reason: &str, path: &str| {
        let found = claude(&first, &second);
        let difference = found.difference.unwrap();
        assert_eq!(
            (difference.reason, difference.path.as_str()),
            (reason, path)
        );
        assert!(!found.holds, "{path}");
    };
    let base = || request(&["a", "b", "c"]);
    check(
        with(base(), "/model", "claude-opus-4-5".into()),
        "model_changed",
        "model",
    );
    check(
        with(base(), "/system", "Careless.".into()),
        "system_changed",
        "system",
    );
    check(
        with(base(), "/messages/1/content/0/text", "B".into()),
        "messages_changed",
        "messages[1].content[0].text",
    );
    check(
        with(base(), "/messages/0/role", "system".into()),
        "messages_changed",
        "messages[0].content[0]",
    );
    let mut chosen = base();
    chosen["tool_choice"] = json!({"type": "any"});
    check(chosen, "messages_changed", "tool_choice");
    let mut fewer = base();
    fewer["tools"].as_array_mut().unwrap().pop();
    check(fewer, "tools_changed", "tools[1]");
}

#[test]
fn openais_words_are_others() {
    let request = |input: Value| json!({"model": "gpt-5.6", "instructions": long("Careful."), "input": input});
    let message = |text: &str| json!({"role": "user", "content": text});
    let first = request(json!([message("a"), message("b")]));
    let check = |second: Value, reason: &str| {
        let found = diff(Format::OpenAiResponses, "gpt-5.6", &first, &second);
        assert_eq!(found.difference.unwrap().reason, reason);
    };
    check(
        request(json!([message("a"), message("B")])),
        "input_changed",
    );
    let compaction = json!({"type": "compaction", "encrypted_content": "x"});
    check(
        request(json!([compaction, message("c")])),
        "context_compacted",
    );
    let keyed = |name: &str, value: Value| {
        let mut second = request(json!([message("a"), message("b"), message("c")]));
        second[name] = value;
        second
    };
    check(
        keyed("prompt_cache_key", "k".into()),
        "prompt_cache_key_changed",
    );
    check(keyed("service_tier", "flex".into()), "service_tier_changed");
    check(
        keyed("reasoning", json!({"effort": "high"})),
        "reasoning_effort_changed",
    );
    check(
        keyed("text", json!({"verbosity": "low"})),
        "verbosity_changed",
    );
    check(
        keyed("text", json!({"format": {"type": "json_object"}})),
        "text_format_changed",
    );
}

#[test]
fn what_changes_behind_the_last_mark_breaks_nothing() {
    let marked = |tail: &str| {
        let mut request = request(&["a", "b", "c", "d", tail]);
        request["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        request
    };
    let found = claude(&marked("tick 1"), &marked("tick 2"));
    assert!(found.holds, "{found:?}");
    assert_eq!(found.rebilled, 0);
    assert_eq!(
        found.difference.unwrap().path,
        "messages[4].content[0].text"
    );
    // Without marks all of it counts.
    let bare = claude(
        &request(&["a", "b", "tick 1"]),
        &request(&["a", "b", "tick 2"]),
    );
    assert!(!bare.holds);
}

#[test]
fn marks_and_layout_are_not_compared() {
    let first = request(&["a", "b", "c"]);
    let mut second = request(&["a", "b", "c", "d", "e"]);
    second["messages"][0]["content"] = json!("a");
    second["messages"][4]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    second["tools"][1]["cache_control"] = json!({"type": "ephemeral"});
    let spec = Catalogue::builtin().resolve("claude-sonnet-4-5").unwrap();
    let target = DiffTarget {
        format: Format::Anthropic,
        model: Some(spec),
        counter: counter_for(spec.encoding),
    };
    let pretty = serde_json::to_string_pretty(&second).unwrap();
    let found = cache_diff(&first.to_string(), &pretty, &target).unwrap();
    assert_eq!((found.holds, found.difference), (true, None));
}

#[test]
fn without_a_model_there_are_tokens_and_no_money() {
    let target = DiffTarget {
        format: Format::Gemini,
        model: None,
        counter: counter_for(contexture_tokens::Encoding::Gemma4),
    };
    let request = |text: &str| {
        json!({"contents": [
            {"role": "user", "parts": [{"text": long("start")}]},
            {"role": "user", "parts": [{"text": text}, {"text": "more"}]},
        ]})
        .to_string()
    };
    let found = cache_diff(&request("x"), &request("y"), &target).unwrap();
    assert_eq!(found.difference.unwrap().path, "contents[1].parts[0].text");
    assert!(
        found.rebilled > 0 && found.rebilled < 10,
        "{}",
        found.rebilled
    );
    assert!(found.read > 1_000);
    assert_eq!(found.money, None);
}

#[test]
fn what_is_no_request_is_named() {
    let target = DiffTarget {
        format: Format::Anthropic,
        model: None,
        counter: counter_for(contexture_tokens::Encoding::Gemma4),
    };
    let good = request(&["a"]).to_string();
    assert!(matches!(
        cache_diff("{", &good, &target),
        Err(DiffError::First(_))
    ));
    assert!(matches!(
        cache_diff(&good, "[]", &target),
        Err(DiffError::Second(_))
    ));
}

/// Nothing that comes in makes it panic: requests cut anywhere, bytes replaced, and depth without end.
#[test]
fn hostile_requests_are_refused_or_compared() {
    let target = |format| DiffTarget {
        format,
        model: None,
        counter: counter_for(contexture_tokens::Encoding::O200kBase),
    };
    let mut marked = request(&["a", "é\u{1f600}\"\\", "c"]);
    marked["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    marked["system"] = json!([{"type": "text", "text": "s", "cache_control": 1}]);
    let text = marked.to_string();
    for (at, _) in text.char_indices() {
        let cut = text.split_at(at).0;
        assert!(cache_diff(cut, &text, &target(Format::Anthropic)).is_err());
        for new in ["0", "\"", "}"] {
            let end = at + text[at..].chars().next().unwrap().len_utf8();
            let changed = format!("{}{new}{}", &text[..at], &text[end..]);
            for format in Format::PROVIDERS {
                let found = cache_diff(&text, &changed, &target(format));
                if let Ok(CacheDiff {
                    difference: Some(one),
                    ..
                }) = &found
                {
                    assert!(one.byte <= one.bytes + 1, "{changed}");
                }
            }
        }
    }
    let deep = |open: &str, close: &str, core: &str| {
        format!("{}{core}{}", open.repeat(20_000), close.repeat(20_000))
    };
    for core in ["1", r#"{"cache_control":{"type":"ephemeral"}}"#] {
        let content = deep(r#"[{"content":"#, "}]", core);
        let request =
            format!(r#"{{"messages":[{{"role":"user","content":{content}}}],"system":{content}}}"#);
        let other = request.replace("ephemeral", "lasting").replace('1', "2");
        cache_diff(&request, &other, &target(Format::Anthropic)).unwrap();
        let element = format!(r#"{{"role":"user","content":{content}}}"#);
        let _ = contexture_wire::set_marker(
            Format::Anthropic,
            &element,
            contexture_wire::CacheTtl::Usual,
        );
        let _ = contexture_wire::remove_markers(Format::Anthropic, &element);
        let _ = contexture_wire::markers(Format::Anthropic, &element);
    }
}

#[test]
fn another_cache_object_is_another_scope_however_it_is_spelled() {
    for name in ["cachedContent", "cached_content"] {
        let named = |object: &str| json!({"contents": [{"role": "user", "parts": [{"text": long("a")}]}], name: object});
        let gemini = |second| {
            diff(
                Format::Gemini,
                "gemini-2.5-pro",
                &named("a"),
                &named(second),
            )
        };
        assert_eq!(gemini("b").difference.unwrap().path, name);
        assert_eq!(gemini("a").difference, None);
    }
}
