//! Fragments of a handle over those of its path: what is set, added and removed, seen by every handle.

use contexture_compile::Target;
use contexture_engine::{Conversation, Engine};
use contexture_ir::{Fragment, hint, role, user};
use contexture_store::PathEnd;

use crate::support::{asks, engine};

async fn open(engine: &Engine) -> Conversation {
    engine.conversation("c").open().await.unwrap()
}

/// What the model reads, which every view of it must agree on.
async fn prompt(chat: &Conversation) -> String {
    let resolved = chat.resolve().await.unwrap().system_prompt;
    let rendered = chat.renderer();
    let listed = rendered.render(&chat.fragments().await.unwrap()).unwrap();
    assert_eq!(listed, resolved);
    let mut draft = chat.draft();
    draft.push(user("?"));
    assert_eq!(draft.resolve().await.unwrap().system_prompt, resolved);
    resolved
}

fn one() -> Fragment {
    hint("one").with_id("i1")
}

#[tokio::test]
async fn add_and_unset_change_the_list_of_the_path() {
    let engine = engine();
    let first = open(&engine).await;
    first.set([role("R"), one()]).unwrap();
    first.save([asks("u1", "hi")]).await.unwrap();

    let second = open(&engine).await;
    assert_eq!(prompt(&second).await, "<role>R</role>\n<hint>one</hint>");
    second.add([hint("two").with_id("i2")]).unwrap();
    let all = "<role>R</role>\n<hint>one</hint>\n<hint>two</hint>";
    assert_eq!(prompt(&second).await, all);
    // Nothing is stored before the next append.
    assert_eq!(
        prompt(&open(&engine).await).await,
        "<role>R</role>\n<hint>one</hint>"
    );
    second.save([asks("u2", "again")]).await.unwrap();
    assert_eq!(prompt(&open(&engine).await).await, all);
    // Stored once, however often the handle appends.
    second.save([asks("u3", "and again")]).await.unwrap();
    assert_eq!(prompt(&open(&engine).await).await, all);

    let third = open(&engine).await;
    assert_eq!(third.unset("i1").await.unwrap(), 1);
    assert_eq!(third.unset("i1").await.unwrap(), 0);
    assert_eq!(third.unset("unknown").await.unwrap(), 0);
    third.save([asks("u4", "less")]).await.unwrap();
    let left = "<role>R</role>\n<hint>two</hint>";
    assert_eq!(prompt(&third).await, left);
    assert_eq!(prompt(&open(&engine).await).await, left);
    // The list of that time comes back.
    third.rewind("u1").await.unwrap();
    assert_eq!(prompt(&third).await, "<role>R</role>\n<hint>one</hint>");
}

#[tokio::test]
async fn handles_that_add_at_once_lose_nothing() {
    let engine = engine();
    open(&engine).await.save([asks("u0", "hi")]).await.unwrap();
    let (left, right) = (open(&engine).await, open(&engine).await);
    left.add([hint("left")]).unwrap();
    right.add([hint("right")]).unwrap();
    left.save([asks("u1", "a")]).await.unwrap();
    right.save([asks("u2", "b")]).await.unwrap();
    let both = "<hint>left</hint>\n<hint>right</hint>";
    for chat in [left, right, open(&engine).await] {
        assert_eq!(prompt(&chat).await, both);
    }
}

#[tokio::test]
async fn set_replaces_and_what_does_not_persist_stays_with_the_handle() {
    let engine = engine();
    let chat = open(&engine).await;
    chat.add([hint("old"), hint("mine").with_id("m").transient()])
        .unwrap();
    chat.save([asks("u1", "a")]).await.unwrap();
    assert_eq!(prompt(&chat).await, "<hint>old</hint>\n<hint>mine</hint>");
    assert_eq!(prompt(&open(&engine).await).await, "<hint>old</hint>");
    assert_eq!(chat.unset("m").await.unwrap(), 1);
    chat.save([asks("u2", "b")]).await.unwrap();
    assert_eq!(prompt(&chat).await, "<hint>old</hint>");
    chat.set([hint("new")]).unwrap();
    assert_eq!(prompt(&chat).await, "<hint>new</hint>");
    chat.add([one()]).unwrap();
    assert_eq!(chat.unset("i1").await.unwrap(), 1);
    chat.save([asks("u3", "c")]).await.unwrap();
    assert_eq!(prompt(&open(&engine).await).await, "<hint>new</hint>");
}

#[tokio::test]
async fn answer_records_what_was_added() {
    let engine = engine();
    let chat = open(&engine).await;
    chat.set([role("R")]).unwrap();
    chat.save([asks("u1", "hi")]).await.unwrap();
    let later = open(&engine).await;
    later.add([one()]).unwrap();
    let call = later.compile(&Target::openai_chat("gpt-4o")).await.unwrap();
    assert!(call.payload.to_json().contains("one"));
    let body = contexture_models::text_response(contexture_wire::Format::OpenAiChat, "Hi.");
    for _ in 0..2 {
        later.record(&call, &body).await.unwrap();
    }
    assert_eq!(
        prompt(&open(&engine).await).await,
        "<role>R</role>\n<hint>one</hint>"
    );
    let answers = later
        .response_ids(PathEnd::Branch(later.branch()))
        .await
        .unwrap();
    assert!(later.replay(answers[0]).await.unwrap().is_equal());
}
