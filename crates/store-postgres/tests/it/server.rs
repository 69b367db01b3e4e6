//! Databases of their own for tests, on the server that `CONTEXTURE_TEST_POSTGRES` names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_store::Store;
use contexture_store_postgres::{PostgresOptions, PostgresStore, migrate};
use tokio_postgres::{Client, NoTls};

const VARIABLE: &str = "CONTEXTURE_TEST_POSTGRES";

/// The address of the server.
pub(crate) fn address() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "these tests need a PostgreSQL server: run `cargo xtask test -p contexture-store-postgres`, which starts \
             one, or name one in {VARIABLE}=postgres://superuser:password@host:port/postgres"
        )
    })
}

/// A connection beside the store's.
pub(crate) async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    // It ends with the client.
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// A database of one test; dropped with it.
pub(crate) struct Database {
    pub(crate) address: String,
    name: String,
}

impl Database {
    /// An empty database.
    pub(crate) async fn empty() -> Self {
        Self::encoded("UTF8").await
    }

    /// An empty database whose text columns have this encoding.
    pub(crate) async fn encoded(encoding: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("contexture_{}_{number}", std::process::id());
        let server = address();
        let (start, _) = server.rsplit_once('/').expect("an address with a database");
        connect(&server)
            .await
            .batch_execute(&format!(
                "CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}'"
            ))
            .await
            .unwrap();
        Self {
            address: format!("{start}/{name}?sslmode=disable"),
            name,
        }
    }

    /// A database with the tables.
    pub(crate) async fn migrated() -> Self {
        let database = Self::empty().await;
        migrate(&database.address).await.unwrap();
        database
    }

    /// A store on it.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        self.store_with(PostgresOptions::default()).await
    }

    pub(crate) async fn store_with(&self, options: PostgresOptions) -> Arc<dyn Store> {
        Arc::new(
            PostgresStore::open_with(&self.address, options)
                .await
                .unwrap(),
        )
    }

    /// A connection beside the store's.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.address).await
    }

    /// Removes it.
    pub(crate) async fn drop(self) {
        connect(&address())
            .await
            .batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name))
            .await
            .unwrap();
    }
}
