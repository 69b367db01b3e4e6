//! Sessions that grew, or went another way, under a conversation's name.

use contexture_engine::{Conversation, Engine, EngineError, ImportOptions, Imported};
use contexture_ir::{ConversationId, user};
use contexture_sessions::{ReadOptions, Session, SessionFormat, detect_format, read_sessions};
use contexture_testdata as data;
use contexture_wire::Format;
use serde_json::{Value, json};

use crate::support::{branches, engine, texts};

/// Chat messages: `s:` a system message, `a:` an assistant's, else a user's.
fn chat_array(words: &str) -> Value {
    let message = |word: &str| match word.split_once(':') {
        Some(("s", text)) => json!({"role": "system", "content": text}),
        Some(("a", text)) => json!({"role": "assistant", "content": text}),
        _ => json!({"role": "user", "content": word}),
    };
    words.split_whitespace().map(message).collect()
}

fn session(text: &str) -> Session {
    let format = detect_format(text, "").unwrap().format;
    let mut sessions = read_sessions(format, text, &ReadOptions::default()).unwrap();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

async fn import_as(
    engine: &Engine,
    session: &Session,
    name: Option<&str>,
) -> Result<Imported, EngineError> {
    let options = ImportOptions {
        conversation: name.map(|name| ConversationId::new(name).unwrap()),
        ..ImportOptions::default()
    };
    engine.import(session, &options).await
}

/// Imports under `c` and says `new of nodes`, and where it parted.
async fn import(engine: &Engine, words: &str) -> String {
    let session = session(&chat_array(words).to_string());
    let imported = import_as(engine, &session, Some("c")).await.unwrap();
    let parted = imported
        .diverged
        .map(|parted| format!(", {} after {}", parted.branch, parted.shared));
    format!(
        "{} of {}{}",
        imported.new_nodes,
        imported.nodes,
        parted.unwrap_or_default()
    )
}

async fn open(engine: &Engine) -> Conversation {
    engine.conversation("c").open_existing().await.unwrap()
}

async fn exported(chat: &Conversation) -> Value {
    let text = chat
        .export(SessionFormat::Wire(Format::OpenAiChat))
        .await
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_file_that_grew_adds_what_is_new() {
    let engine = engine();
    assert_eq!(import(&engine, "s:S u a:x").await, "2 of 2");
    assert_eq!(import(&engine, "s:S u a:x v a:y").await, "2 of 4");
    assert_eq!(import(&engine, "s:S u a:x v a:y").await, "0 of 4");
    assert_eq!(import(&engine, "s:S u a:x").await, "0 of 2");
    assert_eq!(import(&engine, "s:S u a:x v a:y w").await, "1 of 5");
    let chat = open(&engine).await;
    assert_eq!(branches(&chat).await, ["main 5 *"]);
    assert_eq!(exported(&chat).await, chat_array("s:S u a:x v a:y w"));
}

#[tokio::test]
async fn a_file_that_went_another_way_opens_a_branch() {
    let engine = engine();
    import(&engine, "u a:x v a:y").await;
    let other = "u a:x w a:z";
    assert_eq!(import(&engine, other).await, "2 of 4, import-2 after 2");
    assert_eq!(import(&engine, other).await, "0 of 4");
    assert_eq!(import(&engine, "u a:x w a:z r").await, "1 of 5");
    assert_eq!(import(&engine, "u q").await, "1 of 2, import-3 after 1");
    assert_eq!(import(&engine, "u a:x v a:y t").await, "1 of 5");
    let chat = open(&engine).await;
    assert_eq!(
        branches(&chat).await,
        ["main 5", "import-2 5", "import-3 2 *"]
    );
    let main = engine
        .conversation("c")
        .branch("main")
        .open_existing()
        .await;
    assert_eq!(exported(&main.unwrap()).await, chat_array("u a:x v a:y t"));
}

#[tokio::test]
async fn what_was_said_here_counts_as_known() {
    let engine = engine();
    import(&engine, "u a:x").await;
    open(&engine).await.save([user("v")]).await.unwrap();
    assert_eq!(import(&engine, "u a:x v a:y").await, "1 of 4");
    let chat = open(&engine).await;
    assert_eq!(texts(&chat).await, ["u", "x", "v", "y"]);
    assert_eq!(exported(&chat).await, chat_array("u a:x v a:y"));
    // A conversation that was never imported may be gone on with as well.
    let own = engine.conversation("own").open().await.unwrap();
    own.save([user("u")]).await.unwrap();
    let grown = session(&chat_array("u a:x").to_string());
    let imported = import_as(&engine, &grown, Some("own")).await.unwrap();
    assert_eq!((imported.new_nodes, imported.diverged), (1, None));
    assert_eq!(texts(&own).await, ["u", "x"]);
}

#[tokio::test]
async fn strangers_are_refused() {
    let engine = engine();
    import(&engine, "s:S u a:x").await;
    for words in ["v a:y", "s:S v", "s:S"] {
        let other = session(&chat_array(words).to_string());
        let error = import_as(&engine, &other, Some("c")).await.unwrap_err();
        assert_eq!(error.kind(), "already_exists", "{words}");
    }
    // Without a name a file that grew is another conversation.
    let (one, two) = ("u a:x", "u a:x v");
    for words in [one, two] {
        let session = session(&chat_array(words).to_string());
        let imported = import_as(&engine, &session, None).await.unwrap();
        assert_eq!(imported.new_nodes, imported.nodes, "{words}");
    }
}

#[tokio::test]
async fn the_same_in_another_format_is_known() {
    let engine = engine();
    let tool = |more: &[Value]| {
        let mut all = vec![
            json!({"role": "user", "content": "look"}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{ \"a\": 1 }"}}]}),
        ];
        all.extend_from_slice(more);
        Value::from(all).to_string()
    };
    let first = session(&tool(&[]));
    import_as(&engine, &first, Some("c")).await.unwrap();
    // The answer to a call that is stored already, with reasoning that Chat did not have.
    let anthropic = json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t9", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9", "content": "ok"}]},
    ]);
    let grown = session(&anthropic.to_string());
    let imported = import_as(&engine, &grown, Some("c")).await.unwrap();
    assert_eq!((imported.new_nodes, imported.diverged), (1, None));
    let answered = json!({"role": "tool", "tool_call_id": "c1", "content": "ok"});
    let last = json!({"role": "assistant", "content": "done"});
    let chat = session(&tool(&[answered, last]));
    let imported = import_as(&engine, &chat, Some("c")).await.unwrap();
    assert_eq!((imported.new_nodes, imported.diverged), (1, None));
    assert_eq!(branches(&open(&engine).await).await, ["main 4 *"]);
}

#[tokio::test]
async fn a_trajectory_that_grew_comes_back_as_it_is() {
    let engine = engine();
    let (_, text) = data::swe_agent().remove(0);
    let whole: Value = serde_json::from_str(&text).unwrap();
    let mut part = whole.clone();
    part["history"].as_array_mut().unwrap().truncate(6);
    let part = session(&part.to_string());
    import_as(&engine, &part, Some("c")).await.unwrap();
    let grown = session(&text);
    let imported = import_as(&engine, &grown, Some("c")).await.unwrap();
    assert_eq!(imported.new_nodes, grown.tree.len() - part.tree.len());
    assert_eq!(imported.diverged, None);
    let again = open(&engine).await.export(SessionFormat::SweAgent).await;
    let again: Value = serde_json::from_str(&again.unwrap()).unwrap();
    assert!(again == whole, "it differs");
}

#[tokio::test]
async fn ui_messages_that_grew_or_changed() {
    let engine = engine();
    let messages = |texts: &[&str]| {
        let message = |(index, text): (usize, &&str)| {
            let role = if index % 2 == 0 { "user" } else { "assistant" };
            json!({"id": format!("m{index}"), "role": role, "metadata": {"n": index},
                "parts": [{"type": "text", "text": text}]})
        };
        Value::from_iter(texts.iter().enumerate().map(message))
    };
    let import = async |value: &Value| {
        let imported = import_as(&engine, &session(&value.to_string()), Some("c")).await;
        imported.unwrap()
    };
    import(&messages(&["u", "x"])).await;
    let grown = messages(&["u", "x", "v"]);
    assert_eq!(import(&grown).await.diverged, None);
    let ui = SessionFormat::Wire(Format::Ui);
    let again = open(&engine).await.export(ui).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), grown);
    let parted = import(&messages(&["u", "x", "w"])).await.diverged.unwrap();
    assert_eq!(parted.branch.as_str(), "import-2");
    assert_eq!(texts(&open(&engine).await).await, ["u", "x", "w"]);
    assert_eq!(import(&messages(&["u", "x", "w"])).await.new_nodes, 0);
}

#[tokio::test]
async fn instructions_without_items_are_kept() {
    let engine = engine();
    assert_eq!(import(&engine, "s:S").await, "0 of 0");
    let chat = open(&engine).await;
    assert_eq!(exported(&chat).await, chat_array("s:S"));
    assert!(texts(&chat).await.is_empty());
    // Again, changed, and grown.
    assert_eq!(import(&engine, "s:S").await, "0 of 0");
    assert_eq!(import(&engine, "s:T").await, "0 of 0");
    assert_eq!(exported(&chat).await, chat_array("s:T"));
    assert_eq!(import(&engine, "s:T u").await, "1 of 1");
    assert_eq!(exported(&chat).await, chat_array("s:T u"));
    // Changed where nothing else is new, then with something.
    assert_eq!(import(&engine, "s:U u").await, "0 of 1");
    assert_eq!(exported(&chat).await, chat_array("s:U u"));
    assert_eq!(import(&engine, "s:V u a:x").await, "1 of 2");
    assert_eq!(exported(&chat).await, chat_array("s:V u a:x"));
    assert_eq!(branches(&chat).await.len(), 1);
    // An older copy takes nothing back.
    assert_eq!(import(&engine, "s:S u").await, "0 of 1");
    assert_eq!(exported(&chat).await, chat_array("s:V u a:x"));
}

/// A Codex rollout: `<n` a rollback, else a turn.
fn rollout(words: &str) -> Session {
    let mut lines = vec![
        r#"{"type":"session_meta","payload":{"id":"x","base_instructions":{"text":"S"}}}"#
            .to_owned(),
    ];
    for word in words.split_whitespace() {
        let (kind, payload) = match word.strip_prefix('<') {
            Some(turns) => {
                let turns: u32 = turns.parse().unwrap();
                (
                    "event_msg",
                    json!({"type": "thread_rolled_back", "num_turns": turns}),
                )
            }
            None => (
                "response_item",
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": word}]}),
            ),
        };
        lines.push(json!({"type": kind, "payload": payload}).to_string());
    }
    session(&lines.join("\n"))
}

#[tokio::test]
async fn what_the_log_took_back_is_a_branch() {
    let engine = engine();
    let import = async |words: &str| {
        let imported = import_as(&engine, &rollout(words), Some("c"))
            .await
            .unwrap();
        (
            imported.new_nodes,
            imported.diverged.map(|parted| parted.branch.to_string()),
        )
    };
    assert_eq!(import("").await, (0, None));
    assert_eq!(import("a b <1 c").await, (3, None));
    let chat = open(&engine).await;
    assert_eq!(branches(&chat).await, ["main 2 *", "rollback-1 2"]);
    assert_eq!(texts(&chat).await, ["a", "c"]);
    assert_eq!(import("a b <1 c d").await, (1, None));
    // The log went back behind what is stored as its end.
    let back = import("a b <1 c d <2 e").await;
    assert_eq!(back, (1, Some("import-2".to_owned())));
    assert_eq!(import("a b <1 c d <2 e f").await, (1, None));
    let chat = open(&engine).await;
    assert_eq!(
        branches(&chat).await,
        ["main 3", "rollback-1 2", "import-2 3 *"]
    );
    assert_eq!(texts(&chat).await, ["a", "e", "f"]);
}

#[tokio::test]
async fn branches_are_called_as_the_log_calls_them() {
    let engine = engine();
    let record = |uuid: &str, parent: Option<&str>| {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s",
            "message": {"role": "user", "content": uuid}})
    };
    let mut records = vec![
        record("aaaa", None),
        record("bbbb", Some("aaaa")),
        record("cccc", Some("aaaa")),
    ];
    let log = |records: &[Value]| {
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        session(&lines.join("\n"))
    };
    import_as(&engine, &log(&records), Some("c")).await.unwrap();
    records.push(record("dddd", Some("bbbb")));
    records.push(record("eeee", Some("cccc")));
    import_as(&engine, &log(&records), Some("c")).await.unwrap();
    let chat = open(&engine).await;
    assert_eq!(branches(&chat).await, ["main 3 *", "branch-bbbb 3"]);
}
