//! The format's own names.

use crate::format::Format;

/// The format's name, also the key of its fields in `ctx:wire`.
pub(super) const FORMAT: &str = Format::Gemini.as_str();
/// What opaque fields of reasoning are marked with, and how such marks begin.
pub(super) const FAMILY: &str = "google-gemini-v1";
pub(super) const MAKER: &str = "google";
/// Where a content's own unknown fields hang on its first item.
pub(super) const CONTENT: &str = "(content)";
