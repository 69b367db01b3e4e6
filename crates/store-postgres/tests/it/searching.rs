//! The index of texts: what removes a node removes its terms, and what was written without terms
//! gets them before it is searched.

use std::fmt::Write as _;
use std::sync::Arc;

use contexture_ir::{Owner, Role};
use contexture_store::{
    EraseScope, IndexProgress, ListConversations, MatchMode, RedactRequest, Search as _,
    SearchCoverage, SearchPage, SearchRequest, SearchScope, Store,
};
use contexture_store_postgres::{PostgresOptions, PostgresStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, message_item, node};
use tokio_postgres::Client;

use crate::server::Database;

async fn open(database: &Database) -> Arc<PostgresStore> {
    open_with(database, PostgresOptions::default()).await
}

async fn open_with(database: &Database, options: PostgresOptions) -> Arc<PostgresStore> {
    Arc::new(
        PostgresStore::open_with(&database.address, options)
            .await
            .unwrap(),
    )
}

async fn found_in(store: &PostgresStore, owner: &Owner, scope: SearchScope, query: &str) -> usize {
    let mut request = SearchRequest::new(query, scope);
    request.words = MatchMode::All;
    request.limit = 1000;
    let page = store.search_nodes(owner, request).await.unwrap();
    assert!(page.is_complete(), "{page:?}");
    page.hits.len()
}

async fn found(store: &PostgresStore, chat: &Chat, query: &str) -> usize {
    found_in(store, &chat.owner, SearchScope::Owner, query).await
}

async fn search_any(store: &PostgresStore, chat: &Chat, query: &str) -> SearchPage {
    let request = SearchRequest::new(query, SearchScope::Owner);
    store.search_nodes(&chat.owner, request).await.unwrap()
}

/// How many rows have the term.
async fn rows_with(client: &Client, term: &str) -> i64 {
    let row = client
        .query_one(
            "SELECT count(*) FROM contexture.terms WHERE $1 = ANY (tsvector_to_array(terms))",
            &[&term],
        )
        .await
        .unwrap();
    row.get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_removes_a_node_removes_its_terms() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let store = open(&database).await;
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    let other = Chat::start_as(Arc::clone(&store) as Arc<dyn Store>, "ada", "other").await;
    for chat in [&chat, &other] {
        chat.append_messages("main", &["Xylophone one", "Xylophone two"])
            .await;
    }
    assert_eq!(rows_with(&client, "xylophon").await, 4);
    let request = RedactRequest {
        nodes: vec![node("Xylophone one")],
        at_ms: NOW,
        ..RedactRequest::default()
    };
    store
        .redact_content(&chat.owner, &chat.id, request)
        .await
        .unwrap();
    assert_eq!(rows_with(&client, "one").await, 1);
    store
        .delete_conversation(&other.owner, &other.id)
        .await
        .unwrap();
    assert_eq!(rows_with(&client, "xylophon").await, 1);
    while store
        .erase_step(&chat.owner, &EraseScope::Owner)
        .await
        .unwrap()
        .more
    {}
    assert_eq!(rows_with(&client, "xylophon").await, 0);
    database.drop().await;
}

/// As a database looks that was migrated from a format without terms.
async fn forget(client: &Client) {
    client
        .batch_execute(
            "DELETE FROM contexture.terms; UPDATE contexture.listings SET terms_version = 0",
        )
        .await
        .unwrap();
}

async fn behind(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM contexture.listings WHERE terms_version <> 3";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_without_terms_is_found() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let store = open(&database).await;
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    let other = Chat::start_as(Arc::clone(&store) as Arc<dyn Store>, "ada", "other").await;
    // More than one step.
    for n in 0..6 {
        let items = (0..100).map(|m| item(&format!("filler number{n} and {m}")));
        chat.append_to_tip("main", items.collect()).await.unwrap();
    }
    chat.append_messages("main", &["secret"]).await;
    other.append_messages("main", &["filler elsewhere"]).await;
    let request = RedactRequest {
        nodes: vec![node("secret")],
        at_ms: NOW,
        ..RedactRequest::default()
    };
    store
        .redact_content(&chat.owner, &chat.id, request)
        .await
        .unwrap();
    forget(&client).await;
    // A search does not wait: it finds what has terms, says so, and has the rest indexed behind it.
    chat.append_messages("main", &["filler late"]).await;
    let third = Chat::start_as(Arc::clone(&store) as Arc<dyn Store>, "ada", "third").await;
    third.append_messages("main", &["filler third"]).await;
    let page = search_any(&store, &chat, "filler").await;
    let progress = IndexProgress {
        indexed: 1,
        conversations: 3,
    };
    assert_eq!((page.hits.len(), page.indexing), (2, Some(progress)));
    // What is deleted meanwhile is no error.
    let gone = store.delete_conversation(&third.owner, &third.id);
    gone.await.unwrap();
    while !search_any(&store, &chat, "filler").await.is_complete() {}
    assert_eq!(behind(&client).await, 0);
    assert_eq!(found(&store, &chat, "filler").await, 602);
    assert_eq!(found(&store, &chat, "redacted").await, 0);
    // The task ends with its store, and that of another goes on.
    forget(&client).await;
    search_any(&store, &chat, "filler").await;
    drop((chat, other, third, store));
    let store = open(&database).await;
    let chat = Chat {
        store: Arc::clone(&store) as Arc<dyn Store>,
        owner: Owner::new("ada").unwrap(),
        id: "chat".parse().unwrap(),
    };
    while !search_any(&store, &chat, "filler").await.is_complete() {}
    assert_eq!(found(&store, &chat, "filler").await, 602);
    // All at once; and terms of another rule are made again.
    forget(&client).await;
    store.index_texts().await.unwrap();
    assert_eq!(
        (behind(&client).await, rows_with(&client, "filler").await),
        (0, 602)
    );
    client
        .batch_execute(
            "UPDATE contexture.listings SET terms_version = 4; \
             UPDATE contexture.terms SET rule = 4, terms = array_to_tsvector('{@any}')",
        )
        .await
        .unwrap();
    while !search_any(&store, &chat, "number3").await.is_complete() {}
    assert_eq!(found(&store, &chat, "number3").await, 100);
    assert_eq!(
        (
            rows_with(&client, "filler").await,
            rows_with(&client, "@any").await
        ),
        (602, 0)
    );
    database.drop().await;
}

/// The server's vectors have an end; what does not fit is found all the same.
#[tokio::test(flavor = "multi_thread")]
async fn texts_with_more_terms_than_fit_are_found() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let store = open(&database).await;
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    // Each pair of these characters once, as long as a text is searched.
    let mut text = String::from("needle ");
    'text: for step in 1..600_u32 {
        for n in 0..600 {
            let c = char::from_u32(0x4E00 + (n * step) % 599).unwrap();
            write!(text, "{c}").unwrap();
            if text.len() > 500 << 10 {
                break 'text;
            }
        }
    }
    text.push_str(" pin");
    chat.append_to_tip(
        "main",
        vec![message_item(Role::User, &text), item("needle")],
    )
    .await
    .unwrap();
    assert_eq!(rows_with(&client, "@any").await, 1);
    for (query, count) in [("needle", 2), ("pin", 1), ("need* pin", 1), ("never", 0)] {
        assert_eq!(found(&store, &chat, query).await, count, "{query}");
    }
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_beyond_the_limits_is_the_older() {
    let database = Database::migrated().await;
    let mut options = PostgresOptions::default();
    options.limits.search.nodes = 250;
    let store = open_with(&database, options).await;
    let chat = Chat::start(Arc::clone(&store) as Arc<dyn Store>).await;
    let items = (0..251_i64).map(|n| {
        let mut item = item(&format!("word {n}"));
        item.created_ms = NOW + n;
        item
    });
    chat.append_to_tip("main", items.collect()).await.unwrap();
    for scope in [
        SearchScope::Owner,
        SearchScope::Conversation(chat.id.clone()),
    ] {
        let mut request = SearchRequest::new("word", scope);
        request.words = MatchMode::All;
        request.limit = 1000;
        let page = store
            .search_nodes(&chat.owner, request.clone())
            .await
            .unwrap();
        assert_eq!(
            (page.hits.len(), page.coverage),
            (250, SearchCoverage::Newest)
        );
        assert!(page.hits.iter().all(|hit| hit.created_ms > NOW));
        // What the request leaves out does not count.
        request.since_ms = Some(NOW + 1);
        let page = store.search_nodes(&chat.owner, request).await.unwrap();
        assert_eq!(
            (page.hits.len(), page.coverage),
            (250, SearchCoverage::Whole)
        );
    }
    database.drop().await;
}

/// How many rows of a table were read, as far as the sessions that read them have said so.
async fn rows_read(client: &Client, table: &str) -> i64 {
    let sql = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables \
               WHERE schemaname = 'contexture' AND relname = $1";
    client.query_one(sql, &[&table]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_list_reads_no_more_conversations() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let store = open(&database).await;
    let made = (0..1_000).map(|n| {
        let store = Arc::clone(&store) as Arc<dyn Store>;
        async move { Chat::start_as(store, "ada", &format!("c{n}")).await }
    });
    let chats = futures_util::future::join_all(made).await;
    let owner = chats[0].owner.clone();
    drop((chats, store));
    client.batch_execute("ANALYZE").await.unwrap();
    let store = open(&database).await;
    let (before, listed) = (
        rows_read(&client, "conversations").await,
        rows_read(&client, "listings").await,
    );
    let list = ListConversations {
        limit: Some(10),
        ..ListConversations::default()
    };
    let page = store.list_conversations(&owner, list).await.unwrap();
    assert_eq!(page.conversations.len(), 10);
    drop(store);
    // A session says what it read when it has ended.
    while rows_read(&client, "listings").await == listed {
        tokio::task::yield_now().await;
    }
    let read = rows_read(&client, "conversations").await - before;
    assert!(read < 500, "{read} of 1,000 conversations were read for 10");
    database.drop().await;
}
