//! Whether a call changed something.
//!
//! What the host says of its tool decides, else the tool's annotations, else the verb of its name. A tool whose name tells
//! neither is taken to change something: a change that is named needlessly costs a line, one that is forgotten may be done
//! twice.
//!
//! Not here: what became of it (`changes`).

use std::collections::BTreeMap;

use contexture_ir::{FunctionCall, ToolDefinition};
use serde_json::value::RawValue;

use crate::extract::shell;
use crate::extract::tool_effects::{ToolEffects, split_identifier};

/// Whether calls of a tool change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallEffect {
    /// They only read.
    Reads,
    /// They change something.
    Changes,
}

/// What is known of tools beside their names. Default: nothing.
///
/// ```
/// use contexture_condense::{CallEffect, ToolHints};
///
/// let hints = ToolHints::default().with_effect("sync_calendar", CallEffect::Reads);
/// assert_eq!(hints.effect_of("sync_calendar"), Some(CallEffect::Reads));
/// assert_eq!(hints.effect_of("book_flight"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    effects: BTreeMap<String, CallEffect>,
}

impl ToolHints {
    /// Reads the annotations of tools, as the Model Context Protocol has them: `readOnlyHint` and `destructiveHint`.
    #[must_use]
    pub fn from_definitions(tools: &[ToolDefinition]) -> Self {
        let known = tools.iter().filter_map(|tool| {
            let ToolDefinition::Function(function) = tool else {
                return None;
            };
            let annotations = function.extra.get("annotations")?.fields()?;
            let says = |name: &str| annotations.get(&[name]).map(RawValue::get);
            // Both at once contradict each other: in doubt it changes something.
            let effect = match (says("readOnlyHint"), says("destructiveHint")) {
                (_, Some("true")) | (Some("false"), _) => CallEffect::Changes,
                (Some("true"), _) => CallEffect::Reads,
                _ => return None,
            };
            Some((function.name.clone(), effect))
        });
        Self {
            effects: known.collect(),
        }
    }

    /// Says what calls of a tool do, whatever its name and annotations say.
    #[must_use]
    pub fn with_effect(mut self, tool: impl Into<String>, effect: CallEffect) -> Self {
        self.effects.insert(tool.into(), effect);
        self
    }

    /// Adds what others say, whose word wins.
    #[must_use]
    pub fn overridden_by(mut self, others: &Self) -> Self {
        let others = others.effects.iter();
        self.effects
            .extend(others.map(|(tool, effect)| (tool.clone(), *effect)));
        self
    }

    /// Returns what is known of a tool; `None`: nothing.
    #[must_use]
    pub fn effect_of(&self, tool: &str) -> Option<CallEffect> {
        self.effects.get(tool).copied()
    }
}

/// First words of names of tools that only read.
const READING: &[&str] = &[
    "analyze",
    "ask",
    "browse",
    "calculate",
    "calc",
    "cat",
    "check",
    "compare",
    "compute",
    "count",
    "describe",
    "diff",
    "estimate",
    "evaluate",
    "examine",
    "explain",
    "explore",
    "fetch",
    "find",
    "get",
    "glob",
    "goto",
    "grep",
    "has",
    "head",
    "help",
    "info",
    "inspect",
    "is",
    "locate",
    "lookup",
    "look",
    "ls",
    "measure",
    "peek",
    "ping",
    "preview",
    "query",
    "read",
    "recall",
    "reason",
    "retrieve",
    "scan",
    "scroll",
    "search",
    "see",
    "show",
    "stat",
    "status",
    "summarize",
    "tail",
    "think",
    "translate",
    "validate",
    "verify",
    "view",
    "wait",
    "websearch",
    "webfetch",
];

/// First words of names of tools that only read if all that follows is one of these words: `open_file` reads, `open_ticket`
/// does not.
const READING_OF: &[(&str, &[&str])] = &[
    (
        "load",
        &[
            "file",
            "files",
            "page",
            "url",
            "document",
            "documents",
            "data",
            "dataset",
            "config",
            "configuration",
            "skill",
            "skills",
            "toolkit",
            "memory",
            "history",
            "context",
            "image",
            "state",
        ],
    ),
    (
        "open",
        &[
            "file",
            "files",
            "page",
            "url",
            "document",
            "link",
            "tab",
            "folder",
            "directory",
            "image",
            "path",
        ],
    ),
    ("plan", &["route", "trip", "steps"]),
    (
        "web",
        &["search", "fetch", "browse", "find", "query", "read"],
    ),
];

/// What is listed in the singular: `list_item_for_sale` lists one thing, `list_items` those that there are.
const LISTED: &[&str] = &[
    "all",
    "available",
    "content",
    "dir",
    "directory",
    "folder",
    "history",
    "inventory",
    "tree",
];

/// Words behind which `check` is an action: `check_in_passenger`.
const CHECKING: &[&str] = &["in", "out"];
/// Words behind which another verb may stand: `find_and_merge`.
const JOINTS: &[&str] = &["and", "or", "then"];

/// Words that make a tool one that changes something, wherever they stand in its name: `get_or_create_user`.
const CHANGING: &[&str] = &[
    "add", "apply", "approve", "assign", "book", "buy", "cancel", "charge", "close", "commit",
    "create", "delete", "deploy", "edit", "execute", "insert", "merge", "modify", "move", "order",
    "pay", "post", "publish", "purchase", "push", "put", "refund", "remove", "rename", "replace",
    "reserve", "reset", "revoke", "run", "save", "send", "set", "start", "stop", "submit",
    "update", "upload", "upsert", "write",
];

/// Nouns that some of those words are: `get_order_details` and `get_run_logs` read.
const NOUNS: &[&str] = &["commit", "merge", "order", "post", "run", "set"];

/// Verbs that count as changing only behind a joining word (`fetch_and_archive`): most are nouns too (`get_lock_status`).
const SECOND_VERBS: &[&str] = &[
    "accept",
    "archive",
    "ban",
    "block",
    "checkout",
    "clear",
    "confirm",
    "drop",
    "email",
    "forward",
    "install",
    "invite",
    "kill",
    "lock",
    "mail",
    "notify",
    "patch",
    "process",
    "purge",
    "quarantine",
    "rebook",
    "register",
    "reject",
    "release",
    "reply",
    "reschedule",
    "restart",
    "restore",
    "schedule",
    "sell",
    "ship",
    "sign",
    "subscribe",
    "switch",
    "tag",
    "transfer",
    "unlock",
    "upgrade",
    "wipe",
];

/// Verbs of tools that change nothing but the files they are given.
const FILE_VERBS: &[&str] = &[
    "append",
    "apply",
    "create",
    "delete",
    "edit",
    "insert",
    "modify",
    "move",
    "multiedit",
    "notebookedit",
    "overwrite",
    "patch",
    "remove",
    "rename",
    "replace",
    "rm",
    "save",
    "str",
    "touch",
    "undo",
    "unlink",
    "update",
    "write",
];

/// Whether a call changed something that no list of its own tells: changed files have one, and tasks.
pub(crate) fn is_change(call: &FunctionCall, effects: &ToolEffects, hints: &ToolHints) -> bool {
    match hints.effect_of(&call.name) {
        Some(CallEffect::Reads) => return false,
        Some(CallEffect::Changes) => return !edits_files(call, effects),
        None => {}
    }
    match &effects.command {
        Some(command) => !shell::is_read_only(command),
        None if effects.tasks.is_some() => false,
        None => changes_by_name(&call.name) && !edits_files(call, effects),
    }
}

/// Whether all that a call changes is files that it names.
fn edits_files(call: &FunctionCall, effects: &ToolEffects) -> bool {
    let is_verb = |word: &String| FILE_VERBS.contains(&word.as_str());
    !effects.files.is_empty() && split_identifier(own_name(&call.name)).iter().any(is_verb)
}

/// Decides by the words of a tool's name. In doubt a call changed something.
fn changes_by_name(name: &str) -> bool {
    let words = split_identifier(own_name(name));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((first, rest)) = words.split_first() else {
        return true;
    };
    let changes = |word: &&str| CHANGING.contains(word) && !NOUNS.contains(word);
    // Alone many verbs are nouns, too: `get_lock_status`. Behind "and" they are not.
    let is_second_verb = |pair: &[&str]| {
        let is_verb = |word: &str| CHANGING.contains(&word) || SECOND_VERBS.contains(&word);
        matches!(pair, [joint, verb] if JOINTS.contains(joint) && is_verb(verb))
    };
    !only_reads(first, rest) || rest.iter().any(changes) || rest.windows(2).any(is_second_verb)
}

/// Whether the first word of a tool's name says that it only reads what the rest names.
fn only_reads(first: &str, rest: &[&str]) -> bool {
    match first {
        "check" => !rest.first().is_some_and(|word| CHECKING.contains(word)),
        "list" => {
            let is_listed = |word: &&str| word.ends_with('s') || LISTED.contains(word);
            rest.is_empty() || rest.iter().any(is_listed)
        }
        _ => match READING_OF.iter().find(|(verb, _)| *verb == first) {
            Some((_, objects)) => rest.iter().all(|word| objects.contains(word)),
            None => READING.contains(&first),
        },
    }
}

/// The name of a tool without that of its server: `mcp__github__create_issue`, `files.read`.
fn own_name(name: &str) -> &str {
    let behind_server = name.rsplit("__").next().unwrap_or(name);
    behind_server.rsplit(['.', '/', ':']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionTool, Raw};

    use super::*;

    fn is_named_change(name: &str, arguments: &str, hints: &ToolHints) -> bool {
        let call = FunctionCall::new("c", name, arguments);
        super::is_change(&call, &ToolEffects::of_call(&call), hints)
    }

    #[test]
    fn what_changes_something_is_told_by_name() {
        for (name, expected) in [
            ("book_reservation", true),
            ("mcp__github__create_issue", true),
            ("mcp__github__get_issue", false),
            ("getOrCreateUser", true),
            ("get_order_details", false),
            ("list_commits", false),
            ("search_direct_flight", false),
            ("calculate", false),
            ("think", false),
            ("transfer_to_human_agents", true),
            ("files.read", false),
            ("frobnicate", true),
            ("open_pull_request", true),
            ("open_file", false),
            ("open", false),
            ("check_in_passenger", true),
            ("checkOutGuest", true),
            ("check_availability", false),
            ("load_shipment", true),
            ("load_skill", false),
            ("list_item_for_sale", true),
            ("list_items_of_order", false),
            ("list_pull_requests", false),
            ("list_mcp_resource_templates", false),
            ("list_directory", false),
            ("find_and_merge", true),
            ("scan_and_quarantine", true),
            ("fetch_and_archive", true),
            ("get_lock_status", false),
            ("search_flights_and_hotels", false),
            ("web_search", false),
            ("web_publish", true),
            ("", true),
        ] {
            assert_eq!(
                is_named_change(name, "{}", &ToolHints::default()),
                expected,
                "{name}"
            );
        }
        // What only changes files it names is in the list of files, a task list in that of tasks.
        let none = ToolHints::default();
        assert!(!is_named_change("Write", r#"{"file_path":"a.rs"}"#, &none));
        assert!(is_named_change(
            "upload_file",
            r#"{"file":"a.rs","bucket":"b"}"#,
            &none
        ));
        assert!(!is_named_change("TodoWrite", r#"{"todos":[]}"#, &none));
        assert!(!is_named_change(
            "Bash",
            r#"{"command":"cat a.rs | grep x"}"#,
            &none
        ));
        assert!(is_named_change("Bash", r#"{"command":"git push"}"#, &none));
    }

    #[test]
    fn hosts_and_annotations_come_before_names() {
        let annotated = |name: &str, annotations: &str| {
            let mut tool = FunctionTool {
                name: name.to_owned(),
                ..FunctionTool::default()
            };
            tool.extra
                .set("annotations", Raw::parse(annotations).unwrap());
            ToolDefinition::Function(tool)
        };
        let hints = ToolHints::from_definitions(&[
            annotated("sync", r#"{"readOnlyHint":true}"#),
            annotated(
                "get_quote",
                r#"{"destructiveHint":true,"readOnlyHint":true}"#,
            ),
            annotated("book", r#"{"title":"Book"}"#),
            annotated("get_ready", r#"{"readOnlyHint":false}"#),
        ]);
        assert!(is_named_change("get_ready", "{}", &hints));
        assert!(!is_named_change("sync", "{}", &hints));
        assert!(is_named_change("get_quote", "{}", &hints));
        assert!(is_named_change("book", "{}", &hints));
        let host = ToolHints::default().with_effect("book", CallEffect::Reads);
        assert!(!is_named_change("book", "{}", &hints.overridden_by(&host)));
    }
}
