//! Why a tool gave no answer, in words for the model that called it.
//!
//! A call that failed is an answer of the protocol (`isError`), so that the model reads what to do; only what is no
//! call at all is an error of the protocol. What belongs to another owner is not found, in the same words as what
//! nobody has. What went wrong in this process (a damaged file, a full disk) is told by its kind alone; the rest goes
//! to the log, as paths and a database's words are nobody's business.

use std::error::Error;
use std::fmt::Write as _;

use contexture::EngineError;
use contexture::catalogue::CatalogueError;
use contexture::store::{EntityKind, Error as StoreError};
use contexture_api::operations::OperationError;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::json;

/// The key of an error's word for programs, in `_meta`.
const ERROR_META_KEY: &str = "contexture/error";

/// Why a tool gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolError {
    kind: &'static str,
    message: String,
    hint: Option<&'static str>,
    retryable: bool,
}

impl ToolError {
    /// An error with a stable word for programs, and what it is.
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            retryable: false,
        }
    }

    /// Arguments that are wrong.
    pub(crate) fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new("bad_arguments", message)
    }

    /// A place of a list that no page has given.
    pub(crate) fn invalid_cursor(text: &str) -> Self {
        // It comes from outside and may be of any length.
        let shown: String = text.chars().take(80).collect();
        Self::new("bad_cursor", format!("{shown:?} is no cursor"))
            .with_hint("give `next_cursor` of the page before as it is, or none for the first page")
    }

    /// Adds what to do about it.
    pub(crate) const fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Whether there is no such thing, or it is another owner's.
    pub(crate) fn is_not_found(&self) -> bool {
        // A name that breaks the grammar names nothing, so it is not found either.
        matches!(self.kind, "not_found" | "evicted" | "bad_name")
    }

    /// What happened, and what to do.
    pub(crate) fn full_message(&self) -> String {
        let mut text = self.message.clone();
        if let Some(hint) = self.hint {
            let _ = write!(text, ". What to do: {hint}");
        }
        text
    }

    /// As the answer of a call.
    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.full_message())]);
        let mut meta = MetaObject::new();
        let said = json!({ "kind": self.kind, "retryable": self.retryable });
        // The protocol has no field for it; `_meta` takes keys with a prefix.
        meta.0.insert(ERROR_META_KEY.to_owned(), said);
        result.meta = Some(meta);
        result
    }
}

impl From<OperationError> for ToolError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Engine(error) => error.into(),
            // A member of a document is an argument of the tool.
            error => Self::invalid_arguments(error.to_string()),
        }
    }
}

impl From<EngineError> for ToolError {
    fn from(error: EngineError) -> Self {
        let kind = error.kind();
        // A fault is this process's; everything else the caller can do something about.
        let message = match error.is_fault() {
            // The whole chain goes to the log and never to the client: it may name paths and
            // tables.
            true => {
                tracing::error!(error = %error_chain(&error), "a request failed");
                format!("the server failed ({kind}); its log says how")
            }
            false => match &error {
                EngineError::Catalogue(CatalogueError::UnknownModel { name, similar }) => {
                    describe_unknown_model(name, similar)
                }
                error => error_chain(error),
            },
        };
        Self {
            kind,
            message,
            hint: hint_for_error(&error),
            retryable: error.is_retryable(),
        }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<contexture::ir::Error> for ToolError {
    fn from(error: contexture::ir::Error) -> Self {
        EngineError::from(error).into()
    }
}

/// Says that no model has this name. A caller of a tool can describe none, which the error itself suggests.
fn describe_unknown_model(name: &str, similar: &[String]) -> String {
    match similar {
        [] => format!("unknown model {name:?}"),
        similar => format!("unknown model {name:?}; similar: {}", similar.join(", ")),
    }
}

/// An error and its causes in one line.
fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

fn hint_for_error(error: &EngineError) -> Option<&'static str> {
    Some(match error {
        EngineError::Store(StoreError::NotFound { what, .. }) => match what {
            EntityKind::Conversation => "list_conversations gives the ids there are",
            EntityKind::Branch | EntityKind::Checkpoint => {
                "list_branches gives the branches and checkpoints there are"
            }
            EntityKind::Message | EntityKind::Node => {
                "read_conversation and search_conversations give the ids of items and messages"
            }
            _ => return None,
        },
        EngineError::Store(StoreError::AlreadyExists { .. }) => "choose another name",
        EngineError::Store(StoreError::Ambiguous { .. }) => "give one of those ids",
        EngineError::Store(error) if error.is_retryable() => "call it again",
        EngineError::NoLink { .. } => {
            "read_conversation gives the links of a conversation; name the branch if it is not on the active one"
        }
        EngineError::UnknownRule { .. } => "list_rules gives the ids of rules",
        EngineError::Catalogue(_) => "name a model as its provider does",
        EngineError::Refused(_) => {
            "compact_conversation makes room; a larger `window` or smaller `reserve` may do too"
        }
        EngineError::NothingToCompact { .. } => "leave the conversation as it is",
        EngineError::EmptyBranch { .. } => "name a branch that has items: list_branches",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use contexture::store::StorageFault;

    use super::*;

    #[test]
    fn a_fault_is_told_by_its_kind_alone() {
        let error = ToolError::from(StoreError::Storage {
            path: "/srv/secret-place.db".into(),
            fault: StorageFault::Full,
            source: Some("SQLITE_FULL in table nodes".into()),
        });
        let told = serde_json::to_string(&error.clone().into_result()).unwrap();
        for hidden in ["secret-place", "SQLITE", "nodes"] {
            assert!(!told.contains(hidden), "{told}");
        }
        assert!(told.contains(error.kind), "{told}");
        let named = ToolError::from(StoreError::not_found(EntityKind::Branch, "gone"));
        assert!(named.full_message().contains("gone"));
    }
}
