//! Which call an output answers, before repair has put both side by side.

use std::collections::BTreeMap;

use contexture_ir::{FunctionCall, Item};

use crate::entry::Entry;

/// For each output the call it answers: the newest before it with its id that has no output yet.
pub(crate) fn calls(entries: &[Entry]) -> BTreeMap<usize, &FunctionCall> {
    let mut open: BTreeMap<&str, Vec<&FunctionCall>> = BTreeMap::new();
    let mut answered = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        match &*entry.item {
            Item::FunctionCall(call) => open.entry(&call.call_id).or_default().push(call),
            Item::FunctionCallOutput(output) => {
                let call = open.get_mut(output.call_id.as_str()).and_then(Vec::pop);
                if let Some(call) = call {
                    answered.insert(at, call);
                }
            }
            _ => {}
        }
    }
    answered
}
