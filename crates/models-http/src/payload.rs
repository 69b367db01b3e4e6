//! The word by which a payload asks for a stream, where its format has one. Everything else of it stays as it
//! is, byte for byte, because a provider's cache knows prompts by their bytes.

use contexture_wire::Format;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The payload of a call that wants a stream. What the payload says of it already stays.
pub(crate) fn request_streaming(format: Format, payload: String) -> String {
    if format == Format::Gemini {
        return payload;
    }
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&payload) else {
        return payload;
    };
    let mut added = String::new();
    if !members.contains_key("stream") {
        added.push_str(",\"stream\":true");
    }
    if format == Format::OpenAiChat && !members.contains_key("stream_options") {
        added.push_str(",\"stream_options\":{\"include_usage\":true}");
    }
    let empty = members.is_empty();
    let Some(body) = payload.trim_end().strip_suffix('}') else {
        return payload;
    };
    let added = if empty {
        added.trim_start_matches(',')
    } else {
        &added
    };
    format!("{body}{added}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_asked_for_at_the_end() {
        for (format, payload, expected) in [
            (Format::Anthropic, r#"{"a":1}"#, r#"{"a":1,"stream":true}"#),
            (
                Format::Anthropic,
                r#"{"stream":false} "#,
                r#"{"stream":false}"#,
            ),
            (Format::OpenAiResponses, "{}", r#"{"stream":true}"#),
            (
                Format::OpenAiChat,
                r#"{"a":1}"#,
                r#"{"a":1,"stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (Format::Gemini, r#"{"a":1}"#, r#"{"a":1}"#),
            (Format::OpenAiChat, "no json", "no json"),
        ] {
            assert_eq!(request_streaming(format, payload.to_owned()), expected);
        }
    }
}
