//! Blobs as rows.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{BlobId, EntityKind, Error};
use futures_util::future::try_join;

use crate::connection::error::RowError;
use crate::connection::params::{get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};

/// Stores bytes in a conversation, unless they are stored already.
pub(crate) async fn put_blob(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    bytes: &Arc<[u8]>,
) -> Result<BlobId, RowError> {
    let conv = ConversationRow::load_for_update(tx, owner, id).await?;
    Ok(insert_blob(tx, &conv, bytes))
}

/// Stores bytes in a locked conversation, unless they are stored already.
pub(crate) fn insert_blob(tx: &mut Tx<'_>, conv: &ConversationRow, bytes: &Arc<[u8]>) -> BlobId {
    let id = BlobId::of(&conv.owner, bytes);
    // A blob that is stored again is about to be named by an item, so its mark is cleared.
    tx.execute_on_commit(
        "INSERT INTO contexture.blobs AS old (conversation, blob_id, codec, bytes) \
         VALUES ($1, $2, 0, $3) ON CONFLICT (conversation, blob_id) \
         DO UPDATE SET unnamed_ms = NULL WHERE old.unnamed_ms IS NOT NULL",
        params![conv.key, id, Arc::clone(bytes)],
    );
    id
}

/// Reads stored bytes and checks them against their id.
pub(crate) async fn read_blob(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    blob: BlobId,
) -> Result<Arc<[u8]>, RowError> {
    let row = tx.query_row(
        "SELECT bytes FROM contexture.blobs WHERE conversation = $1 AND blob_id = $2",
        params![ConversationKey::of(owner, id).into_bytes(), blob],
    );
    let (conv, row) = try_join(ConversationRow::load_for_read(tx, owner, id), row).await?;
    let row = row.ok_or_else(|| Error::not_found(EntityKind::Blob, blob))?;
    let bytes: &[u8] = get_column(&row, 0)?;
    if BlobId::of(owner, bytes) != blob {
        let why = "its bytes do not match their hash";
        return Err(conv.damaged_error("blob", blob, why).into());
    }
    Ok(bytes.into())
}

/// Returns an eight-byte checksum, for rows that are not addressed by their hash.
pub(crate) fn row_checksum(bytes: &[u8]) -> [u8; 8] {
    let mut check = [0; 8];
    blake3::Hasher::new()
        .update(bytes)
        .finalize_xof()
        .fill(&mut check);
    check
}
