//! What can be wrong with a JSON document that should be one of our values.
//!
//! An error names the place (`content[2].text`), what was expected there and what was found. It is
//! built where the fault is seen and gains its path on the way out, one [`Error::at_segment`] a level.

use std::fmt;

use contexture_text::truncate_chars;

use crate::cancel::Cancelled;

/// A JSON document that is not the value it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON.
    #[error("{}: not JSON", At(path))]
    Json {
        /// Where, from the outermost value.
        path: String,
        /// The parser's own account.
        #[source]
        source: serde_json::Error,
    },
    /// A value has the wrong type or an unknown word.
    #[error("{}: expected {expected}, found {found}", At(path))]
    Unexpected {
        /// Where, from the outermost value.
        path: String,
        /// What may stand there.
        expected: &'static str,
        /// A short rendering of what stands there.
        found: String,
    },
    /// A required field is absent.
    #[error("{}: missing field `{field}`", At(path))]
    Missing {
        /// Where, from the outermost value.
        path: String,
        /// The absent field.
        field: &'static str,
    },
    /// A field that we read stands twice, so its meaning is open.
    #[error("{}: field `{field}` stands twice", At(path))]
    Duplicate {
        /// Where, from the outermost value.
        path: String,
        /// The repeated field.
        field: String,
    },
    /// A name or id breaks the rule for its kind.
    #[error("{kind} {value:?}: {rule}")]
    BadId {
        /// What was to be named: `conversation id`, `branch name`, …
        kind: &'static str,
        /// The offending text, cut to 80 characters.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// Reading was called off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Error {
    pub(crate) fn unexpected_value(expected: &'static str, found: &str) -> Self {
        Self::Unexpected {
            path: String::new(),
            expected,
            found: truncate_chars(found, 60),
        }
    }

    pub(crate) fn invalid_json(source: serde_json::Error) -> Self {
        Self::Json {
            path: String::new(),
            source,
        }
    }

    /// The same error, seen from one level further out: `segment` is a field name or `[index]`.
    #[must_use]
    pub fn at_segment(mut self, segment: &str) -> Self {
        if let Self::Json { path, .. }
        | Self::Unexpected { path, .. }
        | Self::Missing { path, .. }
        | Self::Duplicate { path, .. } = &mut self
        {
            // Segments arrive from the inside out, so each goes before what is there. An index joins without a
            // dot: `content[2].text`.
            if path.is_empty() {
                *path = segment.to_owned();
            } else if path.starts_with('[') {
                path.insert_str(0, segment);
            } else {
                *path = format!("{segment}.{path}");
            }
        }
        self
    }

    /// The same error, seen from the array that holds the faulty element.
    #[must_use]
    pub fn at_index(self, index: usize) -> Self {
        self.at_segment(&format!("[{index}]"))
    }
}

// How an error names its place; the outermost value has no path.
struct At<'a>(&'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("the value")
        } else {
            write!(f, "`{}`", self.0)
        }
    }
}
