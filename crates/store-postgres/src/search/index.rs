//! The index of texts: the terms of each node, and the steps that catch up with missing ones.
//!
//! Each node has a row with the terms of its text beside it, written in the transaction that
//! appends it; so has every conversation that was made with this rule. Others are caught up with
//! before they are searched, in short transactions.
//!
//! Removed terms leave the server's files when it vacuums the table, as removed items do.
//!
//! Not here: searching.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{AppendRequest, Node, rules};
use futures_util::TryStreamExt as _;
use futures_util::future::try_join;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};
use crate::rows::node_row::{self, columns};
use crate::rows::path::NodePosition;

/// [`BEHIND`] and the index it uses name the version.
const _: () = assert!(
    rules::TERMS_VERSION == 1,
    "another rule needs a migration that makes the index listings_behind anew"
);

/// The version, as columns have it.
pub(crate) const RULE: i32 = rules::TERMS_VERSION.cast_signed();

/// What a `tsvector` can hold, in bytes, less some for what we add. With more, a text is proposed
/// to every query.
const VECTOR_BYTES: usize = (1 << 20) - 1024;

/// Proposes a text to every query. Like the other terms of ours it begins with what no term of a
/// text has.
pub(crate) const ANY: &str = "@any";

/// Rows of one statement.
const BATCH: usize = 500;

/// What one step of catching up reads at most: nodes, and about so many bytes of items.
const STEP_NODES: i64 = 500;
const STEP_BYTES: usize = 8 << 20;

/// Conversations that are caught up with before looking for others.
const STEP_CONVERSATIONS: i64 = 100;

/// Whatever a scope leaves open is null.
const BEHIND: &str = "SELECT owner, id FROM contexture.listings \
     WHERE terms_version <> 1 AND ($1 IS NULL OR owner = $1) AND ($2 IS NULL OR id = $2) \
     AND ($3 IS NULL OR resource = $3) LIMIT $4";

/// Nodes without terms of this rule.
const MISSING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM contexture.nodes n WHERE n.conversation = $1 AND (n.segment, n.depth) > ($2, $3) \
     AND n.redacted_ms IS NULL AND NOT EXISTS (SELECT FROM contexture.terms t \
     WHERE t.conversation = $1 AND t.segment = n.segment AND t.depth = n.depth AND t.rule = $4) \
     ORDER BY n.segment, n.depth LIMIT $5"
);

/// A conversation that is to be caught up with.
#[derive(Debug)]
pub(crate) struct UnindexedConversation {
    owner: Owner,
    id: ConversationId,
}

/// What is written of a node.
struct IndexEntry {
    position: NodePosition,
    created_ms: i64,
    kind: i16,
    audience: i16,
    terms: String,
}

/// The term of everything that an owner has.
pub(crate) fn owner_term(owner: &Owner) -> String {
    // The owner as a term of each node, so that the index itself narrows a search to the owner. A
    // collision of the short hash only proposes more; the join decides.
    let mut hasher = blake3::Hasher::new_derive_key("contexture 2026 owner term");
    hasher.update(owner.as_str().as_bytes());
    let mut hash = [0; 8];
    hasher.finalize_xof().fill(&mut hash);
    format!("@o{:016x}", u64::from_be_bytes(hash))
}

/// The term of everything in a conversation.
pub(crate) fn conversation_term(key: [u8; 16]) -> String {
    format!("@c{:016x}", u128::from_be_bytes(key) >> 64)
}

/// What each node of a conversation has beside its own terms.
pub(crate) fn scope_terms(conv: &ConversationRow) -> Vec<String> {
    vec![conversation_term(conv.key), owner_term(&conv.owner)]
}

/// The terms of each item, separated by spaces.
pub(crate) fn item_terms(request: &AppendRequest) -> Vec<String> {
    let items = request.items.iter();
    items.map(|item| terms_of(&item.json)).collect()
}

/// The terms of an item, separated by spaces.
pub(crate) fn terms_of(json: &str) -> String {
    let terms = rules::index_terms(&rules::searchable_text(json));
    match terms.len() {
        0..=VECTOR_BYTES => terms,
        // The server would refuse the whole append over one long text. Proposed to every query, the
        // text is still found: the rules judge it.
        _ => ANY.to_owned(),
    }
}

/// Indexes items that are being appended behind `after`.
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
            // Arrays instead of rows of parameters: one statement for a batch, whatever its size.
            // An upsert, since catching up meets rows of an older rule.
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
                RULE,
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

/// Conversations that are to be caught up with: some, unless there are none.
pub(crate) async fn find_unindexed(
    tx: &Tx<'_>,
    owner: Option<&Owner>,
    id: Option<&ConversationId>,
    resource: Option<&str>,
) -> Result<Vec<UnindexedConversation>, RowError> {
    let rows = tx
        .query_rows(
            BEHIND,
            params![
                owner.map(Owner::as_str),
                id.map(ConversationId::as_str),
                resource.map(|name| Bytea::Text(name.into())),
                STEP_CONVERSATIONS
            ],
        )
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

/// Indexes some of the nodes behind `after` that have no terms yet; gives where to go on.
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
        // Meanwhile an older version of this program may have appended further ahead.
        return Ok(Some(NodePosition::default()));
    }
    tx.execute_on_commit(
        "UPDATE contexture.listings SET terms_version = $3 WHERE owner = $1 AND id = $2",
        params![owner.as_str(), id.as_str(), RULE],
    );
    Ok(None)
}

async fn load_missing_entries(
    tx: &Tx<'_>,
    key: [u8; 16],
    after: NodePosition,
) -> Result<Vec<IndexEntry>, RowError> {
    let params = params![key, after.segment, after.depth, RULE, STEP_NODES];
    let mut rows = std::pin::pin!(tx.query_stream(MISSING, params).await?);
    let mut entries = Vec::new();
    let mut bytes = 0;
    // Streamed, so that a page of large items is not all in memory before the limit is noticed.
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
            // A damaged node gets an empty row: without one it would be found missing again in
            // every step.
            terms: node.map_or_else(String::new, |node: Node| terms_of(&node.json)),
        });
    }
    Ok(entries)
}
