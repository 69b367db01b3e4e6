//! The choice of tools for a task, as data.
//!
//! Not here: applying it ([`crate::offer`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::names::Pattern;
use crate::policy::Policy;

/// What a choice goes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// Tools that carry one of these tags, and tools without tags. Case does not matter.
    Tags(BTreeSet<String>),
    /// Tools that one of these patterns names.
    Names(Vec<Pattern>),
    /// The tools that fit a text best, by their words.
    Task {
        /// What is to be done: usually what the user said.
        text: String,
        /// How many tools are kept; a namespace counts as one. Fewer only if there are fewer: tools that share no word
        /// with the text fill up by name, so that the number of tools does not depend on luck. Where no tool shares a word, all are
        /// kept. Tools without tags are kept beside them where other tools have tags.
        limit: usize,
    },
}

/// How several criteria are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// A tool is kept that every criterion keeps.
    #[default]
    Intersection,
    /// A tool is kept that some criterion keeps.
    Union,
}

/// The tools that are wanted; the default wants all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// The criteria; without any, every tool is kept.
    pub criteria: Vec<Criterion>,
    /// How they are put together.
    pub combine: Combine,
    /// Tools that this policy denies are left out as well. Absent: what is denied is still shown, which keeps the
    /// prompt's prefix when a policy changes, and refused when called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hide")]
    pub excluded_by: Option<Policy>,
}

impl Choice {
    /// Chooses every tool.
    #[must_use]
    pub fn all_tools() -> Self {
        Self::default()
    }

    /// The `limit` tools that fit `text` best.
    #[must_use]
    pub fn by_task(text: impl Into<String>, limit: usize) -> Self {
        let text = text.into();
        Self::all_tools().with_criterion(Criterion::Task { text, limit })
    }

    /// Tools with one of these tags, and those without.
    #[must_use]
    pub fn by_tags<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Self {
        let tags = tags.into_iter().map(Into::into).collect();
        Self::all_tools().with_criterion(Criterion::Tags(tags))
    }

    /// Tools of these names.
    #[must_use]
    pub fn by_names<T: Into<Pattern>>(names: impl IntoIterator<Item = T>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self::all_tools().with_criterion(Criterion::Names(names))
    }

    /// The same choice with one criterion more.
    #[must_use]
    pub fn with_criterion(mut self, criterion: Criterion) -> Self {
        self.criteria.push(criterion);
        self
    }

    /// The same criteria, put together this way.
    #[must_use]
    pub fn with_combine(mut self, combine: Combine) -> Self {
        self.combine = combine;
        self
    }

    /// The same choice without what a policy denies.
    #[must_use]
    pub fn excluding(mut self, policy: Policy) -> Self {
        self.excluded_by = Some(policy);
        self
    }
}
