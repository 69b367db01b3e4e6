//! The encodings whose vocabulary is public.
//!
//! The vocabularies are those of OpenAI's tiktoken (MIT); see `data/README.md`.

use std::sync::OnceLock;

use contexture_catalogue::Encoding;

use crate::bpe::{Scratch, Vocabulary};
use crate::count::TokenCount;
use crate::counter::TokenCounter;
use crate::split::{SplitPattern, TextPieces};

/// Counts exactly, in time linear in the text.
///
/// There is one per encoding and process; its tables (about 17 MB for `o200k_base`) are made when it first counts, or by
/// [`Self::load_tables`].
#[derive(Debug)]
pub struct ExactCounter {
    encoding: Encoding,
    packed: &'static [u8],
    pattern: SplitPattern,
    vocabulary: OnceLock<Vocabulary>,
}

static O200K_BASE: ExactCounter = ExactCounter {
    encoding: Encoding::O200kBase,
    packed: include_bytes!("../data/o200k_base.bpe"),
    pattern: SplitPattern::O200k,
    vocabulary: OnceLock::new(),
};

static CL100K_BASE: ExactCounter = ExactCounter {
    encoding: Encoding::Cl100kBase,
    packed: include_bytes!("../data/cl100k_base.bpe"),
    pattern: SplitPattern::Cl100k,
    vocabulary: OnceLock::new(),
};

impl ExactCounter {
    /// The counter of `o200k_base`: OpenAI from GPT-4o on.
    #[must_use]
    pub fn o200k_base() -> &'static Self {
        &O200K_BASE
    }

    /// The counter of `cl100k_base`: GPT-4 and GPT-3.5.
    #[must_use]
    pub fn cl100k_base() -> &'static Self {
        &CL100K_BASE
    }

    /// Makes the tables now instead of at the first count.
    pub fn load_tables(&self) {
        self.vocabulary();
    }

    /// The numbers of the tokens of a text, in order.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let vocabulary = self.vocabulary();
        let mut scratch = Scratch::default();
        let mut tokens = Vec::with_capacity(text.len() / 4);
        for piece in TextPieces::new(self.pattern, text) {
            match vocabulary.whole_token(piece) {
                Some(token) => tokens.push(token),
                None => tokens.extend_from_slice(vocabulary.encode_piece(piece, &mut scratch)),
            }
        }
        tokens
    }

    /// Calls `each` with every piece of the text and the number of its tokens.
    pub(crate) fn for_each_piece(&self, text: &str, mut each: impl FnMut(&[u8], u64)) {
        let vocabulary = self.vocabulary();
        let mut scratch = Scratch::default();
        for piece in TextPieces::new(self.pattern, text) {
            each(piece, vocabulary.count_piece(piece, &mut scratch) as u64);
        }
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.vocabulary.get_or_init(|| {
            let vocabulary = Vocabulary::unpack(self.packed);
            debug_assert!(vocabulary.is_ok(), "{}: {vocabulary:?}", self.encoding);
            // Every byte a token: far too many, but safe. A test unpacks the data, so this never happens.
            vocabulary.unwrap_or_else(|_| Vocabulary::of_bytes())
        })
    }
}

impl TokenCounter for ExactCounter {
    fn name(&self) -> &str {
        self.encoding.name()
    }

    fn count(&self, text: &str) -> TokenCount {
        let mut count = 0;
        self.for_each_piece(text, |_, tokens| count += tokens);
        TokenCount::exact(count)
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<TokenCount> {
        let vocabulary = self.vocabulary();
        let longest = vocabulary.longest_token().max(1);
        let mut scratch = Scratch::default();
        let mut count = 0u64;
        let mut rest = text.len();
        for piece in TextPieces::new(self.pattern, text) {
            // What is left has at least one token for every `longest` bytes, so a text far too long ends here at once.
            if count.saturating_add(rest.div_ceil(longest) as u64) > limit {
                return None;
            }
            count += vocabulary.count_piece(piece, &mut scratch) as u64;
            rest -= piece.len();
        }
        (count <= limit).then_some(TokenCount::exact(count))
    }
}
