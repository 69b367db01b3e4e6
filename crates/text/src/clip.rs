//! Shortens texts, or puts them on one line.
//!
//! [`truncate_chars`] and [`one_line_title`] count characters (`char`), for quotes in errors and for titles.
//! [`head_and_tail`] and [`shorten_line`] count bytes, the unit of budgets, and keep the end of the text as well. None of
//! them splits a character; `…` replaces what was cut. Not here: terminal columns, and cutting by graphemes. For the
//! character boundary nearest to a byte offset use the standard library's `str::floor_char_boundary` and
//! `str::ceil_char_boundary`.

/// Returns the first `max` characters of a text, followed by `…` if there are more: for quotes in errors.
#[must_use]
pub fn truncate_chars(text: &str, max: usize) -> String {
    let mut chars = text.chars();
    // Lazy: even of a text of many megabytes only the part that is returned is read.
    let mut out: String = chars.by_ref().take(max).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// Returns the first characters of a text on one line, for titles: runs of white space become one space, and the word
/// that exceeds `max` characters is cut and ends in `…`.
#[must_use]
pub fn one_line_title(text: &str, max: usize) -> String {
    let mut out = String::new();
    // Word by word, so that of a long text only the words that are shown are read.
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let room = max.saturating_sub(out.chars().count());
        if word.chars().count() > room {
            // The ellipsis replaces the last character that fits, if any does.
            out.extend(word.chars().take(room.saturating_sub(1)));
            out.push('…');
            break;
        }
        out.push_str(word);
    }
    out
}

/// Shortens a text to one line of at most about `limit` bytes: [`one_line`], then [`head_and_tail`].
#[must_use]
pub fn shorten_line(text: &str, limit: usize) -> String {
    head_and_tail(&one_line(text), limit)
}

/// Keeps the beginning and the end of a text that is longer than `limit` bytes, with the number of omitted characters
/// between them.
#[must_use]
pub fn head_and_tail(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    // The beginning says what the text is; the end often contains the result.
    let (head, tail) = (limit / 4 * 3, limit / 4);
    let head = text
        .get(..text.floor_char_boundary(head))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - tail)..)
        .unwrap_or_default();
    let between = text
        .get(head.len()..text.len() - tail.len())
        .map_or(0, |middle| middle.chars().count());
    format!(
        "{} [… {between} characters …] {}",
        head.trim_end(),
        tail.trim_start()
    )
}

/// Returns the text between the fences, if the answer is nothing but one fenced block without a language or of JSON.
///
/// ```
/// use contexture_text::strip_code_fence;
///
/// assert_eq!(strip_code_fence("```json\n{\"a\":1}\n```"), Some("{\"a\":1}"));
/// assert_eq!(strip_code_fence("{\"a\":1}"), None);
/// // More than the block: which part was meant is not clear.
/// assert_eq!(strip_code_fence("Here it is:\n```json\n1\n```"), None);
/// ```
#[must_use]
pub fn strip_code_fence(answer: &str) -> Option<&str> {
    let text = answer.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (language, inner) = text.split_once('\n')?;
    let inner = inner.trim();
    let is_bare = matches!(language.trim(), "" | "json" | "JSON") && !inner.contains("```");
    is_bare.then_some(inner)
}

/// Puts a text on one line for a model: each run of white space and control characters becomes one space, so that an
/// entry of a list cannot pass for several.
///
/// The result may be stored, so it keeps the bidirectional formatting characters that [`one_printable_line`] removes.
#[must_use]
pub fn one_line(text: &str) -> String {
    join_words(text, |c| c.is_whitespace() || c.is_control())
}

/// Puts a text on one line for a person: each run of white space and of characters that [`is_unsafe`] rejects becomes
/// one space, so that nothing in a stored message can move the cursor or colour the screen.
#[must_use]
pub fn one_printable_line(text: &str) -> String {
    join_words(text, |c| c.is_whitespace() || is_unsafe(c))
}

/// Whether a character must not be printed as it is: control characters, and bidirectional formatting characters, which
/// change the direction of the text after them.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn join_words(text: &str, is_blank: impl Fn(char) -> bool) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_differ_only_in_marks_of_direction() {
        for (text, stored, printable) in [
            ("", "", ""),
            (" \n\t", "", ""),
            ("  a\n\n\tb\u{1b}[31m c\u{7}", "a b [31m c", "a b [31m c"),
            ("a\u{202e}b \u{2066}c", "a\u{202e}b \u{2066}c", "a b c"),
        ] {
            assert_eq!(one_line(text), stored);
            assert_eq!(one_printable_line(text), printable);
        }
    }

    #[test]
    fn shortening_keeps_both_ends_and_says_how_much_is_gone() {
        assert_eq!(shorten_line("a\n b\t\u{0}c", 20), "a b c");
        let long = format!("{}{}", "ä".repeat(100), "ö".repeat(100));
        let short = shorten_line(&long, 41);
        assert!(
            short.starts_with("äääääääääääääää [… 180 characters …] ööööö"),
            "{short}"
        );
    }

    #[test]
    fn truncate_chars_counts_characters() {
        for (text, max, expected) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("äöü", 2, "äö…"),
        ] {
            assert_eq!(truncate_chars(text, max), expected, "{text}");
        }
    }

    #[test]
    fn one_line_title_folds_white_space() {
        for (text, max, expected) in [
            ("  one\n two ", 80, "one two"),
            ("one three", 7, "one th…"),
            ("three", 3, "th…"),
            ("", 3, ""),
        ] {
            assert_eq!(one_line_title(text, max), expected, "{text}");
        }
    }
}
