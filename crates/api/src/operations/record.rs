//! The answer of a provider, stored.

use contexture::ir::{Item, NodeId, Raw, Transcript};
use contexture::sessions::{SessionFormat, detect_format};
use contexture::wire::{Accumulator, DocumentKind, Loss};
use contexture::{Conversation, EngineError, Format, lift};
use serde_json::Value;

use crate::documents::{AnsweredBy, RecordDocument, RecordedDocument, ToolCallDocument};
use crate::operations::compile::{CallNote, set_noted_layers};
use crate::operations::own_tools::is_own_tool;
use crate::operations::request::parse_provider_format;
use crate::operations::{Host, OperationError};

/// Stores a provider's answer behind the head that its call was compiled at. One whose call is not known is stored behind the head
/// of the branch, without the call's decisions. The same answer again is stored once.
///
/// # Errors
/// The answer cannot be read, or the engine's.
pub async fn record_answer(
    chat: &Conversation,
    asked: &RecordDocument,
    host: &Host<'_>,
) -> Result<RecordedDocument, OperationError> {
    let kept = match &asked.call {
        Some(id) => chat.kept_call(id).await?,
        None => None,
    };
    let named = asked.format.as_deref();
    let named = named
        .map(|name| parse_provider_format("format", name))
        .transpose()?;
    let format = named.or(kept.as_ref().map(|kept| kept.format()));
    let (format, text) = answer_document(&asked.response, format)?;
    let lifted = lift(format, &text).map_err(EngineError::from)?;
    if lifted.kind != DocumentKind::Response {
        return Err(EngineError::NotAResponse { format }.into());
    }
    let (mut document, note) = match kept {
        Some(kept) => {
            let note = read_note(&kept.note);
            let recorded = chat.record_kept(&kept, &text).await?;
            (RecordedDocument::from(&recorded), note)
        }
        None => {
            let document = append_answer(chat, &lifted.transcript, &lifted.losses, &text).await?;
            (document, CallNote::default())
        }
    };
    set_noted_layers(chat, &note, host)?;
    let calls = lifted.transcript.items.iter();
    document.calls = calls
        .filter_map(|item| call_document(chat, &note, item))
        .collect();
    Ok(document)
}

/// Loads what was noted with a compiled call; nothing, if it is not kept any more.
pub(crate) async fn load_note(
    chat: &Conversation,
    call: Option<&str>,
) -> Result<CallNote, OperationError> {
    let Some(id) = call else {
        return Ok(CallNote::default());
    };
    let kept = chat.kept_call(id).await?;
    Ok(kept.map_or_else(CallNote::default, |kept| read_note(&kept.note)))
}

/// Loads what was noted with the newest compiled call of the conversation; nothing, if none is kept.
pub(crate) async fn load_newest_note(chat: &Conversation) -> Result<CallNote, OperationError> {
    let kept = chat.newest_kept_call().await?;
    Ok(kept.map_or_else(CallNote::default, |kept| read_note(&kept.note)))
}

fn read_note(note: &Raw) -> CallNote {
    serde_json::from_str(note.get()).unwrap_or_default()
}

/// Describes a call of a tool, and who answers it; `None` for another item.
pub(crate) fn call_document(
    chat: &Conversation,
    note: &CallNote,
    item: &Item,
) -> Option<ToolCallDocument> {
    let Item::FunctionCall(call) = item else {
        return None;
    };
    let refusal = note.refusal(&call.name);
    let is_ours = refusal.is_some() || is_own_tool(chat, &call.name);
    Some(ToolCallDocument {
        call_id: call.call_id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        by: match is_ours {
            true => AnsweredBy::Server,
            false => AnsweredBy::Caller,
        },
        refusal,
    })
}

/// Returns the format and the document of an answer, which may be the text of an event stream.
fn answer_document(
    response: &Raw,
    format: Option<Format>,
) -> Result<(Format, String), OperationError> {
    let bad = |detail: String| OperationError::member("response", detail);
    if let Some(message) = provider_error(response) {
        return Err(bad(format!(
            "is an error of the provider and no answer: {message}; nothing was stored"
        )));
    }
    let Some(stream) = response.as_string() else {
        let text = response.get().to_owned();
        let format = match format {
            Some(format) => format,
            None => detect_response(&text)?,
        };
        return Ok((format, text));
    };
    let format = format.ok_or_else(|| {
        let detail =
            "is missing: an event stream of a call that is not known says nothing of its format";
        OperationError::member("format", detail)
    })?;
    let mut events = Accumulator::new(format).map_err(|error| bad(error.to_string()))?;
    for data in event_data(&stream) {
        events.push(&data).map_err(|error| bad(error.to_string()))?;
    }
    let text = events.finish().map_err(|error| bad(error.to_string()))?;
    Ok((format, text))
}

/// Returns what a provider's error says; `None` for everything else, answers that failed on the way included.
fn provider_error(response: &Raw) -> Option<String> {
    let fields = response.fields()?;
    // Beside the error stand at most its type and the id of the request; a failed answer has all members of an answer.
    let error = fields.get(&["error"])?;
    if fields.iter().count() > 3 {
        return None;
    }
    let error: Value = serde_json::from_str(error.get()).ok()?;
    let message = match &error {
        Value::String(message) => message.clone(),
        Value::Object(error) => match error.get("message")? {
            Value::String(message) => message.clone(),
            _ => return None,
        },
        _ => return None,
    };
    Some(message.chars().take(300).collect())
}

fn detect_response(text: &str) -> Result<Format, OperationError> {
    match detect_format(text, "").map_err(EngineError::from)?.format {
        SessionFormat::Wire(format) => Ok(format),
        other => {
            let detail = format!("a log of format {other}; expected a provider's answer");
            Err(OperationError::member("response", detail))
        }
    }
}

/// Returns the data of the events of a stream (WHATWG, server-sent events), the closing mark of OpenAI apart.
fn event_data(stream: &str) -> impl Iterator<Item = String> {
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let events = stream.split("\n\n").map(|event| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let lines: Vec<&str> = lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.join("\n")
    });
    let events: Vec<String> = events
        .filter(|data| !data.is_empty() && data != "[DONE]")
        .collect();
    events.into_iter()
}

/// Stores an answer whose call is not known, behind the head of the branch.
async fn append_answer(
    chat: &Conversation,
    answer: &Transcript,
    losses: &[Loss],
    text: &str,
) -> Result<RecordedDocument, OperationError> {
    let mut draft = chat.draft();
    let key = NodeId::derive("recorded answer", &[text.as_bytes()]);
    draft.set_idempotency_key(*key.as_bytes());
    for item in &answer.items {
        draft.push_item(item.clone());
    }
    let stored = draft.commit().await?;
    Ok(RecordedDocument {
        branch: stored.branch.to_string(),
        head: stored.head.map(|head| head.to_string()),
        nodes: stored.nodes.iter().map(ToString::to_string).collect(),
        latched: false,
        replayed: false,
        response: None,
        calls: Vec::new(),
        losses: losses.iter().map(Into::into).collect(),
    })
}
