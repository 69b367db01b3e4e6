//! Generated messages for benchmarks and tests: words as frequent as words are, the n-th one in n.
//!
//! Not here: what is measured with them.

use contexture_ir::{Item, Message, NodeId, Role};
use contexture_store::NewItem;

use crate::chat::NOW;

/// What messages consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// As [`Writing::Latin`], in items in which nothing is searched.
    Nothing,
    /// Words of Latin letters.
    Latin,
    /// Words of one or two characters.
    Chinese,
    /// The same characters in any order: nearly every pair of them is new.
    Characters,
}

/// A generator of texts of some 140 bytes; the same seed gives the same texts.
#[derive(Clone, Debug)]
pub struct GeneratedWords(u64);

impl Default for GeneratedWords {
    fn default() -> Self {
        Self::with_seed(88_172_645_463_325_252)
    }
}

impl GeneratedWords {
    /// Returns a generator with a seed, which is not 0.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let share = (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
        ((below as f64).powf(share) as usize).min(below) - 1
    }

    /// Returns the next text.
    pub fn text(&mut self, writing: Writing) -> String {
        let mut text = String::new();
        while text.len() < 140 {
            match writing {
                Writing::Characters => {
                    text.push(character(self.number(3000)));
                    if self.0.is_multiple_of(12) {
                        text.push('，');
                    }
                }
                Writing::Chinese => {
                    // A word is one character or two, of which the same stand together in others.
                    let n = self.number(30_000);
                    text.push(character(n % 3000));
                    if n >= 300 {
                        text.push(character(n.isqrt() * 7 % 3000));
                    }
                    if self.0.is_multiple_of(8) {
                        text.push('，');
                    }
                }
                Writing::Latin | Writing::Nothing => {
                    text.push_str(&nth_word(self.number(30_000)));
                    text.push(' ');
                }
            }
        }
        text
    }

    /// Returns a message of a user with the next text, with the `n`-th id.
    pub fn item(&mut self, n: usize, writing: Writing) -> NewItem {
        let text = self.text(writing);
        let item = Item::Message(Message::text(Role::User, &text));
        let id = NodeId::derive("bench", &[&n.to_le_bytes()]);
        let json = match writing {
            Writing::Nothing => item.to_json().replace("message", "x:other"),
            Writing::Latin | Writing::Chinese | Writing::Characters => item.to_json(),
        };
        NewItem::new(id, &item, json, NOW)
    }
}

fn character(n: usize) -> char {
    char::from_u32(0x4E00 + n as u32).unwrap()
}

/// The n-th word: the more frequent, the shorter.
#[must_use]
pub fn nth_word(n: usize) -> String {
    let mut rest = n + 3;
    let mut word = String::new();
    while rest > 0 {
        word.push(char::from(b"etaoinsrhl"[rest % 10]));
        word.push(char::from(b"aeiou"[rest % 5]));
        rest /= 10;
    }
    word
}
