//! Case folding of names.

/// A text in the form in which names are compared: lower case, by Unicode's rules without a language.
///
/// ```
/// assert_eq!(contexture_text::case_folded("GetUser"), "getuser");
/// assert_eq!(contexture_text::case_folded("ÉCOLE"), "école");
/// ```
#[must_use]
pub fn case_folded(text: &str) -> String {
    // Nearly every name of a tool is ASCII, where lower case is one byte for one byte. The two branches agree on it.
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
