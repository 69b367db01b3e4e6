//! Choosing where a request continues, among the stored places that match its history.
//!
//! If the client names no conversation, the request continues the longest branch whose whole path is a beginning of its
//! history and holds a recorded answer, if everything after that is the user's. Otherwise a history that is stored
//! completely is a retry, and one that reaches no end of a branch begins a new conversation. This keeps apart strangers
//! whose conversations begin alike.
//!
//! If the client names one, the request always continues in it; where it departs from the stored path, a branch is
//! opened.

use contexture_ir::{BranchName, ConversationId, NodeId};
use contexture_store::{Conversation as Record, PathMatch};

use super::candidates::{CandidateFinder, PathCandidate};
use super::compare_tail::{CopyMatch, PathTails};
use super::keys::AnswerStatus;
use super::request_history::RequestHistory;
use super::types::MatchKind;
use super::window::align_window;
use crate::error::EngineError;

/// The most candidates for which the end of the stored path is read.
const MAX_TAIL_READS: usize = 4;

/// Where a request continues.
#[derive(Clone, Debug)]
pub(super) struct MatchTarget {
    pub(super) conversation: ConversationId,
    /// How many of the request's items are stored already.
    pub(super) known: usize,
    /// The node after which the other items are appended; `None`: the beginning of the tree.
    pub(super) base: Option<NodeId>,
    /// The branch to continue, whose head is `base`; `None`: a new branch is opened at `base`.
    pub(super) branch: Option<BranchName>,
    /// Whether an answer was recorded up to there.
    pub(super) has_answer: bool,
    pub(super) matched: MatchKind,
}

/// The conversation that a request names.
#[derive(Clone, Copy)]
pub(super) struct NamedConversation<'a> {
    pub(super) tails: &'a PathTails<'a>,
    pub(super) record: &'a Record,
    /// The branch that it names too.
    pub(super) wanted: Option<&'a BranchName>,
}

impl NamedConversation<'_> {
    /// Returns the branch that the client goes on with, if its history does not say otherwise.
    fn branch(&self) -> &BranchName {
        self.wanted.unwrap_or(&self.record.active)
    }

    /// Returns the target on a new branch at the beginning of the tree.
    fn new_target(&self) -> MatchTarget {
        MatchTarget {
            conversation: self.record.id.clone(),
            known: 0,
            base: None,
            branch: None,
            has_answer: false,
            matched: MatchKind::Explicit,
        }
    }
}

/// Returns the candidates of the longest beginning.
fn longest_candidates(all: &[PathCandidate]) -> Vec<PathCandidate> {
    let longest = all.first().map(|found| found.link);
    let found = all.iter().filter(|found| Some(found.link) == longest);
    found.cloned().collect()
}

impl RequestHistory<'_> {
    /// Returns the target right after a candidate.
    fn match_target(
        &self,
        found: &PathCandidate,
        branch: Option<BranchName>,
        matched: MatchKind,
    ) -> MatchTarget {
        MatchTarget {
            conversation: found.place.conversation.clone(),
            known: self.prefix_length(&found.link),
            base: Some(found.place.node),
            branch,
            has_answer: found.status != AnswerStatus::Unanswered,
            matched: match self.is_full_history(&found.link) {
                true => MatchKind::Retry,
                false => matched,
            },
        }
    }

    /// Finds where the request continues if it names no conversation; `None`: in a new one.
    pub(super) async fn match_by_prefix(
        &self,
        finder: &CandidateFinder<'_>,
        tails: &PathTails<'_>,
    ) -> Result<Option<MatchTarget>, EngineError> {
        // The end of a branch, with a recorded answer before it and nothing new from the model after it: a client
        // that continues its conversation. A stranger with the same beginning would not have the answer.
        let goes_on = |found: &PathCandidate| {
            found.status == AnswerStatus::Answered
                && !found.place.heads.is_empty()
                && self.is_continuation(&found.link)
        };
        let enough = |found: &[PathCandidate]| found.iter().any(goes_on);
        let found = finder
            .find_candidates(self.links, &AnswerStatus::UNNAMED, enough)
            .await?;
        let found = self.deduplicate_candidates(found);
        if let Some(found) = found.iter().find(|found| goes_on(found)) {
            let branch = found.place.heads.first().cloned();
            return Ok(Some(self.match_target(found, branch, MatchKind::Prefix)));
        }
        let Some(longest) = found.first().map(|found| found.link) else {
            return Ok(None);
        };
        if let Some(target) = self
            .skip_silent_nodes(&found, tails, MatchKind::Prefix)
            .await?
        {
            return Ok(Some(target));
        }
        let mut continuation = None;
        let ends = found.iter().filter(|found| !found.place.heads.is_empty());
        // Hashes cannot tell whether the client has part of an answer that was cut off: the end of the path must be
        // read.
        for found in ends.take(MAX_TAIL_READS) {
            let branch = found.place.heads.first().cloned();
            let target = self.match_target(found, branch, MatchKind::Prefix);
            match tails.compare_copy(self, found).await? {
                CopyMatch::Items(items) => {
                    let known = target.known + items;
                    return Ok(Some(MatchTarget { known, ..target }));
                }
                CopyMatch::NotCut
                    if found.link == longest && found.status == AnswerStatus::Answered =>
                {
                    continuation.get_or_insert(target);
                }
                CopyMatch::NotCut | CopyMatch::Other => {}
            }
        }
        // The same request again, with nothing new in it: the other answer gets a branch of its own.
        let full_match = found.iter().find(|found| {
            self.is_full_history(&found.link) && found.status == AnswerStatus::Answered
        });
        Ok(match full_match {
            Some(found) => Some(self.match_target(found, None, MatchKind::Retry)),
            None => continuation,
        })
    }

    /// Finds where the request continues in the conversation it names. `start` is the answer that it names, if it names
    /// one.
    pub(super) async fn match_by_name(
        &self,
        finder: &CandidateFinder<'_>,
        named: &NamedConversation<'_>,
        start: Option<&PathMatch>,
    ) -> Result<MatchTarget, EngineError> {
        let enough = |found: &[PathCandidate]| !found.is_empty();
        let found = finder
            .find_candidates(self.links, &AnswerStatus::ALL, enough)
            .await?;
        let mut all = self.deduplicate_candidates(found);
        let full = longest_candidates(&all);
        if full
            .first()
            .is_some_and(|one| self.is_full_history(&one.link))
            && full.iter().all(|one| one.place.heads.is_empty())
        {
            if let Some(target) = self.match_repetition(&all, &full, named).await? {
                return Ok(target);
            }
            // It was taken back: it goes where it would go if it had never been stored.
            all.retain(|one| !self.is_full_history(&one.link));
        }
        self.match_places(&all, named, start).await
    }

    /// Chooses among the stored places of a named conversation.
    async fn match_places(
        &self,
        all: &[PathCandidate],
        named: &NamedConversation<'_>,
        start: Option<&PathMatch>,
    ) -> Result<MatchTarget, EngineError> {
        let mut found = longest_candidates(all);
        let own = |found: &PathCandidate| {
            let heads = &found.place.heads;
            let wanted = named
                .wanted
                .and_then(|wanted| heads.iter().find(|head| *head == wanted));
            wanted.or(heads.first()).cloned()
        };
        // First the end of the branch that the client names, then ends of other branches: the stable sort keeps the
        // rest in order.
        found.sort_by_key(|found| {
            let heads = &found.place.heads;
            let is_wanted = named.wanted.is_some_and(|wanted| heads.contains(wanted));
            (!is_wanted, heads.is_empty())
        });
        if let Some(first) = found.first().filter(|one| self.is_full_history(&one.link)) {
            return Ok(self.match_target(first, own(first), MatchKind::Retry));
        }
        for found in found.iter().filter(|found| !found.place.heads.is_empty()) {
            let target = self.match_target(found, own(found), MatchKind::Explicit);
            match named.tails.compare_copy(self, found).await? {
                CopyMatch::NotCut => return Ok(target),
                CopyMatch::Items(items) => {
                    let known = target.known + items;
                    return Ok(MatchTarget { known, ..target });
                }
                CopyMatch::Other => {}
            }
        }
        if let Some(target) = self
            .skip_silent_nodes(&found, named.tails, MatchKind::Explicit)
            .await?
        {
            return Ok(target);
        }
        if !found.is_empty()
            && let Some(target) = self.match_branch_end(all, named).await?
        {
            return Ok(target);
        }
        self.match_left_path(named, start, &found).await
    }

    /// Finds where a request continues that is stored completely, but ends no branch; `None` if it was taken back. `found`
    /// are the places where it ends.
    async fn match_repetition(
        &self,
        all: &[PathCandidate],
        found: &[PathCandidate],
        named: &NamedConversation<'_>,
    ) -> Result<Option<MatchTarget>, EngineError> {
        let tails = named.tails;
        let silent = self.skip_silent_nodes(found, tails, MatchKind::Retry);
        if let Some(target) = silent.await? {
            return Ok(Some(target));
        }
        if let Some(target) = self.match_branch_end(all, named).await? {
            return Ok(Some(target));
        }
        for found in found {
            if tails.is_on_branch(&found.place).await? {
                return Ok(Some(self.match_target(found, None, MatchKind::Retry)));
            }
        }
        Ok(None)
    }

    /// Finds whether the branch that the client goes on with ends at a beginning of its history, and nothing of the model's
    /// follows there. What is stored beyond was taken back with a request that got no answer, or is another branch's.
    async fn match_branch_end(
        &self,
        all: &[PathCandidate],
        named: &NamedConversation<'_>,
    ) -> Result<Option<MatchTarget>, EngineError> {
        let branch = named.branch();
        let is_end = |found: &&PathCandidate| {
            found.place.heads.contains(branch) && self.is_continuation(&found.link)
        };
        if let Some(found) = all.iter().find(is_end) {
            let target = self.match_target(found, Some(branch.clone()), MatchKind::Explicit);
            return Ok(Some(target));
        }
        // The beginning of the tree is no place in the index.
        let id = &named.record.id;
        let is_empty = !self.has_answer() && named.tails.is_empty_branch(id, branch).await?;
        Ok(is_empty.then(|| MatchTarget {
            branch: Some(branch.clone()),
            ..named.new_target()
        }))
    }

    /// Chooses where a request continues in a named conversation if it matched no end of a branch: after the answer
    /// that it names, at the end of a path of which it sent only the last part, or on a new branch.
    async fn match_left_path(
        &self,
        named: &NamedConversation<'_>,
        start: Option<&PathMatch>,
        found: &[PathCandidate],
    ) -> Result<MatchTarget, EngineError> {
        let (tails, record) = (named.tails, named.record);
        // Known only by the id of the answer: its history was not hashed, so no beginning of it can be found.
        if let Some(start) = start.filter(|_| found.is_empty()) {
            let end = match start.heads.first() {
                Some(branch) => Some((branch.clone(), start.node)),
                None => tails.find_silent_end(start).await?,
            };
            return Ok(MatchTarget {
                base: Some(end.as_ref().map_or(start.node, |(_, head)| *head)),
                branch: end.map(|(branch, _)| branch),
                has_answer: true,
                ..named.new_target()
            });
        }
        // An empty conversation is continued on its active branch, whatever is sent.
        if record.nodes == 0 {
            return Ok(MatchTarget {
                branch: Some(record.active.clone()),
                ..named.new_target()
            });
        }
        let branch = named.branch();
        let prefix = found
            .first()
            .map_or(0, |found| self.prefix_length(&found.link));
        // Last resort before opening a branch: the client may have sent only the end of its history.
        if let Some(aligned) = align_window(tails, &record.id, self.items, prefix, branch).await? {
            return Ok(MatchTarget {
                known: aligned.known,
                base: Some(aligned.head),
                branch: Some(branch.clone()),
                has_answer: aligned.answered,
                ..named.new_target()
            });
        }
        // Here the request departs from the stored path.
        let inside = found.iter().find(|found| found.place.heads.is_empty());
        let left = inside.or(found.first());
        Ok(left.map_or_else(
            || named.new_target(),
            |found| self.match_target(found, None, MatchKind::Explicit),
        ))
    }

    /// Of the places that match the full history, keeps only the shallowest in each conversation: the deeper ones come
    /// after an answer to it.
    fn deduplicate_candidates(&self, found: Vec<PathCandidate>) -> Vec<PathCandidate> {
        let full_matches = found
            .iter()
            .filter(|found| self.is_full_history(&found.link));
        let places: Vec<(ConversationId, u64)> = full_matches
            .map(|found| (found.place.conversation.clone(), found.place.depth))
            .collect();
        let is_shadow = |found: &PathCandidate| {
            self.is_full_history(&found.link)
                && places.iter().any(|(conversation, depth)| {
                    *conversation == found.place.conversation && *depth < found.place.depth
                })
        };
        found
            .into_iter()
            .filter(|found| !is_shadow(found))
            .collect()
    }

    /// Finds the end of a branch after the longest beginning, if only nodes that no client would send lie in between.
    async fn skip_silent_nodes(
        &self,
        found: &[PathCandidate],
        tails: &PathTails<'_>,
        matched: MatchKind,
    ) -> Result<Option<MatchTarget>, EngineError> {
        let longest = found.first().map(|found| found.link);
        let inside = found.iter().filter(|found| {
            Some(found.link) == longest
                && found.status != AnswerStatus::Incomplete
                && found.place.heads.is_empty()
        });
        for found in inside.take(MAX_TAIL_READS) {
            if let Some((branch, head)) = tails.find_silent_end(&found.place).await? {
                let target = self.match_target(found, Some(branch), matched);
                return Ok(Some(MatchTarget {
                    base: Some(head),
                    ..target
                }));
            }
        }
        Ok(None)
    }
}
