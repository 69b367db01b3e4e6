//! Glob patterns: names in which `*` stands for any characters and `?` for one.

/// Returns whether a text is of the form of a pattern, in which `*` stands for any characters and `?` for one.
///
/// ```
/// use contexture_text::glob_matches;
///
/// assert!(glob_matches("delete_*", "delete_file"));
/// assert!(!glob_matches("delete_?", "delete_file"));
/// ```
#[must_use]
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    // On a mismatch the last `*` takes one character more, so the work is at most the product of the lengths.
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // One place to go back to is enough: an earlier `*` never has to take more once a later one has matched.
    let mut star: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let here = text.clone();
        match (pattern.next(), text.next()) {
            (Some('*'), _) => {
                star = Some((pattern.clone(), here.clone()));
                // A star matches nothing first; each failure below lets it take one character more.
                text = here;
            }
            (None, None) => return true,
            (Some(p), Some(t)) if p == '?' || p == t => {}
            _ => {
                let Some((after, mut from)) = star.take() else {
                    return false;
                };
                // The text is used up, so no longer match of the star can help.
                if from.next().is_none() {
                    return false;
                }
                (pattern, text) = (after.clone(), from.clone());
                star = Some((after, from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a/b", true),
            ("a*c", "abc", true),
            ("a*c", "abd", false),
            ("*ab*ab", "abab", true),
            ("*aab", "aaaab", true),
            ("a?", "a", false),
            ("?", "é", true),
            ("**", "x", true),
            ("a*", "a*b", true),
        ] {
            assert_eq!(glob_matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!glob_matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
