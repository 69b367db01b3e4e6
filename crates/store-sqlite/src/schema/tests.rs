//! A database of the first format is brought to this one, whenever the process dies over it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture_ir::Owner;
use contexture_store::{
    ListConversations, ListEntries, MetadataFilter, NodeKind, NodeQuery, PathEnd, ReadRequest,
};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{branch_end, item, node};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::schema::{FORMAT, migrate_watched};

const DUMP: &str = include_str!("../../tests/fixtures/format-1/dump.sql");

fn format_1(directory: &Path) -> PathBuf {
    let path = directory.join("format-1.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(DUMP).unwrap();
    let mode: String = conn
        .query_row("PRAGMA journal_mode = wal", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    path
}

fn format_of(path: &Path) -> u32 {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap()
}

fn open_chat(path: &Path, owner: &str) -> Chat {
    Chat {
        store: Arc::new(SqliteStore::open(path).unwrap()),
        owner: Owner::new(owner).unwrap(),
        id: "chat".parse().unwrap(),
    }
}

#[tokio::test]
async fn a_database_of_format_1_is_read_and_written_on() {
    let directory = tempfile::tempdir().unwrap();
    is_read_and_written_on(&format_1(directory.path()), 1).await;
}

#[tokio::test]
async fn databases_of_later_formats_are_read_and_written_on() {
    let kept: [(u32, &[u8]); 2] = [
        (
            7,
            include_bytes!("../../tests/fixtures/format-7/database.db"),
        ),
        (
            10,
            include_bytes!("../../tests/fixtures/format-10/database.db"),
        ),
    ];
    for (format, bytes) in kept {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.db");
        std::fs::write(&path, bytes).unwrap();
        is_read_and_written_on(&path, format).await;
    }
}

async fn is_read_and_written_on(path: &Path, format: u32) {
    assert_eq!(format_of(path), format);
    let chat = open_chat(path, "ada");
    assert_eq!(format_of(path), FORMAT);

    let main = ["one", "two", "three", "four", "five"];
    chat.expect_path("main-v2", &["one", "two", "three again", "six"])
        .await;
    chat.expect_path("main-v3", &[&main[..], &["late"]].concat())
        .await;
    let whole = [&main[..], &["compaction", "seven"]].concat();
    chat.expect_path("main", &whole).await;
    let shown = chat.branch_record("main").await;
    assert_eq!((shown.fence.0, shown.compacted), (1, 6));
    let state = chat.state_values(branch_end("main")).await;
    assert_eq!(state[0].2, "x".repeat(5000));
    assert_eq!(
        state[1],
        ("path/notes".into(), 2, "remember the milk".into())
    );
    let before = PathEnd::Checkpoint("before".parse().unwrap());
    assert_eq!(chat.path_nodes(before).await.len(), 2);
    let page = chat.store.list_entries(&chat.owner, ListEntries::default());
    let entries = page.await.unwrap().entries;
    let keys: Vec<&str> = entries.iter().map(|(_, entry)| &*entry.key).collect();
    assert_eq!(keys, ["settings", "profile", "draft"]);

    // What the new format can ask for is filled in.
    for (filter, found) in [
        (MetadataFilter::field_equals("project", "aurora"), 1),
        (MetadataFilter::field_equals("priority", 3.0), 1),
        (MetadataFilter::field_equals("open", false), 0),
    ] {
        let list = ListConversations {
            metadata: Some(filter.unwrap()),
            title: Some("ZÜRICH".to_owned()),
            ..ListConversations::default()
        };
        let page = chat
            .store
            .list_conversations(&chat.owner, list)
            .await
            .unwrap();
        assert_eq!(page.conversations.len(), found);
    }
    for (query, found) in [
        (NodeQuery::CopiesOf(node("three")), "three again"),
        (NodeQuery::Kind(NodeKind::Compaction), "compaction"),
    ] {
        let nodes = chat.store.find_nodes(&chat.owner, &chat.id, query).await;
        let ids: Vec<_> = nodes.unwrap().iter().map(|node| node.id).collect();
        assert_eq!(ids, [node(found)]);
    }

    // An append of before is recognised, and new ones follow.
    assert!(
        chat.append_messages("main-v2", &["three again", "six"])
            .await
            .replayed
    );
    chat.append_to_tip("main", vec![item("eight")])
        .await
        .unwrap();
    let read = chat
        .read_path(ReadRequest::last_nodes(branch_end("main"), 1))
        .await
        .unwrap();
    assert_eq!(read.depth, 8);
}

/// Copies what a process that dies now would leave: a file system keeps what was written.
fn copy_database(path: &Path, to: &Path) -> PathBuf {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    for ending in ["", "-wal", "-journal"] {
        let file = format!("{name}{ending}");
        let from = path.with_file_name(&file);
        if from.exists() {
            std::fs::copy(from, to.join(file)).unwrap();
        }
    }
    to.join(name)
}

#[tokio::test]
async fn a_migration_killed_at_any_statement_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let clean = format_1(directory.path());
    let mut wanted = Vec::new();
    for owner in ["ada", "bob"] {
        let chat = open_chat(&clean, owner);
        wanted.push((chat.snapshot_text().await, chat.event_kinds().await));
    }

    let home = tempfile::tempdir().unwrap();
    let path = format_1(home.path());
    let mut killed = Vec::new();
    let mut conn = Connection::open(&path).unwrap();
    // So that half of a transaction reaches the files.
    conn.pragma_update(None, "cache_size", 1).unwrap();
    migrate_watched(&mut conn, &path, &mut |_| {
        let to = tempfile::tempdir().unwrap();
        let copied = copy_database(&path, to.path());
        killed.push((to, copied));
    })
    .unwrap();
    assert!(killed.len() > 8, "{} statements", killed.len());
    for (_, copied) in &killed {
        assert_eq!(format_of(copied), 1, "a step is seen before it is whole");
        for (owner, wanted) in ["ada", "bob"].into_iter().zip(&wanted) {
            let chat = open_chat(copied, owner);
            assert_eq!(
                (chat.snapshot_text().await, chat.event_kinds().await),
                *wanted
            );
        }
        assert_eq!(format_of(copied), FORMAT);
    }
}

#[test]
fn a_lowered_format_number_is_named_as_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lowered.db");
    drop(SqliteStore::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 5).unwrap();
    drop(conn);
    let error = SqliteStore::open(&path).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.starts_with("its user_version says format 5"),
        "{source}"
    );
    assert_eq!(error.kind(), "storage");
}
