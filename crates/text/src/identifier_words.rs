//! Splits text into the words by which tools are found.
//!
//! `getUserInfo`, `get_user_info` and `HTTPServer2` are split at their word boundaries; scripts without spaces are
//! split into single characters and overlapping pairs; words are lower case and stripped of the commonest English
//! endings, so that *booking flights* finds `book_flight`. The same rule applies to definitions and tasks.
//!
//! Not here: how words are weighted (the index of `contexture-tools`).

use crate::unspaced::is_unspaced_in_names;

/// The longest word in characters; the rest of a longer one is ignored.
const LONGEST: usize = 40;

/// Calls `visit` with each word of `text`, in order.
pub fn for_each_identifier_word(text: &str, mut visit: impl FnMut(&str)) {
    let mut word = String::new();
    let mut length = 0;
    let mut before: Option<char> = None;
    let mut ideograph: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // Scripts without spaces have no word boundaries. Single characters match everything, and pairs rank the better
        // matches higher.
        if is_unspaced_in_names(c) {
            flush_word(&mut word, &mut length, &mut visit);
            let mut buffer = String::with_capacity(8);
            buffer.push(c);
            visit(&buffer);
            if let Some(first) = ideograph {
                buffer.insert(0, first);
                visit(&buffer);
            }
            (ideograph, before) = (Some(c), None);
            continue;
        }
        ideograph = None;
        if !c.is_alphanumeric() {
            flush_word(&mut word, &mut length, &mut visit);
            before = None;
            continue;
        }
        // One character of look-ahead distinguishes `HTTPServer` (split before `S`) from `HTTPS`.
        if before.is_some_and(|before| is_word_boundary(before, c, chars.peek().copied())) {
            flush_word(&mut word, &mut length, &mut visit);
        }
        // Characters beyond the limit are dropped and do not start a new word: a blob of base64 must not fill an index.
        if length < LONGEST {
            word.extend(c.to_lowercase());
            length += 1;
        }
        before = Some(c);
    }
    flush_word(&mut word, &mut length, &mut visit);
}

fn flush_word(word: &mut String, length: &mut usize, visit: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        visit(stem_word(word));
        word.clear();
        *length = 0;
    }
}

/// Whether a word starts at `c`: `aB`, and `AB` before a small letter, as in `userId` and `HTTPServer`.
fn is_word_boundary(before: char, c: char, after: Option<char>) -> bool {
    c.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || (before.is_uppercase() && after.is_some_and(char::is_lowercase)))
}

/// Strips the commonest English endings. Crude on purpose: query and index are stemmed the same way.
fn stem_word(word: &str) -> &str {
    // The endings below are English; stripping them from other languages would join words of different meaning.
    if !word.is_ascii() {
        return word;
    }
    let singular = strip_plural(word);
    let rest = ["ation", "ing", "ion", "ed", "er", "e", "y"];
    let shorter = rest
        .into_iter()
        .find_map(|ending| strip_ending(singular, ending));
    let stem = shorter.unwrap_or(singular);
    // `cities` and `city` get the same stem, and so do `cancelled` and `cancel`.
    let stem = stem
        .strip_suffix('i')
        .filter(|stem| stem.len() >= 3)
        .unwrap_or(stem);
    match stem.as_bytes() {
        [head @ .., a, b] if a == b && head.len() >= 2 && shorter.is_some() => {
            stem.get(..stem.len() - 1).unwrap_or(stem)
        }
        _ => stem,
    }
}

/// Strips plural or third person before the other endings: `bookings`, `searches`.
fn strip_plural(word: &str) -> &str {
    let is_singular = word.ends_with("ss") || word.ends_with("us") || word.ends_with("is");
    if is_singular {
        return word;
    }
    strip_ending(word, "s").unwrap_or(word)
}

/// Strips an ending. At least three bytes remain, because shorter stems join words of different meaning.
fn strip_ending<'w>(word: &'w str, ending: &str) -> Option<&'w str> {
    word.strip_suffix(ending).filter(|stem| stem.len() >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for_each_identifier_word(text, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn seams() {
        assert_eq!(cut("getUserInfo"), cut("get_user_info"));
        assert_eq!(cut("HTTPServer2 v2Beta"), ["http", "server2", "v2", "beta"]);
        assert_eq!(cut("S3-bucket/x"), ["s3", "bucket", "x"]);
        assert_eq!(cut("ÉcoleÉlève"), ["école", "élève"]);
        assert!(cut(" --\u{0}/ ").is_empty());
    }

    #[test]
    fn scripts_without_spaces() {
        assert_eq!(
            cut("查询天气"),
            ["查", "询", "查询", "天", "询天", "气", "天气"]
        );
        assert_eq!(cut("用API查"), ["用", "api", "查"]);
        assert_eq!(cut("예약")[2], "예약");
    }

    #[test]
    fn endings_meet() {
        for family in [
            &["book", "books", "booked", "booking", "bookings"][..],
            &["city", "cities"],
            &["cancel", "cancelled", "canceling", "cancellation"],
            &["reserve", "reserved", "reservation", "reservations"],
            &["search", "searches", "searching"],
            &["update", "updating", "updates", "updated"],
            &["delete", "deleting", "deletion"],
            &["file", "files"],
            &["query", "queries"],
        ] {
            let stems: std::collections::BTreeSet<_> =
                family.iter().map(|w| stem_word(w)).collect();
            assert_eq!(stems.len(), 1, "{family:?}: {stems:?}");
        }
        for (word, expected) in [
            ("status", "status"),
            ("is", "is"),
            ("process", "process"),
            ("id", "id"),
            ("ls", "ls"),
        ] {
            assert_eq!(stem_word(word), expected);
        }
    }
}
