//! Checks of tool calls and their outputs by rules of the program's own.
//!
//! Not here: rules by pattern, which are data ([`super::ToolRule`]).

use std::fmt;
use std::sync::Arc;

use contexture_ir::{FunctionCallOutput, Item, Output};

use crate::contract::{ToolGate, ToolRequest};

/// Verdict on a tool's output, before it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputVerdict {
    /// It is stored as it is, as far as this guard is concerned.
    #[default]
    Pass,
    /// This text is stored instead; nothing of the output is.
    Replace(String),
}

type CallGuard = Arc<dyn Fn(&ToolRequest) -> ToolGate + Send + Sync>;
type OutputGuard = Arc<dyn Fn(&FunctionCallOutput) -> OutputVerdict + Send + Sync>;

/// The guards of calls and outputs, in the order in which they were added.
#[derive(Clone, Default)]
pub(super) struct ToolGuards {
    calls: Vec<CallGuard>,
    outputs: Vec<OutputGuard>,
}

impl ToolGuards {
    pub(super) fn add_call_guard(
        &mut self,
        check: impl Fn(&ToolRequest) -> ToolGate + Send + Sync + 'static,
    ) {
        self.calls.push(Arc::new(check));
    }

    pub(super) fn add_output_guard(
        &mut self,
        check: impl Fn(&FunctionCallOutput) -> OutputVerdict + Send + Sync + 'static,
    ) {
        self.outputs.push(Arc::new(check));
    }

    /// Returns the strictest verdict on a call, the given one included.
    pub(super) fn check_call(&self, call: &ToolRequest, gate: ToolGate) -> ToolGate {
        let checks = self.calls.iter();
        checks.fold(gate, |gate, check| gate.and(check(call)))
    }

    /// Replaces the outputs that a guard does not let pass. Each guard sees what those before it made.
    pub(super) fn check_outputs(&self, items: &mut [Item]) {
        for item in items {
            let Item::FunctionCallOutput(output) = item else {
                continue;
            };
            for check in &self.outputs {
                if let OutputVerdict::Replace(text) = check(output) {
                    // Nothing of it is left but whose call it answers.
                    let mut replaced = FunctionCallOutput::new(&output.call_id, Output::Text(text));
                    replaced.is_error = output.is_error;
                    *output = replaced;
                }
            }
        }
    }
}

impl fmt::Debug for ToolGuards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolGuards")
            .field("calls", &self.calls.len())
            .field("outputs", &self.outputs.len())
            .finish()
    }
}
