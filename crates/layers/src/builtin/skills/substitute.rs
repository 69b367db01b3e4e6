//! Substitutes arguments into a skill's instructions.
//!
//! `$ARGUMENTS` is the whole argument text, `$ARGUMENTS[0]` and `$0` the first argument. One pass: inserted text is not
//! substituted again, and a number without an argument stays as it is (`$5` in a price). If the instructions refer to
//! no argument, they are appended on a last line.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// `$ARGUMENTS[i]`, `$ARGUMENTS` or `$i`, not followed by more of a word.
static ARGUMENT_PLACEHOLDER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$(?:ARGUMENTS(?:\[([0-9]{1,3})\]|\b)|([0-9]{1,3})\b)").ok());

/// Returns the instructions with these arguments.
pub(super) fn substitute_arguments(instructions: &str, arguments: &str) -> String {
    let each = split_arguments(arguments);
    let mut named = false;
    let put = |found: &Captures<'_>| {
        let number = found.get(1).or_else(|| found.get(2));
        let argument = match number {
            None => Some(arguments),
            Some(number) => {
                let number: Option<usize> = number.as_str().parse().ok();
                number.and_then(|at| each.get(at)).map(AsRef::as_ref)
            }
        };
        named |= argument.is_some();
        argument
            .unwrap_or_else(|| found.get(0).map_or("", |all| all.as_str()))
            .to_owned()
    };
    let text = match ARGUMENT_PLACEHOLDER.as_ref() {
        Some(place) => place.replace_all(instructions, put),
        None => Cow::Borrowed(instructions),
    };
    match named || arguments.trim().is_empty() {
        true => text.into_owned(),
        false => format!("{text}\n\nARGUMENTS: {arguments}"),
    }
}

/// Splits arguments at white space outside quotes.
fn split_arguments(arguments: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut word, mut inside, mut quote) = (String::new(), false, None);
    for c in arguments.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => (quote, inside) = (Some(c), true),
            None if c.is_whitespace() => {
                if inside {
                    all.push(std::mem::take(&mut word));
                }
                inside = false;
            }
            None => {
                word.push(c);
                inside = true;
            }
        }
    }
    if inside {
        all.push(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn instructions_that_name_nothing_stay_as_they_are(text in "[^$]{0,40}", arguments in ".{0,40}") {
            let put = substitute_arguments(&text, &arguments);
            proptest::prop_assert!(put.starts_with(&text));
            let all = substitute_arguments("$ARGUMENTS", &arguments);
            proptest::prop_assert_eq!(all, arguments);
        }
    }

    #[test]
    fn arguments_stand_where_they_are_named() {
        for (instructions, arguments, expected) in [
            ("do $ARGUMENTS!", "a b", "do a b!"),
            ("$0 then $1", "a \"b c\"", "a then b c"),
            ("$ARGUMENTS[1]-$ARGUMENTS[0]", "a 'b c'", "b c-a"),
            ("$ARGUMENTS[9] $0", "a", "$ARGUMENTS[9] a"),
            ("it costs $5", "a", "it costs $5\n\nARGUMENTS: a"),
            (
                "$0x $10 $ARGUMENTSx",
                "a",
                "$0x $10 $ARGUMENTSx\n\nARGUMENTS: a",
            ),
            ("$ARGUMENTS", "$0 $& $$ $ARGUMENTS", "$0 $& $$ $ARGUMENTS"),
            ("plain", "", "plain"),
            ("plain", " ", "plain"),
            ("$0", "''", ""),
            ("$0", "\"open end", "open end"),
            ("é$0é $0", "x", "é$0é x"),
        ] {
            assert_eq!(
                substitute_arguments(instructions, arguments),
                expected,
                "{instructions}"
            );
        }
    }
}
