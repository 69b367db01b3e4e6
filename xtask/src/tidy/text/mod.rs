//! Rules on text: comments, documents, committed text, tables of tests, fixtures.

pub(crate) mod behaviour;
pub(crate) mod comments;
pub(crate) mod committed_text;
pub(crate) mod doc_comments;
pub(crate) mod documents;
pub(crate) mod fixtures;
pub(crate) mod lint_suppressions;
