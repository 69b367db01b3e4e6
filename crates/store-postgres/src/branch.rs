//! Branches and checkpoints as rows.

use std::collections::BTreeMap;

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId, Owner};
use contexture_store::rules;
use contexture_store::{
    Activation, Branch, BranchLabel, Checkpoint, Error, EventKind, Fence, NewBranch, RefChange,
    RefChanged, Refs, Thing,
};
use futures_util::future::try_join3;
use tokio_postgres::Row;

use crate::conv::{Conv, Key, take};
use crate::event;
use crate::fault::{Fault, corrupt};
use crate::node_row::{self, fence_number};
use crate::param::params;
use crate::path::Tip;
use crate::row::{bytes, bytes_or_null, get};
use crate::tx::Tx;

/// A branch's row.
#[derive(Clone, Debug)]
pub(crate) struct BranchRow {
    pub(crate) no: i32,
    pub(crate) name: BranchName,
    pub(crate) tip: Tip,
    /// The segment it may extend; 0: none yet.
    pub(crate) segment: i32,
    pub(crate) fence: Fence,
    pub(crate) created_ms: i64,
}

macro_rules! select {
    () => {
        "SELECT b.branch, b.name, b.segment, b.fence, b.created_ms, b.head_node, b.head_segment, \
         b.head_depth, b.messages, b.turns, b.compacted, b.root_no, s.first_depth, s.ancestors, \
         s.upto FROM contexture.branches b LEFT JOIN contexture.segments s \
         ON s.conversation = b.conversation AND s.segment = b.head_segment \
         WHERE b.conversation = $1"
    };
}

fn read(row: &Row) -> Result<BranchRow, Fault> {
    let name: &str = get(row, 1)?;
    let fence: i64 = get(row, 3)?;
    let head = bytes_or_null(row, 5)?.map(NodeId::from_bytes);
    Ok(BranchRow {
        no: get(row, 0)?,
        name: BranchName::new(name).map_err(|error| corrupt(error.to_string()))?,
        tip: Tip::read(row, 6, head)?,
        segment: get(row, 2)?,
        fence: Fence(u64::try_from(fence).unwrap_or(0)),
        created_ms: get(row, 4)?,
    })
}

/// The branch of that name, if there is one.
pub(crate) async fn by_name(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &BranchName,
) -> Result<Option<BranchRow>, Fault> {
    let row = tx
        .row(
            concat!(select!(), " AND b.name = $2"),
            params![key, name.as_str()],
        )
        .await?;
    row.map(|row| read(&row)).transpose()
}

/// The branch of that name.
pub(crate) async fn named(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &BranchName,
) -> Result<BranchRow, Fault> {
    let row = by_name(tx, key, name).await?;
    row.ok_or_else(|| Error::not_found(Thing::Branch, name).into())
}

/// All branches, in order of creation.
pub(crate) async fn all(tx: &Tx<'_>, key: [u8; 16]) -> Result<Vec<BranchRow>, Fault> {
    let rows = tx
        .rows(concat!(select!(), " ORDER BY b.branch"), params![key])
        .await?;
    rows.iter().map(read).collect()
}

/// All names.
pub(crate) async fn refs(tx: &Tx<'_>, owner: &Owner, id: &ConversationId) -> Result<Refs, Fault> {
    let key = Key::of(owner, id).bytes();
    let rows = tx.rows(
        "SELECT name, node_id, at_ms FROM contexture.checkpoints \
         WHERE conversation = $1 ORDER BY name",
        params![key],
    );
    let conv = Conv::see(tx, owner, id);
    let (conv, branches, rows) = try_join3(conv, all(tx, key), rows).await?;
    let mut checkpoints = Vec::with_capacity(rows.len());
    for row in &rows {
        let name: &str = get(row, 0)?;
        checkpoints.push(Checkpoint {
            name: CheckpointName::new(name).map_err(|error| corrupt(error.to_string()))?,
            node: NodeId::from_bytes(bytes(row, 1)?),
            at_ms: get(row, 2)?,
        });
    }
    Ok(Refs {
        branches: branches.iter().map(|row| shown(row, &conv)).collect(),
        checkpoints,
    })
}

fn shown(row: &BranchRow, conv: &Conv) -> Branch {
    Branch {
        name: row.name.clone(),
        head: row.tip.node,
        nodes: row.tip.counters.depth,
        messages: row.tip.counters.messages,
        turns: row.tip.counters.turns,
        active: row.no == conv.active_branch,
        fence: row.fence,
        compacted: row.tip.counters.compacted,
        created_ms: row.created_ms,
    }
}

/// A checkpoint's node.
pub(crate) async fn checkpoint(
    tx: &Tx<'_>,
    key: [u8; 16],
    name: &CheckpointName,
) -> Result<NodeId, Fault> {
    let row = tx
        .row(
            "SELECT node_id FROM contexture.checkpoints WHERE conversation = $1 AND name = $2",
            params![key, name.as_str()],
        )
        .await?;
    let row = row.ok_or_else(|| Error::not_found(Thing::Checkpoint, name))?;
    Ok(NodeId::from_bytes(bytes(&row, 0)?))
}

/// A branch without a segment of its own.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    key: [u8; 16],
    number: i32,
    name: &BranchName,
    tip: &Tip,
    created_ms: i64,
) {
    let counter = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    tx.later(
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

/// Moves a branch's head.
pub(crate) fn save_head(tx: &mut Tx<'_>, key: [u8; 16], row: &BranchRow) {
    let counter = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    let tip = &row.tip;
    tx.later(
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

/// What the formula for automatic names asks.
enum Question {
    Count(String),
    Exists(BranchName),
}

/// The name a new branch gets.
pub(crate) async fn label(
    tx: &Tx<'_>,
    key: [u8; 16],
    label: &BranchLabel,
) -> Result<BranchName, Fault> {
    let from = match label {
        BranchLabel::After(from) => from,
        BranchLabel::Named(name) if exists(tx, key, name).await? => {
            return Err(Error::already_exists(Thing::Branch, name).into());
        }
        BranchLabel::Named(name) => return Ok(name.clone()),
    };
    // The formula is asked again and again, until all that it asks is known.
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut taken: BTreeMap<BranchName, bool> = BTreeMap::new();
    loop {
        let asked = rules::automatic_name(
            from,
            |base| {
                let known = counts.get(base).copied();
                known.ok_or_else(|| Question::Count(base.to_owned()))
            },
            |name| {
                let known = taken.get(name).copied();
                known.ok_or_else(|| Question::Exists(name.clone()))
            },
        );
        match asked {
            Ok(name) => return Ok(name),
            Err(Question::Count(base)) => {
                let count = count_like(tx, key, &base).await?;
                counts.insert(base, count);
            }
            Err(Question::Exists(name)) => {
                let is_taken = exists(tx, key, &name).await?;
                taken.insert(name, is_taken);
            }
        }
    }
}

async fn exists(tx: &Tx<'_>, key: [u8; 16], name: &BranchName) -> Result<bool, Fault> {
    let row = tx
        .row(
            "SELECT FROM contexture.branches WHERE conversation = $1 AND name = $2",
            params![key, name.as_str()],
        )
        .await?;
    Ok(row.is_some())
}

/// Counts the names that equal `base` or begin with `base` and `-v`: these lie between `<base>-v`
/// and `<base>-w`.
async fn count_like(tx: &Tx<'_>, key: [u8; 16], base: &str) -> Result<u64, Fault> {
    let row = tx
        .row(
            "SELECT count(*) FROM contexture.branches \
             WHERE conversation = $1 AND (name = $2 OR name >= $3 AND name < $4)",
            params![key, base, format!("{base}-v"), format!("{base}-w")],
        )
        .await?;
    let count: i64 = row.map_or(Ok(0), |row| get(&row, 0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Makes a branch whose name is free; the conversation's row is to be saved afterwards.
pub(crate) fn open(
    tx: &mut Tx<'_>,
    conv: &mut Conv,
    name: BranchName,
    tip: Tip,
    new: &NewBranch,
    at_ms: i64,
) -> Result<BranchRow, Fault> {
    let no = take(&mut conv.next_branch, 1, "branches")?;
    insert(tx, conv.key, no, &name, &tip, at_ms);
    conv.branches += 1;
    let created = EventKind::BranchCreated {
        branch: name.clone(),
        base: new.base,
    };
    event::record(tx, conv, at_ms, &created);
    if new.activate == Activation::Activate {
        conv.active_branch = no;
        let branch = name.clone();
        event::record(tx, conv, at_ms, &EventKind::BranchActivated { branch });
    }
    Ok(BranchRow {
        no,
        name,
        tip,
        segment: 0,
        fence: Fence(0),
        created_ms: at_ms,
    })
}

/// Where a new branch starts.
pub(crate) async fn base(tx: &Tx<'_>, key: [u8; 16], new: &NewBranch) -> Result<Tip, Fault> {
    match new.base {
        Some(id) => node_row::tip(tx, key, id).await,
        None => Ok(Tip::default()),
    }
}

/// Changes a name.
pub(crate) async fn change(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    change: &RefChange,
    at_ms: i64,
) -> Result<RefChanged, Fault> {
    let conv = &mut Conv::lock(tx, owner, id).await?;
    let changed = match change {
        RefChange::CreateBranch(new) => {
            let name = label(tx, conv.key, &new.label).await?;
            let tip = base(tx, conv.key, new).await?;
            let row = open(tx, conv, name, tip, new, at_ms)?;
            RefChanged::Branch(shown(&row, conv))
        }
        RefChange::Activate(branch) => {
            let row = named(tx, conv.key, branch).await?;
            conv.active_branch = row.no;
            let branch = branch.clone();
            event::record(tx, conv, at_ms, &EventKind::BranchActivated { branch });
            RefChanged::Branch(shown(&row, conv))
        }
        RefChange::RenameBranch { from, to } => rename(tx, conv, from, to, at_ms).await?,
        RefChange::DeleteBranch(branch) => delete_branch(tx, conv, branch, at_ms).await?,
        RefChange::Claim(branch) => claim(tx, conv, branch, at_ms).await?,
        RefChange::SetCheckpoint { name, node } => {
            set_checkpoint(tx, conv, name, *node, at_ms).await?
        }
        RefChange::DeleteCheckpoint(name) => {
            checkpoint(tx, conv.key, name).await?;
            tx.later(
                "DELETE FROM contexture.checkpoints WHERE conversation = $1 AND name = $2",
                params![conv.key, name.as_str()],
            );
            let checkpoint = name.clone();
            let kind = EventKind::CheckpointDeleted { checkpoint };
            event::record(tx, conv, at_ms, &kind);
            RefChanged::Deleted
        }
        // The enum may grow before this backend does.
        other => {
            return Err(Error::invalid("change", format!("{other:?} is not supported")).into());
        }
    };
    conv.save(tx);
    Ok(changed)
}

async fn rename(
    tx: &mut Tx<'_>,
    conv: &mut Conv,
    from: &BranchName,
    to: &BranchName,
    at_ms: i64,
) -> Result<RefChanged, Fault> {
    let mut row = named(tx, conv.key, from).await?;
    if exists(tx, conv.key, to).await? {
        return Err(Error::already_exists(Thing::Branch, to).into());
    }
    tx.later(
        "UPDATE contexture.branches SET name = $3 WHERE conversation = $1 AND branch = $2",
        params![conv.key, row.no, to.as_str()],
    );
    let kind = EventKind::BranchRenamed {
        from: from.clone(),
        to: to.clone(),
    };
    event::record(tx, conv, at_ms, &kind);
    row.name = to.clone();
    Ok(RefChanged::Branch(shown(&row, conv)))
}

async fn delete_branch(
    tx: &mut Tx<'_>,
    conv: &mut Conv,
    branch: &BranchName,
    at_ms: i64,
) -> Result<RefChanged, Fault> {
    let row = named(tx, conv.key, branch).await?;
    if row.no == conv.active_branch {
        rules::check_delete_branch(branch, &row.name)?;
    }
    tx.later(
        "DELETE FROM contexture.branches WHERE conversation = $1 AND branch = $2",
        params![conv.key, row.no],
    );
    conv.branches = conv.branches.saturating_sub(1);
    let branch = branch.clone();
    event::record(tx, conv, at_ms, &EventKind::BranchDeleted { branch });
    Ok(RefChanged::Deleted)
}

async fn claim(
    tx: &mut Tx<'_>,
    conv: &mut Conv,
    branch: &BranchName,
    at_ms: i64,
) -> Result<RefChanged, Fault> {
    let mut row = named(tx, conv.key, branch).await?;
    row.fence = Fence(row.fence.0 + 1);
    let fence = row.fence;
    tx.later(
        "UPDATE contexture.branches SET fence = $3 WHERE conversation = $1 AND branch = $2",
        params![conv.key, row.no, fence_number(fence)],
    );
    let branch = branch.clone();
    event::record(tx, conv, at_ms, &EventKind::BranchClaimed { branch, fence });
    Ok(RefChanged::Branch(shown(&row, conv)))
}

async fn set_checkpoint(
    tx: &mut Tx<'_>,
    conv: &mut Conv,
    name: &CheckpointName,
    node: NodeId,
    at_ms: i64,
) -> Result<RefChanged, Fault> {
    node_row::tip(tx, conv.key, node).await?;
    tx.later(
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
    event::record(tx, conv, at_ms, &kind);
    Ok(RefChanged::Checkpoint(Checkpoint { name, node, at_ms }))
}
