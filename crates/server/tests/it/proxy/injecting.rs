//! What is said to the model beside what the client says: notes and skills.

use contexture::{Engine, Format, Item, lift};
use contexture_testdata::request_validator;
use contexture_upstream_testkit::ScriptedProvider;
use reqwest::Method;
use serde_json::{Value, json};

use super::policies::{all, long, sent};
use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";
const NOTE: &str = "Answer in Portuguese, always.";

async fn with(policy: &str) -> Proxied {
    let (provider, engine) = (ScriptedProvider::default(), Engine::in_memory());
    Proxied::to(provider, engine, &all(policy)).await
}

/// Asks as this end user, and gives the conversation.
async fn ask_as(proxied: &Proxied, user: Option<&str>, words: &str) -> String {
    let headers: Vec<_> = user
        .map(|user| ("x-contexture-user", user))
        .into_iter()
        .collect();
    let answer = proxied
        .ask_with(CHAT, &chat(&[says(words)]), &headers)
        .await;
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(outcome["failed"], Value::Null, "{outcome}");
    outcome["conversation"].as_str().unwrap().to_owned()
}

async fn note(proxied: &Proxied, conversation: &str, scope: &str, value: &str) {
    let path = format!("/api/v1/conversations/{conversation}/memory/language?scope={scope}");
    let note = json!({"value": value});
    proxied.stand.call(Method::PUT, &path, &note).await.ok();
}

fn last(proxied: &Proxied) -> String {
    sent(proxied).pop().unwrap()
}

#[tokio::test]
async fn notes_of_the_owner_are_said_where_there_are_any() {
    for policy in ["memory = true\n", "memory = { of = \"owner\" }\n"] {
        let proxied = with(policy).await;
        let first = ask_as(&proxied, None, "Hello").await;
        assert_eq!(last(&proxied), chat(&[says("Hello")]).to_string());
        note(&proxied, &first, "owner", NOTE).await;
        let mut history = vec![json!({"role": "system", "content": "Be brief."})];
        let mut before: Vec<Value> = Vec::new();
        for turn in 0..5 {
            history.push(long(turn));
            let body = json!({"model": "gpt-4.1", "messages": history, "x_new": {"a": 1}});
            let answer = proxied.ask(CHAT, &body).await;
            history.push(said(&answer));
            let saved = answer.headers["x-contexture-tokens-saved"]
                .to_str()
                .unwrap();
            assert!(saved.parse::<i64>().unwrap() < 0, "{saved}");
            let request: Value = serde_json::from_str(&last(&proxied)).unwrap();
            assert_eq!(request["x_new"], json!({"a": 1}));
            assert_eq!(request.get("tools"), None);
            let messages = request["messages"].as_array().unwrap().clone();
            let system = format!("{} {}", messages[0], messages[1]);
            assert!(
                system.contains(NOTE) && system.contains("Be brief."),
                "{system}"
            );
            assert_eq!(messages.last(), history.iter().rev().nth(1));
            assert!(messages.starts_with(&before), "the prefix stays");
            before = messages;
            let outcome = proxied.outcome(&answer).await;
            assert_eq!(outcome["appended"], 1, "{outcome}");
        }
        let ledger = proxied.stand.get("/api/v1/ledger").await.ok();
        assert_eq!(ledger["total"]["calls"], 6, "{ledger}");
        assert!(
            ledger["total"]["saved_pico_dollars"].as_i64().unwrap() < 0,
            "{ledger}"
        );
        note(&proxied, &first, "owner", "Answer in Danish.").await;
        ask_as(&proxied, None, "Hello again").await;
        let said = last(&proxied);
        // What the note said before is told as such.
        assert!(said.contains("Answer in Danish."), "{said}");
        assert!(
            said.contains("Answer in Portuguese, always. (until "),
            "{said}"
        );
    }
}

#[tokio::test]
async fn notes_of_an_end_user_are_said_to_no_one_else() {
    let proxied = with("memory = true\n").await;
    let annas = ask_as(&proxied, Some("anna"), "Hello").await;
    note(&proxied, &annas, "resource", NOTE).await;
    ask_as(&proxied, Some("anna"), "Another conversation").await;
    assert!(last(&proxied).contains(NOTE));
    for user in [Some("bob"), None] {
        ask_as(&proxied, user, "Hello").await;
        assert!(!last(&proxied).contains(NOTE), "{user:?}");
    }
    let fields = [
        json!({"user": "anna"}),
        json!({"safety_identifier": "anna"}),
        json!({"user": "bob"}),
    ];
    for field in fields {
        let mut body = chat(&[says("Hi")]);
        let members = field.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        proxied.ask(CHAT, &body).await.ok();
        assert_eq!(
            last(&proxied).contains(NOTE),
            !field.to_string().contains("bob"),
            "{field}"
        );
    }
    // Whoever names a conversation is not told what is noted for its end user.
    for (user, expected) in [("anna", true), ("bob", false)] {
        let headers = [
            ("x-contexture-user", user),
            ("x-contexture-conversation", &*annas),
        ];
        proxied
            .ask_with(CHAT, &chat(&[says("And now?")]), &headers)
            .await
            .ok();
        assert_eq!(last(&proxied).contains(NOTE), expected, "{user}");
    }
    let shown = proxied
        .stand
        .get(&format!("/api/v1/conversations/{annas}"))
        .await
        .ok();
    assert_eq!(shown["resource"], "anna");
}

#[tokio::test]
async fn notes_are_said_in_every_format_and_place() {
    let cases = [
        (Format::OpenAiChat, CHAT, chat(&[says("Hello")])),
        (
            Format::OpenAiResponses,
            "/v1/responses",
            json!({"model": "gpt-4.1", "instructions": "Be brief.", "input": "Hello"}),
        ),
        (
            Format::Anthropic,
            "/v1/messages",
            json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [says("Hello")]}),
        ),
        (
            Format::Gemini,
            "/v1beta/models/gemini-2.5-flash:generateContent",
            json!({"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
        ),
    ];
    for policy in [
        "memory = true\n",
        "memory = { placement = \"tail\", budget_tokens = 500 }\n",
    ] {
        let proxied = with(policy).await;
        let owners = ask_as(&proxied, None, "Hello").await;
        note(&proxied, &owners, "owner", NOTE).await;
        for (format, path, body) in &cases {
            let answer = proxied.ask(path, body).await;
            answer.ok();
            assert!(!answer.headers.contains_key("x-contexture-failed"));
            let text = last(&proxied);
            assert_eq!(text.matches(NOTE).count(), 1, "{text}");
            let request: Value = serde_json::from_str(&text).unwrap();
            let lifted = lift(*format, &text).unwrap().transcript;
            let leads = lifted.instructions.iter().cloned().map(Item::Message);
            let is_there = leads.map(|one| one.text()).any(|text| text.contains(NOTE));
            assert_eq!(is_there, policy == "memory = true\n", "{text}");
            let findings = request_validator(format.as_str()).validation_errors(&request);
            assert_eq!(findings, Vec::<String>::new(), "{format}: {text}");
        }
    }
}

#[tokio::test]
async fn what_else_is_changed_has_to_pay_as_without_notes() {
    for policy in ["", "memory = true\n", "memory = { placement = \"tail\" }\n"] {
        let proxied = with(&format!("{policy}window = {{ turns = 8 }}\n")).await;
        let owners = ask_as(&proxied, None, "Hello").await;
        note(&proxied, &owners, "owner", NOTE).await;
        let (mut history, mut lengths) = (Vec::new(), Vec::new());
        for turn in 0..32 {
            history.push(long(turn));
            let answer = proxied.ask(CHAT, &chat(&history)).await;
            history.push(said(&answer));
            proxied.outcome(&answer).await;
            let request: Value = serde_json::from_str(&last(&proxied)).unwrap();
            let messages = request["messages"].as_array().unwrap();
            let of_history = messages
                .iter()
                .filter(|message| !message.to_string().contains(NOTE));
            lengths.push(of_history.count());
        }
        // The first turns beyond the window are not worth a cut, with notes or without.
        assert_eq!(lengths[8..10], [17, 19], "{policy}: {lengths:?}");
        assert!(
            lengths.iter().rev().take(3).all(|length| *length < 50),
            "{policy}: {lengths:?}"
        );
    }
}

/// Asks in a conversation that goes on, and gives what the client sees and what the provider was asked.
async fn asks(proxied: &Proxied, history: &mut Vec<Value>, words: &str) -> (Value, Vec<Value>) {
    let before = proxied.upstream.received_requests().len();
    history.push(says(words));
    let answer = proxied.ask(CHAT, &chat(history)).await;
    answer.ok();
    assert!(!answer.headers.contains_key("x-contexture-failed"));
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(outcome["failed"], Value::Null, "{outcome}");
    assert_eq!(outcome["appended"], 1, "{outcome}");
    let matched = if history.len() == 1 { "new" } else { "prefix" };
    assert_eq!(outcome["matched"], matched, "{outcome}");
    let message = answer.json()["choices"][0]["message"].clone();
    assert_eq!(message.get("tool_calls"), None, "{message}");
    history.push(json!({"role": "assistant", "content": message["content"]}));
    let received = proxied.upstream.received_requests();
    let requests = received.get(before..).unwrap().iter();
    (outcome, requests.map(|one| one.json()).collect())
}

fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[tokio::test]
async fn a_model_keeps_notes_itself_unseen_by_the_client() {
    let proxied = with("memory = { tools = true }\n").await;
    let mut history = Vec::new();
    let order = format!("upstream: call create_memory {{\"key\":\"language\",\"value\":{NOTE:?}}}");
    let (outcome, requests) = asks(&proxied, &mut history, &order).await;
    let all = ["create_memory", "update_memory", "delete_memory"];
    assert_eq!(requests.len(), 2);
    assert_eq!(tools(&requests[0]), all);
    assert!(
        requests[1].to_string().contains("created"),
        "{}",
        requests[1]
    );
    let id = outcome["conversation"].as_str().unwrap();
    let path = format!("/api/v1/conversations/{id}/memory?scope=owner");
    let notes = proxied.stand.get(&path).await.ok();
    assert_eq!(notes["notes"][0]["value"], NOTE, "{notes}");
    let (_, requests) = asks(&proxied, &mut history, "Go on.").await;
    assert!(
        requests[0].to_string().contains("Notes you kept"),
        "{}",
        requests[0]
    );
    let (_, requests) = asks(&proxied, &mut Vec::new(), "Hello").await;
    assert!(requests[0].to_string().contains(NOTE), "{}", requests[0]);
    let conversations = proxied.conversations().await;
    assert_eq!(conversations.len(), 2);
    assert!(
        conversations.iter().all(|one| one["branches"] == 1),
        "{conversations:?}"
    );
}

fn skills() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join("greeting");
    std::fs::create_dir(&skill).unwrap();
    let text = "---\nname: greeting\ndescription: How to greet. Use when somebody arrives.\n---\nSay MOIN to $0.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    std::fs::write(skill.join("names.txt"), "Ada\nGrace\n").unwrap();
    let policy = format!("skills = [{:?}]\n", folder.path());
    (folder, policy)
}

#[tokio::test]
async fn skills_are_listed_and_read_unseen_by_the_client() {
    let (_folder, policy) = skills();
    let proxied = with(&policy).await;
    let mut history = Vec::new();
    for (order, told) in [
        (
            "upstream: call load_skill {\"name\":\"greeting\",\"arguments\":\"Ada\"}",
            "Say MOIN to Ada.",
        ),
        (
            "upstream: call read_skill_file {\"name\":\"greeting\",\"path\":\"names.txt\"}",
            "Grace",
        ),
        (
            "upstream: call load_skill {\"name\":\"parting\"}",
            "there is no skill",
        ),
    ] {
        let (_, requests) = asks(&proxied, &mut history, order).await;
        assert_eq!(requests.len(), 2);
        for request in &requests {
            assert_eq!(tools(request), ["load_skill", "read_skill_file"]);
            assert_eq!(request.to_string().matches("How to greet.").count(), 1);
        }
        let last = requests[1]["messages"].as_array().unwrap().last().unwrap();
        assert!(
            last["role"] == "tool" && last.to_string().contains(told),
            "{last}"
        );
    }
    let conversations = proxied.conversations().await;
    assert_eq!(conversations.len(), 1);
    assert_eq!(conversations[0]["branches"], 1, "{conversations:?}");
}

#[tokio::test]
async fn what_could_be_mistaken_for_the_clients_is_not_offered() {
    let (_folder, skills) = skills();
    let proxied = with(&format!("{skills}memory = {{ tools = true }}\n")).await;
    let own = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}});
    let mut of_both = chat(&[says("Hi")]);
    of_both["tools"] = json!([own("load_skill"), own("delete_memory")]);
    let mut many = chat(&[says("Hi")]);
    many["n"] = json!(2);
    for body in [of_both, many] {
        proxied.ask(CHAT, &body).await.ok();
        assert_eq!(last(&proxied), body.to_string());
    }
    let mut of_one = chat(&[says("Hi")]);
    of_one["tools"] = json!([own("delete_memory")]);
    proxied.ask(CHAT, &of_one).await.ok();
    let request: Value = serde_json::from_str(&last(&proxied)).unwrap();
    assert_eq!(
        tools(&request),
        ["delete_memory", "load_skill", "read_skill_file"]
    );
}

#[tokio::test]
async fn skills_are_read_in_every_format_streamed_or_not() {
    let (_folder, policy) = skills();
    let load = "upstream: call load_skill {\"name\":\"greeting\",\"arguments\":\"Ada\"}";
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": load}]}]});
    let cases = [
        (CHAT, chat(&[says(load)])),
        (
            "/v1/responses",
            json!({"model": "gpt-4.1", "input": load, "store": false}),
        ),
        (
            "/v1/messages",
            json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [says(load)]}),
        ),
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            gemini.clone(),
        ),
        (
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            gemini,
        ),
    ];
    for (path, body) in cases {
        for stream in [false, true] {
            if stream && path.contains("gemini") {
                continue;
            }
            let proxied = with(&policy).await;
            let mut body = body.clone();
            if stream {
                body["stream"] = true.into();
            }
            let answer = proxied.ask(path, &body).await;
            assert!(answer.status.is_success(), "{path}: {}", answer.text);
            assert!(
                !answer.headers.contains_key("x-contexture-failed"),
                "{path}"
            );
            let outcome = proxied.outcome(&answer).await;
            assert_eq!(outcome["failed"], Value::Null, "{outcome}");
            assert_eq!(
                proxied.upstream.received_requests().len(),
                2,
                "{path} {stream}"
            );
            assert!(
                last(&proxied).contains("Say MOIN to Ada."),
                "{}",
                last(&proxied)
            );
            for ours in [
                "tool_use",
                "function_call\"",
                "functionCall",
                "tool_calls\":[",
            ] {
                assert!(
                    !answer.text.contains(ours),
                    "{path} {stream}: {}",
                    answer.text
                );
            }
        }
    }
}
