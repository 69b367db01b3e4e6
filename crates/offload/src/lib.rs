//! Copies of tool outputs outside the database: for programs that want a file, for machines that share a bucket.
//!
//! The tree of a conversation keeps every output, and links are resolved there. What lies here is *derived*: a copy
//! of a text that the tree still has, put where `grep` or another process can reach it. It may be swept away at any
//! time by age, number or size; nothing is ever swept unless somebody asks. What was evicted leaves a tombstone, an
//! empty file or object: reading it says [`OffloadError::Evicted`] and not that it never was, and whoever puts back
//! what is missing leaves it alone. A host may also keep a text here *only*: then a sweep leaves it alone unless told
//! otherwise.
//!
//! * [`OffloadStore`] is the trait, its documentation the contract; [`FsOffloadStore`], [`MemoryOffloadStore`] and, with
//!   the feature `objects`, `ObjectOffloadStore` fulfil it, and anybody's own may.
//! * [`CopyKey`] names a copy by digests of owner and conversation and by the hash of the output: what a listing or a
//!   path shows tells nobody whose it is, and nothing that a model or a user wrote ever becomes a part of a path.
//! * [`sweep_copies`] applies limits, and reports.
//!
//! Stores keep no index in memory: what lies there is what a listing shows, after a restart as before.
//!
//! Not here: the tree, links and how they are resolved, a clock.

mod copy_key;
mod error;
mod evict;
mod files;
mod fs;
mod memory;
mod name;
#[cfg(feature = "objects")]
mod object;
mod store;

pub use copy_key::{CopyKey, CopyScope};
pub use error::OffloadError;
pub use evict::{
    Evictable, Evicted, EvictedBy, EvictionLimits, FailedEviction, SweepReport, sweep_copies,
    sweep_copies_with,
};
pub use fs::FsOffloadStore;
pub use memory::MemoryOffloadStore;
#[cfg(feature = "objects")]
pub use object::ObjectOffloadStore;
pub use store::{CopyKind, CopyMetadata, CopyStats, OffloadStore, PutOutcome, Reconciled};
