//! The index of texts: what removes a node removes its terms, from the file as well; it is made
//! again when it is missing or of another version, and found through at any size.

use std::path::Path;
use std::sync::Arc;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    IndexProgress, MatchMode, RedactRequest, Search as _, SearchPage, SearchRequest, SearchScope,
    Store,
};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, node};
use rusqlite::Connection;

fn open(path: &Path) -> Arc<SqliteStore> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        busy_timeout: std::time::Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

async fn found(store: &SqliteStore, chat: &Chat, query: &str) -> usize {
    let mut request = SearchRequest::new(query, SearchScope::Owner);
    request.words = MatchMode::All;
    request.limit = 1000;
    let page = store.search_nodes(&chat.owner, request).await.unwrap();
    assert!(page.is_complete(), "{page:?}");
    page.hits.len()
}

async fn search_any(store: &SqliteStore, owner: &Owner, query: &str) -> SearchPage {
    let request = SearchRequest::new(query, SearchScope::Owner);
    store.search_nodes(owner, request).await.unwrap()
}

/// As a file looks that was migrated from a format with other terms.
fn forget_terms(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "INSERT INTO search (search) VALUES ('delete-all');
         INSERT INTO search (rowid, terms) VALUES (1 << 10 | 1, 'stale');
         UPDATE search_state SET terms_version = 0",
    )
    .unwrap();
}

/// As a file looks right after such an index was emptied.
fn empty_index(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "INSERT INTO search (search) VALUES ('delete-all');
         UPDATE search_state SET indexed_to = -1",
    )
    .unwrap();
}

/// Number of nodes that the index has, counted by the rows of FTS5's table of documents.
fn indexed_rows(path: &Path) -> i64 {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT count(*) FROM search_docsize";
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
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
    forget_terms(&path);
    let store = open(&path);
    let chat = Chat {
        store: Arc::clone(&store) as Arc<dyn Store>,
        owner,
        id,
    };
    // What is stored before the index has come so far is indexed once, by whichever is later.
    chat.append_to_tip("main", items(1500)).await.unwrap();
    store.index_texts().await.unwrap();
    assert_eq!(found(&store, &chat, "number 2").await, 1);
    assert_eq!(found(&store, &chat, "2999").await, 1);
    assert_eq!(found(&store, &chat, "stale").await, 0);
    assert_eq!(indexed_rows(&path), 3000);
}

/// While an index is made again a search answers with what it has and says so; what is stored meanwhile is found at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_does_not_wait_for_the_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("behind.db");
    let store = open(&path) as Arc<dyn Store>;
    // The second is deleted meanwhile.
    let chats = [
        Chat::start_as(Arc::clone(&store), "ada", "first").await,
        Chat::start_as(Arc::clone(&store), "ada", "second").await,
        Chat::start_as(Arc::clone(&store), "ada", "third").await,
    ];
    for chat in &chats {
        for n in 0..3 {
            let items = (0..700).map(|m| item(&format!("number {n} {m}")));
            chat.append_to_tip("main", items.collect()).await.unwrap();
        }
    }
    let [first, second, third] = chats.map(|chat| (chat.owner, chat.id));
    drop(store);
    empty_index(&path);
    // With the lock of another process no step is taken.
    let held = Connection::open(&path).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let store = open(&path);
    let reached = |page: &SearchPage| page.indexing.map_or(3, |progress| progress.indexed);
    let page = search_any(&store, &first.0, "number").await;
    let nothing = IndexProgress {
        indexed: 0,
        conversations: 3,
    };
    assert_eq!((page.hits.len(), page.indexing), (0, Some(nothing)));
    drop(held);
    chat_at(&store, &third)
        .append_messages("main", &["needle"])
        .await;
    let page = search_any(&store, &first.0, "needle").await;
    assert_eq!(page.hits.len(), 1);
    let gone = store.delete_conversation(&second.0, &second.1);
    gone.await.unwrap();
    drop(store);
    // What opens the file next goes on, and each search takes a step. 4,201 nodes are six steps at most.
    let mut before = 0;
    for _ in 0..7 {
        let store = open(&path);
        let page = search_any(&store, &first.0, "number").await;
        assert!(reached(&page) >= before, "{page:?}");
        before = reached(&page);
    }
    let store = open(&path);
    let page = search_any(&store, &first.0, "needle").await;
    assert!(page.is_complete() && page.hits.len() == 1, "{page:?}");
    assert_eq!(
        found(&store, &chat_at(&store, &first), "number 699").await,
        6
    );
    assert_eq!(indexed_rows(&path), 4201);
}

fn chat_at(store: &Arc<SqliteStore>, (owner, id): &(Owner, ConversationId)) -> Chat {
    Chat {
        store: Arc::clone(store) as Arc<dyn Store>,
        owner: owner.clone(),
        id: id.clone(),
    }
}

/// A file that is only read is searched as far as it is indexed.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_only_read_says_what_it_covers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("read.db");
    let store = open(&path);
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    chat.append_messages("main", &["needle one", "needle two"])
        .await;
    let owner = chat.owner.clone();
    drop((chat, store));
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "UPDATE search_state SET indexed_to = -1; DELETE FROM search WHERE rowid & 1",
        )
        .unwrap();
    let store = SqliteStore::open_read_only(&path, SqliteOptions::default()).unwrap();
    let page = search_any(&store, &owner, "needle").await;
    assert_eq!(page.hits.len(), 1);
    let progress = IndexProgress {
        indexed: 0,
        conversations: 1,
    };
    assert_eq!(page.indexing, Some(progress));
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
