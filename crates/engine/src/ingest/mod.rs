//! Ingesting requests of clients that keep no state: finding their conversation, storing only what is new.
//!
//! Such a client sends its whole history with each request. The stored part is found by hashes of its beginnings, in one
//! look-up, and only the rest is stored. A miss costs a new conversation, never correctness: what is found was stored for
//! this owner, word for word.
//!
//! The way of a request:
//!
//! 1. `types`: the request, and what became of it;
//! 2. `keys`, `request_history`: hashes of its beginnings, keyed by owner and partition;
//! 3. `shared_exchanges`: the answers that it holds and another process has not recorded yet are waited for;
//! 4. `candidates`: the stored places that match one of them;
//! 5. `choose_target`, with `resolve_match`, `compare_tail` and `window`: the place the request continues from;
//! 6. `new_nodes`, with `renamed_calls`: the items that are new, as nodes;
//! 7. `job`: the transaction, and retries;
//! 8. `answer`, with `passthrough`: the provider's answer, later; or
//! 9. `withdraw`: there is none.
//!
//! Hashes cover what a client was shown, so nodes for the model alone never prevent a match.
//! `rebuild` makes the index again from the stored nodes.
//!
//! Not here: what is hashed (`contexture_ir::HistoryHasher`), HTTP (`contexture-server`).

mod answer;
mod candidates;
mod choose_target;
mod compare_tail;
mod job;
mod keys;
mod new_nodes;
mod passthrough;
mod rebuild;
mod renamed_calls;
mod request_history;
mod resolve_match;
mod shared_exchanges;
mod types;
mod window;
mod withdraw;

pub use answer::{AnswerOptions, InterceptedCall};
pub(crate) use job::ingest_request;
pub(crate) use rebuild::rebuild_path_index;
pub use types::{IngestRequest, Ingested, MatchKind};
pub use withdraw::Withdrawal;
