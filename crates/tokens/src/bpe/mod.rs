//! Byte-pair encoding of one piece of text, in time linear in its length.
//!
//! The textbook algorithm merges the pair of lowest rank again and again, which takes quadratic time on long
//! pieces (or a heap). Here tokens are laid from left to right instead: the longest token that starts at the current
//! position and can stand beside its left neighbour ([`Vocabulary::can_be_adjacent`]); where none can, the last token
//! is taken back and a shorter one tried. Every prefix has exactly one encoding, so a position that was given up
//! once is dead for good and each position is left at most once. The idea is that of the `bpe` crate and its
//! authors' article "So many tokens, so little time". Not here: splitting text into pieces (see [`crate::split`]).

mod char_trie;
mod packed;
mod table;
mod trie;
mod vocabulary;
mod whole_tokens;

pub(crate) use packed::take_leb128;
pub(crate) use vocabulary::Vocabulary;

use trie::NONE;

/// Working memory of an encoder, reused from piece to piece.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    tokens: Vec<u32>,
    dead: Vec<u64>,
}

impl Scratch {
    fn reset(&mut self, length: usize) {
        self.tokens.clear();
        self.dead.clear();
        self.dead.resize(length / 64 + 1, 0);
    }

    #[inline]
    fn is_dead(&self, at: usize) -> bool {
        let bits = self.dead.get(at / 64).copied().unwrap_or(0);
        bits >> (at % 64) & 1 == 1
    }

    fn mark_dead(&mut self, at: usize) {
        if let Some(bits) = self.dead.get_mut(at / 64) {
            *bits |= 1 << (at % 64);
        }
    }
}

impl Vocabulary {
    /// How many tokens one piece encodes to.
    #[inline]
    pub(crate) fn count_piece(&self, piece: &[u8], scratch: &mut Scratch) -> usize {
        if self.is_whole_token(piece) {
            return 1;
        }
        self.encode_piece(piece, scratch).len()
    }

    /// The tokens of one piece.
    pub(crate) fn encode_piece<'s>(&self, piece: &[u8], scratch: &'s mut Scratch) -> &'s [u32] {
        scratch.reset(piece.len());
        let mut at = 0;
        let mut candidate = self.longest_prefix(piece);
        while at < piece.len() {
            match self.longest_fitting_token(at, candidate, scratch) {
                Some(token) => {
                    scratch.tokens.push(token);
                    at += self.token_length(token);
                    candidate = self.longest_prefix(piece.get(at..).unwrap_or_default());
                }
                None => {
                    scratch.mark_dead(at);
                    // Every byte is a token, so the start is never given up.
                    let Some(last) = scratch.tokens.pop() else {
                        debug_assert!(false, "the empty prefix is dead");
                        break;
                    };
                    at -= self.token_length(last);
                    candidate = self.shorter_prefix(last);
                }
            }
        }
        &scratch.tokens
    }

    /// The longest token, `candidate` or shorter, that can stand at `at` behind the tokens laid so far.
    #[inline]
    fn longest_fitting_token(
        &self,
        at: usize,
        mut candidate: u32,
        scratch: &Scratch,
    ) -> Option<u32> {
        let before = scratch.tokens.last().copied();
        while candidate != NONE {
            let end = at + self.token_length(candidate);
            if !scratch.is_dead(end)
                && before.is_none_or(|before| self.can_be_adjacent(before, candidate))
            {
                return Some(candidate);
            }
            candidate = self.shorter_prefix(candidate);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vocabularies() -> [(Vocabulary, &'static bpe_openai::Tokenizer); 2] {
        let unpack = |packed| Vocabulary::unpack(packed).unwrap();
        [
            (
                unpack(include_bytes!("../../data/o200k_base.bpe")),
                bpe_openai::o200k_base(),
            ),
            (
                unpack(include_bytes!("../../data/cl100k_base.bpe")),
                bpe_openai::cl100k_base(),
            ),
        ]
    }

    #[test]
    fn vocabularies_are_those_of_the_oracle() {
        for (ours, theirs) in vocabularies() {
            let count = theirs.bpe.num_tokens() as u32;
            for token in 0..count {
                let bytes = theirs.bpe.token_bytes(token);
                assert_eq!(ours.token_bytes(token), bytes, "{token}");
                assert_eq!(ours.whole_token(bytes), Some(token));
                // By merging as well, not only by looking the word up.
                assert_eq!(
                    ours.encode_piece(bytes, &mut Scratch::default()),
                    [token],
                    "{bytes:?}"
                );
            }
            assert!(ours.token_bytes(count).is_empty());
        }
    }

    #[test]
    fn raw_bytes_encode_like_the_oracle() {
        let vocabularies = vocabularies();
        // Pieces need not be valid UTF-8, and few distinct bytes make many merges compete.
        let pieces = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..60),
            proptest::collection::vec(97u8..100, 0..300),
            proptest::collection::vec(
                prop_oneof![Just(0xe4u8), 0xb0u8..0xc0, 0x80u8..0x90],
                0..120
            ),
            proptest::collection::vec(prop_oneof![Just(b' '), Just(b'='), Just(b'\n')], 0..300),
        ];
        let config = ProptestConfig {
            cases: 4_000,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        proptest::test_runner::TestRunner::new(config)
            .run(&pieces, |piece| {
                let mut scratch = Scratch::default();
                for (ours, theirs) in &vocabularies {
                    let expected = theirs.bpe.encode_via_bitfield(&piece);
                    prop_assert_eq!(ours.encode_piece(&piece, &mut scratch), expected.as_slice());
                    prop_assert_eq!(ours.count_piece(&piece, &mut scratch), expected.len());
                }
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn a_vocabulary_of_bytes_counts_bytes() {
        let bytes = Vocabulary::of_bytes();
        assert_eq!(bytes.count_piece(b"hello", &mut Scratch::default()), 5);
    }
}
