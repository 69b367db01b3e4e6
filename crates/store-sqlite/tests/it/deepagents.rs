//! Databases of another program: read, and never touched.

use std::collections::BTreeMap;
use std::path::Path;

use contexture_store::Error;
use contexture_store_sqlite::{DeepAgentsFile, is_sqlite};
use contexture_testdata as data;
use rusqlite::Connection;

const TABLES: &str = "CREATE TABLE chats (id TEXT); CREATE TABLE messages (id TEXT, chatId TEXT); \
     CREATE TABLE branches (chatId TEXT); CREATE TABLE checkpoints (chatId TEXT);";

fn made(path: &Path) {
    std::fs::write(path, data::read_bytes("deepagents-context/chats.db.gz")).unwrap();
}

fn chats(path: &Path) -> Result<Vec<String>, Error> {
    let mut file = DeepAgentsFile::open(path)?;
    let mut chats = Vec::new();
    while let Some(chat) = file.next_chat()? {
        chats.push(chat);
    }
    Ok(chats)
}

/// Every file of a directory with its bytes.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap();
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    };
    entries.map(read).collect()
}

#[test]
fn reading_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a b%3f?#.db");
    made(&path);
    let before = files(directory.path());
    let read = chats(&path).unwrap();
    assert_eq!(read.len(), 5);
    assert!(
        read[0].starts_with(r#"{"chat":{"id":"support-42","userId":"ada@example.org","title":"#)
    );
    assert!(files(directory.path()) == before);
}

#[test]
fn a_database_that_is_open_elsewhere_is_read_as_of_one_instant() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chats.db");
    made(&path);
    let writer = Connection::open(&path).unwrap();
    let title = |title: &str| {
        let changed = writer.execute("UPDATE chats SET title = ?", [title]);
        assert_eq!(changed.unwrap(), 5);
    };
    title("only in the log");
    let mut file = DeepAgentsFile::open(&path).unwrap();
    let first = file.next_chat().unwrap().unwrap();
    assert!(first.contains("only in the log"), "{first}");
    title("later");
    let second = file.next_chat().unwrap().unwrap();
    assert!(second.contains("only in the log"), "{second}");
}

#[test]
fn other_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.db");
    std::fs::write(&path, "SQLite").unwrap();
    assert!(!is_sqlite(&path).unwrap());
    assert!(is_sqlite(&directory.path().join("none")).is_err());
    assert!(matches!(chats(&path), Err(Error::Storage { .. })));
    assert!(matches!(
        DeepAgentsFile::open(&directory.path().join("none")),
        Err(Error::Storage { .. })
    ));
    for (missing, instead) in [
        ("messages", ""),
        // What would be computed without end.
        (
            "messages",
            "CREATE VIEW messages AS WITH RECURSIVE n(chatId) AS \
             (SELECT 'c' UNION ALL SELECT 'c' FROM n) SELECT chatId FROM n",
        ),
        (
            "branches",
            "CREATE VIRTUAL TABLE branches USING fts5(chatId)",
        ),
    ] {
        let path = directory.path().join("other.db");
        let _ = std::fs::remove_file(&path);
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(TABLES).unwrap();
        conn.execute_batch(&format!("DROP TABLE {missing}; {instead}"))
            .unwrap();
        drop(conn);
        assert!(is_sqlite(&path).unwrap());
        let error = chats(&path).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert!(error.to_string().contains(missing), "{error}");
    }
}

#[test]
fn values_that_are_no_text_are_told_by_their_size() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(TABLES).unwrap();
    conn.execute_batch(
        "INSERT INTO chats VALUES ('c'), (NULL), (x'00'); INSERT INTO messages VALUES \
         (cast(x'ff' AS TEXT), 'c'), (x'0102', 'c'), (7, 'c'), (1e999, 'c'), (NULL, 'c'), ('ä\"', 'c')",
    )
    .unwrap();
    drop(conn);
    let messages = r#"[{"id":{"bytes":1},"chatId":"c"},{"id":{"bytes":2},"chatId":"c"},{"id":"7","chatId":"c"},{"id":"Inf","chatId":"c"},{"id":null,"chatId":"c"},{"id":"ä\"","chatId":"c"}]"#;
    let expected = [
        format!(r#"{{"chat":{{"id":"c"}},"messages":{messages},"branches":[],"checkpoints":[]}}"#),
        r#"{"chat":{"id":null},"messages":[],"branches":[],"checkpoints":[]}"#.to_owned(),
        r#"{"chat":{"id":{"bytes":1}},"messages":[],"branches":[],"checkpoints":[]}"#.to_owned(),
    ];
    assert_eq!(chats(&path).unwrap(), expected);
}

/// Flips single bits all over the file: what is read then is JSON, or an error, and it ends.
#[test]
fn flipped_bits_end_in_chats_or_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flips.db");
    let good = data::read_bytes("deepagents-context/chats.db.gz");
    let (mut read, mut refused) = (0, 0);
    let mut state = 20_261_121_u64;
    for _ in 0..400 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bit = usize::try_from(state >> 20).unwrap() % (good.len() * 8);
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bad).unwrap();
        let Ok(mut file) = DeepAgentsFile::open(&path) else {
            refused += 1;
            continue;
        };
        let mut calls = 0;
        loop {
            calls += 1;
            assert!(calls < 100, "bit {bit}");
            match file.next_chat() {
                Ok(Some(chat)) => {
                    let _: serde_json::Value = serde_json::from_str(&chat).unwrap();
                    read += 1;
                }
                Ok(None) => break,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 1000 && refused > 0, "{read} read, {refused} refused");
}
