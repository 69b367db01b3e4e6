//! Hostile and absurd calls.

use std::sync::Arc;

use contexture_ir::{BranchName, ConversationId, NodeId, Owner};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BranchLabel, ConversationCursor, Error, Fence,
    ListConversations, ListEntries, NewConversation, NewItem, PathEnd, ReadRequest, RefChange,
    Span, Store, find_divergence, load_graph,
};

use crate::chat::{Chat, NOW, branch, branch_end, item, new_branch, node};
use crate::faulty::Faulty;
use crate::method::Method;

type Tested = Arc<dyn Store>;

/// Clocks jump, and times and counts are at the limits of their types.
pub(super) async fn numbers_at_their_ends(store: Tested) {
    let owner = Owner::new("ada").unwrap();
    let times = [i64::MAX, i64::MIN, 0, -1, i64::MAX];
    for (n, ms) in times.into_iter().enumerate() {
        let id = ConversationId::new(format!("c{n}")).unwrap();
        let new = NewConversation::new(id.clone(), ms);
        store.create_conversation(&owner, new).await.unwrap();
    }
    lists_at_their_ends(&*store, &owner).await;

    let chat = Chat::start(store).await;
    for ms in times {
        let items = vec![NewItem {
            created_ms: ms,
            step: Some(u32::MAX),
            ..item(&format!(
                "at {ms} {}",
                chat.path_nodes(branch_end("main")).await.len()
            ))
        }];
        let request = AppendRequest::new(Chat::at_tip("main"), items, ms);
        chat.append_request(request).await.unwrap();
    }
    let path = chat.path_nodes(branch_end("main")).await;
    assert_eq!(
        path.len(),
        times.len(),
        "order is depth, whatever the clock says"
    );
    for (node, ms) in path.iter().zip(times) {
        assert_eq!(node.created_ms, ms);
    }
    reads_at_their_ends(&chat, times.len()).await;
}

/// Lists conversations with extreme times, in pages of one, of none and of all.
async fn lists_at_their_ends(store: &dyn Store, owner: &Owner) {
    let mut after = None;
    let mut found = Vec::new();
    loop {
        let list = ListConversations {
            limit: Some(1),
            after,
            ..ListConversations::default()
        };
        let page = store.list_conversations(owner, list).await.unwrap();
        found.extend(page.conversations.into_iter().map(|one| one.updated_ms));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [i64::MAX, i64::MAX, 0, -1, i64::MIN]);
    for ms in [i64::MIN, i64::MAX] {
        let list = ListConversations {
            limit: Some(usize::MAX),
            after: Some(ConversationCursor {
                updated_ms: ms,
                id: ConversationId::new("zzz").unwrap(),
            }),
            ..ListConversations::default()
        };
        store.list_conversations(owner, list).await.unwrap();
    }
    let none = ListConversations {
        limit: Some(0),
        ..ListConversations::default()
    };
    let page = store.list_conversations(owner, none).await.unwrap();
    assert!(page.conversations.is_empty());
    let none = ListEntries {
        limit: Some(0),
        ..ListEntries::default()
    };
    store.list_entries(owner, none).await.unwrap();
}

/// Reads a path of `nodes` nodes and its events with extreme bounds, and claims with an extreme
/// fence.
async fn reads_at_their_ends(chat: &Chat, nodes: usize) {
    let most = u64::MAX;
    for span in [
        Span::Last(most),
        Span::From(most),
        Span::From(0),
        Span::Between(0, most),
        Span::Between(most, 0),
        Span::Between(most, most),
        Span::SinceCompaction,
    ] {
        for limit in [None, Some(0), Some(1), Some(usize::MAX)] {
            let at = branch_end("main");
            let page = chat
                .read_path(ReadRequest { at, span, limit })
                .await
                .unwrap();
            assert!(page.nodes.len() <= nodes, "{span:?} {limit:?}");
        }
    }
    for (after, limit) in [(most, 1), (most, usize::MAX), (0, 0), (1 << 40, 1)] {
        let events = chat
            .store
            .list_events(&chat.owner, &chat.id, after, limit)
            .await;
        assert!(events.unwrap().is_empty(), "{after} {limit}");
    }
    let mut request = AppendRequest::new(Chat::at_tip("main"), vec![item("late")], NOW);
    request.fence = Some(Fence(most));
    assert_eq!(
        chat.append_request(request).await.unwrap_err().kind(),
        "stale_fence"
    );
}

/// References to nodes of another conversation, of no conversation, and to the item itself.
pub(super) async fn references_out_of_the_conversation(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    chat.append_messages("main", &["a"]).await;
    let other = Chat::start_as(store, "ada", "other").await;
    other.append_messages("main", &["theirs"]).await;
    let seen = chat.snapshot_text().await;
    for (what, id) in [("another's", node("theirs")), ("its own", node("new"))] {
        let answers = NewItem {
            answers: Some(id),
            ..item("new")
        };
        let copied = NewItem {
            copied_from: Some(id),
            ..item("new")
        };
        for item in [answers, copied] {
            let refused = chat.append_to_tip("main", vec![item]).await.unwrap_err();
            assert_eq!(refused.kind(), "not_found", "{what}");
        }
        let head = AppendPoint::Head {
            branch: branch("main"),
            head: Some(id),
        };
        let refused = chat.append_request(AppendRequest::new(head, vec![item("new")], NOW));
        assert_eq!(refused.await.unwrap_err().kind(), "head_moved", "{what}");
        let new = contexture_store::NewBranch {
            base: Some(id),
            ..new_branch(None, BranchLabel::After(branch("main")), Activation::Keep)
        };
        let refused = chat
            .change_ref(RefChange::CreateBranch(new))
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), "not_found", "{what}");
        let name = "here".parse().unwrap();
        let set = RefChange::SetCheckpoint { name, node: id };
        assert_eq!(chat.change_ref(set).await.unwrap_err().kind(), "not_found");
        let refused = chat
            .read_path(ReadRequest::whole_path(PathEnd::Node(id)))
            .await;
        assert_eq!(refused.unwrap_err().kind(), "not_found", "{what}");
    }
    assert_eq!(chat.snapshot_text().await, seen);
}

/// Names are data: not paths, patterns or ranges, and upper and lower case differ.
pub(super) async fn names_that_look_like_something_else(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let names = [
        "..", "../main", "main/..", "Main", "MAIN-V9", "main_", "main.", "mai_", "main-v",
        "main-w", "main-v2x", "-",
    ];
    for name in names {
        let label = BranchLabel::Named(branch(name));
        let new = new_branch(Some("a"), label, Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
        chat.append_messages(name, &[&format!("on {name}")]).await;
    }
    for name in names {
        chat.expect_path(name, &["a", &format!("on {name}")]).await;
    }
    // Only `main`, `main-v` and `main-v2x` count for an automatic name.
    let automatic = chat.rewind("main", "a", Activation::Keep).await;
    assert_eq!(automatic, "main-v4");
    assert_eq!(chat.branch_names().await.len(), names.len() + 2);
}

/// Nested rewinds: each new branch starts at the end of the one before.
pub(super) async fn nested_rewinds(store: Tested) {
    const DEPTH: usize = 200;
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["0"]).await;
    let mut from = "main".to_owned();
    for n in 1..DEPTH {
        let before = (n - 1).to_string();
        from = chat.rewind(&from, &before, Activation::Activate).await;
        chat.append_messages(&from, &[&n.to_string(), &format!("aside {n}")])
            .await;
    }
    let path = chat.path_nodes(branch_end(&from)).await;
    let ids: Vec<NodeId> = path.iter().map(|node| node.id).collect();
    let mut wanted: Vec<NodeId> = (0..DEPTH).map(|n| node(&n.to_string())).collect();
    wanted.push(node(&format!("aside {}", DEPTH - 1)));
    assert_eq!(ids, wanted);
    // Queries that combine several reads must need few of them.
    let counting = Faulty::never(Arc::clone(&chat.store));
    let reads = || {
        counting
            .call_counts()
            .get(&Method::ReadPath)
            .copied()
            .unwrap_or(0)
    };
    let left = PathEnd::Node(node("aside 150"));
    let found = find_divergence(&counting, &chat.owner, &chat.id, left, branch_end(&from));
    let found = found.await.unwrap();
    assert_eq!((found.ancestor, found.shared), (Some(node("150")), 151));
    assert!(reads() <= 20, "{} reads for {DEPTH} nodes", reads());
    let before = reads();
    let tree = load_graph(&counting, &chat.owner, &chat.id).await.unwrap();
    assert_eq!(tree.nodes.len(), 2 * DEPTH - 1);
    let reads = reads() - before;
    assert!(reads <= DEPTH as u64, "{reads} reads for {DEPTH} branches");
}

/// An append of the largest allowed size, and one item more.
pub(super) async fn ten_thousand_items_at_once(store: Tested) {
    let chat = Chat::start(store).await;
    let most = chat.store.limits().append_items;
    let items =
        |count: usize| -> Vec<NewItem> { (0..count).map(|n| item(&n.to_string())).collect() };
    match chat.append_to_tip("main", items(most.max(9_999) + 1)).await {
        Err(Error::Limit { limit, .. }) => assert_eq!(limit, "append_items"),
        other => panic!("{other:?}"),
    }
    assert!(chat.path_nodes(branch_end("main")).await.is_empty());
    let done = chat.append_to_tip("main", items(most)).await.unwrap();
    assert_eq!(done.depth, most as u64);
    let page = chat
        .read_path(ReadRequest::last_nodes(branch_end("main"), 1))
        .await
        .unwrap();
    assert_eq!(page.nodes[0].id, node(&(most - 1).to_string()));
    assert!(
        chat.append_to_tip("main", items(most))
            .await
            .unwrap()
            .replayed
    );
    chat.change_ref(RefChange::Activate(BranchName::main()))
        .await
        .unwrap();
}
