//! The report: what was sent, what was not, and why, as data ([`document`]), as a table and as a page.
//!
//! Its JSON is stable: fields are added and never renamed. What is written beside its segments (`note`, `number_format`) is
//! the same in tables and pages.
//!
//! Not here: drawing it up from what the passes decided, which is the pipeline's.

mod document;
mod html;
mod note;
pub mod number_format;
mod remaining_budget;
#[cfg(test)]
pub(crate) mod schema;
mod table;

pub use document::{
    OmitReason, Omitted, PayloadReport, RemovedTool, Repair, Report, Rewriting, Rewritten, Segment,
    SegmentVerdict, TargetReport, TokenRange, Totals,
};
pub use html::render_html;
pub(crate) use number_format::count_with_noun;
pub use table::{Width, render_table};
