//! Who is excused from a size limit, and why. An entry that no longer excuses anything is a finding itself.

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
