//! The whole path of a branch: what a handle has read is kept, so that the next call reads what is new and nothing else.
//!
//! Nodes never change but by redaction, which is an event. So a kept path is good for a branch whose path goes on from
//! its end, if no redaction happened since; anything else is read again from the first node.
//!
//! Not here: parts of paths, pages (`path`).

use std::sync::Arc;

use contexture_ir::NodeId;
use contexture_store::{EventKind, PathEnd, ReadRequest, Span};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::path::StoredPath;
use crate::seen::CachedPath;

/// New events looked through before reading the path again is as good.
const EVENTS: usize = 256;

impl Conversation {
    /// The whole path to a branch's head.
    ///
    /// The first time it is read; later in proportion to what is new.
    pub(crate) async fn read_full_path(&self, at: PathEnd) -> Result<Arc<StoredPath>, EngineError> {
        let kept = self.path_cache().lock().take();
        if let Some(kept) = kept
            && let Some(grown) = self.extend_cached_path(kept, &at).await?
        {
            let path = Arc::clone(&grown.path);
            *self.path_cache().lock() = Some(grown);
            return Ok(path);
        }
        // An event after this one may be a redaction of what is about to be read.
        let event = self.info().await?.events;
        let path = Arc::new(self.load_path(ReadRequest::whole_path(at)).await?);
        *self.path_cache().lock() = Some(CachedPath {
            path: Arc::clone(&path),
            event,
        });
        Ok(path)
    }

    /// The kept path with what is new; `None` if it is no beginning of the path, or no longer as it was read.
    async fn extend_cached_path(
        &self,
        mut kept: CachedPath,
        at: &PathEnd,
    ) -> Result<Option<CachedPath>, EngineError> {
        let known = kept.path.nodes.len() as u64;
        let request = ReadRequest {
            at: at.clone(),
            span: Span::From(known + 1),
            limit: None,
        };
        let (store, owner, id) = (self.store(), self.owner(), self.id());
        let page = store.read_path(owner, id, request).await?;
        if page.depth < known {
            return Ok(None);
        }
        let end: Option<NodeId> = kept.path.head;
        let goes_on = match page.nodes.first() {
            Some(first) => first.parent == end && first.depth == known + 1,
            None => page.head == end,
        };
        if !goes_on {
            return Ok(None);
        }
        // Read after the nodes: a redaction of one of them that they do not show is later than this call.
        let events = store.list_events(owner, id, kept.event, EVENTS).await?;
        let redacts = |kind: &EventKind| {
            matches!(
                kind,
                EventKind::NodeRedacted { .. } | EventKind::BytesRedacted { .. }
            )
        };
        if events.len() == EVENTS || events.iter().any(|event| redacts(&event.kind)) {
            return Ok(None);
        }
        kept.event = events.last().map_or(kept.event, |event| event.seq);
        if !page.nodes.is_empty() {
            // Nobody else holds the path between two calls: nothing is copied then.
            Arc::make_mut(&mut kept.path).append_page(page)?;
        }
        Ok(Some(kept))
    }
}
