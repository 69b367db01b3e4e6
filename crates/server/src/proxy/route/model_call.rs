//! Model calls: which requests call a model, and in which format. All others are forwarded unread.
//!
//! A path is compared as lenient hosts may read it: with escapes, empty segments, or in capitals. Otherwise a policy could be
//! circumvented by spelling. It is forwarded as it came.

use axum::http::Method;
use contexture::Format;
use percent_encoding::percent_decode_str;

use crate::config::UpstreamFormat;
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
        let steps = path.to_ascii_lowercase();
        let ends_with = |end: &str| steps.ends_with(end);
        let (format, model) = match place.upstream.format {
            UpstreamFormat::OpenAi if ends_with("/chat/completions") => (Format::OpenAiChat, None),
            UpstreamFormat::OpenAi if ends_with("/responses") => (Format::OpenAiResponses, None),
            UpstreamFormat::Anthropic if ends_with("/messages") => (Format::Anthropic, None),
            UpstreamFormat::Gemini => {
                let (model, verb) = split_gemini_path(&path)?;
                if !matches!(verb, "generateContent" | "streamGenerateContent") {
                    return None;
                }
                (Format::Gemini, Some(model.to_owned()))
            }
            _ => return None,
        };
        Some(Self { format, model })
    }
}

/// Returns the model that a path of Gemini names, whatever the verb.
pub(crate) fn model_in_path(place: &RouteTarget<'_>) -> Option<String> {
    let path = normalize_path(place.path);
    let is_gemini = place.upstream.format == UpstreamFormat::Gemini;
    let (model, _) = split_gemini_path(&path).filter(|_| is_gemini)?;
    Some(model.to_owned())
}

/// Returns a path without escapes and empty segments.
fn normalize_path(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let steps = path.split('/').filter(|step| !step.is_empty());
    steps.flat_map(|step| ["/", step]).collect()
}

/// Splits `…/models/{model}:{verb}` into model and verb.
fn split_gemini_path(path: &str) -> Option<(&str, &str)> {
    let (_, rest) = path.rsplit_once("/models/")?;
    rest.rsplit_once(':')
}
