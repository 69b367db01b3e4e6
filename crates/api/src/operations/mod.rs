//! What the doors of Contexture do alike: the HTTP API, the command line, MCP and the language packages call these with the documents
//! they were given, and add nothing.
//!
//! The loop of an agent, for a stored conversation: [`append_messages`] stores what is said, [`compile_conversation`] gives a request and the id of the call,
//! [`record_answer`] takes the provider's answer, [`handle_calls`] answers the calls that are ours, [`check_call`] says whether
//! a call is allowed. [`compile_document`] does the same for a history that its caller keeps: document and plan in, request and
//! plan out. [`explain_conversation`] and [`compile_what_if`] say what a call would be, [`compile_call_what_if`] what a past one would have
//! been; [`describe_call`], [`explain_call_items`] and [`diff_requests`] what past ones were, and [`list_branch_calls`] which.
//! [`ConversationNotes`] reads and changes the notes of the memory layer. [`ingest_request`] stores what is new of a request whose
//! client keeps the history.
//!
//! Not here: how a document travels, and as what an error is answered.

mod append;
mod check;
mod compile;
mod compile_document;
mod cursors;
mod explain;
mod handle;
mod host;
mod message_input;
mod nearby;
mod notes;
mod own_tools;
mod past_calls;
mod queue_run;
mod record;
mod request;
mod search;
mod sessions;
mod tools;

pub use append::{AppendOptions, append_messages, ingest_request};
pub use check::check_call;
pub use compile::{CompilePurpose, CompiledConversation, compile_conversation, keep_compiled};
pub use compile_document::compile_document;
pub use cursors::{
    encode_conversation_cursor, encode_hit_cursor, encode_run_cursor, parse_conversation_cursor,
    parse_hit_cursor, parse_run_cursor,
};
pub use explain::{ExplainDetail, build_page_items, explain_call_items, explain_conversation};
pub use handle::handle_calls;
pub use host::Host;
pub use nearby::{MAX_NEARBY, PathPlace, find_place};
pub use notes::{ConversationNotes, NotesError};
pub use own_tools::{PathState, answer_own_call};
pub use past_calls::{
    BranchCalls, CallPart, compile_call_what_if, compile_what_if, describe_call, diff_requests,
    list_branch_calls, parse_call_id,
};
pub use queue_run::queue_run;
pub use record::record_answer;
pub use request::memory_layer;
pub use search::{FoundItems, TypedSearch, has_only_signs, search_typed};
pub use sessions::{SessionImport, import_sessions};

use contexture::EngineError;
use contexture::compile::CompileError;
use serde_json::{Map, Value, json};

use crate::problem::{Code, engine_error_members};

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
    /// Returns the stable word of the error: that of the API, or the library's own.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Member { .. } => Code::BadBody.as_str(),
            Self::Message(_) => Code::BadMessage.as_str(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// Returns whether the same call, unchanged, may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Member { .. } | Self::Message(_) => false,
            Self::Engine(error) => error.is_retryable(),
        }
    }

    /// Returns what programs may want to know beside the code, such as `expected` and `actual` of `head_moved`.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        match self {
            Self::Member { member, detail } => {
                let faults = json!([{"member": member, "detail": detail}]);
                Map::from_iter([("faults".to_owned(), faults)])
            }
            Self::Message(_) => Map::new(),
            Self::Engine(error) => engine_error_members(error),
        }
    }

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
