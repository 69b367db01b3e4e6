//! Searches with [`MatchMode::Any`](contexture_store::MatchMode::Any): what they find, and its
//! rank.

use contexture_ir::NodeId;
use contexture_store::rules::{self, Query};
use contexture_store::{
    Error, MatchMode, NewItem, NodeKind, SearchCoverage, SearchRequest, SearchScope,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::{Tested, corpus_chat, corpus_texts, find_with, named_item, scopes_of_main, search_all};
use crate::chat::{Chat, NOW, node};

static ANY: &str = include_str!("../../../data/search/any.txt");

fn any_of(chat: &Chat, query: &str) -> SearchRequest {
    SearchRequest {
        words: MatchMode::Any,
        ..search_all(chat, query)
    }
}

/// Computes log₂ in sixteenths, interpolated linearly between powers of two.
fn scaled_log2(count: usize) -> u32 {
    let whole = count.ilog2();
    // An independent implementation, so that the expected scores do not come from the code under
    // test.
    let part = (16 * count) >> whole;
    16 * whole + u32::try_from(part).unwrap() - 16
}

/// Computes the score of each text without a store.
fn expected_scores<'a>(texts: &'a [(NodeId, String)], words: &[&str]) -> Vec<(u32, &'a NodeId)> {
    let mut pieces: Vec<Query> = Vec::new();
    for word in words {
        let piece = Query::parse(word);
        if !piece.is_empty() && !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }
    let counts = pieces.iter().map(|piece| {
        let has = |text: &str| {
            let all = rules::index_terms(text);
            piece.index_conditions().iter().all(|wanted| {
                let mut terms = all.split(' ');
                terms.any(|term| {
                    term == wanted.term || (wanted.prefix && term.starts_with(wanted.term))
                })
            })
        };
        texts.iter().filter(|(_, text)| has(text)).count()
    });
    let counts: Vec<usize> = counts.collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let score = |text: &str| {
        let each = pieces.iter().zip(&counts).map(|(piece, count)| {
            let score = rules::match_all(piece, text).map_or(0, |found| found.score);
            // The most frequent word has the factor 1; each halving of the frequency adds 1.
            score * (16 + scaled_log2(most.max(1)) - scaled_log2((*count).max(1))) / 16
        });
        each.sum()
    };
    let all = texts.iter().map(|(node, text)| (score(text), node));
    let mut found: Vec<_> = all.filter(|(score, _)| *score > 0).collect();
    found.sort_unstable_by_key(|(score, node)| (std::cmp::Reverse(*score), *node));
    found
}

/// Any word matches, rare ones weigh more, and every store ranks alike.
pub(in crate::behaviours) async fn any_word_matches_when_requested(store: Tested) {
    let Some(chat) = corpus_chat(store).await else {
        return;
    };
    for line in ANY.lines() {
        let (query, expected) = line.split_once('\t').unwrap();
        assert_eq!(names_by_score(&chat, query).await, expected, "{query}");
    }
    expect_counted_scores(&chat).await;
    // Pagination works as with all words.
    let request = any_of(&chat, "the dog cafe");
    let whole = find_with(&chat, request.clone()).await.unwrap().hits;
    let first = SearchRequest {
        limit: 3,
        ..request.clone()
    };
    let first = find_with(&chat, first).await.unwrap();
    let rest = SearchRequest {
        after: first.next,
        ..request
    };
    let rest = find_with(&chat, rest).await.unwrap().hits;
    assert_eq!([first.hits, rest].concat(), whole);
}

/// The names of the texts that are found, best first. Those of equal score form one group, in the
/// order of the corpus: the table does not depend on ids.
async fn names_by_score(chat: &Chat, query: &str) -> String {
    let hits = find_with(chat, any_of(chat, query)).await.unwrap().hits;
    let mut groups: Vec<(u32, Vec<&str>)> = Vec::new();
    for (name, _) in corpus_texts() {
        let Some(hit) = hits.iter().find(|hit| hit.node == node(name)) else {
            continue;
        };
        match groups.iter_mut().find(|(score, _)| *score == hit.score) {
            Some((_, names)) => names.push(name),
            None => groups.push((hit.score, vec![name])),
        }
    }
    groups.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let groups: Vec<String> = groups.iter().map(|(_, names)| names.join(" ")).collect();
    groups.join(", ")
}

/// Random words of the corpus get the scores that are computed without a store.
async fn expect_counted_scores(chat: &Chat) {
    let corpus = corpus_texts();
    let texts = corpus.iter().map(|(name, text)| named_item(name, text));
    let texts = texts.map(|item| (item.id, rules::searchable_text(&item.json)));
    let texts: Vec<(NodeId, String)> = texts.collect();
    let words = corpus.iter().flat_map(|(_, text)| text.split_whitespace());
    let words: Vec<&str> = words
        // A quotation mark would join words to a phrase, which the expected scores do not consider.
        .filter(|word| !word.contains(['"', '“', '”']))
        .collect();
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let query = proptest::collection::vec(proptest::sample::select(words), 0..9);
    for _ in 0..300 {
        let words = query.new_tree(&mut runner).unwrap().current();
        let query = words.join(" ");
        let page = find_with(chat, any_of(chat, &query)).await.unwrap();
        let got: Vec<_> = page.hits.iter().map(|hit| (hit.score, &hit.node)).collect();
        assert_eq!(got, expected_scores(&texts, &words), "{query}");
        assert_eq!(page.coverage, SearchCoverage::Whole, "{query}");
    }
}

/// The number of examined nodes is limited: rare words select nodes, frequent ones only add to
/// scores.
pub(in crate::behaviours) async fn rare_words_find_and_frequent_ones_rank(store: Tested) {
    if store.search().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    // One text more than the limit: a word that all of them have cannot select all.
    let count = chat.store.limits().search.any_nodes + 1;
    let items = (0..count).map(|n| NewItem {
        // Each has a time of its own, so the order among equal scores is known.
        created_ms: NOW + n as i64,
        ..named_item(&n.to_string(), &format!("word n{n} every{}", n % 2))
    });
    let items: Vec<NewItem> = items.collect();
    for items in items.chunks(1000) {
        chat.append_to_tip("main", items.to_vec()).await.unwrap();
    }
    for scope in scopes_of_main(&chat) {
        expect_rare_words_decide(&chat, &scope, count).await;
    }
    expect_word_limit(&chat).await;
}

/// Searches among `count` texts; each query with the best hit, how many there are, and the coverage.
async fn expect_rare_words_decide(chat: &Chat, scope: &SearchScope, count: usize) {
    let both = count - count / 2 + 1;
    let odd = count - 1 - count % 2;
    for (query, first, found, coverage) in [
        ("word n7", 7, 1, SearchCoverage::Whole),
        ("n7 word every0 n8", 8, both, SearchCoverage::Whole),
        ("every1 word", odd, count / 2, SearchCoverage::Whole),
        // Only the frequent word occurs, so it must select nodes: the newest are examined, and the
        // page says so.
        ("word never", count - 1, count - 1, SearchCoverage::Newest),
        ("never", 0, 0, SearchCoverage::Whole),
    ] {
        let request = SearchRequest {
            scope: scope.clone(),
            kinds: vec![NodeKind::User],
            ..any_of(chat, query)
        };
        let page = find_with(chat, request.clone()).await.unwrap();
        let got = (page.hits.len(), page.coverage);
        assert_eq!(got, (found.min(1000), coverage), "{query}");
        if found > 0 {
            assert_eq!(page.hits[0].node, node(&first.to_string()), "{query}");
        }
        let none = SearchRequest {
            kinds: vec![NodeKind::Assistant],
            ..request
        };
        let none = find_with(chat, none).await.unwrap().hits;
        assert!(none.is_empty(), "{query}");
    }
}

async fn expect_word_limit(chat: &Chat) {
    let limit = chat.store.limits().search.any_words;
    let words = |count: usize| (0..count).map(|n| format!("w{n} ")).collect::<String>();
    let most = any_of(chat, &words(limit));
    assert!(find_with(chat, most).await.unwrap().hits.is_empty());
    match find_with(chat, any_of(chat, &words(limit + 1))).await {
        Err(Error::Limit { limit, .. }) => assert_eq!(limit, "search_any_words"),
        other => panic!("{other:?}"),
    }
}
