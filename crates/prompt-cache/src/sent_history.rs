//! The identity of a request that was sent, by which the next one is compared with it.

use contexture_ir::{ContentHash, concat_hashes};
use serde::{Deserialize, Serialize};

/// The identity of what stands before the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// Format, model and token limit: `anthropic/claude-sonnet-5/14000`.
    pub target: String,
    /// The tools offered.
    #[serde(with = "contexture_ir::hex")]
    pub tools: ContentHash,
    /// The system prompt.
    #[serde(with = "contexture_ir::hex")]
    pub system: ContentHash,
    /// The anchor band.
    #[serde(with = "contexture_ir::hex")]
    pub anchor: ContentHash,
}

impl Prefix {
    /// Returns the format and the model.
    pub(crate) fn model(&self) -> &str {
        let model = self.target.rsplit_once('/').map(|(model, _)| model);
        model.unwrap_or(&self.target)
    }
}

/// The history as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentHistory {
    /// How many blocks, the newest excepted: it may still grow.
    pub blocks: usize,
    /// The hash over those blocks.
    #[serde(with = "contexture_ir::hex")]
    pub hash: ContentHash,
    /// The newest block, if the thinking of the answer is bound to it.
    #[serde(
        default,
        with = "contexture_ir::hex::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub newest: Option<ContentHash>,
}

impl SentHistory {
    /// Describes a history of so many blocks, and reports whether it extends the one sent `before`. `hash` gives the hash
    /// over the first so many of them: [`ContentHash::of`] their hashes, one behind the other.
    pub fn of_prefixes(
        blocks: usize,
        mut hash: impl FnMut(usize) -> ContentHash,
        before: Option<&Self>,
        newest: Option<ContentHash>,
    ) -> (bool, Self) {
        // The newest block is left out, as the next items may still join it.
        let settled = blocks.saturating_sub(1);
        // The count comes from a stored plan and may be any number.
        let mut begins =
            |before: &Self| before.blocks <= settled && before.hash == hash(before.blocks);
        let extends = before.is_none_or(&mut begins);
        let now = Self {
            blocks: settled,
            hash: hash(settled),
            newest,
        };
        (extends, now)
    }

    /// Reports whether a history of these blocks begins with all that was sent.
    pub(crate) fn begins(&self, blocks: &[ContentHash]) -> bool {
        let settled = blocks.get(..self.blocks);
        let same = settled.is_some_and(|own| ContentHash::of(&concat_hashes(own)) == self.hash);
        same && (self.newest.is_none() || blocks.get(self.blocks) == self.newest.as_ref())
    }
}
