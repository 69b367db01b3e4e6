//! Past calls: what a client sent, byte for byte where bodies are kept, and what is made again of its items where they are not.

use std::sync::Arc;

use contexture_engine::{
    AnswerOptions, Engine, IngestRequest, Ingested, MissingPart, PastCall, RequestSource, Secrets,
    TestClock, TestIds,
};
use contexture_ir::{CallId, ContentHash, ConversationId, NodeId, Owner};
use contexture_store::{
    BlobId, CallRecord, MemoryStore, PathEnd, ReadRequest, RedactRequest, Store,
};
use contexture_wire::{Format, lift};
use serde_json::{Value, json};

fn owner() -> Owner {
    Owner::new("acme/ada").unwrap()
}

fn call_id(number: usize) -> CallId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(number as u64).to_be_bytes());
    CallId::from_time(1_764_000_000_000 + number as i64, random)
}

fn engine_over(store: &Arc<dyn Store>) -> Engine {
    Engine::new(Arc::clone(store))
        .with_clock(TestClock::new(1_764_000_000_000))
        .with_ids(TestIds::default())
        .with_call_bodies()
}

/// A chat client that writes its bodies in its own way: members in another order, spaces, escaped umlauts.
struct Client {
    messages: Vec<Value>,
    tools: Value,
    name: &'static str,
    calls: usize,
}

impl Client {
    fn new(name: &'static str) -> Self {
        let parameters = json!({"type": "object", "properties": {"order": {"type": "string"}}});
        let tools = json!([{"type": "function", "function": {"name": "track", "description": "Tells where a parcel is.", "parameters": parameters}}]);
        Self {
            messages: vec![
                json!({"role": "system", "content": "You help with parcels. Be brief."}),
            ],
            tools,
            name,
            calls: 0,
        }
    }

    fn body(&self) -> String {
        let messages: Vec<String> = self.messages.iter().map(Value::to_string).collect();
        let messages = messages.join(", ").replace('ü', "\\u00fc");
        let tools = &self.tools;
        format!(
            "{{ \"temperature\": 0.20, \"messages\": [{messages}], \"tools\": {tools}, \"model\": \"gpt-4o\" }}\n"
        )
    }

    /// Sends what there is, and stores the answer with the body. Returns the call's id, and the body.
    async fn send(&mut self, engine: &Engine, said: &str) -> (CallId, String) {
        self.messages.push(json!({"role": "user", "content": said}));
        let body = self.body();
        let id = call_id(self.calls);
        let (ingested, reply) = self.answer(engine, &body, id).await;
        drop(ingested);
        self.messages
            .push(json!({"role": "assistant", "content": reply}));
        self.calls += 1;
        (id, body)
    }

    async fn answer(&self, engine: &Engine, body: &str, id: CallId) -> (Ingested, String) {
        let request = lift(Format::OpenAiChat, body).unwrap().transcript;
        let conversation = ConversationId::new(self.name).unwrap();
        let incoming = IngestRequest {
            conversation: Some(&conversation),
            ..IngestRequest::new(&request)
        };
        let mut ingested = engine.ingest(&owner(), incoming).await.unwrap();
        let kept = ingested.encode_body(id, body).await.unwrap();
        let reply = format!(
            "Parcel {} is für dich on its way; it left the depot this morning.",
            self.calls
        );
        let answer = json!({"id": format!("c{}", self.calls), "object": "chat.completion", "model": "gpt-4o", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}]});
        let answer = lift(Format::OpenAiChat, &answer.to_string()).unwrap();
        let options = AnswerOptions {
            exchange: Some(row(id, body)),
            body: kept,
            ..AnswerOptions::default()
        };
        ingested
            .record_with(&answer.transcript, options)
            .await
            .unwrap();
        (ingested, reply)
    }
}

fn row(id: CallId, body: &str) -> CallRecord {
    let mut row = CallRecord::new(id, "openai");
    row.names.model = "gpt-4o".to_owned();
    row.details.format = "openai-chat".to_owned();
    let hash = BlobId::of(&owner(), body.as_bytes());
    row.body_hash = Some(ContentHash::from_bytes(*hash.as_bytes()));
    row
}

async fn past(engine: &Engine, id: CallId) -> PastCall {
    engine.past_call(&owner(), id).await.unwrap().unwrap()
}

/// Checks that a call's request comes back byte for byte, from the body that was kept.
async fn expect_exact(engine: &Engine, id: CallId, body: &str) {
    let came = past(engine, id).await.request_as_it_came().await.unwrap();
    let came = came.unwrap();
    assert_eq!(came.json, body);
    assert!(came.is_exact && came.source == RequestSource::Body);
}

async fn body_bytes(store: &Arc<dyn Store>, id: CallId) -> Option<usize> {
    let calls = store.calls().unwrap();
    let body = calls.load_call_body(&owner(), id).await.unwrap();
    body.map(|body| body.len())
}

/// The nodes of a conversation's main branch.
async fn nodes(store: &Arc<dyn Store>, name: &str) -> Vec<(NodeId, usize)> {
    let id = ConversationId::new(name).unwrap();
    let main = PathEnd::Branch("main".parse().unwrap());
    let owner = owner();
    let path = store.read_path(&owner, &id, ReadRequest::whole_path(main));
    let nodes = path.await.unwrap().nodes;
    nodes
        .iter()
        .map(|node| (node.id, node.json.len()))
        .collect()
}

#[tokio::test]
async fn bodies_of_500_calls_take_less_than_their_items() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = engine_over(&store);
    let mut client = Client::new("long");
    let mut sent = Vec::new();
    for number in 0..500 {
        let said = format!(
            "Question {number}: where is parcel W{}, please? It was für Ada.",
            number * 7919
        );
        sent.push(client.send(&engine, &said).await);
    }
    let mut kept = 0;
    for (id, _) in &sent {
        kept += body_bytes(&store, *id).await.unwrap();
    }
    let items: usize = nodes(&store, "long")
        .await
        .iter()
        .map(|(_, bytes)| bytes)
        .sum();
    let whole: usize = sent.iter().map(|(_, body)| body.len()).sum();
    println!("{whole} bytes of bodies, {items} of items, {kept} kept");
    // The bar is twice the items.
    assert!(
        kept < items,
        "{kept} bytes of bodies beside {items} of items"
    );
    for (id, body) in sent.iter().step_by(37).chain(sent.last()) {
        expect_exact(&engine, *id, body).await;
    }
    // Another process has nothing in memory: it reads them, and goes on with a key frame.
    let other = engine_over(&store);
    let (id, body) = client.send(&other, "And now?").await;
    expect_exact(&other, id, &body).await;
    expect_exact(&other, sent[499].0, &sent[499].1).await;
}

#[tokio::test]
async fn a_body_comes_back_after_edits_and_far_from_its_items() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = engine_over(&store);
    let mut client = Client::new("edited");
    let mut sent = vec![
        client.send(&engine, "One").await,
        client.send(&engine, "Two").await,
    ];
    // An earlier message is changed, tools go, and the client writes every letter as an escape.
    client.messages[1] = json!({"role": "user", "content": "One, changed"});
    client.messages.truncate(3);
    client.tools = json!([]);
    sent.push(client.send(&engine, "Three").await);
    client
        .messages
        .push(json!({"role": "user", "content": "Wo ist das Paket?"}));
    let escaped: String = "Wo ist das Paket?"
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    let body = client.body().replace("Wo ist das Paket?", &escaped);
    let id = call_id(client.calls);
    client.answer(&engine, &body, id).await;
    sent.push((id, body));
    for (id, body) in &sent {
        expect_exact(&engine, *id, body).await;
    }
}

#[tokio::test]
async fn a_redaction_takes_bodies_and_none_is_kept_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = engine_over(&store);
    let mut client = Client::new("secret");
    let first = client.send(&engine, "My card is 4111-1111").await.0;
    let second = client.send(&engine, "Thanks").await.0;
    assert!(body_bytes(&store, second).await.is_some());
    let secret = nodes(&store, "secret").await[0].0;
    let redact = RedactRequest {
        nodes: vec![secret],
        at_ms: 1,
        ..RedactRequest::default()
    };
    let id = ConversationId::new("secret").unwrap();
    store.redact_content(&owner(), &id, redact).await.unwrap();
    // The client still sends it, with each request.
    let third = client.send(&engine, "And?").await.0;
    for call in [first, second, third] {
        assert_eq!(body_bytes(&store, call).await, None);
        let came = past(&engine, call)
            .await
            .request_as_it_came()
            .await
            .unwrap();
        let came = came.unwrap();
        assert!(!came.is_exact && came.source == RequestSource::Items);
        assert!(!came.json.contains("4111"), "{}", came.json);
    }
}

#[tokio::test]
async fn a_redaction_while_the_model_answers_leaves_no_body() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = engine_over(&store);
    let mut client = Client::new("race");
    client.send(&engine, "My card is 4111-1111").await;
    client
        .messages
        .push(json!({"role": "user", "content": "Thanks"}));
    let (body, id) = (client.body(), call_id(9));
    let request = lift(Format::OpenAiChat, &body).unwrap().transcript;
    let conversation = ConversationId::new("race").unwrap();
    let incoming = IngestRequest {
        conversation: Some(&conversation),
        ..IngestRequest::new(&request)
    };
    let mut ingested = engine.ingest(&owner(), incoming).await.unwrap();
    let kept = ingested.encode_body(id, &body).await.unwrap();
    assert!(kept.is_some());
    let redact = RedactRequest {
        nodes: vec![nodes(&store, "race").await[0].0],
        at_ms: 1,
        ..RedactRequest::default()
    };
    store
        .redact_content(&owner(), &conversation, redact)
        .await
        .unwrap();
    let options = AnswerOptions {
        exchange: Some(row(id, &body)),
        body: kept,
        ..AnswerOptions::default()
    };
    let answer = json!({"id": "c", "object": "chat.completion", "model": "gpt-4o", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "You are welcome."}, "finish_reason": "stop"}]});
    let answer = lift(Format::OpenAiChat, &answer.to_string()).unwrap();
    ingested
        .record_with(&answer.transcript, options)
        .await
        .unwrap();
    assert_eq!(body_bytes(&store, id).await, None);
}

#[tokio::test]
async fn secrets_are_taken_out_of_bodies() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = engine_over(&store).with_secrets(Secrets::common());
    let mut client = Client::new("keys");
    let (id, body) = client.send(&engine, "It is AKIAIOSFODNN7EXAMPLE").await;
    assert!(body.contains("AKIAIOSFODNN7EXAMPLE"));
    let came = past(&engine, id).await.request_as_it_came().await.unwrap();
    let came = came.unwrap();
    assert!(came.source == RequestSource::Body && !came.is_exact);
    assert!(!came.json.contains("IOSFODNN7"), "{}", came.json);
}

#[tokio::test]
async fn without_bodies_a_request_is_made_again_of_its_items() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = Engine::new(Arc::clone(&store));
    let mut client = Client::new("plain");
    client.send(&engine, "One").await;
    let (id, body) = client.send(&engine, "Two").await;
    client.send(&engine, "Three").await;
    let call = past(&engine, id).await;
    for request in [
        call.request_as_it_came().await,
        call.request_as_sent().await,
    ] {
        let request = request.unwrap().unwrap();
        assert!(!request.is_exact && request.source == RequestSource::Items);
        // The same to the letter but for white space, escapes and the order of members.
        let (made, came): (Value, Value) = (
            serde_json::from_str(&request.json).unwrap(),
            serde_json::from_str(&body).unwrap(),
        );
        assert_eq!(made, came);
    }
    let answer = call.answer().await.unwrap().unwrap();
    assert_eq!(answer.nodes.len(), 1);
    assert!(answer.nodes[0].json.contains("Parcel 1 is für dich"));
    // Neither another owner nor a deleted conversation shows anything.
    let stranger = Owner::new("acme/bob").unwrap();
    assert!(engine.past_call(&stranger, id).await.unwrap().is_none());
    let conversation = ConversationId::new("plain").unwrap();
    store
        .delete_conversation(&owner(), &conversation)
        .await
        .unwrap();
    let call = past(&engine, id).await;
    let came = call.request_as_it_came().await.unwrap();
    assert_eq!(came.unwrap_err(), MissingPart::NoConversation);
    assert_eq!(
        call.answer().await.unwrap().unwrap_err(),
        MissingPart::NoConversation
    );
}
