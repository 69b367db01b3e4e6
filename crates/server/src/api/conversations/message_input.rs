//! Messages as callers write them: in the AI SDK's format, in a provider's, or as items.

use contexture::engine::Draft;
use contexture::ir::{Error as IrError, Item, Raw, UiMessage, message};
use contexture::sessions::{SessionFormat, detect_format};
use contexture::wire::{Loss, WireError, lift};

use crate::problem::{Code, Problem};

/// What is taken as a message, for errors.
const SHAPES: &str = "a message is one of the AI SDK (`role`, `parts`), of a provider (`role`, `content`, …), or an item (`type`)";

/// Adds messages to a draft, in order. Returns what of a provider's format no item can hold.
///
/// # Errors
/// `bad_message` with the place of the first value that cannot be read, such as `messages[0].parts`.
pub(super) fn push_messages(draft: &mut Draft, messages: &[Raw]) -> Result<Vec<Loss>, Problem> {
    let mut losses = Vec::new();
    let mut first = 0;
    // A run at a time: in a provider's format, what a message means may depend on those beside it.
    for run in messages.chunk_by(|one, next| is_ui_message(one) == is_ui_message(next)) {
        if run.first().is_some_and(is_ui_message) {
            push_ui_messages(draft, run, first)?;
        } else {
            losses.extend(push_provider_messages(draft, run, first)?);
        }
        first += run.len();
    }
    Ok(losses)
}

/// Adds items to a draft, in order.
///
/// # Errors
/// `bad_message` with the place of the first value that cannot be read, such as `items[2].call_id`.
pub(super) fn push_items(draft: &mut Draft, items: &[Raw]) -> Result<(), Problem> {
    for (index, item) in items.iter().enumerate() {
        let item = Item::parse(item.get());
        draft.push_item(item.map_err(|error| value_problem("items", error.at_index(index)))?);
    }
    Ok(())
}

/// Whether a message is one of the AI SDK: its parts have types, which Gemini's have not.
fn is_ui_message(raw: &Raw) -> bool {
    let Some(fields) = raw.fields() else {
        return false;
    };
    let Some(parts) = fields.get(&["parts"]) else {
        return false;
    };
    let parts: Vec<Raw> = serde_json::from_str(parts.get()).unwrap_or_default();
    parts.iter().all(|part| {
        let fields = part.fields();
        fields.is_none_or(|fields| fields.get(&["type"]).is_some())
    })
}

fn push_ui_messages(draft: &mut Draft, run: &[Raw], first: usize) -> Result<(), Problem> {
    for (index, raw) in run.iter().enumerate() {
        let parsed = UiMessage::parse(raw.get());
        let place = |error: IrError| value_problem("messages", error.at_index(first + index));
        draft.push(message(parsed.map_err(place)?));
    }
    Ok(())
}

fn push_provider_messages(
    draft: &mut Draft,
    run: &[Raw],
    first: usize,
) -> Result<Vec<Loss>, Problem> {
    let texts: Vec<&str> = run.iter().map(Raw::get).collect();
    let text = format!("[{}]", texts.join(","));
    let unknown = || bad_message(format!("`messages[{first}]` has no known format"));
    let detected = detect_format(&text, "").map_err(|_| unknown())?;
    let SessionFormat::Wire(format) = detected.format else {
        return Err(unknown());
    };
    let lifted = lift(format, &text).map_err(|error| wire_problem(error, first))?;
    let transcript = lifted.transcript;
    for instruction in transcript.instructions {
        draft.push_item(instruction);
    }
    for item in transcript.items {
        draft.push_item(item);
    }
    Ok(lifted.losses)
}

/// Describes a value that is wrong at a place within a list.
fn value_problem(list: &str, error: IrError) -> Problem {
    bad_message(error.at_segment(list).to_string())
}

fn wire_problem(error: WireError, first: usize) -> Problem {
    match error {
        WireError::Invalid { source, .. } if first == 0 => value_problem("messages", source),
        error => bad_message(format!("`messages`, from `messages[{first}]` on: {error}")),
    }
}

fn bad_message(what: String) -> Problem {
    Problem::new(Code::BadMessage, format!("{what}; {SHAPES}"))
}
