//! Hashes of what was said, and the canonical JSON under them.
//!
//! | Term | Is the hash of | Used to tell |
//! |---|---|---|
//! | canonical JSON | nothing: one text for every spelling of the same JSON value | equal documents by their bytes |
//! | meaning hash | one item without ids, timestamps and presentation | whether two items say the same |
//! | history hash | all items up to a point, each folded into the hash before it | whether two histories share a prefix |
//!
//! Invariant: these bytes are stored. A change of any rule here needs a new version number ([`MEANING_VERSION`],
//! [`CHAIN_VERSION`]), because hashes of different versions must never be compared. Not here: hashes of raw bytes
//! ([`ContentHash`](crate::ContentHash)), and what a store does with any of them.

mod canonical_json;
mod digest;
mod history_hash;
mod meaning_hash;

pub use canonical_json::canonical_json;
pub use digest::{concat_hashes, finish_content_hash, hex};
pub use history_hash::{CHAIN_VERSION, HistoryHash, HistoryHasher};
pub use meaning_hash::{MEANING_VERSION, meaning_hash};
