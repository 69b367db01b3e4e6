//! Nodes as rows: inserting, looking up and decoding them, and reading a path.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{
    Audience, ContentHash, ConversationId, MessageId, NodeId, Origin, Owner, ResponseId, RunId,
};
use contexture_store::rules::{self, Counters, StoredItem};
use contexture_store::{
    EntityKind, Error, Fence, NewItem, Node, NodeKind, NodeQuery, PathPage, ReadRequest,
};
use futures_util::TryStreamExt as _;
use futures_util::future::try_join;
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{
    Param, get_bytes, get_bytes_or_null, get_column, get_count, params,
};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::{NodePosition, Stretch, Tip};

/// Codec of plain bytes.
const CODEC_PLAIN: i16 = 0;

/// Largest number of rows of one statement.
const BATCH: usize = 500;

/// The columns that [`decode_node`] and [`decode_undamaged`] read.
macro_rules! columns {
    () => {
        "n.segment, n.depth, n.messages, n.turns, n.compacted, n.kind, n.origin, n.audience, \
         n.created_ms, n.codec, n.step, n.node_id, n.content_hash, n.meaning_hash, n.answers, \
         n.copied_from, n.run, n.response, n.message_id, n.item, n.redacted_ms"
    };
}

pub(crate) use columns;

/// Selects nodes, each with the id of the one before it in column 21.
macro_rules! with_parent {
    () => {
        concat!(
            "SELECT ",
            columns!(),
            ", p.node_id FROM contexture.nodes n \
             JOIN contexture.segments s \
             ON s.conversation = n.conversation AND s.segment = n.segment \
             LEFT JOIN contexture.nodes p ON p.conversation = n.conversation \
             AND p.depth = n.depth - 1 AND p.segment = \
             CASE WHEN n.depth > s.first_depth THEN n.segment ELSE s.ancestors[1] END \
             WHERE n.conversation = $1"
        )
    };
}

const BY_ID: &str = concat!(with_parent!(), " AND n.node_id = $2");

const BY_MESSAGE: &str = concat!(with_parent!(), " AND n.message_id = $2");

const COPIES: &str = concat!(with_parent!(), " AND n.copied_from = $2");

/// The kind is no parameter, so that the planner can use the partial index.
const COMPACTIONS: &str = concat!(with_parent!(), " AND n.kind = 6");

const OF_KIND: &str = concat!(with_parent!(), " AND n.kind = $2");

/// Reads the stretches of a path, oldest first; each is a range of the primary key. Column 21 is the depth of the first node
/// that the page has no room for: nothing is read from there on.
// The size of an item is in its row, so the sum reads no item that is stored beside its row, and it ends with the page. Sums go
// through the rows in the order of the stretches, as the nodes do.
const SCAN: &str = concat!(
    "WITH on_path AS (SELECT * FROM unnest($2, $3, $4) AS stretch (segment, first, last)), \
     sizes AS (SELECT n.depth, sum(n.bytes) OVER (ROWS UNBOUNDED PRECEDING) AS bytes \
     FROM on_path CROSS JOIN LATERAL (SELECT depth, octet_length(item) AS bytes \
     FROM contexture.nodes WHERE conversation = $1 AND segment = on_path.segment \
     AND depth BETWEEN on_path.first AND on_path.last ORDER BY depth) AS n), \
     cut AS (SELECT depth FROM sizes WHERE bytes > $5 AND depth > $6 LIMIT 1) \
     SELECT ",
    columns!(),
    ", (SELECT depth FROM cut) FROM on_path \
     CROSS JOIN LATERAL (SELECT * FROM contexture.nodes \
     WHERE conversation = $1 AND segment = on_path.segment AND depth BETWEEN on_path.first \
     AND least(on_path.last, (SELECT depth FROM cut) - 1) ORDER BY depth) AS n"
);

/// Reads one node of a path, with the columns of [`SCAN`]. A page always has room for it, so its size is not asked for.
const SCAN_ONE: &str = concat!(
    "SELECT ",
    columns!(),
    ", NULL::integer FROM contexture.nodes n \
     WHERE n.conversation = $1 AND n.segment = $2 AND n.depth = $3"
);

/// Segment of an append's rows, and those of their columns that are not part of the items.
pub(crate) struct NodeSlots<'a> {
    pub(crate) segment: i32,
    pub(crate) fence: Option<Fence>,
    pub(crate) counters: &'a [Counters],
    /// Numbers of the state roots of the items before `from`, and of those from there on.
    pub(crate) roots: (i32, i32),
    pub(crate) from: usize,
}

const INSERT: &str = "INSERT INTO contexture.nodes (conversation, segment, fence, item_version, codec, \
     depth, messages, turns, compacted, root_no, step, created_ms, kind, origin, \
     audience, node_id, content_hash, meaning_hash, answers, copied_from, run, response, \
     message_id, item) \
     SELECT $1, $2, $3, 1, 0, added.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11, $12, \
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) AS added";

/// An item with its index in the append and the counters after it.
type IndexedItem<'a> = (usize, (&'a NewItem, &'a Counters));

/// Queues statements that insert nodes with the commit.
pub(crate) fn insert_nodes(
    tx: &mut Tx<'_>,
    key: [u8; 16],
    slots: &NodeSlots<'_>,
    items: &[NewItem],
) {
    let rows: Vec<IndexedItem<'_>> = items.iter().zip(slots.counters).enumerate().collect();
    // Bounded, since a statement is one protocol message.
    for batch in rows.chunks(BATCH) {
        insert_batch(tx, key, slots, batch);
    }
}

/// Queues one statement that inserts some nodes, each column an array.
fn insert_batch(tx: &mut Tx<'_>, key: [u8; 16], slots: &NodeSlots<'_>, batch: &[IndexedItem<'_>]) {
    let roots = batch.iter().map(|(index, _)| match *index < slots.from {
        true => slots.roots.0,
        false => slots.roots.1,
    });
    tx.execute_on_commit(
        INSERT,
        params![
            key,
            slots.segment,
            slots.fence.map(fence_number),
            counter_column(batch, |counters| counters.depth),
            counter_column(batch, |counters| counters.messages),
            counter_column(batch, |counters| counters.turns),
            counter_column(batch, |counters| counters.compacted),
            roots.collect::<Vec<i32>>(),
            item_column(batch, |item| item.step.map(u32::cast_signed)),
            item_column(batch, |item| item.created_ms),
            item_column(batch, |item| i16::from(item.kind.code())),
            item_column(batch, |item| i16::from(item.origin.code())),
            item_column(batch, |item| i16::from(item.audience.code())),
            item_column(batch, |item| item.id),
            item_column(batch, |item| ContentHash::of(item.json.as_bytes())),
            item_column(batch, |item| item.meaning_hash),
            item_column(batch, |item| item.answers),
            item_column(batch, |item| item.copied_from),
            item_column(batch, |item| item.run),
            item_column(batch, |item| item.response),
            item_column(batch, |item| item
                .message_id
                .as_ref()
                .map(|id| id.as_str().to_owned())),
            item_column(batch, |item| Arc::clone(&item.json)),
        ],
    );
}

fn item_column<T>(batch: &[IndexedItem<'_>], of: impl Fn(&NewItem) -> T) -> Vec<T> {
    batch.iter().map(|(_, (item, _))| of(item)).collect()
}

fn counter_column(batch: &[IndexedItem<'_>], of: impl Fn(&Counters) -> u64) -> Vec<i32> {
    let counters = batch.iter().map(|(_, (_, counters))| of(counters));
    counters.map(small_counter).collect()
}

/// Converts a counter; none exceeds the number of positions, which is below 2³¹.
fn small_counter(counter: u64) -> i32 {
    debug_assert!(i32::try_from(counter).is_ok(), "{counter}");
    i32::try_from(counter).unwrap_or(i32::MAX)
}

/// Converts a fence to its column.
pub(crate) fn fence_number(fence: Fence) -> i64 {
    i64::try_from(fence.0).unwrap_or(i64::MAX)
}

/// Reads the position after a node.
pub(crate) async fn load_tip(tx: &Tx<'_>, key: [u8; 16], id: NodeId) -> Result<Tip, RowError> {
    let row = tx
        .query_row(
            "SELECT n.segment, n.depth, n.messages, n.turns, n.compacted, n.root_no, \
             s.first_depth, s.ancestors, s.upto \
             FROM contexture.nodes n LEFT JOIN contexture.segments s \
             ON s.conversation = n.conversation AND s.segment = n.segment \
             WHERE n.conversation = $1 AND n.node_id = $2",
            params![key, id],
        )
        .await?;
    let row = row.ok_or_else(|| Error::not_found(EntityKind::Node, id))?;
    Tip::from_row(&row, 0, Some(id))
}

/// Facts that an append needs of a stored node.
pub(crate) struct ExistingNode {
    content_hash: ContentHash,
    redacted: bool,
    pub(crate) position: NodePosition,
    /// Position before it on its path.
    before: NodePosition,
}

/// Reads those of these nodes that exist.
pub(crate) async fn find_existing_nodes(
    tx: &Tx<'_>,
    key: [u8; 16],
    ids: Vec<NodeId>,
) -> Result<BTreeMap<NodeId, ExistingNode>, RowError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = tx
        .query_rows(
            "SELECT n.node_id, n.content_hash, n.segment, n.depth, \
             CASE WHEN n.depth > s.first_depth THEN n.segment ELSE coalesce(s.ancestors[1], 0) END, \
             n.redacted_ms IS NOT NULL \
             FROM contexture.nodes n JOIN contexture.segments s \
             ON s.conversation = n.conversation AND s.segment = n.segment \
             WHERE n.conversation = $1 AND n.node_id = ANY ($2)",
            params![key, ids],
        )
        .await?;
    let mut known = BTreeMap::new();
    for row in &rows {
        let depth: i32 = get_column(row, 3)?;
        let found = ExistingNode {
            content_hash: ContentHash::from_bytes(get_bytes(row, 1)?),
            redacted: get_column(row, 5)?,
            position: NodePosition {
                segment: get_column(row, 2)?,
                depth,
            },
            before: NodePosition {
                segment: get_column(row, 4)?,
                depth: depth - 1,
            },
        };
        known.insert(NodeId::from_bytes(get_bytes(row, 0)?), found);
    }
    Ok(known)
}

/// Returns what is stored under the items' ids, to recognise repetitions.
///
/// A parent is only given if it is the item before; that is all that replay detection compares.
pub(crate) fn stored_items(
    items: &[NewItem],
    known: &BTreeMap<NodeId, ExistingNode>,
) -> Vec<Option<StoredItem>> {
    let mut previous: Option<&NewItem> = None;
    let mut stored = Vec::with_capacity(items.len());
    for item in items {
        let parent = previous.replace(item).map(|item| item.id);
        stored.push(known.get(&item.id).map(|found| StoredItem {
            content_hash: found.content_hash,
            redacted: found.redacted,
            parent: parent.filter(|id| known.get(id).is_some_and(|on| on.position == found.before)),
        }));
    }
    stored
}

/// Returns those of these messages that have a node with an audience on the path.
pub(crate) async fn messages_on_path(
    tx: &Tx<'_>,
    key: [u8; 16],
    messages: Vec<String>,
    path: &[Stretch],
) -> Result<Vec<MessageId>, RowError> {
    if messages.is_empty() || path.is_empty() {
        return Ok(Vec::new());
    }
    let segments: Vec<i32> = path.iter().map(|on| on.segment).collect();
    let depths: Vec<i32> = path.iter().map(|on| on.to).collect();
    let rows = tx
        .query_rows(
            "SELECT asked.id FROM unnest($2) AS asked (id) WHERE EXISTS (\
             SELECT FROM unnest($3, $4) AS on_path (segment, last) \
             CROSS JOIN LATERAL (SELECT FROM contexture.nodes \
             WHERE conversation = $1 AND message_id = asked.id AND segment = on_path.segment \
             AND depth <= on_path.last AND audience <> 0 LIMIT 1) AS found)",
            params![key, messages, segments, depths],
        )
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        let id: &str = get_column(row, 0)?;
        found.extend(MessageId::new(id).ok());
    }
    Ok(found)
}

/// Reads part of the path to `end`.
pub(crate) async fn read_path(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    end: &Tip,
    request: &ReadRequest,
    page_bytes: usize,
) -> Result<PathPage, RowError> {
    let extent = rules::depth_range(request, &end.counters);
    let clamp = |depth: u64| i32::try_from(depth).unwrap_or(i32::MAX);
    let (from, to) = (clamp(extent.from), clamp(extent.to));
    let (mut nodes, mut cut) = (Vec::new(), None);
    if from <= to {
        (nodes, cut) = scan_path(tx, conv, end, (from, to), page_bytes).await?;
        let to = cut.map_or(to, |cut| cut - 1);
        let wanted = u64::from(from.abs_diff(to)) + 1;
        if nodes.len() as u64 != wanted {
            let why = format!("{} of {wanted} nodes are there", nodes.len());
            let position = format!("depths {from} to {to}");
            return Err(conv.damaged_error("path", position, why).into());
        }
    }
    Ok(PathPage {
        head: end.node,
        depth: end.counters.depth,
        nodes,
        next: cut.map(|cut| u64::from(cut.unsigned_abs())).or(extent.next),
    })
}

/// Nodes of a page, and the depth of the first that it has no room for.
type ScannedPage<N> = (Vec<N>, Option<i32>);

/// Reads the nodes of these depths, oldest first, until the page is full; `from` must not exceed `to`.
async fn scan_path(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    end: &Tip,
    (from, to): (i32, i32),
    page_bytes: usize,
) -> Result<ScannedPage<Arc<Node>>, RowError> {
    // One depth more, for the parent of the first node.
    let mut path = end.load_stretches(tx, conv.key, from.max(2) - 1).await?;
    let before = path.last().filter(|_| from > 1).map(|oldest| NodePosition {
        segment: oldest.segment,
        depth: from - 1,
    });
    for stretch in &mut path {
        stretch.from = stretch.from.max(from);
        stretch.to = stretch.to.min(to);
    }
    path.retain(|stretch| stretch.from <= stretch.to);
    path.reverse();
    let (parent, (mut nodes, cut)) = try_join(
        id_by_position(tx, conv, before),
        scan_stretches(tx, conv, &path, from, page_bytes),
    )
    .await?;
    if let Some(first) = nodes.first_mut() {
        first.parent = parent;
    }
    Ok((nodes.into_iter().map(Arc::new).collect(), cut))
}

/// Reads the nodes of stretches that begin at depth `from`; the first node gets no parent yet.
async fn scan_stretches(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    path: &[Stretch],
    from: i32,
    page_bytes: usize,
) -> Result<ScannedPage<Node>, RowError> {
    let column = |of: fn(&Stretch) -> i32| path.iter().map(of).collect::<Vec<i32>>();
    let (sql, params) = match path {
        [one] if one.from == one.to => (SCAN_ONE, params![conv.key, one.segment, one.from]),
        _ => {
            let bytes = i64::try_from(page_bytes).unwrap_or(i64::MAX);
            let segments = column(|stretch| stretch.segment);
            let first = column(|stretch| stretch.from);
            let last = column(|stretch| stretch.to);
            (SCAN, params![conv.key, segments, first, last, bytes, from])
        }
    };
    let mut rows = std::pin::pin!(tx.query_stream(sql, params).await?);
    let (mut nodes, mut cut): ScannedPage<Node> = (Vec::new(), None);
    while let Some(row) = rows.try_next().await? {
        let before = nodes.last().map(|node| (node.id, node.depth));
        let node = decode_node(conv, &row, before.map(|(id, _)| id))?;
        // After a missing row, the next one would get the wrong parent.
        if node.depth != before.map_or(from.unsigned_abs().into(), |(_, depth)| depth + 1) {
            let position = format!("depth {}", node.depth);
            return Err(conv
                .damaged_error("node", position, "it stands elsewhere")
                .into());
        }
        cut = get_column(&row, 21)?;
        nodes.push(node);
    }
    Ok((nodes, cut))
}

async fn id_by_position(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    position: Option<NodePosition>,
) -> Result<Option<NodeId>, RowError> {
    let Some(NodePosition { segment, depth }) = position else {
        return Ok(None);
    };
    let row = tx
        .query_row(
            "SELECT node_id FROM contexture.nodes \
             WHERE conversation = $1 AND segment = $2 AND depth = $3",
            params![conv.key, segment, depth],
        )
        .await?;
    row.map(|row| Ok(NodeId::from_bytes(get_bytes(&row, 0)?)))
        .transpose()
}

/// Finds nodes anywhere in the tree.
pub(crate) async fn find_nodes(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    query: &NodeQuery,
) -> Result<Vec<Arc<Node>>, RowError> {
    let conv = ConversationRow::load_for_read(tx, owner, id).await?;
    match query {
        NodeQuery::Id(id) => match by_id(tx, &conv, *id).await? {
            Some(node) => Ok(vec![node]),
            None => Err(Error::not_found(EntityKind::Node, id).into()),
        },
        NodeQuery::Prefix(prefix) => by_prefix(tx, &conv, prefix).await,
        NodeQuery::Message(message) => by_message(tx, &conv, message).await,
        NodeQuery::CopiesOf(source) => {
            let copies = query_nodes(tx, &conv, COPIES, params![conv.key, *source]);
            Ok(try_join(load_tip(tx, conv.key, *source), copies).await?.1)
        }
        NodeQuery::Kind(NodeKind::Compaction) => {
            query_nodes(tx, &conv, COMPACTIONS, params![conv.key]).await
        }
        NodeQuery::Kind(kind) => {
            let code = i16::from(kind.code());
            query_nodes(tx, &conv, OF_KIND, params![conv.key, code]).await
        }
    }
}

async fn by_id(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    id: NodeId,
) -> Result<Option<Arc<Node>>, RowError> {
    let row = tx.query_row(BY_ID, params![conv.key, id]).await?;
    row.map(|row| decode_single(conv, &row)).transpose()
}

async fn by_prefix(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    prefix: &str,
) -> Result<Vec<Arc<Node>>, RowError> {
    let (low, high) = rules::check_prefix(prefix)?;
    let rows = tx
        .query_rows(
            "SELECT node_id FROM contexture.nodes \
             WHERE conversation = $1 AND node_id BETWEEN $2 AND $3 ORDER BY node_id LIMIT 5",
            params![conv.key, low, high],
        )
        .await?;
    let ids = rows
        .iter()
        .map(|row| get_bytes(row, 0).map(NodeId::from_bytes));
    let ids = ids.collect::<Result<Vec<NodeId>, RowError>>()?;
    let id = rules::select_by_prefix(prefix, &ids)?;
    Ok(by_id(tx, conv, id).await?.into_iter().collect())
}

async fn by_message(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    message: &MessageId,
) -> Result<Vec<Arc<Node>>, RowError> {
    // A node without a message id is a message of its own.
    let own = async {
        match message.as_str().parse::<NodeId>() {
            Ok(id) => by_id(tx, conv, id).await,
            Err(_) => Ok(None),
        }
    };
    let named = query_nodes(tx, conv, BY_MESSAGE, params![conv.key, message.as_str()]);
    let (mut found, own) = try_join(named, own).await?;
    found.extend(own.filter(|node| node.message_id.is_none()));
    if found.is_empty() {
        return Err(Error::not_found(EntityKind::Message, message).into());
    }
    found.sort_by_key(|node| (node.depth, node.id));
    Ok(found)
}

/// Reads the nodes of a statement, by depth and then by id.
async fn query_nodes(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    sql: &str,
    params: Vec<Param>,
) -> Result<Vec<Arc<Node>>, RowError> {
    let rows = tx.query_rows(sql, params).await?;
    let found = rows.iter().map(|row| decode_single(conv, row));
    let mut found = found.collect::<Result<Vec<Arc<Node>>, RowError>>()?;
    found.sort_by_key(|node| (node.depth, node.id));
    Ok(found)
}

/// Decodes a node from a row that has its parent in column 21.
fn decode_single(conv: &ConversationRow, row: &Row) -> Result<Arc<Node>, RowError> {
    let before = get_bytes_or_null(row, 21)?.map(NodeId::from_bytes);
    decode_node(conv, row, before).map(Arc::new)
}

/// Decodes a row as a node without its parent; returns `None` if it is damaged.
pub(crate) fn decode_undamaged(row: &Row) -> Result<Option<Node>, RowError> {
    match decode_or(|_, why| Error::invalid_argument("node", why), row, None) {
        Ok(node) => Ok(Some(node)),
        Err(RowError::Store(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn decode_node(
    conv: &ConversationRow,
    row: &Row,
    parent: Option<NodeId>,
) -> Result<Node, RowError> {
    let damaged = |depth, why: &str| conv.damaged_error("node", format!("depth {depth}"), why);
    decode_or(damaged, row, parent)
}

/// Decodes a row and checks its item against its hash; `damaged` makes the error from the depth and
/// the reason.
pub(crate) fn decode_or(
    damaged: impl Fn(u64, &str) -> Error,
    row: &Row,
    parent: Option<NodeId>,
) -> Result<Node, RowError> {
    let depth = get_count(row, 1)?;
    let damaged = |why: &str| damaged(depth, why);
    let id = |index| get_bytes_or_null::<16>(row, index);
    let code = |index| -> Result<Option<u8>, RowError> {
        Ok(u8::try_from(get_column::<i16>(row, index)?).ok())
    };
    let (json, content_hash) = decode_item(row, damaged)?;
    let message_id: Option<&str> = get_column(row, 18)?;
    let message_id = message_id.map(MessageId::new).transpose();
    let step: Option<i32> = get_column(row, 10)?;
    let node = Node {
        id: NodeId::from_bytes(get_bytes(row, 11)?),
        parent,
        depth,
        messages: get_count(row, 2)?,
        turns: get_count(row, 3)?,
        compacted: get_count(row, 4)?,
        json: Arc::from(json),
        content_hash,
        kind: code(5)?
            .and_then(NodeKind::from_code)
            .ok_or_else(|| damaged("unknown kind"))?,
        answers: id(14)?.map(NodeId::from_bytes),
        message_id: message_id.map_err(|_| damaged("the message id breaks its rule"))?,
        run: id(16)?.map(RunId::from_bytes),
        step: step.map(i32::cast_unsigned),
        response: id(17)?.map(ResponseId::from_bytes),
        origin: code(6)?
            .and_then(Origin::from_code)
            .ok_or_else(|| damaged("unknown origin"))?,
        audience: code(7)?
            .and_then(Audience::from_code)
            .ok_or_else(|| damaged("unknown audience"))?,
        copied_from: id(15)?.map(NodeId::from_bytes),
        meaning_hash: id(13)?.map(ContentHash::from_bytes),
        created_ms: get_column(row, 8)?,
        redacted_ms: get_column(row, 20)?,
    };
    Ok(node)
}

/// Reads the item of a row and its hash.
fn decode_item(
    row: &Row,
    damaged: impl Fn(&str) -> Error,
) -> Result<(&str, ContentHash), RowError> {
    let item: &[u8] = get_column(row, 19)?;
    let content_hash = ContentHash::from_bytes(get_bytes(row, 12)?);
    if ContentHash::of(item) != content_hash {
        return Err(damaged("the item's bytes do not match their hash").into());
    }
    if get_column::<i16>(row, 9)? != CODEC_PLAIN {
        return Err(damaged("the item's bytes have an unknown codec").into());
    }
    let json = std::str::from_utf8(item).map_err(|_| damaged("the item is not UTF-8"))?;
    Ok((json, content_hash))
}
