//! Full-text search: where to search, and which nodes the index proposes to the ranking.
//!
//! A contentless FTS5 table holds the terms of every node under a rowid derived from its key
//! (`fts_rowid`). `contexture_store::rules` defines what a query means and examines every proposal.
//! So the index may propose too many nodes, never too few, and stores no positions.
//!
//! Not here: keeping the index up to date (`index`), and its expressions (`proposals`).

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use contexture_ir::{ConversationId, Owner};
use contexture_store::rules::Ranking;
use contexture_store::{IndexProgress, Limits, SearchCoverage, SearchPage, SearchRequest};
use rusqlite::{Connection, params};

use crate::error::{RowError, corrupt_error};
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::{Stretch, Tip, key_range, load_stretches, packed_key};

mod candidates;
mod fts_rowid;
pub(crate) mod index;
mod proposals;

use candidates::CandidateReader;
use index::IndexedRange;
use proposals::{FoundNode, IndexProposal, PhraseNodes, Proposals};

/// Largest number of conversations that are searched range by range. For an owner with more, the
/// whole index is searched, at a cost that depends on the texts of all owners.
const FEW_CONVERSATIONS: u32 = 256;

/// Largest number of matches of all owners that are visited for one owner and one proposal, about a quarter of a second.
/// What is beyond is left out, and the page says so.
const VISITED_MATCHES: usize = 200_000;

/// Rowids in a range that match an expression.
pub(crate) const IN_RANGE: &str =
    "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC";

/// Rowids of all matches of an expression, each with the id and resource of its conversation if that is the owner's (and of
/// the resource, if one is asked for), else nulls. Matches of other owners are returned too: they cost as much, and are
/// counted. The join computes the conversation's number from the rowid as `fts_rowid` does.
pub(crate) const OF_OWNER: &str = "SELECT search.rowid, c.id, c.resource FROM search \
     LEFT JOIN conversations c \
     ON c.no = iif(search.rowid < 1 << 41, search.rowid >> 10, (search.rowid - (1 << 41)) >> 32) \
     AND c.owner = ?2 AND (?3 IS NULL OR c.resource = ?3) \
     WHERE search MATCH ?1 ORDER BY search.rowid DESC";

/// Nodes in a range of keys, for queries that no index narrows.
const NODES_IN_RANGE: &str =
    "SELECT id FROM nodes WHERE id BETWEEN ? AND ? AND redacted_ms IS NULL ORDER BY id DESC";

/// An owner's conversations, of one resource or of all, in the order of their index.
pub(crate) const CONVERSATIONS_OF_OWNER: &str = "SELECT no, id, resource FROM conversations \
     WHERE owner = ?1 AND (?2 IS NULL OR resource = ?2) ORDER BY updated_ms DESC, id";

/// A conversation that is searched.
#[derive(Clone, Debug)]
pub(crate) struct SearchedConversation {
    id: ConversationId,
    /// Resource, if several conversations are searched.
    resource: Option<String>,
}

impl SearchedConversation {
    fn from_columns(id: String, resource: Option<String>) -> Result<Self, RowError> {
        let id = ConversationId::new(id).map_err(|error| corrupt_error(error.to_string()))?;
        Ok(Self { id, resource })
    }
}

/// Conversations or path to search in, determined before anything is read.
pub(crate) enum SearchArea {
    /// A few conversations; for a single one, possibly only a path of it.
    Few {
        /// The conversations, by number.
        conversations: BTreeMap<u32, SearchedConversation>,
        /// Ranges of their numbers, the newest first.
        ranges: Vec<ConversationRange>,
        path: Option<Vec<Stretch>>,
    },
    /// All conversations of the owner, of one resource or of all.
    Many {
        owner: Owner,
        resource: Option<String>,
        /// Largest number of matches of all owners that are visited.
        most_visited: usize,
    },
}

/// Conversations with consecutive numbers, which one query of the index covers.
pub(crate) struct ConversationRange {
    numbers: RangeInclusive<u32>,
    /// Number of nodes of the longest conversation.
    longest: u32,
}

impl ConversationRange {
    /// Joins consecutive numbers, which come in falling order, each with the number of its
    /// conversation's next node. An owner that is alone in a database needs one query instead of
    /// hundreds.
    fn join(falling: impl Iterator<Item = (u32, u32)>) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for (no, next_seq) in falling {
            match ranges.last_mut() {
                Some(range) if no.checked_add(1) == Some(*range.numbers.start()) => {
                    range.numbers = no..=*range.numbers.end();
                    range.longest = range.longest.max(next_seq);
                }
                _ => ranges.push(Self {
                    numbers: no..=no,
                    longest: next_seq,
                }),
            }
        }
        ranges
    }
}

impl SearchArea {
    pub(crate) fn of_conversation(conv: &ConversationRow) -> Self {
        Self::single_conversation(conv, None)
    }

    pub(crate) fn of_path(
        conn: &Connection,
        conv: &ConversationRow,
        end: &Tip,
    ) -> Result<Self, RowError> {
        let mut path = load_stretches(conn, conv.no, end.position, 1, end.position.depth)?;
        path.sort_unstable_by_key(|stretch| stretch.seq);
        Ok(Self::single_conversation(conv, Some(path)))
    }

    fn single_conversation(conv: &ConversationRow, path: Option<Vec<Stretch>>) -> Self {
        let only = SearchedConversation {
            id: conv.id.clone(),
            resource: None,
        };
        Self::Few {
            conversations: [(conv.no, only)].into(),
            ranges: vec![ConversationRange {
                numbers: conv.no..=conv.no,
                longest: conv.next_seq,
            }],
            path,
        }
    }

    pub(crate) fn of_owner(
        conn: &Connection,
        owner: &Owner,
        resource: Option<&str>,
    ) -> Result<Self, RowError> {
        let mut few = conn
            .prepare_cached(
                "SELECT no, id, next_seq, resource FROM conversations WHERE owner = ?1 \
                 AND (?2 IS NULL OR resource = ?2) LIMIT ?3",
            )?
            .query_map(
                params![owner.as_str(), resource, FEW_CONVERSATIONS + 1],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )?
            .collect::<Result<Vec<(u32, String, u32, Option<String>)>, _>>()?;
        // One extra row shows that there are too many.
        if few.len() > FEW_CONVERSATIONS as usize {
            return Ok(Self::Many {
                owner: owner.clone(),
                resource: resource.map(str::to_owned),
                most_visited: VISITED_MATCHES,
            });
        }
        // Newest first, which is the order in which the ranking takes candidates until its limit.
        few.sort_unstable_by_key(|(no, ..)| std::cmp::Reverse(*no));
        let ranges =
            ConversationRange::join(few.iter().map(|(no, _, next_seq, _)| (*no, *next_seq)));
        let conversations = few.into_iter().map(|(no, id, _, resource)| {
            Ok((no, SearchedConversation::from_columns(id, resource)?))
        });
        Ok(Self::Few {
            conversations: conversations.collect::<Result<_, RowError>>()?,
            ranges,
            path: None,
        })
    }

    /// Returns how far the index is; `None` if all conversations of the area are whole in it.
    pub(crate) fn load_progress(
        &self,
        conn: &Connection,
    ) -> Result<Option<IndexProgress>, RowError> {
        let reach = IndexedRange::load(conn)?;
        if reach.is_everything() {
            return Ok(None);
        }
        let missing = reach.first_missing();
        let (indexed, conversations): (u64, u64) = match self {
            Self::Few { conversations, .. } => {
                let numbers = conversations.keys();
                let indexed = numbers.filter(|no| i64::from(**no) < missing).count();
                (indexed as u64, conversations.len() as u64)
            }
            Self::Many {
                owner, resource, ..
            } => conn
                .prepare_cached(
                    "SELECT count(iif(no < ?3, 1, NULL)), count(*) FROM conversations \
                     WHERE owner = ?1 AND (?2 IS NULL OR resource = ?2)",
                )?
                .query_row(params![owner.as_str(), resource, missing], |row| {
                    let count = |index| row.get(index).map(i64::unsigned_abs);
                    Ok((count(0)?, count(1)?))
                })?,
        };
        let progress = IndexProgress {
            indexed,
            conversations,
        };
        Ok((indexed < conversations).then_some(progress))
    }

    /// Visits the nodes of a proposal with their conversations, in the order of [`FoundNode`], until
    /// `visit` breaks. Returns [`SearchCoverage::Newest`] if older matches were left out because too many of other owners came
    /// first.
    fn for_each_match(
        &self,
        conn: &Connection,
        proposal: &IndexProposal,
        mut visit: impl FnMut(&SearchedConversation, FoundNode) -> Result<ControlFlow<()>, RowError>,
    ) -> Result<SearchCoverage, RowError> {
        let expression = match proposal {
            IndexProposal::Nothing => return Ok(SearchCoverage::Whole),
            IndexProposal::AllNodes => {
                self.for_each_node(conn, visit)?;
                return Ok(SearchCoverage::Whole);
            }
            IndexProposal::Matches(expression) => expression,
        };
        match self {
            Self::Few {
                conversations,
                ranges,
                path,
            } => {
                let mut visit =
                    |node| visit_in_area(conversations, path.as_deref(), node, &mut visit);
                for_each_match_in_ranges(conn, expression, ranges, &mut visit)?;
                Ok(SearchCoverage::Whole)
            }
            Self::Many {
                owner,
                resource,
                most_visited,
            } => {
                let mut statement = conn.prepare_cached(OF_OWNER)?;
                let mut rows = statement.query(params![expression, owner.as_str(), resource])?;
                let mut visited = 0;
                while let Some(row) = rows.next()? {
                    visited += 1;
                    // Others' matches cost as much as one's own, so they count too.
                    if visited > *most_visited {
                        return Ok(SearchCoverage::Newest);
                    }
                    let Some(id) = row.get(1)? else {
                        continue;
                    };
                    let conversation = SearchedConversation::from_columns(id, row.get(2)?)?;
                    let node = FoundNode::new(0, row.get(0)?);
                    if visit(&conversation, node)?.is_break() {
                        break;
                    }
                }
                Ok(SearchCoverage::Whole)
            }
        }
    }

    /// Visits all nodes that are not redacted, until `visit` breaks: those of the newest
    /// conversation first, and of each the last stored first.
    fn for_each_node(
        &self,
        conn: &Connection,
        mut visit: impl FnMut(&SearchedConversation, FoundNode) -> Result<ControlFlow<()>, RowError>,
    ) -> Result<(), RowError> {
        match self {
            Self::Few {
                conversations,
                ranges,
                path,
            } => {
                let mut visit = |key| {
                    let node = FoundNode::new(0, fts_rowid::of_key(key));
                    visit_in_area(conversations, path.as_deref(), node, &mut visit)
                };
                for range in ranges {
                    let (first, last) = (*range.numbers.start(), *range.numbers.end());
                    let keys = packed_key(first, 0)..=packed_key(last, u32::MAX);
                    if for_each_key(conn, keys, &mut visit)?.is_break() {
                        return Ok(());
                    }
                }
            }
            Self::Many {
                owner, resource, ..
            } => {
                let mut statement = conn.prepare_cached(CONVERSATIONS_OF_OWNER)?;
                let mut rows = statement.query(params![owner.as_str(), resource])?;
                while let Some(row) = rows.next()? {
                    let conversation =
                        SearchedConversation::from_columns(row.get(1)?, row.get(2)?)?;
                    let (first, last) = key_range(row.get(0)?);
                    let mut visit =
                        |key| visit(&conversation, FoundNode::new(0, fts_rowid::of_key(key)));
                    if for_each_key(conn, first..=last, &mut visit)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Visits a node if it is of these conversations, and on the path if there is one.
fn visit_in_area(
    conversations: &BTreeMap<u32, SearchedConversation>,
    path: Option<&[Stretch]>,
    node: FoundNode,
    visit: &mut impl FnMut(&SearchedConversation, FoundNode) -> Result<ControlFlow<()>, RowError>,
) -> Result<ControlFlow<()>, RowError> {
    let key = node.key();
    match conversations.get(&conversation_number(key)) {
        Some(conversation) if path.is_none_or(|path| contains_row(path, key)) => {
            visit(conversation, node)
        }
        _ => Ok(ControlFlow::Continue(())),
    }
}

/// Visits the keys of the nodes with these keys that are not redacted, the highest first.
fn for_each_key(
    conn: &Connection,
    keys: RangeInclusive<i64>,
    visit: &mut impl FnMut(i64) -> Result<ControlFlow<()>, RowError>,
) -> Result<ControlFlow<()>, RowError> {
    let mut statement = conn.prepare_cached(NODES_IN_RANGE)?;
    let mut rows = statement.query([keys.start(), keys.end()])?;
    while let Some(row) = rows.next()? {
        if visit(row.get(0)?)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the number of the conversation of a node's key.
fn conversation_number(key: i64) -> u32 {
    u32::try_from(key >> 32).unwrap_or(u32::MAX)
}

/// Visits the nodes that the index proposes in ranges of conversations.
fn for_each_match_in_ranges(
    conn: &Connection,
    expression: &str,
    ranges: &[ConversationRange],
    visit: &mut impl FnMut(FoundNode) -> Result<ControlFlow<()>, RowError>,
) -> Result<(), RowError> {
    // Conversation numbers identify the owner, so no join is needed.
    let mut statement = conn.prepare_cached(IN_RANGE)?;
    let parts =
        |range: &ConversationRange| fts_rowid::of_conversations(&range.numbers, range.longest);
    for (number, part) in ranges.iter().flat_map(parts).enumerate() {
        let mut rows = statement.query(params![expression, part.start(), part.end()])?;
        while let Some(row) = rows.next()? {
            if visit(FoundNode::new(number, row.get(0)?))?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Finds the nodes of an area that match a request, best first.
pub(crate) fn search_nodes(
    conn: &Connection,
    area: &SearchArea,
    request: SearchRequest,
    limits: &Limits,
) -> Result<SearchPage, RowError> {
    let mut ranking = Ranking::new(request, &limits.search);
    // Neighbours are of conversations that have candidates.
    let mut names: BTreeMap<u32, SearchedConversation> = BTreeMap::new();
    // Rare terms weigh more, so the frequencies are counted first, up to a limit above which the
    // exact number does not matter. The nodes are kept: most searches need no others.
    let counted = ranking.terms_to_count().into_iter();
    let counted = counted.map(|one| {
        let proposal = IndexProposal::from_alternatives(&[one]);
        newest_matches(conn, area, &proposal, ranking.count_limit(), &mut names)
    });
    let counted = counted.collect::<Result<Vec<_>, _>>()?;
    let counts: Vec<usize> = counted.iter().map(PhraseNodes::count).collect();
    ranking.set_counts(&counts);
    // A phrase that seems to have no nodes selects none, so this is said here.
    if counted.iter().any(|one| one.is_cut) {
        ranking.note_older_left_out();
    }
    let kept = match ranking.selecting_phrases() {
        Some(phrases) => Proposals::merge(&counted, &phrases),
        None => Proposals::default(),
    };
    let mut reader = CandidateReader::new(conn)?;
    for node in &kept.nodes {
        let key = node.key();
        if let Some(conversation) = names.get(&conversation_number(key))
            && reader.offer(&mut ranking, conversation, key)?.is_break()
        {
            return finish(&mut reader, ranking, &names);
        }
    }
    if !kept.is_whole {
        let proposal = IndexProposal::from_alternatives(&ranking.index_alternatives());
        let last = kept.nodes.last();
        let extent = area.for_each_match(conn, &proposal, |conversation, node| {
            if last.is_some_and(|last| node <= *last) {
                return Ok(ControlFlow::Continue(()));
            }
            let key = node.key();
            let name = names.entry(conversation_number(key));
            name.or_insert_with(|| conversation.clone());
            reader.offer(&mut ranking, conversation, key)
        })?;
        if extent == SearchCoverage::Newest {
            ranking.note_older_left_out();
        }
    }
    finish(&mut reader, ranking, &names)
}

/// Reads the neighbours that may be hits, and makes the page.
fn finish(
    reader: &mut CandidateReader<'_>,
    mut ranking: Ranking<i64>,
    names: &BTreeMap<u32, SearchedConversation>,
) -> Result<SearchPage, RowError> {
    for key in ranking.neighbours_to_read() {
        if let Some(conversation) = names.get(&conversation_number(key))
            && let Some(node) = reader.read_undamaged(key)?
        {
            ranking.add_neighbour(&conversation.id, key, &node);
        }
    }
    Ok(ranking.into_page())
}

/// Returns the nodes of a proposal that are visited first, up to `limit`.
fn newest_matches(
    conn: &Connection,
    area: &SearchArea,
    proposal: &IndexProposal,
    limit: usize,
    names: &mut BTreeMap<u32, SearchedConversation>,
) -> Result<PhraseNodes, RowError> {
    let mut found = PhraseNodes::new(proposal);
    let extent = area.for_each_match(conn, proposal, |conversation, node| {
        let name = names.entry(conversation_number(node.key()));
        name.or_insert_with(|| conversation.clone());
        found.nodes.push(node);
        Ok(match found.nodes.len() < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    found.is_cut = extent == SearchCoverage::Newest;
    found.is_whole = found.nodes.len() < limit && !found.is_cut;
    Ok(found)
}

/// Returns whether a node's key is in one of a path's stretches, which are sorted.
fn contains_row(path: &[Stretch], id: i64) -> bool {
    let seq = u32::try_from(id & i64::from(u32::MAX)).unwrap_or(u32::MAX);
    let after = path.partition_point(|stretch| stretch.seq <= seq);
    let stretch = after.checked_sub(1).and_then(|at| path.get(at));
    stretch.is_some_and(|stretch| seq - stretch.seq <= stretch.to - stretch.from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture_store::{SearchScope, Store};
    use contexture_store_testkit::Chat;

    use super::*;
    use crate::SqliteStore;

    /// The matches of other owners that are visited are bounded, and what they hid is said.
    #[tokio::test(flavor = "multi_thread")]
    async fn matches_of_others_are_visited_up_to_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("owners.db");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).unwrap());
        let ada = Chat::start_as(Arc::clone(&store), "ada", "chat").await;
        ada.append_messages("main", &["needle 1", "needle 2"]).await;
        let bob = Chat::start_as(Arc::clone(&store), "bob", "chat").await;
        let theirs: Vec<String> = (0..30).map(|n| format!("needle of bob {n}")).collect();
        let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
        bob.append_messages("main", &theirs).await;
        let conn = Connection::open(&path).unwrap();
        for (most_visited, found, coverage) in [
            (10, 0, SearchCoverage::Newest),
            (31, 1, SearchCoverage::Newest),
            (32, 2, SearchCoverage::Whole),
        ] {
            let area = SearchArea::Many {
                owner: ada.owner.clone(),
                resource: None,
                most_visited,
            };
            for query in ["needle", "\"needle\""] {
                let request = SearchRequest::new(query, SearchScope::Owner);
                let page = search_nodes(&conn, &area, request, &Limits::default()).unwrap();
                let got = (page.hits.len(), page.coverage);
                assert_eq!(got, (found, coverage), "{query} {most_visited}");
            }
        }
    }
}
