//! Summaries by a model behind a client's requests: asked with the bytes and the key of the request before, in the background.

use axum::http::StatusCode;
use contexture::catalogue::Money;
use contexture::store::{CallOutcome, CallRecord, ListCalls};
use contexture::{Engine, Owner};
use contexture_upstream_testkit::{Gate, Provider, Received, ScriptedProvider, UpstreamResponse};
use serde_json::{Value, json};

use super::policies::{all, long, sent};
use super::{Proxied, chat, said};

const CHAT: &str = "/v1/chat/completions";
const SUMMARY: &str =
    "<summary>The user told of many turns at some length, and the answer was brief.</summary>";
const POLICY: &str = "limit_tokens = 4000\ncompact = \"summary\"\ncost_condition = \"fits\"\n";

fn is_question(body: &str) -> bool {
    body.contains("Sum up the part of this conversation")
}

/// A provider that writes summaries when asked to, through a gate if there is one, and follows its script otherwise.
fn provider(gate: Option<Gate>) -> impl Provider {
    let script = ScriptedProvider::default();
    move |request: &Received| {
        let body = String::from_utf8_lossy(&request.body);
        if !is_question(&body) {
            return script.respond_to(request);
        }
        let answer = json!({
            "id": "s", "object": "chat.completion", "created": 0, "model": "gpt-4.1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": SUMMARY}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 2900, "completion_tokens": 30, "total_tokens": 2930},
        });
        let answer = UpstreamResponse::json(200, &answer);
        match &gate {
            Some(gate) => answer.in_pieces_of(40).gated_by(gate),
            None => answer,
        }
    }
}

/// Talks for some turns under a policy, with a key of the client's; returns the calls that no client made.
async fn talk(policy: &str, gate: Option<Gate>, waits: bool) -> (Proxied, Vec<CallRecord>) {
    talk_in(&all(policy), gate, waits).await
}

/// As [`talk`], under a whole configuration; a refusal ends the talk.
async fn talk_in(config: &str, gate: Option<Gate>, waits: bool) -> (Proxied, Vec<CallRecord>) {
    let engine = Engine::in_memory();
    let proxied = Proxied::to(provider(gate), engine.clone(), config).await;
    let mut history = Vec::new();
    for turn in 0..30 {
        history.push(long(turn));
        let key = [("authorization", "Bearer sk-client")];
        let answer = proxied.ask_with(CHAT, &chat(&history), &key).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
        history.push(said(&answer));
        let outcome = proxied.outcome(&answer).await;
        if waits {
            let id = outcome["conversation"].as_str().unwrap();
            let chat = engine.conversation(id).open_existing().await.unwrap();
            chat.wait_for_summary().await;
        }
    }
    let (own, _) = calls(&proxied).await;
    (proxied, own)
}

/// The calls on record: those that no client made, and the clients'.
async fn calls(proxied: &Proxied) -> (Vec<CallRecord>, Vec<CallRecord>) {
    let calls = proxied.stand.engine.store().calls().unwrap();
    let owner: Owner = "local".parse().unwrap();
    let list = ListCalls {
        limit: Some(500),
        ..ListCalls::default()
    };
    let listed = calls.list_calls(&owner, list).await.unwrap().calls;
    listed.into_iter().partition(|call| call.details.is_own)
}

/// The longest request that a question goes on from: all of it is there, but for the end of its list and what is behind that.
fn is_continued(question: &str, requests: &[String]) -> bool {
    requests.iter().any(|request| {
        let value: Value = serde_json::from_str(request).unwrap();
        let messages = value["messages"].as_array().unwrap();
        let asked: Value = serde_json::from_str(question).unwrap();
        let behind = asked["messages"].as_array().unwrap();
        behind.len() == messages.len() + 1 && behind.starts_with(messages)
    })
}

#[tokio::test]
async fn summary_is_asked_with_client_key_and_used_when_it_overflows() {
    let policy = format!("{POLICY}summary_credentials = \"client\"\n");
    let (proxied, own) = talk(&policy, None, true).await;
    let bodies = sent(&proxied);
    let (questions, others): (Vec<String>, Vec<String>) =
        bodies.into_iter().partition(|body| is_question(body));
    println!("{} questions in {} calls", questions.len(), others.len());
    assert!((1..=10).contains(&questions.len()), "{}", questions.len());
    assert!(questions.iter().all(|asked| is_continued(asked, &others)));
    let used = others
        .iter()
        .filter(|body| body.contains("and the answer was brief"));
    assert!(used.count() > 0);
    // The client's key went where its request went, and each question has its row.
    let received = proxied.upstream.received_requests();
    let mut keys = received.iter().map(|one| one.header("authorization"));
    assert!(keys.all(|key| key == Some("Bearer sk-client")));
    assert_eq!(own.len(), questions.len());
    assert!(own.iter().all(|call| call.details.tokens.is_some()));
    // They are found and summed by what the client's own calls are.
    for call in &own {
        let names = [&call.names.upstream, &call.names.policy, &call.names.model];
        assert_eq!(names, ["openai", "small", "gpt-4.1"]);
    }
}

/// A summary is paid for by the caller whose conversation it is of: where no more may be spent, none is asked for.
#[tokio::test]
async fn nobody_gets_a_summary_who_may_spend_no_more() {
    let policy = all(&format!("{POLICY}summary_credentials = \"client\"\n"));
    let (proxied, own) = talk_in(&policy, None, true).await;
    let asked = own.iter().map(|call| call.id).min().unwrap();
    let (_, before) = calls(&proxied).await;
    let before = before.iter().filter(|call| call.id < asked);
    let spent = before.map(|call| u128::from(call.details.pico_dollars.unwrap()));
    // Reached by the call whose answer the first question would go on from, which itself may still be made.
    let limit = Money::from_pico_dollars(spent.sum()).to_decimal_string();
    for member in ["dollars_per_day", "conversation_dollars_per_day"] {
        let limited = format!("[server.limits]\n{member} = \"{limit}\"\n{policy}");
        let (proxied, own) = talk_in(&limited, None, true).await;
        let (_, answered) = calls(&proxied).await;
        let answered = answered
            .iter()
            .filter(|call| call.outcome == CallOutcome::Completed);
        let last = answered.map(|call| call.details.pico_dollars.unwrap());
        assert_eq!(
            Money::from_pico_dollars(last.map(u128::from).sum()).to_decimal_string(),
            limit
        );
        assert!(
            !sent(&proxied).iter().any(|body| is_question(body)),
            "{member}"
        );
        assert_eq!(own.len(), 0, "{member}");
    }
}

/// Without a configured key nobody is asked, unless the policy allows the client's.
#[tokio::test]
async fn client_key_is_not_used_unless_policy_says_so() {
    let (proxied, own) = talk(POLICY, None, true).await;
    assert!(!sent(&proxied).iter().any(|body| is_question(body)));
    assert_eq!(own.len(), 0);
}

/// The client's turns wait for no summary: one that never comes costs them nothing but the summary.
#[tokio::test]
async fn turns_do_not_wait_for_a_summary() {
    let policy = format!("{POLICY}summary_credentials = \"client\"\n");
    let (proxied, own) = talk(&policy, Some(Gate::new_closed()), false).await;
    let bodies = sent(&proxied);
    let questions = bodies.iter().filter(|body| is_question(body)).count();
    assert_eq!(questions, 1);
    assert_eq!(bodies.len(), 31);
    let used = bodies
        .iter()
        .filter(|body| body.contains("and the answer was brief"));
    assert_eq!((used.count(), own.len()), (0, 0));
}

/// What is asked for must pay, by default.
#[tokio::test]
async fn strict_policy_asks_for_no_summary_that_does_not_pay() {
    let strict = "limit_tokens = 4000\ncompact = \"summary\"\nsummary_credentials = \"client\"\n";
    let (proxied, own) = talk(strict, None, true).await;
    // 2,000 tokens of an answer cost more than five calls save that are some 1,500 tokens shorter.
    assert!(!sent(&proxied).iter().any(|body| is_question(body)));
    assert_eq!(own.len(), 0);
}

/// What a provider does about a history itself passes as the client wrote it, under a policy too, and nobody is asked for a summary
/// behind it: the provider's own would fall into that question.
#[tokio::test]
async fn provider_features_pass_and_get_no_summary() {
    let policy = format!("{POLICY}summary_credentials = \"client\"\n");
    let edits = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    let engine = Engine::in_memory();
    let proxied = Proxied::to(provider(None), engine.clone(), &all(&policy)).await;
    let mut history = Vec::new();
    for turn in 0..24 {
        history.push(long(turn));
        let body = json!({
            "model": "claude-sonnet-4-5", "max_tokens": 300, "messages": history,
            "context_management": edits,
        });
        let answer = proxied.ask("/v1/messages", &body).await;
        let content = &answer.json()["content"];
        history.push(json!({"role": "assistant", "content": content}));
        let outcome = proxied.outcome(&answer).await;
        let id = outcome["conversation"].as_str().unwrap();
        let chat = engine.conversation(id).open_existing().await.unwrap();
        chat.wait_for_summary().await;
    }
    let bodies = sent(&proxied);
    assert_eq!(bodies.len(), 24);
    for body in &bodies {
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["context_management"], edits);
    }
}
