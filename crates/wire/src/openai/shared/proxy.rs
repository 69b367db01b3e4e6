//! What a proxy edits in requests of both formats, and its own errors in OpenAI's shape.

use serde_json::json;

use crate::proxy::filter_tools::{filter_tool_lists, restrict_tool};
use crate::proxy::json_edit::replace_member;
use crate::proxy::{ToolFilterError, ToolRule};
use crate::spec::ProxyError;

/// Types of tools that have a name of their own; others are known by their type.
const NAMED_TOOL_TYPES: [&str; 3] = ["function", "custom", "namespace"];

/// Takes tools out of a request that may not be offered.
pub(in crate::openai) fn filter_tools(
    body: &str,
    rule: ToolRule<'_>,
) -> Result<Option<String>, ToolFilterError> {
    filter_tool_lists(body, rule, |tool, rule| {
        restrict_tool(tool, rule, Some(&NAMED_TOOL_TYPES))
    })
}

/// Returns the request with calls of tools forbidden.
pub(in crate::openai) fn forbid_tool_calls(body: &str, choice: &[&str]) -> String {
    replace_member(body, choice, |_| json!("none"))
}

/// Returns an error of the proxy in the shape of OpenAI's.
pub(in crate::openai) fn error_body(error: &ProxyError<'_>) -> String {
    let ProxyError {
        status,
        code,
        message,
    } = *error;
    // Types that OpenAI's own API uses: client libraries decide by them whether to retry.
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
}
