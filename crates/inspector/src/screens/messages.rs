//! The messages of a conversation, with tool calls folded.

use maud::{Markup, html};

use crate::document::View;
use crate::figures::{clip, encode, number, printable, words};

/// Characters of one text that a page shows.
const TEXT_CHARACTERS: usize = 4_000;
/// Characters of a call's arguments in its folded line.
const ARGUMENT_CHARACTERS: usize = 120;

/// Draws the messages of a page, oldest first.
pub(crate) fn message_list<'a>(messages: impl Iterator<Item = View<'a>>) -> Markup {
    html! { ol.messages { @for one in messages { (message(one)) } } }
}

fn message(one: View<'_>) -> Markup {
    let role = one.text("role");
    html! {
        li.message.(role_class(role)) {
            h3.role { (printable(role)) }
            div.parts-of { @for part in one.list("parts") { (message_part(part)) } }
        }
    }
}

/// The class of a role; any other role looks like the system's.
fn role_class(role: &str) -> &'static str {
    match role {
        "user" => "user",
        "assistant" => "assistant",
        _ => "other",
    }
}

fn message_part(part: View<'_>) -> Markup {
    let kind = part.text("type");
    match kind {
        "text" => text_block(part.text("text")),
        "reasoning" => html! {
            details.fold { summary { span.kind { "thinking" } } (text_block(part.text("text"))) }
        },
        "step-start" => html! {},
        "file" => {
            html! { p.sub { "file · " (printable(part.text("mediaType"))) @if let Some(name) = part.text_of("filename") { " · " (printable(name)) } } }
        }
        "dynamic-tool" => tool_part(part, part.text("toolName")),
        kind => match kind.strip_prefix("tool-") {
            Some(tool) => tool_part(part, tool),
            None => {
                html! { details.fold { summary { span.kind { (printable(kind)) } } (json_block(part)) } }
            }
        },
    }
}

/// A call with its output: one line, and both when it is opened.
fn tool_part(part: View<'_>, tool: &str) -> Markup {
    let (input, output) = (part.at("input"), part.at("output"));
    let error = part.text_of("errorText");
    let arguments = input.present().map(|input| input.json().to_string());
    let (arguments, more) = clip(&arguments.unwrap_or_default(), ARGUMENT_CHARACTERS);
    html! {
        details.fold.tool {
            summary {
                span.kind { (printable(tool)) }
                code.arguments { (arguments) @if more > 0 { "…" } }
                span.state.bad[error.is_some()] { (tool_state(part, error)) }
            }
            div.io {
                h4 { "Arguments" } (json_block(input))
                h4 { "Output" }
                @match error {
                    Some(error) => (text_block(error)),
                    None => @match output.json().as_str() {
                        Some(text) => (pre_block(text)),
                        None if output.is_missing() => p.unknown { "none yet" },
                        None => (json_block(output)),
                    },
                }
            }
        }
    }
}

fn tool_state(part: View<'_>, error: Option<&str>) -> Markup {
    // The length says whether it is worth opening, before it is opened.
    let output = part.at("output").json();
    let characters = match output {
        serde_json::Value::Null => 0,
        serde_json::Value::String(text) => text.chars().count(),
        other => other.to_string().chars().count(),
    };
    html! {
        @if error.is_some() { "failed" }
        @else if part.text("state").starts_with("output") { (number(characters as u64)) " characters" }
        @else { "open" }
    }
}

/// A text of a person or a model, in its own direction.
pub(crate) fn text_block(text: &str) -> Markup {
    let (shown, more) = clip(text, TEXT_CHARACTERS);
    html! { div.text dir="auto" { (shown) } (rest_of(more)) }
}

/// A text as a machine wrote it.
pub(crate) fn pre_block(text: &str) -> Markup {
    let (shown, more) = clip(text, TEXT_CHARACTERS);
    html! { pre tabindex="0" { (shown) } (rest_of(more)) }
}

pub(crate) fn json_block(value: View<'_>) -> Markup {
    pre_block(&serde_json::to_string_pretty(value.json()).unwrap_or_default())
}

pub(crate) fn rest_of(more: usize) -> Markup {
    html! { @if more > 0 { p.hint { "… " (number(more as u64)) " more characters" } } }
}

/// An item of a conversation as it is stored, folded unless it is short.
pub(crate) fn item_block(conversation: &str, node: View<'_>) -> Markup {
    let item = node.at("item");
    let text = item_text(item);
    // In one line, since the summary of a fold is one.
    let (line, _) = clip(
        &text.split_whitespace().collect::<Vec<_>>().join(" "),
        ARGUMENT_CHARACTERS,
    );
    html! {
        details.fold {
            summary {
                span.kind { (words(node.text("kind"))) }
                code.arguments { (line) }
                span.state { (number(text.chars().count() as u64)) " characters" }
            }
            (pre_block(&text))
            p.sub { a href={ "/ui/c/" (encode(conversation)) "/item/" (encode(node.text("id"))) } { "the whole item" } " · " (node.text("origin")) }
        }
    }
}

/// Returns an item's text: its content parts in order, or a call with its arguments, or a call's output.
fn item_text(item: View<'_>) -> String {
    match item.text("type") {
        "function_call" => format!("{}({})", item.text("name"), item.text("arguments")),
        "function_call_output" => match item.at("output").json() {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        },
        _ => {
            let texts: Vec<&str> = item
                .list("content")
                .filter_map(|part| part.text_of("text"))
                .collect();
            match item.at("content").json() {
                serde_json::Value::String(text) => text.clone(),
                _ if texts.is_empty() => item.json().to_string(),
                _ => texts.join("\n"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hostile_texts_are_shown_and_do_nothing() {
        let script = "<script>alert(1)</script>\u{202e}";
        let shown = json!([{"role": script, "parts": [
            {"type": "text", "text": script}, {"type": script},
            {"type": format!("tool-{script}"), "state": "output-available", "input": {"a": script}, "output": script},
        ]}]);
        let page = message_list(View::new(&json!({"m": shown})).list("m")).into_string();
        assert!(
            !page.contains("<script") && !page.contains('\u{202e}'),
            "{page}"
        );
        assert!(page.contains("&lt;script&gt;alert(1)"));
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let page = text_block(&"ü".repeat(10_000_000)).into_string();
        assert!(page.len() < 20_000 && page.contains("9,996,000"));
    }

    #[test]
    fn items_say_what_they_say() {
        for (item, expected) in [
            (
                json!({"type": "function_call", "name": "f", "arguments": "{}"}),
                "f({})",
            ),
            (
                json!({"type": "function_call_output", "output": "out"}),
                "out",
            ),
            (
                json!({"type": "message", "content": [{"text": "a"}, {"text": "b"}]}),
                "a\nb",
            ),
            (json!({"type": "message", "content": "plain"}), "plain"),
        ] {
            assert_eq!(item_text(View::new(&item)), expected);
        }
    }
}
