//! The outline of a request: what of it matters to a provider's cache, as segments in the cache's order.
//!
//! Terms:
//! * A *segment* is a stretch that is the same or another, never half the same: the tools, a setting that is part of the
//!   prefix, the system prompt, one piece of the messages.
//! * The *prefix hash* of a segment is the hash over everything up to its end; equal hashes mean that a cache can be read.
//! * The *scope* is what a cache is never shared across: the model and, with some providers, a key.
//! * *Stability* says for how long a segment stays as and where it is: for the epoch, from now on, for one call.
//!
//! `segments` has the data and the hashes, `parse` makes an outline of a request in JSON. Where the blocks of a request begin and
//! which settings belong to the prefix is said by the format ([`contexture_wire::FormatSpec::outline`],
//! [`contexture_wire::FormatSpec::cache_key`]).
//!
//! Outlines are compared only with outlines made in the same way: the compiler's own are of pieces, those of JSON of blocks.
//! Markers are no content: a segment has the same hash with and without them.
//!
//! Not here: where markers go (`markers`) and what a cache keeps (`rules`).

mod parse;
mod segments;

pub use parse::{OutlineError, automatic_marker, setting_value};
pub(crate) use parse::{ParsedOutline, parse_outline};
pub use segments::{Outline, OutlineSegment, SegmentList, SegmentStability, SegmentTotals};
