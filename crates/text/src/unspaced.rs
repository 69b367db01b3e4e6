//! Scripts without spaces between words, where words cannot be split at spaces.
//!
//! The two tables are separate on purpose: one determines stored search indexes, which have a version of their own, the
//! other how tools are ranked in each call, so each must be able to change without the other.

/// Whether `c` belongs to a script that texts are searched in by pairs of characters: Han, kana, Bopomofo, Thai, Lao,
/// Khmer, Burmese, Tai, and Hangul, whose words carry their particles.
/// Burmese, Tai, and Hangul, whose words carry their particles.
///
/// For folded letters and digits; the digits of Thai, Lao, Khmer and Burmese count as words.
#[cfg(any(test, feature = "search-terms"))]
pub(crate) fn is_unspaced_in_texts(c: char) -> bool {
    matches!(u32::from(c),
        0xE00..=0xE3A | 0xE40..=0xE4E // Thai, but not its digits
        | 0xE80..=0xECF | 0xEDC..=0xEDF // Lao
        | 0x1000..=0x103F | 0x1050..=0x108F | 0x109A..=0x109F | 0xA9E0..=0xA9EF
        | 0xA9FA..=0xA9FE | 0xAA60..=0xAA7F // Myanmar
        | 0x1100..=0x11FF | 0xA960..=0xA97F | 0xAC00..=0xD7FF // Hangul
        | 0x1780..=0x17DC // Khmer
        | 0x1950..=0x19CF | 0x1A20..=0x1A7F | 0xAA80..=0xAADF // Tai
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3038..=0x303C // Han
        | 0x3041..=0x30FF | 0x31F0..=0x31FF | 0x1AFF0..=0x1B16F // kana
        | 0x3105..=0x312F | 0x31A0..=0x31BF // Bopomofo
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Whether `c` belongs to a script in which names and descriptions of tools are split by characters: Han, kana, Hangul
/// (whose words carry endings), Thai, Lao, Khmer, Burmese.
pub(crate) fn is_unspaced_in_names(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1100}'..='\u{11FF}' | '\u{1780}'..='\u{17FF}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unspaced_tables_agree_on_letters_and_not_on_digits() {
        for c in ['東', 'か', '한', 'ก', 'ក', 'မ'] {
            assert!(is_unspaced_in_texts(c) && is_unspaced_in_names(c), "{c}");
        }
        for c in ['a', 'é', 'я', '1', ' '] {
            assert!(!is_unspaced_in_texts(c) && !is_unspaced_in_names(c), "{c}");
        }
        // Thai digits are split off in a name, and are words in a text.
        assert!(is_unspaced_in_names('๓') && !is_unspaced_in_texts('๓'));
    }
}
