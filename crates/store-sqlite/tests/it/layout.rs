//! What lies in the file: nothing after a deletion, little beside the items, short paths.

use std::path::Path;
use std::sync::Arc;

use contexture_ir::{CheckpointName, StreamId};
use contexture_store::{
    Activation, AppendChunks, AppendRequest, ExpectedVersion, KeyScope, PutEntry, RefChange,
    StateChange, StateKey, StatePatch, Store,
};
use contexture_store_sqlite::{FORMAT, SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch, item, node, raw_item};
use rusqlite::Connection;

fn count(conn: &Connection, table: &str) -> i64 {
    conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
        row.get(0)
    })
    .unwrap()
}

/// Every table that holds data of conversations.
fn tables(conn: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'format' \
               AND name NOT LIKE 'sqlite_%' \
               AND name NOT IN ('search_data', 'search_idx', 'search_config', 'search_state', 'processes', \
               'calls', 'call_sums', \
               'search_titles_data', 'search_titles_idx', 'search_titles_config')";
    let mut statement = conn.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

async fn fill(chat: &Chat) {
    let secret = "secret ".repeat(2000);
    let request = AppendRequest {
        patch: StatePatch {
            changes: vec![
                StateChange::put_entry(StateKey::new("small").unwrap(), 1, *b"secret value"),
                StateChange::put_entry(
                    StateKey::new("large").unwrap(),
                    1,
                    secret.clone().into_bytes(),
                ),
            ],
            from: 0,
        },
        blobs: vec![Arc::from(secret.as_bytes())],
        ..AppendRequest::new(
            Chat::at_tip("main"),
            vec![item("a"), raw_item("b", &secret), item("secret")],
            NOW,
        )
    };
    chat.append_request(request).await.unwrap();
    chat.rewind("main", "a", Activation::Keep).await;
    let set = RefChange::SetCheckpoint {
        name: CheckpointName::new("secret name").unwrap(),
        node: node("a"),
    };
    chat.change_ref(set).await.unwrap();
    let put = PutEntry {
        key: "k".to_owned(),
        value: Some(Arc::from(*b"secret entry")),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    let scope = KeyScope::Conversation(chat.id.clone());
    chat.store
        .put_entry(&chat.owner, &scope, put)
        .await
        .unwrap();
    let streams = chat.store.streams().unwrap();
    let stream = StreamId::derive("layout", &[]);
    let opened = streams.open_stream(&chat.owner, &chat.id, stream, NOW);
    let append = AppendChunks {
        claim: opened.await.unwrap().stream.claim(),
        seq: 0,
        chunks: vec![Arc::from(*b"secret chunk")],
        at_ms: NOW,
    };
    let appended = streams.append_chunks(&chat.owner, &chat.id, append);
    appended.await.unwrap();
    let mut update = contexture_store::ConversationUpdate::new(NOW);
    update.title = contexture_store::TitleChange::Set(Some("secret zqxjk".to_owned()));
    update.metadata = contexture_store::MetadataChange::Replace(
        [(
            "k".to_owned(),
            contexture_ir::Raw::string("secret metadata"),
        )]
        .into(),
    );
    chat.store
        .update_conversation(&chat.owner, &chat.id, update)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_conversation_leaves_no_row_and_no_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deleted.db");
    let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    fill(&chat).await;
    let conn = Connection::open(&path).unwrap();
    // Rows that later versions will write belong to the conversation as well.
    conn.execute_batch(
        "INSERT INTO responses (id, response_id, status) VALUES (1 << 32 | 1, x'00', 0);
         INSERT INTO runs (id, run, status) VALUES (1 << 32 | 1, x'00', 0);
         INSERT INTO path_index VALUES ('ada', 1, x'00', 1, 1, 1);
         INSERT INTO exchanges VALUES ('ada', x'00', x'00', 1, 1);",
    )
    .unwrap();
    for table in tables(&conn) {
        let tested = count(&conn, &table) > 0 || table == "deletions";
        assert!(tested, "{table} is not tested");
    }
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    for table in tables(&conn) {
        assert_eq!(count(&conn, &table), 0, "{table}");
    }
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop((conn, chat));
    let bytes = std::fs::read(&path).unwrap();
    // The second is a gram of the title.
    for text in [&b"secret"[..], b"zqx"] {
        let mut places = bytes.windows(text.len()).filter(|place| *place == text);
        assert!(places.next().is_none(), "deleted text is still in the file");
    }
}

/// A store that does not wait for the disk: these tests count bytes and rows.
fn open(path: &Path) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

/// Five layers of state of which one changes with every node, empty items: what is left is the
/// tree's own cost.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_state_costs_little() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.db");
    let chat = Chat::start(open(&path)).await;
    let nodes = 4000;
    for n in 0..nodes / 4 {
        let items = (0..4)
            .map(|m| raw_item(&format!("{n} {m}"), "{}"))
            .collect();
        let key = StateKey::new(format!("path/layer-{}", n % 5)).unwrap();
        let request = AppendRequest {
            patch: StatePatch::put_entry(key, 1, format!("value {n}").into_bytes()),
            ..AppendRequest::new(Chat::at_tip("main"), items, NOW)
        };
        chat.append_request(request).await.unwrap();
    }
    let conn = Connection::open(&path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len() / nodes;
    assert!(bytes <= 300, "{bytes} bytes a node");
}

/// Two branches that grow in turns share no run of keys, and still have few segments.
#[tokio::test(flavor = "multi_thread")]
async fn alternating_branches_have_short_paths() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("turns.db");
    let chat = Chat::start(open(&path)).await;
    chat.append_messages("main", &["root"]).await;
    chat.rewind("main", "root", Activation::Keep).await;
    for n in 0..1000 {
        for name in ["main", "main-v2"] {
            chat.append_messages(name, &[&format!("{name} {n}")]).await;
        }
    }
    let conn = Connection::open(&path).unwrap();
    let segments = count(&conn, "segments");
    assert!(segments <= 12, "{segments} segments");
    assert_eq!(chat.branch_record("main-v2").await.nodes, 1001);
    // Without a fork one branch has its positions to itself.
    chat.change_ref(RefChange::DeleteBranch(branch("main-v2")))
        .await
        .unwrap();
    assert_eq!(count(&conn, "branches"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_set_up_for_safety() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("settings.db");
    let _chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
    let conn = Connection::open(&path).unwrap();
    let text = |pragma: &str| -> String {
        conn.query_row(
            &format!("SELECT cast({pragma} AS TEXT) FROM pragma_{pragma}"),
            [],
            |row| row.get(0),
        )
        .unwrap()
    };
    assert_eq!(text("journal_mode"), "wal");
    assert_eq!(text("page_size"), "8192");
    assert_eq!(
        text("application_id"),
        i32::from_be_bytes(*b"CTXR").to_string()
    );
    assert_eq!(text("user_version"), FORMAT.to_string());
}
