//! What the doors of Contexture do alike: the HTTP API, the command line, MCP and the language packages call these with the documents
//! they were given, and add nothing.
//!
//! The loop of an agent, for a stored conversation: [`compile_conversation`] gives a request and the id of the call,
//! [`record_answer`] takes the provider's answer, [`handle_calls`] answers the calls that are ours, [`check_call`] says whether
//! a call is allowed. [`compile_document`] does the same for a history that its caller keeps: document and plan in, request and
//! plan out. [`explain_conversation`] and [`compile_what_if`] say what a call would be; [`describe_call`] and [`diff_requests`] what
//! past ones were.
//!
//! Not here: how a document travels, and as what an error is answered.

mod check;
mod compile;
mod compile_document;
mod explain;
mod handle;
mod host;
mod message_input;
mod nearby;
mod own_tools;
mod past_call;
mod record;
mod request;
mod search;
mod tools;

pub use check::check_call;
pub use compile::{CompilePurpose, CompiledConversation, compile_conversation, keep_compiled};
pub use compile_document::compile_document;
pub use explain::{ExplainDetail, build_page_items, compile_what_if, explain_conversation};
pub use handle::handle_calls;
pub use host::Host;
pub use message_input::{MessageRun, read_items, read_messages};
pub use nearby::{MAX_NEARBY, PathPlace, find_place};
pub use own_tools::{PathState, answer_own_call};
pub use past_call::{CallPart, describe_call, diff_requests, parse_call_id};
pub use record::record_answer;
pub use request::memory_layer;
pub use search::{
    FoundItems, TypedSearch, encode_hit_cursor, has_only_signs, parse_hit_cursor, search_typed,
};

use contexture::EngineError;
use contexture::compile::CompileError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// A member of a document says what cannot be done.
    #[error("`{member}`: {detail}")]
    Member {
        /// Name of the member.
        member: String,
        /// What is wrong, and what was expected.
        detail: String,
    },
    /// A message or an item cannot be read.
    #[error("{0}")]
    Message(String),
    /// The engine's own error.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl OperationError {
    pub(crate) fn member(member: &str, detail: impl Into<String>) -> Self {
        Self::Member {
            member: member.to_owned(),
            detail: detail.into(),
        }
    }
}

impl From<CompileError> for OperationError {
    fn from(error: CompileError) -> Self {
        Self::Engine(match error {
            CompileError::Catalogue(error) => error.into(),
            CompileError::Refused(refusal) => refusal.into(),
        })
    }
}
