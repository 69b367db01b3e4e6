//! Random mutations of inputs, repeatable from a seed.

/// Longest input that is made.
const LONGEST: usize = 16 << 10;
/// Deepest nesting that is made: deeper than any reader accepts.
const DEEPEST: u64 = 400;

/// Pieces that readers stumble over.
const WORDS: &[&str] = &[
    "null",
    "true",
    "\"\"",
    "\" \"",
    "[]",
    "{}",
    "[[]]",
    "{\"type\":\"text\",\"text\":\"t\"}",
    "-0",
    "1e400",
    "-1",
    "0.1",
    "18446744073709551616",
    "9223372036854775807",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\udc00\\ud800\"",
    "\u{feff}",
    "\u{2028}",
    "\u{0}",
    "\r\n",
    "\n\n",
    "e\u{301}",
    "İ",
    "\\",
    "\"",
    "{\"a\":1,\"a\":2}",
    "user",
    "assistant",
    "system",
    "tool",
    "../",
    "%2f",
    "~",
    ",",
    ":",
];

/// A small generator of random numbers: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// Returns the next number.
    const fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        let number = self.next_number() % (end.max(1) as u64);
        // Below `end`, which is a `usize`.
        usize::try_from(number).unwrap_or_default()
    }
}

/// Makes inputs out of a corpus.
#[derive(Debug)]
pub struct Mutator<'c> {
    corpus: &'c [Vec<u8>],
    random: SplitMix,
}

impl<'c> Mutator<'c> {
    /// Creates a mutator of a corpus that is not empty.
    #[must_use]
    pub const fn new(corpus: &'c [Vec<u8>], seed: u64) -> Self {
        Self {
            corpus,
            random: SplitMix(seed),
        }
    }

    /// Returns the next input: one of the corpus after one to four mutations.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick_seed().to_vec();
        for _ in 0..=self.random.below(4) {
            input = self.mutate(input);
            input.truncate(LONGEST);
        }
        input
    }

    fn pick_seed(&mut self) -> &'c [u8] {
        let index = self.random.below(self.corpus.len());
        &self.corpus[index]
    }

    fn mutate(&mut self, input: Vec<u8>) -> Vec<u8> {
        let start = self.random.below(input.len() + 1);
        let end = start + self.random.below((input.len() - start).min(64) + 1);
        // Changes of values are the most likely: they leave a document that is read to its end.
        match self.random.below(10) {
            // Cut off.
            0 => input[..start].to_vec(),
            // A region removed, or repeated.
            1 => [&input[..start], &input[end..]].concat(),
            2 => {
                let times = 1 + self.random.below(20);
                let repeated = input[start..end].repeat(times);
                [&input[..end], &repeated, &input[end..]].concat()
            }
            // One bit flipped.
            3 => {
                let mut input = input;
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= 1 << self.random.below(8);
                }
                input
            }
            // The end of another seed.
            4 => {
                let other = self.pick_seed();
                let from = self.random.below(other.len() + 1);
                [&input[..start], &other[from..]].concat()
            }
            5 => self.nest(&input, start, end),
            6 => {
                let word = WORDS[self.random.below(WORDS.len())];
                [&input[..start], word.as_bytes(), &input[start..]].concat()
            }
            7 => self.move_region(&input, start, end),
            _ => self.replace_value(&input, start),
        }
    }

    /// Puts a region into many brackets.
    fn nest(&mut self, input: &[u8], start: usize, end: usize) -> Vec<u8> {
        let depth = 1 + self.random.next_number() % DEEPEST;
        let (open, close): (&[u8], &[u8]) = match self.random.below(3) {
            0 => (b"[", b"]"),
            1 => (b"{\"a\":", b"}"),
            _ => (b"{\"content\":[", b"]}"),
        };
        let depth = usize::try_from(depth).unwrap_or(1);
        let parts = [
            &input[..start],
            &open.repeat(depth),
            &input[start..end],
            &close.repeat(depth),
            &input[end..],
        ];
        parts.concat()
    }

    /// Puts a region elsewhere, so that events and members come in another order.
    fn move_region(&mut self, input: &[u8], start: usize, end: usize) -> Vec<u8> {
        let mut rest = [&input[..start], &input[end..]].concat();
        let at = self.random.below(rest.len() + 1);
        rest.splice(at..at, input[start..end].iter().copied());
        rest
    }

    /// Replaces the JSON value that begins behind a place by another value, of the words or of the same input. The
    /// document stays well formed more often than not, so that the readers behind the syntax are reached.
    fn replace_value(&mut self, input: &[u8], from: usize) -> Vec<u8> {
        let Some(value) = find_value(input, from) else {
            return input.to_vec();
        };
        let other = self.random.below(input.len());
        let new = match find_value(input, other) {
            Some(place) if self.random.below(2) == 0 => &input[place],
            _ => WORDS[self.random.below(WORDS.len())].as_bytes(),
        };
        [&input[..value.start], new, &input[value.end..]].concat()
    }
}

/// Returns where the first JSON value behind a colon, comma or bracket stands, as far as that can be told without
/// reading the whole text.
fn find_value(input: &[u8], from: usize) -> Option<std::ops::Range<usize>> {
    let is_opener = |byte: &u8| matches!(byte, b':' | b',' | b'[');
    let opener = input.get(from..)?.iter().position(is_opener)?;
    let start = from + opener + 1;
    let mut depth = 0_usize;
    let mut is_in_string = false;
    let mut is_escaped = false;
    for (index, byte) in input.iter().enumerate().skip(start) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            _ if is_in_string => {}
            b'[' | b'{' => depth += 1,
            b',' | b']' | b'}' if depth == 0 => return Some(start..index),
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}
