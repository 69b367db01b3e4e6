//! Command lines to be typed again: options as words, words as a shell reads them.
//!
//! Not here: which options a command has; each group of them gives its own words.

/// An option with its value.
pub(crate) fn option_with_value(name: &str, value: impl ToString) -> [String; 2] {
    [name.to_owned(), value.to_string()]
}

/// The words on one line, quoted where a shell would read them otherwise.
pub(crate) fn join_for_shell(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote_for_shell(word)).collect();
    quoted.join(" ")
}

fn quote_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        // Nothing is special between single quotes but the quote itself: close, write it escaped,
        // open again.
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        for (word, expected) in [
            ("--memory=path", "--memory=path"),
            ("", "''"),
            ("*", "'*'"),
            ("it's", "'it'\\''s'"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("~/x", "'~/x'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(join_for_shell(&[word.to_owned()]), expected, "{word}");
        }
    }
}
