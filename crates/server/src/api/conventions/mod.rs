//! Conventions that all resources of the API follow: pagination, entity tags, idempotency keys, error responses, and how a
//! conversation and its branch are named in a path.
//!
//! Not here: what a resource does with them, and the documents (`contexture-api`).

pub(super) mod conversation_path;
pub(super) mod error_responses;
pub(super) mod etag;
pub(super) mod idempotency;
pub(super) mod page;
