//! Looking after a database: checking, counting, collecting, compacting, copying.

use std::path::Path;
use std::sync::Arc;

use contexture_ir::{CheckpointName, NodeId, ResponseId, StreamId};
use contexture_store::{
    Activation, AppendChunks, AppendRequest, BlobId, CollectRequest, EntityKind, Error,
    ExpectedVersion, KeyScope, Maintenance, NewItem, NodeKind, PutEntry, RefChange, ResponseInputs,
    ResponseRecord, StateKey, StatePatch, Store, verify_conversation,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, node, raw_item};
use rusqlite::Connection;

fn open(path: &Path) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

fn maintenance(chat: &Chat) -> &dyn Maintenance {
    chat.store.maintenance().unwrap()
}

/// What is wrong with a conversation: what, where.
async fn findings(chat: &Chat) -> Vec<(&'static str, String)> {
    let page = verify_conversation(maintenance(chat), &chat.owner, &chat.id)
        .await
        .unwrap();
    assert!(page.checked > 0);
    let places = page.findings.into_iter().map(|finding| match finding {
        Error::Damaged {
            conversation,
            what,
            position,
            ..
        } => {
            assert_eq!(conversation, chat.id);
            (what, position)
        }
        other => panic!("{other}"),
    });
    places.collect()
}

/// Two pages of nodes, forks, state, blobs and names.
async fn fill_conversation(store: Arc<dyn Store>, id: &str) -> Chat {
    let chat = Chat::start_as(store, "ada", id).await;
    let many = (0..600).map(|n| item(&format!("number {n} {}", "word ".repeat(n % 200))));
    chat.append_to_tip("main", many.collect()).await.unwrap();
    for (n, size) in [(0, 10), (1, 1000), (2, 9000)] {
        let name = chat.rewind("main", &first(n), Activation::Keep).await;
        let key = StateKey::new(format!("path/{n}")).unwrap();
        let value = format!("{n}").repeat(size);
        let request = AppendRequest {
            patch: StatePatch::put_entry(key, 1, value.into_bytes()),
            ..AppendRequest::new(
                Chat::at_tip(&name),
                vec![item(&format!("fork {n}")), item(&format!("leaf {n}"))],
                NOW,
            )
        };
        chat.append_request(request).await.unwrap();
    }
    let set = RefChange::SetCheckpoint {
        name: CheckpointName::new("there").unwrap(),
        node: node(&first(7)),
    };
    chat.change_ref(set).await.unwrap();
    add_streams_and_values(&chat).await;
    chat
}

/// An answer computed from the beginning, and one from a node, with what went into it.
async fn answered(chat: &Chat) {
    for (word, base) in [("of nothing", None), ("of a node", Some(node(&first(8))))] {
        let id = ResponseId::derive("response", &[word.as_bytes()]);
        let record = ResponseRecord {
            usage: Some(r#"{"input_tokens":1}"#.into()),
            inputs: ResponseInputs::Recorded(word.repeat(200).into_bytes().into()),
            ..ResponseRecord::new(id, base, NOW)
        };
        let answer = NewItem {
            response: Some(id),
            ..item(word)
        };
        let request = AppendRequest {
            response: Some(record),
            ..AppendRequest::new(Chat::at_tip("main"), vec![answer], NOW)
        };
        chat.append_request(request).await.unwrap();
    }
}

/// Streams, running and ended, and values in all scopes.
async fn add_streams_and_values(chat: &Chat) {
    let streams = chat.store.streams().unwrap();
    for (word, chunks) in [("running", 3), ("empty", 0), ("ended", 2)] {
        let stream = StreamId::derive(word, &[]);
        let opened = streams.open_stream(&chat.owner, &chat.id, stream, NOW);
        let claim = opened.await.unwrap().stream.claim();
        let append = AppendChunks {
            claim,
            seq: 0,
            chunks: (0..chunks)
                .map(|n| format!("{word} {n}").into_bytes().into())
                .collect(),
            at_ms: NOW,
        };
        if chunks > 0 {
            let appended = streams.append_chunks(&chat.owner, &chat.id, append);
            appended.await.unwrap();
        }
    }
    for scope in [
        KeyScope::Owner,
        KeyScope::Resource("r".to_owned()),
        KeyScope::Conversation(chat.id.clone()),
    ] {
        for (key, value) in [("kept", Some(&b"value"[..])), ("gone", None)] {
            let put = PutEntry {
                key: key.to_owned(),
                value: value.map(Arc::from),
                expect: ExpectedVersion::Any,
                at_ms: NOW,
            };
            let put = chat.store.put_entry(&chat.owner, &scope, put);
            put.await.unwrap();
        }
    }
}

/// The word of one of the first nodes.
fn first(n: usize) -> String {
    format!("number {n} {}", "word ".repeat(n % 200))
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_reports_location_of_each_damaged_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checked.db");
    let store = open(&path);
    let (chat, other) = (
        fill_conversation(Arc::clone(&store), "chat").await,
        fill_conversation(store, "other").await,
    );
    answered(&chat).await;
    answered(&other).await;
    assert_eq!(findings(&chat).await, []);
    assert_eq!(findings(&other).await, []);
    assert_eq!(maintenance(&chat).verify_medium().await.unwrap(), [""; 0]);
    drop((chat, other));
    let conn = Connection::open(&path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    let good = std::fs::read(&path).unwrap();
    let row_4 = "id = 1 << 32 | 4";
    for (damage, wanted) in [
        (format!("UPDATE nodes SET item = x'7b7d' WHERE {row_4}"), &[("node", "row 4")][..]),
        (format!("UPDATE nodes SET rest = x'' WHERE {row_4}"), &[("node", "row 4"), ("node", "row 5")]),
        // In `rest`: the check, what is there, segment, depth, messages, turns.
        (format!("UPDATE nodes SET rest = cast(substr(rest, 1, 12) || x'0a' || substr(rest, 14) AS BLOB) WHERE {row_4}"), &[("node", "row 4"), ("node", "row 5")]),
        (format!("UPDATE nodes SET rest = cast(substr(rest, 1, 10) || x'12' || substr(rest, 12) AS BLOB) WHERE {row_4}"), &[("node", "row 4")]),
        // Its own place, the node behind it, and the count.
        (format!("DELETE FROM nodes WHERE {row_4}"), &[("node", "row 5"), ("conversation", "nodes")]),
        ("DELETE FROM search WHERE rowid = 1 << 10 | 4".to_owned(), &[("node", "row 4")]),
        ("UPDATE nodes SET item = x'00' WHERE id - (1 << 32) IN (3, 300, 599)".to_owned(), &[("node", "row 3"), ("node", "row 300"), ("node", "row 599")]),
        ("UPDATE roots SET body = x'00' WHERE id = 1 << 32 | 1".to_owned(), &[("state", "root 1")]),
        ("DELETE FROM state_values WHERE conversation_no = 1 AND value IS NOT NULL".to_owned(), &[("state", "path/0"), ("state", "path/1")]),
        ("UPDATE blobs SET bytes = x'00' WHERE conversation_no = 1".to_owned(), &[("blob", ""), ("blob", "")]),
        ("UPDATE branches SET messages = 33 WHERE id = 1 << 32 | 2".to_owned(), &[("branch", "main-v2")]),
        ("UPDATE checkpoints SET node_id = x'00000000000000000000000000000000' WHERE conversation_no = 1".to_owned(), &[("checkpoint", "there")]),
        ("UPDATE conversations SET active_branch = 77 WHERE no = 1".to_owned(), &[("conversation", "its branches")]),
        ("UPDATE stream_chunks SET chunk = x'00' WHERE conversation_no = 1 AND seq = 1".to_owned(), &[("stream", "epoch 1 chunk 1"), ("stream", "epoch 3 chunk 1")]),
        ("UPDATE stream_chunks SET seq = 9 WHERE conversation_no = 1 AND epoch = 1 AND seq = 2".to_owned(), &[("stream", "epoch 1 chunk 2")]),
        ("DELETE FROM stream_chunks WHERE conversation_no = 1 AND epoch = 1 AND seq = 0".to_owned(), &[("stream", "epoch 1 chunk 0")]),
        ("DELETE FROM stream_chunks WHERE conversation_no = 1 AND epoch = 1 AND seq = 2".to_owned(), &[("stream", "epoch 1")]),
        ("UPDATE streams SET bytes = 1 WHERE id = 1 << 32 | 1".to_owned(), &[("stream", "epoch 1")]),
        ("UPDATE streams SET status = 9 WHERE id = 1 << 32 | 2".to_owned(), &[("stream", "2")]),
        ("UPDATE conversations SET next_epoch = 3 WHERE no = 1".to_owned(), &[("stream", "epoch 3")]),
        ("DELETE FROM streams WHERE id = 1 << 32 | 3".to_owned(), &[("stream", "its chunks")]),
        ("UPDATE key_values SET value = x'00' WHERE scope = 'chat' AND key = 'kept'".to_owned(), &[("value", "kept")]),
        ("UPDATE key_values SET value = NULL WHERE scope = 'chat' AND key = 'kept'".to_owned(), &[("value", "kept")]),
        ("UPDATE key_values SET version = 0 WHERE scope = 'chat' AND key = 'gone'".to_owned(), &[("value", "gone")]),
        ("UPDATE responses SET inputs = x'00' WHERE id = 1 << 32 | 1".to_owned(), &[("response", "")]),
        ("UPDATE responses SET codec = 9 WHERE id = 1 << 32 | 2".to_owned(), &[("response", "")]),
        ("UPDATE responses SET status = 9 WHERE id = 1 << 32 | 2".to_owned(), &[("response", "")]),
        ("UPDATE responses SET usage = x'ff' WHERE id = 1 << 32 | 1".to_owned(), &[("response", "")]),
        ("UPDATE responses SET base_node = x'00000000000000000000000000000000' WHERE id = 1 << 32 | 2".to_owned(), &[("response", "row 2")]),
        ("UPDATE responses SET base_node = x'00' WHERE id = 1 << 32 | 2".to_owned(), &[("response", "row 2")]),
        ("UPDATE key_values SET key = '' WHERE scope = 'chat' AND key = 'kept'".to_owned(), &[("value", "")]),
    ] {
        let path = directory.path().join("damaged.db");
        std::fs::write(&path, &good).unwrap();
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("DROP TRIGGER search_deleted").unwrap();
        assert!(conn.execute(&damage, []).unwrap() > 0, "{damage}");
        drop(conn);
        let store = open(&path);
        let of = |id: &str| Chat {
            store: Arc::clone(&store),
            owner: "ada".parse().unwrap(),
            id: id.parse().unwrap(),
        };
        let found = findings(&of("chat")).await;
        assert_eq!(found.len(), wanted.len(), "{damage}: {found:?}");
        for ((what, place), wanted) in found.iter().zip(wanted) {
            assert!(*what == wanted.0 && place.contains(wanted.1), "{damage}: {found:?}");
        }
        assert_eq!(findings(&of("other")).await, [], "{damage}");
        drop(store);
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(directory.path().join(format!("damaged.db{ending}")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_no_conversation_are_checked_with_the_medium() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("values.db");
    let chat = Chat::start_as(open(&path), "ada", "chat").await;
    add_streams_and_values(&chat).await;
    assert_eq!(maintenance(&chat).verify_medium().await.unwrap(), [""; 0]);
    let conn = Connection::open(&path).unwrap();
    for (damage, wanted) in [
        (
            "UPDATE key_values SET value = x'00' WHERE scope_kind = 0 AND key = 'kept'",
            1,
        ),
        ("UPDATE key_values SET version = -1 WHERE scope = 'r'", 3),
        ("UPDATE key_values SET scope_kind = 7 WHERE scope = 'r'", 3),
        // A conversation's are checked with it.
        (
            "UPDATE key_values SET value = x'00' WHERE scope_kind = 2 AND key = 'kept'",
            3,
        ),
    ] {
        assert!(conn.execute(damage, []).unwrap() > 0, "{damage}");
        let lines = maintenance(&chat).verify_medium().await.unwrap();
        assert_eq!(lines.len(), wanted, "{damage}: {lines:?}");
        assert!(
            lines.iter().all(|line| line.contains("of key_values")),
            "{lines:?}"
        );
    }
    assert_eq!(findings(&chat).await, [("value", "kept".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_count_a_conversation() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("counted.db"));
    let chat = fill_conversation(store, "chat").await;
    let counted = maintenance(&chat)
        .read_statistics(&chat.owner, &chat.id)
        .await
        .unwrap();
    let users = counted.nodes[&NodeKind::User];
    assert_eq!((users.count, counted.nodes.len()), (606, 1));
    assert_eq!((counted.roots.count, counted.names), (3, 5));
    assert_eq!((counted.values.count, counted.blobs.count), (3, 1));
    assert!(counted.blobs.bytes < 9000, "it is compressed");
    assert!(users.bytes > 10_000 && counted.events > 6 && counted.segments > 3);
    let none = "bob".parse().unwrap();
    let error = maintenance(&chat)
        .read_statistics(&none, &chat.id)
        .await
        .unwrap_err();
    let theirs = maintenance(&chat)
        .verify_page(&none, &chat.id, None)
        .await
        .unwrap_err();
    let request = CollectRequest::new(NOW);
    let blobs = maintenance(&chat)
        .collect_blobs(&none, &chat.id, request)
        .await
        .unwrap_err();
    for error in [error, theirs, blobs] {
        let hidden = matches!(
            error,
            Error::NotFound {
                what: EntityKind::Conversation,
                ..
            }
        );
        assert!(hidden, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_that_nothing_names_go_after_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let chat = Chat::start(open(&directory.path().join("collected.db"))).await;
    let put = async |bytes: &str| -> BlobId {
        let bytes = Arc::from(bytes.as_bytes());
        chat.store
            .put_blob(&chat.owner, &chat.id, bytes)
            .await
            .unwrap()
    };
    let collect = async |now_ms: i64, limit: usize| {
        let request = CollectRequest {
            limit,
            ..CollectRequest::new(now_ms)
        };
        let done = maintenance(&chat)
            .collect_blobs(&chat.owner, &chat.id, request)
            .await
            .unwrap();
        (done.blobs.count, done.waiting, done.more)
    };
    let there = async |id: BlobId| {
        chat.store
            .read_blob(&chat.owner, &chat.id, id)
            .await
            .is_ok()
    };
    let hour = 3_600_000;
    let by_item = put("named by an item").await;
    let by_state = put("named by a large value").await;
    let (lost, again, late) = (put("lost").await, put("again").await, put("late").await);
    chat.append_to_tip(
        "main",
        vec![raw_item(
            "a",
            &format!("{{\"url\":\"context://vfs/{by_item}\"}}"),
        )],
    )
    .await
    .unwrap();
    let request = AppendRequest {
        patch: StatePatch::put_entry(
            StateKey::new("plan").unwrap(),
            1,
            format!("{} {by_state}", "long ".repeat(2000)).into_bytes(),
        ),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("b")], NOW)
    };
    chat.append_request(request).await.unwrap();
    assert_eq!(collect(NOW, 10).await, (0, 3, false));
    assert_eq!(collect(NOW + hour - 1, 10).await, (0, 3, false));
    put("again").await;
    chat.append_to_tip("main", vec![raw_item("c", &format!("\"{late}\""))])
        .await
        .unwrap();
    let spare = put("spare").await;
    assert_eq!(collect(NOW + hour, 10).await, (1, 2, false));
    for (id, kept) in [
        (by_item, true),
        (by_state, true),
        (lost, false),
        (again, true),
        (late, true),
        (spare, true),
    ] {
        assert_eq!(there(id).await, kept);
    }
    assert_eq!(collect(NOW + 2 * hour, 1).await, (1, 0, true));
    assert_eq!(collect(NOW + 2 * hour, 1).await, (1, 0, false));
    assert!(there(by_item).await && there(by_state).await && there(late).await);
    assert_eq!(findings(&chat).await, []);
}

/// Bytes that do not compress.
fn noise(n: usize) -> NewItem {
    let ids =
        (0..2000_usize).map(|m| NodeId::derive("noise", &[&n.to_le_bytes(), &m.to_le_bytes()]));
    raw_item(
        &format!("noise {n}"),
        &format!("\"{}\"", ids.map(|id| id.to_string()).collect::<String>()),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_space_is_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("compacted.db");
    for written_before in [false, true] {
        let store = open(&path);
        let chat = Chat::start_as(Arc::clone(&store), "ada", "gone").await;
        chat.append_to_tip("main", (0..40).map(noise).collect())
            .await
            .unwrap();
        let stays = fill_conversation(Arc::clone(&store), "stays").await;
        drop(store);
        chat.store
            .delete_conversation(&chat.owner, &chat.id)
            .await
            .unwrap();
        let seen = stays.snapshot_text().await;
        if written_before {
            drop((chat, stays));
            // As a database is that was made without giving space back.
            let conn = Connection::open(&path).unwrap();
            conn.execute_batch("PRAGMA auto_vacuum = none; VACUUM")
                .unwrap();
            drop(conn);
            let chat = Chat::start_as(open(&path), "ada", "gone").await;
            chat.append_to_tip("main", (0..40).map(noise).collect())
                .await
                .unwrap();
            chat.store
                .delete_conversation(&chat.owner, &chat.id)
                .await
                .unwrap();
        }
        let stays = Chat {
            store: open(&path),
            owner: "ada".parse().unwrap(),
            id: "stays".parse().unwrap(),
        };
        let done = maintenance(&stays).compact_storage().await.unwrap();
        assert!(done.after + 1_000_000 < done.before, "{done:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), done.after);
        assert_eq!(stays.snapshot_text().await, seen);
        assert_eq!(maintenance(&stays).verify_medium().await.unwrap(), [""; 0]);
        stays
            .store
            .delete_conversation(&stays.owner, &stays.id)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_made_while_others_write_is_a_whole_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("live.db"));
    let mut chats = Vec::new();
    for n in 0..8 {
        chats.push(Chat::start_as(Arc::clone(&store), "ada", &format!("chat-{n}")).await);
    }
    let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
    let writers: Vec<_> = chats
        .iter()
        .cloned()
        .map(|chat| {
            let told = told.clone();
            tokio::spawn(async move {
                for n in 0..60 {
                    chat.append_messages("main", &[&format!("{n}")]).await;
                    told.send(()).unwrap();
                }
            })
        })
        .collect();
    let mut copies = Vec::new();
    for n in 0..3 {
        for _ in 0..80 {
            tells.recv().await.unwrap();
        }
        let mut before = Vec::new();
        for chat in &chats {
            before.push(chat.branch_record("main").await.nodes);
        }
        let to = directory.path().join(format!("copy-{n}.db"));
        let copied = store.maintenance().unwrap().back_up(&to).await.unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().len(), copied.bytes);
        copies.push((to, before));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for (to, before) in &copies {
        let copy = open(to);
        assert_eq!(
            copy.maintenance().unwrap().verify_medium().await.unwrap(),
            [""; 0]
        );
        for (chat, before) in chats.iter().zip(before) {
            let chat = Chat {
                store: Arc::clone(&copy),
                ..chat.clone()
            };
            let nodes = chat.branch_record("main").await.nodes;
            assert!(nodes >= *before, "{nodes} of {before} acknowledged");
            let words: Vec<String> = (0..nodes).map(|n| n.to_string()).collect();
            chat.expect_path(
                "main",
                &words.iter().map(String::as_str).collect::<Vec<_>>(),
            )
            .await;
            assert_eq!(findings(&chat).await, []);
            chat.append_messages("main", &["and on"]).await;
        }
    }
    // Nothing is overwritten, and nothing is left of what could not be.
    let (to, _) = &copies[0];
    let upkeep = store.maintenance().unwrap();
    let error = upkeep.back_up(to).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::AlreadyExists {
                what: EntityKind::File,
                ..
            }
        ),
        "{error}"
    );
    let missing = directory.path().join("missing/copy.db");
    assert!(matches!(
        upkeep.back_up(&missing).await.unwrap_err(),
        Error::Storage { .. }
    ));
    let parts = std::fs::read_dir(directory.path()).unwrap();
    let parts = parts.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".part")
    });
    assert_eq!(parts.count(), 0);
}
