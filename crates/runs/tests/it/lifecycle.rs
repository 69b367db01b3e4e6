//! A run from its beginning to its end: what it is told, what can be asked of it, and that nothing happens behind its end.

use std::sync::Arc;
use std::time::Duration;

use contexture_compile::Target;
use contexture_engine::Engine;
use contexture_ir::{Item, Message, Role, hint, role};
use contexture_models::ScriptedModel;
use contexture_runs::{Abort, AgentError};
use contexture_runs::{
    Agent, Channel, ChannelError, ChildHistory, Run, RunError, RunStatus, SubAgent, WaitTimeout,
    run_turn_with_text,
};
use contexture_store::{PathEnd, StateRequest};
use contexture_store_sqlite::SqliteStore;

use crate::test_support::{agent, calling, chat, model, saying};

fn said(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

/// What the model was asked, one payload a line.
fn asked(model: &Arc<ScriptedModel>) -> Vec<String> {
    model
        .requests()
        .into_iter()
        .map(|request| request.payload)
        .collect()
}

#[tokio::test]
async fn each_agent_has_its_own_instructions_from_the_first_turn_on() {
    let chat = chat().await;
    chat.set([hint("The shop is closed on Sundays.")]).unwrap();
    let own = |name: &str, model: &Arc<ScriptedModel>| {
        Agent::new(name, model.clone(), Target::openai_chat("gpt-4o"))
            .with_instructions([role(format!("You are the {name}."))])
            .unwrap()
    };
    let clerk = model([saying("clerk says")]);
    let fork = model([saying("fork says"), saying("fork says again")]);
    let plain = model([saying("plain says")]);
    let desk = model([
        calling(&[
            ("c1", "clerk", r#"{"task":"t1"}"#),
            ("c2", "fork", r#"{"task":"t2"}"#),
            ("c3", "plain", r#"{"task":"t3"}"#),
        ]),
        saying("one"),
        calling(&[("c4", "fork", r#"{"task":"t4"}"#)]),
        saying("two"),
    ]);
    let forked = |agent: Agent| SubAgent::new(agent, "Works.").with_history(ChildHistory::Forked);
    let desk_agent = own("desk", &desk)
        .with_sub_agent("clerk", SubAgent::new(own("clerk", &clerk), "Works."))
        .and_then(|desk| desk.with_sub_agent("fork", forked(own("fork", &fork))))
        .and_then(|desk| desk.with_sub_agent("plain", forked(agent(&plain))))
        .unwrap();
    run_turn_with_text(&chat, &desk_agent, "go").await.unwrap();
    run_turn_with_text(&chat, &desk_agent, "go on")
        .await
        .unwrap();
    let shop = "closed on Sundays";
    for (who, model, shares) in [
        ("desk", &desk, true),
        ("clerk", &clerk, false),
        // What the conversation says is seen by a fork before any answer has stored it.
        ("fork", &fork, true),
    ] {
        let payloads = asked(model);
        assert!(!payloads.is_empty());
        for payload in payloads {
            for other in ["desk", "clerk", "fork"] {
                let told = payload.contains(&format!("You are the {other}."));
                assert_eq!(told, other == who, "{who}: {payload}");
            }
            assert_eq!(payload.contains(shop), shares, "{who}: {payload}");
        }
    }
    let plain = &asked(&plain)[0];
    assert!(!plain.contains("You are the"), "{plain}");
    assert!(plain.contains(shop), "{plain}");
}

#[test]
fn instructions_are_no_messages() {
    let refused = agent(&model([])).with_instructions([contexture_ir::user("Hello")]);
    assert!(matches!(refused, Err(AgentError::NotInstructions { .. })));
}

#[tokio::test]
async fn nothing_happens_behind_the_end() {
    let chat = chat().await;
    let agent = agent(&model([saying("Done."), saying("Never said.")]));
    let mut run = Run::begin(&chat, &agent, [said("Go.")]).await.unwrap();
    assert_eq!(run.status(), RunStatus::Running);
    run.drive().await.unwrap();
    assert_eq!((run.status(), run.value()), (RunStatus::Completed, None));
    let head = chat.head().await.unwrap();
    let mut worked = false;
    let late = run.run_durable_step("late", || {
        worked = true;
        async { Ok::<_, std::io::Error>(1) }
    });
    let late = late.await.unwrap_err();
    assert!(matches!(late, RunError::Ended { .. }), "{late:?}");
    assert!(!worked);
    for late in [
        run.drive().await.map(drop).unwrap_err(),
        run.store_state(&1).await.unwrap_err(),
        run.load_state::<u8>().await.map(drop).unwrap_err(),
        run.complete_with_value(&1).await.unwrap_err(),
    ] {
        assert!(matches!(late, RunError::Ended { .. }), "{late:?}");
        assert!(late.to_string().contains("completed"), "{late}");
    }
    assert_eq!(chat.head().await.unwrap(), head);
    let request = StateRequest::all_entries(PathEnd::Branch(chat.branch()));
    let store = chat.engine().store();
    let state = store
        .read_state(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    assert!(
        state
            .root
            .keys()
            .all(|key| !key.as_str().starts_with("run/")),
        "{:?}",
        state.root
    );
}

#[tokio::test]
async fn behind_the_final_value_the_program_begins_nothing_new() {
    let chat = chat().await;
    let agent = agent(&model([]));
    let mut run = Run::begin(&chat, &agent, [said("Go.")]).await.unwrap();
    let id = run.id();
    let step = |n: i32| move || async move { Ok::<_, std::io::Error>(n) };
    run.run_durable_step("work", step(1)).await.unwrap();
    run.complete_with_value(&"found").await.unwrap();
    assert_eq!(run.value().unwrap().get(), "\"found\"");
    let more = run.run_durable_step("work", step(2)).await.unwrap_err();
    assert!(matches!(more, RunError::Ended { .. }), "{more:?}");
    drop(run);
    // The program runs again from its beginning: what it had it gets.
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    assert_eq!(run.run_durable_step("work", step(9)).await.unwrap(), 1);
    let more = run.run_durable_step("work", step(2)).await.unwrap_err();
    assert!(matches!(more, RunError::Ended { .. }), "{more:?}");
    assert_eq!(run.drive().await.unwrap().value.unwrap().get(), "\"found\"");
}

#[tokio::test]
async fn an_abort_of_the_run_ends_waits_on_its_channels() {
    let chat = chat().await;
    let agent = agent(&model([]));
    let mut run = Run::begin(&chat, &agent, [said("Go.")]).await.unwrap();
    let handle = run.handle();
    assert_eq!(handle.abort_reason(), None);
    let jobs = Channel::<u8>::queue("jobs");
    let (channels, own) = (handle.channels().clone(), Abort::new());
    let wait = channels.recv(&jobs, WaitTimeout::ForEver, &own);
    let abort = async { handle.abort("the user left") };
    let (waited, ()) = tokio::join!(wait, abort);
    match waited {
        Err(ChannelError::Cancelled(cancelled)) => assert_eq!(&*cancelled.reason, "the user left"),
        waited => unreachable!("{waited:?}"),
    }
    assert_eq!(&*handle.abort_reason().unwrap().reason, "the user left");
    assert!(handle.abort_signal().ensure_not_aborted().is_err());
    assert!(run.drive().await.is_err());
    assert_eq!(run.status(), RunStatus::Aborted);
}

#[tokio::test]
async fn a_step_reads_and_writes_as_much_however_many_were_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path().join("steps.db")).unwrap());
    let chat = Engine::new(store).conversation("c").open().await.unwrap();
    let agent = agent(&model([]));
    let mut run = Run::begin(&chat, &agent, [said("Go.")]).await.unwrap();
    let steps = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 10_000,
        None => 300,
    };
    for n in 0..steps {
        let work = move || async move { Ok::<_, std::io::Error>(n) };
        assert_eq!(run.run_durable_step("count", work).await.unwrap(), n);
    }
    // No entry of state is added by a step, so no step reads those of the others.
    let request = StateRequest::all_entries(PathEnd::Branch(chat.branch()));
    let store = chat.engine().store();
    let state = store
        .read_state(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    assert_eq!(state.root.len(), 1, "{:?}", state.root.keys());
    let id = run.id();
    drop(run);
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    for n in 0..steps {
        let never = || async { Err::<i32, _>(std::io::Error::other("it was run before")) };
        assert_eq!(run.run_durable_step("count", never).await.unwrap(), n);
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_names_its_step() {
    let chat = chat().await;
    let agent = agent(&model([]));
    let mut run = Run::begin(&chat, &agent, [said("Go.")]).await.unwrap();
    // More than a value of state may have, which results were before.
    let large = || async { Ok::<_, std::io::Error>("x".repeat(2 << 20)) };
    assert_eq!(
        run.run_durable_step("page", large).await.unwrap().len(),
        2 << 20
    );
    let huge = || async { Ok::<_, std::io::Error>("x".repeat(17 << 20)) };
    let refused = run.run_durable_step("book", huge).await.unwrap_err();
    assert!(refused.to_string().contains("\"book\""), "{refused}");
    // It can be done again, smaller.
    let small = || async { Ok::<_, std::io::Error>("x".to_owned()) };
    assert_eq!(run.run_durable_step("book", small).await.unwrap(), "x");
    tokio::time::timeout(Duration::from_secs(60), run.complete_with_value(&1))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn what_is_set_on_the_handle_is_said_before_and_after_a_wait() {
    let chat = chat().await;
    chat.update_call_context(|context| context.set_context("open_file", "src/main.rs"));
    chat.set([hint("Be brief.").transient()]).unwrap();
    let model = model([calling(&[("a", "asked", "{}")]), saying("Done.")]);
    let mut tools = contexture_runs::ToolBox::new(contexture_tools::Policy::default().ask("asked"));
    crate::test_support::tool(&mut tools, "asked", || Ok("ran".into()));
    let agent = agent(&model).with_tools(tools).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Go.").await.unwrap();
    let contexture_runs::TurnEnd::Waiting { calls } = &turn.end else {
        unreachable!("{turn:?}");
    };
    let allow = contexture_runs::ApprovalDecision::Allow;
    contexture_runs::store_decision(&chat, turn.run, calls[0], allow)
        .await
        .unwrap();
    let mut run = Run::resume(&chat, turn.run, &agent).await.unwrap();
    assert_eq!(run.drive().await.unwrap().text, "Done.");
    for payload in asked(&model) {
        assert!(payload.contains("src/main.rs"), "{payload}");
        assert!(payload.contains("Be brief."), "{payload}");
    }
}

/// The usage of a conversation is kept without being asked for: over its turns, and those of sub-agents in it.
#[tokio::test]
async fn a_conversation_knows_what_its_turns_used() {
    let chat = chat().await;
    let below = model([saying("found")]);
    let above = model([
        calling(&[("c", "find", r#"{"task":"t"}"#)]),
        saying("first"),
        saying("second"),
    ]);
    let below = contexture_runs::SubAgent::new(agent(&below), "Finds.");
    let above = agent(&above).with_sub_agent("find", below).unwrap();
    let first = run_turn_with_text(&chat, &above, "one").await.unwrap();
    let second = run_turn_with_text(&chat, &above, "two").await.unwrap();
    let sum = chat.usage().await.unwrap();
    let of_turns = [first.usage, second.usage];
    let input: u64 = of_turns.iter().filter_map(|one| one.tokens.input).sum();
    let cost: u128 = of_turns
        .iter()
        .filter_map(|one| one.cost)
        .map(contexture_runs::Money::pico_dollars)
        .sum();
    assert_eq!(
        (sum.calls, sum.input_tokens, sum.pico_dollars),
        (4, input, cost)
    );
    assert_eq!(input, 40);
}

/// A checkpoint has the run's own state, which a run on the restored branch begins with; of the other run nothing else is left there.
#[tokio::test]
async fn a_restored_checkpoint_restores_the_runs_own_state() {
    let chat = chat().await;
    let agent = agent(&model([saying("one"), saying("two")]));
    let mut run = Run::begin(&chat, &agent, [said("go")]).await.unwrap();
    run.store_state(&"early").await.unwrap();
    run.checkpoint("early").await.unwrap();
    run.store_state(&"late").await.unwrap();
    run.drive().await.unwrap();
    let restored = chat.restore("early").await.unwrap();
    let restored = chat.for_branch(restored.name);
    let again = Run::begin(&restored, &agent, [said("again")])
        .await
        .unwrap();
    assert_eq!(
        again.load_state::<String>().await.unwrap().as_deref(),
        Some("early")
    );
    let request = StateRequest {
        prefix: contexture_engine::run_prefix(run.id()),
        ..StateRequest::all_entries(PathEnd::Branch(restored.branch()))
    };
    let store = restored.engine().store();
    let state = store
        .read_state(restored.owner(), restored.id(), request)
        .await
        .unwrap();
    assert!(state.root.is_empty(), "{:?}", state.root.keys());
    // A run of the branch itself begins anew.
    let mut again = again;
    again.drive().await.unwrap();
    let next = Run::begin(&restored, &agent, [said("next")]).await.unwrap();
    assert_eq!(next.load_state::<String>().await.unwrap(), None);
}
