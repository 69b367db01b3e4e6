//! An engine whose clock and ids are the same in every run, and ways to look at it.

use std::path::Path;
use std::sync::Arc;

use contexture_engine::{Conversation, Engine, MessageView, TestClock, TestIds};
use contexture_ir::{Fragment, UiMessage, UiRole, assistant, text_part, user};
use contexture_store_sqlite::SqliteStore;

pub(crate) fn engine() -> Engine {
    Engine::in_memory()
        .with_clock(TestClock::new(1_000))
        .with_ids(TestIds::default())
}

/// An engine over a SQLite file, which is created if absent.
pub(crate) fn open_file(path: &Path) -> Engine {
    Engine::new(Arc::new(SqliteStore::open(path).unwrap()))
}

pub(crate) async fn chat() -> Conversation {
    engine().conversation("c").open().await.unwrap()
}

/// A message of one text part with an id.
pub(crate) fn says(id: &str, role: UiRole, text: &str) -> Fragment {
    let message = UiMessage {
        id: id.to_owned(),
        role,
        metadata: None,
        extra: contexture_ir::Extra::new(),
        parts: vec![text_part(text)],
    };
    if role == UiRole::User {
        user(message)
    } else {
        assistant(message)
    }
}

pub(crate) fn asks(id: &str, text: &str) -> Fragment {
    says(id, UiRole::User, text)
}

pub(crate) fn answers(id: &str, text: &str) -> Fragment {
    says(id, UiRole::Assistant, text)
}

/// The texts on the handle's branch.
pub(crate) async fn texts(chat: &Conversation) -> Vec<String> {
    let messages = chat.messages(MessageView::User).await.unwrap();
    messages.iter().map(UiMessage::joined_text).collect()
}

/// The ids on the handle's branch.
pub(crate) async fn ids(chat: &Conversation) -> Vec<String> {
    chat.messages(MessageView::User)
        .await
        .unwrap()
        .into_iter()
        .map(|message| message.id)
        .collect()
}

/// Names and message counts of the branches, the active one marked.
pub(crate) async fn branches(chat: &Conversation) -> Vec<String> {
    let refs = chat.refs().await.unwrap();
    let show = |branch: &contexture_store::Branch| {
        let mark = if branch.active { " *" } else { "" };
        format!("{} {}{mark}", branch.name, branch.messages)
    };
    refs.branches.iter().map(show).collect()
}
