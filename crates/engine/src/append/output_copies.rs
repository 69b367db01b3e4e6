//! Copies of long outputs outside the database, put as the outputs are stored.
//!
//! A copy is derived data. It is put after the transaction that stores its output and never fails that transaction: a
//! copy that could not be put is counted, reported to watchers, and put later by [`reconcile_copies`]. An evicted copy
//! stays evicted.
//!
//! Not here: the places copies go to, and sweeping them (`contexture-offload`); reading an output again, which asks the
//! tree ([`Conversation::resolve_link`]).

use std::collections::BTreeSet;

use bytes::Bytes;
use contexture_ir::{ContentHash, Item};
use contexture_offload::{CopyKey, CopyKind, CopyScope, OffloadError};
use contexture_store::{AppendRequest, Appended, NewItem, NodeKind};
use contexture_telemetry::count_appended_items;

use super::append;
use crate::error::EngineError;
use crate::handle::{Conversation, CopyReport, EngineEventKind};
use crate::path::StoredPath;
use crate::refs::list_refs;

/// Appends, and copies the long outputs of what was appended.
pub(crate) async fn append_with_copies(
    chat: &Conversation,
    mut request: AppendRequest,
) -> Result<Appended, EngineError> {
    chat.apply_fence(&mut request);
    // Collected before the append, which takes the items, and put after it: a copy of an output that was not
    // stored would be garbage.
    let outputs = long_outputs(chat, &request.items);
    let appended = append(chat.store(), chat.owner(), chat.id(), request);
    let appended = appended.await?;
    // A repeated append stored nothing now and was counted the first time.
    if !appended.replayed {
        count_appended_items(appended.nodes.len());
    }
    let mut report = CopyReport::default();
    for (content, text) in outputs {
        copy_output(chat, content, text, &mut report).await;
    }
    publish_copy_report(chat, report);
    Ok(appended)
}

/// Puts the copies that are missing, of all branches' outputs: what was stored while the place failed, or before
/// [`Engine::with_offload`](crate::Engine::with_offload). Without that it does nothing.
pub(crate) async fn reconcile_copies(chat: &Conversation) -> Result<CopyReport, EngineError> {
    let mut report = CopyReport::default();
    let Some(copies) = chat.engine().output_copies() else {
        return Ok(report);
    };
    let scope = CopyScope::conversation(chat.owner(), chat.id());
    // One listing instead of one look-up for each output: conversations have thousands, copies are few.
    let held = copies.store.list_copies(&scope).await?;
    let held: BTreeSet<ContentHash> = held.iter().map(|entry| entry.key.content_hash()).collect();
    let mut seen = BTreeSet::new();
    for branch in list_refs(chat).await?.branches {
        let Some(head) = branch.head else { continue };
        // Branches share their beginnings: each node is read once, however many branches hold it.
        let is_known = |id: &_| seen.contains(id);
        let new =
            StoredPath::load_unknown(chat.store(), chat.owner(), chat.id(), head, is_known).await?;
        for (node, item) in &new {
            seen.insert(node.id);
            let missing = node.redacted_ms.is_none() && !held.contains(&node.content_hash);
            let Some(text) = copies.text_to_copy(item).filter(|_| missing) else {
                continue;
            };
            let key = CopyKey::new(chat.owner(), chat.id(), node.content_hash);
            // A listing does not show evicted copies. Putting one back would undo the eviction.
            match copies.store.stat(&key).await {
                Err(OffloadError::Evicted { .. }) => report.evicted += 1,
                _ => copy_output(chat, node.content_hash, text, &mut report).await,
            }
        }
    }
    publish_copy_report(chat, report);
    Ok(report)
}

fn long_outputs(chat: &Conversation, items: &[NewItem]) -> Vec<(ContentHash, Bytes)> {
    let Some(copies) = chat.engine().output_copies() else {
        return Vec::new();
    };
    let outputs = items
        .iter()
        // JSON is never shorter than the text in it, so short items are skipped without being parsed.
        .filter(|item| item.kind == NodeKind::FunctionCallOutput && item.json.len() > copies.over);
    outputs
        .filter_map(|new| {
            let text = copies.text_to_copy(&Item::parse(&new.json).ok()?)?;
            Some((ContentHash::of(new.json.as_bytes()), text))
        })
        .collect()
}

async fn copy_output(
    chat: &Conversation,
    content: ContentHash,
    text: Bytes,
    report: &mut CopyReport,
) {
    let Some(copies) = chat.engine().output_copies() else {
        return;
    };
    let key = CopyKey::new(chat.owner(), chat.id(), content);
    let now = chat.engine().now_ms();
    match copies.store.put_copy(&key, text, CopyKind::Copy, now).await {
        Ok(_) => report.put += 1,
        Err(_) => report.failed += 1,
    }
}

fn publish_copy_report(chat: &Conversation, report: CopyReport) {
    // Evicted copies alone are no news: they are met in every run.
    if report.put + report.failed > 0 {
        chat.publish(|| EngineEventKind::Copied { report });
    }
}
