//! Storing a model's answer, with the plan and the inputs of its call, in one transaction.
//!
//! Not here: answers to requests that were passed through (`ingest`), what is stored of a call (`call`).

mod answer;
mod usage;

pub(crate) use answer::{
    AnswerState, record_call, record_failed_call, report_recorded, response_message_id,
};
pub(crate) use usage::track_usage;

use contexture_ir::{
    Audience, BranchName, FinishReason, Item, MessageId, NodeId, ResponseId, Usage,
};
use contexture_store::{NewItem, StateChange};
use contexture_wire::Loss;

use crate::append::RunStep;
use crate::handle::CallTiming;
use crate::hooks::LayerSession;

/// Options for storing an answer; see [`Conversation::record_with`](crate::Conversation::record_with).
#[derive(Debug)]
pub struct RecordOptions<'a> {
    /// The layers of a run, in the states the run has them in. Default: the handle's, in those stored.
    pub layers: Option<&'a mut LayerSession>,
    /// The step it comes from.
    pub step: Option<RunStep>,
    /// Changes of state stored with it.
    pub changes: Vec<StateChange>,
    /// What is kept in the place of what the answer says.
    pub replacement: Option<Vec<Item>>,
    /// Who sees it. Default: everyone.
    pub audience: Audience,
    /// Items stored behind it, in the same transaction.
    pub following_items: Vec<NewItem>,
    /// How the exchange with the provider went, for its row in the record of calls.
    pub timing: CallTiming,
}

impl Default for RecordOptions<'_> {
    fn default() -> Self {
        Self {
            layers: None,
            step: None,
            changes: Vec::new(),
            replacement: None,
            audience: Audience::ALL,
            following_items: Vec::new(),
            timing: CallTiming::default(),
        }
    }
}

/// What became of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The answer's id, by which it is [replayed](crate::Conversation::replay).
    pub response: ResponseId,
    /// The head of the branch the answer is on.
    pub head: Option<NodeId>,
    /// Branch that was there already.
    pub branch: BranchName,
    /// Whether it is a branch of the answer's own, because somebody appended while the model was
    /// thinking. Nothing that cost money is thrown away.
    pub on_sibling_branch: bool,
    /// The nodes, in the order of the answer's items; empty if the answer had none.
    pub nodes: Vec<NodeId>,
    /// The message they belong to.
    pub message: MessageId,
    /// Whether it was stored before. Then nothing was stored now.
    pub replayed: bool,
    /// What the call used, as reported.
    pub usage: Option<Usage>,
    /// Why the answer ended.
    pub finish: Option<FinishReason>,
    /// What of the answer could not be kept.
    pub losses: Vec<Loss>,
}
