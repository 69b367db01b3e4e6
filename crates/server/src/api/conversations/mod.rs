//! Resources under `/conversations/{conversation}`: the conversation itself, and what belongs to its tree.
//!
//! Handlers open the conversation of the caller's owner first, so that an id of another owner is answered as not found.

pub(super) mod branches;
pub(super) mod checkpoints;
pub(super) mod compactions;
pub(super) mod conversation;
pub(super) mod events;
pub(super) mod links;
pub(super) mod log;
pub(super) mod messages;
pub(super) mod pins;
pub(super) mod rules;
