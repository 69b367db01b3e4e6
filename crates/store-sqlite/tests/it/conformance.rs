//! The table of behaviours.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_store::Store;
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use contexture_store_testkit::model::{Dose, check_store_with};
use contexture_store_testkit::test_limits;

#[tokio::test(flavor = "multi_thread")]
async fn the_sqlite_store_shows_every_behaviour() {
    let directory = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let open = async |_| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let path = directory.path().join(format!("{n}.db"));
        let options = SqliteOptions {
            limits: test_limits(),
            ..SqliteOptions::default()
        };
        Arc::new(SqliteStore::open_with(path, options).unwrap()) as Arc<dyn Store>
    };
    contexture_store_testkit::run_all(open).await;
}

#[test]
fn the_sqlite_store_follows_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.db");
    let dose = Dose {
        usual: 100,
        ..Dose::default()
    };
    // One database for all: making one takes longer than using it.
    check_store_with(dose, async |_| {
        // What is tested here is not durability, and a sync per operation is slow.
        let options = SqliteOptions {
            synchronous: Synchronous::Normal,
            ..SqliteOptions::default()
        };
        Arc::new(SqliteStore::open_with(&path, options).unwrap()) as Arc<dyn Store>
    });
}
