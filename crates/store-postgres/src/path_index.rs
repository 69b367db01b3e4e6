//! The path index as rows: which nodes have a path with which hash.
//!
//! Not here: the calls of the contract (`store`).

use contexture_ir::{BranchName, ConversationId, NodeId, Owner, PathHash};
use contexture_store::{EntityKind, Error, PathMark, PathMatch, PathQuery};
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{get_bytes, get_column, get_count, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_row;

/// Reads the nodes of some hashes, each looked up by its key: heads first, then by update time of
/// the conversation.
const FIND_NODES: &str = "SELECT asked.hash, p.id, p.node_id, p.depth, p.heads \
     FROM unnest($1) WITH ORDINALITY AS asked (hash, place) \
     CROSS JOIN LATERAL (SELECT c.id, n.node_id, m.depth, h.heads, c.updated_ms \
     FROM contexture.path_index m \
     JOIN contexture.conversations c ON c.conversation = m.conversation \
     JOIN contexture.nodes n ON n.conversation = m.conversation \
     AND n.segment = m.segment AND n.depth = m.depth \
     CROSS JOIN LATERAL (SELECT ARRAY (SELECT b.name FROM contexture.branches b \
     WHERE b.conversation = m.conversation AND b.head_segment = m.segment \
     AND b.head_depth = m.depth ORDER BY b.branch) AS heads) AS h \
     WHERE m.owner = $2 AND m.version = $3 AND m.path_hash = asked.hash \
     AND ($4 IS NULL OR c.id = $4) \
     ORDER BY cardinality(h.heads) = 0, c.updated_ms DESC, c.id, m.depth LIMIT $5) AS p \
     ORDER BY asked.place, cardinality(p.heads) = 0, p.updated_ms DESC, p.id, p.depth";

/// Inserts marks of existing nodes.
const MARK: &str = "INSERT INTO contexture.path_index \
     (owner, version, path_hash, conversation, segment, depth) \
     SELECT $1, marks.version, marks.hash, $2, n.segment, n.depth \
     FROM unnest($3, $4, $5) AS marks (version, hash, node) \
     JOIN contexture.nodes n ON n.conversation = $2 AND n.node_id = marks.node \
     ON CONFLICT DO NOTHING";

/// Adds marks of nodes of this conversation, which the same transaction may have inserted.
pub(crate) fn add_marks(tx: &mut Tx<'_>, conv: &ConversationRow, marks: &[PathMark]) {
    if marks.is_empty() {
        return;
    }
    let versions: Vec<i32> = marks
        .iter()
        .map(|mark| version_number(mark.version))
        .collect();
    let hashes: Vec<PathHash> = marks.iter().map(|mark| mark.hash).collect();
    let nodes: Vec<NodeId> = marks.iter().map(|mark| mark.node).collect();
    tx.execute_on_commit(
        MARK,
        params![conv.owner.as_str(), conv.key, versions, hashes, nodes],
    );
}

fn version_number(version: u32) -> i32 {
    i32::try_from(version).unwrap_or(i32::MAX)
}

/// Finds the nodes of some hashes.
pub(crate) async fn find_path_hashes(
    tx: &Tx<'_>,
    owner: &Owner,
    query: &PathQuery,
) -> Result<Vec<PathMatch>, RowError> {
    let rows = tx
        .query_rows(
            FIND_NODES,
            params![
                query.hashes.clone(),
                owner.as_str(),
                version_number(query.version),
                query.conversation.as_ref().map(ConversationId::as_str),
                i64::try_from(query.each).unwrap_or(i64::MAX)
            ],
        )
        .await?;
    rows.iter().map(decode_path_match).collect()
}

fn decode_path_match(row: &Row) -> Result<PathMatch, RowError> {
    let broken = |error: contexture_ir::Error| corrupt_error(error.to_string());
    let heads: Vec<&str> = get_column(row, 4)?;
    let heads = heads.into_iter().map(BranchName::new);
    Ok(PathMatch {
        hash: PathHash::from_bytes(get_bytes(row, 0)?),
        conversation: ConversationId::new(get_column::<&str>(row, 1)?).map_err(broken)?,
        node: NodeId::from_bytes(get_bytes(row, 2)?),
        depth: get_count(row, 3)?,
        heads: heads.collect::<Result<_, _>>().map_err(broken)?,
    })
}

/// Adds marks, and removes those of other versions.
pub(crate) async fn put_paths(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    version: u32,
    marks: &[PathMark],
) -> Result<(), RowError> {
    let conv = ConversationRow::load_for_update(tx, owner, id).await?;
    let ids = marks.iter().map(|mark| mark.node).collect();
    let existing = node_row::find_existing_nodes(tx, conv.key, ids).await?;
    if let Some(mark) = marks.iter().find(|mark| !existing.contains_key(&mark.node)) {
        return Err(Error::not_found(EntityKind::Node, mark.node).into());
    }
    tx.execute_on_commit(
        "DELETE FROM contexture.path_index WHERE conversation = $1 AND version <> $2",
        params![conv.key, version_number(version)],
    );
    add_marks(tx, &conv, marks);
    Ok(())
}
