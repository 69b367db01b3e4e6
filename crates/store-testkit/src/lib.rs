//! The behaviours that every conversation store must have, each implemented once.
//!
//! # For the author of a backend
//!
//! Implement [`Store`](contexture_store::Store), and in the backend's tests pass [`run_all`] a
//! function that opens an empty store. Every [`Behaviour`] of the table runs on a store of its own
//! and fails by panicking, like any test.
//!
//! ```
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! use std::sync::Arc;
//! use contexture_store::{MemoryStore, Store};
//! use contexture_store_testkit::{Level, run_levels};
//!
//! // Yours instead of `MemoryStore`: an empty database each time.
//! let open = async |_| Arc::new(MemoryStore::new()) as Arc<dyn Store>;
//! let shown = run_levels(&[Level::Ownership], open).await;
//! assert!(shown > 0);
//! # });
//! ```
//!
//! Behaviours have a [`Level`]; implement the levels in this order:
//!
//! 1. [`Level::Base`]: what the contract says, for single and for concurrent calls.
//! 2. [`Level::Ownership`]: no owner learns about another. The table has a row for every
//!    [`Method`]; a method that is added to the contract without one fails this crate's tests.
//! 3. [`Level::Faults`]: calls fail before or after they took effect, and are repeated; the outcome
//!    is the one without faults. [`Faulty`] makes them fail; it wraps any store, and can also test
//!    code that is built on a store.
//! 4. [`Level::Abuse`]: hostile and absurd input.
//!
//! [`model::check_store`] then drives the store against a plain model with random operations. A
//! capability that a backend does not have ([`Store::search`](contexture_store::Store::search) is
//! `None`) is passed over. What is the backend's own to test: crashes, damaged files, disk space,
//! several processes, migrations, the plans of its queries.
//!
//! # Weaknesses of other stores
//!
//! Behaviours by which another store lost, leaked or blocked data, as reproduced with its code, and
//! the tests that show that ours does not have them.
//!
//! | Weakness | Shown by |
//! |---|---|
//! | overlapping turns orphan acknowledged messages, with a fresh and with a shared handle | `concurrency::overlapping_turns_lose_nothing`, `appending::a_moved_head_may_open_a_sibling` |
//! | a repeated save is taken for an edit | `replaying::a_repeated_append_is_a_replay`, `replaying::after_the_head_has_moved` |
//! | a crash between rows and head leaves an orphan, its repetition a fork | `faults::repeating_any_failed_write_converges`, SQLite: `crash` |
//! | of fifty concurrent saves five succeed | `concurrency::of_many_tips_all_succeed`, `concurrency::appends_of_a_thousand_tasks`, `faults::what_is_acknowledged_is_there_once`, SQLite: `processes`, PostgreSQL: `processes` |
//! | processes that start together deadlock over the schema | SQLite: `files::several_openings_at_once_migrate_once` |
//! | a stranger overwrites a message by its id, and reads the conversation | `owners::nobody_learns_of_a_strangers_conversation`, `replaying::ids_belong_to_conversations` |
//! | an error names the owner | `owners::nobody_learns_of_a_strangers_conversation` |
//! | of two concurrent rewinds one fails; two branches are active, or none | `concurrency::rewinds_all_get_names`, `branching::the_active_branch_stays` |
//! | a cycle of parents never ends | `abuse::references_out_of_the_conversation`: parents are not given, so there is no cycle to give |
//! | search strings are errors, or another language | `searching::any_text_is_a_query` |
//! | names derive from `main`, whatever the branch they start from is called | `branching::automatic_names_follow_the_formula` |
//! | a large conversation cannot be deleted | `concurrency::appends_of_a_thousand_tasks`, SQLite: `removal`, PostgreSQL: `removal` |
//! | a transaction that begins by reading fails at once when another commits | `concurrency::a_deletion_among_writers_and_readers`, SQLite: `processes` |
//! | long paths lose their oldest messages | `concurrency::appends_of_a_thousand_tasks`, `reading::parts_and_pages` |
//! | an outdated writer's chunks mix with the new ones, and an old place skips them | `streaming::reopening_fences_the_old_writer`, `streaming::a_cursor_belongs_to_its_epoch`, `streaming::an_end_is_an_end` |
//! | NUL, lone surrogates, long words are refused, and half a batch is stored | `bytes::hostile_text_changes_nothing`, `appending::outputs_answer_calls_on_their_path` |
//! | JSON comes back in another order | `bytes::are_kept_as_they_are`, `conversations::metadata_values_are_kept_as_written` |
//! | writes and deletions grow slower with what is stored, rewinds with the path | SQLite: `query_plans`, `benches/store.rs`; `abuse::nested_rewinds` |
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a behaviour that does not hold fails by panicking: that is what a test is"
)]

mod behaviour;
mod behaviours;
pub mod chat;
mod faulty;
pub mod generated_words;
pub mod history;
mod method;
pub mod model;
mod run;

pub use behaviour::{Behaviour, Level, Running};
pub use behaviours::behaviours;
pub use chat::Chat;
pub use faulty::{Chances, Faulty, InjectedFault, test_seed};
pub use method::Method;
pub use run::{LANES, run_all, run_levels, test_limits};
