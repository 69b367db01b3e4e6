//! Excerpts: parts of long outputs, and the lines in them that match a search.

use contexture::compile::reading::{Excerpt, FoundLines};
use contexture::engine::LinkTarget;
use serde::Serialize;
use utoipa::ToSchema;

/// A part of the text that a link names.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PartDocument)]
pub struct ExcerptDocument {
    /// Id of the node that holds the item.
    pub id: String,
    /// Type of the item, such as `function_call_output`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of lines in the full text.
    pub lines: u64,
    /// Number of characters (Unicode scalar values) in the full text.
    pub characters: u64,
    /// Number of the first line in this part, from 1.
    pub from: u64,
    /// Number of the last line in this part, which may be cut.
    pub to: u64,
    /// Text of the part, from line `from` to line `to`.
    pub text: String,
}

impl ExcerptDocument {
    /// Creates the document of a part of a link's text.
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

/// The lines of a link's text that match a search.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FoundDocument {
    /// Id of the node that holds the item.
    pub id: String,
    /// Type of the item, such as `function_call_output`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of matching lines, from the first line that was searched.
    pub matches: u64,
    /// The matching lines and the lines around them, in order.
    pub found: Vec<LineDocument>,
}

/// A line that matches a search, or stands near one that does.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LineDocument {
    /// Number of the line, from 1.
    pub line: u64,
    /// Whether the line itself matches.
    pub matches: bool,
    /// Text of the line, with `…` where it was cut.
    pub text: String,
}

impl FoundDocument {
    /// Creates the document of the lines found in a link's text.
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
