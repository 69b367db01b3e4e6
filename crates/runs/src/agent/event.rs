//! Events of a run in progress.

use contexture_ir::{FunctionCall, FunctionCallOutput, NodeId, ResponseId, RunId};
use contexture_wire::StreamEvent;

use crate::agent::approval::ApprovalDecision;
use crate::limits::RunUsage;
use crate::record::RunStatus;

/// One event of a run.
#[derive(Clone, Debug)]
pub struct RunEvent {
    /// The run that is observed, or a child run below it.
    pub run: RunId,
    /// Number of the run's current step.
    pub step: u32,
    /// What happened in the run.
    pub kind: RunEventKind,
}

/// What happened in a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEventKind {
    /// A model call starts.
    ModelStarted {
        /// Name of the model.
        model: String,
        /// Tokens of the payload.
        tokens: u64,
    },
    /// A piece of a streamed answer. Nothing of the answer is stored yet.
    Delta(StreamEvent),
    /// A model call failed in a transient way and is retried.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// Why the attempt failed.
        reason: String,
    },
    /// An answer is stored.
    ResponseStored {
        /// Id of the stored response.
        response: ResponseId,
        /// Usage of the run so far.
        usage: RunUsage,
    },
    /// An answer was refused by a layer; the model is asked again.
    ResponseRejected {
        /// Feedback that the model is given.
        feedback: String,
    },
    /// A tool begins.
    ToolStarted {
        /// The call's node.
        node: NodeId,
        /// The call that starts.
        call: FunctionCall,
    },
    /// A tool's output is stored.
    ToolFinished {
        /// The output's node.
        node: NodeId,
        /// The stored output.
        output: FunctionCallOutput,
    },
    /// A person, or whoever approves for one, is asked about a call.
    ApprovalAsked {
        /// The call's node.
        node: NodeId,
        /// Name of the tool.
        tool: String,
        /// The layer's reason for asking; empty if only the policy asks.
        reason: String,
    },
    /// The call was allowed or denied by who was asked.
    ApprovalDecided {
        /// The call's node.
        node: NodeId,
        /// What was decided.
        decision: ApprovalDecision,
    },
    /// A tool, or a step of the program, says how far it is.
    Progress {
        /// The call's node; `None` for a step of the program.
        node: Option<NodeId>,
        /// How far it is, in its own words.
        text: String,
    },
    /// The run waits until somebody decides about these calls.
    Waiting {
        /// The calls' nodes.
        calls: Vec<NodeId>,
    },
    /// A child run starts.
    Spawned {
        /// Id of the child run.
        child: RunId,
    },
    /// The run ended.
    Ended {
        /// How it ended.
        status: RunStatus,
        /// Reason of the failure or the abort.
        reason: Option<String>,
        /// Usage of the run.
        usage: RunUsage,
    },
}

/// Observes a run. It is called inline, so it must be quick; a panic is caught and logged, and the run continues.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn on_event(&self, event: &RunEvent);
}

impl<F: Fn(&RunEvent) + Send + Sync> Observer for F {
    fn on_event(&self, event: &RunEvent) {
        self(event);
    }
}
