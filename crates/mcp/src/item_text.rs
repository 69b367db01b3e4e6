//! An item of a conversation as it is shown: its text, shortened where there is no room, and where the rest is.

use std::sync::Arc;

use contexture::compile::Link;
use contexture::compile::reading::{TextPosition, extract_excerpt};
use contexture::engine::parse_node_item;
use contexture::ir::ConversationId;
use contexture::store::{Node, NodeKind};
use contexture_api::format_timestamp;
use rmcp::model::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool_error::ToolError;
use crate::uri;

/// Maximum number of characters on a page, unless the minimum of each item adds up to more.
pub(crate) const PAGE_CHARACTERS: usize = 24_000;
/// Minimum number of characters that are shown of each item.
const MIN_ITEM_CHARACTERS: usize = 160;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemKind {
    User,
    Assistant,
    Instruction,
    Call,
    Output,
    Reasoning,
    Compaction,
    Other,
}

impl ItemKind {
    /// Returns the kind that the store uses.
    pub(crate) const fn node_kind(self) -> NodeKind {
        match self {
            Self::User => NodeKind::User,
            Self::Assistant => NodeKind::Assistant,
            Self::Instruction => NodeKind::Instruction,
            Self::Call => NodeKind::FunctionCall,
            Self::Output => NodeKind::FunctionCallOutput,
            Self::Reasoning => NodeKind::Reasoning,
            Self::Compaction => NodeKind::Compaction,
            Self::Other => NodeKind::Extension,
        }
    }

    /// Returns the lower-case name.
    pub(crate) const fn as_str(self) -> &'static str {
        self.node_kind().as_str()
    }
}

impl From<NodeKind> for ItemKind {
    fn from(kind: NodeKind) -> Self {
        match kind {
            NodeKind::User => Self::User,
            NodeKind::Assistant => Self::Assistant,
            NodeKind::Instruction => Self::Instruction,
            NodeKind::FunctionCall => Self::Call,
            NodeKind::FunctionCallOutput => Self::Output,
            NodeKind::Reasoning => Self::Reasoning,
            NodeKind::Compaction => Self::Compaction,
            // Kinds that are added later are shown, by this word.
            _ => Self::Other,
        }
    }
}

/// An item of a conversation, with its text shortened if it is long.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ItemExcerpt {
    /// Position of the item on the path; the first is 1.
    pub(crate) position: u64,
    /// Id of the item.
    pub(crate) id: String,
    /// Id of the message that the item belongs to.
    pub(crate) message: String,
    /// Kind of the item.
    pub(crate) kind: ItemKind,
    /// Time at which the item was stored (RFC 3339).
    pub(crate) at: String,
    /// Text of the item; for a call, the tool's name and arguments.
    pub(crate) text: String,
    /// Number of characters in the full text, if it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) characters: Option<usize>,
    /// Link to the full text for `read_link`, if it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// Returns the items that people may see, shortened to fit on one page.
pub(crate) fn excerpt_items(nodes: &[Arc<Node>]) -> Result<Vec<ItemExcerpt>, ToolError> {
    // Some items are for the model only. They keep their positions, so positions of a page may have
    // gaps.
    let seen = nodes.iter().filter(|node| node.audience.user);
    let texts = seen
        .map(|node| Ok((node, extract_text(node)?)))
        .collect::<Result<Vec<_>, ToolError>>()?;
    let lengths = texts.iter().map(|(_, text)| text.chars().count()).collect();
    // One cap for the page: short items stay whole and only the longest give way. With very many
    // items the least that is shown may exceed the page's room, which is bounded by the limit on
    // items.
    let cap = fair_share(lengths, PAGE_CHARACTERS).max(MIN_ITEM_CHARACTERS);
    let shown = texts
        .into_iter()
        .map(|(node, text)| item_excerpt(node, text, cap));
    Ok(shown.collect())
}

/// Returns the resource that has the full text of an item; `None` if the item was not cut.
pub(crate) fn resource_link(
    shown: &ItemExcerpt,
    conversation: &ConversationId,
) -> Option<Resource> {
    let link: Link = shown.link.as_deref()?.parse().ok()?;
    let name = format!("{} {}", shown.kind.as_str(), shown.position);
    let about = format!("The whole of item {}", shown.position);
    let resource = Resource::new(uri::link_uri(&link, conversation), name);
    Some(
        resource
            .with_description(about)
            .with_mime_type("text/plain"),
    )
}

fn extract_text(node: &Node) -> Result<String, ToolError> {
    // What was removed must not come back by this road.
    if node.redacted_ms.is_some() {
        return Ok("[removed]".to_owned());
    }
    Ok(parse_node_item(node)?.text())
}

fn item_excerpt(node: &Node, text: String, cap: usize) -> ItemExcerpt {
    let characters = text.chars().count();
    let cut = characters > cap;
    let text = match cut {
        true => format!(
            "{}…",
            extract_excerpt(&text, TextPosition::line_start(1), u64::MAX, cap).text
        ),
        // Most items fit: they are moved, not copied.
        false => text,
    };
    ItemExcerpt {
        position: node.depth,
        id: node.id.to_string(),
        message: node.effective_message_id().into_owned(),
        kind: node.kind.into(),
        at: format_timestamp(node.created_ms),
        text,
        characters: cut.then_some(characters),
        // Only what was cut needs a link: the rest is here already.
        link: cut.then(|| Link::new(node.content_hash).to_string()),
    }
}

/// Returns the most that each may take so that all fit into `room`: those who need less leave the rest to the others.
pub(crate) fn fair_share(mut needs: Vec<usize>, room: usize) -> usize {
    // Smallest first: what a short item leaves over is shared by the longer ones.
    needs.sort_unstable();
    let mut left = room;
    for (served, need) in needs.iter().enumerate() {
        // Never divided by zero: `served` is below the length.
        let share = left / (needs.len() - served);
        if *need > share {
            return share;
        }
        left -= need;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_shared_fairly() {
        assert_eq!(fair_share(vec![], 10), usize::MAX);
        assert_eq!(fair_share(vec![3, 7], 10), usize::MAX);
        assert_eq!(fair_share(vec![100, 2], 10), 8);
        assert_eq!(fair_share(vec![100, 100, 1], 11), 5);
        assert_eq!(fair_share(vec![1; 20], 10), 0);
    }
}
