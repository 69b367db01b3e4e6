//! The in-memory store shows every behaviour, and follows the model.

use std::sync::Arc;

use contexture_store::{MemoryStore, Store};

#[tokio::test(flavor = "multi_thread")]
async fn the_in_memory_store_shows_every_behaviour() {
    let open = async || Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    let shown = contexture_store_testkit::run_all(open).await;
    assert!(shown >= 50, "only {shown} behaviours in the table");
}
