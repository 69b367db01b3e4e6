//! Refs: the names that point into a conversation's tree, branches and checkpoints.
//!
//! A branch has a head that moves with appends; a checkpoint stays where it was set. `branch` has
//! the rows of branches; this file has checkpoints, changes of refs, and the resolution of a path's
//! end ([`resolve_end`]).
//!
//! What always holds: a change of a name and its event are one transaction, and the active branch
//! is never deleted.

use contexture_ir::{BranchName, CheckpointName, NodeId, ProcessId};
use contexture_store::rules;
use contexture_store::{
    BranchHolder, BranchLabel, Checkpoint, ClaimOver, EntityKind, Error, EventKind, Fence, PathEnd,
    RefChange, RefChanged, Refs,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{RowError, corrupt_error};
use crate::rows::conversation_row::ConversationRow;
use crate::rows::event;
use crate::rows::node_row;
use crate::rows::path::{Tip, packed_key};

pub(crate) mod branch;

use branch::{
    BranchRow, base_tip, branch_record, create_branch, get_branch, list_branches, name_of,
    resolve_label, save_head,
};

/// Resolves the end of a path to the position after its last node, with its state.
pub(crate) fn resolve_end(
    conn: &Connection,
    conv: &ConversationRow,
    at: &PathEnd,
) -> Result<Tip, RowError> {
    match at {
        PathEnd::Branch(name) => Ok(branch::get_branch(conn, conv.no, name)?.tip),
        PathEnd::Checkpoint(name) => {
            let node = checkpoint_node(conn, conv.no, name)?;
            node_row::load_tip(conn, conv.no, node)
        }
        PathEnd::Node(id) => node_row::load_tip(conn, conv.no, *id),
    }
}

/// Lists all branches and checkpoints.
pub(crate) fn list_refs(conn: &Connection, conv: &ConversationRow) -> Result<Refs, RowError> {
    let branches = list_branches(conn, conv.no)?;
    let mut statement = conn.prepare_cached(
        "SELECT name, node_id, at_ms FROM checkpoints WHERE conversation_no = ? ORDER BY name",
    )?;
    let mut rows = statement.query([conv.no])?;
    let mut checkpoints = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        checkpoints.push(Checkpoint {
            name: CheckpointName::new(name).map_err(|error| corrupt_error(error.to_string()))?,
            node: NodeId::from_bytes(row.get(1)?),
            at_ms: row.get(2)?,
        });
    }
    Ok(Refs {
        branches: branches
            .iter()
            .map(|row| branch_record(row, conv))
            .collect(),
        checkpoints,
    })
}

/// Reads the node of a checkpoint.
pub(crate) fn checkpoint_node(
    conn: &Connection,
    conversation: u32,
    name: &CheckpointName,
) -> Result<NodeId, RowError> {
    find_checkpoint(conn, conversation, name)?
        .ok_or_else(|| Error::not_found(EntityKind::Checkpoint, name).into())
}

fn find_checkpoint(
    conn: &Connection,
    conversation: u32,
    name: &CheckpointName,
) -> Result<Option<NodeId>, RowError> {
    let node = conn
        .prepare_cached("SELECT node_id FROM checkpoints WHERE conversation_no = ? AND name = ?")?
        .query_row(params![conversation, name.as_str()], |row| row.get(0))
        .optional()?;
    Ok(node.map(NodeId::from_bytes))
}

/// Changes a branch or a checkpoint.
pub(crate) fn change_ref(
    conn: &Connection,
    conv: &mut ConversationRow,
    change: RefChange,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let changed = match change {
        RefChange::CreateBranch(new) => {
            let name = resolve_label(conn, conv.no, &new.label)?;
            let tip = base_tip(conn, conv.no, &new)?;
            let row = create_branch(conn, conv, name, tip, &new, at_ms)?;
            RefChanged::Branch(branch_record(&row, conv))
        }
        RefChange::Activate(branch) => {
            let row = get_branch(conn, conv.no, &branch)?;
            conv.active_branch = row.no;
            event::record_event(conn, conv, at_ms, &EventKind::BranchActivated { branch })?;
            RefChanged::Branch(branch_record(&row, conv))
        }
        RefChange::RenameBranch { from, to } => rename_branch(conn, conv, from, to, at_ms)?,
        RefChange::DeleteBranch(branch) => delete_branch(conn, conv, branch, at_ms)?,
        RefChange::Move { branch, expect, to } => {
            move_branch(conn, conv, branch, expect, to, at_ms)?
        }
        RefChange::Claim {
            branch,
            over,
            holder,
        } => claim_branch(conn, conv, branch, (over, holder), at_ms)?,
        RefChange::CreateCheckpoint { name, node } => {
            let existing = find_checkpoint(conn, conv.no, &name)?;
            rules::check_new_checkpoint(&name, existing, node)?;
            set_checkpoint(conn, conv, name, node, at_ms)?
        }
        RefChange::SetCheckpoint { name, node } => set_checkpoint(conn, conv, name, node, at_ms)?,
        RefChange::DeleteCheckpoint(checkpoint) => {
            delete_checkpoint(conn, conv, checkpoint, at_ms)?
        }
        // `RefChange` is non-exhaustive.
        other => {
            return Err(
                Error::invalid_argument("change", format!("{other:?} is not supported")).into(),
            );
        }
    };
    conv.save(conn)?;
    Ok(changed)
}

fn set_checkpoint(
    conn: &Connection,
    conv: &mut ConversationRow,
    name: CheckpointName,
    node: NodeId,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    // Checks that the node exists: a checkpoint always points to a node.
    node_row::load_tip(conn, conv.no, node)?;
    let replaced = find_checkpoint(conn, conv.no, &name)?;
    conn.prepare_cached(
        "INSERT INTO checkpoints VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO UPDATE SET node_id = ?3, at_ms = ?4",
    )?
    .execute(params![conv.no, name.as_str(), node.as_bytes(), at_ms])?;
    let kind = EventKind::CheckpointSet {
        checkpoint: name.clone(),
        node,
    };
    event::record_event(conn, conv, at_ms, &kind)?;
    Ok(RefChanged::Checkpoint {
        checkpoint: Checkpoint { name, node, at_ms },
        replaced,
    })
}

fn rename_branch(
    conn: &Connection,
    conv: &mut ConversationRow,
    from: BranchName,
    to: BranchName,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let mut row = get_branch(conn, conv.no, &from)?;
    row.name = resolve_label(conn, conv.no, &BranchLabel::Named(to.clone()))?;
    conn.prepare_cached("UPDATE branches SET name = ? WHERE id = ?")?
        .execute(params![to.as_str(), packed_key(conv.no, row.no)])?;
    event::record_event(conn, conv, at_ms, &EventKind::BranchRenamed { from, to })?;
    Ok(RefChanged::Branch(branch_record(&row, conv)))
}

fn delete_branch(
    conn: &Connection,
    conv: &mut ConversationRow,
    branch: BranchName,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let row = get_branch(conn, conv.no, &branch)?;
    // Deleting the active branch would leave the conversation without a place to append.
    if let Some(active) = name_of(conn, conv.no, conv.active_branch)? {
        rules::check_delete_branch(&branch, &active)?;
    }
    conn.prepare_cached("DELETE FROM branches WHERE id = ?")?
        .execute([packed_key(conv.no, row.no)])?;
    // Nodes stay: other branches may share them, and an unreachable node can still be found by its
    // id.
    conv.branches = conv.branches.saturating_sub(1);
    event::record_event(conn, conv, at_ms, &EventKind::BranchDeleted { branch })?;
    Ok(RefChanged::Deleted)
}

/// Moves a branch whose head is the expected one.
fn move_branch(
    conn: &Connection,
    conv: &mut ConversationRow,
    branch: BranchName,
    expect: Option<NodeId>,
    to: Option<NodeId>,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let row = get_branch(conn, conv.no, &branch)?;
    rules::check_head(&branch, expect, row.tip.node)?;
    let moved = BranchRow {
        tip: match to {
            Some(node) => node_row::load_tip(conn, conv.no, node)?,
            None => Tip::default(),
        },
        // The nodes behind the new head keep their places in the old segment: what follows gets
        // another one, as behind a fork.
        segment: 0,
        next_seq: 0,
        end_seq: 0,
        ..row
    };
    save_head(conn, conv.no, &moved)?;
    let event = EventKind::BranchMoved { branch, head: to };
    event::record_event(conn, conv, at_ms, &event)?;
    Ok(RefChanged::Branch(branch_record(&moved, conv)))
}

/// Gives a branch a new writer, or none; older fences are refused from now on.
fn claim_branch(
    conn: &Connection,
    conv: &mut ConversationRow,
    branch: BranchName,
    (over, holder): (ClaimOver, Option<ProcessId>),
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let mut row = get_branch(conn, conv.no, &branch)?;
    rules::check_claim_over(&branch, over, row.fence, row.holder)?;
    // The fence only grows, so that older writers are refused without having to be known.
    row.fence = Fence(row.fence.0 + 1);
    let fence = row.fence;
    row.holder = holder.map(|process| BranchHolder {
        process,
        since_ms: at_ms,
    });
    conn.prepare_cached("UPDATE branches SET fence = ?, holder = ?, held_ms = ? WHERE id = ?")?
        .execute(params![
            i64::try_from(fence.0).unwrap_or(i64::MAX),
            row.holder.as_ref().map(|holder| holder.process.as_bytes()),
            row.holder.map(|holder| holder.since_ms),
            packed_key(conv.no, row.no),
        ])?;
    let claimed = EventKind::BranchClaimed { branch, fence };
    event::record_event(conn, conv, at_ms, &claimed)?;
    Ok(RefChanged::Branch(branch_record(&row, conv)))
}

fn delete_checkpoint(
    conn: &Connection,
    conv: &mut ConversationRow,
    checkpoint: CheckpointName,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let deleted = conn
        .prepare_cached("DELETE FROM checkpoints WHERE conversation_no = ? AND name = ?")?
        .execute(params![conv.no, checkpoint.as_str()])?;
    if deleted == 0 {
        return Err(Error::not_found(EntityKind::Checkpoint, checkpoint).into());
    }
    let kind = EventKind::CheckpointDeleted { checkpoint };
    event::record_event(conn, conv, at_ms, &kind)?;
    Ok(RefChanged::Deleted)
}
