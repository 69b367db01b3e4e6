//! Search results: hits with their snippets.

use contexture::store::{Hit, SearchCoverage, SearchPage};
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
    /// Whether everything was searched; `false` if only the newest candidates were.
    pub complete: bool,
    /// Value of `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
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
            complete: page.coverage == SearchCoverage::Whole,
            // A cursor is bound to the owner and the list, so the handler adds it.
            next: None,
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
        }
    }
}
