//! Findings of checks: a place, what is wrong there, and the remedy.

use std::fmt;

/// A violation of a rule. Prints as `path:line: what; remedy`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Counted from 1; 0 if the finding is about the whole file.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Finding {
    /// Creates a finding about one line.
    pub(crate) fn on_line(
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Creates a finding about a whole file or directory.
    pub(crate) fn on_file(path: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::on_line(path, 0, what, remedy)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}; {}", self.path, self.what, self.remedy)
        } else {
            write!(
                f,
                "{}:{}: {}; {}",
                self.path, self.line, self.what, self.remedy
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_fault_and_remedy() {
        let finding = Finding::on_line("a.rs", 3, "uses a clock", "take it as a parameter");
        assert_eq!(
            finding.to_string(),
            "a.rs:3: uses a clock; take it as a parameter"
        );
        let finding = Finding::on_file("a.rs", "is too long", "split it");
        assert_eq!(finding.to_string(), "a.rs: is too long; split it");
    }
}
