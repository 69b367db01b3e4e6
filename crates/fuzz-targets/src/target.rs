//! The table of all targets.

use crate::{names, plans, portable, protocol, session_logs, small_texts, streams, wire_documents};

/// A parser, as a function that fails if an invariant does not hold, and inputs to begin with.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Its name, which is also that of its binary in `fuzz/`.
    pub name: &'static str,
    /// Reads bytes and checks what must hold. Panics if it does not.
    pub check: fn(&[u8]),
    /// The inputs that mutations start from. Panics if a recording is missing.
    pub corpus: fn() -> Vec<Vec<u8>>,
}

impl FuzzTarget {
    const fn new(name: &'static str, check: fn(&[u8]), corpus: fn() -> Vec<Vec<u8>>) -> Self {
        Self {
            name,
            check,
            corpus,
        }
    }
}

/// Every parser of bytes that strangers send.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget::new(
        "wire_documents",
        wire_documents::check_document,
        wire_documents::documents,
    ),
    FuzzTarget::new(
        "ui_messages",
        wire_documents::check_ui_messages,
        wire_documents::ui_messages,
    ),
    FuzzTarget::new("items", wire_documents::check_items, wire_documents::items),
    FuzzTarget::new(
        "stream_events",
        streams::check_events,
        streams::event_streams,
    ),
    FuzzTarget::new(
        "stream_frames",
        streams::check_frames,
        streams::framed_streams,
    ),
    FuzzTarget::new(
        "session_logs",
        session_logs::check_sessions,
        session_logs::logs,
    ),
    FuzzTarget::new("import_lines", portable::check_import, portable::exports),
    FuzzTarget::new("plans", plans::check_plan, plans::plans),
    FuzzTarget::new("mcp_calls", protocol::check_calls, protocol::calls),
    FuzzTarget::new(
        "fragments",
        small_texts::check_fragments,
        small_texts::fragments,
    ),
    FuzzTarget::new(
        "skill_files",
        small_texts::check_skill,
        small_texts::skill_files,
    ),
    FuzzTarget::new(
        "models_files",
        small_texts::check_models_file,
        small_texts::models_files,
    ),
    FuzzTarget::new(
        "tool_arguments",
        small_texts::check_tool_arguments,
        small_texts::tool_arguments,
    ),
    FuzzTarget::new(
        "search_queries",
        small_texts::check_query,
        small_texts::queries,
    ),
    FuzzTarget::new("json_texts", names::check_json, names::json_texts),
    FuzzTarget::new("links_and_names", names::check_name, names::names),
    FuzzTarget::new(
        "provider_paths",
        names::check_provider_path,
        names::provider_paths,
    ),
];

/// Returns the target of a name.
#[must_use]
pub fn find_target(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}
