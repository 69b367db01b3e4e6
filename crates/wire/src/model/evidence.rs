//! [`Evidence`]: what in a document speaks for a format.
//!
//! Every format is asked, and the most certain evidence wins, so that no format has to know another's signs. The rank of
//! a sign is a constant of [`Evidence`]; two formats never give evidence of one rank.

use crate::model::json::string_field;
use contexture_ir::Fields;
use serde_json::value::RawValue;

/// What in a document speaks for a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// How much the sign outweighs those of other formats: more is more certain.
    pub certainty: u8,
    /// What was seen, as a sentence fragment: "an object with `choices`".
    pub text: &'static str,
}

impl Evidence {
    /// The certainty of a member that no other format has.
    pub(crate) const OWN_MEMBER: u8 = 90;
    /// The certainty of a member that other formats have with another meaning.
    pub(crate) const SHARED_MEMBER: u8 = 60;
    /// The certainty of words in members that other formats have too.
    pub const OWN_WORDS: u8 = 30;
    /// The certainty of a shape that is only the most common one.
    pub(crate) const COMMON_SHAPE: u8 = 10;

    /// Describes a sign.
    #[must_use]
    pub const fn new(certainty: u8, text: &'static str) -> Self {
        Self { certainty, text }
    }
}

/// Returns the elements of a member that is an array; none where it is something else.
pub(crate) fn member_elements<'a>(fields: &Fields<'a>, name: &str) -> Vec<&'a RawValue> {
    let array = fields.get(&[name]);
    array
        .and_then(|array| serde_json::from_str(array.get()).ok())
        .unwrap_or_default()
}

/// Returns the objects in an array that is a member; elements that are none count as empty objects.
pub(crate) fn member_objects<'a>(fields: &Fields<'a>, name: &str) -> Vec<Fields<'a>> {
    let elements = member_elements(fields, name).into_iter();
    elements
        .map(|element| Fields::parse(element.get()).unwrap_or_default())
        .collect()
}

/// Reports whether messages use words that only Chat Completions has: a leading system message, roles of tools, calls
/// beside the content.
pub(crate) fn has_chat_words(messages: &[Fields<'_>]) -> bool {
    let mut roles = messages.iter().map(|one| string_field(one, "role"));
    let leads = roles.clone().next().flatten();
    matches!(leads.as_deref(), Some("system" | "developer"))
        || roles.any(|role| matches!(role.as_deref(), Some("tool" | "function" | "developer")))
        || messages.iter().any(|message| {
            message.get(&["tool_calls"]).is_some() || message.get(&["tool_call_id"]).is_some()
        })
}
