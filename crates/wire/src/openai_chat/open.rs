//! Which items one native message of the model takes together.

use contexture_ir::Item;

/// What the model's message before consists of, as far as lowering would join the next one to it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Open {
    /// No message of the model stands before.
    #[default]
    Nothing,
    /// Only thoughts.
    Thoughts,
    /// Something is said.
    Said,
    /// There are calls.
    Calls,
}

impl Open {
    /// Whether an item joins the message rather than begins a new one.
    pub(super) fn takes(self, item: &Item) -> bool {
        !matches!(
            (self, item),
            (Self::Nothing, _) | (Self::Said, Item::Reasoning(_) | Item::Message(_))
        )
    }

    /// The state once the item is in.
    pub(super) fn with(self, item: &Item) -> Self {
        match item {
            _ if self == Self::Calls => Self::Calls,
            Item::Reasoning(_) if self == Self::Nothing => Self::Thoughts,
            Item::Reasoning(_) => self,
            Item::Message(_) => Self::Said,
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
            let mut open = Open::Nothing;
            let mut joins = Vec::new();
            for item in items {
                joins.push(open.takes(item));
                if !open.takes(item) {
                    open = Open::Nothing;
                }
                open = open.with(item);
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
