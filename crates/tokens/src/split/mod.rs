//! Cutting text into the pieces that are encoded one by one.
//!
//! The splitting patterns of `o200k_base` and `cl100k_base` (as published in tiktoken's `openai_public.py`) written
//! out as code. The regular expressions need backtracking and look-ahead; each function here says which alternative
//! it stands for and why no other could have matched first. Invariant: a piece is never empty, pieces follow each
//! other without gap, and no byte is looked at more than a fixed number of times. Special-token text is ordinary
//! text here.

mod char_class;

use char_class::{
    CASELESS, CharClasses, LETTER, LOWER, MARK, NEWLINE, NUMBER, OTHER, UPPER, WHITE,
};

/// Which pattern splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitPattern {
    /// The pattern of `cl100k_base`.
    Cl100k,
    /// The pattern of `o200k_base`.
    O200k,
}

/// The pieces of a text, as byte slices on character boundaries.
#[derive(Debug)]
pub(crate) struct TextPieces<'t> {
    classes: &'static CharClasses,
    pattern: SplitPattern,
    text: &'t [u8],
    at: usize,
}

impl<'t> TextPieces<'t> {
    pub(crate) fn new(pattern: SplitPattern, text: &'t str) -> Self {
        Self {
            classes: CharClasses::get(),
            pattern,
            text: text.as_bytes(),
            at: 0,
        }
    }
}

impl<'t> Iterator for TextPieces<'t> {
    type Item = &'t [u8];

    #[inline]
    fn next(&mut self) -> Option<&'t [u8]> {
        let scan = PieceScanner {
            classes: self.classes,
            text: self.text,
        };
        let start = self.at;
        self.at = match self.pattern {
            SplitPattern::O200k => scan.o200k_piece_end(start)?,
            SplitPattern::Cl100k => scan.cl100k_piece_end(start)?,
        };
        debug_assert!(self.at > start);
        self.text.get(start..self.at)
    }
}

#[derive(Clone, Copy)]
struct PieceScanner<'t> {
    classes: &'static CharClasses,
    text: &'t [u8],
}

/// What a run of letters matched.
enum LetterRun {
    /// The first alternative: it ends in a letter that may be lower case.
    Lower(usize),
    /// The second alternative: capitals only.
    Upper(usize),
}

impl PieceScanner<'_> {
    /// The end of the piece of `o200k_base` that begins at `start`, `None` at the end of the text.
    #[inline]
    fn o200k_piece_end(self, start: usize) -> Option<usize> {
        let (class, length) = self.classes.class_and_length(self.text, start);
        if length == 0 {
            return None;
        }
        let end = if class & LETTER != 0 {
            self.letter_run(start)
        } else if class & (NUMBER | NEWLINE) != 0 {
            None
        } else {
            // One character other than a letter, number or line break may lead the word.
            match self.letter_run(start + length) {
                Some(LetterRun::Upper(_)) | None if class == MARK => self.letter_run(start),
                word => word,
            }
        };
        match end {
            Some(LetterRun::Lower(end) | LetterRun::Upper(end)) => {
                Some(end + self.contraction_length(end).unwrap_or(0))
            }
            None => Some(self.other_piece_end(start, class, length, SplitPattern::O200k)),
        }
    }

    /// The end of the piece of `cl100k_base` that begins at `start`, `None` at the end of the text.
    #[inline]
    fn cl100k_piece_end(self, start: usize) -> Option<usize> {
        let (class, length) = self.classes.class_and_length(self.text, start);
        if length == 0 {
            return None;
        }
        if let Some(length) = self.contraction_length(start) {
            return Some(start + length);
        }
        if class & (NUMBER | NEWLINE) == 0 {
            let body = if class & LETTER != 0 {
                start
            } else {
                start + length
            };
            let end = self.run_end(body, LETTER);
            if end > body {
                return Some(end);
            }
        }
        Some(self.other_piece_end(start, class, length, SplitPattern::Cl100k))
    }

    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, else
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`.
    ///
    /// The first run is greedy and gives back characters until the second can begin: at the lower-case letter behind
    /// it, or else at its own last character that both sets contain, where the second run also ends.
    #[inline]
    fn letter_run(self, start: usize) -> Option<LetterRun> {
        let mut at = start;
        let mut shared = None;
        loop {
            let (class, length) = self.classes.class_and_length(self.text, at);
            if class & (UPPER | CASELESS | MARK) == 0 {
                if class & LOWER != 0 {
                    return Some(LetterRun::Lower(
                        self.run_end(at + length, LOWER | CASELESS | MARK),
                    ));
                }
                break;
            }
            at += length;
            if class & (CASELESS | MARK) != 0 {
                shared = Some(at);
            }
        }
        match shared {
            Some(end) => Some(LetterRun::Lower(end)),
            None => (at > start).then_some(LetterRun::Upper(at)),
        }
    }

    /// The alternatives that both patterns end with: numbers, other characters, white space.
    #[inline]
    fn other_piece_end(
        self,
        start: usize,
        class: u8,
        length: usize,
        pattern: SplitPattern,
    ) -> usize {
        if class == NUMBER {
            // \p{N}{1,3}
            let mut end = start + length;
            for _ in 0..2 {
                let (class, length) = self.classes.class_and_length(self.text, end);
                if class != NUMBER {
                    break;
                }
                end += length;
            }
            return end;
        }
        // ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, without the slash in `cl100k_base`
        let body = if self.text.get(start) == Some(&b' ') {
            start + 1
        } else {
            start
        };
        let end = self.run_end(body, OTHER | MARK);
        if end > body {
            return self.newlines_end(end, pattern);
        }
        self.whitespace_end(start, length, pattern)
    }

    /// `[\r\n/]*` or `[\r\n]*`.
    #[inline]
    fn newlines_end(self, start: usize, pattern: SplitPattern) -> usize {
        let tail = self.text.get(start..).unwrap_or_default();
        let length = tail
            .iter()
            .take_while(|&&byte| match byte {
                b'\r' | b'\n' => true,
                b'/' => pattern == SplitPattern::O200k,
                _ => false,
            })
            .count();
        start + length
    }

    /// `\s*[\r\n]+`, else `\s+(?!\S)`, else `\s+`; in `cl100k_base`, `\s+$` comes before all of them.
    fn whitespace_end(self, start: usize, first: usize, pattern: SplitPattern) -> usize {
        let mut end = start;
        let mut last = start;
        let mut broken = None;
        loop {
            let (class, length) = self.classes.class_and_length(self.text, end);
            if class & WHITE == 0 {
                break;
            }
            last = end;
            end += length;
            if class == NEWLINE {
                broken = Some(end);
            }
        }
        let all = end == self.text.len();
        match broken {
            Some(end) if pattern == SplitPattern::O200k || !all => end,
            _ if all => end,
            // The run gives its last character back to the word behind it, unless nothing would be left.
            _ if last > start => last,
            _ => start + first,
        }
    }

    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`: the length of a contraction at `start`.
    #[inline]
    fn contraction_length(self, start: usize) -> Option<usize> {
        let (&mark, tail) = self.text.get(start..)?.split_first()?;
        if mark != b'\'' {
            return None;
        }
        let letter = |at: usize| tail.get(at).map_or(0, u8::to_ascii_lowercase);
        match (letter(0), letter(1)) {
            (b's' | b't' | b'm' | b'd', _) => Some(2),
            (b'r' | b'v', b'e') | (b'l', b'l') => Some(3),
            // U+017F LATIN SMALL LETTER LONG S is an s without regard to case.
            (0xc5, 0xbf) => Some(3),
            _ => None,
        }
    }

    /// The end of the run of characters of these classes that begins at `start`.
    #[inline]
    fn run_end(self, start: usize, classes: u8) -> usize {
        let mut at = start;
        loop {
            let (class, length) = self.classes.class_and_length(self.text, at);
            if class & classes == 0 {
                return at;
            }
            at += length;
        }
    }
}
