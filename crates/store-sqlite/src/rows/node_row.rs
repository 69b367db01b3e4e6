//! Nodes as rows: inserting, looking up and decoding them, and reading a path.

use std::sync::Arc;

use contexture_ir::{Audience, ContentHash, MessageId, NodeId, Origin, ResponseId, RunId};
use contexture_store::rules::{self, Counters, PageBytes, StoredItem};
use contexture_store::{
    EntityKind, Error, Fence, NewItem, Node, NodeKind, NodeQuery, PathPage, ReadRequest,
};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::error::RowError;
use crate::rows::codec;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::node_columns::{self, COLUMNS, NodeColumns, RowCheck};
use crate::rows::path::{
    NodePosition, Stretch, Tip, key_range, load_stretches, packed_key, small_counter,
};
use crate::rows::prepared_append::PreparedItem;

/// Version of the items' JSON format.
const ITEM_VERSION: i64 = 1;

/// Condition for the node with an id, in a form that uses the index.
// The index holds only the last and the first four bytes of an id. They distinguish the nodes of a conversation at half the
// size; the full comparison decides. The last bytes come first: those of one append follow each other, so that it changes
// few pages of the index.
pub(crate) const OF_ID: &str = "substr(node_id, 13, 4) = substr(?2, 13, 4) AND node_id = ?2";

/// Reads the node of an id.
pub(crate) fn by_id_sql() -> String {
    format!("SELECT {COLUMNS} FROM nodes WHERE id >> 32 = ?1 AND {OF_ID}")
}

/// Reads the nodes of a message.
pub(crate) fn by_message_sql() -> String {
    format!("SELECT {COLUMNS} FROM nodes WHERE id >> 32 = ? AND message_id = ?")
}

/// Reads the node of a key.
pub(crate) fn at_sql() -> String {
    format!("SELECT {COLUMNS} FROM nodes WHERE id = ?")
}

/// Reads the nodes after a key.
pub(crate) fn after_sql() -> String {
    format!("SELECT {COLUMNS} FROM nodes WHERE id > ? ORDER BY id")
}

/// Reads the copies of a node.
pub(crate) fn copies_sql() -> String {
    format!("SELECT {COLUMNS} FROM nodes WHERE id >> 32 = ? AND copied_from = ?")
}

/// Reads the nodes of a kind.
pub(crate) fn of_kind_sql(kind: NodeKind) -> String {
    // The code is no parameter: the planner uses a partial index only if its condition is in the
    // statement.
    let code = kind.code();
    format!("SELECT {COLUMNS} FROM nodes WHERE id BETWEEN ? AND ? AND kind = {code}")
}

/// Reads a run of nodes.
pub(crate) fn scan_sql() -> String {
    format!("SELECT {COLUMNS} FROM nodes WHERE id BETWEEN ? AND ? ORDER BY id")
}

/// Position of a new row, and its columns that are not part of the item.
pub(crate) struct NodeSlot {
    pub(crate) seq: u32,
    pub(crate) segment: u32,
    pub(crate) counters: Counters,
    pub(crate) root_no: u32,
    pub(crate) fence: Option<Fence>,
}

impl NodeSlot {
    /// Returns the numbers of the row, in the order of [`NodeColumns::numbers`].
    fn numbers(&self, key: i64, item: &NewItem, codec: u8) -> [Option<i64>; 17] {
        let counter = |counter: u64| Some(small_counter(counter).into());
        let fence = self.fence;
        [
            Some(key),
            Some(self.segment.into()),
            counter(self.counters.depth),
            counter(self.counters.messages),
            counter(self.counters.turns),
            counter(self.counters.compacted),
            Some(item.kind.code().into()),
            Some(item.origin.code().into()),
            Some(item.audience.code().into()),
            Some(self.root_no.into()),
            fence.map(|fence| i64::try_from(fence.0).unwrap_or(i64::MAX)),
            Some(item.created_ms),
            Some(ITEM_VERSION),
            Some(codec.into()),
            // No key: items are not encrypted.
            None,
            item.step.map(i64::from),
            // Not redacted.
            None,
        ]
    }
}

/// Inserts a node.
pub(crate) fn insert_node(
    conn: &Connection,
    conversation: u32,
    slot: &NodeSlot,
    item: &NewItem,
    prepared: &PreparedItem,
) -> Result<(), RowError> {
    let columns = NodeColumns {
        numbers: slot.numbers(packed_key(conversation, slot.seq), item, prepared.codec),
        ids: [
            Some(item.id.as_bytes()),
            Some(prepared.content_hash.as_bytes()),
            item.meaning_hash.as_ref().map(ContentHash::as_bytes),
            item.answers.as_ref().map(NodeId::as_bytes),
            item.copied_from.as_ref().map(NodeId::as_bytes),
            item.run.as_ref().map(RunId::as_bytes),
            item.response.as_ref().map(ResponseId::as_bytes),
        ],
        message_id: item.message_id.as_ref().map(MessageId::as_str),
        item: prepared.stored_bytes(item),
    };
    columns.insert_row(conn)
}

/// Reads the position after a node.
pub(crate) fn load_tip(conn: &Connection, conversation: u32, id: NodeId) -> Result<Tip, RowError> {
    conn.prepare_cached(&format!(
        "SELECT rest FROM nodes WHERE id >> 32 = ?1 AND {OF_ID}"
    ))?
    .query_row(params![conversation, id.as_bytes()], |row| {
        let columns = rest_of(row, 0)?;
        Ok(Tip {
            position: columns.position(),
            node: Some(id),
            messages: columns.small_number(node_columns::MESSAGES),
            turns: columns.small_number(node_columns::TURNS),
            compacted: columns.small_number(node_columns::COMPACTED),
            root_no: columns.small_number(node_columns::ROOT_NO),
        })
    })
    .optional()?
    .ok_or_else(|| Error::not_found(EntityKind::Node, id).into())
}

/// Reads what is stored under a node id, to recognise repetitions.
pub(crate) fn find_stored_item(
    conn: &Connection,
    conversation: u32,
    id: NodeId,
) -> Result<Option<StoredItem>, RowError> {
    let row = conn
        .prepare_cached(&format!(
            "SELECT rest, redacted_ms IS NOT NULL FROM nodes WHERE id >> 32 = ?1 AND {OF_ID}"
        ))?
        .query_row(params![conversation, id.as_bytes()], |row| {
            let columns = rest_of(row, 0)?;
            let hash = columns.ids[node_columns::CONTENT_HASH].copied();
            Ok((hash.unwrap_or_default(), columns.position(), row.get(1)?))
        })
        .optional()?;
    let Some((hash, position, redacted)) = row else {
        return Ok(None);
    };
    Ok(Some(StoredItem {
        content_hash: ContentHash::from_bytes(hash),
        parent: parent_id(conn, conversation, position)?,
        redacted,
    }))
}

/// Lists the positions of a message's nodes that have an audience, highest key first.
pub(crate) fn visible_positions(
    conn: &Connection,
    conversation: u32,
    message: &MessageId,
) -> Result<Vec<NodePosition>, RowError> {
    let mut statement = conn.prepare_cached(
        "SELECT rest FROM nodes WHERE id >> 32 = ? AND message_id = ? ORDER BY id DESC",
    )?;
    let mut rows = statement.query(params![conversation, message.as_str()])?;
    let mut positions = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = rest_of(row, 0)?;
        if columns.numbers[node_columns::AUDIENCE] != Some(0) {
            positions.push(columns.position());
        }
    }
    Ok(positions)
}

/// Unpacks the packed columns of a row.
pub(crate) fn rest_of<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<NodeColumns<'a>> {
    let rest = row.get_ref(column)?.as_blob()?;
    match NodeColumns::from_packed(rest) {
        Some((columns, _)) => Ok(columns),
        None => Err(FromSqlError::Other("the packed columns are damaged".into()).into()),
    }
}

/// Returns the id of the node at a position.
pub(crate) fn id_of(
    conn: &Connection,
    conversation: u32,
    at: NodePosition,
) -> Result<Option<NodeId>, RowError> {
    match load_stretches(conn, conversation, at, at.depth, at.depth)?.first() {
        Some(stretch) => id_by_seq(conn, conversation, stretch.seq),
        None => Ok(None),
    }
}

/// Returns the id of the node before a position.
fn parent_id(
    conn: &Connection,
    conversation: u32,
    position: NodePosition,
) -> Result<Option<NodeId>, RowError> {
    let depth = position.depth.saturating_sub(1);
    if depth == 0 {
        return Ok(None);
    }
    id_of(conn, conversation, NodePosition { depth, ..position })
}

fn id_by_seq(conn: &Connection, conversation: u32, seq: u32) -> Result<Option<NodeId>, RowError> {
    let id = conn
        .prepare_cached("SELECT node_id FROM nodes WHERE id = ?")?
        .query_row([packed_key(conversation, seq)], |row| row.get(0))
        .optional()?;
    Ok(id.map(NodeId::from_bytes))
}

/// Reads part of the path to `end`.
pub(crate) fn read_path(
    conn: &Connection,
    conv: &ConversationRow,
    end: &Tip,
    request: &ReadRequest,
    page_bytes: usize,
) -> Result<PathPage, RowError> {
    let depth = end.position.depth;
    let extent = rules::depth_range(request, &end.counters());
    let clamp = |depth: u64| u32::try_from(depth).unwrap_or(u32::MAX);
    let (from, to) = (clamp(extent.from), clamp(extent.to));
    let mut scan = PathScan::new(page_bytes);
    if from <= to {
        scan_path(conn, conv, end.position, from, to, &mut scan)?;
    }
    Ok(PathPage {
        head: end.node,
        depth: u64::from(depth),
        nodes: scan.nodes,
        next: scan.next.map(u64::from).or(extent.next),
    })
}

/// A page of a path while its rows are read.
struct PathScan {
    nodes: Vec<Arc<Node>>,
    /// Id of the node before the next row.
    before: Option<NodeId>,
    bytes: PageBytes,
    /// Depth of the first node that the page has no room for.
    next: Option<u32>,
}

impl PathScan {
    fn new(page_bytes: usize) -> Self {
        Self {
            nodes: Vec::new(),
            before: None,
            bytes: PageBytes::new(page_bytes),
            next: None,
        }
    }
}

/// Reads the nodes of these depths, oldest first, until the page is full; `from` must not exceed `to`.
fn scan_path(
    conn: &Connection,
    conv: &ConversationRow,
    end: NodePosition,
    from: u32,
    to: u32,
    scan: &mut PathScan,
) -> Result<(), RowError> {
    // Rows do not store their parent, since on a path it is the node before. Only that of the first
    // node has to be looked up, so one depth more is loaded.
    let mut path = load_stretches(conn, conv.no, end, from.max(2) - 1, to)?;
    if from > 1
        && let Some(oldest) = path.last_mut()
    {
        scan.before = id_by_seq(conn, conv.no, oldest.seq)?;
        oldest.from += 1;
        oldest.seq += 1;
    }
    // The stretches are in descending order.
    let oldest_first = path.iter().rev();
    for stretch in oldest_first.filter(|stretch| stretch.from <= stretch.to) {
        scan_stretch(conn, conv, stretch, scan)?;
        if scan.next.is_some() {
            break;
        }
    }
    // A missing row would otherwise shorten the path silently, and the model would get a history
    // with a gap.
    let to = scan.next.map_or(to, |next| next - 1);
    let (count, found) = (to - from + 1, scan.nodes.len());
    if found as u64 != u64::from(count) {
        let why = format!("{found} of {count} nodes are there");
        let position = format!("depths {from} to {to}");
        return Err(conv.damaged_error("path", position, why).into());
    }
    Ok(())
}

fn scan_stretch(
    conn: &Connection,
    conv: &ConversationRow,
    stretch: &Stretch,
    scan: &mut PathScan,
) -> Result<(), RowError> {
    let mut statement = conn.prepare_cached(&scan_sql())?;
    let last = stretch.seq + (stretch.to - stretch.from);
    let mut rows =
        statement.query([packed_key(conv.no, stretch.seq), packed_key(conv.no, last)])?;
    let mut depth = stretch.from;
    while let Some(row) = rows.next()? {
        let damaged = |why: &str| conv.damaged_error("node", format!("depth {depth}"), why);
        let (columns, check) =
            NodeColumns::from_row(row)?.ok_or_else(|| damaged("the packed columns are damaged"))?;
        let node = decode_or(damaged, &columns, check, scan.before)?;
        let wanted = NodePosition {
            segment: stretch.segment,
            depth,
        };
        // A row with a valid checksum may still have a wrong key, for example after a repair of a
        // damaged page.
        if columns.position() != wanted {
            return Err(damaged("it stands elsewhere").into());
        }
        // Items are stored packed, so their bytes are known only here; this one is read again with the next page.
        if !scan.bytes.take(node.json.len()) {
            scan.next = Some(depth);
            break;
        }
        depth += 1;
        scan.before = Some(node.id);
        scan.nodes.push(Arc::new(node));
    }
    Ok(())
}

/// Finds nodes anywhere in the tree.
pub(crate) fn find_nodes(
    conn: &Connection,
    conv: &ConversationRow,
    query: &NodeQuery,
) -> Result<Vec<Arc<Node>>, RowError> {
    match query {
        NodeQuery::Id(id) => match by_id(conn, conv, *id)? {
            Some(node) => Ok(vec![node]),
            None => Err(Error::not_found(EntityKind::Node, id).into()),
        },
        NodeQuery::Prefix(prefix) => by_prefix(conn, conv, prefix),
        NodeQuery::Message(message) => by_message(conn, conv, message),
        NodeQuery::CopiesOf(source) => {
            // An unknown source is an error and not an empty list.
            load_tip(conn, conv.no, *source)?;
            query_nodes(
                conn,
                conv,
                &copies_sql(),
                params![conv.no, source.as_bytes()],
            )
        }
        NodeQuery::Kind(kind) => {
            let (first, last) = key_range(conv.no);
            query_nodes(conn, conv, &of_kind_sql(*kind), params![first, last])
        }
    }
}

fn by_id(
    conn: &Connection,
    conv: &ConversationRow,
    id: NodeId,
) -> Result<Option<Arc<Node>>, RowError> {
    let mut statement = conn.prepare_cached(&by_id_sql())?;
    let mut rows = statement.query(params![conv.no, id.as_bytes()])?;
    rows.next()?
        .map(|row| decode_single(conn, conv, row))
        .transpose()
}

fn by_prefix(
    conn: &Connection,
    conv: &ConversationRow,
    prefix: &str,
) -> Result<Vec<Arc<Node>>, RowError> {
    // Reads the conversation's part of the index, whose entries have the beginnings of ids, and of the rows only those that
    // begin so. Five are enough, since the error lists no more.
    let (low, high) = rules::check_prefix(prefix)?;
    let ids = conn
        .prepare_cached(
            "SELECT node_id FROM nodes WHERE id >> 32 = ?1 \
             AND substr(node_id, 1, 4) BETWEEN substr(?2, 1, 4) AND substr(?3, 1, 4) \
             AND node_id BETWEEN ?2 AND ?3 ORDER BY node_id LIMIT 5",
        )?
        .query_map(params![conv.no, low, high], |row| row.get(0))?
        .map(|id| id.map(NodeId::from_bytes))
        .collect::<Result<Vec<NodeId>, _>>()?;
    let id = rules::select_by_prefix(prefix, &ids)?;
    find_nodes(conn, conv, &NodeQuery::Id(id))
}

fn by_message(
    conn: &Connection,
    conv: &ConversationRow,
    message: &MessageId,
) -> Result<Vec<Arc<Node>>, RowError> {
    let named = params![conv.no, message.as_str()];
    let mut found = query_nodes(conn, conv, &by_message_sql(), named)?;
    // A node without a message id is a message of its own.
    if let Ok(id) = message.as_str().parse::<NodeId>() {
        let own = by_id(conn, conv, id)?;
        found.extend(own.filter(|node| node.message_id.is_none()));
    }
    if found.is_empty() {
        return Err(Error::not_found(EntityKind::Message, message).into());
    }
    found.sort_by_key(|node| (node.depth, node.id));
    Ok(found)
}

/// Reads the nodes of a statement, by depth and then by id.
fn query_nodes(
    conn: &Connection,
    conv: &ConversationRow,
    sql: &str,
    bound: &[&dyn ToSql],
) -> Result<Vec<Arc<Node>>, RowError> {
    let mut found = Vec::new();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(bound)?;
    while let Some(row) = rows.next()? {
        found.push(decode_single(conn, conv, row)?);
    }
    found.sort_by_key(|node| (node.depth, node.id));
    Ok(found)
}

/// Decodes a node that was read without its neighbours, and looks up its parent.
fn decode_single(
    conn: &Connection,
    conv: &ConversationRow,
    row: &Row<'_>,
) -> Result<Arc<Node>, RowError> {
    let Some((columns, check)) = NodeColumns::from_row(row)? else {
        let number = row.get::<_, i64>(0)? as u32;
        let why = "the packed columns are damaged";
        return Err(conv
            .damaged_error("node", format!("row {number}"), why)
            .into());
    };
    let position = columns.position();
    let damaged = |why: &str| conv.damaged_error("node", format!("depth {}", position.depth), why);
    let before = parent_id(conn, conv.no, position)?;
    Ok(Arc::new(decode_or(damaged, &columns, check, before)?))
}

/// Decodes a row after comparing its checksum; `damaged` makes the error.
pub(crate) fn decode_or(
    damaged: impl Fn(&str) -> Error,
    columns: &NodeColumns<'_>,
    check: RowCheck,
    parent: Option<NodeId>,
) -> Result<Node, RowError> {
    // Compared before anything is decoded, so that decoding can rely on the columns.
    if !matches_written(columns, check) {
        return Err(damaged("the bytes are not those that were written").into());
    }
    decode_columns(columns, parent).map_err(|why| damaged(why).into())
}

/// Returns whether a row's bytes are those that were written.
pub(crate) fn matches_written(columns: &NodeColumns<'_>, check: RowCheck) -> bool {
    match check {
        Some(check) => columns.matches_check(check),
        // Rows of format 2 and before have no checksum; the hash of the item serves instead.
        None => {
            let hash = columns.ids[node_columns::CONTENT_HASH];
            hash.copied().map(ContentHash::from_bytes) == Some(ContentHash::of(columns.item))
        }
    }
}

/// Decodes columns, or says what is wrong with them.
fn decode_columns(columns: &NodeColumns<'_>, parent: Option<NodeId>) -> Result<Node, &'static str> {
    let number = |index: usize| columns.numbers.get(index).copied().flatten();
    let counter = |index| {
        let count = number(index).and_then(|count| u64::try_from(count).ok());
        count.ok_or("a counter is missing or negative")
    };
    let code = |index| number(index).and_then(|code| u8::try_from(code).ok());
    let id = |index: usize| columns.ids.get(index).copied().flatten().copied();
    let codec = code(node_columns::CODEC).unwrap_or(u8::MAX);
    let item = codec::decode_bytes(codec, columns.item)?;
    let json = std::str::from_utf8(&item).map_err(|_| "the item is not UTF-8")?;
    let message_id = columns.message_id.map(MessageId::new).transpose();
    let step = number(node_columns::STEP).map(u32::try_from).transpose();
    Ok(Node {
        id: NodeId::from_bytes(id(node_columns::NODE_ID).ok_or("the id is missing")?),
        parent,
        depth: counter(node_columns::DEPTH)?,
        messages: counter(node_columns::MESSAGES)?,
        turns: counter(node_columns::TURNS)?,
        compacted: counter(node_columns::COMPACTED)?,
        json: Arc::from(json),
        content_hash: id(node_columns::CONTENT_HASH)
            .map(ContentHash::from_bytes)
            .ok_or("the hash is missing")?,
        kind: code(node_columns::KIND)
            .and_then(NodeKind::from_code)
            .ok_or("unknown kind")?,
        answers: id(node_columns::ANSWERS).map(NodeId::from_bytes),
        message_id: message_id.map_err(|_| "the message id breaks its rule")?,
        run: id(node_columns::RUN).map(RunId::from_bytes),
        step: step.map_err(|_| "unknown step")?,
        response: id(node_columns::RESPONSE).map(ResponseId::from_bytes),
        origin: code(node_columns::ORIGIN)
            .and_then(Origin::from_code)
            .ok_or("unknown origin")?,
        audience: code(node_columns::AUDIENCE)
            .and_then(Audience::from_code)
            .ok_or("unknown audience")?,
        copied_from: id(node_columns::COPIED_FROM).map(NodeId::from_bytes),
        meaning_hash: id(node_columns::MEANING_HASH).map(ContentHash::from_bytes),
        created_ms: number(node_columns::CREATED_MS).ok_or("the time is missing")?,
        redacted_ms: number(node_columns::REDACTED_MS),
    })
}
