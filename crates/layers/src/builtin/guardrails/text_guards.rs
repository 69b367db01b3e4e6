//! Guards on the model's text: forbidden patterns, and length.

use regex::Regex;

use crate::builtin::guardrails::guard::{Guard, ModelAnswer};
use crate::contract::{AnswerVerdict, LayerError};

/// A pattern that the model's text must not match. Arguments of tools are not checked.
#[derive(Clone, Debug)]
pub struct ForbiddenText {
    pattern: Regex,
    on_match: MatchAction,
}

/// What to do with an answer that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchAction {
    /// The model is asked again, with this feedback.
    Retry(String),
    /// The run ends, for this reason.
    Stop(String),
    /// Each match is replaced by this text.
    Replace(String),
}

impl ForbiddenText {
    /// Creates a guard on a pattern in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// If the pattern is invalid.
    pub fn new(pattern: &str, on_hit: MatchAction) -> Result<Self, LayerError> {
        let pattern = Regex::new(pattern).map_err(LayerError::from_message)?;
        Ok(Self {
            pattern,
            on_match: on_hit,
        })
    }
}

impl Guard for ForbiddenText {
    fn check_answer(&self, answer: &ModelAnswer<'_>) -> AnswerVerdict {
        if !self.pattern.is_match(&answer.assistant_text()) {
            return AnswerVerdict::Pass;
        }
        match &self.on_match {
            MatchAction::Retry(feedback) => AnswerVerdict::Retry {
                feedback: feedback.clone(),
            },
            MatchAction::Stop(reason) => AnswerVerdict::Stop {
                reason: reason.clone(),
            },
            MatchAction::Replace(by) => {
                let by = regex::NoExpand(by);
                let mended = answer.with_replaced_text(|text| {
                    self.pattern.replace_all(text, by.clone()).into_owned()
                });
                match self
                    .pattern
                    .is_match(&(ModelAnswer { items: &mended }).assistant_text())
                {
                    false => AnswerVerdict::Fix(mended),
                    true => AnswerVerdict::Stop {
                        reason: "the answer says what it must not, across its parts".to_owned(),
                    },
                }
            }
        }
    }
}

/// Limits the length of the model's text; a longer answer is rejected with feedback.
#[derive(Clone, Copy, Debug)]
pub struct MaxLength {
    characters: usize,
}

impl MaxLength {
    /// Allows at most this many characters.
    #[must_use]
    pub const fn new(characters: usize) -> Self {
        Self { characters }
    }
}

impl Guard for MaxLength {
    fn check_answer(&self, answer: &ModelAnswer<'_>) -> AnswerVerdict {
        let (length, limit) = (answer.assistant_text().chars().count(), self.characters);
        if length <= limit {
            return AnswerVerdict::Pass;
        }
        AnswerVerdict::Retry {
            feedback: format!(
                "Your answer has {length} characters; at most {limit} are wanted. Answer again, shorter."
            ),
        }
    }
}
