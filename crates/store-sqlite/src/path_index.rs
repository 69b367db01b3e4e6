//! The path index as rows: which nodes have a path with which hash.
//!
//! Not here: the calls of the contract (`store`).

use std::collections::BTreeMap;

use contexture_ir::{ConversationId, NodeId, Owner, PathHash};
use contexture_store::{PathMark, PathMatch, PathQuery};
use rusqlite::{Connection, params};

use crate::error::{RowError, corrupt_error};
use crate::refs::branch;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_row;
use crate::rows::path::NodePosition;

/// Reads the nodes of a hash: heads first, then by update time of the conversation.
pub(crate) const FIND_NODES: &str = "SELECT c.no, c.id, p.segment, p.depth, \
     EXISTS (SELECT 1 FROM branches b \
     WHERE b.id >> 32 = p.conversation_no \
     AND b.head_segment = p.segment AND b.head_depth = p.depth) AS head \
     FROM path_index p JOIN conversations c ON c.no = p.conversation_no \
     WHERE p.owner = ?1 AND p.version = ?2 AND p.path_hash = ?3 AND (?4 IS NULL OR c.id = ?4) \
     ORDER BY head DESC, c.updated_ms DESC, c.id, p.depth LIMIT ?5";

/// Marks, grouped by node.
pub(crate) type Marks<'a> = BTreeMap<NodeId, Vec<&'a PathMark>>;

pub(crate) fn by_node(marks: &[PathMark]) -> Marks<'_> {
    let mut nodes = Marks::new();
    for mark in marks {
        nodes.entry(mark.node).or_default().push(mark);
    }
    nodes
}

/// Stores marks of the node at a position.
pub(crate) fn add_marks(
    conn: &Connection,
    conv: &ConversationRow,
    marks: &[&PathMark],
    at: NodePosition,
) -> Result<(), RowError> {
    for mark in marks {
        conn.prepare_cached("INSERT OR IGNORE INTO path_index VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![
                conv.owner.as_str(),
                mark.version,
                mark.hash.as_bytes(),
                conv.no,
                at.segment,
                at.depth
            ])?;
    }
    Ok(())
}

/// Finds the nodes of some hashes.
pub(crate) fn find_path_hashes(
    conn: &Connection,
    owner: &Owner,
    query: &PathQuery,
) -> Result<Vec<PathMatch>, RowError> {
    let mut statement = conn.prepare_cached(FIND_NODES)?;
    let mut found = Vec::new();
    let conversation = query.conversation.as_ref().map(ConversationId::as_str);
    let each = i64::try_from(query.each).unwrap_or(i64::MAX);
    for hash in &query.hashes {
        let (owner, version) = (owner.as_str(), query.version);
        let mut rows =
            statement.query(params![owner, version, hash.as_bytes(), conversation, each])?;
        while let Some(row) = rows.next()? {
            let (no, id): (u32, String) = (row.get(0)?, row.get(1)?);
            let at = NodePosition {
                segment: row.get(2)?,
                depth: row.get(3)?,
            };
            let conversation =
                ConversationId::new(id).map_err(|error| corrupt_error(error.to_string()))?;
            found.push(path_match(conn, no, conversation, *hash, at, row.get(4)?)?);
        }
    }
    Ok(found)
}

fn path_match(
    conn: &Connection,
    no: u32,
    conversation: ConversationId,
    hash: PathHash,
    at: NodePosition,
    is_head: bool,
) -> Result<PathMatch, RowError> {
    let node = node_row::id_of(conn, no, at)?;
    let missing = || corrupt_error(format!("conversation {no}: a marked node is missing"));
    let mut heads = Vec::new();
    if is_head {
        let all = branch::list_branches(conn, no)?.into_iter();
        let here = all.filter(|branch| branch.tip.position == at);
        heads.extend(here.map(|branch| branch.name));
    }
    Ok(PathMatch {
        hash,
        conversation,
        node: node.ok_or_else(missing)?,
        depth: u64::from(at.depth),
        heads,
    })
}

/// Adds marks, and removes those of other versions.
pub(crate) fn put_paths(
    conn: &Connection,
    conv: &ConversationRow,
    version: u32,
    marks: &[PathMark],
) -> Result<(), RowError> {
    conn.prepare_cached("DELETE FROM path_index WHERE conversation_no = ? AND version <> ?")?
        .execute(params![conv.no, version])?;
    for (node, marks) in by_node(marks) {
        let at = node_row::load_tip(conn, conv.no, node)?.position;
        add_marks(conn, conv, &marks, at)?;
    }
    Ok(())
}
