//! What the provider refuses about single messages: an empty list of calls, and names of speakers.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ContentHash, Item, Message, Raw};

use super::spec::NAME;
use crate::model::repair_rules::ItemRepair;

/// The member of a message that names its speaker.
const SPEAKER: &str = "name";
/// The member of the model's message that lists its calls.
const CALLS: &str = "tool_calls";

/// The longest name that the provider takes.
const MAX_NAME: usize = 64;
/// How much of a hash sets names apart: 48 bits, as for names of functions.
const HASH_DIGITS: usize = 12;

/// Finds empty lists of calls, and names of speakers that have characters that the provider refuses.
pub(super) fn repair_items(items: &[&Item]) -> BTreeMap<usize, ItemRepair> {
    let names: BTreeSet<String> = items.iter().filter_map(|item| speaker(item)).collect();
    let repairs = items.iter().enumerate();
    repairs
        .filter_map(|(index, item)| Some((index, repair_item(item, &names)?)))
        .collect()
}

fn speaker(item: &Item) -> Option<String> {
    let Item::Message(message) = item else {
        return None;
    };
    if message.extra.is_empty() {
        return None;
    }
    let own = message.extra.wire_fields(NAME);
    own.get(SPEAKER).and_then(Raw::as_string)
}

/// Finds an empty list of calls, and a speaker's name of characters that the provider refuses: its pattern is
/// `^[^\s<|\\/>]+$`. `names` are those of all speakers.
fn repair_item(item: &Item, names: &BTreeSet<String>) -> Option<ItemRepair> {
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
        own.set(SPEAKER, Raw::string(&accepted_name(&name, names)));
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

/// Returns a name with `_` for what is refused. Different names stay different: all but the most common case, single
/// spaces, get a hash of the whole name, and so does a name that would become another speaker's.
fn accepted_name(name: &str, names: &BTreeSet<String>) -> String {
    let plain = name.replace(is_refused, "_");
    let only_spaces = name.replace(' ', "_") == plain && !name.contains('_') && !name.is_empty();
    if only_spaces && plain.len() <= MAX_NAME && !names.contains(&plain) {
        return plain;
    }
    let hash = ContentHash::of(name.as_bytes()).to_string();
    let stem = plain.floor_char_boundary(MAX_NAME - HASH_DIGITS - 1);
    let (stem, _) = plain.split_at(stem);
    format!("{stem}_{}", hash.get(..HASH_DIGITS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_different() {
        let long = "Ada ".repeat(40);
        let names = [
            "Ada L",
            "Ada  L",
            "Ada\tL",
            "Ada_ L",
            "Ada/L",
            "Ada|L",
            "",
            " ",
            &long,
            &long[1..],
        ];
        // Speakers who are called as another's name is written.
        for literal in [None, Some("Ada_L"), Some("Ada__L"), Some("_")] {
            let all = names
                .into_iter()
                .chain(literal)
                .map(str::to_owned)
                .collect();
            let mut written: Vec<String> = names.map(|name| accepted_name(name, &all)).into();
            let is_plain = written[0] == "Ada_L";
            assert_eq!(is_plain, literal != Some("Ada_L"));
            assert!(written.iter().all(|name| is_accepted(name)), "{written:?}");
            assert!(written.iter().all(|name| name.len() <= MAX_NAME));
            written.extend(literal.map(str::to_owned));
            written.sort();
            let count = written.len();
            written.dedup();
            assert_eq!(written.len(), count, "{written:?}");
        }
    }
}
