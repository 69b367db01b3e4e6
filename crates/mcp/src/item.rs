//! An item of a conversation as it is shown: its text, shortened where there is no room, and where the rest is.

use std::sync::Arc;

use contexture::compile::Link;
use contexture::compile::reading::{Position, excerpt};
use contexture::engine::item;
use contexture::ir::ConversationId;
use contexture::store::Node;
use rmcp::model::Resource;
use schemars::JsonSchema;
use serde::Serialize;

use crate::trouble::Trouble;
use crate::uri;
use crate::words::{Kind, instant};

/// The characters of all items of a page, as far as each has its least.
pub(crate) const PAGE: usize = 24_000;
/// The least of an item that is shown, in characters.
const LEAST: usize = 160;

/// An item as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// Its position on the path; the first is 1.
    pub(crate) position: u64,
    /// Its id.
    pub(crate) id: String,
    /// The id of the message it belongs to.
    pub(crate) message: String,
    /// What it is.
    pub(crate) kind: Kind,
    /// When it was made.
    pub(crate) at: String,
    /// Its text; of a call, the tool's name and arguments.
    pub(crate) text: String,
    /// Characters of the whole text, if it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) characters: Option<usize>,
    /// The link to the whole, if it was cut: `read_link` reads on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// Items that people may see, as they are shown together.
pub(crate) fn show(nodes: &[Arc<Node>]) -> Result<Vec<Shown>, Trouble> {
    let seen = nodes.iter().filter(|node| node.audience.user);
    let texts = seen
        .map(|node| Ok((node, text(node)?)))
        .collect::<Result<Vec<_>, Trouble>>()?;
    let lengths = texts.iter().map(|(_, text)| text.chars().count()).collect();
    let cap = fair_share(lengths, PAGE).max(LEAST);
    let shown = texts.into_iter().map(|(node, text)| shown(node, text, cap));
    Ok(shown.collect())
}

/// The resource that has the whole of an item that was cut.
pub(crate) fn link(shown: &Shown, conversation: &ConversationId) -> Option<Resource> {
    let link: Link = shown.link.as_deref()?.parse().ok()?;
    let name = format!("{} {}", shown.kind.as_str(), shown.position);
    let about = format!("The whole of item {}", shown.position);
    let resource = Resource::new(uri::of_link(&link, conversation), name);
    Some(
        resource
            .with_description(about)
            .with_mime_type("text/plain"),
    )
}

fn text(node: &Node) -> Result<String, Trouble> {
    if node.redacted_ms.is_some() {
        return Ok("[removed]".to_owned());
    }
    Ok(item(node)?.text())
}

fn shown(node: &Node, text: String, cap: usize) -> Shown {
    let characters = text.chars().count();
    let cut = characters > cap;
    let text = match cut {
        true => format!("{}…", excerpt(&text, Position::line(1), u64::MAX, cap).text),
        false => text,
    };
    Shown {
        position: node.depth,
        id: node.id.to_string(),
        message: node.message().into_owned(),
        kind: node.kind.into(),
        at: instant(node.created_ms),
        text,
        characters: cut.then_some(characters),
        link: cut.then(|| Link::new(node.content_hash).to_string()),
    }
}

/// The largest share that all can have of a room, where those who need less leave the rest to the others.
pub(crate) fn fair_share(mut needs: Vec<usize>, room: usize) -> usize {
    needs.sort_unstable();
    let mut left = room;
    for (served, need) in needs.iter().enumerate() {
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
