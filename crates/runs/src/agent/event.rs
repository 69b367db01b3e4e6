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
    /// Its step.
    pub step: u32,
    /// What happened.
    pub news: RunEventKind,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEventKind {
    /// A model is asked.
    Asking {
        /// The model.
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
        /// Why.
        why: String,
    },
    /// An answer is stored.
    Answered {
        /// Its id.
        response: ResponseId,
        /// What the run spent until now.
        spent: RunUsage,
    },
    /// An answer was refused by a layer; the model is asked again.
    Refused {
        /// What the model is told.
        feedback: String,
    },
    /// A tool begins.
    ToolStarted {
        /// The call's node.
        node: NodeId,
        /// The call.
        call: FunctionCall,
    },
    /// A tool's output is stored.
    ToolDone {
        /// The output's node.
        node: NodeId,
        /// The output.
        output: FunctionCallOutput,
    },
    /// The run waits until somebody decides about these calls.
    Waiting {
        /// The calls' nodes.
        calls: Vec<NodeId>,
    },
    /// A child run begins.
    Spawned {
        /// The child.
        child: RunId,
    },
    /// The run ended.
    Ended {
        /// How.
        status: RunStatus,
        /// What went wrong, or why it was called off.
        why: Option<String>,
        /// What it spent.
        spent: RunUsage,
    },
}

/// Watches a run. It is called where the run goes on, so it should be quick; one that panics ends only itself.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn on_event(&self, event: &RunEvent);
}

impl<F: Fn(&RunEvent) + Send + Sync> Observer for F {
    fn on_event(&self, event: &RunEvent) {
        self(event);
    }
}
