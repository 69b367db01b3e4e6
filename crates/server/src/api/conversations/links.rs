//! What links name: parts of long outputs, by lines or by what they say.

use axum::extract::State;
use contexture::compile::Link;
use contexture::compile::reading::{
    FindOptions, Matcher, Pattern, TextPosition, extract_excerpt, find_lines,
};
use contexture::engine::MessageView;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::{ExcerptDocument, FoundDocument};

/// Maximum number of lines that are found, or shown around a match.
const MAX_LINES: usize = 1_000;
/// Maximum number of characters in one answer.
const MAX_CHARACTERS: usize = 1 << 20;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_link))
}

/// The link to read, and the part of its text to return.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadLinkParams {
    /// Link to read: `context://…`.
    link: String,
    /// Name of the branch. Default: the active one.
    branch: Option<String>,
    /// Number of the first line. Default 1.
    from: Option<u64>,
    /// Number of the last line. Default: as far as one answer goes, 1,048,576 characters.
    to: Option<u64>,
    /// Text to find, ignoring case; only lines that contain it are returned.
    text: Option<String>,
    /// Regular expression to find; only lines that match it are returned.
    regex: Option<String>,
    /// Number of lines to show around each match. Default 0, at most 1,000.
    around: Option<usize>,
}

/// Returns a part of what a link names, or the lines of it that match.
#[utoipa::path(
    get, path = "/conversations/{conversation}/read", tag = "messages",
    params(("conversation" = String, Path, description = "Its id"), ReadLinkParams),
    responses(
        (status = 200, description = "The part, or with `text` or `regex` the lines", body = ReadDocument),
        (status = 410, description = "What the link named was removed", body = contexture_api::ProblemDocument, content_type = "application/problem+json"),
        ReadRefusals
    )
)]
async fn read_link(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<ReadLinkParams>,
) -> Result<Json<ReadDocument>, Problem> {
    let bad = |why: String| Problem::new(Code::BadQuery, why);
    let link: Link = asked
        .link
        .parse()
        .map_err(|error| bad(format!("`link`: {error}")))?;
    let around = asked.around.unwrap_or(0);
    let pattern = match (asked.text, asked.regex) {
        (None, None) => None,
        (Some(text), None) => Some(Pattern::Text(text)),
        (None, Some(regex)) => Some(Pattern::Regex(regex)),
        (Some(_), Some(_)) => return Err(bad("expected either `text` or `regex`".to_owned())),
    };
    if around > MAX_LINES {
        return Err(bad(format!("`around` is {around}; at most {MAX_LINES}")));
    }
    let (from, to) = (asked.from.unwrap_or(1).max(1), asked.to.unwrap_or(u64::MAX));
    if to < from {
        return Err(bad(format!(
            "lines {from} to {to}: the last comes before the first"
        )));
    }
    let matcher = pattern.as_ref().map(Matcher::new).transpose();
    let matcher = matcher.map_err(|error| bad(error.to_string()))?;
    let chat = open_conversation(&app, &owner, &id, asked.branch.as_deref()).await?;
    let linked = chat.resolve_link(link, MessageView::User).await?;
    let Some(matcher) = matcher else {
        let count = to.saturating_sub(from).saturating_add(1);
        let part = extract_excerpt(
            &linked.text,
            TextPosition::line_start(from),
            count,
            MAX_CHARACTERS,
        );
        return Ok(Json(ReadDocument::Part(ExcerptDocument::new(
            &linked, &part,
        ))));
    };
    let which = FindOptions {
        from,
        context: around,
        limit: MAX_LINES,
        characters: MAX_CHARACTERS,
    };
    let found = find_lines(&linked.text, &matcher, &which);
    Ok(Json(ReadDocument::Found(FoundDocument::new(
        &linked, &found,
    ))))
}

/// A part of a text, or the lines of it that match.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ReadDocument {
    Part(ExcerptDocument),
    Found(FoundDocument),
}
