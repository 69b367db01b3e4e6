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
//! English only. Not here: who said it, and which of two is newer. Generated statements are searched for in the behaviours of
//! `store-testkit`.

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

/// Abbreviations before a name.
const TITLES: [&str; 7] = ["Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Mt"];

/// What opens a sentence without changing what it states.
const OPENINGS: [&str; 14] = [
    "actually, ",
    "by the way, ",
    "update: ",
    "note: ",
    "edit: ",
    "correction: ",
    "reminder: ",
    "ps: ",
    "fyi: ",
    "fyi, ",
    "remember that ",
    "please note that ",
    "ok, ",
    "and ",
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

/// Things of which a person has one at a time and whose values are common words, such as a diet; stems. Of other things only
/// names, numbers and quotations are compared: *my doctor is nice* is no other doctor.
const WORD_VALUES: [&str; 14] = [
    "citi", "compani", "diet", "employ", "hometown", "job", "languag", "locat", "nicknam", "occup",
    "password", "pronoun", "timezon", "usernam",
];

/// Words before the name of a thing that make it another thing.
const OTHER_THINGS: [&str; 12] = [
    "old", "former", "previous", "first", "second", "other", "last", "next", "ex", "past",
    "future", "original",
];

/// Beginnings of values that state nothing: negations, comparisons, qualities, purposes.
const NO_VALUES: [&str; 34] = [
    "not", "no", "never", "very", "so", "too", "really", "quite", "like", "about", "getting",
    "going", "more", "less", "better", "worse", "always", "also", "still", "being", "be", "use",
    "run", "fix", "make", "mention", "match", "avoid", "include", "add", "nice", "great", "good",
    "bad",
];

/// Words between *is* or *to* and the beginning of a value.
const BEFORE_VALUES: [&str; 12] = [
    "in", "at", "on", "by", "for", "from", "around", "until", "the", "a", "an", "called",
];

/// Values that are as definite as a number.
const DEFINITE_WORDS: [&str; 14] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "today",
    "tomorrow",
    "tonight",
    "noon",
    "midnight",
    "next",
    "half",
];

/// Words at the end of a value that do not change it.
const AFTER_VALUES: [&str; 5] = ["now", "please", "thanks", "again", "already"];

/// A statement about a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotStatement {
    /// Thing that the statement is about: the stems of its name, with the speaker if the text names one.
    pub(super) slot: String,
    /// Words of the value, in lower case.
    value: Vec<String>,
    /// Whether the statement says itself that something changed.
    is_change: bool,
    /// Whether the values of the thing are common words.
    has_word_values: bool,
    /// Whether the value is a name, a number or a quotation.
    is_definite: bool,
}

impl SlotStatement {
    /// Whether this newer statement replaces an older one of the same slot.
    pub(super) fn replaces(&self, older: &Self) -> bool {
        self.slot == older.slot
            // Said again it is as true as before.
            && !self.says_the_same(older)
            && match (self.is_definite, older.is_definite) {
                (true, true) => true,
                // *My deadline is flexible* may be so beside any date, unless the text says that it changed.
                (true, false) => self.is_change,
                // A quality of a thing does not replace its name or its time.
                (false, true) => false,
                (false, false) => self.is_change || self.has_word_values,
            }
    }

    /// Whether one value is the beginning of the other: *12 Oak Avenue* and *12 Oak Avenue, as I said*.
    fn says_the_same(&self, older: &Self) -> bool {
        self.value.starts_with(&older.value) || older.value.starts_with(&self.value)
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
            if name.starts_with(char::is_uppercase)
                && name.chars().all(char::is_alphanumeric)
                && !is_opening(name) =>
        {
            (name, rest)
        }
        _ => ("", text),
    }
}

/// Whether a word before a colon opens a sentence and is no name, as in *Update: my address is …*.
fn is_opening(word: &str) -> bool {
    let opening = format!("{}: ", word.to_lowercase());
    OPENINGS.contains(&opening.as_str())
}

/// Splits at the ends of sentences, and leaves questions out.
fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends_sentence = |c: char| matches!(c, '.' | '!' | '?' | '\n' | ';');
    let pieces = text.split_inclusive(['!', '?', '\n', ';']);
    let sentences = pieces.flat_map(split_at_points);
    sentences
        .map(str::trim)
        .filter(|sentence| !sentence.ends_with('?'))
        .map(move |sentence| sentence.trim_end_matches(ends_sentence))
}

/// Splits at points before white space, as addresses and numbers have points too, and not behind a title, as in *Dr. Kim*.
fn split_at_points(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(". ") {
        let before = text.get(start..at).unwrap_or_default();
        let word = before.rsplit(' ').next().unwrap_or_default();
        if !TITLES.contains(&word) {
            sentences.push(before);
            start = at + 1;
        }
    }
    sentences.extend(text.get(start..));
    sentences
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
        let statement = make_statement(strip_owner(name).unwrap_or(name), original(at), true)?;
        // *I changed the test to run faster* has no value.
        let is_word = statement.has_word_values && statement.value.len() == 1;
        let has_value = statement.is_definite || is_word;
        return has_value.then_some(statement);
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
    let mut rest = lower;
    while let Some(shorter) = OPENINGS
        .iter()
        .find_map(|opening| rest.strip_prefix(opening))
    {
        rest = shorter;
    }
    (rest, lower.len() - rest.len())
}

fn strip_change_verb(rest: &str) -> Option<&str> {
    // Phones write the typographic apostrophe.
    let mut subjects = [
        "we ",
        "i ",
        "we've ",
        "i've ",
        "we\u{2019}ve ",
        "i\u{2019}ve ",
    ]
    .iter();
    let said = subjects.find_map(|subject| rest.strip_prefix(subject))?;
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
        || first.ends_with("n\u{2019}t")
    {
        return None;
    }
    // The name is looked at last: reading words costs more than the checks above.
    let stems = name_stems(name)?;
    let last = stems.last().map(String::as_str).unwrap_or_default();
    let is_favourite = |stem: &String| stem.starts_with("favorit") || stem.starts_with("favourit");
    Some(SlotStatement {
        has_word_values: stems.iter().any(is_favourite) || WORD_VALUES.contains(&last),
        is_definite: is_definite(value),
        value: value_words(value),
        slot: stems.join(" "),
        is_change,
    })
}

/// Returns the words of a value, in lower case, without those that only lead to it or follow it.
fn value_words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    visit_terms(value, Purpose::Query, |term| {
        words.push(term.text.to_owned());
    });
    while words
        .last()
        .is_some_and(|word| AFTER_VALUES.contains(&word.as_str()))
    {
        words.pop();
    }
    let is_before = |word: &String| BEFORE_VALUES.contains(&word.as_str());
    words.into_iter().skip_while(is_before).collect()
}

/// Returns the stems of a thing's name; `None` if it is no name of a thing, or of another one.
fn name_stems(name: &str) -> Option<Vec<String>> {
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
    Some(stems.collect())
}

/// Whether a value is a name, a number, a day or a quotation, behind words such as *at*.
fn is_definite(value: &str) -> bool {
    let is_before = |word: &&str| BEFORE_VALUES.contains(&word.to_ascii_lowercase().as_str());
    let mut words = value.split([' ', ',']).skip_while(is_before);
    let first = words.next().unwrap_or_default();
    first.starts_with(|c: char| {
        c.is_uppercase() || c.is_ascii_digit() || "\"'`\u{201C}#$€£@+".contains(c)
    }) || first.chars().any(|c| c.is_ascii_digit() || c == '@')
        || DEFINITE_WORDS.contains(&first.to_ascii_lowercase().as_str())
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
            (
                "My address is 5 Elm Street.",
                "Update: my address is 12 Oak Avenue.",
            ),
            ("Our deadline is in May.", "Our deadline is in June."),
            (
                "Our standup is at 9:30.",
                "We've moved the standup to tomorrow.",
            ),
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
            // Qualities do not replace facts.
            ("My manager is Ruth.", "My manager is strict."),
            ("My doctor is Dr. Kim.", "My doctor is friendly."),
            ("My doctor is nice.", "My doctor is friendly."),
            ("My flight is BA12.", "My flight is now delayed."),
            (
                "My phone number is 555-1234.",
                "My phone number is private.",
            ),
            ("My budget is $500.", "My budget is tight."),
            ("My name is Ada.", "My name is on the list."),
            // The same value again.
            (
                "My address is 5 Elm Street.",
                "My address is 5 Elm Street now.",
            ),
            ("Our deadline is in May.", "Our deadline is May, as I said."),
            // Purposes of changes.
            (
                "I changed the test to run faster.",
                "I changed the test to use tokio.",
            ),
            (
                "I updated the readme to fix a typo.",
                "I updated the readme to mention the proxy.",
            ),
        ] {
            assert!(!replaces(newer, older), "{older} / {newer}");
        }
    }
}
