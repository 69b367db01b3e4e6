//! English plurals and singulars, for the names of groups and of list items.
//!
//! The algorithm and its answers are those of the JavaScript package `pluralize` 8.0.0 (MIT), whose
//! answers the XML format has in its tags: `data` → `datum`, but also `caches` → `cach`. The rules
//! are data in `rules`; each is a suffix pattern and a new ending, the last that matches wins.

mod rules;

use rules::{IRREGULAR, PLURAL, Rule, SINGULAR, UNCOUNTABLE, UNCOUNTABLE_ENDINGS};

/// No word in the tables is longer; longer ones need not be looked up.
const LONGEST_LISTED: usize = 24;

/// The plural of a word, case kept: `policy` → `policies`, `API` → `APIS`.
#[must_use]
pub fn plural(word: &str) -> String {
    inflect(word, PLURAL, |(one, many)| (one, many))
}

/// The singular of a word, case kept: `indices` → `index`.
#[must_use]
pub fn singular(word: &str) -> String {
    inflect(word, SINGULAR, |(one, many)| (many, one))
}

fn inflect(
    word: &str,
    rules: &[Rule],
    direction: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> String {
    if word.is_empty() {
        return String::new();
    }
    // Checked by length first: lower-casing a whole paragraph for a table look-up would be waste.
    if word.len() <= LONGEST_LISTED {
        let lower = word.to_lowercase();
        let pairs = || IRREGULAR.iter().copied().map(direction);
        // Already in the wanted number; the rules below would inflect it again.
        if pairs().any(|(_, to)| to == lower) {
            return with_case_of(word, &lower);
        }
        // Of two entries for one form the later counts.
        if let Some((_, to)) = pairs().rfind(|(from, _)| *from == lower) {
            return with_case_of(word, to);
        }
        if UNCOUNTABLE.contains(&lower.as_str()) {
            return word.to_owned();
        }
    }
    if UNCOUNTABLE_ENDINGS
        .iter()
        .any(|ending| match_end(word, ending).is_some())
    {
        return word.to_owned();
    }
    rules
        // Backwards, because the last rule that matches counts.
        .iter()
        .rev()
        .find_map(|rule| apply_rule(word, rule))
        .unwrap_or_else(|| word.to_owned())
}

/// Applies a rule to the longest ending that it matches.
fn apply_rule(word: &str, rule: &Rule) -> Option<String> {
    let mut best: Option<(&str, &str)> = None;
    for ending in rule.endings {
        let Some(head) = match_end(word, ending) else {
            continue;
        };
        for stem in rule.stems {
            let Some(before) = match_end(head, stem) else {
                continue;
            };
            // The longest match is the one that leaves the shortest head, as alternation in the original's
            // patterns does.
            if best.is_none_or(|(longest, _)| before.len() < longest.len()) {
                best = Some((before, head));
            }
        }
    }
    let (before, head) = best?;
    let (matched, stem) = (word.get(before.len()..)?, head.get(before.len()..)?);
    // An empty match takes its case from the letter before it, as `pluralize` does.
    let model = match matched.is_empty() {
        true => before.get(before.char_indices().next_back()?.0..)?,
        false => matched,
    };
    Some(format!(
        "{before}{}",
        with_case_of(model, &format!("{stem}{}", rule.becomes))
    ))
}

/// What stands before `pattern` at the end of `word`; `None` if it does not end so.
///
/// A pattern is read from its end: letters (either case), classes `[abc]` and `[^abc]`, `[^\w]` for
/// what is no ASCII letter, digit or underscore, `[^\a]` for what is not ASCII; in front, `^` for the
/// start of the word and `\b` for a word boundary.
fn match_end<'a>(word: &'a str, pattern: &str) -> Option<&'a str> {
    let mut rest = word;
    let mut pattern = pattern;
    while let Some(last) = pattern.as_bytes().last() {
        // Nearly every step is a plain letter, and nearly every one of these fails.
        if last.is_ascii_lowercase() && !pattern.ends_with("\\b") {
            if rest.as_bytes().last()?.to_ascii_lowercase() != *last {
                return None;
            }
            (rest, pattern) = (
                rest.get(..rest.len() - 1)?,
                pattern.get(..pattern.len() - 1)?,
            );
            continue;
        }
        if pattern == "^" {
            return rest.is_empty().then_some(rest);
        }
        if pattern == "\\b" {
            return (!rest.chars().next_back().is_some_and(is_word)).then_some(rest);
        }
        let last = rest.chars().next_back()?;
        rest = rest.get(..rest.len() - last.len_utf8())?;
        if pattern.ends_with(']') {
            // Patterns are constants of this crate, so an unbalanced class is a bug that tests find.
            let open = pattern.rfind('[')?;
            let class = pattern.get(open + 1..pattern.len() - 1)?;
            if !in_class(last, class) {
                return None;
            }
            pattern = pattern.get(..open)?;
        } else {
            let expected = pattern.chars().next_back()?;
            if !same_letter(last, expected) {
                return None;
            }
            pattern = pattern.get(..pattern.len() - expected.len_utf8())?;
        }
    }
    Some(rest)
}

fn in_class(c: char, class: &str) -> bool {
    match class {
        "^\\w" => !is_word(c),
        "^\\a" => !c.is_ascii(),
        _ => match class.strip_prefix('^') {
            Some(others) => !others.chars().any(|other| same_letter(c, other)),
            None => class.chars().any(|one| same_letter(c, one)),
        },
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn same_letter(c: char, lower: char) -> bool {
    c == lower || c.to_lowercase().eq(std::iter::once(lower)) && c.is_ascii() == lower.is_ascii()
}

/// `text` in the case of `model`: as it is, lower, upper, or capitalised.
fn with_case_of(model: &str, text: &str) -> String {
    if model == text {
        return text.to_owned();
    }
    if model == model.to_lowercase() {
        return text.to_lowercase();
    }
    if model == model.to_uppercase() {
        return text.to_uppercase();
    }
    let capitalised = model
        .chars()
        .next()
        .is_some_and(|c| c.to_uppercase().eq(std::iter::once(c)));
    let mut chars = text.chars();
    match (capitalised, chars.next()) {
        (true, Some(first)) => first
            .to_uppercase()
            .chain(chars.as_str().to_lowercase().chars())
            .collect(),
        _ => text.to_lowercase(),
    }
}
