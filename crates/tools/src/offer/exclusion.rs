//! The reasons for which a tool is not offered.
//!
//! Not here: deciding it ([`crate::offer`]).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::ToolId;

/// A tool that is not offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedTool {
    /// Id of the tool.
    pub tool: ToolId,
    /// Each reason against it: of an intersection one would do, of a union all were needed.
    #[serde(rename = "why")]
    pub reasons: ExclusionReasons,
}

/// Why a tool is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionReason {
    /// It has tags, but none of those asked for.
    Tags,
    /// No pattern names it.
    Names,
    /// Others fit the task better.
    Task,
    /// The policy denies it, and the choice hides what is denied.
    Denied,
    /// Its toolkit is not loaded.
    NotLoaded,
}

impl ExclusionReason {
    const ALL: [Self; 5] = [
        Self::Tags,
        Self::Names,
        Self::Task,
        Self::Denied,
        Self::NotLoaded,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Reasons against a tool, each once; a number, for a registry may remove a thousand tools from every offer.
///
/// Its JSON is a list of words.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<ExclusionReason>", into = "Vec<ExclusionReason>")]
pub struct ExclusionReasons(u8);

impl ExclusionReasons {
    /// Whether there is no reason.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this is one of them.
    #[must_use]
    pub const fn contains(self, reason: ExclusionReason) -> bool {
        self.0 & reason.bit() != 0
    }

    /// Each of them, in the order of [`ExclusionReason`].
    pub fn iter(self) -> impl Iterator<Item = ExclusionReason> {
        ExclusionReason::ALL
            .into_iter()
            .filter(move |reason| self.contains(*reason))
    }

    pub(crate) const fn add(&mut self, reason: ExclusionReason) {
        self.0 |= reason.bit();
    }
}

impl From<ExclusionReason> for ExclusionReasons {
    fn from(reason: ExclusionReason) -> Self {
        Self(reason.bit())
    }
}

impl FromIterator<ExclusionReason> for ExclusionReasons {
    fn from_iter<I: IntoIterator<Item = ExclusionReason>>(all: I) -> Self {
        let mut reasons = Self::default();
        all.into_iter().for_each(|reason| reasons.add(reason));
        reasons
    }
}

impl From<Vec<ExclusionReason>> for ExclusionReasons {
    fn from(all: Vec<ExclusionReason>) -> Self {
        all.into_iter().collect()
    }
}

impl From<ExclusionReasons> for Vec<ExclusionReason> {
    fn from(reasons: ExclusionReasons) -> Self {
        reasons.iter().collect()
    }
}

impl fmt::Debug for ExclusionReasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_a_list_of_words_in_json() {
        let reasons: ExclusionReasons = [
            ExclusionReason::Denied,
            ExclusionReason::Tags,
            ExclusionReason::Denied,
        ]
        .into_iter()
        .collect();
        let json = serde_json::to_string(&reasons).unwrap();
        assert_eq!(json, r#"["tags","denied"]"#);
        assert_eq!(
            serde_json::from_str::<ExclusionReasons>(&json).unwrap(),
            reasons
        );
        assert!(serde_json::from_str::<ExclusionReasons>(r#"["other"]"#).is_err());
        assert!(
            reasons.contains(ExclusionReason::Tags) && !reasons.contains(ExclusionReason::Task)
        );
        assert!(ExclusionReasons::default().is_empty() && !reasons.is_empty());
        for (bit, reason) in ExclusionReason::ALL.into_iter().enumerate() {
            assert_eq!(ExclusionReasons::from(reason), ExclusionReasons(1 << bit));
        }
    }
}
