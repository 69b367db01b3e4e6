//! The table of behaviours.

use std::cell::Cell;

use contexture_store_postgres::PostgresOptions;
use contexture_store_testkit::{LANES, behaviours, test_limits};

use crate::server::Database;

#[tokio::test(flavor = "multi_thread")]
async fn the_postgres_store_shows_every_behaviour() {
    let mut databases = Vec::new();
    for _ in 0..LANES {
        let database = Database::migrated().await;
        let clean = database.client().await;
        databases.push((database, clean));
    }
    // No behaviour is passed over because something is not offered.
    let store = databases[0].0.store().await;
    let offered = (store.search(), store.streams(), store.maintenance());
    assert!(matches!(offered, (Some(_), Some(_), Some(_))));
    drop(store);
    let shown = contexture_store_testkit::run_all(async |lane| {
        let (database, clean) = &databases[lane];
        // Each behaviour finds an empty store.
        empty(clean).await;
        let options = PostgresOptions {
            limits: test_limits(),
            ..PostgresOptions::default()
        };
        database.store_with(options).await
    })
    .await;
    assert_eq!(shown, behaviours().len());
    for (database, clean) in databases {
        drop(clean);
        database.drop().await;
    }
}

#[test]
fn the_postgres_store_follows_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::migrated());
    let last = Cell::new(0);
    contexture_store_testkit::model::check_store(async |case| {
        if last.replace(case) != case {
            empty(&database.client().await).await;
        }
        database.store().await
    });
    runtime.block_on(database.drop());
}

/// Takes everything out of the tables.
async fn empty(client: &tokio_postgres::Client) {
    let tables = client
        .query(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'contexture' AND tablename <> 'schema_version'",
            &[],
        )
        .await
        .unwrap();
    let tables: Vec<String> = tables
        .iter()
        // Quicker than `TRUNCATE` where there is little to remove.
        .map(|row| format!("DELETE FROM contexture.{};", row.get::<_, &str>(0)))
        .collect();
    client.batch_execute(&tables.concat()).await.unwrap();
}
