//! What compile promises, shown on real sessions, on histories made to break it, and case by case.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod budget_count;
mod budgets;
mod cache;
mod cache_recorded;
mod cached_content;
mod calibration;
mod call_context;
mod cancel;
mod diff;
mod document_plans;
mod fixtures;
mod growth;
mod hostile;
mod invariants;
mod native;
mod never_worse;
mod next_call;
mod old_history;
mod planted_rules;
mod previews;
mod provider_rules;
mod readings;
mod real_sessions;
mod recorded;
mod regressions;
mod report;
mod retention;
mod retention_by_window;
mod schema;
mod settings;
mod stability;
mod standing_rules;
mod summary_cost;
mod table;
mod thinking;
mod turns;
mod usage;
mod views;
