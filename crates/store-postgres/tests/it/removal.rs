//! What is left of a conversation that was deleted: nothing, whoever died over it.

use std::sync::Arc;
use std::time::Duration;

use contexture_ir::{CheckpointName, StreamId};
use contexture_store::{
    AppendChunks, AppendRequest, ConversationUpdate, Error, ExpectedVersion, KeyScope,
    MetadataChange, PutEntry, RefChange, StateKey, StatePatch, StreamClaim,
};
use contexture_store_postgres::{PostgresOptions, PostgresStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, node};
use tokio_postgres::Client;

use crate::proxy::{Cut, Proxy};
use crate::server::Database;

fn patient() -> PostgresOptions {
    PostgresOptions {
        lock_timeout: Duration::from_secs(600),
        ..PostgresOptions::default()
    }
}

/// How many rows each table has that has rows of conversations, or of an owner.
async fn rows(client: &Client) -> Vec<(String, i64)> {
    let tables = client
        .query(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = 'contexture' \
             AND tablename NOT IN ('schema_version', 'processes', 'calls', 'call_sums') ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let mut found = Vec::new();
    for row in tables {
        let table: String = row.get(0);
        let sql = format!("SELECT count(*) FROM contexture.{table}");
        found.push((table, client.query_one(&sql, &[]).await.unwrap().get(0)));
    }
    found
}

async fn are_gone(client: &Client) -> bool {
    rows(client).await.iter().all(|(_, count)| *count == 0)
}

/// Something in every table.
async fn fill(chat: &Chat, client: &Client) {
    let (store, owner, id) = (&chat.store, &chat.owner, &chat.id);
    for batch in 0..3 {
        let many = (0..800).map(|n| item(&format!("{batch} {n}")));
        chat.append_to_tip("main", many.collect()).await.unwrap();
    }
    let request = AppendRequest {
        patch: StatePatch::put_entry(StateKey::new("plan").unwrap(), 1, *b"value"),
        blobs: vec![Arc::from(*b"blob")],
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("last")], NOW)
    };
    chat.append_request(request).await.unwrap();
    let set = RefChange::SetCheckpoint {
        name: CheckpointName::new("here").unwrap(),
        node: node("last"),
    };
    chat.change_ref(set).await.unwrap();
    let mut update = ConversationUpdate::new(NOW);
    let metadata = serde_json::from_str(r#"{"a":1}"#).unwrap();
    update.metadata = MetadataChange::Merge(metadata);
    store.update_conversation(owner, id, update).await.unwrap();
    let put = PutEntry {
        key: "k".to_owned(),
        value: Some(Arc::from(*b"v")),
        expect: ExpectedVersion::Absent,
        at_ms: NOW,
    };
    let scope = KeyScope::Conversation(id.clone());
    store.put_entry(owner, &scope, put).await.unwrap();
    let streams = store.streams().unwrap();
    let stream = StreamId::derive("stream", &[]);
    let opened = streams.open_stream(owner, id, stream, NOW).await.unwrap();
    let append = AppendChunks {
        claim: StreamClaim {
            stream,
            epoch: opened.stream.epoch,
        },
        seq: 0,
        chunks: vec![Arc::from(*b"chunk")],
        at_ms: NOW,
    };
    streams.append_chunks(owner, id, append).await.unwrap();
    // What later versions write.
    client
        .batch_execute(
            "INSERT INTO contexture.responses (conversation, response_id, status) \
             SELECT conversation, '\\x01', 0 FROM contexture.conversations; \
             INSERT INTO contexture.runs (conversation, run, status) \
             SELECT conversation, '\\x01', 0 FROM contexture.conversations; \
             INSERT INTO contexture.path_index (owner, version, path_hash, conversation, segment, \
             depth) SELECT owner, 1, '\\x01', conversation, 1, 1 FROM contexture.conversations; \
             INSERT INTO contexture.exchanges (owner, path_hash, process, number, conversation) \
             SELECT owner, '\\x01', '\\x01', 1, conversation FROM contexture.conversations",
        )
        .await
        .unwrap();
    for (table, count) in rows(client).await {
        assert_eq!(count > 0, table != "deletions", "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_of_any_table_is_left() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let chat = Chat::start(database.store().await).await;
    fill(&chat, &client).await;
    let deleted = chat.store.delete_conversation(&chat.owner, &chat.id);
    deleted.await.unwrap();
    assert!(are_gone(&client).await, "{:?}", rows(&client).await);
    drop((chat, client));
    database.drop().await;
}

/// As if the process had died: every connection of its store breaks within the deletion, until it
/// gives up, in the background too. The next process that opens the database does the rest.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_deletion_goes_on_after_opening() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let proxy = Proxy::start(&database.address).await;
    let address = proxy.through(&database.address);
    let store = PostgresStore::open_with(&address, patient()).await.unwrap();
    let chat = Chat::start(Arc::new(store)).await;
    fill(&chat, &client).await;
    // Five attempts of the call, five of the task that goes on with it.
    for _ in 0..10 {
        proxy.cut(Cut::Before("DELETE FROM contexture.segments"));
    }
    let deleted = chat.store.delete_conversation(&chat.owner, &chat.id).await;
    assert!(matches!(deleted.unwrap_err(), Error::Unavailable { .. }));
    while !proxy.is_done() {
        tokio::task::yield_now().await;
    }
    let gone = chat.store.load_conversation(&chat.owner, &chat.id).await;
    assert!(matches!(gone.unwrap_err(), Error::NotFound { .. }));
    drop(chat);
    assert!(!are_gone(&client).await);
    // Several at once do it together.
    let stores = [
        database.store_with(patient()).await,
        database.store_with(patient()).await,
    ];
    while !are_gone(&client).await {
        tokio::task::yield_now().await;
    }
    drop((stores, client));
    database.drop().await;
}

/// Nobody waits for the deletion any more: the store goes on with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_deletion_goes_on() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let chat = Chat::start(database.store_with(patient()).await).await;
    fill(&chat, &client).await;
    let holder = database.client().await;
    let hold = "BEGIN; SELECT FROM contexture.nodes FOR UPDATE";
    holder.batch_execute(hold).await.unwrap();
    let deletion = tokio::spawn({
        let chat = chat.clone();
        async move { chat.store.delete_conversation(&chat.owner, &chat.id).await }
    });
    let waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name = 'contexture' AND wait_event_type = 'Lock'";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    deletion.abort();
    assert!(deletion.await.unwrap_err().is_cancelled());
    holder.batch_execute("ROLLBACK").await.unwrap();
    while !are_gone(&client).await {
        tokio::task::yield_now().await;
    }
    drop((chat, holder, client));
    database.drop().await;
}
