//! Messages as callers write them: in the AI SDK's format, in a provider's, or as items.

use contexture::EngineError;
use contexture::ir::{Cancel, Error as IrError, Item, Raw, Transcript, UiMessage};
use contexture::sessions::{SessionFormat, detect_format};
use contexture::wire::{Loss, WireError, lift_unless_cancelled};

use crate::operations::OperationError;

/// What is taken as a message, for errors.
const SHAPES: &str = "a message is one of the AI SDK (`role`, `parts`), of a provider (`role`, `content`, …), or an item (`type`)";

/// Messages of one format that stand beside each other.
#[derive(Clone, Debug)]
pub(crate) enum MessageRun {
    /// Messages of the AI SDK.
    Ui(Vec<UiMessage>),
    /// Messages of a provider, or items, with what of them no item can hold.
    Provider(Box<Transcript>, Vec<Loss>),
}

/// Reads messages, in order.
///
/// # Errors
/// `bad_message` with the place of the first value that cannot be read, such as `messages[0].parts`; or it was called off.
pub(crate) fn read_messages(
    messages: &[Raw],
    cancel: Option<&Cancel>,
) -> Result<Vec<MessageRun>, OperationError> {
    let mut first = 0;
    // A run at a time: in a provider's format, what a message means may depend on those beside it.
    let runs = messages.chunk_by(|one, next| is_ui_message(one) == is_ui_message(next));
    let read = runs.map(|run| {
        let at = first;
        first += run.len();
        match run.first().is_some_and(is_ui_message) {
            true => read_ui_messages(run, at, cancel),
            false => read_provider_messages(run, at, cancel),
        }
    });
    read.collect()
}

/// Reads items, in order. `list` is the member that they are in, for errors.
///
/// # Errors
/// `bad_message` with the place of the first value that cannot be read, such as `items[2].call_id`.
pub(crate) fn read_items(list: &str, items: &[Raw]) -> Result<Vec<Item>, OperationError> {
    let read = items.iter().enumerate().map(|(index, item)| {
        let item = Item::parse(item.get());
        item.map_err(|error| value_error(list, error.at_index(index)))
    });
    read.collect()
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

fn read_ui_messages(
    run: &[Raw],
    first: usize,
    cancel: Option<&Cancel>,
) -> Result<MessageRun, OperationError> {
    let read = run.iter().enumerate().map(|(index, raw)| {
        Cancel::check_optional(cancel).map_err(|cancelled| wire_error(cancelled.into(), first))?;
        let place = |error: IrError| value_error("messages", error.at_index(first + index));
        UiMessage::parse(raw.get()).map_err(place)
    });
    read.collect::<Result<_, _>>().map(MessageRun::Ui)
}

fn read_provider_messages(
    run: &[Raw],
    first: usize,
    cancel: Option<&Cancel>,
) -> Result<MessageRun, OperationError> {
    let texts: Vec<&str> = run.iter().map(Raw::get).collect();
    let text = format!("[{}]", texts.join(","));
    let unknown = || bad_message(format!("`messages[{first}]` has no known format"));
    let detected = detect_format(&text, "").map_err(|_| unknown())?;
    let SessionFormat::Wire(format) = detected.format else {
        return Err(unknown());
    };
    let lifted = lift_unless_cancelled(format, &text, cancel);
    let lifted = lifted.map_err(|error| wire_error(error, first))?;
    Ok(MessageRun::Provider(
        Box::new(lifted.transcript),
        lifted.losses,
    ))
}

/// Describes a value that is wrong at a place within a list.
fn value_error(list: &str, error: IrError) -> OperationError {
    bad_message(error.at_segment(list).to_string())
}

fn wire_error(error: WireError, first: usize) -> OperationError {
    match error {
        error @ WireError::Cancelled(_) => EngineError::from(error).into(),
        WireError::Invalid { source, .. } if first == 0 => value_error("messages", source),
        error => bad_message(format!("`messages`, from `messages[{first}]` on: {error}")),
    }
}

fn bad_message(what: String) -> OperationError {
    OperationError::Message(format!("{what}; {SHAPES}"))
}
