//! Faults that programs around models are known for, each brought about on a whole engine.
//!
//! The table of all of them is docs/behaviour/compile-lessons.md. Not here: compactions (`compaction`), links (`offload`).

use contexture_compile::Target;
use contexture_engine::CompactOptions;
use contexture_ir::{
    FunctionCall, FunctionCallOutput, Message, Output, Raw, Role, UiMessage, UiRole, assistant,
};
use contexture_store::{PathEnd, ReadRequest};

use crate::support::{asks, branches, chat, engine};

fn target() -> Target {
    Target::openai_chat("gpt-4o").window(6_000).reserve(500)
}

/// Calls that are compiled at the same time are the same call: compiling moves no counter and no clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_side_by_side_are_the_same_call() {
    let chat = engine().conversation("c").open().await.unwrap();
    for at in 0..40 {
        let text = format!("question {at} {}", "word ".repeat(100));
        chat.save([asks(&format!("u{at}"), &text)]).await.unwrap();
    }
    let alone = chat.compile(&target()).await.unwrap();
    let calls = (0..8).map(|_| {
        let chat = chat.clone();
        tokio::spawn(async move { chat.compile(&target()).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        let call = call.await.unwrap();
        assert_eq!(call.payload.to_json(), alone.payload.to_json());
        assert_eq!(call.report, alone.report);
    }
}

/// A call of the same id with other arguments is an edit: the branch that is left keeps the old ones, and the new ones
/// are sent.
#[tokio::test]
async fn edited_arguments_are_an_edit() {
    let chat = chat().await;
    let call = |path: &str| {
        let part = format!(
            r#"{{"type":"tool-look","toolCallId":"t1","state":"output-available","input":{{"path":"{path}"}},"output":"found"}}"#
        );
        assistant(UiMessage {
            id: "a1".to_owned(),
            role: UiRole::Assistant,
            metadata: None,
            extra: contexture_ir::Extra::new(),
            parts: vec![Raw::parse(part).unwrap()],
        })
    };
    chat.save([asks("u1", "look"), call("/old")]).await.unwrap();
    let edited = chat.save([call("/new")]).await.unwrap();
    assert!(edited.opened_branch, "{:?}", branches(&chat).await);
    let said = chat.compile(&target()).await.unwrap().payload.to_json();
    assert!(said.contains("/new") && !said.contains("/old"), "{said}");
}

/// A host's words in the midst of a history, and a pinned message, are there after a compaction as before.
#[tokio::test]
async fn a_compaction_leaves_pins_and_the_hosts_words() {
    let chat = chat().await;
    let mut draft = chat.draft();
    draft.push_item(Message::text(Role::User, "Refund my order."));
    for round in 0..12 {
        let id = format!("call-{round}");
        draft.push_item(FunctionCall::new(&id, "read", "{}"));
        let text = format!("R{round} {}", "All of this is said at length. ".repeat(20));
        draft.push_item(FunctionCallOutput::new(&id, Output::Text(text)));
        if round == 1 {
            draft.push_item(Message::text(Role::System, "The shop closes at noon."));
        }
        if round == 2 {
            draft.push_item(Message::text(Role::User, "Call me Ada, always: R2D2X99."));
        }
    }
    draft.commit().await.unwrap();
    let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let store = chat.engine().store();
    let page = store
        .read_path(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    let asked = page.nodes.iter().find(|node| node.json.contains("Call me"));
    chat.pin(asked.unwrap().id).await.unwrap();
    let compacted = chat
        .compact(&target(), &CompactOptions::default())
        .await
        .unwrap();
    assert_eq!(compacted.draft.items, 8, "{:?}", compacted.draft);
    let said = chat.compile(&target()).await.unwrap().payload.to_json();
    for stays in [
        "Refund my order.",
        "The shop closes at noon.",
        "Call me Ada, always: R2D2X99.",
    ] {
        assert_eq!(said.matches(stays).count(), 1, "{stays}: {said}");
    }
    // Of what stays in view the manifest says nothing.
    let manifest = compacted.draft.summary.concat();
    assert!(
        !manifest.contains("R2D2X99") && !manifest.contains("Ada"),
        "{manifest}"
    );
    assert!(!manifest.contains("noon"), "{manifest}");
    assert!(said.contains("Earlier here"), "{said}");
}
