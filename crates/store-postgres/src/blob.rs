//! Blobs as rows.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{BlobId, Error, Thing};
use futures_util::future::try_join;

use crate::conv::{Conv, Key};
use crate::fault::Fault;
use crate::param::params;
use crate::row::get;
use crate::tx::Tx;

/// Stores bytes in a conversation, once.
pub(crate) async fn put(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    bytes: &Arc<[u8]>,
) -> Result<BlobId, Fault> {
    let conv = Conv::lock(tx, owner, id).await?;
    Ok(insert(tx, &conv, bytes))
}

/// Stores bytes in a locked conversation, once.
pub(crate) fn insert(tx: &mut Tx<'_>, conv: &Conv, bytes: &Arc<[u8]>) -> BlobId {
    let id = BlobId::of(&conv.owner, bytes);
    // Who stores it again is about to name it.
    tx.later(
        "INSERT INTO contexture.blobs AS old (conversation, blob_id, codec, bytes) \
         VALUES ($1, $2, 0, $3) ON CONFLICT (conversation, blob_id) \
         DO UPDATE SET unnamed_ms = NULL WHERE old.unnamed_ms IS NOT NULL",
        params![conv.key, id, Arc::clone(bytes)],
    );
    id
}

/// Stored bytes, if they are what was stored.
pub(crate) async fn bytes(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    blob: BlobId,
) -> Result<Arc<[u8]>, Fault> {
    let row = tx.row(
        "SELECT bytes FROM contexture.blobs WHERE conversation = $1 AND blob_id = $2",
        params![Key::of(owner, id).bytes(), blob],
    );
    let (conv, row) = try_join(Conv::see(tx, owner, id), row).await?;
    let row = row.ok_or_else(|| Error::not_found(Thing::Blob, blob))?;
    let bytes: &[u8] = get(&row, 0)?;
    if BlobId::of(owner, bytes) != blob {
        let why = "its bytes do not match their hash";
        return Err(conv.damaged("blob", blob, why).into());
    }
    Ok(bytes.into())
}

/// Eight bytes that tell damage: for rows that are not addressed by their hash.
pub(crate) fn check(bytes: &[u8]) -> [u8; 8] {
    let mut check = [0; 8];
    blake3::Hasher::new()
        .update(bytes)
        .finalize_xof()
        .fill(&mut check);
    check
}
