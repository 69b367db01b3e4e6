//! Which of the places found is meant.
//!
//! Nobody names a conversation: it is gone on with at the end of the longest beginning that holds a
//! recorded answer, if nothing but the user's side is new; else what is stored whole is asked again;
//! else whoever stops short of every end begins anew. Strangers that begin alike are kept apart by that.
//!
//! Somebody names one: it is gone on with there, whatever it takes. What leaves the path opens a branch.

use contexture_ir::{BranchName, ConversationId, NodeId};
use contexture_store::{Conversation as Record, PathPlace};

use super::copy::{Copied, Tails};
use super::find::{Candidate, Finder};
use super::incoming::Matched;
use super::keys::Standing;
use super::sent::Sent;
use super::window;
use crate::error::EngineError;

/// Places whose ends are looked at, where none is an end itself.
const ENDS: usize = 4;

/// Where a request goes on.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) conversation: ConversationId,
    /// How many of its items are stored.
    pub(super) known: usize,
    /// The node behind which the rest goes; `None`: the beginning.
    pub(super) base: Option<NodeId>,
    /// A branch that ends there; `None`: all have gone on.
    pub(super) branch: Option<BranchName>,
    /// Whether an answer was recorded up to there.
    pub(super) answered: bool,
    pub(super) matched: Matched,
}

impl Sent<'_> {
    /// The spot behind a candidate.
    fn spot(&self, found: &Candidate, branch: Option<BranchName>, matched: Matched) -> Spot {
        Spot {
            conversation: found.place.conversation.clone(),
            known: self.known(&found.link),
            base: Some(found.place.node),
            branch,
            answered: found.standing != Standing::Said,
            matched: match self.is_whole(&found.link) {
                true => Matched::Retry,
                false => matched,
            },
        }
    }

    /// Where it goes on if nobody names a conversation; `None`: in a new one.
    pub(super) async fn by_prefix(
        &self,
        finder: &Finder<'_>,
        tails: &Tails<'_>,
    ) -> Result<Option<Spot>, EngineError> {
        let goes_on = |found: &Candidate| {
            found.standing == Standing::Answered
                && !found.place.heads.is_empty()
                && self.goes_on(&found.link)
        };
        let enough = |found: &[Candidate]| found.iter().any(goes_on);
        let found = finder.find(self.links, &Standing::UNNAMED, enough).await?;
        let found = self.without_shadows(found);
        if let Some(found) = found.iter().find(|found| goes_on(found)) {
            let branch = found.place.heads.first().cloned();
            return Ok(Some(self.spot(found, branch, Matched::Prefix)));
        }
        let Some(longest) = found.first().map(|found| found.link) else {
            return Ok(None);
        };
        if let Some(spot) = self.behind_silence(&found, tails, Matched::Prefix).await? {
            return Ok(Some(spot));
        }
        let mut behind = None;
        let ends = found.iter().filter(|found| !found.place.heads.is_empty());
        for found in ends.take(ENDS) {
            let branch = found.place.heads.first().cloned();
            let spot = self.spot(found, branch, Matched::Prefix);
            match tails.copied(self, found).await? {
                Copied::Items(items) => {
                    let known = spot.known + items;
                    return Ok(Some(Spot { known, ..spot }));
                }
                Copied::NotCut if found.link == longest && found.standing == Standing::Answered => {
                    behind.get_or_insert(spot);
                }
                Copied::NotCut | Copied::Other => {}
            }
        }
        let whole = found
            .iter()
            .find(|found| self.is_whole(&found.link) && found.standing == Standing::Answered);
        Ok(match whole {
            Some(found) => Some(self.spot(found, None, Matched::Retry)),
            None => behind,
        })
    }

    /// Where it goes on in a conversation that is named. `start`: behind this answer.
    pub(super) async fn by_name(
        &self,
        finder: &Finder<'_>,
        tails: &Tails<'_>,
        record: &Record,
        wanted: Option<&BranchName>,
        start: Option<&PathPlace>,
    ) -> Result<Spot, EngineError> {
        let enough = |found: &[Candidate]| !found.is_empty();
        let found = finder.find(self.links, &Standing::ALL, enough).await?;
        let mut found = self.without_shadows(found);
        let longest = found.first().map(|found| found.link);
        found.retain(|found| Some(found.link) == longest);
        let own = |found: &Candidate| {
            let heads = &found.place.heads;
            let wanted = wanted.and_then(|wanted| heads.iter().find(|head| *head == wanted));
            wanted.or(heads.first()).cloned()
        };
        found.sort_by_key(|found| {
            let heads = &found.place.heads;
            let is_wanted = wanted.is_some_and(|wanted| heads.contains(wanted));
            (!is_wanted, heads.is_empty())
        });
        if longest.is_some_and(|link| self.is_whole(&link))
            && let Some(first) = found.first()
        {
            let behind = match first.place.heads.is_empty() {
                true => self.behind_silence(&found, tails, Matched::Retry).await?,
                false => None,
            };
            return Ok(behind.unwrap_or_else(|| self.spot(first, own(first), Matched::Retry)));
        }
        for found in found.iter().filter(|found| !found.place.heads.is_empty()) {
            let spot = self.spot(found, own(found), Matched::Explicit);
            match tails.copied(self, found).await? {
                Copied::NotCut => return Ok(spot),
                Copied::Items(items) => {
                    let known = spot.known + items;
                    return Ok(Spot { known, ..spot });
                }
                Copied::Other => {}
            }
        }
        if let Some(spot) = self
            .behind_silence(&found, tails, Matched::Explicit)
            .await?
        {
            return Ok(spot);
        }
        let nothing = Spot {
            conversation: record.id.clone(),
            known: 0,
            base: None,
            branch: None,
            answered: false,
            matched: Matched::Explicit,
        };
        if let Some(start) = start.filter(|_| found.is_empty()) {
            let end = match start.heads.first() {
                Some(branch) => Some((branch.clone(), start.node)),
                None => tails.silent_end(start).await?,
            };
            return Ok(Spot {
                base: Some(end.as_ref().map_or(start.node, |(_, head)| *head)),
                branch: end.map(|(branch, _)| branch),
                answered: true,
                ..nothing
            });
        }
        let branch = wanted.unwrap_or(&record.active);
        if record.nodes == 0 {
            let branch = Some(record.active.clone());
            return Ok(Spot { branch, ..nothing });
        }
        let prefix = found.first().map_or(0, |found| self.known(&found.link));
        if let Some(aligned) = window::align(tails, &record.id, self.items, prefix, branch).await? {
            return Ok(Spot {
                known: aligned.known,
                base: Some(aligned.head),
                branch: Some(branch.clone()),
                answered: aligned.answered,
                ..nothing
            });
        }
        // It left the path here.
        let inside = found.iter().find(|found| found.place.heads.is_empty());
        let left = inside.or(found.first());
        Ok(left.map_or(nothing, |found| self.spot(found, None, Matched::Explicit)))
    }

    /// Of places of all that was sent only the first on their path: behind it stands an answer to it.
    fn without_shadows(&self, found: Vec<Candidate>) -> Vec<Candidate> {
        let whole = found.iter().filter(|found| self.is_whole(&found.link));
        let places: Vec<(ConversationId, u64)> = whole
            .map(|found| (found.place.conversation.clone(), found.place.depth))
            .collect();
        let is_shadow = |found: &Candidate| {
            self.is_whole(&found.link)
                && places.iter().any(|(conversation, depth)| {
                    *conversation == found.place.conversation && *depth < found.place.depth
                })
        };
        found
            .into_iter()
            .filter(|found| !is_shadow(found))
            .collect()
    }

    /// Behind the longest beginning, where only nodes that nobody sent follow it up to an end.
    async fn behind_silence(
        &self,
        found: &[Candidate],
        tails: &Tails<'_>,
        matched: Matched,
    ) -> Result<Option<Spot>, EngineError> {
        let longest = found.first().map(|found| found.link);
        let inside = found.iter().filter(|found| {
            Some(found.link) == longest
                && found.standing != Standing::Cut
                && found.place.heads.is_empty()
        });
        for found in inside.take(ENDS) {
            if let Some((branch, head)) = tails.silent_end(&found.place).await? {
                let spot = self.spot(found, Some(branch), matched);
                return Ok(Some(Spot {
                    base: Some(head),
                    ..spot
                }));
            }
        }
        Ok(None)
    }
}
