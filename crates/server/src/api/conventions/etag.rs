//! Entity tags for optimistic concurrency: the version of a conversation, the head of a branch.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use contexture::EngineError;
use contexture::ir::NodeId;
use contexture::store::Error as StoreError;

use crate::problem::{Code, Problem};

/// The tag of an empty branch.
const EMPTY: &str = "empty";

/// Returns the entity tag of a conversation's version.
pub(crate) fn version_etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns the entity tag of a branch's head.
pub(crate) fn head_etag(head: Option<NodeId>) -> String {
    head.map_or_else(|| format!("\"{EMPTY}\""), |head| format!("\"{head}\""))
}

/// Reads the version that `if-match` requires; `None` for `*` or no header.
pub(crate) fn expected_version(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let expected = "expected the version of an `etag` of the conversation";
    if_match(headers, expected, |text| text.parse().ok())
}

/// Reads the head that `if-match` requires; the inner `None` is an empty branch.
pub(crate) fn expected_head(headers: &HeaderMap) -> Result<Option<Option<NodeId>>, Problem> {
    let expected = "expected the head of an `etag` of the branch, or \"empty\"";
    if_match(headers, expected, |text| match text {
        EMPTY => Some(None),
        id => id.parse().ok().map(Some),
    })
}

fn if_match<T>(
    headers: &HeaderMap,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(value) = headers.get(IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    // Weak tags (`W/"…"`) and lists are refused: a write names exactly the version it was made for.
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner
        .and_then(parse)
        .map(Some)
        .ok_or_else(|| Problem::new(Code::BadHeader, format!("`if-match`: {expected}")))
}

/// Converts the error of a write with `if-match`: another version is a failed precondition, not a conflict.
pub(crate) fn precondition_problem(error: EngineError) -> Problem {
    let moved = match &error {
        EngineError::Store(StoreError::HeadMoved { .. }) => Some(Code::HeadMoved),
        EngineError::Store(StoreError::VersionConflict { .. }) => Some(Code::VersionMoved),
        _ => None,
    };
    let problem = Problem::from(error);
    match moved {
        Some(code) => problem.with_code(code),
        None => problem,
    }
}
