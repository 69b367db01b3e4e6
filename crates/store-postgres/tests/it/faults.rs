//! Connections that break, servers that kill, writers that wait.

use std::sync::Arc;
use std::time::Duration;

use contexture_store::{AppendRequest, Error, RefChanged, SearchRequest, SearchScope, Store};
use contexture_store_postgres::{PostgresOptions, PostgresStore};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, claim_of, item};
use tokio_postgres::Client;

use crate::proxy::{Cut, Proxy};
use crate::server::Database;

/// A conversation with one message, reached through a proxy.
async fn through_a_proxy(database: &Database) -> (Proxy, Chat) {
    let proxy = Proxy::start(&database.address).await;
    let options = PostgresOptions {
        connections: 1,
        ..PostgresOptions::default()
    };
    let address = proxy.through(&database.address);
    let store = PostgresStore::open_with(&address, options).await.unwrap();
    let chat = Chat::start(Arc::new(store)).await;
    chat.append_messages("main", &["a"]).await;
    (proxy, chat)
}

#[tokio::test]
async fn an_append_whose_commit_is_not_answered_is_found_again() {
    let database = Database::migrated().await;
    let (proxy, chat) = through_a_proxy(&database).await;
    proxy.cut(Cut::AfterCommit);
    let appended = chat
        .append_to_tip("main", vec![item("b"), item("c")])
        .await
        .unwrap();
    assert!(proxy.is_done() && appended.replayed);
    assert_eq!((appended.first, appended.depth), (2, 3));
    chat.expect_path("main", &["a", "b", "c"]).await;
    database.drop().await;
}

#[tokio::test]
async fn an_append_whose_commit_is_lost_is_made_again() {
    let database = Database::migrated().await;
    let (proxy, chat) = through_a_proxy(&database).await;
    for (n, words) in [
        "COMMIT\0",
        "INSERT INTO contexture.nodes",
        "UPDATE contexture.conv",
    ]
    .into_iter()
    .enumerate()
    {
        proxy.cut(Cut::Before(words));
        let appended = chat.append_to_tip("main", vec![item(words)]).await.unwrap();
        assert!(proxy.is_done() && !appended.replayed, "{words}");
        assert_eq!(appended.depth, 2 + n as u64);
    }
    database.drop().await;
}

#[tokio::test]
async fn what_cannot_be_repeated_says_that_its_outcome_is_unknown() {
    let database = Database::migrated().await;
    let (proxy, chat) = through_a_proxy(&database).await;
    let claim = || chat.change_ref(claim_of("main"));
    proxy.cut(Cut::AfterCommit);
    assert!(matches!(
        claim().await.unwrap_err(),
        Error::OutcomeUnknown { .. }
    ));
    // Before the commit was sent nothing is unknown.
    proxy.cut(Cut::Before("UPDATE contexture.conv"));
    let RefChanged::Branch(claimed) = claim().await.unwrap() else {
        panic!("not a branch")
    };
    assert!(proxy.is_done());
    assert_eq!(claimed.fence.0, 2, "the first claim was made");
    database.drop().await;
}

#[tokio::test]
async fn reads_are_made_again() {
    let database = Database::migrated().await;
    let (proxy, chat) = through_a_proxy(&database).await;
    proxy.cut(Cut::Before("FROM contexture.nodes"));
    proxy.cut(Cut::Before("FROM contexture.branches"));
    chat.expect_path("main", &["a"]).await;
    assert!(proxy.is_done());
    database.drop().await;
}

/// Ends the store's sessions as a server that is restarted does.
pub(crate) async fn terminate(client: &Client, which: &str) -> u64 {
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'contexture' AND {which}"
    );
    client.execute(&sql, &[]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_ended_between_calls_are_replaced() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let chat = Chat::start(database.store().await).await;
    let mut words = Vec::new();
    for n in 0..5 {
        let say = |word: String| {
            let chat = chat.clone();
            async move { chat.append_to_tip("main", vec![item(&word)]).await.unwrap() }
        };
        // Several connections, so that more than one has ended.
        let (x, y) = (format!("{n} x"), format!("{n} y"));
        tokio::join!(say(x.clone()), say(y.clone()));
        words.extend([x, y]);
        assert!(terminate(&client, "true").await > 0);
        let path = chat
            .path_nodes(contexture_store_testkit::chat::branch_end("main"))
            .await;
        assert_eq!(path.len(), words.len());
        terminate(&client, "true").await;
    }
    database.drop().await;
}

/// Holds the lock of every conversation until it is told to let go.
async fn hold(client: &Client) {
    let hold = "BEGIN; SELECT * FROM contexture.conversations FOR UPDATE";
    client.batch_execute(hold).await.unwrap();
}

/// Waits until one of the store's sessions waits for that lock.
async fn until_one_waits(client: &Client) {
    until_waiting(client, 1).await;
}

/// Waits until so many of the store's sessions wait for that lock.
async fn until_waiting(client: &Client, sessions: usize) {
    let waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name = 'contexture' AND wait_event_type = 'Lock'";
    while client.query(waiting, &[]).await.unwrap().len() < sessions {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_session_leaves_nothing_and_append_is_retried() {
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let (holder, client) = (database.client().await, database.client().await);
    hold(&holder).await;
    let append = tokio::spawn({
        let chat = chat.clone();
        async move { chat.append_to_tip("main", vec![item("a")]).await }
    });
    until_one_waits(&client).await;
    assert_eq!(terminate(&client, "wait_event_type = 'Lock'").await, 1);
    until_one_waits(&client).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    let appended = append.await.unwrap().unwrap();
    assert!(!appended.replayed);
    chat.expect_path("main", &["a"]).await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_told_so() {
    let database = Database::migrated().await;
    let options = PostgresOptions {
        connections: 1,
        wait: Duration::ZERO,
        lock_timeout: Duration::from_millis(1),
        ..PostgresOptions::default()
    };
    let chat = Chat::start(database.store_with(options.clone()).await).await;
    let patient = PostgresOptions {
        lock_timeout: Duration::from_secs(600),
        ..options
    };
    let patient = Chat {
        store: database.store_with(patient).await,
        ..chat.clone()
    };
    let (holder, client) = (database.client().await, database.client().await);
    hold(&holder).await;
    let busy = |error: Error, why: &str| {
        assert!(error.is_retryable());
        assert!(error.to_string().contains(why), "{error}");
    };
    busy(
        chat.append_to_tip("main", vec![item("a")])
            .await
            .unwrap_err(),
        "another write to the same conversation",
    );
    // The only connection is in use.
    let append = tokio::spawn({
        let chat = patient.clone();
        async move { chat.append_to_tip("main", vec![item("a")]).await }
    });
    until_one_waits(&client).await;
    let read = patient.store.list_refs(&patient.owner, &patient.id).await;
    busy(read.unwrap_err(), "all connections are in use");
    holder.batch_execute("ROLLBACK").await.unwrap();
    append.await.unwrap().unwrap();
    chat.expect_path("main", &["a"]).await;
    database.drop().await;
}

/// Writes of one owner that wait for each other neither take all connections nor all turns of writers.
#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_leave_connections_to_others() {
    const WRITERS: usize = 12;
    let database = Database::migrated().await;
    let options = PostgresOptions {
        connections: 4,
        // Whoever has no connection is told at once.
        wait: Duration::ZERO,
        lock_timeout: Duration::from_secs(600),
        ..PostgresOptions::default()
    };
    let store = database.store_with(options).await;
    let ada = Chat::start_as(Arc::clone(&store), "ada", "chat").await;
    let bob = Chat::start_as(store, "bob", "chat").await;
    let (holder, client) = (database.client().await, database.client().await);
    let hold = "BEGIN; SELECT * FROM contexture.conversations WHERE owner = 'ada' FOR UPDATE";
    holder.batch_execute(hold).await.unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let chat = ada.clone();
            let append = async move {
                let words = vec![item(&number.to_string())];
                chat.append_to_tip("main", words).await
            };
            tokio::spawn(append)
        })
        .collect();
    // Two of the three turns of writers.
    until_waiting(&client, 2).await;
    // A connection, and a turn of writers, is left for him; she may still read.
    bob.append_messages("main", &["a"]).await;
    bob.expect_path("main", &["a"]).await;
    ada.expect_path("main", &[]).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    let mut written = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => written += 1,
            Err(error) => assert!(matches!(error, Error::Busy { .. }), "{error}"),
        }
    }
    assert!((1..=WRITERS).contains(&written), "{written}");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_of_one_branch_lose_nothing() {
    const WRITERS: usize = 32;
    const EACH: usize = 10;
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (address, chat) = (database.address.clone(), chat.clone());
            tokio::spawn(async move {
                // As a process of its own would: with connections of its own.
                let options = PostgresOptions {
                    connections: 1,
                    lock_timeout: Duration::from_secs(600),
                    ..PostgresOptions::default()
                };
                let store = PostgresStore::open_with(&address, options).await.unwrap();
                for n in 0..EACH {
                    let word = format!("{writer} {n}");
                    let at = Chat::at_tip("main");
                    let request = AppendRequest::new(at, vec![item(&word)], NOW);
                    let appended = store.append_items(&chat.owner, &chat.id, request).await;
                    assert!(!appended.unwrap().replayed);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let path = chat
        .path_nodes(contexture_store_testkit::chat::branch_end("main"))
        .await;
    assert_eq!(path.len(), WRITERS * EACH);
    let ids: std::collections::BTreeSet<_> = path.iter().map(|node| node.id).collect();
    assert_eq!(ids.len(), WRITERS * EACH);
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_a_connection_waits_for_another() {
    const WRITERS: usize = 32;
    let database = Database::migrated().await;
    let admin = database.client().await;
    let role = format!("few_{}", std::process::id());
    let grants = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'few' CONNECTION LIMIT 3; \
         GRANT ALL ON SCHEMA contexture TO {role}; \
         GRANT ALL ON ALL TABLES IN SCHEMA contexture TO {role}; \
         GRANT ALL ON ALL SEQUENCES IN SCHEMA contexture TO {role}"
    );
    admin.batch_execute(&grants).await.unwrap();
    let (_, place) = database.address.split_once('@').unwrap();
    let address = format!("postgres://{role}:few@{place}");
    let store = PostgresStore::open(&address).await.unwrap();
    let chat = Chat::start(Arc::new(store)).await;
    let appends = (0..WRITERS).map(|writer| {
        let chat = chat.clone();
        tokio::spawn(async move {
            chat.append_to_tip("main", vec![item(&format!("{writer}"))])
                .await
        })
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.unwrap().unwrap();
    }
    let of_role = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1";
    let row = admin.query_one(of_role, &[&role]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 3);
    let path = chat.path_nodes(contexture_store_testkit::chat::branch_end("main"));
    assert_eq!(path.await.len(), WRITERS);
    drop(chat);
    let gone = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    admin.batch_execute(&gone).await.unwrap();
    database.drop().await;
}

/// How many of the store's statements the server runs that look like this.
async fn running(client: &Client, words: &str) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
               AND application_name = 'contexture' AND query LIKE $1";
    let row = client.query_one(sql, &[&format!("%{words}%")]).await;
    row.unwrap().get(0)
}

/// Makes every search wait on the server until the transaction that is returned ends.
async fn block_searches(database: &Database) -> Client {
    let blocker = database.client().await;
    let lock = "BEGIN; LOCK TABLE contexture.terms IN ACCESS EXCLUSIVE MODE";
    blocker.batch_execute(lock).await.unwrap();
    blocker
}

fn search_for(chat: &Chat, owner: &str) -> tokio::task::JoinHandle<Result<usize, Error>> {
    let (store, owner) = (Arc::clone(&chat.store), owner.parse().unwrap());
    tokio::spawn(async move {
        let request = SearchRequest::new("a", SearchScope::Owner);
        let page = store.search().unwrap().search_nodes(&owner, request).await;
        Ok(page?.hits.len())
    })
}

/// While one owner's searches take as long as they like, others search, and everybody reads. Whoever
/// leaves cancels the statement on the server.
#[tokio::test(flavor = "multi_thread")]
async fn searches_that_hang_delay_nothing_and_end_with_their_callers() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let chat = Chat::start(database.store().await).await;
    chat.append_messages("main", &["a"]).await;
    let blocker = block_searches(&database).await;
    let waiting: Vec<_> = (0..3).map(|_| search_for(&chat, "ada")).collect();
    while running(&client, "contexture.terms").await < 2 || chat.store.read_load().scan_waits < 1 {
        tokio::task::yield_now().await;
    }
    let others = search_for(&chat, "bob");
    while running(&client, "contexture.terms").await < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(chat.store.read_load().running_scans, 3);
    chat.expect_path("main", &["a"]).await;
    chat.store.check_connection().await.unwrap();
    for task in waiting.into_iter().chain([others]) {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    while running(&client, "contexture.terms").await > 0 {
        tokio::task::yield_now().await;
    }
    let load = chat.store.read_load();
    assert_eq!(load.running_scans, 0);
    // The one that waited may have had its turn before it was told to leave.
    assert!((3..=4).contains(&load.interrupted), "{load:?}");
    blocker.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(
        search_for(&chat, chat.owner.as_str())
            .await
            .unwrap()
            .unwrap(),
        1
    );
    drop((chat, client, blocker));
    database.drop().await;
}

/// A statement of a read that takes too long is stopped by the server; the store goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_ends_when_its_time_is_up() {
    let database = Database::migrated().await;
    let options = PostgresOptions {
        read_timeout: Duration::from_millis(50),
        ..PostgresOptions::default()
    };
    let chat = Chat::start(database.store_with(options).await).await;
    let blocker = block_searches(&database).await;
    let error = search_for(&chat, "ada").await.unwrap().unwrap_err();
    assert!(
        error.is_retryable() && error.kind() == "interrupted",
        "{error:?}"
    );
    blocker.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(search_for(&chat, "ada").await.unwrap().unwrap(), 0);
    drop((chat, blocker));
    database.drop().await;
}

/// A server that cannot be reached, and sessions that it ends, are errors that pass.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_an_error_that_passes() {
    let database = Database::migrated().await;
    let (proxy, chat) = through_a_proxy(&database).await;
    for _ in 0..5 {
        proxy.cut(Cut::Before("FROM contexture.branches"));
    }
    let read = chat.store.list_refs(&chat.owner, &chat.id).await;
    // Five attempts and all of them in vain.
    let error = read.unwrap_err();
    assert!(proxy.is_done());
    assert!(
        matches!(error, Error::Unavailable { .. }) && error.is_retryable(),
        "{error:?}"
    );
    for _ in 0..5 {
        proxy.cut(Cut::Before("UPDATE contexture.conv"));
    }
    let claim = chat.change_ref(claim_of("main")).await;
    assert!(
        matches!(claim.unwrap_err(), Error::Unavailable { .. }),
        "nothing was stored"
    );
    let nobody = "postgres://nobody@127.0.0.1:1/none?sslmode=disable";
    let error = PostgresStore::open(nobody).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    drop(chat);
    database.drop().await;
}
