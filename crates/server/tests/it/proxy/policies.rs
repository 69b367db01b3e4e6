//! What policies make of requests: what goes out, what is kept, and what it saved.

use std::collections::BTreeMap;

use contexture::compile::{Band, Compiler, Content, Contribution, Target};
use contexture::{Catalogue, Engine, Format, lift};
use contexture_testdata::{exchanges, request_validator};
use contexture_upstream_testkit::{Received, ScriptedProvider, UpstreamResponse as Scripted};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";

/// Everybody gets this policy. It has time, unless it says how much: a busy machine must not make a request pass as it came.
pub(super) fn all(policy: &str) -> String {
    let timeout = match policy.contains("ingest_timeout_ms") {
        true => "",
        false => "ingest_timeout_ms = 600000\n",
    };
    format!("[policies.small]\n{timeout}{policy}\n[[routes]]\npolicy = \"small\"\n")
}

pub(super) async fn with(policy: &str) -> Proxied {
    let (provider, engine) = (ScriptedProvider::default(), Engine::in_memory());
    Proxied::to(provider, engine, &all(policy)).await
}

pub(super) fn long(turn: usize) -> Value {
    let words = format!("turn {turn}, and what was said of it at some length; ");
    says(&words.repeat(12))
}

/// The bodies that came to the provider.
pub(super) fn sent(proxied: &Proxied) -> Vec<String> {
    let received = proxied.upstream.received_requests();
    let text = |seen: &std::sync::Arc<Received>| String::from_utf8(seen.body.to_vec()).unwrap();
    received.iter().map(text).collect()
}

#[tokio::test]
async fn small_window_forty_turns_fit_and_keep_stable_prefix() {
    for policy in [
        "limit_tokens = 2000\n",
        "limit_tokens = 2000\ncompact = \"manifest\"\n",
    ] {
        let proxied = with(policy).await;
        let mut history = vec![json!({"role": "system", "content": "Answer briefly."})];
        let mut last: Vec<Value> = Vec::new();
        let (mut rewritten, mut epochs) = (0, 0);
        for turn in 0..40 {
            history.push(long(turn));
            let answer = proxied.ask(CHAT, &chat(&history)).await;
            history.push(said(&answer));
            assert_eq!(answer.headers["x-contexture-policy"], "small");
            assert!(!answer.headers.contains_key("x-contexture-failed"));
            let outcome = proxied.outcome(&answer).await;
            let expected = if turn == 0 { "new" } else { "prefix" };
            assert_eq!(outcome["matched"], expected, "turn {turn}: {outcome}");
            assert_eq!(outcome["appended"], 1, "{outcome}");
            let body = sent(&proxied).pop().unwrap();
            let document: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(document["model"], "gpt-4.1");
            let messages = document["messages"].as_array().unwrap().clone();
            assert_eq!(messages.last().unwrap(), &history[history.len() - 2]);
            // Four bytes a token, at most: the scripted words are plain English.
            assert!(body.len() < 2000 * 6, "{}", body.len());
            if outcome["tokens_saved"].as_i64().is_some() {
                rewritten += 1;
                let saved = answer.headers["x-contexture-tokens-saved"]
                    .to_str()
                    .unwrap();
                assert_eq!(saved, outcome["tokens_saved"].to_string());
            }
            if !messages.starts_with(&last) {
                epochs += 1;
            }
            last = messages;
        }
        assert!(rewritten > 20, "{policy}: {rewritten} were rewritten");
        assert!((1..=11).contains(&epochs), "{policy}: {epochs} epochs");
        let conversations = proxied.conversations().await;
        assert_eq!(conversations.len(), 1, "{policy}");
        assert_eq!(conversations[0]["branches"], 1, "{policy}");
    }
}

#[tokio::test]
async fn what_a_person_asks_to_hold_stands_in_every_request() {
    const RULE: &str = "Never push to main without asking me.";
    let small = "limit_tokens = 2000\n";
    let off: &[(&str, &str)] = &[("x-contexture-rules", "false")];
    for (policy, headers, holds) in [
        (small.to_owned(), &[][..], true),
        (format!("{small}compact = \"manifest\"\n"), &[], true),
        (
            "window = { turns = 2 }\npays = \"fits\"\n".to_owned(),
            &[],
            true,
        ),
        (format!("{small}rules = false\n"), &[], false),
        (small.to_owned(), off, false),
    ] {
        let proxied = with(&policy).await;
        let mut history = Vec::new();
        for turn in 0..40 {
            history.push(match turn {
                2 => says(RULE),
                _ => long(turn),
            });
            let answer = proxied.ask_with(CHAT, &chat(&history), headers).await;
            history.push(said(&answer));
        }
        let sent = sent(&proxied);
        let without = sent.iter().skip(2).filter(|body| !body.contains(RULE));
        // Without the pass it is gone once its message is out of view.
        assert_eq!(without.count() == 0, holds, "{policy}");
        // It is quoted, and not only told by a manifest.
        let quoted = format!("turn 3: {RULE}");
        assert_eq!(
            sent.iter().any(|body| body.contains(&quoted)),
            holds,
            "{policy}"
        );
    }
}

#[tokio::test]
async fn a_rule_outlives_the_window_that_a_client_keeps_itself() {
    const RULE: &str = "Never push to main without asking me.";
    // Otherwise a request that fits goes as it came unless another is cheaper, and a longer one never is.
    let proxied = with("limit_tokens = 2000\ncost_condition = \"fits\"\n").await;
    let headers = [("x-contexture-conversation", "windowed")];
    let mut history = Vec::new();
    for turn in 0..20 {
        history.push(match turn {
            2 => says(RULE),
            _ => long(turn),
        });
        let window = &history[history.len().saturating_sub(5)..];
        let answer = proxied.ask_with(CHAT, &chat(window), &headers).await;
        history.push(said(&answer));
    }
    let sent = sent(&proxied);
    let without: Vec<usize> = (2..sent.len())
        .filter(|at| !sent[*at].contains(RULE))
        .collect();
    assert!(without.is_empty(), "requests {without:?} of {}", sent.len());
}

#[tokio::test]
async fn what_need_not_change_goes_as_it_came() {
    for policy in [
        "",
        "limit_tokens = 100000\n",
        "limit_tokens = 100000\npays = \"fits\"\n",
        "clear = {}\n",
        "window = { turns = 50 }\n",
    ] {
        let proxied = with(policy).await;
        let body = "{ \"unknown\" : [1.0, 2e3],\"messages\":[{\"content\":\"Hi\",\"role\":\"user\"}], \"model\" :\"gpt-4.1\"}";
        let request = proxied
            .stand
            .request(reqwest::Method::POST, CHAT)
            .header("content-type", "application/json")
            .header("x-contexture-wait", "ingest")
            .body(body);
        let answer = proxied.stand.send(request).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        assert_eq!(answer.headers["x-contexture-policy"], "small");
        assert!(
            !answer.headers.contains_key("x-contexture-tokens-saved"),
            "{policy}"
        );
        assert!(
            !answer.headers.contains_key("x-contexture-failed"),
            "{policy}"
        );
        assert_eq!(sent(&proxied), [body], "{policy}");
    }
}

#[tokio::test]
async fn state_and_guardrails_are_said_and_not_kept() {
    let policy = "pays = \"fits\"\nstate = { step = 4 }\nguardrails = { output_tag = \"answer\", prefill = \"<answer>\" }\n";
    let proxied = with(policy).await;
    let mut history = vec![says("one")];
    for turn in 0..3 {
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        let body = sent(&proxied).pop().unwrap();
        for word in ["<step>4</step>", "XML element named answer"] {
            assert_eq!(body.matches(word).count(), 1, "{word} in {body}");
        }
        let document: Value = serde_json::from_str(&body).unwrap();
        let last = document["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert_ne!(
            last["role"], "assistant",
            "the client's answer begins where it begins"
        );
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(outcome["matched"], if turn == 0 { "new" } else { "prefix" });
        history.extend([said(&answer), says("and then?")]);
    }
    let conversations = proxied.conversations().await;
    assert_eq!(
        (conversations.len(), &conversations[0]["branches"]),
        (1, &json!(1))
    );
}

/// Local models, fine-tunes, names of deployments.
#[tokio::test]
async fn models_that_nobody_knows_are_cut_by_their_window() {
    let limited = all("limit_tokens = 2000\n");
    let configured = format!(
        "[models.\"my-finetune\"]\nwindow = 2000\nlike = \"gpt-4.1\"\n{}",
        all("compact = \"manifest\"\n")
    );
    for (config, model) in [(limited, "qwen3-coder:30b"), (configured, "my-finetune")] {
        let (provider, engine) = (ScriptedProvider::default(), Engine::in_memory());
        let proxied = Proxied::to(provider, engine, &config).await;
        let mut history = Vec::new();
        for turn in 0..20 {
            history.push(long(turn));
            let mut asked = chat(&history);
            asked["model"] = json!(model);
            let answer = proxied.ask(CHAT, &asked).await;
            assert!(
                !answer.headers.contains_key("x-contexture-failed"),
                "{model}, turn {turn}"
            );
            history.push(said(&answer));
        }
        let body = sent(&proxied).pop().unwrap();
        assert!(body.len() < 2000 * 6, "{model}: {}", body.len());
        assert!(body.contains(model));
    }
}

#[tokio::test]
async fn what_is_not_of_the_history_stays_as_it_was_written() {
    let proxied = with("window = { turns = 1 }\npays = \"fits\"\n").await;
    let history = [
        says("one"),
        json!({"role": "assistant", "content": "1"}),
        says("two"),
    ];
    let body = json!({"model": "gpt-4.1", "messages": history, "seed": 7, "x_unknown": {"a": [1]},
        "max_tokens": 50, "metadata": {"k": "v"}});
    let answer = proxied.ask(CHAT, &body).await;
    answer.ok();
    let sent: Value = serde_json::from_str(&sent(&proxied)[0]).unwrap();
    let mut expected = body.clone();
    expected["messages"] = sent["messages"].clone();
    assert_eq!(sent, expected);
    assert!(sent["messages"].as_array().unwrap().len() < 3, "{sent}");
}

#[tokio::test]
async fn what_cannot_be_compiled_goes_as_it_came_and_says_so() {
    // What is asked does not fit alone.
    let body = chat(&[says(&"many words that do not fit ".repeat(400))]);
    // The model is nobody's, and no window is said.
    let unknown = json!({"model": "nobodys-model-7", "messages": [says("Hi")]});
    for (policy, body) in [
        ("limit_tokens = 1000\n", body),
        ("window = { turns = 1 }\n", unknown),
    ] {
        let proxied = with(policy).await;
        let answer = proxied.ask(CHAT, &body).await;
        answer.ok();
        assert_eq!(answer.headers["x-contexture-failed"], "rewrite");
        assert_eq!(sent(&proxied).pop().unwrap(), body.to_string());
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(outcome["failed"], "rewrite", "{outcome}");
        assert!(outcome["answer"]["head"].is_string(), "{outcome}");
    }
}

#[tokio::test]
async fn what_the_provider_refuses_is_sent_again_as_it_came() {
    let provider = |received: &Received| match received.json()["messages"].as_array().unwrap().len()
    {
        3 => Scripted::json(
            200,
            &json!({"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}),
        ),
        _ => Scripted::text(400, "{}"),
    };
    let config = all("window = { turns = 1 }\npays = \"fits\"\n");
    let proxied = Proxied::to(provider, Engine::in_memory(), &config).await;
    let history = [
        says("one"),
        json!({"role": "assistant", "content": "1"}),
        says("two"),
    ];
    let answer = proxied.ask(CHAT, &chat(&history)).await;
    answer.ok();
    assert_eq!(answer.headers["x-contexture-failed"], "refused");
    assert_eq!(proxied.upstream.received_requests().len(), 2);
    let outcome = proxied.outcome(&answer).await;
    assert!(outcome["answer"]["head"].is_string(), "{outcome}");
}

#[tokio::test]
async fn what_goes_on_from_a_history_elsewhere_is_never_changed() {
    let proxied = with("window = { turns = 1 }\npays = \"fits\"\n").await;
    let turn = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let history = [turn("user", "one"), turn("model", "1"), turn("user", "two")];
    for (name, is_changed) in [
        ("cachedContent", false),
        ("cached_content", false),
        ("labels", true),
    ] {
        let body = json!({"contents": history, name: "cachedContents/a"});
        let path = "/v1beta/models/gemini-2.5-pro:generateContent";
        proxied.ask(path, &body).await.ok();
        let (sent, came) = (sent(&proxied).pop().unwrap(), body.to_string());
        assert_eq!(sent != came, is_changed, "{sent}");
    }
}

#[tokio::test]
async fn tools_that_are_denied_are_not_offered_whatever_is_asked_for() {
    let more = "[policies.safe.tools]\ndeny = [\"rm\"]\n[policies.open]\n\
        [[routes]]\nmodel = \"gpt-4*\"\npolicy = \"safe\"\n";
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), more).await;
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let body = |model: &str| json!({"model": model, "messages": [says("Hi")], "tools": [tool("rm"), tool("ls")]});
    let headers: [&[(&str, &str)]; 3] = [
        &[],
        &[("x-contexture-policy", "open")],
        &[("x-contexture-bypass", "true")],
    ];
    for headers in headers {
        proxied.ask_with(CHAT, &body("gpt-4.1"), headers).await.ok();
        let sent: Value = serde_json::from_str(&sent(&proxied).pop().unwrap()).unwrap();
        assert_eq!(sent["tools"], json!([tool("ls")]), "{headers:?}");
    }
    proxied.ask(CHAT, &body("o3")).await.ok();
    assert_eq!(sent(&proxied).pop().unwrap(), body("o3").to_string());
    let mut insists = body("gpt-4.1");
    insists["tool_choice"] = json!({"type": "function", "function": {"name": "rm"}});
    let answer = proxied.ask(CHAT, &insists).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.headers["x-contexture-failed"], "tool_denied");
    assert_eq!(answer.json()["error"]["code"], "tool_denied");
}

#[tokio::test]
async fn a_policy_that_is_not_there_is_refused_in_the_providers_shape() {
    let proxied = with("").await;
    let header = [("x-contexture-policy", "large")];
    for (path, word) in [(CHAT, "/error/code"), ("/v1/messages", "/error/type")] {
        let answer = proxied.ask_with(path, &chat(&[says("Hi")]), &header).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.headers["x-contexture-failed"], "unknown_policy");
        assert!(answer.json().pointer(word).is_some(), "{}", answer.text);
        assert!(answer.text.contains("there are small"), "{}", answer.text);
    }
    assert!(proxied.upstream.received_requests().is_empty());
}

/// The tokens of a request that is read anew.
fn counted(format: Format, body: &str, path: &str) -> u64 {
    let lifted = lift(format, body).unwrap().transcript;
    let model = lifted.model.or_else(|| model_in(path)).unwrap();
    let target = Target::new(format, model)
        .window(1 << 40)
        .marker_policy(None)
        .options(lifted.options)
        .tools(lifted.tools);
    let content = Content::Instructions(lifted.instructions);
    let compiler = Compiler::new(Catalogue::builtin());
    let compiler =
        compiler.with_contribution(Contribution::new("instructions", Band::System, content));
    let compiled = compiler.compile(&lifted.items, &target).unwrap();
    compiled.report.totals.tokens
}

/// The model that a path of Gemini's names.
fn model_in(target: &str) -> Option<String> {
    let (_, rest) = target.split_once("/models/")?;
    Some(rest.split(':').next()?.to_owned())
}

#[tokio::test]
async fn every_recorded_request_is_legal_and_fits_in_a_small_window() {
    let (mut all_of_them, mut rewritten) = (0, 0);
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        let validator = request_validator(format);
        let config = all(
            "limit_tokens = 1500\nwindow = { turns = 1 }\ncompact = \"manifest\"\npays = \"fits\"\n",
        );
        let provider = |_: &Received| Scripted::text(503, "{}");
        let proxied = Proxied::to(provider, Engine::in_memory(), &config).await;
        let lifts: BTreeMap<&str, Format> = Format::PROVIDERS.map(|one| (one.as_str(), one)).into();
        for exchange in exchanges(format) {
            let before = proxied.upstream.received_requests().len();
            let name = format.split('-').next().unwrap();
            let path = match format {
                "gemini" => format!("/gemini{}", exchange.path_and_query()),
                _ => format!(
                    "/{name}/v1/{}",
                    exchange.path_and_query().rsplit("/v1/").next().unwrap()
                ),
            };
            let request = proxied
                .stand
                .request(reqwest::Method::POST, &path)
                .header("content-type", "application/json")
                .header("x-contexture-wait", "ingest")
                .body(exchange.request.get().to_owned());
            let answer = proxied.stand.send(request).await;
            if !answer.headers.contains_key("x-contexture-request") {
                continue;
            }
            all_of_them += 1;
            let saved = answer.headers.get("x-contexture-tokens-saved");
            let body = sent(&proxied).get(before).unwrap().clone();
            if saved.is_none() {
                assert_eq!(
                    body,
                    exchange.request.get(),
                    "{} {}",
                    exchange.file,
                    exchange.index
                );
                continue;
            }
            rewritten += 1;
            let tokens = counted(lifts[format], &body, exchange.path_and_query());
            assert!(tokens <= 1500, "{tokens} tokens of {body}");
            let original: Value = serde_json::from_str(exchange.request.get()).unwrap();
            let document: Value = serde_json::from_str(&body).unwrap();
            let findings = validator.validation_errors(&document);
            // What the recorded request itself breaks is its own.
            if validator.validation_errors(&original).is_empty() {
                assert_eq!(
                    findings,
                    Vec::<String>::new(),
                    "{} {}",
                    exchange.file,
                    exchange.index
                );
            }
        }
    }
    println!("{rewritten} of {all_of_them} recorded requests were rewritten");
    assert!(
        rewritten >= 20 && all_of_them >= 300,
        "{rewritten} of {all_of_them}"
    );
}

#[tokio::test]
async fn the_ledger_sums_up_and_admits_losses() {
    let proxied = with("limit_tokens = 2000\n").await;
    let mut history = Vec::new();
    for turn in 0..25 {
        history.push(long(turn));
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        history.push(said(&answer));
        proxied.outcome(&answer).await;
    }
    let id = proxied.conversations().await[0]["id"].clone();
    let id = id.as_str().unwrap();
    let all = proxied.stand.get("/api/v1/ledger").await.ok();
    let mut entries = Vec::new();
    let mut after: Option<String> = None;
    let total = loop {
        let mut query = vec![("conversation", id), ("limit", "10")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let page = proxied.stand.find("/api/v1/ledger", &query).await.ok();
        entries.extend(page["entries"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break page["total"].clone(),
        }
    };
    assert_eq!(entries.len(), 25);
    for field in [
        "sent_pico_dollars",
        "passed_pico_dollars",
        "saved_pico_dollars",
    ] {
        let sum: i64 = entries
            .iter()
            .map(|entry| entry[field].as_i64().unwrap())
            .sum();
        assert_eq!(total[field], sum, "{field}");
        let days = all["days"].as_array().unwrap().iter();
        let sum: i64 = days.map(|day| day[field].as_i64().unwrap()).sum();
        assert_eq!(all["total"][field], sum, "{field}");
        assert_eq!(all["total"][field], total[field], "{field}");
    }
    assert_eq!(total["calls"], 25);
    let saved = |entry: &Value| entry["saved_pico_dollars"].as_i64().unwrap();
    for entry in &entries {
        let (sent, passed) = (&entry["sent_pico_dollars"], &entry["passed_pico_dollars"]);
        assert_eq!(
            saved(entry),
            passed.as_i64().unwrap() - sent.as_i64().unwrap()
        );
        // What goes as it came, before anything was changed, saves nothing and costs nothing.
        if entry["passed"] == entry["sent"] {
            assert_eq!(saved(entry), 0, "{entry}");
        }
    }
    // Where the window is cut the cache is written anew.
    assert!(entries.iter().any(|entry| saved(entry) < 0), "{entries:#?}");
    assert!(entries.iter().any(|entry| saved(entry) > 0), "{entries:#?}");
}
