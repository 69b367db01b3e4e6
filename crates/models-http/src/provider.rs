//! Providers: address, request shape and key.

use std::collections::BTreeMap;

use contexture_wire::{CallPath, Format, HttpProfile, ResponseMode, StreamFraming};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use serde_json::value::RawValue;

use crate::error::ClientError;
use crate::key::ApiKey;

/// A provider: the format it speaks, its address, its key.
#[derive(Clone, Debug)]
pub struct Provider {
    format: Format,
    profile: &'static HttpProfile,
    base: Url,
    key: Option<ApiKey>,
    headers: HeaderMap,
}

fn http_profile(format: Format) -> Result<&'static HttpProfile, ClientError> {
    format
        .spec()
        .http()
        .ok_or(ClientError::NoProvider { format })
}

impl Provider {
    /// The provider whose format it is, at its own address.
    ///
    /// # Errors
    /// [`ClientError::NoProvider`].
    pub fn new(format: Format, key: ApiKey) -> Result<Self, ClientError> {
        Self::with_base_url(format, http_profile(format)?.base_url, Some(key))
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
        Ok(Self {
            format,
            // First, so that a format without a provider is an error whatever the address.
            profile: http_profile(format)?,
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
        let profile = http_profile(format)?;
        let mut bases = profile.base_url_variables.iter();
        let base = bases.find_map(|name| std::env::var(name).ok().filter(|base| !base.is_empty()));
        let key = ApiKey::from_env(profile.api_key_variables);
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
        let key = ApiKey::from_env(http_profile(format)?.api_key_variables);
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

    /// Whether it is the provider itself, and not another host that speaks its format.
    pub(crate) fn is_at_own_host(&self) -> bool {
        self.base
            .host_str()
            .is_some_and(|host| self.profile.is_own_host(host))
    }

    /// The format it speaks.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// How it frames streamed answers.
    pub(crate) const fn framing(&self) -> StreamFraming {
        self.profile.framing
    }

    /// The headers of every request.
    pub(crate) fn request_headers(&self) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let Some((name, value)) = self.profile.version_header {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(key) = &self.key {
            let value = key.header_value(self.profile.key_prefix)?;
            headers.insert(self.profile.key_header, value);
        }
        // Last, so that a user's header replaces ours.
        headers.extend(self.headers.clone());
        Ok(headers)
    }

    /// The address of a call.
    pub(crate) fn endpoint_url(&self, model: &str, mode: ResponseMode) -> Url {
        let mut url = self.base.clone();
        let base_bytes = url.path().trim_end_matches('/').len();
        // Model names of some hosts have slashes; a name stays one step of the path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty()
                .extend(self.profile.path.call_steps(model, mode));
        }
        if let CallPath::Model {
            separator,
            stream_query,
            ..
        } = self.profile.path
        {
            if separator == '/' {
                encode_colons(&mut url, base_bytes);
            }
            if mode == ResponseMode::Stream && !stream_query.is_empty() {
                url.set_query(Some(stream_query));
            }
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

/// Percent-encodes the colons of a path behind its base: what is signed or compared there has none.
fn encode_colons(url: &mut Url, base_bytes: usize) {
    let path = url.path().to_owned();
    let (base, added) = path.split_at_checked(base_bytes).unwrap_or(("", &path));
    url.set_path(&format!("{base}{}", added.replace(':', "%3A")));
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
    let asked = format
        .spec()
        .members()
        .map_or(&[][..], |members| members.stream);
    if asked.is_empty() {
        return payload;
    }
    // Read for its keys only; the text below is edited and not written anew.
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&payload) else {
        return payload;
    };
    let missing = asked
        .iter()
        .filter(|(name, _)| !members.contains_key(*name));
    let added: Vec<String> = missing
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    // What ends otherwise is no object; the provider will say so better than we could.
    let Some(body) = payload.trim_end().strip_suffix('}') else {
        return payload;
    };
    let comma = if members.is_empty() || added.is_empty() {
        ""
    } else {
        ","
    };
    format!("{body}{comma}{}}}", added.join(","))
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

    #[test]
    fn model_with_slashes_is_one_encoded_step_of_the_path() {
        let base = "https://host.example/base/";
        let mut provider = Provider::with_base_url(Format::Gemini, base, None).unwrap();
        let url = provider.endpoint_url("models/org/some model", ResponseMode::Stream);
        assert_eq!(
            url.as_str(),
            "https://host.example/base/v1beta/models/org%2Fsome%20model:streamGenerateContent?alt=sse"
        );
        // A verb as a step of its own, behind a model that may be an address itself.
        let mut profile = *provider.profile;
        profile.path = CallPath::Model {
            prefix: &["model"],
            separator: '/',
            whole: "converse",
            stream: "converse-stream",
            stream_query: "",
        };
        provider.profile = Box::leak(Box::new(profile));
        let url = provider.endpoint_url("arn:aws:x/y.z-v1:0", ResponseMode::Stream);
        assert_eq!(
            url.as_str(),
            "https://host.example/base/model/arn%3Aaws%3Ax%2Fy.z-v1%3A0/converse-stream"
        );
    }
}
