//! Claims on a branch.

use std::sync::Arc;

use contexture_ir::ProcessId;
use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, BranchHolder, BranchLabel, ClaimOver, Error,
    Fence, OnMoved, RefChange, RefChanged, Store,
};

use crate::chat::{Chat, NOW, branch, claim_of, item, new_branch};

type Tested = Arc<dyn Store>;

async fn claim_branch(chat: &Chat, name: &str) -> Fence {
    match chat.change_ref(claim_of(name)).await.unwrap() {
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

/// A claim of the branch `main`.
fn claim_of_main(over: ClaimOver, holder: Option<ProcessId>) -> RefChange {
    RefChange::Claim {
        branch: branch("main"),
        over,
        holder,
    }
}

async fn late_claims_change_nothing(chat: &Chat, holder: BranchHolder) {
    // Whoever expects nobody, or an older claim, learns the newer one, and changes nothing.
    let held = chat
        .change_ref(claim_of_main(ClaimOver::Nobody, Some(holder.process)))
        .await
        .unwrap_err();
    match held {
        Error::BranchHeld {
            holder: by, fence, ..
        } => assert_eq!((by, fence), (holder, Fence(1))),
        other => panic!("{other}"),
    }
    for holder in [None, Some(ProcessId::from_bytes([8; 16]))] {
        let old = claim_of_main(ClaimOver::Fence(Fence(0)), holder);
        match chat.change_ref(old).await.unwrap_err() {
            Error::StaleFence { held, current, .. } => {
                assert_eq!((held, current), (Fence(0), Fence(1)));
            }
            other => panic!("{other}"),
        }
    }
}

pub(in crate::behaviours) async fn a_claim_names_its_holder_until_it_is_released(store: Tested) {
    let chat = Chat::start(store).await;
    assert_eq!(chat.branch_record("main").await.holder, None);
    let process = ProcessId::from_bytes([7; 16]);
    let claim = claim_of_main;
    let free = claim(ClaimOver::Nobody, Some(process));
    chat.change_ref(free.clone()).await.unwrap();
    let holder = BranchHolder {
        process,
        since_ms: NOW,
    };
    assert_eq!(chat.branch_record("main").await.holder, Some(holder));
    // An append changes nothing of it, a branch from here has none of its own.
    chat.append_request(fenced_append("main", "a", Fence(1)))
        .await
        .unwrap();
    chat.rewind("main", "a", Activation::Keep).await;
    assert_eq!(chat.branch_record("main").await.holder, Some(holder));
    assert_eq!(chat.branch_record("main-v2").await.holder, None);
    late_claims_change_nothing(&chat, holder).await;
    let release = claim(ClaimOver::Fence(Fence(1)), None);
    chat.change_ref(release).await.unwrap();
    let main = chat.branch_record("main").await;
    assert_eq!((main.holder, main.fence), (None, Fence(2)));
    chat.change_ref(free).await.unwrap();
}

pub(in crate::behaviours) async fn of_claims_at_once_one_wins(store: Tested) {
    let chat = Chat::start(store).await;
    let claims = (0..8).map(|n| {
        chat.change_ref(RefChange::Claim {
            branch: branch("main"),
            over: ClaimOver::Nobody,
            holder: Some(ProcessId::from_bytes([n; 16])),
        })
    });
    let claimed = futures_util::future::join_all(claims).await;
    let won: Vec<usize> = (0..claimed.len()).filter(|n| claimed[*n].is_ok()).collect();
    let [won] = won[..] else {
        panic!("{claimed:?}");
    };
    let main = chat.branch_record("main").await;
    let process = main.holder.map(|holder| holder.process);
    let winner = ProcessId::from_bytes([u8::try_from(won).unwrap(); 16]);
    assert_eq!((process, main.fence), (Some(winner), Fence(1)));
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
