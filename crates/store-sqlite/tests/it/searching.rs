//! The index of texts: what removes a node removes its terms, from the file as well; it is made
//! again when it is missing or of another version, and found through at any size.

use std::path::Path;
use std::sync::Arc;

use contexture_store::{
    MatchMode, RedactRequest, Search as _, SearchCoverage, SearchRequest, SearchScope, Store,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, node};
use rusqlite::Connection;

fn open(path: &Path) -> Arc<SqliteStore> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

async fn found(store: &SqliteStore, chat: &Chat, query: &str) -> usize {
    let mut request = SearchRequest::new(query, SearchScope::Owner);
    request.words = MatchMode::All;
    request.limit = 1000;
    let page = store.search_nodes(&chat.owner, request).await.unwrap();
    assert_eq!(page.coverage, SearchCoverage::Whole);
    page.hits.len()
}

/// Whether the file has these bytes, in whatever case.
fn has(path: &Path, text: &str) -> bool {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let bytes = std::fs::read(path).unwrap().to_ascii_lowercase();
    let mut windows = bytes.windows(text.len());
    windows.any(|window| window == text.as_bytes())
}

/// Fillers make the index more than one segment: the term to be removed is in an old one.
async fn say_secrets(chat: &Chat) {
    chat.append_messages("main", &["a Xylophone"]).await;
    for n in 0..40 {
        let items = (0..20).map(|m| item(&format!("filler number{n} and {m}")));
        chat.append_to_tip("main", items.collect()).await.unwrap();
    }
    chat.append_messages("main", &["the Xylophone again", "z"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redacted_terms_leave_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("redacted.db");
    let store = open(&path);
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    say_secrets(&chat).await;
    assert_eq!(found(&store, &chat, "xylophone").await, 2);
    assert!(has(&path, "xylophon"));
    let request = RedactRequest {
        nodes: vec![node("a Xylophone"), node("the Xylophone again")],
        values: Vec::new(),
        blobs: Vec::new(),
        at_ms: NOW,
    };
    store
        .redact_content(&chat.owner, &chat.id, request)
        .await
        .unwrap();
    assert_eq!(found(&store, &chat, "xylophone").await, 0);
    assert_eq!(found(&store, &chat, "redacted").await, 0);
    assert_eq!(found(&store, &chat, "number7 3").await, 1);
    assert!(!has(&path, "xylophon"));
    // Nor does a new index bring them back.
    store.rebuild_search().await.unwrap();
    assert_eq!(found(&store, &chat, "redacted").await, 0);
    assert_eq!(found(&store, &chat, "filler").await, 800);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_terms_leave_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deleted.db");
    let store = open(&path);
    let chat = Chat::start_as(Arc::clone(&store) as Arc<dyn Store>, "ada", "secret").await;
    let other = Chat::start_as(Arc::clone(&store) as Arc<dyn Store>, "ada", "other").await;
    chat.append_messages("main", &["a Xylophone"]).await;
    for n in 0..40 {
        let items = (0..20).map(|m| item(&format!("something else, {n} and {m}")));
        other.append_to_tip("main", items.collect()).await.unwrap();
    }
    assert!(has(&path, "xylophon"));
    store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(found(&store, &chat, "xylophone").await, 0);
    assert_eq!(found(&store, &chat, "else").await, 800);
    assert!(!has(&path, "xylophon"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_version_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let chat = Chat::start(open(&path)).await;
    let items = |from: usize| {
        let items = (from..from + 1500).map(|n| item(&format!("number {n}")));
        items.collect::<Vec<_>>()
    };
    chat.append_to_tip("main", items(0)).await.unwrap();
    let Chat { owner, id, store } = chat;
    drop(store);
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "INSERT INTO search (search) VALUES ('delete-all');
             INSERT INTO search (rowid, terms) VALUES (1 << 10 | 1, 'stale');
             UPDATE search_state SET terms_version = 0",
        )
        .unwrap();
    let store = open(&path);
    let chat = Chat {
        store: Arc::clone(&store) as Arc<dyn Store>,
        owner,
        id,
    };
    // What is stored before the index has come so far is indexed once, by whichever is later.
    chat.append_to_tip("main", items(1500)).await.unwrap();
    assert_eq!(found(&store, &chat, "number 2").await, 1);
    assert_eq!(found(&store, &chat, "2999").await, 1);
    assert_eq!(found(&store, &chat, "stale").await, 0);
    let conn = Connection::open(&path).unwrap();
    let rows: i64 = conn
        .query_row("SELECT count(*) FROM search_docsize", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 3000);
}

/// More conversations than are searched one by one: both ways find the same.
#[tokio::test(flavor = "multi_thread")]
async fn many_conversations_are_searched_like_few() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("many.db"));
    let opened = Arc::clone(&store) as Arc<dyn Store>;
    let stranger = Chat::start_as(Arc::clone(&opened), "bob", "chat").await;
    stranger
        .append_messages("main", &["needle of another"])
        .await;
    for n in 0..300 {
        let chat = Chat::start_as(Arc::clone(&opened), "ada", &format!("chat-{n}")).await;
        let words = if n % 100 == 7 { "a needle" } else { "hay" };
        chat.append_messages("main", &[words]).await;
        if n == 100 {
            assert_eq!(found(&store, &chat, "needle").await, 1);
        }
        if n == 299 {
            assert_eq!(found(&store, &chat, "needle").await, 3);
        }
    }
    assert_eq!(found(&store, &stranger, "needle").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_node_is_not_found_and_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.db");
    let store = open(&path);
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    chat.append_messages("main", &["needle one", "needle two"])
        .await;
    Connection::open(&path)
        .unwrap()
        .execute(
            "UPDATE nodes SET item = CAST(replace(item, 'one', '0ne') AS BLOB) WHERE id & 255 = 1",
            [],
        )
        .unwrap();
    assert_eq!(found(&store, &chat, "needle").await, 1);
}
