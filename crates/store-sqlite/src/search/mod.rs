//! Full-text search: where to search, and which nodes the index proposes to the ranking.
//!
//! A contentless FTS5 table holds the terms of every node under a rowid derived from its key
//! (`fts_rowid`). `contexture_store::rules` defines what a query means and examines every proposal.
//! So the index may propose too many nodes, never too few, and stores no positions.
//!
//! Not here: keeping the index up to date (`index`).

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use contexture_ir::{ConversationId, Owner};
use contexture_store::rules::{
    ConditionExtent, IndexCondition, NodePlace, Ranking, STEM_MARK, SearchCandidate,
};
use contexture_store::{Limits, Node, SearchPage, SearchRequest};
use rusqlite::{Connection, params};

use crate::error::{RowError, corrupt_error};
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_columns::NodeColumns;
use crate::rows::node_row;
use crate::rows::path::{PathWalker, Stretch, Tip, key_range, load_stretches, packed_key};

mod fts_rowid;
pub(crate) mod index;

use index::decode_undamaged;

/// Largest number of conversations that are searched range by range. For an owner with more, the
/// whole index is searched, at a cost that depends on the texts of all owners.
const FEW_CONVERSATIONS: u32 = 256;

/// Rowids in a range that match an expression.
pub(crate) const IN_RANGE: &str =
    "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC";

/// Rowids of an owner, of one resource or of all, that match an expression. The join computes the
/// conversation's number from the rowid as `fts_rowid` does.
pub(crate) const OF_OWNER: &str = "SELECT search.rowid, c.id FROM search JOIN conversations c \
     ON c.no = iif(search.rowid < 1 << 41, search.rowid >> 10, (search.rowid - (1 << 41)) >> 32) \
     WHERE search MATCH ?1 AND c.owner = ?2 AND (?3 IS NULL OR c.resource = ?3) \
     ORDER BY search.rowid DESC";

/// Nodes in a range of keys, for queries that no index narrows.
const NODES_IN_RANGE: &str =
    "SELECT id FROM nodes WHERE id BETWEEN ? AND ? AND redacted_ms IS NULL ORDER BY id DESC";

/// An owner's conversations, of one resource or of all, in the order of their index.
pub(crate) const CONVERSATIONS_OF_OWNER: &str = "SELECT no, id FROM conversations \
     WHERE owner = ?1 AND (?2 IS NULL OR resource = ?2) ORDER BY updated_ms DESC, id";

/// Conversations or path to search in, determined before anything is read.
pub(crate) enum SearchArea {
    /// A few conversations; for a single one, possibly only a path of it.
    Few {
        /// Ids of the conversations, by number.
        conversations: BTreeMap<u32, ConversationId>,
        /// Ranges of their numbers, the newest first.
        ranges: Vec<ConversationRange>,
        path: Option<Vec<Stretch>>,
    },
    /// All conversations of the owner, of one resource or of all.
    Many {
        owner: Owner,
        resource: Option<String>,
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
        Self::Few {
            conversations: [(conv.no, conv.id.clone())].into(),
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
                "SELECT no, id, next_seq FROM conversations WHERE owner = ?1 \
                 AND (?2 IS NULL OR resource = ?2) LIMIT ?3",
            )?
            .query_map(
                params![owner.as_str(), resource, FEW_CONVERSATIONS + 1],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?
            .collect::<Result<Vec<(u32, String, u32)>, _>>()?;
        // One extra row shows that there are too many.
        if few.len() > FEW_CONVERSATIONS as usize {
            return Ok(Self::Many {
                owner: owner.clone(),
                resource: resource.map(str::to_owned),
            });
        }
        // Newest first, which is the order in which the ranking takes candidates until its limit.
        few.sort_unstable_by_key(|(no, _, _)| std::cmp::Reverse(*no));
        let ranges = ConversationRange::join(few.iter().map(|(no, _, next_seq)| (*no, *next_seq)));
        let ids = few.into_iter();
        let ids = ids.map(|(no, id, _)| Ok((no, parse_conversation_id(id)?)));
        Ok(Self::Few {
            conversations: ids.collect::<Result<_, RowError>>()?,
            ranges,
            path: None,
        })
    }

    /// Visits the conversations and keys of the nodes of a proposal, until `visit`
    /// breaks.
    fn for_each_match(
        &self,
        conn: &Connection,
        proposal: &IndexProposal,
        mut visit: impl FnMut(&ConversationId, i64) -> Result<ControlFlow<()>, RowError>,
    ) -> Result<(), RowError> {
        let expression = match proposal {
            IndexProposal::Nothing => return Ok(()),
            IndexProposal::AllNodes => return self.for_each_node(conn, visit),
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
                for_each_match_in_ranges(conn, expression, ranges, &mut visit)
            }
            Self::Many { owner, resource } => {
                let mut statement = conn.prepare_cached(OF_OWNER)?;
                let mut rows = statement.query(params![expression, owner.as_str(), resource])?;
                while let Some(row) = rows.next()? {
                    let id = parse_conversation_id(row.get(1)?)?;
                    if visit(&id, fts_rowid::key_of(row.get(0)?))?.is_break() {
                        return Ok(());
                    }
                }
                Ok(())
            }
        }
    }

    /// Visits all nodes that are not redacted, until `visit` breaks: those of the newest
    /// conversation first, and of each the last stored first.
    fn for_each_node(
        &self,
        conn: &Connection,
        mut visit: impl FnMut(&ConversationId, i64) -> Result<ControlFlow<()>, RowError>,
    ) -> Result<(), RowError> {
        match self {
            Self::Few {
                conversations,
                ranges,
                path,
            } => {
                let mut visit =
                    |node| visit_in_area(conversations, path.as_deref(), node, &mut visit);
                for range in ranges {
                    let (first, last) = (*range.numbers.start(), *range.numbers.end());
                    let keys = packed_key(first, 0)..=packed_key(last, u32::MAX);
                    if for_each_key(conn, keys, &mut visit)?.is_break() {
                        return Ok(());
                    }
                }
            }
            Self::Many { owner, resource } => {
                let mut statement = conn.prepare_cached(CONVERSATIONS_OF_OWNER)?;
                let mut rows = statement.query(params![owner.as_str(), resource])?;
                while let Some(row) = rows.next()? {
                    let (no, id) = (row.get(0)?, parse_conversation_id(row.get(1)?)?);
                    let (first, last) = key_range(no);
                    let mut visit = |node| visit(&id, node);
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
    conversations: &BTreeMap<u32, ConversationId>,
    path: Option<&[Stretch]>,
    node: i64,
    visit: &mut impl FnMut(&ConversationId, i64) -> Result<ControlFlow<()>, RowError>,
) -> Result<ControlFlow<()>, RowError> {
    let no = u32::try_from(node >> 32).ok();
    match no.and_then(|no| conversations.get(&no)) {
        Some(id) if path.is_none_or(|path| contains_row(path, node)) => visit(id, node),
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

/// Visits the keys of nodes that the index proposes in ranges of conversations.
fn for_each_match_in_ranges(
    conn: &Connection,
    expression: &str,
    ranges: &[ConversationRange],
    visit: &mut impl FnMut(i64) -> Result<ControlFlow<()>, RowError>,
) -> Result<(), RowError> {
    // Conversation numbers identify the owner, so no join is needed.
    let mut statement = conn.prepare_cached(IN_RANGE)?;
    let parts =
        |range: &ConversationRange| fts_rowid::of_conversations(&range.numbers, range.longest);
    for part in ranges.iter().flat_map(parts) {
        let mut rows = statement.query(params![expression, part.start(), part.end()])?;
        while let Some(row) = rows.next()? {
            if visit(fts_rowid::key_of(row.get(0)?))?.is_break() {
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
    // Rare terms weigh more, so the frequencies are counted first, up to a limit above which the
    // exact number does not matter.
    let mut ranking = Ranking::new(request, &limits.search);
    let counts = ranking.terms_to_count().into_iter();
    let counts = counts.map(|one| {
        let proposal = IndexProposal::from_alternatives(&[one]);
        count_matches(conn, area, &proposal, ranking.count_limit())
    });
    let counts = counts.collect::<Result<Vec<_>, _>>()?;
    ranking.set_counts(&counts);
    let proposal = IndexProposal::from_alternatives(&ranking.index_alternatives());
    let mut walker = PathWalker::default();
    // Neighbours are of conversations that have candidates.
    let mut found: BTreeMap<u32, ConversationId> = BTreeMap::new();
    area.for_each_match(conn, &proposal, |conversation, node| {
        if let Ok(no) = u32::try_from(node >> 32) {
            found.entry(no).or_insert_with(|| conversation.clone());
        }
        offer_node(conn, &mut ranking, &mut walker, conversation, node)
    })?;
    for key in ranking.neighbours_to_read() {
        let no = u32::try_from(key >> 32).ok();
        if let Some(conversation) = no.and_then(|no| found.get(&no))
            && let Some(node) = read_undamaged(conn, key)?
        {
            ranking.add_neighbour(conversation, key, &node);
        }
    }
    Ok(ranking.into_page())
}

/// Counts the nodes of a proposal, up to `limit`.
fn count_matches(
    conn: &Connection,
    area: &SearchArea,
    proposal: &IndexProposal,
    limit: usize,
) -> Result<usize, RowError> {
    let mut count = 0;
    area.for_each_match(conn, proposal, |_, _| {
        count += 1;
        Ok(match count < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(count)
}

/// Returns whether a node's key is in one of a path's stretches, which are sorted.
fn contains_row(path: &[Stretch], id: i64) -> bool {
    let seq = u32::try_from(id & i64::from(u32::MAX)).unwrap_or(u32::MAX);
    let after = path.partition_point(|stretch| stretch.seq <= seq);
    let stretch = after.checked_sub(1).and_then(|at| path.get(at));
    stretch.is_some_and(|stretch| seq - stretch.seq <= stretch.to - stretch.from)
}

fn offer_node(
    conn: &Connection,
    ranking: &mut Ranking<i64>,
    walker: &mut PathWalker,
    conversation: &ConversationId,
    key: i64,
) -> Result<ControlFlow<()>, RowError> {
    let mut statement = conn.prepare_cached(&node_row::at_sql())?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else {
        return Ok(ControlFlow::Continue(()));
    };
    let node = decode_undamaged(row)?;
    let node =
        node.filter(|node| ranking.matches_filters(node.kind, node.audience, node.created_ms));
    let Some(node) = node else {
        return Ok(ControlFlow::Continue(()));
    };
    let mut before = [None, None];
    if ranking.uses_neighbours()
        && let Some((columns, _)) = NodeColumns::from_row(row)?
    {
        let no = u32::try_from(key >> 32).unwrap_or(u32::MAX);
        for (distance, before) in (1..).zip(&mut before) {
            *before = match walker.find_key_before(conn, no, columns.position(), distance) {
                // A damaged segment costs the neighbours and not the search.
                Err(RowError::Store(_)) => None,
                found => found?,
            };
        }
    }
    let candidate = SearchCandidate::from_node(conversation, &node);
    Ok(ranking.examine_candidate(&candidate, NodePlace { key, before }))
}

fn read_undamaged(conn: &Connection, key: i64) -> Result<Option<Node>, RowError> {
    let mut statement = conn.prepare_cached(&node_row::at_sql())?;
    let mut rows = statement.query([key])?;
    Ok(rows.next()?.map(decode_undamaged).transpose()?.flatten())
}

fn parse_conversation_id(id: String) -> Result<ConversationId, RowError> {
    ConversationId::new(id).map_err(|error| corrupt_error(error.to_string()))
}

/// Which nodes may match a query, as far as the index can tell.
enum IndexProposal {
    Nothing,
    /// All nodes that are not redacted.
    AllNodes,
    /// Nodes that match an FTS5 expression.
    Matches(String),
}

impl IndexProposal {
    /// Returns the nodes that satisfy all conditions of at least one of these lists.
    fn from_alternatives(alternatives: &[Vec<IndexCondition<'_>>]) -> Self {
        if alternatives.is_empty() {
            Self::Nothing
        } else if alternatives.iter().any(Vec::is_empty) {
            Self::AllNodes
        } else {
            Self::Matches(match_expression(alternatives))
        }
    }
}

/// Builds the FTS5 expression of the alternatives. Terms contain no quotes, so none can end the
/// string.
fn match_expression(alternatives: &[Vec<IndexCondition<'_>>]) -> String {
    let conditions = |alternative: &Vec<IndexCondition<'_>>| {
        let conditions = alternative.iter().map(|condition| {
            let term = condition.term;
            match condition.extent {
                ConditionExtent::Whole => format!("\"{term}\""),
                ConditionExtent::Prefix => format!("\"{term}\"*"),
                ConditionExtent::Stem => format!("(\"{term}\" OR \"{STEM_MARK}{term}\")"),
            }
        });
        format!("({})", conditions.collect::<Vec<_>>().join(" AND "))
    };
    // In parentheses, because of the precedence of AND and OR.
    let alternatives: Vec<String> = alternatives.iter().map(conditions).collect();
    alternatives.join(" OR ")
}
