//! Saving: what is new, the same, grown, edited.

use contexture_engine::EngineError;
use contexture_ir::{
    FunctionCall, FunctionCallOutput, Item, Output, Owner, Raw, UiMessage, UiRole, assistant, hint,
    last_assistant_message, role, user,
};
use contexture_store::{PathEnd, ReadRequest};

use crate::support::{answers, asks, branches, chat, engine, ids, texts};

#[tokio::test]
async fn a_draft_is_stored_once() {
    let chat = chat().await;
    let mut draft = chat.draft();
    assert!(draft.is_empty());
    draft.push(user("hello"));
    let committed = draft.commit().await.unwrap();
    assert_eq!((committed.nodes.len(), committed.opened_branch), (1, false));
    assert_eq!(chat.head().await.unwrap(), committed.head);
    assert_eq!(draft.commit().await.unwrap().nodes, []);
    assert_eq!(texts(&chat).await, ["hello"]);
}

#[tokio::test]
async fn saving_the_same_again_changes_nothing() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    let before = chat.head().await.unwrap();
    let again = chat
        .save([asks("u1", "a"), answers("a1", "b"), asks("u2", "c")])
        .await
        .unwrap();
    assert_eq!((again.nodes.len(), again.opened_branch), (1, false));
    assert_ne!(chat.head().await.unwrap(), before);
    assert_eq!(ids(&chat).await, ["u1", "a1", "u2"]);
    let same = chat
        .save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    assert_eq!(same.nodes, []);
    assert_eq!(branches(&chat).await, ["main 3 *"]);
}

#[tokio::test]
async fn an_edit_opens_a_branch_and_keeps_the_original() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b"), asks("u2", "c")])
        .await
        .unwrap();
    let edit = chat.save([answers("a1", "B")]).await.unwrap();
    assert!(edit.opened_branch);
    assert_eq!(texts(&chat).await, ["a", "B"]);
    assert_eq!(ids(&chat).await.first().unwrap(), "u1");
    assert_ne!(ids(&chat).await.get(1).unwrap(), "a1");
    assert_eq!(branches(&chat).await, ["main 3", "main-v2 2 *"]);
    chat.switch_branch("main").await.unwrap();
    assert_eq!(texts(&chat).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn the_first_message_can_be_edited_too() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    assert!(chat.save([asks("u1", "A")]).await.unwrap().opened_branch);
    assert_eq!(texts(&chat).await, ["A"]);
    assert_eq!(branches(&chat).await, ["main 2", "main-v2 1 *"]);
}

#[tokio::test]
async fn what_follows_an_edit_is_copied() {
    let chat = chat().await;
    let stored = [
        asks("u1", "a"),
        answers("a1", "b"),
        asks("u2", "c"),
        answers("a2", "d"),
    ];
    chat.save(stored).await.unwrap();
    chat.save([answers("a1", "B"), asks("u2", "c"), answers("a2", "D")])
        .await
        .unwrap();
    assert_eq!(texts(&chat).await, ["a", "B", "c", "D"]);
    assert_eq!(ids(&chat).await.get(2).unwrap(), "u2");
    assert_eq!(branches(&chat).await, ["main 4", "main-v2 4 *"]);
    let tree = chat.tree().await.unwrap();
    assert_eq!(tree.nodes.len(), 7);
}

#[tokio::test]
async fn what_is_new_before_an_edit_goes_before_it() {
    let chat = chat().await;
    chat.save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    chat.save([asks("n", "new"), answers("a1", "B")])
        .await
        .unwrap();
    assert_eq!(texts(&chat).await, ["a", "new", "B"]);
}

#[tokio::test]
async fn a_message_that_grew_gets_its_new_items() {
    let chat = chat().await;
    let call = |state: &str| {
        let part = format!(
            r#"{{"type":"tool-look","toolCallId":"t1","state":{state},"input":{{"q":1}}}}"#
        );
        assistant(UiMessage {
            id: "a1".to_owned(),
            role: UiRole::Assistant,
            metadata: None,
            extra: contexture_ir::Extra::new(),
            parts: vec![Raw::parse(part).unwrap()],
        })
    };
    chat.save([asks("u1", "a"), call(r#""input-available""#)])
        .await
        .unwrap();
    let grown = chat
        .save([call(r#""output-available","output":"found""#)])
        .await
        .unwrap();
    assert_eq!((grown.nodes.len(), grown.opened_branch), (1, false));
    assert_eq!(branches(&chat).await, ["main 2 *"]);
    let messages = chat
        .messages(contexture_engine::MessageView::User)
        .await
        .unwrap();
    assert!(
        messages
            .get(1)
            .unwrap()
            .parts
            .first()
            .unwrap()
            .get()
            .contains("output-available")
    );
}

#[tokio::test]
async fn an_output_finds_its_stored_call() {
    let chat = chat().await;
    let call = Raw::parse(
        r#"{"type":"tool-look","toolCallId":"t1","state":"input-available","input":{}}"#,
    );
    let message = UiMessage {
        id: "a1".to_owned(),
        role: UiRole::Assistant,
        metadata: None,
        extra: contexture_ir::Extra::new(),
        parts: vec![call.unwrap()],
    };
    chat.save([asks("u1", "a"), assistant(message)])
        .await
        .unwrap();
    let mut draft = chat.draft();
    draft.push_item(Item::from(FunctionCallOutput::new(
        "t1",
        Output::Text("found".to_owned()),
    )));
    draft.commit().await.unwrap();
    assert_eq!(ids(&chat).await, ["u1", "a1"]);
}

#[tokio::test]
async fn the_last_assistant_message_is_replaced() {
    let chat = chat().await;
    // Pending: in place.
    chat.save([
        asks("u1", "a"),
        answers("a1", "b"),
        last_assistant_message("c"),
    ])
    .await
    .unwrap();
    assert_eq!(texts(&chat).await, ["a", "c"]);
    // Stored: on a new branch.
    chat.save([last_assistant_message("d")]).await.unwrap();
    assert_eq!(texts(&chat).await, ["a", "d"]);
    assert_eq!(branches(&chat).await, ["main 2", "main-v2 2 *"]);
    // None: appended.
    chat.clear().await.unwrap();
    chat.save([last_assistant_message("e")]).await.unwrap();
    assert_eq!(texts(&chat).await, ["e"]);
}

#[tokio::test]
async fn resolving_a_draft_shows_it_as_if_stored() {
    let chat = chat().await;
    chat.set([role("R"), hint("H")]).unwrap();
    chat.save([asks("u1", "a"), answers("a1", "b")])
        .await
        .unwrap();
    let mut draft = chat.draft();
    draft.push(answers("a1", "B"));
    draft.push(user("next").transient());
    let resolved = draft.resolve().await.unwrap();
    assert_eq!(resolved.system_prompt, "<role>R</role>\n<hint>H</hint>");
    let texts: Vec<String> = resolved
        .messages
        .iter()
        .map(UiMessage::joined_text)
        .collect();
    assert_eq!(texts, ["a", "B", "next"]);
    // What does not persist takes part in resolve, never in a save.
    draft.commit().await.unwrap();
    assert_eq!(self::texts(&chat).await, ["a", "B"]);
}

#[tokio::test]
async fn fragments_and_messages_have_their_places() {
    let chat = chat().await;
    assert!(matches!(
        chat.set([user("x")]),
        Err(EngineError::NotData { .. })
    ));
    let mut draft = chat.draft();
    draft.push(hint("x"));
    let error = draft.commit().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "fragment `hint` carries data, not a message: use `set` for it"
    );
}

#[tokio::test]
async fn fragments_are_recorded_and_rewind() {
    let engine = engine();
    let chat = engine.conversation("c").open().await.unwrap();
    chat.set([role("first"), hint("secret").transient()])
        .unwrap();
    chat.save([asks("u1", "a")]).await.unwrap();
    chat.set([role("second")]).unwrap();
    chat.save([asks("u2", "b")]).await.unwrap();

    // A handle that set nothing sees what the path carries.
    let other = engine.conversation("c").open_existing().await.unwrap();
    let prompt = other.resolve().await.unwrap().system_prompt;
    assert_eq!(prompt, "<role>second</role>");
    other.rewind("u1").await.unwrap();
    let prompt = other.resolve().await.unwrap().system_prompt;
    assert_eq!(prompt, "<role>first</role>");
}

#[tokio::test]
async fn invalid_messages_are_refused_before_they_are_stored() {
    let chat = chat().await;
    let part = Raw::parse(r#"{"type":"tool-x","toolCallId":"t","state":"sideways"}"#).unwrap();
    let message = UiMessage {
        id: "a1".to_owned(),
        role: UiRole::Assistant,
        metadata: None,
        extra: contexture_ir::Extra::new(),
        parts: vec![part],
    };
    let error = chat.save([assistant(message)]).await.unwrap_err();
    assert_eq!(error.kind(), "bad_document");
    assert_eq!(chat.head().await.unwrap(), None);
}

#[tokio::test]
async fn a_draft_under_one_key_is_stored_once_whoever_makes_it() {
    let chat = chat().await;
    let made = async |text: &str| {
        let mut draft = chat.draft();
        draft.set_idempotency_key([7; 16]);
        draft.expect_head(None);
        draft.push(user(text));
        draft.commit().await
    };
    let first = made("hello").await.unwrap();
    let again = made("hello").await.unwrap();
    assert_eq!(first.nodes, again.nodes);
    assert_eq!(texts(&chat).await, ["hello"]);
    assert_eq!(made("other").await.unwrap_err().kind(), "id_conflict");
}

#[tokio::test]
async fn a_draft_that_expects_a_head_goes_behind_no_other() {
    let chat = chat().await;
    let old = chat.save([asks("u1", "a")]).await.unwrap().head;
    chat.save([asks("u2", "b")]).await.unwrap();
    let mut draft = chat.draft();
    draft.push(asks("u3", "late"));
    draft.expect_head(old);
    assert_eq!(draft.commit().await.unwrap_err().kind(), "head_moved");
    let mut edit = chat.draft();
    edit.push(asks("u1", "A"));
    edit.expect_head(old);
    assert_eq!(edit.commit().await.unwrap_err().kind(), "head_moved");
    assert_eq!(branches(&chat).await, ["main 2 *"]);
    draft.expect_head(chat.head().await.unwrap());
    draft.commit().await.unwrap();
    assert_eq!(ids(&chat).await, ["u1", "u2", "u3"]);
}

/// Two parallel calls of one id: their outputs answer them in the order of the calls, in one draft or in two.
#[tokio::test]
async fn parallel_calls_of_one_id_take_outputs_in_call_order() {
    for split in [false, true] {
        let chat = chat().await;
        let mut draft = chat.draft();
        for name in ["first", "second"] {
            draft.push_item(FunctionCall::new("call_1", name, "{}"));
        }
        if split {
            draft.commit().await.unwrap();
            draft = chat.draft();
        }
        for text in ["one", "two"] {
            let output = Output::Text(text.to_owned());
            draft.push_item(FunctionCallOutput::new("call_1", output));
        }
        draft.commit().await.unwrap();
        let read = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
        let store = chat.engine().store().clone();
        let nodes = store
            .read_path(&Owner::local(), chat.id(), read)
            .await
            .unwrap()
            .nodes;
        let ids: Vec<_> = nodes.iter().map(|node| Some(node.id)).collect();
        let answered: Vec<_> = nodes.iter().map(|node| node.answers).collect();
        assert_eq!(answered, [None, None, ids[0], ids[1]], "split: {split}");
    }
}

#[tokio::test]
async fn fields_that_the_sdk_does_not_know_are_kept() {
    let chat = chat().await;
    let json = r#"{"id":"m","role":"assistant","metadata":{"a":1},"custom":1e400,"parts":[
        {"type":"text","text":"hi","x":1,"providerMetadata":{"openai":{"itemId":"msg_1"}}},
        {"type":"reasoning","text":"why","x":[2]},
        {"type":"step-start","x":3},
        {"type":"tool-look","toolCallId":"t1","state":"output-available","input":{"q":1},"output":{"y":1},"x":4},
        {"type":"file","mediaType":"image/png","url":"https://example.org/a.png","x":5},
        {"type":"data-note","data":{"z":1},"x":6}]}"#;
    let message = UiMessage::parse(json).unwrap();
    let value = |message: &UiMessage| {
        contexture_ir::canonical_json(&serde_json::to_string(message).unwrap())
    };
    chat.save([assistant(message.clone())]).await.unwrap();
    for view in [
        contexture_engine::MessageView::User,
        contexture_engine::MessageView::Model,
    ] {
        let stored = chat.messages(view).await.unwrap().remove(0);
        assert_eq!(value(&stored), value(&message));
    }
    // The same again is no edit; another value is.
    let again = chat.save([assistant(message.clone())]).await.unwrap();
    assert_eq!((again.nodes.len(), again.opened_branch), (0, false));
    // A program that hands them to the SDK gets what the SDK knows.
    let resolved = chat.resolve().await.unwrap().messages.remove(0);
    let known = contexture_wire::ui::validate(std::slice::from_ref(&message))
        .unwrap()
        .remove(0);
    assert_eq!(value(&resolved), value(&known));
    assert!(!value(&resolved).unwrap().contains("\"x\""));
    let changed = UiMessage::parse(&json.replace("\"x\":5", "\"x\":\"five\"")).unwrap();
    assert!(chat.save([assistant(changed)]).await.unwrap().opened_branch);
}

#[tokio::test]
async fn draft_beyond_the_limit_says_how_to_store_it() {
    let chat = chat().await;
    let limit = chat.engine().store().limits().append_items;
    let all = |count: usize| (0..count).map(|n| asks(&format!("u{n}"), "a"));
    let error = chat.save(all(limit + 1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "a draft of {} items: one commit stores at most {limit}, so commit it in parts",
            limit + 1
        )
    );
    assert_eq!((error.kind(), chat.head().await.unwrap()), ("limit", None));
    chat.save(all(limit)).await.unwrap();
    // What is stored already does not count.
    let more = chat.save(all(limit + 1)).await.unwrap();
    assert_eq!(more.nodes.len(), 1);
}
