//! Appending: gather facts, let the rules decide, write.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ConversationId, NodeId, Owner};
use contexture_store::rules::{self, BranchFacts, Counters, Landing};
use contexture_store::{
    AppendAt, AppendRequest, Appended, BlobId, Error, EventKind, Limits, NewBranch, Thing,
};
use futures_util::future::{try_join, try_join3};

use crate::blob;
use crate::branch::{self, BranchRow};
use crate::conv::{Conv, Key, take};
use crate::event;
use crate::fault::Fault;
use crate::key_value;
use crate::node_row::{self, Known, Slots};
use crate::path::{Position, Tip, contains, insert_segment};
use crate::path_index;
use crate::response;
use crate::search_index;
use crate::state::{self, Loaded};
use crate::stream;
use crate::tx::Tx;

/// Where the items go.
enum Target {
    Extend(BranchRow),
    Open { new: NewBranch, sibling: bool },
}

/// Appends; `request` is within the limits already, `terms` are those of its items.
pub(crate) async fn append(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &AppendRequest,
    terms: &[String],
    limits: &Limits,
) -> Result<Appended, Fault> {
    let key = Key::of(owner, id).bytes();
    let (mut conv, row, known) = try_join3(
        Conv::lock(tx, owner, id),
        named_branch(tx, key, request),
        node_row::known(tx, key, named_nodes(request)),
    )
    .await?;
    let stored = node_row::stored(&request.items, &known);
    if rules::replay(&request.items, &stored)? {
        return replayed(tx, &conv, request).await;
    }
    let target = target(request, row)?;
    let (name, tip) = match &target {
        Target::Extend(row) => (row.name.clone(), row.tip.clone()),
        Target::Open { new, .. } => {
            try_join(
                branch::label(tx, key, &new.label),
                branch::base(tx, key, new),
            )
            .await?
        }
    };
    let (counters, root) = facts(tx, &conv, request, &known, &tip).await?;
    let merged = rules::merge(&root.root, &request.patch, limits)?;
    let root_no = match merged {
        Some(merged) => state::store(tx, &mut conv, &root, merged)?,
        None => tip.root_no,
    };
    if let Some(record) = &request.response {
        response::insert(tx, &conv, record).await?;
    }
    let blobs = request.blobs.iter();
    let blobs = blobs.map(|bytes| blob::insert(tx, &conv, bytes)).collect();
    let (row, sibling) = match target {
        Target::Extend(row) => (row, false),
        Target::Open { new, sibling } => (
            branch::open(tx, &mut conv, name, tip, &new, request.at_ms)?,
            sibling,
        ),
    };
    if let Some(claim) = request.ends_stream {
        stream::end(tx, &conv, claim, request.at_ms).await?;
    }
    let versions = key_value::put_all(tx, owner, &request.entries).await?;
    let before = row.tip.position.depth;
    let row = write_items(tx, &mut conv, request, row, root_no, &counters)?;
    let after = Position {
        segment: row.segment,
        depth: before,
    };
    search_index::add(tx, &conv, after, request, terms);
    path_index::add(tx, &conv, &request.paths);
    conv.save(tx);
    Ok(Appended {
        branch: Some(row.name),
        sibling,
        blobs,
        versions,
        ..appended(request, &row.tip)
    })
}

/// The branch that the request names, if there is one.
async fn named_branch(
    tx: &Tx<'_>,
    key: [u8; 16],
    request: &AppendRequest,
) -> Result<Option<BranchRow>, Fault> {
    match &request.at {
        AppendAt::Head { branch, .. } | AppendAt::Tip { branch } => {
            branch::by_name(tx, key, branch).await
        }
        AppendAt::New(_) => Ok(None),
    }
}

/// The nodes that the request names: those it makes, if they are stored already, and those it
/// refers to.
fn named_nodes(request: &AppendRequest) -> Vec<NodeId> {
    let named = request.items.iter();
    let named = named.flat_map(|item| [Some(item.id), item.answers, item.copied_from]);
    let named: BTreeSet<NodeId> = named.flatten().collect();
    named.into_iter().collect()
}

async fn replayed(tx: &Tx<'_>, conv: &Conv, request: &AppendRequest) -> Result<Appended, Fault> {
    let last = async {
        match request.items.last() {
            Some(item) => node_row::tip(tx, conv.key, item.id).await,
            None => Ok(Tip::default()),
        }
    };
    let (last, branches) = try_join(last, branch::all(tx, conv.key)).await?;
    let mut branch = None;
    for row in branches {
        let path = row.tip.stretches(tx, conv.key, last.position.depth).await?;
        if contains(&path, last.position) {
            branch = Some(row.name);
            break;
        }
    }
    let blobs = request.blobs.iter();
    Ok(Appended {
        replayed: true,
        branch,
        blobs: blobs.map(|bytes| BlobId::of(&conv.owner, bytes)).collect(),
        ..appended(request, &last)
    })
}

fn appended(request: &AppendRequest, tip: &Tip) -> Appended {
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

fn target(request: &AppendRequest, row: Option<BranchRow>) -> Result<Target, Fault> {
    let facts = row.as_ref().map(|row| BranchFacts {
        head: row.tip.node,
        fence: row.fence,
    });
    Ok(match (rules::land(request, facts)?, row) {
        (Landing::Extend, Some(row)) => Target::Extend(row),
        (Landing::Extend, None) => return Err(Error::not_found(Thing::Branch, "").into()),
        (Landing::Open(new), _) => Target::Open {
            new,
            sibling: false,
        },
        (Landing::Sibling(new), _) => Target::Open { new, sibling: true },
    })
}

/// What depends on the place: whether references hold, the counters after each item, the state.
async fn facts(
    tx: &Tx<'_>,
    conv: &Conv,
    request: &AppendRequest,
    known: &BTreeMap<NodeId, Known>,
    tip: &Tip,
) -> Result<(Vec<Counters>, Loaded), Fault> {
    let answers = references(request, known)?;
    let messages: BTreeSet<&str> = request
        .items
        .iter()
        .filter_map(|item| item.message_id.as_ref().map(|id| id.as_str()))
        .collect();
    let messages: Vec<String> = messages.into_iter().map(str::to_owned).collect();
    let on_path = async {
        if answers.is_empty() && messages.is_empty() {
            return Ok(Vec::new());
        }
        let path = tip.stretches(tx, conv.key, 1).await?;
        for (call, position) in answers {
            if !contains(&path, position) {
                return Err(Error::not_found(Thing::Node, call).into());
            }
        }
        node_row::messages_on_path(tx, conv.key, messages, &path).await
    };
    let root = async {
        match request.patch.is_empty() {
            true => Ok(Loaded::default()),
            false => state::load(tx, conv, tip.root_no).await,
        }
    };
    let (on_path, root) = try_join(on_path, root).await?;
    let on_path = on_path.into_iter().collect();
    Ok((rules::count(tip.counters, &request.items, on_path), root))
}

/// `copied_from` names any node, `answers` an earlier item or a node of the path: these are given.
fn references(
    request: &AppendRequest,
    known: &BTreeMap<NodeId, Known>,
) -> Result<Vec<(NodeId, Position)>, Fault> {
    let position = |id: NodeId| -> Result<Position, Fault> {
        let found = known.get(&id).map(|found| found.position);
        found.ok_or_else(|| Error::not_found(Thing::Node, id).into())
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

/// Writes the items at the end of a branch; gives the branch as it is then.
fn write_items(
    tx: &mut Tx<'_>,
    conv: &mut Conv,
    request: &AppendRequest,
    mut row: BranchRow,
    root_no: i32,
    counters: &[Counters],
) -> Result<BranchRow, Fault> {
    let (Some(last), Some(end)) = (request.items.last(), counters.last()) else {
        return Ok(row);
    };
    if row.segment == 0 {
        row.segment = take(&mut conv.next_segment, 1, "segments")?;
        row.tip.line = insert_segment(tx, conv.key, row.segment, &row.tip, row.no);
    }
    let mut depth = row.tip.position.depth;
    take(&mut depth, request.items.len(), "positions")?;
    take(&mut conv.nodes, request.items.len(), "nodes")?;
    let slots = Slots {
        segment: row.segment,
        fence: request.fence,
        counters,
        roots: (row.tip.root_no, root_no),
        from: request.patch.from,
    };
    node_row::insert(tx, conv.key, &slots, &request.items);
    row.tip = Tip {
        position: Position {
            segment: row.segment,
            depth,
        },
        node: Some(last.id),
        counters: *end,
        root_no,
        line: row.tip.line,
    };
    let kind = EventKind::Appended {
        branch: row.name.clone(),
        head: last.id,
        count: request.items.len() as u64,
    };
    event::record(tx, conv, request.at_ms, &kind);
    branch::save_head(tx, conv.key, &row);
    Ok(row)
}
