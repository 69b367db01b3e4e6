//! The beginning of a text, for errors that quote and titles that name.
//!
//! Lengths are in characters (`char`), not in bytes or columns: a limit cuts no character in two and does not depend on
//! the encoding. `…` stands for what was cut. For the nearest boundary of a byte offset use the standard library's
//! `str::floor_char_boundary` and `str::ceil_char_boundary`.

/// The first `max` characters of a text, with `…` where more follow: for errors that quote.
#[must_use]
pub fn excerpt(text: &str, max: usize) -> String {
    let mut chars = text.chars();
    // Of a text of many megabytes no more than the excerpt is read.
    let mut out: String = chars.by_ref().take(max).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// The first `max` characters of a text on one line, for titles: runs of white space become one space, and a word that
/// does not fit is cut and ends in `…`.
#[must_use]
pub fn shorten_words(text: &str, max: usize) -> String {
    let mut out = String::new();
    // Word by word, so that of a long text only the part that is shown is read.
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let room = max.saturating_sub(out.chars().count());
        if word.chars().count() > room {
            // One character of the room is the ellipsis's own.
            out.extend(word.chars().take(room.saturating_sub(1)));
            out.push('…');
            break;
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_counts_characters() {
        for (text, max, expected) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("äöü", 2, "äö…"),
        ] {
            assert_eq!(excerpt(text, max), expected, "{text}");
        }
    }

    #[test]
    fn shorten_words_folds_white_space() {
        for (text, max, expected) in [
            ("  one\n two ", 80, "one two"),
            ("one three", 7, "one th…"),
            ("three", 3, "th…"),
            ("", 3, ""),
        ] {
            assert_eq!(shorten_words(text, max), expected, "{text}");
        }
    }
}
