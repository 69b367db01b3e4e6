//! Whole documents of UI messages: an array of them, a request body with `messages`, or one message
//! as the answer.

use contexture_ir::{
    Cancel, Extra, Fields, Item, Message, Raw, ResponseInfo, Transcript, UiMessage, UiRole,
    quote_json,
};

use super::fold::{Extensions, FoldAudience, FoldItem, FoldOptions, fold};
use super::lift::{lift_message, message_fields_item, step_start_part};
use super::losses;
use super::ui_only_fields::part_hints;
use super::unknown_fields::UnknownFields;
use super::validate::{parse_message, parse_messages};
use crate::model::conversion::DocumentKind;
use crate::model::error::WireError;
use crate::model::format::Format;
use crate::model::loss::Losses;
use crate::{Lifted, Lowered};

/// Hint on a leading system message: its id.
const ID: &str = "~id";
/// Fields of a leading system message that the AI SDK does not know.
const EXTRA: &str = "extra";

pub(crate) fn lift(text: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
    let mut lifted = Lifted {
        kind: DocumentKind::Messages,
        transcript: Transcript::default(),
        losses: Vec::new(),
    };
    if text.trim_start().starts_with('[') {
        let messages = parse_messages(text, UnknownFields::Kept)?;
        add_messages(&messages, "", cancel, &mut lifted)?;
        return Ok(lifted);
    }
    let wrong = || WireError::WrongShape {
        format: Format::Ui,
        expected: "an array of UI messages, an object with `messages`, or one UI message",
    };
    let mut fields = Fields::parse(text).map_err(|_| wrong())?;
    if fields
        .get(&["messages"])
        .is_some_and(|list| list.get().starts_with('['))
    {
        let invalid = |source| WireError::Invalid {
            format: Format::Ui,
            source,
        };
        let list = fields.take_field(&["messages"]).map_err(invalid)?;
        lifted.kind = DocumentKind::Request;
        let list = list.map_or("[]", |list| list.get());
        let messages = parse_messages(list, UnknownFields::Kept)?;
        add_messages(&messages, "messages", cancel, &mut lifted)?;
        lifted
            .transcript
            .extra
            .set_wire_fields("ui", fields.into_extra());
    } else if fields.get(&["role"]).is_some() && fields.get(&["parts"]).is_some() {
        lifted.kind = DocumentKind::Response;
        let one = parse_message(text)?;
        lifted.transcript.response = Some(ResponseInfo {
            id: Some(one.id.clone()),
            ..ResponseInfo::default()
        });
        add_message(&one, "", &mut lifted);
    } else {
        return Err(wrong());
    }
    Ok(lifted)
}

fn add_messages(
    list: &[UiMessage],
    path: &str,
    cancel: Option<&Cancel>,
    lifted: &mut Lifted,
) -> Result<(), WireError> {
    let mut leading = true;
    for (index, message) in list.iter().enumerate() {
        Cancel::check_optional(cancel)?;
        let path = format!("{path}[{index}]");
        leading &= message.role == UiRole::System;
        let instruction = if leading {
            lift_instruction(message)
        } else {
            None
        };
        match instruction {
            Some(message) => lifted.transcript.instructions.push(message),
            None => {
                leading = false;
                add_message(message, &path, lifted);
            }
        }
    }
    Ok(())
}

/// A leading system message that is nothing but text and files.
fn lift_instruction(message: &UiMessage) -> Option<Message> {
    let mut items = lift_message(message)
        .items
        .into_iter()
        .filter(|item| !is_message_marker(item));
    match (items.next(), items.next()) {
        (Some(Item::Message(mut instruction)), None) => {
            let mut hints = part_hints(&instruction.extra);
            hints.set(ID, Raw::string(&message.id));
            if let Some(metadata) = &message.metadata {
                hints.set("metadata", metadata.clone());
            }
            if !message.extra.is_empty()
                && let Ok(extra) = Raw::from_value(&message.extra)
            {
                hints.set(EXTRA, extra);
            }
            instruction.extra.set_wire_fields("ui", hints);
            Some(instruction)
        }
        _ => None,
    }
}

fn is_message_marker(item: &Item) -> bool {
    matches!(item, Item::Extension(extension) if extension.kind == "ctx:message")
}

fn add_message(message: &UiMessage, path: &str, lifted: &mut Lifted) {
    let lift = lift_message(message);
    let mut losses = Losses::default();
    for loss in lift.losses {
        losses.push(format!("{path}.{}", loss.path), loss.what, loss.why);
    }
    lifted.losses.extend(losses.into_vec());
    let items: Vec<Item> = lift
        .items
        .into_iter()
        .filter(|item| !is_message_marker(item))
        .collect();
    let own = message_fields_item(message, Some(items.len()));
    lifted.transcript.items.push(own);
    lifted.transcript.items.extend(items);
}

pub(crate) fn lower(kind: DocumentKind, transcript: &Transcript) -> Lowered {
    let losses = losses::collect_losses(transcript).into_vec();
    let options = FoldOptions {
        audience: FoldAudience::Everyone,
        include_system: true,
        extensions: Extensions::Shown,
        unknown_fields: UnknownFields::Kept,
    };
    let items: Vec<FoldItem<'_>> = transcript.items.iter().map(FoldItem::new).collect();
    let folded = fold(&items, &options);
    let json = if kind == DocumentKind::Response {
        let id = transcript
            .response
            .as_ref()
            .and_then(|info| info.id.clone());
        to_json(&response_message(folded, id))
    } else {
        let mut all: Vec<UiMessage> = transcript
            .instructions
            .iter()
            .enumerate()
            .map(|(index, message)| instruction_message(index, message))
            .collect();
        all.extend(folded.into_iter().enumerate().map(|(index, mut message)| {
            // Ids made up by the fold: apart from those of the instructions.
            if message.id == format!("msg-{index}") {
                message.id = format!("msg-{}", index + transcript.instructions.len());
            }
            message
        }));
        let list = to_json(&all);
        match kind {
            DocumentKind::Messages => list,
            DocumentKind::Request | DocumentKind::Response => {
                request_json(&list, &transcript.extra)
            }
        }
    };
    Lowered { json, losses }
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn request_json(list: &str, extra: &Extra) -> String {
    let mut out = format!(r#"{{"messages":{list}"#);
    for (key, value) in part_hints(extra).iter() {
        out.push_str(&format!(",{}:{}", quote_json(key), value.get()));
    }
    out.push('}');
    out
}

fn instruction_message(index: usize, message: &Message) -> UiMessage {
    let hints = part_hints(&message.extra);
    let item = Item::Message(message.clone());
    let options = FoldOptions {
        audience: FoldAudience::Everyone,
        include_system: true,
        extensions: Extensions::Shown,
        unknown_fields: UnknownFields::Kept,
    };
    let folded = fold(&[FoldItem::new(&item)], &options).into_iter().next();
    let id = hints.get(ID).and_then(Raw::as_string);
    UiMessage {
        id: id.unwrap_or_else(|| format!("msg-{index}")),
        role: UiRole::System,
        metadata: hints.get("metadata").cloned(),
        parts: folded.map_or_else(
            || vec![contexture_ir::text_part("")],
            |message| message.parts,
        ),
        extra: hints
            .get(EXTRA)
            .and_then(Raw::fields)
            .map(Fields::into_extra)
            .unwrap_or_default(),
    }
}

/// Joins everything the model said into one message.
fn response_message(folded: Vec<UiMessage>, id: Option<String>) -> UiMessage {
    let mut list = folded.into_iter();
    let mut answer = list.next().unwrap_or(UiMessage {
        id: String::new(),
        role: UiRole::Assistant,
        metadata: None,
        parts: Vec::new(),
        extra: Extra::new(),
    });
    for more in list {
        answer.parts.push(step_start_part());
        answer.parts.extend(more.parts);
    }
    if let Some(id) = id {
        answer.id = id;
    }
    answer
}
