//! Telling the format of a document from its shape.
//!
//! Formats differ in the names of their fields, so a look at the outermost object and at a few
//! messages decides; nothing is parsed deeper than that, and nothing is validated. Messages that say
//! nothing but text are alike in OpenAI's and Anthropic's format: without any other sign they are
//! taken for OpenAI's, which most programs write.

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use crate::format::Format;

/// How many messages are looked at.
const LOOKED_AT: usize = 200;

/// The format of a request, a response or an array of messages; `None` if it is none we know.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    let text = text.trim_start();
    if text.starts_with('[') {
        return of_messages(&elements(text)?);
    }
    let fields = Fields::parse(text).ok()?;
    let has = |name: &str| fields.get(&[name]).is_some();
    let list = |name: &str| fields.get(&[name]).and_then(|list| elements(list.get()));
    if has("contents") || has("candidates") {
        return Some(Format::Gemini);
    }
    if has("choices") {
        return Some(Format::OpenAiChat);
    }
    if has("items") && !has("messages") {
        return Some(Format::Items);
    }
    if has("input") || has("output") {
        return Some(Format::OpenAiResponses);
    }
    if has("role") && has("parts") {
        return Some(Format::Ui);
    }
    if word(&fields, "type").as_deref() == Some("message") && has("role") {
        return Some(Format::Anthropic);
    }
    let messages = list("messages")?;
    if has("system") || has("stop_sequences") || has("thinking") || has("anthropic_version") {
        return Some(Format::Anthropic);
    }
    if let Some(tool) = list("tools").and_then(|tools| tools.into_iter().next())
        && let Some(tool) = Fields::parse(tool.get()).ok()
    {
        if tool.get(&["function"]).is_some() {
            return Some(Format::OpenAiChat);
        }
        if tool.get(&["input_schema"]).is_some() {
            return Some(Format::Anthropic);
        }
    }
    of_messages(&messages)
}

fn of_messages(messages: &[&RawValue]) -> Option<Format> {
    let mut fallback = messages.is_empty().then_some(Format::OpenAiChat);
    for message in messages.iter().take(LOOKED_AT) {
        let fields = Fields::parse(message.get()).ok()?;
        match of_message(&fields) {
            Sign::Sure(format) => return Some(format),
            Sign::Text => fallback = Some(Format::OpenAiChat),
            Sign::None => {}
        }
    }
    fallback
}

enum Sign {
    Sure(Format),
    /// A message of text, as several formats have it.
    Text,
    None,
}

fn of_message(fields: &Fields<'_>) -> Sign {
    let has = |name: &str| fields.get(&[name]).is_some();
    if let Some(parts) = fields.get(&["parts"]) {
        let typed = elements(parts.get()).is_some_and(|parts| {
            parts.iter().any(|part| Fields::parse(part.get()).is_ok_and(|part| part.get(&["type"]).is_some()))
        });
        let ui = typed || has("id") || word(fields, "role").as_deref() == Some("assistant");
        return Sign::Sure(if ui { Format::Ui } else { Format::Gemini });
    }
    if has("tool_calls") || has("tool_call_id") || has("function_call") {
        return Sign::Sure(Format::OpenAiChat);
    }
    let kind = word(fields, "type");
    if let Some(kind) = kind.as_deref()
        && (!has("role") || kind == "message")
    {
        let own = kind.starts_with("ctx:");
        return Sign::Sure(if own { Format::Items } else { Format::OpenAiResponses });
    }
    let role = word(fields, "role");
    if matches!(role.as_deref(), Some("tool" | "function")) {
        return Sign::Sure(Format::OpenAiChat);
    }
    match fields.get(&["content"]).map(|content| (content, elements(content.get()))) {
        Some((_, Some(blocks))) => of_blocks(&blocks),
        Some(_) if role.is_some() => Sign::Text,
        _ => Sign::None,
    }
}

fn of_blocks(blocks: &[&RawValue]) -> Sign {
    for block in blocks {
        let Ok(fields) = Fields::parse(block.get()) else {
            continue;
        };
        let sure = match word(&fields, "type").as_deref() {
            Some("input_text" | "output_text" | "input_image" | "input_file") => {
                Some(Format::OpenAiResponses)
            }
            Some("image_url" | "input_audio" | "file") => Some(Format::OpenAiChat),
            Some("text") if fields.get(&["cache_control"]).is_some() => Some(Format::Anthropic),
            Some("text" | "refusal") | None => None,
            // Anthropic has all the other blocks: tool_use, tool_result, thinking, image, document, ….
            Some(_) => Some(Format::Anthropic),
        };
        if let Some(format) = sure {
            return Sign::Sure(format);
        }
    }
    Sign::Text
}

fn elements(text: &str) -> Option<Vec<&RawValue>> {
    text.starts_with('[').then(|| serde_json::from_str(text).ok())?
}

fn word(fields: &Fields<'_>, name: &str) -> Option<String> {
    Raw::from(fields.get(&[name])?).as_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_tell_formats() {
        let check = |text: &str, expected: Option<Format>| assert_eq!(detect(text), expected, "{text}");
        let chat = Some(Format::OpenAiChat);
        check(r#"[{"role":"user","content":"hi"}]"#, chat);
        check(r#"[]"#, chat);
        check(r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[]}]}"#, chat);
        check(r#"{"model":"gpt-5","messages":[],"tools":[{"type":"function","function":{}}]}"#, chat);
        check(r#"{"choices":[]}"#, chat);
        let responses = Some(Format::OpenAiResponses);
        check(r#"{"model":"gpt-5","input":"hi"}"#, responses);
        check(r#"{"object":"response","output":[]}"#, responses);
        check(r#"[{"type":"function_call","name":"f"}]"#, responses);
        check(r#"[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]"#, responses);
        let anthropic = Some(Format::Anthropic);
        check(r#"{"system":"s","messages":[{"role":"user","content":"hi"}]}"#, anthropic);
        check(r#"{"messages":[],"tools":[{"name":"f","input_schema":{}}]}"#, anthropic);
        check(r#"{"type":"message","role":"assistant","content":[]}"#, anthropic);
        check(r#"[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use"}]}]"#, anthropic);
        let gemini = Some(Format::Gemini);
        check(r#"{"contents":[]}"#, gemini);
        check(r#"[{"role":"user","parts":[{"text":"hi"}]}]"#, gemini);
        let ui = Some(Format::Ui);
        check(r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"hi"}]}]"#, ui);
        check(r#"{"id":"1","role":"assistant","parts":[]}"#, ui);
        check(r#"[{"type":"ctx:message","id":"1"}]"#, Some(Format::Items));
        for none in ["", "1", "{", "{}", "[1]", r#"{"history":[]}"#, r#"[{"a":1}]"#] {
            check(none, None);
        }
    }
}
