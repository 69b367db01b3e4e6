//! The outline of a request: what of it matters to a provider's cache, as segments in the cache's order.
//!
//! A segment is a stretch that is the same or another, never half the same: the tools, a setting that is part of the
//! prefix, the system prompt, one piece of the messages. `segments` has the data and the hashes over beginnings, `parse`
//! makes an outline of a request in JSON, `prefix_settings` knows which settings of a format belong to the prefix.
//!
//! Outlines are compared only with outlines made in the same way: the compiler's own are of pieces, those of JSON of
//! blocks.
//!
//! Not here: where markers go (`markers`) and what a cache keeps (`rules`).

mod parse;
mod prefix_settings;
mod segments;

pub use parse::{OutlineError, automatic_marker};
pub(crate) use parse::{ParsedOutline, parse_outline};
pub use prefix_settings::{PrefixSetting, prefix_settings, scope_members, setting_value};
pub use segments::{Outline, OutlineSegment, RequestPart, SegmentStability};
