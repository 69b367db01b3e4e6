//! The line that tells a model how full its window was, from the report of the request before.

use crate::input::Contribution;
use crate::report::document::Report;
use crate::report::number_format::group_thousands;

/// The source of the line about the window.
const BUDGET: &str = "context_budget";

impl Contribution {
    /// A line at the tail that tells the model how full its window was: the figures of the previous request's
    /// report, and what the provider billed for it, if that is known.
    #[must_use]
    pub fn remaining_budget(previous: &Report, billed: Option<u64>) -> Self {
        let limit = previous.target.limit;
        let used = billed.unwrap_or(previous.totals.tokens);
        let left = limit.saturating_sub(used);
        let about = match billed {
            Some(_) => "took",
            None if previous.totals.low == previous.totals.tokens => "took",
            None => "took at most",
        };
        let text = format!(
            "<{BUDGET}>The previous request {about} {} of {} tokens; {} were left.</{BUDGET}>",
            group_thousands(used),
            group_thousands(limit),
            group_thousands(left)
        );
        Self::tail(BUDGET, text)
    }
}
