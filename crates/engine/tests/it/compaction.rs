//! Compaction: reversible, of one branch, once, and never in the way of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use contexture_compile::{CacheState, CachedContent, Target};
use contexture_engine::{
    CircuitBreakerPolicy, Clock, CompactOptions, CompactSpan, Conversation, Engine, EngineError,
    ModelCompactor, PrepareOptions, ReportedUsage, TestIds, Trigger, UsagePreference,
};
use contexture_ir::{
    FunctionCall, FunctionCallOutput, Item, Message, NodeId, Output, Role, role, user,
};
use contexture_models::{ModelError, ModelResponse, ScriptedModel, text_response};
use contexture_wire::Format;
use serde_json::Value;

use crate::support::{chat, engine};

const SUMMARY: &str = "<analysis>hm</analysis><summary>## Goal\nrefund order W8342</summary>";

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(6_000).reserve(500)
}

/// A user message, and rounds of a call, its output and a remark.
async fn fill(chat: &Conversation, rounds: std::ops::Range<usize>) {
    let mut draft = chat.draft();
    if rounds.start == 0 {
        draft.push_item(Message::text(Role::User, "Refund my order W8342, please."));
    }
    for round in rounds {
        let id = format!("call-{round}");
        let arguments = format!(r#"{{"file_path":"src/part_{round}.rs"}}"#);
        draft.push_item(FunctionCall::new(&id, "Read", arguments));
        let text = format!(
            "order R{round}X77 is fine. {}",
            "All of this is said at length. ".repeat(20)
        );
        draft.push_item(FunctionCallOutput::new(&id, Output::Text(text)));
        draft.push_item(Message::text(
            Role::Assistant,
            format!("Part {round} is read."),
        ));
    }
    draft.commit().await.unwrap();
}

async fn filled(rounds: usize) -> Conversation {
    let chat = chat().await;
    fill(&chat, 0..rounds).await;
    chat
}

async fn payload(chat: &Conversation) -> String {
    chat.compile(&target().window(100_000))
        .await
        .unwrap()
        .payload
        .to_json()
}

fn summing_up(model: &Arc<ScriptedModel>) -> CompactOptions {
    let model = Arc::clone(model);
    CompactOptions {
        compactor: Arc::new(ModelCompactor::new(model, target())),
        ..CompactOptions::default()
    }
}

fn model_saying(times: usize) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::with_texts(
        Format::OpenAiChat,
        vec![SUMMARY; times],
    ))
}

/// Calls and outputs of a Chat Completions request pair, each output right behind its calls.
fn check_pairs(payload: &str) {
    let payload: Value = serde_json::from_str(payload).unwrap();
    let mut open: Vec<String> = Vec::new();
    for message in payload["messages"].as_array().unwrap() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|call| call == id);
            assert!(at.is_some(), "an output without its call: {id}");
            open.remove(at.unwrap());
            continue;
        }
        assert!(open.is_empty(), "calls without outputs: {open:?}");
        let calls = message["tool_calls"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        open.extend(
            calls
                .iter()
                .map(|call| call["id"].as_str().unwrap().to_owned()),
        );
    }
    assert!(open.is_empty());
}

#[tokio::test]
async fn a_manifest_stands_for_the_older_part_and_files_are_complete() {
    let chat = filled(8).await;
    let compacted = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    let draft = &compacted.draft;
    assert!(
        draft.summary_tokens * 2 < draft.tokens,
        "{} of {}",
        draft.summary_tokens,
        draft.tokens
    );
    let said = payload(&chat).await;
    check_pairs(&said);
    let covered = draft.items / 3;
    for round in 0..8 {
        assert!(said.contains(&format!("src/part_{round}.rs")), "{round}");
        assert!(said.contains(&format!("R{round}X77")), "{round}");
        assert_eq!(
            said.contains(&format!("Part {round} is read.")),
            round >= covered,
            "{round}"
        );
    }
    assert!(said.contains("Refund my order W8342, please."));
}

#[tokio::test]
async fn taking_it_back_gives_the_original_byte_for_byte() {
    let chat = filled(8).await;
    let before = payload(&chat).await;
    let one = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    fill(&chat, 8..16).await;
    let two = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    let both = payload(&chat).await;
    assert_eq!(chat.compactions().await.unwrap().len(), 2);
    chat.uncompact(two.node).await.unwrap();
    chat.uncompact(one.node).await.unwrap();
    let whole = payload(&chat).await;
    assert!(both.len() < whole.len());
    let messages = |json: &str| {
        serde_json::from_str::<Value>(json).unwrap()["messages"]
            .as_array()
            .unwrap()
            .clone()
    };
    let (before, whole) = (messages(&before), messages(&whole));
    // The last message goes on: its neighbours are of one turn.
    let settled = before.len() - 1;
    assert_eq!(whole.get(..settled), before.get(..settled));

    let never = filled(8).await;
    fill(&never, 8..16).await;
    assert_eq!(messages(&payload(&never).await), whole);
    let error = chat.uncompact(one.node).await.unwrap_err();
    assert_eq!(error.kind(), "not_in_effect");
}

#[tokio::test]
async fn fork_or_rewind_before_compaction_sends_the_originals() {
    let chat = filled(8).await;
    let before = payload(&chat).await;
    let head = chat.head().await.unwrap().unwrap();
    let compacted = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    let after = payload(&chat).await;
    let main = chat.branch();

    chat.rewind_to(compacted.draft.last).await.unwrap();
    let inside = payload(&chat).await;
    assert!(inside.contains("Part 0 is read.") && chat.compactions().await.unwrap().is_empty());
    chat.rewind_to(head).await.unwrap();
    assert_eq!(payload(&chat).await, before);
    chat.rewind_to(compacted.node).await.unwrap();
    assert_eq!(payload(&chat).await, after);
    chat.switch_branch(main.as_str()).await.unwrap();
    assert_eq!(payload(&chat).await, after);
}

#[tokio::test]
async fn of_two_compactions_at_once_one_is_stored() {
    let chat = filled(8).await;
    let options = CompactOptions::default();
    let first = chat.draft_compaction(&target(), &options).await.unwrap();
    let second = chat.draft_compaction(&target(), &options).await.unwrap();
    let stored = chat.store_compaction(first).await.unwrap();
    let head = chat.head().await.unwrap();
    let error = chat.store_compaction(second).await.unwrap_err();
    assert_eq!(error.kind(), "state_conflict");
    assert_eq!(chat.head().await.unwrap(), head);
    let in_effect = chat.compactions().await.unwrap();
    assert_eq!(in_effect.len(), 1);
    assert!(
        in_effect
            .iter()
            .all(|entry| entry.compaction == stored.node)
    );
}

#[tokio::test]
async fn an_unchanged_history_is_summed_up_once() {
    let chat = filled(12).await;
    let model = model_saying(1);
    let options = PrepareOptions {
        compact: summing_up(&model),
        trigger: Trigger::Tokens(1_500),
        ..PrepareOptions::default()
    };
    let first = chat.prepare(&target(), &options).await.unwrap();
    assert_eq!(first.compacted.len(), 1);
    for _ in 0..6 {
        let again = chat
            .prepare(
                &target(),
                &PrepareOptions {
                    trigger: Trigger::Overflow,
                    ..options.clone()
                },
            )
            .await
            .unwrap();
        assert!(again.compacted.is_empty());
        assert_eq!(again.call.payload.to_json(), first.call.payload.to_json());
        assert!(again.call.report.totals.tokens <= 5_500);
    }
    assert_eq!(model.requests().len(), 1);
    assert!(first.call.payload.to_json().contains("refund order W8342"));
}

#[tokio::test]
async fn advice_about_the_cache_is_no_reason_to_compact() {
    let chat = filled(6).await;
    chat.set([role("Be brief. ".repeat(4_000))]).unwrap();
    let target = Target::gemini("gemini-3-flash-preview").cache_state(CacheState::Cold);
    let options = PrepareOptions::default();
    let prepared = chat.prepare(&target, &options).await.unwrap();
    assert!(prepared.compacted.is_empty());
    let advice = prepared.call.advice.cache.unwrap();
    let content = CachedContent {
        name: "cachedContents/abc".to_owned(),
        segments: advice.segments,
        prefix: advice.prefix,
    };
    let call = chat.compile(&target.cached_content(content)).await.unwrap();
    let payload = call.payload.to_json();
    assert!(!payload.contains("Be brief.") && payload.contains("cachedContents/abc"));
}

#[tokio::test]
async fn a_long_tool_loop_is_never_over_budget_and_asks_seldom() {
    let chat = filled(1).await;
    let model = model_saying(100);
    let options = PrepareOptions {
        compact: summing_up(&model),
        ..PrepareOptions::default()
    };
    for round in 1..60 {
        fill(&chat, round..round + 1).await;
        let prepared = chat.prepare(&target(), &options).await.unwrap();
        assert!(prepared.call.report.totals.tokens <= 5_500, "{round}");
        check_pairs(&prepared.call.payload.to_json());
    }
    let (asked, in_effect) = (
        model.requests().len(),
        chat.compactions().await.unwrap().len(),
    );
    assert!((1..=20).contains(&asked), "{asked} questions");
    assert!(in_effect >= 1);
}

#[tokio::test]
async fn a_summary_is_used_again_for_the_same_span_and_configuration() {
    let chat = filled(8).await;
    let model = model_saying(2);
    let options = summing_up(&model);
    let one = chat.compact(&target(), &options).await.unwrap();
    assert!(!one.draft.reused);
    chat.uncompact(one.node).await.unwrap();
    let again = chat.compact(&target(), &options).await.unwrap();
    assert!(again.draft.reused);
    // On a branch that never saw it, too.
    chat.rewind_to(again.draft.last).await.unwrap();
    fill(&chat, 8..12).await;
    let span = CompactSpan::Nodes {
        first: one.draft.first,
        last: one.draft.last,
    };
    let elsewhere = chat
        .compact(
            &target(),
            &CompactOptions {
                span,
                ..options.clone()
            },
        )
        .await
        .unwrap();
    assert!(elsewhere.draft.reused);
    assert_eq!(model.requests().len(), 1);
    // Other instructions are another configuration.
    chat.uncompact(elsewhere.node).await.unwrap();
    let told = CompactOptions {
        span,
        instructions: Some("keep prices".into()),
        ..options
    };
    let other = chat.compact(&target(), &told).await.unwrap();
    assert!(!other.draft.reused);
    let asked = model.requests();
    assert_eq!(asked.len(), 2);
    assert!(
        asked
            .iter()
            .next_back()
            .unwrap()
            .payload
            .contains("Also: keep prices")
    );
}

#[tokio::test]
async fn an_earlier_summary_is_told_as_one() {
    let chat = filled(8).await;
    let model = model_saying(2);
    let options = summing_up(&model);
    let inner = chat.compact(&target(), &options).await.unwrap();
    fill(&chat, 8..12).await;
    let span = CompactSpan::Nodes {
        first: inner.draft.first,
        last: nodes(&chat).await[30],
    };
    let outer = chat
        .compact(&target(), &CompactOptions { span, ..options })
        .await
        .unwrap();
    let asked = model.requests();
    let question = &asked.iter().next_back().unwrap().payload;
    assert!(
        question.contains(r#"{\\\"earlier_summary\\\":"#)
            || question.contains(r#"{\"earlier_summary\":"#),
        "{question}"
    );
    assert!(
        !question.contains("src/part_0.rs"),
        "what it stands for is not told again"
    );
    // The manifest is made of the items themselves.
    let said = payload(&chat).await;
    assert!(said.contains("src/part_0.rs") && said.contains("src/part_9.rs"));
    assert_eq!(said.matches("Earlier here").count(), 1);
    chat.uncompact(outer.node).await.unwrap();
    assert_eq!(payload(&chat).await.matches("Earlier here").count(), 1);
}

/// The nodes of the branch, oldest first.
async fn nodes(chat: &Conversation) -> Vec<NodeId> {
    let request =
        contexture_store::ReadRequest::whole_path(contexture_store::PathEnd::Branch(chat.branch()));
    let store = chat.engine().store();
    let page = store
        .read_path(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    page.nodes.iter().map(|node| node.id).collect()
}

#[tokio::test]
async fn spans_keep_to_blocks_and_nest_or_part() {
    let chat = filled(8).await;
    let all = nodes(&chat).await;
    let between = |first: usize, last: usize| CompactOptions {
        span: CompactSpan::Nodes {
            first: all[first],
            last: all[last],
        },
        ..CompactOptions::default()
    };
    // From an output on: its call comes with it.
    let draft = chat
        .draft_compaction(&target(), &between(5, 8))
        .await
        .unwrap();
    assert_eq!((draft.first, draft.last), (all[3], all[8]));
    let compacted = chat.compact(&target(), &between(4, 12)).await.unwrap();
    check_pairs(&payload(&chat).await);
    let error = chat.compact(&target(), &between(1, 7)).await.unwrap_err();
    assert!(
        matches!(error, EngineError::CoverOverlap { compaction, .. } if compaction == compacted.node),
        "{error}"
    );
    chat.compact(&target(), &between(1, 18)).await.unwrap();
    check_pairs(&payload(&chat).await);
    assert_eq!(chat.compactions().await.unwrap().len(), 2);
    let backwards = chat.compact(&target(), &between(9, 2)).await.unwrap_err();
    assert_eq!(backwards.kind(), "nothing_to_compact");
}

#[tokio::test]
async fn compact_any_span_is_legal_and_uncompact_restores_it() {
    let chat = filled(5).await;
    let (all, original) = (nodes(&chat).await, payload(&chat).await);
    let mut made = 0;
    for first in 0..all.len() {
        for last in (first..all.len()).step_by(3) {
            let options = CompactOptions {
                span: CompactSpan::Nodes {
                    first: all[first],
                    last: all[last],
                },
                ..CompactOptions::default()
            };
            let compacted = match chat.compact(&target(), &options).await {
                Ok(compacted) => compacted,
                Err(EngineError::NothingToCompact { .. }) => continue,
                Err(error) => panic!("{first} to {last}: {error}"),
            };
            made += 1;
            check_pairs(&payload(&chat).await);
            chat.uncompact(compacted.node).await.unwrap();
            assert_eq!(payload(&chat).await, original, "{first} to {last}");
        }
    }
    assert!(made > 20, "{made}");
}

#[tokio::test]
async fn nothing_is_compacted_where_there_is_nothing() {
    let chat = chat().await;
    for _ in 0..2 {
        let error = chat
            .compact(&target(), &CompactOptions::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), "nothing_to_compact");
        chat.save([user("hello")]).await.unwrap();
    }
    let zero = CompactOptions {
        retained_percent: 0,
        ..CompactOptions::default()
    };
    assert_eq!(
        chat.compact(&target(), &zero).await.unwrap_err().kind(),
        "nothing_to_compact"
    );
}

#[tokio::test]
async fn what_the_provider_reports_counts_where_it_is_more() {
    // The history fits by our count: 150 of 100 was reported.
    let chat = filled(8).await;
    let call = chat.compile(&target()).await.unwrap();
    let counted = call.report.totals.tokens;
    let options = |usage, tokens| PrepareOptions {
        usage,
        reported: Some(ReportedUsage { tokens, counted }),
        trigger: Trigger::Overflow,
        ..PrepareOptions::default()
    };
    let many = 5_600;
    for (usage, tokens, expected) in [
        (UsagePreference::Max, counted, 0),
        (UsagePreference::CountedFirst, many, 0),
        (UsagePreference::Max, many, 1),
    ] {
        let prepared = chat
            .prepare(&target(), &options(usage, tokens))
            .await
            .unwrap();
        assert_eq!(prepared.compacted.len(), expected, "{usage:?} {tokens}");
    }
}

/// Records an answer to a call of the history as it is, for which so many tokens in a hundred counted ones were
/// reported.
async fn answered(chat: &Conversation, target: &Target, percent: u64) {
    let call = chat.compile(target).await.unwrap();
    let answer = serde_json::json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": format!("Read, at {percent}.")},
        }],
        "usage": {
            "prompt_tokens": call.report.totals.tokens * percent / 100,
            "completion_tokens": 3, "total_tokens": 3,
        },
    });
    chat.record(&call, &answer.to_string()).await.unwrap();
    chat.save([user("Go on.")]).await.unwrap();
}

#[tokio::test]
async fn prepare_uses_usage_reported_for_the_last_call() {
    let prepared = async |percent: u64, usage: UsagePreference, asked: &Target| {
        let chat = filled(8).await;
        let before = chat.compile(&target()).await.unwrap().base().unwrap();
        answered(&chat, asked, percent).await;
        let options = PrepareOptions {
            usage,
            trigger: Trigger::Tokens(3_500),
            ..PrepareOptions::default()
        };
        let counted = chat.compile(&target()).await.unwrap().report.totals.tokens;
        assert!((1_500..3_000).contains(&counted), "{counted}");
        let compacted = chat.prepare(&target(), &options).await.unwrap().compacted;
        // Before that answer nothing is known of it.
        chat.rewind_to(before).await.unwrap();
        let earlier = chat.prepare(&target(), &options).await.unwrap();
        assert!(earlier.compacted.is_empty());
        compacted.len()
    };
    let (max, first) = (UsagePreference::Max, UsagePreference::ReportedFirst);
    assert_eq!(prepared(250, max, &target()).await, 1);
    assert_eq!(prepared(250, first, &target()).await, 1);
    let counted = UsagePreference::CountedFirst;
    assert_eq!(prepared(250, counted, &target()).await, 0);
    assert_eq!(prepared(50, max, &target()).await, 0);
    // What another model's provider says tells nothing of this one.
    let other = Target::openai_chat("gpt-4.1").window(6_000).reserve(500);
    assert_eq!(prepared(250, max, &other).await, 0);
}

/// A clock that stands still until it is set.
#[derive(Clone, Debug, Default)]
struct StoppedClock(Arc<AtomicI64>);

impl Clock for StoppedClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn failing_compactor_opens_breaker_and_manifest_is_used() {
    let clock = StoppedClock::default();
    let engine = Engine::in_memory()
        .with_clock(clock.clone())
        .with_ids(TestIds::default());
    let chat = engine.conversation("c").open().await.unwrap();
    fill(&chat, 0..10).await;
    let failure = || {
        Err(ModelError::Unavailable {
            model: "gpt-4o".into(),
            reason: "overloaded".into(),
            retry_after_ms: None,
        })
    };
    let blank = Ok(ModelResponse::new(text_response(
        Format::OpenAiChat,
        "<summary></summary>",
    )));
    let whole = Ok(ModelResponse::new(text_response(
        Format::OpenAiChat,
        SUMMARY,
    )));
    let model = Arc::new(ScriptedModel::new([
        failure(),
        blank,
        failure(),
        failure(),
        whole,
    ]));
    let options = CompactOptions {
        breaker: CircuitBreakerPolicy {
            failures: 3,
            cooldown_ms: 1_000,
        },
        ..summing_up(&model)
    };
    let expected = [
        (0, Some("gpt-4o is not available: overloaded"), 1),
        (0, Some("the summary says nothing: 0 bytes"), 2),
        (0, Some("gpt-4o is not available: overloaded"), 3),
        (999, Some("left alone after 3 failures"), 3),
        (1_000, Some("gpt-4o is not available: overloaded"), 4),
        (1_999, Some("left alone after 3 failures"), 4),
        (2_000, None, 5),
    ];
    for (now, failure, asked) in expected {
        clock.0.store(now, Ordering::SeqCst);
        let compacted = chat.compact(&target(), &options).await.unwrap();
        assert_eq!(
            (compacted.draft.failure.as_deref(), model.requests().len()),
            (failure, asked),
            "{now}"
        );
        let said = payload(&chat).await;
        check_pairs(&said);
        assert!(said.contains("src/part_0.rs"));
        chat.uncompact(compacted.node).await.unwrap();
    }
}

#[tokio::test]
async fn a_full_window_is_told_to_the_model_in_parts() {
    let chat = filled(40).await;
    let model = model_saying(50);
    let small = Target::openai_chat("gpt-4o").window(4_000).reserve(600);
    let shared = Arc::clone(&model);
    let options = CompactOptions {
        compactor: Arc::new(ModelCompactor::new(shared, small)),
        ..CompactOptions::default()
    };
    let compacted = chat.compact(&target(), &options).await.unwrap();
    assert_eq!(compacted.draft.failure, None);
    let asked = model.requests();
    assert!(asked.len() > 1, "{}", asked.len());
    // Each part was paid for, so each has a row in the record of calls.
    let calls = chat.engine().store().calls().unwrap();
    let rows = calls.list_calls(chat.owner(), contexture_store::ListCalls::default());
    let rows = rows.await.unwrap().calls;
    assert_eq!(rows.len(), asked.len());
    for row in rows {
        assert!(row.details.is_own && row.details.tokens.is_some());
        assert_eq!(row.conversation.as_ref(), Some(chat.id()));
    }
    assert!(
        asked
            .iter()
            .skip(1)
            .all(|request| request.payload.contains("summary_so_far"))
    );
    let told: String = asked
        .iter()
        .map(|request| request.payload.as_str())
        .collect();
    for round in 0..compacted.draft.items / 3 {
        assert!(told.contains(&format!("R{round}X77")), "{round}");
    }
}

#[tokio::test]
async fn an_answer_goes_on_from_its_outputs_behind_a_compaction() {
    let chat = filled(8).await;
    let mut draft = chat.draft();
    draft.push_item(FunctionCall::new("last", "Read", "{}"));
    draft.push_item(FunctionCallOutput::new("last", Output::Text("done".into())));
    draft.commit().await.unwrap();
    let compacted = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    assert_eq!(chat.head().await.unwrap(), Some(compacted.node));
    let call = chat.compile(&target()).await.unwrap();
    let recorded = chat
        .record(&call, &text_response(Format::OpenAiChat, "All done."))
        .await
        .unwrap();
    let messages = chat
        .messages(contexture_engine::MessageView::User)
        .await
        .unwrap();
    let last = messages.iter().next_back().unwrap();
    assert_eq!(last.id, recorded.message.to_string());
    assert!(
        last.parts.len() > 1,
        "the answer is of the turn its outputs are of"
    );
}

#[tokio::test]
async fn what_is_read_again_is_what_was_stored() {
    let chat = filled(6).await;
    let compacted = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    let query = contexture_store::NodeQuery::Id(compacted.node);
    let node = engine_node(&chat, query).await;
    let item = Item::parse(&node.json).unwrap();
    assert_eq!(item.text(), compacted.draft.summary.join("\n"));
    assert_eq!((node.audience.model, node.audience.user), (true, false));
    let other = engine().conversation("c").open().await.unwrap();
    assert!(other.compactions().await.unwrap().is_empty());
}

async fn engine_node(
    chat: &Conversation,
    query: contexture_store::NodeQuery,
) -> Arc<contexture_store::Node> {
    let found = chat
        .engine()
        .store()
        .find_nodes(chat.owner(), chat.id(), query)
        .await
        .unwrap();
    Arc::clone(found.first().unwrap())
}
