//! The in-memory store shows every behaviour, and follows the model.

use std::sync::Arc;

use contexture_store::{MemoryStore, Store};

#[tokio::test(flavor = "multi_thread")]
async fn the_in_memory_store_shows_every_behaviour() {
    let open = async || Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    let shown = contexture_store_testkit::run_all(open).await;
    assert!(shown >= 50, "only {shown} behaviours in the table");
}

#[test]
fn the_in_memory_store_follows_the_model() {
    // Reopening gives the same store: this one lives as long as its value.
    let stores = std::sync::Mutex::new((0, Arc::new(MemoryStore::new())));
    contexture_store_testkit::model::check(async |case| {
        let mut stores = stores.lock().unwrap();
        if stores.0 != case {
            *stores = (case, Arc::new(MemoryStore::new()));
        }
        Arc::clone(&stores.1) as Arc<dyn Store>
    });
}
