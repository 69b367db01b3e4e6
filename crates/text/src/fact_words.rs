//! The words of a text that carry facts: paths, URLs, mail addresses, identifiers, numbers.
//!
//! A word ends at white space, a quote, a bracket or a separator; it is classified by its characters alone, never by
//! the words around it. Each occurrence is returned, in the order of the text.
//!
//! Not here: JSON, whose values have names; lines that report errors (`contexture-condense`).

/// Kind of a word that carries a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// An address: `https://…`, `context://…`.
    Url,
    /// `src/lib.rs`, `setup.py`, `/etc/hosts`.
    Path,
    /// Letters and digits in one word, mail addresses, `sofia_kim_7287`, hashes, ticket numbers.
    Identifier,
    /// `2024-05-25`, `$1,200.50`, `15:00`, `42 %` without its sign.
    Number,
}

/// The longest word that is classified, in bytes: longer ones are data.
const MAX_WORD_BYTES: usize = 160;

/// File extensions by which a word without a slash is a path.
const FILE_EXTENSIONS: &[&str] = &[
    "bash", "bat", "c", "cc", "cfg", "cjs", "conf", "cpp", "cs", "css", "csv", "db", "diff", "env",
    "erl", "ex", "go", "gz", "h", "hpp", "hs", "html", "ini", "ipynb", "java", "jpg", "js", "json",
    "jsonl", "jsx", "kt", "lock", "log", "lua", "md", "mjs", "patch", "pdf", "php", "pl", "png",
    "proto", "ps1", "py", "pyi", "rb", "rs", "rst", "scss", "sh", "sql", "svelte", "swift", "tar",
    "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zip",
];

/// Returns the words of a text that carry facts.
pub fn extract_facts(text: &str) -> impl Iterator<Item = (FactKind, &str)> {
    text.split(is_word_boundary)
        // Longer stretches without a boundary are data (base64, minified code): splitting them would
        // give thousands of false identifiers.
        .filter(|word| !word.is_empty() && word.len() <= 4 * MAX_WORD_BYTES)
        .flat_map(split_word)
        .filter_map(|word| classify_word(word).map(|kind| (kind, word)))
}

/// Classifies a single word; `None` if it carries no fact.
#[must_use]
pub fn classify_word(word: &str) -> Option<FactKind> {
    // A single byte carries no fact that could be searched for.
    if word.len() > MAX_WORD_BYTES || word.len() < 2 || word.chars().any(char::is_whitespace) {
        return None;
    }
    // Addresses first: they contain paths and numbers.
    if word.contains("://") {
        return Some(FactKind::Url);
    }
    if is_number(word) {
        return Some(FactKind::Number);
    }
    if is_path(word) {
        return Some(FactKind::Path);
    }
    is_identifier(word).then_some(FactKind::Identifier)
}

/// Strips currency signs and `%`, so that two spellings of one value are equal: `$30` and `30`.
#[must_use]
pub fn normalize_value(word: &str) -> &str {
    word.trim_start_matches(['$', '€', '£', '+'])
        .trim_end_matches('%')
}

/// Whether a word names a file or a folder: it has a slash between names, or a known file extension.
#[must_use]
pub fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@~#%[]*?$ \\:".contains(c);
    if word.len() > MAX_WORD_BYTES || !word.chars().all(plain) || word.contains("//") {
        return false;
    }
    let letters = word.chars().any(char::is_alphabetic);
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        let ending = ending.to_ascii_lowercase();
        !stem.is_empty() && FILE_EXTENSIONS.binary_search(&ending.as_str()).is_ok()
    });
    // "and/or" is no path, "a/b/c" and "./a" are.
    let rooted = word.starts_with(['/', '~']) || word.starts_with("./") || word.starts_with("../");
    let slashes = word.matches('/').count();
    letters && (ending || slashes > 1 || rooted && slashes > 0 && word.len() > 2)
}

fn is_number(word: &str) -> bool {
    let bare = word.trim_start_matches(['$', '€', '£', '+', '-']);
    let inner = |c: char| c.is_ascii_digit() || ".,:-/%".contains(c);
    // 2024-05-15T15:00:00 and 15:00Z.
    let time = |c: char| inner(c) || c == 'T' || c == 'Z';
    let digits = bare.bytes().filter(u8::is_ascii_digit).count();
    let first = bare.starts_with(|c: char| c.is_ascii_digit());
    first
        && digits >= 2
        && (bare.chars().all(inner) || bare.contains(':') && bare.chars().all(time))
}

fn is_identifier(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let allowed = |c: char| c.is_alphanumeric() || "_-.#@:+/".contains(c);
    if !word.chars().all(allowed) {
        return false;
    }
    let mail = word
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let ticket = word.starts_with('#') && digits > 0 && letters + digits + 1 == word.len();
    mail || ticket || (digits > 0 && letters > 0 && word.len() > 2)
}

/// Splits `key=value`, `path:12:` and the like, unless the word is a URL, a number or an address.
fn split_word(word: &str) -> impl Iterator<Item = &str> {
    let word = trim_punctuation(word);
    let whole = word.contains("://") || is_number(word) || word.contains('@');
    word.split(move |c: char| !whole && (c == '=' || c == ':'))
        .map(trim_punctuation)
}

fn trim_punctuation(word: &str) -> &str {
    let word = word.trim_end_matches(['.', ',', ':', '!', '?', '-', '/', '…', '*', '\\']);
    word.trim_start_matches([',', ':', '!', '?', '*'])
        .trim_end_matches("'s")
}

fn is_word_boundary(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`()[]{}<>|;&^“”‘’„«»".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(FactKind, &str)> {
        extract_facts(text).collect()
    }

    #[test]
    fn words_are_what_their_characters_say() {
        use FactKind::{Identifier, Number, Path, Url};
        for (text, expected) in [
            (
                "see https://a.example/x?y=1, please",
                vec![(Url, "https://a.example/x?y=1")],
            ),
            (
                "in src/lib.rs:12: oops",
                vec![(Path, "src/lib.rs"), (Number, "12")],
            ),
            ("setup.py and e.g. this", vec![(Path, "setup.py")]),
            (
                "user sofia_kim_7287 (OI5L9G)",
                vec![(Identifier, "sofia_kim_7287"), (Identifier, "OI5L9G")],
            ),
            ("mail a.b@c.example.", vec![(Identifier, "a.b@c.example")]),
            (
                "on 2024-05-25T15:00:00 for $1,200.50!",
                vec![(Number, "2024-05-25T15:00:00"), (Number, "$1,200.50")],
            ),
            (
                "order #W8342, gate #17",
                vec![(Identifier, "#W8342"), (Identifier, "#17")],
            ),
            ("exit=127 he said 3 times", vec![(Number, "127")]),
            ("plain words only; and/or", vec![]),
            (
                "ls ./x a/b/c ~/y",
                vec![(Path, "./x"), (Path, "a/b/c"), (Path, "~/y")],
            ),
            ("", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn endings_are_sorted() {
        assert!(
            FILE_EXTENSIONS.is_sorted(),
            "{:?}",
            FILE_EXTENSIONS.windows(2).find(|two| two[0] > two[1])
        );
    }

    #[test]
    fn hostile_words_are_survived() {
        let long = "a1".repeat(100_000);
        assert_eq!(found(&long), vec![]);
        for text in [
            "://",
            "@",
            "#",
            ".",
            "..",
            "-",
            "$",
            "'s",
            "é1",
            "\u{0}",
            "a\u{301}1",
        ] {
            found(text);
        }
    }
}
