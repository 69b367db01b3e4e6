//! Shortens long history by rules, and reads back what was left out.
//!
//! * [`Manifest`] replaces a span of items: what the user said, what was done, its tasks, errors, files and identifiers, read
//!   by rules and rendered within a budget. [`summary_task`] asks a model for a summary of a span, [`summary_request`] the
//!   conversation's own model behind what it was sent, [`read_summary`] checks the answer.
//! * [`Preview`] replaces one long tool output: its beginning, the lines that report errors, its end, and a [`Link`].
//! * [`new_context_tool`] is the tool by which a model asks for a compaction itself.
//! * The reading functions ([`extract_excerpt`], [`find_lines`]) read what was left out, by its link; [`read_tool`] is the
//!   tool by which a model asks for it.
//! * [`own_words`] finds what a person wrote themselves, [`find_statements`] the rules in it that hold until they are taken back.
//!
//! Everything here is a pure function, and every text it produces is bounded.
//!
//! Not here: choosing the span, when an output is previewed, calling a model, storing anything, resolving links, searching.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod cut_points;
mod extract;
mod link;
mod manifest;
mod new_context;
mod preview;
mod read_back;
mod standing_rules;
mod summary;

pub use extract::own_words::own_words;
pub use extract::{CallEffect, ToolHints};
pub use link::{Link, LinkError};
pub use manifest::{
    ChangeOutcome, ChangingCall, CommandEntry, CoveredItem, Fact, FileEntry, LinkEntry, Manifest,
    ManifestEntry, ManifestText, NamedValues, SentenceKind, TextBudget, UserSentence,
};
pub use new_context::{NEW_CONTEXT, NEW_CONTEXT_REPLY, new_context_summary, new_context_tool};
pub use preview::{
    Preview, PreviewFacts, PreviewPolicy, Previewed, Previewer, Previewing, TextSize, ToolPreview,
};
pub use read_back::{
    Excerpt, FindOptions, FoundLine, FoundLines, Matcher, PathMatches, Pattern, PatternError,
    READ_TOOL, ReadCall, ReadCallError, ReadReply, SearchHit, TextPosition, excerpt_reply,
    extract_excerpt, find_lines, has_read_tool, matches_reply, read_tool, search_reply,
};
pub use standing_rules::{
    RuleOnPath, RuleStrength, StandingRules, Statement, StatementKind, find_statements,
};
pub use summary::{
    SummaryError, SummaryOptions, SummaryTask, read_summary, summary_lines, summary_reminder,
    summary_request, summary_task,
};
