//! Erasing, step by step until nothing is left.

use contexture_ir::Owner;

use crate::erase::{EraseScope, Erased};
use crate::error::Error;
use crate::store::Store;

/// Calls [`Store::erase_step`] until nothing is left; gives what was removed. May be dropped and called
/// again: it goes on where it was.
pub async fn erase_all(
    store: &dyn Store,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<Erased, Error> {
    let mut total = Erased::default();
    loop {
        let step = store.erase_step(owner, scope).await?;
        total.conversations += step.conversations;
        total.entries += step.entries;
        if !step.more {
            return Ok(total);
        }
    }
}
