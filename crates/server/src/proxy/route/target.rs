//! The target of a request, by its path: `/{upstream}/…`, or a provider's own path at the root.

use axum::http::{HeaderMap, Uri};

use crate::config::UpstreamFormat;
use crate::state::upstreams::{ConfiguredUpstream, Upstreams};

/// Sent by all of Anthropic's clients, on paths that OpenAI has too.
const ANTHROPIC_VERSION_HEADER: &str = "anthropic-version";
/// Gemini's clients have a header of their own for their key.
const GEMINI_KEY_HEADER: &str = "x-goog-api-key";

/// An upstream, and the path to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteTarget<'a> {
    pub(crate) upstream: &'a ConfiguredUpstream,
    /// From `/` on, without the query.
    pub(crate) path: &'a str,
}

/// Returns the target of a request, if its path leads to any.
pub(crate) fn resolve_target<'a>(
    upstreams: &'a Upstreams,
    uri: &'a Uri,
    headers: &HeaderMap,
) -> Option<RouteTarget<'a>> {
    let path = uri.path();
    let rest = path.strip_prefix('/')?;
    let first = rest.split('/').next().unwrap_or_default();
    if let Some(upstream) = upstreams.find_by_name(first) {
        let path = path
            .get(first.len() + 1..)
            .filter(|path| !path.is_empty())?;
        return Some(RouteTarget { upstream, path });
    }
    let is_under = |root: &str| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Most specific first: OpenAI is what remains of `/v1`.
    let format = if is_under("/v1beta") || (is_under("/v1") && is_gemini_request(path, headers)) {
        UpstreamFormat::Gemini
    } else if is_under("/v1/messages")
        || (is_under("/v1") && headers.contains_key(ANTHROPIC_VERSION_HEADER))
    {
        UpstreamFormat::Anthropic
    } else if is_under("/v1") {
        UpstreamFormat::OpenAi
    } else {
        return None;
    };
    let upstream = upstreams.default_for(format)?;
    Some(RouteTarget { upstream, path })
}

/// Whether a request under `/v1` is Gemini's: newer clients call that too, with paths that end with a verb
/// (`/v1/models/gemini-3:countTokens`).
fn is_gemini_request(path: &str, headers: &HeaderMap) -> bool {
    let has_verb = path
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains(':'));
    has_verb || headers.contains_key(GEMINI_KEY_HEADER)
}
