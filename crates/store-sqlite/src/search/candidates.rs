//! Reads nodes that the index proposed and offers them to the ranking.
//!
//! A search examines up to a thousand of them, so only what the ranking asks for is decoded.
//!
//! Not here: which nodes.

use std::ops::ControlFlow;

use contexture_ir::{Audience, MessageId, NodeId};
use contexture_store::rules::{NodePlace, Ranking, SearchCandidate};
use contexture_store::{Node, NodeKind};
use rusqlite::{CachedStatement, Connection};

use super::index::decode_undamaged;
use super::{SearchedConversation, conversation_number};
use crate::error::RowError;
use crate::rows::codec;
use crate::rows::node_columns::{self, NodeColumns};
use crate::rows::node_row;
use crate::rows::path::PathWalker;

/// Reads nodes by their keys, with one statement for a search.
pub(super) struct CandidateReader<'c> {
    conn: &'c Connection,
    statement: CachedStatement<'c>,
    walker: PathWalker,
}

impl<'c> CandidateReader<'c> {
    pub(super) fn new(conn: &'c Connection) -> Result<Self, RowError> {
        Ok(Self {
            conn,
            statement: conn.prepare_cached(&node_row::at_sql())?,
            walker: PathWalker::default(),
        })
    }

    /// Offers the node with a key, unless it is missing, damaged or left out; breaks once the ranking is done.
    pub(super) fn offer(
        &mut self,
        ranking: &mut Ranking<i64>,
        conversation: &SearchedConversation,
        key: i64,
    ) -> Result<ControlFlow<()>, RowError> {
        let mut rows = self.statement.query([key])?;
        let Some(row) = rows.next()? else {
            return Ok(ControlFlow::Continue(()));
        };
        let Some((columns, check)) = NodeColumns::from_row(row)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let read = SearchedColumns::of(&columns);
        let read = read.filter(|read| {
            ranking.matches_filters(read.kind, read.audience, read.created_ms)
                && node_row::matches_written(&columns, check)
        });
        let Some(read) = read else {
            return Ok(ControlFlow::Continue(()));
        };
        let Ok(item) = codec::decode_bytes(read.codec, columns.item) else {
            return Ok(ControlFlow::Continue(()));
        };
        let Ok(json) = std::str::from_utf8(&item) else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut before = [None, None];
        if ranking.uses_neighbours() {
            let (no, at) = (conversation_number(key), columns.position());
            for (distance, before) in (1..).zip(&mut before) {
                *before = match self.walker.find_key_before(self.conn, no, at, distance) {
                    // A damaged segment costs the neighbours and not the search.
                    Err(RowError::Store(_)) => None,
                    found => found?,
                };
            }
        }
        let candidate = SearchCandidate {
            conversation: &conversation.id,
            resource: conversation.resource.as_deref(),
            node: read.node,
            message_id: read.message_id,
            kind: read.kind,
            depth: read.depth,
            created_ms: read.created_ms,
            json,
        };
        Ok(ranking.examine_candidate(&candidate, NodePlace { key, before }))
    }

    /// Reads the node with a key, unless it is missing or damaged.
    pub(super) fn read_undamaged(&mut self, key: i64) -> Result<Option<Node>, RowError> {
        let mut rows = self.statement.query([key])?;
        Ok(rows.next()?.map(decode_undamaged).transpose()?.flatten())
    }
}

/// What a search asks of a node besides its item.
struct SearchedColumns {
    node: NodeId,
    message_id: Option<MessageId>,
    kind: NodeKind,
    audience: Audience,
    depth: u64,
    created_ms: i64,
    codec: u8,
}

impl SearchedColumns {
    /// Returns `None` if one of them is missing or not valid.
    fn of(columns: &NodeColumns<'_>) -> Option<Self> {
        let number = |index: usize| columns.numbers.get(index).copied().flatten();
        let code = |index| number(index).and_then(|code| u8::try_from(code).ok());
        let node = columns.ids.get(node_columns::NODE_ID).copied().flatten()?;
        Some(Self {
            node: NodeId::from_bytes(*node),
            message_id: columns.message_id.map(MessageId::new).transpose().ok()?,
            kind: code(node_columns::KIND).and_then(NodeKind::from_code)?,
            audience: code(node_columns::AUDIENCE).and_then(Audience::from_code)?,
            depth: number(node_columns::DEPTH).and_then(|depth| u64::try_from(depth).ok())?,
            created_ms: number(node_columns::CREATED_MS)?,
            codec: code(node_columns::CODEC)?,
        })
    }
}
