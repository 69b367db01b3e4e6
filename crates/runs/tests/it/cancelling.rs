//! Cancelling a run by its id: one that waits, one that hangs in another process, one whose process died.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contexture_engine::{Conversation, Engine};
use contexture_runs::{
    ApprovalDecision, Run, RunError, RunStatus, cancel_run, list_runs, run_turn_with_text,
    store_decision,
};
use contexture_store::{MemoryStore, Store};
use contexture_store_testkit::{Faulty, InjectedFault};
use contexture_tools::Policy;

use crate::test_support::{
    agent, answers_once, calling, chat, model, said, saying, tool, tools, transcript,
};

async fn open(store: &Arc<dyn Store>) -> Conversation {
    let engine = Engine::new(Arc::clone(store));
    engine.conversation("c").open().await.unwrap()
}

#[tokio::test]
async fn a_run_that_waits_is_ended_at_once_and_its_call_never_runs() {
    let chat = chat().await;
    let ran = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ran);
    let mut tools = contexture_runs::ToolBox::new(Policy::default().ask("pay"));
    tool(&mut tools, "pay", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok("paid".into())
    });
    let model = model([calling(&[("p", "pay", "{}")]), saying("never")]);
    let agent = agent(&model).with_tools(tools).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "pay").await.unwrap();
    let contexture_runs::TurnEnd::Waiting { calls } = &turn.end else {
        panic!("{:?}", turn.end);
    };
    let entry = cancel_run(&chat, turn.run, "not today").await.unwrap();
    assert_eq!(entry.status, RunStatus::Aborted);
    assert_eq!(entry.reason.as_deref(), Some("not today"));
    // Nothing brings it back, not even a decision.
    drop(store_decision(&chat, turn.run, calls[0], ApprovalDecision::Allow.by("ada")).await);
    assert!(Run::resume(&chat, turn.run, &agent).await.is_err());
    let again = cancel_run(&chat, turn.run, "again").await.unwrap();
    assert_eq!(again.reason.as_deref(), Some("not today"));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// A run of one process is cancelled by another one, while the model or a tool hangs.
#[tokio::test(start_paused = true)]
async fn a_driver_elsewhere_ends_the_run_and_keeps_what_is_finished() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (here, elsewhere) = (open(&store).await, open(&store).await);
    let ran = Arc::new(AtomicU32::new(0));
    let (hanging, hung) = answers_once(calling(&[("a", "add", r#"{"a":1,"b":2}"#)]));
    let hanging = hanging.with_tools(tools(&ran)).unwrap();
    let mut run = Run::begin(&here, &hanging, [said("go")]).await.unwrap();
    let id = run.id();
    let cancel = async {
        hung.notified().await;
        cancel_run(&elsewhere, id, "the user has left").await
    };
    let (ended, asked) = tokio::join!(run.drive(), cancel);
    assert_eq!(asked.unwrap().status, RunStatus::Running);
    let error = ended.unwrap_err();
    assert!(matches!(error, RunError::Cancelled(_)), "{error}");
    let found = list_runs(elsewhere.engine(), elsewhere.owner(), None)
        .await
        .unwrap();
    assert_eq!(found[0].status, RunStatus::Aborted);
    assert_eq!(
        found[0].reason.as_deref(),
        Some("cancelled: the user has left")
    );
    assert!(
        transcript(&elsewhere)
            .await
            .contains(&"output 3".to_owned())
    );
    // The next turn is not touched by what was asked of the last one.
    let turn = run_turn_with_text(&here, &agent(&model([saying("hello")])), "hi").await;
    assert_eq!(turn.unwrap().text, "hello");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_cancelled_by_its_id_and_its_parent_goes_on() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (here, elsewhere) = (open(&store).await, open(&store).await);
    let (hanging, hung) = answers_once(calling(&[("a", "add", r#"{"a":1,"b":2}"#)]));
    let below = hanging.with_tools(tools(&Arc::default())).unwrap();
    let desk = model([
        calling(&[("c", "one", r#"{"task":"t"}"#)]),
        saying("without it"),
    ]);
    let below = contexture_runs::SubAgent::new(below, "Works.");
    let desk = agent(&desk).with_sub_agent("one", below).unwrap();
    let mut run = Run::begin(&here, &desk, [said("go")]).await.unwrap();
    let cancel = async {
        hung.notified().await;
        let runs = list_runs(elsewhere.engine(), elsewhere.owner(), None)
            .await
            .unwrap();
        let child = runs.iter().find(|run| run.depth == 1).unwrap();
        cancel_run(&elsewhere, child.id().unwrap(), "too slow")
            .await
            .unwrap();
    };
    let (ended, ()) = tokio::join!(run.drive(), cancel);
    assert_eq!(ended.unwrap().text, "without it");
    let said = transcript(&here).await.join("\n");
    assert!(said.contains("too slow"), "{said}");
}

/// Its driver was asked and died before it looked; whoever takes the run up ends it before its first step.
#[tokio::test(start_paused = true)]
async fn a_request_outlives_the_driver_that_was_asked() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (here, elsewhere) = (open(&store).await, open(&store).await);
    let (hanging, hung) = answers_once(saying("unused"));
    let hanging = hanging.with_max_refusals(0);
    let mut run = Run::begin(
        &here,
        &hanging.with_stop_condition(contexture_runs::StopCondition::new_async(
            "never",
            move |_: contexture_runs::OwnedSnapshot| async {
                std::future::pending::<Result<bool, String>>().await
            },
        )),
        [said("go")],
    )
    .await
    .unwrap();
    drop(hung);
    let id = run.id();
    tokio::select! {
        biased;
        ended = run.drive() => panic!("{ended:?}"),
        asked = cancel_run(&elsewhere, id, "too late") => {
            assert_eq!(asked.unwrap().status, RunStatus::Running);
        }
    }
    drop(run);
    let model = model([saying("never asked")]);
    let resumed = agent(&model);
    let mut run = Run::resume(&here, id, &resumed).await.unwrap();
    let error = run.drive().await.unwrap_err();
    assert_eq!(error.kind(), "cancelled", "{error}");
    assert!(model.requests().is_empty());
}

/// What a run that has ended asked is answered by nobody, so deciding about it is refused.
#[tokio::test]
async fn a_decision_about_a_run_that_has_ended_is_refused() {
    let chat = chat().await;
    let mut tools = contexture_runs::ToolBox::new(Policy::default().ask("pay"));
    tool(&mut tools, "pay", || Ok("paid".into()));
    let model = model([calling(&[("p", "pay", "{}")])]);
    let agent = agent(&model).with_tools(tools).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "pay").await.unwrap();
    let contexture_runs::TurnEnd::Waiting { calls } = &turn.end else {
        panic!("{:?}", turn.end);
    };
    cancel_run(&chat, turn.run, "not today").await.unwrap();
    let decided = store_decision(&chat, turn.run, calls[0], ApprovalDecision::Allow.by("ada"));
    let error = decided.await.unwrap_err();
    assert!(matches!(error, RunError::NotWaiting { .. }), "{error}");
    assert!(!error.is_retryable());
}

/// Whichever call to the store fails before a resumed run's first step, the run is free for the next driver.
#[tokio::test]
async fn a_store_that_fails_while_resuming_leaves_the_run_free() {
    let mut failed = 0;
    for call in 1.. {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let faulty = Faulty::failing_call(Arc::clone(&inner), call, InjectedFault::Before);
        let faulty = Arc::new(faulty);
        let (before, failing) = (open(&inner).await, Engine::new(faulty.clone()));
        let mut tools = contexture_runs::ToolBox::new(Policy::default().ask("pay"));
        tool(&mut tools, "pay", || Ok("paid".into()));
        let asks = model([calling(&[("p", "pay", "{}")])]);
        let agent = agent(&asks).with_tools(tools).unwrap();
        // It waits, so nobody holds its branch.
        let waiting = run_turn_with_text(&before, &agent, "pay").await.unwrap();
        let Ok(chat) = failing.conversation("c").open().await else {
            continue;
        };
        let Ok(mut run) = Run::resume(&chat, waiting.run, &agent).await else {
            continue;
        };
        if let Err(error) = run.drive().await {
            failed += 1;
            // The handle that failed is still there.
            let next = Run::resume(&chat, waiting.run, &agent).await.map(drop);
            let is_busy = matches!(next, Err(RunError::Busy { .. }));
            assert!(!is_busy, "call {call}: {error}, then {next:?}");
        }
        if faulty.fault_count() == 0 {
            break;
        }
    }
    assert!(failed > 0);
}
