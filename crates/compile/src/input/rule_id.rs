//! The name of a standing rule.
//!
//! Not here: which sentences are rules (`contexture-condense`).

use std::fmt;

use contexture_ir::ContentHash;
use serde::{Deserialize, Serialize};

use crate::input::PathItem;

/// Names a standing rule: the node whose message says it, and a hash of the sentence.
///
/// The hash is keyed by the content of the message, so once the message is redacted nobody can test a guess against it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(String);

impl RuleId {
    /// The name of a sentence of an item.
    #[must_use]
    pub(crate) fn of_sentence(item: &PathItem, sentence: &str) -> Self {
        let keyed = [item.hash.as_bytes().as_slice(), sentence.as_bytes()].concat();
        let hash = ContentHash::of(&keyed).to_string();
        let sentence = hash.get(..8).unwrap_or(&hash);
        Self(format!("{}.{sentence}", node_name(item)))
    }

    /// What [`node_name`] gives for the item whose message says it.
    pub(crate) fn node_name(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(node, _)| node)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The node of an item; where it is not stored, what takes its place.
pub(crate) fn node_name(item: &PathItem) -> String {
    match item.node {
        Some(node) => node.to_string(),
        None => item.hash.to_string(),
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<String> for RuleId {
    fn from(text: String) -> Self {
        Self(text)
    }
}
