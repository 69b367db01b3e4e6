//! Which outputs are previewed, and how much of them is shown.

use std::collections::BTreeMap;

use contexture_text::glob_matches;
use contexture_tokens::TokenCounter;
use serde::{Deserialize, Serialize};

use crate::read_back::READ_TOOL;

/// Which outputs are previewed, and how much of them is shown.
///
/// Characters are Unicode scalar values. If head, tail and error lines exceed the threshold, they are shortened until
/// they fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewPolicy {
    /// Outputs larger than this are previewed, and no preview is larger. Default 5,000 characters; at least
    /// [`TextSize::SMALLEST`].
    pub threshold: TextSize,
    /// Characters shown of the beginning. Default 1,000.
    pub head: usize,
    /// Characters shown of the end. Default 2,000.
    pub tail: usize,
    /// Maximum number of lines that report errors shown between head and tail, half from either end, without
    /// duplicates. Default 8, at most 100.
    pub error_lines: usize,
    /// Exceptions for the tools of these names. By default the outputs of [`READ_TOOL`] are never previewed.
    pub tools: BTreeMap<String, ToolPreview>,
    /// When previews begin. Default: once they pay off.
    #[serde(default)]
    pub when: Previewing,
}

/// When previews begin. From then on every long output is previewed, from the first time it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Previewing {
    /// From the first output on, regardless of cost.
    Always,
    /// Once the history does not fit, or once previews pay off: the definition of the tool that reads the rest costs
    /// tokens in every call, and adding it later invalidates the cache. Where prices are not known: from the first
    /// output on.
    Worthwhile {
        /// Number of further calls that the estimate assumes. Default 5.
        calls: u64,
    },
}

impl Default for Previewing {
    fn default() -> Self {
        Self::Worthwhile { calls: 5 }
    }
}

/// An exception for one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolPreview {
    /// Its outputs are never previewed.
    Never,
    /// Its outputs follow this policy, whose own `tools` and `when` are ignored.
    By(Box<PreviewPolicy>),
}

/// Size of a text, in one of several units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextSize {
    /// In Unicode scalar values.
    Characters(u64),
    /// In bytes of UTF-8.
    Bytes(u64),
    /// In the target's tokens; for an estimate the upper bound.
    Tokens(u64),
}

impl Default for PreviewPolicy {
    fn default() -> Self {
        Self {
            threshold: TextSize::Characters(5_000),
            head: 1_000,
            tail: 2_000,
            error_lines: 8,
            tools: BTreeMap::from([(READ_TOOL.to_owned(), ToolPreview::Never)]),
            when: Previewing::default(),
        }
    }
}

impl PreviewPolicy {
    /// Returns the policy for a tool's outputs; `None` if they are never previewed.
    #[must_use]
    pub fn for_tool(&self, name: Option<&str>) -> Option<&Self> {
        let of_form = |name: &str| {
            let mut tools = self.tools.iter();
            tools.find_map(|(tool, preview)| glob_matches(tool, name).then_some(preview))
        };
        // The name itself goes before a pattern that it has the form of.
        let rule = name.and_then(|name| self.tools.get(name).or_else(|| of_form(name)));
        match rule {
            None => Some(self),
            Some(ToolPreview::Never) => None,
            Some(ToolPreview::By(policy)) => Some(policy),
        }
    }
}

impl TextSize {
    /// The smallest threshold, in any unit: a preview's own words take up to 400.
    pub const SMALLEST: u64 = 600;

    /// Returns the size, or the smallest threshold if that is larger.
    pub(crate) fn at_least_smallest(self) -> Self {
        match self {
            Self::Characters(size) => Self::Characters(size.max(Self::SMALLEST)),
            Self::Bytes(size) => Self::Bytes(size.max(Self::SMALLEST)),
            Self::Tokens(size) => Self::Tokens(size.max(Self::SMALLEST)),
        }
    }

    /// Subtracts `count` in the same unit.
    pub(crate) fn saturating_sub(self, count: u64) -> Self {
        match self {
            Self::Characters(size) => Self::Characters(size.saturating_sub(count)),
            Self::Bytes(size) => Self::Bytes(size.saturating_sub(count)),
            Self::Tokens(size) => Self::Tokens(size.saturating_sub(count)),
        }
    }

    /// Whether a text is at most this large.
    pub(crate) fn can_fit(self, text: &str, counter: &dyn TokenCounter) -> bool {
        let bytes = text.len() as u64;
        match self {
            Self::Bytes(size) => bytes <= size,
            // A character takes up to four bytes, so the characters of a text that is far too long are not counted.
            Self::Characters(size) => {
                bytes <= size || bytes / 4 <= size && text.chars().count() as u64 <= size
            }
            Self::Tokens(size) => counter.count_up_to(text, size).is_some(),
        }
    }
}
