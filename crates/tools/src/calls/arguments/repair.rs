//! Repair of arguments that are not quite JSON, in one pass.
//!
//! A reader of JSON that also takes what models write instead, writes JSON, and notes each difference. It never goes
//! back over a text, so its work is linear; nesting is bounded. Only called for text that is not valid.

use std::collections::BTreeSet;

use contexture_ir::{Raw, quote_json};

use crate::calls::arguments::outcome::{
    Arguments, ArgumentsError, DEPTH, ISSUES, Issue, IssueKind,
};
use contexture_ir::truncate_chars;

/// Repairs `text`, which is not valid JSON.
pub(super) fn repair_arguments(text: &str) -> Result<Arguments, ArgumentsError> {
    let mut reader = ArgumentRepairer {
        text,
        at: 0,
        out: String::with_capacity(text.len() + 8),
        issues: Vec::new(),
    };
    let fenced = reader.open_fence()?;
    reader.skip_whitespace()?;
    // A list or a lone value cannot be arguments, so nothing is guessed from it.
    if reader.peek_char() != Some('{') {
        return Err(reader.unreadable_error("an object"));
    }
    reader.repair_value(DEPTH)?;
    reader.skip_trailing(fenced)?;
    // The writer above only emits JSON. If that should fail, an error is better than arguments that nobody
    // wrote.
    let Ok(raw) = Raw::parse(reader.out) else {
        debug_assert!(false, "mended text is JSON: {text:?}");
        return Err(ArgumentsError::NotAnObject {
            found: truncate_chars(text, 60),
        });
    };
    Ok(Arguments {
        raw,
        issues: reader.issues,
    })
}

struct ArgumentRepairer<'t> {
    text: &'t str,
    at: usize,
    out: String,
    issues: Vec<Issue>,
}

/// Whether a member or element could be written.
#[derive(PartialEq)]
enum WriteOutcome {
    Yes,
    /// The text ended before it.
    Cut,
}

impl<'t> ArgumentRepairer<'t> {
    fn remaining_text(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek_char(&self) -> Option<char> {
        self.remaining_text().chars().next()
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.peek_char()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_whitespace(&mut self) -> Result<(), ArgumentsError> {
        let rest = self.remaining_text();
        let blank = |c: char| c.is_whitespace() || c == '\u{FEFF}';
        let length = rest.len() - rest.trim_start_matches(blank).len();
        let skipped = rest.get(..length).unwrap_or_default();
        // Spaces that JSON knows are no issue; one report a run is enough, however long it is.
        let foreign = |c: char| !matches!(c, ' ' | '\n' | '\r' | '\t');
        if let Some(at) = skipped.find(foreign) {
            self.record_issue(self.at + at, IssueKind::ForeignSpace)?;
        }
        self.at += length;
        Ok(())
    }

    fn record_issue(&mut self, at: usize, kind: IssueKind) -> Result<(), ArgumentsError> {
        // Bounded, because the list of issues is stored with the call and a text of commas would fill it.
        if self.issues.len() == ISSUES {
            return Err(ArgumentsError::TooManyFaults);
        }
        self.issues.push(Issue { offset: at, kind });
        Ok(())
    }

    fn unreadable_error(&self, expected: &'static str) -> ArgumentsError {
        ArgumentsError::Unreadable {
            offset: self.at,
            expected,
            found: truncate_chars(self.remaining_text(), 20),
        }
    }

    /// Steps over "```json" and the like.
    fn open_fence(&mut self) -> Result<bool, ArgumentsError> {
        self.skip_whitespace()?;
        let Some(rest) = self.remaining_text().strip_prefix("```") else {
            return Ok(false);
        };
        self.record_issue(self.at, IssueKind::CodeFence)?;
        // The word after the fence is not checked: models write `json`, `JSON` or the name of a language.
        let language = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        self.at = self.text.len() - language.len();
        Ok(true)
    }

    /// What may stand behind the object: a closing fence, brackets too many, a semicolon.
    fn skip_trailing(&mut self, fenced: bool) -> Result<(), ArgumentsError> {
        loop {
            self.skip_whitespace()?;
            match self.peek_char() {
                None => return Ok(()),
                // Too many closing brackets are the commonest fault of small models; a semicolon comes from
                // code.
                Some('}' | ']' | ')' | ';') => {
                    self.record_issue(self.at, IssueKind::ExtraBracket)?;
                    self.next_char();
                }
                Some('`') if fenced && self.remaining_text().starts_with("```") => self.at += 3,
                Some(_) => return Err(self.unreadable_error("the end of the arguments")),
            }
        }
    }

    fn repair_value(&mut self, depth: usize) -> Result<WriteOutcome, ArgumentsError> {
        // Counted down, so that a hostile text ends in an error and not in a stack overflow.
        let depth = depth.checked_sub(1).ok_or(ArgumentsError::TooDeep)?;
        match self.peek_char() {
            None => Ok(WriteOutcome::Cut),
            Some('{') => self
                .repair_container(depth, '}')
                .map(|()| WriteOutcome::Yes),
            Some('[') => self
                .repair_container(depth, ']')
                .map(|()| WriteOutcome::Yes),
            Some('"' | '\'') => {
                let at = self.at;
                let (text, closed) = self.repair_string()?;
                if !closed {
                    // The text is kept although its end is missing: the caller decides by `is_complete` whether
                    // to run.
                    self.record_issue(at, IssueKind::CutString)?;
                }
                self.out.push_str(&text);
                Ok(WriteOutcome::Yes)
            }
            Some('-' | '0'..='9') => self.repair_number(),
            Some(_) => self.repair_literal(),
        }
    }

    /// An object or a list, its opening bracket next.
    fn repair_container(&mut self, depth: usize, closing: char) -> Result<(), ArgumentsError> {
        let opening = self.next_char();
        self.out.extend(opening);
        let mut keys = BTreeSet::new();
        let mut first = true;
        loop {
            self.skip_whitespace()?;
            match self.peek_char() {
                None => {
                    self.record_issue(self.at, IssueKind::CutBrackets)?;
                    break;
                }
                Some(c) if c == closing => {
                    self.next_char();
                    break;
                }
                Some(',') if !first => {
                    // A comma is only skipped here. Whether it was one too many is known after the white space
                    // that follows.
                    let at = self.at;
                    self.next_char();
                    self.skip_whitespace()?;
                    if self.peek_char().is_none_or(|c| c == closing) {
                        self.record_issue(at, IssueKind::TrailingComma)?;
                        continue;
                    }
                }
                // A bracket of the other kind would close a level that the model did not open: two readings, so
                // an error.
                Some('}' | ']' | ',') => return Err(self.unreadable_error("a value or its end")),
                // Between two values nothing but a comma can have been meant.
                Some(_) if !first => self.record_issue(self.at, IssueKind::MissingComma)?,
                Some(_) => {}
            }
            // The comma is written before it is known whether a member follows, and taken back with it if the
            // text ends.
            let before = self.out.len();
            if !first {
                self.out.push(',');
            }
            let written = if closing == '}' {
                self.repair_member(depth, &mut keys)?
            } else {
                self.repair_value(depth)?
            };
            if written == WriteOutcome::Cut {
                self.out.truncate(before);
            }
            first = false;
        }
        self.out.push(closing);
        Ok(())
    }

    fn repair_member(
        &mut self,
        depth: usize,
        keys: &mut BTreeSet<String>,
    ) -> Result<WriteOutcome, ArgumentsError> {
        let start = self.at;
        let Some(key) = self.repair_key()? else {
            // A member that was cut off within its key has no value that could be guessed, so all of it goes.
            self.record_issue(start, IssueKind::CutMember)?;
            return Ok(WriteOutcome::Cut);
        };
        self.skip_whitespace()?;
        match self.peek_char() {
            None => {
                self.record_issue(start, IssueKind::CutMember)?;
                return Ok(WriteOutcome::Cut);
            }
            Some(':') => drop(self.next_char()),
            Some(_) => return Err(self.unreadable_error("`:` behind a key")),
        }
        self.skip_whitespace()?;
        self.out.push_str(&key);
        self.out.push(':');
        if self.repair_value(depth)? == WriteOutcome::Cut {
            self.record_issue(start, IssueKind::CutMember)?;
            return Ok(WriteOutcome::Cut);
        }
        // Both values stay in the text, as in a valid document: most readers take the last.
        if !keys.insert(key) {
            self.record_issue(start, IssueKind::RepeatedKey)?;
        }
        Ok(WriteOutcome::Yes)
    }

    /// A key in JSON; `None` if the text ends within it.
    fn repair_key(&mut self) -> Result<Option<String>, ArgumentsError> {
        let at = self.at;
        match self.peek_char() {
            Some('"') => {
                let (text, closed) = self.repair_string()?;
                Ok(closed.then_some(text))
            }
            Some('\'') => {
                self.record_issue(at, IssueKind::UnquotedKey)?;
                // Single quotes around a key count as an unquoted key; the string itself needs no second issue.
                let (text, closed) = self.repair_bare_string()?;
                Ok(closed.then_some(text))
            }
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => {
                let rest = self.remaining_text();
                // Wider than an identifier of JavaScript: models write header names and dotted paths unquoted.
                let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.');
                let key = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
                let key = rest.get(..key).unwrap_or_default();
                self.at += key.len();
                self.record_issue(at, IssueKind::UnquotedKey)?;
                Ok(Some(quote_json(key)))
            }
            _ => Err(self.unreadable_error("a key")),
        }
    }

    /// A string in JSON, its quote next, and whether it was closed.
    fn repair_string(&mut self) -> Result<(String, bool), ArgumentsError> {
        if self.peek_char() == Some('\'') {
            self.record_issue(self.at, IssueKind::SingleQuotes)?;
        }
        self.repair_bare_string()
    }

    fn repair_bare_string(&mut self) -> Result<(String, bool), ArgumentsError> {
        let quoted = self.next_char();
        let mut out = String::from("\"");
        let mut controls = false;
        let closed = loop {
            let at = self.at;
            match self.next_char() {
                None => break false,
                closing if closing == quoted => break true,
                Some('\\') => {
                    if !self.repair_escape(at, quoted, &mut out)? {
                        break false;
                    }
                }
                // Only within single quotes can a bare double quote be met; it needs an escape now.
                Some('"') => out.push_str("\\\""),
                Some(c) if c < ' ' => {
                    // Once a string: a page of text has a line break on every line.
                    if !controls {
                        self.record_issue(at, IssueKind::ControlCharacter)?;
                        controls = true;
                    }
                    push_control(&mut out, c);
                }
                Some(c) => out.push(c),
            }
        };
        out.push('"');
        Ok((out, closed))
    }

    /// What follows a backslash at `at` within these quotes; whether the text goes on.
    fn repair_escape(
        &mut self,
        at: usize,
        quoted: Option<char>,
        out: &mut String,
    ) -> Result<bool, ArgumentsError> {
        let Some(c) = self.next_char() else {
            return Ok(false);
        };
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => out.extend(['\\', c]),
            'u' => {
                let digits: String = self.remaining_text().chars().take(4).collect();
                let hexadecimal = digits.chars().all(|c| c.is_ascii_hexdigit());
                // Exactly four hexadecimal digits are a valid escape and pass unchanged, surrogates included.
                if hexadecimal && digits.len() == 4 {
                    out.push_str("\\u");
                    out.push_str(&digits);
                    self.at += 4;
                // The text ends within the escape. It cannot be completed, so the string ends before it.
                } else if hexadecimal && digits.len() == self.remaining_text().len() {
                    self.at = self.text.len();
                    return Ok(false);
                } else {
                    self.record_issue(at, IssueKind::BadEscape)?;
                    out.push_str("\\\\u");
                }
            }
            '\'' => {
                if quoted != Some('\'') {
                    // JSON has no escape for a single quote; within single quotes the model had to write one.
                    self.record_issue(at, IssueKind::BadEscape)?;
                }
                out.push('\'');
            }
            other => {
                self.record_issue(at, IssueKind::BadEscape)?;
                out.push_str("\\\\");
                // What follows is read again: it may be a control character.
                self.at -= other.len_utf8();
            }
        }
        Ok(true)
    }

    fn repair_number(&mut self) -> Result<WriteOutcome, ArgumentsError> {
        let at = self.at;
        let rest = self.remaining_text();
        let inside = |c: char| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
        let end = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
        let number = rest.get(..end).unwrap_or_default();
        // `Raw::parse` is JSON's own rule for numbers: leading zeros and a leading plus are refused.
        if Raw::parse(number).is_ok() {
            self.at += end;
            self.out.push_str(number);
            // `12` may have been the beginning of `123`: kept, and marked as cut.
            if end == rest.len() {
                self.record_issue(at, IssueKind::CutNumber)?;
            }
            return Ok(WriteOutcome::Yes);
        }
        // `1.`, `2e+`, `-` at the very end: digits are missing, and nobody knows which.
        if end == rest.len() && Raw::parse(format!("{number}0")).is_ok() {
            self.at += end;
            return Ok(WriteOutcome::Cut);
        }
        Err(self.unreadable_error("a number"))
    }

    fn repair_literal(&mut self) -> Result<WriteOutcome, ArgumentsError> {
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
        let rest = self.remaining_text();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        // Words of Python, JavaScript and Ruby or Go, with one meaning each in JSON.
        if let Some((_, literal)) = WORDS.iter().find(|(known, _)| *known == word) {
            if word != *literal {
                self.record_issue(self.at, IssueKind::ForeignLiteral)?;
            }
            self.at += word.len();
            self.out.push_str(literal);
            return Ok(WriteOutcome::Yes);
        }
        let is_prefix = |(known, _): &(&str, &str)| known.starts_with(word);
        if end.is_none() && !word.is_empty() && WORDS.iter().any(is_prefix) {
            self.at = self.text.len();
            return Ok(WriteOutcome::Cut);
        }
        Err(self.unreadable_error("a value"))
    }
}

/// Writes a control character as JSON escapes it within a string.
fn push_control(out: &mut String, c: char) {
    let escaped = quote_json(c.encode_utf8(&mut [0; 4]));
    out.push_str(escaped.trim_matches('"'));
}
