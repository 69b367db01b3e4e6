//! The bodies of calls: read alone, and gone with time and with what they are made of.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{CallFilter, CallRecord, Calls, RedactRequest, SweepCalls};

use super::{APART, START, Tested, call_id, list_all_calls, numbered_call};
use crate::chat::{Chat, NOW, node};

/// Calls with bodies: one of each conversation in turn, one of none.
fn with_bodies(own: &[ConversationId]) -> Vec<CallRecord> {
    let call = |number: u64| CallRecord {
        body: Some(Arc::from(number.to_be_bytes())),
        ..numbered_call(number, own)
    };
    (0..6).map(call).collect()
}

/// Checks which calls have a body.
async fn expect_bodies(calls: &dyn Calls, owner: &Owner, expected: &[u64], when: &str) {
    for number in 0..6 {
        let found = calls.load_call_body(owner, call_id(number)).await.unwrap();
        let body = expected.contains(&number).then(|| number.to_be_bytes());
        let body = body.as_ref().map(<[u8; 8]>::as_slice);
        assert_eq!(found.as_deref(), body, "{when}: call {number}");
    }
}

pub(in crate::behaviours) async fn bodies_are_read_alone_and_removed_in_time(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(calls) = chat.store.calls() else {
        return;
    };
    let all = with_bodies(std::slice::from_ref(&chat.id));
    calls.record_calls(&chat.owner, all.clone()).await.unwrap();
    // A body belongs to what a conversation holds: without one it is nobody's, and goes with no deletion.
    expect_bodies(calls, &chat.owner, &[0, 2, 4], "stored").await;
    let found = calls.load_call(&chat.owner, call_id(0)).await.unwrap();
    let bare = CallRecord {
        body: None,
        ..all[0].clone()
    };
    assert_eq!(found, Some(bare), "a look-up leaves the body out");
    let rows = list_all_calls(calls, &chat.owner, CallFilter::default()).await;
    assert!(rows.iter().all(|call| call.body.is_none()));
    let stranger = Owner::new("bob").unwrap();
    expect_bodies(calls, &stranger, &[], "a stranger").await;
    let sweep = SweepCalls {
        roll_up_before_ms: START,
        remove_before_ms: START,
        remove_bodies_before_ms: START + 2 * APART,
    };
    let swept = calls.sweep_calls(&chat.owner, sweep).await.unwrap();
    assert_eq!((swept.removed_bodies, swept.removed), (1, 0), "{swept:?}");
    expect_bodies(calls, &chat.owner, &[2, 4], "swept").await;
    // A repeated call brings no body back.
    calls.record_calls(&chat.owner, all).await.unwrap();
    expect_bodies(calls, &chat.owner, &[2, 4], "repeated").await;
}

pub(in crate::behaviours) async fn bodies_go_with_what_is_redacted_or_deleted(store: Tested) {
    let one = Chat::start_as(Arc::clone(&store), "ada", "one").await;
    let two = Chat::start_as(store, "ada", "two").await;
    let Some(calls) = one.store.calls() else {
        return;
    };
    let all = with_bodies(&[one.id.clone(), two.id.clone()]);
    calls.record_calls(&one.owner, all).await.unwrap();
    expect_bodies(calls, &one.owner, &[0, 1, 3, 4], "stored").await;
    one.append_messages("main", &["a", "b"]).await;
    let redact = RedactRequest {
        nodes: vec![node("a")],
        at_ms: NOW,
        ..RedactRequest::default()
    };
    let redacted = one.store.redact_content(&one.owner, &one.id, redact).await;
    assert_eq!(redacted.unwrap().nodes, 1);
    expect_bodies(calls, &one.owner, &[1, 4], "redacted").await;
    let deleted = two.store.delete_conversation(&two.owner, &two.id);
    deleted.await.unwrap();
    expect_bodies(calls, &one.owner, &[], "deleted").await;
}
