//! Finding items of one path by words: what a model remembers a word of, or asks.
//!
//! It is the store's search ([`crate::Engine::search`]), kept to one path and to what the reader may see, with a link to
//! each item. Calls of the built-in tool and their outputs are left out: they say what was looked for, not what was found.
//!
//! Not here: how texts are ranked (`contexture_store::rules`); reading what a link names (`links`).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use contexture_compile::reading::{PathMatches, SearchHit};
use contexture_compile::{Link, READ_TOOL};
use contexture_ir::{Item, NodeId};
use contexture_store::rules::typed_request;
use contexture_store::{
    EntityKind, Error as StoreError, HiddenContent, Node, NodeQuery, SearchRequest, SearchScope,
    Snippet,
};

use super::links::is_visible_to;
use super::messages::MessageView;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::path::parse_node_item;
use crate::search::search_owner;

/// Bytes of a query that are used: a model may paste a whole page.
const QUERY: usize = 1_000;

/// Hits that are asked for at once, and how often: of those, some may be nothing for this reader.
const PAGE: usize = 50;
const PAGES: usize = 4;

/// Returns at most `limit` items of this branch's path that match what was typed, best first.
pub(crate) async fn search_path(
    chat: &Conversation,
    query: &str,
    limit: usize,
    reader: MessageView,
) -> Result<PathMatches, EngineError> {
    let scope = SearchScope::Path {
        conversation: chat.id().clone(),
        at: chat.current_position(),
    };
    let query = query.get(..query.floor_char_boundary(QUERY));
    let mut request = SearchRequest {
        hidden: match reader {
            MessageView::Model => HiddenContent::Include,
            MessageView::User => HiddenContent::LeaveOut,
        },
        limit: PAGE,
        ..typed_request(query.unwrap_or_default(), scope)
    };
    let mut found = PathMatches::default();
    for _ in 0..PAGES {
        let page = search_owner(chat.engine(), chat.owner(), request.clone()).await?;
        for hit in page.hits {
            let Some(item) = FoundItem::load(chat, hit.node, reader).await? else {
                continue;
            };
            if found.hits.len() == limit {
                found.more = true;
                return Ok(found);
            }
            let newer = match &hit.replaced {
                Some(newer) => FoundItem::load(chat, newer.node, reader).await?,
                None => None,
            };
            let mut described = item.describe_hit(&hit.snippet, limit);
            described.replaced_by = newer.map(|newer| newer.link());
            found.hits.push(described);
        }
        match page.next {
            Some(next) => request.after = Some(next),
            None => return Ok(found),
        }
    }
    found.more = true;
    Ok(found)
}

/// An item that a reader may find.
struct FoundItem {
    node: Arc<Node>,
    item: Item,
    /// Name of the tool that is called, or whose output it is.
    tool: Option<String>,
}

impl FoundItem {
    /// Loads the item of a node; `None` if it is nothing for this reader.
    async fn load(
        chat: &Conversation,
        node: NodeId,
        reader: MessageView,
    ) -> Result<Option<Self>, EngineError> {
        let (node, item) = load_item(chat, node).await?;
        if !is_visible_to(&node, reader) || node.redacted_ms.is_some() {
            return Ok(None);
        }
        let call = match (&item, node.answers) {
            (Item::FunctionCall(call), _) => Some(call.clone()),
            // A hidden call names the tool of its output all the same.
            (_, Some(call)) => match load_item(chat, call).await?.1 {
                Item::FunctionCall(call) => Some(call),
                _ => None,
            },
            _ => None,
        };
        let tool = call.map(|call| call.name);
        Ok((tool.as_deref() != Some(READ_TOOL)).then_some(Self { node, item, tool }))
    }

    fn link(&self) -> Link {
        Link::new(self.node.content_hash)
    }

    fn describe_hit(&self, snippet: &Snippet, limit: usize) -> SearchHit {
        let text = self.item.text();
        let shown = best_match(&text, snippet);
        SearchHit::new(self.link(), &self.label(), &text, &shown, limit)
    }

    fn label(&self) -> String {
        match (&self.item, &self.tool) {
            (Item::Message(message), _) => format!("message of the {}", message.role.as_str()),
            (Item::FunctionCall(call), _) => format!("call of {}", call.name),
            (Item::FunctionCallOutput(_), Some(tool)) => format!("output of {tool}"),
            (Item::FunctionCallOutput(_), None) => "output".to_owned(),
            (item, _) => item.kind().to_owned(),
        }
    }
}

async fn load_item(chat: &Conversation, node: NodeId) -> Result<(Arc<Node>, Item), EngineError> {
    let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
    let nodes = store.find_nodes(owner, id, NodeQuery::Id(node)).await?;
    let found = nodes.into_iter().next();
    let node = found.ok_or_else(|| StoreError::not_found(EntityKind::Node, node))?;
    let item = parse_node_item(&node)?;
    Ok((node, item))
}

/// Returns where the line of a snippet that has the most of the words stands in the text that it was cut from, by its first
/// match; the beginning if that is not found, as where the index knows a call by the values of its arguments.
fn best_match(text: &str, snippet: &Snippet) -> Range<usize> {
    let shown = &snippet.text;
    let mut best: (BTreeSet<String>, Range<usize>) = Default::default();
    let mut line_start = 0;
    for line in shown.split_inclusive(['\n', '…']) {
        let at = line_start..line_start + line.len();
        line_start = at.end;
        let inside = |place: &&Range<usize>| at.start <= place.start && place.end <= at.end;
        let matches: Vec<&Range<usize>> = snippet.matches.iter().filter(inside).collect();
        let word = |place: &&Range<usize>| Some(shown.get((*place).clone())?.to_lowercase());
        let words: BTreeSet<String> = matches.iter().filter_map(word).collect();
        let Some(first) = matches.first().filter(|_| words.len() > best.0.len()) else {
            continue;
        };
        // By the whole line: the word alone may stand elsewhere before.
        let line = line.trim_end_matches(['\n', '…']);
        if let Some(found) = text.find(line) {
            let start = found + first.start - at.start;
            best = (words, start..start + first.len());
        }
    }
    best.1
}
