//! The full-text index: the terms of each node, and the steps that index missing nodes.
//!
//! Each node has a row with the terms of its text, written in the transaction that appends the
//! node. Conversations of older versions may lack rows or have older terms; they are indexed behind the
//! requests (`index_task`), in short transactions. Until then a search finds what rows there are, and says so.
//!
//! Removed terms stay in the table's files until a vacuum, like removed items.
//!
//! Not here: searching.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{AppendRequest, IndexProgress, Node, rules};
use futures_util::TryStreamExt as _;
use futures_util::future::try_join;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};
use crate::rows::node_row::{self, columns};
use crate::rows::path::NodePosition;

/// Fails to compile when the version changes, because [`UNINDEXED`] and its index name it.
const _: () = assert!(
    rules::TERMS_VERSION == 3,
    "another rule needs a migration that makes the index listings_behind anew"
);

/// Version of the terms, as its column has it.
pub(crate) const TERMS_COLUMN_VERSION: i32 = rules::TERMS_VERSION.cast_signed();

/// Largest size of a text's terms in bytes, below the limit of a `tsvector`. A text with more is
/// proposed to every query.
const VECTOR_BYTES: usize = (1 << 20) - 1024;

/// Term of texts that are proposed to every query. It begins with a character that no term of a
/// text has, like the other internal terms.
pub(crate) const MATCH_ALL_TERM: &str = "@any";

/// Largest number of rows of one statement.
const BATCH: usize = 500;

/// Largest number of nodes that one step of indexing reads, and approximate number of bytes of
/// items.
const STEP_NODES: i64 = 500;
const STEP_BYTES: usize = 8 << 20;

/// Largest number of conversations that are looked up at once to be indexed.
const STEP_CONVERSATIONS: i64 = 100;

/// Conversations that are not indexed with these terms.
const UNINDEXED: &str =
    "SELECT owner, id FROM contexture.listings WHERE terms_version <> 3 LIMIT $1";

/// Number of an owner's conversations that are not indexed with these terms; a null parameter is no condition.
const COUNT_UNINDEXED: &str = "SELECT count(*) FROM contexture.listings \
     WHERE terms_version <> 3 AND owner = $1 AND ($2 IS NULL OR id = $2) \
     AND ($3 IS NULL OR resource = $3)";

/// Number of all of them.
const COUNT_CONVERSATIONS: &str = "SELECT count(*) FROM contexture.listings \
     WHERE owner = $1 AND ($2 IS NULL OR id = $2) AND ($3 IS NULL OR resource = $3)";

/// Nodes without these terms.
const MISSING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM contexture.nodes n WHERE n.conversation = $1 AND (n.segment, n.depth) > ($2, $3) \
     AND n.redacted_ms IS NULL AND NOT EXISTS (SELECT FROM contexture.terms t \
     WHERE t.conversation = $1 AND t.segment = n.segment AND t.depth = n.depth AND t.rule = $4) \
     ORDER BY n.segment, n.depth LIMIT $5"
);

/// A conversation that must be indexed.
#[derive(Debug)]
pub(crate) struct UnindexedConversation {
    owner: Owner,
    id: ConversationId,
}

/// Index row of a node.
struct IndexEntry {
    position: NodePosition,
    created_ms: i64,
    kind: i16,
    audience: i16,
    terms: String,
}

/// Returns the term of all nodes of an owner.
pub(crate) fn owner_term(owner: &Owner) -> String {
    // With the owner as a term, the index itself narrows a search to the owner. A collision of the
    // short hash only proposes more; the join decides.
    let mut hasher = blake3::Hasher::new_derive_key("contexture 2026 owner term");
    hasher.update(owner.as_str().as_bytes());
    let mut hash = [0; 8];
    hasher.finalize_xof().fill(&mut hash);
    format!("@o{:016x}", u64::from_be_bytes(hash))
}

/// Returns the term of all nodes of a conversation.
pub(crate) fn conversation_term(key: [u8; 16]) -> String {
    format!("@c{:016x}", u128::from_be_bytes(key) >> 64)
}

/// Returns the terms that each node of a conversation has besides those of its text.
pub(crate) fn scope_terms(conv: &ConversationRow) -> Vec<String> {
    vec![conversation_term(conv.key), owner_term(&conv.owner)]
}

/// Returns the terms of each item, separated by spaces.
pub(crate) fn item_terms(request: &AppendRequest) -> Vec<String> {
    let items = request.items.iter();
    items.map(|item| terms_of(&item.json)).collect()
}

/// Returns the terms of an item, separated by spaces.
pub(crate) fn terms_of(json: &str) -> String {
    let terms = rules::index_terms(&rules::searchable_text(json));
    match terms.len() {
        0..=VECTOR_BYTES => terms,
        // The server would refuse the whole append because of one long text. Proposed to every
        // query, the text can still be found, since the rules examine it.
        _ => MATCH_ALL_TERM.to_owned(),
    }
}

/// Indexes items that are being appended after `after`.
pub(crate) fn index_items(
    tx: &mut Tx<'_>,
    conv: &ConversationRow,
    after: NodePosition,
    request: &AppendRequest,
    terms: &[String],
) {
    let items = request.items.iter().zip(terms).zip(after.depth + 1..);
    let entries = items.map(|((item, terms), depth)| IndexEntry {
        position: NodePosition { depth, ..after },
        created_ms: item.created_ms,
        kind: item.kind.code().into(),
        audience: item.audience.code().into(),
        terms: terms.clone(),
    });
    insert_entries(tx, conv, &entries.collect::<Vec<_>>());
}

fn insert_entries(tx: &mut Tx<'_>, conv: &ConversationRow, entries: &[IndexEntry]) {
    let scopes = scope_terms(conv);
    for batch in entries.chunks(BATCH) {
        macro_rules! column {
            (|$entry:ident| $value:expr) => {
                batch.iter().map(|$entry| $value).collect::<Vec<_>>()
            };
        }
        tx.execute_on_commit(
            // One array per column, so that a batch of any size is one statement. An upsert, since
            // rows with older terms may exist.
            "INSERT INTO contexture.terms (conversation, rule, segment, depth, created_ms, kind, \
             audience, terms) SELECT $1, $2, added.segment, added.depth, added.created_ms, \
             added.kind, added.audience, \
             array_to_tsvector($3 || string_to_array(added.terms, ' ')) \
             FROM unnest($4, $5, $6, $7, $8, $9) \
             AS added (segment, depth, created_ms, kind, audience, terms) \
             ON CONFLICT (conversation, segment, depth) \
             DO UPDATE SET rule = excluded.rule, terms = excluded.terms",
            params![
                conv.key,
                TERMS_COLUMN_VERSION,
                scopes.clone(),
                column!(|entry| entry.position.segment),
                column!(|entry| entry.position.depth),
                column!(|entry| entry.created_ms),
                column!(|entry| entry.kind),
                column!(|entry| entry.audience),
                column!(|entry| entry.terms.clone()),
            ],
        );
    }
}

/// Removes the terms of a node.
pub(crate) fn remove_terms(tx: &mut Tx<'_>, key: [u8; 16], position: NodePosition) {
    tx.execute_on_commit(
        "DELETE FROM contexture.terms WHERE conversation = $1 AND segment = $2 AND depth = $3",
        params![key, position.segment, position.depth],
    );
}

/// Finds some conversations that must be indexed; none if all are.
pub(crate) async fn find_unindexed(tx: &Tx<'_>) -> Result<Vec<UnindexedConversation>, RowError> {
    let rows = tx
        .query_rows(UNINDEXED, params![STEP_CONVERSATIONS])
        .await?;
    let conversations = rows.iter().map(|row| {
        let (owner, id) = (get_column::<&str>(row, 0)?, get_column::<&str>(row, 1)?);
        Ok(UnindexedConversation {
            owner: Owner::new(owner).map_err(|error| corrupt_error(error.to_string()))?,
            id: ConversationId::new(id).map_err(|error| corrupt_error(error.to_string()))?,
        })
    });
    conversations.collect()
}

/// Returns how far the index is, of an owner's conversations with an id or a resource; `None` if all are whole in it.
pub(crate) async fn load_progress(
    tx: &Tx<'_>,
    owner: &Owner,
    id: Option<&ConversationId>,
    resource: Option<&str>,
) -> Result<Option<IndexProgress>, RowError> {
    let count = async |sql: &str| -> Result<u64, RowError> {
        let params = params![
            owner.as_str(),
            id.map(ConversationId::as_str),
            resource.map(|name| Bytea::Text(name.into()))
        ];
        let row = tx.query_row(sql, params).await?;
        row.map_or(Ok(0), |row| Ok(get_column::<i64>(&row, 0)?.unsigned_abs()))
    };
    // Nearly always none, which an index of those that are behind says at once; the others need not be counted then.
    let behind = count(COUNT_UNINDEXED).await?;
    if behind == 0 {
        return Ok(None);
    }
    let conversations = count(COUNT_CONVERSATIONS).await?;
    Ok(Some(IndexProgress {
        indexed: conversations.saturating_sub(behind),
        conversations,
    }))
}

/// Indexes some of the nodes after `after` that are not indexed; returns where to continue.
pub(crate) async fn index_step(
    tx: &mut Tx<'_>,
    conversation: &UnindexedConversation,
    after: NodePosition,
) -> Result<Option<NodePosition>, RowError> {
    let UnindexedConversation { owner, id } = conversation;
    let key = ConversationKey::of(owner, id).into_bytes();
    let (conv, entries) = try_join(
        // Locked, so that an append and this step do not both index the same node.
        ConversationRow::load_for_update(tx, owner, id),
        load_missing_entries(tx, key, after),
    )
    .await?;
    insert_entries(tx, &conv, &entries);
    if let Some(last) = entries.last() {
        return Ok(Some(last.position));
    }
    if after != NodePosition::default() {
        // Start again: an older version of this program may have appended before `after` meanwhile.
        return Ok(Some(NodePosition::default()));
    }
    tx.execute_on_commit(
        "UPDATE contexture.listings SET terms_version = $3 WHERE owner = $1 AND id = $2",
        params![owner.as_str(), id.as_str(), TERMS_COLUMN_VERSION],
    );
    Ok(None)
}

async fn load_missing_entries(
    tx: &Tx<'_>,
    key: [u8; 16],
    after: NodePosition,
) -> Result<Vec<IndexEntry>, RowError> {
    let params = params![
        key,
        after.segment,
        after.depth,
        TERMS_COLUMN_VERSION,
        STEP_NODES
    ];
    let mut rows = std::pin::pin!(tx.query_stream(MISSING, params).await?);
    let mut entries = Vec::new();
    let mut bytes = 0;
    // Streamed, so that a page of large items is not completely in memory before the limit is
    // noticed.
    while bytes < STEP_BYTES
        && let Some(row) = rows.try_next().await?
    {
        let node = node_row::decode_undamaged(&row)?;
        bytes += node.as_ref().map_or(0, |node| node.json.len());
        entries.push(IndexEntry {
            position: NodePosition {
                segment: get_column(&row, 0)?,
                depth: get_column(&row, 1)?,
            },
            created_ms: get_column(&row, 8)?,
            kind: get_column(&row, 5)?,
            audience: get_column(&row, 7)?,
            // A damaged node gets an empty row; otherwise every step would find it again.
            terms: node.map_or_else(String::new, |node: Node| terms_of(&node.json)),
        });
    }
    Ok(entries)
}
