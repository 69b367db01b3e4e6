//! What an index can check of a list of conversations: the grams of titles, and single metadata fields.
//!
//! A title is indexed by its grams: three characters from each of its places, folded as
//! [`title_contains`](super::title_contains) folds it. A title that contains a text has all grams of the text, so the
//! index proposes all titles that are wanted and some that are not; the rules judge each proposal.
//!
//! Not here: the judgement ([`filter`](super::filter)), and the choice among several conditions, which needs counts that
//! only a backend has ([`MAX_PROPOSED`] says up to where to count).

use std::collections::BTreeSet;

use contexture_ir::Owner;

use crate::contract::{Comparison, ListConversations, MetadataFilter, MetadataValue};

/// Largest number of conversations that an index may propose for a list. Of more, it is quicker to go through the owner's
/// conversations by time until the page is full.
pub const MAX_PROPOSED: usize = 1000;

/// Number of characters of a gram.
const GRAM: usize = 3;

/// Largest number of grams that are looked up for one text, and of conditions of one list.
const MAX_GRAMS: usize = 32;
const MAX_CONDITIONS: usize = 8;

/// Ends a title, so that each of its characters begins a gram.
const END: char = '\u{E0FE}';
/// Begins the term of an owner.
const OWNER: char = '\u{E0FF}';

/// A term to look up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TitleTerm {
    /// The term, or the beginning of it.
    pub term: String,
    /// Whether any term that begins with `term` will do.
    pub prefix: bool,
}

/// A condition that every conversation of a list satisfies and that an index can check.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexedCondition<'a> {
    /// The title has all these terms.
    Title(Vec<TitleTerm>),
    /// At least one of these holds. Each is [`MetadataFilter::Has`] or [`MetadataFilter::Compare`].
    AnyField(Vec<&'a MetadataFilter>),
}

/// Returns the terms of an owner's title, separated by spaces.
///
/// Each is one word for an index that splits words at ASCII punctuation, has no quote and no backslash, and is in lower
/// case.
#[must_use]
pub fn title_terms(owner: &Owner, title: &str) -> String {
    let mut chars: Vec<char> = fold_title(title).collect();
    chars.extend([END; GRAM - 1]);
    let mut terms: BTreeSet<String> = chars.windows(GRAM).map(String::from_iter).collect();
    terms.insert(owner_term(owner));
    Vec::from_iter(terms).join(" ")
}

/// Returns what an index can check of a list; all of it is necessary, none of it sufficient.
#[must_use]
pub fn indexed_conditions<'a>(
    owner: &Owner,
    list: &'a ListConversations,
) -> Vec<IndexedCondition<'a>> {
    let title = list.title.as_deref().filter(|text| !text.is_empty());
    let title = title.map(|text| IndexedCondition::Title(wanted_terms(owner, text)));
    let mut all = Vec::from_iter(title);
    if let Some(filter) = &list.metadata {
        collect_fields(filter, &mut all);
    }
    all.truncate(MAX_CONDITIONS);
    all
}

fn collect_fields<'a>(filter: &'a MetadataFilter, all: &mut Vec<IndexedCondition<'a>>) {
    match filter {
        MetadataFilter::All(filters) => {
            for filter in filters {
                collect_fields(filter, all);
            }
        }
        MetadataFilter::Any(filters) if !filters.is_empty() && filters.iter().all(is_indexed) => {
            all.push(IndexedCondition::AnyField(filters.iter().collect()));
        }
        filter if is_indexed(filter) => all.push(IndexedCondition::AnyField(vec![filter])),
        _ => {}
    }
}

fn is_indexed(filter: &MetadataFilter) -> bool {
    match filter {
        MetadataFilter::Has(_) => true,
        // Null has one value only, and is less than nothing.
        MetadataFilter::Compare { by, value, .. } => {
            !matches!(value, MetadataValue::Null)
                || !matches!(by, Comparison::Less | Comparison::Greater)
        }
        _ => false,
    }
}

/// Returns the terms that each of an owner's titles with `text` in it has.
fn wanted_terms(owner: &Owner, text: &str) -> Vec<TitleTerm> {
    let chars: Vec<char> = fold_title(text).collect();
    let grams: BTreeSet<TitleTerm> = if chars.len() < GRAM {
        let term = String::from_iter(chars);
        [TitleTerm { term, prefix: true }].into()
    } else {
        let grams = chars.windows(GRAM).map(String::from_iter);
        let grams = grams.map(|term| TitleTerm {
            term,
            prefix: false,
        });
        grams.take(MAX_GRAMS).collect()
    };
    let owner = TitleTerm {
        term: owner_term(owner),
        prefix: false,
    };
    grams.into_iter().chain([owner]).collect()
}

/// Folds a title, and replaces what an index would take for the end of a word. Two characters that become one only make
/// the index propose more.
fn fold_title(title: &str) -> impl Iterator<Item = char> {
    let folded: Vec<char> = title.to_lowercase().chars().collect();
    folded.into_iter().map(|c| match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() && !byte.is_ascii_alphanumeric() => {
            char::from_u32(0xE000 + u32::from(byte)).unwrap_or(END)
        }
        _ => c,
    })
}

/// Returns the term of all titles of an owner: one owner's titles are found at the same cost however many others have.
fn owner_term(owner: &Owner) -> String {
    let hash = blake3::derive_key("contexture 2026 title owner", owner.as_str().as_bytes());
    let hash: [u8; 8] = std::array::from_fn(|at| hash.get(at).copied().unwrap_or(0));
    format!("{OWNER}{:016x}", u64::from_be_bytes(hash))
}

#[cfg(test)]
mod tests {
    use super::super::title_contains;
    use super::*;
    use crate::contract::MetadataKey;

    const TITLES: [&str; 12] = [
        "Plans for Zürich",
        "100% _done_",
        "'; DROP TABLE \"conversations\"; --",
        "ΣΊΣΥΦΟΣ",
        "İstanbul",
        "a",
        "",
        "\0b\0",
        "東京都大学",
        "👍🏽 ok",
        "\u{E0FE}\u{E025}",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];

    fn is_proposed(terms: &str, wanted: &[TitleTerm]) -> bool {
        let has = |wanted: &TitleTerm| {
            let mut terms = terms.split(' ');
            terms.any(|term| match wanted.prefix {
                true => term.starts_with(&wanted.term),
                false => term == wanted.term,
            })
        };
        wanted.iter().all(has)
    }

    /// Every part of every title proposes all titles that contain it.
    #[test]
    fn an_index_proposes_every_title_that_is_wanted() {
        let owner = Owner::new("ada").unwrap();
        let mut checked = 0;
        for from in TITLES {
            let starts: Vec<usize> = from.char_indices().map(|(at, _)| at).collect();
            let ends = starts.iter().copied().chain([from.len()]);
            for (start, end) in starts
                .iter()
                .flat_map(|start| ends.clone().map(move |end| (*start, end)))
                .filter(|(start, end)| start < end)
            {
                let part = &from[start..end];
                for text in [part.to_owned(), part.to_uppercase()] {
                    let wanted = wanted_terms(&owner, &text);
                    for title in TITLES {
                        let terms = title_terms(&owner, title);
                        let proposed = is_proposed(&terms, &wanted);
                        assert!(
                            proposed || !title_contains(Some(title), &text),
                            "{text:?} {title:?}"
                        );
                        checked += usize::from(proposed);
                    }
                }
            }
        }
        assert!(checked > 1000, "{checked}");
    }

    #[test]
    fn terms_are_words_of_one_owner() {
        let (ada, bob) = (Owner::new("ada").unwrap(), Owner::new("bob").unwrap());
        for title in TITLES {
            let terms = title_terms(&ada, title);
            let is_word = |c: char| c == ' ' || !c.is_ascii() || c.is_ascii_alphanumeric();
            assert!(terms.chars().all(is_word), "{terms:?}");
            if !title.is_empty() {
                assert!(is_proposed(&terms, &wanted_terms(&ada, title)));
                assert!(!is_proposed(&terms, &wanted_terms(&bob, title)));
            }
        }
    }

    #[test]
    fn only_necessary_conditions_are_asked_for() {
        let owner = Owner::local();
        let has = |key: &str| MetadataFilter::Has(MetadataKey::new(key).unwrap());
        let not = MetadataFilter::Not(Box::new(has("n")));
        let any = |filters: &[MetadataFilter]| MetadataFilter::Any(filters.to_vec());
        let check = |filter: MetadataFilter, expected: &[usize]| {
            let list = ListConversations {
                metadata: Some(filter),
                ..ListConversations::default()
            };
            let found = indexed_conditions(&owner, &list).into_iter();
            let found = found.map(|one| match one {
                IndexedCondition::AnyField(fields) => fields.len(),
                IndexedCondition::Title(_) => 0,
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{list:?}");
        };
        check(has("a"), &[1]);
        check(not.clone(), &[]);
        check(any(&[has("a"), has("b")]), &[2]);
        check(any(&[has("a"), not.clone()]), &[]);
        check(any(&[]), &[]);
        check(
            MetadataFilter::All(vec![has("a"), not, any(&[has("b"), has("c")])]),
            &[1, 2],
        );
        let text = ListConversations {
            title: Some("t".to_owned()),
            ..ListConversations::default()
        };
        assert_eq!(indexed_conditions(&owner, &text).len(), 1);
        assert!(indexed_conditions(&owner, &ListConversations::default()).is_empty());
    }
}
