//! Asking before a tool is called.

use std::sync::Arc;

use async_trait::async_trait;
use contexture::layers::ToolRequest;
use contexture::runs::{ApprovalDecision, Approver, RunContext};
use tokio::sync::Mutex;

use crate::chat::call_line;
use crate::commands::chat::line_input::LineReader;
use crate::output::printable::one_line;

/// Asks whoever types.
#[derive(Debug)]
pub(super) struct ApprovalPrompt {
    input: Arc<Mutex<LineReader>>,
}

impl ApprovalPrompt {
    pub(super) const fn new(typing: Arc<Mutex<LineReader>>) -> Self {
        Self { input: typing }
    }
}

#[async_trait]
impl Approver for ApprovalPrompt {
    async fn decide(&self, call: &ToolRequest, why: &str, _: &RunContext) -> ApprovalDecision {
        let why = match why {
            "" => String::new(),
            why => format!(" ({})", one_line(why)),
        };
        let call = call_line(&call.called_name, call.arguments.get());
        let question = format!("? {call}{why}: y, n, or why not › ");
        // The lock is held through the question: two calls asking at once would take each other's
        // answers.
        let Some(said) = self.input.lock().await.ask_question(&question).await else {
            // Nobody is there any more: whoever takes up the run decides.
            return ApprovalDecision::Later;
        };
        match said.trim() {
            "y" | "yes" => ApprovalDecision::Allow,
            // Enter alone is no: only a clear word lets a tool run.
            "" | "n" | "no" => ApprovalDecision::Deny {
                reason: "the user said no".to_owned(),
            },
            reason => ApprovalDecision::Deny {
                reason: reason.to_owned(),
            },
        }
    }
}
