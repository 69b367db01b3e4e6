//! The format's own words.

use crate::format::Format;

/// The format.
pub(super) const FORMAT: Format = Format::OpenAiResponses;
/// The key of this format's hints in `ctx:wire`.
pub(super) const NAME: &str = FORMAT.as_str();
/// Whose thoughts and compactions these are.
pub(super) const FAMILY: &str = "openai-responses-v1";

/// Whether items are sent to a model or come from one: what comes has ids and statuses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemDirection {
    Input,
    Output,
}
