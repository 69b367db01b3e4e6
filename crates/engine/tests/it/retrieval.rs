//! What was said in recorded sessions is found again when it is asked for.

use crate::recalling::{Library, Recall, Wording};
use crate::support::open_file;

/// Half of the sessions; `cargo xtask bench retrieval` asks all.
#[tokio::test]
async fn what_was_said_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let engine = open_file(&path);
    let library = Library::of(engine, 100).await;
    for (wording, least) in [(Wording::AsSaid, 80), (Wording::Without, 45)] {
        let recall = library.recall(wording).await;
        println!("{wording:?}: {recall:?}");
        let Recall {
            asked,
            at_10,
            at_20,
        } = recall;
        assert!(asked >= 20, "{recall:?}");
        assert!(at_10 * 100 >= asked * least, "{wording:?}: {recall:?}");
        assert!(at_20 >= at_10, "{recall:?}");
    }
}
