//! The index of texts, and searching it.
//!
//! A contentless FTS5 table holds the terms of every node under the node's number (`entry`); what
//! a query means is decided by `contexture_store::rules`, which judges what the index gives. So the
//! index may give too much, never too little, and holds no positions.
//!
//! The index is derived. `search_state` says how far it got: nodes up to `indexed_to` are in it.
//! Whatever removes a node removes its terms (triggers, see the migration). Removed terms stay in
//! the index's pages until those are merged, so `purge` says that this is due.
//!
//! Not here: when the steps of [`maintain_index`] run.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use contexture_ir::{ConversationId, Owner};
use contexture_store::rules::{self, IndexCondition, Ranking, SearchCandidate};
use contexture_store::{Error, Limits, Node, SearchPage, SearchRequest};
use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::columns::NodeColumns;
use crate::conv::ConversationRow;
use crate::entry;
use crate::fault::{RowError, corrupt_error};
use crate::node_row;
use crate::path::{Stretch, Tip, load_stretches, packed_key};

/// `indexed_to` of a whole index.
const EVERYTHING: i64 = i64::MAX;

/// What one step of indexing reads at most: nodes, and about so many bytes of items.
const STEP_NODES: usize = 1000;
const STEP_BYTES: usize = 8 << 20;

/// How many pages one step of merging writes, about.
const STEP_PAGES: i64 = 100;

/// An owner with so many conversations at most is searched where these are, others through the whole
/// index: what it costs then depends on everybody's texts.
const FEW_CONVERSATIONS: u32 = 256;

/// Makes ready the index of a database that was just opened: one of another version is emptied.
pub(crate) fn prepare_index(conn: &mut Connection) -> rusqlite::Result<()> {
    if is_of_this_version(conn)? {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if !is_of_this_version(&tx)? {
        reset_index(&tx)?;
    }
    tx.commit()
}

fn is_of_this_version(conn: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT terms_version = ? FROM search_state";
    conn.query_row(sql, [rules::TERMS_VERSION], |row| row.get(0))
}

/// Empties the index; what is stored is still to be indexed.
pub(crate) fn reset_index(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("INSERT INTO search (search) VALUES ('delete-all')", [])?;
    conn.execute(
        "UPDATE search_state SET terms_version = ?1, purge = 0, \
         indexed_to = iif(EXISTS (SELECT 1 FROM nodes), -1, ?2)",
        params![rules::TERMS_VERSION, EVERYTHING],
    )?;
    Ok(())
}

/// How far the index got.
pub(crate) struct IndexedRange(i64);

impl IndexedRange {
    pub(crate) fn load(conn: &Connection) -> Result<Self, RowError> {
        let reach = conn
            .prepare_cached("SELECT indexed_to FROM search_state")?
            .query_row([], |row| row.get(0))?;
        Ok(Self(reach))
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.0 == EVERYTHING
    }
}

/// Indexes a node that was just stored, unless a later step comes by it anyway.
pub(crate) fn index_node(
    conn: &Connection,
    reach: &IndexedRange,
    conversation: u32,
    seq: u32,
    terms: &str,
) -> Result<(), RowError> {
    let id = packed_key(conversation, seq);
    if id <= reach.0 && !terms.is_empty() {
        insert_terms(conn, id, terms)?;
    }
    Ok(())
}

/// Whether the index has what it should have of a node.
pub(crate) fn is_indexed(
    conn: &Connection,
    reach: &IndexedRange,
    id: i64,
    node: &Node,
) -> Result<bool, RowError> {
    if id > reach.0 || node.redacted_ms.is_some() {
        return Ok(true);
    }
    let found = conn
        .prepare_cached("SELECT 1 FROM search WHERE rowid = ?")?
        .exists([entry::of_key(id)])?;
    Ok(found || rules::index_terms(&rules::searchable_text(&node.json)).is_empty())
}

fn insert_terms(conn: &Connection, id: i64, terms: &str) -> Result<(), RowError> {
    conn.prepare_cached("INSERT INTO search (rowid, terms) VALUES (?, ?)")?
        .execute(params![entry::of_key(id), terms])?;
    Ok(())
}

/// One step of what is due; says whether more may be.
pub(crate) fn maintain_index(conn: &Connection) -> Result<bool, RowError> {
    Ok(purge_removed_terms(conn)? || index_next_nodes(conn)?)
}

/// One step of indexing what is not indexed yet; says whether something was done.
pub(crate) fn index_next_nodes(conn: &Connection) -> Result<bool, RowError> {
    let reach = IndexedRange::load(conn)?;
    if reach.is_everything() {
        return Ok(false);
    }
    let mut last = None;
    {
        let mut statement = conn.prepare_cached(&node_row::after_sql())?;
        let mut rows = statement.query([reach.0])?;
        let (mut nodes, mut bytes) = (0, 0);
        while nodes < STEP_NODES
            && bytes < STEP_BYTES
            && let Some(row) = rows.next()?
        {
            let id = row.get(0)?;
            if let Some(node) = decode_undamaged(row)?.filter(|node| node.redacted_ms.is_none()) {
                let terms = rules::index_terms(&rules::searchable_text(&node.json));
                bytes += node.json.len();
                if !terms.is_empty() {
                    insert_terms(conn, id, &terms)?;
                }
            }
            nodes += 1;
            last = Some(id);
        }
    }
    conn.prepare_cached("UPDATE search_state SET indexed_to = ?")?
        .execute([last.unwrap_or(EVERYTHING)])?;
    Ok(true)
}

/// One step of merging what was removed out of the index; says whether something was done.
pub(crate) fn purge_removed_terms(conn: &Connection) -> Result<bool, RowError> {
    let due: u32 = conn
        .prepare_cached("SELECT purge FROM search_state")?
        .query_row([], |row| row.get(0))?;
    // The first step takes all there is as one piece of work (negative), the others go on with it.
    let (pages, next) = match due {
        0 => return Ok(false),
        1 => (-STEP_PAGES, 2),
        _ => (STEP_PAGES, 2),
    };
    let before = total_changes(conn)?;
    conn.prepare_cached("INSERT INTO search (search, rank) VALUES ('merge', ?)")?
        .execute([pages])?;
    // Fewer than two changes: there was nothing to merge.
    let next = if total_changes(conn)? - before < 2 {
        0
    } else {
        next
    };
    conn.prepare_cached("UPDATE search_state SET purge = ?")?
        .execute([next])?;
    Ok(true)
}

fn total_changes(conn: &Connection) -> Result<i64, RowError> {
    Ok(conn
        .prepare_cached("SELECT total_changes()")?
        .query_row([], |row| row.get(0))?)
}

/// The numbers of a range whose nodes have all terms.
pub(crate) const IN_RANGE: &str =
    "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC";

/// The numbers of an owner whose nodes have all terms, of one resource or of all. What stands for
/// the conversation in them: see `entry`.
pub(crate) const OF_OWNER: &str = "SELECT search.rowid, c.id FROM search JOIN conversations c \
     ON c.no = iif(search.rowid < 1 << 41, search.rowid >> 10, (search.rowid - (1 << 41)) >> 32) \
     WHERE search MATCH ?1 AND c.owner = ?2 AND (?3 IS NULL OR c.resource = ?3) \
     ORDER BY search.rowid DESC";

/// Where to look, found out before anything is read.
pub(crate) enum SearchArea {
    /// In these conversations, on a path if there is only one.
    Few {
        /// By number.
        conversations: BTreeMap<u32, ConversationId>,
        /// Their numbers, the newest first.
        runs: Vec<ConversationRange>,
        path: Option<Vec<Stretch>>,
    },
    /// In all of the owner, of one resource or of all.
    Many {
        owner: Owner,
        resource: Option<String>,
    },
}

/// Conversations whose numbers follow each other: the index is asked for them at once.
pub(crate) struct ConversationRange {
    numbers: RangeInclusive<u32>,
    /// How many nodes the longest has.
    longest: u32,
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
            runs: vec![ConversationRange {
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
        if few.len() > FEW_CONVERSATIONS as usize {
            return Ok(Self::Many {
                owner: owner.clone(),
                resource: resource.map(str::to_owned),
            });
        }
        few.sort_unstable_by_key(|(no, _, _)| std::cmp::Reverse(*no));
        let mut conversations = BTreeMap::new();
        let mut runs: Vec<ConversationRange> = Vec::new();
        for (no, id, next_seq) in few {
            conversations.insert(no, conversation_id(id)?);
            match runs.last_mut() {
                Some(run) if no.checked_add(1) == Some(*run.numbers.start()) => {
                    run.numbers = no..=*run.numbers.end();
                    run.longest = run.longest.max(next_seq);
                }
                _ => runs.push(ConversationRange {
                    numbers: no..=no,
                    longest: next_seq,
                }),
            }
        }
        Ok(Self::Few {
            conversations,
            runs,
            path: None,
        })
    }

    /// Goes through what the index has that fulfils `asked`: conversations and keys.
    fn for_each_match(
        &self,
        conn: &Connection,
        asked: &str,
        mut visit: impl FnMut(&ConversationId, i64) -> Result<ControlFlow<()>, RowError>,
    ) -> Result<(), RowError> {
        match self {
            Self::Few {
                conversations,
                runs,
                path,
            } => {
                let mut statement = conn.prepare_cached(IN_RANGE)?;
                let parts =
                    |run: &ConversationRange| entry::of_conversations(&run.numbers, run.longest);
                for part in runs.iter().flat_map(parts) {
                    let mut rows = statement.query(params![asked, part.start(), part.end()])?;
                    while let Some(row) = rows.next()? {
                        let node = entry::key_of(row.get(0)?);
                        let no = u32::try_from(node >> 32).ok();
                        let conversation = no.and_then(|no| conversations.get(&no));
                        if let Some(conversation) = conversation
                            && path.as_ref().is_none_or(|path| contains_row(path, node))
                            && visit(conversation, node)?.is_break()
                        {
                            return Ok(());
                        }
                    }
                }
            }
            Self::Many { owner, resource } => {
                let mut statement = conn.prepare_cached(OF_OWNER)?;
                let mut rows = statement.query(params![asked, owner.as_str(), resource])?;
                while let Some(row) = rows.next()? {
                    let id = conversation_id(row.get(1)?)?;
                    if visit(&id, entry::key_of(row.get(0)?))?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Searches.
pub(crate) fn search_nodes(
    conn: &Connection,
    area: &SearchArea,
    request: SearchRequest,
    limits: &Limits,
) -> Result<SearchPage, RowError> {
    let mut ranking = Ranking::new(request, &limits.search);
    let counts = ranking.terms_to_count().into_iter();
    let counts = counts
        .map(|one| count_matches(conn, area, &match_expression(&[one]), ranking.count_limit()));
    let counts = counts.collect::<Result<Vec<_>, _>>()?;
    ranking.set_counts(&counts);
    let asked = match_expression(&ranking.index_alternatives());
    if !asked.is_empty() {
        area.for_each_match(conn, &asked, |conversation, node| {
            offer_node(conn, &mut ranking, conversation, node)
        })?;
    }
    Ok(ranking.into_page())
}

/// How much the index has that fulfils `asked`; at most so much.
fn count_matches(
    conn: &Connection,
    area: &SearchArea,
    asked: &str,
    most: usize,
) -> Result<usize, RowError> {
    let mut count = 0;
    area.for_each_match(conn, asked, |_, _| {
        count += 1;
        Ok(match count < most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(count)
}

/// Whether a node's key lies in a path's stretches, which are in order.
fn contains_row(path: &[Stretch], id: i64) -> bool {
    let seq = u32::try_from(id & i64::from(u32::MAX)).unwrap_or(u32::MAX);
    let after = path.partition_point(|stretch| stretch.seq <= seq);
    let stretch = after.checked_sub(1).and_then(|at| path.get(at));
    stretch.is_some_and(|stretch| seq - stretch.seq <= stretch.to - stretch.from)
}

fn offer_node(
    conn: &Connection,
    ranking: &mut Ranking,
    conversation: &ConversationId,
    id: i64,
) -> Result<ControlFlow<()>, RowError> {
    let mut statement = conn.prepare_cached(&node_row::at_sql())?;
    let mut rows = statement.query([id])?;
    let node = rows.next()?.map(decode_undamaged).transpose()?.flatten();
    let node =
        node.filter(|node| ranking.matches_filters(node.kind, node.audience, node.created_ms));
    Ok(match node {
        Some(node) => ranking.examine_candidate(&SearchCandidate::from_node(conversation, &node)),
        None => ControlFlow::Continue(()),
    })
}

/// A row as a node without its parent; `None` if it is damaged. Whoever reads the node is told so;
/// here it is one that is not found.
fn decode_undamaged(row: &Row<'_>) -> Result<Option<Node>, RowError> {
    let damaged = |why: &str| Error::invalid_argument("node", why);
    let Some((columns, check)) = NodeColumns::from_row(row)? else {
        return Ok(None);
    };
    match node_row::decode_or(damaged, &columns, check, None) {
        Ok(node) => Ok(Some(node)),
        Err(RowError::Store(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn conversation_id(id: String) -> Result<ConversationId, RowError> {
    ConversationId::new(id).map_err(|error| corrupt_error(error.to_string()))
}

/// The alternatives in the index's own language. Terms have no quotes, so none can end one.
fn match_expression(alternatives: &[Vec<IndexCondition<'_>>]) -> String {
    let conditions = |alternative: &Vec<IndexCondition<'_>>| {
        let conditions = alternative.iter().map(|condition| {
            let prefix = if condition.prefix { "*" } else { "" };
            format!("\"{}\"{prefix}", condition.term)
        });
        format!("({})", conditions.collect::<Vec<_>>().join(" AND "))
    };
    let alternatives: Vec<String> = alternatives.iter().map(conditions).collect();
    alternatives.join(" OR ")
}
