//! Secrets are not stored, and what held them is known again all the same.

use contexture_compile::Target;
use contexture_engine::{Engine, ImportOptions, SecretPattern, Secrets};
use contexture_ir::{FunctionCall, Item, Message, Owner, Role, UiMessage, meaning_hash, user};
use contexture_models::text_response;
use contexture_sessions::{ReadOptions, detect_format, read_sessions};
use contexture_store::{PathEnd, ReadRequest};
use contexture_wire::Format;

use crate::support::{answers, asks, branches, engine, texts};

const KEY: &str = "sk-proj-T3BlbkFJ4c8R2mQz7LkW9xYp1NvB6dHs";

#[tokio::test]
async fn a_message_keeps_its_words_and_loses_its_keys() {
    let engine = engine().with_secrets(Secrets::common());
    let chat = engine.conversation("chat").open().await.unwrap();
    let said = format!("use {KEY} please");
    let draft = || [asks("u1", &said), answers("a1", &format!("{KEY}?"))];
    chat.save(draft()).await.unwrap();
    assert_eq!(
        texts(&chat).await,
        ["use [redacted: API key] please", "[redacted: API key]?"]
    );
    let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
    let page = engine
        .store()
        .read_path(&Owner::local(), chat.id(), request)
        .await
        .unwrap();
    assert!(page.nodes.iter().all(|node| !node.json.contains("T3Blbk")));
    // Whoever sends the message again sends it as it was.
    let given = Item::Message(Message::text(Role::User, &said));
    assert_eq!(page.nodes[0].meaning_hash, meaning_hash(&given));
    assert!(chat.save(draft()).await.unwrap().nodes.is_empty());
    assert_eq!(branches(&chat).await, ["main 2 *"]);
    assert!(
        chat.save([asks("u1", "use nothing")])
            .await
            .unwrap()
            .opened_branch
    );
}

#[tokio::test]
async fn a_session_is_imported_without_its_keys_and_grows() {
    let engine = engine().with_secrets(Secrets::common());
    let options = ImportOptions {
        owner: Owner::local(),
        conversation: Some("chat".parse().unwrap()),
        ..ImportOptions::default()
    };
    let mut log = format!(
        r#"[{{"role":"system","content":"{KEY}"}},{{"role":"user","content":"my key: {KEY}"}}"#
    );
    for (added, nodes) in [
        ("", 1),
        (r#",{"role":"assistant","content":"thanks"}"#, 1),
        ("", 0),
    ] {
        log.push_str(added);
        let text = format!("{log}]");
        let format = detect_format(&text, "chat.json").unwrap().format;
        let session = read_sessions(format, &text, &ReadOptions::default())
            .unwrap()
            .remove(0);
        let imported = engine.import(&session, &options).await.unwrap();
        assert_eq!(
            (imported.new_nodes, imported.branches),
            (nodes, 1),
            "{text}"
        );
    }
    let chat = engine.conversation("chat").open_existing().await.unwrap();
    assert_eq!(
        texts(&chat).await,
        ["my key: [redacted: API key]", "thanks"]
    );
    let record = engine
        .conversation_info(&Owner::local(), chat.id())
        .await
        .unwrap();
    assert!(!format!("{record:?}").contains("T3Blbk"));
}

/// An engine that takes keys out of all it stores, by a pattern of this name.
fn engine_with_pattern(name: &str) -> Engine {
    let pattern = SecretPattern::Word {
        name: name.to_owned(),
        prefix: "sk-".to_owned(),
        extra_characters: "-".to_owned(),
        min_length: 20,
        max_length: 400,
        min_run: 16,
    };
    let secrets = Secrets {
        patterns: vec![pattern],
    };
    engine().with_secrets(secrets)
}

#[tokio::test]
async fn pattern_name_with_quotes_never_stores_clear_text() {
    for name in ["the \"big\" key", "back\\slash", "two\nlines"] {
        let engine = engine_with_pattern(name);
        let chat = engine.conversation("chat").open().await.unwrap();
        chat.save([asks("u1", &format!("use {KEY} please"))])
            .await
            .unwrap();
        let call = FunctionCall::new("call_1", "login", format!(r#"{{"key":"{KEY}"}}"#));
        let mut draft = chat.draft();
        draft.push_item(call);
        draft.commit().await.unwrap();
        let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
        let page = engine
            .store()
            .read_path(&Owner::local(), chat.id(), request)
            .await
            .unwrap();
        assert_eq!(page.nodes.len(), 2);
        for node in page.nodes {
            assert!(!node.json.contains("T3BlbkFJ"), "{}", node.json);
            assert!(node.json.contains("redacted: "), "{}", node.json);
        }
    }
}

/// Every way by which text is stored, under every name that JSON or a reader could stumble over.
#[tokio::test]
async fn no_caller_stores_clear_text_under_an_odd_name() {
    let long = "x".repeat(500);
    let names = [
        "\"",
        "\\",
        "\\\"}",
        "a\nb\r\t",
        "\u{0}\u{1f}",
        "\u{2028}\u{2029}",
        "\u{7f}",
        "😀",
        "]",
        "",
        &long,
    ];
    for name in names {
        let engine = engine_with_pattern(name);
        let chat = engine.conversation("chat").open().await.unwrap();
        let mut draft = chat.draft();
        // In text, in JSON within JSON, in fields that the SDK does not know.
        let json = format!(
            r#"{{"id":"m","role":"user","metadata":{{"k":"{KEY}"}},"mine":"{KEY}","parts":[{{"type":"text","text":"a {KEY}","x":["{KEY}"]}}]}}"#
        );
        draft.push(user(UiMessage::parse(&json).unwrap()));
        draft.push_item(FunctionCall::new(
            "call_1",
            "login",
            format!(r#"{{"key":"{KEY}"}}"#),
        ));
        let shown = serde_json::to_string(&draft.resolve().await.unwrap().messages).unwrap();
        assert!(!shown.contains("T3BlbkFJ"), "{name:?}: {shown}");
        draft.commit().await.unwrap();
        let call = chat.compile(&Target::openai_chat("gpt-4o")).await.unwrap();
        let answer = text_response(Format::OpenAiChat, &format!("It is {KEY}."));
        chat.record(&call, &answer).await.unwrap();
        let log = format!(
            r#"[{{"role":"system","content":"{KEY}"}},{{"role":"user","content":"{KEY} first"}},{{"role":"assistant","content":"{KEY}"}}]"#
        );
        let format = detect_format(&log, "chat.json").unwrap().format;
        let session = read_sessions(format, &log, &ReadOptions::default())
            .unwrap()
            .remove(0);
        let options = ImportOptions {
            conversation: Some("imported".parse().unwrap()),
            ..ImportOptions::default()
        };
        engine.import(&session, &options).await.unwrap();
        for id in ["chat", "imported"] {
            let chat = engine.conversation(id).open_existing().await.unwrap();
            let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
            let page = engine.store().read_path(chat.owner(), chat.id(), request);
            let nodes = page.await.unwrap().nodes;
            assert!(nodes.len() >= 2);
            let all = format!(
                "{nodes:?} {:?} {:?} {:?}",
                chat.info().await.unwrap(),
                chat.transcript().await.unwrap(),
                chat.resolve().await.unwrap()
            );
            assert!(!all.contains("T3BlbkFJ"), "{name:?} in {id}: {all}");
            assert!(all.contains("redacted: "), "{name:?} in {id}");
        }
    }
}
