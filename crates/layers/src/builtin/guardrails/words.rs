//! Guards for what is said: patterns that must not occur, and length.

use regex::Regex;

use super::guard::{Answer, Guard};
use crate::decision::Verdict;
use crate::error::LayerError;

/// Something the model must not say. Held against its texts, not against arguments of tools.
#[derive(Clone, Debug)]
pub struct Forbidden {
    pattern: Regex,
    on_hit: OnHit,
}

/// What becomes of an answer that says what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnHit {
    /// It is asked for again, the model having been told this.
    Retry(String),
    /// The run ends.
    Stop(String),
    /// What must not be said is replaced by this text.
    Replace(String),
}

impl Forbidden {
    /// This pattern, in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// A pattern that is none.
    pub fn new(pattern: &str, on_hit: OnHit) -> Result<Self, LayerError> {
        let pattern = Regex::new(pattern).map_err(LayerError::failed)?;
        Ok(Self { pattern, on_hit })
    }
}

impl Guard for Forbidden {
    fn check(&self, answer: &Answer<'_>) -> Verdict {
        if !self.pattern.is_match(&answer.text()) {
            return Verdict::Pass;
        }
        match &self.on_hit {
            OnHit::Retry(feedback) => Verdict::Retry {
                feedback: feedback.clone(),
            },
            OnHit::Stop(reason) => Verdict::Stop {
                reason: reason.clone(),
            },
            OnHit::Replace(by) => {
                let by = regex::NoExpand(by);
                let mended =
                    answer.mended(|text| self.pattern.replace_all(text, by.clone()).into_owned());
                match self.pattern.is_match(&(Answer { items: &mended }).text()) {
                    false => Verdict::Fix(mended),
                    true => Verdict::Stop {
                        reason: "the answer says what it must not, across its parts".to_owned(),
                    },
                }
            }
        }
    }
}

/// The model's text is at most so long; a longer one is asked for again.
#[derive(Clone, Copy, Debug)]
pub struct MaxLength {
    characters: usize,
}

impl MaxLength {
    /// At most so many characters.
    #[must_use]
    pub const fn new(characters: usize) -> Self {
        Self { characters }
    }
}

impl Guard for MaxLength {
    fn check(&self, answer: &Answer<'_>) -> Verdict {
        let (length, limit) = (answer.text().chars().count(), self.characters);
        if length <= limit {
            return Verdict::Pass;
        }
        Verdict::Retry {
            feedback: format!(
                "Your answer has {length} characters; at most {limit} are wanted. Answer again, shorter."
            ),
        }
    }
}
