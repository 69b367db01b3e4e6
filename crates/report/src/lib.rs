//! The report of one compile: what was sent, what was not, and why, as data, as a table and as a page.
//!
//! * [`Report`] and its parts are the data. Their JSON is stable: fields are added and never renamed, and a test compares
//!   them with the published schema in `docs/schema`.
//! * [`render_table`] writes a report for terminals, [`render_html`] as a page of its own without scripts.
//! * [`CallBand`] is what a past call keeps of its report, at most [`MAX_BAND_BYTES`] stored; [`render_band`] draws it.
//! * [`number_format`] writes numbers the way both do.
//!
//! Two sums always hold: the tokens of the segments add up to the total, and every item of the path is either in the payload
//! or in exactly one omitted span.
//!
//! Not here: drawing up a report from what the passes decided, which is `contexture-compile`'s.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod band;
mod deferred_list;
mod document;
mod escape;
mod html;
mod note;
pub mod number_format;
mod picture;
#[cfg(test)]
mod schema;
mod table;
#[cfg(test)]
mod tests;

pub use band::{BandError, BandPart, CallBand, MAX_BAND_BYTES, PrefixBreak};
pub use deferred_list::DeferredList;
pub use document::{
    EpochReason, EpochReport, OmitReason, Omitted, PayloadReport, RemovedTool, Repair, Report,
    Rewriting, Rewritten, RuleReport, Segment, SegmentRule, SegmentVerdict, SettingChange,
    StandingReport, TargetReport, TokenRange, Totals,
};
pub use escape::escape_html;
pub use html::{PageItem, render_html, render_html_with};
pub use picture::{BAND_STYLE, break_text, part_kind, render_band, render_left_out};
pub use table::{Width, render_table};
