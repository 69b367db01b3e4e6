//! Turning a provider's response into nodes and appending them after the head of the call.

use std::sync::Arc;

use contexture_ir::{Audience, CallId, Item, MessageId, NodeId, ResponseId, ResponseInfo};
use contexture_layers::ObservedItems;
use contexture_models::ModelError;
use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, BranchLabel, CallOutcome, CallRecord,
    Error as StoreError, NewBranch, NewItem, Node, NodeKind, OnMoved, PathEnd, ReadRequest,
    StateChange, StateKey, StatePatch,
};
use contexture_telemetry::{count_compaction, record_cache_read};
use contexture_wire::{DocumentKind, lift};
use tracing::{Instrument, Span};

use super::{RecordOptions, Recorded};
use crate::append::{RunStep, append_with_copies, new_item, state_node};
use crate::call::{CompiledCall, SentCall, is_cut, learn_from_usage, response_record};
use crate::compaction::adopt_compactions;
use crate::error::EngineError;
use crate::handle::{
    CallTiming, Conversation, EngineEventKind, FragmentChange, answered_call_id, begin_row,
    failed_outcome, fragment_change, load_path, new_call_id, record_response_fields, record_span,
    set_row_answer, set_row_band, store_row,
};
use crate::hooks::{LayerSession, append_with_hooks, append_with_retries};
use crate::path::message_id_of;

/// The schema version of a stored plan.
pub(crate) const PLAN_VERSION: u32 = 1;

/// How far back an answer looks for the output it goes on from, behind compactions and changes of state.
const BEFORE: u64 = 16;

/// Records a model's answer, with options for a step of a run.
pub(crate) async fn record_call(
    chat: &Conversation,
    call: &SentCall,
    response: &str,
    options: RecordOptions<'_>,
) -> Result<Recorded, EngineError> {
    let span = record_span(chat);
    record_answer(chat, call, response, options, &span)
        .instrument(span.clone())
        .await
}

async fn record_answer(
    chat: &Conversation,
    call: &SentCall,
    response: &str,
    mut options: RecordOptions<'_>,
    span: &Span,
) -> Result<Recorded, EngineError> {
    let mut lifted = lift(call.format, response)?;
    if lifted.kind != DocumentKind::Response {
        return Err(EngineError::NotAResponse {
            format: call.format,
        });
    }
    // Before anything is hashed or stored: the stored call must name the tool that the program knows.
    call.renames.restore_names(&mut lifted.transcript.items);
    let base = call.base.map(|node| node.to_string()).unwrap_or_default();
    // From the base and the bytes: recording the same answer twice gives the same ids and is stored once.
    let key = NodeId::derive("response", &[base.as_bytes(), response.as_bytes()]);
    let id = ResponseId::from_bytes(*key.as_bytes());
    let message = response_message_id(chat, call.base, key).await?;
    let now = chat.engine().now_ms();
    let mut answer = options
        .replacement
        .take()
        .unwrap_or(lifted.transcript.items);
    let node = |index| NodeId::of_operation(key.as_bytes(), index);
    // Before the items are made, as a manifest may be added to a compaction among them.
    let adopted = adopt_compactions(chat, call, &mut answer, node).await?;
    let mut items = answer_items(chat, &answer, key, now, &options)?;
    for item in &mut items {
        item.message_id = Some(message.clone());
        item.response = Some(id);
        item.run = options.step.map(|step| step.run);
        item.step = options.step.map(|step| step.step);
    }
    let nodes: Vec<NodeId> = items.iter().map(|item| item.id).collect();
    items.extend(options.following_items);
    let info = lifted.transcript.response.unwrap_or_default();
    record_response_fields(span, lifted.transcript.model.as_deref(), &info);
    let response = response_record(chat.engine(), id, call, &info);
    let mut recorded = Recorded {
        response: id,
        head: call.base,
        branch: call.branch.clone(),
        on_sibling_branch: false,
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
    // The answer was paid for. If the branch moved meanwhile, it is kept on a branch of its own.
    request.on_moved = OnMoved::Sibling;
    let state = AnswerState::new(chat, call).await?;
    request.patch = state.patch.clone();
    let covers = adopted.iter().map(|adopted| adopted.change.clone());
    request.patch.changes.extend(covers);
    request.patch.changes.extend(options.changes);
    request.response = Some(response);
    let row_info = ResponseInfo {
        usage: recorded.usage.clone(),
        finish: recorded.finish.clone(),
        id: None,
    };
    let call_id = answered_call_id(now, options.timing, key);
    request.call = answered_row(chat, call, (call_id, id), &row_info, options.timing);
    let observed = ObservedItems {
        items: &answer,
        nodes: &nodes,
        response: Some(id),
        usage: recorded.usage.as_ref(),
    };
    let appended = append_answer(chat, call, request, observed, options.layers).await;
    if let Err(EngineError::Store(StoreError::StaleFence { .. })) = &appended {
        store_aside(
            chat,
            call,
            (&answer, &row_info),
            options.step,
            options.timing,
        )
        .await?;
    }
    recorded.apply_append(appended?);
    state.mark_stored(chat, &recorded);
    if !recorded.replayed {
        report_recorded(chat, Some(call), &recorded).await;
        for compaction in adopted.into_iter().flat_map(|adopted| adopted.nodes) {
            count_compaction();
            chat.publish(|| EngineEventKind::Compacted { compaction });
        }
    }
    Ok(recorded)
}

/// Stores the answer of a writer that was superseded meanwhile, on a branch of its own: it was paid for. Nothing else of the
/// call is stored, because the branch it was made for belongs to another writer.
async fn store_aside(
    chat: &Conversation,
    call: &SentCall,
    (answer, info): (&[Item], &ResponseInfo),
    step: Option<RunStep>,
    timing: CallTiming,
) -> Result<(), EngineError> {
    let base = call.base.map(|node| node.to_string()).unwrap_or_default();
    let json: Vec<String> = answer.iter().map(Item::to_json).collect();
    // Other ids than on the branch: the new writer may get the same answer.
    let key = NodeId::derive("superseded", &[base.as_bytes(), json.concat().as_bytes()]);
    let id = ResponseId::from_bytes(*key.as_bytes());
    let now = chat.engine().now_ms();
    let options = RecordOptions {
        step,
        ..RecordOptions::default()
    };
    let mut items = answer_items(chat, answer, key, now, &options)?;
    let message = response_message_id(chat, call.base, key).await?;
    for item in &mut items {
        item.message_id = Some(message.clone());
        item.response = Some(id);
        item.run = step.map(|step| step.run);
        item.step = step.map(|step| step.step);
    }
    let at = AppendPoint::New(NewBranch {
        base: call.base,
        label: BranchLabel::After(call.branch.clone()),
        activate: Activation::Keep,
    });
    let mut request = AppendRequest::new(at, items, now);
    request.response = Some(response_record(chat.engine(), id, call, info));
    let call_id = answered_call_id(now, timing, key);
    request.call = answered_row(chat, call, (call_id, id), info, timing);
    append_with_copies(chat, request).await?;
    Ok(())
}

/// Returns the row of the exchange that gave an answer; `None` where the store keeps none.
fn answered_row(
    chat: &Conversation,
    call: &SentCall,
    (call_id, response): (CallId, ResponseId),
    info: &ResponseInfo,
    timing: CallTiming,
) -> Option<Box<CallRecord>> {
    chat.engine().store().calls()?;
    // The same answer stored again is the same exchange, whenever that is.
    let call_id = *call.exchange.get_or_init(|| call_id);
    let mut row = begin_row(call_id, call.format, &call.counted.model, timing);
    set_row_answer(chat.engine(), &mut row, info);
    row.band = Some(call.band.clone().into());
    row.details.prediction = call.prediction;
    row.details.is_rewritten = call.is_cut;
    row.conversation = Some(chat.id().clone());
    row.response = Some(response);
    Some(Box::new(row))
}

/// Records an exchange that gave no answer to store.
pub(crate) async fn record_failed_call(
    chat: &Conversation,
    call: &CompiledCall,
    error: Option<&ModelError>,
    timing: CallTiming,
) {
    let model = &call.report.target.model;
    let mut row = begin_row(new_call_id(), call.format, model, timing);
    row.outcome = error.map_or(CallOutcome::Incomplete, failed_outcome);
    set_row_band(&mut row, &call.report);
    row.details.is_rewritten = is_cut(&call.report);
    store_row(chat.engine(), chat.owner(), Some(chat.id()), row).await;
}

/// Returns the items of an answer as they are stored.
fn answer_items(
    chat: &Conversation,
    answer: &[Item],
    key: NodeId,
    now_ms: i64,
    options: &RecordOptions<'_>,
) -> Result<Vec<NewItem>, EngineError> {
    let node = |index| NodeId::of_operation(key.as_bytes(), index);
    if answer.is_empty() {
        // An empty answer was paid for as well: a state node carries its record.
        return Ok(vec![state_node(node(0), now_ms)?]);
    }
    let items = answer.iter().enumerate();
    let items = items.map(|(index, item)| NewItem {
        audience: options.audience,
        origin: contexture_ir::Origin::Model,
        ..new_item(chat, node(index), item, options.step)
    });
    Ok(items.collect())
}

/// Appends an answer, with the layers of a run in the states the run has them in, or with those stored.
async fn append_answer(
    chat: &Conversation,
    call: &SentCall,
    request: AppendRequest,
    observed: ObservedItems<'_>,
    layers: Option<&mut LayerSession>,
) -> Result<Appended, EngineError> {
    match layers {
        // A run repeats its hooks itself after a conflict: only it knows what else they were asked.
        Some(session) => append_with_hooks(chat, request, observed, Some(session)).await,
        None => {
            let base = call
                .base
                .map_or(PathEnd::Branch(call.branch.clone()), PathEnd::Node);
            append_with_retries(chat, request, observed, base).await
        }
    }
}

impl Recorded {
    /// Takes over where the answer was stored.
    pub(crate) fn apply_append(&mut self, appended: Appended) {
        self.head = appended.head;
        self.on_sibling_branch = appended.on_sibling_branch;
        self.nodes = appended.nodes;
        self.replayed = appended.replayed;
        // A branch whose name was deleted meanwhile has none: the one that was meant is still named.
        if let Some(branch) = appended.branch {
            self.branch = branch;
        }
    }
}

/// Reports a stored answer to metrics, to calibration and to watchers.
///
/// Only for an answer that was stored now: a replayed one was reported the first time.
pub(crate) async fn report_recorded(
    chat: &Conversation,
    call: Option<&SentCall>,
    recorded: &Recorded,
) {
    if let Some(call) = call {
        let (model, usage) = (&call.counted.model, recorded.usage.as_ref());
        record_cache_read(call.format, model, usage, call.predicted_read);
        learn_from_usage(chat, &call.counted, usage).await;
    }
    chat.publish(|| EngineEventKind::Recorded {
        response: recorded.response,
        usage: recorded.usage.clone(),
    });
}

/// What an answer changes of the state of its path.
pub(crate) struct AnswerState {
    /// The plan of the call, and the fragments of this handle.
    pub(crate) patch: StatePatch,
    fragments: Option<FragmentChange>,
}

impl AnswerState {
    /// Collects the changes of an answer to a call.
    pub(crate) async fn new(chat: &Conversation, call: &SentCall) -> Result<Self, EngineError> {
        let plan = serde_json::to_vec(&call.plan).map_err(|error| EngineError::StoredState {
            key: call.plan_key.clone(),
            reason: error.to_string(),
        })?;
        let put = StateChange::put_entry(StateKey::new(&call.plan_key)?, PLAN_VERSION, plan);
        let fragments = fragment_change(chat, &call.branch, call.base).await?;
        let change = fragments.as_ref().map(|fragments| fragments.change.clone());
        let changes = change.into_iter().chain([put]).collect();
        Ok(Self {
            patch: StatePatch { changes, from: 0 },
            fragments,
        })
    }

    /// Takes note of where the answer was stored: on a branch of its own it changed nothing of the handle's.
    pub(crate) fn mark_stored(&self, chat: &Conversation, recorded: &Recorded) {
        if let Some(fragments) = &self.fragments
            && !recorded.on_sibling_branch
        {
            fragments.mark_stored(chat);
        }
    }
}

/// The message an answer belongs to: an agent's turn goes on after its tools' outputs, anything
/// else begins a message.
pub(crate) async fn response_message_id(
    chat: &Conversation,
    base: Option<NodeId>,
    key: NodeId,
) -> Result<MessageId, EngineError> {
    if let Some(base) = base {
        let path = load_path(chat, ReadRequest::last_nodes(PathEnd::Node(base), BEFORE)).await?;
        // What the engine put there itself says nothing.
        let is_message = |node: &&Arc<Node>| {
            node.kind != NodeKind::Compaction && node.audience != Audience::NONE
        };
        let last = path.nodes.iter().rev().find(is_message);
        // After an output the model goes on with the same turn, so its answer joins the message of the call.
        let last = last.filter(|node| node.kind == NodeKind::FunctionCallOutput);
        if let Some(node) = last {
            return message_id_of(node);
        }
    }
    Ok(MessageId::of_node(NodeId::of_operation(key.as_bytes(), 0)))
}
