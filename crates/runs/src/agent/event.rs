//! What a run tells while it goes on.

use contexture_ir::{FunctionCall, FunctionCallOutput, NodeId, ResponseId, RunId};
use contexture_wire::StreamEvent;

use crate::limits::RunUsage;
use crate::record::RunStatus;

/// Something a run tells.
#[derive(Clone, Debug)]
pub struct RunEvent {
    /// The run: the one that is watched, or one below it.
    pub run: RunId,
    /// Number of its step.
    pub step: u32,
    /// What happened in the run.
    pub kind: RunEventKind,
}

/// What happened in a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEventKind {
    /// A model is asked.
    ModelStarted {
        /// Name of the model.
        model: String,
        /// Tokens of the payload.
        tokens: u64,
    },
    /// A piece of an answer. Nothing of it is stored yet.
    Delta(StreamEvent),
    /// A call of a model failed, and is made again.
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
        /// What the run spent until now.
        usage: RunUsage,
    },
    /// An answer was refused by a layer; the model is asked again.
    ResponseRejected {
        /// What the model is told.
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
    /// The run waits until somebody decides about these calls.
    Waiting {
        /// The calls' nodes.
        calls: Vec<NodeId>,
    },
    /// A child run begins.
    Spawned {
        /// Id of the child run.
        child: RunId,
    },
    /// The run ended.
    Ended {
        /// How it ended.
        status: RunStatus,
        /// What went wrong, or why it was called off.
        reason: Option<String>,
        /// What it spent.
        usage: RunUsage,
    },
}

/// Watches a run. It is called where the run goes on, so it should be quick; one that panics ends only itself.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn on_event(&self, event: &RunEvent);
}

impl<F: Fn(&RunEvent) + Send + Sync> Observer for F {
    fn on_event(&self, event: &RunEvent) {
        self(event);
    }
}
