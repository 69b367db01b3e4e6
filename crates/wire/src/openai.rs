//! What the two OpenAI formats share.

use contexture_ir::{Error, Extra, Raw};

use crate::carry::{hint, hinted};
use crate::loss::{LossKind, Losses};

/// What stands in a user's message of which nothing could be written.
pub(crate) const OMITTED: &str = "[Content that cannot be shown.]";

/// How much to think, in the words of both formats; hosts have others.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// The hint of a word that only a host of the format knows.
const EFFORT: &str = "~effort";

/// Notes an effort that only a host of the format knows.
pub(crate) fn note_effort(effort: Option<&str>, wire: &mut Extra) {
    if effort.is_some_and(|word| !EFFORTS.contains(&word)) {
        hint(wire, EFFORT, "kept");
    }
}

/// The effort to write: a known word, or one that came in this format.
pub(crate) fn effort<'a>(
    effort: Option<&'a str>,
    wire: &Extra,
    losses: &mut Losses,
) -> Option<&'a str> {
    let word = effort?;
    if EFFORTS.contains(&word) || hinted(wire, EFFORT).is_some() {
        return Some(word);
    }
    losses.push(
        "options.reasoning.effort",
        LossKind::Option,
        format!("no such effort as `{word}`"),
    );
    None
}

/// An error about a value of the wrong type or an unknown word.
pub(crate) fn unexpected(expected: &'static str, found: &str) -> Error {
    Error::Unexpected {
        path: String::new(),
        expected,
        found: found.chars().take(60).collect(),
    }
}

/// Fields with a prefix before their names.
pub(crate) fn prefixed(prefix: &str, fields: Extra) -> impl Iterator<Item = (String, Raw)> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(k, v)| (format!("{prefix}{k}"), v.clone()))
        .collect();
    fields.into_iter()
}

/// The fields whose names have the prefix, without it.
pub(crate) fn unprefixed(prefix: &str, fields: &Extra) -> Extra {
    let strip =
        |(key, value): (&str, &Raw)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()));
    fields.iter().filter_map(strip).collect()
}

/// The fields without those that have one of the prefixes.
pub(crate) fn without(prefixes: &[&str], fields: &Extra) -> Extra {
    fields
        .iter()
        .filter(|(key, _)| !prefixes.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}
