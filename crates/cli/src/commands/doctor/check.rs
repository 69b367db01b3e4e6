//! One thing that was looked at, and how it is.

use serde::Serialize;

use crate::output::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckState {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorCheck {
    pub(crate) name: &'static str,
    pub(crate) state: CheckState,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl DoctorCheck {
    pub(crate) fn new(name: &'static str, state: CheckState, found: impl Into<String>) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn from_failure(name: &'static str, failure: Failure) -> Self {
        Self {
            name,
            state: CheckState::Fail,
            found: failure.message,
            hint: failure.hint,
        }
    }
}
