//! Appends: reads the facts, applies the shared rules, then writes all rows of one append.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{BranchName, ConversationId, NodeId, Owner};
use contexture_store::rules::{self, AppendTarget, BranchFacts, Counters};
use contexture_store::{
    AppendPoint, AppendRequest, Appended, BlobId, EntityKind, Error, EventKind, Limits, NewBranch,
};
use futures_util::future::{try_join, try_join3};

use crate::calls;
use crate::connection::error::RowError;
use crate::connection::transaction::Tx;
use crate::key_values;
use crate::path_index;
use crate::processes;
use crate::refs::branch::{self, BranchRow};
use crate::rows::conversation_row::{ConversationKey, ConversationRow, next_number};
use crate::rows::node_row::{self, ExistingNode, NodeSlots};
use crate::rows::path::{NodePosition, Tip, insert_segment, is_on_path};
use crate::rows::state::{self, LoadedRoot};
use crate::rows::{blob, event, response};
use crate::search::index;
use crate::streams;

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
    fn tip(&self) -> &Tip {
        match self {
            Self::Extend(branch_row) => &branch_row.tip,
            Self::Open { tip, .. } => tip,
        }
    }
}

/// What [`write_append`] writes, once the rules have accepted it.
struct DecidedAppend<'a> {
    request: &'a AppendRequest,
    /// The search terms of each item, for the full-text index.
    terms: &'a [String],
    /// The counters after each item.
    counters: &'a [Counters],
    /// The number of the state root after the patch.
    root_no: i32,
}

/// Appends the items of `request`.
///
/// The caller has checked the request against the limits; `terms` are the items' search terms.
pub(crate) async fn append_items(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &AppendRequest,
    terms: &[String],
    limits: &Limits,
) -> Result<Appended, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    // One round trip: the lock on the conversation's row is sent first, and the server runs the
    // statements of a connection in order, so the others read under the lock.
    let (mut conversation, branch_row, existing_nodes) = try_join3(
        ConversationRow::load_for_update(tx, owner, id),
        named_branch(tx, key, request),
        node_row::find_existing_nodes(tx, key, named_nodes(request)),
    )
    .await?;
    // Also for a repetition; sent with the commit, so not for an append that is refused.
    if let Some(change) = request.exchange {
        processes::change_exchange(tx, &conversation, change);
    }
    if let Some(call) = &request.call {
        calls::insert_call(tx, owner, conversation.key, call);
    }
    // Before all other checks: the first run of a repeated append has moved the head, so they would
    // refuse the repetition.
    let stored = node_row::stored_items(&request.items, &existing_nodes);
    if rules::detect_replay(&request.items, &stored)? {
        return replay_result(tx, &conversation, request).await;
    }
    let target = resolve_target(tx, key, request, branch_row).await?;
    // The second round trip reads what depends on the target.
    let (counters, root) =
        prepare_append(tx, &conversation, request, &existing_nodes, target.tip()).await?;
    // The patch is merged into the root at the head as it is now, not as the caller saw it: two
    // appends that change different keys both keep their changes.
    let merged = rules::merge_patch(&root.root, &request.patch, limits)?;
    let root_no = match merged {
        Some(merged) => state::store_root(tx, &mut conversation, &root, merged)?,
        // A patch that changes nothing creates no root, so a repeated write of equal values adds no
        // row.
        None => target.tip().root_no,
    };
    let decided = DecidedAppend {
        request,
        terms,
        counters: &counters,
        root_no,
    };
    write_append(tx, &mut conversation, &decided, target).await
}

/// Writes an append that the rules have accepted.
async fn write_append(
    tx: &mut Tx<'_>,
    conversation: &mut ConversationRow,
    decided: &DecidedAppend<'_>,
    target: ResolvedTarget,
) -> Result<Appended, RowError> {
    let request = decided.request;
    if let Some(record) = &request.response {
        response::insert_response(tx, conversation, record).await?;
    }
    let blobs = request.blobs.iter();
    let blobs = blobs
        .map(|bytes| blob::insert_blob(tx, conversation, bytes))
        .collect();
    let (branch_row, sibling) = open_target(tx, conversation, target, request.at_ms)?;
    if let Some(claim) = request.ends_stream {
        streams::complete_stream(tx, conversation, claim, request.at_ms).await?;
    }
    // Values outside the tree may belong to the owner, so their rows have locks of their own. These
    // are taken last, to be held as briefly as possible.
    let versions = key_values::put_all(tx, &conversation.owner, &request.entries).await?;
    let before = branch_row.tip.position.depth;
    let branch_row = write_items(tx, conversation, decided, branch_row)?;
    let after = NodePosition {
        segment: branch_row.segment,
        depth: before,
    };
    // In the same transaction as the nodes: a search that follows an acknowledged append finds it.
    index::index_items(tx, conversation, after, request, decided.terms);
    path_index::add_marks(tx, conversation, &request.paths);
    // The first statement locked the row, so nobody else has taken numbers from it meanwhile.
    conversation.save(tx);
    Ok(Appended {
        branch: Some(branch_row.name),
        on_sibling_branch: sibling,
        blobs,
        versions,
        ..append_result(request, &branch_row.tip)
    })
}

/// Returns the branch to extend, and whether it is a sibling; creates it if it is new.
fn open_target(
    tx: &mut Tx<'_>,
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
            let branch_row = branch::create_branch(tx, conversation, name, tip, &new, at_ms)?;
            Ok((branch_row, sibling))
        }
    }
}

/// Reads the branch that the request names, if there is one.
async fn named_branch(
    tx: &Tx<'_>,
    key: [u8; 16],
    request: &AppendRequest,
) -> Result<Option<BranchRow>, RowError> {
    match &request.at {
        AppendPoint::Head { branch, .. } | AppendPoint::Tip { branch } => {
            branch::by_name(tx, key, branch).await
        }
        AppendPoint::New(_) => Ok(None),
    }
}

/// Collects the ids that the request names: those of its own items, which exist if it is a
/// repetition, and those that it refers to.
fn named_nodes(request: &AppendRequest) -> Vec<NodeId> {
    let ids = request.items.iter();
    let ids = ids.flat_map(|item| [Some(item.id), item.answers, item.copied_from]);
    let ids: BTreeSet<NodeId> = ids.flatten().collect();
    // Sorted and without duplicates: one array parameter, one statement for all of them.
    ids.into_iter().collect()
}

async fn replay_result(
    tx: &Tx<'_>,
    conversation: &ConversationRow,
    request: &AppendRequest,
) -> Result<Appended, RowError> {
    // Read concurrently with the branches: one round trip for both.
    let last = async {
        match request.items.last() {
            Some(item) => node_row::load_tip(tx, conversation.key, item.id).await,
            None => Ok(Tip::default()),
        }
    };
    let (last, branches) = try_join(last, branch::list_branches(tx, conversation.key)).await?;
    let mut branch = None;
    // The branch may have been renamed or deleted since, so it is looked up by the node: the oldest
    // branch with the node on its path.
    for branch_row in branches {
        let path = branch_row
            .tip
            .load_stretches(tx, conversation.key, last.position.depth)
            .await?;
        if is_on_path(&path, last.position) {
            branch = Some(branch_row.name);
            break;
        }
    }
    let blobs = request.blobs.iter();
    Ok(Appended {
        replayed: true,
        branch,
        blobs: blobs
            .map(|bytes| BlobId::of(&conversation.owner, bytes))
            .collect(),
        ..append_result(request, &last)
    })
}

fn append_result(request: &AppendRequest, tip: &Tip) -> Appended {
    let counters = tip.counters;
    Appended {
        head: tip.node,
        first: counters.depth + 1 - request.items.len() as u64,
        depth: counters.depth,
        messages: counters.messages,
        turns: counters.turns,
        nodes: request.items.iter().map(|item| item.id).collect(),
        branch: None,
        on_sibling_branch: false,
        replayed: false,
        blobs: Vec::new(),
        versions: Vec::new(),
    }
}

async fn resolve_target(
    tx: &Tx<'_>,
    key: [u8; 16],
    request: &AppendRequest,
    branch_row: Option<BranchRow>,
) -> Result<ResolvedTarget, RowError> {
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
    let (name, tip) = try_join(
        branch::resolve_label(tx, key, &new.label),
        branch::base_tip(tx, key, &new),
    )
    .await?;
    Ok(ResolvedTarget::Open {
        name,
        tip,
        new,
        sibling,
    })
}

/// Checks the references, and reads what depends on the target: the counters after each item, and
/// the state root.
async fn prepare_append(
    tx: &Tx<'_>,
    conversation: &ConversationRow,
    request: &AppendRequest,
    existing_nodes: &BTreeMap<NodeId, ExistingNode>,
    tip: &Tip,
) -> Result<(Vec<Counters>, LoadedRoot), RowError> {
    let answers = check_references(request, existing_nodes)?;
    let messages: BTreeSet<&str> = request
        .items
        .iter()
        .filter_map(|item| item.message_id.as_ref().map(|id| id.as_str()))
        .collect();
    let messages: Vec<String> = messages.into_iter().map(str::to_owned).collect();
    let on_path = async {
        // Most appends refer to nothing on the path, so its stretches need not be loaded.
        if answers.is_empty() && messages.is_empty() {
            return Ok(Vec::new());
        }
        let path = tip.load_stretches(tx, conversation.key, 1).await?;
        for (call, position) in answers {
            if !is_on_path(&path, position) {
                return Err(Error::not_found(EntityKind::Node, call).into());
            }
        }
        node_row::messages_on_path(tx, conversation.key, messages, &path).await
    };
    let root = async {
        match request.patch.is_empty() {
            // Without a patch the root stays that of the tip and need not be read.
            true => Ok(LoadedRoot::default()),
            false => state::load_root(tx, conversation, tip.root_no).await,
        }
    };
    let (on_path, root) = try_join(on_path, root).await?;
    let on_path = on_path.into_iter().collect();
    Ok((
        rules::counters_after_each(tip.counters, &request.items, on_path),
        root,
    ))
}

/// Checks that the nodes referred to exist: `copied_from` may name any node, `answers` an earlier
/// item of the request or a node on the path. Returns the answered nodes that are not items of the
/// request, with their positions, so that the caller can check the path.
fn check_references(
    request: &AppendRequest,
    existing_nodes: &BTreeMap<NodeId, ExistingNode>,
) -> Result<Vec<(NodeId, NodePosition)>, RowError> {
    let position = |id: NodeId| -> Result<NodePosition, RowError> {
        let found = existing_nodes.get(&id).map(|found| found.position);
        found.ok_or_else(|| Error::not_found(EntityKind::Node, id).into())
    };
    let mut answers = Vec::new();
    let mut before = BTreeSet::new();
    for item in &request.items {
        if let Some(call) = item.answers
            && !before.contains(&call)
        {
            answers.push((call, position(call)?));
        }
        if let Some(source) = item.copied_from {
            position(source)?;
        }
        before.insert(item.id);
    }
    Ok(answers)
}

/// Writes the items at the end of a branch; returns the branch as it is afterwards.
fn write_items(
    tx: &mut Tx<'_>,
    conversation: &mut ConversationRow,
    decided: &DecidedAppend<'_>,
    mut branch_row: BranchRow,
) -> Result<BranchRow, RowError> {
    let DecidedAppend {
        request,
        counters,
        root_no,
        ..
    } = *decided;
    let (Some(last), Some(end)) = (request.items.last(), counters.last()) else {
        return Ok(branch_row);
    };
    // Segments are unbounded here, unlike in SQLite: positions are columns of the key and need not
    // be reserved.
    if branch_row.segment == 0 {
        branch_row.segment = next_number(&mut conversation.next_segment, 1, "segments")?;
        branch_row.tip.line = insert_segment(
            tx,
            conversation.key,
            branch_row.segment,
            &branch_row.tip,
            branch_row.no,
        );
    }
    let mut depth = branch_row.tip.position.depth;
    // `next_number` checks the range, because the column is a 32-bit integer.
    next_number(&mut depth, request.items.len(), "positions")?;
    next_number(&mut conversation.nodes, request.items.len(), "nodes")?;
    let slots = NodeSlots {
        segment: branch_row.segment,
        fence: request.fence,
        counters,
        roots: (branch_row.tip.root_no, root_no),
        from: request.patch.from,
    };
    node_row::insert_nodes(tx, conversation.key, &slots, &request.items);
    branch_row.tip = Tip {
        position: NodePosition {
            segment: branch_row.segment,
            depth,
        },
        node: Some(last.id),
        counters: *end,
        root_no,
        line: branch_row.tip.line,
    };
    move_head(tx, conversation, request, &branch_row, last.id);
    Ok(branch_row)
}

/// Records the append as an event and saves the new head; the caller must save the conversation's
/// row afterwards.
fn move_head(
    tx: &mut Tx<'_>,
    conversation: &mut ConversationRow,
    request: &AppendRequest,
    branch_row: &BranchRow,
    head: NodeId,
) {
    let kind = EventKind::Appended {
        branch: branch_row.name.clone(),
        head,
        count: request.items.len() as u64,
    };
    event::record_event(tx, conversation, request.at_ms, &kind);
    branch::save_head(tx, conversation.key, branch_row);
}
