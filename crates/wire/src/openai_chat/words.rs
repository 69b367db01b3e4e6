//! The format's own words.

use crate::format::Format;

/// The format.
pub(super) const FORMAT: Format = Format::OpenAiChat;
/// The key of Chat's own fields in `ctx:wire`.
pub(super) const NAME: &str = FORMAT.as_str();
