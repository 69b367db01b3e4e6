//! Reads a part of a path in as many pages as it takes.

use contexture_ir::{ConversationId, Owner, ResponseId};
use futures_util::future::{BoxFuture, FutureExt, poll_immediate, ready};

use crate::contract::{Error, PathEnd, PathPage, ReadRequest, Span, Store};

/// A part of a path page by page: while the caller works on one page the store reads the next.
///
/// The path to the head that the first page names never changes, so all pages are of one path; a redaction may happen between
/// two of them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # use contexture_ir::{BranchName, ConversationId, Owner};
/// # use contexture_store::{MemoryStore, NewConversation, Store};
/// use contexture_store::{PathEnd, PathPages, ReadRequest};
///
/// # let (store, owner, id) = (MemoryStore::new(), Owner::local(), ConversationId::new("c")?);
/// # store.create_conversation(&owner, NewConversation::new(id.clone(), 1)).await?;
/// let request = ReadRequest::whole_path(PathEnd::Branch(BranchName::main()));
/// let mut pages = PathPages::new(&store, &owner, &id, request);
/// while let Some(page) = pages.next().await? {
///     assert_eq!(page.head, None, "the branch is empty");
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct PathPages<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    id: &'a ConversationId,
    /// The last depth of the span; `None` for the end of the path.
    last: Option<u64>,
    /// Nodes that the caller still wants; `None` for all.
    wanted: Option<usize>,
    reading: Option<BoxFuture<'a, Result<PathPage, Error>>>,
}

impl<'a> PathPages<'a> {
    /// Largest number of nodes of a page.
    pub const NODES: usize = 1_024;

    /// Begins to read the part of a path that `request` asks for, at most [`ReadRequest::limit`] nodes in all.
    #[must_use]
    pub fn new(
        store: &'a dyn Store,
        owner: &'a Owner,
        id: &'a ConversationId,
        mut request: ReadRequest,
    ) -> Self {
        let last = match request.span {
            Span::Between(_, last) => Some(last),
            Span::Whole | Span::Last(_) | Span::From(_) | Span::SinceCompaction => None,
        };
        let wanted = request.limit;
        request.limit = Some(wanted.unwrap_or(Self::NODES).min(Self::NODES));
        Self {
            store,
            owner,
            id,
            last,
            wanted,
            reading: Some(store.read_path(owner, id, request)),
        }
    }

    /// Returns the next page; the first always comes, be it empty.
    ///
    /// [`PathPage::next`] of the last page says where the path goes on behind [`ReadRequest::limit`].
    ///
    /// # Errors
    /// The store's. The reading is then over.
    pub async fn next(&mut self) -> Result<Option<PathPage>, Error> {
        let Some(reading) = self.reading.take() else {
            return Ok(None);
        };
        let page = reading.await?;
        self.wanted = self
            .wanted
            .map(|wanted| wanted.saturating_sub(page.nodes.len()));
        // Later pages are read at the node, not at the branch, which may move meanwhile. A page without nodes would only repeat
        // itself: it is the answer to a limit of 0.
        if let (Some(head), Some(next)) = (page.head, page.next)
            && self.wanted != Some(0)
            && !page.nodes.is_empty()
        {
            let request = ReadRequest {
                at: PathEnd::Node(head),
                span: Span::Between(next, self.last.unwrap_or(page.depth)),
                limit: Some(self.wanted.unwrap_or(Self::NODES).min(Self::NODES)),
            };
            let mut reading = self.store.read_path(self.owner, self.id, request);
            // Polled once, the store begins to read.
            let early = poll_immediate(&mut reading).await;
            self.reading = Some(match early {
                Some(page) => ready(page).boxed(),
                None => reading,
            });
        }
        Ok(Some(page))
    }
}

/// Reads all that a request asks for, in as many pages as its bytes need, and returns it as one page.
///
/// Holds it all in memory: for parts of a path that are small by their nature, or that the caller keeps anyway.
///
/// # Errors
/// The store's.
pub async fn read_all_pages(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    request: ReadRequest,
) -> Result<PathPage, Error> {
    let mut pages = PathPages::new(store, owner, id, request);
    // Boxed: it is awaited deep within runs of agents, whose futures hold it.
    Box::pin(async move {
        let mut all = PathPage::default();
        while let Some(mut page) = pages.next().await? {
            all.nodes.append(&mut page.nodes);
            all = PathPage {
                nodes: all.nodes,
                ..page
            };
        }
        Ok(all)
    })
    .await
}

/// Returns the newest answer in the part of a path that a request asks for. At most one page is in memory.
///
/// # Errors
/// The store's.
pub async fn find_last_response(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    request: ReadRequest,
) -> Result<Option<ResponseId>, Error> {
    let (mut pages, mut newest) = (PathPages::new(store, owner, id, request), None);
    while let Some(page) = pages.next().await? {
        newest = page
            .nodes
            .iter()
            .rev()
            .find_map(|node| node.response)
            .or(newest);
    }
    Ok(newest)
}
