//! Summaries that a model writes in the background: asked behind the bytes that it was sent last, ready when a compaction is
//! due, never waited for, and gone with what is redacted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use contexture_catalogue::Catalogue;
use contexture_compile::{CacheRules, Clear, HistoryPolicy, Target, predict_continued};
use contexture_engine::{
    BackgroundSummary, Conversation, EngineEventKind, Events, ModelCompactor, PrepareOptions,
    Prepared, Strategy,
};
use contexture_ir::{
    FunctionCall, FunctionCallOutput, FunctionTool, Item, Output, RequestOptions, ToolChoice,
    ToolDefinition, user,
};
use contexture_models::{
    Model, ModelError, ModelRequest, ModelResponse, ScriptedModel, text_response,
};
use contexture_store::{
    DERIVED_KEYS, EraseScope, KeyScope, ListCalls, ListEntries, PathEnd, ReadRequest,
    compute_redaction_closure, erase_all,
};
use contexture_tokens::counter_for;
use contexture_wire::{Format, lift};

use crate::support::chat;

const SUMMARY: &str = "<analysis>hm</analysis><summary>The modules were read in order, and module 3 holds the \
                       parser that the user asked for.</summary>";
const FORMAT: Format = Format::OpenAiChat;

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(16_000).reserve(1_000)
}

fn is_question(request: &ModelRequest) -> bool {
    request
        .payload
        .contains("Sum up the part of this conversation")
}

/// A model that answers questions for summaries with one text and everything else with another.
fn model(answer: impl Fn(usize) -> String + Send + 'static) -> Arc<ScriptedModel> {
    let mut questions = 0;
    Arc::new(ScriptedModel::with_fn(move |request| {
        let body = match request.payload.contains("Write the summary: <analysis>")
            || is_question(request)
        {
            true => {
                questions += 1;
                answer(questions)
            }
            false => text_response(FORMAT, "ok"),
        };
        Ok(ModelResponse::new(body))
    }))
}

fn writer() -> Arc<ScriptedModel> {
    model(|_| text_response(FORMAT, SUMMARY))
}

fn options(summary: BackgroundSummary) -> PrepareOptions {
    PrepareOptions {
        strategies: vec![Strategy::Summary(summary), Strategy::Manifest],
        ..PrepareOptions::default()
    }
}

/// Adds a call and its output of some 800 tokens.
async fn add_step(chat: &Conversation, step: usize) {
    let mut draft = chat.draft();
    let id = format!("c{step}");
    let path = format!(r#"{{"file_path":"src/module_{step}/file_{step}.rs"}}"#);
    draft.push_item(FunctionCall::new(&id, "Read", path));
    let text = format!("fn f{step}() {{}}\n").repeat(100);
    draft.push_item(FunctionCallOutput::new(&id, Output::Text(text)));
    draft.commit().await.unwrap();
}

/// A call that was prepared and answered.
struct Turn {
    prepared: Prepared,
    payload: String,
}

async fn run_turn(
    chat: &Conversation,
    model: &dyn Model,
    target: &Target,
    options: &PrepareOptions,
) -> Turn {
    let prepared = chat.prepare(target, options).await.unwrap();
    let payload = prepared.call.payload.to_json();
    let request = ModelRequest {
        format: target.format(),
        model: target.model().to_owned(),
        payload: payload.clone(),
    };
    let answer = model.answer(request).await.unwrap();
    chat.record(&prepared.call, &answer.body).await.unwrap();
    chat.save([user("go on")]).await.unwrap();
    Turn { prepared, payload }
}

/// Runs turns until one compacts, waiting for summaries between them; returns all turns.
async fn run_until_compacted(
    chat: &Conversation,
    model: &dyn Model,
    target: &Target,
    options: &PrepareOptions,
) -> Vec<Turn> {
    chat.save([user("Read the files and find the parser.")])
        .await
        .unwrap();
    let mut turns = Vec::new();
    for step in 0..40 {
        add_step(chat, step).await;
        let turn = run_turn(chat, model, target, options).await;
        chat.wait_for_summary().await;
        let is_last = !turn.prepared.compacted.is_empty();
        turns.push(turn);
        if is_last {
            return turns;
        }
    }
    panic!("no compaction in 40 steps");
}

fn last_summary(turns: &[Turn]) -> &[String] {
    &turns.last().unwrap().prepared.compacted[0].draft.summary
}

fn questions(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests().into_iter().filter(is_question);
    requests.map(|request| request.payload).collect()
}

/// How many values there are of those that a list asks for.
async fn count_entries(chat: &Conversation, list: ListEntries) -> usize {
    let store = chat.engine().store();
    let page = store.list_entries(chat.owner(), list).await.unwrap();
    page.entries.len()
}

/// How many summaries wait.
async fn waiting(chat: &Conversation) -> usize {
    let scope = KeyScope::Conversation(chat.id().clone());
    count_entries(chat, ListEntries::in_scope(scope, DERIVED_KEYS)).await
}

fn missing_reasons(events: &Events) -> Vec<String> {
    let mut reasons = Vec::new();
    while let Some(event) = events.try_next() {
        if let EngineEventKind::SummaryMissing { reason } = event.kind {
            reasons.push(reason);
        }
    }
    reasons
}

/// One question, behind the bytes of a request that was answered before: nearly all of it is read from the cache. What it gave
/// stands before the manifest once the compaction is due, in the compaction's own node.
#[tokio::test]
async fn summary_is_asked_behind_the_last_request_and_ready() {
    let (chat, model) = (chat().await, writer());
    let events = chat.engine().subscribe();
    let options = options(BackgroundSummary::by_own_model(model.clone()));
    let turns = run_until_compacted(&chat, &*model, &target(), &options).await;
    let asked = questions(&model);
    assert_eq!(asked.len(), 1);
    let sent = turns.iter().map(|turn| turn.payload.as_str());
    // Of the last request before the question everything up to the end of its last message is there, byte for byte.
    let before = sent
        .filter(|sent| asked[0].starts_with(&sent[..sent.find(r#"],"#).unwrap_or(0)]))
        .max_by_key(|sent| {
            let same = sent.bytes().zip(asked[0].bytes());
            same.take_while(|(one, other)| one == other).count()
        })
        .unwrap();
    let spec = Catalogue::builtin().resolve("gpt-4o").unwrap();
    let rules = CacheRules::for_model(spec, FORMAT);
    let counter = counter_for(spec.encoding);
    let used = predict_continued(FORMAT, (before, &asked[0]), &rules, counter).unwrap();
    let share = used.read * 1_000 / used.total_tokens();
    println!("read {share} of 1,000 of {used:?}");
    assert!(share >= 950, "{used:?}");
    let summary = last_summary(&turns);
    assert!(summary[0].starts_with("The modules were read in order"));
    assert!(summary[1].contains("Earlier here"));
    let last = turns.last().unwrap();
    assert!(last.payload.contains("module 3 holds the parser"));
    assert_eq!(last.prepared.call.report.summary_missing, None);
    // Nothing waits any more, and the question is in the record of calls as one that no client made.
    assert_eq!(waiting(&chat).await, 0);
    let calls = chat.engine().store().calls().unwrap();
    let listed = calls.list_calls(chat.owner(), ListCalls::default()).await;
    let own = listed.unwrap().calls;
    assert_eq!(own.iter().filter(|call| call.details.is_own).count(), 1);
    let mut ready = 0;
    while let Some(event) = events.try_next() {
        ready += usize::from(event.kind == EngineEventKind::SummaryReady);
    }
    assert_eq!(ready, 1);
}

/// A model that answers everything but a question for a summary.
#[derive(Debug, Default)]
struct SlowWriter {
    asked: AtomicUsize,
}

#[async_trait]
impl Model for SlowWriter {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        if is_question(&request) {
            self.asked.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        Ok(ModelResponse::new(text_response(FORMAT, "ok")))
    }
}

/// The turn waits for nothing: a question that is never answered costs the summary, and the manifest stands alone.
#[tokio::test]
async fn a_summary_that_never_comes_delays_nothing() {
    let (chat, model) = (chat().await, Arc::new(SlowWriter::default()));
    let options = options(BackgroundSummary::by_own_model(model.clone()));
    chat.save([user("Read the files.")]).await.unwrap();
    for step in 0..40 {
        add_step(&chat, step).await;
        let turn = run_turn(&chat, &*model, &target(), &options).await;
        // What runs in the background gets its turn, and never ends.
        tokio::task::yield_now().await;
        if let [one] = &turn.prepared.compacted[..] {
            assert_eq!(one.draft.summary.len(), 1);
            let missing = turn.prepared.call.report.summary_missing.as_deref();
            assert_eq!(missing, Some("none was ready in time"));
            assert_eq!(model.asked.load(Ordering::SeqCst), 1);
            return;
        }
    }
    panic!("no compaction in 40 steps");
}

#[tokio::test]
async fn an_obstacle_is_reported_and_the_manifest_stands() {
    let (chat, model) = (chat().await, writer());
    let tool = ToolDefinition::Function(FunctionTool {
        name: "Read".into(),
        ..FunctionTool::default()
    });
    let forced = target().tools(vec![tool]).options(RequestOptions {
        tool_choice: Some(ToolChoice::Required),
        ..RequestOptions::default()
    });
    let options = options(BackgroundSummary::by_own_model(model.clone()));
    let turns = run_until_compacted(&chat, &*model, &forced, &options).await;
    assert_eq!(questions(&model).len(), 0);
    assert_eq!(last_summary(&turns).len(), 1);
    let report = &turns.last().unwrap().prepared.call.report;
    let why = "the request forces a tool call";
    assert_eq!(report.summary_missing.as_deref(), Some(why));
    assert!(report.to_string().contains(why));
}

fn tool_call() -> String {
    r#"{"id":"x","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_9","type":"function","function":{"name":"Read","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#.to_owned()
}

/// A call of a tool in the place of a summary is answered once, behind the same bytes.
#[tokio::test]
async fn a_tool_call_is_answered_once() {
    let (chat, model) = (
        chat().await,
        model(|question| match question {
            1 => tool_call(),
            _ => text_response(FORMAT, SUMMARY),
        }),
    );
    let options = options(BackgroundSummary::by_own_model(model.clone()));
    let turns = run_until_compacted(&chat, &*model, &target(), &options).await;
    let asked = questions(&model);
    assert_eq!(asked.len(), 2);
    let items = lift(FORMAT, &asked[1]).unwrap().transcript.items;
    let outputs = items
        .iter()
        .filter(|item| item.text() == "Not available now.");
    assert_eq!(outputs.count(), 1);
    assert!(matches!(items.last(), Some(Item::Message(_))));
    assert_eq!(last_summary(&turns).len(), 2);
}

/// Twice is a failure, and nobody asks again for the same beginning: each answer was paid for.
#[tokio::test]
async fn a_model_that_only_calls_tools_is_given_up() {
    let (chat, model) = (chat().await, model(|_| tool_call()));
    let events = chat.engine().subscribe();
    let options = options(BackgroundSummary::by_own_model(model.clone()));
    let turns = run_until_compacted(&chat, &*model, &target(), &options).await;
    assert_eq!(questions(&model).len(), 2);
    assert_eq!(last_summary(&turns).len(), 1);
    let why = "it called a tool twice instead of writing";
    assert_eq!(missing_reasons(&events), [why]);
    let report = &turns.last().unwrap().prepared.call.report;
    assert_eq!(report.summary_missing.as_deref(), Some(why));
}

/// Of two models the cheaper is asked: another one is sent the part that is summed up and not the whole request.
#[tokio::test]
async fn the_cheaper_of_two_models_is_asked() {
    for (other_name, is_other) in [("gpt-4o-mini", true), ("gpt-4o", false)] {
        let (chat, own) = (chat().await, writer());
        let other = Arc::new(ScriptedModel::with_fn(|_| {
            Ok(ModelResponse::new(text_response(FORMAT, SUMMARY)))
        }));
        let compactor = ModelCompactor::new(other.clone(), Target::openai_chat(other_name));
        let summary = BackgroundSummary::by_own_model(own.clone()).or_by_other_model(compactor);
        let events = chat.engine().subscribe();
        let turns = run_until_compacted(&chat, &*own, &target(), &options(summary)).await;
        let counts = (questions(&own).len(), other.requests().len());
        assert_eq!(counts, (usize::from(!is_other), usize::from(is_other)));
        assert_eq!(last_summary(&turns).len(), 2);
        let mut priced = 0;
        while let Some(event) = events.try_next() {
            if let EngineEventKind::SummaryAsked {
                own_cost: Some(own),
                other_cost: Some(other),
                is_own,
            } = event.kind
            {
                assert_eq!(is_own, own <= other);
                priced += 1;
            }
        }
        assert_eq!(priced, 1);
    }
}

/// A summary that waits repeats what it sums up, so it goes with whatever is redacted; and with its owner.
#[tokio::test]
async fn redaction_and_erasure_reach_a_waiting_summary() {
    for erases in [false, true] {
        let (chat, model) = (chat().await, writer());
        let options = options(BackgroundSummary::by_own_model(model.clone()));
        chat.save([user("Read the files; the password is hunter2.")])
            .await
            .unwrap();
        let mut step = 0;
        while waiting(&chat).await == 0 {
            add_step(&chat, step).await;
            run_turn(&chat, &*model, &target(), &options).await;
            chat.wait_for_summary().await;
            step += 1;
            assert!(step < 40);
        }
        let store = chat.engine().store();
        if erases {
            erase_all(&**store, chat.owner(), &EraseScope::Owner)
                .await
                .unwrap();
            assert_eq!(count_entries(&chat, ListEntries::default()).await, 0);
            continue;
        }
        let path = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
        let path = store
            .read_path(chat.owner(), chat.id(), path)
            .await
            .unwrap();
        let node = [path.nodes[2].id];
        let closure = compute_redaction_closure(&**store, chat.owner(), chat.id(), &node, 1);
        let request = closure.await.unwrap();
        store
            .redact_content(chat.owner(), chat.id(), request)
            .await
            .unwrap();
        assert_eq!(waiting(&chat).await, 0);
    }
}

/// Where the provider shortens the history, nothing is made of ours as long as the request fits; a reset leaves the opening and the
/// last round.
#[tokio::test]
async fn strategies_are_tried_in_order() {
    let (chat, model) = (chat().await, writer());
    let left = PrepareOptions {
        strategies: vec![Strategy::Provider, Strategy::Reset],
        ..PrepareOptions::default()
    };
    chat.save([user("Read the files.")]).await.unwrap();
    // Without clearing, or old outputs would make room for a long time.
    let target = target().history(HistoryPolicy {
        clear: Clear::Never,
        ..HistoryPolicy::default()
    });
    let (mut step, mut above) = (0, 0);
    let turn = loop {
        add_step(&chat, step).await;
        step += 1;
        let turn = run_turn(&chat, &*model, &target, &left).await;
        above += u32::from(turn.prepared.call.report.totals.tokens > 12_750);
        if !turn.prepared.compacted.is_empty() {
            break turn;
        }
        assert!(step < 40);
    };
    // Above the trigger of 85 per cent it was left alone until it no longer fitted.
    assert!(above > 0);
    let items = lift(FORMAT, &turn.payload).unwrap().transcript.items;
    let outputs = items
        .iter()
        .filter(|item| matches!(item, Item::FunctionCallOutput(_)));
    assert_eq!(outputs.count(), 1);
    assert!(items[0].text().contains("Read the files."));
}

/// What costs more than it saves is not asked for, where that is demanded.
#[tokio::test]
async fn a_summary_that_does_not_pay_is_not_asked_for() {
    let (chat, model) = (chat().await, writer());
    let mut summary = BackgroundSummary::by_own_model(model.clone());
    summary.must_pay = true;
    // Where a request is small, 2,000 tokens of an answer are more than five calls save.
    let small = target().window(6_000);
    let turns = run_until_compacted(&chat, &*model, &small, &options(summary)).await;
    let why = turns
        .last()
        .unwrap()
        .prepared
        .call
        .report
        .summary_missing
        .clone();
    assert_eq!(questions(&model).len(), 0);
    assert!(why.unwrap().starts_with("it would cost $"));
}
