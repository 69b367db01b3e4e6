//! Reads what is not in view: a part of a long text, or its lines that match a pattern.
//!
//! The counterpart of previews, clearing and compaction: whatever they leave out of a payload can be found by a word
//! and read by its link.
//!
//! * `excerpt` returns some lines of a text and where to continue.
//! * `find` returns the lines that match a pattern, with lines around them.
//! * `reply` formats each of these as text for a model.
//! * `read_tool` defines the tool `read_context`, by which a model asks for them, and parses its arguments.
//!
//! Everything here is a pure function. Replies are bounded, so that reading a long output does not give a long output,
//! and each says how to continue. Patterns and queries come from a model: their size and cost are bounded as well.
//!
//! Not here: which texts exist, who may read them, and which of them is about something (the engine, the store).

mod excerpt;
mod find;
mod read_tool;
mod reply;

pub use excerpt::{Excerpt, TextPosition, extract_excerpt};
pub use find::{FindOptions, FoundLine, FoundLines, Matcher, Pattern, PatternError, find_lines};
pub use read_tool::{READ_TOOL, ReadCall, ReadCallError, has_read_tool, read_tool};
pub use reply::{PathMatches, ReadReply, SearchHit, excerpt_reply, matches_reply, search_reply};
