//! Whole documents of UI messages: an array of them, a request body with `messages`, or one message
//! as the answer.

use contexture_ir::{
    Extra, Fields, Item, Message, Raw, ResponseInfo, Transcript, UiMessage, UiRole, quote,
};

use super::fold::{Extensions, FoldAudience, FoldItem, FoldOptions, fold};
use super::hints::part_hints;
use super::lift::{lift_message, own_fields, step_start};
use super::losses;
use super::validate::{Validated, read, read_one};
use crate::error::WireError;
use crate::format::{Format, Kind};
use crate::loss::{LossKind, Losses};
use crate::{Lifted, Lowered};

/// Hint on a leading system message: its id.
const ID: &str = "~id";

pub(crate) fn lift(text: &str) -> Result<Lifted, WireError> {
    let mut lifted = Lifted {
        kind: Kind::Messages,
        transcript: Transcript::default(),
        losses: Vec::new(),
    };
    if text.trim_start().starts_with('[') {
        messages(read(text)?, "", &mut lifted);
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
        let list = fields.take(&["messages"]).map_err(invalid)?;
        lifted.kind = Kind::Request;
        messages(
            read(list.map_or("[]", |list| list.get()))?,
            "messages",
            &mut lifted,
        );
        lifted.transcript.extra.set_wire("ui", fields.rest());
    } else if fields.get(&["role"]).is_some() && fields.get(&["parts"]).is_some() {
        lifted.kind = Kind::Response;
        let one = read_one(text)?;
        lifted.transcript.response = Some(ResponseInfo {
            id: Some(one.message.id.clone()),
            ..ResponseInfo::default()
        });
        note_dropped(&one, "", &mut lifted);
        add(&one.message, "", &mut lifted);
    } else {
        return Err(wrong());
    }
    Ok(lifted)
}

fn messages(list: Vec<Validated>, path: &str, lifted: &mut Lifted) {
    let mut leading = true;
    for (index, one) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        note_dropped(one, &path, lifted);
        leading &= one.message.role == UiRole::System;
        let instruction = if leading {
            instruction(&one.message)
        } else {
            None
        };
        match instruction {
            Some(message) => lifted.transcript.instructions.push(message),
            None => {
                leading = false;
                add(&one.message, &path, lifted);
            }
        }
    }
}

fn note_dropped(one: &Validated, path: &str, lifted: &mut Lifted) {
    let mut losses = Losses::default();
    let dot = if path.is_empty() { "" } else { "." };
    for name in &one.dropped {
        let why = "a field that the AI SDK drops";
        losses.push(format!("{path}{dot}{name}"), LossKind::Field, why);
    }
    lifted.losses.extend(losses.into_vec());
}

/// A leading system message that is nothing but text and files.
fn instruction(message: &UiMessage) -> Option<Message> {
    let mut items = lift_message(message)
        .items
        .into_iter()
        .filter(|item| !is_own(item));
    match (items.next(), items.next()) {
        (Some(Item::Message(mut instruction)), None) => {
            let mut hints = part_hints(&instruction.extra);
            hints.set(ID, Raw::string(&message.id));
            if let Some(metadata) = &message.metadata {
                hints.set("metadata", metadata.clone());
            }
            instruction.extra.set_wire("ui", hints);
            Some(instruction)
        }
        _ => None,
    }
}

fn is_own(item: &Item) -> bool {
    matches!(item, Item::Extension(extension) if extension.kind == "ctx:message")
}

fn add(message: &UiMessage, path: &str, lifted: &mut Lifted) {
    let lift = lift_message(message);
    let mut losses = Losses::default();
    for loss in lift.losses {
        losses.push(format!("{path}.{}", loss.path), loss.what, loss.why);
    }
    lifted.losses.extend(losses.into_vec());
    let items: Vec<Item> = lift
        .items
        .into_iter()
        .filter(|item| !is_own(item))
        .collect();
    let own = own_fields(message, Some(items.len()));
    lifted.transcript.items.push(own);
    lifted.transcript.items.extend(items);
}

pub(crate) fn lower(kind: Kind, transcript: &Transcript) -> Lowered {
    let losses = losses::list(transcript).into_vec();
    let options = FoldOptions {
        audience: FoldAudience::Everyone,
        include_system: true,
        extensions: Extensions::Shown,
    };
    let items: Vec<FoldItem<'_>> = transcript.items.iter().map(FoldItem::new).collect();
    let folded = fold(&items, &options);
    let json = if kind == Kind::Response {
        let id = transcript
            .response
            .as_ref()
            .and_then(|info| info.id.clone());
        to_json(&answer(folded, id))
    } else {
        let mut all: Vec<UiMessage> = transcript
            .instructions
            .iter()
            .enumerate()
            .map(|(index, message)| system(index, message))
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
            Kind::Messages => list,
            Kind::Request | Kind::Response => request(&list, &transcript.extra),
        }
    };
    Lowered { json, losses }
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn request(list: &str, extra: &Extra) -> String {
    let mut out = format!(r#"{{"messages":{list}"#);
    for (key, value) in part_hints(extra).iter() {
        out.push_str(&format!(",{}:{}", quote(key), value.get()));
    }
    out.push('}');
    out
}

fn system(index: usize, message: &Message) -> UiMessage {
    let hints = part_hints(&message.extra);
    let item = Item::Message(message.clone());
    let options = FoldOptions {
        audience: FoldAudience::Everyone,
        include_system: true,
        extensions: Extensions::Shown,
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
    }
}

/// All the model said as one message.
fn answer(folded: Vec<UiMessage>, id: Option<String>) -> UiMessage {
    let mut list = folded.into_iter();
    let mut answer = list.next().unwrap_or(UiMessage {
        id: String::new(),
        role: UiRole::Assistant,
        metadata: None,
        parts: Vec::new(),
    });
    for more in list {
        answer.parts.push(step_start());
        answer.parts.extend(more.parts);
    }
    if let Some(id) = id {
        answer.id = id;
    }
    answer
}
