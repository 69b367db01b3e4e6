//! Opening and migrating.

use contexture_ir::Owner;
use contexture_store::{
    ConversationUpdate, Error, ExpectedVersion, KeyScope, PutEntry, StorageFault, TitleChange,
};
use contexture_store_postgres::{FORMAT, PostgresStore, migrate};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, branch_end};

use crate::proxy::{Cut, Proxy};
use crate::server::Database;

#[tokio::test]
async fn a_database_that_was_not_migrated_says_what_to_do() {
    let database = Database::empty().await;
    let error = PostgresStore::open(&database.address).await.unwrap_err();
    let Error::Older { found, needed, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*found, *needed), (0, FORMAT));
    assert!(
        error
            .to_string()
            .ends_with("the database has no tables of ours yet: run `contexture migrate`, or call the store's `migrate`"),
        "{error}"
    );
    assert_eq!(migrate(&database.address).await.unwrap(), 0);
    PostgresStore::open(&database.address).await.unwrap();
    assert_eq!(migrate(&database.address).await.unwrap(), FORMAT);
    database.drop().await;
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let database = Database::migrated().await;
    let newer = format!(
        "UPDATE contexture.schema_version SET format = 99, needs = {}",
        FORMAT + 1
    );
    database.client().await.batch_execute(&newer).await.unwrap();
    for error in [
        PostgresStore::open(&database.address).await.unwrap_err(),
        migrate(&database.address).await.unwrap_err(),
    ] {
        let Error::Newer {
            found, supported, ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((found, supported), (FORMAT + 1, FORMAT));
    }
    // A later version that we may still follow.
    let follow = "UPDATE contexture.schema_version SET needs = 1";
    database.client().await.batch_execute(follow).await.unwrap();
    PostgresStore::open(&database.address).await.unwrap();
    database.drop().await;
}

#[tokio::test]
async fn somebody_elses_schema_is_left_alone() {
    let database = Database::empty().await;
    let theirs = "CREATE SCHEMA contexture; CREATE TABLE contexture.plans (a integer)";
    database.client().await.batch_execute(theirs).await.unwrap();
    let error = migrate(&database.address).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Storage {
            fault: StorageFault::NotADatabase,
            ..
        }
    ));
    database.drop().await;
}

#[tokio::test]
async fn an_encoding_that_cannot_hold_every_text_is_refused() {
    let database = Database::encoded("LATIN1").await;
    let error = migrate(&database.address).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.contains("LATIN1") && source.contains("UTF8"),
        "{source}"
    );
    database.drop().await;
}

/// What there is: tables, indexes and their columns.
async fn tables(database: &Database) -> Vec<String> {
    let rows = database
        .client()
        .await
        .query(
            "SELECT c.relname || ' ' || string_agg(a.attname || ' ' || format_type(a.atttypid, null), ', ' \
             ORDER BY a.attnum) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relnamespace = 'contexture'::regnamespace AND a.attnum > 0 GROUP BY c.relname ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn several_may_migrate_at_once() {
    let reference = Database::migrated().await;
    for _ in 0..3 {
        let database = Database::empty().await;
        let one = || {
            let address = database.address.clone();
            tokio::spawn(async move { migrate(&address).await })
        };
        for done in [one(), one(), one()] {
            done.await.unwrap().unwrap();
        }
        assert_eq!(tables(&database).await, tables(&reference).await);
        Chat::start(database.store().await)
            .await
            .append_messages("main", &["a"])
            .await;
        database.drop().await;
    }
    reference.drop().await;
}

#[tokio::test]
async fn an_interrupted_migration_goes_on() {
    let reference = Database::migrated().await;
    let database = Database::empty().await;
    let proxy = Proxy::start(&database.address).await;
    let address = proxy.through(&database.address);
    // Each statement is cut off twice: before it is noted, and after it is committed.
    let mut cuts = [
        Cut::Before("UPDATE contexture.schema_version"),
        Cut::AfterCommit,
    ]
    .into_iter()
    .cycle();
    let mut interrupted = 0;
    loop {
        proxy.cut(cuts.next().unwrap());
        if migrate(&address).await.is_ok() {
            break;
        }
        assert!(proxy.is_done());
        interrupted += 1;
    }
    assert!(interrupted > 40, "{interrupted}");
    assert_eq!(tables(&database).await, tables(&reference).await);
    PostgresStore::open(&database.address).await.unwrap();
    database.drop().await;
    reference.drop().await;
}

#[tokio::test]
async fn no_password_is_told() {
    let secret = "hunter2hunter2";
    let database = Database::migrated().await;
    let (_, rest) = database.address.split_once('@').unwrap();
    for address in [
        format!("postgres://postgres:{secret}@{rest}"),
        format!("postgres://nobody:{secret}@{rest}"),
        format!("postgres://postgres:{secret}@127.0.0.1:1/postgres"),
        format!("postgres://postgres:{secret}@127.0.0.1:nine/postgres"),
    ] {
        let error = PostgresStore::open(&address).await.unwrap_err();
        let mut told = format!("{error} {error:?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            told.push_str(&format!(" {cause} {cause:?}"));
            source = cause.source();
        }
        assert!(!told.contains(secret), "{told}");
    }
    let store = PostgresStore::open(&database.address).await.unwrap();
    let (_, password) = database
        .address
        .rsplit_once('@')
        .map_or(("", ""), |(start, _)| start.rsplit_once(':').unwrap());
    assert!(!format!("{store:?}").contains(password));
    database.drop().await;
}

#[tokio::test]
async fn text_may_hold_zero_bytes() {
    let database = Database::migrated().await;
    let chat = Chat::start(database.store().await).await;
    let text = "a\0b";
    let update = ConversationUpdate {
        title: TitleChange::Set(Some(text.to_owned())),
        ..ConversationUpdate::new(NOW)
    };
    let store = &chat.store;
    let updated = store
        .update_conversation(&chat.owner, &chat.id, update)
        .await;
    assert_eq!(updated.unwrap().title.as_deref(), Some(text));
    let record = store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.title.as_deref(), Some(text));
    let scope = KeyScope::Resource(text.to_owned());
    let put = PutEntry {
        key: text.to_owned(),
        value: Some(text.as_bytes().into()),
        expect: ExpectedVersion::Absent,
        at_ms: NOW,
    };
    let owner = Owner::local();
    store.put_entry(&owner, &scope, put).await.unwrap();
    let entry = store
        .get_entry(&owner, &scope, text)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((entry.key.as_str(), &*entry.value), (text, text.as_bytes()));
    assert!(chat.path_nodes(branch_end("main")).await.is_empty());
    database.drop().await;
}
