//! Thinking that a model binds to all that stood before it, as a cache entry is bound to its prefix.
//!
//! Such a model refuses thinking behind another system prompt, other tools or other messages than those it was answered
//! to; thinking itself is a part of them. It accepts a history from which all thinking behind a place is gone
//! (pydantic/pydantic-ai#7984). So an edit takes all thinking behind it, up to the end of the path, and a frontier keeps
//! it out; what the model thinks afterwards is bound to the history without it.
//!
//! What was sent last is known by its hashes; items that were never sent are taken to have been answered to as they are
//! on the path. Not here: which items are thinking, and where the history is edited.

use contexture_ir::ContentHash;
use serde::{Deserialize, Serialize};

use crate::sent_history::{Prefix, SentHistory};

/// From where on thinking is sent. Before that, none is sent that stands behind the first edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkingFrontier {
    /// An index on the path: the end of it when something was edited last.
    pub index: usize,
    /// The index of the first item that was edited. Thinking before it stands behind what it was answered to.
    pub edit: usize,
    /// The content hash of the item before `index`, by which a frontier of another path is noticed.
    #[serde(with = "contexture_ir::hex")]
    pub hash: ContentHash,
}

impl ThinkingFrontier {
    /// Reports whether thinking at an index on the path may not be sent.
    #[must_use]
    pub fn leaves_out(&self, index: usize) -> bool {
        (self.edit..self.index).contains(&index)
    }

    /// Returns the frontier behind an edit of a path of so many items, the last of which has this hash. What an earlier
    /// frontier leaves out stays out.
    #[must_use]
    pub fn behind_edit(edit: usize, items: usize, last: ContentHash, before: Option<Self>) -> Self {
        Self {
            index: items,
            edit: before.map_or(edit, |before| before.edit.min(edit)),
            hash: last,
        }
    }
}

/// What becomes of thinking that stands behind another history than the one it was answered to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EditedThinking {
    /// It is left out.
    #[default]
    Omit,
    /// What it says stays, as a text of the model's; what only the provider can read is left out.
    AsText,
}

impl EditedThinking {
    /// Reports whether it is left out, as by default.
    #[must_use]
    pub fn is_omit(&self) -> bool {
        *self == Self::Omit
    }
}

/// A block of a history, and the items of the path that it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBlock {
    /// The block's identity.
    pub key: ContentHash,
    /// The first and the last index on the path; `None` for a block that is there in the place of what was cut.
    pub items: Option<(usize, usize)>,
}

/// The history that the thinking on a path was answered to, as far as is known.
#[derive(Debug)]
pub struct AnsweredHistory {
    /// The blocks as they are shown before anything is rewritten; nothing if others were sent.
    blocks: Option<Vec<ContentHash>>,
    /// How many items of the path were sent as those blocks show them.
    settled: usize,
    /// The first item behind what stood at the end of the last request and is not on the path.
    interrupted: Option<usize>,
    /// Whether a provider's compaction stands for what was sent.
    is_compacted: bool,
}

impl AnsweredHistory {
    /// Compares a history, shown as it was planned, with the one that was sent last. `compacted` is the index
    /// behind a compaction that the provider has made since: it may stand for what was sent, and keeps the thinking
    /// behind it.
    #[must_use]
    pub fn compare(
        sent: Option<&SentHistory>,
        planned: &[PathBlock],
        compacted: Option<usize>,
    ) -> Self {
        let blocks: Vec<ContentHash> = planned.iter().map(|block| block.key).collect();
        let end = sent.map(|sent| {
            let own = planned.iter().take(sent.blocks.saturating_add(1));
            let last = own
                .filter_map(|block| block.items)
                .map(|(_, last)| last)
                .max();
            let end = last.map_or(0, |last| last + 1);
            // What is older than the newest that was sent was put among it since.
            let mut added = planned.iter().skip(sent.blocks.saturating_add(1));
            let is_older = |(first, _)| first < end;
            let mixed = added.any(|block| block.items.is_some_and(is_older));
            let known = (sent.begins(&blocks) && !mixed).then_some(end);
            (known.or(compacted), sent.newest.is_some())
        });
        let is_compacted = compacted.is_some();
        let (blocks, settled, interrupted) = match end {
            None => (Some(blocks), 0, None),
            Some((Some(end), true)) => (Some(blocks), end, None),
            // Behind words of that call alone, or sent by a version that did not note them.
            Some((Some(end), false)) => (Some(blocks), 0, Some(end)),
            Some((None, _)) => (None, 0, None),
        };
        Self {
            blocks,
            settled,
            interrupted,
            is_compacted,
        }
    }

    /// Reports whether something else stands before the history than before.
    #[must_use]
    pub fn is_head_edited(&self, before: &Prefix, now: &Prefix) -> bool {
        // The limit is a part of the target, but of no request. A provider's compaction stands for all before it but
        // tools and system prompt.
        let same_anchor = self.is_compacted || before.anchor == now.anchor;
        let of = |prefix: &Prefix| (prefix.model().to_owned(), prefix.tools, prefix.system);
        !same_anchor || of(before) != of(now)
    }

    /// Returns the index on the path from which on thinking would stand behind another history than the one it was
    /// answered to, if there is one. `changes` are the indexes at which something else is shown than the item.
    pub fn first_edit(
        &self,
        shown: &[PathBlock],
        changes: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let Some(planned) = &self.blocks else {
            return Some(0);
        };
        let mut pairs = planned.iter().zip(shown);
        let changed = pairs.find(|(before, now)| **before != now.key);
        let changed = changed.map(|(_, now)| now.items.map_or(0, |(first, _)| first));
        let unsent = changes.filter(|at| *at >= self.settled).min();
        [changed, unsent, self.interrupted]
            .into_iter()
            .flatten()
            .min()
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::concat_hashes;

    use super::*;

    fn key(name: char) -> ContentHash {
        ContentHash::of(name.to_string().as_bytes())
    }

    /// Blocks of two items each.
    fn blocks(names: &str) -> Vec<PathBlock> {
        let block = |(at, name)| PathBlock {
            key: key(name),
            items: Some((2 * at, 2 * at + 1)),
        };
        names.chars().enumerate().map(block).collect()
    }

    fn sent(keys: &[ContentHash], newest: Option<ContentHash>) -> SentHistory {
        let hash = |first: usize| ContentHash::of(&concat_hashes(&keys[..first]));
        SentHistory::of_prefixes(keys.len(), hash, None, newest).1
    }

    #[track_caller]
    fn check(names: &str, planned: &str, shown: &str, changes: &[usize], expected: Option<usize>) {
        let keys: Vec<ContentHash> = names.chars().map(key).collect();
        let sent = sent(&keys, keys.last().copied());
        let answered = AnsweredHistory::compare(Some(&sent), &blocks(planned), None);
        let edit = answered.first_edit(&blocks(shown), changes.iter().copied());
        assert_eq!(edit, expected, "{planned} shown as {shown}, {sent:?}");
    }

    #[test]
    fn additions_edit_nothing_and_changes_do_from_their_place_on() {
        check("abc", "abc", "abc", &[], None);
        check("abc", "abcde", "abcde", &[], None);
        // What was sent so stays so; what was not was answered to as it is.
        check("abc", "abcde", "abcde", &[1, 4], None);
        check("abc", "abcde", "abcde", &[1, 8], Some(8));
        check("abc", "abcde", "axcde", &[2], Some(2));
        check("abc", "abcde", "abcxe", &[7], Some(6));
        // Another history, an older one, and a newest block that is another now.
        check("abc", "axcde", "axcde", &[], Some(0));
        check("abc", "ab", "ab", &[], Some(0));
        check("abc", "abxde", "abxde", &[], Some(0));
    }

    #[test]
    fn words_of_one_call_and_first_calls() {
        let keys = [key('a'), key('b')];
        let sent = sent(&keys, None);
        let answered = AnsweredHistory::compare(Some(&sent), &blocks("abcd"), None);
        assert_eq!(
            answered.first_edit(&blocks("abcd"), [].into_iter()),
            Some(4)
        );
        assert_eq!(
            answered.first_edit(&blocks("abcd"), [1].into_iter()),
            Some(1)
        );
        let first = AnsweredHistory::compare(None, &blocks("abcd"), None);
        assert_eq!(first.first_edit(&blocks("abcd"), [].into_iter()), None);
        assert_eq!(first.first_edit(&blocks("abcd"), [5].into_iter()), Some(5));
        // The provider's own summary of `ab`.
        let native = AnsweredHistory::compare(Some(&sent), &blocks("xcd"), Some(4));
        assert_eq!(native.first_edit(&blocks("xcd"), [].into_iter()), Some(4));
    }

    #[test]
    fn a_frontier_only_grows() {
        let first = ThinkingFrontier::behind_edit(4, 9, key('a'), None);
        assert_eq!(
            [3, 4, 8, 9].map(|at| first.leaves_out(at)),
            [false, true, true, false]
        );
        let next = ThinkingFrontier::behind_edit(12, 20, key('b'), Some(first));
        assert_eq!((next.edit, next.index), (4, 20));
        assert_eq!(
            ThinkingFrontier::behind_edit(0, 20, key('b'), Some(next)).edit,
            0
        );
    }
}
