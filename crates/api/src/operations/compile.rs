//! A call for a stored conversation.

use contexture::compile::PathItem;
use contexture::engine::{ToolFilter, parse_node_item};
use contexture::ir::{Cancel, Item, NodeId, Raw, Transcript};
use contexture::store::{PathEnd, ReadRequest as PathRequest, read_all_pages};
use contexture::{CompileOptions, CompiledCall, Conversation, EngineError};
use serde::{Deserialize, Serialize};

use crate::documents::{CompileDocument, CompiledDocument};
use crate::operations::own_tools::is_own_tool;
use crate::operations::request::{ReadRequest, build_layers};
use crate::operations::{Host, OperationError};
use crate::policy::PolicyConfig;

/// A call that was compiled for a stored conversation, and what is to hold when its answer comes.
#[derive(Clone, Debug)]
pub struct CompiledConversation {
    /// The compiled call itself.
    pub call: CompiledCall,
    /// Names of offered tools whose calls are answered here.
    pub own_tools: Vec<String>,
    note: CallNote,
}

/// What a call is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilePurpose {
    /// To be sent: a policy with `compact` may store a compaction first.
    Call,
    /// To be looked at: nothing is stored.
    Explanation,
}

/// What is noted with a call: by which its answer is handled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CallNote {
    pub(crate) policy: Option<PolicyConfig>,
    pub(crate) skills: Vec<String>,
}

/// Compiles a branch of a stored conversation as a document says.
///
/// # Errors
/// A member that cannot be followed, or the engine's.
pub async fn compile_conversation(
    chat: &Conversation,
    asked: &CompileDocument,
    host: &Host<'_>,
    purpose: CompilePurpose,
    cancel: &Cancel,
) -> Result<CompiledConversation, OperationError> {
    compile_conversation_at(chat, asked, host, purpose, None, cancel).await
}

/// Compiles a history that ends at a node, by default at the head of the branch, as a document says. One that ends elsewhere is only
/// looked at: nothing is stored, whatever it is compiled for.
pub(crate) async fn compile_conversation_at(
    chat: &Conversation,
    asked: &CompileDocument,
    host: &Host<'_>,
    purpose: CompilePurpose,
    at: Option<NodeId>,
    cancel: &Cancel,
) -> Result<CompiledConversation, OperationError> {
    refuse_document_members(asked)?;
    let catalogue = chat.engine().catalogue();
    let last = match &asked.model {
        Some(_) => None,
        None => chat.last_target().await?,
    };
    let request = ReadRequest::read(asked, host, catalogue, last)?;
    let history = match request.selects_tools() {
        true => load_items(chat, at).await?,
        false => Vec::new(),
    };
    let target = request.with_read_tool(request.target(history.iter())?);
    let renderer = request.renderer()?;
    chat.set_renderer(renderer.clone());
    let note = CallNote {
        policy: request.policy.clone(),
        skills: asked.skills.clone(),
    };
    set_noted_layers(chat, &note, host)?;
    let spec = target.model_spec(catalogue).map_err(EngineError::from)?;
    let contributions = request.contributions(&spec.capabilities, &renderer)?;
    let policy_tools = note.policy.as_ref().map(|policy| &policy.tools);
    let filter_tools = |request: &mut Transcript, path: &[PathItem]| {
        if let Some(tools) = policy_tools {
            tools.retain_offered(request, path.iter().map(|one| &*one.item));
        }
    };
    let options = CompileOptions {
        at,
        contributions: &contributions,
        stored_tools: Some(ToolFilter(&filter_tools)),
        cancel: Some(cancel),
        ..CompileOptions::default()
    };
    let compaction = note
        .policy
        .as_ref()
        .and_then(|policy| policy.prepare_options(None));
    let may_compact = purpose == CompilePurpose::Call && at.is_none();
    let call = match compaction.filter(|_| may_compact) {
        Some(how) => chat.prepare_with(&target, &how, options).await?.call,
        None => chat.compile_with(&target, options).await?,
    };
    let own = chat.layers().tool_definitions();
    let offered = target.tool_definitions().iter().chain(&own);
    let own_tools = offered.filter(|tool| is_own_tool(chat, tool.name()));
    Ok(CompiledConversation {
        own_tools: own_tools.map(|tool| tool.name().to_owned()).collect(),
        call,
        note,
    })
}

/// Keeps a compiled call for an hour, and returns the document of it, with the id by which its answer is recorded.
///
/// # Errors
/// The store's.
pub async fn keep_compiled(
    chat: &Conversation,
    compiled: CompiledConversation,
) -> Result<CompiledDocument, OperationError> {
    let CompiledConversation {
        call,
        own_tools,
        note,
    } = compiled;
    let note = Raw::from_value(&note).map_err(EngineError::from)?;
    Ok(CompiledDocument {
        call: Some(chat.keep_call(&call, note).await?),
        payload: Raw::parse(call.payload.to_json()).map_err(EngineError::from)?,
        report: Raw::from_value(&call.report).map_err(EngineError::from)?,
        plan: None,
        own_tools,
    })
}

/// Loads the items of the path to a node, by default to the head of the branch.
async fn load_items(chat: &Conversation, at: Option<NodeId>) -> Result<Vec<Item>, EngineError> {
    let end = at.map(PathEnd::Node);
    let request = PathRequest::whole_path(end.unwrap_or_else(|| PathEnd::Branch(chat.branch())));
    let store = &**chat.engine().store();
    let path = read_all_pages(store, chat.owner(), chat.id(), request).await?;
    path.nodes
        .iter()
        .map(|node| parse_node_item(node))
        .collect()
}

/// Sets the layers that were noted with a call.
pub(crate) fn set_noted_layers(
    chat: &Conversation,
    note: &CallNote,
    host: &Host<'_>,
) -> Result<(), OperationError> {
    let layers = build_layers(host, note.policy.as_ref(), &note.skills)?;
    chat.set_layers(layers);
    Ok(())
}

/// Refuses what only a caller who keeps the history can say.
fn refuse_document_members(asked: &CompileDocument) -> Result<(), OperationError> {
    let said = [
        ("messages", asked.messages.is_some()),
        ("plan", asked.plan.is_some()),
        (
            "reported_input_tokens",
            asked.reported_input_tokens.is_some(),
        ),
    ];
    match said.iter().find(|(_, is_said)| *is_said) {
        None => Ok(()),
        Some((member, _)) => {
            let detail = "a stored conversation has its own; `POST /api/v1/compile` takes it";
            Err(OperationError::member(member, detail))
        }
    }
}
