//! Clients that keep no state, matched to their conversations.
//!
//! Such a client sends its whole history with each request. What of it is stored is found by hashes of
//! its beginnings, in one look-up, and only the rest is stored. A miss costs a conversation, never
//! correctness: what is found was said by this owner, word for word.
//!
//! One way through: what comes in (`incoming`), the keys it is looked up by (`keys`), the places found
//! (`find`), the one that is meant (`spot`), the nodes to be stored (`news`, `renamed`), the transaction
//! (`ingest`), and later the answer (`answer`). Not here: what is hashed (`contexture_ir::HistoryHasher`), HTTP.

mod answer;
mod billed;
mod copy;
mod find;
mod incoming;
mod ingest;
mod keys;
mod news;
mod rebuild;
mod relayed;
mod renamed;
mod sent;
mod spot;
mod window;

pub use answer::{AnswerOptions, InterceptedCall};
pub use incoming::{IngestRequest, Ingested, MatchKind};
