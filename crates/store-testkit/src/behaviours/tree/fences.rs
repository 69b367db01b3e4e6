//! Claims on a branch.

use std::sync::Arc;

use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, BranchLabel, Error, Fence, OnMoved,
    RefChange, RefChanged, Store,
};

use crate::chat::{Chat, NOW, branch, item, new_branch};

type Tested = Arc<dyn Store>;

async fn claim_branch(chat: &Chat, name: &str) -> Fence {
    match chat
        .change_ref(RefChange::Claim(branch(name)))
        .await
        .unwrap()
    {
        RefChanged::Branch(branch) => branch.fence,
        other => panic!("{other:?}"),
    }
}

fn fenced_append(name: &str, word: &str, fence: Fence) -> AppendRequest {
    AppendRequest {
        fence: Some(fence),
        ..AppendRequest::new(Chat::at_tip(name), vec![item(word)], NOW)
    }
}

fn expect_stale(result: Result<Appended, Error>, stale: Fence, now: Fence) {
    match result.unwrap_err() {
        Error::StaleFence { held, current, .. } => assert_eq!((held, current), (stale, now)),
        other => panic!("{other}"),
    }
}

pub(in crate::behaviours) async fn a_stale_writer_is_refused_and_learns_it(store: Tested) {
    let chat = Chat::start(store).await;
    let first = claim_branch(&chat, "main").await;
    chat.append_request(fenced_append("main", "a", first))
        .await
        .unwrap();
    let second = claim_branch(&chat, "main").await;
    assert!(second > first);
    for word in ["late", "later"] {
        // Also after the new writer has appended: the claim alone decides, not the place.
        let late = chat
            .append_request(fenced_append("main", word, first))
            .await;
        expect_stale(late, first, second);
    }
    chat.append_request(fenced_append("main", "b", second))
        .await
        .unwrap();
    let late = chat
        .append_request(fenced_append("main", "still late", first))
        .await;
    expect_stale(late, first, second);
    chat.expect_path("main", &["a", "b"]).await;
    assert_eq!(chat.branch_record("main").await.fence, second);
}

pub(in crate::behaviours) async fn a_stale_writer_cannot_open_a_sibling(store: Tested) {
    let chat = Chat::start(store).await;
    let first = claim_branch(&chat, "main").await;
    let second = claim_branch(&chat, "main").await;
    chat.append_request(fenced_append("main", "a", second))
        .await
        .unwrap();
    let late = AppendRequest {
        at: Chat::at_head("main", None),
        // Otherwise an outdated writer could continue on a sibling.
        on_moved: OnMoved::Sibling,
        ..fenced_append("main", "late", first)
    };
    expect_stale(chat.append_request(late).await, first, second);
    assert_eq!(chat.branch_names().await, ["main"]);
}

pub(in crate::behaviours) async fn a_claim_is_of_one_branch(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    chat.rewind("main", "a", Activation::Keep).await;
    let main = claim_branch(&chat, "main").await;
    // Claimed twice, so that its number differs from that of `main`.
    let (_, other) = (
        claim_branch(&chat, "main-v2").await,
        claim_branch(&chat, "main-v2").await,
    );
    chat.append_request(fenced_append("main", "b", main))
        .await
        .unwrap();
    chat.append_request(fenced_append("main-v2", "c", other))
        .await
        .unwrap();
    expect_stale(
        chat.append_request(fenced_append("main", "d", other)).await,
        other,
        main,
    );
}

pub(in crate::behaviours) async fn writers_without_a_claim_may_write(store: Tested) {
    let chat = Chat::start(store).await;
    // A fence only concerns writers that name one; others may still append.
    let fence = claim_branch(&chat, "main").await;
    chat.append_messages("main", &["a"]).await;
    chat.append_request(fenced_append("main", "b", fence))
        .await
        .unwrap();
    chat.expect_path("main", &["a", "b"]).await;
}

pub(in crate::behaviours) async fn a_repetition_is_no_new_write(store: Tested) {
    let chat = Chat::start(store).await;
    let first = claim_branch(&chat, "main").await;
    chat.append_request(fenced_append("main", "a", first))
        .await
        .unwrap();
    claim_branch(&chat, "main").await;
    // It was stored while the claim was current, so a replay is the right answer.
    let again = chat
        .append_request(fenced_append("main", "a", first))
        .await
        .unwrap();
    assert!(again.replayed);
}

pub(in crate::behaviours) async fn a_new_branch_has_no_writer(store: Tested) {
    let chat = Chat::start(store).await;
    let fence = claim_branch(&chat, "main").await;
    let label = BranchLabel::After(branch("main"));
    let request = AppendRequest {
        at: AppendPoint::New(new_branch(None, label, Activation::Keep)),
        ..fenced_append("main", "a", fence)
    };
    // Nobody can have claimed a branch that does not exist, so a fence there is a mistake.
    let error = chat.append_request(request).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "fence", .. }));
    assert_eq!(chat.branch_names().await, ["main"]);
}
