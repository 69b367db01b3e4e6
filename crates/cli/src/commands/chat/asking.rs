//! Asking before a tool is called.

use std::sync::Arc;

use async_trait::async_trait;
use contexture::layers::ToolRequest;
use contexture::runs::{Approver, Decision};
use tokio::sync::Mutex;

use super::typed::Typing;
use crate::printable::one_line;
use crate::talk::call_line;

/// Asks whoever types.
#[derive(Debug)]
pub(super) struct Asking {
    typing: Arc<Mutex<Typing>>,
}

impl Asking {
    pub(super) const fn new(typing: Arc<Mutex<Typing>>) -> Self {
        Self { typing }
    }
}

#[async_trait]
impl Approver for Asking {
    async fn decide(&self, call: &ToolRequest, why: &str) -> Decision {
        let why = match why {
            "" => String::new(),
            why => format!(" ({})", one_line(why)),
        };
        let call = call_line(&call.called, call.arguments.get());
        let question = format!("? {call}{why}: y, n, or why not › ");
        let Some(said) = self.typing.lock().await.answer(&question).await else {
            // Nobody is there any more: whoever takes up the run decides.
            return Decision::Later;
        };
        match said.trim() {
            "y" | "yes" => Decision::Allow,
            "" | "n" | "no" => Decision::Deny {
                reason: "the user said no".to_owned(),
            },
            reason => Decision::Deny {
                reason: reason.to_owned(),
            },
        }
    }
}
