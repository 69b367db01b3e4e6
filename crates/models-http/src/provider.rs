//! Providers: address, request shape and key.

use std::collections::BTreeMap;

use contexture_wire::Format;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use serde_json::value::RawValue;

use crate::error::ClientError;
use crate::key::ApiKey;

/// The version of Anthropic's protocol.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A provider: the format it speaks, its address, its key.
#[derive(Clone, Debug)]
pub struct Provider {
    format: Format,
    base: Url,
    key: Option<ApiKey>,
    headers: HeaderMap,
}

/// Whether the answer is to come whole or in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    Whole,
    Stream,
}

/// A provider's own address, and the environment variables for another one and for its key.
struct HttpProfile {
    base: &'static str,
    base_variables: &'static [&'static str],
    key_variables: &'static [&'static str],
}

fn http_profile(format: Format) -> Result<HttpProfile, ClientError> {
    match format {
        Format::OpenAiChat | Format::OpenAiResponses => Ok(HttpProfile {
            base: "https://api.openai.com/v1",
            base_variables: &["OPENAI_BASE_URL"],
            key_variables: &["OPENAI_API_KEY"],
        }),
        Format::Anthropic => Ok(HttpProfile {
            base: "https://api.anthropic.com",
            base_variables: &["ANTHROPIC_BASE_URL"],
            key_variables: &["ANTHROPIC_API_KEY"],
        }),
        Format::Gemini => Ok(HttpProfile {
            base: "https://generativelanguage.googleapis.com",
            base_variables: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"],
            key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        }),
        Format::Ui | Format::Items => Err(ClientError::NoProvider { format }),
    }
}

impl Provider {
    /// The provider whose format it is, at its own address.
    ///
    /// # Errors
    /// [`ClientError::NoProvider`].
    pub fn new(format: Format, key: ApiKey) -> Result<Self, ClientError> {
        Self::with_base_url(format, http_profile(format)?.base, Some(key))
    }

    /// A host that speaks the format. The address ends where `/chat/completions`, `/responses`,
    /// `/v1/messages` or `/v1beta/models` begins.
    ///
    /// # Errors
    /// [`ClientError::BadAddress`] for what is no `http` or `https` address, or has a user, a query or a
    /// fragment; [`ClientError::NoProvider`].
    pub fn with_base_url(
        format: Format,
        base: &str,
        key: Option<ApiKey>,
    ) -> Result<Self, ClientError> {
        // Checked here too, so that a format without a provider fails before its first call.
        http_profile(format)?;
        Ok(Self {
            format,
            base: parse_base_url(base)?,
            key,
            headers: HeaderMap::new(),
        })
    }

    /// As the environment says: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`;
    /// and, for another address, `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `GOOGLE_GEMINI_BASE_URL` or
    /// `GEMINI_BASE_URL`. With an address of its own a host needs no key.
    ///
    /// # Errors
    /// [`ClientError::NoKey`], [`ClientError::BadAddress`], [`ClientError::NoProvider`].
    pub fn from_env(format: Format) -> Result<Self, ClientError> {
        let facts = http_profile(format)?;
        let mut bases = facts.base_variables.iter();
        let base = bases.find_map(|name| std::env::var(name).ok().filter(|base| !base.is_empty()));
        let key = ApiKey::from_env(facts.key_variables);
        match base {
            Some(base) => Self::with_base_url(format, &base, key.ok()),
            None => Self::new(format, key?),
        }
    }

    /// As [`Provider::from_env`], at this address, whatever the environment says of addresses.
    ///
    /// # Errors
    /// [`ClientError::BadAddress`], [`ClientError::NoProvider`].
    pub fn from_env_with_base_url(format: Format, base: &str) -> Result<Self, ClientError> {
        let key = ApiKey::from_env(http_profile(format)?.key_variables);
        Self::with_base_url(format, base, key.ok())
    }

    /// With one more header on every request. Its value is not shown.
    ///
    /// # Errors
    /// [`ClientError::BadHeader`].
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let bad = |why| ClientError::BadHeader {
            name: name.to_owned(),
            why,
        };
        let header: HeaderName = name.parse().map_err(|_| bad("no such name is possible"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| bad("no such value is possible"))?;
        // Headers of a user often hold a second key.
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// The format it speaks.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The headers of every request.
    pub(crate) fn request_headers(&self) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if self.format == Format::Anthropic {
            let version = HeaderValue::from_static(ANTHROPIC_VERSION);
            headers.insert("anthropic-version", version);
        }
        if let Some(key) = &self.key {
            let (name, word) = match self.format {
                Format::Anthropic => ("x-api-key", ""),
                Format::Gemini => ("x-goog-api-key", ""),
                _ => ("authorization", "Bearer "),
            };
            headers.insert(name, key.header_value(word)?);
        }
        // Last, so that a user's header replaces ours.
        headers.extend(self.headers.clone());
        Ok(headers)
    }

    /// The address of a call.
    pub(crate) fn endpoint_url(&self, model: &str, mode: ResponseMode) -> Url {
        let mut url = self.base.clone();
        // Model names of some hosts have slashes; a name stays one step of the path.
        let steps: Vec<String> = match self.format {
            Format::OpenAiChat => ["chat", "completions"].map(str::to_owned).to_vec(),
            Format::OpenAiResponses => vec!["responses".to_owned()],
            Format::Anthropic => ["v1", "messages"].map(str::to_owned).to_vec(),
            _ => {
                let verb = match mode {
                    ResponseMode::Whole => "generateContent",
                    ResponseMode::Stream => "streamGenerateContent",
                };
                let name = model.strip_prefix("models/").unwrap_or(model);
                // Gemini's API names models with the prefix, which the path has already.
                vec![
                    "v1beta".to_owned(),
                    "models".to_owned(),
                    format!("{name}:{verb}"),
                ]
            }
        };
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(steps);
        }
        // Without it Gemini streams one JSON array, whose elements cannot be told apart until it ends.
        if self.format == Format::Gemini && mode == ResponseMode::Stream {
            url.set_query(Some("alt=sse"));
        }
        url
    }

    /// A text without what must not be shown.
    pub(crate) fn redact_secrets(&self, text: &str) -> String {
        let mut text = match &self.key {
            Some(key) => key.redact_key(text),
            None => text.to_owned(),
        };
        for value in self
            .headers
            .values()
            .filter_map(|value| value.to_str().ok())
        {
            // Headers given by the user are hidden as keys are: nobody knows which of them is one.
            text = ApiKey::new(value).redact_key(&text);
        }
        text
    }
}

/// An `http` or `https` address without user, query and fragment, to put paths behind.
pub(crate) fn parse_base_url(text: &str) -> Result<Url, ClientError> {
    let bad = |why: &str| ClientError::BadAddress {
        why: why.to_owned(),
    };
    let base = Url::parse(text.trim()).map_err(|error| bad(&error.to_string()))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(bad("expected http:// or https://"));
    }
    // They would end up in logs, and a key has its own place.
    if !base.username().is_empty() || base.password().is_some() {
        return Err(bad("it has a user or a password in it: give a key instead"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(base)
}

/// Adds to a payload what asks for a stream, where its format has it. What the payload states already stays,
/// byte for byte: caches know prompts by their bytes.
pub(crate) fn request_streaming(format: Format, payload: String) -> String {
    if format == Format::Gemini {
        return payload;
    }
    // Read for its keys only; the text below is edited and not written anew.
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&payload) else {
        return payload;
    };
    let mut added = String::new();
    if !members.contains_key("stream") {
        added.push_str(",\"stream\":true");
    }
    // Without it Chat Completions streams report no usage.
    if format == Format::OpenAiChat && !members.contains_key("stream_options") {
        added.push_str(",\"stream_options\":{\"include_usage\":true}");
    }
    let empty = members.is_empty();
    // What ends otherwise is no object; the provider will say so better than we could.
    let Some(body) = payload.trim_end().strip_suffix('}') else {
        return payload;
    };
    let added = if empty {
        added.trim_start_matches(',')
    } else {
        &added
    };
    format!("{body}{added}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_asked_for_at_the_end() {
        for (format, payload, expected) in [
            (Format::Anthropic, r#"{"a":1}"#, r#"{"a":1,"stream":true}"#),
            (
                Format::Anthropic,
                r#"{"stream":false} "#,
                r#"{"stream":false}"#,
            ),
            (Format::OpenAiResponses, "{}", r#"{"stream":true}"#),
            (
                Format::OpenAiChat,
                r#"{"a":1}"#,
                r#"{"a":1,"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (Format::Gemini, r#"{"a":1}"#, r#"{"a":1}"#),
            (Format::OpenAiChat, "no json", "no json"),
        ] {
            assert_eq!(request_streaming(format, payload.to_owned()), expected);
        }
    }
}
