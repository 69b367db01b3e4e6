//! The trait of guards, and the answer they check.

use std::fmt;

use contexture_ir::{FunctionCall, Item, Part, Role};

use crate::contract::AnswerVerdict;

/// Checks answers. It must be quick and deterministic.
///
/// ```
/// use contexture_layers::AnswerVerdict;
/// use contexture_layers::builtin::{Guard, ModelAnswer};
///
/// /// Writes the product's name as the brand does, in answers that call no tool.
/// #[derive(Debug)]
/// struct BrandName;
///
/// impl Guard for BrandName {
///     fn check_answer(&self, answer: &ModelAnswer<'_>) -> AnswerVerdict {
///         let is_final = answer.function_calls().next().is_none();
///         if is_final && answer.assistant_text().contains("contexture") {
///             let named = |text: &str| text.replace("contexture", "Contexture");
///             return AnswerVerdict::Fix(answer.with_replaced_text(named));
///         }
///         AnswerVerdict::Pass
///     }
/// }
///
/// let answer = ModelAnswer { items: &[] };
/// assert_eq!(BrandName.check_answer(&answer), AnswerVerdict::Pass);
/// ```
pub trait Guard: fmt::Debug + Send + Sync {
    /// Returns a verdict on an answer.
    fn check_answer(&self, answer: &ModelAnswer<'_>) -> AnswerVerdict;
}

/// An answer of a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelAnswer<'a> {
    /// Its items, in order.
    pub items: &'a [Item],
}

impl<'a> ModelAnswer<'a> {
    /// Returns the texts of the model's messages, joined by line feeds.
    #[must_use]
    pub fn assistant_text(&self) -> String {
        let said = self
            .items
            .iter()
            .filter(|item| item.role() == Some(Role::Assistant));
        let texts: Vec<String> = said.map(Item::text).collect();
        texts.join("\n")
    }

    /// Returns the tool calls of the answer.
    pub fn function_calls(&self) -> impl Iterator<Item = &'a FunctionCall> {
        self.items.iter().filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the same items with each text of the model's messages replaced by the result of `change`.
    #[must_use]
    pub fn with_replaced_text(&self, mut change: impl FnMut(&str) -> String) -> Vec<Item> {
        let mut items = self.items.to_vec();
        for item in &mut items {
            let Item::Message(message) = item else {
                continue;
            };
            if message.role != Role::Assistant {
                continue;
            }
            for part in &mut message.content {
                if let Part::OutputText(part) = part {
                    part.text = change(&part.text);
                }
            }
        }
        items
    }
}
