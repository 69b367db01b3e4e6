//! Appending: gather facts, let the rules decide, write.

use std::collections::BTreeSet;

use contexture_ir::{BranchName, MessageId};
use contexture_store::rules::{self, BranchFacts, Counters, Landing};
use contexture_store::{
    AppendAt, AppendRequest, Appended, BlobId, Error, EventKind, Limits, NewBranch, NewItem, Thing,
};
use rusqlite::Connection;

use crate::blob;
use crate::branch::{self, BranchRow};
use crate::conv::{Conv, take};
use crate::event;
use crate::fault::Fault;
use crate::key_value;
use crate::node_row::{self, Slot, small};
use crate::path::{Position, Tip, insert_segment, on_path};
use crate::path_index;
use crate::response;
use crate::search;
use crate::state;
use crate::stream;

/// Positions a branch's first segment gets, and the most that a later one gets. Each further
/// segment of a branch doubles, so that a branch of a million nodes is a path of a dozen segments
/// even if another branch grows beside it.
const FIRST_CAPACITY: u32 = 64;
const MAX_CAPACITY: u32 = 1 << 20;

/// Where the items go.
enum Target {
    Extend(BranchRow),
    Open {
        name: BranchName,
        tip: Tip,
        new: NewBranch,
        sibling: bool,
    },
}

impl Target {
    fn tip(&self) -> Tip {
        match self {
            Self::Extend(row) => row.tip,
            Self::Open { tip, .. } => *tip,
        }
    }
}

/// Appends; `request` is within the limits already, `terms` are those of its items.
pub(crate) fn append(
    conn: &Connection,
    conv: &mut Conv,
    request: &AppendRequest,
    terms: &[String],
    limits: &Limits,
) -> Result<Appended, Fault> {
    let stored = request.items.iter();
    let stored = stored.map(|item| node_row::stored(conn, conv.no, item.id));
    if rules::replay(&request.items, &stored.collect::<Result<Vec<_>, _>>()?)? {
        return replayed(conn, conv, request);
    }
    let target = target(conn, conv, request)?;
    let tip = target.tip();
    check_references(conn, conv, &request.items, tip.position)?;
    let counters = rules::count(
        tip.counters(),
        &request.items,
        messages_on_path(conn, conv, &request.items, tip.position)?,
    );
    let root_no = if request.patch.is_empty() {
        tip.root_no
    } else {
        let loaded = state::load(conn, conv, tip.root_no)?;
        match rules::merge(&loaded.root, &request.patch, limits)? {
            Some(merged) => state::store(conn, conv, tip.root_no, loaded.since_whole, &merged)?,
            None => tip.root_no,
        }
    };
    write(conn, conv, request, terms, target, root_no, &counters)
}

fn replayed(conn: &Connection, conv: &Conv, request: &AppendRequest) -> Result<Appended, Fault> {
    let last = request.items.last().map(|item| item.id);
    let tip = match last {
        Some(id) => node_row::tip(conn, conv.no, id)?,
        None => Tip::default(),
    };
    let mut branch = None;
    for row in branch::all(conn, conv.no)? {
        if on_path(conn, conv.no, row.tip.position, tip.position)? {
            branch = Some(row.name);
            break;
        }
    }
    Ok(Appended {
        replayed: true,
        ..appended(conv, request, &tip, branch, false)
    })
}

fn appended(
    conv: &Conv,
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
        sibling,
        replayed: false,
        blobs: blobs.map(|bytes| BlobId::of(&conv.owner, bytes)).collect(),
        versions: Vec::new(),
    }
}

fn target(conn: &Connection, conv: &Conv, request: &AppendRequest) -> Result<Target, Fault> {
    let row = match &request.at {
        AppendAt::Head { branch, .. } | AppendAt::Tip { branch } => {
            branch::by_name(conn, conv.no, branch)?
        }
        AppendAt::New(_) => None,
    };
    let facts = row.as_ref().map(|row| BranchFacts {
        head: row.tip.node,
        fence: row.fence,
    });
    let (new, sibling) = match (rules::land(request, facts)?, row) {
        (Landing::Extend, Some(row)) => return Ok(Target::Extend(row)),
        (Landing::Extend, None) => return Err(Error::not_found(Thing::Branch, "").into()),
        (Landing::Open(new), _) => (new, false),
        (Landing::Sibling(new), _) => (new, true),
    };
    Ok(Target::Open {
        name: branch::label(conn, conv.no, &new.label)?,
        tip: branch::base(conn, conv.no, &new)?,
        new,
        sibling,
    })
}

/// `answers` names an earlier item or a node on the path, `copied_from` any node.
fn check_references(
    conn: &Connection,
    conv: &Conv,
    items: &[NewItem],
    end: Position,
) -> Result<(), Fault> {
    let mut before = BTreeSet::new();
    for item in items {
        if let Some(call) = item.answers
            && !before.contains(&call)
        {
            let position = node_row::tip(conn, conv.no, call)?.position;
            if !on_path(conn, conv.no, end, position)? {
                return Err(Error::not_found(Thing::Node, call).into());
            }
        }
        if let Some(source) = item.copied_from {
            node_row::tip(conn, conv.no, source)?;
        }
        before.insert(item.id);
    }
    Ok(())
}

fn messages_on_path(
    conn: &Connection,
    conv: &Conv,
    items: &[NewItem],
    end: Position,
) -> Result<BTreeSet<MessageId>, Fault> {
    let asked: BTreeSet<&MessageId> = items
        .iter()
        .filter_map(|item| item.message_id.as_ref())
        .collect();
    let mut found = BTreeSet::new();
    for id in asked {
        for position in node_row::seen_positions(conn, conv.no, id)? {
            if on_path(conn, conv.no, end, position)? {
                found.insert(id.clone());
                break;
            }
        }
    }
    Ok(found)
}

/// Writes what was decided.
fn write(
    conn: &Connection,
    conv: &mut Conv,
    request: &AppendRequest,
    terms: &[String],
    target: Target,
    root_no: u32,
    counters: &[Counters],
) -> Result<Appended, Fault> {
    if let Some(record) = &request.response {
        response::insert(conn, conv, record)?;
    }
    for bytes in &request.blobs {
        blob::put(conn, conv, bytes)?;
    }
    let (mut row, sibling) = match target {
        Target::Extend(row) => (row, false),
        Target::Open {
            name,
            tip,
            new,
            sibling,
        } => (
            branch::open(conn, conv, name, tip, &new, request.at_ms)?,
            sibling,
        ),
    };
    let root_before = row.tip.root_no;
    let reach = search::Reach::of(conn)?;
    let marks = path_index::by_node(&request.paths);
    let items = request.items.iter().zip(terms).zip(counters);
    for (index, ((item, terms), counters)) in items.enumerate() {
        let root_no = if index < request.patch.from {
            root_before
        } else {
            root_no
        };
        let left = request.items.len() - index;
        let seq = next_seq(conn, conv, &mut row, left)?;
        let slot = Slot {
            seq,
            segment: row.segment,
            counters: *counters,
            root_no,
            fence: request.fence,
        };
        node_row::insert(conn, conv.no, &slot, item)?;
        search::add(conn, &reach, conv.no, seq, terms)?;
        row.tip = Tip {
            position: Position {
                segment: row.segment,
                depth: small(counters.depth),
            },
            node: Some(item.id),
            messages: small(counters.messages),
            turns: small(counters.turns),
            compacted: small(counters.compacted),
            root_no,
        };
        if let Some(marks) = marks.get(&item.id) {
            path_index::add(conn, conv, marks, row.tip.position)?;
        }
    }
    if let Some(claim) = request.ends_stream {
        stream::end(conn, conv, claim, request.at_ms)?;
    }
    let entries = request.entries.iter();
    let versions = entries.map(|(scope, put)| key_value::put(conn, &conv.owner, scope, put));
    let versions = versions.collect::<Result<Vec<_>, _>>()?;
    if let (Some(head), false) = (row.tip.node, request.items.is_empty()) {
        let kind = EventKind::Appended {
            branch: row.name.clone(),
            head,
            count: request.items.len() as u64,
        };
        event::record(conn, conv, request.at_ms, &kind)?;
        branch::save_head(conn, conv.no, &row)?;
    }
    conv.nodes = conv.nodes.saturating_add(small(request.items.len() as u64));
    conv.save(conn)?;
    Ok(Appended {
        versions,
        ..appended(conv, request, &row.tip, Some(row.name), sibling)
    })
}

/// The key of the branch's next node; opens a segment if the branch has none or it is full.
/// `left`: how many nodes are still to come.
fn next_seq(
    conn: &Connection,
    conv: &mut Conv,
    row: &mut BranchRow,
    left: usize,
) -> Result<u32, Fault> {
    if row.segment == 0 || row.next_seq == row.end_seq {
        let wanted = u32::try_from(left)
            .unwrap_or(MAX_CAPACITY)
            .checked_next_power_of_two()
            .unwrap_or(MAX_CAPACITY)
            .max(FIRST_CAPACITY);
        let doubled = match row.segment {
            0 => FIRST_CAPACITY,
            _ => capacity(conn, conv.no, row.segment)?.saturating_mul(2),
        };
        let capacity = wanted.max(doubled).min(MAX_CAPACITY);
        let number = take(&mut conv.next_segment, 1, "segments")?;
        let first = take(&mut conv.next_seq, capacity, "positions")?;
        insert_segment(
            conn,
            conv.no,
            number,
            row.tip.position,
            first,
            capacity,
            row.no,
        )?;
        (row.segment, row.next_seq, row.end_seq) = (number, first, first + capacity);
    }
    let seq = row.next_seq;
    row.next_seq += 1;
    Ok(seq)
}

fn capacity(conn: &Connection, conversation: u32, segment: u32) -> Result<u32, Fault> {
    Ok(conn
        .prepare_cached("SELECT capacity FROM segments WHERE id = ?")?
        .query_row([crate::path::key(conversation, segment)], |row| row.get(0))?)
}
