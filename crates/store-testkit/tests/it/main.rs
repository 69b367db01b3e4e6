//! The in-memory store shows every behaviour, and follows the model.

mod history;

use std::sync::Arc;

use contexture_store::{MemoryStore, Store};
use contexture_store_testkit::model::{Dose, check_store_with};
use contexture_store_testkit::{Method, behaviours, test_limits};

#[tokio::test(flavor = "multi_thread")]
async fn the_in_memory_store_shows_every_behaviour() {
    let open = async |_| Arc::new(MemoryStore::with_limits(test_limits())) as Arc<dyn Store>;
    let shown = contexture_store_testkit::run_all(open).await;
    assert!(shown >= 50, "only {shown} behaviours in the table");
}

#[test]
fn the_in_memory_store_follows_the_model() {
    // Reopening gives the same store: this one lives as long as its value.
    let stores = std::sync::Mutex::new((0, Arc::new(MemoryStore::new())));
    let dose = Dose {
        usual: 2_500,
        ..Dose::default()
    };
    check_store_with(dose, async |case| {
        let mut stores = stores.lock().unwrap();
        if stores.0 != case {
            *stores = (case, Arc::new(MemoryStore::new()));
        }
        Arc::clone(&stores.1) as Arc<dyn Store>
    });
}

/// The traits' own source says which methods there are: a new one needs a [`Method`], and with it
/// a row in the ownership table.
#[test]
fn every_method_has_a_row() {
    let sources = [
        include_str!("../../../store/src/contract/store.rs"),
        include_str!("../../../store/src/contract/key_value.rs"),
        include_str!("../../../store/src/contract/capability/search.rs"),
        include_str!("../../../store/src/contract/capability/path_index.rs"),
        include_str!("../../../store/src/contract/capability/process.rs"),
        include_str!("../../../store/src/contract/capability/call.rs"),
        include_str!("../../../store/src/contract/capability/stream.rs"),
        include_str!("../../../store/src/contract/capability/maintenance.rs"),
    ];
    let mut declared: Vec<&str> = sources
        .iter()
        // Within a trait, that is: other functions stand at the margin.
        .flat_map(|source| source.split("\n    async fn ").skip(1))
        .filter_map(|rest| rest.split(['(', '<']).next())
        .collect();
    let mut known: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
    declared.sort_unstable();
    known.sort_unstable();
    assert_eq!(declared, known);
}

/// The table of weaknesses names behaviours that exist.
#[test]
fn the_documentation_names_behaviours() {
    let known: Vec<&str> = behaviours().iter().map(|one| one.name).collect();
    let rows = include_str!("../../src/lib.rs").lines();
    let rows: Vec<&str> = rows.filter(|line| line.starts_with("//! | ")).collect();
    let mut named = 0;
    for row in &rows {
        // What is a backend's own is named after the backend.
        let ours = row.split("SQLite:").next().unwrap_or_default();
        for name in ours.split('`').filter(|name| name.contains("::")) {
            assert!(known.contains(&name), "{name} is no behaviour");
            named += 1;
        }
    }
    assert!(rows.len() > 15 && named > 20, "{} rows", rows.len());
}
