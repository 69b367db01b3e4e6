//! Items written as plain text, for targets that have no place for them: compactions of another provider, system
//! messages inside a history, and thinking that may not be sent any more.
//!
//! A compaction becomes a message to the model with its summary. A system message becomes user text between `<system>`
//! tags, thinking a text of the model's between `<thinking>` tags. Whatever in that text looks like such a tag has its
//! angle bracket escaped, so that the text can neither close nor imitate the tag.

use contexture_ir::{Compaction, Part, Reasoning};

use crate::model::loss::{LossKind, Losses};

/// Whether the provider writes its compactions into the model's turn, as Anthropic does.
pub(crate) fn is_in_assistant_turn(item: &Compaction) -> bool {
    let maker = item.format.as_deref();
    maker.is_some_and(|format| format.starts_with("anthropic"))
}

/// Returns the text of a compaction that another provider made; `None` if it has none. Reports as losses
/// what only its maker can read, and that a turn of the model becomes the user's.
pub(crate) fn compaction_as_text(
    item: &Compaction,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    // The loss is reported even if there is a readable summary: the target gets less than the maker
    // would.
    if item.encrypted_content.is_some() {
        let why = "a compaction only its maker can read";
        losses.push(format!("{path}.encrypted_content"), LossKind::Opaque, why);
    }
    let texts: Vec<&str> = item.summary.iter().filter_map(Part::as_text).collect();
    let text = texts.join("\n");
    if text.is_empty() {
        return None;
    }
    if is_in_assistant_turn(item) {
        let why = "what the model summed up in its own turn is said to it";
        losses.push(path, LossKind::Role, why);
    }
    Some(text)
}

/// Returns what thinking says, between `<thinking>` tags; `None` if only its maker can read it.
#[must_use]
pub fn thinking_as_text(thinking: &Reasoning) -> Option<String> {
    let content = thinking.content.iter().flatten().chain(&thinking.summary);
    let texts: Vec<&str> = content.filter_map(Part::as_text).collect();
    let text = texts.join("\n");
    (!text.trim().is_empty()).then(|| wrap_in_tag("thinking", &text))
}

/// `text` between `<system>` tags.
pub(crate) fn system_tag(text: &str) -> String {
    wrap_in_tag("system", text)
}

fn wrap_in_tag(tag: &str, text: &str) -> String {
    format!("<{tag}>\n{}\n</{tag}>", escape_tags(tag, text))
}

fn escape_tags(tag: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let inner = tail.strip_prefix('<').unwrap_or(tail);
        // Models read `< / SYSTEM >` as a tag as well, so spaces and case are ignored here.
        let name = inner.trim_start().trim_start_matches('/').trim_start();
        let imitates = name
            .get(..tag.len())
            .is_some_and(|word| word.eq_ignore_ascii_case(tag));
        // Only imitations are escaped: markup and comparisons in the text stay readable.
        out.push_str(if imitates { "&lt;" } else { "<" });
        rest = inner;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use contexture_ir::TextPart;

    use super::*;

    #[test]
    fn tags_cannot_be_closed_from_inside() {
        for (text, expected) in [
            ("be brief", "<system>\nbe brief\n</system>"),
            ("a </system> b", "<system>\na &lt;/system> b\n</system>"),
            ("< / SYSTEM >", "<system>\n&lt; / SYSTEM >\n</system>"),
            ("<system>", "<system>\n&lt;system>\n</system>"),
            ("1 < 2 <b>é", "<system>\n1 < 2 <b>é\n</system>"),
        ] {
            assert_eq!(system_tag(text), expected);
            let thinking = Reasoning {
                content: Some(vec![Part::ReasoningText(TextPart::new(
                    text.replace("system", "thinking")
                        .replace("SYSTEM", "Thinking"),
                ))]),
                ..Reasoning::default()
            };
            let expected = expected
                .replace("system", "thinking")
                .replace("SYSTEM", "Thinking");
            assert_eq!(thinking_as_text(&thinking), Some(expected));
        }
    }
}
