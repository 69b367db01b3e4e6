//! What is said in a conversation: appended, and read in several forms.

use std::sync::Arc;

use contexture::EngineError;
use contexture::engine::tree::{TreeEntries, layout_rows, load_tree, page_of_entries};
use contexture::engine::{MessageView, OlderMessages};
use contexture::ir::{NodeId, Raw, parse_fragments};
use contexture::render::{self, Grouping};
use contexture::store::{PathEnd, ReadRequest, Span};
use contexture_api::operations::{AppendOptions, append_messages};
use contexture_api::{
    AppendDocument, CoverDocument, CoversDocument, LogDocument, MessagesDocument, NodeDocument,
    NodesDocument,
};
use serde::{Deserialize, Serialize};

use super::{Reply, Scope, parse_node};
use crate::failure::Failure;

/// Messages of a page, if the caller does not say how many.
const PAGE: usize = 100;

/// Newest calls that are looked through for the usage of messages.
const CALLS: usize = 500;

/// What is appended, and under what condition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppendRequest {
    messages: Option<Vec<Raw>>,
    /// Any text: the same append with the same key is stored once.
    key: Option<String>,
    /// Head that the branch must have; an empty text: none.
    expected_head: Option<String>,
}

pub(super) async fn append(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: AppendRequest = scope.parse()?;
    let chat = scope.chat().await?;
    let expected_head = match asked.expected_head.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(head) => Some(Some(parse_node(head)?)),
    };
    // A text of any length becomes a key of the length that stores take.
    let key = |key: &String| *NodeId::derive("append key", &[key.as_bytes()]).as_bytes();
    let options = AppendOptions {
        idempotency_key: asked.key.as_ref().map(key),
        expected_head,
        max_items: None,
    };
    let document = AppendDocument {
        messages: asked.messages,
        items: None,
    };
    Reply::new(&append_messages(&chat, &document, options).await?)
}

/// Who the messages are shown to.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Audience {
    User,
    Model,
}

/// The messages to list, newest page first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessagesRequest {
    audience: Audience,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: MessagesRequest = scope.parse()?;
    let chat = scope.chat().await?;
    let view = match asked.audience {
        Audience::User => MessageView::User,
        Audience::Model => MessageView::Model,
    };
    let branch = chat.branch().to_string();
    if asked.limit.is_none() && asked.after.is_none() {
        return Reply::new(&MessagesDocument {
            branch,
            messages: chat.messages(view).await?,
            next: None,
        });
    }
    let older = asked.after.as_deref().map(parse_place).transpose()?;
    let older = older.map(|(head, depth)| OlderMessages { head, depth });
    let page = chat
        .message_page(view, older, asked.limit.unwrap_or(PAGE))
        .await?;
    Reply::new(&MessagesDocument {
        branch,
        messages: page.messages,
        next: page
            .older
            .map(|older| format!("{}~{}", older.head, older.depth)),
    })
}

/// Reads the `next` of a page: the head of its path, so that all pages are of one path, and a depth.
fn parse_place(text: &str) -> Result<(NodeId, u64), Failure> {
    let parse = || {
        let (head, depth) = text.split_once('~')?;
        Some((head.parse().ok()?, depth.parse().ok()?))
    };
    parse().ok_or_else(|| Failure::argument("after", "expected the `next` of a page"))
}

/// The items to list, oldest first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemsRequest {
    at: Option<String>,
    /// How many items at the end of the path are listed. Default: all of them.
    last: Option<u64>,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list_items(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ItemsRequest = scope.parse()?;
    let chat = scope.chat().await?;
    let (at, span) = match (&asked.after, &asked.at) {
        (Some(place), _) => {
            let (head, depth) = parse_place(place)?;
            (PathEnd::Node(head), Span::From(depth))
        }
        (None, at) => {
            let at = match at {
                Some(node) => PathEnd::Node(parse_node(node)?),
                None => PathEnd::Branch(chat.branch()),
            };
            (at, asked.last.map_or(Span::Whole, Span::Last))
        }
    };
    let request = ReadRequest {
        at,
        span,
        limit: Some(asked.limit.unwrap_or(PAGE)),
    };
    let store = scope.engine.store();
    let page = store.read_path(chat.owner(), chat.id(), request).await?;
    let next = page
        .next
        .zip(page.head)
        .map(|(depth, head)| format!("{head}~{depth}"));
    let items = page
        .nodes
        .iter()
        .map(|node| NodeDocument::try_from(&**node));
    Reply::new(&NodesDocument {
        head: page.head.map(|head| head.to_string()),
        depth: page.depth,
        items: items.collect::<Result<_, EngineError>>()?,
        more: next.is_some(),
        next,
    })
}

/// The page of the tree to show.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogRequest {
    limit: usize,
    after: Option<String>,
    /// Whether to add what the calls of each message used and cost.
    usage: bool,
    /// Whether what only changes state has entries too.
    state: bool,
}

pub(super) async fn log(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: LogRequest = scope.parse()?;
    let chat = scope.chat().await?;
    let after = asked.after.as_deref().map(parse_node).transpose()?;
    let tree = load_tree(&chat).await?;
    let covers = chat.compactions().await?;
    let mut entries = TreeEntries::from_tree(&tree);
    if !asked.state {
        entries = entries.without_state_rows();
    }
    entries.mark_pinned(&chat.pins().await?);
    let rows = page_of_entries(&layout_rows(&entries), &entries, after, asked.limit);
    let rows = rows.ok_or_else(|| Failure::argument("after", "what it leads to is gone"))?;
    let mut document = LogDocument::new(chat.id(), &tree, &entries, &rows, &covers)?;
    if asked.usage {
        document.add_usage(&chat.newest_calls(CALLS).await?);
    }
    let last = document.entries.last().filter(|_| document.hidden > 0);
    document.next = last.map(|last| last.id.clone());
    Reply::new(&document)
}

/// How the input of a model is shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveRequest {
    renderer: Option<String>,
    /// Fragments to use instead of those of the path.
    fragments: Option<Raw>,
}

/// The input of a model, as text and messages.
#[derive(Debug, Serialize)]
struct ResolvedDocument {
    system_prompt: String,
    messages: Vec<contexture::ir::UiMessage>,
}

pub(super) async fn resolve(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ResolveRequest = scope.parse()?;
    let chat = scope.chat().await?;
    if let Some(fragments) = &asked.fragments {
        chat.set(parse_fragments(fragments.get()).map_err(EngineError::from)?)?;
    }
    if let Some(name) = &asked.renderer {
        let format: render::Format = name.parse().map_err(|error: render::UnknownFormat| {
            Failure::argument("renderer", error.to_string())
        })?;
        chat.set_renderer(Arc::from(format.renderer(Grouping::Off)));
    }
    let resolved = chat.resolve().await?;
    Reply::new(&ResolvedDocument {
        system_prompt: resolved.system_prompt,
        messages: resolved.messages,
    })
}

pub(super) async fn list_compactions(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let compactions = scope.chat().await?.compactions().await?;
    Reply::new(&CoversDocument {
        compactions: compactions.iter().map(CoverDocument::from).collect(),
        next: None,
    })
}
