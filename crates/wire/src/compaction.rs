//! Compactions as a target that did not make them is told of them: their text, as a message to the model.

use contexture_ir::{Compaction, Part};

use crate::loss::{LossKind, Losses};

/// Whether the provider writes its compactions into the model's turn, as Anthropic does.
pub(crate) fn is_in_assistant_turn(item: &Compaction) -> bool {
    let maker = item.format.as_deref();
    maker.is_some_and(|format| format.starts_with("anthropic"))
}

/// The text to say to the model; nothing if there is none. Tells of what only the maker understands, and
/// of a turn that was the model's.
pub(crate) fn compaction_as_text(
    item: &Compaction,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
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
