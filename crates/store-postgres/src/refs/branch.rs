//! Branches and checkpoints as rows.

use std::collections::BTreeMap;

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId, Owner, ProcessId};
use contexture_store::rules;
use contexture_store::{
    Activation, Branch, BranchHolder, BranchLabel, Checkpoint, ClaimOver, EntityKind, Error,
    EventKind, Fence, NewBranch, RefChange, RefChanged, Refs,
};
use futures_util::future::try_join3;
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{get_bytes, get_bytes_or_null, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow, next_number};
use crate::rows::event;
use crate::rows::node_row::{self, fence_number};
use crate::rows::path::Tip;

/// A branch's row.
#[derive(Clone, Debug)]
pub(crate) struct BranchRow {
    pub(crate) no: i32,
    pub(crate) name: BranchName,
    pub(crate) tip: Tip,
    /// Segment that it extends; 0 if it has none yet.
    pub(crate) segment: i32,
    pub(crate) fence: Fence,
    pub(crate) holder: Option<BranchHolder>,
    pub(crate) created_ms: i64,
}

macro_rules! select {
    () => {
        "SELECT b.branch, b.name, b.segment, b.fence, b.created_ms, b.head_node, b.head_segment, \
         b.head_depth, b.messages, b.turns, b.compacted, b.root_no, s.first_depth, s.ancestors, \
         s.upto, b.holder, b.held_ms FROM contexture.branches b LEFT JOIN contexture.segments s \
         ON s.conversation = b.conversation AND s.segment = b.head_segment \
         WHERE b.conversation = $1"
    };
}

fn decode_branch(row: &Row) -> Result<BranchRow, RowError> {
    let name: &str = get_column(row, 1)?;
    let fence: i64 = get_column(row, 3)?;
    let head = get_bytes_or_null(row, 5)?.map(NodeId::from_bytes);
    let holder = get_bytes_or_null(row, 15)?.map(ProcessId::from_bytes);
    let held_ms: Option<i64> = get_column(row, 16)?;
    Ok(BranchRow {
        no: get_column(row, 0)?,
        name: BranchName::new(name).map_err(|error| corrupt_error(error.to_string()))?,
        tip: Tip::from_row(row, 6, head)?,
        segment: get_column(row, 2)?,
        fence: Fence(u64::try_from(fence).unwrap_or(0)),
        holder: holder.map(|process| BranchHolder {
            process,
            since_ms: held_ms.unwrap_or(0),
        }),
        created_ms: get_column(row, 4)?,
    })
}

/// Reads the branch of that name, if there is one.
pub(crate) async fn by_name(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &BranchName,
) -> Result<Option<BranchRow>, RowError> {
    let row = tx
        .query_row(
            concat!(select!(), " AND b.name = $2"),
            params![key, name.as_str()],
        )
        .await?;
    row.map(|row| decode_branch(&row)).transpose()
}

/// Reads the branch of that name; [`Error::NotFound`] if there is none.
pub(crate) async fn get_branch(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &BranchName,
) -> Result<BranchRow, RowError> {
    let row = by_name(tx, key, name).await?;
    row.ok_or_else(|| Error::not_found(EntityKind::Branch, name).into())
}

/// Lists all branches, in order of creation.
pub(crate) async fn list_branches(tx: &Tx<'_>, key: [u8; 16]) -> Result<Vec<BranchRow>, RowError> {
    let rows = tx
        .query_rows(concat!(select!(), " ORDER BY b.branch"), params![key])
        .await?;
    rows.iter().map(decode_branch).collect()
}

/// Lists all branches and checkpoints of a conversation.
pub(crate) async fn list_refs(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Refs, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    let rows = tx.query_rows(
        "SELECT name, node_id, at_ms FROM contexture.checkpoints \
         WHERE conversation = $1 ORDER BY name",
        params![key],
    );
    let conv = ConversationRow::load_for_read(tx, owner, id);
    let (conv, branches, rows) = try_join3(conv, list_branches(tx, key), rows).await?;
    let mut checkpoints = Vec::with_capacity(rows.len());
    for row in &rows {
        let name: &str = get_column(row, 0)?;
        checkpoints.push(Checkpoint {
            name: CheckpointName::new(name).map_err(|error| corrupt_error(error.to_string()))?,
            node: NodeId::from_bytes(get_bytes(row, 1)?),
            at_ms: get_column(row, 2)?,
        });
    }
    Ok(Refs {
        branches: branches
            .iter()
            .map(|row| branch_record(row, &conv))
            .collect(),
        checkpoints,
    })
}

fn branch_record(row: &BranchRow, conv: &ConversationRow) -> Branch {
    Branch {
        name: row.name.clone(),
        head: row.tip.node,
        nodes: row.tip.counters.depth,
        messages: row.tip.counters.messages,
        turns: row.tip.counters.turns,
        active: row.no == conv.active_branch,
        fence: row.fence,
        holder: row.holder,
        compacted: row.tip.counters.compacted,
        created_ms: row.created_ms,
    }
}

/// Reads the node that a checkpoint points to.
pub(crate) async fn checkpoint_node(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &CheckpointName,
) -> Result<NodeId, RowError> {
    let node = find_checkpoint(tx, key, name).await?;
    node.ok_or_else(|| Error::not_found(EntityKind::Checkpoint, name).into())
}

async fn find_checkpoint(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &CheckpointName,
) -> Result<Option<NodeId>, RowError> {
    let row = tx
        .query_row(
            "SELECT node_id FROM contexture.checkpoints WHERE conversation = $1 AND name = $2",
            params![key, name.as_str()],
        )
        .await?;
    Ok(match row {
        Some(row) => Some(NodeId::from_bytes(get_bytes(&row, 0)?)),
        None => None,
    })
}

/// Inserts a branch without a segment.
pub(crate) fn insert_branch(
    tx: &mut Tx<'_>,
    key: [u8; 16],
    number: i32,
    name: &BranchName,
    tip: &Tip,
    created_ms: i64,
) {
    let counter = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    tx.execute_on_commit(
        "INSERT INTO contexture.branches (conversation, branch, name, head_segment, head_depth, \
         head_node, messages, turns, compacted, root_no, segment, fence, created_ms) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, $11)",
        params![
            key,
            number,
            name.as_str(),
            tip.position.segment,
            tip.position.depth,
            tip.node,
            counter(tip.counters.messages),
            counter(tip.counters.turns),
            counter(tip.counters.compacted),
            tip.root_no,
            created_ms
        ],
    );
}

/// Saves a branch's head.
pub(crate) fn save_head(tx: &mut Tx<'_>, key: [u8; 16], row: &BranchRow) {
    let counter = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    let tip = &row.tip;
    tx.execute_on_commit(
        "UPDATE contexture.branches SET head_segment = $3, head_depth = $4, head_node = $5, \
         messages = $6, turns = $7, compacted = $8, root_no = $9, segment = $10 \
         WHERE conversation = $1 AND branch = $2",
        params![
            key,
            row.no,
            tip.position.segment,
            tip.position.depth,
            tip.node,
            counter(tip.counters.messages),
            counter(tip.counters.turns),
            counter(tip.counters.compacted),
            tip.root_no,
            row.segment
        ],
    );
}

/// A fact that the rule for automatic names needs.
enum NameQuestion {
    Count(String),
    Exists(BranchName),
}

/// Returns the name of a new branch.
pub(crate) async fn resolve_label(
    tx: &Tx<'_>,
    key: [u8; 16],
    label: &BranchLabel,
) -> Result<BranchName, RowError> {
    let from = match label {
        BranchLabel::After(from) => from,
        BranchLabel::Named(name) if has_branch(tx, key, name).await? => {
            return Err(Error::already_exists(EntityKind::Branch, name).into());
        }
        BranchLabel::Named(name) => return Ok(name.clone()),
    };
    // The rule is synchronous: it runs again after each fact that it lacked has been read.
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut existing: BTreeMap<BranchName, bool> = BTreeMap::new();
    loop {
        let proposal = rules::automatic_name(
            from,
            |base| {
                let known = counts.get(base).copied();
                known.ok_or_else(|| NameQuestion::Count(base.to_owned()))
            },
            |name| {
                let known = existing.get(name).copied();
                known.ok_or_else(|| NameQuestion::Exists(name.clone()))
            },
        );
        match proposal {
            Ok(name) => return Ok(name),
            Err(NameQuestion::Count(base)) => {
                let count = count_like(tx, key, &base).await?;
                counts.insert(base, count);
            }
            Err(NameQuestion::Exists(name)) => {
                let is_taken = has_branch(tx, key, &name).await?;
                existing.insert(name, is_taken);
            }
        }
    }
}

async fn has_branch(tx: &Tx<'_>, key: [u8; 16], name: &BranchName) -> Result<bool, RowError> {
    let row = tx
        .query_row(
            "SELECT FROM contexture.branches WHERE conversation = $1 AND name = $2",
            params![key, name.as_str()],
        )
        .await?;
    Ok(row.is_some())
}

/// Counts the names that equal `base` or begin with `<base>-v`; the latter sort between `<base>-v`
/// and `<base>-w`.
async fn count_like(tx: &Tx<'_>, key: [u8; 16], base: &str) -> Result<u64, RowError> {
    let row = tx
        .query_row(
            "SELECT count(*) FROM contexture.branches \
             WHERE conversation = $1 AND (name = $2 OR name >= $3 AND name < $4)",
            params![key, base, format!("{base}-v"), format!("{base}-w")],
        )
        .await?;
    let count: i64 = row.map_or(Ok(0), |row| get_column(&row, 0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Creates a branch whose name is free; the caller must save the conversation's row afterwards.
pub(crate) fn create_branch(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    name: BranchName,
    tip: Tip,
    new: &NewBranch,
    at_ms: i64,
) -> Result<BranchRow, RowError> {
    let no = next_number(&mut conv.next_branch, 1, "branches")?;
    insert_branch(tx, conv.key, no, &name, &tip, at_ms);
    conv.branches += 1;
    let created = EventKind::BranchCreated {
        branch: name.clone(),
        base: new.base,
    };
    event::record_event(tx, conv, at_ms, &created);
    if new.activate == Activation::Activate {
        conv.active_branch = no;
        let branch = name.clone();
        event::record_event(tx, conv, at_ms, &EventKind::BranchActivated { branch });
    }
    Ok(BranchRow {
        no,
        name,
        tip,
        segment: 0,
        fence: Fence(0),
        holder: None,
        created_ms: at_ms,
    })
}

/// Returns the position that a new branch starts from.
pub(crate) async fn base_tip(tx: &Tx<'_>, key: [u8; 16], new: &NewBranch) -> Result<Tip, RowError> {
    match new.base {
        Some(id) => node_row::load_tip(tx, key, id).await,
        None => Ok(Tip::default()),
    }
}

/// Changes a branch or a checkpoint.
pub(crate) async fn change_ref(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    change: &RefChange,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let conv = &mut ConversationRow::load_for_update(tx, owner, id).await?;
    let changed = match change {
        RefChange::CreateBranch(new) => {
            let name = resolve_label(tx, conv.key, &new.label).await?;
            let tip = base_tip(tx, conv.key, new).await?;
            let row = create_branch(tx, conv, name, tip, new, at_ms)?;
            RefChanged::Branch(branch_record(&row, conv))
        }
        RefChange::Activate(branch) => {
            let row = get_branch(tx, conv.key, branch).await?;
            conv.active_branch = row.no;
            let branch = branch.clone();
            event::record_event(tx, conv, at_ms, &EventKind::BranchActivated { branch });
            RefChanged::Branch(branch_record(&row, conv))
        }
        RefChange::RenameBranch { from, to } => rename_branch(tx, conv, from, to, at_ms).await?,
        RefChange::DeleteBranch(branch) => delete_branch(tx, conv, branch, at_ms).await?,
        RefChange::Move { branch, expect, to } => {
            move_branch(tx, conv, branch, *expect, *to, at_ms).await?
        }
        RefChange::Claim {
            branch,
            over,
            holder,
        } => claim_branch(tx, conv, branch, (*over, *holder), at_ms).await?,
        RefChange::CreateCheckpoint { name, node } => {
            let existing = find_checkpoint(tx, conv.key, name).await?;
            rules::check_new_checkpoint(name, existing, *node)?;
            set_checkpoint(tx, conv, name, *node, at_ms).await?
        }
        RefChange::SetCheckpoint { name, node } => {
            set_checkpoint(tx, conv, name, *node, at_ms).await?
        }
        RefChange::DeleteCheckpoint(name) => delete_checkpoint(tx, conv, name, at_ms).await?,
        // `RefChange` is non-exhaustive.
        other => {
            return Err(
                Error::invalid_argument("change", format!("{other:?} is not supported")).into(),
            );
        }
    };
    conv.save(tx);
    Ok(changed)
}

async fn rename_branch(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    from: &BranchName,
    to: &BranchName,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let mut row = get_branch(tx, conv.key, from).await?;
    // Checked here, because a violation of the unique key at the commit would count as a collision
    // and be retried.
    if has_branch(tx, conv.key, to).await? {
        return Err(Error::already_exists(EntityKind::Branch, to).into());
    }
    tx.execute_on_commit(
        "UPDATE contexture.branches SET name = $3 WHERE conversation = $1 AND branch = $2",
        params![conv.key, row.no, to.as_str()],
    );
    let kind = EventKind::BranchRenamed {
        from: from.clone(),
        to: to.clone(),
    };
    event::record_event(tx, conv, at_ms, &kind);
    row.name = to.clone();
    Ok(RefChanged::Branch(branch_record(&row, conv)))
}

async fn delete_branch(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    branch: &BranchName,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let row = get_branch(tx, conv.key, branch).await?;
    // Deleting the active branch would leave the conversation without a place to append.
    if row.no == conv.active_branch {
        rules::check_delete_branch(branch, &row.name)?;
    }
    tx.execute_on_commit(
        "DELETE FROM contexture.branches WHERE conversation = $1 AND branch = $2",
        params![conv.key, row.no],
    );
    // Nodes stay: other branches may share them, and an unreachable node can still be found by its
    // id.
    conv.branches = conv.branches.saturating_sub(1);
    let branch = branch.clone();
    event::record_event(tx, conv, at_ms, &EventKind::BranchDeleted { branch });
    Ok(RefChanged::Deleted)
}

/// Moves a branch whose head is the expected one.
async fn move_branch(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    branch: &BranchName,
    expect: Option<NodeId>,
    to: Option<NodeId>,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let row = get_branch(tx, conv.key, branch).await?;
    rules::check_head(branch, expect, row.tip.node)?;
    let moved = BranchRow {
        tip: match to {
            Some(node) => node_row::load_tip(tx, conv.key, node).await?,
            None => Tip::default(),
        },
        // The nodes behind the new head keep their places in the old segment: what follows gets
        // another one, as behind a fork.
        segment: 0,
        ..row
    };
    save_head(tx, conv.key, &moved);
    let branch = branch.clone();
    event::record_event(
        tx,
        conv,
        at_ms,
        &EventKind::BranchMoved { branch, head: to },
    );
    Ok(RefChanged::Branch(branch_record(&moved, conv)))
}

/// Gives a branch a new writer, or none; older fences are refused from now on.
async fn claim_branch(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    branch: &BranchName,
    (over, holder): (ClaimOver, Option<ProcessId>),
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    let mut row = get_branch(tx, conv.key, branch).await?;
    rules::check_claim_over(branch, over, row.fence, row.holder)?;
    // The fence only grows, so that older writers are refused without having to be known.
    row.fence = Fence(row.fence.0 + 1);
    let fence = row.fence;
    row.holder = holder.map(|process| BranchHolder {
        process,
        since_ms: at_ms,
    });
    tx.execute_on_commit(
        "UPDATE contexture.branches SET fence = $3, holder = $4, held_ms = $5 \
         WHERE conversation = $1 AND branch = $2",
        params![
            conv.key,
            row.no,
            fence_number(fence),
            holder,
            holder.map(|_| at_ms)
        ],
    );
    let branch = branch.clone();
    event::record_event(tx, conv, at_ms, &EventKind::BranchClaimed { branch, fence });
    Ok(RefChanged::Branch(branch_record(&row, conv)))
}

async fn set_checkpoint(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    name: &CheckpointName,
    node: NodeId,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    // Checks that the node exists: a checkpoint always points to a node.
    node_row::load_tip(tx, conv.key, node).await?;
    let replaced = find_checkpoint(tx, conv.key, name).await?;
    tx.execute_on_commit(
        "INSERT INTO contexture.checkpoints (conversation, name, node_id, at_ms) \
         VALUES ($1, $2, $3, $4) \
         ON CONFLICT (conversation, name) DO UPDATE SET node_id = $3, at_ms = $4",
        params![conv.key, name.as_str(), node, at_ms],
    );
    let name = name.clone();
    let kind = EventKind::CheckpointSet {
        checkpoint: name.clone(),
        node,
    };
    event::record_event(tx, conv, at_ms, &kind);
    Ok(RefChanged::Checkpoint {
        checkpoint: Checkpoint { name, node, at_ms },
        replaced,
    })
}

async fn delete_checkpoint(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    name: &CheckpointName,
    at_ms: i64,
) -> Result<RefChanged, RowError> {
    // Refuses an unknown name.
    checkpoint_node(tx, conv.key, name).await?;
    tx.execute_on_commit(
        "DELETE FROM contexture.checkpoints WHERE conversation = $1 AND name = $2",
        params![conv.key, name.as_str()],
    );
    let checkpoint = name.clone();
    let kind = EventKind::CheckpointDeleted { checkpoint };
    event::record_event(tx, conv, at_ms, &kind);
    Ok(RefChanged::Deleted)
}
