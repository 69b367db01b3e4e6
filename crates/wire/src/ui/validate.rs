//! Whole UI messages against the AI SDK's rules.
//!
//! The first fault ends the check and is named by its path. Unknown keys of messages and parts are
//! dropped, known ones come out in the SDK's order; what lies below (input, output, data, metadata)
//! is not touched. Unlike the SDK, a key written twice is an error: readers disagree on which counts.

use std::fmt;

use contexture_ir::{Extra, Fields, Raw, UiMessage, UiRole};
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::unknown_fields::UnknownFields;
use super::validate_part::{Problem, check_part, decode_string, take_field};
use crate::model::error::WireError;

/// Checks messages as the AI SDK's `validateUIMessages` does and returns them without unknown keys.
///
/// # Errors
/// [`WireError::InvalidUi`] names the first fault: no message at all, a person's message without
/// parts, an unknown part type, a field that is missing, of a wrong type or forbidden in its state.
///
/// ```
/// use contexture_ir::{UiMessage, UiRole};
/// let messages = [UiMessage::text(UiRole::User, "hello")];
/// assert_eq!(contexture_wire::ui::validate(&messages)?, messages);
/// # Ok::<(), contexture_wire::WireError>(())
/// ```
pub fn validate(messages: &[UiMessage]) -> Result<Vec<UiMessage>, WireError> {
    let check = |(index, message): (usize, &UiMessage)| {
        check_ui_message(message).map_err(|problem| invalid_ui(problem.at_index(index)))
    };
    if messages.is_empty() {
        return Err(invalid_ui(Problem::new("expected at least one message")));
    }
    messages.iter().enumerate().map(check).collect()
}

/// As [`validate`], for the text of an array of messages.
///
/// # Errors
/// As [`validate`], and [`WireError::NotJson`].
pub fn validate_json(text: &str) -> Result<Vec<UiMessage>, WireError> {
    parse_messages(text, UnknownFields::Dropped)
}

/// Reads and checks an array of messages.
pub(super) fn parse_messages(
    text: &str,
    unknown: UnknownFields,
) -> Result<Vec<UiMessage>, WireError> {
    let elements: Vec<ObjectElement<'_>> = match serde_json::from_str(text) {
        Ok(elements) => elements,
        // JSON of another type; every other error means that the text is no JSON.
        Err(error) if error.is_data() => {
            return Err(invalid_ui(Problem::wrong_value(
                "an array of messages",
                text,
            )));
        }
        Err(source) => {
            return Err(WireError::NotJson {
                line: source.line(),
                column: source.column(),
                source,
            });
        }
    };
    if elements.is_empty() {
        return Err(invalid_ui(Problem::new("expected at least one message")));
    }
    let check = |(index, element): (usize, ObjectElement<'_>)| {
        let checked = match element.0 {
            Some(fields) => check_message(fields, unknown),
            None => Err(Problem::new("expected a message, an object")),
        };
        checked.map_err(|problem| invalid_ui(problem.at_index(index)))
    };
    elements.into_iter().enumerate().map(check).collect()
}

/// Reads and checks one message.
pub(super) fn parse_message(text: &str) -> Result<UiMessage, WireError> {
    let fields = Fields::parse(text).map_err(|_| invalid_ui(Problem::new("expected an object")))?;
    check_message(fields, UnknownFields::Kept).map_err(invalid_ui)
}

fn invalid_ui(problem: Problem) -> WireError {
    let path = if problem.path.is_empty() {
        "messages".to_owned()
    } else {
        problem.path
    };
    WireError::InvalidUi {
        path,
        what: problem.what,
    }
}

fn check_message(mut fields: Fields<'_>, unknown: UnknownFields) -> Result<UiMessage, Problem> {
    let mut take = |name: &'static str| take_field(&mut fields, name);
    let (id, role) = (take("id"), take("role"));
    let (metadata, parts) = (take("metadata"), take("parts"));
    let id = match id.map(RawValue::get) {
        Some(text) if text.starts_with('"') => decode_string(text).0.into_owned(),
        other => return Err(missing_or_wrong(other, "a string").at_segment("id")),
    };
    let role = parse_role(role.map(RawValue::get))?;
    let parts = match parts.map(RawValue::get) {
        Some(text) if text.starts_with('[') => {
            check_parts(text, unknown).map_err(|problem| problem.at_segment("parts"))?
        }
        other => return Err(missing_or_wrong(other, "an array of parts").at_segment("parts")),
    };
    check_not_empty(role, &parts)?;
    Ok(UiMessage {
        id,
        role,
        metadata: metadata.map(Raw::from),
        parts,
        extra: match unknown {
            UnknownFields::Kept => fields.into_extra(),
            UnknownFields::Dropped => Extra::new(),
        },
    })
}

fn missing_or_wrong(found: Option<&str>, expected: &str) -> Problem {
    match found {
        Some(found) => Problem::wrong_value(expected, found),
        None => Problem::new(format!("missing, expected {expected}")),
    }
}

fn parse_role(word: Option<&str>) -> Result<UiRole, Problem> {
    let known = word.and_then(|word| UiRole::from_wire(word.trim_matches('"')));
    known
        .ok_or_else(|| missing_or_wrong(word, "`system`, `user` or `assistant`").at_segment("role"))
}

fn check_not_empty(role: UiRole, parts: &[Raw]) -> Result<(), Problem> {
    // The assistant's message may be empty, because its answer may not have begun.
    if parts.is_empty() && role != UiRole::Assistant {
        return Err(Problem::new("expected at least one part").at_segment("parts"));
    }
    Ok(())
}

fn check_parts(text: &str, unknown: UnknownFields) -> Result<Vec<Raw>, Problem> {
    let elements: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|_| Problem::wrong_value("an array of parts", text))?;
    let mut parts = Vec::with_capacity(elements.len());
    for (index, element) in elements.into_iter().enumerate() {
        let checked = match Fields::parse(element.get()) {
            Ok(fields) => check_part(fields),
            Err(_) => Err(Problem::new("expected a part, an object")),
        };
        let checked = checked.map_err(|problem| problem.at_index(index))?;
        // As it came only where something would be missing: all else is in the table's order.
        parts.push(match unknown {
            UnknownFields::Kept if !checked.members.dropped.is_empty() => Raw::from(element),
            _ => checked.to_raw(),
        });
    }
    Ok(parts)
}

fn check_ui_message(message: &UiMessage) -> Result<UiMessage, Problem> {
    let mut parts = Vec::with_capacity(message.parts.len());
    for (index, part) in message.parts.iter().enumerate() {
        let checked = match Fields::parse(part.get()) {
            Ok(fields) => check_part(fields),
            Err(_) => Err(Problem::wrong_value("a part, an object", part.get())),
        };
        let checked = checked.map_err(|problem| problem.at_index(index).at_segment("parts"))?;
        // Parts that are in order already keep their bytes; others are written anew.
        let kept = checked.members.in_order;
        parts.push(if kept { part.clone() } else { checked.to_raw() });
    }
    check_not_empty(message.role, &parts)?;
    Ok(UiMessage {
        id: message.id.clone(),
        role: message.role,
        metadata: message.metadata.clone(),
        parts,
        extra: Extra::new(),
    })
}

/// An array's element cut into its members; `None` if it is not an object.
struct ObjectElement<'a>(Option<Fields<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectElement<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementVisitor;
        impl<'de> Visitor<'de> for ElementVisitor {
            type Value = ObjectElement<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<Self::Value, A::Error> {
                let members = serde::de::value::MapAccessDeserializer::new(map);
                Fields::deserialize(members).map(|fields| ObjectElement(Some(fields)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                // The whole list has to be read, or the parser would fail behind it.
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(ObjectElement(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(ObjectElement(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(ObjectElement(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(ObjectElement(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(ObjectElement(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(ObjectElement(None))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(ObjectElement(None))
            }
        }
        deserializer.deserialize_any(ElementVisitor)
    }
}
