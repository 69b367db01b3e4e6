//! Control headers: `x-contexture-…` headers of a proxied request, which are for this server and not forwarded.

use axum::http::{HeaderMap, HeaderName};
use contexture::ir::{BranchName, ConversationId};

use crate::proxy::refusal::ProxyRefusal;

/// The prefix of all headers of this server.
pub(crate) const HEADER_PREFIX: &str = "x-contexture-";

/// What follows the prefix in the headers that a request may have.
const NAMES: [&str; 8] = [
    "branch",
    "bypass",
    "conversation",
    "key",
    "policy",
    "rules",
    "user",
    "wait",
];

/// The control headers of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlHeaders {
    /// The conversation it belongs to.
    pub(crate) conversation: Option<ConversationId>,
    /// The branch it continues.
    pub(crate) branch: Option<BranchName>,
    /// The end user it is for.
    pub(crate) user: Option<String>,
    /// The policy it asks for.
    pub(crate) policy: Option<String>,
    /// Whether it is neither stored nor rewritten.
    pub(crate) bypass: bool,
    /// Whether rules that its user stated are left out of it, though its policy quotes them.
    pub(crate) without_rules: bool,
    /// Whether the answer's head waits until the conversation is known.
    pub(crate) wait: bool,
}

impl ControlHeaders {
    /// Parses the control headers.
    ///
    /// # Errors
    /// A header has a value that is not accepted, or there is none of its name.
    pub(crate) fn parse_headers(headers: &HeaderMap) -> Result<Self, ProxyRefusal> {
        // Refused rather than ignored: under a misspelt policy the request would be sent as it came.
        let mut names = headers.keys().map(HeaderName::as_str);
        let is_unknown = |name: &&str| {
            let name = name.strip_prefix(HEADER_PREFIX);
            name.is_some_and(|name| !NAMES.contains(&name))
        };
        if let Some(unknown) = names.find(is_unknown) {
            let known = NAMES
                .map(|name| format!("{HEADER_PREFIX}{name}"))
                .join(", ");
            let why = format!("there is no such header; known are {known}");
            return Err(ProxyRefusal::bad_header(unknown, &why));
        }
        let text_of = |name: &str| -> Result<Option<&str>, ProxyRefusal> {
            let header = format!("{HEADER_PREFIX}{name}");
            let Some(value) = headers.get(&header) else {
                return Ok(None);
            };
            // Refused rather than ignored: a misspelt conversation would silently store the request elsewhere.
            let text = value.to_str().ok().map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            text.map(Some).ok_or_else(|| {
                ProxyRefusal::bad_header(&header, "expected visible ASCII characters")
            })
        };
        let invalid = |name: &str, error: &dyn std::fmt::Display| {
            ProxyRefusal::bad_header(&format!("{HEADER_PREFIX}{name}"), &error.to_string())
        };
        let conversation = text_of("conversation")?.map(str::parse).transpose();
        let branch = text_of("branch")?.map(str::parse).transpose();
        Ok(Self {
            conversation: conversation.map_err(|error| invalid("conversation", &error))?,
            branch: branch.map_err(|error: contexture::ir::Error| invalid("branch", &error))?,
            user: text_of("user")?.map(str::to_owned),
            policy: text_of("policy")?.map(str::to_owned),
            bypass: match text_of("bypass")? {
                None | Some("false") => false,
                Some("true") => true,
                Some(_) => return Err(invalid("bypass", &"expected true or false")),
            },
            without_rules: match text_of("rules")? {
                None | Some("true") => false,
                Some("false") => true,
                Some(_) => return Err(invalid("rules", &"expected true or false")),
            },
            wait: match text_of("wait")? {
                None => false,
                Some("ingest") => true,
                Some(_) => return Err(invalid("wait", &"expected ingest")),
            },
        })
    }
}
