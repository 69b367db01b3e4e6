//! TODO.

mod answer;
mod billed_usage;
mod candidates;
mod compare_tail;
mod job;
mod keys;
mod new_nodes;
mod passthrough;
mod rebuild;
mod renamed_calls;
mod request_history;
mod resolve_match;
mod types;
mod window;

pub use answer::{AnswerOptions, InterceptedCall};
pub(crate) use job::ingest_request;
pub(crate) use rebuild::rebuild_path_index;
pub use types::{IngestRequest, Ingested, MatchKind};
