//! Appends: reads the facts, applies the shared rules, then writes all rows of one append.

use std::collections::BTreeSet;

use contexture_ir::{BranchName, MessageId};
use contexture_store::rules::{self, AppendTarget, BranchFacts, Counters};
use contexture_store::{
    AppendPoint, AppendRequest, Appended, BlobId, EntityKind, Error, EventKind, Limits, NewBranch,
    NewItem, StatePatch,
};
use rusqlite::Connection;

use crate::calls;
use crate::error::RowError;
use crate::key_values;
use crate::path_index;
use crate::processes;
use crate::refs::branch::{self, BranchRow};
use crate::rows::conversation_row::{ConversationRow, next_number};
use crate::rows::node_row::{self, NodeSlot};
use crate::rows::path::{NodePosition, Tip, insert_segment, is_on_path, packed_key, small_counter};
use crate::rows::prepared_append::PreparedAppend;
use crate::rows::{blob, event, response, state};
use crate::search::index;
use crate::streams;

/// Smallest and largest number of positions of a segment. Each further segment of a branch has
/// twice the capacity of the one before, so the path of a branch of a million nodes has about a
/// dozen segments even if another branch grows at the same time.
const FIRST_CAPACITY: u32 = 64;
const MAX_CAPACITY: u32 = 1 << 20;

/// Branch and position that the items go to.
enum ResolvedTarget {
    Extend(BranchRow),
    Open {
        name: BranchName,
        tip: Tip,
        new: NewBranch,
        sibling: bool,
    },
}

impl ResolvedTarget {
    fn tip(&self) -> Tip {
        match self {
            Self::Extend(branch_row) => branch_row.tip,
            Self::Open { tip, .. } => *tip,
        }
    }
}

/// Appends the items of a request that was checked against the limits.
pub(crate) fn append_items(
    conn: &Connection,
    conversation: &mut ConversationRow,
    prepared: &PreparedAppend,
    limits: &Limits,
) -> Result<Appended, RowError> {
    let request = &prepared.request;
    // Also for a repetition, and rolled back with an append that is refused.
    if let Some(change) = request.exchange {
        processes::change_exchange(conn, conversation, change)?;
    }
    if let Some(call) = &request.call {
        calls::insert_call(conn, &conversation.owner, conversation.no, call)?;
    }
    // Before all other checks: the first run of a repeated append has moved the head, so they would
    // refuse the repetition.
    let stored = request.items.iter();
    let stored = stored.map(|item| node_row::find_stored_item(conn, conversation.no, item.id));
    if rules::detect_replay(&request.items, &stored.collect::<Result<Vec<_>, _>>()?)? {
        return replay_result(conn, conversation, request);
    }
    let target = resolve_target(conn, conversation, request)?;
    let tip = target.tip();
    check_references(conn, conversation, &request.items, tip.position)?;
    // Each node carries the counters of its path, so a list of conversations or a page of a path
    // never has to count nodes.
    let counters = rules::counters_after_each(
        tip.counters(),
        &request.items,
        messages_on_path(conn, conversation, &prepared.message_ids, tip.position)?,
    );
    let root_no = apply_patch(conn, conversation, &request.patch, tip.root_no, limits)?;
    let decided = DecidedAppend {
        prepared,
        counters: &counters,
        root_no,
    };
    write_append(conn, conversation, &decided, target)
}

/// What [`write_append`] writes, once the rules have accepted it.
struct DecidedAppend<'a> {
    prepared: &'a PreparedAppend,
    /// The counters of the path after each item.
    counters: &'a [Counters],
    /// The number of the state root after the patch.
    root_no: u32,
}

/// Merges a patch into the state root at the head; returns the number of the resulting root.
fn apply_patch(
    conn: &Connection,
    conversation: &mut ConversationRow,
    patch: &StatePatch,
    root_no: u32,
    limits: &Limits,
) -> Result<u32, RowError> {
    if patch.is_empty() {
        return Ok(root_no);
    }
    // Merged into the root at the head as it is now, not as the caller saw it: two appends that
    // change different keys both keep their changes.
    let loaded = state::load_root(conn, conversation, root_no)?;
    match rules::merge_patch(&loaded.root, patch, limits)? {
        Some(merged) => state::store_root(conn, conversation, root_no, loaded.since_whole, &merged),
        // A patch that changes nothing creates no root, so a repeated write of equal values adds no
        // row.
        None => Ok(root_no),
    }
}

fn replay_result(
    conn: &Connection,
    conversation: &ConversationRow,
    request: &AppendRequest,
) -> Result<Appended, RowError> {
    let last = request.items.last().map(|item| item.id);
    let tip = match last {
        Some(id) => node_row::load_tip(conn, conversation.no, id)?,
        None => Tip::default(),
    };
    let mut branch = None;
    // The branch may have been renamed or deleted since, so it is looked up by the node: the oldest
    // branch with the node on its path.
    for branch_row in branch::list_branches(conn, conversation.no)? {
        if is_on_path(conn, conversation.no, branch_row.tip.position, tip.position)? {
            branch = Some(branch_row.name);
            break;
        }
    }
    Ok(Appended {
        replayed: true,
        ..append_result(conversation, request, &tip, branch, false)
    })
}

fn append_result(
    conversation: &ConversationRow,
    request: &AppendRequest,
    tip: &Tip,
    branch: Option<BranchName>,
    sibling: bool,
) -> Appended {
    let depth = u64::from(tip.position.depth);
    let blobs = request.blobs.iter();
    Appended {
        head: tip.node,
        first: depth + 1 - request.items.len() as u64,
        depth,
        messages: u64::from(tip.messages),
        turns: u64::from(tip.turns),
        nodes: request.items.iter().map(|item| item.id).collect(),
        branch,
        on_sibling_branch: sibling,
        replayed: false,
        blobs: blobs
            .map(|bytes| BlobId::of(&conversation.owner, bytes))
            .collect(),
        versions: Vec::new(),
    }
}

fn resolve_target(
    conn: &Connection,
    conversation: &ConversationRow,
    request: &AppendRequest,
) -> Result<ResolvedTarget, RowError> {
    let branch_row = match &request.at {
        AppendPoint::Head { branch, .. } | AppendPoint::Tip { branch } => {
            branch::by_name(conn, conversation.no, branch)?
        }
        AppendPoint::New(_) => None,
    };
    let facts = branch_row.as_ref().map(|branch_row| BranchFacts {
        head: branch_row.tip.node,
        fence: branch_row.fence,
    });
    let (new, sibling) = match (rules::append_target(request, facts)?, branch_row) {
        (AppendTarget::Extend, Some(branch_row)) => return Ok(ResolvedTarget::Extend(branch_row)),
        // Cannot happen: the rules extend only a branch whose facts they were given. An error
        // instead of a panic.
        (AppendTarget::Extend, None) => return Err(Error::not_found(EntityKind::Branch, "").into()),
        (AppendTarget::Open(new), _) => (new, false),
        (AppendTarget::Sibling(new), _) => (new, true),
    };
    Ok(ResolvedTarget::Open {
        name: branch::resolve_label(conn, conversation.no, &new.label)?,
        tip: branch::base_tip(conn, conversation.no, &new)?,
        new,
        sibling,
    })
}

/// Checks that `answers` names an earlier item or a node on the path, and `copied_from` any existing node.
fn check_references(
    conn: &Connection,
    conversation: &ConversationRow,
    items: &[NewItem],
    end: NodePosition,
) -> Result<(), RowError> {
    let mut before = BTreeSet::new();
    for item in items {
        if let Some(call) = item.answers
            && !before.contains(&call)
        {
            let position = node_row::load_tip(conn, conversation.no, call)?.position;
            if !is_on_path(conn, conversation.no, end, position)? {
                return Err(Error::not_found(EntityKind::Node, call).into());
            }
        }
        if let Some(source) = item.copied_from {
            node_row::load_tip(conn, conversation.no, source)?;
        }
        before.insert(item.id);
    }
    Ok(())
}

/// Returns those of the message ids that are on the path to `end`, on nodes that have an audience.
fn messages_on_path(
    conn: &Connection,
    conversation: &ConversationRow,
    message_ids: &BTreeSet<MessageId>,
    end: NodePosition,
) -> Result<BTreeSet<MessageId>, RowError> {
    let mut on_path = BTreeSet::new();
    for id in message_ids {
        // Highest key first: a message that is continued usually has its last node near the head.
        for position in node_row::visible_positions(conn, conversation.no, id)? {
            if is_on_path(conn, conversation.no, end, position)? {
                on_path.insert(id.clone());
                break;
            }
        }
    }
    Ok(on_path)
}

/// Writes an append that the rules have accepted.
fn write_append(
    conn: &Connection,
    conversation: &mut ConversationRow,
    decided: &DecidedAppend<'_>,
    target: ResolvedTarget,
) -> Result<Appended, RowError> {
    let request = &decided.prepared.request;
    // First, because it can still be refused: its id may be taken and its base unknown.
    if let Some(record) = &request.response {
        response::insert_response(conn, conversation, record)?;
    }
    for bytes in &request.blobs {
        blob::put_blob(conn, conversation, bytes)?;
    }
    let (mut branch_row, sibling) = open_target(conn, conversation, target, request.at_ms)?;
    insert_items(conn, conversation, decided, &mut branch_row)?;
    // In the same transaction as the node: a reader sees the running response or the finished one,
    // never both and never neither.
    if let Some(claim) = request.ends_stream {
        streams::complete_stream(conn, conversation, claim, request.at_ms)?;
    }
    let entries = request.entries.iter();
    let versions =
        entries.map(|(scope, put)| key_values::put_entry(conn, &conversation.owner, scope, put));
    let versions = versions.collect::<Result<Vec<_>, _>>()?;
    move_head(conn, conversation, request, &branch_row)?;
    conversation.save(conn)?;
    Ok(Appended {
        versions,
        ..append_result(
            conversation,
            request,
            &branch_row.tip,
            Some(branch_row.name),
            sibling,
        )
    })
}

/// Returns the branch to extend, and whether it is a sibling; creates the branch if it is new.
fn open_target(
    conn: &Connection,
    conversation: &mut ConversationRow,
    target: ResolvedTarget,
    at_ms: i64,
) -> Result<(BranchRow, bool), RowError> {
    match target {
        ResolvedTarget::Extend(branch_row) => Ok((branch_row, false)),
        ResolvedTarget::Open {
            name,
            tip,
            new,
            sibling,
        } => {
            let branch_row = branch::create_branch(conn, conversation, name, tip, &new, at_ms)?;
            Ok((branch_row, sibling))
        }
    }
}

/// Saves the head that the items moved and counts the items; the caller must save the conversation's row
/// afterwards.
fn move_head(
    conn: &Connection,
    conversation: &mut ConversationRow,
    request: &AppendRequest,
    branch_row: &BranchRow,
) -> Result<(), RowError> {
    let count = request.items.len() as u64;
    // An append without items only opens a branch: no head moves.
    let (Some(head), 1..) = (branch_row.tip.node, count) else {
        return Ok(());
    };
    let kind = EventKind::Appended {
        branch: branch_row.name.clone(),
        head,
        count,
    };
    event::record_event(conn, conversation, request.at_ms, &kind)?;
    conversation.nodes = conversation.nodes.saturating_add(small_counter(count));
    branch::save_head(conn, conversation.no, branch_row)
}

/// Inserts the items after the head of `branch_row`, with their search terms and path marks, and moves the head
/// in `branch_row`; the caller must still save that row.
fn insert_items(
    conn: &Connection,
    conversation: &mut ConversationRow,
    decided: &DecidedAppend<'_>,
    branch_row: &mut BranchRow,
) -> Result<(), RowError> {
    let request = &decided.prepared.request;
    let root_before = branch_row.tip.root_no;
    let marks = path_index::by_node(&request.paths);
    let items = request.items.iter().zip(&decided.prepared.items);
    let items = items.zip(decided.counters);
    for (index, ((item, prepared), counters)) in items.enumerate() {
        // Items before `patch.from` keep the earlier state, so that a rewind to one of them does
        // not see the change.
        let root_no = match index < request.patch.from {
            true => root_before,
            false => decided.root_no,
        };
        let remaining = request.items.len() - index;
        let seq = next_seq(conn, conversation, branch_row, remaining)?;
        let slot = NodeSlot {
            seq,
            segment: branch_row.segment,
            counters: *counters,
            root_no,
            fence: request.fence,
        };
        node_row::insert_node(conn, conversation.no, &slot, item, prepared)?;
        index::index_node(conn, conversation.no, seq, &prepared.terms)?;
        branch_row.tip = Tip::after_item(branch_row.segment, item.id, counters, root_no);
        if let Some(marks) = marks.get(&item.id) {
            path_index::add_marks(conn, conversation, marks, branch_row.tip.position)?;
        }
    }
    Ok(())
}

/// Returns the key of the branch's next node; opens a segment if the branch has none or its last one is
/// full. `remaining`: how many nodes are still to be inserted.
fn next_seq(
    conn: &Connection,
    conversation: &mut ConversationRow,
    branch_row: &mut BranchRow,
    remaining: usize,
) -> Result<u32, RowError> {
    if branch_row.segment == 0 || branch_row.next_seq == branch_row.end_seq {
        let wanted = u32::try_from(remaining)
            .unwrap_or(MAX_CAPACITY)
            .checked_next_power_of_two()
            .unwrap_or(MAX_CAPACITY)
            .max(FIRST_CAPACITY);
        // Capacity costs no space: positions are reserved keys, and unused keys take no room in a
        // B-tree.
        let doubled = match branch_row.segment {
            0 => FIRST_CAPACITY,
            _ => segment_capacity(conn, conversation.no, branch_row.segment)?.saturating_mul(2),
        };
        let capacity = wanted.max(doubled).min(MAX_CAPACITY);
        let number = next_number(&mut conversation.next_segment, 1, "segments")?;
        // All keys of a segment are reserved at once. A branch that grows at the same time gets
        // other keys, so each segment is one key range.
        let first = next_number(&mut conversation.next_seq, capacity, "positions")?;
        insert_segment(
            conn,
            conversation.no,
            number,
            branch_row.tip.position,
            first,
            capacity,
            branch_row.no,
        )?;
        (branch_row.segment, branch_row.next_seq, branch_row.end_seq) =
            (number, first, first + capacity);
    }
    let seq = branch_row.next_seq;
    branch_row.next_seq += 1;
    Ok(seq)
}

fn segment_capacity(
    conn: &Connection,
    conversation_no: u32,
    segment: u32,
) -> Result<u32, RowError> {
    Ok(conn
        .prepare_cached("SELECT capacity FROM segments WHERE id = ?")?
        .query_row([packed_key(conversation_no, segment)], |row| row.get(0))?)
}
