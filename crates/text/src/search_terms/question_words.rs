//! What of a question is worth looking for: its words without those of every question.
//!
//! Only English function words are left out. Those of other languages are frequent in texts of
//! these languages, so they weigh little there; leaving out a word that is content in another
//! language (German *was*, *die*) would lose it.
//!
//! Not here: phrases, beginnings and filters, which are never left out.

/// English function words, folded and sorted.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "after", "again", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "being", "between", "both", "but", "by", "can", "could", "did", "do", "does",
    "doing", "done", "down", "during", "each", "for", "from", "had", "has", "have", "having", "he",
    "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may",
    "me", "might", "must", "my", "no", "nor", "not", "now", "of", "off", "on", "once", "only",
    "or", "other", "our", "out", "over", "own", "please", "same", "shall", "she", "should", "so",
    "some", "such", "tell", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "too", "under", "up", "us", "very", "was", "we", "were", "what",
    "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you",
    "your",
];

/// What follows an apostrophe in English without being a word of its own.
const CLITICS: &[&str] = &["d", "ll", "m", "re", "s", "t", "ve"];

/// Whether a folded word is one that a question has whatever it asks for.
#[must_use]
pub fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

/// Returns a piece of a question without the ending that an apostrophe joins to it: `Anna` of *Anna\'s*.
///
/// ```
/// use contexture_text::search_terms::content_of;
///
/// assert_eq!(content_of("Anna\'s"), "Anna");
/// assert_eq!(content_of("don’t"), "do");
/// assert_eq!(content_of("O\'Brien"), "O\'Brien");
/// ```
#[must_use]
pub fn content_of(piece: &str) -> &str {
    let trimmed = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
    let Some((head, ending)) = trimmed.rsplit_once(['\'', '’']) else {
        return piece;
    };
    let is_clitic = CLITICS
        .iter()
        .any(|clitic| ending.eq_ignore_ascii_case(clitic));
    if !is_clitic || head.is_empty() {
        return piece;
    }
    // `n` belongs to the ending of `isn't` and `don't`.
    let negated = ending
        .eq_ignore_ascii_case("t")
        .then(|| head.strip_suffix(['n', 'N']))
        .flatten();
    negated.unwrap_or(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!(is_function_word("when") && is_function_word("the") && !is_function_word("dog"));
    }

    #[test]
    fn endings_behind_apostrophes_are_left_out() {
        for (piece, expected) in [
            ("dog's?", "dog"),
            ("dogs'", "dogs'"),
            ("isn't", "is"),
            ("'s", "'s"),
            ("rock'n'roll", "rock'n'roll"),
            ("c++", "c++"),
            ("", ""),
        ] {
            assert_eq!(content_of(piece), expected, "{piece}");
        }
    }
}
