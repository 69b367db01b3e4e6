//! The index of histories, as rows.
//!
//! Not here: the calls of the contract (`finding`).

use contexture_ir::{BranchName, ConversationId, NodeId, Owner, PathHash};
use contexture_store::{Error, PathMark, PathPlace, PathQuery, Thing};
use tokio_postgres::Row;

use crate::conv::Conv;
use crate::fault::{Fault, corrupt};
use crate::node_row;
use crate::param::params;
use crate::row::{bytes, count, get};
use crate::tx::Tx;

/// The places of some hashes, each looked up by its key: heads first, then the conversations that were
/// written to last.
const PLACES: &str = "SELECT asked.hash, p.id, p.node_id, p.depth, p.heads \
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

/// Marks nodes that are there already.
const MARK: &str = "INSERT INTO contexture.path_index \
     (owner, version, path_hash, conversation, segment, depth) \
     SELECT $1, marks.version, marks.hash, $2, n.segment, n.depth \
     FROM unnest($3, $4, $5) AS marks (version, hash, node) \
     JOIN contexture.nodes n ON n.conversation = $2 AND n.node_id = marks.node \
     ON CONFLICT DO NOTHING";

/// Marks nodes of this conversation, which the transaction may just have made.
pub(crate) fn add(tx: &mut Tx<'_>, conv: &Conv, marks: &[PathMark]) {
    if marks.is_empty() {
        return;
    }
    let versions: Vec<i32> = marks.iter().map(|mark| version(mark.version)).collect();
    let hashes: Vec<PathHash> = marks.iter().map(|mark| mark.hash).collect();
    let nodes: Vec<NodeId> = marks.iter().map(|mark| mark.node).collect();
    tx.later(
        MARK,
        params![conv.owner.as_str(), conv.key, versions, hashes, nodes],
    );
}

fn version(version: u32) -> i32 {
    i32::try_from(version).unwrap_or(i32::MAX)
}

/// The places of some hashes.
pub(crate) async fn find(
    tx: &Tx<'_>,
    owner: &Owner,
    query: &PathQuery,
) -> Result<Vec<PathPlace>, Fault> {
    let rows = tx
        .rows(
            PLACES,
            params![
                query.hashes.clone(),
                owner.as_str(),
                version(query.version),
                query.conversation.as_ref().map(ConversationId::as_str),
                i64::try_from(query.each).unwrap_or(i64::MAX)
            ],
        )
        .await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<PathPlace, Fault> {
    let broken = |error: contexture_ir::Error| corrupt(error.to_string());
    let heads: Vec<&str> = get(row, 4)?;
    let heads = heads.into_iter().map(BranchName::new);
    Ok(PathPlace {
        hash: PathHash::from_bytes(bytes(row, 0)?),
        conversation: ConversationId::new(get::<&str>(row, 1)?).map_err(broken)?,
        node: NodeId::from_bytes(bytes(row, 2)?),
        depth: count(row, 3)?,
        heads: heads.collect::<Result<_, _>>().map_err(broken)?,
    })
}

/// Adds marks, and removes those of other versions.
pub(crate) async fn put(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    kept: u32,
    marks: &[PathMark],
) -> Result<(), Fault> {
    let conv = Conv::lock(tx, owner, id).await?;
    let named = marks.iter().map(|mark| mark.node).collect();
    let known = node_row::known(tx, conv.key, named).await?;
    if let Some(mark) = marks.iter().find(|mark| !known.contains_key(&mark.node)) {
        return Err(Error::not_found(Thing::Node, mark.node).into());
    }
    tx.later(
        "DELETE FROM contexture.path_index WHERE conversation = $1 AND version <> $2",
        params![conv.key, version(kept)],
    );
    add(tx, &conv, marks);
    Ok(())
}
