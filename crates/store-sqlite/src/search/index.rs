//! The full-text index: its progress, and the bounded steps that bring it up to date.
//!
//! The index is derived from the nodes. `search_state` records the progress: nodes up to
//! `indexed_to` are indexed, and so are later ones that were stored since the index was last emptied.
//! Triggers remove the terms of removed nodes (see the migration).
//! Removed terms stay in the index's pages until those are merged; `purge` records that this is
//! due.
//!
//! Not here: when the steps of [`maintain_index`] run.

use contexture_store::{Error, Node, rules};
use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::error::RowError;
use crate::rows::node_columns::NodeColumns;
use crate::rows::node_row;
use crate::rows::path::packed_key;
use crate::search::fts_rowid;

/// Value of `indexed_to` once all nodes are indexed.
const EVERYTHING: i64 = i64::MAX;

/// Largest number of nodes that one step of indexing reads, and approximate number of bytes of
/// items.
const STEP_NODES: usize = 1000;
const STEP_BYTES: usize = 8 << 20;

/// Approximate number of pages that one step of merging writes.
const STEP_PAGES: i64 = 100;

/// Prepares the index of a database that was just opened; empties one with other terms.
pub(crate) fn prepare_index(conn: &mut Connection) -> rusqlite::Result<()> {
    if is_of_this_version(conn)? {
        return Ok(());
    }
    // Immediate, since a read transaction cannot become a write transaction while another process
    // writes.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    if !is_of_this_version(&tx)? {
        reset_index(&tx)?;
    }
    tx.commit()
}

/// Whether the index has the terms of this version.
pub(crate) fn is_of_this_version(conn: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT terms_version = ? FROM search_state";
    conn.query_row(sql, [rules::TERMS_VERSION], |row| row.get(0))
}

/// Empties the index; all stored nodes have to be indexed again.
pub(crate) fn reset_index(conn: &Connection) -> rusqlite::Result<()> {
    // A contentless table cannot be emptied row by row; FTS5 has this command for it.
    conn.execute("INSERT INTO search (search) VALUES ('delete-all')", [])?;
    conn.execute(
        "UPDATE search_state SET terms_version = ?1, purge = 0, \
         indexed_to = iif(EXISTS (SELECT 1 FROM nodes), -1, ?2)",
        params![rules::TERMS_VERSION, EVERYTHING],
    )?;
    Ok(())
}

/// Progress of the index: the key up to which nodes are indexed.
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

    /// Returns the number of the first conversation that may not be whole in the index.
    pub(crate) fn first_missing(&self) -> i64 {
        self.0.saturating_add(1) >> 32
    }
}

/// Indexes a node that was just stored, however far the index is: the next search finds it.
pub(crate) fn index_node(
    conn: &Connection,
    conversation: u32,
    seq: u32,
    terms: &str,
) -> Result<(), RowError> {
    match terms.is_empty() {
        true => Ok(()),
        false => insert_terms(conn, packed_key(conversation, seq), terms),
    }
}

/// Returns whether the index has what it should have of a node.
pub(crate) fn is_indexed(
    conn: &Connection,
    reach: &IndexedRange,
    id: i64,
    node: &Node,
) -> Result<bool, RowError> {
    if id > reach.0 || node.redacted_ms.is_some() {
        return Ok(true);
    }
    Ok(has_terms(conn, id)? || rules::index_terms(&rules::searchable_text(&node.json)).is_empty())
}

fn has_terms(conn: &Connection, id: i64) -> Result<bool, RowError> {
    let mut statement = conn.prepare_cached("SELECT 1 FROM search WHERE rowid = ?")?;
    Ok(statement.exists([fts_rowid::of_key(id)])?)
}

fn insert_terms(conn: &Connection, id: i64, terms: &str) -> Result<(), RowError> {
    conn.prepare_cached("INSERT INTO search (rowid, terms) VALUES (?, ?)")?
        .execute(params![fts_rowid::of_key(id), terms])?;
    Ok(())
}

/// Takes one step of pending work; returns whether there may be more.
pub(crate) fn maintain_index(conn: &Connection) -> Result<bool, RowError> {
    Ok(purge_removed_terms(conn)? || index_next_nodes(conn)?)
}

/// Indexes the next nodes; returns whether something was done.
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
        while nodes < STEP_NODES && bytes < STEP_BYTES {
            let Some(row) = rows.next()? else {
                // No node is left: recorded now, so that the last step needs none after it.
                last = None;
                break;
            };
            let id = row.get(0)?;
            // A damaged or redacted node is skipped and no error: otherwise one bad row would keep
            // all others from being indexed.
            if let Some(node) = decode_undamaged(row)?.filter(|node| node.redacted_ms.is_none()) {
                let terms = rules::index_terms(&rules::searchable_text(&node.json));
                bytes += node.json.len();
                // A node that was stored since the index is made again has its terms: twice they would stay when it is
                // removed.
                if !terms.is_empty() && !has_terms(conn, id)? {
                    insert_terms(conn, id, &terms)?;
                }
            }
            nodes += 1;
            last = Some(id);
        }
    }
    // In the same transaction as the terms, so a crash repeats the step or continues after it.
    conn.prepare_cached("UPDATE search_state SET indexed_to = ?")?
        .execute([last.unwrap_or(EVERYTHING)])?;
    Ok(true)
}

/// An index from which removed terms have to be merged out: its table, and the column that says how far that is.
struct PurgedIndex {
    due: &'static str,
    merge: &'static str,
    done: &'static str,
}

const PURGED: [PurgedIndex; 2] = [
    PurgedIndex {
        due: "SELECT purge FROM search_state",
        merge: "INSERT INTO search (search, rank) VALUES ('merge', ?)",
        done: "UPDATE search_state SET purge = ?",
    },
    PurgedIndex {
        due: "SELECT purge_titles FROM search_state",
        merge: "INSERT INTO search_titles (search_titles, rank) VALUES ('merge', ?)",
        done: "UPDATE search_state SET purge_titles = ?",
    },
];

/// Takes one step of merging removed terms out of each index; returns whether something was done.
pub(crate) fn purge_removed_terms(conn: &Connection) -> Result<bool, RowError> {
    let mut did = false;
    // Each of them, not the first that is due: a deletion takes a single step and has to reach all small indexes with it.
    for index in &PURGED {
        did |= purge_index(conn, index)?;
    }
    Ok(did)
}

fn purge_index(conn: &Connection, index: &PurgedIndex) -> Result<bool, RowError> {
    let due: u32 = conn
        .prepare_cached(index.due)?
        .query_row([], |row| row.get(0))?;
    // A negative number starts a merge of the whole index (steps 1 and 3), positive ones continue it (2 and 4). Where another merge
    // runs already, FTS5 only goes on with that one, and what it had written before stays. So the whole is merged twice.
    let (pages, next, after) = match due {
        0 => return Ok(false),
        1 => (-STEP_PAGES, 2, 3),
        2 => (STEP_PAGES, 2, 3),
        3 => (-STEP_PAGES, 4, 0),
        _ => (STEP_PAGES, 4, 0),
    };
    let before = total_changes(conn)?;
    conn.prepare_cached(index.merge)?.execute([pages])?;
    // FTS5 documents fewer than two changes as: nothing was left to merge.
    let next = match total_changes(conn)? - before < 2 {
        true => after,
        false => next,
    };
    conn.prepare_cached(index.done)?.execute([next])?;
    Ok(true)
}

fn total_changes(conn: &Connection) -> Result<i64, RowError> {
    Ok(conn
        .prepare_cached("SELECT total_changes()")?
        .query_row([], |row| row.get(0))?)
}

/// Decodes a row as a node without its parent; returns `None` if it is damaged. A search skips such
/// a node; reading it reports the damage.
pub(super) fn decode_undamaged(row: &Row<'_>) -> Result<Option<Node>, RowError> {
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
