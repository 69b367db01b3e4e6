//! What pages say is what the API says, and what their forms do is what the API does.

use contexture::Engine;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Browser, all_calls, page, recorded_calls};
use crate::messages::talk;
use crate::proxy::{Proxied, chat, said, says as asks};
use crate::running::waiting;
use crate::test_support::Stand;

/// Calls that are made; each of them is compared.
fn turns() -> usize {
    match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 200,
        None => 24,
    }
}

/// The exact values of a page's figures.
fn values(page: &str) -> Vec<&str> {
    let values = page.split("<data value=\"").skip(1);
    values.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[track_caller]
fn says(page: &str, figure: &Value, what: &str) {
    let text = match figure {
        Value::String(text) => text.clone(),
        Value::Null => return,
        number => number.to_string(),
    };
    assert!(
        values(page).contains(&text.as_str()),
        "{what} {text} is not on the page"
    );
}

#[tokio::test]
async fn the_numbers_of_pages_are_the_apis() {
    let turns = turns();
    let proxied = recorded_calls(Engine::in_memory(), turns, "").await;
    let (stand, browser) = (&proxied.stand, Browser::new(&proxied.stand));
    let calls = all_calls(stand).await;
    assert_eq!(calls.len(), turns);
    let (mut bands, mut breaks) = (0, 0);
    for call in &calls {
        let id = call["id"].as_str().unwrap();
        let answer = browser.get(&format!("/ui/call/{id}")).await;
        let shown = page(&answer);
        for name in ["input", "output"] {
            says(shown, &call["tokens"][name], name);
        }
        says(shown, &call["dollars"], "dollars");
        for side in ["sent", "passed"] {
            for name in ["read", "written", "fresh"] {
                says(shown, &call["prediction"][side][name], name);
            }
            says(shown, &call["prediction"][format!("{side}_dollars")], side);
        }
        let band = &call["band"];
        bands += usize::from(band.is_object());
        breaks += usize::from(band["prefix_break"].is_object());
        says(shown, &band["tokens"], "tokens of the band");
        for part in band["parts"].as_array().into_iter().flatten() {
            says(shown, &part["tokens"], "tokens of a part");
        }
    }
    // The test would show little without calls that have what pages show.
    assert!(
        bands > turns / 2 && breaks > 0,
        "{bands} bands, {breaks} breaks"
    );

    let usage = stand.get("/api/v1/usage?by=day").await.ok();
    let answer = browser.get("/ui/money").await;
    for name in ["calls", "dollars", "saved_dollars"] {
        says(page(&answer), &usage["total"][name], name);
    }
    let conversation = calls[0]["conversation"].as_str().unwrap();
    let list = stand
        .get("/api/v1/conversations?include=overview")
        .await
        .ok();
    let overview = &list["conversations"][0]["overview"];
    for path in ["/ui/".to_owned(), format!("/ui/c/{conversation}")] {
        let answer = browser.get(&path).await;
        for name in ["calls", "input_tokens", "dollars"] {
            says(page(&answer), &overview["usage"][name], name);
        }
    }
    module_gets_all_bands(&browser, conversation, &calls).await;
}

/// What moves the picture from call to call has the same figures.
async fn module_gets_all_bands(browser: &Browser, conversation: &str, calls: &[Value]) {
    let block = browser
        .get(&format!("/ui/c/{conversation}/bands.json"))
        .await
        .json();
    let found = block["calls"].as_array().unwrap();
    assert_eq!(found.len(), calls.len());
    for (one, call) in found.iter().zip(calls) {
        assert_eq!(one["id"], call["id"]);
        let band = &call["band"];
        if band.is_object() {
            let (window, parts) = (&one["window"], band["parts"].as_array().unwrap());
            assert_eq!(
                (&window["tokens"], &window["read"]),
                (&band["tokens"], &band["cache_read"])
            );
            let tokens: Vec<&Value> = parts.iter().map(|part| &part["tokens"]).collect();
            let moved: Vec<&Value> = window["parts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| &part[1])
                .collect();
            assert_eq!(moved, tokens);
        }
    }
}

#[tokio::test]
async fn a_thread_leads_from_call_to_call_without_scripts() {
    let proxied = recorded_calls(Engine::in_memory(), 12, "").await;
    let browser = Browser::new(&proxied.stand);
    let calls = all_calls(&proxied.stand).await;
    let conversation = calls[0]["conversation"].as_str().unwrap();
    let mut path = format!("/ui/c/{conversation}");
    for (at, call) in calls.iter().enumerate() {
        let answer = browser.get(&path).await;
        let shown = page(&answer);
        assert!(
            shown.contains(&format!("data-call=\"{}\"", call["id"].as_str().unwrap())),
            "{path}"
        );
        assert!(
            shown.contains(&format!(">{}</data> of ", calls.len() - at)),
            "{path}"
        );
        let before = shown.split("data-step=\"prev\" href=\"").nth(1);
        let Some(before) = before else {
            assert_eq!(at + 1, calls.len());
            break;
        };
        path = before.split('"').next().unwrap().replace("&amp;", "&");
    }
    // A part leads to its items, as they are stored and as they were sent; the rule that decided stands there.
    let parts = calls[0]["band"]["parts"].as_array().unwrap();
    let hidden = parts.iter().position(|part| part["omitted_tokens"] != 0);
    let (at, newest) = (hidden.unwrap(), format!("/ui/c/{conversation}"));
    let answer = browser.get(&newest).await;
    let link = format!("part={}#part", at + 1);
    assert!(page(&answer).contains(&link), "{link}");
    let part = browser.get(&format!("{newest}?part={}", at + 1)).await;
    let rule = parts[at]["rule"].as_str().unwrap().replace('_', " ");
    for text in ["as it is stored", "as it was sent", rule.as_str()] {
        assert!(page(&part).contains(text), "{text}");
    }
    says(page(&part), &parts[at]["omitted_tokens"], "left out");
    // One that is no item of the conversation says so.
    let tools = browser.get(&format!("{newest}?part=1")).await;
    assert!(page(&tools).contains("It is no item of the conversation"));
    // The request is a text, whole.
    let sent = browser
        .get(&format!(
            "/ui/call/{}/sent.json",
            calls[0]["id"].as_str().unwrap()
        ))
        .await;
    assert_eq!(sent.json()["model"], "gpt-4.1");
    let both = format!(
        "/ui/compare?a={}&b={}",
        calls[1]["id"].as_str().unwrap(),
        calls[0]["id"].as_str().unwrap()
    );
    assert!(page(&browser.get(&both).await).contains("The cached prefix"));
}

#[tokio::test]
async fn what_can_be_done_at_a_message_is_done() {
    let stand = Stand::new().await;
    talk(
        &stand,
        "a",
        &[
            "Always answer in German.",
            "Where is my parcel?",
            "And now?",
        ],
    )
    .await;
    let browser = Browser::new(&stand);
    let token = browser.token("/ui/c/a").await.unwrap();
    let log = stand.get("/api/v1/conversations/a/log").await.ok();
    let node = log["entries"][1]["id"].as_str().unwrap();
    for (what, fields) in [
        ("pin", vec![("node", node)]),
        ("checkpoint", vec![("name", "before refund/1")]),
        ("branch", vec![("name", "other-way"), ("node", node)]),
        ("activate", vec![("branch", "other-way")]),
        ("rewind", vec![("node", node)]),
    ] {
        let fields: Vec<(&str, &str)> = fields
            .into_iter()
            .chain([("token", token.as_str())])
            .collect();
        let answer = browser.post(&format!("/ui/c/a/{what}"), &fields).await;
        assert_eq!(
            answer.status,
            StatusCode::SEE_OTHER,
            "{what}: {}",
            answer.text
        );
        let shown = browser
            .get(answer.headers["location"].to_str().unwrap())
            .await;
        // A pin is of a path: a branch that begins before it has none.
        assert!(what != "pin" || page(&shown).contains("pinned: its round"));
        page(&shown);
    }
    let answer = browser.get("/ui/c/a").await;
    for text in ["before refund/1", "other-way"] {
        assert!(page(&answer).contains(text), "{text}");
    }
    let rules = stand.get("/api/v1/conversations/a/rules").await.ok();
    let rule = rules["rules"][0]["id"].as_str().unwrap();
    assert!(page(&browser.get("/ui/c/a/memory").await).contains("Always answer in German."));
    browser
        .post("/ui/c/a/drop-rule", &[("rule", rule), ("token", &token)])
        .await;
    let rules = stand.get("/api/v1/conversations/a/rules").await.ok();
    assert_eq!(rules["rules"][0]["dropped"], true);
    // What the API refuses is told in its words.
    let refused = browser
        .post(
            "/ui/c/a/branch",
            &[("name", "other-way"), ("node", node), ("token", &token)],
        )
        .await;
    assert!(
        refused.status.is_client_error() && refused.text.contains("other-way"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_waiting_call_is_allowed_or_denied_once() {
    let stand = Stand::new().await;
    talk(&stand, "a", &[]).await;
    waiting(&stand, "a").await;
    let browser = Browser::new(&stand);
    let answer = browser.get("/ui/runs").await;
    let shown = page(&answer);
    assert!(
        shown.contains("Waiting for a decision")
            && shown.contains("porter")
            && shown.contains("Ada")
    );
    let run = &stand.get("/api/v1/runs").await.ok()["runs"][0];
    // Its own page has the same, and bars for what it did.
    let own = format!("/ui/runs/a/{}", run["run"].as_str().unwrap());
    assert!(shown.contains(&own) && shown.contains("You may decide"));
    let timeline = browser.get(&own).await;
    for text in [
        "Waiting for a decision",
        "decision about send",
        "class=\"of-model\"",
        "Ada",
    ] {
        assert!(page(&timeline).contains(text), "{text}");
    }
    let path = format!("/ui/runs/a/{}/decide", run["run"].as_str().unwrap());
    let token = browser.token("/ui/runs").await.unwrap();
    let call = run["waiting"][0]["call"].as_str().unwrap();
    let decide = async |decision: &str| {
        let fields = [
            ("call", call),
            ("decision", decision),
            ("reason", "not before Monday"),
            ("token", token.as_str()),
        ];
        browser.post(&path, &fields).await
    };
    assert_eq!(decide("deny").await.status, StatusCode::SEE_OTHER);
    let again = decide("allow").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("Somebody was faster"), "{}", again.text);
    let run = &stand.get("/api/v1/runs").await.ok()["runs"][0];
    let decided = &run["waiting"][0]["decided"];
    assert_eq!(
        (&decided["what"], &decided["reason"]),
        (&"deny".into(), &"not before Monday".into())
    );
    assert!(!page(&browser.get("/ui/runs").await).contains("Waiting for a decision"));
}

#[tokio::test]
async fn a_call_is_shown_under_another_window_and_kept_as_a_policy() {
    let proxied = recorded_calls(Engine::in_memory(), 12, "").await;
    let (stand, browser) = (&proxied.stand, Browser::new(&proxied.stand));
    let calls = all_calls(stand).await;
    let id = calls[0]["id"].as_str().unwrap();
    let path = format!("/ui/call/{id}/what-if");
    // Two clicks from the first page: the conversation, and the form at its window.
    let conversation = calls[0]["conversation"].as_str().unwrap();
    let thread = browser.get(&format!("/ui/c/{conversation}")).await;
    assert!(page(&thread).contains(&format!("action=\"{path}\"")));
    let asked = json!({"window": 9000, "policy": "tidy"});
    let told = stand
        .post(&format!("/api/v1/calls/{id}/what-if"), &asked)
        .await
        .ok();
    let answer = browser.get(&format!("{path}?window=9k")).await;
    let shown = page(&answer);
    says(shown, &calls[0]["band"]["tokens"], "tokens as it was");
    says(shown, &told["band"]["tokens"], "tokens as it would be");
    says(shown, &told["dollars"], "dollars");
    says(shown, &told["next_dollars"], "dollars of the next");
    says(
        shown,
        &calls[0]["prediction"]["sent_dollars"],
        "dollars as it was",
    );
    // What is to be kept is a policy of the configuration.
    let toml = shown.split("<pre id=\"policy\"").nth(1).unwrap();
    let toml = toml
        .split_once('>')
        .unwrap()
        .1
        .split("</pre>")
        .next()
        .unwrap();
    let toml = toml.replace("&quot;", "\"");
    let configured = Stand::with(&toml).await;
    let policies = configured.get("/api/v1/policies").await.ok();
    let settings = &policies["policies"][0]["settings"];
    assert_eq!(
        (
            &settings["limit_tokens"],
            &settings["preview"],
            &settings["window"]["turns"]
        ),
        (&json!(9000), &json!(3000), &json!(6)),
        "{toml}"
    );
    // Nothing is kept of what is as it was, and what is wrong is told beside the form.
    assert!(!page(&browser.get(&path).await).contains("<pre id=\"policy\""));
    for (query, fault) in [
        ("window=much", "expected a number"),
        ("window=1k", "fit"),
        ("policy=none&model=no-such-model", "no-such-model"),
        ("policy=policy:gone&turns=1", "no policy"),
    ] {
        let answer = browser.get(&format!("{path}?{query}")).await;
        assert!(
            page(&answer).contains("role=\"alert\"") && answer.text.contains(fault),
            "{query}: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn a_thread_moves_through_the_calls_of_its_branch() {
    let proxied = Proxied::new().await;
    let (stand, browser) = (&proxied.stand, Browser::new(&proxied.stand));
    let headers = [("x-contexture-conversation", "a")];
    let send = async |messages: &[Value]| {
        let answer = proxied
            .ask_with("/v1/chat/completions", &chat(messages), &headers)
            .await;
        proxied.outcome(&answer).await;
        said(&answer)
    };
    let first = asks("Where is my parcel?");
    let answer = send(std::slice::from_ref(&first)).await;
    for ask in ["And now?", "Cancel the order."] {
        send(&[first.clone(), answer.clone(), asks(ask)]).await;
    }
    let branches = stand.get("/api/v1/conversations/a/branches").await.ok();
    for branch in branches["branches"].as_array().unwrap() {
        let name = branch["name"].as_str().unwrap();
        let calls = stand
            .get(&format!("/api/v1/calls?conversation=a&branch={name}"))
            .await
            .ok();
        let shown = browser.get(&format!("/ui/c/a?branch={name}")).await;
        let newest = calls["calls"][0]["id"].as_str().unwrap();
        for text in [
            format!("data-call=\"{newest}\""),
            "data-calls=\"2\"".to_owned(),
            format!("bands.json?branch={name}\""),
        ] {
            assert!(page(&shown).contains(&text), "{name}: {text}");
        }
        let block = browser
            .get(&format!("/ui/c/a/bands.json?branch={name}"))
            .await
            .json();
        let ids = |calls: &Value| {
            let calls = calls["calls"].as_array().unwrap().iter();
            calls.map(|call| call["id"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&block), ids(&calls));
    }
}
