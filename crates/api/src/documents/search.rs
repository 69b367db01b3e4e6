//! Search results: hits with their snippets.

use contexture::store::{Hit, SearchCoverage, SearchPage};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// What a search found, best first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SearchDocument {
    /// The hits.
    pub hits: Vec<HitDocument>,
    /// Whether there are more.
    pub more: bool,
    /// Whether everything was looked at; else only the newest of what may fit.
    pub complete: bool,
    /// The `after` of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An item whose text has what was asked for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HitDocument {
    /// Its conversation.
    pub conversation: String,
    /// The node.
    pub id: String,
    /// The message it belongs to, if it is not one of its own.
    pub message: Option<String>,
    /// What kind of item it is.
    pub kind: &'static str,
    /// Higher is better, within one query.
    pub score: u32,
    /// When it was stored, as the writer said.
    pub created: String,
    /// The stretch of its text that shows why.
    pub snippet: SnippetDocument,
}

/// A stretch of a text: plain, not escaped for anything.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SnippetDocument {
    /// The text, with `…` where it was cut.
    pub text: String,
    /// The matches: from byte to byte of the text in UTF-8.
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
