//! What a reminder of the program's own is decided on.

use contexture_compile::PathItem;
use contexture_ir::{FunctionCall, FunctionCallOutput, Item};

use super::path_facts::RemindersState;

/// What a reminder of the program's own is decided on, in each call.
#[derive(Clone, Copy, Debug)]
pub struct ReminderInput<'a> {
    /// Facts of the path: turns, counts of tools, times.
    pub state: &'a RemindersState,
    /// Text of the user's last message; empty if there is none.
    pub query: &'a str,
    /// All items of the path, oldest first.
    pub path: &'a [PathItem],
}

impl<'a> ReminderInput<'a> {
    /// Returns the call that ended last, with its output; `None` if the path does not end with the output of a tool.
    #[must_use]
    pub fn last_call(&self) -> Option<(&'a FunctionCall, &'a FunctionCallOutput)> {
        let mut newest = self.path.iter().rev().map(|item| &*item.item);
        let Some(Item::FunctionCallOutput(output)) = newest.next() else {
            return None;
        };
        newest.find_map(|item| match item {
            Item::FunctionCall(call) if call.call_id == output.call_id => Some((call, output)),
            _ => None,
        })
    }
}
