//! Which call an output answers, before repair has put both side by side.

use std::collections::BTreeMap;

use contexture_ir::{FunctionCall, Item};
use contexture_wire::partner_indices;

use crate::entry::ViewEntry;

/// For each output the call it answers, by the rule of [`partner_indices`].
pub(crate) fn calls_by_output(entries: &[ViewEntry]) -> BTreeMap<usize, &FunctionCall> {
    let partners = partner_indices(entries.iter().map(|entry| &*entry.item));
    let call_of = |(at, partner): (usize, Option<usize>)| {
        match &*entries.get(partner?)?.item {
            // The partner of a call is its output; only the other way is wanted.
            Item::FunctionCall(call) => Some((at, call)),
            _ => None,
        }
    };
    partners
        .into_iter()
        .enumerate()
        .filter_map(call_of)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture_ir::{ContentHash, FunctionCallOutput, Output};

    use super::*;

    #[test]
    fn parallel_calls_of_one_id_take_outputs_in_call_order() {
        let call = |name: &str| Item::FunctionCall(FunctionCall::new("call_1", name, "{}"));
        let output = || {
            Item::FunctionCallOutput(FunctionCallOutput::new(
                "call_1",
                Output::Text("done".to_owned()),
            ))
        };
        let items = [call("first"), call("second"), output(), output()];
        let entry = |(at, item)| ViewEntry::new(Arc::new(item), ContentHash::of(b"item"), at);
        let entries: Vec<ViewEntry> = items.into_iter().enumerate().map(entry).collect();
        let names: Vec<_> = calls_by_output(&entries)
            .into_iter()
            .map(|(at, call)| (at, call.name.as_str()))
            .collect();
        assert_eq!(names, [(2, "first"), (3, "second")]);
    }
}
