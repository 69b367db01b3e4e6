//! Strings that make tokenizers stumble.

use contexture_store_testkit::test_seed;

/// A small generator (SplitMix64).
pub(crate) struct Rng(u64);

impl Rng {
    /// Begins with a random seed, which it prints; `CONTEXTURE_TEST_SEED` repeats one.
    pub(crate) fn seeded() -> Self {
        Self(test_seed())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Alphabets that stress one alternative of the splitting patterns or one script each.
const POOLS: &[&[&str]] = &[
    &["a", "B", "c", "D", " ", "'s", "'S", "'ll", "'RE", "'ſ", "ǅ"],
    &[
        " ", "  ", "\t", "\n", "\r", "\r\n", "\u{a0}", "\u{3000}", "\u{85}", "\u{2028}", "x", "/",
    ],
    &["1", "22", "٣", "Ⅷ", "½", "9", " ", ",", ".", "a"],
    &[
        "{", "}", "\"", ":", ",", "[", "]", "key", "1", "\n", "  ", "\\n", "//", "/*",
    ],
    &[
        "漢", "字", "かな", "カナ", "한국", "。", "、", " ", "A", "b", "ー",
    ],
    &[
        "👍", "👩", "\u{200d}", "🏽", "\u{fe0f}", "🇩🇪", "❤", " ", "ok",
    ],
    &[
        "ª", "º", "A", "b", "ʰ", "\u{301}", "\u{336}", "Å", "é", "É", " ", "'t",
    ],
    &["Д", "и", "Я", "ß", "ẞ", "ç", "İ", "ı", "ŉ", "-", " "],
    &["ا", "ل", "\u{64e}", "ع", "ر", " ", "\u{200f}", "م", "1"],
    &["क", "\u{94d}", "ष", "\u{93e}", "ल", " ", "।", "\u{200c}"],
    &[
        "<|endoftext|>",
        "<|im_start|>",
        "<|",
        "|>",
        "<",
        "|",
        "user",
        "\n",
        "<|fim_prefix|>",
    ],
    &[
        "\0",
        "\u{1}",
        "\u{feff}",
        "\u{fffd}",
        "\u{10ffff}",
        "\u{e000}",
        "a",
        " ",
        "\u{7f}",
    ],
    &["a", "aa", "aaaaaaaa"],
    &["ab", "ba", "abab", "baba", "b"],
    &[
        "fn ", "let ", "mut ", "::", "->", "&", "self", ".", "()", ";", "\n    ", "_", "x1",
    ],
    &[
        "the ", "of ", "tion", "ing", "pre", "Un", "able", ". ", "\"", "don't", "I'm", "WE'LL",
    ],
    &[
        "==", "====", "----", "####", "____", "\n", " ", "!", "^^^^", "\u{2014}",
    ],
];

/// A string that means no good, of 3 to about 200 bytes.
pub(crate) fn hostile(rng: &mut Rng) -> String {
    let length = [3, 8, 20, 60, 200][rng.below(5)];
    let kind = rng.below(20);
    let pool = POOLS[rng.below(POOLS.len())];
    let mut text = String::new();
    while text.len() < length {
        match kind {
            // Any characters at all, planes chosen first so that small ones are not rare.
            0 | 1 => {
                let top = [0x80, 0x800, 0x3000, 0x1_0000, 0x11_0000][rng.below(5)];
                text.extend(char::from_u32(rng.below(top) as u32));
            }
            // Two pools mixed.
            2..=6 => {
                for _ in 0..2 {
                    let pool = POOLS[rng.below(POOLS.len())];
                    text.push_str(pool[rng.below(pool.len())]);
                }
            }
            7 => text.push((b'a' + rng.below(26) as u8) as char),
            _ => {
                text.push_str(pool[rng.below(pool.len())]);
            }
        }
    }
    text
}
