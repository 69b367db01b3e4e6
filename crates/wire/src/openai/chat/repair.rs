//! What the provider refuses about single messages: an empty list of calls, and names of speakers.

use contexture_ir::{ContentHash, Extra, Item, Message, Raw};

use super::spec::NAME;
use crate::model::repair_rules::ItemRepair;

/// The member of a message that names its speaker.
const SPEAKER: &str = "name";
/// The member of the model's message that lists its calls.
const CALLS: &str = "tool_calls";

/// Finds an empty list of calls, and a speaker's name of characters that the provider refuses: its pattern is
/// `^[^\s<|\\/>]+$`.
pub(super) fn repair_item(item: &Item) -> Option<ItemRepair> {
    let Item::Message(message) = item else {
        return None;
    };
    if message.extra.is_empty() {
        return None;
    }
    let mut own = message.extra.wire_fields(NAME);
    let speaker = own.get(SPEAKER).and_then(Raw::as_string);
    let refused = speaker.filter(|name| !is_accepted(name));
    let no_calls = own.get(CALLS).is_some_and(|calls| calls.get() == "[]");
    let what = match (&refused, no_calls) {
        (None, false) => return None,
        (None, true) => "an empty list of calls; written without it",
        (Some(_), false) => "a speaker's name that is refused; written in another way",
        (Some(_), true) => "an empty list of calls and a speaker's name that is refused; mended",
    };
    if no_calls {
        own.remove(CALLS);
    }
    if let Some(name) = refused {
        rename_speaker(&mut own, &name);
    }
    let mut mended: Message = message.clone();
    mended.extra.set_wire_fields(NAME, own);
    Some(ItemRepair::Replace(Item::Message(mended), what))
}

fn is_accepted(name: &str) -> bool {
    !name.is_empty() && !name.contains(is_refused)
}

fn is_refused(c: char) -> bool {
    c.is_whitespace() || matches!(c, '<' | '|' | '\\' | '/' | '>')
}

/// Writes a name with `_` for what is refused. Names that differ only in that stay different: all but the most common
/// case, single spaces, get a hash of the whole name.
fn rename_speaker(own: &mut Extra, name: &str) {
    let plain = name.replace(is_refused, "_");
    let only_spaces = name.replace(' ', "_") == plain && !name.contains(['_']) && !name.is_empty();
    let written = if only_spaces {
        plain
    } else {
        let hash = ContentHash::of(name.as_bytes()).to_string();
        // 48 bits, as for names of functions.
        format!("{plain}_{}", hash.get(..12).unwrap_or_default())
    };
    own.set(SPEAKER, Raw::string(&written));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_different() {
        let names = [
            "Ada L", "Ada  L", "Ada\tL", "Ada_ L", "Ada/L", "Ada|L", "", " ",
        ];
        let mut written: Vec<String> = names
            .iter()
            .map(|name| {
                let mut own = Extra::new();
                rename_speaker(&mut own, name);
                own.get(SPEAKER).and_then(Raw::as_string).unwrap()
            })
            .collect();
        assert_eq!(written[0], "Ada_L");
        assert!(written.iter().all(|name| is_accepted(name)), "{written:?}");
        written.sort();
        written.dedup();
        assert_eq!(written.len(), names.len());
    }
}
