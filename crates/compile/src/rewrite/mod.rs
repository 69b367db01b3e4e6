//! Whether a history that the provider has cached is rewritten: cleared further, or previewed from now on.
//!
//! Either is done because the history does not fit, or because it pays: what the shorter history saves over the calls to come
//! is more than writing the cache anew costs (`rewrite_cost`), and the last rewriting has paid back.
//!
//! Not here: how content is cleared or previewed (`history`), and the formula (`contexture-prompt-cache`).

pub(crate) mod clear_decision;
pub(crate) mod preview_decision;
pub(crate) mod rewrite_cost;
