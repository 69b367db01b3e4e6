//! Followers of a conversation's events: woken by signals, never by a timer.

use std::sync::Arc;

use contexture_store::{
    Activation, ConversationUpdate, EventTail, FollowOptions, RedactRequest, Store, erase_all,
};
use futures_util::FutureExt as _;

use crate::chat::{Chat, NOW, claim_of, node};

type Tested = Arc<dyn Store>;

fn open_tail(chat: &Chat, after: u64, limit: usize) -> EventTail {
    let options = FollowOptions {
        after,
        limit,
        poll: None,
    };
    let Chat { store, owner, id } = chat;
    EventTail::open(Arc::clone(store), owner, id, options)
}

/// The numbers of the next events, as many as are asked for.
async fn next_event_numbers(tail: &mut EventTail, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.push(tail.next().await.unwrap().unwrap().seq);
        assert_eq!(seen.last(), Some(&tail.last_seq()));
    }
    seen
}

pub(super) async fn followers_see_each_event_once(store: Tested) {
    let chat = Chat::start(store).await;
    let followers: Vec<_> = [1, 3, 1000]
        .map(|limit| {
            let mut tail = open_tail(&chat, 0, limit);
            tokio::spawn(async move { (next_event_numbers(&mut tail, 81).await, tail) })
        })
        .into();
    let write = async |writer: char| {
        for n in 0..40 {
            chat.append_messages("main", &[&format!("{writer}{n}")])
                .await;
        }
    };
    tokio::join!(write('a'), write('b'));
    let all: Vec<u64> = (1..=81).collect();
    for follower in followers {
        let (seen, mut tail) = follower.await.unwrap();
        assert_eq!(seen, all);
        assert!(tail.next().now_or_never().is_none());
    }
    let mut late = open_tail(&chat, 50, 7);
    assert_eq!(next_event_numbers(&mut late, 31).await, all[50..]);
}

/// A waiting follower is woken by one write; nothing else would wake it.
pub(super) async fn each_event_wakes_a_follower(store: Tested) {
    let chat = Chat::start(store).await;
    let mut tail = open_tail(&chat, 1, 10);
    let (owner, id) = (&chat.owner, &chat.id);
    let (seen, _) = tokio::join!(
        next_event_numbers(&mut tail, 1),
        chat.append_messages("main", &["a", "b"])
    );
    assert_eq!(seen, [2]);
    let rewound = chat.rewind("main", "a", Activation::Activate);
    let (seen, _) = tokio::join!(next_event_numbers(&mut tail, 2), rewound);
    assert_eq!(seen, [3, 4]);
    let claimed = chat.change_ref(claim_of("main"));
    let (seen, claimed) = tokio::join!(next_event_numbers(&mut tail, 1), claimed);
    claimed.unwrap();
    assert_eq!(seen, [5]);
    let update = ConversationUpdate::new(NOW + 1);
    let updated = chat.store.update_conversation(owner, id, update);
    let (seen, updated) = tokio::join!(next_event_numbers(&mut tail, 1), updated);
    updated.unwrap();
    assert_eq!(seen, [6]);
    let redact = RedactRequest {
        nodes: vec![node("b")],
        at_ms: NOW,
        ..RedactRequest::default()
    };
    let redacted = chat.store.redact_content(owner, id, redact);
    let (seen, redacted) = tokio::join!(next_event_numbers(&mut tail, 1), redacted);
    redacted.unwrap();
    assert_eq!(seen, [7]);
}

pub(super) async fn a_deletion_ends_what_follows(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    let mut waiting = open_tail(&chat, 1, 10);
    let deletion = chat.store.delete_conversation(&chat.owner, &chat.id);
    let (end, deleted) = tokio::join!(waiting.next(), deletion);
    deleted.unwrap();
    assert!(end.is_none());
    assert!(waiting.next().await.is_none());

    let chat = Chat::start_as(store, "ada", "erased").await;
    let mut waiting = open_tail(&chat, 1, 10);
    let scope = contexture_store::EraseScope::Owner;
    let erasure = erase_all(&*chat.store, &chat.owner, &scope);
    let (end, erased) = tokio::join!(waiting.next(), erasure);
    erased.unwrap();
    assert!(end.is_none());
}
