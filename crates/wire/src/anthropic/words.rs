//! The format's own names.

use crate::format::Format;

/// The format's name, also the key of its fields in `ctx:wire`.
pub(super) const FORMAT: &str = Format::Anthropic.as_str();
/// What opaque fields of reasoning and compactions are marked with.
pub(super) const FAMILY: &str = "anthropic-claude-v1";
/// Where a message's own unknown fields hang on its first item.
pub(super) const MESSAGE: &str = "(message)";
