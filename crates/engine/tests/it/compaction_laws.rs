//! The laws of compaction, in loops that read a new file in each step: never refused, seldom compacted, most of the prefix
//! reused, and no item summarised too often.

use std::collections::BTreeMap;

use contexture_compile::Target;
use contexture_compile::compaction::{NEW_CONTEXT, NEW_CONTEXT_REPLY};
use contexture_engine::{
    CompactOptions, Conversation, EngineError, EngineEventKind, PrepareOptions, Prepared, Trigger,
};
use contexture_ir::{
    FunctionCall, FunctionCallOutput, FunctionTool, Item, Message, NodeId, Output, Role,
    ToolDefinition, assistant_text, user,
};
use contexture_models::text_response;
use contexture_store::compute_redaction_closure;
use contexture_store_testkit::test_seed;
use contexture_tokens::{Encoding, counter_for};
use contexture_wire::{Format, lift};
use serde_json::Value;

use crate::support::chat;

/// What a loop measured.
#[derive(Debug, Default)]
struct Measured {
    steps: usize,
    refused: usize,
    compactions: usize,
    declined: usize,
    /// Shares of the request before that begin the next one, in thousandths.
    resent: Vec<u64>,
    /// Shares of a request that the one before begins with, in thousandths.
    reused: Vec<u64>,
    /// The most that manifests took of the window, in thousandths.
    manifest: u64,
    /// The least that a compaction gained of what it covers, in thousandths.
    gain: u64,
    /// The most often an item was summarised.
    summarised: u32,
    items: usize,
}

impl Measured {
    fn mean(shares: &[u64]) -> f64 {
        shares.iter().sum::<u64>() as f64 / 1_000.0 / shares.len().max(1) as f64
    }
}

/// A step's output: of the same size in each step, or of a size that the seed decides.
#[derive(Clone, Copy)]
enum Sizes {
    Same,
    Seeded(u64),
}

impl Sizes {
    fn lines(self, step: usize) -> usize {
        match self {
            Self::Same => 20,
            // A short generator of numbers: good enough to mix small outputs with large ones.
            Self::Seeded(seed) => {
                let mut state = seed ^ (step as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let roll = (state ^ (state >> 27)) % 100;
                if roll < 90 {
                    (roll % 30) as usize
                } else {
                    roll as usize
                }
            }
        }
    }
}

async fn add_step(chat: &Conversation, step: usize, sizes: Sizes) {
    let mut draft = chat.draft();
    let id = format!("c{step}");
    let path = format!(r#"{{"file_path":"src/module_{step}/file_{step}.rs"}}"#);
    draft.push_item(FunctionCall::new(&id, "Read", path));
    let text = format!("fn f{step}() {{}}\n").repeat(sizes.lines(step));
    draft.push_item(FunctionCallOutput::new(&id, Output::Text(text)));
    draft.commit().await.unwrap();
}

async fn run_loop(window: u64, steps: usize, sizes: Sizes, options: &PrepareOptions) -> Measured {
    let chat = chat().await;
    chat.save([user("Read the files.")]).await.unwrap();
    let target = Target::openai_chat("gpt-4o").window(window);
    let counter = counter_for(Encoding::O200kBase);
    let mut measured = Measured {
        steps,
        gain: 1_000,
        ..Measured::default()
    };
    let mut before = String::new();
    for step in 0..steps {
        add_step(&chat, step, sizes).await;
        let prepared = match chat.prepare(&target, options).await {
            Ok(prepared) => prepared,
            Err(EngineError::Refused(_)) => {
                measured.refused += 1;
                continue;
            }
            Err(error) => panic!("step {step}: {error}"),
        };
        for one in &prepared.compacted {
            let (covered, instead) = (one.draft.tokens, one.draft.summary_tokens);
            measured.gain = measured.gain.min(1_000 - instead * 1_000 / covered);
        }
        measured.compactions += prepared.compacted.len();
        measured.declined += usize::from(prepared.declined.is_some());
        let payload = prepared.call.payload.to_json();
        let same = payload
            .bytes()
            .zip(before.bytes())
            .take_while(|(now, then)| now == then);
        let same = same.count() as u64;
        if !before.is_empty() {
            // The end of a request closes its lists.
            measured
                .resent
                .push((same + 2).min(before.len() as u64) * 1_000 / before.len() as u64);
            measured.reused.push(same * 1_000 / payload.len() as u64);
        }
        let items = lift(Format::OpenAiChat, &payload).unwrap().transcript.items;
        let texts = items.iter().map(Item::text);
        let manifests = texts.filter(|text| text.contains("Earlier here"));
        let manifests: u64 = manifests.map(|text| counter.count(&text).count).sum();
        measured.manifest = measured.manifest.max(manifests * 1_000 / window);
        before = payload;
        let answer = text_response(Format::OpenAiChat, &format!("ok {step}"));
        chat.record(&prepared.call, &answer).await.unwrap();
        chat.save([user("go on")]).await.unwrap();
    }
    (measured.summarised, measured.items) = summarised(&chat).await;
    measured
}

/// How often the item that was summarised most often was, and of how many.
async fn summarised(chat: &Conversation) -> (u32, usize) {
    let end = contexture_store::PathEnd::Branch(chat.branch());
    let request = contexture_store::ReadRequest::whole_path(end);
    let path = chat
        .engine()
        .store()
        .read_path(chat.owner(), chat.id(), request);
    let nodes = path.await.unwrap().nodes;
    let places = nodes.iter().enumerate().map(|(at, node)| (node.id, at));
    let nodes: BTreeMap<NodeId, usize> = places.collect();
    let mut times = vec![0_i32; nodes.len() + 1];
    for cover in chat.compactions().await.unwrap() {
        times[nodes[&cover.first]] += 1;
        times[nodes[&cover.last] + 1] -= 1;
    }
    let (mut depth, mut most) = (0, 0);
    for step in times {
        depth += step;
        most = most.max(depth);
    }
    (u32::try_from(most).unwrap(), nodes.len())
}

fn check_laws(window: u64, measured: &Measured) {
    println!(
        "{window:>6} {:>5} steps: {} refused, {} compactions ({:.1} per 1,000 steps), {} declined, manifest at most {:.1} % of the window, least gain {:.0} %, resent {:.3}, reused {:.3}, summarised {} times of {} items",
        measured.steps,
        measured.refused,
        measured.compactions,
        measured.compactions as f64 * 1_000.0 / measured.steps as f64,
        measured.declined,
        measured.manifest as f64 / 10.0,
        measured.gain as f64 / 10.0,
        Measured::mean(&measured.resent),
        Measured::mean(&measured.reused),
        measured.summarised,
        measured.items,
    );
    assert_eq!(measured.refused, 0, "{window}");
    assert!(
        measured.compactions * 8 <= measured.steps,
        "{window}: {}",
        measured.compactions
    );
    assert!(measured.manifest <= 150, "{window}");
    assert!(measured.gain >= 300, "{window}: {}", measured.gain);
    assert!(Measured::mean(&measured.resent) >= 0.85, "{window}");
    assert!(measured.summarised <= measured.items.ilog2(), "{window}");
}

/// 3,000 steps in a soak.
fn steps() -> usize {
    match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 3_000,
        None => 300,
    }
}

#[tokio::test]
async fn file_loop_keeps_the_laws_in_a_window_of_3k() {
    check_laws(
        3_000,
        &run_loop(3_000, steps(), Sizes::Same, &PrepareOptions::default()).await,
    );
}

#[tokio::test]
async fn file_loop_keeps_the_laws_in_a_window_of_8k() {
    check_laws(
        8_000,
        &run_loop(8_000, steps(), Sizes::Same, &PrepareOptions::default()).await,
    );
}

#[tokio::test]
async fn file_loop_keeps_the_laws_in_a_window_of_16k() {
    check_laws(
        16_000,
        &run_loop(16_000, steps(), Sizes::Same, &PrepareOptions::default()).await,
    );
}

#[tokio::test]
async fn file_loop_keeps_the_laws_in_a_window_of_32k() {
    check_laws(
        32_000,
        &run_loop(32_000, steps(), Sizes::Same, &PrepareOptions::default()).await,
    );
}

#[tokio::test]
async fn outputs_of_any_size_are_never_refused() {
    let seed = test_seed();
    for window in [3_000, 8_000] {
        let steps = steps() / 3;
        let measured = run_loop(
            window,
            steps,
            Sizes::Seeded(seed),
            &PrepareOptions::default(),
        )
        .await;
        assert_eq!(measured.refused, 0, "{window}");
        assert!(measured.manifest <= 150, "{window}");
        assert!(measured.gain >= 300, "{window}");
        assert!(measured.summarised <= measured.items.ilog2(), "{window}");
    }
}

/// A conversation of files that was compacted once.
async fn compacted(target: &Target) -> Conversation {
    let chat = chat().await;
    chat.save([user("Read the files.")]).await.unwrap();
    for step in 0..18 {
        add_step(&chat, step, Sizes::Same).await;
    }
    let prepared = chat
        .prepare(target, &PrepareOptions::default())
        .await
        .unwrap();
    assert_eq!(prepared.compacted.len(), 1);
    chat
}

#[tokio::test]
async fn nothing_is_compacted_twice_at_one_head() {
    let target = Target::openai_chat("gpt-4o").window(3_000);
    let chat = compacted(&target).await;
    let events = chat.engine().subscribe();
    let always = PrepareOptions {
        trigger: Trigger::Tokens(1),
        ..PrepareOptions::default()
    };
    let again = chat.prepare(&target, &always).await.unwrap();
    assert!(again.compacted.is_empty());
    let why = "nothing was added since the last compaction";
    assert_eq!(again.declined, Some(why));
    // The report says it, and an event does.
    assert_eq!(again.call.report.compaction_declined, Some(why));
    assert!(again.call.report.to_string().contains(why));
    let events = std::iter::from_fn(|| events.try_next());
    let declined = EngineEventKind::CompactionDeclined { reason: why };
    assert!(events.map(|event| event.kind).any(|kind| kind == declined));
    let asked = chat.compact(&target, &CompactOptions::default()).await;
    assert_eq!(asked.unwrap_err().kind(), "nothing_to_compact");
    // With new items it is compacted again.
    add_step(&chat, 18, Sizes::Same).await;
    add_step(&chat, 19, Sizes::Same).await;
    let more = chat.prepare(&target, &always).await.unwrap();
    assert_eq!(more.compacted.len(), 1);
}

#[tokio::test]
async fn what_stands_for_old_history_is_never_why_new_does_not_fit() {
    let target = Target::openai_chat("gpt-4o").window(3_000);
    let chat = compacted(&target).await;
    let manifest = chat.compile(&target).await.unwrap().payload.to_json();
    assert!(manifest.contains("Earlier here"));
    // Nearly all of the window: what is left has no room for the manifest.
    let long = "word ".repeat(2_520);
    chat.save([assistant_text("They are read."), user(long.as_str())])
        .await
        .unwrap();
    let prepared = chat
        .prepare(&target, &PrepareOptions::default())
        .await
        .unwrap();
    let payload = prepared.call.payload.to_json();
    assert!(payload.contains("word word") && !payload.contains("Earlier here"));
    assert!(prepared.call.report.totals.tokens <= 2_625);
}

#[tokio::test]
async fn redacted_messages_leave_no_trace_in_what_stands_for_them() {
    let target = Target::openai_chat("gpt-4o").window(3_000);
    let chat = chat().await;
    chat.save([user("Book my flights.")]).await.unwrap();
    let mut secret = Vec::new();
    for step in 0..12 {
        let mut draft = chat.draft();
        let id = format!("b{step}");
        let name = if step == 3 { "secret_agent" } else { "agent" };
        let arguments = format!(r#"{{"passenger":"{name}_{step}","flight":"HAT{step}00"}}"#);
        draft.push_item(FunctionCall::new(&id, "book_reservation", arguments));
        let text = format!(
            r#"{{"reservation_id":"{}{step}","status":"confirmed"}}"#,
            name.to_uppercase()
        );
        draft.push_item(FunctionCallOutput::new(&id, Output::Text(text)));
        draft.push_item(Message::text(Role::Assistant, "Booked. ".repeat(20)));
        let words = if step == 3 {
            "We decided that secret_person flies first."
        } else {
            "I need the next one."
        };
        draft.push_item(Message::text(Role::User, words));
        let committed = draft.commit().await.unwrap();
        if step == 3 {
            secret.extend(committed.nodes.clone());
        }
    }
    let compacted = chat
        .compact(&target, &CompactOptions::default())
        .await
        .unwrap();
    let text = compacted.draft.summary.join("\n");
    assert!(
        text.contains("secret_agent_3") && text.contains("secret_person"),
        "{text}"
    );
    let store = chat.engine().store();
    let closure = compute_redaction_closure(&**store, chat.owner(), chat.id(), &secret, 1_000);
    let closure = closure.await.unwrap();
    store
        .redact_content(chat.owner(), chat.id(), closure)
        .await
        .unwrap();
    let payload = chat.compile(&target).await.unwrap().payload.to_json();
    let has_trace = |text: &str| text.to_lowercase().contains("secret");
    assert!(!has_trace(&payload), "{payload}");
    // The compaction is made anew at the next call, and names the rest of the changes again.
    let prepared = chat
        .prepare(&target, &PrepareOptions::default())
        .await
        .unwrap();
    let text = prepared.compacted[0].draft.summary.join("\n");
    assert!(!has_trace(&text), "{text}");
    assert!(
        text.contains("agent_2") && text.contains("AGENT2"),
        "{text}"
    );
    let payload = prepared.call.payload.to_json();
    assert!(
        !has_trace(&payload) && payload.contains("AGENT2"),
        "{payload}"
    );
    let again = chat
        .prepare(&target, &PrepareOptions::default())
        .await
        .unwrap();
    assert!(again.compacted.is_empty() && again.declined.is_none());
}

/// Records an answer of the model to the next call.
async fn answer(chat: &Conversation, target: &Target) -> Prepared {
    let prepared = chat
        .prepare(target, &PrepareOptions::default())
        .await
        .unwrap();
    let answer = text_response(Format::OpenAiChat, "ok");
    chat.record(&prepared.call, &answer).await.unwrap();
    prepared
}

#[tokio::test]
async fn a_model_that_can_save_is_told_once_before_each_cut() {
    let plain = Target::openai_chat("gpt-4o").window(3_000);
    for tool in ["create_memory", "scratchpad_update", "search_flights"] {
        let offered = FunctionTool {
            name: tool.to_owned(),
            ..FunctionTool::default()
        };
        let target = &plain.clone().tools(vec![ToolDefinition::Function(offered)]);
        let chat = chat().await;
        chat.save([user("Read the files.")]).await.unwrap();
        let (mut notices, mut cuts) = (Vec::new(), Vec::new());
        for step in 0..60 {
            add_step(&chat, step, Sizes::Same).await;
            let prepared = answer(&chat, target).await;
            if !prepared.compacted.is_empty() {
                cuts.push(step);
            }
            let payload = prepared.call.payload.to_json();
            if payload.contains(&format!("save it now with `{tool}`")) {
                notices.push(step);
                // It stands at the end, and only in this request.
                let messages: Value = serde_json::from_str(&payload).unwrap();
                let messages = messages["messages"].as_array().unwrap();
                let last = messages.iter().next_back().unwrap().to_string();
                assert!(last.contains("save it now"), "{last}");
            }
            chat.save([user("go on")]).await.unwrap();
        }
        assert!(cuts.len() > 2, "{cuts:?}");
        // Nothing can be saved by it.
        if tool == "search_flights" {
            assert!(notices.is_empty(), "{notices:?}");
            continue;
        }
        // One before each cut.
        for cut in cuts.windows(2) {
            let between = notices.iter().filter(|at| (cut[0]..cut[1]).contains(*at));
            assert_eq!(between.count(), 1, "{notices:?} before {cuts:?}");
        }
    }
}

#[tokio::test]
async fn a_model_asks_for_a_compaction_itself() {
    let target = Target::openai_chat("gpt-4o").window(30_000);
    let chat = chat().await;
    chat.save([user("Read the files.")]).await.unwrap();
    for step in 0..10 {
        add_step(&chat, step, Sizes::Same).await;
    }
    let before = chat
        .prepare(&target, &PrepareOptions::default())
        .await
        .unwrap();
    assert!(before.compacted.is_empty());
    let mut draft = chat.draft();
    let summary = r#"{"summary":"All files are read; next comes the README."}"#;
    draft.push_item(FunctionCall::new("n", NEW_CONTEXT, summary));
    draft.push_item(FunctionCallOutput::new(
        "n",
        Output::Text(NEW_CONTEXT_REPLY.to_owned()),
    ));
    draft.commit().await.unwrap();
    let prepared = chat
        .prepare(&target, &PrepareOptions::default())
        .await
        .unwrap();
    assert_eq!(prepared.compacted.len(), 1);
    let payload = prepared.call.payload.to_json();
    assert!(
        payload.contains("All files are read; next comes the README."),
        "{payload}"
    );
    assert!(payload.contains("src/module_3/file_3.rs") && !payload.contains("fn f3()"));
    // Once.
    let again = chat
        .prepare(&target, &PrepareOptions::default())
        .await
        .unwrap();
    assert!(again.compacted.is_empty());
    assert_eq!(again.call.payload.to_json(), payload);
}
