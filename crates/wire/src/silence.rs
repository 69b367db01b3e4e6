//! Whether the target's payload says anything of an item; its own writer is asked, so that repair and
//! lowering cannot differ.

use contexture_ir::{Item, Part};

use crate::model::chunk::Dialect;
use crate::model::format::Format;
use crate::model::paired_item::{PairedItem, RoleRun};

/// Whether nothing of the item comes into the target's payload, whoever stands beside it.
///
/// `Ui` and `Items` say everything. Words of the host are judged without a `<system>` tag, as the
/// models write them that know a system message inside a history.
pub(crate) fn is_silent(item: &Item, target: Format) -> bool {
    let known = Format::PROVIDERS.contains(&target);
    if !known || has_visible_text(item) {
        return false;
    }
    let dialect = Dialect {
        mid_system: true,
        ..Dialect::of(target)
    };
    // The item is lowered alone; whether a format writes an item does not depend on its neighbours.
    let spec = target.spec();
    spec.structure().side(item).is_none_or(|side| {
        let run = RoleRun {
            side,
            start: 0,
            entries: &[PairedItem::new(item)],
            follows_user: false,
        };
        spec.encode_run(&dialect, &run).json.is_empty()
    })
}

/// What every target writes; most items need no closer look.
fn has_visible_text(item: &Item) -> bool {
    let written = |part: &Part| match part {
        Part::InputText(text) | Part::OutputText(text) => !text.text.trim().is_empty(),
        _ => false,
    };
    match item {
        Item::Message(message) => message.content.iter().any(written),
        Item::FunctionCall(_) | Item::FunctionCallOutput(_) => true,
        Item::Reasoning(_) | Item::Compaction(_) | Item::Extension(_) => false,
    }
}
