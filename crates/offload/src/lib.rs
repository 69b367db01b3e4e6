//! Copies of tool outputs outside the database: for programs that want a file, for machines that share a bucket.
//!
//! The tree of a conversation keeps every output, and links are resolved there. What is stored here is *derived*: a
//! copy of a text that the tree still has, placed where `grep` or another process can reach it. Copies may be evicted
//! at any time by age, number or size, but only when a caller asks for it. An evicted copy leaves a tombstone, an empty
//! file or object: reading it returns [`OffloadError::Evicted`] and not `NotFound`, so that code which restores missing
//! copies skips it. A host may also keep a text *only* here: then a sweep skips it unless told otherwise.
//!
//! * [`OffloadStore`] is the trait, whose documentation is the contract; [`FsOffloadStore`], [`MemoryOffloadStore`]
//!   and, with the feature `objects`, `ObjectOffloadStore` implement it, and so may other crates.
//! * [`CopyKey`] identifies a copy by digests of owner and conversation and by the hash of the output: a listing or a
//!   path reveals nobody's name, and nothing that a model or a user wrote becomes part of a path.
//! * [`sweep_copies`] applies limits, and reports what it evicted.
//!
//! Stores keep no index in memory: a listing reads the storage, so it is the same after a restart.
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
