//! Sorting text into the classes that tokenizers treat differently.
//!
//! One vocabulary's count times a constant is a bad estimate of another's: the ratio differs by half between English
//! and emoji. So tokens are tallied per class: scripts by the first character of each piece, and for Latin text by the
//! look of the line the piece begins on. Both passes are linear and look at nothing but the text.

/// A class of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextClass {
    /// Sentences in Latin letters.
    Prose,
    /// Program text: many operators and brackets.
    Code,
    /// JSON and its like: quotes, colons, commas.
    Json,
    /// Chinese, Japanese, Korean.
    Cjk,
    /// Other scripts, emoji, and dense strings: hashes, base64.
    Other,
    /// Runs of ASCII digits, counted by the digit: some vocabularies take three to a token, some one.
    Digits,
    /// Words in capitals alone, which vocabularies hold fewer of: some cut them letter by letter.
    Capitals,
    /// White space alone, counted by the runs of one character: a new line and its indentation are two.
    Blank,
}

impl TextClass {
    pub(crate) const COUNT: usize = 8;

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Prose => 0,
            Self::Code => 1,
            Self::Json => 2,
            Self::Cjk => 3,
            Self::Other => 4,
            Self::Digits => 5,
            Self::Blank => 6,
            Self::Capitals => 7,
        }
    }
}

/// Gives the class of one piece after the other.
#[derive(Debug)]
pub(crate) struct Classifier<'t> {
    text: &'t [u8],
    at: usize,
    line_end: usize,
    line: TextClass,
}

impl<'t> Classifier<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            line_end: 0,
            line: TextClass::Prose,
        }
    }

    /// The class of the next piece; pieces come in order and without gaps.
    pub(crate) fn classify_piece(&mut self, piece: &[u8]) -> TextClass {
        if self.at >= self.line_end {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let length = rest
                .iter()
                .position(|&byte| byte == b'\n')
                .map_or(rest.len(), |newline| newline + 1);
            self.line = classify_line(rest.get(..length).unwrap_or_default());
            self.line_end = self.at + length;
        }
        self.at += piece.len();
        if piece.iter().all(u8::is_ascii_digit) {
            TextClass::Digits
        } else if is_blank(piece) {
            TextClass::Blank
        } else if is_in_capitals(piece) {
            TextClass::Capitals
        } else {
            script_class(piece).unwrap_or(self.line)
        }
    }
}

/// In which unit a piece of a class is counted, given its tokens.
pub(crate) fn unit_count(class: TextClass, piece: &[u8], tokens: u64) -> u64 {
    match class {
        TextClass::Digits => piece.len() as u64,
        TextClass::Blank => run_count(piece),
        _ => tokens,
    }
}

/// The runs of one character in white space, 31 of it at most; what is not ASCII counts by the byte.
fn run_count(piece: &[u8]) -> u64 {
    const LONGEST: u64 = 31;
    piece
        .chunk_by(|a, b| a == b && a.is_ascii())
        .map(|run| (run.len() as u64).div_ceil(LONGEST))
        .sum()
}

/// Whether a piece is a word of at least two capital letters. One alone begins a sentence or is a name of one letter.
fn is_in_capitals(piece: &[u8]) -> bool {
    // Most pieces are told by their last letter.
    piece.last().is_some_and(u8::is_ascii_uppercase)
        && piece
            .iter()
            .filter(|byte| byte.is_ascii_uppercase())
            .count()
            > 1
        && !piece
            .iter()
            .any(|byte| byte.is_ascii_lowercase() || !byte.is_ascii())
}

fn is_blank(piece: &[u8]) -> bool {
    // Most pieces are told by their first byte or, behind a space, by their last.
    let ink = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    if ink(piece.first()) || ink(piece.last()) {
        return false;
    }
    std::str::from_utf8(piece).is_ok_and(|text| text.chars().all(char::is_whitespace))
}

/// The class by script of a piece's first character that has one, `None` for Latin and signs.
fn script_class(piece: &[u8]) -> Option<TextClass> {
    if piece.iter().all(|&byte| byte < 0xc9) {
        // ASCII, and Latin up to U+0240.
        return None;
    }
    let mut rest = piece;
    while let Some(at) = rest.iter().position(|&byte| byte >= 0xc9) {
        rest = rest.get(at..)?;
        if let Some(class) = leading_script_class(rest) {
            return Some(class);
        }
        rest = rest.get(1..)?;
    }
    None
}

/// The class by script of the character at the start, which is beyond U+0240.
fn leading_script_class(bytes: &[u8]) -> Option<TextClass> {
    let (&first, rest) = bytes.split_first()?;
    let tail = |at: usize| u32::from(rest.get(at).copied().unwrap_or(0) & 0x3f);
    let code = match first {
        0xe0..=0xef => u32::from(first & 0x0f) << 12 | tail(0) << 6 | tail(1),
        0xf0.. => u32::from(first & 0x07) << 18 | tail(0) << 12 | tail(1) << 6 | tail(2),
        _ => u32::from(first & 0x1f) << 6 | tail(0),
    };
    match code {
        0x1100..=0x11ff
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7ff
        | 0xf900..=0xfaff
        | 0xff00..=0xffef
        | 0x2_0000..=0x3_ffff => Some(TextClass::Cjk),
        // Joiners and marks of direction stand between emoji and in other scripts.
        0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f => Some(TextClass::Other),
        // Latin Extended Additional, and punctuation such as quotes and dashes.
        0x1e00..=0x1eff | 0x2000..=0x206f => None,
        _ => Some(TextClass::Other),
    }
}

/// The class of a line by what it is made of.
fn classify_line(line: &[u8]) -> TextClass {
    let (mut solid, mut digits, mut quotes, mut marks, mut operators) = (0usize, 0, 0, 0, 0);
    let (mut run, mut longest) = (0usize, 0);
    for &byte in line {
        if byte.is_ascii_whitespace() {
            run = 0;
            continue;
        }
        solid += 1;
        match byte {
            b'0'..=b'9' => digits += 1,
            b'"' => quotes += 1,
            b':' | b',' | b'[' | b']' => marks += 1,
            b'{' | b'}' => {
                marks += 1;
                operators += 1;
            }
            b'(' | b')' | b';' | b'=' | b'<' | b'>' | b'+' | b'*' | b'/' | b'&' | b'|' | b'!'
            | b'_' | b'#' | b'$' | b'\\' | b'`' => operators += 1,
            _ => {}
        }
        run = if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-') {
            run + 1
        } else {
            0
        };
        longest = longest.max(run);
    }
    if quotes >= 2 && marks * 2 >= quotes && (quotes + marks) * 12 >= solid {
        TextClass::Json
    } else if longest >= 48 || digits * 3 >= solid.max(1) {
        TextClass::Other
    } else if (operators + marks / 2) * 10 >= solid.max(1) {
        TextClass::Code
    } else {
        TextClass::Prose
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_classed_by_their_look() {
        for (line, expected) in [
            (
                "The quick brown fox jumps over the lazy dog, twice.",
                TextClass::Prose,
            ),
            ("She said \"no\" and left; nobody minded.", TextClass::Prose),
            (
                "    let mut found: Vec<String> = Vec::new();",
                TextClass::Code,
            ),
            ("}", TextClass::Code),
            ("def f(x): return x + 1", TextClass::Code),
            (r#"  "user_id": "mia_li_3668","#, TextClass::Json),
            (r#"{"a":1,"b":[true,null]}"#, TextClass::Json),
            ("3.14159 2.71828 1.41421", TextClass::Other),
            (
                "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
                TextClass::Other,
            ),
            ("", TextClass::Prose),
        ] {
            assert_eq!(classify_line(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn scripts_are_known_by_their_first_character() {
        for (piece, expected) in [
            ("word", None),
            (" über", None),
            ("“", None),
            (" 漢字", Some(TextClass::Cjk)),
            ("かな", Some(TextClass::Cjk)),
            ("한국", Some(TextClass::Cjk)),
            ("、", Some(TextClass::Cjk)),
            ("привет", Some(TextClass::Other)),
            (" 👍", Some(TextClass::Other)),
            ("", None),
            (" ", None),
        ] {
            assert_eq!(script_class(piece.as_bytes()), expected, "{piece:?}");
        }
    }
}
