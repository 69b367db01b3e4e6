//! Search results: hits with their snippets.

use contexture::store::{Hit, IndexProgress, Node, SearchPage};
use contexture_text::truncate_chars;
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::ItemKindSchema;
use crate::time::format_timestamp;

/// A page of search results, best first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SearchDocument {
    /// The hits of this page, best first.
    pub hits: Vec<HitDocument>,
    /// Whether another page follows.
    pub more: bool,
    /// Whether everything was searched; `false` if only the newest candidates were, or while texts are indexed.
    pub complete: bool,
    /// Progress of the index of texts while it is rebuilt, as after an upgrade: of conversations that are not fully indexed, only
    /// what was stored since the rebuild began is found. Absent if all are indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<IndexProgressDocument>,
    /// Value of `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many items have each word, where no item has all of them; only of a search for all words that found nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<WordHitsDocument>,
}

/// How far the index of texts is, in conversations that were to be searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct IndexProgressDocument {
    /// Number of conversations whose texts are all in the index.
    pub indexed: u64,
    /// Number of all conversations that were to be searched.
    pub conversations: u64,
}

impl From<&IndexProgress> for IndexProgressDocument {
    fn from(progress: &IndexProgress) -> Self {
        Self {
            indexed: progress.indexed,
            conversations: progress.conversations,
        }
    }
}

/// A word or phrase of a search with the number of items that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WordHitsDocument {
    /// Word or phrase as it was typed.
    pub word: String,
    /// Number of items; 1,000 stands for 1,000 or more.
    pub hits: usize,
}

/// An item whose text matches the query.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HitDocument {
    /// Id of the conversation that the item is in.
    pub conversation: String,
    /// Id of the node that holds the item.
    pub id: String,
    /// Id of the message that the item belongs to; `null` if it is a message of its own.
    pub message: Option<String>,
    /// Kind of the item.
    #[schema(value_type = ItemKindSchema)]
    pub kind: &'static str,
    /// Score of the hit: higher is better, comparable within one query only.
    pub score: u32,
    /// Time at which the item was stored (RFC 3339), as the writer gave it.
    pub created: String,
    /// Part of its text that shows the matches.
    pub snippet: SnippetDocument,
    /// The newer statement of the same person about the same thing, if one of the best hits is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedDocument>,
    /// Items beside it, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearby: Option<NearbyDocument>,
}

/// Items before and after a hit on its path.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct NearbyDocument {
    /// Items before it, oldest first.
    pub before: Vec<NearbyItemDocument>,
    /// Items after it, oldest first.
    pub after: Vec<NearbyItemDocument>,
}

/// An item beside a hit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NearbyItemDocument {
    /// Id of the node that holds the item.
    pub id: String,
    /// Kind of the item.
    #[schema(value_type = ItemKindSchema)]
    pub kind: &'static str,
    /// Time at which the item was stored (RFC 3339), as the writer gave it.
    pub created: String,
    /// Beginning of its text, at most 300 characters, with `…` where it was cut.
    pub text: String,
}

/// Characters that are shown of an item beside a hit.
const NEARBY_CHARACTERS: usize = 300;

impl NearbyItemDocument {
    /// Creates the document of a node's item, which has this text.
    #[must_use]
    pub(crate) fn new(node: &Node, text: &str) -> Self {
        Self {
            id: node.id.to_string(),
            kind: node.kind.as_str(),
            created: format_timestamp(node.created_ms),
            text: truncate_chars(text.trim(), NEARBY_CHARACTERS),
        }
    }
}

/// What replaced the statement of a hit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReplacedDocument {
    /// Id of the conversation of the newer statement.
    pub conversation: String,
    /// Id of its node.
    pub id: String,
    /// Time of the newer statement (RFC 3339): until then the hit's statement was the newest.
    pub until: String,
}

/// A part of a text as plain text, without any escaping.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SnippetDocument {
    /// Text of the part, with `…` where it was cut.
    pub text: String,
    /// Byte ranges of the matches in the UTF-8 text: the start, and the end (exclusive).
    pub matches: Vec<[usize; 2]>,
}

impl From<&SearchPage> for SearchDocument {
    fn from(page: &SearchPage) -> Self {
        Self {
            hits: page.hits.iter().map(Into::into).collect(),
            more: page.next.is_some(),
            complete: page.is_complete(),
            indexing: page.indexing.as_ref().map(Into::into),
            // A cursor is bound to the owner and the list, so the handler adds it.
            next: None,
            apart: Vec::new(),
        }
    }
}

impl From<&Hit> for HitDocument {
    fn from(hit: &Hit) -> Self {
        let matches = hit.snippet.matches.iter();
        Self {
            conversation: hit.conversation.to_string(),
            id: hit.node.to_string(),
            message: hit.message_id.as_ref().map(ToString::to_string),
            kind: hit.kind.as_str(),
            score: hit.score,
            created: format_timestamp(hit.created_ms),
            snippet: SnippetDocument {
                text: hit.snippet.text.clone(),
                matches: matches.map(|place| [place.start, place.end]).collect(),
            },
            replaced: hit.replaced.as_ref().map(|newer| ReplacedDocument {
                conversation: newer.conversation.to_string(),
                id: newer.node.to_string(),
                until: format_timestamp(newer.created_ms),
            }),
            nearby: None,
        }
    }
}
