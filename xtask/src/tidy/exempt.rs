//! Who is excused from a rule, and why.
//!
//! An entry for a size that no longer excuses anything is a finding itself.

use crate::tidy::structure::inherent_impls::Handle;

/// An excuse.
#[derive(Debug)]
pub(crate) struct Exemption {
    /// A path; for a function `path::function`.
    pub(crate) what: &'static str,
    pub(crate) reason: &'static str,
}

/// Rust files over 800 lines.
pub(crate) const LONG_FILES: &[Exemption] = &[];

/// Functions over 100 lines: only one exhaustive `match` is a good reason.
pub(crate) const LONG_FUNCTIONS: &[Exemption] = &[];

/// Files over 1 MB.
pub(crate) const BIG_FILES: &[Exemption] = &[Exemption {
    what: "crates/testdata/data/exchanges/gemini.jsonl.gz",
    reason: "recorded requests carry whole images, sounds and documents; packed already",
}];

/// Source files under 40 lines that are better alone.
pub(crate) const SMALL_FILES: &[Exemption] = &[];

/// Folders of more than 20 source files.
pub(crate) const CROWDED_FOLDERS: &[Exemption] = &[Exemption {
    what: "crates/cli/src/commands",
    reason: "one file a command",
}];

/// Types whose methods stand in one module.
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

/// Names of types that more than three types of the workspace may have: so many, at most.
pub(crate) const SHARED_TYPE_NAMES: usize = 12;

/// Files outside `wire` that name one provider's format (`Format::Anthropic`) because they are about that format. All
/// others ask what the format says of itself (`Format::spec`).
pub(crate) const FORMAT_NAMERS: &[Exemption] = &[
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
pub(crate) const HELP_TEXTS: &[&str] = &["crates/cli"];
