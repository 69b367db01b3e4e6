//! Looking up the stored places that match a beginning of a history.

use contexture_ir::{CHAIN_VERSION, ConversationId, HistoryHash, Owner, PathHash};
use contexture_store::{PathMatch, PathQuery, Store};

use super::keys::{AnswerStatus, PathKeys};
use crate::error::EngineError;

/// Places looked at of each hash.
const EACH: usize = 8;

/// Beginnings looked up at once, the longest first: whoever goes on is found among the first.
const NEAR: usize = 32;

/// A stored place that matches a beginning, and the key that found it.
#[derive(Clone, Debug)]
pub(super) struct PathCandidate {
    pub(super) link: HistoryHash,
    pub(super) status: AnswerStatus,
    pub(super) place: PathMatch,
}

/// Looks up stored places among an owner's conversations.
#[derive(Clone, Copy)]
pub(super) struct CandidateFinder<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) owner: &'a Owner,
    pub(super) keys: &'a PathKeys,
    pub(super) conversation: Option<&'a ConversationId>,
}

impl CandidateFinder<'_> {
    /// The places of the longest beginnings, and those of the rest if the first were not `enough`. The
    /// longest come first.
    pub(super) async fn find_candidates(
        &self,
        links: &[HistoryHash],
        statuses: &[AnswerStatus],
        enough: impl Fn(&[PathCandidate]) -> bool,
    ) -> Result<Vec<PathCandidate>, EngineError> {
        // Each beginning is looked up under every status.
        let most = self.store.limits().path_hashes / AnswerStatus::ALL.len();
        // A client that goes on matches near the end; a longer look-up is needed only where it does not.
        let (rest, near) = links.split_at(links.len().saturating_sub(NEAR));
        let mut found = self.look_up_links(near, statuses).await?;
        for part in rest.rchunks(most.max(1)) {
            if enough(&found) {
                break;
            }
            found.extend(self.look_up_links(part, statuses).await?);
        }
        Ok(found)
    }

    /// The place of an answer, by the provider's id.
    pub(super) async fn find_response(&self, id: &str) -> Result<Option<PathMatch>, EngineError> {
        let places = self.find_places(vec![self.keys.response_key(id)]).await?;
        Ok(places.into_iter().next())
    }

    /// Whether a place is stored under a key.
    pub(super) async fn has_place(&self, key: PathHash) -> Result<bool, EngineError> {
        Ok(!self.find_places(vec![key]).await?.is_empty())
    }

    async fn look_up_links(
        &self,
        links: &[HistoryHash],
        statuses: &[AnswerStatus],
    ) -> Result<Vec<PathCandidate>, EngineError> {
        let longest_first = links.iter().rev();
        let queries: Vec<(PathHash, HistoryHash, AnswerStatus)> = longest_first
            .flat_map(|link| {
                let key = |status: &AnswerStatus| self.keys.history_key(*status, link.hash);
                statuses.iter().map(move |one| (key(one), *link, *one))
            })
            .collect();
        let places = self.find_places(queries.iter().map(|(key, ..)| *key).collect());
        // They come in the order in which they were asked for.
        let mut queries = queries.into_iter().peekable();
        let mut found = Vec::new();
        for place in places.await? {
            while queries.next_if(|(key, ..)| *key != place.hash).is_some() {}
            if let Some((_, link, status)) = queries.peek() {
                found.push(PathCandidate {
                    link: *link,
                    status: *status,
                    place,
                });
            }
        }
        Ok(found)
    }

    async fn find_places(&self, hashes: Vec<PathHash>) -> Result<Vec<PathMatch>, EngineError> {
        let Some(index) = self.store.path_index().filter(|_| !hashes.is_empty()) else {
            return Ok(Vec::new());
        };
        let query = PathQuery {
            version: CHAIN_VERSION,
            hashes,
            conversation: self.conversation.cloned(),
            each: EACH,
        };
        Ok(index.find_path_hashes(self.owner, query).await?)
    }
}
