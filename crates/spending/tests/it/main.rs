//! Spending: sums, cache breaks, savings, the page.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test"
)]

mod breaks;
mod logs;
mod page;
mod savings;
mod sums;
