//! Of many tools those that fit.

use contexture::Engine;
use contexture_testdata::request_validator;
use contexture_upstream_testkit::ScriptedProvider;
use serde_json::{Value, json};

use super::policies::{all, sent};
use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";

async fn with(policy: &str) -> Proxied {
    let (provider, engine) = (ScriptedProvider::default(), Engine::in_memory());
    Proxied::to(provider, engine, &all(policy)).await
}

/// Names and descriptions of thirty tools.
fn thirty() -> Vec<(String, String)> {
    let things = ["weather", "mail", "train", "invoice", "calendar", "garden"];
    let deeds = ["show", "change", "delete", "search", "share"];
    let pairs = things
        .iter()
        .flat_map(|thing| deeds.map(|deed| (deed, thing)));
    let tool = |(deed, thing): (&str, &&str)| {
        let about =
            format!("{deed} one {thing} of the user, with all that belongs to it, at length. ");
        (format!("{deed}_{thing}"), about.repeat(8))
    };
    pairs.map(tool).collect()
}

fn functions(names: &[(String, String)]) -> Vec<Value> {
    let tool = |(name, about): &(String, String)| {
        json!({"type": "function", "function": {"name": name, "description": about,
            "parameters": {"type": "object", "properties": {}}}})
    };
    names.iter().map(tool).collect()
}

fn offered(proxied: &Proxied) -> Vec<String> {
    let request: Value = serde_json::from_str(&sent(proxied).pop().unwrap()).unwrap();
    let tools = request["tools"].as_array().unwrap().iter();
    let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
    tools.filter_map(name).collect()
}

#[tokio::test]
async fn the_tools_that_fit_first_stay_for_the_whole_conversation() {
    let proxied = with("tools = { select = 6, deny = [\"share_train\"] }\n").await;
    let tools = functions(&thirty());
    let mut history = Vec::new();
    let mut before: Option<Vec<String>> = None;
    for words in [
        "Which train goes to Lisbon?",
        "And what is in my mail?",
        "Delete all of my calendar!",
    ] {
        history.push(says(words));
        let mut body = chat(&history);
        body["tools"] = json!(tools);
        let answer = proxied.ask(CHAT, &body).await;
        history.push(said(&answer));
        assert!(!answer.headers.contains_key("x-contexture-failed"));
        let saved = answer.headers["x-contexture-tokens-saved"].to_str();
        assert!(saved.unwrap().parse::<i64>().unwrap() > 1000);
        let names = offered(&proxied);
        assert_eq!(names.len(), 6, "{names:?}");
        let trains = names.iter().filter(|name| name.contains("train"));
        assert_eq!(trains.count(), 4, "{names:?}");
        assert_eq!(before.get_or_insert(names.clone()), &names);
        proxied.outcome(&answer).await;
    }
}

#[tokio::test]
async fn what_fits_nothing_or_cannot_be_ranked_goes_as_it_came() {
    let proxied = with("tools = { select = 6 }\n").await;
    let mut twice = thirty();
    twice.push(twice[0].clone());
    let few = thirty()[..6].to_vec();
    for (tools, words) in [
        (thirty(), "Olá!"),
        (twice, "Which train goes to Lisbon?"),
        (few, "Which train goes to Lisbon?"),
    ] {
        let mut body = chat(&[says(words)]);
        body["tools"] = json!(functions(&tools));
        let answer = proxied.ask(CHAT, &body).await;
        answer.ok();
        assert_eq!(sent(&proxied).pop().unwrap(), body.to_string(), "{words}");
    }
}

#[tokio::test]
async fn calls_and_choices_keep_their_tools_in_every_format() {
    let names = thirty();
    let of = |wrap: fn(&str, &str) -> Value| -> Vec<Value> {
        names
            .iter()
            .map(|(name, about)| wrap(name, about))
            .collect()
    };
    let chat_tools = functions(&names);
    let responses = of(|name, about| {
        json!({"type": "function", "name": name, "description": about, "strict": false,
            "parameters": {"type": "object", "properties": {}}})
    });
    let anthropic = of(
        |name, about| json!({"name": name, "description": about, "input_schema": {"type": "object", "properties": {}}}),
    );
    let gemini = of(|name, about| json!({"name": name, "description": about}));
    let question = "Which train goes to Lisbon?";
    let cases = [
        (
            "openai-chat",
            CHAT,
            json!({"model": "gpt-4.1", "tools": chat_tools, "messages": [says(question),
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                    "function": {"name": "show_garden", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c", "content": "roses"}],
                "tool_choice": {"type": "function", "function": {"name": "show_mail"}}}),
        ),
        (
            "openai-responses",
            "/v1/responses",
            json!({"model": "gpt-4.1", "tools": responses, "input": [says(question),
                {"type": "function_call", "call_id": "c", "name": "show_garden", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "roses"}],
                "tool_choice": {"type": "function", "name": "show_mail"}}),
        ),
        (
            "anthropic",
            "/v1/messages",
            json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": anthropic, "messages": [says(question),
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "show_garden", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "roses"}]}],
                "tool_choice": {"type": "tool", "name": "show_mail"}}),
        ),
        (
            "gemini",
            "/v1beta/models/gemini-2.5-flash:generateContent",
            json!({"tools": [{"functionDeclarations": gemini}], "contents": [
                {"role": "user", "parts": [{"text": question}]},
                {"role": "model", "parts": [{"functionCall": {"name": "show_garden", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "show_garden", "response": {"a": 1}}}]}]}),
        ),
    ];
    let proxied = with("tools = { select = 5 }\npays = \"fits\"\n").await;
    for (format, path, body) in cases {
        let answer = proxied.ask(path, &body).await;
        answer.ok();
        assert!(
            !answer.headers.contains_key("x-contexture-failed"),
            "{format}"
        );
        let text = sent(&proxied).pop().unwrap();
        let request: Value = serde_json::from_str(&text).unwrap();
        let tools = request["tools"].to_string();
        let left = names
            .iter()
            .filter(|(name, _)| tools.contains(&format!("\"{name}\"")));
        let left: Vec<&str> = left.map(|(name, _)| name.as_str()).collect();
        assert!(
            left.contains(&"show_train") && left.contains(&"show_garden"),
            "{format}: {left:?}"
        );
        // What is allowed only is Gemini's own word for a choice.
        assert_eq!(
            left.contains(&"show_mail"),
            format != "gemini",
            "{format}: {left:?}"
        );
        assert_eq!(
            left.len(),
            if format == "gemini" { 6 } else { 7 },
            "{format}"
        );
        let findings = request_validator(format).validation_errors(&request);
        assert_eq!(findings, Vec::<String>::new(), "{format}: {text}");
    }
}

#[tokio::test]
async fn a_selection_that_comes_late_has_to_pay_also_beside_notes() {
    for memory in ["", "memory = { of = \"owner\", tools = true }\n"] {
        let proxied = with(&format!("{memory}[policies.small.tools]\nselect = 29\n")).await;
        let mut history = vec![says(&"Olá, tudo bem? ".repeat(2_000))];
        // With the first thing that fits, the cache would be written anew for one tool less.
        for words in ["Which train goes to Lisbon?", "And what is in my mail?"] {
            let mut body = chat(&history);
            body["tools"] = json!(functions(&thirty()));
            let answer = proxied.ask(CHAT, &body).await;
            let names = offered(&proxied);
            let all = thirty();
            let theirs = all.iter().filter(|(name, _)| names.contains(name));
            assert_eq!(theirs.count(), 30, "{memory}");
            assert_eq!(names.len() > 30, !memory.is_empty(), "{names:?}");
            history.extend([said(&answer), says(words)]);
            proxied.outcome(&answer).await;
        }
    }
}

#[tokio::test]
async fn of_more_tools_than_the_model_takes_some_are_selected() {
    let proxied = with("tools = { select = 6 }\n").await;
    let copies = (0..5).flat_map(|copy| {
        let tools = thirty().into_iter();
        tools.map(move |(name, about)| (format!("{name}_{copy}"), about))
    });
    let mut body = chat(&[says("Which train goes to Lisbon?")]);
    body["tools"] = json!(functions(&copies.collect::<Vec<_>>()));
    let answer = proxied.ask(CHAT, &body).await;
    assert_eq!(answer.headers.get("x-contexture-failed"), None);
    assert_eq!(offered(&proxied).len(), 6);
}
