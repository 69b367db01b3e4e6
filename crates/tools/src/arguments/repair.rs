//! Reading what is not quite JSON, in one pass.
//!
//! A reader of JSON that also takes what models write instead, writes JSON, and notes each difference. It never goes
//! back over a text, so its work is linear; nesting is bounded. Only called for text that is not valid.

use std::collections::BTreeSet;

use contexture_ir::{Raw, quote};

use super::outcome::{Arguments, ArgumentsError, DEPTH, ISSUES, Issue, IssueKind};
use contexture_ir::excerpt;

/// Mends `text`.
pub(super) fn repair(text: &str) -> Result<Arguments, ArgumentsError> {
    let mut reader = Reader {
        text,
        at: 0,
        out: String::with_capacity(text.len() + 8),
        issues: Vec::new(),
    };
    let fenced = reader.open_fence()?;
    reader.blank()?;
    if reader.peek() != Some('{') {
        return Err(reader.unreadable("an object"));
    }
    reader.value(DEPTH)?;
    reader.end(fenced)?;
    let Ok(raw) = Raw::parse(reader.out) else {
        debug_assert!(false, "mended text is JSON: {text:?}");
        return Err(ArgumentsError::NotAnObject {
            found: excerpt(text, 60),
        });
    };
    Ok(Arguments {
        raw,
        issues: reader.issues,
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    out: String,
    issues: Vec<Issue>,
}

/// Whether a member or element could be written.
#[derive(PartialEq)]
enum Written {
    Yes,
    /// The text ended before it.
    Cut,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn blank(&mut self) -> Result<(), ArgumentsError> {
        let rest = self.rest();
        let blank = |c: char| c.is_whitespace() || c == '\u{FEFF}';
        let length = rest.len() - rest.trim_start_matches(blank).len();
        let skipped = rest.get(..length).unwrap_or_default();
        let foreign = |c: char| !matches!(c, ' ' | '\n' | '\r' | '\t');
        if let Some(at) = skipped.find(foreign) {
            self.note(self.at + at, IssueKind::ForeignSpace)?;
        }
        self.at += length;
        Ok(())
    }

    fn note(&mut self, at: usize, kind: IssueKind) -> Result<(), ArgumentsError> {
        if self.issues.len() == ISSUES {
            return Err(ArgumentsError::TooManyFaults);
        }
        self.issues.push(Issue { at, kind });
        Ok(())
    }

    fn unreadable(&self, expected: &'static str) -> ArgumentsError {
        ArgumentsError::Unreadable {
            at: self.at,
            expected,
            found: excerpt(self.rest(), 20),
        }
    }

    /// Steps over "```json" and the like.
    fn open_fence(&mut self) -> Result<bool, ArgumentsError> {
        self.blank()?;
        let Some(rest) = self.rest().strip_prefix("```") else {
            return Ok(false);
        };
        self.note(self.at, IssueKind::CodeFence)?;
        let language = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        self.at = self.text.len() - language.len();
        Ok(true)
    }

    /// What may stand behind the object: a closing fence, brackets too many, a semicolon.
    fn end(&mut self, fenced: bool) -> Result<(), ArgumentsError> {
        loop {
            self.blank()?;
            match self.peek() {
                None => return Ok(()),
                Some('}' | ']' | ')' | ';') => {
                    self.note(self.at, IssueKind::ExtraBracket)?;
                    self.next();
                }
                Some('`') if fenced && self.rest().starts_with("```") => self.at += 3,
                Some(_) => return Err(self.unreadable("the end of the arguments")),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Written, ArgumentsError> {
        let depth = depth.checked_sub(1).ok_or(ArgumentsError::TooDeep)?;
        match self.peek() {
            None => Ok(Written::Cut),
            Some('{') => self.container(depth, '}').map(|()| Written::Yes),
            Some('[') => self.container(depth, ']').map(|()| Written::Yes),
            Some('"' | '\'') => {
                let at = self.at;
                let (text, closed) = self.string()?;
                if !closed {
                    self.note(at, IssueKind::CutString)?;
                }
                self.out.push_str(&text);
                Ok(Written::Yes)
            }
            Some('-' | '0'..='9') => self.number(),
            Some(_) => self.word(),
        }
    }

    /// An object or a list, its opening bracket next.
    fn container(&mut self, depth: usize, closing: char) -> Result<(), ArgumentsError> {
        let opening = self.next();
        self.out.extend(opening);
        let mut keys = BTreeSet::new();
        let mut first = true;
        loop {
            self.blank()?;
            match self.peek() {
                None => {
                    self.note(self.at, IssueKind::CutBrackets)?;
                    break;
                }
                Some(c) if c == closing => {
                    self.next();
                    break;
                }
                Some(',') if !first => {
                    let at = self.at;
                    self.next();
                    self.blank()?;
                    if self.peek().is_none_or(|c| c == closing) {
                        self.note(at, IssueKind::TrailingComma)?;
                        continue;
                    }
                }
                Some('}' | ']' | ',') => return Err(self.unreadable("a value or its end")),
                Some(_) if !first => self.note(self.at, IssueKind::MissingComma)?,
                Some(_) => {}
            }
            let before = self.out.len();
            if !first {
                self.out.push(',');
            }
            let written = if closing == '}' {
                self.member(depth, &mut keys)?
            } else {
                self.value(depth)?
            };
            if written == Written::Cut {
                self.out.truncate(before);
            }
            first = false;
        }
        self.out.push(closing);
        Ok(())
    }

    fn member(
        &mut self,
        depth: usize,
        keys: &mut BTreeSet<String>,
    ) -> Result<Written, ArgumentsError> {
        let start = self.at;
        let Some(key) = self.key()? else {
            self.note(start, IssueKind::CutMember)?;
            return Ok(Written::Cut);
        };
        self.blank()?;
        match self.peek() {
            None => {
                self.note(start, IssueKind::CutMember)?;
                return Ok(Written::Cut);
            }
            Some(':') => drop(self.next()),
            Some(_) => return Err(self.unreadable("`:` behind a key")),
        }
        self.blank()?;
        self.out.push_str(&key);
        self.out.push(':');
        if self.value(depth)? == Written::Cut {
            self.note(start, IssueKind::CutMember)?;
            return Ok(Written::Cut);
        }
        if !keys.insert(key) {
            self.note(start, IssueKind::RepeatedKey)?;
        }
        Ok(Written::Yes)
    }

    /// A key in JSON; `None` if the text ends within it.
    fn key(&mut self) -> Result<Option<String>, ArgumentsError> {
        let at = self.at;
        match self.peek() {
            Some('"') => {
                let (text, closed) = self.string()?;
                Ok(closed.then_some(text))
            }
            Some('\'') => {
                self.note(at, IssueKind::UnquotedKey)?;
                let (text, closed) = self.bare_string()?;
                Ok(closed.then_some(text))
            }
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => {
                let rest = self.rest();
                let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.');
                let key = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
                let key = rest.get(..key).unwrap_or_default();
                self.at += key.len();
                self.note(at, IssueKind::UnquotedKey)?;
                Ok(Some(quote(key)))
            }
            _ => Err(self.unreadable("a key")),
        }
    }

    /// A string in JSON, its quote next, and whether it was closed.
    fn string(&mut self) -> Result<(String, bool), ArgumentsError> {
        if self.peek() == Some('\'') {
            self.note(self.at, IssueKind::SingleQuotes)?;
        }
        self.bare_string()
    }

    fn bare_string(&mut self) -> Result<(String, bool), ArgumentsError> {
        let quoted = self.next();
        let mut out = String::from("\"");
        let mut controls = false;
        let closed = loop {
            let at = self.at;
            match self.next() {
                None => break false,
                closing if closing == quoted => break true,
                Some('\\') => {
                    if !self.escape(at, quoted, &mut out)? {
                        break false;
                    }
                }
                Some('"') => out.push_str("\\\""),
                Some(c) if c < ' ' => {
                    // Once a string: a page of text has a line break on every line.
                    if !controls {
                        self.note(at, IssueKind::ControlCharacter)?;
                        controls = true;
                    }
                    let escaped = quote(c.encode_utf8(&mut [0; 4]));
                    out.push_str(escaped.trim_matches('"'));
                }
                Some(c) => out.push(c),
            }
        };
        out.push('"');
        Ok((out, closed))
    }

    /// What follows a backslash at `at` within these quotes; whether the text goes on.
    fn escape(
        &mut self,
        at: usize,
        quoted: Option<char>,
        out: &mut String,
    ) -> Result<bool, ArgumentsError> {
        let Some(c) = self.next() else {
            return Ok(false);
        };
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => out.extend(['\\', c]),
            'u' => {
                let digits: String = self.rest().chars().take(4).collect();
                let hexadecimal = digits.chars().all(|c| c.is_ascii_hexdigit());
                if hexadecimal && digits.len() == 4 {
                    out.push_str("\\u");
                    out.push_str(&digits);
                    self.at += 4;
                } else if hexadecimal && digits.len() == self.rest().len() {
                    self.at = self.text.len();
                    return Ok(false);
                } else {
                    self.note(at, IssueKind::BadEscape)?;
                    out.push_str("\\\\u");
                }
            }
            '\'' => {
                if quoted != Some('\'') {
                    self.note(at, IssueKind::BadEscape)?;
                }
                out.push('\'');
            }
            other => {
                self.note(at, IssueKind::BadEscape)?;
                out.push_str("\\\\");
                // What follows is read again: it may be a control character.
                self.at -= other.len_utf8();
            }
        }
        Ok(true)
    }

    fn number(&mut self) -> Result<Written, ArgumentsError> {
        let at = self.at;
        let rest = self.rest();
        let inside = |c: char| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
        let end = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
        let number = rest.get(..end).unwrap_or_default();
        if Raw::parse(number).is_ok() {
            self.at += end;
            self.out.push_str(number);
            if end == rest.len() {
                self.note(at, IssueKind::CutNumber)?;
            }
            return Ok(Written::Yes);
        }
        // `1.`, `2e+`, `-` at the very end: digits are missing, and nobody knows which.
        if end == rest.len() && Raw::parse(format!("{number}0")).is_ok() {
            self.at += end;
            return Ok(Written::Cut);
        }
        Err(self.unreadable("a number"))
    }

    fn word(&mut self) -> Result<Written, ArgumentsError> {
        const WORDS: [(&str, &str); 8] = [
            ("true", "true"),
            ("false", "false"),
            ("null", "null"),
            ("True", "true"),
            ("False", "false"),
            ("None", "null"),
            ("undefined", "null"),
            ("nil", "null"),
        ];
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if let Some((_, literal)) = WORDS.iter().find(|(known, _)| *known == word) {
            if word != *literal {
                self.note(self.at, IssueKind::ForeignLiteral)?;
            }
            self.at += word.len();
            self.out.push_str(literal);
            return Ok(Written::Yes);
        }
        let begun = |(known, _): &(&str, &str)| known.starts_with(word);
        if end.is_none() && !word.is_empty() && WORDS.iter().any(begun) {
            self.at = self.text.len();
            return Ok(Written::Cut);
        }
        Err(self.unreadable("a value"))
    }
}
