//! The record of calls: every exchange has a row, whatever became of it, and the sums are those of the rows.

use std::sync::Arc;

use contexture::store::{MemoryStore, Store};
use contexture::{Engine, Format, Owner};
use contexture_server::NewKey;
use contexture_store_testkit::{Faulty, InjectedFault, Method as StoreMethod};
use contexture_upstream_testkit::{ScriptedProvider, UpstreamResponse as Scripted};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::own_talk::{MODES, Talk};
use super::policies::all;
use super::{Proxied, chat, configuration, said, says};
use crate::test_support::Stand;

const CHAT: &str = "/v1/chat/completions";

/// The rows of an owner's calls, newest first, once there are so many that have ended.
async fn rows(stand: &Stand, count: usize) -> Vec<Value> {
    loop {
        let listed = stand.get("/api/v1/calls?limit=500").await.ok();
        let calls = listed["calls"].as_array().unwrap().clone();
        if calls.len() >= count {
            assert_eq!(calls.len(), count, "{calls:#?}");
            return calls;
        }
        tokio::task::yield_now().await;
    }
}

fn column<'a>(rows: &'a [Value], name: &str) -> Vec<&'a Value> {
    rows.iter().map(|row| &row[name]).collect()
}

#[tokio::test]
async fn forwarded_calls_have_model_tokens_and_price() {
    let provider = |request: &contexture_upstream_testkit::Received| {
        let usage = match request.json()["model"].as_str() {
            Some("none") => Value::Null,
            _ => json!({"prompt_tokens": 1000, "total_tokens": 1000}),
        };
        let data = json!([{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}]);
        Scripted::json(
            200,
            &json!({"object": "list", "data": data, "usage": usage}),
        )
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    for model in ["gpt-4.1", "my-embedder", "none"] {
        let asked = json!({"model": model, "input": "How far is it to Niamey?"});
        proxied.ask("/v1/embeddings", &asked).await;
    }
    let large = json!({"model": "gpt-4.1", "input": "far ".repeat(20_000)});
    proxied.ask("/v1/embeddings", &large).await;
    let rows = rows(&proxied.stand, 4).await;
    let row = |model: &str| rows.iter().find(|row| row["model"] == model).unwrap();
    for row in &rows {
        assert_eq!(row["outcome"], "forwarded", "{row}");
    }
    let priced = row("gpt-4.1");
    assert_eq!(
        (&priced["tokens"]["input"], &priced["tokens"]["output"]),
        (&json!(1000), &json!(0))
    );
    // Two dollars a million.
    assert_eq!(priced["dollars"], "0.002");
    let unpriced = row("my-embedder");
    assert_eq!(
        (&unpriced["tokens"]["input"], &unpriced["dollars"]),
        (&json!(1000), &Value::Null)
    );
    assert_eq!(row("none")["tokens"], Value::Null);
    // A large body is passed on unread.
    let unread = rows.iter().filter(|row| row["model"] == Value::Null);
    assert_eq!(unread.count(), 1);
}

#[tokio::test]
async fn metrics_know_each_call_by_upstream_and_model() {
    let proxied = Proxied::new().await;
    let answered = proxied.ask(CHAT, &chat(&[says("Hello")])).await;
    proxied.outcome(&answered).await;
    proxied
        .ask(CHAT, &chat(&[says("upstream: status 429")]))
        .await;
    rows(&proxied.stand, 2).await;
    let figures = proxied.stand.get("/metrics").await.text;
    let whose = r#"upstream="openai",model="gpt-4.1""#;
    for expected in [
        format!(r#"contexture_calls_total{{{whose},outcome="completed",sent="own"}}"#),
        format!(r#"contexture_calls_total{{{whose},outcome="refused",sent="own"}}"#),
        format!(r#"contexture_call_tokens_total{{{whose},kind="input"}}"#),
        format!(r#"contexture_call_tokens_total{{{whose},kind="output"}}"#),
        format!("contexture_call_cost_nanodollars_total{{{whose}}}"),
        format!("contexture_call_seconds_count{{{whose}}}"),
        format!("contexture_call_first_byte_seconds_count{{{whose}}}"),
        r#"contexture_http_requests_total{route="openai-chat",method="POST",status="200"}"#
            .to_owned(),
        r#"contexture_http_requests_total{route="openai-chat",method="POST",status="429"}"#
            .to_owned(),
    ] {
        let line = figures.lines().find(|line| line.starts_with(&expected));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(
            value.is_some_and(|value| value > 0.0),
            "{expected}:\n{figures}"
        );
    }
}

#[tokio::test]
async fn every_exchange_has_one_row() {
    let proxied = Proxied::new().await;
    let stand = &proxied.stand;
    // A call of a model, with and without a store; one to no model; one that the provider refuses; one that is bypassed.
    let answered = proxied.ask(CHAT, &chat(&[says("Hello")])).await;
    proxied.outcome(&answered).await;
    stand.get("/v1/models").await;
    let bypassed = [("x-contexture-bypass", "true")];
    proxied
        .ask_with(CHAT, &chat(&[says("Not kept")]), &bypassed)
        .await;
    let refused = chat(&[says("upstream: status 429")]);
    proxied.ask(CHAT, &refused).await;
    let mut rows = rows(stand, 4).await;
    rows.reverse();
    assert_eq!(
        column(&rows, "outcome"),
        ["completed", "forwarded", "completed", "refused"],
        "{rows:#?}"
    );
    let id = answered.headers["x-contexture-request"].to_str().unwrap();
    let [first, models, bypassed, refused] = &rows[..] else {
        panic!("{rows:#?}");
    };
    assert_eq!(first["id"], id);
    assert_eq!(
        (&first["upstream"], &first["format"], &first["model"]),
        (&json!("openai"), &json!("openai-chat"), &json!("gpt-4.1"))
    );
    assert_eq!(
        (&first["status"], &first["attempts"]),
        (&json!(200), &json!(1))
    );
    let usage = &answered.json()["usage"];
    assert_eq!(first["tokens"]["input"], usage["prompt_tokens"], "{first}");
    assert_eq!(first["tokens"]["output"], usage["completion_tokens"]);
    assert!(first["pico_dollars"].as_u64().unwrap() > 0, "{first}");
    assert!(first["conversation"].is_string() && first["response"].is_string());
    assert_eq!(models["format"], Value::Null);
    assert_eq!(
        (&bypassed["conversation"], &bypassed["tokens"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&refused["status"], &refused["conversation"]),
        (&json!(429), &Value::Null)
    );
    for (since, count) in [("1h", 4), ("2020-01-01", 4), ("2999-01-01T00:00:00Z", 0)] {
        let listed = stand.get(&format!("/api/v1/calls?since={since}")).await;
        let listed = listed.ok();
        assert_eq!(listed["calls"].as_array().unwrap().len(), count, "{since}");
    }
    stand
        .get("/api/v1/calls?since=soon")
        .await
        .refused(400, "bad_query");
    let one = stand.get(&format!("/api/v1/calls/{id}")).await.ok();
    assert_eq!(&one, first);
    let strange = stand.get("/api/v1/calls/req_1").await;
    assert_eq!(strange.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn failures_have_rows_too() {
    // A port that was free a moment ago, and on which nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = configuration(&format!("http://127.0.0.1:{port}"), "");
    let stand = Stand::with(&config).await;
    let answer = stand.post(CHAT, &chat(&[says("Hello")])).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    let found = rows(&stand, 1).await;
    assert_eq!(column(&found, "outcome"), ["unreachable"]);
    assert_eq!(found[0]["status"], Value::Null);
    let headers = [("x-contexture-policy", "nobody has it")];
    let request = stand
        .request(Method::POST, CHAT)
        .header(headers[0].0, headers[0].1);
    let blocked = stand.send(request.body("{}")).await;
    assert!(blocked.status.is_client_error(), "{}", blocked.text);
    let found = rows(&stand, 2).await;
    assert_eq!(column(&found, "outcome"), ["blocked", "unreachable"]);
    assert_eq!(found[0]["status"], blocked.status.as_u16());
    assert_eq!(found[0]["refusal"], "unknown_policy");
    // Under a misspelt header the policy would not hold.
    let misspelt = stand
        .request(Method::POST, CHAT)
        .header("x-contexture-polcy", "strict");
    let misspelt = stand.send(misspelt.body("{}")).await;
    assert_eq!(misspelt.status, StatusCode::BAD_REQUEST);
    assert!(
        misspelt.text.contains("known are x-contexture-branch"),
        "{}",
        misspelt.text
    );
    assert_eq!(rows(&stand, 3).await[0]["refusal"], "bad_header");
    let usage = stand.get("/api/v1/usage?by=outcome").await.ok();
    assert_eq!(usage["total"]["failed"], 3, "{usage}");
}

#[tokio::test]
async fn usage_is_the_sum_of_the_rows() {
    let proxied = Proxied::to(
        ScriptedProvider::default(),
        Engine::in_memory(),
        &all("limit_tokens = 100000\n"),
    )
    .await;
    for turn in 0..6 {
        let name = format!("c-{}", turn % 2);
        let body = chat(&[says(&format!("question {turn}"))]);
        let headers = [("x-contexture-conversation", name.as_str())];
        proxied
            .outcome(&proxied.ask_with(CHAT, &body, &headers).await)
            .await;
    }
    let stand = &proxied.stand;
    let rows = rows(stand, 6).await;
    let total = |field: &str| -> u64 {
        let tokens = rows.iter().map(|row| row.pointer(field).unwrap());
        tokens.map(|tokens| tokens.as_u64().unwrap()).sum()
    };
    for by in [
        "day",
        "model,key",
        "policy",
        "conversation",
        "upstream",
        "outcome",
    ] {
        let usage = stand.get(&format!("/api/v1/usage?by={by}")).await.ok();
        let sum = &usage["total"];
        assert_eq!(sum["calls"], 6, "{usage}");
        assert_eq!(sum["input_tokens"], total("/tokens/input"));
        assert_eq!(sum["output_tokens"], total("/tokens/output"));
        assert_eq!(sum["pico_dollars"], total("/pico_dollars"));
        let groups = usage["groups"].as_array().unwrap();
        let wanted = if by == "conversation" { 2 } else { 1 };
        assert_eq!(groups.len(), wanted, "{usage}");
        let dollars: f64 = sum["dollars"].as_str().unwrap().parse().unwrap();
        let pico = sum["pico_dollars"].as_f64().unwrap();
        assert!((dollars * 1e12 - pico).abs() < 1.0, "{sum}");
    }
    let one = stand.get("/api/v1/usage?conversation=c-1").await.ok();
    assert_eq!(one["total"]["calls"], 3);
    for (query, code) in [
        ("usage?by=owners", "bad_query"),
        ("usage?outcome=lost", "bad_query"),
        ("calls?after=x", "bad_cursor"),
        ("calls?limit=0", "bad_query"),
    ] {
        let refused = stand.get(&format!("/api/v1/{query}")).await;
        assert_eq!(refused.json()["code"], code, "{query}");
    }
}

/// A conversation shows how it begins and what its calls used and cost, alone and in lists that are asked for it.
#[tokio::test]
async fn conversations_show_what_their_calls_cost() {
    let proxied = Proxied::new().await;
    let stand = &proxied.stand;
    for (name, turns) in [("c-1", 2), ("c-2", 1)] {
        let headers = [("x-contexture-conversation", name)];
        let mut history = Vec::new();
        for turn in 0..turns {
            history.push(says(&format!("{name}:\n question {turn}")));
            let answer = proxied.ask_with(CHAT, &chat(&history), &headers).await;
            proxied.outcome(&answer).await;
            history.push(said(&answer));
        }
    }
    let listed = stand
        .get("/api/v1/conversations?include=overview")
        .await
        .ok();
    for conversation in listed["conversations"].as_array().unwrap() {
        let id = conversation["id"].as_str().unwrap();
        let shown = stand.get(&format!("/api/v1/conversations/{id}")).await.ok();
        assert_eq!(&shown, conversation);
        let overview = &shown["overview"];
        assert_eq!(overview["preview"], format!("{id}: question 0"));
        assert_eq!(overview["last_model"], "gpt-4.1");
        let usage = stand
            .get(&format!("/api/v1/usage?conversation={id}"))
            .await
            .ok();
        assert_eq!(overview["usage"], usage["total"]);
        assert_ne!(usage["total"]["pico_dollars"], 0);
    }
    let plain = stand.get("/api/v1/conversations").await.ok();
    assert!(
        plain["conversations"][0].get("overview").is_none(),
        "{plain}"
    );
}

/// An administrator's key sees what each owner used, and no other key does.
#[tokio::test]
async fn usage_by_owner_is_for_administrators() {
    let keys = [NewKey::random().unwrap(), NewKey::random().unwrap()];
    let lines = keys.iter().zip([
        ("ada", "[\"proxy\", \"read\"]"),
        ("boss", "[\"read\", \"proxy\", \"admin\"]"),
    ]);
    let config: String = lines
        .map(|(key, (name, scopes))| {
            let hash = key.hash();
            format!("[[keys]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nowner = \"{name}\"\nscopes = {scopes}\n")
        })
        .collect();
    let mut proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &config).await;
    for (key, calls) in keys.iter().zip([2, 1]) {
        proxied.stand.as_bearer(Some(key.secret()));
        for n in 0..calls {
            let answer = proxied.ask(CHAT, &chat(&[says(&format!("{n}"))])).await;
            proxied.outcome(&answer).await;
        }
    }
    let usage = proxied.stand.get("/api/v1/usage?by=owner,model").await.ok();
    let groups = usage["groups"].as_array().unwrap();
    assert_eq!(column(groups, "owner"), ["ada", "boss"], "{usage}");
    assert_eq!(column(groups, "calls"), [2, 1]);
    assert_eq!(
        (&usage["total"]["calls"], &usage["by"]),
        (&json!(3), &json!(["owner", "model"]))
    );
    let owners = proxied.stand.get("/api/v1/owners?limit=1").await.ok();
    assert_eq!(owners["owners"][0]["owner"], "ada", "{owners}");
    assert_eq!(owners["owners"][0]["calls"], 2);
    assert_eq!(owners["owners"][0]["dollars"], groups[0]["dollars"]);
    let after = owners["next"].as_str().unwrap();
    let rest = format!("/api/v1/owners?after={after}");
    let rest = proxied.stand.get(&rest).await.ok();
    assert_eq!(
        column(rest["owners"].as_array().unwrap(), "owner"),
        ["boss"]
    );
    assert_eq!(rest["next"], Value::Null);
    proxied.stand.as_bearer(Some(keys[0].secret()));
    let refused = proxied.stand.get("/api/v1/owners").await;
    refused.refused(403, "missing_scope");
    let caller = proxied.stand.get("/api/v1/whoami").await.ok();
    assert_eq!(caller["spending"]["dollars"], groups[0]["dollars"]);
    assert_eq!(caller["key_spending"]["dollars"], groups[0]["dollars"]);
    assert_eq!(caller["spending"]["dollars_per_day"], Value::Null);
    let refused = proxied.stand.get("/api/v1/usage?by=owner").await;
    refused.refused(403, "missing_scope");
    let own = proxied.stand.get("/api/v1/usage").await.ok();
    assert_eq!(own["total"]["calls"], 2);
}

#[tokio::test]
async fn calls_come_in_pages_and_by_filters() {
    let proxied = Proxied::new().await;
    for turn in 0..5 {
        let answer = proxied.ask(CHAT, &chat(&[says(&format!("{turn}"))])).await;
        proxied.outcome(&answer).await;
    }
    let stand = &proxied.stand;
    let whole = rows(stand, 5).await;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut query = vec![("limit", "2"), ("model", "gpt-4.1")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let page = stand.find("/api/v1/calls", &query).await.ok();
        found.extend(page["calls"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(found, whole);
    for (filter, count) in [
        (("model", "gpt-5"), 0),
        (("key", ""), 5),
        (("outcome", "refused"), 0),
        (("until", "0"), 0),
        (("since", "0"), 5),
    ] {
        let page = stand.find("/api/v1/calls", &[filter]).await.ok();
        assert_eq!(page["calls"].as_array().unwrap().len(), count, "{filter:?}");
    }
}

/// Whatever call of the store fails once, each exchange has one row, and the answer of a stored row is stored.
#[tokio::test]
async fn a_store_that_fails_once_loses_no_row() {
    for fault in [InjectedFault::Before, InjectedFault::After] {
        for call in 1.. {
            let inner = Arc::new(MemoryStore::new());
            let store = Arc::new(Faulty::failing_call(inner.clone(), call, fault));
            let engine = Engine::new(store.clone() as Arc<dyn Store>);
            let proxied = Proxied::to(ScriptedProvider::default(), engine, "").await;
            let answer = proxied.ask(CHAT, &chat(&[says("Hello")])).await;
            answer.ok();
            let calls = inner.calls().unwrap();
            let owner = Owner::new("local").unwrap();
            let row = loop {
                let page = calls.list_calls(&owner, Default::default()).await.unwrap();
                match &page.calls[..] {
                    [] => tokio::task::yield_now().await,
                    [row] => break row.clone(),
                    more => panic!("{more:?}"),
                }
            };
            let id = answer.headers["x-contexture-request"].to_str().unwrap();
            assert_eq!(format!("req_{}", row.id), id);
            if let (Some(conversation), Some(response)) = (&row.conversation, row.response) {
                let stored = inner.load_response(&owner, conversation, response).await;
                assert!(stored.is_ok(), "{fault:?} at {call}");
            }
            if store.fault_count() == 0 {
                let counts = store.call_counts();
                assert_eq!(
                    counts.get(&StoreMethod::RecordCalls),
                    None,
                    "one append is enough"
                );
                assert!(call > 3, "{call} calls of the store");
                break;
            }
        }
    }
}

/// What a rewritten call was made of is stored with it, shown as it was stored, and goes with its conversation.
#[tokio::test]
async fn a_rewritten_call_keeps_its_band() {
    let policy = all("window = { turns = 1 }\ncost_condition = \"fits\"\n");
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &policy).await;
    let stand = &proxied.stand;
    let named = [("x-contexture-conversation", "c-1")];
    let mut history = Vec::new();
    for turn in 0..4 {
        history.push(says(&format!("question {turn} {}", "word ".repeat(600))));
        let answer = proxied.ask_with(CHAT, &chat(&history), &named).await;
        proxied.outcome(&answer).await;
        history.push(said(&answer));
    }
    let rows = rows(stand, 4).await;
    let shown = |row: &Value| {
        let id = row["id"].as_str().unwrap().to_owned();
        async move { stand.get(&format!("/api/v1/calls/{id}")).await.ok() }
    };
    for (row, turn) in rows.iter().rev().zip(0..) {
        assert_eq!(row["rewritten"], turn > 0, "{row}");
        let band = shown(row).await["band"].clone();
        assert_eq!(band.is_null(), turn == 0, "{band}");
        let Some(parts) = band["parts"].as_array() else {
            continue;
        };
        let tokens: u64 = parts
            .iter()
            .map(|part| part["tokens"].as_u64().unwrap())
            .sum();
        assert_eq!(band["tokens"], tokens);
        assert_eq!(band["path_items"], 2 * turn + 1, "{band}");
        assert_eq!(
            band["cache_read"], row["prediction"]["sent"]["read"],
            "{band}"
        );
        let trimmed = parts
            .iter()
            .find(|part| part["verdict"] == "trimmed")
            .unwrap();
        assert_eq!(trimmed["rule"], "oldest_trimmed");
        // The first message of the user is always sent.
        assert_eq!(trimmed["first"], 1, "{trimmed}");
        // Each turn moves the window, and with it the prefix that the call before left in the cache.
        let broken = &band["prefix_break"];
        assert_eq!(broken.is_null(), turn < 2, "{band}");
        if turn >= 2 {
            assert_eq!(broken["reason"], "history_trimmed");
            assert!(broken["pico_dollars"].is_u64(), "{broken}");
        }
    }
    // Lists have bands where they are asked for.
    let listed = stand.get("/api/v1/calls?include=band&limit=1").await.ok();
    assert_eq!(listed["calls"][0]["band"], shown(&rows[0]).await["band"]);
    stand
        .call(Method::DELETE, "/api/v1/conversations/c-1", &Value::Null)
        .await;
    let gone = shown(&rows[0]).await;
    assert_eq!(
        (&gone["band"], &gone["conversation"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(gone["tokens"], rows[0]["tokens"]);
}

/// Each round of a tool that the proxy answers is an exchange with all that others have: band, tokens and first byte.
#[tokio::test]
async fn each_round_of_a_server_tool_has_a_row() {
    for mode in MODES {
        let mut talk = Talk::new(Format::OpenAiChat, mode).await;
        talk.ask("upstream: again 2 read_context {\"query\":\"needle-7431\"}")
            .await;
        let stand = &talk.proxied.stand;
        let rows = rows(stand, 3).await;
        assert_eq!(column(&rows, "own"), [true, true, false], "{mode:?}");
        for row in &rows {
            assert!(row["first_byte_ms"].is_u64(), "{mode:?}: {row}");
            let id = row["id"].as_str().unwrap();
            let call = stand.get(&format!("/api/v1/calls/{id}")).await.ok();
            assert!(call["band"]["tokens"].as_u64() > Some(0), "{call}");
        }
        let usage = stand.get("/api/v1/usage").await.ok();
        let answered = talk.answered();
        let told = answered
            .iter()
            .map(|one| one.response.clone().unwrap().usage.unwrap());
        let input: u64 = told.map(|usage| usage.input_tokens.unwrap()).sum();
        assert_eq!(usage["total"]["input_tokens"], input, "{mode:?}");
    }
}

/// What waits for others when the server ends is stored before it has ended.
#[tokio::test]
async fn rows_that_wait_are_stored_at_shutdown() {
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>);
    let mut proxied = Proxied::to(ScriptedProvider::default(), engine, "").await;
    let bypassed = [("x-contexture-bypass", "true")];
    for n in 0..50 {
        let body = chat(&[says(&format!("{n}"))]);
        proxied.ask_with(CHAT, &body, &bypassed).await.ok();
    }
    proxied.stand.stop();
    proxied.stand.stopped().await;
    let calls = store.calls().unwrap();
    let owner = Owner::new("local").unwrap();
    let stored = calls.list_calls(&owner, Default::default()).await.unwrap();
    assert_eq!(stored.calls.len(), 50);
}

#[tokio::test]
async fn an_unreadable_answer_has_a_row() {
    let provider = |_: &contexture_upstream_testkit::Received| Scripted::text(200, "whatever");
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    proxied.ask(CHAT, &chat(&[says("Hello")])).await;
    let rows = rows(&proxied.stand, 1).await;
    assert_eq!(
        (&rows[0]["outcome"], &rows[0]["tokens"]),
        (&json!("completed"), &Value::Null)
    );
}
