//! Runs that are asked for where their agent is not, and pages of lists of runs.

use std::sync::Arc;

use contexture_engine::{Conversation, Engine};
use contexture_runs::{
    Agent, Run, RunError, RunQuery, RunStatus, TurnEnd, cancel_run, list_runs, list_runs_with,
    queue_run, recover_runs, run_turn_with_text,
};
use contexture_store::{MemoryStore, Store};
use contexture_store_testkit::{Faulty, InjectedFault};
use contexture_tools::Policy;

use crate::test_support::{agent, calling, chat, model, said, saying, tool, transcript};

async fn queue(chat: &Conversation, agent: &str, text: &str) -> contexture_ir::RunId {
    let id = chat.engine().new_run_id();
    let entry = queue_run(chat, id, agent, [said(text)]).await.unwrap();
    assert_eq!(entry.status, RunStatus::Queued);
    id
}

async fn recover(chat: &Conversation, agents: &[&Agent]) -> Vec<contexture_runs::Recovered> {
    let agent_of = |name: &str| agents.iter().find(|agent| agent.name() == name).copied();
    let recovered = recover_runs(chat.engine(), chat.owner(), |name| agent_of(name).cloned());
    recovered.await.unwrap()
}

#[tokio::test]
async fn queued_runs_of_a_branch_begin_one_after_the_other() {
    let chat = chat().await;
    let first = queue(&chat, "tester", "one").await;
    let second = queue(&chat, "tester", "two").await;
    // The same request again is the same run.
    let again = queue_run(&chat, first, "tester", [said("one")]).await;
    assert_eq!(again.unwrap().run, first.to_string());
    // Nothing is on the branch until a run begins.
    assert!(transcript(&chat).await.is_empty());
    let agent = agent(&model([saying("first"), saying("second")]));
    let ended = recover(&chat, &[&agent]).await;
    let ids: Vec<_> = ended.iter().map(|run| run.entry.run.clone()).collect();
    assert_eq!(ids, [first.to_string(), second.to_string()]);
    let said = transcript(&chat).await;
    assert_eq!(
        said,
        [
            "user one",
            "assistant first",
            "user two",
            "assistant second"
        ]
    );
    assert!(recover(&chat, &[&agent]).await.is_empty());
}

/// A queued run would end one that was interrupted before it, and answer behind one that waits.
#[tokio::test]
async fn a_queued_run_begins_behind_no_open_run() {
    let chat = chat().await;
    let other = Agent::new(
        "other",
        model([saying("late")]),
        contexture_compile::Target::openai_chat("gpt-4o"),
    );
    let interrupted = {
        let run = Run::begin(&chat, &other, [said("of another")]).await;
        run.unwrap().id()
    };
    queue(&chat, "tester", "one").await;
    let mut tools = contexture_runs::ToolBox::new(Policy::default().ask("pay"));
    tool(&mut tools, "pay", || Ok("paid".into()));
    let mine = agent(&model([calling(&[("p", "pay", "{}")]), saying("never")]));
    let mine = mine.with_tools(tools).unwrap();
    // This worker has no agent for the run that was interrupted.
    assert!(recover(&chat, &[&mine]).await.is_empty());
    let ended = recover(&chat, &[&mine, &other]).await;
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[0].entry.run, interrupted.to_string());
    let waits = ended[1].outcome.as_ref().unwrap();
    assert!(matches!(waits.end, TurnEnd::Waiting { .. }), "{waits:?}");
    let behind = queue(&chat, "tester", "two").await;
    assert!(recover(&chat, &[&mine, &other]).await.is_empty());
    // The call is answered for the model, and what is queued goes on.
    cancel_run(&chat, waits.run, "not today").await.unwrap();
    let spoken = agent(&model([saying("spoken")]));
    let ended = recover(&chat, &[&spoken]).await;
    assert_eq!(ended[0].entry.run, behind.to_string());
    assert_eq!(ended[0].outcome.as_ref().unwrap().text, "spoken");
}

#[tokio::test]
async fn a_queued_run_that_is_cancelled_never_begins() {
    let chat = chat().await;
    let id = queue(&chat, "tester", "one").await;
    let entry = cancel_run(&chat, id, "changed my mind").await.unwrap();
    assert_eq!(entry.status, RunStatus::Aborted);
    assert_eq!(entry.reason.as_deref(), Some("changed my mind"));
    // Also while another run works on the branch.
    let model = model([saying("never")]);
    let agent = agent(&model);
    let working = Run::begin(&chat, &agent, [said("work")]).await.unwrap();
    let id = queue(&chat, "tester", "two").await;
    let entry = cancel_run(&chat, id, "too late").await.unwrap();
    assert_eq!(entry.status, RunStatus::Aborted);
    drop(working);
    assert!(Run::resume(&chat, id, &agent).await.is_err());
    let found = list_runs(chat.engine(), chat.owner(), None).await.unwrap();
    let found = found.iter().find(|run| run.run == id.to_string()).unwrap();
    assert_eq!(found.reason.as_deref(), Some("too late"));
    assert_eq!(transcript(&chat).await, ["user work"]);
    assert!(model.requests().is_empty());
}

/// Whichever call to the store fails while a queued run is taken up, its input is stored once and the model answers it once.
#[tokio::test(start_paused = true)]
async fn a_queued_run_begins_once_whatever_fails() {
    for fault in [InjectedFault::Before, InjectedFault::After] {
        for call in 1.. {
            let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let engine = Engine::new(Arc::clone(&inner));
            let chat = engine.conversation("c").open().await.unwrap();
            let id = queue(&chat, "tester", "one").await;
            let faulty = Arc::new(Faulty::failing_call(Arc::clone(&inner), call, fault));
            // An answer that could not be stored is asked for again.
            let tester = agent(&model([saying("done"), saying("done")]));
            let failing = Engine::new(faulty.clone());
            if let Ok(chat) = failing.conversation("c").open().await
                && let Ok(mut run) = Run::resume(&chat, id, &tester).await
            {
                drop(run.drive().await);
            }
            drop(failing);
            // Another process, with a store that works. It waits until the claim of the first one is void.
            let agent_of = |name: &str| (name == "tester").then(|| tester.clone());
            let taken_up = recover_runs(&engine, chat.owner(), agent_of).await;
            // The entry of a run that had ended is corrected, and its second end refused.
            drop(taken_up.unwrap());
            let context = format!("call {call}, {fault:?}");
            assert_eq!(
                transcript(&chat).await,
                ["user one", "assistant done"],
                "{context}"
            );
            let entry = list_runs(&engine, chat.owner(), None).await.unwrap();
            assert_eq!(entry[0].status, RunStatus::Completed, "{context}");
            if faulty.fault_count() == 0 {
                break;
            }
        }
    }
}

#[tokio::test]
async fn pages_of_runs_are_the_list_in_any_length() {
    let chat = chat().await;
    let engine = chat.engine();
    for name in ["ann", "bob", "ann", "bob", "ann"] {
        let other = engine.conversation(name).open().await.unwrap();
        queue_run(&other, engine.new_run_id(), name, [said("go")])
            .await
            .unwrap();
    }
    let tester = agent(&model([saying("done")]));
    run_turn_with_text(&chat, &tester, "go").await.unwrap();
    let all = list_runs(engine, chat.owner(), None).await.unwrap();
    assert_eq!(all.len(), 6);
    for limit in 1..=7 {
        let mut query = RunQuery {
            limit: Some(limit),
            ..RunQuery::default()
        };
        let mut listed = Vec::new();
        loop {
            let page = list_runs_with(engine, chat.owner(), &query).await.unwrap();
            assert!(page.runs.len() <= limit);
            listed.extend(page.runs);
            // A run that begins meanwhile is on no page behind the cursor.
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        assert_eq!(listed, all, "pages of {limit}");
    }
    let of = async |query: RunQuery| {
        let page = list_runs_with(engine, chat.owner(), &query).await.unwrap();
        page.runs.len()
    };
    let queued = vec![RunStatus::Queued];
    let conversation = Some(contexture_ir::ConversationId::new("bob").unwrap());
    assert_eq!(
        of(RunQuery {
            statuses: queued.clone(),
            ..RunQuery::default()
        })
        .await,
        5
    );
    assert_eq!(
        of(RunQuery {
            agent: Some("ann".to_owned()),
            ..RunQuery::default()
        })
        .await,
        3
    );
    assert_eq!(
        of(RunQuery {
            statuses: queued,
            conversation,
            ..RunQuery::default()
        })
        .await,
        2
    );
}

/// What another program drives is no reason to keep what nobody wants any more.
#[tokio::test]
async fn a_queued_run_behind_a_driven_one_is_cancelled_at_once() {
    let chat = chat().await;
    let agent = agent(&model([saying("first"), saying("never")]));
    let driven = Run::begin(&chat, &agent, [said("one")]).await.unwrap();
    let queued = queue(&chat, "tester", "two").await;
    let entry = cancel_run(&chat, queued, "nobody wants it").await.unwrap();
    assert_eq!(entry.status, RunStatus::Aborted);
    drop(driven);
    let ended = recover(&chat, &[&agent]).await;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(transcript(&chat).await, ["user one", "assistant first"]);
}

/// Also where it is resumed by its id: nobody has seen yet that the other was interrupted.
#[tokio::test]
async fn a_queued_run_ends_none_that_was_interrupted() {
    let chat = chat().await;
    let agent = agent(&model([saying("first"), saying("second")]));
    let interrupted = Run::begin(&chat, &agent, [said("one")]).await.unwrap().id();
    let queued = queue(&chat, "tester", "two").await;
    let refused = Run::resume(&chat, queued, &agent).await.unwrap_err();
    assert!(
        matches!(&refused, RunError::Unfinished { run, .. } if *run == interrupted),
        "{refused:?}"
    );
    let ended = recover(&chat, &[&agent]).await;
    assert!(ended.iter().all(|run| run.outcome.is_ok()), "{ended:?}");
    let said = transcript(&chat).await;
    assert_eq!(
        said,
        [
            "user one",
            "assistant first",
            "user two",
            "assistant second"
        ]
    );
}
