//! A past call of the record: its request as it came and as it was sent, its report, its answer.
//!
//! Nothing of it was copied when the call was made. A request that was compiled is compiled again; one that came from a client is read from
//! the body that was kept, if the engine keeps bodies, else made again of the items that it left in its conversation. Each says whether it is
//! exact: a body by its hash, a compiled request by that of its payload.
//!
//! Not here: the figures and the band of a call, which were stored with it and are shown as they are (`contexture_store::CallRecord`).

use std::sync::Arc;

use contexture_compile::Report;
use contexture_compile::compaction::COVERS;
use contexture_ir::{CallId, ContentHash, Item, NodeId, Owner, ResponseId, Transcript};
use contexture_store::{
    BlobId, CallRecord, EntityKind, Error as StoreError, Node, NodeQuery, PathEnd, ReadRequest,
    ResponseRecord,
};
use contexture_wire::replace_history;
use contexture_wire::{Dialect, DocumentKind, Format, lower};

use crate::append::is_state_node;
use crate::call::{Replayed, replay_call};
use crate::call_bodies::load_body;
use crate::error::{EngineError, Unreplayable};
use crate::handle::{Conversation, Engine, load_conversation_info, load_path, load_state};
use crate::path::{StoredPath, parse_node_item};
use crate::state::{INSTRUCTIONS_PREFIX, Instructions, stored_settings};

/// Nodes of one answer that are looked for at most.
const MAX_ANSWER_NODES: usize = 4_096;

/// A call of the record, and what can still be told of it; see [`Engine::past_call`](crate::Engine::past_call).
#[derive(Clone, Debug)]
pub struct PastCall {
    record: CallRecord,
    /// The conversation that it belongs to, if that is there.
    chat: Option<Conversation>,
}

/// A request of a past call.
#[derive(Clone, Debug)]
pub struct PastRequest {
    /// Format of the request.
    pub format: Format,
    /// The request, as JSON.
    pub json: String,
    /// What it was made of.
    pub source: RequestSource,
    /// Whether it is the request byte for byte.
    pub is_exact: bool,
    /// What it contains and leaves out, where it was compiled.
    pub report: Option<Box<Report>>,
}

/// What a past request was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestSource {
    /// The body that was kept with the call.
    Body,
    /// The items of the conversation, its instructions and the settings of the request.
    Items,
    /// What the call was compiled from.
    Replay,
}

impl RequestSource {
    /// Returns the lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Items => "items",
            Self::Replay => "replay",
        }
    }
}

/// Why a part of a past call cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingPart {
    /// The call belongs to no conversation.
    #[error("the call belongs to no conversation, or to one that was deleted")]
    NoConversation,
    /// No client made the call.
    #[error("no request came: a program compiled it here")]
    NoRequest,
    /// There is no answer, and the request was taken back.
    #[error("no answer was stored, and its request was taken back")]
    NoAnswer,
    /// What was sent was neither compiled nor the client's own request.
    #[error("the request was changed on its way, and what was sent was not kept")]
    Changed,
    /// What it was compiled from is not there.
    #[error("the request cannot be compiled again: {0}")]
    Unreplayable(Unreplayable),
}

/// The answer of a past call.
#[derive(Clone, Debug)]
pub struct PastAnswer {
    /// Nodes of its items, in order: those of calls that were answered on the way included.
    pub nodes: Vec<Arc<Node>>,
    /// What is stored of it beside its items.
    pub record: ResponseRecord,
}

/// Finds a call of the record.
pub(crate) async fn find_past_call(
    engine: &Engine,
    owner: &Owner,
    id: CallId,
) -> Result<Option<PastCall>, EngineError> {
    let Some(calls) = engine.store().calls() else {
        return Ok(None);
    };
    let Some(record) = calls.load_call(owner, id).await? else {
        return Ok(None);
    };
    let chat = match &record.conversation {
        None => None,
        Some(id) => match load_conversation_info(engine, owner, id).await {
            Ok(info) => Some(Conversation::new(
                engine.clone(),
                owner.clone(),
                id.clone(),
                info.active,
            )),
            // Deleted since the call was read.
            Err(EngineError::Store(StoreError::NotFound { .. })) => None,
            Err(error) => return Err(error),
        },
    };
    Ok(Some(PastCall { record, chat }))
}

impl PastCall {
    /// Returns the row of the record, with the figures and the band of the call.
    #[must_use]
    pub const fn record(&self) -> &CallRecord {
        &self.record
    }

    /// Returns the conversation that the call belongs to, on its active branch; `None` if it belongs to none, or that was deleted.
    #[must_use]
    pub const fn conversation(&self) -> Option<&Conversation> {
        self.chat.as_ref()
    }

    /// Returns the node at which the history of the request ends; `None` if the request was made of an empty path.
    ///
    /// # Errors
    /// The store's.
    pub async fn base(&self) -> Result<Result<Option<NodeId>, MissingPart>, EngineError> {
        let Some(chat) = &self.chat else {
            return Ok(Err(MissingPart::NoConversation));
        };
        let found = self.load_response(chat).await?;
        Ok(found.map(|found| found.base).ok_or(MissingPart::NoAnswer))
    }

    /// Returns the request as its client sent it: from the body that was kept, or made again of what it left in the conversation. What
    /// is made again has the client's messages, tools and options; members may stand in another order.
    ///
    /// # Errors
    /// The store's.
    pub async fn request_as_it_came(
        &self,
    ) -> Result<Result<PastRequest, MissingPart>, EngineError> {
        let Some(chat) = &self.chat else {
            return Ok(Err(MissingPart::NoConversation));
        };
        let (Some(hash), Some(format)) = (self.record.body_hash, self.format()) else {
            return Ok(Err(MissingPart::NoRequest));
        };
        if let Some(json) = load_body(chat, self.record.id).await? {
            return Ok(Ok(self.client_request(
                format,
                json,
                RequestSource::Body,
                hash,
                chat,
            )));
        }
        let Some(response) = self.load_response(chat).await? else {
            return Ok(Err(MissingPart::NoAnswer));
        };
        let json = rebuild_request(chat, response.base, format, &self.record.names.model).await?;
        Ok(Ok(self.client_request(
            format,
            json,
            RequestSource::Items,
            hash,
            chat,
        )))
    }

    /// Returns the request that was sent to the provider, with the report on it where it was compiled.
    ///
    /// # Errors
    /// The store's; [`EngineError::Refused`] if this version of the compiler refuses it.
    pub async fn request_as_sent(&self) -> Result<Result<PastRequest, MissingPart>, EngineError> {
        let Some(chat) = &self.chat else {
            return Ok(Err(MissingPart::NoConversation));
        };
        let (Some(response), Some(format)) = (self.record.response, self.format()) else {
            return Ok(Err(MissingPart::NoAnswer));
        };
        match replay_call(chat, response).await {
            Ok(replayed) => self.sent_request(format, replayed).await,
            Err(EngineError::Unreplayable { reason, .. }) => match reason {
                Unreplayable::PassedThrough if self.record.details.is_rewritten => {
                    Ok(Err(MissingPart::Changed))
                }
                Unreplayable::PassedThrough => self.request_as_it_came().await,
                reason => Ok(Err(MissingPart::Unreplayable(reason))),
            },
            Err(error) => Err(error),
        }
    }

    /// Returns the answer as it is stored.
    ///
    /// # Errors
    /// The store's.
    pub async fn answer(&self) -> Result<Result<PastAnswer, MissingPart>, EngineError> {
        let Some(chat) = &self.chat else {
            return Ok(Err(MissingPart::NoConversation));
        };
        let Some(record) = self.load_response(chat).await? else {
            return Ok(Err(MissingPart::NoAnswer));
        };
        let nodes = load_answer_nodes(chat, record.id).await?;
        Ok(Ok(PastAnswer { nodes, record }))
    }

    fn format(&self) -> Option<Format> {
        self.record.details.format.parse().ok()
    }

    fn client_request(
        &self,
        format: Format,
        json: String,
        source: RequestSource,
        hash: ContentHash,
        chat: &Conversation,
    ) -> PastRequest {
        let own = BlobId::of(chat.owner(), json.as_bytes());
        PastRequest {
            format,
            is_exact: own.as_bytes() == hash.as_bytes(),
            json,
            source,
            report: None,
        }
    }

    /// Returns the request of a call that was compiled. A proxy puts what it compiled into its client's request and leaves the rest
    /// of that as it came; a program sends it as it is.
    async fn sent_request(
        &self,
        format: Format,
        replayed: Replayed,
    ) -> Result<Result<PastRequest, MissingPart>, EngineError> {
        let mut request = PastRequest {
            format,
            json: replayed.payload.to_json(),
            source: RequestSource::Replay,
            // A further round of a proxy's tool has no client's request that it could be compared with.
            is_exact: replayed.is_equal() && !self.record.details.is_rewritten,
            report: Some(Box::new(replayed.report)),
        };
        if self.record.body_hash.is_some()
            && let Ok(came) = self.request_as_it_came().await?
        {
            let spliced = replace_history(format, &came.json, &request.json);
            request.is_exact =
                spliced.is_ok() && came.is_exact && replayed.sent_hash == replayed.rebuilt_hash;
            request.json = spliced.unwrap_or(request.json);
        }
        Ok(Ok(request))
    }

    async fn load_response(
        &self,
        chat: &Conversation,
    ) -> Result<Option<ResponseRecord>, EngineError> {
        let Some(id) = self.record.response else {
            return Ok(None);
        };
        let store = chat.store();
        match store.load_response(chat.owner(), chat.id(), id).await {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes a request again of what it left: the client's items up to a head, its instructions, its tools and options.
async fn rebuild_request(
    chat: &Conversation,
    base: Option<NodeId>,
    format: Format,
    model: &str,
) -> Result<String, EngineError> {
    let mut request = Transcript::default();
    if let Some(base) = base {
        let at = PathEnd::Node(base);
        let state = load_state(chat, at.clone(), INSTRUCTIONS_PREFIX).await?;
        request = stored_settings(&state)?.unwrap_or_default();
        request.instructions = Instructions::from_state(&state)?.messages;
        let path = load_path(chat, ReadRequest::whole_path(at)).await?;
        request.items = client_items(&path);
    }
    request.model = Some(model.to_owned()).filter(|model| !model.is_empty());
    Ok(lower(&Dialect::of(format), DocumentKind::Request, &request).json)
}

/// Returns the items of a path that its client sent or saw.
fn client_items(path: &StoredPath) -> Vec<Item> {
    let shown = path.nodes.iter().zip(&path.items).filter(|(node, one)| {
        let is_ours = match &*one.item {
            Item::Compaction(compaction) => compaction.extra.get(COVERS).is_some(),
            item => is_state_node(item),
        };
        node.audience.user && !is_ours
    });
    shown.map(|(_, one)| Item::clone(&one.item)).collect()
}

/// Reads the nodes of an answer, whose ids derive from that of the answer.
async fn load_answer_nodes(
    chat: &Conversation,
    response: ResponseId,
) -> Result<Vec<Arc<Node>>, EngineError> {
    let mut found = Vec::new();
    for index in 0..MAX_ANSWER_NODES {
        let query = NodeQuery::Id(NodeId::of_operation(response.as_bytes(), index));
        match chat
            .store()
            .find_nodes(chat.owner(), chat.id(), query)
            .await
        {
            Ok(nodes) => found.extend(nodes),
            Err(StoreError::NotFound {
                what: EntityKind::Node,
                ..
            }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // An empty answer has a node of state alone, which is no item of it.
    let is_item = |node: &Arc<Node>| parse_node_item(node).is_ok_and(|item| !is_state_node(&item));
    found.retain(is_item);
    Ok(found)
}
