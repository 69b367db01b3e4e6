//! One rule for what a draft shows and what it stores, the branch a draft belongs to, and items that are known again.

use contexture_engine::{Conversation, EngineError, MessageView};
use contexture_ir::{
    Fragment, FunctionCall, FunctionCallOutput, Item, Message, Output, Role, UiMessage, UiRole,
    last_assistant_message, user,
};
use proptest::prelude::*;

use crate::support::{answers, asks, branches, chat, engine, ids, says, texts};

/// One thing that a program may do to a draft.
#[derive(Clone, Debug)]
enum Step {
    Message(&'static str, UiRole, &'static str),
    LastAnswer(&'static str),
    Item(Option<&'static str>, &'static str),
    Call(&'static str),
    Output(&'static str, &'static str),
}

fn any_step() -> impl Strategy<Value = Step> {
    let text = prop::sample::select(vec!["one", "two", "three"]);
    let id = prop::sample::select(vec!["", "a", "b", "c"]);
    let role = prop_oneof![6 => Just(None), 1 => Just(Some(UiRole::User))];
    let call = prop::sample::select(vec!["call_1", "call_2"]);
    prop_oneof![
        6 => (id, role, text.clone()).prop_map(|(id, role, text)| {
            // Mostly one role for each id, so that most drafts are legal.
            let own = if id == "b" { UiRole::User } else { UiRole::Assistant };
            Step::Message(id, role.unwrap_or(own), text)
        }),
        1 => text.clone().prop_map(Step::LastAnswer),
        1 => (prop::option::of(Just("msg_1")), text.clone()).prop_map(|(id, text)| Step::Item(id, text)),
        1 => call.clone().prop_map(Step::Call),
        1 => (call, text).prop_map(|(call, text)| Step::Output(call, text)),
    ]
}

fn stage(draft: &mut contexture_engine::Draft, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Message(id, role, text) => draft.push(says(id, role, text)),
            Step::LastAnswer(text) => draft.push(last_assistant_message(text)),
            Step::Item(id, text) => {
                let mut message = Message::text(Role::Assistant, text);
                message.id = id.map(str::to_owned);
                draft.push_item(message);
            }
            Step::Call(id) => draft.push_item(FunctionCall::new(id, "look", "{}")),
            Step::Output(id, text) => {
                let output = Output::Text(text.to_owned());
                draft.push_item(FunctionCallOutput::new(id, output));
            }
        }
    }
}

/// Commits drafts one after the other; each must leave what it had shown.
async fn check_drafts(drafts: &[Vec<Step>]) -> Result<(), TestCaseError> {
    let chat = chat().await;
    for steps in drafts {
        let mut draft = chat.draft();
        stage(&mut draft, steps);
        let shown = draft.resolve().await;
        let committed = draft.commit().await;
        match (shown, committed) {
            (Ok(shown), Ok(committed)) => {
                let stored = chat.resolve().await.unwrap();
                prop_assert_eq!(&shown, &stored);
                check_committed(&chat, &committed).await?;
            }
            (Err(shown), Err(stored)) => prop_assert_eq!(shown.kind(), stored.kind()),
            (shown, stored) => prop_assert!(false, "{:?} and {:?}", shown, stored),
        }
        let listed = ids(&chat).await;
        let mut once = listed.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(listed.len(), once.len());
    }
    Ok(())
}

/// Every id that a commit names is on its branch, and no id that it replaced is.
async fn check_committed(
    chat: &Conversation,
    committed: &contexture_engine::Committed,
) -> Result<(), TestCaseError> {
    let on_branch = chat.messages(MessageView::Model).await.unwrap();
    let on_branch: Vec<&str> = on_branch
        .iter()
        .map(|message| message.id.as_str())
        .collect();
    for new in committed.edited.values() {
        prop_assert!(on_branch.contains(&new.as_str()), "{} is missing", new);
        prop_assert!(committed.messages.contains(new));
    }
    for old in committed.edited.keys() {
        prop_assert!(!on_branch.contains(&old.as_str()), "{} is still there", old);
    }
    prop_assert_eq!(committed.opened_branch, !committed.edited.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn draft_shows_what_its_commit_stores(
        drafts in prop::collection::vec(prop::collection::vec(any_step(), 0..6), 1..4)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_drafts(&drafts))?;
    }
}

/// What a draft of these messages shows and stores, as id, role and text.
async fn shown_and_stored(pushed: Vec<Fragment>) -> Result<Vec<String>, EngineError> {
    let chat = chat().await;
    let mut draft = chat.draft();
    for message in pushed {
        draft.push(message);
    }
    let told = |messages: &[UiMessage]| -> Vec<String> {
        let tell =
            |one: &UiMessage| format!("{} {} {}", one.id, one.role.as_str(), one.joined_text());
        messages.iter().map(tell).collect()
    };
    let shown = draft
        .resolve()
        .await
        .map(|resolved| told(&resolved.messages));
    let committed = draft.commit().await;
    match committed {
        Ok(_) => {
            let stored = chat.messages(MessageView::Model).await?;
            assert_eq!(told(&stored), shown?);
            Ok(told(&stored))
        }
        Err(error) => {
            assert_eq!(shown.unwrap_err().to_string(), error.to_string());
            assert_eq!(chat.head().await?, None, "nothing is stored");
            Err(error)
        }
    }
}

#[tokio::test]
async fn last_of_equal_ids_counts_and_roles_never_mix() {
    let grown = vec![
        answers("d", "streaming"),
        asks("u", "wait"),
        answers("d", "streaming done"),
    ];
    let told = shown_and_stored(grown).await.unwrap();
    assert_eq!(told, ["d assistant streaming done", "u user wait"]);
    let mixed = vec![asks("d", "question"), answers("d", "answer")];
    let error = shown_and_stored(mixed).await.unwrap_err();
    assert_eq!(error.kind(), "other_role");
    assert_eq!(
        error.to_string(),
        "message \"d\" is staged as user and as assistant: give one of them another id"
    );
}

#[tokio::test]
async fn pending_messages_have_the_ids_they_get() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    let mut draft = chat.draft();
    draft.push(answers("a1", "B"));
    draft.push(user("one"));
    draft.push(user("never stored").transient());
    draft.push(user("two"));
    let shown = draft.resolve().await.unwrap().messages;
    let committed = draft.commit().await.unwrap();
    let persistent: Vec<&str> = shown
        .iter()
        .filter(|message| message.joined_text() != "never stored")
        .map(|message| message.id.as_str())
        .collect();
    let stored: Vec<&str> = committed.messages.iter().map(|id| id.as_str()).collect();
    assert_eq!(persistent[1..], stored);
    let edited: Vec<_> = committed.edited.iter().collect();
    assert_eq!(edited.len(), 1);
    assert_eq!(
        (edited[0].0.as_str(), edited[0].1),
        ("a1", &committed.messages[0])
    );
}

#[tokio::test]
async fn edit_keeps_what_stands_before_it_once() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    // Staged behind the edit, but it is on the new branch already.
    chat.save([answers("a1", "B"), asks("u1", "a")])
        .await
        .unwrap();
    assert_eq!(texts(&chat).await, ["a", "B"]);
}

#[tokio::test]
async fn draft_stays_on_the_branch_it_was_made_on() {
    type Move = fn(&Conversation) -> futures_util::future::BoxFuture<'_, ()>;
    let moves: [Move; 4] = [
        |chat| Box::pin(async { drop(chat.rewind("u1").await.unwrap()) }),
        |chat| Box::pin(async { drop(chat.switch_branch("other").await.unwrap()) }),
        |chat| Box::pin(async { drop(chat.restore("start").await.unwrap()) }),
        |chat| Box::pin(async { drop(chat.clear().await.unwrap()) }),
    ];
    for go in moves {
        let chat = chat().await;
        chat.save([asks("u1", "a")]).await.unwrap();
        chat.checkpoint("start").await.unwrap();
        chat.create_branch("other").await.unwrap();
        chat.save([answers("a1", "b")]).await.unwrap();
        let mut draft = chat.draft();
        draft.push(last_assistant_message("B"));
        draft.push(asks("u2", "c"));
        go(&chat).await;
        let (branch, before) = (chat.branch(), texts(&chat).await);
        let shown = draft.resolve().await.unwrap().messages;
        let shown: Vec<String> = shown.iter().map(UiMessage::joined_text).collect();
        assert_eq!(shown, ["a", "B", "c"]);
        let committed = draft.commit().await.unwrap();
        assert_eq!((chat.branch(), texts(&chat).await), (branch, before));
        assert_eq!(draft.branch(), &committed.branch);
        chat.switch_branch(committed.branch.as_str()).await.unwrap();
        assert_eq!(texts(&chat).await, ["a", "B", "c"]);
    }
}

fn told(id: Option<&str>, text: &str) -> Item {
    let mut message = Message::text(Role::Assistant, text);
    message.id = id.map(str::to_owned);
    message.into()
}

#[tokio::test]
async fn item_of_a_known_id_is_stored_once() {
    let engine = engine();
    let push = async |items: Vec<Item>| {
        // A new handle each time, as after a restart.
        let chat = engine.conversation("c").open().await.unwrap();
        let mut draft = chat.draft();
        items.into_iter().for_each(|item| draft.push_item(item));
        let shown = draft
            .resolve()
            .await
            .map(|resolved| resolved.messages.len());
        let committed = draft.commit().await;
        if let Ok(shown) = &shown {
            let stored = chat.messages(MessageView::Model).await.unwrap();
            assert_eq!(*shown, stored.len());
        }
        committed.map(|committed| committed.nodes.len())
    };
    assert_eq!(push(vec![told(Some("msg_1"), "a")]).await.unwrap(), 1);
    for _ in 0..3 {
        assert_eq!(push(vec![told(Some("msg_1"), "a")]).await.unwrap(), 0);
    }
    // In one draft as in several; without an id each is new.
    let both = vec![told(Some("msg_2"), "b"), told(Some("msg_2"), "b")];
    assert_eq!(push(both).await.unwrap(), 1);
    assert_eq!(
        push(vec![told(None, "b"), told(None, "b")]).await.unwrap(),
        2
    );
    for other in [
        vec![told(Some("msg_1"), "A")],
        vec![told(Some("msg_3"), "c"), told(Some("msg_3"), "C")],
    ] {
        let error = push(other).await.unwrap_err();
        assert_eq!(error.kind(), "item_conflict");
    }
    let chat = engine.conversation("c").open().await.unwrap();
    assert_eq!(texts(&chat).await, ["a", "b", "b", "b"]);
    assert_eq!(branches(&chat).await, ["main 4 *"]);
}

#[tokio::test]
async fn edit_replaces_known_items_of_its_message() {
    let chat = chat().await;
    let mut draft = chat.draft();
    draft.push_item(told(Some("msg_1"), "a"));
    draft.commit().await.unwrap();
    draft.push_item(told(Some("msg_1"), "a"));
    draft.push(last_assistant_message("A"));
    draft.commit().await.unwrap();
    assert_eq!(texts(&chat).await, ["A"]);
}

#[tokio::test]
async fn repeated_draft_stores_the_rest_under_the_same_ids() {
    let chat = chat().await;
    let save = async || {
        let mut draft = chat.draft();
        draft.set_idempotency_key([7; 16]);
        draft.push(asks("u1", "named"));
        draft.push(user("unnamed"));
        draft.commit().await.unwrap()
    };
    let first = save().await;
    // The outcome of the first was unknown; now the named message is there.
    let again = save().await;
    assert_eq!(first.messages, again.messages);
    assert_eq!(texts(&chat).await, ["named", "unnamed"]);
}
