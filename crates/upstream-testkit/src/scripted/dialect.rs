//! The formats, and which one a request is in.

use crate::provider::Received;

/// API of a provider, which determines the format of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderApi {
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

/// Operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Generate,
    Count,
    /// A list of all models, or the model of that name.
    Models(Option<&'a str>),
    Unknown,
}

impl<'a> Operation<'a> {
    pub(crate) fn from_request(request: &'a Received) -> Self {
        let (path, is_post) = (request.path(), request.method == "POST");
        let ends = |endings: &[&str]| is_post && endings.iter().any(|end| path.ends_with(end));
        // Counting first: its paths end in what would also match below.
        if ends(&["/count_tokens", ":countTokens"]) {
            Self::Count
        } else if ends(&["/chat/completions", "/responses", "/messages"])
            || ends(&[":generateContent", ":streamGenerateContent"])
        {
            Self::Generate
        } else if request.method != "GET" {
            Self::Unknown
        } else if path.ends_with("/models") {
            Self::Models(None)
        } else {
            let name = path.rsplit_once("/models/").map(|(_, name)| name);
            name.map_or(Self::Unknown, |name| Self::Models(Some(name)))
        }
    }
}

impl ProviderApi {
    pub(crate) fn from_request(request: &Received) -> Self {
        let path = request.path();
        let is_verb = path
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains(':'));
        // Gemini's methods stand behind a colon in the last step of the path.
        if is_verb || request.header("x-goog-api-key").is_some() || path.contains("/v1beta/") {
            Self::Gemini
        } else if request.header("anthropic-version").is_some() || path.contains("/messages") {
            Self::Anthropic
        } else if path.contains("/responses") {
            Self::Responses
        } else {
            // Most clients that say nothing else speak Chat Completions.
            Self::Chat
        }
    }

    /// Returns the name of the field with the messages.
    pub(crate) fn messages_field(self) -> &'static str {
        match self {
            Self::Chat | Self::Anthropic => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }
}
