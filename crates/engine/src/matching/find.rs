//! The places a history may stand for.

use contexture_ir::{CHAIN_VERSION, ConversationId, Owner, PathHash, PathLink};
use contexture_store::{PathPlace, PathQuery, Store};

use super::keys::{Keys, Standing};
use crate::error::EngineError;

/// Places looked at of each hash.
const EACH: usize = 8;
/// Beginnings looked up at once, the longest first: whoever goes on is found among the first.
const NEAR: usize = 32;

/// A place that was found, and by what.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) link: PathLink,
    pub(super) standing: Standing,
    pub(super) place: PathPlace,
}

/// Where to look.
#[derive(Clone, Copy)]
pub(super) struct Finder<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) owner: &'a Owner,
    pub(super) keys: &'a Keys,
    pub(super) conversation: Option<&'a ConversationId>,
}

impl Finder<'_> {
    /// The places of the longest beginnings, and those of the rest if the first were not `enough`. The
    /// longest come first.
    pub(super) async fn find(
        &self,
        links: &[PathLink],
        standings: &[Standing],
        enough: impl Fn(&[Candidate]) -> bool,
    ) -> Result<Vec<Candidate>, EngineError> {
        let most = self.store.limits().path_hashes / Standing::ALL.len();
        let (rest, near) = links.split_at(links.len().saturating_sub(NEAR));
        let mut found = self.look_up(near, standings).await?;
        for part in rest.rchunks(most.max(1)) {
            if enough(&found) {
                break;
            }
            found.extend(self.look_up(part, standings).await?);
        }
        Ok(found)
    }

    /// The place of an answer, by the provider's id.
    pub(super) async fn response(&self, id: &str) -> Result<Option<PathPlace>, EngineError> {
        let places = self.places(vec![self.keys.response(id)]).await?;
        Ok(places.into_iter().next())
    }

    async fn look_up(
        &self,
        links: &[PathLink],
        standings: &[Standing],
    ) -> Result<Vec<Candidate>, EngineError> {
        let longest_first = links.iter().rev();
        let asked: Vec<(PathHash, PathLink, Standing)> = longest_first
            .flat_map(|link| {
                let key = |standing: &Standing| self.keys.path(*standing, link.hash);
                standings.iter().map(move |one| (key(one), *link, *one))
            })
            .collect();
        let places = self.places(asked.iter().map(|(key, ..)| *key).collect());
        // They come in the order in which they were asked for.
        let mut asked = asked.into_iter().peekable();
        let mut found = Vec::new();
        for place in places.await? {
            while asked.next_if(|(key, ..)| *key != place.hash).is_some() {}
            if let Some((_, link, standing)) = asked.peek() {
                found.push(Candidate {
                    link: *link,
                    standing: *standing,
                    place,
                });
            }
        }
        Ok(found)
    }

    async fn places(&self, hashes: Vec<PathHash>) -> Result<Vec<PathPlace>, EngineError> {
        let Some(index) = self.store.paths().filter(|_| !hashes.is_empty()) else {
            return Ok(Vec::new());
        };
        let query = PathQuery {
            version: CHAIN_VERSION,
            hashes,
            conversation: self.conversation.cloned(),
            each: EACH,
        };
        Ok(index.find_paths(self.owner, query).await?)
    }
}
