//! Folds characters to the form that a search compares.
//!
//! Compatibility forms are decomposed, accents and vowel points removed, case folded. What a mark means depends on its
//! script, so only marks that people omit when they type are removed: accents of Latin, Greek and Cyrillic, points of
//! Hebrew and Arabic. Vowel signs and tones of Indic and South-East Asian scripts and the voicing of kana are kept,
//! because they make other words.
//!
//! Not here: where a term starts and ends.

use unicode_normalization::char::{
    canonical_combining_class, decompose_compatible, is_combining_mark,
};

use crate::unspaced::is_unspaced_in_texts;

/// Effect of a folded character on the term it occurs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldedClass {
    /// Belongs to a word: letters and digits of scripts that put spaces between words.
    Word,
    /// A character of a script without spaces, searched in pairs.
    Unit,
    /// Belongs to the character before it.
    Mark,
    /// A term by itself: emoji, arrows, signs.
    Symbol,
    /// Removed: the term continues as if it were not there.
    Nothing,
    /// Ends a term.
    Break,
}

/// Folds one character; usually into one, sometimes into several or none.
pub(super) fn fold_char(original: char, visit: &mut impl FnMut(char, FoldedClass)) {
    if original.is_ascii() {
        let class = if original.is_ascii_alphanumeric() {
            FoldedClass::Word
        } else {
            FoldedClass::Break
        };
        return visit(original.to_ascii_lowercase(), class);
    }
    if is_folded_unit(original) {
        return visit(original, FoldedClass::Unit);
    }
    if is_ignored(original) {
        return visit(original, FoldedClass::Nothing);
    }
    // Before decomposition: "Acme™" must not become "acmetm".
    if is_symbol(original) {
        return visit(original, FoldedClass::Symbol);
    }
    decompose_compatible(original, |part| {
        if is_combining_mark(part) {
            let class = if is_left_out(part) {
                FoldedClass::Nothing
            } else {
                FoldedClass::Mark
            };
            return visit(part, class);
        }
        // Lower, upper and lower again, so that ẞ and ß become ss, and a final sigma a sigma.
        for lower in part.to_lowercase() {
            for upper in lower.to_uppercase() {
                for folded in upper.to_lowercase() {
                    visit(folded, classify_folded(folded));
                }
            }
        }
    });
}

fn classify_folded(folded: char) -> FoldedClass {
    if !folded.is_alphanumeric() {
        FoldedClass::Break
    } else if is_unspaced_in_texts(folded) {
        FoldedClass::Unit
    } else {
        FoldedClass::Word
    }
}

/// Whether a mark is one that people omit when they type.
fn is_left_out(mark: char) -> bool {
    let class = canonical_combining_class(mark);
    (10..=35).contains(&class) || class >= 200
}

/// Whether a character is invisible: soft hyphens, joiners, directional marks, variation selectors, skin tones.
fn is_ignored(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x61C | 0x180B..=0x180F | 0x200C..=0x200F | 0x202A..=0x202E | 0x2060..=0x2069
        | 0xFE00..=0xFE0F | 0xFEFF | 0x1F3FB..=0x1F3FF | 0xE0000..=0xE0FFF)
}

/// Whether a character is a sign that people search for: currencies, letter-like signs, arrows, mathematics, emoji.
/// Box-drawing and block characters are not.
fn is_symbol(c: char) -> bool {
    match u32::from(c) {
        // Ohm, Kelvin and Ångström are other spellings of letters.
        0x2126 | 0x212A | 0x212B | 0x2500..=0x259F | 0x2800..=0x28FF => false,
        0x20A0..=0x20CF | 0x2100..=0x2BFF | 0x1F000..=0x1FAFF => true,
        _ => false,
    }
}

/// Whether a character is one of the bulk of Han, kana and Hangul, which decomposing and composing would not change.
fn is_folded_unit(c: char) -> bool {
    matches!(u32::from(c), 0x3041..=0x3096 | 0x30A1..=0x30FA | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            fold_char(c, &mut |folded, class| {
                if class != FoldedClass::Nothing {
                    out.push(folded);
                }
            });
        }
        out
    }

    #[test]
    fn spellings_of_one_word_are_one() {
        for (text, expected) in [
            ("Straße STRASSE STRAẞE", "strasse strasse strasse"),
            ("Σίσυφος ΣΊΣΥΦΟΣ", "σισυφοσ σισυφοσ"),
            ("e\u{301}te\u{301} été", "ete ete"),
            ("ﬁne ﬁ", "fine fi"),
            ("ｆｕｌｌ", "full"),
            ("𝗯𝗼𝗹𝗱", "bold"),
            ("İstanbul", "istanbul"),
            ("Å Å", "a a"),
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            ("co\u{ad}operate", "cooperate"),
            ("Ёлка", "елка"),
            ("Kiệt", "kiet"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn units_are_folded_already() {
        use unicode_normalization::UnicodeNormalization as _;
        for c in '\u{3041}'..='\u{d7a3}' {
            if is_folded_unit(c) {
                let long_way: String = c.nfkc().collect();
                assert_eq!(long_way, c.to_string());
                assert_eq!(classify_folded(c), FoldedClass::Unit, "{c}");
            }
        }
    }

    #[test]
    fn marks_that_make_other_words_stay() {
        assert_ne!(folded("के"), folded("की"));
        assert_ne!(folded("ข่าว"), folded("ขาว"));
        assert_ne!(folded("が"), folded("か"));
    }
}
