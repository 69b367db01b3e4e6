//! The row of a conversation, which every write to its tree reads first and saves last.

use std::fmt;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{EntityKind, Error};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::RowError;

/// The part of a conversation's row that writes need.
#[derive(Debug)]
pub(crate) struct ConversationRow {
    pub(crate) no: u32,
    pub(crate) owner: Owner,
    pub(crate) id: ConversationId,
    pub(crate) active_branch: u32,
    pub(crate) version: u32,
    pub(crate) nodes: u32,
    pub(crate) branches: u32,
    pub(crate) next_seq: u32,
    pub(crate) next_segment: u32,
    pub(crate) next_branch: u32,
    pub(crate) next_root: u32,
    pub(crate) next_event: u32,
    pub(crate) updated_ms: i64,
}

impl ConversationRow {
    /// Reads the row of the owner's conversation with that id.
    pub(crate) fn load(
        conn: &Connection,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Self, RowError> {
        conn.prepare_cached(
            "SELECT no, active_branch, version, nodes, branches, next_seq, next_segment, \
             next_branch, next_root, next_event, updated_ms \
             FROM conversations WHERE owner = ? AND id = ?",
        )?
        .query_row([owner.as_str(), id.as_str()], |row| {
            Ok(Self {
                no: row.get(0)?,
                owner: owner.clone(),
                id: id.clone(),
                active_branch: row.get(1)?,
                version: row.get(2)?,
                nodes: row.get(3)?,
                branches: row.get(4)?,
                next_seq: row.get(5)?,
                next_segment: row.get(6)?,
                next_branch: row.get(7)?,
                next_root: row.get(8)?,
                next_event: row.get(9)?,
                updated_ms: row.get(10)?,
            })
        })
        .optional()?
        .ok_or_else(|| Error::not_found(EntityKind::Conversation, id).into())
    }

    /// Writes the row back.
    pub(crate) fn save(&self, conn: &Connection) -> Result<(), RowError> {
        conn.prepare_cached(
            "UPDATE conversations SET active_branch = ?, version = ?, nodes = ?, branches = ?, \
             next_seq = ?, next_segment = ?, next_branch = ?, next_root = ?, next_event = ?, \
             updated_ms = ? WHERE no = ?",
        )?
        .execute(params![
            self.active_branch,
            self.version,
            self.nodes,
            self.branches,
            self.next_seq,
            self.next_segment,
            self.next_branch,
            self.next_root,
            self.next_event,
            self.updated_ms,
            self.no
        ])?;
        Ok(())
    }

    /// Returns [`Error::Damaged`] for a place in this conversation.
    pub(crate) fn damaged_error(
        &self,
        what: &'static str,
        position: impl fmt::Display,
        why: impl Into<String>,
    ) -> Error {
        Error::damaged(&self.id, what, position, why)
    }
}

/// Takes `count` numbers from a counter of the conversation; returns the first.
pub(crate) fn next_number(
    counter: &mut u32,
    count: u32,
    limit: &'static str,
) -> Result<u32, Error> {
    let first = *counter;
    *counter = first.checked_add(count).ok_or(Error::Limit {
        limit,
        max: u64::from(u32::MAX),
        actual: u64::from(first) + u64::from(count),
    })?;
    Ok(first)
}
