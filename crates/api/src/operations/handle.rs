//! Calls at the end of a branch that are ours to answer.

use std::collections::BTreeSet;

use contexture::Conversation;
use contexture::engine::parse_node_item;
use contexture::ir::{FunctionCall, FunctionCallOutput, Item, NodeId, Output};
use contexture::store::{PathEnd, ReadRequest, read_all_pages};

use crate::documents::{AnsweredCallDocument, HandleDocument, HandledDocument};
use crate::operations::compile::{CallNote, set_noted_layers};
use crate::operations::own_tools::{PathState, answer_own_call, is_own_tool};
use crate::operations::record::{call_document, load_newest_note, load_note};
use crate::operations::{Host, OperationError};

/// How many items at the end of a branch are searched for calls without outputs.
const NEWEST_ITEMS: u64 = 256;

/// Answers the calls without outputs at the end of a branch that are the server's: calls of its own tools, and calls that are
/// not allowed. Their outputs are stored; what waits for the caller is returned.
///
/// # Errors
/// The engine's; `head_moved` if somebody appended meanwhile.
pub async fn handle_calls(
    chat: &Conversation,
    asked: &HandleDocument,
    host: &Host<'_>,
) -> Result<HandledDocument, OperationError> {
    let note = find_note(chat, asked, host).await?;
    set_noted_layers(chat, &note, host)?;
    let (head, open) = open_calls(chat).await?;
    let (mut answered, mut waiting, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for call in &open {
        match answer_call(chat, &note, call).await {
            None => waiting.extend(call_document(chat, &note, &Item::from(call.clone()))),
            Some(output) => {
                outputs.push(call_output(call, &output));
                answered.push(output);
            }
        }
    }
    let mut now = head;
    if !outputs.is_empty() {
        let mut draft = chat.draft();
        // A function may have stored a state behind the head that was read.
        let ids: Vec<&[u8]> = open.iter().map(|call| call.call_id.as_bytes()).collect();
        let key = NodeId::derive("handled calls", &ids);
        draft.set_idempotency_key(*key.as_bytes());
        for output in outputs {
            draft.push_item(output);
        }
        now = draft.commit().await?.head;
    }
    Ok(HandledDocument {
        head: now.map(|head| head.to_string()),
        answered,
        waiting,
    })
}

/// Returns by what the calls are handled: what the document says, else what the call was compiled with that it names, else what the
/// newest was.
async fn find_note(
    chat: &Conversation,
    asked: &HandleDocument,
    host: &Host<'_>,
) -> Result<CallNote, OperationError> {
    let mut note = match &asked.call {
        Some(call) => load_note(chat, Some(call)).await?,
        None => load_newest_note(chat).await?,
    };
    if let Some(policy) = host.find_policy(asked.policy.as_ref())? {
        note.policy = Some(policy);
    }
    if let Some(skills) = &asked.skills {
        note.skills.clone_from(skills);
    }
    Ok(note)
}

/// Answers one call; `None` if that is the caller's.
async fn answer_call(
    chat: &Conversation,
    note: &CallNote,
    call: &FunctionCall,
) -> Option<AnsweredCallDocument> {
    let (output, is_error) = match note.refusal(&call.name) {
        Some(refusal) => (refusal, true),
        None if is_own_tool(chat, &call.name) => {
            let reply = answer_own_call(chat, &call.name, &call.arguments, PathState::Saved).await;
            (reply.text, reply.is_error)
        }
        None => return None,
    };
    Some(AnsweredCallDocument {
        call_id: call.call_id.clone(),
        name: call.name.clone(),
        output,
        is_error,
    })
}

fn call_output(call: &FunctionCall, answered: &AnsweredCallDocument) -> FunctionCallOutput {
    FunctionCallOutput {
        is_error: answered.is_error.then_some(true),
        ..FunctionCallOutput::new(&call.call_id, Output::Text(answered.output.clone()))
    }
}

/// Returns the head of the branch, and the calls at its end that have no output yet.
async fn open_calls(
    chat: &Conversation,
) -> Result<(Option<NodeId>, Vec<FunctionCall>), OperationError> {
    let request = ReadRequest::last_nodes(PathEnd::Branch(chat.branch()), NEWEST_ITEMS);
    let store = &**chat.engine().store();
    let page = read_all_pages(store, chat.owner(), chat.id(), request).await;
    let page = page.map_err(contexture::EngineError::from)?;
    let (mut outputs, mut open) = (BTreeSet::new(), Vec::new());
    for node in page.nodes.iter().rev() {
        match parse_node_item(node)? {
            Item::FunctionCallOutput(output) => {
                outputs.insert(output.call_id);
            }
            // A nearer output answers the nearest call of its id.
            Item::FunctionCall(call) if !outputs.remove(&call.call_id) => open.push(call),
            // What a person says ends the round: calls before it are not answered any more.
            Item::Message(message) if message.role == contexture::ir::Role::User => break,
            _ => {}
        }
    }
    open.reverse();
    Ok((page.head, open))
}
