//! Case folding of names.

/// Returns a text in lower case, the form in which names are compared: Unicode's rules, no language's special cases.
///
/// ```
/// assert_eq!(contexture_text::case_folded("GetUser"), "getuser");
/// assert_eq!(contexture_text::case_folded("ÉCOLE"), "école");
/// ```
#[must_use]
pub fn case_folded(text: &str) -> String {
    // Nearly all tool names are ASCII, where lower-casing is per byte. Both branches agree on ASCII.
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_folded_handles_ascii_and_unicode_alike() {
        for text in ["", "getUser", "HTTP_2", "search"] {
            assert_eq!(case_folded(text), text.to_lowercase());
        }
        // A capital sigma at the end of a word has a lower case of its own, by Unicode's rules.
        assert_eq!(case_folded("ΟΔΟΣ"), "οδος");
    }
}
