//! Which requests ask a model something, and in which format. All others are passed on unread.

use axum::http::Method;
use contexture::Format;

use crate::config::UpstreamFormat;
use crate::proxy::place::Place;

/// A question to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
}

impl Call {
    /// What a request asks, if it asks a model.
    pub(crate) fn of(method: &Method, place: &Place<'_>) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let asks = |end: &str| place.path.trim_end_matches('/').ends_with(end);
        let (format, model) = match place.upstream.format {
            UpstreamFormat::OpenAi if asks("/chat/completions") => (Format::OpenAiChat, None),
            UpstreamFormat::OpenAi if asks("/responses") => (Format::OpenAiResponses, None),
            UpstreamFormat::Anthropic if asks("/messages") => (Format::Anthropic, None),
            UpstreamFormat::Gemini => (Format::Gemini, Some(gemini(place.path)?)),
            _ => return None,
        };
        Some(Self { format, model })
    }
}

/// The model of `…/models/{model}:generateContent`, or of the path for streams.
fn gemini(path: &str) -> Option<String> {
    let (_, rest) = path.rsplit_once("/models/")?;
    let (model, verb) = rest.rsplit_once(':')?;
    matches!(verb, "generateContent" | "streamGenerateContent").then(|| model.to_owned())
}
