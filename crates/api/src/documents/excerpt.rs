//! Excerpts: parts of long outputs, and the lines in them that match a search.

use contexture::compile::reading::{Excerpt, FoundLines};
use contexture::engine::LinkTarget;
use serde::Serialize;
use utoipa::ToSchema;

/// A part of what a link names.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PartDocument)]
pub struct ExcerptDocument {
    /// The node.
    pub id: String,
    /// The item's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Lines of the whole text.
    pub lines: u64,
    /// Characters of the whole text.
    pub characters: u64,
    /// The first line that is here.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// The part.
    pub text: String,
}

impl ExcerptDocument {
    /// A part of a link's text.
    #[must_use]
    pub fn new(linked: &LinkTarget, part: &Excerpt<'_>) -> Self {
        Self {
            id: linked.node.id.to_string(),
            kind: linked.item.kind().to_owned(),
            lines: part.lines,
            characters: part.characters,
            from: part.from.line,
            to: part.last,
            text: part.text.to_owned(),
        }
    }
}

/// Lines of what a link names that match.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FoundDocument {
    /// The node.
    pub id: String,
    /// The item's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many lines match.
    pub matches: u64,
    /// The lines, and what stands around them.
    pub found: Vec<LineDocument>,
}

/// A line.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LineDocument {
    /// Its number, from 1.
    pub line: u64,
    /// Whether it matches, or only stands near.
    pub matches: bool,
    /// The line.
    pub text: String,
}

impl FoundDocument {
    /// What was found in a link's text.
    #[must_use]
    pub fn new(linked: &LinkTarget, found: &FoundLines) -> Self {
        let lines = found.lines.iter().map(|line| LineDocument {
            line: line.number,
            matches: line.matches,
            text: line.text.clone(),
        });
        Self {
            id: linked.node.id.to_string(),
            kind: linked.item.kind().to_owned(),
            matches: found.matches,
            found: lines.collect(),
        }
    }
}
