//! Full-text search, which a store may lack: then these behaviours pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_ir::{Audience, FunctionCall, FunctionCallOutput, Item, MessageId, Output, Role};
use contexture_store::rules::{self, Query};
use contexture_store::{
    Activation, AppendRequest, EntityKind, Error, HiddenContent, Hit, MatchMode, NewConversation,
    NewItem, NodeKind, PathEnd, RedactRequest, RefChange, Search, SearchCoverage, SearchCursor,
    SearchPage, SearchRequest, SearchScope, Store,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::chat::{Chat, NOW, branch, branch_end, item, message_item, node};
use crate::faulty::test_seed;

mod ranking;
mod statements;

pub(super) use ranking::{
    a_named_day_adds_weight, any_word_matches_when_requested,
    rare_words_find_and_frequent_ones_rank,
};
pub(super) use statements::{
    look_alikes_replace_nothing, most_updates_come_first, newer_statements_replace_older_ones,
    statements_of_others_replace_nothing,
};

type Tested = Arc<dyn Store>;

static CORPUS: &str = include_str!("../../../data/search/corpus.txt");
static QUERIES: &str = include_str!("../../../data/search/queries.txt");

/// Names and texts.
fn corpus_texts() -> Vec<(&'static str, &'static str)> {
    let lines = CORPUS.lines();
    lines.map(|line| line.split_once('\t').unwrap()).collect()
}

/// Returns a message whose id is derived from its name.
fn named_item(name: &str, text: &str) -> NewItem {
    NewItem {
        // The id from the name, not from the text: several names may have the same text.
        id: node(name),
        ..message_item(Role::User, text)
    }
}

/// Creates a conversation with the whole corpus; `None` if the store has no search.
async fn corpus_chat(store: Tested) -> Option<Chat> {
    store.search()?;
    let chat = Chat::start(store).await;
    let items = corpus_texts()
        .into_iter()
        .map(|(name, text)| named_item(name, text));
    chat.append_to_tip("main", items.collect()).await.unwrap();
    Some(chat)
}

async fn find_with(chat: &Chat, request: SearchRequest) -> Result<SearchPage, Error> {
    let search: &dyn Search = chat.store.search().unwrap();
    search.search_nodes(&chat.owner, request).await
}

/// Finds everything in the conversation, as one page.
fn search_all(chat: &Chat, query: &str) -> SearchRequest {
    SearchRequest {
        words: MatchMode::All,
        limit: 1000,
        ..SearchRequest::new(query, SearchScope::Conversation(chat.id.clone()))
    }
}

/// Returns every scope that covers all of a conversation with one branch.
fn scopes_of_main(chat: &Chat) -> [SearchScope; 3] {
    [
        SearchScope::Owner,
        SearchScope::Conversation(chat.id.clone()),
        SearchScope::Path {
            conversation: chat.id.clone(),
            at: branch_end("main"),
        },
    ]
}

async fn find_hits(chat: &Chat, query: &str) -> Vec<Hit> {
    let page = find_with(chat, search_all(chat, query)).await.unwrap();
    assert_eq!((page.next, page.coverage), (None, SearchCoverage::Whole));
    page.hits
}

/// Returns the names of the [`item`]s that are found, as a set.
async fn found_names<'a>(
    chat: &Chat,
    request: SearchRequest,
    words: &[&'a str],
) -> BTreeSet<&'a str> {
    let hits = find_with(chat, request).await.unwrap().hits;
    let found: BTreeSet<&str> = words
        .iter()
        .filter(|word| hits.iter().any(|hit| hit.node == node(word)))
        .copied()
        .collect();
    assert_eq!(found.len(), hits.len(), "{hits:?}");
    found
}

pub(super) async fn every_store_finds_the_same(store: Tested) {
    let Some(chat) = corpus_chat(store).await else {
        return;
    };
    let corpus = corpus_texts();
    let mut count = 0;
    for line in QUERIES.lines() {
        let (query, expected) = line.split_once('\t').unwrap();
        let hits = find_hits(&chat, query).await;
        let is_hit = |(name, _): &&(&str, &str)| hits.iter().any(|hit| hit.node == node(name));
        let found: Vec<&str> = corpus
            .iter()
            .filter(is_hit)
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(found.join(" "), expected, "{query}");
        assert_eq!(found.len(), hits.len(), "{query}");
        count += 1;
    }
    assert!(count >= 200, "{count} queries");
}

/// Returns random texts of what queries, indexes and databases might take for syntax, of parts of
/// the corpus, and of any characters.
fn random_queries(count: usize) -> Vec<String> {
    let syntax = [
        "\"", "'", "*", "(", ")", "AND", "OR", "NOT", "NEAR(", "-", "+", "++", "#", ":", "^", "~",
        "\\", "%", "_", "{", "}", "[", "]", "--", ";", "/*", "&", "|", "!", "<->", "@@", "\0", " ",
        "\t", "\u{a0}", "\u{200b}", "\u{202e}", "$1", "?", "rowid", "terms:", "search", "@any",
        "@", "'@any'", ":*", ":A", "\u{ffff}", "\u{feff}",
    ];
    let texts: Vec<&str> = corpus_texts()
        .iter()
        .flat_map(|(_, t)| t.split(' '))
        .collect();
    let piece = prop_oneof![
        3 => proptest::sample::select(syntax.to_vec()).prop_map(str::to_owned),
        3 => proptest::sample::select(texts).prop_map(str::to_owned),
        2 => "\\PC{1,4}",
        1 => any::<String>(),
    ];
    let text = proptest::collection::vec((piece, any::<bool>()), 0..6);
    let mut runner = seeded_runner();
    let mut queries = Vec::with_capacity(count);
    for _ in 0..count {
        let mut query = String::new();
        for (piece, spaced) in text.new_tree(&mut runner).unwrap().current() {
            query.push_str(&piece);
            if spaced {
                query.push(' ');
            }
        }
        queries.push(query);
    }
    queries
}

/// Any text is a query, and an index finds the same texts with the same scores as a full scan.
pub(super) async fn any_text_is_a_query(store: Tested) {
    let Some(chat) = corpus_chat(store).await else {
        return;
    };
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    // The generator has a fixed seed, so every store and every run sees the same queries.
    let queries = random_queries(if soak { 100_000 } else { 1000 });
    // Some of the queries are stored as texts too.
    let hostile = queries.iter().take(100).enumerate();
    let hostile = hostile.map(|(n, text)| named_item(&format!("hostile {n}"), text));
    let hostile: Vec<NewItem> = hostile.collect();
    chat.append_to_tip("main", hostile.clone()).await.unwrap();
    let stored = hostile.clone();
    let texts = corpus_texts()
        .into_iter()
        .map(|(name, text)| named_item(name, text));
    let texts: Vec<_> = texts
        .chain(hostile)
        .map(|item| (item.id, rules::searchable_text(&item.json)))
        .collect();
    let mut found = 0;
    for text in &queries {
        let hits = find_hits(&chat, text).await;
        let query = Query::parse(text);
        // All texts have one time, so of equal scores the last on the path comes first.
        let mut expected: Vec<_> = texts
            .iter()
            .rev()
            .filter_map(|(node, text)| Some((rules::match_all(&query, text)?.score, *node)))
            .collect();
        expected.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let got: Vec<_> = hits.iter().map(|hit| (hit.score, hit.node)).collect();
        assert_eq!(got, expected, "{text:?}");
        found += usize::from(!hits.is_empty());
    }
    // Checks the test itself: comparing empty results would prove nothing.
    assert!(found > 100, "only {found} queries find anything");
    // In memory each search reads all texts, so a run compares a part.
    let compared = if soak { queries.len() } else { 100 };
    ranking::expect_same_as_in_memory(&chat, stored, queries.get(..compared).unwrap_or(&queries))
        .await;
}

pub(super) async fn snippets_are_plain_text_with_places(store: Tested) {
    let Some(chat) = corpus_chat(store).await else {
        return;
    };
    for (query, shown, matches) in [
        (
            "script dog",
            // Nothing is escaped or marked up; the caller highlights the ranges.
            "<script>alert(\"dog\")</script> & other <b>markup</b>",
            vec!["script", "dog", "script"],
        ),
        (
            "\"lazy dog\" sleeps",
            "A lazy dog sleeps; the brown fox does not.",
            vec!["lazy dog", "sleeps"],
        ),
        ("都 首*", "東京都は日本の首都です。", vec!["都", "首", "都"]),
        ("TIENG", "Tiếng Việt rất hay", vec!["Tiếng"]),
    ] {
        let hits = find_hits(&chat, query).await;
        let snippet = &hits[0].snippet;
        assert_eq!(snippet.text, shown);
        let places = snippet.matches.iter();
        let places: Vec<&str> = places.map(|place| &snippet.text[place.clone()]).collect();
        assert_eq!(places, matches, "{query}");
    }
    let long = format!("{} Needle {}", "hay ".repeat(5000), "straw ".repeat(5000));
    chat.append_to_tip("main", vec![named_item("long", &long)])
        .await
        .unwrap();
    let hits = find_hits(&chat, "needle").await;
    let snippet = &hits[0].snippet;
    assert!(snippet.text.len() < 300, "{}", snippet.text);
    assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'));
    assert_eq!(&snippet.text[snippet.matches[0].clone()], "Needle");
}

/// A call, its output, an item of another kind, one that is no JSON, and a message.
fn spoken_items() -> Vec<NewItem> {
    let call = FunctionCall::new("call-one", "read_file", r#"{"path":"a\nzebra.txt"}"#);
    let call = Item::FunctionCall(call);
    let output = Output::Text(r#"{"text":"caf\u00e9"}"#.to_owned());
    let output = Item::FunctionCallOutput(FunctionCallOutput::new("call-one", output));
    let other = r#"{"type":"x:note","id":"n1","text":"note"}"#;
    let other = Item::parse(other).unwrap();
    let mut items = Vec::new();
    for (name, made) in [("call", &call), ("output", &output), ("other", &other)] {
        items.push(NewItem::new(node(name), made, made.to_json(), NOW));
    }
    items.push(crate::chat::raw_item("broken", "{\"type\":\"message\""));
    items.push(NewItem {
        message_id: Some(MessageId::new("m1").unwrap()),
        ..item("spoken \u{fffd}")
    });
    items
}

pub(super) async fn what_was_said_is_found(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    chat.append_to_tip("main", spoken_items()).await.unwrap();
    for (query, expected) in [
        ("read_file", vec!["call"]),
        ("zebra", vec!["call"]),
        // The escape `\n` in the JSON is a line break and no letter: it must not join the words.
        ("nzebra", vec![]),
        ("cafe", vec!["output"]),
        // Ids, kinds and field names are not searched.
        ("call-one", vec![]),
        ("note", vec![]),
        ("message", vec![]),
        ("text", vec!["output"]),
        ("spoken", vec!["spoken \u{fffd}"]),
    ] {
        let hits = find_hits(&chat, query).await;
        let found: Vec<_> = hits.iter().map(|hit| hit.node).collect();
        let expected: Vec<_> = expected.into_iter().map(node).collect();
        assert_eq!(found, expected, "{query}");
    }
    let hits = find_hits(&chat, "spoken").await;
    let Hit {
        conversation,
        message_id,
        kind,
        created_ms,
        ..
    } = &hits[0];
    assert_eq!(
        (conversation, *kind, *created_ms),
        (&chat.id, NodeKind::User, NOW)
    );
    assert_eq!(message_id.as_ref().unwrap().as_str(), "m1");
}

/// One of the same owner about a resource, and one of another owner under the same id, which no scope
/// may reach.
async fn start_other_chats(chat: &Chat) {
    let mut new = NewConversation::new("about".parse().unwrap(), NOW);
    new.resource = Some("thing".to_owned());
    let created = chat.store.create_conversation(&chat.owner, new);
    created.await.unwrap();
    let about = Chat {
        id: "about".parse().unwrap(),
        ..chat.clone()
    };
    about.append_messages("main", &["four x"]).await;
    let stranger = Chat::start_as(Arc::clone(&chat.store), "bob", "chat").await;
    stranger.append_messages("main", &["five x"]).await;
}

pub(super) async fn scopes_bound_where_it_looks(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["root x", "one x"]).await;
    let fork = chat.rewind("main", "root x", Activation::Keep).await;
    chat.append_messages(&fork, &["two x"]).await;
    chat.append_messages("main", &["three x"]).await;
    start_other_chats(&chat).await;
    let every = ["root x", "one x", "two x", "three x", "four x", "five x"];
    let path = |at: PathEnd| SearchScope::Path {
        conversation: chat.id.clone(),
        at,
    };
    for (scope, expected) in [
        (SearchScope::Owner, vec![0, 1, 2, 3, 4]),
        (SearchScope::Resource("thing".to_owned()), vec![4]),
        (SearchScope::Resource("other".to_owned()), vec![]),
        (SearchScope::Conversation(chat.id.clone()), vec![0, 1, 2, 3]),
        (path(branch_end("main")), vec![0, 1, 3]),
        (path(branch_end(&fork)), vec![0, 2]),
        (path(PathEnd::Node(node("one x"))), vec![0, 1]),
    ] {
        let expected: BTreeSet<&str> = expected.into_iter().map(|n: usize| every[n]).collect();
        let request = SearchRequest::new("x", scope.clone());
        assert_eq!(
            found_names(&chat, request, &every).await,
            expected,
            "{scope:?}"
        );
    }
    expect_unknown_scopes(&chat).await;
    chat.change_ref(RefChange::DeleteBranch(branch(&fork)))
        .await
        .unwrap();
    // The branch's name is deleted, its nodes are still found.
    assert_eq!(find_hits(&chat, "two").await.len(), 1);
}

async fn expect_unknown_scopes(chat: &Chat) {
    let path = |at: PathEnd| SearchScope::Path {
        conversation: chat.id.clone(),
        at,
    };
    for (scope, what) in [
        (path(branch_end("never")), EntityKind::Branch),
        (path(PathEnd::Node(node("never"))), EntityKind::Node),
        // A node of another conversation of the same owner is unknown here.
        (path(PathEnd::Node(node("four x"))), EntityKind::Node),
        (
            SearchScope::Conversation("never".parse().unwrap()),
            EntityKind::Conversation,
        ),
    ] {
        let error = find_with(chat, SearchRequest::new("x", scope)).await;
        let error = error.unwrap_err();
        let refused = matches!(&error, Error::NotFound { what: found, .. } if *found == what);
        assert!(refused, "{error}");
    }
}

/// Messages of three roles and times, the last of which is hidden from users.
fn filtered_items() -> Vec<NewItem> {
    let mut items = vec![
        item("a x"),
        message_item(Role::Assistant, "b x"),
        message_item(Role::System, "c x"),
    ];
    for (n, item) in (0..).zip(&mut items) {
        item.created_ms = NOW + n;
    }
    // Visible to models only: not found unless the request includes hidden content.
    items[2].audience = Audience {
        model: true,
        user: false,
    };
    items
}

pub(super) async fn filters_bound_what_it_finds(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    chat.append_to_tip("main", filtered_items()).await.unwrap();
    let every = ["a x", "b x", "c x"];
    let ask = |change: fn(&mut SearchRequest)| {
        let mut request = search_all(&chat, "x");
        change(&mut request);
        request
    };
    let cases: [(SearchRequest, &[&str]); 8] = [
        (ask(|_| ()), &["a x", "b x"]),
        (ask(|ask| ask.hidden = HiddenContent::Include), &every),
        (ask(|ask| ask.kinds = vec![NodeKind::Assistant]), &["b x"]),
        (ask(|ask| ask.kinds = vec![NodeKind::Instruction]), &[]),
        (
            ask(|ask| ask.kinds = vec![NodeKind::User, NodeKind::Assistant]),
            &["a x", "b x"],
        ),
        (ask(|ask| ask.since_ms = Some(NOW + 1)), &["b x"]),
        (ask(|ask| ask.before_ms = Some(NOW + 1)), &["a x"]),
        (
            ask(|ask| (ask.since_ms, ask.before_ms) = (Some(i64::MAX), Some(i64::MIN))),
            &[],
        ),
    ];
    for (request, expected) in cases {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        let shown = format!("{request:?}");
        assert_eq!(
            found_names(&chat, request, &every).await,
            expected,
            "{shown}"
        );
    }
    expect_exclusions(&chat).await;
}

/// What has an excluded word or phrase is no hit, not even as a neighbour of one.
async fn expect_exclusions(chat: &Chat) {
    let texts = ["lamp red", "lamp blue sky", "quiet", "lamp sky blue"];
    let items = texts.iter().map(|text| item(text));
    chat.append_to_tip("main", items.collect()).await.unwrap();
    for (query, without, words, expected) in [
        ("lamp", "", MatchMode::All, &[0, 1, 3][..]),
        ("lamp", "red", MatchMode::All, &[1, 3]),
        ("lamp", "\"blue sky\" red", MatchMode::All, &[3]),
        ("lamp", "bl*", MatchMode::Any, &[0]),
        // A question of three words finds what stands before a text that has them.
        ("lamp sky blue", "", MatchMode::Any, &[0, 1, 2, 3]),
        ("lamp sky blue", "quiet", MatchMode::Any, &[0, 1, 3]),
    ] {
        let request = SearchRequest {
            without: without.to_owned(),
            words,
            kinds: vec![NodeKind::User],
            ..search_all(chat, query)
        };
        let expected: BTreeSet<&str> = expected.iter().map(|n: &usize| texts[*n]).collect();
        let every = [&texts[..], &["a x"]].concat();
        let mut found = found_names(chat, request, &every).await;
        found.remove("a x");
        assert_eq!(found, expected, "{query} without {without}");
    }
}

pub(super) async fn pages_are_contiguous(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    let items = (0..50).map(|n| {
        // Few scores and few times, so that pages end between equal hits, where the cursor must
        // still be exact.
        let mut item = item(&format!("{} {n}", "x ".repeat(1 + n % 3)));
        item.created_ms = NOW + (n as i64) % 5;
        item
    });
    chat.append_to_tip("main", items.collect()).await.unwrap();
    let whole = find_hits(&chat, "x").await;
    assert_eq!(whole.len(), 50);
    let order = whole.iter().map(|hit| {
        let newest_first = std::cmp::Reverse((hit.score, hit.created_ms, hit.depth));
        (newest_first, hit.node)
    });
    assert!(order.is_sorted());
    assert_eq!(find_in_pages(&chat, "x", 7).await, whole);
    expect_forged_cursors(&chat).await;
}

/// Returns all hits, read page by page.
async fn find_in_pages(chat: &Chat, query: &str, limit: usize) -> Vec<Hit> {
    let mut request = SearchRequest {
        limit,
        ..search_all(chat, query)
    };
    let mut hits = Vec::new();
    loop {
        let page = find_with(chat, request.clone()).await.unwrap();
        assert!(page.hits.len() <= limit);
        hits.extend(page.hits);
        request.after = page.next;
        if request.after.is_none() {
            return hits;
        }
    }
}

async fn expect_forged_cursors(chat: &Chat) {
    // A cursor is a position, and need not come from the store.
    let forged = |score, created_ms| SearchCursor {
        score,
        created_ms,
        depth: 0,
        conversation: "never".parse().unwrap(),
        node: node("never"),
    };
    for (after, count) in [(forged(u32::MAX, 0), 50), (forged(0, i64::MIN), 0)] {
        let request = SearchRequest {
            after: Some(after),
            ..search_all(chat, "x")
        };
        assert_eq!(find_with(chat, request).await.unwrap().hits.len(), count);
    }
    let none = SearchRequest {
        limit: 0,
        ..search_all(chat, "x")
    };
    let none = find_with(chat, none).await.unwrap();
    assert_eq!((none.hits.len(), none.next), (0, None));
}

pub(super) async fn limits_have_names(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    let limits = chat.store.limits().search.clone();
    let long = "x ".repeat(limits.query_bytes / 2);
    assert_eq!(find_hits(&chat, &long).await, []);
    let many = |limit| SearchRequest {
        limit,
        ..search_all(&chat, "x")
    };
    for (request, name) in [
        (search_all(&chat, &format!("{long}x")), "search_query_bytes"),
        (many(limits.hits + 1), "search_hits"),
        // The largest number: the limit must not overflow.
        (many(usize::MAX), "search_hits"),
    ] {
        match find_with(&chat, request).await {
            Err(Error::Limit { limit, .. }) => assert_eq!(limit, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    // As many different words as fit: all must match.
    let words: Vec<String> = (0..limits.query_bytes / 5)
        .map(|n| format!("{n:04}"))
        .collect();
    let text = words.join(" ");
    chat.append_to_tip(
        "main",
        vec![named_item("all", &text), named_item("some", &text[5..])],
    )
    .await
    .unwrap();
    assert_eq!(find_hits(&chat, &text).await.len(), 1);
    assert_eq!(find_hits(&chat, &text[5..]).await.len(), 2);
}

/// On one path with increasing times: all backends examine nodes in the same order.
pub(super) async fn what_is_beyond_the_limits_is_the_older(store: Tested) {
    const BEYOND: usize = 9;
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    let most = chat.store.limits().search.nodes;
    let numbers: Vec<usize> = (0..most + BEYOND).collect();
    for numbers in numbers.chunks(1000) {
        let items = numbers.iter().map(|n| NewItem {
            created_ms: NOW + *n as i64,
            ..item(&format!("word {n}"))
        });
        chat.append_to_tip("main", items.collect()).await.unwrap();
    }
    for scope in scopes_of_main(&chat) {
        expect_newest(&chat, scope, NOW + BEYOND as i64).await;
    }
}

/// Checks that the newest nodes are found, from the time `oldest` on, and no older ones.
async fn expect_newest(chat: &Chat, scope: SearchScope, oldest: i64) {
    // The oldest of them come last.
    let place = SearchCursor {
        score: 0,
        created_ms: oldest + 3,
        depth: 0,
        conversation: chat.id.clone(),
        node: node("never"),
    };
    let whole = SearchRequest {
        words: MatchMode::All,
        limit: 1000,
        ..SearchRequest::new("word", scope)
    };
    let page = find_with(chat, whole.clone()).await.unwrap();
    assert_eq!(
        (page.hits.len(), page.coverage),
        (1000, SearchCoverage::Newest)
    );
    let score = page.hits[0].score;
    assert!(page.hits.iter().all(|hit| hit.score == score));
    let rest = SearchRequest {
        after: Some(SearchCursor { score, ..place }),
        ..whole.clone()
    };
    let page = find_with(chat, rest).await.unwrap();
    let times: Vec<i64> = page
        .hits
        .iter()
        .map(|hit| hit.created_ms - oldest)
        .collect();
    assert_eq!(times, [2, 1, 0], "{:?}", whole.scope);
    // Nodes that the request filters out do not count.
    let newer = SearchRequest {
        since_ms: Some(oldest),
        ..whole
    };
    let page = find_with(chat, newer).await.unwrap();
    assert_eq!(page.coverage, SearchCoverage::Whole);
}

pub(super) async fn what_is_removed_is_not_found(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(Arc::clone(&store)).await;
    let other = Chat::start_as(store, "ada", "other").await;
    for chat in [&chat, &other] {
        chat.append_messages("main", &["secret one", "secret two"])
            .await;
    }
    let owner = |query: &str| SearchRequest::new(query, SearchScope::Owner);
    let count = async |query: &str| {
        let page = find_with(&chat, owner(query)).await.unwrap();
        page.hits.len()
    };
    assert_eq!(count("secret").await, 4);
    let request = RedactRequest {
        nodes: vec![node("secret one")],
        at_ms: NOW,
        ..RedactRequest::default()
    };
    chat.store
        .redact_content(&chat.owner, &chat.id, request)
        .await
        .unwrap();
    // The text of the tombstone is not indexed either.
    assert_eq!((count("secret").await, count("redacted").await), (3, 0));
    let deleted = chat.store.delete_conversation(&chat.owner, &other.id);
    deleted.await.unwrap();
    assert_eq!(count("secret").await, 1);
    // A new conversation with the same id has nothing of the old one.
    let again = Chat::start_as(Arc::clone(&chat.store), "ada", "other").await;
    again.append_messages("main", &["public"]).await;
    assert_eq!((count("secret").await, count("public").await), (1, 1));
    // A refused append is not found, and a repeated one is found once.
    let clash = AppendRequest::new(
        Chat::at_head("main", None),
        vec![named_item("late", "secret late")],
        NOW,
    );
    chat.append_request(clash).await.unwrap_err();
    chat.append_messages("main", &["secret two"]).await;
    assert_eq!(count("secret").await, 1);
}

/// What makes random values from [`test_seed`], which prints it.
fn seeded_runner() -> TestRunner {
    let own = test_seed().to_le_bytes();
    let mut seed = [0; 32];
    for part in seed.chunks_mut(own.len()) {
        part.copy_from_slice(&own);
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    TestRunner::new_with_rng(Config::default(), rng)
}
