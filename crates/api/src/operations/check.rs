//! The gate: whether a tool may be called.

use contexture::Conversation;

use crate::documents::{CheckDocument, CheckedDocument};
use crate::operations::compile::CallNote;
use crate::operations::record::load_note;
use crate::operations::{Host, OperationError};

/// Checks whether a call is allowed, by the policy of a compiled call or by the one that the document names.
///
/// # Errors
/// There is no such policy, or the store's.
pub async fn check_call(
    chat: &Conversation,
    asked: &CheckDocument,
    host: &Host<'_>,
) -> Result<CheckedDocument, OperationError> {
    let note = match (&asked.call, host.find_policy(asked.policy.as_ref())?) {
        (_, Some(policy)) => CallNote {
            policy: Some(policy),
            ..CallNote::default()
        },
        (call, None) => load_note(chat, call.as_deref()).await?,
    };
    let refusal = note.refusal(&asked.name);
    Ok(CheckedDocument {
        allowed: refusal.is_none(),
        refusal,
    })
}

impl CallNote {
    /// Returns the text that the model reads in the place of an output; `None` for a tool that may be called.
    pub(crate) fn refusal(&self, tool: &str) -> Option<String> {
        let is_allowed = self
            .policy
            .as_ref()
            .is_none_or(|policy| policy.tools.allows(tool));
        (!is_allowed).then(|| format!("The tool {tool} may not be called here. Go on without it."))
    }
}
