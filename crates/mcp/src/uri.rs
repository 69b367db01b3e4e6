//! The names of resources: `contexture://conversation/<id>` and `context://vfs/<hash>?conversation=<id>`.
//!
//! Both are read by their grammar and looked up among the owner's things. No file, path or address is ever made of
//! one; what breaks the grammar names nothing.

use contexture::compile::Link;
use contexture::ir::ConversationId;

use crate::tool_error::ToolError;

/// What the name of a conversation begins with.
const CONVERSATION: &str = "contexture://conversation/";
/// What parts a link from where it is looked up.
const WITHIN: &str = "?conversation=";

/// The templates, as RFC 6570 has it.
pub(crate) const TEMPLATES: [&str; 2] = [
    "contexture://conversation/{id}",
    "context://vfs/{hash}{?conversation}",
];

/// The name of a conversation.
pub(crate) fn conversation_uri(id: &ConversationId) -> String {
    format!("{CONVERSATION}{id}")
}

/// The name of an item of a conversation.
pub(crate) fn link_uri(link: &Link, conversation: &ConversationId) -> String {
    format!("{link}{WITHIN}{conversation}")
}

/// What a name names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourceUri {
    Conversation(ConversationId),
    Link(ScopedLink),
}

/// A link, and where it is looked up if it says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScopedLink {
    pub(crate) link: Link,
    pub(crate) conversation: Option<ConversationId>,
}

impl ResourceUri {
    /// Reads a name.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        // The id's own grammar has no slash or percent sign, so `..` and escapes end here.
        if let Some(id) = text.strip_prefix(CONVERSATION) {
            return Ok(Self::Conversation(ConversationId::new(id)?));
        }
        ScopedLink::parse(text).map(Self::Link)
    }
}

impl ScopedLink {
    /// Reads a link, by itself or with its conversation.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        let (link, conversation) = match text.split_once(WITHIN) {
            Some((link, id)) => (link, Some(ConversationId::new(id)?)),
            None => (text, None),
        };
        let link = link
            .parse::<Link>()
            .map_err(|error| ToolError::new("bad_name", error.to_string()))?;
        Ok(Self { link, conversation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let id = ConversationId::new("support-42").unwrap();
        let named = ResourceUri::parse(&conversation_uri(&id)).unwrap();
        assert_eq!(named, ResourceUri::Conversation(id.clone()));
        let link: Link = "context://vfs/0123456789abcdef0123456789abcdef"
            .parse()
            .unwrap();
        let within = ScopedLink::parse(&link_uri(&link, &id)).unwrap();
        assert_eq!((within.link, within.conversation), (link, Some(id)));
        assert_eq!(
            ScopedLink::parse(&link.to_string()).unwrap().conversation,
            None
        );
    }

    #[test]
    fn what_breaks_the_grammar_names_nothing() {
        let digits = "0123456789abcdef0123456789abcdef";
        let long = format!("context://vfs/{}", "a".repeat(5_000));
        for text in [
            "",
            "file:///etc/passwd",
            "/etc/passwd",
            "contexture://conversation/",
            "contexture://conversation/../x",
            "contexture://conversation/a/b",
            "contexture://conversation/%2e%2e",
            "context://vfs/",
            "context://vfs/../",
            "context://vfs/%2e%2e/",
            "context://vfs/..\\x",
            "context://vfs//etc/passwd",
            "context://vfs/C:",
            "context://vfs/CON",
            &format!("context://vfs/{digits}\0"),
            &format!("context://vfs/{digits}/"),
            &format!("context://vfs/{digits}?conversation="),
            &format!("context://vfs/{digits}?conversation=../x"),
            &format!("context://vfs/{digits}?other=x"),
            &format!("CONTEXT://vfs/{digits}"),
            &format!("context://vfs/{}", digits.to_uppercase()),
            &long,
        ] {
            assert!(ResourceUri::parse(text).is_err(), "{text:?}");
        }
    }
}
