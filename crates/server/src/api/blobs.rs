//! Bytes that are kept beside a conversation's items: whole, or a range of them (RFC 9110).

use std::ops::Range;

use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use contexture::EngineError;
use contexture::store::BlobId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::http::extractors::{Path, ReadAccess};
use crate::problem::Problem;
use crate::state::App;
use contexture_api::ProblemDocument;
use contexture_api::schema::BytesSchema;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read_blob))
}

/// Stored bytes by their id, whole or a range. What they are is known to whoever stored them.
#[utoipa::path(
    get, path = "/conversations/{conversation}/blobs/{blob}", tag = "messages",
    params(
        ("conversation" = String, Path, description = "The conversation's id"),
        ("blob" = String, Path, description = "Its id: 32 hexadecimal digits"),
        ("range" = Option<String>, Header, description = "`bytes=0-99`, `bytes=100-` or `bytes=-100`; several ranges give the whole"),
    ),
    responses(
        (status = 200, description = "All of them", body = inline(BytesSchema), content_type = "application/octet-stream"),
        (status = 206, description = "The range", body = inline(BytesSchema), content_type = "application/octet-stream", headers(("content-range" = String, description = "Which, of how many"))),
        (status = 416, description = "They end before the range begins", body = ProblemDocument, content_type = "application/problem+json"),
        ReadRefusals
    )
)]
async fn read_blob(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, blob)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let blob: BlobId = blob.parse().map_err(EngineError::from)?;
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let bytes = app
        .engine()
        .store()
        .read_blob(&owner, chat.id(), blob)
        .await?;
    let length = bytes.len();
    let bytes = Bytes::from_owner(bytes);
    let tag = format!("\"{blob}\"");
    let known = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        // Anything may be stored: a browser must not take it for a page and run it.
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (ETAG, tag.clone()),
    ];
    // RFC 9110, 13.1.5: if the caller has a part of another version, it gets the whole.
    let of_this = header_text(&headers, IF_RANGE).is_none_or(|version| version == tag);
    let asked = header_text(&headers, RANGE).filter(|_| of_this);
    match asked.map_or(RequestedRange::Whole, |range| parse_range(range, length)) {
        RequestedRange::Whole => Ok((known, bytes).into_response()),
        RequestedRange::Part(part) => {
            let range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            let range = [(CONTENT_RANGE, range)];
            let status = StatusCode::PARTIAL_CONTENT;
            Ok((status, known, range, bytes.slice(part)).into_response())
        }
        RequestedRange::Beyond => {
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let detail = format!("there are {length} bytes");
            let problem = Problem::custom("range_not_satisfiable", status, detail);
            let range = [(CONTENT_RANGE, format!("bytes */{length}"))];
            Ok((range, problem).into_response())
        }
    }
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What a range asks for.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    /// Everything: what is no single range of bytes is as if it had not been said.
    Whole,
    /// These bytes, at least one.
    Part(Range<usize>),
    /// Bytes of which there is none.
    Beyond,
}

fn parse_range(range: &str, length: usize) -> RequestedRange {
    let ends = range
        .trim()
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'));
    let number = |digits: &str| {
        let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // More than can be counted is more than there is.
        all.then(|| digits.parse().unwrap_or(usize::MAX))
    };
    let part = match ends.map(|(from, to)| (from.trim(), to.trim())) {
        Some(("", last)) => number(last).map(|last| length.saturating_sub(last)..length),
        Some((from, "")) => number(from).map(|from| from..length),
        Some((from, to)) => match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to => Some(from..to.saturating_add(1).min(length)),
            _ => None,
        },
        None => None,
    };
    match part {
        None => RequestedRange::Whole,
        Some(part) if part.start >= part.end => RequestedRange::Beyond,
        Some(part) => RequestedRange::Part(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_says() {
        for (range, expected) in [
            ("bytes=0-3", RequestedRange::Part(0..4)),
            ("bytes=4-", RequestedRange::Part(4..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-30", RequestedRange::Part(0..10)),
            (
                "bytes=8-99999999999999999999999",
                RequestedRange::Part(8..10),
            ),
            ("bytes=10-", RequestedRange::Beyond),
            ("bytes=99999999999999999999999-", RequestedRange::Beyond),
            ("bytes=-0", RequestedRange::Beyond),
            ("bytes=3-2", RequestedRange::Whole),
            ("bytes=0-1,4-5", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
            ("", RequestedRange::Whole),
        ] {
            assert_eq!(parse_range(range, 10), expected, "{range}");
        }
        assert_eq!(parse_range("bytes=0-", 0), RequestedRange::Beyond);
    }
}
