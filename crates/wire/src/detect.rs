//! The format of a document, by what is in it: every format is asked, and the most certain evidence wins.

use contexture_ir::Fields;

use crate::model::evidence::Evidence;
use crate::model::format::Format;

/// Detects the format of an object: a request, a response or a single message. `None` if nothing speaks for any.
///
/// ```
/// use contexture_ir::Fields;
/// use contexture_wire::{Format, detect_object};
///
/// let object = Fields::parse(r#"{"contents":[]}"#).unwrap();
/// let (format, evidence) = detect_object(&object).unwrap();
/// assert_eq!(format, Format::Gemini);
/// assert_eq!(evidence.text, "an object with `contents` or `candidates`");
/// ```
#[must_use]
pub fn detect_object(object: &Fields<'_>) -> Option<(Format, Evidence)> {
    most_certain(|format| format.spec().detect_object(object))
}

/// Detects the format of an array of messages, whose elements that are no objects come as empty ones. `None` if nothing
/// speaks for any.
#[must_use]
pub fn detect_messages(messages: &[Fields<'_>]) -> Option<(Format, Evidence)> {
    most_certain(|format| format.spec().detect_messages(messages))
}

fn most_certain(evidence: impl Fn(Format) -> Option<Evidence>) -> Option<(Format, Evidence)> {
    let found = Format::ALL
        .into_iter()
        .filter_map(|format| Some((format, evidence(format)?)));
    found.max_by_key(|(_, evidence)| evidence.certainty)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents with signs of two formats: the sign that another format cannot have decides.
    #[test]
    fn most_certain_evidence_wins() {
        let object = |json: &str| detect_object(&Fields::parse(json).unwrap()).map(|(own, _)| own);
        let cases = [
            (r#"{"contents":[],"items":[]}"#, Some(Format::Gemini)),
            (r#"{"items":[],"choices":[]}"#, Some(Format::Items)),
            (r#"{"choices":[],"output":[]}"#, Some(Format::OpenAiChat)),
            (
                r#"{"input":[],"role":"user","parts":[]}"#,
                Some(Format::OpenAiResponses),
            ),
            (
                r#"{"type":"message","content":[],"role":"user","parts":[]}"#,
                Some(Format::Ui),
            ),
            (
                r#"{"messages":[{"role":"user"}],"system":""}"#,
                Some(Format::Anthropic),
            ),
            (r#"{"messages":[{"role":"tool"}],"system":""}"#, None),
            (r#"{"messages":[]}"#, None),
        ];
        for (json, expected) in cases {
            assert_eq!(object(json), expected, "{json}");
        }
    }

    #[test]
    fn messages_with_two_formats_words_have_one_format() {
        let list = |messages: &[&str]| {
            let messages: Vec<Fields<'_>> = messages
                .iter()
                .map(|one| Fields::parse(one).unwrap())
                .collect();
            detect_messages(&messages).map(|(format, _)| format)
        };
        let blocks = r#"{"role":"user","content":[{"type":"tool_result"}]}"#;
        let system = r#"{"role":"system","content":""}"#;
        let user = r#"{"role":"user","content":""}"#;
        assert_eq!(list(&[blocks, system]), Some(Format::Anthropic));
        assert_eq!(list(&[system, blocks]), Some(Format::OpenAiChat));
        assert_eq!(list(&[user, system]), Some(Format::OpenAiChat));
        assert_eq!(list(&[user]), Some(Format::OpenAiChat));
        let part = r#"{"role":"user","parts":[{"text":"a"}]}"#;
        let typed = r#"{"role":"user","parts":[{"type":"text"}]}"#;
        let item = r#"{"type":"function_call"}"#;
        assert_eq!(list(&[part, item]), Some(Format::Gemini));
        assert_eq!(list(&[part, typed]), Some(Format::Ui));
        assert_eq!(list(&[user, item]), Some(Format::Items));
        assert_eq!(list(&[r#"{"a":1}"#]), None);
        assert_eq!(list(&[]), None);
    }
}
