//! Appends items: reads what the shared rules need, lets them decide, then writes all rows at once.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{BranchName, ConversationId, NodeId, Owner};
use contexture_store::rules::{self, AppendTarget, BranchFacts, Counters};
use contexture_store::{
    AppendPoint, AppendRequest, Appended, BlobId, EntityKind, Error, EventKind, Limits, NewBranch,
};
use futures_util::future::{try_join, try_join3};

use crate::connection::error::RowError;
use crate::connection::transaction::Tx;
use crate::key_values;
use crate::path_index;
use crate::refs::branch::{self, BranchRow};
use crate::rows::conversation_row::{ConversationKey, ConversationRow, next_number};
use crate::rows::node_row::{self, ExistingNode, NodeSlots};
use crate::rows::path::{NodePosition, Tip, insert_segment, is_on_path};
use crate::rows::state::{self, LoadedRoot};
use crate::rows::{blob, event, response};
use crate::search::index;
use crate::streams;

/// Where the items go.
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
            Self::Extend(row) => &row.tip,
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

/// Appends the items of `request`, which was already checked against the limits; `terms` are the
/// items' search terms.
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
    let (mut conv, row, known) = try_join3(
        ConversationRow::load_for_update(tx, owner, id),
        named_branch(tx, key, request),
        node_row::find_existing_nodes(tx, key, named_nodes(request)),
    )
    .await?;
    // A repeated append is detected before anything else: its first run moved the head, so the
    // later checks would refuse it.
    let stored = node_row::stored_items(&request.items, &known);
    if rules::detect_replay(&request.items, &stored)? {
        return replay_result(tx, &conv, request).await;
    }
    let target = resolve_target(tx, key, request, row).await?;
    // The second round trip reads what depends on the target. Nothing is written yet, so a refusal
    // has nothing to roll back.
    let (counters, root) = prepare_append(tx, &conv, request, &known, target.tip()).await?;
    // The patch is merged into the root at the head as it is now, not as the caller saw it: two
    // appends that change different keys both keep their changes.
    let merged = rules::merge_patch(&root.root, &request.patch, limits)?;
    let root_no = match merged {
        Some(merged) => state::store_root(tx, &mut conv, &root, merged)?,
        // A patch that changes nothing makes no root, so a repeated write of equal values costs no
        // row.
        None => target.tip().root_no,
    };
    let decided = DecidedAppend {
        request,
        terms,
        counters: &counters,
        root_no,
    };
    write_append(tx, &mut conv, &decided, target).await
}

/// Writes what was decided.
async fn write_append(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    decided: &DecidedAppend<'_>,
    target: ResolvedTarget,
) -> Result<Appended, RowError> {
    let request = decided.request;
    if let Some(record) = &request.response {
        response::insert_response(tx, conv, record).await?;
    }
    let blobs = request.blobs.iter();
    let blobs = blobs
        .map(|bytes| blob::insert_blob(tx, conv, bytes))
        .collect();
    let (row, sibling) = open_target(tx, conv, target, request.at_ms)?;
    if let Some(claim) = request.ends_stream {
        streams::complete_stream(tx, conv, claim, request.at_ms).await?;
    }
    // Values outside the tree are rows of the owner, not of this conversation, so they have locks
    // of their own. These are taken last, to be held as briefly as possible.
    let versions = key_values::put_all(tx, &conv.owner, &request.entries).await?;
    let before = row.tip.position.depth;
    let row = write_items(tx, conv, decided, row)?;
    let after = NodePosition {
        segment: row.segment,
        depth: before,
    };
    // In the same transaction as the nodes: a search that follows an acknowledged append finds it.
    index::index_items(tx, conv, after, request, decided.terms);
    path_index::add_marks(tx, conv, &request.paths);
    // The first statement locked the row, so nobody else has allocated numbers from it in the
    // meantime.
    conv.save(tx);
    Ok(Appended {
        branch: Some(row.name),
        sibling,
        blobs,
        versions,
        ..append_result(request, &row.tip)
    })
}

/// Returns the branch to extend, and whether it is a sibling; creates it if it is new.
fn open_target(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    target: ResolvedTarget,
    at_ms: i64,
) -> Result<(BranchRow, bool), RowError> {
    match target {
        ResolvedTarget::Extend(row) => Ok((row, false)),
        ResolvedTarget::Open {
            name,
            tip,
            new,
            sibling,
        } => {
            let row = branch::create_branch(tx, conv, name, tip, &new, at_ms)?;
            Ok((row, sibling))
        }
    }
}

/// The branch that the request names, if there is one.
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

/// The nodes that the request names: its own items, which are stored already if it is a repeat, and
/// those it refers to.
fn named_nodes(request: &AppendRequest) -> Vec<NodeId> {
    let ids = request.items.iter();
    let ids = ids.flat_map(|item| [Some(item.id), item.answers, item.copied_from]);
    let ids: BTreeSet<NodeId> = ids.flatten().collect();
    // Sorted and without duplicates: one array parameter, one statement for all of them.
    ids.into_iter().collect()
}

async fn replay_result(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    request: &AppendRequest,
) -> Result<Appended, RowError> {
    // Joined with the list of branches: each is needed whatever the other returns, and together
    // they cost one round trip.
    let last = async {
        match request.items.last() {
            Some(item) => node_row::load_tip(tx, conv.key, item.id).await,
            None => Ok(Tip::default()),
        }
    };
    let (last, branches) = try_join(last, branch::list_branches(tx, conv.key)).await?;
    let mut branch = None;
    // The branch may have been renamed or deleted since, so it is looked for by the node. Of the
    // branches whose path has the node, the oldest is returned.
    for row in branches {
        let path = row
            .tip
            .load_stretches(tx, conv.key, last.position.depth)
            .await?;
        if is_on_path(&path, last.position) {
            branch = Some(row.name);
            break;
        }
    }
    let blobs = request.blobs.iter();
    Ok(Appended {
        replayed: true,
        branch,
        blobs: blobs.map(|bytes| BlobId::of(&conv.owner, bytes)).collect(),
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
        sibling: false,
        replayed: false,
        blobs: Vec::new(),
        versions: Vec::new(),
    }
}

async fn resolve_target(
    tx: &Tx<'_>,
    key: [u8; 16],
    request: &AppendRequest,
    row: Option<BranchRow>,
) -> Result<ResolvedTarget, RowError> {
    let facts = row.as_ref().map(|row| BranchFacts {
        head: row.tip.node,
        fence: row.fence,
    });
    let (new, sibling) = match (rules::append_target(request, facts)?, row) {
        (AppendTarget::Extend, Some(row)) => return Ok(ResolvedTarget::Extend(row)),
        // Cannot happen: the rules extend only a branch whose facts they were given. An error keeps
        // this free of panics.
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
    conv: &ConversationRow,
    request: &AppendRequest,
    known: &BTreeMap<NodeId, ExistingNode>,
    tip: &Tip,
) -> Result<(Vec<Counters>, LoadedRoot), RowError> {
    let answers = check_references(request, known)?;
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
        let path = tip.load_stretches(tx, conv.key, 1).await?;
        for (call, position) in answers {
            if !is_on_path(&path, position) {
                return Err(Error::not_found(EntityKind::Node, call).into());
            }
        }
        node_row::messages_on_path(tx, conv.key, messages, &path).await
    };
    let root = async {
        match request.patch.is_empty() {
            // Without a patch the root stays that of the tip and need not be read.
            true => Ok(LoadedRoot::default()),
            false => state::load_root(tx, conv, tip.root_no).await,
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
/// item of the request or a node on the path. Returns the latter with their positions, for a check
/// of the path.
fn check_references(
    request: &AppendRequest,
    known: &BTreeMap<NodeId, ExistingNode>,
) -> Result<Vec<(NodeId, NodePosition)>, RowError> {
    let position = |id: NodeId| -> Result<NodePosition, RowError> {
        let found = known.get(&id).map(|found| found.position);
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
    conv: &mut ConversationRow,
    decided: &DecidedAppend<'_>,
    mut row: BranchRow,
) -> Result<BranchRow, RowError> {
    let DecidedAppend {
        request,
        counters,
        root_no,
        ..
    } = *decided;
    let (Some(last), Some(end)) = (request.items.last(), counters.last()) else {
        return Ok(row);
    };
    // A segment is unbounded here, unlike in SQLite: positions are columns of the key and need not
    // be reserved.
    if row.segment == 0 {
        row.segment = next_number(&mut conv.next_segment, 1, "segments")?;
        row.tip.line = insert_segment(tx, conv.key, row.segment, &row.tip, row.no);
    }
    let mut depth = row.tip.position.depth;
    // `next_number` checks the range, because the column is a 32-bit integer.
    next_number(&mut depth, request.items.len(), "positions")?;
    next_number(&mut conv.nodes, request.items.len(), "nodes")?;
    let slots = NodeSlots {
        segment: row.segment,
        fence: request.fence,
        counters,
        roots: (row.tip.root_no, root_no),
        from: request.patch.from,
    };
    node_row::insert_nodes(tx, conv.key, &slots, &request.items);
    row.tip = Tip {
        position: NodePosition {
            segment: row.segment,
            depth,
        },
        node: Some(last.id),
        counters: *end,
        root_no,
        line: row.tip.line,
    };
    move_head(tx, conv, request, &row, last.id);
    Ok(row)
}

/// Records the append as an event and saves the new head; the caller must save the conversation's
/// row afterwards.
fn move_head(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    request: &AppendRequest,
    row: &BranchRow,
    head: NodeId,
) {
    let kind = EventKind::Appended {
        branch: row.name.clone(),
        head,
        count: request.items.len() as u64,
    };
    event::record_event(tx, conv, request.at_ms, &kind);
    branch::save_head(tx, conv.key, row);
}
