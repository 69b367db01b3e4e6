//! A model's answer, stored.

use std::sync::Arc;

use contexture_compile::CountedRequest;
use contexture_ir::{Audience, MessageId, NodeId, ResponseId};
use contexture_layers::ObservedItems;
use contexture_store::{
    AppendPoint, AppendRequest, NewItem, Node, NodeKind, OnMoved, PathEnd, ReadRequest,
    StateChange, StateKey, StatePatch,
};
use contexture_telemetry::{count_compaction, record_cache_read};
use contexture_wire::{DocumentKind, lift};
use tracing::{Instrument, Span};

use super::{RecordOptions, Recorded};
use crate::append::state_node;
use crate::call::{CompiledCall, learn_from_usage, response_record};
use crate::compaction::adopt_compactions;
use crate::error::EngineError;
use crate::handle::{
    Conversation, Engine, EngineEventKind, fragment_change, load_path, record_response_fields,
    record_span,
};
use crate::hooks::{append_with_hooks, append_with_retries};
use crate::path::message_id_of;

/// The schema version of a stored plan.
pub(crate) const PLAN_VERSION: u32 = 1;

/// How far back an answer looks for the output it goes on from, behind compactions and changes of state.
const BEFORE: u64 = 16;

/// As [`Self::record`], as a run does it.
pub(crate) async fn record_call(
    chat: &Conversation,
    call: &CompiledCall,
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
    let message = response_message_id(chat, call.base, key).await?;
    let now = chat.engine().now_ms();
    let mut said = options.instead.unwrap_or(lifted.transcript.items);
    let node = |index| Engine::node_id(key.as_bytes(), index);
    let adopted = adopt_compactions(chat, call, &mut said, node).await?;
    let mut items = Vec::new();
    for (index, item) in said.iter().enumerate() {
        items.push(NewItem {
            audience: options.audience,
            origin: contexture_ir::Origin::Model,
            ..chat.new_item(node(index), item, options.step)
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
    let response = response_record(chat.engine(), id, call, &info);
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
    request.patch = answer_state_patch(chat, call)?;
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
        Some(session) => append_with_hooks(chat, request, seen, Some(session)).await?,
        None => {
            let base = call
                .base
                .map_or(PathEnd::Branch(call.branch.clone()), PathEnd::Node);
            append_with_retries(chat, request, seen, base).await?
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
        learn_from_usage(chat, &counting, recorded.usage.as_ref()).await;
        chat.publish(|| EngineEventKind::Recorded {
            response: id,
            usage: recorded.usage.clone(),
        });
        for compaction in adopted.into_iter().flat_map(|adopted| adopted.nodes) {
            count_compaction();
            chat.publish(|| EngineEventKind::Compacted { compaction });
        }
    }
    Ok(recorded)
}

/// The plan of a call, and the fragments of this handle.
pub(crate) fn answer_state_patch(
    chat: &Conversation,
    call: &CompiledCall,
) -> Result<StatePatch, EngineError> {
    let plan = serde_json::to_vec(&call.plan).map_err(|error| EngineError::StoredState {
        key: call.plan_key.clone(),
        why: error.to_string(),
    })?;
    let put = StateChange::put_entry(StateKey::new(&call.plan_key)?, PLAN_VERSION, plan);
    let changes = fragment_change(chat)?.into_iter().chain([put]).collect();
    Ok(StatePatch { changes, from: 0 })
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
