//! Sessions in and out: nothing is lost, nothing is stored twice.

use contexture_engine::{Engine, ImportOptions};
use contexture_ir::{ConversationId, user};
use contexture_sessions::{
    ReadOptions, Session, SessionFormat, detect_format, read_sessions, write_sessions,
};
use contexture_testdata as data;
use serde_json::Value;

use crate::support::{engine, texts};

fn sessions(text: &str, name: &str) -> Vec<Session> {
    let format = detect_format(text, name).unwrap().format;
    read_sessions(
        format,
        text,
        &ReadOptions {
            source_name: name,
            keep_going: true,
        },
    )
    .unwrap()
}

/// Imports a file's sessions and exports them again.
async fn round_trip(engine: &Engine, text: &str, name: &str) -> (SessionFormat, String) {
    let sessions = sessions(text, name);
    let format = sessions.first().unwrap().format;
    let mut again = Vec::new();
    for session in &sessions {
        let imported = engine
            .import(session, &ImportOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (imported.nodes, imported.new_nodes),
            (session.tree.len(), session.tree.len()),
            "{name}"
        );
        let chat = engine
            .conversation(imported.conversation.as_str())
            .open_existing()
            .await
            .unwrap();
        again.push(chat.export_session(format).await.unwrap());
    }
    (format, write_sessions(format, &again).unwrap())
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn every_tau_bench_session_comes_back_equal() {
    let text = data::tau_bench();
    let (format, again) = round_trip(&engine(), &text, "gpt-4o-airline.json").await;
    assert_eq!(format, SessionFormat::TauBench);
    assert!(value(&again) == value(&text), "tau-bench differs");
}

#[tokio::test]
async fn every_swe_agent_session_comes_back_equal() {
    for (name, text) in data::swe_agent() {
        let (format, again) = round_trip(&engine(), &text, &name).await;
        assert_eq!(format, SessionFormat::SweAgent, "{name}");
        assert!(value(&again) == value(&text), "{name} differs");
    }
}

#[tokio::test]
async fn every_claude_code_log_comes_back_equal() {
    for name in data::list_files("claude-code")
        .into_iter()
        .filter(|name| name.ends_with(".jsonl"))
    {
        let text = data::read_text(&format!("claude-code/{name}"));
        let (format, again) = round_trip(&engine(), &text, &name).await;
        assert_eq!(format, SessionFormat::ClaudeCode, "{name}");
        let lines = |text: &str| -> Vec<Value> {
            text.lines()
                .filter(|line| !line.trim().is_empty())
                .map(value)
                .collect()
        };
        assert_eq!(lines(&again), lines(&text), "{name}");
    }
}

#[tokio::test]
async fn repeated_import_stores_only_new_nodes() {
    let engine = engine();
    let (name, text) = data::swe_agent().remove(0);
    let session = sessions(&text, &name).remove(0);
    let mut shorter = session.clone();
    shorter.tree.truncate(6);
    shorter.heads.first_mut().unwrap().node = 5;
    let options = ImportOptions::default();
    assert_eq!(
        engine.import(&shorter, &options).await.unwrap().new_nodes,
        6
    );
    assert_eq!(
        engine.import(&shorter, &options).await.unwrap().new_nodes,
        0
    );
    assert_eq!(
        engine.import(&session, &options).await.unwrap().new_nodes,
        session.tree.len() - 6
    );
    let imported = engine.import(&session, &options).await.unwrap();
    assert_eq!(imported.new_nodes, 0);
    let chat = engine
        .conversation(imported.conversation.as_str())
        .open_existing()
        .await
        .unwrap();
    assert_eq!(chat.refs().await.unwrap().branches.len(), 1);
}

#[tokio::test]
async fn what_was_said_since_is_exported_behind_the_import() {
    let engine = engine();
    let text = r#"[{"role":"system","content":"S"},{"role":"user","content":"a"}]"#;
    let session = sessions(text, "chat.json").remove(0);
    let imported = engine
        .import(&session, &ImportOptions::default())
        .await
        .unwrap();
    let chat = engine
        .conversation(imported.conversation.as_str())
        .open_existing()
        .await
        .unwrap();
    chat.save([user("b")]).await.unwrap();
    assert_eq!(texts(&chat).await, ["a", "b"]);
    let again = chat.export(session.format).await.unwrap();
    assert_eq!(
        value(&again),
        value(
            r#"[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"user","content":"b"}]"#
        ),
    );
}

#[tokio::test]
async fn another_conversation_of_that_name_is_left_alone() {
    let engine = engine();
    engine.conversation("mine").open().await.unwrap();
    let session = sessions(r#"[{"role":"user","content":"a"}]"#, "chat.json").remove(0);
    let options = ImportOptions {
        conversation: Some(ConversationId::new("mine").unwrap()),
        ..ImportOptions::default()
    };
    assert_eq!(
        engine.import(&session, &options).await.unwrap_err().kind(),
        "already_exists"
    );
    let chat = engine.conversation("mine").open_existing().await.unwrap();
    let error = chat.export(SessionFormat::SweAgent).await.unwrap_err();
    assert_eq!(error.kind(), "not_imported");
}
