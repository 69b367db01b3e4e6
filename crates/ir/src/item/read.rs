//! Items read from JSON.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{
    Compaction, Extension, FunctionCall, FunctionCallOutput, Item, Message, Output, Reasoning,
    Role, Status, text_for,
};
use crate::cancel::Cancel;
use crate::error::Error;
use crate::item::Part;
use crate::raw::{Extra, Fields, Raw};

impl Item {
    /// Reads one item; camelCase names of known fields are accepted, an absent `type` with a `role`
    /// means a message.
    pub fn parse(text: &str) -> Result<Self, Error> {
        // Most items are plain messages, and this path reads them in one pass without cutting the object into
        // members first.
        match PlainMessage::parse_message(text) {
            Some(message) => Ok(Self::Message(message)),
            None => Self::parse_any(text),
        }
    }

    fn parse_any(text: &str) -> Result<Self, Error> {
        let mut fields = Fields::parse(text)?;
        let kind = match fields.take_string(&["type"])? {
            Some(kind) => kind,
            // The specification lets a message go without a type; anything else without one cannot be told
            // apart.
            None if has_member(&fields, "role") => {
                take_empty_type(&mut fields)?;
                "message".to_owned()
            }
            None => return parse_reference(text, &fields),
        };
        match kind.as_str() {
            "message" => Message::from_fields(fields).map(Self::Message),
            "function_call" => FunctionCall::from_fields(fields).map(Self::FunctionCall),
            "function_call_output" => {
                FunctionCallOutput::from_fields(fields).map(Self::FunctionCallOutput)
            }
            "reasoning" => Reasoning::from_fields(fields).map(Self::Reasoning),
            "compaction" => Compaction::from_fields(fields).map(Self::Compaction),
            _ if kind.split(':').any(str::is_empty) => {
                Err(Error::unexpected_value("a type or `slug:type`", &kind).at_segment("type"))
            }
            _ => {
                // An id of another type stays in the raw object only. An extension is never refused for its
                // fields.
                let id = fields
                    .get(&["id"])
                    .and_then(|id| serde_json::from_str(id.get()).ok());
                Ok(Self::Extension(Extension {
                    kind,
                    id,
                    raw: Raw::parse(text)?,
                }))
            }
        }
    }

    /// Reads a JSON array of items.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Error> {
        Self::parse_all_unless(text, None)
    }

    /// As [`Item::parse_all`], unless it is called off, which is [`Error::Cancelled`].
    pub fn parse_all_unless(text: &str, cancel: Option<&Cancel>) -> Result<Vec<Self>, Error> {
        let items: Vec<&RawValue> = serde_json::from_str(text)
            .map_err(|_| Error::unexpected_value("an array of items", text))?;
        let read = |(index, item): (usize, &&RawValue)| {
            Cancel::check_optional(cancel)?;
            Self::parse(item.get()).map_err(|error| error.at_index(index))
        };
        items.iter().enumerate().map(read).collect()
    }
}

/// Whether a member is there and not `null`.
fn has_member(fields: &Fields<'_>, name: &str) -> bool {
    fields
        .get(&[name])
        .is_some_and(|value| value.get() != "null")
}

/// Reads an object with neither a type nor a role: with an id it refers to an item that the provider keeps, as the
/// specification lets it. It stays as it came, and what is stored so must be read again.
fn parse_reference(text: &str, fields: &Fields<'_>) -> Result<Item, Error> {
    if has_member(fields, "id") && !has_member(fields, "type") {
        return Ok(Item::Extension(Extension {
            kind: "item_reference".to_owned(),
            // It is another item's id.
            id: None,
            raw: Raw::parse(text)?,
        }));
    }
    Err(Error::Missing {
        path: String::new(),
        field: "type",
    })
}

/// Takes a `type` that is `null`: a message is written with its type, and would have two.
fn take_empty_type(fields: &mut Fields<'_>) -> Result<(), Error> {
    match fields.take_field(&["type"])?.map(RawValue::get) {
        None | Some("null") => Ok(()),
        // A number that no number type holds passes for absent elsewhere.
        Some(other) => Err(Error::unexpected_value("a string", other).at_segment("type")),
    }
}

/// A message of plain texts without any other field: what most items are, read in one pass. Anything
/// else, faults included, is left to the general reader, which gives the same item.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainMessage<'a> {
    r#type: &'a str,
    #[serde(default, deserialize_with = "deserialize_present")]
    id: Option<String>,
    role: &'a str,
    #[serde(default, deserialize_with = "deserialize_present", borrow)]
    status: Option<&'a str>,
    #[serde(borrow)]
    content: Vec<PlainText<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainText<'a> {
    r#type: &'a str,
    text: String,
}

impl PlainMessage<'_> {
    fn parse_message(text: &str) -> Option<Message> {
        let plain: PlainMessage<'_> = serde_json::from_str(text).ok()?;
        if plain.r#type != "message" {
            return None;
        }
        // Only types whose one field is the text. A refusal or a summary is left to the general reader.
        let part = |part: PlainText<'_>| match part.r#type {
            "input_text" => Some(Part::input_text(part.text)),
            "output_text" => Some(Part::output_text(part.text)),
            _ => None,
        };
        Some(Message {
            id: plain.id,
            role: Role::from_wire(plain.role)?,
            status: match plain.status {
                Some(word) => Some(Status::from_wire(word)?),
                None => None,
            },
            // One part that is not plain sends the whole message to the general reader, extra fields and all.
            content: plain.content.into_iter().map(part).collect::<Option<_>>()?,
            extra: Extra::new(),
        })
    }
}

/// A field that is there is not `null`: the general reader keeps a `null` as it came.
fn deserialize_present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Message {
    fn from_fields(mut fields: Fields<'_>) -> Result<Self, Error> {
        let id = fields.take_string(&["id"])?;
        let word = fields.need_string(&["role"])?;
        let role = Role::from_wire(&word).ok_or_else(|| {
            Error::unexpected_value("`user`, `assistant`, `system` or `developer`", &word)
                .at_segment("role")
        })?;
        let status = read_status(&mut fields)?;
        // Always written: a `null` kept beside it would be a second one.
        let content = match fields.take_field(&["content"])?.map(RawValue::get) {
            None | Some("null") => Vec::new(),
            Some(value) => {
                read_content(role, value).map_err(|error| error.at_segment("content"))?
            }
        };
        Ok(Self {
            id,
            role,
            status,
            content,
            extra: fields.into_extra(),
        })
    }
}

impl FunctionCall {
    fn from_fields(mut fields: Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            id: fields.take_string(&["id"])?,
            call_id: fields.need_string(&["call_id", "callId"])?,
            name: fields.need_string(&["name"])?,
            arguments: fields.need_string(&["arguments"])?,
            status: read_status(&mut fields)?,
            extra: fields.into_extra(),
        })
    }
}

impl FunctionCallOutput {
    fn from_fields(mut fields: Fields<'_>) -> Result<Self, Error> {
        let id = fields.take_string(&["id"])?;
        let call_id = fields.need_string(&["call_id", "callId"])?;
        // `null` counts as absent here: an output must be a text or parts.
        let output = match fields.take_present(&["output"])? {
            None => {
                return Err(Error::Missing {
                    path: String::new(),
                    field: "output",
                });
            }
            // The first byte tells the type, since the value was already checked to be JSON.
            Some(value) if value.get().starts_with('"') => Output::Text(
                serde_json::from_str(value.get())
                    .map_err(|error| Error::invalid_json(error).at_segment("output"))?,
            ),
            Some(value) => Output::Parts(
                Part::parse_all(value.get()).map_err(|error| error.at_segment("output"))?,
            ),
        };
        Ok(Self {
            id,
            call_id,
            output,
            is_error: fields.take_as(&["is_error", "isError"], "a boolean")?,
            status: read_status(&mut fields)?,
            extra: fields.into_extra(),
        })
    }
}

impl Reasoning {
    fn from_fields(mut fields: Fields<'_>) -> Result<Self, Error> {
        let id = fields.take_string(&["id"])?;
        // Always written: a `null` kept beside it would be a second one.
        let summary = match fields.take_field(&["summary"])?.map(RawValue::get) {
            None | Some("null") => Vec::new(),
            Some(value) => Part::parse_all(value).map_err(|error| error.at_segment("summary"))?,
        };
        Ok(Self {
            id,
            summary,
            content: read_parts(&mut fields, "content")?,
            encrypted_content: fields.take_string(&["encrypted_content", "encryptedContent"])?,
            signature: fields.take_string(&["signature"])?,
            format: fields.take_string(&["format"])?,
            status: read_status(&mut fields)?,
            extra: fields.into_extra(),
        })
    }
}

impl Compaction {
    fn from_fields(mut fields: Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            id: fields.take_string(&["id"])?,
            summary: read_parts(&mut fields, "summary")?.unwrap_or_default(),
            encrypted_content: fields.take_string(&["encrypted_content", "encryptedContent"])?,
            format: fields.take_string(&["format"])?,
            extra: fields.into_extra(),
        })
    }
}

fn read_content(role: Role, text: &str) -> Result<Vec<Part>, Error> {
    // A bare string is the short form that many clients write.
    if text.starts_with('"') {
        return Ok(vec![text_for(
            role,
            serde_json::from_str(text).map_err(Error::invalid_json)?,
        )]);
    }
    Part::parse_all(text)
}

fn read_parts(fields: &mut Fields<'_>, name: &'static str) -> Result<Option<Vec<Part>>, Error> {
    let Some(value) = fields.take_present(&[name])? else {
        return Ok(None);
    };
    Part::parse_all(value.get())
        .map(Some)
        .map_err(|error| error.at_segment(name))
}

/// A status word we do not know stays among the extra fields.
fn read_status(fields: &mut Fields<'_>) -> Result<Option<Status>, Error> {
    let known = |value: &RawValue| {
        serde_json::from_str::<&str>(value.get())
            .is_ok_and(|word| Status::from_wire(word).is_some())
    };
    // Peeked at and not taken: a word of a newer version must stay among the extra fields and be written back.
    if !fields.get(&["status"]).is_some_and(known) {
        return Ok(None);
    }
    Ok(fields
        .take_string(&["status"])?
        .as_deref()
        .and_then(Status::from_wire))
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_always_written_is_written_once() {
        for (text, expected) in [
            (
                r#"{"type":"message","role":"user","content":null}"#,
                r#"{"type":"message","role":"user","content":[]}"#,
            ),
            (
                r#"{"type":"reasoning","id":"r","summary":null,"content":null}"#,
                r#"{"type":"reasoning","id":"r","summary":[],"content":null}"#,
            ),
            (
                r#"{"role":"user","type":null,"content":[]}"#,
                r#"{"type":"message","role":"user","content":[]}"#,
            ),
        ] {
            assert_eq!(Item::parse(text).unwrap().to_json(), expected);
        }
        // Found by fuzzing: it was written beside the type, and once more each time.
        let error = Item::parse(r#"{"role":"user","type":1e400,"content":[]}"#).unwrap_err();
        assert!(error.to_string().contains("1e400"), "{error}");
    }

    #[test]
    fn a_reference_without_a_type_is_read_again() {
        for text in [
            r#"{"id":"msg_1"}"#,
            r#"{"type":null,"role":null,"id":"msg_1"}"#,
        ] {
            let item = Item::parse(text).unwrap();
            assert_eq!(item.kind(), "item_reference");
            assert_eq!(item.to_json(), text);
            assert_eq!(Item::parse(&item.to_json()).unwrap(), item);
        }
        for text in ["{}", r#"{"id":null}"#, r#"{"id":"a","type":1e400}"#] {
            assert!(Item::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn both_readers_agree() {
        let documents = [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a\nb"}]}"#,
            r#"{"content":[],"role":"assistant","type":"message","status":"incomplete","id":"x"}"#,
            r#"{"type":"message","role":"user","id":null,"status":null,"content":[]}"#,
            r#"{"type":"message","role":"user","status":"odd","content":[]}"#,
            r#"{"type":"message","role":"robot","content":[]}"#,
            r#"{"type":"message","role":"user","role":"user","content":[]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"refusal","text":"a"}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a","x":1}]}"#,
            r#"{"type":"message","role":"user","content":"a"}"#,
            r#"{"type":"message","role":"user"}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"type":"other","role":"user","content":[]}"#,
            r#"{"type":"mess\u0061ge","role":"user","content":[]}"#,
            "[]",
            "{",
        ];
        for text in documents {
            let (quick, any) = (Item::parse(text), Item::parse_any(text));
            assert_eq!(format!("{quick:?}"), format!("{any:?}"), "{text}");
        }
    }
}
