//! Which requests ask a model something, and in which format. All others are passed on unread.
//!
//! A path is read as hosts may read it, however it is written: with escapes, empty steps, or in capitals. It is passed on as
//! it came.

use axum::http::Method;
use contexture::Format;
use percent_encoding::percent_decode_str;

use crate::config::UpstreamFormat;
use crate::proxy::route::target::RouteTarget;

/// A question to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelEndpoint {
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
}

impl ModelEndpoint {
    /// What a request asks, if it asks a model.
    pub(crate) fn from_request(method: &Method, place: &RouteTarget<'_>) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let path = normalize_path(place.path);
        let steps = path.to_ascii_lowercase();
        let asks = |end: &str| steps.ends_with(end);
        let (format, model) = match place.upstream.format {
            UpstreamFormat::OpenAi if asks("/chat/completions") => (Format::OpenAiChat, None),
            UpstreamFormat::OpenAi if asks("/responses") => (Format::OpenAiResponses, None),
            UpstreamFormat::Anthropic if asks("/messages") => (Format::Anthropic, None),
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

/// The model that a path of Gemini's names, whatever is asked of it.
pub(crate) fn model_in_path(place: &RouteTarget<'_>) -> Option<String> {
    let path = normalize_path(place.path);
    let is_gemini = place.upstream.format == UpstreamFormat::Gemini;
    let (model, _) = split_gemini_path(&path).filter(|_| is_gemini)?;
    Some(model.to_owned())
}

/// A path without escapes and empty steps.
fn normalize_path(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let steps = path.split('/').filter(|step| !step.is_empty());
    steps.flat_map(|step| ["/", step]).collect()
}

/// The model of `…/models/{model}:{verb}`, and the verb.
fn split_gemini_path(path: &str) -> Option<(&str, &str)> {
    let (_, rest) = path.rsplit_once("/models/")?;
    rest.rsplit_once(':')
}
