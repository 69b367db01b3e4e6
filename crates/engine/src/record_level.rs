//! How much is kept of a call. Not here: what that is, `recording`.

/// How much is kept of each call with its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordLevel {
    /// Only hashes: a payload that is there can be told from another, none can be made again.
    Hashes,
    /// What the payload was compiled from, besides what is on the tree: the request with its tools and
    /// options, what was said beside the history. Usually some kilobytes a call, compressed in SQLite.
    #[default]
    Inputs,
    /// That, and the payload itself, so that a difference can be shown.
    Payload,
}
