//! Chats of `@deepagents/context`: what that package says of its own database is what we say after
//! the import.

use contexture_engine::{Conversation, Engine, ImportOptions, Imported, MessageView};
use contexture_ir::Owner;
use contexture_sessions::{ReadOptions, Session, SessionFormat, read_sessions};
use contexture_store_sqlite::DeepAgentsFile;
use contexture_testdata as data;
use serde_json::{Value, json};

use crate::support::{branches, engine, texts};

/// The chats of the database that the package made, as JSON.
fn chats() -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chats.db");
    std::fs::write(&path, data::read_bytes("deepagents-context/chats.db.gz")).unwrap();
    let mut file = DeepAgentsFile::open(&path).unwrap();
    let mut chats = Vec::new();
    while let Some(chat) = file.next_chat().unwrap() {
        chats.push(chat);
    }
    assert_eq!(file.chat_count().unwrap(), chats.len() as u64);
    chats
}

fn session(chat: &str) -> Session {
    let mut sessions =
        read_sessions(SessionFormat::DeepAgents, chat, &ReadOptions::default()).unwrap();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

async fn import(engine: &Engine, session: &Session) -> Imported {
    let owner = session.info.owner.as_deref().unwrap();
    let options = ImportOptions {
        owner: Owner::new(owner).unwrap(),
        ..ImportOptions::default()
    };
    engine.import(session, &options).await.unwrap()
}

async fn open(engine: &Engine, owner: &str, id: &str, branch: Option<&str>) -> Conversation {
    let mut builder = engine.conversation(id).owner(owner);
    if let Some(branch) = branch {
        builder = builder.branch(branch);
    }
    builder.open_existing().await.unwrap()
}

async fn messages(chat: &Conversation) -> Value {
    let messages = chat.messages(MessageView::User).await.unwrap();
    serde_json::to_value(&messages).unwrap()
}

/// All a reader sees of a conversation.
async fn everything(engine: &Engine, owner: &str, id: &str) -> Value {
    let chat = open(engine, owner, id, None).await;
    let refs = chat.refs().await.unwrap();
    let mut all = json!({"refs": format!("{refs:?}")});
    for branch in &refs.branches {
        let chat = open(engine, owner, id, Some(branch.name.as_str())).await;
        all[branch.name.as_str()] = messages(&chat).await;
    }
    all
}

/// What the package says is in the database.
fn expected() -> Vec<Value> {
    serde_json::from_str(&data::read_text("deepagents-context/expected.json.gz")).unwrap()
}

/// The package's messages as we tell them: what leads of the system is no message here.
fn told(messages: &Value) -> (Vec<&Value>, Vec<&str>) {
    let list = messages.as_array().unwrap().iter();
    let (system, others): (Vec<_>, Vec<_>) = list.partition(|message| message["role"] == "system");
    let texts = system.into_iter();
    let texts = texts.map(|message| message["parts"][0]["text"].as_str().unwrap());
    (others, texts.collect())
}

#[tokio::test]
async fn every_branch_says_what_the_package_says() {
    let expected = expected();
    let engine = engine();
    let (mut seen, mut systems) = (0, 0);
    for text in chats() {
        let session = session(&text);
        let own = session.info.conversation.clone().unwrap();
        let imported = import(&engine, &session).await;
        assert_eq!(imported.new_nodes, session.tree.len());
        assert_eq!(imported.diverged, None);
        let chat = expected.iter().find(|chat| chat["id"] == *own).unwrap();
        let owner = chat["userId"].as_str().unwrap();
        let id = imported.conversation.as_str();
        let here = open(&engine, owner, id, None).await;
        assert_eq!(here.branch().as_str(), chat["active"]);
        for branch in chat["branches"].as_array().unwrap() {
            let name = branch["name"].as_str().unwrap();
            let here = open(&engine, owner, id, Some(name)).await;
            let (wanted, system) = told(&branch["messages"]);
            assert_eq!(json!(messages(&here).await), json!(wanted), "{own} {name}");
            let resolved = here.resolve().await.unwrap();
            assert_eq!(resolved.system_prompt, system.join("\n\n"));
            systems += system.len();
            seen += 1;
        }
        let refs = here.refs().await.unwrap();
        let checkpoints = chat["checkpoints"].as_array().unwrap();
        assert_eq!(refs.checkpoints.len(), checkpoints.len());
        for checkpoint in checkpoints {
            here.restore(checkpoint["name"].as_str().unwrap())
                .await
                .unwrap();
            let (wanted, _) = told(&checkpoint["messages"]);
            assert_eq!(json!(messages(&here).await), json!(wanted));
        }
    }
    assert_eq!((seen, systems), (11, 1));
}

#[tokio::test]
async fn what_the_chat_says_of_itself_is_kept() {
    let engine = engine();
    for text in chats() {
        import(&engine, &session(&text)).await;
    }
    let expected = expected();
    let support = expected
        .iter()
        .find(|chat| chat["id"] == "support-42")
        .unwrap();
    let chat = open(&engine, "ada@example.org", "support-42", None).await;
    let store = engine.store();
    let record = store
        .load_conversation(chat.owner(), chat.id())
        .await
        .unwrap();
    assert_eq!(record.title.as_deref(), Some("Order 7"));
    assert_eq!(record.created_ms, support["createdAt"].as_i64().unwrap());
    for (key, value) in support["metadata"].as_object().unwrap() {
        if key != "import" {
            let kept: Value = serde_json::from_str(record.metadata[key].get()).unwrap();
            assert_eq!(kept, *value, "{key}");
        }
    }
    // Ours has that name; theirs is in it, with the rest of the row.
    let ours = record.metadata["import"].get();
    assert!(
        ours.contains("theirs") && ours.contains("updatedAt"),
        "{ours}"
    );
    // What was cut off from every branch has one of its own.
    let id = "chat-2:-gr--e-";
    let list = engine
        .list_conversations(chat.owner(), contexture_store::ListConversations::default())
        .await
        .unwrap();
    let other = list
        .conversations
        .iter()
        .find(|one| one.id.as_str().starts_with(id));
    let other = open(&engine, "ada@example.org", other.unwrap().id.as_str(), None).await;
    assert_eq!(branches(&other).await, ["main 2 *", "loose-lost 2"]);
}

#[tokio::test]
async fn importing_again_changes_nothing() {
    let engine = engine();
    for text in chats() {
        let session = session(&text);
        let first = import(&engine, &session).await;
        let owner = session.info.owner.as_deref().unwrap();
        let before = everything(&engine, owner, first.conversation.as_str()).await;
        let again = import(&engine, &session).await;
        assert_eq!((again.new_nodes, again.diverged), (0, None));
        assert_eq!(again.conversation, first.conversation);
        let after = everything(&engine, owner, first.conversation.as_str()).await;
        assert_eq!(after, before);
    }
}

/// A chat of messages that follow each other, with branches at some of them.
fn chat(messages: &[(&str, Option<&str>, &str)], branches: &[(&str, &str, u8)]) -> String {
    let rows: Vec<Value> = messages
        .iter()
        .map(|(id, parent, text)| {
            let data = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
            json!({"id": id, "chatId": "c", "parentId": parent, "name": "user", "type": "message",
                "data": data.to_string(), "createdAt": 5})
        })
        .collect();
    let branches: Vec<Value> = branches
        .iter()
        .map(|(name, head, active)| {
            json!({"name": name, "headMessageId": head, "isActive": active, "createdAt": 6})
        })
        .collect();
    json!({"chat": {"id": "c", "userId": "ada", "createdAt": 4}, "messages": rows,
        "branches": branches, "checkpoints": []})
    .to_string()
}

#[tokio::test]
async fn a_chat_that_grew_gets_what_is_new() {
    let engine = engine();
    let two = [("a", None, "one"), ("b", Some("a"), "two")];
    let first = chat(
        &two,
        &[("main", "b", 0), ("aside", "b", 1), ("early", "a", 0)],
    );
    import(&engine, &session(&first)).await;
    let grown = [
        two[0],
        two[1],
        ("c", Some("b"), "three"),
        ("d", Some("a"), "else"),
        ("e", Some("b"), "x"),
    ];
    let names = [("main", "c", 1), ("aside", "e", 0), ("early", "d", 0)];
    let again = import(&engine, &session(&chat(&grown, &names))).await;
    assert_eq!((again.new_nodes, again.diverged), (3, None));
    let here = open(&engine, "ada", "c", None).await;
    let mut all = branches(&here).await;
    all.sort();
    assert_eq!(all, ["aside 3 *", "early 2", "main 3"]);
    for (name, last) in [("main", "three"), ("aside", "x"), ("early", "else")] {
        let here = open(&engine, "ada", "c", Some(name)).await;
        assert_eq!(texts(&here).await.last().unwrap(), last, "{name}");
    }
}

#[tokio::test]
async fn a_message_that_was_changed_goes_another_way() {
    let engine = engine();
    let rows = [
        ("a", None, "one"),
        ("b", Some("a"), "tw"),
        ("c", Some("b"), "three"),
    ];
    let main = [("main", "c", 1)];
    import(&engine, &session(&chat(&rows, &main))).await;
    let changed = [rows[0], ("b", Some("a"), "two"), rows[2]];
    let again = import(&engine, &session(&chat(&changed, &main))).await;
    assert_eq!(again.new_nodes, 2);
    let parted = again.diverged.unwrap();
    assert_eq!(parted.branch.as_str(), "import-2");
    let here = open(&engine, "ada", "c", None).await;
    assert_eq!(texts(&here).await, ["one", "two", "three"]);
    assert_eq!(branches(&here).await, ["main 3", "import-2 3 *"]);
    // That is known too now.
    let again = import(&engine, &session(&chat(&changed, &main))).await;
    assert_eq!((again.new_nodes, again.diverged), (0, None));
}

#[tokio::test]
async fn another_chat_of_the_same_id_is_refused() {
    let engine = engine();
    let one = chat(&[("a", None, "one")], &[("main", "a", 1)]);
    import(&engine, &session(&one)).await;
    let other = session(&one.replace("\"createdAt\":4", "\"createdAt\":9"));
    let options = ImportOptions {
        owner: Owner::new("ada").unwrap(),
        ..ImportOptions::default()
    };
    let error = engine.import(&other, &options).await.unwrap_err();
    assert_eq!(error.kind(), "already_exists");
}
