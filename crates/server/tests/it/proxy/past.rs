//! Past calls over HTTP: their requests, reports and answers, what they differ in, and what they would be otherwise.

use contexture::Engine;
use contexture_server::NewKey;
use contexture_upstream_testkit::ScriptedProvider;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Proxied, chat, said, says};
use crate::test_support::Answer;

const CHAT: &str = "/v1/chat/completions";
const BODIES: &str = "[server]\nbodies = \"7d\"\n";

/// Sends a body as it is, and waits until its answer is stored; returns the answer and the call's id.
async fn send(proxied: &Proxied, body: &str, headers: &[(&str, &str)]) -> (Answer, String) {
    let mut request = proxied.stand.request(Method::POST, CHAT);
    request = request.header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = proxied.stand.send(request.body(body.to_owned())).await;
    proxied.outcome(&answer).await;
    let id = answer.headers["x-contexture-request"].to_str().unwrap();
    let id = id.to_owned();
    (answer, id)
}

/// A call with all its parts.
async fn show(proxied: &Proxied, id: &str) -> Answer {
    let path = format!("/api/v1/calls/{id}?include=sent,came,report,answer");
    proxied.stand.get(&path).await
}

/// Writes a body in a way that no serialiser does.
fn written(messages: &[Value]) -> String {
    let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
    format!(
        "{{\n  \"messages\": [ {} ],\n  \"model\": \"gpt-4.1\", \"temperature\": 0.50 }}",
        messages.join(" , ")
    )
}

#[tokio::test]
async fn a_call_shows_what_came_what_was_sent_and_the_answer() {
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), BODIES).await;
    let mut messages = vec![says("Where is my parcel?")];
    let mut sent = Vec::new();
    for _ in 0..3 {
        let body = written(&messages);
        let (answer, id) = send(&proxied, &body, &[]).await;
        messages.push(said(&answer));
        messages.push(says("And now?"));
        sent.push((id, body, answer));
    }
    for (id, body, answer) in &sent {
        let shown = show(&proxied, id).await;
        // The bytes themselves, white space and numbers included.
        assert!(shown.text.contains(body), "{}", shown.text);
        let call = shown.ok();
        for part in ["came", "sent"] {
            let request = &call[part];
            assert_eq!(
                (&request["exact"], &request["source"]),
                (&json!(true), &json!("body")),
                "{part}: {call}"
            );
            assert_eq!(request["missing"], Value::Null);
        }
        assert!(
            call["report"]["missing"]
                .as_str()
                .unwrap()
                .contains("passed on"),
            "{call}"
        );
        let text = &call["answer"]["items"][0]["item"]["content"][0]["text"];
        assert_eq!(text, &said(answer)["content"], "{call}");
        assert_eq!(call["answer"]["response"], call["response"]);
        let bare = proxied.stand.get(&format!("/api/v1/calls/{id}")).await.ok();
        assert!(
            bare.get("came").is_none() && bare.get("answer").is_none(),
            "{bare}"
        );
    }
    // The log has what each answer cost.
    let named = proxied.conversations().await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let log = format!("/api/v1/conversations/{named}/log?usage=true");
    let log = proxied.stand.get(&log).await.ok();
    let entries = log["entries"].as_array().unwrap();
    let answers = entries.iter().filter(|entry| entry["role"] == "assistant");
    let calls: Vec<&Value> = answers.map(|entry| &entry["usage"]["calls"]).collect();
    assert_eq!(calls, [&json!(1), &json!(1), &json!(1)], "{log}");
    let total = &proxied.stand.get("/api/v1/usage").await.ok()["total"]["pico_dollars"];
    let costs = entries
        .iter()
        .map(|entry| entry["usage"]["pico_dollars"].as_u64().unwrap());
    assert_eq!(&json!(costs.sum::<u64>()), total);
    let unknown = proxied
        .stand
        .get(&format!("/api/v1/calls/{}?include=all", sent[0].0))
        .await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST, "{}", unknown.text);
    assert!(
        unknown.text.contains("sent, came, report, answer"),
        "{}",
        unknown.text
    );
    // The next request begins with the one before.
    let asked = json!({"first": {"call": sent[1].0}, "second": {"call": sent[2].0, "as": "came"}});
    let found = proxied.stand.post("/api/v1/diff", &asked).await.ok();
    assert_eq!(
        (&found["holds"], &found["exact"]),
        (&json!(true), &json!(true)),
        "{found}"
    );
    let asked = json!({"first": {"call": sent[2].0}, "second": {"request": chat(&[says("Something else")])}});
    let found = proxied.stand.post("/api/v1/diff", &asked).await.ok();
    let place = &found["first_difference"]["path"];
    assert!(
        place.as_str().unwrap().starts_with("messages[0]"),
        "{found}"
    );
    for (wrong, words) in [
        (
            json!({"first": {"call": "req_x"}, "second": {"call": sent[0].0}}),
            "first.call",
        ),
        (
            json!({"first": {}, "second": {"call": sent[0].0}}),
            "`first`",
        ),
    ] {
        let refused = proxied.stand.post("/api/v1/diff", &wrong).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(refused.text.contains(words), "{}", refused.text);
    }
}

#[tokio::test]
async fn a_rewritten_call_shows_both_requests_and_its_report() {
    let config =
        format!("{BODIES}[policies.small]\nlimit_tokens = 1500\ncost_condition = \"fits\"\n");
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &config).await;
    let under = [("x-contexture-policy", "small")];
    let mut messages = vec![says("Begin")];
    let mut last = None;
    for number in 0..6 {
        let (answer, id) = send(&proxied, &written(&messages), &under).await;
        let body = written(&messages);
        messages.push(said(&answer));
        messages.push(says(&format!("{number} {}", "word ".repeat(300))));
        last = Some((id, body));
    }
    let (id, body) = last.unwrap();
    let call = show(&proxied, &id).await.ok();
    assert_eq!(call["rewritten"], true, "{call}");
    assert_eq!(
        (&call["came"]["exact"], &call["came"]["source"]),
        (&json!(true), &json!("body"))
    );
    let came: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(call["came"]["request"], came);
    assert_eq!(
        (&call["sent"]["exact"], &call["sent"]["source"]),
        (&json!(true), &json!("replay")),
        "{call}"
    );
    let received = proxied.upstream.received_requests();
    let received: Value = serde_json::from_slice(&received.last().unwrap().body).unwrap();
    assert_eq!(call["sent"]["request"], received);
    assert_eq!(call["report"]["exact"], true);
    // The report is that of the request: the sums of the stored band and of the report agree.
    assert_eq!(
        call["report"]["report"]["totals"]["tokens"],
        call["band"]["tokens"]
    );
}

#[tokio::test]
async fn without_bodies_a_call_says_that_it_is_made_again() {
    let proxied = Proxied::new().await;
    let body = written(&[says("Where is my parcel?")]);
    let (_, id) = send(&proxied, &body, &[]).await;
    let call = show(&proxied, &id).await.ok();
    assert_eq!(
        (&call["came"]["exact"], &call["came"]["source"]),
        (&json!(false), &json!("items")),
        "{call}"
    );
    let came: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(call["came"]["request"], came);
    // A call that nobody answered left nothing. Its row is stored a little later than it is answered.
    let refused = chat(&[says("upstream: status 500")]).to_string();
    let (_, id) = send(&proxied, &refused, &[]).await;
    let call = loop {
        let shown = show(&proxied, &id).await;
        match shown.status {
            StatusCode::NOT_FOUND => tokio::task::yield_now().await,
            _ => break shown.ok(),
        }
    };
    for part in ["came", "sent", "answer"] {
        assert!(
            call[part]["missing"]
                .as_str()
                .unwrap()
                .contains("no conversation"),
            "{call}"
        );
    }
}

#[tokio::test]
async fn parts_of_calls_belong_to_their_owner() {
    let keys = [NewKey::random().unwrap(), NewKey::random().unwrap()];
    let lines = ["ada", "bob"].into_iter().zip(&keys).map(|(owner, key)| {
        format!(
            "[[keys]]\nname = \"{owner}\"\nsha256 = \"{}\"\nowner = \"{owner}\"\nscopes = [\"proxy\", \"read\"]\n",
            key.hash()
        )
    });
    let config = format!("{BODIES}{}", lines.collect::<String>());
    let mut proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &config).await;
    proxied.stand.as_bearer(Some(keys[0].secret()));
    let (_, id) = send(&proxied, &written(&[says("Mine")]), &[]).await;
    assert!(show(&proxied, &id).await.text.contains("Mine"));
    proxied.stand.as_bearer(Some(keys[1].secret()));
    assert_eq!(show(&proxied, &id).await.status, StatusCode::NOT_FOUND);
    let items = format!("/api/v1/calls/{id}/items");
    assert_eq!(
        proxied.stand.get(&items).await.status,
        StatusCode::NOT_FOUND
    );
    let what_if = format!("/api/v1/calls/{id}/what-if");
    let what_if = proxied.stand.post(&what_if, &json!({})).await;
    assert_eq!(what_if.status, StatusCode::NOT_FOUND, "{}", what_if.text);
    let asked = json!({"first": {"call": id}, "second": {"call": id}});
    let refused = proxied.stand.post("/api/v1/diff", &asked).await;
    assert!(
        refused.text.contains("there is no call"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn what_if_tells_what_another_policy_would_send() {
    let proxied = Proxied::new().await;
    let mut messages = vec![says("Read the log")];
    for number in 0..4 {
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{number}"), "type": "function",
            "function": {"name": "read", "arguments": format!("{{\"page\":{number}}}")}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{number}"), "content": format!("page {number}: {}", "line of a log\n".repeat(400))}));
    }
    let (_, id) = send(&proxied, &chat(&messages).to_string(), &[]).await;
    let call = proxied.stand.get(&format!("/api/v1/calls/{id}")).await.ok();
    let chat = call["conversation"].as_str().unwrap();
    let before = proxied
        .stand
        .get(&format!("/api/v1/conversations/{chat}"))
        .await
        .ok();
    let path = format!("/api/v1/conversations/{chat}/what-if");
    let same = proxied.stand.post(&path, &json!({})).await.ok();
    assert_eq!(same["against"], id, "{same}");
    assert_eq!(same["difference"]["holds"], true, "{same}");
    let asked = json!({"window": 40000, "policy": {"clear": {"keep_recent": 1, "above_percent": 1, "always": true}}});
    let told = proxied.stand.post(&path, &asked).await.ok();
    let tokens = |told: &Value| told["report"]["totals"]["tokens"].as_u64().unwrap();
    assert!(
        tokens(&told) * 2 < tokens(&same),
        "{} {}",
        tokens(&told),
        tokens(&same)
    );
    assert_eq!(told["difference"]["holds"], false);
    let dollars = |told: &Value, name: &str| told[name].as_str().unwrap().parse::<f64>().unwrap();
    assert!(dollars(&told, "next_dollars") < dollars(&told, "dollars"));
    assert!(dollars(&told, "next_dollars") < dollars(&same, "next_dollars"));
    // Texts, with what stands in their place.
    let path = format!("/api/v1/conversations/{chat}/explain?include=text");
    let explained = proxied.stand.post(&path, &asked).await.ok();
    let items = explained["text"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 10, "{explained}");
    let cleared = &items[2];
    assert_eq!(
        (&cleared["kind"], &cleared["verdict"]),
        (&json!("function_call_output"), &json!("cleared")),
        "{cleared}"
    );
    assert!(
        cleared["text"]
            .as_str()
            .unwrap()
            .starts_with("page 0: line")
    );
    let shown = cleared["sent"].as_str().unwrap();
    assert!(
        shown.len() < 200 && told["payload"].to_string().contains(shown),
        "{shown}"
    );
    let kept = &items[8];
    assert_eq!(
        (&kept["verdict"], &kept["sent"]),
        (&Value::Null, &kept["text"]),
        "{kept}"
    );
    let nodes = proxied
        .stand
        .get(&format!("/api/v1/conversations/{chat}/items"))
        .await
        .ok();
    assert_eq!(items[2]["node"], nodes["items"][2]["id"]);
    let after = proxied
        .stand
        .get(&format!("/api/v1/conversations/{chat}"))
        .await
        .ok();
    assert_eq!(before, after, "nothing was stored");
}

/// A past call is compiled at the place where it was made, as it was or otherwise; what came later is not in it.
#[tokio::test]
async fn a_past_call_is_compiled_as_it_would_have_been() {
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), BODIES).await;
    let mut messages = vec![says("Where is my parcel?")];
    let mut ids = Vec::new();
    for turn in 0..4 {
        let (answer, id) = send(&proxied, &chat(&messages).to_string(), &[]).await;
        messages.push(said(&answer));
        messages.push(says(&format!(
            "And now? {}",
            format!("turn {turn} goes on and on. ").repeat(200)
        )));
        ids.push(id);
    }
    let before = proxied.conversations().await;
    let what_if = async |id: &str, asked: Value| {
        let path = format!("/api/v1/calls/{id}/what-if");
        proxied.stand.post(&path, &asked).await
    };
    for (at, id) in ids.iter().enumerate() {
        let told = what_if(id, json!({})).await.ok();
        let sent = &show(&proxied, id).await.ok()["sent"]["request"];
        assert_eq!(told["payload"]["messages"], sent["messages"], "{told}");
        let expected = at.checked_sub(1).map(|before| ids[before].as_str());
        assert_eq!(told["against"].as_str(), expected, "{told}");
        let parts = told["band"]["parts"].as_array().unwrap();
        let tokens = parts.iter().map(|part| part["tokens"].as_u64().unwrap());
        assert_eq!(json!(tokens.sum::<u64>()), told["band"]["tokens"]);
        assert_eq!(told["band"]["tokens"], told["report"]["totals"]["tokens"]);
    }
    let last = &ids[3];
    let all = what_if(last, json!({})).await.ok();
    let asked = json!({"policy": {"window": {"turns": 1}}, "model": "gpt-4o"});
    let less = what_if(last, asked).await.ok();
    assert_eq!(less["report"]["target"]["model"], "gpt-4o");
    let tokens = |told: &Value| told["band"]["tokens"].as_u64().unwrap();
    assert!(tokens(&less) * 2 < tokens(&all), "{less}");
    what_if("req_x", json!({})).await.refused(404, "not_found");
    let unknown = what_if(last, json!({"policy": "none such"})).await;
    assert!(unknown.text.contains("none such"), "{}", unknown.text);
    assert_eq!(before, proxied.conversations().await, "nothing was stored");
}

#[tokio::test]
async fn items_of_a_call_have_what_was_sent_in_their_place() {
    let config = format!(
        "{BODIES}[policies.brief]\nlimit_tokens = 20000\nclear = {{ keep_recent = 1, above_percent = 1, always = true, min_bytes = 20 }}\n\
         cost_condition = \"fits\"\n[[routes]]\npolicy = \"brief\"\n"
    );
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &config).await;
    let mut messages = vec![says("Read both pages.")];
    for page in 0..3 {
        let id = format!("call_{page}");
        let call =
            json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let text = format!("page {page}: line\n").repeat(300);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    let (_, id) = send(&proxied, &chat(&messages).to_string(), &[]).await;
    let items = async |query: &str| {
        let path = format!("/api/v1/calls/{id}/items{query}");
        proxied.stand.get(&path).await
    };
    let all = items("").await.ok();
    assert_eq!(
        (&all["path_items"], &all["exact"]),
        (&json!(7), &json!(true)),
        "{all}"
    );
    let list = all["items"].as_array().unwrap();
    let sent = show(&proxied, &id).await.ok()["sent"]["request"].to_string();
    let cleared: Vec<&Value> = list
        .iter()
        .filter(|item| item["verdict"] == "cleared")
        .collect();
    // As many as it takes to save what is to be saved: the newest stays in any case.
    assert!((1..=2).contains(&cleared.len()), "{all}");
    for item in &cleared {
        let (text, shown) = (
            item["text"].as_str().unwrap(),
            item["sent"].as_str().unwrap(),
        );
        assert!(text.starts_with("page ") && shown.len() < 200, "{item}");
        assert!(
            sent.contains(shown) && !sent.contains(&text[..200].replace('\n', "\\n")),
            "{item}"
        );
        assert!(!item["rule"].as_str().unwrap().is_empty());
    }
    let kept = list.last().unwrap();
    assert_eq!(kept["sent"], kept["text"], "{kept}");
    // A page is a part of the whole list.
    let page = items("?first=2&limit=3").await.ok();
    assert_eq!(page["items"].as_array().unwrap(), &list[2..5]);
    assert_eq!(items("?first=99").await.ok()["items"], json!([]));
    items("?limit=0").await.refused(400, "bad_query");
}

#[tokio::test]
async fn calls_of_a_branch_are_those_whose_answers_are_on_it() {
    let proxied = Proxied::new().await;
    let headers = [("x-contexture-conversation", "a")];
    let mut history = vec![says("Where is my parcel?")];
    let (answer, root) = send(&proxied, &chat(&history).to_string(), &headers).await;
    history.push(said(&answer));
    let mut ends = Vec::new();
    for ask in ["And now?", "Cancel the order."] {
        let mut messages = history.clone();
        messages.push(says(ask));
        ends.push(
            send(&proxied, &chat(&messages).to_string(), &headers)
                .await
                .1,
        );
    }
    let branches = proxied
        .stand
        .get("/api/v1/conversations/a/branches")
        .await
        .ok();
    let mut found = Vec::new();
    for branch in branches["branches"].as_array().unwrap() {
        let name = branch["name"].as_str().unwrap();
        let path = format!("/api/v1/calls?conversation=a&branch={name}");
        let first = proxied.stand.get(&format!("{path}&limit=1")).await.ok();
        let next = first["next"].as_str().unwrap();
        let second = proxied
            .stand
            .get(&format!("{path}&limit=1&after={next}"))
            .await
            .ok();
        assert_eq!(
            (&first["total"], &second["total"]),
            (&json!(2), &json!(2)),
            "{first}"
        );
        assert_eq!(second["next"], Value::Null, "{second}");
        assert_eq!(second["calls"][0]["id"], root.as_str());
        found.push(first["calls"][0]["id"].as_str().unwrap().to_owned());
        let whole = proxied.stand.get(&path).await.ok();
        assert_eq!(whole["calls"].as_array().unwrap().len(), 2);
    }
    found.sort();
    ends.sort();
    assert_eq!(found, ends);
    let all = proxied.stand.get("/api/v1/calls?conversation=a").await.ok();
    assert_eq!(
        (all["calls"].as_array().unwrap().len(), all.get("total")),
        (3, None)
    );
    let get = async |query: &str| proxied.stand.get(&format!("/api/v1/calls?{query}")).await;
    get("branch=main").await.refused(400, "bad_query");
    get("conversation=a&branch=none")
        .await
        .refused(404, "not_found");
}
