//! Searches with [`MatchMode::Any`](contexture_store::MatchMode::Any): what they find, and its
//! rank.

use std::sync::Arc;

use contexture_ir::NodeId;
use contexture_store::rules::{self, Purpose, is_function_word, stem_word, visit_terms};
use contexture_store::{
    MatchMode, MemoryStore, NewItem, NodeKind, SearchCoverage, SearchRequest, SearchScope,
};
use proptest::strategy::{Strategy, ValueTree};

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

/// A text as its words, without a store.
struct WordsOfText {
    node: NodeId,
    words: Vec<String>,
}

impl WordsOfText {
    fn of(node: NodeId, text: &str) -> Self {
        let mut words = Vec::new();
        visit_terms(text, Purpose::Index, |term| {
            words.push(term.text.to_owned())
        });
        Self { node, words }
    }

    /// Number of words with a stem.
    fn count_stem(&self, stem: &str) -> u64 {
        let has = |word: &&String| stem_word(word).as_deref() == Some(stem);
        self.words.iter().filter(has).count() as u64
    }
}

/// Computes the own score of each text of one path: BM25 of each stem, weighed by its rarity.
fn own_scores(texts: &[WordsOfText], stems: &[String]) -> Vec<u32> {
    let count = |stem: &String| {
        texts
            .iter()
            .filter(|text| text.count_stem(stem) > 0)
            .count()
    };
    let counts: Vec<usize> = stems.iter().map(count).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let score = |text: &WordsOfText| {
        let each = stems.iter().zip(&counts).map(|(stem, count)| {
            let times = 1000 * text.count_stem(stem);
            let score = 2200 * times / (times + 300 + 9 * text.words.len() as u64);
            // The most frequent word has the factor 2; each halving of the frequency adds 1.
            let factor = 32 + scaled_log2(most.max(1)) - scaled_log2((*count).max(1));
            u32::try_from(score).unwrap() * factor / 16
        });
        each.sum()
    };
    texts.iter().map(score).collect()
}

/// Computes what each text of one path scores, with what its neighbours lend it.
fn expected_scores(texts: &[WordsOfText], stems: &[String]) -> Vec<(u32, NodeId)> {
    let own = own_scores(texts, stems);
    let at = |place: Option<usize>| place.and_then(|place| own.get(place)).copied().unwrap_or(0);
    let larger = |place: usize, distance: usize| {
        at(place.checked_sub(distance)).max(at(place.checked_add(distance)))
    };
    // What stands before a text without any of the words is known if the text after it, or that before it, was found.
    let newcomer = |place: usize| {
        let (beside, near) = (at(Some(place + 1)), at(Some(place + 2)));
        let before = at(place.checked_sub(1).filter(|_| beside > 0));
        let first = at(place.checked_sub(2).filter(|_| before > 0));
        match beside.max(near) {
            0 => 0,
            _ => 3 * beside.max(before) + 2 * near.max(first),
        }
    };
    let total = |place: usize| match own[place] {
        // A question finds what stands before a text that has its words.
        0 if stems.len() < 3 => 0,
        0 => newcomer(place),
        own if stems.len() < 2 => 4 * own,
        own => 4 * own + 3 * larger(place, 1) + 2 * larger(place, 2),
    };
    // Texts with one score and one time: the last on the path comes first.
    let all = texts.iter().enumerate().rev();
    let all = all.map(|(place, text)| (total(place), text.node));
    let mut found: Vec<_> = all.filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found
}

/// Hostile questions are no error and find the same as in memory.
pub(super) async fn expect_same_as_in_memory(
    chat: &Chat,
    stored: Vec<NewItem>,
    queries: &[String],
) {
    let memory: Tested = Arc::new(MemoryStore::default());
    let expected = corpus_chat(memory).await.unwrap();
    expected.append_to_tip("main", stored).await.unwrap();
    for query in queries {
        let request = SearchRequest {
            limit: 30,
            ..any_of(chat, query)
        };
        let mut same = request.clone();
        same.scope = SearchScope::Conversation(expected.id.clone());
        let found = find_with(chat, request).await.unwrap();
        assert_eq!(
            found,
            find_with(&expected, same).await.unwrap(),
            "{query:?}"
        );
    }
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
    let texts = texts.map(|item| WordsOfText::of(item.id, &rules::searchable_text(&item.json)));
    let texts: Vec<WordsOfText> = texts.collect();
    let words = corpus.iter().flat_map(|(_, text)| text.split_whitespace());
    let words: Vec<&str> = words
        // Only words that are one stem: phrases, beginnings and function words have rules of their own.
        .filter(|word| stem_word(word).is_some() && !is_function_word(word))
        .collect();
    let mut runner = super::seeded_runner();
    let query = proptest::collection::vec(proptest::sample::select(words), 0..9);
    for _ in 0..300 {
        let words = query.new_tree(&mut runner).unwrap().current();
        let query = words.join(" ");
        let mut stems: Vec<String> = Vec::new();
        for word in words {
            let stem = stem_word(word).unwrap().into_owned();
            if !stems.contains(&stem) {
                stems.push(stem);
            }
        }
        let page = find_with(chat, any_of(chat, &query)).await.unwrap();
        let got: Vec<_> = page.hits.iter().map(|hit| (hit.score, hit.node)).collect();
        assert_eq!(got, expected_scores(&texts, &stems), "{query}");
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
    let odd = count - 1 - count % 2;
    for (query, first, found, coverage) in [
        ("word n7", 7, 1, SearchCoverage::Whole),
        // Four words are a question: what stands before a text with one of them is found too.
        ("n7 word every0 n8", 8, count, SearchCoverage::Whole),
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
    // Words beyond the limit are not looked for.
    for (others, expected) in [(limit - 1, 1), (limit, 0)] {
        let query = format!("{}n7", words(others));
        let found = find_with(chat, any_of(chat, &query)).await.unwrap().hits;
        let found = found.iter().filter(|hit| hit.node == node("7")).count();
        assert_eq!(found, expected, "{others} other words");
    }
}

/// A day that a question names adds weight to what was said then, and leaves nothing out.
pub(in crate::behaviours) async fn a_named_day_adds_weight(store: Tested) {
    if store.search().is_none() {
        return;
    }
    const DAY: i64 = 86_400_000;
    /// 7 May 2023, 12:00 UTC.
    const MAY: i64 = 1_683_460_800_000;
    let chat = Chat::start(store).await;
    let days = [MAY, MAY + 30 * DAY, MAY + 60 * DAY];
    let items = days.iter().map(|day| NewItem {
        created_ms: *day,
        ..named_item(&day.to_string(), "The gloves were sold.")
    });
    chat.append_to_tip("main", items.collect()).await.unwrap();
    for scope in scopes_of_main(&chat) {
        for (query, first) in [("gloves", days[2]), ("gloves on 7 May 2023", MAY)] {
            let request = SearchRequest {
                scope: scope.clone(),
                ..any_of(&chat, query)
            };
            let hits = find_with(&chat, request).await.unwrap().hits;
            assert_eq!((hits.len(), hits[0].created_ms), (3, first), "{query}");
        }
    }
}
