//! The character classes that the splitting patterns speak of.
//!
//! The general categories of Unicode 16 boiled down to eight classes, one bit each, so that a set of classes is a
//! mask. The table is unpacked from run lengths (`data/classes.bin`) on first use. Not here: the patterns.

use std::sync::OnceLock;

/// Uppercase and titlecase letters (Lu, Lt).
pub(crate) const UPPER: u8 = 1;
/// Lowercase letters (Ll).
pub(crate) const LOWER: u8 = 1 << 1;
/// Letters without case (Lm, Lo).
pub(crate) const CASELESS: u8 = 1 << 2;
/// The Unicode category M: marks.
pub(crate) const MARK: u8 = 1 << 3;
/// The Unicode category N: numbers.
pub(crate) const NUMBER: u8 = 1 << 4;
/// White space other than carriage return and line feed.
pub(crate) const SPACE: u8 = 1 << 5;
/// Carriage return and line feed.
pub(crate) const NEWLINE: u8 = 1 << 6;
/// Everything else: punctuation, symbols, controls, unassigned.
pub(crate) const OTHER: u8 = 1 << 7;

/// All letters (L).
pub(crate) const LETTER: u8 = UPPER | LOWER | CASELESS;
/// All white space (`\s`).
pub(crate) const WHITE: u8 = SPACE | NEWLINE;

const PACKED: &[u8] = include_bytes!("../../data/classes.bin");
const CHARS: usize = 0x11_0000;

/// The class of every character.
#[derive(Debug)]
pub(crate) struct CharClasses(Vec<u8>);

impl CharClasses {
    /// The one table, made on first use.
    pub(crate) fn get() -> &'static Self {
        static CLASSES: OnceLock<CharClasses> = OnceLock::new();
        CLASSES.get_or_init(|| {
            let classes = Self::unpack(PACKED);
            debug_assert!(classes.is_some(), "data/classes.bin is damaged");
            classes.unwrap_or(Self(Vec::new()))
        })
    }

    /// Reads (length as LEB128, class) runs that cover all characters exactly.
    fn unpack(mut packed: &[u8]) -> Option<Self> {
        let mut table = vec![0; CHARS];
        let mut at = 0usize;
        while !packed.is_empty() {
            let length = crate::bpe::take_leb128(&mut packed)? as usize;
            let (&class, rest) = packed.split_first()?;
            packed = rest;
            let end = at.checked_add(length)?;
            table.get_mut(at..end)?.fill(class);
            at = end;
        }
        (at == CHARS).then_some(Self(table))
    }

    /// The class of the character that starts at `at` and its length in bytes; `(0, 0)` at the end.
    #[inline]
    pub(crate) fn class_and_length(&self, text: &[u8], at: usize) -> (u8, usize) {
        match text.get(at) {
            None => (0, 0),
            Some(&byte) if byte < 0x80 => (self.class_of(u32::from(byte)), 1),
            Some(&lead) => {
                let (code, length) = decode_char(lead, text, at);
                (self.class_of(code), length)
            }
        }
    }

    /// The class of a code point.
    #[inline]
    pub(crate) fn class_of(&self, code: u32) -> u8 {
        self.0.get(code as usize).copied().unwrap_or(OTHER)
    }
}

/// Decodes the multi-byte character at `at`. The text is valid UTF-8 and `at` a boundary, as both come from a `str`.
#[inline]
fn decode_char(lead: u8, text: &[u8], at: usize) -> (u32, usize) {
    let tail = |offset: usize| u32::from(text.get(at + offset).copied().unwrap_or(0) & 0x3f);
    let lead = u32::from(lead);
    if lead < 0xe0 {
        ((lead & 0x1f) << 6 | tail(1), 2)
    } else if lead < 0xf0 {
        ((lead & 0x0f) << 12 | tail(1) << 6 | tail(2), 3)
    } else {
        (
            (lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
            4,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packed table against the categories of the regex engine that the reference implementation uses.
    #[test]
    fn every_character_has_the_class_of_its_category() {
        let sets = [
            (UPPER, r"[\p{Lu}\p{Lt}]"),
            (LOWER, r"\p{Ll}"),
            (CASELESS, r"[\p{Lm}\p{Lo}]"),
            (MARK, r"\p{M}"),
            (NUMBER, r"\p{N}"),
            (SPACE, r"[\s&&[^\r\n]]"),
            (NEWLINE, r"[\r\n]"),
        ];
        let mut expected = vec![OTHER; CHARS];
        for (class, pattern) in sets {
            let hir = regex_syntax::parse(pattern).unwrap();
            let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(set)) =
                hir.kind()
            else {
                panic!("{pattern} is no character class: {hir:?}");
            };
            for range in set.ranges() {
                expected[range.start() as usize..=range.end() as usize].fill(class);
            }
        }
        let packed = pack(&expected);
        if std::env::var_os("UPDATE_TABLES").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/classes.bin");
            std::fs::write(path, &packed).unwrap();
        }
        assert!(packed == PACKED, "run again with UPDATE_TABLES=1");
        assert!(CharClasses::get().0 == expected);
    }

    fn pack(classes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        for run in classes.chunk_by(|a, b| a == b) {
            let mut length = run.len();
            while length >= 0x80 {
                packed.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            packed.push(length as u8);
            packed.push(run[0]);
        }
        packed
    }

    #[test]
    fn decodes_like_the_standard_library() {
        for code in (0..=0x10_ffff).step_by(7) {
            let Some(c) = char::from_u32(code) else {
                continue;
            };
            let text = c.to_string();
            let (class, length) = CharClasses::get().class_and_length(text.as_bytes(), 0);
            assert_eq!(
                (class, length),
                (CharClasses::get().class_of(code), c.len_utf8())
            );
        }
    }

    #[test]
    fn damaged_tables_are_refused() {
        assert!(CharClasses::unpack(&[]).is_none());
        assert!(CharClasses::unpack(&[0x80]).is_none());
        assert!(CharClasses::unpack(&[0xff; 9]).is_none());
        assert!(CharClasses::unpack(&[1, OTHER]).is_none());
    }
}
