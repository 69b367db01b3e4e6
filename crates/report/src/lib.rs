//! The report: what was sent, what was not, and why, as data, as a table and as a page.
//!
//! * `document` holds the types. Their JSON is stable: fields are added and never renamed, and `schema` compares them with
//!   the published schema in `docs/schema`.
//! * `table` writes a report for terminals, `html` as a page of its own without scripts.
//! * `note` has the sentences beside the segments, `number_format` the way numbers are written: the same in both.
//!
//! Two sums always hold: the tokens of the segments add up to the total, and every item of the path is either in the payload
//! or in exactly one omitted span.
//!
//! The types are also what earlier stages record their decisions in, so this module stands below them and needs only the
//! input.
//!
//! Not here: drawing up a report from what the passes decided, which is the pipeline's.

mod document;
mod html;
mod note;
pub mod number_format;
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
