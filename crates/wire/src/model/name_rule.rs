//! Names of functions as a target takes them.
//!
//! A provider refuses a whole request for one name it does not like. A name that may not stand is
//! replaced, in definitions, choices and calls alike, by one derived from it alone: as much of it as
//! may stand, and a hash of all of it, so that two names never become one. Answers are not
//! rewritten; [`ToolNameMap`](crate::ToolNameMap) is the way back.

use std::borrow::Cow;

use contexture_ir::ContentHash;

use crate::model::loss::{LossKind, Losses};

/// Which names a target takes.
#[derive(Clone, Copy, Debug)]
pub struct NameRule {
    /// The longest name, in bytes.
    pub(crate) max_bytes: usize,
    /// What may stand beside letters and digits.
    pub(crate) marks: &'static str,
    /// Whether a letter or `_` must come first.
    pub(crate) letter_first: bool,
}

impl NameRule {
    fn is_allowed_char(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.marks.contains(c)
    }

    /// Whether the target takes a name as it is.
    ///
    /// ```
    /// let rule = contexture_wire::Format::OpenAiChat.spec().name_rule();
    /// assert!(rule.is_some_and(|rule| rule.accepts("get_weather") && !rule.accepts("get weather")));
    /// ```
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        let begins = |c: char| !self.letter_first || c.is_ascii_alphabetic() || c == '_';
        name.len() <= self.max_bytes
            && name.starts_with(begins)
            && name.chars().all(|c| self.is_allowed_char(c))
            && !name.is_empty()
    }

    /// The name to write.
    pub(crate) fn sanitize_name<'n>(
        &self,
        name: &'n str,
        path: &str,
        losses: &mut Losses,
    ) -> Cow<'n, str> {
        if self.accepts(name) {
            return Cow::Borrowed(name);
        }
        let hash = ContentHash::of(name.as_bytes()).to_string();
        // 48 bits: enough to keep the names of one request apart, short enough for the limit of 64
        // bytes.
        let short = hash.get(..12).unwrap_or_default();
        let plain = |c: char| if self.is_allowed_char(c) { c } else { '_' };
        let head = if self.letter_first && !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            "_"
        } else {
            ""
        };
        // Room for the head, a `_` and the hash, within every target's limit.
        let stem: String = name.chars().take(50).map(plain).collect();
        let new = format!("{head}{stem}_{short}");
        losses.push(
            format!("{path}.name"),
            LossKind::Value,
            format!("the target refuses this name; written `{new}`"),
        );
        Cow::Owned(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: NameRule = NameRule {
        max_bytes: 64,
        marks: "_-",
        letter_first: false,
    };
    const ANTHROPIC: NameRule = NameRule {
        max_bytes: 128,
        marks: "_-",
        letter_first: false,
    };
    const GEMINI: NameRule = NameRule {
        max_bytes: 128,
        marks: "_-.:",
        letter_first: true,
    };

    #[test]
    fn refused_names_become_others_each_its_own() {
        let long = "x".repeat(200);
        let names = [
            "a.b",
            "a:b",
            "a b",
            "a_b",
            "",
            "ä",
            "1x",
            "x",
            "-",
            &long,
            "日本.語",
        ];
        for rule in [OPENAI, ANTHROPIC, GEMINI] {
            let mut seen = std::collections::BTreeSet::new();
            for name in names {
                let mut losses = Losses::default();
                let new = rule.sanitize_name(name, "p", &mut losses).into_owned();
                assert!(rule.accepts(&new), "{rule:?} {name} {new}");
                assert_eq!(new != name, !losses.is_empty(), "{name}");
                assert_eq!(new == name, rule.accepts(name), "{name}");
                assert!(seen.insert(new), "{name}");
            }
        }
        assert!(GEMINI.accepts("default_api:a.b") && !OPENAI.accepts("a.b"));
    }
}
