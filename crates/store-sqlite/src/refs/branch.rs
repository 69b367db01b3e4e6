//! Branches as rows: name, head, and the free part of the segment that the branch extends.

use contexture_ir::{BranchName, NodeId, ProcessId};
use contexture_store::rules;
use contexture_store::{
    Activation, Branch, BranchHolder, BranchLabel, EntityKind, Error, EventKind, Fence, NewBranch,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{RowError, corrupt_error};
use crate::rows::conversation_row::{ConversationRow, next_number};
use crate::rows::path::{NodePosition, Tip, key_range, packed_key};
use crate::rows::{event, node_row};

/// A branch's row.
#[derive(Clone, Debug)]
pub(crate) struct BranchRow {
    pub(crate) no: u32,
    pub(crate) name: BranchName,
    pub(crate) tip: Tip,
    /// Segment that it extends (0: none), and the free positions of that segment.
    pub(crate) segment: u32,
    pub(crate) next_seq: u32,
    pub(crate) end_seq: u32,
    pub(crate) fence: Fence,
    pub(crate) holder: Option<BranchHolder>,
    pub(crate) created_ms: i64,
}

const COLUMNS: &str = "id, name, head_segment, head_depth, head_node, messages, turns, compacted, \
     root_no, segment, next_seq, end_seq, fence, created_ms, holder, held_ms";

/// Counts the branches with names in a range.
pub(crate) const COUNT_LIKE: &str =
    "SELECT count(*) FROM branches WHERE id >> 32 = ? AND name >= ? AND name < ?";

/// Reads the branch with a name.
pub(crate) fn by_name_sql() -> String {
    format!("SELECT {COLUMNS} FROM branches WHERE id >> 32 = ? AND name = ?")
}

/// Reads all branches of a conversation, in order of creation.
pub(crate) fn all_sql() -> String {
    format!("SELECT {COLUMNS} FROM branches WHERE id BETWEEN ? AND ? ORDER BY id")
}

fn decode_branch(row: &Row<'_>) -> Result<BranchRow, RowError> {
    let id: i64 = row.get(0)?;
    let name: String = row.get(1)?;
    let fence: i64 = row.get(12)?;
    let holder: Option<[u8; 16]> = row.get(14)?;
    let held_ms: Option<i64> = row.get(15)?;
    Ok(BranchRow {
        no: id as u32,
        name: BranchName::new(name).map_err(|error| corrupt_error(error.to_string()))?,
        tip: Tip {
            position: NodePosition {
                segment: row.get(2)?,
                depth: row.get(3)?,
            },
            node: row.get::<_, Option<[u8; 16]>>(4)?.map(NodeId::from_bytes),
            messages: row.get(5)?,
            turns: row.get(6)?,
            compacted: row.get(7)?,
            root_no: row.get(8)?,
        },
        segment: row.get(9)?,
        next_seq: row.get(10)?,
        end_seq: row.get(11)?,
        fence: Fence(u64::try_from(fence).unwrap_or(0)),
        holder: holder.map(|process| BranchHolder {
            process: ProcessId::from_bytes(process),
            since_ms: held_ms.unwrap_or(0),
        }),
        created_ms: row.get(13)?,
    })
}

/// Reads the branch with a name, if there is one.
pub(crate) fn by_name(
    conn: &Connection,
    conversation: u32,
    name: &BranchName,
) -> Result<Option<BranchRow>, RowError> {
    let mut statement = conn.prepare_cached(&by_name_sql())?;
    let mut rows = statement.query(params![conversation, name.as_str()])?;
    rows.next()?.map(decode_branch).transpose()
}

/// Reads the branch with a name; [`Error::NotFound`] if there is none.
pub(crate) fn get_branch(
    conn: &Connection,
    conversation: u32,
    name: &BranchName,
) -> Result<BranchRow, RowError> {
    let row = by_name(conn, conversation, name)?;
    row.ok_or_else(|| Error::not_found(EntityKind::Branch, name).into())
}

/// Reads the name of a branch by its number, if it still exists.
pub(crate) fn name_of(
    conn: &Connection,
    conversation: u32,
    number: u32,
) -> Result<Option<BranchName>, RowError> {
    let name: Option<String> = conn
        .prepare_cached("SELECT name FROM branches WHERE id = ?")?
        .query_row([packed_key(conversation, number)], |row| row.get(0))
        .optional()?;
    let name = name.map(BranchName::new).transpose();
    name.map_err(|error| corrupt_error(error.to_string()))
}

/// Lists all branches, in order of creation.
pub(crate) fn list_branches(
    conn: &Connection,
    conversation: u32,
) -> Result<Vec<BranchRow>, RowError> {
    let mut statement = conn.prepare_cached(&all_sql())?;
    let (first, last) = key_range(conversation);
    let mut rows = statement.query([first, last])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode_branch(row)?);
    }
    Ok(found)
}

/// Converts a row to the record of the contract.
pub(super) fn branch_record(row: &BranchRow, conv: &ConversationRow) -> Branch {
    Branch {
        name: row.name.clone(),
        head: row.tip.node,
        nodes: u64::from(row.tip.position.depth),
        messages: u64::from(row.tip.messages),
        turns: u64::from(row.tip.turns),
        active: row.no == conv.active_branch,
        fence: row.fence,
        holder: row.holder,
        compacted: u64::from(row.tip.compacted),
        created_ms: row.created_ms,
    }
}

/// Inserts the branch that every conversation starts with.
pub(crate) fn insert_main(
    conn: &Connection,
    conversation: u32,
    created_ms: i64,
) -> Result<(), RowError> {
    insert_branch(
        conn,
        conversation,
        1,
        &BranchName::main(),
        &Tip::default(),
        created_ms,
    )
}

fn insert_branch(
    conn: &Connection,
    conversation: u32,
    number: u32,
    name: &BranchName,
    tip: &Tip,
    created_ms: i64,
) -> Result<(), RowError> {
    // A new branch has no segment (zeros): it gets one with its first node, so that unused branches
    // reserve no positions.
    conn.prepare_cached(
        "INSERT INTO branches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, ?, NULL, NULL)",
    )?
    .execute(params![
        packed_key(conversation, number),
        name.as_str(),
        tip.position.segment,
        tip.position.depth,
        tip.node.as_ref().map(NodeId::as_bytes),
        tip.messages,
        tip.turns,
        tip.compacted,
        tip.root_no,
        created_ms
    ])?;
    Ok(())
}

/// Saves a branch's head.
pub(crate) fn save_head(
    conn: &Connection,
    conversation: u32,
    row: &BranchRow,
) -> Result<(), RowError> {
    conn.prepare_cached(
        "UPDATE branches SET head_segment = ?, head_depth = ?, head_node = ?, messages = ?, \
         turns = ?, compacted = ?, root_no = ?, segment = ?, next_seq = ?, end_seq = ? \
         WHERE id = ?",
    )?
    .execute(params![
        row.tip.position.segment,
        row.tip.position.depth,
        row.tip.node.as_ref().map(NodeId::as_bytes),
        row.tip.messages,
        row.tip.turns,
        row.tip.compacted,
        row.tip.root_no,
        row.segment,
        row.next_seq,
        row.end_seq,
        packed_key(conversation, row.no)
    ])?;
    Ok(())
}

/// Returns the name of a new branch.
pub(crate) fn resolve_label(
    conn: &Connection,
    conversation: u32,
    label: &BranchLabel,
) -> Result<BranchName, RowError> {
    // No race with the insert that follows: the transaction holds the write lock.
    let exists = |name: &str| -> Result<bool, RowError> {
        let mut statement =
            conn.prepare_cached("SELECT 1 FROM branches WHERE id >> 32 = ? AND name = ?")?;
        Ok(statement.exists(params![conversation, name])?)
    };
    match label {
        BranchLabel::Named(name) if exists(name.as_str())? => {
            Err(Error::already_exists(EntityKind::Branch, name).into())
        }
        BranchLabel::Named(name) => Ok(name.clone()),
        BranchLabel::After(from) => rules::automatic_name(
            from,
            |base| {
                // All names that begin with `<base>-v` sort between `<base>-v` and `<base>-w`.
                let like: i64 = conn.prepare_cached(COUNT_LIKE)?.query_row(
                    params![conversation, format!("{base}-v"), format!("{base}-w")],
                    |row| row.get(0),
                )?;
                let like = u64::try_from(like).unwrap_or(0);
                Ok(like + u64::from(exists(base)?))
            },
            |name| exists(name.as_str()),
        ),
    }
}

/// Creates a branch whose name is free; the caller must save the conversation's row afterwards.
pub(crate) fn create_branch(
    conn: &Connection,
    conv: &mut ConversationRow,
    name: BranchName,
    tip: Tip,
    new: &NewBranch,
    at_ms: i64,
) -> Result<BranchRow, RowError> {
    let no = next_number(&mut conv.next_branch, 1, "branches")?;
    insert_branch(conn, conv.no, no, &name, &tip, at_ms)?;
    conv.branches += 1;
    let created = EventKind::BranchCreated {
        branch: name.clone(),
        base: new.base,
    };
    event::record_event(conn, conv, at_ms, &created)?;
    if new.activate == Activation::Activate {
        conv.active_branch = no;
        let branch = name.clone();
        event::record_event(conn, conv, at_ms, &EventKind::BranchActivated { branch })?;
    }
    Ok(BranchRow {
        no,
        name,
        tip,
        segment: 0,
        next_seq: 0,
        end_seq: 0,
        fence: Fence(0),
        holder: None,
        created_ms: at_ms,
    })
}

/// Returns the position that a new branch starts from.
pub(crate) fn base_tip(
    conn: &Connection,
    conversation: u32,
    new: &NewBranch,
) -> Result<Tip, RowError> {
    match new.base {
        Some(id) => node_row::load_tip(conn, conversation, id),
        None => Ok(Tip::default()),
    }
}
