//! Redaction of keys and passwords that can be recognised by their shape.
//!
//! Off unless an engine is given [`Secrets`]. Patterns are data and matched in one pass over an item's JSON, including
//! escapes and nested JSON. A match becomes `[redacted: name]`, the same each time, so a message that is sent again is
//! recognised; meaning hashes are taken before redaction.
//!
//! Not here: secrets without a shape of their own, state that the caller writes, and what was stored before the engine
//! had this.

use std::borrow::Cow;

use contexture_ir::{Item, Raw, quote_json};
use contexture_sessions::Session;

const BEGIN: &str = "-----BEGIN ";

const DASHES: &str = "-----";

/// How a character begins that is escaped though it need not be.
const ESCAPED_ASCII: &str = "\\u00";

/// What a secret looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretPattern {
    /// A word that begins in a known way, and does not stand within a longer one.
    Word {
        /// What it is, for whoever reads what is left.
        name: String,
        /// How it begins; ASCII.
        prefix: String,
        /// Characters that may follow besides letters and digits of ASCII.
        extra_characters: String,
        /// At least so many of them follow.
        min_length: usize,
        /// At most so many; a longer word is something else.
        max_length: usize,
        /// The word must contain a run of this many letters and digits, at least one of them a digit: names made of
        /// words have no such run.
        min_run: usize,
    },
    /// A PEM block with this label, `PRIVATE KEY` say, words in capitals before it or not; without its
    /// end mark it goes to the end of its text.
    Pem {
        /// What it is, for whoever reads what is left.
        name: String,
        /// How the label ends.
        label: String,
    },
}

/// The secrets that are taken out; see
/// [`Engine::with_secrets`](crate::Engine::with_secrets).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The patterns, the first that fits counts.
    pub patterns: Vec<SecretPattern>,
}

impl Secrets {
    /// Keys of OpenAI, Anthropic and those shaped like them, AWS, GitHub, Google, Slack; private keys
    /// in PEM.
    #[must_use]
    pub fn common() -> Self {
        let word = |name: &str, begins: &str, also: &str, least, most, solid| SecretPattern::Word {
            name: name.to_owned(),
            prefix: begins.to_owned(),
            extra_characters: also.to_owned(),
            min_length: least,
            max_length: most,
            min_run: solid,
        };
        let mut patterns = vec![
            word("API key", "sk-", "-_", 20, 400, 16),
            word("AWS key id", "AKIA", "", 16, 16, 1),
            word("AWS key id", "ASIA", "", 16, 16, 1),
            word("GitHub token", "github_pat_", "_", 40, 255, 16),
            word("Google API key", "AIza", "-_", 35, 35, 8),
            SecretPattern::Pem {
                name: "private key".to_owned(),
                label: "PRIVATE KEY".to_owned(),
            },
        ];
        for kind in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] {
            patterns.push(word("GitHub token", kind, "", 36, 255, 36));
        }
        for kind in ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-"] {
            patterns.push(word("Slack token", kind, "-", 20, 255, 10));
        }
        Self { patterns }
    }

    /// A JSON text without the secrets in its strings; still the same JSON besides.
    #[must_use]
    pub fn redact<'a>(&self, json: &'a str) -> Cow<'a, str> {
        match self.unescape_secret_strings(json) {
            Cow::Borrowed(json) => self.redact_literal(json),
            Cow::Owned(json) => Cow::Owned(self.redact_literal(&json).into_owned()),
        }
    }

    fn redact_literal<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let patterns = self.patterns_by_first_byte();
        // Built only from the first match on: most texts hold no secret and are returned as they are.
        let (mut out, mut copied) = (String::new(), 0);
        for (at, byte) in json.bytes().enumerate() {
            let candidates = patterns
                .get(usize::from(byte))
                .map_or(&[][..], Vec::as_slice);
            if candidates.is_empty() || at < copied {
                continue;
            }
            let found = candidates.iter().find_map(|pattern| {
                let length = pattern.match_length(json, at)?;
                Some((pattern.name(), length))
            });
            if let Some((name, length)) = found {
                out.push_str(json.get(copied..at).unwrap_or_default());
                push_placeholder(&mut out, name);
                copied = at + length;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(json);
        }
        out.push_str(json.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// The patterns by the byte with which they begin: most bytes begin none.
    fn patterns_by_first_byte(&self) -> [Vec<&SecretPattern>; 256] {
        let mut patterns: [Vec<&SecretPattern>; 256] = std::array::from_fn(|_| Vec::new());
        for pattern in &self.patterns {
            let first = pattern.first_byte().map(usize::from);
            if let Some(candidates) = first.and_then(|first| patterns.get_mut(first)) {
                candidates.push(pattern);
            }
        }
        patterns
    }

    /// Returns the JSON with unnecessary escapes removed from those strings in which they hide a secret.
    fn unescape_secret_strings<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if !json.contains(ESCAPED_ASCII) {
            return Cow::Borrowed(json);
        }
        let (mut out, mut copied, mut at) = (String::new(), 0, 0);
        while let Some(start) = json.get(at..).and_then(|rest| rest.find('"')) {
            let start = at + start;
            let inside = json.get(start + 1..).unwrap_or_default();
            at = (start + 2 + string_end(inside)).min(json.len());
            let string = json.get(start..at).unwrap_or_default();
            if let Some(plain) = self.unescape_if_secret(string) {
                out.push_str(json.get(copied..start).unwrap_or_default());
                out.push_str(&plain);
                copied = at;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(json);
        }
        out.push_str(json.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// Returns the string without unnecessary escapes, if a secret is visible only then.
    fn unescape_if_secret(&self, string: &str) -> Option<String> {
        if !string.contains(ESCAPED_ASCII) {
            return None;
        }
        let text = |json: &str| serde_json::from_str::<String>(json).ok();
        let plain = quote_json(&text(string)?);
        let shown = text(&self.redact_literal(&plain));
        (shown != text(&self.redact_literal(string))).then_some(plain)
    }

    /// An item without its secrets; the same one if it has none.
    pub(crate) fn redact_item(&self, item: &Item) -> Item {
        let json = item.to_json();
        match self.redact(&json) {
            // What cannot be cleaned is left out: the text as it was must not be stored.
            Cow::Owned(redacted) => Item::parse(&redacted).unwrap_or_else(|_| item.tombstone()),
            Cow::Borrowed(_) => item.clone(),
        }
    }

    /// A session without its secrets: items, instructions, title, what is kept beside.
    pub(crate) fn redact_session(&self, session: &Session) -> Session {
        let mut session = session.clone();
        for node in &mut session.tree {
            node.item = self.redact_item(&node.item);
        }
        for message in &mut session.instructions {
            if let Item::Message(redacted) = self.redact_item(&Item::Message(message.clone())) {
                *message = redacted;
            }
        }
        session.title = session.title.map(|title| self.redact(&title).into_owned());
        self.redact_value(&mut session.metadata);
        for value in session.info.metadata.values_mut() {
            self.redact_value(value);
        }
        session
    }

    /// A value without its secrets; `null` if it cannot be cleaned, because the text as it was must not be stored.
    fn redact_value(&self, value: &mut Raw) {
        if let Cow::Owned(redacted) = self.redact(value.get()) {
            *value = Raw::parse(redacted).unwrap_or_else(|_| Raw::null());
        }
    }
}

impl SecretPattern {
    /// What it is, for whoever reads what is left.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Word { name, .. } | Self::Pem { name, .. } => name,
        }
    }

    fn first_byte(&self) -> Option<u8> {
        match self {
            Self::Word { prefix: begins, .. } => begins.bytes().next(),
            Self::Pem { .. } => BEGIN.bytes().next(),
        }
    }

    /// How many bytes of a secret begin at `at`.
    fn match_length(&self, json: &str, at: usize) -> Option<usize> {
        let text = json.get(at..)?;
        match self {
            Self::Word {
                prefix: begins,
                extra_characters: also,
                min_length: least,
                max_length: most,
                min_run: solid,
                ..
            } => {
                let body = text.strip_prefix(begins.as_str())?;
                // Inside a longer word the letters are a coincidence, as in base64.
                if begins.is_empty() || !is_word_start(json, at) {
                    return None;
                }
                let fits = |c: char| c.is_ascii_alphanumeric() || also.contains(c);
                let length = body.find(|c| !fits(c)).unwrap_or(body.len());
                let body = body.get(..length)?;
                let is_solid = |piece: &str| {
                    piece.len() >= *solid && piece.contains(|c: char| c.is_ascii_digit())
                };
                let pieces = body.split(|c: char| !c.is_ascii_alphanumeric());
                let fits = (*least..=*most).contains(&length) && pieces.into_iter().any(is_solid);
                fits.then_some(begins.len() + length)
            }
            Self::Pem { label, .. } => pem_block_length(text, label),
        }
    }
}

/// How many bytes the PEM block has that a text begins with, if its label ends with `label`.
fn pem_block_length(text: &str, label: &str) -> Option<usize> {
    let words = text.strip_prefix(BEGIN)?;
    let end = words.find(|c: char| !(c.is_ascii_uppercase() || c == ' '))?;
    let (words, rest) = words.split_at_checked(end)?;
    if !words.ends_with(label) || !rest.starts_with(DASHES) {
        return None;
    }
    // Never past the end of the JSON string, or the text would be no JSON any more.
    let inside = rest.get(..string_end(rest)).unwrap_or(rest);
    let tail = format!("{label}{DASHES}");
    let length = inside.find(&tail).map(|end| end + tail.len());
    Some(BEGIN.len() + words.len() + length.unwrap_or(inside.len()))
}

/// Appends what stands for a secret.
fn push_placeholder(out: &mut String, name: &str) {
    out.push_str("[redacted: ");
    // A string within a string is escaped twice, so a name that needs escapes fits at no depth.
    out.extend(name.chars().map(|c| match c {
        '"' | '\\' => '_',
        c if c.is_control() => '_',
        c => c,
    }));
    out.push(']');
}

/// Reports whether a word can begin at `at`. A letter before it that is the end of an escape, such as `n` of `\n` or `d`
/// of `\u003d`, is no part of a word.
fn is_word_start(json: &str, at: usize) -> bool {
    let before = json.get(..at).unwrap_or_default();
    let escape = before.len().checked_sub(6).and_then(|at| before.get(at..));
    let is_escape = |escape: &str| {
        let digits = escape.strip_prefix("\\u").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    if escape.is_some_and(is_escape) {
        return true;
    }
    let mut last = before.bytes().rev();
    match last.next() {
        None => true,
        Some(b'n' | b'r' | b't') => last.next() == Some(b'\\'),
        Some(byte) => !(byte.is_ascii_alphanumeric() || b"_-+/".contains(&byte)),
    }
}

/// Where the string ends in which `text` begins.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "T3BlbkFJ4c8R2mQz7LkW9xYp1NvB6dHs";

    fn check(json: &str, wanted: &str) {
        let common = Secrets::common();
        let once = common.redact(json);
        assert_eq!(once, wanted);
        assert_eq!(common.redact(&once), wanted, "twice is once");
    }

    #[test]
    fn keys_are_taken_out_wherever_they_stand() {
        let all = format!("{BODY}{BODY}");
        for key in [
            format!("sk-{BODY}"),
            format!("sk-proj-{BODY}_{BODY}"),
            format!("sk-ant-api03-{BODY}-{BODY}-AA"),
        ] {
            for (before, after) in [
                ("\"", "\""),
                ("\"my key is ", ", keep it\""),
                (r#""export KEY="#, r#"\nnext""#),
                (r#""a line\n"#, r#"\t""#),
                (r#""{\"key\": \""#, r#"\"}""#),
                (r#""{\"text\": \"a\\n"#, r#"\"}""#),
                ("\"https://u:", "@host\""),
                ("\"über–", "…\""),
                (r#""a\u003d"#, r#"\u003e""#),
                (r#""{\"a\": \"\\u003c"#, r#"\\u003e\"}""#),
            ] {
                check(
                    &format!("{before}{key}{after}"),
                    &format!("{before}[redacted: API key]{after}"),
                );
            }
        }
        for (key, name) in [
            ("AKIA3EXAMPLE7KEY2ABC", "AWS key id"),
            (&format!("ghp_{}", &all[..36]), "GitHub token"),
            (&format!("github_pat_{}_{all}", &all[..22]), "GitHub token"),
            (&format!("AIza{}", &all[..35]), "Google API key"),
            ("xoxb-123456789012-abcdefghijkl", "Slack token"),
        ] {
            check(&format!("\"{key}\""), &format!("\"[redacted: {name}]\""));
        }
        check(
            &format!("\"sk-{BODY} sk-{BODY}\""),
            "\"[redacted: API key] [redacted: API key]\"",
        );
    }

    #[test]
    fn keys_that_are_written_with_escapes_are_taken_out() {
        let dashed = format!(r"sk\u002dproj\u002D{BODY}");
        check(
            &format!(r#"{{"a":"\u003c{dashed}\u003e","b":"\u003c","c":"é\u00e9\"" }}"#),
            r#"{"a":"<[redacted: API key]>","b":"\u003c","c":"é\u00e9\"" }"#,
        );
        check(
            &format!(r#"["\u0073k-{BODY}\n", "sk-{BODY}"]"#),
            r#"["[redacted: API key]\n", "[redacted: API key]"]"#,
        );
        for broken in [r#""\u00"#, r#""\u003"#, r#"\u00"#] {
            check(broken, broken);
        }
    }

    #[test]
    fn private_keys_are_taken_out_whole() {
        for kind in ["", "RSA ", "OPENSSH "] {
            let begin = format!("-----BEGIN {kind}PRIVATE KEY-----");
            let end = format!("-----END {kind}PRIVATE KEY-----");
            let key = format!(r"{begin}\nMIIEvQ+/=\n{end}");
            check(
                &format!(r#"["a {key}\nb","c"]"#),
                r#"["a [redacted: private key]\nb","c"]"#,
            );
            // Without its end it goes to the end of its text and no further.
            check(
                &format!(r#"["a {begin}\nMII \"x","c"]"#),
                r#"["a [redacted: private key]","c"]"#,
            );
        }
    }

    #[test]
    fn what_only_resembles_a_key_stays() {
        let common = Secrets::common();
        for text in [
            "\"sk-\"",
            "\"sk-learn-compatible-estimators-for-all-2024\"",
            "\"sk-SK-Slovakia_and_other_locales_of_the_year\"",
            "\"task-T3BlbkFJ4c8R2mQz7LkW9xYp\"",
            "\"disk-0123456789abcdef0123456789abcdef\"",
            "\"AKIA\" and \"AKIA1234\"",
            "\"AKIA3EXAMPLE7KEY2ABCD\"",
            "\"AKIA3EXAMPLE7KEY2ABCx\"",
            "\"xAKIA3EXAMPLE7KEY2ABC\"",
            "\"ghp_short\"",
            "\"YWJjZGVm/AKIA3EXAMPLE7KEY2ABC+ZZ\"",
            "\"-----BEGIN CERTIFICATE-----\\nMIIC\\n-----END CERTIFICATE-----\"",
            "\"-----BEGIN PUBLIC KEY-----\\nMIIC\\n-----END PUBLIC KEY-----\"",
            "\"-----BEGIN \"",
            "\"0123456789abcdef0123456789abcdef\"",
            "\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA\"",
            "",
        ] {
            assert!(
                matches!(common.redact(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }
}
