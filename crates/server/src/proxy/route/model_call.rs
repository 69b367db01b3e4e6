//! Model calls: which requests call a model, and in which format. All others are forwarded unread.
//!
//! A path is compared as lenient hosts may read it: with escapes, empty segments, or in capitals. Otherwise a policy could be
//! circumvented by spelling. It is forwarded as it came.

use axum::http::Method;
use contexture::Format;
use contexture::models_http::decode_request_path;

use crate::proxy::route::target::RouteTarget;

/// The format of a model call, and the model where the path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelEndpoint {
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
}

impl ModelEndpoint {
    /// Returns the model call that a request is, if it is one.
    pub(crate) fn from_request(method: &Method, place: &RouteTarget<'_>) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let path = normalize_path(place.path);
        place.upstream.format.formats().find_map(|format| {
            let call = format.spec().http()?.path.parse_call(&path)?;
            Some(Self {
                format,
                model: call.model.map(str::to_owned),
            })
        })
    }
}

/// Returns the model that a path names, whatever is asked of it.
pub(crate) fn model_in_path(place: &RouteTarget<'_>) -> Option<String> {
    let path = normalize_path(place.path);
    let profile = place.upstream.format.http_profile()?;
    profile.path.model_in(&path).map(str::to_owned)
}

/// Returns a path without escapes and empty segments. One that could be read in two ways is refused before anything is
/// sent; it names nothing here.
fn normalize_path(path: &str) -> String {
    decode_request_path(path).unwrap_or_default()
}
