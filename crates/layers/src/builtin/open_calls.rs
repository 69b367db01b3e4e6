//! Tool calls without an output so far: which tool an output is from.

use std::collections::VecDeque;

use contexture_ir::{FunctionCall, FunctionCallOutput, Status};
use serde::{Deserialize, Serialize};

/// Maximum number of calls; the oldest are dropped.
const CALLS: usize = 100;
/// Maximum length of an id or a name in bytes; calls with longer ones are not tracked.
const BYTES: usize = 256;

/// Calls without an output, oldest first: the call's id and its tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PendingCalls(VecDeque<(String, String)>);

impl PendingCalls {
    pub(super) fn record_call(&mut self, call: &FunctionCall) {
        if call.call_id.len() > BYTES || call.name.len() > BYTES {
            return;
        }
        if self.0.len() == CALLS {
            self.0.pop_front();
        }
        self.0.push_back((call.call_id.clone(), call.name.clone()));
    }

    /// Returns the tool of an output; if an id was used more than once, the tool of the last call.
    pub(super) fn take_tool_for_output(&mut self, output: &FunctionCallOutput) -> Option<String> {
        let at = self.0.iter().rposition(|(id, _)| *id == output.call_id)?;
        self.0.remove(at).map(|(_, tool)| tool)
    }
}

/// Whether an output reports a failure.
pub(super) fn is_failed_output(output: &FunctionCallOutput) -> bool {
    output.is_error == Some(true) || output.status == Some(Status::Failed)
}

#[cfg(test)]
mod tests {
    use contexture_ir::Output;

    use super::*;

    fn end(pending: &mut PendingCalls, id: &str) -> Option<String> {
        pending.take_tool_for_output(&FunctionCallOutput::new(id, Output::Text(String::new())))
    }

    #[test]
    fn outputs_find_their_tools_and_the_oldest_calls_are_forgotten() {
        let mut pending = PendingCalls::default();
        pending.record_call(&FunctionCall::new("a", "x".repeat(257), "{}"));
        assert_eq!(end(&mut pending, "a"), None);
        for (id, tool) in [("a", "find"), ("b", "look"), ("a", "read")] {
            pending.record_call(&FunctionCall::new(id, tool, "{}"));
        }
        assert_eq!(end(&mut pending, "a").as_deref(), Some("read"));
        assert_eq!(end(&mut pending, "a").as_deref(), Some("find"));
        assert_eq!(end(&mut pending, "a"), None);
        for n in 0..100 {
            pending.record_call(&FunctionCall::new(format!("c{n}"), "find", "{}"));
        }
        assert_eq!(end(&mut pending, "b"), None);
        assert_eq!(end(&mut pending, "c0").as_deref(), Some("find"));
    }
}
