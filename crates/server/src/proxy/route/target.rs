//! The target of a request, by its path: `/{upstream}/…`, or a provider's own path at the root.

use axum::http::{HeaderMap, Uri};

use crate::config::UpstreamFormat;
use crate::state::upstreams::{ConfiguredUpstream, Upstreams};

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
    let upstream = upstreams.default_for(format_of_root(path, headers)?)?;
    Some(RouteTarget { upstream, path })
}

/// Returns whose protocol a provider's own path at the root is: that of the format whose rule says most about the request.
fn format_of_root(path: &str, headers: &HeaderMap) -> Option<UpstreamFormat> {
    let has_header = |name: &str| headers.contains_key(name);
    let fits = UpstreamFormat::all().filter_map(|format| {
        let profile = format.http_profile()?;
        Some((profile.root_match(path, &has_header)?, format))
    });
    fits.max_by_key(|(fit, _)| *fit).map(|(_, format)| format)
}
