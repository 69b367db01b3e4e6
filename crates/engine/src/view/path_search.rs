//! Finding items of one path by words: what a model remembers a word of, or asks.
//!
//! It is the store's search ([`crate::Engine::search`]), kept to one path and to what the reader may see, with a link to
//! each item. Calls of the built-in tool and their outputs are left out: they say what was looked for, not what was found.
//!
//! Not here: how texts are ranked (`contexture_store::rules`); reading what a link names (`links`).

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use contexture_compile::reading::{PathMatches, SearchHit};
use contexture_compile::{Link, READ_TOOL};
use contexture_ir::{Item, NodeId};
use contexture_store::rules::typed_request;
use contexture_store::{HiddenContent, Hit, PathEnd, SearchRequest, SearchScope, Snippet};

use super::links::is_visible_to;
use super::messages::MessageView;
use crate::error::EngineError;
use crate::handle::{Conversation, read_full_path};
use crate::path::StoredPath;
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
    let path = read_full_path(chat, chat.current_position()).await?;
    let mut found = PathMatches::default();
    let Some(last) = path.nodes.last() else {
        return Ok(found);
    };
    // Of the path that was read, and not of the branch, which may have grown since.
    let scope = SearchScope::Path {
        conversation: chat.id().clone(),
        at: PathEnd::Node(last.id),
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
    let items = PathItems::of_path(&path, reader);
    for _ in 0..PAGES {
        let page = search_owner(chat.engine(), chat.owner(), request.clone()).await?;
        for hit in page.hits {
            let Some(place) = items.readable_place(hit.node) else {
                continue;
            };
            if found.hits.len() == limit {
                found.more = true;
                return Ok(found);
            }
            found.hits.extend(items.describe_hit(place, &hit, limit));
        }
        match page.next {
            Some(next) => request.after = Some(next),
            None => return Ok(found),
        }
    }
    found.more = true;
    Ok(found)
}

/// The items of a path by their nodes.
struct PathItems<'a> {
    path: &'a StoredPath,
    reader: MessageView,
    places: HashMap<NodeId, usize>,
}

impl<'a> PathItems<'a> {
    fn of_path(path: &'a StoredPath, reader: MessageView) -> Self {
        let nodes = path.nodes.iter().enumerate();
        Self {
            path,
            reader,
            places: nodes.map(|(place, node)| (node.id, place)).collect(),
        }
    }

    /// Returns the place of a node, if its item is something that this reader may find.
    fn readable_place(&self, node: NodeId) -> Option<usize> {
        let place = *self.places.get(&node)?;
        let node = self.path.nodes.get(place)?;
        let is_readable = is_visible_to(node, self.reader) && node.redacted_ms.is_none();
        (is_readable && self.tool_of(place) != Some(READ_TOOL)).then_some(place)
    }

    /// Returns the name of the tool that is called at this place, or whose output stands there.
    fn tool_of(&self, place: usize) -> Option<&str> {
        if let Item::FunctionCall(call) = self.item(place)? {
            return Some(&call.name);
        }
        let call = self.path.nodes.get(place)?.answers?;
        match self.item(*self.places.get(&call)?)? {
            Item::FunctionCall(call) => Some(&call.name),
            _ => None,
        }
    }

    fn item(&self, place: usize) -> Option<&Item> {
        Some(&self.path.items.get(place)?.item)
    }

    fn describe_hit(&self, place: usize, hit: &Hit, limit: usize) -> Option<SearchHit> {
        let text = self.item(place)?.text();
        let newer = hit.replaced.as_ref();
        let newer = newer.and_then(|newer| self.readable_place(newer.node));
        let shown = best_match(&text, &hit.snippet);
        Some(SearchHit {
            replaced_by: newer.and_then(|place| self.link(place)),
            ..SearchHit::new(self.link(place)?, &self.label(place), &text, &shown, limit)
        })
    }

    fn link(&self, place: usize) -> Option<Link> {
        let node = self.path.nodes.get(place)?;
        Some(Link::new(node.content_hash))
    }

    fn label(&self, place: usize) -> String {
        match (self.item(place), self.tool_of(place)) {
            (Some(Item::Message(message)), _) => {
                format!("message of the {}", message.role.as_str())
            }
            (Some(Item::FunctionCall(call)), _) => format!("call of {}", call.name),
            (Some(Item::FunctionCallOutput(_)), Some(tool)) => format!("output of {tool}"),
            (Some(Item::FunctionCallOutput(_)), None) => "output".to_owned(),
            (Some(item), _) => item.kind().to_owned(),
            (None, _) => String::new(),
        }
    }
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
