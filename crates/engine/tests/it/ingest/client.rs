//! A client that keeps no state but its history, in the format of a provider.

use contexture_engine::{Engine, EngineError, Exchange, IngestRequest, Ingested, Recorded};
use contexture_ir::{
    ConversationId, FinishReason, Item, Message, Owner, ResponseInfo, Role, Transcript,
};
use contexture_store::{ListConversations, PathEnd, ReadRequest};

pub(super) fn owner() -> Owner {
    Owner::new("acme/ada").unwrap()
}

pub(super) fn user(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

pub(super) fn model(text: &str) -> Item {
    Item::Message(Message::text(Role::Assistant, text))
}

/// An item by its JSON.
pub(super) fn item(json: &str) -> Item {
    Item::parse(json).unwrap()
}

/// A call by its id, of one argument.
pub(super) fn call(id: &str, argument: &str) -> Item {
    item(&format!(
        r#"{{"type":"function_call","call_id":"{id}","name":"look","arguments":"{{\"at\":\"{argument}\"}}"}}"#
    ))
}

pub(super) fn output(id: &str, text: &str) -> Item {
    item(&format!(
        r#"{{"type":"function_call_output","call_id":"{id}","output":"{text}"}}"#
    ))
}

pub(super) fn request(items: &[Item]) -> Transcript {
    Transcript {
        items: items.to_vec(),
        ..Transcript::default()
    }
}

/// An answer with these items.
pub(super) fn answer(items: &[Item]) -> Transcript {
    Transcript {
        items: items.to_vec(),
        response: Some(ResponseInfo {
            finish: Some(FinishReason::Stop),
            ..ResponseInfo::default()
        }),
        ..Transcript::default()
    }
}

/// What a request says of itself beside its history.
#[derive(Clone, Copy, Default)]
pub(super) struct Named<'a> {
    pub(super) conversation: Option<&'a str>,
    pub(super) previous: Option<&'a str>,
    pub(super) partition: Option<&'a str>,
}

/// Sends the request of an exchange.
pub(super) async fn ingest(
    engine: &Engine,
    exchange: &Exchange,
    items: &[Item],
    named: Named<'_>,
) -> Result<Ingested, EngineError> {
    let id = named
        .conversation
        .map(|id| ConversationId::new(id).unwrap());
    let request = request(items);
    let incoming = IngestRequest {
        conversation: id.as_ref(),
        previous_response: named.previous,
        partition: named.partition,
        exchange: Some(exchange),
        ..IngestRequest::new(&request)
    };
    engine.ingest(&owner(), incoming).await
}

/// Sends a history that nobody names.
pub(super) async fn send(engine: &Engine, items: &[Item]) -> Ingested {
    let request = request(items);
    engine
        .ingest(&owner(), IngestRequest::new(&request))
        .await
        .unwrap()
}

/// Sends a history of a named conversation.
pub(super) async fn send_to(engine: &Engine, name: &str, items: &[Item]) -> Ingested {
    let (request, name) = (request(items), ConversationId::new(name).unwrap());
    let incoming = IngestRequest {
        conversation: Some(&name),
        ..IngestRequest::new(&request)
    };
    engine.ingest(&owner(), incoming).await.unwrap()
}

/// A client and its history.
pub(super) struct Client<'a> {
    pub(super) engine: &'a Engine,
    pub(super) history: Vec<Item>,
}

impl<'a> Client<'a> {
    pub(super) fn new(engine: &'a Engine) -> Self {
        Self {
            engine,
            history: Vec::new(),
        }
    }

    /// Says something, sends all of it, and is answered.
    pub(super) async fn turn(&mut self, said: &[Item], answered: &[Item]) -> (Ingested, Recorded) {
        self.history.extend_from_slice(said);
        let sent = send(self.engine, &self.history).await;
        let recorded = sent.record(&answer(answered)).await.unwrap();
        self.history.extend_from_slice(answered);
        (sent, recorded)
    }
}

/// Ids of the owner's conversations, the latest first.
pub(super) async fn conversations(engine: &Engine, owner: &Owner) -> Vec<ConversationId> {
    let list = ListConversations {
        limit: Some(1_000),
        ..ListConversations::default()
    };
    let page = engine.list_conversations(owner, list).await.unwrap();
    page.conversations.into_iter().map(|one| one.id).collect()
}

/// The items of the path that ends where a request was stored.
pub(super) async fn path(sent: &Ingested, at: PathEnd) -> Vec<Item> {
    let store = sent.chat.engine().store();
    let page = store.read_path(
        sent.chat.owner(),
        sent.chat.id(),
        ReadRequest::whole_path(at),
    );
    let nodes = page.await.unwrap().nodes;
    nodes.iter().map(|node| item(&node.json)).collect()
}
