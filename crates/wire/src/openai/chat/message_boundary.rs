//! Which items one native message of the model takes together.
//!
//! Reading cuts one message into thoughts, text and calls, in that order; writing joins items as far
//! as that order allows. Both ask [`OpenMessage`], so that a document's messages come back as they
//! were, and a hint is needed only where a document cut them elsewhere.

use contexture_ir::Item;

/// What the model's message before consists of, as far as lowering would join the next one to it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OpenMessage {
    /// No message of the model stands before.
    #[default]
    Nothing,
    /// The message has only thoughts.
    Thoughts,
    /// The message has text.
    Content,
    /// The message has calls.
    Calls,
}

impl OpenMessage {
    /// Whether an item joins the message rather than begins a new one.
    pub(super) fn can_join(self, item: &Item) -> bool {
        !matches!(
            (self, item),
            (Self::Nothing, _) | (Self::Content, Item::Reasoning(_) | Item::Message(_))
        )
    }

    /// The state once the item is in.
    pub(super) fn after_item(self, item: &Item) -> Self {
        match item {
            _ if self == Self::Calls => Self::Calls,
            Item::Reasoning(_) if self == Self::Nothing => Self::Thoughts,
            Item::Reasoning(_) => self,
            Item::Message(_) => Self::Content,
            _ => Self::Calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionCall, Message, Reasoning, Role};

    use super::*;

    #[test]
    fn messages_join_where_one_can_hold_them() {
        let call = Item::FunctionCall(FunctionCall::new("c", "f", "{}"));
        let said = Item::Message(Message::text(Role::Assistant, "a"));
        let thought = Item::Reasoning(Reasoning::default());
        let join = |items: &[&Item]| {
            let mut open = OpenMessage::Nothing;
            let mut joins = Vec::new();
            for item in items {
                joins.push(open.can_join(item));
                if !open.can_join(item) {
                    open = OpenMessage::Nothing;
                }
                open = open.after_item(item);
            }
            joins
        };
        assert_eq!(
            join(&[&thought, &said, &call, &call]),
            [false, true, true, true]
        );
        assert_eq!(
            join(&[&said, &said, &call, &said]),
            [false, false, true, true]
        );
        assert_eq!(join(&[&said, &thought, &said]), [false, false, true]);
    }
}
