//! Many calls at the same time.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use contexture_store::{
    Activation, AppendPoint, AppendRequest, Error, OnMoved, ReadRequest, StateChange, StateKey,
    StatePatch, Store,
};

use crate::chat::{Chat, NOW, branch, branch_end, claim_of, item, node};

type Tested = Arc<dyn Store>;

const MANY: usize = 48;

async fn run_concurrently<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    count: usize,
    make: impl Fn(usize) -> F,
) -> Vec<T> {
    let tasks: Vec<_> = (0..count).map(|n| tokio::spawn(make(n))).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

pub(super) async fn of_many_heads_one_wins(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let results = run_concurrently(MANY, |n| {
        let chat = chat.clone();
        async move {
            let at = Chat::at_head("main", Some("a"));
            let items = vec![item(&format!("{n} 1")), item(&format!("{n} 2"))];
            chat.append_request(AppendRequest::new(at, items, NOW))
                .await
        }
    })
    .await;
    let mut winner = None;
    for (n, result) in results.into_iter().enumerate() {
        match result {
            Ok(_) => assert_eq!(winner.replace(n), None, "two winners"),
            Err(Error::HeadMoved { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let n = winner.unwrap();
    chat.expect_path("main", &["a", &format!("{n} 1"), &format!("{n} 2")])
        .await;
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!((record.nodes, record.branches), (3, 1));
}

pub(super) async fn of_many_tips_all_succeed(store: Tested) {
    let chat = Chat::start(store).await;
    let results = run_concurrently(MANY, |n| {
        let chat = chat.clone();
        async move {
            let key = StateKey::new(format!("task {n}")).unwrap();
            let items = vec![item(&format!("{n} 1")), item(&format!("{n} 2"))];
            let request = AppendRequest {
                patch: StatePatch {
                    changes: vec![StateChange::put_entry(key, 1, n.to_string().into_bytes())],
                    from: 0,
                },
                ..AppendRequest::new(Chat::at_tip("main"), items, NOW)
            };
            chat.append_request(request).await.unwrap()
        }
    })
    .await;
    let path = chat.path_nodes(branch_end("main")).await;
    assert_eq!(path.len(), 2 * MANY);
    for (n, done) in results.iter().enumerate() {
        let at = usize::try_from(done.first).unwrap() - 1;
        assert_eq!(path[at].id, node(&format!("{n} 1")));
        assert_eq!(path[at + 1].id, node(&format!("{n} 2")));
        assert_eq!(done.depth, done.first + 1);
    }
    let state = chat.state_values(branch_end("main")).await;
    assert_eq!(state.len(), MANY);
    for (key, _, value) in state {
        assert_eq!(key, format!("task {value}"));
    }
}

pub(super) async fn rewinds_all_get_names(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let names = run_concurrently(50, |_| {
        let chat = chat.clone();
        async move { chat.rewind("main", "a", Activation::Activate).await }
    })
    .await;
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), 50);
    let refs = chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
    assert_eq!(refs.branches.len(), 51);
    assert_eq!(
        refs.branches.iter().filter(|branch| branch.active).count(),
        1
    );
}

pub(super) async fn a_dropped_append_is_whole_or_nothing(store: Tested) {
    let chat = Chat::start(store).await;
    for n in 0..20 {
        let words = [format!("{n} 1"), format!("{n} 2")];
        let items: Vec<_> = words.iter().map(|word| item(word)).collect();
        {
            let append = pin!(chat.append_to_tip("main", items.clone()));
            // Started, and dropped before or after it is complete.
            let _ = append.poll(&mut Context::from_waker(Waker::noop()));
        }
        let before = chat.path_nodes(branch_end("main")).await.len();
        let again = chat.append_to_tip("main", items).await.unwrap();
        let path = chat.path_nodes(branch_end("main")).await;
        assert_eq!(again.depth, path.len() as u64);
        assert_eq!(
            path.len(),
            2 * (n + 1),
            "{n}: {before} before the repetition"
        );
    }
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.nodes, 40);
}

pub(super) async fn readers_see_prefixes(store: Tested) {
    let chat = Chat::start(store).await;
    let writer = {
        let chat = chat.clone();
        tokio::spawn(async move {
            for n in 0..60 {
                chat.append_messages("main", &[&format!("{n} 1"), &format!("{n} 2")])
                    .await;
            }
        })
    };
    let mut last = 0;
    while last < 120 {
        let page = chat
            .read_path(ReadRequest::whole_path(branch_end("main")))
            .await
            .unwrap();
        let length = page.nodes.len();
        assert!(length >= last && length % 2 == 0, "{last} then {length}");
        for (n, node) in page.nodes.iter().enumerate() {
            assert_eq!(
                node.id,
                crate::chat::node(&format!("{} {}", n / 2, n % 2 + 1))
            );
        }
        assert_eq!(page.head, page.nodes.last().map(|node| node.id));
        last = length;
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

pub(super) async fn a_late_append_to_a_deleted_conversation(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let results = run_concurrently(24, |n| {
        let chat = chat.clone();
        async move {
            if n == 8 {
                chat.store.delete_conversation(&chat.owner, &chat.id).await
            } else {
                chat.append_to_tip("main", vec![item(&n.to_string())])
                    .await
                    .map(drop)
            }
        }
    })
    .await;
    for result in results {
        assert!(
            matches!(result, Ok(()) | Err(Error::NotFound { .. })),
            "{result:?}"
        );
    }
    super::owners::everything_is_not_found(&chat).await;
}

/// Three turns begin and end in every possible order. A reply is appended at the head that its turn
/// began with, or on a sibling: whatever was acknowledged stays on some branch.
pub(super) async fn overlapping_turns_lose_nothing(store: Tested) {
    for (n, order) in event_orders().into_iter().enumerate() {
        let chat = Chat::start_as(Arc::clone(&store), "ada", &format!("{n}")).await;
        let mut begun = [const { None }; 3];
        let mut acknowledged = Vec::new();
        for turn in order {
            let done = match begun[turn].take() {
                None => {
                    let done = chat
                        .append_messages("main", &[&format!("ask {turn}")])
                        .await;
                    begun[turn] = done.head;
                    done
                }
                head => {
                    let at = AppendPoint::Head {
                        branch: branch("main"),
                        head,
                    };
                    let reply = vec![item(&format!("answer {turn}"))];
                    let mut request = AppendRequest::new(at, reply, NOW);
                    request.on_moved = OnMoved::Sibling;
                    chat.append_request(request).await.unwrap()
                }
            };
            acknowledged.extend(done.nodes);
        }
        let mut reachable = BTreeSet::new();
        for name in chat.branch_names().await {
            let path = chat.path_nodes(branch_end(&name)).await;
            reachable.extend(path.iter().map(|node| node.id));
            // A reply stands directly after the question that it answers.
            for turn in 0..3 {
                let at = path
                    .iter()
                    .find(|one| one.id == node(&format!("answer {turn}")));
                if let Some(answer) = at {
                    assert_eq!(answer.parent, Some(node(&format!("ask {turn}"))));
                }
            }
        }
        assert_eq!(reachable.len(), 6, "{order:?}");
        assert!(acknowledged.iter().all(|id| reachable.contains(id)));
    }
}

/// Returns all orders of the two events of each of three turns.
fn event_orders() -> Vec<[usize; 6]> {
    let all = (0..729_usize).map(|n| {
        let mut rest = n;
        [(); 6].map(|()| {
            let digit = rest % 3;
            rest /= 3;
            digit
        })
    });
    all.filter(|order| (0..3).all(|turn| order.iter().filter(|n| **n == turn).count() == 2))
        .collect()
}

pub(super) async fn appends_of_a_thousand_tasks(store: Tested) {
    let each = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 10,
        None => 3,
    };
    let chat = Chat::start(store).await;
    let depths = run_concurrently(1000, |task| {
        let chat = chat.clone();
        async move {
            let mut depths = Vec::new();
            for n in 0..each {
                let items = vec![item(&format!("{task} {n}"))];
                depths.push(chat.append_to_tip("main", items).await.unwrap().depth);
            }
            assert!(depths.is_sorted(), "{depths:?}");
            depths
        }
    })
    .await;
    let mut all: Vec<u64> = depths.concat();
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(1..=each * 1000));
    let path = chat.path_nodes(branch_end("main")).await;
    for (task, depths) in depths.iter().enumerate() {
        for (n, depth) in depths.iter().enumerate() {
            let at = usize::try_from(*depth).unwrap() - 1;
            assert_eq!(path[at].id, node(&format!("{task} {n}")));
        }
    }
    // In a soak reading works at and beyond ten thousand nodes, and so does deleting.
    chat.append_messages("main", &["one more"]).await;
    let length = chat.path_nodes(branch_end("main")).await.len();
    assert_eq!(length as u64, each * 1000 + 1);
    let delete = chat.store.delete_conversation(&chat.owner, &chat.id);
    delete.await.unwrap();
    super::owners::everything_is_not_found(&chat).await;
}

/// A deletion during other calls: late writers are refused, and nothing reappears.
pub(super) async fn a_deletion_among_writers_and_readers(store: Tested) {
    let chat = Chat::start(store).await;
    let words: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    chat.append_messages("main", &words).await;
    let results = run_concurrently(32, |n| {
        let chat = chat.clone();
        async move {
            if n == 16 {
                return chat.store.delete_conversation(&chat.owner, &chat.id).await;
            }
            call_once(&chat, n).await
        }
    })
    .await;
    for result in results {
        assert!(
            matches!(result, Ok(()) | Err(Error::NotFound { .. })),
            "{result:?}"
        );
    }
    super::owners::everything_is_not_found(&chat).await;
    let entries = chat
        .store
        .list_entries(&chat.owner, Default::default())
        .await;
    assert!(entries.unwrap().entries.is_empty());
    let again = Chat::start_as(Arc::clone(&chat.store), "ada", "chat").await;
    again.expect_path("main", &[]).await;
}

/// Makes one call; the number selects its kind.
async fn call_once(chat: &Chat, n: usize) -> Result<(), Error> {
    match n % 4 {
        0 => {
            let items = vec![item(&format!("new {n}"))];
            chat.append_to_tip("main", items).await.map(drop)
        }
        1 => {
            let whole = ReadRequest::whole_path(branch_end("main"));
            chat.read_path(whole).await.map(drop)
        }
        2 => {
            let claim = claim_of("main");
            chat.change_ref(claim).await.map(drop)
        }
        _ => {
            let bytes = Arc::from(n.to_string().into_bytes());
            let put = chat.store.put_blob(&chat.owner, &chat.id, bytes);
            put.await.map(drop)
        }
    }
}
