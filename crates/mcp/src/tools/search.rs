//! `search_conversations`.

use contexture::ir::ConversationId;
use contexture::store::{Hit, MatchMode, PathEnd, SearchRequest, SearchScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item_text::ItemKind;
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::{ToolContext, parse_branch_name};
use crate::tool_error::ToolError;
use contexture_api::operations::{
    TypedSearch, encode_hit_cursor, has_only_signs, parse_hit_cursor, search_typed,
};
use contexture_api::{NearbyDocument, NearbyItemDocument, format_timestamp};

/// Default and maximum number of hits on a page.
const LIMIT: (usize, usize) = (10, 50);

pub(crate) struct SearchConversations;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// A question or words, of which any will do, best first. "In double quotes" is required; begin* for words that
    /// begin so; -word to leave out; from:user, after:2026-05, before:2026-05-03.
    query: String,
    /// Whether all words must occur, literally; default: any will do.
    #[serde(default)]
    all_words: bool,
    /// Id of the only conversation to search.
    conversation: Option<String>,
    /// Name of the only branch to search; needs `conversation`.
    branch: Option<String>,
    /// Id of an item: only it and what was said before it on its path; needs `conversation`. What was so then comes first.
    at: Option<String>,
    /// Resource whose conversations are searched, and no others.
    resource: Option<String>,
    /// Kinds of items to search; default: all.
    #[serde(default)]
    kinds: Vec<ItemKind>,
    /// Number of items to show before and after each hit; default 0.
    #[serde(default)]
    #[schemars(range(max = 10))]
    around: u64,
    /// Maximum number of hits; default 10.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
    /// Value of `next_cursor` of the previous page of the same query.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Items that match, best first.
    hits: Vec<ConversationHit>,
    /// Cursor of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Whether everything was searched. If not: with `indexing`, some conversations are not indexed yet, so ask again later; without
    /// it, only the newest candidates were searched, so ask more precisely.
    complete: bool,
    /// Progress of the text index while it is rebuilt. In conversations not indexed yet, only items stored since the rebuild began
    /// are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    indexing: Option<Indexing>,
    /// How many items have each word, if all words were asked for and no item has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    apart: Vec<WordHits>,
}

/// How far the index of texts is, in conversations.
#[derive(Serialize, JsonSchema)]
struct Indexing {
    indexed: u64,
    conversations: u64,
}

/// A word and how many items have it.
#[derive(Serialize, JsonSchema)]
struct WordHits {
    word: String,
    hits: usize,
}

#[derive(Serialize, JsonSchema)]
struct ConversationHit {
    /// Id of the conversation that the item is in.
    conversation: String,
    /// Id of the item; `read_conversation` with `around` shows the items around it.
    id: String,
    /// Kind of the item.
    kind: ItemKind,
    /// Time at which the item was stored (RFC 3339).
    at: String,
    /// Part of its text that shows the matches.
    text: String,
    /// Time until which this was so, if a newer item says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Id of that newer item.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
    /// Items right before it, oldest first, with `around`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<NearbyItem>,
    /// Items right after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<NearbyItem>,
}

/// An item beside a hit.
#[derive(Serialize, JsonSchema)]
struct NearbyItem {
    /// Id of the item.
    id: String,
    /// Kind of the item.
    kind: &'static str,
    /// Beginning of its text.
    text: String,
}

impl Tool for SearchConversations {
    const NAME: &'static str = "search_conversations";
    const TITLE: &'static str = "Search conversations";
    const ABOUT: &'static str = "Finds what was said in kept conversations, by its words: messages, tool calls, \
        tool outputs, summaries, of this and earlier sessions. Use it before asking the user again or doing work twice.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    const IS_PAGED: bool = true;
    type Arguments = Arguments;
    type Answer = Answer;

    async fn call(context: ToolContext, arguments: Arguments) -> Result<Answer, ToolError> {
        // Signs alone would find nothing, and a model would take that for an answer.
        if has_only_signs(&arguments.query) {
            let message = "`query` has no word to look for";
            return Err(
                ToolError::invalid_arguments(message).with_hint("give words that were said")
            );
        }
        let request = SearchRequest {
            words: match arguments.all_words {
                true => MatchMode::All,
                false => MatchMode::Any,
            },
            kinds: arguments
                .kinds
                .iter()
                .map(|kind| kind.node_kind())
                .collect(),
            // Clients need not check the bounds of the schema.
            limit: arguments.limit.unwrap_or(LIMIT.0).clamp(1, LIMIT.1),
            after: arguments
                .cursor
                .as_deref()
                .map(|text| parse_hit_cursor(text).ok_or_else(|| ToolError::invalid_cursor(text)))
                .transpose()?,
            ..SearchRequest::new(
                arguments.query.clone(),
                resolve_scope(&context, &arguments).await?,
            )
        };
        let asked = TypedSearch {
            request,
            nearby: arguments.around,
        };
        let found = search_typed(&context.engine, &context.owner, asked).await?;
        let is_complete = found.page.is_complete();
        let mut nearby = found.nearby.into_iter();
        let hits = found.page.hits.into_iter();
        Ok(Answer {
            next_cursor: found.page.next.as_ref().map(encode_hit_cursor),
            complete: is_complete,
            indexing: found.page.indexing.map(|progress| Indexing {
                indexed: progress.indexed,
                conversations: progress.conversations,
            }),
            hits: hits
                .map(|hit| conversation_hit(hit, nearby.next().unwrap_or_default()))
                .collect(),
            apart: found
                .apart
                .into_iter()
                .map(|one| WordHits {
                    word: one.word,
                    hits: one.hits,
                })
                .collect(),
        })
    }
}

async fn resolve_scope(
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<SearchScope, ToolError> {
    let Arguments {
        conversation,
        branch,
        resource,
        at,
        ..
    } = arguments;
    if let Some(at) = at {
        let (Some(id), None, None) = (conversation, branch, resource) else {
            let message = "`at` needs `conversation`, and neither `branch` nor `resource`";
            return Err(ToolError::invalid_arguments(message)
                .with_hint("an item of one conversation ends the path that is searched"));
        };
        let chat = context.open_conversation(id, None).await?;
        let place = context.locate_item(&chat, at).await?;
        return Ok(SearchScope::Path {
            conversation: chat.id().clone(),
            at: PathEnd::Node(place.node),
        });
    }
    Ok(match (conversation, branch, resource) {
        (None, None, None) => SearchScope::Owner,
        (None, None, Some(resource)) => SearchScope::Resource(resource.clone()),
        (Some(id), None, None) => SearchScope::Conversation(ConversationId::new(id)?),
        (Some(id), Some(branch), None) => SearchScope::Path {
            conversation: ConversationId::new(id)?,
            at: PathEnd::Branch(parse_branch_name(branch)?),
        },
        // A branch without its conversation comes here too.
        _ => {
            let message = "where to look is said twice";
            return Err(ToolError::invalid_arguments(message).with_hint(
                "give `conversation`, with `branch` if only that counts, or `resource`, or none of them",
            ));
        }
    })
}

fn conversation_hit(hit: Hit, nearby: NearbyDocument) -> ConversationHit {
    let beside = |items: Vec<NearbyItemDocument>| {
        let items = items.into_iter().map(|item| NearbyItem {
            id: item.id,
            kind: item.kind,
            text: item.text,
        });
        items.collect()
    };
    ConversationHit {
        conversation: hit.conversation.to_string(),
        id: hit.node.to_string(),
        kind: hit.kind.into(),
        at: format_timestamp(hit.created_ms),
        text: hit.snippet.text,
        until: hit
            .replaced
            .as_ref()
            .map(|newer| format_timestamp(newer.created_ms)),
        replaced_by: hit.replaced.map(|newer| newer.node.to_string()),
        before: beside(nearby.before),
        after: beside(nearby.after),
    }
}
