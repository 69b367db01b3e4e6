//! Paths, nodes, counters, and queries that combine several reads.

use std::sync::Arc;

use contexture_ir::{Audience, Compaction, Item, MessageId, NodeId, Role};
use contexture_store::{
    Activation, BranchLabel, EntityKind, Error, NewItem, NodeKind, NodeQuery, PathEnd, PathPage,
    PathPages, ReadRequest, RefChange, Span, Store, diff_branches, find_divergence, load_graph,
    read_all_pages,
};

use crate::chat::{Chat, NOW, branch, branch_end, item, message_item, new_branch, node, raw_item};

type Tested = Arc<dyn Store>;

pub(in crate::behaviours) async fn parts_and_pages(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["1", "2", "3"]).await;
    // The path crosses a fork: its first part belongs to `main`, its second to the new branch.
    chat.rewind("main", "2", Activation::Keep).await;
    chat.append_messages("main-v2", &["4", "5", "6"]).await;
    let words = ["1", "2", "4", "5", "6"];
    for (span, limit, from, to, next) in [
        (Span::Whole, None, 1, 5, None),
        (Span::Last(2), None, 4, 5, None),
        (Span::Last(4), None, 2, 5, None),
        (Span::Last(0), None, 1, 0, None),
        (Span::Last(u64::MAX), None, 1, 5, None),
        (Span::From(3), None, 3, 5, None),
        (Span::From(6), None, 1, 0, None),
        (Span::From(u64::MAX), Some(1), 1, 0, None),
        (Span::Between(2, 3), None, 2, 3, None),
        (Span::Between(3, 2), None, 1, 0, None),
        (Span::Whole, Some(2), 1, 2, Some(3)),
        (Span::From(3), Some(2), 3, 4, Some(5)),
        (Span::From(5), Some(2), 5, 5, None),
        (Span::Whole, Some(0), 1, 0, Some(1)),
    ] {
        let request = ReadRequest {
            at: branch_end("main-v2"),
            span,
            limit,
        };
        let page = chat.read_path(request.clone()).await.unwrap();
        let got: Vec<NodeId> = page.nodes.iter().map(|node| node.id).collect();
        let wanted: Vec<NodeId> = words[from - 1..to].iter().map(|word| node(word)).collect();
        assert_eq!((got, page.next), (wanted, next), "{request:?}");
        assert_eq!((page.head, page.depth), (Some(node("6")), 5));
        if let Some(first) = page.nodes.first().filter(|first| first.depth > 1) {
            // The parent is named even where it is not on the page, also across the fork.
            let before = words[usize::try_from(first.depth).unwrap() - 2];
            assert_eq!(first.parent, Some(node(before)), "{request:?}");
        }
    }
}

/// A page holds so many bytes of JSON and no more, and a node that is larger stands alone.
pub(in crate::behaviours) async fn pages_end_by_their_bytes(store: Tested) {
    let chat = Chat::start(store).await;
    let all = chat.store.limits().page_bytes;
    let third = all / 3;
    append_of_size(
        &chat,
        "main",
        &[("1", third), ("2", third), ("3", third), ("4", 0)],
    )
    .await;
    chat.rewind("main", "3", Activation::Keep).await;
    append_of_size(
        &chat,
        "main-v2",
        &[("5", all + 1), ("6", all), ("7", 0), ("8", 0)],
    )
    .await;
    for (span, limit, pages) in [
        (Span::Whole, None, &["1 2 3", "5", "6", "7 8"][..]),
        (Span::Last(5), None, &["3", "5", "6", "7 8"]),
        (Span::From(2), Some(4), &["2 3", "5", "6"]),
        (Span::From(4), None, &["5", "6", "7 8"]),
        (Span::Between(2, 5), None, &["2 3", "5", "6"]),
        (Span::Between(4, 4), None, &["5"]),
        (Span::Whole, Some(2), &["1 2"]),
        (Span::SinceCompaction, Some(3), &["1 2 3"]),
    ] {
        let at = branch_end("main-v2");
        expect_pages(&chat, ReadRequest { at, span, limit }, pages).await;
    }
}

/// Appends messages whose JSON has so many bytes, or as few as it needs.
async fn append_of_size(chat: &Chat, name: &str, sizes: &[(&str, usize)]) {
    for (word, size) in sizes {
        let json = item(word).json;
        // Blanks in front of the brace: the item means the same.
        let json = format!("{}{json}", " ".repeat(size.saturating_sub(json.len())));
        let added = chat.append_to_tip(name, vec![raw_item(word, &json)]);
        added.await.unwrap();
    }
}

/// Checks that a request has these pages, each the words of its nodes.
async fn expect_pages(chat: &Chat, request: ReadRequest, pages: &[&str]) {
    let mut reading = PathPages::new(&*chat.store, &chat.owner, &chat.id, request.clone());
    let mut got = Vec::new();
    while let Some(page) = reading.next().await.unwrap() {
        assert_eq!((page.head, page.depth), (Some(node("8")), 7));
        got.push(page);
    }
    let words = pages.iter().map(|page| page.split(' ').map(node));
    let wanted: Vec<Vec<NodeId>> = words.map(Iterator::collect).collect();
    let ids = |page: &PathPage| page.nodes.iter().map(|node| node.id).collect::<Vec<_>>();
    let read: Vec<_> = got.iter().map(ids).collect();
    assert_eq!(read, wanted, "{request:?}");
    for (page, later) in got.iter().zip(got.iter().skip(1)) {
        let (last, first) = (page.nodes.last().unwrap(), &later.nodes[0]);
        assert_eq!(page.next, Some(first.depth), "{request:?}");
        assert_eq!(first.parent, Some(last.id), "{request:?}");
    }
    let whole = read_all_pages(&*chat.store, &chat.owner, &chat.id, request).await;
    let (whole, last) = (whole.unwrap(), got.last().unwrap());
    assert_eq!((ids(&whole), whole.next), (wanted.concat(), last.next));
}

pub(in crate::behaviours) async fn a_path_is_constant(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let before = chat.path_nodes(PathEnd::Node(node("b"))).await;
    chat.append_messages("main", &["c"]).await;
    chat.rewind("main", "a", Activation::Activate).await;
    chat.append_messages("main-v2", &["d"]).await;
    assert_eq!(chat.path_nodes(PathEnd::Node(node("b"))).await, before);
}

pub(in crate::behaviours) async fn single_nodes(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c"]).await;
    let path = chat.path_nodes(branch_end("main")).await;
    for wanted in &path {
        let query = NodeQuery::Id(wanted.id);
        let got = chat
            .store
            .find_nodes(&chat.owner, &chat.id, query)
            .await
            .unwrap();
        assert_eq!(got, [Arc::clone(wanted)]);
    }
}

pub(in crate::behaviours) async fn nodes_by_prefix(store: Tested) {
    let chat = Chat::start(store).await;
    let id = |hex: &str| format!("{hex:0<32}").parse::<NodeId>().unwrap();
    let items = ["abcd1", "abcd2", "abce", "ffffffff"].map(|hex| NewItem {
        id: id(hex),
        ..item(hex)
    });
    chat.append_to_tip("main", items.to_vec()).await.unwrap();
    let find = async |prefix: &str| {
        let query = NodeQuery::Prefix(prefix.to_owned());
        let found = chat.store.find_nodes(&chat.owner, &chat.id, query).await?;
        Ok::<_, Error>(found[0].id)
    };
    assert_eq!(find("abce").await.unwrap(), id("abce"));
    // People copy ids from anywhere: upper case is the same id.
    assert_eq!(find("ABCD2").await.unwrap(), id("abcd2"));
    assert_eq!(find("ffff").await.unwrap(), id("ffffffff"));
    assert_eq!(find(&id("abce").to_string()).await.unwrap(), id("abce"));
    match find("abcd").await.unwrap_err() {
        // The candidates are named, so that the caller can ask for one of them.
        Error::Ambiguous { candidates, .. } => {
            let wanted = ["abcd1", "abcd2"].map(|hex| id(hex).to_string());
            assert_eq!(candidates, wanted);
        }
        other => panic!("{other}"),
    }
    assert!(matches!(
        find("abc0").await.unwrap_err(),
        Error::NotFound { .. }
    ));
    // Too short, not hexadecimal, a pattern of SQL, too long, a quote: refused before a database
    // sees them.
    for bad in ["", "abc", "nothex", "%%%%", &"a".repeat(33), "ab'cd"] {
        let error = find(bad).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{bad}: {error}");
    }
}

fn message_part(message: &str, role: Role, word: &str) -> NewItem {
    NewItem {
        message_id: Some(MessageId::new(message).unwrap()),
        ..message_item(role, word)
    }
}

pub(in crate::behaviours) async fn nodes_by_message(store: Tested) {
    let chat = Chat::start(store).await;
    let answer = |word| message_part("answer \u{202e}'", Role::Assistant, word);
    chat.append_messages("main", &["question"]).await;
    chat.append_to_tip("main", vec![answer("1"), answer("2")])
        .await
        .unwrap();
    // The same message id on two branches: a query by message finds the nodes of both.
    chat.rewind("main", "question", Activation::Keep).await;
    chat.append_to_tip("main-v2", vec![answer("other")])
        .await
        .unwrap();
    let find = async |message: &str| {
        let query = NodeQuery::Message(MessageId::new(message).unwrap());
        let found = chat.store.find_nodes(&chat.owner, &chat.id, query).await?;
        Ok::<_, Error>(
            found
                .iter()
                .map(|node| (node.depth, node.id))
                .collect::<Vec<_>>(),
        )
    };
    let mut wanted = vec![(2, node("1")), (2, node("other")), (3, node("2"))];
    wanted.sort();
    assert_eq!(find("answer \u{202e}'").await.unwrap(), wanted);
    // A node that names no message is its own; one that names one is not.
    let own = node("question").to_string();
    assert_eq!(find(&own).await.unwrap(), [(1, node("question"))]);
    for unknown in ["never", &node("1").to_string(), &node("never").to_string()] {
        let error = find(unknown).await.unwrap_err();
        assert!(matches!(
            error,
            Error::NotFound {
                what: EntityKind::Message,
                ..
            }
        ));
    }
}

/// Appends the items one by one, and again all at once in another conversation, and checks the
/// counters after each.
async fn expect_counters(store: Tested, items: &[(NewItem, u64, u64)]) {
    let single = Chat::start_as(Arc::clone(&store), "ada", "single").await;
    // Counters must not depend on how many appends brought the items.
    let batch = Chat::start_as(store, "ada", "batch").await;
    for (item, messages, turns) in items {
        let done = single
            .append_to_tip("main", vec![item.clone()])
            .await
            .unwrap();
        assert_eq!(
            (done.messages, done.turns),
            (*messages, *turns),
            "{}",
            item.json
        );
    }
    let all = items.iter().map(|(item, ..)| item.clone()).collect();
    batch.append_to_tip("main", all).await.unwrap();
    for chat in [single, batch] {
        let path = chat.path_nodes(branch_end("main")).await;
        let got: Vec<_> = path
            .iter()
            .map(|node| (node.messages, node.turns))
            .collect();
        let wanted: Vec<_> = items.iter().map(|(_, m, t)| (*m, *t)).collect();
        assert_eq!(got, wanted);
        let shown = chat.branch_record("main").await;
        assert_eq!((shown.messages, shown.turns), *wanted.last().unwrap());
    }
}

pub(in crate::behaviours) async fn counters_count_messages_and_turns(store: Tested) {
    let items = [
        (message_part("u1", Role::User, "hello"), 1, 1),
        (message_part("a1", Role::Assistant, "thinking"), 2, 1),
        (message_part("a1", Role::Assistant, "answer"), 2, 1),
        (message_part("u2", Role::User, "more"), 3, 2),
        (message_part("u2", Role::User, "and more"), 3, 2),
        (item("by itself"), 4, 3),
        (item("again by itself"), 5, 4),
        // It belongs to an earlier message.
        (message_part("a1", Role::Assistant, "correction"), 5, 4),
    ];
    expect_counters(store, &items).await;
}

pub(in crate::behaviours) async fn counters_skip_hidden_nodes(store: Tested) {
    let hidden = |item| NewItem {
        audience: Audience::NONE,
        kind: NodeKind::Extension,
        ..item
    };
    let items = [
        (hidden(item("state")), 0, 0),
        (item("hello"), 1, 1),
        (hidden(message_part("a1", Role::User, "prepared")), 1, 1),
        (message_part("a1", Role::User, "shown"), 2, 2),
        (hidden(item("state again")), 2, 2),
    ];
    expect_counters(store, &items).await;
}

pub(in crate::behaviours) async fn compactions_are_remembered(store: Tested) {
    let chat = Chat::start(store).await;
    let compaction = NewItem {
        kind: NodeKind::Compaction,
        ..item("summary")
    };
    chat.append_messages("main", &["a", "b"]).await;
    assert_eq!(chat.branch_record("main").await.compacted, 0);
    chat.append_to_tip("main", vec![compaction, item("c")])
        .await
        .unwrap();
    chat.append_messages("main", &["d"]).await;
    assert_eq!(chat.branch_record("main").await.compacted, 3);
    for (base, name, compacted) in [
        ("b", "main-v2", 0),
        ("summary", "main-v3", 3),
        ("d", "main-v4", 3),
    ] {
        assert_eq!(chat.rewind("main", base, Activation::Keep).await, name);
        assert_eq!(chat.branch_record(name).await.compacted, compacted);
    }
}

pub(in crate::behaviours) async fn paths_part_where_they_forked(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c", "d", "e"])
        .await;
    chat.rewind("main", "c", Activation::Keep).await;
    chat.append_messages("main-v2", &["x"]).await;
    let new = crate::chat::new_branch(
        None,
        // A branch without a base: it shares nothing with the others, not even a first node.
        contexture_store::BranchLabel::Named(crate::chat::branch("apart")),
        Activation::Keep,
    );
    chat.change_ref(contexture_store::RefChange::CreateBranch(new))
        .await
        .unwrap();
    let part = async |left: PathEnd, right: PathEnd| {
        let found = find_divergence(&*chat.store, &chat.owner, &chat.id, left, right)
            .await
            .unwrap();
        (found.ancestor, found.shared, found.left, found.right)
    };
    let end = branch_end;
    let c = Some(node("c"));
    assert_eq!(part(end("main"), end("main-v2")).await, (c, 3, 2, 1));
    assert_eq!(part(end("main-v2"), end("main")).await, (c, 3, 1, 2));
    let at_c = PathEnd::Node(node("c"));
    assert_eq!(part(end("main"), at_c).await, (c, 3, 2, 0));
    let e = Some(node("e"));
    assert_eq!(part(end("main"), end("main")).await, (e, 5, 0, 0));
    assert_eq!(part(end("main"), end("apart")).await, (None, 0, 5, 0));
    chat.append_messages("apart", &["z"]).await;
    assert_eq!(part(end("main"), end("apart")).await, (None, 0, 5, 1));
}

pub(in crate::behaviours) async fn the_graph_has_each_node_once(store: Tested) {
    let chat = Chat::start(store).await;
    // More than one page, so that pages must join without a gap or a duplicate.
    let words: Vec<String> = (0..600).map(|n| n.to_string()).collect();
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    chat.append_messages("main", &all).await;
    chat.rewind("main", "300", Activation::Keep).await;
    chat.append_messages("main-v2", &["x", "y"]).await;
    let graph = load_graph(&*chat.store, &chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(graph.nodes.len(), 602);
    assert_eq!(graph.refs.branches.len(), 2);
    let mut seen = std::collections::BTreeSet::new();
    for node in &graph.nodes {
        // Parents come first: whoever builds a tree from the list needs no second pass.
        assert!(node.parent.is_none_or(|parent| seen.contains(&parent)));
        assert!(seen.insert(node.id));
    }
}

pub(in crate::behaviours) async fn since_the_newest_compaction(store: Tested) {
    let chat = Chat::start(store).await;
    let since = async |at: PathEnd, limit| {
        let request = ReadRequest {
            at,
            span: Span::SinceCompaction,
            limit,
        };
        let page = chat.read_path(request).await.unwrap();
        let depths: Vec<u64> = page.nodes.iter().map(|node| node.depth).collect();
        (depths, page.next)
    };
    assert_eq!(since(branch_end("main"), None).await, (vec![], None));
    chat.append_messages("main", &["a", "b"]).await;
    assert_eq!(since(branch_end("main"), None).await, (vec![1, 2], None));
    let compaction = Item::Compaction(Compaction::default());
    let compaction = NewItem::new(node("sum"), &compaction, compaction.to_json(), NOW);
    chat.append_to_tip("main", vec![compaction, item("c"), item("d")])
        .await
        .unwrap();
    assert_eq!(since(branch_end("main"), None).await, (vec![3, 4, 5], None));
    assert_eq!(
        since(branch_end("main"), Some(2)).await,
        (vec![3, 4], Some(5))
    );
    assert_eq!(
        since(PathEnd::Node(node("sum")), None).await,
        (vec![3], None)
    );
    // A path that leaves before the compaction does not contain it.
    assert_eq!(
        since(PathEnd::Node(node("b")), None).await,
        (vec![1, 2], None)
    );
}

pub(in crate::behaviours) async fn nodes_by_source_and_kind(store: Tested) {
    let chat = Chat::start(store).await;
    let copy = |word: &str, source: &str| NewItem {
        copied_from: Some(node(source)),
        ..item(word)
    };
    chat.append_messages("main", &["a", "b"]).await;
    let side = chat.rewind("main", "a", Activation::Keep).await;
    chat.append_to_tip(&side, vec![item("x"), copy("c2", "b")])
        .await
        .unwrap();
    chat.append_to_tip(
        "main",
        vec![copy("c1", "b"), message_item(Role::Assistant, "r")],
    )
    .await
    .unwrap();
    // Without its branch the copy is on no named path, and still has to be found: a redaction
    // follows copies.
    chat.change_ref(RefChange::DeleteBranch(branch(&side)))
        .await
        .unwrap();
    let found = async |query| -> Vec<_> {
        let nodes = chat.store.find_nodes(&chat.owner, &chat.id, query).await;
        nodes
            .unwrap()
            .iter()
            .map(|node| (node.depth, node.id))
            .collect()
    };
    let mut copies = vec![(3, node("c1")), (3, node("c2"))];
    copies.sort_unstable();
    assert_eq!(found(NodeQuery::CopiesOf(node("b"))).await, copies);
    assert_eq!(found(NodeQuery::CopiesOf(node("a"))).await, []);
    let replies = found(NodeQuery::Kind(NodeKind::Assistant)).await;
    assert_eq!(replies, [(4, node("r"))]);
    assert_eq!(found(NodeQuery::Kind(NodeKind::Compaction)).await, []);
    let never = NodeQuery::CopiesOf(node("never"));
    let never = chat.store.find_nodes(&chat.owner, &chat.id, never).await;
    assert_eq!(never.unwrap_err().kind(), "not_found");
}

pub(in crate::behaviours) async fn two_paths_are_compared(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c", "d"]).await;
    let side = chat.rewind("main", "b", Activation::Keep).await;
    chat.append_messages(&side, &["x", "y", "z"]).await;
    let compare = async |left: PathEnd, right: PathEnd, limit| {
        let found = diff_branches(&*chat.store, &chat.owner, &chat.id, left, right, limit).await;
        let found = found.unwrap();
        let ids = |page: &contexture_store::PathPage| -> Vec<_> {
            page.nodes.iter().map(|node| node.id).collect()
        };
        let sides = (ids(&found.left), ids(&found.right));
        (found.divergence.ancestor, sides, found.right.next)
    };
    let words = |words: &[&str]| -> Vec<_> { words.iter().map(|word| node(word)).collect() };
    let (ancestor, sides, next) = compare(branch_end("main"), branch_end(&side), 10).await;
    assert_eq!(ancestor, Some(node("b")));
    assert_eq!(sides, (words(&["c", "d"]), words(&["x", "y", "z"])));
    assert_eq!(next, None);
    let (_, sides, next) = compare(branch_end("main"), branch_end(&side), 2).await;
    assert_eq!(sides, (words(&["c", "d"]), words(&["x", "y"])));
    // The cursor is a depth on the whole path: two shared nodes and two shown ones come before it.
    assert_eq!(next, Some(5));
    let (ancestor, sides, _) = compare(PathEnd::Node(node("b")), branch_end("main"), 10).await;
    assert_eq!(ancestor, Some(node("b")));
    assert_eq!(sides, (vec![], words(&["c", "d"])));
    let label = BranchLabel::Named(branch("empty"));
    let new = new_branch(None, label, Activation::Keep);
    chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    let (ancestor, sides, _) = compare(branch_end("empty"), branch_end("main"), 10).await;
    assert_eq!(ancestor, None);
    assert_eq!(sides, (vec![], words(&["a", "b", "c", "d"])));
}
