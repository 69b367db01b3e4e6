//! Session logs of agents, read into items and written back.
//!
//! [`detect_format`] finds out which log a text is; [`read_sessions`] cuts it into [`Session`]s: items in a
//! tree, heads of
//! its branches, and as metadata whatever is not an item, verbatim. [`write_session`](write_session()) gives back the
//! same JSON values, unknown fields included. Logs that hold a provider's request bodies or message
//! arrays are read by that provider's format in `contexture-wire`. What the calls of a log used is read by
//! [`UsageReader`], line by line.
//!
//! Not here: files, stores, ids of nodes. A session names a stable `source_id`; whoever stores it
//! derives ids from that and a node's index, so that importing twice changes nothing.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod detect;
mod error;
mod format;
mod formats;
mod json;
mod kept_records;
mod lines;
mod session;
mod skip_bad_messages;
mod usage;

pub use detect::{Detected, detect_format};
pub use error::SessionError;
pub use format::SessionFormat;
pub use formats::{read_sessions, write_session, write_sessions};
pub use session::{
    ReadOptions, Session, SessionHead, SessionInfo, SessionName, SessionNode, Skipped,
};
pub use usage::{
    AnswerIdentity, LogEvent, LogEvents, LogUsage, LoggedCall, ReportedTokens, UsageReader,
};
