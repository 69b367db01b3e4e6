//! What is put into the inbox of a branch is taken in there, once.

use std::sync::Arc;

use contexture_engine::Conversation;
use contexture_ir::{Item, Message, Role, user};
use contexture_runs::{post_to_inbox, run_turn_with_text};
use contexture_store::{ExpectedVersion, KeyScope, ListEntries, PutEntry};

use crate::test_support::{agent, chat, model, saying, transcript};

fn said(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

/// A turn on the branch, and what it says behind.
async fn after_a_turn(chat: &Conversation) -> Vec<String> {
    let model = model([saying("Well.")]);
    run_turn_with_text(chat, &agent(&model), "Go.")
        .await
        .unwrap();
    transcript(chat).await
}

#[tokio::test]
async fn branches_have_inboxes_of_their_own_whatever_their_names() {
    let chat = chat().await;
    chat.save([user("Begin.")]).await.unwrap();
    let long = "x".repeat(250);
    let names = ["feature", "feature/x", &long];
    let mut branches = Vec::new();
    for name in names {
        let branch = chat.create_branch(name).await.unwrap();
        let branch = chat.for_branch(branch.name);
        post_to_inbox(&branch, &said(&format!("For {name}.")))
            .await
            .unwrap();
        branches.push(branch);
    }
    for (name, branch) in names.iter().zip(&branches) {
        let said = after_a_turn(branch).await;
        let mine = format!("user For {name}.");
        assert_eq!(said[1..], ["user Go.", &mine, "assistant Well."]);
    }
}

#[tokio::test]
async fn what_was_taken_in_is_not_taken_in_by_the_next_run() {
    let chat = chat().await;
    post_to_inbox(&chat, &said("Hello too.")).await.unwrap();
    let (store, owner) = (Arc::clone(chat.engine().store()), chat.owner());
    let scope = KeyScope::Conversation(chat.id().clone());
    let list = ListEntries::in_scope(scope.clone(), "inbox/".to_owned());
    let posted = store.list_entries(owner, list).await.unwrap().entries;
    let said = after_a_turn(&chat).await;
    assert_eq!(said, ["user Go.", "user Hello too.", "assistant Well."]);
    // As if the process had died before it took it out of the inbox.
    for (_, entry) in posted {
        let put = PutEntry {
            key: entry.key,
            value: Some(entry.value),
            expect: ExpectedVersion::Absent,
            at_ms: 1_000,
        };
        store.put_entry(owner, &scope, put).await.unwrap();
    }
    let said = after_a_turn(&chat).await;
    assert_eq!(said[3..], ["user Go.", "assistant Well."]);
}
