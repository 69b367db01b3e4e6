//! Damaged bytes are reported, never returned.

use std::path::Path;
use std::sync::Arc;

use contexture_ir::StreamId;
use contexture_store::{
    AppendChunks, AppendRequest, Error, ExpectedVersion, KeyScope, PutEntry, ReadChunks,
    ReadRequest, StateKey, StatePatch, StateRequest, Store as _, verify_conversation,
};
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch_end, item};
use rusqlite::Connection;

async fn filled(path: &Path, id: &str) -> Chat {
    let chat = Chat::start_as(Arc::new(SqliteStore::open(path).unwrap()), "ada", id).await;
    let large = StatePatch::put_entry(StateKey::new("large").unwrap(), 1, vec![7_u8; 5000]);
    let small = StatePatch::put_entry(StateKey::new("small").unwrap(), 1, *b"small");
    for (word, patch) in [("a", large), ("b", small), ("c", StatePatch::default())] {
        let request = AppendRequest {
            patch,
            ..AppendRequest::new(Chat::at_tip("main"), vec![item(word)], NOW)
        };
        chat.append_request(request).await.unwrap();
    }
    chat
}

async fn read(chat: &Chat) -> Result<(), Error> {
    chat.read_path(ReadRequest::whole_path(branch_end("main")))
        .await?;
    let state = StateRequest::all_entries(branch_end("main"));
    chat.store.read_state(&chat.owner, &chat.id, state).await?;
    Ok(())
}

/// Each change of a stored row (in `rest`: the check, what is there, segment, depth, …), made behind the store's back, and where it is to be reported.
#[tokio::test(flavor = "multi_thread")]
async fn every_damaged_row_is_reported_with_its_place() {
    let swap = "replace(cast(item AS TEXT), 'b', 'x')";
    for (damage, what, position) in [
        (
            format!("UPDATE nodes SET item = cast({swap} AS BLOB) WHERE id & 255 = 2"),
            "node",
            "depth 2",
        ),
        (
            "UPDATE nodes SET item = x'00' WHERE id & 255 = 3".to_owned(),
            "node",
            "depth 3",
        ),
        (
            "UPDATE nodes SET codec = 9 WHERE id & 255 = 1".to_owned(),
            "node",
            "depth 1",
        ),
        (
            "UPDATE nodes SET kind = 99 WHERE id & 255 = 1".to_owned(),
            "node",
            "depth 1",
        ),
        (
            "UPDATE nodes SET rest = cast(substr(rest, 1, 15) || x'08' || substr(rest, 17) AS BLOB) WHERE id & 255 = 1".to_owned(),
            "node",
            "depth 1",
        ),
        (
            "UPDATE nodes SET rest = cast(substr(rest, 1, 10) || x'0e' || substr(rest, 12) AS BLOB) WHERE id & 255 = 2".to_owned(),
            "node",
            "depth 2",
        ),
        (
            "UPDATE nodes SET rest = cast(substr(rest, 1, 18) || x'ff' || substr(rest, 20) AS BLOB) WHERE id & 255 = 2".to_owned(),
            "node",
            "depth 2",
        ),
        (
            "UPDATE nodes SET rest = substr(rest, 2) WHERE id & 255 = 2".to_owned(),
            "node",
            "depth 2",
        ),
        (
            "DELETE FROM nodes WHERE id & 255 = 3".to_owned(),
            "path",
            "depths 1 to 3",
        ),
        (
            "UPDATE roots SET body = x'0000'".to_owned(),
            "state",
            "root 2",
        ),
        (
            "DELETE FROM roots WHERE base IS NULL".to_owned(),
            "state",
            "root",
        ),
        (
            "UPDATE state_values SET value = x'00' WHERE value IS NOT NULL".to_owned(),
            "state",
            "small",
        ),
        ("UPDATE blobs SET bytes = x'00'".to_owned(), "blob", ""),
        ("DELETE FROM state_values".to_owned(), "state", ""),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.db");
        let chat = filled(&path, "chat").await;
        let other = filled(&path, "other").await;
        let conn = Connection::open(&path).unwrap();
        let first = format!("{damage} {}", scope(&damage));
        assert!(conn.execute(&first, []).unwrap() > 0, "{first}");
        match read(&chat).await.unwrap_err() {
            Error::Damaged {
                conversation,
                what: got,
                position: at,
                ..
            } => {
                assert_eq!(conversation.as_str(), "chat");
                assert_eq!(got, what, "{damage}");
                assert!(at.starts_with(position), "{damage}: {at}");
            }
            error => panic!("{damage}: {error}"),
        }
        read(&other).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_chunks_are_reported() {
    for (damage, position) in [
        (
            "UPDATE stream_chunks SET chunk = x'00' WHERE seq = 1",
            "epoch 1 chunk 1",
        ),
        (
            "UPDATE stream_chunks SET chunk = (SELECT chunk FROM stream_chunks WHERE seq = 0), \
          chunk_check = (SELECT chunk_check FROM stream_chunks WHERE seq = 0) WHERE seq = 1",
            "epoch 1 chunk 1",
        ),
        ("DELETE FROM stream_chunks WHERE seq = 0", "epoch 1 chunk 0"),
        ("DELETE FROM stream_chunks WHERE seq = 2", "epoch 1 chunk 2"),
        ("UPDATE streams SET status = 9", "1"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.db");
        let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
        let streams = chat.store.streams().unwrap();
        let stream = StreamId::derive("damage", &[]);
        let opened = streams.open_stream(&chat.owner, &chat.id, stream, NOW);
        let append = AppendChunks {
            claim: opened.await.unwrap().stream.claim(),
            seq: 0,
            chunks: vec![Arc::from(*b"a"), Arc::from(*b"b"), Arc::from(*b"c")],
            at_ms: NOW,
        };
        let appended = streams.append_chunks(&chat.owner, &chat.id, append);
        appended.await.unwrap();
        let conn = Connection::open(&path).unwrap();
        assert_eq!(conn.execute(damage, []).unwrap(), 1, "{damage}");
        let read = streams.read_chunks(&chat.owner, &chat.id, ReadChunks::new(stream));
        match read.await.unwrap_err() {
            Error::Damaged {
                what, position: at, ..
            } => assert_eq!((what, at.as_str()), ("stream", position), "{damage}"),
            error => panic!("{damage}: {error}"),
        }
        // It can still be got rid of.
        let deleted = streams.delete_stream(&chat.owner, &chat.id, stream);
        deleted.await.unwrap();
        let left = streams.list_streams(&chat.owner, &chat.id);
        assert!(left.await.unwrap().is_empty());
    }
}

/// Confines a statement to the first conversation.
fn scope(damage: &str) -> &'static str {
    let keyed = ["nodes", "roots"]
        .iter()
        .any(|table| damage.contains(table));
    match (keyed, damage.contains("WHERE")) {
        (true, true) => "AND id >> 32 = 1",
        (true, false) => "WHERE id >> 32 = 1",
        (false, true) => "AND conversation_no = 1",
        (false, false) => "WHERE conversation_no = 1",
    }
}

/// Flips single bits all over the file: what is then read is what was written, or an error.
#[test]
fn flipped_bits_never_change_what_is_read() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flips.db");
    let words: Vec<String> = (0..120)
        .map(|n| {
            // From a few bytes that stay as they are to some thousand that are compressed.
            let numbers = (0..n * 5).map(|m| format!(" {}", n * m));
            format!("word {n} {}", numbers.collect::<String>())
        })
        .collect();
    let (wanted, wanted_beside) = runtime.block_on(async {
        let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
        chat.append_to_tip("main", words.iter().map(|word| item(word)).collect())
            .await
            .unwrap();
        fill_beside(&chat).await;
        (
            chat.path_nodes(branch_end("main")).await,
            beside(&chat).await.unwrap(),
        )
    });
    let good = closed(&path);
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let (mut reported, mut harmless) = (0, 0);
    let mut state = 20_261_120_u64;
    for _ in 0..if soak { 3000 } else { 150 } {
        // A small linear generator: the same places in every run.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bit = usize::try_from(state >> 20).unwrap() % (good.len() * 8);
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bad).unwrap();
        let read = runtime.block_on(async {
            let store = SqliteStore::open(&path)?;
            let chat = Chat {
                store: Arc::new(store),
                owner: "ada".parse().unwrap(),
                id: "chat".parse().unwrap(),
            };
            let page = chat
                .read_path(ReadRequest::whole_path(branch_end("main")))
                .await;
            if let Ok(got) = beside(&chat).await {
                let mut pairs = got.iter().zip(&wanted_beside);
                // A stream's counters and a key have no check: then something is not found.
                let same = pairs.all(|(got, wanted)| got.is_none() || got == wanted);
                assert!(same, "bit {bit} changed a chunk or a value");
            }
            page
        });
        match read {
            Err(_) => reported += 1,
            Ok(page) => {
                let pairs = page.nodes.iter().zip(&wanted);
                assert_eq!(page.nodes.len(), wanted.len(), "bit {bit}");
                for (got, wanted) in pairs {
                    assert!(
                        got.json == wanted.json,
                        "bit {bit} changed depth {}",
                        got.depth
                    );
                }
                harmless += 1;
            }
        }
        for suffix in ["-wal", "-shm"] {
            let mut side = path.clone().into_os_string();
            side.push(suffix);
            let _ = std::fs::remove_file(side);
        }
    }
    assert!(
        reported > 0 && harmless > 0,
        "{reported} reported, {harmless} harmless"
    );
}

/// The bytes of a database that nobody has open.
fn closed(path: &Path) -> Vec<u8> {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    conn.query_row("PRAGMA journal_mode = delete", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    std::fs::read(path).unwrap()
}

const CHUNK: &str = "a chunk of a running answer";
const VALUE: &str = "a value outside the tree";

/// A stream's chunks, and values of all scopes.
async fn fill_beside(chat: &Chat) {
    let streams = chat.store.streams().unwrap();
    let stream = StreamId::derive("flips", &[]);
    let opened = streams.open_stream(&chat.owner, &chat.id, stream, NOW);
    let append = AppendChunks {
        claim: opened.await.unwrap().stream.claim(),
        seq: 0,
        chunks: (0..40)
            .map(|n| format!("{CHUNK} {n}").into_bytes().into())
            .collect(),
        at_ms: NOW,
    };
    let appended = streams.append_chunks(&chat.owner, &chat.id, append);
    appended.await.unwrap();
    for scope in scopes(chat) {
        for n in 0..20 {
            let put = PutEntry {
                key: format!("key {n:02}"),
                value: Some(format!("{VALUE} {n}").into_bytes().into()),
                expect: ExpectedVersion::Any,
                at_ms: NOW,
            };
            chat.store
                .put_entry(&chat.owner, &scope, put)
                .await
                .unwrap();
        }
    }
}

fn scopes(chat: &Chat) -> [KeyScope; 3] {
    let resource = KeyScope::Resource("r".to_owned());
    [
        KeyScope::Owner,
        resource,
        KeyScope::Conversation(chat.id.clone()),
    ]
}

/// The chunks, and the values as they are asked for; `None`: not found.
async fn beside(chat: &Chat) -> Result<Vec<Option<Arc<[u8]>>>, Error> {
    let streams = chat.store.streams().unwrap();
    let read = ReadChunks::new(StreamId::derive("flips", &[]));
    let page = streams.read_chunks(&chat.owner, &chat.id, read).await?;
    let mut all: Vec<_> = page.chunks.into_iter().map(Some).collect();
    all.resize(40, None);
    for scope in scopes(chat) {
        for n in 0..20 {
            let key = format!("key {n:02}");
            let entry = chat.store.get_entry(&chat.owner, &scope, &key).await?;
            all.push(entry.map(|entry| entry.value));
        }
    }
    Ok(all)
}

/// Whatever bit of a chunk or of a value is another one, checking says so.
#[test]
fn verification_finds_every_flipped_bit_of_chunks_and_values() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flips.db");
    runtime.block_on(async {
        let chat = Chat::start(Arc::new(SqliteStore::open(&path).unwrap())).await;
        fill_beside(&chat).await;
    });
    let good = closed(&path);
    let mut places: Vec<usize> = Vec::new();
    for text in [CHUNK, VALUE] {
        let windows = good.windows(text.len()).enumerate();
        let found = windows.filter(|(_, window)| *window == text.as_bytes());
        places.extend(found.map(|(at, _)| at));
    }
    assert_eq!(places.len(), 100);
    for (number, place) in places.into_iter().enumerate() {
        let mut bad = good.clone();
        bad[place + number % VALUE.len()] ^= 1 << (number % 8);
        std::fs::write(&path, &bad).unwrap();
        let found = runtime.block_on(async {
            let store = SqliteStore::open(&path).unwrap();
            let (owner, id) = ("ada".parse().unwrap(), "chat".parse().unwrap());
            let upkeep = store.maintenance().unwrap();
            let conversation = verify_conversation(upkeep, &owner, &id)
                .await
                .unwrap()
                .findings
                .len();
            conversation + upkeep.verify_medium().await.unwrap().len()
        });
        assert_eq!(found, 1, "byte {place}");
    }
}
