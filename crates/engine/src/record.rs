//! A model's answer, stored.

use std::sync::Arc;

use contexture_compile::CountedRequest;
use contexture_ir::{
    Audience, BranchName, FinishReason, Item, MessageId, NodeId, ResponseId, RunId, Usage,
};
use contexture_layers::ObservedItems;
use contexture_store::{
    AppendPoint, AppendRequest, NewItem, Node, NodeKind, OnMoved, PathEnd, ReadRequest,
    StateChange, StateKey, StatePatch,
};
use contexture_telemetry::{count_compaction, record_cache_read};
use contexture_wire::{DocumentKind, Loss, lift};
use tracing::{Instrument, Span};

use crate::call::CompiledCall;
use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::events::EngineEventKind;
use crate::layer_session::LayerSession;
use crate::path::message_id_of;
use crate::spans::{record_response_fields, record_span};
use crate::state_node::state_node;

/// The schema version of a stored plan.
pub(crate) const PLAN_VERSION: u32 = 1;

/// How far back an answer looks for the output it goes on from, behind compactions and changes of state.
const BEFORE: u64 = 16;

/// The step of a run that an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// The run.
    pub run: RunId,
    /// Its step.
    pub step: u32,
}

/// How to store an answer; see [`Conversation::record_with`].
#[derive(Debug)]
pub struct RecordOptions<'a> {
    /// The layers of a run, in the states the run has them in. Default: the handle's, in those stored.
    pub layers: Option<&'a mut LayerSession>,
    /// The step it comes from.
    pub step: Option<RunStep>,
    /// Changes of state stored with it.
    pub changes: Vec<StateChange>,
    /// What is kept in the place of what the answer says.
    pub instead: Option<Vec<Item>>,
    /// Who sees it. Default: everyone.
    pub audience: Audience,
    /// Items stored behind it, in the same transaction.
    pub behind: Vec<NewItem>,
}

impl Default for RecordOptions<'_> {
    fn default() -> Self {
        Self {
            layers: None,
            step: None,
            changes: Vec::new(),
            instead: None,
            audience: Audience::ALL,
            behind: Vec::new(),
        }
    }
}

/// What became of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The answer's id, by which it is [replayed](Conversation::replay).
    pub response: ResponseId,
    /// The head of the branch the answer is on.
    pub head: Option<NodeId>,
    /// That branch.
    pub branch: BranchName,
    /// Whether it is a branch of the answer's own, because somebody appended while the model was
    /// thinking. Nothing that cost money is thrown away.
    pub sibling: bool,
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

impl Conversation {
    /// Stores a model's answer to a compiled call, together with the plan of that call: one
    /// transaction. `response` is the provider's response body, in the format of the call.
    ///
    /// With it is kept what the call was compiled from, as far as
    /// [`Engine::with_record_level`](crate::Engine::with_record_level) says.
    ///
    /// The answer goes behind the head the call was compiled against. If the branch has moved since,
    /// it is kept on a branch of its own. Recording the same answer twice stores it once. Calls of tools
    /// whose names the provider refuses are stored under the names that were given. What the answer reports
    /// of its usage narrows the counts of later calls of the model; see
    /// [`Engine::without_calibration`](crate::Engine::without_calibration).
    ///
    /// A compaction that the provider made stands for all that the call was compiled from, until it is
    /// [taken back](Self::uncompact): its maker is sent it as it came, others its text, or a manifest if it has none.
    ///
    /// # Errors
    /// [`EngineError::Wire`] or [`EngineError::NotAResponse`] if `response` is no answer in that
    /// format, or the store's.
    pub async fn record(
        &self,
        call: &CompiledCall,
        response: &str,
    ) -> Result<Recorded, EngineError> {
        self.record_with(call, response, RecordOptions::default())
            .await
    }

    /// As [`Self::record`], as a run does it.
    ///
    /// # Errors
    /// As [`Self::record`]; [`EngineError::Layers`] for a layer that must not fail; with layers of a run one that [is
    /// about a stale state](EngineError::is_stale_state): nothing is stored then, see [`Self::refresh_session`].
    pub async fn record_with(
        &self,
        call: &CompiledCall,
        response: &str,
        options: RecordOptions<'_>,
    ) -> Result<Recorded, EngineError> {
        let span = record_span(self);
        self.record_answer(call, response, options, &span)
            .instrument(span.clone())
            .await
    }

    async fn record_answer(
        &self,
        call: &CompiledCall,
        response: &str,
        options: RecordOptions<'_>,
        span: &Span,
    ) -> Result<Recorded, EngineError> {
        let mut lifted = lift(call.format(), response)?;
        if lifted.kind != DocumentKind::Response {
            return Err(EngineError::NotAResponse {
                format: call.format(),
            });
        }
        call.renames.restore_names(&mut lifted.transcript.items);
        let base = call.base.map(|node| node.to_string()).unwrap_or_default();
        let key = NodeId::derive("response", &[base.as_bytes(), response.as_bytes()]);
        let id = ResponseId::from_bytes(*key.as_bytes());
        let message = self.response_message_id(call.base, key).await?;
        let now = self.engine().now_ms();
        let mut said = options.instead.unwrap_or(lifted.transcript.items);
        let node = |index| Engine::node_id(key.as_bytes(), index);
        let adopted = self.adopt_compactions(call, &mut said, node).await?;
        let mut items = Vec::new();
        for (index, item) in said.iter().enumerate() {
            items.push(NewItem {
                audience: options.audience,
                origin: contexture_ir::Origin::Model,
                ..self.new_item(node(index), item, options.step)
            });
        }
        if items.is_empty() {
            // An answer without a word has its cost.
            items.push(state_node(node(0), now)?);
        }
        for item in &mut items {
            item.message_id = Some(message.clone());
            item.response = Some(id);
            item.run = options.step.map(|step| step.run);
            item.step = options.step.map(|step| step.step);
        }
        let nodes: Vec<NodeId> = items.iter().map(|item| item.id).collect();
        items.extend(options.behind);
        let info = lifted.transcript.response.unwrap_or_default();
        record_response_fields(span, lifted.transcript.model.as_deref(), &info);
        let response = self.engine().response_record(id, call, &info);
        let mut recorded = Recorded {
            response: id,
            head: call.base,
            branch: call.branch.clone(),
            sibling: false,
            nodes: Vec::new(),
            message,
            replayed: false,
            usage: info.usage,
            finish: info.finish,
            losses: lifted.losses,
        };
        let at = AppendPoint::Head {
            branch: call.branch.clone(),
            head: call.base,
        };
        let mut request = AppendRequest::new(at, items, now);
        request.on_moved = OnMoved::Sibling;
        request.patch = self.answer_state_patch(call)?;
        let covers = adopted.iter().map(|adopted| adopted.change.clone());
        request.patch.changes.extend(covers);
        request.patch.changes.extend(options.changes);
        request.response = Some(response);
        let seen = ObservedItems {
            items: &said,
            nodes: &nodes,
            response: Some(id),
            usage: recorded.usage.as_ref(),
        };
        let appended = match options.layers {
            Some(session) => self.append_with_hooks(request, seen, Some(session)).await?,
            None => {
                let base = call
                    .base
                    .map_or(PathEnd::Branch(call.branch.clone()), PathEnd::Node);
                self.append_with_retries(request, seen, base).await?
            }
        };
        recorded.head = appended.head;
        recorded.sibling = appended.sibling;
        recorded.nodes = appended.nodes;
        recorded.replayed = appended.replayed;
        recorded.branch = appended.branch.unwrap_or(recorded.branch);
        if !appended.replayed {
            let model = &call.report.target.model;
            let predicted = call.report.cache.predicted.read;
            record_cache_read(call.format(), model, recorded.usage.as_ref(), predicted);
            let counting = CountedRequest::from(&call.report);
            self.learn_from_usage(&counting, recorded.usage.as_ref())
                .await;
            self.publish(|| EngineEventKind::Recorded {
                response: id,
                usage: recorded.usage.clone(),
            });
            for compaction in adopted.into_iter().flat_map(|adopted| adopted.nodes) {
                count_compaction();
                self.publish(|| EngineEventKind::Compacted { compaction });
            }
        }
        Ok(recorded)
    }

    /// The plan of a call, and the fragments of this handle.
    pub(crate) fn answer_state_patch(
        &self,
        call: &CompiledCall,
    ) -> Result<StatePatch, EngineError> {
        let plan = serde_json::to_vec(&call.plan).map_err(|error| EngineError::StoredState {
            key: call.plan_key.clone(),
            why: error.to_string(),
        })?;
        let put = StateChange::put_entry(StateKey::new(&call.plan_key)?, PLAN_VERSION, plan);
        let changes = self.fragment_change()?.into_iter().chain([put]).collect();
        Ok(StatePatch { changes, from: 0 })
    }

    /// The message an answer belongs to: an agent's turn goes on after its tools' outputs, anything
    /// else begins a message.
    pub(crate) async fn response_message_id(
        &self,
        base: Option<NodeId>,
        key: NodeId,
    ) -> Result<MessageId, EngineError> {
        if let Some(base) = base {
            let path = self
                .load_path(ReadRequest::last_nodes(PathEnd::Node(base), BEFORE))
                .await?;
            // What the engine put there itself says nothing.
            let said = |node: &&Arc<Node>| {
                node.kind != NodeKind::Compaction && node.audience != Audience::NONE
            };
            let last = path.nodes.iter().rev().find(said);
            let last = last.filter(|node| node.kind == NodeKind::FunctionCallOutput);
            if let Some(node) = last {
                return message_id_of(node);
            }
        }
        let id = NodeId::derive("message", &[key.as_bytes()]);
        Ok(MessageId::new(id.to_string())?)
    }
}
