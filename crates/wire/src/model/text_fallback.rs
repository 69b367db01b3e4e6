//! Items written as plain text, for targets that have no place for them: compactions of another provider, and system
//! messages inside a history.
//!
//! A compaction becomes a message to the model with its summary. A system message becomes user text between `<system>`
//! tags. Whatever in that text looks like such a tag has its angle bracket escaped, so that the text can neither close
//! nor imitate the tag.

use contexture_ir::{Compaction, Part};

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

/// `text` between `<system>` tags.
pub(crate) fn system_tag(text: &str) -> String {
    format!("<system>\n{}\n</system>", escape_system_tags(text))
}

fn escape_system_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let inner = tail.strip_prefix('<').unwrap_or(tail);
        // Models read `< / SYSTEM >` as a tag as well, so spaces and case are ignored here.
        let name = inner.trim_start().trim_start_matches('/').trim_start();
        let imitates = name
            .get(..6)
            .is_some_and(|word| word.eq_ignore_ascii_case("system"));
        // Only imitations are escaped: markup and comparisons in the text stay readable.
        out.push_str(if imitates { "&lt;" } else { "<" });
        rest = inner;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
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
        }
    }
}
