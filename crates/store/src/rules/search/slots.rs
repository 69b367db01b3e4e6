//! Statements of which a newer one replaces an older: *my address is …*, *we moved the standup to …*.
//!
//! Two statements of one person about one thing are about one *slot*. Only what cannot be meant
//! otherwise is read as a statement, because calling a fact outdated that is not is worse than
//! showing both. So of *my dog is hungry* nothing is read, and neither of questions, conditions,
//! negations, reports of others and things that are only partly the same (*my old address*).
//!
//! A statement of change (*moved*, *changed*, *is now*) replaces what was said of the thing before. Of
//! two plain statements, the newer replaces the older if a person has one of the thing at a time (an
//! address, a deadline), or if both values are names, numbers or quotations.
//!
//! English only. Not here: who said it, and which of two is newer.

use std::collections::BTreeMap;

use contexture_text::search_terms::{Purpose, stem_word, visit_terms};

/// Largest number of words that name a thing.
const NAME_WORDS: usize = 4;

/// What ends the name of a thing and begins its value, in a statement of change; longer ones first.
const CHANGES: [&str; 8] = [
    " is now ",
    " has changed to ",
    " was changed to ",
    " has moved to ",
    " was moved to ",
    " was renamed to ",
    " changed to ",
    " moved to ",
];

/// Verbs of *we moved the standup to 10:30*.
const CHANGE_VERBS: [&str; 10] = [
    "moved ",
    "changed ",
    "switched ",
    "renamed ",
    "rescheduled ",
    "postponed ",
    "updated ",
    "set ",
    "have moved ",
    "have changed ",
];

/// Things of which a person has one at a time, whatever the value looks like; stems.
const SINGLE: [&str; 36] = [
    "address",
    "birthday",
    "budget",
    "bank",
    "citi",
    "compani",
    "deadlin",
    "dentist",
    "diet",
    "doctor",
    "email",
    "employ",
    "flight",
    "hometown",
    "job",
    "landlord",
    "languag",
    "limit",
    "locat",
    "manag",
    "name",
    "nicknam",
    "number",
    "password",
    "phone",
    "plan",
    "pronoun",
    "salari",
    "seat",
    "size",
    "surnam",
    "supervisor",
    "timezon",
    "titl",
    "usernam",
    "zip",
];

/// Words before the name of a thing that make it another thing.
const OTHER_THINGS: [&str; 12] = [
    "old", "former", "previous", "first", "second", "other", "last", "next", "ex", "past",
    "future", "original",
];

/// Beginnings of values that state nothing: negations, comparisons, qualities.
const NO_VALUES: [&str; 20] = [
    "not", "no", "never", "very", "so", "too", "really", "quite", "like", "about", "getting",
    "going", "more", "less", "better", "worse", "always", "also", "still", "being",
];

/// A statement about a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotStatement {
    /// Thing that the statement is about: the stems of its name, with the speaker if the text names one.
    pub(super) slot: String,
    /// Whether the statement says itself that something changed.
    is_change: bool,
    is_single: bool,
    /// Whether the value is a name, a number or a quotation.
    is_definite: bool,
}

impl SlotStatement {
    /// Whether this newer statement replaces an older one of the same slot.
    pub(super) fn replaces(&self, older: &Self) -> bool {
        self.slot == older.slot
            && (self.is_change || self.is_single || (self.is_definite && older.is_definite))
    }
}

/// Returns the statements of a text, by slot; of several about one slot, the last.
pub(super) fn find_statements(text: &str) -> BTreeMap<String, SlotStatement> {
    let mut found = BTreeMap::new();
    let (speaker, text) = split_speaker(text);
    for sentence in split_sentences(text) {
        if let Some(mut statement) = parse_statement(sentence) {
            if !speaker.is_empty() {
                statement.slot = format!("{} {}", speaker.to_lowercase(), statement.slot);
            }
            found.insert(statement.slot.clone(), statement);
        }
    }
    found
}

/// Splits `Anna: text` after the speaker.
fn split_speaker(text: &str) -> (&str, &str) {
    match text.split_once(": ") {
        Some((name, rest))
            if name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric) =>
        {
            (name, rest)
        }
        _ => ("", text),
    }
}

/// Splits at the ends of sentences, and leaves questions out.
fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends_sentence = |c: char| matches!(c, '.' | '!' | '?' | '\n' | ';');
    let pieces = text.split_inclusive(['!', '?', '\n', ';']);
    // A point ends a sentence only before white space: addresses and numbers have points too.
    let sentences = pieces.flat_map(|piece| piece.split_inclusive(". "));
    sentences
        .map(str::trim)
        .filter(|sentence| !sentence.ends_with('?'))
        .map(move |sentence| sentence.trim_end_matches(ends_sentence))
}

fn parse_statement(sentence: &str) -> Option<SlotStatement> {
    let lower = sentence.to_ascii_lowercase();
    let (rest, offset) = strip_opening(&lower);
    let original = |from: usize| sentence.get(offset + from..).unwrap_or_default();
    if let Some(changed) = strip_change_verb(rest) {
        // The last `to` begins the value: `moved the call with Anna to Friday`.
        let (name, value) = changed.rsplit_once(" to ")?;
        let name = name.split_once(" from ").map_or(name, |(name, _)| name);
        let at = rest.len() - value.len();
        return make_statement(strip_owner(name).unwrap_or(name), original(at), true);
    }
    let owned = strip_owner(rest)?;
    for change in CHANGES {
        if let Some((name, value)) = owned.split_once(change) {
            return make_statement(name, original(rest.len() - value.len()), true);
        }
    }
    // `the address is …` may be anybody's.
    if rest.starts_with("the ") {
        return None;
    }
    let (name, value) = owned.split_once(" is ")?;
    make_statement(name, original(rest.len() - value.len()), false)
}

/// Leaves out words that open a sentence without changing what it states; returns the rest and its offset.
fn strip_opening(lower: &str) -> (&str, usize) {
    let openings = [
        "actually, ",
        "by the way, ",
        "update: ",
        "note: ",
        "fyi, ",
        "remember that ",
        "please note that ",
        "ok, ",
        "and ",
    ];
    let mut rest = lower;
    while let Some(shorter) = openings
        .iter()
        .find_map(|opening| rest.strip_prefix(opening))
    {
        rest = shorter;
    }
    (rest, lower.len() - rest.len())
}

fn strip_change_verb(rest: &str) -> Option<&str> {
    let said = rest
        .strip_prefix("we ")
        .or_else(|| rest.strip_prefix("i "))?;
    CHANGE_VERBS.iter().find_map(|verb| said.strip_prefix(verb))
}

fn strip_owner(text: &str) -> Option<&str> {
    ["my ", "our ", "the "]
        .iter()
        .find_map(|owner| text.strip_prefix(owner))
}

fn make_statement(name: &str, value: &str, is_change: bool) -> Option<SlotStatement> {
    let value = value.trim().strip_prefix("now ").unwrap_or(value.trim());
    let first = value.split([' ', ',']).next().unwrap_or_default();
    if first.is_empty()
        || NO_VALUES.contains(&first.to_ascii_lowercase().as_str())
        || first.ends_with("n't")
    {
        return None;
    }
    let mut words = Vec::new();
    visit_terms(name, Purpose::Query, |term| {
        words.push(term.text.to_owned())
    });
    words.retain(|word| !matches!(word.as_str(), "new" | "current" | "the"));
    let is_other = |word: &String| OTHER_THINGS.contains(&word.as_str());
    // A name with a possessive or a verb is about something else than its last word says.
    let is_clause = |word: &String| {
        matches!(
            word.as_str(),
            "s" | "t" | "if" | "that" | "who" | "is" | "was" | "and" | "or" | "not"
        )
    };
    if words.is_empty()
        || words.len() > NAME_WORDS
        || words.iter().any(is_other)
        || words.iter().any(is_clause)
    {
        return None;
    }
    let stems = words
        .iter()
        .map(|word| stem_word(word).map_or_else(|| word.clone(), Into::into));
    let stems: Vec<String> = stems.collect();
    let last = stems.last().map(String::as_str).unwrap_or_default();
    let has_favourite = stems
        .iter()
        .any(|stem| stem.starts_with("favorit") || stem.starts_with("favourit"));
    Some(SlotStatement {
        is_single: has_favourite || SINGLE.contains(&last),
        is_definite: is_definite(first),
        slot: stems.join(" "),
        is_change,
    })
}

/// Whether a value begins with a name, a number or a quotation.
fn is_definite(first: &str) -> bool {
    first.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || "\"'“#$€£@+".contains(c))
        || first.chars().any(|c| c.is_ascii_digit() || c == '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(newer: &str, older: &str) -> bool {
        let older = find_statements(older);
        let newer = find_statements(newer);
        newer
            .iter()
            .any(|(slot, newer)| older.get(slot).is_some_and(|older| newer.replaces(older)))
    }

    #[test]
    fn newer_statements_replace_older_ones() {
        for (older, newer) in [
            (
                "My address is 5 Elm Street.",
                "My address is 12 Oak Avenue now.",
            ),
            (
                "Hi! My phone number is 555-1234.",
                "By the way, my new phone number is 555-9999.",
            ),
            ("Our standup is at 9:30.", "We moved the standup to 10:00."),
            ("My favorite color is blue.", "My favorite color is green."),
            ("My dentist is Dr. Lee.", "My dentist is Dr. Kim."),
            ("my gate code is 4432", "my gate code is 9911"),
            (
                "We moved the release to Monday.",
                "We moved the release to Friday.",
            ),
            ("Anna: My boss is Ruth.", "Anna: My boss is Paul."),
            ("Our deadline is in May.", "The deadline was moved to June."),
            ("I changed my diet to vegan", "My diet is vegetarian"),
        ] {
            assert!(replaces(newer, older), "{older} / {newer}");
        }
    }

    #[test]
    fn statements_that_only_look_alike_stay() {
        for (older, newer) in [
            ("My dog is hungry.", "My dog is asleep."),
            (
                "My address is 5 Elm Street.",
                "My old address is 3 Pine Road.",
            ),
            ("My address is 5 Elm Street.", "Is my address 7 Elm Street?"),
            (
                "My address is 5 Elm Street.",
                "If my address is 7 Elm Street, call.",
            ),
            (
                "My address is 5 Elm Street.",
                "My address is not 7 Elm Street.",
            ),
            (
                "My address is 5 Elm Street.",
                "My brother's address is 7 Elm Street.",
            ),
            (
                "My address is 5 Elm Street.",
                "She said my address is 7 Elm Street.",
            ),
            (
                "My address is 5 Elm Street.",
                "My email address is a@example.org.",
            ),
            ("Anna: My boss is Ruth.", "Ben: My boss is Paul."),
            ("My boss is Ruth.", "My boss is strict."),
            ("The room is small.", "The room is blue."),
            (
                "My address is 5 Elm Street.",
                "We moved the piano to 7 Elm Street.",
            ),
            ("My second flight is BA12.", "My flight is LH7."),
        ] {
            assert!(!replaces(newer, older), "{older} / {newer}");
        }
    }

    const THINGS: [&str; 20] = [
        "address",
        "phone number",
        "dentist",
        "landlord",
        "wifi password",
        "gym locker code",
        "flight",
        "job title",
        "favourite restaurant",
        "email address",
        "hotel",
        "meeting with Anna",
        "team standup",
        "release date",
        "train to Basel",
        "project codename",
        "car insurance plan",
        "yoga class",
        "budget for the trip",
        "home airport",
    ];
    const VALUES: [(&str, &str); 5] = [
        ("Monday", "Thursday"),
        ("4417", "9032"),
        ("Rivera 12", "Hansen 7"),
        ("10:30", "14:00"),
        ("\"Blue Heron\"", "\"Red Fox\""),
    ];

    /// 500 slots, each with an older and a newer statement.
    #[test]
    fn most_generated_updates_are_recognised() {
        let forms: [(&str, &str); 5] = [
            ("My {} is $A.", "My {} is $B."),
            (
                "Hi there! My {} is $A, thanks.",
                "By the way, my new {} is $B.",
            ),
            ("Our {} is $A.", "We moved the {} to $B."),
            ("I changed my {} to $A.", "My {} is now $B."),
            (
                "My {} is $A.",
                "Sorry for the late reply. I switched my {} from $A to $B.",
            ),
        ];
        let mut count = 0;
        let mut missed = Vec::new();
        for thing in THINGS {
            for (old, new) in VALUES {
                for (older, newer) in forms {
                    let older = older.replace("{}", thing).replace("$A", old);
                    let newer = newer
                        .replace("{}", thing)
                        .replace("$A", old)
                        .replace("$B", new);
                    count += 1;
                    if !replaces(&newer, &older) {
                        missed.push(format!("{older} / {newer}"));
                    }
                }
            }
        }
        assert_eq!(count, 500);
        assert!(
            missed.len() <= 25,
            "{} missed, such as {:?}",
            missed.len(),
            missed.first()
        );
    }

    /// 2,000 pairs of which the newer replaces nothing.
    #[test]
    fn no_generated_look_alike_replaces() {
        let forms: [(&str, &str); 20] = [
            ("My {} is $A.", "My old {} is $B."),
            ("My {} is $A.", "My former {} is $B."),
            ("My {} is $A.", "Is my {} $B?"),
            ("My {} is $A.", "If my {} is $B, tell me."),
            ("My {} is $A.", "My {} is not $B."),
            ("My {} is $A.", "My {} isn't $B."),
            ("My {} is $A.", "My sister's {} is $B."),
            ("My {} is $A.", "His {} is $B."),
            ("My {} is $A.", "Tom said my {} is $B."),
            ("My {} is $A.", "I wish my {} was $B."),
            ("My {} is $A.", "Did we move the {} to $B?"),
            ("My {} is $A.", "We moved the piano to $B."),
            ("My {} is $A.", "My backup {} is $B."),
            ("My {} is $A.", "The {} is $B."),
            ("My {} is $A.", "I think $B is nicer than my {}."),
            ("My {} is $A.", "We did not move the {} to $B."),
            ("My {} is $A.", "We might change the {} to $B."),
            ("Tom: My {} is $A.", "Eva: My {} is $B."),
            ("My previous {} is $A.", "My other {} is $B."),
            ("My {} is $A.", "My {} is really nice."),
        ];
        let mut count = 0;
        for thing in THINGS {
            for (old, new) in VALUES {
                for (older, newer) in forms {
                    let older = older.replace("{}", thing).replace("$A", old);
                    let newer = newer.replace("{}", thing).replace("$B", new);
                    count += 1;
                    assert!(!replaces(&newer, &older), "{older} / {newer}");
                }
            }
        }
        assert_eq!(count, 2000);
    }
}
