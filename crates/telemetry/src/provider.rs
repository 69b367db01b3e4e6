//! Who stands behind a format.

use contexture_wire::Format;

/// Who stands behind a format, by OpenTelemetry's names. A host that is compatible with another goes by that one's name.
#[must_use]
pub const fn provider_of(format: Format) -> &'static str {
    match format {
        Format::Anthropic => "anthropic",
        Format::Gemini => "gcp.gen_ai",
        _ => "openai",
    }
}
