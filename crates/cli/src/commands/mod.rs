//! The commands, one file or folder each: what they take, and what they do with it.
//!
//! Thin on purpose: whatever another program could want to do stands in the libraries.

pub(crate) mod backup;
pub(crate) mod branch;
pub(crate) mod calls;
pub(crate) mod chat;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod conversations;
pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod import;
#[cfg(feature = "serve")]
pub(crate) mod keys;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod migrate;
pub(crate) mod pin;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod search;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod skills;
pub(crate) mod stats;
pub(crate) mod uncompact;
pub(crate) mod verify;
