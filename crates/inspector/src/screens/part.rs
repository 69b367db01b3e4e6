//! A part of a call's window: what it is, the rule that decided about it, and the texts as they are stored beside what was sent.

use maud::{Markup, html};

use crate::api::{Api, ApiError};
use crate::document::{Document, View};
use crate::figures::{encode, number, printable, words};
use crate::layout::{Viewer, alert, link, node_menu};
use crate::screens::messages::{pre_block, text_block};
use crate::window::Window;

/// Items of a part whose texts are shown.
const ITEMS: u64 = 20;

/// The part of a window that a reader chose, by its number from 1.
pub(crate) struct ChosenPart {
    number: usize,
    /// Its items with what was sent in their places.
    items: Result<Document, ApiError>,
}

impl ChosenPart {
    /// Loads the texts of a part; `None` if none is chosen, or the call has no part of this number.
    pub(crate) async fn load(api: &impl Api, call: View<'_>, chosen: Option<&str>) -> Option<Self> {
        let number: usize = chosen?.parse().ok()?;
        let window = Window::of_call(call)?;
        let part = window.part(number)?;
        // What is no item of the conversation has no items to show; of the system prompt the same document has the texts.
        let (first, last) = part.span.unwrap_or_default();
        let limit = last
            .saturating_sub(first)
            .saturating_add(1)
            .min(ITEMS)
            .to_string();
        let asked = [("first", Some(first.to_string())), ("limit", Some(limit))];
        let asked = asked
            .each_ref()
            .map(|(name, value)| (*name, value.as_deref()));
        let path = format!("/api/v1/calls/{}/items", encode(call.text("id")));
        Some(Self {
            number,
            items: api.get(&link(&path, &asked)).await,
        })
    }

    /// Draws the part with its texts.
    pub(crate) fn block(&self, viewer: &Viewer, call: View<'_>, window: &Window<'_>) -> Markup {
        let Some(part) = window.part(self.number) else {
            return html! {};
        };
        html! {
            section.chosen #part aria-labelledby="chosen" {
                h3 #chosen { "Part " (self.number) ": " (window.part_words(self.number)) }
                p.sub {
                    (number(part.tokens)) " tokens in the request"
                    @if part.omitted_tokens > 0 { " · " strong { (number(part.omitted_tokens)) " left out" } }
                    @if let Some(rule) = window.rule_words(self.number) { " · " (rule) }
                }
                @match &self.items {
                    Err(error) => (alert(&error.detail)),
                    Ok(items) => (item_texts(viewer, call, part.span, items.view())),
                }
            }
        }
    }
}

/// Draws the items of a part; of what is no item, where its text is.
fn item_texts(
    viewer: &Viewer,
    call: View<'_>,
    span: Option<(u64, u64)>,
    items: View<'_>,
) -> Markup {
    if let Some(missing) = items.text_of("missing") {
        return html! { p.hint { "Its texts cannot be shown: " (printable(missing)) "." } };
    }
    let sent = format!("/ui/call/{}/sent.json", encode(call.text("id")));
    let Some((first, last)) = span else {
        let system: Vec<&str> = items.texts("system").collect();
        return html! {
            p.hint { "It is no item of the conversation. " a href=(sent) { "The whole request as it was sent" } " has it." }
            @if !system.is_empty() {
                details.fold { summary { span.kind { "The system prompt as it was sent" } } @for text in system { (text_block(text)) } }
            }
        };
    };
    let list: Vec<View<'_>> = items.list("items").collect();
    let all = last.saturating_sub(first) + 1;
    html! {
        @if items.at("exact").json().as_bool() == Some(false) {
            p.hint { "The request was made again of what is stored, and may not be what was sent byte for byte." }
        }
        ol.pieces { @for item in &list { li { (show_piece(viewer, call.text("conversation"), *item)) } } }
        @if (list.len() as u64) < all { p.hint { "The first " (list.len()) " of " (number(all)) " items. " a href=(sent) { "The whole request as it was sent" } } }
    }
}

/// An item as it is stored, beside what was sent in its place.
fn show_piece(viewer: &Viewer, conversation: &str, item: View<'_>) -> Markup {
    let (text, sent, node) = (
        item.text("text"),
        item.at("sent").json().as_str(),
        item.text("node"),
    );
    html! {
        div.piece-line {
            span.kind { (words(item.text("kind"))) } " "
            @match item.text_of("verdict") {
                Some(verdict) => { strong { (words(verdict)) } @if let Some(rule) = item.text_of("rule") { ": " (printable(rule)) } },
                None => "sent as it is",
            }
            @if let Some((tokens, sent)) = item.number("tokens").zip(item.number("sent_tokens")) { " · " (number(tokens)) " → " (number(sent)) " tokens" }
            " · " a href={ "/ui/c/" (encode(conversation)) "/item/" (encode(node)) } { "the whole item" }
        }
        (node_menu(viewer, conversation, node, false, &html! {}))
        @match sent {
            Some(sent) if sent == text => (pre_block(text)),
            sent => div.pair {
                div { h4 { "as it is stored" } (pre_block(text)) }
                div { h4 { "as it was sent" }
                    @match sent {
                        Some(sent) => (pre_block(sent)),
                        None if item.count("sent_tokens") > 0 => p.hint { "in another form, with others" },
                        None => p.hint { "nothing: it was left out" },
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_shows_what_became_of_it() {
        let shown = |item| show_piece(&Viewer::default(), "a", View::new(&item)).into_string();
        let cleared = shown(
            json!({"kind": "function_call_output", "node": "1", "text": "long <b>", "sent": "[cleared]",
            "verdict": "cleared", "rule": "old outputs", "tokens": 900, "sent_tokens": 4}),
        );
        assert!(cleared.contains("long &lt;b&gt;") && cleared.contains("[cleared]"));
        assert!(cleared.contains("old outputs") && cleared.contains("900"));
        let whole =
            shown(json!({"kind": "message", "node": "1", "text": "hello", "sent": "hello"}));
        assert!(whole.contains("sent as it is") && whole.matches("hello").count() == 1);
        let gone = shown(
            json!({"kind": "message", "node": "1", "text": "hello", "sent": null, "verdict": "trimmed", "sent_tokens": 0}),
        );
        assert!(gone.contains("it was left out"));
    }
}
