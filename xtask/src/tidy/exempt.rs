//! Exemptions from rules, with their reasons.
//!
//! An exemption for a size that is no longer needed is itself a finding.

use crate::tidy::structure::inherent_impls::Handle;

/// An exemption from a rule.
#[derive(Debug)]
pub(crate) struct Exemption {
    /// A path; for a function `path::function`.
    pub(crate) what: &'static str,
    pub(crate) reason: &'static str,
}

/// Rust files over 800 lines.
pub(crate) const LONG_FILES: &[Exemption] = &[];

/// Functions over 100 lines: the only good reason is one exhaustive `match`.
pub(crate) const LONG_FUNCTIONS: &[Exemption] = &[];

/// Files over 1 MB.
pub(crate) const BIG_FILES: &[Exemption] = &[Exemption {
    what: "crates/testdata/data/exchanges/gemini.jsonl.gz",
    reason: "recorded requests carry whole images, sounds and documents; packed already",
}];

/// Source files under 40 lines that are better kept separate.
pub(crate) const SMALL_FILES: &[Exemption] = &[Exemption {
    what: "xtask/src/evaluation.rs",
    reason: "a task that only starts a program",
}];

/// Folders of more than 20 source files.
pub(crate) const CROWDED_FOLDERS: &[Exemption] = &[Exemption {
    what: "crates/cli/src/commands",
    reason: "one file a command",
}];

/// Types whose methods are in one module each.
pub(crate) const HANDLES: &[Handle] = &[
    Handle {
        name: "Conversation",
        crate_directory: "crates/engine",
        allowed: &["conversation/", "conversation.rs", "handle/"],
    },
    Handle {
        name: "Engine",
        crate_directory: "crates/engine",
        allowed: &["engine/", "engine.rs", "builder.rs", "handle/"],
    },
    Handle {
        name: "Run",
        crate_directory: "crates/runs",
        allowed: &["run.rs", "run/"],
    },
];

/// Maximum number of type names that more than three types of the workspace share.
pub(crate) const SHARED_TYPE_NAMES: usize = 12;

/// Files outside `wire` that name one provider's format (`Format::Anthropic`) because they are about that format. All
/// others use the format's specification (`Format::spec`).
pub(crate) const FORMAT_NAMERS: &[Exemption] = &[
    Exemption {
        what: "crates/eval/src/agent.rs",
        reason: "the agent is a client of one fixed format",
    },
    Exemption {
        what: "crates/compile/src/compiler/target.rs",
        reason: "constructors named after a format",
    },
    Exemption {
        what: "crates/sessions/src/formats/claude.rs",
        reason: "the log is written in one fixed format",
    },
    Exemption {
        what: "crates/sessions/src/formats/swe.rs",
        reason: "the log is written in one fixed format",
    },
    Exemption {
        what: "crates/sessions/src/formats/tau.rs",
        reason: "the log is written in one fixed format",
    },
];

/// Crates whose documentation comments are help texts of a command, which end without a full stop.
pub(crate) const HELP_TEXTS: &[&str] = &["crates/cli", "crates/eval"];
