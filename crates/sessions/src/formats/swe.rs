//! SWE-agent's trajectories.
//!
//! `history` is a list of OpenAI chat messages with fields of the agent's own: `agent`,
//! `message_type`, `thought`, `action`, and `tool_call_ids` where chat has `tool_call_id`. In text
//! mode the model's command stands in its message and the observation is a user message. Everything
//! around the history (`trajectory`, `info`, `environment`, `replay_config`) is kept verbatim.

use contexture_ir::{ContentHash, Fields, Item, Message, Raw, Transcript};
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of, with_member};
use crate::kept_records::{RecordReader, Records, read_records};
use crate::session::{
    ReadOptions, Session, SessionInfo, SessionNode, audience_of, main_head, origin_of, title_of,
};

const EXPECTED: &str = "an object with `history`, an array of messages";
/// The fields that chat messages have.
const CHAT: [&str; 4] = ["role", "content", "tool_calls", "name"];
/// The agent's fields that repeat a part of the content: kept as `{"content": [start, end]}`.
const PARTS: [&str; 2] = ["thought", "action"];

pub(crate) fn read_session(text: &str, options: &ReadOptions<'_>) -> Result<Session, SessionError> {
    let wrong = || SessionError::WrongShape {
        format: "swe-agent",
        expected: EXPECTED,
    };
    let fields = Fields::parse(text).map_err(|_| wrong())?;
    let history = fields.get(&["history"]).ok_or_else(wrong)?;
    let messages: Vec<&RawValue> = serde_json::from_str(history.get()).map_err(|_| wrong())?;
    let mut reader = SweReader::default();
    let skipped = read_records(messages, options, &mut reader)?;
    let rest = with_member(text, "history", "null").and_then(|rest| Raw::parse(rest).ok());
    let SweReader {
        mut records,
        instructions,
        tree,
        ..
    } = reader;
    records.rest = rest;
    Ok(Session {
        format: SessionFormat::SweAgent,
        source_id: format!("swe-agent:{}", ContentHash::of(text.as_bytes())),
        title: title_of(&tree),
        instructions,
        heads: main_head(&tree),
        tree,
        metadata: records.to_metadata(),
        info: SessionInfo::default(),
        skipped,
    })
}

#[derive(Default)]
struct SweReader {
    records: Records,
    instructions: Vec<Message>,
    tree: Vec<SessionNode>,
    has_history: bool,
}

impl RecordReader for SweReader {
    const PLACE: &'static str = "message";
    const EXPECTED: &'static str = "a SWE-agent message";

    fn records(&mut self) -> &mut Records {
        &mut self.records
    }

    fn read_record(&mut self, raw: &RawValue) -> Result<(), String> {
        let fields = Fields::parse(raw.get()).map_err(|_| excerpt(raw.get()))?;
        text_of(&fields, "role").ok_or_else(|| format!("no `role` in {}", excerpt(raw.get())))?;
        let lifted = lift(Format::OpenAiChat, &format!("[{}]", chat_message(&fields)))
            .map_err(|error| error.to_string())?;
        let Transcript {
            instructions,
            items,
            ..
        } = lifted.transcript;
        // Until the first item everything that instructs leads the history.
        if self.has_history {
            // Instructions in the middle are part of the history.
            let items: Vec<Item> = instructions
                .into_iter()
                .map(Item::from)
                .chain(items)
                .collect();
            self.push_items(raw, items);
        } else {
            self.has_history = !items.is_empty();
            self.instructions.extend(instructions);
            self.push_items(raw, items);
        }
        Ok(())
    }
}

impl SweReader {
    fn push_items(&mut self, raw: &RawValue, items: Vec<Item>) {
        self.records
            .add_record(raw, message_template(raw.get()), &items, fill_template);
        for item in items {
            let index = self.tree.len();
            self.tree.push(SessionNode {
                parent: index.checked_sub(1),
                origin: origin_of(&item),
                audience: audience_of(&item),
                item,
                message_id: None,
                created_at: None,
                imported: Some(index),
            });
        }
    }
}

/// The message as chat knows it.
fn chat_message(fields: &Fields<'_>) -> String {
    let mut out = String::from("{");
    // Fields of the agent's own would be taken for unknown fields of chat and stored twice.
    for (name, value) in fields.iter().filter(|(name, _)| CHAT.contains(name)) {
        // Text mode writes `null`, which chat does not allow.
        if name == "tool_calls" && value.get() == "null" {
            continue;
        }
        out.push_str(&format!(
            "{}:{},",
            contexture_ir::quote_json(name),
            value.get()
        ));
    }
    let answered = fields.get(&["tool_call_ids"]).map(RawValue::get);
    let answered = answered.and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    // Chat answers one call a message; the agent writes a list with one id.
    if let Some(id) = answered.as_ref().and_then(|ids| ids.first()) {
        out.push_str(&format!(
            r#""tool_call_id":{},"#,
            contexture_ir::quote_json(id)
        ));
    }
    if out.ends_with(',') {
        out.pop();
    }
    out.push('}');
    out
}

/// The message without what its items say: chat's fields are `null` where they are to be filled.
fn message_template(message: &str) -> Option<Raw> {
    let fields = Fields::parse(message).ok()?;
    let mut out = message.to_owned();
    for name in ["content", "tool_calls"] {
        if fields
            .get(&[name])
            .is_some_and(|value| value.get() != "null")
        {
            out = with_member(&out, name, "null")?;
        }
    }
    // What a model thought and did is mostly part of what it said.
    // Stored as a range, so that a long thought is not kept twice.
    let said = text_of(&fields, "content").unwrap_or_default();
    for name in PARTS {
        let part = text_of(&fields, name).filter(|part| !part.is_empty());
        if let Some((start, part)) = part.and_then(|part| Some((said.find(&part)?, part))) {
            let place = format!(r#"{{"content":[{start},{}]}}"#, start + part.len());
            // In bytes, as `find` gives them and `get` takes them back.
            out = with_member(&out, name, &place)?;
        }
    }
    Raw::parse(out).ok()
}

/// Items as a JSON array of chat messages.
fn chat_messages<'i>(items: impl Iterator<Item = &'i Item>) -> String {
    let transcript = Transcript {
        items: items.cloned().collect(),
        ..Transcript::default()
    };
    let dialect = Dialect::of(Format::OpenAiChat);
    lower(&dialect, DocumentKind::Messages, &transcript).json
}

fn fill_template(form: &Raw, items: &[&Item]) -> Option<String> {
    let json = chat_messages(items.iter().copied());
    let list: Vec<&RawValue> = serde_json::from_str(&json).ok()?;
    // More than one message cannot go back into one record.
    let [message] = list.as_slice() else {
        return None;
    };
    let chat = Fields::parse(message.get()).ok()?;
    let fields = form.fields()?;
    let mut out = form.get().to_owned();
    for name in ["content", "tool_calls"] {
        // Only members that the record had: chat's writer may add an empty one.
        if let (Some(value), true) = (chat.get(&[name]), fields.get(&[name]).is_some()) {
            out = with_member(&out, name, value.get())?;
        }
    }
    let said = text_of(&chat, "content").unwrap_or_default();
    for name in PARTS {
        if let Some(part) =
            content_range(&fields, name).and_then(|(start, end)| said.get(start..end))
        {
            out = with_member(&out, name, &contexture_ir::quote_json(part))?;
        }
    }
    Some(out)
}

/// The bytes of the content that a field repeats.
fn content_range(fields: &Fields<'_>, name: &str) -> Option<(usize, usize)> {
    let place = Fields::parse(fields.get(&[name])?.get()).ok()?;
    serde_json::from_str(place.get(&["content"])?.get()).ok()
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    let records = Records::from_metadata(&session.metadata)?;
    let (filled, added) = records.fill_records(session, fill_template);
    let mut messages: Vec<String> = filled
        .into_iter()
        .map(|record| record.unwrap_or_else(str::to_owned))
        .collect();
    if !added.is_empty() {
        let json = chat_messages(added.iter().map(|node| &node.item));
        let list: Vec<&RawValue> = serde_json::from_str(&json).unwrap_or_default();
        messages.extend(list.iter().map(|message| message.get().to_owned()));
    }
    let history = format!("[{}]", messages.join(","));
    let rest = records.rest.as_ref().map_or("{}", Raw::get);
    with_member(rest, "history", &history).ok_or_else(|| SessionError::Metadata {
        what: "`rest` is not an object".to_owned(),
    })
}
