//! What a request says to us, in headers of its own that go no further.

use axum::http::HeaderMap;
use contexture::ir::{BranchName, ConversationId};

use crate::proxy::refusal::ProxyRefusal;

/// What our headers begin with.
pub(crate) const HEADER_PREFIX: &str = "x-contexture-";

/// What a request says to us.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlHeaders {
    /// The conversation it belongs to.
    pub(crate) conversation: Option<ConversationId>,
    /// The branch it goes on.
    pub(crate) branch: Option<BranchName>,
    /// The end user it is for.
    pub(crate) user: Option<String>,
    /// The policy it asks for.
    pub(crate) policy: Option<String>,
    /// Neither stored nor changed.
    pub(crate) bypass: bool,
    /// The answer's head waits until the conversation is known.
    pub(crate) wait: bool,
}

impl ControlHeaders {
    /// # Errors
    /// A header of ours that says nothing possible.
    pub(crate) fn parse_headers(headers: &HeaderMap) -> Result<Self, ProxyRefusal> {
        let said = |name: &str| -> Result<Option<&str>, ProxyRefusal> {
            let header = format!("{HEADER_PREFIX}{name}");
            let Some(value) = headers.get(&header) else {
                return Ok(None);
            };
            let text = value.to_str().ok().map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            text.map(Some).ok_or_else(|| {
                ProxyRefusal::bad_header(&header, "expected visible ASCII characters")
            })
        };
        let named = |name: &str, error: &dyn std::fmt::Display| {
            ProxyRefusal::bad_header(&format!("{HEADER_PREFIX}{name}"), &error.to_string())
        };
        let conversation = said("conversation")?.map(str::parse).transpose();
        let branch = said("branch")?.map(str::parse).transpose();
        Ok(Self {
            conversation: conversation.map_err(|error| named("conversation", &error))?,
            branch: branch.map_err(|error: contexture::ir::Error| named("branch", &error))?,
            user: said("user")?.map(str::to_owned),
            policy: said("policy")?.map(str::to_owned),
            bypass: match said("bypass")? {
                None | Some("false") => false,
                Some("true") => true,
                Some(_) => return Err(named("bypass", &"expected true or false")),
            },
            wait: match said("wait")? {
                None => false,
                Some("ingest") => true,
                Some(_) => return Err(named("wait", &"expected ingest")),
            },
        })
    }
}
