//! Sentences, and the plain form in which their words are compared.
//!
//! Not here: what the words mean.

/// Longest sentence that can be a rule, in bytes. What is longer is data.
const MAX_SENTENCE: usize = 600;
/// Marks that close what stands around a sentence.
const CLOSING: &str = "\")”»*_'’‘›‹";
/// Words that are written with an apostrophe before them.
const ELISIONS: &[&str] = &[
    "cause", "coz", "cuz", "til", "em", "n", "tis", "twas", "bout",
];
/// What stands for quoted words and code in the plain form.
const MASK: char = '_';

/// A sentence of a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sentence<'t> {
    /// The sentence as it was written, on one line.
    pub(super) text: &'t str,
    /// The part of `masked` that is this sentence.
    start: usize,
    /// Whether its line is an entry of a list.
    pub(super) is_list_entry: bool,
}

/// A passage with the places where the person's words are not their own: within quotation marks and code.
pub(super) struct MaskedText<'t> {
    text: &'t str,
    /// For each byte whether it is masked.
    mask: Vec<bool>,
}

/// What opens a quotation or code, by what ends it.
#[derive(Clone, Copy)]
struct QuotationMark {
    closing: &'static [char],
    /// Whether it may be an apostrophe, which closes nothing within a word.
    is_single: bool,
    /// Whether the end of its line ends it, as for code and `'`; other quotations go on over lines.
    ends_with_line: bool,
    /// Whether it opens nothing unless something closes it.
    must_close: bool,
}

impl QuotationMark {
    /// The mark that a character is between two others, if it opens something.
    fn opened_by(c: char, before: char, next: char) -> Option<Self> {
        let double = |closing| Self {
            closing,
            is_single: false,
            ends_with_line: false,
            must_close: false,
        };
        let single = |closing| Self {
            is_single: true,
            must_close: true,
            ..double(closing)
        };
        // Within a word it is a unit or an apostrophe: `5"`, `don't`.
        let begins_word = before.is_whitespace() || "([{:—–-".contains(before);
        let begins_single = begins_word && !next.is_whitespace();
        Some(match c {
            '`' => Self {
                ends_with_line: true,
                must_close: true,
                ..double(&['`'])
            },
            '“' => double(&['”']),
            '„' => double(&['“', '”']),
            '«' => double(&['»']),
            '»' => double(&['«']),
            '"' if begins_word => double(&['"']),
            // "'cause" and "users'" may stand in one text, so a line is its longest reach.
            '\'' if begins_single => Self {
                ends_with_line: true,
                ..single(&['\''])
            },
            '‘' if begins_single => single(&['’']),
            '‚' if begins_single => single(&['‘', '’']),
            '‹' if begins_single => single(&['›']),
            '›' if begins_single => single(&['‹']),
            _ => return None,
        })
    }

    fn is_closed_by(self, c: char, before: char, next: char) -> bool {
        // An apostrophe within a word closes nothing.
        let ends_word = !before.is_whitespace() && !next.is_alphanumeric();
        self.closing.contains(&c) && (ends_word || !self.is_single)
    }
}

/// Whether a text begins with an apostrophe for letters that are left out, rather than with a quotation.
fn is_elision(text: Option<&str>) -> bool {
    let mut chars = text.unwrap_or_default().chars();
    chars.next();
    let word = chars.take_while(|c| c.is_alphanumeric());
    let word: String = word.flat_map(char::to_lowercase).collect();
    word.starts_with(|c: char| c.is_ascii_digit()) || ELISIONS.contains(&word.as_str())
}

impl<'t> MaskedText<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut masked = Self {
            text,
            mask: vec![false; text.len()],
        };
        masked.mask_pairs();
        masked.mask_elements();
        masked
    }

    /// Masks what stands between quotation marks or backticks.
    fn mask_pairs(&mut self) {
        let mut open: Option<(QuotationMark, usize)> = None;
        let mut before = ' ';
        let mut chars = self.text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map_or(' ', |(_, next)| *next);
            match open {
                Some((mark, from)) if mark.is_closed_by(c, before, next) => {
                    self.mask_range(from, at);
                    open = None;
                }
                Some((mark, _)) if c == '\n' && mark.ends_with_line => open = None,
                Some(_) => {}
                // A letter left out: `'cause`, `'90s`.
                None if "'‘’".contains(c) && is_elision(self.text.get(at..)) => {}
                None => {
                    let mark = QuotationMark::opened_by(c, before, next);
                    open = mark.map(|mark| (mark, at + c.len_utf8()));
                }
            }
            before = c;
        }
        // A quotation that nothing closes goes on to the end of its line.
        if let Some((mark, from)) = open
            && !mark.must_close
        {
            let rest = self.text.get(from..).unwrap_or_default();
            let end = rest.find('\n').map_or(self.text.len(), |line| from + line);
            self.mask_range(from, end);
        }
    }

    /// Masks elements on one line: `<x>…</x>`.
    fn mask_elements(&mut self) {
        let text = self.text;
        let mut from = 0;
        while let Some(open) = text.get(from..).and_then(|rest| rest.find('<')) {
            let start = from + open;
            from = start + 1;
            let rest = text.get(start + 1..).unwrap_or_default();
            let name_end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let name = rest.get(..name_end.unwrap_or(0)).unwrap_or_default();
            let line = rest.lines().next().unwrap_or_default();
            let closing = (!name.is_empty()).then(|| line.find(&format!("</{name}>")));
            if let Some(end) = closing.flatten() {
                self.mask_range(start + 1, start + 1 + end);
                from = start + 1 + end;
            }
        }
    }

    fn mask_range(&mut self, from: usize, to: usize) {
        if let Some(range) = self.mask.get_mut(from..to) {
            range.fill(true);
        }
    }

    /// The sentences: they end at line ends, and behind `.`, `!` or `?` before white space.
    pub(super) fn sentences(&self) -> Vec<Sentence<'t>> {
        let mut sentences = Vec::new();
        let mut start = 0;
        let mut line_start = true;
        let mut is_list_entry = false;
        let mut chars = self.text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let is_masked = self.mask.get(at) == Some(&true);
            let is_line_end = is_line_end(c);
            let ends = ".!?…。！？".contains(c) && !is_masked && !self.is_abbreviation(at);
            let next = chars.peek().map(|(_, next)| *next);
            let ends =
                ends && next.is_none_or(|next| next.is_whitespace() || CLOSING.contains(next));
            if !ends && !is_line_end && next.is_some() {
                continue;
            }
            let mut end = at + c.len_utf8();
            // Marks that close what stands around the sentence belong to it.
            while ends && let Some((_, mark)) = chars.next_if(|(_, next)| CLOSING.contains(*next)) {
                end += mark.len_utf8();
            }
            let raw = self.text.get(start..end).unwrap_or_default();
            if line_start {
                is_list_entry = list_mark(raw) > 0;
            }
            self.push_sentence(raw, start, line_start, is_list_entry, &mut sentences);
            line_start = is_line_end;
            start = end;
        }
        sentences
    }

    /// Whether a full stop ends an abbreviation or a list number: one letter or a number alone.
    fn is_abbreviation(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let word = before
            .rsplit(|c: char| c.is_whitespace() || c == '(')
            .next()
            .unwrap_or_default();
        let is_number = word.chars().all(|c| c.is_ascii_digit());
        let starts_line = before
            .trim_end_matches(word)
            .trim_end_matches(' ')
            .chars()
            .next_back()
            .is_none_or(is_line_end);
        (is_number && starts_line)
            || matches!(
                word.to_ascii_lowercase().as_str(),
                "e.g"
                    | "i.e"
                    | "z.b"
                    | "p.ej"
                    | "etc"
                    | "vs"
                    | "dr"
                    | "mr"
                    | "mrs"
                    | "ms"
                    | "sr"
                    | "sra"
                    | "mme"
                    | "bzw"
                    | "ca"
                    | "nr"
                    | "no"
                    | "st"
                    | "u.a"
                    | "d.h"
                    | "p.ex"
                    | "b"
            )
    }

    fn push_sentence(
        &self,
        raw: &'t str,
        start: usize,
        line_start: bool,
        is_list_entry: bool,
        sentences: &mut Vec<Sentence<'t>>,
    ) {
        let marks = if line_start { list_mark(raw) } else { 0 };
        let text = raw.get(marks..).unwrap_or_default();
        let lead = text.len() - text.trim_start().len();
        let text = text.trim();
        if !text.is_empty() {
            sentences.push(Sentence {
                text,
                start: start + marks + lead,
                is_list_entry,
            });
        }
    }

    /// The plain form of a sentence: lower case, without accents, single spaces, what is masked as `_`. `None` for what is too
    /// long to be a rule, or cannot stand on one line.
    pub(super) fn plain_form(&self, sentence: &Sentence<'_>) -> Option<String> {
        if sentence.text.len() > MAX_SENTENCE {
            return None;
        }
        let mut plain = String::with_capacity(sentence.text.len());
        for (at, c) in sentence.text.char_indices() {
            if self.mask.get(sentence.start + at) == Some(&true) {
                if !plain.ends_with(MASK) {
                    plain.push(MASK);
                }
            } else {
                push_plain(c, &mut plain);
            }
        }
        Some(plain.trim().to_owned())
    }
}

/// Whether a character ends a line, by Unicode's rules.
const fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The length of the mark before an entry of a list, or of a heading.
fn list_mark(line: &str) -> usize {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let bullet = text.trim_start_matches(['-', '*', '•', '–', '+', '#', '·']);
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits
        .strip_prefix(['.', ')', ':'])
        .filter(|_| digits.len() < text.len());
    let rest = match numbered {
        Some(rest) => rest,
        None => bullet,
    };
    // `**bold**` begins no list, and neither does `-5`.
    if rest.len() < text.len() && rest.starts_with(' ') {
        indent + text.len() - rest.trim_start().len()
    } else {
        0
    }
}

/// Appends a character in the plain form.
pub(super) fn push_plain(c: char, plain: &mut String) {
    if c.is_ascii() {
        match c {
            _ if c.is_ascii_whitespace() || c.is_ascii_control() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            // Marks for bold text.
            '*' => {}
            _ => plain.push(c.to_ascii_lowercase()),
        }
        return;
    }
    let folded = match c {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'À' | 'Á' | 'Â' | 'Ã' | 'Å' => "a",
        'ä' | 'Ä' => "ae",
        'ç' | 'Ç' => "c",
        'è' | 'é' | 'ê' | 'ë' | 'È' | 'É' | 'Ê' | 'Ë' => "e",
        'ì' | 'í' | 'î' | 'ï' | 'Ì' | 'Í' | 'Î' | 'Ï' => "i",
        'ñ' | 'Ñ' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'Ò' | 'Ó' | 'Ô' | 'Õ' => "o",
        'ö' | 'Ö' => "oe",
        'ù' | 'ú' | 'û' | 'Ù' | 'Ú' | 'Û' => "u",
        'ü' | 'Ü' => "ue",
        'ß' | 'ẞ' => "ss",
        'œ' | 'Œ' => "oe",
        'æ' | 'Æ' => "ae",
        '’' | '‘' | 'ʼ' | '´' => "'",
        '“' | '”' | '„' | '«' | '»' => "\"",
        '–' | '—' => "-",
        '…' => "...",
        '¿' | '¡' => "",
        // Accents that stand apart from their letters.
        '\u{300}'..='\u{36f}' => "",
        _ if c.is_whitespace() => " ",
        _ if c.is_alphanumeric() => "x",
        _ => "",
    };
    if folded == " " {
        push_plain(' ', plain);
    } else {
        plain.push_str(folded);
    }
}

/// A text in the plain form, nothing masked.
pub(super) fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        push_plain(c, &mut plain);
    }
    plain
}
