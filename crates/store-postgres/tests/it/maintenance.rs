//! Looking after a database: checking, the server's files, what is refused.

use std::sync::Arc;

use contexture_ir::{CheckpointName, ResponseId, StreamId};
use contexture_store::{
    Activation, AppendChunks, AppendRequest, BlobId, CollectRequest, Error, ExpectedVersion,
    KeyScope, Maintenance, NewItem, NodeKind, PutEntry, RefChange, ResponseInputs, ResponseRecord,
    StateKey, StatePatch, Store, StreamClaim, verify_conversation,
};
use contexture_store_postgres::{PostgresOptions, PostgresStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, node};
use tokio_postgres::Client;

use crate::own_server::OwnServer;
use crate::proxy::{Cut, Proxy};
use crate::server::Database;

fn maintenance(chat: &Chat) -> &dyn Maintenance {
    chat.store.maintenance().unwrap()
}

/// What is wrong with a conversation: what, where.
async fn findings(chat: &Chat) -> Vec<(&'static str, String)> {
    let page = verify_conversation(maintenance(chat), &chat.owner, &chat.id)
        .await
        .unwrap();
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

/// Two pages of nodes, forks, state, more than a page of blobs, and names.
async fn fill_conversation(store: Arc<dyn Store>, id: &str) -> Chat {
    let chat = Chat::start_as(store, "ada", id).await;
    let many = (0..600).map(|n| item(&format!("number {n} {}", "word ".repeat(n % 20))));
    chat.append_to_tip("main", many.collect()).await.unwrap();
    for (n, size) in [(0, 10), (1, 1000), (2, 9000)] {
        let base = format!("number {n} {}", "word ".repeat(n));
        let name = chat.rewind("main", &base, Activation::Keep).await;
        let key = StateKey::new(format!("path/{n}")).unwrap();
        let request = AppendRequest {
            patch: StatePatch::put_entry(key, 1, format!("{n}").repeat(size).into_bytes()),
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
        node: node("fork 1"),
    };
    chat.change_ref(set).await.unwrap();
    for n in 0..120 {
        put(&chat, &format!("blob {n}")).await;
    }
    add_streams_and_values(&chat).await;
    chat
}

/// An answer computed from the beginning, and one from a node, with what went into it.
async fn answered(chat: &Chat) {
    for (word, base) in [
        ("of nothing", None),
        (
            "of a node",
            Some(node("number 8 word word word word word word word word ")),
        ),
    ] {
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

/// Values, one of them deleted, and a stream.
async fn add_streams_and_values(chat: &Chat) {
    let (store, owner, id) = (&chat.store, &chat.owner, &chat.id);
    let scope = KeyScope::Conversation(id.clone());
    for (key, value) in [("a", Some("value")), ("b", Some("value")), ("b", None)] {
        let put = PutEntry {
            key: key.to_owned(),
            value: value.map(|value| Arc::from(value.as_bytes())),
            expect: ExpectedVersion::Any,
            at_ms: NOW,
        };
        store.put_entry(owner, &scope, put).await.unwrap();
    }
    let streams = store.streams().unwrap();
    let stream = StreamId::derive("stream", &[]);
    let opened = streams.open_stream(owner, id, stream, NOW).await.unwrap();
    let append = AppendChunks {
        claim: StreamClaim {
            stream,
            epoch: opened.stream.epoch,
        },
        seq: 0,
        chunks: ["one", "two", "three"]
            .map(|chunk| Arc::from(chunk.as_bytes()))
            .into(),
        at_ms: NOW,
    };
    streams.append_chunks(owner, id, append).await.unwrap();
}

async fn put(chat: &Chat, bytes: &str) -> BlobId {
    let bytes = Arc::from(bytes.as_bytes());
    let put = chat.store.put_blob(&chat.owner, &chat.id, bytes);
    put.await.unwrap()
}

/// Damages of one conversation, done to the tables, and what is found.
const DAMAGES: &[(&str, &[(&str, &str)])] = &[
    (
        "UPDATE nodes SET item = '{}' WHERE depth = 10",
        &[("node", "depth 10 of segment 1")],
    ),
    (
        "UPDATE nodes SET item = '\\x00' WHERE depth IN (10, 300, 599)",
        &[
            ("node", "depth 10 "),
            ("node", "depth 300 "),
            ("node", "depth 599 "),
        ],
    ),
    (
        "UPDATE nodes SET codec = 9 WHERE depth = 10",
        &[("node", "depth 10 ")],
    ),
    (
        "UPDATE nodes SET turns = turns + 1 WHERE depth = 10",
        &[("node", "depth 10 "), ("node", "depth 11 ")],
    ),
    (
        "UPDATE nodes SET messages = -1 WHERE depth = 10",
        &[("node", "depth 10 "), ("node", "depth 11 ")],
    ),
    (
        "UPDATE nodes SET depth = 9999 WHERE depth = 10",
        &[("node", "depth 11 "), ("node", "depth 9999 ")],
    ),
    (
        "DELETE FROM nodes WHERE depth = 10",
        &[("node", "depth 11 "), ("conversation", "nodes")],
    ),
    (
        "UPDATE nodes SET redacted_ms = 1 WHERE depth = 10",
        &[("node", "depth 10 ")],
    ),
    (
        "DELETE FROM terms WHERE depth = 10",
        &[("node", "depth 10 ")],
    ),
    (
        "UPDATE terms SET rule = 7 WHERE depth = 10",
        &[("node", "depth 10 ")],
    ),
    (
        "UPDATE terms SET kind = 7 WHERE depth = 10",
        &[("node", "depth 10 ")],
    ),
    (
        "UPDATE terms SET terms = array_to_tsvector('{word}') WHERE depth = 10",
        &[("node", "depth 10 ")],
    ),
    (
        "DELETE FROM segments WHERE segment = 2",
        &[
            ("node", "depth 2 of segment 2"),
            ("node", "depth 3 of segment 2"),
            ("branch", "main-v2"),
        ],
    ),
    (
        "UPDATE segments SET upto = '{7}' WHERE segment = 2",
        &[("segment", "segment 2")],
    ),
    (
        "UPDATE segments SET ancestors = '{1,1}', upto = '{1,1}' WHERE segment = 2",
        &[("segment", "segment 2")],
    ),
    (
        "UPDATE segments SET first_depth = 3, upto = '{2}' WHERE segment = 2",
        &[("node", "depth 2 of segment 2")],
    ),
    (
        "DELETE FROM roots WHERE root_no = 1",
        &[
            ("node", "depth 2 of segment 2"),
            ("node", "depth 3 of segment 2"),
        ],
    ),
    (
        "UPDATE roots SET body = '\\x00' WHERE root_no = 1",
        &[("state", "root 1")],
    ),
    (
        "UPDATE roots SET base = 99 WHERE root_no = 1",
        &[("state", "root 1")],
    ),
    (
        "DELETE FROM state_values WHERE length(value) < 2000",
        &[("state", "path/0"), ("state", "path/1")],
    ),
    (
        "UPDATE state_values SET value = '\\x00' WHERE length(value) > 2000",
        &[("state", "path/2")],
    ),
    (
        "UPDATE blobs SET bytes = '\\x00' WHERE bytes IN ('blob 1', 'blob 100')",
        &[("blob", ""), ("blob", "")],
    ),
    (
        "UPDATE stream_chunks SET chunk = 'x' WHERE seq = 1",
        &[("stream", "epoch 1 chunk 1")],
    ),
    (
        "UPDATE stream_chunks SET seq = 7 WHERE seq = 1",
        &[("stream", "epoch 1 chunk 1")],
    ),
    (
        "DELETE FROM stream_chunks WHERE seq = 2",
        &[("stream", "epoch 1")],
    ),
    (
        "UPDATE streams SET size = 1 WHERE epoch = 1",
        &[("stream", "epoch 1")],
    ),
    (
        "UPDATE streams SET status = 9 WHERE epoch = 1",
        &[("stream", "epoch 1")],
    ),
    (
        "UPDATE streams SET epoch = 5 WHERE epoch = 1",
        &[("stream", "epoch 5"), ("stream", "epoch 1")],
    ),
    (
        "UPDATE branches SET messages = 33 WHERE branch = 2",
        &[("branch", "main-v2")],
    ),
    (
        "UPDATE branches SET segment = 1 WHERE branch = 2",
        &[("branch", "main-v2")],
    ),
    (
        "DELETE FROM branches WHERE branch = 3",
        &[("conversation", "branches")],
    ),
    (
        "UPDATE checkpoints SET node_id = '\\x00' WHERE name = 'there'",
        &[("checkpoint", "there")],
    ),
    (
        "UPDATE conversations SET active_branch = 77 WHERE nodes > 0",
        &[("conversation", "its branches")],
    ),
    (
        "UPDATE listings SET updated_ms = 7 WHERE id = 'chat'",
        &[("conversation", "its listing")],
    ),
    (
        "DELETE FROM listings WHERE id = 'chat'",
        &[("conversation", "its listing")],
    ),
    (
        "UPDATE responses SET status = 9 WHERE base_node IS NULL",
        &[("response", "")],
    ),
    (
        "UPDATE responses SET usage = '\\xff' WHERE base_node IS NULL",
        &[("response", "")],
    ),
    (
        "UPDATE responses SET base_node = decode(repeat('00', 16), 'hex') WHERE base_node IS NOT NULL",
        &[("response", "")],
    ),
    (
        "UPDATE responses SET base_node = '\\x00' WHERE base_node IS NOT NULL",
        &[("response", "")],
    ),
];

/// Does damage to a table, looks, and puts the table back.
async fn damaged<T>(client: &Client, damage: &str, look: impl Future<Output = T>) -> T {
    let (_, rest) = damage.split_once("contexture.").unwrap();
    let table = rest.split(' ').next().unwrap();
    let keep = format!("CREATE TEMP TABLE kept AS TABLE contexture.{table}");
    client.batch_execute(&keep).await.unwrap();
    let count = client.execute(damage, &[]).await.unwrap();
    assert!(count > 0, "{damage}");
    let found = look.await;
    let back = format!(
        "TRUNCATE contexture.{table}; INSERT INTO contexture.{table} TABLE kept; DROP TABLE kept"
    );
    client.batch_execute(&back).await.unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_is_found_where_it_is() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let chat = fill_conversation(Arc::clone(&store), "chat").await;
    let other = fill_conversation(Arc::clone(&store), "other").await;
    answered(&chat).await;
    answered(&other).await;
    let client = database.client().await;
    // Its key, which the damage to its listing takes away.
    let key = "SELECT encode(conversation, 'hex') FROM contexture.listings WHERE id = 'chat'";
    let key: String = client.query_one(key, &[]).await.unwrap().get(0);
    for (damage, wanted) in DAMAGES {
        let (verb, rest) = damage.split_once(' ').unwrap();
        let (verb, rest) = match rest.strip_prefix("FROM ") {
            Some(rest) => (format!("{verb} FROM"), rest),
            None => (verb.to_owned(), rest),
        };
        let sql = format!("{verb} contexture.{rest} AND conversation = '\\x{key}'");
        let look = async { (findings(&chat).await, findings(&other).await) };
        let (found, others) = damaged(&client, &sql, look).await;
        assert_eq!(found.len(), wanted.len(), "{damage}: {found:?}");
        for ((what, place), wanted) in found.iter().zip(*wanted) {
            let is_there = *what == wanted.0 && place.contains(wanted.1);
            assert!(is_there, "{damage}: {found:?}");
        }
        assert_eq!(others, [], "{damage}");
    }
    // Values have no conversation in their key.
    for (damage, wanted) in [
        ("value = 'other' WHERE key = 'a'", "a"),
        ("value_check = NULL WHERE key = 'a'", "a"),
        ("version = 0 WHERE key = 'b'", "b"),
        ("value_check = 'x' WHERE key = 'b'", "b"),
    ] {
        let sql = format!("UPDATE contexture.key_values SET {damage} AND scope = 'chat'");
        let look = async { (findings(&chat).await, findings(&other).await) };
        let found = damaged(&client, &sql, look).await;
        assert_eq!(found, (vec![("value", wanted.to_owned())], Vec::new()));
    }
    assert_eq!(findings(&chat).await, []);
    drop((store, chat, other, client));
    database.drop().await;
}

/// What cannot be read may name any blob: so none goes.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_collected_beside_damage() {
    for damage in [
        "UPDATE contexture.nodes SET item = '{}' WHERE depth = 10",
        "UPDATE contexture.state_values SET value = 'x' WHERE length(value) > 2000",
    ] {
        let database = Database::migrated().await;
        let chat = fill_conversation(database.store().await, "chat").await;
        let client = database.client().await;
        assert!(client.execute(damage, &[]).await.unwrap() > 0);
        for now in [NOW, NOW + 7_200_000] {
            let request = CollectRequest::new(now);
            let refused = maintenance(&chat)
                .collect_blobs(&chat.owner, &chat.id, request)
                .await;
            assert!(matches!(refused.unwrap_err(), Error::Damaged { .. }));
        }
        let left = client.query_one("SELECT count(*) FROM contexture.blobs", &[]);
        assert_eq!(left.await.unwrap().get::<_, i64>(0), 120);
        drop((chat, client));
        database.drop().await;
    }
}

#[tokio::test]
async fn connections_that_break_disturb_nothing() {
    let database = Database::migrated().await;
    let proxy = Proxy::start(&database.address).await;
    let options = PostgresOptions {
        connections: 1,
        ..PostgresOptions::default()
    };
    let address = proxy.through(&database.address);
    let store = PostgresStore::open_with(&address, options).await.unwrap();
    let chat = fill_conversation(Arc::new(store), "chat").await;
    let collect = |now_ms| {
        let request = CollectRequest::new(now_ms);
        maintenance(&chat).collect_blobs(&chat.owner, &chat.id, request)
    };
    proxy.cut(Cut::Before("tsvector_to_array"));
    assert_eq!(findings(&chat).await, []);
    proxy.cut(Cut::Before("pg_column_size"));
    let counted = maintenance(&chat).read_statistics(&chat.owner, &chat.id);
    assert_eq!(counted.await.unwrap().nodes[&NodeKind::User].count, 606);
    proxy.cut(Cut::Before("FROM contexture.nodes"));
    assert_eq!(collect(NOW).await.unwrap().waiting, 120);
    // What was removed can only be told by who removed it: so this is not repeated unasked.
    let later = NOW + 3_600_000;
    let lost = async |cut: Cut| {
        proxy.cut(cut);
        let lost = collect(later).await.unwrap_err();
        assert!(matches!(lost, Error::OutcomeUnknown { .. }), "{lost}");
    };
    lost(Cut::Before("DELETE FROM contexture.blobs")).await;
    lost(Cut::Before("COMMIT\0")).await;
    let counted = maintenance(&chat).read_statistics(&chat.owner, &chat.id);
    assert_eq!(counted.await.unwrap().blobs.count, 120);
    lost(Cut::AfterCommit).await;
    assert!(proxy.is_done());
    // It had happened.
    assert_eq!(collect(later).await.unwrap().blobs.count, 0);
    let counted = maintenance(&chat).read_statistics(&chat.owner, &chat.id);
    assert_eq!(counted.await.unwrap().blobs.count, 0);
    drop(chat);
    database.drop().await;
}

/// Between looking and removing somebody writes: an append ends the collection, and what was
/// stored again stays.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_while_it_is_collected_stays() {
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let blob = put(&chat, "blob").await;
    let client = database.client().await;
    let collect = |now_ms| {
        let chat = chat.clone();
        let request = CollectRequest::new(now_ms);
        tokio::spawn(async move {
            let upkeep = chat.store.maintenance().unwrap();
            upkeep.collect_blobs(&chat.owner, &chat.id, request).await
        })
    };
    assert_eq!(collect(NOW).await.unwrap().unwrap().waiting, 1);
    for (write, is_busy) in [
        (
            "UPDATE contexture.conversations SET next_event = next_event + 1",
            true,
        ),
        ("UPDATE contexture.blobs SET unnamed_ms = NULL", false),
    ] {
        // The collection has looked, and waits for this writer.
        let hold = format!("BEGIN; SELECT * FROM contexture.conversations FOR UPDATE; {write}");
        client.batch_execute(&hold).await.unwrap();
        let running = collect(NOW + 3_600_000);
        let waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'contexture' AND wait_event_type = 'Lock'";
        while client.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        client.batch_execute("COMMIT").await.unwrap();
        match running.await.unwrap() {
            Err(Error::Busy { .. }) => assert!(is_busy),
            done => assert!(!is_busy && done.unwrap().blobs.count == 0),
        }
        assert!(
            chat.store
                .read_blob(&chat.owner, &chat.id, blob)
                .await
                .is_ok()
        );
    }
    drop((chat, client));
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_space_is_used_again_or_given_back() {
    let database = Database::migrated().await;
    // The server would do it by itself, sooner or later.
    let client = database.client().await;
    let tables = "SELECT format('ALTER TABLE %I.%I SET (autovacuum_enabled = false, \
         toast.autovacuum_enabled = false)', schemaname, tablename) \
         FROM pg_tables WHERE schemaname = 'contexture'";
    for row in client.query(tables, &[]).await.unwrap() {
        let whole: String = row.get(0);
        client.batch_execute(&whole).await.unwrap();
    }
    let store = database.store().await;
    let stays = fill_conversation(Arc::clone(&store), "stays").await;
    let gone = Chat::start_as(Arc::clone(&store), "ada", "gone").await;
    for n in 0..20 {
        let many = (0..100).map(|m| item(&format!("{n} {m} {}", "noise ".repeat(200))));
        gone.append_to_tip("main", many.collect()).await.unwrap();
    }
    let deleted = store.delete_conversation(&gone.owner, &gone.id).await;
    deleted.unwrap();
    let seen = stays.snapshot_text().await;
    let done = store
        .maintenance()
        .unwrap()
        .compact_storage()
        .await
        .unwrap();
    assert!(done.after + 1_000_000 < done.before, "{done:?}");
    assert_eq!(stays.snapshot_text().await, seen);
    assert_eq!(findings(&stays).await, []);
    drop((store, stays, gone));
    database.drop().await;
}

#[tokio::test]
async fn a_copy_is_left_to_the_servers_programs() {
    let database = Database::migrated().await;
    let store = database.store().await;
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("copy.db");
    let error = store.maintenance().unwrap().back_up(&to).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), ("not_offered", false));
    assert!(error.to_string().contains("pg_dump"), "{error}");
    assert!(!to.exists());
    drop(store);
    database.drop().await;
}

/// A server of its own, since its files are damaged here.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_cannot_read_is_told() {
    let mut server = match OwnServer::start().await {
        Ok(server) => server,
        Err(why) => return println!("{why}"),
    };
    let client = server.client().await;
    let store = server.store().await;
    let chats = [
        fill_conversation(Arc::clone(&store), "chat").await,
        fill_conversation(Arc::clone(&store), "other").await,
    ];
    let upkeep = store.maintenance().unwrap();
    let missing = upkeep.verify_medium().await.unwrap_err();
    assert_eq!(missing.kind(), "not_offered");
    assert!(missing.to_string().contains("amcheck"), "{missing}");
    let install = "CREATE SCHEMA \"Odd Place\"; CREATE EXTENSION amcheck SCHEMA \"Odd Place\"; \
         CREATE ROLE plain LOGIN PASSWORD 'plain'; \
         GRANT USAGE ON SCHEMA contexture TO plain; \
         GRANT SELECT ON ALL TABLES IN SCHEMA contexture TO plain";
    client.batch_execute(install).await.unwrap();
    assert_eq!(upkeep.verify_medium().await.unwrap(), [""; 0]);
    // Only who may use it is offered it.
    let plain = server.address_of("plain", "plain");
    let plain = PostgresStore::open(&plain).await.unwrap();
    let refused = plain.verify_medium().await.unwrap_err();
    assert_eq!(refused.kind(), "not_offered", "{refused}");
    let file = async |relation: &str| -> String {
        let sql = format!("SELECT pg_relation_filepath('contexture.{relation}')");
        client.query_one(&sql, &[]).await.unwrap().get(0)
    };
    let (nodes, index) = (file("nodes").await, file("nodes_by_id").await);
    client.batch_execute("CHECKPOINT").await.unwrap();
    drop((client, store, plain));
    server.stop();
    // The head of the second page of a table, and what stands on the second of an index.
    server.damage(&nodes, 8192, b"not the head of a page");
    server.damage(&index, 2 * 8192 - 400, &[0x55; 390]);
    server.launch();
    let store = server.store().await;
    let upkeep = store.maintenance().unwrap();
    let lines = upkeep.verify_medium().await.unwrap();
    for relation in ["contexture.nodes: ", "contexture.nodes_by_id: "] {
        let is_told = lines.iter().any(|line| line.starts_with(relation));
        assert!(is_told, "{relation} {lines:?}");
    }
    // The other parts of the conversation are checked all the same.
    let client = server.client().await;
    let hurt = "UPDATE contexture.blobs SET bytes = 'x' WHERE bytes = 'blob 7'";
    assert_eq!(client.execute(hurt, &[]).await.unwrap(), 2);
    let mut unreadable = 0;
    for chat in &chats {
        let chat = Chat {
            store: Arc::clone(&store),
            ..chat.clone()
        };
        let found = findings(&chat).await;
        assert!(found.iter().any(|(what, _)| *what == "blob"), "{found:?}");
        unreadable += found
            .iter()
            .filter(|(what, place)| *what == "node" && place.contains("cannot read"))
            .count();
    }
    assert!(unreadable > 0);
}
