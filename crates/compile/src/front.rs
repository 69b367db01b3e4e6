//! The front half of a compile: from the path to weighed rounds.

use contexture_wire::RepairRules;

use crate::history::History;
use crate::passes::lower::Press;
use crate::passes::repair::repair;
use crate::passes::select::Selected;
use crate::report::{OmitReason, Repair};
use crate::request::CompileInput;
use crate::scratch::Scratch;

/// The path, selected, repaired, lowered and weighed.
#[derive(Debug)]
pub(crate) struct Front<'a> {
    pub(crate) history: History<'a>,
    /// What models may not read: indexes on the path, ascending.
    pub(crate) hidden: Vec<(usize, OmitReason)>,
    /// What repair left out: indexes on the path, ascending.
    pub(crate) dropped: Vec<usize>,
    pub(crate) repairs: Vec<Repair>,
}

/// Runs the passes that look at the path alone.
pub(crate) fn front<'a>(
    input: &CompileInput<'a>,
    selected: &'a Selected,
    press: &Press<'_>,
    scratch: &mut Scratch,
) -> Front<'a> {
    let visible = selected.items(input.path);
    // Contributions may follow: how the request ends is decided when they are placed.
    let rules = RepairRules {
        user_last: false,
        ..RepairRules::for_format(input.request.dialect.format)
    };
    let mut repaired = repair(&visible, &rules);
    let on_path = |index: usize| selected.visible.get(index).copied();
    for entry in &mut repaired.entries {
        entry.source = entry.source.and_then(on_path);
    }
    for repair in &mut repaired.repairs {
        repair.index = repair.index.and_then(on_path);
    }
    Front {
        history: History::weigh(repaired.entries, press, scratch),
        dropped: repaired.dropped.into_iter().filter_map(on_path).collect(),
        hidden: selected.hidden.clone(),
        repairs: repaired.repairs,
    }
}
