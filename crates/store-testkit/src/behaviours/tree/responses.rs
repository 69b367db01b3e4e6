//! Records of responses.

use std::sync::Arc;

use contexture_ir::{ContentHash, NodeId, ResponseId};
use contexture_store::{
    Activation, AppendRequest, EntityKind, Error, RedactRequest, ResponseInputs, ResponseRecord,
    ResponseStatus, StateKey, StatePatch, Store,
};

use crate::chat::{Chat, NOW, item, node};

type Tested = Arc<dyn Store>;

fn response_id(word: &str) -> ResponseId {
    ResponseId::derive("testkit", &[word.as_bytes()])
}

/// Returns the response `word`, computed from `base`.
fn response_record(word: &str, base: Option<&str>) -> ResponseRecord {
    ResponseRecord {
        status: ResponseStatus::Incomplete,
        model: Some("a-model é".to_owned()),
        usage: Some(r#"{"input_tokens":12}"#.into()),
        // With NUL: inputs are bytes and no text.
        inputs: ResponseInputs::Recorded(format!("inputs of {word}\0").into_bytes().into()),
        ..ResponseRecord::new(response_id(word), base.map(node), NOW + 1)
    }
}

fn append_with_response(name: &str, word: &str, base: Option<&str>) -> AppendRequest {
    AppendRequest {
        response: Some(response_record(word, base)),
        ..AppendRequest::new(Chat::at_tip(name), vec![item(word)], NOW)
    }
}

async fn load_response(chat: &Chat, word: &str) -> Result<ResponseRecord, Error> {
    chat.store
        .load_response(&chat.owner, &chat.id, response_id(word))
        .await
}

/// Checks whether a response has its inputs, or they are redacted.
async fn has_inputs(chat: &Chat, word: &str) -> bool {
    match load_response(chat, word).await.unwrap().inputs {
        ResponseInputs::Recorded(_) => true,
        ResponseInputs::Redacted => false,
        ResponseInputs::None => panic!("{word}: they were recorded"),
    }
}

pub(in crate::behaviours) async fn come_back_as_they_were(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_request(append_with_response("main", "first", None))
        .await
        .unwrap();
    let plain = AppendRequest {
        response: Some(ResponseRecord::new(
            response_id("plain"),
            Some(node("first")),
            NOW,
        )),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("plain")], NOW)
    };
    chat.append_request(plain.clone()).await.unwrap();
    assert_eq!(
        load_response(&chat, "first").await.unwrap(),
        response_record("first", None)
    );
    assert_eq!(load_response(&chat, "plain").await.ok(), plain.response);
    let error = load_response(&chat, "never").await.unwrap_err();
    let not_found = matches!(
        error,
        Error::NotFound {
            what: EntityKind::Response,
            ..
        }
    );
    assert!(not_found, "{error}");
    // Long inputs too.
    let long: Arc<[u8]> = "a line of some length\n".repeat(20_000).into_bytes().into();
    let mut request = append_with_response("main", "long", Some("plain"));
    let inputs = ResponseInputs::Recorded(long);
    request.response.as_mut().unwrap().inputs = inputs.clone();
    chat.append_request(request).await.unwrap();
    assert_eq!(load_response(&chat, "long").await.unwrap().inputs, inputs);
}

pub(in crate::behaviours) async fn are_stored_once_and_with_their_items(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let request = append_with_response("main", "b", Some("a"));
    chat.append_request(request.clone()).await.unwrap();
    assert!(chat.append_request(request).await.unwrap().replayed);
    let before = chat.snapshot_text().await;
    // The id is taken.
    let mut taken = append_with_response("main", "c", Some("b"));
    taken.response.as_mut().unwrap().id = response_id("b");
    let error = chat.append_request(taken).await.unwrap_err();
    let is_taken = matches!(
        error,
        Error::AlreadyExists {
            what: EntityKind::Response,
            ..
        }
    );
    assert!(is_taken, "{error}");
    // The base is unknown.
    let error = chat
        .append_request(append_with_response("main", "c", Some("never")))
        .await;
    let error = error.unwrap_err();
    let no_base = matches!(
        error,
        Error::NotFound {
            what: EntityKind::Node,
            ..
        }
    );
    assert!(no_base, "{error}");
    // Neither refused append has stored its items.
    assert_eq!(chat.snapshot_text().await, before);
    expect_refused_records(&chat).await;
    assert_eq!(chat.snapshot_text().await, before);
}

/// Records without bytes, without items, and with too many bytes.
async fn expect_refused_records(chat: &Chat) {
    let mut nothing = append_with_response("main", "c", Some("b"));
    // Recorded inputs without a byte are refused: that nothing was recorded has a value of its own.
    nothing.response.as_mut().unwrap().inputs = ResponseInputs::Recorded(Arc::from([]));
    assert!(chat.append_request(nothing).await.is_err());
    let mut alone = append_with_response("main", "c", Some("b"));
    // A record belongs to the items of its answer; without any it is refused.
    alone.items.clear();
    assert!(chat.append_request(alone).await.is_err());
    let mut huge = append_with_response("main", "c", Some("b"));
    let bytes = chat.store.limits().response_bytes + 1;
    huge.response.as_mut().unwrap().inputs = ResponseInputs::Recorded(vec![1; bytes].into());
    let error = chat.append_request(huge).await.unwrap_err();
    let named = matches!(
        error,
        Error::Limit {
            limit: "response_bytes",
            ..
        }
    );
    assert!(named, "{error}");
}

/// A redaction removes the inputs of the responses that have read the node, and of no others.
pub(in crate::behaviours) async fn a_redaction_takes_what_has_seen_it(store: Tested) {
    let chat = Chat::start(store).await;
    let answer = async |branch: &str, question: &str, word: &str| {
        chat.append_messages(branch, &[question]).await;
        let request = append_with_response(branch, word, Some(question));
        chat.append_request(request).await.unwrap();
    };
    answer("main", "a", "early").await;
    answer("main", "secret", "late").await;
    answer("main", "d", "later").await;
    // This branch leaves the path before the secret, so its answer has not seen it.
    let before = chat.rewind("main", "early", Activation::Keep).await;
    answer(&before, "e", "of the earlier branch").await;
    // This one leaves the path after the secret, so its answer has.
    let after = chat.rewind("main", "d", Activation::Keep).await;
    answer(&after, "f", "of the later branch").await;
    redact_content(&chat, &[node("secret")], &[]).await;
    for (word, remain) in [
        ("early", true),
        ("late", false),
        ("later", false),
        ("of the earlier branch", true),
        ("of the later branch", false),
    ] {
        assert_eq!(has_inputs(&chat, word).await, remain, "{word}");
    }
    // The rest of the record stays.
    let late = ResponseRecord {
        inputs: ResponseInputs::Redacted,
        ..response_record("late", Some("secret"))
    };
    assert_eq!(load_response(&chat, "late").await.unwrap(), late);
    // A later response has read a tombstone; redacting that again removes nothing.
    chat.append_request(append_with_response("main", "after", Some("later")))
        .await
        .unwrap();
    redact_content(&chat, &[node("secret")], &[]).await;
    assert!(has_inputs(&chat, "after").await);
}

pub(in crate::behaviours) async fn a_redacted_value_takes_all(store: Tested) {
    let chat = Chat::start(store).await;
    let request = AppendRequest {
        patch: StatePatch::put_entry(StateKey::new("k").unwrap(), 1, *b"a secret value"),
        ..append_with_response("main", "a", None)
    };
    chat.append_request(request).await.unwrap();
    let other = Chat::start_as(Arc::clone(&chat.store), "ada", "other").await;
    other
        .append_request(append_with_response("main", "a", None))
        .await
        .unwrap();
    // An unknown value removes no inputs.
    redact_content(&chat, &[], &[ContentHash::of(b"no value")]).await;
    assert!(has_inputs(&chat, "a").await);
    redact_content(&chat, &[], &[ContentHash::of(b"a secret value")]).await;
    assert!(!has_inputs(&chat, "a").await);
    // A redaction stays within its conversation.
    assert!(has_inputs(&other, "a").await);
}

pub(in crate::behaviours) async fn go_with_their_conversation(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_request(append_with_response("main", "a", None))
        .await
        .unwrap();
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    let chat = Chat::start(Arc::clone(&chat.store)).await;
    assert!(load_response(&chat, "a").await.is_err());
    chat.append_request(append_with_response("main", "a", None))
        .await
        .unwrap();
    assert!(has_inputs(&chat, "a").await);
}

async fn redact_content(chat: &Chat, nodes: &[NodeId], values: &[ContentHash]) {
    let request = RedactRequest {
        nodes: nodes.to_vec(),
        values: values.to_vec(),
        at_ms: NOW + 9,
        ..RedactRequest::default()
    };
    chat.store
        .redact_content(&chat.owner, &chat.id, request)
        .await
        .unwrap();
}
